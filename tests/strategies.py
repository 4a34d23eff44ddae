"""Ragged, heavily tied rankings in every dtype and layout, and measures with every parameter, at random by number
(`crossed_table`, `crossed_measures`); and what has to hold of their values (`difference`, `broken_law`).
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import oracle

import fastndcg as fn
from fastndcg.measures import DEFINITIONS
from fastndcg.sources.streams import TableStream
from fastndcg.tables.intents import IntentGrades

GRADES = (0, 1, 2, 3, 4)
TENTHS = (0.0, 0.1, 0.2, 0.3, 0.6, 0.7, 1.1, 2.5)  # few of them, and their sums, are exact
GRADE_DTYPES = (
    "uint8", "int8", "uint16", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", ">i4", ">f8",
)  # fmt: skip
SCORE_DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "uint64", "float16", "float32", "float64", ">i8", ">f4", ">f8",
)  # fmt: skip


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
    propensity: np.ndarray | None = None
    intents: np.ma.MaskedArray | None = None  # (n_docs, n_intents): grades, masked where a document has none
    pool_intents: np.ma.MaskedArray | None = None
    probabilities: np.ndarray | None = None  # (n_queries, n_intents)
    doc_ids: np.ndarray | None = None
    note: str = field(default="", compare=False)

    @property
    def offsets(self):
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)]).astype(int).tolist()

    @property
    def pool(self):
        if self.pool_lengths is None or self.pool_relevance is None:
            return None
        return [0, *np.cumsum(self.pool_lengths, dtype=np.int64).tolist()], self.pool_relevance

    def rankings(self, **columns):
        given = {name: getattr(self, name) for name in ("is_judged", "weight", "propensity", "doc_ids")}
        if self.intents is not None:
            given["intents"] = entries_of(self.intents)
            given["judged_intents"] = None if self.pool_intents is None else entries_of(self.pool_intents)
            given["intent_probabilities"] = None if self.probabilities is None else [*self.probabilities]
        columns = {"judged": self.pool} | given | columns
        return fn.Rankings.from_offsets(self.offsets, self.relevance, self.scores, **columns)

    def queries(self):
        found = []
        relevance, scores = self.relevance.tolist(), self.scores.tolist()
        flags = None if self.is_judged is None else self.is_judged.tolist()
        chances = None if self.propensity is None else self.propensity.tolist()
        offsets, pool = self.offsets, self.pool
        for query in range(len(self.lengths)):
            rows = slice(offsets[query], offsets[query + 1])
            judged = None if pool is None else pool[1][pool[0][query] : pool[0][query + 1]].tolist()
            found.append(
                oracle.Query(
                    relevance[rows],
                    scores[rows],
                    None if flags is None else flags[rows],
                    judged,
                    None if chances is None else chances[rows],
                )
            )
        return found

    def intent_queries(self):
        if self.intents is None:
            return []
        documents, pooled = mappings_of(self.intents), mappings_of(self.pool_intents)
        scores, offsets, pool, found = self.scores.tolist(), self.offsets, self.pool, []
        flags = None if self.is_judged is None else self.is_judged.tolist()
        for query in range(len(self.lengths)):
            rows = slice(offsets[query], offsets[query + 1])
            own = None if pool is None else pooled[pool[0][query] : pool[0][query + 1]]
            if own is None and self.doc_ids is not None:  # the last id goes first
                kept = [row for row in range(*rows.indices(offsets[-1])) if flags is None or flags[row]]
                own = [
                    documents[row] for row in sorted(kept, key=lambda row: self.doc_ids[row], reverse=True)
                ]
            chances = None if self.probabilities is None else self.probabilities[query].tolist()
            shown = None if flags is None else flags[rows]
            found.append(oracle.IntentQuery(documents[rows], scores[rows], shown, own, chances))
        return found

    def of_queries(self, queries, rng=None):
        """These queries; with `rng` documents and pools in another order within each, but for pools of intents."""
        rows = _rows_of(self.lengths, queries, rng)
        pooled = _rows_of(self.pool_lengths, queries, rng if self.pool_intents is None else None)
        some = {name: [getattr(self, name)[query] for query in queries]
                for name in ("lengths", "pool_lengths", "weight") if getattr(self, name) is not None}  # fmt: skip
        places = dict.fromkeys(("relevance", "scores", "is_judged", "propensity", "intents", "doc_ids"), rows)
        places |= {"pool_relevance": pooled, "pool_intents": pooled, "probabilities": queries}
        for name, taken in places.items():
            column = getattr(self, name)
            some[name] = None if column is None else column[taken]
        return replace(self, **some)

    @property
    def longest(self):
        """Documents of the longest list or ideal, were all unjudged documents judged."""
        lengths = [
            max(len(query.grades), len(oracle.with_assumed_grade(query, 0).judged_grades()))
            for query in self.queries()
        ]
        return max(lengths, default=0)

    def judged_grades(self):
        return sorted({grade for query in self.queries() for grade in query.judged_grades()})

    def intent_grades(self):
        sides = [side.compressed() for side in (self.intents, self.pool_intents) if side is not None]
        return np.unique(np.concatenate(sides)).tolist() if sides else []


def _rows_of(lengths, queries, rng):
    """The rows of these queries, at random within each where there is a generator."""
    if lengths is None:
        return None
    stops = np.cumsum(lengths, dtype=np.int64)
    parts = [np.arange(stops[query] - lengths[query], stops[query]) for query in queries]
    return np.concatenate(
        [*(part if rng is None else rng.permutation(part) for part in parts), np.empty(0, np.int64)]
    )


def entries_of(grades):
    """A matrix of intent grades as `IntentGrades`, or as it is where none is masked."""
    if not np.ma.getmaskarray(grades).any() and grades.shape[1]:
        return grades.data
    there = ~np.ma.getmaskarray(grades)
    offsets = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.int64)
    return IntentGrades(offsets, np.nonzero(there)[1], grades.data[there])


def mappings_of(grades):
    rows = [] if grades is None else grades.tolist()  # None where masked
    return [{t: grade for t, grade in enumerate(row) if grade is not None} for row in rows]


def in_layout(values, layout):
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


def recast(table, rng):
    """The same grades, and scores of the same order with the same ties, in other dtypes and layouts in memory.

    Scores are values that a careless cast or negation confuses: neighbours, ends of a dtype, zeros of both signs.
    """
    distinct, codes = np.unique(table.scores, return_inverse=True)
    values = [
        edges for dtype in SCORE_DTYPES if len(edges := _edges_of(dtype, len(distinct))) >= len(distinct)
    ]
    values = values[rng.integers(len(values))]
    chosen = np.sort(rng.choice(values, len(distinct), replace=False))
    if len(distinct) and rng.random() < 0.5:
        chosen[0] = values[0]  # the lowest there is, with which kernels fill up short lists
    scores = chosen[codes]
    if scores.dtype.kind == "f":
        scores = np.where((scores == 0) & (rng.random(len(scores)) < 0.5), -scores, scores).astype(
            chosen.dtype
        )
    pool = None if table.pool_relevance is None else _in_another_dtype(table.pool_relevance, rng)
    return replace(
        table, scores=_in_another_layout(scores, rng), relevance=_in_another_dtype(table.relevance, rng), pool_relevance=pool
    )  # fmt: skip


def _edges_of(name, n):
    """At least n distinct values of a dtype that holds so many, in order."""
    dtype = np.dtype(name)
    if dtype.kind == "f":
        one = dtype.type(1)
        near = [np.nextafter(one, dtype.type(side)) for side in (0, 2)]
        more = [
            -np.inf,
            -1.5,
            np.finfo(dtype).smallest_subnormal,
            0.1,
            0.2,
            0.3,
            np.inf,
            *range(min(n, 2000)),
        ]
        return np.unique(np.array([*near, *more, *(range(n) if dtype.itemsize > 2 else ())], dtype))
    if dtype.kind == "b":
        return np.array([False, True])
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    whole = {
        least,
        least + 1,
        most - 1,
        most,
        *range(-(2**53) - 2, 3 - 2**53),
        *range(2**53 - 2, 2**53 + 3),
        *range(n),
    }
    return np.array(sorted(value for value in whole if least <= value <= most), dtype)


def _in_another_dtype(grades, rng):
    with np.errstate(all="ignore"):
        kinds = [
            kind
            for kind in GRADE_DTYPES
            if np.array_equal(grades.astype(kind).astype("f8"), grades.astype("f8"))
        ]
        return _in_another_layout(grades.astype(kinds[rng.integers(len(kinds))]) if kinds else grades, rng)


def _in_another_layout(values, rng):
    return in_layout(values, ("plain", "read-only", "strided", "reversed")[rng.integers(4)])


# ---- measures ----


def cubed(grade):
    return grade**3 / 7


def share(grade):
    return max(grade, 0) / (1 + abs(grade))


def square_root(rank):
    return rank**-0.5


def _steps(rank):
    return 1.0 if rank <= 2 else 0.25


COARSE_GAINS = (
    [0, 1, 3, 7, 15],
    [0.0, 0.1, 0.3, 0.6, 0.7],
    [0, 5, 1, 1, 2.5],
    {1: 0.1, 2: 0.2, 3: 0.7, 4: 0.9},
    {0: 1, 1: 2, 2: 0, 3: 8, 4: 8},
)
ANY_GAINS = ("linear", "exp2", "binary", cubed, math.sqrt)
DISCOUNTS = (
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
OVERRIDES = ({2: 7}, {1: 0.3, 3: 2})
TIES = ("average", "input", "worst", "best")
IDEALS = ("judged", "scored", "returned", "full")
EMPTIES = (0.0, 1.0, 0.5, "nan", "skip")

# values of the parameters that are not the same for every measure, and of those that only some have
VALUES = {
    "ties": TIES,
    "ideal": (*IDEALS, "judged_uncut", "judged_returned"),
    "empty": EMPTIES,
    "judged_only": (False, True),
    "rel": (1, 2, 0.25, 0, -1),
    "rel or none": (None, 1, 2, 0.25),
    "unjudged": (None, 0, 1, 3, 0.5),
    "discount": DISCOUNTS,
    "beta": (1, 0.5, 2.0, 1e-3, 1e6),
    "p": (0.8, 0.5, 0.95, 0.999, 1e-3),
    "recall": (0.0, 0.1, 0.3, 0.5, 1.0),
    "relative": (False, True),
    "floor": ("zero", "worst"),
    "of": ("first", "best"),
    "score_above": (None, 0, 1, 2.5, -3, 50),
    "rounding": ("up", "nearest"),
    "decay": (0.85, 0, 1, 0.5, 1e-3),
    "stop": (
        "linear",
        "exp2",
        [0, 0.1, 0.5, 0.9, 1],
        [0.2, 0.2, 0, 0.7, 0.6],
        {0: 0.1, 1: 1, 2: 0.3, 3: 0, 4: 0.9},
        {1: 0.25},
        share,
    ),
    "pairs": ("relevant", "graded"),
    "max_fp": (None, 1, 3, 20, 0.05, 0.3, 0.7),
    "ips": (False, True, "snips"),
    "clip": (0.0, 0.1, 1.0),
    "min_rel": (0, 1, -1, 0.5),
    "alpha": (0.5, 0, 1, 0.25, 0.3),
}
NEEDED = {"SDCG": ("max_rel",), "IPrec": ("recall",), "PFound": ("stop",)}  # parameters without a default
OF_INTENTS = tuple(name for name, definition in DEFINITIONS.items() if definition.method == "intents")
OF_QUERIES = tuple(name for name in DEFINITIONS if name not in OF_INTENTS)  # measures of one grade a document


@dataclass(frozen=True)
class Asked:
    """A measure by its words: for this package, and for the oracle."""

    name: str
    cutoff: int | None
    parameters: tuple[tuple[str, Any], ...]

    @property
    def measure(self):
        measure = getattr(fn, self.name)(**dict(self.parameters))
        return measure if self.cutoff is None else measure @ self.cutoff

    def gain(self, grade):
        """What a judged document of this grade is worth; NaN where the measure refuses it."""
        words = dict(self.parameters)
        if words.get("stop", "exp2") != "exp2":
            try:
                chance = oracle.gain_function(words["stop"])(oracle.Document(grade))
            except (KeyError, IndexError, ValueError):
                return math.nan
            return chance if 0 <= chance <= 1 else math.nan
        if self.name == "ERR" or (words.get("max_rel") and self.name in OF_INTENTS):
            return math.nan if grade > words.get("max_rel", 4) else max(grade, 0)
        if self.name not in (*oracle.GRADED, "nDCG_IA") or self.name == "NumRet":
            return 1.0
        try:
            gain = oracle.gain_function(words.get("gain", "linear"), words.get("rel"), words.get("gains"))(
                oracle.Document(grade)
            )
        except (KeyError, IndexError, ValueError, OverflowError):
            return math.nan
        refused = self.name in ("nDCG", "nDCG_IA") and words.get("floor") != "worst"
        refused = gain < 0 and (refused or words.get("ips") == "snips")
        return math.nan if refused or abs(gain) >= 2.0**53 else gain

    def suits(self, table):
        """Whether the measure has a gain for every grade of the table."""
        assumed = dict(self.parameters).get("unjudged")
        grades = table.intent_grades() if self.name in OF_INTENTS else table.judged_grades()
        grades = [*grades, *([] if assumed is None else [assumed])]
        gains = [self.gain(grade) for grade in grades]
        if (
            dict(self.parameters).get("floor") == "worst"
        ):  # few digits are left of the difference of two such rankings
            rising = np.unique(gains)
            if (np.diff(rising) < 1e-3 * np.abs(rising[1:])).any():
                return False
        return not any(map(math.isnan, gains))

    def scale(self, table):
        """What sums that cancel are compared by: the sum of what they are sums of; 0 where nothing cancels."""
        if self.name in OF_INTENTS:
            return 0.0
        gains = [self.gain(grade) for grade in table.judged_grades()]
        if min(gains, default=0) >= 0:  # the worst ranking is taken away from each, and the rest may be small
            return 100.0 if dict(self.parameters).get("floor") == "worst" else 0.0
        return 10 * max(map(abs, gains)) * table.longest

    def expected(self, table):
        if self.name in OF_INTENTS:
            return [self.of_intents(query) for query in table.intent_queries()]
        return [oracle.score(self.name, one, self.cutoff, **dict(self.parameters)) for one in table.queries()]

    def of_intents(self, query):
        if query.pool is None:  # then nothing but their entries says which of two equal gains comes first

            def worthy(document):
                worth = {t: oracle.worth_to_intents(self.name, words)(grade) for t, grade in document.items()}
                return [*sorted((t, -gain) for t, gain in worth.items() if gain), (math.inf, 0.0)]

            words = dict(self.parameters)
            query = query._replace(pool=sorted(query.judged(), key=worthy))
        return oracle.of_intents(self.name, query, self.cutoff, **dict(self.parameters))


# ---- every parameter of every measure, by number ----

# around what the kernels hold together: vectors of 16, lists ranked by comparing, by sorting, side by side;
# bins; few of many
EDGES = (15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)
LONG_EDGES = (1023, 1024, 1025, 4096, 8191, 8192, 8193)  # side by side, or by itself
ALPHABETS = {
    "few": GRADES,
    "tenths": TENTHS,
    "many": tuple(range(40)),
    "negative": (-2, -1, 0, 1, 2),
    "negative tenths": (-1.5, -1, 0, 0.5, 1, 2),
    "bytes": (0, 1, 127, 128, 253, 254),
    "more than bytes": (0, 1, 128, 254, 255, 256),
    "beyond float32": (2**24 - 1, 2**24, 2**24 + 1, 2**24 + 2, 2**24 + 3),
    "far beyond float32": (2**30 + 63, 2**30 + 64, 2**30 + 127, 2**30 + 128),
    "far apart": (0, 1000, 70_000, 2**40),
}
CROSSED_DTYPES = ("uint8", "bool", "int8", "int64", "uint64", "float32", "float64")


def _holds(dtype, grade):
    if dtype.kind == "b":
        return grade in (0, 1)
    if dtype.kind == "f":
        return float(dtype.type(grade)) == grade or grade in TENTHS
    return grade == int(grade) and np.iinfo(dtype).min <= grade <= np.iinfo(dtype).max


def _grades_in(rng, alphabet):
    """A dtype, and those grades of the alphabet that it holds, at least one."""
    dtype = np.dtype(rng.choice(CROSSED_DTYPES))
    held = [grade for grade in alphabet if _holds(dtype, grade)]
    return (dtype, held) if held else _grades_in(rng, alphabet)


def crossed_table(seed, *, longest=6, lengths=None):
    """Queries of lists up to about `longest`, whose grades and pools have dtypes and ranges of their own;
    some with weights, propensities, unjudged documents that hold any grade.

    Long lists have few ties or many; the oracle lists no more orders of those with few than of short ones.
    """
    rng = np.random.default_rng(seed)
    n_queries = int(rng.choice([1, 3, 9, 20] if longest <= 8 else [1, 2, 3]))
    edges = [edge for edge in (*EDGES, *LONG_EDGES) if edge <= longest] or [longest]
    lengths = lengths or [
        int(rng.integers(0, longest + 1)) if longest <= 8 or rng.random() < 0.2 else int(rng.choice(edges))
        for _ in range(n_queries)
    ]
    n_queries = len(lengths)
    size = sum(lengths)
    kind = str(rng.choice(list(ALPHABETS)))
    alphabet = ALPHABETS[kind]
    dtype, held = _grades_in(rng, alphabet)
    relevance = np.array(rng.choice(held, size), dtype)
    few_ties = bool(rng.random() < 0.5)
    scores = np.concatenate([_tied_scores(rng, n, few_ties) for n in lengths] or [np.empty(0)])
    table = Ragged(lengths, relevance, scores.astype(rng.choice(["float32", "float64", "int64", "int16"])))
    if rng.random() < 0.6:
        table.is_judged = rng.random(size) < rng.choice([0.0, 0.3, 0.8, 1.0], p=[0.1, 0.3, 0.5, 0.1])
        if (
            rng.random() < 0.3
        ):  # a grade that no judged document has; 0 or more, since infAP looks at the sign
            unused = np.array([{"f": 1e30, "b": 1}.get(dtype.kind, 0) or np.iinfo(dtype).max], dtype)
            table.relevance = np.where(table.is_judged, table.relevance, unused)
    if rng.random() < 0.6:
        table.pool_lengths, pool = [], []
        judged_grades = table.judged_grades()
        pool_dtype, pool_held = _grades_in(rng, alphabet)
        while not all(_holds(pool_dtype, grade) for grade in judged_grades):
            pool_dtype, pool_held = _grades_in(rng, alphabet)
        for query in table.queries():
            more = rng.choice(pool_held, rng.integers(0, 1 + int(rng.choice([4, longest])))).tolist()
            judged = query.judged_grades() + more
            table.pool_lengths.append(len(judged))
            pool += judged
        table.pool_relevance = np.array(pool, pool_dtype)
    if rng.random() < 0.3:
        table.weight = rng.choice([0.0, 1.0, 0.1, 1e-30, 1e30, 3.0], n_queries).tolist()
    if rng.random() < 0.3:
        table.propensity = rng.choice([1.0, 0.5, 0.3, 0.01], size)
    if longest <= 140:
        add_intents(np.random.default_rng([seed, 2]), table)
    table.note = f"crossed_table({seed}, longest={longest}), {kind}: {dtype}"
    return table


INTENT_ALPHABETS = (GRADES, (0, 1), (-2, -1, 0, 1, 3), TENTHS, (0, 1, 4, 70_000), (1,), (0,))


def add_intents(rng, table, most=70):
    """Grades for each of several intents, of dtypes and scales of their own; some with probabilities, or document ids."""
    n_intents = min(most, int(rng.choice([1, 2, 3, 4, 9, 70], p=[0.1, 0.25, 0.3, 0.2, 0.1, 0.05])))
    dtype, held = _grades_in(rng, INTENT_ALPHABETS[rng.integers(len(INTENT_ALPHABETS))])
    missing = rng.choice([0.0, 0.5, 0.9, 1.0], p=[0.3, 0.4, 0.2, 0.1])

    def drawn(rows, kind):
        grades = np.array(rng.choice(held, (rows, n_intents)), kind)
        return np.ma.masked_array(grades, rng.random(grades.shape) < missing)

    table.intents = drawn(len(table.relevance), dtype)
    if table.pool_relevance is not None:
        table.pool_intents = drawn(len(table.pool_relevance), rng.choice([dtype, np.dtype("float64")]))
        # of some queries what was returned is in the pool, at its top or its bottom
        lengths, place = np.array(table.lengths, np.int64), np.array(table.pool[0])
        query = np.repeat(np.arange(len(lengths)), lengths)
        nth = np.arange(len(query)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        own = (rng.random(len(lengths)) < 0.7)[query] & (nth < np.diff(place)[query])
        own &= True if table.is_judged is None else table.is_judged
        rows, of = np.flatnonzero(own), query[own]
        places = place[of] + nth[own] if rng.random() < 0.5 else place[of + 1] - 1 - nth[own]
        table.pool_intents[places] = table.intents[rows]
    elif rng.random() < 0.5:
        ids = rng.permutation(len(table.relevance))
        table.doc_ids = ids if rng.random() < 0.5 else np.array([f"{one:x}" for one in ids.tolist()], object)
    if rng.random() < 0.5:
        values = rng.choice([0, 0.25, 0.5, 1, 3], (len(table.lengths), n_intents))
        table.probabilities = values if rng.random() < 0.5 else values * rng.random(values.shape)


def _tied_scores(rng, n, few_ties):
    if n <= 8 or not few_ties:
        return rng.integers(0, max(n // int(rng.choice([2, 3, 10, 100])), 2), n).astype(float)
    scores = rng.permutation(n).astype(float)
    for size in (2, 3):  # 12 orders
        some = rng.choice(n, size, replace=False)
        scores[some] = scores[some[0]]
    return scores


def crossed_measures(seed, table, *, names=None, most=8):
    """At most so many measures with any value of each parameter, all of which have a gain for every grade of the table."""
    rng = np.random.default_rng([seed, 1])
    names = names or (OF_QUERIES if table.intents is None else (*OF_QUERIES, *OF_INTENTS, *OF_INTENTS))
    longest, found = table.longest, list[Asked]()
    for _ in range(10 * most):
        asked = any_measure(rng, str(rng.choice(list(names))), table, longest)
        if len(found) < most and asked.suits(table) and _is_listed(asked, table):
            found.append(asked)
    return found


def values_of(name):
    """Each value of each parameter of a measure but its default, which is in most measures that are drawn."""
    parameters = DEFINITIONS[name].parameters
    return [
        (one.name, value) for one in parameters for value in _values_of(name, one) if value != one.default
    ]


def measure_with(rng, table, name, parameter, value):
    """A measure with this value of a parameter and any values of the others; None where it does not suit the table."""
    longest = table.longest
    for _ in range(30):
        asked = any_measure(rng, name, table, longest, {parameter: value})
        found = dict(asked.parameters).get(parameter)
        if (found == value or (isinstance(found, list) and isinstance(value, list))) and asked.suits(table):
            return asked if _is_listed(asked, table) else None
    return None


def _is_listed(asked, table):
    """Whether the oracle has a value: the orders of tied documents are few, or need not be listed."""
    words = dict(asked.parameters)
    if words.get("ties", "average") != "average" and (asked.name != "nDCG_IA" or words["ties"] == "input"):
        return True
    if asked.name in oracle.LINEAR and words.get("ideal") != "returned" and not words.get("ips"):
        return True
    queries = map(oracle.without_unjudged, table.queries()) if words.get("judged_only") else table.queries()
    return all(
        oracle.number_of_orders(query.scores) * len(query.grades) <= 8 * oracle.MOST_ORDERS // 50
        for query in queries
    )


def any_measure(rng, name, table, longest, given=()):
    definition = DEFINITIONS[name]
    cutoffs = [None, 1, 2, 3, 5, 10, 16, 17, 24, 25, 32, 33, 64, 128, longest or 1, longest + 1, 1000]
    cutoff = cutoffs[rng.integers(len(cutoffs))] if definition.cut == "rank" else None
    chosen = {}
    for parameter in definition.parameters:
        if parameter.name not in NEEDED.get(name, ()) and rng.random() < 0.5:
            continue
        values = _values_of(name, parameter)
        chosen[parameter.name] = values[rng.integers(len(values))]
    chosen |= dict(given)
    if isinstance(chosen.get("discount"), list):  # as many as there are ranks, and no more
        ranks = longest if cutoff is None or chosen.get("ideal") == "judged_uncut" else cutoff
        perfect = name == "SDCG" or (name == "alpha_DCG" and chosen.get("denominator") != "none")
        if not perfect and chosen.get("ideal") != "full":
            ranks = min(ranks, longest)
        chosen["discount"] = [1 / (1 + i) ** 2 for i in range(max(ranks, 1))]
    if chosen.get("judged_only"):
        chosen.pop("unjudged", None)  # what is dropped has no grade
    if chosen.get("stop", "exp2") != "exp2":
        chosen.pop("max_rel", None)
    if chosen.get("floor") == "worst":
        chosen.pop("ideal", None)
    if (
        cutoff is not None
        and chosen.get("ideal") == "returned"
        and chosen.get("ties", "average") == "average"
    ):
        chosen["ties"] = "input"  # averaged ties are refused
    if name == "AP" and cutoff is None and chosen.get("denominator") == "none":
        del chosen["denominator"]
    if chosen.get("pairs") == "graded":  # documents of all grades and ranks
        cutoff = None
        chosen.pop("rel", None)
        chosen.pop("max_fp", None)
    if name in OF_INTENTS and chosen.get("max_rel") is not None:
        chosen.pop("rel", None)  # every grade is taken for what it is
    elif name in OF_INTENTS and name != "nDCG_IA" and rng.random() < 0.5:
        chosen.pop("max_rel", None)
    if "gain" in chosen and name != "nDCG_IA" and rng.integers(8) == 0:
        del chosen["gain"]
        chosen["gains"] = OVERRIDES[rng.integers(len(OVERRIDES))]
    if table.propensity is None or not chosen.get("ips"):
        chosen.pop("ips", None)
        chosen.pop("clip", None)
    return Asked(name, cutoff, tuple(chosen.items()))


def _values_of(name, parameter):
    if parameter.name == "gain":
        return (*ANY_GAINS, *COARSE_GAINS)
    if parameter.name == "max_rel":
        return (4, 5, 53) if name == "ERR" or name in OF_INTENTS else (4, 3, 2.5, 300)
    if parameter.name == "denominator":
        return tuple(word.strip("'") for word, _ in parameter.values)
    if parameter.name == "stop":
        return tuple(value for value in VALUES["stop"] if name == "ERR" or value != "exp2")
    if parameter.name == "rel" and name in OF_INTENTS:
        return (1, 2, 0.25, 4)
    if parameter.name == "ties" and name in OF_INTENTS and name != "nDCG_IA":
        return ("average", "input")
    if parameter.name == "rel" and parameter.default is None:
        return VALUES["rel or none"]
    return VALUES[parameter.name]


# ---- what has to hold ----

RELATIVE = 1e-12


def difference(table, asked, *, threads=1, alone=True):
    """What is wrong about the values of these measures, alone and together; None where nothing is."""
    if not asked:
        return None
    rankings = table.rankings()
    together = fn.evaluate(rankings, [one.measure for one in asked], threads=threads)
    for one in asked:
        measure = one.measure
        got = together[measure]
        by_itself = fn.evaluate(rankings, measure, threads=threads).values[0] if alone else got
        if by_itself.tobytes() != got.tobytes():
            return f"{measure} of {table.note}: alone {by_itself.tolist()}, in company {got.tolist()}"
        wanted = np.array(one.expected(table), np.float64).reshape(got.shape)
        bound = RELATIVE * np.maximum(np.abs(wanted), one.scale(table))
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(~((np.abs(got - wanted) <= bound) | (np.isnan(got) & np.isnan(wanted))))
        if len(wrong):
            query = int(wrong[0])
            return f"{measure} of {table.note}, query {query}: got {got[query]!r}, the oracle has {wanted[query]!r}"
        mean = oracle.weighted_mean(got.tolist(), table.weight, measure.params.get("empty"))
        shown = together.mean()[str(measure)]
        if shown != mean and not (math.isnan(shown) and math.isnan(mean)):
            return f"the mean of {measure} of {table.note}: got {shown!r}, the oracle has {mean!r}"
    return None


class Parts(TableStream):
    """A stream of rankings, a few queries at a time."""

    def __init__(self, rankings, step):
        self._parted, self._step = rankings, step
        self.grouped, self.n_rows, self._progress, self._is_lists, self._scoring_threads = (
            True,
            0,
            None,
            False,
            1,
        )

    def __iter__(self):
        return (part for part, _ in self._parts())

    def _parts(self, *, regroup=False):  # noqa: ARG002
        for first in range(0, self._parted.n_queries, self._step):
            yield self._parted[first : first + self._step], None

    def _nothing(self):
        return self._parted[:0]


def broken_law(table, asked, rng):
    """What changes a bit of the values of these measures and should not; None where nothing does."""
    asked = [*{one.measure: one for one in asked}.values()]
    if not asked:
        return None
    measures, every = [one.measure for one in asked], np.arange(len(table.lengths))
    some = rng.permutation(every)[: rng.integers(1, len(every) + 1)]
    rows, words = [*range(len(asked))], [dict(one.parameters) for one in asked]
    in_any_order = [row for row in rows if words[row].get("ties") != "input"]
    of_any_scores = [row for row in rows if words[row].get("score_above") is None]
    rankings = table.rankings()
    parts = Parts(rankings, max(int(rng.integers(1, len(every) + 1)), len(every) // 20))
    values = fn.evaluate(rankings, measures, threads=1).values
    for what, given, kept, queries, threads in (
        ("the order of measures", rankings, rows[::-1], every, 1),
        ("the order of documents", table.of_queries(every, rng).rankings(), in_any_order, every, 1),
        ("which other queries there are", table.of_queries(some).rankings(), rows, some, 1),
        ("dtypes and layouts", recast(table, rng).rankings(), of_any_scores, every, 1),
        ("a stream", parts, rows, every, 1),
        ("threads", rankings, rows, every, 2),
    ):
        if kept:
            found = fn.evaluate(given, [measures[row] for row in kept], threads=threads).values
            wrong = np.argwhere(found.view(np.int64) != values[np.ix_(kept, queries)].view(np.int64))
            if len(wrong):
                row, query = wrong[0].tolist()
                was = values[kept[row], queries[query]]
                return f"{what} changes {measures[kept[row]]} of {table.note}, query {queries[query]}: {was!r}, {found[row, query]!r}"
    return None
