"""Every measure in slow, obvious Python: what the numbers of this package mean, and what its tests compare
with.

Nothing here is imported from `fastndcg`, nothing is vectorised, and nothing is clever. A measure is one small
function of a fully ordered list of documents; ties are handled once, for all of them, by listing the orders
of tied documents:

* `ties="input"`: tied documents keep the order in which they were given.
* `ties="worst"`, `"best"`: within a tie the documents that are worth less, or more, come first.
* `ties="average"`: the mean of the value over every order of tied documents, each order equally likely.

`score(name, query, cutoff, **parameters)` is the door. `None` stands for "undefined": the query has no value
of its own and shows the measure's `empty`. `expected_dcg` and `expected_ndcg` are closed forms for the
averaged linear measures, so that lists too long for listing orders can be checked too; a test checks them
against the listing.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

MOST_ORDERS = 50_000
FEW_ORDERS = 24  # up to which they are listed where there is another way


class Document(NamedTuple):
    """One document: its grade, and whether anyone judged it. The grade of an unjudged document means nothing but to infAP."""

    grade: Any
    is_judged: bool = True
    score: Any = 0.0


class Query(NamedTuple):
    """The documents of one query with their scores, and the grades of all judged documents where a pool is known."""

    grades: Sequence[Any]
    scores: Sequence[Any]
    is_judged: Sequence[bool] | None = None
    pool: Sequence[Any] | None = None
    propensity: Sequence[float] | None = None

    def documents(self):
        flags = [True] * len(self.grades) if self.is_judged is None else self.is_judged
        return [
            Document(grade, bool(flag), score)
            for grade, flag, score in zip(self.grades, flags, self.scores, strict=True)
        ]

    def judged_grades(self):
        """Grades of everything that was judged: the pool, or what stands in for it, the judged documents scored."""
        if self.pool is not None:
            return list(self.pool)
        return [document.grade for document in self.documents() if document.is_judged]


# ---- orders of tied documents ----


def tie_groups(scores):
    """Positions of equal scores, groups by falling score, positions within a group as given.

    >>> tie_groups([0.5, 0.9, 0.5])
    [[1], [0, 2]]
    """
    groups = {}
    for i, score in enumerate(scores):
        groups.setdefault(score, []).append(i)
    return [groups[score] for score in sorted(groups, reverse=True)]


def number_of_orders(scores):
    return math.prod(math.factorial(len(group)) for group in tie_groups(scores))


def orders(scores):
    """Every order of the documents that agrees with the scores.

    >>> list(orders([0.5, 0.9, 0.5]))
    [[1, 0, 2], [1, 2, 0]]
    """
    for arranged in itertools.product(*(itertools.permutations(group) for group in tie_groups(scores))):
        yield [i for group in arranged for i in group]


def over_orders(value, worth, query, ties, undefined=0.0, linear=False):
    """A value of a fully ordered list, made a value of tied scores.

    Some orders may have a value and others none (the ideal of what was returned can be 0). Those without one
    count `undefined`, and are left out of the mean where that is NaN. `linear`: each document adds what its
    rank makes of it, so that orders too many to list need not be.
    """
    documents, groups = query.documents(), tie_groups(query.scores)
    if ties == "average" and linear and number_of_orders(query.scores) > FEW_ORDERS:
        return over_turns(value, documents, groups)
    if ties == "average":
        if number_of_orders(query.scores) > MOST_ORDERS:
            raise ValueError(f"{number_of_orders(query.scores)} orders are too many to list")
        values = [value([documents[i] for i in order]) for order in orders(query.scores)]
        if all(one is None for one in values):
            return None
        filled = [undefined if one is None else one for one in values]
        return mean([one for one in filled if not math.isnan(one)])
    if ties == "input":
        return value([documents[i] for group in groups for i in group])
    if ties == "worst":
        return value(
            [documents[i] for group in groups for i in sorted(group, key=lambda i: worth(documents[i]))]
        )
    if ties == "best":
        return value(
            [documents[i] for group in groups for i in sorted(group, key=lambda i: -worth(documents[i]))]
        )
    raise ValueError(f"ties={ties!r}")


def over_turns(value, documents, groups):
    """The mean over all orders of a value to which each document adds what its rank makes of it.

    Then it is enough that each document stands once on each place of its tied group: groups are turned one
    after the other.
    """
    ranked = [documents[i] for group in groups for i in group]
    first = value(ranked)
    if first is None:
        return None
    total, start = Fraction(first), 0
    for group in groups:
        end = start + len(group)
        if any(document[:2] != ranked[start][:2] for document in ranked[start:end]):
            turned = [
                value([*ranked[:start], *ranked[at:end], *ranked[start:at], *ranked[end:]])
                for at in range(start, end)
            ]
            total += sum(map(Fraction, turned)) / len(group) - Fraction(first)
        start = end
    return float(total)


def bounds_over_orders(value, query):
    """Smallest and largest value over all orders: what "worst" and "best" must be for any measure."""
    documents = query.documents()
    values = [
        one for order in orders(query.scores) if (one := value([documents[i] for i in order])) is not None
    ]
    return (min(values), max(values)) if values else None


def mean(values):
    """The mean without rounding on the way."""
    return float(sum(map(Fraction, values)) / len(values))


# ---- gain and discount ----


def gain_function(gain="linear", rel=None, gains=None):
    """What a document is worth. An unjudged one is worth nothing; with `rel`, one of a lower grade too.

    `gains` is ir_measures' spelling: those grades gain what is listed, all others their grade.
    """

    def of_grade(grade):
        if gain == "binary":
            return 1.0 if grade >= (1 if rel is None else rel) else 0.0
        if rel is not None and grade < rel:
            return 0.0
        if gains is not None:
            return gains[grade] if grade in gains else float(grade)
        if gain == "linear":
            return float(grade)
        if gain == "exp2":
            return 2.0 ** float(grade) - 1.0
        if isinstance(gain, Mapping):
            return float(gain[grade]) if grade in gain or grade != 0 else 0.0
        if isinstance(gain, Sequence):
            if grade != int(grade) or grade < 0:
                raise ValueError(f"grade {grade} is not a position of {gain}")
            return float(gain[int(grade)])
        return float(gain(grade))

    return lambda document: of_grade(document.grade) if document.is_judged else 0.0


def discount_function(discount="log2"):
    """What a gain is worth at a rank, ranks from 1."""
    if discount == "log2":
        return lambda rank: 1.0 / math.log2(rank + 1)
    if discount == "jarvelin":
        return lambda rank: 1.0 if rank < 2 else 1.0 / math.log2(rank)
    if discount == "reciprocal":
        return lambda rank: 1.0 / rank
    if discount == "ln":
        return lambda rank: 1.0 / math.log(rank + math.e)
    if isinstance(discount, int | float):
        return lambda rank: math.log(discount) / math.log(rank + 1)
    if isinstance(discount, Sequence):
        return lambda rank: float(discount[rank - 1])
    return lambda rank: float(discount(rank))


def discounted_sum(gains, discount, cutoff):
    """The sum over ranks of gain times discount, correctly rounded for the rounded discounts."""
    return math.fsum(gain * discount(rank) for rank, gain in enumerate(gains[:cutoff], start=1))


def highest_gain(gain, rel, gains, seen):
    """The gain of the top grade: of the scale where the gain lists one, else the best that the query has."""
    if gain == "binary":
        return 1.0
    if gains is None and isinstance(gain, Mapping):
        return max(float(value) for grade, value in gain.items() if rel is None or grade >= rel)
    if gains is None and isinstance(gain, Sequence) and not isinstance(gain, str):
        return max(float(value) for grade, value in enumerate(gain) if rel is None or grade >= rel)
    return max(seen, default=0.0)


def ideal_gains(ranked, query, cutoff, ideal, gain="linear", rel=None, gains=None):
    """Gains of the ideal ranking, best first.

    "judged", "judged_uncut": of all judged documents; "scored": of the documents scored; "returned": of the
    first `cutoff` ranks only; "full": `cutoff` documents of the top grade (without a cutoff as many as were
    scored); "judged_returned": as many judged documents as were returned.
    """
    worth = gain_function(gain, rel, gains)
    judged = [worth(Document(grade)) for grade in query.judged_grades()]
    scored = [worth(document) for document in ranked]
    if ideal in ("judged", "judged_uncut"):
        chosen = judged
    elif ideal == "judged_returned":
        chosen = sorted(judged, reverse=True)[: len(ranked)]
    elif ideal == "scored":
        chosen = scored
    elif ideal == "returned":
        chosen = scored[:cutoff]
    elif ideal == "full":
        chosen = [highest_gain(gain, rel, gains, judged)] * (len(ranked) if cutoff is None else cutoff)
    else:
        raise ValueError(f"ideal={ideal!r}")
    return sorted(chosen, reverse=True)


# ---- measures: each a function of a fully ordered list ----


def dcg(ranked, query, cutoff, *, gain, discount, rel, gains):
    """Sum over ranks i <= k of gain(grade_i) * discount(i). Undefined where the query has no document at all."""
    if not query.grades and not query.judged_grades():
        return None
    worth = gain_function(gain, rel, gains)
    return discounted_sum([worth(document) for document in ranked], discount_function(discount), cutoff)


def idcg(ranked, query, cutoff, *, gain, discount, rel, gains, ideal):
    """The same sum over the ideal ranking, which "judged_uncut" does not cut. Undefined where the query has no document."""
    if not query.grades and not query.judged_grades():
        return None
    shown = None if ideal == "judged_uncut" else cutoff
    return discounted_sum(
        ideal_gains(ranked, query, cutoff, ideal, gain, rel, gains), discount_function(discount), shown
    )


def ndcg(ranked, query, cutoff, *, gain, discount, rel, gains, ideal, floor="zero"):
    """DCG / IDCG. Undefined where IDCG is 0. With `floor` "worst" both less the DCG of all judged documents by
    rising gain; undefined where they are equal.
    """
    if floor == "worst":
        rising = ideal_gains(ranked, query, cutoff, ideal, gain, rel, gains)[::-1]
        low = discounted_sum(rising, discount_function(discount), cutoff)
        high = discounted_sum(rising[::-1], discount_function(discount), cutoff)
        here = dcg(ranked, query, cutoff, gain=gain, discount=discount, rel=rel, gains=gains)
        return None if high == low or here is None else (here - low) / (high - low)
    best = idcg(ranked, query, cutoff, gain=gain, discount=discount, rel=rel, gains=gains, ideal=ideal)
    got = dcg(ranked, query, cutoff, gain=gain, discount=discount, rel=rel, gains=gains)
    return None if not best or got is None else got / best


def cg(ranked, query, cutoff, *, gain, rel, gains):
    """Sum over ranks i <= k of gain(grade_i). Undefined where the query has no document at all."""
    return dcg(ranked, query, cutoff, gain=gain, discount=lambda rank: 1.0, rel=rel, gains=gains)


def num_ret(ranked, query, cutoff, *, rel):
    """Documents among the first k; with `rel`, only the judged ones of at least that grade."""
    return float(
        sum(
            1 for document in ranked[:cutoff] if rel is None or (document.is_judged and document.grade >= rel)
        )
    )


# Measures of binary relevance. `relevant` is grade >= rel of a judged document; R is the number of relevant
# documents among all judged ones, retrieved or not. Where a definition divides by 0 the query is undefined.


def is_relevant(document, rel):
    return document.is_judged and document.grade >= rel


def num_rel(ranked, query, cutoff=None, *, rel=1):
    """R: trec_eval's num_rel."""
    return float(sum(1 for grade in query.judged_grades() if grade >= rel))


