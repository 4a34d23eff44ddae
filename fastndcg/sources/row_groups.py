"""Columns of consecutive row groups of a Parquet file, all rows at once or a few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import is_list, is_text
from fastndcg.rankings.grouping import encode
from fastndcg.sources.opened import in_tables
from fastndcg.sources.opening import reading
from fastndcg.sources.values import first_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.footers import Footer
    from fastndcg.sources.paths import File, Stamp

# compressed bytes that pyarrow reads ahead of a column of a row group that is too large to be read at once
_BUFFER = 1 << 20


class Part(NamedTuple):
    """A file and its footer."""

    file: File
    footer: Footer
    stamp: Stamp
    groups: range  # those that are read

    def type_of(self, name: str) -> pa.DataType | None:
        """Type of a column; None for a partition key, which is as wide as its values."""
        return self.footer.schema.field(name).type if name in self.footer.schema.names else None


class Span(NamedTuple):
    """Row groups of one file that are read together."""

    part: Part
    groups: range
    rows: int


def read_steps(types: Mapping[str, pa.DataType], span: Span, names: list[str], most: int) -> Reader:
    """The named columns of a span, as these types, in tables of at most `most` rows."""
    part = span.part
    # not memory-mapped: it spared 3 to 7 %, and a file cut short meanwhile would kill the process
    with (
        reading(part.file.path),
        part.file.unchanged(part.stamp),
        part.file.filesystem.open_input_file(part.file.path) as source,
    ):
        stored = [name for name in names if part.type_of(name) is not None]
        none = pa.table([pa.nulls(span.rows)], [""])  # where folders have all columns
        tables = in_tables(_decode(types, span, source, stored, most) if stored else [none], most)
        done = 0

        def step(table: pa.Table) -> pa.Table:
            nonlocal done
            done += len(table)
            columns = {}
            for name in names:
                if name in stored:
                    column = table[name]
                else:
                    column = _partition_column(part.file.partition[name], len(table), types[name])
                columns[name] = _cast(column, types[name])
            return pa.table(columns)

        yield from map(step, tables)  # a loop would keep each table while the next one is read
        if done != span.rows:
            raise pa.ArrowInvalid(f"its columns have {done:,} rows where its footer says {span.rows:,}")


def _decode(
    types: Mapping[str, pa.DataType], span: Span, source: pa.NativeFile, names: list[str], most: int
) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    part, buffer = span.part, 0 if span.rows <= most else _BUFFER

    def open_file(encoded: Collection[str]) -> pq.ParquetFile:
        return pq.ParquetFile(
            source,
            metadata=part.footer.metadata,
            read_dictionary=encoded,
            pre_buffer=not (part.file.is_local or buffer),
            buffer_size=buffer,
            page_checksum_verification=True,  # where the writer left checksums
        )

    of_texts = {
        name for name in names
        if pa.types.is_dictionary(types[name]) and not pa.types.is_dictionary(part.type_of(name))
    }  # fmt: skip
    # of other encodings pyarrow makes no dictionary
    encoded = {name for name in of_texts if part.footer.is_coded(name)}
    file, grown = open_file(encoded), set[str]()
    if not buffer:
        yield _checked(file.read_row_groups(list(span.groups), columns=names, use_threads=False))
        return
    for group in span.groups:
        done, is_left = 0, True
        while is_left:
            read, is_left = 0, False
            for batch in file.iter_batches(most, row_groups=[group], columns=names, use_threads=False):
                rows = batch.slice(min(max(done - read, 0), len(batch)))
                read += len(batch)
                if not len(rows):
                    continue
                done, table = read, pa.Table.from_batches([rows])
                for place, name in enumerate(names):
                    if name in grown:
                        table = table.set_column(place, name, encode(table[name].chunk(0)))
                yield _checked(table)
                # pyarrow's dictionary has all ids of the group so far: one for each row took 3.3 us
                long = {name for name in encoded - grown if len(batch[name].dictionary) > len(batch)}
                if long:
                    grown |= long
                    file, is_left = open_file(encoded - grown), True
                    break


def _checked(table: pa.Table) -> pa.Table:
    """Check that texts are UTF-8 and codes in their dictionaries, which pyarrow does not."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if is_text(kind.value_type if is_list(kind) or pa.types.is_dictionary(kind) else kind):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f'column "{name}": {first_line(error)}') from None
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        return column.cast(kind.value_type).dictionary_encode()
    return column if column.type == kind else column.cast(kind)


def _partition_column(value: str | None, rows: int, kind: pa.DataType) -> pa.ChunkedArray:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    known = [] if value is None else [int(value) if pa.types.is_integer(kind) else value]
    indices = pa.nulls(rows, pa.int32()) if value is None else pa.array(np.zeros(rows, np.int32))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array(known, kind))])
