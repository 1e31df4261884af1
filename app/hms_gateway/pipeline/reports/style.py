"""The styles of a page."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark;
  --ground: #f6f7f9; --sheet: #ffffff; --ink: #1b2430; --quiet: #5c6b7c; --line: #dfe4ea; --track: #eef1f5;
  --plain: #3b6fb6; --good: #23824f; --note: #5c7ea8; --warning: #b26a00; --error: #c0343b; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #12161c; --sheet: #1a2029; --ink: #e4e9ef; --quiet: #93a1b1; --line: #2d3642; --track: #242c37;
  --plain: #6ea3e8; --good: #58bd87; --note: #8fabcf; --warning: #e2a13d; --error: #ef7177; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 36px 24px 48px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 4px; overflow-wrap: anywhere; }
p { margin: 4px 0 0; color: var(--quiet); overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 24px 0; }
dl div { background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; }
dl div { border-top: 3px solid var(--line); }
dl .good { border-top-color: var(--good); } dl .note { border-top-color: var(--note); }
dl .warning { border-top-color: var(--warning); } dl .error { border-top-color: var(--error); }
dd { margin: 0; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
dt { color: var(--quiet); font-size: 13px; overflow-wrap: anywhere; }
section { background: var(--sheet); border: 1px solid var(--line); border-radius: 8px; padding: 18px 20px 20px;
  margin: 16px 0; }
figure { margin: 16px 0 0; }
figcaption { font-size: 13px; font-weight: 600; color: var(--quiet); margin-bottom: 6px; }
svg { display: block; max-width: 100%; height: auto; font: inherit; }
svg text { fill: var(--ink); font-size: 12.5px; font-variant-numeric: tabular-nums; }
svg .name, svg .count { text-anchor: end; } svg .edge { text-anchor: middle; }
svg .tick { fill: var(--quiet); font-size: 11.5px; }
svg .grid { stroke: var(--line); } svg .mark { stroke: var(--warning); stroke-dasharray: 4 3; }
svg .mark-name { fill: var(--warning); } svg .track { fill: var(--track); } svg .reach { fill: transparent; }
svg g:hover .reach { fill: var(--track); } svg .bar { fill: var(--plain); }
svg .good .bar { fill: var(--good); } svg .note .bar { fill: var(--note); }
svg .warning .bar { fill: var(--warning); } svg .error .bar { fill: var(--error); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { text-align: left; color: var(--quiet); font-weight: 600; white-space: nowrap; }
th, td { padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; } tbody tr:last-child td { border-bottom: 0; }
td { overflow-wrap: anywhere; } td:first-child { overflow-wrap: break-word; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.label { border: 1px solid currentColor; border-radius: 4px; padding: 0 6px; font-size: 12px; white-space: nowrap; }
.label.plain { color: var(--quiet); } .label.good { color: var(--good); } .label.note { color: var(--note); }
.label.warning { color: var(--warning); } .label.error { color: var(--error); }
footer { margin-top: 20px; font-size: 13px; }
@media print { body { background: #ffffff; } section, dl div { break-inside: avoid; } }
"""
