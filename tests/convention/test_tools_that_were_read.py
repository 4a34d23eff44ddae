"""Tools that are not run here: each value beside what the tool's source says, written out by hand from it.

The definitions are those of the files that the declarations name; ranks have no ties, grades are 0 and 1 unless said.
Those of RecTools 0.19, recommenders 1.2.1, LensKit 2025.8.1, implicit 0.7.3, Cornac 2.2.1, RePlay 0.22 and RecPack 0.3.6
were compared with the installed tools once, on data as here; LensKit's AP raises an error where nothing is relevant.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import fastndcg as fn


class Query(NamedTuple):
    ranked: list[int]  # grades of the returned documents, best first
    missed: list[int]  # of judged documents that were not returned


def hits(query, k):
    return [int(grade > 0) for grade in query.ranked[:k]]


def n_relevant(query):
    return sum(grade > 0 for grade in [*query.ranked, *query.missed])


def precisions(query, k):
    """Precision at each rank, 0 where the document is not relevant."""
    found = hits(query, k)
    return [hit * sum(found[: rank + 1]) / (rank + 1) for rank, hit in enumerate(found)]


def reciprocal(query, k):
    return next((1 / rank for rank, hit in enumerate(hits(query, k), 1) if hit), 0.0)


Value = float | None  # None: the tool leaves the query out
Definition = Callable[[Query, int], Value]


def when_relevant(definition, instead=None):
    """A definition of a query, its relevant documents and k; `instead` without any."""
    return lambda query, k: definition(query, n_relevant(query), k) if n_relevant(query) else instead


def ap_over(divisor, instead=None):
    """The sum of precisions over a divisor, which is given R, k and the number of returned documents."""

    def value(query, relevant, k):
        below = divisor(relevant, k, len(query.ranked))
        return sum(precisions(query, k)) / below if below else 0.0

    return when_relevant(value, instead)


def PRECISION(query, k):
    return sum(hits(query, k)) / k


def OF_RETURNED(query, k):
    return sum(hits(query, k)) / min(k, len(query.ranked)) if query.ranked else 0.0


RECALL = when_relevant(lambda query, relevant, k: sum(hits(query, k)) / relevant)
CAPPED = when_relevant(lambda query, relevant, k: sum(hits(query, k)) / min(relevant, k))
ANY = when_relevant(lambda query, relevant, k: float(any(hits(query, k))))
FIRST = when_relevant(lambda query, relevant, k: reciprocal(query, k))
HARMONIC = when_relevant(lambda query, relevant, k: 2 * sum(hits(query, k)) / (relevant + k))
OF_RELEVANT = ap_over(lambda relevant, k, n: relevant)
OF_CUTOFF = ap_over(lambda relevant, k, n: min(relevant, k))


def of_value(definition):
    """The same, where queries without relevant documents count as 0."""
    return lambda query, k: definition(query, k) or 0.0


def leaving_out(definition):
    """The same, where users without relevant items are left out."""
    return lambda query, k: definition(query, k) if n_relevant(query) else None


def err(query, k, top=4):
    value, looks = 0.0, 1.0
    for rank, grade in enumerate(query.ranked[:k], 1):
        stop = (2**grade - 1) / 2**top
        value, looks = value + looks * stop / rank, looks * (1 - stop)
    return value


def mean_of_precisions(query, relevant, k):
    """Elliot's MAP: the mean over n = 1..k of precision at n."""
    return math.fsum(sum(hits(query, n)) / n for n in range(1, k + 1)) / k


def rounded(definition):
    """Java's Math.round(value * 100) / 100."""
    return lambda query, k: math.floor((definition(query, k) or 0.0) * 100 + 0.5) / 100


def area(query, k):
    """The share of pairs in the right order on the first k ranks; None without any."""
    found = hits(query, k)
    pairs = [
        (one, other) for one in range(len(found)) for other in range(len(found)) if found[one] > found[other]
    ]
    return sum(one < other for one, other in pairs) / len(pairs) if pairs else None


def roc_auc(query, k):
    """RePlay's RocAuc: 0 without hits, and 1 without what is no hit."""
    value = area(query, k)
    return float(any(hits(query, k))) if value is None else value


