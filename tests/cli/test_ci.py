"""Gates in the words of continuous integration, the action that runs them, and baselines that are kept in a file."""

import json
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import ROOT, in_process_of_its_own, only_line, run

import fastndcg as fn
from fastndcg.errors import visible

pytest.importorskip("scipy")

ODD = '<b>&"%,:\x07\n\u2028'  # the value of a slice that is markup, and a command of a runner


def write(path, noise, *, turned=False):
    random = np.random.default_rng(5)
    grades = random.integers(0, 4, (120, 8))
    scores = grades + np.random.default_rng(int(noise * 10)).normal(0, noise, grades.shape)
    table = {
        "qid": np.repeat(np.arange(120), 8),
        "label": grades.ravel(),
        "score": (-scores if turned else scores).ravel(),
    }
    pq.write_table(pa.table(table | {"part": np.where(np.arange(960) // 8 % 2, ODD, "de")}), path)
    return path


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return {
        "base": write(tmp_path / "base.parquet", 2.0),
        "better": write(tmp_path / "better.parquet", 0.5),
        "alike": write(tmp_path / "alike.parquet", 2.1),
        "worse": write(tmp_path / "worse.parquet", 2.0, turned=True),
    }


GATE = ["-m", "nDCG@5", "-m", "RR@5", "--no-worse-than", "base", "--margin", "0.001", "--by", "part"]


def test_junit_has_a_case_for_each_gate(files, tmp_path):
    ids = tmp_path / "ids.txt"
    ids.write_text("3\n5\n")
    words = [
        "compare",
        files["base"],
        files["worse"],
        *GATE,
        "--queries",
        ids,
        "--fail-under",
        "nDCG@5=0.1",
        "--format",
        "junit",
    ]
    result = run(*words)
    assert result.exit_code == 1
    whole = ET.fromstring(result.stdout)  # noqa: S314 - written here
    cases = list(whole.iter("testcase"))
    gate = json.loads(run(*words[:-2], "--format", "json").stdout)["gate"]
    verdicts = gate["verdicts"]
    assert len(cases) == len(verdicts) + 1 == 2 * 3 + 2 * 2 + 1 == int(whole.attrib["tests"])
    failures = list(whole.iter("failure"))
    assert (
        len(failures) == int(whole.attrib["failures"]) == sum(each["verdict"] != "holds" for each in verdicts)
    )
    assert sum(line.startswith("--") for line in result.stderr.splitlines()) == len(failures)
    assert [each.attrib["message"] for each in failures] == list(map(visible, gate["failed"])) and {
        each.attrib["type"] for each in failures
    } == {"fails"}
    names = [each.attrib["name"] for each in cases]
    assert (
        names[0] == "nDCG@5 of worse"
        and any('part=<b>&"%,:\\x07' in name for name in names)
        and names[-1] == "worse: the mean of nDCG@5"
    )
    # what is undecided is skipped where it passes
    passes = run("compare", files["base"], files["alike"], *GATE, "--undecided", "pass", "--format", "junit")
    whole = ET.fromstring(passes.stdout)  # noqa: S314 - written here
    assert passes.exit_code == 0 and int(whole.attrib["skipped"]) == len(list(whole.iter("skipped"))) > 0
    assert whole.attrib["failures"] == "0"


def test_github_has_a_line_for_each_gate_that_does_not_hold(files, tmp_path, monkeypatch):
    words = ["compare", files["base"], files["worse"], *GATE, "--format", "github"]
    shown = run(*words)
    assert shown.exit_code == 1
    annotations = [line for line in shown.stdout.splitlines() if line.startswith("::")]
    assert len(annotations) == 6 and all(
        line.startswith("::error title=") and ": fails" in line for line in annotations
    )
    assert (
        annotations[2].startswith("::error title=nDCG@5 of worse where part=")
        and "%25%2C%3A\\x07\\n" in annotations[2]
    )
    assert (
        "### fastndcg compare: 6 gates, 6 of which do not hold" in shown.stdout and "\\<b\\>" in shown.stdout
    )
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    again = run(*words, "--ranks")
    assert again.stdout.splitlines() == annotations
    page = summary.read_text(encoding="utf-8")
    assert (
        page.startswith("before\n### fastndcg compare")
        and page.count("**fails**") == 6
        and "| rank |" in page
    )
    warned = run("compare", files["base"], files["alike"], *GATE, "--undecided", "pass", "--format", "github")
    kinds = {line.split()[0] for line in warned.stdout.splitlines()}
    assert warned.exit_code == 0 and kinds == {"::warning"}
    wide = ["0.2" if word == "0.001" else word for word in GATE]
    good = run("compare", files["base"], files["better"], *wide, "--format", "github")
    assert (good.exit_code, good.stdout) == (0, "")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    assert "GITHUB_STEP_SUMMARY" in run(*words).stderr and run(*words).exit_code == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "junit"], "--format junit has a test for each gate; give one"),
        (["--format", "junit", "--ranks", "--no-worse-than", "base"], "--ranks is a table"),
        (["--format", "github", "--movers", "3"], "--movers is a table of its own"),
        (["--update"], "--update writes the file of --baseline; name it"),
        (["--update", "--baseline", "base"], "--update writes the file of --baseline; name it"),
        (["--force", "--baseline", "base"], "--force has no meaning without --update"),
        (["--update", "--baseline", "{folder}/worse.parquet"], "holds no results of `fastndcg score --out`"),
    ],
)
def test_words_that_are_refused(files, tmp_path, words, message):
    before = {path: path.read_bytes() for path in files.values()}
    result = run("compare", files["base"], files["better"], *(word.format(folder=tmp_path) for word in words))
    assert result.exit_code == 2 and message in only_line(result.stderr)
    assert before == {path: path.read_bytes() for path in files.values()}


