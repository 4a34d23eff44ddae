"""judgment_range: the least and the greatest value, against all assignments of grades to unjudged documents."""

import itertools

import numpy as np
import pytest

import fastndcg as fn
from fastndcg.measures import DEFINITIONS
from fastndcg.scoring import assignments

pytestmark = pytest.mark.compiled

GRADES = (0, 1, 2, 3)


class Query:
    """A query in lists: grades of the returned documents, None where nobody judged, and of judged ones that were not."""

    def __init__(self, returned, scores, missed):
        self.returned, self.scores, self.missed = returned, scores, missed

    @property
    def judged(self):
        return [grade for grade in self.returned if grade is not None] + self.missed

    def assigned(self, grades):
        given = iter(grades)
        return Query(
            [next(given) if grade is None else grade for grade in self.returned], self.scores, self.missed
        )


def rankings_of(queries, *, pool, propensity=False):
    returned = [query.returned for query in queries]
    offsets = np.cumsum([0, *map(len, returned)])
    flat = [grade for each in returned for grade in each]
    kept = [query.judged for query in queries]
    seen = np.concatenate([np.resize([1.0, 0.5, 0.25, 0.8], len(each)) for each in returned])
    return fn.Rankings.from_offsets(
        offsets,
        np.array([7 if grade is None else grade for grade in flat], np.float64),
        np.array([score for query in queries for score in query.scores]),
        is_judged=np.array([grade is not None for grade in flat], np.bool_),
        judged=(
            np.cumsum([0, *map(len, kept)]),
            np.array([grade for each in kept for grade in each], np.float64),
        )
        if pool
        else None,
        propensity=seen if propensity else None,
    )


def random_queries(seed, n, grades=GRADES, *, longest=7, most=3):
    """Ragged, with heavy ties; some with nothing judged, with everything judged, or without a document."""
    random = np.random.default_rng(seed)
    queries = []
    for _ in range(n):
        length = int(random.integers(0, longest + 1))
        returned = random.choice(grades, length, p=None).tolist()
        if random.random() < 0.3:
            returned = [random.choice([0.0, grades[1]]) for _ in returned]
        for place in random.permutation(length)[: int(random.integers(0, most + 1))]:
            returned[place] = None
        scores = random.integers(0, int(random.choice([1, 2, 4, 100])), length).astype(float)
        queries.append(
            Query(returned, scores.tolist(), random.choice(grades, random.integers(0, 3)).tolist())
        )
    return queries


def enumerated(queries, measures, grades, *, pool, propensity=False):
    every, of_query = [], []
    for place, query in enumerate(queries):
        for given in itertools.product(grades, repeat=query.returned.count(None)):
            every.append(query.assigned(given))
            of_query.append(place)
    values = fn.evaluate(rankings_of(every, pool=pool, propensity=propensity), measures).values
    low, high = (np.full((len(measures), len(queries)), np.nan) for _ in range(2))
    for row, got in enumerate(values):
        np.fmin.at(low[row], of_query, got)
        np.fmax.at(high[row], of_query, got)
    return low, high


REFUSED = {"Judged", "RBPresidual", *(name for name in DEFINITIONS if DEFINITIONS[name].way == "intents")}


def asked():
    """Every measure, and those of `listed` with every parameter that could change which grades are extreme."""
    yield from (chosen := list(listed()))
    for name in DEFINITIONS.keys() - REFUSED - {fn.parse(notation).name for notation in chosen}:
        yield f"{name}(empty='nan')@3" if DEFINITIONS[name].cut == "rank" else f"{name}(empty='nan')"


