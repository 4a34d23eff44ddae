"""`online_agreement`: how far what was measured offline says what is measured online."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrays import as_array
from fastndcg.common.arrow_types import array_of, decode, is_text
from fastndcg.common.table import Table
from fastndcg.errors import ColumnError, InputError, InputTypeError, check_length
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import check_kept
from fastndcg.statistics.correlations import METHODS, correlation, share
from fastndcg.statistics.intervals import check_confidence

Float64 = npt.NDArray[np.float64]


def online_agreement(offline: Any, online: Any, *, confidence: float = 0.95) -> Table:
    """Measure how far what was measured offline says what is measured online, across experiments or queries.

    Parameters
    ----------
    offline, online
        One of: mappings of experiments to differences, such as that of nDCG@10 and that of the clicks of an
        A/B test; arrays, (n,), of these in the same order; Scores and the name of a kept column of their
        queries.
    confidence : float
        Confidence of the intervals.

    Returns
    -------
    Table
        `method`, `value`, its interval from `low` to `high`, and `n`, for each of:

        - pearson: the linear correlation; the interval is by Fisher's transformation;
        - spearman: that of the ranks, and kendall: tau-b. Their intervals are Bonett and Wright's;
        - sign: how often the two have the same sign, of those where neither is 0: how often the difference
          offline predicted that online. The interval is Wilson's.

        For Scores, first `measure`, and no row for the sign. Pairs of which a number is missing are left out.
        Intervals of correlations are NaN for fewer than 5 pairs, and where the correlation is 1 or -1.

    Raises
    ------
    InputError
        Mappings of different experiments; arrays of different lengths.
    ColumnError
        A column that was not kept, or is not of finite numbers.
    InputTypeError
        Something else than numbers.
    ExtraError
        SciPy is not installed.

    See Also
    --------
    rank_agreement : two rankings, by tau-b, tau_AP or RBO.
    compare : which of two systems is better offline.

    References
    ----------
    Fisher, Metron 1921; Bonett and Wright, Psychometrika 2000; Wilson, JASA 1927.

    Examples
    --------
    >>> offline = {"a": 0.010, "b": -0.002, "c": 0.021, "d": 0.004, "e": -0.013, "f": 0.007}
    >>> online = {"a": 0.4, "b": 0.1, "c": 0.9, "d": -0.1, "e": -0.5, "f": 0.3}
    >>> online_agreement(offline, online)
    method       value       low      high  n
    pearson   0.952732  0.622447  0.994977  6
    spearman  0.942857  0.382651  0.996133  6
    kendall   0.866667  0.382823  0.977396  6
    sign      0.666667  0.299993  0.903229  6
    """
    confidence = check_confidence(confidence)
    if isinstance(offline, Scores):
        names = [str(measure) for measure in offline.measures]
        pairs = [(values, _column(offline.queries, online)) for values in offline.values]
    else:
        names, pairs = [""], [paired(offline, online)]
    rows: list[dict[str, Any]] = []
    for name, pair in zip(names, pairs, strict=True):
        known = ~np.isnan(pair).any(axis=0)
        a, b = (each[known] for each in pair)
        found = {method: (*correlation(method, a, b, confidence), len(a)) for method in METHODS}
        if not isinstance(offline, Scores):
            signs = (np.sign(a) * np.sign(b))[(a != 0) & (b != 0)]
            found["sign"] = (*share(int((signs > 0).sum()), len(signs), confidence), len(signs))
        for method, (value, ends, n) in found.items():
            row = {"method": method, "value": value, **ends._asdict(), "n": n}
            rows.append(row if not name else {"measure": name} | row)
    kinds = {name: pa.string() for name in ("measure", "method") if name in rows[0]}
    kinds |= dict.fromkeys(("value", "low", "high"), pa.float64()) | {"n": pa.int64()}
    return Table(pa.Table.from_pylist(rows, pa.schema(kinds)), len(kinds) - 4)


def paired(offline: Any, online: Any) -> tuple[Float64, Float64]:
    """The two numbers of each experiment."""
    if isinstance(offline, Mapping) and isinstance(online, Mapping):
        alone = sorted(map(repr, offline.keys() ^ online.keys()))
        if alone:
            raise InputError(
                f"offline and online are of different experiments: {', '.join(alone[:3])}"
                f"{', ...' if len(alone) > 3 else ''} in one of them only; give both numbers of each"
            )
        offline, online = list(offline.values()), [online[name] for name in offline]
    a, b = (floats(name, each) for name, each in (("offline", offline), ("online", online)))
    check_length("online", len(b), len(a), "experiment")
    return a, b


def floats(name: str, given: Any) -> Float64:
    """A list of numbers as float64, NaN where one is missing."""
    given = given.to_pylist() if isinstance(given, pa.Array | pa.ChunkedArray) else given
    try:
        found = np.asarray(as_array(name, given), np.float64)
    except (TypeError, ValueError):
        found = np.full(1, math.inf)
    if np.isinf(found).any():
        raise InputTypeError(f"{name} is a {type(given).__name__} of something else than finite numbers")
    return found


def _column(queries: pa.Table, name: Any) -> Float64:
    check_kept([name], queries.column_names)
    column = decode(queries[name])
    try:
        if is_text(column.type):
            raise pa.ArrowInvalid
        values: Float64 = array_of(pc.fill_null(column.cast(pa.float64()), np.nan)).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnError(f'column "{name}" has type {column.type}; name a column of numbers') from None
    if np.isinf(values).any():
        raise ColumnError(f'column "{name}" has an infinite number in row {int(np.argmax(np.isinf(values)))}')
    return values
