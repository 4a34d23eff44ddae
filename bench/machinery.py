"""What machinery is worth: this package's parser of lines, quartiles and private Numba, beside what replaces it.

Processor seconds of this process, or of a child, the least of several runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import fastndcg as fn
from bench.process import python
from bench.record import Row, beside
from bench.timing import Time, take_turns

_LINES = 500_000
_COMPILE = """
import resource, sys
if sys.argv[1] == "public":
    sys.path.insert(0, "tests")
    import public_numba
import numpy as np, fastndcg as fn
g = np.random.default_rng(0)
began = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
fn.evaluate(fn.Rankings.from_groups(np.full(300, 100), g.integers(0, 4, 30_000), g.random(30_000)), "nDCG@10")
from fastndcg.compiled.compile import jit
import json
print(json.dumps([jit.private is None, sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - began]))
"""


def least(work: Callable[[], object], times: int = 5) -> Time:
    return take_turns({"": work}, least=times, most=times)[""]


def lines() -> Row:
    import pytrec_eval

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, scores = Path(folder, "run"), rng.random(_LINES)
        path.write_text(
            "".join(f"{i // 100} Q0 doc{i % 1000} {i % 100} {scores[i]:.6f} t\n" for i in range(_LINES))
        )

        def by_pytrec_eval() -> object:
            with path.open() as file:
                return pytrec_eval.parse_run(file)

        from fastndcg.sources.sides import text_side

        own = least(lambda: text_side(path, "score", 1))
        return beside("machinery", "lines", "pytrec_eval", "s", own, least(by_pytrec_eval, 3), wants="more")


def quartiles() -> Row:
    values = np.random.default_rng(0).random(1_000_000)
    rankings = fn.Rankings.from_groups(np.ones(1_000_000, np.int64), np.ones(1_000_000, np.uint8), values)
    numpy = least(
        lambda: (np.quantile(values, [0.25, 0.5, 0.75]), values.std(ddof=1), values.min(), values.max())
    )
    own = least(lambda: fn.evaluate(rankings, ["NumRet"]).summary())
    whole = least(lambda: fn.evaluate(rankings, ["NumRet"]))
    alone = Time(*(each - less for each, less in zip(own, whole, strict=True)))
    return beside("machinery", "quartiles and spread of 1 M queries", "NumPy", "s", alone, numpy)


def private_numba() -> Row:
    found = {}
    for way in ("private", "public"):
        with tempfile.TemporaryDirectory() as cache:
            code = ("-c", _COMPILE, way)
            (found[way],) = python(
                *code, environment={"NUMBA_CACHE_DIR": cache, "FASTNDCG_KERNELS": "compiled"}
            )
    assert [found[way][0] for way in ("public", "private")] == [True, False]
    times = [Time(found[way][1], found[way][1]) for way in ("public", "private")]
    return beside("machinery", "first compile without private parts of Numba", "with them", "s", *times)


def rows(*, quick: bool) -> Iterator[Row]:
    for work in (lines, quartiles, *(() if quick else (private_numba,))):
        yield work()
