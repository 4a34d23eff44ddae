"""Dask for real: threads, processes and a cluster of two; values bit for bit those of this process; workers that die."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engines
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import ColumnError, InputError, InputTypeError, MeasureError

engines.need("dask", "distributed")

import dask  # noqa: E402 - after the check that it is there
import dask.dataframe as dd  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from fastndcg.adapters import dask as fnd  # noqa: E402

# Dask's own, where it writes Parquet with pandas 3.1
pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings(r"ignore:The inplace keyword in DataFrame:DeprecationWarning"),
]

SCHEDULERS = ["threads", "processes", "cluster"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Client]:
    """Two worker processes; nothing runs on them unless a test makes their client the current one."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as running,
        Client(running, set_as_default=False) as client,
    ):
        client.run(os.environ.update, {"OMP_NUM_THREADS": "1"})
        yield client


@pytest.fixture
def scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cluster":
        with request.getfixturevalue("cluster").as_current():
            yield "cluster"
    else:
        with dask.config.set(scheduler=request.param, num_workers=2):
            yield request.param


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    with dask.config.set(scheduler="threads"):
        yield


def frame(table: pa.Table, partitions: int = 3, **dtypes: str) -> dd.DataFrame:
    return dd.from_pandas(table.to_pandas().astype(dtypes), npartitions=partitions)


def rows_of(results: Any) -> list[tuple[Any, ...]]:
    found = results.compute() if isinstance(results, dd.DataFrame) else results
    plain = pa.Table.from_pandas(found, preserve_index=False, nthreads=1).to_pydict()
    # NaN is a value of a measure, and null what pyarrow makes of it
    names = [name for name in plain if found[name].dtype == "float64"]
    columns = plain | {name: found[name].tolist() for name in names}
    return engines.rows_of(
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    )


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("partitions", [2, 7, 40])
def test_queries_that_stand_together_are_scored_where_they_are(text: bool, partitions: int) -> None:
    table = engines.documents(60, text=text).sort_by([("qid", "ascending"), ("position", "ascending")])
    expected, df = engines.here(table), frame(table, partitions)
    results = fnd.evaluate(df, engines.MEASURES, grouped=True, **engines.COLUMNS)
    assert list(results.columns) == list(results.compute().columns) == expected.to_arrow().column_names
    assert rows_of(results) == engines.rows_of(expected.to_arrow())
    columns = {name: value for name, value in engines.COLUMNS.items() if name != "keep"}
    found = fnd.summary(df, engines.MEASURES, grouped=True, quartiles=True, **columns)
    assert engines.rows_of(found.to_arrow()) == engines.rows_of(expected.summary().to_arrow())


def test_queries_that_do_not_stand_together_are_refused() -> None:
    table, name = engines.apart(engines.documents(60))
    df = frame(table, 4)
    wanted = rf"^query {name} stands in several places of the data. grouped=True takes"
    with pytest.raises(InputError, match=wanted):
        fnd.evaluate(df, "nDCG", query="qid", grouped=True).compute()
    with pytest.raises(InputError, match=wanted):
        fnd.summary(df, "nDCG", query="qid", grouped=True)


def of_partitions(tables: list[pa.Table]) -> dd.DataFrame:
    frames = [
        dask.delayed(table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)) for table in tables
    ]
    return dd.from_delayed(frames)


@pytest.mark.parametrize("name", engines.PARTITIONS)
def test_queries_that_stand_together_in_any_partitions(name: str) -> None:
    tables = engines.PARTITIONS[name]
    expected = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS)
    with dask.config.set({"dataframe.convert-string": False}):  # or lists would be texts
        df = of_partitions(tables)
        if name != "nothing":  # whose lists cannot be told from texts
            results = fnd.evaluate(df, engines.CLICKED, grouped=True, **engines.OF_PARTITIONS)
            assert rows_of(results) == engines.rows_of(expected.to_arrow())
            assert results.compute().dtypes.equals(results.dtypes)
            columns = {key: value for key, value in engines.OF_PARTITIONS.items() if key != "keep"}
            found = fnd.summary(df, engines.CLICKED, grouped=True, quartiles=True, **columns)
            assert engines.rows_of(found.to_arrow()) == engines.rows_of(expected.summary().to_arrow())


