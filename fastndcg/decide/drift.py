"""`drift`: what part of a change of a mean came from within slices, and what part from their mix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import decode
from fastndcg.common.table import Table
from fastndcg.decide.matching import common_measures, places_in, scores_of, unique_ids
from fastndcg.errors import ColumnError, InputError
from fastndcg.scores.slices import check_free, check_kept, column_names, groups_of
from fastndcg.statistics.exact_sums import mean as mean_of
from fastndcg.statistics.intervals import check_confidence, t_interval

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

_NUMBERS = {
    **dict.fromkeys(("old_queries", "new_queries"), pa.int64()),
    **dict.fromkeys(("old_share", "new_share", "old_mean", "new_mean"), pa.float64()),
    **dict.fromkeys(("change", "low", "high"), pa.float64()),
    **dict.fromkeys(("within", "within_low", "within_high"), pa.float64()),
    **dict.fromkeys(("mix", "mix_low", "mix_high"), pa.float64()),
}


def drift(
    old: Scores | Rankings,
    new: Scores | Rankings,
    by: str | Sequence[str],
    *,
    measures: Any = None,
    confidence: float = 0.95,
    paired: bool = True,
) -> Table:
    """Split the change of a mean into change within slices and change of the mix of slices.

    A mean falls where slices became worse, or where a slice that was always worse became larger. With the
    share p and mean m of each slice s,

        within = sum over s of (old p + new p) / 2 * (new m - old m)
        mix    = sum over s of (new p - old p) * (old m + new m) / 2

    and within + mix is the change of the mean.

    Parameters
    ----------
    old, new : Scores, or Rankings with `measures`
        Values at two times, of the same queries, of other queries, or of some that are the same.
    by : str or sequence of str
        Kept columns whose values are the slices, as in `Scores.by`.
    measures, confidence : optional
        For Rankings, the measures to evaluate; for Scores, those to split (default: all that both have).
        Confidence of the intervals.
    paired : bool
        Whether queries with the same id are the same query, whose two values are not independent. False where
        ids are numbered anew each time.

    Returns
    -------
    Table
        For each measure a row for all queries, whose `part` is "all" and whose columns of `by` are null, and
        one for each slice, in the order of `Scores.by`, with numbers, shares of the (weighted) queries and
        means of both sides, and

        - change = new_mean - old_mean, with its interval from low to high;
        - within and mix: of all queries as above, with their intervals; of a slice its part of them. The mix
          of a slice is (new p - old p) times how far its mean is above that of all, so that the growth of a
          slice that is better than others counts above 0.

        A slice that only one side has counts to the mix alone. Means without queries are NaN.

    Raises
    ------
    ColumnError, InputError, InputTypeError, MeasureError
        A column that was not kept by both, has other types in them, or the name of a column of the result; a
        side without queries, or with a query twice (if `paired`); no common measure; no Scores or Rankings.

    See Also
    --------
    compare : two systems on the same queries.
    History : values of many times in a file.

    Notes
    -----
    Intervals are by Student's t, from the linearised error of the sums, in which shares are estimated too.
    A slice of one query has no deviation that could be known: that of the other slices takes its place.

    References
    ----------
    Kitagawa, Components of a difference between two rates, Journal of the American Statistical Association
    50, 1955; Oaxaca, International Economic Review 14, 1973.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate
    >>> old = Rankings.from_lists([[1, 0], [1, 0], [0, 1]], queries={"country": ["de", "de", "fr"]})
    >>> new = Rankings.from_lists([[1, 0], [0, 1], [0, 1]], queries={"country": ["de", "fr", "fr"]})
    >>> found = drift(evaluate(old, "RR"), evaluate(new, "RR"), by="country")
    >>> found.select(["country", "old_share", "new_share", "change", "within", "mix"]).to_pylist()[0]
    {'country': None, 'old_share': 1.0, 'new_share': 1.0, 'change': -0.16..., 'within': 0.0, 'mix': -0.16...}
    """
    confidence = check_confidence(confidence)
    scored = {"old": scores_of("old", old, measures), "new": scores_of("new", new, measures)}
    asked, names = common_measures(scored, measures), column_names(by)
    if not names:
        raise InputError('by names no column; wanted one or several that were kept, as in by="country"')
    check_free(names, {"part", "measure", *_NUMBERS})
    for name, scores in scored.items():
        if not scores.n_queries:
            raise InputError(f'"{name}" has no queries, so that nothing can be split')
        check_kept(names, scores.queries.column_names, f' in "{name}"')
    joined = []
    for name in names:
        sides = [pa.table({name: decode(each.queries[name])}) for each in scored.values()]
        try:
            joined.append(pa.concat_tables(sides, promote_options="permissive")[name])
        except pa.ArrowTypeError:
            one, other = (side[name].type for side in sides)
            raise ColumnError(
                f'the column "{name}" has the types {one} in "old" and {other} in "new"; make them one'
            ) from None
    distinct, groups = groups_of(joined)
    codes = np.empty(len(joined[0]), np.int64)
    for place, group in enumerate(groups):
        codes[group] = place
    split, pairs = scored["old"].n_queries, np.full(scored["new"].n_queries, -1)
    if paired:  # the old query of each new query, -1 for none
        ids = [unique_ids(name, scores, None) for name, scores in scored.items()]
        pairs = places_in(ids[1], ids[0]) if ids[0].type == ids[1].type else pairs
    rows: list[dict[str, Any]] = []
    for measure in asked:
        before = _Side.of(scored["old"], measure, codes[:split], len(groups))
        after = _Side.of(scored["new"], measure, codes[split:], len(groups))
        # the places, among those that count, of queries that both sides have
        place_of = np.full(split + 1, -1)  # the last is that of -1
        place_of[before.rows] = np.arange(len(before.rows))
        partner = place_of[pairs[after.rows]]
        both = partner[partner >= 0], np.flatnonzero(partner >= 0)
        for place, numbers in enumerate(_split(before, after, both, confidence)):
            rows.append({"part": "slice" if place else "all", "measure": str(measure)} | numbers)
    schema = pa.schema(dict.fromkeys(("part", "measure"), pa.string()) | _NUMBERS)
    table = pa.Table.from_pylist(rows, schema)
    of_rows = pa.array([None, *range(len(groups))] * len(asked), pa.int64())
    for number, (name, column) in enumerate(zip(names, distinct, strict=True)):
        table = table.add_column(2 + number, name, column.take(of_rows))
    return Table(table, 2 + len(names))


class _Side(NamedTuple):
    """The queries of one time that count, and the share and mean of each slice."""

    values: Float64
    weight: Float64  # their sum is 1
    codes: Int64  # the slice of each query
    rows: Int64  # the place of each query among all of its side
    mean: float
    counts: Int64  # queries of each slice, as are the next
    shares: Float64
    means: Float64  # NaN without queries
    residuals: Float64  # what a value adds to the error of its slice's mean, times the share of the slice
    freedom: float

    @classmethod
    def of(cls, scores: Scores, measure: Any, codes: Int64, n_groups: int) -> _Side:
        row = scores.measures.index(scores._find(measure))
        counts = scores._counts(row)
        rows = np.arange(scores.n_queries) if counts is None else np.flatnonzero(counts)
        values, weight = scores._values_that_count(row)
        own, total = codes[rows], np.ones(len(rows)) if weight is None else weight
        total = total / total.sum() if len(rows) else total
        n, shares = np.bincount(own, minlength=n_groups), np.bincount(own, total, n_groups).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            means: Float64 = np.bincount(own, total * values, n_groups) / shares
        apart = (values - means[own]) * np.sqrt(n[own] / np.maximum(n[own] - 1, 1))
        mean, alone = mean_of(values, weight), n[own] == 1
        if alone.any():  # on average these lie as far from a mean as others do from that of their slice
            far = (values - mean) * math.sqrt(len(rows) / max(len(rows) - 1, 1))
            near = np.square(apart[~alone]).mean() if not alone.all() else math.inf
            of_all = np.square(far).mean()
            apart[alone] = far[alone] * math.sqrt(min(near / of_all, 1.0) if of_all else 0.0)
        freedom = float(1 / np.square(total).sum() - 1) if len(rows) else math.nan
        return cls(values, total, own, rows, mean, n, shares, means, total * apart, freedom)


def _split(old: _Side, new: _Side, both: tuple[Int64, Int64], confidence: float) -> list[dict[str, Any]]:
    """The numbers of all queries, then those of each slice."""
    there = (old.counts > 0) & (new.counts > 0)
    # a slice that one side lacks did not change within
    was = np.where(old.counts > 0, old.means, np.where(new.counts > 0, new.means, 0.0))
    now = np.where(new.counts > 0, new.means, was)
    rise, middle = now - was, (was + now) / 2
    growth, half = new.shares - old.shares, (new.shares + old.shares) / 2
    within, mix = half * rise, growth * (middle - (old.mean + new.mean) / 2)

    def error(of_old: Float64, of_new: Float64) -> tuple[float, float]:
        """Standard error of a sum of what each query adds to it, and its degrees of freedom."""
        parts = np.square(of_old).sum(), np.square(of_new).sum()
        square = sum(parts) + 2 * (of_old[both[0]] * of_new[both[1]]).sum()
        freedom = min(old.freedom, new.freedom)
        if not freedom > 0:  # one query has no deviation that could be known
            return math.nan, freedom
        if not len(both[0]):
            below = sum(part**2 / side.freedom for part, side in zip(parts, (old, new), strict=True))
            freedom = sum(parts) ** 2 / below if below else freedom
        return math.sqrt(max(square, 0.0)), float(freedom)

    def of_total(sign: int, side: _Side) -> tuple[Float64, Float64, Float64]:
        """What each query of a side adds to the errors of the change, of within and of mix."""
        n, own, weight, rest = len(side.values), side.codes, side.weight, side.residuals
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(there, half / side.shares, 0.0)[own]
            shifted = np.where(there, growth / (2 * side.shares), float(sign))[own]
        share = weight * (rise[own] - (side.shares * rise).sum()) / 2
        level = weight * (middle[own] - (side.shares * middle).sum())
        change = sign * weight * (side.values - side.mean) * math.sqrt(n / max(n - 1, 1))
        return change, share + sign * kept * rest, sign * level + shifted * rest

    with np.errstate(invalid="ignore"):
        sums = new.mean - old.mean, float(within.sum()), float(mix.sum())
        errors = [error(*pair) for pair in zip(of_total(-1, old), of_total(1, new), strict=True)]
    numbers = [len(old.values), len(new.values), 1.0, 1.0, old.mean, new.mean]
    for value, each in zip(sums, errors, strict=True):
        numbers += [value, *t_interval(value, *each, confidence)]
    rows: list[list[Any]] = [numbers]
    # the squared standard error of the change of each slice's mean
    n_groups = len(old.counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [side.residuals / side.shares[side.codes] for side in (old, new)]
    squares = np.zeros(n_groups)
    for side, term in zip((old, new), terms, strict=True):
        squares += np.bincount(side.codes, np.square(term), n_groups)
    same = old.codes[both[0]] == new.codes[both[1]]
    first, second = both[0][same], both[1][same]
    squares -= 2 * np.bincount(old.codes[first], terms[0][first] * terms[1][second], n_groups)
    columns = old.counts, new.counts, old.shares, new.shares, old.means, new.means
    for n_old, n_new, *shares, before, after, square, inside, moved in zip(
        *(column.tolist() for column in (*columns, np.maximum(squares, 0.0), within, mix)), strict=True
    ):
        n = min(n_old, n_new)
        own = t_interval(after - before, math.sqrt(square) if n > 1 else math.nan, n - 1.0, confidence)
        numbers = [n_old, n_new, *shares, before, after, after - before, *own]
        rows.append([*numbers, inside, None, None, moved, None, None])
    return [dict(zip(_NUMBERS, row, strict=True)) for row in rows]
