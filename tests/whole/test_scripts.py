"""The decision of `scripts/` about a release. Other scripts are tested with the hosts that they need."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fastndcg.cli.demo import write_sample

for library in ("altair", "vl_convert"):
    pytest.importorskip(library)

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


def run(monkeypatch, name, *words):
    """Exit code of a script, in this process, which has compiled what it needs."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    try:
        runpy.run_path(str(SCRIPTS / name), run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    return 0


def test_a_release_is_decided(tmp_path, monkeypatch, capsys):
    page = tmp_path / "report.html"
    assert run(monkeypatch, "release_decision.py", "--out", page) == 0
    assert "Release the candidate" in capsys.readouterr().out
    assert "May the candidate be released?" in page.read_text(encoding="utf-8")


def test_a_release_is_stopped_by_a_slice(tmp_path, monkeypatch, capsys):
    released, candidate = tmp_path / "released.parquet", tmp_path / "candidate.parquet"
    write_sample(released, 300)
    table = pq.read_table(released)
    of_tablets = np.array(table["device"].to_pylist()) == "tablet"
    scores = np.where(of_tablets, 0, table["score"].to_numpy()).astype(np.float32)
    pq.write_table(table.set_column(table.column_names.index("score"), "score", [scores]), candidate)
    words = (released, candidate, "--by", "device", "--measure", "nDCG@10", "--margin", "0.05")
    assert run(monkeypatch, "release_decision.py", *words, "--out", tmp_path / "report.html") == 1
    printed = capsys.readouterr().out
    assert "not excluded for nDCG@10 where device is tablet." in printed
    assert (tmp_path / "report.html").exists()


def test_a_release_needs_two_files(tmp_path, monkeypatch):
    assert run(monkeypatch, "release_decision.py", tmp_path / "one.parquet") == 2
