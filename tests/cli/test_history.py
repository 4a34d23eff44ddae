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
    kept = tmp_path / "kept.parquet"
    for day, path in enumerate(files):
        done = run(
            "history",
            "add",
            path,
            "-m",
            "nDCG@10",
            "--by",
            "country",
            "-H",
            kept,
            "--at",
            f"2026-11-{20 + day}",
        )
        assert done.exit_code == 0 and done.stderr == f"{kept}: 300 queries\n"
    shown = run("history", "show", "--history", kept)
    lines = shown.stdout.splitlines()
    assert lines[0].split()[:3] == ["date", "measure", "queries"] and len(lines) == 5
    assert [line.split()[0] for line in lines[1:]] == [f"2026-11-{20 + day}" for day in range(4)]
    assert [" yes " in line for line in lines[1:]] == [False, False, True, True]
    runs = json.loads(run("history", "show", "-H", kept, "--by", "country", "--format", "json").stdout)[
        "runs"
    ]
    expected = fn.evaluate(str(files[3]), "nDCG@10", keep="country").by("country").to_pylist()
    assert {row["slice"]: row["mean"] for row in runs if row["at"].startswith("2026-11-23")} == {
        row["country"]: row["nDCG@10"] for row in expected
    }
    csv = run("history", "show", "-H", kept, "--format", "csv", "--since", "2026-11-22").stdout.splitlines()
    assert csv[0].startswith("at,measure,queries,mean,low,high") and len(csv) == 5
    metrics = run("history", "show", "-H", kept, "--format", "openmetrics").stdout
    assert (
        metrics.endswith("# EOF\n")
        and 'fastndcg_queries{measure="nDCG@10",by="country",slice="de"} 150\n' in metrics
    )
    # results that were stored, and two systems at once
    run("score", files[0], "-m", "nDCG@10", "--out", tmp_path / "stored.parquet")
    done = run("history", "add", tmp_path / "stored.parquet", files[1], "-H", kept, "--at", "2026-11-24")
    assert done.exit_code == 0
    names = set(json.loads(run("history", "show", "-H", kept, "--format", "json").stdout)["runs"][-1])
    assert "name" in names


def test_a_page(files, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("jinja2")
    kept, page = tmp_path / "kept.parquet", tmp_path / "page.html"
    for day, path in enumerate(files):
        run("history", "add", path, "-m", "nDCG@10", "-m", "RR", "-H", kept, "--at", f"2026-11-{20 + day}")
    assert run("history", "page", "-H", kept, "-o", page, "--threshold", 0.8).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/svg+xml") == 2 and "which is sure since 2026-11-22" in text
    assert "<script src" not in text and "http://" not in text.replace("http://www.w3.org", "")


def test_what_is_refused(files, tmp_path):
    kept = tmp_path / "kept.parquet"
    done = run("history", "show", "-H", files[0], files[1])
    assert done.exit_code == 2 and "`fastndcg history add`" in only_line(done.stderr)
    done = run("history", "add", files[0], files[1], "-H", kept, "--name", "both")
    assert done.exit_code == 2 and "--name is for one system" in only_line(done.stderr)
    assert not kept.exists()
    done = run("history", "show", "-H", kept, "--format", "openmetrics")
    assert done.exit_code == 3 and "has no runs yet" in only_line(done.stderr) and not done.stdout
    for option, value in (
        ("--measure", "RR"),
        ("--by", "country"),
        ("--name", "a"),
        ("--since", "2026-11-20"),
    ):
        done = run("history", "show", "-H", kept, "--format", "openmetrics", option, value)
        assert done.exit_code == 2 and f"{option} chooses some" in only_line(done.stderr)


def test_stored_results_are_added_as_compare_takes_them(files, tmp_path):
    """All measures that each file has; stored results without nDCG@10 were refused."""
    kept, one, two = (tmp_path / name for name in ("kept.parquet", "one.parquet", "two.parquet"))
    run("score", files[0], "-m", "RR", "-m", "P@5", "--out", one)
    run("score", files[1], "-m", "P@5", "--out", two)
    assert run("history", "add", one, "-H", kept, "--at", "2026-11-23").exit_code == 0
    assert fn.History(kept).table()["measure"].to_pylist() == ["RR", "P@5"]
    assert run("history", "add", one, two, "-H", kept, "--at", "2026-11-24").exit_code == 0
    assert fn.History(kept).table()["measure"].to_pylist() == ["RR", "P@5", "P@5", "P@5"]
