"""Signatures: one line that says exactly how a number was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg._version import __version__
from fastndcg.common.arrow_types import decode
from fastndcg.common.exports import AsFrame
from fastndcg.common.later import pa
from fastndcg.measures.accepted import show_value

if TYPE_CHECKING:
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


UInt64 = npt.NDArray[np.uint64]

_BLOCK = 1 << 18  # documents that are hashed together, so that their hashes stay in a cache
_FEW = 1 << 12  # grades of a range that have their hashes in a table


class Digests(NamedTuple):
    """What results were computed of. Those of parts add up to those of the whole, in whatever order.

    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[3, 0], [1, 2, 0]])
    >>> digests_of(rankings[:1]) + digests_of(rankings[1:]) == digests_of(rankings)
    True
    """

    kind: str  # "pool" of all judged documents, judgments of the "returned" ones, or "unknown"
    knows_unjudged: bool
    n_queries: int
    queries: int
    n_judgments: int = 0
    judgments: int = 0

    def __add__(self, other: Digests) -> Digests:  # type: ignore[override]
        sums = (one + another & _ALL for one, another in zip(self[2:], other[2:], strict=True))
        same = self if self.n_queries else other
        return Digests(same.kind, self.knows_unjudged or other.knows_unjudged, *sums)

    def of_queries(self) -> str:
        return f"{self.n_queries}:{self.queries:016x}"

    def of_judgments(self) -> str:
        return (
            "unknown" if self.kind == "unknown" else f"{self.kind}:{self.n_judgments}:{self.judgments:016x}"
        )


_ALL = (1 << 64) - 1


def digests_of_ids(ids: Any) -> Digests:
    """What is known of results alone: their queries."""
    return Digests("unknown", False, len(ids), _sum(hashes_of_texts(ids)))


def digests_of(rankings: Any, chosen: npt.NDArray[np.bool_] | None = None) -> Digests:
    """Digests of the ids of all or `chosen` queries, and of how many documents of each grade each query has.

    Neither the order of rows and queries, nor the types of ids and grades change them. Of judgments the ids
    of documents are not looked at: systems that return documents in other orders, or other ones of a pool,
    are computed of the same judgments.
    """
    ids = hashes_of_texts(rankings.query_ids)
    if rankings.judged is not None:
        kind, offsets, grades, counts = "pool", rankings.judged.offsets, rankings.judged.relevance, None
    else:
        kind, offsets, grades, counts = "returned", rankings.offsets, rankings.relevance, rankings.is_judged
    of_grades = np.zeros(len(ids), np.uint64)
    first = 0
    while first < len(ids):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1)
        rows = slice(int(offsets[first]), int(offsets[last]))
        hashed = np.append(_hashes_of_numbers(grades[rows]), np.uint64(0))
        if counts is not None:
            hashed[:-1][~counts[rows]] = 0
        starts = offsets[first:last] - offsets[first]
        sums = np.add.reduceat(hashed, starts)
        of_grades[first:last] = np.where(np.diff(offsets[first : last + 1]) > 0, sums, np.uint64(0))
        first = last
    counted = np.diff(offsets) if counts is None else np.diff(np.append(0, np.cumsum(counts))[offsets])
    of_queries = mixed(ids ^ mixed(of_grades))
    if chosen is not None:
        ids, of_queries, counted = ids[chosen], of_queries[chosen], counted[chosen]
    knows = rankings.is_judged is not None
    return Digests(kind, knows, len(ids), _sum(ids), int(counted.sum()), _sum(of_queries))


def hashes_of_texts(column: Any) -> UInt64:
    """A hash of each value as text, so that the number 7 and the text "7" have the same."""
    try:
        texts = decode(column).cast(pa.large_string())
    except pa.ArrowException:  # a type that Arrow has no texts for
        texts = pa.array(list(map(str, column.to_pylist())), pa.large_string())
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return np.concatenate([np.zeros(0, np.uint64), *map(_hashes_of_chunk, chunks)])


def _hashes_of_chunk(texts: Any) -> UInt64:
    """Sums of hashes of each byte with its position, and of the length; null has the length -1."""
    n = len(texts)
    if not n:
        return np.zeros(0, np.uint64)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + n + 1]
    bytes_ = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    lengths = np.diff(ends)
    positions = np.arange(len(bytes_)) - np.repeat(ends[:-1] - ends[0], lengths)
    placed = (positions.astype(np.uint64) << np.uint64(8)) | bytes_.astype(np.uint64)
    hashed = np.append(mixed(placed), np.uint64(0))
    sums = np.where(lengths > 0, np.add.reduceat(hashed, ends[:-1] - ends[0]), np.uint64(0))
    if texts.null_count:
        lengths = np.where(texts.is_null(), -1, lengths)
    return mixed(sums ^ mixed(lengths.astype(np.uint64)))


def _hashes_of_numbers(values: npt.NDArray[Any]) -> UInt64:
    """A hash of each number, the same for each type that can hold it."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = values.astype(np.int64)
        values = whole if np.array_equal(whole, values) else values
    if values.dtype.kind in "iu" and len(values):
        least, greatest = int(values.min()), int(values.max())
        if greatest - least < _FEW:
            table = mixed(np.arange(least, greatest + 1).astype(np.float64).view(np.uint64))
            found: UInt64 = table[values - values.dtype.type(least)]
            return found
    return mixed((values.astype(np.float64) + 0.0).view(np.uint64))


def mixed(values: UInt64) -> UInt64:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _sum(values: UInt64) -> int:
    return int(values.sum(dtype=np.uint64))
