#!/usr/bin/env python3
"""Measure how much an approximate vector search loses: score hits of Redis against graded labels.

    python scripts/vector_search.py --documents 20000 --queries 300

The script starts a Redis server (8 or newer, which has vector sets), adds the documents as floats (NOQUANT),
bytes (Q8) and bits (BIN), and searches the ten nearest documents of each query: by a graph with several
search efforts (EF), and exactly (TRUTH). It prints a row for each search: nDCG@10, R@10 (how many of the ten
nearest were found) and milliseconds per query. The first row is exact search in NumPy. The others also have
their difference in nDCG@10 to the first row, with its 95 % interval.

Vectors are generated, in clusters of many sizes. Grades follow similarity, with noise, for a hundred judged
documents of each query. The same seed generates the same vectors and grades. The server builds its graphs at
random, so the numbers of graphs vary a little. `scripts/redis_8.sh` downloads a server if there is none.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fastndcg as fn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEAREST = 10
JUDGED = 100
MEASURES = (f"nDCG@{NEAREST}", f"R@{NEAREST}")
KINDS = ("NOQUANT", "Q8", "BIN")
EXACT = "exact, NumPy"
Vectors = npt.NDArray[np.float32]


class Redis:
    """A Redis server of this script, reached through a socket in the folder."""

    def __init__(self, program: str, folder: str) -> None:
        path = str(Path(folder, "redis.sock"))
        words = [program, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.connection = socket.socket(socket.AF_UNIX)
        for _ in range(200):
            try:
                self.connection.connect(path)
                break
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(
                        f"vector_search: {program} ended at once, with exit code {self.process.returncode}"
                    )
                time.sleep(0.05)
        else:
            self.close()
            sys.exit(f"vector_search: {program} does not answer after 10 seconds")
        self.replies = self.connection.makefile("rb")

    def close(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait()

    def ask(self, commands: Sequence[Sequence[object]]) -> list[Any]:
        """Send commands, a hundred at a time, and return the replies."""
        replies: list[Any] = []
        for first in range(0, len(commands), 100):
            part = commands[first : first + 100]
            self.connection.sendall(b"".join(map(self._written, part)))
            replies += [self._reply() for _ in part]
        return replies

    @staticmethod
    def _written(command: Sequence[object]) -> bytes:
        words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def _reply(self) -> Any:
        line = self.replies.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        if kind == b"$":
            return self.replies.read(int(rest) + 2)[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        sys.exit(f"vector_search: the server says: {rest.decode() or 'nothing more'}")


class Collection(NamedTuple):
    """Unit vectors of documents and queries, and the judgments of each query."""

    documents: Vectors
    queries: Vectors
    qrels: pa.Table


def make(documents: int, queries: int, width: int, seed: int) -> Collection:
    """Draw clusters whose sizes follow Zipf's law, and queries near documents."""
    rng = np.random.default_rng(seed)
    clusters = max(documents // 100, 1)
    centres = rng.normal(size=(clusters, width))
    sizes = 1 / np.arange(1, clusters + 1)
    of_document = rng.choice(clusters, documents, p=sizes / sizes.sum())
    points = unit(centres[of_document] + rng.normal(size=(documents, width)))
    asked = unit(points[rng.integers(0, documents, queries)] + rng.normal(0, 0.05, size=(queries, width)))
    similar = asked @ points.T
    judged = min(JUDGED, documents)
    grades = np.repeat([3, 2, 1, 0], [judged // 20, judged // 10, judged // 5, judged])[:judged]
    seen = np.argsort(-(similar + rng.normal(0, 0.05, size=similar.shape)), axis=1)[:, :judged]
    return Collection(points, asked, rows_of(seen, relevance=np.tile(grades, queries)))


def unit(vectors: npt.NDArray[np.float64]) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def rows_of(documents: npt.NDArray[np.int64], **columns: Any) -> pa.Table:
    """Return a row for each document of each query, with more columns."""
    queries = np.repeat(np.arange(len(documents)), documents.shape[1])
    return pa.table({"query_id": queries, "doc_id": documents.ravel(), **columns})


def exact(collection: Collection) -> pa.Table:
    """Return the nearest documents, with their Euclidean distances."""
    square = 2 - 2 * collection.queries.astype(np.float64) @ collection.documents.T
    nearest = np.argsort(square, axis=1, kind="stable")[:, :NEAREST]
    distances = np.sqrt(np.maximum(np.take_along_axis(square, nearest, axis=1), 0))
    return rows_of(nearest, distance=distances.ravel())


def search(redis: Redis, collection: Collection, kind: str, how: Sequence[object]) -> pa.Table:
    """Return the nearest documents by the server, with their similarities."""
    replies = redis.ask(
        [
            ("VSIM", kind, "FP32", vector.tobytes(), "COUNT", NEAREST, "WITHSCORES", *how)
            for vector in collection.queries
        ]
    )
    sizes = [len(reply) // 2 for reply in replies]
    flat = [word for reply in replies for word in reply]
    return pa.table(
        {
            "query_id": np.repeat(np.arange(len(sizes)), sizes),
            "doc_id": np.array(flat[::2]).astype(np.int64),
            "score": np.array(flat[1::2]).astype(np.float64),
        }
    )


def searches(
    redis: Redis, collection: Collection, efforts: Sequence[int]
) -> Iterator[tuple[str, pa.Table, float]]:
    """Yield the result of each kind of vectors and each effort: name, hits, milliseconds per query."""
    for kind in KINDS:
        redis.ask(
            [
                ("VADD", kind, "FP32", vector.tobytes(), number, kind)
                for number, vector in enumerate(collection.documents)
            ]
        )
        for how in [*(("EF", effort) for effort in efforts), ("TRUTH",)]:
            begun = time.perf_counter()
            hits = search(redis, collection, kind, how)
            took = (time.perf_counter() - begun) / len(collection.queries)
            yield " ".join(map(str, (kind, *how))), hits, took * 1e3


def table(collection: Collection, found: dict[str, pa.Table], took: dict[str, float]) -> str:
    nearest = found[EXACT].set_column(2, "relevance", [np.ones(len(found[EXACT]), np.int8)])

    def read(qrels: pa.Table, hits: pa.Table) -> fn.Rankings:
        score = hits.column_names[-1]  # the lowest distance is best
        return fn.Rankings.from_qrels_run(qrels, hits, score=score, ascending=score == "distance")

    graded = {name: read(collection.qrels, hits) for name, hits in found.items()}
    recall = {
        name: fn.evaluate(read(nearest, hits), MEASURES[1]).mean()[MEASURES[1]]
        for name, hits in found.items()
    }
    mean = fn.evaluate(graded[EXACT], MEASURES[0]).mean()[MEASURES[0]]
    lines = [
        f"{'':14}"
        + "".join(f"{name:>10}" for name in (MEASURES[0], "more", "low", "high", MEASURES[1], "ms"))
    ]
    lines.append(f"{EXACT:14}{mean:10.4f}{'':30}{recall[EXACT]:10.4f}")
    for row in fn.compare(graded, baseline=EXACT, measures=MEASURES[0]).to_arrow().to_pylist():
        numbers = (row["mean"], row["difference"], row["low"], row["high"], recall[row["system"]])
        lines.append(
            f"{row['system']:14}"
            + "".join(f"{number:10.4f}" for number in numbers)
            + f"{took[row['system']]:10.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    options = parser().parse_args()
    if which(options.server) is None:
        sys.exit(
            f"vector_search: {options.server} is not there; "
            "scripts/redis_8.sh FOLDER makes FOLDER/redis-server"
        )
    collection = make(options.documents, options.queries, options.width, options.seed)
    print(f"{options.documents:,} documents, {options.queries:,} queries, {options.width} dimensions")
    found, took = {EXACT: exact(collection)}, {}
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        redis = Redis(options.server, folder)
        try:
            for name, hits, milliseconds in searches(redis, collection, options.effort or [10, 50, 200]):
                found[name], took[name] = hits, milliseconds
        finally:
            redis.close()
    print(table(collection, found, took))


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--documents", type=int, default=20_000)
    options.add_argument("--queries", type=int, default=300)
    options.add_argument("--width", type=int, default=96, help="dimensions of a vector")
    options.add_argument(
        "--effort", type=int, action="append", help="EF; repeatable; 10, 50 and 200 by default"
    )
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--server", default="redis-server", help="program of Redis 8 or newer")
    return options


if __name__ == "__main__":
    main()
