"""Agreement of two rankings and of judges."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError, InputTypeError, check_choice
from fastndcg.statistics.intervals import scipy

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64


def tau_b(a: Float64, b: Float64) -> float:
    """Kendall's tau-b of two lists of scores of the same items, by SciPy; NaN if a list is all ties."""
    stats = scipy("stats", 'method="tau_b"')
    return float(stats.kendalltau(a, b).statistic) if len(a) > 1 else math.nan


def tau_ap(a: Float64, b: Float64) -> float:
    """tau_AP of the ranking by `b` to the reference ranking by `a`: the expectation over all orders of tied
    items.

    2 / (n - 1) * sum over ranks i > 1 of b of C(i) / (i - 1), minus 1, where C(i) of the items above rank i
    are also above it in a (Yilmaz, Aslam and Robertson, SIGIR 2008). Two items that tie in a count half.

    >>> tau_ap(np.array([3.0, 2.0, 1.0]), np.array([2.0, 3.0, 1.0]))
    0.0
    """
    if len(a) < 2:
        return math.nan
    order = np.argsort(-b, kind="stable")
    ranked = zip((-b[order]).tolist(), a[order].tolist(), strict=True)
    seen: list[float] = []
    total = 0.0
    for _, group in groupby(ranked, key=lambda pair: pair[0]):
        tied = [value for _, value in group]
        above, size = len(seen), len(tied)
        # of the items above the group; of others of it that an order puts above, half on average
        concordant = sum(above - (bisect_left(seen, v) + bisect_right(seen, v)) / 2 for v in tied)
        for others in range(size):
            if above + others:
                total += (concordant / size + others / 2) / (above + others)
        for value in tied:
            insort(seen, value)
    return 2 * total / (len(a) - 1) - 1


def _places(scores: Mapping[Hashable, float]) -> dict[Hashable, tuple[int, int]]:
    """Of each item the number of items above it, and of items in its tied group."""
    places: dict[Hashable, tuple[int, int]] = {}
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    for _, group in groupby(ranked, key=lambda item: item[1]):
        tied = [item for item, _ in group]
        places |= dict.fromkeys(tied, (len(places), len(tied)))
    return places


def rbo(a: Mapping[Any, float], b: Mapping[Any, float], p: float) -> float:
    """Rank-biased overlap, extrapolated, of two rankings of any items and lengths; the expectation over all
    orders of tied items.

    With X(d) the expected number of items among the first d of both, s <= l the lengths: (1 - p) / p * (sum
    over d <= l of X(d) / d * p^d + sum over s < d <= l of X(s) (d - s) / (s d) * p^d) + ((X(l) - X(s)) / l +
    X(s) / s) * p^l (Webber, Moffat and Zobel, TOIS 2010; ties as in variant a of Corsi and Urbano, SIGIR
    2024).

    >>> round(rbo({"x": 3, "y": 2, "z": 1}, {"x": 3, "z": 2, "y": 1}, 0.9), 6)
    0.955
    """
    short, long = sorted((len(a), len(b)))
    if not short:
        return math.nan
    places, others = _places(a), _places(b)
    # what each item adds to X between its first and its last possible depth, and 1 from there
    overlap, whole = np.zeros(long + 2), np.zeros(long + 2)
    for item in places.keys() & others.keys():
        one, other = places[item], others[item]
        first, last = max(one[0], other[0]) + 1, max(sum(one), sum(other))
        if first < last:
            depths = np.arange(first, last)
            shares = [np.minimum((depths - above) / size, 1.0) for above, size in (one, other)]
            overlap[first:last] += shares[0] * shares[1]
        whole[last] += 1
    overlap = (overlap + np.cumsum(whole))[1 : long + 1]
    depths = np.arange(1, long + 1)
    weights = p**depths
    agreed, reached, last_depth = overlap[short - 1], overlap[long - 1], p**long
    total = (overlap / depths * weights).sum()
    total += (agreed * (depths - short) / (short * depths) * weights)[short:].sum()
    return float((1 - p) / p * total + ((reached - agreed) / long + agreed / short) * last_depth)


# ---- judges ----

METRICS = ("nominal", "ordinal", "interval", "ratio")


