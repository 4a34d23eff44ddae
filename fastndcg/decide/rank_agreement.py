"""How far two rankings agree: of the documents of a query, or of systems."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrays import Float64, as_array
from fastndcg.common.arrow_types import array_of, decode, is_text
from fastndcg.common.table import Table
from fastndcg.errors import ColumnError, InputError, InputTypeError, check_choice, check_length
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import check_kept
from fastndcg.statistics.agreement import rbo, tau_ap, tau_b
from fastndcg.statistics.intervals import check_confidence, check_share
from fastndcg.statistics.paired import CORRELATIONS, correlation, share


def rank_agreement(a: Any, b: Any, method: str = "tau_b", p: float = 0.9) -> float | npt.NDArray[np.float64]:
    """Compute how far two rankings of documents or systems agree. Ties never count as a random order.

    Parameters
    ----------
    a, b
        One of: a mapping of items to scores, higher is better; an array of scores, (n_items,), the items of
        `a` and `b` in the same order; items as strings, best first; Rankings of the same queries, whose
        documents are matched by id if they have ids.
    method : "tau_b", "tau_ap" or "rbo"
        "tau_b" is Kendall's tau, corrected for ties; it needs SciPy. "tau_ap" takes `a` as the reference and
        gives the top ranks of `b` more weight. "rbo" is the extrapolated rank-biased overlap; items and
        lengths may differ. The last two are expected values over all orders of tied items.
    p : float
        For "rbo": the probability that a reader goes on from one rank to the next.

    Returns
    -------
    float, or float64 (n_queries,) for Rankings
        1 if rankings without ties are equal. Tau is -1 if they are reversed, and rbo is 0 if they share no
        item. NaN if agreement is undefined, for example if all items tie.

    Raises
    ------
    InputError, InputTypeError, ExtraError
        Different items with "tau_b" or "tau_ap"; NaN scores; an unknown method; a `p` that is not between 0
        and 1; an argument of another type than those above; "tau_b" without SciPy.

    See Also
    --------
    compare : whether one system is better than another.
    cohen_kappa, krippendorff_alpha : agreement of judges instead of rankings.

    References
    ----------
    Kendall, Biometrika 1945 (tau_b); Yilmaz et al., SIGIR 2008 (tau_ap); Webber et al., TOIS 2010 (rbo).

    Examples
    --------
    >>> first = {"bm25": 0.41, "dense": 0.44, "rerank": 0.52}
    >>> rank_agreement(first, {"bm25": 0.3, "dense": 0.3, "rerank": 0.4}, "tau_ap")
    0.75
    >>> round(rank_agreement(["x", "y", "z"], ["x", "z", "u", "v"], "rbo"), 4)
    0.685
    """
    check_choice("method", method, ("tau_b", "tau_ap", "rbo"))
    p = check_share("p", p, 0.9)
    if not isinstance(a, Rankings) or not isinstance(b, Rankings):
        return _agreement(_scores("a", a), _scores("b", b), method, p)
    if not a.query_ids.equals(b.query_ids):
        raise InputError(
            "a and b have other queries, or the same in another order; "
            "wanted the same queries in the same order"
        )
    found, ids = [], None if a.doc_ids is None or b.doc_ids is None else (a.doc_ids, b.doc_ids)
    for query in range(a.n_queries):
        sides: list[_Scores] = []
        for place, rankings in enumerate((a, b)):
            rows = slice(int(rankings.offsets[query]), int(rankings.offsets[query + 1]))
            scores = rankings.scores[rows].tolist()
            items = range(len(scores)) if ids is None else ids[place][rows].to_pylist()
            sides.append(dict(zip(items, scores, strict=True)))
        if len(sides[0]) != len(sides[1]) and ids is None:
            raise InputError(
                f"query {a._name_of(query)} has {len(sides[0])} documents in a and {len(sides[1])} in b; "
                "give doc_ids to match them"
            )
        found.append(_agreement(sides[0], sides[1], method, p))
    return np.array(found, np.float64)


_Scores = Mapping[Hashable, float]


def _scores(name: str, given: Any) -> _Scores:
    """A score for each item."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if is_list and all(isinstance(item, str) for item in given):
        if len(set(given)) < len(given):
            twice = next(item for item in given if list(given).count(item) > 1)
            raise InputError(f"{name} has {twice!r} more than once; rank each item once")
        return {item: float(-rank) for rank, item in enumerate(given)}
    items, given = (list(given), list(given.values())) if isinstance(given, Mapping) else (None, given)
    values = np.asanyarray(given)
    if values.ndim != 1 or (values.dtype.kind not in "biuf" and len(values)):
        raise InputTypeError(
            f"{name} is a {type(given).__name__} of shape {values.shape} and dtype {values.dtype}; "
            "wanted a score for each item, a mapping of items to scores, items as strings, or Rankings"
        )
    for what, lacks in (("masked", np.ma.getmaskarray(values)), ("NaN", np.isnan(np.ma.getdata(values)))):
        if lacks.any():
            raise InputError(
                f"{name} has a {what} score at position {int(np.argmax(lacks))}; give each item a score"
            )
    numbers = values.tolist()  # not cast: float64 cannot tell large integers apart
    return dict(enumerate(numbers) if items is None else zip(items, numbers, strict=True))


