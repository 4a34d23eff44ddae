"""`History`: the means of many times in one file, what changed, and since when that is sure."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastndcg.common.files import target_of, whole_file
from fastndcg.common.table import Table, quoted
from fastndcg.decide.runs_by_date import KEYS, SCHEMA, SERIES, SHOWN, numbers_of, rows_of, time_of
from fastndcg.errors import Argument, InputError, InputTypeError, SourceError, suggest
from fastndcg.measures import as_measure
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import column_names
from fastndcg.statistics.intervals import check_confidence, t_interval

if TYPE_CHECKING:
    from fastndcg.typing import Chart

_MARK = b"fastndcg.history"


class History:
    """Means by date, in one Parquet file to which runs are added and from which none is taken.

    A run is added whole or not at all, also where the process is killed, and several processes may add at
    once. The file has a row for each run, measure and slice; any reader of Parquet can open it.

    Parameters
    ----------
    path : path of the file, which the first `add` makes

    Examples
    --------
    >>> import os, tempfile
    >>> from fastndcg import Rankings, evaluate
    >>> monday = evaluate(Rankings.from_lists([[1, 0], [0, 1], [1, 0], [1, 0]]), "RR")
    >>> tuesday = evaluate(Rankings.from_lists([[0, 1], [0, 1], [1, 0], [0, 1]]), "RR")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = History(os.path.join(folder, "search.parquet"))
    ...     history.add(monday, at="2026-11-23")
    ...     history.add(tuesday, at="2026-11-24")
    ...     history.table().select(["mean", "low", "high", "change", "sure"]).to_pylist()[1]
    {'mean': 0.625, 'low': 0.22..., 'high': 1.02..., 'change': -0.25, 'sure': False}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"History({str(self.path)!r})"

    def add(
        self,
        scores: Scores,
        *,
        at: datetime | date | str | None = None,
        name: str = "",
        by: str | Sequence[str] = (),
    ) -> None:
        """Add the means of a run. To add the same again changes nothing.

        Parameters
        ----------
        scores : Scores
        at : datetime, date or ISO 8601 text, optional
            When the values were true: the day of the queries or of the release. Without a time zone it is
            UTC. Default: now.
        name : str
            Name of the system.
        by : str or sequence of str
            Kept columns: the means of each of their values are added too.

        Raises
        ------
        InputError
            The run stands in the file with other numbers; a date that cannot be read.
        InputTypeError, ColumnError, SourceError
            Something else than Scores; a column that was not kept; a file that is no history, or cannot be
            written.
        """
        if not isinstance(scores, Scores):
            raise InputTypeError(
                f"scores is a {type(scores).__name__}; wanted Scores, as evaluate returns them"
            )
        if not scores.n_queries:
            raise InputError("scores has no queries, so that there is no mean to add")
        new = rows_of(scores, time_of(at), str(name), column_names(by))
        target, is_stream = target_of(self.path)
        if is_stream:
            raise SourceError(f"{self.path} is a stream, to which nothing can be added. Name a file.")
        with _alone(target.parent):
            old = self._read()
            known = {tuple(row[key] for key in KEYS): row for row in old.to_pylist()}
            added = []
            for row in new:
                there = known.get(tuple(row[key] for key in KEYS))
                if there is None:
                    added.append(row)
                elif not _same(there, row):
                    of = f" of {quoted(name)}" if name else ""
                    raise InputError(
                        f"{self.path} already has {row['measure']}{of} at {row['at']:%Y-%m-%d %H:%M:%S} UTC, "
                        f"{there['mean']:.6g}, not {row['mean']:.6g}. Pass another ",
                        Argument("at"),
                        " or ",
                        Argument("name"),
                        "; a history is never changed.",
                    )
            if added:
                import pyarrow.parquet as pq

                table = pa.concat_tables([old, pa.Table.from_pylist(added, SCHEMA)])
                with whole_file(self.path) as draft:
                    pq.write_table(table.replace_schema_metadata({_MARK: b"1"}), draft)

    def _read(self) -> pa.Table:
        """All rows, in the order in which they were added."""
        import pyarrow.parquet as pq

        if not Path(self.path).exists():
            return SCHEMA.empty_table()
        try:
            table = pq.read_table(os.fspath(self.path), partitioning=None)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{self.path} cannot be read as a history: {error}") from None
        if _MARK not in (table.schema.metadata or {}) or table.schema.names != SCHEMA.names:
            raise SourceError(
                f"{self.path} is no history, and nothing was added to it. Name a new file, or one that "
                "History.add wrote."
            )
        return table.replace_schema_metadata(None).cast(SCHEMA)

    def table(
        self,
        measure: object = None,
        *,
        name: str | None = None,
        by: str | None = None,
        confidence: float = 0.95,
        since: datetime | date | str | None = None,
    ) -> Table:
        """The means by date, with intervals, changes and limits.

        Parameters
        ----------
        measure : Measure or notation, optional
            Default: all.
        name : str, optional
            Of one system. Default: of all.
        by : str, optional
            The column whose slices are shown. Default: all queries.
        confidence : float
            Confidence of all intervals.
        since : datetime, date or text, optional
            The date that others are compared with: the last run up to it. Default: the first run.

        Returns
        -------
        Table
            For each series (name, measure, slice) its runs by date:

            - at, name, measure, and `slice`; queries; mean, with its interval from low to high;
            - change, the mean minus that of the reference, with its interval from change_low to change_high,
              for the run by itself; null for the reference and for what was before;
            - sure: whether it is sure that the mean changed, with this confidence over all runs to come: the
              j-th run after the reference is tested with (1 - confidence) * 6 / (pi^2 j^2), so that a series
              without a change is ever called changed with at most 1 - confidence. The first date of which
              this is true is the first on which the change is sure;
            - centre, limit_low and limit_high of a control chart of individual values, and `outside`, whether
              the mean lies beyond them. Null for fewer than three runs.

        Raises
        ------
        InputError
            The history has no such measure, name or slices, or no run up to `since`.

        Notes
        -----
        Runs are treated as samples of other queries. Of runs over the same queries `compare` and `drift` know
        more: there, intervals of changes are wider here than they need to be.

        References
        ----------
        Shewhart, Economic Control of Quality of Manufactured Product, 1931: centre +- 2.66 times the mean of
        moving ranges.
        """
        check_confidence(confidence)
        reference = None if since is None else time_of(since)
        rows: list[dict[str, Any]] = []
        for series in self._series(measure, name, by):
            rows += numbers_of(series, confidence, reference)
        kinds = {name: SCHEMA.field(name).type for name in SHOWN}
        kinds |= dict.fromkeys(("mean", "low", "high", "change", "change_low", "change_high"), pa.float64())
        kinds |= {"sure": pa.bool_()}
        kinds |= dict.fromkeys(("centre", "limit_low", "limit_high"), pa.float64()) | {"outside": pa.bool_()}
        table = pa.Table.from_pylist(rows, pa.schema(kinds))
        empty = [key for key in ("name", "slice") if all(not row[key] for row in rows)]
        return Table(table.drop_columns(empty), 4 - len(empty))

    def _by_date(self) -> list[dict[str, Any]]:
        rows = sorted(self._read().to_pylist(), key=lambda row: row["at"])
        if not rows:
            raise InputError(
                f"{self.path} has no runs yet; add one with History.add or `fastndcg history add`"
            )
        return rows

    def _series(self, measure: object, name: str | None, by: str | None) -> list[list[dict[str, Any]]]:
        """The rows of each series, by date."""
        rows = self._by_date()
        asked = None if measure is None else str(as_measure(measure))
        for key, wanted in (("measure", asked), ("name", name), ("by", by)):
            known = list(dict.fromkeys(row[key] for row in rows))
            if (wanted is not None or key == "by") and wanted not in known:
                listed = ", ".join(repr(each) for each in known if each is not None) or "none"
                hint = suggest(str(wanted), map(str, known))
                raise InputError(f"{self.path} has no {key} {wanted!r}; it has: {listed}.{hint}")
            if wanted is not None or key == "by":
                rows = [row for row in rows if row[key] == wanted]
        series: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            series.setdefault(tuple(row[key] for key in SERIES), []).append(row)
        return list(series.values())

    def plot(
        self,
        measure: object = None,
        *,
        name: str | None = None,
        by: str | None = None,
        confidence: float = 0.95,
        threshold: float | None = None,
    ) -> Chart:
        """Plot a measure by date. See `fastndcg.plot.over_time`. It needs the extra `plot`."""
        from fastndcg import plot

        return plot.over_time(self, measure, name=name, by=by, confidence=confidence, threshold=threshold)

    def openmetrics(self) -> str:
        """The last run of each series, as OpenMetrics text for a scraper such as Prometheus.

        Each measure is a label of the gauges `fastndcg_mean`, `fastndcg_mean_low`, `fastndcg_mean_high`,
        `fastndcg_queries` and `fastndcg_time_seconds`. Raises `InputError` if there are no runs.
        """
        last: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in self._by_date():
            last[tuple(row[key] for key in SERIES)] = row
        gauges: dict[str, list[str]] = {}
        for row in last.values():
            low, high = t_interval(row["mean"], row["error"], row["freedom"], 0.95)
            labels = ",".join(f"{key}={_label(row[key])}" for key in SERIES if row[key])
            values = {
                "mean": row["mean"], "mean_low": low, "mean_high": high, "queries": row["queries"],
                "time_seconds": row["at"].timestamp(),
            }  # fmt: skip
            for gauge, value in values.items():
                gauges.setdefault(f"fastndcg_{gauge}", []).append(f"{{{labels}}} {_metric(value)}")
        lines = []
        for gauge, samples in gauges.items():
            lines += [f"# TYPE {gauge} gauge", *(f"{gauge}{sample}" for sample in samples)]
        return "\n".join([*lines, "# EOF", ""])


def _same(there: dict[str, Any], row: dict[str, Any]) -> bool:
    pairs = ((there[key], row[key]) for key in ("queries", "mean", "error"))
    return all(one == other or (one != one and other != other) for one, other in pairs)  # noqa: PLR0124 - NaN


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold what other processes that add to a history in this folder wait for; it ends with the process."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where writers must take turns by themselves
        yield
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise SourceError(
            f"{folder} cannot be opened: {error.strerror}. Name a file in a folder that exists."
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            raise SourceError(
                f"{folder} cannot be locked, which keeps two writers apart: {error.strerror}. "
                "Name a file on another file system."
            ) from None
        yield
    finally:
        os.close(handle)


def _label(text: str) -> str:
    """The value of a label; OpenMetrics escapes quotes, backslashes and ends of lines."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _metric(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"
