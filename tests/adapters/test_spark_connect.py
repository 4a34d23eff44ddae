"""Spark Connect for real: a server of its own, whose client has no session in its process."""

import engines
import pyarrow.parquet as pq
import pytest
from commands import printed

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
    of_files = fns.evaluate_files(spark, sys.argv[1], engines.MEASURES, **engines.COLUMNS)
    assert engines.rows_of([row.asDict() for row in of_files.collect()]) == engines.rows_of(local.to_arrow())
    missing = df.withColumn("score", F.when(F.col("qid") == 62, F.lit(float("nan"))).otherwise(F.col("score")))
    with pytest.raises(InputError, match="^column .score. has .* in query 62. Drop"):
        fns.summary(missing, "AP")
    ndcg = fns.group_function("nDCG@10")
    assert df.groupBy("qid").agg(ndcg("label", "score", "qid").alias("ndcg")).count() == local.n_queries
    spark.stop()
"""


def test_connect(tmp_path, monkeypatch):
    engines.need_java()
    pq.write_table(engines.documents(100), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    printed(CODE, tmp_path / "rows.parquet", flags=["-W", "ignore"])
