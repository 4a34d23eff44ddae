"""Files appear whole or not at all."""

import os

import pytest

from fastndcg import SourceError
from fastndcg.common.files import check_writable, whole_file


def test_a_new_file(tmp_path):
    with whole_file(tmp_path / "out") as draft:
        draft.write_text("half")
        assert not (tmp_path / "out").exists()
        draft.write_text("whole")
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "whole"
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_file_that_is_replaced_keeps_its_mode_and_loses_nothing(tmp_path):
    (tmp_path / "out").write_text("old")
    (tmp_path / "out").chmod(0o640)
    with pytest.raises(KeyError), whole_file(tmp_path / "out") as draft:  # noqa: PT012 - what fails is the block
        draft.write_text("half")
        assert draft.stat().st_mode & 0o077 == 0
        raise KeyError
    assert (os.listdir(tmp_path), (tmp_path / "out").read_text()) == (["out"], "old")
    with whole_file(tmp_path / "out") as draft:
        draft.write_text("new")
    assert (os.listdir(tmp_path), (tmp_path / "out").read_text()) == (["out"], "new")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_looking_leaves_nothing(tmp_path):
    check_writable(tmp_path / "out")
    assert os.listdir(tmp_path) == []
    for where in (tmp_path / "none" / "out", tmp_path):
        with pytest.raises(SourceError, match="cannot be written"):
            check_writable(where)
