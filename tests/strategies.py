"""Hypothesis strategies: ragged, heavily tied rankings in every dtype and layout, and measures with every parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import oracle
from hypothesis import strategies as st

import fastndcg as fn

GRADES = (0, 1, 2, 3, 4)
TENTHS = (0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 1.1, 2.5)  # few of them, and their sums, are exact
GRADE_DTYPES = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    ">i4",
    ">f8",
)
SCORE_DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    ">i8",
    ">f4",
    ">f8",
)


# ---- rankings ----


@dataclass
class Ragged:
    """Columns of a `Rankings`, and the same for the oracle."""

    lengths: list[int]
    relevance: np.ndarray
    scores: np.ndarray
    is_judged: np.ndarray | None = None
    pool_lengths: list[int] | None = None
    pool_relevance: np.ndarray | None = None
    weight: list[float] | None = None
    note: str = field(default="", compare=False)

    @property
    def offsets(self) -> list[int]:
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)]).astype(int).tolist()

    @property
    def pool(self) -> tuple[list[int], np.ndarray] | None:
        if self.pool_lengths is None or self.pool_relevance is None:
            return None
        return [0, *np.cumsum(self.pool_lengths, dtype=np.int64).tolist()], self.pool_relevance

    def rankings(self, **columns: Any) -> fn.Rankings:
        columns = {"judged": self.pool, "is_judged": self.is_judged, "weight": self.weight} | columns
        return fn.Rankings.from_offsets(self.offsets, self.relevance, self.scores, **columns)

    def queries(self) -> list[oracle.Query]:
        found = []
        relevance, scores = self.relevance.tolist(), self.scores.tolist()
        flags = None if self.is_judged is None else self.is_judged.tolist()
        offsets, pool = self.offsets, self.pool
        for query in range(len(self.lengths)):
            rows = slice(offsets[query], offsets[query + 1])
            judged = None if pool is None else pool[1][pool[0][query] : pool[0][query + 1]].tolist()
            found.append(
                oracle.Query(relevance[rows], scores[rows], None if flags is None else flags[rows], judged)
            )
        return found


def in_layout(values: np.ndarray, layout: str) -> np.ndarray:
    """The same values, read-only, or with gaps between them, or backwards in memory."""
    if layout == "read-only":
        values = values.copy()
        values.flags.writeable = False
    elif layout == "strided":
        wide = np.zeros(2 * len(values), values.dtype)
        wide[::2] = values
        values = wide[::2]
    elif layout == "reversed":
        values = values[::-1].copy()[::-1]
    return values


layouts = st.sampled_from(["plain", "read-only", "strided", "reversed"])


@st.composite
def score_values(draw: st.DrawFn, size: int, dtypes: Sequence[str] = SCORE_DTYPES) -> np.ndarray:
    """Few distinct values, so that most documents are tied, and values that a careless cast or negation confuses."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "b":
        alphabet: list[Any] = [False, True]
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        edges = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1]
        if limits.max > 2**54:
            edges += [2**53, 2**53 + 1, 2**53 + 2]
        alphabet = draw(st.sampled_from([[0, 1, 2], edges]))
    else:
        near_one = [
            1.0,
            float(np.nextafter(dtype.type(1), dtype.type(2))),
            float(np.nextafter(dtype.type(1), dtype.type(0))),
        ]
        alphabet = draw(
            st.sampled_from(
                [[0.0, 0.5, 1.0], [0.0, -0.0, -1.5, math.inf, -math.inf], near_one, [0.1, 0.2, 0.3, -0.1]]
            )
        )
    chosen = draw(st.lists(st.sampled_from(alphabet), min_size=size, max_size=size))
    return in_layout(np.array(chosen, dtype=dtype), draw(layouts))


@st.composite
def grade_values(draw: st.DrawFn, size: int, dtype: np.dtype, alphabet: Sequence[float]) -> np.ndarray:
    chosen = draw(st.lists(st.sampled_from(list(alphabet)), min_size=size, max_size=size))
    return in_layout(np.array(chosen, dtype=dtype), draw(layouts))


@st.composite
def ragged(
    draw: st.DrawFn,
    *,
    longest: int = 6,
    most_queries: int = 4,
    continuous: bool | None = None,
    grades: Sequence[float] = GRADES,
    grade_dtypes: Sequence[str] = GRADE_DTYPES,
    score_dtypes: Sequence[str] = SCORE_DTYPES,
    judgments: bool = True,
) -> Ragged:
    """Queries of 0 to `longest` documents; pools hold every judged document that was scored, and some that were not."""
    lengths = draw(st.lists(st.integers(0, longest), min_size=0, max_size=most_queries))
    size = sum(lengths)
    if continuous is None:
        continuous = draw(st.booleans())
    dtype = np.dtype(
        draw(
            st.sampled_from(
                [name for name in grade_dtypes if not continuous or np.dtype(name).kind == "f"] or ["float64"]
            )
        )
    )
    alphabet = TENTHS if continuous else grades
    if dtype.kind == "u":
        alphabet = [grade for grade in alphabet if grade >= 0]
    relevance = draw(grade_values(size, dtype, alphabet))
    scores = draw(score_values(size, score_dtypes))
    table = Ragged(lengths, relevance, scores)
    if judgments and draw(st.booleans()):
        table.is_judged = np.array(
            draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=np.bool_
        )
    if judgments and draw(st.booleans()):
        table.pool_lengths, pool = [], []
        for query in table.queries():
            judged = query.judged_grades() + draw(st.lists(st.sampled_from(list(alphabet)), max_size=4))
            pool += judged
            table.pool_lengths.append(len(judged))
        table.pool_relevance = np.array(pool, dtype=draw(st.sampled_from([dtype, np.dtype("float64")])))
    return table


