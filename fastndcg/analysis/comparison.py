"""`Comparison`: the numbers of each measure and pair of systems, questions about them, and their tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.analysis.alignment import Sample, missing_text, pairs_of
from fastndcg.common.exports import AsFrame, without_nan
from fastndcg.common.markup import html_table, html_text, markdown_table, markdown_text
from fastndcg.common.table import Table, digits, fit, terminal_width
from fastndcg.errors import (
    ColumnError,
    InputError,
    check_system,
    check_whole,
    known_arguments,
    suggest,
    visible,
)
from fastndcg.measures import find_measure
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.statistics import exact_sums
from fastndcg.statistics.exact_sums import ROUNDING
from fastndcg.statistics.intervals import FAILS, HOLDS, SMALL, UNDECIDED, check_size, t_quantile
from fastndcg.statistics.resampling import EXACT, bootstrap_interval, means_of_clusters, sign_flips
from fastndcg.statistics.significance import CORRECTIONS, Spread, direction, holm

if TYPE_CHECKING:
    from fastndcg.charts.plots import ComparisonPlots
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


_OF_RANKS = {"system": pa.string(), **dict.fromkeys(("rank", "low", "high"), pa.int64())}
_OF_RANKS |= {"group": pa.string()}
_OF_VERDICTS = {
    **dict.fromkeys((*KEYS, "verdict"), pa.string()),
    **dict.fromkeys(("difference", "low", "high"), pa.float64()),
    **dict.fromkeys(("queries", "needed"), pa.int64()),
}
_TESTS = {"t": "paired t-test", "randomisation": "randomised signs"}
_CORRECTIONS = {None: "", "holm": ", corrected by Holm", "bh": ", corrected by Benjamini and Hochberg"}
_INTERVALS = {"t": "", "percentile": ", percentiles of resamples", "bca": ", BCa"}
RANKS = "rank: its interval, and capital letters that systems share which cannot be told apart"

# columns that say least about a difference, and about an order
_DROPS = (("ties",), ("effect",), ("wins", "losses"), ("relative",), ("mean",))


class Comparison(AsFrame):
    """The result of `compare`: a row of numbers for each measure and pair of systems. It prints as a table.

    Attributes
    ----------
    measures : tuple of Measure
    systems : tuple of str
    rows : list of dict
        The rows of `to_arrow`.
    means : dict
        Maps the name of a measure to the mean of each system.
    missing : dict of str to pyarrow array
        Maps a system that lacked queries to their ids.
    cautions : list of str
        Reasons not to rely on some of the numbers.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        samples: dict[str, Sample],
        missing: dict[str, pa.Array],
        options: Options,
    ) -> None:
        self.measures, self.systems, self.missing = tuple(measures), tuple(samples), missing
        self._samples, self._options = samples, options
        self.cautions = [missing_text(missing)] * bool(missing)
        self.means = {
            str(measure): {
                name: exact_sums.mean(*that_count(sample.counts[row], sample.values[row], sample.weight))
                for name, sample in samples.items()
            }
            for row, measure in enumerate(measures)
        }
        self._pairs = pairs_of(self.systems, options.baseline)
        self._freedom: dict[tuple[str, ...], float] = {}  # by measure, system and baseline
        self.rows = [row for place in range(len(self.measures)) for row in self._rows_of(place)]

    def _rows_of(self, place: int) -> list[dict[str, Any]]:
        """The rows of all pairs for one measure."""
        options, measure = self._options, self.measures[place]
        rows: list[dict[str, Any]] = []
        for pair in self._pairs:
            found, numbers = (self._paired if options.paired else self._independent)(place, *pair)
            key = str(measure), *pair
            self._freedom[key] = found.freedom
            numbers = dict(zip(KEYS, key, strict=True)) | found.numbers(options.confidence) | numbers
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
                f"Only {nonzero} of {len(own):,} differences of {self.measures[place]} between {system} and "
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
            known = self.means[str(self.measures[place])]
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

    @property
    def confidence(self) -> float:
        """The confidence of all intervals."""
        return self._options.confidence

    @property
    def plot(self) -> ComparisonPlots:
        """Pictures: `comparison.plot.differences("nDCG@10")`. It needs the extra `report`."""
        from fastndcg.charts.plots import ComparisonPlots

        return ComparisonPlots(self)

    def pair(self, system: str | None = None, baseline: str | None = None) -> tuple[str, str]:
        """Find the compared pair of systems, of which one or both names may be left out."""
        for name in (system, baseline):
            if name is not None:
                check_system(name, self.systems)
        if system is not None and baseline is not None and system != baseline:
            return system, baseline
        fitting = [pair for pair in self._pairs if system in (None, pair[0]) and baseline in (None, pair[1])]
        if system is None and len(fitting) > 1:
            raise InputError(f"there are {len(fitting)} pairs; name one, as in system={fitting[-1][0]!r}")
        if not fitting:
            alone = f"{system or baseline} was compared with no other system in this direction"
            raise InputError(f"{alone}; name both system and baseline")
        return fitting[0]

    @known_arguments
    def movers(
        self, measure: object, system: str | None = None, n: int | None = 20, *, baseline: str | None = None
    ) -> Table:
        """The queries that differ most between two systems, the largest absolute difference first.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
        system, baseline : str, optional
            Default: the only pair. If a system was compared with several baselines, the first of them.
        n : int or None
            Number of rows, at most; queries that do not differ are left out. None: all queries, in the order
            of the first system.

        Returns
        -------
        Table
            The columns of queries; `baseline` and `system`, the values of the two; and `difference`. NaN if a
            value is missing.

        Raises
        ------
        MeasureError, InputError
            A measure or systems that were not compared; independent samples.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> compared = compare(systems, measures="RR")
        >>> [compared.movers("RR", n=n).column("difference").to_pylist() for n in (20, None)]
        [[0.5], [0.5, 0.0]]
        """
        place = self.measures.index(find_measure(measure, self.measures, "was not compared"))
        if not self._options.paired:
            said = "independent samples share no query, so there are no differences; compare with paired=True"
            raise InputError(said)
        own, theirs = (self._samples[one] for one in self.pair(system, baseline))
        old, new = theirs.values[place], own.values[place]
        columns = {"baseline": old, "system": new, "difference": exact_sums.differences_of(new, old)}
        table = own.queries
        for name, column in columns.items():
            table = table.append_column(name, pa.array(column))
        if n is None:
            return Table(table)
        far = np.nan_to_num(np.abs(columns["difference"]), posinf=np.inf)
        chosen = np.argsort(-far, kind="stable")[: max(n, 0)]
        return Table(table.take(pa.array(chosen[far[chosen] > 0])))

    @known_arguments
    def slices(self, columns: str | Sequence[str]) -> dict[tuple[Any, ...], Comparison]:
        """Repeat the comparison for each group of queries.

        Parameters
        ----------
        columns : str or sequence of str
            Kept columns. Several columns give a group for each combination of values that occurs.

        Returns
        -------
        dict of tuple to Comparison
            A tuple holds the values of the columns; groups are in the order of `Scores.by`.

        Raises
        ------
        ColumnError, InputError
            A column was not kept; samples are independent, and one has no query of a group.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> bm25 = Rankings.from_lists([[0, 1], [1, 0], [0, 2]], queries={"country": ["de", "fr", "de"]})
        >>> rerank = Rankings.from_lists([[1, 0], [1, 0], [2, 0]], queries={"country": ["de", "fr", "de"]})
        >>> compared = compare({"bm25": bm25, "rerank": rerank}, measures="RR")
        >>> {group: of_group.rows[0]["difference"] for group, of_group in compared.slices("country").items()}
        {('de',): 0.5, ('fr',): 0.0}
        """
        names = column_names(columns)
        if not names:
            raise ColumnError('no column is named to group by; name one, as in slices("country")')
        for sample in self._samples.values():
            check_kept(names, sample.queries.column_names)
        kept = [sample.queries.select(names) for sample in self._samples.values()]
        every = pa.concat_tables(kept, promote_options="permissive")
        values, groups = groups_of([every[name] for name in names])
        starts = np.cumsum([0, *map(len, kept)])
        found = {}
        for key, rows in zip(zip(*(each.to_pylist() for each in values), strict=True), groups, strict=True):
            parts, samples = np.split(rows, np.searchsorted(rows, starts[1:-1])), {}
            for system, part, start in zip(self._samples, parts, starts, strict=False):
                if not len(part):
                    group = ", ".join(map("{}={!r}".format, names, key))
                    raise InputError(
                        f'"{system}" has no query where {group}; leave such queries out of all systems'
                    )
                samples[system] = self._samples[system].of(part - start)
            found[key] = Comparison(self.measures, samples, {}, self._options)
        return found

    def ranks(self) -> Table:
        """Rank systems by their means, best first, with an interval for each rank.

        A system's rank is at least 1 plus the number of systems that beat it significantly, and at most the
        number of systems minus those that it beats (Al Mohamad, Goeman and van Zwet 2022). All pairs are
        tested and corrected by Holm, whatever the baseline and the correction of the comparison. So all
        intervals of one measure hold at once with the comparison's confidence.

        Returns
        -------
        Table
            measure, where there are several; system; rank, the same of equal means, and null where a mean is
            NaN; low and high, the ends of its interval; group, letters: two systems share one unless the one
            beats the other significantly (Piepho 2004).

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
        system  rank  low  high  group
        b          1    1     2  A
        c          1    1     2  A
        a          3    3     3  B
        """
        rows = self._rank_rows()
        kinds = {"measure": pa.string(), **_OF_RANKS} if len(self.measures) > 1 else _OF_RANKS
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)), keys=len(kinds) - 4)

    def _rank_rows(self) -> list[dict[str, Any]]:
        """The rows of `ranks`, with the measure."""
        options, tested = self._options, self.rows
        if options.baseline is not None:
            options = options._replace(baseline=None, interval="t")
            tested = Comparison(self.measures, self._samples, {}, options).rows
        rows: list[dict[str, Any]] = []
        for measure, means in self.means.items():
            of_measure = [row for row in tested if row["measure"] == measure]
            adjusted = holm([row["p"] for row in of_measure])
            of_measure = [row | {"p_adjusted": p} for row, p in zip(of_measure, adjusted, strict=True)]
            beaten = {(better, worse) for _, better, worse in self._beaten(of_measure)}
            order = sorted(means, key=lambda name: (math.isnan(means[name]), -means[name]))
            groups = letters_of(order, beaten)
            for name in order:
                ahead = sum(means[other] > means[name] for other in means)
                rank = None if math.isnan(means[name]) else 1 + ahead
                low = 1 + sum(worse == name for _, worse in beaten)
                high = len(means) - sum(better == name for better, _ in beaten)
                if rank is not None:  # means of all queries, and differences over those that count for both
                    low, high = min(low, rank), max(high, rank)
                numbers = measure, name, rank, low, high, groups[name]
                rows.append(dict(zip(("measure", *_OF_RANKS), numbers, strict=True)))
        return rows

    def _beaten(self, rows: Iterable[dict[str, Any]]) -> set[tuple[str, str, str]]:
        """Measures, systems, and the systems that these beat significantly."""
        found = set()
        for row in rows:
            if row["p_adjusted"] <= 1 - self._options.confidence and row["difference"]:
                pair = row["system"], row["baseline"]
                found.add((row["measure"], *(pair if row["difference"] > 0 else pair[::-1])))
        return found

    @known_arguments
    def no_worse_than(self, baseline: str, margin: float = 0.0) -> dict[str, bool]:
        """Whether the intervals exclude a loss of more than `margin` against the baseline, by measure, for
        all systems that were compared with it. An interval that is not finite excludes none.

        Parameters
        ----------
        baseline : str
        margin : float
            The largest accepted loss of the mean, in units of the measure; 0 or more.

        Raises
        ------
        InputError, InputTypeError
            Systems that were not compared; a margin that is negative, not finite, or no number.

        See Also
        --------
        verdicts : tell what does not hold from what is undecided.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> compare(systems, measures="RR").no_worse_than("a", margin=0.1)
        {'RR': False}
        """
        found = dict.fromkeys(map(str, self.measures), True)
        for row in self.verdicts(baseline, margin).to_pylist():
            found[row["measure"]] &= row["verdict"] == HOLDS
        return found

    @known_arguments
    def verdicts(self, baseline: str, margin: float = 0.0, *, least_queries: int = 0) -> Table:
        """Whether systems are no worse than the baseline: it holds, it fails, or it is undecided.

        It holds if the interval of the difference excludes a loss of more than `margin`, and fails if the
        interval has no other. It is undecided if the interval has both, or is not finite. Errors are those of
        `no_worse_than`.

        Parameters
        ----------
        baseline, margin
            As in `no_worse_than`.
        least_queries : int
            Of fewer queries the verdict is undecided, whatever the interval; for slices, as in
            `[each.verdicts("bm25", least_queries=30) for each in comparison.slices("country").values()]`.

        Returns
        -------
        Table
            measure, system, baseline, verdict; difference, low, high, of the system minus the baseline;
            queries; needed: about how many queries would decide, if mean and spread stay as they are; null
            where it is decided, or no number would.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> found = compare(systems, measures="RR").verdicts("a", margin=0.1)
        >>> found["verdict"].to_pylist(), found["needed"].to_pylist()
        (['undecided'], [7])
        """
        least, rows = check_whole("least_queries", least_queries, 0), []
        margin = check_size("margin", margin, "a loss to accept", 0.002)
        for row in self.rows:
            pair = row["system"], row["baseline"]
            difference, low, high = row["difference"], row["low"], row["high"]
            if pair[0] == baseline:
                pair, difference, low, high = pair[::-1], -difference, -high, -low
            if pair[1] == baseline:
                verdict = verdict_of(low, high, margin) if row["queries"] >= least else UNDECIDED
                needed = self._needed(row, abs(difference + margin)) if verdict == UNDECIDED else None
                numbers = row["measure"], *pair, verdict, difference, low, high, row["queries"], needed
                rows.append(dict(zip(_OF_VERDICTS, numbers, strict=True)))
        if not rows:
            raise InputError(
                f'"{baseline}" was compared with no system; the systems are: {", ".join(self.systems)}.'
                + suggest(str(baseline), self.systems)
            )
        return Table(pa.Table.from_pylist(rows, pa.schema(_OF_VERDICTS)), keys=len(KEYS))

    def _needed(self, row: dict[str, Any], far: float) -> int | None:
        """Number of queries whose interval would exclude a value at the distance `far` from the mean."""
        n: int = row["queries"]
        freedom = self._freedom[row["measure"], row["system"], row["baseline"]]
        half: float = max(row["high"] - row["difference"], row["difference"] - row["low"])
        share, outside = 1.0, 1 - self._options.confidence
        if not far or not half > 0 or not freedom > 0:
            return None
        now = t_quantile(outside, freedom)
        for _ in range(50):
            of_more = half * t_quantile(outside, share * (freedom + 1) - 1) / now / math.sqrt(share)
            share *= of_more / far  # half way to the solution, since other quantiles belong to more
            if not share * n < 10**18:
                return None
            share = max(share, 1.0)
        return math.ceil(share * n) if share > 1 else n + 1

    def to_arrow(self) -> pa.Table:
        """A row for each measure and pair, with these columns:

        - measure, system, baseline, mean, baseline_mean;
        - difference of the means, and its confidence interval from low to high; p and p_adjusted;
        - effect: the difference in standard deviations, with Hedges' correction;
        - wins, ties and losses of the system; null for independent samples;
        - queries; detectable: the difference that such an experiment detects with a power of about 0.8. A
          difference d needs about queries * (detectable / d)^2 queries;
        - relative: difference / baseline_mean; null where the mean of the baseline is 0.
        """
        return pa.Table.from_pylist(self.rows, pa.schema(COLUMNS))

    def to_json(self) -> str:
        """Return rows, options, cautions and missing queries as JSON. NaN becomes null."""
        missing = {name: ids.to_pylist() for name, ids in self.missing.items()}
        whole = {**self._options._asdict(), "rows": self.rows, "cautions": self.cautions, "missing": missing}
        return json.dumps(without_nan(whole), default=str, indent=2)

    def to_latex(self, *, ranks: bool = False) -> str:
        """Return a LaTeX table of the means, for booktabs. Systems have letters; the best mean is bold.

        A mean has as superscripts the letters of the systems that it beats significantly: p_adjusted is at
        most 1 - confidence. A comment above it says the number of queries, the test and the correction.
        `ranks=True` adds to each mean the interval of the system's rank, and its group, as `ranks` has them.
        """
        options = self._options
        lines = [
            f"% {self.heading()}{'' if options.correction else '; no correction'}",
            f"% superscripts: the systems that this one beats with p of at most {1 - options.confidence:g}",
            *([f"% {RANKS}"] if ranks else []),
            f"\\begin{{tabular}}{{ll{('rl' if ranks else 'r') * len(self.means)}}}",
            "\\toprule",
        ]

        def escape(text: str) -> str:
            signs: dict[str, Any] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
            signs |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
            return visible(text).translate(str.maketrans(signs))

        header, *rows = self._rank(escape, "\\textbf{{{}}}", "$^{{{}}}$", ranks=ranks)
        lines += [f"{' & '.join(header)} \\\\", "\\midrule", *(f"{' & '.join(row)} \\\\" for row in rows)]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def to_markdown(self, *, ranks: bool = False) -> str:
        """Return the table of `to_latex` in Markdown."""
        rows = self._rank(markdown_text, "**{}**", "<sup>{}</sup>", ranks=ranks)
        return markdown_table(rows, 2, is_markdown=True) + "\n"

    def _rank(self, escape: Callable[[str], str], bold: str, above: str, *, ranks: bool) -> list[list[str]]:
        """The header; then for each system its letter, its name, and its means: the best of a measure is
        bold, and the letters of the systems that it beats significantly stand above it.
        """
        letters = {name: letter_of(place) for place, name in enumerate(self.systems)}
        beaten = self._beaten(self.rows)
        standing = {(row["measure"], row["system"]): row for row in self._rank_rows()} if ranks else {}
        names = [name for each in map(escape, self.means) for name in ([each, "rank"] if ranks else [each])]
        table = [["", "system", *names]]
        for system, letter in letters.items():
            cells = []
            for measure, means in self.means.items():
                best = max(means.values(), key=lambda mean: (not math.isnan(mean), mean))
                mean = digits(means[system], ".4f")
                worse = "".join(each for name, each in letters.items() if (measure, system, name) in beaten)
                shown = bold.format(mean) if means[system] == best else mean
                cells.append(shown + (above.format(worse) if worse else ""))
                if ranks:
                    row = standing[measure, system]
                    cells.append(f"{row['low']} to {row['high']}, {row['group']}")
            table.append([letter, escape(system), *cells])
        return table

    def heading(self) -> str:
        """How many systems and queries there are, and how p and intervals are computed."""
        options = self._options
        test = _TESTS[options.test] if options.paired else "Welch's t-test"
        counts = sorted({row["queries"] for row in self.rows})
        queries = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        return (
            f"{len(self.systems)} systems, {queries} queries; p of {test}{_CORRECTIONS[options.correction]}; "
            f"intervals of {100 * options.confidence:g} %{_INTERVALS[options.interval]}"
        )

    def text(self, see: str = "to_arrow()") -> str:
        """The heading, the main numbers at the width of the terminal, and cautions.

        `see` names what shows the columns that a narrow terminal leaves out.
        """
        width, drops = terminal_width(), list(_DROPS)
        if len({row["baseline"] for row in self.rows}) == 1:
            drops.append(("baseline",))
        lines = [self.heading(), fit(self._texts(), 3, drops, width, see)]
        lines += [f"caution: {visible(caution)}" for caution in self.cautions]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html_text(note)}</p>" for note in self.cautions)
        return f"<p>{html_text(self.heading())}</p>{html_table(self._texts(), 3)}{notes}"

    def _texts(self) -> list[list[str]]:
        """The main numbers as strings; the first row is the header."""
        numbers, counts = ("mean", "difference", "low", "high"), ("wins", "ties", "losses")
        rows = [[*KEYS, *numbers, "relative", "p", "effect", *counts]]
        for row in self.rows:
            texts = [row[name] for name in KEYS] + [digits(row[name], ".4f") for name in numbers]
            share = row["relative"]
            texts.append("" if share is None else f"{digits(100 * share, '+.1f')} %")
            texts += [digits(row["p_adjusted"], ".2g"), digits(row["effect"], ".2f")]
            rows.append(texts + ["" if row[name] is None else f"{row[name]:,}" for name in counts])
        return rows


