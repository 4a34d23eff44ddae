"""Numbers that somebody reports: a mean, values of queries, or the output of another tool."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.errors import InputError, InputTypeError, MeasureError, SourceError, check_length, count_of
from fastndcg.measures import Measure, as_measure
from fastndcg.scores.scores import Scores
from fastndcg.sources.columns import fitting
from fastndcg.sources.frames import is_table
from fastndcg.sources.given import read_columns

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.rankings.rankings import Rankings

_MEANS = ("all", "amean", "mean")  # in the place of a query's id: of trec_eval, of gdeval
_MOST_DECIMALS = 9  # numbers with more are not rounded
_NUMBER = re.compile(r"\s*[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
_FORMS = (
    "a mean, values in the order of the queries, a mapping of their ids to values, a table, Scores, or the "
    "path of a tool's output"
)


class Claimed(NamedTuple):
    """What somebody reports. `decimals` is that of rounded numbers; None: they are not rounded."""

    values: Float64 | None  # (n_queries,), NaN where a query has none
    mean: float | None
    decimals: int | None

    def joined(self, values: Float64 | None, mean: float | None) -> Float64:
        """The numbers of somebody else in the form of these: values, the mean, or both."""
        parts = [[] if self.values is None else values, [] if self.mean is None else [mean]]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])


def read_claimed(given: Any, measure: Measure, rankings: Rankings, decimals: int | None) -> Claimed:
    """Read the numbers in any form of `_FORMS`. Raises as `match_conventions` does."""
    if not rankings.n_queries:
        raise InputError(
            "rankings has no queries, so no numbers can be compared with theirs; give one or more"
        )
    if decimals is None and str(getattr(given, "dtype", "")).lower() == "float32":
        decimals = 6
    values, mean, of_all, found = None, None, None, _in_any_form(given, measure)
    if isinstance(found, str | float):
        mean = float(found)
        if not math.isfinite(mean):
            raise InputError(f"values is {mean}, which no mean can be compared with; give a finite number")
        return Claimed(None, mean, _decimals([found], 1) if decimals is None else decimals)
    if isinstance(found, Mapping):
        ids = [str(each) for each in rankings.query_ids.to_pylist()]
        of_all = next((name for name in _MEANS if name in found and name not in ids), None)
        if unknown := found.keys() - {*ids, of_all}:
            raise InputError(
                f"values has {count_of(len(unknown), 'query')} that the rankings lack, such as "
                f"{min(unknown)}; their ids are like {', '.join(ids[:3])}. Give values of the same queries"
            )
        of_all, found = found.get(of_all or ""), [found.get(each) for each in ids]
        mean = None if math.isnan(_number(of_all)) else _number(of_all)
    check_length("values", len(found), rankings.n_queries, "query")
    values = np.array([_number(each) for each in found], np.float64)
    if np.isnan(values).all():
        raise InputError("values has no number; give at least one query its value")
    known = [each for each in (*found, *([] if mean is None else [of_all])) if not math.isnan(_number(each))]
    return Claimed(values, mean, _decimals(known, 3) if decimals is None else decimals)


def _in_any_form(given: Any, measure: Measure) -> str | float | Mapping[str, Any] | list[Any]:
    """A mean, its text, values in order, or values by the id of a query as text."""
    if isinstance(given, str) and _NUMBER.fullmatch(given):
        return given.strip()
    if isinstance(given, Real) and not isinstance(given, bool | np.bool_):
        return float(given)
    if isinstance(given, Scores):
        return _unique(zip(given.queries.column(0).to_pylist(), given[measure].tolist(), strict=True))
    if isinstance(given, str | os.PathLike):
        return _from_file(os.fspath(given), measure)
    if isinstance(given, Mapping):
        lists = (hasattr(each, "__len__") and not isinstance(each, Mapping) for each in given.values())
        return _from_table(given, measure) if any(lists) else _of_ids(given, measure)
    if isinstance(given, pa.Array | pa.ChunkedArray) or hasattr(given, "to_list"):  # a series
        return list(given.to_pylist() if isinstance(given, pa.Array | pa.ChunkedArray) else given.to_list())
    if is_table(given):
        return _from_table(given, measure)
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        return list(given)
    raise InputTypeError(f"values is a {type(given).__name__}; wanted {_FORMS}")


def _of_ids(given: Mapping[Any, Any], measure: Measure) -> dict[str, Any]:
    """Values by id; of mappings of measures to values, such as pytrec_eval's, those of the measure."""
    values = (
        each[_named(list(each), measure)] if isinstance(each, Mapping) else each for each in given.values()
    )
    return _unique(zip(given, values, strict=True))


