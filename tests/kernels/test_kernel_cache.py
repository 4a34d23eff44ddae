"""Compiled drivers stay in the user's cache folder, a folder a version, and never in the package's own."""

import contextlib
import os
import pickle
import shutil
import sys
import time
from pathlib import Path

import commands
import numba
import pytest
from commands import printed

import fastndcg
from fastndcg.kernels.compile import kernel_cache

ROOT = Path(fastndcg.__file__).parent
compiles = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

# what a driver finds, and how often it was found compiled
STARTS = """
import numpy as np
from fastndcg.compiled.reading.rows import rows_by_code
print(rows_by_code(np.array([1, 0, 1]), 2)[1].tolist(), sum(rows_by_code.stats.cache_hits.values()))
"""
# as in an image that is read-only: permissions would not stop root
READ_ONLY = """
import builtins, os, pathlib, tempfile
opened = builtins.open
def refuse(*args, **kwargs):
    raise PermissionError("nothing can be written here")
def only_read(file, mode="r", *args, **kwargs):
    return opened(file, mode, *args, **kwargs) if set(mode) <= set("rbt") else refuse()
builtins.open, os.mkdir, os.makedirs, os.replace, tempfile.TemporaryFile = only_read, refuse, refuse, refuse, refuse
"""


def installed(folder):
    """A copy of the package that nothing was compiled into."""
    shutil.copytree(ROOT, folder / "fastndcg", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(code, site, **environment):
    """What a program prints that finds the package in `site`, with no settings but these."""
    settings = {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"} | environment
    with contextlib.chdir(site):
        return printed(code, without=("NUMBA_CACHE", "XDG_"), **settings)


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.compiled
@compiles
def test_kernels_are_kept_in_the_users_folder(tmp_path):
    """Nothing is added to the package; folders of older versions go; an archive of the package finds its kernels."""
    site, home = installed(tmp_path / "site"), tmp_path / "home"
    before = files(site)
    kept = home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "fastndcg"
    for version in ("0.0.9", "0.0.10.dev1", "999.0.0", "notes"):
        (kept / version / "cpython-311").mkdir(parents=True)
    environment = {"HOME": str(home), "LOCALAPPDATA": str(home / ".cache")}
    assert run(STARTS, site, **environment) == "[1, 0, 2] 0\n"
    assert files(site) == before
    assert {path.name for path in kept.iterdir()} == {fastndcg.__version__, "999.0.0", "notes"}
    # it is found again, by a copy of the package elsewhere and where nothing can be written
    assert run(READ_ONLY + STARTS, installed(tmp_path / "copy"), **environment) == "[1, 0, 2] 1\n"
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", site)
    for hits in (0, 1):
        assert run(STARTS, tmp_path, PYTHONPATH=archive, **environment) == f"[1, 0, 2] {hits}\n"


@pytest.mark.compiled
@compiles
def test_a_changed_file_makes_kernels_of_other_files_void(tmp_path):
    """In the folder that Numba was told, which wins. A time of a file alone changes nothing."""
    site, told = installed(tmp_path / "site"), tmp_path / "told"
    environment = {"HOME": str(tmp_path / "home"), "NUMBA_CACHE_DIR": str(told)}
    assert run(STARTS, site, **environment) == "[1, 0, 2] 0\n"
    assert list((told / "fastndcg" / fastndcg.__version__).rglob("*.nbc"))
    assert not (tmp_path / "home").exists()
    other = site / "fastndcg" / "kernels" / "flow" / "sorting.py"
    os.utime(other, (1, 1))
    assert run(STARTS, site, **environment) == "[1, 0, 2] 1\n"
    other.write_text(other.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert run(STARTS, site, **environment) == "[1, 0, 2] 0\n"


@pytest.mark.compiled
@compiles
def test_where_no_folder_can_be_written_one_warning_says_so(tmp_path):
    """And nothing else is wrong: each process compiles for itself."""
    (tmp_path / "file").touch()
    program = (
        "import warnings\nwarnings.simplefilter('always')"
        + STARTS
        + "rows_by_code(np.array([0, 1], np.int32), 2)"
    )
    done = commands.program(program, NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert done.stdout == "[1, 0, 2] 0\n"
    assert done.stderr.count("compiled kernels cannot be kept in") == 1
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in done.stderr


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/home/ann/.cache/fastndcg"),
        ("linux", {"XDG_CACHE_HOME": "/var/ann"}, "/var/ann/fastndcg"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/ann/.cache/fastndcg"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/ann/.cache/fastndcg"),
        ("darwin", {"XDG_CACHE_HOME": "/var/ann"}, "/home/ann/Library/Caches/fastndcg"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/fastndcg/Cache"),
        ("win32", {}, "/home/ann/AppData/Local/fastndcg/Cache"),
    ],
)
def test_the_users_folder_by_platform(platform, environment, expected, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/ann", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    folder = kernel_cache.users_folder()
    assert folder is not None
    assert folder.as_posix() == expected


def test_folders_of_other_kernels_of_this_version_go_after_a_week(tmp_path):
    """Two checkouts, or two versions of Numba, that are used in turn leave each other's alone."""
    version = tmp_path / "1.10.0"
    for name, days in (("recent", 2), ("old", 8)):
        (version / name).mkdir(parents=True)
        os.utime(version / name, (time.time() - days * 86_400,) * 2)
    (tmp_path / "1.9.0").mkdir()
    kernel_cache.make(version / "own")
    assert {path.name for path in version.iterdir()} == {"recent", "own"}
    assert not (tmp_path / "1.9.0").exists()
    (tmp_path / "1.9.0").mkdir()  # used again, beside this version
    kernel_cache.make(version / "own")
    assert (tmp_path / "1.9.0").is_dir()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners")
@pytest.mark.parametrize("which", range(3))
def test_folders_that_others_could_fill_are_refused(monkeypatch, tmp_path, which):
    """Loading a kernel runs code. A warning says so once, and what to do. Folders of root are trusted."""
    own = tmp_path / "fastndcg" / "1.0" / "kernels"
    monkeypatch.setattr(kernel_cache, "_folder", lambda parent: own)
    before = os.umask(0)
    try:
        kernel_cache.make(own)
    finally:
        os.umask(before)
    folders = (own.parents[1], own.parent, own)
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in folders)
    owner = os.geteuid()
    for mode, user in ((0o770, owner), (0o707, owner), (0o755, owner + 1)):
        monkeypatch.setattr(kernel_cache, "_warned", [])
        assert kernel_cache.folder() == own
        folders[which].chmod(mode)
        if user != owner and owner == 0:
            os.chown(folders[which], user, 0)
        elif user != owner:
            monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.warns(
            fastndcg.FastndcgWarning, match="other users can write there.*chmod -R go-w"
        ) as caught:
            assert kernel_cache.folder() is None
        assert kernel_cache.folder() is None
        assert not kernel_cache.is_kept("a")
        assert len(caught) == 1
        folders[which].chmod(0o755)


@pytest.mark.compiled
@compiles
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners")
def test_what_others_planted_is_not_loaded(tmp_path):
    """An index of drivers is a pickle: here one that leaves a file behind."""
    kept, trace = tmp_path / "kept", tmp_path / "was-run"
    environment = {"NUMBA_CACHE_DIR": str(kept)}
    assert run(STARTS, ROOT.parent, **environment) == "[1, 0, 2] 0\n"
    (index,) = kept.rglob("*.rows_by_code-*.nbi")
    index.write_bytes(pickle.dumps(Planted(str(trace))))
    index.parent.chmod(0o777)
    assert (
        run("import warnings\nwarnings.simplefilter('ignore')" + STARTS, ROOT.parent, **environment)
        == "[1, 0, 2] 0\n"
    )
    assert not trace.exists()


class Planted:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)
