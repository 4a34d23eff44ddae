"""`Rankings`: grades, scores and ids of many queries, made by named constructors, which check all input."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from fastndcg.errors import InputTypeError
from fastndcg.rankings.sanity_checks import examined
from fastndcg.rankings.value import Value
from fastndcg.tables.checks import JudgedPool as JudgedPool  # noqa: PLC0414 - a public name of this module, too
from fastndcg.tables.checks import cast_columns
from fastndcg.tables.grouping import group_by_query
from fastndcg.tables.layouts import flat_of_lists, flat_of_matrices, in_query_order, offsets_of_groups
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, with_roles, with_roles_of_both

if TYPE_CHECKING:
    from typing import Self

    import numpy.typing as npt

    from fastndcg.typing import (
        Columns,
        ColumnsAndIds,
        JoinKeywords,
        Missing,
        NaN,
        RoleKeywords,
        TieOrder,
    )

Function = TypeVar("Function", bound=Callable[..., Any])


def with_columns(function: Function) -> Function:
    """Show the `**columns` of a constructor as keywords in `help` and in notebooks."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    known = inspect.signature(cast_columns).parameters.values()
    more = [
        each for each in known if each.kind is each.KEYWORD_ONLY and each.name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return function


class Rankings(Value):
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

    def __init__(self, *_: object, **__: object) -> None:
        raise InputTypeError(
            "Rankings is made by its named constructors: from_offsets, from_groups, from_query_ids, "
            "from_dense, from_lists, from_arrow"
        )

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
            intent for which it was not judged. Or the three arrays of `IntentGrades`.
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
        flat, given = in_query_order(group_by_query(query_ids), relevance, scores, columns)
        return examined(cls._from_offsets(*flat, **given), columns)

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
        from fastndcg.sources.frames import source_of

        return source_of(data).choose(Roles.of(roles, "from_arrow")).read()

    @classmethod
    @with_roles_of_both
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
        keep, weight, rank, ascending, unjudged, grades, types
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

    def with_scores(self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False) -> Self:
        """The same documents with the scores (n_docs,) of another system. All other arrays are shared.

        `nan` and `ascending` are as in `from_offsets`, whose errors it raises for scores.

        >>> bm25 = Rankings.from_lists([[1, 0], [0, 2]], [[0.5, 0.1], [0.9, 0.3]])
        >>> rerank = bm25.with_scores([0.5, 0.1, 0.2, 0.3])
        >>> rerank.scores, rerank.relevance is bm25.relevance
        (array([0.5, 0.1, 0.2, 0.3]), True)
        """
        other = self._with_scores(scores, nan=nan, ascending=ascending)
        return examined(other, {"ascending": ascending})
