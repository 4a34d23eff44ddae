"""Decode columns of numbers and of query ids directly from the pages of a Parquet file.

pyarrow decodes an id for each row, and decodes grades through 32-bit integers. Here a run of equal ids stays
a run, and grades are unpacked into their own type, so that reading takes about half as long. Only the most
common layouts are read: flat columns without nulls, plain or dictionary-encoded, uncompressed or compressed
by Snappy. pyarrow reads all other layouts, short files and damaged files, and reports the damage.

Format: https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import read_only
from fastndcg.common.arrow_types import column_of, in_runs
from fastndcg.kernels.compile import worlds
from fastndcg.kernels.reading import decoders as kernels
from fastndcg.kernels.reading import page_headers
from fastndcg.rankings.grouping import SECRET, text_of
from fastndcg.sources import footers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fastndcg.sources.footers import Footer

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

_NUMBERS = {"INT32": np.int32, "INT64": np.int64, "FLOAT": np.float32, "DOUBLE": np.float64}
_CODECS = (page_headers.UNCOMPRESSED, page_headers.SNAPPY)  # by their numbers in Parquet
_WINDOW = 8 << 20  # bytes of a column chunk that are read at once
_PAGES = 512  # pages whose headers are parsed at once
_MOST_BYTES = np.iinfo(np.int32).max  # size of the largest page that is read, whatever a damaged footer says
_TEXTS = 1 << 16  # texts for which a new table has room
_MOST_TEXT = 256 << 20  # bytes of all distinct texts
_ROWS_OF_RUN = 16  # the first attempt to decode runs has room for runs of this mean length


class NotReadError(Exception):
    """The pages are damaged or have an unsupported layout. pyarrow has to read the file."""


class Leaf(NamedTuple):
    """A flat column of numbers or texts in a file."""

    place: int  # index among the leaves of the schema
    optional: bool  # whether the pages say which values are null
    stored: np.dtype[Any]  # dtype in the file; uint8 for texts
    dtype: np.dtype[Any]  # dtype of the decoded values; for texts, of their codes


NUMBERS, TEXTS = "reading.decoders.values_of_pages", "reading.decoders.texts_of_pages"


def way_of(leaf: Leaf) -> str:
    """The driver that decides, and whose plain way pyarrow's reader is; a unit is a value."""
    return TEXTS if leaf.stored == np.uint8 else NUMBERS


def leaves_of(footer: Footer, names: Collection[str], texts: Collection[str] = ()) -> dict[str, Leaf]:
    """The columns among `names` (numbers) and `texts` that this module can read, judging by the footer."""
    found: dict[str, Leaf] = {}
    schema = footer.metadata.schema
    places = [place for place, name in enumerate(schema.names) if name in names or name in texts]
    paths = [schema.column(place).path for place in places]
    for place in places if footer.rows else ():
        column, name = schema.column(place), schema.column(place).name
        # the name does not identify a nested column, nor one of two columns with the same name
        is_sole = paths.count(name) == 1 and column.path == name
        is_flat = not column.max_repetition_level and column.max_definition_level <= 1
        if not (is_sole and is_flat and footer.chunks[0, place, footers.CODEC] in _CODECS):
            continue
        kind, optional = footer.schema.field(name).type, bool(column.max_definition_level)
        is_float = pa.types.is_float32(kind) or pa.types.is_float64(kind)
        if column.physical_type == "BYTE_ARRAY" and name in texts:
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                found[name] = Leaf(place, optional, np.dtype(np.uint8), np.dtype(np.int32))
        elif column.physical_type in _NUMBERS and name in names and (is_float or pa.types.is_integer(kind)):
            stored, dtype = np.dtype(_NUMBERS[column.physical_type]), np.dtype(kind.to_pandas_dtype())
            if stored == dtype if is_float else stored.kind == "i" and stored.itemsize >= dtype.itemsize:
                found[name] = Leaf(place, optional, stored, dtype)
    return found


