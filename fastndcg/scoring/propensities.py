"""Measures of click logs: gains divided by the probability that they could be observed.

Users click only on documents that they see. The propensity of a document is the probability that its
relevance was observed. Where it is known, gains are divided by it; so a seen document also counts for others
that were not seen, and the expectation of DCG is that of DCG over the true gains. The weighted gains are
stored as `Rankings` and summed by the same kernels as all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.errors import Argument, InputError
from fastndcg.measures import CG, Measure
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import launch, worths

Float64 = npt.NDArray[np.float64]

_MOST_GAIN = 2.0**53  # beyond it float64 does not have all whole numbers


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Values of measures with `ips`, (n_measures, n_queries); NaN where a query has no value.

    Raises `InputError` for rankings without propensities, and for grades for which a measure has no gain.
    """
    _check(measures[0], rankings)
    values = np.empty((len(measures), rankings.n_queries))
    kinds = [(worths.worth_of(measure), measure.clip, measure.judged_only) for measure in measures]
    for kind in dict.fromkeys(kinds):
        rows = [row for row, other in enumerate(kinds) if other == kind]
        first = measures[rows[0]]
        worths.check(first, rankings)
        weighted = _weight(first, rankings)
        sums = launch.score(tuple(_without_ips(measures[row]) for row in rows), weighted, threads)
        total = launch.score((CG(empty="nan"),), weighted, threads)[0]
        for row, summed in zip(rows, sums, strict=True):
            values[row] = summed
            if measures[row].ips == "snips":
                with np.errstate(divide="ignore", invalid="ignore"):
                    values[row] = np.where(total > 0, summed / total, np.nan)
    return values


def as_plain(measure: Measure, rankings: Rankings) -> tuple[Rankings, Measure, float | None]:
    """Rankings and a measure without propensities with the same sum, and the divisor of snips, or None."""
    _check(measure, rankings)
    worths.check(measure, rankings)
    weighted = _weight(measure, rankings)
    if measure.ips != "snips":
        return weighted, _without_ips(measure), None
    return weighted, _without_ips(measure), float(launch.score((CG(empty="nan"),), weighted, None)[0, 0])


def _check(measure: Measure, rankings: Rankings) -> None:
    if rankings.propensity is None:
        raise InputError(
            f"{measure} needs the probability that each document was seen, and these rankings have none. "
            "Give it, or name its column, as in ",
            Argument("propensity", "propensity"),
            ".",
        )


def _weight(measure: Measure, rankings: Rankings) -> Rankings:
    """The same rankings with the gains of the measure, divided by propensities, as grades."""
    propensity: Any = rankings.propensity
    gains = worths.gains_of_documents(measure, rankings) / np.maximum(propensity, measure.clip)
    if len(gains) and np.abs(gains).max() > _MOST_GAIN:
        row = int(np.argmax(np.abs(gains)))
        raise InputError(
            f"the propensity {propensity[row]:g}",
            rankings._at(row),
            f" makes a gain of {gains[row]:g} in {measure}, beside which "
            "all others vanish; bound it, as in clip=0.001",
        )
    weighted = Rankings._from_offsets(
        rankings.offsets,
        gains,
        rankings.scores,
        is_judged=rankings.is_judged if measure.judged_only else None,
    )
    pool = rankings.judged
    if pool is None:
        return weighted
    # which queries have judged documents: the grades of the pool are not used
    return weighted._with(judged=pool._replace(relevance=np.zeros(len(pool.relevance))))


def _without_ips(measure: Measure) -> Measure:
    """The measure without `ips`, with grades as gains."""
    linear: dict[str, Any] = {"gain": "linear", "rel": None, "unjudged": None, "empty": "nan"}
    return measure(**linear, ips=False, clip=0)
