"""`anchors`: worst, random and best against every order of the documents, and what was judged against every choice of them."""

import itertools
import math

import numpy as np
import oracle
import pytest
import strategies as ours

import fastndcg as fn

pytestmark = pytest.mark.pure


def every_order(asked, query):
    """The value of each order of the documents of a query."""
    words = dict(asked.parameters) | {"ties": "input"}
    n = len(query.scores)
    orders = [query._replace(scores=list(order)) for order in itertools.permutations(range(n))]
    return [oracle.score(asked.name, order, asked.cutoff, **words) for order in orders]


def close(got, wanted, scale):
    return abs(got - wanted) <= 1e-12 * max(abs(wanted), scale) or (math.isnan(got) and math.isnan(wanted))


def has_known_order(asked, table):
    words = dict(asked.parameters)
    is_cut = asked.cutoff is not None
    is_returned = words.get("ideal") == "returned"
    if words.get("score_above") is not None or (asked.name == "AUC" and asked.cutoff is not None):
        return False
    return not (is_returned and is_cut) and not (
        asked.name == "infAP" and min(table.judged_grades(), default=0) < 0
    )


@pytest.mark.parametrize("name", ours.OF_QUERIES)
def test_anchors_are_those_of_all_orders(name):
    checked = 0
    for seed in range(5000, 5012):
        table = ours.crossed_table(seed, longest=4)
        asked = [
            one
            for one in ours.crossed_measures(seed, table, names=[name], most=3)
            if has_known_order(one, table)
        ]
        if not asked or max(table.lengths, default=0) > 4:
            continue
        found = fn.anchors(table.rankings(), [one.measure for one in asked])
        scores = fn.evaluate(table.rankings(), [one.measure for one in asked])
        for one in asked:
            anchor, scale = found[one.measure], one.scale(table)
            assert anchor.actual.tobytes() == scores[one.measure].tobytes()
            for row, query in enumerate(table.queries()):
                values = every_order(one, query)
                for got, wanted in (
                    (anchor.worst, min(values)),
                    (anchor.best, max(values)),
                    (anchor.random, oracle.mean(values) if not math.isnan(values[0]) else math.nan),
                ):
                    assert close(got[row], wanted, scale), (seed, str(one.measure), row, got[row], wanted)
                checked += 1
    assert checked > 10


def test_means_are_exact_and_the_rest_is_of_the_means():
    random = np.random.default_rng(3)
    rankings = fn.Rankings.from_dense(
        random.integers(0, 3, (50, 6)), random.random((50, 6)), weight=random.random(50)
    )
    measures = ["nDCG@3", "AP(empty='skip')"]
    found = fn.anchors(rankings, measures)
    means = found.means()["nDCG@3"]
    assert means["actual"] == fn.evaluate(rankings, measures).mean()["nDCG@3"]
    assert means["random"] == oracle.weighted_mean(found["nDCG@3"].random.tolist(), rankings.weight.tolist())
    assert means["position"] == (means["actual"] - means["random"]) / (means["best"] - means["random"])
    rows = {row["measure"]: row for row in found.summary().rows}
    assert rows["nDCG@3"]["mean"] == means["actual"] and rows["nDCG@3"]["queries"] == 50
    assert rows["AP(empty='skip')"]["empty"] == int(np.isnan(found["AP(empty='skip')"].actual).sum())
    assert "position" in found.summary().to_arrow().column_names and "position" in repr(found)
    assert found._repr_html_().startswith("<table>")


def test_tables():
    rankings = fn.Rankings.from_lists([[0, 1], [1, 0]], query_ids=["a", "b"])
    table = fn.anchors(rankings, ["RR", "P@1"]).to_arrow()
    assert table.column_names == [
        "query_id", "measure", "worst", "random", "actual", "best", "position",
    ]  # fmt: skip
    assert table.select([0, 1]).to_pydict() == {
        "query_id": ["a", "a", "b", "b"],
        "measure": ["RR", "P@1"] * 2,
    }
    assert table["position"].to_pylist() == [-1.0, -1.0, 1.0, 1.0]
    assert table["random"].to_pylist() == [0.75, 0.5] * 2
    nothing = fn.anchors(fn.Rankings.from_lists([]), "RR")
    assert len(nothing.to_arrow()) == 0 and "no queries" in repr(nothing)


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("nDCG(ties='input', ideal='returned')@1", r"nDCG\(ties='input', ideal='returned'\)@1 has no known worst order"),
        (fn.DCG(discount=[0.5, 1]), r"has no known best order: its discount is 1 at rank 2 and 0.5 before it"),
        (fn.CG(gain={0: 1, 1: 2}), None),
        (fn.DCG(discount=lambda rank: -1.0) @ 1, r"its discount is 0 at rank 2 and -1 before it"),
        (fn.DCG(discount=lambda rank: -float(rank)), None),
        ("alpha_nDCG", "alpha_nDCG has no known best order"),
        ("AP(score_above=0.5)@3", "has no anchors"),
        ("AUC@2", "has no known worst"),
        ("infAP", "infAP has no known worst order beside negative grades"),
    ],
)  # fmt: skip
def test_orders_that_nobody_knows_are_refused(measure, wanted):
    grades = {"infAP": [1, -1], "AUC@2": [1, 0, 2]}.get(str(measure), [1, 0])
    rankings = fn.Rankings.from_lists([grades], intents=[[1]] * len(grades))
    if wanted is None:
        fn.anchors(rankings, measure)
        return
    with pytest.raises(fn.MeasureError, match=wanted):
        fn.anchors(rankings, measure)


def test_a_measure_that_was_not_asked_for():
    with pytest.raises(fn.MeasureError, match="RR@2 was not asked for; these were: RR"):
        fn.anchors(fn.Rankings.from_lists([[1]]), "RR")["RR@2"]


def test_measures_of_intents():
    rankings = fn.Rankings.from_lists(
        [[1, 0, 1], [0, 1]],
        intents=[[1, 0], [0, 0], [0, 1], [0, 0], [1, 1]],
        judged=([0, 4, 6], [1, 0, 1, 1, 0, 1]),
        judged_intents=[[1, 0], [0, 0], [0, 1], [1, 1], [0, 0], [1, 1]],
        intent_probabilities=[[0.7, 0.3], [0.5, 0.5]],
    )
    found = fn.anchors(rankings, "nDCG_IA@2")["nDCG_IA@2"]
    values = [
        fn.evaluate(rankings.with_scores([*order, 2, 1]), "nDCG_IA@2").values[0, 0]
        for order in itertools.permutations(range(3))
    ]
    assert found.worst[0] == pytest.approx(min(values), rel=1e-12)
    assert found.best[0] == pytest.approx(max(values), rel=1e-12)
    assert found.random[0] == pytest.approx(oracle.mean(values), rel=1e-12)
