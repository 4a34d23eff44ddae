"""Preferences as trec_eval counts them: what it printed for random files, slow loops, and what is refused."""

import gzip
import json
from itertools import combinations, permutations
from pathlib import Path

import commands
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastndcg.errors import InputError, MeasureError, SourceError
from fastndcg.trec_eval import preferred
from fastndcg.trec_eval.asked import read_names
from fastndcg.trec_eval.printed import report

# of random files: what trec_eval 9.0.8 and 10.0 printed
GOLDEN = json.loads(Path(__file__).with_name("preferences.json").read_text(encoding="utf-8"))
RUN = "q 0 a 1 3 me\nq 0 b 1 2 me\nq 0 x 1 1 me\n"


@pytest.fixture
def both(tmp_path):
    def write(preferences, run=RUN):
        (tmp_path / "preferences").write_text(preferences, encoding="utf-8")
        (tmp_path / "run").write_text(run, encoding="utf-8")
        return tmp_path / "preferences", tmp_path / "run"

    return write


def values_of(*files, form="prefs", **options):
    text = "".join(report(*files, ["all_prefs"], form=form, per_query=True, **options))
    found = {}
    for line in text.splitlines():
        name, query, value = line.split("\t")
        found[name.strip().removeprefix("prefs_"), query] = (
            value if name.startswith("runid") else float(value)
        )
    return found


@pytest.mark.parametrize("block", [1, 1 << 18])
@pytest.mark.parametrize("case", GOLDEN)
def test_what_trec_eval_printed(both, case, block, monkeypatch):
    monkeypatch.setattr(preferred, "_BLOCK", block)  # so that each query is counted alone, too
    files = map(str, both(case["preferences"], case["run"]))
    words = ["--release", str(case["release"]), "-R", case["form"], *case["words"]]
    result = commands.run("trec_eval", *words, *files)
    assert (result.exit_code, result.stdout) == (0, case["printed"])


@pytest.mark.parametrize("seed", range(6))
def test_slow_loops(both, seed):
    generator = np.random.default_rng(seed)
    docs, lines = [f"d{number}" for number in range(9)], []
    groups = {}  # of judges: pairs of documents, the first of which is preferred
    for name in "abc"[: 1 + seed % 3]:
        level, ordered = dict(zip(docs, generator.integers(1, 6, 9).tolist(), strict=True)), set()
        for subgroup in range(1 + seed % 4):
            some = generator.permutation(docs)[: generator.integers(2, 8)].tolist()
            lines += [f"q {name} {subgroup} {doc} {level[doc]}\n" for doc in some]
            ordered |= {pair for pair in permutations(some, 2) if level[pair[0]] > level[pair[1]]}
        for _ in docs:
            ordered |= {(one, last) for one, two in ordered for other, last in ordered if two == other}
        groups[name] = ordered
    ranked = generator.permutation(docs)[:6].tolist()
    files = both("".join(lines), "".join(f"q 0 {doc} 0 {-rank} me\n" for rank, doc in enumerate(ranked)))
    found = values_of(*files)
    place = {doc: ranked.index(doc) if doc in ranked else 99 for doc in docs}

    def share(pairs):
        return sum(place[one] < place[two] for one, two in pairs) / len(pairs) if pairs else 0

    for ending, least in (("", 0), ("_imp", 1), ("_ret", 2)):
        kept = {
            name: [pair for pair in ordered if sum(doc in ranked for doc in pair) >= least]
            for name, ordered in groups.items()
        }
        every = [pair for pairs in kept.values() for pair in pairs]
        of_pairs = [
            share([pair for pair in every if set(pair) == {one, two}])
            for one, two in combinations(docs, 2)
            if {(one, two), (two, one)} & set(every)
        ]
        assert found[f"simp{ending}", "q"] == pytest.approx(share(every), abs=5.1e-5)
        assert found[f"pair{ending}", "q"] == pytest.approx(np.mean(of_pairs or [0]), abs=5.1e-5)
        assert found[f"avgjg{ending}", "q"] == pytest.approx(
            np.mean([*map(share, kept.values())]), abs=5.1e-5
        )


def test_a_thousand_documents_in_order(both):
    lines = "".join(f"q me - d{number} {1000 - number}\n" for number in range(1000))
    run = "".join(f"q 0 d{number} 1 {-number} me\n" for number in range(600))
    found = values_of(*both(lines + "q you 0 d0 1\nq you 1 d1 0\n", run))
    assert found["num_prefs_poss", "q"] == 499_500
    assert found["num_prefs_ful_ret", "q"] == 600 * 599 / 2
    assert found["num_prefs_ful", "q"] == 600 * 599 / 2 + 600 * 400
    assert found["pair_imp", "q"] == found["pair_ret", "q"] == 1


def test_a_chain_of_pairs_orders_all(both):
    lines = "".join(f"q me {at} d{at} 2\nq me {at} d{at + 1} 1\n" for at in range(40))
    found = values_of(*both(lines, "".join(f"q 0 d{at} 1 {at} me\n" for at in range(41))))
    assert (found["num_prefs_poss", "q"], found["simp", "q"]) == (41 * 40 / 2, 0)


def test_comments_blanks_and_packed_files(both, tmp_path):
    plain, run = both("q j s a 1\nq j s b 0\nq k s b 1\nq k s a 0\n")
    wanted = values_of(plain, run)
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(b"# judges\n\nq\tj\ts\ta\t1\r\n  q j  s b 0.0 \nq k s b 1\nq k s a 0"))
    assert values_of(packed, run) == wanted
    assert wanted["simp", "q"] == wanted["pair", "q"] == wanted["avgjg", "q"] == 0.5


