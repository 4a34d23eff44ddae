"""`compare`: which of several systems is better, by how much, and how significant that is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.common.exports import AsFrame, without_nan
from fastndcg.common.markup import html_table, html_text, markdown_table, markdown_text
from fastndcg.common.table import Table, digits, fit, terminal_width
from fastndcg.common.threads import check_threads
from fastndcg.errors import (
    ColumnError,
    InputError,
    InputTypeError,
    MeasureError,
    about,
    check_choice,
    check_length,
    check_system,
    check_whole,
    count_of,
    known_arguments,
    suggest,
    visible,
)
from fastndcg.measures import Judged, Measure, as_measures, find_measure
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import fields_of, hashes_of_ids
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.scoring import methods
from fastndcg.statistics import exact_sums
from fastndcg.statistics.resampling import EXACT, check_resamples, sign_flips
from fastndcg.statistics.significance import (
    CORRECTIONS,
    FAILS,
    HOLDS,
    SMALL,
    UNDECIDED,
    Spread,
    check_confidence,
    check_size,
    holm,
)
from fastndcg.tables.joins import alike
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, with_roles_of_both

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastndcg.charts.plots import ComparisonPlots
    from fastndcg.common.arrays import Array, Flags, Float64, Int64
    from fastndcg.typing import JoinKeywords

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


_OF_RANKS = {"system": pa.string(), **dict.fromkeys(("rank", "low", "high"), pa.int64())}
_OF_RANKS |= {"group": pa.string()}
_OF_VERDICTS = {
    **dict.fromkeys((*KEYS, "verdict"), pa.string()),
    **dict.fromkeys(("difference", "low", "high"), pa.float64()),
    "queries": pa.int64(),
}
TESTS = {"t": "paired t-test", "randomisation": "randomised signs"}
_CORRECTIONS = {None: "", "holm": ", corrected by Holm", "bh": ", corrected by Benjamini and Hochberg"}
# columns that say least about a difference, and about an order
_DROPS = (("ties",), ("effect",), ("wins", "losses"), ("relative",), ("mean",))


@known_arguments
@with_roles_of_both
def compare(
    systems: Any = None,
    second: Any = None,
    measures: Any = None,
    *,
    qrels: Any = None,
    run: Any = None,
    baseline: str | None = None,
    test: str = "t",
    correction: str | None = None,
    confidence: float = 0.95,
    tolerance: float = 0.0,
    cluster: str | npt.ArrayLike | None = None,
    paired: bool = True,
    missing: str | float = "refuse",
    resamples: int = 100_000,
    seed: int = 0,
    signatures: str = "refuse",
    threads: int | None = None,
    **roles: Unpack[JoinKeywords],
) -> Comparison:
    """Compare systems query by query: each with the baseline, or every pair.

    Called as `compare(systems, measures)`, or as `compare(qrels, runs, measures)`, which joins each of
    several runs with the judgments first, as `evaluate` does. Queries are matched by id, in any order; the
    number 7 and the text "7" are one id.

    Parameters
    ----------
    systems : mapping of names to Scores, or to Rankings with `measures`
        Only measures that all systems have are compared.
    second : measures, or the name of the baseline, optional
        As in `compare(systems, ["nDCG@10"])` and `compare(systems, "bm25")`; instead of a keyword.
    qrels, run : judgments, and several runs by name, optional
        In place of systems, as in `compare(qrels, {"bm25": run, "e5": other}, "nDCG@10")`, of any shape that
        `evaluate` takes. For a convention, give what `evaluate(qrels, runs, measures)` returns as systems.
    baseline, measures : optional
        The system that all others are compared with (default: every pair is compared, and the earlier of the
        two is the baseline); what to evaluate of Rankings, or to compare of Scores.
    test : "t" or "randomisation"
        "t" is Student's paired t-test, or Welch's with `paired=False`. "randomisation", or "permutation",
        flips the signs of differences at random, those of a cluster together; up to 20 nonzero differences it
        tries all signs, and p is exact.
    correction : None, "holm" or "bh"
        `p_adjusted` for the pairs of each measure: "holm" bounds the chance of any false finding, "bh"
        (Benjamini and Hochberg) the share of false findings.
    confidence : float
        Of the intervals of differences, by Student's t.
    tolerance : float
        Differences up to this size count as ties; 0 or more. Only wins, ties and losses depend on it.
    cluster : column, or array (n_queries of the first system,), optional
        The cluster of each query where queries are not independent, such as the user who asked it. Standard
        errors are then computed over clusters.
    paired : bool
        False for independent samples, such as the two arms of an experiment, which share no queries.
    missing : "refuse", "drop" or a number
        What to do with queries that some systems lack: raise an error, leave them out for all systems, or use
        this number as their value of every measure. `Comparison.missing` has their ids.
    resamples, seed, threads : int
        Number and seed of the draws of "randomisation", which depend neither on threads (default: all that
        Numba has, if there is enough work) nor on the order of queries or systems. p is never below 1 / (1 +
        resamples).
    signatures : "refuse" or "ignore"
        What to do with results that by their signatures (`Scores.signature`) have other judgments or another
        convention. Systems without a pool that may have returned other documents are compared as they are,
        unless their results were stored.
    query, doc_id, relevance, score, rank, weight, keep
    nan, ascending, unjudged, grades, types, columns, sep, decimal, relevant_ids, retrieved_ids, duplicates
        Columns of `qrels` and `run` and how to read them, as in `Rankings.from_qrels_run`.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError, InputTypeError
        Queries that are missing or repeated; weights or signatures that differ; fewer than two systems, or
        one that is neither Scores nor Rankings; options that exclude each other.
    MeasureError, ColumnError
        No measure was evaluated for all systems; a `cluster` that was not kept.

    See Also
    --------
    evaluate : compute the values that are compared.
    report : write a page about several systems.

    References
    ----------
    Smucker et al., CIKM 2007 (randomisation).

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> bm25 = Rankings.from_dense([[1, 0, 2], [0, 1, 0], [2, 0, 1]], [[3, 2, 1], [3, 2, 1], [3, 2, 1]])
    >>> rerank = bm25.with_scores([1, 2, 3, 1, 3, 2, 3, 1, 2])
    >>> row = compare({"bm25": bm25, "rerank": rerank}, "nDCG@3").rows[0]
    >>> round(row["difference"], 4), row["wins"], row["ties"], row["losses"], row["queries"]
    (0.203, 3, 0, 0, 3)
    >>> runs = {"bm25": {"q1": ["c", "b"], "q2": ["a"]}, "e5": {"q1": ["b", "c"], "q2": ["a"]}}
    >>> compare({"q1": {"b": 1}, "q2": {"a": 2}}, runs, "RR").rows[0]["difference"]
    0.25
    """
    if qrels is None and isinstance(second, Mapping):
        systems, second, qrels, run = None, None, systems, second
    if qrels is not None or run is not None:
        if qrels is None or run is None or systems is not None:
            raise InputTypeError("qrels= and run= take the place of systems together; give these two")
        systems, second = _joined(qrels, run, measures, Roles.of(roles, "compare", OF_ONE_TABLE)), None
    elif roles:
        raise InputTypeError(f"{next(iter(roles))}= is of judgments and runs; systems have their columns")
    if second is not None:
        baseline, measures = _with_second(systems, second, baseline, measures)
    if not isinstance(systems, Mapping):
        raise InputTypeError(
            f'systems is a {type(systems).__name__}; expected a mapping of names, as in {{"bm25": '
            'scores, "rerank": other}'
        )
    if len(systems) < 2:
        raise InputError(f"comparing takes at least two systems; got {len(systems)}")
    scored = {str(name): scores_of(name, source, measures) for name, source in systems.items()}
    if baseline is not None:
        check_system(baseline, scored, f'baseline="{baseline}"')
    test = "randomisation" if test == "permutation" else test
    check_choice("test", test, tuple(TESTS))
    check_choice("correction", correction, (None, *CORRECTIONS))
    if test != "t" and not paired:
        raise InputError(f'test="{test}" and paired=False do not go together; use test="t"')
    resamples, seed = check_resamples(resamples, seed)
    confidence = check_confidence(confidence)
    tolerance = check_size("tolerance", tolerance, "a size of ties", 0.01)
    drawn = resamples, seed, check_threads(threads)
    options = Options(baseline, test, correction, confidence, tolerance, paired, *drawn)
    asked = common_measures(scored, measures)
    open_questions = _check_signatures(scored, asked, signatures)
    if paired:
        samples, absent = match_queries(scored, asked, cluster, missing)
    else:
        samples, absent = unmatched_samples(scored, asked, cluster), {}
        highest = {name: grade for name, each in scored.items() if (grade := highest_grade(each)) is not None}
        if len({*highest.values()}) > 1:
            listed = ", ".join(f"{grade:g} in {name}" for name, grade in highest.items())
            open_questions.append(
                f"The highest grade is {listed}: means of grades on two scales cannot be compared."
            )
    compared = Comparison(asked, samples, absent, options)
    compared.cautions += [*open_questions, *shares_that_differ(scored, asked, baseline)]
    return compared


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
        self.rows = [row for place in range(len(self.measures)) for row in self._rows_of(place)]

    def _rows_of(self, place: int) -> list[dict[str, Any]]:
        """The rows of all pairs for one measure."""
        options, measure = self._options, self.measures[place]
        rows: list[dict[str, Any]] = []
        for pair in self._pairs:
            spread, numbers = (self._paired if options.paired else self._independent)(place, *pair)
            key = str(measure), *pair
            numbers = dict(zip(KEYS, key, strict=True)) | spread.numbers(options.confidence) | numbers
            numbers["relative"] = spread.mean / mean if (mean := numbers["baseline_mean"]) else None
            rows.append({name: numbers.get(name) for name in COLUMNS})
        correct = CORRECTIONS.get(options.correction or "", list)
        for row, adjusted in zip(rows, correct([row["p"] for row in rows]), strict=True):
            row["p_adjusted"] = adjusted
            is_known = row["queries"] > 1 and math.isfinite(row["difference"])
            if is_known and not (math.isfinite(row["low"]) and math.isfinite(row["high"])):
                self.cautions.append(
                    f"The interval of {measure} between {row['system']} and {row['baseline']} is not finite, "
                    "so that no gate holds by it. Take more queries."
                )
        return rows

    def _paired(self, place: int, system: str, baseline: str) -> tuple[Spread, dict[str, Any]]:
        one, other, options = self._samples[system], self._samples[baseline], self._options
        counts = one.counts[place] & other.counts[place]
        mine, theirs, weight, clusters = that_count(
            counts, one.values[place], other.values[place], one.weight, one.clusters
        )
        differences = exact_sums.differences_of(mine, theirs)
        size = max(float(np.abs(each).max(initial=0.0)) for each in (mine, theirs))
        spread = Spread.of(differences, weight, clusters, size)
        nonzero = int(np.count_nonzero(differences))
        wins, losses = (int((sign * differences > options.tolerance).sum()) for sign in (1, -1))
        if 0 < nonzero < SMALL:
            exact = ", which is exact for so few" if nonzero <= EXACT else ""
            self.cautions.append(
                f"Only {nonzero} of {len(mine):,} differences of {self.measures[place]} between {system} and "
                f"{baseline} are not zero, too few for an interval to be relied on. "
                f'Take more queries, or test="randomisation"{exact}.'
            )
        if options.test == "t" or math.isnan(spread.mean):
            p = spread.p()
        else:
            weighted, most = differences, size
            if weight is not None:
                scaled = exact_sums.scaled(weight)
                weighted, most = differences * scaled, size * scaled[differences != 0].max(initial=0.0)
            drawn = options.resamples, options.seed, options.threads
            p = sign_flips(weighted, clusters, *drawn, size=most)
        means = []  # over the queries that enter the means of both systems
        for name, values in ((system, mine), (baseline, theirs)):
            is_complete = int(np.count_nonzero(self._samples[name].counts[place])) == len(values)
            known = self.means[str(self.measures[place])]
            means.append(known[name] if is_complete else exact_sums.mean(values, weight))
        return spread, {
            "mean": means[0],
            "baseline_mean": means[1],
            "p": p,
            "wins": wins,
            "ties": len(mine) - wins - losses,
            "losses": losses,
            "queries": len(mine),
        }

    def _independent(self, place: int, system: str, baseline: str) -> tuple[Spread, dict[str, Any]]:
        spreads = [
            Spread.of(*that_count(each.counts[place], each.values[place], each.weight, each.clusters))
            for each in (self._samples[system], self._samples[baseline])
        ]
        spread = Spread.independent(*spreads)
        return spread, {
            "mean": spreads[0].mean,
            "baseline_mean": spreads[1].mean,
            "p": spread.p(),
            "queries": spread.n,
        }

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
        sample, theirs = (self._samples[one] for one in self.pair(system, baseline))
        old, new = theirs.values[place], sample.values[place]
        columns = {"baseline": old, "system": new, "difference": exact_sums.differences_of(new, old)}
        table = sample.queries
        for name, column in columns.items():
            table = table.append_column(name, pa.array(column))
        if n is None:
            return Table(table)
        distances = np.nan_to_num(np.abs(columns["difference"]), posinf=np.inf)
        chosen = np.argsort(-distances, kind="stable")[: max(n, 0)]
        return Table(table.take(pa.array(chosen[distances[chosen] > 0])))

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
        comparisons = {}
        for key, rows in zip(zip(*(each.to_pylist() for each in values), strict=True), groups, strict=True):
            parts, samples = np.split(rows, np.searchsorted(rows, starts[1:-1])), {}
            for system, part, start in zip(self._samples, parts, starts, strict=False):
                if not len(part):
                    group = ", ".join(map("{}={!r}".format, names, key))
                    raise InputError(
                        f'"{system}" has no query where {group}; leave such queries out of all systems'
                    )
                samples[system] = self._samples[system].of(part - start)
            comparisons[key] = Comparison(self.measures, samples, {}, self._options)
        return comparisons

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
        options, tested = self._options, self.rows
        if options.baseline is not None:
            options = options._replace(baseline=None)
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
        kinds = {"measure": pa.string(), **_OF_RANKS} if len(self.measures) > 1 else _OF_RANKS
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)), keys=len(kinds) - 4)

    def _beaten(self, rows: Iterable[dict[str, Any]]) -> set[tuple[str, str, str]]:
        """Measures, systems, and the systems that these beat significantly."""
        beaten = set()
        for row in rows:
            if row["p_adjusted"] <= 1 - self._options.confidence and row["difference"]:
                pair = row["system"], row["baseline"]
                beaten.add((row["measure"], *(pair if row["difference"] > 0 else pair[::-1])))
        return beaten

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
        holds = dict.fromkeys(map(str, self.measures), True)
        for row in self.verdicts(baseline, margin).to_pylist():
            holds[row["measure"]] &= row["verdict"] == HOLDS
        return holds

    @known_arguments
    def verdicts(self, baseline: str | None = None, margin: float = 0.0, *, least_queries: int = 0) -> Table:
        """Whether systems are no worse than the baseline: it holds, it fails, or it is undecided.

        It holds if the interval of the difference excludes a loss of more than `margin`, and fails if the
        interval has no other. It is undecided if the interval has both, or is not finite. Errors are those of
        `no_worse_than`.

        Parameters
        ----------
        baseline, margin
            As in `no_worse_than`. Default: the baseline of each pair of systems.
        least_queries : int
            Of fewer queries the verdict is undecided, whatever the interval; for slices, as in
            `[each.verdicts("bm25", least_queries=30) for each in comparison.slices("country").values()]`.

        Returns
        -------
        Table
            measure, system, baseline, verdict; difference, low, high, of the system minus the baseline;
            and queries.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> compare(systems, measures="RR").verdicts("a", margin=0.1)["verdict"].to_pylist()
        ['undecided']
        """
        least, rows = check_whole("least_queries", least_queries, 0), []
        margin = check_size("margin", margin, "a loss to accept", 0.002)
        for row in self.rows:
            pair = row["system"], row["baseline"]
            difference, low, high = row["difference"], row["low"], row["high"]
            if pair[0] == baseline:
                pair, difference, low, high = pair[::-1], -difference, -high, -low
            if baseline in (None, pair[1]):
                verdict = UNDECIDED
                if row["queries"] >= least and math.isfinite(low) and math.isfinite(high):
                    verdict = HOLDS if -low <= margin else FAILS if -high > margin else UNDECIDED
                numbers = row["measure"], *pair, verdict, difference, low, high, row["queries"]
                rows.append(dict(zip(_OF_VERDICTS, numbers, strict=True)))
        if not rows:
            raise InputError(
                f'"{baseline}" was compared with no system; the systems are: {", ".join(self.systems)}.'
                + suggest(str(baseline), self.systems)
            )
        return Table(pa.Table.from_pylist(rows, pa.schema(_OF_VERDICTS)), keys=len(KEYS))

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
        document = {
            **self._options._asdict(),
            "rows": self.rows,
            "cautions": self.cautions,
            "missing": missing,
        }
        return json.dumps(without_nan(document), default=str, indent=2)

    def to_latex(self) -> str:
        """Return a LaTeX table of the means, for booktabs. Systems have letters; the best mean is bold.

        A mean has as superscripts the letters of the systems that it beats significantly: p_adjusted is at
        most 1 - confidence. A comment above it says the number of queries, the test and the correction.
        """
        options = self._options
        lines = [
            f"% {self.heading()}{'' if options.correction else '; no correction'}",
            f"% superscripts: the systems that this one beats with p of at most {1 - options.confidence:g}",
            f"\\begin{{tabular}}{{ll{'r' * len(self.means)}}}",
            "\\toprule",
        ]

        def escape(text: str) -> str:
            signs: dict[str, Any] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
            signs |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
            return visible(text).translate(str.maketrans(signs))

        header, *rows = self._means_by_system(escape, "\\textbf{{{}}}", "$^{{{}}}$")
        lines += [f"{' & '.join(header)} \\\\", "\\midrule", *(f"{' & '.join(row)} \\\\" for row in rows)]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def to_markdown(self) -> str:
        """Return the table of `to_latex` in Markdown."""
        rows = self._means_by_system(markdown_text, "**{}**", "<sup>{}</sup>")
        return markdown_table(rows, 2, is_markdown=True) + "\n"

    def _means_by_system(self, escape: Callable[[str], str], bold: str, above: str) -> list[list[str]]:
        """The header; then for each system its letter, its name, and its means: the best of a measure is
        bold, and the letters of the systems that it beats significantly stand above it.
        """
        letters = {name: letter_of(place) for place, name in enumerate(self.systems)}
        beaten = self._beaten(self.rows)
        table = [["", "system", *map(escape, self.means)]]
        for system, letter in letters.items():
            cells = []
            for measure, means in self.means.items():
                best = max(means.values(), key=lambda mean: (not math.isnan(mean), mean))
                mean = digits(means[system], ".4f")
                worse = "".join(each for name, each in letters.items() if (measure, system, name) in beaten)
                shown = bold.format(mean) if means[system] == best else mean
                cells.append(shown + (above.format(worse) if worse else ""))
            table.append([letter, escape(system), *cells])
        return table

    def heading(self) -> str:
        """How many systems and queries there are, and how p and intervals are computed."""
        options = self._options
        test = TESTS[options.test] if options.paired else "Welch's t-test"
        counts = sorted({row["queries"] for row in self.rows})
        queries = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        return (
            f"{len(self.systems)} systems, {queries} queries; p of {test}{_CORRECTIONS[options.correction]}; "
            f"intervals of {100 * options.confidence:g} %"
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


def _joined(qrels: Any, run: Any, measures: Any, roles: Roles) -> dict[str, Rankings]:
    """Join each of several runs with the judgments."""
    from fastndcg.sources.trec import rankings_by_name

    if measures is None:
        raise InputTypeError("no measures are given; they come last, as in compare(qrels, runs, measures)")
    rankings = rankings_by_name(qrels, run, roles, as_measures(measures))
    if rankings is None:
        raise InputTypeError(
            "run is one run; compare takes several by name, as in "
            'compare(qrels, {"bm25": run, "e5": other}, measures)'
        )
    return rankings


def _with_second(systems: Any, second: Any, baseline: str | None, measures: Any) -> tuple[str | None, Any]:
    """Return the baseline and the measures, one of which is the second positional argument."""
    is_baseline = isinstance(second, str) and isinstance(systems, Mapping) and second in map(str, systems)
    if (baseline if is_baseline else measures) is not None:
        other = "baseline" if is_baseline else "measures"
        raise InputError(f"{second!r} is given beside {other}=; give one of the two")
    return (second, measures) if is_baseline else (baseline, second)


def _check_signatures(scored: dict[str, Scores], measures: Sequence[Measure], signatures: str) -> list[str]:
    """Return cautions about incomplete signatures. Raises `InputError` if signatures differ.

    Systems that were just evaluated without a pool may return other documents, and so have other judgments.
    """
    check_choice("signatures", signatures, ("refuse", "ignore"))
    if signatures == "ignore" or len(scored) < 2:
        return []
    is_stored = any(scores._signatures for scores in scored.values())
    cautions: dict[str, None] = {}
    known = {name: scores._known() for name, scores in scored.items()}
    for measure in measures:
        by_system = {name: fields_of(scores.signature(measure)) for name, scores in known.items()}
        first, *others = by_system
        for name in others:
            one, other = by_system[first], by_system[name]
            for field in ("convention", "judgments"):  # measures and queries are matched
                if one[field] == other[field] or "unknown" in (one[field], other[field]):
                    continue
                if field == "judgments" and one["queries"] != other["queries"]:
                    if is_stored or one[field].startswith("pool"):
                        cautions[
                            f"{first} and {name} have other queries, so that it cannot be known "
                            "whether they were judged alike."
                        ] = None
                    continue
                if field == "judgments" and not is_stored and _may_return_others(scored[first], scored[name]):
                    continue
                raise InputError(
                    f'{measure} of "{first}" and "{name}" cannot be compared: {field} is '
                    f"{one[field]} in one and {other[field]} in the other. Evaluate both the same way, "
                    'or pass signatures="ignore".'
                )
    return list(cautions)


def _may_return_others(one: Scores, other: Scores) -> bool:
    """Return whether systems without a pool may have returned other documents, with other grades: by document
    ids, or else by the number of documents of each query, unless all queries have equally many.
    """
    sides = one._rankings, other._rankings
    if any(side is None or side.judged is not None for side in sides):
        return None in sides
    with_ids = all(side.doc_ids is not None for side in sides)
    if not with_ids and len(np.unique(sides[0].lengths)) == 1:
        return True
    mine, theirs = (_documents(side, with_ids) for side in sides)
    return not np.array_equal(mine, theirs)


def _documents(rankings: Rankings, with_ids: bool) -> npt.NDArray[np.uint64]:
    """Hash each query with its documents, or with their number; ascending."""
    counts = rankings.lengths.astype(np.uint64)
    if with_ids:
        sums = np.append(np.uint64(0), np.cumsum(hashes_of_ids(rankings.doc_ids), dtype=np.uint64))
        counts = np.diff(sums[rankings.offsets])
    return np.sort(hashes_of_ids(rankings.query_ids) ^ counts * np.uint64(0x9E3779B97F4A7C15))


def that_count(counts: Flags, *columns: Array | None) -> list[Any]:
    """What enters the mean of columns, which are not copied if all does."""
    all_count = counts.all()
    return [column if column is None or all_count else column[counts] for column in columns]


def letters_of(systems: Sequence[str], differing: AbstractSet[tuple[str, str]]) -> dict[str, str]:
    """Letters of each system: two systems share a letter unless they differ significantly (`apart`).

    A letter is a set of systems to which no other can be added. One is made for each pair that has none yet,
    so that there are at most as many as pairs.

    >>> letters_of(["a", "b", "c", "d"], {("a", "c"), ("a", "d")})
    {'a': 'A', 'b': 'AB', 'c': 'B', 'd': 'B'}
    """
    are_apart = differing | {pair[::-1] for pair in differing}
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


def letter_of(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"({place + 1})"


# ---- queries of several systems, matched ----


class Sample(NamedTuple):
    """Values of one system, for the matched queries of all systems or for its own queries."""

    values: Float64  # (n_measures, n_queries)
    counts: Flags  # same shape: whether a value counts in the mean
    weight: Float64 | None
    clusters: Int64 | None
    queries: pa.Table

    def of(self, rows: Int64) -> Sample:
        """Return the sample of some of the queries."""
        weight = None if self.weight is None else self.weight[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        queries = self.queries.take(pa.array(rows))
        return Sample(self.values[:, rows], self.counts[:, rows], weight, clusters, queries)


def scores_of(name: object, source: Any, measures: Any) -> Scores:
    """Return the scores of one system, which may be Rankings."""
    if isinstance(source, Rankings):
        if measures is None:
            said = 'is Rankings; name what to evaluate, as in measures=["nDCG@10"], or give Scores'
            raise InputError(f'"{name}" {said}')
        with about(f'"{name}"'):
            return evaluate(source, measures)
    if not isinstance(source, Scores):
        kind = type(source).__name__
        raise InputTypeError(f'"{name}" is a {kind}; expected Scores, as evaluate returns them, or Rankings')
    return source


def pairs_of(systems: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Return pairs of systems and baselines: the named baseline, or every earlier system."""
    if baseline is None:
        return [(system, earlier) for earlier, system in combinations(systems, 2)]
    check_system(baseline, systems, f'baseline="{baseline}"')
    return [(name, baseline) for name in systems if name != baseline]


