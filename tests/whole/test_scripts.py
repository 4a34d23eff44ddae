"""The worked examples of `scripts/` run, and say what is true."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fastndcg.cli.sample import write_sample

for library in ("altair", "vl_convert", "jinja2", "scipy"):
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


def test_a_toy_ranker_learns_more_from_pairs(tmp_path, monkeypatch, capsys):
    picture = tmp_path / "toy.svg"
    assert run(monkeypatch, "toy_ranker.py", "--queries", 80, "--epochs", 12, "--out", picture) == 0
    printed = capsys.readouterr().out
    epochs = [line.split() for line in printed.splitlines()[1:6]]
    first, last = (np.array(line[1:], float) for line in (epochs[0], epochs[-1]))
    assert first[0] == first[1] < last[0] < last[1]
    assert "could move by" in printed and "pairwise  pointwise" in printed
    assert picture.read_text(encoding="utf-8").startswith("<svg")


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


def redis_8():
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not there; scripts/redis_8.sh fetches one")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.partition("v=")[2].partition(".")[0]) < 8:
        pytest.skip(f"vector sets need Redis 8; there is {version.strip()}")
    return program


def test_a_vector_search_is_scored(monkeypatch, capsys):
    words = ("--server", redis_8(), "--documents", 1500, "--queries", 60, "--effort", 10, "--effort", 400)
    assert run(monkeypatch, "vector_search.py", *words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1,500 documents, 60 queries, 96 dimensions"
    assert lines[1].split() == ["nDCG@10", "more", "low", "high", "R@10", "ms"]
    rows = {line[:14].strip(): np.array(line[14:].split(), float) for line in lines[2:]}
    kinds = ("NOQUANT", "Q8", "BIN")
    assert list(rows) == [
        "exact, NumPy",
        *(f"{kind} {how}" for kind in kinds for how in ("EF 10", "EF 400", "TRUTH")),
    ]
    exact, recall = rows["exact, NumPy"][0], {name: row[4] for name, row in rows.items() if len(row) > 2}
    # the server's similarities, highest first, and distances here, lowest first, are one order
    assert rows["NOQUANT TRUTH"][0] == exact > 0.6
    assert recall["NOQUANT TRUTH"] == rows["exact, NumPy"][1] == 1
    assert recall["NOQUANT EF 10"] < 1 and recall["NOQUANT EF 400"] > 0.99
    assert 0.9 < recall["Q8 TRUTH"] > recall["BIN TRUTH"] > 0.1
    more, low, high = rows["BIN TRUTH"][1:4]
    assert low < more < high < 0


def test_a_vector_search_needs_a_server(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["vector_search.py", "--server", "no-such-server"])
    with pytest.raises(SystemExit, match=r"no-such-server is not there; scripts/redis_8\.sh"):
        runpy.run_path(str(SCRIPTS / "vector_search.py"), run_name="__main__")
