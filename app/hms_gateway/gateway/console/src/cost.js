// What calls cost: the figures of /status/costs (docs/observability.md).

import { html, useEffect, useRef } from "./vendor/preact_htm.js";
import { bytes, count, percent, span, time } from "./format.js";
import { useJson } from "./live.js";
import { Answer, Facts, link, Long, Panel, Rows, tableLink } from "./parts.js";
import { drawLines, plotter, withoutPlots } from "./plots.js";
import { t } from "./texts.js";

const PATH = "status/costs";
const SHORT = 5;
const DIGITS = 3;

/** Seconds as people say them. */
function took(seconds, digits = DIGITS) {
  if (seconds === null || seconds === undefined) return t.none;
  if (seconds >= 1) return `${Number(seconds.toPrecision(digits))} s`;
  return `${Number((seconds * 1000).toPrecision(digits))} ms`;
}

function ObjectLink({ name }) {
  const at = name.indexOf(".");
  return html`<a href=${at < 0 ? link("d", name) : tableLink(name.slice(0, at), name.slice(at + 1))}><bdi>${name}</bdi></a>`;
}

function share(value) {
  return value === null || value === undefined ? t.none : percent(value);
}

function rate(value) {
  return value === null || value === undefined ? t.none : `${Number(value.toPrecision(DIGITS))}/s`;
}

function lagText(events, seconds) {
  if (events === null) return t.none;
  return events && seconds !== null ? t.lagOf(count(events), span(seconds * 1000)) : count(events);
}

/** Panels of the start page: the slowest of the last calls, and the tables that calls are about. */
export function CostPanels() {
  const costs = useJson(PATH, true);
  if (costs.value === null) return "";
  const more = html`<a href="#/cost">${t.allCosts}</a>`;
  return html`<${Panel} title=${t.slow} aside=${more}>
      <${Answer} of=${costs}>${(found) => html`<${SlowRows} calls=${slowest(found.slow_calls)} isShort />`}</${Answer}>
    </${Panel}>
    <${Panel} title=${t.hot} aside=${more}>
      <${Answer} of=${costs}>${(found) => html`<${CostRows} rows=${hottest(found.objects)} label=${t.hot} isOfObjects isShort />`}</${Answer}>
    </${Panel}>`;
}

function slowest(calls) {
  return [...calls].sort((one, other) => other.seconds - one.seconds).slice(0, SHORT);
}

function hottest(objects) {
  return [...objects].sort((one, other) => other.calls - one.calls).slice(0, SHORT);
}

export function CostPage() {
  const costs = useJson(PATH, true);
  return html`<h1>${t.costTitle}</h1>
    <${Answer} of=${costs}>${(found) => (found === null ? html`<p class="none">${t.costMissing}</p>` : html`<${Costs} of=${found} />`)}</${Answer}>`;
}

function Costs({ of }) {
  const { now, series, cache, database, queues } = of;
  const label = (name) => `${name}, ${t.lastMinutes(Math.max(1, Math.round(of.window_seconds / 60)))}`;
  return html`<p class="soft">${t.since(time(of.started * 1000), of.workers)}${of.sees_all ? "" : ` ${t.onlyYours}`}</p>
    <div class="figures">
      <${Figure} title=${t.callsNow} value=${rate(now.calls_per_second)} />
      <${Figure} title=${t.errorsNow} value=${rate(now.errors_per_second)} />
      <${Figure} title="p50 · p99" value=${[now.p50_seconds, now.p99_seconds].map((each) => took(each, 2).replace(" ", "\u00a0")).join(" · ")} />
      <${Figure} title=${t.cacheHits} value=${share(now.cache_hit_share)} />
      <${Figure} title=${t.bytesOut} value=${now.bytes_out_per_second === null ? t.none : `${bytes(now.bytes_out_per_second)}/s`} />
    </div>
    <div class="grid">
      <${Lines} title=${t.callsPerSecond} series=${series} lines=${[["calls_per_second", t.callsAll], ["cached_per_second", t.callsCached], ["errors_per_second", t.callsFailed]]} text=${(value) => String(Number(value.toPrecision(DIGITS)))} />
      <${Lines} title=${t.latency} series=${series} lines=${[["p50_seconds", "p50"], ["p99_seconds", "p99"]]} text=${took} />
    </div>
    <div class="stack">
      <${Panel} title=${t.slow}><${SlowRows} calls=${of.slow_calls} /></${Panel}>
      <${Panel} title=${label(t.byMethod)}><${CostRows} rows=${of.methods} label=${t.byMethod} /></${Panel}>
      <${Panel} title=${label(t.byUser)}><${CostRows} rows=${of.users} label=${t.byUser} /></${Panel}>
      <${Panel} title=${label(t.byObject)}><${CostRows} rows=${of.objects} label=${t.byObject} isOfObjects /></${Panel}>
      <div class="grid">
        <${Panel} title=${t.queues}>
          <${Facts} pairs=${Object.entries(queues).map(([name, value]) => [name.replaceAll("_", " "), count(value)])} />
        </${Panel}>
        <${Panel} title=${t.databaseTime}>
          <${Facts}
            pairs=${[
              [t.reads, `${count(database.reads)}, ${took(database.read_seconds)}`],
              [t.writes, `${count(database.writes)}, ${took(database.write_seconds)}`],
              [t.cacheHits, share(cache.hit_share)],
              [t.cacheSize, cache.bytes === null ? t.none : `${bytes(cache.bytes)}, ${t.replies(count(cache.replies))}`],
            ]}
          />
        </${Panel}>
        <${Panel} title=${t.replicas}>
          <${Rows}
            label=${t.replicas}
            rows=${of.replicas}
            none=${t.none}
            columns=${[
              [t.name, ({ name, pid, is_own }) => html`<bdi>${name}</bdi> <span class="soft">${pid}${is_own ? ` · ${t.thisOne}` : ""}</span>`, "wide"],
              [t.version, ({ version }) => version || t.none],
              [t.lastSeen, ({ seen }) => (seen ? span(of.time * 1000 - seen * 1000) : t.none), "number"],
              [t.seenEvent, ({ event_id }) => event_id, "number"],
              [t.lag, ({ lag_events, lag_seconds }) => lagText(lag_events, lag_seconds), "number"],
            ]}
          />
        </${Panel}>
      </div>
    </div>`;
}