def number_of_relevant(ranked, query, cutoff=None, *, rel=1):
    """R; a query without any shows `empty`, which is 0 as long as nothing else is asked for."""
    return num_rel(ranked, query, rel=rel) or None


def number_returned(ranked, query, cutoff, *, rel):
    return num_ret(ranked, query, cutoff, rel=rel) if has_documents(query) else None


def has_documents(query):
    return bool(query.grades or query.judged_grades())


def precision(ranked, query, cutoff, *, rel=1, relative=False, denominator="cutoff", score_above=None):
    """Relevant documents among the first k over k, also where the list is shorter (trec_eval's P); without k
    over the list. "returned" divides by the list where it is shorter; "n_relevant", as `relative`, by R where
    that is less. Undefined where the query has no document at all, or where that is 0.
    """
    shown = len(ranked) if cutoff is None else cutoff
    if denominator == "returned":
        shown = min(shown, len(ranked))
    if relative or denominator == "n_relevant":
        shown = min(shown, int(num_rel(ranked, query, rel=rel)))
    found = sum(relevant_found(ranked[:cutoff], rel, score_above))
    return found / shown if shown and has_documents(query) else None


def relevant_found(ranked, rel, score_above):
    """Whether each document is relevant, and its score above the threshold."""
    return [
        is_relevant(document, rel) and (score_above is None or document.score > score_above)
        for document in ranked
    ]


