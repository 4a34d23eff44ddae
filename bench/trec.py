"""Time how TREC files are read and judgments are joined to a run, against pytrec_eval on the same files.

Reading is timed from the path to data that can be evaluated. `parse_qrel` and `parse_run` of pytrec_eval
return dicts; `read_trec` returns grouped arrays, and its time includes the join, the check for duplicates and
the order of ties. `scan` only reads the run, as `parse_run` does. The answers are compared first. The result
is the fastest of several calls, the second of two in each turn, in seconds of wall time and, in brackets, of
processor time, which other processes disturb less.

Bias: the scanner is made for files with one blank between fields and contiguous queries, as TREC runs have
them, of six decimals or, with 17 digits, as Python writes them. pytrec_eval is single-threaded;
`scan` uses all processors, and `scan, 1 thread` one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytrec_eval

from bench.record import Row, beside
from bench.timing import take_turns
from fastndcg import Rankings
from fastndcg.sources.sides import text_side
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


def rows(*, quick: bool) -> Iterator[Row]:
    n = 20_000 if quick else 2_000_000
    options = {"least": 2 if quick else 5, "most": 5, "twice": True}
    for digits in (6, 17):
        with tempfile.TemporaryDirectory() as folder:
            qrels, run = write_files(Path(folder), n, digits)
            check_answers(read_trec(qrels, run), *parse_both(qrels, run))
            sides = {"parse_run": lambda run=run: parse_run(run)}
            sides |= {"scan": lambda run=run: text_side(run, "score", None)}
            sides |= {"scan, 1 thread": lambda run=run: text_side(run, "score", 1)}
            both = {"parse_qrel and parse_run": lambda qrels=qrels, run=run: parse_both(qrels, run)}
            both |= {"read_trec": lambda qrels=qrels, run=run: read_trec(qrels, run)}
            both |= {"read_trec, 1 thread": lambda qrels=qrels, run=run: read_trec(qrels, run, threads=1)}
            for calls in (sides, both):
                times = take_turns(calls, **options)
                theirs, *ours = times
                for name in ours:
                    what = f"{n:,} lines of a run, scores of {digits} digits, {name}"
                    rival = f"pytrec_eval {theirs}"
                    yield beside(
                        "trec", what, rival, "s", times[name], times[theirs], clock="wall", wants="more"
                    )
    for as_text in (False, True):
        judged, scored = tables(n, as_text)
        for ties in ("docid_desc", "input"):
            call = partial(Rankings.from_qrels_run, judged, scored, ties=ties)
            time, size = take_turns({"": call}, **options)[""], len(judged) + len(scored)
            name = f"join of {size:,} rows, ids of {'text' if as_text else 'integers'}, ties={ties!r}"
            yield Row(
                "trec",
                name,
                unit="s",
                wall=time.wall,
                cpu=time.cpu,
                note=f"{size / time.wall / 1e6:.1f} M rows/s",
            )
