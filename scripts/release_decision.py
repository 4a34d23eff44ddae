#!/usr/bin/env python3
"""Decide whether a candidate may replace the released system: compare, apply a gate, write a report.

    python scripts/release_decision.py released.parquet candidate.parquet --by country --margin 0.005 --out
    report.html

The confidence intervals must exclude a loss of more than the margin, over all queries and within each slice.
Otherwise the script exits with 1, which stops a pipeline. Without files it generates a sample of two systems.
It needs the extra `report`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from fastndcg.cli.demo import write_sample


def main() -> None:
    options = parser().parse_args()
    options.measure = options.measure or ["nDCG@10", "RR"]
    options.by = options.by or ([] if options.paths else ["device"])
    if len(options.paths) not in (0, 2):
        sys.exit("release_decision: give two files, what is released and the candidate, or none for a sample")
    with tempfile.TemporaryDirectory() as folder:
        paths = options.paths or sample(Path(folder))
        systems = {
            name: fn.read_parquet(path, keep=options.by)
            for name, path in zip(("released", "candidate"), paths, strict=True)
        }
    compared = fn.compare(systems, baseline="released", measures=options.measure)
    print(compared)

    failed = [
        measure for measure, holds in compared.no_worse_than("released", options.margin).items() if not holds
    ]
    for column in options.by:
        for (group,), of_group in compared.slices(column).items():
            for measure, holds in of_group.no_worse_than("released", options.margin).items():
                if not holds:
                    failed.append(f"{measure} where {column} is {group}")
    fn.report(
        systems,
        options.out,
        measures=options.measure,
        baseline="released",
        by=options.by,
        title="May the candidate be released?",
        sources=dict(zip(systems, map(str, options.paths or ("a sample", "a sample")), strict=True)),
        command="python scripts/release_decision.py",
    )
    print(f"\nThe page is {options.out}.")
    if failed:
        print(
            f"Keep what is released: a loss of more than {options.margin} is not excluded for "
            f"{'; '.join(failed)}."
        )
        sys.exit(1)
    print(f"Release the candidate: a loss of more than {options.margin} is excluded everywhere.")


def sample(folder: Path, queries: int = 2_000) -> list[Path]:
    """Write predictions of two systems for the same documents; the second has less noise."""
    released, candidate = folder / "released.parquet", folder / "candidate.parquet"
    write_sample(released, queries)
    table = pq.read_table(released)
    scores, grades = table["score"].to_numpy(), table["label"].to_numpy()
    noise = np.random.default_rng(1).normal(0, 0.2, len(scores))
    better = (scores + 0.15 * grades + noise).astype(np.float32)
    place = table.column_names.index("score")
    pq.write_table(table.set_column(place, "score", pa.array(better)), candidate)
    return [released, candidate]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument(
        "paths", nargs="*", help="predictions of the released system and of the candidate, as Parquet"
    )
    found.add_argument("--measure", action="append", help="as in nDCG@10; repeatable")
    found.add_argument("--by", action="append", help="column of slices; repeatable")
    found.add_argument("--margin", type=float, default=0.005, help="the loss that is accepted")
    found.add_argument("--out", default="report.html")
    return found


if __name__ == "__main__":
    main()
