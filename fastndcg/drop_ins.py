"""Functions with the names, values and errors of scikit-learn's `ndcg_score` and `dcg_score`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg import statistics
from fastndcg.api import evaluate
from fastndcg.arrays import unmask
from fastndcg.errors import InputError
from fastndcg.measures import DCG, Measure, nDCG
from fastndcg.rankings import Rankings
from fastndcg.scoring.plan import discount_table


def ndcg_score(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    k: int | None = None,
    sample_weight: npt.ArrayLike | None = None,
    ignore_ties: bool = False,
) -> float:
    """Return the mean nDCG of the rows of matrices, with the values and errors of scikit-learn's function.

    Parameters
    ----------
    y_true, y_score : (n_samples, n_labels)
        Grades of 0 and above, and scores. There must be more than one label.
    k : int, optional
        Cutoff: how many ranks count. Default: all.
    sample_weight : (n_samples,), optional
        Weight of each row in the mean.
    ignore_ties : bool
        False averages over ties. True ranks tied labels from last to first; scikit-learn's unstable sort may
        order them otherwise.

    Returns
    -------
    float
        Mean over rows, weighted by `sample_weight`.

    Raises
    ------
    InputError (a ValueError)
        A single label, negative grades, shapes that differ, NaN or infinity.

    See Also
    --------
    dcg_score : the mean DCG.
    ndcg : nDCG of each query.
    evaluate : any measure, with a value for each query.

    References
    ----------
    Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008 (ties).

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
    """Return the mean DCG of the rows of matrices, with the values and errors of scikit-learn's function.

    Parameters
    ----------
    y_true, y_score, k, sample_weight, ignore_ties
        As in `ndcg_score`; grades may be negative.
    log_base : float
        Base of the logarithm of the discount.

    Returns
    -------
    float
        Mean over rows, weighted by `sample_weight`.

    Raises
    ------
    InputError (a ValueError)
        Shapes that differ, NaN or infinity.

    See Also
    --------
    ndcg_score : DCG divided by that of the ideal ranking.
    evaluate : any measure, with a value for each query.

    References
    ----------
    Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008 (ties).

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
    if ignore_ties:  # as scikit-learn, which sorts in rising order and reverses
        true, score, measure = true[:, ::-1], score[:, ::-1], measure(ties="input")
    values = evaluate(Rankings.from_dense(true, score), measure if k is None else measure @ k).values[0]
    if sample_weight is None:
        return statistics.mean(values)
    weight = np.asarray(unmask("sample_weight", sample_weight), dtype=np.float64)
    if not statistics.exact_sum(weight):
        raise ZeroDivisionError(
            "sample_weight sums to zero, so there is no weighted mean; give at least one weight that is not 0"
        )
    return statistics.mean(values, weight)


def _discount_of_base(base: float, ranks: int) -> Any:
    if isinstance(base, bool) or not isinstance(base, int | float | np.number) or not base > 0:
        raise InputError(f"log_base={base!r} is not the base of a logarithm; wanted a number above 0")
    if base > 1:
        return float(base)
    # below 1 the logarithm is negative; at 1 every discount is 0
    return discount_table(float(base), ranks)


def _dense(name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    values = unmask(name, values)
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
        "Only ('multilabel-indicator', 'continuous-multioutput', 'multiclass-multioutput') formats are "
        f"supported. Got {kind} instead: y_true has shape {true.shape}, wanted (n_samples, "
        "n_labels) with more than one label"
    )
