"""Polars: `.fastndcg` on frames and lazy frames, registered when this module is imported.

import fastndcg.adapters.polars

frame.fastndcg.evaluate("nDCG@10", keep="country").by("country")
pl.scan_parquet("predictions/*.parquet").fastndcg.evaluate(["nDCG@10", "RR"]).mean()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from fastndcg.api import evaluate
from fastndcg.rankings import Rankings
from fastndcg.sources.columns import Roles, find_columns

if TYPE_CHECKING:
    from fastndcg.scores import Scores


@pl.api.register_dataframe_namespace("fastndcg")
class OfFrame:
    """What `frame.fastndcg` is."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def evaluate(self, measures: Any, *, threads: int | None = None, **columns: Any) -> Scores:
        """Measures of every query of the frame.

        Parameters
        ----------
        measures, threads
            As those of `fastndcg.evaluate`.
        columns
            The keywords of `Rankings.from_arrow`: names of columns, `keep`, `nan`. Columns are found by their usual names.

        Raises
        ------
        ColumnError, InputError, MeasureError
            As `Rankings.from_arrow` and `fastndcg.evaluate` do.

        Examples
        --------
        >>> frame = pl.DataFrame({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.9, 0.9]})
        >>> frame.fastndcg.evaluate("RR").mean()
        {'RR': 0.75}
        """
        return evaluate(Rankings.from_arrow(self._frame, **columns), measures, threads=threads)


@pl.api.register_lazyframe_namespace("fastndcg")
class OfLazyFrame:
    """What `lazy_frame.fastndcg` is."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def evaluate(self, measures: Any, *, threads: int | None = None, **columns: Any) -> Scores:
        """Measures of every query, as of a frame; Polars' streaming engine makes the rows, and only columns that are read.

        Raises as `OfFrame.evaluate` does.
        """
        schema = self._frame.collect_schema()
        roles = Roles.of(columns, "evaluate")
        found = find_columns(
            schema.names(), roles, is_list=lambda name: isinstance(schema[name], pl.List | pl.Array)
        )
        rows = self._frame.select(found.names).collect(engine="streaming")
        return OfFrame(rows).evaluate(measures, threads=threads, **columns)
