"""The input of the stored values: the same queries for every tool, but for what a tool cannot take."""

from pathlib import Path

import numpy as np
from rivals import random_queries

FILE = Path(__file__).parent / "golden" / "conventions.json"
CUTOFFS = (1, 3, 10, None)


def golden_queries(rival):
    return random_queries(
        20261121, 24, least=rival.least, longest=min(rival.longest or 40, 40), ties=rival.ties
    )


def golden_cutoffs(rival):
    return [k for k in CUTOFFS if k is not None or rival.uncut]


def weighted_queries():
    """Queries without ties and a weight for each; some queries have no relevant document, and some no weight."""
    queries = random_queries(11, 30, ties=False)
    return queries, (np.random.default_rng(11).integers(0, 6, 30) / 4).tolist()
