"""The measures of `oracle` for many queries at once, in NumPy: a second opinion that is fast enough for
millions.

Queries are padded to rows of one width. A measure is a function of fully ordered rows, as in `oracle`;
measures that are linear in what a document is worth take the mean worth of a tied group for "average", the
others the mean over all ways to break ties, of lists of at most MOST_WAYS documents. Gains and discounts of
single grades and ranks are those of `oracle`.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import oracle

Array = npt.NDArray[Any]

MOST_WAYS = 5  # documents of a list all of whose orders are listed: 120


class Batch(NamedTuple):
    """Queries as rows. Scores are whole numbers in the order of the scores that they stand for."""

    grades: Array  # float64 (n, width)
    scores: Array  # int64 (n, width)
    given: Array  # (n, width): the scores themselves
    present: Array  # bool (n, width): where there is a document
    judged: Array  # bool (n, width)
    pool: Array | None  # float64 (n, width of pools): grades of judged documents
    in_pool: Array | None  # bool
    distinct: Array  # float64: all grades there are
    orders: dict[
        bool, Array
    ]  # orders in which tied documents stay as they are, with unjudged ones dropped and without


def padded(offsets, values, fill):
    """Ragged values as rows of one width, and where there are any."""
    lengths = np.diff(offsets)
    there = np.arange(int(lengths.max(initial=1))) < lengths[:, None]
    rows = np.full((*there.shape, *values.shape[1:]), fill)
    rows[there] = values
    return rows, there


def batch_of(offsets, grades, scores, judged, pool):
    codes = np.unique(scores, return_inverse=True)[1].astype(np.int64)
    rows, present = padded(offsets, grades.astype(np.float64), 0.0)
    flags = present if judged is None else padded(offsets, judged, False)[0]
    pooled = (None, None) if pool is None else padded(pool[0], pool[1].astype(np.float64), 0.0)
    distinct = np.unique(np.concatenate([[0.0], grades, [] if pool is None else pool[1]]).astype(np.float64))
    given = padded(offsets, scores, scores.dtype.type(0))[0]
    return Batch(rows, padded(offsets, codes, 0)[0], given, present, flags, *pooled, distinct, {})


class Ranked(NamedTuple):
    """Rows in rank order, and what measures ask about their queries."""

    worth: Array  # float64 (n, width): by rank, of tied groups the mean where orders are averaged; 0 beyond the list
    single: Array  # the worth of the document of each rank itself
    grades: Array
    judged: Array
    shown: Array  # int64 (n,): documents of the list, those dropped left out
    pool: Array  # float64 (n, width of pools), -inf where there is nothing
    some: Array  # bool (n,): whether the query has documents, returned or judged
    distinct: Array

    def relevant(self, rel):
        """R of each query."""
        return np.count_nonzero(self.pool >= rel, axis=1).astype(np.float64)

    def top(self, cutoff):
        """Worth on the first ranks, and 0 on the others."""
        return self.worth if cutoff is None else np.where(self.ranks() <= cutoff, self.worth, 0.0)

    def ranks(self):
        return np.arange(1, self.worth.shape[1] + 1)


def by_grade(function, grades, distinct):
    """A function of single grades, of all, which are among the `distinct`; NaN where it refuses one, which must not count."""

    def of(grade):
        try:
            return float(function(oracle.Document(int(grade) if grade == int(grade) else grade)))
        except (ValueError, TypeError, KeyError, IndexError, OverflowError):
            return np.nan

    return np.array([of(grade) for grade in distinct.tolist()])[np.searchsorted(distinct, grades)]


def discounts(discount, n):
    weigh = oracle.discount_function(discount)
    return np.array([weigh(rank) for rank in range(1, n + 1)], np.float64)


def ratio(value, by):
    """Undefined where it would divide by 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(by != 0, value / np.where(by != 0, by, 1), np.nan)


# ---- measures of rows in rank order; NaN stands for "undefined" ----


