"""Parameters by which one name has several numbers: laws, exact expectations of large ties, and the tools that divide so."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pyarrow as pa
import pytest

import fastndcg as fn

OVER = ("n_relevant", "cutoff", "returned", "hits", "k")


def mean_of_hits(n, ones, places, hits=0, total=Fraction(0)):
    """AP over the hits where a tied group of n documents, `ones` of them relevant, has the last `places` ranks, after
    `hits` relevant documents on the first ranks.
    """
    whole, value = math.comb(n, places), Fraction(0)
    for found in range(max(0, places - (n - ones)), min(ones, places) + 1):
        chance = Fraction(math.comb(ones, found) * math.comb(n - ones, places - found), whole)
        added = Fraction(0)
        for place in range(places):
            above = Fraction(place * (found - 1), max(places - 1, 1))
            added += Fraction(found, places) * (hits + 1 + above) / (hits + place + 1)
        if hits + found:
            value += chance * (total + added) / (hits + found)
    return value


@pytest.mark.pure
@pytest.mark.parametrize(
    ("n", "ones", "k"), [(5, 2, 3), (40, 7, 11), (300, 1, 20), (300, 299, 20), (400, 150, 399), (400, 200, 1), (1200, 300, 100)]
)  # fmt: skip
@pytest.mark.parametrize("first", [0, 3])
def test_the_mean_of_hits_of_a_large_tie_across_the_cutoff(n, ones, k, first):
    grades = [1] * first + [1] * ones + [0] * (n - ones)
    scores = [2.0 + i for i in range(first)] + [1.0] * n
    got = fn.evaluate(
        fn.Rankings.from_lists([grades], [scores]), fn.AP(denominator="hits") @ (first + k)
    ).values[0, 0]
    assert got == pytest.approx(float(mean_of_hits(n, ones, k, first, Fraction(first))), rel=1e-12)


@pytest.mark.pure
def test_the_exact_formula_of_this_file_is_the_mean_over_all_orders():
    for n, ones, places, hits in ((5, 2, 3, 0), (5, 4, 2, 1), (6, 3, 5, 2), (4, 1, 1, 0)):
        query = oracle.Query([1] * hits + [1] * ones + [0] * (n - ones), [3] * hits + [0] * n)
        query = query._replace(scores=[9 - i for i in range(hits)] + [0] * n)
        wanted = oracle.score("AP", query, hits + places, denominator="hits")
        assert float(mean_of_hits(n, ones, places, hits, Fraction(hits))) == pytest.approx(wanted, rel=1e-14)


def test_a_million_tied_documents_over_the_cutoff():
    """The cost is that of a pass over the group; the law: only h of the first k count, whatever is below them."""
    n = 1_000_000
    rankings = fn.Rankings.from_offsets([0, n], np.arange(n) < 1000, np.zeros(n))
    few = fn.Rankings.from_offsets([0, 1000], np.arange(1000) < 1, np.zeros(1000))
    value, other = (
        fn.evaluate(each, fn.AP(denominator="hits") @ 5000).values[0, 0] for each in (rankings, few)
    )
    assert 0 < value < 0.01
    # one relevant document of 1000: the mean of 1 / rank
    assert other == pytest.approx(math.fsum(1 / rank for rank in range(1, 1001)) / 1000, rel=1e-13)


@pytest.mark.pure
def test_perfect_lists_have_the_value_1_where_they_can():
    rankings = fn.Rankings.from_lists(
        [[1] * 7, [1, 1, 0, 0], [1] * 30], [[0.5] * 7, [4, 3, 2, 1], [1, 2] * 15]
    )
    short = [fn.AP(denominator=name) @ 5 for name in ("cutoff", "returned", "hits")]
    measures = [*short, fn.P(denominator="n_relevant") @ 5, fn.R(denominator="cutoff") @ 5]
    assert (fn.evaluate(rankings, measures).values == 1.0).all()


@pytest.mark.pure
def test_divisors_by_hand():
    """3 relevant documents of 6 judged, 4 returned, k = 5: hits on the ranks 1 and 3."""
    rankings = fn.Rankings.from_lists([[1, 0, 1, 0]], [[4, 3, 2, 1]], judged=([0, 6], [1, 0, 1, 0, 1, 0]))
    total = 1 + 2 / 3
    wanted = dict(zip(OVER, (3, 3, 3, 2, 5), strict=True))
    got = {name: fn.evaluate(rankings, fn.AP(denominator=name) @ 5).values[0, 0] for name in OVER}
    assert got == {name: pytest.approx(total / over, rel=1e-15) for name, over in wanted.items()}
    precisions = [1, 1 / 2, 2 / 3, 2 / 4, 2 / 5]
    of_ranks = fn.evaluate(rankings, fn.AP(denominator="none") @ 5).values[0, 0]
    assert of_ranks == pytest.approx(sum(precisions) / 5, rel=1e-15)
    p, r = fn.P, fn.R
    measures = [
        p @ 5,
        p(denominator="returned") @ 5,
        p(denominator="n_relevant") @ 5,
        r(denominator="cutoff") @ 2,
    ]
    assert fn.evaluate(rankings, measures).values[:, 0].tolist() == [2 / 5, 2 / 4, 2 / 3, 1 / 2]
    assert fn.evaluate(rankings, fn.R(score_above=2) @ 5).values.tolist() == [[1 / 3]]


@pytest.mark.pure
def test_the_mean_of_precisions_far_beyond_the_list():
    """Ranks below the list count too, up to any cutoff."""
    rankings = fn.Rankings.from_lists([[0, 1, 1]], [[3, 2, 1]])
    for k in (1, 2, 3, 4, 100, 65_536, 65_537, 300_000):
        wanted = math.fsum(min(max(i - 1, 0), 2) / i for i in range(1, k + 1)) / k
        got = fn.evaluate(rankings, fn.AP(denominator="none") @ k).values[0, 0]
        assert got == pytest.approx(wanted, rel=1e-13), k
    far = fn.evaluate(rankings, fn.AP(denominator="none") @ 10**30).values[0, 0]
    assert far == pytest.approx((2 * (math.log(1e30) + 0.5772156649015329) - 2 - 1 / 2) / 1e30, rel=1e-13)


@pytest.mark.pure
@pytest.mark.parametrize("ties", ["average", "input", "worst", "best"])
def test_negative_gains_between_the_worst_and_the_best_ranking(ties):
    grades = np.array([2, -1, 0, 1, -2])
    measures = [fn.nDCG(floor="worst", ties=ties), fn.nDCG(floor="worst", ties=ties) @ 3]
    best, worst, tied = (
        fn.evaluate(fn.Rankings.from_lists([grades], [scores]), measures).values
        for scores in (grades, -grades, np.zeros(5))
    )
    assert best.tolist() == [[1.0], [1.0]]
    assert worst.tolist() == [[0.0], [0.0]]
    if ties in ("worst", "best"):
        assert tied.tolist() == (worst if ties == "worst" else best).tolist()
    shifted = fn.evaluate(fn.Rankings.from_lists([grades + 2], [[3, 1, 2, 5, 4]]), measures[0]).values
    moved = fn.evaluate(fn.Rankings.from_lists([grades], [[3, 1, 2, 5, 4]]), measures[0]).values
    assert moved[0, 0] == pytest.approx(shifted[0, 0], rel=1e-12)  # a constant more changes nothing
    alike = fn.evaluate(fn.Rankings.from_lists([[-1, -1]]), fn.nDCG(floor="worst", empty="nan")).values
    assert math.isnan(alike[0, 0])
    with pytest.raises(fn.InputError, match=r"gain -2 of grade -2.*or take nDCG\(floor='worst'\)"):
        fn.evaluate(fn.Rankings.from_lists([grades]), "nDCG")
    with pytest.raises(fn.MeasureError, match="except with ideal='judged'"):
        fn.evaluate(fn.Rankings.from_lists([grades]), fn.nDCG(floor="worst", ideal="scored"))


@pytest.mark.pure
def test_one_discount_is_not_a_power():
    """A list of one discount and the base of a power were equal tuples, and so shared a table."""
    rankings = fn.Rankings.from_lists([[1]])
    assert fn.evaluate(rankings, [fn.DCG(discount=[0.8]), fn.RBP(p=0.8)]).values.tolist() == [
        [0.8],
        [1 - 0.8],
    ]
    measures = [fn.AP(denominator="none") @ 1, fn.PFound(decay=1) @ 2]
    two = fn.Rankings.from_lists([[0, 1]], [[2, 1]])
    assert fn.evaluate(two, measures).values.tolist() == [[0.0], [1.0]]


@pytest.mark.pure
def test_values_have_one_name():
    assert fn.parse("relative_P.5") == fn.parse("rel_P@5") == fn.P(denominator="n_relevant") @ 5
    for measure in (
        fn.ERR(stop=[0, 0.5]),
        fn.PFound(stop={1: 0.5}, decay=0),
        fn.RR(of="best") @ 3,
        fn.R(score_above=-1),
    ):
        assert fn.parse(str(measure)) == measure
    assert fn.AP(denominator="hits")(denominator="n_relevant") == fn.AP
    assert fn.AP(denominator="hits").definition.term == "mean of hits"
    assert fn.AP(denominator="hits")(denominator="n_relevant").definition.term == "hits"


@pytest.mark.pure
@pytest.mark.parametrize(
    ("notation", "message"),
    [
        ("Rprec@5", "Rprec has no cutoff"), ("IPrec", "IPrec needs a recall level, as in IPrec@0.1"),
        ("IPrec@1.5", "recall=1.5 is not known: recall is a number from 0 to 1"),
        ("IPrec(rounding='even')", "rounding is one of 'up', 'nearest'"),
        ("SDCG@10", "SDCG@10 needs max_rel=, the highest grade of its scale, above min_rel=0"),
        ("SDCG(min_rel=2, max_rel=2)@5", "needs max_rel=, .* above min_rel=2"),
        ("RBP(p=1)", "p=1 is not known: p is a number above 0 and below 1"),
        ("F(beta=0)@3", "beta=0 is not known: beta is a number above 0"),
        ("AP(denominator='R')", "denominator is one of 'n_relevant', 'cutoff', 'returned', 'hits', 'k', 'none'"),
        ("AP(denominator='none')", r"up to a cutoff; name one, as in AP\(denominator='none'\)@10"),
        ("AP(judged_only=True, unjudged=1)", "both drops unjudged documents and grades them"),
        ("AP(rel=None)", "rel=None is not known: rel is a grade"),
        ("P(denominator='hits')", "denominator is one of 'cutoff', 'returned', 'n_relevant'"),
        ("nDCG(k=10)", "nDCG has no parameter 'k': write nDCG@10"),
        ("DCG(clip=0.1)", r"has clip= but does not use propensities; add ips=True.* DCG\(ips=True, clip=0.1\)"),
        ("PFound(decay=1.5)", "decay=1.5 is not known: decay is a probability"),
        ("PFound(stop='exp2')", "stop='exp2' is not known: stop is 'linear', a sequence or mapping"),
        ("PFound@3", r"not defined for grade 3.*would be 3\. Give one from 0 to 1"),
        ("ERR(stop={})", "at least one grade"), ("ERR(stop=[0, 0.1])", "has no gain for grade 3"),
        ("ERR(stop=[0, 0.1, 0.2, 0.3], max_rel=3)", "so max_rel=3 has no effect; pass only one"),
        ("ERR(max_rel=2)", r"not defined for grade 3, .* the scale ends at 2. Name the scale, as in ERR\(max_rel=3\)"),
        ("R(score_above=1e999)", "score_above holds inf, where a finite number was expected"),
        ("RR(of='last')", "of='last' is not known: of is one of 'first', 'best'"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused(notation, message):
    with pytest.raises((fn.MeasureError, fn.InputError), match=message):
        fn.evaluate(fn.Rankings.from_lists([[3, 0, 1]], [[3, 2, 1]]), notation)


# ---- the tools themselves ----


@pytest.mark.parametrize("k", [1, 5, 10, 100])
@pytest.mark.rivals
def test_precision_of_torchmetrics_over_what_is_returned(k):
    torch = pytest.importorskip("torch")
    retrieval = pytest.importorskip("torchmetrics.functional.retrieval")
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 30, 60)
    grades = [(rng.random(n) < rng.choice([0.05, 0.3, 0.8])).astype(np.int64) for n in lengths]
    scores = [rng.permutation(n).astype(np.float32) / 4 - 2 for n in lengths]
    measure = fn.P(denominator="returned", score_above=0) @ k
    wanted = [
        float(
            retrieval.retrieval_precision(torch.tensor(score), torch.tensor(grade), top_k=k, adaptive_k=True)
        )
        for grade, score in zip(grades, scores, strict=True)
    ]
    np.testing.assert_allclose(
        fn.evaluate(fn.Rankings.from_lists(grades, scores), measure)[measure], wanted, rtol=1e-6
    )


@pytest.mark.parametrize("top", [None, 1, 5])
@pytest.mark.rivals
def test_pfound_of_catboost_with_another_decay(top):
    catboost = pytest.importorskip("catboost.utils")
    rng = np.random.default_rng(6)
    queries = np.repeat(np.arange(60), rng.integers(1, 30, 60))
    grades, scores = rng.choice([0, 0.25, 0.5, 1], len(queries)), rng.integers(-4, 4, len(queries)) / 2
    name = f"PFound:decay=0.5{'' if top is None else f';top={top}'}"
    measure = fn.PFound(decay=0.5, ties="worst") if top is None else fn.PFound(decay=0.5, ties="worst") @ top
    got = fn.evaluate(fn.Rankings.from_query_ids(queries, grades, scores), measure).mean()[str(measure)]
    assert got == pytest.approx(catboost.eval_metric(grades, scores, name, group_id=queries)[0], rel=1e-6)


# ---- by other functions ----

ASKED = [
    *(fn.AP(denominator=over) @ 7 for over in (*OVER, "none")),
    fn.AP(denominator="hits", score_above=1) @ 7, fn.P(denominator="returned") @ 50, fn.P(denominator="n_relevant") @ 3,
    fn.R(denominator="cutoff") @ 3, fn.RR(of="best") @ 3, fn.PFound(stop=[0, 0.1, 0.5, 1]) @ 5, fn.ERR(stop=[0, 0.2, 0.3, 1]),
    fn.IPrec(rounding="nearest") @ 0.3, fn.nDCG(floor="worst") @ 5, fn.NumRel(empty="skip"),
]  # fmt: skip


def test_a_column_of_cutoffs():
    rankings = fn.Rankings.from_lists(
        [[1, 0, 1], [0, 1, 1, 1]], [[3, 2, 2], [1, 1, 1, 0]], queries=pa.table({"slots": [2, 3]})
    )
    for name in ("hits", "returned", "none"):
        by_query = fn.evaluate(rankings, fn.AP(denominator=name) @ "slots").values[0]
        each = [
            fn.evaluate(rankings, fn.AP(denominator=name) @ k).values[0, row] for row, k in ((0, 2), (1, 3))
        ]
        assert by_query.tolist() == each


@pytest.mark.pure
@pytest.mark.parametrize("measure", ASKED, ids=str)
def test_ties_have_a_range_and_explanations_add_up(measure):
    rankings = fn.Rankings.from_lists([[1, 0, 2, 1, 0, 3]], [[5, 4, 3, 2, 1, 0]])
    low, value, high = (each[0] for each in fn.tie_range(rankings, measure)[measure])
    assert low == value == high
    if measure.name == "NumRel":  # no ranking
        with pytest.raises(fn.MeasureError, match="Explain"):
            fn.explain(rankings, measure, query=0)
        return
    found = fn.explain(rankings, measure, query=0)
    assert found.value == fn.evaluate(rankings, measure).values[0, 0]
    assert math.fsum(found.to_arrow()["contribution"].drop_null().to_pylist()) == pytest.approx(
        value, rel=1e-12
    )


def test_the_share_of_all_false_positives_is_all_and_the_number_1_is_one():
    assert fn.AUC(max_fp=1.0) == fn.AUC(max_fp=np.float32(1)) == fn.parse("AUC(max_fp=1.0)") == fn.AUC
    one = fn.AUC(max_fp=1)
    assert str(one) == "AUC(max_fp=1)" and fn.parse(str(one)) == one == one(empty=1)(empty=0) != fn.AUC
    assert one == fn.AUC(max_fp=np.int64(1)) and hash(one) == hash(fn.parse("AUC(max_fp=1)"))


@pytest.mark.parametrize(
    ("least", "found"), [(2**53, 1), (2**53 + 2, 0), (2**53 - 1, 2), (-1.5, 2), (1e300, 0), (-1e300, 2)]
)
def test_whole_scores_are_compared_with_score_above_as_whole_numbers(least, found):
    for dtype in (np.int64, np.uint64):
        rankings = fn.Rankings.from_lists([[1, 1]], [np.array([2**53 + 1, 2**53], dtype)])
        assert fn.evaluate(rankings, fn.P(score_above=least) @ 2).values[0, 0] == found / 2


@pytest.mark.parametrize("text", [["AP@10"], ("AP@10",), None, 3, b"AP@10", fn.AP])
def test_what_is_no_text_is_no_notation(text):
    for read in (fn.parse, fn.parse_many):
        with pytest.raises(fn.InputTypeError, match="text is a .*; expected the notation of measures"):
            read(text)
