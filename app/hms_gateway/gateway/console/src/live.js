// What pages know of the metastore: answers of calls, renewed one at a time while the page is looked at.

import { useEffect, useRef, useState } from "./vendor/preact_htm.js";
import { keyOf } from "./parts.js";
import { call, DeclaredError, getJson, onSession, session } from "./session.js";

// Less than one call in five seconds, whatever the page shows.
const EVERY_MILLISECONDS = 6000;
const LOOKED_BACK = 1000;

const renewed = [];
let timer = 0;

function tick() {
  const isAsleep = document.hidden || session.asks || !session.isReachable || !renewed.length;
  timer = setTimeout(tick, EVERY_MILLISECONDS * (isAsleep ? 1 : renewed[0].calls));
  if (isAsleep) return;
  const next = renewed.shift();
  renewed.push(next);
  next.go();
}

function renew(go, calls) {
  const work = { go, calls };
  renewed.push(work);
  if (!timer) timer = setTimeout(tick, EVERY_MILLISECONDS);
  return () => renewed.splice(renewed.indexOf(work), 1);
}

/** The answer of `ask`, asked again when `about` changes. With `calls`, so many each, it takes turns in being renewed. */
export function useAsked(ask, about, calls = 0) {
  const [state, setState] = useState({ about: null });
  const latest = useRef(0);
  const asking = useRef(0);
  async function load() {
    const turn = ++latest.current;
    asking.current += 1;
    try {
      const value = await ask();
      if (turn === latest.current) setState({ about, value });
    } catch (error) {
      if (turn === latest.current) setState((before) => ({ about, error, value: before.about === about ? before.value : undefined }));
    } finally {
      asking.current -= 1;
    }
  }
  const current = useRef(load);
  current.current = load;
  useEffect(() => {
    load();
    return () => {
      latest.current += 1;
    };
  }, [about]);
  // An answer that takes longer than a turn is waited for: the next question would make it an old one.
  useEffect(() => (calls ? renew(() => asking.current || current.current(), calls) : undefined), [calls]);
  useEffect(() => {
    let wasReachable = session.isReachable;
    return onSession(() => {
      if (session.isReachable && !wasReachable) current.current();
      wasReachable = session.isReachable;
    });
  }, []);
  const own = state.about === about ? state : {};
  return { value: own.value, error: own.error, reload: load };
}

export function useCall(method, values, isLive = false) {
  return useAsked(() => call(method, values), `${method} ${JSON.stringify(values)}`, isLive ? 1 : 0);
}

export function useJson(path, isLive = false) {
  return useAsked(() => getJson(path), path, isLive ? 1 : 0);
}

/** How many calls `lastChanges` makes. */
export const CHANGES_CALLS = 3;

/** The last changes of the catalog without their messages, the newest first; of one object, among the last thousand, where `where` names it. Administrators learn who made them. */
export async function lastChanges(most, { dbName, tableName } = {}) {
  const where = { dbName, tableNames: tableName && [tableName] };
  const [events, known] = await Promise.all([lastEvents(most, where), whoMade({ db_name: dbName, table_name: tableName, limit: most })]);
  return events
    .slice(-most)
    .reverse()
    .map((event) => ({ ...event, ...known.get(event.eventId) }));
}

async function lastEvents(most, where) {
  const { eventId } = await call("get_current_notificationEventId");
  const back = where.dbName ? LOOKED_BACK : most;
  const rqst = { lastEvent: Math.max(0, Number(eventId) - back), withoutMessages: true, ...where };
  const { events } = await call("get_next_notification", { rqst });
  return (events ?? []).map((event) => ({ ...event, dbName: keyOf(event.catName, event.dbName) }));
}

/** Who made the last changes, by the ids of their events; nobody, for who may not know. */
async function whoMade(rqst) {
  if (session.seesChanges === false) return new Map();
  try {
    const made = await call("list_changes", { rqst });
    return new Map(made.map(({ event_id, user, real_user, address, method, request_id }) => [event_id, { user, real_user, address, method, request_id }]));
  } catch (error) {
    if (!(error instanceof DeclaredError)) throw error;
    session.seesChanges = false;
    return new Map();
  }
}

/** The message of an event, which may have thousands of partitions in it; null when the log has it no more. */
export async function messageOf({ eventId }) {
  const answer = await call("get_next_notification", { rqst: { lastEvent: Number(eventId) - 1, maxEvents: 1 } });
  return answer.events?.find((event) => event.eventId === eventId)?.message ?? null;
}