def that_count(counts: Flags, *columns: Array | None) -> list[Any]:
    """What enters the mean of columns, which are not copied if all does."""
    whole = counts.all()
    return [column if column is None or whole else column[counts] for column in columns]


def letters_of(systems: Sequence[str], apart: AbstractSet[tuple[str, str]]) -> dict[str, str]:
    """Letters of each system: two systems share a letter unless they differ significantly (`apart`).

    A letter is a set of systems to which no other can be added. One is made for each pair that has none yet,
    so that there are at most as many as pairs.

    >>> letters_of(["a", "b", "c", "d"], {("a", "c"), ("a", "d")})
    {'a': 'A', 'b': 'AB', 'c': 'B', 'd': 'B'}
    """
    are_apart = apart | {pair[::-1] for pair in apart}
    groups: list[list[str]] = []
    for pair in combinations_with_replacement(systems, 2):
        if pair not in are_apart and not any({*pair} <= {*group} for group in groups):
            group = list(dict.fromkeys(pair))
            for third in systems:
                if third not in group and not any((third, each) in are_apart for each in group):
                    group.append(third)
            groups.append(group)
    return {
        name: "".join(letter_of(place).upper() for place, group in enumerate(groups) if name in group)
        for name in systems
    }


def verdict_of(low: float, high: float, margin: float) -> str:
    """The verdict of an interval of differences on a loss greater than `margin`.

    >>> [verdict_of(*interval, 0.1) for interval in ((-0.1, 0.2), (-0.3, -0.2), (-0.2, 0.1))]
    ['holds', 'fails', 'undecided']
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return UNDECIDED
    return HOLDS if -low <= margin else FAILS if -high > margin else UNDECIDED


def letter_of(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"({place + 1})"