def listed():
    gains = ("'linear'", "'exp2'", "'binary'", "[0, 3, 1, 2]", "{0: 0, 1: 0, 2: 5, 3: 5}")
    for ties, ideal in itertools.product(
        ("average", "input", "worst", "best"),
        ("judged", "scored", "full", "judged_uncut", "judged_returned", "returned"),
    ):
        for cutoff in ("", "@1", "@3", "@5"):
            if ideal != "returned" or ties == "input" or not cutoff:
                yield f"nDCG(ties='{ties}', ideal='{ideal}'){cutoff}"
    for gain, ideal in itertools.product(gains, ("judged", "full", "scored")):
        yield f"nDCG(gain={gain}, ideal='{ideal}', empty='nan')@4"
    for discount in ("'jarvelin'", "'reciprocal'", "'ln'", "1.5", "[3, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]"):
        yield f"nDCG(discount={discount}, empty=1)"
    yield from (
        "nDCG(judged_only=True)@3",
        "nDCG(unjudged=2)@3",
        "nDCG(rel=2)@3",
        "nDCG(gain='binary', rel=2, ideal='full')@2",
    )
    for ties in ("average", "input", "worst", "best"):
        for name in (
            "DCG",
            "CG",
            "IDCG",
            "SDCG(max_rel=3)",
            "ERR",
            "RBP",
            "AP",
            "RR",
            "P",
            "R",
            "F",
            "Success",
            "NumRet(rel=1)",
        ):
            stem, _, rest = name.partition("(")
            yield f"{stem}(ties='{ties}'{', ' + rest if rest else ')'}@3"
        yield from (f"{name}(ties='{ties}')" for name in ("AP", "Rprec", "Bpref", "infAP", "RR", "SetAP"))
        yield f"IPrec(ties='{ties}')@0.5"
    yield from (
        *(f"AP(denominator='{over}')@2" for over in ("cutoff", "returned", "k", "none")),
        *(f"AP(denominator='{over}', ties='input')" for over in ("cutoff", "returned", "hits", "k")),
        *(f"AP(denominator='hits', ties='input'){cut}" for cut in ("@1", "@2", "@4")),
        "AP(denominator='hits', empty='nan')",
        *(f"P(denominator='{over}')@3" for over in ("returned", "n_relevant")),
        *(f"P(denominator='n_relevant', ties='{ties}')@2" for ties in ("input", "worst", "best")),
        "R(denominator='cutoff')@2",
        "R(denominator='cutoff', ties='input')",
        *(f"RR(of='best', ties='{ties}')" for ties in ("average", "input", "worst", "best")),
        "RR(of='best', rel=2, empty='nan')@3",
        "RR(of='best', score_above=0)@3",
        *(f"{name}(score_above=1)@3" for name in ("AP", "P", "R", "RR")),
        "AP(score_above=0, denominator='cutoff', ties='input')@3",
        "PFound(stop=[0, 0.3, 0.1, 0.7])@3",
        "PFound(stop=[0.1, 0.3, 1, 0.7], decay=0.5, ties='worst')",
        "ERR(stop=[0.5, 0.1, 0, 1])@3",
        "IPrec(rounding='nearest')@0.5",
        "AP(rel=2, empty='skip')",
        "RR(empty=1)",
        "RR(empty='nan')",
        "R(empty=0.5)@2",
    )
    yield from (
        f"AUC({words})"
        for words in (
            "", "ties='worst'", "ties='input'", "empty=1", "empty='nan', rel=2", "max_fp=2", "max_fp=0.3",
        )
    )  # fmt: skip
    yield from (
        "NumRel", "NumRel(rel=2)", "NumRet", "NumRet(judged_only=True)@2", "SetP", "SetP(relative=True)",
        "SetR", "SetF",
    )  # fmt: skip
    yield from (
        "F(beta=2)@2", "P(judged_only=True)@2", "Success(rel=3)@1", "IDCG(ideal='judged_uncut')@2",
        "ERR(max_rel=3)", "RBP(p=0.5)",
    )  # fmt: skip


def compare(queries, measures, grades, *, pool, propensity=False, **top):
    rankings = rankings_of(queries, pool=pool, propensity=propensity)
    ranges = fn.judgment_range(rankings, measures, **top)
    low, high = enumerated(queries, list(ranges.measures), grades, pool=pool, propensity=propensity)
    for row, measure in enumerate(ranges.measures):
        bounds = ranges[measure]
        np.testing.assert_allclose(bounds.low, low[row], rtol=1e-12, atol=1e-15, err_msg=f"{measure} low")
        np.testing.assert_allclose(bounds.high, high[row], rtol=1e-12, atol=1e-15, err_msg=f"{measure} high")


@pytest.mark.pure
@pytest.mark.parametrize("pool", [True, False])
def test_every_measure_against_all_assignments(pool):
    # a query of all grades comes first: they are the scale
    queries = [Query([3, 1, 2], [3, 2, 1], [0]), *random_queries(5 + pool, 40, most=3)]
    compare(queries, list(asked()), GRADES, pool=pool)


@pytest.mark.pure
@pytest.mark.parametrize("seed", range(2))
def test_longer_lists_of_six_unjudged_documents(seed):
    queries = [Query([2, 1, 0], [3, 2, 1], []), *random_queries(40 + seed, 6, GRADES[:3], longest=12, most=6)]
    measures = [
        f"nDCG(ties='{ties}', ideal='{ideal}'){k}"
        for ties in ("average", "best", "worst")
        for ideal in ("judged", "full")
        for k in ("", "@4")
    ]
    compare(queries, [*measures, "AP", "R@3", "Bpref", "ERR", "RR"], GRADES[:3], pool=True)


