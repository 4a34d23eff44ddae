"""Which of several systems is better, by how much, and how sure that is: `compare`, and the `Comparison` that it returns.

Scores of each system -> the same queries side by side -> numbers of each measure and pair -> tables
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.anchoring import Anchors
from fastndcg.anchoring import anchors as anchors_of
from fastndcg.api import evaluate
from fastndcg.arrow_types import array_of
from fastndcg.errors import (
    Argument,
    ColumnError,
    InputError,
    InputTypeError,
    MeasureError,
    check_choice,
    suggest,
)
from fastndcg.measures import Measure, as_measure
from fastndcg.rankings import Rankings
from fastndcg.scores import Scores, groups_of
from fastndcg.statistics import sums
from fastndcg.statistics.comparison import CORRECTIONS, Difference, Spread, scipy, wilcoxon
from fastndcg.statistics.intervals import SMALL, check_confidence
from fastndcg.statistics.resampling import (
    EXACT,
    METHODS,
    bootstrap_interval,
    check_resamples,
    means_of_clusters,
    sign_flips,
    tukey,
)
from fastndcg.tables import Table, fitted, html_table, terminal_width, text_table
from fastndcg.threads import check_threads

if TYPE_CHECKING:
    import pandas as pd

    from fastndcg.plot.methods import ComparisonPlots

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TESTS = ("t", "randomisation", "wilcoxon", "tukey")

COLUMNS = {
    **dict.fromkeys(("measure", "system", "baseline"), pa.string()),
    **dict.fromkeys(("mean", "baseline_mean", "difference", "low", "high", "p", "p_adjusted"), pa.float64()),
    **dict.fromkeys(("effect", "effect_low", "effect_high"), pa.float64()),
    **dict.fromkeys(("wins", "ties", "losses", "nonzero", "queries"), pa.int64()),
    "detectable": pa.float64(),
}


def compare(
    systems: Mapping[str, Scores | Rankings],
    baseline: str | None = None,
    *,
    measures: Any = None,
    test: str = "t",
    correction: str | None = None,
    confidence: float = 0.95,
    interval: str = "t",
    tolerance: float = 0.0,
    cluster: str | npt.ArrayLike | None = None,
    paired: bool = True,
    missing: str | float = "refuse",
    resamples: int = 100_000,
    seed: int = 0,
    anchors: bool = False,
    threads: int | None = None,
) -> Comparison:
    """Compare systems by the measures of their queries, each with the baseline, or each with each.

    Queries are matched by their ids, in any order. It needs SciPy, which the extra `stats` installs.

    Parameters
    ----------
    systems : mapping of names to Scores, or to Rankings with `measures`
        Of several measures those are compared that all systems have.
    baseline : name, optional
        The system that all others are compared with. Default: every pair, where the one that comes first is the baseline.
    measures : one or several of Measure, notation, or ir_measures object, optional
        What to evaluate of Rankings; of Scores, which measures to compare.
    test : "t", "randomisation", "wilcoxon" or "tukey"
        "t" is Student's paired t-test, and Welch's with `paired=False`. "randomisation" turns the signs of differences at random, of whole
        clusters if any; of up to 20 that are not 0 it tries all signs, and is exact. "tukey" permutes systems within each query, and
        compares with the greatest difference of any two, so that p holds for all pairs at once. "wilcoxon" takes Wilcoxon's signed ranks, which tests
        another hypothesis: with a mean difference of zero but asymmetric differences it rejects almost always.
    correction : None, "holm" or "bh"
        `p_adjusted` for the pairs of each measure: "holm" bounds the chance of any false finding, "bh" (Benjamini and Hochberg) the
        share of false findings.
    confidence : float
        Of all intervals.
    interval : "t", "percentile", "bca" or "studentised"
        How the interval of a difference is computed: by Student's t, or by the bootstrap, from queries, or whole clusters, drawn with
        replacement. Bootstrap intervals of few queries miss more often than they say.
    tolerance : float
        Differences up to it are ties; it changes no other number.
    cluster : column, or array (n_queries of the first system,), optional
        Queries that are not independent of one another, as those of one user: errors are those of whole clusters.
    paired : bool
        False for independent samples, as two arms of an experiment, whose queries are not the same.
    missing : "refuse", "drop" or a number
        What to do with queries that some systems do not have: refuse them, leave them out for all systems, or take this as the value
        of every measure. `Comparison.missing` has their ids.
    resamples, seed : int
        Of "randomisation", "tukey" and the bootstrap: how often to draw, and what the draws depend on; neither threads, nor the order of queries or
        systems changes them. p is never below 1 / (1 + resamples).
    anchors : bool
        Of Rankings: also where each system stands between a random and the best order of what it returned, as `fastndcg.anchors` has it.
    threads : int, optional
        For resampling. Default: all that Numba has, where it is worth it.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        Queries that are missing or come twice; weights that differ; fewer than two systems; options that do not go together.
    InputTypeError
        Something else than Scores or Rankings.
    MeasureError
        No measure that all systems have.
    ColumnError
        A `cluster` that was not kept.
    ExtraError
        SciPy is not installed.

    See Also
    --------
    evaluate : the values that are compared.
    report : a page about several systems.
    rank_agreement : how far two rankings agree.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> bm25 = Rankings.from_dense([[1, 0, 2], [0, 1, 0], [2, 0, 1]], [[3, 2, 1], [3, 2, 1], [3, 2, 1]])
    >>> rerank = bm25.with_scores([1, 2, 3, 1, 3, 2, 3, 1, 2])
    >>> compared = compare({"bm25": bm25, "rerank": rerank}, measures="nDCG@3")
    >>> row = compared.to_arrow().to_pylist()[0]
    >>> round(row["difference"], 4), row["wins"], row["ties"], row["losses"], row["queries"]
    (0.203, 3, 0, 0, 3)
    """
    scored = _scored(systems, measures)
    scipy("special", "compare")
    if baseline is not None and baseline not in scored:
        raise InputError(
            Argument("baseline", baseline),
            f" is not one of the systems: {', '.join(scored)}.{suggest(str(baseline), scored)}",
        )
    check_choice("test", test, TESTS)
    check_choice("correction", correction, (None, *CORRECTIONS))
    check_choice("interval", interval, ("t", *METHODS))
    if interval != "t" and not paired:
        raise InputError(
            Argument("interval", interval),
            " and ",
            Argument("paired", False),
            " do not go together; use ",
            Argument("interval", "t"),
        )
    if (test != "t" and not paired) or (test == "wilcoxon" and cluster is not None):
        which = Argument("cluster") if paired else Argument("paired", False)
        raise InputError(
            Argument("test", test), " and ", which, " do not go together; use ", Argument("test", "t")
        )
    if test == "tukey" and correction is not None:
        raise InputError(
            Argument("test", "tukey"),
            " holds for all pairs at once; leave ",
            Argument("correction", correction),
            " out",
        )
    drawn = check_resamples(resamples, seed)
    options = _Options(
        baseline,
        test,
        correction,
        check_confidence(confidence),
        tolerance,
        paired,
        *drawn,
        check_threads(threads),
        interval,
    )
    asked = _measures_of_all(scored, measures)
    matched = _matched(scored, asked, cluster, missing) if paired else _apart(scored, asked, cluster)
    if test == "wilcoxon" and any(sample.weight is not None for sample in matched.samples.values()):
        raise InputError(Argument("test", "wilcoxon"), " knows no weights; use ", Argument("test", "t"))
    compared = Comparison(asked, matched, options)
    if anchors:
        compared.anchors = _anchors(systems, asked, threads)
    return compared


def _anchors(
    systems: Mapping[str, Scores | Rankings], measures: Sequence[Measure], threads: int | None
) -> dict[str, Anchors]:
    found = {}
    for name, given in systems.items():
        if not isinstance(given, Rankings):
            raise InputError(
                f'"{name}" is Scores, which do not know what was returned; give Rankings, with measures=, where anchors are asked for'
            )
        found[str(name)] = anchors_of(given, measures, threads=threads)
    return found


class _Options(NamedTuple):
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


class _Sample(NamedTuple):
    """Values of one system: of the queries of all systems, or of its own."""

    values: Float64  # (n_measures, n_queries)
    counts: Bools  # of the same shape: which enter means
    weight: Float64 | None
    clusters: Int64 | None
    queries: pa.Table

    def of(self, rows: Int64) -> _Sample:
        """Some of the queries."""
        queries = self.queries.take(pa.array(rows))
        return _Sample(
            self.values[:, rows],
            self.counts[:, rows],
            _of(self.weight, rows),
            _of(self.clusters, rows),
            queries,
        )


class _Matched(NamedTuple):
    samples: dict[str, _Sample]
    missing: dict[str, pa.Array]  # ids of queries that a system does not have


# ---- systems ----


def _scored(systems: object, measures: Any) -> dict[str, Scores]:
    if not isinstance(systems, Mapping):
        raise InputTypeError(
            f'systems is a {type(systems).__name__}; wanted a mapping of names, as in {{"bm25": scores, "rerank": other}}'
        )
    if len(systems) < 2:
        raise InputError(f"{len(systems)} systems are given; wanted two or more to compare")
    scored = {}
    for name, given in systems.items():
        system = given
        if isinstance(given, Rankings):
            if measures is None:
                raise InputError(
                    f'"{name}" is Rankings; name what to evaluate, as in measures=["nDCG@10"], or give Scores'
                )
            system = evaluate(given, measures)
        if not isinstance(system, Scores):
            raise InputTypeError(
                f'"{name}" is a {type(system).__name__}; wanted Scores, as evaluate returns them, or Rankings'
            )
        scored[str(name)] = system
    return scored


def _measures_of_all(scored: dict[str, Scores], measures: Any) -> list[Measure]:
    from fastndcg.measures import as_measures

    if measures is not None:
        asked = list(as_measures(measures))
        for system in scored.values():
            for measure in asked:
                system[measure]  # says what was evaluated where this was not
        return asked
    first, *others = scored.values()
    common = [measure for measure in first if all(measure in system.measures for system in others)]
    if not common:
        evaluated = "; ".join(f"{name}: {', '.join(map(str, each))}" for name, each in scored.items())
        raise MeasureError(f"no measure was evaluated for all systems ({evaluated}); evaluate the same ones")
    return common


def _part(scores: Scores, measures: Sequence[Measure]) -> tuple[Float64, Bools]:
    """Values of some measures, and which count in means."""
    rows = [scores.measures.index(measure) for measure in measures]
    counts = np.ones((len(rows), scores.n_queries), np.bool_)
    for place, row in enumerate(rows):
        of_row = scores._counts(row)
        if of_row is not None:
            counts[place] = of_row
    whole = rows == list(range(len(scores.measures)))
    return scores.values if whole else scores.values[rows], counts


def _apart(scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any) -> _Matched:
    samples = {}
    for name, scores in scored.items():
        values, counts = _part(scores, measures)
        clusters = None if cluster is None else _clusters(cluster, scores.queries)
        samples[name] = _Sample(values, counts, scores._weight, clusters, scores.queries)
    return _Matched(samples, {})


def _ids(name: str, scores: Scores, known: pa.Array | None) -> pa.Array:
    """Ids of a system's queries, each there once; `known`: those of another system, which were looked at."""
    column = scores.queries[scores.queries.column_names[0]]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        column = column.cast(pa.int64())
    elif pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    ids = pa.chunked_array(column).combine_chunks()
    if known is not None and ids.equals(known):
        return known
    if not _ascend(ids) and pc.count_distinct(ids, mode="all").as_py() < len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        raise InputError(f'"{name}" has query {twice[0].as_py()!r} more than once; give each query one row')
    return ids


