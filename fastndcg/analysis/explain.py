"""Explain the value of a query, rank by rank, from the numbers that the kernels sum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.analysis.ranges import check_rankings
from fastndcg.common.arrays import offsets_from
from fastndcg.common.arrow_types import combine, decode
from fastndcg.common.exports import AsFrame
from fastndcg.common.markup import html_table, html_text
from fastndcg.common.table import digits, fit, quoted, terminal_width, wrapped
from fastndcg.errors import InputError, InputTypeError, MeasureError, count_of, known_arguments, suggest
from fastndcg.measures import IDCG, as_measure
from fastndcg.measures.measure import hold_functions
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import gain_values, ideals, methods
from fastndcg.scoring.discount_tables import discount_of, discount_table
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, with_roles_of_both

if TYPE_CHECKING:
    from typing import Literal

    from fastndcg.common.arrays import Array, Float64, Int64
    from fastndcg.measures import Measure, MeasureLike
    from fastndcg.typing import Chart, Judgments

_MOST_CUT = 200_000_000  # documents of all cut rankings of a query; as many took 12 s compiled
_TOGETHER = 2_000_000  # documents of rankings that are evaluated together
_NO = np.empty(0)
_SHOWN = 30  # rows of a printed table, at most, unless all are asked for
# columns that are left out where a terminal has no room, in this order
_DROPS = (
    ("ideal_doc_id", "ideal_grade", "ideal_contribution"),
    ("gain", "discount"),
    ("cumulative",),
    ("score",),
    ("tie_group",),
)


@overload
def explain(rankings: Rankings, measure: MeasureLike, query: object) -> Explanation: ...
@overload
def explain(
    qrels: Judgments, run: Judgments, measure: MeasureLike, query: object, **roles: Any
) -> Explanation: ...
@known_arguments  # type: ignore[misc]  # the measure is the second argument or the third
@partial(with_roles_of_both, without=("query",))
def explain(
    rankings: Any = None,
    run: Any = None,
    measure: Any = None,
    query: Any = None,
    *,
    qrels: Any = None,
    **roles: Any,
) -> Explanation:
    """Show where the value of one query comes from: gain, discount and contribution of each document, beside
    the ideal.

    Called as `explain(rankings, measure, query)`, or as `explain(qrels, run, measure, query)`, which joins
    judgments and a run first, as `evaluate` does.

    A rank contributes the value of the ranking cut below it minus that of the ranking cut above it, so that
    contributions add up to the value of every measure. A ranking that is cut to nothing counts 0, and so does
    one for which the measure is undefined.

    Parameters
    ----------
    rankings : Rankings
    qrels, run : judgments and a run
        In place of rankings, of any shape that `evaluate` takes.
    measure : Measure, notation, or ir_measures object
    query : id
        An id of `rankings.query_ids`.
    doc_id, relevance, score, rank, weight, keep
    nan, ascending, unjudged, grades, types, columns, sep, decimal, relevant_ids, retrieved_ids, duplicates
        Columns of `qrels` and `run` and how to read them, as in `Rankings.from_qrels_run`.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        The query does not exist; the message names a similar id.
    MeasureError
        IDCG and NumRel, which look at no ranking; measures of several intents; nDCG with `ideal="returned"`
        and averaged ties. A query of many thousands of documents, for a measure without a cutoff.

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
    Not shown: 1 document; to_arrow() shows all.
    >>> explain({"q1": {"b": 1}}, {"q1": {"a": 0.9, "b": 0.5}}, "RR", query="q1").value
    0.5
    """
    passed = [each for each in (run, measure, query) if each is not None]
    if qrels is None and len(passed) == 2:
        run, measure, query = None, *passed
    if measure is None or query is None:
        raise InputTypeError(
            "a measure and a query are needed, as in explain(rankings, measure, query) or "
            "explain(qrels, run, measure, query)"
        )
    wanted = as_measure(measure)
    if run is not None:
        from fastndcg.sources.trec import rankings_of_both, runs_by_name

        if qrels is not None and rankings is not None:
            raise InputTypeError("qrels= and run= take the place of rankings; give these two")
        if (several := runs_by_name(run)) is not None:
            raise InputTypeError(f"run is several runs: {', '.join(several)}; expected one of them")
        judged = rankings if qrels is None else qrels
        rankings = rankings_of_both(judged, run, Roles.of(roles, "explain", (*OF_ONE_TABLE, "query")))
    elif roles:
        raise InputTypeError(f"{next(iter(roles))}= is of judgments and a run; rankings have their columns")
    check_rankings(rankings)
    ids = decode(combine(rankings.query_ids))
    try:
        row = int(pc.index(ids, pa.scalar(query).cast(ids.type)).as_py())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError):
        row = -1
    if row < 0:
        some = [str(one) for one in ids[:200_000].to_pylist()]
        like = f", such as {', '.join(some[:3])}" if some else ""
        said = f"query {query!r} is not among {count_of(len(ids), 'query')}{like}."
        raise InputError(said + suggest(str(query), some))
    if wanted.definition.ranking != "system" or wanted.definition.method == "intents":
        raise MeasureError(
            f"{wanted} covers several intents or ignores the ranking, so no document has one gain. Explain "
            "a measure with one grade per document, such as nDCG"
        )
    with hold_functions([wanted]):
        return Explanation(rankings[row : row + 1], wanted)


class _Ideal(NamedTuple):
    """The ideal ranking of a query, (n_ideal,) each."""

    rows: list[int | None]  # row of the document in the rankings; None if it was not returned
    grades: Float64
    gains: Float64
    discounted: Float64


class Explanation(AsFrame):
    """The result of `explain`: one query, document by document.

    Attributes
    ----------
    measure, query
    value : float
        The value that `evaluate` returns, with the same bits.
    is_empty : bool
        Whether the measure is undefined for the query. `value` is then that of the measure's `empty`.
    """

    def __init__(self, rankings: Rankings, measure: Measure) -> None:
        self.measure, self._rankings = measure, rankings
        self.query = rankings.query_ids[0].as_py()
        values, undefined = methods.defined_values((measure,), rankings, 1)
        self.value, self.is_empty = float(values[0, 0]), bool(undefined[0, 0])
        if measure.cutoff_column is not None:
            measure @= int(methods.cutoffs_of_queries(measure.cutoff_column, rankings)[0])
        self._cut = measure
        self._gains = gain_values.gains_of_documents(measure, rankings)
        if measure.params.get("ips") and rankings.propensity is not None:
            self._gains = self._gains / np.maximum(rankings.propensity, measure.clip)
        # documents by rank, dropped documents last, and the number of documents that are not dropped
        ties = str(measure.params.get("ties", "average"))
        turn = {"best": -1.0, "worst": 1.0}.get(ties, 0.0)
        turn = -turn if measure.definition.divisor == "judged" else turn
        dropped = np.zeros(rankings.n_docs, np.bool_)
        if measure.params.get("judged_only") and rankings.is_judged is not None:
            dropped = ~rankings.is_judged
        _, code = np.unique(rankings.scores, return_inverse=True)
        self._order = np.lexsort((np.arange(len(code)), turn * self._gains, -code, dropped))
        self._n_ranked = n = int((~dropped).sum())
        # a step is a rank, or a group of ties that are averaged; all ranks below the cutoff are one step
        self._tie = -code[self._order[:n]]
        step = self._tie if ties in ("average", "block") else np.arange(n)
        starts = np.flatnonzero(np.append(True, step[1:] != step[:-1])[:n])
        if measure.cutoff is not None:
            starts = starts[: np.searchsorted(starts, measure.cutoff) + 1]
        self._steps = list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=False))
        self._discounts = self._discounts_of(n, measure.cutoff)
        self._ideal = self._ideal_ranking()
        self._table = self._make_table()

    def _discounts_of(self, n: int, cutoff: int | None = None) -> Float64:
        """The discount of each of n ranks, 0 below the cutoff; NaN where the measure has none."""
        discount, shown = discount_of(self._cut), n if cutoff is None else min(n, cutoff)
        weights = np.full(shown, math.nan) if discount == "none" else discount_table(discount, shown)
        return np.append(weights, np.zeros(n - shown))

    def _ideal_ranking(self) -> _Ideal:
        """The ideal ranking, down to its last gain; of no documents where the measure has none."""
        measure, rankings, order = self._cut, self._rankings, self._order[: self._n_ranked]
        if measure.definition.divisor != "ideal" or self.is_empty:
            return _Ideal([], _NO, _NO, _NO)
        ideal, cutoff = measure.params.get("ideal", "full"), measure.cutoff
        _, grades = ideals.judged_documents(rankings, measure)
        documents = self._grades[order]
        if (assumed := measure.params.get("unjudged")) is not None:
            documents = np.where(np.isnan(documents), float(assumed), documents)
        if ideal in ("scored", "returned"):
            grades = documents[: cutoff if ideal == "returned" else None]
            grades = grades[~np.isnan(grades)]
        function = gain_values.gain_function_of(measure)
        distinct, codes = np.unique(grades.astype(np.float64), return_inverse=True)
        gain_of = np.array([gain_values.gain_of(function, grade) for grade in distinct.tolist()], np.float64)
        codes = codes[np.argsort(-gain_of[codes], kind="stable")]
        gains, grades = gain_of[codes], distinct[codes]
        if ideal == "full":  # documents of the best grade there is, which are no documents of the query
            best = gain_values.top_of(function)
            best = float(gains[0]) if math.isnan(best) else best
            shown = self._n_ranked if cutoff is None else cutoff
            of_best = distinct[gain_of == best]
            rows: list[int | None] = [None] * shown
            gains, grades = np.full(shown, best), np.full(shown, of_best[0] if len(of_best) else math.nan)
        else:
            if ideal == "judged_returned":
                gains = gains[: self._n_ranked]
            gains = np.trim_zeros(gains[: None if ideal == "judged_uncut" else cutoff], "b")
            grades = grades[: len(gains)]
            # of equal grades first the documents that were returned, by rank
            returned = {grade: iter(order[documents == grade].tolist()) for grade in distinct.tolist()}
            rows = [next(returned[grade], None) for grade in grades.tolist()]
        return _Ideal(rows, grades, gains, gains * self._discounts_of(len(gains)))

    @cached_property
    def _grades(self) -> Float64:
        """The grade of each document, NaN for unjudged documents."""
        grades = self._rankings.relevance.astype(np.float64)
        if self._rankings.is_judged is not None:
            grades[~self._rankings.is_judged] = math.nan
        return grades

    def _contributions(self) -> tuple[Float64, Float64]:
        """What each ranked document adds to the value, and the value so far."""
        n, order, measure = self._n_ranked, self._order, self._cut
        contribution, cumulative, before = np.zeros(n), np.zeros(n), 0.0
        if self.is_empty:
            return contribution, cumulative
        over = 1.0
        if "ideal" in measure.params and measure.floor == "zero":
            # the ideal of some depends on what was returned, so that DCG is cut and not nDCG
            over = float(methods.values((ideals.part_of(measure, IDCG),), self._rankings, 1)[0, 0])
            measure = ideals.part_of(measure)
        elif measure.definition.gain == "scaled" and measure.cutoff is None:
            measure @= n
        cuts = [order[:end] for _, end in self._steps[:-1]]
        if sum(map(len, cuts)) > _MOST_CUT:
            raise MeasureError(
                f"{self.measure} of a query of {n:,} documents would take too long to explain; "
                f"give a cutoff, as in {self.measure.name}@1000"
            )
        values = self._values(measure, cuts, self._rankings.scores[order]) / over
        for (start, end), value in zip(self._steps, [*values.tolist(), self.value], strict=False):
            rise = value - before
            share = np.maximum(self._gains[order[start:end]] * np.sign(rise), 0.0)
            share = share if share.any() else np.ones(end - start)
            contribution[start:end] = rise * (share / share.sum())
            cumulative[start:end] = before + np.cumsum(contribution[start:end])
            cumulative[end - 1] = before = value
        return contribution, cumulative

    def _values(self, measure: Measure, lists: Iterable[Int64], scores: Array) -> Float64:
        """The value of each list of rows, 0 where it has none, with the first of these scores."""
        rankings, lists, values = self._rankings, iter(lists), [_NO]
        is_judged, propensity = rankings.is_judged, rankings.propensity
        _, pool = ideals.pool(rankings)
        while some := list(islice(lists, max(_TOGETHER // (len(scores) + len(pool) + 1), 1))):
            rows = np.concatenate(some)
            several = Rankings._from_offsets(
                offsets_from(np.array([len(each) for each in some])),
                rankings.relevance[rows],
                np.concatenate([scores[: len(each)] for each in some]),
                is_judged=None if is_judged is None else is_judged[rows],
                judged=(np.arange(len(some) + 1) * len(pool), np.tile(pool, len(some))),
                propensity=None if propensity is None else propensity[rows],
            )
            values.append(methods.values((measure,), several, None)[0])
        return np.nan_to_num(np.concatenate(values))

    def _make_table(self) -> pa.Table:
        rankings, order, ideal, ranked = self._rankings, self._order, self._ideal, self._n_ranked
        n = max(len(order), len(ideal.rows))
        contribution, cumulative = self._contributions()
        discount = self._discounts.copy()
        for start, end in self._steps:
            discount[start:end] = discount[start:end].mean() if end - start > 1 else discount[start:end]
            if self._cut.cutoff is not None and start >= self._cut.cutoff:
                discount[start:end] = math.nan

        def column(values: Float64) -> pa.Array:
            padded = np.append(values, np.full(n - len(values), math.nan))
            return pa.array(padded, mask=np.isnan(padded))

        def whole(values: list[int | None]) -> pa.Array:
            return pa.array([*values, *[None] * (n - len(values))], pa.int64())

        def names(rows: pa.Array) -> pa.Array:
            return pa.nulls(n) if rankings.doc_ids is None else combine(rankings.doc_ids).take(rows)

        rows = whole(order.tolist())
        _, places, sizes = np.unique(rankings.scores[order], return_inverse=True, return_counts=True)
        several = dict.fromkeys(places[sizes[places] > 1].tolist())
        groups = {place: number for number, place in enumerate(several, 1)}
        total = ideal.discounted.sum()
        columns = {
            # dropped documents have no rank
            "rank": pa.array(
                np.arange(1, n + 1), mask=(np.arange(n) >= ranked) & (np.arange(n) < len(order))
            ),
            "doc_id": names(rows),
            "grade": column(self._grades[order]),
            "score": pa.array(rankings.scores).take(rows),
            "gain": column(self._gains[order]),
            "discount": column(discount),
            "contribution": column(contribution),
            "cumulative": column(cumulative),
            "ideal_doc_id": names(whole(ideal.rows)),
            "ideal_grade": column(ideal.grades),
            "ideal_contribution": column(ideal.discounted / total if total else ideal.discounted),
            "tie_group": whole([*map(groups.get, places.tolist())]),
        }
        return pa.table(columns)

    @property
    def ideal(self) -> float:
        """The sum by which the value is divided, such as IDCG; NaN for a measure without an ideal ranking."""
        return float(np.cumsum(self._ideal.discounted)[-1]) if self._ideal.rows else math.nan

    def to_arrow(self) -> pa.Table:
        """A row for each document, by descending score, and further rows if the ideal ranking is longer.

        - rank (null for dropped documents), doc_id, grade (null if unjudged) and score;
        - gain of the document; discount of the rank, null below the cutoff and for measures without one;
        - contribution: the value of the ranking cut below this rank, minus that of the ranking cut above it;
          cumulative, the value so far;
        - ideal_doc_id, ideal_grade and ideal_contribution at this rank of the ideal ranking, null if the
          measure has none; a judged document that was not returned has no id;
        - tie_group, a number for each group of tied documents, null for documents that are not tied.

        Documents whose ties are averaged have the mean discount of their ranks. They share what they add
        together in proportion to their gains: a rise those that gain, a fall those of negative gain, and
        where there are none, all equally.
        """
        return self._table

    def plot(self, ranks: int = 50, unit: Literal["share", "gain"] = "share") -> Chart:
        """Plot the contribution of each rank, beside the ideal. See `fastndcg.plot.contributions`."""
        from fastndcg.charts import plots

        return plots.contributions(self, ranks, unit)

    def text(self, whole: bool = False, see: str = "to_arrow()") -> str:
        """The heading, the table and its notes.

        `whole` shows all rows, instead of at most 30 down to the cutoff. `see` says what shows the columns
        that do not fit the terminal.
        """
        texts, width = self._texts(whole), terminal_width()
        shown = [fit(texts, 1, _DROPS, width, see)] if texts else []
        notes = self._notes(whole, "to_arrow()" if see == "to_arrow()" else "--all")
        return "\n".join([wrapped(self.heading(), width), *shown, *(wrapped(note, width) for note in notes)])

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        texts = self._texts(whole=False)
        notes = "".join(f"<p>{html_text(note)}</p>" for note in self._notes(False, "to_arrow()"))
        return f"<p>{html_text(self.heading())}</p>{html_table(texts, 0) if texts else ''}{notes}"

    def heading(self) -> str:
        said = f"{self.measure} of query {quoted(self.query)} is {digits(self.value)}"
        if self.is_empty:
            empty = self.measure.params.get("empty", 0)
            return f"{said}: it is undefined there, and counts by empty={empty!r}"
        if self._ideal.rows and self.measure.params.get("floor") != "worst":
            said += f" = {self.value * self.ideal:.6f} / {self.ideal:.6f}"
        return said

    def _notes(self, whole: bool, see: str) -> list[str]:
        """Notes below the table, of which `whole` says if it has all rows; `see` says what has the others."""
        shown = self._n_shown(whole)
        hidden = self._rankings.n_docs - shown
        if not shown and hidden <= 0:
            return ["No documents were returned."]
        notes = [f"Not shown: {count_of(hidden, 'document')}; {see} shows all."] if hidden > 0 else []
        if self._table["tie_group"].slice(0, shown).null_count < shown:
            notes.append("Documents of one tie_group have equal scores.")
        return notes

    def _n_shown(self, whole: bool) -> int:
        """The rows to print: down to the cutoff, and the documents whose ties reach over it; none where the
        measure is undefined, since no row adds anything.
        """
        n, cutoff = len(self._table), self._cut.cutoff
        if whole or self.is_empty:
            return n if whole else 0
        if cutoff is not None:
            n = max(min(n, cutoff), *(end for start, end in self._steps if start < cutoff), 0)
        return min(n, _SHOWN)

    def _texts(self, whole: bool) -> list[list[str]]:
        """The table as strings, the header first; empty columns are left out, and the header of no rows."""
        table = self._table.slice(0, self._n_shown(whole))
        always, names = ("rank", "contribution"), table.column_names
        shown = [name for name in names if table[name].null_count < len(table) or name in always]
        rows = table.select(shown).to_pylist()
        texts = [shown, *([_text(name, value) for name, value in row.items()] for row in rows)]
        return texts if rows else []


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if name in ("grade", "ideal_grade", "score"):
        return f"{value:g}"
    return digits(value) if isinstance(value, float) else str(value)
