"""What holds in every engine. The tests of an engine inherit `Laws`, and their fixture `engine` is its row of the table."""

import gzip
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import engines
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import ColumnError, InputError, InputTypeError, MeasureError, SourceError
from fastndcg.adapters import splits


@dataclass(frozen=True)
class Engine:
    """How tests hand tables to an engine, and read what it returns."""

    adapter: Any
    # a table in several partitions
    frame: Callable[[pa.Table], Any]
    # the same, with the types that it has
    read: Callable[[pa.Table], Any]
    # tables, each of them a partition
    of_partitions: Callable[[list[pa.Table]], Any]
    # results as dicts, and in Arrow
    collect: Callable[[Any], list[dict[str, Any]]]
    arrow: Callable[[Any], pa.Table]
    # names of `engines.IDS` and `engines.PARTITIONS` that it cannot read
    lacks: frozenset[str] = frozenset()
    # names of `engines.IDS` that it reads as another type of them
    alike: frozenset[str] = frozenset()
    # whether its partitions are frames of pandas, which have NaN for nulls, and texts of types of their own
    is_of_pandas: bool = False
    # whether a job takes it so long that of several ways each is checked with results or with their summary
    is_slow: bool = False
    # what functions of files take first
    session: tuple[Any, ...] = ()

    def evaluate(self, df, measures, **options):
        """Rows of the results, whose errors are plain."""
        with self.plain_errors():
            return self.rows(self.adapter.evaluate(df, measures, **options))

    def summary(self, df, measures, **options):
        return self.adapter.summary(df, measures, **options)

    def rows(self, results):
        return engines.rows_of(self.collect(results))

    def plain_errors(self):
        return getattr(self.adapter, "plain_errors", nullcontext)()

    def check(self, df, local, measures, *, only=None, files=False, **options):
        """Results and summary, or one of them, of a table or of files, beside those of this process."""
        given, of = ((*self.session, df), "_files") if files else ((df,), "")
        if only != "summary":
            with self.plain_errors():
                found = self.rows(getattr(self.adapter, f"evaluate{of}")(*given, measures, **options))
            assert found == engines.rows_of(local.to_arrow())
        if only != "results":
            summary = getattr(self.adapter, f"summary{of}")
            check_summary(summary(*given, measures, **without_keep(options)), local)

    def check_files(self, paths, local, measures, **options):
        self.check(paths, local, measures, files=True, **options)


def check_summary(found, local):
    numbers = found.to_arrow()
    assert engines.rows_of(numbers) == engines.rows_of(
        local.summary().to_arrow().select(numbers.column_names)
    )
    assert found.signatures == local._all_signatures()


def without_keep(columns):
    return {name: value for name, value in columns.items() if name != "keep"}


def exact(table):
    return list(map(engines.bits_of, table.to_pylist()))


def in_order_of_queries(table):
    return table.sort_by([("qid", "ascending"), ("position", "ascending")])


def replace(table, name, column):
    return table.set_column(table.column_names.index(name), name, column)


def run_page(heading, table, folder, capsys):
    """The example of `docs/engines.md`. Workers and the JVM do not follow a change of folder."""
    pq.write_table(table, folder / "predictions.parquet")
    example = engines.page_example(heading)
    for name in ("predictions.parquet", "scores"):
        example = example.replace(f'"{name}"', repr(str(folder / name)))
    exec(example, {})  # noqa: S102 - the page's own lines
    engines.check_example(table, capsys.readouterr().out)


def odd_values():
    """A column, a value that is refused there, and what is said where query 62 has it."""
    query = r'; the first is in query "query 62"\. Drop'
    yield "score", np.nan, rf'^column "score" has [\d,]+ NaN values?{query}'
    yield "label", None, rf'^column "label" has [\d,]+ nulls?{query}'
    yield "qid", None, r'^column "qid" has [\d,]+ nulls?\. Drop those rows\.'


