"""How the HTML report looks, on light and on dark screens and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6575; --paper: #ffffff; --rule: #dde2ea; --tint: #eef3fb;
  --notice: #fff6e0; --bracket: #cfe0f7; --bound: #7d9cc6;
  --good: #1b7f5c; --fair: #a86400; --bad: #b3261e; --unknown: #5b6575;
  --c0: #1f5fbf; --c1: #c2571a; --c2: #1b7f5c; --c3: #9b3fa5; --c4: #b3261e; --c5: #5f6b1d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf2; --soft: #a2adbd; --paper: #14181f; --rule: #303846;
  --tint: #1d2634; --notice: #3a3013; --bracket: #22395a; --bound: #5f82b5;
  --good: #63c9a2; --fair: #f0b45a; --bad: #f08b84; --unknown: #a2adbd;
  --c0: #79aaf0; --c1: #f0a06a; --c2: #63c9a2; --c3: #d693de; --c4: #f08b84; --c5: #c3cf74; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.title { color: var(--soft); margin: 0; } .facts { color: var(--soft); font-size: .9rem; margin: .2rem 0 1.2rem; }
.headline { font-size: 1.7rem; line-height: 1.25; margin: .2rem 0; border-left: 6px solid; padding-left: .8rem; }
.good { border-color: var(--good); } .fair { border-color: var(--fair); } .bad { border-color: var(--bad); }
.unknown { border-color: var(--unknown); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem; margin: 1rem 0; }
.tile { background: var(--tint); border-top: 4px solid; padding: .6rem .8rem; }
.tile.good { border-color: var(--good); } .tile.fair { border-color: var(--fair); }
.tile.bad { border-color: var(--bad); } .tile.unknown { border-color: var(--unknown); }
.tile b { display: block; font-size: 1.3rem; line-height: 1.2; } .tile span { color: var(--soft); font-size: .82rem; }
.do { padding-left: 1.2rem; } code { background: var(--tint); padding: .15rem .4rem; user-select: all;
  overflow-wrap: anywhere; }
.notice { background: var(--notice); border-left: 4px solid #d99a00; padding: .5rem 1rem; margin: .5rem 0; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; } .narrow { display: none; }
svg { width: 100%; height: auto; display: block; overflow: visible; }
small, summary { color: var(--soft); } li { margin: .4rem 0; }
details { border-top: 1px solid var(--rule); padding: .6rem 0; } summary { cursor: pointer; font-weight: 600; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
td { white-space: nowrap; } td:first-child, td:last-child { white-space: normal; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
polyline { fill: none; } .grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.label { fill: var(--soft); font-size: 12px; } .axis-title { fill: var(--ink); font-size: 12.5px; font-weight: 600; }
.bounds { fill: var(--bracket); } .bound { stroke: var(--bound); stroke-dasharray: 5 4; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); }
.c3 { fill: var(--c3); } .c4 { fill: var(--c4); } .c5 { fill: var(--c5); }
.stroke { fill: none; stroke-width: 2; } .c0.stroke { stroke: var(--c0); } .c1.stroke { stroke: var(--c1); }
.c2.stroke { stroke: var(--c2); } .c3.stroke { stroke: var(--c3); } .c4.stroke { stroke: var(--c4); }
.c5.stroke { stroke: var(--c5); } .box { fill-opacity: .45; } .median { stroke: var(--ink); stroke-width: 2; }
.hidden { fill-opacity: 0; } .dashed { stroke-dasharray: 5 4; }
@media (max-width: 560px) { main { padding: 1rem .8rem 3rem; } .headline { font-size: 1.3rem; }
  figure .wide-plot { display: none; } figure .narrow { display: block; }
  table, thead, tbody, tr, td { display: block; } thead { display: none; }
  tr { border-bottom: 1px solid var(--rule); padding: .5rem 0; }
  td { border: 0; padding: .1rem 0; white-space: normal; display: grid; grid-template-columns: 8.5rem 1fr; gap: .6rem; }
  td::before { content: attr(data-label); color: var(--soft); } }
@media print { details > * { display: block; } main { max-width: none; } }
"""
