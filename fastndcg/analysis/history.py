"""`History`: values by query over time in a folder, what changed, and since when significantly."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from fastndcg.analysis.compare import find_rows, highest_grade
from fastndcg.common.arrow_types import array_of, combine
from fastndcg.common.files import whole_file
from fastndcg.common.table import Table, quoted
from fastndcg.errors import InputError, InputTypeError, SourceError, known_arguments, suggest, warn
from fastndcg.measures import as_measure
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import fields_of, metadata_of, stored_signatures
from fastndcg.statistics.exact_sums import Moments, differences_of
from fastndcg.statistics.significance import Spread, check_confidence

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64
    from fastndcg.typing import Chart

_KEY = b"fastndcg.history"  # metadata of a file: its time, name and means, as JSON
_SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "name": pa.string(),
        "measure": pa.string(),
        "queries": pa.int64(),
        **dict.fromkeys(("mean", "low", "high", "change", "change_low", "change_high"), pa.float64()),
        "paired": pa.bool_(),
        "sure": pa.bool_(),
        "differs": pa.string(),
    }
)


class _Run(NamedTuple):
    """A file of a history: the values of one system at one time."""

    path: Path
    at: datetime
    name: str
    means: dict[str, float]  # by measure
    highest: float | None  # the highest grade, if known
    signatures: dict[str, str]

    @classmethod
    def of(cls, path: Path) -> _Run:
        """Raises `SourceError` for a file that is not one of a history."""
        import pyarrow.parquet as pq

        try:
            metadata = pq.read_schema(path).metadata or {}
            facts = json.loads(metadata[_KEY])
            at = datetime.fromisoformat(facts.pop("at"))
            return cls(path, at, **facts, signatures=stored_signatures(metadata))
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
            said = (
                f"{path} is not a file of a history, or is damaged: {error}. Move it, or name another folder."
            )
            raise SourceError(said) from None

    def values(self, columns: list[str] | None = None) -> pa.Table:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            return file.read(columns)

    def sample(self, measure: str) -> _Sample:
        """The queries that enter the mean of a measure."""
        table = self.values(["query_id", "weight", measure])  # a name that a file lacks is left out
        table = table.filter(table[measure].is_valid())
        weight = array_of(table["weight"]) if "weight" in table.column_names else None
        values = array_of(table[measure])
        errors = Moments.of(values, weight).error(weighted=weight is not None)
        spread = Spread(len(values), self.means[measure], math.nan, *errors)  # as in `Scores.summary`
        return _Sample(combine(table["query_id"]), values, weight, spread)


class _Sample(NamedTuple):
    ids: pa.Array
    values: Float64
    weight: Float64 | None
    spread: Spread  # of the mean that was stored

    def rows_of(self, other: _Sample) -> Int64 | None:
        """The row of each query in `other`; None if queries or weights differ."""
        rows = np.arange(len(self.ids))
        if not self.ids.equals(other.ids):  # 100,000 equal ids: 0.1 ms, and 18 ms to look up
            every, found = find_rows({"before": other.ids, "now": self.ids})
            if not len(every) == len(other.ids) == len(self.ids):
                return None
            rows = found["now"]
        weight = None if self.weight is None else self.weight[rows]
        return rows if np.array_equal(weight, other.weight) else None  # type: ignore[arg-type]

    def paired(self, other: _Sample) -> Spread | None:
        """The spread of differences by query from `other`, where `rows_of` has rows."""
        if (rows := self.rows_of(other)) is None:
            return None
        values = self.values[rows]
        size = float(np.abs([values, other.values]).max(initial=0.0))
        return Spread.of(differences_of(values, other.values), other.weight, size=size)


class History:
    """Values by query of each time, in a folder with one Parquet file for each time and system.

    Files are added whole and never changed, so several processes may add at once. Each is in the form of
    `Scores.write_parquet`, which any reader of Parquet, `fastndcg score` and `fastndcg compare` can open.

    Parameters
    ----------
    path : path of the folder, which the first `add` creates

    Examples
    --------
    >>> import os, tempfile
    >>> from fastndcg import Rankings, evaluate
    >>> monday = evaluate(Rankings.from_lists([[1, 0], [0, 1], [1, 0], [1, 0]]), "RR")
    >>> tuesday = evaluate(Rankings.from_lists([[0, 1], [0, 1], [1, 0], [0, 1]]), "RR")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = History(os.path.join(folder, "search"))
    ...     history.add(monday, at="2026-11-23")
    ...     history.add(tuesday, at="2026-11-24")
    ...     history.table().select(["mean", "low", "high", "change", "paired", "sure"]).to_pylist()[1]
    {'mean': 0.625, 'low': 0.22..., 'high': 1.02..., 'change': -0.25, 'paired': True, 'sure': False}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"History({str(self.path)!r})"

    @known_arguments
    def add(self, scores: Scores, *, at: datetime | date | str | None = None, name: str = "") -> None:
        """Add the values of a time. Adding the same again changes nothing, so a job can be retried.

        Warns if the highest grade of the judgments differs from that of the time before, such as 2 and 4.

        Parameters
        ----------
        scores, name
            The values, and the name of the system.
        at : datetime, date or ISO 8601 text, optional
            When the values were true: the day of the queries or of the release. Without a time zone it is
            UTC. Default: now.

        Raises
        ------
        InputError
            The history has other values of this time and name; a date that cannot be read; no queries, or
            one twice.
        InputTypeError, SourceError
            Something other than Scores; a folder that cannot be written.
        """
        if not isinstance(scores, Scores):
            raise InputTypeError(
                f"scores is a {type(scores).__name__}; expected Scores, as evaluate returns them"
            )
        if not scores.n_queries:
            raise InputError("scores has no queries, so there is no mean to add")
        when, name = _time_of(at), str(name)
        table, means, highest = _table_of(scores), scores.mean(), highest_grade(scores)
        before = [run for run in self._runs() if run.at <= when and run.highest is not None]
        text = when.replace(tzinfo=None).isoformat().replace(":", "")  # Windows has no colons in names
        file = Path(self.path, f"{text}Z{'_' if name else ''}{quote(name, safe='')}.parquet")
        if file.exists():
            if repr(_Run.of(file).values().to_pydict()) == repr(table.to_pydict()):  # NaN equals NaN here
                return
            raise InputError(
                f"{quoted(str(file))} has other values, with the means {_Run.of(file).means}, not {means}. "
                "Pass another at= or name=, and all measures of a time at once; a history is never changed."
            )
        try:
            Path(self.path).mkdir(exist_ok=True)
        except OSError as error:
            raise SourceError(
                f"{self.path} cannot be created: {error.strerror}. Name a folder in one that exists."
            ) from None
        import pyarrow.parquet as pq

        facts = {"at": when.isoformat(), "name": name, "means": means, "highest": highest}
        metadata = metadata_of(scores._all_signatures()) | {_KEY: json.dumps(facts).encode()}
        with whole_file(file) as draft:
            pq.write_table(table.replace_schema_metadata(metadata), draft)
        if before and highest is not None and before[-1].highest != highest:
            warn(
                f"the highest grade is {highest:g} in the judgments of {when:%Y-%m-%d} and "
                f"{before[-1].highest:g} in those of {before[-1].at:%Y-%m-%d}: means of grades on two scales "
                "cannot be compared; judge both by the same, or map one to the other where it is read, by "
                "grades="
            )

    def _runs(self) -> list[_Run]:
        """All files, by date."""
        if Path(self.path).exists() and not Path(self.path).is_dir():
            raise SourceError(
                f"{self.path} is a file, and a history is a folder. Name a new folder, or one that "
                "History.add created."
            )
        runs = map(_Run.of, sorted(Path(self.path).glob("*.parquet")))
        return sorted(runs, key=lambda run: run.at)

    @known_arguments
    def table(self, measure: object = None, *, name: str | None = None, confidence: float = 0.95) -> Table:
        """The means by date, with intervals and changes.

        Parameters
        ----------
        measure, name : optional
            A measure or its notation, and a system. Default: all.
        confidence : float
            Confidence of all intervals.

        Returns
        -------
        Table
            For each name and measure its times by date:

            - at, name, measure; queries; mean, with its interval from low to high;
            - change, the mean minus that of the reference, with its interval from change_low to change_high,
              for this time alone; null for the reference, which is the first time;
            - paired: whether the two times have the same queries and weights, so that the interval is that of
              differences by query; otherwise they are compared as independent samples;
            - sure: whether it is sure that the mean changed, with this confidence over all times to come: the
              j-th time after the reference is tested with (1 - confidence) * 6 / (pi^2 j^2), so that a series
              without a change is ever called changed with at most 1 - confidence;
            - differs: what differs in the signature from the time before, other than its queries and the
              version: parameters, convention, or the judgments of the same queries. Such values are not
              comparable: this time is the new reference. Otherwise null.

        Raises
        ------
        InputError, SourceError
            The history has no such measure or name; a file that cannot be read.
        """
        check_confidence(confidence)
        series = self._series(measure, name).items()
        rows = [row for (_, known), runs in series for row in _rows_of(known, runs, confidence)]
        table = pa.Table.from_pylist(rows, _SCHEMA)
        is_named = any(row["name"] for row in rows)
        return Table(table if is_named else table.drop_columns("name"), 2 + is_named)

    def _series(self, measure: object, name: str | None) -> dict[tuple[str, str], list[_Run]]:
        """The files of each name and measure, by date."""
        runs = self._runs()
        if not runs:
            state = "has no values yet" if Path(self.path).exists() else "does not exist"
            raise InputError(f"{self.path} {state}. Add values with History.add or `fastndcg history add`.")
        asked = None if measure is None else str(as_measure(measure))
        measures = dict.fromkeys(known for run in runs for known in run.means)
        names = dict.fromkeys(run.name for run in runs)
        for key, wanted, known in (("measure", asked, measures), ("name", name, names)):
            if wanted is not None and wanted not in known:
                listed = ", ".join(map(repr, known))
                raise InputError(
                    f"{self.path} has no {key} {wanted!r}; it has: {listed}.{suggest(wanted, known)}"
                )
        series = {}
        for each in (each for each in measures if asked in (None, each)):
            for system in (system for system in names if name in (None, system)):
                series[system, each] = [run for run in runs if run.name == system and each in run.means]
        return {key: runs_of for key, runs_of in series.items() if runs_of}

    def plot(self, measure: object = None, *, name: str | None = None, confidence: float = 0.95) -> Chart:
        """Plot a measure by date. See `table` and `fastndcg.plot.over_time`. It needs the extra `report`."""
        from fastndcg.charts.plots import over_time

        return over_time(self.table(measure, name=name, confidence=confidence))


