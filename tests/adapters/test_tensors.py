"""Tensors of PyTorch and JAX wherever arrays are taken, the metric of torchmetrics, and the evaluator of sentence-transformers."""

import math
import os
import subprocess
import sys
from pathlib import Path

import engines
import numpy as np
import pytest

import fastndcg as fn
from fastndcg.errors import ConventionError, InputError, InputTypeError

engines.need("torch", "torchmetrics", "sentence_transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # what the hosts say of themselves

# ten seconds to import, which no other worker needs to wait for
torch, torchmetrics = engines.imported_later("torch"), engines.imported_later("torchmetrics")
adapter = engines.imported_later("fastndcg.adapters.torchmetrics")
evaluators = engines.imported_later("fastndcg.adapters.sentence_transformers")

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 20, 60)
INDEXES = np.repeat(RNG.permutation(60), SIZES)
GRADES, SCORED = RNG.integers(0, 4, len(INDEXES)), (RNG.integers(0, 30, len(INDEXES)) / 8).astype(np.float32)
WANTED = fn.evaluate(fn.Rankings.from_query_ids(INDEXES, GRADES, SCORED), ["nDCG@10", "RR"]).mean()


# ---- tensors ----


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_tensors_of_pytorch(dtype):
    """Those that want a gradient too; scores here are exact in every dtype."""
    scores = torch.tensor(SCORED).to(getattr(torch, dtype)).requires_grad_()
    found = fn.ndcg(torch.tensor(GRADES), scores, query_ids=torch.tensor(INDEXES), k=10)
    assert found.mean() == pytest.approx(WANTED["nDCG@10"], rel=1e-14)
    rankings = fn.Rankings.from_groups(torch.tensor(SIZES), torch.tensor(GRADES), scores)
    assert rankings.scores.tolist() == SCORED.tolist()
    assert rankings.with_scores(-scores).scores.tolist() == (-SCORED).tolist()


def test_a_tensor_is_not_copied():
    scores = torch.tensor(SCORED)
    assert np.shares_memory(fn.Rankings.from_groups(SIZES, GRADES, scores).scores, scores.numpy())


def test_arrays_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for dtype in (jax.numpy.float32, jax.numpy.bfloat16):
        scores = jax.numpy.asarray(SCORED).astype(dtype)
        assert (
            fn.Rankings.from_groups(SIZES, jax.numpy.asarray(GRADES), scores).scores.tolist()
            == SCORED.tolist()
        )


class OnDevice:
    """What CuPy's arrays show."""

    __cuda_array_interface__ = __dlpack__ = None

    def get(self):
        return SCORED


class OnlyDLPack:
    def __dlpack__(self, **options):
        return np.array(SCORED).__dlpack__(**options)

    def __dlpack_device__(self):
        return np.array(SCORED).__dlpack_device__()


@pytest.mark.parametrize("values", [OnDevice(), OnlyDLPack()])
def test_protocols(values):
    assert fn.Rankings.from_groups(SIZES, GRADES, values).scores.tolist() == SCORED.tolist()


def padded():
    """What stands in the padding is nothing that could be evaluated."""
    mask = np.arange(SIZES.max()) < SIZES[:, None]
    true, score = np.full(mask.shape, -9), np.full(mask.shape, np.nan, np.float32)
    true[mask], score[mask] = GRADES, SCORED
    return true, score, mask


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_padded_batches(kind):
    to = torch.tensor if kind == "torch" else np.asarray
    true, score, mask = padded()
    found = fn.Rankings.from_dense(to(true), to(score), mask=to(mask))
    assert found.lengths.tolist() == SIZES.tolist()
    assert found.scores.tolist() == SCORED.tolist()
    with pytest.raises(
        InputError, match=r"mask has shape \(60,\) and dtype bool; wanted True and False in the shape"
    ):
        fn.Rankings.from_dense(true, score, mask=mask[:, 0])
    with pytest.raises(InputError, match="dtype int64; wanted True and False"):
        fn.Rankings.from_dense(true, score, mask=mask.astype(np.int64))


# ---- torchmetrics ----


def fed(metric, batch=100):
    for start in range(0, len(SCORED), batch):
        part = slice(start, start + batch)
        metric.update(
            torch.tensor(SCORED[part]), torch.tensor(GRADES[part]), indexes=torch.tensor(INDEXES[part])
        )
    return metric


