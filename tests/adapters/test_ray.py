"""Ray Data for real, in worker processes: values bit for bit those of this process, skew, readable errors, workers that die."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import ColumnError, InputError, InputTypeError, MeasureError

engines.need("ray")

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it would ask, or call home

import ray  # noqa: E402 - after the check that it is there, and the setting
import ray.data  # noqa: E402

from fastndcg.adapters import ray as fnr  # noqa: E402

pytestmark = [
    pytest.mark.host,
    # Ray's own, of its settings, logs and sockets
    pytest.mark.filterwarnings("ignore:`.*` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    engines.importable_by_workers()
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=256 << 20,
            configure_logging=False,
            log_to_driver=False,
            _temp_dir=folder,
            # Ray ends idle workers after a second, and each new one imports everything: 9 s a test, where it
            # is 0.2 s
            _system_config={"idle_worker_killing_time_threshold_ms": 600_000, "num_workers_soft_limit": 6},
        )
        for name in ("ray", "ray.data"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.default_hash_shuffle_parallelism = 4
        yield
        ray.shutdown()


def dataset(table: pa.Table, blocks: int = 3) -> ray.data.Dataset:
    size = -(-len(table) // blocks) or 1
    return ray.data.from_arrow([table.slice(start, size) for start in range(0, max(len(table), 1), size)])


def rows_of(results: ray.data.Dataset) -> list[tuple[Any, ...]]:
    return engines.rows_of(results.take_all())


def without_keep(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name != "keep"}


# ---- values ----


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in engines.IDS if kind != "text view"])  # Ray reads none
def test_ids_of_every_type(kind: str, grouped: bool) -> None:
    table = engines.documents_of(kind, grouped=grouped)
    results = fnr.evaluate(dataset(table), "nDCG", query="qid", keep="also", grouped=grouped)
    found = [part for part in ray.get(results.to_arrow_refs()) if len(part)]
    engines.check_ids(pa.concat_tables(found), table)


@pytest.mark.parametrize("text", [False, True])
def test_queries_that_stand_together_are_scored_where_they_are(text: bool) -> None:
    table = engines.documents(60, text=text).sort_by([("qid", "ascending"), ("position", "ascending")])
    expected, rows = engines.here(table), dataset(table, 5)
    results = fnr.evaluate(rows, engines.MEASURES, grouped=True, **engines.COLUMNS)
    assert rows_of(results) == engines.rows_of(expected.to_arrow())
    found = fnr.summary(rows, engines.MEASURES, grouped=True, quartiles=True, **without_keep(engines.COLUMNS))
    assert engines.rows_of(found.to_arrow()) == engines.rows_of(expected.summary().to_arrow())


def test_queries_that_do_not_stand_together_are_refused() -> None:
    table, name = engines.apart(engines.documents(60))
    wanted = rf"^query {name} stands in several places of the data. grouped=True takes"
    with pytest.raises(InputError, match=wanted), fnr.plain_errors():
        fnr.evaluate(dataset(table, 4), "nDCG", query="qid", grouped=True).take_all()
    with pytest.raises(InputError, match=wanted):
        fnr.summary(dataset(table, 4), "nDCG", query="qid", grouped=True)


@pytest.mark.parametrize("name", [name for name in engines.PARTITIONS if name != "nothing"])
def test_queries_that_stand_together_in_any_blocks(name: str) -> None:
    tables = engines.PARTITIONS[name]
    expected = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS)
    results = fnr.evaluate(
        ray.data.from_arrow(tables), engines.CLICKED, grouped=True, **engines.OF_PARTITIONS
    )
    assert rows_of(results) == engines.rows_of(expected.to_arrow())


@pytest.mark.parametrize("name", engines.BAD_PARTITIONS)
def test_queries_that_do_not_stand_together_in_some_blocks(name: str) -> None:
    tables, message = engines.BAD_PARTITIONS[name]
    rows = ray.data.from_arrow([table.select(["qid", "label", "score"]) for table in tables])
    with pytest.raises(InputError, match=message):
        fnr.summary(rows, "nDCG", nan="last", grouped=True)


def test_propensities_and_intents_are_read() -> None:
    table = engines.clicked(engines.documents(60))
    expected = engines.here(table, engines.CLICKED, **engines.OF_CLICKS)
    results = fnr.evaluate(dataset(table), engines.CLICKED, **engines.OF_CLICKS)
    assert rows_of(results) == engines.rows_of(expected.to_arrow())


@pytest.mark.parametrize("text", [False, True])
def test_values_are_those_of_this_process(text: bool) -> None:
    table = engines.documents(300, text=text)
    rows = dataset(table)
    results = fnr.evaluate(rows, engines.MEASURES, **engines.COLUMNS).materialize()
    local = engines.here(table)
    expected = local.to_arrow()
    assert results.columns() == expected.column_names
    assert results.schema().base_schema.field("country").type == pa.string()
    assert rows_of(results) == engines.rows_of(expected)
    summary = fnr.summary(rows, engines.MEASURES, quartiles=True, **without_keep(engines.COLUMNS))
    assert engines.rows_of(summary.to_arrow()) == engines.rows_of(local.summary().to_arrow())
    means = fnr.means(results, engines.MEASURES, by="country", weight="weight")
    by_country = local.by("country").sort_by("country")
    assert means.schema == by_country.schema
    assert list(map(engines.bits_of, means.to_pylist())) == list(map(engines.bits_of, by_country.to_pylist()))


@pytest.mark.parametrize("blocks", [1, 2, 150])
def test_any_blocks_and_ties_in_the_order_of_a_column(blocks: int) -> None:
    """From more blocks than Ray joins at once, to more than there are queries, and to some that it would cut if it cut any."""
    table = engines.documents(100)
    rows = dataset(table, 40)
    rows.context.target_max_block_size = 100
    measures = [*engines.MEASURES, engines.BY_ORDER]
    results = fnr.evaluate(rows, measures, order="position", partitions=blocks, **engines.COLUMNS)
    assert rows_of(results) == engines.rows_of(engines.here(table, measures).to_arrow())


def test_lists() -> None:
    table = engines.listed(engines.documents(100))
    measures = [*engines.MEASURES, engines.BY_ORDER]
    expected = engines.rows_of(engines.here(engines.documents(100), measures).to_arrow())
    assert rows_of(fnr.evaluate(dataset(table), measures, **engines.COLUMNS)) == expected


def test_conventions() -> None:
    table = engines.documents(100)
    rows = dataset(table)
    columns = {**engines.COLUMNS, **engines.ORDERED}
    for name in ("trec_eval", "lightgbm"):
        local = engines.here(table, engines.BY_CONVENTION, convention=name, doc_id="position")
        results = fnr.evaluate(rows, engines.BY_CONVENTION, convention=name, **columns)
        assert rows_of(results) == engines.rows_of(local.to_arrow())
        summary = fnr.summary(
            rows, engines.BY_CONVENTION, convention=name, quartiles=True, **without_keep(columns)
        )
        assert engines.rows_of(summary.to_arrow()) == engines.rows_of(local.summary().to_arrow())
    with pytest.raises(
        MeasureError, match=r"^recpack does not define the order of ties, and query \S+ has tied"
    ):
        fnr.summary(rows, "nDCG", convention="recpack")


def test_frames_of_pandas() -> None:
    table = engines.documents(100, text=True)
    rows = ray.data.from_pandas([table.slice(0, 500).to_pandas(), table.slice(500).to_pandas()])
    expected = engines.rows_of(engines.here(table).to_arrow())
    assert rows_of(fnr.evaluate(rows, engines.MEASURES, **engines.COLUMNS)) == expected


def test_one_long_query_among_many_small_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    long, queries = 1_000_000, 200_000
    ids = np.concatenate([np.full(long, 77), rng.integers(0, queries, queries)])
    rng.shuffle(ids)
    table = pa.table(
        {
            "qid": ids,
            "label": rng.integers(0, 3, len(ids), np.int8),
            "score": rng.random(len(ids), np.float32),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=200_000)
    fnr.evaluate(ray.data.read_parquet(tmp_path / "rows.parquet"), "nDCG@10").write_parquet(
        tmp_path / "results"
    )
    found = pq.read_table(tmp_path / "results").sort_by("qid")
    expected = fn.evaluate(fn.Rankings.from_arrow(table), "nDCG@10").to_arrow().sort_by("qid")
    assert found.equals(expected)


def test_nothing() -> None:
    rows = dataset(engines.documents(0), 1)
    assert fnr.evaluate(rows, "AP", keep="country").take_all() == []
    (row,) = fnr.summary(rows, "AP").rows
    assert row["queries"] == 0 and np.isnan(row["mean"])


# ---- errors ----


def test_errors_name_the_query_in_one_line() -> None:
    table = engines.documents(50, text=True)
    bad = np.array(table["qid"]) == "query 62"
    for column, values, message in (
        (
            "score",
            np.where(bad, np.nan, table["score"]),
            r'column "score" has [\d,]+ NaN values?; the first is in query "query 62"\. Drop',
        ),
        (
            "label",
            pa.array(table["label"].to_numpy(), mask=bad),
            r'column "label" has [\d,]+ nulls?; the first is in query "query 62"\. Drop',
        ),
    ):
        rows = dataset(table.set_column(table.column_names.index(column), column, pa.array(values)))
        with pytest.raises(InputError, match=f"^{message}") as caught, fnr.plain_errors():
            fnr.evaluate(rows, "AP").take_all()
        assert "\n" not in str(caught.value)
        with pytest.raises(InputError, match=f"^{message}"):
            fnr.summary(rows, "AP")
    last = fnr.evaluate(
        dataset(table.set_column(2, "score", pa.array(np.where(bad, np.nan, table["score"])))),
        "AP",
        nan="last",
    )
    lowest = table.set_column(2, "score", pa.array(np.where(bad, -np.inf, table["score"])))
    assert rows_of(last) == engines.rows_of(fn.evaluate(fn.Rankings.from_arrow(lowest), "AP").to_arrow())


def test_other_errors_pass() -> None:
    def broken(_: pa.Table) -> pa.Table:
        raise KeyError("nowhere")

    rows = dataset(engines.documents(5)).map_batches(broken, batch_format="pyarrow")
    with pytest.raises(Exception, match="nowhere") as caught, fnr.plain_errors():
        rows.take_all()
    assert "fastndcg" not in type(caught.value).__module__


def test_refused_before_anything_runs() -> None:
    rows = dataset(engines.documents(5))
    with pytest.raises(ColumnError, match='there is no column "points" for score'):
        fnr.evaluate(rows, "AP", score="points")
    with pytest.raises(InputTypeError, match='column "country" is string; wanted scores'):
        fnr.summary(rows, "AP", score="country")
    with pytest.raises(MeasureError, match="name a column that numbers the documents of a query"):
        fnr.evaluate(rows, "AP(ties='input')")
    with pytest.raises(InputTypeError, match="df is a pyarrow Table; wanted a Dataset of Ray"):
        fnr.evaluate(engines.documents(5), "AP")
    with pytest.raises(ColumnError, match='there is no column "AP" for measures'):
        fnr.means(rows, "AP")


# ---- workers that fail ----


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    table = engines.documents(100)
    measure = fn.CG(gain=engines.Deadly(tmp_path / "died", kills=True)) @ 3
    found = fnr.evaluate(dataset(table), measure, **engines.COLUMNS)
    expected = engines.here(table, fn.CG(gain=engines.steep) @ 3).to_arrow()
    assert rows_of(found) == engines.rows_of(expected)
    assert (tmp_path / "died").exists()


# ---- recipes ----


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "predictions.parquet")
    example = engines.page_example("Ray")
    for name in ("predictions.parquet", "scores"):  # workers do not follow a change of folder
        example = example.replace(f'"{name}"', repr(str(tmp_path / name)))
    exec(example, {})  # noqa: S102 - the page's own lines
    shown = capsys.readouterr().out
    engines.check_example(table, shown)
