"""What Spark says of files: which a DataFrame certainly has the rows of, and types of columns.

A DataFrame is recognised by its plan, each node and option of which has to be known: columns of Parquet files
as they are, and filters on partitions. Of all others Spark reads the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import IntegerType, StructField, StructType

from fastndcg.common.arrow_types import is_list, is_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fastndcg.adapters.protocol import Files

_CATALYST, _SOURCES = "org.apache.spark.sql.catalyst", "org.apache.spark.sql.execution.datasources"
_PROJECT, _FILTER = f"{_CATALYST}.plans.logical.Project", f"{_CATALYST}.plans.logical.Filter"
_RELATION = (
    f"{_SOURCES}.HadoopFsRelation",
    f"{_SOURCES}.parquet.ParquetFileFormat",
    f"{_SOURCES}.InMemoryFileIndex",
)
# options that change no value, and settings that do
_OPTIONS = {
    "path", "paths", "basepath", "mergeschema", "pathglobfilter", "recursivefilelookup", "modifiedbefore",
    "modifiedafter",
}  # fmt: skip
_SETTINGS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
_IN_FILTERS = {
    "And", "Or", "Not", "In", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan",
    "GreaterThanOrEqual", "IsNull", "IsNotNull", "AttributeReference", "Literal", "Cast",
}  # fmt: skip

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def files_of(df: DataFrame, names: Sequence[str]) -> Files | str:
    """The files of whose columns a DataFrame has all rows, and whether Spark reads types as they are."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        return _files_of(df, set(names))
    except (PySparkException, Py4JError, TypeError, AttributeError):
        return "this Spark, or Spark Connect, does not say what it reads"


def _files_of(df: DataFrame, names: set[str]) -> Files | str:
    plan = df._jdf.queryExecution().withCachedData()
    shown = {each.name(): each.exprId().id() for each in _each(plan.output())}
    filters = []
    while (kind := _class(plan)) != f"{_SOURCES}.LogicalRelation":
        if kind == _FILTER:
            filters.append(plan.condition())
        elif kind != _PROJECT or not all(map(_is_column, _each(plan.projectList()))):
            return f"it is more than columns of Parquet files ({kind.rpartition('.')[2]})"
        plan = plan.child()
    relation = plan.relation()
    if plan.isStreaming() or plan.catalogTable().isDefined() or _class(relation) != _RELATION[0]:
        return "it is a stream, or a table of a catalogue"
    location, options = relation.location(), relation.options()
    if (_class(relation.fileFormat()), _class(location)) != _RELATION[1:]:
        return f"its files are read by {_class(relation.fileFormat()).rpartition('.')[2]}, not as Parquet"
    strange = {str(name) for name in _each(options.keys().toSeq()) if str(name).lower() not in _OPTIONS}
    strange |= {name for name in _SETTINGS if str(df.sparkSession.conf.get(name, "false")).lower() != "false"}
    if strange:
        return f"it is read with {', '.join(sorted(strange))}"
    own = {each.name(): each.exprId().id() for each in _each(plan.output())}
    of_files, of_folders = (
        set(each.fieldNames()) for each in (relation.dataSchema(), relation.partitionSchema())
    )
    is_same = all(name in own and own[name] == shown.get(name) for name in names)
    if not is_same or of_files & of_folders or not all(_is_of(each, of_folders) for each in filters):
        return "its columns are renamed, or it has filters on other columns than partitions"
    paths = _paths(df, location, filters)

    if isinstance(paths, str):
        return paths
    return paths, lambda name, kind: _reads(df.schema[name], kind, name in of_folders)


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))


def _class(thing: Any) -> str:
    return str(thing.getClass().getName())


def _is_column(expression: Any) -> bool:
    return _class(expression) == f"{_CATALYST}.expressions.AttributeReference"


def _is_of(filter_: Any, folders: set[str]) -> bool:
    """Whether a filter compares partitions with values."""
    package, _, name = _class(filter_).rpartition(".")
    if package != f"{_CATALYST}.expressions" or name not in _IN_FILTERS:
        return False
    if _is_column(filter_):
        return filter_.name() in folders
    return all(_is_of(each, folders) for each in _each(filter_.children()))


def _paths(df: DataFrame, location: Any, filters: list[Any]) -> list[str] | str:
    if filters:
        as_seq = df.sparkSession._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        found = [
            str(file.getPath().toUri().toString())
            for folder in _each(location.listFiles(as_seq(filters), as_seq([])))
            for file in _each(folder.files())
        ]
    else:
        found = list(map(str, location.inputFiles()))
    others = [uri for uri in found if not uri.startswith("file:/")]
    if others:
        return f"{others[0]} is in a file system of Hadoop's, whose settings are not ours"
    return [unquote(urlsplit(uri).path) for uri in found]


def _reads(field: StructField, kind: pa.DataType, of_folder: bool) -> bool:
    """Whether Spark reads a column of this type as it is."""
    known, types = _plain(kind), pa.types
    inner = known.value_type if is_list(known) else known
    kinds = (
        types.is_integer, types.is_float32, types.is_float64, types.is_boolean, is_text, types.is_binary,
        types.is_date32, types.is_decimal128,
    )  # fmt: skip
    is_known = any(is_kind(inner) for is_kind in kinds)
    if not is_known or field.metadata:
        return False
    if of_folder and field.dataType == IntegerType() and known == pa.int64():
        return True
    wanted, found = field.dataType, from_arrow_type(inner)
    is_array = hasattr(wanted, "elementType")
    return bool(is_list(known) == is_array and (wanted.elementType if is_array else wanted) == found)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that Spark reads a type of files as."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.binary() if types.is_fixed_size_binary(kind) else _WIDER.get(kind, kind)


def schema_of(results: pa.Schema) -> StructType:
    return StructType(
        [StructField(field.name, from_arrow_type(_plain(field.type), True)) for field in results]
    )


def block_keys(blocks: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
    """Integers that Spark's `repartition(n, ...)` puts into these partitions, of any n, (n_blocks,).

    The partition is MurmurHash3 of the four bytes, with the seed 42, modulo n. Its steps are undone here.

    >>> block_keys(np.arange(3)).tolist()
    [-1693959553, -1910889132, -1382833682]
    """
    mixed = blocks.astype(np.uint32)
    mixed ^= mixed >> np.uint32(16)
    mixed = _divide(mixed, 0xC2B2AE35)
    mixed ^= (mixed >> np.uint32(13)) ^ (mixed >> np.uint32(26))
    mixed = _divide(mixed, 0x85EBCA6B)
    mixed ^= (mixed >> np.uint32(16)) ^ np.uint32(4)
    mixed = _rotate(_divide(mixed - np.uint32(0xE6546B64), 5), 32 - 13) ^ np.uint32(42)
    return _divide(_rotate(_divide(mixed, 0x1B873593), 32 - 15), 0xCC9E2D51).view(np.int32)


def _divide(products: npt.NDArray[np.uint32], factor: int) -> npt.NDArray[np.uint32]:
    return products * np.uint32(pow(factor, -1, 1 << 32))


def _rotate(values: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))
