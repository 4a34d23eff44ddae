"""The functions most people call: `evaluate`, `ndcg` for ragged arrays, and scikit-learn's two by their own names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg import scoring, statistics, streams
from fastndcg.conventions import Convention, evaluate_by_convention, resolve_all
from fastndcg.errors import InputError, InputTypeError
from fastndcg.measures import DCG, Measure, as_measures, functions_held, nDCG
from fastndcg.rankings import Rankings
from fastndcg.scoring.plan import discount_table
from fastndcg.streams import RankingsStream

if TYPE_CHECKING:
    from fastndcg.scores import Scores

Float64 = npt.NDArray[np.float64]


def evaluate(
    rankings: Rankings | RankingsStream,
    measures: Any,
    *,
    convention: str | Convention | None = None,
    threads: int | None = None,
) -> Scores:
    """Values of every measure for every query, from one ranking of each query.

    Parameters
    ----------
    rankings : Rankings or RankingsStream
        A stream, as `scan_parquet` gives it, is evaluated in bounded memory: only the results of each query are kept. Functions
        given as gain or discount are asked once for each grade or rank of the whole stream.
    measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
    convention : name or Convention, optional
        Compute nDCG as this tool does, as a whole: parameters that a measure leaves at their defaults, the order of tied
        documents, rounding, queries left out, and the mean. `fastndcg.conventions` lists them.
    threads : int, optional
        Default: all that Numba has. The values do not depend on it.

    Returns
    -------
    Scores
        float64 (n_measures, n_queries), with the queries' columns and weights.

    Raises
    ------
    MeasureError
        A measure that does not exist, or that lacks discounts for so many ranks; a convention that does not exist, or cannot be
        reproduced on this data.
    InputError
        A grade for which a measure has no gain, or none that it can bear.

    Examples
    --------
    >>> rankings = Rankings.from_offsets([0, 3, 5], [3, 0, 2, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.6])
    >>> evaluate(rankings, ["nDCG@2", nDCG(gain="exp2") @ 2])["nDCG@2"]
    array([0.70391809, 0.63092975])
    """
    if isinstance(rankings, RankingsStream):
        asked = as_measures(measures)
        resolved = asked if convention is None else resolve_all(asked, convention)
        evaluate_part = partial(
            evaluate,
            measures=asked,
            convention=convention,
            threads=rankings.scoring_threads if threads is None else threads,
        )
        with functions_held(resolved):
            return streams.evaluate(rankings, evaluate_part)
    if not isinstance(rankings, Rankings):
        raise InputTypeError(
            f"rankings is a {type(rankings).__name__}; wanted Rankings, made by Rankings.from_offsets, from_query_ids, from_arrow or "
            "read_parquet, or a stream of them, made by scan_parquet"
        )
    if convention is not None:
        return evaluate_by_convention(rankings, measures, convention, threads=threads)
    return scoring.score(as_measures(measures), rankings, threads)


def ndcg(
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    offsets: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    query_ids: Any = None,
    k: int | None = None,
    gain: Any = "linear",
    discount: Any = "log2",
    ties: str = "average",
    ideal: str = "judged",
    empty: float | str = 0.0,
    threads: int | None = None,
) -> Float64:
    """nDCG of each query of ragged arrays, or of the rows of matrices.

    nDCG@k = DCG@k / IDCG@k, with DCG@k the sum over ranks i <= k of gain(grade_i) * discount(i) (Järvelin and Kekäläinen,
    TOIS 2002).

    Parameters
    ----------
    relevance, scores : (n_docs,), or (n_queries, n_docs_per_query)
    offsets, group, query_ids
        Which rows belong to which query: CSR offsets, or the size of each query, or the query id of each row. With none of
        them, one-dimensional arrays are one query.
    k : int, optional
        Ranks that count; default all.
    gain, discount, ties, ideal, empty
        As the parameters of `nDCG`.

    Returns
    -------
    float64 (n_queries,)
        With `query_ids`, in order of first appearance.

    Raises
    ------
    InputError, MeasureError
        As `Rankings` and `evaluate` do; also where several of offsets, group and query_ids are given.

    Examples
    --------
    >>> ndcg([3, 0, 2, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.6], offsets=[0, 3, 5], k=2)
    array([0.70391809, 0.63092975])
    """
    given = [
        name
        for name, value in (("offsets", offsets), ("group", group), ("query_ids", query_ids))
        if value is not None
    ]
    if len(given) > 1:
        raise InputError(
            f"{' and '.join(given)} are given; one of them says which rows belong to which query"
        )
    if offsets is not None:
        rankings = Rankings.from_offsets(offsets, relevance, scores)
    elif group is not None:
        rankings = Rankings.from_groups(group, relevance, scores)
    elif query_ids is not None:
        rankings = Rankings.from_query_ids(query_ids, relevance, scores)
    elif np.ndim(relevance) == 2:
        rankings = Rankings.from_dense(relevance, scores)
    else:
        rankings = Rankings.from_offsets([0, len(relevance)], relevance, scores)  # type: ignore[arg-type]
    measure = nDCG(gain=gain, discount=discount, ties=ties, ideal=ideal, empty=empty)
    return evaluate(rankings, measure if k is None else measure @ k, threads=threads).values[0]  # type: ignore[no-any-return]


def ndcg_score(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    k: int | None = None,
    sample_weight: npt.ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Mean nDCG of the rows of matrices: scikit-learn's function of this name, its values and its errors.

    Parameters
    ----------
    y_true, y_score : (n_samples, n_labels)
        Grades, not negative, and scores. More than one label.
    k : int, optional
        Ranks that count; default all.
    sample_weight : (n_samples,), optional
        Weight of each row in the mean.
    ignore_ties : bool
        False averages over ties. True takes tied labels from last to first, the stable reverse order, where scikit-learn
        leaves their order to an unstable sort.

    Raises
    ------
    InputError (a ValueError)
        A single label, negative grades, shapes that differ, NaN or infinity.

    Examples
    --------
    >>> ndcg_score([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]])
    0.6956940443813076
    """
    true, score = _dense("y_true", y_true), _dense("y_score", y_score)
    _same_shape(true, score, sample_weight)
    if true.size and true.min() < 0:
        raise InputError("ndcg_score should not be used on negative y_true values.")
    if true.ndim > 1 and true.shape[1] <= 1:
        raise InputError(
            "Computing NDCG is only meaningful when there is more than 1 document. "
            f"Got {true.shape[1]} instead."
        )
    _check_labels(true)
    return _mean_of_rows(nDCG, true, score, k, sample_weight, ignore_ties)


