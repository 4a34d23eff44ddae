"""Fuzz JSON, Feather, packed files, and commands: names of files, standard input, links, streams that are closed.

A packed file is read as the same file unpacked, or refused. A command ends with one of our exit codes, without a
traceback, and says the same for a file whatever it is called and however it comes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.feather as pf

import fastndcg as fn
from fastndcg.__main__ import main
from fastndcg.sources import given
from fastndcg.sources.columns import Roles
from scripts import fuzz_parquet, fuzz_text
from scripts.fuzz import Target, mutate
from scripts.fuzz_parquet import _REFUSED, _compare, _lists_of, _try

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_TEXTS = (
    "q1",
    "",
    "caf\u00e9",
    "\u2028",
    "\x1b[31m",
    "a\nb",
    "=1+1",
    "\u202e",
    "x" * 90,
    "\ud7ff",
    "None",
    "1",
    "2024-01-01",
)


def _read(path: Path) -> list[tuple[Any, ...]]:
    found = given.rankings_or_stream(str(path), Roles("qid", "label", "score"), threads=1)
    parts = [found] if isinstance(found, fn.Rankings) else list(found)
    return [query for part in parts for query in _lists_of(part)]


# ---- JSON ----


def _rows(rng: Random) -> list[dict[str, Any]]:
    def row(number: int) -> dict[str, Any]:
        qid = rng.choice(_TEXTS) if rng.random() < 0.05 else f"q{number // 4}"
        return {
            "qid": qid,
            "label": number % 3,
            "score": rng.randrange(-99, 99) / 8,
            "note": rng.choice(_TEXTS),
        }

    return [row(number) for number in range(rng.choice((1, 5, 40)))]


def _json(rng: Random) -> bytes:
    rows = _rows(rng)
    if rng.random() < 0.3:
        data = json.dumps(rows, indent=rng.choice((None, 1))).encode()
    else:
        data = "".join(json.dumps(row, ensure_ascii=rng.random() < 0.5) + "\n" for row in rows).encode()
    return data if rng.random() < 0.2 else mutate(data, rng)


def judge_json(path: Path) -> str | None:
    """Compare with Python's reader where it reads rows of texts and numbers."""
    found = _try(lambda: _read(path))
    if isinstance(found, str):
        return f"raises {found}"
    try:
        text = path.read_bytes().decode("utf-8-sig")
        values = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line]
        )
    except (ValueError, RecursionError):
        return None
    kinds = {"qid": str, "label": int, "score": float}
    if found is None or not all(
        isinstance(row, dict) and all(type(row.get(name)) is kind for name, kind in kinds.items()) for row in values
    ):  # fmt: skip
        return None
    if not all(math.isfinite(row["score"]) and abs(row["label"]) < 2**53 for row in values):
        return None
    if any("\ud800" <= letter <= "\udfff" for row in values for letter in row["qid"]):
        return None
    columns = {name: pa.array([row[name] for row in values]) for name in kinds}
    wanted = _try(
        lambda: _lists_of(
            fn.Rankings.from_arrow(pa.table(columns), query="qid", relevance="label", score="score")
        )
    )
    return None if isinstance(wanted, str) else _compare("JSON", found, wanted)


# ---- Feather ----


def _feather(rng: Random) -> bytes:
    table, out = fuzz_parquet.table_of(rng), io.BytesIO()
    if rng.random() < 0.3:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=rng.choice((3, 1000)))
    else:
        pf.write_feather(table, out, compression=rng.choice(("uncompressed", "lz4", "zstd")))
    data = out.getvalue()
    return data if rng.random() < 0.2 else mutate(data, rng)


def judge_feather(path: Path) -> str | None:
    """Compare with the table that pyarrow reads, where that is valid."""
    names = ["qid", "label", "score"]
    try:
        with pa.OSFile(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
            schema = opened(file).schema
            places = [schema.get_field_index(name) for name in names]
            file.seek(0)
            options = pa.ipc.IpcReadOptions(included_fields=places)  # what else is damaged does not matter
            table = opened(file, options=options).read_all().select(names)
            table.validate(full=True)
    except (*_REFUSED, KeyError):
        table = None
    wanted = None
    if table is not None:
        wanted = _try(
            lambda: _lists_of(fn.Rankings.from_arrow(table, query="qid", relevance="label", score="score"))
        )
        wanted = None if isinstance(wanted, str) else wanted
    return _compare("Feather", _try(lambda: _read(path)), wanted)


# ---- packed files ----

_PACKERS: tuple[tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]], ...] = (
    (gzip.compress, gzip.decompress),
    (bz2.compress, bz2.decompress),
    (
        lambda data: pa.compress(data, codec="zstd", asbytes=True),
        lambda data: pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(),
    ),
)


def _packed(rng: Random) -> bytes:
    inner, (pack, _) = (
        rng.choice((fuzz_text._csv, _json, _feather, fuzz_parquet._mutant))(rng),
        rng.choice(_PACKERS),
    )
    cut = rng.randrange(len(inner) + 1) if rng.random() < 0.3 else 0
    data = pack(inner[:cut]) + pack(inner[cut:]) if cut else pack(inner)  # of two members
    return data if rng.random() < 0.5 else mutate(data, rng)


