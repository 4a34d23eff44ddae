"""Measures of several intents: against the oracle and ndeval, by identities, in groups too large to list, and what is refused."""

import gzip
import json
import math
from collections import namedtuple
from fractions import Fraction

import commands
import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError, MeasureError

pytestmark = pytest.mark.compiled


def grades_of(documents):
    return [[document.get(t) for t in range(max(document, default=-1) + 1)] for document in documents]


@pytest.mark.pure
@pytest.mark.parametrize("ties", ["worst", "best"])
def test_bits_where_other_documents_are_as_good_or_bad(ties):
    """Documents of one score that add as much to the sum, to other intents: whichever comes first, it is rounded alike."""
    rng = np.random.default_rng(4)
    measures = [fn.nDCG_IA(ties=ties, gain=gain) @ k for gain in ("linear", "exp2") for k in (2, 3, 100)]
    for n in (4, 6, 60):
        grades, tied = rng.permuted(np.tile([0, 1, 2], (n, 1)), axis=1), rng.integers(0, 2, n)
        found = set()
        for _ in range(20):
            rows = rng.permutation(n)
            rankings = fn.Rankings.from_lists([grades[rows].max(axis=1)], [tied[rows]], intents=grades[rows])
            found.add(fn.evaluate(rankings, measures).values.tobytes())
        assert len(found) == 1


def test_rows_in_any_order():
    rng = np.random.default_rng(3)
    queries, grades = rng.integers(0, 20, 400), rng.integers(-1, 3, (400, 4))
    lists = [[grade if grade >= 0 else None for grade in row] for row in grades.tolist()]
    scores = rng.random(400)

    def values(rows):
        rankings = fn.Rankings.from_query_ids(
            queries[rows], grades.max(axis=1)[rows].clip(0), scores[rows], intents=[lists[i] for i in rows]
        )
        found = fn.evaluate(rankings, "alpha_nDCG@5").values[0].tolist()
        return dict(zip(rankings.query_ids.to_pylist(), found, strict=True))

    assert values(np.arange(400)) == values(np.argsort(queries, kind="stable"))


# ---- identities ----


def random_rankings(seed, n_intents, queries=50, longest=60):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, queries)
    size = int(lengths.sum())
    grades = rng.choice([0, 0, 0, 1, 2, 3], (size, n_intents))
    return fn.Rankings.from_groups(lengths, grades.max(axis=1), rng.integers(0, 30, size), intents=grades)


@pytest.mark.parametrize(
    "words", [{}, {"gain": "exp2"}, {"ties": "worst"}, {"ties": "best"}, {"ties": "input"}]
)
def test_one_intent_is_plain_ndcg_to_the_last_bit(words):
    rankings = random_rankings(1, 1)
    for cutoff in (1, 5, 1000):
        values = fn.evaluate(rankings, [fn.nDCG_IA(**words) @ cutoff, fn.nDCG(**words) @ cutoff]).values
        assert np.array_equal(*values)


def test_the_greedy_ideal_itself_is_exactly_one():
    for seed in range(20):
        rankings = random_rankings(seed, 3, queries=1, longest=30)
        documents = rankings.intents.grades.reshape(-1, 3)
        order = np.lexsort(np.where(documents >= 1, 0, 1).T[::-1])  # how ties are broken without a pool
        # an intent of its own, which has no weight, names each document
        pool = [
            {t: Fraction(1, 2) for t in range(3) if document[t] >= 1} | {9: i}
            for i, document in zip(order.tolist(), documents[order], strict=True)
        ]
        ideal = [one[9] for one in oracle.greedy_ideal(pool, dict.fromkeys(range(3), Fraction(1)), len(pool))]
        scores = np.empty(len(ideal))
        scores[ideal] = -np.arange(len(ideal))
        perfect = fn.Rankings.from_lists([rankings.relevance], [scores], intents=documents)
        values = fn.evaluate(perfect, ["alpha_nDCG@1,3,10", "alpha_nDCG", "nERR_IA@10"]).values
        assert (values == 1.0).all(), (seed, values)


