// npm thrift counts on two names that only Node.js has.
export { Buffer } from "buffer";
export const process = { env: {}, nextTick: (work) => queueMicrotask(work) };
