"""How the HTML report looks, on light and on dark screens and on paper."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6575; --paper: #ffffff; --rule: #dde2ea; --tint: #eef3fb;
  --notice: #fff6e0; --bracket: #cfe0f7; --bound: #7d9cc6;
  --c0: #1f5fbf; --c1: #c2571a; --c2: #1b7f5c; --c3: #9b3fa5; --c4: #b3261e; --c5: #5f6b1d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf2; --soft: #a2adbd; --paper: #14181f; --rule: #303846;
  --tint: #1d2634; --notice: #3a3013; --bracket: #22395a; --bound: #5f82b5;
  --c0: #79aaf0; --c1: #f0a06a; --c2: #63c9a2; --c3: #d693de; --c4: #f08b84; --c5: #c3cf74; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.verdict { background: var(--tint); border-left: 4px solid var(--c0); padding: .7rem 1rem; margin: .5rem 0;
  font-weight: 600; }
.notice { background: var(--notice); border-left: 4px solid #d99a00; padding: .5rem 1rem; margin: .5rem 0; }
figure { margin: 1.5rem 0; } svg { width: 100%; height: auto; display: block; }
small, summary { color: var(--soft); } li { margin: .4rem 0; }
details { border-top: 1px solid var(--rule); padding: .6rem 0; } summary { cursor: pointer; font-weight: 600; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
td { white-space: nowrap; } td:first-child, td:last-child { white-space: normal; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
polyline { fill: none; } .grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.label { fill: var(--soft); font-size: 12px; } .axis-title { fill: var(--ink); font-size: 12.5px; font-weight: 600; }
.bracket { fill: var(--bracket); } .bound { stroke: var(--bound); stroke-dasharray: 5 4; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); }
.c3 { fill: var(--c3); } .c4 { fill: var(--c4); } .c5 { fill: var(--c5); }
.stroke { fill: none; stroke-width: 2; } .c0.stroke { stroke: var(--c0); } .c1.stroke { stroke: var(--c1); }
.c2.stroke { stroke: var(--c2); } .c3.stroke { stroke: var(--c3); } .c4.stroke { stroke: var(--c4); }
.c5.stroke { stroke: var(--c5); } .box { fill-opacity: .45; } .median { stroke: var(--ink); stroke-width: 2; }
.hidden { fill-opacity: 0; }
@media print { details > * { display: block; } main { max-width: none; } }
"""
