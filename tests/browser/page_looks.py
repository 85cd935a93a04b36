"""Faults of a report's page as a browser draws it: missing curves, faint or overlapping text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from PIL import Image

from tests.browser.chromium import Chromium

TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0
"""WCAG 2.2: text (1.4.3), and parts of figures (1.4.11)."""
NO_COLOUR = (-999, -999, -999)
"""For ``none``: no pixel has it."""
_REACH = 3
_NEAR = 0.35
"""Pixels around a place, and the part of the ground that may be mixed with a colour."""
_SAMPLES = 40
_WHOLE = 0.97
"""Part of a figure's width that lines and gaps must fill."""

_CURVES = """
[...document.querySelectorAll('svg.figure path.line:not(.sample)')].map(path => {
  const length = path.getTotalLength(), matrix = path.getScreenCTM(), places = [];
  for (let k = 0; k <= count; k++) {
    const at = path.getPointAtLength(length * k / count).matrixTransform(matrix);
    places.push([at.x + scrollX, at.y + scrollY]);
  }
  const style = getComputedStyle(path);
  const steps = [...path.getAttribute('d').matchAll(/[lh](-?[0-9.]+)/g)];
  return {figure: path.closest('svg').id, name: path.className.baseVal, places,
          across: steps.reduce((sum, step) => sum + +step[1], 0),
          stroke: style.stroke, dash: style.strokeDasharray};
})"""

_EXTENTS = """
Object.fromEntries([...document.querySelectorAll('svg.figure')].map(svg => {
  const last = list => list[list.length - 1];
  const of = wanted => [...svg.querySelectorAll(wanted)].map(e => last(e.classList));
  const drawn = new Set([...of('path.line:not(.sample)'), ...of('path.area')]);
  const gaps = [...svg.querySelectorAll('.gap')];
  return [svg.id, {plot: svg.querySelector('path.axis, path.grid').getBBox().width,
    gaps: gaps.reduce((sum, gap) => sum + gap.getBBox().width, 0),
    missing: [...of('path.sample'), ...of('rect.swatch')].filter(name => !drawn.has(name))}];
}))"""

_AREAS = """
[...document.querySelectorAll('svg.figure path.area')].map(path => {
  const b = path.getBoundingClientRect(), style = getComputedStyle(path);
  return {figure: path.closest('svg').id, name: path.className.baseVal,
          fill: style.fill, stroke: style.stroke,
          box: [b.left + scrollX, b.top + scrollY, b.right + scrollX, b.bottom + scrollY]};
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
[...document.querySelectorAll('svg.figure')].map(svg => {
  const part = e => (b => [b.left, b.top, b.right, b.bottom])(e.getBoundingClientRect());
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, part(t)]);
  return {figure: svg.id, box: part(svg), texts};
})"""

_WIDE = """
[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()
    && !e.closest('.scroll') && !e.closest('.skip') && !e.closest('thead')
    && e.getBoundingClientRect().right > innerWidth + 0.5)
  .map(e => e.tagName + '.' + e.className)"""

_BAR_BEGINS = """
[...document.querySelectorAll('table.summary td svg')].map(e => e.getBoundingClientRect().left)"""

_AXES = """
(svg => {
  const ticks = [...svg.querySelectorAll('text.tick[text-anchor=end]')];
  const line = svg.querySelector('path.line.' + name);
  return {ticks: ticks.map(t => [t.textContent, +t.getAttribute('y') - 4]),
          end: line.getPointAtLength(line.getTotalLength()).y};
})(document.getElementById(figure))"""


@dataclass(frozen=True)
class Picture:
    """A screenshot of a whole page."""

    image: Image.Image

    def has(
        self, place: Iterable[float], colour: tuple[int, int, int], reach: int = _REACH
    ) -> bool:
        """True if a pixel near a place has about that colour, mixed with the ground."""
        x, y = (round(part) for part in place)
        near = _NEAR * _difference(self.at(0, 0), colour)
        return any(
            _difference(self.at(x + across, y + down), colour) <= near
            for across in range(-reach, reach + 1)
            for down in range(-reach, reach + 1)
        )

    def at(self, x: int, y: int) -> tuple[int, ...]:
        """Red, green and blue."""
        inside = min(max(x, 0), self.image.width - 1), min(max(y, 0), self.image.height - 1)
        pixel = self.image.getpixel(inside)
        assert isinstance(pixel, tuple)
        return pixel[:3]


def picture(browser: Chromium) -> Picture:
    """Screenshot of the page."""
    return Picture(Image.open(io.BytesIO(browser.screenshot())).convert("RGB"))


def missing_curves(browser: Chromium) -> list[str]:
    """Lines and layers that are incomplete between gaps, or have few pixels of their colour."""
    seen = picture(browser)
    extents = browser.evaluate(_EXTENTS)
    wrong = [
        f"{figure}: {extent['missing']}" for figure, extent in extents.items() if extent["missing"]
    ]
    for curve in browser.evaluate(_CURVES, {"count": _SAMPLES}):
        hits = sum(seen.has(place, rgb(curve["stroke"])) for place in curve["places"])
        # Between two dashes there is nothing.
        least = 0.9 if curve["dash"] == "none" else 0.5
        extent = extents[curve["figure"]]
        short = (
            "dot" not in curve["name"]
            and curve["across"] + extent["gaps"] < _WHOLE * extent["plot"]
        )
        if short or hits < least * len(curve["places"]):
            wrong.append(
                f"{curve['figure']} {curve['name']}: {hits} of {len(curve['places'])} places, "
                f"{curve['across']} wide"
            )
    for area in browser.evaluate(_AREAS):
        left, top, right, bottom = area["box"]
        middle = ((left + right) / 2, (top + bottom) / 2)
        if not area["fill"].startswith("url(") or not seen.has(
            middle, rgb(area["stroke"]), round((bottom - top) / 2) + 4
        ):
            wrong.append(f"{area['figure']} {area['name']}: {area['fill']}")
    return wrong


