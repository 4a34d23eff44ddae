"""What `check_judgments` is given: judgments with texts and slices, runs by their names, ids of a corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastndcg.common.arrays import arrow_column
from fastndcg.common.arrow_types import plain, whole_ids
from fastndcg.errors import InputError, InputTypeError, SourceError
from fastndcg.sources.columns import Roles, find_column, normalised
from fastndcg.sources.formats import NESTED, TABLE, TREC, format_of_name
from fastndcg.sources.frames import is_table
from fastndcg.sources.given import open_tables, read_columns
from fastndcg.sources.opening import path_of
from fastndcg.sources.sides import plain_ids
from fastndcg.sources.text_sides import format_of_side
from fastndcg.sources.trec import given_side, has_columns

if TYPE_CHECKING:
    from fastndcg.sources.sides import Side

_CORPUS_IDS = ("id", "docid", "docno", "corpusid")


def named_runs(run: Any) -> dict[Any, Any]:
    """Runs by their names; None is the name of a run alone."""
    if isinstance(run, Mapping):
        if not run:
            raise InputError("run is an empty dict; wanted a run, or a mapping of names to runs")
        if not has_columns(run) and all(_is_run(each) for each in run.values()):
            return dict(run)
    return {None: run}


def _is_run(value: Any) -> bool:
    """Whether a value of a dict is a run, and not the documents of a query."""
    if isinstance(value, Mapping):
        return has_columns(value) or any(isinstance(each, Mapping | list | tuple) for each in value.values())
    return isinstance(value, str | os.PathLike) or _has_columns(value)


def _has_columns(data: Any) -> bool:
    """Whether this is a table, and no column of one; or ranx's `Run`."""
    if is_table(data):
        return any(hasattr(data, name) for name in ("columns", "column_names", "schema"))
    return hasattr(data, "to_dict") and not hasattr(data, "dtype")


def judgments_of(qrels: Any, roles: Roles, by: list[str], text: str | None) -> tuple[Side, str | None]:
    """The judgments with columns of slices and texts, and the column of texts."""
    roles = roles.keeping([*by, *([] if text is None else [text])])
    if text is None:
        found = [name for name in _columns_of(qrels) if normalised(str(name)) == "querytext"]
        if len(found) == 1:
            text, roles = found[0], roles.keeping(found)
    return given_side("qrels", qrels, "relevance", roles), text


def _columns_of(data: Any) -> list[Any]:
    """The names of columns of a table, or of a file that its name says to be one."""
    if isinstance(data, str | os.PathLike):
        kind = format_of_side(path_of(data, "qrels"), has_rank=False)
        return (
            []
            if kind in (TREC, NESTED)
            else list(open_tables([data], None, None if kind is TABLE else kind).names)
        )
    if isinstance(data, Mapping):
        return list(data) if has_columns(data) else []
    if hasattr(data, "collect_schema"):  # of Polars, whose lazy frames warn of `columns`
        return list(data.collect_schema().names())
    names = getattr(data, "column_names", getattr(data, "columns", []))
    return list(names) if hasattr(names, "__iter__") else []


def ids_of_corpus(corpus: Any) -> pa.Array:
    if isinstance(corpus, str | os.PathLike) and format_of_name(corpus) is None:
        try:
            lines = Path(corpus).read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise SourceError(
                f"corpus: {corpus} cannot be read: {reason}; give a table, or an id a line"
            ) from None
        return pa.array([line.strip() for line in lines if line.strip()], pa.large_string())
    if isinstance(corpus, str | os.PathLike) or _has_columns(corpus) or _is_dict_of_columns(corpus):
        return plain_ids(read_columns(corpus, _find_ids, ())["doc_id"])
    ids = sorted(corpus) if isinstance(corpus, set | frozenset) else corpus
    ids = list(ids) if isinstance(ids, Mapping) else ids
    found = whole_ids(plain(arrow_column("corpus", ids)))
    if pa.types.is_floating(found.type) or pa.types.is_nested(found.type):
        raise InputTypeError(f"corpus holds {found.type}; wanted ids that are texts or whole numbers")
    return plain_ids(found)


def _is_dict_of_columns(corpus: Any) -> bool:
    """Whether a dict has columns of ids, and not an entry for each document."""
    return (
        isinstance(corpus, Mapping)
        and any(normalised(str(name)) in _CORPUS_IDS for name in list(corpus)[:9])
        and not any(isinstance(each, str | Mapping) for each in corpus.values())
    )


def _find_ids(names: list[str]) -> dict[str, str]:
    own = [name for name in names if normalised(str(name)) in _CORPUS_IDS]
    return {"doc_id": own[0] if len(own) == 1 else find_column(names, "doc_id")}
