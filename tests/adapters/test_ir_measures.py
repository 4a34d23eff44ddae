"""A provider of ir_measures: its functions in every form of input, its other providers' values, and PyTerrier."""

import random

import engines
import pytest

import fastndcg as fn
from fastndcg.errors import MeasureError

engines.need("ir_measures", "pytrec_eval", "pyndeval", "pandas", extra="rivals")

import ir_measures  # noqa: E402 - needs the check above
import pandas as pd  # noqa: E402 - as above

from fastndcg.adapters import ir_measures as fni  # noqa: E402 - as above

pytestmark = pytest.mark.rivals

GRADED = [
    ir_measures.nDCG, ir_measures.nDCG @ 10, ir_measures.nDCG(gains={1: 2, 2: 7}) @ 5, ir_measures.AP, ir_measures.AP(rel=2) @ 10, ir_measures.RR,
    ir_measures.P @ 5, ir_measures.P(rel=2, judged_only=True) @ 5, ir_measures.R @ 10, ir_measures.Rprec, ir_measures.Success @ 3, ir_measures.Bpref,
    ir_measures.infAP, ir_measures.IPrec @ 0.2, ir_measures.SetP, ir_measures.SetP(relative=True), ir_measures.SetR, ir_measures.SetF(beta=0.5),
    ir_measures.SetAP, ir_measures.NumRet, ir_measures.NumRet(rel=1), ir_measures.NumRel,
]  # fmt: skip
DIVERSE = [ir_measures.alpha_nDCG @ 10, ir_measures.ERR_IA @ 10, ir_measures.StRecall @ 5]


@pytest.fixture(autouse=True)
def _as_before():
    pipeline = ir_measures.DefaultPipeline.providers
    before = [*pipeline]
    pipeline[:] = [
        one for one in before if one.NAME != "fastndcg"
    ]  # a page of the documentation asks ours first
    yield
    pipeline[:] = before
    ir_measures.providers.registry.pop("fastndcg", None)


def tuples(seed=0, *, intents=1):
    """Judged and returned documents overlap; scores tie; the run lacks queries, and has one that nobody judged."""
    rng = random.Random(seed)
    documents = [f"d{number}" for number in range(40)]
    qrels = [
        ir_measures.Qrel(
            f"q{query}", document, rng.choice([0, 0, 1, 2]) if document != "d0" else 1, str(intent)
        )
        for query in range(12)
        for document in ["d0", *rng.sample(documents[1:], 15)]
        for intent in range(intents)
    ]
    run = [
        ir_measures.ScoredDoc(f"q{query}", document, rng.randint(0, 5) / 4)
        for query in (*range(3, 12), 99)
        for document in rng.sample(documents, 20)
    ]
    return qrels, run


def dicts(rows, value):
    found = {}
    for row in rows:
        found.setdefault(row.query_id, {})[row.doc_id] = getattr(row, value)
    return found


FORMS = {
    "list": lambda rows, value: rows,
    "iterator": lambda rows, value: iter(rows),
    "frame": lambda rows, value: pd.DataFrame(rows),
    "dicts": dicts,
}


def close(found, wanted):
    assert {key: pytest.approx(value, rel=1e-12, abs=1e-15) for key, value in wanted.items()} == found


@pytest.mark.filterwarnings("ignore::fastndcg.errors.FastndcgWarning")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_input(form):
    """Values of each query and of all, as the providers that ir_measures would ask."""
    qrels, run = tuples()
    taken = lambda: (FORMS[form](qrels, "relevance"), FORMS[form](run, "score"))  # noqa: E731 - iterators are used up
    provider = fni.provider()
    # Each measure alone: beside a measure with gains, plain nDCG may be given these gains by their providers,
    # which depends on the hash seed of the process.
    means = {measure: ir_measures.calc_aggregate([measure], qrels, run)[measure] for measure in GRADED}
    close(provider.calc_aggregate(GRADED, *taken()), means)
    theirs = {
        (row.query_id, measure): row.value
        for measure in GRADED
        for row in ir_measures.iter_calc([measure], qrels, run)
    }
    close({(row.query_id, row.measure): row.value for row in provider.iter_calc(GRADED, *taken())}, theirs)
    both = provider.calc(GRADED, *taken())
    assert len(both.per_query) == len(theirs)
    evaluator = provider.evaluator(GRADED, FORMS[form](qrels, "relevance"))
    assert evaluator.calc_aggregate(run) == evaluator.calc_aggregate(FORMS[form](run, "score"))


