"""Spark for real: values bit for bit those of this process, exact means, skew, readable errors, executors that die."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import engines
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import ColumnError, InputError, InputTypeError, MeasureError

engines.need("pyspark")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402 - after the check that it is there
from pyspark.sql import functions as F  # noqa: E402

from fastndcg.adapters import spark as fns  # noqa: E402

pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:distutils Version classes are deprecated:DeprecationWarning"),  # 3.5
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, to its JVM
]

CUT = 7  # rows of an Arrow batch, so that nearly every query is cut


@pytest.fixture(scope="session", autouse=True)
def _java() -> None:
    engines.need_java()


@pytest.fixture(scope="session")
def spark(_java: None) -> Iterator[SparkSession]:
    session = engines.spark_session("local[2]", {"spark.driver.memory": "2g"})
    yield session
    session.stop()


@pytest.fixture
def cut_batches(spark: SparkSession) -> Iterator[None]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, str(CUT))
    yield
    spark.conf.unset(name)


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> Any:
    """A table as a DataFrame of several partitions."""

    def read(table: pa.Table) -> DataFrame:
        size = max(1, len(table) // 3)
        for part, start in enumerate(range(0, max(len(table), 1), size)):
            # random numbers gain nothing from either
            pq.write_table(
                table.slice(start, size),
                tmp_path / f"{part}.parquet",
                use_dictionary=False,
                compression="none",
            )
        return spark.read.parquet(str(tmp_path))

    return read


def rows_of(results: DataFrame) -> list[tuple[Any, ...]]:
    return engines.rows_of([row.asDict() for row in results.collect()])


# ---- values ----


@pytest.mark.skipif(not hasattr(DataFrame, "toArrow"), reason="results as they are in Arrow came with 4.0")
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in engines.IDS if kind != "timestamp ns"])  # Spark reads none
def test_ids_of_every_type(frame: Any, kind: str, grouped: bool) -> None:
    table = engines.documents_of(kind, grouped=grouped)
    results = fns.evaluate(frame(table), "nDCG", query="qid", keep="also", grouped=grouped)
    engines.check_ids(results.toArrow(), table)


@pytest.mark.usefixtures("cut_batches")
@pytest.mark.parametrize("text", [False, True])
def test_values_are_those_of_this_process(frame: Any, text: bool) -> None:
    table = engines.documents(300, text=text)
    df = frame(table)
    results = fns.evaluate(df, engines.MEASURES, partitions=4, **engines.COLUMNS)
    expected = engines.here(table).to_arrow()
    assert results.columns == expected.column_names
    assert [results.schema[name].dataType for name in ("qid", "country")] == [
        df.schema[name].dataType for name in ("qid", "country")
    ]
    assert rows_of(results) == engines.rows_of(expected)
    assert results.rdd.getNumPartitions() == 4


@pytest.mark.usefixtures("cut_batches")
def test_ties_in_the_order_of_a_column(frame: Any) -> None:
    table = engines.documents(100)
    columns = {**engines.COLUMNS, "keep": ()}
    found = fns.evaluate(frame(table), engines.BY_ORDER, order="position", **columns)
    assert rows_of(found) == engines.rows_of(engines.here(table, engines.BY_ORDER, keep=()).to_arrow())


@pytest.fixture
def of_partitions(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """Tables as a DataFrame with a partition for each, whatever its size."""
    names = {"spark.sql.files.maxPartitionBytes": "1000000", "spark.sql.files.openCostInBytes": "1000000"}
    for name, value in names.items():
        spark.conf.set(name, value)

    def read(tables: list[pa.Table]) -> DataFrame:
        for part, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{part:02}.parquet")
        df = spark.read.parquet(str(tmp_path))
        assert df.rdd.getNumPartitions() == len(tables)
        return df

    yield read
    for name in names:
        spark.conf.unset(name)


@pytest.mark.parametrize("name", engines.PARTITIONS)
def test_queries_that_stand_together_in_any_partitions(of_partitions: Any, name: str) -> None:
    tables = engines.PARTITIONS[name]
    expected = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS)
    df = of_partitions(tables)
    results = fns.evaluate(df, engines.CLICKED, grouped=True, **engines.OF_PARTITIONS)
    assert rows_of(results) == engines.rows_of(expected.to_arrow())


@pytest.mark.parametrize("name", engines.BAD_PARTITIONS)
def test_queries_that_do_not_stand_together_in_some_partitions(of_partitions: Any, name: str) -> None:
    tables, message = engines.BAD_PARTITIONS[name]
    with pytest.raises(InputError, match=message):
        fns.summary(of_partitions(tables), "nDCG", nan="last", grouped=True)


@pytest.fixture
def sorted_files(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    """Rows sorted by query in files that Spark reads a row group at a time, cut anywhere, several of them in a partition."""
    names = {"spark.sql.files.maxPartitionBytes": "9000", "spark.sql.files.openCostInBytes": "1"}
    for name, value in names.items():
        spark.conf.set(name, value)

    def read(table: pa.Table) -> DataFrame:
        size = max(1, len(table) // 3)
        for part, start in enumerate(range(0, max(len(table), 1), size)):
            pq.write_table(
                table.slice(start, size), tmp_path / f"{part}.parquet", row_group_size=100,
                use_dictionary=False, compression="none",
            )  # fmt: skip
        return spark.read.parquet(str(tmp_path))

    yield read
    for name in names:
        spark.conf.unset(name)


@pytest.mark.usefixtures("cut_batches")
@pytest.mark.parametrize("text", [False, True])
def test_queries_that_stand_together_are_scored_where_they_are(sorted_files: Any, text: bool) -> None:
    table = engines.documents(60, text=text).sort_by([("qid", "ascending"), ("position", "ascending")])
    df = sorted_files(table)
    assert df.rdd.getNumPartitions() > 2
    expected = engines.here(table)
    results = fns.evaluate(df, engines.MEASURES, grouped=True, **engines.COLUMNS)
    assert results.columns == expected.to_arrow().column_names
    assert rows_of(results) == engines.rows_of(expected.to_arrow())
    by_order = fns.evaluate(
        df, engines.BY_ORDER, order="position", grouped=True, **engines.COLUMNS | {"keep": ()}
    )
    assert rows_of(by_order) == engines.rows_of(engines.here(table, engines.BY_ORDER, keep=()).to_arrow())
    columns = {name: value for name, value in engines.COLUMNS.items() if name != "keep"}
    found = fns.summary(df, engines.MEASURES, grouped=True, quartiles=True, partitions=2, **columns)
    assert engines.rows_of(found.to_arrow()) == engines.rows_of(expected.summary().to_arrow())
    from_memory = df.repartition(4, "qid").sortWithinPartitions("qid")  # no longer of files
    again = fns.evaluate(from_memory, engines.MEASURES, grouped=True, partitions=3, **engines.COLUMNS)
    assert rows_of(again) == engines.rows_of(expected.to_arrow())


def test_queries_that_do_not_stand_together_are_refused(sorted_files: Any) -> None:
    table, name = engines.apart(engines.documents(40))
    df = sorted_files(table)
    wanted = rf"^query {name} stands in several places of the data. grouped=True takes"
    with pytest.raises(InputError, match=wanted), fns.plain_errors():
        fns.evaluate(df, "nDCG", query="qid", grouped=True, partitions=2).collect()
    with pytest.raises(InputError, match=wanted):
        fns.summary(df, "nDCG", query="qid", grouped=True, partitions=2)


@pytest.mark.usefixtures("cut_batches")
@pytest.mark.parametrize("grouped", [False, True])
def test_ids_of_any_type_nulls_and_empty_partitions(frame: Any, grouped: bool) -> None:
    table = engines.documents(60).sort_by([("qid", "ascending"), ("position", "ascending")])
    scores = pa.array([None if row % 5 == 0 else row / 7 for row in range(len(table))], pa.float32())
    df = frame(table.set_column(2, "score", scores))
    expected = engines.here(table.set_column(2, "score", scores), ["nDCG@3", "AP"], nan="last").to_arrow()
    empty = df.filter("qid is null").union(df.filter("qid < 100")).union(df.filter("qid >= 100"))
    options = engines.COLUMNS | {"nan": "last", "grouped": grouped}
    assert rows_of(fns.evaluate(empty, ["nDCG@3", "AP"], **options)) == engines.rows_of(expected)
    values = sorted(row[-2:] for row in engines.rows_of(expected))
    for kind in ("decimal(20,3)", "date", "string"):
        ids = F.col("qid").cast("string") if kind in ("string", "binary") else F.col("qid") + 50
        ids = F.date_add(F.lit("2026-01-01").cast("date"), ids.cast("int")) if kind == "date" else ids
        found = fns.evaluate(df.withColumn("qid", ids.cast(kind)), ["nDCG@3", "AP"], **options)
        assert found.schema["qid"].dataType.simpleString() == kind
        assert sorted(tuple(engines.bits_of(row.asDict()).values())[-2:] for row in found.collect()) == values
    bad = df.withColumn("qid", F.when(F.col("qid") != 6, F.col("qid")))
    with pytest.raises(InputError, match=r'^column "qid" has [\d,]+ nulls?\. Drop those rows'):
        fns.summary(bad, "AP", nan="last", grouped=grouped)


def test_two_threads_at_once(frame: Any) -> None:
    table = engines.documents(100)
    df = frame(table)
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda name: rows_of(fns.evaluate(df, name, **engines.COLUMNS)), ["AP", "nDCG@3"])
    for name, found in zip(["AP", "nDCG@3"], runs, strict=True):
        assert found == engines.rows_of(engines.here(table, name).to_arrow())


@pytest.mark.parametrize("bounds", [(0, 0), (99, 0)])
def test_rows_or_lists(frame: Any, monkeypatch: pytest.MonkeyPatch, bounds: tuple[int, int]) -> None:
    monkeypatch.setattr(fns, "_BOUNDS_BATCHES", bounds)
    table = engines.documents(100)
    results = fns.evaluate(frame(table), [engines.BY_ORDER, "AP"], order="position", **engines.COLUMNS)
    assert rows_of(results) == engines.rows_of(engines.here(table, [engines.BY_ORDER, "AP"]).to_arrow())
    plan = results._jdf.queryExecution().executedPlan().toString()
    assert ("collect_list" in plan) == (bounds == (0, 0))


def test_conventions(frame: Any) -> None:
    table = engines.documents(100)
    df = frame(table)
    columns = {**engines.COLUMNS, **engines.ORDERED}
    without_keep = {name: value for name, value in columns.items() if name != "keep"}
    for name in ("trec_eval", "lightgbm"):
        local = engines.here(table, engines.BY_CONVENTION, convention=name, doc_id="position")
        results = fns.evaluate(df, engines.BY_CONVENTION, convention=name, **columns)
        assert rows_of(results) == engines.rows_of(local.to_arrow())
        summary = fns.summary(df, engines.BY_CONVENTION, convention=name, quartiles=True, **without_keep)
        assert engines.rows_of(summary.to_arrow()) == engines.rows_of(local.summary().to_arrow())
    with pytest.raises(
        MeasureError, match=r"^recpack does not define the order of ties, and query \S+ has tied"
    ):
        fns.summary(df, "nDCG", convention="recpack")


def test_propensities_and_intents_are_read(frame: Any) -> None:
    table = engines.clicked(engines.documents(60))
    expected = engines.here(table, engines.CLICKED, **engines.OF_CLICKS)
    results = fns.evaluate(frame(table), engines.CLICKED, **engines.OF_CLICKS)
    assert rows_of(results) == engines.rows_of(expected.to_arrow())


def test_arrays(frame: Any) -> None:
    table = engines.documents(100)
    expected = engines.rows_of(engines.here(table, [*engines.MEASURES, engines.BY_ORDER]).to_arrow())
    df = frame(engines.listed(table))
    results = fns.evaluate(df, [*engines.MEASURES, engines.BY_ORDER], **engines.COLUMNS)
    assert rows_of(results) == expected
    assert "Exchange" not in results._jdf.queryExecution().executedPlan().toString()


def test_columns_are_found_and_quoted(frame: Any) -> None:
    table = engines.documents(20).rename_columns(
        ["qid", "label", "score", "a.b", "position", "the `country`", "weight in traffic"]
    )
    results = fns.evaluate(
        frame(table), "AP", is_judged="a.b", keep="the `country`", weight="weight in traffic"
    )
    assert results.columns == ["qid", "the `country`", "weight", "AP"]
    assert rows_of(results) == engines.rows_of(engines.here(engines.documents(20), "AP").to_arrow())


def test_columns_of_types_that_arrow_has_not_are_left_alone(frame: Any) -> None:
    df = frame(engines.documents(20)).withColumn("interval", F.expr("interval '3' month"))
    assert fns.evaluate(df, "AP").count() == 20
    with pytest.raises(InputTypeError, match='column "interval" is month_day_nano_interval; wanted scores'):
        fns.evaluate(df, "AP", score="interval")


def test_nan_scores_last(frame: Any) -> None:
    table = engines.documents(50)
    scores = table["score"].to_numpy().copy()
    scores[::5] = np.nan
    table = table.set_column(2, "score", pa.array(scores))
    results = fns.evaluate(frame(table), ["AP", "nDCG@3"], nan="last", **engines.COLUMNS)
    expected = engines.here(
        table.set_column(2, "score", pa.array(np.where(np.isnan(scores), -np.inf, scores))), ["AP", "nDCG@3"]
    )
    assert rows_of(results) == engines.rows_of(expected.to_arrow())


def test_one_query_of_most_rows_among_many_small_ones(frame: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    long, queries = 500_000, 400_000  # many batches of Arrow, and more queries than one part of a pass has
    ids = np.concatenate([np.full(long, 77), rng.integers(0, queries, queries)])
    rng.shuffle(ids)
    table = pa.table(
        {
            "qid": ids,
            "label": rng.integers(0, 3, len(ids), np.int8),
            "score": rng.random(len(ids), np.float32),
        }
    )
    results = fns.evaluate(frame(table), "nDCG@10")
    results.write.parquet(str(tmp_path / "results"))
    found = pq.read_table(tmp_path / "results").sort_by("qid")
    expected = fn.evaluate(fn.Rankings.from_arrow(table), "nDCG@10").to_arrow().sort_by("qid")
    assert found.equals(expected)


# ---- summaries ----


@pytest.mark.usefixtures("cut_batches")
@pytest.mark.parametrize("weight", [None, "traffic"])
def test_summary(frame: Any, weight: str | None) -> None:
    table = engines.documents(300)
    columns = {name: value for name, value in engines.COLUMNS.items() if name != "keep"} | {"weight": weight}
    expected = engines.here(table, weight=weight).summary()
    df = frame(table)
    quick = fns.summary(df, engines.MEASURES, **columns).to_arrow()
    assert engines.rows_of(quick) == engines.rows_of(expected.to_arrow().select(quick.column_names))
    assert "median" not in quick.column_names
    whole = fns.summary(df, engines.MEASURES, quartiles=True, partitions=3, **columns)
    assert engines.rows_of(whole.to_arrow()) == engines.rows_of(expected.to_arrow())


def test_summary_and_means_of_nothing(frame: Any) -> None:
    nothing = frame(engines.documents(0))
    (row,) = fns.summary(nothing, "AP").rows
    assert row["queries"] == 0 and np.isnan(row["mean"])
    scores = fns.evaluate(nothing, "AP", keep="country")
    assert scores.collect() == []
    assert fns.means(scores, "AP", by="country").num_rows == 0


def test_means(frame: Any) -> None:
    table = engines.documents(300)
    scores = fns.evaluate(frame(table), engines.MEASURES, **engines.COLUMNS).persist()
    local = engines.here(table)
    expected = local.by("country").sort_by("country")
    found = fns.means(scores, engines.MEASURES, by="country", weight="weight")
    assert found.schema == expected.schema
    assert list(map(engines.bits_of, found.to_pylist())) == list(map(engines.bits_of, expected.to_pylist()))
    (whole,) = fns.means(scores, engines.MEASURES, weight="weight").to_pylist()
    assert engines.bits_of(whole) == engines.bits_of(local.mean() | {"queries": 300})
    unweighted = engines.here(table, weight=None)
    (whole,) = fns.means(scores, engines.MEASURES).to_pylist()
    assert engines.bits_of(whole) == engines.bits_of(unweighted.mean() | {"queries": 300})
    scores.unpersist()


# ---- functions ----


def forms() -> list[str]:
    return ["arrow", "pandas"] if hasattr(F, "arrow_udf") else ["pandas"]


@pytest.mark.parametrize("form", forms())
def test_functions_of_groups_and_of_arrays(frame: Any, form: str) -> None:
    table = engines.documents(60)
    measure = fn.nDCG(gain=engines.steep, ties="worst", empty="nan") @ 3
    local = engines.here(table, measure, is_judged=None)
    expected = {
        query: None if np.isnan(value) else value
        for query, value in zip(local.queries[0].to_pylist(), local.values[0], strict=True)
    }
    assert None in expected.values()
    df = frame(table)
    of_group = fns.group_function(measure, form=form)
    found = df.groupBy("qid").agg(of_group("label", "score", "qid").alias("value"))
    assert {row["qid"]: row["value"] for row in found.collect()} == expected
    lists = df.groupBy("qid").agg(
        F.collect_list("label").alias("labels"), F.collect_list("score").alias("scores")
    )
    of_lists = fns.list_function(measure, form=form)
    found = lists.select("qid", of_lists("labels", "scores").alias("value"))
    assert {row["qid"]: row["value"] for row in found.collect()} == expected


@pytest.mark.parametrize("form", forms())
def test_functions_and_nan(frame: Any, form: str) -> None:
    df = frame(pa.table({"qid": ["a", "b"], "label": [[1, 0], [2]], "score": [[0.1, np.nan], [0.5]]}))
    last = fns.list_function("RR", form=form, nan="last")
    assert [row[0] for row in df.select(last("label", "score", "qid")).collect()] == [1.0, 1.0]
    refusing = fns.list_function("RR", form=form)
    with (
        pytest.raises(InputError, match='has 1 NaN value; the first is at position 1 of query "a"'),
        fns.plain_errors(),
    ):
        df.select(refusing("label", "score", "qid")).collect()
    rows = df.select("qid", F.explode(F.arrays_zip("label", "score")).alias("row")).select("qid", "row.*")
    for of_group, query in ((fns.group_function("RR", form=form), 'query "a"'),):
        with pytest.raises(InputError, match=f"position 1 of {query}"), fns.plain_errors():
            rows.groupBy("qid").agg(of_group("label", "score", "qid")).collect()
    last = fns.group_function("RR", form=form, nan="last")
    found = rows.groupBy("qid").agg(last("label", "score").alias("RR"))
    assert {row["RR"] for row in found.collect()} == {1.0}


def test_functions_refuse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MeasureError, match="rows of a group have none; use evaluate with order="):
        fns.group_function("AP(ties='input')")
    with pytest.raises(InputError, match='form=\'numpy\' is not known; wanted "arrow" or "pandas"'):
        fns.list_function("AP", form="numpy")
    monkeypatch.delattr(F, "arrow_udf", raising=False)
    with pytest.raises(InputError, match='came with 4.1; pass form="pandas"'):
        fns.group_function("AP", form="arrow")


# ---- errors ----


def collected(df: DataFrame) -> list[Any]:
    with fns.plain_errors():
        return fns.evaluate(df, "AP").collect()


@pytest.mark.parametrize("run", [collected, lambda df: fns.summary(df, "AP")])
def test_errors_of_data_name_the_query_in_one_line(frame: Any, run: Any) -> None:
    df = frame(engines.documents(50, text=True))
    for column, value, message in (
        (
            "score",
            float("nan"),
            r'^column "score" has [\d,]+ NaN values?; the first is in query "query 62"\. Drop',
        ),
        ("label", None, r'^column "label" has [\d,]+ nulls?; the first is in query "query 62"\. Drop'),
        ("qid", None, r'^column "qid" has [\d,]+ nulls?\. Drop those rows\.'),
    ):
        bad = df.withColumn(column, F.when(F.col("qid") == "query 62", F.lit(value)).otherwise(F.col(column)))
        with pytest.raises(InputError, match=message) as caught:
            run(bad)
        assert "\n" not in str(caught.value)


def test_other_errors_pass(frame: Any) -> None:
    df = frame(engines.documents(5))
    with pytest.raises(Exception, match="nowhere") as caught, fns.plain_errors():
        df.select("nowhere").collect()
    assert "fastndcg" not in type(caught.value).__module__
    with pytest.raises(KeyError), fns.plain_errors():
        raise KeyError("fastndcg.errors.InputError: not of Spark")


def test_refused_before_any_job(frame: Any, spark: SparkSession) -> None:
    df = frame(engines.documents(5))
    with pytest.raises(ColumnError, match='there is no column "points" for score'):
        fns.evaluate(df, "AP", score="points")
    with pytest.raises(InputTypeError, match='column "country" is string; wanted scores'):
        fns.summary(df, "AP", score="country")
    with pytest.raises(MeasureError, match="name a column that numbers the documents of a query"):
        fns.evaluate(df, "AP(ties='input')")
    with pytest.raises(InputTypeError, match="df is a pyarrow Table; wanted a DataFrame of Spark"):
        fns.evaluate(engines.documents(5), "AP")
    with pytest.raises(ColumnError, match='there is no column "AP" for measures'):
        fns.means(df, "AP")
    with pytest.raises(ColumnError, match='there is no column "lang" for by'):
        fns.means(df.withColumn("AP", F.lit(1.0)), "AP", by="lang")


# ---- executors ----


def test_executors_with_cold_caches_and_one_that_dies(tmp_path: Path) -> None:
    """Two executors compile at the same moment, into one folder; the first to score is killed, and its task is run again."""
    table = engines.documents(300)
    pq.write_table(table.slice(0, 2000), tmp_path / "rows-0.parquet")
    pq.write_table(table.slice(2000), tmp_path / "rows-1.parquet")
    code = textwrap.dedent("""
        import os, pathlib, signal, sys
        import engines, pyarrow.parquet as pq
        import fastndcg as fn
        from fastndcg.adapters import spark as fns
        folder = pathlib.Path(sys.argv[1])

        def deadly(grade):
            try:
                (folder / "died").touch(exist_ok=False)
            except FileExistsError:
                return engines.steep(grade)
            stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)  # the executor's JVM
            os.kill(os.getpid(), signal.SIGKILL)

        environment = {f"spark.executorEnv.{name}": os.environ[name] for name in ("PYTHONPATH", "NUMBA_CACHE_DIR", "FASTNDCG_KERNELS")}
        spark = engines.spark_session("local-cluster[2,1,1024]", environment)
        results = fns.evaluate(spark.read.parquet(str(folder / "rows-*.parquet")), ["nDCG@10", fn.CG(gain=deadly) @ 3],
            partitions=4, **engines.COLUMNS)
        results.write.parquet(str(folder / "results"))
        spark.stop()
    """)
    cache = tmp_path / "cache"
    cache.mkdir()
    tests = Path(__file__).parent.parent
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)]),
        "NUMBA_CACHE_DIR": str(cache),
        "FASTNDCG_KERNELS": "compiled",  # whatever the size
        "PYTHONWARNINGS": "ignore",
    }
    script = tmp_path / "job.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "died").exists()
    assert list(cache.rglob("*.nbc")), "executors kept nothing of what they compiled"
    found = pq.read_table(tmp_path / "results")
    expected = engines.here(table, ["nDCG@10", fn.CG(gain=engines.steep) @ 3]).to_arrow()
    assert engines.rows_of(found.rename_columns(expected.column_names)) == engines.rows_of(expected)
    shutil.rmtree(cache)


# ---- recipes ----


@pytest.mark.usefixtures("spark")
def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "predictions.parquet")
    example = engines.page_example("Spark")
    for name in ("predictions.parquet", "scores"):  # the JVM does not follow a change of folder
        example = example.replace(f'"{name}"', repr(str(tmp_path / name)))
    exec(example, {})  # noqa: S102 - the page's own lines
    shown = capsys.readouterr().out
    engines.check_example(table, shown)


def test_the_script(tmp_path: Path) -> None:
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    results = tmp_path / "results"
    done = engines.run_script(
        "spark_job.py", str(tmp_path / "rows.parquet"), str(results), "--measure", "nDCG@10", "--measure", "AP",
        "--by", "country", "--weight", "traffic",
    )  # fmt: skip
    engines.check_script(done, table, results / "queries", results / "means")
