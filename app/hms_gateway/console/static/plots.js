// Plots by uPlot, a classic script of the page.

const HEIGHT = 140;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Bars of [value, number] pairs with even steps; `text` says a value. */
export function drawBars(place, pairs, text) {
  const { uPlot } = window;
  const data = [pairs.map(([value]) => value), pairs.map(([, number]) => number)];
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return new uPlot(
    {
      width: place.clientWidth || 300,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false } },
      axes: [
        { ...axis, values: (_plot, values) => values.map(text), space: 90 },
        { ...axis, size: 36, values: (_plot, values) => values.map((value) => (Number.isInteger(value) ? value : "")) },
      ],
      series: [{}, { fill: colour("--accent"), points: { show: false }, stroke: colour("--accent"), paths: uPlot.paths.bars({ size: [0.9], align: 1 }) }],
    },
    data,
    place,
  );
}
