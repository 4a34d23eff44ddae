"""The programs of docs/recipes.md that need a host, run in it: torchmetrics, sentence-transformers, MLflow, ppi-python."""

import os
import subprocess
import sys
from pathlib import Path

import engines
import numpy as np
import pandas as pd
import pytest

import fastndcg as fn

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]  # what the hosts say of themselves

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 20, 60)
INDEXES = np.repeat(RNG.permutation(60), SIZES)
GRADES, SCORED = RNG.integers(0, 4, len(INDEXES)), (RNG.integers(0, 30, len(INDEXES)) / 8).astype(np.float32)


def run_recipe(heading):
    """The names that the program below a heading defines."""
    names = {"__name__": "recipe"}
    exec(engines.page_example(heading, "recipes"), names)  # noqa: S102 - the page's own lines
    return names


def test_few_labels():
    engines.need("ppi_py", extra="rivals")
    names = run_recipe("Few labels of people, many of a model")
    (low,), (mean,), (high,) = (names[each] for each in ("low", "mean", "high"))
    assert 0 < low < mean < high < 1
    assert low < fn.ndcg(names["grades"], names["scores"], k=10).mean() < high


def fed(metric, rows=slice(None), batch=100):
    import torch

    columns = [torch.tensor(each[rows]) for each in (SCORED, GRADES, INDEXES)]
    for start in range(0, len(columns[0]), batch):
        metric.update(*(each[start : start + batch] for each in columns))
    return metric


@pytest.mark.parametrize("batch", [7, 10_000])
def test_torchmetrics(batch):
    engines.need("torch", "torchmetrics", extra="rivals")
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    metric = run_recipe("torchmetrics")["RankingMetric"]
    expected = fn.evaluate(fn.Rankings.from_query_ids(INDEXES, GRADES, SCORED), "nDCG@10").mean()["nDCG@10"]
    assert fed(metric(), batch=batch).compute().item() == expected
    theirs = fed(RetrievalNormalizedDCG(top_k=10), batch=batch).compute().item()
    like = fed(metric("nDCG(like='torchmetrics')@10"), batch=batch)
    assert like.compute().item() == pytest.approx(theirs, rel=1e-6)
    like.reset()
    assert not like.preds


PROCESS = """
import sys, torch, test_recipes as t
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", f"file://{sys.argv[2]}", world_size=2, rank=rank)
found = t.fed(t.run_recipe("torchmetrics")["RankingMetric"](), slice(rank, None, 2)).compute().item()
rankings = t.fn.Rankings.from_query_ids(t.INDEXES, t.GRADES, t.SCORED)
assert found == t.fn.evaluate(rankings, "nDCG@10").mean()["nDCG@10"], found
"""


def test_torchmetrics_of_two_processes(tmp_path):
    """Queries are spread over both, and both have the mean of all."""
    engines.need("torch", "torchmetrics", extra="rivals")
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROCESS, str(rank), str(tmp_path / "store")],
            cwd=Path(__file__).parent,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        for rank in range(2)
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0]


def test_sentence_transformers():
    engines.need("sentence_transformers", extra="rivals")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
    from sentence_transformers.sentence_transformer.modules import BoW

    words = [f"w{word}" for word in range(40)]
    model = SentenceTransformer(modules=[BoW(vocab=words)], device="cpu")
    queries, corpus = (
        {f"{prefix}{each}": " ".join(RNG.choice(words, 6)) for each in range(number)}
        for prefix, number in (("q", 15), ("d", 80))
    )
    judged = {query: {f"d{each}": 1 for each in RNG.permutation(80)[:6]} for query in queries}
    asked = ("nDCG(ties='input')@10", "ERR@5")
    evaluator = run_recipe("sentence-transformers")["GradedRetrieval"](queries, corpus, judged, asked)
    found = evaluator(model)
    theirs = InformationRetrievalEvaluator(
        queries, corpus, {each: {*of} for each, of in judged.items()}, ndcg_at_k=[10], write_csv=False
    )
    own = evaluator.scores.summary(0.95).rows[0]
    assert found[evaluator.primary_metric] == own["mean"] and own["low"] <= own["mean"] <= own["high"]
    assert found.keys() == {*asked}
    # tied documents are in another order there
    assert found[asked[0]] == pytest.approx(theirs(model)["cosine_ndcg@10"], abs=0.02)


def test_mlflow(tmp_path, monkeypatch):
    engines.need("mlflow", extra="rivals")
    import mlflow

    metric = run_recipe("MLflow")["ndcg_at_10"]
    returned = [["a", "b", "c"], ["x", "c"], [], ["q"], ["e", "f", "g", "h", "i"]]
    relevant = [["a"], ["c", "d", "e"], ["z"], ["r"], ["h", "f", "x", "y"]]
    frame = pd.DataFrame({"returned": returned, "relevant": relevant})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    mlflow.set_experiment("rankers")
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=frame, predictions="returned", targets="relevant", model_type="retriever",
            evaluators="default", extra_metrics=[metric],
        )  # fmt: skip
    rankings = fn.Rankings.from_qrels_run(dict(enumerate(relevant)), dict(enumerate(returned)))
    expected = fn.evaluate(rankings, "nDCG@10").mean()["nDCG@10"]
    assert result.metrics["ndcg_at_10/mean"] == pytest.approx(expected)
    assert metric.eval_fn([["b", "a"]], [{"a": 3, "b": 1}]).scores == [fn.ndcg([1, 3], [2, 1], k=10)[0]]
    own = {
        "P@3": mlflow.metrics.precision_at_k(3),
        "R@3": mlflow.metrics.recall_at_k(3),
        "nDCG@3": mlflow.metrics.ndcg_at_k(3),
    }
    found = fn.evaluate(rankings, [*own], convention="mlflow")
    for values, theirs in zip(found.values, own.values(), strict=True):
        assert values.tolist() == pytest.approx(
            theirs.eval_fn(frame["returned"], frame["relevant"]).scores, abs=1e-12
        )
