"""Other tools and fastndcg, asked the same question about the same documents, on one thread.

    pytest bench/test_rivals.py                          a table for each question: the tool, and fastndcg
    pytest bench/test_rivals.py --benchmark-compare      beside the stored record
    pytest bench/test_rivals.py --benchmark-disable      only whether the answers agree, for few queries
    pytest bench/test_rivals.py --benchmark-save=rivals  store a record; python -m scripts.pages makes the tables from it

Times are of the processor, which other processes on the machine disturb least. A tool's answer is first compared with ours. What
a tool can be given beforehand (its own containers, data sets, tables) is built beforehand, and not timed. Settings are the
defaults, and the kernels of fastndcg are compiled and kept beforehand. The documents have no ties, which most of the tools rank in
an order of their own. Tools that take longer are asked about the first queries only, and fastndcg about the same ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import fastndcg as fn
from bench import samples

QUERIES, LENGTH = 20_000, 100
Call = Callable[[], Any]  # returns the mean, or the value of each query

SQL = """
with lists as (select query, arg_max(grade, score, 10) as found, max(grade, 10) as ideal from documents group by query),
sums as (
    select list_sum(list_transform(found, lambda grade, rank: grade / log2(rank + 1))) as dcg,
           list_sum(list_transform(ideal, lambda grade, rank: grade / log2(rank + 1))) as idcg
    from lists
)
select avg(case when idcg > 0 then dcg / idcg else 0 end) from sums
"""


# ---- what tools take ----


def matrices(rankings: fn.Rankings) -> tuple[np.ndarray, np.ndarray]:
    """Grades and scores, a row for each query."""
    shape = (rankings.n_queries, LENGTH)
    return rankings.relevance.reshape(shape), rankings.scores.reshape(shape)


def columns(rankings: fn.Rankings) -> dict[str, np.ndarray]:
    queries = np.repeat(np.arange(rankings.n_queries), LENGTH)
    return {"query": queries, "grade": rankings.relevance, "score": rankings.scores}


def dicts(rankings: fn.Rankings) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgments and a run, as the Python tools of TREC take them."""
    qrels, run = {}, {}
    names = [f"d{document}" for document in range(LENGTH)]
    for query, (grades, scores) in enumerate(zip(*matrices(rankings), strict=True)):
        qrels[f"q{query:07d}"] = dict(zip(names, grades.tolist(), strict=True))
        run[f"q{query:07d}"] = dict(zip(names, scores.tolist(), strict=True))
    return qrels, run


# ---- the tools: each function takes rankings, and returns the call that is timed ----


def catboost(rankings: fn.Rankings) -> Call:
    from catboost.utils import eval_metric

    queries, metric = columns(rankings)["query"], "NDCG:top=10;type=Base"
    return lambda: eval_metric(rankings.relevance, rankings.scores, metric, group_id=queries, thread_count=1)[0]  # fmt: skip