def test_document_ids_break_ties_of_the_ideal_as_ndeval_does():
    """Whichever pair comes first, the second rank gains 2 only where it is not the one that shares an intent with both."""
    intents = [[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]]
    found = {}
    for ids in ("abc", "acb", "bca"):
        rankings = fn.Rankings.from_lists([[1, 1, 1]], [[3, 2, 1]], intents=intents, doc_ids=list(ids))
        found[ids] = fn.evaluate(rankings, "alpha_nDCG@2").values[0, 0]
    second = 1 / math.log2(3)
    # the last id goes first: the second document's 1.5 beats nothing where the third, which overlaps, is the
    # first
    assert found == pytest.approx(
        {"abc": (2 + 2 * second) / (2 + 1.5 * second), "acb": 1.0, "bca": 1.0}, rel=1e-12
    )


def test_large_groups_by_sampling():
    """The expectation lies within five standard errors of the mean over 4,000 sampled orders."""
    rng = np.random.default_rng(12)
    scores = np.repeat([3.0, 2.0, 1.0], [5, 45, 30])
    grades = rng.choice([0, 0, 0, 1, 2], (len(scores), 4))
    names = [
        "alpha_DCG", "alpha_DCG(alpha=0.25, denominator='none')", "alpha_DCG(alpha=0)", "alpha_nDCG", "alpha_nDCG(alpha=0)", "alpha_nDCG(alpha=1)",
        "alpha_nDCG(alpha=0.75, rel=2)", "ERR_IA", "ERR_IA(denominator='none', rel=2)", "ERR_IA(max_rel=4)", "nERR_IA", "nERR_IA(max_rel=4)",
        "nDCG_IA", "nDCG_IA(gain='exp2')", "nDCG_IA(gain=[0, 0, 1, 4, 9], discount='reciprocal')", "nDCG_IA(rel=2)", "StRecall", "StRecall(rel=2)",
    ]  # fmt: skip
    asked = [fn.parse(name) @ cutoff for name in names for cutoff in (3, 20)]
    one = fn.Rankings.from_lists([grades.max(axis=1)], [scores], intents=grades)
    expected = fn.evaluate(one, asked).values[:, 0]
    orders = 4000
    ranked = np.lexsort((rng.random((orders, len(scores))), np.broadcast_to(-scores, (orders, len(scores)))))
    many = fn.Rankings.from_dense(
        grades.max(axis=1)[ranked],
        np.broadcast_to(-np.arange(len(scores)), ranked.shape),
        intents=grades[ranked].reshape(-1, 4),
    )
    samples = fn.evaluate(many, [measure(ties="input") for measure in asked]).values
    for measure, value, values in zip(asked, expected, samples, strict=True):
        error = max(float(values.std()) / math.sqrt(orders), 1e-15)
        assert abs(values.mean() - value) < 5 * error, measure


# ---- against ndeval ----


def invented(seed, queries=30):
    """Ragged and tied, with documents that are unjudged or were not retrieved, and queries without a relevant one."""
    rng = np.random.default_rng(seed)
    judgments = []
    results = []
    for query in range(queries):
        ids = [f"d{i}" for i in rng.permutation(int(rng.integers(2, 50)))]
        n_intents, top = int(rng.integers(1, 7)), 1 if query % 10 == 0 else 5
        for name in ids:
            judgments += [
                (str(query), f"{query}.{intent}", name, int(rng.integers(-1, top)))
                for intent in range(n_intents)
                if rng.random() < 0.4
            ]
        results += [(str(query), name, float(rng.integers(0, 9)) / 4) for name in ids if rng.random() < 0.7]
    return judgments, results


