"""Functions that Spark, Dask and Ray have alike: they are the methods of one `Engine` in each module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from fastndcg.adapters import aggregates, shuffle
from fastndcg.adapters.protocol import Flow, Frame
from fastndcg.adapters.worker import FileKeywords, Keywords, Options
from fastndcg.errors import InputError
from fastndcg.statistics.intervals import check_confidence
from fastndcg.tables.roles import Function, with_roles

if TYPE_CHECKING:
    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary
    from fastndcg.typing import Path


_OF_FILES, _OF_TABLES = ("grouped",), ("order",)  # options that functions of the other lack


def _of_tables(function: Function) -> Function:
    return with_roles(function, Options, without=_OF_FILES)


def _of_files(function: Function) -> Function:
    return with_roles(function, Options, without=_OF_TABLES)


class Engine(Flow[Frame]):
    """What users call: tables of an engine in, its tables or numbers out."""

    @_of_tables
    def evaluate(self, df: Frame, measures: Measures, **options: Unpack[Keywords]) -> Frame:
        """Compute the value of each measure for each query, as a lazy table with a row for each query.

        The engine computes it when the result is used, and raises errors of the data then.

        Parameters
        ----------
        df : table of the engine
            A row for each document, in any order, or a row for each query with lists, which are not shuffled.
            Of Parquet files, `evaluate_files` takes a fraction of the time.
        measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
        query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
            As in `fastndcg.read_parquet`, as are `nan`, `rank`, `ascending`, `unjudged` and `grades`.
        order : str, optional
            Column that numbers the documents of a query. Measures with ties="input" need it, because a
            shuffle keeps no order. Lists have the order of their elements.
        convention : name or Convention, optional
            Compute as this tool does, as in `fastndcg.evaluate`. Tools that take ties in input order need
            `order`, and those that order ties by document id need `doc_id`.
        partitions : int, optional
            Number of partitions that queries are distributed to. Default: `spark.sql.shuffle.partitions` on
            Spark, the number of partitions of the data on Dask, and `default_hash_shuffle_parallelism` of the
            `DataContext` on Ray.

        Returns
        -------
        table of the engine
            The query id and kept columns under their own names and in their own types, the weight if there is
            one, and a column of doubles for each measure under its notation, in no defined order of rows.

        Raises
        ------
        ColumnError, MeasureError, InputTypeError
            A column is missing, or several fit a role; ties="input" without `order`; data of another engine.
        InputError
            When the result is computed: NaN scores and all else that `fastndcg.evaluate` refuses.
        """
        engine = self._of_table(df)
        plan = engine._plan(df, measures, Options.of(options, "evaluate", without=_OF_FILES))
        return engine._results(plan, df)

    @_of_files
    def evaluate_files(
        self, paths: Path | Iterable[Path], measures: Measures, **options: Unpack[FileKeywords]
    ) -> Frame:
        """As `evaluate`, of files that workers read themselves: the engine passes no rows of sorted files,
        and packed rows of others once.

        Parameters
        ----------
        paths : str, path, or several of them
            Parquet, also in hive partitions, as `fastndcg.read_parquet` takes it: files, folders, patterns or
            URIs that this process and all workers see. They are read fastest where row groups hold ascending
            or descending ids, which footers tell.
        measures, options
            As in `evaluate`, without `order`: ties in input order take the order of rows in the files.
        grouped : bool
            True if the rows of a query are contiguous, though footers do not say it. Only queries at the
            edges of shares are moved then. All query ids are compared, and an error names a query whose rows
            are not contiguous.

        Raises as `fastndcg.read_parquet` and `evaluate` do, at once; and `InputError` or `SourceError` when
        the result is computed: for all that `fastndcg.evaluate` refuses, and a file that changed meanwhile.
        """
        with self.plain_errors():
            asked = Options.of(options, "evaluate_files", without=_OF_TABLES)
            plan = self._plan_of_files(paths, measures, asked)
        return self._results(plan)

    @_of_files
    def summary_files(
        self,
        paths: Path | Iterable[Path],
        measures: Measures,
        *,
        quartiles: bool = False,
        confidence: float | None = None,
        **options: Unpack[FileKeywords],
    ) -> Summary:
        """As `summary`, of files as in `evaluate_files`, with the errors of both."""
        if confidence is not None:
            check_confidence(confidence)
        asked = Options.of({**options, "keep": ()}, "summary_files", without=_OF_TABLES)
        with self.plain_errors():
            plan = self._plan_of_files(paths, measures, asked, sums=True, values=quartiles)
            return self._summary(plan, None, confidence)

    @_of_tables
    def summary(
        self,
        df: Frame,
        measures: Measures,
        *,
        quartiles: bool = False,
        confidence: float | None = None,
        **options: Unpack[Keywords],
    ) -> Summary:
        """Mean, standard deviation, extremes, and numbers of queries and of empty queries of measures.

        It computes immediately, from exact sums: the numbers are those of `Scores.summary`, bit for bit, and
        `signatures` of the result are those of `Scores.signature`.

        Parameters
        ----------
        df, measures, options
            As in `evaluate`; `keep` has no effect.
        quartiles : bool
            True adds quartiles. The values of a measure then meet in one worker, 8 bytes for each query.
        confidence : float, optional
            For example 0.95: adds confidence intervals of the means, `low` to `high`, as `Scores.summary`
            does.

        Raises as `evaluate` does, at once, and without the traces of the engine.
        """
        if confidence is not None:
            check_confidence(confidence)
        asked = Options.of({**options, "keep": ()}, "summary", without=_OF_FILES)
        engine = self._of_table(df)
        with self.plain_errors():
            plan = engine._plan(df, measures, asked, sums=True, values=quartiles)
            return engine._summary(plan, df, confidence)

    def means(
        self,
        scores: Frame,
        measures: Measures,
        *,
        by: str | Sequence[str] | None = None,
        weight: str | None = None,
        confidence: float | None = None,
    ) -> pa.Table:
        """Exact means of values that `evaluate` computed, over all queries or each group of queries.

        It computes immediately. Workers send one another exact sums, and the caller a row for each group. To
        compute values once for several uses, persist the result of `evaluate`, or write it and read it back.

        Parameters
        ----------
        scores : the result of `evaluate`
            It has a column for each measure, under its notation. Values by a convention are refused, since
            their mean needs more than the values: `summary` computes it.
        measures : one or several of Measure, notation, or ir_measures object
        by : str or sequence of str, optional
            Kept columns to group by.
        weight : str, optional
            Column with the weight of each query: "weight" in the result of `evaluate`.
        confidence : float, optional
            For example 0.95: adds `small`, true for groups of fewer than 30 queries, and after each mean its
            interval, `_low` to `_high`.

        Returns
        -------
        pyarrow.Table
            The columns of `by`, ascending with null last; `queries`, the number of queries; and the mean of
            each measure, correctly rounded. With `by=None`, one row without columns to group by.

        Raises `ColumnError` for a missing column, and as `evaluate` if its values are computed only now.
        """
        self._check("scores", scores)
        engine = self._of_table(scores)
        with self.plain_errors():
            schema = engine._schema(scores)
            asked = aggregates.check_means(
                schema.names, measures, by=by, weight=weight, confidence=confidence
            )
            kinds = [schema.field(name).type for name in asked.by]
            blocks = engine._blocks(scores) if asked.by else 1
            pack = partial(shuffle.groups_of_tables, asked, blocks)
            packed = engine._of_rows(scores, asked.names, pack, shuffle.SCHEMA)
            merge = partial(shuffle.merged, asked, kinds)
            found = engine._collected(
                engine._then(engine._exchanged(packed, blocks), merge, aggregates.FOUND)
            )
        nothing = aggregates.means_of(asked, kinds, [])
        if not asked.by:
            return found[0] if found else nothing
        return pa.concat_tables([nothing, *found]).sort_by([(name, "ascending") for name in asked.by])

    @_of_tables
    def anchors(self, df: Frame, measures: Measures, **options: Unpack[Keywords]) -> Summary:
        """Means of the worst, a random, the actual and the best order of documents: `Anchors.summary` of
        `fastndcg.anchors`, bit for bit.

        It computes immediately, from exact sums, as `summary` does. `keep` has no effect, and `convention` is
        refused. Other errors are those of `evaluate` and `fastndcg.anchors`.
        """
        asked = Options.of({**options, "keep": ()}, "anchors", without=_OF_FILES)
        engine = self._of_table(df)
        if asked.convention is not None:
            raise InputError(f"convention={asked.convention!r} has no anchors; leave it out")
        with self.plain_errors():
            return engine._summary(engine._plan(df, measures, asked, sums=True, anchors=True), df)