def _ascend(ids: pa.Array) -> bool:
    """Whether ids are whole numbers that rise, and so none of them is there twice."""
    if ids.null_count or not pa.types.is_integer(ids.type):
        return False
    numbers = array_of(ids)
    return bool((numbers[1:] > numbers[:-1]).all())


def _matched(
    scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any, missing: str | float
) -> _Matched:
    """The values of all systems for the same queries in the same order."""
    _check_missing(missing)
    ids: dict[str, pa.Array] = {}
    for name, scores in scored.items():
        ids[name] = _ids(name, scores, next(iter(ids.values()), None))
    first = next(iter(ids))
    every = ids[first]
    for name, own in ids.items():
        if own.type != every.type and len(own) and len(every):
            raise InputTypeError(
                f'query ids are {every.type} in "{first}" and {own.type} in "{name}", which never match; cast one of them'
            )
        if not own.equals(every):
            new = own.filter(pc.is_null(pc.index_in(own, every)))
            every = pa.concat_arrays([every, new]) if len(new) else every
    places = {name: _places(every, own) for name, own in ids.items()}
    absent = {name: every.filter(pa.array(place < 0)) for name, place in places.items() if (place < 0).any()}
    if absent and missing == "refuse":
        raise InputError(
            _missing_text(absent),
            " Pass ",
            Argument("missing", "drop"),
            ", or the value that they count, as in ",
            Argument("missing", 0.0),
            ".",
        )
    rows = np.arange(len(every))
    if missing == "drop":
        rows = np.flatnonzero(np.logical_and.reduce([place >= 0 for place in places.values()]))
        places = {name: place[rows] for name, place in places.items()}
    weight = _common_weight(scored, places)
    queries = _common_queries(scored, places)
    clusters = None
    if isinstance(cluster, str):
        clusters = _clusters(cluster, queries)
    elif cluster is not None:
        clusters = _clusters(cluster, scored[first].queries)[places[first]]
        if (places[first] < 0).any():
            raise InputError(
                f'cluster is an array for the queries of "{first}", which lacks some; name a column instead'
            )
    samples = {}
    for name, scores in scored.items():
        values, counts = _part(scores, measures)
        place = places[name]
        if len(place) != values.shape[1] or not np.array_equal(place, np.arange(len(place))):
            there = place >= 0
            values, counts = values[:, place], counts[:, place]
            if not there.all():
                values[:, ~there], counts[:, ~there] = missing, True
        samples[name] = _Sample(values, counts, weight, clusters, queries)
    return _Matched(samples, absent)


