"""Gusts for `scripts.storm`: draw random queries and measures, reduce them, and store them in files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import bulk
import numpy as np
import numpy.typing as npt
import strategies as ours
from strategies import Asked, Ragged

from fastndcg.measures import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Array = npt.NDArray[Any]
Random = np.random.Generator

EDGES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 18, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 127, 128, 129)
# the number of queries of a gust, and a function that draws their lengths
REGIMES: dict[str, tuple[int, Callable[[Random, int], Array]]] = {
    "rush": (60000, lambda rng, n: rng.integers(0, int(rng.choice([4, 9, 12])), n)),
    "tiny": (4000, lambda rng, n: rng.integers(0, 6, n)),
    "short": (3000, lambda rng, n: rng.integers(0, 41, n)),
    "edges": (800, lambda rng, n: rng.choice(EDGES, n)),
    "one edge": (500, lambda rng, n: rng.choice(EDGES) + rng.integers(-1, 2, n).clip(0)),
    "hundreds": (60, lambda rng, n: rng.choice((255, 256, 257, 300, 511, 512, 513, 700), n)),
    "thousands": (8, lambda rng, n: rng.choice((1023, 1024, 1025, 2048, 2049, 8191, 8192, 8193), n)),
    "mixed": (250, lambda rng, n: np.where(rng.random(n) < 0.02, 1030, rng.integers(0, 70, n))),
}
OFTEN = (
    "rush",
    "rush",
    "tiny",
    "short",
    "short",
    "edges",
    "one edge",
    "hundreds",
    "thousands",
    "mixed",
    "crossed",
    "crossed",
)
# grades, and the dtypes that hold them
GRADES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "levels": ((0, 1, 2, 3, 4), ours.GRADE_DTYPES),
    "two": ((0, 1), ("bool", *ours.GRADE_DTYPES)),
    "signed": ((-2, -1, 0, 1, 2), ("int8", "int16", "int64", "float32", "float64")),
    "all bytes": (tuple(range(256)), ("uint8", "int32", "float32", "float64")),
    "255 levels": (tuple(range(254, -1, -1)), ("uint8", "int16", "float64")),
    "tenths": (ours.TENTHS, ("float32", "float64")),
    "quarters": ((0, 0.25, 0.5, 1, 2.75, 4), ("float16", "float32", "float64", ">f8")),
    "far apart": ((0, 1, 3, 1000, 70000), ("int32", "uint32", "float32", "float64")),
}
CUTOFFS = (1, 2, 3, 4, 5, 10, 15, 16, 17, 20, 31, 32, 33, 64, 100, 128, 255, 257, 1000, 1024, 9000)
VALUES: dict[str, tuple[Any, ...]] = {
    "gain": ("linear", "exp2", "binary", *ours.COARSE_GAINS, ours.cubed),
    "discount": tuple(one for one in ours.DISCOUNTS if not isinstance(one, list)),
    "ties": ours.TIES, "empty": ours.EMPTIES, "judged_only": (True,), "unjudged": (0, 1, 3), "relative": (True,),
    "ideal": (*ours.IDEALS, "judged_uncut", "judged_returned"), "rel": (1, 2, 0.25, 3), "recall": (0, 0.1, 0.5, 0.75, 1.0),
    "score_above": (0, 1, -1), "beta": (0.5, 2.0, 3), "p": (0.5, 0.8, 0.95), "min_rel": (0, 1), "max_rel": (4, 5, 8.5),
}  # fmt: skip
OF_POOL = ("pool_relevance", "pool_intents")
COLUMNS = (
    "relevance", "scores", "is_judged", "propensity", "intents", "doc_ids", "probabilities", *OF_POOL,
)  # fmt: skip
FUNCTIONS = {one.__name__: one for one in (ours.cubed, ours.square_root, ours._steps)}
NAMES = (*bulk.LINEAR, *bulk.OTHERS)


MOST_OF_INTENTS, MOST_INTENT_GRADES = 150, 1_000_000  # documents of a list, and of a table times its intents


class Gust(NamedTuple):
    """Queries and measures."""

    table: Ragged
    asked: list[Asked]


# ---- random gusts ----


def draw(rng: Random, regime: str | None = None, only: Sequence[str] = ()) -> Gust:
    """Draw queries and measures. If `only` is not empty, draw only its measures."""
    regime = regime or OFTEN[rng.integers(len(OFTEN) - 2 if only else len(OFTEN))]
    if regime == "crossed":  # every parameter of every measure, and propensities
        seed = int(rng.integers(1 << 31))
        table = ours.crossed_table(seed, longest=int(rng.choice([6, 140])))
        return Gust(table, each_once(ours.crossed_measures(seed, table)))
    n, lengths_of = REGIMES[regime]
    lengths = lengths_of(rng, int(rng.integers(n // 4, n)) + 1)
    kind = list(GRADES)[rng.integers(len(GRADES))]
    alphabet, dtypes = GRADES[kind]
    dtype = np.dtype(dtypes[rng.integers(len(dtypes))])
    some = [grade for grade in alphabet if grade >= 0 or dtype.kind != "u"]
    shares = rng.dirichlet(np.full(len(some), 0.5)) if rng.random() < 0.7 else None
    size = int(lengths.sum())
    relevance = rng.choice(some, size, p=shares).astype(dtype)
    table = Ragged(lengths.tolist(), relevance, draw_scores(rng, lengths), note=kind)
    if rng.random() < 0.5:
        table.is_judged = rng.random(size) < rng.choice([0.0, 0.5, 0.9, 1.0])
    if rng.random() < 0.5:
        flags = np.ones(size, np.bool_) if table.is_judged is None else table.is_judged
        more = rng.integers(0, int(rng.choice([1, 3, 20])), len(lengths))
        query = np.concatenate(
            [np.repeat(np.arange(len(lengths)), lengths)[flags], np.repeat(np.arange(len(lengths)), more)]
        )
        grades = np.concatenate([relevance[flags], rng.choice(some, int(more.sum())).astype(dtype)])
        order = np.argsort(query, kind="stable")
        table.pool_lengths = np.bincount(query, minlength=len(lengths)).tolist()
        table.pool_relevance = grades[order].astype(rng.choice([dtype.str, "f8"]))
    if rng.random() < 0.3:
        table.weight = rng.random(len(lengths)).round(2).tolist()
    names = ["nDCG", "nDCG", "nDCG", "DCG", "DCG", "DCG", *rng.choice(NAMES, 4).tolist(), "infAP"]
    of_intents = [name for name in only or ours.OF_INTENTS if name in ours.OF_INTENTS]
    chance = 0.4 if not only else 1.0 if of_intents else 0.0
    if max(lengths, default=0) <= MOST_OF_INTENTS and rng.random() < chance:
        ours.add_intents(rng, table, most=MOST_INTENT_GRADES // (size + 1) + 1)
        names = names[5:8]
    if only:
        names = [name for name in only if name not in of_intents for _ in range(3)]
    asked = [draw_measure(rng, name, kind) for name in names]
    return Gust(table, each_once([*asked, *draw_of_intents(rng, table, of_intents)]))


def draw_of_intents(rng: Random, table: Ragged, names: Sequence[str]) -> list[Asked]:
    if table.intents is None:
        return []
    longest = max([*table.lengths, *(table.pool_lengths or [])], default=0)
    drawn = (ours.any_measure(rng, str(rng.choice(names)), table, longest) for _ in range(20))
    return [one for one in drawn if one.suits(table)][:6]


def each_once(asked: list[Asked]) -> list[Asked]:
    return [*{one.measure: one for one in asked}.values()]


def draw_scores(rng: Random, lengths: Array) -> Array:
    dtype = np.dtype(ours.SCORE_DTYPES[rng.integers(len(ours.SCORE_DTYPES))])
    size = int(lengths.sum())
    spread = np.repeat(lengths, lengths)
    how = rng.integers(5)
    if how == 0:
        scores: Array = np.concatenate([rng.permutation(n) for n in lengths] or [np.empty(0, int)])
    elif how == 1:
        scores = (rng.random(size) * rng.choice([1, 2, 4])).astype(int)
    elif how == 2:
        scores = (rng.random(size) * (spread / rng.choice([1, 2, 8]) + 1)).astype(int)
    elif dtype.kind == "f":
        scores = (
            rng.choice([0.0, -0.0, 1.5, np.inf, -np.inf, 0.1, 1e-30], size)
            if how == 3
            else rng.standard_normal(size)
        )
    elif dtype.kind == "b":
        scores = rng.integers(0, 2, size)
    else:
        edges = np.iinfo(dtype)
        return rng.choice(np.array([edges.min, edges.min + 1, 0, 1, edges.max - 1, edges.max], dtype), size)
    if dtype.kind in "biu":
        scores = scores % (2 if dtype.kind == "b" else min(np.iinfo(dtype).max, 1 << 60))
    return scores.astype(dtype)


def draw_measure(rng: Random, name: str, kind: str) -> Asked:
    definition, words = DEFINITIONS[name], dict[str, Any]()
    needed = {"SDCG": ("max_rel",), "IPrec": ("recall",)}.get(name, ())
    for parameter in definition.parameters:
        values = VALUES.get(parameter.name)
        if parameter.name in ("denominator", "of", "rounding"):
            values = tuple(word.strip("'") for word, _ in parameter.values if word != "'none'")
        if values is not None and (parameter.name in needed or rng.random() < 0.35):
            words[parameter.name] = values[rng.integers(len(values))]
    if name == "ERR":
        words["max_rel"] = 8 if kind in ("all bytes", "255 levels", "far apart") else 4
    if words.get("judged_only"):
        words.pop("unjudged", None)  # unjudged documents are dropped, so a grade for them is refused
    if not isinstance(words.get("gain", ""), str) and kind not in ("levels", "two"):
        words["gain"] = "linear"  # other gains are for grades that do not occur here
    if kind in ("all bytes", "255 levels", "far apart") and words.get("gain") == "exp2":
        words["gain"] = "linear"
    if kind == "signed" and "gain" in definition.worth:
        words["rel"] = max(words.get("rel", 0), 0.25)
    if "gain" not in words and "rel" not in words and "gain" in definition.worth and rng.random() < 0.1:
        words["gains"] = ours.OVERRIDES[rng.integers(len(ours.OVERRIDES))]
    cutoff = int(rng.choice(CUTOFFS)) if definition.cut == "rank" and rng.random() < 0.8 else None
    return Asked(name, cutoff, tuple(words.items()))


# ---- reduction ----


def shrink_items(items: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Remove items as long as the rest still fails."""
    size = len(items)
    while size:
        size = (size + 1) // 2 if size > 1 else 0
        first = 0
        while size and first < len(items):
            less = items[:first] + items[first + size :]
            if fails(less):
                items = less
            else:
                first += size
        if size == 1:
            break
    return items


