"""The oracle against itself and against the tools whose definitions it states: who checks with it must be able to trust it."""

import math
import random
from functools import partial

import cases
import oracle
import pytest
from oracle import Document, Query


def random_query(rng, size=6):
    n = rng.randint(1, size)
    grades = [rng.choice([0, 0, 1, 2, 3, 4]) for _ in range(n)]
    return Query(
        grades,
        [rng.randint(0, 2) for _ in range(n)],
        None,
        grades + [rng.choice([0, 1, 2]) for _ in range(rng.randint(0, 3))],
    )


@pytest.mark.parametrize("seed", range(30))
def test_closed_form_equals_listing_the_orders(seed):
    rng = random.Random(seed)
    query, cutoff = random_query(rng), rng.choice([None, 1, 2, 3, 9])
    words = {
        "gain": rng.choice(["linear", "exp2", "binary", [0, 0.1, 0.3, 2, 0.7]]),
        "discount": rng.choice(["log2", "reciprocal", "ln", 3.0, "jarvelin"]),
    }
    assert oracle.score("DCG", query, cutoff, **words) == pytest.approx(
        oracle.expected_dcg(query, cutoff, **words), rel=1e-14
    )
    for ideal in ("judged", "scored", "full"):
        closed = oracle.expected_ndcg(query, cutoff, ideal=ideal, **words)
        assert oracle.score("nDCG", query, cutoff, ideal=ideal, **words) == pytest.approx(
            closed or 0.0, rel=1e-14
        )


@pytest.mark.parametrize("seed", range(30))
def test_worst_and_best_are_the_bounds_over_all_orders(seed):
    rng = random.Random(seed)
    query, cutoff = random_query(rng), rng.choice([None, 1, 2, 3, 9])
    for name in ("nDCG", "DCG", "CG"):
        definition, accepted = oracle.GRADED[name]
        words = {word: oracle._DEFAULTS[word] for word in accepted}
        value = partial(definition, query=query, cutoff=cutoff, **words)
        bounds = oracle.bounds_over_orders(value, query) or (0.0, 0.0)
        worst, best = (oracle.score(name, query, cutoff, ties=ties) for ties in ("worst", "best"))
        assert (worst, best) == pytest.approx(bounds, rel=1e-14)
        assert (
            worst <= oracle.score(name, query, cutoff) + 1e-12
            and oracle.score(name, query, cutoff) <= best + 1e-12
        )


@pytest.mark.parametrize("golden", cases.GOLDEN, ids=lambda golden: f"{golden.system} {golden.cutoff}")
def test_golden_values(golden):
    name, _, rest = golden.measure.partition("(")
    words, _, cutoff = rest.partition(")") if rest else ("", "", golden.measure.partition("@")[2])
    name = name.partition("@")[0]
    query = Query(
        [cases.GOLDEN_GRADES[i] for i in golden.order],
        [cases.GOLDEN_SCORES[i] for i in golden.order],
        None,
        cases.GOLDEN_POOL if golden.judged else None,
    )
    value = oracle.score(name, query, int(cutoff.strip("@")) if cutoff else None, **eval(f"dict({words})"))
    assert value == pytest.approx(golden.expected, rel=1e-14)


def test_literature():
    grades, values = cases.LITERATURE_LINEAR
    query = Query(grades, [5, 4, 3, 2, 1])
    for cutoff, value in values.items():
        assert round(oracle.score("nDCG", query, cutoff), 2) == value
    grades, got, best = cases.LITERATURE_EXP2
    query = Query(grades, [5, 4, 3, 2, 1])
    assert oracle.score("DCG", query, 5, gain="exp2") == pytest.approx(
        7 + 3 / math.log2(3) + 3.5 + 1 / math.log2(6), rel=1e-15
    )
    assert oracle.score("DCG", query, 5, gain="exp2") == pytest.approx(got, rel=1e-15)
    assert oracle.score("IDCG", query, 5, gain="exp2") == pytest.approx(best, rel=1e-15)


