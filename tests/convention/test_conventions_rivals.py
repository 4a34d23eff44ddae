"""Every convention against its tool: run where it is installed, stored values where not, the published formula where no pip has it."""

import functools
import gzip
import json

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conventions_data import (
    CUTOFFS,
    FILE,
    differences,
    golden_cutoffs,
    golden_queries,
    rankings_of,
    weighted_queries,
)
from measured import LIVE
from published import PUBLISHED
from rivals import RIVALS, Query, lightgbm_mean, random_queries, xgboost_mean

import fastndcg as fn

STORED = json.loads(FILE.read_text())
# the tools warn about each other's versions
# in one worker: the tools are asked in a process of their own, which compiles ranx
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.rivals,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("conventions_rivals"),
]


def installed(name):
    rival = RIVALS[name]
    if rival.missing is not None:
        pytest.skip(f"{name} is not installed here: {rival.missing}")
    return rival


def test_every_convention_is_held_by_its_tool_or_by_a_published_formula():
    from test_tools_that_were_read import READ, WHOLE

    unproved = (
        set(fn.conventions)
        - set(RIVALS)
        - set(PUBLISHED)
        - {tool for tool, _ in LIVE}
        - {*READ, *WHOLE, "torchrec"}
    )
    assert not unproved
    assert {name for name in RIVALS if name not in STORED} <= set(fn.conventions)


@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("name", RIVALS)
def test_the_tool_says_so(name, k):
    rival = installed(name)
    if k is None and not rival.uncut:
        pytest.skip(f"{name} has no form without a cutoff")
    queries = random_queries(5, least=rival.least, longest=rival.longest or 60, ties=rival.ties)
    assert not differences(queries, name, k, rival.run(queries, k))


@pytest.mark.parametrize("name", STORED)
def test_the_tool_said_so(name):
    queries, cutoffs = random_queries(20261121, 24), CUTOFFS  # of a tool that was run by hand
    if name in RIVALS:
        queries, cutoffs = golden_queries(RIVALS[name]), golden_cutoffs(RIVALS[name])
    for k in cutoffs:
        assert not differences(queries, name, k, STORED[name]["values"][str(k)]), STORED[name]["version"]