def common_measures(scored: dict[str, Scores], measures: Any) -> list[Measure]:
    if measures is not None:
        asked = list(as_measures(measures))
        for system in scored.values():
            for measure in asked:
                system[measure]  # raises an error that names the measures that were evaluated
        return asked
    first, *others = scored.values()
    common = [measure for measure in first if all(measure in system.measures for system in others)]
    if not common:
        evaluated = "; ".join(f"{name}: {', '.join(map(str, each))}" for name, each in scored.items())
        raise MeasureError(f"no measure was evaluated for all systems ({evaluated}); evaluate the same ones")
    return common


# Shares of judged documents that differ by more than this are worth a caution: P@k then can differ by that
# alone, since unjudged documents count as not relevant, and few systems differ by more.
UNJUDGED = 0.05
_TOP = 10  # documents examined for measures without a cutoff, which depend most on the first ones
_KNOWING = ("unjudged", "judgment", "found")  # gains of measures that know which documents were judged


def shares_that_differ(
    scored: dict[str, Scores], measures: Sequence[Measure], baseline: str | None
) -> list[str]:
    """Return a caution for each cutoff at which systems' shares of judged documents differ. The shares of
    stored results, and of rankings without judgment marks, are unknown.
    """
    ranked = {name: scores._rankings for name, scores in scored.items()}
    known = {name: each for name, each in ranked.items() if each is not None and each.is_judged is not None}
    # shares of judged documents, and measures for which unjudged documents are not relevant
    by_share: dict[Measure, list[Measure]] = {}
    for measure in measures if len(known) > 1 else ():
        parts, params = measure.definition, measure.params
        is_blind = parts.ranking == "system" and parts.gain not in _KNOWING
        if is_blind and not params.get("judged_only") and params.get("unjudged") is None:
            by_share.setdefault(Judged(empty="skip") @ (measure.cutoff or _TOP), []).append(measure)
    cautions: list[str] = []
    for judged, blind in by_share.items():
        shares = {name: methods.score((judged,), each)._mean(0) for name, each in known.items()}
        others = shares.values() if baseline not in shares else [shares[str(baseline)]]
        if max(abs(share - other) for share in shares.values() for other in others) <= UNJUDGED:
            continue
        listed = ", ".join(f"{100 * share:.1f} % of {name}" for name, share in shares.items())
        cautions.append(
            f"Of the first {judged.cutoff} documents were judged: {listed}. Unjudged documents count as not "
            f"relevant, so that {', '.join(map(str, blind))} may differ for that alone. In Python, "
            f'judgment_range(rankings, "{blind[0]}") has the values of each with the least and the greatest '
            "grade for them."
        )
    return cautions


