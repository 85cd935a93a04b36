"""Style sheet of the page: one set of variables for light, dark and paper.

Each role has a colour that is at least 3 : 1 against the ground in both schemes (text: 4.5 : 1) and
a dash or a pattern of its own, so that colour is never the only sign. Hues are apart for the common
kinds of colour blindness (after Okabe and Ito).
"""

from __future__ import annotations

from collections.abc import Mapping

from sharectl.report.svg import Markup, element, joined

LAYERS = 6
"""Layers of a stack that have a pattern of their own."""

_LIGHT = {
    "ground": "#ffffff",
    "card": "#f6f8fa",
    "ink": "#1a2027",
    "muted": "#55606c",
    "rule": "#d5dbe1",
    "grid": "#e4e8ec",
    "gap": "#aab4be",
    "accent": "#0a58a8",
    "work": "#0a58a8",
    "power": "#0a58a8",
    "pledge": "#1a2027",
    "error": "#b23c08",
    "output": "#5b3fb0",
    "idle": "#00705c",
    "targets": "#8a4b00",
    "held-back": "#8a4b00",
    "helped": "#00705c",
    "duration": "#0a58a8",
    "over": "#b23c08",
    "under": "#0a58a8",
    "layer0": "#2f7fc4",
    "layer1": "#c87408",
    "layer2": "#3f9d7a",
    "layer3": "#b65fa0",
    "layer4": "#7d7a1c",
    "layer5": "#66717d",
}
_DARK = {
    "ground": "#10151b",
    "card": "#181f27",
    "ink": "#e9eef3",
    "muted": "#a7b2be",
    "rule": "#343e49",
    "grid": "#262f38",
    "gap": "#5a6673",
    "accent": "#7cbcff",
    "work": "#6cb4ff",
    "power": "#6cb4ff",
    "pledge": "#e9eef3",
    "error": "#ff9a66",
    "output": "#c0a6ff",
    "idle": "#4fd0b4",
    "targets": "#f0b45c",
    "held-back": "#f0b45c",
    "helped": "#4fd0b4",
    "duration": "#6cb4ff",
    "over": "#ff9a66",
    "under": "#7cbcff",
    "layer0": "#4c97da",
    "layer1": "#d88a2b",
    "layer2": "#46a884",
    "layer3": "#c274ae",
    "layer4": "#a5a13a",
    "layer5": "#8996a3",
}
_DASHES = {
    "work": "none",
    "power": "none",
    "pledge": "7 4",
    "error": "none",
    "output": "2 3",
    "idle": "none",
    "targets": "none",
    "held-back": "none",
    "helped": "7 4",
    "duration": "none",
}

_GROUP_DASHES = ("none", "7 4", "2 3", "12 4", "9 3 2 3", "4 4")
"""Of the lines of several groups in one figure, which have the colours of layers."""

_HATCHES = (
    "",
    "M-1 1L1-1M0 6L6 0M5 7L7 5",
    "M1.5 1.5h.01M4.5 4.5h.01",
    "M0 3h6",
    "M3 0v6",
    "M0 3h6M3 0v6",
)
"""What lies on each layer's colour, on tiles of 6 by 6."""


def style_sheet() -> str:
    """All of the page's style."""
    lines = [_variables(":root", _LIGHT)]
    lines.append(f"@media (prefers-color-scheme: dark){{{_variables(':root', _DARK)}}}")
    lines.append(f"@media print{{{_variables(':root', _LIGHT)}}}")
    lines += [
        f".line.{role}{{stroke:var(--{role});stroke-dasharray:{dash}}}.band.{role}{{fill:var(--{role})}}"
        for role, dash in _DASHES.items()
    ]
    lines += [
        f".line.group{number}{{stroke:var(--layer{number});stroke-dasharray:{dash}}}"
        for number, dash in enumerate(_GROUP_DASHES)
    ]
    lines += [
        f".area.layer{layer},.swatch.layer{layer}{{fill:url(#p{layer});stroke:var(--layer{layer})}}"
        f".tile{layer}{{fill:var(--layer{layer})}}"
        for layer in range(LAYERS)
    ]
    return "\n".join([*lines, _RULES])