def dcg(ranked, cutoff, discount="log2", **_):
    worth = ranked.top(cutoff)
    depth = min(worth.shape[1], cutoff or worth.shape[1])
    weights = discounts(discount, depth)
    return np.where(ranked.some, (worth[:, :depth] * weights).sum(axis=1), np.nan)


def idcg(
    ranked, cutoff, ideal = "judged", discount = "log2", gain = "linear", rel = None,
    gains = None, **_,
):  # fmt: skip
    worth = oracle.gain_function(gain, rel, gains)
    there = ranked.pool > -np.inf
    judged = np.where(there, by_grade(worth, np.where(there, ranked.pool, 0.0), ranked.distinct), -np.inf)
    shown, depth = ranked.shown[:, None], judged.shape[1]
    scored = np.where(ranked.ranks() <= shown, ranked.single, -np.inf)
    if ideal in ("judged", "judged_uncut", "judged_returned"):
        best = -np.sort(-judged, axis=1)
        if ideal == "judged_returned":
            best[np.arange(1, depth + 1) > shown] = -np.inf
    elif ideal == "scored":
        best = -np.sort(-scored, axis=1)
    elif ideal == "returned":
        best = -np.sort(-np.where(ranked.ranks() <= (cutoff or scored.shape[1]), scored, -np.inf), axis=1)
    else:
        top = judged.max(axis=1, initial=-np.inf)
        top[top == -np.inf] = 0.0
        if gain == "binary" or (gains is None and not isinstance(gain, str) and not callable(gain)):
            top = np.full_like(top, oracle.highest_gain(gain, rel, gains, []))
        n = shown[:, 0] if cutoff is None else np.full(len(top), cutoff)
        best = np.where(np.arange(int(n.max(initial=0))) < n[:, None], top[:, None], -np.inf)
    best = np.where(best > -np.inf, best, 0.0)
    if cutoff is not None and ideal != "judged_uncut":
        best = best[:, :cutoff]
    return np.where(ranked.some, (best * discounts(discount, best.shape[1])).sum(axis=1), np.nan)


def ndcg(ranked, cutoff, floor="zero", **words):
    best = np.nan_to_num(idcg(ranked, cutoff, **words))
    if floor == "zero":
        return ratio(dcg(ranked, cutoff, **words), best)
    worth = oracle.gain_function(words.get("gain", "linear"), words.get("rel"), words.get("gains"))
    there = ranked.pool > -np.inf
    judged = np.where(there, by_grade(worth, np.where(there, ranked.pool, 0.0), ranked.distinct), np.inf)
    rising = np.sort(judged, axis=1)[:, :cutoff]
    weights = discounts(words.get("discount", "log2"), rising.shape[1])
    worst = (np.where(rising < np.inf, rising, 0.0) * weights).sum(axis=1)
    return ratio(dcg(ranked, cutoff, **words) - worst, best - worst)


def num_ret(ranked, cutoff, **_):
    return ranked.top(cutoff).sum(axis=1)


def number_returned(ranked, cutoff, **_):
    return np.where(ranked.some, num_ret(ranked, cutoff), np.nan)


def num_rel(ranked, _cutoff, rel=1, **_):
    relevant = ranked.relevant(rel)
    return np.where(relevant > 0, relevant, np.nan)


def precision(
    ranked, cutoff, rel = 1, relative = False, denominator = "cutoff", **_
):  # fmt: skip
    n = ranked.shown.astype(np.float64) if cutoff is None else np.full(len(ranked.shown), float(cutoff))
    n = np.minimum(n, ranked.shown) if denominator == "returned" else n
    n = np.minimum(n, ranked.relevant(rel)) if relative or denominator == "n_relevant" else n
    return np.where(ranked.some, ratio(num_ret(ranked, cutoff), n), np.nan)


def recall(ranked, cutoff, rel=1, denominator="n_relevant", **_):
    relevant = ranked.relevant(rel)
    if denominator == "cutoff" and cutoff is not None:
        relevant = np.minimum(relevant, cutoff)
    return ratio(num_ret(ranked, cutoff), relevant)


