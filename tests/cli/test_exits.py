"""Commands crossed with streams that are closed, full, or of few characters: exit codes, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import commands
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="streams as Linux has them")

# a command, and its exit code where every stream is open
COMMANDS = {
    "--version": 0,
    "--help": 0,
    "": 2,
    "nope": 2,
    "score --nope": 2,
    "score a.parquet -m CG": 0,
    "score a.parquet -m CG --fail-under CG=0.1": 0,
    "score a.parquet -m CG --fail-under CG=9": 1,
    "score nofile": 3,
    "compare a.parquet b.parquet -m CG": 0,
    "compare a.parquet b.parquet -m CG --fail-under CG=9": 1,
    "explain a.parquet --id 1": 0,
    "measures": 0,
    "trec_eval qrels run": 0,
    "demo --queries 5 --out s.parquet": 0,
    "report a.parquet -m CG -o r.html": 0,
}
SILENT = ("report",)  # writes nothing to stdout
STREAMS = {  # what the shell does: whether results arrive, whether messages do
    "open": ("", True, True),
    "stdout closed": (">&-", False, True),
    "stdout full": (">/dev/full", False, True),
    "stderr closed": ("2>&-", True, False),
    "stderr full": ("2>/dev/full", True, False),
    "stdin closed": ("<&-", True, True),
    "all closed": ("<&- >&- 2>&-", False, False),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exits")
    table = {"qid": [1, 1, 2, 2, 3, 3], "label": [1, 0, 0, 1, 1, 0], "score": [0.9, 0.1, 0.8, 0.2, 0.3, 0.1]}
    pq.write_table(pa.table(table), folder / "a.parquet")
    pq.write_table(pa.table(table | {"label": [0, 1, 1, 1, 0, 1]}), folder / "b.parquet")
    (folder / "qrels").write_text("1 0 a 1\n")
    (folder / "run").write_text("1 Q0 a 1 0.5 me\n")
    return folder


def shell(words, folder, **environment):
    return subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m fastndcg {words}"],
        cwd=folder, capture_output=True, check=False, timeout=300, env=os.environ | environment,
    )  # fmt: skip


# of each way to write and to end a command with all streams; the others, which write and end as one of these, with three in turn
THOROUGHLY = ("--version", "score a.parquet -m CG --fail-under CG=9", "score nofile", "trec_eval qrels run")
CASES = [
    (command, streams)
    for place, command in enumerate(COMMANDS)
    for turn, streams in enumerate(STREAMS)
    if command in THOROUGHLY or turn in (0, 1 + place % 6, 1 + (place + 3) % 6)
]


@pytest.mark.parametrize(("command", "streams"), CASES)
@pytest.mark.slow
def test_a_code_says_how_it_ended_whatever_the_streams(command, streams, folder):
    redirected, arrives, is_told = STREAMS[streams]
    done = shell(f"{command} {redirected}", folder)
    code = COMMANDS[command]
    writes = not command.startswith(SILENT) and command not in ("nope", "score --nope", "score nofile")
    # the help that comes without a command goes to stdout in some versions of typer
    allowed = {2, 3} if command == "" else {3 if writes and not arrives else code}
    assert done.returncode in allowed, done.stderr
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"Exception ignored" not in done.stderr
    assert bool(done.stdout) == (writes and arrives) or command == ""
    if done.returncode == 3 and is_told:
        assert (
            done.stderr.decode().splitlines()[-1].startswith("stdout cannot be" if writes else "nofile does")
        )
    if not is_told:
        assert done.stderr == b""


@pytest.mark.slow
def test_characters_that_the_encoding_lacks(folder):
    pq.write_table(
        pa.table({"qid": ["日本", "日本"], "label": [1, 0], "score": [0.5, 0.1]}), folder / "ja.parquet"
    )
    for command in ("explain ja.parquet --id 日本", "score ja.parquet -m CG --by qid"):
        for layout in ("table", "json"):
            done = shell(f"{command} --format {layout}", folder, PYTHONIOENCODING="ascii")
            assert done.returncode == 0, done.stderr
            assert rb"\u65e5\u672c" in done.stdout
    done = shell("score ja.parquet --by qid --format csv", folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "日本" in done.stdout.decode()  # CSV has no escapes
    done = shell("score 日本.parquet", folder, PYTHONIOENCODING="ascii")
    assert (done.returncode, rb"\u65e5" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        ("KeyError('x\\ny')", 3, "KeyError: 'x\\ny'. This is a fault of fastndcg. Please report it"),
        ("SystemExit(1)", 3, "1"),
        ("SystemExit('why')", 3, "why"),
        ("RecursionError('deep')", 3, "RecursionError: deep. This is"),
        ("OSError(5, 'Input/output error', 'a')", 3, "[Errno 5] Input/output error: 'a'"),
        ("MemoryError()", 3, "Not enough memory"),
        ("BrokenPipeError()", 141, ""),
        ("KeyboardInterrupt()", 130, "Interrupted."),
        ("fastndcg.errors.InputError('a\\x1b[31m')", 3, "a\\x1b[31m"),
    ],
)
@pytest.mark.parametrize("where", ["fastndcg.cli.options.read_measures", "fastndcg.cli.load"])
def test_whatever_is_raised_is_one_line(raised, code, said, where, folder, monkeypatch):
    monkeypatch.chdir(folder)
    module, _, name = where.rpartition(".")
    program = f"""
import sys, {module}, fastndcg.errors
def fail(*_): raise {raised}
{module}.{name} = fail
from fastndcg.__main__ import main
sys.argv[1:] = ["score", "a.parquet"]
main()
"""
    for shows in ("", "1") if "KeyError" in raised else ("",):
        done = commands.program(program, FASTNDCG_TRACEBACK=shows)
        assert (done.returncode, done.stdout) == (code, "")
        if not shows:
            assert done.stderr.count("\n") <= 1
            assert done.stderr.startswith(said) or where.endswith("load")
        else:
            assert "Traceback" in done.stderr
            assert "in fail" in done.stderr
