"""Polars: `.fastndcg` on frames and lazy frames, registered when this module is imported.

import fastndcg.adapters.polars

frame.fastndcg.evaluate("nDCG@10", keep="country").by("country")
pl.scan_parquet("predictions/*.parquet").fastndcg.evaluate(["nDCG@10", "RR"]).mean()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from fastndcg.api.evaluate import evaluate
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.scores.scores import Scores


@pl.api.register_dataframe_namespace("fastndcg")
class OfFrame:
    """The namespace `frame.fastndcg`."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def evaluate(
        self, measures: Any, *, convention: Any = None, threads: int | None = None, **columns: Any
    ) -> Scores:
        """Compute measures of every query of the frame.

        Parameters and errors are those of `fastndcg.evaluate`, and of `Rankings.from_arrow`, whose keywords
        `columns` are: names of columns, `keep`, `nan`.

        Examples
        --------
        >>> frame = pl.DataFrame({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.9, 0.9]})
        >>> frame.fastndcg.evaluate("RR").mean()
        {'RR': 0.75}
        """
        if convention is not None:  # which may need document ids
            return evaluate(self._frame, measures, convention=convention, threads=threads, **columns)
        return evaluate(Rankings.from_arrow(self._frame, **columns), measures, threads=threads)


@pl.api.register_lazyframe_namespace("fastndcg")
class OfLazyFrame:
    """The namespace `lazy_frame.fastndcg`."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def evaluate(
        self, measures: Any, *, convention: Any = None, threads: int | None = None, **columns: Any
    ) -> Scores:
        """As `OfFrame.evaluate`; Polars' streaming engine computes only the needed columns, batch by batch:
        with the rows of each query together, a frame of any length takes bounded memory.
        """
        return evaluate(self._frame, measures, convention=convention, threads=threads, **columns)
