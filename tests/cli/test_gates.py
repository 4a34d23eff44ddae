"""Gates as JUnit and GitHub read them, the scripts that run them, and baselines in a file."""

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
from commands import ROOT, facts, only_line, run

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
    line = f"compare base.parquet worse.parquet {GATE} --fail-under nDCG@5=0.1"
    result = run(f"{line} --format junit")
    assert result.exit_code == 1
    whole = ET.fromstring(result.stdout)  # noqa: S314 - written here
    gate = facts(line, code=1)["gate"]
    cases, failures = list(whole.iter("testcase")), list(whole.iter("failure"))
    assert len(cases) == len(gate["verdicts"]) + 1 == 2 * 3 + 1 == int(whole.attrib["tests"])
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
    assert "### fastndcg compare: 6 gates, 6 of which failed" in shown.stdout
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert run(line).stdout.splitlines() == annotations
    page = Path("summary.md").read_text(encoding="utf-8")
    assert page.startswith("before\n### fastndcg compare")
    assert page.count("| fails |") == 6
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


def test_a_baseline_is_another_system_or_a_file():
    Path("kept").mkdir()
    assert run("score base.parquet -m nDCG@5 -m RR@5 --keep part --out kept/stored.parquet").exit_code == 0
    gate = "--no-worse-than kept/stored.parquet --margin 0.01 --by part"
    worse = run(f"compare worse.parquet {gate}")  # the measures that are stored, and its columns
    assert worse.exit_code == 1 and worse.stderr.count("of worse may lose") == 2
    assert " to stored, " in worse.stderr and "RR@5" in worse.stdout
    assert run(f"compare better.parquet {gate} --baseline kept/stored.parquet").exit_code == 0
    whole = facts("compare better.parquet --baseline kept/stored.parquet")
    assert [(row["measure"], row["baseline"]) for row in whole["rows"]] == [
        ("nDCG@5", "stored"),
        ("RR@5", "stored"),
    ]
    shutil.copy("kept/stored.parquet", "base")  # a system of that name comes before the file
    assert facts("compare base.parquet better.parquet --baseline base")["rows"][0]["baseline"] == "base"
    for words in ("--baseline nowhere.parquet", "--no-worse-than nowhere.parquet"):
        refused = run(f"compare better.parquet {words}")
        assert refused.exit_code == 3
        said = f'{words.split()[0]}: "nowhere.parquet" is not a file and is not one of the systems: better.'
        assert said in only_line(refused.stderr)


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
              "UNDECIDED": "fail", "ARGUMENTS": "--confidence=0.9\n\n"}  # fmt: skip

    def step(**changed):
        bash = [shutil.which("bash"), "-e", "-o", "pipefail", "-c", script]
        return in_shell(folder, *bash, **inputs | {"GITHUB_STEP_SUMMARY": "summary.md"} | changed)

    assert run("score base.parquet -m nDCG@5 -m RR@5 --keep part --out kept.parquet").exit_code == 0
    assert step(FILES="better.parquet").returncode == 0
    failed = step(FILES="worse.parquet")
    assert failed.returncode == 1 and failed.stdout.count("::error title=") == 6
    assert "intervals of 90 %" in Path("summary.md").read_text(encoding="utf-8")
    assert step(FILES="$(touch touched)").returncode == 3 and not Path("touched").exists()
    for name in inputs:
        assert f"{name}: ${{{{ inputs.{name.lower()} }}}}" in declared
    example = (ROOT / "scripts" / "ranking_gate.yml").read_text(encoding="utf-8")
    for name in ("files", "baseline", "measures", "margin"):
        assert f"  {name}:" in declared and f" {name}:" in example