def f_measure(ranked, cutoff, rel=1, beta=1.0, **_):
    """By hits, R and k, where the oracle goes by precision and recall."""
    n, relevant = ranked.shown if cutoff is None else cutoff, ranked.relevant(rel)
    hits = num_ret(ranked, cutoff)
    return np.where(relevant > 0, ratio((1 + beta**2) * hits, beta**2 * relevant + n), np.nan)


def r_precision(ranked, _cutoff, rel=1, **_):
    relevant = ranked.relevant(rel)
    return ratio((ranked.worth * (ranked.ranks() <= relevant[:, None])).sum(axis=1), relevant)


def set_average_precision(ranked, _, rel=1, **__):
    return np.nan_to_num(precision(ranked, None, rel)) * recall(ranked, None, rel)


def rank_biased_precision(ranked, cutoff, p=0.8, **_):
    weights = p ** (ranked.ranks() - 1.0)
    return np.where(ranked.some, (1 - p) * (ranked.top(cutoff) * weights).sum(axis=1), np.nan)


def rank_biased_residual(ranked, cutoff, p=0.8, **_):
    n = ranked.shown if cutoff is None else np.minimum(ranked.shown, cutoff)
    return rank_biased_precision(ranked, cutoff, p) + p ** n.astype(np.float64)


def judged_share(ranked, cutoff, **_):
    n = ranked.shown if cutoff is None else np.minimum(ranked.shown, cutoff)
    return ratio(num_ret(ranked, cutoff), n)


def scaled_dcg(ranked, cutoff, discount="log2", **_):
    n = ranked.shown if cutoff is None else np.full(len(ranked.shown), cutoff)
    whole = np.append(0.0, np.cumsum(discounts(discount, int(n.max(initial=0)))))
    return np.where(ranked.some, ratio(dcg(ranked, cutoff, discount), whole[n]), np.nan)


# Measures that are not linear: each rank adds what those above it decide.


def success(ranked, cutoff, rel=1, **_):
    return np.where(ranked.relevant(rel) > 0, ranked.top(cutoff).max(axis=1, initial=0.0), np.nan)


def reciprocal_rank(ranked, cutoff, rel=1, of="first", **_):
    hits = ranked.top(cutoff)
    if of == "best":
        hits = (hits > 0) & (hits == ranked.worth.max(axis=1, initial=0.0)[:, None])
    first = (hits / ranked.ranks()).max(axis=1, initial=0.0)
    return np.where(ranked.relevant(rel) > 0, first, np.nan)


def average_precision(ranked, cutoff, rel=1, denominator="n_relevant", **_):
    hits, relevant = ranked.top(cutoff), ranked.relevant(rel)
    shown = ranked.shown.astype(np.float64) if cutoff is None else np.full(len(hits), float(cutoff))
    if denominator == "none":  # a document on rank i is in the precisions of the ranks from i to k
        weights = discounts(lambda rank: sum(1 / i for i in range(rank, (cutoff or 0) + 1)), hits.shape[1])
        return np.where(relevant > 0, ratio((hits * weights).sum(axis=1), shown), np.nan)
    by = {
        "n_relevant": relevant,
        "cutoff": relevant if cutoff is None else np.minimum(relevant, cutoff),
        "returned": np.minimum(np.minimum(relevant, shown), ranked.shown),
        "hits": np.maximum(hits.sum(axis=1), 1.0),
        "k": shown,
    }[denominator]
    value = ratio((hits * np.cumsum(hits, axis=1) / ranked.ranks()).sum(axis=1), by)
    return np.where(relevant > 0, value, np.nan)


def interpolated_precision(ranked, _cutoff, recall=0.0, rel=1, rounding="up", **_):
    found, relevant = np.cumsum(ranked.worth, axis=1), ranked.relevant(rel)
    reached = (ranked.worth > 0) & (
        found >= np.floor(recall * relevant + (0.9 if rounding == "up" else 0.5))[:, None]
    )
    best = np.where(reached, found / ranked.ranks(), 0.0).max(axis=1, initial=0.0)
    return np.where(relevant > 0, best, np.nan)


