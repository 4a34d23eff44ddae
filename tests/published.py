"""Published formulas of the tools that do not install with pip: Java, server tools, papers. Slow, obvious,
and each on its own.

Each takes one query and a cutoff; None where the tool reports nothing.
"""

import math

LOG2 = [math.log2(rank + 1) for rank in range(1, 1001)]


def _listed(query):
    return [query.grades[row] for row in query.ranked]


def _exponential(grades, discounts):
    return sum((2**grade - 1) / discount for grade, discount in zip(grades, discounts, strict=False))


def _best(grades):
    return sorted(grades, reverse=True)


def ranklib(query, k):
    """NDCGScorer.java: (1 << rel) - 1 over log2(i + 2), ideal of the list; size = min(k, n), k <= 0 or k > n means n."""
    grades = _listed(query)
    size = len(grades) if k is None or k > len(grades) else k
    ideal = _exponential(_best(grades)[:size], LOG2)
    return 0.0 if ideal <= 0 else _exponential(grades[:size], LOG2) / ideal


def spark(query, k):
    """RankingMetrics.ndcgAt(k), two columns: n = min(max(|pred|, |lab|), k), a gain of 1 / ln(i + 2)."""
    predicted = [query.doc_ids[row] for row in query.ranked]
    labels = {item for item, grade in query.qrels.items() if grade >= 1}
    if not labels:
        return 0.0
    dcg = ideal = 0.0
    for i in range(min(max(len(predicted), len(labels)), k or 10**9)):
        gain = 1.0 / math.log(i + 2)
        dcg += gain if i < len(predicted) and predicted[i] in labels else 0.0
        ideal += gain if i < len(labels) else 0.0
    return dcg / ideal


def elasticsearch(query, k):
    """DiscountedCumulativeGain.java: ideal of all rated documents, cut at the number of hits that were returned."""
    ratings = _listed(query)[:k]
    ideal = _best(query.qrels.values())[: len(ratings)]
    best = _exponential(ideal, LOG2)
    return _exponential(ratings, LOG2) / best if best else 0.0


def opensearch(query, k):
    """Evaluation.java: ideal of all judgments, top k; Math.round(value * 100) / 100."""
    return math.floor(quepid_cut(query, k) * 100 + 0.5) / 100


def quepid(query, k):
    """ndcg@10.js: the ideal is made of all rated documents, not cut at k."""
    best = _exponential(_best(query.qrels.values()), LOG2)
    return _exponential(_listed(query)[:k], LOG2) / best if best else 0.0


def quepid_cut(query, k):
    """ndcg_cut@10.js."""
    best = _exponential(_best(query.qrels.values())[:k], LOG2)
    return _exponential(_listed(query)[:k], LOG2) / best if best else 0.0


def elliot(query, k):
    """ndcg.py with threshold 1: gain 2^(score - threshold + 1) - 1 of test items from the threshold on."""
    relevant = {item: 2 ** (grade - 1 + 1) - 1 for item, grade in query.qrels.items() if grade >= 1}
    if not relevant:
        return None
    ranked = [query.doc_ids[row] for row in query.ranked][:k]
    ideal = sum(gain / math.log(2 + i) * math.log(2) for i, gain in enumerate(_best(relevant.values())[:k]))
    dcg = sum(relevant.get(item, 0) / math.log(2 + i) * math.log(2) for i, item in enumerate(ranked))
    return dcg / ideal if dcg > 0 else 0.0


def pyvespa(query, k):
    """vespa/evaluation/_base.py: binary, min(k, R) ones."""
    relevant = {item for item, grade in query.qrels.items() if grade >= 1}
    if not relevant:
        return None
    hits = [query.doc_ids[row] for row in query.ranked][:k]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k or 10**9, len(relevant)) + 1))
    return sum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits, 1) if hit in relevant) / ideal


def recsys(query, k):
    value = pyvespa(query, k)
    return 0.0 if value is None else value


def jarvelin2002(query, k):
    """DCG[i] = CG[i] for i < b, DCG[i - 1] + G[i] / log_b(i) from there on; b = 2; divided by the ideal vector's."""

    def discounted(gains):
        total = 0.0
        for i, gain in enumerate(gains, 1):
            total = total + gain if i < 2 else total + gain / math.log2(i)
        return total

    best = discounted(_best(query.qrels.values())[:k])
    return discounted(_listed(query)[:k]) / best if best else None


def burges2005(query, k):
    """N_i * sum of (2^r(j) - 1) / log(1 + j), N_i such that a perfect ordering of the query's documents gets 1."""
    discounts = [math.log(1 + rank) for rank in range(1, 1001)]
    best = _exponential(_best(query.grades)[:k], discounts)
    return _exponential(_listed(query)[:k], discounts) / best if best else None


def trec_eval(query, k):
    """m_ndcg_cut.c after form_res_rels.c: score falling, then document id falling by strcmp; printed with %.4f."""
    rows = sorted(
        range(len(query.scores)),
        key=lambda row: (query.scores[row], query.doc_ids[row].encode()),
        reverse=True,
    )
    best = sum(g / d for g, d in zip(_best(query.qrels.values())[:k], LOG2, strict=False))
    dcg = sum(query.grades[row] / d for row, d in zip(rows[:k], LOG2, strict=False))
    return float(f"{dcg / best if best else 0.0:.4f}")


PUBLISHED = {
    function.__name__: function
    for function in (
        ranklib, spark, elasticsearch, opensearch, quepid, quepid_cut, elliot, pyvespa, recsys, jarvelin2002, burges2005, trec_eval,
    )
} | {"trec_eval_c": trec_eval, "trec_eval9": trec_eval}  # fmt: skip