@pytest.mark.pure
def test_grades_with_fractions_and_grades_that_the_scale_lacks():
    grades = (0, 0.3, 0.75, 1.5, 2.25)
    measures = [
        "nDCG", "nDCG(gain='exp2')@3", "nDCG(ties='best')@2", "nDCG(ties='worst')", "nDCG(ideal='full')@3",
        "DCG", "SDCG(max_rel=3)", "AP",
    ]  # fmt: skip
    queries = [Query([2.25, 1.5, 0.75, 0.3], [4, 3, 2, 1], []), *random_queries(50, 40, grades, most=2)]
    compare(queries, measures, grades, pool=True)
    compare(queries, measures, (0, 0.3, 0.75, 1), pool=True, top=1)
    compare(queries, measures, (*grades, 3), pool=False, top=3)
    compare(queries, measures, (0, 0.1), pool=True, top=0.1)


@pytest.mark.pure
def test_negative_grades():
    grades = (-2, 0, 1, 2)
    queries = [Query([-2, 0, 1, 2], [4, 3, 2, 1], []), *random_queries(60, 40, grades, most=3)]
    compare(
        queries,
        ["DCG@3", "CG(ties='best')", "AP", "RR", "P@2", "nDCG(rel=0)@3", "nDCG(gain='binary')", "RBP"],
        grades,
        pool=True,
    )
    compare(queries, ["Bpref"], (0, 1, 2), pool=True)
    with pytest.raises(fn.MeasureError, match="infAP has no exact range beside negative grades"):
        fn.judgment_range(rankings_of(queries, pool=True), "infAP")


COUNTED = [
    *("AP(denominator='returned')@7", "AP(denominator='returned')", "P(denominator='n_relevant')@7", "R(denominator='cutoff')@7"),
    *("AP", "AP@7", "AP(denominator='min(n_relevant, k)')@7", "AP(rel=2, ties='input')@40", "AP(ties='input')", "R", "R@5"),
    *("R(ties='input', empty='nan')@20", "F@10", "F(beta=3, rel=2)", "SetR(rel=3)", "SetF", "SetAP", "SetP(relative=True)"),
]  # fmt: skip