def highest_grade(scores: Scores) -> float | None:
    """Return the highest grade of the judgments, if they are available and any document is relevant."""
    grades = getattr(scores._rankings, "_grades", None)
    return None if grades is None or not grades.highest > 0 else float(grades.highest)


def _values_of(scores: Scores, measures: Sequence[Measure]) -> tuple[Float64, Flags]:
    """Return the values of some measures, and whether each value counts in the mean."""
    rows = [scores.measures.index(measure) for measure in measures]
    counts = np.ones((len(rows), scores.n_queries), np.bool_)
    for place, row in enumerate(rows):
        of_row = scores._counts(row)
        counts[place] = True if of_row is None else of_row
    are_all = rows == list(range(len(scores.measures)))
    return scores.values if are_all else scores.values[rows], counts


def unmatched_samples(
    scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any
) -> dict[str, Sample]:
    samples = {}
    for name, scores in scored.items():
        clusters = None if cluster is None else _clusters(cluster, scores.queries)
        samples[name] = Sample(*_values_of(scores, measures), scores._weight, clusters, scores.queries)
    return samples


def find_rows(columns: Mapping[str, pa.ChunkedArray]) -> tuple[pa.Array, dict[str, Int64]]:
    """Return all ids in order of first appearance, and the row of each in every column, -1 if absent. The
    number 7 and the text "7" are one id. Raises `InputError` for an id that a column has more than once.
    """
    first, *others = ids = alike(*columns.values())
    same = all(each.equals(first) for each in others)
    encoded = (first if same else pa.concat_arrays(ids)).dictionary_encode(null_encoding="encode")
    every, codes = encoded.dictionary, array_of(encoded.indices)
    rows, start = {}, 0
    for name, of_system in zip(columns, ids, strict=True):
        rows[name] = np.full(len(every), -1)
        of_own = codes[start : start + len(of_system)]
        rows[name][of_own] = np.arange(len(of_system))
        if np.count_nonzero(rows[name] >= 0) < len(of_system):
            row = int(np.argmax(rows[name][of_own] > np.arange(len(of_system))))
            query = columns[name][row].as_py()
            raise InputError(f'"{name}" has query {query!r} more than once; give each query one row')
        start += 0 if same else len(of_system)
    return as_texts(every), rows