def expected_reciprocal_rank(ranked, cutoff, decay=None, **_):
    """ERR, or PFound where there is a `decay`."""
    stop = ranked.worth
    reading = np.cumprod(np.hstack([np.ones((len(stop), 1)), 1.0 - stop[:, :-1]]), axis=1)[:, : stop.shape[1]]
    weights = 1.0 / ranked.ranks() if decay is None else float(decay) ** (ranked.ranks() - 1.0)
    chance = stop * reading * weights
    return np.where(ranked.some, (chance if cutoff is None else chance[:, :cutoff]).sum(axis=1), np.nan)


def binary_preference(ranked, _cutoff, rel=1, **_):
    relevant = ranked.relevant(rel)[:, None]
    others = np.count_nonzero((ranked.pool >= 0) & (ranked.pool < rel), axis=1)[:, None]
    above = np.cumsum(ranked.judged & (ranked.grades >= 0) & (ranked.grades < rel), axis=1)
    share = np.where(above > 0, ratio(np.minimum(above, relevant), np.minimum(others, relevant)), 0.0)
    return ratio((ranked.worth * (1.0 - share)).sum(axis=1), relevant[:, 0])


def inferred_ap(ranked, _cutoff, rel=1, **_):
    """A document counts that was judged, or whose negative grade says that it was in the pool."""
    there = ranked.ranks() <= ranked.shown[:, None]
    counts = there & (ranked.judged | ((ranked.grades < 0) & (rel >= 0)))
    unjudged = counts & (ranked.grades < min(rel, 0))
    hits = counts & ~unjudged & (ranked.grades >= rel)
    missed = counts & ~unjudged & ~hits
    found, nothing, others = (np.cumsum(flags, axis=1) - flags for flags in (hits, missed, unjudged))
    above, epsilon = ranked.ranks() - 1.0, 0.00001
    share = (found + epsilon) / (found + nothing + 2 * epsilon)
    in_pool = (found + nothing + others) / np.maximum(above, 1.0)
    precision = (1.0 + above * in_pool * share) / ranked.ranks()
    return ratio((hits * precision).sum(axis=1), ranked.relevant(rel))


LINEAR = {
    "nDCG": ndcg, "DCG": dcg, "IDCG": idcg, "CG": lambda ranked, cutoff, **words: dcg(ranked, cutoff, lambda rank: 1.0),
    "P": precision, "R": recall, "F": f_measure, "Rprec": r_precision, "NumRet": number_returned, "NumRel": num_rel,
    "RBP": rank_biased_precision, "RBPresidual": rank_biased_residual, "Judged": judged_share, "SDCG": scaled_dcg,
    "SetP": precision, "SetR": recall, "SetF": f_measure, "SetAP": set_average_precision,
}  # fmt: skip
OTHERS = {
    "AP": average_precision, "RR": reciprocal_rank, "Success": success, "IPrec": interpolated_precision,
    "ERR": expected_reciprocal_rank, "Bpref": binary_preference, "infAP": inferred_ap,
    "PFound": lambda ranked, cutoff, decay=0.85, **words: expected_reciprocal_rank(ranked, cutoff, decay, **words),
}  # fmt: skip
GRADED = ("nDCG", "DCG", "IDCG", "CG")


# ---- ranking ----


