"""Agreement of rankings and of judges, against SciPy, scikit-learn, all orders of ties, and published examples."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn

GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=7)


def orders(scores):
    """All orders of the items, best first, that their scores allow."""
    return [
        list(order)
        for order in permutations(scores)
        if all(scores[one] >= scores[other] for one, other in zip(order, order[1:], strict=False))
    ]


# ---- rankings ----


@given(GRADES)
def test_tau_b_is_that_of_scipy(pairs):
    stats = pytest.importorskip("scipy.stats")
    a, b = zip(*pairs, strict=True)
    assert fn.rank_agreement(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, rel=1e-12, nan_ok=True)


def plain_tau_ap(truth, ranked):
    n = len(ranked)
    shares = [sum(truth.index(x) < truth.index(ranked[i]) for x in ranked[:i]) / i for i in range(1, n)]
    return 2 * sum(shares) / (n - 1) - 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5))
def test_tau_ap_is_the_mean_over_all_orders_of_ties(pairs):
    a, b = (dict(enumerate(side)) for side in zip(*pairs, strict=True))
    wanted = np.mean([plain_tau_ap(truth, ranked) for truth in orders(a) for ranked in orders(b)])
    assert fn.rank_agreement(a, b, "tau_ap") == pytest.approx(wanted, abs=1e-12)


def plain_rbo(a, b, p):
    """Equation 32 of Webber, Moffat and Zobel, as it is written."""
    short, long = sorted((a, b), key=len)
    s, l = len(short), len(long)  # noqa: E741
    x = [len(set(short[:d]) & set(long[:d])) for d in range(l + 1)]
    total = sum(x[d] / d * p**d for d in range(1, l + 1))
    total += sum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * total + ((x[l] - x[s]) / l + x[s] / s) * p**l


@given(
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 2), min_size=1, max_size=5),
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 2), min_size=1, max_size=5),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_rbo_is_the_mean_over_all_orders_of_ties(a, b, p):
    wanted = np.mean([plain_rbo(one, other, p) for one in orders(a) for other in orders(b)])
    found = fn.rank_agreement(a, b, "rbo", p)
    assert found == pytest.approx(wanted, abs=1e-12) and 0 <= found <= 1 + 1e-12
    assert fn.rank_agreement(b, a, "rbo", p) == pytest.approx(found, abs=1e-14)


def test_rbo_of_equal_and_of_different_rankings():
    items = [f"d{i}" for i in range(1000)]
    assert fn.rank_agreement(items, items, "rbo") == pytest.approx(1)
    assert fn.rank_agreement(items, [f"e{i}" for i in range(10)], "rbo") == 0
    # Webber's extrapolation: a prefix agrees as far as it goes
    assert fn.rank_agreement(items, items[:10], "rbo", 0.98) == pytest.approx(1)


@pytest.mark.parametrize("method", ["tau_b", "tau_ap", "rbo"])
def test_ends_of_agreement(method):
    if method == "tau_b":
        pytest.importorskip("scipy")
    up = np.arange(2**62, 2**62 + 20)  # which as float64 would all be tied
    assert fn.rank_agreement(up, up, method) == pytest.approx(1)
    if method != "rbo":
        assert fn.rank_agreement(up, up[::-1], method) == pytest.approx(-1)
        assert math.isnan(fn.rank_agreement([1], [2], method))
    assert math.isnan(fn.rank_agreement([], [], method))


def test_rankings_query_by_query():
    pytest.importorskip("scipy")
    rankings = fn.Rankings.from_lists([[1, 0, 2], [0, 1]], [[3, 2, 1], [2, 1]])
    other = rankings.with_scores([3, 1, 2, 1, 2])
    for method in ("tau_b", "tau_ap", "rbo"):
        found = fn.rank_agreement(rankings, other, method)
        alone = [fn.rank_agreement([3, 2, 1], [3, 1, 2], method), fn.rank_agreement([2, 1], [1, 2], method)]
        assert isinstance(found, np.ndarray) and found.tolist() == alone
    qrels, run = {"q": {"x": 1}}, {"q": {"x": 3, "y": 2, "z": 1}}
    one = fn.Rankings.from_qrels_run(qrels, run)
    two = fn.Rankings.from_qrels_run({"q": {"u": 1}}, {"q": {"y": 5, "u": 4}})
    assert fn.rank_agreement(one, two, "rbo").tolist() == [
        fn.rank_agreement(["x", "y", "z"], ["y", "u"], "rbo")
    ]
    with pytest.raises(fn.InputError, match="query 0 has 3 documents in a and 2 in b; give doc_ids"):
        fn.rank_agreement(rankings, fn.Rankings.from_lists([[1, 0], [0, 1]]))
    with pytest.raises(fn.InputError, match="a and b have other queries"):
        fn.rank_agreement(rankings, rankings[:1])


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([1, 2], [1, 2, 3], {}, "a and b rank different items: 2 in one of them only"),
        ({"x": 1, "y": 2}, {"x": 1, "z": 2}, {"method": "tau_ap"}, "'y', 'z' in one of them only"),
        ([1, 2], [1, math.nan], {}, "b has a NaN score at position 1"),
        (["x", "x"], ["x", "y"], {"method": "rbo"}, "a has 'x' more than once"),
        ([1], [1], {"method": "tau-b"}, r'method=\'tau-b\' is not known; .* Did you mean "tau_b"\?'),
        ([1], [1], {"p": 1}, "p=1 is not between 0 and 1"),
        ([[1, 2]], [1, 2], {}, r"a is a list of shape \(1, 2\)"),
        ("xy", "yx", {"method": "rbo"}, "a is a str"),
    ],
)
def test_what_is_refused(a, b, options, message):
    with pytest.raises(fn.FastndcgError, match=message):
        fn.rank_agreement(a, b, **options)


# ---- judges ----

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011): four observers, twelve units
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@pytest.mark.parametrize(
    ("metric", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_krippendorffs_own_example(metric, alpha):
    assert fn.krippendorff_alpha(OBSERVERS, metric) == pytest.approx(alpha, abs=0.0006)
    assert fn.krippendorff_alpha(OBSERVERS[::-1], metric) == pytest.approx(
        fn.krippendorff_alpha(OBSERVERS, metric)
    )


@given(GRADES, st.sampled_from([None, "linear", "quadratic"]))
def test_kappa_is_that_of_scikit_learn(pairs, weights):
    metrics = pytest.importorskip("sklearn.metrics")
    a, b = zip(*pairs, strict=True)
    if len({*a, *b}) == 1:
        assert math.isnan(fn.cohen_kappa(a, b, weights))
        return
    wanted = metrics.cohen_kappa_score(a, b, weights=weights)
    assert fn.cohen_kappa(a, b, weights) == pytest.approx(wanted, abs=1e-12, nan_ok=True)


def test_agreement_of_judges_at_its_ends():
    words = ["good", "bad", "good", "fair"]
    assert fn.cohen_kappa(words, words) == 1
    # the table of Cohen's paper as textbooks have it: 45 and 15, 25 and 15
    a, b = [1] * 60 + [0] * 40, [1] * 45 + [0] * 15 + [1] * 25 + [0] * 15
    assert fn.cohen_kappa(a, b) == pytest.approx(0.1304, abs=5e-5)
    assert fn.krippendorff_alpha([[0, 1, 0], [0, 1, 0]]) == 1
    assert math.isnan(fn.krippendorff_alpha([[0, math.nan], [math.nan, 1]]))
    assert math.isnan(fn.krippendorff_alpha([[2, 2], [2, 2]])) and math.isnan(fn.cohen_kappa([], []))
    with pytest.raises(fn.InputError, match="metric='ordinall' is not known; .* Did you mean \"ordinal\""):
        fn.krippendorff_alpha(OBSERVERS, "ordinall")
    with pytest.raises(fn.InputTypeError, match="ratings are not a matrix of numbers"):
        fn.krippendorff_alpha([["a", "b"], ["a", "c"]])
    with pytest.raises(fn.InputError, match=r"ratings has shape \(2,\)"):
        fn.krippendorff_alpha([1, 2])
    with pytest.raises(fn.InputError, match=r"a has shape \(2,\) and b \(3,\)"):
        fn.cohen_kappa([1, 2], [1, 2, 3])
    with pytest.raises(fn.InputError, match="b lacks grades"):
        fn.cohen_kappa([1, 2], [1, None])
    with pytest.raises(fn.InputError, match="weights='square' is not known"):
        fn.cohen_kappa([1, 2], [1, 2], "square")


# Fleiss 1971 as textbooks have it: 14 judges, 10 items, 5 categories
FOURTEEN = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_fleiss_own_example_and_its_ends():
    assert fn.fleiss_kappa(FOURTEEN) == pytest.approx(0.210, abs=0.0005)
    assert fn.fleiss_kappa(np.array(FOURTEEN)[::-1, ::-1]) == pytest.approx(fn.fleiss_kappa(FOURTEEN))
    assert fn.fleiss_kappa([[3, 0], [0, 3]]) == 1
    assert fn.fleiss_kappa([[1, 1], [1, 1]]) == -1
    assert math.isnan(fn.fleiss_kappa([[2, 0], [2, 0]])) and math.isnan(fn.fleiss_kappa(np.zeros((0, 3))))


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=2, max_size=8))
def test_fleiss_is_the_share_of_pairs_that_agree_beyond_chance(grades):
    """Pair by pair, in plain Python; and nominal alpha, which differs by a term of 1 / judgments."""
    counts = [[row.count(level) for level in range(3)] for row in grades]
    pairs = [one == other for row in grades for one, other in permutations(row, 2)]
    every = [grade for row in grades for grade in row]
    chance = sum((every.count(level) / len(every)) ** 2 for level in range(3))
    found = fn.fleiss_kappa(counts)
    if chance == 1:
        assert math.isnan(found)
        return
    assert found == pytest.approx((sum(pairs) / len(pairs) - chance) / (1 - chance))
    alpha = fn.krippendorff_alpha(np.transpose(grades))
    assert alpha == pytest.approx(1 - (1 - found) * (1 - 1 / len(every)))


def test_fleiss_refuses():
    with pytest.raises(fn.InputError, match=r"rows of different lengths; wanted \(n_items, n_categories\)"):
        fn.fleiss_kappa([[1, 2], [3]])
    with pytest.raises(fn.InputError, match="item 1 has 2 judgments and item 0 3; wanted 2 or more"):
        fn.fleiss_kappa([[3, 0], [1, 1]])
    with pytest.raises(fn.InputError, match="item 0 has 1 judgments"):
        fn.fleiss_kappa([[1, 0], [0, 1]])
    with pytest.raises(fn.InputError, match=r"counts of item 1 are \[1.5, 1.5\]; wanted whole numbers"):
        fn.fleiss_kappa([[3, 0], [1.5, 1.5]])
    with pytest.raises(fn.InputError, match="counts of item 0 are"):
        fn.fleiss_kappa(np.ma.masked_array([[3.0, 0]], mask=[[0, 1]]))
    with pytest.raises(fn.InputError, match=r"counts has shape \(2,\)"):
        fn.fleiss_kappa([1, 2])
    with pytest.raises(fn.InputTypeError, match="counts are of dtype <U1"):
        fn.fleiss_kappa([["a", "b"]])


@pytest.mark.parametrize("method", ["tau_b", "tau_ap", "rbo"])
def test_large_unsigned_scores_are_not_rounded(method):
    pytest.importorskip("scipy")
    scores = np.array([2**64 - 1, 2**64 - 2, 0], np.uint64)
    assert fn.rank_agreement(scores, [3, 2, 1], method) == pytest.approx(1)
    assert fn.rank_agreement(scores, [2**64 - 1, 2.0**63, -1], method) == pytest.approx(1)
    with pytest.raises(fn.InputError, match="a has a masked score at position 2; give each item a score"):
        fn.rank_agreement(np.ma.masked_array([1.0, 2, 3], mask=[0, 0, 1]), [1, 2, 3], method)


def test_large_unsigned_grades_are_not_rounded():
    """Grades that float64 cannot tell apart, in arrays, lists and beside signed ones, agree as small ones do."""
    small = np.array([[2, 1, 0, 2], [1, 1, 0, 2], [2, 0, 0, 1]])
    for large in (small.astype(np.uint64) + np.uint64(2**64 - 3), small + 2**62):
        for metric in ("nominal", "ordinal", "interval"):
            wanted = fn.krippendorff_alpha(small, metric)
            assert fn.krippendorff_alpha(large, metric) == pytest.approx(wanted)
            assert fn.krippendorff_alpha([*large.tolist(), [None] * 4], metric) == pytest.approx(wanted)
        for weights in (None, "linear"):
            assert fn.cohen_kappa(large[0], large[1], weights) == fn.cohen_kappa(small[0], small[1], weights)
    assert fn.cohen_kappa(np.array([2**53 + 1, 2**53, 5], np.uint64), np.array([2**53, 2**53 + 1, 5])) == 0.0


def test_masked_grades_are_missing():
    masked = np.ma.masked_array([[1.0, 2], [1, 3]], mask=[[0, 0], [0, 1]])
    assert math.isnan(fn.krippendorff_alpha(masked))  # one item has two grades, and all of them are equal
    counts = np.ma.masked_array([[1, 2, 3], [1, 2, 9], [2, 9, 3]], mask=[[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    plain = counts.astype(np.float64).filled(math.nan)
    for metric in ("nominal", "ordinal", "interval", "ratio"):
        assert fn.krippendorff_alpha(counts, metric) == fn.krippendorff_alpha(plain, metric)
    with pytest.raises(fn.InputError, match="a lacks grades, the first at position 2"):
        fn.cohen_kappa(counts[1], [1, 2, 3])


def test_grades_in_series_and_of_several_kinds():
    pandas = pytest.importorskip("pandas")
    words = ["a", "b", "b"]
    for dtype in (object, "string", "category"):
        assert fn.cohen_kappa(pandas.Series(words, dtype=dtype), words) == 1
    with pytest.raises(fn.InputError, match="b lacks grades, the first at position 1"):
        fn.cohen_kappa([1, 2], pandas.Series([1, None], dtype="Int64"))
    with pytest.raises(fn.InputTypeError, match="grades are of several kinds: int, str; give all as numbers"):
        fn.cohen_kappa([1, 2, 3], ["1", "2", "3"])
