"""Data frames and SQL: the namespace of Polars, the function of DuckDB, a metric of MLflow."""

import duckdb
import engines
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fastndcg as fn
import fastndcg.adapters.polars
from fastndcg.adapters import duckdb as fnd
from fastndcg.errors import ColumnError, MeasureError

TABLE = engines.documents(120)
MEASURES = ["nDCG@10", "RR"]


@pytest.mark.parametrize("lazy", [False, True])
def test_polars(lazy, tmp_path):
    """Frames, lazy frames over files with a filter before, and list columns."""
    frame = pl.DataFrame(TABLE).with_columns(pl.col("qid").mod(3).alias("group"), other=1)
    wanted = fn.evaluate(fn.Rankings.from_arrow(frame.filter(pl.col("qid") > 0), keep="group"), MEASURES)
    if lazy:
        frame.write_parquet(tmp_path / "rows.parquet")
        frame = pl.scan_parquet(tmp_path / "*.parquet")
    frame = frame.filter(pl.col("qid") > 0)
    found = frame.fastndcg.evaluate(MEASURES, keep="group", threads=1)
    assert found.mean() == wanted.mean() and found.by("group") == wanted.by("group")
    lists = frame.group_by("qid", maintain_order=True).agg("label", "score")
    assert lists.fastndcg.evaluate(MEASURES).mean() == wanted.mean()
    with pytest.raises(ColumnError, match="scores"):
        frame.fastndcg.evaluate("RR", score="scores")


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        fnd.register(connection)
        yield connection


@pytest.mark.parametrize("numbers", ["label::TINYINT", "label::DOUBLE", "label::DECIMAL(5, 1)"])
def test_duckdb(connection, numbers):
    """Several cutoffs in one call, and rows of nulls between them."""
    rows = TABLE  # DuckDB finds it by its name
    found = connection.sql(
        f"SELECT qid, 1 + abs(qid) % 3 AS k, ndcg(list({numbers}), list(score), k) AS value FROM rows GROUP BY qid"  # noqa: S608 - of this test
    ).fetchall()
    scores = fn.evaluate(fn.Rankings.from_arrow(rows), [fn.nDCG @ k for k in (1, 2, 3)])
    ids = scores.to_arrow()[0].to_pylist()
    values = {
        (qid, k): value
        for k in (1, 2, 3)
        for qid, value in zip(ids, scores[fn.nDCG @ k].tolist(), strict=True)
    }
    assert len(found) == 120 and {(qid, k): pytest.approx(value, rel=1e-14) for qid, k, value in found} == {
        (qid, k): values[qid, k] for qid, k, _ in found
    }


def test_rows_of_duckdb_without_a_value(connection):
    found = connection.sql(
        "SELECT ndcg(labels, scores, k) FROM (VALUES ([1, 0], [0.1, 0.9], 2), (NULL, [1], 2), ([1], [1], "
        "NULL), ([], [], 1)) AS rows(labels, scores, k)"
    ).fetchall()
    assert found == [(pytest.approx(1 / np.log2(3), rel=1e-15),), (None,), (None,), (0.0,)]
    assert connection.sql("SELECT ndcg([1], [1], NULL)").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[1], [0.5, 0.1], 2", "query 0 has 1 grade and 2 scores"),
        ("[1, 0], [0.5, 'nan'::DOUBLE], 2", "NaN"),
        ("[1, 0], [0.5, 0.1], 0", "k is 0; wanted 1 or more"),
        ("[1, NULL], [0.5, 0.1], 1", "relevance has 1 null"),
    ],
)
def test_what_duckdb_is_told(connection, arguments, message):
    with pytest.raises(duckdb.Error, match=message):
        connection.sql(f"SELECT ndcg({arguments})").fetchall()


def test_parameters_of_the_function(connection):
    fnd.register(connection, name="burges", gain="exp2", empty="nan")
    ((value, empty),) = connection.sql("SELECT burges([0, 3], [0.9, 0.1], 2), burges([0], [1], 1)").fetchall()
    assert value == pytest.approx(1 / np.log2(3), rel=1e-15) and np.isnan(empty)
    with pytest.raises(MeasureError, match="gian"):
        fnd.register(connection, name="other", gian="exp2")


