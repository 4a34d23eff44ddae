"""DuckDB: nDCG as an SQL function, computed on batches of Arrow.

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
from fastndcg.measures import nDCG
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    import duckdb


def register(connection: duckdb.DuckDBPyConnection, *, name: str = "ndcg", **parameters: Any) -> None:
    """Add the function `ndcg(labels, scores, k)` to a connection: nDCG@k of a row with two lists.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    name : str
        Name of the function.
    parameters
        Parameters of `nDCG`, such as `gain="exp2"`, `ties="worst"`, `empty="nan"`.

    Raises
    ------
    MeasureError
        A parameter that does not exist.
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
    """
    measure = nDCG(**parameters)

    def ndcg(labels: Any, scores: Any, k: Any) -> pa.Array:
        return _values(measure, *map(combine, (labels, scores, k)))

    types = ["DOUBLE[]", "DOUBLE[]", "BIGINT"]
    connection.create_function(name, ndcg, types, "DOUBLE", type="arrow", null_handling="special")


def _values(measure: Any, labels: pa.Array, scores: pa.Array, cutoffs: pa.Array) -> pa.Array:
    known = np.logical_and.reduce([array_of(each.is_valid()) for each in (labels, scores, cutoffs)])
    rows = np.flatnonzero(known)
    values = np.zeros(len(known))
    if len(rows):
        cutoff = cutoffs.take(pa.array(rows)).to_numpy()
        rankings = Rankings.from_lists(labels.take(pa.array(rows)), scores.take(pa.array(rows)))
        distinct = np.unique(cutoff).tolist()
        if distinct[0] < 1:
            raise InputError(f"k is {distinct[0]}; wanted 1 or more")
        found = evaluate(rankings, [measure @ k for k in distinct], threads=1)
        for k in distinct:
            values[rows[cutoff == k]] = found[measure @ k][cutoff == k]
    return pa.array(values, mask=~known)
