"""Measure Spark, Dask and Ray beside the same engine that only reads and counts, and beside one process.

    python bench/run.py --only engines --record    10, 20 and 80 million rows: about an hour

`summary_files`, whose workers read the files, has as its base the engine that reads the same columns of them;
`summary` of a table of the engine has the engine that brings the rows of a query together by its own means and
counts them in Python. One process streams the same files, on as many threads as an engine has workers. All means
must be the same bits. Times are of calls after the first; `first` has whole applications, started anew, whose
workers find kernels in a folder or an empty folder.

Processor time is that of a control group, which all processes of an engine belong to: parents do not account
for all. Where no group can be made (that takes root, on Linux), it is that of the machine.

Bias: one machine, so no shuffle uses a network; generated data; 111 documents a query on average; int64 ids;
files in the page cache.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from bench.errors import BenchError, WrongAnswerError
from bench.process import apart, python
from bench.record import Row, beside
from bench.timing import Time, fastest

CORES, FILES, LENGTH = 2, 10, 111
COLUMNS = ["query_id", "label", "score"]
MEASURE = "nDCG@10"
ORDERS = ("sorted", "any order")
LONGEST = 480.0  # seconds of a first call whose time counts: what takes longer is left out
LARGE = 50_000_000  # rows of which one more call is timed, not two
Ways = dict[str, Callable[[], Any]]
Start = tuple[Callable[[str], Ways], Callable[[], None]]  # what is timed of files, and the end of the engine


def write(folder: Path, rows: int) -> None:
    """Ten files in each order, of the same queries."""
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, max(rows // LENGTH, 1), rows))
    for order in ORDERS:
        (folder / order).mkdir()
        if order != "sorted":
            rng.shuffle(ids)
        for number, part in enumerate(np.array_split(ids, FILES)):
            grades = rng.choice(np.arange(5, dtype=np.int8), len(part), p=[0.6, 0.2, 0.1, 0.06, 0.04])
            columns = [part, grades, rng.random(len(part), np.float32)]
            path = folder / order / f"{number}.parquet"
            pq.write_table(pa.table(columns, names=COLUMNS), path, row_group_size=500_000)


# ---- engines: what reads, what brings queries together and counts, and what scores files and rows ----


def mean(path: str) -> float:
    value: float = fn.evaluate(fn.scan_parquet(path), MEASURE).mean()[MEASURE]
    return value


def one_process() -> Start:
    return lambda path: {"files": partial(mean, path)}, lambda: None


def spark() -> Start:
    from pyspark.sql import SparkSession, functions

    from fastndcg.adapters import spark as fns

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", "6g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")

    def counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_pydict({"rows": [batch.num_rows]}) for batch in batches)

    def ways(path: str) -> Ways:
        df = session.read.parquet(path).select(COLUMNS)
        return {
            "reads": lambda: df.agg(*map(functions.sum, COLUMNS)).collect(),
            "counts": lambda: (
                df.repartition("query_id").mapInArrow(counts, "rows long").groupBy().sum().collect()
            ),
            "files": lambda: fns.summary_files(session, path, MEASURE).rows[0]["mean"],
            "rows": lambda: fns.summary(df, MEASURE).rows[0]["mean"],
        }

    return ways, session.stop


def dask(scheduler: str = "threads") -> Start:
    import dask as engine
    import dask.dataframe as dd

    from fastndcg.adapters import dask as fnd

    engine.config.set(scheduler=scheduler, num_workers=CORES)
    calls = itertools.count()  # makes each call another one: results of equal ones may still be there

    def ways(path: str) -> Ways:
        df = dd.read_parquet(path, split_row_groups=4)

        def anew() -> Any:
            return df.map_partitions(lambda frame, _: frame, next(calls), meta=df)

        return {
            "reads": lambda: anew().map_partitions(len).compute(),
            "counts": lambda: anew().shuffle(on="query_id", ignore_index=True).map_partitions(len).compute(),
            "files": lambda: fnd.summary_files(path, MEASURE).rows[0]["mean"],
            "rows": lambda: fnd.summary(df, MEASURE).rows[0]["mean"],
        }

    return ways, lambda: None


def dask_processes() -> Start:
    from distributed import Client

    client = Client(n_workers=CORES, threads_per_worker=1, dashboard_address=None)
    return dask("distributed")[0], client.shutdown


def ray() -> Start:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    import ray as engine
    from ray import data

    from fastndcg.adapters import ray as fnr

    # workers stay alive between calls, as in a busy cluster
    kept = {"idle_worker_killing_time_threshold_ms": 600_000, "num_workers_soft_limit": 3 * CORES}
    engine.init(
        num_cpus=CORES, include_dashboard=False, log_to_driver=False, object_store_memory=4_000_000_000, _system_config=kept
    )  # fmt: skip
    data.DataContext.get_current().enable_progress_bars = False

    def consume(dataset: Any) -> None:
        for _ in dataset.iter_internal_ref_bundles():
            pass

    def count(table: pa.Table) -> pa.Table:
        return pa.table({"rows": [table.num_rows]})

    def ways(path: str) -> Ways:
        df = data.read_parquet(path)
        together = df.repartition(8, keys=["query_id"])
        counted = together.map_batches(count, batch_size=None, batch_format="pyarrow")
        return {
            "reads": lambda: consume(df),
            "counts": lambda: consume(counted),
            "files": lambda: fnr.summary_files(path, MEASURE).rows[0]["mean"],
            "rows": lambda: fnr.summary(df, MEASURE, partitions=8).rows[0]["mean"],
        }

    return ways, engine.shutdown


ENGINES: dict[str, Callable[[], Start]] = {
    "one process": one_process, "Spark": spark, "Dask, threads": dask, "Dask, two processes": dask_processes, "Ray": ray
}  # fmt: skip
BASES = {"files": "reads", "rows": "counts"}
FIRST = ("one process", "Spark")  # workers of all engines find kernels by the same rule
KERNELS = ("kept", "empty")


# ---- times ----


def joined() -> Callable[[], float]:
    """Put this process into a control group. Return a function of the processor time of all in it, until now."""
    spent = time.process_time()
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    for root in (Path(each[1]) for each in mounts if each[2] == "cgroup2"):
        with suppress(OSError):
            for old in root.glob("fastndcg-bench-*"):
                with suppress(OSError):  # processes are still in it
                    old.rmdir()
            group = root / f"fastndcg-bench-{os.getpid()}"
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()))
            return lambda: spent + int((group / "cpu.stat").read_text().split()[1]) / 1e6
    return _machine


def _machine() -> float:
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def measured(engine: str, folder: str, rows: int) -> Iterator[Row]:
    """What calls after the first take, whose answer is checked."""
    clock, expected = joined(), {order: mean(f"{folder}/{order}") for order in ORDERS}

    def timed(call: Callable[[], Any]) -> Time:
        cpu, wall = clock(), time.perf_counter()
        call()
        wall = time.perf_counter() - wall
        return Time(wall, clock() - cpu)

    start, stop = ENGINES[engine]()
    for order in ORDERS:
        ways, found = start(f"{folder}/{order}"), {}
        for way, call in ways.items():
            began, answer = time.perf_counter(), call()
            if way in BASES and answer != expected[order]:
                raise WrongAnswerError(MEASURE, f"{engine}, {way}", answer, expected[order])
            if time.perf_counter() - began < LONGEST:
                found[way] = fastest([timed(call) for _ in range(1 if rows > LARGE else 2)])
        for way, base in BASES.items():
            name, scale = f"{engine}, {way}, {rows // 1_000_000} M, {order}", 1e9 / rows
            if way in found and base in found:
                yield beside("engines", name, base, "ns/row", found[way], found[base], each=scale)
            elif way in found:
                yield Row("engines", name, "", "ns/row", *(seconds * scale for seconds in found[way]))
    stop()


def first(engine: str, path: str, name: str) -> Iterator[Row]:
    """What an application takes from its start to its end, in which one call scores files."""
    started = time.process_time()
    clock, began = joined(), time.perf_counter()
    start, stop = ENGINES[engine]()
    start(path)["files"]()
    stop()
    yield Row("engines", name, "", "s", time.perf_counter() - began + started, clock())


def rows(*, quick: bool) -> Iterator[Row]:
    for size in (100_000,) if quick else (10_000_000, 20_000_000, 80_000_000):
        with tempfile.TemporaryDirectory(prefix="fastndcg-bench-") as name:
            folder = Path(name)
            write(folder, size)
            kept = {"NUMBA_CACHE_DIR": str(folder / "kept")}
            python("-m", "fastndcg", "compile", "-m", MEASURE, environment=kept)
            for engine in ENGINES:
                try:
                    yield from apart("engines.measured", engine, name, size, environment=kept, timeout=3600)
                except BenchError as error:
                    yield Row("engines", f"{engine}, {size // 1_000_000} M", note=f"failed: {error}")
            for engine, order, kernels in itertools.product(FIRST, ORDERS, KERNELS):
                where = kept if kernels == "kept" else {"NUMBA_CACHE_DIR": f"{name}/{engine}, {order}"}
                label = f"{engine}, first job, kernels {kernels}, {size // 1_000_000} M, {order}"
                path = f"{name}/{order}"
                yield from apart("engines.first", engine, path, label, environment=where, timeout=600)