def queries_of(table: Ragged) -> list[Any]:
    """For each query, the rows of its documents, the rows of its pool, and its number."""
    offsets, pool = table.offsets, [0] * (len(table.lengths) + 1) if table.pool is None else table.pool[0]
    return [
        ([*range(offsets[query], offsets[query + 1])], [*range(pool[query], pool[query + 1])], query)
        for query in range(len(table.lengths))
    ]


def join_queries(queries: list[Any], table: Ragged) -> Ragged:
    """Return the table of these queries, which may have lost documents."""
    lengths, pools = [len(own) for own, _, _ in queries], [len(pool) for _, pool, _ in queries]
    rows = np.array([row for own, _, _ in queries for row in own], np.int64)
    pooled = np.array([row for _, pool, _ in queries for row in pool], np.int64)
    numbers = np.array([number for _, _, number in queries], np.int64)
    return take_rows(table, lengths, rows, None if table.pool_lengths is None else pools, pooled, numbers)


def take_rows(
    table: Ragged, lengths: list[int], rows: Array, pool_lengths: list[int] | None, pooled: Array, numbers: Array
) -> Ragged:  # fmt: skip
    """Return a table of these rows, these rows of the pool, and the queries of these numbers."""
    found = Ragged(lengths, table.relevance[rows], table.scores[rows], pool_lengths=pool_lengths)
    for name in COLUMNS:
        column, places = getattr(table, name), pooled if name in OF_POOL else rows
        if column is not None:
            setattr(found, name, column[numbers if name == "probabilities" else places])
    found.weight = None if table.weight is None else [table.weight[number] for number in numbers]
    return found


