#!/usr/bin/env python3
"""A Spark job to copy: read Parquet, score every query, write the values, summarise by segment.

    spark-submit scripts/spark_job.py predictions.parquet results --measure nDCG@10 --measure RR --by country

writes a row for each query to results/queries and the means of each segment to results/means, and prints the
means. Executors need fastndcg: install it where they run Python, or ship an environment with `--archives`. If
they cannot write to a home directory, pass `--conf spark.executorEnv.NUMBA_CACHE_DIR=/tmp/numba`, where they
cache what they compile.
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from fastndcg import FastndcgError
from fastndcg.adapters import spark as fns


def main() -> None:
    options = parser().parse_args()
    spark = SparkSession.builder.appName("nDCG").getOrCreate()
    rows = spark.read.parquet(options.predictions)
    with fns.plain_errors():
        scores = fns.evaluate(rows, options.measure, keep=[options.by], weight=options.weight)
        scores.write.mode(options.mode).parquet(f"{options.results}/queries")
    # read the values back, so that they are not computed twice
    written = spark.read.parquet(f"{options.results}/queries")
    weight = None if options.weight is None else "weight"
    means = fns.means(written, options.measure, by=options.by, weight=weight)
    frame = spark.createDataFrame(
        means.to_pylist(), ", ".join(_field(written, name) for name in means.column_names)
    )
    frame.coalesce(1).write.mode(options.mode).parquet(f"{options.results}/means")
    print(means.to_pandas().to_string(index=False))


def _field(written: object, name: str) -> str:
    kind = "long" if name == "queries" else written.schema[name].dataType.simpleString()
    return f"`{name}` {kind}"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("predictions", help="Parquet with the columns of query, relevance and score")
    options.add_argument("results", help="folder to write to")
    options.add_argument("--measure", action="append", required=True, help="as in nDCG@10; repeatable")
    options.add_argument("--by", required=True, help="column with the segment of each query")
    options.add_argument("--weight", help="column with the weight of each query")
    options.add_argument("--mode", choices=["errorifexists", "overwrite"], default="errorifexists")
    return options


if __name__ == "__main__":
    try:
        main()
    except FastndcgError as error:
        sys.exit(f"spark_job: {error}")
