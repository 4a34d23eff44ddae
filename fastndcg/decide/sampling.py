"""`sample_queries`: which queries to judge of many, with weights that undo how they were chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import array_of, column_of, is_number, plain
from fastndcg.errors import InputError, InputTypeError, check_choice, check_whole
from fastndcg.scores.slices import column_names, groups_of
from fastndcg.sources.columns import check_column
from fastndcg.sources.frames import source_of
from fastndcg.sources.given import is_path, open_paths
from fastndcg.sources.opened import OfText, Opened

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


def sample_queries(
    table: Any,
    n: int,
    *,
    by: str | Sequence[str] = (),
    weight: str | None = None,
    allocation: Literal["proportional", "neyman"] = "proportional",
    value: str | None = None,
    of: Literal["queries", "traffic"] = "queries",
    seed: int = 0,
) -> pa.Table:
    """Draw queries without replacement, by stratum and traffic, with weights that undo how they were drawn.

    Parameters
    ----------
    table : a table of any library, a mapping of columns, or the path of a file
        A row for each query.
    n : int
        How many queries are drawn.
    by : columns, optional
        Strata: combinations of their values, each of which has one query or more.
    weight : column, optional
        Traffic of each query, above 0: a query is drawn with a probability in proportion to it; those that
        are asked so often that this would exceed 1 are all drawn. Default: all queries of a stratum alike.
    allocation : "proportional" or "neyman"
        How many queries each stratum has: in proportion to its traffic, or its number of queries; or to that
        times the standard deviation of `value` in it.
    value : column, optional
        For "neyman": a number that varies as the measure will, such as its value last month.
    of : "queries" or "traffic"
        What the weighted mean of the sample estimates: the mean over all rows, or the mean weighted by
        traffic.
    seed : int
        The same seed draws the same rows of the same table.

    Returns
    -------
    pyarrow.Table
        The rows drawn, in the order of the table, and as the last column `weight`, float64, which
        `Rankings` and readers take as weight=. Another column of this name is replaced.

    Raises
    ------
    InputError
        More queries than rows, or fewer than strata; traffic that is not above 0; values that are missing.
    InputTypeError, ColumnError
        Data that is no table; a column that is missing, or holds no numbers.

    See Also
    --------
    evaluate : takes the weights of queries.
    judge_next : which documents to judge of them.

    Notes
    -----
    A query that is drawn with probability p has the weight 1/p (Horvitz and Thompson), or traffic / p. The
    draw is systematic over a random order, so that p is exact and each stratum has its number of queries.
    Without traffic, and of "traffic", the weights of each draw have one sum, and the weighted mean is
    unbiased. Of "queries" drawn by traffic the sum varies: the mean is a ratio, whose bias falls as 1/n. In
    simulation (5,000 queries, traffic of a Pareto tail of 1.2, values that rise with it, 1,500 draws) it was
    0.012 at n = 100, a fifth of the standard deviation; without traffic, and of "traffic", below 0.001.

    References
    ----------
    Horvitz and Thompson, JASA 1952; Neyman, Journal of the Royal Statistical Society 1934; Madow, Annals of
    Mathematical Statistics 1949.

    Examples
    --------
    >>> log = {"qid": [1, 2, 3, 4, 5, 6], "lang": ["de", "de", "de", "de", "fr", "fr"]}
    >>> sample_queries(log, 3, by="lang").select(["lang", "weight"]).to_pylist()
    [{'lang': 'de', 'weight': 2.0}, {'lang': 'de', 'weight': 2.0}, {'lang': 'fr', 'weight': 2.0}]
    """
    n, seed = check_whole("n", n, 1), check_whole("seed", seed, 0)
    check_choice("allocation", allocation, ("proportional", "neyman"))
    check_choice("of", of, ("queries", "traffic"))
    if (allocation == "neyman") != (value is not None):
        raise InputError(
            'allocation="neyman" and value= go together: a number that varies as the measure will'
        )
    opened: Opened = open_paths(table) if is_path(table) else source_of(table)
    strata, numbers = column_names(by), [name for name in (weight, value) if name is not None]
    for argument, name in [*(("by", name) for name in strata), ("weight", weight), ("value", value)]:
        if name is not None:
            check_column(opened.names, argument, name)
    rows = opened.table(list(opened.names), OfText(numbers, None))
    rows = pa.table([plain(column) for column in rows.columns], names=rows.column_names)
    if not len(rows) or n > len(rows):
        raise InputError(f"n={n:,} queries of {len(rows):,} rows; wanted no more than there are")
    traffic = np.ones(len(rows)) if weight is None else _numbers("weight", rows[weight], above=0.0)
    values = None if value is None else _numbers("value", rows[value], above=-math.inf)
    groups = groups_of([rows[name] for name in strata])[1] if strata else [np.arange(len(rows))]
    if n < len(groups):
        raise InputError(f"n={n:,} queries of {len(groups):,} strata; wanted one of each at least")
    with np.errstate(over="ignore"):
        sizes = np.array([traffic[group].sum() for group in groups])
        total = sizes.sum()
    if not math.isfinite(total):
        raise InputError("the column for weight sums up to more than a float64 holds; divide it by a number")
    if values is not None:
        sizes = sizes * [values[group].std() for group in groups]
    random, chance = np.random.default_rng(seed), np.zeros(len(rows))
    drawn = np.zeros(len(rows), np.bool_)
    for group, number in zip(groups, _allocate(sizes, [len(group) for group in groups], n), strict=True):
        chance[group] = _chances(traffic[group], number)
        order = group[random.permutation(len(group))]
        # systematic: a query is drawn where the sum of chances passes a whole number plus one random start
        start = random.random()
        ends = np.round(np.cumsum(chance[order]), 9) + start
        drawn[order] = np.floor(ends) > np.floor(np.append(start, ends[:-1]))
    chosen = np.flatnonzero(drawn)
    weights = (traffic if of == "traffic" else np.ones(len(rows)))[chosen] / chance[chosen]
    kept = rows.select([name for name in rows.column_names if name != "weight"])
    return kept.take(column_of(chosen)).append_column("weight", pa.array(weights))


def _numbers(argument: str, column: Any, above: float) -> Float64:
    kind = column.type
    if not (is_number(kind) or pa.types.is_boolean(kind)):
        raise InputTypeError(f"the column for {argument} holds {kind}; wanted numbers")
    numbers = array_of(pc.fill_null(column.cast(pa.float64()), math.nan)).astype(np.float64)
    bad = ~(np.isfinite(numbers) & (numbers > above))
    if bad.any():
        wanted = "numbers above 0; drop queries that nobody asks" if above == 0 else "finite numbers"
        row = int(np.argmax(bad))
        raise InputError(f"the column for {argument} has {numbers[row]:g} at row {row}; wanted {wanted}")
    return numbers


def _allocate(sizes: Float64, most: Sequence[int], n: int) -> Int64:
    """How many queries each stratum has: one or more, up to all, otherwise in proportion to the sizes."""
    limits: Int64 = np.array(most)
    sizes = np.where(sizes > 0, sizes, 0.0) if sizes.sum() > 0 else limits.astype(np.float64)
    found: Int64 = np.clip(np.floor(n * sizes / sizes.sum()), 1, limits).astype(np.int64)
    while (left := n - found.sum()) != 0:  # by the highest average, as seats are given to parties
        room = found < limits if left > 0 else found > 1
        each = np.where(room, sizes / found, -1.0 if left > 0 else np.inf)
        if left > 0 and (whole := np.floor(left * room * sizes / max((room * sizes).sum(), 1e-300))).any():
            found = np.minimum(found + whole.astype(np.int64), limits)
        else:
            found[int(np.argmax(each) if left > 0 else np.argmin(each))] += 1 if left > 0 else -1
    return found


def _chances(traffic: Float64, number: int) -> Float64:
    """The probability of each query, in proportion to traffic, 1 at most; they sum up to the number."""
    chances, free = np.ones(len(traffic)), np.ones(len(traffic), np.bool_)
    while number < len(traffic):
        left = number - np.count_nonzero(~free)
        chances[free] = left * traffic[free] / traffic[free].sum()
        above = free & (chances > 1)
        if not above.any():
            break
        chances[above], free[above] = 1.0, False
    return chances
