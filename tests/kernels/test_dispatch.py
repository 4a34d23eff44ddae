"""Which kernels run plain, which compiled: one rule of sizes, alike on every machine; each is compiled once and kept."""

import os
import shutil
import sys
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import printed, program, started

import fastndcg as fn
from fastndcg import __main__
from fastndcg.errors import InputError
from fastndcg.kernels.compile import dispatch, kernel_cache

ROWS_BY_CODE = "rows.rows_by_code"
compiles = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
has_owners = hasattr(os, "geteuid")
# a program of calls, each of a dtype and the seconds that it takes in the plain way
CALLS = """
import sys
import numpy as np
from fastndcg.common import progress
from fastndcg.kernels.compile import dispatch
progress.tell = lambda line: print(line.split()[0], flush=True)
for call in sys.argv[1:]:
    dtype, seconds = call.split(":")
    dispatch.SECONDS["rows"] = float(seconds) / 9
    dispatch.run("rows.rows_by_code", 9, np.arange(9).astype(dtype), 9)
    print("kernel" if any(kinds[0][0] == dtype for _, kinds in dispatch._loaded) else "plain")
print("numba" in sys.modules)
"""
COMPILED, FOUND = "compiling kernel True", "kernel True"
# as in an image that is read-only: permissions would not stop root
READ_ONLY = """
import builtins, io, os, tempfile
def refuse(*arguments, **options):
    raise PermissionError("nothing can be written here")
builtins.open = io.open = lambda file, mode="r", *more, opened=open, **options: (
    opened if set(mode) <= set("rbt") else refuse)(file, mode, *more, **options)
os.mkdir = os.makedirs = os.replace = tempfile.TemporaryFile = refuse
"""


def run(*calls, code=CALLS, kernels="auto", **environment):
    without = ("NUMBA_CACHE", "NUMBA_DISABLE", "XDG_")
    return " ".join(printed(code, *calls, without=without, FASTNDCG_KERNELS=kernels, **environment).split())


@pytest.fixture
def choose(monkeypatch):
    """What a call in a fresh process chooses, by its seconds in the plain way and those of its whole job."""
    monkeypatch.setattr(dispatch, "mode", lambda: "auto")
    monkeypatch.setattr(dispatch, "_loaded", {})
    rate = dispatch.SECONDS["rows"]

    def choose(call, job, *, kept=False):
        compiled = "load" if kept else "compile"
        monkeypatch.setattr(kernel_cache, "is_kept", lambda key: kept)
        monkeypatch.setattr(dispatch, "_load", lambda *_, may_compile: compiled if may_compile else "load")
        return dispatch.compiled_driver(ROWS_BY_CODE, call / rate, (1,), job / rate) or "plain"

    return choose


@pytest.mark.parametrize(
    ("job", "calls", "if_kept", "if_not"),
    [
        (0, [0.14], "plain", "plain"),
        (0, [0.16], "load", "plain"),
        (0, [0.9], "load", "plain"),
        (0, [1.1], "load", "compile"),
        (0, [np.inf], "load", "compile"),
        (0, [0.14] * 7, "plain", "plain"),
        (0, [0.14] * 8, "load", "compile"),
        (0, [0.9, 0.2], "load", "compile"),
        (0.14, [0.03], "plain", "plain"),
        (0.9, [0.3] * 3, "load", "plain"),
        (1.1, [0.03], "load", "compile"),
    ],
)
def test_the_rule(choose, job, calls, if_kept, if_not):
    """What the last of these calls chooses; parts of a job choose from the first on, or never."""
    assert [choose(call, job) for call in calls][-1] == if_not
    dispatch.forget()
    assert [choose(call, job, kept=True) for call in calls][-1] == if_kept


def test_the_command_line_proposes_to_compile_once(choose, capsys):
    """After half a second of calls that a kept kernel would have saved, not of small ones."""
    for call, job, proposals in ((0.1, 0, 0), (0.1, 0, 0), (0.3, 0.9, 0), (0.3, 0.9, 1)):
        assert choose(call, job) == "plain"
        __main__._propose_compiling()
        assert capsys.readouterr().err.count("run `fastndcg compile` once") == proposals