def judge_packed(path: Path) -> str | None:
    data, found = path.read_bytes(), _try(lambda: _read(path))
    if isinstance(found, str):
        return f"raises {found}"
    for (_, unpack), magic in zip(_PACKERS, (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"), strict=True):
        if found is not None and data.startswith(magic):
            try:
                inner = unpack(data)
            except (OSError, EOFError, ValueError, pa.ArrowException):
                return None  # pyarrow reads what follows the last member otherwise
            path.with_name("plain").write_bytes(inner)
            plain = _try(lambda: _read(path.with_name("plain")))
            return _compare("packed", found, None if isinstance(plain, str) else plain)
    return None


# ---- commands ----

_NAMES = (
    "plain", "-m", "--help", "new\nline", "100%", "%s%d", "\udcff\udcfe", "a b", "caf\u00e9", "[a-c]", "x*y", "q?", "~", "$HOME", "`id`",
    "a;b", "'q'", '"q"', "\\", "\x1b[31mred", "\x07", "\u202egnp", "a" * 200, "#c", "{a,b}", "://", "s3:", "_hidden", ".hidden", "nul\u0000",
)  # fmt: skip


def _command(rng: Random) -> bytes:
    name = rng.choice(_NAMES) + rng.choice((".csv", ".csv", ".jsonl", ""))
    return json.dumps({
        "name": name, "rows": _rows(rng), "way": rng.choice(("path", "path", "stdin", "link", "folder", "broken", "loop")),
        "stdout": rng.choice(("", "file", "file", "/dev/full")), "stderr": rng.choice(("", "file", "file", "file", "/dev/full")),
        "command": rng.choice(("score", "score --format json", "score --format csv", "score --out o.csv", "explain --worst 2")),
    }).encode()  # fmt: skip


def judge_command(path: Path) -> str | None:
    """Score a file by the command line, in a child of this process, in an empty folder."""
    given = json.loads(path.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "data")
        home.mkdir()
        text = "".join(json.dumps(row) + "\n" for row in given["rows"])
        if not given["name"].endswith(".jsonl"):
            text = "qid,label,score\n" + "".join(
                f"q{i // 4},{row['label']},{row['score']}\n" for i, row in enumerate(given["rows"])
            )
        try:
            file = home / given["name"]
            file.write_text(text, "utf-8")
        except (ValueError, OSError):  # no such name
            return None
        named = {"stdin": "-", "folder": "data", "link": "link", "broken": "gone", "loop": "loop"}.get(
            given["way"], f"data/{given['name']}"
        )
        for link, to in (("link", file), ("gone", home / "nothing"), ("loop", Path(folder, "loop"))):
            Path(folder, link).symlink_to(to)
        code, said = _run(
            folder, [*given["command"].split(), "-m", "nDCG@10", named], text if named == "-" else "", given
        )
    if not code:
        _scored()
    shown = given["stdout"] == given["stderr"] == "file"
    if code not in (0, 2, 3, 141):
        return f"ends with {code}: {said[-200:]}"
    if "Traceback" in said or "This is a fault" in said:
        return f"has a traceback: {said[-300:]}"
    if shown and set(said) & (set(map(chr, range(32))) - {"\n", "\t", "\r"}):
        return f"shows control characters: {said[-200:]!r}"
    if code and shown and given["way"] in ("path", "link", "stdin") and "://" not in given["name"]:
        return f"ends with {code}: {said[-200:]!r}"
    return f"ends with {code}, and says nothing" if shown and code and not said.strip() else None


def _run(folder: str, arguments: list[str], text: str, given: dict[str, Any]) -> tuple[int, str]:
    """Exit code and output of the command line, in a fork of this process."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = (out, err)
        source.write(text.encode())
        source.seek(0)
        pid = os.fork()
        if not pid:
            os.chdir(folder)
            os.dup2(source.fileno(), 0)
            for number, (name, stream) in enumerate(zip(("stdout", "stderr"), streams, strict=True), 1):
                if given[name]:
                    os.dup2(
                        stream.fileno() if given[name] == "file" else os.open(given[name], os.O_WRONLY),
                        number,
                    )
                else:  # closed, as Python finds it at its start
                    os.close(number)
                    setattr(sys, name, None)
            sys.argv = ["fastndcg", *arguments]
            code = 99
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 98
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for stream in streams:
            stream.seek(0)
        return code, b"".join(stream.read() for stream in streams).decode("utf-8", "replace")


def _scored() -> None:
    """A command has ended well, which is counted."""


TARGETS = (
    Target("json", _json, judge_json, ".jsonl", ("fastndcg.sources.json_lines:_parse", "fastndcg.sources.json_lines:_lines_of_values")),
    Target("feather", _feather, judge_feather, ".feather", ("fastndcg.sources.feather:_open",)),
    Target("packed", _packed, judge_packed, ".packed", ("fastndcg.sources.opening:unpack", "fastndcg.sources.paths:File.unpacked")),
    Target("command", _command, judge_command, ".command", ("scripts.fuzz_files:_run", "scripts.fuzz_files:_scored")),
)  # fmt: skip
