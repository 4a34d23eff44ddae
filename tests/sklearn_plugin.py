"""A pytest plugin that puts this package's functions where scikit-learn's own tests call scikit-learn's.

The private helpers that some of those tests call give one value for each row; here a row is a call of the
public function.
"""

import numpy as np
import pytest

import fastndcg

CALLS = {"ndcg_score": 0, "dcg_score": 0}


def ndcg_score(*arguments, **words):
    CALLS["ndcg_score"] += 1
    return fastndcg.ndcg_score(*arguments, **words)


def dcg_score(*arguments, **words):
    CALLS["dcg_score"] += 1
    return fastndcg.dcg_score(*arguments, **words)


def dcg_sample_scores(y_true, y_score, k=None, log_base=2, ignore_ties=False):
    rows = zip(np.asarray(y_true), np.asarray(y_score), strict=True)
    return np.array(
        [dcg_score([true], [score], k=k, log_base=log_base, ignore_ties=ignore_ties) for true, score in rows]
    )


def ndcg_sample_scores(y_true, y_score, k=None, ignore_ties=False):
    rows = zip(np.asarray(y_true), np.asarray(y_score), strict=True)
    return np.array([ndcg_score([true], [score], k=k, ignore_ties=ignore_ties) for true, score in rows])


REPLACEMENTS = {
    "ndcg_score": ndcg_score,
    "dcg_score": dcg_score,
    "_ndcg_sample_scores": ndcg_sample_scores,
    "_dcg_sample_scores": dcg_sample_scores,
}


def replace_in(module):
    for name, function in REPLACEMENTS.items():
        if hasattr(module, name):
            setattr(module, name, function)
    for value in vars(module).values():
        if isinstance(value, dict):
            for name in ("ndcg_score", "dcg_score"):
                if callable(value.get(name)):
                    value[name] = REPLACEMENTS[name]


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        replace_in(module)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"calls of fastndcg: {CALLS}")
