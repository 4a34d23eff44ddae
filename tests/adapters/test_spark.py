"""Spark for real: values bit for bit those of this process, exact means, skew, readable errors, executors that die."""

import shutil
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import engines
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import printed
from engine_laws import Engine, Laws, run_page

import fastndcg as fn
from fastndcg import InputError, InputTypeError, MeasureError, SourceError
from fastndcg.errors import ExtraError

engines.need("pyspark")

from pyspark.errors import PySparkException  # noqa: E402 - after the check that it is there
from pyspark.sql import DataFrame  # noqa: E402
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
def _java():
    engines.need_java()


@pytest.fixture(scope="session")
def spark(_java):
    settings = {"spark.driver.memory": "2g", "spark.python.daemon.module": "spark_daemon"}
    session = engines.spark_session("local[2]", settings)
    yield session
    session.stop()


def write(tables, folder, **options):
    for part, table in enumerate(tables):
        # random numbers gain nothing from either
        path = folder / f"{part:02}.parquet"
        pq.write_table(table, path, use_dictionary=False, compression="none", **options)
    return str(folder)


def thirds(table):
    size = max(1, len(table) // 3)
    return [table.slice(start, size) for start in range(0, max(len(table), 1), size)]


SCHEMAS = {}  # of files, by that of Arrow: to find it out takes Spark a job each time

# types of ids for which Spark has the type of others
ALIKE = [
    "uint8", "uint16", "uint32", "uint64", "large text", "text view", "dictionary", "large binary",
    "fixed binary", "timestamp s", "timestamp ms", "timestamp in a zone", "date in ms",
]  # fmt: skip


@pytest.fixture
def engine(spark, tmp_path):
    """Nearly every query of small tables is cut by batches of Arrow."""
    settings = set()

    def read(tables, settings_of_files, **options):
        batch = CUT if sum(map(len, tables)) < 10_000 else 10_000
        asked = {"spark.sql.execution.arrow.maxRecordsPerBatch": batch}
        if settings_of_files:
            names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
            asked |= dict(zip(names, settings_of_files, strict=True))
        for name, value in asked.items():
            spark.conf.set(name, str(value))
            settings.add(name)
        folder, known = write(tables, Path(tempfile.mkdtemp(dir=tmp_path)), **options), str(tables[0].schema)
        if known not in SCHEMAS:
            SCHEMAS[known] = spark.read.parquet(folder).schema
        return spark.read.schema(SCHEMAS[known]).parquet(folder)

    def of_partitions(tables):
        """A partition for each, whatever its size."""
        df = read(tables, (1_000_000, 1_000_000))
        assert df.rdd.getNumPartitions() == len(tables)
        return df

    def collect(results):
        return [row.asDict() for row in results.collect()]

    def arrow(results):
        if not hasattr(results, "toArrow"):
            pytest.skip("results as they are in Arrow came with 4.0")
        return results.toArrow()

    def frame(table):
        return read(thirds(table), None)

    yield Engine(
        fns, frame, frame, of_partitions, collect, arrow, frozenset({"timestamp ns"}),
        frozenset(ALIKE), is_slow=True, session=(spark,),
    )  # fmt: skip
    for name in settings:
        spark.conf.unset(name)


@pytest.fixture
def frame(engine):
    return engine.frame


def rows_of(results):
    return engines.rows_of([row.asDict() for row in results.collect()])


class TestSpark(Laws):
    def test_means_of_nothing(self, engine):
        scores = fns.evaluate(engine.frame(engines.documents(0)), "AP", keep="country")
        assert fns.means(scores, "AP", by="country").num_rows == 0

    def test_files_keep_columns_of_all_types_that_spark_has_not(self, engine, tmp_path):
        tables = {kind: engines.documents_of(kind, grouped=True) for kind in ["int64", *ALIKE]}
        table = tables["int64"]
        for kind in ALIKE:
            table = table.append_column(kind, tables[kind]["also"])
        engines.write_files(tmp_path, table, group=5)
        found = fns.evaluate_files(*engine.session, tmp_path, "nDCG", query="qid", keep=ALIKE)
        found = engine.arrow(found)
        for kind in ALIKE:
            one, other = (
                dict(zip(each["qid"].to_pylist(), each[kind].to_pylist(), strict=True))
                for each in (found, table)
            )
            assert one == other, kind

    def test_rows_that_are_not_made_lists(self, engine, monkeypatch):
        """Those of Spark before 4.3, and of ids that it takes as equal, but we do not."""
        numbers = engines.documents(60)["qid"].to_pylist()
        ids = pa.array(["qQ"[number % 2] + str(number // 14) for number in numbers])
        table = engines.documents(60).set_column(0, "qid", ids)
        expected = engines.rows_of(engines.here(table).to_arrow())
        df = engine.frame(table)
        if hasattr(F, "collate"):  # from 4.0 on
            alike = df.withColumn("qid", F.collate("qid", "UTF8_LCASE"))
            assert alike.select("qid").distinct().count() < len(expected)
            assert engine.evaluate(alike, engines.MEASURES, **engines.COLUMNS) == expected
        monkeypatch.setattr(fns, "_WEIGHS_ROWS", (99, 0))
        assert engine.evaluate(df, engines.MEASURES, **engines.COLUMNS) == expected


# ---- values ----


def test_lists_are_not_shuffled(frame):
    results = fns.evaluate(frame(engines.listed(engines.documents(20))), "AP", **engines.COLUMNS)
    assert "Exchange" not in results._jdf.queryExecution().executedPlan().toString()


def test_two_threads_at_once(frame):
    table = engines.documents(100)
    df = frame(table)
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda name: rows_of(fns.evaluate(df, name, **engines.COLUMNS)), ["AP", "nDCG@3"])
    for name, found in zip(["AP", "nDCG@3"], runs, strict=True):
        assert found == engines.rows_of(engines.here(table, name).to_arrow())


def test_partitions_and_types(frame):
    table = engines.documents(100)
    df = frame(table)
    results = fns.evaluate(df, [engines.BY_ORDER, "AP"], order="position", partitions=4, **engines.COLUMNS)
    # the order in lists depends on when rows arrive: lists that are moved fail the job where an executor dies
    plan = results._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning") == 1, plan
    assert results.rdd.getNumPartitions() == 4
    assert [results.schema[name].dataType for name in ("qid", "country")] == [
        df.schema[name].dataType for name in ("qid", "country")
    ]
    assert rows_of(results) == engines.rows_of(engines.here(table, [engines.BY_ORDER, "AP"]).to_arrow())


def test_columns_are_found_and_quoted(frame):
    table = engines.documents(20).rename_columns(
        ["qid", "label", "score", "a.b", "position", "the `country`", "weight in traffic"]
    )
    results = fns.evaluate(
        frame(table), "AP", is_judged="a.b", keep="the `country`", weight="weight in traffic"
    )
    assert results.columns == ["qid", "the `country`", "weight", "AP"]
    assert rows_of(results) == engines.rows_of(engines.here(engines.documents(20), "AP").to_arrow())


def test_columns_of_types_that_arrow_has_not_are_left_alone(frame):
    df = frame(engines.documents(20)).withColumn("interval", F.expr("interval '3' month"))
    assert fns.evaluate(df, "AP").count() == 20
    with pytest.raises(InputTypeError, match='column "interval" is month_day_nano_interval; expected scores'):
        fns.evaluate(df, "AP", score="interval")


# ---- functions ----


@pytest.fixture(params=["arrow", "pandas"])
def _form(request, monkeypatch):
    """Functions are of pandas before 4.1."""
    if request.param == "pandas":
        monkeypatch.delattr(F, "arrow_udf", raising=False)
    elif not hasattr(F, "arrow_udf"):
        pytest.skip("functions of Arrow came with 4.1")


@pytest.mark.usefixtures("_form")
def test_functions_of_groups_and_of_arrays(frame):
    table = engines.documents(60)
    measure = fn.nDCG(gain=engines.steep, ties="worst", empty="nan") @ 3
    local = engines.here(table, measure, is_judged=None)
    expected = {
        query: None if np.isnan(value) else value
        for query, value in zip(local.queries[0].to_pylist(), local.values[0], strict=True)
    }
    assert None in expected.values()
    df = frame(table)
    of_group = fns.group_function(measure)
    found = df.groupBy("qid").agg(of_group("label", "score", "qid").alias("value"))
    assert {row["qid"]: row["value"] for row in found.collect()} == expected
    lists = df.groupBy("qid").agg(
        F.collect_list("label").alias("labels"), F.collect_list("score").alias("scores")
    )
    of_lists = fns.list_function(measure)
    found = lists.select("qid", of_lists("labels", "scores").alias("value"))
    assert {row["qid"]: row["value"] for row in found.collect()} == expected


@pytest.mark.usefixtures("_form")
def test_functions_and_nan(frame):
    df = frame(pa.table({"qid": ["a", "b"], "label": [[1, 0], [2]], "score": [[0.1, np.nan], [0.5]]}))
    last = fns.list_function("RR", nan="last")
    assert [row[0] for row in df.select(last("label", "score", "qid")).collect()] == [1.0, 1.0]
    refusing = fns.list_function("RR")
    with (
        pytest.raises(InputError, match='has 1 NaN value; the first is at position 1 of query "a"'),
        fns.plain_errors(),
    ):
        df.select(refusing("label", "score", "qid")).collect()
    rows = df.select("qid", F.explode(F.arrays_zip("label", "score")).alias("row")).select("qid", "row.*")
    of_group = fns.group_function("RR")
    with pytest.raises(InputError, match='position 1 of query "a"'), fns.plain_errors():
        rows.groupBy("qid").agg(of_group("label", "score", "qid")).collect()
    last = fns.group_function("RR", nan="last")
    found = rows.groupBy("qid").agg(last("label", "score").alias("RR"))
    assert {row["RR"] for row in found.collect()} == {1.0}


def test_functions_refuse_at_once():
    with pytest.raises(MeasureError, match="rows of a Spark group have no order; use evaluate with order="):
        fns.group_function("AP(ties='input')")


def test_other_errors_pass(frame):
    df = frame(engines.documents(5))
    with pytest.raises(Exception, match="nowhere") as caught, fns.plain_errors():
        df.select("nowhere").collect()
    assert "fastndcg" not in type(caught.value).__module__
    without_it = PySparkException("from the Python worker:\nModuleNotFoundError: No module named 'fastndcg'")
    with pytest.raises(ExtraError, match="workers cannot import fastndcg; install"), fns.plain_errors():
        raise without_it
    with pytest.raises(KeyError), fns.plain_errors():
        raise KeyError("fastndcg.errors.InputError: not of Spark")


# ---- executors ----


def test_executors_with_cold_caches_and_one_that_dies(tmp_path):
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
    cache, script = tmp_path / "cache", tmp_path / "job.py"
    cache.mkdir()
    script.write_text(code)
    settings = {"NUMBA_CACHE_DIR": str(cache), "FASTNDCG_KERNELS": "compiled", "PYTHONWARNINGS": "ignore"}
    printed(script, tmp_path, timeout=400, **settings)
    assert (tmp_path / "died").exists()
    assert list(cache.rglob("*.nbc")), "executors kept nothing of what they compiled"
    found = pq.read_table(tmp_path / "results")
    expected = engines.here(table, ["nDCG@10", fn.CG(gain=engines.steep) @ 3]).to_arrow()
    assert engines.rows_of(found.rename_columns(expected.column_names)) == engines.rows_of(expected)
    shutil.rmtree(cache)


# ---- Spark Connect ----

CODE = """
    import sys
    import engines, pyarrow.parquet as pq, pytest
    from pyspark.sql import functions as F
    from fastndcg import InputError
    from fastndcg.adapters import spark as fns

    spark = engines.spark_session("local[2]", {}, connect=True)
    assert "connect" in type(spark).__module__
    table = pq.read_table(sys.argv[1])
    df = spark.read.parquet(sys.argv[1])
    results = fns.evaluate(df, engines.MEASURES, **engines.COLUMNS)
    local = engines.here(table)
    found = [row.asDict() for row in results.collect()]
    assert engines.rows_of(found) == engines.rows_of(local.to_arrow())
    of_files = fns.evaluate_files(spark, sys.argv[1], engines.MEASURES, **engines.COLUMNS)
    assert engines.rows_of([row.asDict() for row in of_files.collect()]) == engines.rows_of(local.to_arrow())
    missing = df.withColumn("score", F.when(F.col("qid") == 62, F.lit(float("nan"))).otherwise(F.col("score")))
    with pytest.raises(InputError, match="^column .score. has .* in query 62. Drop"):
        fns.summary(missing, "AP")
    ndcg = fns.group_function("nDCG@10")
    assert df.groupBy("qid").agg(ndcg("label", "score", "qid").alias("ndcg")).count() == local.n_queries
    spark.stop()
"""


def test_connect(tmp_path, monkeypatch):
    """A server of its own, whose client has no session in its process."""
    engines.need("grpc", "grpc_status")
    pq.write_table(engines.documents(100), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    printed(CODE, tmp_path / "rows.parquet", flags=["-W", "ignore"])


# ---- files ----


def test_files_that_change_are_told(spark, tmp_path):
    engines.write_files(tmp_path, engines.documents(50))
    found = fns.evaluate_files(spark, tmp_path, "AP", query="qid")
    engines.write_files(tmp_path, engines.documents(60))
    with pytest.raises(SourceError, match="was replaced or written to while it was read"), fns.plain_errors():
        found.collect()


# ---- recipes ----


@pytest.mark.usefixtures("spark")
def test_the_page(tmp_path, capsys):
    run_page("Spark", engines.documents(100), tmp_path, capsys)


@pytest.mark.skipif(not hasattr(DataFrame, "toArrow"), reason="applyInArrow of groups came with 4.0")
def test_functions_of_the_page(spark, tmp_path):
    table = engines.documents(60)
    hours = pa.array(np.datetime64("2026-11-24T00:00", "us") + table["qid"].to_numpy().astype("m8[m]"))
    table = table.append_column("time", hours.cast(pa.timestamp("us", "UTC")))
    (tmp_path / "arriving").mkdir()
    pq.write_table(table, tmp_path / "arriving" / "1.parquet")
    example = engines.page_example("In functions of your own", blocks=slice(None))
    for name in ("arriving", "scores_of_batches", "scores_of_windows", "checkpoint"):
        example = example.replace(f'"{name}"', repr(str(tmp_path / name)))
    made = {"spark": spark, "fns": fns, "rows": spark.read.parquet(str(tmp_path / "arriving"))}
    exec(example, made)  # noqa: S102 - the page's own lines
    local = engines.here(table, ["nDCG@10", "RR"], is_judged=None, weight=None, keep=()).to_arrow()
    alone = engines.rows_of(local.select(["qid", "nDCG@10"]))
    for name in ("by_udf", "by_frames"):
        assert rows_of(made[name]) == [(query, value) for query, value in alone], name
    for name in ("by_arrow", "by_bucket"):
        assert rows_of(made[name]) == engines.rows_of(local), name
    assert rows_of(spark.read.parquet(str(tmp_path / "scores_of_batches"))) == alone
    # the last window waits for the watermark to pass it
    windows = spark.read.parquet(str(tmp_path / "scores_of_windows"))
    closed = dict(rows_of(windows.select("qid", "ndcg")))
    assert len(closed) > 30 and closed.items() <= dict(alone).items()


def test_the_script(tmp_path):
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    results = tmp_path / "results"
    done = engines.run_script(
        "spark_job.py", str(tmp_path / "rows.parquet"), str(results), "--measure", "nDCG@10", "--measure", "AP",
        "--by", "country", "--weight", "traffic",
    )  # fmt: skip
    engines.check_script(done, table, results / "queries", results / "means")
