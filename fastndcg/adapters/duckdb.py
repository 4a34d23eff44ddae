"""DuckDB: nDCG or another measure as an SQL function, computed on batches of Arrow.

register(connection)
connection.sql("SELECT country, avg(ndcg(labels, scores, 10)) FROM queries GROUP BY country")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrow_types import array_of, combine
from fastndcg.errors import InputError
from fastndcg.measures import as_measure
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    import duckdb

    from fastndcg.measures import MeasureLike


def register(
    connection: duckdb.DuckDBPyConnection,
    *,
    name: str = "ndcg",
    measure: MeasureLike = "nDCG",
    **parameters: Any,
) -> None:
    """Add the function `ndcg(labels, scores, k)` to a connection: nDCG@k of a row with two lists.

    Parameters
    ----------
    name, measure
        Of another function, as in `name="ap", measure="AP"`. With a cutoff ("AP@10"), and of a measure that
        takes none, it is `name(labels, scores)`.
    parameters
        Parameters of the measure, such as `gain="exp2"`, `ties="worst"`, `empty="nan"`, `like="lightgbm"`;
        `cutoff=None` for a function of all ranks, without k.

    Raises
    ------
    MeasureError
        A measure or a parameter that does not exist.
    duckdb.InvalidInputException
        The connection already has a function of this name. Queries raise it, with this package's message, for
        lists of different lengths, nulls in them, NaN scores and all else that `Rankings.from_lists` refuses.

    Notes
    -----
    Labels and scores are read as DOUBLE. The value of a row with a null is null. In long form, `list(label)`
    and `list(score)` make the lists:

        SELECT qid, ndcg(list(label), list(score), 10) FROM rows GROUP BY qid

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> register(connection)
    >>> connection.sql("SELECT ndcg([3, 0, 2], [0.9, 0.8, 0.7], 2)").fetchall()
    [(0.7039180890341348,)]
    >>> register(connection, name="ap", measure="AP", like="xgboost")
    >>> connection.sql("SELECT ap([1, 0, 1], [0.9, 0.8, 0.7], 2)").fetchall()
    [(0.5,)]
    """
    plain, fixed = as_measure(measure), "cutoff" in parameters
    if fixed and parameters["cutoff"] is None:
        del parameters["cutoff"]
    asked = plain(**parameters)

    def at_k(labels: Any, scores: Any, k: Any) -> pa.Array:
        return _values(asked, *map(combine, (labels, scores, k)))

    def whole(labels: Any, scores: Any) -> pa.Array:
        return _values(asked, combine(labels), combine(scores), None)

    has_k = asked.definition.cut == "rank" and not plain.is_cut and not fixed
    types = ["DOUBLE[]", "DOUBLE[]", *(["BIGINT"] if has_k else [])]
    connection.create_function(
        name, at_k if has_k else whole, types, "DOUBLE", type="arrow", null_handling="special"
    )


def _values(measure: Any, labels: pa.Array, scores: pa.Array, cutoffs: pa.Array | None) -> pa.Array:
    given = [labels, scores, *([] if cutoffs is None else [cutoffs])]
    known = np.logical_and.reduce([array_of(each.is_valid()) for each in given])
    rows = np.flatnonzero(known)
    values = np.zeros(len(known))
    if len(rows):
        rankings = Rankings.from_lists(labels.take(pa.array(rows)), scores.take(pa.array(rows)))
        if cutoffs is None:
            values[rows] = evaluate(rankings, measure, threads=1).values[0]
            return pa.array(values, mask=~known)
        cutoff = cutoffs.take(pa.array(rows)).to_numpy()
        distinct = np.unique(cutoff).tolist()
        if distinct[0] < 1:
            raise InputError(f"k is {distinct[0]}; wanted 1 or more")
        found = evaluate(rankings, [measure @ k for k in distinct], threads=1)
        for k in distinct:
            values[rows[cutoff == k]] = found[measure @ k][cutoff == k]
    return pa.array(values, mask=~known)
