// The partitions of a table, a page at a time by ranges of names, so that a million of them cost as much as a hundred.

import { html, useEffect, useRef, useState } from "./vendor/preact_htm.js";
import { DropPartitions } from "./changing.js";
import { bytes, count, formatOf, numberIn, partitionValues, said, span, time } from "./format.js";
import { useAsked, useCall } from "./live.js";
import { Answer, link, Location, Long, Panel, partitionLink, Rows, sentence, shownName } from "./parts.js";
import { drawBars, plotter, withoutPlots } from "./plots.js";
import { call } from "./session.js";
import { t } from "./texts.js";

const PAGE = 100;
const GROUPS = 5000;
const AT = /at character (\d+)/;
const PLAIN_KEY = /^(?!(?:and|or|not|like|between|in|struct|const)$)[a-z_]\w*$/i;

function partitionsLink(db, name, query) {
  const set = Object.entries(query).filter(([, value]) => value);
  return `${link("t", db, name, "partitions")}${set.length ? `?${new URLSearchParams(set)}` : ""}`;
}

export function Partitions({ table, db, name, query }) {
  const filter = query.get("filter") ?? "";
  const after = query.get("after") ?? "";
  const isDescending = query.get("last") !== "no";
  // What is typed is HiveQL; the calls take the metastore's own grammar.
  const translated = useAsked(async () => filter && (await call("translate_condition", { db_name: db, tbl_name: name, condition: filter })), JSON.stringify([db, name, filter]));
  const asksFor = translated.value;
  const about = JSON.stringify([db, name, asksFor, after, isDescending]);
  const listed = useAsked(async () => (asksFor === undefined ? undefined : page(db, name, asksFor, after, isDescending)), about);
  const counted = useAsked(async () => (asksFor === undefined ? undefined : call("get_num_partitions_by_filter", { db_name: db, tbl_name: name, filter: asksFor })), `${db} ${name} ${asksFor}`);
  const error = translated.error ?? listed.error;
  const go = (changes) => {
    location.hash = partitionsLink(db, name, { filter, after, last: isDescending ? "" : "no", ...changes });
  };
  const keys = table.partitionKeys;
  return html`<${FilterBox} key=${filter} filter=${filter} keys=${keys} error=${error} onFilter=${(text) => go({ filter: text, after: "" })} />
    <${Panel}
      title=${t.tabs.partitions}
      aside=${html`<span role="status" class="soft">${counted.value === undefined ? "" : t.partitionsOf(count(counted.value))}</span>
        <label class="choice"><input type="checkbox" checked=${isDescending} onChange=${() => go({ last: isDescending ? "no" : "", after: "" })} /> ${t.newestFirst}</label>`}
    >
      ${
        error && isOfFilter(error)
          ? ""
          : html`<${Answer} of=${translated.error ? translated : listed}>
              ${(found) => html`<${Listed} db=${db} name=${name} table=${table} found=${found} onDone=${() => (listed.reload(), counted.reload())} />
                ${(after || found.hasMore) && html`<p class="buttons">
                  <button disabled=${!after} onClick=${() => go({ after: "" })}>${t.first}</button>
                  <button disabled=${!found.hasMore} onClick=${() => go({ after: found.partitions.at(-1).name })}>${t.next}</button>
                </p>`}`}
            </${Answer}>`
      }
    </${Panel}>
    ${asksFor !== undefined && html`<${Heat} key=${filter} db=${db} name=${name} keys=${keys} filter=${asksFor} isDescending=${isDescending} onFilter=${(text) => go({ filter: text, after: "" })} />`}`;
}

