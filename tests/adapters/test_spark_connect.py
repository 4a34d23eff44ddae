"""Spark Connect for real: a server of its own, whose client has no session in its process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import engines
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.host

engines.need("pyspark", "grpc", "grpc_status")

CODE = """
    import sys
    import engines, pyarrow.parquet as pq, pytest
    from pyspark.sql import functions as F
    from fastndcg import InputError
    from fastndcg.adapters import spark as fns

    spark = engines.spark_session("local[2]", {}, connect=True)
    assert "connect" in type(spark).__module__
    table = pq.read_table(sys.argv[1])
    df = spark.read.parquet(sys.argv[1])
    results = fns.evaluate(df, engines.MEASURES, **engines.COLUMNS)
    local = engines.here(table)
    found = [row.asDict() for row in results.collect()]
    assert engines.rows_of(found) == engines.rows_of(local.to_arrow())
    missing = df.withColumn("score", F.when(F.col("qid") == 62, F.lit(float("nan"))).otherwise(F.col("score")))
    with pytest.raises(InputError, match="^column .score. has .* in query 62. Drop"):
        fns.summary(missing, "AP")
    ndcg = fns.group_function("nDCG@10")
    assert df.groupBy("qid").agg(ndcg("label", "score", "qid").alias("ndcg")).count() == local.n_queries
    spark.stop()
"""


def test_connect(tmp_path: Path) -> None:
    engines.need_java()
    pq.write_table(engines.documents(100), tmp_path / "rows.parquet")
    engines.importable_by_workers()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CODE), str(tmp_path / "rows.parquet")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
