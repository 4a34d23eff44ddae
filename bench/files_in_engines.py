"""Compare the processor time of an engine that has its workers read files with `scan_parquet` in one process.

    python bench/files_in_engines.py [--rows 20e6] [--engines spark dask dask_distributed ray] [--engine-reads]
    python bench/files_in_engines.py --cold

Files are sorted by query, or in any order. The means of both are compared first, bit for bit. Then each engine
summarises the files several times: processor time is that of the machine, with the JVM and all workers, while
one call runs, without that of starting them. The base is the first `scan_parquet` of a process that has
read nothing else, as a user of one machine has it, and a later one. `--engine-reads` adds the tables of the
engine, which passes the rows. `--cold` starts Spark anew for each job, whose executors have compiled kernels, find
them in a folder that came with the job, have an empty folder, or none that they can write to.

Bias: one machine, so no shuffle uses a network, and what else runs on it counts; generated data; 111 documents
a query on average; int64 ids; files in the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn

CORES, FILES, LENGTH = 2, 10, 111
MEASURE = "nDCG@10"
ORDERS = ("sorted", "shuffled")
_TICKS = os.sysconf("SC_CLK_TCK")


def write(folder: Path, rows: int) -> None:
    """Ten files in each order, of the same documents."""
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(0, max(rows // LENGTH, 1), rows))
    for order in ORDERS:
        (folder / order).mkdir()
        if order == "shuffled":
            rng.shuffle(ids)
        for number, part in enumerate(np.array_split(ids, FILES)):
            grades = rng.choice(np.arange(5, dtype=np.int8), len(part), p=[0.6, 0.2, 0.1, 0.06, 0.04])
            table = pa.table({"query_id": part, "label": grades, "score": rng.random(len(part), np.float32)})
            pq.write_table(table, folder / order / f"{number}.parquet", row_group_size=500_000)


def seconds_of_all() -> float:
    """Processor time of the whole machine: parents do not account for all processes of an engine."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + sum(interrupts)) / _TICKS


def spark() -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    from pyspark.sql import SparkSession

    from fastndcg.adapters import spark as fns

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{CORES}]").config("spark.driver.memory", "4g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return (
        lambda path: fns.summary_files(session, path, MEASURE),
        lambda path: fns.summary(session.read.parquet(path), MEASURE),
    )


def dask(scheduler: str = "threads") -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    import dask as engine
    import dask.dataframe as dd

    from fastndcg.adapters import dask as fnd

    engine.config.set(scheduler=scheduler, num_workers=CORES)
    return (
        lambda path: fnd.summary_files(path, MEASURE),
        lambda path: fnd.summary(dd.read_parquet(path), MEASURE),
    )


def dask_processes() -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    return dask("processes")


def dask_distributed() -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    from distributed import Client

    Client(n_workers=CORES, threads_per_worker=1, dashboard_address=None)
    return dask("distributed")


def ray() -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    import ray as engine
    from ray import data

    from fastndcg.adapters import ray as fnr

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    engine.init(
        num_cpus=CORES, include_dashboard=False, log_to_driver=False, object_store_memory=3_000_000_000
    )
    data.DataContext.get_current().enable_progress_bars = False
    return (
        lambda path: fnr.summary_files(path, MEASURE),
        lambda path: fnr.summary(data.read_parquet(path), MEASURE, partitions=8),
    )


