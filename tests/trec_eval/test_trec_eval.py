"""trec_eval's output, byte for byte: its own files, pytrec_eval to the last bit, and slow loops for what that lacks."""

import math
import os
import subprocess
import sys
from pathlib import Path

import commands
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import InputError, MeasureError, SourceError
from fastndcg.sources.trec import read_trec
from fastndcg.trec_eval import measures, output
from fastndcg.trec_eval.measures import read_names
from fastndcg.trec_eval.output import read as read_both
from fastndcg.trec_eval.ranking import Ranked

QRELS = "301 0 A 1\n301 0 B 2\n302 0 A 1\n303 0 Z 0\n"
RUN = "301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n303 Q0 A 1 0.5 me\n999 Q0 A 1 0.5 me\n"


@pytest.fixture
def both(tmp_path):
    def write(qrels, run):
        (tmp_path / "qrels").write_text(qrels)
        (tmp_path / "run").write_text(run)
        return tmp_path / "qrels", tmp_path / "run"

    return write


def printed(*arguments, **options):
    return "".join(output.report(*arguments, **options))


def values_of(text):
    """{(measure, query): text}"""
    return {
        tuple(part.strip() for part in line.split("\t")[:2]): line.split("\t")[2]
        for line in text.splitlines()
    }


# ---- trec_eval's own files ----


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("golden", "qrels", "measures", "options"),
    [
        ("out.test", "qrels.test", [], {}),
        ("out.test", "qrels.test.with-comments", [], {}),
        ("out.test.a", "qrels.test", ["all_trec"], {}),
        ("out.test.aq", "qrels.test", ["all_trec"], {"per_query": True}),
        ("out.test.aql", "qrels.rel_level", ["all_trec", "relstring.20"], {"per_query": True, "level": 2}),
    ],
)
def test_its_own_files(data, golden, qrels, measures, options):
    folder = data / "trec_eval"
    text = printed(folder / qrels, folder / "results.test", measures, **options)
    assert text == (folder / golden).read_text()


@pytest.mark.compiled
def test_its_own_file_without_a_query(data, tmp_path):
    # it lacks query 302 and has the first 84 documents of query 303
    folder = data / "trec_eval"
    rows = (folder / "results.test").read_text().splitlines(keepends=True)
    parts = {query: [row for row in rows if row.startswith(query)] for query in ("301", "303")}
    run = tmp_path / "run"
    run.write_text("".join(parts["301"] + parts["303"][:84]))
    text = printed(folder / "qrels.test", run, ["all_trec"], per_query=True, complete=True)
    assert text == (folder / "out.test.aqc").read_text()


@pytest.mark.compiled
@pytest.mark.parametrize(("peer", "release"), [("pytrec_eval", 9), ("trec_eval10", 10)])
def test_a_real_run(data, peer, release):
    import pyarrow.parquet as pq

    folder = data / "robust03"
    names = ["map", "Rprec", "bpref", "recip_rank", "P.10", "ndcg", "ndcg_cut.1,3,5,10,20,100", "map_cut.10", "recall.100", "success.1,5,10"]  # fmt: skip
    text = printed(
        folder / "qrels.robust03.txt.gz", folder / "run.MU03rob01.gz", names, per_query=True, release=release
    )
    got = values_of(text)
    rows = [
        row
        for row in pq.read_table(folder / "reference_per_query.parquet").to_pylist()
        if row["peer"] == peer
    ]
    assert len(rows) >= 1100
    for row in rows:
        wanted = f"{row['value']:6.4f}"
        assert got[row["measure"], row["qid"]] == wanted, row


# ---- pytrec_eval: the same bits, and so the same digits ----

PEER = [name for name, each in measures.DEFINITIONS.items() if each.since == 9 and each.is_standard]
WITH_PARAMETERS = [
    "P.1,3,7", "recall.2,2000", "ndcg_cut.1,4", "map_cut.2", "success.2,3", "iprec_at_recall.0.15,0.25,0.5",
    "Rprec_mult.0.3,3", "11pt_avg.0.25,0.5,0.75", "set_F.0.5", "relative_P.1,6",
]  # fmt: skip