def _check_missing(missing: object) -> None:
    is_number = isinstance(missing, int | float) and not isinstance(missing, bool) and math.isfinite(missing)
    if not is_number and missing not in ("refuse", "drop"):
        raise InputError(
            Argument("missing", missing), ' is not known; wanted "refuse", "drop" or a finite number'
        )


def _places(every: pa.Array, own: pa.Array) -> Int64:
    """Where each of all ids is among one's own; -1 where it is not."""
    if own.equals(every):
        return np.arange(len(every))
    found: Int64 = array_of(pc.index_in(every, own), -1).astype(np.int64)
    return found


def _missing_text(absent: Mapping[str, pa.Array]) -> str:
    notes = []
    for name, ids in absent.items():
        named = ", ".join(repr(one) for one in ids[:3].to_pylist()) + (", ..." if len(ids) > 3 else "")
        notes.append(
            f'"{name}" lacks {len(ids):,} quer{"y" if len(ids) == 1 else "ies"} that others have: {named}.'
        )
    return " ".join(notes)


def _common_weight(scored: dict[str, Scores], places: dict[str, Int64]) -> Float64 | None:
    """Weights of the matched queries, on which all systems have to agree."""
    weights = {name: scores._weight for name, scores in scored.items()}
    given = [name for name, weight in weights.items() if weight is not None]
    if not given:
        return None
    if len(given) < len(weights):
        without = next(name for name, weight in weights.items() if weight is None)
        raise InputError(f'"{given[0]}" has weights and "{without}" has none; give all systems the same')
    common = np.full(len(places[given[0]]), np.nan)
    for name in given:
        weight, place = weights[name], places[name]
        there = place >= 0
        own = np.where(there, weight[place] if weight is not None and len(weight) else np.nan, np.nan)
        differ = there & ~np.isnan(common) & (own != common)
        if differ.any():
            row = int(np.argmax(differ))
            query = scored[name].queries[0][int(place[row])].as_py()
            raise InputError(
                f'query {query!r} weighs {own[row]:g} in "{name}" and {common[row]:g} in "{given[0]}"; give all systems the same weights'
            )
        common = np.where(np.isnan(common), own, common)
    return common