def test_any_measure_is_a_function(connection):
    fnd.register(connection, name="ap", measure="AP", like="xgboost")
    fnd.register(connection, name="auc", measure="AUC", cutoff=None)
    fnd.register(connection, name="rr", measure="RR@2")
    fnd.register(connection, name="setp", measure="SetP")
    assert connection.sql(
        "SELECT ap([1, 0, 1], [3, 2, 1], 2), auc([1, 0, 1], [3, 2, 1]), rr([0, 0, 1], [3, 2, 1]), setp([1, 0], [3, 2]), auc(NULL, [1])"
    ).fetchall() == [(0.5, 0.5, 0, 0.5, None)]  # fmt: skip
    with pytest.raises(MeasureError, match="no measure is called"):
        fnd.register(connection, name="nothing", measure="nothing")


def test_polars_has_other_tools_numbers():
    frame = pl.DataFrame(
        {"qid": [1, 1, 2], "label": [1, 0, 0], "score": [0.5, 0.5, 0.1], "doc_id": ["x", "y", "z"]}
    )
    for each in (frame, frame.lazy()):
        for tool in ("trec_eval", "lightgbm"):
            found = each.fastndcg.evaluate("AP@3", convention=tool).mean()
            assert found == fn.evaluate(frame, "AP@3", convention=tool).mean()
    assert found == {"AP@3": 1.0}


@pytest.mark.filterwarnings("ignore")
def test_mlflow():
    """The page's own lines."""
    engines.need("mlflow")
    names = {}
    exec(engines.page_example("MLflow", "evaluators"), names)  # noqa: S102 - the page's own lines
    frame = names["predictions"]
    wanted = fn.evaluate(fn.Rankings.from_query_ids(frame["qid"], frame["label"], frame["score"]), "nDCG@10")
    result = names["ndcg_at_10"].eval_fn(frame["score"], frame["label"], {}, frame["qid"])
    assert result.scores == wanted["nDCG@10"].tolist()
    assert result.aggregate_results == {"mean": wanted.mean()["nDCG@10"]}


@pytest.mark.filterwarnings("ignore")
def test_metrics_of_mlflow_for_retrievers(tmp_path, monkeypatch):
    """By its convention they have the values of its own, and any measure is a metric of its evaluator."""
    engines.need("mlflow")
    import mlflow
    from mlflow import metrics

    from fastndcg.adapters.mlflow import retriever_metrics

    returned = [["a", "b", "c"], ["x", "c"], [], ["q"], ["e", "f", "g", "h", "i"]]
    relevant = [["a"], ["c", "d", "e"], ["z"], ["r"], ["h", "f", "x", "y"]]
    frame = pd.DataFrame({"returned": returned, "relevant": relevant})
    for k in (1, 3, 10):
        own = metrics.precision_at_k(k), metrics.recall_at_k(k), metrics.ndcg_at_k(k)
        ours = retriever_metrics([f"P@{k}", f"R@{k}", f"nDCG@{k}"], convention="mlflow")
        for one, other in zip(ours, own, strict=True):
            found, wanted = (each.eval_fn(frame["returned"], frame["relevant"]) for each in (one, other))
            assert found.scores == pytest.approx(wanted.scores, abs=1e-12)
            assert found.aggregate_results["mean"] == pytest.approx(wanted.aggregate_results["mean"])
    assert [each.name for each in retriever_metrics(["nDCG@10", "P(rel=2)@3"])] == [
        "nDCG_at_10",
        "P_rel_2_at_3",
    ]
    (graded,) = retriever_metrics("nDCG@2")
    assert graded.eval_fn([["b", "a"]], [{"a": 3, "b": 1}]).scores == [fn.ndcg([1, 3], [2, 1], k=2)[0]]
    with pytest.raises(fn.InputTypeError, match="targets of row 0 are a str; wanted a list of the ids"):
        graded.eval_fn([["a"]], ["a"])
    with pytest.raises(MeasureError):
        retriever_metrics("nothing")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    mlflow.set_experiment("rankers")
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=frame,
            predictions="returned",
            targets="relevant",
            model_type="retriever",
            evaluators="default",
            extra_metrics=retriever_metrics(["nDCG@10", "RR"]),
        )
    run = {str(row): docs for row, docs in enumerate(returned)}
    qrels = {str(row): dict.fromkeys(docs, 1) for row, docs in enumerate(relevant)}
    wanted = fn.evaluate(fn.Rankings.from_qrels_run(qrels, run), ["nDCG@10", "RR"]).mean()
    assert result.metrics["nDCG_at_10/mean"] == pytest.approx(wanted["nDCG@10"])
    assert result.metrics["RR/mean"] == pytest.approx(wanted["RR"])
