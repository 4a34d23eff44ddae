"""`anchors` against every order of the documents, and `judgment_range` against data that were judged so."""

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
    means = found.summary().to_pylist()[0]
    assert means["actual"] == fn.evaluate(rankings, measures).mean()["nDCG@3"]
    assert means["random"] == oracle.weighted_mean(found["nDCG@3"].random.tolist(), rankings.weight.tolist())
    assert means["position"] == (means["actual"] - means["random"]) / (means["best"] - means["random"])
    assert "position" in repr(found) and found._repr_html_().startswith("<table>")


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
    for measure in (fn.CG(gain={0: 1, 1: 2}), fn.DCG(discount=lambda rank: -float(rank))):
        assert len(fn.anchors(rankings, measure)[measure].best) == 2
    nothing = fn.anchors(fn.Rankings.from_lists([]), "RR")
    assert len(nothing.to_arrow()) == 0 and "NaN" in repr(nothing)


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


ALL = [name for name in ours.OF_QUERIES if fn.parse(name).definition.divisor not in ("judged", "residual")]


def judged_as(table, grade):
    """The rankings of a table, built anew from lists in which each unjudged document has a grade."""
    rankings = table.rankings()
    flags = np.ones(rankings.n_docs, bool) if rankings.is_judged is None else rankings.is_judged
    relevance = np.where(flags, np.asarray(rankings.relevance, float), grade)
    judged = None
    if rankings.judged is not None:
        pools = []
        for query in range(rankings.n_queries):
            rows = slice(*rankings.offsets[query : query + 2])
            pool = rankings.judged.relevance[slice(*rankings.judged.offsets[query : query + 2])]
            pools.append([*pool.tolist(), *[grade] * int((~flags[rows]).sum())])
        judged = np.cumsum([0, *map(len, pools)]), np.array([each for pool in pools for each in pool], float)
    options = {"judged": judged, "weight": rankings.weight, "propensity": rankings.propensity}
    return fn.Rankings.from_offsets(rankings.offsets, relevance, rankings.scores, **options)


@pytest.mark.parametrize("seed", range(5000, 5040))
def test_values_are_those_of_rankings_that_are_judged(seed):
    table = ours.crossed_table(seed)
    asked = [one.measure for one in ours.crossed_measures(seed, table, names=ALL, most=4)]
    rankings = table.rankings()
    if not asked or not len(rankings._distinct_grades):
        return
    try:
        found = fn.judgment_range(rankings, asked)
    except (fn.InputError, fn.MeasureError):  # no gain for the grade 0, or a negative one: as evaluation says
        with pytest.raises((fn.InputError, fn.MeasureError)):
            [
                fn.evaluate(judged_as(table, grade), asked)
                for grade in (min(0, rankings._grades.lowest), rankings._grades.highest)
            ]
        return
    least, greatest = (
        fn.evaluate(judged_as(table, grade), asked).values
        for grade in (min(0.0, rankings._grades.lowest), rankings._grades.highest)
    )
    values = fn.evaluate(rankings, asked).values
    for row, measure in enumerate(asked):
        for field, expected in zip(found[measure], (least, values, greatest), strict=True):
            np.testing.assert_allclose(
                field, expected[row], rtol=1e-12, atol=1e-300, err_msg=str((seed, measure))
            )


def test_bounds_of_measures_that_no_grade_lowers():
    """No grades of the unjudged documents lead out of them; nDCG is no such measure."""
    random = np.random.default_rng(0)
    grades, flags = random.integers(0, 4, (30, 12)), random.random((30, 12)) < 0.6
    scores = random.integers(0, 6, (30, 12))
    rankings = fn.Rankings.from_dense(grades, scores, is_judged=flags.ravel())
    asked = ["DCG@5", "DCG(gain='exp2')", "P@3", "RR", "Success@2", "ERR@10", "RBP", "CG@4"]
    ranges = fn.judgment_range(rankings, asked)
    for _ in range(50):
        tried = fn.evaluate(
            fn.Rankings.from_dense(np.where(flags, grades, random.integers(0, 4, grades.shape)), scores),
            asked,
        )
        for measure, values in zip(ranges.measures, tried.values, strict=True):
            low, _, high = ranges[measure]
            assert (low <= values * (1 + 1e-12)).all() and (values <= high * (1 + 1e-12)).all(), measure
    one = fn.Rankings.from_lists([[0, 2, 0]], [[3, 2, 1]], is_judged=[False, True, False])
    low, _, high = (values[0] for values in fn.judgment_range(one, "nDCG@2")["nDCG@2"])
    last_alone = fn.evaluate(fn.Rankings.from_lists([[0, 2, 2]], [[3, 2, 1]]), "nDCG@2").values[0, 0]
    assert last_alone < low < high == 1


def test_what_is_kept():
    rankings = fn.Rankings.from_lists(
        [[0, 1], [4, 0]], is_judged=[False, True, True, True], query_ids=["x", "y"], weight=[3, 1]
    )
    ranges = fn.judgment_range(rankings, ["DCG", "nDCG@1"])
    assert ranges["DCG"].high.tolist() == pytest.approx([4 + 1 / np.log2(3), 4])
    assert ranges["DCG"].low.tolist() == ranges["DCG"].value.tolist()
    assert ranges.queries["query_id"].to_pylist() == ["x", "y"]
    mean = ranges.summary().to_pylist()[0]
    assert mean["greatest"] == pytest.approx((3 * (4 + 1 / np.log2(3)) + 4) / 4) and mean["moves"]
    assert ranges.to_arrow().column_names == ["query_id", "measure", "least", "value", "greatest"]
    assert ranges.to_arrow()["greatest"].to_pylist()[::2] == ranges["DCG"].high.tolist()
    columns = fn.Rankings.from_lists([[0, 1]], is_judged=[False, True], queries={"slots": [1]})
    assert fn.judgment_range(columns, "DCG@slots")["DCG@slots"].high.tolist() == [1.0]
    everything = fn.Rankings.from_lists([[0, 2]])
    assert len({each.tobytes() for each in fn.judgment_range(everything, "nDCG")["nDCG"]}) == 1
