"""`Rankings`: grades, scores and ids of many queries, made by named constructors, which check all input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from fastndcg.errors import InputTypeError
from fastndcg.rankings.casts import JudgedPool as JudgedPool  # noqa: PLC0414 - a public name of this module, too
from fastndcg.rankings.checks import with_columns
from fastndcg.rankings.grouping import group_by_query
from fastndcg.rankings.oddities import examined
from fastndcg.rankings.shapes import flat_of_lists, flat_of_matrices, in_query_order, offsets_of_groups
from fastndcg.rankings.value import Value
from fastndcg.sources.columns import OF_ONE_TABLE, Roles, with_roles, with_roles_of_both

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


class Rankings(Value):
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
            that are not relevant may be left out.
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
        if grouped.codes is None:
            return cls.from_offsets(
                grouped.offsets, relevance, scores, query_ids=grouped.query_ids, **columns
            )
        flat, given = in_query_order(grouped, relevance, scores, columns)
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
        flat = flat_of_matrices(y_true, y_score, mask, columns.get("unjudged", "refuse"))
        return examined(cls._from_offsets(*flat, **columns), columns)

    @classmethod
    @with_columns
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
        >>> import pyarrow as pa
        >>> table = pa.table({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
        >>> Rankings.from_arrow(table)
        Rankings(2 queries, 3 documents, relevance int64, scores float64)
        """
        from fastndcg.sources.frames import rankings_from_arrow

        return rankings_from_arrow(data, Roles.of(roles, "from_arrow"))

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

    def with_scores(self, scores: npt.ArrayLike, *, nan: NaN = "refuse", ascending: bool = False) -> Self:
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
        other = self._with_scores(scores, nan=nan, ascending=ascending)
        return examined(other, {"ascending": ascending})
