"""`fastndcg history`: added from files, shown as text and for machines, and drawn."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import only_line, run

import fastndcg as fn


@pytest.fixture
def files(tmp_path):
    """Predictions of four days; those of the last two are worse."""
    paths = []
    for day in range(4):
        random = np.random.default_rng(day)
        grades = random.integers(0, 4, 3000)
        queries = np.repeat(np.arange(300), 10)
        table = {
            "query_id": queries, "label": grades, "score": grades + random.normal(0, 2 if day < 2 else 9, 3000),
            "country": np.array(["de", "fr"])[queries % 2],
        }  # fmt: skip
        paths.append(tmp_path / f"{day}.parquet")
        pq.write_table(pa.table(table), paths[-1])
    return paths


def test_a_history_of_days(files, tmp_path):
    kept = tmp_path / "kept"
    for day, path in enumerate(files):
        done = run("history", "add", path, "-m", "nDCG@10", "-H", kept, "--at", f"2026-11-{20 + day}")
        assert done.exit_code == 0 and done.stderr == f"{kept}: 300 queries\n"
    lines = run("history", "show", "--history", kept).stdout.splitlines()
    assert lines[0].split()[:3] == ["date", "measure", "queries"] and len(lines) == 5
    assert [line.split()[0] for line in lines[1:]] == [f"2026-11-{20 + day}" for day in range(4)]
    runs = json.loads(run("history", "show", "-H", kept, "--format", "json").stdout)["runs"]
    assert [row["sure"] for row in runs] == [False, False, True, True]
    assert runs[3]["mean"] == fn.evaluate(str(files[3]), "nDCG@10").mean()["nDCG@10"]
    csv = run("history", "show", "-H", kept, "--format", "csv").stdout.splitlines()
    assert csv[0].startswith("at,measure,queries,mean,low,high") and len(csv) == 5
    # results that were stored, and two systems at once; each file is one of results
    run("score", files[0], "-m", "nDCG@10", "--out", tmp_path / "stored.parquet")
    done = run("history", "add", tmp_path / "stored.parquet", files[1], "-H", kept, "--at", "2026-11-24")
    assert done.exit_code == 0
    names = json.loads(run("history", "show", "-H", kept, "--format", "json").stdout)["runs"]
    assert {row["name"] for row in names} == {"", "stored", "1"}
    first, last = (kept / f"2026-11-2{day}T000000Z.parquet" for day in (0, 3))
    done = run("compare", first, last, "--signatures", "ignore", "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    assert row["difference"] == pytest.approx(runs[3]["change"]) and row["low"] == pytest.approx(
        runs[3]["change_low"]
    )


@pytest.mark.parametrize(
    ("bounds", "code"), [(["nDCG@10=0.5"], 0), (["nDCG@10=0.5", "RR=0.999"], 1), (["nDCG@10=0.99"], 1)]
)
def test_a_gate_is_for_the_last_mean(bounds, code, files, tmp_path):
    kept = tmp_path / "kept"
    for day, path in zip((2, 1), files[:2], strict=True):
        run("history", "add", path, "-m", "nDCG@10", "-m", "RR", "-H", kept, "--at", f"2026-11-0{day}")
    last = fn.evaluate(str(files[0]), ["nDCG@10", "RR"]).mean()
    done = run("history", "show", "-H", kept, *(word for each in bounds for word in ("--fail-under", each)))
    assert done.exit_code == code and len(done.stdout.splitlines()) == 5
    if code:
        measure, _, bound = bounds[-1].partition("=")
        assert f"the mean of {measure} is {last[measure]}, below {bound}" in only_line(done.stderr)


def test_a_time_of_another_definition_is_said(files, tmp_path):
    kept, add = tmp_path / "kept", ["-m", "nDCG@10", "-H", tmp_path / "kept"]
    run("history", "add", files[0], *add, "--at", "2026-11-20")
    run("history", "add", files[0], *add, "--at", "2026-11-21", "--convention", "lightgbm")
    done = run("history", "show", "-H", kept)
    assert done.exit_code == 0 and "differs" not in done.stdout
    said = only_line(done.stderr)
    assert said.startswith(
        "2026-11-21: nDCG@10 is not comparable with the time before: gain linear, now exp2;"
    )
    assert "convention none, now lightgbm" in said


def test_a_page(files, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("jinja2")
    kept, page = tmp_path / "kept", tmp_path / "page.html"
    for day, path in enumerate(files):
        run("history", "add", path, "-m", "nDCG@10", "-m", "RR", "-H", kept, "--at", f"2026-11-{20 + day}")
    assert run("history", "page", "-H", kept, "-o", page, "--threshold", 0.8).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml") == 2 and "which is sure since 2026-11-22" in text
    assert "<script src" not in text and "http://" not in text.replace("http://www.w3.org", "")


def test_what_is_refused(files, tmp_path):
    kept = tmp_path / "kept"
    for code, words, message in (
        (2, ["show", "-H", files[0], files[1]], "`fastndcg history add`"),
        (2, ["add", files[0], files[1], "-H", kept, "--name", "both"], "--name is for one system"),
        (2, ["add", files[0], "-H", kept, "--fail-under", "RR=1"], "--fail-under has no meaning with add"),
        (3, ["show", "-H", kept], "has no values yet"),
        (3, ["show", "-H", files[0]], "is a file, and a history is a folder"),
    ):
        done = run("history", *words)
        assert done.exit_code == code and message in only_line(done.stderr) and not done.stdout
    assert not kept.exists()


def test_stored_results_are_added_as_compare_takes_them(files, tmp_path):
    """All measures that each file has; stored results without nDCG@10 were refused."""
    kept, one, two = (tmp_path / name for name in ("kept", "one.parquet", "two.parquet"))
    run("score", files[0], "-m", "RR", "-m", "P@5", "--out", one)
    run("score", files[1], "-m", "P@5", "--out", two)
    assert run("history", "add", one, "-H", kept, "--at", "2026-11-23").exit_code == 0
    assert fn.History(kept).table()["measure"].to_pylist() == ["RR", "P@5"]
    assert run("history", "add", one, two, "-H", kept, "--at", "2026-11-24").exit_code == 0
    assert fn.History(kept).table()["measure"].to_pylist() == ["RR", "P@5", "P@5", "P@5"]