def _time_of(at: datetime | date | str | None) -> datetime:
    """A time in UTC. Raises `InputError` or `InputTypeError`."""
    if at is None:
        return datetime.now(UTC)
    when: Any = at
    if isinstance(at, str):
        try:
            when = (date if len(at) <= 10 else datetime).fromisoformat(at)
        except ValueError:
            raise InputError(f'at="{at}" is not a date; expected for example at="2026-11-24"') from None
    if isinstance(when, date) and not isinstance(when, datetime):
        when = datetime.combine(when, time())
    if not isinstance(when, datetime) or when != when:  # noqa: PLR0124 - NaT alone differs from itself
        raise InputTypeError(f"at is a {type(at).__name__}; expected a date, a time or text as 2026-11-24")
    try:
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except OverflowError:
        raise InputError(f'at="{at}" lies outside the years 1 to 9999 in UTC') from None


def _table_of(scores: Scores) -> pa.Table:
    """The id of each query as text, its weight if any, and its value of each measure: null where it does not
    enter the mean.
    """
    ids, _ = find_rows({"scores": scores.queries[0]})
    try:
        texts = ids.cast(pa.large_string())
    except pa.ArrowInvalid:  # bytes that are no text
        texts = pa.array(map(str, ids.to_pylist()), pa.large_string())
    columns = {"query_id": texts}
    if scores._weight is not None:
        columns["weight"] = pa.array(scores._weight)
    for row, measure in enumerate(scores.measures):
        counts = scores._counts(row)
        columns[str(measure)] = pa.array(scores.values[row], mask=None if counts is None else ~counts)
    return pa.table(columns)


