"""The main functions: `evaluate`, and `ndcg` for ragged arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Float64, read_only
from fastndcg.errors import InputError, InputTypeError, about, known_arguments, warn
from fastndcg.measures import Measures, as_measures, nDCG
from fastndcg.measures.measure import hold_functions
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import warn_of_unreached
from fastndcg.scoring import methods
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, with_roles

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.measures.conventions import Convention
    from fastndcg.scores.scores import Scores
    from fastndcg.sources.streams import TableStream
    from fastndcg.tables.checks import Grades
    from fastndcg.typing import (
        Columns,
        ColumnsAndIds,
        Discount,
        Empty,
        Gain,
        Ideal,
        JoinKeywords,
        Judgments,
        NaN,
        Path,
        Paths,
        RoleKeywords,
        Table,
        Ties,
        Unjudged,
    )


@overload
def evaluate(
    rankings: Rankings | TableStream | Table | Paths,
    measures: Measures,
    *,
    cutoff: int | str | None = None,
    convention: str | Convention | None = None,
    threads: int | None = None,
    **roles: Unpack[RoleKeywords],
) -> Scores: ...


@overload
def evaluate(
    qrels: Judgments,
    run: Mapping[str, Mapping[Any, Mapping[Any, float]]] | Mapping[str, Path],
    measures: Measures,
    *,
    cutoff: int | str | None = None,
    convention: str | Convention | None = None,
    threads: int | None = None,
    **roles: Unpack[JoinKeywords],
) -> dict[str, Scores]: ...


@overload
def evaluate(
    qrels: Judgments,
    run: Judgments,
    measures: Measures,
    *,
    cutoff: int | str | None = None,
    convention: str | Convention | None = None,
    threads: int | None = None,
    **roles: Unpack[JoinKeywords],
) -> Scores: ...


@known_arguments  # type: ignore[misc]  # measures are the second argument or the third
@with_roles
def evaluate(
    rankings: Any = None,
    run: Any = None,
    measures: Any = None,
    *,
    qrels: Any = None,
    cutoff: int | str | None = None,
    convention: str | Convention | None = None,
    threads: int | None = None,
    **roles: Unpack[RoleKeywords],
) -> Scores | dict[str, Scores]:
    """Compute the value of each measure for each query. Each query is ranked once for all measures.

    Called as `evaluate(rankings, measures)`, or as `evaluate(qrels, run, measures)`, which joins judgments
    and a run first, as `Rankings.from_qrels_run` does. Several runs by name, as in `evaluate(qrels, {"bm25":
    run, "e5": other}, measures)`, give `Scores` by name, which `compare` takes.

    Parameters
    ----------
    rankings : Rankings, TableStream, table, or path
        A stream, such as `scan_parquet` returns, is evaluated in bounded memory. A table is anything that
        `Rankings.from_arrow` accepts: pandas, Polars, DuckDB, Arrow, a mapping of names to arrays; lazy
        frames, relations and datasets are read as `scan_arrow` does. A path, or a list of paths, names
        Parquet, CSV, JSON Lines or Feather files; those that would need more than 1 GiB are read a part at a
        time.
    qrels, run : dicts, tables or paths
        Judgments and a run in place of rankings, see `Rankings.from_qrels_run` and `read_qrels_run`. A dict
        of names has several runs: dicts of dicts or of lists, tables or paths.
    measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
    cutoff : int or str, optional
        Cutoff of measures that are given without one. The name of a kept column of whole numbers gives each
        query its own cutoff, for example where pages have different numbers of places: `cutoff="slots"`
        turns nDCG into `nDCG@slots`.
    convention : name or Convention, optional
        Compute exactly as this tool does, one of `fastndcg.conventions`, which must have the measures: the
        parameters that a measure leaves at their defaults, the order of tied documents, rounding, which
        queries are left out, and the mean.
    threads : int, optional
        Default: all threads that Numba has. The values do not depend on it.
    query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
    relevant_ids, retrieved_ids, nan, rank, ascending, unjudged, grades, types, duplicates
    columns, sep, decimal
        Only for tables and paths, as in `read_csv` and `read_qrels_run`. If a convention orders tied
        documents by id and `doc_id` is not given, the column of ids is found by its usual names.

    Returns
    -------
    Scores
        float64 (n_measures, n_queries), with the queries' columns and weights. Of several runs, a dict of
        them by name.

    Raises
    ------
    MeasureError
        A measure that does not exist, or that has fewer discounts than there are ranks; a convention that
        does not exist, or that cannot be reproduced on this data.
    InputError
        A grade for which a measure has no gain, or an invalid one.
    ColumnError, SourceError
        For tables and paths, as in `read_parquet`.

    See Also
    --------
    read_parquet, read_csv, read_trec, read_ltr, scan_parquet : read rankings from files.
    compare : compare several systems over the same queries.

    References
    ----------
    The help of each measure names the source of its formula, for example `help(fastndcg.nDCG)`.

    Examples
    --------
    >>> rankings = Rankings.from_offsets([0, 3, 5], [3, 0, 2, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.6])
    >>> evaluate(rankings, ["nDCG@2", nDCG(gain="exp2") @ 2])["nDCG@2"]
    array([0.70391809, 0.63092975])
    >>> evaluate({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.1, 0.5, 0.9]}, "RR").mean()
    {'RR': 0.75}
    >>> evaluate({"q1": {"a": 1, "b": 2}}, {"q1": {"b": 0.5, "c": 0.9}}, "RR").mean()
    {'RR': 0.5}
    >>> runs = {"bm25": {"q1": {"b": 0.5, "c": 0.9}}, "e5": {"q1": {"b": 0.8, "c": 0.3}}}
    >>> {name: each.mean() for name, each in evaluate({"q1": {"a": 1, "b": 2}}, runs, "RR").items()}
    {'bm25': {'RR': 0.5}, 'e5': {'RR': 1.0}}
    """
    if measures is None and qrels is None:
        run, measures = None, run
        if isinstance(measures, Mapping):
            raise InputTypeError(
                "measures is a dict; judgments and a run come before the measures, as in "
                'evaluate(qrels, run, ["nDCG@10"])'
            )
    if measures is None:
        raise InputTypeError('no measures are given; name one or several, as in measures=["nDCG@10"]')
    if qrels is not None:
        if rankings is not None or run is None:
            raise InputTypeError("qrels= takes the place of rankings, and needs run=; give these two")
        rankings = qrels
    asked = as_measures(measures)
    if cutoff is not None:
        asked = tuple(
            measure @ cutoff if measure.definition.cut == "rank" and not measure.is_cut else measure
            for measure in asked
        )
    kept = [measure.cutoff_column for measure in asked if measure.cutoff_column]
    argument, resolved, rule = rankings, asked, None
    if convention is not None:
        from fastndcg.convention.evaluation import resolve_all
        from fastndcg.measures.tools import rule_of

        rule = rule_of(convention)
        resolved = resolve_all(asked, rule)
    if run is not None:
        from fastndcg.sources.trec import rankings_by_name, rankings_of_both

        of_both = Roles.of(roles, "evaluate(qrels, run, measures)", OF_ONE_TABLE).keeping(kept)
        several = rankings_by_name(rankings, run, of_both, asked)
        if several is not None:
            of_runs = {}
            for name, joined in several.items():
                _warn_of_order(asked, convention, joined)
                with about(name):
                    of_runs[name] = evaluate(joined, asked, convention=convention, threads=threads)
            return of_runs
        of_intents = any(measure.definition.method == "intents" for measure in asked)
        rankings = rankings_of_both(rankings, run, of_both, intents=of_intents)
        _warn_of_order(asked, convention, rankings)
    elif not isinstance(rankings, Rankings):
        from fastndcg.sources.inputs import rankings_or_stream

        by_id = rule is not None and rule.needs_ids
        named = Roles.of(roles, "evaluate").keeping(kept)
        rankings = rankings_or_stream(rankings, named, threads=threads, with_doc_id=by_id)
    if roles and rankings is argument:
        raise InputTypeError(
            f"{next(iter(roles))}= is for tables and paths; {type(rankings).__name__} already has its columns"
        )
    grades: list[Grades] = []

    def score(whole_or_part: Rankings) -> Scores:
        grades.append(whole_or_part._grades)
        return scoring_by(convention)(asked, whole_or_part, threads)

    if isinstance(rankings, Rankings):
        scores = score(rankings)
    else:
        from fastndcg.sources.streams import evaluate_stream

        threads = rankings._scoring_threads if threads is None else threads
        with hold_functions(resolved):
            scores = evaluate_stream(rankings, score)
    warn_of_unreached(resolved, grades, scores.values.shape[1])
    return scores


def _warn_of_order(measures: Sequence[Measure], convention: object, joined: Rankings) -> None:
    """Warn about measures that rank tied documents in row order, which the join has changed."""
    by_row = [each for each in measures if each.params.get("ties") == "input"]
    if by_row and convention is None and joined._rows_of_run is not None:
        warn(
            f"{by_row[0]} keeps tied documents in row order, but joined judgments and runs have tied "
            "documents in descending order of id, as in trec_eval. To keep the order of the run, pass "
            'convention=, the name of a tool, or join with Rankings.from_qrels_run(qrels, run, ties="input").'
        )


def scoring_by(
    convention: str | Convention | None,
) -> Callable[[tuple[Measure, ...], Rankings, int | None], Scores]:
    """Return the function that scores rankings or a part of a stream, without warnings."""
    if convention is None:
        return methods.score
    from fastndcg.convention.evaluation import evaluate_by_convention

    return lambda measures, rankings, threads: evaluate_by_convention(
        rankings, measures, convention, threads=threads
    )


@known_arguments
def ndcg(
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    offsets: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    query_ids: Any = None,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    ties: Ties = "average",
    ideal: Ideal = "judged",
    empty: Empty = 0.0,
    nan: NaN = "refuse",
    ascending: bool = False,
    unjudged: Unjudged = "refuse",
    threads: int | None = None,
) -> Float64:
    """Compute nDCG of each query, from ragged arrays or from the rows of matrices.

    nDCG@k = DCG@k / IDCG@k, with DCG@k the sum over ranks i <= k of gain(grade_i) * discount(i) (Järvelin and
    Kekäläinen, TOIS 2002).

    Parameters
    ----------
    relevance, scores : (n_docs,), or (n_queries, n_docs_per_query)
    offsets, group, query_ids
        One of these says which rows belong to which query: CSR offsets, the number of rows of each query, or
        the query id of each row. Without them, a one-dimensional array is one query.
    k : int, optional
        Cutoff: how many ranks count. Default: all.
    gain, discount, ties, ideal, empty
        As the parameters of `nDCG`.
    nan, ascending, unjudged
        As in `Rankings.from_offsets`.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    float64 (n_queries,)
        With `query_ids`, queries are in order of first appearance.

    Raises
    ------
    InputError, MeasureError
        As in `Rankings` and `evaluate`; also if more than one of offsets, group and query_ids is given.

    See Also
    --------
    evaluate : any measure, from files, tables or arrays.
    ndcg_score : scikit-learn's function of this name.

    References
    ----------
    Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008 (ties).

    Examples
    --------
    >>> ndcg([3, 0, 2, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.6], offsets=[0, 3, 5], k=2)
    array([0.70391809, 0.63092975])
    """
    rows = {"offsets": offsets, "group": group, "query_ids": query_ids}
    passed = [name for name, value in rows.items() if value is not None]
    if len(passed) > 1:
        raise InputError(
            f"{' and '.join(passed)} were passed; pass only the one that groups the rows by query"
        )
    options: Columns = {"nan": nan, "ascending": ascending, "unjudged": unjudged}
    if offsets is not None:
        rankings = Rankings.from_offsets(offsets, relevance, scores, **options)
    elif group is not None:
        rankings = Rankings.from_groups(group, relevance, scores, **options)
    elif query_ids is not None:
        rankings = Rankings.from_query_ids(query_ids, relevance, scores, **options)
    elif np.ndim(relevance) == 2:
        rankings = Rankings.from_dense(relevance, scores, **options)
    else:
        rankings = Rankings.from_offsets([0, len(relevance)], relevance, scores, **options)  # type: ignore[arg-type]
    measure = nDCG(gain=gain, discount=discount, ties=ties, ideal=ideal, empty=empty)
    asked = measure if k is None else measure @ k
    return read_only(methods.defined_values((asked,), rankings, threads)[0][0])


def evaluate_query(
    relevance: npt.ArrayLike, scores: npt.ArrayLike, measure: Any, **options: Unpack[ColumnsAndIds]
) -> Any:
    """Compute a measure of one query, as a plain float: for functions that an engine calls for each group.

    Parameters
    ----------
    relevance, scores : (n_docs,)
        Grades and scores of the documents of the query: lists, NumPy, pandas or Arrow.
    measure : Measure, notation ("nDCG@10"), or a list of these
    options : keywords
        As in `Rankings.from_offsets`: nan, ascending, unjudged, is_judged, judged, doc_ids.

    Returns
    -------
    float, or dict of float by measure if a list was given
        NaN where the measure has no value, as for `empty="skip"`.

    Raises
    ------
    InputError, MeasureError
        As in `Rankings.from_offsets` and `evaluate`.

    See Also
    --------
    evaluate : many queries at once, which is up to a thousand times as fast a query.

    Examples
    --------
    >>> evaluate_query([0, 2, 1], [0.9, 0.8, 0.1], "nDCG@10")
    0.6696718...
    >>> evaluate_query([0, 2, 1], [0.9, 0.8, 0.1], ["P@2", "RR"])
    {'P@2': 0.5, 'RR': 0.5}
    """
    n_docs = len(relevance) if isinstance(relevance, Sized) else 0
    rankings = Rankings.from_offsets([0, n_docs], relevance, scores, **options)
    asked = as_measures(measure)
    values: list[float] = methods.defined_values(asked, rankings, 1)[0][:, 0].tolist()
    if len(asked) == 1 and (isinstance(measure, str) or not isinstance(measure, Iterable)):
        return values[0]
    return {each.label: value for each, value in zip(asked, values, strict=True)}
