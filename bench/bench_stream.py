"""Measure the peak memory and the speed of streams. Memory should not grow when rows grow tenfold.

    python bench/bench_stream.py [rows ...] [--ids int|string|shuffled] [--memory 256MB] [--threads N]
    [--folder FOLDER]

For each number of rows (default 5 and 50 million) it writes a Parquet file of queries of lognormal length to
FOLDER, and computes nDCG@10 in a separate process. It compares the mean with that of the generated batches,
and prints the peak resident memory of the process, before and after, and nanoseconds for each row.

Bias: the data is generated, compresses better than most, and is in the page cache when it is read. Memory is
that of the process (`VmHWM` of Linux; `ru_maxrss` would be inherited from this one), including the
interpreter, NumPy, pyarrow, Numba and a kernel: "loaded" is the peak before the first row.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
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
options = json.loads(sys.argv[2])
threads = options["threads"]
start = time.perf_counter()
stream = fn.scan_parquet(sys.argv[1], memory=options["memory"], threads=threads)
scores = fn.evaluate(stream, "nDCG@10", threads=threads)
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", type=float, default=[5e6, 50e6])
    parser.add_argument("--ids", choices=["int", "string", "shuffled"], action="append")
    parser.add_argument("--memory", default=None)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    print(
        f"{'ids':>9} {'rows':>13} {'queries':>11} {'file MB':>8} {'ns/row':>7} {'loaded MiB':>10} "
        f"{'peak MiB':>9}"
    )
    for ids in options.ids or ["int", "string"]:
        for rows in options.rows:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                path = Path(folder) / "rows.parquet"
                mean = write(path, int(rows), ids)
                size, exact = path.stat().st_size / 1e6, pq.read_metadata(path).num_rows
                given = json.dumps({"memory": options.memory, "threads": options.threads})
                done = subprocess.run(
                    [sys.executable, "-c", CHILD, str(path), given],
                    stdout=subprocess.PIPE,
                    check=True,
                    env=os.environ | {"PYTHONPATH": str(Path(fn.__file__).parent.parent)},
                )
            found = json.loads(done.stdout)
            if found["mean"] != mean:
                sys.exit(f"the mean is {found['mean']!r}; wanted {mean!r}")
            print(
                f"{ids:>9} {exact:>13,} {found['queries']:>11,} {size:>8.0f} "
                f"{found['seconds'] / exact * 1e9:>7.2f} {found['loaded'] / 1024:>10.0f} "
                f"{found['peak'] / 1024:>9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