@pytest.mark.parametrize("k", CUTOFFS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_its_formula_says_so(name, k):
    queries = random_queries(6)
    assert not differences(queries, name, k, [PUBLISHED[name](query, k) for query in queries])


def test_trec_eval_compares_doubles_and_its_predecessor_floats():
    query = Query("1", [0, 1], [1.0000000002, 1.0000000001], ["a", "b"], [])
    rankings = rankings_of([query])
    values = {
        name: fn.evaluate(rankings, "nDCG@1", convention=name).mean()["nDCG@1"]
        for name in ("trec_eval", "trec_eval9")
    }
    assert values == {"trec_eval": 0.0, "trec_eval9": 1.0}
    if RIVALS["pytrec_eval"].missing is None:
        assert RIVALS["pytrec_eval"].run([query], 1) == [1.0]


# ---- queries that the run lacks, or the qrels ----


@pytest.mark.parametrize("name", ["pytrec_eval", "ir_measures", "gdeval", "ranx"])
def test_queries_without_results_or_without_judgments(name):
    rival = installed(name)
    missing = Query("100", [], [], [], [2, 0, 1])
    queries = [*random_queries(7, 6), missing]
    assert not differences(queries, name, 10, rival.run(queries, 10))

    unjudged = fn.Rankings.from_groups(
        [2, 2], [0, 0, 0, 1], [0.2, 0.1, 0.2, 0.1], judged=([0, 0, 2], [0, 1]), is_judged=[False, False, True, True],
        doc_ids=["a", "b", "a", "b"],
    )  # fmt: skip
    scores = fn.evaluate(unjudged, "nDCG@10", convention=name)
    assert np.isnan(scores["nDCG@10"][0])
    assert scores.mean()["nDCG@10"] == pytest.approx(1 / np.log2(3), abs=1e-4)


# ---- means, with and without weights ----


# the first has no relevant document
LIGHT = (
    [Query(name, [grade, 0], [0.2, 0.1], ["a", "b"], []) for name, grade in (("1", 0), ("2", 1))],
    [0.1, 0.1],
)


def test_weights_as_lightgbm_counts_them():
    installed("lightgbm")
    ours = mean_by("lightgbm", 2, *LIGHT)
    assert ours == pytest.approx(5.5, abs=1e-12)
    assert lightgbm_mean(LIGHT[0], 2, LIGHT[1]) == pytest.approx(ours, abs=1e-6)  # its weights are float32


def mean_by(convention, k, queries, weight):
    scores = fn.evaluate(rankings_of(queries, weight=weight), f"nDCG@{k}", convention=convention)
    return scores.mean()[f"nDCG@{k}"]


def test_weights_as_xgboost_counts_them():
    installed("xgboost")
    with pytest.raises(Exception, match="Invalid output score"):
        xgboost_mean(LIGHT[0], 2, "", LIGHT[1])
    with pytest.raises(fn.MeasureError, match="xgboost ends with an error here"):
        mean_by("xgboost", 2, *LIGHT)


def test_weights_as_scikit_learn_counts_them():
    queries = random_queries(10, 30, least=6, longest=6)
    weight = np.random.default_rng(10).integers(1, 9, 30) / 4
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    ours = fn.evaluate(rankings_of(queries, weight=weight), "nDCG@5", convention="sklearn").mean()["nDCG@5"]
    lists = [query.grades for query in queries], [query.scores for query in queries]
    assert sklearn_metrics.ndcg_score(*lists, k=5, sample_weight=weight) == pytest.approx(ours, abs=1e-12)


def test_weights_as_tf_ranking_counted_them():
    queries, weight = weighted_queries()
    ours = fn.evaluate(rankings_of(queries, weight=weight), "nDCG@5", convention="tf_ranking").mean()[
        "nDCG@5"
    ]
    assert STORED["tf_ranking"]["weighted_mean_at_5"] == pytest.approx(ours, abs=1e-6)
    assert ours != pytest.approx(
        fn.evaluate(rankings_of(queries), "nDCG@5", convention="tf_ranking").mean()["nDCG@5"], abs=1e-3
    )


def test_xgboost_cuts_at_32_where_no_cutoff_is_named():
    query = Query(
        "1", [0] * 32 + [1] + [0] * 67, [100.0 - i for i in range(100)], [f"d{i}" for i in range(100)], []
    )
    scores = fn.evaluate(rankings_of([query]), ["nDCG", "nDCG@100"], convention="xgboost")
    assert scores.mean() == {"nDCG": 0.0, "nDCG@100": pytest.approx(0.1966, abs=5e-5)}
    assert str(scores.resolved[0]).endswith("@32")
    if RIVALS["xgboost"].missing is None:
        assert xgboost_mean([query], None) == 0.0


# ---- real data ----


@functools.cache
def read(data, folder, score):
    source = {"lightgbm_lambdarank": "scored_test.parquet", "mq2008": "scored.parquet"}[folder]
    table = pq.read_table(data / folder / source)
    columns = {name: table[name].to_pylist() for name in ("qid", "label", score)}
    queries = {}
    for row, (qid, label, value) in enumerate(zip(*columns.values(), strict=True)):
        query = queries.setdefault(str(qid), Query(str(qid), [], [], [], []))
        query.grades.append(int(label))
        query.scores.append(float(np.float32(value)))
        query.doc_ids.append(f"d{row:07d}")
    return list(queries.values())


@pytest.mark.parametrize(
    ("folder", "score"),
    [("lightgbm_lambdarank", "score"), ("lightgbm_lambdarank", "score_1dp"), ("mq2008", "score")],
)
@pytest.mark.parametrize("name", RIVALS)
def test_the_tool_says_so_on_real_data(data, name, folder, score):
    rival = installed(name)
    queries = [
        query
        for query in read(data, folder, score)
        if len(query.grades) >= rival.least and len(query.grades) <= (rival.longest or 10**9)
    ]
    if not rival.ties:
        queries = [query for query in queries if len(set(query.scores)) == len(query.scores)]
    assert not differences(queries, name, 10, rival.run(queries, 10))


@pytest.fixture(scope="module")
def robust(data):
    folder = data / "robust03"
    qrels = {}
    with gzip.open(folder / "qrels.robust03.txt.gz", "rt") as lines:
        for name, _, document, grade in map(str.split, lines):
            qrels.setdefault(name, {})[document] = int(grade)
    run = {}
    with gzip.open(folder / "run.MU03rob01.gz", "rt") as lines:
        for name, _, document, _, score, _ in map(str.split, lines):
            run.setdefault(name, {})[document] = float(score)
    queries = [
        Query(
            name,
            [qrels[name].get(document, 0) for document in documents],
            list(documents.values()),
            list(documents),
            [grade for document, grade in qrels[name].items() if document not in documents],
        )
        for name, documents in run.items()
    ]
    return queries, rankings_of(queries)


@pytest.mark.parametrize(
    ("name", "peer", "measure"),
    [("trec_eval", "trec_eval10", f"ndcg_cut_{k}") for k in (1, 3, 5, 10, 20, 100)]
    + [("pytrec_eval", "pytrec_eval", f"ndcg_cut_{k}") for k in (1, 3, 5, 10, 20, 100)]
    + [
        ("trec_eval", "trec_eval10", "ndcg"),
        ("pytrec_eval", "pytrec_eval", "ndcg"),
        ("gdeval", "gdeval", "nDCG@20"),
    ],
)
def test_reference_values_of_a_run_with_90_099_tied_lines(data, robust, name, peer, measure):
    table = pq.read_table(data / "robust03" / "reference_per_query.parquet")
    table = table.filter(pc.and_(pc.equal(table["peer"], peer), pc.equal(table["measure"], measure)))
    reference = dict(zip(table["qid"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert len(reference) == 100
    k = {"ndcg": None, "nDCG@20": 20}.get(measure) or (
        int(measure.rpartition("_")[2]) if "cut" in measure else None
    )
    queries, rankings = robust
    assert not differences(
        queries, name, k, [reference.get(query.name) for query in queries], rankings=rankings
    )
