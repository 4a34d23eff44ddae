"""judgment_range: the values with the least and with the greatest grade, as if somebody had judged the documents so."""

import numpy as np
import pytest
import strategies as ours

import fastndcg as fn

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


@pytest.mark.pure
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


@pytest.mark.pure
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
    assert [name for name in ranges.to_arrow().column_names if "DCG" in name][:3] == [
        "DCG least",
        "DCG value",
        "DCG greatest",
    ]
    columns = fn.Rankings.from_lists([[0, 1]], is_judged=[False, True], queries={"slots": [1]})
    assert fn.judgment_range(columns, "DCG@slots")["DCG@slots"].high.tolist() == [1.0]
    everything = fn.Rankings.from_lists([[0, 2]])
    assert len({each.tobytes() for each in fn.judgment_range(everything, "nDCG")["nDCG"]}) == 1
    nothing = fn.Rankings.from_lists([[0, 0]], is_judged=[False, False])
    with pytest.raises(fn.InputError, match="no document was judged"):
        fn.judgment_range(nothing, "RR")


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("Judged@5", "Judged@5 counts judgments and not grades"),
        ("RBPresidual", "RBPresidual counts judgments and not grades"),
        ("ERR_IA@5", "ERR_IA@5 covers several intents"),
    ],
)
def test_what_is_refused(measure, message):
    rankings = fn.Rankings.from_lists([[2, 0]], is_judged=[True, False])
    with pytest.raises((fn.MeasureError, fn.InputError), match=message):
        fn.judgment_range(rankings, measure)