def duckdb(rankings: fn.Rankings) -> Call:
    """The ten best by aggregates, from a table in its own memory. Two window functions took 3.6 times as long."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads = 1")
    connection.register("rows", pa.table(columns(rankings)))
    connection.execute("create table documents as select * from rows")
    return lambda: connection.execute(SQL).fetchone()[0]  # type: ignore[index]


def ir_measures(rankings: fn.Rankings) -> Call:
    import ir_measures

    qrels, run = dicts(rankings)
    evaluator = ir_measures.evaluator([ir_measures.nDCG @ 10], qrels)
    return lambda: [metric.value for metric in evaluator.iter_calc(run)]


def lightgbm(rankings: fn.Rankings) -> Call:
    """Its own C++ metric: scores as `init_score` of a data set, evaluated by a booster without trees."""
    import lightgbm

    quiet = {"verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        np.zeros((rankings.n_docs, 1)),
        label=rankings.relevance,
        group=rankings.lengths,
        init_score=rankings.scores.astype(np.float64),
        params={**quiet, "feature_pre_filter": False},
    )
    booster = lightgbm.Booster({"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], **quiet}, data)
    return lambda: booster.eval_train()[0][2]


def polars(rankings: fn.Rankings) -> Call:
    """Group, sort within, add up. `rank().over()` and a filter took 1.3 times as long."""
    import polars as pl

    rank = pl.int_range(1, pl.min_horizontal(pl.len(), 10) + 1).cast(pl.Float64)

    def dcg(ordered: pl.Expr) -> pl.Expr:
        return (ordered.head(10).cast(pl.Float64) / (rank + 1).log(2)).sum()

    grade, found, ideal = pl.col("grade"), pl.col("found"), pl.col("ideal")
    sums = (
        pl.DataFrame(columns(rankings))
        .lazy()
        .group_by("query", maintain_order=True)
        .agg(found=dcg(grade.sort_by("score", descending=True)), ideal=dcg(grade.sort(descending=True)))
    )
    mean = sums.select(pl.when(ideal > 0).then(found / ideal).otherwise(0.0).mean())
    return lambda: mean.collect().item()


def polars_auc(rankings: fn.Rankings) -> Call:
    import polars as pl

    relevant = pl.col("grade") >= 1
    sums = (
        pl.DataFrame(columns(rankings))
        .lazy()
        .group_by("query", maintain_order=True)
        .agg(
            ranks=pl.col("score").rank("average").filter(relevant).sum(),
            found=relevant.sum().cast(pl.Float64),
            n=pl.len(),
        )
    )
    found, pairs = pl.col("found"), pl.col("found") * (pl.col("n") - pl.col("found"))
    right = pl.col("ranks") - found * (found + 1) / 2
    mean = sums.select(pl.when(pairs > 0).then(right / pairs).otherwise(0.0).mean())
    return lambda: mean.collect().item()


def pytrec_eval(rankings: fn.Rankings) -> Call:
    import pytrec_eval

    qrels, run = dicts(rankings)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    return lambda: [values["ndcg_cut_10"] for values in evaluator.evaluate(run).values()]


def our_pytrec_eval(rankings: fn.Rankings) -> Call:
    from fastndcg.adapters import pytrec_eval

    qrels, run = dicts(rankings)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    return lambda: [values["ndcg_cut_10"] for values in evaluator.evaluate(run).values()]


def ranx(rankings: fn.Rankings) -> Call:
    """`Qrels` and `Run` are built beforehand, which takes some 30 times as long as evaluating them."""
    from ranx import Qrels, Run, evaluate

    qrels, run = dicts(rankings)
    judged, ranked = Qrels(qrels), Run(run)
    return lambda: evaluate(judged, ranked, "ndcg@10")


def sklearn(rankings: fn.Rankings, **options: bool) -> Call:
    from sklearn.metrics import ndcg_score

    grades, scores = matrices(rankings)
    return lambda: ndcg_score(grades, scores, k=10, **options)


def sklearn_unaveraged(rankings: fn.Rankings) -> Call:
    return sklearn(rankings, ignore_ties=True)


def sklearn_auc(rankings: fn.Rankings) -> Call:
    from sklearn.metrics import roc_auc_score

    grades, scores = matrices(rankings)
    relevant = grades >= 1
    both = (relevant.any(axis=1) & ~relevant.all(axis=1)).tolist()
    queries = list(zip(relevant, scores, both, strict=True))
    return lambda: [roc_auc_score(*of_query) if is_known else 0.0 for *of_query, is_known in queries]


def torchmetrics(rankings: fn.Rankings) -> Call:
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    torch.set_num_threads(1)
    scores, grades = torch.tensor(rankings.scores), torch.tensor(rankings.relevance).long()
    queries, metric = torch.tensor(columns(rankings)["query"]), RetrievalNormalizedDCG(top_k=10)

    def call() -> float:
        metric.reset()
        metric.update(scores, grades, indexes=queries)
        return float(metric.compute())

    return call


def xgboost(rankings: fn.Rankings) -> Call:
    """Its own C++ metric: scores as `base_margin`, evaluated by a booster without trees."""
    import xgboost

    features = np.zeros((rankings.n_docs, 1), np.float32)
    data = xgboost.DMatrix(features, label=rankings.relevance, base_margin=rankings.scores, nthread=1)
    data.set_group(rankings.lengths)
    settings = {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "nthread": 1, "verbosity": 0}
    booster = xgboost.Booster(settings, [data])
    return lambda: float(booster.eval(data).rpartition(":")[2])


# ---- the questions ----


class Rival(NamedTuple):
    """A question to a tool. `measure` is the definition that it computes, in our notation."""

    package: str
    theirs: Callable[[fn.Rankings], Call]
    measure: str = "nDCG@10"
    queries: int = QUERIES
    tolerance: float = 1e-12
    ours: Callable[[fn.Rankings], Call] | None = None  # default: `evaluate` of `measure`
    note: str = ""


_BOOSTERS = "nDCG(gain='exp2', ties='input', empty=1)@10"
RIVALS = {
    "scikit-learn ndcg_score": Rival("scikit-learn", sklearn, note="averages ties, as fastndcg does"),
    "scikit-learn ndcg_score, ignore_ties": Rival("scikit-learn", sklearn_unaveraged),
    "scikit-learn roc_auc_score": Rival("scikit-learn", sklearn_auc, "AUC", 2_000, note="a loop over queries; those of one class are 0"),
    "pytrec_eval ndcg_cut_10": Rival("pytrec_eval-terrier", pytrec_eval, queries=10_000, note="its dictionaries are read in the call"),
    "pytrec_eval, fastndcg from dictionaries": Rival(
        "pytrec_eval-terrier", pytrec_eval, queries=10_000, ours=our_pytrec_eval, note="both read the same dictionaries in the call",
    ),
    "ir_measures nDCG@10": Rival("ir_measures", ir_measures, queries=10_000, note="its dictionaries are read in the call"),
    "ranx evaluate": Rival("ranx", ranx, queries=10_000, note="without the building of its inputs"),
    "torchmetrics RetrievalNormalizedDCG": Rival(
        "torchmetrics", torchmetrics, queries=3_000, tolerance=1e-6, note="a loop over queries, in float32, so that its answer is held to 1e-6",
    ),
    "LightGBM ndcg@10 (C++)": Rival("lightgbm", lightgbm, _BOOSTERS, note="its ideal is computed once, when the booster is made, and is not timed"),
    "XGBoost ndcg@10 (C++)": Rival("xgboost-cpu", xgboost, _BOOSTERS, note="with the prediction of a model without trees"),
    "CatBoost eval_metric NDCG": Rival("catboost", catboost, "nDCG(ties='worst', empty=1)@10", note="with the conversion of its inputs, which its function includes"),
    "Polars expressions": Rival("polars", polars),
    "Polars expressions of AUC": Rival("polars", polars_auc, "AUC", note="averages ranks within ties"),
    "DuckDB SQL": Rival("duckdb", duckdb),
}  # fmt: skip


@lru_cache(maxsize=1)
def question(name: str, most: int) -> tuple[int, dict[str, Call]]:
    """The number of documents, and how the tool and fastndcg answer for them. Both answers have been compared."""
    rival = RIVALS[name]
    queries = min(rival.queries, most)
    rankings = samples.untied(QUERIES, LENGTH)[:queries]

    def evaluate() -> np.ndarray:
        return fn.evaluate(rankings, rival.measure, threads=1).values[0]

    theirs, ours = rival.theirs(rankings), rival.ours(rankings) if rival.ours else evaluate
    values, answer = evaluate(), theirs()
    if np.ndim(answer):
        np.testing.assert_allclose(answer, values, rtol=rival.tolerance, atol=rival.tolerance)
    else:
        assert math.isclose(answer, values.mean(), rel_tol=rival.tolerance), (answer, values.mean())
    np.testing.assert_allclose(ours(), values, rtol=1e-12, atol=1e-12)
    return rankings.n_docs, {"theirs": theirs, "fastndcg": ours}


@pytest.fixture(scope="session")
def most(request: pytest.FixtureRequest) -> int:
    """The most queries that are asked: few, if nothing is timed. Otherwise kernels are compiled and kept first."""
    if request.config.getoption("benchmark_disable"):
        return 200
    fn.compile_kernels(sorted({rival.measure for rival in RIVALS.values()}), scores="float32")
    return QUERIES


@pytest.mark.filterwarnings("ignore:unsafe cast")  # of Numba, while ranx compiles
@pytest.mark.benchmark(timer=time.process_time, min_rounds=5, max_time=2.0, disable_gc=True)
@pytest.mark.parametrize("who", ["theirs", "fastndcg"])
@pytest.mark.parametrize("name", RIVALS)
def test_rivals(benchmark: Any, name: str, who: str, most: int) -> None:
    rival = RIVALS[name]
    try:
        version = metadata.version(rival.package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{rival.package} is not installed: pip install -e '.[rivals]'")
    documents, calls = question(name, most)
    benchmark.group = f"{name}: {rival.measure}"
    benchmark.extra_info |= {
        "documents": documents,
        "measure": rival.measure,
        "version": version,
        "note": rival.note,
    }
    benchmark(calls[who])
