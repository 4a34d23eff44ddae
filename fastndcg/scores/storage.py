"""Results of queries as columns and in files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from fastndcg.common.files import kind_of, table_writer, whole_file
from fastndcg.common.lazy import pa
from fastndcg.scores.signatures import metadata_of

if TYPE_CHECKING:
    from fastndcg.measures import Measure

NOTATION = b"fastndcg.measure"  # key of metadata: the notation, if a column has another name


def field_of(measure: Measure) -> pa.Field:
    """Return a measure's column, named as the user wrote it; the metadata hold the notation if it differs."""
    notation = str(measure)
    metadata = None if measure.label == notation else {NOTATION: notation}
    return pa.field(measure.label, pa.float64(), metadata=metadata)


class ResultsFile:
    """A file to which results of queries are written as they are computed, in blocks of rows."""

    def __init__(self, path: os.PathLike[str], kind: str, at_once: int) -> None:
        self._path, self._kind, self._at_once = path, kind, at_once
        self._waiting: list[pa.Table] = []
        self._metadata: dict[bytes, bytes] = {}
        self._writer: Any = None

    def write(self, results: pa.Table) -> None:
        """Write the results of the next queries."""
        self._waiting.append(results)
        if sum(map(len, self._waiting)) >= self._at_once:
            self._flush()

    def sign(self, signatures: Mapping[str, Any]) -> None:
        """Store signatures with the first results, or, in Parquet, later."""
        self._metadata = metadata_of(signatures)

    def restart(self) -> None:
        """Discard everything that was written."""
        self._waiting.clear()
        self.close()

    def close(self) -> None:
        """Write the rest, and the footer."""
        if self._waiting:
            self._flush()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            if self._metadata and self._kind == "parquet":
                writer.add_key_value_metadata(self._metadata)
            writer.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self._waiting)
        self._waiting.clear()
        if self._writer is None:
            metadata = (table.schema.metadata or {}) | self._metadata
            self._writer = table_writer(self._path, table.schema.with_metadata(metadata or None), self._kind)
            self._metadata = {}
        self._writer.write_table(table)


@contextmanager
def results_file(path: str | os.PathLike[str], at_once: int = 1 << 17) -> Iterator[ResultsFile]:
    """Open a file for results, in the format of its suffix. It appears when closed, complete, or not at all.

    Raises `SourceError` where it cannot be written.
    """
    with whole_file(path) as draft:
        results = ResultsFile(draft, kind_of(path), at_once)
        try:
            yield results
            results.close()
        finally:
            with suppress(OSError, pa.ArrowException):  # the error being raised says more
                results.restart()
