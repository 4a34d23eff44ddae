"""Gates in the words of continuous integration, what runs them there, and baselines that are kept in a file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import ROOT, facts, in_process_of_its_own, only_line, run

import fastndcg as fn
from fastndcg.errors import visible

pytest.importorskip("scipy")

ODD = '<b>&"%,:\x07\n\u2028'  # the value of a slice that is markup, and a command of a runner
GATE = "-m nDCG@5 -m RR@5 --no-worse-than base --margin 0.001 --by part"
UNDECIDED = f"compare base.parquet alike.parquet {GATE} --undecided pass"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Predictions of `base`, of `better` and `worse` ones, and of ones that are about `alike`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    grades = np.random.default_rng(5).integers(0, 4, (120, 8))
    of_query = {"qid": np.repeat(np.arange(120), 8), "label": grades.ravel(), "part": np.where(np.arange(960) // 8 % 2, ODD, "de")}  # fmt: skip
    for name, noise, sign in (("base", 2.0, 1), ("better", 0.5, 1), ("alike", 2.1, 1), ("worse", 2.0, -1)):
        scores = sign * (grades + np.random.default_rng(int(noise * 10)).normal(0, noise, grades.shape))
        pq.write_table(pa.table(of_query | {"score": scores.ravel()}), f"{name}.parquet")
    return tmp_path


def test_junit_has_a_case_for_each_gate():
    Path("ids.txt").write_text("3\n5\n")
    line = f"compare base.parquet worse.parquet {GATE} --queries ids.txt --fail-under nDCG@5=0.1"
    result = run(f"{line} --format junit")
    assert result.exit_code == 1
    whole = ET.fromstring(result.stdout)  # noqa: S314 - written here
    gate = facts(line, code=1)["gate"]
    cases, failures = list(whole.iter("testcase")), list(whole.iter("failure"))
    assert len(cases) == len(gate["verdicts"]) + 1 == 2 * 3 + 2 * 2 + 1 == int(whole.attrib["tests"])
    failed = sum(each["verdict"] != "holds" for each in gate["verdicts"])
    assert len(failures) == int(whole.attrib["failures"]) == failed
    assert sum(line.startswith("--") for line in result.stderr.splitlines()) == failed
    assert [each.attrib["message"] for each in failures] == list(map(visible, gate["failed"]))
    assert {each.attrib["type"] for each in failures} == {"fails"}
    names = [each.attrib["name"] for each in cases]
    assert names[0] == "nDCG@5 of worse" and names[-1] == "worse: the mean of nDCG@5"
    assert any('part=<b>&"%,:\\x07' in name for name in names)
    passes = run(f"{UNDECIDED} --format junit")  # what is undecided is skipped where it passes
    whole = ET.fromstring(passes.stdout)  # noqa: S314 - written here
    assert passes.exit_code == 0 and int(whole.attrib["skipped"]) == len(list(whole.iter("skipped"))) > 0
    assert whole.attrib["failures"] == "0"


def test_github_has_a_line_for_each_gate_that_does_not_hold(monkeypatch):
    line = f"compare base.parquet worse.parquet {GATE} --format github"
    shown = run(line)
    annotations = [each for each in shown.stdout.splitlines() if each.startswith("::")]
    assert shown.exit_code == 1 and len(annotations) == 6
    assert all(each.startswith("::error title=") and ": fails" in each for each in annotations)
    assert annotations[2].startswith("::error title=nDCG@5 of worse where part=")
    assert "%25%2C%3A\\x07\\n" in annotations[2] and "\\<b\\>" in shown.stdout
    assert "### fastndcg compare: 6 gates, 6 of which do not hold" in shown.stdout
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert run(f"{line} --ranks").stdout.splitlines() == annotations
    page = Path("summary.md").read_text(encoding="utf-8")
    assert page.startswith("before\n### fastndcg compare")
    assert page.count("**fails**") == 6 and "| rank |" in page
    warned = run(f"{UNDECIDED} --format github")
    assert warned.exit_code == 0 and {each.split()[0] for each in warned.stdout.splitlines()} == {"::warning"}
    good = run(f"compare base.parquet better.parquet {GATE.replace('0.001', '0.2')} --format github")
    assert (good.exit_code, good.stdout) == (0, "")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "none/summary.md")
    refused = run(line)
    assert refused.exit_code == 3 and "GITHUB_STEP_SUMMARY" in refused.stderr


# ---- a baseline in a file ----


def values(path):
    return pq.read_table(path).to_pydict()


def test_a_baseline_follows_what_holds():
    """It begins with the first system, stays where a gate does not hold, and is replaced where all hold, or where that is asked."""
    kept = Path("kept/baseline.parquet")
    update = "-m nDCG@5 -m RR@5 --by part --no-worse-than kept/baseline.parquet --margin 0.01 --update"
    missing = run(f"compare base.parquet {update}")
    assert missing.exit_code == 3 and "cannot be written" in only_line(missing.stderr)
    kept.parent.mkdir()
    low = run(f"compare base.parquet {update} --fail-under nDCG@5=0.99")
    assert low.exit_code == 1 and not kept.exists()
    first = run(f"compare base.parquet {update}")
    assert (first.exit_code, first.stdout) == (0, "") and "does not exist yet" in first.stderr
    expected = (
        fn.evaluate(fn.read_parquet("base.parquet", keep=["part"]), ["nDCG@5", "RR@5"]).to_arrow().to_pydict()
    )
    assert values(kept) == expected
    before = kept.read_bytes()
    worse = run(f"compare worse.parquet {update}")
    assert worse.exit_code == 1 and kept.read_bytes() == before
    assert "stays as it is, since 6 gates did not hold" in worse.stderr
    assert "nDCG@5 of worse may lose" in worse.stderr and " to baseline, " in worse.stderr
    better = run(f"compare better.parquet {update}")
    assert better.exit_code == 0 and "has the results of better now: 120 queries" in better.stderr
    assert values(kept)["nDCG@5"] == fn.evaluate("better.parquet", "nDCG@5")["nDCG@5"].tolist()
    assert run(f"compare base.parquet {update} --force").exit_code == 1 and values(kept) == expected
    same = run(f"compare base.parquet {update}")
    assert same.exit_code == 0 and kept.read_bytes() == before  # the same results are the same bytes
    assert list(kept.parent.iterdir()) == [kept]
    # measures of the file are those that are compared, and none is lost
    plain = facts("compare better.parquet --baseline kept/baseline.parquet")
    assert [row["measure"] for row in plain["rows"]] == ["nDCG@5", "RR@5"]
    for words, said in (
        ("better.parquet -m nDCG@5", "--update would drop RR@5 from"),
        ("better.parquet alike.parquet", "--update writes the results of one system; 2 are given"),
    ):
        refused = run(f"compare {words} --baseline kept/baseline.parquet --update")
        assert refused.exit_code == 2 and said in refused.stderr and kept.read_bytes() == before


def test_a_baseline_of_runs_and_in_a_process_of_its_own():
    grid = [(query, place) for query in range(40) for place in range(4)]
    Path("qrels.txt").write_text("".join(f"q{query} 0 d{place} {place % 2}\n" for query, place in grid))
    lines = [f"q{query} Q0 d{place} 1 {place * (query % 3 - 1)} r\n" for query, place in grid]
    Path("new.txt").write_text("".join(lines))
    line = "compare --qrels qrels.txt new.txt --baseline baseline.parquet --update -m nDCG@3"
    for said in ("does not exist yet", "has the results of new now"):
        result = in_process_of_its_own(*line.split())
        assert result.returncode == 0 and said in result.stderr, result.stderr
    Path("baseline.parquet").rename("other.parquet")
    words = ["compare", "baseline.parquet", "other.parquet"]
    assert in_process_of_its_own(*words).returncode == 3  # it is gone
    shutil.copy("other.parquet", "baseline.parquet")
    assert in_process_of_its_own(*words).returncode == 0


# ---- what runs gates ----


def in_shell(folder, *words, **environment):
    """A script that finds the command on its path."""
    program = folder / "bin" / "fastndcg"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fastndcg "$@"\n')
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        words, capture_output=True, text=True, check=False, env=os.environ | path | environment
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for a POSIX shell")
def test_the_canary_gate(folder):
    """The same scores pass, worse ones fail and leave the comparison, and a file that is not there is another failure."""
    for candidate, code, said in (
        ("base", 0, ""),
        ("worse", 1, "--no-worse-than: nDCG@10 of worse may lose"),
        ("absent", 3, ""),
    ):
        shutil.copy("base.parquet", "released.parquet")
        Path("comparison.json").unlink(missing_ok=True)
        words = ["released.parquet", f"{candidate}.parquet", "comparison.json"]
        done = in_shell(folder, str(ROOT / "scripts" / "canary_gate.sh"), *words)
        assert done.returncode == code and said in done.stderr, done.stderr
        assert code == 3 or json.loads(Path("comparison.json").read_text())


@pytest.mark.skipif(
    shutil.which("bash") is None or sys.platform == "win32", reason="the action is a script of bash"
)
def test_the_action(folder):
    """Its script, with inputs as GitHub gives them; none of them is a command."""
    declared = (ROOT / "action.yml").read_text(encoding="utf-8")
    lines = declared.partition("      run: |\n")[2].splitlines()
    script = "\n".join(line.removeprefix("        ") for line in lines)
    inputs = {"FILES": "base.parquet\n", "BASELINE": "kept.parquet", "MEASURES": "nDCG@5\r\nRR@5\r\n", "MARGIN": "0.01", "BY": "part",
              "UNDECIDED": "fail", "UPDATE": "true", "ARGUMENTS": "--confidence=0.9\n\n"}  # fmt: skip

    def step(**changed):
        bash = [shutil.which("bash"), "-e", "-o", "pipefail", "-c", script]
        return in_shell(folder, *bash, **inputs | {"GITHUB_STEP_SUMMARY": "summary.md"} | changed)

    assert step().returncode == 0 and Path("kept.parquet").exists()
    assert step(FILES="better.parquet", UPDATE="false").returncode == 0
    assert values("kept.parquet")["nDCG@5"] == fn.evaluate("base.parquet", "nDCG@5")["nDCG@5"].tolist()
    failed = step(FILES="worse.parquet")
    assert failed.returncode == 1 and failed.stdout.count("::error title=") == 6
    assert "intervals of 90 %" in Path("summary.md").read_text(encoding="utf-8")
    assert step(FILES="$(touch touched)").returncode == 3 and not Path("touched").exists()
    for name in inputs:
        assert f"{name}: ${{{{ inputs.{name.lower()} }}}}" in declared
    example = (
        (ROOT / "scripts" / "ranking_gate.yml")
        .read_text(encoding="utf-8")
        .partition("with:\n          files:")[2]
    )
    given = [
        line.strip().partition(":")[0]
        for line in example.splitlines()
        if not line[:10].strip() and ":" in line
    ]
    assert {"baseline", "measures", "margin", "update"} <= {
        name for name in given if f"  {name}:" in declared
    }
