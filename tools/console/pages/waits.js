// Locks, transactions and leases: who waits for whom, and how an administrator ends it.

import { html, useState } from "./vendor/preact_htm.js";
import { EndLease, FreeLock, AbortTxn } from "./changing.js";
import { count, span, time } from "./format.js";
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
      <${Panel} title=${t.locks}>
        <${Answer} of=${locks}>${(found) => html`<${LockRows} locks=${found.locks ?? []} blocking=${blocking.value} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.transactions}>
        <${Answer} of=${txns}>${(found) => html`<${TxnRows} txns=${open(found)} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.leases}>
        <${Answer} of=${leases}>${(found) => html`<${LeaseRows} leases=${found} onDone=${reload} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.deadlocks}>
        <p class="soft">${t.deadlocksText}</p>
        <${Answer} of=${txns}>${(found) => html`<${TxnRows} txns=${aborted(found)} none=${t.deadlocksNone} />`}</${Answer}>
      </${Panel}>
      <${Panel} title=${t.compactions}>
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

/** What a lock is on. */
export function objectText({ dbname, tablename, partname }) {
  return [dbname, tablename].filter(Boolean).join(".") + (partname ? ` / ${partname}` : "");
}

function ObjectLink({ lock }) {
  const address = lock.tablename ? tableLink(lock.dbname, lock.tablename, "activity") : link("d", lock.dbname);
  return html`<a href=${address}><bdi>${objectText(lock)}</bdi></a>`;
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
  if (!locks.length) return html`<p class="none">${t.waitsNone}</p>`;
  const sorted = [...locks].sort((one, other) => one.lock.lockid - other.lock.lockid);
  return html`<p><a href="#/waits"><strong>${t.waitsSome(sorted.length)}</strong></a></p>
    <ul class="plain">
      ${sorted.slice(0, most).map(
        ({ lock, blocked_count, last_heartbeat, lost_at }) => html`<li>
          <${ObjectLink} lock=${lock} /> <span class="soft"><bdi>${lock.user}</bdi> · ${t.blocks(count(blocked_count))} ·</span> <${Heartbeat} at=${last_heartbeat} lostAt=${lost_at} />
        </li>`,
      )}
    </ul>`;
}

/** Each lock that others wait for, with those that wait below it; a line of its own for each circle of waits is not needed, since none lasts. */
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
      <${Node} lock=${lock} group=${group} onDone=${onDone} />
      ${waiting.length ? html`<ul>${waiting.map(node)}</ul>` : ""}
    </li>`;
  };
  const ordered = (roots.length ? roots : [...groups.values()]).sort((one, other) => one.lock.lockid - other.lock.lockid);
  return html`<ul class="waits">${ordered.map(({ lock }) => node(lock.lockid))}</ul>`;
}

function Node({ lock, group, onDone }) {
  const [isFreeing, setFreeing] = useState(false);
  const isHeld = STATES[lock.state] === "acquired";
  return html`<div class="wait ${isHeld ? "held" : "waits"}">
    <p>
      <span class="tag ${isHeld ? "" : "warn"}">${STATES[lock.state]}</span> <strong>${t.lock} ${lock.lockid}</strong>
      <span class="soft"> ${TYPES[lock.type]} · </span><${ObjectLink} lock=${lock} />
    </p>
    <p class="soft">
      <bdi>${lock.user}</bdi> · <bdi>${lock.hostname}</bdi> ·
      ${lock.acquiredat ? ` ${t.age} ${span(Date.now() - lock.acquiredat)} · ` : " "}${t.heartbeat} <${Heartbeat} at=${group?.last_heartbeat ?? lock.lastheartbeat} lostAt=${group?.lost_at} />
      ${lock.txnid ? ` · ${t.transaction} ${lock.txnid}` : ""}
    </p>
    ${statementOf(lock) && html`<p><code>${statementOf(lock)}</code></p>`}
    <button aria-label=${t.freeTitle(lock.lockid)} onClick=${() => setFreeing(true)}>${t.free}</button>
    ${isFreeing && html`<${FreeLock} lock=${lock} waiters=${group?.blocked_count ?? 0} onClose=${() => setFreeing(false)} onDone=${onDone} />`}
  </div>`;
}

