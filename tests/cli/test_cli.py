"""The command line: results on stdout, all else on stderr, exit codes, and nothing half-written."""

import csv
import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, in_process_of_its_own, only_line, program, run

import fastndcg as fn
from fastndcg.cli import COMMANDS
from fastndcg.cli.sample import write_sample

LABELS, SCORES = [3, 0, 2, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4]
QUERY_IDS, COUNTRIES = [7, 7, 7, 8, 8, 9, 9], ["DE", "DE", "DE", "FR", "FR", "FR", "FR"]


def table(**columns):
    return pa.table({"qid": QUERY_IDS, "label": LABELS, "score": SCORES} | columns)


@pytest.fixture
def predictions(tmp_path):
    path = tmp_path / "predictions.parquet"
    pq.write_table(table(country=COUNTRIES), path)
    return path


def expected(*measures):
    return fn.evaluate(fn.Rankings.from_query_ids(QUERY_IDS, LABELS, SCORES), measures).mean()


def means(result):
    return {row["measure"]: row["mean"] for row in json.loads(result.stdout)["measures"]}


# ---- results ----


def test_score_finds_columns_and_says_which(predictions):
    result = run("score", predictions)
    assert result.exit_code == 0
    assert result.stdout.split()[0] == "measure"
    assert f"{expected('nDCG@10')['nDCG@10']:.6f}" in result.stdout
    assert (
        only_line(result.stderr) == "3 queries, 7 documents; columns: query=qid, relevance=label, score=score"
    )


def test_json_is_what_evaluate_returns(predictions):
    measures = ["nDCG@10", "nDCG(gain='exp2')@1,3", "CG(ties='worst')@4"]
    result = run(
        "score", predictions, "--format", "json", *(word for measure in measures for word in ("-m", measure))
    )
    assert means(result) == expected(*measures)
    facts = json.loads(result.stdout)
    assert (facts["queries"], facts["documents"]) == (3, 7)
    assert facts["columns"] == {"query": "qid", "relevance": "label", "score": "score"}


def test_json_has_null_for_nan(predictions):
    result = run("score", predictions, "--format", "json", "-m", "nDCG(empty='nan')@10")
    row = json.loads(result.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))[
        "measures"
    ][0]
    assert row["mean"] is None
    assert (row["queries"], row["empty"]) == (3, 1)


def test_csv_is_rfc_4180(predictions):
    measures = ("nDCG(gain='exp2', ties='worst')@3", "nDCG(empty='nan')")
    result = run(
        "score", predictions, "--format", "csv", *(word for measure in measures for word in ("-m", measure))
    )
    text = result.stdout_bytes.decode()
    assert text.count("\r\n") == text.count("\n") == 3
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["measure"] for row in rows] == list(measures)
    assert float(rows[0]["mean"]) == expected(*measures)[measures[0]]
    assert rows[1]["mean"] == ""


def test_columns_by_name(tmp_path):
    path = tmp_path / "odd.parquet"
    pq.write_table(
        pa.table({"q": QUERY_IDS, "gold": LABELS, "s1": SCORES, "s2": [-score for score in SCORES]}), path
    )
    named = ("--query", "q", "--relevance", "gold", "--score", "s1", "--format", "json")
    assert means(run("score", path, *named)) == expected("nDCG@10")


def test_several_files_are_one_input(tmp_path):
    for part, rows in enumerate((slice(0, 3), slice(3, 7))):
        pq.write_table(table()[rows], tmp_path / f"{part}.parquet")
    together = means(run("score", tmp_path / "0.parquet", tmp_path / "1.parquet", "--format", "json"))
    assert together == means(run("score", tmp_path, "--format", "json")) == expected("nDCG@10")


