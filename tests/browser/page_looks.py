"""Faults of a report's page as a browser draws it: missing curves, faint or overlapping text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from operator import mul

from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import Chromium

TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0
"""WCAG 2.2: text (1.4.3), and parts of figures (1.4.11)."""
GROUND = "getComputedStyle(document.body).backgroundColor"
_WHOLE = 0.97
"""Part of a figure's width that lines and gaps must fill."""

_FIGURES = """
[...document.querySelectorAll('svg.figure')].filter(svg => svg.checkVisibility()).map(svg => {
  const last = list => list[list.length - 1], find = wanted => [...svg.querySelectorAll(wanted)];
  const seen = e => e.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const drawn = find('path.line:not(.sample)').filter(e => getComputedStyle(e).stroke !== 'none');
  const names = new Set(drawn.filter(e => seen(e)).map(e => last(e.classList)));
  const across = path => [...path.getAttribute('d').matchAll(/[lh](-?[0-9.]+)/g)]
    .reduce((sum, step) => sum + +step[1], 0);
  return {id: svg.id, plot: svg.querySelector('path.axis, path.grid').getBBox().width,
    gaps: find('.gap').reduce((sum, gap) => sum + gap.getBBox().width, 0),
    lines: find('path.line:not(.sample):not(.dot)').map(e => [last(e.classList), across(e)]),
    missing: find('path.sample').map(e => last(e.classList)).filter(name => !names.has(name))};
})"""

_SIGNS = """
[...document.querySelectorAll('svg.figure path.line:not(.sample)')].map(path => {
  const style = getComputedStyle(path);
  return {figure: path.closest('svg').id, name: path.className.baseVal, stroke: style.stroke,
          sign: style.strokeDasharray};
})"""

_TEXTS = """
[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
    && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    && !['TITLE', 'title', 'desc'].includes(e.tagName)).map(e => {
  const style = getComputedStyle(e);
  return {text: e.textContent.trim().slice(0, 40),
          colour: e instanceof SVGElement ? style.fill : style.color};
})"""

_LABELS = """
[...document.querySelectorAll('svg.figure')].filter(svg => svg.checkVisibility()).map(svg => {
  const part = e => (b => [b.left, b.top, b.right, b.bottom])(e.getBoundingClientRect());
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, part(t)]);
  return {figure: svg.id, box: part(svg), texts};
})"""

_WIDE = """
[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
    && !e.closest('.skip') && !e.closest('thead')
    && e.getBoundingClientRect().right > innerWidth + 0.5)
  .map(e => e.tagName + '.' + e.className)"""


def faults(browser: Chromium) -> list[str]:
    """Faults of a page."""
    checks = (missing_curves, faint, overlapping, too_wide, alike_without_colour, inaccessible)
    wrong = [f"{check.__name__}: {fault}" for check in checks for fault in check(browser)]
    return [*wrong, *browser.complaints, *browser.requests]


def missing_curves(browser: Chromium) -> list[str]:
    """Lines that are not drawn, or are incomplete between gaps."""
    wrong = []
    for figure in browser.evaluate(_FIGURES):
        wrong += [f"{figure['id']}: {name}" for name in figure["missing"]]
        wrong += [
            f"{figure['id']}: {name} is {across} wide"
            for name, across in figure["lines"]
            if across + figure["gaps"] < _WHOLE * figure["plot"]
        ]
    return wrong


def faint(browser: Chromium) -> list[str]:
    """Texts and lines with too little contrast to the ground."""
    ground = rgb(browser.evaluate(GROUND))
    texts = [
        f"{text['text']}: {text['colour']}"
        for text in browser.evaluate(_TEXTS)
        if contrast(rgb(text["colour"]), ground) < TEXT_CONTRAST
    ]
    return texts + [
        f"{curve['name']}: {curve['stroke']}"
        for curve in browser.evaluate(_SIGNS)
        if contrast(rgb(curve["stroke"]), ground) < LINE_CONTRAST
    ]


def overlapping(browser: Chromium) -> list[str]:
    """Labels of figures that lie on each other, or leave their figure."""
    wrong = []
    for figure in browser.evaluate(_LABELS):
        left, top, right, bottom = figure["box"]
        for position, (text, (begin, high, end, low)) in enumerate(figure["texts"]):
            if min(begin - left, right - end) < -0.5 or min(high - top, bottom - low) < -2:
                wrong.append(f"{figure['figure']}: {text!r} leaves the figure")
            # Boxes are as high as the font can be: figures and letters take three fifths of them.
            wrong += [
                f"{figure['figure']}: {text!r} on {other!r}"
                for other, (left_of, above, right_of, below) in figure["texts"][position + 1 :]
                if max(begin, left_of) < min(end, right_of)
                and abs(high + low - above - below) < 0.6 * (low - high + below - above)
            ]
    return wrong


def too_wide(browser: Chromium) -> list[str]:
    """Elements that reach beyond the window, and the page if it does."""
    wide: list[str] = browser.evaluate(_WIDE)
    if browser.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wide.append("the page")
    return wide


def alike_without_colour(browser: Chromium) -> list[str]:
    """Curves of one figure that only their colour tells apart."""
    signs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for curve in browser.evaluate(_SIGNS):
        if "dot" not in curve["name"]:
            signs[curve["figure"], curve["sign"]].add(curve["name"])
    return [f"{figure}: {names}" for (figure, _), names in signs.items() if len(names) > 1]


def inaccessible(browser: Chromium) -> list[str]:
    """Violations of the rules of axe-core, with the first element of each."""
    violations = Axe().run(browser.page).response["violations"]
    return [f"{rule['id']}: {rule['nodes'][0]['html']}" for rule in violations]


def rgb(colour: str) -> list[int]:
    """Parts of ``rgb(1, 2, 3)``."""
    return [round(float(part)) for part in re.findall(r"[0-9.]+", colour)[:3]]


def contrast(one: Sequence[int], other: Sequence[int]) -> float:
    """Contrast of two colours as WCAG defines it, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Sequence[int]) -> float:
    parts = (part / 255 for part in colour)
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return float(sum(map(mul, (0.2126, 0.7152, 0.0722), linear)))
