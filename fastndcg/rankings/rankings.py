"""`Rankings`: grades, scores and ids of many queries, made by named constructors, which check all input."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Array, Int64, offsets_from, read_only, runs_of
from fastndcg.common.arrow_types import combine, decode, plain
from fastndcg.common.lazy import pa
from fastndcg.common.progress import Task
from fastndcg.errors import InputError, InputTypeError, check_length, count_of, known_arguments
from fastndcg.rankings.sanity_checks import (
    examined,
    names_of_sides,
    names_of_table,
    ranks_of,
    run_sanity_checks,
)
from fastndcg.tables.checks import Grades, JudgedPool, cast_columns, cast_scores, checked_scores
from fastndcg.tables.grouping import group_by_query
from fastndcg.tables.intents import IntentGrades, IntentProbabilities
from fastndcg.tables.layouts import flat_of_lists, flat_of_matrices, in_query_order, offsets_of_groups
from fastndcg.tables.locations import BY_ROW, Locator
from fastndcg.tables.roles import (
    OF_ONE_TABLE,
    OF_TEXT,
    Function,
    Roles,
    with_keywords,
    with_roles,
    with_roles_of_both,
)

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.tables.joins import Side
    from fastndcg.typing import (
        Columns,
        ColumnsAndIds,
        JoinKeywords,
        Missing,
        NaN,
        RoleKeywords,
        TieOrder,
    )

_BLOCK = 1 << 20  # rows that are examined together, so that temporary arrays stay small


def with_columns(function: Function) -> Function:
    """Show the `**columns` of a constructor as keywords, and refuse others."""
    known = inspect.signature(cast_columns).parameters.values()
    return known_arguments(
        with_keywords(function, (each for each in known if each.kind is each.KEYWORD_ONLY))
    )


class Rankings:
    """Ragged rankings of many queries. They are immutable, and only the named constructors make them.

    Query `q` owns the rows `offsets[q]:offsets[q + 1]` of `relevance` and `scores`. A query may have one
    document or none.

    Attributes
    ----------
    offsets : int64, (n_queries + 1,)
    relevance : any integer or float dtype, (n_docs,)
    scores : float32, float64 or integer, (n_docs,)
        Compared in their own precision.
    judged : JudgedPool or None
    is_judged : bool, (n_docs,), or None
        A negative `relevance` of an unjudged document says that it was in the pool; infAP counts such
        documents.
    doc_ids : pyarrow array, (n_docs,), or None
    weight : float64, (n_queries,), or None
    intents : IntentGrades, a list for each document, or None
    judged_intents : IntentGrades, a list for each document of `judged`, or None
    intent_probabilities : IntentProbabilities, a list for each query, or None
    propensity : float64, (n_docs,), or None
    queries : pyarrow.Table, n_queries rows
        The query id under the user's own name (`query_id` where it has none), then the kept query-level
        columns, then `weight` if any.

    Notes
    -----
    `from_offsets` says what each column means. Arrays are used without a copy if their dtype and layout allow
    it, as read-only views. Do not change an array while a `Rankings` uses it.
    """

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

    def __init__(self, *_: object, **__: object) -> None:
        raise InputTypeError(
            "Rankings is made by its named constructors: from_offsets, from_groups, from_query_ids, "
            "from_dense, from_lists, from_arrow"
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Rankings is immutable; make another one to change {name}")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    # ---- constructors ----

    @classmethod
    @with_columns
    def from_offsets(
        cls,
        offsets: npt.ArrayLike,
        relevance: npt.ArrayLike,
        scores: npt.ArrayLike,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """Rankings from CSR offsets: query `q` owns rows `offsets[q]:offsets[q + 1]`.

        Parameters
        ----------
        offsets : integers, (n_queries + 1,)
            Ascending from 0 to n_docs.
        relevance, scores : (n_docs,)
            Relevance comes before scores, as in scikit-learn.
        judged : (offsets, relevance), optional
            All judged documents of each query, returned or not, for the ideal ranking and recall. Documents
            that are not relevant may be left out. Default: only the scored documents were judged.
        is_judged : bool, (n_docs,), optional
            False where a scored document is unjudged; such a document keeps its rank and gains nothing.
        doc_ids : (n_docs,), optional
        query_ids : (n_queries,), optional
            Default: the column `query_id` of `queries`, or 0, 1, 2, ...
        weight : (n_queries,), optional
            Weight of each query in the mean; finite and not negative.
        queries : table of n_queries rows, optional
            Query-level columns to keep beside the results.
        nan : "refuse" or "last"
            "last" ranks documents with a NaN score below all others, as if it were minus infinity.
        ascending : bool
            True: the lowest score is the best, as for distances and ranks.
        unjudged : "refuse" or "null"
            "null": a document whose grade is NaN, null or masked is unjudged, as if its `is_judged` were
            False.
        intents : a list of grades for each document, optional
            For measures of diversity: the document's grade for intent 0, 1, ... of its query, as lists, an
            Arrow list array, or a matrix (n_docs, n_intents); None, or the end of a shorter list, for an
            intent for which it was not judged.
        judged_intents : a list of grades for each document of `judged`, optional
            Needed if both `judged` and `intents` are given. Where several documents gain equally, the ideal
            ranking of alpha_nDCG takes the first of them.
        intent_probabilities : a list for each query, optional
            Probability of intent 0, 1, ...; they need not add up to 1. Default: all intents are equally
            likely.
        propensity : (n_docs,), optional
            Probability that the relevance of a document was observed, above 0 and up to 1: for clicks, that a
            user looked at its position in the shown ranking. Measures with `ips` divide gains by it.

        Raises
        ------
        InputError
            Offsets that do not ascend, lengths that differ, NaN scores, grades that are not finite,
            propensities that are not above 0 and up to 1.
        InputTypeError
            An array that does not hold numbers.

        Examples
        --------
        >>> Rankings.from_offsets([0, 2, 5], [1, 0, 2, 0, 1], [0.3, 0.9, 0.8, 0.7, 0.1])
        Rankings(2 queries, 5 documents, relevance int64, scores float64)
        """
        return examined(cls._from_offsets(offsets, relevance, scores, **columns), columns)

    @classmethod
    @with_columns
    def from_groups(
        cls,
        group: npt.ArrayLike,
        relevance: npt.ArrayLike,
        scores: npt.ArrayLike,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """Rankings from the number of documents of each query, like `group` of LightGBM and XGBoost.

        `columns` are the keywords of `from_offsets`. It raises the same errors, and `InputError` for a
        negative size.

        >>> Rankings.from_groups([2, 1], [1, 0, 2], [0.5, 0.1, 0.9]).offsets
        array([0, 2, 3])
        """
        offsets = offsets_of_groups(group, relevance, columns.get("unjudged", "refuse"))
        return cls.from_offsets(offsets, relevance, scores, **columns)

    @classmethod
    @with_columns
    def from_query_ids(
        cls, query_ids: Any, relevance: npt.ArrayLike, scores: npt.ArrayLike, **columns: Unpack[Columns]
    ) -> Self:
        """Rankings from the query id of each row, rows in any order.

        Queries keep the order of their first appearance, and the documents of a query the order of their
        rows. Rows that are already grouped by query are not copied.

        `query_ids` are integers, strings, or any Arrow or pandas column that is not floating point; nulls are
        refused. `columns` are the keywords of `from_offsets` except `query_ids`: `weight`, `queries` and
        `judged` have an entry for each query, in order of first appearance.

        >>> shuffled = Rankings.from_query_ids(["b", "a", "b"], [1, 2, 0], [0.5, 0.1, 0.9])
        >>> shuffled.queries["query_id"].to_pylist(), shuffled.relevance
        (['b', 'a'], array([1, 0, 2]))
        """
        flat, arguments = in_query_order(group_by_query(query_ids), relevance, scores, columns)
        return examined(cls._from_offsets(*flat, **arguments), columns)

    @classmethod
    @with_columns
    def from_dense(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        *,
        mask: npt.ArrayLike | None = None,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """Rankings from two matrices (n_queries, n_docs_per_query), a row for each query.

        `mask`, of the same shape, is False at the padding of a batch, where values are ignored. `columns` are
        the keywords of `from_offsets`; those of documents have an entry for each document, without padding.
        It raises the same errors, and `InputError` for shapes that differ or are not 2-D.

        >>> Rankings.from_dense([[1, 0, 2], [0, 1, 0]], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
        Rankings(2 queries, 6 documents, relevance int64, scores float64)
        """
        flat = flat_of_matrices(y_true, y_score, mask, columns.get("unjudged", "refuse"))
        return examined(cls._from_offsets(*flat, **columns), columns)

    @classmethod
    @with_columns
    def from_lists(cls, relevance: Any, scores: Any = None, **columns: Unpack[ColumnsAndIds]) -> Self:
        """Rankings from a list for each query. Without `scores`, the lists are in rank order, best first.

        `relevance` and `scores` are n_queries lists or arrays, of any lengths, or Arrow list arrays;
        `columns` are the keywords of `from_offsets`. It raises the same errors, and `InputError`, which names
        the query, where its two lists differ in length.

        >>> Rankings.from_lists([[3, 0], [1, 2, 0]]).scores
        array([1, 0, 2, 1, 0])
        """
        flat = flat_of_lists(relevance, scores, columns)
        return examined(cls._from_offsets(*flat, **columns), columns)

    @classmethod
    @partial(with_roles, without=OF_TEXT)
    def from_arrow(cls, data: Any, **roles: Unpack[RoleKeywords]) -> Rankings:
        """Rankings from data that Arrow can read: Arrow tables, batches and readers, Polars, pandas, DuckDB
        relations.

        Parameters
        ----------
        data
            In long form (a row for each document, in any order) or list-column form (a row for each query).
        query, relevance, score, weight, doc_id, is_judged, intents, propensity : str, optional
            Names of columns. The first three are found by their usual names if they are not given. `intents`
            holds a list for each document: its grade for each intent of its query.
        keep : str or sequence of str
            Query-level columns to carry to the results.
        rank : str, optional
            Column of ranks in place of scores: 1 is the best.
        grades : mapping, optional
            The grade of each word, where grades are words: `{"perfect": 2, "fair": 1, "bad": 0}`.
        nan, ascending, unjudged
            As in `from_offsets`; a null is as NaN.

        Raises
        ------
        ColumnError
            A column is missing, or several columns fit a role that was not named.
        InputError
            Nulls in a needed column, and all that `from_offsets` refuses.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
        >>> Rankings.from_arrow(table)
        Rankings(2 queries, 3 documents, relevance int64, scores float64)
        """
        from fastndcg.tables.arrow import fields_of_table
        from fastndcg.tables.frames import frame_of

        frame = frame_of(data)
        named = Roles.of(roles, "from_arrow", OF_TEXT)
        frame = frame.named("data", named.dialect().columns)
        columns = frame.choose(named)
        table = frame.table(columns.names, columns.id_columns, columns.score, columns.compared_ranks)
        with Task("Finding the rows of each query"):
            rankings = cls._of(**fields_of_table(table, columns))
        return run_sanity_checks(rankings, names_of_table(columns))

    @classmethod
    @partial(with_roles_of_both, without=OF_TEXT)
    def from_qrels_run(
        cls,
        qrels: Any,
        run: Any,
        *,
        missing: Missing = "zero",
        ties: TieOrder = "docid_desc",
        intents: bool | str = False,
        **roles: Unpack[JoinKeywords],
    ) -> Rankings:
        """Rankings from judgments and a run, joined on query and document id.

        Parameters
        ----------
        qrels, run
            Dicts of dicts or of Series (query -> document -> number), of pairs, or of lists (relevant
            documents, each of grade 1; or a ranking, best first), of judgments also of sets; tables that
            `from_arrow` accepts; lists of records; ir_measures' Qrel and ScoredDoc tuples; ranx's Qrels and
            Run. `read_qrels_run` reads files. A number in one is the same id as its text in the other.
        missing, ties, nan, duplicates
            As in `read_trec`. `missing`: "zero" counts every query of the qrels, "skip" only queries in both.
            `ties`: the order of tied documents for measures with ties="input". `nan`: refuse NaN scores, or
            rank them last.
        query, doc_id, relevance, score : str, optional
            Columns of tables. Default: the usual names.
        keep, weight, rank, ascending, unjudged, grades, columns
            As in `read_qrels_run`. Kept columns and weights come from the judgments, which must be a table.
            `grades=1` gives every judgment that grade.
        intents : bool or str
            True: each judgment is for one intent. Dicts hold it as query -> document -> intent -> number,
            tables in a column with a usual name, tuples as `iteration`. A string names the column.
        relevant_ids, retrieved_ids : str, optional
            Columns of tables with the ids of a query: lists, or text in which blanks separate them.

        Raises
        ------
        InputError
            The same document twice for a query; NaN scores; nulls; no query, or no document, in common.
        InputTypeError, ColumnError
            Another type than those above; a column that is missing or ambiguous.

        Examples
        --------
        >>> rankings = Rankings.from_qrels_run({"q1": {"a": 1, "b": 2}}, {"q1": {"b": 0.5, "c": 0.9}})
        >>> rankings.doc_ids.to_pylist(), rankings.relevance, rankings.is_judged
        (['c', 'b'], array([0, 2]), array([False,  True]))
        >>> Rankings.from_qrels_run({"u1": {"a", "b"}}, {"u1": ["b", "c"]}).relevance
        array([1, 0])
        """
        from fastndcg.tables.joins import check_options
        from fastndcg.tables.shapes import side_of_data

        named = Roles.of(roles, "from_qrels_run", (*OF_ONE_TABLE, *OF_TEXT)).with_intents(intents)
        check_options(missing, ties)
        judged = side_of_data("qrels", qrels, "relevance", named, intents=bool(intents))
        return cls._from_sides(judged, side_of_data("run", run, "score", named), missing, ties, named.nan)

    def with_scores(self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False) -> Self:
        """Return the same documents with the scores (n_docs,) of another system. All other arrays are shared.

        `nan` and `ascending` are as in `from_offsets`, whose errors it raises for scores.

        >>> bm25 = Rankings.from_lists([[1, 0], [0, 2]], [[0.5, 0.1], [0.9, 0.3]])
        >>> rerank = bm25.with_scores([0.5, 0.1, 0.2, 0.3])
        >>> rerank.scores, rerank.relevance is bm25.relevance
        (array([0.5, 0.1, 0.2, 0.3]), True)
        """
        other = self._with_scores(scores, nan=nan, ascending=ascending)
        return examined(other, {"ascending": ascending})

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
        locator: Locator = BY_ROW,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """`from_offsets` without sanity checks, for arrays that are not a user's."""
        return cls._of(**cast_columns(offsets, relevance, scores, locator, **columns))

    @classmethod
    def _from_sides(
        cls,
        qrels: Side,
        run: Side,
        missing: Missing = "zero",
        ties: TieOrder = "docid_desc",
        nan: NaN = "refuse",
    ) -> Self:
        """Rankings of judgments and a run. Warns if they look wrong."""
        from fastndcg.tables.joins import join

        rankings = cls._of(**join(qrels, run, missing, ties, nan, must_meet=True))
        return run_sanity_checks(rankings, names_of_sides(qrels, run), ranks_of(run))

    def _with_scores(self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False) -> Self:
        """`with_scores` without sanity checks, for a system in training."""
        values = cast_scores(scores, ascending=ascending)
        check_length("scores", len(values), self.n_docs, "document")
        # cached facts about grades and queries apply to all systems
        shared = {name: getattr(self, name) for name in ("_grades", "_longest", "query_ids", "queries")}
        return self._of(**self.__dict__ | shared | {"scores": checked_scores(values, nan, self._locator)})

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
        ids = self.__dict__["_query_ids"]
        return pa.array(np.arange(self.n_queries, dtype=np.int64)) if ids is None else ids

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
        lowest, highest, are_whole = float("inf"), float("-inf"), True
        for values in self._judged_grades():
            if len(values):
                lowest, highest = min(lowest, values.min().item()), max(highest, values.max().item())
                blocks = (values[i : i + _BLOCK] for i in range(0, len(values), _BLOCK))
                is_float = values.dtype.kind == "f"
                are_whole = are_whole and (
                    not is_float or all((np.floor(each) == each).all() for each in blocks)
                )
        return Grades(lowest, highest, are_whole) if lowest <= highest else Grades(0, 0, True)

    @cached_property
    def _distinct_grades(self) -> Array:
        """All grades of scored and judged documents once, ascending, as float64 or their integer dtype."""
        distinct = [
            np.unique(values[block : block + _BLOCK])
            for values in self._judged_grades()
            for block in range(0, len(values), _BLOCK)
        ]
        return np.unique(np.concatenate(distinct)) if distinct else np.empty(0, self.relevance.dtype)

    @cached_property
    def _longest(self) -> int:
        """Number of documents in the longest list, scored or judged."""
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

    def __getitem__(self, part: slice | Sequence[Any] | npt.NDArray[Any]) -> Self:
        """Return the rankings of some queries: a slice, without a copy; a mask, with a bool for each query;
        or a list of ids, in its order.

        >>> from fastndcg import Rankings
        >>> rankings = Rankings.from_lists([[3, 0], [1, 2, 0]], query_ids=["q1", "q7"])
        >>> rankings[1:]
        Rankings(1 query, 3 documents, relevance int64, scores int64)
        >>> rankings[["q7", "q1"]].lengths, rankings[rankings.lengths > 2].query_ids.to_pylist()
        (array([3, 2]), ['q7'])
        """
        if not isinstance(part, slice) or part.step not in (None, 1):
            return self._chosen(self._rows_of(part))
        start, stop, _ = part.indices(self.n_queries)
        return self._chosen(slice(start, max(start, stop)))

    def _rows_of(self, chosen: Any) -> Int64:
        """Return the indices of the queries of a mask, or of a list of ids."""
        if isinstance(chosen, str | bytes | Mapping) or np.ndim(chosen) != 1:
            raise InputTypeError(
                f"a {type(chosen).__name__} does not choose queries; expected a slice of step 1, as in "
                "rankings[100:200], a mask, a bool for each query, or a list of ids, as in "
                'rankings[["q1", "q7"]]'
            )
        values = np.asarray(chosen)
        if values.dtype.kind == "b":
            check_length("the mask", len(values), self.n_queries, "query")
            return np.flatnonzero(values)
        import pyarrow.compute as pc

        ids = decode(combine(self.query_ids))
        try:
            asked = pa.array(chosen) if len(values) else ids[:0]
            rows = pc.index_in(plain(asked).cast(ids.type), ids).fill_null(-1).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            rows = np.full(len(values), -1)
        if (rows < 0).any():
            unknown, known = values[rows < 0].tolist(), count_of(self.n_queries, "query")
            raise InputError(f"query {unknown[0]!r} is not among {known}; see rankings.query_ids")
        if len(np.unique(rows)) < len(rows):
            raise InputError("an id appears twice in the list; name each query once")
        return np.asarray(rows, np.int64)

    def _chosen(self, rows: slice | Int64) -> Self:
        """The queries of these rows, in this order; those of a slice without a copy."""
        fields = self.__getstate__() | {"_query_ids": self.query_ids}
        if not isinstance(rows, slice):
            fields["_first_row"] = None
        elif fields["_first_row"] is not None:
            fields["_first_row"] += int(self.offsets[rows.start])
        fields["offsets"], documents = _entries(self.offsets, rows)
        of = dict.fromkeys(_OF_QUERIES, rows) | dict.fromkeys(_OF_DOCUMENTS, documents)
        if self.judged is not None:
            of["judged_intents"] = _entries(self.judged.offsets, rows)[1]
        fields |= {name: _taken(fields[name], each) for name, each in of.items() if fields[name] is not None}
        return self._of(**fields)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in _STATE}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # unpickled arrays are not read-only, and Numba would compile every kernel a second time for
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

    @property
    def _rows_of_run(self) -> Int64 | None:
        """The row of each document in the run, (n_docs,), where joining moved documents of a query."""
        rows: Int64 | None = self.__dict__["_rows"]
        return rows

    @property
    def _locator(self) -> Locator:
        """Names of documents and queries for messages."""
        return Locator(self.offsets, self.__dict__["_query_ids"], self.__dict__["_first_row"])

    def _name_of(self, query: int) -> str:
        """The id of a query for messages."""
        return self._locator.name_of(query)


