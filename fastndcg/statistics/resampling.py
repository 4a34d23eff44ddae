"""Tests and intervals by resampling: random signs, and queries drawn with replacement.

Values are rounded to multiples of the smallest power of two with which sums fit an int64, and put in a fixed
order. So sums are exact, and depend neither on the order of queries nor on which system comes first. Sums
that differ only by rounding are equal.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fastndcg.common.progress import Task
from fastndcg.common.threads import in_threads
from fastndcg.errors import InputError, InputTypeError
from fastndcg.kernels.compile import dispatch
from fastndcg.statistics.exact_sums import ROUNDING, is_constant, mean, ranks_of, scaled, starts_of
from fastndcg.statistics.significance import Interval, normal_distribution

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64

METHODS = ("percentile", "bca")

EXACT = 20  # up to this many values all signs are tried: a million ways
_SUMS = 1 << 14  # resamples of a thread that are computed together, so that their sums stay in a cache
_LEAST_FOR_THREADS = 1 << 20  # additions below which starting threads costs more than it saves
_MOST = 1 << 31  # most values that a random number of 32 bits can index


def check_resamples(resamples: object, seed: object) -> tuple[int, int]:
    """Validate the number of resamples and the seed. Raises `InputError` or `InputTypeError`."""
    for name, value in (("resamples", resamples), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputTypeError(f"{name}={value!r} is not a whole number")
    count, number = int(resamples), int(seed)  # type: ignore[call-overload]
    if count < 100:
        raise InputError(f"resamples={count} are too few; expected 100 or more, as in resamples=10000")
    if not 0 <= number < 2**63:
        raise InputError(f"seed={number} is out of range; expected a whole number from 0 to 2^63 - 1")
    return count, number


def sign_flips(
    differences: Float64,
    clusters: Int64 | None,
    resamples: int,
    seed: int,
    threads: int | None = None,
    exact: int = EXACT,
    size: float = 0.0,
) -> float:
    """p-value of the randomisation test: how often a sum with random signs, one for each cluster, is as far
    from 0: (1 + sums as far) / (1 + resamples), or exactly, of all signs, with up to `exact` nonzero values.
    `size` is the largest absolute value of what differences were computed from.
    """
    largest = float(np.abs(differences).sum())
    values = _whole(differences, largest)
    if clusters is not None:
        values = _sums_of_clusters(values, clusters)
    slack = _roundings(len(differences), size, largest)
    values = values[np.abs(values) > slack]
    observed = abs(int(values.sum()))
    # independent of the order of queries, and of which system is the baseline
    sizes = np.sort(np.abs(values))
    least = observed - slack
    if len(sizes) <= exact:
        sums = np.zeros(1, np.int64)
        for one in sizes:
            sums = np.concatenate([sums - one, sums + one])
        return float(np.mean(np.abs(sums) >= least))
    sums = _run("flip_signs", sizes, len(sizes) / 8, resamples, seed, threads)
    return (1 + int((np.abs(sums) >= least).sum())) / (1 + resamples)


def bootstrap_interval(
    values: Float64,
    weight: Float64 | None,
    confidence: float,
    method: str,
    resamples: int,
    seed: int,
    threads: int | None = None,
    *,
    middle: float | None = None,
) -> Interval:
    """Return the bootstrap interval of a mean; NaN for fewer than two values, or one that is not finite. It
    is widened to contain the mean, or `middle`, the mean as others round it.
    """
    middle = mean(values, weight) if middle is None else middle
    if weight is not None:  # sums are too coarse for the smallest value
        weight = np.where(weight > ROUNDING * weight.max(initial=0.0), weight, 0.0)
    if len(values) < 2 or math.isnan(middle) or (weight is not None and np.count_nonzero(weight) < 2):
        return Interval(math.nan, math.nan)
    if len(values) >= _MOST:
        raise InputError(
            f'{len(values):,} values are too many to draw from; expected less than 2^31. Use method="t".'
        )
    size = float(np.abs(values).max())
    order = np.argsort(values, kind="stable")
    if weight is not None:
        order = np.lexsort((values, weight, ranks_of(values, ROUNDING * size)))
    values, weight = values[order], None if weight is None else scaled(weight[order])
    n, w = len(values), np.ones(len(values)) if weight is None else weight
    if is_constant(values[w > 0] - middle, size):
        return Interval(middle, middle)
    power = math.frexp(size)[1]  # after division by 2**power, powers do not overflow
    values, size, center = np.ldexp(values, -power), math.ldexp(size, -power), math.ldexp(middle, -power)

    def draw(column: Float64) -> Float64:
        """Return sums of samples of the same size, drawn with replacement, (resamples,)."""
        largest = float(np.abs(column).max()) * len(column)
        sums = _run("draw_sums", _whole(column, largest), float(len(column)), resamples, seed, threads)
        scaled: Float64 = np.ldexp(sums.astype(np.float64), math.frexp(largest)[1] - 61)
        return scaled

    total_weight = draw(w) if weight is not None else np.full(resamples, float(n))
    outside = (1 - confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        # how far equal means may differ by rounding: of values to whole numbers, and of input
        slack = _roundings(n) * (n * float(w.max()) * math.ldexp(size, -60)) / total_weight
        means = draw(w * values) / total_weight
    shares: list[float] | None = [outside, 1 - outside]
    if method == "bca":
        below = float(np.mean(means < center - slack) + np.mean(means <= center + slack)) / 2
        shares = _corrected([outside, 1 - outside], below, values, w, center)
    low, high = np.nanquantile(means, shares).tolist() if shares else (math.nan, math.nan)
    if not low <= high:
        return Interval(math.nan, math.nan)
    return Interval(min(math.ldexp(low, power), middle), max(math.ldexp(high, power), middle))


def _corrected(
    shares: list[float], below: float, values: Float64, w: Float64, mean: float
) -> list[float] | None:
    """BCa: shares corrected for bias and skewness (Efron 1987); None where all means lie on one side."""
    normal = normal_distribution()
    rest = w.sum() - w
    without = (w.sum() * mean - w * values)[rest > 0] / rest[rest > 0]  # means without one query each
    off = without.mean() - without
    spread = (off**2).sum()
    if not spread or not 0 < below < 1:
        return None
    bias, skew = normal.inv_cdf(below), (off**3).sum() / (6 * spread**1.5)
    levels = []
    for share in shares:
        shifted = bias + normal.inv_cdf(share)
        # where the correction is infinite, only the last quantile remains
        part = 1 - skew * shifted
        levels.append(normal.cdf(bias + shifted / part) if part > 0 else float(shifted > 0))
    return levels


# ---- whole numbers ----


def _whole(values: Float64, largest: float) -> Int64:
    """Return values as multiples of a power of two, so that sums up to `largest` fit an int64."""
    return np.rint(np.ldexp(values, 61 - math.frexp(largest)[1])).astype(np.int64)


def _roundings(n: int, size: float = 0.0, largest: float = 1.0) -> int:
    """How far equal sums of n values may differ by rounding: of values to whole numbers, and of input, which
    may be differences of values up to `size`; `largest` is the largest sum.
    """
    bound = n * math.ldexp(size, 61 - 50 - math.frexp(largest)[1]) if largest else 0.0
    return n + max(1 << 17, int(min(bound, 2.0**60)))  # the largest sum fills 61 bits


def _sums_of_clusters(values: Int64, clusters: Int64) -> Int64:
    order = np.argsort(clusters, kind="stable")
    sums: Int64 = np.add.reduceat(values[order], starts_of(clusters[order]))
    return sums


# ---- threads ----


def _run(kernel: str, values: Int64, work: float, resamples: int, seed: int, threads: int | None) -> Int64:
    """Run a kernel for each resample, several in a call; `work` is the additions of one resample."""
    name, sums = f"resampling.{kernel}", np.empty(resamples, np.int64)
    if threads is None:
        threads = dispatch.cores() if work * resamples >= _LEAST_FOR_THREADS else 1
    # equal shares: with runs of _SUMS, one of four threads got a third of 100,000 resamples
    runs_of_each = -(-resamples // (_SUMS * threads))
    size = -(-resamples // (runs_of_each * threads))

    def run(first: int) -> int:
        part = sums[first : first + size]
        dispatch.run(name, work * len(part), seed, first, values, part, job=work * resamples)
        return first + len(part)

    with Task("Resampling", "resamples") as task:
        task.advance(0, resamples)
        # Python threads: safe in every host, and kernels release the GIL
        for done in in_threads(run, range(0, resamples, size), threads):
            task.advance(done, resamples)
    return sums
