"""Results as data frames of other libraries, and values for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class AsFrame:
    """Base class of results with `to_arrow`: converts them to data frames of other libraries."""

    if TYPE_CHECKING:

        def to_arrow(self) -> pa.Table: ...

    def _frame(self) -> pa.Table:
        """The Arrow data to convert."""
        return self.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow()` as a pandas DataFrame."""
        return self._frame().to_pandas()  # type: ignore[no-any-return]

    def to_polars(self) -> pl.DataFrame:
        """Return `to_arrow()` as a Polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self._frame())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame().__arrow_c_stream__(requested_schema)


def without_nan(value: Any) -> Any:
    """Replace floats that are not finite by None at any depth, since JSON has no such numbers.

    >>> without_nan({"mean": float("nan"), "rows": [0.5, float("inf")]})
    {'mean': None, 'rows': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
