"""Scores and systems that tests of statistics, comparisons and pages share."""

import numpy as np

import fastndcg as fn
from fastndcg.scores.scores import Scores

# hours of sleep that ten patients gained by two drugs (Student, Biometrika 1908)
DEXTRO = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
LAEVO = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
HOSTILE = '<script>window.hacked=1</script>"><img src=x onerror="window.hacked=1">'
QUERIES = 120
UNSEEN = "\x00\x07\x1b[31m\x85\n\u2028\u202e\ufffe\ufeff"


def scores_of(values, *, measure="nDCG", weight=None, **columns):
    """Scores with such values, (n_queries,), as `evaluate` would return them."""
    values = np.atleast_2d(np.asarray(values, dtype=np.float64)).copy()
    rankings = fn.Rankings.from_groups(
        [1] * values.shape[1], [1] * values.shape[1], [1.0] * values.shape[1], weight=weight, **columns
    )
    measures = [fn.parse(measure) @ k for k in range(1, len(values) + 1)]
    return Scores(measures, values, np.zeros(values.shape, np.bool_), rankings, rankings.weight)


def compared(a, b, **options):
    return fn.compare({"a": scores_of(a), "b": scores_of(b)}, **options)


def row_of(a, b, **options):
    (row,) = compared(a, b, **options).to_arrow().to_pylist()
    return row


def drawn(seed, n, systems=2):
    random = np.random.default_rng(seed)
    level = random.beta(2, 2, n)
    return np.clip(level + random.normal(0, 0.1, (systems, n)) * (random.random((systems, n)) < 0.6), 0, 1)


def systems_of(queries=QUERIES):
    """Two systems over the same queries: one with ties, names and ids that are markup, a query without a relevant document."""
    random = np.random.default_rng(0)
    grades = random.integers(0, 4, (queries, 12))
    grades[5] = 0
    offsets = np.arange(queries + 1) * 12
    first = fn.Rankings.from_offsets(
        offsets,
        grades.ravel(),
        np.round(grades + random.normal(0, 3, grades.shape)).ravel(),
        query_ids=[HOSTILE if place == 7 else f"q-{place}" for place in range(queries)],
        queries={"country": [["de", "fr", f"us{HOSTILE}"][place % 3] for place in range(queries)]},
        doc_ids=[f"{HOSTILE}{place % 12}" for place in range(queries * 12)],
        is_judged=np.arange(queries * 12) % 10 > 0,
    )
    return {
        "bm25": first,
        f"rerank {HOSTILE}": first.with_scores((grades + random.normal(0, 2, grades.shape)).ravel()),
    }