def test_streams_and_rankings_choose_alike(choose, monkeypatch, tmp_path):
    """A stream counts as all of its rows, in whatever parts it is read."""
    jobs, rows, path = [], np.arange(40_000), tmp_path / "a.parquet"
    monkeypatch.setattr(dispatch, "choose", lambda job, together, is_kept: jobs.append(job) or "plain")
    pq.write_table(pa.table({"qid": rows // 10, "label": rows % 3, "score": rows}), path, row_group_size=5000)
    fn.evaluate(fn.read_parquet(path), "nDCG@10")
    fn.evaluate(fn.scan_parquet(path, memory="1 MB"), "nDCG@10")
    assert len(jobs) > 3
    assert jobs == pytest.approx([jobs[0]] * len(jobs), rel=0.05)


def test_the_settings(monkeypatch):
    """FASTNDCG_KERNELS chooses; NUMBA_DISABLE_JIT=1 means plain, whatever that says."""
    settings = [
        ("1", "compiled", "plain"),
        *(("0", asked, asked or "auto") for asked in ("", *dispatch.MODES)),
    ]
    for disabled, asked, expected in settings:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", disabled)
        monkeypatch.setenv("FASTNDCG_KERNELS", asked)
        assert dispatch.mode() == expected
    monkeypatch.setenv("FASTNDCG_KERNELS", "fast")
    with pytest.raises(InputError, match="FASTNDCG_KERNELS='fast'; expected one of auto, plain, compiled"):
        dispatch.mode()


@pytest.mark.compiled
@compiles
@pytest.mark.slow
def test_runs_of_a_job_are_alike_in_any_home(tmp_path):
    """What is not compiled in run 1 is not in runs 2 to 4; what is kept is found, by the processor it is for."""
    one, two = ({"NUMBA_CACHE_DIR": str(tmp_path / name)} for name in ("one", "two"))
    assert [run("int64:0.9", "int32:0.9", **one) for _ in range(4)] == ["plain plain False"] * 4
    assert run("int64:0.9", **two) == "plain False"
    assert run("int64:1.1", **two) == COMPILED
    assert run("int64:0.1", "int64:0.1", "int32:0.9", **two) == "plain plain plain False"
    assert run("int64:0.9", "int32:0.6", "int32:0.6", **two) == f"kernel plain {COMPILED}"
    assert run("int64:1.1", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", **one) == COMPILED
    assert run("int64:0.5", "int64:2", **one) == f"plain {COMPILED}"
    assert run("int64:0.5", **one) == FOUND


@pytest.mark.compiled
@compiles
def test_processes_compile_each_kernel_once(tmp_path):
    """Each locks what it compiles and no more; a killed process leaves its lock's file, but neither lock nor kernel."""
    environment = {"FASTNDCG_KERNELS": "compiled", "NUMBA_CACHE_DIR": str(tmp_path)}
    key = dispatch._key(ROWS_BY_CODE, (dispatch.kind_of(np.arange(9, dtype=np.int8)), int))
    hold = "import sys, time\nfrom fastndcg.kernels.compile import kernel_cache\nwith kernel_cache.alone(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(300)"
    calls = ["int8:9", "int16:9", "int32:9"]
    with started(hold, key, **environment) as holder:
        assert holder.stdout.readline() == "held\n"
        running = [started(CALLS, *np.roll(calls, turn), **environment) for turn in (0, 1)]
        found = running[0].stdout.readline()
        holder.kill()
    assert found == "waiting\n"
    assert sum(each.communicate(timeout=300)[0].count("compiling") for each in running) == 3
    assert printed(CALLS, *calls, **environment).split() == ["kernel"] * 3 + ["True"]


@pytest.mark.compiled
@compiles
@pytest.mark.slow
def test_kernels_are_kept_in_the_users_folder(tmp_path):
    """Not in the package's. They are void if the source of any kernel changes, or others can write to the folder.

    Folders to which nothing was written for a week go, those of other versions too.
    """
    site, copy, home = tmp_path / "site", tmp_path / "copy", tmp_path / "home"
    environment = {"HOME": str(home), "LOCALAPPDATA": str(home / ".cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    kept = home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "fastndcg"
    own = kept / fn.__version__
    others = [
        kept / "0.0.9" / "old",
        own / "old",
        kept / "notes",
        own / "recent",
        kept / "999.0.0" / "recent",
    ]
    for folder in others:
        folder.mkdir(parents=True)
        if folder.name == "old":
            os.utime(folder, (1, 1))

    def found(package, code=CALLS):
        options = environment | {"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1"}
        return run("int64:9", code=code, kernels="compiled", **options)

    for folder in (site, copy):
        shutil.copytree(Path(fn.__file__).parent, folder / "fastndcg", copy_function=shutil.copyfile)
    before = sorted(site.rglob("*"))
    assert found(site) == COMPILED
    assert sorted(site.rglob("*")) == before
    assert [folder.is_dir() for folder in others] == [False, False, True, True, True]
    assert found(copy, READ_ONLY + CALLS) == FOUND
    with (copy / "fastndcg" / "kernels" / "sorting.py").open("a") as source:
        source.write("# changed\n")
    for changed in (copy, shutil.make_archive(str(tmp_path / "packed"), "zip", site)):
        assert [found(changed), found(changed)] == [COMPILED, FOUND]
    own.chmod(0o777)
    assert found(site) == (COMPILED if has_owners else FOUND)


@pytest.mark.compiled
@compiles
def test_where_no_folder_can_be_written_one_warning_says_so(tmp_path):
    """And nothing else is wrong: each process compiles for itself."""
    (tmp_path / "file").touch()
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "file"), "FASTNDCG_KERNELS": "compiled"}
    done = program(CALLS, "int64:9", "int32:9", flags=["-W", "always"], **environment)
    assert done.stdout.split() == ["compiling", "kernel"] * 2 + ["True"]
    assert done.stderr.count("kernels cannot be kept in") == 1


def test_the_users_folder_by_platform(monkeypatch):
    """By the convention of each; a relative XDG_CACHE_HOME is ignored."""
    monkeypatch.setenv("HOME", "/home/ann")
    for platform, name, value, expected in (
        ("linux", "XDG_CACHE_HOME", "/var/ann", "/var/ann/fastndcg"),
        ("linux", "XDG_CACHE_HOME", "relative", "/home/ann/.cache/fastndcg"),
        ("darwin", "XDG_CACHE_HOME", "/var/ann", "/home/ann/Library/Caches/fastndcg"),
        ("win32", "LOCALAPPDATA", "/local", "/local/fastndcg/Cache"),
        ("win32", "LOCALAPPDATA", "", "/home/ann/AppData/Local/fastndcg/Cache"),
    ):
        monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "platform", platform)
        assert kernel_cache.users_folder().as_posix() == expected


@pytest.mark.skipif(not has_owners, reason="folders have no owners")
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("fault", ["group", "others", "owner", "link"])
def test_folders_that_others_could_fill_are_refused(monkeypatch, tmp_path, which, fault):
    """Loading a kernel runs code: none is found there, and one warning says so. New folders are the user's alone."""
    own, before = tmp_path / "fastndcg" / "1.0" / "kernels", os.umask(0)
    kernel_cache.make(own)
    os.umask(before)
    folder, moved = (own.parents[1], own.parent, own)[which], tmp_path / "moved"
    assert folder.stat().st_mode & 0o777 == 0o700
    (own / "a.lock").write_text("kept")
    monkeypatch.setattr(kernel_cache, "folder_in", lambda parent: own)
    monkeypatch.setattr(kernel_cache, "_warned", [])
    assert kernel_cache.is_kept("a")
    if fault == "owner" and os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: 1)
    elif fault == "owner":
        os.chown(folder, 1, 0)
    else:
        folder.chmod(0o770 if fault == "group" else 0o707)
    if fault == "link":
        folder.rename(moved)
        folder.symlink_to(moved)
    with pytest.warns(fn.FastndcgWarning, match="other users can write there.*chmod -R go-w") as caught:
        assert not kernel_cache.is_kept("a") and kernel_cache.folder() is None
    assert len(caught) == 1
