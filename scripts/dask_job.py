#!/usr/bin/env python3
"""A Dask job to copy: read Parquet, score every query, write the values, summarise by segment.

    python scripts/dask_job.py predictions.parquet results --measure nDCG@10 --measure RR --by country

writes a row for each query to results/queries and the means of each segment to results/means.parquet, and
prints the means. It starts two worker processes. To use a running cluster, whose workers need fastndcg, pass
`--scheduler tcp://...`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import dask.dataframe as dd
import pyarrow.parquet as pq
from distributed import Client

from fastndcg import FastndcgError
from fastndcg.adapters import dask as fnd
from fastndcg.common.files import whole_file


def main() -> None:
    options = parser().parse_args()
    with Client(options.scheduler) if options.scheduler else Client(n_workers=2, dashboard_address=None):
        rows = dd.read_parquet(options.predictions, split_row_groups=True)
        scores = fnd.evaluate(rows, options.measure, keep=[options.by], weight=options.weight)
        queries = str(Path(options.results, "queries"))
        scores.to_parquet(queries, write_index=False, overwrite=options.overwrite)
        # read the values back, so that they are not computed twice
        weight = None if options.weight is None else "weight"
        means = fnd.means(dd.read_parquet(queries), options.measure, by=options.by, weight=weight)
    with whole_file(Path(options.results, "means.parquet")) as draft:
        pq.write_table(means, draft)
    print(means.to_pandas().to_string(index=False))


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("predictions", help="Parquet with the columns of query, relevance and score")
    options.add_argument("results", help="folder to write to")
    options.add_argument("--measure", action="append", required=True, help="as in nDCG@10; repeatable")
    options.add_argument("--by", required=True, help="column with the segment of each query")
    options.add_argument("--weight", help="column with the weight of each query")
    options.add_argument("--scheduler", help="address of a running cluster")
    options.add_argument("--overwrite", action="store_true", help="replace existing results")
    return options


if __name__ == "__main__":
    try:
        main()
    except FastndcgError as error:
        sys.exit(f"dask_job: {error}")