def recall(ranked, query, cutoff, *, rel=1, denominator="n_relevant", score_above=None):
    """Relevant documents among the first k over R, or, by "cutoff", over min(R, k)."""
    relevant = num_rel(ranked, query, rel=rel)
    if not relevant:
        return None
    found = sum(relevant_found(ranked[:cutoff], rel, score_above))
    return found / (min(relevant, cutoff) if denominator == "cutoff" and cutoff else relevant)


def f_measure(ranked, query, cutoff, *, rel=1, beta=1.0):
    """(1 + b^2) P R / (b^2 P + R), which is (1 + b^2) hits / (b^2 R + k); 0 without hits. Undefined where R is 0."""
    p, r = precision(ranked, query, cutoff, rel=rel), recall(ranked, query, cutoff, rel=rel)
    if r is None:
        return None
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p and r else 0.0


def set_average_precision(ranked, query, cutoff, *, rel=1):
    """Precision times recall of everything returned; 0 where nothing was. Undefined where R is 0."""
    p, r = precision(ranked, query, None, rel=rel), recall(ranked, query, None, rel=rel)
    return None if r is None else (p or 0.0) * r


def r_precision(ranked, query, cutoff=None, *, rel=1):
    """Precision at rank R."""
    relevant = int(num_rel(ranked, query, rel=rel))
    return precision(ranked, query, relevant, rel=rel) if relevant else None


def success(ranked, query, cutoff, *, rel=1):
    """1 where any of the first k is relevant. Undefined without a relevant document anywhere."""
    if not num_rel(ranked, query, rel=rel):
        return None
    return 1.0 if any(is_relevant(document, rel) for document in ranked[:cutoff]) else 0.0


def reciprocal_rank(ranked, query, cutoff, *, rel=1, of="first", score_above=None):
    """1 over the rank of the first relevant document, 0 where none is among the first k. `of` "best": of the
    first one that has the best grade of all relevant documents of the list.
    """
    if not num_rel(ranked, query, rel=rel):
        return None
    found = relevant_found(ranked, rel, score_above)
    if of == "best":
        best = max((one.grade for one, is_found in zip(ranked, found, strict=True) if is_found), default=0)
        found = [is_found and one.grade == best for one, is_found in zip(ranked, found, strict=True)]
    return next((1.0 / rank for rank, is_found in enumerate(found[:cutoff], start=1) if is_found), 0.0)


def average_precision(ranked, query, cutoff, *, rel=1, denominator="n_relevant", score_above=None):
    """Sum of precision@i over the ranks i <= k of relevant documents, over R ("n_relevant", trec_eval's map
    and map_cut), over min(R, k) ("cutoff", LightGBM's and most recommender libraries'), over min(R, k, n)
    ("returned", LensKit's), over the relevant documents found ("hits", torchmetrics'; 0 without any) or over
    k ("k"). "none": the mean of P@1 to P@k (Elliot's).
    """
    relevant = num_rel(ranked, query, rel=rel)
    if not relevant:
        return None
    found = relevant_found(ranked[:cutoff], rel, score_above)
    if denominator == "none":
        return math.fsum(sum(found[:i]) / i for i in range(1, cutoff + 1)) / cutoff
    hits = [rank for rank, is_found in enumerate(found, start=1) if is_found]
    total = math.fsum(number / rank for number, rank in enumerate(hits, start=1))
    k = len(ranked) if cutoff is None else cutoff
    over = {
        "n_relevant": relevant,
        "cutoff": min(relevant, cutoff or relevant),
        "returned": min(relevant, k, len(ranked)),
        "hits": len(hits) or 1,
        "k": k,
    }[denominator]
    return total / over if over else None


