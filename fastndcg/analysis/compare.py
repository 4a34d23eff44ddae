"""`compare`: which of several systems is better, by how much, and how significant that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastndcg.analysis.alignment import (
    common_measures,
    highest_grade,
    match_queries,
    scores_of,
    shares_that_differ,
    unmatched_samples,
)
from fastndcg.analysis.comparison import Comparison, Options
from fastndcg.common.threads import check_threads
from fastndcg.errors import (
    FastndcgError,
    InputError,
    InputTypeError,
    check_choice,
    check_system,
    known_arguments,
)
from fastndcg.measures import as_measures
from fastndcg.scores.signatures import fields_of, hashes_of_ids
from fastndcg.statistics.intervals import check_confidence, check_size
from fastndcg.statistics.resampling import METHODS, check_resamples
from fastndcg.statistics.significance import CORRECTIONS
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, with_roles_of_both

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores
    from fastndcg.typing import JoinKeywords

TESTS = ("t", "randomisation")


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
    interval: str = "t",
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
    confidence, interval : float; "t", "percentile" or "bca"
        Intervals of differences: by Student's t; or by a bootstrap, which draws queries, or whole clusters,
        with replacement, and with few queries misses the true mean more often than `confidence` says.
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
        Number and seed of the draws of "randomisation" and the bootstrap. They depend neither on
        threads (default: all that Numba has, if there is enough work) nor on the order of queries or systems.
        p is never below 1 / (1 + resamples).
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
    Smucker et al., CIKM 2007 (randomisation); Efron, JASA 1987 ("bca").

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
    scored = {str(name): scores_of(name, given, measures) for name, given in systems.items()}
    if baseline is not None:
        check_system(baseline, scored, f'baseline="{baseline}"')
    test = "randomisation" if test == "permutation" else test
    check_choice("test", test, TESTS)
    check_choice("correction", correction, (None, *CORRECTIONS))
    check_choice("interval", interval, ("t", *METHODS))
    if interval in METHODS and not paired:
        raise InputError(f'interval="{interval}" and paired=False do not go together; use interval="t"')
    if test != "t" and not paired:
        raise InputError(f'test="{test}" and paired=False do not go together; use test="t"')
    resamples, seed = check_resamples(resamples, seed)
    confidence = check_confidence(confidence)
    tolerance = check_size("tolerance", tolerance, "a size of ties", 0.01)
    drawn = resamples, seed, check_threads(threads)
    options = Options(baseline, test, correction, confidence, tolerance, paired, *drawn, interval)
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


def _joined(qrels: Any, run: Any, measures: Any, roles: Roles) -> dict[str, Rankings]:
    """Join each of several runs with the judgments."""
    from fastndcg.sources.trec import rankings_by_name

    if measures is None:
        raise InputTypeError("no measures are given; they come last, as in compare(qrels, runs, measures)")
    found = rankings_by_name(qrels, run, roles, as_measures(measures))
    if found is None:
        raise InputTypeError(
            "run is one run; compare takes several by name, as in "
            'compare(qrels, {"bm25": run, "e5": other}, measures)'
        )
    return found


def _with_second(systems: Any, second: Any, baseline: str | None, measures: Any) -> tuple[str | None, Any]:
    """Return the baseline and the measures, one of which is the second positional argument."""
    is_system = isinstance(second, str) and isinstance(systems, Mapping) and second in map(str, systems)
    try:
        are_measures = not is_system and bool(as_measures(second))
    except FastndcgError:
        if not isinstance(second, str):
            raise
        are_measures = False
    if (measures if are_measures else baseline) is not None:
        other = "measures" if are_measures else "baseline"
        raise InputError(f"{second!r} is given beside {other}=; give one of the two")
    return (baseline, second) if are_measures else (second, measures)


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
        found = {name: fields_of(scores.signature(measure)) for name, scores in known.items()}
        first, *others = found
        for name in others:
            one, other = found[first], found[name]
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
    own = rankings.lengths.astype(np.uint64)
    if with_ids:
        sums = np.append(np.uint64(0), np.cumsum(hashes_of_ids(rankings.doc_ids), dtype=np.uint64))
        own = np.diff(sums[rankings.offsets])
    return np.sort(hashes_of_ids(rankings.query_ids) ^ own * np.uint64(0x9E3779B97F4A7C15))
