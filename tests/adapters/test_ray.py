"""Ray Data for real, in worker processes: values bit for bit those of this process, skew, readable errors, workers that die."""

import logging
import os
import tempfile

import engines
import numpy as np
import pyarrow as pa
import pytest
from engine_laws import Engine, Laws, run_page

import fastndcg as fn

engines.need("ray")

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it would ask, or call home

ray, data = engines.imported_later("ray"), engines.imported_later("ray.data")
fnr = engines.imported_later("fastndcg.adapters.ray")

pytestmark = [
    pytest.mark.host,
    # Ray's own, of its settings, logs and sockets
    pytest.mark.filterwarnings("ignore:`.*` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def _cluster():
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
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.default_hash_shuffle_parallelism = 4
        yield
        ray.shutdown()


def dataset(table, blocks=3):
    size = -(-len(table) // blocks) or 1
    return data.from_arrow([table.slice(start, size) for start in range(0, max(len(table), 1), size)])


def rows_of(results):
    return engines.rows_of(results.take_all())


@pytest.fixture
def engine():
    def arrow(results):
        return pa.concat_tables([part for part in ray.get(results.to_arrow_refs()) if len(part)])

    return Engine(
        fnr, dataset, dataset, data.from_arrow,
        data.Dataset.take_all, arrow, frozenset({"text view", "nothing"}), is_slow=True,
    )  # fmt: skip


class TestRay(Laws):
    pass


# ---- values ----


@pytest.mark.parametrize("blocks", [1, 2, 40])
def test_any_blocks_and_ties_in_the_order_of_a_column(blocks):
    """From more blocks than Ray joins at once, to more than there are queries, and to some that it would cut if it cut any."""
    table = engines.documents(30)
    rows = dataset(table, 40)
    rows.context.target_max_block_size = 100
    measures = [*engines.MEASURES, engines.BY_ORDER]
    results = fnr.evaluate(rows, measures, order="position", partitions=blocks, **engines.COLUMNS)
    assert rows_of(results) == engines.rows_of(engines.here(table, measures).to_arrow())


def test_frames_of_pandas():
    table = engines.documents(100, text=True)
    rows = data.from_pandas([table.slice(0, 500).to_pandas(), table.slice(500).to_pandas()])
    expected = engines.rows_of(engines.here(table).to_arrow())
    assert rows_of(fnr.evaluate(rows, engines.MEASURES, **engines.COLUMNS)) == expected


def test_other_errors_pass():
    def broken(_):
        raise KeyError("nowhere")

    rows = dataset(engines.documents(5)).map_batches(broken, batch_format="pyarrow")
    with pytest.raises(Exception, match="nowhere") as caught, fnr.plain_errors():
        rows.take_all()
    assert "fastndcg" not in type(caught.value).__module__


# ---- workers that fail ----


def test_a_worker_that_is_killed(tmp_path):
    table = engines.documents(100)
    measure = fn.CG(gain=engines.Deadly(tmp_path / "died", kills=True)) @ 3
    found = fnr.evaluate(dataset(table), measure, **engines.COLUMNS)
    expected = engines.here(table, fn.CG(gain=engines.steep) @ 3).to_arrow()
    assert rows_of(found) == engines.rows_of(expected)
    assert (tmp_path / "died").exists()


# ---- recipes ----


def test_the_page(tmp_path, capsys):
    run_page("Ray", engines.documents(100), tmp_path, capsys)


# ---- files ----


def test_files_that_cut_queries_and_stand_in_one_block(tmp_path):
    """Ray reads several files into one block, in no order; 37 rows a query are cut by each of 8 files."""
    from ray.data.expressions import col

    ids = np.arange(20_000) // 37
    table = pa.table({"query_id": ids, "label": ids % 5, "score": np.arange(20_000) * 7 % 11 / 3})
    engines.write_files(tmp_path, table, group=1000)
    local = fn.evaluate(fn.read_parquet(tmp_path), "nDCG@10")
    rows = data.read_parquet(str(tmp_path))
    for df in (rows, rows.filter(expr=col("label") >= 0)):
        found = fnr.evaluate(df, "nDCG@10", partitions=3)
        assert rows_of(found) == engines.rows_of(local.to_arrow())