def interpolated_precision(ranked, query, cutoff, *, recall, rel=1, rounding="up"):
    """The largest precision at any rank of at least that recall; trec_eval asks for int(recall * R + 0.9)
    documents up to 9, and for lround(recall * R) since 10 ("nearest").
    """
    relevant = num_rel(ranked, query, rel=rel)
    if not relevant:
        return None
    wanted = int(recall * relevant + 0.9)
    if rounding == "nearest":
        wanted = int(Decimal(recall * relevant).to_integral_value(ROUND_HALF_UP))
    hits = [rank for rank, document in enumerate(ranked[:cutoff], start=1) if is_relevant(document, rel)]
    return max((found / rank for found, rank in enumerate(hits, start=1) if found >= wanted), default=0.0)


def binary_preference(ranked, query, cutoff, *, rel=1):
    """bpref as trec_eval has it: 1/R sum over relevant of 1 - min(nonrelevant above, R) / min(R, N)."""
    relevant = int(num_rel(ranked, query, rel=rel))
    nonrelevant = sum(1 for grade in query.judged_grades() if 0 <= grade < rel)
    if not relevant:
        return None
    total, above = 0.0, 0
    for document in ranked[:cutoff]:
        if is_relevant(document, rel):
            total += 1.0 - (min(above, relevant) / min(nonrelevant, relevant) if above else 0.0)
        elif document.is_judged and document.grade >= 0:
            above += 1
    return total / relevant


def inferred_ap(ranked, query, cutoff, *, rel=1):
    """infAP as trec_eval has it: precision at a rank is estimated from the judged part of the pool above it.
    A negative grade means, as in trec_eval's files, that the document was in the pool and not judged, whether
    `is_judged` says so too or not.
    """
    relevant, epsilon = num_rel(ranked, query, rel=rel), 0.00001
    if not relevant:
        return None
    total, found, missed, unjudged = 0.0, 0, 0, 0
    for rank, document in enumerate(ranked[:cutoff], start=1):
        if not document.is_judged and (document.grade >= 0 or rel < 0):
            continue
        if document.grade < min(rel, 0):
            unjudged += 1
        elif document.grade < rel:
            missed += 1
        else:
            if rank == 1:
                total += 1.0
            else:
                in_pool = (found + missed + unjudged) / (rank - 1)
                share = (found + epsilon) / (found + missed + 2 * epsilon)
                total += 1.0 / rank + (rank - 1) / rank * in_pool * share
            found += 1
    return total / relevant


# Pairs of documents.


def area_under_roc(ranked, query, cutoff, *, rel=1, pairs="relevant", max_fp=None):
    """Share of the pairs of a relevant document and another one whose relevant one comes first; "graded": of all
    pairs of different grades. With a number `max_fp` only the first so many others have pairs, and as many with
    each relevant document of the query; with a share only that share of the others, corrected as McClish does.
    """
    if pairs == "graded":
        grades = [document.grade if document.is_judged else 0 for document in ranked]
        both = [(one, other) for one, other in itertools.combinations(grades, 2) if one != other]
        return sum(one > other for one, other in both) / len(both) if both else None
    hits = [is_relevant(document, rel) for document in ranked[:cutoff]]
    above = [hits[:rank].count(False) for rank, hit in enumerate(hits) if hit]
    others = hits.count(False)
    if max_fp is not None and max_fp >= 1:
        relevant = num_rel(ranked, query, rel=rel)
        return math.fsum(max(max_fp - n, 0) for n in above) / (max_fp * relevant) if relevant else None
    if not above or not others:
        return None
    if max_fp is None:
        return math.fsum(others - n for n in above) / (len(above) * others)
    return mcclish(math.fsum(max(max_fp * others - n, 0) for n in above) / (len(above) * others), max_fp)


def mcclish(partial, max_fp):
    """A partial area as scikit-learn shows it: 1/2 for one of chance, 1 for the largest."""
    least, most = max_fp**2 / 2, max_fp
    return (1 + (partial - least) / (most - least)) / 2


def area_under_lines(query, cutoff, *, rel=1, max_fp):
    """The corrected area under a curve with a straight line for each tied group, for each order of tied documents:
    they differ only in which documents are within the cutoff.
    """
    values = []
    documents = query.documents()
    for order in orders(query.scores):
        shown = order[:cutoff]
        hits = [i for i in shown if is_relevant(documents[i], rel)]
        others = [i for i in shown if not is_relevant(documents[i], rel)]
        if not hits or not others:
            values.append(None)
            continue
        bound, area, x, y = max_fp * len(others), 0.0, 0.0, 0.0
        for score in sorted({query.scores[i] for i in shown}, reverse=True):
            wide = sum(query.scores[i] == score for i in others)
            high = sum(query.scores[i] == score for i in hits)
            step = min(float(wide), bound - x)
            if wide and step > 0:
                area += step * (y + high * step / wide / 2)
            x, y = x + wide, y + high
        values.append(mcclish(area / (len(hits) * len(others)), max_fp))
    return values


