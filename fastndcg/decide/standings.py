"""Ranks of systems: how sure each is, and which systems cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.table import Table
from fastndcg.decide.contrasts import Contrasts, that_count
from fastndcg.decide.texts import ComparisonTexts, letter_of
from fastndcg.statistics.paired import CORRECTIONS
from fastndcg.statistics.resampling import shares_best

if TYPE_CHECKING:
    from fastndcg.decide.matching import Sample
    from fastndcg.measures import Measure

_DRAWS = 10_000  # resamples, at most: a share is then known to 0.005


class ComparisonRanks(ComparisonTexts):
    """Ranks of the systems of a comparison."""

    measures: tuple[Measure, ...]
    _samples: dict[str, Sample]

    def ranks(self) -> Table:
        """The rank of each system by its mean, and how sure it is; the best first.

        A system's rank is at least 1 plus the number of systems that beat it significantly, and at most the
        number of systems minus those that it beats (Al Mohamad, Goeman and van Zwet, Biometrics 2022). All
        pairs are tested, whatever the baseline. Where p of all pairs hold at once, as those of test="tukey"
        and of the corrections "bonferroni" and "holm" do, all intervals of one measure hold at once with the
        comparison's confidence; with other corrections, Holm's is taken.

        Returns
        -------
        Table
            measure, where there are several; system; rank, the same of equal means, and null where a mean is
            NaN; low and high, the ends of its interval; group, letters: two systems share one unless the one
            beats the other significantly (Piepho 2004); p_best, how often the system has the greatest mean if
            queries, or clusters, are drawn with replacement, `resamples` times but at most 10,000; systems of
            equal means share a draw. It is null for independent samples, and where a value is NaN.

        See Also
        --------
        compare : the parameters of the comparison.

        References
        ----------
        Al Mohamad, Goeman and van Zwet, Simultaneous confidence intervals for ranks with application to
        ranking institutions, Biometrics 2022; Piepho, Journal of Computational and Graphical Statistics 2004.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> a = [[0, 1] + [0] * 8] * 30
        >>> b = [[1, 0] + [0] * 8] * 15 + a[:15]
        >>> systems = {name: Rankings.from_lists(lists) for name, lists in {"a": a, "b": b, "c": b}.items()}
        >>> compare(systems, "RR").ranks()
        system  rank  low  high  group    p_best
        b          1    1     2  A      0.500000
        c          1    1     2  A      0.500000
        a          3    3     3  B      0.000000
        """
        rows = self._rank_rows()
        kinds = {"system": pa.string(), "rank": pa.int64(), "low": pa.int64(), "high": pa.int64()}
        kinds |= {"group": pa.string(), "p_best": pa.float64()}
        if len(self.measures) > 1:
            kinds = {"measure": pa.string(), **kinds}
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)), keys=len(kinds) - 5)

    def _rank_rows(self) -> list[dict[str, Any]]:
        """The rows of `ranks`, with the measure."""
        options = self._options
        if options.baseline is not None:
            options = options._replace(baseline=None, interval="t")
            tested = Contrasts(self.measures, self._samples, options).rows
        else:
            tested = self._numbers
        rows: list[dict[str, Any]] = []
        for place, (measure, means) in enumerate(self.means.items()):
            of_measure = [row for row in tested if row["measure"] == measure]
            if options.test != "tukey":
                correct = CORRECTIONS["bonferroni" if options.correction == "bonferroni" else "holm"]
                adjusted = correct([row["p"] for row in of_measure])
                of_measure = [row | {"p_adjusted": p} for row, p in zip(of_measure, adjusted, strict=True)]
            beaten = {(better, worse) for _, better, worse in self._beaten(of_measure)}
            best = self._shares_best(place)
            order = sorted(means, key=lambda name: (math.isnan(means[name]), -means[name]))
            groups = groups_of(order, beaten)
            for name in order:
                ahead = sum(means[other] > means[name] for other in means)
                rank = None if math.isnan(means[name]) else 1 + ahead
                low = 1 + sum(worse == name for _, worse in beaten)
                high = len(means) - sum(better == name for better, _ in beaten)
                if rank is not None:  # means of all queries, and differences over those that count for both
                    low, high = min(low, rank), max(high, rank)
                numbers = {"rank": rank, "low": low, "high": high}
                of_system = {"group": groups[name], "p_best": best.get(name)}
                rows.append({"measure": measure, "system": name, **numbers, **of_system})
        return rows

    def _shares_best(self, place: int) -> dict[str, float]:
        """How often each system is the best; empty where that is not known."""
        names, options = sorted(self._samples), self._options  # draws don't depend on the order of systems
        samples = [self._samples[name] for name in names]
        if not options.paired:
            return {}
        counts = np.logical_and.reduce([sample.counts[place] for sample in samples])
        values = np.stack([sample.values[place][counts] for sample in samples])
        if not values.size or not np.isfinite(values).all():
            return {}
        weight, clusters = that_count(counts, samples[0].weight, samples[0].clusters)
        drawn = min(options.resamples, _DRAWS), options.seed, options.threads
        return dict(zip(names, shares_best(values, weight, clusters, *drawn).tolist(), strict=True))


def groups_of(systems: Sequence[str], apart: AbstractSet[tuple[str, str]]) -> dict[str, str]:
    """Letters of each system: two systems share one unless they are `apart`, in whichever order.

    A letter is a set of systems to which no other can be added. One is made for each pair that has none yet,
    so that there are at most as many as pairs.

    >>> groups_of(["a", "b", "c", "d"], {("a", "c"), ("a", "d")})
    {'a': 'A', 'b': 'AB', 'c': 'B', 'd': 'B'}
    """
    are_apart = apart | {pair[::-1] for pair in apart}
    groups: list[list[str]] = []
    shared: set[tuple[str, str]] = set()
    for place, one in enumerate(systems):
        for other in systems[place:]:
            if (one, other) in are_apart or (one, other) in shared:
                continue
            group = list(dict.fromkeys([one, other]))
            for third in systems:
                if third not in group and not any((third, each) in are_apart for each in group):
                    group.append(third)
            groups.append(group)
            shared.update((first, second) for first in group for second in group)
    return {
        name: "".join(letter_of(place).upper() for place, group in enumerate(groups) if name in group)
        for name in systems
    }
