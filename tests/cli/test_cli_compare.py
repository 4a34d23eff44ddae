"""`fastndcg compare`: the numbers of `fn.compare` from files of every kind, its gates, and what it refuses."""

import csv
import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commands import only_line, run

import fastndcg as fn
from fastndcg.common.table import name_of

pytest.importorskip("scipy")

QUERIES, DOCUMENTS = 118, 9
COUNTRIES = ["de", "fr", None, "jp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Predictions of three systems over the same documents, each with its rows in another order, one with a query less."""
    folder = tmp_path_factory.mktemp("systems")
    random = np.random.default_rng(3)
    n = QUERIES * DOCUMENTS
    query = np.repeat(np.arange(QUERIES), DOCUMENTS)
    grades = random.integers(0, 4, n)
    grades[query % 17 == 0] = 0  # empty queries
    base = np.round(grades + random.normal(0, 2.0, n), 1)  # with ties
    table = pa.table(
        {
            "qid": pa.array([f"q-{one}" for one in query]),
            "docno": np.tile(np.arange(DOCUMENTS), QUERIES),
            "label": grades,
            "country": pa.array([COUNTRIES[one % 4] for one in query]),
            "device": pa.array(query % 2),
            "user": pa.array(query // 3),
            "importance": (1 + query % 5).astype(np.float64),
        }
    )
    scores = {
        "base": base,
        "better": grades + random.normal(0, 1.0, n),
        "worse": np.where(query % 4 == 1, -grades, base),  # in France alone
    }
    wide = table
    for name, values in scores.items():
        wide = wide.append_column(name, pa.array(values))
        system = table.append_column("score", pa.array(values)).take(pa.array(random.permutation(n)))
        pq.write_table(system, folder / f"{name}.parquet")
    pq.write_table(wide, folder / "wide.parquet")
    short = pq.read_table(folder / "better.parquet")
    pq.write_table(short.filter(pc.not_equal(short["qid"], "q-5")), folder / "short.parquet")
    return folder


def scores_of(path, measures, **options):
    return fn.evaluate(fn.read_parquet(path, **options), measures)


def rows_of(*words, code=0):
    result = run("compare", *words, "--format", "json")
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout)["rows"]


def near(rows, compared):
    """The same numbers, NaN as null."""
    plain = [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in compared.rows
    ]
    return rows == plain


OPTIONS = [
    ([], {}),
    (["--test", "randomisation", "--resamples", 500, "--seed", 7], {"test": "randomisation", "resamples": 500, "seed": 7}),
    (["--test", "permutation", "--resamples", 300, "--baseline", "base"], {"test": "randomisation", "resamples": 300, "baseline": "base"}),
    (["--correction", "bh", "--interval", "percentile", "--resamples", 300], {"correction": "bh", "interval": "percentile", "resamples": 300}),
    (
        ["--correction", "holm", "--confidence", 0.9, "--tolerance", 0.05],
        {"correction": "holm", "confidence": 0.9, "tolerance": 0.05},
    ),
    (["--cluster", "user"], {"cluster": "user"}),
    (["--unpaired"], {"paired": False}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options"), OPTIONS, ids=[" ".join(map(str, case[0])) for case in OPTIONS])
def test_files_give_the_numbers_of_compare(folder, words, options):
    names, measures = ("base", "better", "worse"), ["nDCG@5", "RR", "nDCG(empty='skip')@3"]
    kept = ["user"] if "cluster" in options else []
    systems = {name: scores_of(folder / f"{name}.parquet", measures, keep=kept) for name in names}
    paths = [folder / f"{name}.parquet" for name in names]
    given = [word for measure in measures for word in ("-m", measure)]
    assert near(rows_of(*paths, *given, *words), fn.compare(systems, **options))


def test_weights_and_columns_of_scores(folder):
    wide = folder / "wide.parquet"
    systems = {
        name: scores_of(wide, "nDCG@10", score=name, weight="importance")
        for name in ("worse", "better", "base")
    }
    columns = ("--score", "worse", "--score", "better", "--score", "base")
    assert near(rows_of(wide, *columns, "--weight", "importance"), fn.compare(systems))
    # stored results bring their weights with them
    paths = []
    for name in systems:
        out = folder / f"weighted_{name}.parquet"
        assert run("score", wide, "--score", name, "--weight", "importance", "--out", out).exit_code == 0
        paths.append(out)
    renamed = {f"weighted_{name}": scores for name, scores in systems.items()}
    assert near(rows_of(*paths), fn.compare(renamed))


def without_signatures(text):
    whole = json.loads(text)
    for system in whole["systems"]:
        assert len(system.pop("signatures")) == len({row["measure"] for row in whole["rows"]})
    return whole


@pytest.mark.parametrize("ending", ["csv", "jsonl", "feather"])
def test_stored_results_of_any_kind(folder, tmp_path, ending):
    """Text has no metadata and no NaN: measures are read from their spelling, and an empty field is no value."""
    given = ["-m", "ndcg@5", "-m", "nDCG(gain='exp2', empty='nan')@3", "-m", "nDCG(empty='skip')@3"]
    names, paths = ("base", "better"), {}
    for kind in ("parquet", ending):
        for name in names:
            out = paths[name, kind] = tmp_path / f"{name}.{kind}"
            words = ("--keep", "user", "--out", out)
            assert run("score", folder / f"{name}.parquet", *given, *words).exit_code == 0
    words = ("--by", "user", "--format", "json")
    expected = without_signatures(run("compare", *(paths[name, "parquet"] for name in names), *words).stdout)
    of_texts = run("compare", *(paths[name, ending] for name in names), *words)
    assert without_signatures(of_texts.stdout) == expected  # text has no place for what was judged
    assert rows_of(paths["base", ending], paths["better", "parquet"]) == expected["rows"]
    gate = ("-m", "nDCG@5", "--no-worse-than", "base", "--margin", 1)
    assert run("compare", paths["base", ending], paths["better", ending], *gate).exit_code == 0
    again = run("score", paths["base", ending], "--fail-under", "nDCG@5=2")
    assert again.exit_code == 1 and "118 queries, stored results" in again.stderr


@pytest.mark.parametrize(("name", "text", "message"), [
    ("a.csv", "qid,nDCG@5\n1,0.5\n2,high\n", 'row 3 (the header is row 1): column "nDCG@5" has "high"'),
    ("a.jsonl", '{"qid": 1, "nDCG@5": 0.5}\n{"qid": 2,', "Check that it is a JSON Lines file"),
    ("a.feather", "no Feather", "Check that it is a Feather file"),
])  # fmt: skip
def test_damaged_results_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    (tmp_path / "b.csv").write_text("qid,nDCG@5\n1,0.5\n2,0.25\n")
    refused = run("compare", tmp_path / name, tmp_path / "b.csv")
    assert refused.exit_code == 3 and message in only_line(refused.stderr), refused.stderr


def test_stored_results_are_as_good_as_predictions(folder, tmp_path):
    measures = "nDCG@5", "nDCG(gain='exp2', empty='nan')@3", "nDCG(empty='skip')@3"
    given = [word for measure in measures for word in ("-m", measure)]
    names = ("base", "better", "worse")
    for name in names:
        out = tmp_path / f"{name}.parquet"
        assert run("score", folder / f"{name}.parquet", *given, "--out", out).exit_code == 0
    fresh = [folder / f"{name}.parquet" for name in names]
    expected = rows_of(*fresh, *given)
    assert rows_of(*(tmp_path / f"{name}.parquet" for name in names)) == expected  # their measures
    assert rows_of(tmp_path / "base.parquet", *fresh[1:]) == expected
    mixed = rows_of(fresh[0], tmp_path / "better.parquet", fresh[2], "-m", "nDCG@5")
    assert mixed == [row for row in expected if row["measure"] == "nDCG@5"]
    # a slice of what one of the two kept
    words = (tmp_path / "base.parquet", fresh[1], "--by", "country", "-m", "nDCG@5", "--format", "csv")
    slices = list(csv.DictReader(io.StringIO(run("compare", *words).stdout)))
    assert [row["country"] for row in slices] != [""] and len(slices) == 4
    result = run("compare", tmp_path / "base.parquet", fresh[1], "-m", "AP")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "AP is not among the results" in only_line(result.stderr)


def write_trec(folder, source, drop=()):
    table = pq.read_table(source).to_pylist()
    qrels = "".join(f"{row['qid']} 0 {row['docno']} {row['label']}\n" for row in table)
    (folder / "qrels.txt").write_text(qrels)
    paths = {"qrels": folder / "qrels.txt"}
    for name in ("base", "better"):
        lacks = drop if name == "better" else drop[:1]
        lines = [f"{r['qid']} Q0 {r['docno']} 0 {r[name]!r} x\n" for r in table if r["qid"] not in lacks]
        paths[name] = folder / f"{name}.txt"
        paths[name].write_text("".join(lines))
    return paths


def test_documents_that_nobody_judged(tmp_path):
    """Half of the documents of a new index have no judgment; every format says so."""
    (tmp_path / "qrels.txt").write_text(
        "".join(f"q{i} 0 d{j} {(i + j) % 2}\n" for i in range(9) for j in range(10))
    )
    for name, unknown in (("old", 0), ("new", 5)):
        lines = [
            f"q{i} Q0 {'x' if j < unknown else 'd'}{j} 0 {20 - j} t\n" for i in range(9) for j in range(10)
        ]
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    words = ("compare", "--qrels", tmp_path / "qrels.txt", tmp_path / "old.txt", tmp_path / "new.txt")
    said = "Of the first 10 documents were judged: 100.0 % of old, 50.0 % of new. Unjudged documents count as"
    assert said in run(*words).stdout
    assert json.loads(run(*words, "--format", "json").stdout)["cautions"][-1].startswith(said)
    for layout in ("csv", "markdown", "latex"):
        assert f"caution: {said}" in run(*words, "--format", layout).stderr
    # a gate of few equal losses is decided, and says by how much it fails
    lost = run(*words, "-m", "Judged@10", "--no-worse-than", "old", "--interval", "bca")
    assert lost.exit_code == 1 and "Judged@10 of new may lose 0.5 to old" in lost.stderr


def test_runs_and_queries_that_they_lack(folder, tmp_path):
    paths = write_trec(tmp_path, folder / "wide.parquet", drop=("q-1", "q-2", "q-3"))
    words = ("--qrels", paths["qrels"], "--run", paths["base"], "--run", paths["better"], "-m", "nDCG@5")
    refused = run("compare", *words)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "\"better\" lacks 2 queries that others have: 'q-2', 'q-3'." in refused.stderr
    assert "Pass --missing drop" in refused.stderr and "as in --missing 0.0." in refused.stderr
    dropped = run("compare", *words, "--missing", "drop", "--format", "json")
    assert "no run has documents for 1 judged query; left out: q-1" in dropped.stderr
    assert json.loads(dropped.stdout)["missing"] == {"better": ["q-2", "q-3"]}
    assert json.loads(dropped.stdout)["rows"][0]["queries"] == QUERIES - 3
    zero = {
        name: fn.evaluate(fn.read_trec(paths["qrels"], paths[name]), "nDCG@5") for name in ("base", "better")
    }
    assert near(rows_of(*words, "--missing", "0"), fn.compare(zero))
    # a run of an earlier day, stored
    out = tmp_path / "earlier.parquet"
    run("score", *words, "--out", out)
    whole = write_trec(tmp_path, folder / "wide.parquet")
    result = run(
        "compare", "--qrels", whole["qrels"], "--run", out, "--run", whole["better"], "--format", "json"
    )
    told_apart = ["base", f"{out}: better", "better"]
    assert {row[side] for row in json.loads(result.stdout)["rows"] for side in ("system", "baseline")} == set(
        told_apart
    )
    second = tmp_path / "later.parquet"
    second.write_bytes(out.read_bytes())
    found = rows_of(out, second, "--baseline", f"{out}: base")
    assert [row["system"] for row in found] == [f"{out}: better", f"{second}: base", f"{second}: better"]
    result = run("compare", out, second, "--baseline", "base")
    assert result.exit_code == 3 and f"{second}: base" in only_line(result.stderr)
    results = pq.read_table(out)
    names = pa.array([f"later {name}" for name in results["run"].to_pylist()])
    pq.write_table(results.set_column(0, "run", names), second)
    assert run("compare", out, second).exit_code == 0
    both = rows_of(out)
    assert (both[0]["system"], both[0]["baseline"]) == ("better", "base")


def test_gates_are_those_of_no_worse_than(folder):
    names = ("base", "better", "worse")
    systems = {name: scores_of(folder / f"{name}.parquet", "nDCG@5") for name in names}
    for name in names[1:]:
        for margin in (0.0, 0.002, 0.05, 0.3):
            compared = fn.compare({one: systems[one] for one in ("base", name)})
            held = compared.no_worse_than("base", margin)["nDCG@5"]
            paths = (folder / "base.parquet", folder / f"{name}.parquet", "-m", "nDCG@5")
            result = run("compare", *paths, "--no-worse-than", "base", "--margin", margin)
            assert result.exit_code == (0 if held else 1)
            last = result.stderr.splitlines()[-1]
            if held:
                assert "--no-worse-than" not in result.stderr
            else:
                low = compared.rows[0]["low"]
                assert f"nDCG@5 of {name} may lose {-low:.6g} to base, {-low - margin:.6g} more than" in last
            assert result.stdout.startswith("2 systems")


def test_what_is_not_known_of_a_slice_is_nan_as_in_other_tables(folder):
    paths = []
    for name in ("base", "better"):  # slices of one query each
        paths.append(folder / f"{name}_alone.parquet")
        table = pq.read_table(folder / f"{name}.parquet")
        pq.write_table(table.append_column("alone", table["qid"]), paths[-1])
    result = run("compare", *paths, "-m", "nDCG@5", "--by", "alone")
    assert result.stdout.count("NaN") > 2 and "nan" not in result.stdout, result.stderr


def test_a_gate_of_slices_names_the_one_that_failed(folder):
    paths = (folder / "base.parquet", folder / "worse.parquet", "-m", "nDCG@5")
    gate = ("--no-worse-than", "base", "--margin", "0.25")
    assert run("compare", *paths, *gate).exit_code == 0
    result = run("compare", *paths, *gate, "--by", "country")
    assert result.exit_code == 1
    line = result.stderr.splitlines()[-1]
    assert line.count("may lose") == 1 and "nDCG@5 of worse where country=fr may lose" in line
    result = run("compare", *paths, *gate, "--by", "country", "--by", "device", "--format", "json")
    shown = json.loads(result.stdout)
    slices, failed = shown["slices"], shown["gate"]["failed"]
    assert len(failed) == 1 and failed[0] in result.stderr
    assert [(row["country"], row["device"]) for row in slices if row["small"] is False]
    keep = ["country", "device"]
    systems = {name: scores_of(folder / f"{name}.parquet", "nDCG@5", keep=keep) for name in ("base", "worse")}
    expected = fn.compare(systems).slices(keep)
    assert [(row["country"], row["device"]) for row in slices] == list(expected)
    assert [row["low"] for row in slices] == [each.rows[0]["low"] for each in expected.values()]


def test_canaries(folder, tmp_path):
    ids = tmp_path / "ids.txt"
    paths = (folder / "base.parquet", folder / "worse.parquet", "-m", "nDCG@5")
    gate = ("--no-worse-than", "base", "--margin", "0.25", "--queries", ids)
    ids.write_bytes("\ufeffq-2\r\n\r\nq-3\r\nq-2\r\n".encode())
    assert run("compare", *paths, *gate).exit_code == 0
    ids.write_text("q-2\nq-5\nq-9")
    result = run("compare", *paths, *gate)
    base, worse = (scores_of(folder / f"{name}.parquet", "nDCG@5") for name in ("base", "worse"))
    before, after = (
        dict(zip(one.queries[0].to_pylist(), one["nDCG@5"], strict=True)) for one in (base, worse)
    )
    failing = [one for one in ("q-2", "q-5", "q-9") if after[one] - before[one] < -0.25]
    assert failing and result.exit_code == 1
    lines = result.stderr.splitlines()[-len(failing) :]
    for one, line in zip(failing, lines, strict=True):
        start = (
            f"--no-worse-than: nDCG@5 of worse for query {one} loses {before[one] - after[one]:.6g} to base"
        )
        assert line.startswith(start) and result.stderr.count("for query") == len(failing)
    ids.write_text("q-2\nq-2000\nQ-2\nq 3\nx\n")
    result = run("compare", *paths, *gate)
    assert (result.exit_code, result.stdout) == (3, "")
    line = result.stderr.splitlines()[-1]
    assert "4 of 5 ids" in line and "'q-2000', 'Q-2', 'q 3', ..." in line


def test_means_below_a_bound_fail_a_line_each(folder):
    paths = (folder / "base.parquet", folder / "better.parquet", folder / "worse.parquet")
    bounds = ("--fail-under", "nDCG@5=0.99", "--fail-under", "AP=0.99")
    result = run("compare", *paths, *bounds, "--format", "json")
    lines = [line for line in result.stderr.splitlines() if line.startswith("--fail-under")]
    shown = json.loads(result.stdout)
    means = {(row["measure"], row["system"]): row["mean"] for row in shown["rows"]}
    means |= {(row["measure"], row["baseline"]): row["baseline_mean"] for row in shown["rows"]}
    low = [
        f"--fail-under: {system}: the mean of {measure} is {means[measure, system]}, below {bound}"
        for system in ("base", "better", "worse")
        for measure, bound in (("nDCG@5", 0.99), ("AP", 0.99))
        if means[measure, system] < bound
    ]
    assert result.exit_code == 1 and lines == low == shown["fail_under"]["failed"] and len(low) > 3
    # the system that others are held against is free of it
    again = run("compare", *paths, *bounds, "--no-worse-than", "base", "--margin", "1", "--by", "device")
    assert [line for line in again.stderr.splitlines() if line.startswith("--")] == [
        line for line in low if "base:" not in line
    ]
    assert run("compare", *paths, "--fail-under", "nDCG@5=0").exit_code == 0


def test_judgments_that_are_a_table_have_slices_clusters_and_weights(folder, tmp_path):
    """As `score` has them; the weights of judgments were said to be taken, and were not."""
    paths, table = write_trec(tmp_path, folder / "wide.parquet"), pq.read_table(folder / "wide.parquet")
    pq.write_table(
        table.select(["qid", "docno", "label", "country", "user", "importance"]), tmp_path / "q.parquet"
    )
    runs = ("--qrels", tmp_path / "q.parquet", paths["base"], paths["better"], "--doc-id", "docno")
    options = ("-m", "nDCG@5", "--weight", "importance", "--cluster", "user")
    files = (folder / "wide.parquet", "--score", "base", "--score", "better", "--doc-id", "docno")
    strict = {"weight": "importance", "keep": ["user"], "doc_id": "docno"}
    judged = {
        name: fn.evaluate(fn.read_qrels_run(tmp_path / "q.parquet", paths[name], **strict), "nDCG@5")
        for name in ("base", "better")
    }
    assert near(rows_of(*runs, *options), fn.compare(judged, cluster="user"))
    slices = [run("compare", *each, *options, "--by", "country", "--format", "csv") for each in (runs, files)]
    assert [each.exit_code for each in slices] == [0, 0]
    queries = [[row["queries"] for row in csv.DictReader(io.StringIO(each.stdout))] for each in slices]
    assert queries[0] == queries[1] and len(queries[0]) == 4


WRONG = [
    (["base"], 2, "one system is given"),
    ([], 2, "nothing to score"),
    (["base", "base"], 2, "is given 2 times"),
    (["base", "better", "--margin", "0.1"], 2, "--margin has no meaning without --no-worse-than"),
    (["base", "better", "--queries", "ids.txt"], 2, "--queries has no meaning without --no-worse-than"),
    (["base", "better", "--no-worse-than", "bse"], 3, 'Did you mean "base"?'),
    (["base", "better", "--baseline", "bse"], 3, 'Did you mean "base"?'),
    (["base", "better", "--no-worse-than", "base", "--margin", "-1"], 2, "-1 is not a loss to accept"),
    (["base", "better", "--no-worse-than", "base", "--baseline", "better"], 2, "differ; name one system"),
    (["base", "better", "--no-worse-than", "base", "--queries", "nowhere.txt"], 3, "nowhere.txt cannot be read"),
    (["base", "better", "--confidence", "95"], 2, "--confidence 95.0 is not between 0 and 1"),
    (["base", "better", "--missing", "zero"], 3, "--missing zero is not known"),
    (["base", "better", "--by", "nowhere"], 3, "nowhere"),
    (["base", "better", "--by", "system"], 2, "results have a column system of their own"),
    (["base", "better", "--by", "label"], 3, "label"),
    (["base", "better", "--cluster", "nowhere"], 3, "nowhere"),
    (["base", "short"], 3, "\"short\" lacks 1 query that others have: 'q-5'. Pass --missing drop"),
    (["base", "better", "--score", "a", "--score", "b"], 2, "--score is repeatable for one PATH"),
    (["wide", "--score", "base", "--score", "base"], 2, "base is given 2 times"),
    (["wide", "--score", "base", "--score", "bettr"], 3, 'Did you mean "better"?'),
    (["base", "better", "--test", "tukey"], 2, "'tukey' is not one of 't', 'randomisation', 'permutation'"),
    (["base", "better", "--test", "randomisation", "--unpaired"], 3, "--test randomisation and --unpaired do not go together"),
    (["base", "better", "--format", "csv", "--movers", "3"], 2, "--movers is a table of its own"),
    (["base", "better", "--run", "x"], 2, "--qrels and --run go together"),
    (["--qrels", "x"], 2, "give runs too, as PATH or --run"),
    (["base", "better", "--fail-under", "nDCG@5"], 2, "wanted MEASURE=NUMBER"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "message"), WRONG, ids=[" ".join(map(str, case[0])) for case in WRONG]
)
def test_wrong_input_is_one_line(folder, words, code, message):
    files = {"base", "better", "short", "wide"}
    options = next((place for place, word in enumerate(words) if str(word).startswith("-")), len(words))
    paths = [folder / f"{word}.parquet" if word in files else word for word in words[:options]]
    result = run("compare", *paths, *words[options:])
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in only_line(result.stderr), result.stderr


def test_a_canary_that_a_run_lacks_is_known_from_stored_results(folder, tmp_path):
    whole = write_trec(tmp_path, folder / "wide.parquet")
    stored = tmp_path / "earlier.parquet"
    words = ("--qrels", whole["qrels"], "-m", "nDCG@5")
    assert run("score", *words, "--run", whole["base"], "--out", stored).exit_code == 0
    paths = write_trec(tmp_path, folder / "wide.parquet", drop=("q-1", "q-2"))
    ids = tmp_path / "ids.txt"
    ids.write_text("q-1\nq-3\n")
    words = (
        *words,
        "--run",
        stored,
        "--run",
        paths["better"],
        "--no-worse-than",
        "earlier",
        "--queries",
        ids,
    )
    dropped = run("compare", *words, "--missing", "drop")
    assert dropped.exit_code == 3
    assert "no run has documents" not in dropped.stderr
    assert "1 of 2 ids" in dropped.stderr and "'q-1'" in dropped.stderr
    counted = run("compare", *words, "--missing", "0")
    assert counted.exit_code == 1
    assert "nDCG@5 of better for query q-1 loses" in counted.stderr.splitlines()[-1]


def test_layouts(folder):
    paths = (folder / "base.parquet", folder / "better.parquet", "-m", "nDCG@5")
    compared = fn.compare(
        {name: scores_of(folder / f"{name}.parquet", "nDCG@5") for name in ("base", "better")}
    )
    assert run("compare", *paths, "--format", "markdown").stdout == compared.to_markdown()
    assert run("compare", *paths, "--format", "latex").stdout == compared.to_latex()
    (row,) = csv.DictReader(io.StringIO(run("compare", *paths, "--format", "csv").stdout))
    assert float(row["difference"]) == compared.rows[0]["difference"]
    assert list(row) == list(compared.rows[0])
    shown = json.loads(run("compare", *paths, "--format", "json", "--movers", 4).stdout)
    assert shown["movers"][0]["queries"] == compared.movers("nDCG@5", n=4).to_pylist()
    assert [one["documents"] for one in shown["systems"]] == [QUERIES * DOCUMENTS] * 2
    text = run("compare", *paths, "--movers", 4, "--by", "country").stdout
    assert "nDCG@5, better against base:" in text and f"\n{name_of(None)} " in text


# ---- score ----


def test_score_by_columns(folder, monkeypatch):
    path = folder / "base.parquet"
    keep = ["country", "device"]
    scores = scores_of(path, "nDCG@5", keep=keep, weight="importance")
    expected = scores.by(keep, confidence=0.9)
    words = (path, "-m", "nDCG@5", "--by", "country", "--by", "device", "--weight", "importance")
    facts = json.loads(run("score", *words, "--confidence", 0.9, "--format", "json").stdout)
    for name in (*keep, "queries", "small"):
        assert [row[name] for row in facts["slices"]] == expected[name].to_pylist()
    for name, column in (("mean", ""), ("low", "_low"), ("high", "_high"), ("empty", "_empty")):
        assert [row[name] for row in facts["slices"]] == expected[f"nDCG@5{column}"].to_pylist()
    (row,) = scores.summary(0.9).rows
    assert facts["measures"] == [row]
    lines = list(csv.DictReader(io.StringIO(run("score", *words, "--format", "csv").stdout)))
    assert [float(line["mean"]) for line in lines] == expected["nDCG@5"].to_pylist()
    assert "low" not in lines[0] and {line["small"] for line in lines} <= {"True", "False"}
    text = run("score", *words, "--confidence", 0.9).stdout
    assert text.count("  small\n") == expected["small"].to_pylist().count(True) > 0
    assert text.count("nDCG@5") == 1 + len(expected)
    monkeypatch.setattr("fastndcg.sources.streams._LEAST_MEMORY", 1)
    streamed = run("score", *words, "--confidence", 0.9, "--format", "json", "--memory", "4KB")
    assert streamed.exit_code == 0, streamed.stderr
    assert json.loads(streamed.stdout) == facts


def test_score_reads_what_it_wrote(folder, tmp_path):
    out, words = tmp_path / "stored.parquet", ("--by", "country", "--confidence", 0.9, "--format", "json")
    given = ("-m", "nDCG@5", "-m", "nDCG(empty='skip')@3")
    fresh = json.loads(
        run("score", folder / "base.parquet", *given, "--weight", "importance", "--out", out, *words).stdout
    )
    again = run("score", out, *words)
    assert "118 queries, stored results; columns: query=qid, weight=weight\n" in again.stderr
    stored = json.loads(again.stdout)
    for rows in (
        *(each["measures"] for each in (fresh, stored)),
        *(each["slices"] for each in (fresh, stored)),
    ):
        for row in rows:
            if row["measure"] == "nDCG@5":
                assert (row.pop("empty") is None) == (rows in (stored["measures"], stored["slices"]))
    assert [stored[name] for name in ("measures", "slices")] == [
        fresh[name] for name in ("measures", "slices")
    ]
    assert (
        run("score", out).stdout.splitlines()[1].rstrip().endswith("118")
    )  # and nobody knows how many are empty
    gate = run("score", out, "--fail-under", "nDCG@5=0.99")
    assert gate.exit_code == 1 and "below 0.99" in gate.stderr
    assert run("score", out, "-m", "AP").exit_code == 3
    assert "Name it in --keep where" in only_line(run("score", out, "--by", "device").stderr)
    refused = run("score", out, "--weight", "importance")
    assert refused.exit_code == 2 and "stored results, not predictions" in only_line(refused.stderr)


def test_predictions_are_no_results_though_a_column_is_called_as_a_measure(folder, tmp_path):
    table = pq.read_table(folder / "base.parquet")
    table = table.append_column("P", table["score"])
    path = tmp_path / "predictions.parquet"
    pq.write_table(table, path)
    assert "1,062 documents" in run("score", path).stderr
    pq.write_table(table.drop_columns("score"), path)
    for words in (("score", path), ("compare", path, folder / "base.parquet")):
        result = run(*words)
        assert (result.exit_code, result.stdout) == (3, "")
        assert 'since "qid" repeats' in only_line(result.stderr)
    assert "1,062 documents" in run("score", path, "--score", "P").stderr


# ---- worst, random, best ----


def test_score_adds_anchors(folder, monkeypatch):
    monkeypatch.setattr("fastndcg.sources.streams._LEAST_MEMORY", 1)
    words = [folder / "base.parquet", "-m", "nDCG@3", "-m", "AP", "--anchors"]
    found = fn.anchors(fn.read_parquet(folder / "base.parquet"), "nDCG@3, AP")
    for more in ([], ["--memory", "4KB"]):
        result = run("score", *words, "--format", "json", *more)
        assert not result.exit_code, result.stderr
        rows = json.loads(result.stdout)["measures"]
        assert {row["measure"]: row["position"] for row in rows} == {
            name: means["position"] for name, means in found.means().items()
        }
        assert [row["mean"] for row in rows] == [means["actual"] for means in found.means().values()]
        assert "actual" not in rows[0] and rows[0]["std"] > 0
    assert "best  position" in run("score", *words).stdout
    columns = next(csv.reader(io.StringIO(run("score", *words, "--format", "csv").stdout)))
    assert {"worst", "random", "best", "position"} <= set(columns)


def test_score_of_qrels_adds_anchors_of_each_run(tmp_path):
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nq 0 b 0\nq 0 c 2\n")
    (tmp_path / "one.txt").write_text("q Q0 a 1 3 x\nq Q0 b 2 2 x\n")
    (tmp_path / "two.txt").write_text("q Q0 b 1 3 x\nq Q0 c 2 2 x\nq Q0 a 3 1 x\n")
    qrels = [tmp_path / "qrels.txt", "--run", tmp_path / "one.txt", "--run", tmp_path / "two.txt"]
    result = run("score", "--qrels", *qrels, "-m", "R", "--anchors", "--format", "json")
    rows = json.loads(result.stdout)["measures"]
    assert [(row["run"], row["best"]) for row in rows] == [("one", 0.5), ("two", 1.0)]


def test_compare_adds_anchors_and_bootstrap_intervals(folder):
    words = [folder / "base.parquet", folder / "better.parquet", "-m", "nDCG@5"]
    result = run("compare", *words, "--anchors", "--interval", "bca", "--resamples", 500, "--format", "json")
    assert not result.exit_code, result.stderr
    facts = json.loads(result.stdout)
    systems = {name: fn.read_parquet(folder / f"{name}.parquet") for name in ("base", "better")}
    wanted = fn.compare(systems, measures="nDCG@5", interval="bca", resamples=500, anchors=True)
    assert (facts["rows"][0]["low"], facts["interval"]) == (wanted.rows[0]["low"], "bca")
    assert facts["anchors"] == json.loads(wanted.to_json())["anchors"]
    assert run("compare", *words, "--anchors").stdout.count("position") == 1


def test_compare_by_a_convention(folder, tmp_path):
    words = [folder / "base.parquet", folder / "better.parquet", "-m", "nDCG@5", "--convention", "lightgbm"]
    facts = json.loads(run("compare", *words, "--format", "json").stdout)
    systems = {
        name: fn.evaluate(fn.read_parquet(folder / f"{name}.parquet"), "nDCG@5", convention="lightgbm")
        for name in ("base", "better")
    }
    wanted = fn.compare(systems).rows[0]
    plain = json.loads(run("compare", *words[:-2], "--format", "json").stdout)
    assert facts["rows"][0] == wanted != plain["rows"][0]
    (tmp_path / "qrels.txt").write_text(
        "".join(f"q{q} 0 d{d} {(q + d) % 3}\n" for q in range(9) for d in range(5))
    )
    for name, turn in (("one", 1), ("two", -1)):
        lines = [f"q{q} Q0 d{d} 1 {turn * d} x\n" for q in range(9) for d in range(5)]
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    runs = ["--qrels", tmp_path / "qrels.txt", "--run", tmp_path / "one.txt", "--run", tmp_path / "two.txt"]
    facts = json.loads(run("compare", *runs, "--convention", "lightgbm", "--format", "json").stdout)
    scores = json.loads(run("score", *runs, "--convention", "lightgbm", "--format", "json").stdout)
    assert [facts["rows"][0][name] for name in ("baseline_mean", "mean")] == [
        row["mean"] for row in scores["measures"]
    ]


@pytest.mark.parametrize("words", [["--anchors"], ["--convention", "lightgbm"]])
def test_stored_results_know_no_orders(folder, tmp_path, words):
    out = tmp_path / "stored.parquet"
    run("score", folder / "base.parquet", "--out", out)
    result = run("compare", out, folder / "better.parquet", *words)
    assert result.exit_code == 2 and f"{words[0]} has no meaning with" in only_line(result.stderr)


def test_score_takes_stored_results_in_place_of_a_run(tmp_path):
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nq 0 b 0\nq 0 c 2\n")
    (tmp_path / "one.txt").write_text("q Q0 a 1 3 x\nq Q0 b 2 2 x\n")
    (tmp_path / "two.txt").write_text("q Q0 b 1 3 x\nq Q0 c 2 2 x\n")
    qrels, out = ["--qrels", tmp_path / "qrels.txt"], tmp_path / "stored.parquet"
    run("score", *qrels, "--run", tmp_path / "two.txt", "-m", "RR", "--out", out)
    runs = ["--run", tmp_path / "one.txt", "--run", out]
    facts = json.loads(run("score", *qrels, *runs, "-m", "RR", "--format", "json").stdout)
    assert [(row["run"], row["mean"]) for row in facts["measures"]] == [("one", 1.0), ("stored", 0.5)]
    alone = json.loads(run("score", *qrels, "--run", out, "--format", "json").stdout)
    assert alone["measures"][0]["mean"] == 0.5 and alone["documents"] is None
    refused = run("score", *qrels, *runs, "-m", "RR", "--convention", "lightgbm")
    assert refused.exit_code == 2 and "--convention has no meaning with" in only_line(refused.stderr)
