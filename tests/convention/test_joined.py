"""A convention holds for the whole path: judgments and a run are joined, and the number is still the tool's own."""

import functools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conventions_data import differences, rankings_of
from rivals import RIVALS, random_queries

import fastndcg as fn

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("conventions_rivals"),  # ranx is compiled there
]
K = 5  # ties reach over it in most queries, whose rows are in no order of ids


@functools.cache
def asked(name):
    rival = RIVALS[name]
    queries = random_queries(12, 40, least=rival.least, longest=rival.longest or 60, ties=rival.ties)
    return queries, rival.run(queries, K)


def dicts(queries, tmp_path):
    qrels = {query.name: query.qrels for query in queries}
    return qrels, {query.name: dict(zip(query.doc_ids, query.scores, strict=True)) for query in queries}


def rows(queries, tmp_path):
    """Tables whose rows stand in the order of the run; the queries' rows are not together."""
    qrels, run = dicts(queries, tmp_path)
    return [
        [(query, document, value) for query, of_query in side.items() for document, value in of_query.items()]
        for side in (qrels, run)
    ]


def frames(queries, tmp_path):
    qrels, run = rows(queries, tmp_path)
    return (
        pd.DataFrame(qrels, columns=["query_id", "doc_id", "relevance"]),
        pd.DataFrame(run, columns=["query_id", "doc_id", "score"]),
    )


def trec_files(queries, tmp_path):
    qrels, run = rows(queries, tmp_path)
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} {v}\n" for q, d, v in qrels))
    (tmp_path / "run.txt").write_text("".join(f"{q} Q0 {d} 0 {v} me\n" for q, d, v in run))
    return tmp_path / "qrels.txt", tmp_path / "run.txt"


def parquet_files(queries, tmp_path):
    sides = frames(queries, tmp_path)
    for name, side in zip(("qrels", "run"), sides, strict=True):
        pq.write_table(pa.Table.from_pandas(side), tmp_path / f"{name}.parquet")
    return tmp_path / "qrels.parquet", tmp_path / "run.parquet"


def json_files(queries, tmp_path):
    for name, side in zip(("qrels", "run"), dicts(queries, tmp_path), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(side))
    return tmp_path / "qrels.json", tmp_path / "run.json"


def joined_before(queries, tmp_path):
    """Rankings whose tied documents were ordered by id, as joins have them by default."""
    return (fn.Rankings.from_qrels_run(*dicts(queries, tmp_path)),)


def read_before(queries, tmp_path):
    return (fn.read_trec(*trec_files(queries, tmp_path), ties="docid_asc"),)