class _Pages(NamedTuple):
    """Consecutive data pages that share a dictionary."""

    data: Bytes
    headers: Array  # int64 (n, PAGE_FIELDS)
    scratch: Bytes  # room to decompress one page
    entries: Array  # the entries of the dictionary, padded
    n_entries: int  # without padding

    def cut(self, n: int) -> tuple[_Pages, _Pages]:
        return self._replace(headers=self.headers[:n]), self._replace(headers=self.headers[n:])

    def run(self, driver: str, *arguments: Any) -> Any:
        """Run a driver as if there were many rows, so that it is compiled: plain drivers are too slow."""
        name = f"reading.decoders.{driver}"
        return worlds.run(name, math.inf, self.data, self.headers, self.scratch, *arguments)


_NONE = _Pages(*(np.empty(0, np.uint8),) * 4, 0)


class _Column:
    """Reader of one column of consecutive row groups. After `NotReadError` nothing more can be read."""

    def __init__(self, source: pa.NativeFile, footer: Footer, groups: Iterable[int], leaf: Leaf) -> None:
        self._leaf, self._source, self._footer = leaf, source, footer
        self._entry_type = leaf.dtype  # of the entries of a dictionary
        self._pages = self._pages_of(groups)

    def _pages_of(self, groups: Iterable[int]) -> Iterator[_Pages]:
        """Yield the pages in order, with dictionaries, then raise `NotReadError`."""
        for group in groups:
            chunk = self._footer.chunks[group, self._leaf.place]
            entries, n_entries = np.zeros(page_headers.PADDED, self._entry_type), 0
            left = int(chunk[footers.VALUES])
            for found in self._pages_of_chunk(chunk, int(self._footer.starts(self._leaf.place)[group])):
                pages = found
                if pages.headers[0, page_headers.PAGE_KIND] == page_headers.DICTIONARY_PAGE:
                    dictionary, pages = pages.cut(1)
                    known = self._entries(dictionary)
                    n_entries = len(known)
                    entries = np.zeros(max(n_entries, page_headers.PADDED), self._entry_type)
                    entries[:n_entries] = known
                left -= int(pages.headers[:, page_headers.PAGE_VALUES].sum())
                kinds = pages.headers[:, page_headers.PAGE_KIND]
                if left < 0 or (kinds == page_headers.DICTIONARY_PAGE).any():
                    raise NotReadError
                if len(pages.headers):
                    yield pages._replace(entries=entries, n_entries=n_entries)
            if left:
                raise NotReadError
        raise NotReadError

    def _entries(self, dictionary: _Pages) -> Array:
        stored = self._leaf.stored
        n, size = dictionary.headers[0, [page_headers.PAGE_VALUES, page_headers.PAGE_BYTES]].tolist()
        if n * stored.itemsize > size:
            raise NotReadError
        entries, bits = np.empty(n, stored), f"u{stored.itemsize}"
        none = np.zeros(page_headers.PADDED, bits)
        if dictionary.run("values_of_pages", stored.itemsize, none, 0, entries.view(bits)) != n:
            raise NotReadError
        return entries

    def _pages_of_chunk(self, chunk: Array, at: int) -> Iterator[_Pages]:
        """All pages in one row group, without `entries`; the dictionary page, if any, comes first."""
        codec = int(chunk[footers.CODEC])
        if codec not in _CODECS or chunk[footers.ENCRYPTED]:
            raise NotReadError
        stop, window = at + int(chunk[footers.STORED]), _WINDOW
        limits = int(chunk[footers.VALUES]), min(int(chunk[footers.BYTES]), _MOST_BYTES)
        table, scratch = np.empty((_PAGES, page_headers.PAGE_FIELDS), np.int64), np.empty(0, np.uint8)
        while at < stop:
            self._source.seek(at)
            block = self._source.read_buffer(min(window, stop - at))
            data, done, used = read_only(np.frombuffer(block, np.uint8)), 0, 1
            while used:
                arguments = (data[done:], table, codec, self._leaf.optional, *limits)
                found, used = worlds.run("reading.decoders.find_pages", math.inf, *arguments)
                if used < 0:
                    raise NotReadError
                headers = table[:found].copy()
                _verify(data[done:], headers)
                longest = int(headers[:, page_headers.PAGE_BYTES].max(initial=0)) + page_headers.SPARE
                if len(scratch) < longest:
                    # from Arrow's pool, which reuses memory that NumPy would fault in anew
                    scratch = np.frombuffer(pa.allocate_buffer(longest), np.uint8)
                if found:
                    yield _Pages(data[done:], headers, scratch, np.empty(0), 0)
                done += used
            if not done:
                if len(block) < window:
                    raise NotReadError  # the chunk or the file ends within a page
                window *= 2
            at += done


