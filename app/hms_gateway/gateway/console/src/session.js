// Who calls, and calling: one POST of TJSON for each call, to the endpoint that every other client uses.
//
// The credentials are kept for this tab (sessionStorage), so that a reload does not ask again; closing the tab, or
// logging out, forgets them. There is no cookie and no session on the server.

import { ApplicationError, DeclaredError, decodeReply, encodeCall } from "./tjson.js";

const ENDPOINT = new URL("../metastore", document.baseURI);
const ALIVE = new URL("../healthz", document.baseURI);
const KEPT = "hms-gateway";
const BACK_SECONDS = 5;

export class Busy extends Error {
  constructor(status, seconds, text) {
    super(text);
    this.status = status;
    this.seconds = seconds;
  }
}

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export class Unreachable extends Error {}

const listeners = new Set();

/** What the page shows of the session. `asks` is why credentials are asked for: "" not at all, "first", "expired". */
export const session = { user: "", header: "", asks: "", isReachable: true, offersTickets: false, seesChanges: true, calls: 0 };

export function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(values) {
  Object.assign(session, values);
  for (const listener of listeners) listener();
}

let waiting = [];

function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    if (kept) Object.assign(session, { user: kept.user, header: kept.header });
  } catch {
    sessionStorage.removeItem(KEPT);
  }
  if (!session.user) session.asks = "first";
}
restore();

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export function passwordHeader(user, password) {
  return `Basic ${base64(`${user}:${password}`)}`;
}

/** Try credentials: null when they are right, else what the gateway says. An empty header is a ticket of the browser. */
export async function logIn(user, header) {
  const answer = await post("get_all_databases", {}, header, {});
  if (answer.status === 401 || answer.status === 403) return spoken(await answer.text());
  if (answer.status === 429 || answer.status === 503) throw busy(answer, spoken(await answer.text()));
  if (!answer.ok) return spoken(await answer.text());
  sessionStorage.setItem(KEPT, JSON.stringify({ user, header }));
  const held = waiting;
  waiting = [];
  changed({ user, header, asks: "", seesChanges: true });
  for (const go of held) go();
  return null;
}

export function logOut() {
  sessionStorage.removeItem(KEPT);
  changed({ user: "", header: "", asks: "first" });
}

/** Call a method. A `key` makes repeating it harmless. Throws DeclaredError, ApplicationError, Busy, Refused, Unreachable. */
export async function call(method, values = {}, { key } = {}) {
  const answer = await admitted((header) => post(method, values, header, key ? { "idempotency-key": key } : {}));
  const text = await answer.text();
  if (answer.status === 429 || answer.status === 503) throw busy(answer, spoken(text));
  if (!answer.ok) throw new Refused(answer.status, spoken(text));
  return decodeReply(method, text);
}

/** The answer to a request; where the login is not accepted any more, it is asked for and the request sent again. */
async function admitted(send) {
  for (;;) {
    if (session.asks) await new Promise((go) => waiting.push(go));
    const { header } = session;
    const answer = await send(header);
    if (answer.status !== 401) return answer;
    // Others may have been refused with the same credentials, and asked already.
    if (header === session.header && !session.asks) {
      changed({ asks: "expired" });
      learnOffers();
    }
  }
}

/** JSON of a page beside the endpoint; null where the gateway has no such page. */
export async function getJson(path) {
  const answer = await admitted((header) =>
    reach(new URL(`../${path}`, document.baseURI), { headers: authorization(header), credentials: credentialsOf(header) }),
  );
  if (answer.status === 404) return null;
  if (answer.status === 429 || answer.status === 503) throw busy(answer, await answer.text());
  if (!answer.ok) throw new Refused(answer.status, await answer.text());
  return answer.json();
}

/** Whether the gateway offers tickets, so that the login can. What it says tells: Firefox shows a page no header with the ways in. */
export async function learnOffers() {
  try {
    const answer = await post("get_all_databases", {}, null, {});
    changed({ offersTickets: answer.status === 401 && spoken(await answer.text()).includes("(Negotiate)") });
  } catch {
    changed({ offersTickets: false });
  }
}

function authorization(header) {
  return header ? { authorization: header } : {};
}

function post(method, values, header, headers) {
  const type = { "content-type": "application/vnd.apache.thrift.json", "x-hms-capabilities": "INSERT_ONLY_TABLES" };
  return reach(ENDPOINT, {
    method: "POST",
    body: encodeCall(method, values),
    headers: { ...type, ...headers, ...authorization(header) },
    credentials: credentialsOf(header),
  });
}

/** The browser adds nothing of its own, and shows no dialog, but where its ticket is wanted. */
function credentialsOf(header) {
  return header === "" ? "same-origin" : "omit";
}

async function reach(url, options) {
  session.calls += 1;
  try {
    const answer = await fetch(url, { cache: "no-store", credentials: "omit", ...options });
    if (!session.isReachable) changed({ isReachable: true });
    return answer;
  } catch (error) {
    if (session.isReachable) {
      changed({ isReachable: false });
      setTimeout(lookAgain, BACK_SECONDS * 1000);
    }
    throw new Unreachable(String(error));
  }
}

async function lookAgain() {
  try {
    await fetch(ALIVE, { cache: "no-store", credentials: "omit" });
    changed({ isReachable: true });
  } catch {
    setTimeout(lookAgain, BACK_SECONDS * 1000);
  }
}

function busy(answer, text) {
  return new Busy(answer.status, Number(answer.headers.get("retry-after")) || 0, text);
}

/** The sentence in an answer that is not a reply: text, or a message with an application exception. */
function spoken(text) {
  try {
    return JSON.parse(text)[4]["1"].str;
  } catch {
    return text.trim();
  }
}

export { ApplicationError, DeclaredError };