# Measures of a user who reads down the list.


def expected_reciprocal_rank(ranked, query, cutoff, *, max_rel=4, stop="exp2"):
    """Sum over ranks of 1/i times the chance to stop exactly there; stopping probability (2^grade - 1) /
    2^max_rel, or `stop` of the grade. Undefined, as are the other measures of a user, where the query has no
    document at all.
    """
    total, reading = 0.0, 1.0
    for rank, document in enumerate(ranked[:cutoff], start=1):
        chance = chance_to_stop(document, stop, max_rel)
        total += reading * chance / rank
        reading *= 1.0 - chance
    return total if has_documents(query) else None


def chance_to_stop(document, stop, max_rel=4):
    if stop != "exp2":
        return gain_function(stop)(document)
    return (2.0 ** max(document.grade, 0) - 1.0) / 2.0**max_rel if document.is_judged else 0.0


def probability_found(ranked, query, cutoff, *, decay=0.85, stop="linear"):
    """Sum over ranks of the chance to stop there, where the user goes on with probability `decay` if not stopped."""
    total, looking = 0.0, 1.0
    for document in ranked[:cutoff]:
        chance = chance_to_stop(document, stop)
        total += looking * chance
        looking *= (1.0 - chance) * decay
    return total if has_documents(query) else None


def rank_biased_precision(ranked, query, cutoff, *, p=0.8, rel=1):
    """(1 - p) sum over relevant of p^(i - 1)."""
    total = math.fsum(
        p ** (i - 1) for i, document in enumerate(ranked[:cutoff], start=1) if is_relevant(document, rel)
    )
    return (1 - p) * total if has_documents(query) else None


def rank_biased_residual(ranked, query, cutoff, *, p=0.8):
    """What RBP could still gain: the weight of the unjudged ranks and of everything beyond the list."""
    shown = ranked[:cutoff]
    unjudged = math.fsum(
        p ** (rank - 1) for rank, document in enumerate(shown, start=1) if not document.is_judged
    )
    return (1 - p) * unjudged + p ** len(shown) if has_documents(query) else None


def judged_share(ranked, query, cutoff):
    """Judged documents among the first k, over the documents there (ir_measures' Judged)."""
    shown = ranked[:cutoff]
    return sum(document.is_judged for document in shown) / len(shown) if shown else None


def scaled_dcg(ranked, query, cutoff, *, max_rel, min_rel=0, discount="log2"):
    """DCG over that of k documents of the highest grade of the scale (ir_measures' SDCG); without k of as many as returned."""
    places = len(ranked) if cutoff is None else cutoff
    if not places or not has_documents(query):
        return None
    worth = [scaled(document, max_rel, min_rel) for document in ranked]
    weigh = discount_function(discount)
    return discounted_sum(worth, weigh, cutoff) / discounted_sum([1.0] * places, weigh, cutoff)


def scaled(document, max_rel, min_rel):
    """A grade as a part of its scale."""
    if not document.is_judged:
        return 0.0
    return (min(max(document.grade, min_rel), max_rel) - min_rel) / (max_rel - min_rel)


# ---- the door ----

GRADED = {
    "nDCG": (ndcg, ("gain", "discount", "rel", "gains", "ideal", "floor")),
    "DCG": (dcg, ("gain", "discount", "rel", "gains")),
    "IDCG": (idcg, ("gain", "discount", "rel", "gains", "ideal")),
    "CG": (cg, ("gain", "rel", "gains")),
    "NumRet": (number_returned, ("rel",)),
}
BINARY = {
    "P": precision, "R": recall, "F": f_measure, "Rprec": r_precision, "Success": success, "RR": reciprocal_rank,
    "AP": average_precision, "AUC": area_under_roc, "IPrec": interpolated_precision, "Bpref": binary_preference, "infAP": inferred_ap,
    "ERR": expected_reciprocal_rank, "PFound": probability_found, "RBP": rank_biased_precision, "RBPresidual": rank_biased_residual,
    "Judged": judged_share, "NumRel": number_of_relevant, "SDCG": scaled_dcg,
    "SetP": precision, "SetR": recall, "SetF": f_measure, "SetAP": set_average_precision,
}  # fmt: skip
# each document adds to these what its rank makes of it, whatever stands on the others
LINEAR = (
    "nDCG", "DCG", "IDCG", "CG", "SDCG", "NumRet", "NumRel", "P", "R", "F", "Rprec", "RBP", "RBPresidual", "Judged",
    "SetP", "SetR", "SetF", "SetAP",
)  # fmt: skip
_DEFAULTS = {
    "gain": "linear",
    "discount": "log2",
    "rel": None,
    "gains": None,
    "ideal": "judged",
    "floor": "zero",
}


def better_of_binary(name, rel=1, **words):
    """What makes a document better for a measure: order within ties by it, and the measure is smallest or largest."""
    if name == "Judged":
        return lambda document: float(document.is_judged)
    if name == "RBPresidual":
        return lambda document: float(not document.is_judged)
    if name == "SDCG":
        return lambda document: scaled(document, words["max_rel"], words.get("min_rel", 0))
    if name in ("ERR", "PFound"):
        stop = words.get("stop", "exp2" if name == "ERR" else "linear")
        return lambda document: chance_to_stop(document, stop, words.get("max_rel", 4))
    if words.get("of") == "best":
        return lambda document: document.grade if is_relevant(document, rel) else -math.inf
    if words.get("pairs") == "graded":
        return lambda document: float(document.grade) if document.is_judged else 0.0
    return lambda document: float(is_relevant(document, rel))


