"""`scan_qrels_run`: a run of any size, joined with judgments in memory a part at a time.

The order of results is that of the judgments, as where both are read whole; so parts come with the places of
their queries there, whatever their order in the run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from fastndcg.common.threads import check_threads
from fastndcg.errors import SourceError
from fastndcg.rankings.oddities import Oddities
from fastndcg.sources.columns import OF_ONE_TABLE, Roles, with_roles_of_both
from fastndcg.sources.given import IN_MEMORY
from fastndcg.sources.joins import Meeting, Parts, join_rows, with_nan
from fastndcg.sources.lines import RUN
from fastndcg.sources.opened_runs import RunFile, open_if_large, open_run
from fastndcg.sources.scan import FileStream, threads_ahead
from fastndcg.sources.streams import NotGroupedError, ReadAgainError
from fastndcg.sources.trec import (
    check_options,
    file_side,
    names_of_both,
    rankings_from_qrels_run,
    ranks_of,
    with_intents,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    import pyarrow as pa

    from fastndcg.common.arrays import Int64
    from fastndcg.common.progress import Progress
    from fastndcg.rankings.grouping import Grouped
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.opened_runs import Run
    from fastndcg.sources.sides import Side, Taken
    from fastndcg.typing import JoinKeywords, Missing, NaN, TieOrder
    from fastndcg.typing import Path as PathLike
P = TypeVar("P", bound="PathLike")


@with_roles_of_both
def scan_qrels_run(
    qrels: PathLike,
    run: PathLike,
    *,
    missing: Missing = "zero",
    ties: TieOrder = "docid_desc",
    intents: bool | str = False,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[JoinKeywords],
) -> RunStream:
    r"""Open judgments and a run of any size as a stream of `Rankings`, to evaluate it in bounded memory.

    The judgments are read whole. The run is read a part at a time, and each part joined with the judgments
    of its queries. `evaluate` returns the same bits in the same order as for `read_qrels_run`.

    Parameters
    ----------
    qrels, run, missing, ties, intents, query, doc_id, relevance, score, keep, weight, rank, ascending
    nan, unjudged, grades, progress
        As in `read_qrels_run`. A run that is one JSON object by query cannot be read in
        parts, and a pipe is read into memory.
    memory : int or str, optional
        Memory for rows of the run at a time, in bytes or as in "512 MB"; default 128 MiB. Each query must
        fit. Judgments and results need memory in addition.
    threads : int, optional
        Number of threads that decode ahead, the iterating thread among them; default: all that pyarrow has,
        up to four.

    Returns
    -------
    RunStream
        Iterating it yields `Rankings` of whole judged queries, as they come in the run; then, with
        missing="zero", those that the run lacks. A run whose queries have rows in several places is read
        twice, and its rows are regrouped in a temporary file as those of `scan_parquet`.

    Raises
    ------
    SourceError, ColumnError, InputError
        As in `read_qrels_run`; some only while iterating. Also for a run that is JSON by query, a file
        that changes, and a full disk.

    See Also
    --------
    read_qrels_run : read the run whole.
    scan_parquet : rows that have both grades and scores.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fastndcg import evaluate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     qrels, run = pathlib.Path(folder, "qrels"), pathlib.Path(folder, "run")
    ...     _ = qrels.write_text("301 0 A 1\n301 0 B 2\n302 0 A 1\n")
    ...     _ = run.write_text("301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n")
    ...     scores = evaluate(scan_qrels_run(qrels, run), "P@2")
    >>> scores["P@2"]
    array([0.5, 0. ])
    """
    named, workers = Roles.of(roles, "scan_qrels_run", OF_ONE_TABLE), threads_ahead(threads)
    check_options(missing, ties)
    opened = {run: open_run(run, with_intents(named, intents), workers)}
    options = {"memory": memory, "progress": progress}
    return _streams(qrels, opened, named, missing, ties, intents=intents, threads=threads, **options)[run]


def rankings_or_stream_of_run(
    qrels: Any, run: Any, roles: Roles, *, intents: bool = False, threads: int | None = None
) -> Rankings | RunStream:
    """What `Rankings.from_qrels_run` does; a stream if both are paths and the run is large."""
    if isinstance(qrels, str | os.PathLike) and isinstance(run, str | os.PathLike):
        for stream in scan_large_runs(qrels, [run], roles, intents=intents, threads=threads).values():
            return stream
    return rankings_from_qrels_run(qrels, run, roles, intents=intents)


def scan_large_runs(
    qrels: PathLike,
    runs: Iterable[P],
    roles: Roles,
    missing: Missing = "zero",
    *,
    intents: bool = False,
    threads: int | None = None,
    memory: int | None = None,
) -> dict[P, RunStream]:
    """Streams of the runs that take over `memory` bytes, 1 GiB by default, if they are read at once."""
    limit = IN_MEMORY if memory is None else memory
    each = {run: open_if_large(run, roles, threads_ahead(threads), limit) for run in runs}
    large = {run: opened for run, opened in each.items() if opened is not None}
    return _streams(qrels, large, roles, missing, intents=intents, threads=threads, memory=memory)


def _streams(
    qrels: PathLike,
    runs: dict[P, Run],
    roles: Roles,
    missing: Missing,
    ties: TieOrder = "docid_desc",
    *,
    intents: bool | str,
    threads: int | None,
    **options: Any,
) -> dict[P, RunStream]:
    """A stream of each run, of judgments that are read once."""
    streams = dict[P, RunStream]()
    if runs:
        of_qrels = with_intents(roles, intents)
        judged, taken = file_side(qrels, "relevance", of_qrels, check_threads(threads), intents=bool(intents))
        for name, run in runs.items():
            streams[name] = RunStream(
                judged, run, missing, ties, roles.nan, threads=threads_ahead(threads), **options
            )
            streams[name].taken = taken, run.taken
    return streams


class RunStream(FileStream):
    """The result of `scan_qrels_run`, like a `ParquetStream`; the number of rows, those of the run, is
    estimated from the first ones of a text file.
    """

    _is_in_order = False
    taken: tuple[Taken | None, Taken | None] = None, None  # columns of the judgments and of the run

    def __init__(
        self, qrels: Side, run: Run, missing: Missing, ties: TieOrder, nan: NaN, **options: Any
    ) -> None:
        super().__init__(run.opened, **options)
        self._files = None  # documents that stand twice are found by the join
        self._judged, self._run, self._parts = qrels, run, Parts(qrels)
        self._missing, self._ties, self._nan = missing, ties, nan
        self._are_scattered = False  # whether a query is known to have rows in several places
        self._begin()

    def __iter__(self) -> Iterator[Rankings]:
        self._are_scattered = not self._stands_grouped()
        for rankings, _ in self._regroup():
            yield rankings

    def _begin(self) -> None:
        """Forget what earlier readings of the run have found."""
        self._nothing_of_run = self._run.side_of(self._no_rows(), 0)
        self._meeting = Meeting(self._judged, self._nothing_of_run.name, self._missing)
        self._found = _Oddities(names_of_both(self._judged, self._nothing_of_run))
        self._codes = np.empty(0, np.int64)  # in the judgments, of the queries of the last part

    def _oddities(self) -> Oddities:
        return self._found

    def _regroup(self) -> Generator[tuple[Rankings, Int64], None, None]:
        """The rankings of judged queries, and their places in the judgments."""
        self._begin()
        is_left, n_parts = np.ones(len(self._judged.queries), np.bool_), 0
        for rankings in self._joined_parts():
            n_parts += 1
            is_left[self._codes] = False
            if len(rankings):
                yield rankings, self._codes
        if not n_parts and isinstance(self._opened, RunFile):
            raise SourceError(f"{self._opened.first} has no documents; wanted at least one: {RUN.wanted}")
        self._meeting.check_queries()
        self._meeting.check_documents()
        if self._missing == "zero" and is_left.any():
            self._codes = np.flatnonzero(is_left)
            none = np.empty(0, np.int64)
            yield self._found.add(self._join(self._nothing_of_run, none)), self._codes
        self._found.warn_of_all()

    def _joined_parts(self) -> Iterator[Rankings]:
        """The rankings of each part; `_codes` are those of the last."""
        if self._are_scattered:
            for rankings, _ in super()._regroup():
                yield rankings
            return
        try:
            yield from self._in_order()
        except NotGroupedError:
            self._are_scattered = True
            raise ReadAgainError(lambda: None) from None

    def _read(self) -> Rankings:
        rankings = self._rankings(self._opened.table(self.columns.names))
        self._found.add(rankings)
        return rankings

    def _rankings(
        self,
        table: pa.Table,
        numbers: int | Int64 = 0,
        grouped: Grouped | None = None,  # noqa: ARG002
    ) -> Rankings:
        run = with_nan(self._run.side_of(table, numbers), self._nan)
        of_queries = self._parts.codes(run)
        self._codes = self._meeting.add_queries(run, of_queries)
        return self._join(run, of_queries)

    def _join(self, run: Side, of_queries: Int64) -> Rankings:
        """Rankings of the queries with the codes of this part; `of_queries` are those of the run's."""
        qrels, new = self._parts.of(self._codes)
        rankings = join_rows(qrels, run, new[of_queries][run.codes], self._ties, self._scoring_threads)
        self._meeting.add_documents(qrels, rankings)
        self._found.ranks = ranks_of(run)
        return rankings


class _Oddities(Oddities):
    """Oddities of which a stream warns once all queries were added, those that the run lacks among them."""

    ranks: Any = None  # of the next part

    def add(self, rankings: Any, ranks: Any = None) -> Any:
        return super().add(rankings, ranks or self.ranks)

    def warn(self) -> None:
        """Wait for the queries that the run lacks."""

    def warn_of_all(self) -> None:
        super().warn()
