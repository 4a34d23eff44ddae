"""Real data against the numbers that other tools gave for it."""

import json
import re
from functools import cache

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastndcg as fn

SETS = {"lightgbm_lambdarank": "scored_test.parquet", "mq2008": "scored.parquet"}
SCORES = ("score", "score_1dp")

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.parametrize("name", SETS),
    pytest.mark.parametrize("score", SCORES),
]


@cache
def rows(path):
    return pq.read_table(path)


def reference(data, name, score, peer, measure, **more):
    table = rows(data / name / "reference_per_query.parquet")
    keep = pc.equal(table["scores"], score)
    for column, value in {"peer": peer, "measure": measure, **more}.items():
        keep = pc.and_(keep, pc.equal(table[column], value))
    table = table.filter(keep)
    return dict(zip(table["qid"].to_pylist(), table["value"].to_pylist(), strict=True))


def rankings(data, name, score, *, order="file"):
    """`order="falling ids"`: rows by descending document id, which is falling row number here; ties="input" then is trec_eval's rule."""
    table = rows(data / name / SETS[name])
    if order == "falling ids":
        first = {query: row for row, query in reversed(list(enumerate(table["qid"].to_pylist())))}
        rank = np.array([first[query] for query in table["qid"].to_pylist()])
        table = table.take(np.lexsort((-np.arange(table.num_rows), rank)))
    return fn.Rankings.from_query_ids(table["qid"], table["label"].to_numpy(), table[score].to_numpy())


def values(scores, measure):
    return dict(zip(scores.queries[0].to_pylist(), scores[measure].tolist(), strict=True))


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_scikit_learn_per_query_and_in_the_mean(data, name, score, gain):
    means = json.loads((data / name / "reference_means.json").read_text())["means"][score]
    cutoffs = [1, 3, 5, 10, 20, 100, None]
    measures = {
        (word, cutoff): measure(gain=gain) if cutoff is None else measure(gain=gain) @ cutoff
        for word, measure in (("ndcg", fn.nDCG), ("dcg", fn.DCG))
        for cutoff in cutoffs
    }
    scores = fn.evaluate(rankings(data, name, score), list(measures.values()))
    for (word, cutoff), measure in measures.items():
        theirs = f"{word}@{cutoff or 'all'}"
        wanted = reference(data, name, score, "sklearn", theirs, gain=gain)
        assert len(wanted) == scores.n_queries
        assert values(scores, measure) == pytest.approx(wanted, rel=1e-12, abs=1e-15)
        mean = means[f"sklearn {theirs} {gain} ties=average" + (" empty=0" if word == "ndcg" else "")]
        assert scores.mean()[str(measure)] == pytest.approx(mean, rel=1e-12)


def test_parquet_finds_its_columns(data, name, score):
    path = data / name / SETS[name]
    read = fn.read_parquet(path) if score == "score" else fn.read_parquet(path, score=score)
    wanted = fn.evaluate(rankings(data, name, score), "nDCG@10")
    got = fn.evaluate(read, "nDCG@10")
    assert got.values.tobytes() == wanted.values.tobytes()
    assert got.queries[0].to_pylist() == wanted.queries[0].to_pylist()


def test_pytrec_eval_by_document_order(data, name, score):
    """It compares scores as float32 and breaks ties by descending document id."""
    ordered = rankings(data, name, score, order="falling ids")
    narrow = fn.Rankings.from_offsets(
        ordered.offsets, ordered.relevance, ordered.scores.astype(np.float32), query_ids=ordered.queries[0]
    )
    for cutoff in (1, 3, 5, 10, 20, 100, None):
        measure = fn.nDCG(ties="input") if cutoff is None else fn.nDCG(ties="input") @ cutoff
        wanted = reference(
            data, name, score, "pytrec_eval", "ndcg" if cutoff is None else f"ndcg_cut_{cutoff}"
        )
        assert len(wanted) == narrow.n_queries
        assert values(fn.evaluate(narrow, measure), measure) == pytest.approx(wanted, rel=1e-12, abs=1e-15)


_TOOL = re.compile(
    r"(?P<tool>lightgbm|xgboost) ndcg(@(?P<cutoff>\w+))?-? (?P<gain>exp2|linear) empty=(?P<empty>[01]) ties=input order"
)


@pytest.mark.parametrize("tool", ["lightgbm", "xgboost"])
def test_lightgbm_and_xgboost_means(data, name, score, tool):
    """Ties in input order, a query without relevant documents counts 1; XGBoost compares float32 scores and,
    asked for no cutoff, cuts at 32.
    """
    ranked = rankings(data, name, score)
    if tool == "xgboost":
        ranked = fn.Rankings.from_offsets(ranked.offsets, ranked.relevance, ranked.scores.astype(np.float32))
    means = json.loads((data / name / "reference_means.json").read_text())["means"][score]
    tried = 0
    for key, wanted in means.items():
        found = _TOOL.match(key)
        if found is None or found["tool"] != tool:
            continue
        measure = fn.nDCG(gain=found["gain"], ties="input", empty=float(found["empty"]))
        cutoff = found["cutoff"] or "32"
        measure = measure if cutoff == "all" else measure @ int(cutoff)
        assert fn.evaluate(ranked, measure).mean()[str(measure)] == pytest.approx(wanted, rel=1e-12), key
        tried += 1
    assert tried >= 7


def test_lightgbm_s_own_training_log(data, name, score):
    if name != "lightgbm_lambdarank" or score != "score":
        pytest.skip("only the scores of the logged model")
    reported = json.loads((data / name / "lightgbm_reported.json").read_text())["reported"]["test"]
    measures = {
        cutoff: fn.nDCG(gain="exp2", ties="input", empty=1.0) @ int(cutoff.partition("@")[2])
        for cutoff in reported
    }
    means = fn.evaluate(rankings(data, name, score), list(measures.values())).mean()
    assert {cutoff: means[str(measure)] for cutoff, measure in measures.items()} == pytest.approx(
        reported, rel=1e-9
    )