def as_rankings(judgments, results):
    """Rows by descending score and rising id, which is ndeval's order of the run; the pool by descending id."""
    queries, documents, scores, flags, lengths, pools = (
        list(dict.fromkeys(row[0] for row in judgments)),
        [],
        [],
        [],
        [],
        [],
    )
    for query in queries:
        numbers = {name: i for i, name in enumerate(sorted({t for q, t, *_ in judgments if q == query}))}
        graded = {}
        for q, intent, name, grade in judgments:
            if q == query:
                document = graded.setdefault(name, {})
                if grade >= 0:
                    document[numbers[intent]] = grade
        rows = sorted(((-score, name) for q, name, score in results if q == query))
        documents += [graded.get(name, {}) for _, name in rows]
        scores += [-negative for negative, _ in rows]
        flags += [name in graded for _, name in rows]
        lengths.append(len(rows))
        pools.append([graded[name] for name in sorted(graded, reverse=True)])
    pool = [document for each in pools for document in each]
    best = [
        np.array([max(each.values(), default=0) for each in side], np.int64) for side in (documents, pool)
    ]
    return queries, fn.Rankings.from_groups(
        lengths, best[0], scores, is_judged=np.array(flags, bool), intents=grades_of(documents),
        judged=(np.cumsum([0, *map(len, pools)]), best[1]), judged_intents=grades_of(pool),
    )  # fmt: skip


NDEVAL = {
    "ERR-IA": "ERR_IA",
    "nERR-IA": "nERR_IA",
    "alpha-DCG": "alpha_DCG",
    "alpha-nDCG": "alpha_nDCG",
    "strec": "StRecall",
}


@pytest.mark.parametrize(("alpha", "rel"), [(0.5, 1), (0.5, 2), (0.25, 1), (0.0, 1), (1.0, 3)])
@pytest.mark.rivals
def test_ndeval(alpha, rel):
    pyndeval = pytest.importorskip("pyndeval", reason="pyndeval is not installed")
    compared = 0
    for seed in range(3):
        judgments, results = invented(seed)
        names = [f"{name}@{k}" for name in NDEVAL for k in (1, 2, 5, 20) if alpha == 0.5 or "ERR" not in name]
        evaluator = pyndeval.RelevanceEvaluator(judgments, names, relevance_level=rel, alpha=alpha)
        reference = evaluator.evaluate(results)
        queries, rankings = as_rankings(judgments, results)
        for each in names:
            name, _, cutoff = each.partition("@")
            words = {"ties": "input", "rel": rel}
            if name.startswith("alpha"):
                words["alpha"] = alpha
            if int(cutoff) == 1 and name in ("ERR-IA", "alpha-DCG"):
                words["denominator"] = "none"  # ndeval divides from the second rank on
                scale = np.array([len(relevant_intents(judgments, query, rel)) for query in queries])
                scale = np.where(
                    name == "ERR-IA", 2.0 * scale, 1.0
                )  # and leaves out P(intent) and the factor 1/2
            else:
                scale = np.ones(len(queries))
            got = fn.evaluate(rankings, fn.parse(NDEVAL[name])(**words) @ int(cutoff)).values[0] * scale
            for query, value in zip(queries, got.tolist(), strict=True):
                if query in reference:
                    assert value == pytest.approx(reference[query][each], rel=1e-12, abs=1e-15), (each, query)
                    compared += 1
    assert compared > 500


def relevant_intents(judgments, query, rel):
    return {intent for q, intent, _, grade in judgments if q == query and grade >= rel}


# ---- ways in ----


def write_trec(folder, judgments, results):
    """As messy as real files are: a byte-order mark, comments, blank lines, tabs, more blanks than one."""
    lines = [f"{query} \t{intent}  {name} {grade}" for query, intent, name, grade in judgments]
    lines[3:3] = ["", "# 1 0 d1 1", "   "]
    (folder / "qrels").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    (folder / "run").write_text(
        "".join(f"{query} Q0 {name} 1 {score} me\n" for query, name, score in results)
    )
    return folder / "qrels", folder / "run"


WAYS = ["alpha_nDCG(ties='input')@20", "nERR_IA(ties='input')", "nDCG_IA@10", "StRecall@3", "nDCG@10"]