def cohen_kappa(a: Any, b: Any, weights: str | None = None) -> float:
    """Cohen's kappa of two judges: 1 - (observed disagreement) / (disagreement expected of independent
    judges). 1 is full agreement, 0 is the agreement of chance.

    Parameters
    ----------
    a, b : (n_items,)
        The grades of each judge, one for each item: numbers or strings.
    weights : None, "linear" or "quadratic"
        The disagreement of two different grades: None, always 1; "linear", the difference of their numbers,
        where the grades that occur are numbered in order; "quadratic", its square.

    Returns
    -------
    float
        NaN if both judges give the same grade to all items.

    Raises
    ------
    InputError
        Lengths that differ, missing grades, weights that do not exist.

    See Also
    --------
    fleiss_kappa, krippendorff_alpha : any number of judges.
    rank_agreement : agreement of rankings instead of judges.

    References
    ----------
    Cohen, Educational and Psychological Measurement 1960; Psychological Bulletin 1968 (weights).

    Examples
    --------
    >>> cohen_kappa([1, 1, 0, 0, 1], [1, 0, 0, 0, 1])
    0.6153846153846154
    """
    check_choice("weights", weights, (None, "linear", "quadratic"))
    first, second = np.asanyarray(a), np.asanyarray(b)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(
            f"a has shape {first.shape} and b {second.shape}; wanted a grade by each judge for each item"
        )
    for name, lacking in (("a", _missing(first)), ("b", _missing(second))):
        if lacking.any():
            raise InputError(
                f"{name} lacks grades, the first at position {int(np.argmax(lacking))}; "
                "wanted a number or a string for each item"
            )
    levels, codes = _levels([*first.tolist(), *second.tolist()])
    counts = np.zeros((len(levels), len(levels)))
    np.add.at(counts, (codes[: len(first)], codes[len(first) :]), 1)
    number = np.arange(len(levels))
    apart = np.abs(number[:, None] - number).astype(np.float64)
    apart = (apart > 0) * 1.0 if weights is None else apart ** (1 if weights == "linear" else 2)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(len(first), 1)
    by_chance = (apart * expected).sum()
    return float(1 - (apart * counts).sum() / by_chance) if by_chance else math.nan


def fleiss_kappa(counts: Any) -> float:
    """Fleiss' kappa of any number of judges, as many for each item: (P - E) / (1 - E). P is the share of
    pairs of judges of an item that agree, and E the sum over categories of the squared share of all
    judgments.

    Parameters
    ----------
    counts : (n_items, n_categories)
        How many judges chose each category for each item. All rows have the same sum, of at least 2.

    Returns
    -------
    float
        1 is full agreement, 0 is the agreement of chance; NaN if all judgments are of one category.

    Raises
    ------
    InputError, InputTypeError
        Another shape, rows with different sums; counts that are not whole numbers from 0, or no numbers.

    See Also
    --------
    krippendorff_alpha : judges that skip items, and grades that are more or less far apart.
    cohen_kappa : two judges.

    References
    ----------
    Fleiss, Psychological Bulletin 1971.

    Examples
    --------
    >>> round(fleiss_kappa([[0, 3], [1, 2], [3, 0], [3, 0]]), 4)
    0.6571
    """
    try:
        given = np.ma.filled(np.asanyarray(counts), np.nan) if np.ma.isMA(counts) else np.asanyarray(counts)
    except ValueError:
        said = "counts has rows of different lengths; wanted (n_items, n_categories)"
        raise InputError(said) from None
    if given.dtype.kind not in "biuf" and given.size:
        raise InputTypeError(f"counts are of dtype {given.dtype}; wanted how many judges chose each category")
    if given.ndim != 2:
        raise InputError(f"counts has shape {given.shape}; wanted (n_items, n_categories)")
    numbers = given.astype(np.float64)
    wrong = ~((numbers >= 0) & (numbers == np.floor(numbers)) & np.isfinite(numbers))
    if wrong.any():
        item = int(np.argmax(wrong.any(axis=1)))
        raise InputError(f"counts of item {item} are {given[item].tolist()}; wanted whole numbers from 0")
    if not len(judges := numbers.sum(axis=1)):
        return math.nan
    if judges[0] < 2 or (judges != judges[0]).any():
        item = int(np.argmax(judges != judges[0])) if judges[0] > 1 else 0
        raise InputError(
            f"item {item} has {judges[item]:.0f} judgments and item 0 {judges[0]:.0f}; wanted 2 or more, as "
            "many for each. krippendorff_alpha takes judges that skip items."
        )
    agreed = float((numbers * (numbers - 1)).sum() / (judges[0] * (judges[0] - 1) * len(judges)))
    by_chance = float(np.square(numbers.sum(axis=0) / numbers.sum()).sum())
    return (agreed - by_chance) / (1 - by_chance) if by_chance < 1 else math.nan


