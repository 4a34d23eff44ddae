"""Signatures: one line that says exactly how a number was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg._version import __version__
from fastndcg.common.arrays import read_only
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.common.exports import AsFrame
from fastndcg.common.later import pa
from fastndcg.common.threads import in_threads, processors
from fastndcg.kernels.compile import worlds
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
        read again for them, unless its results were written to a file meanwhile. Raises `MeasureError` for a
        measure that was not evaluated.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> print(evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "RR@10").signature("RR@10"))
        RR@10|rel:1|...|convention:none|...|queries:2:55b9c24e3bf46211|judgments:returned:5:...|version:...
        """
        return self._signature_at(self.measures.index(self._find(measure)))

    def _signature_at(self, row: int) -> str:
        stored = (self._signatures or {}).get(str(self.measures[row]))
        if stored is not None:
            return stored
        convention = getattr(self, "convention", None)
        measure: Measure = getattr(self, "resolved", self.measures)[row]
        name = None if convention is None else convention.name
        return signature_of(measure, self._digests, name, weighted=self._weight is not None)

    def _known(self) -> Signed:
        """Scores whose signatures are known without reading a stream again: its judgments are unknown."""
        is_unread = self._stream is not None and "_digests" not in self.__dict__
        return self._of(self.queries) if is_unread else self

    def _all_signatures(self) -> dict[str, str]:
        """Those that results are stored with."""
        known = self._known()
        return {str(measure): known._signature_at(row) for row, measure in enumerate(self.measures)}

    _signatures: dict[str, str] | None = None  # those that results were stored with
    _stream: Any = None  # that was evaluated, if its digests are not known

    @cached_property
    def _digests(self) -> Digests:
        if self._stream is not None:
            parts = map(digests_of, self._stream)
            return sum(parts, digests_of(self._stream._nothing()))
        return self._digests_in()

    def _digests_in(self, threads: int | None = None) -> Digests:
        if self._rankings is None:
            ids = self.queries[0]
            return Digests("unknown", False, len(ids), _sum(hashes_of_ids(ids)))
        return digests_of(self._rankings, getattr(self._source, "rows", None), threads)

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


def signature_of(measure: Measure, found: Digests, convention: str | None, *, weighted: bool) -> str:
    """The line of a measure, with all parameters that a convention has for it."""
    fields: dict[str, object] = dict(measure.params)
    treated = "not relevant" if found.knows_unjudged else "none known"
    if measure.params.get("judged_only"):
        treated = "removed"
    elif measure.params.get("unjudged") is not None:
        treated = f"grade {measure.unjudged}"
    fields |= {
        "convention": convention or "none",
        "unjudged_are": treated,
        "weighted": "yes" if weighted else "no",
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

_BLOCK = 1 << 14  # queries that are hashed together
_SHARE = 1 << 18  # documents that are worth a thread
_LONG = 10**18  # numbers from here on are hashed as texts
_HALF = 1 << 31
_ALL_JUDGED = read_only(np.empty(0, np.bool_))


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


def digests_of(
    rankings: Any, chosen: npt.NDArray[np.bool_] | None = None, threads: int | None = None
) -> Digests:
    """Digests of the ids of all or `chosen` queries, and of how many documents of each grade each query has.

    Neither the order of rows and queries, nor the types of ids and grades change them. Of judgments the ids
    of documents are not looked at: systems that return documents in other orders, or other ones of a pool,
    are computed of the same judgments.
    """
    if rankings.judged is not None:
        kind, offsets, grades, counts = "pool", rankings.judged.offsets, rankings.judged.relevance, None
    else:
        kind, offsets, grades, counts = "returned", rankings.offsets, rankings.relevance, rankings.is_judged
    column, codes = decode(rankings.query_ids), read_only(_codes_of(grades, rankings._grades))
    knows, n_docs = rankings.is_judged is not None, int(offsets[-1] - offsets[0])

    def of_block(first: int) -> Digests:  # few enough that their hashes stay in a cache
        part = slice(first, first + _BLOCK)
        ids, ends = hashes_of_ids(column[part], job=len(column)), offsets[first : first + _BLOCK + 1]
        hashes, is_judged = ids.copy(), _ALL_JUDGED if counts is None else counts
        size = float(ends[-1] - ends[0])
        worlds.run("reading.digests.hash_judgments", size, ends, codes, is_judged, hashes, job=float(n_docs))
        if chosen is None and counts is None:
            return Digests(kind, knows, len(ids), _sum(ids), int(size), _sum(hashes))
        own = slice(int(ends[0]), int(ends[-1]))
        judged = np.ones(own.stop - own.start, np.int64) if counts is None else counts[own]
        counted = np.diff(np.append(0, np.cumsum(judged))[ends - ends[0]])
        some = slice(None) if chosen is None else chosen[part]
        ids, hashes, counted = ids[some], hashes[some], counted[some]
        return Digests(kind, knows, len(ids), _sum(ids), int(counted.sum()), _sum(hashes))

    blocks = range(0, len(column), _BLOCK)
    shares = max(1, min(threads or processors(), len(blocks), n_docs // _SHARE))
    found = in_threads(lambda share: list(map(of_block, blocks[share::shares])), range(shares))
    return sum(chain.from_iterable(found), Digests(kind, knows, 0, 0))


def hashes_of_ids(column: Any, job: int = 0) -> UInt64:
    """A hash of each value as text, so that the number 7 and the text "7" have the same."""
    column = decode(column)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found = [_hashes_of_chunk(chunk, job) for chunk in chunks]
    return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.uint64), *found])


def _hashes_of_chunk(ids: Any, job: int) -> UInt64:
    hashes = np.empty(len(ids), np.uint64)
    if pa.types.is_integer(ids.type) and not ids.null_count:
        numbers = array_of(ids)
        if not len(ids) or (numbers.max() < _LONG and (numbers.dtype.kind == "u" or numbers.min() > -_LONG)):
            worlds.run("reading.digests.hash_numbers", len(ids), numbers, hashes, job=job)
            return hashes
    try:
        texts = ids.cast(pa.large_string())
    except pa.ArrowException:  # a type that Arrow has no texts for
        texts = pa.array(list(map(str, ids.to_pylist())), pa.large_string())
    texts = texts.fill_null("\0")
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(ids) + 1]
    text = np.frombuffer(b"" if data is None else data, np.uint8)
    worlds.run("reading.digests.hash_texts", len(ids), offsets, text, hashes, job=job)
    return hashes


def _codes_of(grades: npt.NDArray[Any], known: Any) -> npt.NDArray[Any]:
    """Numbers whose 32 bits as an integer tell grades apart, whatever their type: small whole grades
    themselves; of others all bits, folded.
    """
    if known.whole and known.lowest >= -_HALF and known.highest < _HALF:
        return grades
    with np.errstate(invalid="ignore"):
        whole = grades.astype(np.int32)
    bits = grades.astype(np.float64).view(np.uint64)
    return np.where(whole == grades, whole, (bits ^ (bits >> np.uint64(29))).astype(np.uint32).view(np.int32))


def _sum(values: UInt64) -> int:
    return int(values.sum(dtype=np.uint64))


def mixed(values: UInt64) -> UInt64:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
