// Plots by uPlot, which is asked for with the first of them.

const WIDTH = 300;
const HEIGHT = 140;
const LINES_HEIGHT = 200;

/** A colour of the page as it is now, light or dark. */
function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const CLOCK = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });

function clock(seconds) {
  return CLOCK.format(new Date(seconds * 1000));
}

let loading;
let failures = 0;

/** A promise of uPlot, with its style. Browsers remember a script that did not come, so it is asked for by another name then. */
export function plotter() {
  loading ??= Promise.all([import(failures ? `./vendor/uplot.js?${failures}` : "./vendor/uplot.js"), style("vendor/uplot.css")]).then(
    ([{ default: uPlot }]) => uPlot,
    (error) => {
      loading = undefined;
      failures += 1;
      throw error;
    },
  );
  return loading;
}

/** What is drawn is said as text, too; that the gateway is away, the page says. */
export function withoutPlots() {}

function style(href) {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  document.head.append(link);
  return new Promise((go, fail) => Object.assign(link, { onload: go, onerror: fail }));
}

/** Lines over seconds since 1970; each is a name and its values. The first is filled. */
export function drawLines(uPlot, place, times, lines, text) {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const colours = ["--accent", "--soft", "--bad"].map(colour);
  const series = lines.map(([label], index) => ({
    label,
    stroke: colours[index],
    width: 2,
    points: { show: false },
  }));
  return new uPlot(
    {
      width: place.clientWidth || WIDTH,
      height: LINES_HEIGHT,
      cursor: { y: false },
      legend: { live: false },
      axes: [{ ...axis, values: (_plot, values) => values.map(clock), space: 80 }, { ...axis, size: 64, values: (_plot, values) => values.map((value) => text(value)) }],
      scales: { y: { range: (_plot, _least, most) => [0, most || 1] } },
      series: [{}, ...series],
    },
    [times, ...lines.map(([, values]) => values)],
    place,
  );
}

/** Bars of [value, number] pairs with even steps; `text` says a value. */
export function drawBars(uPlot, place, pairs, text) {
  const data = [pairs.map(([value]) => value), pairs.map(([, number]) => number)];
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return new uPlot(
    {
      width: place.clientWidth || WIDTH,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_plot, values) => values.map((value) => text(value)), space: 90 },
        { ...axis, size: 36, values: (_plot, values) => values.map((value) => (Number.isInteger(value) ? value : "")) },
      ],
      series: [{}, { fill: colour("--accent"), points: { show: false }, stroke: colour("--accent"), paths: uPlot.paths.bars({ size: [0.9], align: 1 }) }],
    },
    data,
    place,
  );
}