def patterns() -> Markup:
    """An ``svg`` without size whose patterns all figures of the page use."""
    tiles = [
        element(
            "pattern",
            element("rect", class_=f"tile tile{layer}", width=6, height=6),
            element("path", class_="hatch", d=hatch) if hatch else "",
            id=f"p{layer}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for layer, hatch in enumerate(_HATCHES)
    ]
    gap = element(
        "pattern",
        element("path", class_="gap-hatch", d="M-1 7L7-1M-1 1L1-1M5 7L7 5"),
        id="pgap",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    return element(
        "svg",
        element("defs", joined([*tiles, gap])),
        width=0,
        height=0,
        class_="patterns",
        aria_hidden="true",
        focusable="false",
    )


def _variables(selector: str, values: Mapping[str, str]) -> str:
    return f"{selector}{{{';'.join(f'--{name}:{value}' for name, value in values.items())}}}"


_RULES = """\
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main,header,footer{max-width:1040px;margin:0 auto;padding:0 16px}
header{padding-top:40px}
h1{font-size:28px;line-height:1.2;margin:0 0 8px;letter-spacing:-.01em}
h2{font-size:21px;line-height:1.3;margin:0 0 4px;overflow-wrap:anywhere}
h3{font-size:16px;margin:0;font-weight:600}
p{margin:0 0 12px;max-width:70ch}
.lead-in{font-size:17px;margin-bottom:4px}
.small,footer{font-size:14px;color:var(--muted)}
a{color:var(--accent)}
a:focus-visible,summary:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:2px}
.skip{position:absolute;left:16px;top:-60px;background:var(--ground);padding:8px}
.skip:focus{top:8px}
section{margin:56px 0 0}
.facts{display:flex;flex-wrap:wrap;gap:12px 32px;margin:20px 0 0;padding:0}
.facts div{min-width:96px}
.facts dt{font-size:13px;color:var(--muted)}
.facts dd{margin:0;font-size:19px;font-variant-numeric:tabular-nums}
.note{border-left:4px solid var(--over);padding:4px 12px;margin:16px 0 0;max-width:78ch;overflow-wrap:anywhere}
.after{margin-top:12px}
.after>a{float:right;font-size:14px;padding:6px 0}
.scroll{clear:both}
.numbers th{white-space:nowrap}
.figures{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:28px 32px;margin-top:20px}
figure{margin:0;min-width:0}
figcaption{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:0 12px;margin-bottom:4px}
figcaption .says{font-size:14px;color:var(--muted);font-variant-numeric:tabular-nums}
svg.figure{display:block;width:100%;height:auto;overflow:hidden}
svg.patterns{position:absolute}
svg text{font-size:12px;fill:var(--ink);font-variant-numeric:tabular-nums}
svg .tick,svg .unit{fill:var(--muted)}
.grid,.axis,.line,.cross,.lead,.hatch,.gap-hatch{fill:none}
.grid{stroke:var(--grid);stroke-width:1}
.axis{stroke:var(--muted);stroke-width:1}
.line{stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.line.pledge,.line.output,.line.helped{stroke-linecap:butt}
.line.dot{stroke-width:6;stroke-linecap:round;stroke-dasharray:none}
.line.dot.pledge,.line.dot.output,.line.dot.helped{stroke-linecap:square;stroke-width:5}
.band{opacity:.25}
.area{stroke-width:1;stroke-linejoin:round}
.swatch{stroke-width:1}
.lead{stroke:var(--muted);stroke-width:1}
.hatch{stroke:var(--ground);stroke-width:1.2;stroke-linecap:round}
.gap{fill:url(#pgap)}
.gap-hatch{stroke:var(--gap);stroke-width:1}
.between{fill:var(--grid)}
.cross{stroke:var(--over);stroke-width:1.6}
.bar-ground{fill:var(--grid)}
.bar{fill:var(--work)}
.bar-mark{stroke:var(--ink);stroke-width:2;fill:none}
table+table{margin-top:36px}
table+h3{margin-top:32px}
.over td{border-bottom:0}
.over th{text-align:center;border-bottom:0;padding-bottom:0}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--muted);padding:0 0 8px}
th,td{padding:7px 10px 7px 0;text-align:right;border-bottom:1px solid var(--rule);vertical-align:baseline}
td{white-space:nowrap}
th{font-weight:600}
thead th{vertical-align:bottom;font-size:13px;color:var(--muted)}
tbody th,th:first-child{text-align:left;overflow-wrap:anywhere;min-width:7em}
td small,th small{color:var(--muted);font-weight:400;font-size:12px}
td svg{width:92px;height:12px;vertical-align:middle}
td svg+span{display:inline-block;min-width:5em;text-align:right}
.when{white-space:nowrap}
summary{cursor:pointer;font-size:14px;color:var(--accent);padding:6px 0;width:fit-content}
details .scroll{overflow-x:auto}
footer{margin-top:64px;padding-bottom:48px;border-top:1px solid var(--rule);padding-top:16px}
.period{font-weight:600}
@media screen and (max-width:760px){
.figures{grid-template-columns:minmax(0,1fr)}
header{padding-top:24px}
section{margin-top:40px}
svg text{font-size:13px}
table.cards,table.cards tbody,table.cards tr,table.cards th,table.cards td,table.cards caption{display:block}
table.cards thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table.cards tr{padding:12px 0;border-bottom:1px solid var(--rule)}
table.cards th,table.cards td{border:0;padding:2px 0}
table.cards td{display:flex;justify-content:space-between;gap:16px}
table.cards td::before{content:attr(data-label);color:var(--muted);text-align:left}
}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
@media print{
@page{margin:14mm}
html{color-scheme:light}
body{font-size:10pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}
main,header,footer{max-width:none;padding:0}
header{padding-top:0}
h1{font-size:18pt}
h2{font-size:13pt}
h3{font-size:10pt}
p,.lead-in{font-size:10pt}
table,thead th{font-size:8.5pt}
th,td{padding-right:4px}
.after,.skip{display:none}
section{margin-top:9mm}
.figures{grid-template-columns:repeat(2,minmax(0,1fr));gap:4mm 7mm;margin-top:3mm}
figure,tr{break-inside:avoid}
h2,h3,figcaption,caption{break-after:avoid}
section.group{break-inside:avoid}
svg text{font-size:14px}
figcaption .says{font-size:8.5pt}
a{color:inherit;text-decoration:none}
}
"""