def test_tied_documents_are_ordered_by_rising_id(both):
    """Where those of all other forms of judgments are ordered by falling id."""
    files = both("q j s a 1\nq j s b 0\n", "q 0 b 1 1 me\nq 0 a 1 1 me\n")
    assert values_of(*files)["simp", "q"] == 1


def test_levels_that_only_one_release_tells_apart(both):
    files = both("q j s a 1.000000001\nq j s b 1\n")
    assert values_of(*files)["num_prefs_poss", "q"] == 1
    assert values_of(*files, release=9)["num_prefs_poss", "q"] == 0


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("q j s a 1\nq j s b\n", "prefs", 'preferences, line 2: 4 fields in "q j s b"; wanted a line of preferences: query group subgroup doc level'),
        ("301 0 a 1\n", "prefs", 'preferences, line 1: 4 fields in "301 0 a 1"; wanted a line of preferences'),
        ("q j s a 1\n", "qrels_prefs", 'line 1: 5 fields in "q j s a 1"; wanted a line of a TREC qrels file'),
        ("# none\nq j s a high\n", "prefs", 'preferences, line 2: "high" is not a number in "q j s a high"; wanted'),
        ("# none\n", "prefs", "preferences has no preferences; wanted at least one: a line of preferences"),
        ("", "qrels_prefs", "preferences has no preferences; wanted at least one: a line of a TREC qrels"),
        ("q j s a 1\nq j s b nan\n", "prefs", 'line 2: grade nan of document "b" of query "q"; 1 in all'),
        ("q j s a 1\nq j s b 2\nq j s a 2\n", "prefs", 'line 3: document "a" of query "q" has the level 2, and 1 of the same judges at'),
        ("q j a 1\nq j a 0\n", "qrels_prefs", 'line 2: document "a" of query "q" has the level 0, and 1 of the same judges at'),
        ("q j s a 1\nq j t a 0\n", "prefs", 'line 2: document "a" of query "q" has the level 0, and 1 of the same judges at'),
        ("q j s a 2\nq j s b 1\nq j t b 2\nq j t c 1\nq j u c 2\nq j u a 1\n", "prefs", 'line 3: the judges of its group prefer document "b" of query "q" to document "a", and that to this'),
        ("z j s a 1\n", "prefs", 'have no query in common: "z" there, "q" here'),
    ],
)  # fmt: skip
def test_files_that_are_refused(both, text, form, message):
    files = both(text)
    with pytest.raises((InputError, SourceError)) as error:
        "".join(report(*files, ["prefs"], form=form))
    assert message in str(error.value)
    result = commands.run("trec_eval", "-R", form, "-m", "prefs", *map(str, files))
    assert (result.exit_code, result.stdout) == (3, "")
    assert message in result.stderr


def test_tables_are_refused(both, tmp_path):
    pq.write_table(pa.table({"query": [1]}), tmp_path / "table.parquet")
    with pytest.raises(SourceError, match="table.parquet is Parquet; wanted a TREC file"):
        values_of(tmp_path / "table.parquet", both("")[1])


@pytest.mark.parametrize(
    ("form", "measures", "message"),
    [
        ("prefs", ["map"], "map is not computed of -R prefs, preferences; wanted -R qrels, or -m all_prefs"),
        ("qrels_prefs", ["prefs", "P.5"], "P is not computed of -R qrels_prefs, judgments as preferences; wanted -R qrels, or -m all_prefs"),
        ("prefs", [], "num_ret is not computed of -R prefs, preferences; wanted -R qrels, or -m all_prefs"),
        ("prefs", ["map_avgjg"], "map_avgjg is not computed of -R prefs, preferences; wanted -R qrels_jg, or -m all_prefs"),
        ("qrels", ["prefs_pair_ret"], "prefs_pair_ret is not computed of -R qrels, judgments; wanted -R prefs or -R qrels_prefs, or -m official"),
        ("qrels_jg", ["all_prefs"], "prefs_num_prefs_poss is not computed of -R qrels_jg, judgments of several groups; wanted -R prefs"),
        ("prefs", ["prefs_simp.5"], "prefs_simp takes no parameters, and was given 5"),
    ],
)  # fmt: skip
def test_measures_that_are_refused(both, form, measures, message):
    with pytest.raises(MeasureError) as error:
        read_names(measures, form=form)
    assert message in str(error.value)
    words = [word for measure in measures for word in ("-m", measure)]
    result = commands.run("trec_eval", "-R", form, *words, *map(str, both("q j s a 1\n")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_forms_that_there_are_not(both):
    result = commands.run("trec_eval", "--Rel_info_format", "pref", *map(str, both("q j s a 1\n")))
    assert result.exit_code == 2
    assert "pref is not read here; wanted one of qrels, qrels_jg, prefs, qrels_prefs" in result.stderr


def test_levels_below_0_are_said(both):
    result = commands.run(
        "trec_eval", "-R", "qrels_prefs", "-m", "prefs", *map(str, both("q 0 a 1\nq 0 b -1\n"))
    )
    assert "preferences, line 2: level -1; 1 are below 0" in result.stderr
    assert "prefs_simp            \tall\t1.0000\n" in result.stdout