WAYS = (dicts, frames, trec_files, parquet_files, json_files, joined_before, read_before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.rivals
def test_the_tool_says_so(name, way, tmp_path):
    if RIVALS[name].missing is not None:
        pytest.skip(f"{name} is not installed here: {RIVALS[name].missing}")
    queries, theirs = asked(name)
    measure = fn.parse(f"nDCG@{K}")
    scores = fn.evaluate(*way(queries, tmp_path), measure, convention=name)
    assert not differences(queries, name, K, theirs, values=scores[measure].tolist())


@pytest.mark.parametrize("name", fn.conventions)
def test_each_measure_has_the_value_that_it_has_of_arrays(name, tmp_path):
    """Of each tool, installed or not: the rows of the run stand in the order of the arrays."""
    queries = random_queries(13, 12, longest=14)
    measures = [
        measure
        for own in fn.conventions[name].measures
        for measure in ((own @ K, own) if own.definition.cut == "rank" else (own,))
    ]
    of_arrays = values(name, measures, rankings_of(queries))
    for way in (dicts, joined_before):
        assert values(name, measures, *way(queries, tmp_path)) == of_arrays, way.__name__


def values(convention, measures, *data):
    """Of each measure, its values or the error that refuses it; together where none is refused."""
    try:
        scores = fn.evaluate(*data, measures, convention=convention)
    except fn.FastndcgError as error:
        if len(measures) == 1:
            return [type(error).__name__]
        return [value for measure in measures for value in values(convention, [measure], *data)]
    return [repr(each.tolist()) for each in scores.values]


@pytest.mark.parametrize("kind", [int, str])
def test_beir_drops_a_document_whose_id_is_that_of_its_query(kind):
    """Whatever the types of ids; judgments keep it, so that it counts in the ideal."""
    qrels = {kind(1): {"a": 1, "1": 2}, kind(2): {"b": 1}}
    run = {kind(1): {"1": 0.9, "a": 0.8}, kind(2): {"c": 0.9, "b": 0.1}}
    dropped = {kind(1): {"a": 0.8}, kind(2): run[kind(2)]}

    def values(run, convention):
        return fn.evaluate(qrels, run, "nDCG@10", convention=convention)["nDCG@10"].tolist()

    assert values(run, "beir") == values(dropped, "pytrec_eval")
    kept = fn.conventions["beir"].replace(drops_own=False)
    assert values(run, kept) == values(run, "pytrec_eval") != values(run, "beir")
    # ids that were not given are no ids
    numbered = fn.Rankings.from_lists([[1, 0]], [[0.1, 0.2]], doc_ids=[0, 1])
    assert fn.evaluate(numbered, "nDCG", convention="beir").mean() == fn.evaluate(numbered, "nDCG").mean()


def test_the_order_of_ties_by_id_is_said_where_a_measure_asks_for_that_of_rows():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}
    with pytest.warns(
        fn.FastndcgWarning, match="joined judgments and runs have tied documents in descending order of id"
    ):
        assert fn.evaluate(qrels, run, "RR(ties='input')").mean() == {"RR(ties='input')": 0.5}
    as_they_stand = fn.Rankings.from_qrels_run(qrels, run, ties="input")
    assert fn.evaluate(as_they_stand, "RR(ties='input')").mean() == {"RR(ties='input')": 1.0}


def test_bpref_of_trectools_is_0_where_all_judged_documents_are_relevant():
    """get_bpref divides by min(R, N) = 0, and its sum leaves the quotient out."""
    run = {"q": {"a": 2.0, "b": 1.0}}
    for qrels, value in (({"a": 1, "b": 1}, 0.0), ({"a": 1, "b": 1, "c": 0}, 1.0), ({"a": 1, "b": 0}, 1.0)):
        assert fn.evaluate({"q": qrels}, run, "Bpref", convention="trectools").mean() == {"Bpref": value}


def test_rbp_of_trectools_is_refused_where_the_order_of_rows_decides():
    run = {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}
    with pytest.raises(fn.ConventionError, match="trectools does not define the order of ties"):
        fn.evaluate({"q": {"a": 1}}, run, "RBP@1", convention="trectools")
    value = fn.evaluate({"q": {"c": 1}}, run, "RBP@3", convention="trectools").mean()["RBP@3"]
    assert value == pytest.approx(0.2 * 0.8**2)


@pytest.mark.rivals
def test_xgboost_counts_a_group_of_weight_0_as_0_in_auc():
    xgboost = pytest.importorskip("xgboost")
    grades, scores = [1, 0, 0, 1, 0, 0], np.array([3.0, 2, 1, 3, 1, 2])
    for weight in ([1.0, 1.0], [1.0, 0.0], [0.0, 2.0], [1.0, 0.5]):
        data = xgboost.DMatrix(np.zeros((6, 1)), label=grades, base_margin=scores)
        data.set_group([3, 3])
        data.set_weight(weight)
        trained = xgboost.train(
            {"objective": "rank:pairwise", "eval_metric": "auc", "nthread": 1, "verbosity": 0},
            data,
            num_boost_round=0,
        )
        rankings = fn.Rankings.from_groups([3, 3], grades, scores, weight=weight)
        theirs = float(trained.eval(data).rpartition(":")[2])
        assert fn.evaluate(rankings, "AUC", convention="xgboost").mean()["AUC"] == pytest.approx(theirs)
