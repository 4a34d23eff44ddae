"""The benchmark is right before it is fast: its answers, its records, and the tables that are made from them.

No test holds a time.
"""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import oracle
import pytest

from bench import (
    cold,
    compare,
    cores,
    instructions,
    intervals,
    process,
    reading,
    record,
    reference,
    rivals,
    run,
    runs,
    samples,
    scale,
    shuffled,
    tables,
    training,
    workloads,
)
from bench.errors import BenchError, WrongAnswerError
from bench.record import Row
from bench.timing import Time

ROOT = record.FOLDER.parent.parent
MET = Row("kernels", "even", "roofline", "ns/doc", 1.5, 1.25, 0.5, 0.25, ratio=5.0, bar=6.0, moonshot=4.0)
MISSED = Row("reading", "int64 ids", "read_table", "ns/doc", 6.0, 6.0, 4.0, 4.0, ratio=1.5, bar=1.15)
RIVAL = Row(
    "rivals",
    "tool",
    "nDCG@10",
    "ns/doc",
    2.0,
    2.0,
    500.0,
    500.0,
    ratio=250.0,
    bar=200.0,
    wants="more",
    note="a | b",
)
FASTER = Row("rivals", "faster tool", "nDCG@10", "ns/doc", 2.0, 2.0, 1.0, 1.0, ratio=0.5, wants="more")
ABSENT = Row("rivals", "absent tool", "nDCG@10", note="not installed: pip install absent")
COUNT = Row("instructions", "even", "", "instr/doc", None, 40.0)
FACTS = [
    Row(record.MACHINE, "date", note="2026-01-02"),
    Row(record.MACHINE, "processor", note="P"),
    Row(record.MACHINE, "cores", note="2"),
]
ROWS = [MET, MISSED, RIVAL, FASTER, ABSENT, COUNT, *FACTS]


# ---- what is measured gives right answers ----


@pytest.mark.parametrize("workload", workloads.WORKLOADS, ids=lambda workload: workload.name)
def test_workload_at_a_tiny_size(workload):
    row = workloads.measure(workload, scale=0.0005, seconds=0, least=1)
    assert row.name == workload.name and row.bar is not None and row.ratio is not None and row.ratio > 0


def test_bars_are_those_of_workloads_with_names_of_their_own():
    names = [workload.name for workload in workloads.WORKLOADS]
    assert len(set(names)) == len(names)
    unknown = workloads.Workload("x", workloads.WORKLOADS[0].sample, 1, measures=("nXYZ@10",))
    assert workloads.measure(unknown).note == "no such measure in this version"


@pytest.mark.parametrize("gain", ["linear", "exp2"])
@pytest.mark.parametrize("cutoff", [None, 1, 3, 10])
def test_reference_is_the_oracle(gain, cutoff):
    rankings = samples.even(20, 12, 0.5, 0)
    for query in range(rankings.n_queries):
        rows = slice(rankings.offsets[query], rankings.offsets[query + 1])
        grades, scores = rankings.relevance[rows], rankings.scores[rows]
        wanted = oracle.expected_ndcg(oracle.Query(grades.tolist(), scores.tolist()), cutoff, gain=gain)
        assert reference.ndcg(grades, scores, cutoff, gain=gain) == pytest.approx(wanted or 0.0, rel=1e-12)


def test_wrong_scores_are_not_timed(monkeypatch):
    rankings = samples.even(5, 20, 0.5)
    reference.check(rankings, ("nDCG@10", "nDCG(gain='exp2')@3", "DCG@5"), threads=1)
    monkeypatch.setattr(reference, "ndcg", lambda *_, **__: 0.123)
    with pytest.raises(WrongAnswerError, match=r"nDCG@10 of query 0: got .*, wanted 0\.123; not timed"):
        reference.check(rankings, ("nDCG@10",), threads=1)