@pytest.mark.parametrize("name", ["s.parquet", "s.csv", "s.jsonl", "s.feather", "s.NDJSON", "s"])
def test_out_is_what_its_ending_says(predictions, tmp_path, name):
    pd = pytest.importorskip("pandas")
    out = tmp_path / name
    measures = ("-m", "ndcg@10", "-m", "nDCG(empty='nan')@2")
    assert run("score", predictions, "--keep", "country", "--out", out, *measures).exit_code == 0
    kept = fn.read_parquet(predictions, keep=("country",))
    wanted = fn.evaluate(kept, ["ndcg@10", "nDCG(empty='nan')@2"]).to_pandas()
    text = out.suffix.lower() in (".csv", ".jsonl", ".ndjson")
    if out.suffix == ".csv":
        found = pd.read_csv(out)
    elif text:
        found = pd.DataFrame([json.loads(line) for line in out.read_text().splitlines()])
    else:
        found = pd.read_feather(out) if out.suffix == ".feather" else pd.read_parquet(out)
    pd.testing.assert_frame_equal(found, wanted, check_dtype=not text)
    assert "NaN" not in out.read_text(errors="replace") or not text


def test_markdown(predictions):
    lines = run("score", predictions, "--format", "markdown", "--by", "country").stdout.splitlines()
    assert lines[0].startswith("| measure | mean |") and lines[1].startswith("| --- | ---: |")
    assert any(line.startswith("| country | measure | mean |") for line in lines)
    assert run("measures", "RR", "--format", "markdown").stdout.startswith("| name | notation |")
    assert run("conventions", "--format", "markdown").stdout.startswith("| name |")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["score"],
        ["compare"],
        ["explain"],
        ["report"],
        ["conventions"],
        ["demo"],
        ["trec_eval"],
        ["measures"],
    ],
)
def test_h_is_help_everywhere(words):
    result = run(*words, "-h")
    assert result.exit_code == 0 and result.stdout.startswith("Usage: fastndcg")


def test_a_shell_completes_commands():
    asked = {"_FASTNDCG_COMPLETE": "complete_bash", "COMP_WORDS": "fastndcg sc", "COMP_CWORD": "1"}
    done = in_process_of_its_own(env=os.environ | asked)
    assert done.stdout.split() == ["score"]


def test_weight(tmp_path):
    path = tmp_path / "weighted.parquet"
    pq.write_table(table(traffic=[3.0, 3, 3, 1, 1, 0, 0]), path)
    values = fn.evaluate(fn.Rankings.from_query_ids(QUERY_IDS, LABELS, SCORES), "nDCG@10")["nDCG@10"]
    result = run("score", path, "--weight", "traffic", "--format", "json")
    assert means(result)["nDCG@10"] == pytest.approx(np.average(values, weights=[3, 1, 0]), rel=1e-15)


def test_nan_scores_rank_last_on_demand(tmp_path):
    path = tmp_path / "nan.parquet"
    pq.write_table(table(score=[float("nan"), *SCORES[1:]]), path)
    refused = run("score", path)
    assert (refused.exit_code, "pass --nan" in only_line(refused.stderr)) == (3, True)
    last = fn.Rankings.from_query_ids(QUERY_IDS, LABELS, [-math.inf, *SCORES[1:]])
    assert (
        means(run("score", path, "--nan", "last", "--format", "json")) == fn.evaluate(last, "nDCG@10").mean()
    )


def test_out_has_each_query_and_its_kept_columns(predictions, tmp_path):
    out = tmp_path / "per_query.parquet"
    result = run("score", predictions, "--keep", "country", "--out", out, "-m", "nDCG@1,2", "--threads", 2)
    assert result.exit_code == 0
    written = pq.read_table(out)
    assert written.column_names == ["qid", "country", "nDCG@1", "nDCG@2"]
    assert written["country"].to_pylist() == ["DE", "FR", "FR"]
    assert sorted(os.listdir(tmp_path)) == ["per_query.parquet", "predictions.parquet"]


