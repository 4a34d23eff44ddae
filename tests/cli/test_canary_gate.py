"""The canary gate to copy, run as a pipeline runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import engines
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "canary_gate.sh"


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for a POSIX shell")
def test_gate(tmp_path):
    """The same scores pass, those of chance fail and leave the comparison, and a file that is not there is another failure."""
    table = engines.documents(300)
    scores = np.asarray(table["label"]) + np.random.default_rng(1).normal(0, 0.1, len(table))
    at = table.column_names.index("score")
    for name, values in {"released": scores, "candidate": scores, "broken": -scores}.items():
        pq.write_table(table.set_column(at, "score", pa.array(values)), tmp_path / f"{name}.parquet")
    commands = tmp_path / "bin"
    commands.mkdir()
    command = commands / "fastndcg"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fastndcg "$@"\n')
    command.chmod(0o755)

    def run(candidate):
        (tmp_path / "comparison.json").unlink(missing_ok=True)
        return subprocess.run(
            [str(SCRIPT), "released.parquet", f"{candidate}.parquet", "comparison.json"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env=os.environ | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(SCRIPT.parent.parent)},
        )  # fmt: skip

    def compared():
        return json.loads((tmp_path / "comparison.json").read_text())

    passed = run("candidate")
    assert passed.returncode == 0, passed.stderr
    assert compared()
    failed = run("broken")
    assert failed.returncode == 1, failed.stderr
    assert "--no-worse-than: nDCG@10 of broken may lose" in failed.stderr
    assert compared()
    assert run("absent").returncode == 3