@pytest.mark.parametrize("ties", ["input", "average", "worst"])
@pytest.mark.parametrize("seed", range(6))
def test_dictionaries_are_walked_and_joined_to_the_same_bits(seed, ties, monkeypatch):
    """Scores that tie as float32 only; runs in the order of the judgments, or nearly."""
    rng, (qrels, _) = random.Random(seed), tuples(seed)
    qrels = dicts(qrels, "relevance")
    lists = [[*pool] for pool in qrels.values()]
    run = {
        query: {
            document: rng.choice([1 + rng.random() * 1e-8, rng.random(), 0.5, -0.0, 0.0])
            for document in rng.choice([listed, listed[::-1], [*listed[:-1], "d77"], rng.choice(lists)[3:]])
        }
        for query, listed in zip(qrels, lists, strict=True)
        if query != "q5"
    }
    measures = [one for one in GRADED if ties == "input" or one not in (ir_measures.infAP, ir_measures.Bpref)]
    found = list(fni.provider(ties=ties).iter_calc(measures, qrels, run))
    walked = []
    monkeypatch.setattr(fni.Evaluator, "_ranked", lambda *_: walked.append(1))
    assert list(fni.provider(ties=ties).iter_calc(measures, qrels, run)) == found
    assert walked


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ({"q": {"a": 1, 2: 1}}, {"q": {"a": 0.5}}, "qrels has document ids of mixed or unknown types"),
        ({"q": {"a": 1}}, {"q": {"a": 0.5, 2: 0.1}}, "run has document ids of mixed or unknown types"),
        ({"q": {"a": 1}}, {"q": {"a": float("nan")}}, "nan"),
        ({"q": {"a": 1}}, {"r": {"a": 0.5}}, "no query in common"),
        ({"q": {"a": 1}}, {"q": {"a": "high"}}, "run holds values that are not numbers"),
    ],
)
def test_dictionaries_that_are_refused(qrels, run, message):
    with pytest.raises(fn.FastndcgError, match=message):
        fni.provider().calc_aggregate([ir_measures.RR], qrels, run)


@pytest.mark.parametrize("numbers", [False, True])
def test_dictionaries_of_other_ids_and_scores(numbers):
    """Whole numbers as ids, one side or both; whole scores; negative grades; a query without judgments."""
    qrels, run = {"1": {"7": 1, "8": -1, "9": 0}, "2": {"7": 2}}, {1: {9: 3, 8: 2, 7: 2}, 2: {7: 1}}
    if numbers:
        qrels = {
            int(query): {int(name): grade for name, grade in pool.items()} for query, pool in qrels.items()
        }
    assert fni.provider().calc_aggregate([ir_measures.RR], qrels, run) == {ir_measures.RR: (1 / 3 + 1) / 2}


@pytest.mark.filterwarnings("ignore::fastndcg.errors.FastndcgWarning")
@pytest.mark.parametrize("form", ["list", "iterator", "frame"])
def test_intents(form):
    """Beside measures of grades, in one call."""
    qrels, run = tuples(1, intents=3)
    found = fni.provider().calc_aggregate(DIVERSE, FORMS[form](qrels, "relevance"), FORMS[form](run, "score"))
    close(found, ir_measures.pyndeval.calc_aggregate(DIVERSE, qrels, run))
    assert "iteration" in fni.provider().qrel_inputs(DIVERSE)
    assert "iteration" not in fni.provider().qrel_inputs(GRADED)


def test_ties():
    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.5, "b": 0.5}}
    measure = ir_measures.RR
    found = [
        fni.provider(ties=ties).calc_aggregate([measure], qrels, run)[measure]
        for ties in ("input", "average", "worst", "best")
    ]
    assert found == [0.5, 0.75, 0.5, 1.0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_judged_counts_every_entry_and_orders_ties_by_rising_id(form, seed):
    """Negative grades too, scores that float32 does not tell apart, and beside a measure that orders them otherwise."""
    qrels, run = tuples(seed)
    rng = random.Random(seed)
    qrels = [row._replace(relevance=rng.choice([-2, -1, 0, 2])) for row in qrels]
    run = [row._replace(score=row.score + rng.choice([0, 1e-12])) for row in run]
    asked = [ir_measures.Judged @ 1, ir_measures.Judged @ 3, ir_measures.Judged, ir_measures.Judged @ 100]
    given = FORMS[form](qrels, "relevance"), FORMS[form](run, "score")
    found = fni.provider().calc([*asked, ir_measures.P @ 1], *given)
    theirs = {
        (row.query_id, row.measure): row.value for row in ir_measures.judged.iter_calc(asked, qrels, run)
    }
    ours = {(row.query_id, row.measure): row.value for row in found.per_query if row.measure in asked}
    close(ours, theirs)


def test_nothing_is_returned():
    found = fni.provider().calc([ir_measures.nDCG, ir_measures.NumRet], {"q": {"a": 1}}, {})
    assert found.aggregated == {ir_measures.nDCG: 0.0, ir_measures.NumRet: 0}
    assert len(found.per_query) == 2


def test_what_is_supported():
    provider = fni.provider()
    assert all(provider.supports(measure) for measure in (*GRADED, *DIVERSE))
    assert not provider.supports(ir_measures.Compat) and not provider.supports(ir_measures.NumQ)
    with pytest.raises(MeasureError, match='no measure is called "Compat"'):
        provider.calc_aggregate([ir_measures.Compat], {"q": {"a": 1}}, {"q": {"a": 1}})


def test_it_is_registered_and_asked_first():
    fni.provider(first=True)
    made = fni.provider(ties="average", first=True)
    pipeline = ir_measures.DefaultPipeline.providers
    assert pipeline[0] is made and [one.NAME for one in pipeline].count("fastndcg") == 1
    assert ir_measures.providers.registry["fastndcg"] is made
    measures = [ir_measures.RR, ir_measures.NumQ]  # the second is another provider's
    assert ir_measures.calc_aggregate(measures, {"q": {"a": 1, "b": 0}}, {"q": {"a": 1, "b": 1}}) == {
        ir_measures.RR: 0.75,
        ir_measures.NumQ: 1,
    }
