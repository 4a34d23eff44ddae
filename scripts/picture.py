#!/usr/bin/env python3
"""Draw the picture of README.md: what `rerank` adds to `score` in the sample of `fastndcg demo`, by measure.

python scripts/picture.py

It writes `docs/_static/comparison.svg`, or what `--out` names, and needs the extra `report`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import fastndcg as fn
from fastndcg.cli.demo import write_sample

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "_static" / "comparison.svg"
MEASURES = ["nDCG@1", "nDCG@3", "nDCG@10", "nDCG@100", "AP", "RR", "ERR@10"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=PICTURE)
    out: Path = options.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample.parquet"
        write_sample(sample, 1_000)
        systems = {name: fn.read_parquet(sample, score=name) for name in ("score", "rerank")}
    compared = fn.compare(systems, baseline="score", measures=MEASURES)
    title = {"text": "rerank minus score, 1,000 queries", "subtitle": "intervals of 95 %"}
    compared.plot.effects().properties(title=title).save(out)
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