RECSYS = {"P": leaving_out(PRECISION), "R": RECALL, "Success": ANY, "RR": FIRST}
READ = {
    "spark": {"P": PRECISION, "R": of_value(RECALL), "AP": of_value(OF_CUTOFF)},
    "rectools": {**RECSYS, "F": HARMONIC, "AP": OF_RELEVANT},
    "rectools_achievable": {
        "P": when_relevant(lambda query, relevant, k: sum(hits(query, k)) / min(k, relevant)),
        "AP": ap_over(lambda relevant, k, n: k),
    },
    "replay": {**RECSYS, "AP": OF_CUTOFF, "AUC": leaving_out(roc_auc)},
    "recpack": {"P": leaving_out(PRECISION), "R": RECALL, "RR": FIRST,
                "NumRet": leaving_out(lambda query, k: float(sum(hits(query, k))))},
    "recpack_calibrated": {"R": CAPPED},
    "cornac": {"P": leaving_out(PRECISION), "R": RECALL, "F": HARMONIC, "Success": ANY},
    "implicit": {"AP": OF_CUTOFF},
    "recbole": {**RECSYS, "AP": OF_CUTOFF},
    "recommenders": {"P": leaving_out(PRECISION), "R": RECALL, "AP": OF_RELEVANT},
    "recommenders_at_k": {"AP": OF_CUTOFF},
    "pyvespa": {**RECSYS, "AP": OF_CUTOFF},
    "elliot": {**RECSYS, "F": HARMONIC, "AP": when_relevant(mean_of_precisions)},
    "lenskit": {
        "P": OF_RETURNED, "R": CAPPED, "Success": ANY, "RR": FIRST,
        "AP": ap_over(min),
        "RBP": leaving_out(
            lambda query, k: 0.15 * sum(0.85**rank * hit for rank, hit in enumerate(hits(query, k)))
        ),
    },
    "merlin": {"P": PRECISION, "R": of_value(CAPPED), "AP": of_value(OF_CUTOFF), "RR": of_value(FIRST)},
    "tf_ranking": {"P": OF_RETURNED, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST), "Success": of_value(ANY)},
    "keras_rs": {"P": OF_RETURNED, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST)},
    "elasticsearch": {"P": OF_RETURNED, "R": of_value(RECALL), "RR": of_value(FIRST), "ERR": err},
    "opensearch": {"P": rounded(OF_RETURNED), "AP": rounded(OF_RELEVANT)},
    "quepid": {"P": OF_RETURNED, "AP": ap_over(lambda relevant, k, n: relevant, math.nan), "RR": of_value(FIRST), "ERR": err},
    "rre": {"P": rounded(OF_RETURNED), "R": of_value(RECALL), "AP": of_value(OF_RELEVANT)},
    "beir": {"P": PRECISION, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST)},
    "mteb": {"P": PRECISION, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST), "Success": of_value(ANY)},
    "mteb_cap": {"R": CAPPED},
    "flagembedding": {"P": PRECISION, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST)},
    "elinor": {"P": PRECISION, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST), "F": of_value(HARMONIC)},
    "trectools": {"P": PRECISION, "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST),
                  "RBP": lambda query, k: 0.2 * sum(0.8**rank * hit for rank, hit in enumerate(hits(query, k)))},
    "kaggle": {"AP": of_value(OF_CUTOFF)},
    "mlflow": {"P": OF_RETURNED, "R": of_value(RECALL)},
    "evidently": {"P": OF_RETURNED, "R": of_value(RECALL), "AP": of_value(OF_RELEVANT), "RR": of_value(FIRST), "Success": of_value(ANY)},
}  # fmt: skip
# measures of the whole list: the cutoff is that of the longest list
WHOLE = {
    "spark": {"AP": of_value(OF_RELEVANT)},
    "cornac": {"RR": FIRST, "AP": OF_RELEVANT},
    "torchrec": {"AUC": area},
    "llama_index": {
        "P": OF_RETURNED,
        "R": of_value(RECALL),
        "AP": of_value(OF_RELEVANT),
        "RR": of_value(FIRST),
        "Success": of_value(ANY),
    },
    "ragas": {"AP": lambda query, k: sum(precisions(query, k)) / (sum(hits(query, k)) + 1e-10)},
}
GRADED = ("elasticsearch", "quepid")  # whose queries have grades up to 4
SCORED = ("tf_ranking", "keras_rs", "torchrec")  # which know the scored documents alone


