"""Measure the peak memory and the speed of streams. Memory should not grow when rows grow tenfold.

For 5 and 50 million rows it writes a Parquet file of queries of lognormal length, and computes nDCG@10 in a separate process. It compares the mean with that of the generated batches,
and prints the peak resident memory of the process, before and after, and nanoseconds for each row.

Bias: the data is generated, compresses better than most, and is in the page cache when it is read. Memory is
that of the process (`VmHWM` of Linux; `ru_maxrss` would be inherited from this one), including the
interpreter, NumPy, pyarrow, Numba and a kernel: "loaded" is the peak before the first row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from bench.errors import WrongAnswerError
from bench.process import python
from bench.record import Row
from fastndcg.statistics import exact_sum

BATCH = 1_000_000
ROW_GROUP = 1_000_000

CHILD = """
import json, re, sys, time
import fastndcg as fn
def peak_memory():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1]]), "nDCG@10", threads=1)
loaded = peak_memory()
start = time.perf_counter()
stream = fn.scan_parquet(sys.argv[1])
scores = fn.evaluate(stream, "nDCG@10")
seconds = time.perf_counter() - start
print(json.dumps({"mean": scores.mean()["nDCG@10"], "queries": scores.n_queries, "seconds": seconds, "loaded": loaded, "peak": peak_memory()}))
"""


def write(path: Path, rows: int, ids: str) -> float:
    """Write about this many rows, and return the mean of nDCG@10."""
    rng = np.random.default_rng(rows)
    written, first, total, queries = 0, 0, Fraction(0), 0
    writer = None
    while written < rows:
        lengths = np.clip(np.rint(rng.lognormal(np.log(80), 0.8, BATCH // 110)), 1, 2000).astype(np.int64)
        numbers = np.arange(first, first + len(lengths))
        documents = int(lengths.sum())
        labels = rng.integers(0, 256, documents, np.uint8)
        labels = np.digitize(labels, [200, 230, 245, 253]).astype(np.int8)
        scores = rng.random(documents, np.float32) + labels * np.float32(0.2)
        rankings = fn.Rankings.from_groups(lengths, labels, scores)
        total += exact_sum(fn.evaluate(rankings, "nDCG@10")["nDCG@10"])
        rows_of = np.repeat(np.arange(len(lengths)), lengths)
        names = (
            pa.array([f"query-{number:09d}" for number in numbers]) if ids == "string" else pa.array(numbers)
        )
        order = np.arange(documents)
        if ids == "shuffled":
            order = rng.permutation(documents)
        table = pa.table(
            {
                "qid": names.take(pa.array(rows_of[order])),
                "label": labels[order],
                "score": scores[order],
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=["qid", "label"])
        writer.write_table(table, row_group_size=ROW_GROUP)
        written, first, queries = written + documents, first + len(lengths), queries + len(lengths)
    writer.close()
    return float(total / queries)


def rows(*, quick: bool) -> Iterator[Row]:
    for ids in ("int", "string", "shuffled"):
        for count in (50_000, 500_000) if quick else (5_000_000, 50_000_000):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "rows.parquet")
                mean, exact = write(path, count, ids), pq.read_metadata(path).num_rows
                (found,) = python("-c", CHILD, str(path))
            if found["mean"] != mean:
                raise WrongAnswerError("nDCG@10", f"{count:,} rows", found["mean"], mean)
            told = (
                f"peak {found['peak'] >> 10} MiB, of which {found['loaded'] >> 10} MiB before the first row"
            )
            seconds = found["seconds"] / exact * 1e9
            yield Row(
                "stream", f"{exact:,} rows, {ids} ids", unit="ns/row", wall=seconds, cpu=seconds, note=told
            )