def scanned(path: str) -> dict[str, Any]:
    """Processor seconds of the first and of a later scan of a process of its own, and the mean."""
    code = (
        "import json, sys, time, fastndcg as fn\n"
        "seconds = []\n"
        "for _ in range(3):\n"
        "    began = time.process_time()\n"
        f"    mean = fn.evaluate(fn.scan_parquet(sys.argv[1]), {MEASURE!r}).mean()[{MEASURE!r}]\n"
        "    seconds.append(time.process_time() - began)\n"
        "print(json.dumps([seconds[0], min(seconds[1:]), mean.hex()]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    return dict(zip(("first", "later", "mean"), json.loads(done.stdout), strict=True))


def cold(folder: Path, bases: dict[str, dict[str, Any]]) -> None:
    """Print what the first job of a Spark application takes, by what its executors find of kernels."""
    compile_ = [sys.executable, "-m", "fastndcg", "compile", "-m", MEASURE]
    generic = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
    for order, base in bases.items():
        data = str(folder / order)
        kept, shipped, empty = (folder / f"{order}-{name}" for name in ("kept", "shipped", "empty"))
        own = {"HOME": str(folder / "home"), "NUMBA_CACHE_DIR": str(kept)}
        to_ship = ["--folder", str(shipped), "--cpu", "x86-64-v3"]
        for command in (compile_, [*compile_, *to_ship]):
            subprocess.run(command, env=os.environ | own, check=True, capture_output=True)
        for kernels, settings in (
            ("kept by an earlier job", own),
            ("shipped with the job", own | generic | {"NUMBA_CACHE_DIR": str(shipped)}),
            ("empty folder, first job", own | {"NUMBA_CACHE_DIR": str(empty)}),
            ("the same, second job", own | {"NUMBA_CACHE_DIR": str(empty)}),
            ("no folder to write to", own | {"NUMBA_CACHE_DIR": "/proc/no-folder"}),
        ):
            done = subprocess.run(
                [sys.executable, __file__, "--job", data],
                env=os.environ | settings, text=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            spent, clock, mean = json.loads(done.stdout)
            if mean != base["mean"]:
                raise SystemExit(f"{kernels}, {order}: the mean is {mean}; expected that of scan_parquet")
            print(f"{kernels:24} {order:9} {spent:6.1f} s of processors, {clock:5.1f} s", flush=True)


def job(path: str) -> None:
    """Print the seconds of processors and of the clock of one call in this new application, and the mean."""
    run, _ = spark()
    began, started = seconds_of_all(), time.perf_counter()
    mean = run(path).rows[0]["mean"].hex()
    print(json.dumps([seconds_of_all() - began, time.perf_counter() - started, mean]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=float, default=20e6)
    parser.add_argument("--engines", nargs="+", default=["spark", "dask", "dask_distributed", "ray"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine-reads", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job(options.job)
        return
    rows = int(options.rows)
    with tempfile.TemporaryDirectory(prefix="fastndcg-bench-") as name:
        write(Path(name), rows)
        for order in ORDERS:  # compiles kernels, if they are not kept yet
            fn.evaluate(fn.scan_parquet(f"{name}/{order}"), MEASURE)
        bases = {order: scanned(f"{name}/{order}") for order in ORDERS}
        for order, base in bases.items():
            for when in ("first", "later"):
                print(f"scan_parquet, {when:6} {order:9} {base[when] / rows * 1e9:6.1f} ns a row", flush=True)
        if options.cold:
            cold(Path(name), bases)
            return
        for engine in options.engines:
            ways = dict(zip(("files", "rows"), globals()[engine](), strict=True))
            for order, base in bases.items():
                for way, run in ways.items() if options.engine_reads else [("files", ways["files"])]:
                    report(f"{engine}, {way}", order, base, run, f"{name}/{order}", rows, options.rounds)


def report(
    what: str, order: str, base: dict[str, Any], run: Callable[[str], Any], path: str, rows: int, rounds: int
) -> None:
    found = run(path).rows[0]["mean"]
    if found.hex() != base["mean"]:
        raise SystemExit(f"{what}, {order}: the mean is {found!r}; expected that of scan_parquet")
    spent, walls = [], []
    for _ in range(rounds):
        began, started = seconds_of_all(), time.perf_counter()
        run(path)
        spent.append((seconds_of_all() - began) / rows * 1e9)
        walls.append(time.perf_counter() - started)
    ratio = min(spent) / (base["first"] / rows * 1e9)
    print(
        f"{what:14} {order:9} {min(spent):6.1f} ns a row, {ratio:5.2f} of the first scan, {min(walls):5.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
