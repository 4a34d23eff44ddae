"""The runs of a history: the numbers of one, and what a series of them says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.table import name_of
from fastndcg.errors import Argument, ColumnError, InputError, InputTypeError
from fastndcg.scores.slices import check_kept, groups_of
from fastndcg.statistics.exact_sums import Moments
from fastndcg.statistics.intervals import t_interval

if TYPE_CHECKING:
    from fastndcg.scores.scores import Scores

SCHEMA = pa.schema(
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
SERIES = ("name", "measure", "by", "slice")
KEYS = ("at", *SERIES)
SHOWN = ("at", "name", "measure", "slice", "queries")
_RANGES = 2.66  # moving ranges from the centre to the limits of a chart of individual values: 3 / 1.128


def time_of(at: datetime | date | str | None) -> datetime:
    """A time in UTC. Raises `InputError` or `InputTypeError` for what is none."""
    if at is None:
        return datetime.now(UTC)
    found: Any = at
    if isinstance(at, str):
        try:
            found = datetime.fromisoformat(at)
        except ValueError:
            raise InputError(
                Argument("at", at), " is no date; wanted one as in ", Argument("at", "2026-11-24"), "."
            ) from None
    elif hasattr(at, "to_pydatetime"):  # pandas
        found = at.to_pydatetime()
    elif isinstance(at, date) and not isinstance(at, datetime):
        found = datetime.combine(at, time())
    if not isinstance(found, datetime) or found != found:  # noqa: PLR0124 - NaT alone differs from itself
        raise InputTypeError(f"at is a {type(at).__name__}; wanted a date, a datetime or text as 2026-11-24")
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        raise InputError(Argument("at", str(at)), " lies outside of the years 1 to 9999 in UTC") from None


def rows_of(scores: Scores, at: datetime, name: str, by: list[str]) -> list[dict[str, Any]]:
    """A row for each measure, of all queries and of each slice."""
    groups: list[tuple[str | None, str | None, Any]] = [(None, None, None)]
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
            values, weight = scores._values_that_count(place, slice(None) if part is None else part)
            moments = Moments.of(values, weight)
            error, freedom = moments.error(weighted=weight is not None)
            size = float(len(values)) if weight is None else float(np.sum(weight))
            total = size if part is None else total
            numbers = at, name, str(measure), column, of_slice, len(values)
            more = scores._mean_of(moments, place), error, freedom, size / total if total else math.nan
            rows.append(dict(zip(SCHEMA.names, (*numbers, *more), strict=True)))
    return rows


def numbers_of(
    series: list[dict[str, Any]], confidence: float, since: datetime | None
) -> Iterator[dict[str, Any]]:
    """The rows of a table of one series."""
    base = 0
    if since is not None:
        base = sum(row["at"] <= since for row in series) - 1
        if base < 0:
            first = series[0]["at"]
            raise InputError(
                f"there is no run up to {since:%Y-%m-%d %H:%M} UTC; the first is at {first:%Y-%m-%d %H:%M}"
            )
    reference = series[base]
    means = np.array([row["mean"] for row in series])
    centre = limit = math.nan
    if len(series) > 2:
        centre, limit = float(means.mean()), _RANGES * float(np.abs(np.diff(means)).mean())
    for place, row in enumerate(series):
        low, high = t_interval(row["mean"], row["error"], row["freedom"], confidence)
        numbers: dict[str, Any] = {"mean": row["mean"], "low": low, "high": high, "sure": False}
        if place > base:
            change, after = row["mean"] - reference["mean"], place - base
            error, freedom = _of_both(reference, row)
            ends = t_interval(change, error, freedom, confidence)
            strict = t_interval(change, error, freedom, 1 - (1 - confidence) * 6 / (math.pi * after) ** 2)
            numbers |= {"change": change, "change_low": ends.low, "change_high": ends.high}
            numbers["sure"] = strict.low > 0 or strict.high < 0
        if not math.isnan(centre):
            numbers |= {"centre": centre, "limit_low": centre - limit, "limit_high": centre + limit}
            numbers["outside"] = abs(row["mean"] - centre) > limit
        yield {key: row[key] for key in SHOWN} | numbers


def _of_both(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """Standard error of a difference of independent means, and Welch's degrees of freedom."""
    squares = [row["error"] ** 2 for row in (one, other)]
    least = min(one["freedom"], other["freedom"])
    if not sum(squares) > 0 or not least > 0:
        return math.sqrt(sum(squares)), least
    below = squares[0] ** 2 / one["freedom"] + squares[1] ** 2 / other["freedom"]
    return math.sqrt(sum(squares)), sum(squares) ** 2 / below
