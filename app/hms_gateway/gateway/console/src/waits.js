// Locks, transactions and leases: who waits for whom, and how an administrator ends it.

import { html, useState } from "./vendor/preact_htm.js";
import { AbortTxn, EndLease, FreeLock, lockText } from "./changing.js";
import { said, span, time } from "./format.js";
import { useCall } from "./live.js";
import { Answer, link, Long, Panel, Rows, tableLink } from "./parts.js";
import { t } from "./texts.js";

const STATES = ["", "acquired", "waiting", "aborted", "not acquired"];
const TYPES = ["", "shared read", "shared write", "exclusive", "exclusive write"];
const TXN_STATES = ["", "committed", "aborted", "open"];
const ABORTED = 2;
const COMPACTIONS = ["", "minor", "major", "rebalance", "abort cleanup", "smart optimize"];
const LATE_SHARE = 0.5;
const ACTION = html`<span class="unseen">${t.action}</span>`;

export function WaitsPage() {
  const blocking = useCall("list_blocking_locks", { rqst: {} }, true);
  const locks = useCall("show_locks", { rqst: {} }, true);
  const txns = useCall("get_open_txns_info", {}, true);
  const leases = useCall("list_lease", { objs: [] }, true);
  const compactions = useCall("show_compact", { rqst: {} }, true);
  const reload = () => [blocking, locks, txns, leases].forEach((each) => each.reload());
  return html`<h1>${t.waitsTitle}</h1>
    <p class="soft">${t.waitsText}</p>
    <div class="stack">
      <${Panel} title=${t.graph}>
        <${Answer} of=${blocking}>${(found) => html`<${Graph} blocking=${found} locks=${locks.value?.locks ?? []} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.locks} number=${locks.value && (locks.value.locks ?? []).length}>
        <${Answer} of=${locks}>${(found) => html`<${LockRows} locks=${found.locks ?? []} blocking=${blocking.value} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.transactions} number=${txns.value && open(txns.value).length}>
        <${Answer} of=${txns}>${(found) => html`<${TxnRows} txns=${open(found)} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.leases} number=${leases.value?.length}>
        <${Answer} of=${leases}>${(found) => html`<${LeaseRows} leases=${found} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.deadlocks} number=${txns.value && aborted(txns.value).length}>
        <p class="soft">${t.deadlocksText}</p>
        <${Answer} of=${txns}>${(found) => html`<${TxnRows} txns=${aborted(found)} none=${t.deadlocksNone} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.compactions} number=${compactions.value && (compactions.value.compacts ?? []).length}>
        <${Answer} of=${compactions}>${(found) => html`<${Compactions} found=${found.compacts ?? []} />`}</${Answer}>
      </${Panel}>
    </div>`;
}

function open(found) {
  return (found.open_txns ?? []).filter(({ state }) => state !== ABORTED);
}

function aborted(found) {
  return (found.open_txns ?? []).filter(({ state }) => state === ABORTED).reverse();
}

function ObjectLink({ lock }) {
  const address = lock.tablename ? tableLink(lock.dbname, lock.tablename, "activity") : link("d", lock.dbname);
  return html`<a href=${address}><bdi>${lockText(lock)}</bdi></a>`;
}

function statementOf({ agentInfo }) {
  return agentInfo && agentInfo !== "Unknown" ? html`<${Long} text=${agentInfo} />` : "";
}

/** How old a heartbeat is, and when the lock is lost without another. */
function Heartbeat({ at, lostAt }) {
  if (!at) return t.none;
  const now = Date.now();
  const isLate = lostAt && now - at > LATE_SHARE * (lostAt - at);
  return html`<span class=${isLate ? "late" : ""} title=${time(at)}>${isLate ? t.silent(span(now - at)) : span(now - at)}</span>${
    isLate ? html` <span class="soft">${t.lostIn(span(lostAt - now))}</span>` : ""
  }`;
}

/** Those that others wait for, the oldest first, as the start page shows them. */
export function BlockingList({ locks, most }) {
  // A request that waits itself is in the way of later ones; what it waits for is at the root of it.
  const held = locks.filter(({ lock }) => STATES[lock.state] === "acquired");
  if (!locks.length) return html`<p class="none">${t.waitsNone}</p>`;
  const sorted = (held.length ? held : [...locks]).sort((one, other) => one.lock.lockid - other.lock.lockid);
  return html`<p><a href="#/waits"><strong>${t.waitsSome(sorted.length)}</strong></a></p>
    <ul class="plain">
      ${sorted.slice(0, most).map(
        ({ lock, blocked_count, last_heartbeat, lost_at }) => html`<li>
          <${ObjectLink} lock=${lock} /> <span class="soft"><bdi>${lock.user}</bdi> · ${t.blocks(blocked_count)} ·</span> <${Heartbeat} at=${last_heartbeat} lostAt=${lost_at} />
        </li>`,
      )}
    </ul>`;
}

/** Each lock that others wait for, with those that wait below it. A circle of waits does not last, so none is drawn. */
function Graph({ blocking, locks, onDone }) {
  if (!blocking.length) return html`<p class="none">${t.waitsEmpty}</p>`;
  const byId = new Map(locks.map((lock) => [lock.lockid, lock]));
  const groups = new Map();
  for (const one of blocking) {
    const group = groups.get(one.lock.lockid) ?? { ...one, components: [], blockedIds: new Set() };
    group.components.push(one.lock);
    one.blocked.forEach((id) => group.blockedIds.add(id));
    groups.set(one.lock.lockid, group);
  }
  const since = waitingSince(blocking);
  const isBlocked = new Set([...groups.values()].flatMap(({ blockedIds }) => [...blockedIds]));
  const roots = [...groups.values()].filter(({ lock }) => !isBlocked.has(lock.lockid));
  const drawn = new Set();
  const node = (id) => {
    if (drawn.has(id)) return "";
    drawn.add(id);
    const group = groups.get(id);
    const lock = group?.lock ?? byId.get(id);
    if (!lock) return html`<li class="node"><p>${t.lock} ${id}</p></li>`;
    const waiting = [...(group?.blockedIds ?? [])].sort((one, other) => one - other);
    return html`<li class="node" key=${id}>
      <${Node} lock=${lock} group=${group} since=${lock.acquiredat ?? since.get(id)} onDone=${onDone} />
      ${waiting.length ? html`<ul>${waiting.map(node)}</ul>` : ""}
    </li>`;
  };
  const ordered = (roots.length ? roots : [...groups.values()]).sort((one, other) => one.lock.lockid - other.lock.lockid);
  return html`<ul class="waits">${ordered.map(({ lock }) => node(lock.lockid))}</ul>`;
}

function Node({ lock, group, since, onDone }) {
  const [isFreeing, setFreeing] = useState(false);
  const isHeld = STATES[lock.state] === "acquired";
  return html`<div class="wait ${isHeld ? "held" : "waits"}">
    <button aria-label=${t.freeTitle(lock.lockid)} onClick=${() => setFreeing(true)}>${t.free}</button>
    <p>
      <span class="tag ${isHeld ? "" : "warn"}">${STATES[lock.state]}</span> <strong>${t.lock} ${lock.lockid}</strong>
      <span class="soft"> ${TYPES[lock.type]} · </span><${ObjectLink} lock=${lock} />
    </p>
    <p class="soft">
      <bdi>${lock.user}</bdi> · <bdi>${lock.hostname}</bdi> ·
      ${since ? html` <span title=${time(since)}>${isHeld ? t.heldFor(span(Date.now() - since)) : t.waitsSince(span(Date.now() - since))}</span> · ` : " "}${t.heartbeat} <${Heartbeat} at=${group?.last_heartbeat ?? lock.lastheartbeat} lostAt=${group?.lost_at} />
      ${lock.txnid ? ` · ${t.transaction} ${lock.txnid}` : ""}
    </p>
    ${statementOf(lock) && html`<p><code>${statementOf(lock)}</code></p>`}
    ${isFreeing && html`<${FreeLock} lock=${lock} waiters=${group?.blocked_count ?? 0} onClose=${() => setFreeing(false)} onDone=${onDone} />`}
  </div>`;
}

/** Since when each request waits, by its id, as far as that is known. */
function waitingSince(blocking) {
  return new Map(blocking.flatMap(({ blocked, blocked_since = [] }) => blocked.map((id, index) => [id, blocked_since[index] || undefined])));
}

export function LockRows({ locks, blocking, onDone }) {
  const [freed, setFreed] = useState(null);
  const known = new Map((blocking ?? []).map((one) => [one.lock.lockid, one]));
  const waiting = waitingSince(blocking ?? []);
  const age = ({ lockid, acquiredat }) => {
    const since = acquiredat ?? waiting.get(lockid);
    return since && Date.now() - since;
  };
  const sorted = [...locks].sort((one, other) => one.lockid - other.lockid);
  return html`<${Rows}
      label=${t.locks}
      rows=${sorted}
      none=${t.locksNone}
      find=${(lock) => `${lock.lockid} ${lockText(lock)} ${lock.user} ${lock.hostname} ${lock.agentInfo ?? ""}`}
      columns=${[
        [t.lock, (lock) => lock.lockid, "number", (lock) => lock.lockid],
        [t.state, (lock) => html`<span class="tag ${lock.state === 2 ? "warn" : ""}">${STATES[lock.state]}</span>`, "", (lock) => STATES[lock.state]],
        [t.kind, (lock) => TYPES[lock.type], "date", (lock) => TYPES[lock.type]],
        [t.object, (lock) => html`<${ObjectLink} lock=${lock} />`, "wide", lockText],
        [t.user, (lock) => html`<${Long} text=${lock.user} />`, "", (lock) => lock.user],
        [t.host, (lock) => html`<${Long} text=${lock.hostname} />`, "", (lock) => lock.hostname],
        [t.age, (lock) => said(age(lock), span), "number", age],
        [t.heartbeat, (lock) => html`<${Heartbeat} at=${known.get(lock.lockid)?.last_heartbeat ?? lock.lastheartbeat} lostAt=${known.get(lock.lockid)?.lost_at} />`],
        [t.statement, statementOf, "wide", (lock) => lock.agentInfo],
        [ACTION, (lock) => html`<button aria-label=${t.freeTitle(lock.lockid)} onClick=${() => setFreed(lock)}>${t.free}</button>`, "action"],
      ]}
    />
    ${freed && html`<${FreeLock} lock=${freed} waiters=${known.get(freed.lockid)?.blocked_count ?? 0} onClose=${() => setFreed(null)} onDone=${onDone} />`}`;
}

function TxnRows({ txns, none, onDone }) {
  const [ended, setEnded] = useState(null);
  const columns = [
    [t.transaction, ({ id }) => id, "number", ({ id }) => id],
    [t.state, ({ state }) => TXN_STATES[state], "", ({ state }) => TXN_STATES[state]],
    [t.user, ({ user }) => html`<${Long} text=${user} />`, "", ({ user }) => user],
    [t.host, ({ hostname }) => html`<${Long} text=${hostname} />`, "", ({ hostname }) => hostname],
    [t.started, ({ startedTime }) => (startedTime ? span(Date.now() - startedTime) : ""), "number", ({ startedTime }) => startedTime && Date.now() - startedTime],
    [t.heartbeat, ({ lastHeartbeatTime }) => html`<${Heartbeat} at=${lastHeartbeatTime} />`],
    [t.statement, statementOf, "wide"],
  ];
  if (!onDone) columns.push([t.reason, ({ metaInfo }) => html`<${Long} text=${metaInfo} />`, "wide"]);
  if (onDone) columns.push([ACTION, (txn) => html`<button aria-label=${t.abortTitle(txn.id)} onClick=${() => setEnded(txn)}>${t.abort}</button>`, "action"]);
  return html`<${Rows} label=${t.transactions} rows=${txns} none=${none ?? t.transactionsNone} keyOf=${({ id }) => id} columns=${columns} />
    ${ended && html`<${AbortTxn} txn=${ended} onClose=${() => setEnded(null)} onDone=${onDone} />`}`;
}

export function LeaseRows({ leases, onDone }) {
  const [ended, setEnded] = useState(null);
  const target = (lease) => ({ dbname: lease.db_name, tablename: lease.table_name, partname: lease.partition_name });
  const what = (lease) => lockText(target(lease));
  return html`<${Rows}
      label=${t.leases}
      rows=${[...leases].sort((one, other) => one.lease_id - other.lease_id)}
      none=${t.leasesNone}
      columns=${[
        [t.lease, ({ lease_id }) => lease_id, "number", ({ lease_id }) => lease_id],
        [t.kind, ({ lease_type }) => (lease_type === "x" ? "exclusive" : "shared"), "", ({ lease_type }) => lease_type],
        [t.object, (lease) => html`<${ObjectLink} lock=${target(lease)} />`, "wide", what],
        [t.user, ({ user }) => html`<${Long} text=${user} />`, "", ({ user }) => user],
        [t.age, ({ start_utc }) => span(Date.now() - start_utc * 1000), "number"],
        [t.expires, ({ end_utc }) => time(end_utc * 1000)],
        [ACTION, (lease) => html`<button aria-label=${t.leaseTitle(lease.lease_id)} onClick=${() => setEnded(lease)}>${t.end}</button>`, "action"],
      ]}
    />
    ${ended && html`<${EndLease} lease=${ended} what=${what(ended)} onClose=${() => setEnded(null)} onDone=${onDone} />`}`;
}

function Compactions({ found }) {
  return html`<${Rows}
    label=${t.compactions}
    rows=${found}
    none=${t.compactionsNone}
    columns=${[
      [t.object, (one) => html`<${ObjectLink} lock=${{ dbname: one.dbname, tablename: one.tablename, partname: one.partitionname }} />`, "wide"],
      [t.kind, ({ type }) => COMPACTIONS[type]],
      [t.state, ({ state }) => state],
      [t.worker, ({ workerid }) => workerid ?? ""],
      [t.when, ({ start, enqueueTime }) => (start || enqueueTime ? span(Date.now() - (start || enqueueTime)) : ""), "number"],
      [t.error, ({ errorMessage }) => html`<${Long} text=${errorMessage} />`],
    ]}
  />`;
}