def worth_of(name, batch, words):
    """What each document is worth to a measure; ties are broken by it for "worst" and "best"."""
    if name in GRADED:
        gain = oracle.gain_function(words.get("gain", "linear"), words.get("rel"), words.get("gains"))
        return np.where(
            batch.judged, by_grade(gain, np.where(batch.judged, batch.grades, 0.0), batch.distinct), 0.0
        )
    if name == "Judged":
        return np.where(batch.judged, 1.0, 0.0)
    if name == "RBPresidual":
        return np.where(batch.judged, 0.0, 1.0)
    if name in ("ERR", "PFound"):
        stop, grades = words.get("stop", "exp2"), np.where(batch.judged, batch.grades, 0.0)
        if name == "ERR" and stop == "exp2":
            return (2.0 ** grades.clip(0) - 1.0) / 2.0 ** words.get("max_rel", 4)
        chance = oracle.gain_function(words.get("stop", "linear"))
        return np.where(batch.judged, by_grade(chance, grades, batch.distinct), 0.0)
    if name == "SDCG":
        low, high = words.get("min_rel", 0), words["max_rel"]
        return np.where(batch.judged, (np.clip(batch.grades, low, high) - low) / (high - low), 0.0)
    rel = words.get("rel", None if name == "NumRet" else 1)
    if rel is None:
        return np.ones(batch.grades.shape)
    found = batch.judged & (batch.grades >= rel)
    if words.get("score_above") is not None:
        found = found & (batch.given > words["score_above"])
    return np.where(found, batch.grades - rel + 1.0 if words.get("of") == "best" else 1.0, 0.0)


def averaged(worth, scores):
    """The mean worth of the tied group of each rank."""
    n, width = worth.shape
    if not worth.size:
        return worth
    starts = np.ones((n, width), np.bool_)
    starts[:, 1:] = scores[:, 1:] != scores[:, :-1]
    group = np.cumsum(starts.ravel()) - 1
    return (np.bincount(group, worth.ravel()) / np.bincount(group))[group].reshape(n, width)


def has_ties(batch, judged_only=False):
    present = batch.present & batch.judged if judged_only else batch.present
    alone = np.where(present, batch.scores, -1 - np.arange(batch.scores.shape[1]))
    alone.sort(axis=1)
    return bool((alone[:, 1:] == alone[:, :-1]).any())


def score(
    name, batch, cutoff = None, *, ties = "average", judged_only = False, empty = 0.0,
    unjudged = None, **words,
):  # fmt: skip
    """The value of each query, as `oracle.score` has it. Raises `ValueError` for too many orders of tied documents."""
    n, width = batch.grades.shape
    grades, judged, present = batch.grades, batch.judged & batch.present, batch.present
    pool = np.where(judged, grades, -np.inf) if batch.pool is None else batch.pool
    if batch.in_pool is not None:
        pool = np.where(batch.in_pool, pool, -np.inf)
    distinct = batch.distinct
    if unjudged is not None:
        pool = np.hstack([pool, np.where(present & ~judged, float(unjudged), -np.inf)])
        grades, judged = np.where(judged, grades, float(unjudged)), present
        distinct = np.union1d(distinct, [unjudged])
    some = present.any(axis=1) | (pool > -np.inf).any(axis=1)
    if judged_only:
        present = present & judged
    batch = batch._replace(grades=grades, judged=judged, present=present, distinct=distinct)
    worth = np.where(present, worth_of(name, batch, words), 0.0)
    place = np.broadcast_to(np.arange(width), (n, width))

    def as_given():
        if judged_only not in batch.orders:
            batch.orders[judged_only] = np.lexsort((place, -batch.scores, ~present), axis=-1)
        return batch.orders[judged_only]

    def ordered(order, *, mean=False):
        taken = [
            np.take_along_axis(rows, order, axis=1) for rows in (worth, grades, judged, batch.scores, present)
        ]
        by_rank = averaged(taken[0], np.where(taken[4], taken[3], -1)) if mean else taken[0]
        ranked = Ranked(
            by_rank, taken[0], taken[1], taken[2] & taken[4], present.sum(axis=1), pool, some, distinct
        )
        return (LINEAR | OTHERS)[name](ranked, cutoff, **words)

    def broken_by(*keys):
        return ordered(np.lexsort((*keys, -batch.scores, ~present), axis=-1))

    linear = name in LINEAR and words.get("ideal") != "returned"
    shown = np.nan if empty in ("nan", "skip") else float(empty)
    if ties in ("worst", "best"):
        values = broken_by(place, worth if ties == "worst" else -worth)
    elif ties == "input" or not has_ties(batch, judged_only):
        values = ordered(as_given())
    elif linear:
        values = ordered(as_given(), mean=True)
    elif width <= MOST_WAYS:
        ways = np.array([broken_by(place[:, list(way)]) for way in itertools.permutations(range(width))])
        undefined = np.isnan(ways)
        ways[undefined] = shown
        left = ~np.isnan(ways)
        values = ratio(np.where(left, ways, 0.0).sum(axis=0), left.sum(axis=0))
        values[undefined.all(axis=0)] = np.nan
    else:
        raise ValueError(f"orders of {width} documents are too many to list")
    return np.where(np.isnan(values), shown, values)