@pytest.mark.parametrize("batch", [7, 100, 10_000])
def test_batches(batch):
    metric = fed(adapter.RankingMetric(["nDCG@10", "RR"]), batch)
    assert {name: value.item() for name, value in metric.compute().items()} == WANTED
    assert len(metric.per_query()["RR"]) == 60
    metric.reset()
    assert math.isnan(adapter.RankingMetric("RR").compute()) and not metric.preds


def test_padded_batches_of_a_metric():
    true, score, mask = map(torch.tensor, padded())
    metric = adapter.RankingMetric("nDCG@10")
    for rows in (slice(0, 25), slice(25, None)):
        metric.update(score[rows], true[rows], mask=mask[rows])
    assert metric.compute().item() == WANTED["nDCG@10"]


def test_torchmetrics_own_number():
    theirs = torchmetrics.retrieval.RetrievalNormalizedDCG(top_k=10)
    theirs.update(torch.tensor(SCORED), torch.tensor(GRADES), indexes=torch.tensor(INDEXES))
    assert fed(adapter.RankingMetric("nDCG@10", like="torchmetrics")).compute().item() == pytest.approx(
        theirs.compute().item(), rel=1e-6
    )
    distinct = torch.arange(len(SCORED)) * 0.01 - 0.2  # they do not say what they do with ties
    for name, measure in {
        "MAP": "AP@5", "Precision": "P@5", "Recall": "R@5", "MRR": "RR@5", "HitRate": "Success@5"
    }.items():  # fmt: skip
        theirs = getattr(torchmetrics.retrieval, f"Retrieval{name}")(top_k=5)
        ours = adapter.RankingMetric(measure, like="torchmetrics")
        for metric in (theirs, ours):
            metric.update(distinct, torch.tensor(GRADES) > 1, indexes=torch.tensor(INDEXES))
        assert ours.compute().item() == pytest.approx(theirs.compute().item(), rel=1e-6), measure
    with pytest.raises(ConventionError):
        adapter.RankingMetric("nDCG@10", like="torchmatrics")


def test_forward_and_collection():
    collection = torchmetrics.MetricCollection(
        {"a": adapter.RankingMetric("nDCG@10"), "b": adapter.RankingMetric("RR")}
    )
    shown = collection(torch.tensor(SCORED), torch.tensor(GRADES), indexes=torch.tensor(INDEXES))
    assert [shown["a"].item(), shown["b"].item()] == [*WANTED.values()]
    assert collection.compute()["a"].item() == WANTED["nDCG@10"]


def test_what_a_metric_refuses():
    with pytest.raises(InputError, match=r"preds has shape \(3,\) and there are no indexes"):
        adapter.RankingMetric("RR").update(torch.ones(3), torch.ones(3))
    with pytest.raises(InputError, match=r"target has shape \(2,\) and preds \(3,\)"):
        adapter.RankingMetric("RR").update(torch.ones(3), torch.ones(2), torch.ones(3))


PROCESS = """
import sys, torch, test_tensors as t
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", f"file://{sys.argv[2]}", world_size=2, rank=rank)
metric, rows = t.adapter.RankingMetric(["nDCG@10", "RR"], threads=1), slice(rank, None, 2)
metric.update(torch.tensor(t.SCORED[rows]), torch.tensor(t.GRADES[rows]), indexes=torch.tensor(t.INDEXES[rows]))
dense = t.adapter.RankingMetric("nDCG@10", threads=1)
true, score, mask = map(torch.tensor, t.padded())
dense.update(score[rows], true[rows], mask=mask[rows])
found = {name: value.item() for name, value in metric.compute().items()}
assert found == t.WANTED and dense.compute().item() == t.WANTED["nDCG@10"], found
"""


def test_processes(tmp_path):
    """Queries are spread over two; both have the mean of all."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROCESS, str(rank), str(tmp_path / "store")],
            cwd=Path(__file__).parent,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        for rank in range(2)
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0]


def test_the_example_of_the_page():
    names = {}
    exec(engines.page_example("torchmetrics", "evaluators"), names)  # noqa: S102 - the page's own lines
    scored = fn.Rankings.from_query_ids([7, 7, 8, 8, 7], [2, 0, 1, 0, 3], [0.2, 0.7, 0.1, 0.9, 0.4])
    wanted = fn.evaluate(scored, ["nDCG@10", "RR"]).mean()
    assert {name: float(value) for name, value in names["values"].items()} == pytest.approx(wanted, rel=1e-6)


# ---- sentence-transformers ----


@pytest.fixture(scope="module")
def model():
    """A model of counted words, made here."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    return SentenceTransformer(modules=[BoW(vocab=[f"w{word}" for word in range(40)])], device="cpu")