async function page(db, name, filter, after, isDescending) {
  const names = await call("list_partition_names", {
    db_name: db,
    tbl_name: name,
    filter,
    after,
    descending: isDescending,
    max_names: PAGE + 1,
  });
  const shown = names.slice(0, PAGE);
  if (!shown.length) return { partitions: [], hasMore: false };
  const answer = await call("get_partitions_by_names_req", {
    req: { db_name: db, tbl_name: name, names: shown, skipColumnSchemaForPartition: true },
  });
  const known = new Map(answer.partitions.map((each) => [JSON.stringify(each.values), each]));
  const partitions = shown.map((each) => ({ name: each, ...known.get(JSON.stringify(partitionValues(each).map(([, value]) => value))) }));
  return { partitions, hasMore: names.length > PAGE };
}

function isOfFilter(error) {
  return error.name === "MetaException";
}

/** Where the filter is wrong: the place in it, null where the answer names none. */
function placeOf(error) {
  const found = AT.exec(error.message);
  return found ? Number(found[1]) : null;
}

function FilterBox({ filter, keys, error, onFilter }) {
  const [text, setText] = useState(filter);
  const field = useRef(null);
  const isWrong = error && isOfFilter(error);
  const place = isWrong ? placeOf(error) : null;
  useEffect(() => {
    if (place === null || !field.current) return;
    field.current.focus();
    field.current.setSelectionRange(place, Math.min(place + 1, filter.length));
  }, [error]);
  return html`<form
    class="filter"
    onSubmit=${(event) => {
      event.preventDefault();
      onFilter(text.trim());
    }}
  >
    <label for="filter">${t.filter}</label>
    <input
      id="filter"
      ref=${field}
      spellcheck=${false}
      autocomplete="off"
      value=${text}
      placeholder=${t.filterHint(keys[0].name, keys.at(-1).name)}
      aria-invalid=${isWrong ? "true" : undefined}
      aria-describedby=${isWrong ? "filter-problem" : undefined}
      onInput=${(event) => setText(event.target.value)}
    />
    <button class="primary">${t.filterGo}</button>
    <button type="button" disabled=${!filter} onClick=${() => onFilter("")}>${t.filterClear}</button>
    ${
      isWrong &&
      html`<div class="problem" id="filter-problem" role="alert">
        <p>${sentence(error)}</p>
        ${place !== null && html`<pre class="place">${filter.slice(0, place)}<mark>${filter.slice(place, place + 1) || "⎵"}</mark>${filter.slice(place + 1)}</pre>`}
      </div>`
    }
  </form>`;
}