def test_wrong_workload_is_reported_and_the_others_go_on(monkeypatch):
    def fail(workload, **_):
        raise WrongAnswerError("nDCG@10", workload.name, 1.0, 2.0)

    monkeypatch.setattr(workloads, "measure", fail)
    rows = list(workloads.rows(quick=True))
    assert len(rows) == len(workloads.WORKLOADS)
    assert all(row.note.startswith("failed: nDCG@10 of ") and row.ratio is None for row in rows)


def test_untied_scores_are_untied():
    scores = samples.untied(50, 100).scores.reshape(50, 100)
    assert all(len(np.unique(row)) == 100 for row in scores)


# ---- rivals ----


WAYS = [(name, way) for name in rivals.NAMES for way in rivals.ways(name)]


def test_rivals_are_those_that_are_promised():
    modules = {way.module for _, way in WAYS}
    assert modules == {
        "sklearn", "ranx", "pytrec_eval", "ir_measures", "lightgbm", "xgboost", "catboost", "torchmetrics",
        "polars", "duckdb",
    }  # fmt: skip


@pytest.mark.parametrize("name", rivals.NAMES)
def test_rival_agrees_or_is_reported_as_not_installed(name):
    ways = rivals.ways(name)
    if not any(way.installed for way in ways):
        assert all(rivals.measure(way).note == f"not installed: pip install {way.install}" for way in ways)
        pytest.skip(f"{ways[0].install} is not installed")
    if name.startswith(("ranx", "torchmetrics")):  # which set threads of the process, and take long to import
        rows = process.apart("rivals.measure_ways", name, 0.002, environment=rivals.ONE_THREAD)
    else:
        rows = [rivals.measure(way, scale=0.002, seconds=0.0) for way in ways]
    assert [row.name for row in rows] == [way.name for way in ways]
    assert all(row.ratio is not None for row in rows)


@pytest.mark.parametrize(
    "answer", [0.5, np.array([0.5, 0.5]), np.array([0.25])], ids=["mean", "values", "too few"]
)
def test_wrong_rivals_are_not_timed(answer):
    def prepare(_):
        return lambda: answer

    rival = rivals.Rival("tool", "numpy", "numpy", "nDCG@10", prepare, 2)
    with pytest.raises(WrongAnswerError, match=r"nDCG@10 of tool.*: got .*, wanted .*; not timed"):
        rivals.measure(rival)


def test_suites_of_pytest_benchmark_run():
    """They check the answers before they time them; here nothing is timed."""
    pytest.importorskip("pytest_benchmark")
    chosen = "one_small_query or even or Polars or scikit"
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", "--benchmark-disable", "bench/test_speed.py", "-k"]
    command = [sys.executable, "-m", "pytest", *words, chosen]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_missing_rival_is_reported_as_such():
    def prepare(_):
        raise AssertionError

    row = rivals.measure(rivals.Rival("tool", "no-such-tool", "no_such_tool", "nDCG@10", prepare, 2))
    assert row.note == "not installed: pip install no-such-tool" and row.ratio is None and not row.verdict


# ---- the other sections ----


def test_cold_start_scores_what_it_says():
    cold.check()


@pytest.mark.parametrize("ids", ["int64", "string", "CSV", "CSV.gz"])
def test_reading(tmp_path, ids):
    rows = process.apart("reading.measure", str(tmp_path), 50, ids, 1, 0.0)
    ways = reading.WAYS_OF_CSV if ids.startswith("CSV") else reading.WAYS
    for row, way in zip(rows, ways, strict=True):
        assert row.section == "reading" and ids in row.name and way in row.name
        assert row.ratio is not None and row.bar is not None


def test_threads_are_timed_once_they_agree(monkeypatch):
    monkeypatch.setattr(cores, "threads_here", lambda: [1, 2, 4])
    rankings = samples.even(50, 20, 0.5)
    rows = list(cores.measure("x", lambda threads: cores.add_up(rankings, threads), 1000, seconds=0.0))
    assert [row.name for row in rows] == ["x, 1 thread", "x, 2 threads", "x, 4 threads"]
    assert rows[0].ratio == 1 and all(row.verdict == "" for row in rows)
    with pytest.raises(WrongAnswerError, match=r"x of 2 threads"):
        list(cores.measure("x", lambda threads: np.array([threads]), 1, seconds=0.0))