def with_assumed_grade(query, grade):
    """The same query, had someone judged every document that was not judged, and given it this grade."""
    documents = query.documents()
    pool = query.judged_grades() + [grade for document in documents if not document.is_judged]
    return query._replace(
        grades=[document.grade if document.is_judged else grade for document in documents],
        is_judged=None,
        pool=pool,
    )


def without_unjudged(query):
    """The judged documents of the query alone."""
    kept = [i for i, document in enumerate(query.documents()) if document.is_judged]
    return query._replace(
        grades=[query.grades[i] for i in kept],
        scores=[query.scores[i] for i in kept],
        is_judged=None,
        pool=query.judged_grades(),
    )


def score(
    name, query, cutoff=None, *, ties="average", judged_only=False, empty=0.0, unjudged=None, **parameters
):
    """The value of one query; NaN where it is undefined and `empty` is "nan" or "skip".

    `judged_only` drops the unjudged documents from the ranked list; `unjudged` gives them a grade. `ips` and
    `clip` are those of `weighted_by_propensity`.
    """
    if parameters.get("ips"):
        return weighted_by_propensity(
            name, query, query.propensity or [], cutoff, ties=ties, judged_only=judged_only, empty=empty,
            unjudged=unjudged, **parameters,
        )  # fmt: skip
    parameters = {key: value for key, value in parameters.items() if key not in ("ips", "clip")}
    if unjudged is not None:
        query = with_assumed_grade(query, unjudged)
    shown_empty = math.nan if empty in ("nan", "skip") else float(empty)
    if name in GRADED:
        definition, accepted = GRADED[name]
        arguments = {parameter: parameters.pop(parameter, _DEFAULTS[parameter]) for parameter in accepted}
        if parameters:
            raise TypeError(f"{name} has no parameters {list(parameters)}")
        rel = arguments["rel"]
        worth = gain_function(arguments.get("gain", "linear"), rel, arguments.get("gains"))
        if name == "NumRet":
            worth = (
                (lambda document: float(is_relevant(document, rel)))
                if rel is not None
                else (lambda document: 1.0)
            )
    else:
        definition, arguments = BINARY[name], parameters
        worth = better_of_binary(name, **parameters)

    def of_order(ranked):
        return definition(ranked, query, cutoff, **arguments)

    listed = without_unjudged(query) if judged_only else query
    if name == "AUC" and ties == "average" and 0 < (parameters.get("max_fp") or 0) < 1:
        lines = area_under_lines(listed, cutoff, rel=parameters.get("rel", 1), max_fp=parameters["max_fp"])
        filled = [shown_empty if one is None else one for one in lines]
        some = any(one is not None for one in lines)
        return mean([one for one in filled if not math.isnan(one)]) if some else shown_empty
    linear = name in LINEAR and arguments.get("ideal") != "returned"
    value = over_orders(of_order, worth, listed, ties, undefined=shown_empty, linear=linear)
    return shown_empty if value is None else value


def weighted_mean(values, weights, empty=0.0):
    """The mean of a measure over queries, rounded once; empty="skip" leaves out those without a value."""
    rows = list(zip(values, [1.0] * len(values) if weights is None else weights, strict=True))
    if empty == "skip":
        rows = [(value, weight) for value, weight in rows if not math.isnan(value)]
    whole = sum((Fraction(weight) for _, weight in rows), Fraction(0))
    if not whole or any(math.isnan(value) for value, _ in rows):
        return math.nan
    return float(sum((Fraction(value) * Fraction(weight) for value, weight in rows), Fraction(0)) / whole)


# ---- click logs ----


def weighted_by_propensity(
    name,
    query,
    propensity,
    cutoff=None,
    *,
    ips,
    clip=0.0,
    ties="average",
    judged_only=False,
    unjudged=None,
    empty=0.0,
    gain="linear",
    gains=None,
    rel=None,
    discount="log2",
):
    """DCG, or CG, of gains over max(propensity, clip); "snips" divides by the sum of all of them, returned first or not."""
    shown_empty = math.nan if empty in ("nan", "skip") else float(empty)
    worth = gain_function(gain, rel, gains)
    documents = query.documents()
    if unjudged is not None:
        documents = [one if one.is_judged else Document(unjudged) for one in documents]
    weighed = [worth(one) / max(chance, clip) for one, chance in zip(documents, propensity, strict=True)]
    if not has_documents(query) or (ips == "snips" and not sum(weighed)):
        return shown_empty
    weigh = discount_function((lambda rank: 1.0) if name == "CG" else discount)

    def value(order):
        return discounted_sum(
            [weighed[i] for i in order if documents[i].is_judged or not judged_only], weigh, cutoff
        )

    groups = tie_groups(query.scores)
    if ties == "average":
        found = mean([value(order) for order in orders(query.scores)])
    elif ties == "input":
        found = value([i for group in groups for i in group])
    else:
        turn = 1 if ties == "worst" else -1
        found = value([i for group in groups for i in sorted(group, key=lambda i: turn * weighed[i])])
    return found / math.fsum(weighed) if ips == "snips" else found


# ---- measures of several intents: a document has a grade for some of the things that its query may mean ----


