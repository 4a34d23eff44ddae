#!/usr/bin/env python3
"""Ask the installed tools for their nDCG, and store the values in tests/golden/conventions.json.

Many of the tools exclude one another, so run this once in an environment of each:

    pip install tensorflow-ranking==0.5.5 "tensorflow-cpu==2.15.*"   &&  scripts/regenerate_golden.py tf_ranking
    pip install rax                                                 &&  scripts/regenerate_golden.py rax
    pip install torch torchmetrics pytorch-ignite "lenskit>=2025"   &&  scripts/regenerate_golden.py torchmetrics ignite lenskit
    pip install --no-deps allrank cornac recbole recommenders ...   &&  scripts/regenerate_golden.py allrank cornac ...

Without names it asks every tool that it can import. Values of tools that it does not ask stay as they are.

RankLib's were made once, since no registry that we reach has its jar: its own classes, compiled from
github.com/codelibs/ranklib at e43f605 (2.10.2), sorted `random_queries(20261121, 24)` by
`MergeSorter.sort(scores, false)`, as `Ranker.rank` does, and asked `new NDCGScorer(k).score`, k = 0 being none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from conventions_data import FILE, golden_cutoffs, golden_queries, weighted_queries
from rivals import RIVALS, tf_ranking_weighted_mean


def main(names: list[str]) -> None:
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in names or RIVALS:
        rival = RIVALS[name]
        if rival.missing is not None:
            print(f"{name}: not asked: {rival.missing}")
            continue
        queries = golden_queries(rival)
        values = {str(k): rival.run(queries, k) for k in golden_cutoffs(rival)}
        stored[name] = {"version": rival.version, "values": values}
        if name == "tf_ranking":
            queries, weight = weighted_queries()
            stored[name]["weighted_mean_at_5"] = tf_ranking_weighted_mean(queries, 5, weight)
        FILE.write_text(_shown(stored))
        print(f"{name}: {rival.version}")


def _shown(stored: dict) -> str:
    """JSON with a line for each list of values."""
    lists: list[list] = []

    def place(found: object) -> object:
        if isinstance(found, dict):
            return {key: place(value) for key, value in found.items()}
        if isinstance(found, list):
            lists.append(found)
            return f"<{len(lists) - 1}>"
        return found

    text = json.dumps(place(dict(sorted(stored.items()))), indent=1)
    for number, values in enumerate(lists):
        text = text.replace(f'"<{number}>"', json.dumps(values))
    return text + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
