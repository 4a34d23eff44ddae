"""`fastndcg score`, `demo`, `measures` and help: results on stdout, all else on stderr, and nothing half-written."""

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
from commands import command, facts, only_line, program, rows, run

import fastndcg as fn
from fastndcg.cli import COMMANDS
from fastndcg.cli.demo import write_sample

LABELS, SCORES = [3, 0, 2, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4]
QUERY_IDS, COUNTRIES = [7, 7, 7, 8, 8, 9, 9], ["DE", "DE", "DE", "FR", "FR", "FR", "FR"]
NAN = [math.nan, *SCORES[1:]]
WORDY = "query,doc,judged,place,distance\n1,a,Good,2,0.5\n1,b,Bad,1,0.1\n1,c,,3,0.9\n2,a,Good,1,0.2\n2,b,Bad,2,0.3\n"


def table(**columns):
    return pa.table({"qid": QUERY_IDS, "label": LABELS, "score": SCORES} | columns)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(country=COUNTRIES), "p.parquet")
    return tmp_path


def expected(*measures, scores=SCORES, **options):
    return fn.evaluate(
        fn.Rankings.from_query_ids(QUERY_IDS, LABELS, scores, **options), measures or "nDCG@10"
    ).mean()


def means(line, *words):
    return {row["measure"]: row["mean"] for row in facts(line, *words)["measures"]}


# ---- results ----


def test_score_finds_columns_and_says_which():
    result = run("score p.parquet")
    assert result.exit_code == 0 and result.stdout.split()[0] == "measure"
    assert f"{expected()['nDCG@10']:.6f}" in result.stdout
    assert (
        only_line(result.stderr) == "3 queries, 7 documents; columns: query=qid, relevance=label, score=score"
    )


MANY = """-m nDCG@10 -m "nDCG(gain='exp2')@1,3" -m "CG(ties='worst')@4" """
DISTANCES = {"s": [-each for each in SCORES], "place": [1, 2, 3, 1, 1, 2, 3]}
MEANS = [  # what is typed, the tables that a.parquet, b.parquet hold, and the means
    (f"score p.parquet {MANY}", [], lambda: expected("nDCG@10", "nDCG(gain='exp2')@1,3", "CG(ties='worst')@4")),
    ("score a.parquet --query q --relevance gold --score s1", [pa.table({"q": QUERY_IDS, "gold": LABELS, "s1": SCORES, "s2": LABELS})], expected),
    ("score a.parquet b.parquet", [table()[:3], table()[3:]], expected),  # several files are one input
    ("score [ab].parquet", [table()[:3], table()[3:]], expected),
    ("score a.parquet --weight traffic", [table(traffic=[3.0, 3, 3, 1, 1, 0, 0])], lambda: expected(weight=[3, 1, 0])),
    ("score a.parquet --nan last", [table(score=NAN)], lambda: expected(scores=[-math.inf, *SCORES[1:]])),
    ("score a.parquet --rank place -m RR", [table(**DISTANCES)], lambda: expected("RR", scores=[-each for each in DISTANCES["place"]])),
    ("score a.parquet --score s --ascending -m RR", [table(**DISTANCES)], lambda: expected("RR")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "tables", "mean"), MEANS, ids=[case[0] for case in MEANS])
def test_means_are_those_of_evaluate(line, tables, mean):
    for name, each in zip("ab", tables, strict=False):
        pq.write_table(each, f"{name}.parquet")
    assert means(line) == mean()


def test_data_is_json_and_rfc_4180_with_nothing_for_nan():
    whole = facts("score p.parquet", "-m", "nDCG(empty='nan')@10")
    assert (whole["queries"], whole["documents"]) == (3, 7)
    assert whole["columns"] == {"query": "qid", "relevance": "label", "score": "score"}
    (row,) = whole["measures"]
    assert (row["mean"], row["queries"], row["empty"]) == (None, 3, 1)
    measures = ("nDCG(gain='exp2', ties='worst')@3", "nDCG(empty='nan')")
    words = ["score p.parquet", *(word for measure in measures for word in ("-m", measure))]
    text = run(*words, "--format", "csv").stdout_bytes.decode()
    assert text.count("\r\n") == text.count("\n") == 3
    found = rows(*words)
    assert [row["measure"] for row in found] == list(measures)
    assert float(found[0]["mean"]) == expected(*measures)[measures[0]] and found[1]["mean"] == ""