def random_run(generator, n_queries, grades):
    """Ties by the dozen, scores that only float64 tells apart, documents of one side only."""
    qrels, run = {}, {}
    documents = [f"d{number}" for number in range(80)]
    for query in range(n_queries):
        judged = generator.choice(documents, generator.integers(1, 60), replace=False)
        qrels[f"q{query}"] = {doc: int(generator.choice(grades)) for doc in judged} | {"e": 0, "f": 1}
        returned = generator.choice([*documents, "e"], generator.integers(1, 70), replace=False)
        run[f"q{query}"] = {
            doc: float(generator.integers(0, 12)) + 1e-9 * float(generator.integers(0, 2)) for doc in returned
        }
        run[f"q{query}"]["f"] = float(generator.integers(0, 12))  # so that something is judged with -J, too
    return qrels, run


def written(both, qrels, run):
    return both(
        "".join(f"{query} 0 {doc} {grade}\n" for query, docs in qrels.items() for doc, grade in docs.items()),
        "".join(
            f"{query} Q0 {doc} 0 {score!r} tag\n"
            for query, docs in run.items()
            for doc, score in docs.items()
        ),
    )


@pytest.mark.compiled
@pytest.mark.parametrize("grades", [[0, 0, 1, 1, 2, 4], [-2, -1, -1, 0, 1, 2]])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("judged_only", [False, True])
def test_every_bit_of_pytrec_eval(both, grades, level, judged_only):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = random_run(np.random.default_rng([level, judged_only]), 60, grades)
    paths = written(both, qrels, run)
    for names in (PEER, WITH_PARAMETERS):
        peer = pytrec_eval.RelevanceEvaluator(
            qrels, set(names), relevance_level=level, judged_docs_only_flag=judged_only
        )
        wanted = peer.evaluate(run)
        read = read_both(*paths, release=9, level=level, judged_only=judged_only)
        columns = output._columns(read, read_names(names, 9)[0])
        compared = [each for each in columns if each.name not in ("runid", "num_q", "relstring")]
        assert len(compared) == len(columns) - 3 * (names is PEER)
        for column in compared:
            # it names set_F and 11pt_avg without their parameters
            name = column.name if column.name in wanted["q0"] else column.definition.name
            theirs = np.array([wanted[query][name] for query in read.queries], np.float64)
            np.testing.assert_array_equal(np.asarray(column.values, np.float64), theirs, column.name)


