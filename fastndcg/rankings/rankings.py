"""`Rankings`: grades, scores and ids of many queries. All input is checked here; other code trusts it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import (
    OR_UNJUDGED,
    arrow_column,
    as_array,
    offsets_from,
    parts_of,
    read_only,
    split_unjudged,
    unmask,
)
from fastndcg.common.arrow_types import array_of, combine, decode
from fastndcg.common.later import pa
from fastndcg.common.table import quoted
from fastndcg.errors import (
    Argument,
    At,
    InputError,
    InputTypeError,
    Step,
    check_choice,
    check_length,
    count_of,
    warn,
)
from fastndcg.rankings.casts import JudgedPool as JudgedPool  # noqa: PLC0414 - a public name of this module, too
from fastndcg.rankings.casts import (
    cast_column,
    cast_flags,
    cast_integers,
    cast_offsets,
    cast_pool,
    cast_queries,
    cast_relevance,
    cast_rows,
    cast_scores,
    cast_weight,
    check_end,
    flatten,
)
from fastndcg.rankings.grouping import group_by_query
from fastndcg.rankings.intents import IntentGrades, IntentProbabilities, intent_grades, probabilities
from fastndcg.sources.columns import OF_ONE_TABLE, Roles, with_roles

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.typing import (
        Columns,
        ColumnsAndIds,
        JoinKeywords,
        Missing,
        NaN,
        RoleKeywords,
        TieOrder,
        Unjudged,
    )

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

R = TypeVar("R", bound="Rankings")
_FEWEST = 20  # queries that are examined for oddities
_BLOCK = 1 << 20  # rows that a check looks at together, so that its temporary arrays stay small
_TOGETHER = 1 << 16  # rows whose document ids are compared together: their hash table stays in the cache


class Grades(NamedTuple):
    """Facts about all grades that kernels need: grades of scored documents and of the pool."""

    lowest: float
    highest: float
    whole: bool  # every grade is an integer


class Rankings:
    """Ragged rankings of many queries. They are immutable, and only the named constructors make them.

    Query `q` owns the rows `offsets[q]:offsets[q + 1]` of `relevance` and `scores`. A query may have one
    document or none.

    Attributes
    ----------
    offsets : int64, (n_queries + 1,)
    relevance : any integer or float dtype, (n_docs,)
        Grade of each scored document.
    scores : float32, float64 or integer, (n_docs,)
        The system's scores, higher is better; compared in their own precision.
    judged : JudgedPool or None
        All judged documents of each query. None: only the scored documents were judged.
    is_judged : bool, (n_docs,), or None
        False where a scored document is unjudged. None: all are judged. A negative `relevance` of an unjudged
        document says that it was in the pool; infAP counts such documents.
    doc_ids : pyarrow array, (n_docs,), or None
    weight : float64, (n_queries,), or None
        Weight of each query in the mean.
    intents : IntentGrades, a list for each document, or None
        Grades of the scored documents for each intent of their query.
    judged_intents : IntentGrades, a list for each document of `judged`, or None
    intent_probabilities : IntentProbabilities, a list for each query, or None
        None: the intents of a query are equally likely.
    propensity : float64, (n_docs,), or None
        Probability that a document's relevance was observed, for measures with `ips`.
    queries : pyarrow.Table, n_queries rows
        The query id under the user's own name (`query_id` where it has none), then the kept query-level
        columns, then `weight` if any.

    Notes
    -----
    Arrays are used without a copy if their dtype and layout allow it, as read-only views. Do not change an
    array while a `Rankings` uses it.

    Examples
    --------
    >>> Rankings.from_offsets([0, 2, 5], [1, 0, 2, 0, 1], [0.3, 0.9, 0.8, 0.7, 0.1])
    Rankings(2 queries, 5 documents, relevance int64, scores float64)
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

    # ---- constructors ----

    @classmethod
    def from_offsets(
        cls,
        offsets: npt.ArrayLike,
        relevance: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        judged: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        is_judged: npt.ArrayLike | None = None,
        doc_ids: Any = None,
        query_ids: Any = None,
        weight: npt.ArrayLike | None = None,
        queries: Any = None,
        nan: NaN = "refuse",
        ascending: bool = False,
        unjudged: Unjudged = "refuse",
        intents: Any = None,
        judged_intents: Any = None,
        intent_probabilities: Any = None,
        propensity: npt.ArrayLike | None = None,
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
            that are not relevant may be left out.
        is_judged : bool, (n_docs,), optional
            False where a scored document is unjudged; such a document keeps its rank and gains nothing.
        doc_ids : (n_docs,), optional
        query_ids : (n_queries,), optional
            Default: 0, 1, 2, ...
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
            Arrow list array, or a matrix (n_docs, n_intents); None for an intent for which it was not judged.
            Or the three arrays of `IntentGrades`.
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
        >>> Rankings.from_offsets([0, 1, 3], [1, 0, 2], [0.5, 0.1, 0.9]).lengths
        array([1, 2])
        """
        rankings = cls._from_offsets(
            offsets,
            relevance,
            scores,
            judged=judged,
            is_judged=is_judged,
            doc_ids=doc_ids,
            query_ids=query_ids,
            weight=weight,
            queries=queries,
            nan=nan,
            ascending=ascending,
            unjudged=unjudged,
            intents=intents,
            judged_intents=judged_intents,
            intent_probabilities=intent_probabilities,
            propensity=propensity,
        )
        return _examined(rankings, ascending=ascending)

    @classmethod
    def _from_offsets(
        cls,
        offsets: npt.ArrayLike,
        relevance: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        judged: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        is_judged: npt.ArrayLike | None = None,
        doc_ids: Any = None,
        query_ids: Any = None,
        weight: npt.ArrayLike | None = None,
        queries: Any = None,
        nan: NaN = "refuse",
        ascending: bool = False,
        unjudged: Unjudged = "refuse",
        intents: Any = None,
        judged_intents: Any = None,
        intent_probabilities: Any = None,
        propensity: npt.ArrayLike | None = None,
    ) -> Self:
        """`from_offsets` without a look at oddities, for what is not a user's array."""
        checked = cast_offsets("offsets", offsets)
        grades = cast_relevance("relevance", relevance, unjudged)
        values = cast_scores(scores, ascending=ascending)
        n_queries, n_docs = len(checked) - 1, len(grades)
        if n_docs != len(values):
            raise InputError(
                f"relevance has {count_of(n_docs, 'value')} and scores {len(values):,}; "
                "give both for each document"
            )
        check_end("offsets", checked, n_docs, "relevance")
        flags = None if is_judged is None else cast_flags(is_judged, n_docs)
        if unjudged == "null":
            grades, flags = split_unjudged(grades, flags)
        self = cls._of(
            offsets=checked,
            relevance=read_only(grades),
            scores=values,
            _query_ids=None if query_ids is None else arrow_column("query_ids", query_ids, n_queries),
            _query_name="query_id",
            _kept=cast_queries(queries, n_queries),
            doc_ids=None if doc_ids is None else arrow_column("doc_ids", doc_ids, n_docs),
            is_judged=flags,
            judged=None if judged is None else cast_pool(judged, n_queries),
            _first_row=0,
            **dict.fromkeys(("weight", "intents", "judged_intents", "intent_probabilities", "propensity")),
        )
        if weight is not None:
            self.__dict__["weight"] = cast_weight(weight, n_queries, self._name_of)
        self._check_scores(nan)
        self._check_grades()
        self._check_pool()
        self._check_doc_ids()
        self._add_intents(intents, judged_intents, intent_probabilities)
        if propensity is not None:
            self.__dict__["propensity"] = _cast_propensity(propensity, self)
        return self

    @classmethod
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
        sizes = cast_integers("group", group)
        if sizes.size and sizes.min() < 0:
            first = int(np.argmax(sizes < 0))
            raise InputError(
                f"group has a negative size, {sizes[first]} at position {first}; "
                "each is the number of documents of a query"
            )
        total = int(sizes.sum())
        rows = len(as_array("relevance", relevance, columns.get("unjudged", "refuse")))
        if total != rows:
            raise InputError(
                f"group adds up to {count_of(total, 'document')}, but relevance has {rows:,}; "
                "give the size of every query, in row order"
            )
        rankings = cls._from_offsets(offsets_from(sizes), relevance, scores, **columns)
        return _examined(rankings, ascending=columns.get("ascending", False))

    @classmethod
    def from_query_ids(
        cls, query_ids: Any, relevance: npt.ArrayLike, scores: npt.ArrayLike, **columns: Unpack[Columns]
    ) -> Self:
        """Rankings from the query id of each row, rows in any order.

        Queries keep the order of their first appearance, and the documents of a query the order of their
        rows. Rows that are already grouped by query are not copied.

        Parameters
        ----------
        query_ids : (n_docs,)
            Integers, strings, or any Arrow or pandas column that is not floating point.
        relevance, scores : (n_docs,)
        columns
            The keywords of `from_offsets` except `query_ids`. `weight`, `queries` and `judged` have an entry
            for each query, in order of first appearance.

        Raises
        ------
        InputError
            Null ids, and all that `from_offsets` refuses.

        Examples
        --------
        >>> shuffled = Rankings.from_query_ids(["b", "a", "b"], [1, 2, 0], [0.5, 0.1, 0.9])
        >>> shuffled.queries["query_id"].to_pylist(), shuffled.relevance
        (['b', 'a'], array([1, 0, 2]))
        """
        grouped = group_by_query(query_ids)
        given = (relevance, scores, columns.copy())
        if grouped.codes is not None:
            n_rows = len(grouped.codes)
            grades = cast_relevance("relevance", relevance, columns.get("unjudged", "refuse"))
            relevance, scores = grouped.in_order(
                cast_rows("relevance", grades, n_rows), cast_rows("scores", scores, n_rows)
            )
        if any(name in columns for name in ("is_judged", "propensity", "intents", "doc_ids")) and (
            (rows := grouped.rows) is not None
        ):
            if columns.get("is_judged") is not None:
                columns["is_judged"] = cast_rows("is_judged", columns["is_judged"], len(rows))[rows]
            if columns.get("propensity") is not None:
                columns["propensity"] = cast_rows("propensity", columns["propensity"], len(rows))[rows]
            if columns.get("intents") is not None:
                columns["intents"] = intent_grades("intents", columns["intents"], len(rows)).take(rows)
            if columns.get("doc_ids") is not None:
                doc_ids = arrow_column("doc_ids", columns["doc_ids"], len(rows))
                columns["doc_ids"] = doc_ids.take(pa.array(rows))
        try:
            rankings = cls._from_offsets(
                grouped.offsets, relevance, scores, query_ids=grouped.query_ids, **columns
            )
        except InputError as error:
            if grouped.codes is not None:
                error = _fault_of_rows(grouped.query_ids.take(pa.array(grouped.codes)), *given) or error
            raise error from None
        if grouped.codes is not None:
            rankings = rankings._with(_first_row=None)
        return _examined(rankings, ascending=columns.get("ascending", False))

    @classmethod
    def from_dense(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        *,
        mask: npt.ArrayLike | None = None,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """Rankings from two matrices, a row for each query.

        Parameters
        ----------
        y_true, y_score : (n_queries, n_docs_per_query)
        mask : bool, (n_queries, n_docs_per_query), optional
            False at the padding of a batch. The values of the matrices there are ignored.
        columns
            The keywords of `from_offsets`. Columns of documents have an entry for each document, without
            padding.

        Raises
        ------
        InputError
            Shapes that differ or are not 2-D, and all that `from_offsets` refuses.

        Examples
        --------
        >>> Rankings.from_dense([[1, 0, 2], [0, 1, 0]], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
        Rankings(2 queries, 6 documents, relevance int64, scores float64)
        """
        rankings = cls._from_dense(y_true, y_score, mask, **columns)
        return _examined(rankings, ascending=columns.get("ascending", False))

    @classmethod
    def _from_dense(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike,
        mask: npt.ArrayLike | None = None,
        **columns: Unpack[ColumnsAndIds],
    ) -> Self:
        """`from_dense` without a look at oddities."""
        true = np.asarray(unmask("y_true", y_true, columns.get("unjudged", "refuse")))
        score = np.asarray(unmask("y_score", y_score))
        if true.ndim != 2 or true.shape != score.shape:
            raise InputError(
                f"y_true has shape {true.shape} and y_score {score.shape}; "
                "wanted two equal shapes (n_queries, n_docs_per_query)"
            )
        n_queries, width = true.shape
        if mask is not None:
            kept = np.asarray(unmask("mask", mask))
            if kept.shape != true.shape or kept.dtype != np.bool_:
                raise InputError(
                    f"mask has shape {kept.shape} and dtype {kept.dtype}; "
                    f"wanted True and False in the shape of y_true, {true.shape}"
                )
            places = np.nonzero(kept)[1]
            return cls._of_lists(offsets_from(kept.sum(axis=1)), true[kept], score[kept], columns, places)
        offsets = np.arange(n_queries + 1, dtype=np.int64) * width
        return cls._of_lists(offsets, true.ravel(), score.ravel(), columns)

    @classmethod
    def from_lists(cls, relevance: Any, scores: Any = None, **columns: Unpack[ColumnsAndIds]) -> Self:
        """Rankings from a list for each query. Without `scores`, the lists are in rank order, best first.

        Parameters
        ----------
        relevance, scores : n_queries lists or arrays, of any lengths; or an Arrow list array
        columns
            The keywords of `from_offsets`.

        Raises
        ------
        InputError
            The two lists of a query differ in length (the message names the query), and all that
            `from_offsets` refuses.

        Examples
        --------
        >>> Rankings.from_lists([[3, 0], [1, 2, 0]]).scores
        array([1, 0, 2, 1, 0])
        """
        lengths, flat = flatten("relevance", relevance, columns.get("unjudged", "refuse"))
        offsets = offsets_from(lengths)
        if scores is None:
            if columns.get("ascending"):
                raise InputError(
                    "ascending is True and there are no scores; lists without scores stand in rank order, "
                    "best first"
                )
            rank_order = np.repeat(offsets[1:], lengths) - np.arange(1, len(flat) + 1)
            return _examined(cls._of_lists(offsets, flat, rank_order, columns), ascending=False)
        score_lengths, flat_scores = flatten("scores", scores)
        if len(score_lengths) != len(lengths):
            raise InputError(
                f"scores has {count_of(len(score_lengths), 'list')} and relevance {len(lengths):,}; "
                "give one of each for every query"
            )
        if not np.array_equal(lengths, score_lengths):
            query = int(np.argmax(lengths != score_lengths))
            raise InputError(
                f"query {query} has {count_of(lengths[query], 'grade')} "
                f"and {count_of(score_lengths[query], 'score')}; give one score for each document"
            )
        rankings = cls._of_lists(offsets, flat, flat_scores, columns)
        return _examined(rankings, ascending=columns.get("ascending", False))

    @classmethod
    def _of_lists(
        cls,
        offsets: Int64,
        relevance: Array,
        scores: Array,
        columns: ColumnsAndIds,
        places: Int64 | None = None,
    ) -> Self:
        """`from_offsets`, whose messages name positions in lists: `places` of documents, if with gaps."""

        def placed(at: At, row: int) -> At:
            start = offsets[np.searchsorted(offsets, row, side="right") - 1]
            return at._replace(row=None, position=int(row - start if places is None else places[row]))

        try:
            return cls._from_offsets(offsets, relevance, scores, **columns)
        except InputError as error:
            parts = (
                placed(part, part.row) if isinstance(part, At) and part.row is not None else part
                for part in error.parts
            )
            raise type(error)(*parts) from None

    @classmethod
    @with_roles
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
        nan : "refuse" or "last"
            "last" ranks documents whose score is NaN or null below all others.
        rank : str, optional
            Column of ranks in place of scores: 1 is the best.
        ascending : bool
            True: the lowest score is the best, as for distances.
        unjudged : "refuse" or "null"
            "null": a document whose grade is null or NaN is unjudged, as if its `is_judged` were false.
        grades : mapping, optional
            The grade of each word, if the column of grades holds words: `{"perfect": 2, "fair": 1, "bad":
            0}`.

        Raises
        ------
        ColumnError
            A column is missing, or several columns fit a role that was not named.
        InputError
            Nulls in a needed column, and all that `from_offsets` refuses.

        Examples
        --------
        >>> table = pa.table({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
        >>> Rankings.from_arrow(table)
        Rankings(2 queries, 3 documents, relevance int64, scores float64)
        """
        from fastndcg.sources.arrow import rankings_from_arrow

        return rankings_from_arrow(data, Roles.of(roles, "from_arrow"))

    @classmethod
    @with_roles
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
            Dicts of dicts (query -> document -> number), dicts of lists (relevant documents, each of grade 1;
            or a ranking, best first), of judgments also dicts of sets; tables that `from_arrow` accepts;
            ir_measures' Qrel and ScoredDoc tuples; ranx's Qrels and Run; or paths, as `read_qrels_run` takes
            them. A number in one is the same id as its text in the other.
        missing, ties, nan
            As in `read_trec`. `missing`: "zero" counts every query of the qrels, "skip" only queries in both.
            `ties`: the order of tied documents for measures with ties="input". `nan`: refuse NaN scores, or
            rank them last.
        query, doc_id, relevance, score : str, optional
            Columns of tables. Default: the usual names.
        keep, weight, rank, ascending, unjudged, grades
            As in `read_qrels_run`. Kept columns and weights come from the judgments, which must be a table.
            `grades=1` gives every judgment that grade.
        intents : bool or str
            True: each judgment is for one intent. Dicts hold it as query -> document -> intent -> number,
            tables in a column with a usual name, tuples as `iteration`. A string names the column.

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
        from fastndcg.sources.trec import rankings_from_qrels_run

        named = Roles.of(roles, "from_qrels_run", OF_ONE_TABLE)
        return rankings_from_qrels_run(qrels, run, named, missing, ties, intents)

    def _add_intents(self, intents: Any, judged_intents: Any, intent_probabilities: Any) -> None:
        fields = self.__dict__
        if intents is None:
            for name, value in (
                ("judged_intents", judged_intents),
                ("intent_probabilities", intent_probabilities),
            ):
                if value is not None:
                    raise InputError(
                        f"{name} is given without intents; give those of the scored documents too"
                    )
            return
        fields["intents"] = intent_grades("intents", intents, self.n_docs)
        if (judged_intents is None) != (self.judged is None):
            given, missing = (
                ("judged", "judged_intents") if judged_intents is None else ("judged_intents", "judged")
            )
            raise InputError(
                f"{given} is given without {missing}; with intents, the pool has a grade and a list "
                "of intent grades for each document"
            )
        if self.judged is not None:
            fields["judged_intents"] = intent_grades(
                "judged_intents", judged_intents, len(self.judged.relevance)
            )
        if intent_probabilities is not None:
            fields["intent_probabilities"] = probabilities(
                "intent_probabilities", intent_probabilities, self.n_queries, self._name_of
            )
            self._check_probabilities()

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

    def _with(self, **fields: Any) -> Self:
        """The same rankings with other values of these fields, which are not checked."""
        return self._of(**self.__dict__ | fields)

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
                whole = whole and (values.dtype.kind != "f" or _are_whole(values))
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
    def _with_pooled(self) -> Rankings | None:
        """The rankings if unjudged documents of the pool have negative grades; otherwise None."""
        if self.is_judged is None or self.relevance.dtype.kind not in "if":
            return None
        pooled = (self.relevance < 0) & ~self.is_judged
        if not pooled.any():
            return None
        return Rankings._of(**self.__getstate__() | {"is_judged": read_only(self.is_judged | pooled)})

    def _grade_arrays(self) -> tuple[Array, ...]:
        return (self.relevance,) if self.judged is None else (self.relevance, self.judged.relevance)

    def _judged_grades(self) -> tuple[Array, ...]:
        """Grades of judged documents; `relevance` of unjudged documents is never used."""
        scored, *pool = self._grade_arrays()
        return (scored if self.is_judged is None else scored[self.is_judged], *pool)

    def with_scores(self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False) -> Rankings:
        """The same documents with the scores of another system. All other arrays are shared.

        Parameters
        ----------
        scores : (n_docs,)
            A score for each document, in the order of `relevance`.
        nan, ascending
            As in `from_offsets`.

        Raises
        ------
        InputError
            The wrong number of scores, or NaN among them.
        InputTypeError
            An array that does not hold numbers.

        Examples
        --------
        >>> bm25 = Rankings.from_lists([[1, 0], [0, 2]], [[0.5, 0.1], [0.9, 0.3]])
        >>> rerank = bm25.with_scores([0.5, 0.1, 0.2, 0.3])
        >>> rerank.scores, rerank.relevance is bm25.relevance
        (array([0.5, 0.1, 0.2, 0.3]), True)
        """
        return _examined(self._with_scores(scores, nan=nan, ascending=ascending), ascending=ascending)

    def _with_scores(
        self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False
    ) -> Rankings:
        """`with_scores` without a look at oddities, for a system that is still being trained."""
        values = cast_scores(scores, ascending=ascending)
        check_length("scores", len(values), self.n_docs, "document")
        # cached facts about grades and queries hold for all systems
        shared = {name: getattr(self, name) for name in ("_grades", "_longest", "query_ids", "queries")}
        other = Rankings._of(**self.__dict__ | shared | {"scores": values})
        other._check_scores(nan)
        return other

    def __len__(self) -> int:
        return self.n_queries

    def __getitem__(self, part: slice) -> Rankings:
        """The rankings of consecutive queries, without a copy.

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
        for names, rows in ((_OF_QUERIES, slice(start, stop)), (_OF_DOCUMENTS, slice(first, last))):
            fields |= {name: fields[name][rows] for name in names if fields[name] is not None}
        fields["offsets"] = read_only(self.offsets[start : stop + 1] - first)
        if self.intents is not None:
            fields["intents"] = self.intents.part(first, last)
        if self.intent_probabilities is not None:
            fields["intent_probabilities"] = self.intent_probabilities.part(start, stop)
        if self.judged is not None:
            pool_first, pool_last = (int(self.judged.offsets[query]) for query in (start, stop))
            offsets = read_only(self.judged.offsets[start : stop + 1] - pool_first)
            fields["judged"] = JudgedPool(offsets, self.judged.relevance[pool_first:pool_last])
            if self.judged_intents is not None:
                fields["judged_intents"] = self.judged_intents.part(pool_first, pool_last)
        return Rankings._of(**fields)

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
        from fastndcg.common.table import html_table

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

    # ---- checks ----

    def _check_scores(self, nan: NaN) -> None:
        check_choice("nan", nan, ("refuse", "last"))
        scores = self.scores
        if scores.dtype.kind != "f" or not len(scores) or not np.isnan(scores.min()):
            return
        missing = np.isnan(scores)
        if nan == "last":
            self.__dict__["scores"] = read_only(np.where(missing, scores.dtype.type(-np.inf), scores))
            return
        raise InputError(
            f"scores has {count_of(int(missing.sum()), 'NaN value')}",
            self._at(int(np.argmax(missing)), first=True),
            ". Drop those rows",
            Step(" or pass ", Argument("nan", "last")),
            ".",
        )

    def _check_grades(self) -> None:
        for name, values in zip(("relevance", "judged relevance"), self._grade_arrays(), strict=False):
            if (
                values.dtype.kind != "f"
                or not len(values)
                or (np.isfinite(values.min()) and np.isfinite(values.max()))
            ):
                continue
            bad = ~np.isfinite(values)
            first = int(np.argmax(bad))
            where = self._at(first) if name == "relevance" else f" at row {first} of the pool"
            raise InputError(
                f"{name} has {count_of(int(bad.sum()), 'value that is not finite')}; "
                f"the first is {values[first]}",
                where,
                ". Drop those rows",
                *(OR_UNJUDGED if name == "relevance" and np.isnan(values[bad]).all() else ()),
                ".",
            )

    def _check_pool(self) -> None:
        """Warn if a pool has fewer relevant documents than were scored: R, AP and nDCG may exceed 1."""
        if self.judged is None:
            return
        found = self.relevance > 0 if self.is_judged is None else (self.relevance > 0) & self.is_judged
        returned = _counts_of(found, self.offsets)
        pooled = _counts_of(self.judged.relevance > 0, self.judged.offsets)
        lacking = np.flatnonzero(returned > pooled)
        if len(lacking):
            query = int(lacking[0])
            warn(
                f"judged lacks documents that were scored, in {count_of(len(lacking), 'query')}: "
                f"query {self._name_of(query)} has {count_of(int(returned[query]), 'scored document')} with "
                f"a grade above 0 and {pooled[query]} in its pool, so that R, AP and nDCG may pass 1. "
                "The pool holds all judged documents of a query, returned or not: add these to it, or say ",
                Argument("is_judged", False),
                " of them.",
            )

    def _check_doc_ids(self) -> None:
        """Raise `InputError` for a document that occurs twice in a query; null is not an id."""
        if self.doc_ids is None:
            return
        for part in parts_of(self.lengths, _TOGETHER):
            first, last = part.start, part.stop
            start, stop = int(self.offsets[first]), int(self.offsets[last])
            coded = combine(decode(self.doc_ids[start:stop]).dictionary_encode())
            codes = array_of(coded.indices, -1)
            query = np.repeat(np.arange(last - first), np.diff(self.offsets[first : last + 1]))
            keys = query * len(coded.dictionary) + codes
            keys = np.sort(keys[codes >= 0] if coded.indices.null_count else keys)
            twice = np.flatnonzero(keys[1:] == keys[:-1])
            if len(twice):
                of_query, code = divmod(int(keys[twice[0]]), len(coded.dictionary))
                name = coded.dictionary[code].as_py()
                raise InputError(
                    f"document {quoted(name)} of query {self._name_of(first + of_query)} is there twice. "
                    "A document has one entry for a query: drop one of the two."
                )

    def _check_probabilities(self) -> None:
        """Raise `InputError` for an intent without a probability."""
        chances = self.intent_probabilities
        if chances is None:
            return
        pools = [(self.offsets, self.intents)]
        if self.judged is not None:
            pools.append((self.judged.offsets, self.judged_intents))
        for offsets, intents in pools:
            if intents is None:
                continue
            entries = intents.offsets[offsets]
            query = np.repeat(np.arange(self.n_queries), np.diff(entries))
            beyond = intents.numbers >= np.diff(chances.offsets)[query]
            if beyond.any():
                entry = int(np.argmax(beyond))
                known = int(np.diff(chances.offsets)[query[entry]])
                raise InputError(
                    f"intent_probabilities has {known} for query {self._name_of(int(query[entry]))}, "
                    f"which has an intent number {intents.numbers[entry]}; "
                    "give one for each intent, numbered from 0"
                )

    def _at(self, row: int, *, first: bool = False) -> At:
        """Row and query of a document, for messages.

        >>> str(Rankings.from_groups([2, 1], [1, 0, 2], [0.5, 0.1, 0.9], query_ids=["a", "b"])._at(2))
        ' at row 2, query "b"'
        """
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        first_row = self.__dict__["_first_row"]
        return At(None if first_row is None else row + first_row, self._name_of(query), first)

    def _name_of(self, query: int) -> str:
        """The id of a query for messages: strings are quoted."""
        return quoted(self.query_ids[query].as_py())


# attributes that a pickle holds: those that the class declares, and four more. `_first_row` is the number of
# the first row in the user's data, for messages; None where that has another order of rows
_STATE = (*Rankings.__annotations__, "_query_ids", "_query_name", "_kept", "_first_row")
# those with an entry for each query, and for each document
_OF_QUERIES = ("_query_ids", "_kept", "weight")
_OF_DOCUMENTS = ("relevance", "scores", "is_judged", "doc_ids", "propensity")


# ---- small functions ----


def _examined(rankings: R, *, ascending: bool) -> R:
    """Rankings of a user's arrays, after a warning if they look wrong."""
    if rankings.n_queries >= _FEWEST:
        from fastndcg.sources.oddities import Names, warn_of_oddities

        names = Names(is_ordered=ascending, are_joined=rankings.judged is not None)
        warn_of_oddities(rankings, names)
    return rankings


def _fault_of_rows(
    query_ids: pa.Array, relevance: npt.ArrayLike, scores: npt.ArrayLike, columns: Columns
) -> InputError | None:
    """The first fault of documents in the user's order of rows: each row is checked as a query of its own."""
    of_rows: Any = {
        name: columns[name]
        for name in ("is_judged", "propensity", "nan", "ascending", "unjudged")
        if name in columns
    }
    try:
        Rankings._from_offsets(
            np.arange(len(query_ids) + 1), relevance, scores, query_ids=query_ids, **of_rows
        )
    except InputError as error:
        return error
    return None


def _cast_propensity(values: npt.ArrayLike, rankings: Rankings) -> npt.NDArray[np.float64]:
    array = cast_column("propensity", values, "buif", "probabilities", rankings.n_docs, "document")
    propensity = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~((propensity > 0) & (propensity <= 1))
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"propensity has {count_of(int(bad.sum()), 'value that is not above 0 and up to 1')}; "
            f"the first is {propensity[first]}",
            rankings._at(first),
            ". A propensity is the probability that the document was seen; give a small one, not 0, to "
            "what was hardly ever seen, and cut its weight with clip=.",
        )
    return read_only(propensity)


def _counts_of(chosen: npt.NDArray[np.bool_], offsets: Int64) -> Int64:
    """How many documents of each query are chosen."""
    return np.diff(np.searchsorted(np.flatnonzero(chosen), offsets))


def _are_whole(values: Array) -> bool:
    return all(
        bool((np.floor(values[i : i + _BLOCK]) == values[i : i + _BLOCK]).all())
        for i in range(0, len(values), _BLOCK)
    )