def texts(number, seed, prefix):
    rng = np.random.default_rng(seed)
    return {
        f"{prefix}{each}": " ".join(f"w{word}" for word in rng.integers(0, 40, 6)) for each in range(number)
    }


QUERIES, CORPUS = texts(15, 1, "q"), texts(80, 2, "d")
JUDGED = {
    query: {
        f"d{document}": int(grade)
        for document, grade in zip(RNG.permutation(80)[:12], [0, 1, 2, 3] * 3, strict=True)
    }
    for query in QUERIES
}


def test_binary_judgments_have_the_numbers_of_the_library(model):
    from sentence_transformers.sentence_transformer import evaluation

    sets = {
        query: {document for document, grade in grades.items() if grade} for query, grades in JUDGED.items()
    }
    options = {"ndcg_at_k": [3, 10], "write_csv": False}
    theirs = evaluation.InformationRetrievalEvaluator(QUERIES, CORPUS, sets, **options)(model)
    found = evaluators.InformationRetrievalEvaluator(QUERIES, CORPUS, sets, **options)(model)
    assert {name: pytest.approx(value, rel=1e-12) for name, value in theirs.items()} == {
        name: value for name, value in found.items() if not name.endswith(("_low", "_high"))
    }


@pytest.mark.parametrize("gain", ["linear", "exp2"])
def test_grades(model, gain, tmp_path):
    more = ["ERR@5", "AP(rel=2)@10", "Rprec", "P@3"]
    evaluator = evaluators.InformationRetrievalEvaluator(
        QUERIES, CORPUS, JUDGED, ndcg_at_k=[10], gain=gain, measures=more
    )
    found = evaluator(model, output_path=str(tmp_path))
    ((name, scores),) = evaluator.scores.items()
    measure = fn.nDCG(gain=gain, ties="input") @ 10
    assert found[f"{name}_ndcg@10"] == scores.mean()[str(measure)]
    assert scores.to_arrow()["query_id"].to_pylist() == [*QUERIES]
    row = scores.summary(0.95).to_arrow().to_pylist()[0]
    assert [found[f"{name}_ndcg@10_low"], found[f"{name}_ndcg@10_high"]] == [row["low"], row["high"]]
    run = model.similarity(model.encode([*QUERIES.values()]), model.encode([*CORPUS.values()])).tolist()
    returned = {query: dict(zip(CORPUS, row, strict=True)) for query, row in zip(QUERIES, run, strict=True)}
    asked = [measure, *(fn.parse(each)(ties="input") for each in more)]
    whole = fn.evaluate(fn.Rankings.from_qrels_run(JUDGED, returned, ties="docid_asc"), asked)
    for each, notation in zip(asked, ["ndcg@10", *more], strict=True):
        assert scores[each].tolist() == pytest.approx(whole[each].tolist(), rel=1e-12)
        assert found[f"{name}_{notation}"] == scores.mean()[str(each)]
        assert found[f"{name}_{notation}_low"] <= found[f"{name}_{notation}"]
    assert (tmp_path / evaluator.csv_file).exists()


def test_judgments_that_are_neither():
    with pytest.raises(InputTypeError, match=r"relevant_docs\['q1'\] is a int; wanted a dict"):
        evaluators.InformationRetrievalEvaluator({"q1": "a"}, {"d": "b"}, {"q1": 3})


def test_the_example_of_the_page_of_embeddings():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    names = {}
    exec(engines.page_example("sentence-transformers", "evaluators"), names)  # noqa: S102 - the page's own lines
    words = sorted(set(" ".join(names["corpus"].values()).split()))
    evaluator = names["evaluator"]
    found = evaluator(SentenceTransformer(modules=[BoW(vocab=words)], device="cpu"))
    assert 0.9 < found["cosine_ndcg@10"] <= 1
    assert found["cosine_ndcg@10_low"] <= found["cosine_ndcg@10"] <= found["cosine_ndcg@10_high"]
    frame = evaluator.scores["cosine"].to_pandas()
    assert list(frame.iloc[:, 0]) == ["q1", "q2"]
