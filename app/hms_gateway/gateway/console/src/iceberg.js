// What an Iceberg table was: snapshots and their names, schemas and partitioning by its metadata file, earlier files by the log.

import { html } from "./vendor/preact_htm.js";
import { bytes, count, numberIn, said, span, time } from "./format.js";
import { lastChanges, useAsked, useCall } from "./live.js";
import { Answer, Facts, Location, Long, Panel, Rows, shownName } from "./parts.js";
import { call } from "./session.js";
import { t } from "./texts.js";
import { decodeStruct } from "./tjson.js";

const CHANGES = 100;
const ENTRIES = 1000;
const METADATA = "metadata_location";
const PREVIOUS = "previous_metadata_location";
const COUNTS = [
  [t.rowsAdded, "added-records", count],
  [t.rowsDeleted, "deleted-records", count],
  [t.rowsCount, "total-records", count],
  [t.files, "total-data-files", count],
  [t.size, "total-files-size", bytes],
];

export function Iceberg({ table, db, name }) {
  const pointers = useAsked(() => pointerHistory(db, name), `${db} ${name}`);
  const history = useCall("get_iceberg_history", { db_name: db, tbl_name: name, max_entries: ENTRIES });
  const parameters = table.parameters ?? new Map();
  return html`<div class="stack">
    <${Panel} title=${t.tabs.iceberg}>
      <${Facts}
        pairs=${[
          [t.icebergPointer, html`<${Location} of=${parameters.get(METADATA)} what=${t.icebergPointer} />`],
          [t.icebergPrevious, html`<${Location} of=${parameters.get(PREVIOUS)} what=${t.icebergPrevious} />`],
          [t.icebergFormat, history.value?.format_version],
        ]}
      />
    </${Panel}>
    <${Answer} of=${history}>${(found) => html`<${History} of=${found} file=${`${shownName(db)}.${name}`} />`}</${Answer}>
    <${Panel} title=${t.icebergHistory}>
      <${Answer} of=${pointers}>
        ${(found) => html`<${Rows}
          label=${t.icebergHistory}
          rows=${found}
          none=${t.icebergNone}
          columns=${[
            [t.when, ({ at }) => time(at * 1000)],
            [t.icebergPointer, ({ pointer }) => html`<${Location} of=${pointer} what=${t.icebergPointer} />`, "wide"],
          ]}
        />`}
      </${Answer}>
    </${Panel}>
  </div>`;
}

function History({ of, file }) {
  const named = Map.groupBy(of.refs, ({ snapshot_id }) => String(snapshot_id));
  const refs = (id) => named.get(String(id)) ?? [];
  return html`<${Part} title=${t.snapshots} of=${of.snapshots}>
      <${Rows}
        label=${t.snapshots}
        file=${`${file}-snapshots`}
        rows=${of.snapshots}
        none=${t.snapshotsNone}
        columns=${[
          [t.when, ({ committed_at }) => time(Number(committed_at)), "", ({ committed_at }) => Number(committed_at)],
          [t.snapshot, ({ snapshot_id }) => html`<code>${String(snapshot_id)}</code>${refs(snapshot_id).map((ref) => html` <span class="tag"><bdi>${ref.name}</bdi></span>`)}`, "", ({ snapshot_id }) => String(snapshot_id)],
          [t.operation, ({ operation }) => operation, "", ({ operation }) => operation],
          [t.parent, ({ parent_id }) => html`<code>${String(parent_id ?? "")}</code>`, "", ({ parent_id }) => String(parent_id ?? "")],
          ...COUNTS.map(([title, key, say]) => [title, ({ summary }) => said(numberIn(summary, key), say), "number", ({ summary }) => numberIn(summary, key)]),
          [t.summary, ({ summary }) => html`<${Long} text=${summaryText(summary)} />`, "wide", ({ summary }) => summaryText(summary)],
        ]}
      />
    </${Part}>
    <${Part} title=${t.refs} of=${of.refs}>
      <${Rows}
        label=${t.refs}
        file=${`${file}-refs`}
        rows=${of.refs}
        none=${t.refsNone}
        columns=${[
          [t.name, ({ name }) => html`<bdi class="name">${name}</bdi>`, "", ({ name }) => name],
          [t.kind, ({ kind }) => t.refKinds[kind] ?? kind, "", ({ kind }) => kind],
          [t.snapshot, ({ snapshot_id }) => html`<code>${String(snapshot_id)}</code>`, "", ({ snapshot_id }) => String(snapshot_id)],
          [t.kept, keptText, "wide"],
        ]}
      />
    </${Part}>
    <${Versions} title=${t.schemas} of=${of.schemas} file=${`${file}-schemas`} />
    <${Versions} title=${t.partitionSpecs} of=${of.partition_specs} file=${`${file}-partitioning`} />`;
}

/** A list of the metadata file, which may be longer than was asked for. */
function Part({ title, of, children }) {
  return html`<${Panel} title=${title} number=${of.length < ENTRIES ? of.length : undefined}>
    ${children}
    ${of.length >= ENTRIES && html`<p class="soft">${t.newest(count(ENTRIES))}</p>`}
  </${Panel}>`;
}

function Versions({ title, of, file }) {
  return html`<${Part} title=${title} of=${of}>
    <${Rows}
      label=${title}
      file=${file}
      rows=${of}
      none=""
      columns=${[
        [t.version, ({ id, is_current }) => html`${id}${is_current ? html` <span class="tag">${t.current}</span>` : ""}`, "", ({ id }) => id],
        [t.columns, ({ fields }) => html`<${Long} text=${fields.join(", ") || t.unpartitioned} />`, "wide", ({ fields }) => fields.join(", ")],
      ]}
    />
  </${Part}>`;
}

function summaryText(summary) {
  const counted = new Set(COUNTS.map(([, key]) => key));
  return [...summary].filter(([key]) => !counted.has(key)).map((pair) => pair.join("=")).join(", ");
}

function keptText({ max_ref_age_ms, min_snapshots_to_keep, max_snapshot_age_ms }) {
  return [
    said(max_ref_age_ms, (age) => t.keptRef(span(Number(age)))),
    said(min_snapshots_to_keep, (number) => t.keptSnapshots(count(number))),
    said(max_snapshot_age_ms, (age) => t.keptAge(span(Number(age)))),
  ].filter(Boolean).join(", ");
}

/** What the pointer was, by the messages of the log, the newest first. */
async function pointerHistory(db, name) {
  const changes = await lastChanges(CHANGES, { dbName: db, tableName: name });
  if (!changes.length) return [];
  const rqst = { lastEvent: Number(changes.at(-1).eventId) - 1, dbName: db, tableNames: [name] };
  const { events } = await call("get_next_notification", { rqst });
  const found = events.reverse().map(({ eventTime, message }) => ({ at: eventTime, pointer: pointerIn(message) })).filter(({ pointer }) => pointer);
  return found.filter(({ pointer }, index) => index === 0 || pointer !== found[index - 1].pointer);
}

function pointerIn(message) {
  try {
    const told = JSON.parse(message);
    return decodeStruct("Table", told.tableObjAfterJson ?? told.tableObjJson).parameters?.get(METADATA);
  } catch {
    return undefined;
  }
}