def _agreement(a: _Scores, b: _Scores, method: str, p: float) -> float:
    if method == "rbo":
        return rbo(a, b, p)
    if a.keys() != b.keys():
        alone = sorted(map(repr, a.keys() ^ b.keys()))
        raise InputError(
            f"a and b rank different items: {', '.join(alone[:3])}{', ...' if len(alone) > 3 else ''} "
            'in one of them only. Use method="rbo", or give the same items'
        )
    if not a:
        return math.nan
    # ranks, which hold what a tau needs of scores of any type
    codes = []
    for side in (a, b):
        ranks = {score: float(rank) for rank, score in enumerate(sorted(set(side.values())))}
        codes.append(np.array([ranks[side[item]] for item in a]))
    return (tau_b if method == "tau_b" else tau_ap)(*codes)


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

        - pearson: the linear correlation; the interval is by Fisher's transformation, with the error of
          the jackknife, since that of normal values is too small for long tails;
        - spearman: that of the ranks, and kendall: tau-b. Their intervals are Bonett and Wright's;
        - sign: how often the two have the same sign, of those where neither is 0: how often the difference
          offline predicted that online. The interval is Wilson's.

        For Scores, first `measure`, and no row for the sign. Pairs of which a number is missing are left out.
        Intervals of correlations are NaN for fewer than 5 pairs, and where the correlation is 1 or -1.

    Raises
    ------
    InputError, InputTypeError, ColumnError, ExtraError
        Mappings of different experiments; arrays of different lengths, or of something else than numbers; a
        column that was not kept, or is not of finite numbers; SciPy is not installed.

    See Also
    --------
    rank_agreement : two rankings, by tau-b, tau_AP or RBO.
    compare : which of two systems is better offline.

    References
    ----------
    Fisher, Metron 1921; Miller, Biometrika 1974 (the jackknife); Bonett and Wright, Psychometrika 2000;
    Wilson, JASA 1927.

    Examples
    --------
    >>> offline = {"a": 0.010, "b": -0.002, "c": 0.021, "d": 0.004, "e": -0.013, "f": 0.007}
    >>> online = {"a": 0.4, "b": 0.1, "c": 0.9, "d": -0.1, "e": -0.5, "f": 0.3}
    >>> online_agreement(offline, online)
    method       value       low      high  n
    pearson   0.952732 -0.525103  0.999635  6
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
        found = {method: (*correlation(method, a, b, confidence), len(a)) for method in CORRELATIONS}
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
