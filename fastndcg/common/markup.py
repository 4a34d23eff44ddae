"""HTML and Markdown tables of escaped text."""

from __future__ import annotations

import re
from collections.abc import Collection

from fastndcg.errors import visible

Texts = list[list[str]]  # the first row is the header


def html_text(text: str) -> str:
    r"""Escape text for HTML.

    >>> print(html_text("<b>\x1b"))
    &lt;b&gt;\x1b
    """
    import html

    return html.escape(visible(text))


def html_table(rows: Texts, left: int | Collection[int] = 1) -> str:
    """Return rows of texts as an HTML table in the theme of the page that shows it.

    >>> html_table([["measure", "mean"], ["RR", "0.5"]]).partition("<tbody>")[2]
    '<tr><td style="text-align:left">RR</td><td>0.5</td></tr></tbody></table>'
    """
    at_left = range(left) if isinstance(left, int) else left
    sides = [' style="text-align:left"' if place in at_left else "" for place in range(len(rows[0]))]

    def row_of(row: list[str], name: str) -> str:
        cells = zip(sides, map(html_text, row), strict=True)
        return "<tr>" + "".join(f"<{name}{side}>{text}</{name}>" for side, text in cells) + "</tr>"

    header, *others = rows
    body = "".join(row_of(row, "td") for row in others)
    return f"<table><thead>{row_of(header, 'th')}</thead><tbody>{body}</tbody></table>"


def markdown_text(text: str) -> str:
    r"""Escape text for Markdown: no HTML, links or table cells.

    >>> print(markdown_text("<b>[a](b)|*c*"))
    \<b\>\[a\](b)\|\*c\*
    """
    return re.sub(r"[\\`*\[\]<>|&]", r"\\\g<0>", visible(text))


def markdown_table(rows: Texts, left: int | Collection[int] = 1, *, is_markdown: bool = False) -> str:
    """Return rows of texts as a Markdown table, numbers at the right; escapes texts that are not Markdown.

    >>> print(markdown_table([["measure", "mean"], ["RR", "0.5"]]))
    | measure | mean |
    | --- | ---: |
    | RR | 0.5 |
    """
    header, *others = rows if is_markdown else ([markdown_text(text) for text in row] for row in rows)
    at_left = range(left) if isinstance(left, int) else left
    rule = ["---" if place in at_left else "---:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *others])
