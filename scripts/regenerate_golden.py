#!/usr/bin/env python3
"""Ask the tools that are installed here for their nDCG, and store what they say in tests/golden/conventions.json.

Many of the tools exclude one another, so run this once in an environment of each:

    pip install tensorflow-ranking==0.5.5 "tensorflow-cpu==2.15.*"   &&  scripts/regenerate_golden.py tf_ranking
    pip install rax                                                 &&  scripts/regenerate_golden.py rax
    pip install torch torchmetrics pytorch-ignite "lenskit>=2025"   &&  scripts/regenerate_golden.py torchmetrics ignite lenskit
    pip install --no-deps allrank cornac recbole recommenders ...   &&  scripts/regenerate_golden.py allrank cornac ...

Without names it asks every tool that it can import. Values of tools that it does not ask stay as they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from golden_conventions import FILE, golden_cutoffs, golden_queries
from rivals import RIVALS


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
        FILE.write_text(_shown(stored))
        print(f"{name}: {rival.version}")


def _shown(stored: dict) -> str:
    """A line for each cutoff."""
    tools = (
        f'{json.dumps(name)}: {{"version": {json.dumps(tool["version"])}, "values": {{\n'
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(values)}" for k, values in tool["values"].items())
        + "}}"
        for name, tool in sorted(stored.items())
    )
    return "{" + ",\n".join(tools) + "}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
