"""`compare`: which of several systems is better, by how much, and how significant that is.

matching  scores of each system to values of the same queries, side by side
result    numbers of each measure and pair: `Comparison`
texts     a comparison as a table of text, HTML, Markdown and LaTeX
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastndcg.anchoring import Anchors
from fastndcg.anchoring import anchors as anchors_of
from fastndcg.comparison.matching import apart, common_measures, match_queries, scores_of_systems
from fastndcg.comparison.result import Comparison, Options
from fastndcg.errors import Argument, InputError, check_choice, suggest
from fastndcg.rankings import Rankings
from fastndcg.statistics.comparison import CORRECTIONS, scipy
from fastndcg.statistics.intervals import check_confidence
from fastndcg.statistics.resampling import METHODS, check_resamples
from fastndcg.threads import check_threads

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastndcg.measures import Measure
    from fastndcg.scores import Scores

TESTS = ("t", "randomisation", "wilcoxon", "tukey")


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
    scored = scores_of_systems(systems, measures)
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
    options = Options(
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
    asked = common_measures(scored, measures)
    found = match_queries(scored, asked, cluster, missing) if paired else apart(scored, asked, cluster)
    if test == "wilcoxon" and any(sample.weight is not None for sample in found.samples.values()):
        raise InputError(Argument("test", "wilcoxon"), " knows no weights; use ", Argument("test", "t"))
    compared = Comparison(asked, found, options)
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