def long_ragged(
    seed: int,
    lengths: Sequence[int],
    *,
    ties: int,
    continuous: bool,
    score_dtype: str = "float32",
    pool: bool = False,
) -> Ragged:
    """Long lists with about `ties` documents on each score."""
    rng = np.random.default_rng(seed)
    size = sum(lengths)
    scores = np.concatenate([rng.integers(0, max(n // ties, 1), n) for n in lengths] or [np.empty(0)]).astype(
        score_dtype
    )
    if continuous:
        relevance = np.where(rng.random(size) < 0.5, 0.0, rng.choice([0.1, 0.3, 0.7, 1.9, 2.6, 3.3], size))
    else:
        relevance = rng.choice(np.arange(5, dtype=np.uint8), size, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    table = Ragged(list(lengths), relevance, scores)
    if pool:
        table.is_judged = rng.random(size) < 0.8
        judged = [
            query.judged_grades() + rng.choice(relevance if size else [1], 5).tolist()
            for query in table.queries()
        ]
        table.pool_lengths = [len(grades) for grades in judged]
        table.pool_relevance = np.array(
            [grade for grades in judged for grade in grades], dtype=relevance.dtype
        )
    return table


# ---- measures ----


def cubed(grade: float) -> float:
    return grade**3 / 7


def square_root(rank: int) -> float:
    return rank**-0.5


def _steps(rank: int) -> float:
    return 1.0 if rank <= 2 else 0.25


COARSE_GAINS: tuple[Any, ...] = (
    [0, 1, 3, 7, 15],
    [0.0, 0.1, 0.3, 0.6, 0.7],
    [0, 5, 1, 1, 2.5],
    {1: 0.1, 2: 0.2, 3: 0.7, 4: 0.9},
    {0: 1, 1: 2, 2: 0, 3: 8, 4: 8},
)
ANY_GAINS: tuple[Any, ...] = ("linear", "exp2", "binary", cubed, math.sqrt)
DISCOUNTS: tuple[Any, ...] = (
    "log2",
    "jarvelin",
    "reciprocal",
    "ln",
    1.5,
    10.0,
    [1 / (1 + i) ** 2 for i in range(64)],
    square_root,
    _steps,
)
OVERRIDES: tuple[Any, ...] = ({2: 7}, {1: 0.3, 3: 2})
TIES = ("average", "input", "worst", "best")
IDEALS = ("judged", "scored", "returned", "full")
EMPTIES: tuple[Any, ...] = (0.0, 1.0, 0.5, "nan", "skip")

PARAMETERS: dict[str, tuple[str, ...]] = {
    "nDCG": ("gain", "discount", "ties", "ideal", "empty", "judged_only", "rel", "unjudged"),
    "DCG": ("gain", "discount", "ties", "empty", "judged_only", "rel", "unjudged"),
    "IDCG": ("gain", "discount", "ties", "ideal", "empty", "judged_only", "rel", "unjudged"),
    "CG": ("gain", "ties", "empty", "judged_only", "rel", "unjudged"),
    "NumRet": ("ties", "judged_only", "rel", "unjudged"),
}


@dataclass(frozen=True)
class Asked:
    """A measure by its words: for this package, and for the oracle."""

    name: str
    cutoff: int | None
    parameters: tuple[tuple[str, Any], ...]

    @property
    def measure(self) -> fn.Measure:
        measure = getattr(fn, self.name)(**dict(self.parameters))
        return measure if self.cutoff is None else measure @ self.cutoff

    def expected(self, queries: Sequence[oracle.Query]) -> list[float]:
        return [oracle.score(self.name, query, self.cutoff, **dict(self.parameters)) for query in queries]


@st.composite
def asked(
    draw: st.DrawFn,
    *,
    coarse: bool = True,
    names: Sequence[str] = tuple(PARAMETERS),
    cutoffs: Sequence[int | None] = (None, 1, 2, 3, 4, 10),
) -> Asked:
    """A measure with any parameters. `coarse`: grades are 0 to 4, so that gains listed by grade can be asked for."""
    name = draw(st.sampled_from(list(names)))
    gains = [*ANY_GAINS, *(COARSE_GAINS if coarse else ())]
    values: dict[str, st.SearchStrategy[Any]] = {
        "gain": st.sampled_from(gains),
        "discount": st.sampled_from(DISCOUNTS),
        "ties": st.sampled_from(TIES),
        "ideal": st.sampled_from(IDEALS),
        "empty": st.sampled_from(EMPTIES),
        "judged_only": st.booleans(),
        "rel": st.sampled_from([None, 1, 2, 0.25]),
        "unjudged": st.sampled_from([None, 0, 1, 3]),
    }
    chosen = {parameter: draw(values[parameter]) for parameter in PARAMETERS[name] if draw(st.booleans())}
    if chosen.get("judged_only"):
        chosen.pop("unjudged", None)  # what is dropped has no grade
    if "gain" in PARAMETERS[name] and draw(st.integers(0, 7)) == 0:
        chosen.pop("gain", None)
        chosen["gains"] = draw(st.sampled_from(OVERRIDES))
    return Asked(name, draw(st.sampled_from(list(cutoffs))), tuple(chosen.items()))
