"""`fastndcg compare`: the numbers of `fn.compare` from files of every kind, and its gates; slices of `score`."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, only_line, rows, run

import fastndcg as fn
from fastndcg.common.table import name_of

pytest.importorskip("scipy")

QUERIES, DOCUMENTS = 118, 9
COUNTRIES = ["de", "fr", None, "jp"]
THREE = "base.parquet better.parquet worse.parquet"
PAIR = "base.parquet better.parquet -m nDCG@5"
STORED = """-m nDCG@5 -m "nDCG(gain='exp2', empty='nan')@3" -m "nDCG(empty='skip')@3" """


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Predictions of three systems over the same documents, each with its rows in another order, one with a query less."""
    folder = tmp_path_factory.mktemp("systems")
    random = np.random.default_rng(3)
    n = QUERIES * DOCUMENTS
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    grades = random.integers(0, 4, n)
    grades[query % 17 == 0] = 0  # empty queries
    base = np.round(grades + random.normal(0, 2.0, n), 1)  # with ties
    columns = {
        "qid": [f"q-{one}" for one in query],
        "docno": np.tile(np.arange(DOCUMENTS), QUERIES),
        "label": grades,
        "country": [COUNTRIES[one % 4] for one in query],
        "device": query % 2,
        "user": query // 3,
        "importance": (1 + query % 5).astype(np.float64),
    }
    scores = {
        "base": base,
        "better": grades + random.normal(0, 1.0, n),
        "worse": np.where(query % 4 == 1, -grades, base),  # in France alone
    }
    for name, values in scores.items():
        system = pa.table(columns | {"score": values}).take(pa.array(random.permutation(n)))
        pq.write_table(system, folder / f"{name}.parquet")
    pq.write_table(pa.table(columns | scores), folder / "wide.parquet")
    return folder