# ---- a baseline in a file ----


def values(path):
    return pq.read_table(path).to_pydict()


def test_a_baseline_follows_what_holds(files, tmp_path):
    """It begins with the first system, stays where a gate does not hold, and is replaced where all hold, or where that is asked."""
    kept = tmp_path / "kept" / "baseline.parquet"
    words = [
        "-m", "nDCG@5", "-m", "RR@5", "--by", "part", "--no-worse-than", kept, "--margin", "0.01", "--update",
    ]  # fmt: skip
    missing = run("compare", files["base"], *words)
    assert missing.exit_code == 3 and "cannot be written" in only_line(missing.stderr)
    kept.parent.mkdir()
    low = run("compare", files["base"], *words, "--fail-under", "nDCG@5=0.99")
    assert low.exit_code == 1 and not kept.exists()
    first = run("compare", files["base"], *words)
    assert (first.exit_code, first.stdout) == (0, "") and "does not exist yet" in first.stderr
    expected = (
        fn.evaluate(fn.read_parquet(files["base"], keep=["part"]), ["nDCG@5", "RR@5"]).to_arrow().to_pydict()
    )
    assert values(kept) == expected
    before = kept.read_bytes()
    worse = run("compare", files["worse"], *words)
    assert (
        worse.exit_code == 1
        and kept.read_bytes() == before
        and "stays as it is, since 6 gates did not hold" in worse.stderr
    )
    assert "nDCG@5 of worse may lose" in worse.stderr and " to baseline, " in worse.stderr
    better = run("compare", files["better"], *words)
    assert better.exit_code == 0 and "has the results of better now: 120 queries" in better.stderr
    assert values(kept)["nDCG@5"] == fn.evaluate(files["better"], "nDCG@5")["nDCG@5"].tolist()
    forced = run("compare", files["base"], *words, "--force")
    assert forced.exit_code == 1 and values(kept) == expected
    same = run("compare", files["base"], *words)
    assert same.exit_code == 0 and kept.read_bytes() == before  # the same results are the same bytes
    assert list(kept.parent.iterdir()) == [kept]
    # measures of the file are those that are compared, and none is lost
    plain = run("compare", files["better"], "--baseline", kept, "--format", "json")
    assert [row["measure"] for row in json.loads(plain.stdout)["rows"]] == ["nDCG@5", "RR@5"]
    fewer = run("compare", files["better"], "--baseline", kept, "-m", "nDCG@5", "--update")
    assert fewer.exit_code == 2 and "--update would drop RR@5 from" in only_line(fewer.stderr)
    two = run("compare", files["better"], files["alike"], "--baseline", kept, "--update")
    assert two.exit_code == 2 and "--update writes the results of one system; 2 are given" in two.stderr
    assert kept.read_bytes() == before


