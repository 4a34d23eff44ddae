"""Kernels compiled ahead: into the cache of this user, or into a folder to ship with an image."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from fastndcg.common.children import run_child
from fastndcg.common.progress import Task
from fastndcg.common.threads import in_threads, processors
from fastndcg.errors import FastndcgError, InputError
from fastndcg.measures import Measures, as_measures
from fastndcg.sources.columns import with_roles

if TYPE_CHECKING:
    from fastndcg.typing import Paths, RoleKeywords

SCORES = ("float32", "float64", "int64")
_USUAL = SCORES[:2]
_QUERIES, _LENGTH = 1500, 100  # more documents than are worth threads


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


@with_roles
def compile_kernels(
    measures: Measures = ("nDCG@10", "AP", "ERR"),
    *,
    scores: str | Sequence[str] = _USUAL,
    folder: str | os.PathLike[str] | None = None,
    cpu: str | None = None,
    data: Paths | None = None,
    **roles: Unpack[RoleKeywords],
) -> Compiled:
    """Compile the kernels that measures need, so that later processes do not wait. Kernels that exist already
    are kept.

    Separate processes compile them, as many as there are processors and work for. The kernels of the default
    measures serve all measures that are sums over one ranking, whole and fractional grades, rows in any
    order, one or all threads, and the join of judgments and a run.

    Parameters
    ----------
    measures : one or several of Measure or notation
    scores : "float32", "float64" or "int64", or several
        Types of the scores that will be ranked. Default: float32 and float64.
    folder : path, optional
        Folder for the kernels, for example to copy it into an image, where it may be read-only. Default: the
        cache of this user.
    cpu : str, optional
        LLVM's name of the processor: "x86-64-v3" suits all processors with AVX2. Default: only the processor
        of this machine.
    data : path, or several of them, optional
        Files like those of a job: only the kernels are compiled that one thread needs to read and score them,
        as in the workers of Spark, Dask and Ray; `scores` has no effect then. This takes 17 s of processor
        time where all kernels take 105.
    query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
    nan, rank, ascending, unjudged, grades
        Only with `data`, as in `read_parquet`.

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
        A type of scores or a processor that is not known.

    See Also
    --------
    evaluate : runs kernels that were compiled ahead, and compiles missing ones.

    Examples
    --------
    >>> compile_kernels("nDCG@10", scores="float16")
    Traceback (most recent call last):
    ...
    fastndcg.errors.InputError: scores='float16' is not known; wanted float32, float64, int64
    """
    import json
    import subprocess

    from fastndcg.sources.columns import Roles
    from fastndcg.sources.paths import as_list

    Roles.of(roles, "compile_kernels")
    if roles and data is None:
        raise InputError(f"{next(iter(roles))} names a column of data=, which is not given")
    asked = [str(measure) for measure in as_measures(measures)]
    types = [scores] if isinstance(scores, str) else list(scores)
    for each in types:
        if each not in SCORES:
            raise InputError(f"scores={each!r} is not known; wanted {', '.join(SCORES)}")
    environment = {} if folder is None else {"NUMBA_CACHE_DIR": str(Path(folder).absolute())}
    if cpu is not None:
        environment |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    from fastndcg.kernels.compile import caching

    kept = caching._folder(environment.get("NUMBA_CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", "")))
    if kept is None:
        raise InputError("this user has no folder for a cache; name one, as in folder='kernels'")
    before, started = len(list(kept.rglob("*.nbc"))), time.monotonic()
    paths = None if data is None else [os.fspath(each) for each in as_list(data)]

    def compile_share(share: int) -> subprocess.CompletedProcess[str]:
        work = [types, asked, share, shares] if paths is None else [paths, asked, roles]
        return run_child(
            ["-m", "fastndcg.api.compilation", json.dumps(work)],
            Path(__file__).absolute().parent.parent.parent,
            environment={"FASTNDCG_KERNELS": "compiled", "NUMBA_DISABLE_JIT": "0"} | environment,
            stderr=subprocess.PIPE,
            text=True,
        )

    # there is work for each type with two kinds of grades, and for readers
    shares = 1 if paths is not None else min(processors(), 2 * len(types) + 1)
    with Task("Compiling kernels"):
        ended = list(in_threads(compile_share, range(shares)))
    for done in (each for each in ended if each.returncode):
        lines = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
        if cpu is not None and lines[-1].startswith("LLVM ERROR"):
            raise InputError(
                f"cpu={cpu!r} is no processor that LLVM knows; wanted one as x86-64-v3 or haswell"
            )
        raise FastndcgError(f"the kernels could not be compiled: {lines[-1]}")
    if folder is not None:  # which is made to be copied, and read by other users
        for path in (kept.parent.parent, *kept.parent.parent.rglob("*")):
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    files = list(kept.rglob("*.nbc"))
    n_bytes = sum(file.stat().st_size for file in files)
    return Compiled(kept, len(files) - before, n_bytes, time.monotonic() - started, environment)


def _compile_all(types: Sequence[str], measures: Sequence[str], share: int, shares: int) -> None:
    """Compile one of several shares of the kernels; no kernel of scoring is in two of them."""
    import numpy as np
    import pyarrow as pa

    from fastndcg.api.evaluate import evaluate
    from fastndcg.rankings.rankings import Rankings

    random, n = np.random.default_rng(1), _QUERIES * _LENGTH
    whole = random.integers(0, 4, n).astype(np.uint8)
    numbers = random.permutation(np.repeat(np.arange(_QUERIES), _LENGTH))
    texts = numbers.astype(str)
    scores = {each: random.integers(0, 50, n).astype(each) for each in types}

    def score(grades: Any, kind: str) -> None:
        rankings = Rankings.from_groups([_LENGTH] * _QUERIES, grades, scores[kind])
        for measure in measures:  # each alone: a call compiles no more than it needs
            for threads in (1, 2):
                evaluate(rankings, measure, threads=threads)

    def read() -> None:
        for grades in (whole, whole + 0.5):
            for kind in types:
                # near one another, far apart; of a file's dictionary
                for ids in (numbers, numbers << 40, texts, pa.array(texts).dictionary_encode()):
                    Rankings.from_query_ids(ids, grades, scores[kind])
        columns = {"query_id": texts, "doc_id": np.arange(n).astype(str)}
        pairs = {
            name: pa.table(columns | {name: whole.astype(np.float64)}) for name in ("relevance", "score")
        }
        Rankings.from_qrels_run(pairs["relevance"], pairs["score"])

    scored = [(grades, kind) for kind in types for grades in (whole, whole + 0.5)]
    for each in scored[share::shares]:
        score(*each)
    if share == len(scored) % shares:
        read()


def _compile_for(paths: list[str], measures: Sequence[str], roles: dict[str, Any]) -> None:
    """Read and score the first rows of files, as they are and in another order."""
    import numpy as np
    import pyarrow as pa

    from fastndcg.api.evaluate import evaluate
    from fastndcg.sources.arrow import plain_table, rankings_from_table
    from fastndcg.sources.columns import Roles
    from fastndcg.sources.given import open_tables
    from fastndcg.sources.scan import FileStream

    opened = open_tables(list(paths), 1).choose(Roles(**roles))
    with closing(FileStream(opened, threads=1)._tables(list(opened.types))) as tables:
        table = next((table for _, table in tables if len(table)), None)
    if table is None:
        return
    order = pa.array(np.random.default_rng(1).permutation(len(table)))
    plain = plain_table(table)
    for rows in (table, plain, plain.take(order), table.take(order)):  # as rows come, or are set aside
        rankings = rankings_from_table(rows, opened.columns)
        for measure in measures:
            evaluate(rankings, measure, threads=1)


if __name__ == "__main__":
    import json

    given = json.loads(sys.argv[1])
    _compile_for(*given) if len(given) == 3 else _compile_all(*given)
