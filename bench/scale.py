"""Ten thousand machines on paper: a model of a job on an engine, checked here and run for sizes that are not here.

    python -m bench.scale check [--rows 2e6 20e6 200e6]   # the model beside real jobs of Spark on this machine
    python -m bench.scale table                           # what it says of 10^9 to 10^12 rows
    python -m bench.scale job --rows 1e12 --workers 10000 # one job in detail

The model has two parts. `Costs` are what a row, a task and a result of a task cost, in processor time, bytes of
network and bytes of memory. `simulate` runs a job event by event: the driver lists files, hands tasks to the
cores of workers, and merges results one after the other; lengths of queries are Zipf's, one query may be as long
as told; some workers are slow, and some are lost and lose what they hold.

`check` says how far the model's processor time is from that of whole applications, at each size; beyond 20 % it fails.

Bias: a network and disks that deliver what they promise; no other job; a cost a row that is that of this machine.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CORES = 8  # of a worker
GB = 1e9
_MOST_OFF = 0.2


@dataclass(frozen=True)
class Costs:
    """Measured on two cores of an AMD EPYC; seconds of processor time and bytes."""

    job: float = 3.2  # a job, whatever its size: its plan, and kernels that its workers load
    scan: float = (
        40e-9  # a row that a worker reads from files sorted by query and scores, with the engine's share
    )
    send: float = 150e-9  # a row of files in any order: read, hash, pack and hand to the shuffle
    receive: float = 150e-9  # the same row at its other end: unpack, group, score
    task: float = 0.07  # a task, before its first row
    row_network: float = 14  # bytes of a row in a packed block: id, grade, score, and what frames them
    row_read: float = 7  # bytes of a row in a file
    row_memory: float = 40  # bytes of a row while a task holds it
    block_memory: float = 2e5  # bytes of a writer of one partition of a shuffle
    block: float = 5e-6  # one task's rows for one partition, fetched; assumed, as is the next
    block_driver: float = 1 / 8  # bytes of what the driver of an engine keeps of it: a bit
    file: float = 0.0002  # the driver, for each file that it lists
    result: float = 7.4e-6  # the driver, to merge the sums of a task
    result_memory: float = 273  # bytes of these sums
    result_network: float = 1e3
    slice: float = 13e-6  # the driver, to merge one slice of one task, where it merges slices itself
    slice_memory: float = 200


@dataclass(frozen=True)
class Job:
    rows: float
    workers: int
    shuffled: bool = False  # whether rows stand in any order
    slices: int = 0  # groups of `by=`
    merged_by_workers: bool = True  # slices are merged by a shuffle on the group, not by the driver
    longest: float = 0.0  # rows of the longest query; 0: as Zipf's law has it
    slow: float = 0.02  # share of workers that are slow
    slowness: float = 4.0
    lost: float = 1e-3  # workers that are lost in an hour, as a share
    rows_of_task: float = 4e6
    rows_of_file: float = 5e7
    network: float = 1.25 * GB  # bytes a second of a worker
    memory: float = 32 * GB  # of a worker
    driver_memory: float = 8 * GB
    most_tasks: int = 1_000_000  # beyond it tasks are made larger, as an engine's user would
    seed: int = 0


class Outcome(NamedTuple):
    seconds: float
    processor: float  # seconds of all cores
    network: float  # bytes between machines
    worker_memory: float  # bytes of the fullest worker
    driver_memory: float
    driver: float  # seconds in which the driver itself is busy
    tasks: int
    again: int  # tasks that ran again, because a worker was lost
    breaks: tuple[str, ...]

    @property
    def verdict(self) -> str:
        return "; ".join(self.breaks) or "fits"


def simulate(job: Job, costs: Costs | None = None) -> Outcome:
    """Run a job on paper."""
    costs = costs or Costs()
    random = np.random.default_rng(job.seed)
    rows_of_task = max(job.rows_of_task, job.rows / job.most_tasks)
    tasks = max(math.ceil(job.rows / rows_of_task), 1)
    sizes = np.full(tasks, job.rows / tasks)
    longest = job.longest or _longest_of_zipf(job.rows)
    cluster = _Cluster(job, random)
    listed, blocks = costs.file * job.rows / job.rows_of_file, 0.0
    network = job.rows * costs.row_read + tasks * costs.result_network
    if not job.shuffled:
        # a query longer than a task is read by one worker, in the task of its first row
        sizes[0] = max(sizes[0], longest)
        stages = [(sizes, costs.scan)]
        kept = float(sizes.max())
        memory = CORES * min(rows_of_task, 2e6) * costs.row_memory + longest * costs.row_memory
    else:
        reducers = max(math.ceil(job.rows / rows_of_task), 1)
        received = random.poisson(job.rows / reducers, reducers).astype(float)
        received[0] += longest  # all rows of a query go to one partition
        stages = [(sizes, costs.send), (received, costs.receive)]
        network += job.rows * costs.row_network
        kept, blocks = float(received.max()), float(tasks) * reducers
        open_blocks = min(reducers, 10_000) * costs.block_memory  # a map task writes to as many partitions
        memory = CORES * max(open_blocks, rows_of_task * costs.row_memory) + longest * costs.row_memory
    clock = costs.job + listed + blocks * costs.block / (CORES * job.workers)
    processor, again = costs.job + blocks * costs.block, 0
    for sizes_of, cost in stages:
        ended, spent, repeated = cluster.run(sizes_of, cost, costs.task, clock)
        if job.shuffled:
            moved = job.rows * (costs.row_read if cost == costs.send else costs.row_network)
            ended = max(ended, clock + moved / (job.network * job.workers))
        clock, processor, again = ended, processor + spent, again + repeated
    results = len(stages[-1][0])
    driver = listed + results * costs.result
    driver_memory = results * costs.result_memory + blocks * costs.block_driver
    if job.slices:
        if job.merged_by_workers:
            # each task sends its slices to the worker of the group: no more than it has queries
            sums = results * min(job.slices, rows_of_task / 100)
            network += sums * costs.slice_memory
            clock += sums * costs.slice / 10 / (CORES * job.workers)
            driver_memory += job.slices * costs.slice_memory
            driver += job.slices * 1e-6
        else:
            sums = results * min(job.slices, rows_of_task / 100)
            driver += sums * costs.slice
            driver_memory += sums * costs.slice_memory
    clock = (
        max(clock, listed)
        + max(results * costs.result - (clock - listed), 0.0)
        + (driver - listed - results * costs.result)
    )
    breaks = []
    if driver_memory > job.driver_memory:
        breaks.append(f"driver holds {driver_memory / GB:.3g} GB")
    if memory > job.memory:
        breaks.append(f"worker holds {memory / GB:.3g} GB")
    if driver > clock / 2 and driver > 60:
        breaks.append(f"driver works {driver:.3g} s of {clock:.3g}")
    if kept * stages[-1][1] > max(clock / 2, 600):
        breaks.append(f"one query takes {kept * stages[-1][1]:.3g} s")
    return Outcome(clock, processor, network, memory, driver_memory, driver, tasks, again, tuple(breaks))


def _longest_of_zipf(rows: float, exponent: float = 1.1) -> float:
    """Rows of the longest of rows / 100 queries whose lengths are those of Zipf's law, at most 1 % of all rows."""
    queries = max(rows / 100, 1)
    total = (queries ** (1 - exponent) - 1) / (1 - exponent) + 1
    return min(rows / total, rows / 100, 1e8)