def test_every_way_in_is_the_same(tmp_path):
    """TREC files, plain and packed, Parquet, tables, dicts and tuples, lines in any order: the bits of rankings made by hand."""
    judgments, results = invented(11)
    queries, by_hand = as_rankings(judgments, results)
    wanted = fn.evaluate(by_hand, WAYS).values
    qrels, run = write_trec(tmp_path, judgments, results)
    packed = tmp_path / "qrels.gz"
    packed.write_bytes(gzip.compress(qrels.read_bytes()))
    columns = dict(
        zip(("query_id", "subtopic", "docid", "rel"), map(list, zip(*judgments, strict=True)), strict=True)
    )
    pq.write_table(pa.table(columns), tmp_path / "qrels.parquet")
    other = pa.table(columns).rename_columns(["query_id", "meaning", "docid", "rel"])
    run_table = pa.table(
        dict(zip(("query_id", "docid", "score"), map(list, zip(*results, strict=True)), strict=True))
    )
    nested = {}
    for query, intent, name, grade in judgments:
        nested.setdefault(query, {}).setdefault(name, {})[intent] = grade
    by_dict = {query: {} for query in queries}
    for query, name, score in results:
        by_dict[query][name] = score
    shuffled = [judgments[i] for i in np.random.default_rng(0).permutation(len(judgments))]
    shuffled.sort(key=lambda row: queries.index(row[0]))
    words = {"ties": "docid_asc"}
    Judgment = namedtuple("Judgment", "query_id iteration doc_id relevance")
    found = {
        "trec": fn.read_trec(qrels, run, intents=True, **words),
        "packed": fn.read_qrels_run(packed, run, intents=True, **words),
        "parquet": fn.read_qrels_run(tmp_path / "qrels.parquet", run, intents=True, **words),
        "named": fn.Rankings.from_qrels_run(other, run_table, intents="meaning", **words),
        "dicts": fn.Rankings.from_qrels_run(nested, by_dict, intents=True, **words),
        "tuples": fn.Rankings.from_qrels_run(map(Judgment._make, shuffled), by_dict, intents=True, **words),
    }
    for way, rankings in found.items():
        assert [str(query) for query in rankings.query_ids.to_pylist()] == queries, way
        assert np.array_equal(fn.evaluate(rankings, WAYS).values, wanted), way


def test_judgments_of_a_query_need_not_stand_together(tmp_path):
    judgments = ["b 1 d2 1", "a 1 d1 1", "b 2 d1 2", "a 2 d3 1", "b 1 d3 1", "a 1 d2 2"]
    (tmp_path / "run").write_text(
        "".join(f"{query} Q0 d{rank} {rank} {1 / rank} tag\n" for query in "ab" for rank in (1, 2, 3))
    )
    values = []
    for number, lines in enumerate((judgments, sorted(judgments))):
        (tmp_path / f"qrels{number}").write_text("\n".join(lines))
        rankings = fn.read_trec(tmp_path / f"qrels{number}", tmp_path / "run", intents=True)
        scores = fn.evaluate(rankings, ["alpha_nDCG@3", "ERR_IA@3", "nDCG_IA@3"])
        values.append(dict(zip(scores.queries[0].to_pylist(), scores.values.T.tolist(), strict=True)))
    assert values[0] == values[1]


def test_refused_judgments(tmp_path):
    qrels, run = write_trec(
        tmp_path, [("1", "a", "d", 1), ("1", "b", "d", 0), ("1", "b", "d", 2)], [("1", "d", 0.5)]
    )
    with pytest.raises(
        InputError,
        match=r'qrels, line 3: document "d" of query "1" has two grades for intent "b", the first at .*line 2',
    ):
        fn.read_trec(qrels, run, intents=True)
    with pytest.raises(
        InputTypeError, match=r"intents=1 is a int; expected True, False or the name of a column"
    ):
        fn.read_qrels_run(qrels, run, intents=1)
    with pytest.raises(
        InputTypeError, match=r"qrels\['1'\]\['d'\] is a int; expected a dict from intent to number"
    ):
        fn.Rankings.from_qrels_run({"1": {"d": 1}}, {"1": {"d": 1.0}}, intents=True)
    table = pa.table({"qid": ["1"], "docid": ["d"], "rel": [1], "score": [0.5]})
    with pytest.raises(
        ColumnError, match=r"no column has a usual name of the intent \(intent, intent_id, subtopic"
    ):
        fn.Rankings.from_qrels_run(table, table, intents=True)