def test_a_baseline_of_runs_and_in_a_process_of_its_own(tmp_path):
    qrels, run_file, kept = tmp_path / "qrels.txt", tmp_path / "new.txt", tmp_path / "baseline.parquet"
    qrels.write_text(
        "".join(f"q{query} 0 d{place} {place % 2}\n" for query in range(40) for place in range(4))
    )
    run_file.write_text(
        "".join(
            f"q{query} Q0 d{place} 1 {place * (query % 3 - 1)} r\n"
            for query in range(40)
            for place in range(4)
        )
    )
    words = ["compare", "--qrels", qrels, run_file, "--baseline", kept, "--update", "-m", "nDCG@3"]
    for said in ("does not exist yet", "has the results of new now"):
        result = in_process_of_its_own(*words)
        assert result.returncode == 0 and said in result.stderr, result.stderr
    stored = in_process_of_its_own("compare", kept, kept.rename(tmp_path / "other.parquet"))
    assert stored.returncode == 3  # it is gone
    shutil.copy(tmp_path / "other.parquet", kept)
    assert in_process_of_its_own("compare", kept, tmp_path / "other.parquet").returncode == 0


# ---- the action ----


def script_of_the_action():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    lines = text.partition("      run: |\n")[2].splitlines()
    return "\n".join(line.removeprefix("        ") for line in lines)


@pytest.mark.skipif(
    shutil.which("bash") is None or sys.platform == "win32", reason="the action is a script of bash"
)
def test_the_action(files, tmp_path):
    """Its script, with inputs as GitHub gives them; none of them is a command."""
    program = tmp_path / "fastndcg"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fastndcg "$@"\n')
    program.chmod(0o755)
    kept, summary = tmp_path / "baseline.parquet", tmp_path / "summary.md"
    inputs = {"FILES": f"{files['base']}\n", "BASELINE": str(kept), "MEASURES": "nDCG@5\r\nRR@5\r\n", "MARGIN": "0.01", "BY": "part",
              "UNDECIDED": "fail", "UPDATE": "true", "ARGUMENTS": "--confidence=0.9\n\n"}  # fmt: skip

    def step(**changed):
        environment = (
            os.environ | inputs | changed | {"PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary)}
        )
        environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
        return subprocess.run([shutil.which("bash"), "-e", "-o", "pipefail", "-c", script_of_the_action()], env=environment, capture_output=True,
                              text=True, check=False)  # fmt: skip

    assert step().returncode == 0 and kept.exists()
    assert step(FILES=str(files["better"]), UPDATE="false").returncode == 0
    assert values(kept)["nDCG@5"] == fn.evaluate(files["base"], "nDCG@5")["nDCG@5"].tolist()
    failed = step(FILES=str(files["worse"]))
    assert failed.returncode == 1 and failed.stdout.count("::error title=") == 6
    assert "intervals of 90 %" in summary.read_text(encoding="utf-8")
    (tmp_path / "touched").unlink(missing_ok=True)
    assert step(FILES=f"$(touch {tmp_path}/touched)").returncode == 3 and not (tmp_path / "touched").exists()
    declared = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name in inputs:
        assert f"{name}: ${{{{ inputs.{name.lower()} }}}}" in declared
    example = (
        (ROOT / "scripts" / "ranking_gate.yml")
        .read_text(encoding="utf-8")
        .partition("with:\n          files:")[2]
    )
    given = [
        line.strip().partition(":")[0]
        for line in ("files:" + example).splitlines()
        if line[:10].strip() == "" and ":" in line
    ]
    assert {"baseline", "measures", "margin", "update"} <= {
        name for name in given if f"  {name}:" in declared
    }
