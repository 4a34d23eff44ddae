"""pytrec_eval's interface: names, shapes and values of the real one, bit by bit."""

import importlib
import math
import random

import engines
import pytest

from fastndcg.adapters import pytrec_eval as ours
from fastndcg.errors import InputError, InputTypeError, MeasureError, SourceError

QRELS = {"q1": {"d1": 0, "d2": 1, "d3": 0}, "q2": {"d2": 1, "d3": 1}}
RUN = {"q1": {"d1": 1.0, "d2": 0.0, "d3": 1.5}, "q2": {}}
WITH_PARAMETERS = [
    "P_5", "P.3,7", "utility_1,2,3,4", "11pt_avg_0.3,0.7", "set_F.2", "iprec_at_recall.0.25", "Rprec_mult_0.5", "success.3",
    "ndcg_cut_1,3",
]  # fmt: skip


def scored(rng):
    """Scores that tie, that tie as float32 only, and that float32 cannot hold."""
    return rng.choice(
        [rng.random(), rng.randint(-3, 3), 1 + rng.random() * 1e-8, 0.0, -0.0, 1e300, -math.inf]
    )


def data(seed):
    """Judged and returned documents overlap in part, queries are on one side only.

    Each pool has a grade that is not negative, and each query of the run documents: elsewhere pytrec_eval
    crashes.
    """
    rng = random.Random(seed)
    documents = [f"d{number}" for number in range(rng.choice([3, 12, 60]))] + ["é", "😀", "ￚ"]

    def some():
        return rng.sample(documents, rng.randint(1, len(documents)))

    def grade():
        return rng.choice([-2, -1, 0, 0, 1, 2, 5])

    qrels = {f"q{query}": {document: grade() for document in some()} | {"d0": 1} for query in range(8)}
    queries = rng.sample(range(12), rng.randint(5, 12))
    run = {f"q{query}": {document: scored(rng) for document in some()} for query in queries}
    # ranked anew, in the order of the judgments or nearly so
    for query in set(run) & {"q1", "q2", "q3", "q4"}:
        listed = [*qrels[query]]
        listed = rng.choice([listed, [*listed[:-1], "d99"], listed[1:] + listed[:1]])
        run[query] = {document: scored(rng) for document in listed}
    return qrels, run


@pytest.fixture
def pytrec_eval():
    engines.need("pytrec_eval", extra="rivals")
    return importlib.import_module("pytrec_eval")


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.rivals
def test_values_of_every_measure(pytrec_eval, seed, level):
    qrels, run = data(seed)
    for measures in (ours.supported_measures, WITH_PARAMETERS, {"map", "ndcg_cut"}):
        options = qrels, measures, level, len(measures) == 2  # the last: judged documents only
        theirs = pytrec_eval.RelevanceEvaluator(*options).evaluate(run)
        found = ours.RelevanceEvaluator(*options).evaluate(run)
        assert list(found) == list(theirs)
        for query, values in theirs.items():
            assert list(found[query].items()) == list(values.items())


@pytest.mark.parametrize("levels", [1, 3, 50, 100_000])
@pytest.mark.rivals
def test_few_judged_documents(pytrec_eval, levels):
    """Of many that are returned, with ties between judged and others."""
    rng = random.Random(levels)
    run = {
        f"q{query}": {f"d{rng.randrange(10**6)}": rng.randrange(levels) / 3 for _ in range(200)}
        for query in range(20)
    }
    qrels = {
        query: {document: rng.randrange(-1, 3) for document in rng.sample([*documents], 9)} | {"elsewhere": 1}
        for query, documents in reversed(run.items())
    }  # fmt: skip
    for only in (False, True):
        ours_of, theirs_of = (
            kind.RelevanceEvaluator(qrels, ours.supported_measures, judged_docs_only_flag=only).evaluate(run)
            for kind in (ours, pytrec_eval)
        )
        assert ours_of == theirs_of
    run["q3"][next(iter(run["q3"]))] = math.nan
    with pytest.raises(InputError, match="of query 'q3' is NaN; 1 in all"):
        ours.RelevanceEvaluator(qrels, {"map"}).evaluate(run)


