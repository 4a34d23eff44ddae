"""A page and its parts as HTML. Every text of data passes `html_text`, and every chart is an image, so that
neither can do anything but be seen.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from fastndcg._version import __version__
from fastndcg.common.files import whole_file
from fastndcg.common.markup import html_table, html_text
from fastndcg.errors import InputError, MeasureError, library

if TYPE_CHECKING:
    from fastndcg.typing import Chart

CONVERTER = "vl_convert", "vl-convert-python", "report", "a report"
_WIDTH, _LABEL = 320, 110  # sizes of pictures and names in them, for telephones; wider screens enlarge them
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="fastndcg {version}"><link rel="icon" href="data:,">
<title>{title}</title><style>{style}</style></head>
<body><header><h1>{title}</h1>{subtitle}</header><main>
{sections}
</main></body></html>
"""


def paragraph(text: str) -> str:
    return f"<p>{html_text(text)}</p>"


def bullets(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{html_text(text)}</li>' for text in texts)}</ul>"


def table(caption: str, content: Any, left: int | Collection[int] = 1) -> str:
    """A result as notebooks show it, or rows of texts, the first `left` columns, or those at these places, at
    the left. On narrow screens it scrolls sideways.
    """
    html = html_table(content, left) if isinstance(content, list) else content._repr_html_()
    name = html_text(caption)
    return f'<h3>{name}</h3><div class="wide" tabindex="0" role="region" aria-label="{name}">{html}</div>'


def picture(draw: Callable[..., Chart], *arguments: Any, **options: Any) -> str:
    """A chart as an SVG image, in which no script runs and which loads nothing; or the reason why a measure
    or the data have none.
    """
    try:
        spec = draw(*arguments, **options).to_dict()
    except (InputError, MeasureError) as error:
        return paragraph(str(error))
    title = spec.pop("title")  # as text, which wraps on narrow screens
    spec["config"]["axis"]["labelLimit"] = _LABEL
    spec["width"] = _WIDTH
    svg = library(*CONVERTER).vegalite_to_svg(spec, allowed_base_urls=[])
    source = base64.b64encode(svg.encode()).decode()
    image = f'<img src="data:image/svg+xml;base64,{source}" alt="{html_text(spec["description"])}">'
    words = f"<b>{html_text(title['text'])}</b><br>{html_text(' '.join(title['subtitle']))}"
    return f"<figure><figcaption>{words}</figcaption>{image}</figure>"


def fold(title: str, *parts: str) -> str:
    """Parts that are hidden until the reader opens them."""
    return f"<details><summary>{html_text(title)}</summary>{''.join(parts)}</details>"


def section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{name}"><h2>{html_text(title)}</h2>{"".join(parts)}</section>'


def write(path: str | os.PathLike[str], title: str, subtitle: str, sections: Iterable[str]) -> None:
    """Write a page. It has no script, and its policy allows none."""
    from importlib import resources  # imported here, because it imports tempfile and random

    style = (resources.files("fastndcg.analysis") / "page.css").read_text(encoding="utf-8")
    parts = {"title": html_text(title), "subtitle": paragraph(subtitle), "sections": "\n".join(sections)}
    with whole_file(path) as draft:
        draft.write_text(_PAGE.format(version=__version__, style=style, **parts), encoding="utf-8")