function Listed({ db, name, table, found, onDone }) {
  const [chosen, setChosen] = useState(new Set());
  const [isDropping, setDropping] = useState(false);
  const { partitions } = found;
  const names = partitions.map((each) => each.name);
  const isAll = names.length > 0 && names.every((each) => chosen.has(each));
  const toggle = (each) => {
    const next = new Set(chosen);
    if (!next.delete(each)) next.add(each);
    setChosen(next);
  };
  const dropped = partitions.filter((each) => chosen.has(each.name));
  // Files of another format than the table's.
  const isOfOtherFormat = ({ sd }) => Boolean(sd) && formatOf(sd) !== formatOf(table.sd);
  return html`${
      dropped.length > 0 && html`<p><button class="danger" onClick=${() => setDropping(true)}>${t.dropSelected(dropped.length)}</button></p>`
    }
    <${Rows}
      label=${t.tabs.partitions}
      file=${`${shownName(db)}.${name}-partitions`}
      rows=${partitions}
      none=${t.partitionsNone}
      keyOf=${(each) => each.name}
      columns=${[
        [html`<input type="checkbox" aria-label=${t.selectAll} checked=${isAll} onChange=${() => setChosen(new Set(isAll ? [] : names))} />`, (each) => html`<input type="checkbox" aria-label=${t.selectRow(each.name)} checked=${chosen.has(each.name)} onChange=${() => toggle(each.name)} />`],
        ...table.partitionKeys.map((key, index) => [
          key.name,
          (each) => {
            const value = html`<${Long} text=${partitionValues(each.name)[index]?.[1]} />`;
            return index ? value : html`<a href=${partitionLink(db, name, each.name)} aria-label=${t.openPartition(each.name)}>${value}</a>`;
          },
          "",
          (each) => partitionValues(each.name)[index]?.[1],
        ]),
        [t.rowsCount, (each) => said(numberIn(each.parameters, "numRows"), count), "number", (each) => numberIn(each.parameters, "numRows")],
        [t.files, (each) => said(numberIn(each.parameters, "numFiles"), count), "number", (each) => numberIn(each.parameters, "numFiles")],
        [t.size, (each) => said(numberIn(each.parameters, "totalSize"), bytes), "number", (each) => numberIn(each.parameters, "totalSize")],
        ...(partitions.some(isOfOtherFormat) ? [[t.format, (each) => html`<span class=${isOfOtherFormat(each) ? "tag warn" : ""}>${formatOf(each.sd)}</span>`, "", ({ sd }) => formatOf(sd)]] : []),
        [t.created, ({ createTime }) => html`<span class="date">${createTime ? time(createTime * 1000) : ""}</span>`, "", ({ createTime }) => createTime ? time(createTime * 1000) : ""],
        [t.location, ({ sd }) => html`<${Location} of=${sd?.location} within=${table.sd?.location} />`, "wide", ({ sd }) => sd?.location],
      ]}
    />
    <div class="pair">
      <${Histogram} title=${t.sizesTitle} values=${partitions.map((each) => numberIn(each.parameters, "totalSize")).filter((each) => each !== undefined)} text=${bytes} />
      <${Histogram} title=${t.agesTitle} values=${partitions.filter((each) => each.createTime).map((each) => Date.now() - each.createTime * 1000)} text=${span} />
    </div>
    ${
      isDropping &&
      html`<${DropPartitions}
        db=${db}
        name=${name}
        table=${table}
        partitions=${dropped}
        onClose=${() => setDropping(false)}
        onDone=${() => (setChosen(new Set()), onDone())}
      />`
    }`;
}

const BARS = 20;

/** How many values are in each of 20 steps, drawn by uPlot and said as text. */
function Histogram({ title, values, text }) {
  const place = useRef(null);
  // Bars that all have one name say nothing.
  const isDrawn = values.length > 1 && text(Math.min(...values)) !== text(Math.max(...values));
  const about = JSON.stringify([values, document.documentElement.dataset.theme]);
  useEffect(() => {
    if (!isDrawn) return undefined;
    let plot;
    let isGone = false;
    const draw = (uPlot) => {
      if (!isGone && place.current) plot = drawBars(uPlot, place.current, steps(values), text);
    };
    plotter().then(draw, withoutPlots);
    return () => {
      isGone = true;
      plot?.destroy();
    };
  }, [about]);
  if (!isDrawn) return "";
  const told = steps(values).filter(([, number]) => number).map(([from, number]) => `${text(from)}: ${number}`);
  return html`<figure class="plot">
    <figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-label=${t.histogramText(title, told.join(", "))}></div>
  </figure>`;
}

/** Pairs of the beginning of each step and how many values are in it. */
function steps(values) {
  const least = values.reduce((one, other) => Math.min(one, other));
  const most = values.reduce((one, other) => Math.max(one, other));
  const width = (most - least) / BARS || 1;
  const numbers = new Array(BARS).fill(0);
  for (const value of values) numbers[Math.min(BARS - 1, Math.floor((value - least) / width))] += 1;
  return numbers.map((number, index) => [least + index * width, number]);
}

/** Partitions by their first two keys: a table of shaded cells, each a button that filters by its values. */
function Heat({ db, name, keys, filter, isDescending, onFilter }) {
  const [isWanted, setWanted] = useState(false);
  return html`<${Panel} title=${t.heat} aside=${!isWanted && html`<button onClick=${() => setWanted(true)}>${t.heatGo}</button>`}>
    ${isWanted && html`<${HeatMap} db=${db} name=${name} keys=${keys} filter=${filter} isDescending=${isDescending} onFilter=${onFilter} />`}
  </${Panel}>`;
}