def test_partitions_without_rows_after_a_shuffle() -> None:
    tables = engines.PARTITIONS["one query"]
    expected = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS).to_arrow()
    with dask.config.set({"dataframe.convert-string": False}):
        results = fnd.evaluate(of_partitions(tables), engines.CLICKED, **engines.OF_PARTITIONS)
        assert rows_of(results) == engines.rows_of(expected)


@pytest.mark.parametrize("name", engines.BAD_PARTITIONS)
def test_queries_that_do_not_stand_together_in_some_partitions(name: str) -> None:
    tables, message = engines.BAD_PARTITIONS[name]
    df = of_partitions([table.select(["qid", "label", "score"]) for table in tables])
    with pytest.raises(InputError, match=message):
        fnd.evaluate(df, "nDCG", nan="last", grouped=True).compute()
    with pytest.raises(InputError, match=message):
        fnd.summary(df, "nDCG", nan="last", grouped=True)


# ---- values ----


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", engines.IDS)
def test_ids_of_every_type(kind: str, grouped: bool, tmp_path: Path) -> None:
    table = engines.documents_of(kind, grouped=grouped)
    for part, start in enumerate(range(0, len(table), 8)):
        pq.write_table(table.slice(start, 8), tmp_path / f"{part}.parquet")
    df = dd.read_parquet(tmp_path)
    found = fnd.evaluate(df, "nDCG", query="qid", keep="also", grouped=grouped).compute()
    engines.check_ids(pa.Table.from_pandas(found, preserve_index=False), table)


@pytest.mark.parametrize("scheduler", SCHEDULERS, indirect=True)
def test_values_are_those_of_this_process(scheduler: str) -> None:
    table = engines.documents(300, text=True)
    df = frame(table)
    results = fnd.evaluate(df, engines.MEASURES, **engines.COLUMNS)
    expected = engines.here(table)
    found = results.compute()
    assert list(found.columns) == expected.to_arrow().column_names
    assert found.dtypes.equals(results.dtypes)
    assert rows_of(found) == engines.rows_of(expected.to_arrow())
    summary = fnd.summary(df, engines.MEASURES, quartiles=True, confidence=0.9, **_without_keep()).to_arrow()
    assert engines.rows_of(summary) == engines.rows_of(expected.summary(confidence=0.9).to_arrow())
    means = fnd.means(results, engines.MEASURES, by="country", weight="weight").to_pylist()
    assert list(map(engines.bits_of, means)) == list(
        map(engines.bits_of, expected.by("country").sort_by("country").to_pylist())
    )


def test_propensities_and_intents_are_read() -> None:
    table = engines.clicked(engines.documents(60))
    expected = engines.here(table, engines.CLICKED, **engines.OF_CLICKS)
    with dask.config.set({"dataframe.convert-string": False}):  # or lists would be texts
        results = fnd.evaluate(frame(table), engines.CLICKED, **engines.OF_CLICKS)
        assert rows_of(results) == engines.rows_of(expected.to_arrow())


def _without_keep() -> dict[str, Any]:
    return {name: value for name, value in engines.COLUMNS.items() if name != "keep"}