def dcg_score(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    k: int | None = None,
    log_base: float = 2,
    sample_weight: npt.ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Mean DCG of the rows of matrices: scikit-learn's function of this name, its values and its errors.

    Parameters as in `ndcg_score`; `log_base` is the base of the discount's logarithm, and grades may be negative.

    Examples
    --------
    >>> dcg_score([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]])
    9.499457825916874
    """
    true, score = _dense("y_true", y_true), _dense("y_score", y_score)
    _same_shape(true, score, sample_weight)
    _check_labels(true)
    measure = DCG if log_base == 2 else DCG(discount=_discount_of_base(log_base, true.shape[1]))
    return _mean_of_rows(measure, true, score, k, sample_weight, ignore_ties)


def _mean_of_rows(
    measure: Measure,
    true: npt.NDArray[Any],
    score: npt.NDArray[Any],
    k: int | None,
    sample_weight: npt.ArrayLike | None,
    ignore_ties: bool,
) -> float:
    if ignore_ties:  # scikit-learn sorts ascending and reverses, so of tied labels the last comes first
        true, score, measure = true[:, ::-1], score[:, ::-1], measure(ties="input")
    values = evaluate(Rankings.from_dense(true, score), measure if k is None else measure @ k).values[0]
    if sample_weight is None:
        return statistics.mean(values)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if not statistics.exact_sum(weight):
        raise ZeroDivisionError(
            "sample_weight adds up to zero, so there is no weighted mean; give at least one weight that is not 0"
        )
    return statistics.mean(values, weight)


def _discount_of_base(base: float, ranks: int) -> Any:
    if isinstance(base, bool) or not isinstance(base, int | float | np.number) or not base > 0:
        raise InputError(f"log_base={base!r} is no base of a logarithm; wanted a number above 0")
    if base > 1:
        return float(base)
    # below 1 the logarithm is negative; at 1 every discount is 0
    return discount_table(float(base), ranks)


def _dense(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.dtype.kind not in "buif":
        raise InputError(
            f"{name} is not a matrix of numbers (dtype {array.dtype}); wanted shape (n_samples, n_labels)"
        )
    if not len(array.shape) or not array.shape[0]:
        raise InputError(
            f"{name} has shape {array.shape}; wanted at least one sample, shape (n_samples, n_labels)"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"{name} contains {'NaN' if np.isnan(array).any() else 'infinity'}; wanted finite numbers"
        )
    return array


def _same_shape(true: npt.NDArray[Any], score: npt.NDArray[Any], sample_weight: npt.ArrayLike | None) -> None:
    lengths = [len(true), len(score)] + ([] if sample_weight is None else [len(sample_weight)])  # type: ignore[arg-type]
    if len(set(lengths)) > 1:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {lengths}; "
            "give y_true, y_score and sample_weight one row for each sample"
        )


def _check_labels(true: npt.NDArray[Any]) -> None:
    if true.ndim == 2 and true.shape[1] > 1:
        return
    distinct = len(np.unique(true))
    fractional = true.dtype.kind == "f" and bool((true != np.floor(true)).any())
    kind = "continuous" if fractional else "binary" if distinct <= 2 else "multiclass"
    raise InputError(
        "Only ('multilabel-indicator', 'continuous-multioutput', 'multiclass-multioutput') formats are supported. "
        f"Got {kind} instead: y_true has shape {true.shape}, wanted (n_samples, n_labels) with more than one label"
    )