class IntentQuery(NamedTuple):
    """Documents as mappings from intent to grade. `pool` holds all judged ones; of those that gain equally
    the ideal takes the one that comes first in it. Without a pool the judged documents are those scored.
    """

    documents: Sequence[Mapping[int, Any]]
    scores: Sequence[Any]
    is_judged: Sequence[bool] | None = None
    pool: Sequence[Mapping[int, Any]] | None = None
    probabilities: Sequence[float] | None = None

    def ranked(self, judged_only):
        """Documents with their scores; one that nobody judged has no grades, or is dropped."""
        flags = [True] * len(self.documents) if self.is_judged is None else self.is_judged
        rows = zip(self.documents, self.scores, flags, strict=True)
        return [
            (document if flag else {}, score) for document, score, flag in rows if flag or not judged_only
        ]

    def judged(self):
        if self.pool is not None:
            return list(self.pool)
        flags = [True] * len(self.documents) if self.is_judged is None else self.is_judged
        return [document for document, flag in zip(self.documents, flags, strict=True) if flag]

    def probability(self, intent):
        return Fraction(1) if self.probabilities is None else Fraction(self.probabilities[intent])


def cascade(ranked, weights, cutoff, discount):
    """Sum over ranks i <= k of discount(i) * sum over intents of weight * what is left * worth; a document leaves 1 - worth."""
    left, gains = dict(weights), []
    for document in ranked[:cutoff]:
        gains.append(sum((left[t] * worth for t, worth in document.items() if t in left), Fraction(0)))
        for t, worth in document.items():
            if t in left:
                left[t] *= 1 - worth
    return discounted_sum([float(gain) for gain in gains], discount_function(discount), cutoff)


def greedy_ideal(pool, weights, depth):
    """Rank by rank the document that gains most there; of several the first of the pool. Gains are exact fractions."""
    left, rest, chosen = dict(weights), list(pool), []
    while rest and len(chosen) < depth:
        gains = [sum((left[t] * worth for t, worth in one.items() if t in left), Fraction(0)) for one in rest]
        document = rest.pop(gains.index(max(gains)))
        chosen.append(document)
        for t, worth in document.items():
            if t in left:
                left[t] *= 1 - worth
    return chosen


def worth_to_intents(name, words):
    """What a grade is worth to an intent: its gain, or the share of what is left that it takes."""
    rel, max_rel, alpha = words.get("rel"), words.get("max_rel"), words.get("alpha", 0.5)
    if name == "nDCG_IA":
        worth = gain_function(words.get("gain", "linear"), rel)
        return lambda grade: worth(Document(grade))
    if max_rel is not None:
        return lambda grade: Fraction((2.0 ** max(grade, 0) - 1.0) / 2.0**max_rel)
    taken = {"alpha": Fraction(alpha or 1), "StRec": Fraction(1)}.get(name[:5], Fraction(1, 2))
    return lambda grade: taken if grade >= (1 if rel is None else rel) else Fraction(0)


def of_intents(
    name,
    query,
    cutoff=None,
    *,
    ties="average",
    empty=0.0,
    judged_only=False,
    alpha=0.5,
    rel=None,
    max_rel=None,
    discount="log2",
    gain="linear",
    denominator="perfect",
):
    """alpha_DCG, alpha_nDCG, ERR_IA, nERR_IA, nDCG_IA and StRecall of one query.

    Only intents with a relevant document in the pool count; without one the query is undefined.
    """
    rows = query.ranked(judged_only)
    stop = Fraction(alpha if name.startswith("alpha") else 1 if name == "StRecall" else 0.5)
    flat = name.startswith("alpha") and not alpha  # then nothing is taken, and what is left stays whole
    worth_of = worth_to_intents(name, {"alpha": alpha, "rel": rel, "max_rel": max_rel, "gain": gain})
    pool = [{t: worth_of(grade) for t, grade in one.items()} for one in query.judged()]
    listed = [{t: worth_of(grade) for t, grade in one.items()} for one, _ in rows]
    shown_empty = math.nan if empty in ("nan", "skip") else float(empty)
    weighed = name in ("ERR_IA", "nERR_IA", "nDCG_IA")
    weights = {
        t: query.probability(t) if weighed else Fraction(1)
        for t in sorted({t for one in pool for t, gained in one.items() if gained > 0})
    }
    whole = sum(weights.values(), Fraction(0))
    if not whole:
        return shown_empty
    if name == "nDCG_IA":
        return _expected_ndcg_of_intents(
            listed, [score for _, score in rows], pool, weights, cutoff, discount, ties
        )
    if name in ("ERR_IA", "nERR_IA"):
        discount = "reciprocal"
    if name == "StRecall":
        discount = [1.0] * max(len(rows), len(pool))
    total = cascade if not flat else summed_gains

    def value(order):
        return total([listed[i] for i in order], weights, cutoff, discount)

    if ties == "average":
        got = mean([value(order) for order in orders([score for _, score in rows])])
    else:
        got = value([i for group in tie_groups([score for _, score in rows]) for i in group])
    if name in ("alpha_nDCG", "nERR_IA"):
        if flat:
            ideal = sorted(pool, key=lambda one: -sum(worth for t, worth in one.items() if t in weights))
        else:
            ideal = greedy_ideal(pool, weights, len(pool))
        return got / total(ideal, weights, cutoff, discount)
    if name == "StRecall":
        return got / float(whole)
    if denominator == "none":
        return got / float(whole if name == "ERR_IA" else 1 if flat else stop)
    best = Fraction(1) if flat else stop if max_rel is None else Fraction((2.0**max_rel - 1.0) / 2.0**max_rel)
    places = len(rows) if cutoff is None else cutoff
    return got / total([dict.fromkeys(weights, best)] * places, weights, cutoff, discount) if places else 0.0