@settings(max_examples=15)
@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.sampled_from([None, 1, 5]),
    st.sampled_from(["int64", "int32", "uint64", "string", "category", "str"]),
    st.integers(0, 5),
)
def test_any_partitions_and_ids(
    n_queries: int, partitions: int, wanted: int | None, kind: str, seed: int
) -> None:
    table = engines.documents(n_queries, seed=seed)
    ids = table["qid"].to_numpy() + 50
    table = table.set_column(0, "qid", pa.array(ids))
    df = frame(table, partitions, qid=kind)
    results = fnd.evaluate(
        df, [*engines.MEASURES, engines.BY_ORDER], order="position", partitions=wanted, **engines.COLUMNS
    )
    expected = engines.here(table, [*engines.MEASURES, engines.BY_ORDER]).to_arrow()
    if kind in ("string", "str"):
        expected = expected.set_column(0, "qid", expected["qid"].cast(pa.string()))
    found = results.compute()
    assert str(results.dtypes["qid"]) in (kind, "string")
    assert rows_of(found) == engines.rows_of(expected)


@pytest.mark.parametrize("name", ["trec_eval", "lightgbm", "tf_ranking"])
def test_conventions(name: str) -> None:
    table = engines.documents(100)
    df = frame(table)
    local = engines.here(table, engines.BY_CONVENTION, convention=name, doc_id="position")
    results = fnd.evaluate(df, engines.BY_CONVENTION, convention=name, **engines.COLUMNS, **engines.ORDERED)
    assert rows_of(results) == engines.rows_of(local.to_arrow())
    columns = {**_without_keep(), **engines.ORDERED}
    summary = fnd.summary(df, engines.BY_CONVENTION, convention=name, quartiles=True, **columns)
    assert engines.rows_of(summary.to_arrow()) == engines.rows_of(local.summary().to_arrow())
    with pytest.raises(
        MeasureError, match=r"^recpack does not define the order of ties, and query \S+ has tied"
    ):
        fnd.summary(df, "nDCG", convention="recpack")


def test_lists() -> None:
    table = engines.listed(engines.documents(100))
    expected = engines.rows_of(
        engines.here(engines.documents(100), [*engines.MEASURES, engines.BY_ORDER]).to_arrow()
    )
    arrow = dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3)
    with dask.config.set({"dataframe.convert-string": False}):
        objects = dd.from_pandas(table.to_pandas(), npartitions=3)
    for df in (arrow, objects):
        results = fnd.evaluate(df, [*engines.MEASURES, engines.BY_ORDER], **engines.COLUMNS)
        assert results.npartitions == 3
        assert rows_of(results) == expected


def test_parquet(tmp_path: Path) -> None:
    table = engines.documents(100)
    for part in range(3):
        pq.write_table(table.slice(part * 600, 600), tmp_path / f"{part}.parquet", row_group_size=100)
    df = dd.read_parquet(tmp_path, split_row_groups=True)
    results = fnd.evaluate(df, engines.MEASURES, **engines.COLUMNS)
    assert rows_of(results) == engines.rows_of(engines.here(table).to_arrow())
    results.to_parquet(tmp_path / "results")
    written = dd.read_parquet(tmp_path / "results")
    means = fnd.means(written, "nDCG@10", weight="weight").to_pylist()
    assert means[0]["nDCG@10"] == engines.here(table, "nDCG@10").mean()["nDCG@10"]


def test_one_query_of_most_rows_among_many_small_ones() -> None:
    rng = np.random.default_rng(0)
    long, queries = 500_000, 400_000  # many batches of Arrow, and more queries than one part of a pass has
    ids = np.concatenate([np.full(long, 77), rng.integers(0, queries, queries)])
    rng.shuffle(ids)
    table = pa.table(
        {
            "qid": ids,
            "label": rng.integers(0, 3, len(ids), np.int8),
            "score": rng.random(len(ids), np.float32),
        }
    )
    found = fnd.evaluate(frame(table, 4), "nDCG@10").compute().sort_values("qid")
    expected = fn.evaluate(fn.Rankings.from_arrow(table), "nDCG@10").to_arrow().sort_by("qid")
    assert np.array_equal(found["qid"], expected["qid"])
    assert np.array_equal(found["nDCG@10"], expected["nDCG@10"])


def test_nothing() -> None:
    df = frame(engines.documents(0), 1)
    assert len(fnd.evaluate(df, "AP", keep="country").compute()) == 0
    (row,) = fnd.summary(df, "AP").rows
    assert row["queries"] == 0 and np.isnan(row["mean"])