def test_what_stays_on_one_thread_is_found():
    rankings = samples.even(50, 20, 0.5)
    call = partial(cores.score, rankings, "nDCG@10")
    assert 0 < cores.outside_drivers(call) < 1
    assert 0 < cores.of_caller(call) < 1


@pytest.mark.parametrize("ids", ["sorted", "in any order"])
def test_stages_of_files(tmp_path, ids):
    path = (
        reading.file_of(tmp_path, 50, "int64")
        if ids == "sorted"
        else shuffled.file_of(tmp_path, 2000, "text")
    )
    rows = process.apart("cores.files", str(path), ids, 0.0)
    stages = ["decode", "group", "score", "all, in memory", "all, as a stream"]
    assert list(dict.fromkeys(row.name.split(": ")[1].rpartition(", ")[0] for row in rows)) == stages


def test_process_says_why_it_failed():
    with pytest.raises(BenchError, match="ZeroDivisionError"):
        process.python("-c", "1 / 0")


def test_instructions_are_counted_or_a_reason_is_given(monkeypatch):
    monkeypatch.setattr(instructions.shutil, "which", lambda _: None)
    assert [row.note for row in instructions.rows(quick=False)] == ["not counted: valgrind is not installed"]


def test_requests_to_valgrind_do_nothing_without_it():
    if instructions.platform.machine() not in {"x86_64", "AMD64"}:
        pytest.skip("requests to valgrind are written for x86-64")
    assert instructions.requests()(0x1001) == 0


# ---- records ----


def test_record_is_read_as_it_was_written(tmp_path):
    record.write(ROWS, tmp_path / "a.csv")
    assert record.read(tmp_path / "a.csv") == ROWS


def test_newest_record_is_the_last_by_date(tmp_path):
    assert record.newest(tmp_path) is None
    for name in ("2026-01-02-0900-b.csv", "2026-01-02-1000-a.csv", "2025-12-31-2359-z.csv"):
        (tmp_path / name).touch()
    assert record.newest(tmp_path) == tmp_path / "2026-01-02-1000-a.csv"


def test_a_record_of_other_settings_says_so_first(monkeypatch):
    program = "import os, bench.run; print(os.environ.get('FASTNDCG_KERNELS'))"
    monkeypatch.delenv("FASTNDCG_KERNELS", raising=False)
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "None\n"
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    for usual in ("", "auto"):
        monkeypatch.setenv("FASTNDCG_KERNELS", usual)
        assert not record.settings()
    monkeypatch.setenv("FASTNDCG_KERNELS", "compiled")
    text = tables.long_tables([*record.settings(), *ROWS], record.Path("r.csv"))
    assert text.startswith("Not as users run it: FASTNDCG_KERNELS=compiled. 2026-01-02, P")


def test_both_ways_to_run_kernels_are_noted_where_they_differ(monkeypatch):
    def rows(*, quick):
        is_kept = os.environ.get("FASTNDCG_KERNELS") == "compiled"
        yield Row("reading", "slower", unit="s", cpu=2.0 if is_kept else 3.0, note="of the processor")
        yield Row("reading", "alike", unit="s", cpu=2.0 if is_kept else 2.05)

    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.delenv("FASTNDCG_KERNELS", raising=False)
    monkeypatch.setattr(reading, "rows", rows)
    slower, alike = run.both("reading", quick=True)
    assert (slower.cpu, alike.cpu) == (3.0, 2.05)
    assert (slower.note, alike.note) == ("of the processor; kernels compiled and kept: 2.00 s", "")
    assert "FASTNDCG_KERNELS" not in os.environ