function Figure({ title, value }) {
  return html`<div class="figure"><span class="soft">${title}</span><strong>${value}</strong></div>`;
}

function CostRows({ rows, label, isOfObjects, isShort }) {
  const name = (row) => (isOfObjects ? html`<${ObjectLink} name=${row.name} />` : html`<bdi>${row.name}</bdi>`);
  const columns = [
    [t.name, name, "wide", isShort ? undefined : (row) => row.name],
    [t.callsAll, ({ calls }) => count(calls), "number", isShort ? undefined : ({ calls }) => calls],
    [t.timeSum, ({ seconds }) => took(seconds), "number", isShort ? undefined : ({ seconds }) => seconds],
  ];
  if (!isShort) {
    columns.push([t.callsFailed, ({ errors }) => count(errors), "number", ({ errors }) => errors], [t.bytesOut, ({ bytes_out }) => bytes(bytes_out), "number", ({ bytes_out }) => bytes_out]);
    if (rows.some((row) => row.p99_seconds !== undefined)) {
      columns.push(...["p50", "p99"].map((name) => [name, (row) => took(row[`${name}_seconds`]), "number", (row) => row[`${name}_seconds`]]));
    }
  }
  return html`<${Rows} label=${label} rows=${rows} none=${t.costNone} find=${(row) => row.name} keyOf=${(row) => row.name} columns=${columns} />`;
}

function spansText(spans) {
  return Object.entries(spans ?? {})
    .filter(([, seconds]) => seconds)
    .map(([name, seconds]) => `${name} ${took(seconds)}`)
    .join(", ");
}

function SlowRows({ calls, isShort }) {
  const columns = [
    [t.when, (one) => html`<span title=${time(one.time * 1000)}>${span(Date.now() - one.time * 1000)}</span>`, "number"],
    [t.method, ({ method }) => method],
    [t.took, ({ seconds }) => took(seconds), "number"],
    [t.object, ({ objects }) => (objects ?? []).map((name) => html`<${ObjectLink} name=${name} /> `), isShort ? "" : "wide"],
  ];
  if (!isShort) {
    columns.push(
      [t.user, ({ user }) => html`<bdi>${user}</bdi>`],
      [t.outcome, ({ outcome }) => outcome],
      [t.spans, ({ spans }) => spansText(spans), "wide"],
      [t.requestId, ({ request_id }) => html`<code><${Long} text=${request_id} /></code>`],
    );
  }
  return html`<${Rows} label=${t.slow} rows=${calls} none=${t.slowNone} columns=${columns} />`;
}

function Lines({ title, series, lines, text }) {
  const place = useRef(null);
  const plot = useRef(null);
  const isDrawn = series.time.length > 1;
  useEffect(() => {
    if (!isDrawn) return;
    const draw = (uPlot) => {
      plot.current?.destroy();
      plot.current = place.current && drawLines(uPlot, place.current, series.time, lines.map(([field, name]) => [name, series[field]]), text);
    };
    plotter().then(draw, withoutPlots);
  }, [series, document.documentElement.dataset.theme]);
  useEffect(() => () => plot.current?.destroy(), []);
  const last = lines.map(([field, name]) => `${name} ${text(series[field].at(-1) ?? 0)}`).join(", ");
  return html`<${Panel} title=${title}>
    ${isDrawn ? html`<div ref=${place} role="img" aria-label=${`${title}: ${last}`}></div>` : html`<p class="none">${t.seriesNone}</p>`}
  </${Panel}>`;
}