# ---- files ----


def write_json(gust: Gust, check: str, wrong: str) -> str:
    def plain(value: Any) -> Any:
        if callable(value):
            return {"function": value.__name__}
        return {"mapping": [*value.items()]} if isinstance(value, dict) else value

    def shown(column: Any) -> Any:
        if column is None:
            return None
        mask = [column.mask.tolist()] if np.ma.isMaskedArray(column) else []
        return (column.dtype.str, np.asarray(column).tolist(), *mask)

    return json.dumps({
        "check": check, "wrong": wrong, "measures": [str(one.measure) for one in gust.asked],
        "asked": [(one.name, one.cutoff, [(word, plain(value)) for word, value in one.parameters]) for one in gust.asked],
        "lists": {name: getattr(gust.table, name) for name in ("lengths", "pool_lengths", "weight")},
        "arrays": {name: shown(getattr(gust.table, name)) for name in COLUMNS},
    })  # fmt: skip


def read_json(path: Path) -> tuple[Gust, str]:
    def value_of(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return FUNCTIONS[value["function"]] if "function" in value else dict(value["mapping"])

    data = json.loads(path.read_text())
    arrays: dict[str, Any] = {}
    for name, (kind, values, *mask) in ((name, one) for name, one in data["arrays"].items() if one):
        plain = np.array(values, kind)
        width = len(plain), -1 if len(plain) else 0
        arrays[name] = np.ma.masked_array(plain.reshape(width), np.reshape(mask[0], width)) if mask else plain
    asked = [
        Asked(name, cutoff, tuple((word, value_of(value)) for word, value in words))
        for name, cutoff, words in data["asked"]
    ]
    return Gust(Ragged(**data["lists"], **arrays), asked), data["check"]