def summed_gains(ranked, weights, cutoff, discount):
    """`cascade` where a document takes nothing from those below it."""
    gains = [float(sum(weights[t] * worth for t, worth in one.items() if t in weights)) for one in ranked]
    return discounted_sum(gains, discount_function(discount), cutoff)


def _expected_ndcg_of_intents(listed, scores, pool, weights, cutoff, discount, ties):
    """Mean of nDCG over the intents; each document's share in it decides which order is worst, and which best."""
    weigh = discount_function(discount)
    best = {
        t: discounted_sum(sorted((one.get(t, 0.0) for one in pool), reverse=True), weigh, cutoff)
        for t in weights
    }

    def value(order):
        total = math.fsum(
            float(weights[t])
            * discounted_sum([listed[i].get(t, 0.0) for i in order], weigh, cutoff)
            / best[t]
            for t in weights
        )
        return total / float(sum(weights.values()))

    if ties == "input":
        return value([i for group in tie_groups(scores) for i in group])
    values = [value(order) for order in orders(scores)]
    return {"average": mean, "worst": min, "best": max}[ties](values)


# ---- closed forms, for lists whose orders are too many to list ----


def expected_gains(query, worth):
    """The expected gain at each rank: the mean gain of the tie group that the rank falls into."""
    documents, expected = query.documents(), []
    by_score = {}
    for i, value in enumerate(query.scores):
        by_score.setdefault(value, []).append(i)
    for value in sorted(by_score, reverse=True):
        group = by_score[value]
        expected += [mean([worth(documents[i]) for i in group])] * len(group)
    return expected


def expected_dcg(query, cutoff=None, *, gain="linear", discount="log2", rel=None):
    """The expectation is linear, so the expected DCG is the DCG of the expected gains (McSherry and Najork, 2008)."""
    return discounted_sum(
        expected_gains(query, gain_function(gain, rel)), discount_function(discount), cutoff
    )


def expected_ndcg(query, cutoff=None, *, gain="linear", discount="log2", rel=None, ideal="judged"):
    """For every `ideal` but "returned", whose IDCG differs between orders."""
    best = discounted_sum(
        ideal_gains(query.documents(), query, cutoff, ideal, gain, rel), discount_function(discount), cutoff
    )
    return expected_dcg(query, cutoff, gain=gain, discount=discount, rel=rel) / best if best else None


# ---- few labels and many: PPI++ ----


def prediction_powered(y, f, more):
    """Mean, weight and standard error by equations of Angelopoulos, Duchi and Zrnic, with the weight from 0 to 1; the error of
    the regression of double sampling.
    """
    n, m = len(y), len(more)
    mean_y, mean_f, mean_more = math.fsum(y) / n, math.fsum(f) / n, math.fsum(more) / m
    every = [*f, *more]
    middle = math.fsum(every) / len(every)
    variance = math.fsum((each - middle) ** 2 for each in every) / (len(every) - 1)
    square = math.fsum((each - mean_f) ** 2 for each in f)
    together = math.fsum((one - mean_y) * (other - mean_f) for one, other in zip(y, f, strict=True)) / n
    if (
        max(abs(each - mean_f) for each in f) <= 2.0**-44 * max(map(abs, every)) or not square
    ):  # equal up to rounding
        return mean_y, 0.0, math.nan
    weight = min(max(together / ((1 + n / m) * variance), 0.0), 1.0)
    rest = [one - weight * other for one, other in zip(y, f, strict=True)]
    mean_rest = math.fsum(rest) / n
    of_rest = math.fsum((each - mean_rest) ** 2 for each in rest) / (n - 2) / n
    of_rest *= 1 + (mean_more - mean_f) ** 2 / square
    of_more = math.fsum((each - mean_more) ** 2 for each in more) / (m - 1) / m
    return mean_y + weight * (mean_more - mean_f), weight, math.sqrt(of_rest + weight**2 * of_more)


# ---- propensities of ranks ----


def propensities(rows, n_ranks):
    """Of each rank, from rows of a group, a rank, how often it was shown and clicked: p by steps that never lower the
    likelihood (Hunter, MM algorithms, 2004), as a share of the first; None where the steps do not settle.
    """
    p = [1.0] * n_ranks
    groups = {row[0] for row in rows}
    settled = p
    for step in range(3000):
        if step == 2000:
            settled = p
        clicks, parts = [0.0] * n_ranks, [0.0] * n_ranks
        for group in groups:
            own = [row for row in rows if row[0] == group]
            whole = sum(shown * p[rank] for _, rank, shown, _ in own)
            clicked = sum(row[3] for row in own)
            for _, rank, shown, c in own:
                clicks[rank] += c
                parts[rank] += clicked * shown / whole if whole else 0.0
        p = [c / part if part else 0.0 for c, part in zip(clicks, parts, strict=True)]
        if not p[0]:
            return [None] * n_ranks
        p = [each / p[0] for each in p]
    return [
        new if abs(new - old) <= 1e-7 * max(new, 1e-9) and new < 1e6 else None
        for new, old in zip(p, settled, strict=True)
    ]
