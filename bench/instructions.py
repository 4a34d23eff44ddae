"""Count the instructions per document of a whole `evaluate` call with callgrind, free of noise.

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
from bench import samples
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
_CASES: dict[str, tuple[Callable[[], fn.Rankings], str]] = {
    "100 documents, 50% relevant": (partial(samples.even, 2_000, 100, 0.5), "nDCG@10"),
    "100 documents, 50% relevant, tied scores": (partial(samples.even, 2_000, 100, 0.5, 1), "nDCG@10"),
    "100 documents, 10% relevant": (partial(samples.even, 2_000, 100, 0.1), "nDCG@10"),
    "lognormal 1 to 2,000 documents, 50% relevant": (partial(samples.ragged, 2_000, 0.5), "nDCG@10"),
    "1,000 documents, 10% relevant": (partial(samples.even, 200, 1_000, 0.1), "nDCG@10"),
    "100,000 documents, 0.1% relevant": (partial(samples.even, 3, 100_000, 0.001), "nDCG@10"),
    "100 documents, uncut": (partial(samples.even, 2_000, 100, 0.5), "nDCG"),
}

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
        "-m", "bench.instructions", environment=_ENVIRONMENT
    )  # fills the cache, so that compiling is not counted
    with tempfile.TemporaryDirectory() as folder:
        counted = _count(Path(folder))
    for name, (sample, _) in _CASES.items():
        if name not in counted:
            yield Row("instructions", name, note="not counted: valgrind wrote no total")
            continue
        per_document = counted[name] / sample().n_docs
        yield Row("instructions", name, "", "instr/doc", None, per_document, note="haswell, whole call")


def _count(folder: Path) -> dict[str, int]:
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
        timeout=300,
        check=False,
    )
    names = list(_CASES)
    counted = {}
    for path in folder.glob("count.*"):
        text = path.read_text(encoding="utf-8")
        trigger = re.search(r"Trigger: Client Request: case (\d+)", text)
        total = re.search(r"^(?:totals|summary): (\d+)", text, flags=re.MULTILINE)
        if trigger and total:
            counted[names[int(trigger[1])]] = int(total[1])
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
    """Score every case twice. Under valgrind, the second call is counted."""
    request = requests()
    prepared = [(sample(), measure) for sample, measure in _CASES.values()]
    for rankings, measure in prepared:
        fn.evaluate(rankings, measure, threads=1)
    request(_START, b"")
    for case, (rankings, measure) in enumerate(prepared):
        request(_ZERO, b"")
        fn.evaluate(rankings, measure, threads=1)
        request(_DUMP_AT, f"case {case}".encode())


if __name__ == "__main__":
    _run()
    print(json.dumps([len(_CASES)]))