def as_texts(ids: pa.Array) -> pa.Array:
    """Return ids for people: bytes as text if they are text."""
    try:
        return ids.cast(pa.large_string()) if pa.types.is_large_binary(ids.type) else ids
    except pa.ArrowInvalid:
        return ids


def match_queries(
    scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any, missing: str | float
) -> tuple[dict[str, Sample], dict[str, pa.Array]]:
    """Return the values of all systems for the same queries in the same order, and the ids they lack."""
    is_number = isinstance(missing, int | float) and not isinstance(missing, bool) and math.isfinite(missing)
    if not is_number and missing not in ("refuse", "drop"):
        raise InputError(f'missing={missing!r} is not known; expected "refuse", "drop" or a finite number')
    every, rows = find_rows({name: scores.queries[0] for name, scores in scored.items()})
    absent = {
        name: every.filter(pa.array(system_rows < 0))
        for name, system_rows in rows.items()
        if (system_rows < 0).any()
    }
    if absent and missing == "refuse":
        raise InputError(
            f'{missing_text(absent)} Pass missing="drop", or the value that they count, as in missing=0.0.'
        )
    if missing == "drop":
        shared = np.logical_and.reduce([system_rows >= 0 for system_rows in rows.values()])
        rows = {name: system_rows[shared] for name, system_rows in rows.items()}
    weight, queries, clusters = _common_weight(scored, rows), _common_queries(scored, rows), None
    first = next(iter(scored))
    if isinstance(cluster, str):
        clusters = _clusters(cluster, queries)
    elif cluster is not None:
        clusters = _clusters(cluster, scored[first].queries)[rows[first]]
        if (rows[first] < 0).any():
            raise InputError(
                f'cluster is an array for the queries of "{first}", which lacks some; name a column instead'
            )
    samples = {}
    for name, scores in scored.items():
        values, counts = _values_of(scores, measures)
        if not _is_identity(system_rows := rows[name], scores.n_queries):
            filled = np.full(len(values), missing if is_number else 0.0)  # -1, for a query that is absent
            values = np.column_stack([values, filled])[:, system_rows]
            counts = np.column_stack([counts, np.full(len(values), True)])[:, system_rows]
        samples[name] = Sample(values, counts, weight, clusters, queries)
    return samples, absent


