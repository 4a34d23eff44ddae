"""Compile kernels ahead of time, into the user's cache or into a folder to ship with an image."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.progress import Task
from fastndcg.common.threads import in_threads, processors
from fastndcg.errors import FastndcgError, InputError, SourceError
from fastndcg.measures import Measures, as_measures
from fastndcg.rankings.rankings import Rankings

SCORES = ("float32", "float64", "int64")
_USUAL = SCORES[:2]


class Compiled(NamedTuple):
    """The result of `compile_kernels`: its folder, size and time, and the environment to set to use it."""

    folder: Path
    n_kernels: int
    n_bytes: int
    seconds: float
    environment: dict[str, str]

    def __str__(self) -> str:
        text = (
            f"{self.n_kernels} new kernels, {self.n_bytes / 1e6:.1f} MB in all, in {self.seconds:.0f} s: "
            f"{self.folder}"
        )
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environment.items())
        return f"{text}\nRun processes that are to find them with: {settings}" if settings else text


def compile_kernels(
    measures: Measures = ("nDCG@10", "AP", "ERR"),
    *,
    scores: str | Sequence[str] = _USUAL,
    folder: str | os.PathLike[str] | None = None,
) -> Compiled:
    """Compile all kernels that measures need, so that later processes compile nothing.

    Kernels that exist already are kept. One process for each processor compiles the others. The kernels of
    the default measures serve all measures that are sums over one ranking, whole and fractional
    grades, rows in any order, one or all threads, joins of judgments and a run, comparisons and intervals.
    They are for this machine's processor, or for that which NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name.

    Parameters
    ----------
    measures : one or several of Measure or notation
    scores : "float32", "float64" or "int64", or several
        Types of the scores that will be ranked. Default: float32 and float64.
    folder : path, optional
        Folder for the kernels, for example to copy it into an image, where it may be read-only. Default: the
        cache of this user.

    Returns
    -------
    Compiled
        What `print` shows: the number and size of the kernels, the time it took, and the environment
        variables with which processes find them.

    Raises
    ------
    MeasureError
        A measure that does not exist.
    InputError
        A type of scores that is not known.

    See Also
    --------
    evaluate : runs kernels that were compiled ahead, and compiles missing ones.

    Examples
    --------
    >>> compile_kernels("nDCG@10", scores="float16")
    Traceback (most recent call last):
    ...
    fastndcg.errors.InputError: scores='float16' is not known; expected float32, float64 or int64
    """
    from fastndcg.kernels.compile import kernel_cache

    names = [str(measure) for measure in as_measures(measures)]
    types = [scores] if isinstance(scores, str) else list(scores)
    for each in types:
        if each not in SCORES:
            raise InputError(f"scores={each!r} is not known; expected float32, float64 or int64")
    chosen = {} if folder is None else {"NUMBA_CACHE_DIR": str(Path(folder).absolute())}
    kept = kernel_cache.folder_in(chosen.get("NUMBA_CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", "")))
    if kept is None:
        raise InputError("this user has no folder for a cache; name one, as in folder='kernels'")
    if folder is not None:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"{folder} cannot be written: {error.strerror}"
            raise SourceError(f"{reason}. Name a folder that exists or can be created.") from None
    before, started = len(list(kept.rglob("*.nbc"))), time.monotonic()

    def compile_in_child(arguments: list[str]) -> None:
        # two threads, so that parallel drivers are compiled on a machine with one processor too
        always = {"FASTNDCG_KERNELS": "compiled", "NUMBA_DISABLE_JIT": "0", "NUMBA_NUM_THREADS": "2"}
        # -P and a PYTHONPATH without empty and relative entries leave out modules of the current folder
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        known = [
            str(Path(__file__).absolute().parents[2]),
            *(each for each in paths if Path(each).is_absolute()),
        ]
        done = subprocess.run(  # noqa: S603 - this Python, and arguments of ours
            [sys.executable or "", "-P", "-m", "fastndcg.api.compilation", *arguments],
            env=os.environ | always | chosen | {"PYTHONPATH": os.pathsep.join(known)},
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if not done.returncode:
            return
        last = (done.stderr.strip() or f"the process ended with {done.returncode}").splitlines()[-1]
        raise FastndcgError(f"the kernels could not be compiled: {last}")

    parts = [["other"], *([kind, grades, *names] for kind in types for grades in ("whole", "fractional"))]
    with Task("Compiling kernels"):
        for _ in in_threads(compile_in_child, parts, processors()):
            pass
    if folder is not None:  # the folder will be copied, and read by other users
        for path in (kept.parent.parent, *kept.parent.parent.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    files = list(kept.rglob("*.nbc"))
    n_bytes = sum(file.stat().st_size for file in files)
    return Compiled(kept, len(files) - before, n_bytes, time.monotonic() - started, chosen)


# ---- in a child process: each driver is called with arguments of the types of users' calls ----


def _compile_scoring(kind: str, grades: str, *measures: str) -> None:
    """Score whole grades, which have levels, or fractional ones, by each measure with one and two threads."""
    relevance = np.arange(90) % 4 + (0 if grades == "whole" else 0.5)
    scores, intents = (np.arange(90) % 7).astype(kind), np.arange(180).reshape(90, 2) % 2
    rankings = Rankings.from_groups([30] * 3, relevance, scores, intents=intents)
    for measure in measures:  # separate calls, since a call compiles only what it needs
        for threads in (1, 2):
            evaluate(rankings, measure, threads=threads)


def _compile_other() -> None:
    """Group rows by ids of every kind, join judgments with a run, order as ranx does, resample values."""
    from fastndcg.statistics import resampling

    numbers, scores = np.arange(90) % 9, np.arange(90) / 7
    texts = pa.array(numbers.astype(str))
    for ids in (numbers, texts.dictionary_encode()):
        Rankings.from_query_ids(ids, numbers, scores, doc_ids=np.arange(90))
    for grades in ("int8", "int16", "int32", "int64"):  # drivers that place columns differ by width
        for kind in _USUAL:
            Rankings.from_query_ids(numbers, numbers.astype(grades), scores.astype(kind))
    pair = {"query_id": texts, "doc_id": np.arange(90)}
    Rankings.from_qrels_run(pa.table(pair | {"relevance": numbers}), pa.table(pair | {"score": scores}))
    evaluate(Rankings.from_groups([30] * 3, numbers % 3, scores), "nDCG", convention="ranx")
    values = np.arange(100.0) - 30
    resampling.sign_flips(values, None, 1000, 0)
    resampling.bootstrap_interval(values, None, 0.95, "percentile", 1000, 0)


if __name__ == "__main__":
    _compile_other() if sys.argv[1:] == ["other"] else _compile_scoring(*sys.argv[1:])
