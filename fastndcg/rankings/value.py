"""What a `Rankings` holds: columns, views, facts about them, slices; and how it is made of columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Unpack

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Array, Int64, read_only
from fastndcg.common.lazy import pa
from fastndcg.errors import InputTypeError, check_length, count_of
from fastndcg.tables.checks import JudgedPool, cast_columns, cast_scores, checked_scores
from fastndcg.tables.intents import IntentGrades, IntentProbabilities
from fastndcg.tables.locations import BY_ROW, Blame

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.typing import ColumnsAndIds, NaN

_BLOCK = 1 << 20  # rows that are looked at together, so that temporary arrays stay small


class Grades(NamedTuple):
    """Facts about all grades that kernels need: grades of scored documents and of the pool."""

    lowest: float
    highest: float
    whole: bool  # every grade is an integer


class Value:
    """Columns of many queries, immutable; `Rankings` documents each of them."""

    offsets: Int64
    relevance: Array
    scores: Array
    judged: JudgedPool | None
    is_judged: npt.NDArray[np.bool_] | None
    doc_ids: pa.Array | pa.ChunkedArray | None
    weight: npt.NDArray[np.float64] | None
    intents: IntentGrades | None
    judged_intents: IntentGrades | None
    intent_probabilities: IntentProbabilities | None
    propensity: npt.NDArray[np.float64] | None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Rankings is immutable; make another one to change {name}")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    @classmethod
    def _of(cls, **fields: Any) -> Self:
        """Rankings of these fields, which are not checked."""
        rankings = object.__new__(cls)
        rankings.__dict__.update(fields)
        return rankings

    @classmethod
    def _from_offsets(
        cls,
        offsets: npt.ArrayLike,
        relevance: npt.ArrayLike,
        scores: npt.ArrayLike,
        blame: Blame = BY_ROW,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """`from_offsets` without a look at oddities, for what is not a user's array."""
        return cls._of(**cast_columns(offsets, relevance, scores, blame, **columns))

    def _with_scores(self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False) -> Self:
        """`with_scores` without a look at oddities, for a system that is still being trained."""
        values = cast_scores(scores, ascending=ascending)
        check_length("scores", len(values), self.n_docs, "document")
        # cached facts about grades and queries hold for all systems
        shared = {name: getattr(self, name) for name in ("_grades", "_longest", "query_ids", "queries")}
        return self._of(**self.__dict__ | shared | {"scores": checked_scores(values, nan, self._blame)})

    def _with(self, **fields: Any) -> Self:
        """The same rankings with other values of these fields, which are not checked."""
        return self._of(**self.__getstate__() | fields)

    # ---- views ----

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_docs(self) -> int:
        return len(self.relevance)

    @property
    def lengths(self) -> Int64:
        """Number of documents of each query, (n_queries,)."""
        return np.diff(self.offsets)

    @cached_property
    def query_ids(self) -> pa.Array | pa.ChunkedArray:
        """Id of each query; 0, 1, 2, ... where none were given."""
        given = self.__dict__["_query_ids"]
        return pa.array(np.arange(self.n_queries, dtype=np.int64)) if given is None else given

    @cached_property
    def queries(self) -> pa.Table:
        """A row for each query: the id under its own name, or `query_id`, kept columns, and any `weight`."""
        name_of_ids = self.__dict__["_query_name"]
        columns = {name_of_ids: self.query_ids}
        kept = self.__dict__["_kept"]
        if kept is not None:
            columns |= {name: kept[name] for name in kept.column_names if name != name_of_ids}
        if self.weight is not None:
            columns["weight"] = pa.array(self.weight)
        return pa.table(columns)

    @cached_property
    def _grades(self) -> Grades:
        """Range of the grades of all judged documents."""
        lowest, highest, whole = float("inf"), float("-inf"), True
        for values in self._judged_grades():
            if len(values):
                lowest, highest = min(lowest, values.min().item()), max(highest, values.max().item())
                blocks = (values[i : i + _BLOCK] for i in range(0, len(values), _BLOCK))
                is_float = values.dtype.kind == "f"
                whole = whole and (not is_float or all((np.floor(each) == each).all() for each in blocks))
        return Grades(lowest, highest, whole) if lowest <= highest else Grades(0, 0, True)

    @cached_property
    def _distinct_grades(self) -> Array:
        """All grades of scored and judged documents once, ascending, as float64 or their integer dtype."""
        found = [
            np.unique(values[block : block + _BLOCK])
            for values in self._judged_grades()
            for block in range(0, len(values), _BLOCK)
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, self.relevance.dtype)

    @cached_property
    def _longest(self) -> int:
        """The number of documents of the longest list, scored or judged."""
        sides = (self.offsets,) if self.judged is None else (self.offsets, self.judged.offsets)
        return max(int(np.diff(offsets).max(initial=0)) for offsets in sides)

    @property
    def _with_pooled(self) -> Self | None:
        """The rankings if unjudged documents of the pool have negative grades; otherwise None."""
        if self.is_judged is None or self.relevance.dtype.kind not in "if":
            return None
        pooled = (self.relevance < 0) & ~self.is_judged
        if not pooled.any():
            return None
        return self._with(is_judged=read_only(self.is_judged | pooled))

    def _judged_grades(self) -> tuple[Array, ...]:
        """Grades of judged documents; `relevance` of unjudged documents is never used."""
        scored = self.relevance if self.is_judged is None else self.relevance[self.is_judged]
        return (scored,) if self.judged is None else (scored, self.judged.relevance)

    def __len__(self) -> int:
        return self.n_queries

    def __getitem__(self, part: slice) -> Self:
        """The rankings of consecutive queries, without a copy.

        >>> from fastndcg import Rankings
        >>> Rankings.from_lists([[3, 0], [1, 2, 0]])[1:]
        Rankings(1 query, 3 documents, relevance int64, scores int64)
        """
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InputTypeError(
                f"rankings[{part!r}] is not a run of queries; "
                "wanted a slice of step 1, as in rankings[100:200]"
            )
        start, stop, _ = part.indices(self.n_queries)
        stop = max(start, stop)
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        fields = self.__getstate__() | {"_query_ids": self.query_ids}
        if fields["_first_row"] is not None:
            fields["_first_row"] += first
        ends = dict.fromkeys(_OF_QUERIES, (start, stop)) | dict.fromkeys(_OF_DOCUMENTS, (first, last))
        if self.judged is not None:
            ends["judged_intents"] = int(self.judged.offsets[start]), int(self.judged.offsets[stop])
        fields |= {name: _part(fields[name], *of) for name, of in ends.items() if fields[name] is not None}
        fields["offsets"] = read_only(self.offsets[start : stop + 1] - first)
        return self._of(**fields)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in _STATE}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # pickles forget that arrays are read-only, and Numba would compile every kernel a second time for
        # writeable ones
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                self.__dict__[name] = read_only(value)
            elif isinstance(value, JudgedPool | IntentGrades | IntentProbabilities):
                self.__dict__[name] = type(value)(*map(read_only, value))
            else:
                self.__dict__[name] = value

    def __repr__(self) -> str:
        notes = [count_of(self.n_queries, "query"), count_of(self.n_docs, "document")]
        notes += [f"relevance {self.relevance.dtype}", f"scores {self.scores.dtype}"]
        if self.judged is not None:
            notes.append(f"{len(self.judged.relevance):,} judged")
        if self.intents is not None:
            notes.append("intents")
        if self.propensity is not None:
            notes.append("propensities")
        if self.is_judged is not None:
            notes.append("some unjudged" if not self.is_judged.all() else "all judged")
        return f"Rankings({', '.join(notes)})"

    def _repr_html_(self) -> str:
        from fastndcg.common.markup import html_table

        grades = self._grades
        facts = {"queries": f"{self.n_queries:,}", "documents": f"{self.n_docs:,}"}
        facts["documents of the longest list"] = f"{int(self.lengths.max(initial=0)):,}"
        facts["queries without documents"] = f"{int((self.lengths == 0).sum()):,}"
        if self.n_docs:
            facts["grades"] = f"{grades.lowest:g} to {grades.highest:g} ({self.relevance.dtype})"
        facts["scores"] = str(self.scores.dtype)
        if self.judged is not None:
            facts["judged documents in the pool"] = f"{len(self.judged.relevance):,}"
        if self.is_judged is not None:
            facts["unjudged documents"] = f"{int((~self.is_judged).sum()):,}"
        has = {"document ids": self.doc_ids, "intents": self.intents, "propensities": self.propensity}
        facts["also"] = ", ".join(name for name, column in has.items() if column is not None)
        facts["columns of queries"] = ", ".join(self.queries.column_names)
        return html_table([["Rankings", ""], *([name, text] for name, text in facts.items() if text)], 1)

    @property
    def _blame(self) -> Blame:
        """How documents and queries are called in messages."""
        return Blame(self.offsets, self.__dict__["_query_ids"], self.__dict__["_first_row"])

    def _name_of(self, query: int) -> str:
        """The id of a query for messages."""
        return self._blame.name_of(query)


def _part(column: Any, first: int, last: int) -> Any:
    """Consecutive entries without a copy; a tuple, such as `JudgedPool`, has columns behind its offsets."""
    if not isinstance(column, tuple):
        return column[first:last]
    offsets, *columns = column
    start, stop = offsets[first], offsets[last]
    return type(column)(read_only(offsets[first : last + 1] - start), *(each[start:stop] for each in columns))


# attributes that a pickle holds: those that the class declares, and four more. `_first_row` is the number of
# the first row in the user's data, for messages; None where that has another order of rows
_STATE = (*Value.__annotations__, "_query_ids", "_query_name", "_kept", "_first_row")
# those with an entry for each query, and for each document
_OF_QUERIES = ("_query_ids", "_kept", "weight", "judged", "intent_probabilities")
_OF_DOCUMENTS = ("relevance", "scores", "is_judged", "doc_ids", "propensity", "intents")