class Values(_Column):
    """Reads any number of rows at a time."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self._next = _NONE
        self._left = np.empty(0, self._leaf.dtype)  # the rest of the last page, if not all was returned

    def read(self, rows: int) -> pa.Array:
        """Return the next rows."""
        dtype = self._leaf.dtype
        buffer = pa.allocate_buffer(rows * dtype.itemsize)
        out = np.frombuffer(buffer, dtype)
        done = 0
        while done < rows:
            if len(self._left):
                taken, self._left = np.split(self._left, [rows - done])
                out[done : done + len(taken)] = taken
                done += len(taken)
                continue
            if not len(self._next.headers):
                self._next = next(self._pages)
            ends = np.cumsum(self._next.headers[:, page_headers.PAGE_VALUES])
            whole = int(np.searchsorted(ends, rows - done, side="right"))
            if whole:
                first, self._next = self._next.cut(whole)
                self._decode(first, out[done : done + int(ends[whole - 1])])
                done += int(ends[whole - 1])
            else:
                first, self._next = self._next.cut(1)
                self._left = np.empty(int(ends[0]), dtype)
                self._decode(first, self._left)
        return pa.Array.from_buffers(pa.from_numpy_dtype(dtype), rows, [None, buffer])

    def _decode(self, pages: _Pages, out: Array) -> None:
        bits = f"u{out.itemsize}"  # as unsigned integers, since a kernel is compiled for each dtype
        arguments = self._leaf.stored.itemsize, pages.entries.view(bits), pages.n_entries, out.view(bits)
        if pages.run("values_of_pages", *arguments) != len(out):
            raise NotReadError


class Texts(Values):
    """The same as `Values`, for texts: returns dictionary arrays.

    They share a dictionary, which grows until it is longer than the rows of a call: it took as long as it is
    in each call, and more memory than what was read.
    """

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self._begin(pa.array([], pa.string()))

    def _begin(self, texts: pa.Array) -> None:
        """Begin a table with these texts, which were validated as UTF-8."""
        ends, data = text_of(texts)
        room = _TEXTS
        while room < 2 * len(texts) + 2:
            room *= 2
        self._slots, self._ends = np.zeros(2 * room, np.int64), np.zeros(room, np.int64)
        self._ends[: len(ends)] = ends
        self._store = np.empty(16 * _TEXTS + 2 * len(data), np.uint8)
        self._store[: len(data)] = data
        self._state = np.array([len(texts), 1], np.int64)
        self._texts, self._checked = texts, len(texts)  # number of texts that were validated as UTF-8

    def read(self, rows: int) -> pa.Array:
        if self._checked > max(_TEXTS, rows):
            entries, left = self._next.entries[: self._next.n_entries], self._left
            kept = np.unique(np.concatenate([entries, left]))  # in codes that are still to come
            self._begin(self._texts.take(pa.array(kept)))
            entries[:], left[:] = np.searchsorted(kept, entries), np.searchsorted(kept, left)
        codes = super().read(rows)
        n = int(self._state[kernels.FOUND])
        ends = self._ends[: n + 1].astype(np.int32)
        self._texts = pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(self._store))
        try:
            self._texts[self._checked :].validate(full=True)
        except pa.ArrowInvalid:
            raise NotReadError from None
        self._checked = n
        return pa.DictionaryArray.from_arrays(codes, self._texts)

    def _entries(self, dictionary: _Pages) -> Array:
        entries = np.empty(int(dictionary.headers[0, page_headers.PAGE_VALUES]), np.int32)
        self._decode(dictionary._replace(entries=np.zeros(page_headers.PADDED, np.int32)), entries)
        return entries

    def _decode(self, pages: _Pages, out: Array) -> None:
        while len(pages.headers):
            table = self._slots, self._ends, self._store, self._state
            done = pages.run("texts_of_pages", pages.entries, pages.n_entries, SECRET, *table, out)
            if done < 0 or len(self._store) > _MOST_TEXT:
                raise NotReadError
            first, pages = pages.cut(done)
            out = out[int(first.headers[:, page_headers.PAGE_VALUES].sum()) :]
            if len(pages.headers):
                self._grow(int(pages.headers[0, page_headers.PAGE_BYTES]))

    def _grow(self, longest: int) -> None:
        """Make room for twice as many texts, and for one of `longest` bytes."""
        n, n_texts = len(self._ends), int(self._state[kernels.FOUND])
        if 2 * (n_texts + 1) > n:
            self._slots = np.zeros(4 * n, np.int64)
            self._ends = np.append(self._ends, np.zeros(n, np.int64))
            self._state[kernels.IS_NEW] = 1
        store = np.empty(2 * len(self._store) + longest, np.uint8)
        store[: self._ends[n_texts]] = self._store[: self._ends[n_texts]]
        self._store = store


class Runs(_Column):
    """The same as `Values`, for ids: returns run-end encoded arrays. Neighbouring runs have different ids."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self._entry_type = np.dtype(np.int64)
        self._ids, self._ends = np.empty(0, np.int64), np.empty(0, np.int64)  # decoded runs, not returned yet

    def read(self, rows: int) -> pa.RunEndEncodedArray:
        """Return the next rows, at least one."""
        ids, ends = [self._ids], [self._ends]
        known = int(self._ends[-1]) if len(self._ends) else 0
        while known < rows:
            more_ids, more_ends = self._decode(next(self._pages))
            ids.append(more_ids)
            ends.append(more_ends + known)
            known = int(ends[-1][-1])
        all_ids, all_ends = np.concatenate(ids), np.concatenate(ends)
        is_last = np.append(all_ids[1:] != all_ids[:-1], True)  # a run may continue in the next part
        all_ids, all_ends = all_ids[is_last], all_ends[is_last]
        cut = int(np.searchsorted(all_ends, rows))
        rest = cut + int(all_ends[cut] == rows)
        self._ids, self._ends = all_ids[rest:], all_ends[rest:] - rows
        ends_of_runs = column_of(np.append(all_ends[:cut], rows).astype(np.int32))
        return in_runs(ends_of_runs, column_of(all_ids[: cut + 1].astype(self._leaf.dtype)))

    def _decode(self, pages: _Pages) -> tuple[Array, Array]:
        """The ids of the runs of some pages, and the end of each run."""
        rows = int(pages.headers[:, page_headers.PAGE_VALUES].sum())
        for most in (rows // _ROWS_OF_RUN + 1, rows):
            ids, ends = np.empty(most, np.int64), np.empty(most, np.int64)
            arguments = self._leaf.stored.itemsize, pages.entries, pages.n_entries, ids, ends
            found = pages.run("runs_of_pages", *arguments)
            if found >= 0:
                return ids[:found], ends[:found]
        raise NotReadError


def _verify(data: Bytes, headers: Array) -> None:
    """Raise `NotReadError` for a page that does not match its checksum."""
    has_checksum = headers[:, page_headers.PAGE_CHECKSUM] != page_headers.ABSENT
    for header in headers[has_checksum] if has_checksum.any() else ():
        start, levels = header[page_headers.PAGE_START], header[page_headers.PAGE_LEVELS]
        stored = data[start - levels : start + header[page_headers.PAGE_STORED]]
        if zlib.crc32(stored.data) != header[page_headers.PAGE_CHECKSUM] & 0xFFFFFFFF:
            raise NotReadError