def _differences(before: str, after: str, *, same_queries: bool) -> str | None:
    """Fields that differ between two signatures, except unknown ones, queries and version."""
    one, other = fields_of(before), fields_of(after)
    ignored = {"queries", "version", "judgments"}
    kinds = {each.get("judgments", "unknown").partition(":")[0] for each in (one, other)}
    if "unknown" in kinds:  # of results that were stored without signatures
        ignored |= {"convention", "unjudged_are"}
    elif same_queries and kinds == {"pool"}:  # those of returned documents change with the documents
        ignored.remove("judgments")
    texts = (
        f"{key} {one.get(key, 'none')}, now {other.get(key, 'none')}" for key in one | other
        if key not in ignored and one.get(key) != other.get(key)
    )  # fmt: skip
    return "; ".join(texts) or None


def _rows_of(measure: str, runs: list[_Run], confidence: float) -> Iterator[dict[str, Any]]:
    """The rows of one series."""
    before: tuple[_Sample, _Run] | None = None
    tests = 0
    for run in runs:
        sample = run.sample(measure)
        mean = sample.spread.mean
        row = {"at": run.at, "name": run.name, "measure": measure, "queries": sample.spread.n, "sure": False}
        row |= {"mean": mean, **sample.spread.interval(confidence)._asdict()}
        if before is not None:
            same = sample.rows_of(before[0]) is not None
            signatures = (each.signatures.get(measure, "") for each in (before[1], run))
            row["differs"] = _differences(*signatures, same_queries=same)
        if before is None or row["differs"] is not None:
            reference, tests = sample, 0
        else:
            tests += 1
            paired = sample.paired(reference)
            change = Spread.independent(sample.spread, reference.spread) if paired is None else paired
            change = change._replace(mean=float(differences_of(mean, reference.spread.mean)))
            ends = change.interval(confidence)
            strict = change.interval(1 - (1 - confidence) * 6 / (math.pi * tests) ** 2)
            row |= {"change": change.mean, "change_low": ends.low, "change_high": ends.high}
            row |= {"paired": paired is not None, "sure": strict.low > 0 or strict.high < 0}
        before = sample, run
        yield row