def krippendorff_alpha(ratings: Any, metric: str = "nominal") -> float:
    """Krippendorff's alpha of any number of judges, which may skip items: 1 - (observed disagreement within
    items) / (disagreement expected between all grades).

    Parameters
    ----------
    ratings : (n_judges, n_items)
        Grades; NaN, None or masked where a judge skipped an item. Items with fewer than two grades are left
        out.
    metric : "nominal", "ordinal", "interval" or "ratio"
        The disagreement of two different grades: "nominal", always 1; "ordinal", the number of grades given
        between them, squared; "interval", their difference, squared; "ratio", their difference over their
        sum, squared.

    Returns
    -------
    float
        NaN if no item has two grades, or if all grades are equal.

    Raises
    ------
    InputError, InputTypeError
        Another shape; a metric that does not exist; grades that are not numbers.

    See Also
    --------
    cohen_kappa : two judges.
    rank_agreement : agreement of rankings instead of judges.

    References
    ----------
    Krippendorff, Content Analysis, 2004.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 2, 3, 3, None], [1, 2, 3, 3, 2], [None, 3, 3, 3, 2]], "ordinal"), 4)
    0.812
    """
    check_choice("metric", metric, METRICS)
    wanted = "wanted (n_judges, n_items), NaN where there is none"
    try:
        grades = np.asanyarray(ratings)
        if grades.dtype.kind not in "biufO":
            raise TypeError
        np.asarray(grades, np.float64)  # refuses what is no number
    except (TypeError, ValueError):
        raise InputTypeError(f"ratings are not a matrix of numbers; {wanted}") from None
    if grades.ndim != 2:
        raise InputError(f"ratings has shape {grades.shape}; {wanted}")
    judged = ~_missing(grades)
    several = judged.sum(axis=0) > 1
    grades, judged = np.ma.getdata(grades)[:, several], judged[:, several]
    levels, codes = _levels(grades[judged].tolist())
    items = np.broadcast_to(np.arange(grades.shape[1]), grades.shape)[judged]
    counts = np.zeros((grades.shape[1], len(levels)))  # grades of each item
    np.add.at(counts, (items, codes), 1)
    given = counts.sum(axis=0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True) - 1, 1)
    together = shares.T @ counts - np.diag(shares.sum(axis=0))
    # the size of levels, and their places above the first, which are exact even of large numbers
    sizes = np.array(levels, np.float64), np.array([level - levels[0] for level in levels], np.float64)
    apart = _apart(*sizes, given, metric)
    by_chance = (apart * np.outer(given, given)).sum() / max(given.sum() - 1, 1)
    return float(1 - (apart * together).sum() / by_chance) if by_chance else math.nan


def alpha_of_pairs(items: Int64, judges: Int64, grades: Float64, metric: str) -> tuple[float, Float64]:
    """Krippendorff's alpha of grades in rows, and that of each judge with the others: 1 - (disagreement with
    them) / (that expected of all). All arrays (n_grades,); items and judges are numbers from 0.

    >>> grades = np.array([1.0, 1, 2, 2, 3, 1])
    >>> alpha_of_pairs(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1]), grades, "nominal")[0]
    0.54545454...
    """
    judged = np.bincount(items)[items]
    order = np.argsort(items, kind="stable")
    order = order[judged[order] > 1]
    items, judges, values, judged = items[order], judges[order], grades[order], judged[order]
    levels, codes = np.unique(values, return_inverse=True)
    given = np.bincount(codes, minlength=len(levels)).astype(np.float64)
    apart = _apart(levels, levels - levels[:1], given, metric)
    n_judges, n = int(judges.max(initial=-1)) + 1, len(values)
    sums, pairs = np.zeros(n_judges), np.zeros(n_judges)
    for step in range(1, int(judged.max(initial=0))):
        first = np.flatnonzero(items[step:] == items[:-step])
        weight = 1 / (judged[first] - 1)
        far = weight * apart[codes[first], codes[first + step]]
        for side in (judges[first], judges[first + step]):
            sums += np.bincount(side, far, n_judges)
            pairs += np.bincount(side, weight, n_judges)
    by_chance = float((apart * np.outer(given, given)).sum()) / max(n * (n - 1), 1)
    if not by_chance:
        return math.nan, np.full(n_judges, math.nan)
    with np.errstate(invalid="ignore"):
        return 1 - float(sums.sum()) / n / by_chance, 1 - sums / pairs / by_chance


def _missing(grades: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where there is no grade: NaN, None, another null, or masked."""

    def is_null(grade: Any) -> bool:
        try:
            return grade is None or bool(grade != grade)  # noqa: PLR0124 - so is NaN
        except TypeError:
            return True  # pandas.NA

    values = np.ma.getdata(grades)
    found: npt.NDArray[np.bool_] = np.ma.getmaskarray(grades)
    if values.dtype.kind == "f":
        found = found | np.isnan(values)
    elif values.dtype.kind == "O":
        found = found | np.array([is_null(each) for each in values.ravel()], np.bool_).reshape(values.shape)
    return found


def _levels(grades: list[Any]) -> tuple[list[Any], Int64]:
    """Distinct grades in rising order, and the number of each grade; integers of any size stay exact."""
    try:
        levels = sorted(set(grades))
    except TypeError:
        kinds = ", ".join(sorted({type(grade).__name__ for grade in grades}))
        said = f"grades are of several kinds: {kinds}; give all as numbers, or all as strings"
        raise InputTypeError(said) from None
    places = {level: place for place, level in enumerate(levels)}
    return levels, np.array([places[grade] for grade in grades], np.int64)


def _apart(levels: Float64, places: Float64, given: Float64, metric: str) -> Float64:
    """Disagreement of each pair of levels, (n_levels, n_levels)."""
    if metric == "nominal":
        return 1 - np.eye(len(levels))
    if metric == "ordinal":
        places = np.cumsum(given) - given / 2  # the middle of a level's own grades among all in order
    far: Float64 = places[:, None] - places
    if metric == "ratio":
        whole = levels[:, None] + levels
        far = np.divide(far, whole, out=np.zeros(whole.shape), where=whole != 0)
    return np.square(far)
