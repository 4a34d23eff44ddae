"""Format a comparison as a table in text, HTML, Markdown and LaTeX."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fastndcg.common.table import fit, html_table, html_text, markdown_table, markdown_text, terminal_width
from fastndcg.errors import visible

if TYPE_CHECKING:
    from fastndcg.decide.comparison import Comparison

_TESTS = {
    "t": "paired t-test",
    "randomisation": "randomised signs",
    "wilcoxon": "Wilcoxon's signed ranks",
    "tukey": "randomised Tukey",
}
_CORRECTIONS = {
    None: "",
    "holm": ", corrected by Holm",
    "bonferroni": ", corrected by Bonferroni",
    "bh": ", corrected by Benjamini and Hochberg",
}
_INTERVALS = {
    "t": "",
    "logit": ", by Student's t of logits",
    "percentile": ", percentiles of resamples",
    "bca": ", BCa",
    "studentised": ", studentised bootstrap",
}
_NUMBERS = ("mean", "difference", "low", "high")
_COUNTS = ("wins", "ties", "losses")


def heading(compared: Comparison) -> str:
    """Say how many systems and queries there are, and how p and intervals are computed."""
    options = compared._options
    test = _TESTS[options.test] if options.paired else "Welch's t-test"
    counts = sorted({row["queries"] for row in compared.rows})
    queries = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return (
        f"{len(compared.systems)} systems, {queries} queries; p of {test}{_CORRECTIONS[options.correction]}; "
        f"intervals of {100 * options.confidence:g} %{_INTERVALS[options.interval]}"
    )


# columns that say least about a difference; how good an order is follows from the other anchors
_DROPS = (("ties",), ("effect",), ("wins", "losses"), ("mean",))
_DROPS_OF_ANCHORS = (("ceiling", "quality"), ("worst",))


def one_baseline(compared: Comparison) -> list[tuple[str]]:
    """The column of baselines, to be left out where each row has the same."""
    return [("baseline",)] if len({row["baseline"] for row in compared.rows}) == 1 else []


def plain(compared: Comparison, see: str = "to_arrow()", see_anchors: str = "to_json()") -> str:
    """The heading, the main numbers in the width of the terminal, the cautions and the anchors.

    `see` and `see_anchors` show what a narrow terminal leaves out.
    """
    width = terminal_width()
    shown = fit(_rows(compared), 3, [*_DROPS, *one_baseline(compared)], width, see)
    notes = [f"caution: {visible(caution)}" for caution in compared.cautions]
    anchors = []
    if compared.anchors:
        anchors = ["", fit(_rows_of_anchors(compared), 2, _DROPS_OF_ANCHORS, width, see_anchors)]
    return "\n".join([heading(compared), shown, *notes, *anchors])


def html_of(compared: Comparison) -> str:
    notes = "".join(f"<p>{html_text(note)}</p>" for note in compared.cautions)
    anchors = html_table(_rows_of_anchors(compared), 2) if compared.anchors else ""
    return f"<p>{html_text(heading(compared))}</p>{html_table(_rows(compared), 3)}{notes}{anchors}"


def latex(compared: Comparison) -> str:
    corrected = "" if compared._options.correction or compared._options.test == "tukey" else "; no correction"
    lines = [
        f"% {heading(compared)}{corrected}",
        f"% superscripts: the systems that this one beats with p of at most {1 - compared.confidence:g}",
    ]
    lines += [f"\\begin{{tabular}}{{ll{'r' * len(compared.means)}}}", "\\toprule"]
    lines += [" & ".join(["", "system", *map(_escape, compared.means)]) + " \\\\", "\\midrule"]
    for letter, system, cells in _rank(compared):
        shown = [
            (f"\\textbf{{{mean}}}" if best else mean) + (f"$^{{{beaten}}}$" if beaten else "")
            for mean, beaten, best in cells
        ]
        lines.append(" & ".join([letter, _escape(system), *shown]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def markdown(compared: Comparison) -> str:
    rows = [["", "system", *map(markdown_text, compared.means)]]
    for letter, system, cells in _rank(compared):
        shown = [
            (f"**{mean}**" if best else mean) + (f"<sup>{beaten}</sup>" if beaten else "")
            for mean, beaten, best in cells
        ]
        rows.append([letter, markdown_text(system), *shown])
    return markdown_table(rows, 2, is_markdown=True) + "\n"


def anchor_rows(compared: Comparison) -> list[dict[str, Any]]:
    """For each measure and system, where its mean lies between the random and the best order."""
    means = {system: found.means() for system, found in compared.anchors.items()}
    return [
        {"measure": measure, "system": system, **of_system[measure]}
        for measure in compared.means
        for system, of_system in means.items()
    ]


def _rows(compared: Comparison) -> list[list[str]]:
    """The main numbers as strings; the first row is the header."""
    rows = [["measure", "system", "baseline", *_NUMBERS, "p", "effect", *_COUNTS]]
    for row in compared.rows:
        numbers = [f"{row[name]:.4f}" for name in _NUMBERS]
        counts = ["" if row[name] is None else f"{row[name]:,}" for name in _COUNTS]
        p, effect = f"{row['p_adjusted']:.2g}", f"{row['effect']:.2f}"
        rows.append([row["measure"], row["system"], row["baseline"], *numbers, p, effect, *counts])
    return rows


def _rows_of_anchors(compared: Comparison) -> list[list[str]]:
    rows = anchor_rows(compared)
    texts = [
        [f"{value:.4f}" if isinstance(value, float) else value for value in row.values()] for row in rows
    ]
    return [list(rows[0]), *texts]


def _rank(compared: Comparison) -> list[tuple[str, str, list[tuple[str, str, bool]]]]:
    """For each system its letter, its name, and for each measure a triple.

    The triple: the mean, the letters of the systems that it beats significantly, and whether the mean is the
    best.
    """
    letters = {
        name: chr(ord("a") + place) if place < 26 else f"({place + 1})"
        for place, name in enumerate(compared.systems)
    }
    beaten: dict[tuple[str, str], str] = {}
    for row in compared.rows:
        if row["p_adjusted"] <= 1 - compared.confidence and row["difference"]:
            better, worse = row["system"], row["baseline"]
            if row["difference"] < 0:
                better, worse = worse, better
            key = row["measure"], better
            beaten[key] = beaten.get(key, "") + letters[worse]
    ranked = []
    for system, letter in letters.items():
        cells = []
        for measure, means in compared.means.items():
            best = means[system] == max(means.values(), key=lambda mean: (not math.isnan(mean), mean))
            cells.append((f"{means[system]:.4f}", "".join(sorted(beaten.get((measure, system), ""))), best))
        ranked.append((letter, system, cells))
    return ranked


def _escape(text: str) -> str:
    """Escape the special characters of LaTeX."""
    signs: dict[str, Any] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
    signs |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return visible(text).translate(str.maketrans(signs))
