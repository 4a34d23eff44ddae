"""Time what users run: whole processes with default settings, from a home that never saw the package.

Each job runs in turns with default settings and with FASTNDCG_KERNELS=compiled, each from an empty home that its
later runs find again. All must print the same. The runs after the first are compared: a job of more than a second
in plain kernels compiled them in its first run, and is held to a bar; a smaller one stays plain in every run.

Bias: processor time, of which other processes on the machine still take caches; nothing else runs in these homes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench import reading, shuffled
from bench.errors import BenchError
from bench.process import whole
from bench.record import Row
from bench.timing import Time

RUNS = 4
_LATER = 1.25  # bar of runs after one that compiled


def write_files(folder: Path, runs: int, queries: int = 50, documents: int = 200) -> tuple[str, list[str]]:
    """Write judgments and runs of one collection, and return their paths."""
    rng = np.random.default_rng(0)
    pairs = [(query, document) for query in range(queries) for document in range(documents)]
    grades = rng.integers(0, 4, len(pairs))
    qrels = folder / f"qrels-{queries}"
    qrels.write_text("".join(f"{q} 0 d{d} {g}\n" for (q, d), g in zip(pairs, grades, strict=True)))
    paths = []
    for number in range(runs):
        scores = rng.random(len(pairs))
        path = folder / f"run-{queries}-{number}"
        path.write_text(
            "".join(f"{q} Q0 d{d} 0 {s:.6f} r{number}\n" for (q, d), s in zip(pairs, scores, strict=True))
        )
        paths.append(str(path))
    return str(qrels), paths


def _of_trec(folder: Path, share: int) -> list[str]:
    qrels, (run,) = write_files(folder, 1, 2500 // share)
    return ["--qrels", qrels, run]


# the arguments of `fastndcg score` for a share, such as a twentieth, of the size in the name
JOBS: dict[str, Callable[[Path, int], list[str]]] = {
    "10 M shuffled rows, int64 ids": lambda folder, share: [
        str(shuffled.file_of(folder, shuffled.ROWS // share, "int64"))
    ],
    "10 M shuffled rows, text ids": lambda folder, share: [
        str(shuffled.file_of(folder, shuffled.ROWS // share, "text"))
    ],
    "2 M sorted rows": lambda folder, share: [str(reading.file_of(folder, 18_200 // share, "int64"))],
    "TREC run of 500,000 lines": _of_trec,
}


def measure(name: str, arguments: list[str], runs: int) -> Row:
    """Run a job as users do, and with kernels that are compiled at once and kept, in turns."""
    times: dict[str, list[Time]] = {"auto": [], "compiled": []}
    answer = b""
    with tempfile.TemporaryDirectory() as homes:
        out = Path(homes, "out")
        for _ in range(runs):
            for setting, found in times.items():
                home = {"HOME": f"{homes}/{setting}", "XDG_CACHE_HOME": "", "NUMBA_CACHE_DIR": ""}
                environment = {**home, "FASTNDCG_KERNELS": setting}
                command = ["-m", "fastndcg", "score", *arguments, "-m", "nDCG@10", "--format", "csv"]
                found.append(whole(*command, environment=environment, out=out))
                answer = answer or out.read_bytes()
                if not answer or out.read_bytes() != answer:
                    raise BenchError(f"{name}: it printed {out.read_bytes()!r}, and {answer!r} before")
        is_compiled = any(Path(homes, "auto").rglob("*.nbc"))
    ours, base = (Time(*map(sum, zip(*each[1:], strict=True))) for each in times.values())
    each = ", ".join(f"{time.cpu:.2f}" for time in times["auto"])
    note = f"{'compiled in the first run' if is_compiled else 'plain in all runs'}; seconds of each: {each}"
    return Row("runs", f"{name}, runs after the first", "kernels compiled and kept", "s",
               *(seconds / (runs - 1) for seconds in (*ours, *base)),
               ratio=ours.cpu / base.cpu, bar=_LATER if is_compiled else None, note=note)  # fmt: skip


def rows(*, quick: bool) -> Iterator[Row]:
    folder = Path(tempfile.gettempdir()) / "fastndcg-bench"
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in JOBS.items():
        try:
            yield measure(name, arguments(folder, 20 if quick else 1), 2 if quick else RUNS)
        except BenchError as error:
            yield Row("runs", name, note=f"failed: {error}")