@pytest.mark.compiled
@pytest.mark.parametrize("options", [[], ["-c"], ["-M", "7"], ["-J", "-l", "2"], ["-c", "-J"]])
def test_printed_means_are_sums_in_order(both, options):
    """The mean of all queries, digit by digit, from pytrec_eval's values and a loop."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = random_run(np.random.default_rng(11), 48, [0, 1, 2])
    qrels |= {"only-judged": {"d1": 1}, "x": {"d2": 1, "d3": 0}}
    run |= {"only-returned": {"d1": 1.0}}
    paths = written(both, qrels, run)
    result = commands.run("trec_eval", "--release", "9", "-m", "P", "-m", "map", "-m", "set_F", "-m", "num_ret", "-m", "gm_map", *options, *map(str, paths))  # fmt: skip
    assert result.exit_code == 0, result.stderr
    if "-M" in options:
        # pytrec_eval cannot cut: its order is falling score as float32, then falling id
        run = {
            query: dict(
                sorted(docs.items(), key=lambda item: (np.float32(item[1]), item[0]), reverse=True)[:7]
            )
            for query, docs in run.items()
        }
    level = 2 if "-l" in options else 1
    peer = pytrec_eval.RelevanceEvaluator(
        qrels,
        {"P", "map", "set_F", "num_ret", "gm_map"},
        relevance_level=level,
        judged_docs_only_flag="-J" in options,
    )
    values = peer.evaluate(run)
    queries = sorted(values)
    divisor = len(qrels) if "-c" in options else len(queries)
    got = values_of(result.stdout)
    assert len(got) == 13
    for (name, query), text in got.items():
        assert query == "all"
        total = 0.0
        for each in queries:
            total += values[each][name]
        if name == "num_ret":
            assert text == str(int(total))
        elif name == "gm_map":
            total += (divisor - len(queries)) * math.log(0.00001)
            assert text == f"{math.exp(total / divisor):6.4f}"
        else:
            assert text == f"{total / divisor:6.4f}"


@pytest.mark.compiled
def test_borderline_means(both):
    """Eight queries and cutoffs of 1000: a quarter of such means end in a 5, and the last bit of the sum decides."""
    generator = np.random.default_rng(3)
    moved = 0
    for _ in range(30):
        hits = generator.integers(0, 40, 8)
        qrels = "".join(f"{q} 0 d{i} 1\n" for q in range(8) for i in range(40))
        run = "".join(f"{q} Q0 d{i} 0 1 t\n" for q, n in enumerate(hits) for i in range(n)) + "".join(
            f"{q} Q0 none 0 0 t\n" for q in range(8)
        )
        total = 0.0
        for n in hits:
            total += n / 1000
        text = printed(*both(qrels, run), ["P.1000"])
        assert text == f"{'P_1000':<22}\tall\t{total / 8:6.4f}\n"
        moved += f"{total / 8:6.4f}" != f"{math.fsum(hits / 1000) / 8:6.4f}"
    assert moved


# ---- what pytrec_eval lacks, and what release 10 does otherwise, in slow loops ----


class Slow:
    """One query as trec_eval has it: ranked grades (-1 outside the pool, -2 unjudged in it), and the grades of the pool."""

    def __init__(self, qrels, run, gains=None):
        self.pool = [grade for grade in qrels.values() if grade >= 0]
        ranked = sorted(run.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)
        self.grades = [-1 if doc not in qrels else -2 if qrels[doc] < 0 else qrels[doc] for doc, _ in ranked]
        self.gain = lambda grade: (gains or {}).get(grade, max(grade, 0))
        self.gains = [self.gain(grade) for grade in self.grades]
        self.best = sorted((self.gain(grade) for grade in self.pool if self.gain(grade) > 0), reverse=True)
        self.ideal = sorted((grade for grade in self.pool if grade > 0), reverse=True)

    def dcg(self):
        return sum(max(grade, 0) / math.log2(rank + 2) for rank, grade in enumerate(self.grades))

    def ideal_dcg(self):
        return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(self.ideal))

    def ndcg_before(self, rank):
        """nDCG of the ranks before `rank`, which counts from 0."""
        dcg = sum(gain / math.log2(place + 2) for place, gain in enumerate(self.gains[:rank]))
        return dcg / sum(gain / math.log2(place + 2) for place, gain in enumerate(self.best[:rank]))

    def ndcg_rel(self):
        at = [rank + 1 for rank, gain in enumerate(self.gains) if gain > 0]
        total = sum(map(self.ndcg_before, at))
        total += (len(self.best) - len(at)) * self.ndcg_before(max(len(self.gains), len(self.best)))
        return total / len(self.best) if total > 0 else 0.0

    def rndcg(self):
        at = [rank for rank in range(1, len(self.best)) if self.best[rank] != self.best[rank - 1]]
        at.append(len(self.best))
        if len(self.best) + 1 < len(self.gains):
            at.append(len(self.gains))
        return sum(map(self.ndcg_before, at)) / len(at) if any(grade >= 1 for grade in self.pool) else 0.0

    def g(self):
        total = 0.0
        for rank, gain in enumerate(self.gains):
            cost = sum(max(self.best[place] if place < len(self.best) else 0, 1) for place in range(rank + 1))
            if gain:
                total += gain / math.log2(2 + cost - sum(self.gains[: rank + 1]))
        return total / sum(self.best)

    def rbp(self, p=0.9):
        scale = max([1, *self.pool])
        return (1 - p) * sum(max(grade, 0) / scale * p**rank for rank, grade in enumerate(self.grades))

    def rbp_resid(self, p=0.9):
        unjudged = [p**rank for rank, grade in enumerate(self.grades) if grade < 0]
        return p ** len(self.grades) + (1 - p) * sum(unjudged) if unjudged else 0.0

    def yaap(self):
        hits, total = 0, 0.0
        for rank, grade in enumerate(self.grades, 1):
            if grade >= 1:
                hits += 1
                total += hits / rank
        return math.log((1 + total) / (1 + len(self.ideal) - total))

    def iprec(self, share):
        exact = share * len(self.ideal)
        needed = math.floor(exact) + (exact - math.floor(exact) >= 0.5)
        hits, best = 0, 0.0
        for rank, grade in enumerate(self.grades, 1):
            hits += grade >= 1
            if hits >= needed:
                best = max(best, hits / rank)
        return best if hits >= needed else 0.0


@pytest.mark.compiled
def test_slow_loops(both):
    qrels, run = random_run(np.random.default_rng(5), 80, [-1, 0, 0, 1, 2, 3])
    names = ["dcg", "ideal_dcg", "rbp", "rbp_resid", "yaap", "unj.4,9", "iprec_at_recall"]
    paths = written(both, qrels, run)
    got = values_of("".join(printed(*paths, each, per_query=True) for each in (["rbp.p=0.5"], names)))
    for query in run:
        slow = Slow(qrels[query], run[query])
        wanted = {name: getattr(slow, name)() for name in ("dcg", "ideal_dcg", "yaap", "rbp", "rbp_resid")}
        wanted |= {f"unj_{k}": sum(grade < 0 for grade in slow.grades[:k]) / k for k in (4, 9)}
        wanted |= {f"iprec_at_recall_{tenth / 10:.2f}": slow.iprec(tenth / 10) for tenth in range(11)}
        for name, value in (wanted | {"rbp_p=0.5": slow.rbp(0.5)}).items():
            assert got[name, query] == f"{value:6.4f}", name
    older = values_of(printed(*paths, ["iprec_at_recall"], per_query=True, release=9))
    assert sum(older[key] != got[key] for key in older) > 100


@pytest.mark.compiled
@pytest.mark.parametrize(
    "gains", [{}, {1: 3.5, 2: 9.0, 4: 7.0}, {0: 1.0, 1: 4.0, 3: 0.0}, {1: 2.5, 2: 2.5, -1: 0.5}]
)
def test_gains_by_name(both, gains):
    qrels, run = random_run(np.random.default_rng(8), 60, [0, 0, 1, 2, 3])
    text = "." * bool(gains) + ",".join(f"{grade}={gain:g}" for grade, gain in gains.items())
    names = [f"{name}{text}" for name in ("ndcg", "ndcg_rel", "Rndcg", "G")]
    got = values_of(printed(*written(both, qrels, run), names, per_query=True))
    for query in run:
        slow = Slow(qrels[query], run[query], gains)
        of_all = slow.ndcg_before(max(len(slow.gains), len(slow.best)))
        for name, value in zip(names, (of_all, slow.ndcg_rel(), slow.rndcg(), slow.g()), strict=True):
            assert got[name.replace(".", "_", 1), query] == f"{value:6.4f}", (name, query)


OURS = {
    "map": "AP", "Rprec": "Rprec", "bpref": "Bpref", "recip_rank": "RR", "infAP": "infAP", "ndcg": "nDCG",
    "P.5,10,1000": "P@5,10,1000", "recall.5,10": "R@5,10", "ndcg_cut.5,10": "nDCG@5,10", "map_cut.5,10,100": "AP@5,10,100",
    "success.1,5": "Success@1,5", "set_P": "SetP", "set_recall": "SetR", "set_F": "SetF", "set_map": "SetAP",
    "set_relative_P": "SetP(relative=True)", "num_ret": "NumRet", "num_rel": "NumRel", "num_rel_ret": "NumRet(rel=1)",
    "iprec_at_recall": ", ".join(f"IPrec(rounding='nearest')@{tenth / 10:g}" for tenth in range(11)),
}  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize(("level", "judged_only"), [(1, False), (2, False), (1, True)])
def test_the_measures_of_this_package_are_the_same(both, level, judged_only):
    qrels, run = random_run(np.random.default_rng(6), 80, [-1, 0, 0, 1, 2, 3])
    paths = written(both, qrels, run)
    rankings = read_trec(*paths)
    read = read_both(*paths, level=level, judged_only=judged_only)
    at = [rankings.query_ids.to_pylist().index(query) for query in read.queries]
    words = (
        {"ties": "input"}
        | ({"rel": level} if level > 1 else {})
        | ({"judged_only": True} if judged_only else {})
    )
    for theirs, ours in OURS.items():
        if (level > 1 and theirs.startswith(("ndcg", "num_ret"))) or (
            judged_only and theirs in ("bpref", "infAP", "num_rel")
        ):
            continue  # which know no level, or need the documents that are left out
        measures = [
            measure(**{name: value for name, value in words.items() if name in measure.params})
            for measure in fn.parse_many(ours)
        ]
        values = fn.evaluate(rankings, measures).values[:, at]
        columns = output._columns(read, read_names([theirs])[0])
        for mine, column in zip(values, columns, strict=True):
            np.testing.assert_allclose(mine, column.values, rtol=0, atol=1e-12, err_msg=theirs)


@given(
    st.lists(st.lists(st.integers(-2, 3), max_size=9), min_size=1, max_size=5),
    st.lists(st.floats(0, 1), min_size=1, max_size=4, unique=True),
)
def test_recall_levels_in_any_order(lists, shares):
    """11pt_avg takes its levels as they come; those of iprec_at_recall rise."""
    offsets = np.cumsum([0, *map(len, lists)])
    grades = np.array([grade for each in lists for grade in each], np.int64)
    pool = np.where(grades < 0, 0, grades)
    ranked = Ranked(offsets, grades, offsets, pool, 1, 0, 9)
    got = measures.eleven_points(ranked, shares)
    for query, each in enumerate(lists):
        relevant = found = sum(grade >= 1 for grade in each)
        cuts = [int(share * relevant + 0.9) for share in shares]
        current, total = len(cuts) - 1, 0.0
        while current >= 0 and cuts[current] > found:
            current -= 1
        best = found / len(each) if each else math.nan
        so_far = found
        for rank in range(len(each), 0, -1):
            if so_far == 0:
                break
            best = max(best, so_far / rank)
            if each[rank - 1] >= 1:
                while current >= 0 and cuts[current] == so_far:
                    total += best
                    current -= 1
                so_far -= 1
        for _ in range(current + 1):
            total += best
        np.testing.assert_array_equal(got[query], total / len(cuts))


# ---- the command ----


@pytest.mark.compiled
def test_queries_and_summaries(both):
    paths = [str(path) for path in both(QRELS, RUN)]
    both_parts = commands.run("trec_eval", "-q", "-mmap", "-m", "num_q", *paths)
    assert both_parts.stdout == (
        f"{'map':<22}\t301\t0.2500\n{'map':<22}\t303\t0.0000\n{'num_q':<22}\tall\t2\n{'map':<22}\tall\t0.1250\n"
    )
    assert both_parts.stderr == ""
    assert commands.run("trec_eval", "-q", "-n", "-mmap", *paths).stdout == "".join(
        both_parts.stdout.splitlines(keepends=True)[:2]
    )
    complete = values_of(commands.run("trec_eval", "-qc", "-m", "map", "-m", "utility.1,-1,0,0", "-m", "num_ret", "-m", "relstring", *paths).stdout)  # fmt: skip
    assert complete["map", "302"] == "0.0000"
    assert complete["map", "all"] == "0.0833"
    assert complete["num_ret", "302"] == "0"
    assert complete["relstring", "302"] == "''"
    # a stand-in that trec_eval 10 forgets to take back where a name has parameters
    assert complete["utility_1,-1,0,0", "302"] == "-1.0000"
    older = values_of(commands.run("trec_eval", "-qc", "--release", "9", "-m", "map", *paths).stdout)
    assert ("map", "302") not in older
    assert older["map", "all"] == "0.0833"


NAMES = ["10", "9", "é", "B", "a", "z"]
APART = ("q 0 a 1\n", "q Q0 a 1 1.0000000002 t\nq Q0 b 1 1.0000000001 t\n", ["recip_rank"])
SMALL = [  # judgments, a run, measures, options, and the fields of the lines
    # queries are in the order of their bytes
    ("".join(f"{name} 0 A 1\n" for name in NAMES), "".join(f"{name} Q0 A 1 1 t\n" for name in reversed(NAMES)), ["map"],
     {"per_query": True, "summary": False}, [("map", name, "1.0000") for name in sorted(NAMES, key=str.encode)]),
    # scores that only one release tells apart
    (*APART, {}, [("recip_rank", "all", "1.0000")]), (*APART, {"release": 9}, [("recip_rank", "all", "0.5000")]),
    # nothing left to rank: 0/0, as the C library prints it
    ("q 0 A 1\n", "q Q0 B 1 1 t\n", ["iprec_at_recall.0,1", "P.5", "Rprec_mult.1"], {"judged_only": True},
     [("iprec_at_recall_0.00", "all", "  -nan"), ("iprec_at_recall_1.00", "all", "0.0000"), ("P_5", "all", "0.0000"), ("Rprec_mult_1.00", "all", "0.0000")]),
    # tags of several words, and the last line
    (QRELS, "301 Q0 B 1 2 first tag\n\n301 Q0 A 2 1 second tag\n# the end\n\n", ["runid"], {}, [("runid", "all", "second")]),
]  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize(("qrels", "run", "measures", "options", "lines"), SMALL)
def test_small_files(both, qrels, run, measures, options, lines):
    text = printed(*both(qrels, run), measures, **options)
    assert text == "".join(f"{name:<22}\t{query}\t{value}\n" for name, query, value in lines)


@pytest.mark.compiled
def test_the_last_line_of_blocks(both):
    rows = "".join(f"301 Q0 d{row} 1 {row} tag{row}\n" for row in range(60_000))
    comments = "# no row\n" * 200_000
    paths = both(QRELS, rows + comments)
    assert printed(*paths, ["runid"]).split()[-1] == "tag59999"
    assert printed(*paths, ["runid"], threads=1).split()[-1] == "tag59999"


@pytest.mark.compiled
def test_standard_input(both):
    qrels, run = both(QRELS, RUN)
    finished = subprocess.run(
        [sys.executable, "-m", "fastndcg", "trec_eval", "-m", "num_ret", str(qrels), "-"],
        input=Path(run).read_bytes(),
        capture_output=True,
        check=True,
    )
    assert finished.stdout == f"{'num_ret':<22}\tall\t3\n".encode()


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
@pytest.mark.parametrize("packed", [False, True])
def test_pipes(both, packed):
    paths = [str(path) for path in both(QRELS, RUN)]
    asked = [sys.executable, "-m", "fastndcg", "trec_eval", "-R", "qrels", "-m", "map"]
    plain = subprocess.run([*asked, *paths], capture_output=True, check=True)
    by = f"{'gzip -c' if packed else 'cat'} "
    words = " ".join(f'<({by} "{path}")' for path in paths)
    piped = subprocess.run(
        ["/bin/bash", "-c", f'"$@" {words}', "bash", *asked], check=False, capture_output=True, timeout=60
    )
    assert (piped.returncode, piped.stdout) == (0, plain.stdout) != (0, b""), piped.stderr


@pytest.mark.compiled
def test_what_trec_eval_passes_over_in_silence_is_said(both):
    paths = [str(path) for path in both("301 0 A 1.5\n", "301 Q0 A 1 2 me\n")]
    result = commands.run("trec_eval", "-m", "P.5", "-m", "P.10", "-m", "set.3", *paths)
    assert result.exit_code == 0
    assert "P_5 " in result.stdout
    assert "P_10" not in result.stdout
    assert "P.10: P has the parameters 5 already; these have no effect\n" in result.stderr
    assert "set.3: a set of measures takes no parameters; they have no effect\n" in result.stderr
    assert (
        "grades have a fraction, 1 in all, the first is 1.5; the fraction is dropped, as in trec_eval\n"
        in result.stderr
    )


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("mapp", 'trec_eval 10 has no measure "mapp". Did you mean "map"? `fastndcg trec_eval --measures`'),
        ("prefs_simp", "trec_eval itself computes measures of preferences, with -R prefs"),
        ("P.", 'P got the parameters ""; expected for example P.5,10,15,20'),
        ("P.0", 'P got the parameters "0"; expected for example P.5,10,15,20'),
        ("P.5,5", 'P got the parameters "5,5"'),
        ("P.x", 'P got the parameters "x"'),
        ("iprec_at_recall.nan", 'iprec_at_recall got the parameters "nan"'),
        ("ndcg.5", 'ndcg got the parameters "5"; expected for example ndcg.1=3.5,2=9'),
        ("ndcg.p=5", 'ndcg got the parameters "p=5"'),
        ("utility.1", 'utility got the parameters "1"; expected for example utility.1,-1,0,0'),
        ("map.5", 'map got the parameters "5"; expected for example map'),
    ],
)  # fmt: skip
def test_measures_that_there_are_not(both, measure, message):
    with pytest.raises(MeasureError) as error:
        read_names([measure])
    assert message in str(error.value)
    result = commands.run("trec_eval", "-m", measure, *(str(path) for path in both(QRELS, RUN)))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("form", ["prefs", "qrels_jg"])
def test_other_forms_of_judgments_are_refused(both, form):
    result = commands.run("trec_eval", "-R", form, *map(str, both(QRELS, RUN)))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{form} is not supported; expected qrels. Use trec_eval itself for {form}\n" in result.stderr


@pytest.mark.compiled
def test_measures_of_the_other_release():
    with pytest.raises(MeasureError, match='trec_eval 9 has no measure "rbp"'):
        read_names(["rbp"], 9)
    assert {"rbp", "unj"} <= {each.definition.name for each in read_names(["all_trec"])[0]}
    assert not {"rbp", "unj"} & {each.definition.name for each in read_names(["all_trec"], 9)[0]}


@pytest.mark.compiled
def test_files_that_are_not_what_was_meant(both, tmp_path):
    qrels, run = both(QRELS, "999 Q0 A 1 0.5 me\n")
    with pytest.raises(InputError, match='have no query in common: "301", "302", "303" there, "999" here'):
        printed(qrels, run)
    run.write_text("301 Q0 A 1 nan me\n")
    with pytest.raises(
        InputError, match='run, line 1: the score of document "A" of query "301" is NaN; 1 in all'
    ):
        printed(qrels, run)
    run.write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="run is Parquet; expected a TREC file"):
        printed(qrels, run)
    result = commands.run("trec_eval", str(qrels), str(tmp_path / "nothing"))
    assert (result.exit_code, result.stdout) == (3, "")
    assert "nothing does not exist" in result.stderr


@pytest.mark.compiled
def test_help_lists_the_options_and_the_measures():
    for option in ("-h", "--help"):
        assert "--level_for_rel" in commands.run("trec_eval", option).stdout
    listed = commands.run("trec_eval", "--measures").stdout
    assert all(f"\n{name} " in f"\n{listed}" for name in (*measures.DEFINITIONS, *measures.SETS))
