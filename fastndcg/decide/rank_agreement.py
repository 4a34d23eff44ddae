"""How far two rankings agree: of the documents of a query, or of systems."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError, InputTypeError, check_choice
from fastndcg.rankings.rankings import Rankings
from fastndcg.statistics.agreement import rbo, tau_ap, tau_b
from fastndcg.statistics.intervals import check_share

METHODS = ("tau_b", "tau_ap", "rbo")


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
    InputError
        Different items with "tau_b" or "tau_ap"; NaN scores; an unknown method; a `p` that is not between 0
        and 1.
    InputTypeError
        An argument of another type than those above.
    ExtraError
        "tau_b" was asked for, and SciPy is not installed.

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
    check_choice("method", method, METHODS)
    p = check_share("p", p, 0.9)
    if isinstance(a, Rankings) and isinstance(b, Rankings):
        return np.array([_agreement(*pair, method, p) for pair in _by_query(a, b)], np.float64)
    return _agreement(_scores("a", a), _scores("b", b), method, p)


_Scores = Mapping[Hashable, float]


def _scores(name: str, given: Any) -> _Scores:
    """A score for each item."""
    if isinstance(given, Mapping):
        values = _numbers(name, list(given.values()))
        return dict(zip(given, values, strict=True))
    if (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(isinstance(item, str) for item in given)
    ):
        if len(set(given)) < len(given):
            twice = next(item for item in given if list(given).count(item) > 1)
            raise InputError(f"{name} has {twice!r} more than once; rank each item once")
        return {item: float(-rank) for rank, item in enumerate(given)}
    return dict(enumerate(_numbers(name, given)))


def _numbers(name: str, given: Any) -> list[float]:
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
    numbers: list[float] = values.tolist()  # not cast: float64 cannot tell large integers apart
    return numbers


def _by_query(a: Rankings, b: Rankings) -> list[tuple[_Scores, _Scores]]:
    if not a.query_ids.equals(b.query_ids):
        raise InputError(
            "a and b have other queries, or the same in another order; "
            "wanted the same queries in the same order"
        )
    pairs: list[tuple[_Scores, _Scores]] = []
    for query in range(a.n_queries):
        sides = []
        for rankings in (a, b):
            first, last = int(rankings.offsets[query]), int(rankings.offsets[query + 1])
            scores = rankings.scores[first:last].tolist()
            with_ids = a.doc_ids is not None and b.doc_ids is not None and rankings.doc_ids is not None
            items = rankings.doc_ids[first:last].to_pylist() if with_ids else range(len(scores))  # type: ignore[index]
            sides.append(dict(zip(items, scores, strict=True)))
        if len(sides[0]) != len(sides[1]) and (a.doc_ids is None or b.doc_ids is None):
            raise InputError(
                f"query {a._name_of(query)} has {len(sides[0])} documents in a and {len(sides[1])} in b; "
                "give doc_ids to match them"
            )
        pairs.append((sides[0], sides[1]))
    return pairs


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