def drawn_end(browser: Chromium, figure: str, name: str) -> float:
    """Value of a line's last point, by the labels of the axis."""
    axes = browser.evaluate(_AXES, {"figure": figure, "name": name})
    ticks = [(number(label), y) for label, y in axes["ticks"]]
    (low, low_y), (high, high_y) = ticks[0], ticks[-1]
    value: float = low + (high - low) * (axes["end"] - low_y) / (high_y - low_y)
    return value


def faint(browser: Chromium) -> list[str]:
    """Texts and lines with too little contrast to the ground."""
    ground = rgb(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    texts = [
        f"{text['text']}: {text['colour']}"
        for text in browser.evaluate(_TEXTS)
        if contrast(rgb(text["colour"]), ground) < TEXT_CONTRAST
    ]
    curves = [*browser.evaluate(_CURVES, {"count": 1}), *browser.evaluate(_AREAS)]
    return texts + [
        f"{curve['name']}: {curve['stroke']}"
        for curve in curves
        if contrast(rgb(curve["stroke"]), ground) < LINE_CONTRAST
    ]


def overlapping(browser: Chromium) -> list[str]:
    """Labels of figures that lie on each other, or leave their figure."""
    wrong = []
    for figure in browser.evaluate(_LABELS):
        left, top, right, bottom = figure["box"]
        for position, (text, box) in enumerate(figure["texts"]):
            if min(box[0] - left, right - box[2]) < -0.5 or min(box[1] - top, bottom - box[3]) < -2:
                wrong.append(f"{figure['figure']}: {text!r} leaves the figure")
            # Boxes are as high as the font can be: figures and letters take the middle of them.
            wrong += [
                f"{figure['figure']}: {text!r} on {other!r}"
                for other, place in figure["texts"][position + 1 :]
                if box[0] < place[2]
                and place[0] < box[2]
                and _inner(box)[0] < _inner(place)[1]
                and _inner(place)[0] < _inner(box)[1]
            ]
    return wrong


def ragged_bars(browser: Chromium) -> list[float]:
    """Places where the bars of the summary begin, if they are several."""
    begins: list[float] = browser.evaluate(_BAR_BEGINS)
    return begins if begins and max(begins) - min(begins) > 1 else []


def too_wide(browser: Chromium) -> list[str]:
    """Elements that reach beyond the window, and the page if it does."""
    wide: list[str] = browser.evaluate(_WIDE)
    if browser.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wide.append("the page")
    return wide


def alike_without_colour(browser: Chromium) -> list[str]:
    """Curves of one figure that only their colour tells apart."""
    signs: dict[tuple[str, str], list[str]] = {}
    for curve in browser.evaluate(_CURVES, {"count": 1}):
        if "dot" not in curve["name"]:
            signs.setdefault((curve["figure"], curve["dash"]), []).append(curve["name"])
    for area in browser.evaluate(_AREAS):
        hatch = browser.evaluate(
            "(p => p.querySelector('.hatch') ? p.querySelector('.hatch').getAttribute('d') : "
            "'none')"
            "(document.querySelector(fill.match(/#[^\"')]+/)[0]))",
            {"fill": area["fill"]},
        )
        signs.setdefault((area["figure"], hatch), []).append(area["name"])
    return [f"{figure}: {names}" for (figure, _sign), names in signs.items() if len(set(names)) > 1]


def cut_figures(browser: Chromium) -> tuple[int, list[str]]:
    """Pages of paper, and figures that do not end on the page on which they begin.

    A printed page keeps its links: one to the begin and to the end of each figure tells on which
    page they are.
    """
    names: list[str] = browser.evaluate("""(() => {
      const names = [];
      document.querySelectorAll('figure').forEach((figure, k) => {
        for (const [end, place] of [['begin', 'afterbegin'], ['end', 'beforeend']])
          figure.insertAdjacentHTML(place, `<i id="at-${k}-${end}"></i>`);
        document.querySelector('footer').insertAdjacentHTML('beforeend',
          `<a href="#at-${k}-begin">.</a><a href="#at-${k}-end">.</a>`);
        names.push(figure.querySelector('h3').textContent);
      });
      return names;
    })()""")
    paper = browser.pdf()
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper))
    ends = re.finditer(rb"/(at-[0-9]+-(?:begin|end))\s*\[\s*([0-9]+) 0 R", paper)
    places = {end[1].decode(): end[2].decode() for end in ends}
    assert len(places) == 2 * len(names), (
        f"the paper tells of {len(places)} ends of {len(names)} figures"
    )
    return pages, [
        name for k, name in enumerate(names) if places[f"at-{k}-begin"] != places[f"at-{k}-end"]
    ]


def rgb(colour: str) -> tuple[int, int, int]:
    """Parts of ``rgb(1, 2, 3)``."""
    red, green, blue = (
        round(float(part)) for part in re.findall(r"[0-9.]+", colour)[:3] or NO_COLOUR
    )
    return red, green, blue


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Contrast of two colours as WCAG defines it, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def number(label: str) -> float:
    """Number of a label of an axis."""
    return float(label.replace("\u202f", "").replace("\u2212", "-"))


def _difference(one: Iterable[int], other: Iterable[int]) -> int:
    return sum(abs(a - b) for a, b in zip(one, other))


def _luminance(colour: tuple[int, int, int]) -> float:
    parts = [part / 255 for part in colour]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _inner(box: list[Any]) -> tuple[float, float]:
    fifth = (box[3] - box[1]) / 5
    return box[1] + fifth, box[3] - fifth