const CROSSED = 60;
const DOWN = 500;

function HeatMap({ db, name, keys, filter, isDescending, onFilter }) {
  const depth = Math.min(keys.length, 2);
  const asked = useCall("count_partition_groups", { db_name: db, tbl_name: name, filter, keys: depth, max_groups: GROUPS + 1 });
  return html`<${Answer} of=${asked}>
    ${(found) => {
      const groups = found.slice(0, GROUPS);
      if (!groups.length) return html`<p class="none">${t.partitionsNone}</p>`;
      const rows = new Map();
      const across = new Set();
      for (const { example, partitions } of groups) {
        const [[, down], [, over] = ["", ""]] = partitionValues(example).slice(0, depth);
        if (!rows.has(down)) rows.set(down, new Map());
        rows.get(down).set(over, partitions);
        across.add(over);
      }
      const most = groups.reduce((one, { partitions }) => Math.max(one, partitions), 1);
      const titles = [...across].sort(ordered).slice(0, CROSSED);
      const filterOf = (...values) => {
        const terms = values.slice(0, depth).map((value, index) => [keyText(keys[index]), literal(keys[index], value)]);
        return terms.some(([, text]) => text === null) ? null : terms.map((term) => term.join(" = ")).join(" and ");
      };
      return html`<p class="soft">${depth === 2 ? t.heatText(keys[0].name, keys[1].name) : t.heatTextOne(keys[0].name)}</p>
        <div class="scroll heat" role="group" aria-label=${t.heat} tabindex="0">
          <table>
            ${depth === 2 && html`<thead><tr><td></td>${titles.map((over) => html`<th scope="col" title=${over}><span>${over}</span></th>`)}</tr></thead>`}
            <tbody>
              ${(isDescending ? [...rows].reverse() : [...rows]).slice(0, DOWN).map(
                ([down, cells]) => html`<tr>
                  <th scope="row" title=${down}>${down}</th>
                  ${titles.map((over) => {
                    const number = cells.get(over) ?? 0;
                    const values = depth === 2 ? `${down}, ${over}` : down;
                    const wanted = number > 0 ? filterOf(down, over) : null;
                    return html`<td>
                      ${
                        number > 0 &&
                        html`<button class="cell" style=${{ "--share": (0.15 + 0.85 * Math.sqrt(number / most)).toFixed(2) }} aria-label=${t.heatCell(values, number)} title=${t.heatCell(values, count(number))} disabled=${wanted === null} onClick=${() => onFilter(wanted)}></button>`
                      }
                    </td>`;
                  })}
                </tr>`,
              )}
            </tbody>
          </table>
        </div>
        ${rows.size > DOWN && html`<p class="soft">${t.heatCut(count(DOWN), count(rows.size), keys[0].name)}</p>`}
        ${across.size > CROSSED && html`<p class="soft">${t.heatCut(count(CROSSED), count(across.size), keys[1].name)}</p>`}
        ${found.length > GROUPS && html`<p class="soft">${t.heatMore(count(GROUPS))}</p>`}`;
    }}
  </${Answer}>`;
}

function ordered(one, other) {
  const [first, second] = [Number(one), Number(other)];
  if (!Number.isNaN(first) && !Number.isNaN(second)) return first - second;
  return one < other ? -1 : 1;
}

/** The key as a filter names it, between back quotes where it could be taken for a word of the grammar. */
function keyText({ name }) {
  return PLAIN_KEY.test(name) ? name : `\`${name}\``;
}

/** The value as HiveQL writes it; null for one that no filter of a metastore can hold: both quotes, or a backslash at its end. */
function literal(key, value) {
  if (/^(tinyint|smallint|int|bigint)$/.test(key.type) && /^-?\d+$/.test(value)) return value;
  if (!['"', "'"].some((quote) => new RegExp(`^(?:[^${quote}\\\\]|\\\\.)*$`, "s").test(value))) return null;
  return `'${value.replace(/['\\]/g, "\\$&")}'`;
}