@pytest.mark.parametrize("name", ["s.parquet", "s.csv", "s.jsonl", "s.feather", "s.NDJSON", "s"])
def test_out_is_what_its_ending_says(name):
    pd = pytest.importorskip("pandas")
    measures = ("ndcg@10", "nDCG(empty='nan')@2")
    line = f"score p.parquet --keep country --threads 2 --out {name} -m {measures[0]}"
    assert run(line, "-m", measures[1]).exit_code == 0
    assert sorted(os.listdir()) == sorted(["p.parquet", name])
    wanted = fn.evaluate(fn.read_parquet("p.parquet", keep=("country",)), measures).to_pandas()
    out, ending = Path(name), Path(name).suffix.lower()
    text = ending in (".csv", ".jsonl", ".ndjson")
    if text and ending != ".csv":
        found = pd.DataFrame([json.loads(line) for line in out.read_text().splitlines()])
    else:
        found = {".csv": pd.read_csv, ".feather": pd.read_feather}.get(ending, pd.read_parquet)(out)
    pd.testing.assert_frame_equal(found, wanted, check_dtype=not text)
    assert list(found) == ["qid", "country", *measures]
    assert "NaN" not in out.read_text(errors="replace") or not text


def test_fail_under():
    """At the bound it holds; NaN fails; it adds its measure, and results are written whatever the verdict."""
    bound = expected()["nDCG@10"]
    assert run(f"score p.parquet --fail-under nDCG@10={bound!r}").exit_code == 0
    low = run(f"score p.parquet --fail-under nDCG@10={math.nextafter(bound, 1)!r}")
    assert low.exit_code == 1 and "nDCG@10" in low.stdout
    assert low.stderr.splitlines()[-1].startswith(f"--fail-under: the mean of nDCG@10 is {bound!r}, below ")
    nan = run("score p.parquet --fail-under", "nDCG(empty='nan')@10=0")
    assert nan.exit_code == 1 and "the mean of nDCG(empty='nan')@10 is NaN" in nan.stderr
    many = run("score p.parquet -m nDCG@10 --format json --fail-under CG@1,2=0.1 --fail-under nDCG@3=0.999")
    assert [row["measure"] for row in json.loads(many.stdout)["measures"]] == [
        "nDCG@10",
        "CG@1",
        "CG@2",
        "nDCG@3",
    ]
    assert many.exit_code == 1 and "nDCG@3" in many.stderr and " CG@" not in many.stderr


def test_words_and_nulls_are_grades():
    Path("a.csv").write_bytes(b"\xef\xbb\xbfqid,label,score\r\n1,Good,0.5\r\n1,,0.9\r\n1,Bad,0.1\r\n")
    found = means("score a.csv --grades 'Good=1, Bad=0' --unjudged null -m RR -m Judged")
    assert list(found.values()) == [0.5, 2 / 3]
    for options, message in (
        ("", '--grades "perfect=2,fair=1,bad=0"'),
        ("--grades Good=1,Bad=0", "or pass --unjudged null where nobody judged"),
        ("--grades Good=1 --unjudged null", 'has "Bad" at row 4, query 1, for which --grades has no grade'),
        ("--grades Good", "expected WORD=GRADE"),
        ("--grades Good=x", "without a finite number"),
        ("--grades Good=1,Good=2", "has two grades"),
    ):
        assert message in run(f"score a.csv {options}").stderr


@pytest.mark.parametrize(
    "command",
    ["score one.csv", "compare one.csv two.csv", "explain one.csv --id 1", "report one.csv -o page.html"],
)
@pytest.mark.parametrize("order", ["--rank place", "--score distance --ascending"])
def test_commands_read_ranks_distances_and_words_alike(command, order, undrawn):
    for name in ("one.csv", "two.csv"):
        Path(name).write_text(WORDY)
    layout = "" if command.startswith("report") else "--format json"
    result = run(f"{command} --relevance judged {order} --unjudged null --grades Good=1,Bad=0 -m RR {layout}")
    assert result.exit_code == 0, result.stderr
    if command.startswith("explain"):
        assert json.loads(result.stdout)["explanations"][0]["value"] == 0.5
    elif layout:
        assert "0.75" in result.stdout
    wrong = run(f"{command} --relevance judged {order} --unjudged null --grades Good -m RR {layout}")
    assert wrong.exit_code == 2 and "expected WORD=GRADE" in only_line(wrong.stderr)


# ---- help ----