def queries_of(tool, seed):
    random, found = np.random.default_rng(seed), []
    for place in range(40):
        top = 5 if tool in GRADED else 2
        ranked = (random.integers(0, top, random.integers(1, 14)) * (place % 7 > 0)).tolist()
        missed = (
            []
            if tool in SCORED
            else (random.integers(0, top, random.integers(0, 5)) * (place % 7 > 0)).tolist()
        )
        found.append(Query(ranked, missed))
    return found


def rankings_of(queries):
    qrels = {
        f"q{place:02}": {f"d{number}": grade for number, grade in enumerate([*query.ranked, *query.missed])}
        for place, query in enumerate(queries)
    }
    run = {
        f"q{place:02}": {f"d{number}": 100.0 - number for number in range(len(query.ranked))}
        for place, query in enumerate(queries)
    }
    return fn.Rankings.from_qrels_run(qrels, run)


@pytest.mark.pure
@pytest.mark.parametrize("tool", {**READ, **WHOLE})
def test_values_are_those_of_the_source(tool):
    cases = [(name, k, each) for name, each in READ.get(tool, {}).items() for k in (1, 3, 10)]
    for name, k, definition in (*cases, *((name, None, each) for name, each in WHOLE.get(tool, {}).items())):
        queries = queries_of(tool, len(name) + len(tool))
        scores = fn.evaluate(rankings_of(queries), name if k is None else f"{name}@{k}", convention=tool)
        counted = [definition(query, k or 99) for query in queries]
        expected = [math.nan if value is None else value for value in counted]
        near = 1e-9 if tool != "ragas" else 1e-8
        np.testing.assert_allclose(scores.values[0], expected, rtol=1e-9, atol=near, err_msg=f"{name} {k}")
        mean = np.nanmean(expected) if name != "AP" or tool != "quepid" else math.nan
        (found,) = scores.mean().values()
        assert found == pytest.approx(mean, rel=1e-9, nan_ok=True) or tool == "opensearch", (name, k)


def test_the_page_names_the_tools_that_are_run():
    from measured import LIVE

    page = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text(encoding="utf-8")
    listed = page.partition("\nTests run ")[2].partition(" where installed")[0]
    assert set(re.findall(r"`([\w-]+)`", listed)) == {tool for tool, _ in LIVE}


@pytest.mark.pure
def test_every_tool_that_was_read_is_here():
    """Or is run: LIVE and the tests of rivals have it."""
    from measured import LIVE

    run = {tool for tool, *_ in LIVE} | {
        "trec_eval", "trec_eval_c", "trec_eval9", "xgboost-", "ranx",
    }  # fmt: skip
    with_others = {
        name for name, each in fn.conventions.items() if len(each.names_of_measures) > 1 or each.of is None
    }
    assert with_others <= run | {*READ} | {*WHOLE}


@pytest.mark.pure
def test_micro_means_are_shares_of_all():
    """implicit's precision: all hits over all that were possible; TorchRec's recall: over all relevant documents."""
    queries = queries_of("implicit", 3)
    rankings = rankings_of(queries)
    for k in (1, 3, 10):
        found = fn.evaluate(rankings, f"P@{k}", convention="implicit").mean()
        share = sum(sum(hits(query, k)) for query in queries) / sum(
            min(k, n_relevant(query)) for query in queries
        )
        assert next(iter(found.values())) == pytest.approx(share, rel=1e-12)
        found = fn.evaluate(rankings, f"R@{k}", convention="torchrec").mean()
        share = sum(sum(hits(query, k)) for query in queries) / sum(map(n_relevant, queries))
        assert next(iter(found.values())) == pytest.approx(share, rel=1e-12)