def test_a_partition_without_rows() -> None:
    df = frame(engines.documents(20))
    alone = df[df["qid"] == -50]
    assert fnd.summary(alone, "AP").rows[0]["queries"] == 1
    assert len(fnd.evaluate(alone, "AP", keep="country").compute()) == 1


# ---- errors ----


@pytest.mark.parametrize("scheduler", SCHEDULERS, indirect=True)
def test_errors_name_the_query(scheduler: str) -> None:
    pandas = engines.documents(50, text=True).to_pandas()
    pandas["score"] = pandas["score"].where(pandas["qid"] != "query 62")
    df = dd.from_pandas(pandas, npartitions=3)
    message = r'^column "score" has [\d,]+ NaN values?; the first is in query "query 62"\. Drop those rows or pass nan="last"'
    with pytest.raises(InputError, match=message):
        fnd.evaluate(df, "AP").compute()
    with pytest.raises(InputError, match=message):
        fnd.summary(df, "AP")
    last = fnd.evaluate(df, "AP", nan="last").compute()
    lowest = pa.Table.from_pandas(pandas.fillna({"score": -np.inf}), preserve_index=False)
    expected = fn.evaluate(fn.Rankings.from_arrow(lowest), "AP").to_arrow()
    assert rows_of(last) == engines.rows_of(expected)


def test_refused_before_anything_runs() -> None:
    df = frame(engines.documents(5))
    with pytest.raises(ColumnError, match='there is no column "points" for score'):
        fnd.evaluate(df, "AP", score="points")
    with pytest.raises(InputTypeError, match='column "country" is .*string; wanted scores'):
        fnd.summary(df, "AP", score="country")
    with pytest.raises(MeasureError, match="name a column that numbers the documents of a query"):
        fnd.evaluate(df, "AP(ties='input')")
    with pytest.raises(InputTypeError, match="df is a pandas DataFrame; wanted a DataFrame of Dask"):
        fnd.evaluate(engines.documents(5).to_pandas(), "AP")
    with pytest.raises(ColumnError, match=r'The index is "qid": call reset_index\(\) first\.'):
        fnd.evaluate(df.set_index("qid"), "AP")
    with pytest.raises(ColumnError, match='there is no column "AP" for measures'):
        fnd.means(df, "AP")


# ---- workers that fail ----


@pytest.mark.parametrize("kills", [True, False])
def test_a_worker_that_is_killed_and_a_task_that_is_retried(
    cluster: Client, tmp_path: Path, kills: bool
) -> None:
    table = engines.documents(100)
    measure = fn.CG(gain=engines.Deadly(tmp_path / "died", kills=kills)) @ 3
    results = fnd.evaluate(frame(table), measure, **engines.COLUMNS)
    found = cluster.compute(results, retries=2).result()
    assert (tmp_path / "died").exists()
    expected = engines.here(table, fn.CG(gain=engines.steep) @ 3).to_arrow()
    assert list(found.columns) == list(results.columns)
    assert rows_of(found) == engines.rows_of(expected)


# ---- recipes ----


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "predictions.parquet")
    monkeypatch.chdir(tmp_path)
    exec(engines.page_example("Dask"), {})  # noqa: S102 - the page's own lines
    shown = capsys.readouterr().out
    engines.check_example(table, shown)


def test_the_script(tmp_path: Path) -> None:
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    results = tmp_path / "results"
    arguments = [str(tmp_path / "rows.parquet"), str(results), "--measure", "nDCG@10", "--measure", "AP"]
    done = engines.run_script("dask_job.py", *arguments, "--by", "country", "--weight", "traffic")
    engines.check_script(done, table, results / "queries", results / "means.parquet")
    failed = engines.run_script("dask_job.py", *arguments, "--by", "county")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith('dask_job: there is no column "county" for keep')