def test_help():
    """Everywhere, with an example; summaries are whole, and in the order of commands."""
    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    for name in COMMANDS:
        for word in ("-h", "--help"):
            result = run(f"{name} {word}")
            assert result.exit_code == 0 and result.stdout.startswith(f"Usage: fastndcg {name}")
            assert f"\n    fastndcg {name}" in result.stdout
    assert run("-h").stdout.startswith("Usage: fastndcg")
    version = run("--version")
    assert (version.stdout, version.exit_code) == (f"fastndcg {fn.__version__}\n", 0)


def test_measures_lists_every_declaration():
    *lines, _, last = run("measures").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(fn.measures.DEFINITIONS)
    assert last.startswith("`fastndcg measures NAME` shows")
    assert facts("measures") == fn.measures.table().to_pylist()
    assert [row["name"] for row in rows("measures MAP")] == ["AP"]
    for row in fn.measures.table().to_pylist():
        assert all(row.values()), row["name"]
        said = {line.partition(" ")[0]: line for line in run("measures", row["name"]).stdout.splitlines()}
        assert said["formula"].removeprefix("formula").strip() == row["formula"]
        parameters = fn.measures.DEFINITIONS[row["name"]].parameters
        assert list(said)[-len(parameters) :] == [parameter.name for parameter in parameters]
        assert all(value in said[each.name] for each in parameters for value, _ in each.values)


# ---- the process ----

