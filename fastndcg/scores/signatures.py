"""Signatures: one line that says exactly how a number was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg._version import __version__
from fastndcg.common.arrow_types import array_of, combine, decode
from fastndcg.common.hashes import UInt64, keys_of, keys_of_digits, mix
from fastndcg.common.lazy import pa
from fastndcg.measures.parameters import Function, show_value

if TYPE_CHECKING:
    from fastndcg.measures import Measure

KEY = b"fastndcg.signatures"  # metadata of a table: the signature of each measure, as JSON


def signature_of(measure: Measure, digests: Digests, convention: str | None, *, weighted: bool) -> str:
    """Return the line of a measure, with all parameters that a convention sets."""
    fields: dict[str, object] = dict(measure.params)
    # another process may have another function of this name
    if (gain := str(fields.get("gain"))) in digests.gains:
        fields["gain"] = f"{gain} {digests.gains[gain]:016x}"
    treated = "not relevant" if digests.knows_unjudged else "none known"
    if measure.params.get("judged_only"):
        treated = "removed"
    elif measure.params.get("unjudged") is not None:
        treated = f"grade {measure.unjudged}"
    fields |= {
        "convention": convention or "none",
        "unjudged_are": treated,
        "weighted": "yes" if weighted else "no",
        "queries": digests.of_queries(),
        "judgments": digests.of_judgments(),
        "version": __version__,
    }
    name = measure.name if measure._at is None else f"{measure.name}@{measure._at}"
    return "|".join([name, *(f"{each}:{_shown(value)}" for each, value in fields.items())])


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else show_value(value)
    return text.replace("|", "/").replace("\n", " ")


def fields_of(signature: str) -> dict[str, str]:
    """Return the parts of a signature by name; the first is "measure".

    >>> fields_of("RR@10|rel:1|queries:2:0f")
    {'measure': 'RR@10', 'rel': '1', 'queries': '2:0f'}
    """
    measure, *others = signature.split("|")
    return {"measure": measure} | {name: value for name, _, value in (each.partition(":") for each in others)}


def metadata_of(signatures: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Return signatures by measure, or by run and measure, as metadata of a table."""
    return {KEY: json.dumps(signatures, ensure_ascii=False).encode()}


def stored_signatures(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return the signatures in the metadata of a table; none if they are absent or unreadable."""
    try:
        signatures = json.loads((metadata or {}).get(KEY, b"{}"))
    except ValueError:
        return {}
    return signatures if isinstance(signatures, dict) else {}


_BLOCK = 1 << 12  # queries that are hashed together, so that their documents stay in the cache
_ALL = (1 << 64) - 1
_ADDED = np.uint64(0x9E3779B97F4A7C15)  # so that the hash of a grade is never 0


class Digests(NamedTuple):
    """Digests of queries and judgments. Digests of parts add up to those of the whole, in any order.

    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[3, 0], [1, 2, 0]])
    >>> digests_of(rankings[:1]) + digests_of(rankings[1:]) == digests_of(rankings)
    True
    """

    kind: str  # of the "pool", of the "returned" documents, or "unknown"
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


# up to this many ids NumPy hashes faster, since Arrow needs longer to start
_FEW = 1 << 19


def digests_of_ids(ids: Any) -> Digests:
    """Return digests of queries whose judgments are unknown."""
    return Digests("unknown", False, len(ids), _sum(hashes_of_ids(ids)))


def digests_of(
    rankings: Any, chosen: npt.NDArray[np.bool_] | None = None, functions: Iterable[Function] = ()
) -> Digests:
    """Return digests of the ids of all or `chosen` queries, of the number of documents of each grade in each
    query, and of the gains that functions give these grades.

    They depend neither on the order of rows and queries, nor on the types of ids and grades. Ids of documents
    do not enter: systems that return other documents of a pool, or in another order, have the same judgments.
    """
    knows = rankings.is_judged is not None
    kind, of, is_judged = "pool", rankings.judged, None
    if of is None:
        kind, of, is_judged = "returned", rankings, rankings.is_judged
    offsets, grades = of.offsets, of.relevance
    ids, digests = hashes_of_ids(rankings.query_ids), Digests(kind, knows, 0, 0)
    for first in range(0, len(ids), _BLOCK):
        id_hashes, ends = ids[first : first + _BLOCK], offsets[first : first + _BLOCK + 1]
        some = np.ones(len(id_hashes), np.bool_) if chosen is None else chosen[first : first + _BLOCK]
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
        hashes = mix(id_hashes ^ sums)[some]
        digests += Digests(
            kind, knows, int(some.sum()), _sum(id_hashes[some]), int(counts.sum()), _sum(hashes), gains
        )
    return digests


def _digest_of_gains(function: Function, grades: npt.NDArray[Any]) -> int:
    """Return a sum of hashes of each grade with its gain."""
    levels, counts = np.unique(grades, return_counts=True)
    gains = np.array([float(function.call(level)) for level in levels.tolist()], np.float64)
    return _sum(mix(_hashes_of_numbers(levels) + _hashes_of_numbers(gains)) * counts.astype(np.uint64))


def hashes_of_ids(column: Any) -> UInt64:
    """Hash each value as text, so that the number 7 and the text "7" have equal hashes."""
    ids = combine(decode(column))
    if pa.types.is_integer(ids.type) and not ids.null_count and len(ids) < _FEW:
        return mix(keys_of_digits(array_of(ids)) + _ADDED)
    try:
        texts = ids.cast(pa.large_string())
    except pa.ArrowException:  # Arrow cannot cast this type to text
        texts = pa.array(list(map(str, ids.to_pylist())), pa.large_string())
    return mix(keys_of(texts.fill_null("\0")) + _ADDED)


def _hashes_of_numbers(numbers: npt.NDArray[Any]) -> UInt64:
    """Hash each number by its value, whatever its type."""
    if numbers.dtype.kind in "iu" and len(numbers):
        lowest, highest = int(numbers.min()), int(numbers.max())
        # few grades: a table of hashes takes a fifth of the time
        if highest - lowest < len(numbers) and max(-lowest, highest) < 1 << 53:
            levels = np.arange(lowest, highest + 1, dtype=np.float64)
            return _hashes_of_numbers(levels)[numbers if lowest == 0 else numbers.astype(np.int64) - lowest]
    return mix((numbers.astype(np.float64) + 0.0).view(np.uint64) + _ADDED)


def _sum(values: UInt64) -> int:
    return int(values.sum(dtype=np.uint64))