def test_parquet_and_streams(tmp_path):
    """Lists of grades, in long and list-column form, whole and a part at a time, grouped and not: the same bits."""
    rankings = random_rankings(21, 3, queries=1500)
    grades = rankings.intents.grades.reshape(-1, 3).tolist()
    grades = [[grade if grade or i % 3 else None for grade in row] for i, row in enumerate(grades)]
    queries = np.repeat(np.arange(len(rankings)), rankings.lengths)
    table = pa.table({"qid": queries, "rel": rankings.relevance, "score": rankings.scores, "grades": grades})
    order = np.random.default_rng(1).permutation(len(table))
    files = {"grouped": table, "shuffled": table.take(pa.array(order))}
    lists = pa.table(
        {
            name: pa.LargeListArray.from_arrays(rankings.offsets, table[name].combine_chunks())
            for name in ("rel", "score", "grades")
        }
    )
    asked = ["alpha_nDCG@10", "nDCG_IA", "ERR_IA(max_rel=3)@5"]
    wanted = fn.evaluate(fn.Rankings.from_arrow(table, intents="grades"), asked).values
    assert np.array_equal(fn.evaluate(fn.Rankings.from_arrow(lists, intents="grades"), asked).values, wanted)
    for name, rows in files.items():
        pq.write_table(rows, tmp_path / name, row_group_size=10_000)
        whole = fn.evaluate(fn.read_parquet(tmp_path / name, intents="grades"), asked)
        stream = fn.scan_parquet(tmp_path / name, intents="grades", memory="1 MB")
        parts = fn.evaluate(stream, asked)
        assert np.array_equal(parts.values, whole.values)
        assert parts.queries.equals(whole.queries)
        assert sum(1 for _ in stream) > 1
        places = np.argsort(whole.queries[0].to_numpy())
        assert np.array_equal(whole.values[:, places], wanted)
    with pytest.raises(InputTypeError, match='column "rel" is int64; expected a list for each document'):
        fn.read_parquet(tmp_path / "grouped", intents="rel")
    with pytest.raises(ColumnError, match='there is no column "grade" for intents'):
        fn.read_parquet(tmp_path / "grouped", intents="grade")


def test_command_line(tmp_path):
    qrels, run = write_trec(tmp_path, *invented(11))
    result = commands.run("score", "--qrels", qrels, "--run", run, "-m", "alpha_nDCG@20", "--format", "json")
    assert result.exit_code == 0, result.output
    wanted = fn.evaluate(fn.read_trec(qrels, run, intents=True), "alpha_nDCG@20").mean()["alpha_nDCG@20"]
    assert json.loads(result.stdout)["measures"][0]["mean"] == wanted
    assert "iteration" not in result.stderr
    (tmp_path / "plain").write_text("1 0 d1 1\n1 0 d2 1\n")
    plain = ["score", "--qrels", str(tmp_path / "plain"), "--run", str(run), "-m", "StRecall@5"]
    assert "no query has more than one intent" in commands.run(*plain).stderr
    table = pa.table({"qid": [1, 1], "rel": [1, 1], "score": [0.5, 0.1], "per_intent": [[1, 0], [1, None]]})
    pq.write_table(table, tmp_path / "rows.parquet")
    score = ["score", str(tmp_path / "rows.parquet"), "-m", "alpha_nDCG@2"]
    result = commands.run(*score)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "name a list column, as in --intents grades" in result.stderr
    result = commands.run(*score, "--intents", "per_intent", "--format", "csv")
    assert result.exit_code == 0 and "alpha_nDCG@2,1.0" in result.stdout
    assert "intents=per_intent" in result.stderr
    result = commands.run("score", "x", "-m", "alpha_nDCG(ties='best')@2")
    assert result.exit_code == 2 and "is not known: ties is one of 'average', 'input'" in result.stderr


# ---- what is refused ----


def lists(**columns):
    return fn.Rankings.from_lists([[1, 0]], [[0.9, 0.1]], **columns)


