"""Read results that `Scores.write_parquet` or `fastndcg score --out` stored, as `Scores`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import array_of, decode
from fastndcg.errors import InputError, MeasureError, count_of, suggest
from fastndcg.measures import Measure, parse
from fastndcg.scores.scores import NOTATION, Scores
from fastndcg.scores.signatures import fields_of, stored_signatures
from fastndcg.sources.dataset import Dataset, TextTypes
from fastndcg.tables.roles import fitting
from fastndcg.tables.values import integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastndcg.tables.roles import Roles


class Stored(NamedTuple):
    """Files of results, and their measures."""

    path: str
    measures: list[Measure]
    read: Callable[[], pa.Table]
    signatures: dict[str, Any]  # by measure, or by run and measure; empty if unknown


def find_stored(dataset: Dataset, roles: Roles) -> Stored | None:
    """Return the files as results if the last columns of the first file are measures, otherwise None.

    A file with a column of grades and one of scores, by given or usual names, holds predictions.
    """
    measures = _measures_of(dataset.schema, roles, in_text=dataset.format.in_text)
    if not measures:
        return None
    signatures = stored_signatures(dataset.schema.metadata) if len(dataset.paths) == 1 else {}
    return Stored(str(dataset.paths[0]), measures, partial(_read, dataset, len(measures)), signatures)


def _measures_of(schema: pa.Schema, roles: Roles, *, in_text: bool = False) -> list[Measure]:
    """Return the measures of the last columns. Text does not store their original notation."""
    named = {"relevance": roles.relevance, "score": roles.score}
    if all(name in schema.names or fitting(schema.names, role) for role, name in named.items()):
        return []
    measures: list[Measure] = []
    for field in reversed(list(schema)[1:]):  # the first is the id
        is_number = pa.types.is_float64(field.type) or (in_text and field.type in (pa.null(), pa.int64()))
        try:
            measure = parse(field.name) if is_number else None
        except MeasureError:
            break
        notation = (field.metadata or {}).get(NOTATION, field.name.encode()).decode()
        if measure is None or not (str(measure) == notation or in_text):
            break
        measures.insert(0, measure)
    return measures


def read_results(stored: Stored, wanted: list[Measure]) -> dict[str | None, Scores]:
    """Return the scores of the wanted measures by run; the only key is None if results have no runs."""
    path, names = stored.path, [str(measure) for measure in stored.measures]
    for measure in wanted:
        if measure not in stored.measures:
            raise MeasureError(
                f"{measure} is not among the results in {path}; these are: "
                f"{', '.join(names)}.{suggest(str(measure), names)}"
            )
    table = stored.read()
    if not len(table):
        raise InputError(
            f"{path} has no rows, so there is nothing to compare. Give results of at least one query."
        )
    is_several = table.column_names[0] == "run" and table.column_names[1] not in names
    ids = table.column_names[is_several]
    if table[ids].null_count:
        raise InputError(
            f'column "{ids}" of {path} has {count_of(table[ids].null_count, "null")}; give each query its id'
        )
    results: dict[str | None, Scores] = {}
    runs = dict.fromkeys(table["run"].to_pylist()) if is_several else {None: None}
    for run in runs:
        part = table.filter(pc.equal(table["run"], run)).drop_columns("run") if is_several else table
        scores = results[run] = _scores_of(path, part, names, wanted)
        scores.__dict__["_signatures"] = _still_true(
            scores, stored.signatures.get(run or "", stored.signatures)
        )
    return results


def _still_true(scores: Scores, signatures: Any) -> dict[str, str]:
    """Return the signatures that are valid for these queries, in case rows were removed from the table."""
    queries = scores._digests.of_queries() if signatures else ""
    texts = signatures.items() if isinstance(signatures, dict) else ()
    return {
        measure: line for measure, line in texts
        if isinstance(line, str) and fields_of(line).get("queries") == queries
    }  # fmt: skip


# ---- files ----


def _read(dataset: Dataset, n_measures: int) -> pa.Table:
    """Read all columns: measures as numbers with NaN for empty, ids as written, others as inferred."""
    names = dataset.names
    numbers = [*names[-n_measures:], *(["weight"] if "weight" in names else [])]
    ids = names[: 1 + (names[0] == "run" and len(names) > n_measures + 1)]
    table = replace(dataset, text=TextTypes(numbers, ids)).table(names)
    for place, name in enumerate(names):
        column = table[name]
        if dataset.format.in_text and name in ids:
            column = integers_if_written_so(column)
        elif not pa.types.is_dictionary(dataset.type_of(name)):
            column = decode(column)
        if dataset.format.in_text and name in numbers:
            column = pc.fill_null(column.cast(pa.float64()), math.nan)
        table = table.set_column(place, name, column)
    return table


def _scores_of(path: str, table: pa.Table, names: list[str], wanted: list[Measure]) -> Scores:
    labels = dict(zip(names, table.column_names[-len(names) :], strict=True))
    queries = table.drop_columns(list(labels.values()))
    if pc.count_distinct(queries[0]).as_py() < len(queries):
        raise InputError(
            f"{path} has no column of grades and scores with a usual name, and does not hold stored results, "
            f'because "{queries.column_names[0]}" repeats. Name the columns of predictions, '
            "as in --relevance and --score, or give each query one row."
        )
    values = np.array([array_of(table[labels[str(measure)]]) for measure in wanted], np.float64)
    weight = None
    if queries.column_names[-1] == "weight" and len(queries.column_names) > 1:
        try:
            weight = array_of(queries["weight"].cast(pa.float64()))
        except pa.ArrowException:
            weight = np.full(1, np.nan)
        if not (np.isfinite(weight) & (weight >= 0)).all():
            raise InputError(f'column "weight" of {path} holds values other than finite numbers from 0')
    return Scores(wanted, values, np.isnan(values), queries, weight)
