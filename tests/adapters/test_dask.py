"""Dask for real: threads, processes and a cluster of two; values bit for bit those of this process; workers that die."""

import os

import boosting
import engines
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_laws import Engine, Laws, odd_values, run_page
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import ColumnError

engines.need("dask", "distributed")

dask, dd = engines.imported_later("dask"), engines.imported_later("dask.dataframe")
da = engines.imported_later("dask.array")
fnd = engines.imported_later("fastndcg.adapters.dask")

# Dask's own, where it writes Parquet with pandas 3.1
pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings(r"ignore:The inplace keyword in DataFrame:DeprecationWarning"),
]


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes; nothing runs on them unless a test makes their client the current one."""
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as running,
        Client(running, set_as_default=False) as client,
    ):
        client.run(os.environ.update, {"OMP_NUM_THREADS": "1"})
        yield client


@pytest.fixture
def scheduler(request):
    if request.param == "cluster":
        with request.getfixturevalue("cluster").as_current():
            yield "cluster"
    else:
        with dask.config.set(scheduler=request.param, num_workers=2):
            yield request.param


@pytest.fixture(autouse=True)
def _settings():
    with dask.config.set({"scheduler": "threads", "dataframe.convert-string": True}):
        yield


def keep_lists(table):
    """Lists would become texts."""
    dask.config.set({"dataframe.convert-string": not any(map(pa.types.is_list, table.schema.types))})


def frame(table, partitions=3, **dtypes):
    keep_lists(table)
    return dd.from_pandas(table.to_pandas().astype(dtypes), npartitions=partitions)


def rows_of_frame(found):
    plain = pa.Table.from_pandas(found, preserve_index=False, nthreads=1).to_pydict()
    # NaN is a value of a measure, and null what pyarrow makes of it
    names = [name for name in plain if found[name].dtype == "float64"]
    columns = plain | {name: found[name].tolist() for name in names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(results):
    found = results.compute() if isinstance(results, dd.DataFrame) else results
    return engines.rows_of(rows_of_frame(found))


def of_partitions(tables):
    keep_lists(tables[0])
    frames = [
        dask.delayed(table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)) for table in tables
    ]
    return dd.from_delayed(frames)


@pytest.fixture
def engine(tmp_path):
    def read(table):
        for part, start in enumerate(range(0, len(table), 8)):
            pq.write_table(table.slice(start, 8), tmp_path / f"{part}.parquet")
        return dd.read_parquet(tmp_path)

    def collect(results):
        return rows_of_frame(results.compute())

    def arrow(results):
        return pa.Table.from_pandas(results.compute(), preserve_index=False)

    # lists without a row cannot be told from texts
    return Engine(fnd, frame, read, of_partitions, collect, arrow, frozenset({"nothing"}), is_of_pandas=True)


class TestDask(Laws):
    @pytest.mark.parametrize("scheduler", ["processes", "cluster"], indirect=True)
    @pytest.mark.usefixtures("scheduler")
    def test_schedulers(self, engine):
        self.test_values_are_those_of_this_process(engine, text=True)
        self.test_errors_name_the_query_in_one_line(engine, *next(odd_values()))


def test_partitions_without_rows_after_a_shuffle():
    tables = engines.PARTITIONS["one query"]
    expected = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS).to_arrow()
    results = fnd.evaluate(of_partitions(tables), engines.CLICKED, **engines.OF_PARTITIONS)
    assert results.compute().dtypes.equals(results.dtypes)
    assert rows_of(results) == engines.rows_of(expected)


@settings(max_examples=15)
@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.sampled_from([None, 1, 5]),
    st.sampled_from(["int64", "int32", "uint64", "string", "category", "str"]),
    st.integers(0, 5),
)
def test_any_partitions_and_ids(n_queries, partitions, wanted, kind, seed):
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


def test_lists():
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


def test_a_summary_refuses_kept_columns_that_are_not_there(tmp_path):
    table = engines.documents(20)
    pq.write_table(table, tmp_path / "a.parquet")
    for keep in ("contry", ["country", "contry"]):
        for summary in (
            lambda keep: fnd.summary(frame(table), "AP", keep=keep),
            lambda keep: fnd.summary_files(tmp_path, "AP", keep=keep),
        ):
            with pytest.raises(ColumnError, match='no column "contry".*country'):
                summary(keep)
            assert summary("country").rows == summary(()).rows


# ---- workers that fail ----


@pytest.mark.parametrize("kills", [True, False])
def test_a_worker_that_is_killed_and_a_task_that_is_retried(cluster, tmp_path, kills):
    table = engines.documents(100)
    measure = fn.CG(gain=engines.Deadly(tmp_path / "died", kills=kills)) @ 3
    results = fnd.evaluate(frame(table), measure, **engines.COLUMNS)
    found = cluster.compute(results, retries=2).result()
    assert (tmp_path / "died").exists()
    expected = engines.here(table, fn.CG(gain=engines.steep) @ 3).to_arrow()
    assert list(found.columns) == list(results.columns)
    assert rows_of(found) == engines.rows_of(expected)


# ---- boosters ----


@pytest.fixture
def client(cluster):
    with cluster.as_current():
        yield cluster


def halves(data, *names):
    """Columns in two parts of whole queries, far from equal."""
    cut = int(data.sizes[:30].sum())
    return [
        da.from_array(each, chunks=((cut, len(each) - cut), *([-1] * (each.ndim - 1))))
        for each in (getattr(data, name) for name in names)
    ]


def test_xgboost_has_the_mean_of_all_queries(client):
    engines.need("xgboost", extra="rivals")
    import xgboost
    from xgboost import dask as dxgb

    from fastndcg.adapters.xgboost import metric

    data = boosting.ranked(120)
    features, label, qid = halves(data, "features", "label", "qid")
    measures = [*boosting.MEASURES, "nDCG(empty='nan')"]
    found = dxgb.train(
        client, {"objective": "rank:ndcg", "tree_method": "hist", "eval_metric": "ndcg@10"},
        train := dxgb.DaskDMatrix(client, features, label, qid=qid),
        num_boost_round=3, evals=[(train, "train")], custom_metric=metric(measures),
    )  # fmt: skip
    scores = found["booster"].predict(xgboost.DMatrix(data.features))
    ours = [values[-1] for values in list(found["history"]["train"].values())[1:]]
    assert ours == pytest.approx(data.values(scores, measures), abs=1e-6, nan_ok=True)
    assert np.isnan(ours[-1])


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored", "ignore:The argument 'eval_set'")
def test_lightgbm_has_the_mean_of_a_workers_queries(client):
    engines.need("lightgbm", extra="rivals")
    import lightgbm

    from fastndcg.adapters.lightgbm import metric

    data = boosting.ranked(120)
    features, label = halves(data, "features", "label")
    sizes = da.from_array(data.sizes, chunks=((30, len(data.sizes) - 30),))
    model = lightgbm.DaskLGBMRanker(
        client=client, n_estimators=3, num_leaves=6, min_child_samples=5, verbosity=-1
    )
    model.fit(
        features, label, group=sizes, eval_set=[(features, label)], eval_group=[sizes],
        eval_metric=metric("nDCG@10", like="lightgbm"), eval_at=[10],
    )  # fmt: skip
    found = model.evals_result_["valid_0"]
    assert found["nDCG@10"] == pytest.approx(found["ndcg@10"], rel=1e-9)


# ---- recipes ----


def test_the_page(tmp_path, capsys):
    run_page("Dask", engines.documents(100), tmp_path, capsys)


def test_columns_of_the_page(tmp_path, capsys):
    table = engines.documents(100).drop_columns(["country"]).rename_columns({"score": "bm25"})
    table = table.append_column("rerank", pa.array(np.random.default_rng(4).random(table.num_rows)))
    pq.write_table(table, tmp_path / "predictions.parquet")
    example = engines.page_example("Columns of scores", blocks=slice(None))
    exec(example.replace('"predictions.parquet"', repr(str(tmp_path / "predictions.parquet"))), {})  # noqa: S102 - the page's own lines
    systems = {name: fn.Rankings.from_arrow(table, query="qid", score=name) for name in ("bm25", "rerank")}
    assert str(fn.compare(systems, ["nDCG@10", "RR"])) in capsys.readouterr().out


def test_the_script(tmp_path):
    table = engines.documents(100)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=300)
    results = tmp_path / "results"
    arguments = [str(tmp_path / "rows.parquet"), str(results), "--measure", "nDCG@10", "--measure", "AP"]
    done = engines.run_script("dask_job.py", *arguments, "--by", "country", "--weight", "traffic")
    engines.check_script(done, table, results / "queries", results / "means.parquet")
    failed = engines.run_script("dask_job.py", *arguments, "--by", "county")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith('dask_job: there is no column "county"; the columns are')