BOTH = {"intents": [[1], [0]]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"intents": [[1]]}, "intents has lists for 1 document where there are 2"),
        ({"intents": "ab"}, "intents is a str; .* a list of grades"),
        ({"intents": [["a"], ["b"]]}, "intents holds lists of string"),
        ({"intents": [[1.0, math.nan], [0.0]]}, "grade nan for intent 1 of document 0"),
        ({"judged_intents": [[1]], "judged": ([0, 1], [1])}, "judged_intents was passed without intents"),
        ({**BOTH, "judged": ([0, 1], [1])}, "judged was passed without judged_intents"),
        ({"intents": [[1, 0], [0]], "intent_probabilities": [[1.0]]}, "has 1 for query 0, which has an intent number 1"),
        ({**BOTH, "intent_probabilities": [[1.0, -0.5]]}, "-0.5 for intent 1 of query 0; .* finite numbers from 0"),
        ({**BOTH, "intent_probabilities": [[1.0, 0.5], []]}, "has 2 lists for 1 query"),
    ],
)  # fmt: skip
def test_refused_intents(columns, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        lists(**columns)


@pytest.mark.parametrize(
    ("intents", "notation", "message"),
    [
        (None, "alpha_nDCG@10", r"alpha_nDCG@10 needs a grade of each document for each intent.*intents="),
        ([[1], [0]], "ERR_IA(rel=2, max_rel=4)", "takes grades as they are, because of max_rel"),
        ([[5, 0], [-1]], "ERR_IA(max_rel=4)", r"not defined for grade 5 of an intent.*ERR_IA\(max_rel=5\)"),
        ([[5, 0], [-1]], "nDCG_IA", "not defined for the gain -1 of grade -1 of an intent"),
        ([[5, 0], [-1]], "nDCG_IA(gain=[0, 1, 1, 1, 1, 1])", "the gain nan of grade -1 of an intent"),
        ([[1], [0]], "alpha_nDCG(discount=[1])", "needs a discount for 2 ranks and was given 1"),
        ([[1], [0]], "alpha_DCG(discount=[1, 1])@3", "needs a discount for 3 ranks and was given 2"),
        ([[1], [0]], "alpha_nDCG(ties='worst')", "ties='worst' is not known"),
        ([[1], [0]], "alpha_nDCG(ties='best')", "ties='best' is not known"),
        ([[1], [0]], "alpha_nDCG(alpha=1.5)", "alpha=1.5 is not known: alpha is a number from 0 to 1"),
        ([[1], [0]], "alpha_DCG@100000000", "is divided by the sum over 100000000 perfect documents"),
    ],
)  # fmt: skip
def test_refused_measures(intents, notation, message):
    with pytest.raises((InputError, MeasureError), match=message):
        fn.evaluate(lists(intents=intents), notation)


def test_unusual_input():
    """No query, no document, no intent at all, intents that only the pool has, lists as Arrow has them."""
    assert fn.evaluate(fn.Rankings.from_lists([], [], intents=[]), "alpha_nDCG").values.shape == (1, 0)
    nothing = fn.Rankings.from_lists([[], [0]], [[], [1.0]], intents=[None])
    assert fn.evaluate(nothing, "ERR_IA(empty='nan')").values[0].tolist() == pytest.approx(
        [math.nan] * 2, nan_ok=True
    )
    missed = fn.Rankings.from_lists([[]], [[]], intents=[], judged=([0, 1], [1]), judged_intents=[[1]])
    assert fn.evaluate(missed, ["alpha_nDCG(empty=7)", "alpha_DCG(empty=7)"]).values.tolist() == [
        [0.0],
        [0.0],
    ]
    column = pa.chunked_array(
        [pa.array([[1, None]], pa.list_(pa.int8())), pa.array([None], pa.list_(pa.int8()))]
    )
    for intents in (
        column,
        pa.array([[1, 0], [0, 0]], pa.list_(pa.float32(), 2)),
        pa.array([[7, 7], [1, 0], None], pa.list_(pa.int8(), 2))[1:],
        pa.array([[7, 7], [1, 0], None])[1:],
        pa.array([[1, 0], []], pa.list_view(pa.int16())),
        [[1, 0], None],
        np.array([[True, False]] * 2),
        [[1], []],
    ):
        assert fn.evaluate(lists(intents=intents), "alpha_nDCG@1").values[0].tolist() == [1.0]
    assert "intents" in repr(lists(intents=column))
