"""Time how TREC files are read and judgments are joined to a run, against pytrec_eval on the same files.

    python bench/bench_trec.py [--rows 2000000] [--repeat 5]

Reading is timed from the path to data that can be evaluated. `parse_qrel` and `parse_run` of pytrec_eval
return dicts; `read_trec` returns grouped arrays, and its time includes the join, the check for duplicates and
the order of ties. `scan` only reads the run, as `parse_run` does. The answers are compared first. The result
is the fastest of several calls, the second of two in each turn, in seconds of wall time and, in brackets, of
processor time, which other processes disturb less.

Bias: the scanner is made for files with one blank between fields and contiguous queries, as TREC runs have
them. `--digits 17` writes scores as Python does, in place of six decimals. pytrec_eval is single-threaded;
`scan` uses all processors, and `scan, 1 thread` one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytrec_eval

from bench.timing import Time, fastest, time_once
from fastndcg import Rankings
from fastndcg.sources.text_sides import text_side
from fastndcg.sources.trec import read_trec

DEPTH = 1000


def write_files(folder: Path, rows: int, digits: int) -> tuple[Path, Path]:
    generator = np.random.default_rng(0)
    qrels, run = folder / "qrels.txt", folder / "run.txt"
    with qrels.open("w") as judged, run.open("w") as scored:
        for query in range(rows // DEPTH):
            scores = np.sort(generator.normal(10, 3, DEPTH))[::-1]
            docs = [
                f"LA{doc:07d}-{doc % 977:04d}"
                for doc in generator.choice(9_000_000, DEPTH + 20, replace=False)
            ]
            shown = [f"{score:.6f}" if digits == 6 else repr(float(score)) for score in scores]
            scored.writelines(
                f"{query + 1}\tQ0\t{doc}\t{i + 1}\t{score}\tMYRUN01\n"
                for i, (doc, score) in enumerate(zip(docs, shown, strict=False))
            )
            grades = generator.integers(0, 3, len(docs[::20]))
            judged.writelines(
                f"{query + 1} 0 {doc} {grade}\n" for doc, grade in zip(docs[::20], grades, strict=True)
            )
    return qrels, run


def parse_both(qrels: Path, run: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    with qrels.open() as file:
        judged = pytrec_eval.parse_qrel(file)
    with run.open() as file:
        return judged, pytrec_eval.parse_run(file)


def parse_run(run: Path) -> dict[str, dict[str, float]]:
    with run.open() as file:
        return pytrec_eval.parse_run(file)  # type: ignore[no-any-return]


def check_answers(
    rankings: Rankings, qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    assert rankings.query_ids.to_pylist() == list(qrels)
    docs, scores, grades, pool = (
        rankings.doc_ids.to_pylist(),
        rankings.scores.tolist(),
        rankings.relevance.tolist(),
        rankings.judged,
    )
    for query, name in enumerate(qrels):
        rows = slice(rankings.offsets[query], rankings.offsets[query + 1])
        assert dict(zip(docs[rows], scores[rows], strict=True)) == run[name]
        assert grades[rows] == [qrels[name].get(doc, 0) for doc in docs[rows]]
        assert pool is not None
        assert sorted(pool.relevance[pool.offsets[query] : pool.offsets[query + 1]]) == sorted(
            qrels[name].values()
        )


def best(functions: dict[str, Callable[[], Any]], repeat: int) -> dict[str, Time]:
    times: dict[str, list[Time]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            function()  # after millions of small objects were freed, the first call waits until the system has cleared pages
            times[name].append(time_once(function))
    return {name: fastest(each) for name, each in times.items()}


def tables(rows: int, as_text: bool) -> tuple[pa.Table, pa.Table]:
    generator = np.random.default_rng(1)
    n_queries = rows // DEPTH
    docs = generator.integers(0, 1 << 40, (n_queries, DEPTH)) * DEPTH + np.arange(
        DEPTH
    )  # no repeated document in a query
    query = np.repeat(np.arange(n_queries), DEPTH)
    judged = np.repeat(np.arange(n_queries), DEPTH // 4)

    def ids(values: Any, prefix: str) -> pa.Array:
        numbers = pa.array(np.asarray(values).ravel())
        return pc.binary_join_element_wise(prefix, numbers.cast(pa.string()), "-") if as_text else numbers

    qrels = pa.table(
        {
            "query_id": ids(judged, "q"),
            "doc_id": ids(docs[:, ::4], "doc"),
            "relevance": generator.integers(0, 4, len(judged)),
        }
    )
    run = pa.table(
        {
            "query_id": ids(query, "q"),
            "doc_id": ids(docs, "doc"),
            "score": generator.normal(size=len(query)).round(2),
        }
    )
    order = generator.permutation(len(judged))
    return qrels.take(pa.array(order)), run


def show(name: str, spent: tuple[float, float], note: str) -> None:
    print(f"{name:44s} {spent[0]:8.3f} s ({spent[1]:6.3f})  {note}")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=2_000_000, help="rows of the run")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--digits", type=int, choices=(6, 17), default=6, help="of the scores")
    given = options.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        qrels, run = write_files(Path(folder), given.rows, given.digits)
        check_answers(read_trec(qrels, run), *parse_both(qrels, run))
        times = best(
            {
                "pytrec_eval parse_run": lambda: parse_run(run),
                "scan": lambda: text_side(run, "score", None),
                "scan, 1 thread": lambda: text_side(run, "score", 1),
                "pytrec_eval parse_qrel and parse_run": lambda: parse_both(qrels, run),
                "read_trec": lambda: read_trec(qrels, run),
                "read_trec, 1 thread": lambda: read_trec(qrels, run, threads=1),
            },
            given.repeat,
        )
        size = run.stat().st_size
    print(f"{given.rows:,} rows of a run, {size / 1e6:.0f} MB, scores of {given.digits} digits")
    rival = times["pytrec_eval parse_run"]
    for name, spent in times.items():
        if name == "pytrec_eval parse_qrel and parse_run":
            rival = spent
        show(
            name,
            spent,
            f"{given.rows / spent[0] / 1e6:6.1f} M rows/s, {rival[0] / spent[0]:5.1f} x "
            f"({rival[1] / spent[1]:.1f} x)",
        )

    for as_text in (False, True):
        judged, scored = tables(given.rows, as_text)
        rows = judged.num_rows + scored.num_rows
        Rankings.from_qrels_run(judged, scored)
        name = f"join of {'strings' if as_text else 'integers'}"
        functions = {
            name: partial(Rankings.from_qrels_run, judged, scored),
            f"{name}, ties in input order": partial(Rankings.from_qrels_run, judged, scored, ties="input"),
        }
        joined = best(functions, given.repeat)
        for name, spent in joined.items():
            show(
                name,
                spent,
                f"{rows / spent[0] / 1e6:6.1f} M rows/s of both tables, "
                f"{scored.num_rows / spent[0] / 1e6:.1f} M of the run",
            )


if __name__ == "__main__":
    main()
