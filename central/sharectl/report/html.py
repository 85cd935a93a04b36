"""An HTML page that stands alone: style within it, nothing loaded, no script, and a policy that forbids both."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from sharectl.report.html_style import patterns, style_sheet
from sharectl.report.svg import Markup, element, joined

GENERATOR = "sharectl report"
"""What the page says that it was made by, near its begin."""


def page(title: str, *body: str) -> str:
    """A whole document.

    Its Content-Security-Policy lets in the one style sheet that is in it, by its hash, and nothing else: text that got past the
    escaping could neither run, nor load, nor restyle.
    """
    style = f"\n{style_sheet()}"
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="generator", content=GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("meta", name_="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', patterns(), joined(body)), lang='en')}\n"