@pytest.mark.parametrize(
    ("folder", "score"),
    [("lightgbm_lambdarank", "score"), ("lightgbm_lambdarank", "score_1dp"), ("mq2008", "score")],
)
def test_real_data_agrees_with_scikit_learn(data, folder, score):
    stored = json.loads((data / folder / "reference_means.json").read_text())
    words = [] if score == "score" else ["--score", score]
    result = run("score", data / folder / stored["data"], "-m", "nDCG@1,5,10", "--format", "json", *words)
    reference = stored["means"][score]
    for cutoff in (1, 5, 10):
        wanted = reference[f"sklearn ndcg@{cutoff} linear ties=average empty=0"]
        assert means(result)[f"nDCG@{cutoff}"] == pytest.approx(wanted, rel=1e-12)


# ---- --fail-under ----


def test_fail_under_passes_at_the_bound(predictions):
    bound = expected("nDCG@10")["nDCG@10"]
    assert run("score", predictions, "--fail-under", f"nDCG@10={bound!r}").exit_code == 0
    result = run("score", predictions, "--fail-under", f"nDCG@10={math.nextafter(bound, 1)!r}")
    assert result.exit_code == 1
    assert "nDCG@10" in result.stdout, "results are written whatever the verdict"
    assert result.stderr.splitlines()[-1].startswith(
        f"--fail-under: the mean of nDCG@10 is {bound!r}, below "
    )


def test_fail_under_fails_on_nan(predictions):
    result = run("score", predictions, "--fail-under", "nDCG(empty='nan')@10=0")
    assert result.exit_code == 1
    assert "the mean of nDCG(empty='nan')@10 is NaN" in result.stderr


def test_fail_under_adds_its_measure_and_holds_every_bound(predictions):
    gates = ("--fail-under", "CG@1,2=0.1", "--fail-under", "nDCG@3=0.999")
    result = run("score", predictions, "-m", "nDCG@10", "--format", "json", *gates)
    assert list(means(result)) == ["nDCG@10", "CG@1", "CG@2", "nDCG@3"]
    assert result.exit_code == 1
    assert "nDCG@3" in result.stderr
    assert " CG@" not in result.stderr


# ---- wrong input ----


def _write(columns):
    return lambda path: pq.write_table(columns(), path)


def _truncated(path):
    pq.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:-20])


WRONG_INPUTS = [
    ("missing file", lambda _: None, "predictions.parquet"),
    ("empty file", lambda path: path.write_bytes(b""), "predictions.parquet"),
    ("no Parquet", lambda path: path.write_text("qid,label,score\n1,0,2\n"), "predictions.parquet"),
    ("truncated", _truncated, "predictions.parquet"),
    ("folder without Parquet", lambda path: path.mkdir(), "predictions.parquet"),
    ("no rows", _write(lambda: table()[:0]), "predictions.parquet"),
    ("missing column", _write(lambda: table().drop_columns("label")), "relevance"),
    ("two columns that fit", _write(lambda: table(prediction=SCORES)), "--score|score="),
    ("null grade", _write(lambda: table(label=[None, *LABELS[1:]])), "label.*null|null.*label"),
    ("null id", _write(lambda: table(qid=[None, *QUERY_IDS[1:]])), "qid.*null|null.*qid"),
    ("NaN score", _write(lambda: table(score=[float("nan"), *SCORES[1:]])), "NaN"),
    ("negative grade", _write(lambda: table(label=[-1, *LABELS[1:]])), "negative|-1"),
    ("texts as scores", _write(lambda: table(score=["a"] * 7)), "score"),
]


