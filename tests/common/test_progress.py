"""What terminals and notebooks show of long calls, and that nobody else sees anything."""

import os
import re
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path

import engines
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import program

import fastndcg as fn
from fastndcg.common import progress
from fastndcg.common.progress import Task

ROOT = Path(fn.__file__).parent.parent
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(sys.platform == "win32", reason="a pty is a terminal of Unix"),
]


def in_terminal(code, *, columns=100, **environment):
    """What a program writes to stdout, and to the terminal that its stderr is."""
    import fcntl
    import pty
    import struct
    import termios

    terminal, stderr = pty.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    done = subprocess.run(
        [sys.executable, "-c", PATIENCE + textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=stderr, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": str(columns), "TERM": "xterm"} | environment,
    )  # fmt: skip
    os.set_blocking(terminal, False)
    os.close(stderr)
    shown = b""
    with suppress(OSError):  # the end, on Linux
        while more := os.read(terminal, 1 << 16):
            shown += more
    os.close(terminal)
    assert done.returncode == 0, shown.decode()
    return done.stdout, shown.decode()


PATIENCE = "from fastndcg.common import progress\nprogress._PATIENCE = 0.05\n"
SLOW = """
import time
with progress.Task("Reading") as task:
    for done in range(8):
        task.advance(done * 1_000_000, 8_000_000)
        time.sleep(0.1)
        if done == 6:
            progress.tell("compiling kernels, once on this machine")
print("done")
"""


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_a_line_of_the_terminal_until_the_task_ends(columns):
    out, shown = in_terminal(SLOW, columns=columns)
    assert out == "done\n"
    assert "compiling kernels, once on this machine\r\n" in shown
    assert "of 8,000,000 rows" in shown
    assert max(map(len, re.split(r"[\r\n]", shown))) < columns
    assert "Reading 75% 6,000,000 of" in shown
    if columns > 40:
        assert "s left" in shown
    assert shown.endswith(("\r", "\n"))  # nothing is left of it


@pytest.mark.parametrize(("code", "environment"), [
    ("progress._PATIENCE = 60\n" + SLOW, {}),  # done in a moment
    (SLOW.replace('"Reading"', '"Reading", progress=False'), {}),
    (SLOW.replace('"Reading"', '"Reading", progress=lambda *_: None'), {}),
    ("import threading\ndef work():\n" + textwrap.indent(SLOW, "    ")
     + "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n", {}),
    ("import os\nif child := os.fork():\n    os.waitpid(child, 0)\nelse:\n" + textwrap.indent(SLOW, "    "), {}),
    (SLOW, {"FASTNDCG_PROGRESS": "0"}),
])  # fmt: skip
def test_nothing_is_shown(code, environment):
    code = code.replace('progress.tell("compiling kernels, once on this machine")', "pass")
    assert in_terminal(code, **environment) == ("done\n", "")


def test_pipes_have_none():
    done = program(PATIENCE + SLOW)
    assert (done.stdout, done.stderr) == ("done\n", "")


SLOWED = """
import sys, time
import fastndcg as fn
from fastndcg.sources import parquet
def slowed(function):
    def slow(*arguments):
        time.sleep(0.4)
        return function(*arguments)
    return slow
parquet.read_span, parquet.read_steps = slowed(parquet.read_span), slowed(parquet.read_steps)
"""


@pytest.mark.parametrize(("call", "name"), [
    ("fn.read_parquet('a.parquet')", "Reading"),
    ("fn.evaluate(fn.scan_parquet('a.parquet', memory=1 << 20), 'nDCG@10')", "Reading and scoring"),
    (("sys.argv[1:] = ['score', 'a.parquet']; from fastndcg.__main__ import main\ntry: "
      "main()\nexcept SystemExit: pass"), "Reading"),
])  # fmt: skip
def test_from_python_and_from_the_command_line(tmp_path, monkeypatch, call, name):
    monkeypatch.chdir(tmp_path)
    random, rows = np.random.default_rng(0), np.arange(40_000)
    columns = {"qid": rows // 10, "label": random.integers(0, 5, 40_000), "score": random.random(40_000)}
    pq.write_table(pa.table(columns), "a.parquet", row_group_size=1000)
    _, shown = in_terminal(SLOWED + call, FASTNDCG_KERNELS="plain")
    assert f"{name} " in shown and "of 40,000 rows" in shown


def test_a_step_within_a_step_that_counts_is_not_shown():
    code = """
        import time
        with progress.Task("Outer"), progress.Task("Step") as step:
            time.sleep(0.3)
            step.advance(1, 2)
            with progress.Task("Inner"):
                time.sleep(0.3)
    """
    _, shown = in_terminal(code)
    assert "Step" in shown and "1 of 2 rows" in shown
    assert "Outer" not in shown and "Inner" not in shown


@pytest.mark.pure
def test_functions_are_told_from_any_thread():
    told = []

    def work():
        with Task("Reading", "bytes", lambda *each: told.append(each)) as task:
            task.advance(1, 3)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert told == [(1, 3), (1, 3)]


@pytest.mark.pure
@pytest.mark.parametrize(("unit", "done", "total", "seconds", "line"), [
    ("rows", 0, 0, 3, "3 s"),
    ("rows", 0, 10, 3, "0% 0 of 10 rows"),
    ("rows", 25_000_000, 100_000_000, 10, "25% 25,000,000 of 100,000,000 rows, 30 s left"),
    ("bytes", 5_000_000, 605_000_000, 1, "1% 5,000,000 of 605,000,000 bytes, 2 min 0 s left"),
    ("queries", 1, 7201, 1, "0% 1 of 7,201 queries, 2 h 0 min left"),
])  # fmt: skip
def test_the_line(monkeypatch, unit, done, total, seconds, line):
    clock = iter([100.0, 100.0 + seconds])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with Task("Reading", unit) as task:
        task.advance(done, total)
        assert task.line() == f"Reading {line}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Jupyter's own
@pytest.mark.slow
def test_in_a_notebook(tmp_path, monkeypatch):
    engines.need("ipykernel")
    from jupyter_client.manager import KernelManager

    for name in ("HOME", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    manager = KernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"))
    manager.start_kernel(env=os.environ | {"PYTHONPATH": str(ROOT)})
    client = manager.client()
    shown = []
    try:
        client.start_channels()
        client.wait_for_ready(timeout=120)
        reply = client.execute_interactive(PATIENCE + SLOW, timeout=120, output_hook=shown.append)
        assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    texts = {name: "".join(each["content"]["text"] for each in shown if each["content"].get("name") == name) for name in ("stdout", "stderr")}  # fmt: skip
    assert texts["stdout"] == "done\n"
    assert "compiling kernels, once" in texts["stderr"] and "\r" not in texts["stderr"]
    kinds = [each["header"]["msg_type"] for each in shown]
    lines = [each["content"]["data"]["text/plain"] for each in shown if "data" in each["content"]]
    assert kinds.count("display_data") == 1  # what an executed notebook keeps
    assert any("of 8,000,000 rows" in line for line in lines) and " of " not in lines[-1]
    assert "Warning" not in texts["stderr"]
