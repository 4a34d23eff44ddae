"""Ids of documents for the kernels of the join: hashed, taken and cut into parts for threads."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import read_only
from fastndcg.common.arrow_types import array_of, column_of
from fastndcg.common.threads import in_threads, processors
from fastndcg.kernels.compile import worlds
from fastndcg.rankings.grouping import SECRET, text_of
from fastndcg.sources.sides import is_binary, is_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastndcg.kernels.reading.ids import Ids

Array = npt.NDArray[Any]

_PART = 250_000  # rows for which another thread is worth while

_SIGN = np.uint64(1 << 63)  # moves signed keys to unsigned ones of the same order


def digest(ids: pa.Array, threads: int | None) -> Ids:
    from fastndcg.kernels.reading.ids import Ids
    from fastndcg.kernels.reading.joining import hashes_of_numbers

    if pa.types.is_integer(ids.type):
        numbers = array_of(ids)
        leading = (numbers ^ _SIGN).view(np.int64) if numbers.dtype == np.uint64 else numbers.view()
        return Ids(
            hashes_of_numbers(leading, SECRET),
            np.array(leading),
            read_only(np.empty(0, np.int64)),
            read_only(np.empty(0, np.uint8)),
        )
    offsets, data = text_of(ids)
    hashes, leading = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    each_part_of_rows(
        lambda part: worlds.run(
            "reading.joining.digest_ids",
            len(ids),
            offsets[part],
            data,
            SECRET,
            hashes[part][: len(offsets[part]) - 1],
            leading[part][: len(offsets[part]) - 1],
        ),
        len(ids),
        threads,
    )
    return Ids(hashes, leading, offsets, data)


def take(ids: pa.Array, rows: Array, threads: int | None) -> pa.Array:
    """`ids.take(rows)` of large binary or of numbers: pyarrow's takes four times as long for text."""
    if not pa.types.is_large_binary(ids.type):
        return ids.take(column_of(rows))
    offsets, data = text_of(ids)
    taken = worlds.run("reading.joining.offsets_of_taken", len(rows), offsets, rows)
    out = np.empty(taken[-1], np.uint8)
    each_part_of_rows(
        lambda part: worlds.run(
            "reading.joining.take_text",
            len(rows),
            offsets,
            data,
            rows[part][: len(taken[part]) - 1],
            taken[part],
            out,
        ),
        len(rows),
        threads,
    )
    return pa.Array.from_buffers(ids.type, len(rows), [None, pa.py_buffer(taken), pa.py_buffer(out)])


def of_kind(
    ids: pa.Array, original: pa.Array | pa.ChunkedArray, rows: Array, threads: int | None
) -> pa.Array | pa.ChunkedArray:
    """These rows of document ids, of the type they came in; `ids` are the same ones as they were joined."""
    if not is_text(original.type) or pa.types.is_binary_view(original.type):
        return original.take(column_of(rows))
    taken = take(ids, rows, threads)
    if not is_binary(original.type):
        taken = pa.Array.from_buffers(pa.large_string(), len(taken), taken.buffers())
    return taken.cast(original.type)


def each_part(kernel: Callable[[slice], Any], offsets: Array, threads: int | None) -> list[Any]:
    """Results of a kernel for parts of about equal size, in threads; `offsets[part]` are those of a part."""
    rows, n_parts = int(offsets[-1]), _parts_of(int(offsets[-1]), threads)
    wanted = [rows * part // n_parts for part in range(1, n_parts)]
    cuts = np.unique([0, *np.searchsorted(offsets, np.array(wanted, np.int64)), len(offsets) - 1])
    return _each(kernel, cuts.tolist())


def each_part_of_rows(kernel: Callable[[slice], Any], rows: int, threads: int | None) -> None:
    """As `each_part`, for parts of rows, each with the row after its last one, as their offsets have it."""
    n_parts = _parts_of(rows, threads)
    _each(kernel, [rows * part // n_parts for part in range(n_parts + 1)])


def _parts_of(rows: int, threads: int | None) -> int:
    return max(1, min(threads or processors(), rows // _PART))


def _each(kernel: Callable[[slice], Any], cuts: list[int]) -> list[Any]:
    parts = [slice(start, stop + 1) for start, stop in pairwise(cuts)]
    return in_threads(kernel, parts if len(parts) > 1 else [slice(None)])