@pytest.fixture(autouse=True)
def folder(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in files.iterdir():
        Path(path.name).symlink_to(path)
    return tmp_path


def scores_of(name, measures="nDCG@5", **options):
    return fn.evaluate(fn.read_parquet(f"{name}.parquet", **options), measures)


def compared(names, measures="nDCG@5", keep=(), **options):
    return fn.compare({name: scores_of(name, measures, keep=keep) for name in names.split()}, **options)


def rows_of(line, *words):
    return facts(f"compare {line}", *words)["rows"]


def near(found, comparison):
    """The same numbers, NaN as null."""
    return found == [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in comparison.rows
    ]  # fmt: skip


OPTIONS = [
    ("", {}),
    ("--test randomisation --resamples 500 --seed 7", {"test": "randomisation", "resamples": 500, "seed": 7}),
    ("--test permutation --resamples 300 --baseline base", {"test": "randomisation", "resamples": 300, "baseline": "base"}),
    ("--correction bh", {"correction": "bh"}),
    ("--correction holm --confidence 0.9 --tolerance 0.05", {"correction": "holm", "confidence": 0.9, "tolerance": 0.05}),
    ("--cluster user", {"cluster": "user"}),
    ("--unpaired", {"paired": False}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options"), OPTIONS, ids=[case[0] for case in OPTIONS])
def test_files_give_the_numbers_of_compare(words, options):
    measures, kept = ["nDCG@5", "RR", "nDCG(empty='skip')@3"], ["user"] if "cluster" in options else []
    found = rows_of(f"""{THREE} {words} -m nDCG@5 -m RR -m "nDCG(empty='skip')@3" """)
    assert near(found, compared("base better worse", measures, kept, **options))


def test_weights_and_columns_of_scores():
    systems = {name: scores_of("wide", "nDCG@10", score=name, weight="importance") for name in ("worse", "better", "base")}  # fmt: skip
    words = "wide.parquet --score worse --score better --score base --weight importance"
    assert near(rows_of(words), fn.compare(systems))
    assert run(f"score {words} -m nDCG@10 --out stored.parquet").exit_code == 0
    assert near(rows_of("stored.parquet"), fn.compare(systems))  # results bring their weights with them


def without_signatures(whole):
    for system in whole["systems"]:
        assert len(system.pop("signatures")) == len({row["measure"] for row in whole["rows"]})
    return whole


@pytest.mark.parametrize("ending", ["csv", "jsonl", "feather"])
def test_stored_results_of_any_kind(ending):
    """Text has no metadata and no NaN: measures are read from their spelling, and an empty field is no value."""
    for kind in ("parquet", ending):
        Path(kind).mkdir()
        for name in ("base", "better"):
            assert run(f"score {name}.parquet {STORED} --keep user --out {kind}/{name}.{kind}").exit_code == 0
    expected = without_signatures(facts("compare parquet/base.parquet parquet/better.parquet --by user"))
    texts = f"{ending}/base.{ending} {ending}/better.{ending}"
    assert without_signatures(facts(f"compare {texts} --by user")) == expected  # text does not store digests
    assert rows_of(f"{ending}/base.{ending} parquet/better.parquet") == expected["rows"]
    assert run(f"compare {texts} -m nDCG@5 --no-worse-than base --margin 1").exit_code == 0
    again = run(f"score {ending}/base.{ending} --fail-under nDCG@5=2")
    assert again.exit_code == 1 and "118 queries, stored results" in again.stderr


def test_stored_results_are_as_good_as_predictions():
    Path("s").mkdir()
    for name in ("base", "better", "worse"):
        assert run(f"score {name}.parquet {STORED} --out s/{name}.parquet").exit_code == 0
    expected = rows_of(f"{THREE} {STORED}")
    assert rows_of("s/base.parquet s/better.parquet s/worse.parquet") == expected  # their measures
    assert rows_of("s/base.parquet better.parquet worse.parquet") == expected
    mixed = rows_of("base.parquet s/better.parquet worse.parquet -m nDCG@5")
    assert mixed == [row for row in expected if row["measure"] == "nDCG@5"]
    slices = rows("compare s/base.parquet better.parquet --by country -m nDCG@5")  # which one of the two kept
    assert [row["country"] for row in slices] != [""] and len(slices) == 4
    result = run("compare s/base.parquet better.parquet -m AP")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "AP is not among the results" in only_line(result.stderr)
    result = run("compare s/base.parquet better.parquet --convention lightgbm")
    assert result.exit_code == 2 and "--convention cannot be used with" in only_line(result.stderr)


def write_trec(drop=()):
    """Judgments, and runs of two systems; both lack the first of the queries to drop, one lacks all."""
    table = pq.read_table("wide.parquet").to_pylist()
    Path("qrels").write_text("".join(f"{row['qid']} 0 {row['docno']} {row['label']}\n" for row in table))
    for name, lacks in (("base", drop[:1]), ("better", drop)):
        lines = [f"{r['qid']} Q0 {r['docno']} 0 {r[name]!r} x\n" for r in table if r["qid"] not in lacks]
        Path(f"{name}.txt").write_text("".join(lines))


def write_small(queries=9, documents=5, unknown=0, grade=lambda query, document: (query + document) % 3):
    """Judgments, and runs `one` and `two`; the first documents of `two` are unknown, or it is `one` turned."""
    grid = [(query, document) for query in range(queries) for document in range(documents)]
    Path("qrels").write_text("".join(f"q{q} 0 d{d} {grade(q, d)}\n" for q, d in grid))
    for name, turn in (("one", -1), ("two", -1 if unknown else 1)):
        names = ["x" if name == "two" and d < unknown else "d" for d in range(documents)]
        Path(f"{name}.txt").write_text("".join(f"q{q} Q0 {names[d]}{d} 0 {turn * d} t\n" for q, d in grid))


def test_documents_that_nobody_judged():
    """Half of the documents of a new index have no judgment; every format says so."""
    write_small(documents=10, unknown=5, grade=lambda query, document: (query + document) % 2)
    line = "compare --qrels qrels one.txt two.txt"
    said = "Of the first 10 documents were judged: 100.0 % of one, 50.0 % of two. Unjudged documents count as"
    assert said in run(line).stdout
    assert facts(line)["cautions"][-1].startswith(said)
    assert f"caution: {said}" in run(f"{line} --format csv").stderr
    # a gate of few equal losses is decided, and says by how much it fails
    lost = run(f"{line} -m Judged@10 --no-worse-than one")
    assert lost.exit_code == 1 and "Judged@10 of two may lose 0.5 to one" in lost.stderr


def test_runs_and_queries_that_they_lack():
    write_trec(drop=("q-1", "q-2", "q-3"))
    line = "--qrels qrels --run base.txt --run better.txt -m nDCG@5"
    refused = run(f"compare {line}")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "\"better\" lacks 2 queries that others have: 'q-2', 'q-3'." in refused.stderr
    assert "Pass --missing drop" in refused.stderr and "as in --missing 0.0." in refused.stderr
    dropped = run(f"compare {line} --missing drop --format json")
    assert "no run has documents for 1 judged query (q-1); left out\n" in dropped.stderr
    assert json.loads(dropped.stdout)["missing"] == {"better": ["q-2", "q-3"]}
    assert json.loads(dropped.stdout)["rows"][0]["queries"] == QUERIES - 3
    zero = {name: fn.evaluate(fn.read_trec("qrels", f"{name}.txt"), "nDCG@5") for name in ("base", "better")}
    assert near(rows_of(f"{line} --missing 0"), fn.compare(zero))
    said = run(f"compare {line} --missing 0").stderr
    assert "better has no documents for 3 judged queries (q-1, q-2, q-3): counted as 0\n" in said
    # a run of an earlier day, stored
    run(f"score {line} --out earlier.parquet")
    write_trec()
    found = rows_of("--qrels qrels --run earlier.parquet --run better.txt")
    names = {row[side] for row in found for side in ("system", "baseline")}
    assert names == {"base", "earlier.parquet: better", "better"}
    Path("later.parquet").write_bytes(Path("earlier.parquet").read_bytes())
    found = rows_of("earlier.parquet later.parquet --baseline 'earlier.parquet: base'")
    assert [row["system"] for row in found] == ["earlier.parquet: better", "later.parquet: base", "later.parquet: better"]  # fmt: skip
    result = run("compare earlier.parquet later.parquet --baseline base")
    assert result.exit_code == 3 and "later.parquet: base" in only_line(result.stderr)
    results = pq.read_table("earlier.parquet")
    names = pa.array([f"later {name}" for name in results["run"].to_pylist()])
    pq.write_table(results.set_column(0, "run", names), "later.parquet")
    assert run("compare earlier.parquet later.parquet").exit_code == 0
    both = rows_of("earlier.parquet")
    assert (both[0]["system"], both[0]["baseline"]) == ("better", "base")


def test_gates_are_those_of_no_worse_than():
    for name in ("better", "worse"):
        for margin in (0.0, 0.002, 0.05, 0.3):
            comparison = compared(f"base {name}")
            held = comparison.no_worse_than("base", margin)["nDCG@5"]
            gate = f"--no-worse-than base --margin {margin}"
            result = run(f"compare base.parquet {name}.parquet -m nDCG@5 {gate}")
            assert result.exit_code == (0 if held else 1) and result.stdout.startswith("2 systems")
            low = comparison.rows[0]["low"]
            last = f"nDCG@5 of {name} may lose {-low:.6g} to base, {-low - margin:.6g} more than"
            assert last in result.stderr.splitlines()[-1] if not held else "--no-worse" not in result.stderr


def test_a_gate_of_slices_names_the_one_that_failed():
    line = "compare base.parquet worse.parquet -m nDCG@5 --no-worse-than base --margin 0.25"
    assert run(line).exit_code == 0
    result = run(f"{line} --by country")
    last = result.stderr.splitlines()[-1]
    assert result.exit_code == 1 and last.count("may lose") == 1
    assert "nDCG@5 of worse where country=fr may lose" in last
    result = run(f"{line} --by country --by device --format json")
    shown = json.loads(result.stdout)
    slices, failed = shown["slices"], shown["gate"]["failed"]
    assert len(failed) == 1 and failed[0] in result.stderr
    assert [row["country"] for row in slices if row["small"] is False]
    expected = compared("base worse", keep=["country", "device"]).slices(["country", "device"])
    assert [(row["country"], row["device"]) for row in slices] == list(expected)
    assert [row["low"] for row in slices] == [each.rows[0]["low"] for each in expected.values()]
    for name in ("base", "better"):  # slices of one query each: what is not known is NaN, as in other tables
        table = pq.read_table(f"{name}.parquet")
        pq.write_table(table.append_column("alone", table["qid"]), f"{name}_alone.parquet")
    result = run("compare base_alone.parquet better_alone.parquet -m nDCG@5 --by alone")
    assert result.stdout.count("NaN") > 2 and "nan" not in result.stdout, result.stderr


def test_means_below_a_bound_fail_a_line_each():
    line = f"compare {THREE} --fail-under nDCG@5=0.99 --fail-under AP=0.99"
    result = run(f"{line} --format json")
    shown = json.loads(result.stdout)
    means = {(row["measure"], row["system"]): row["mean"] for row in shown["rows"]}
    means |= {(row["measure"], row["baseline"]): row["baseline_mean"] for row in shown["rows"]}
    low = [
        f"--fail-under: {system}: the mean of {measure} is {means[measure, system]}, below 0.99"
        for system in ("base", "better", "worse") for measure in ("nDCG@5", "AP") if means[measure, system] < 0.99
    ]  # fmt: skip
    lines = [each for each in result.stderr.splitlines() if each.startswith("--fail-under")]
    assert result.exit_code == 1 and lines == low == shown["fail_under"]["failed"] and len(low) > 3
    # the system that others are held against is free of it
    again = run(f"{line} --no-worse-than base --margin 1 --by device").stderr.splitlines()
    assert [each for each in again if each.startswith("--")] == [each for each in low if "base:" not in each]
    assert run(f"compare {THREE} --fail-under nDCG@5=0").exit_code == 0


def test_judgments_that_are_a_table_have_slices_clusters_and_weights():
    """As `score` has them; the weights of judgments were said to be taken, and were not."""
    write_trec()
    names = ["qid", "docno", "label", "country", "user", "importance"]
    pq.write_table(pq.read_table("wide.parquet").select(names), "q.parquet")
    options = "-m nDCG@5 --weight importance --cluster user --doc-id docno"
    runs, columns = "--qrels q.parquet base.txt better.txt", "wide.parquet --score base --score better"
    strict = {"weight": "importance", "keep": ["user"], "doc_id": "docno"}
    judged = {
        name: fn.evaluate(fn.read_qrels_run("q.parquet", f"{name}.txt", **strict), "nDCG@5") for name in ("base", "better")
    }  # fmt: skip
    assert near(rows_of(f"{runs} {options}"), fn.compare(judged, cluster="user"))
    one, other = (
        [row["queries"] for row in rows(f"compare {each} {options} --by country")] for each in (runs, columns)
    )
    assert one == other and len(one) == 4


def test_layouts():
    expected = compared("base better").rows[0]
    (row,) = rows(f"compare {PAIR}")
    assert float(row["difference"]) == expected["difference"] and list(row) == list(expected)
    assert [one["documents"] for one in facts(f"compare {PAIR}")["systems"]] == [QUERIES * DOCUMENTS] * 2
    assert f"\n{name_of(None)} " in run(f"compare {PAIR} --by country").stdout


# ---- score ----


def test_score_by_columns(monkeypatch):
    keep = ["country", "device"]
    scores = scores_of("base", keep=keep, weight="importance")
    expected = scores.by(keep, confidence=0.9)
    line = "score base.parquet -m nDCG@5 --by country --by device --weight importance"
    whole = facts(f"{line} --confidence 0.9")
    for name in (*keep, "queries", "small"):
        assert [row[name] for row in whole["slices"]] == expected[name].to_pylist()
    for name, column in (("mean", ""), ("low", "_low"), ("high", "_high"), ("empty", "_empty")):
        assert [row[name] for row in whole["slices"]] == expected[f"nDCG@5{column}"].to_pylist()
    assert whole["measures"] == scores.summary(0.9).rows
    lines = rows(line)
    assert [float(each["mean"]) for each in lines] == expected["nDCG@5"].to_pylist()
    assert "low" not in lines[0] and {each["small"] for each in lines} <= {"True", "False"}
    text = run(f"{line} --confidence 0.9").stdout
    assert text.count("  small\n") == expected["small"].to_pylist().count(True) > 0
    assert text.count("nDCG@5") == 1 + len(expected)
    monkeypatch.setattr("fastndcg.sources.streams._LEAST_MEMORY", 1)
    assert facts(f"{line} --confidence 0.9 --memory 4KB") == whole


def test_score_reads_what_it_wrote():
    line = "--by country --confidence 0.9"
    fresh = facts(
        f"""score base.parquet -m nDCG@5 -m "nDCG(empty='skip')@3" --weight importance --out s.parquet {line}"""
    )
    again = run(f"score s.parquet {line} --format json")
    assert "118 queries, stored results; columns: query=qid, weight=weight\n" in again.stderr
    stored = json.loads(again.stdout)
    for name in ("measures", "slices"):
        for row in (*fresh[name], *stored[name]):
            if row["measure"] == "nDCG@5":  # nobody knows how many are empty
                assert (row.pop("empty") is None) == any(row is each for each in stored[name])
        assert stored[name] == fresh[name]
    assert run("score s.parquet").stdout.splitlines()[1].rstrip().endswith("118")
    gate = run("score s.parquet --fail-under nDCG@5=0.99")
    assert gate.exit_code == 1 and "below 0.99" in gate.stderr
    for words, code, said in (
        ("-m AP", 3, "AP is not among the results"),
        ("--by device", 3, "Name it in --keep where"),
        ("--weight importance", 2, "stored results, not predictions"),
    ):
        refused = run(f"score s.parquet {words}")
        assert refused.exit_code == code and said in only_line(refused.stderr)


def test_predictions_are_no_results_though_a_column_is_called_as_a_measure():
    table = pq.read_table("base.parquet")
    table = table.append_column("P", table["score"])
    pq.write_table(table, "p.parquet")
    assert "1,062 documents" in run("score p.parquet").stderr
    pq.write_table(table.drop_columns("score"), "p.parquet")
    for line in ("score p.parquet", "compare p.parquet base.parquet"):
        result = run(line)
        assert (result.exit_code, result.stdout) == (3, "")
        assert 'because "qid" repeats' in only_line(result.stderr)
    assert "1,062 documents" in run("score p.parquet --score P").stderr


# ---- conventions, runs ----


def test_compare_by_a_convention():
    found = rows_of(f"{PAIR} --convention lightgbm")[0]
    systems = {
        name: fn.evaluate(fn.read_parquet(f"{name}.parquet"), "nDCG@5", convention="lightgbm") for name in ("base", "better")
    }  # fmt: skip
    assert found == fn.compare(systems).rows[0] != rows_of(PAIR)[0]
    write_small()
    line = "--qrels qrels --run one.txt --run two.txt --convention lightgbm"
    means = [row["mean"] for row in facts(f"score {line}")["measures"]]
    assert [rows_of(line)[0][name] for name in ("baseline_mean", "mean")] == means


def test_stored_results_in_place_of_a_run():
    Path("qrels").write_text("q 0 a 1\nq 0 b 0\nq 0 c 2\n")
    Path("one.txt").write_text("q Q0 a 1 3 x\nq Q0 b 2 2 x\n")
    Path("two.txt").write_text("q Q0 b 1 3 x\nq Q0 c 2 2 x\nq Q0 a 3 1 x\n")
    run("score --qrels qrels --run two.txt -m RR --out stored.parquet")
    found = facts("score --qrels qrels --run one.txt --run stored.parquet -m RR")["measures"]
    assert [(row["run"], row["mean"]) for row in found] == [("one", 1.0), ("stored", 0.5)]
    alone = facts("score --qrels qrels --run stored.parquet")
    assert alone["measures"][0]["mean"] == 0.5 and alone["documents"] is None
    refused = run("score --qrels qrels --run one.txt --run stored.parquet -m RR --convention lightgbm")
    assert refused.exit_code == 2 and "--convention cannot be used with" in only_line(refused.stderr)