# ---- measures of several intents ----


class IntentBatch(NamedTuple):
    """Queries as rows, whose documents have a grade for some intents."""

    codes: Array  # int16 (n, width, n_intents): places among the distinct grades
    scores: Array  # int64 (n, width)
    present: Array  # bool (n, width)
    judged: Array  # bool (n, width)
    pool: Array  # int16 (n, width of pools, n_intents)
    distinct: Array  # float64: grades without repetition, the first of them NaN for "none"
    ordered: bool  # whether the first of the pool goes first where gains are equal
    chances: Array  # float64 (n, n_intents): probabilities


def intent_batch(
    offsets, grades, scores, judged, pool, chances, ids
):  # fmt: skip
    """`grades` are masked (n_docs, n_intents); `pool` holds offsets and the like, or is None."""
    codes = np.unique(scores, return_inverse=True)[1].astype(np.int64)
    sides = [grades] if pool is None else [grades, pool[1]]
    distinct = np.unique(np.concatenate([side.compressed() for side in sides]).astype(np.float64))
    documents, *judged_ones = (
        np.where(np.ma.getmaskarray(side), 0, np.searchsorted(distinct, side.data) + 1).astype(np.int16)
        for side in sides
    )
    rows, present = padded(offsets, documents, np.int16(0))
    flags = np.ones(len(scores), np.bool_) if judged is None else judged
    if pool is not None:
        pooled = padded(pool[0], judged_ones[0], np.int16(0))[0]
    else:
        own, query = np.arange(len(scores)), np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        if ids is not None:
            own = np.lexsort((-np.unique(ids, return_inverse=True)[1], query))
        pooled = padded(offsets, documents[own] * flags[own, None], np.int16(0))[0]
    weights = np.ones((len(rows), rows.shape[2])) if chances is None else np.asarray(chances)
    ordered = pool is not None or ids is not None
    scores, flags = padded(offsets, codes, 0)[0], padded(offsets, flags, False)[0]
    return IntentBatch(rows, scores, present, flags, pooled, np.append(np.nan, distinct), ordered, weights)


