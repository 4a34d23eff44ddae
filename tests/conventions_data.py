"""Queries as `Rankings`, the check that a convention's numbers are the tool's, and the input of the stored values."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
from rivals import random_queries

import fastndcg as fn

FILE = Path(__file__).parent / "golden" / "conventions.json"
CUTOFFS = (1, 3, 10, None)


def rankings_of(queries, *, weight=None):
    pools = [list(query.qrels.values()) for query in queries]
    return fn.Rankings.from_groups(
        [len(query.grades) for query in queries],
        _grades([grade for query in queries for grade in query.grades]),
        np.array([score for query in queries for score in query.scores], np.float64),
        judged=(
            np.cumsum([0] + [len(pool) for pool in pools]),
            _grades([grade for pool in pools for grade in pool]),
        ),
        doc_ids=pa.array([document for query in queries for document in query.doc_ids], pa.string()),
        query_ids=[query.name for query in queries],
        weight=weight,
    )


def _grades(grades):
    return np.array(grades, np.float64 if any(isinstance(grade, float) for grade in grades) else np.int64)


def differences(queries, name, k, theirs, of="nDCG", rankings=None, values=None):
    """Queries whose value differs by more than the convention promises, with both values; `values` are ours."""
    measure = fn.parse(of if k is None else f"{of}@{k}")
    convention = fn.conventions[name].on(measure)
    ours = (
        values
        or fn.evaluate(rankings or rankings_of(queries), measure, convention=convention)[measure].tolist()
    )
    tolerance = convention.tolerance
    return [
        f"query {query.name}: {name} says {their}, the convention {our}"
        for query, our, their in zip(queries, ours, theirs, strict=True)
        if math.isnan(our) != (their is None) or (their is not None and not abs(our - their) <= tolerance)
    ]


def golden_queries(rival):
    """The same queries for every tool, but for what a tool cannot take."""
    longest = min(rival.longest or 40, 40)
    return random_queries(20261121, 24, least=rival.least, longest=longest, ties=rival.ties)


def golden_cutoffs(rival):
    return [k for k in CUTOFFS if k is not None or rival.uncut]


def weighted_queries():
    """Queries without ties and a weight for each; some queries have no relevant document, and some no weight."""
    queries = random_queries(11, 30, ties=False)
    return queries, (np.random.default_rng(11).integers(0, 6, 30) / 4).tolist()
