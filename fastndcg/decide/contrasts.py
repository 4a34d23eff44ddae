"""The numbers of each measure and pair of systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.decide.matching import pairs_of
from fastndcg.scores.summary import check_unit, is_unit
from fastndcg.statistics import exact_sums
from fastndcg.statistics.exact_sums import ROUNDING
from fastndcg.statistics.intervals import SMALL, Interval, logit_interval
from fastndcg.statistics.paired import CORRECTIONS, Spread, direction, wilcoxon
from fastndcg.statistics.resampling import EXACT, bootstrap_interval, means_of_clusters, sign_flips, tukey

if TYPE_CHECKING:
    from fastndcg.common.arrays import Array, Flags, Float64, Int64
    from fastndcg.decide.matching import Sample
    from fastndcg.measures import Measure

KEYS = ("measure", "system", "baseline")
COLUMNS = {
    **dict.fromkeys(KEYS, pa.string()),
    **dict.fromkeys(("mean", "baseline_mean", "difference", "low", "high", "p", "p_adjusted"), pa.float64()),
    **dict.fromkeys(("effect", "effect_low", "effect_high"), pa.float64()),
    **dict.fromkeys(("wins", "ties", "losses", "nonzero", "queries"), pa.int64()),
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
    rows : the columns of a comparison but the intervals of effects, a row for each measure and pair
    differences : by measure, system and baseline
    cautions : reasons not to rely on some of the numbers
    """

    def __init__(self, measures: Sequence[Measure], samples: dict[str, Sample], options: Options) -> None:
        self._measures, self._samples, self._options = measures, samples, options
        self.means = self._means_of_systems()
        self.pairs = pairs_of([*samples], options.baseline)
        self.rows: list[dict[str, Any]] = []
        self.differences: dict[tuple[str, str, str], Spread] = {}
        self.cautions: list[str] = []
        self._beyond = False  # whether a caution says that an interval leaves the measure's range
        for place in range(len(measures)):
            self.rows += self._rows_of(place)

    def _means_of_systems(self) -> dict[str, dict[str, float]]:
        return {
            str(measure): {
                name: exact_sums.mean(*that_count(sample.counts[row], sample.values[row], sample.weight))
                for name, sample in self._samples.items()
            }
            for row, measure in enumerate(self._measures)
        }

    def _rows_of(self, place: int) -> list[dict[str, Any]]:
        """The rows of all pairs for one measure."""
        options, measure, rows = self._options, self._measures[place], []
        for pair in self.pairs:
            found, numbers = (self._paired if options.paired else self._independent)(place, *pair)
            key = str(measure), *pair
            self.differences[key] = found
            of_both = {"difference": found.mean, **found.numbers(options.confidence)}
            rows.append(dict(zip(KEYS, key, strict=True)) | of_both | numbers)
        if options.test == "tukey":
            values, weight, clusters = matched_values([*self._samples.values()], place)
            if values.size and np.isfinite(values).all():
                p = tukey(values, weight, clusters, options.resamples, options.seed, options.threads)
                systems = list(self._samples)
                for row in rows:
                    row["p"] = p(systems.index(row["system"]), systems.index(row["baseline"]))
        correct = CORRECTIONS.get(options.correction or "", list)
        for row, adjusted in zip(rows, correct([row["p"] for row in rows]), strict=True):
            row["p_adjusted"] = adjusted
            low, high, between = row["low"], row["high"], f"between {row['system']} and {row['baseline']}"
            if not (math.isfinite(low) and math.isfinite(high)):
                if row["queries"] > 1 and math.isfinite(row["difference"]):
                    self.cautions.append(
                        f"The interval of {measure} {between} is not finite, so that no gate holds by it. "
                        "Take more queries, or another interval."
                    )
            elif not self._beyond and max(-low, high) > 1 and is_unit(measure):
                self._beyond = True  # the same of several intervals is said once
                self.cautions.append(
                    f"The interval of {measure} {between} has an end that no difference can have. "
                    'The interval "logit" has only ends that are possible.'
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
        self._caution_of_few(place, system, baseline, nonzero, len(own))
        if options.test == "t" or math.isnan(found.mean):
            p = found.p()
        elif options.test == "wilcoxon":
            p = wilcoxon(differences, size)
        elif options.test == "tukey":
            p = math.nan  # computed for all pairs together
        else:
            weighted, most = differences, size
            if weight is not None:
                scaled = exact_sums.scaled(weight)
                weighted, most = differences * scaled, size * scaled[differences != 0].max(initial=0.0)
            drawn = options.resamples, options.seed, options.threads
            p = sign_flips(weighted, clusters, *drawn, size=most)
        ends: dict[str, float] = {}
        if options.interval == "logit":
            ends = self._bounded(place, found, own, theirs)._asdict()
        elif options.interval != "t":
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
            "nonzero": nonzero,
            "queries": len(own),
        }

    def _independent(self, place: int, system: str, baseline: str) -> tuple[Spread, dict[str, Any]]:
        samples = [
            that_count(each.counts[place], each.values[place], each.weight, each.clusters)
            for each in (self._samples[system], self._samples[baseline])
        ]
        spreads = [Spread.of(*sample) for sample in samples]
        found = Spread.independent(*spreads)
        ends: dict[str, float] = {}
        if self._options.interval == "logit":
            ends = self._bounded(place, found, *(values for values, *_ in samples))._asdict()
        return found, {
            "mean": spreads[0].mean,
            "baseline_mean": spreads[1].mean,
            "p": found.p(),
            **ends,
            **dict.fromkeys(("wins", "ties", "losses", "nonzero")),
            "queries": found.n,
        }

    def _caution_of_few(self, place: int, system: str, baseline: str, nonzero: int, n: int) -> None:
        if 0 < nonzero < SMALL:
            exact = ", which is exact for so few" if nonzero <= EXACT else ""
            self.cautions.append(
                f"Only {nonzero} of {n:,} differences of {self._measures[place]} between {system} and "
                f"{baseline} are not zero, too few for an interval to be relied on. "
                f'Take more queries, or test="randomisation"{exact}.'
            )

    def _bounded(self, place: int, found: Spread, *values: Float64) -> Interval:
        """The interval within the differences that a measure can have."""
        least = min(float(each.min(initial=0.0)) for each in values)
        check_unit(self._measures[place], least, max(float(each.max(initial=1.0)) for each in values))
        numbers = found.mean, found.error, found.freedom, self._options.confidence
        return logit_interval(*numbers, -1.0, 1.0)

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


def matched_values(samples: list[Sample], place: int) -> tuple[Float64, Float64 | None, Int64 | None]:
    """Values of one measure, (n_systems, n_queries), of the queries that count for all; weights, clusters."""
    counts = np.logical_and.reduce([sample.counts[place] for sample in samples])
    values = np.stack([sample.values[place][counts] for sample in samples])
    weight, clusters = that_count(counts, samples[0].weight, samples[0].clusters)
    return values, weight, clusters