export function LockRows({ locks, blocking, onDone }) {
  const [freed, setFreed] = useState(null);
  const known = new Map((blocking ?? []).map((one) => [one.lock.lockid, one]));
  const sorted = [...locks].sort((one, other) => one.lockid - other.lockid);
  return html`<${Rows}
      label=${t.locks}
      rows=${sorted}
      none=${t.locksNone}
      find=${(lock) => `${lock.lockid} ${objectText(lock)} ${lock.user} ${lock.hostname} ${lock.agentInfo ?? ""}`}
      columns=${[
        [t.lock, (lock) => lock.lockid, "number"],
        [t.state, (lock) => html`<span class="tag ${lock.state === 2 ? "warn" : ""}">${STATES[lock.state]}</span>`],
        [t.kind, (lock) => TYPES[lock.type]],
        [t.object, (lock) => html`<${ObjectLink} lock=${lock} />`, "wide"],
        [t.user, (lock) => html`<${Long} text=${lock.user} />`],
        [t.host, (lock) => html`<${Long} text=${lock.hostname} />`],
        [t.age, (lock) => (lock.acquiredat ? span(Date.now() - lock.acquiredat) : ""), "number"],
        [t.heartbeat, (lock) => html`<${Heartbeat} at=${known.get(lock.lockid)?.last_heartbeat ?? lock.lastheartbeat} lostAt=${known.get(lock.lockid)?.lost_at} />`],
        [t.statement, statementOf, "wide"],
        [ACTION, (lock) => html`<button aria-label=${t.freeTitle(lock.lockid)} onClick=${() => setFreed(lock)}>${t.free}</button>`],
      ]}
    />
    ${freed && html`<${FreeLock} lock=${freed} waiters=${known.get(freed.lockid)?.blocked_count ?? 0} onClose=${() => setFreed(null)} onDone=${onDone} />`}`;
}

function TxnRows({ txns, none, onDone }) {
  const [ended, setEnded] = useState(null);
  const columns = [
    [t.transaction, ({ id }) => id, "number"],
    [t.state, ({ state }) => TXN_STATES[state]],
    [t.user, ({ user }) => html`<${Long} text=${user} />`],
    [t.host, ({ hostname }) => html`<${Long} text=${hostname} />`],
    [t.started, ({ startedTime }) => (startedTime ? span(Date.now() - startedTime) : ""), "number"],
    [t.heartbeat, ({ lastHeartbeatTime }) => html`<${Heartbeat} at=${lastHeartbeatTime} />`],
    [t.statement, statementOf, "wide"],
  ];
  if (!onDone) columns.push([t.reason, ({ metaInfo }) => html`<${Long} text=${metaInfo} />`, "wide"]);
  if (onDone) columns.push([ACTION, (txn) => html`<button aria-label=${t.abortTitle(txn.id)} onClick=${() => setEnded(txn)}>${t.abort}</button>`]);
  return html`<${Rows} label=${t.transactions} rows=${txns} none=${none ?? t.transactionsNone} keyOf=${({ id }) => id} columns=${columns} />
    ${ended && html`<${AbortTxn} txn=${ended} onClose=${() => setEnded(null)} onDone=${onDone} />`}`;
}

export function LeaseRows({ leases, onDone }) {
  const [ended, setEnded] = useState(null);
  const what = (lease) => objectText({ dbname: lease.db_name, tablename: lease.table_name, partname: lease.partition_name });
  return html`<${Rows}
      label=${t.leases}
      rows=${[...leases].sort((one, other) => one.lease_id - other.lease_id)}
      none=${t.leasesNone}
      columns=${[
        [t.lease, ({ lease_id }) => lease_id, "number"],
        [t.kind, ({ lease_type }) => (lease_type === "x" ? "exclusive" : "shared")],
        [t.object, (lease) => html`<bdi>${what(lease)}</bdi>`, "wide"],
        [t.user, ({ user }) => html`<${Long} text=${user} />`],
        [t.age, ({ start_utc }) => span(Date.now() - start_utc * 1000), "number"],
        [t.expires, ({ end_utc }) => time(end_utc * 1000)],
        [ACTION, (lease) => html`<button aria-label=${t.leaseTitle(lease.lease_id)} onClick=${() => setEnded(lease)}>${t.free}</button>`],
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
