"""Measure what scoring adds to a pipeline of Spark, Dask or Ray, and what a row costs at each stage.

    python bench/bench_engines.py [--rows 20e6] [--engines spark dask ray] [--rounds 3]
    python bench/bench_engines.py --grouped [--rows 20e6] [--engines spark dask ray]
    python bench/bench_engines.py --stages 2e6 20e6

The first form times three pipelines in turns: with `evaluate`, with a function that returns batches
unchanged, and with one that returns a single row for each batch. A pipeline reads Parquet, groups rows by
query, passes them to Python, and discards the results. The mean is first compared with that of
`fastndcg.evaluate` in this process.

The second form has rows sorted by query. It times `evaluate` with and without `grouped=True`, and a function
that returns a single row for each batch.

The third form times each stage for several numbers of rows, fits seconds = fixed + rows x rate to all but the
largest, and compares the largest with the prediction of the fit.

Bias: one machine, so no shuffle uses a network; generated data; lists of 100 documents; int64 ids; files in
the page cache.
"""

from __future__ import annotations

import argparse
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
from bench.timing import take_turns

CORES = 2
BATCH = 2_000_000
MEASURE = "nDCG@10"
Pipelines = dict[str, Callable[[], Any]]


def write(folder: Path, rows: int, *, grouped: bool) -> None:
    """Write rows in any order or sorted by query, about 100 for each query, in files of two million rows."""
    rng = np.random.default_rng(rows)
    for part, first in enumerate(range(0, rows, BATCH)):
        size = min(BATCH, rows - first)
        table = pa.table(
            {
                "qid": np.arange(first, first + size) // 100
                if grouped
                else rng.integers(0, max(rows // 100, 1), size),
                "label": rng.choice(np.arange(5, dtype=np.int8), size, p=[0.6, 0.2, 0.1, 0.06, 0.04]),
                "score": rng.random(size, np.float32),
            }
        )
        pq.write_table(table, folder / f"{part:04}.parquet", row_group_size=500_000)


def spark_pipelines(folder: Path, rows: int, grouped: bool) -> tuple[Pipelines, Callable[[], float]]:
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

    if grouped:
        return (
            {
                "dropped": discard(df.mapInArrow(one_row, df.schema)),
                "grouped": discard(fns.evaluate(df, MEASURE, grouped=True, partitions=partitions)),
                "evaluate": discard(fns.evaluate(df, MEASURE)),  # rows are packed before the shuffle
            },
            lambda: fns.summary(df, MEASURE, grouped=True, partitions=partitions).rows[0]["mean"],
        )
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


def dask_pipelines(folder: Path, _: int, grouped: bool) -> tuple[Pipelines, Callable[[], float]]:
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

    if grouped:
        return (
            {
                "dropped": discard(df.map_partitions(unchanged)),
                "grouped": discard(fnd.evaluate(df, MEASURE, grouped=True)),
                "evaluate": discard(fnd.evaluate(df, MEASURE)),
            },
            lambda: fnd.summary(df, MEASURE, grouped=True).rows[0]["mean"],
        )
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


def ray_pipelines(folder: Path, rows: int, grouped: bool) -> tuple[Pipelines, Callable[[], float]]:
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

    if grouped:
        dropped = df.map_batches(one_row, batch_size=None, batch_format="pyarrow")
        return (
            {
                "dropped": discard(dropped),
                "grouped": discard(fnr.evaluate(df, MEASURE, grouped=True, partitions=partitions)),
                "evaluate": discard(fnr.evaluate(df, MEASURE, partitions=partitions)),
            },
            lambda: fnr.summary(df, MEASURE, grouped=True, partitions=partitions).rows[0]["mean"],
        )

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


CLOCKS = {"wall": "wall", "processor": "cpu"}  # fields of Time


def measured(
    engine: str,
    rows: int,
    stages: list[str] | None,
    rounds: int,
    clock: str,
    *,
    grouped: bool = False,
) -> dict[str, float]:
    """Check the mean, then time the pipelines in turns. Return the fastest round of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows, grouped=grouped)
        pipelines, mean = ENGINES[engine](folder, rows, grouped)
        expected = fn.evaluate(fn.read_parquet(folder), MEASURE).mean()[MEASURE]
        if (found := mean()) != expected:
            raise SystemExit(f"{engine}: the mean is {found!r}; wanted {expected!r}")
        chosen = {stage: run for stage, run in pipelines.items() if stages is None or stage in stages}
        times = take_turns(chosen, least=rounds, most=rounds)
    return {stage: getattr(each, clock) for stage, each in times.items()}


def compare(engines: list[str], rows: int, rounds: int, clock: str) -> None:
    print(
        "| engine | rows | passed through | one row a batch | evaluate | of passed through | of one row "
        "a batch |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for engine in engines:
        found = measured(engine, rows, ["to Python", "to Python and back", "evaluate"], rounds, clock)
        through, taken, ours = found["to Python and back"], found["to Python"], found["evaluate"]
        print(
            f"| {engine} | {rows:,} | {through:.1f} s | {taken:.1f} s | {ours:.1f} s | "
            f"{ours / through:.2f}x | {ours / taken:.2f}x |",
            flush=True,
        )


def compare_grouped(engines: list[str], rows: int, rounds: int, clock: str) -> None:
    print(
        "| engine | rows | dropped | evaluate(grouped=True) | evaluate | grouped of dropped | evaluate "
        "of grouped |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for engine in engines:
        found = measured(engine, rows, None, rounds, clock, grouped=True)
        dropped, ours, shuffled = found["dropped"], found["grouped"], found["evaluate"]
        print(
            f"| {engine} | {rows:,} | {dropped:.1f} s | {ours:.1f} s | {shuffled:.1f} s | "
            f"{ours / dropped:.2f}x | {shuffled / ours:.2f}x |",
            flush=True,
        )


def stages(engines: list[str], sizes: list[int], rounds: int, clock: str) -> None:
    *fitted, largest = sorted(sizes)
    print(
        "| engine | stage, with those before it | "
        f"{' | '.join(f'{size:,} rows' for size in [*fitted, largest])} | ns a row and core | predicted |"
    )
    print("|" + " --- |" * (len(sizes) + 4))
    for engine in engines:
        found = {size: measured(engine, size, None, rounds, clock) for size in [*fitted, largest]}
        for stage in found[largest]:
            times = [found[size][stage] for size in fitted]
            rate, fixed = np.polyfit(fitted, times, 1) if len(fitted) > 1 else (times[0] / fitted[0], 0.0)
            cells = [f"{found[size][stage]:.2f} s" for size in [*fitted, largest]]
            predicted = fixed + rate * largest
            print(
                f"| {engine} | {stage} | {' | '.join(cells)} | {rate * CORES * 1e9:.0f} | "
                f"{predicted:.2f} s, {found[largest][stage] / predicted:.2f}x |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=20e6)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--grouped", action="store_true", help="rows sorted by query")
    parser.add_argument("--stages", nargs="+", type=float, help="numbers of rows; the largest is predicted")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="processor: this process alone, so for Dask"
    )
    options = parser.parse_args()
    clock = CLOCKS[options.clock]
    if options.stages:
        stages(options.engines, [int(size) for size in options.stages], options.rounds, clock)
    elif options.grouped:
        compare_grouped(options.engines, int(options.rows), options.rounds, clock)
    else:
        compare(options.engines, int(options.rows), options.rounds, clock)


if __name__ == "__main__":
    main()