class _Cluster:
    """Cores of workers, of which some are slow, and some are lost."""

    def __init__(self, job: Job, random: np.random.Generator) -> None:
        self._job, self._random = job, random
        slow = random.random(job.workers) < job.slow
        self._speed = np.where(slow, 1 / job.slowness, 1.0)
        self._lost_at = random.exponential(3600 / max(job.lost, 1e-12), job.workers)

    def run(self, sizes: Any, cost: float, start: float, begins: float) -> tuple[float, float, int]:
        """When the last task ends, the processor time of all, and how many ran again.

        The largest task goes first to the core that is free first. Once all were handed out, a task of a slow
        worker is handed to a free core too, and the first of the two counts.
        """
        job = self._job
        cores = min(job.workers * CORES, len(sizes))
        free = [(begins, core) for core in range(cores)]
        seconds = np.sort(start + np.asarray(sizes) * cost)[::-1].tolist()
        processor, again, last = 0.0, 0, begins
        running: list[tuple[float, float]] = []
        for needed in seconds:
            at, core = heapq.heappop(free)
            worker = core * job.workers // cores
            took = needed / self._speed[worker]
            if at < self._lost_at[worker] < at + took:  # it is lost on the way: another core begins anew
                processor, again = processor + self._lost_at[worker] - at, again + 1
                at = float(self._lost_at[worker]) + 1
                self._lost_at[worker] = math.inf  # another machine takes its place
                took = needed
            processor += took
            running.append((at + took, needed))
            heapq.heappush(free, (at + took, core))
        # tasks of slow workers that end last are given to free cores too
        running.sort(reverse=True)
        for ended, needed in running:
            at = free[0][0]
            if at + needed >= ended:
                last = max(last, ended)
                break
            at, core = heapq.heappop(free)
            processor += needed
            heapq.heappush(free, (at + needed, core))
            last = max(last, at + needed)
        return last, processor, again


# ---- beside real jobs ----


