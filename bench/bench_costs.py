"""Measure what plain, cached and compiled kernels cost, beside the constants that choose among them.

    python -m bench.bench_costs [--rounds 3] [--only NAME ...]

Times are processor seconds, which other processes disturb least, and the median of rounds in separate
processes. A driver's plain cost is its time in the plain world divided by the size of its input. If another
library takes the place of a plain kernel, the cost is the additional time of the whole statement compared
with the loaded kernel. Compiling is timed once and takes about a minute.

Bias: there is one input for each driver, with the most common types of files and NumPy. To compile or load a
driver costs less after others in the same process.
"""

from __future__ import annotations

import argparse
import tempfile
from statistics import median

from bench.process import python

_CHILD = """
import json, sys
from time import process_time
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import fastndcg as fn
from fastndcg.kernels import worlds

folder, random = Path({folder!r}), np.random.default_rng(18)
plain, built = {{}}, {{}}
run_plain, pays, build = worlds.run_plain, worlds.pays, worlds._build

def timed_plain(name, size, arguments):
    before = process_time()
    try:
        return run_plain(name, size, arguments)
    finally:
        found = plain.setdefault(name, [0.0, 0.0])
        found[0] += size
        found[1] += process_time() - before

def asked(name, size):
    plain.setdefault(name, [float(size), None])
    return name != {without!r} and pays(name, size)

def timed_build(key, size, arguments):
    before = process_time()
    try:
        return build(key, size, arguments)
    finally:
        built.setdefault(key[0], process_time() - before)

worlds.run_plain, worlds.pays, worlds._build = timed_plain, asked, timed_build
if worlds.world() == "compiled":
    import fastndcg.compiled.compiling

def dense(queries, dtype):
    grades = random.integers(0, 4, (queries, 100)).astype(dtype)
    return fn.Rankings.from_dense(grades, random.random((queries, 100), dtype=np.float32))

def ids(rows):
    return random.permutation(np.repeat(np.arange(rows // 100), 100))

{setup}
{statement}
before = process_time()
{statement}
print(json.dumps([plain, built, process_time() - before]))
"""
_TABLE = """
rows = 1_000_000
table = pa.table({{"query_id": {ids}, "relevance": random.integers(0, 4, rows, np.int8),
                  "score": random.random(rows, np.float32)}})
path = folder / "a.parquet"
pq.write_table(table, path)
"""
_TREC = """
names = ["d" + str(number) for number in random.integers(0, 10**9, 20_000)]
queries = np.repeat(np.arange(200), 100)
(folder / "qrels").write_text("".join(f"{q} 0 {d} {q % 3}\\n" for q, d in zip(queries, names)))
(folder / "run").write_text("".join(f"{q} Q0 {d} 1 {s:.6f} me\\n" for q, d, s in zip(queries, names, random.random(20_000))))
"""
_LTR = """
values = random.random((300, 20))
(folder / "ltr").write_text("".join(
    f"{row % 3} qid:{row // 10} " + " ".join(f"{i + 1}:{v:.6f}" for i, v in enumerate(each)) + "\\n"
    for row, each in enumerate(values)
))
"""
_INTENTS = """
g, s = random.integers(0, 2, (4_000, 3)).tolist(), random.random((200, 20)).tolist()
r = fn.Rankings.from_lists([[1] * 20] * 200, s, intents=g)
"""
_RESAMPLES = "worlds.run('resampling.{}', {}, 1, 0, {}, np.empty({}, np.int64))"
_SUMS = "sums = random.integers(1, 1000, (2_000, 5))"
# setup, and the statement that runs the drivers
WORK = {
    "score_levels": ("r = dense(2_000, np.uint8)", "fn.evaluate(r, 'nDCG@10', threads=1)"),
    "score_values": (
        "r = fn.Rankings.from_dense(random.random((2_000, 100)), random.random((2_000, 100)))",
        "fn.evaluate(r, 'nDCG@10', threads=1)",
    ),
    "intents": (
        _INTENTS,
        "fn.evaluate(r, 'alpha_nDCG@10', threads=1)",
    ),
    "returned": (
        "r = fn.Rankings.from_dense(random.integers(0, 4, (300, 100)), random.integers(0, 9, (300, 100)))",
        "fn.evaluate(r, \"nDCG(ideal='returned')@10\", threads=1)",
    ),
    "pages of numbers": (_TABLE.format(ids="ids(rows)"), "fn.read_parquet(path, threads=1)"),
    "pages of texts": (
        _TABLE.format(ids="pa.array(ids(rows)).cast('string')"),
        "fn.read_parquet(path, threads=1)",
    ),
    "TREC": (_TREC, "fn.read_trec(folder / 'qrels', folder / 'run', threads=1)"),
    "LETOR": (_LTR, "fn.read_ltr(folder / 'ltr', scores=values[:, 0], threads=1)"),
    "ids": (
        "i = ids(1_000_000); g, s = i % 3, random.random(len(i))",
        "fn.Rankings.from_query_ids(i, g, s)",
    ),
    "far ids": (
        "i = ids(1_000_000) * 10**12; g, s = i % 3, random.random(len(i))",
        "fn.Rankings.from_query_ids(i, g, s)",
    ),
    "texts": (
        "i = pa.array(ids(1_000_000)).cast('string'); g, s = np.zeros(len(i)), random.random(len(i))",
        "fn.Rankings.from_query_ids(i, g, s)",
    ),
    "flips": (_SUMS, _RESAMPLES.format("flip_signs", "2_000 * 2_000 / 8", "sums[:, 0].copy()", 2_000)),
    "permutations": (_SUMS, _RESAMPLES.format("permute_systems", "20 * 4.0 * 10_000", "sums", 20)),
    "bootstrap": (_SUMS, _RESAMPLES.format("draw_sums", "20 * 2_000.0", "sums[:, 0].copy()", 20)),
}


