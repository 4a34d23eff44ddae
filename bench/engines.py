"""Measure what scoring adds to a pipeline of Spark, Dask or Ray, and what a row costs at each stage.

Three pipelines are timed in turns: with `evaluate`, with a function that returns batches unchanged, and with one
that returns a single row for each batch. A pipeline reads Parquet, groups rows by query, passes them to Python,
and discards the results. The mean is first compared with that of `fastndcg.evaluate` in this process.

Each stage is timed for several numbers of rows; seconds = fixed + rows x rate is fitted to all but the largest,
and the largest has what the fit predicts.

Bias: one machine, so no shuffle uses a network; generated data; lists of 100 documents; int64 ids; files in
the page cache.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from bench.errors import WrongAnswerError
from bench.record import Row, beside
from bench.timing import Time, take_turns

CORES = 2
BATCH = 2_000_000
MEASURE = "nDCG@10"
Pipelines = dict[str, Callable[[], Any]]


def write(folder: Path, rows: int) -> None:
    """Write rows in any order, about 100 for each query, in files of two million rows."""
    rng = np.random.default_rng(rows)
    for part, first in enumerate(range(0, rows, BATCH)):
        size = min(BATCH, rows - first)
        table = pa.table(
            {
                "qid": rng.integers(0, max(rows // 100, 1), size),
                "label": rng.choice(np.arange(5, dtype=np.int8), size, p=[0.6, 0.2, 0.1, 0.06, 0.04]),
                "score": rng.random(size, np.float32),
            }
        )
        pq.write_table(table, folder / f"{part:04}.parquet", row_group_size=500_000)


def spark_pipelines(folder: Path, rows: int) -> tuple[Pipelines, Callable[[], float]]:
    from pyspark.sql import SparkSession

    from fastndcg.adapters import spark as fns

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", "6g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    partitions = max(2 * CORES, rows // 2_000_000)
    df = spark.read.parquet(str(folder)).select("qid", "label", "score")
    together = df.repartition(partitions, "qid")
    ordered = together.sortWithinPartitions("qid")

    def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    def one_row(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.slice(0, 1) for batch in batches)

    def discard(frame: Any) -> Callable[[], None]:
        return lambda: frame.write.format("noop").mode("overwrite").save()

    return (
        {
            "read": discard(df),
            "shuffle": discard(together),
            "sort": discard(ordered),
            "to Python": discard(ordered.mapInArrow(one_row, df.schema)),
            "to Python and back": discard(ordered.mapInArrow(unchanged, df.schema)),
            "evaluate": discard(fns.evaluate(df, MEASURE, partitions=partitions)),
        },
        lambda: fns.summary(df, MEASURE, partitions=partitions).rows[0]["mean"],
    )


def dask_pipelines(folder: Path, _: int) -> tuple[Pipelines, Callable[[], float]]:
    import dask
    import dask.dataframe as dd

    from fastndcg.adapters import dask as fnd

    dask.config.set(scheduler="threads", num_workers=CORES)
    df = dd.read_parquet(folder, split_row_groups=4)
    together = df.shuffle(on="qid", ignore_index=True)

    def unchanged(frame: Any) -> Any:
        return frame

    def discard(frame: Any) -> Callable[[], None]:
        return lambda: frame.map_partitions(len).compute()

    return (
        {
            "read": discard(df),
            "shuffle": discard(together),
            "to Python": discard(together.map_partitions(unchanged)),
            "to Python and back": discard(together.map_partitions(unchanged)),
            "evaluate": discard(fnd.evaluate(df, MEASURE)),
        },
        lambda: fnd.summary(df, MEASURE).rows[0]["mean"],
    )


def ray_pipelines(folder: Path, rows: int) -> tuple[Pipelines, Callable[[], float]]:
    import logging

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    import ray.data

    from fastndcg.adapters import ray as fnr

    # workers stay alive between pipelines, as in a busy cluster
    kept = {"idle_worker_killing_time_threshold_ms": 600_000, "num_workers_soft_limit": 3 * CORES}
    if not ray.is_initialized():
        ray.init(num_cpus=CORES, include_dashboard=False, log_to_driver=False, _system_config=kept)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    partitions = max(2 * CORES, rows // 2_000_000)
    df = ray.data.read_parquet(str(folder)).select_columns(["qid", "label", "score"])
    together = df.repartition(partitions, keys=["qid"])

    def unchanged(table: pa.Table) -> pa.Table:
        return table

    def one_row(table: pa.Table) -> pa.Table:
        return table.slice(0, 1)

    def discard(dataset: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in dataset.iter_internal_ref_bundles():
                pass

        return run

    def to_python(function: Callable[[pa.Table], pa.Table]) -> Callable[[], None]:
        return discard(together.map_batches(function, batch_size=None, batch_format="pyarrow"))

    return (
        {
            "read": discard(df),
            "shuffle": discard(together),
            "to Python": to_python(one_row),
            "to Python and back": to_python(unchanged),
            "evaluate": discard(fnr.evaluate(df, MEASURE, partitions=partitions)),
        },
        lambda: fnr.summary(df, MEASURE, partitions=partitions).rows[0]["mean"],
    )


ENGINES = {"spark": spark_pipelines, "dask": dask_pipelines, "ray": ray_pipelines}


def measured(engine: str, n: int, rounds: int) -> dict[str, Time]:
    """Check the mean, then time the pipelines in turns. Return the fastest round of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, n)
        pipelines, mean = ENGINES[engine](folder, n)
        expected = fn.evaluate(fn.read_parquet(folder), MEASURE).mean()[MEASURE]
        if (found := mean()) != expected:
            raise WrongAnswerError(MEASURE, engine, found, expected)
        return take_turns(pipelines, least=rounds, most=rounds)


def rows(*, quick: bool) -> Iterator[Row]:
    *fitted, largest = sizes = [20_000, 40_000] if quick else [1_000_000, 2_000_000, 20_000_000]
    rounds = 1 if quick else 3
    for engine in ENGINES:
        found = {size: measured(engine, size, rounds) for size in sizes}
        whole = found[largest]
        for base in ("to Python and back", "to Python"):
            name = f"{engine}, {largest:,} rows, evaluate"
            yield beside("engines", name, base, "s", whole["evaluate"], whole[base], clock="wall")
        for stage, time in whole.items():
            times = [found[size][stage].wall for size in fitted]
            rate, fixed = np.polyfit(fitted, times, 1) if len(fitted) > 1 else (times[0] / fitted[0], 0.0)
            told = f"{rate * CORES * 1e9:.0f} ns a row and core, predicted {fixed + rate * largest:.2f} s"
            yield Row("engines", f"{engine}, {largest:,} rows, {stage}", "", "s", *time, note=told)