class Laws:
    # ---- values ----

    @pytest.mark.parametrize("kind", engines.IDS)
    def test_ids_of_every_type(self, engine, kind):
        if kind in engine.lacks | engine.alike:
            pytest.skip(f"the engine reads no {kind}")
        table = engines.documents_of(kind, grouped=False)
        results = engine.adapter.evaluate(engine.read(table), "nDCG", query="qid", keep="also")
        engines.check_ids(engine.arrow(results), table)

    @pytest.mark.parametrize("text", [False, True])
    def test_values_are_those_of_this_process(self, engine, text):
        table = engines.documents(300, text=text)
        df, local = engine.frame(table), engines.here(table)
        engine.check(df, local, engines.MEASURES, partitions=4, **engines.COLUMNS)
        results = engine.adapter.evaluate(df, engines.MEASURES, **engines.COLUMNS)
        assert list(results.columns() if callable(results.columns) else results.columns) == (
            local.to_arrow().column_names
        )
        found = engine.adapter.means(results, engines.MEASURES, by="country", weight="weight")
        expected = local.by("country").sort_by("country")
        assert engine.is_of_pandas or found.schema == expected.schema
        assert exact(found) == exact(expected)

    def test_arrays(self, engine):
        table, measures = engines.documents(100), [*engines.MEASURES, engines.BY_ORDER]
        df = engine.frame(engines.listed(table))
        expected = engines.rows_of(engines.here(table, measures).to_arrow())
        assert engine.evaluate(df, measures, **engines.COLUMNS) == expected

    @pytest.mark.parametrize("name", ["trec_eval", "lightgbm", "tf_ranking"])
    def test_conventions(self, engine, name):
        table, columns = engines.documents(100), engines.COLUMNS | engines.ORDERED
        df = engine.frame(table)
        local = engines.here(table, engines.BY_CONVENTION, convention=name, doc_id="position")
        engine.check(df, local, engines.BY_CONVENTION, convention=name, **columns)
        undefined = r"^recpack does not define the order of ties, and query \S+ has tied"
        with pytest.raises(MeasureError, match=undefined):
            engine.summary(df, "nDCG", convention="recpack")

    def test_one_query_of_most_rows_among_many_small_ones(self, engine):
        rng = np.random.default_rng(0)
        long, queries = (
            500_000,
            400_000,
        )  # many batches of Arrow, and more queries than one part of a pass has
        ids = np.concatenate([np.full(long, 77), rng.integers(0, queries, queries)])
        rng.shuffle(ids)
        labels, scores = rng.integers(0, 3, len(ids), np.int8), rng.random(len(ids), np.float32)
        table = pa.table({"qid": ids, "label": labels, "score": scores})
        found = engine.arrow(engine.adapter.evaluate(engine.frame(table), "nDCG@10")).sort_by("qid")
        expected = fn.evaluate(fn.Rankings.from_arrow(table), "nDCG@10").to_arrow().sort_by("qid")
        assert found.cast(expected.schema).equals(expected)

    def test_nothing(self, engine):
        nothing = engine.frame(engines.documents(0))
        (row,) = engine.summary(nothing, "AP").rows
        assert row["queries"] == 0 and np.isnan(row["mean"])
        scores = engine.adapter.evaluate(nothing, "AP", keep="country")
        assert engine.collect(scores) == []

    @pytest.mark.parametrize("name", ["empty ones", "one query", "nothing"])
    def test_any_partitions(self, engine, name):
        if name in engine.lacks:
            pytest.skip("the engine cannot tell lists without a row from texts")
        tables = engines.PARTITIONS[name]
        local = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS)
        df, only = engine.of_partitions(tables), "summary" if engine.is_slow else None
        engine.check(df, local, engines.CLICKED, only=only, **engines.OF_PARTITIONS)

    # ---- errors ----

    @pytest.mark.parametrize(("column", "value", "message"), [*odd_values()])
    def test_errors_name_the_query_in_one_line(self, engine, column, value, message):
        if value is None and engine.is_of_pandas:
            pytest.skip("the engine has NaN where numbers have nulls")
        table = engines.documents(50, text=True)
        kind = table.schema.field(column).type
        bad = pc.if_else(pc.equal(table["qid"], "query 62"), pa.scalar(value, kind), table[column])
        df = engine.frame(replace(table, column, bad))
        for run in (engine.evaluate, engine.summary):
            with pytest.raises(InputError, match=message) as caught:
                run(df, "AP")
            assert "\n" not in str(caught.value)

    def test_columns_that_differ_within_a_query_are_refused(self, engine):
        table = engines.documents(40, text=True)
        changed, of_query = table["country"].to_pylist(), np.flatnonzero(pc.equal(table["qid"], "query 62"))
        for row in of_query:
            changed[row] = "de" if row != of_query[-1] else None
        df = engine.frame(replace(table, "country", pa.array(changed)))
        message = '^column "country" differs within query "query 62": (None, "de"|"de", None)'
        with pytest.raises(InputError, match=message):
            engine.evaluate(df, "AP", **engines.COLUMNS)

    def test_columns_that_are_kept_have_the_values_and_types_of_the_data(self, engine):
        table = engines.documents(80)
        odd, third = pc.equal(pc.bit_wise_and(table["qid"], 1), 1), pc.divide(table["qid"], 3)
        kept = {
            "is_odd": odd,
            "part": pc.if_else(
                pc.equal(pc.bit_wise_and(table["qid"], 3), 2), float("nan"), third.cast(pa.float64())
            ),
            "name": pc.if_else(odd, "odd", pc.cast(third, pa.string())),
        }
        for name, column in kept.items():
            table = table.append_column(name, column)
        columns = engines.COLUMNS | {"keep": ["country", *kept], "nan": "last"}
        local = engines.here(table, ["AP"], **columns)
        assert repr(engine.evaluate(engine.frame(table), ["AP"], **columns)) == repr(
            engines.rows_of(local.to_arrow())
        )

    def test_columns_of_scores_are_systems(self, engine, tmp_path):
        table, measures = engines.documents(80), ["nDCG@10", "AP(rel=2)"]
        table = table.append_column(
            "other", pc.multiply(table["score"], pc.bit_wise_and(table["position"], 3))
        )
        columns = engines.COLUMNS | {"score": ["score", "other"]}
        local = {name: engines.here(table, measures, score=name) for name in columns["score"]}
        names = ["qid", "country", "weight", "system", *measures]
        expected = [
            engines.bits_of(row) | {"system": name}
            for name, scores in local.items()
            for row in scores.to_arrow().to_pylist()
        ]

        def in_order(rows):
            return sorted(rows, key=lambda row: (row["qid"], row["system"]))

        (tmp_path / "files").mkdir()
        engines.write_files(tmp_path / "files", in_order_of_queries(table))
        df, paths = engine.frame(table), (*engine.session, tmp_path / "files")
        results = engine.adapter.evaluate(df, measures, **columns)
        of_files = engine.adapter.evaluate_files(*paths, measures, **columns)
        for found in map(engine.arrow, [results, of_files]):
            assert sorted(found.column_names) == sorted(names)
            assert in_order(exact(found)) == in_order(expected)
        columns = without_keep(columns)
        summaries = (
            engine.summary(df, measures, **columns),
            engine.adapter.summary_files(*paths, measures, **columns),
        )
        of_systems = [
            {"system": name} | row for name, scores in local.items() for row in scores.summary().rows
        ]
        for found in summaries:
            numbers = found.to_arrow()
            assert exact(numbers) == exact(pa.Table.from_pylist(of_systems).select(numbers.column_names))
            assert found.signatures == local["score"]._all_signatures()
        means = engine.adapter.means(results, measures, by="system", weight="weight").to_pylist()
        assert {row["system"]: row["nDCG@10"] for row in means} == {
            name: scores.mean()["nDCG@10"] for name, scores in local.items()
        }
        for wrong, message in (
            ([], "score names no column"),
            (["score", "points"], 'no column "points" for'),
        ):
            with pytest.raises(ColumnError, match=message):
                engine.adapter.evaluate(df, "AP", query="qid", score=wrong)

    def test_keys_of_several_columns(self, engine, tmp_path):
        table = engines.documents(120)
        number = table["qid"].to_numpy() // 7
        table = table.append_column("session", pa.array(number // 2)).append_column(
            "day", pa.array([("mon, 1", "tue")[place % 2] for place in number])
        )
        columns = engines.COLUMNS | {"query": ["session", "day"]}
        local = engines.here(table, **columns)
        assert local.queries.column_names[:3] == ["session, day", "session", "day"]
        engine.check(engine.frame(table), local, engines.MEASURES, **columns)
        (tmp_path / "files").mkdir()
        engines.write_files(tmp_path / "files", in_order_of_queries(table))
        engine.check_files(tmp_path / "files", local, engines.MEASURES, **columns)

    def test_ids_that_are_whole_doubles(self, engine):
        table = engines.documents(60)
        doubles = replace(table, "qid", pc.cast(table["qid"], pa.float64()))
        local = engines.here(doubles, ["AP"])
        assert pa.types.is_integer(local.queries["qid"].type)
        engine.check(engine.frame(doubles), local, ["AP"], **engines.COLUMNS)
        halves = replace(table, "qid", pc.divide(doubles["qid"], 2.0))
        with pytest.raises(
            InputTypeError, match='column "qid" is double; expected query ids that are integers'
        ):
            engine.summary(engine.frame(halves), "AP", query="qid")

    def test_refused_before_anything_runs(self, engine):
        df, wanted = engine.frame(engines.documents(5)), engine.adapter.evaluate
        with pytest.raises(InputTypeError, match='column "country" is .*string; expected scores'):
            engine.summary(df, "AP", score="country")
        with pytest.raises(InputTypeError, match=r"df is a pyarrow Table; expected a Data(Frame|set) of "):
            wanted(engines.documents(5), "AP")
        with pytest.raises(InputTypeError, match="evaluate has no argument grouped=; it takes"):
            wanted(df, "AP", grouped=True)
        with pytest.raises(ColumnError, match='there is no column "AP" for measures'):
            engine.adapter.means(df, "AP")
        scores = wanted(df, "AP", keep="country")
        with pytest.raises(ColumnError, match='there is no column "lang" for by'):
            engine.adapter.means(scores, "AP", by="lang")

    # ---- files ----

    @pytest.mark.parametrize("way", engines.FILES)
    def test_files(self, engine, way, tmp_path, monkeypatch):
        monkeypatch.setattr(splits, "_BYTES", 20_000)  # several shares, and blocks
        table = engines.documents(120, text=way in ("any", "cut", "lists"))
        engines.FILES[way](tmp_path, table)
        columns, measures = engines.COLUMNS, [*engines.MEASURES, engines.BY_ORDER]
        local = fn.evaluate(fn.read_parquet(tmp_path, **columns), measures)
        for name, more in {"results": {}, "summary": {"partitions": 3}}.items():
            only = name if engine.is_slow else None
            engine.check_files(str(tmp_path), local, measures, only=only, **columns, **more)

    @pytest.mark.parametrize("kind", engines.IDS)
    def test_files_with_ids_of_every_type(self, engine, kind, tmp_path, monkeypatch):
        if kind in engine.alike:
            pytest.skip("the engine has another type for these ids")
        monkeypatch.setattr(splits, "_BYTES", 100)
        table = engines.documents_of(kind, grouped=len(kind) % 2 == 0)
        engines.write_files(tmp_path, table, group=5)
        found = engine.adapter.evaluate_files(*engine.session, tmp_path, "nDCG", query="qid", keep="also")
        engines.check_ids(engine.arrow(found), table)

    @pytest.mark.parametrize(("column", "value", "message"), [*odd_values()])
    def test_errors_of_files(self, engine, column, value, message, tmp_path):
        table = engines.documents(50, text=True)
        kind = table.schema.field(column).type
        bad = pc.if_else(pc.equal(table["qid"], "query 62"), pa.scalar(value, kind), table[column])
        engines.write_files(tmp_path, replace(table, column, bad))
        with pytest.raises(InputError, match=message):
            engine.adapter.summary_files(*engine.session, tmp_path, "AP")
        with pytest.raises(ColumnError, match='there is no column "points" for score'):
            engine.adapter.evaluate_files(*engine.session, tmp_path, "AP", score="points")
        with pytest.raises(InputTypeError, match="evaluate_files has no argument order=; it takes"):
            engine.adapter.evaluate_files(*engine.session, tmp_path, "AP", order="position")
        with pytest.raises(SourceError, match="nowhere does not exist"):
            engine.adapter.summary_files(*engine.session, tmp_path / "nowhere", "AP")
        (tmp_path / "rows.csv").write_text("qid,label,score\n1,1,0.5\n")
        (tmp_path / "rows.parquet.gz").write_bytes(gzip.compress((tmp_path / "0.parquet").read_bytes()))
        for name, what in (("rows.csv", "CSV"), ("rows.parquet.gz", "packed")):
            with pytest.raises(
                SourceError, match=rf"{name} is {what}; expected Parquet, of which each worker"
            ):
                engine.adapter.evaluate_files(*engine.session, tmp_path / name, "AP")
