"""Explain the value of a query, rank by rank, from the numbers that the kernels sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import combine, decode
from fastndcg.common.table import (
    AsFrame,
    Table,
    fit,
    fitted,
    html_table,
    html_text,
    left_out,
    markdown_table,
    quoted,
    terminal_width,
    text_table,
    width_of,
    wrapped,
)
from fastndcg.errors import InputError, InputTypeError, about, count_of, visible
from fastndcg.measures import Measure, as_measure
from fastndcg.measures.measure import hold_functions
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, plan, ways
from fastndcg.scoring.ranks import Ranks, ranks_of, tie_numbers

if TYPE_CHECKING:
    from fastndcg.measures import MeasureLike
    from fastndcg.typing import Chart

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_SHOWN = 30  # rows of a printed table, at most, unless all are asked for
_MOST_NEAR = 5  # similar ids that an error proposes, at most
_LOOKED_AT = 200_000  # ids that are searched for similar ones, at most
_MOST_EXCHANGED = 4_000_000  # documents that `swaps` evaluates together: a list for each exchange
_ROUNDING = 1e-12


@overload
def explain(rankings: Rankings, measure: MeasureLike, query: object) -> Explanation: ...
@overload
def explain(rankings: Mapping[str, Rankings], measure: MeasureLike, query: object) -> Explanations: ...
def explain(
    rankings: Rankings | Mapping[str, Rankings], measure: MeasureLike, query: object
) -> Explanation | Explanations:
    """Show where the value of one query comes from: gain, discount and contribution of each document, beside
    the ideal.

    The numbers are those that the kernels summed, so a wrong value can be traced to its cause.

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
        The measure is not a sum over ranks: IPrec, SetAP, IDCG, NumRel, measures of several intents, and nDCG
        with `ideal="returned"` and averaged ties.

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
                found[str(name)] = _explain(each, wanted, query)
        return Explanations(found)
    return _explain(rankings, wanted, query)


def _explain(rankings: object, measure: Measure, query: object) -> Explanation:
    if not isinstance(rankings, Rankings):
        raise InputTypeError(
            f"rankings is a {type(rankings).__name__}; wanted Rankings, as read_parquet returns them"
        )
    row = row_of(rankings, query)
    with hold_functions([measure]):
        return Explanation(rankings[row : row + 1], measure)


