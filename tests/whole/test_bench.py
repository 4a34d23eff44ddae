"""The benchmark is right before it is fast. `bench/run.py` checks the answers itself; no test holds a time."""

import subprocess
import sys

import oracle
import pytest

from bench import instructions, record, reference, run, runs, samples, tables, test_rivals, workloads
from bench.errors import WrongAnswerError
from bench.record import Row

ROOT = record.FOLDER.parent.parent
MET = Row("kernels", "even", "roofline", "ns/doc", 1.5, 1.25, 0.5, 0.25, ratio=5.0, bar=6.0, moonshot=4.0)
MISSED = Row("reading", "int64 ids", "read_table", "ns/doc", 6.0, 6.0, 4.0, 4.0, ratio=1.5, bar=1.15)
COUNT = Row("instructions", "even", "", "instr/doc", None, 40.0)


@pytest.mark.parametrize("gain", ["linear", "exp2"])
@pytest.mark.parametrize("cutoff", [None, 3, 10])
def test_reference_is_the_oracle(gain, cutoff):
    rankings = samples.even(20, 12, 0.5, 0)
    for query in range(rankings.n_queries):
        rows = slice(rankings.offsets[query], rankings.offsets[query + 1])
        grades, scores = rankings.relevance[rows], rankings.scores[rows]
        expected = oracle.expected_ndcg(oracle.Query(grades.tolist(), scores.tolist()), cutoff, gain=gain)
        assert reference.ndcg(grades, scores, cutoff, gain=gain) == pytest.approx(expected or 0.0, rel=1e-12)


def test_wrong_scores_are_not_timed(monkeypatch):
    rankings = samples.even(5, 20, 0.5)
    reference.check(rankings, ("nDCG@10", "nDCG(gain='exp2')@3", "DCG@5"), threads=1)
    row = workloads.measure(workloads.WORKLOADS[0], scale=0.0005, seconds=0, least=1)
    assert row.bar is not None and row.ratio is not None and row.ratio > 0
    monkeypatch.setattr(reference, "ndcg", lambda *_, **__: 0.123)
    with pytest.raises(WrongAnswerError, match=r"nDCG@10 of query 0: got .*, wanted 0\.123; not timed"):
        reference.check(rankings, ("nDCG@10",), threads=1)


def test_record_is_read_as_it_was_written(tmp_path):
    rows = [MET, MISSED, COUNT, Row(record.MACHINE, "date", note="2026-01-02")]
    record.write(rows, tmp_path / "a.csv")
    assert record.read(tmp_path / "a.csv") == rows
    assert [row.verdict for row in rows[:3]] == ["met", "missed", ""]
    for cpu, grown in ((40.7, []), (44.0, ["even: 44.0 instructions a document, 40.0 before"])):
        table, found = run.beside_record([COUNT._replace(cpu=cpu)], rows)
        assert found == grown and "40.0" in table


def test_records_have_what_is_measured():
    def names(section):
        return {row.name for row in record.read(record.path_of(section)) if row.section == section}

    assert names("kernels") == {workload.name for workload in workloads.WORKLOADS}
    assert names("runs") == {f"{name}, runs after the first" for name in runs.JOBS}
    assert names("instructions") == set(instructions._CASES)
    shown = tables.tools()
    assert all(f"| {name} |" in shown for name in test_rivals.RIVALS)
    assert shown.count("\n|") == len(test_rivals.RIVALS) + 1 and set(tables.SHOWN) < set(test_rivals.RIVALS)


def test_every_section_is_a_module_and_the_command_names_it():
    for module in run.SECTIONS.values():
        assert (ROOT / "bench" / f"{module}.py").exists()
    command = [sys.executable, "bench/run.py", "--quick", "--record"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "leave out --quick or --record" in done.stderr


@pytest.mark.rivals
def test_a_run_of_pytest_benchmark_stands_beside_the_record():
    """Also on another machine than the record's, which is a warning."""
    pytest.importorskip("pytest_benchmark")
    command = ["-m", "pytest", "-q", "--collect-only", "bench/test_rivals.py", "--benchmark-compare"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "Comparing against benchmarks from" in done.stderr and "28 tests collected" in done.stdout
