"""`History`: the means of many times in one file, what changed, and since when that is sure."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.files import alone_with, target_of, whole_file
from fastndcg.common.table import Table, name_of, quoted
from fastndcg.errors import ColumnError, InputError, InputTypeError, SourceError, suggest
from fastndcg.measures import as_measure
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.statistics.exact_sums import Moments
from fastndcg.statistics.intervals import check_confidence, t_interval
from fastndcg.statistics.paired import Spread

if TYPE_CHECKING:
    from fastndcg.typing import Chart

_MARK = b"fastndcg.history"
_SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "name": pa.string(),
        "measure": pa.string(),
        "by": pa.string(),  # the column of slices, null for all queries
        "slice": pa.string(),
        "queries": pa.int64(),
        "mean": pa.float64(),
        "error": pa.float64(),  # standard error of the mean
        "freedom": pa.float64(),  # its degrees of freedom
        "share": pa.float64(),  # of the (weighted) queries
    }
)
_SERIES = ("name", "measure", "by", "slice")
_SHOWN = ("at", "name", "measure", "slice", "queries")
_RANGES = 2.66  # moving ranges from the centre to the limits of a chart of individual values: 3 / 1.128


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
        scores, name
            The values, and the name of the system.
        at : datetime, date or ISO 8601 text, optional
            When the values were true: the day of the queries or of the release. Without a time zone it is
            UTC. Default: now.
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
        new = _rows_of(scores, _time_of(at), str(name), column_names(by))
        target, is_stream = target_of(self.path)
        if is_stream:
            raise SourceError(f"{self.path} is a stream, to which nothing can be added. Name a file.")
        with alone_with(target):
            old = self._read()
            known = {tuple(row[key] for key in ("at", *_SERIES)): row for row in old.to_pylist()}
            added = []
            for row in new:
                there = known.get(tuple(row[key] for key in ("at", *_SERIES)))
                if there is None:
                    added.append(row)
                    continue
                for key in ("queries", "mean", "error"):
                    if there[key] == row[key] or (math.isnan(there[key]) and math.isnan(row[key])):
                        continue
                    of = f" of {quoted(name)}" if name else ""
                    raise InputError(
                        f"{self.path} already has {row['measure']}{of} at {row['at']:%Y-%m-%d %H:%M:%S} UTC, "
                        f"{there['mean']:.6g}, not {row['mean']:.6g}. Pass another at= or name=; a history "
                        "is never changed."
                    )
            if added:
                import pyarrow.parquet as pq

                table = pa.concat_tables([old, pa.Table.from_pylist(added, _SCHEMA)])
                with whole_file(self.path) as draft:
                    pq.write_table(table.replace_schema_metadata({_MARK: b"1"}), draft)

    def _read(self) -> pa.Table:
        """All rows, in the order in which they were added."""
        import pyarrow.parquet as pq

        if not Path(self.path).exists():
            return _SCHEMA.empty_table()
        try:
            table = pq.read_table(os.fspath(self.path), partitioning=None)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{self.path} cannot be read as a history: {error}") from None
        if _MARK not in (table.schema.metadata or {}) or table.schema.names != _SCHEMA.names:
            raise SourceError(
                f"{self.path} is no history, and stays as it is. Name a new file, or one that "
                "History.add wrote."
            )
        return table.replace_schema_metadata(None).cast(_SCHEMA)

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
        measure, name : optional
            A measure or its notation, and a system. Default: all.
        by : str, optional
            The column whose slices are shown. Default: all queries.
        confidence : float
            Confidence of all intervals.
        since : datetime, date or text, optional
            Others are compared with the last run up to this time, or the end of this day. Default: the first.

        Returns
        -------
        Table
            For each series (name, measure, slice) its runs by date:

            - at, name, measure, and `slice`; queries; mean, with its interval from low to high;
            - change, the mean minus that of the reference, with its interval from change_low to change_high,
              for the run by itself; null for the reference and for what was before;
            - sure: whether it is sure that the mean changed, with this confidence over all runs to come: the
              j-th run after the reference is tested with (1 - confidence) * 6 / (pi^2 j^2), so that a series
              without a change is ever called changed with at most 1 - confidence;
            - centre, limit_low and limit_high of a control chart of individual values (centre +- 2.66 times
              the mean of moving ranges), and `outside`, whether the mean lies beyond them. Null for fewer
              than three runs.

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
        Shewhart, Economic Control of Quality of Manufactured Product, 1931.
        """
        check_confidence(confidence)
        reference = None if since is None else _time_of(since, "since")
        rows: list[dict[str, Any]] = []
        for series in self._series(measure, name, by):
            rows += numbers_of(series, confidence, reference)
        kinds = {name: _SCHEMA.field(name).type for name in _SHOWN}
        kinds |= dict.fromkeys(("mean", "low", "high", "change", "change_low", "change_high"), pa.float64())
        kinds |= {"sure": pa.bool_()}
        kinds |= dict.fromkeys(("centre", "limit_low", "limit_high"), pa.float64()) | {"outside": pa.bool_()}
        table = pa.Table.from_pylist(rows, pa.schema(kinds))
        empty = [key for key in ("name", "slice") if all(not row[key] for row in rows)]
        return Table(table.drop_columns(empty), 4 - len(empty))

    def _by_date(self) -> list[dict[str, Any]]:
        rows = sorted(self._read().to_pylist(), key=lambda row: row["at"])
        if not rows:
            absent = "" if Path(self.path).exists() else ", which does not exist,"
            raise InputError(
                f"{self.path}{absent} has no runs yet; add one with History.add or `fastndcg history add`"
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
            series.setdefault(tuple(row[key] for key in _SERIES), []).append(row)
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
        last = {tuple(row[key] for key in _SERIES): row for row in self._by_date()}
        gauges: dict[str, list[str]] = {}
        for row in last.values():
            labels = []
            for key in filter(row.get, _SERIES):
                text = row[key].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                labels.append(f'{key}="{text}"')
            low, high = t_interval(row["mean"], row["error"], row["freedom"], 0.95)
            values = {"mean": row["mean"], "mean_low": low, "mean_high": high, "queries": row["queries"]}
            for gauge, value in (values | {"time_seconds": row["at"].timestamp()}).items():
                text = repr(value) if math.isfinite(value) else "+Inf" if value > 0 else "-Inf"
                text = "NaN" if math.isnan(value) else text
                gauges.setdefault(f"fastndcg_{gauge}", []).append(f"{{{','.join(labels)}}} {text}")
        lines = []
        for gauge, samples in gauges.items():
            lines += [f"# TYPE {gauge} gauge", *(f"{gauge}{sample}" for sample in samples)]
        return "\n".join([*lines, "# EOF", ""])


def _time_of(at: datetime | date | str | None, role: str = "at") -> datetime:
    """A time in UTC; `since` a day is its end. Raises `InputError` or `InputTypeError` for what is none."""
    if at is None:
        return datetime.now(UTC)
    found: Any = at
    if isinstance(at, str):
        try:
            found = (date if len(at) <= 10 else datetime).fromisoformat(at)
        except ValueError:
            raise InputError(
                f'{role}="{at}" is not a date; expected for example {role}="2026-11-24"'
            ) from None
    elif hasattr(at, "to_pydatetime"):  # pandas
        found = at.to_pydatetime()
    elif isinstance(at, np.datetime64):
        found = at.astype("datetime64[us]").item()
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime.combine(found, time.max if role == "since" else time())
    if not isinstance(found, datetime) or found != found:  # noqa: PLR0124 - NaT alone differs from itself
        raise InputTypeError(f"{role} is a {type(at).__name__}; wanted a date, a time or text as 2026-11-24")
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        raise InputError(f'{role}="{at}" lies outside the years 1 to 9999 in UTC') from None


def _rows_of(scores: Scores, at: datetime, name: str, by: list[str]) -> list[dict[str, Any]]:
    """A row for each measure, of all queries and of each slice."""
    groups: list[tuple[str | None, str | None, Any]] = [(None, None, slice(None))]
    if by:
        check_kept(by, scores.queries.column_names)
        distinct, found = groups_of([scores.queries[column] for column in by])
        names = zip(*(map(name_of, column.to_pylist()) for column in distinct), strict=True)
        groups += [(", ".join(by), ", ".join(each), rows) for each, rows in zip(names, found, strict=True)]
        if len({each for _, each, _ in groups}) < len(groups):
            raise ColumnError(f"two slices of {', '.join(by)} have one name as text; rename one")
    rows = []
    for place, measure in enumerate(scores.measures):
        total = math.nan
        for column, of_slice, part in groups:
            values, weight = scores._values_that_count(place, part)
            moments = Moments.of(values, weight)
            error, freedom = moments.error(weighted=weight is not None)
            size = float(len(values)) if weight is None else float(np.sum(weight))
            total = size if column is None else total
            numbers = at, name, str(measure), column, of_slice, len(values)
            more = scores._mean_of(moments, place), error, freedom, size / total if total else math.nan
            rows.append(dict(zip(_SCHEMA.names, (*numbers, *more), strict=True)))
    return rows


def numbers_of(
    series: list[dict[str, Any]], confidence: float, since: datetime | None
) -> Iterator[dict[str, Any]]:
    """The rows of a table of one series."""
    base = 0 if since is None else sum(row["at"] <= since for row in series) - 1
    if base < 0:
        first = series[0]["at"]
        raise InputError(
            f"there is no run up to {since:%Y-%m-%d %H:%M} UTC; the first is at {first:%Y-%m-%d %H:%M}"
        )
    spreads = [Spread(row["queries"], row["mean"], math.nan, row["error"], row["freedom"]) for row in series]
    means = np.array([spread.mean for spread in spreads])
    centre = limit = math.nan
    if len(series) > 2:
        centre, limit = float(means.mean()), _RANGES * float(np.abs(np.diff(means)).mean())
    for place, (row, spread) in enumerate(zip(series, spreads, strict=True)):
        low, high = spread.interval(confidence)
        numbers: dict[str, Any] = {"mean": spread.mean, "low": low, "high": high, "sure": False}
        if place > base:
            change, after = spread.mean - spreads[base].mean, place - base
            found = Spread.independent(spread, spreads[base])._replace(mean=change)
            ends = found.interval(confidence)
            strict = found.interval(1 - (1 - confidence) * 6 / (math.pi * after) ** 2)
            numbers |= {"change": change, "change_low": ends.low, "change_high": ends.high}
            numbers["sure"] = strict.low > 0 or strict.high < 0
        if not math.isnan(centre):
            numbers |= {"centre": centre, "limit_low": centre - limit, "limit_high": centre + limit}
            numbers["outside"] = abs(spread.mean - centre) > limit
        yield {key: row[key] for key in _SHOWN} | numbers
