"""`evaluate` against the oracle, and the promises about bits: no thread, batch, order or company changes a value."""

import itertools
import math
from fractions import Fraction

import cases
import numpy as np
import oracle
import pyarrow as pa
import pytest
import strategies as ours
from hypothesis import given
from hypothesis import strategies as st
from strategies import Ragged

import fastndcg as fn
from fastndcg.measures import as_measures
from fastndcg.scoring import launch

pytestmark = pytest.mark.compiled


def same_bits(one, other):
    return one.shape == other.shape and np.asarray(one).tobytes() == np.asarray(other).tobytes()


def tied(seed, lengths, *, ties, continuous):
    """Lists with about `ties` documents on each score."""
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.integers(0, max(n // ties, 1), n) for n in lengths]).astype(np.float32)
    if continuous:
        grades = np.where(
            rng.random(len(scores)) < 0.5, 0.0, rng.choice([0.1, 0.3, 0.7, 1.9, 2.6, 3.3], len(scores))
        )
    else:
        grades = rng.choice(np.arange(5, dtype=np.uint8), len(scores), p=[0.6, 0.2, 0.1, 0.06, 0.04])
    return Ragged(list(lengths), grades, scores)


@pytest.mark.parametrize("continuous", [False, True])
def test_ten_thousand_documents_with_heavy_ties(continuous):
    """Against closed forms; all measures with all parameters are in tests/measures/test_crossed.py."""
    table = tied(3, [10_000, 10_000], ties=500, continuous=continuous)
    scores = fn.evaluate(table.rankings(), ["nDCG", "nDCG@10", "nDCG@3000", "DCG(gain='exp2')@777"])
    for position, query in enumerate(table.queries()):
        wanted = [oracle.expected_ndcg(query, cutoff) or 0.0 for cutoff in (None, 10, 3000)]
        wanted.append(oracle.expected_dcg(query, 777, gain="exp2"))
        assert scores.values[:, position].tolist() == pytest.approx(wanted, rel=1e-12, abs=0)


# ---- named cases ----


@pytest.mark.pure
@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: f"{case.number}-{case.title}-{case.measure}")
def test_case(case):
    rankings = fn.Rankings.from_lists(case.relevance, case.scores)
    values = fn.evaluate(rankings, case.measure)[case.measure].tolist()
    assert values == pytest.approx(case.expected, rel=1e-15, abs=0, nan_ok=True)


@pytest.mark.pure
@pytest.mark.parametrize(
    "case", cases.REFUSALS, ids=lambda case: f"{case.number}-{case.title}-{case.measure}"
)
def test_refused_case(case):
    with pytest.raises(fn.InputError, match=case.message):
        fn.evaluate(fn.Rankings.from_lists(case.relevance, case.scores), case.measure)


@pytest.mark.pure
@pytest.mark.parametrize("golden", cases.GOLDEN, ids=lambda golden: f"{golden.system} {golden.cutoff}")
def test_golden_query_of_other_systems(golden):
    rows = list(golden.order)
    rankings = fn.Rankings.from_lists(
        [np.array(cases.GOLDEN_GRADES)[rows]],
        [np.array(cases.GOLDEN_SCORES)[rows]],
        judged=([0, len(cases.GOLDEN_POOL)], cases.GOLDEN_POOL) if golden.judged else None,
    )
    assert fn.evaluate(rankings, golden.measure)[golden.measure].tolist() == pytest.approx(
        [golden.expected], rel=1e-14
    )


@pytest.mark.pure
def test_literature():
    grades, published = cases.LITERATURE_LINEAR
    scores = fn.evaluate(fn.Rankings.from_lists([grades]), "nDCG@1,2,3,4,5")
    assert {measure.cutoff: round(float(scores[measure][0]), 2) for measure in scores.measures} == published
    grades, got, best = cases.LITERATURE_EXP2
    scores = fn.evaluate(
        fn.Rankings.from_lists([grades]), "DCG(gain='exp2')@5, IDCG(gain='exp2')@5, nDCG(gain='exp2')@5"
    )
    assert scores.values[:, 0].tolist() == pytest.approx([got, best, got / best], rel=1e-15)


def test_an_ideal_of_what_was_returned_has_no_averaged_ties():
    """It differs between orders where there is a cutoff; without one it is that of the scored documents."""
    slots = {"slots": [2, 2, 2]}
    rankings = fn.Rankings.from_lists([[0, 2, 1], [], [1]], [[1, 1, 1], [], [0]], queries=slots)
    for measure in ("nDCG(ideal='returned')@2", "IDCG(ideal='returned')@2", "nDCG(ideal='returned')@slots"):
        with pytest.raises(
            fn.MeasureError,
            match=r"each order of tied documents; use ties=\"input\", as in \w+\(ties='input', ideal='returned'\)@",
        ):
            fn.evaluate(rankings, measure)
    both = fn.evaluate(rankings, ["nDCG(ideal='returned')", "nDCG(ideal='scored')"]).values
    assert both[0].tobytes() == both[1].tobytes()
    found = fn.evaluate(
        rankings, ["nDCG(ideal='returned', ties='input')@2", "nDCG(ideal='returned', ties='worst')@2"]
    )
    assert found.values[:, 0].tolist() == pytest.approx([1 / math.log2(3), 1 / math.log2(3)])


# ---- scores are compared in their own precision ----


TIED = (cases.D[1] + cases.D[2]) / 2


@pytest.mark.pure
@pytest.mark.parametrize(
    ("grades", "scores", "value"),
    [
        ([0, 1], np.array([1.0000000001, 1.0000000002]), 1.0),
        ([0, 1], np.array([1.0000000001, 1.0000000002], np.float32), TIED),  # one float32
        ([0, 1], np.array([1.0, 1.001], np.float16), 1.0),
        ([1, 0], [-0.0, 0.0], TIED), ([1, 0], [0.0, -0.0], TIED),
        (np.array([False, True]), [0.1, 0.9], 1.0),
    ],
)  # fmt: skip
def test_scores_are_compared_in_their_own_precision(grades, scores, value):
    assert fn.ndcg(grades, scores).tolist() == pytest.approx([value], rel=1e-15)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("dtype", "falling"),
    [
        ("int64", [2**63 - 1, 2**63 - 2, 2**53 + 1, 2**53, 0, -1, -(2**53), -(2**53) - 1, -(2**63) + 1, -(2**63)]),
        ("uint64", [2**64 - 1, 2**64 - 2, 2**63 + 1, 2**63, 2**63 - 1, 2**53 + 1, 2**53, 1, 0]),
        ("uint32", [2**32 - 1, 2**32 - 2, 2**31, 2**24 + 1, 2**24, 0]),
        ("int32", [2**31 - 1, 2**31 - 2, 2**24 + 1, 2**24, 0, -(2**24), -(2**24) - 1, -(2**31)]),
        ("uint16", [65535, 65534, 2049, 2048, 0]),
        ("int16", [32767, 2049, 2048, 0, -2048, -2049, -32768]),
        ("int8", [127, 1, 0, -1, -127, -128]),
        ("uint8", [255, 254, 128, 127, 0]),
        ("bool", [True, False]),
        ("float64", [math.inf, 1e300, 1.0000000000000002, 1.0, 5e-324, 0.0, -5e-324, -1e300, -math.inf]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["=", ">", "<"])
def test_integers_are_compared_as_integers(dtype, falling, order):
    """Cases 11 and 12: any two neighbours are told apart, in one direction and the other."""
    values = np.array(falling, np.dtype(dtype).newbyteorder(order))
    n = len(values)
    gains = [2.0**i for i in range(n - 1, -1, -1)]
    assert fn.ndcg(gains, values).tolist() == [1.0]
    assert fn.ndcg(gains[::-1], values[::-1]).tolist() == [1.0]
    for first, second in zip(values[:-1], values[1:], strict=True):
        pair = np.array([first, second], values.dtype)
        assert fn.ndcg([1, 0], pair).tolist() == [1.0]
        assert fn.ndcg([0, 1], pair).tolist() == [cases.D[2]]


# ---- the same bits everywhere ----


@pytest.mark.parametrize("measures", [["DCG", "CG"], ["NumRet", "NumRet@9"], ["DCG", "P@5", "RR"]])
def test_an_empty_list_among_long_ones(measures):
    """Few relevant documents, so that the long lists are ranked one by one; the lists before are ranked side by side."""
    lengths = [100] * 23 + [0] + [100] * 8
    grades = np.zeros(sum(lengths), np.uint8)
    grades[:800], grades[850::100] = 1, 1
    scores = np.random.default_rng(0).random(len(grades), dtype=np.float32)
    values = fn.evaluate(fn.Rankings.from_groups(lengths, grades, scores), measures, threads=1).values
    assert (values[:, 23] == 0).all()
    assert (values[0, [*range(23), *range(24, 32)]] > 0).all()


# ---- perfect is 1.0, and nothing is above ----

GAINS_THAT_DO_NOT_ADD_UP = [[0, 0.1, 0.3, 0.6, 0.7], [0, 0.1, 0.2, 0.3, 1.1], [0, 1 / 3, 2 / 3, 1 / 7, 1 / 9]]


@given(
    st.integers(0, 2**32), st.integers(1, 400), st.sampled_from(["linear", "exp2", "binary", *GAINS_THAT_DO_NOT_ADD_UP]),
    st.sampled_from(ours.DISCOUNTS[:6]), st.sampled_from([None, 1, 3, 10, 100, 1000]), st.sampled_from(ours.TIES), st.sampled_from(["judged", "scored", "returned"]),
    st.sampled_from([None, "float32", "float64"]),
)  # fmt: skip
def test_a_perfect_ranking_is_exactly_one(seed, n, gain, discount, cutoff, ties, ideal, fractions):
    """Documents ordered by gain, in random rows, documents of equal gain tied or not; grades are levels or fractions."""
    rng = np.random.default_rng(seed)
    ties = "input" if ideal == "returned" and ties == "average" else ties
    if fractions:
        grades = rng.choice([0.1, 0.2, 0.3, 1 / 3, 0.7, 1.1], n) if seed % 2 else rng.random(n)
        gain, orders = ("linear", "exp2")[seed % 2], [grades.astype(fractions)]
        grades = orders[0]
    else:
        grades = rng.integers(0, 5, n)
        grades[0] = 1
        worth = np.array([oracle.gain_function(gain)(oracle.Document(int(grade))) for grade in grades])
        orders = [worth, worth + rng.random(n) * 1e-9, np.round(worth * 64)]
        if len({*zip(np.round(worth * 64).tolist(), worth.tolist(), strict=True)}) != len({*worth.tolist()}):
            return
    for scores in orders:
        measure = fn.nDCG(gain=gain, discount=discount, ties=ties, ideal=ideal)
        measure = measure if cutoff is None else measure @ cutoff
        assert fn.evaluate(fn.Rankings.from_groups([n], grades, scores), measure).values.tolist() == [[1.0]]


def test_two_thousand_perfect_rankings():
    """Where a prefix sum of discounts stands in for the ideal's own sum, a quarter of these is not 1.0."""
    rng = np.random.default_rng(9)
    lengths = rng.integers(1, 120, 2000)
    grades = rng.integers(0, 5, int(lengths.sum()))
    grades[np.cumsum(lengths) - 1] = 4
    measures = [
        fn.nDCG(gain=gain) @ k for gain in ("linear", "exp2", [0, 0.1, 0.3, 0.6, 0.7]) for k in (10, 64, 120)
    ]
    assert (fn.evaluate(fn.Rankings.from_groups(lengths, grades, grades), measures).values == 1.0).all()


@pytest.mark.pure
@given(
    st.lists(
        st.sampled_from([1.0, 1 + 2**-52, 1 + 2**-51, 1 - 2**-53, 0.1, math.nextafter(0.1, 1)]),
        min_size=1,
        max_size=9,
    ),
    st.data(),
)
def test_nothing_is_above_one(grades, data):
    """Gains that differ in the last bit, tied: the rounding of a mean must not lift a value above 1."""
    scores = data.draw(st.lists(st.integers(0, 1), min_size=len(grades), max_size=len(grades)))
    rankings = fn.Rankings.from_lists([grades], [scores])
    measures = [
        fn.nDCG(ties=ties, ideal=ideal) @ cutoff
        for ties in ours.TIES
        for ideal in ("judged", "scored", "returned")
        for cutoff in (1, 2, 3, 9)
        if (ties, ideal) != ("average", "returned")
    ]
    assert fn.evaluate(rankings, measures).values.max() <= 1.0


@given(
    st.integers(0, 2**32), st.integers(2, 400), st.sampled_from(["linear", "exp2", *GAINS_THAT_DO_NOT_ADD_UP])
)
def test_nothing_is_above_one_in_nearly_perfect_long_lists(seed, n, gain):
    """The scores of a perfect ranking, some made ties: values near 1."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 5, n)
    scores = np.argsort(np.argsort(grades, kind="stable")) // int(rng.integers(1, 4))
    scores = scores.astype(np.float32)
    values = fn.evaluate(
        fn.Rankings.from_groups([n], grades, scores),
        [fn.nDCG(gain=gain, ties=ties) @ k for ties in ours.TIES for k in (1, 10, 1000)],
    ).values
    assert values.max() <= 1.0


# ---- shapes ----


@pytest.mark.pure
@pytest.mark.parametrize(
    ("lists", "scores", "values"),
    [
        ([[2]], [[0.5]], [[1], [2], [2], [2], [1], [1]]),
        ([[], [1, 0], []], [[], [1, 2], []], [[0, cases.D[2], 0], [0, cases.D[2], 0], [0, 1, 0], [0, 1, 0], [0, 2, 0], [0, 0, 0]]),
        ([[], []], [[], []], [[0, 0]] * 6),
        ([], [], [[]] * 6),
    ],
)  # fmt: skip
def test_short_and_empty_lists(lists, scores, values):
    for dtype in (np.uint8, np.int64, np.float64):
        relevance = [np.array(each, dtype) for each in lists]
        found = fn.evaluate(fn.Rankings.from_lists(relevance, scores), "nDCG, DCG, IDCG, CG, NumRet, nDCG@1")
        assert found.values.tolist() == values
        assert found.summary().rows[0]["queries"] == len(lists)
        assert lists or all(map(math.isnan, found.mean().values()))


@pytest.mark.pure
def test_a_pool_without_scored_documents():
    """Nothing was returned though something relevant is known: nDCG is 0, and not empty."""
    rankings = fn.Rankings.from_offsets([0, 0, 1], [1], [0.5], judged=([0, 2, 3], [1, 2, 1]))
    scores = fn.evaluate(
        rankings,
        [
            fn.nDCG(empty=0.5) @ 2,
            fn.IDCG(empty=0.5) @ 1,
            fn.DCG(empty=0.5) @ 2,
            fn.nDCG(ideal="scored", empty=0.5),
        ],
    )
    assert scores.values.tolist() == [[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [0.5, 1.0]]


@pytest.mark.pure
def test_the_top_of_a_scale_is_what_a_grade_can_gain():
    """`ideal="full"` takes the largest gain of the scale, of the grades that gain anything."""
    rankings = fn.Rankings.from_lists([[2, 1, 0]])
    asked = [fn.IDCG(gain=[0, 5, 1], ideal="full") @ 1, fn.IDCG(gain=[0, 5, 1], ideal="full", rel=2) @ 1, fn.IDCG(gain={1: 5, 2: 1}, ideal="full", rel=2) @ 1,
             fn.IDCG(gain=[0, 5, 1, 9], ideal="full") @ 1, fn.IDCG(gains={1: 5}, ideal="full") @ 1, fn.IDCG(gain="binary", ideal="full") @ 1,
             fn.IDCG(gain="exp2", ideal="full") @ 1]  # fmt: skip
    assert fn.evaluate(rankings, asked).values[:, 0].tolist() == [5.0, 1.0, 1.0, 9.0, 5.0, 1.0, 3.0]


@pytest.mark.pure
def test_huge_cutoffs():
    rankings = fn.Rankings.from_lists([[1, 2, 0]], [[3, 2, 1]])
    scores = fn.evaluate(rankings, [fn.nDCG, fn.nDCG @ 3, fn.nDCG @ 2**31, fn.nDCG @ 2**62, fn.nDCG @ 2**70])
    assert len(set(scores.values[:, 0].tolist())) == 1


# ---- pairs of all grades ----

GRADES_OF_PAIRS = {
    "five": [0, 1, 2, 3, 4],
    "fractions": [0.0, 0.1, 0.25, 1.0, 1.1, 2.5, 2.6],
    "fractions of many": [i / 7 for i in range(40)],  # more than are counted by grade
    "negative": [-2, -1, 0, 3],
    "negative fractions": [-0.5, 0.0, 0.5],
    "one": [2],
}


def share_of_pairs(grades, scores, of_tied):
    """Of pairs of different grades, those in the right order; NaN without one. Numbers of pairs and halves are exact."""
    right = pairs = 0
    for one, other in itertools.combinations(range(len(grades)), 2):
        higher, lower = (one, other) if grades[one] > grades[other] else (other, one)
        if grades[one] != grades[other]:
            pairs += 1
            right += of_tied if scores[one] == scores[other] else scores[higher] > scores[lower]
    return right / pairs if pairs else math.nan


@pytest.mark.compiled
@pytest.mark.parametrize("name", GRADES_OF_PAIRS)
def test_pairs_of_all_grades(name, monkeypatch):
    """The same compiled and plain, to the last bit, as brute force over the pairs; and the oracle says the same."""
    random, kinds = np.random.default_rng(len(name)), np.array(GRADES_OF_PAIRS[name])
    lengths = [0, 1, 2, 3, *random.integers(2, 70, 60), 300]
    grades = [random.choice(kinds, n).tolist() for n in lengths]
    scores = [
        (random.integers(0, max(n // 2, 1), n) if n % 3 else random.permutation(n)).tolist() for n in lengths
    ]
    rankings = fn.Rankings.from_lists(grades, scores)
    rules = {"average": 0.5, "worst": 0, "best": 1}
    measures = [f"AUC(pairs='graded', empty='nan', ties='{ties}')" for ties in rules]
    found = {}
    for kernels in ("plain", "compiled"):
        monkeypatch.setenv("FASTNDCG_KERNELS", kernels)
        found[kernels] = fn.evaluate(rankings, measures).values
    assert found["plain"].tobytes() == found["compiled"].tobytes()
    for values, share in zip(found["plain"], rules.values(), strict=True):
        wanted = [share_of_pairs(*each, share) for each in zip(grades, scores, strict=True)]
        np.testing.assert_array_equal(values, wanted)
    assert name != "one" or np.isnan(found["plain"]).all()
    short = [
        place for place, n in enumerate(lengths) if n < 25 and oracle.number_of_orders(scores[place]) < 200
    ]
    assert len(short) > 5
    for place in short:
        query = oracle.Query(grades[place], scores[place])
        for row, ties in enumerate(rules):
            wanted = oracle.score("AUC", query, ties=ties, empty="nan", pairs="graded")
            assert found["plain"][row, place] == pytest.approx(wanted, rel=1e-13, nan_ok=True)


# ---- means ----


def exact_mean(values, weight=None):
    if weight is None:
        return float(sum(map(Fraction, values)) / len(values))
    return float(
        sum(Fraction(w) * Fraction(v) for v, w in zip(values, weight, strict=True))
        / sum(map(Fraction, weight))
    )


@pytest.mark.pure
@pytest.mark.parametrize(
    ("lists", "weight", "empty", "mean"),
    [
        ([[1], [0], []], None, 0.0, 1 / 3), ([[1], [0], []], None, 1.0, 1.0),
        ([[1], [0], []], None, "nan", math.nan), ([[1], [0], []], None, "skip", 1.0),
        ([[1], [0], [0, 1]], [1.0, 5.0, 3.0], "skip", exact_mean([1.0, cases.D[2]], [1, 3])),
        ([[1], [0], [0, 1]], [1.0, 5.0, 3.0], 0.0, exact_mean([1.0, 0.0, cases.D[2]], [1, 5, 3])),
        ([[1], [0]], [0.0, 0.0], 0.0, math.nan),
        ([[0]], None, "skip", math.nan),
    ],
)  # fmt: skip
def test_the_mean_and_empty_queries(lists, weight, empty, mean):
    """Skipped queries take their weight with them, and a mean over nothing is NaN."""
    measure = fn.nDCG(empty=empty)
    found = fn.evaluate(fn.Rankings.from_lists(lists, weight=weight), measure).mean()[str(measure)]
    assert found == mean or (math.isnan(found) and math.isnan(mean))


def test_the_mean_of_many_is_correctly_rounded_and_independent_of_order():
    rng = np.random.default_rng(4)
    n = 30_000
    grades, marks, weight = rng.integers(0, 4, 3 * n), rng.random(3 * n), rng.lognormal(0, 8, n)
    scores = fn.evaluate(fn.Rankings.from_groups([3] * n, grades, marks, weight=weight), "nDCG, DCG")
    order = rng.permutation(n)
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    shuffled = fn.evaluate(
        fn.Rankings.from_groups([3] * n, grades[rows], marks[rows], weight=weight[order]), "nDCG, DCG"
    )
    for name, value in scores.mean().items():
        assert value == exact_mean(scores[name].tolist(), weight.tolist())
        assert value == shuffled.mean()[name]


# ---- Scores ----


def test_the_summary_counts_queries_and_empty_ones():
    rankings = fn.Rankings.from_lists([[1, 0], [0, 0], [], [0, 1]], [[2, 1], [2, 1], [], [2, 1]])
    scores = fn.evaluate(rankings, "nDCG, nDCG(empty='skip'), nDCG(empty=1.0), DCG, NumRet")
    rows = {row["measure"]: row for row in scores.summary().rows}
    assert [row["queries"] for row in rows.values()] == [4] * 5
    assert [row["empty"] for row in rows.values()] == [2, 2, 2, 1, 0]
    values = scores["nDCG"]
    row = rows["nDCG"]
    assert row["mean"] == scores.mean()["nDCG"]
    assert row["std"] == pytest.approx(values.std(ddof=1), rel=1e-14)
    assert [row[name] for name in ("min", "q25", "median", "q75", "max")] == pytest.approx(
        np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    )
    assert rows["nDCG(empty='skip')"]["mean"] == scores.mean()["nDCG(empty='skip')"]
    text = repr(scores)
    assert "nDCG(empty='skip')" in text and "median" in text
    assert "<table" in scores._repr_html_() and "&#x27;skip&#x27;" in scores._repr_html_()
    names = "measure mean std min q25 median q75 max queries empty"
    assert scores.summary().to_arrow().column_names == names.split()


# ---- ndcg ----


@pytest.mark.pure
def test_ndcg_is_evaluate():
    words = {"gain": "exp2", "discount": "ln", "ties": "worst", "ideal": "full", "empty": 1.0}
    table = tied(5, [0, 3, 1, 0, 6, 2], ties=2, continuous=False)
    wanted = fn.evaluate(table.rankings(), fn.nDCG(**words) @ 3).values[0]
    ids, filled = np.repeat(np.arange(6), table.lengths), np.array(table.lengths) > 0
    for given_, values in (
        ({"offsets": table.offsets}, wanted), ({"group": table.lengths}, wanted), ({"query_ids": ids}, wanted[filled])
    ):  # fmt: skip
        assert same_bits(fn.ndcg(table.relevance, table.scores, k=3, **given_, **words), values)


@pytest.mark.pure
def test_ndcg_of_one_list_and_of_matrices():
    assert fn.ndcg([1, 0], [1, 2]).tolist() == [cases.D[2]]
    assert fn.ndcg([[1, 0], [0, 1]], [[1, 2], [1, 2]]).tolist() == [cases.D[2], 1.0]


# ---- chunks ----


@pytest.mark.pure
@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 7, 40, launch.HELD + 1]), max_size=40),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 5),
    st.data(),
)
def test_each_query_is_in_one_chunk(lengths, size, of_long, threads, data):
    rows = sum(lengths)
    rankings = fn.Rankings.from_groups(np.array(lengths, np.int64), np.zeros(rows), np.zeros(rows))
    first = data.draw(st.integers(0, len(lengths)))
    last = data.draw(st.integers(first, len(lengths)))
    chunks = launch._chunks(rankings, first, last, threads, launch.Sizes(size, of_long))
    assert chunks[0] == first and chunks[-1] == last
    assert (np.diff(chunks) >= 0).all()
    documents = np.diff(rankings.offsets[chunks])
    parts, longest = max(len(documents), 1), max(lengths, default=0)
    assert documents.max(initial=0) <= documents.sum() / parts + longest + 1


def _of_short_lists(queries):
    random = np.random.default_rng(11)
    lengths = random.integers(0, 60, queries)
    rows = int(lengths.sum())
    return fn.Rankings.from_groups(
        lengths, random.integers(0, 4, rows).astype(np.uint8), random.integers(0, 30, rows).astype(np.float32)
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_change_no_value(threads):
    rankings, measures = _of_short_lists(5000), as_measures("nDCG@10")
    wanted = launch.score(measures, rankings, threads)
    assert same_bits(launch.score(measures, rankings, threads, launch.Sizes(chunk=100)), wanted)


@pytest.mark.pure
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("grades", "scores"), [("int64", "float64"), ("int8", "int16"), ("float64", "uint64")]
)
def test_parts_that_are_cast_together_change_no_value(grades, scores, threads):
    plain = _of_short_lists(300)
    wanted = launch.score(as_measures("nDCG@10"), plain, 1)
    for lowest in (0, -2):  # of which one is the level 0 already
        rankings = fn.Rankings.from_offsets(
            plain.offsets, plain.relevance.astype(grades) + lowest, plain.scores.astype(scores)
        )
        measures = as_measures("nDCG@10" if lowest == 0 else "DCG@10")
        whole = launch.score(measures, rankings, 1, launch.Sizes(cast=1 << 40, cast_wide=1 << 40))
        assert lowest or same_bits(whole, wanted)
        parts = launch.score(measures, rankings, threads, launch.Sizes(cast=100, cast_wide=50))
        assert same_bits(parts, whole)


@pytest.mark.pure
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_leave_no_chunk_out(threads, monkeypatch):
    rankings, run = _of_short_lists(300), launch._run_parallel
    measures = as_measures("nDCG@10")
    wanted = launch.score(measures, rankings, 1)

    def run_over_marks(serial, threads, chunks, documents, plan, out):
        out[:] = -1.0  # new memory may hold what an evaluation before has left there
        run(serial, threads, chunks, documents, plan, out)
        assert (out != -1.0).all()

    monkeypatch.setattr(launch, "_run_parallel", run_over_marks)
    assert same_bits(launch.score(measures, rankings, threads, launch.Sizes(chunk=100)), wanted)


def test_one_query_is_plain_floats():
    rng = np.random.default_rng(3)
    measures = ["ndcg@3", "AP", fn.RR(empty="skip"), "ERR@5"]
    for n_docs in (0, 1, 2, 17, 300):
        grades, scores = rng.integers(0, 3, n_docs), rng.integers(0, 9, n_docs)
        found = fn.evaluate_query(grades, scores, measures)
        whole = fn.evaluate(fn.Rankings.from_offsets([0, n_docs], grades, scores), measures)
        assert list(found) == [each.label for each in whole.measures]
        np.testing.assert_array_equal(list(found.values()), whole.values[:, 0])
        alone = fn.evaluate_query(pa.array(grades), pa.array(scores), fn.AP)
        assert type(alone) is float and alone == found["AP"]
    assert fn.evaluate_query([1, 0], [0.5, np.nan], "RR", nan="last") == 1.0
    with pytest.raises(fn.InputError, match="NaN"):
        fn.evaluate_query([1, 0], [0.5, np.nan], "RR")
    with pytest.raises(fn.InputError, match="relevance has 1 value and scores 2"):
        fn.evaluate_query([1], [2, 3], "RR")


QRELS, RUN = {"q1": {"a": 1, "b": 2}}, {"q1": {"b": 0.5, "c": 0.9}}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((QRELS, RUN, "RR"), {}),
        ((QRELS, RUN), {"measures": "RR"}),
        ((QRELS,), {"run": RUN, "measures": "RR"}),
        ((), {"qrels": QRELS, "run": RUN, "measures": "RR"}),
        ((fn.Rankings.from_qrels_run(QRELS, RUN), "RR"), {}),
        ((), {"rankings": fn.Rankings.from_qrels_run(QRELS, RUN), "measures": "RR"}),
    ],
)
def test_arguments_are_given_by_place_or_by_name(given, named):
    assert fn.evaluate(*given, **named).mean() == {"RR": 0.5}


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((QRELS, RUN), {}, "measures is a dict; judgments and a run come before"),
        ((QRELS,), {}, "no measures are given; name one or several"),
        ((), {"qrels": QRELS, "run": RUN}, "no measures are given"),
        ((), {"qrels": QRELS, "measures": "RR"}, "qrels= takes the place of rankings, and needs run="),
        ((QRELS, RUN, "RR"), {"qrels": QRELS}, "qrels= takes the place of rankings"),
    ],
)
def test_arguments_that_are_missing_or_too_many_are_named(given, named, said):
    with pytest.raises(fn.InputTypeError, match=said):
        fn.evaluate(*given, **named)
