"""Ray Data: scores of Datasets of any size, with the values of `fastndcg.evaluate` bit for bit.

    from fastndcg.adapters import ray as fnr

    scores = fnr.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    with fnr.plain_errors():
        scores.write_parquet("scores")
    print(fnr.means(scores, ["nDCG@10"], by="country"))

fastndcg must be installed where Ray runs its workers.

    rows -> repartition by query -> blocks of whole queries -> the serial kernel

Each block must fit into memory, as everywhere in Ray Data, and so must each query. Ray turns NaN in pandas
DataFrames into null, which is refused like NaN; in Arrow and Parquet NaN stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
from ray.exceptions import RayError

from fastndcg.adapters import grouped as together
from fastndcg.adapters import parts
from fastndcg.common.arrow_types import is_list

if TYPE_CHECKING:
    from ray.data import Dataset

    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary


@parts.of_engine
def evaluate(dataset: Dataset, measures: Measures, **options: Unpack[parts.Keywords]) -> Dataset:
    """Compute the value of each measure for each query, as a lazy Dataset with a row for each query.

    Errors of the data are raised when the result is computed: `plain_errors` shows them without Ray's traces.

    Parameters
    ----------
    dataset : ray.data.Dataset
        A row for each document, in any order, or a row for each query with lists. If Ray does not know the
        columns yet, the first row is computed.
    {parameters}

    Returns
    -------
    ray.data.Dataset
        The query id and kept columns under their own names and in their own types, the weight if there is
        one, and a float64 column for each measure under its notation. The order of rows is not defined.
        Without rows there are no columns.

    {raises}

    Examples
    --------
        rows = ray.data.read_parquet("predictions.parquet")
        evaluate(rows, "nDCG@10", keep="country").write_parquet("scores")
    """
    task, rows, blocks = _rows(dataset, measures, parts.Options.of(options, "evaluate"))
    if blocks is not None:
        pieces = _pieces(task, rows, blocks, None)
        return _of_each_block(pieces, lambda table: together.whole(task, table))
    return _of_each_block(rows, lambda table: parts.results(task, table))


@parts.of_engine
def summary(
    dataset: Dataset,
    measures: Measures,
    *,
    quartiles: bool = False,
    confidence: float | None = None,
    **options: Unpack[parts.Keywords],
) -> Summary:
    """{summary}

    Examples
    --------
        print(summary(ray.data.read_parquet("predictions.parquet"), ["nDCG@10", "RR"]))
    """
    task, rows, blocks = _rows(dataset, measures, parts.options_of_summary(options, confidence))
    if blocks is not None:
        pieces = _pieces(task, rows, blocks, quartiles)
        found = _collect(pieces, lambda table: together.whole_sums(task, table, values=quartiles))
    else:
        found = _collect(rows, lambda table: parts.add_up(task, [table], values=quartiles))
    return parts.summary_of(task, found, values=quartiles, confidence=confidence)


@parts.of_engine
def means(
    scores: Dataset,
    measures: Measures,
    *,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    confidence: float | None = None,
) -> pa.Table:
    """{means}

    Examples
    --------
        print(means(ray.data.read_parquet("scores"), "nDCG@10", by="country"))
    """
    _check_dataset("scores", scores)
    with plain_errors():
        schema = _schema(scores)
    asked = parts.check_means(schema.names, measures, by=by, weight=weight, confidence=confidence)
    found = _collect(scores.select_columns(asked.names), lambda table: parts.sums_by(asked, table))
    return parts.means_of(asked, [schema.field(name).type for name in asked.by], found)


def plain_errors() -> AbstractContextManager[None]:
    """Re-raise errors of fastndcg from Ray's tasks as they are, in one line, without the traces of Ray.

        with plain_errors():
            scores.write_parquet("scores")

    Other errors pass unchanged. Ray's own error is the `__context__` of the one that is raised.
    """
    return parts.plain_errors(lambda error: isinstance(error, RayError))


# ---- between the driver and its workers ----


def _check_dataset(name: str, dataset: Any) -> None:
    parts.check_frame(name, dataset, ("map_batches", "repartition", "materialize"), "Dataset of Ray")


def _rows(
    dataset: Dataset, measures: Measures, options: parts.Options
) -> tuple[parts.Task, Dataset, int | None]:
    """Return the task, its columns with all rows of a query in one block, and None.

    With `grouped=True` rows are not shuffled, and the last value is the number of blocks for the queries at
    edges.
    """
    _check_dataset("dataset", dataset)
    partitions = options.partitions
    schema = _schema(dataset)
    task = parts.make_task(schema, measures, options)
    rows = dataset if schema.names == task.names else dataset.select_columns(task.names)
    if is_list(schema.field(task.columns.relevance).type):
        return task, rows if partitions is None else rows.repartition(partitions), None
    # repartition by keys puts all rows of a key into one block, and Ray does not split such a block
    blocks = dataset.context.default_hash_shuffle_parallelism if partitions is None else partitions
    if options.grouped:
        return task, rows, blocks
    return task, rows.repartition(blocks, keys=[task.query]), None


def _pieces(task: parts.Task, rows: Dataset, blocks: int, values: bool | None) -> Dataset:
    """Return the pieces of each block, shuffled by query id."""

    def of_block(table: pa.Table) -> pa.Table:
        found = [*together.pieces(task, table.to_batches(), values=values)]
        return pa.concat_tables(found, promote_options="default")

    ids = task.results[0] if values is None else together.ID
    return _of_each_block(rows, of_block).repartition(blocks, keys=[ids])


def _schema(dataset: Dataset) -> pa.Schema:
    """Return the types of the columns in workers. For pandas objects, the first row is computed."""
    known = dataset.schema()
    if known is None:
        return pa.schema([])
    if isinstance(known.base_schema, pa.Schema):
        return known.base_schema
    first = (
        dataset.limit(1).map_batches(lambda table: table, batch_size=None, batch_format="pyarrow").schema()
    )
    if first is not None and isinstance(first.base_schema, pa.Schema):
        return first.base_schema
    return pa.schema([(name, pa.null()) for name in known.names])


def _of_each_block(rows: Dataset, function: Callable[[pa.Table], pa.Table]) -> Dataset:
    return rows.map_batches(function, batch_size=None, batch_format="pyarrow")


def _collect(rows: Dataset, function: Callable[[pa.Table], Any]) -> list[Any]:
    with plain_errors():
        return parts.unpickle_rows(
            _of_each_block(rows, lambda table: parts.pickle_row(function(table))).take_all()
        )
