"""Ranks of systems, and gates: whether a system is no worse than another, or whether that is undecided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.table import Table
from fastndcg.decide.contrasts import KEYS, Contrasts, matched_values
from fastndcg.decide.texts import ComparisonTexts, letter_of
from fastndcg.errors import InputError, suggest
from fastndcg.scores.summary import is_unit
from fastndcg.statistics.intervals import SMALL, check_size, sequence_half, t_quantile
from fastndcg.statistics.paired import CORRECTIONS
from fastndcg.statistics.resampling import shares_best

if TYPE_CHECKING:
    from fastndcg.statistics.paired import Spread

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
_OF_RANKS = {"system": pa.string(), **dict.fromkeys(("rank", "low", "high"), pa.int64())}
_OF_RANKS |= {"group": pa.string(), "p_best": pa.float64()}
_OF_VERDICTS = {
    **dict.fromkeys((*KEYS, "verdict"), pa.string()),
    **dict.fromkeys(("difference", "low", "high"), pa.float64()),
    **dict.fromkeys(("queries", "needed"), pa.int64()),
}


class ComparisonStandings(ComparisonTexts):
    """Ranks of the systems of a comparison, and gates on their differences."""

    def ranks(self) -> Table:
        """The rank of each system by its mean, and how sure it is; the best first.

        A system's rank is at least 1 plus the number of systems that beat it significantly, and at most the
        number of systems minus those that it beats (Al Mohamad, Goeman and van Zwet 2022). All pairs are
        tested, whatever the baseline. Where p of all pairs hold at once, as those of test="tukey" and of the
        corrections "bonferroni" and "holm" do, all intervals of one measure hold at once with the
        comparison's confidence; with other corrections, Holm's is taken.

        Returns
        -------
        Table
            measure, where there are several; system; rank, the same of equal means, and null where a mean is
            NaN; low and high, the ends of its interval; group, letters: two systems share one unless the one
            beats the other significantly (Piepho 2004); p_best, how often the system has the greatest mean if
            queries, or clusters, are drawn with replacement, `resamples` times but at most 10,000; systems of
            equal means share a draw. It is null for independent samples, and where a value is NaN.

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
        kinds = {"measure": pa.string(), **_OF_RANKS} if len(self.measures) > 1 else _OF_RANKS
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)), keys=len(kinds) - 5)

    def _rank_rows(self) -> list[dict[str, Any]]:
        """The rows of `ranks`, with the measure."""
        options, tested = self._options, self._numbers
        if options.baseline is not None:
            options = options._replace(baseline=None, interval="t")
            tested = Contrasts(self.measures, self._samples, options).rows
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
                numbers = measure, name, rank, low, high, groups[name], best.get(name)
                rows.append(dict(zip(("measure", *_OF_RANKS), numbers, strict=True)))
        return rows

    def _shares_best(self, place: int) -> dict[str, float]:
        """How often each system is the best; empty where that is not known."""
        names, options = sorted(self._samples), self._options  # draws don't depend on the order of systems
        if not options.paired:
            return {}
        values, weight, clusters = matched_values([self._samples[name] for name in names], place)
        if not values.size or not np.isfinite(values).all():
            return {}
        # with 10,000 resamples a share is known to 0.005
        drawn = min(options.resamples, 10_000), options.seed, options.threads
        return dict(zip(names, shares_best(values, weight, clusters, *drawn).tolist(), strict=True))

    def no_worse_than(
        self, baseline: str, margin: float = 0.0, *, system: str | None = None, sequential: bool = False
    ) -> dict[str, bool]:
        """Whether the intervals exclude a loss of more than `margin` against the baseline, by measure. An
        interval that is not finite excludes none.

        Parameters
        ----------
        baseline : str
        margin : float
            The largest accepted loss of the mean, in units of the measure; 0 or more.
        system : str, optional
            Default: all systems that were compared with the baseline; the answer is True only if it holds for
            each of them.
        sequential : bool
            True: the gate may be looked at again and again while queries arrive, as in `verdicts`, which also
            tells what does not hold from what is undecided.

        Raises
        ------
        InputError, InputTypeError
            Systems that were not compared; a margin that is negative, not finite, or no number;
            `sequential=True` of independent samples.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> compare(systems, measures="RR").no_worse_than("a", margin=0.1)
        {'RR': False}
        """
        rows = self._verdict_rows(baseline, margin, system, sequential=sequential)
        return {
            str(measure): all(row["verdict"] == HOLDS for row in rows if row["measure"] == str(measure))
            for measure in self.measures
        }

    def verdicts(
        self, baseline: str, margin: float = 0.0, *, system: str | None = None, sequential: bool = False
    ) -> Table:
        """Whether systems are no worse than the baseline: it holds, it fails, or it is undecided.

        It holds if the interval of the difference excludes a loss of more than `margin`, and fails if the
        interval has no other. It is undecided if the interval has both, or is not finite. Errors are those of
        `no_worse_than`.

        Parameters
        ----------
        baseline, margin, system
            As in `no_worse_than`.
        sequential : bool
            True: intervals of a confidence sequence, in place of the comparison's, so that a gate may be
            looked at after each new query and the first answer other than "undecided" taken. In all looks
            together it then is wrong in at most 1 - confidence of cases, if queries arrive in random order.
            The interval of n queries with the standard error s is difference ± s sqrt((1 + 1/x) (log(1 + x) +
            2 log(1/α))), with α = 1 - confidence and x = n ρ²; ρ makes it narrowest at 1,000 queries. It is
            asymptotic; normal quantiles are therefore replaced by those of Student's t, n is also taken as
            the number of differences that are not 0, if that is wider, and fewer than 30 of them decide
            nothing. If all are 0, and the measure is from 0 to 1, it holds once (1 - margin)^n <= α.

        Returns
        -------
        Table
            measure, system, baseline, verdict; difference, low, high, of the system minus the baseline;
            queries; needed: about how many queries would decide, if mean and spread stay as they are; null
            where it is decided, or no number would.

        References
        ----------
        Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit theory and asymptotic
        confidence sequences, Annals of Statistics 2024, arXiv 2103.06476.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> found = compare(systems, measures="RR").verdicts("a", margin=0.1)
        >>> found["verdict"].to_pylist(), found["needed"].to_pylist()
        (['undecided'], [7])
        """
        rows = self._verdict_rows(baseline, margin, system, sequential=sequential)
        return Table(pa.Table.from_pylist(rows, pa.schema(_OF_VERDICTS)), keys=len(KEYS))

    def _verdict_rows(
        self, baseline: str, margin: object, system: str | None, *, sequential: bool
    ) -> list[dict[str, Any]]:
        margin = check_size("margin", margin, "a loss to accept", 0.002)
        if sequential and not self._options.paired:
            raise InputError(
                "sequential=True and paired=False do not go together: the queries of two samples do not "
                "arrive in pairs"
            )
        rows = []
        for row in self._numbers:
            pair = row["system"], row["baseline"]
            if baseline not in pair or system not in (None, pair[pair[0] == baseline]):
                continue
            low, high, is_sure = row["low"], row["high"], True
            found = self._differences[row["measure"], *pair]
            difference, nonzero = row["difference"], row["nonzero"]
            needed = None
            if sequential and not nonzero:
                low, high, is_sure = found.mean, found.mean, False
                if margin > 1e-15 and all(
                    is_unit(one) for one in self.measures if str(one) == row["measure"]
                ):  # of which a share of `margin` would have to differ
                    equal = math.log1p(-min(margin, 1 - 1e-15))
                    needed = math.ceil(math.log(1 - self._options.confidence) / equal)
                    is_sure = found.n >= needed
            elif sequential:
                half = self._sequence_half(found, nonzero)
                low, high = found.mean - half, found.mean + half
                is_sure = nonzero >= SMALL
            if pair[0] == baseline:
                pair, difference, low, high = pair[::-1], -difference, -high, -low
            verdict = verdict_of(low, high, margin) if is_sure else UNDECIDED
            if verdict == UNDECIDED and (nonzero or not sequential):
                needed = self._needed(row, abs(difference + margin), sequential=sequential)
            needed = needed if verdict == UNDECIDED else None
            numbers = row["measure"], *pair, verdict, difference, low, high, row["queries"], needed
            rows.append(dict(zip(_OF_VERDICTS, numbers, strict=True)))
        if {row["measure"] for row in rows} != set(map(str, self.measures)):
            with_whom = "no system" if system is None else f'no "{system}"'
            raise InputError(
                f'"{baseline}" was compared with {with_whom}; the systems are: {", ".join(self.systems)}.'
                + suggest(str(baseline), self.systems)
            )
        return rows

    def _sequence_half(self, found: Spread, nonzero: int, share: float = 1.0) -> float:
        """Half of the interval of a confidence sequence of `share` times as many queries; as wide as that of
        those alone that differ, since their number is what a mean of few of them is as normal by.
        """
        freedoms = {share * (found.freedom + 1) - 1, share * min(found.freedom + 1, nonzero) - 1}
        error, confidence = found.error / math.sqrt(share), self._options.confidence
        return max(sequence_half(error, freedom, confidence) for freedom in freedoms)

    def _needed(self, row: dict[str, Any], far: float, *, sequential: bool) -> int | None:
        """How many queries make an interval so narrow that it ends before what lies `far` from its mean."""
        n: int = row["queries"]
        found = self._differences[row["measure"], row["system"], row["baseline"]]
        half: float = max(row["high"] - row["difference"], row["difference"] - row["low"])
        share, outside = 1.0, 1 - self._options.confidence
        if not far or not half > 0 or not found.freedom > 0:
            return None
        for _ in range(50):
            if sequential:  # the half of `share` times as many queries
                of_more = self._sequence_half(found, row["nonzero"], share)
            else:
                now, freedom = t_quantile(outside, found.freedom), share * (found.freedom + 1) - 1
                of_more = half * t_quantile(outside, freedom) / now / math.sqrt(share)
            share *= of_more / far  # half way to the solution, since other quantiles belong to more
            if not share * n < 10**18:
                return None
            share = max(share, SMALL / row["nonzero"] if sequential else 1.0, 1.0)
        return math.ceil(share * n) if share > 1 else n + 1


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


def verdict_of(low: float, high: float, margin: float) -> str:
    """What an interval of a difference says of a loss of more than `margin`.

    >>> [verdict_of(*interval, 0.1) for interval in ((-0.1, 0.2), (-0.3, -0.2), (-0.2, 0.1))]
    ['holds', 'fails', 'undecided']
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return UNDECIDED
    return HOLDS if -low <= margin else FAILS if -high > margin else UNDECIDED