@pytest.mark.rivals
def test_names(pytrec_eval):
    assert ours.supported_measures == pytrec_eval.supported_measures
    for name, measures in ours.supported_nicknames.items():
        assert measures == pytrec_eval.supported_nicknames[name]
    assert not {*pytrec_eval.__all__} - {*vars(ours)}
    for values in ([1.0, 2.5], [0.5]):
        for measure in ("num_ret", "gm_map", "map"):
            assert ours.compute_aggregated_measure(measure, values) == pytest.approx(
                pytrec_eval.compute_aggregated_measure(measure, values), rel=1e-15
            )


@pytest.mark.rivals
def test_files_are_parsed_alike(pytrec_eval):
    qrels, run = ["1 0 a 1\n", "1 0 b  -1\n", "2 0 a 2"], ["1 Q0 a 1 2.5 me\n", "2 Q0 c 1 -1e3 me\n"]
    assert ours.parse_qrel(qrels) == pytrec_eval.parse_qrel(qrels)
    assert ours.parse_run(run) == pytrec_eval.parse_run(run)
    with pytest.raises(SourceError, match="'1 0 a' is not a line of a TREC qrels file"):
        ours.parse_qrel(["1 0 a"])
    with pytest.raises(SourceError, match="is not a line of a TREC run"):
        ours.parse_run(["1 Q0 a 1 high me"])
    with pytest.raises(InputError, match="document 'a' of query '1' appears twice"):
        ours.parse_qrel(["1 0 a 1", "1 0 a 2"])


@pytest.mark.parametrize(
    ("qrels", "measures", "run", "wanted"),
    [
        (QRELS, {"map", "ndcg"}, {}, {}),
        (QRELS, set(), RUN, {"q1": {}, "q2": {}}),
        ({}, {"map"}, RUN, {}),
        ({"q1": {}}, {"map"}, RUN, {}),
        (QRELS, {"map"}, {"q2": {}}, {"q2": {"map": 0.0}}),
        ({"q1": {"a": 0}}, {"map", "ndcg"}, {"q1": {"a": 1}}, {"q1": {"map": 0.0, "ndcg": 0.0}}),
    ],
)
def test_nothing_to_evaluate(qrels, measures, run, wanted):
    assert ours.RelevanceEvaluator(qrels, measures).evaluate(run) == wanted


def test_judgments_are_read_once():
    qrels = {"q": {"a": 1}}
    evaluator = ours.RelevanceEvaluator(qrels, {"map"})
    qrels["q"]["a"], qrels["r"] = 0, {"a": 1}
    assert evaluator.evaluate({"q": {"a": 1}, "r": {"a": 1}}) == {"q": {"map": 1.0}}


@pytest.mark.parametrize(
    ("qrels", "measures", "run", "error", "message"),
    [
        (QRELS, {"nap"}, RUN, MeasureError, 'unsupported measure "nap".*Did you mean "infAP"'),
        (QRELS, {"P_0"}, RUN, MeasureError, "expected for example P.5"),
        (QRELS, {"ndcg_5"}, RUN, MeasureError, "expected for example ndcg.1=3.5"),
        ([1], {"map"}, RUN, InputTypeError, "the judgments is a list; expected a dict"),
        ({"q": [1]}, {"map"}, RUN, InputTypeError, "the judgments of 'q' is a list"),
        ({1: {"a": 1}}, {"map"}, RUN, InputTypeError, "query id 1 is a int; expected a string"),
        ({"q": {1: 1}}, {"map"}, RUN, InputTypeError, "document id 1 is a int"),
        ({"q": {"a": 0.5}}, {"map"}, RUN, InputTypeError, "grade of document 'a' of query 'q' is 0.5, a float"),
        (QRELS, {"map"}, [1], InputTypeError, "the run is a list"),
        (QRELS, {"map"}, {"q1": [1]}, InputTypeError, "the run of 'q1' is a list"),
        (QRELS, {"map"}, {"q1": {7: 1.0}}, InputTypeError, "document id 7 is a int"),
        (QRELS, {"map"}, {"q1": {"d1": "high"}}, InputTypeError, "holds a score that is not a number"),
        (QRELS, {"map"}, {"q2": {}, "q1": {"x": 1, "d1": math.nan}}, InputError, "document 'd1' of query 'q1' is NaN; 1 in all"),
    ],
)  # fmt: skip
def test_what_is_refused(qrels, measures, run, error, message):
    with pytest.raises(error, match=message):
        ours.RelevanceEvaluator(qrels, measures).evaluate(run)
    if error is InputError:
        with pytest.raises(InputError, match="relevance_level=0"):
            ours.RelevanceEvaluator(qrels, measures, relevance_level=0)
