"""What functions over results refuse: each call with its error, which says what was got and what to do."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conventions_data import rankings_of
from rivals import random_queries
from systems import compared, scores_of

import fastndcg as fn
from fastndcg.errors import (
    ColumnError,
    ConventionError,
    FastndcgError,
    InputError,
    InputTypeError,
    MeasureError,
    SourceError,
)
from fastndcg.measures import DEFINITIONS

Rankings = fn.Rankings
ONE = scores_of([0.1, 0.2])
SCORED = fn.evaluate(Rankings.from_lists([[1, 0], [0, 1]]), ["RR", "nDCG@2"])
INTENTS = Rankings.from_lists([[1, 0]], intents=[[1], [1]])
NEGATIVE = Rankings.from_lists([[1, -1]])
PLAIN = Rankings.from_lists([[1, 0]], [[2, 1]])
JUDGED = Rankings.from_lists([[2, 0]], is_judged=[True, False])
QRELS, RUN = {"q": {"a": 1}}, {"q": {"a": 0.5}}
LISTS = Rankings.from_lists([[1, 0], [0, 1]], queries={"name": ["a", "b"], "w": [1.0, -1.0]})
QUERIES = rankings_of(random_queries(5, 40))


def of_three(**options):
    return compared([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], **options)


def clicked(propensity=(1, 0.5), grades=(1, 0), scores=(2, 1)):
    return Rankings.from_lists([grades], [scores], propensity=propensity)


def rankers(other):
    return fn.compare_clicks({"old": clicked(), "new": other}, "DCG")


def explained(ids, query):
    return fn.explain(Rankings.from_lists([[1], [0]], query_ids=ids), "RR", query)


def slots(column):
    return fn.evaluate(Rankings.from_lists([[1, 0], [0, 1]], queries=column), "nDCG@slots")


def add(scores=ONE, **when):
    fn.History("no folder/h").add(scores, **when)


def match(values):
    return fn.match_conventions(QUERIES, "AP@10", values)


def interval(method="bca", **options):
    return scores_of([0.1, 0.2]).summary(0.95, method, **options)


CONFIDENCES = {
    95: r"confidence=95 is not between 0 and 1; expected for example confidence=0.95. Did you mean 0.95\?",
    0: "confidence=0 is not between 0 and 1", 1.0: "confidence=1.0 is not between 0 and 1",
    math.nan: "confidence=nan is not between 0 and 1", "95%": "confidence='95%' is not a number",
}  # fmt: skip
CASES = [
    # compare
    (lambda: of_three(baseline="c"), InputError, 'baseline="c" is not one of the systems: a, b'),
    (lambda: of_three(test="tukey"), InputError, r"test='tukey' is not known; \w+ .t. or .randomisation."),
    (lambda: of_three(test="permutation", paired=False), InputError, 'test="randomisation" and paired=False do not go together'),
    (lambda: of_three(resamples=10), InputError, "resamples=10 are too few"),
    (lambda: of_three(seed=-1), InputError, "seed=-1 is out of range"),
    (lambda: of_three(correction="dunn"), InputError, r"correction='dunn' is not known; \w+ None, .holm. or .bh."),
    (lambda: of_three(tolerance=-1), InputError, "tolerance=-1 is not a size of ties; expected a finite number, 0 or more, as in tol"),
    (lambda: of_three(tolerance=math.nan), InputError, "tolerance=nan is not a size of ties"),
    (lambda: of_three(confidence=95), InputError, "confidence=95 is not between 0 and 1"),
    (lambda: of_three(missing="ignore"), InputError, "missing='ignore' is not known"),
    (lambda: of_three(cluster="user"), ColumnError, 'there is no column "user" to cluster by; available columns: query_id'),
    (lambda: of_three(cluster=[1, 2]), InputError, "cluster has 2 values for 3 queries"),
    (lambda: of_three(cluster=[1, None, 2]), InputError, "cluster has 1 null"),
    (lambda: of_three(signatures="yes"), InputError, "signatures='yes' is not known"),
    (lambda: fn.compare([ONE, ONE]), InputTypeError, "systems is a list; expected a mapping of names"),
    (lambda: fn.compare({"a": ONE}), InputError, "at least two systems; got 1"),
    (lambda: fn.compare({"a": ONE, "b": [0.1, 0.2]}), InputTypeError, '"b" is a list; expected Scores'),
    (lambda: fn.compare({"a": PLAIN, "b": PLAIN}), InputError, '"a" is Rankings; name what to evaluate'),
    (lambda: fn.compare({"a": SCORED, "b": SCORED}, "P"), MeasureError, "P was not evaluated"),
    (lambda: fn.compare({"a": SCORED, "b": ONE}), MeasureError, r"no measure was evaluated for all systems \(a: RR, nDCG@2; b: nDCG@1\)"),
    (lambda: of_three().no_worse_than("none"), InputError, '"none" was compared with no system'),
    (lambda: of_three().movers("P"), MeasureError, "P was not compared"),
    (lambda: of_three().movers("nDCG@1", "d"), InputError, '"d" is not one of the systems'),
    (lambda: of_three(paired=False).movers("nDCG@1"), InputError, "share no query"),
    *((lambda each=each: of_three().no_worse_than("a", margin=each), FastndcgError, r"margin=.* is not a (loss to accept|number); expected")
      for each in (-1, math.nan, math.inf, "0.1", True, None, 10**400)),
    # summary, by, mean
    *((lambda each=each: ONE.summary(each), FastndcgError, said) for each, said in (*CONFIDENCES.items(), (True, "confidence=True is not a number"))),
    (lambda: SCORED.by("query_id", 95), InputError, "confidence=95 is not between 0 and 1"),
    *((lambda each=each: interval(each), InputError, f'method=\'{each}\' is not known; \\w+ "t", "percentile" or "bca"')
      for each in ("bootstrap", "studentised")),
    (lambda: interval(resamples=5), InputError, "resamples=5 are too few; expected 100"),
    (lambda: interval(resamples=1e3), InputTypeError, "resamples=1000.0 is not a whole number"),
    (lambda: interval(seed=2**63), InputError, "seed=9223372036854775808 is out of range"),
    (lambda: fn.evaluate(LISTS, "AUC").mean("n_relevent"), ColumnError, r"'n_relevent' is not a column of the queries.*Did you mean \"n_relevant\""),
    (lambda: fn.evaluate(LISTS, "AUC").mean("name"), InputError, 'column "name" is string; expected numeric weights'),
    (lambda: fn.evaluate(LISTS, "AUC").mean("w"), InputError, 'column "w" holds -1.0 for query 1; weights are finite numbers from 0'),
    (lambda: fn.evaluate(LISTS, ["AUC", "AUC(rel=2)"]).mean("n_relevant"), InputError, "is not a single number per query: the measures have rel=1, rel=2"),
    (lambda: fn.evaluate(LISTS, "nDCG", convention="lightgbm").mean("n_docs"), InputError, "convention lightgbm are both given"),
    (lambda: slots({"slot": [1, 2]}), ColumnError, 'there is no column "slots" to take cutoffs from; available columns: .*"slot"'),
    (lambda: slots({"slots": [1, 0]}), InputError, 'column "slots" has the cutoff 0 for query 1; expected whole numbers'),
    (lambda: slots({"slots": [None, 1]}), InputError, 'column "slots" has no cutoff for query 0'),
    (lambda: slots({"slots": ["a", "b"]}), InputError, 'column "slots" is of string and holds no cutoffs'),
    (lambda: slots({"slots": [1.5, 2]}), InputError, 'column "slots" is of double and holds no cutoffs'),
    (lambda: fn.evaluate(LISTS, "nDCG@w", convention="trec_eval"), MeasureError, "nDCG@w has a cutoff for each query, which no convention has"),
    # explain
    (lambda: explained(["q-41", "q-42"], "q-43"), InputError, "'q-43' is not among 2 queries, such as q-41, q-42. Did you mean \"q-4[12]\""),
    (lambda: explained([411, 412], 41), InputError, 'query 41 is not among 2 queries, such as 411, 412. Did you mean "41[12]"'),
    (lambda: explained([411, 412], "x"), InputError, "query 'x' is not among 2 queries, such as 411, 412.$"),
    (lambda: explained(pa.array(["a", "b"]).dictionary_encode(), "c"), InputError, "query 'c' is not among 2 queries"),
    (lambda: fn.explain({}, "RR", 0), InputTypeError, "rankings is a dict; expected Rankings"),
    (lambda: fn.explain(QRELS, {"bm25": RUN, "e5": RUN}, "RR", "q"), InputTypeError, "run is several runs: bm25, e5; expected one"),
    (lambda: fn.explain(Rankings.from_lists([np.arange(21_000) % 2]), "AP", 0), MeasureError, "21,000 documents would take too long.* as in AP@1000"),
    *((lambda each=each: fn.explain(INTENTS, getattr(fn, each), 0), MeasureError, "Explain")
      for each in ("IDCG", "NumRel", *(name for name, known in DEFINITIONS.items() if known.method == "intents"))),
    *((lambda look=look, each=each: look(each, "RR", *([0] if look is fn.explain else [])), InputTypeError, f"rankings is a {type(each).__name__}; expected Rankings")
      for look in (fn.explain, fn.anchors, fn.tie_range, fn.judgment_range) for each in ([1], "p.parquet")),
    # anchors and ranges
    (lambda: fn.anchors(PLAIN, "nDCG(ties='input', ideal='returned')@1"), MeasureError, r"ideal='returned'\)@1 has no known worst or best order"),
    (lambda: fn.anchors(PLAIN, fn.DCG(discount=[0.5, 1])), MeasureError, "no known worst or best order: its discount is 1 at rank 2 and 0.5 before it"),
    (lambda: fn.anchors(PLAIN, fn.DCG(discount=lambda rank: -1.0) @ 1), MeasureError, "its discount is 0 at rank 2 and -1 before it"),
    (lambda: fn.anchors(INTENTS, "alpha_nDCG"), MeasureError, "alpha_nDCG has no known worst or best order: it covers several intents"),
    (lambda: fn.anchors(PLAIN, "AP(score_above=0.5)@3"), MeasureError, "whether a document counts depends on its score"),
    (lambda: fn.anchors(Rankings.from_lists([[1, 0, 2]]), "AUC@2"), MeasureError, "has no known worst"),
    (lambda: fn.anchors(NEGATIVE, "infAP"), MeasureError, "infAP has no known .*negative grades"),
    (lambda: fn.anchors(PLAIN, "RR")["RR@2"], MeasureError, "RR@2 was not asked for; these were: RR"),
    (lambda: fn.judgment_range(JUDGED, "Judged@5"), MeasureError, "Judged@5 counts judgments"),
    (lambda: fn.judgment_range(JUDGED, "RBPresidual"), MeasureError, "RBPresidual counts judgments"),
    (lambda: fn.judgment_range(JUDGED, "ERR_IA@5"), MeasureError, "ERR_IA@5 .* covers intents"),
    (lambda: fn.judgment_range(Rankings.from_lists([[0, 0]], is_judged=[False, False]), "RR"), InputError, "no document was judged"),
    # clicks
    (lambda: fn.propensities({"rank": [1, 2], "shown": [3, 4], "clicked": [3, 5]}), InputError, "row 1 was clicked 5 times and shown 4"),
    (lambda: fn.propensities({"rank": [1, 2], "clicked": [2, 0]}), InputError, "row 0 was clicked 2 times and shown 1"),
    (lambda: fn.propensities({"rank": [1]}), ColumnError, 'there is no column "clicked"'),
    (lambda: fn.propensities({"clicked": [1]}), ColumnError, "usual name of the rank"),
    (lambda: fn.propensities({"rank": [1, 0], "clicked": [1, 1]}), InputError, "rank has 0 in row 1; expected ranks, whole numbers from 1"),
    (lambda: fn.propensities({"rank": [1], "swapped": [1.5], "clicked": [1]}), InputError, "swapped has 1.5 in row 0; expected ranks"),
    (lambda: fn.propensities({"rank": [1, 2], "clicked": [1, None]}), InputError, "clicked has nan in row 1; expected numbers"),
    (lambda: fn.propensities({"rank": [1], "clicked": ["yes"]}), InputTypeError, "column for clicked holds string"),
    (lambda: fn.propensities({"rank": np.zeros(0, np.int64), "clicked": np.zeros(0)}), InputError, "the log has no rows"),
    (lambda: fn.propensities({"rank": [], "clicked": []}), InputError, "the log has no rows"),
    (lambda: fn.compare_clicks({"old": clicked(), "new": clicked()}, "nDCG@3"), MeasureError, r"nDCG@3 does not take ips.*; expected DCG or CG"),
    (lambda: fn.compare_clicks({"old": clicked()}, "DCG"), InputError, "expected a mapping of two systems or more"),
    (lambda: rankers(PLAIN), InputError, '"new" is not Rankings with propensities'),
    (lambda: rankers(clicked(grades=(0, 1))), InputError, "the systems differ in documents, clicks or propensities"),
    (lambda: fn.compare_clicks({"old": clicked(), "new": clicked()}, "DCG", baseline="older"), InputError, 'baseline="older" is not one of the systems'),
    (lambda: fn.evaluate(PLAIN, "DCG(ips=True)@3"), InputError, r"DCG\(ips=True\)@3 needs the probability that each document"),
    (lambda: clicked([1]), InputError, "propensity has 1 value for 2 documents"),
    (lambda: clicked(["a", "b"]), InputTypeError, "propensity is of dtype <U1"),
    (lambda: fn.evaluate(clicked(), "DCG(clip=0.1)"), MeasureError, r"DCG\(clip=0.1\) has clip= but does not use propensities; add ips=True"),
    (lambda: fn.DCG(ips=True, clip=2), MeasureError, "clip=2 is not known: clip is a probability"),
    (lambda: fn.DCG(ips="yes"), MeasureError, "ips='yes' is not known: ips is True, False or 'snips'"),
    (lambda: fn.evaluate(clicked([1e-300, 1]), "DCG(ips=True)"), InputError, r"propensity 1e-300 at row 0, query 0 makes a gain of 1e\+300.*clip="),
    (lambda: fn.snips(clicked(), "nDCG@3"), MeasureError, "nDCG@3 does not take ips"),
    (lambda: fn.evaluate(clicked(), fn.DCG(ips=True, gain=[0])), InputError, "has no gain for grade 1, which occurs at row 0"),
    (lambda: Rankings.from_arrow(pa.table({"qid": [1], "rel": [1], "score": [1]}), propensity="seen"), ColumnError, 'no column "seen" for propensity='),
    # judgments
    (lambda: fn.check_judgments({}, RUN), InputError, "no judgments"),
    (lambda: fn.check_judgments(QRELS, {}), InputError, "empty dict"),
    (lambda: fn.check_judgments(QRELS, 3), InputTypeError, "run is a int"),
    (lambda: fn.check_judgments(QRELS, RUN, is_judged="x"), InputTypeError, "no argument is_judged="),
    (lambda: fn.check_judgments(QRELS, RUN, by="lang"), ColumnError, "keep|column"),
    (lambda: fn.check_judgments(QRELS, RUN, least_judged=2), InputError, "least_judged=2"),
    (lambda: fn.check_judgments(QRELS, RUN, Path("none.csv")), SourceError, "none.csv does not exist"),
    (lambda: fn.check_judgments(QRELS, RUN, pa.table({"name": ["7"]})), ColumnError, "corpus: no column has a usual name"),
    (lambda: fn.check_judgments(QRELS, RUN, [0.5]), InputTypeError, "corpus"),
    *((lambda each=each: fn.check_judgments(QRELS, RUN, cutoffs=each), FastndcgError, "cutoffs=.* expected a whole number")
      for each in (0, None, "5", [0], [True], 2.5)),
    (lambda: fn.pool(PLAIN), InputTypeError, "runs is a Rankings; expected a mapping"),
    (lambda: fn.pool(["a.run"]), InputTypeError, "runs is a list; expected a mapping"),
    (lambda: fn.pool({}), InputError, "at least one run"),
    (lambda: fn.pool({1: {}, "1": {}}), InputError, "each with its own name"),
    (lambda: fn.pool({"a": PLAIN}), InputTypeError, 'run "a" is a Rankings; expected a dict'),
    (lambda: fn.pool({"a": {"q": ["x", "y", "x"]}}), InputError, 'run "a": document "x" of query "q" appears twice'),
    (lambda: fn.pool({"q": {"d": 0.5}}), InputTypeError, "run \"q\"\\['d'\\] is a float"),
    (lambda: fn.pool({"a": 3}), InputTypeError, 'run "a" is a int'),
    (lambda: fn.pool({"a": {"q": {"d": np.nan}}}), InputError, 'score nan of document "d".*nan="last"'),
    (lambda: fn.pool({"a": pd.DataFrame({"qid": [1], "docid": [2]})}), ColumnError, 'run "a": no column has a usual name'),
    (lambda: fn.pool({"a": Path("none.txt")}), SourceError, "none.txt does not exist"),
    (lambda: fn.pool({"a": RUN}, depth=0), InputError, "depth=0"),
    (lambda: fn.pool({"a": RUN}, depth=1.5), InputTypeError, r"depth=1\.5"),
    (lambda: fn.pool({"a": RUN}, cutoff=3), InputTypeError, r"pool has no argument cutoff=; it takes runs, depth, qrels"),
    (lambda: fn.pool({"a": RUN}, qrels={"q": {"d": "good"}}), InputTypeError, "qrels holds values that are not numbers.*grades="),
    # history
    (lambda: add(at="yesterday"), InputError, 'at="yesterday" is not a date; expected for example at="2026-11-24"'),
    (lambda: add(at=7), InputTypeError, "at is a int; expected a date"),
    (lambda: add(at=pd.NaT), InputTypeError, "at is a NaTType; expected a date"),
    (lambda: add(at="9999-12-31T23:59:59-05:00"), InputError, "lies outside the years 1 to 9999"),
    (lambda: add(at="0001-01-01T00:00+05:00"), InputError, "lies outside the years 1 to 9999"),
    (lambda: add({"nDCG": 0.5}), InputTypeError, "expected Scores"),
    (lambda: add(scores_of([])), InputError, "scores has no queries"),
    (lambda: add(fn.evaluate(Rankings.from_lists([[1], [0]], query_ids=[1, 1]), "RR")), InputError, "has query 1 more than once"),
    (add, SourceError, "cannot be created"),
    (lambda: fn.History("no folder/h").table(), InputError, r"h does not exist. Add values"),
    # conventions
    (lambda: match({"1": 0.5, "x": 1.0}), InputError, "1 query that the rankings lack, such as x; their ids are like 1, 2, 3"),
    (lambda: match([0.5]), InputError, "values"),
    (lambda: match(math.nan), InputError, "values is nan"),
    (lambda: match([None] * 40), InputError, "no number"),
    (lambda: match(True), InputTypeError, "values is a bool"),
    (lambda: match(b"0.5"), InputTypeError, "values is a bytes"),
    (lambda: match("0.5"), InputTypeError, "values is a str; expected the mean as a number, the value of each query, or a mapping"),
    (lambda: match({"1": {"map": 0.1}}), InputTypeError, "values is a list; expected the mean"),
    (lambda: match({"1": 0.5, 1: 0.5}), InputError, "a query twice"),
    (lambda: fn.match_conventions(PLAIN[:0], "AP", 0.5), InputError, "no queries"),
    *((call, ConventionError, r"^xgboost has no RR; it has: nDCG, AP.*\. Tools that have RR: trec_eval, ")
      for call in (lambda: fn.compare_conventions(QUERIES, "RR", ["xgboost", "ranx"]), lambda: fn.explain_conventions(QUERIES, "ranx", "xgboost", "RR"))),
    (lambda: fn.compare_conventions(QUERIES, "StRecall@3"), ConventionError, "StRecall has no convention"),
    (lambda: fn.compare_conventions(QUERIES, 3, []), ConventionError, "no convention was named"),
    (lambda: fn.compare_conventions([1, 2], 3), InputTypeError, "expected Rankings"),
    (lambda: fn.evaluate(PLAIN, "NumRet", convention="lightgbm"), MeasureError, "lightgbm has no NumRet; it has: nDCG"),
    (lambda: fn.evaluate(PLAIN, "nDCG", convention=3), InputTypeError, "convention is a int"),
    (lambda: fn.conventions["lightgmb"], ConventionError, r'no convention is called "lightgmb".* Did you mean "lightgbm"\?'),
    (lambda: fn.RR(like="sklearn"), ConventionError, r"^sklearn has no RR; it has: nDCG.*Tools that have RR: trec_eval"),
    (lambda: fn.alpha_DCG(like="sklearn"), ConventionError, r"^alpha_DCG has no convention: .* Give alpha_DCG without like="),
]  # fmt: skip


@pytest.mark.pure
@pytest.mark.filterwarnings("ignore:.*swapped")
@pytest.mark.parametrize(
    ("call", "error", "message"), CASES, ids=[f"{place} {case[2][:40]}" for place, case in enumerate(CASES)]
)
def test_it_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
