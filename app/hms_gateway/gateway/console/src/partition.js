// One partition: its files, parameters and statistics, and where it differs from its table.

import { html, useState } from "./vendor/preact_htm.js";
import { DropPartitions } from "./changing.js";
import { bytes, count, formatOf, numberIn, partitionValues, said, time } from "./format.js";
import { useAsked, useCall } from "./live.js";
import { Answer, Copy, Facts, link, Location, Long, Panel, Parameters, Rows, shownName, tableLink } from "./parts.js";
import { call } from "./session.js";
import { ColumnStatistics } from "./statistics.js";
import { t } from "./texts.js";

const COLUMNS_ASKED = 2000;

export function PartitionPage({ names: [db, table, name] }) {
  const asked = useAsked(() => both(db, table, name), `${db} ${table} ${name}`);
  const [isDropping, setDropping] = useState(false);
  const crumbs = html`<p class="crumbs"><a href=${link("d", db)}><bdi>${shownName(db)}</bdi></a> · <a href=${tableLink(db, table, "partitions")}><bdi>${table}</bdi></a> · ${t.partition}</p>`;
  const title = html`<h1><bdi>${name}</bdi> <${Copy} text=${name} what=${t.name} /></h1>`;
  if (asked.error?.name === "NoSuchObjectException") return html`${crumbs}${title}<p class="none">${t.notFound(`${shownName(db)}.${table} / ${name}`)}</p>`;
  return html`${crumbs}${title}
    <${Answer} of=${asked}>
      ${({ partition, of }) => html`<div class="actions"><button onClick=${() => setDropping(true)}>${t.drop}</button></div>
        <${PartitionFacts} partition=${partition} of=${of} name=${name} />
        <div class="stack">
          <div class="grid">
            <${Panel} title=${t.tabs.storage}><${PartitionStorage} sd=${partition.sd ?? {}} of=${of.sd ?? {}} /></${Panel}>
            <${Panel} title=${t.parameters} number=${partition.parameters?.size}><${Parameters} of=${partition.parameters} /></${Panel}>
          </div>
          <${OtherColumns} cols=${partition.sd?.cols ?? []} of=${of.sd?.cols ?? []} />
          <${PartitionStatistics} db=${db} table=${table} name=${name} partition=${partition} of=${of} />
        </div>
        ${isDropping && html`<${DropPartitions} db=${db} name=${table} table=${of} partitions=${[{ ...partition, name }]} onClose=${() => setDropping(false)} onDone=${() => (location.hash = tableLink(db, table, "partitions"))} />`}`}
    </${Answer}>`;
}

async function both(db, table, name) {
  const [partition, of] = await Promise.all([
    call("get_partition_by_name", { db_name: db, tbl_name: table, part_name: name }),
    call("get_table", { dbname: db, tbl_name: table }),
  ]);
  return { partition, of };
}

/** A value of the partition, with the table's beside it where they differ. */
function Against({ own, other }) {
  if (!own) return t.none;
  const shown = html`<${Long} text=${own} />`;
  if (own === other) return html`<code>${shown}</code>`;
  return html`<code class="late">${shown}</code> <span class="soft">${t.tableHas} <code>${other || t.none}</code></span>`;
}

function PartitionFacts({ partition, of, name }) {
  const { sd, parameters, createTime } = partition;
  const number = (parameter, say) => said(numberIn(parameters, parameter), say);
  const format = formatOf(sd);
  return html`<${Facts}
    pairs=${[
      ...partitionValues(name).map(([key, value]) => [key, html`<bdi>${value}</bdi>`]),
      [t.format, format && html`<span class=${format === formatOf(of.sd) ? "" : "tag warn"}>${format}</span>${format === formatOf(of.sd) ? "" : html` <span class="soft">${t.tableHas} ${formatOf(of.sd)}</span>`}`],
      [t.rowsCount, number("numRows", count)],
      [t.size, number("totalSize", bytes)],
      [t.files, number("numFiles", count)],
      [t.created, createTime ? time(createTime * 1000) : ""],
      [t.location, html`<${Location} of=${sd?.location} />`],
    ]}
  />`;
}

function PartitionStorage({ sd, of }) {
  return html`<${Facts}
    pairs=${[
      [t.inputFormat, html`<${Against} own=${sd.inputFormat} other=${of.inputFormat} />`],
      [t.outputFormat, html`<${Against} own=${sd.outputFormat} other=${of.outputFormat} />`],
      [t.serde, html`<${Against} own=${sd.serdeInfo?.serializationLib} other=${of.serdeInfo?.serializationLib} />`],
      [t.buckets, sd.numBuckets > 0 ? `${count(sd.numBuckets)}: ${(sd.bucketCols ?? []).join(", ")}` : ""],
      ...[...(sd.serdeInfo?.parameters ?? [])].map(([name, value]) => [t.serdeParameterOf(name), html`<code><${Long} text=${value} /></code>`]),
    ]}
  />`;
}

/** Columns that the partition and its table do not have alike; nothing where all are. */
function OtherColumns({ cols, of }) {
  const own = new Map(cols.map(({ name, type }) => [name, type]));
  const others = new Map(of.map(({ name, type }) => [name, type]));
  const rows = [...new Set([...own.keys(), ...others.keys()])].filter((name) => own.get(name) !== others.get(name));
  if (!cols.length || !rows.length) return "";
  return html`<${Panel} title=${t.otherColumns} number=${rows.length}>
    <${Rows}
      label=${t.otherColumns}
      rows=${rows}
      keyOf=${(name) => name}
      columns=${[
        [t.name, (name) => html`<bdi class="name">${name}</bdi>`, "", (name) => name],
        [t.inPartition, (name) => (own.has(name) ? html`<code><${Long} text=${own.get(name)} /></code>` : t.none), "", (name) => own.get(name)],
        [t.inTable, (name) => (others.has(name) ? html`<code><${Long} text=${others.get(name)} /></code>` : t.none), "", (name) => others.get(name)],
      ]}
    />
  </${Panel}>`;
}

function PartitionStatistics({ db, table, name, partition, of }) {
  const columns = (of.sd?.cols ?? []).slice(0, COLUMNS_ASKED).map((column) => column.name);
  const asked = useCall("get_partitions_statistics_req", { request: { dbName: db, tblName: table, colNames: columns, partNames: [name] } });
  return html`<${Panel} title=${t.tabs.statistics}>
    <${Answer} of=${asked}>
      ${({ partStats }) => html`<${ColumnStatistics} found=${[...(partStats?.values() ?? [])].flat()} rows=${numberIn(partition.parameters, "numRows") ?? 0} />`}
    </${Answer}>
  </${Panel}>`;
}
