"""Kinds of paths crossed with commands and outputs: nothing is read twice, no input and no link is replaced."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import fastndcg as fn
from fastndcg.errors import SourceError
from fastndcg.scores.scores import write_results

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")

TABLE = pa.table({"qid": [1, 1, 2, 2], "label": [1, 0, 0, 1], "score": [0.9, 0.1, 0.8, 0.2]})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with an input under several names."""
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    pq.write_table(TABLE, data / "a.parquet")
    monkeypatch.chdir(tmp_path)
    Path("link.parquet").symlink_to("data/a.parquet")
    Path("hard.parquet").hardlink_to("data/a.parquet")
    Path("through").symlink_to("data")
    return tmp_path


def command(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "fastndcg", *map(str, words)],
        check=False, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 120} | options,
    )  # fmt: skip


# ---- inputs ----

NAMES = {
    "relative": "data/a.parquet",
    "dotted": "./data/sub/../a.parquet",
    "absolute": "{here}/data/a.parquet",
    "uri": "file://{here}/data/a.parquet",
    "symbolic link": "link.parquet",
    "hard link": "hard.parquet",
    "folder": "data",
    "linked folder": "through",
    "pattern": "data/*.parquet",
    "deep pattern": "**/a.parquet",
}


@pytest.mark.parametrize("other", NAMES)
@pytest.mark.parametrize("one", NAMES)
def test_a_file_under_two_names_is_refused(one, other, folder):
    paths = [NAMES[each].format(here=folder) for each in (one, other)]
    assert fn.read_parquet(paths[0]).n_docs == 4
    with pytest.raises(
        SourceError, match=r"(is named twice|are one file), so its documents would count twice"
    ):
        fn.read_parquet(paths)
    with pytest.raises(SourceError, match="would count twice"):
        fn.evaluate(paths, "nDCG")


def test_a_file_counts_once_in_a_folder_however_many_links_lead_to_it(folder):
    data = folder / "data"
    (data / "latest.parquet").symlink_to("a.parquet")
    (data / "z.parquet").hardlink_to(data / "a.parquet")
    for number in range(3):  # 3 ** 40 names, for who follows them all
        (data / "sub" / f"up{number}").symlink_to("..")
    (data / "sub" / "broken.parquet").symlink_to("nowhere")
    for path in (data, "data/**", "data/*.parquet", "**/*.parquet"):
        assert fn.read_parquet(path).n_docs == 4, path
        assert fn.evaluate(path, "CG").n_queries == 2


def test_formats_that_are_mixed_are_named(folder):
    (folder / "data" / "b.csv").write_text("qid,label,score\n3,1,0.5\n")
    for paths in ("data", "data/*", ["data/a.parquet", "data/b.csv"], ["link.parquet", "data"]):
        with pytest.raises(SourceError) as caught:
            fn.evaluate(paths, "nDCG")
        if paths != ["link.parquet", "data"]:
            assert "2 kinds" in str(caught.value)
            assert "Parquet (data/a.parquet), CSV (data/b.csv)" in str(caught.value)
            assert str(caught.value).endswith("Name the files of one kind.")
    assert fn.read_parquet("data").n_docs == 4
    assert fn.read_csv("data").n_docs == 1
    assert run("score data").exit_code == 3
    assert run("score data/a.parquet data/b.csv").exit_code == 2


# ---- outputs ----

WRITERS = {
    "score": "score data -m CG --out",
    "score of a pattern": "score data/*.parquet --out",
    "report": "report data -o",
}


@pytest.mark.parametrize(
    "out", ["data/a.parquet", "link.parquet", "hard.parquet", "through/a.parquet", "{here}/data/a.parquet"]
)
@pytest.mark.parametrize("writer", WRITERS)
def test_no_output_replaces_an_input(writer, out, folder):
    before = Path("data/a.parquet").read_bytes()
    done = run(WRITERS[writer], out.format(here=folder))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is the input" in done.stderr
    assert Path("data/a.parquet").read_bytes() == before
    assert Path("link.parquet").is_symlink()


def test_no_output_replaces_judgments(folder):
    Path("qrels").write_text("1 0 a 1\n")
    Path("run").write_text("1 Q0 a 1 0.5 me\n")
    Path("scores.parquet").symlink_to("qrels")
    for line in ("score --qrels qrels run --out", "report --qrels qrels --run run -o"):
        assert run(line, "scores.parquet").exit_code == 2
    assert Path("qrels").read_text() == "1 0 a 1\n"


@pytest.mark.parametrize("line", ["score data --out", "report data -m CG -o", "demo --queries 5 --out"])
@pytest.mark.slow
def test_links_stay_and_what_they_lead_to_is_written(line, folder):
    Path("old.csv").write_text("OLD")
    Path("old.csv").chmod(0o640)
    Path("one.csv").symlink_to("two.csv")
    Path("two.csv").symlink_to("old.csv")
    Path("to_new.csv").symlink_to("data/sub/new.csv")
    for out, target in (("one.csv", "old.csv"), ("to_new.csv", "data/sub/new.csv")):
        done = run(line, out)
        assert done.exit_code == 0, done.stderr
        assert Path(out).is_symlink()
        assert len(Path(target).read_bytes()) > 20
    assert Path("old.csv").stat().st_mode & 0o777 == 0o640
    for out, reason in (
        ("data", "is not a file"),
        (".", "is not a file"),
        ("no/a.csv", "No such file"),
    ):
        done = run(line, out)
        assert done.exit_code == 3, out
        assert reason in done.stderr


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_text_is_written_a_part_at_a_time(name, tmp_path):
    import tracemalloc

    table = pa.table({"qid": range(50_000), "nDCG": [0.5] * 50_000})
    tracemalloc.start()
    write_results(tmp_path / name, [table])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6
    assert (tmp_path / name).read_text().count("\n") == 50_000 + (name == "a.csv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(folder):
    (folder / "data" / "sub").chmod(0o500)
    done = run("score data --out data/sub/a.csv")
    assert (done.exit_code, "Permission denied" in done.stderr) == (3, True)


def test_csv_has_texts_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = ["=cmd|' /C calc'!A0", "+1", "", "@a", "\t=a", "a,b\n"]
    table = {"qid": ids, "label": [1] * 6, "score": [0.5] * 6, "=city": ids}
    pq.write_table(pa.table(table), "a.parquet")
    done = run("score a.parquet -m CG --keep =city --by =city --format csv --out a.csv")
    assert done.exit_code == 0, done.stderr
    for text, column in ((done.stdout, 0), (Path("a.csv").read_bytes().decode(), 1)):
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert header[column] == "=city" and sorted(row[column] for row in rows) == sorted(ids)
