"""Files appear whole or not at all, whether the file system knows files without a name or not."""

import os
import sys
from pathlib import Path

import pytest
from commands import program

from fastndcg import SourceError
from fastndcg.common import files
from fastndcg.common.files import check_writable, whole_file


@pytest.fixture(params=["without a name", "with a name"])
def folder(request, tmp_path, monkeypatch):
    if request.param == "with a name":
        monkeypatch.setattr(files, "_nameless", lambda _: None)
    elif not has_nameless_files(tmp_path):
        pytest.skip("the file system has no files without a name")
    return tmp_path


def has_nameless_files(folder):
    handle = files._nameless(folder)
    if handle is not None:
        os.close(handle)
    return handle is not None


def open_files_in(folder):
    """Files of the folder that this process has open (other threads open and close files, too)."""
    descriptors = Path("/proc/self/fd").iterdir() if sys.platform == "linux" else ()
    return [file for file in map(os.path.realpath, descriptors) if file.startswith(str(folder.resolve()))]


def test_a_new_file(folder):
    with whole_file(folder / "out") as draft:
        draft.write_text("half")
        assert not (folder / "out").exists()
        draft.write_text("whole")
    assert os.listdir(folder) == ["out"]
    assert (folder / "out").read_text() == "whole"
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "out").stat().st_mode & 0o777 == 0o666 & ~mask
    assert not open_files_in(folder)


def test_a_file_that_is_replaced_keeps_its_mode_and_loses_nothing(folder):
    (folder / "out").write_text("old")
    (folder / "out").chmod(0o640)
    with pytest.raises(KeyError), whole_file(folder / "out") as draft:  # noqa: PT012 - what fails is the block
        draft.write_text("half")
        raise KeyError
    assert (os.listdir(folder), (folder / "out").read_text()) == (["out"], "old")
    with whole_file(folder / "out") as draft:
        draft.write_text("new")
    assert (os.listdir(folder), (folder / "out").read_text()) == (["out"], "new")
    assert (folder / "out").stat().st_mode & 0o777 == 0o640


def test_looking_leaves_nothing(folder):
    check_writable(folder / "out")
    assert os.listdir(folder) == []
    for where in (folder / "none" / "out", folder):
        with pytest.raises(SourceError, match="cannot be written"):
            check_writable(where)


@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name as Linux has them")
def test_a_killed_process_leaves_nothing(tmp_path):
    if not has_nameless_files(tmp_path):
        pytest.skip("the file system has no files without a name")
    code = """
        import os, signal, sys
        from fastndcg.common.files import whole_file
        with whole_file(sys.argv[1]) as draft:
            draft.write_bytes(bytes(100_000))
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert program(code, tmp_path / "out").returncode != 0
    assert os.listdir(tmp_path) == []