def _common_queries(scored: dict[str, Scores], places: dict[str, Int64]) -> pa.Table:
    """A row for each matched query, from the first system that has it; kept columns that it lacks from any that has all queries."""
    left = np.ones(len(next(iter(places.values()))), np.bool_)
    tables: list[pa.Table] = []
    order: list[Int64] = []
    ids = next(iter(scored.values())).queries.column_names[0]  # which others may call otherwise
    for name, scores in scored.items():
        place = places[name]
        chosen = np.flatnonzero(left & (place >= 0))
        left[chosen] = False
        if len(chosen) or not tables:
            is_whole = len(chosen) == scores.n_queries and np.array_equal(
                place[chosen], np.arange(len(chosen))
            )
            queries = scores.queries.rename_columns([ids, *scores.queries.column_names[1:]])
            tables.append(queries if is_whole else queries.take(pa.array(place[chosen])))
            order.append(chosen)
    common = tables[0]
    if len(tables) > 1:
        joined = pa.concat_tables(tables, promote_options="permissive")
        common = joined.take(pa.array(np.argsort(np.concatenate(order), kind="stable")))
    for name, scores in scored.items():
        more = [column for column in scores.queries.column_names[1:] if column not in common.column_names]
        if more and (places[name] >= 0).all():
            for column in more:
                common = common.append_column(column, scores.queries[column].take(pa.array(places[name])))
    return common


def _clusters(cluster: Any, queries: pa.Table) -> Int64:
    """Number of the cluster of each query."""
    if isinstance(cluster, str):
        if cluster not in queries.column_names:
            raise ColumnError(
                f'there is no column "{cluster}" to cluster by; kept were: {", ".join(queries.column_names)}. Name it in ',
                Argument("keep"),
                "." + suggest(cluster, queries.column_names),
            )
        column = queries[cluster]
    else:
        column = pa.chunked_array([pa.array(cluster)])
        if len(column) != len(queries):
            raise InputError(
                f"cluster has {len(column)} values and there are {len(queries)} queries; give one for each query"
            )
    if column.null_count:
        raise InputError(f"cluster has {column.null_count:,} nulls; give each query its cluster")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    codes: Int64 = array_of(column.combine_chunks().dictionary_encode().indices).astype(np.int64)
    return codes


# ---- what comes out ----