def _entries(offsets: Int64, rows: slice | Int64) -> tuple[Int64, slice | Int64]:
    """Offsets of these lists alone, and the rows of their entries."""
    if isinstance(rows, slice):
        entries = slice(int(offsets[rows.start]), int(offsets[rows.stop]))
        return read_only(offsets[rows.start : rows.stop + 1] - entries.start), entries
    lengths = np.diff(offsets)[rows]
    return read_only(offsets_from(lengths)), runs_of(offsets[rows], lengths)


def _taken(column: Any, rows: slice | Int64) -> Any:
    """These entries, in this order. In a tuple, such as `JudgedPool`, columns follow offsets."""
    if isinstance(column, tuple):
        offsets, entries = _entries(column[0], rows)
        return type(column)(offsets, *(_taken(each, entries) for each in column[1:]))
    if isinstance(rows, slice):
        return column[rows]
    return read_only(column[rows]) if isinstance(column, np.ndarray) else column.take(pa.array(rows))


# attributes in pickles: those that the class declares, and five more. `_first_row` is the number of the first
# row in the user's data, for messages; None if its rows were reordered. `_rows` has the row of each document
# in the run if joining moved documents within queries, for tools that rank in that order
_STATE = (*Rankings.__annotations__, "_query_ids", "_query_name", "_kept", "_first_row", "_rows")
# attributes with an entry for each query, and for each document
_OF_QUERIES = ("_query_ids", "_kept", "weight", "judged", "intent_probabilities")
_OF_DOCUMENTS = ("relevance", "scores", "is_judged", "doc_ids", "propensity", "intents", "_rows")
