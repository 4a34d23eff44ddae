"""Format a comparison as a table in text, HTML, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastndcg.common.exports import AsFrame
from fastndcg.common.markup import html_table, html_text, markdown_table, markdown_text
from fastndcg.common.table import digits, fit, terminal_width
from fastndcg.decide.contrasts import Contrasts
from fastndcg.decide.matching import missing_text
from fastndcg.errors import visible

if TYPE_CHECKING:
    from fastndcg.decide.anchoring import Anchors
    from fastndcg.decide.contrasts import Options
    from fastndcg.decide.matching import MatchedSamples
    from fastndcg.measures import Measure

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
RANKS = "rank: its interval, and capital letters that systems share which cannot be told apart"
_NAMES = ("measure", "system", "baseline")

# columns that say least about a difference, and about an order
_DROPS = (("ties",), ("effect",), ("wins", "losses"), ("relative",), ("mean",))
_DROPS_OF_ANCHORS = (("worst",),)


class ComparisonTexts(AsFrame):
    """The numbers of a comparison, and these as text, HTML, Markdown and LaTeX."""

    _rank_rows: Callable[[], list[dict[str, Any]]]

    def __init__(
        self,
        measures: Sequence[Measure],
        matched: MatchedSamples,
        options: Options,
        found: Contrasts | None = None,
    ) -> None:
        self.measures, self.systems, self.missing = tuple(measures), tuple(matched.samples), matched.missing
        self._samples, self._options = matched.samples, options
        self.anchors: dict[str, Anchors] = {}
        found = found or Contrasts(self.measures, matched.samples, options)
        self.means, self._pairs, self._numbers = found.means, found.pairs, found.rows
        self._differences = found.differences
        self.cautions = [missing_text(self.missing)] * bool(self.missing) + found.cautions

    def heading(self) -> str:
        """How many systems and queries there are, and how p and intervals are computed."""
        options = self._options
        test = _TESTS[options.test] if options.paired else "Welch's t-test"
        counts = sorted({row["queries"] for row in self._numbers})
        queries = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        return (
            f"{len(self.systems)} systems, {queries} queries; p of {test}{_CORRECTIONS[options.correction]}; "
            f"intervals of {100 * options.confidence:g} %{_INTERVALS[options.interval]}"
        )

    def to_latex(self, *, ranks: bool = False) -> str:
        """Return a LaTeX table of the means, for booktabs. Systems have letters; the best mean is bold.

        A mean has as superscripts the letters of the systems that it beats significantly: p_adjusted is at
        most 1 - confidence. A comment above it says the number of queries, the test and the correction.
        `ranks=True` adds to each mean the interval of the system's rank, and its group, as `ranks` has them.
        """
        options = self._options
        is_corrected = options.correction or options.test == "tukey"
        lines = [
            f"% {self.heading()}{'' if is_corrected else '; no correction'}",
            f"% superscripts: the systems that this one beats with p of at most {1 - options.confidence:g}",
            *([f"% {RANKS}"] if ranks else []),
            f"\\begin{{tabular}}{{ll{('rl' if ranks else 'r') * len(self.means)}}}",
            "\\toprule",
        ]

        def escape(text: str) -> str:
            signs: dict[str, Any] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
            signs |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
            return visible(text).translate(str.maketrans(signs))

        header, *rows = self._rank(escape, "\\textbf{{{}}}", "$^{{{}}}$", ranks=ranks)
        lines += [f"{' & '.join(header)} \\\\", "\\midrule", *(f"{' & '.join(row)} \\\\" for row in rows)]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def to_markdown(self, *, ranks: bool = False) -> str:
        """Return the table of `to_latex` in Markdown."""
        rows = self._rank(markdown_text, "**{}**", "<sup>{}</sup>", ranks=ranks)
        return markdown_table(rows, 2, is_markdown=True) + "\n"

    def text(self, see: str = "to_arrow()", see_anchors: str = "to_json()") -> str:
        """The heading, the main numbers in the width of the terminal, the cautions and the anchors.

        `see` and `see_anchors` show what a narrow terminal leaves out.
        """
        width, drops = terminal_width(), list(_DROPS)
        if len({row["baseline"] for row in self._numbers}) == 1:
            drops.append(("baseline",))
        lines = [self.heading(), fit(self._texts(), 3, drops, width, see)]
        lines += [f"caution: {visible(caution)}" for caution in self.cautions]
        if self.anchors:
            lines += ["", fit(self._texts_of_anchors(), 2, _DROPS_OF_ANCHORS, width, see_anchors)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html_text(note)}</p>" for note in self.cautions)
        anchors = html_table(self._texts_of_anchors(), 2) if self.anchors else ""
        return f"<p>{html_text(self.heading())}</p>{html_table(self._texts(), 3)}{notes}{anchors}"

    def _texts(self) -> list[list[str]]:
        """The main numbers as strings; the first row is the header."""
        numbers, counts = ("mean", "difference", "low", "high"), ("wins", "ties", "losses")
        rows = [[*_NAMES, *numbers, "relative", "p", "effect", *counts]]
        for row in self._numbers:
            texts = [row[name] for name in _NAMES] + [digits(row[name], ".4f") for name in numbers]
            share = relative(row)
            texts.append("" if share is None else f"{digits(100 * share, '+.1f')} %")
            texts += [digits(row["p_adjusted"], ".2g"), digits(row["effect"], ".2f")]
            rows.append(texts + ["" if row[name] is None else f"{row[name]:,}" for name in counts])
        return rows

    def _rows_of_anchors(self) -> list[dict[str, Any]]:
        """For each measure and system, where its mean lies between the random and the best order."""
        means = {system: found.means() for system, found in self.anchors.items()}
        return [
            {"measure": measure, "system": system, **of_system[measure]}
            for measure in self.means
            for system, of_system in means.items()
        ]

    def _texts_of_anchors(self) -> list[list[str]]:
        rows = self._rows_of_anchors()
        texts = [
            [value if name in _NAMES else digits(value, ".4f") for name, value in row.items()] for row in rows
        ]
        return [list(rows[0]), *texts]

    def _beaten(self, rows: Iterable[dict[str, Any]]) -> set[tuple[str, str, str]]:
        """Measures, systems, and the systems that these beat significantly."""
        found = set()
        for row in rows:
            if row["p_adjusted"] <= 1 - self._options.confidence and row["difference"]:
                pair = row["system"], row["baseline"]
                found.add((row["measure"], *(pair if row["difference"] > 0 else pair[::-1])))
        return found

    def _rank(self, escape: Callable[[str], str], bold: str, above: str, *, ranks: bool) -> list[list[str]]:
        """The header; then for each system its letter, its name, and its means: the best of a measure is
        bold, and the letters of the systems that it beats significantly stand above it.
        """
        letters = {name: letter_of(place) for place, name in enumerate(self.systems)}
        beaten = self._beaten(self._numbers)
        standing = {(row["measure"], row["system"]): row for row in self._rank_rows()} if ranks else {}
        names = [name for each in map(escape, self.means) for name in ([each, "rank"] if ranks else [each])]
        table = [["", "system", *names]]
        for system, letter in letters.items():
            cells = []
            for measure, means in self.means.items():
                best = max(means.values(), key=lambda mean: (not math.isnan(mean), mean))
                mean = digits(means[system], ".4f")
                worse = "".join(each for name, each in letters.items() if (measure, system, name) in beaten)
                shown = bold.format(mean) if means[system] == best else mean
                cells.append(shown + (above.format(worse) if worse else ""))
                if ranks:
                    row = standing[measure, system]
                    cells.append(f"{row['low']} to {row['high']}, {row['group']}")
            table.append([letter, escape(system), *cells])
        return table


def letter_of(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"({place + 1})"


def relative(row: Mapping[str, Any]) -> float | None:
    """The difference of a row as a share of the baseline's mean; None where that is 0."""
    difference: float = row["difference"]
    return difference / row["baseline_mean"] if row["baseline_mean"] else None