def test_binary_measures_are_trec_eval_s():
    """Random runs and judgments, with judged, unjudged and pooled but unjudged (-1) documents."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    asked = {"map", "map_cut.3,5", "recip_rank", "P.3,5,20", "recall.3", "Rprec", "success.1,5", "bpref", "infAP", "iprec_at_recall", "num_rel",
             "set_P", "set_recall", "set_F", "ndcg", "ndcg_cut.3,5"}  # fmt: skip
    rng = random.Random(1)
    for _ in range(200):
        names = [f"d{i:02d}" for i in range(rng.randint(1, 12))]
        judgments = {name: rng.choice([-1, 0, 0, 1, 1, 2]) for name in names if rng.random() < 0.7}
        judgments |= {f"e{i}": rng.choice([-1, 0, 1, 2]) for i in range(rng.randint(0, 4))}
        if (
            max(judgments.values(), default=-1) < 0
        ):  # pytrec_eval-terrier 0.5.11 does not come back from a query of -1 alone
            continue
        run = {name: float(-i) for i, name in enumerate(names)}
        theirs = pytrec_eval.RelevanceEvaluator({"q": judgments}, asked).evaluate({"q": run})["q"]
        pool = [grade for grade in judgments.values() if grade >= 0]
        ranked = [Document(judgments.get(name, 0), judgments.get(name, -1) >= 0) for name in names]
        pooled = [Document(judgments.get(name, 0), name in judgments) for name in names]
        query = Query(
            [document.grade for document in ranked],
            list(run.values()),
            [document.is_judged for document in ranked],
            pool,
        )
        ours = {
            "map": oracle.average_precision(ranked, query, None), "map_cut_3": oracle.average_precision(ranked, query, 3),
            "recip_rank": oracle.reciprocal_rank(ranked, query, None), "P_5": oracle.precision(ranked, query, 5),
            "P_20": oracle.precision(ranked, query, 20), "recall_3": oracle.recall(ranked, query, 3),
            "Rprec": oracle.r_precision(ranked, query), "success_1": oracle.success(ranked, query, 1),
            "success_5": oracle.success(ranked, query, 5), "bpref": oracle.binary_preference(ranked, query, None),
            "infAP": oracle.inferred_ap(pooled, query, None), "num_rel": oracle.num_rel(ranked, query),
            "iprec_at_recall_0.40": oracle.interpolated_precision(ranked, query, None, recall=0.4),
            "iprec_at_recall_1.00": oracle.interpolated_precision(ranked, query, None, recall=1.0),
            "set_P": oracle.precision(ranked, query, None), "set_recall": oracle.recall(ranked, query, None),
            "set_F": oracle.f_measure(ranked, query, None), "ndcg": oracle.score("nDCG", query),
            "ndcg_cut_3": oracle.score("nDCG", query, 3),
        }  # fmt: skip
        for name, value in ours.items():
            assert (value or 0.0) == pytest.approx(theirs[name], rel=1e-12, abs=1e-15), name


def test_average_precision_and_reciprocal_rank_under_ties_by_hand():
    """One relevant and one not, tied: half of the orders find it first, half second."""
    query = Query([1, 0], [7, 7])
    assert oracle.score("AP", query) == oracle.score("RR", query) == 0.75
    assert oracle.score("ERR", query, max_rel=1) == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert oracle.score("P", query, 1) == 0.5
    assert oracle.score("RBP", query, p=0.5) == pytest.approx((0.5 + 0.25) / 2)
    assert oracle.score("RBPresidual", query, p=0.5) == 0.25
    assert oracle.score("SDCG", query, 1, max_rel=1) == 0.5
    assert oracle.score("Judged", Query([1, 0, 1], [3, 2, 1], [True, False, True]), 2) == 0.5


def test_orders():
    assert oracle.tie_groups([0.5, 0.9, 0.5]) == [[1], [0, 2]]
    assert list(oracle.orders([0.5, 0.9, 0.5])) == [[1, 0, 2], [1, 2, 0]]
    assert oracle.number_of_orders([1, 1, 1, 2, 2]) == len(list(oracle.orders([1, 1, 1, 2, 2]))) == 12
    with pytest.raises(ValueError, match="too many"):
        oracle.score("AP", Query([0] * 10, [1] * 10))


@pytest.mark.parametrize("name", oracle.LINEAR)
def test_turning_tied_groups_equals_listing_the_orders(name, monkeypatch):
    rng = random.Random(name)
    words = {"max_rel": 4} if name == "SDCG" else {}
    for _ in range(20):
        query = random_query(rng)._replace(is_judged=None)
        flags = [rng.random() < 0.7 for _ in query.grades]
        for one in (query, query._replace(is_judged=flags)):
            cutoff = rng.choice([None, 1, 2, 3, 9])
            monkeypatch.setattr(oracle, "FEW_ORDERS", 0)
            turned = oracle.score(name, one, cutoff, **words)
            monkeypatch.setattr(oracle, "FEW_ORDERS", oracle.MOST_ORDERS)
            assert turned == pytest.approx(oracle.score(name, one, cutoff, **words), rel=1e-14)
