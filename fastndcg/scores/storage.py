"""Results of queries as columns and in files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
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


def write_results(
    path: str | os.PathLike[str], tables: Iterable[pa.Table], signatures: Mapping[str, Any] | None = None
) -> None:
    """Write results of queries, one table or more, in the format of the suffix. The file appears complete or
    not at all. Raises `SourceError` where it cannot be written.
    """
    with whole_file(path) as draft, ExitStack() as opened:
        writer: Any = None
        for table in tables:
            if writer is None:
                metadata = (table.schema.metadata or {}) | (metadata_of(signatures) if signatures else {})
                schema = table.schema.with_metadata(metadata or None)
                writer = opened.enter_context(closing(table_writer(draft, schema, kind_of(path))))
            writer.write_table(table)
