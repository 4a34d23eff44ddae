"""Groups of queries by kept columns, and their means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrow_types import array_of, decode, places_of
from fastndcg.common.later import pa
from fastndcg.errors import Argument, ColumnError, InputTypeError, suggest
from fastndcg.scores.summary import interval_of

if TYPE_CHECKING:
    from fastndcg.statistics.exact_sums import Moments


def columns_of_means(
    name: str, means: Sequence[float], moments: Iterable[Moments], confidence: float | None, *, weighted: bool
) -> dict[str, pa.Array]:
    """The mean of each group, and with a confidence its ends, as columns of a measure."""
    columns = {name: pa.array(means, pa.float64())}
    if confidence is not None:
        pairs = zip(means, moments, strict=True)
        ends = [interval_of(*pair, confidence, weighted=weighted) for pair in pairs]
        columns |= {
            f"{name}_{end}": pa.array([each[end] for each in ends], pa.float64()) for end in ("low", "high")
        }
    return columns


def column_names(columns: str | Iterable[str]) -> list[str]:
    """Names of one or several columns, each once."""
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, Iterable):
        raise InputTypeError(f"a {type(columns).__name__} names no column; wanted one name, or several")
    return list(dict.fromkeys(columns))


def check_kept(names: Sequence[str], kept: Sequence[str], purpose: str = "") -> None:
    """Raise `ColumnError` for a column that was not kept."""
    for name in names:
        if name not in kept:
            raise ColumnError(
                f'there is no column "{name}"{purpose}; kept were: {", ".join(kept)}. Name it in ',
                Argument("keep"),
                f".{suggest(str(name), kept)}",
            )


def groups_of(columns: Sequence[pa.ChunkedArray]) -> tuple[list[pa.Array], list[npt.NDArray[np.int64]]]:
    """Distinct combinations of values: their columns, and the rows of each.

    They ascend column by column: numbers, dates and times by value, texts by their code points; NaN and then
    null come last.

    >>> groups_of([pa.chunked_array([["b", None], ["a", "b"]])])[1]
    [array([2]), array([0, 3]), array([1])]
    """
    codes, plain = np.zeros(len(columns[0]), np.int64), []
    for given in columns:
        plain.append(pa.chunked_array(decode(given)).combine_chunks())
        try:
            found = plain[-1].dictionary_encode(null_encoding="encode")
        except pa.ArrowNotImplementedError:
            kind = plain[-1].type
            raise ColumnError(
                f"queries cannot be grouped by values of type {kind}; name a column of others"
            ) from None
        places = places_of(found.dictionary)
        codes = codes * len(places) + places[array_of(found.indices)]
        codes = np.unique(codes, return_inverse=True)[1]  # keeps codes small for any number of columns
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(codes) else []
    first = pa.array([int(rows[0]) for rows in groups], pa.int64())
    return [column.take(first) for column in plain], groups


class SomeQueries(NamedTuple):
    """The source of scores of some of the queries of rankings."""

    queries: pa.Table
    rankings: Any
    rows: npt.NDArray[np.bool_]  # whether a query of the rankings is among them