def of_intents(
    name, batch, cutoff = None, *, ties = "average", empty = 0.0,
    judged_only = False, discount = "log2", denominator = "perfect", **words,
):  # fmt: skip
    """The value of each query, as `oracle.of_intents` has it. Raises `ValueError` for too many orders of tied documents."""
    worth_of = oracle.worth_to_intents(name, words)
    alpha = name.startswith("alpha")
    flat = name == "nDCG_IA" or (alpha and not words.get("alpha", 0.5))
    if not alpha and name != "nDCG_IA":
        discount = "reciprocal" if name != "StRecall" else lambda rank: 1.0

    gains = np.array([0.0, *(float(worth_of(grade)) for grade in batch.distinct[1:].tolist())])
    present = batch.present & batch.judged if judged_only else batch.present
    worth, pool = gains[batch.codes * (batch.judged & present)[..., None]], gains[batch.pool]
    weights = np.where((pool > 0).any(axis=1), 1.0 if alpha or name == "StRecall" else batch.chances, 0.0)
    whole, shown = weights.sum(axis=1), present.sum(axis=1)
    if name == "nDCG_IA":
        best = -np.sort(-pool, axis=1)[:, :cutoff]
        best = (best * discounts(discount, best.shape[1])[:, None]).sum(axis=1)
        weights = np.where(best > 0, ratio(weights, best), 0.0)

    def total(ranked):
        left = np.ones_like(ranked)
        if not flat:
            left[:, 1:] = np.cumprod(1.0 - ranked, axis=1)[:, :-1]
        gains = (ranked * left * weights[:, None, :]).sum(axis=2)[:, :cutoff]
        return (gains * discounts(discount, gains.shape[1])).sum(axis=1)

    def ordered(*keys, mean=False):
        order = np.lexsort((*keys, -batch.scores, ~present), axis=-1)
        ranked = np.where(present[..., None], worth, 0.0)
        ranked = np.take_along_axis(ranked, order[..., None], axis=1)
        if mean:
            scores = np.take_along_axis(np.where(present, batch.scores, -1), order, axis=1)
            ranked = np.stack([averaged(ranked[..., t], scores) for t in range(ranked.shape[2])], axis=2)
        return total(ranked)

    n, width = present.shape
    place = np.broadcast_to(np.arange(width), (n, width))
    if ties in ("worst", "best"):
        gained = (worth * weights[:, None, :]).sum(axis=2)
        values = ordered(place, gained if ties == "worst" else -gained)
    elif ties == "input" or not has_ties(batch, judged_only):
        values = ordered(place)
    elif flat:
        values = ordered(place, mean=True)
    elif width <= MOST_WAYS:
        ways = [ordered(place[:, list(way)]) for way in itertools.permutations(range(width))]
        values = np.mean(ways, axis=0)
    else:
        raise ValueError(f"orders of {width} documents are too many to list")
    if name in ("alpha_nDCG", "nERR_IA"):
        values = ratio(values, total(greedy(pool, weights, batch.ordered, flat, cutoff)))
    elif name in ("nDCG_IA", "StRecall") or (name == "ERR_IA" and denominator == "none"):
        values = ratio(values, whole)
    elif denominator == "none":
        values = values / (1.0 if flat else words.get("alpha", 0.5))
    else:
        top = words.get("max_rel")
        best = 1.0 if flat else words.get("alpha", 0.5) if alpha else 0.5 if top is None else 1 - 2.0**-top
        places = shown if cutoff is None else np.full(n, cutoff)
        weigh = discounts(discount, int(places.max(initial=0)))
        perfect = np.cumsum(weigh * best * (1.0 if flat else (1.0 - best) ** np.arange(len(weigh))))
        values = np.where(places > 0, ratio(values, whole * np.append(0.0, perfect)[places]), 0.0)
    return np.where(whole > 0, values, np.nan if empty in ("nan", "skip") else float(empty))


def greedy(pool, weights, ordered, flat, cutoff):
    """Rank by rank the document of the pool that gains most; of several the first, or the first in an order of what it is worth."""
    if not ordered:
        order = np.lexsort(tuple(-pool[..., t] for t in reversed(range(pool.shape[2]))), axis=-1)
        pool = np.take_along_axis(pool, order[..., None], axis=1)
    left, rows = np.ones_like(weights), np.arange(len(pool))
    used = np.zeros(pool.shape[:2], np.bool_)
    chosen = np.zeros_like(pool[:, :cutoff])
    for rank in range(chosen.shape[1]):
        # gains of equal terms are equal to the last bit, whichever intents they are of
        gains = -np.sort(-(pool * (left * weights)[:, None, :]), axis=2).cumsum(axis=2)[..., -1]
        best = np.argmax(np.where(used, -1.0, gains), axis=1)
        chosen[:, rank] = pool[rows, best]
        used[rows, best] = True
        if not flat:
            left = left * (1.0 - chosen[:, rank])
    return chosen