MAIN = "from fastndcg.__main__ import main\nmain()"
PROGRAMS = [  # a program, its words, its exit code, and what it writes
    ("import sys; sys.modules['pandas'] = None\n" + MAIN, "score p.parquet --format csv", 0, "nDCG@10,"),
    ("import sys; sys.modules['typer'] = None\n" + MAIN, "", 3, "The command line needs typer, which is not installed: pip install 'fastndcg[cli]'"),
    (MAIN, "--version", 0, f"fastndcg {fn.__version__}"),
    (MAIN, "score nowhere.parquet", 3, "nowhere.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "words", "exit_code", "said"), PROGRAMS)
def test_a_process(code, words, exit_code, said):
    done = program(code, *words.split())
    assert done.returncode == exit_code, done.stderr
    assert said in (only_line(done.stderr) if exit_code else done.stdout)
    if not exit_code and words != "--version":
        assert done.stdout == run(words).stdout.replace("\r\n", "\n")


HEAVY = {"numba", "pandas", "rich", "scipy"}


@pytest.mark.parametrize(("words", "heavy", "said"), [
    ("--help", HEAVY | {"pyarrow.parquet", "pyarrow.dataset"}, "Usage"),
    ("score a.parquet", HEAVY - {"scipy"}, "nDCG@10"),
    ("trec_eval qrels run", HEAVY - {"scipy"}, "map"),
])  # fmt: skip
def test_help_and_small_input_import_little(words, heavy, said):
    """Neither pandas, which pyarrow imports where it can, nor a compiler."""
    ids = [f"q{row // 10}" for row in range(50)]
    columns = {
        "query_id": ids,
        "relevance": [row % 3 for row in range(50)],
        "score": [float(row) for row in range(50)],
    }
    pq.write_table(pa.table(columns), "a.parquet")
    Path("qrels").write_text("".join(f"{query} 0 d{row} {row % 3}\n" for row, query in enumerate(ids)))
    Path("run").write_text("".join(f"{query} Q0 d{row} 1 {row} me\n" for row, query in enumerate(ids)))
    code = "import sys\nfrom fastndcg.__main__ import main\ntry:\n    main()\nfinally:\n    sys.stderr.write(' '.join(sys.modules))"
    done = program(code, *words.split(), FASTNDCG_KERNELS="auto")
    assert not heavy & set(done.stderr.split()) and said in done.stdout


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
    def test_closed_pipe_is_quiet(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as stdout:
            done = subprocess.run(command("score", "p.parquet"), stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
        assert done.returncode == 141 and only_line(done.stderr).startswith("3 queries")

    @pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_interrupted_leaves_nothing(self, folder, sent, code):
        # large enough to be still writing when the signal comes, which is once rows are written, and not only
        # the mark that begins the file: before that, while extension modules are first imported, some of them
        # lose exceptions
        Path("p.parquet").unlink()
        words = command("demo", "--queries", 2_000_000, "--out", "sample.parquet")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while not has_written(folder, process.pid) and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(sent)
            stdout, stderr = process.communicate(timeout=120)
        assert process.returncode in {code, -sent}, "a shell shows 130 or 143 for either"
        assert (stdout, "Traceback" in stderr, os.listdir()) == ("", False, [])

    @pytest.mark.parametrize("module", ["typer", "pyarrow", "fastndcg.cli.score"])
    def test_interrupted_while_it_is_imported(self, module):
        code = f"""
            import os, signal, sys
            class Interrupts:
                def find_spec(self, name, *_):
                    if name == {module!r}:
                        os.kill(os.getpid(), signal.SIGINT)
            from fastndcg.__main__ import main
            sys.meta_path.insert(0, Interrupts())
            main()
        """
        done = program(code, "score", "p.parquet")
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

    @pytest.mark.parametrize("width", [40, 80])
    def test_the_demonstration_shows_its_numbers_on_any_terminal(self, width):
        import pty

        terminal, stdout = pty.openpty()
        words = command("demo", "--queries", 30, "--out", "s.parquet")
        done = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, env=os.environ | {"COLUMNS": str(width)}, check=False)  # fmt: skip
        os.close(stdout)
        shown = os.read(terminal, 100_000).decode()
        os.close(terminal)
        assert done.returncode == 0
        measures = ["nDCG@10", "nDCG(gain='exp2')@1,3,5", "nDCG", "nDCG(ties='worst')@10", "CG@10"]
        for measure, mean in fn.evaluate(fn.read_parquet("s.parquet"), measures).mean().items():
            assert re.search(rf"^{re.escape(measure)} .*{mean:.6f}", shown, re.MULTILINE)
        assert max(map(len, shown.partition("\r\n\r\n")[0].splitlines())) <= width


# ---- demo ----


def test_demo_scores_its_sample_and_what_it_says_to_try_works():
    result = run("demo --queries 400 --out", "a sample.parquet")  # a path that a shell must have quoted
    assert result.exit_code == 0 and "million documents per second" in result.stdout
    mean = float(rows("score", "a sample.parquet", "-m", "nDCG@10")[0]["mean"])
    assert f"{mean:.6f}" in result.stdout and 0.3 < mean < 0.8
    tries = [shlex.split(line) for line in result.stdout.splitlines() if line.startswith("  fastndcg ")]
    assert len(tries) == 4
    for words in tries:
        assert run(*words[1:]).exit_code == 0, words
    whole = facts("demo --queries 20 --seed 4 --out s.parquet")
    assert (whole["queries"], whole["seed"]) == (20, 4)
    assert set(whole["seconds"]) == {"write", "read", "first_score", "score"}


def test_sample_is_realistic_and_depends_on_its_seed_alone():
    written = write_sample("sample.parquet", 3000)
    found = pq.read_table("sample.parquet")
    assert written == len(found)
    assert [str(found[name].type) for name in ("query_id", "label", "score")] == ["int64", "uint8", "float"]
    assert {str(found[name].type.value_type) for name in ("country", "device")} == {"string"}
    ids, labels, scores = (found[name].to_numpy() for name in ("query_id", "label", "score"))
    lengths, shares = np.bincount(ids), np.bincount(labels) / len(labels)
    assert (np.diff(ids) >= 0).all() and len(lengths) == 3000
    assert lengths.min() >= 1 and lengths.max() <= 2000 and 100 < lengths.mean() < 120
    assert len(shares) == 5 and shares[0] > 0.5 and 0 < shares[4] < 0.05
    assert 0.01 < (np.bincount(ids, labels) == 0).mean() < 0.1
    assert 0.3 < np.corrcoef(labels, scores)[0, 1] < 0.6
    distinct = len(np.unique(np.rec.fromarrays([ids, scores])))
    assert 0.05 < 1 - distinct / len(ids) < 0.3, "some scores are tied, most are not"
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_sample(name, 50, seed)
    a, b, c = (Path(name).read_bytes() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    "options", ["", "--convention trec_eval", "--convention trec_eval --memory 1MB", "--by country"]
)
def test_files_are_listed_and_their_footers_read_once(options, monkeypatch):
    from fastndcg.sources import parquet, paths

    Path("data").mkdir()
    columns = {"docid": ["a", "b"], "label": [1, 0], "score": [0.5, 0.5], "country": ["DE", "DE"]}
    for part in range(3):
        pq.write_table(pa.table({"qid": [part, part]} | columns), f"data/{part}.parquet")
    listed, footers_read = [], []
    find_files, read_footer = paths.find_files, parquet.read_footer
    monkeypatch.setattr(paths, "find_files", lambda *given: listed.append(1) or find_files(*given))
    monkeypatch.setattr(parquet, "read_footer", lambda file: footers_read.append(1) or read_footer(file))
    result = run(f"score data {options}")
    assert result.exit_code == 0, result.stderr
    assert ("docid" in result.stderr) == ("--convention" in options)
    assert (len(listed), len(footers_read)) == (1, 3)