def _is_identity(rows: Int64, n: int) -> bool:
    return len(rows) == n and np.array_equal(rows, np.arange(n))


def missing_text(absent: Mapping[str, pa.Array]) -> str:
    notes = []
    for name, ids in absent.items():
        named = ", ".join(map(repr, ids[:3].to_pylist())) + (", ..." if len(ids) > 3 else "")
        notes.append(f'"{name}" lacks {count_of(len(ids), "query")} that others have: {named}.')
    return " ".join(notes)


def _common_weight(scored: dict[str, Scores], rows: dict[str, Int64]) -> Float64 | None:
    """Return the weights of the matched queries. Raises `InputError` if systems have different weights."""
    weights = {name: scores._weight for name, scores in scored.items() if scores._weight is not None}
    if not weights:
        return None
    first = next(iter(weights))
    if len(weights) < len(scored):
        without = next(name for name in scored if name not in weights)
        raise InputError(f'"{first}" has weights and "{without}" has none; give all systems the same')
    common = np.full(len(rows[first]), np.nan)
    for name, weight in weights.items():
        own_weight = np.append(weight, np.nan)[rows[name]]  # NaN where the system lacks the query
        differ = ~np.isnan(own_weight) & ~np.isnan(common) & (own_weight != common)
        if differ.any():
            row = int(np.argmax(differ))
            query = scored[name].queries[0][int(rows[name][row])].as_py()
            raise InputError(
                f'query {query!r} weighs {own_weight[row]:g} in "{name}" and {common[row]:g} in "{first}"; '
                "give all systems the same weights"
            )
        common = np.where(np.isnan(common), own_weight, common)
    return common


