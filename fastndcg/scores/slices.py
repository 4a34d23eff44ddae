"""Groups of queries by kept columns, and their means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Float64, offsets_of
from fastndcg.common.arrow_types import array_of, decode, places_of
from fastndcg.common.lazy import pa
from fastndcg.errors import ColumnError, InputError, InputTypeError, suggest
from fastndcg.measures import Measure, NumRel, NumRet
from fastndcg.scores.summary import interval_of

if TYPE_CHECKING:
    from fastndcg.statistics.exact_sums import Moments


def columns_of_means(
    name: str, means: Sequence[float], moments: Iterable[Moments], confidence: float | None, *, weighted: bool
) -> dict[str, pa.Array]:
    """Return columns of a measure: the mean of each group, and its interval if `confidence` is set."""
    columns = {name: pa.array(means, pa.float64())}
    if confidence is not None:
        pairs = zip(means, moments, strict=True)
        ends = [interval_of(*pair, confidence, weighted=weighted) for pair in pairs]
        for end in ("low", "high"):
            columns[f"{name}_{end}"] = pa.array([each[end] for each in ends], pa.float64())
    return columns


def column_names(columns: str | Iterable[str]) -> list[str]:
    """Return the names of one or several columns, each once."""
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, Iterable):
        raise InputTypeError(f"a {type(columns).__name__} is not a column name; expected one name or several")
    return list(dict.fromkeys(columns))


def check_kept(names: Sequence[str], kept: Sequence[str], purpose: str = "") -> None:
    """Raise `ColumnError` for a column that was not kept."""
    for name in names:
        if name not in kept:
            raise ColumnError(
                f'there is no column "{name}"{purpose}; available columns: {", ".join(kept)}. '
                f"Name it in keep= where the rankings are read.{suggest(str(name), kept)}"
            )


def check_free(names: Iterable[str], taken: Iterable[str]) -> None:
    """Raise `ColumnError` for a column whose name the result uses itself."""
    for name in sorted({*names} & {*taken}):
        raise ColumnError(f'the column "{name}" has the name of a column of the result; rename it')


def groups_of(columns: Sequence[pa.ChunkedArray]) -> tuple[list[pa.Array], list[npt.NDArray[np.int64]]]:
    """Return distinct combinations of values and the rows of each, in the order of `numbered_groups`.

    >>> groups_of([pa.chunked_array([["b", None], ["a", "b"]])])[1]
    [array([2]), array([0, 3]), array([1])]
    """
    distinct, codes, n = numbered_groups(columns, len(columns[0]))
    order = np.argsort(codes, kind="stable")
    return distinct, np.split(order, np.cumsum(np.bincount(codes, minlength=n))[:-1]) if n else []


def numbered_groups(
    columns: Sequence[pa.ChunkedArray], n: int
) -> tuple[list[pa.Array], npt.NDArray[np.int64], int]:
    """Return distinct combinations of values, the number of each row's combination, (n,), and how many there
    are; without columns all rows are one group.

    They ascend column by column: numbers, dates and times by value, texts by their code points; NaN and then
    null come last.
    """
    codes, plain = np.zeros(n, np.int64), []
    for each in columns:
        plain.append(pa.chunked_array(decode(each)).combine_chunks())
        try:
            encoded = plain[-1].dictionary_encode(null_encoding="encode")
        except pa.ArrowNotImplementedError:
            said = f"queries cannot be grouped by a column of type {plain[-1].type}; choose another column"
            raise ColumnError(said) from None
        places = places_of(encoded.dictionary)
        codes = codes * len(places) + places[array_of(encoded.indices)]
        codes = np.unique(codes, return_inverse=True)[1]  # keeps codes small for any number of columns
    if not columns:
        return [], codes, 1
    first = np.unique(codes, return_index=True)[1]
    return [column.take(pa.array(first)) for column in plain], codes, len(first)


OWN = "weight"
COUNTS = {"n_docs": "NumRet", "n_relevant": "NumRel"}
"""Words for weights, and the measure whose values they are."""


def weights_by(scores: Any, weights: str | None) -> Float64 | None:
    """Return a weight for each query, (n_queries,). Raises `InputError` or `ColumnError` if unknown."""
    if weights is None or weights == OWN:
        weight: Float64 | None = scores.weight
        return weight if weights else None
    if weights not in COUNTS or weights in scores.queries.column_names:
        return _column(scores, weights)
    measure: Measure = NumRet
    if weights == "n_relevant":
        levels = {each.params.get("rel") or 1.0 for each in scores.measures if each.name != "NumRel"} or {1.0}
        if len(levels) > 1:
            shown = ", ".join(f"rel={rel:g}" for rel in sorted(levels))
            raise InputError(
                f"weights='n_relevant' is not a single number per query: the measures have {shown}; "
                "evaluate the measures of each rel separately"
            )
        measure = NumRel(rel=float(levels.pop()))
    if measure in scores.measures:
        values: Float64 = scores[measure]
        return values
    return _count(scores, weights, measure)


def _count(scores: Any, weights: str, measure: Measure) -> Float64:
    def count(rankings: Any) -> Float64:
        offsets = rankings.offsets
        if weights == "n_relevant":
            flags = rankings.relevance >= measure.rel
            if rankings.judged is not None:
                offsets, flags = rankings.judged.offsets, rankings.judged.relevance >= measure.rel
            elif rankings.is_judged is not None:
                flags = flags & rankings.is_judged
            offsets = offsets_of(flags, offsets)
        return np.asarray(np.diff(offsets), np.float64)

    source = scores._source
    rankings, rows = getattr(source, "rankings", source), getattr(source, "rows", slice(None))
    if hasattr(rankings, "offsets"):
        return count(rankings)[rows]
    # reads a stream again
    counts: Float64 | None = None if scores._stream is None else scores._stream._count(count)
    if counts is None or len(counts) != scores.n_queries:
        raise InputError(
            f"weights={weights!r} are not known of these scores, which do not hold their documents; "
            f'evaluate {measure} too, as in measures=[..., "{measure}"]'
        )
    return counts


def _column(scores: Any, name: str) -> Float64:
    kept = scores.queries.column_names
    if name not in kept:
        known = [*COUNTS, *kept]
        raise ColumnError(
            f"weights={name!r} is not a column of the queries, which have: {', '.join(kept)}; "
            "expected one of these, 'n_relevant', 'n_docs' or None. keep= keeps a column of the data."
            f"{suggest(str(name), known)}"
        )
    column = scores.queries[name]
    try:
        values: Float64 = array_of(column.cast("float64"))
    except pa.ArrowException:
        said = f'column "{name}" is {column.type}; expected numeric weights'
        raise InputError(said) from None
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if column.null_count or len(bad):
        row = column.is_null().index(True).as_py() if column.null_count else int(bad[0])
        raise InputError(
            f'column "{name}" holds {column[row].as_py()} for query {scores.queries[0][row].as_py()!r}; '
            "weights are finite numbers from 0"
        )
    return values
