"""Streams: rankings of any size are read and evaluated a part at a time, in bounded memory.

Only the values of queries are kept. They have the same bits as in memory, since no value depends on other
queries.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrow_types import column_of, decode
from fastndcg.common.lazy import pa
from fastndcg.common.progress import Progress, Task
from fastndcg.errors import InputError
from fastndcg.kernels.compile import dispatch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from fastndcg.common.arrays import Int64
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores


class NotGroupedError(InputError):
    """The rows of a query are not contiguous."""


class RankingsStream(ABC):
    """A stream of `Rankings` made of whole queries; it can be iterated again and again.

    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> from fastndcg import scan_parquet
    >>> table = pa.table({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/predictions.parquet")
    ...     stream = scan_parquet(folder)
    ...     counts = [[rankings.n_docs for rankings in stream] for _ in range(2)]
    >>> counts
    [[3], [3]]
    """

    grouped: bool | None
    n_rows: int = 0  # about; 0 if unknown
    _scoring_threads: int = 1  # used where `evaluate` is called without `threads`
    _progress: Progress = None
    _documents: int = 0  # of the last evaluation

    _is_lists: bool = False  # whether a row holds a whole query

    @abstractmethod
    def __iter__(self) -> Iterator[Rankings]:
        """Yield all rankings, by first appearance of queries if rows are grouped, otherwise in any order."""

    @abstractmethod
    def _parts(self, *, regroup: bool = False) -> Generator[tuple[Rankings, Int64 | None], None, None]:
        """All rankings, in order, up to a query with scattered rows, for which this raises `NotGroupedError`;
        or in any order, each with the first row of each query, if the first rows are scattered already or
        all are to be grouped anew.
        """

    @abstractmethod
    def _nothing(self) -> Rankings:
        """Rankings without queries, with the columns of this stream."""

    def _count(self, count: Callable[[Rankings], npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """A number for each query, in the order of `evaluate`."""
        from fastndcg.measures import NumRet
        from fastndcg.scores.scores import Scores

        def counted(part: Rankings) -> Scores:
            return Scores([NumRet], count(part)[None], np.zeros((1, len(part)), np.bool_), part, None)

        row: npt.NDArray[np.float64] = evaluate_stream(self, counted).values[0]
        return row


class Sink(Protocol):
    """What `evaluate(..., sink=)` gives results of queries to as they are computed."""

    def write(self, results: pa.Table) -> None:
        """Write the results of the next queries."""

    def restart(self) -> None:
        """Discard everything that was written."""


def evaluate_stream(
    stream: RankingsStream, score: Callable[[Rankings], Scores], sink: Sink | None = None
) -> Scores:
    """Scores of all queries of a stream, in the order in which they first appear.

    `score` evaluates one part. `sink` receives each part's results; if rows are not grouped by query, all
    results at the end.
    """
    with Task("Reading and scoring", "rows", stream._progress):
        try:
            return _evaluate(stream, score, sink, regroup=False)
        except NotGroupedError:
            if stream.grouped:
                raise
        if sink is not None:
            sink.restart()
        return _evaluate(stream, score, sink, regroup=True)


def _evaluate(
    stream: RankingsStream, score: Callable[[Rankings], Scores], sink: Sink | None, *, regroup: bool
) -> Scores:
    from fastndcg.scores.signatures import digests_of  # here, since those who score arrays need no results

    parts: list[Scores] = []
    first_rows: list[Int64] = []
    digests, signs = digests_of(stream._nothing()), hasattr(sink, "sign")  # which take time
    stream._documents = 0
    with closing(stream._parts(regroup=regroup)) as found:
        for rankings, rows in found:
            rows_of_part = rankings.n_queries if stream._is_lists else rankings.n_docs
            with dispatch.part_of(stream.n_rows, rows_of_part):
                attached = score(rankings)
            digests = digests + attached._digests_in() if signs else digests
            scored = _detach(attached)
            del attached
            stream._documents += rankings.n_docs
            del rankings  # frees them before the next part is awaited
            if rows is not None:
                first_rows.append(rows)
            elif sink is not None:
                sink.write(scored._frame())
            parts.append(scored)
            # unjoined ids of 4.6 million queries kept the system from reclaiming twice their size
            while len(parts) > 1 and len(parts[-2].queries) <= 2 * len(parts[-1].queries):
                joined = _join(parts[-2:])
                parts[-2:] = [joined._of(joined.queries.combine_chunks())]
    scores = _join(parts) if parts else score(stream._nothing())
    if first_rows:
        order = np.argsort(np.concatenate(first_rows))
        scores = scores._of(scores.queries.take(column_of(order)), order)
    if sink is not None and (first_rows or not parts):
        sink.write(scores._frame())
    # scores know what they were computed of, or the stream that tells
    scores.__dict__.update({"_digests": digests} if signs else {"_stream": stream})
    sign(sink, scores)
    return scores


def sign(sink: Sink | None, scores: Scores) -> None:
    """Give the signatures to a place of results that takes them, once all results are written."""
    give = getattr(sink, "sign", None)
    if give is not None:
        give(scores._all_signatures())


def _detach(scores: Scores) -> Scores:
    """The same scores without references to arrays of documents, and without values that do not occur."""
    queries = scores.queries
    for place, field in enumerate(queries.schema):
        column = queries[field.name]
        if pa.types.is_dictionary(field.type) and sum(len(chunk.dictionary) for chunk in column.chunks) > len(
            column
        ):
            column = decode(column).dictionary_encode().cast(column.type)
            queries = queries.set_column(place, field, column)
    return scores._of(queries)


def _join(parts: list[Scores]) -> Scores:
    first = parts[0]
    if len(parts) == 1:
        return first
    weight = None
    if first.weight is not None:
        weight = np.concatenate([part.weight for part in parts if part.weight is not None])
    queries = pa.concat_tables([part.queries for part in parts]).unify_dictionaries()
    return first._join(parts, queries, weight)


# ---- memory ----

_MEMORY = 128 << 20
_LEAST_MEMORY = 1 << 20
_AMOUNT = r"\s*(\d+(?:\.\d*)?(?:e\+?\d+)?)\s*([kmgt]?)i?b?\s*"
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def bytes_of(memory: int | str | None) -> int:
    """A number of bytes, from a number or a text such as "2GB".

    >>> bytes_of("512 MB"), bytes_of("1.5g")
    (536870912, 1610612736)
    """
    if memory is None:
        return _MEMORY
    found = re.fullmatch(_AMOUNT, str(memory), re.IGNORECASE)
    number = float(found[1]) * (1 << _UNITS[found[2].lower()]) if found else 0.0
    if not _LEAST_MEMORY <= number < 1 << 60:
        shown = f'"{memory}"' if isinstance(memory, str) else repr(memory)
        raise InputError(
            f'memory={shown} is not an amount of memory; expected at least "1 MB", for example "512 MB"'
        )
    return int(number)