def measure(setup: str, statement: str, rounds: int) -> dict[str, tuple[float | None, float, float]]:
    """Return the plain seconds per unit of each driver, and the seconds to compile and to load it."""
    with tempfile.TemporaryDirectory() as folder:

        def ask(world: str, without: str = "") -> list:
            code = _CHILD.format(folder=folder, setup=setup, statement=statement, without=without)
            return python("-c", code, environment={"FASTNDCG_KERNELS": world, "NUMBA_CACHE_DIR": folder})[0]

        plain = [ask("plain")[0] for _ in range(rounds)]
        measured, compiling = {}, ask("compiled")[1]
        loaded = [ask("compiled") for _ in range(rounds)]
        for name, compiled in compiling.items():
            size, seconds = plain[0].get(name, (None, None))
            if seconds is not None:
                seconds = median(each[name][1] for each in plain)
            elif size is not None:
                others = [ask("compiled", without=name) for _ in range(rounds)]
                seconds = median(each[2] for each in others) - median(each[2] for each in loaded)
            loading = median(each[1][name] for each in loaded)
            measured[name] = (None if seconds is None else seconds / size, compiled, loading)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(WORK), default=list(WORK))
    asked = parser.parse_args()
    print(f"{'driver':36} {'plain':>9} {'const':>9} {'compile':>8} {'const':>6} {'load':>7} {'const':>6}")
    from fastndcg.kernels.worlds import _COSTS, COSTS

    for work in asked.only:
        for name, (plain, compiling, loading) in measure(*WORK[work], asked.rounds).items():
            kept = COSTS.get(name, _COSTS)
            mine = "        -" if plain is None else f"{plain:9.2g}"
            print(
                f"{name:36} {mine} {kept.plain:9.2g} {compiling:8.2f} {kept.compiling:6.2g} "
                f"{loading:7.3f} {kept.loading:6.2g}" + ("" if name in COSTS else "  not weighed"),
                flush=True,
            )


if __name__ == "__main__":
    main()
