"""Count the instructions per document of whole calls with callgrind, free of noise: of `evaluate` and of the
stages of reading a file.

valgrind does not support AVX-512, so kernels are compiled for `haswell` (AVX2). A change shows with either
vector width. Only the calls are counted. The process tells valgrind when to start and when to write a count,
by the instructions that valgrind treats as requests (<valgrind.h>). `--toggle-collect` does not work, since
kernels that are compiled at run time have no symbols.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import fastndcg as fn
from bench import cores, reading, samples, shuffled
from bench.process import ROOT, python
from bench.record import Row

_ENVIRONMENT = {
    "FASTNDCG_KERNELS": "compiled",  # plain code is not what is counted
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+fma,+f16c,+lzcnt,+movbe,+popcnt,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3",
    "NUMBA_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
Prepared = tuple[Callable[[], object], int]  # what is counted, and of how many documents or rows

_ROWS = 1_000_000


def _scored(sample: Callable[[], fn.Rankings], measure: str) -> Prepared:
    rankings = sample()
    return partial(fn.evaluate, rankings, measure, threads=1), rankings.n_docs


def _sorted(folder: Path) -> Path:
    return reading.file_of(folder, _ROWS // shuffled.ROWS_A_QUERY, "int64")


def _in_any_order(ids: str, folder: Path) -> Path:
    return shuffled.file_of(folder, _ROWS, ids)


def _read(file: Callable[[Path], Path], stage: str) -> Prepared:
    path = str(file(Path(tempfile.gettempdir()) / "fastndcg-bench"))
    table = cores.decode(path, 1)
    stages: dict[str, Callable[[], object]] = {
        "decode": partial(cores.decode, path, 1),
        "group": partial(cores.group, table, 1),
        "all, in memory": partial(cores.in_memory, path, 1),
        "all, as a stream": partial(cores.as_stream, path, 1),
    }
    return stages[stage], len(table)


_FILES: dict[str, Callable[[Path], Path]] = {
    "sorted, int64 ids": _sorted,
    "in any order, int64 ids": partial(_in_any_order, "int64"),
    "in any order, text ids": partial(_in_any_order, "text"),
}
_CASES: dict[str, Callable[[], Prepared]] = {
    "100 documents, 50% relevant": partial(_scored, partial(samples.even, 2_000, 100, 0.5), "nDCG@10"),
    "100 documents, 50% relevant, tied scores": partial(_scored, partial(samples.even, 2_000, 100, 0.5, 1), "nDCG@10"),
    "100 documents, 10% relevant": partial(_scored, partial(samples.even, 2_000, 100, 0.1), "nDCG@10"),
    "lognormal 1 to 2,000 documents, 50% relevant": partial(_scored, partial(samples.ragged, 2_000, 0.5), "nDCG@10"),
    "1,000 documents, 10% relevant": partial(_scored, partial(samples.even, 200, 1_000, 0.1), "nDCG@10"),
    "100,000 documents, 0.1% relevant": partial(_scored, partial(samples.even, 3, 100_000, 0.001), "nDCG@10"),
    "100 documents, uncut": partial(_scored, partial(samples.even, 2_000, 100, 0.5), "nDCG"),
    **{
        f"rows {label}: {stage}": partial(_read, file, stage)
        for label, file in _FILES.items()
        for stage in ("decode", "group", "all, in memory", "all, as a stream")
    },
}  # fmt: skip

# <valgrind.h> for amd64: four rotations that cancel out, then the exchange of a register with itself
_REQUEST = bytes.fromhex(
    "4889f8 4889f2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3".replace(" ", "")
)
_TOOL = (ord("C") << 24) | (ord("T") << 16)
_ZERO, _DUMP_AT, _START = _TOOL + 1, _TOOL + 3, _TOOL + 4


def unavailable() -> str:
    """Return why instructions cannot be counted on this machine, or "" if they can."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if platform.machine() not in {"x86_64", "AMD64"}:
        return f"requests to valgrind are written for x86-64 only, this is {platform.machine()}"
    return ""


def rows(*, quick: bool) -> Iterator[Row]:
    reason = unavailable()
    if quick or reason:
        yield Row("instructions", "all", note=f"not counted: {reason or 'left out by --quick'}")
        return
    python(
        "-m", "bench.instructions", environment=_ENVIRONMENT, timeout=1800
    )  # fills the cache, so that compiling is not counted
    with tempfile.TemporaryDirectory() as folder:
        counted = _count(Path(folder))
    for name in _CASES:
        if name not in counted:
            yield Row("instructions", name, note="not counted: valgrind wrote no total")
            continue
        yield Row("instructions", name, "", "instr/doc", None, counted[name], note="haswell, whole call")


def _count(folder: Path) -> dict[str, float]:
    """Instructions of a document, by case."""
    import os

    valgrind = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        f"--callgrind-out-file={folder / 'count'}",
    ]
    finished = subprocess.run(
        [*valgrind, sys.executable, "-m", "bench.instructions"],
        env={**os.environ, "PYTHONPATH": str(ROOT), **_ENVIRONMENT},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    names = list(_CASES)
    counted = {}
    for path in folder.glob("count.*"):
        text = path.read_text(encoding="utf-8")
        trigger = re.search(r"Trigger: Client Request: case (\d+) of (\d+)", text)
        total = re.search(r"^(?:totals|summary): (\d+)", text, flags=re.MULTILINE)
        if trigger and total:
            counted[names[int(trigger[1])]] = int(total[1]) / int(trigger[2])
    if not counted and finished.returncode:
        raise RuntimeError(finished.stderr.strip().splitlines()[-1])
    return counted


def requests() -> Callable[[int, bytes], int]:
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_REQUEST)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ask = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)(address)

    def request(number: int, text: bytes = b"") -> int:
        label = ctypes.create_string_buffer(text)
        arguments = (ctypes.c_uint64 * 6)(number, ctypes.addressof(label), 0, 0, 0, 0)
        answer: int = ask(ctypes.addressof(arguments), 0)
        return answer

    request.code = code  # type: ignore[attr-defined]
    return request


def _run() -> None:
    """Run every case twice. Under valgrind, the second call is counted."""
    request = requests()
    prepared = [prepare() for prepare in _CASES.values()]
    for call, _ in prepared:
        call()
    request(_START, b"")
    for case, (call, items) in enumerate(prepared):
        request(_ZERO, b"")
        call()
        request(_DUMP_AT, f"case {case} of {items}".encode())


if __name__ == "__main__":
    _run()
    print(json.dumps([len(_CASES)]))
