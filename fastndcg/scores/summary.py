"""`Means` and `Summary`: the numbers of each measure over all queries."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fastndcg.common.lazy import pa
from fastndcg.common.table import Table, digits, fit, terminal_width
from fastndcg.errors import FastndcgError
from fastndcg.measures import as_measure
from fastndcg.statistics.significance import check_confidence, t_interval

if TYPE_CHECKING:
    from fastndcg.statistics.exact_sums import Moments


class Means(dict[str, float]):
    """Means by the notation of their measure. Any other spelling of the measure finds the mean too.

    >>> from fastndcg import Rankings, evaluate
    >>> means = evaluate(Rankings.from_lists([[1, 0], [0, 1]]), "recall@1").mean()
    >>> means, means["Recall@1"]
    ({'R@1': 0.5}, 0.5)
    """

    def __missing__(self, name: object) -> float:
        with suppress(FastndcgError):
            notation = str(as_measure(name))
            if dict.__contains__(self, notation):
                return dict.__getitem__(self, notation)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def get(self, name: Any, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


class Summary(Table):
    """A row of numbers for each measure. Quartiles and intervals appear only if they were computed.

    If there are several runs, or systems of an engine, each row begins with its name.

    Attributes
    ----------
    rows : list of dict
        The numbers of each measure.
    signatures : dict
        Of what an engine has computed: the `Scores.signature` of each measure by its notation.
    """

    _NAMES = ("run", "system", "measure")
    _NUMBERS = ("mean", "low", "high", "std", "min", "q25", "median", "q75", "max")
    _COUNTS = ("queries", "empty")
    _DROPS = (("std",), ("q25", "median", "q75"), ("min", "max"), ("queries",))

    def __init__(self, rows: list[dict[str, Any]], signatures: dict[str, str] | None = None) -> None:
        self.rows, self.signatures = rows, signatures or {}
        self._labels = [name for name in self._NAMES if all(name in row for row in rows)]
        self._numbers = [name for name in self._NUMBERS if all(name in row for row in rows)]
        self._keys = len(self._labels)

    @cached_property
    def _arrow(self) -> pa.Table:
        """The table; made on first use, since pyarrow imports pandas for it."""
        types = dict.fromkeys(self._labels, pa.string()) | dict.fromkeys(self._numbers, pa.float64())
        types |= dict.fromkeys(self._COUNTS, pa.int64())
        return pa.Table.from_pylist(self.rows, pa.schema(types))

    def __reduce__(self) -> tuple[Any, ...]:
        return Summary, (self.rows, self.signatures)

    def _texts(self) -> list[list[str]]:
        """Return the table as strings; the first row is the header."""
        rows = [[*self._labels, *self._numbers, *self._COUNTS]]
        for row in self.rows:
            texts = [row[name] for name in self._labels]
            for name in self._numbers:
                nothing = "no queries" if name == "mean" else "-"
                texts.append(digits(row[name]) if row["queries"] else nothing)
            rows.append(texts + ["" if row[name] is None else f"{row[name]:,}" for name in self._COUNTS])
        return rows

    def text(self, width: int = 0, see: str = "to_arrow()") -> str:
        """Return the table as text, like `Table.text`, with all means."""
        return fit(self._texts(), len(self._labels), self._DROPS, width, see)

    def under(self, heading: str) -> str:
        """Return the table below a heading, for the repr of scores."""
        return f"{heading}\n{self.text(terminal_width(), 'summary().to_arrow()')}"


def interval_of(mean: float, moments: Moments, confidence: float, *, weighted: bool) -> dict[str, float]:
    """Return `low` and `high` of a mean, by Student's t."""
    return t_interval(mean, *moments.error(weighted=weighted), check_confidence(confidence))._asdict()