def measured(rows: int, order: str) -> dict[str, float]:
    """Processor seconds a job of Spark takes with these rows, and how long; in a process of its own."""
    code = f"import bench.scale as s; s._job_of_spark({rows}, {order!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _job_of_spark(rows: int, order: str) -> None:
    import time

    import fastndcg as fn
    from bench import files_in_engines as files

    with tempfile.TemporaryDirectory(prefix="fastndcg-bench-") as name:
        written = _write(Path(name), rows, shuffled=order == "shuffled")
        run, _ = files.spark()
        run(
            _write(Path(name) / "small", 200_000, shuffled=order == "shuffled")
        )  # Python's workers have started
        began, started = files.seconds_of_all(), time.perf_counter()
        found = run(written).rows[0]["mean"]
        spent, wall = files.seconds_of_all() - began, time.perf_counter() - started
        expected = fn.evaluate(fn.scan_parquet(written), files.MEASURE).mean()[files.MEASURE]
        if found.hex() != expected.hex():
            raise SystemExit(f"the mean of {rows:,} rows is {found!r}; wanted {expected!r}")
    print(json.dumps({"processor": spent, "wall": wall}))


def _write(folder: Path, rows: int, *, shuffled: bool) -> str:
    """Files of two million rows, of about 111 documents a query; in any order a query is in several files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "rows"
    path.mkdir(parents=True)
    random, size = np.random.default_rng(0), 2_000_000
    for number, first in enumerate(range(0, rows, size)):
        n = min(size, rows - first)
        ids = (
            random.integers(0, rows // 111 + 1, n)
            if shuffled
            else np.sort(random.integers(first // 111, (first + n) // 111 + 1, n))
        )
        grades = random.choice(np.arange(5, dtype=np.int8), n, p=[0.6, 0.2, 0.1, 0.06, 0.04])
        table = pa.table({"query_id": ids, "label": grades, "score": random.random(n, np.float32)})
        pq.write_table(table, path / f"{number:05}.parquet", row_group_size=500_000)
    return os.fspath(path)


def check(sizes: list[int], orders: tuple[str, ...] = ("sorted", "shuffled")) -> Iterator[str]:
    """How far the model is from real jobs. Ends the process where it is further than `_MOST_OFF`."""
    worst = 0.0
    for order in orders:
        for rows in sizes:
            found = measured(rows, order)
            alike = Job(rows, 1, order == "shuffled", longest=111, slow=0.0, lost=0.0)
            off = simulate(alike).processor / found["processor"] - 1
            worst = max(worst, abs(off))
            yield (
                f"{order}, {rows:,} rows: {found['processor']:.2f} s of processor, "
                f"{found['processor'] / rows * 1e9:.0f} ns a row; {found['wall']:.1f} s; the model {100 * off:+.0f} %"
            )
    if worst > _MOST_OFF:
        raise SystemExit(f"the model is {100 * worst:.0f} % off; wanted at most {100 * _MOST_OFF:.0f}")


# ---- what it says ----

CASES: dict[str, dict[str, Any]] = {
    "sorted": {},
    "sorted, a query of 10^8 rows": {"longest": 1e8},
    "any order": {"shuffled": True},
    "any order, a query of 10^8 rows": {"shuffled": True, "longest": 1e8},
    "sorted, 10^6 slices": {"slices": 1_000_000},
    "sorted, 10^6 slices that the driver merges": {"slices": 1_000_000, "merged_by_workers": False},
}


def table() -> Iterator[str]:
    yield "| rows | workers | case | time | processor | network | worker | driver | first that breaks |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for rows in (1e9, 1e10, 1e12):
        for workers in (1, 10, 100, 10_000):
            if rows / workers > 1e11 or rows / workers < 1e6:
                continue
            for name, case in CASES.items():
                found = simulate(Job(rows, workers, **case))
                yield (
                    f"| {rows:.0e} | {workers:,} | {name} | {_time(found.seconds)} | {_time(found.processor)} "
                    f"| {_bytes(found.network)} | {_bytes(found.worker_memory)} | {_bytes(found.driver_memory)} "
                    f"| {found.verdict} |"
                )


def _time(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _bytes(number: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number / 1e3:.3g} kB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("check", "table", "job"))
    parser.add_argument("--rows", type=float, nargs="+", default=[2e6, 20e6, 200e6])
    parser.add_argument("--orders", nargs="+", default=["sorted", "shuffled"])
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--longest", type=float, default=0.0)
    parser.add_argument("--slices", type=int, default=0)
    options = parser.parse_args()
    if options.what == "check":
        for line in check([int(rows) for rows in options.rows], tuple(options.orders)):
            print(line, flush=True)
    elif options.what == "table":
        print("\n".join(table()))
    else:
        job = Job(
            options.rows[-1], options.workers, options.shuffled, options.slices, longest=options.longest
        )
        for name, value in simulate(job)._asdict().items():
            print(f"{name:14} {value}")
        alone = simulate(replace(job, slow=0.0, lost=0.0))
        print(f"without slow and lost workers: {_time(alone.seconds)}")


if __name__ == "__main__":
    main()