def test_wrong_answers_of_runs_are_not_timed(monkeypatch):
    answers = iter([b"0.5", b"0.5", b"0.5", b"0.4"])

    def answer(*_, out, **__):
        out.write_bytes(next(answers))
        return Time(1.0, 1.0)

    monkeypatch.setattr(runs, "whole", answer)
    with pytest.raises(BenchError, match="a job: it printed b'0.4', and b'0.5' before"):
        list(runs.measure("a job", [], 2))


def test_machine_is_recorded():
    names = {row.name: row.note for row in record.machine("shared")}
    assert {"date", "processor", "cores", "memory", "python", "numba", "numpy", "pyarrow", "fastndcg"} <= set(
        names
    )
    assert names["note"] == "shared"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (MET, "met"),
        (MET._replace(ratio=4.0), "moonshot"),
        (MISSED, "missed"),
        (RIVAL, "met"),
        (RIVAL._replace(ratio=199.0), "missed"),
        (COUNT, ""),
        (ABSENT, ""),
    ],
)
def test_verdict(row, verdict):
    assert row.verdict == verdict


# ---- tables ----


TABLE_OF_RIVALS = (
    "| tool | asked for | ns a document | fastndcg | times as long |\n"
    "| --- | --- | --- | --- | --- |\n"
    "| tool | `nDCG@10` | 500 | 2.00 | 250 |\n"
    "| faster tool | `nDCG@10` | 1.00 | 2.00 | 0.500 |\n"
)


def test_table_of_rivals():
    assert tables.rivals_table(ROWS) == TABLE_OF_RIVALS


def test_main_readme_has_six_rivals():
    path = record.newest()
    assert path is not None
    *table, _, said = tables.short_table(record.read(path), path).splitlines()
    assert len(table) == 2 + 6
    assert path.name in said


def test_page_has_rivals_other_times_and_what_is_behind():
    text = tables.pages_tables(ROWS, record.Path("2026-01-02-p.csv"))
    assert text.startswith("2026-01-02, P, 2 cores. Record: `bench/record/2026-01-02-p.csv`.\n")
    assert f"## Other tools\n\n{TABLE_OF_RIVALS}" in text
    assert "| int64 ids | 6.00 ns/doc | read_table | 4.00 ns/doc | 1.50x |" in text
    assert text.endswith(
        "- int64 ids (against read_table): 1.50x, wanted at most 1.15\n- faster tool (against nDCG@10): "
        "0.500x, wanted at least 1\n"
    )


def test_long_tables_say_where_we_lose_and_who_is_absent():
    text = tables.long_tables(ROWS, record.Path("r.csv"))
    lost = text.partition("### Where we lose")[2].partition("###")[0]
    assert lost.split("\n") == [
        "",
        "",
        "- int64 ids (against read_table): 1.50x, wanted at most 1.15",
        "- faster tool (against nDCG@10): 0.500x, wanted at least 1",
        "",
        "",
    ]
    assert "| even | 1.25 ns/doc | roofline | 0.250 ns/doc | 5.00x | ≤ 6 | ≤ 4 | met |" in text
    assert "| absent tool | - | nDCG@10 | - |  |  |  | not installed: pip install absent |" in text
    assert "met; a \\| b" in text
    assert "Nowhere in this record." in tables.long_tables([MET], record.Path("r.csv"))


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (1234.5, "1234"), (12.345, "12.3"), (2.0, "2.00"), (0.012345, "0.0123")]
)
def test_numbers_have_three_digits(value, text):
    assert tables.number(value) == text


def test_tables_take_the_place_of_the_last_ones():
    text = "a\n<!-- x: written by bench/tables.py -->\nold\n<!-- end of x -->\nb\n"
    once = tables.insert(text, "x", "new\n")
    assert once == "a\n<!-- x: written by bench/tables.py -->\n\nnew\n\n<!-- end of x -->\nb\n"
    assert tables.insert(once, "x", "new\n") == once
    with pytest.raises(BenchError, match="no place for the table 'y'"):
        tables.insert(text, "y", "new\n")


