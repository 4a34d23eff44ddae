"""pyarrow as `pa`, imported on first use: scoring arrays does not need it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["is_arrow", "pa"]


class _Later:
    """A placeholder that imports the module on first access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        self.__dict__[attribute] = value  # not looked up here again
        return value


if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = _Later("pyarrow")


def is_arrow(values: Any) -> bool:
    """Return whether this is a pyarrow array, without importing pyarrow."""
    return "pyarrow" in sys.modules and isinstance(values, pa.Array | pa.ChunkedArray)