def _common_queries(scored: dict[str, Scores], rows: dict[str, Int64]) -> pa.Table:
    """Return a row for each matched query. Each column has the values of the first system that has both the
    column and the query, and the ids have the name that the first system has for them.
    """
    named: dict[str, dict[str, pa.ChunkedArray]] = {}  # by column and system
    ids = next(iter(scored.values())).queries.column_names[0]
    for system, scores in scored.items():
        for name, column in zip([ids, *scores.queries.column_names[1:]], scores.queries.columns, strict=True):
            named.setdefault(name, {})[system] = column
    columns = {}
    for name, of_systems in named.items():
        used: list[pa.ChunkedArray] = []
        source, start = np.full(len(next(iter(rows.values()))), -1), 0
        for system, column in of_systems.items():
            new = (source < 0) & (rows[system] >= 0)
            if new.any():
                source[new], start = rows[system][new] + start, start + len(column)
                used.append(column)
        used = used or [next(iter(of_systems.values()))]
        if name == ids and len({each.type for each in used}) > 1:
            used = [pa.chunked_array([as_texts(each)]) for each in alike(*used)]
        tables = [pa.table([each], [name]) for each in used]
        joined = pa.concat_tables(tables, promote_options="permissive")[name] if used[1:] else used[0]
        is_all = _is_identity(source, len(joined))
        columns[name] = joined if is_all else joined.take(pa.array(source, mask=source < 0))
    return pa.table(columns)


def _clusters(cluster: Any, queries: pa.Table) -> Int64:
    """Return the number of each query's cluster."""
    if isinstance(cluster, str):
        check_kept([cluster], queries.column_names, " to cluster by")
        column = queries[cluster]
    else:
        try:
            column = pa.chunked_array([pa.array(cluster, from_pandas=True)])
        except pa.ArrowException:
            column = pa.chunked_array([[]], pa.list_(pa.null()))
        if pa.types.is_nested(column.type):
            raise InputTypeError(
                f"cluster is a {type(cluster).__name__} that holds neither numbers nor strings alone; "
                "give a column, or a number or string for each query"
            )
        check_length("cluster", len(column), len(queries), "query")
    if column.null_count:
        raise InputError(f"cluster has {count_of(column.null_count, 'null')}; give each query its cluster")
    codes: Int64 = array_of(decode(column).combine_chunks().dictionary_encode().indices).astype(np.int64)
    return codes
