"""Ties in groups too large to list their orders, the promises about bits, and the ranges of ties and of judgments."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
import strategies as ours

import fastndcg as fn

pytestmark = pytest.mark.compiled

SAMPLED = (
    "AP", "AP@40", "RR", "RR@3", "ERR", "ERR@10", "Bpref", "infAP", "IPrec@0.1", "IPrec@0.5", "Success@4",
    "Rprec", "F@20", "RBP",
)  # fmt: skip


def sampled_orders(scores, relevance, flags, orders):
    """As many queries as orders: each an order of the same query that its scores allow."""
    rng = np.random.default_rng(11)
    ranked = np.lexsort((rng.random((orders, len(scores))), np.broadcast_to(-scores, (orders, len(scores)))))
    untied = np.broadcast_to(-np.arange(len(scores)), (orders, len(scores)))
    return fn.Rankings.from_dense(relevance[ranked], untied, is_judged=flags[ranked].ravel())


def test_large_groups_by_sampling():
    """The expectation lies within five standard errors of the mean over 4,000 sampled orders."""
    rng = np.random.default_rng(12)
    scores = np.repeat([4.0, 3.0, 2.0, 1.0], [3, 40, 1, 60])
    relevance = rng.choice([0, 0, 0, 1, 2, 4], len(scores))
    flags = rng.random(len(scores)) < 0.7
    expected = fn.evaluate(fn.Rankings.from_lists([relevance], [scores], is_judged=flags), SAMPLED)
    samples = fn.evaluate(
        sampled_orders(scores, relevance, flags, 4000),
        [measure(ties="input") for measure in expected.measures],
    )
    for measure, value, values in zip(
        expected.measures, expected.values[:, 0].tolist(), samples.values, strict=True
    ):
        error = float(values.std() / math.sqrt(len(values)))
        assert abs(value - values.mean()) <= 5 * error + 1e-12, (str(measure), value, values.mean(), error)


@pytest.mark.parametrize(("size", "relevant"), [(5, 2), (100, 7), (1000, 990), (3000, 1), (2000, 300)])
def test_one_group_of_everything_by_closed_forms(size, relevant):
    """All documents tied: hypergeometric sums in exact fractions."""
    cutoffs = sorted({1, 2, min(10, size), size})
    grades = np.zeros(size, np.int64)
    grades[np.random.default_rng(1).permutation(size)[:relevant]] = 1
    names = [
        f"{name}@{cutoff}"
        for cutoff in cutoffs
        for name in ("RR", "Success", "P", "R", "AP", "ERR(max_rel=1)")
    ]
    scores = fn.evaluate(fn.Rankings.from_lists([grades], [np.zeros(size)]), names)
    missing, first, first_weighed, precisions = Fraction(1), Fraction(0), Fraction(0), Fraction(0)
    stopping, seen = Fraction(0), {}
    share = Fraction(relevant, size)
    for rank in range(1, size + 1):
        chance = missing * Fraction(relevant, size - rank + 1)
        missing -= chance
        first, first_weighed = first + chance, first_weighed + chance / rank
        above = Fraction((rank - 1) * (relevant - 1), size - 1)
        precisions += share * (1 + above) / rank
        if rank in cutoffs:
            seen[rank] = (
                first_weighed,
                first,
                share * rank / rank,
                share * rank / relevant,
                precisions / relevant,
            )
    for cutoff in cutoffs:
        for name, wanted in zip(("RR", "Success", "P", "R", "AP"), seen[cutoff], strict=True):
            assert scores[f"{name}@{cutoff}"][0] == pytest.approx(float(wanted), rel=1e-12), (name, cutoff)
    assert scores[f"R@{size}"][0] == 1.0
    assert scores[f"Success@{size}"][0] == 1.0
    # the user stops at a relevant document with probability 1/2: mean over the number seen before, each order
    # equally likely
    if size <= 1000:
        for rank in range(1, 11 if size > 10 else size + 1):
            at = Fraction(0)
            for h in range(min(rank - 1, relevant - 1) + 1):
                ways = Fraction(
                    math.comb(relevant - 1, h) * math.comb(size - relevant, rank - 1 - h),
                    math.comb(size - 1, rank - 1),
                )
                at += share * ways / 2 ** (h + 1)
            stopping += at / rank
        assert scores[f"ERR(max_rel=1)@{min(size, 10)}"][0] == pytest.approx(float(stopping), rel=1e-12)


def test_tied_alike_is_not_tied():
    """A group of documents that are worth the same has the bits of any order of it."""
    rankings = [
        fn.Rankings.from_lists([[2] * 37 + [0] * 11], [scores])
        for scores in (np.repeat([2.0, 1.0], [37, 11]), np.arange(48, 0, -1.0))
    ]
    names = [name for name in SAMPLED if name != "Rprec"]
    one, other = (fn.evaluate(part, names).values for part in rankings)
    np.testing.assert_allclose(one, other, rtol=1e-14)
    perfect = fn.evaluate(
        rankings[0], "AP, R, P@37, Rprec, F@37, Bpref, IPrec@1.0, RR, Success@1, SetR"
    ).values[:, 0]
    assert perfect.tolist() == [1.0] * 10


def test_bounds_are_the_least_and_greatest_of_all_orders():
    """But of sampled pools, where infAP rewards pooled documents, and its worst order need not be the least."""
    compared = 0
    for seed in range(5000, 5060):
        table = ours.crossed_table(seed)
        for one in ours.crossed_measures(seed, table, names=ours.OF_QUERIES, most=6):
            words = {name: value for name, value in one.parameters if name not in ("ties", "empty")}
            of_found = words.get("denominator") == "hits" or one.name == "AUC"
            if (
                words.keys() & {"score_above", "ips", "judged_only"}
                or (of_found and one.cutoff)
                or one.name in ("infAP", "NumRel")
            ):
                continue  # scores of the orders are other ones; and a document less in k may raise the value
            if words.get("ideal") == "returned":
                continue  # which differs between the orders
            measure = ours.Asked(one.name, one.cutoff, tuple((words | {"empty": "nan"}).items())).measure
            values = fn.evaluate(
                table.rankings(), [measure(ties="worst"), measure, measure(ties="best")]
            ).values
            for query, (low, expected, high) in zip(table.queries(), values.T.tolist(), strict=True):
                if oracle.number_of_orders(query.scores) > 720 or math.isnan(low):
                    continue
                orders = [
                    query._replace(
                        grades=[query.grades[i] for i in order], scores=[-rank for rank in range(len(order))], pool=query.judged_grades(),
                        is_judged=None if query.is_judged is None else [query.is_judged[i] for i in order],
                    )
                    for order in oracle.orders(query.scores)
                ]  # fmt: skip
                every = [oracle.score(one.name, order, one.cutoff, **words, ties="input") for order in orders]
                scale = 1e-12 * one.scale(table)
                assert [low, high] == pytest.approx([min(every), max(every)], rel=1e-12, abs=scale), (
                    measure,
                    query,
                )
                assert low - scale <= expected * (1 + 1e-15) and expected <= high * (1 + 3e-15) + scale, (
                    measure,
                    query,
                )
                compared += 1
    assert compared > 500


# ---- ranges ----


def test_tie_range():
    rng = np.random.default_rng(31)
    grades, scores = rng.choice([0, 0, 1, 2, 4], (40, 6)), rng.integers(0, 3, (40, 6))
    rankings = fn.Rankings.from_dense(grades, scores, is_judged=(rng.random(240) < 0.7))
    ranges = fn.tie_range(rankings, ["nDCG@3", "AP", "ERR@2", "NumRel", "SetR"])
    for measure in ranges.measures:
        low, value, high = ranges[measure]
        assert (low <= value * (1 + 1e-15)).all() and (value <= high * (1 + 1e-15)).all(), measure
        assert value.tobytes() == fn.evaluate(rankings, measure).values[0].tobytes()
    assert ranges["nDCG@3"].low.tobytes() == fn.evaluate(rankings, "nDCG(ties='worst')@3").values[0].tobytes()
    assert ranges["AP"].high.tobytes() == fn.evaluate(rankings, "AP(ties='best')").values[0].tobytes()
    summary = ranges.summary().to_pydict()
    assert summary["moves"] == [True, True, True, False, False]
    assert repr(ranges) == repr(ranges.summary())
    crossed = fn.tie_range(
        fn.Rankings.from_lists([[0, 0, 2, 1, 2]], [[1, 1, 1, 1, 2]]), ["AUC@3", "AP(denominator='hits')@3"]
    )
    assert all(low <= value <= high for low, value, high in map(crossed.__getitem__, crossed.measures))
    assert ranges.to_arrow().column_names == ["query_id", "measure", "worst", "expected", "best"]
    with pytest.raises(fn.MeasureError, match="RR was not asked for"):
        ranges["RR"]
