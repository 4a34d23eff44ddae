"""`fastndcg history`: added from files, shown as text and for machines, and drawn."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, only_line, rows, run

import fastndcg as fn

SHOW = "history show -H kept"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Predictions of four days; those of the last two are worse."""
    monkeypatch.chdir(tmp_path)
    queries = np.repeat(np.arange(300), 10)
    for day in range(4):
        random = np.random.default_rng(day)
        grades = random.integers(0, 4, 3000)
        scores = grades + random.normal(0, 2 if day < 2 else 9, 3000)
        pq.write_table(pa.table({"query_id": queries, "label": grades, "score": scores}), f"{day}.parquet")


def add(file, day, *words, measures="-m nDCG@10"):
    done = run(f"history add {file} {measures} -H kept --at 2026-11-{day}", *words)
    assert done.exit_code == 0, done.stderr
    return done


def test_a_history_of_days():
    for day in range(4):
        assert add(f"{day}.parquet", 20 + day).stderr == "kept: 300 queries\n"
    lines = run(SHOW).stdout.splitlines()
    assert lines[0].split()[:3] == ["date", "measure", "queries"] and len(lines) == 5
    assert [line.split()[0] for line in lines[1:]] == [f"2026-11-{20 + day}" for day in range(4)]
    runs = facts(SHOW)["runs"]
    assert [row["sure"] for row in runs] == [False, False, True, True]
    assert runs[3]["mean"] == fn.evaluate("3.parquet", "nDCG@10").mean()["nDCG@10"]
    assert (
        list(rows(SHOW)[0])[:6] == ["at", "measure", "queries", "mean", "low", "high"]
        and len(rows(SHOW)) == 4
    )
    # results that were stored, and two systems at once; each file is one of results
    run("score 0.parquet -m nDCG@10 --out stored.parquet")
    add("stored.parquet 1.parquet", 24, measures="")
    assert {row["name"] for row in facts(SHOW)["runs"]} == {"", "stored", "1"}
    first, last = (f"kept/2026-11-2{day}T000000Z.parquet" for day in (0, 3))
    (row,) = facts(f"compare {first} {last} --signatures ignore")["rows"]
    assert (row["difference"], row["low"]) == pytest.approx((runs[3]["change"], runs[3]["change_low"]))


@pytest.mark.parametrize(
    ("bounds", "code"), [(["nDCG@10=0.5"], 0), (["nDCG@10=0.5", "RR=0.999"], 1), (["nDCG@10=0.99"], 1)]
)
def test_a_gate_is_for_the_last_mean(bounds, code):
    for day, file in ((12, "0.parquet"), (11, "1.parquet")):
        add(file, day, measures="-m nDCG@10 -m RR")
    done = run(f"{SHOW} --fail-under {' --fail-under '.join(bounds)}")
    assert done.exit_code == code and len(done.stdout.splitlines()) == 5
    if code:
        measure, _, bound = bounds[-1].partition("=")
        last = fn.evaluate("0.parquet", measure).mean()[measure]
        assert f"the mean of {measure} is {last}, below {bound}" in only_line(done.stderr)


def test_a_time_of_another_definition_is_said():
    add("0.parquet", 20)
    add("0.parquet", 21, "--convention", "lightgbm")
    done = run(SHOW)
    assert done.exit_code == 0 and "differs" not in done.stdout
    said = only_line(done.stderr)
    assert said.startswith(
        "2026-11-21: nDCG@10 is not comparable with the time before: gain linear, now exp2;"
    )
    assert "convention none, now lightgbm" in said


def test_a_page():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    for day in range(4):
        add(f"{day}.parquet", 20 + day, measures="-m nDCG@10 -m RR")
    assert run("history page -H kept -o page.html").exit_code == 0
    text = Path("page.html").read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml") == 2 and "which is sure since 2026-11-22" in text
    assert "<script" not in text and "http://" not in text.replace("http://www.w3.org", "")


def test_stored_results_are_added_as_compare_takes_them():
    """All measures that each file has; stored results without nDCG@10 were refused."""
    run("score 0.parquet -m RR -m P@5 --out one.parquet")
    run("score 1.parquet -m P@5 --out two.parquet")
    add("one.parquet", 23, measures="")
    assert fn.History("kept").table()["measure"].to_pylist() == ["RR", "P@5"]
    add("one.parquet two.parquet", 24, measures="")
    assert fn.History("kept").table()["measure"].to_pylist() == ["RR", "P@5", "P@5", "P@5"]
