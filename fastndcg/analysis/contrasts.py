"""The numbers of each measure and pair of systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.analysis.alignment import pairs_of
from fastndcg.statistics import exact_sums
from fastndcg.statistics.exact_sums import ROUNDING
from fastndcg.statistics.intervals import SMALL
from fastndcg.statistics.resampling import EXACT, bootstrap_interval, means_of_clusters, sign_flips
from fastndcg.statistics.significance import CORRECTIONS, Spread, direction

if TYPE_CHECKING:
    from fastndcg.analysis.alignment import Sample
    from fastndcg.common.arrays import Array, Flags, Float64, Int64
    from fastndcg.measures import Measure

KEYS = ("measure", "system", "baseline")
COLUMNS = {
    **dict.fromkeys(KEYS, pa.string()),
    **dict.fromkeys(("mean", "baseline_mean", "difference", "low", "high"), pa.float64()),
    **dict.fromkeys(("p", "p_adjusted", "effect"), pa.float64()),
    **dict.fromkeys(("wins", "ties", "losses", "queries"), pa.int64()),
    **dict.fromkeys(("detectable", "relative"), pa.float64()),
}


class Options(NamedTuple):
    baseline: str | None
    test: str
    correction: str | None
    confidence: float
    tolerance: float
    paired: bool
    resamples: int
    seed: int
    threads: int | None
    interval: str


class Contrasts:
    """The means of systems, and what their pairs differ by.

    Attributes
    ----------
    means : by measure, the mean of each system
    pairs : systems and their baselines
    rows : the columns of a comparison, a row for each measure and pair
    differences : by measure, system and baseline
    cautions : reasons not to rely on some of the numbers
    """

    def __init__(self, measures: Sequence[Measure], samples: dict[str, Sample], options: Options) -> None:
        self._measures, self._samples, self._options = measures, samples, options
        self.means = {
            str(measure): {
                name: exact_sums.mean(*that_count(sample.counts[row], sample.values[row], sample.weight))
                for name, sample in samples.items()
            }
            for row, measure in enumerate(measures)
        }
        self.pairs = pairs_of([*samples], options.baseline)
        self.rows: list[dict[str, Any]] = []
        self.differences: dict[tuple[str, str, str], Spread] = {}
        self.cautions: list[str] = []
        for place in range(len(measures)):
            self.rows += self._rows_of(place)

    def _rows_of(self, place: int) -> list[dict[str, Any]]:
        """The rows of all pairs for one measure."""
        options, measure = self._options, self._measures[place]
        rows: list[dict[str, Any]] = []
        for pair in self.pairs:
            found, numbers = (self._paired if options.paired else self._independent)(place, *pair)
            key = str(measure), *pair
            self.differences[key] = found
            of_both = {"difference": found.mean, **found.numbers(options.confidence)}
            numbers = dict(zip(KEYS, key, strict=True)) | of_both | numbers
            numbers["relative"] = found.mean / mean if (mean := numbers["baseline_mean"]) else None
            rows.append({name: numbers.get(name) for name in COLUMNS})
        correct = CORRECTIONS.get(options.correction or "", list)
        for row, adjusted in zip(rows, correct([row["p"] for row in rows]), strict=True):
            row["p_adjusted"] = adjusted
            is_known = row["queries"] > 1 and math.isfinite(row["difference"])
            if is_known and not (math.isfinite(row["low"]) and math.isfinite(row["high"])):
                self.cautions.append(
                    f"The interval of {measure} between {row['system']} and {row['baseline']} is not finite, "
                    "so that no gate holds by it. Take more queries, or another interval."
                )
        return rows

    def _paired(self, place: int, system: str, baseline: str) -> tuple[Spread, dict[str, Any]]:
        one, other, options = self._samples[system], self._samples[baseline], self._options
        counts = one.counts[place] & other.counts[place]
        own, theirs, weight, clusters = that_count(
            counts, one.values[place], other.values[place], one.weight, one.clusters
        )
        differences = exact_sums.differences_of(own, theirs)
        size = max(float(np.abs(each).max(initial=0.0)) for each in (own, theirs))
        found = Spread.of(differences, weight, clusters, size)
        nonzero = int(np.count_nonzero(differences))
        wins, losses = (int((sign * differences > options.tolerance).sum()) for sign in (1, -1))
        if 0 < nonzero < SMALL:
            exact = ", which is exact for so few" if nonzero <= EXACT else ""
            self.cautions.append(
                f"Only {nonzero} of {len(own):,} differences of {self._measures[place]} between {system} and "
                f"{baseline} are not zero, too few for an interval to be relied on. "
                f'Take more queries, or test="randomisation"{exact}.'
            )
        if options.test == "t" or math.isnan(found.mean):
            p = found.p()
        else:
            weighted, most = differences, size
            if weight is not None:
                scaled = exact_sums.scaled(weight)
                weighted, most = differences * scaled, size * scaled[differences != 0].max(initial=0.0)
            drawn = options.resamples, options.seed, options.threads
            p = sign_flips(weighted, clusters, *drawn, size=most)
        ends: dict[str, float] = {}
        if options.interval != "t":
            ends = self._bootstrap(differences, weight, clusters, found.mean, size)
        means = []  # over the queries that enter the means of both systems
        for name, values in ((system, own), (baseline, theirs)):
            whole = int(np.count_nonzero(self._samples[name].counts[place])) == len(values)
            known = self.means[str(self._measures[place])]
            means.append(known[name] if whole else exact_sums.mean(values, weight))
        return found, {
            "mean": means[0],
            "baseline_mean": means[1],
            "p": p,
            **ends,
            "wins": wins,
            "ties": len(own) - wins - losses,
            "losses": losses,
            "queries": len(own),
        }

    def _independent(self, place: int, system: str, baseline: str) -> tuple[Spread, dict[str, Any]]:
        spreads = [
            Spread.of(*that_count(each.counts[place], each.values[place], each.weight, each.clusters))
            for each in (self._samples[system], self._samples[baseline])
        ]
        found = Spread.independent(*spreads)
        return found, {
            "mean": spreads[0].mean,
            "baseline_mean": spreads[1].mean,
            "p": found.p(),
            **dict.fromkeys(("wins", "ties", "losses")),
            "queries": found.n,
        }

    def _bootstrap(
        self,
        differences: Float64,
        weight: Float64 | None,
        clusters: Int64 | None,
        difference: float,
        size: float,
    ) -> dict[str, float]:
        """The bootstrap interval. If system and baseline are exchanged, only its signs change."""
        options = self._options
        drawn = options.confidence, options.interval, options.resamples, options.seed, options.threads
        turn = direction(difference, differences, ROUNDING * size) if len(differences) else 1.0
        found = []
        for way in (turn,) if turn else (1.0, -1.0):  # both of what is symmetrical
            values, w = way * differences, weight
            if clusters is not None:
                values, w = means_of_clusters(values, w, clusters)
            ends = bootstrap_interval(values, w, *drawn, middle=way * difference, size=size)
            found.append(sorted((way * ends.low, way * ends.high)))
        low, high = (sum(end / len(found) for end in ends) for ends in zip(*found, strict=True))
        return {"low": low, "high": high}


def that_count(counts: Flags, *columns: Array | None) -> list[Any]:
    """What enters the mean of columns, which are not copied if all does."""
    whole = counts.all()
    return [column if column is None or whole else column[counts] for column in columns]