def _unique(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if str(name) in found:
            raise InputError(f"values has query {name} twice; give each query one value")
        found[str(name)] = value
    return found


def _named(names: list[str], measure: Measure) -> str:
    """The name of these that is the measure's, in any tool's spelling; or the only one."""
    found = [name for name in names if name in ("value", "values", str(measure))]
    for name in names:
        with suppress(MeasureError):
            other = as_measure(name)
            if (other.name, other.cutoff) == (measure.name, measure.cutoff):
                found.append(name)
    if len(found := list(dict.fromkeys(found)) or names) != 1:
        raise InputError(
            f"values has {', '.join(found) or 'no values'}, of which not one alone is known as {measure}; "
            "give the values of one measure"
        )
    return found[0]


def _from_table(given: Any, measure: Measure) -> dict[str, Any]:
    def find(names: list[str]) -> dict[str, str]:
        usual = fitting(names, "query") or [name for name in names if name in ("topic", "id")] or names
        rest = [name for name in names if name not in (usual[0], "runid", "run")]
        return {"query": usual[0], "value": _named(rest, measure)}

    columns = read_columns(given, find, ["value"])
    return _unique(zip(columns["query"].to_pylist(), columns["value"].to_pylist(), strict=True))


def _from_file(path: str, measure: Measure) -> Mapping[str, Any] | str:
    """Lines of trec_eval (measure, query, value), of queries and values, or a file with named columns."""
    if "://" not in path and not Path(path).exists():
        raise SourceError(f"values: there is no file {path}, and it is no number; wanted {_FORMS}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # a folder, a URI, or no text
        return _from_table(path, measure)
    if text.lstrip().startswith("{"):
        with suppress(ValueError):  # lines of JSON are a table
            return _of_ids(json.loads(text), measure)
    lines = [re.split(r"[\t,; ]+", line.strip()) for line in text.splitlines() if line.strip()]
    width = len(lines[0]) if lines else 0
    if width not in (2, 3) or (math.isnan(_number(lines[0][-1])) and lines[0][0] != "runid"):
        return _from_table(path, measure)
    if uneven := [number for number, line in enumerate(lines, 1) if len(line) != width]:
        raise SourceError(f"{path}: line {uneven[0]} does not have {width} fields, as line 1 has; mend it")
    if width == 3:
        name = _named(list(dict.fromkeys(line[0] for line in lines if line[0] != "runid")), measure)
        lines = [line[1:] for line in lines if line[0] == name]
    found = _unique((line[0], line[1]) for line in lines)
    return str(found["all"]) if list(found) == ["all"] else found


def _number(value: Any) -> float:
    """NaN for what is no number, as trec_eval prints and tables hold it."""
    try:
        number = math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _decimals(numbers: Iterable[str | float], least: int) -> int | None:
    """Decimals that numbers are rounded to, if they are fewer than `_MOST_DECIMALS`; None: not rounded.

    Numbers with fewer than `least` decimals are taken as they are, since they are shares such as 1/4.
    """
    texts = [each if isinstance(each, str) else f"{float(each)!r}".removesuffix(".0") for each in numbers]
    most = max(99 if "e" in each else len(each.partition(".")[2]) for each in texts)
    return most if least <= most <= _MOST_DECIMALS else None
