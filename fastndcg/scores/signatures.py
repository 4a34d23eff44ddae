"""Signatures: one line that says exactly how a number was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fastndcg._version import __version__
from fastndcg.common.exports import AsFrame
from fastndcg.measures.accepted import show_value
from fastndcg.scores.digests import Digests, digests_of, digests_of_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.measures import Measure

KEY = b"fastndcg.signatures"  # metadata of a table: the signature of each measure, as JSON


class Signed(AsFrame):
    """Scores that know how they were made."""

    if TYPE_CHECKING:
        measures: tuple[Measure, ...]
        queries: pa.Table
        _source: Any

        def _find(self, measure: object) -> Measure: ...

        def _of(self, queries: pa.Table) -> Signed: ...

        @property
        def _rankings(self) -> Any: ...

        @property
        def _weight(self) -> Any: ...

    def signature(self, measure: object) -> str:
        """One line that says exactly how the number of a measure was made, to be quoted beside it.

        It has the measure with all parameters; the convention; how unjudged documents were treated; whether
        means are weighted; the number and a digest of the queries, and of their judgments; and the version.
        `judgments` says whether the ideal was that of a "pool" of all judged documents or of the "returned"
        ones. Its digest is of the number of documents of each grade of each query, not of their ids. Digests
        depend neither on the order of rows, nor on threads, nor on whether a stream was read. A stream is
        read again for them, unless its results were written to a file meanwhile.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
            One that was evaluated.

        Raises
        ------
        MeasureError
            A measure that was not evaluated.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> print(evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "RR@10").signature("RR@10"))
        RR@10|rel:1|...|convention:none|...|queries:2:2400d2f03e78257e|judgments:returned:5:...|version:...
        """
        return self._signature_at(self.measures.index(self._find(measure)))

    def _signature_at(self, row: int) -> str:
        stored = (self._signatures or {}).get(str(self.measures[row]))
        return self._signature_of(row) if stored is None else stored

    def _all_signatures(self) -> dict[str, str]:
        """Those that results are stored with. No stream is read again for them."""
        if self._stream is not None and "_digests" not in self.__dict__:
            return Signed._all_signatures(self._of(self.queries))
        return {str(measure): self._signature_at(row) for row, measure in enumerate(self.measures)}

    _signatures: dict[str, str] | None = None  # those that results were stored with
    _stream: Any = None  # that was evaluated, if its digests are not known

    @cached_property
    def _digests(self) -> Digests:
        if self._stream is not None:
            parts = map(digests_of, self._stream)
            return sum(parts, digests_of(self._stream._nothing()))
        rankings = self._rankings
        if rankings is None:
            return digests_of_ids(self.queries[0])
        return digests_of(rankings, getattr(self._source, "rows", None))

    @property
    def _pool(self) -> Any:
        """The pool of judgments, if there is one and it is at hand."""
        return None if self._rankings is None else self._rankings.judged

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_stream"}

    def to_arrow(self) -> pa.Table:
        """A row for each query: its columns, then a float64 column for each measure. The metadata of the
        schema have the signatures, as JSON under `fastndcg.signatures`; those of a stream know its judgments
        only if `signature` was called before.
        """
        table = self._frame()
        metadata = (table.schema.metadata or {}) | metadata_of(self._all_signatures())
        return table.replace_schema_metadata(metadata)

    def _signature_of(self, row: int) -> str:
        """The signature of one measure, from what is known."""
        convention = getattr(self, "convention", None)
        measure: Measure = getattr(self, "resolved", self.measures)[row]
        found = self._digests
        fields: dict[str, object] = dict(measure.params)
        treated = "not relevant" if found.knows_unjudged else "none known"
        if measure.params.get("judged_only"):
            treated = "removed"
        elif measure.params.get("unjudged") is not None:
            treated = f"grade {measure.unjudged}"
        fields |= {
            "convention": "none" if convention is None else convention.name,
            "unjudged_are": treated,
            "weighted": "no" if self._weight is None else "yes",
            "queries": found.of_queries(),
            "judgments": found.of_judgments(),
            "version": __version__,
        }
        name = measure.name if measure._at is None else f"{measure.name}@{measure._at}"
        return "|".join([name, *(f"{each}:{_shown(value)}" for each, value in fields.items())])


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else show_value(value)
    return text.replace("|", "/").replace("\n", " ")


def fields_of(signature: str) -> dict[str, str]:
    """The parts of a signature by their names; that of the measure is "measure".

    >>> fields_of("RR@10|rel:1|queries:2:0f")
    {'measure': 'RR@10', 'rel': '1', 'queries': '2:0f'}
    """
    measure, *others = signature.split("|")
    return {"measure": measure} | {name: value for name, _, value in (each.partition(":") for each in others)}


def metadata_of(signatures: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Signatures by measure, or by run and measure, as metadata of a table."""
    return {KEY: json.dumps(signatures, ensure_ascii=False).encode()}


def stored_signatures(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Signatures in the metadata of a table; none where there are none, or they cannot be read."""
    try:
        found = json.loads((metadata or {}).get(KEY, b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
