// Thrift messages as JSON, by the shapes of the IDL. Maps become Map, integers beyond 2^53 become BigInt.

import { methods, structs } from "./shapes.js";

const CALL = 1;
const REPLY = 2;
const WIDE = /\d{16}/;

export class DeclaredError extends Error {
  constructor(name, fields) {
    super(fields.message || name);
    this.name = name;
  }
}

export class ApplicationError extends Error {}

/** The message of a call; `values` by the names of the arguments, those left out are unset. */
export function encodeCall(method, values) {
  const shape = methods[method];
  return `[1,${JSON.stringify(method)},${CALL},1,${encodeFields(shape.arguments, values)}]`;
}

/** What a reply says. Throws DeclaredError, ApplicationError. */
export function decodeReply(method, text) {
  const [, , type, , fields] = parse(text);
  if (type !== REPLY) throw new ApplicationError(fields["1"]?.str ?? "");
  const shape = methods[method];
  if (fields["0"] !== undefined) return shape.answer === null ? undefined : decodeMember(shape.answer, fields["0"]);
  for (const [id, kind] of shape.throws) {
    if (fields[id] !== undefined) throw new DeclaredError(kind.rec, decodeMember(kind, fields[id]));
  }
  return undefined;
}

/** A struct by itself, as messages of events have it. */
export function decodeStruct(name, text) {
  return decode({ rec: name }, parse(text));
}

function parse(text) {
  if (!WIDE.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context.source)
      : value,
  );
}

function tagOf(kind) {
  return typeof kind === "string" ? kind : Array.isArray(kind) ? kind[0] : "rec";
}

function encodeFields(fields, values) {
  const members = [];
  for (const [id, name, kind] of fields) {
    const value = values[name];
    if (value === undefined || value === null) continue;
    members.push(`"${id}":{"${tagOf(kind)}":${encode(kind, value)}}`);
  }
  return `{${members.join(",")}}`;
}

function encode(kind, value) {
  if (kind === "tf") return value ? "1" : "0";
  if (typeof kind === "string") return typeof value === "bigint" ? String(value) : JSON.stringify(value);
  if (kind.rec) return encodeFields(structs[kind.rec], value);
  const [container, first, second] = kind;
  if (container === "map") {
    const entries = [...value].map(([key, each]) => `${JSON.stringify(String(key))}:${encode(second, each)}`);
    return `["${tagOf(first)}","${tagOf(second)}",${entries.length},{${entries.join(",")}}]`;
  }
  return `["${tagOf(first)}",${[value.length, ...value.map((each) => encode(first, each))].join(",")}]`;
}

function decodeMember(kind, member) {
  const value = member[tagOf(kind)];
  return value === undefined ? undefined : decode(kind, value);
}

function decode(kind, value) {
  if (kind === "tf") return value === 1 || value === true;
  if (typeof kind === "string") return value;
  if (kind.rec) {
    const found = {};
    for (const [id, name, each] of structs[kind.rec]) {
      if (value[id] !== undefined) found[name] = decodeMember(each, value[id]);
    }
    return found;
  }
  const [container, first, second] = kind;
  if (container === "map") {
    return new Map(Object.entries(value[3]).map(([key, each]) => [key, decode(second, each)]));
  }
  return value.slice(2).map((each) => decode(first, each));
}