@pytest.mark.parametrize(
    ("make", "message"), [case[1:] for case in WRONG_INPUTS], ids=[case[0] for case in WRONG_INPUTS]
)
def test_wrong_input_is_one_line_and_exit_1(tmp_path, make, message):
    path, out = tmp_path / "predictions.parquet", tmp_path / "out.parquet"
    make(path)
    before = sorted(os.listdir(tmp_path))
    result = run("score", path, "--out", out)
    line = only_line(result.stderr)
    assert re.search(message, line), line
    assert "Traceback" not in line
    assert result.exit_code == 3
    assert not result.stdout
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there is no device to protect")
def test_output_over_a_device_is_refused(predictions):
    result = run("score", predictions, "--out", "/dev/zero")
    assert result.exit_code == 3
    assert "which belongs to the system" in only_line(result.stderr)
    assert run("score", predictions, "--out", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


# ---- help ----


def test_version():
    result = run("--version")
    assert (result.stdout, result.exit_code) == (f"fastndcg {fn.__version__}\n", 0)


@pytest.mark.parametrize("name", ["score", "compare", "report", "demo"])
def test_every_command_has_an_example_in_its_help(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"\n    fastndcg {name} " in result.stdout
    assert name in run("--help").stdout


def test_summaries_of_commands_are_whole_and_in_order():
    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_help_imports_nothing_heavy():
    heavy = ("numba", "pandas", "scipy", "pyarrow.parquet", "pyarrow.dataset")
    code = f"import sys\nfrom fastndcg.cli import app\ntry:\n    app(['--help'])\nfinally:\n    sys.exit(str([m for m in {heavy} if m in sys.modules]))"
    done = program(code)
    assert done.stderr.strip() == "[]"


# ---- the process ----


def test_pandas_is_not_needed(predictions):
    code = """
import sys
class NoPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas())
from fastndcg.__main__ import main
main()
"""
    done = program(code, "score", predictions, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("score", predictions, "--format", "csv").stdout.replace("\r\n", "\n")


def test_as_a_module():
    done = in_process_of_its_own("--version")
    assert (done.stdout, done.stderr, done.returncode) == (f"fastndcg {fn.__version__}\n", "", 0)


def test_without_the_extra_one_line_says_how_to_get_it():
    code = "import sys; sys.modules['typer'] = None; from fastndcg.__main__ import main; sys.argv = ['fastndcg']; main()"
    done = program(code)
    assert done.returncode == 3
    assert (
        only_line(done.stderr)
        == "The command line needs typer, which is not installed: pip install 'fastndcg[cli]'"
    )


def test_failing_process_leaves_one_line(tmp_path):
    done = in_process_of_its_own("score", tmp_path / "nowhere.parquet")
    assert done.returncode == 3
    assert "nowhere.parquet" in only_line(done.stderr)


def has_written(folder, pid):
    """Whether a process has written rows to a file in the folder, which need not have a name yet."""
    files = list(folder.iterdir())
    with suppress(OSError):
        handles = Path(f"/proc/{pid}/fd").iterdir()
        files += [handle for handle in handles if str(handle.readlink()).startswith(str(folder))]
    with suppress(OSError):
        return any(file.stat().st_size > 1e6 for file in files)
    return False


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals as POSIX has them")
class TestPosix:
    def test_closed_pipe_is_quiet(self, predictions):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as stdout:
            done = subprocess.run(
                command("score", predictions), stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 141
        assert only_line(done.stderr).startswith("3 queries")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
    def test_full_disk_is_one_line(self, predictions):
        with Path("/dev/full").open("w") as stdout:
            done = subprocess.run(
                command("score", predictions), stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 3
        assert only_line(done.stderr.partition("\n")[2]) == (
            "stdout cannot be written: No space left on device."
        )

    @pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_interrupted_leaves_nothing(self, tmp_path, sent, code):
        # large enough to be still writing when the signal comes, which is once rows are written, and not only
        # the mark that begins the file: before that, while extension modules are first imported, some of them
        # lose exceptions
        words = command("demo", "--queries", 2_000_000, "--out", tmp_path / "sample.parquet")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while not has_written(tmp_path, process.pid) and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(sent)
            stdout, stderr = process.communicate(timeout=120)
        assert process.returncode in {code, -sent}, "a shell shows 130 or 143 for either"
        assert (stdout, "Traceback" in stderr) == ("", False)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("module", ["typer", "pyarrow", "fastndcg.cli.score"])
    def test_interrupted_while_it_is_imported(self, predictions, module):
        code = f"""
            import os, signal, sys
            class Interrupts:
                def find_spec(self, name, *_):
                    if name == {module!r}:
                        os.kill(os.getpid(), signal.SIGINT)
            from fastndcg.__main__ import main
            sys.meta_path.insert(0, Interrupts())
            sys.argv[1:] = ["score", {str(predictions)!r}]
            main()
        """
        done = program(code)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

    @pytest.mark.parametrize("width", [40, 80])
    def test_the_demonstration_shows_its_numbers_on_any_terminal(self, tmp_path, width):
        import pty

        terminal, stdout = pty.openpty()
        words = command("demo", "--queries", 30, "--out", tmp_path / "s.parquet")
        done = subprocess.run(
            words,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=os.environ | {"COLUMNS": str(width)},
            check=False,
        )
        os.close(stdout)
        shown = os.read(terminal, 100_000).decode()
        os.close(terminal)
        assert done.returncode == 0
        measures = ["nDCG@10", "nDCG(gain='exp2')@1,3,5", "nDCG", "nDCG(ties='worst')@10", "CG@10"]
        scores = fn.evaluate(fn.read_parquet(tmp_path / "s.parquet"), measures)
        for measure, mean in scores.mean().items():
            assert re.search(rf"^{re.escape(measure)} .*{mean:.6f}", shown, re.MULTILINE)
        assert max(map(len, shown.partition("\r\n\r\n")[0].splitlines())) <= width


# ---- demo ----


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "a sample.parquet"  # a path that a shell must have quoted
    return path, run("demo", "--queries", 400, "--out", path)


def test_demo_scores_its_sample(sample):
    path, result = sample
    assert result.exit_code == 0
    scored = run("score", path, "-m", "nDCG@10", "--format", "csv").stdout
    mean = float(next(csv.DictReader(io.StringIO(scored)))["mean"])
    assert f"{mean:.6f}" in result.stdout
    assert 0.3 < mean < 0.8
    assert "million documents per second" in result.stdout


def test_demo_says_what_to_try_and_it_works(sample, monkeypatch):
    path, result = sample
    monkeypatch.chdir(path.parent)
    tries = [shlex.split(line) for line in result.stdout.splitlines() if line.startswith("  fastndcg ")]
    assert len(tries) == 4
    for words in tries:
        assert run(*words[1:]).exit_code == 0, words


def test_demo_keeps_its_sample_in_a_temporary_folder(tmp_path, monkeypatch):
    import tempfile

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        result = run("demo", "--queries", 5)
        assert result.exit_code == 0
    (written,) = tmp_path.glob("fastndcg-demo-*/sample.parquet")
    assert f"MB, to {written}\n" in result.stderr and str(written) in result.stdout
    assert not list((tmp_path / "here").iterdir())


def test_demo_as_json(tmp_path):
    result = run("demo", "--queries", 20, "--seed", 4, "--out", tmp_path / "s.parquet", "--format", "json")
    facts = json.loads(result.stdout)
    assert (facts["queries"], facts["seed"]) == (20, 4)
    assert set(facts["seconds"]) == {"write", "read", "first_score", "score"}


def test_sample_is_realistic(tmp_path):
    written = write_sample(tmp_path / "sample.parquet", 3000)
    rows = pq.read_table(tmp_path / "sample.parquet")
    assert written == len(rows)
    assert [str(rows[name].type) for name in ("query_id", "label", "score")] == ["int64", "uint8", "float"]
    assert {str(rows[name].type.value_type) for name in ("country", "device")} == {"string"}
    ids, labels, scores = (rows[name].to_numpy() for name in ("query_id", "label", "score"))
    lengths = np.bincount(ids)
    assert (np.diff(ids) >= 0).all()
    assert len(lengths) == 3000
    assert lengths.min() >= 1
    assert lengths.max() <= 2000
    assert 100 < lengths.mean() < 120
    shares = np.bincount(labels) / len(labels)
    assert len(shares) == 5
    assert shares[0] > 0.5
    assert 0 < shares[4] < 0.05
    assert 0.01 < (np.bincount(ids, labels) == 0).mean() < 0.1
    assert 0.3 < np.corrcoef(labels, scores)[0, 1] < 0.6
    distinct = len(np.unique(np.rec.fromarrays([ids, scores])))
    assert 0.05 < 1 - distinct / len(ids) < 0.3, "some scores are tied, most are not"


def test_sample_depends_on_its_seed_alone(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_sample(tmp_path / name, 50, seed)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_sample_of_nothing_is_refused(tmp_path):
    with pytest.raises(
        fn.InputError, match="queries=0 leaves nothing to write; wanted a whole number from 1"
    ):
        write_sample(tmp_path / "sample.parquet", 0)


def test_measures_lists_every_declaration():
    *lines, _, last = run("measures").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(fn.measures.DEFINITIONS)
    assert last.startswith("`fastndcg measures NAME` shows")
    assert json.loads(run("measures", "--format", "json").stdout) == fn.measures.table().to_pylist()
    rows = list(csv.DictReader(io.StringIO(run("measures", "MAP", "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == ["AP"]
    for row in fn.measures.table().to_pylist():
        assert all(row.values()), row["name"]
        facts = {line.partition(" ")[0]: line for line in run("measures", row["name"]).stdout.splitlines()}
        assert facts["formula"].removeprefix("formula").strip() == row["formula"]
        parameters = fn.measures.DEFINITIONS[row["name"]].parameters
        assert list(facts)[-len(parameters) :] == [parameter.name for parameter in parameters]
        assert all(value in facts[each.name] for each in parameters for value, _ in each.values)


# ---- reading once ----


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--convention", "trec_eval"],
        ["--convention", "trec_eval", "--memory", "1MB"],
        ["--by", "country"],
    ],
    ids=" ".join,
)
def test_files_are_listed_and_their_footers_read_once(options, tmp_path, monkeypatch):
    from fastndcg.sources import parquet, paths

    for part in range(3):
        pq.write_table(
            pa.table(
                {
                    "qid": [part, part],
                    "docid": ["a", "b"],
                    "label": [1, 0],
                    "score": [0.5, 0.5],
                    "country": ["DE", "DE"],
                }
            ),
            tmp_path / f"{part}.parquet",
        )
    listed, footers_read = [], []
    find_files, read_footer = paths.find_files, parquet.read_footer
    monkeypatch.setattr(paths, "find_files", lambda *given: listed.append(1) or find_files(*given))
    monkeypatch.setattr(parquet, "read_footer", lambda file: footers_read.append(1) or read_footer(file))
    result = run("score", tmp_path, *options)
    assert result.exit_code == 0, result.stderr
    assert ("docid" in result.stderr) == ("--convention" in options)
    assert (len(listed), len(footers_read)) == (1, 3)


def test_ranks_and_distances(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        table(place=[1, 2, 3, 1, 1, 2, 3]).rename_columns(["qid", "label", "distance", "place"]), path
    )
    by_rank = run("score", path, "--rank", "place", "-m", "RR", "--format", "json")
    assert "rank=place" in by_rank.stderr
    ranks = fn.Rankings.from_query_ids(QUERY_IDS, LABELS, [-1, -2, -3, -1, -1, -2, -3])
    assert means(by_rank) == fn.evaluate(ranks, "RR").mean()
    by_distance = run("score", path, "--score", "distance", "--ascending", "-m", "RR", "--format", "json")
    lowest = fn.Rankings.from_query_ids(QUERY_IDS, LABELS, [-score for score in SCORES])
    assert means(by_distance) == fn.evaluate(lowest, "RR").mean()
    both = run("score", path, "--rank", "place", "--score", "distance")
    assert both.exit_code == 3 and "--score distance and --rank place are given" in both.stderr


@pytest.mark.parametrize("command", ["score", "trec_eval"])
def test_small_input_imports_little(command, tmp_path, monkeypatch):
    """Neither pandas, which pyarrow imports where it can, nor pydantic, which typer does, nor a compiler."""
    ids = [f"q{row // 10}" for row in range(50)]
    table = pa.table(
        {
            "query_id": ids,
            "relevance": [row % 3 for row in range(50)],
            "score": [float(row) for row in range(50)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "qrels").write_text("".join(f"{query} 0 d{row} {row % 3}\n" for row, query in enumerate(ids)))
    (tmp_path / "run").write_text("".join(f"{query} Q0 d{row} 1 {row} me\n" for row, query in enumerate(ids)))
    given = {"score": ["a.parquet"], "trec_eval": ["qrels", "run"]}[command]
    code = f"import sys\nfrom fastndcg.__main__ import main\nsys.argv[1:] = {[command, *given]}\ntry:\n    main()\nfinally:\n    sys.stderr.write(' '.join(sys.modules))"
    monkeypatch.chdir(tmp_path)
    finished = program(code, FASTNDCG_KERNELS="auto")
    assert not {"pandas", "pydantic", "numba", "rich"} & set(finished.stderr.split())
    assert ("nDCG@10" if command == "score" else "map") in finished.stdout


def test_words_and_nulls_are_grades_on_the_command_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfqid,label,score\r\n1,Good,0.5\r\n1,,0.9\r\n1,Bad,0.1\r\n")
    found = run(
        "score",
        path,
        "--grades",
        "Good=1, Bad=0",
        "--unjudged",
        "null",
        "-m",
        "RR",
        "-m",
        "Judged",
        "--format",
        "json",
    )
    assert [row["mean"] for row in json.loads(found.stdout)["measures"]] == [0.5, 2 / 3]
    for options, message in (
        ([], '--grades "perfect=2,fair=1,bad=0"'),
        (["--grades", "Good=1,Bad=0"], "or pass --unjudged null where nobody judged"),
        (
            ["--grades", "Good=1", "--unjudged", "null"],
            'has "Bad" at row 4, query 1, for which --grades has no grade',
        ),
        (["--grades", "Good"], "is not a word and a grade"),
        (["--grades", "Good=x"], "wanted a finite number"),
        (["--grades", "Good=1,Good=2"], "has two grades"),
    ):
        assert message in run("score", path, *options).stderr


WORDY = "query,doc,judged,place,distance\n1,a,Good,2,0.5\n1,b,Bad,1,0.1\n1,c,,3,0.9\n2,a,Good,1,0.2\n2,b,Bad,2,0.3\n"


@pytest.mark.parametrize("command", ["score", "compare", "explain", "report"])
@pytest.mark.parametrize("order", [["--rank", "place"], ["--score", "distance", "--ascending"]])
def test_commands_read_ranks_distances_and_words_alike(command, order, tmp_path, undrawn):
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path in paths[: 2 if command == "compare" else 1]:
        path.write_text(WORDY)
    words = ["--relevance", "judged", *order, "--unjudged", "null", "--grades", "Good=1,Bad=0", "-m", "RR"]
    more = {
        "score": ["--format", "json"],
        "compare": ["--format", "json"],
        "explain": ["--id", "1", "--format", "json"],
        "report": ["-o", tmp_path / "page.html"],
    }
    result = run(command, *(path for path in paths if path.exists()), *words, *more[command])
    assert result.exit_code == 0, result.stderr
    if command == "explain":
        assert json.loads(result.stdout)["explanations"][0]["value"] == 0.5
    elif command != "report":
        assert "0.75" in result.stdout
    wrong = run(command, paths[0], *words[:-4], "--grades", "Good", "-m", "RR", *more[command])
    assert wrong.exit_code == 2 and "is not a word and a grade" in only_line(wrong.stderr)
