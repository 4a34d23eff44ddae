"""Signatures: one line that says exactly how a number was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg._version import __version__
from fastndcg.common.arrow_types import array_of, combine, decode
from fastndcg.common.exports import AsFrame
from fastndcg.common.hashes import UInt64, keys_of, keys_of_digits, mix
from fastndcg.common.lazy import pa
from fastndcg.measures.validation import Function, show_value

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
        means are weighted; the number and a digest of the queries, and of their judgments; and the version. A
        gain that is a function has a digest of the gains of the grades that occur.
        `judgments` says whether the ideal was that of a "pool" of all judged documents or of the "returned"
        ones. Its digest is of the number of documents of each grade of each query, not of their ids. Digests
        depend neither on the order of rows, nor on threads, nor on whether a stream was read. A stream is
        read again for them, unless its results were written to a file meanwhile. Raises `MeasureError` for a
        measure that was not evaluated.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> print(evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "RR@10").signature("RR@10"))
        RR@10|rel:1|...|convention:none|...|queries:2:27c000b0123e32ae|judgments:returned:5:...|version:...
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
            parts = (digests_of(part, None, self._functions) for part in self._stream)
            return sum(parts, digests_of(self._stream._nothing()))
        return self._digests_in()

    @property
    def _functions(self) -> set[Function]:
        """The gains that are functions."""
        gains = {each.params.get("gain") for each in getattr(self, "resolved", self.measures)}
        return {gain for gain in gains if isinstance(gain, Function)}

    def _digests_in(self) -> Digests:
        if self._rankings is None:
            ids = self.queries[0]
            return Digests("unknown", False, len(ids), _sum(hashes_of_ids(ids)))
        return digests_of(self._rankings, getattr(self._source, "rows", None), self._functions)

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
    if (gain := str(fields.get("gain"))) in found.gains:  # elsewhere another function may have its name
        fields["gain"] = f"{gain} {found.gains[gain]:016x}"
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


_BLOCK = 1 << 12  # queries that are hashed together, so that their documents stay in a cache
_ALL = (1 << 64) - 1
_ADDED = np.uint64(0x9E3779B97F4A7C15)  # so that no hash of a grade is 0


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
    gains: dict[str, int] = {}  # noqa: RUF012 - of functions and the grades that occur; never changed

    def __add__(self, other: Digests) -> Digests:  # type: ignore[override]
        n, queries, judged, judgments = (
            one + another & _ALL for one, another in zip(self[2:6], other[2:6], strict=True)
        )
        names = self.gains | other.gains
        gains = {name: self.gains.get(name, 0) + other.gains.get(name, 0) & _ALL for name in names}
        same = self if self.n_queries else other
        return Digests(
            same.kind, self.knows_unjudged or other.knows_unjudged, n, queries, judged, judgments, gains
        )

    def of_queries(self) -> str:
        return f"{self.n_queries}:{self.queries:016x}"

    def of_judgments(self) -> str:
        return (
            "unknown" if self.kind == "unknown" else f"{self.kind}:{self.n_judgments}:{self.judgments:016x}"
        )


# ids that NumPy hashes sooner than Arrow is ready to
_FEW = 1 << 19


def digests_of(
    rankings: Any, chosen: npt.NDArray[np.bool_] | None = None, functions: Iterable[Function] = ()
) -> Digests:
    """Digests of the ids of all or `chosen` queries, and of how many documents of each grade each query has;
    and of the gains of these grades by functions.

    Neither the order of rows and queries, nor the types of ids and grades change them. Of judgments the ids
    of documents are not looked at: systems that return documents in other orders, or other ones of a pool,
    are computed of the same judgments.
    """
    knows = rankings.is_judged is not None
    kind, of, is_judged = "pool", rankings.judged, None
    if of is None:
        kind, of, is_judged = "returned", rankings, rankings.is_judged
    offsets, grades = of.offsets, of.relevance
    ids, found = hashes_of_ids(rankings.query_ids), Digests(kind, knows, 0, 0)
    for first in range(0, len(ids), _BLOCK):
        own, ends = ids[first : first + _BLOCK], offsets[first : first + _BLOCK + 1]
        some = np.ones(len(own), np.bool_) if chosen is None else chosen[first : first + _BLOCK]
        rows = slice(int(ends[0]), int(ends[-1]))
        counts = np.ones(rows.stop - rows.start, np.bool_) if is_judged is None else is_judged[rows]
        counts = counts if chosen is None else counts & np.repeat(some, np.diff(ends))
        of_grades = _hashes_of_numbers(grades[rows])
        if not counts.all():
            of_grades[~counts] = 0
        up_to = np.zeros(len(of_grades) + 1, np.uint64)
        np.cumsum(of_grades, out=up_to[1:])
        sums = np.diff(up_to[ends - ends[0]])
        gains = {str(each): _digest_of_gains(each, grades[rows][counts]) for each in functions}
        hashes = mix(own ^ sums)[some]
        found += Digests(
            kind, knows, int(some.sum()), _sum(own[some]), int(counts.sum()), _sum(hashes), gains
        )
    return found


def _digest_of_gains(function: Function, grades: npt.NDArray[Any]) -> int:
    """A sum of hashes of each grade with its gain."""
    levels, counts = np.unique(grades, return_counts=True)
    gains = np.array([float(function.call(level)) for level in levels.tolist()], np.float64)
    return _sum(mix(_hashes_of_numbers(levels) + _hashes_of_numbers(gains)) * counts.astype(np.uint64))


def hashes_of_ids(column: Any) -> UInt64:
    """A hash of each value as text, so that the number 7 and the text "7" have the same."""
    ids = combine(decode(column))
    if pa.types.is_integer(ids.type) and not ids.null_count and len(ids) < _FEW:
        return mix(keys_of_digits(array_of(ids)) + _ADDED)
    try:
        texts = ids.cast(pa.large_string())
    except pa.ArrowException:  # a type that Arrow has no texts for
        texts = pa.array(list(map(str, ids.to_pylist())), pa.large_string())
    return mix(keys_of(texts.fill_null("\0")) + _ADDED)


def _hashes_of_numbers(numbers: npt.NDArray[Any]) -> UInt64:
    """A hash of each number by its value, whatever its type."""
    if numbers.dtype.kind in "iu" and len(numbers):
        lowest, highest = int(numbers.min()), int(numbers.max())
        if (
            highest - lowest < len(numbers) and max(-lowest, highest) < 1 << 53
        ):  # few grades: a table of hashes takes a fifth of the time
            levels = np.arange(lowest, highest + 1, dtype=np.float64)
            return _hashes_of_numbers(levels)[numbers if lowest == 0 else numbers.astype(np.int64) - lowest]
    return mix((numbers.astype(np.float64) + 0.0).view(np.uint64) + _ADDED)


def _sum(values: UInt64) -> int:
    return int(values.sum(dtype=np.uint64))