@pytest.mark.parametrize("name", tables.GENERATED)
def test_readmes_have_the_tables_of_the_newest_record(name):
    path = record.newest()
    assert path is not None
    target, table = tables.GENERATED[name]
    text = target.read_text(encoding="utf-8")
    assert tables.insert(text, name, table(record.read(path), path)) == text


# ---- comparing ----


def test_instructions_may_not_grow():
    assert compare.regressions([COUNT], [COUNT]) == []
    assert compare.regressions([COUNT._replace(cpu=40.7)], [COUNT]) == []
    assert compare.regressions([COUNT._replace(cpu=44.0)], [COUNT]) == [
        "even: 44.0 instructions a document, 40.0 before"
    ]
    assert compare.regressions([MET._replace(ratio=50.0)], [MET]) == []


def test_comparison_shows_what_both_have():
    text = compare.table([MET._replace(ratio=6.0), ABSENT, RIVAL], [MET, ABSENT, MISSED])
    assert text.splitlines()[1:] == ["kernels  even  5.00  6.00  +20.0%"]


# ---- the command ----


def test_command_says_what_it_can_do():
    finished = subprocess.run(
        [sys.executable, "bench/run.py", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    for option in ("--quick", "--compare", "--only", "--note"):
        assert option in finished.stdout
    assert list(run.SECTIONS)[: len(tables.SECTIONS)] == list(tables.SECTIONS)


def test_quick_runs_are_not_compared():
    finished = subprocess.run(
        [sys.executable, "bench/run.py", "--quick", "--compare"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert finished.returncode == 2
    assert "--quick measures other sizes than the records have" in finished.stderr


# ---- what has no bar ----


@pytest.mark.parametrize("host", list(training.CASES))
def test_a_booster_says_the_same_number_before_it_is_timed(host):
    for case in training.CASES[host](2_000):
        assert all(row.ratio is not None and row.baseline_cpu for row in training.measure(case, 0.0))
    with pytest.raises(AssertionError, match="the host's nDCG@10 is 0.5, ours 0.6"):
        training.same(0.5, 0.6, 1e-12)


@pytest.mark.parametrize("section", ["trec", "stream", "intervals", "machinery"])
def test_other_sections_have_rows(section, monkeypatch):
    monkeypatch.setattr(intervals, "coverage", lambda experiments: iter(()))  # of many seconds
    found = list(run.rows_of(section, quick=True))
    assert found and all(row.section == section and row.unit and row.value is not None for row in found)


def test_jobs_on_paper_keep_their_laws():
    """Nothing is faster than its processor time allows, more workers are no slower, and what is too large is said."""
    cases = [{}, {"shuffled": True}, {"longest": 1e8}]
    for case in cases:
        alike = {"slow": 0.0, "lost": 0.0, **case}
        found = [scale.simulate(scale.Job(1e10, workers, **alike)) for workers in (1, 10, 100)]
        assert [each.tasks for each in found] == [2500] * 3 and not any(each.again for each in found)
        assert found[0].seconds > found[1].seconds > found[2].seconds
        for each, workers in zip(found, (1, 10, 100), strict=True):
            assert each.seconds >= each.processor / (workers * scale.CORES) and each.verdict == "fits"
        troubled = scale.simulate(scale.Job(1e10, 100, slow=0.1, lost=500.0, **case))
        assert (
            troubled.again
            and troubled.seconds >= found[2].seconds
            and troubled.processor > found[2].processor
        )
    once, twice = (scale.simulate(scale.Job(n * 1e9, 1, slow=0.0, lost=0.0)).processor for n in (1, 2))
    job = scale.Costs.job
    assert twice - job == pytest.approx(2 * (once - job), rel=0.01)
    broken = scale.simulate(scale.Job(1e12, 10_000, slices=1_000_000, merged_by_workers=False))
    assert "driver holds" in broken.verdict