def row_of(rankings: Rankings, query: object) -> int:
    """The row of a query id. Raises `InputError`, with similar ids, for an unknown id."""
    ids = decode(combine(rankings.query_ids))
    try:
        row = int(pc.index(ids, pa.scalar(query).cast(ids.type)).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        row = -1
    if row >= 0:
        return row
    import difflib

    some = [str(one) for one in ids[:_LOOKED_AT].to_pylist()]
    near = difflib.get_close_matches(str(query), some, n=_MOST_NEAR, cutoff=0.5) or some[:_MOST_NEAR]
    named = f"The nearest are: {', '.join(near)}." if near else "There are no queries."
    raise InputError(f"query {query!r} is not among {count_of(len(ids), 'query')}. {named}")


class Explanation(AsFrame):
    """The result of `explain`: one query, document by document.

    Attributes
    ----------
    measure : Measure
    query : id
    value : float
        The value that `evaluate` returns, with the same bits.
    is_empty : bool
        Whether the measure is undefined for the query. `value` is then that of the measure's `empty`.
    """

    def __init__(self, rankings: Rankings, measure: Measure) -> None:
        self.measure, self._rankings = measure, rankings
        self.query = rankings.query_ids[0].as_py()
        scores = ways.score((measure,), rankings, 1)
        self.value, self.is_empty = float(scores.values[0, 0]), bool(scores._empty[0, 0])
        if measure.cutoff_column is not None:
            measure @= int(ways.own_cutoffs(measure.cutoff_column, rankings)[0])
        self._cut = measure
        self._ranks = _NOTHING if self.is_empty else ranks_of(measure, rankings)
        self._gains = _gains(measure, rankings)
        self._order, self._n_ranked = _order(measure, rankings, self._gains)
        self._table = self._make_table()

    def _make_table(self) -> pa.Table:
        rankings, ranks, order, n = self._rankings, self._ranks, self._order, self._n_ranked
        counted = len(ranks.added)
        rows = np.arange(max(len(order), len(ranks.ideal_gain)))
        is_document, is_ranked = rows < len(order), rows < n
        taken = pa.array(np.append(order, np.zeros(len(rows) - len(order), np.int64)), mask=~is_document)
        judged = np.ones(len(order), np.bool_) if rankings.is_judged is None else rankings.is_judged[order]
        grade = _pad(rankings.relevance[order].astype(np.float64), len(rows))
        grade[: len(order)][~judged] = np.nan
        running = np.append(ranks.running, np.full(max(len(rows) - counted, 0), self._last()))[: len(rows)]
        parts = _pad(ranks.contribution, len(rows), 0.0)
        columns = {
            "rank": pa.array(rows + 1, mask=~(is_ranked | ~is_document)),
            "doc_id": pa.nulls(len(rows))
            if rankings.doc_ids is None
            else combine(rankings.doc_ids).take(taken),
            "grade": _null_where_nan(grade),
            "score": pa.array(rankings.scores).take(taken),
            "gain": _null_where_nan(_pad(self._gains[order], len(rows))),
            "discount": _null_where_nan(_pad(ranks.discount, len(rows))),
            "contribution": pa.array(parts, mask=~is_ranked),
            "cumulative": pa.array(running, mask=~is_ranked),
            "ideal_grade": _null_where_nan(_pad(self._ideal_grades(), len(rows))),
            "ideal_contribution": _null_where_nan(_pad(ranks.ideal_contribution, len(rows))),
            "tie_group": _tie_groups(rankings.scores[order], len(rows)),
            "expected_gain": _null_where_nan(_pad(ranks.added, len(rows))),
        }
        return pa.table(columns)

    def _last(self) -> float:
        return float(self._ranks.running[-1]) if len(self._ranks.running) else self._ranks.base

    def _ideal_grades(self) -> Float64:
        """For each rank, a grade of the query with the gain that the ideal has there."""
        gains = self._ranks.ideal_gain
        _, pool = laid_out.pool(self._rankings)
        known = np.unique(np.append(pool, self._rankings.relevance).astype(np.float64))
        worth = plan.worth_of(self.measure)
        if worth.unjudged is not None:
            known = np.append(known, worth.unjudged)
        of_grade = {plan.gain_of(worth, grade): grade for grade in known.tolist()}
        return np.array([of_grade.get(gain, math.nan) for gain in gains.tolist()], np.float64)

    @property
    def folded(self) -> float:
        """The sum of the contributions, in the order of the kernels; NaN where the query is empty."""
        return math.nan if self.is_empty else self._last()

    @property
    def missed(self) -> Table:
        """Judged documents that were not returned, as a table of `grade`, `gain` and number of `documents`,
        best first.

        `at_top` is how much the value would rise if one of these documents were ranked first.
        """
        rankings = self._rankings
        grades, counts = _missed_grades(rankings)
        worth = plan.worth_of(self.measure) if self.measure.way != "intents" else None
        gains = np.array([plan.gain_of(worth, grade) for grade in grades.tolist()]) if worth else grades
        order = np.argsort(-gains, kind="stable")
        at_top = [self._with_at_top(grade) - self.value for grade in grades[order].tolist()]
        return Table(
            pa.table(
                {
                    "grade": pa.array(grades[order]),
                    "gain": pa.array(gains[order]),
                    "documents": pa.array(counts[order], pa.int64()),
                    "at_top": pa.array(at_top, pa.float64()),
                }
            )
        )

    def _with_at_top(self, grade: float) -> float:
        """The value if a document of this grade were ranked first."""
        rankings, n = self._rankings, self._rankings.n_docs
        place = tie_numbers(rankings.scores) + 1
        flags = np.ones(n, np.bool_) if rankings.is_judged is None else rankings.is_judged
        more = Rankings._from_offsets(
            [0, n + 1],
            np.insert(rankings.relevance.astype(np.float64), 0, grade),
            -np.insert(place, 0, 0),
            is_judged=np.insert(flags, 0, True),
            judged=rankings.judged,
        )
        return float(ways.score((self._cut,), more, 1).values[0, 0])

    def swaps(self, n: int = 10) -> Table:
        """The exchanges of two documents that raise the value most: `rank`, `with_rank` and the rise,
        `gains`; largest first.

        Each exchange is evaluated by itself. In a long list not all are tried: for each rank that counts and
        each larger gain, only those with the highest and the lowest document of that gain below the rank. If
        one of several tied ranks counts, all of them do.
        """
        order, ranked = self._order[: self._n_ranked], self._n_ranked
        number, counted = tie_numbers(self._rankings.scores)[order], len(self._ranks.added)
        if 0 < counted < ranked:  # a group of ties that crosses the cutoff counts as a whole
            counted = int(np.searchsorted(number, number[counted - 1], "right"))
        # moving a document up that "gains" less can raise what counts judgments
        either = self.measure.definition.worth in ("judgment", "unjudged")
        pairs = _pairs(self._gains[order], counted, ranked, either=either)
        gains = np.empty(0) if self.is_empty else self._exchange_pairs(order, pairs) - self.value
        best = [place for place in np.argsort(-gains, kind="stable")[: max(n, 0)] if gains[place] > _ROUNDING]
        return Table(
            pa.table(
                {
                    "rank": pa.array([pairs[place][0] + 1 for place in best], pa.int64()),
                    "with_rank": pa.array([pairs[place][1] + 1 for place in best], pa.int64()),
                    "gains": pa.array([gains[place] for place in best], pa.float64()),
                }
            )
        )

    def _exchange_pairs(self, order: Int64, pairs: list[tuple[int, int]]) -> Float64:
        """The value with each pair of documents exchanged."""
        rankings, size = self._rankings, len(order)
        values, step = [np.empty(0)], max(_MOST_EXCHANGED // max(size, 1), 1)
        _, pool = laid_out.pool(rankings)
        scores = np.array(rankings.scores[order])
        for first in range(0, len(pairs), step):
            some = np.array(pairs[first : first + step])
            rows = np.tile(order, (len(some), 1))
            lists = np.arange(len(some))
            rows[lists, some[:, 0]], rows[lists, some[:, 1]] = order[some[:, 1]], order[some[:, 0]]
            several = Rankings._from_offsets(
                np.arange(len(some) + 1) * size,
                rankings.relevance[rows.ravel()],
                np.tile(scores, len(some)),
                is_judged=None if rankings.is_judged is None else rankings.is_judged[rows.ravel()],
                judged=(np.arange(len(some) + 1) * len(pool), np.tile(pool, len(some))),
                propensity=None if rankings.propensity is None else rankings.propensity[rows.ravel()],
            )
            values.append(ways.score((self._cut,), several, None).values[0])
        return np.concatenate(values)

    # ---- tables ----

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
        said = f"{self.measure} of query {quoted(self.query)} is {self.value:.6f}"
        if self.is_empty:
            return (
                f"{said}: it is undefined there, and counts by empty={self.measure.params.get('empty', 0)!r}"
            )
        ideal = self._ranks.ideal
        if self.measure.definition.over == "ideal" and self._ranks.ideal_gain.size:
            said += f" = {self.value * ideal:.6f} / {ideal:.6f}"
        if not abs(self.folded - self.value) <= _ROUNDING * max(abs(self.value), 1):
            said += f"; caution: contributions come to {self.folded!r}"
        return said

    def notes(self, whole: bool = True, see: str = "to_arrow() has") -> list[str]:
        """Notes below the table, of which `whole` says if it has all rows; `see` says what has the others."""
        shown = self._n_shown(whole)
        notes = self._not_shown(shown, see)
        if self._table["tie_group"].slice(0, shown).null_count < shown:
            ties = self.measure.params.get("ties", "average")
            meaning = (
                "the expectation over their orders" if ties == "average" else f'in the order ties="{ties}"'
            )
            notes.append(f"Documents of one tie_group have equal scores: {meaning}.")
        missed = self.missed.filter(pc.not_equal(self.missed["gain"], 0))
        if len(missed):
            parts = [
                f"{count_of(row['documents'], 'document')} of grade {row['grade']:g}"
                for row in missed.to_pylist()
            ]
            notes.append(f"Judged and not returned: {', '.join(parts)}.")
        return notes

    def _n_shown(self, whole: bool) -> int:
        """The rows to print: down to the cutoff, and the documents whose ties reach over it.

        Where the measure is undefined no row adds anything, and none is printed.
        """
        n = len(self._table)
        if whole:
            return n
        cutoff = self._cut.cutoff
        if self.is_empty:
            return 0
        if cutoff is not None and cutoff < n:
            groups = self._table["tie_group"].to_pylist()
            n = cutoff
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
        shown = [
            name
            for name in table.column_names
            if table[name].null_count < len(table) or name in ("rank", "contribution")
        ]
        n = min(len(self._ranks.added), len(table))
        if "expected_gain" in shown and table["expected_gain"].slice(0, n).equals(table["gain"].slice(0, n)):
            shown.remove("expected_gain")
        rows = table.select(shown).to_pylist()
        texts = [shown, *([_text(name, value) for name, value in row.items()] for row in rows)]
        return texts if rows else []

    def text(self, whole: bool = False, see: str = "to_arrow()", markdown: bool = False) -> str:
        """The heading, the table and its notes.

        Parameters
        ----------
        whole : bool
            All rows. Default: those down to the cutoff, at most 30.
        see : str
            What the text names that shows columns for which a terminal has no room.
        markdown : bool
            A table in Markdown, in place of one that fits the terminal.
        """
        texts, width = self._texts(whole), 0 if markdown else terminal_width()
        notes = self.notes(whole, "to_arrow() has" if see == "to_arrow()" else "--all shows")
        shown = (
            [markdown_table(texts, ()) if markdown else fit(texts, 0, _DROPS, width, see)] if texts else []
        )
        gap = [""] if markdown else []
        return "\n".join([self.heading(), *gap, *shown, *gap, *(wrapped(note, width) for note in notes)])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return _html_of(self.heading(), self._texts(whole=False), self.notes(whole=False))


# columns that are left out where a terminal has no room, in this order
_DROPS = (
    ("ideal_grade", "ideal_contribution"),
    ("gain", "expected_gain", "discount"),
    ("cumulative",),
    ("score",),
    ("tie_group",),
)


class Explanations(AsFrame, dict[str, Explanation]):
    """Explanations of one query for several systems, by the names of the systems."""

    def __init__(self, explanations: Mapping[str, Explanation]) -> None:
        super().__init__(explanations)

    def to_arrow(self) -> pa.Table:
        """The tables of all systems, one after the other; the first column is the `system`."""
        tables = []
        for name, each in self.items():
            table = each.to_arrow()
            tables.append(table.add_column(0, "system", pa.array([name] * len(table), pa.string())))
        return pa.concat_tables(tables, promote_options="permissive")

    def heading(self) -> str:
        first, *_ = self.values()
        values = ", ".join(f"{each.value:.6f} ({visible(system)})" for system, each in self.items())
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

    def text(self, whole: bool = False, see: str = "to_arrow()", markdown: bool = False) -> str:
        """As `Explanation.text`; where systems do not fit side by side, each has a table of its own."""
        texts, width = self._texts(whole), 0 if markdown else terminal_width()
        blocks, gone = [], list[str]()
        if markdown and texts:
            blocks = ["", markdown_table(texts, ()), ""]
        elif texts and (not width or width_of(texts) <= width):
            blocks = [text_table(texts, left=0)]
        elif texts:
            for system in self:
                names = [name for name in texts[0] if name.startswith(f"{system} ")]
                places = [0, *map(texts[0].index, names)]
                header = ["rank", *(name.removeprefix(f"{system} ") for name in names)]
                table, left = fitted(
                    [header, *([row[place] for place in places] for row in texts[1:])], 0, _DROPS, width
                )
                blocks.append(f"{visible(system)}\n{table}\n")
                gone += [name for name in left if name not in gone]
        notes = self.notes(whole, "to_arrow() has" if see == "to_arrow()" else "--all shows")
        notes = [wrapped(note, width) for note in notes]
        return "\n".join([self.heading(), *blocks, *left_out(gone, width, see), *notes])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return _html_of(self.heading(), self._texts(whole=False), self.notes(whole=False))


def _html_of(heading: str, texts: list[list[str]], notes: list[str]) -> str:
    said = "".join(f"<p>{html_text(note)}</p>" for note in notes)
    return f"<p>{html_text(heading)}</p>{html_table(texts, 0) if texts else ''}{said}"


# ---- parts ----


_NO = np.empty(0)
_NOTHING = Ranks(_NO, _NO, _NO, _NO, _NO, _NO, math.nan, 0.0)


def _gains(measure: Measure, rankings: Rankings) -> Float64:
    if measure.way == "intents":
        return np.zeros(rankings.n_docs)
    gains = plan.gains_of_documents(measure, rankings)
    if measure.params.get("ips") and rankings.propensity is not None:
        gains = gains / np.maximum(rankings.propensity, measure.clip)
    return gains


def _order(measure: Measure, rankings: Rankings, gains: Float64) -> tuple[Int64, int]:
    """Documents by rank, dropped documents last, and the number of documents that are not dropped."""
    ties, number = measure.params.get("ties"), tie_numbers(rankings.scores)
    turn = {"best": -1.0, "worst": 1.0}.get(str(ties), 0.0)
    turn = -turn if measure.definition.over == "judged" else turn
    dropped = np.zeros(rankings.n_docs, np.bool_)
    if measure.params.get("judged_only") and rankings.is_judged is not None:
        dropped = ~rankings.is_judged
    order = np.lexsort((np.arange(rankings.n_docs), turn * gains, number, dropped))
    return order, int((~dropped).sum())


def _pad(values: Float64, n: int, by: float = math.nan) -> Float64:
    return np.append(values[:n], np.full(max(n - len(values), 0), by))


def _null_where_nan(values: Float64) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _tie_groups(scores: npt.NDArray[Any], n: int) -> pa.Array:
    """The number of each document's group of ties, in order of rank; null for documents that are not tied."""
    _, places, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    several = sizes[places] > 1
    first_seen = list(dict.fromkeys(places[several].tolist()))
    numbers = [
        first_seen.index(place) + 1 if tied else None
        for place, tied in zip(places.tolist(), several, strict=True)
    ]
    return pa.array(numbers + [None] * (n - len(numbers)), pa.int64())


def _missed_grades(rankings: Rankings) -> tuple[Float64, Int64]:
    """Grades of judged documents that were not returned, and the number of documents of each grade."""
    if rankings.judged is None:
        return np.empty(0), np.empty(0, np.int64)
    flags = slice(None) if rankings.is_judged is None else rankings.is_judged
    grades, counts = np.unique(rankings.judged.relevance.astype(np.float64), return_counts=True)
    returned = rankings.relevance[flags].astype(np.float64)
    left = counts - np.array([np.count_nonzero(returned == grade) for grade in grades], np.int64)
    return grades[left > 0], left[left > 0]


def _pairs(gains: Float64, counted: int, ranked: int, *, either: bool) -> list[tuple[int, int]]:
    """Pairs of ranks whose lower document gains more, or otherwise: all; in a long list the first and last of
    each gain.
    """
    whole = ranked * ranked * max(counted, 1) <= _MOST_EXCHANGED
    pairs: list[tuple[int, int]] = []
    for rank in range(min(counted, ranked)):
        others = gains[rank + 1 :]
        below = np.flatnonzero(others != gains[rank] if either else others > gains[rank]) + rank + 1
        if not whole:
            of_gain = [below[gains[below] == gain] for gain in np.unique(gains[below])]
            below = np.unique([end for each in of_gain for end in (each[0], each[-1])]).astype(np.int64)
        pairs += [(rank, int(other)) for other in below]
    return pairs


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if name in ("grade", "ideal_grade", "score"):
        return f"{value:g}"
    return f"{value:.6f}" if isinstance(value, float) else str(value)
