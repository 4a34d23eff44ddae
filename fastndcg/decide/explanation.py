"""Explain the value of a query, rank by rank, from the numbers that the kernels sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import combine, decode
from fastndcg.common.exports import AsFrame
from fastndcg.common.markup import html_table, html_text, markdown_table
from fastndcg.common.table import (
    Table,
    digits,
    fit,
    fitted,
    left_out,
    quoted,
    terminal_width,
    text_table,
    width_of,
    wrapped,
)
from fastndcg.decide.explained import ROUNDING, Explained
from fastndcg.errors import InputError, InputTypeError, about, count_of, visible
from fastndcg.measures import as_measure
from fastndcg.measures.measure import hold_functions
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.measures import MeasureLike
    from fastndcg.typing import Chart

_SHOWN = 30  # rows of a printed table, at most, unless all are asked for
# columns that are left out where a terminal has no room, in this order
_DROPS = (
    ("ideal_grade", "ideal_contribution"),
    ("gain", "expected_gain", "discount"),
    ("cumulative",),
    ("score",),
    ("tie_group",),
)


@overload
def explain(rankings: Rankings, measure: MeasureLike, query: object) -> Explanation: ...
@overload
def explain(rankings: Mapping[str, Rankings], measure: MeasureLike, query: object) -> Explanations: ...
def explain(
    rankings: Rankings | Mapping[str, Rankings], measure: MeasureLike, query: object
) -> Explanation | Explanations:
    """Show where the value of one query comes from: gain, discount and contribution of each document, beside
    the ideal, as the kernels summed them.

    Parameters
    ----------
    rankings : Rankings, or a mapping of names to Rankings
        Several systems are explained side by side.
    measure : Measure, notation, or ir_measures object
    query : id
        An id of `rankings.query_ids`.

    Returns
    -------
    Explanation, or Explanations for several systems

    Raises
    ------
    InputError
        The query does not exist; the message names similar ids.
    MeasureError
        The measure is not a sum over ranks: AUC, IPrec, SetAP, IDCG, NumRel, measures of several intents, and
        nDCG with `ideal="returned"` and averaged ties.

    See Also
    --------
    anchors : values of the worst, a random and the best order.
    evaluate : values of all queries.

    Examples
    --------
    >>> found = explain(Rankings.from_lists([[3, 0, 2]], query_ids=["q-42"]), "nDCG@2", query="q-42")
    >>> found
    nDCG@2 of query "q-42" is 0.703918 = 3.000000 / 4.261860
    rank  grade  score      gain  discount  contribution  cumulative  ideal_grade  ideal_contribution
       1      3      2  3.000000  1.000000      0.703918    0.703918            3            0.703918
       2      0      1  0.000000  0.630930      0.000000    0.703918            2            0.296082
    Not shown: 1 document below the cutoff of 2, the first relevant document at rank 3; to_arrow() has it.
    >>> found.swaps(1).to_pylist()
    [{'rank': 2, 'with_rank': 3, 'gains': 0.29608...}]
    """
    wanted = as_measure(measure)
    if isinstance(rankings, Mapping):
        if not rankings:
            raise InputError("no system is given to explain; give a mapping of names to Rankings")
        found = {}
        for name, each in rankings.items():
            with about(f'"{name}"'):
                found[str(name)] = explain(each, wanted, query)
        return Explanations(found)
    if not isinstance(rankings, Rankings):
        raise InputTypeError(
            f"rankings is a {type(rankings).__name__}; wanted Rankings, as read_parquet returns them"
        )
    ids = decode(combine(rankings.query_ids))
    try:
        row = int(pc.index(ids, pa.scalar(query).cast(ids.type)).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        row = -1
    if row < 0:
        import difflib

        some = [str(one) for one in ids[:200_000].to_pylist()]
        near = difflib.get_close_matches(str(query), some, n=5, cutoff=0.5) or some[:5]
        named = f"The nearest are: {', '.join(near)}." if near else "There are no queries."
        raise InputError(f"query {query!r} is not among {count_of(len(ids), 'query')}. {named}")
    with hold_functions([wanted]):
        return Explanation(rankings[row : row + 1], wanted)


class _Shown(AsFrame):
    """What explanations of one and of several systems show alike."""

    if TYPE_CHECKING:

        def heading(self) -> str: ...
        def notes(self, whole: bool = True, see: str = "to_arrow() has") -> list[str]: ...
        def _texts(self, whole: bool) -> list[list[str]]: ...
        def _fitted(self, texts: list[list[str]], width: int, see: str) -> list[str]: ...

    def text(self, whole: bool = False, see: str = "to_arrow()", markdown: bool = False) -> str:
        """The heading, the table and its notes. Where systems do not fit side by side, each has a table.

        `whole` shows all rows, and not those down to the cutoff, at most 30; `see` is what the text names
        that shows columns for which a terminal has no room; `markdown` makes a table in Markdown, in place of
        one that fits the terminal.
        """
        texts, width = self._texts(whole), 0 if markdown else terminal_width()
        notes = self.notes(whole, "to_arrow() has" if see == "to_arrow()" else "--all shows")
        if markdown:
            shown = ["", *([markdown_table(texts, ())] if texts else []), ""]
        else:
            shown = self._fitted(texts, width, see) if texts else []
        return "\n".join([self.heading(), *shown, *(wrapped(note, width) for note in notes)])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        texts = self._texts(whole=False)
        notes = "".join(f"<p>{html_text(note)}</p>" for note in self.notes(whole=False))
        return f"<p>{html_text(self.heading())}</p>{html_table(texts, 0) if texts else ''}{notes}"


class Explanation(Explained, _Shown):
    """The result of `explain`: one query, document by document.

    Attributes
    ----------
    measure, query
    value : float
        The value that `evaluate` returns, with the same bits.
    is_empty : bool
        Whether the measure is undefined for the query. `value` is then that of the measure's `empty`.
    """

    def to_arrow(self) -> pa.Table:
        """A row for each document, by falling score, and further rows if the ideal ranking is longer.

        - rank (null for dropped documents), doc_id, grade (null if unjudged) and score;
        - gain of the document; expected_gain, the number that the kernels hold for the rank: for tied
          documents the expected value, for AP the precision; discount, null beyond the cutoff;
        - contribution, what the rank adds to the value; cumulative, the value so far;
        - ideal_grade and ideal_contribution at this rank of the ideal ranking, null if the measure has none;
        - tie_group, a number for each group of tied documents, null for documents that are not tied.
        """
        return self._table

    def plot(self, ranks: int = 50) -> Chart:
        """Plot the contribution of each rank, beside the ideal. See `fastndcg.plot.contributions`."""
        from fastndcg import plot

        return plot.contributions(self, ranks)

    def heading(self) -> str:
        said = f"{self.measure} of query {quoted(self.query)} is {digits(self.value)}"
        if self.is_empty:
            empty = self.measure.params.get("empty", 0)
            return f"{said}: it is undefined there, and counts by empty={empty!r}"
        ideal = self._ranks.ideal
        if self.measure.definition.over == "ideal" and self._ranks.ideal_gain.size:
            said += f" = {self.value * ideal:.6f} / {ideal:.6f}"
        if not abs(self.folded - self.value) <= ROUNDING * max(abs(self.value), 1):
            said += f"; caution: contributions come to {self.folded!r}"
        return said

    def notes(self, whole: bool = True, see: str = "to_arrow() has") -> list[str]:
        """Notes below the table, of which `whole` says if it has all rows; `see` says what has the others."""
        shown = self._n_shown(whole)
        notes = self._not_shown(shown, see)
        if self._table["tie_group"].slice(0, shown).null_count < shown:
            ties = self.measure.params.get("ties", "average")
            meaning = "the expectation over their orders"
            meaning = meaning if ties == "average" else f'in the order ties="{ties}"'
            notes.append(f"Documents of one tie_group have equal scores: {meaning}.")
        parts = [
            f"{count_of(row['documents'], 'document')} of grade {row['grade']:g}"
            for row in self.missed.to_pylist()
            if row["gain"] != 0
        ]
        return [*notes, f"Judged and not returned: {', '.join(parts)}."] if parts else notes

    def _n_shown(self, whole: bool) -> int:
        """The rows to print: down to the cutoff, and the documents whose ties reach over it; none where the
        measure is undefined, since no row adds anything.
        """
        n, cutoff = len(self._table), self._cut.cutoff
        if whole or self.is_empty:
            return n if whole else 0
        if cutoff is not None and cutoff < n:
            groups, n = self._table["tie_group"].to_pylist(), cutoff
            if self.measure.params.get("ties", "average") == "average":
                while n < len(groups) and groups[n] is not None and groups[n] == groups[cutoff - 1]:
                    n += 1
        return min(n, _SHOWN)

    def _not_shown(self, shown: int, see: str) -> list[str]:
        """A sentence about documents that are not shown, if there are any."""
        hidden = self._rankings.n_docs - shown
        if hidden <= 0:
            return [] if shown else ["No documents were returned."]
        relevant = np.flatnonzero(self._gains[self._order[: self._n_ranked]] > 0)
        below = relevant[relevant >= shown]
        cutoff = self._cut.cutoff
        where = f" below the cutoff of {cutoff}" if cutoff is not None and 0 < cutoff <= shown else ""
        found = f"the first relevant document at rank {below[0] + 1}" if len(below) else "none relevant"
        them = "it" if hidden == 1 else "them"
        return [f"Not shown: {count_of(hidden, 'document')}{where}, {found}; {see} {them}."]

    def _texts(self, whole: bool) -> list[list[str]]:
        """The table as strings, the header first; empty columns are left out, and the header of no rows."""
        table = self._table.slice(0, self._n_shown(whole))
        always, names = ("rank", "contribution"), table.column_names
        shown = [name for name in names if table[name].null_count < len(table) or name in always]
        n = min(len(self._ranks.added), len(table))
        if "expected_gain" in shown and table["expected_gain"].slice(0, n).equals(table["gain"].slice(0, n)):
            shown.remove("expected_gain")
        rows = table.select(shown).to_pylist()
        texts = [shown, *([_text(name, value) for name, value in row.items()] for row in rows)]
        return texts if rows else []

    def _fitted(self, texts: list[list[str]], width: int, see: str) -> list[str]:
        return [fit(texts, 0, _DROPS, width, see)]


class Explanations(_Shown, dict[str, Explanation]):
    """Explanations of one query for several systems, by the names of the systems."""

    def __init__(self, explanations: Mapping[str, Explanation]) -> None:
        super().__init__(explanations)

    def to_arrow(self) -> pa.Table:
        """The tables of all systems, one after the other; the first column is the `system`."""
        return self._joined(each.to_arrow() for each in self.values())

    def by_rank(self) -> Table:
        """The measure at every cutoff, as `Explanation.by_rank`; the first column is the `system`."""
        return Table(self._joined(each.by_rank().to_arrow() for each in self.values()))

    def _joined(self, tables: Iterable[pa.Table]) -> pa.Table:
        named = (
            table.add_column(0, "system", pa.array([name] * len(table), pa.string()))
            for name, table in zip(self, tables, strict=True)
        )
        return pa.concat_tables(named, promote_options="permissive")

    def heading(self) -> str:
        first, *_ = self.values()
        values = ", ".join(f"{digits(each.value)} ({visible(system)})" for system, each in self.items())
        return f"{first.measure} of query {quoted(first.query)}: {values}"

    def _texts(self, whole: bool) -> list[list[str]]:
        """Systems side by side: the document id, grade, contribution and cumulative value of each rank."""
        header, columns = ["rank"], []
        n = max(each._n_shown(whole) for each in self.values())
        for name, each in self.items():
            table = each.to_arrow().slice(0, n)
            for column in ("doc_id", "grade", "contribution", "cumulative"):
                if table[column].null_count < len(table):
                    header.append(f"{name} {column}")
                    texts = [_text(column, value) for value in table[column].to_pylist()]
                    columns.append(texts + [""] * (n - len(texts)))
        rows = [[str(row + 1), *texts] for row, texts in enumerate(zip(*columns, strict=True))]
        return [header, *rows] if rows else []

    def notes(self, whole: bool = True, see: str = "to_arrow() has") -> list[str]:
        """Notes of each system about documents that are not shown."""
        n = max(each._n_shown(whole) for each in self.values())
        return [f"{visible(name)}: {note}" for name, each in self.items() for note in each._not_shown(n, see)]

    def _fitted(self, texts: list[list[str]], width: int, see: str) -> list[str]:
        if not width or width_of(texts) <= width:
            return [text_table(texts, left=0)]
        blocks, gone = [], list[str]()
        for system in self:
            names = [name for name in texts[0] if name.startswith(f"{system} ")]
            places = [0, *map(texts[0].index, names)]
            rows = [[row[place] for place in places] for row in texts]
            rows[0] = [name.removeprefix(f"{system} ") for name in rows[0]]
            table, left = fitted(rows, 0, _DROPS, width)
            blocks.append(f"{visible(system)}\n{table}\n")
            gone += [name for name in left if name not in gone]
        return [*blocks, *left_out(gone, width, see)]


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if name in ("grade", "ideal_grade", "score"):
        return f"{value:g}"
    return digits(value) if isinstance(value, float) else str(value)