@pytest.mark.pure
@pytest.mark.parametrize("seed", range(4))
def test_one_pass_finds_the_numbers_that_trying_each_finds(seed, monkeypatch):
    """Longer lists than all of whose assignments could be listed, in parts of any size."""
    random = np.random.default_rng(seed)
    queries = random_queries(seed, 12, longest=(15, 40)[seed % 2], most=(5, 40)[seed // 2])
    rankings = rankings_of(queries, pool=bool(random.integers(0, 2)))
    monkeypatch.setattr(assignments, "_TOGETHER", int(random.choice([1, 100, 1 << 20])))
    by_pass = fn.judgment_range(rankings, COUNTED)
    monkeypatch.setattr(assignments, "_TOGETHER", 1 << 20)
    monkeypatch.setattr(assignments.numbers, "is_counted", lambda measure: False)
    one_by_one = fn.judgment_range(rankings, COUNTED)
    for measure in by_pass.measures:
        for got, wanted in zip(by_pass[measure], one_by_one[measure], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=0, err_msg=str(measure))


@pytest.mark.pure
def test_gains_over_propensities():
    queries = [Query([3, 1, 2], [3, 2, 1], []), *random_queries(70, 40, most=3)]
    measures = [
        f"{name}(ips={ips}, ties='{ties}', clip=0.3){k}"
        for name in ("DCG", "CG")
        for ips in ("True", "'snips'")
        for ties in ("average", "input", *(() if ips == "'snips'" else ("best", "worst")))
        for k in ("", "@3")
    ]
    compare(queries, measures, GRADES, pool=True, propensity=True)


def test_the_queries_of_the_report():
    """A judged top ten above unjudged documents, where "worthless" was above "perfect"."""
    random = np.random.default_rng(0)
    grades = random.integers(0, 4, (200, 30))
    scores = np.tile(-np.arange(30), (200, 1))
    is_judged = np.tile(np.arange(30) < 10, (200, 1)).ravel()
    rankings = fn.Rankings.from_dense(grades, scores, is_judged=is_judged)
    ranges = fn.judgment_range(rankings, ["nDCG@10", "AP", "R@10"])
    for measure in ranges.measures:
        assert (ranges[measure].low <= ranges[measure].value).all(), measure
        assert (ranges[measure].value <= ranges[measure].high).all(), measure
    assert ranges.summary()["moves"].to_pylist() == [True, True, True]


def test_many_queries_of_many_grades():
    """In parts, with about as many thresholds as documents: nothing random that was tried is beyond the bounds."""
    random = np.random.default_rng(8)
    lengths = random.integers(0, 60, 3000)
    n = int(lengths.sum())
    grades, scores, is_judged = (
        np.round(random.random(n) * 4, 2),
        random.integers(0, 30, n),
        random.random(n) < 0.5,
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    measures = [
        "nDCG@10", "nDCG(gain='exp2')", "nDCG(ties='best')@5", "nDCG(ideal='full')@20", "R@10", "AP@20",
        "ERR",
    ]  # fmt: skip
    ranges = fn.judgment_range(
        fn.Rankings.from_offsets(offsets, grades, scores, is_judged=is_judged), measures
    )
    levels = np.append(np.unique(grades[is_judged]), 0.0)
    for share in (0.0, 0.3, 0.6, 0.9, 1.0):
        tried = np.where(random.random(n) < share, levels.max(), random.choice(levels, n))
        values = fn.evaluate(
            fn.Rankings.from_offsets(offsets, np.where(is_judged, grades, tried), scores), measures
        ).values
        for measure, got in zip(ranges.measures, values, strict=True):
            assert (ranges[measure].low <= got * (1 + 1e-12)).all(), measure
            assert (got <= ranges[measure].high * (1 + 1e-12)).all(), measure


@pytest.mark.pure
@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("Judged@5", "Judged@5 counts judgments and not grades"),
        ("RBPresidual", "RBPresidual counts judgments and not grades"),
        ("ERR_IA@5", "ERR_IA@5 has no exact range: the grades for several intents"),
        ("nDCG(ideal='returned', ties='best')@2", "where tied documents reach across rank 2, as in query 0: .* ties='input'"),
        ("nDCG(discount=[1, 2, 1])", "its discount is 2 at rank 2; wanted discounts that do not rise"),
        ("DCG(discount=[1, -1, -1])", "its discount is -1 at rank 2"),
        ("DCG(ips='snips', ties='best')", "propensities decide which of tied documents comes first"),
        ("nDCG(gain={1: 1, 2: 2})", "has no gain for grade 3, which an unjudged document may have"),
    ],
)  # fmt: skip
def test_what_has_no_exact_range_is_refused(measure, message):
    rankings = rankings_of([Query([2, None, None], [1, 0, 0], [1])], pool=True)
    with pytest.raises(fn.MeasureError, match=message):
        fn.judgment_range(rankings, measure, top=3)


@pytest.mark.pure
def test_what_no_grades_decide_is_refused():
    rankings = rankings_of([Query([2, None], [1, 0], [1])], pool=True)
    for name in REFUSED:
        with pytest.raises(fn.MeasureError):
            fn.judgment_range(rankings, name)


def test_a_query_too_large_for_its_table_is_refused():
    n = 1 << 12
    grades = [*range(1, n), *[None] * n]
    rankings = rankings_of([Query(grades, list(range(len(grades))), [])], pool=True)
    with pytest.raises(
        fn.MeasureError, match="query 0, which has 4096 unjudged documents and 4096 distinct gains"
    ):
        fn.judgment_range(rankings, "nDCG")
    assert fn.judgment_range(rankings, "nDCG(gain='binary')")["nDCG(gain='binary')"].low.shape == (1,)


@pytest.mark.pure
@pytest.mark.parametrize("top", [float("nan"), float("inf"), "3", True])
def test_a_top_that_is_no_grade(top):
    with pytest.raises(fn.InputError, match="is not a grade; wanted a finite number"):
        fn.judgment_range(rankings_of([Query([1, None], [3, 2], [])], pool=True), "nDCG", top=top)


@pytest.mark.pure
def test_nothing_judged_needs_a_top():
    rankings = rankings_of([Query([None, None], [2, 1], [])], pool=True)
    with pytest.raises(fn.InputError, match="no document was judged, .* top=1"):
        fn.judgment_range(rankings, "nDCG")
    ranges = fn.judgment_range(rankings, ["nDCG(empty='nan')", "R(empty=0)"], top=2)
    assert [values.tolist() for values in ranges["nDCG(empty='nan')"]][::2] == [
        [pytest.approx(0.6309297535714575)],
        [1.0],
    ]


@pytest.mark.pure
def test_where_everything_is_judged_nothing_moves():
    rankings = fn.Rankings.from_lists([[1, 0, 2], []])
    ranges = fn.judgment_range(rankings, ["nDCG", "AP"])
    assert all(values.tolist() == ranges["nDCG"].value.tolist() for values in ranges["nDCG"])
    assert ranges.summary()["moves"].to_pylist() == [False, False]