class Comparison:
    """What `compare` returns: a row of numbers for each measure and pair of systems; shows itself as a table.

    Attributes
    ----------
    measures : tuple of Measure
    systems : tuple of str
    rows : list of dict
        As `to_arrow` has them.
    means : dict
        Of each measure, by its name, the mean of each system.
    missing : dict of str to pyarrow array
        Ids of the queries that a system lacked; only of systems that lacked some.
    cautions : list of str
        What to know before any of the numbers is relied on.
    anchors : dict of str to Anchors
        Of each system, where it stands between a random and the best order; empty where they were not asked for.
    """

    def __init__(self, measures: Sequence[Measure], matched: _Matched, options: _Options) -> None:
        self.measures, self.systems = tuple(measures), tuple(matched.samples)
        self.missing = matched.missing
        self.cautions: list[str] = []
        self._samples, self._options = matched.samples, options
        self.anchors: dict[str, Anchors] = {}
        self._differences: dict[tuple[str, str, str], Difference] = {}
        self.means = {
            str(measure): {
                name: sums.mean(
                    _counted(sample.values[row], sample.counts[row]),
                    _counted(sample.weight, sample.counts[row]),
                )
                for name, sample in matched.samples.items()
            }
            for row, measure in enumerate(self.measures)
        }
        if options.baseline is None:
            self._pairs = [(system, baseline) for baseline, system in combinations(self.systems, 2)]
        else:
            self._pairs = [(name, options.baseline) for name in self.systems if name != options.baseline]
        self.rows = [row for place in range(len(self.measures)) for row in self._rows_of(place)]
        if self.missing:
            self.cautions.insert(0, _missing_text(self.missing))

    # ---- numbers ----

    def _rows_of(self, place: int) -> list[dict[str, Any]]:
        """Rows of all pairs for a measure."""
        row_of = self._paired_row if self._options.paired else self._independent_row
        rows = [row_of(place, system, baseline) for system, baseline in self._pairs]
        if self._options.test == "tukey":
            self._p_of_all(place, rows)
        correct = CORRECTIONS.get(self._options.correction or "", list)
        for row, adjusted in zip(rows, correct([row["p"] for row in rows]), strict=True):
            row["p_adjusted"] = adjusted
        return [{name: row[name] for name in COLUMNS} for row in rows]

    def _values(self, place: int, system: str, baseline: str) -> tuple[Float64, Float64, Bools]:
        """Values of two systems, and which count for both."""
        one, other = self._samples[system], self._samples[baseline]
        counts = one.counts[place] & other.counts[place]
        return _counted(one.values[place], counts), _counted(other.values[place], counts), counts

    def _mean(self, place: int, name: str, values: Float64, weight: Float64 | None) -> float:
        """Of the queries that count for a pair, which mostly are all that count for the system."""
        whole = int(np.count_nonzero(self._samples[name].counts[place])) == len(values)
        return self.means[str(self.measures[place])][name] if whole else sums.mean(values, weight)

    def _paired_row(self, place: int, system: str, baseline: str) -> dict[str, Any]:
        own, theirs, counts = self._values(place, system, baseline)
        weight = _counted(self._samples[system].weight, counts)
        differences, measure = own - theirs, str(self.measures[place])
        clusters = _counted(self._samples[system].clusters, counts)
        found = Difference.paired(Spread.of(differences, weight, clusters))
        self._differences[measure, system, baseline] = found
        tolerance, nonzero = self._options.tolerance, int(np.count_nonzero(differences))
        wins, losses = int((differences > tolerance).sum()), int((differences < -tolerance).sum())
        if 0 < nonzero < SMALL:
            self.cautions.append(
                f"Only {nonzero} of {len(own):,} differences of {measure} between {system} and {baseline} are not zero, too few for an "
                f"interval to be relied on. Take more queries, or {_instead(nonzero)}."
            )
        p = self._p(differences, weight, counts, found)
        numbers = found.numbers(self._options.confidence)
        if self._options.interval != "t":
            numbers |= self._bootstrapped(differences, weight, clusters, found.difference)
        return {
            "measure": measure,
            "system": system,
            "baseline": baseline,
            "mean": self._mean(place, system, own, weight),
            "baseline_mean": self._mean(place, baseline, theirs, weight),
            "difference": found.difference,
            "p": p,
            **numbers,
            "wins": wins,
            "ties": len(own) - wins - losses,
            "losses": losses,
            "nonzero": nonzero,
            "queries": len(own),
        }

    def _bootstrapped(
        self, differences: Float64, weight: Float64 | None, clusters: Int64 | None, difference: float
    ) -> dict[str, float]:
        """The interval from resamples, the same whichever of the two systems is the baseline."""
        _, _, resamples, seed, threads, method = self._options[4:]
        turn = -1.0 if difference < 0 else 1.0
        values = turn * differences
        if clusters is not None:
            values, weight = means_of_clusters(values, weight, clusters)
        ends = bootstrap_interval(values, weight, self._options.confidence, method, resamples, seed, threads)
        low, high = sorted((turn * ends.low, turn * ends.high))
        return {"low": low, "high": high}

    def _p(self, differences: Float64, weight: Float64 | None, counts: Bools, found: Difference) -> float:
        """p of a pair by itself."""
        test, _, resamples, seed, threads = self._options.test, *self._options[5:9]
        if test == "t" or math.isnan(found.difference):
            return found.p()
        if test == "wilcoxon":
            return wilcoxon(differences)
        if test == "tukey":
            return math.nan  # of all pairs together
        weighted = differences if weight is None else differences * weight
        clusters = _of(next(iter(self._samples.values())).clusters, counts)
        return sign_flips(weighted, clusters, resamples, seed, threads)

    def _p_of_all(self, place: int, rows: list[dict[str, Any]]) -> None:
        """Put p of randomised Tukey into the rows of a measure: of the queries that count for all systems."""
        samples = list(self._samples.values())
        counts = np.logical_and.reduce([sample.counts[place] for sample in samples])
        values = np.stack([sample.values[place][counts] for sample in samples])
        if np.isnan(values).any() or not values.size:
            return
        of_systems = _of(samples[0].weight, counts), _of(samples[0].clusters, counts)
        p = tukey(values, *of_systems, self._options.resamples, self._options.seed, self._options.threads)
        for row in rows:
            row["p"] = p(self.systems.index(row["system"]), self.systems.index(row["baseline"]))

    def _independent_row(self, place: int, system: str, baseline: str) -> dict[str, Any]:
        spreads = []
        for name in (system, baseline):
            sample = self._samples[name]
            counts = sample.counts[place]
            spreads.append(
                Spread.of(
                    sample.values[place][counts], _of(sample.weight, counts), _of(sample.clusters, counts)
                )
            )
        found, measure = Difference.independent(*spreads), str(self.measures[place])
        self._differences[measure, system, baseline] = found
        return {
            "measure": measure,
            "system": system,
            "baseline": baseline,
            "mean": spreads[0].mean,
            "baseline_mean": spreads[1].mean,
            "difference": found.difference,
            "p": found.p(),
            **found.numbers(self._options.confidence),
            **dict.fromkeys(("wins", "ties", "losses", "nonzero")),
            "queries": found.queries,
        }

    # ---- questions ----

    @property
    def confidence(self) -> float:
        """Of all intervals."""
        return self._options.confidence

    @property
    def plot(self) -> ComparisonPlots:
        """Pictures: `comparison.plot.differences("nDCG@10")`. It needs the extra `plot`."""
        from fastndcg.plot.methods import ComparisonPlots

        return ComparisonPlots(self)

    def _name(self, measure: object) -> str:
        wanted = as_measure(measure)
        if wanted not in self.measures:
            names = [str(known) for known in self.measures]
            raise MeasureError(
                f"{wanted} was not compared; these were: {', '.join(names)}.{suggest(str(wanted), names)}"
            )
        return str(wanted)

    def pair(self, system: str | None = None, baseline: str | None = None) -> tuple[str, str]:
        """The system and the baseline that are meant where one of them, or both, are not named."""
        for name in (system, baseline):
            if name is not None and name not in self.systems:
                raise InputError(
                    f'"{name}" is not one of the systems: {", ".join(self.systems)}.{suggest(str(name), self.systems)}'
                )
        fitting = [pair for pair in self._pairs if system in (None, pair[0]) and baseline in (None, pair[1])]
        if not fitting and None not in (system, baseline):
            fitting = [(str(system), str(baseline))] if system != baseline else []
        if system is None and len(fitting) > 1:
            raise InputError(f"there are {len(fitting)} pairs; name one, as in system={fitting[-1][0]!r}")
        if not fitting:
            raise InputError(
                f"{system or baseline} was compared with no other system in this direction; name both system and baseline"
            )
        return fitting[0]

    def movers(
        self, measure: object, system: str | None = None, n: int = 20, *, baseline: str | None = None
    ) -> Table:
        """The queries that differ most between two systems, largest difference first, whatever its sign.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
        system, baseline : str, optional
            Default: the only pair; of a system that was compared with several, the first of them.
        n : int
            Rows, at most; queries that do not differ are never among them.

        Returns
        -------
        Table
            The columns of queries, `baseline` and `system`, the values of the two, and `difference`.

        Raises
        ------
        MeasureError, InputError
            A measure that was not compared; systems that were not; independent samples.
        """
        table = self.differences(measure, system, baseline=baseline)
        far = np.abs(array_of(table["difference"]))
        far[np.isnan(far)] = 0
        chosen = np.argsort(-far, kind="stable")[: max(n, 0)]
        return Table(table.take(pa.array(chosen[far[chosen] > 0])))

    def differences(
        self, measure: object, system: str | None = None, *, baseline: str | None = None
    ) -> Table:
        """Every query with its values of two systems, in the order of the first system's queries.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
        system, baseline : str, optional
            As of `movers`.

        Returns
        -------
        Table
            The columns of queries, `baseline` and `system`, the values of the two, and `difference`; NaN where there is no value.

        Raises
        ------
        MeasureError, InputError
            A measure that was not compared; systems that were not; independent samples.
        """
        name = self._name(measure)
        if not self._options.paired:
            raise InputError(
                "independent samples share no query, so that none has a difference; compare with paired=True"
            )
        place = [str(known) for known in self.measures].index(name)
        own, theirs = (self._samples[one] for one in self.pair(system, baseline))
        columns = {"baseline": theirs.values[place], "system": own.values[place]}
        table = own.queries
        for column, values in (columns | {"difference": columns["system"] - columns["baseline"]}).items():
            table = table.append_column(column, pa.array(values))
        return Table(table)

    def slices(self, columns: str | Sequence[str]) -> dict[tuple[Any, ...], Comparison]:
        """The same comparison of each group of queries.

        Parameters
        ----------
        columns : str or sequence of str
            Kept columns; of several, a group for each combination of their values that occurs.

        Returns
        -------
        dict of tuples, the values of the columns, to Comparison
            In order of first appearance.

        Raises
        ------
        ColumnError
            A column that was not kept.
        InputError
            Independent samples, one of which has no query of a group.

        Examples
        --------
        >>> from fastndcg import Rankings
        >>> bm25 = Rankings.from_lists([[0, 1], [1, 0], [0, 2]], queries={"country": ["de", "fr", "de"]})
        >>> rerank = Rankings.from_lists([[1, 0], [1, 0], [2, 0]], queries={"country": ["de", "fr", "de"]})
        >>> compared = compare({"bm25": bm25, "rerank": rerank}, measures="RR")
        >>> {group: of_group.rows[0]["difference"] for group, of_group in compared.slices("country").items()}
        {('de',): 0.5, ('fr',): 0.0}
        """
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise ColumnError('no column is named to group by; name one, as in slices("country")')
        places: dict[tuple[Any, ...], dict[str, Int64]] = {}
        for system, sample in self._samples.items():
            kept = sample.queries.column_names
            for name in names:
                if name not in kept:
                    raise ColumnError(
                        f'there is no column "{name}"; kept were: {", ".join(kept)}. Name it in ',
                        Argument("keep"),
                        f".{suggest(name, kept)}",
                    )
            values, rows = groups_of([sample.queries[name] for name in names])
            keys = zip(*(column.to_pylist() for column in values), strict=True)
            for key, of_group in zip(keys, rows, strict=True):
                places.setdefault(key, {})[system] = of_group
        found = {}
        for key, of_systems in places.items():
            for system in self.systems:
                if system not in of_systems:
                    group = ", ".join(map("{}={!r}".format, names, key))
                    raise InputError(
                        f'"{system}" has no query where {group}; leave such queries out of all systems'
                    )
            samples = {name: self._samples[name].of(rows) for name, rows in of_systems.items()}
            found[key] = Comparison(self.measures, _Matched(samples, {}), self._options)
        return found

    def no_worse_than(
        self, baseline: str, margin: float = 0.0, *, system: str | None = None
    ) -> dict[str, bool]:
        """Whether the intervals exclude that systems lose more than `margin` to the baseline, for each measure.

        Parameters
        ----------
        baseline : str
        margin : float
            The greatest loss of the mean that is accepted, in units of the measure; 0 or more.
        system : str, optional
            Default: all that were compared with the baseline, which then all have to hold.

        Raises
        ------
        InputError
            Systems that were not compared; a negative margin.
        """
        if not margin >= 0:
            raise InputError(
                Argument("margin", margin),
                " is not a loss to accept; wanted 0 or more, as in ",
                Argument("margin", 0.002),
            )
        found: dict[str, list[bool]] = {str(measure): [] for measure in self.measures}
        for row in self.rows:
            if row["baseline"] == baseline and system in (None, row["system"]):
                found[row["measure"]].append(row["low"] >= -margin)
            elif row["system"] == baseline and system in (None, row["baseline"]):
                found[row["measure"]].append(row["high"] <= margin)
        if not all(found.values()):
            with_whom = "no system" if system is None else f'no "{system}"'
            raise InputError(
                f'"{baseline}" was compared with {with_whom}; the systems are: {", ".join(self.systems)}.'
                + suggest(str(baseline), self.systems)
            )
        return {measure: all(each) for measure, each in found.items()}

    def queries_needed(self, difference: float, power: float = 0.8) -> Table:
        """How many queries a paired t-test needs to find such a difference of means so often, by the noncentral t.

        Parameters
        ----------
        difference : float
            Of the means, in units of the measure; not 0.
        power : float
            How often it shall be found.

        Returns
        -------
        pyarrow.Table
            measure, system, baseline, queries; null where the values of all queries are equal.

        Raises
        ------
        InputError
            A difference of 0; a power that is not between 0 and 1; independent samples.
        """
        if not (math.isfinite(difference) and difference):
            raise InputError(
                f"difference={difference!r} needs no end of queries; wanted another number than 0"
            )
        if not 0 < power < 1:
            raise InputError(
                f"power={power!r} is not between 0 and 1; wanted a number between them, as in power=0.8"
            )
        if not self._options.paired:
            raise InputError("the number of queries is that of a paired test; compare with paired=True")
        rows = [
            {
                **dict(zip(("measure", "system", "baseline"), key, strict=True)),
                "queries": found.queries_needed(difference, self._options.confidence, power),
            }
            for key, found in self._differences.items()
        ]
        schema = pa.schema(
            [*((name, pa.string()) for name in ("measure", "system", "baseline")), ("queries", pa.int64())]
        )
        return Table(pa.Table.from_pylist(rows, schema), keys=3)

    # ---- tables ----

    def to_arrow(self) -> pa.Table:
        """A row for each measure and pair.

        measure, system, baseline; mean, baseline_mean, and their difference, with its interval, low to high; p and p_adjusted; effect, the
        difference in standard deviations with Hedges' correction, and its interval, effect_low to effect_high; wins, ties and losses of the
        system, and nonzero, the number of differences that are not 0 (null for independent samples); queries; and detectable, the difference
        that 4 of 5 such experiments would find.
        """
        return pa.Table.from_pylist(self.rows, pa.schema(list(COLUMNS.items())))

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a pandas DataFrame."""
        return self.to_arrow().to_pandas()  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The rows, the options, cautions and missing queries as JSON; NaN is null."""
        rows = [{name: _finite(value) for name, value in row.items()} for row in self.rows]
        missing = {name: ids.to_pylist() for name, ids in self.missing.items()}
        whole = {**self._options._asdict(), "rows": rows, "cautions": self.cautions, "missing": missing}
        if self.anchors:
            whole["anchors"] = [
                {name: _finite(value) for name, value in row.items()} for row in self._anchor_rows()
            ]
        return json.dumps(whole, default=str, indent=2)

    def _ranked(self) -> tuple[list[str], list[list[tuple[str, str, bool]]]]:
        """Names of measures; and for each system, of each measure, the mean, whom it beats significantly, and if it is best."""
        letters = {name: _letter(place) for place, name in enumerate(self.systems)}
        beaten: dict[tuple[str, str], str] = {}
        for row in self.rows:
            if row["p_adjusted"] <= 1 - self._options.confidence and row["difference"]:
                better, worse = row["system"], row["baseline"]
                if row["difference"] < 0:
                    better, worse = worse, better
                key = row["measure"], better
                beaten[key] = beaten.get(key, "") + letters[worse]
        cells = []
        for system in self.systems:
            of_system = []
            for measure, means in self.means.items():
                best = means[system] == max(means.values(), key=lambda mean: (not math.isnan(mean), mean))
                of_system.append(
                    (f"{means[system]:.4f}", "".join(sorted(beaten.get((measure, system), ""))), best)
                )
            cells.append(of_system)
        return list(self.means), cells

    def to_latex(self) -> str:
        """A LaTeX table of the means: systems with their letters, the best in bold, superscripts for whom a system beats significantly.

        Significantly is at 1 - confidence, after the correction. It needs the package booktabs.
        """
        names, cells = self._ranked()
        lines = [f"\\begin{{tabular}}{{ll{'r' * len(names)}}}", "\\toprule"]
        lines += [" & ".join(["", "system", *map(_latex, names)]) + " \\\\", "\\midrule"]
        for place, (system, of_system) in enumerate(zip(self.systems, cells, strict=True)):
            shown = [
                (f"\\textbf{{{mean}}}" if best else mean) + (f"$^{{{beats}}}$" if beats else "")
                for mean, beats, best in of_system
            ]
            lines.append(" & ".join([_letter(place), _latex(system), *shown]) + " \\\\")
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def to_markdown(self) -> str:
        """The same table in Markdown."""
        names, cells = self._ranked()
        lines = [["", "system", *names], ["---", "---", *["---:"] * len(names)]]
        for place, (system, of_system) in enumerate(zip(self.systems, cells, strict=True)):
            shown = [
                (f"**{mean}**" if best else mean) + (f"<sup>{beats}</sup>" if beats else "")
                for mean, beats, best in of_system
            ]
            lines.append([_letter(place), system, *shown])
        return "".join(
            "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in lines
        )

    def _texts(self) -> list[list[str]]:
        """The numbers to read first, as texts, their header first."""
        header = [
            "measure",
            "system",
            "baseline",
            "mean",
            "difference",
            "low",
            "high",
            "p",
            "effect",
            "wins",
            "ties",
            "losses",
        ]
        rows = []
        for row in self.rows:
            numbers = [f"{row[name]:.4f}" for name in ("mean", "difference", "low", "high")]
            counts = ["" if row[name] is None else f"{row[name]:,}" for name in ("wins", "ties", "losses")]
            p, effect = f"{row['p_adjusted']:.2g}", f"{row['effect']:.2f}"
            rows.append([row["measure"], row["system"], row["baseline"], *numbers, p, effect, *counts])
        return [header, *rows]

    def heading(self) -> str:
        """How many systems and queries there are, and how p and intervals are made."""
        options = self._options
        how = {
            "t": "",
            "percentile": ", percentiles of resamples",
            "bca": ", BCa",
            "studentised": ", studentised bootstrap",
        }
        of_test = {
            "t": "paired t-test" if options.paired else "Welch's t-test",
            "randomisation": "randomised signs",
            "wilcoxon": "Wilcoxon's signed ranks",
            "tukey": "randomised Tukey",
        }
        corrected = {None: "", "holm": ", corrected by Holm", "bh": ", corrected by Benjamini and Hochberg"}
        counts = sorted({row["queries"] for row in self.rows})
        queries = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        return (
            f"{len(self.systems)} systems, {queries} queries; p of {of_test[options.test]}{corrected[options.correction]}; "
            f"intervals of {100 * options.confidence:g} %{how[options.interval]}"
        )

    def __repr__(self) -> str:
        table, width = self._texts(), terminal_width() or 1_000
        # what is not needed to read a difference goes first where there is no room
        for name in ("mean", "effect", "ties", "wins", "losses", "baseline"):
            shown = text_table(table, left=3)
            if max(map(len, shown.splitlines())) <= width:
                break
            if name != "baseline" or self._options.baseline is not None or len(self.systems) == 2:
                place = table[0].index(name)
                table = [[*row[:place], *row[place + 1 :]] for row in table]
        else:
            shown = fitted(table, 3 if "baseline" in table[0] else 2, (), width)
        notes = [f"caution: {caution}" for caution in self.cautions]
        more = ["", text_table(self._anchor_texts(), left=2)] if self.anchors else []
        return "\n".join([self.heading(), shown, *notes, *more])

    def _anchor_rows(self) -> list[dict[str, Any]]:
        """Of each measure and system, how good its mean is."""
        means = {system: found.means() for system, found in self.anchors.items()}
        return [
            {"measure": measure, "system": system, **of_system[measure]}
            for measure in self.means
            for system, of_system in means.items()
        ]

    def _anchor_texts(self) -> list[list[str]]:
        rows = self._anchor_rows()
        texts = [
            [f"{value:.4f}" if isinstance(value, float) else value for value in row.values()] for row in rows
        ]
        return [list(rows[0]), *texts]

    def _repr_html_(self) -> str:
        import html

        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.cautions)
        more = html_table(self._anchor_texts(), 2) if self.anchors else ""
        return f"<p>{html.escape(self.heading())}</p>{html_table(self._texts(), 3)}{notes}{more}"


def _of(column: npt.NDArray[Any] | None, rows: Bools | Int64) -> Any:
    return None if column is None else column[rows]


def _counted(column: npt.NDArray[Any] | None, counts: Bools) -> Any:
    """The part that counts, which mostly is all, and then not copied."""
    return column if column is None or counts.all() else column[counts]


def _instead(nonzero: int) -> str:
    return f'test="randomisation"{", which is exact for so few" if nonzero <= EXACT else ""}'


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"({place + 1})"


def _latex(text: str) -> str:
    signs: dict[str, Any] = {sign: f"\\{sign}" for sign in "&%$#_{}"}
    signs |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return text.translate(str.maketrans(signs))
