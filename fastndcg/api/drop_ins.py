"""Functions with the names, values and errors of scikit-learn's `ndcg_score` and `dcg_score`."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg import statistics
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import unmask
from fastndcg.errors import InputError, InputTypeError, known_arguments
from fastndcg.measures import DCG, Measure, nDCG
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import Names, warn_if_swapped
from fastndcg.scoring.discount_tables import discount_table
from fastndcg.tables.layouts import flat_of_matrices


@known_arguments
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
        False averages over ties. True ranks tied labels in the order of NumPy's sort, as scikit-learn does on
        the same machine.

    Returns
    -------
    float
        Mean over rows, weighted by `sample_weight`; NaN where a weight is NaN or infinite.

    Raises
    ------
    InputError (a ValueError), InputTypeError (a TypeError)
        A single label, negative grades, shapes that differ, NaN or infinity; data that are not numbers.

    See Also
    --------
    dcg_score : the mean DCG.
    evaluate, ndcg : with a value for each query.

    References
    ----------
    Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008 (ties).

    Examples
    --------
    >>> ndcg_score([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]])
    0.6956940443813076
    """
    return _mean_of_rows(nDCG, y_true, y_score, k, sample_weight, ignore_ties)


@known_arguments
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
        As in `ndcg_score`.

    Raises
    ------
    InputError (a ValueError), InputTypeError (a TypeError)
        Shapes that differ, NaN or infinity; data that are not numbers.

    See Also
    --------
    ndcg_score : DCG divided by that of the ideal ranking.

    References
    ----------
    Järvelin and Kekäläinen, TOIS 2002; McSherry and Najork, ECIR 2008 (ties).

    Examples
    --------
    >>> dcg_score([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]])
    9.499457825916874
    """
    return _mean_of_rows(DCG, y_true, y_score, k, sample_weight, ignore_ties, log_base)


def _mean_of_rows(
    measure: Measure,
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    k: int | None,
    sample_weight: npt.ArrayLike | None,
    ignore_ties: bool,
    base: float = 2,
) -> float:
    true, score, weight = _checked(y_true, y_score, sample_weight, is_ndcg=measure is nDCG)
    for name, value, fits, expected in (
        ("log_base", base, isinstance(base, numbers.Real) and 0 < base < math.inf, "a number above 0"),
        ("k", k, k is None or (isinstance(k, numbers.Integral) and k >= 1), "a whole number of at least 1"),
        ("ignore_ties", ignore_ties, isinstance(ignore_ties, bool | np.bool_), "True or False"),
    ):
        if not fits:
            raise InputError(f"{name}={value!r} is not known; expected {expected}")
    if base != 2:  # below 1 the logarithm is negative; at 1 every discount is 0
        discount: Any = float(base) if base > 1 else discount_table(float(base), true.shape[1])
        measure = measure(discount=discount)
    warn_if_swapped(Names("y_true", "y_score"), true, score)
    if ignore_ties and true.shape == score.shape:
        ranking = np.argsort(score)[:, ::-1]  # NumPy's unstable sort, as in scikit-learn
        true = np.take_along_axis(true, ranking, 1)
        score = np.broadcast_to(np.arange(true.shape[1], 0, -1), true.shape)
    elif score.dtype.kind == "b":
        raise InputTypeError(
            "y_score is boolean, which cannot be ranked; give numbers, as y_score.astype(float)"
        )
    rankings = Rankings._from_offsets(*flat_of_matrices(true, score, None, "refuse"))
    values = evaluate(rankings, measure if k is None else measure @ min(int(k), true.shape[1])).values[0]
    if weight is None:
        return statistics.mean(values)
    if not np.isfinite(weight).all():
        return math.nan
    if not statistics.exact_sum(weight):
        raise ZeroDivisionError(
            "sample_weight sums to zero, so there is no weighted mean; give at least one weight that is not 0"
        )
    return statistics.mean(values, weight)


_LISTS = (
    "One query is y_true=[[...]], y_score=[[...]]; queries of different lengths go to "
    "fastndcg.ndcg(relevance, scores, group=sizes) or Rankings.from_lists."
)


def _checked(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, sample_weight: npt.ArrayLike | None, *, is_ndcg: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float64] | None]:
    """Return grades, scores and weights as arrays, validated as in scikit-learn, in the same order."""
    true, score, weight = _array("y_true", y_true), _array("y_score", y_score), None
    for name, array in {"y_true": true, "y_score": score}.items():
        if array.dtype.kind not in "buif" or array.dtype.itemsize > 8 or not array.ndim or not len(array):
            raise InputError(
                f"{name} is not a matrix of numbers (dtype {array.dtype}, shape {array.shape}); "
                f"expected at least one sample, shape (n_samples, n_labels). {_LISTS}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(
                f"{name} contains {'NaN' if np.isnan(array).any() else 'infinity'}; expected finite numbers"
            )
    if sample_weight is not None:
        weight = _array("sample_weight", sample_weight)
        if weight.ndim != 1 or weight.dtype.kind not in "buif":
            raise InputTypeError(
                f"sample_weight is not a list of numbers (shape {weight.shape}, dtype {weight.dtype}); "
                "expected a number for each sample, shape (n_samples,)"
            )
        weight = weight.astype(np.float64)
    lengths = [len(each) for each in (true, score, weight) if each is not None]
    if len(set(lengths)) > 1:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {lengths}; "
            "give y_true, y_score and sample_weight one row for each sample"
        )
    if is_ndcg and true.size and true.min() < 0:
        raise InputError("ndcg_score should not be used on negative y_true values.")
    if is_ndcg and true.ndim > 1 and true.shape[1] <= 1:
        raise InputError(
            "Computing NDCG is only meaningful when there is more than 1 document. "
            f"Got {true.shape[1]} instead. fastndcg.ndcg takes queries of one document."
        )
    if true.ndim != 2 or true.shape[1] <= 1:
        fractional = true.dtype.kind == "f" and bool((true != np.floor(true)).any())
        kind = "continuous" if fractional else "binary" if len(np.unique(true)) <= 2 else "multiclass"
        raise InputError(
            "Only ('multilabel-indicator', 'continuous-multioutput', 'multiclass-multioutput') formats are "
            f"supported. Got {kind} instead: y_true has shape {true.shape}, expected (n_samples, "
            f"n_labels) with more than one label. {_LISTS}"
        )
    return true, score, weight


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    """Return an array of numbers. Objects are accepted as in scikit-learn: not grades from a list."""
    if isinstance(values, np.matrix):
        raise InputTypeError(f"{name} is a numpy.matrix; give an array, as np.asarray({name})")
    values = unmask(name, values)
    try:
        array = np.asarray(values)
        if array.dtype == object and array.ndim:
            of_list = name == "y_true" and isinstance(values, list | tuple)
            is_text = name == "sample_weight" and not all(isinstance(one, numbers.Real) for one in array.flat)
            array = array if of_list or is_text else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, object)
    return array
