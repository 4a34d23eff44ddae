"""Measures as people type them, and results under the name that was asked for."""

import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import fastndcg as fn
from fastndcg import MeasureError
from fastndcg.measures import DEFINITIONS, aliases

SPELLINGS = {
    "nDCG@10": (
        "ndcg@10, NDCG@10, nDcG@10,  ndcg @ 10 , ndcg_cut_10, ndcg_cut.10, ndcg_at_10, NDCG_at_10, ndcg_10"
    ),
    "nDCG": "ndcg",
    "nDCG@5": "ndcg_score@5, NormalizedDCG@5, normalized_dcg@5",
    "nDCG(gain='exp2')@5": "ndcg_burges@5, ndcg(gain='exp2')@5, ndcg(dcg='exp-log2')@5",
    "DCG@5": "dcg@5, DCG_at_5",
    "IDCG@5": "idcg@5",
    "CG@3": "cg@3",
    "AP": "map, MAP, mean_average_precision, average precision",
    "AP@100": "Map@100, map_cut.100, map_cut_100, ap@100",
    "AP(rel=2)": "AP(rel=2)",
    "AP(rel=2)@10": "map(rel=2)@10",
    "AP@10": "MeanAveragePrecision@10",
    "RR": "mrr, recip_rank",
    "RR@10": "MRR@10, mrr_10, reciprocal_rank@10, rr@10",
    "P@10": "Precision@10, precision@10, precision_at_10, p@10, P_10, P.10",
    "R@10": "Recall@10, recall@10, recall_10, r@10",
    "R@1000": "recall.1000",
    "F@10": "f1@10, F1_score@10",
    "F(beta=2)@10": "f2@10",
    "Success@10": "HitRate@10, hit_rate@10, hit-rate@10, HR@10, Hit@10, hit_ratio@10",
    "Success@5": "success_5, success@5",
    "Rprec": "rprec, R-Precision, r_precision",
    "Bpref": "bpref",
    "infAP": "infap",
    "AUC": "auc, ROC-AUC, AUROC, roc_auc_score",
    "AUC@10": "RocAuc@10",
    "IPrec@0.1": "iprec_at_recall_0.10",
    "IPrec@0.5": "iprec@0.5",
    "NumRet(rel=1)": "num_rel_ret",
    "NumRet@5": "num_ret@5",
    "NumRel": "num_rel",
    "SetP": "set_P",
    "SetR": "set_recall",
    "SetAP": "set_map",
    "ERR@20": "err@20",
    "RBP(p=0.95)": "rbp(p=0.95)",
    "alpha_nDCG@20": "alpha-nDCG@20, α_nDCG@20",
    "alpha_DCG@20": "alpha-dcg@20",
    "ERR_IA@20": "err-ia@20",
    "StRecall@10": "strec@10",
}


@pytest.mark.parametrize(
    ("spelling", "notation"), [(each, to) for to, spellings in SPELLINGS.items() for each in spellings.split(", ")]
)  # fmt: skip
def test_a_spelling_is_read_and_shown_as_the_notation(spelling, notation):
    measure = fn.parse(spelling)
    assert str(measure) == notation
    assert fn.parse(str(measure)) == measure
    assert measure.label in (spelling.strip(), str(measure))
    assert pickle.loads(pickle.dumps(measure)).label == measure.label


def test_no_two_names_are_told_apart_by_case_alone():
    keys = [aliases.key(name) for name in DEFINITIONS]
    assert len(set(keys)) == len(keys)
    for alias, notation in aliases.ALIASES.items():
        assert aliases.key(alias) not in keys or fn.parse(notation).name == alias, alias


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("Recall@5,10", ["Recall@5", "Recall@10"]),
        ("ndcg_cut.5,10, map", ["ndcg_cut.5", "ndcg_cut.10", "map"]),
        ("nDCG@1,3, mrr", ["nDCG@1", "nDCG@3", "mrr"]),
        ("NumRelRet@3", ["NumRelRet@3"]),
        ("recall@1-3,5", ["recall@1", "recall@2", "recall@3", "recall@5"]),
        ("recall@all, map@all", ["recall@all", "map@all"]),
        ("iprec@0.1,0.2", ["iprec@0.1", "iprec@0.2"]),
    ],
)
def test_several_spellings_keep_their_names(text, labels):
    assert [measure.label for measure in fn.parse_many(text)] == labels


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("recal@10", r'no measure is called "recal". Did you mean Recall \(R here\), .* list all names'),
        ("ndgc@10", "Did you mean nDCG, "),
        ("DCGG", "Did you mean DCG, "),
        ("IDGC@3", r"Did you mean IDCG\?"),
        ("numrett", "Did you mean NumRet, "),
        ("nDCGs", "Did you mean nDCG, "),
        ("hitrat@10", r"Did you mean HitRate \(Success here\)\?"),
        ("ndcg10", r"Did you mean nDCG@10\?"),
        ("xyzzy", r'"xyzzy". docs/measures.md and `fastndcg measures` list all names.$'),
        ("accuracy@3", "is Success@k, a hit among the first k ranks; ir_measures Accuracy is AUC"),
        ("top-k-accuracy", "not a measure|is Success@k"),
        ("Accuracy", "is Success@k"),
        ("GAUC", r'scores.mean\(weights="n_docs"\)'),
        ("gauc_10", "evaluate AUC"),
        ("coverage@10", 'recipe "Catalogue coverage, popularity and novelty"'),
        ("Novelty", 'recipe "Catalogue coverage'),
        ("spearman", 'recipe "Agreement of rankings"'),
        ("kendall_tau", 'recipe "Agreement of rankings"'),
        ("RMSE", "scikit-learn computes it"),
        ("nDCG(gain='exponential')", 'Did you mean "exp2"?'),
        ("nDCG(gain='Exp2')", 'Did you mean "exp2"?'),
    ],
)
def test_an_error_names_the_nearest_first(text, advice):
    with pytest.raises(MeasureError, match=advice) as error:
        fn.parse(text)
    assert len(str(error.value)) < 300


def test_recipes_that_errors_name_are_there():
    pages = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
    named = {
        recipe for answer in aliases._ANSWERS.values() for recipe in re.findall('recipe "(.*?)"', answer)
    }
    assert named and all(re.search(f"^##+ {recipe}$", pages, re.MULTILINE) for recipe in named)


def test_results_are_found_under_the_name_that_was_asked_for(tmp_path):
    rankings = fn.Rankings.from_lists([[1, 0], [0, 1]], queries={"country": ["de", "fr"]})
    scores = fn.evaluate(rankings, ["ndcg@10", "Recall@1,2", "nDCG(gain='exp2')@5", "AP"])
    means = scores.mean()
    assert list(means) == ["nDCG@10", "R@1", "R@2", "nDCG(gain='exp2')@5", "AP"]
    assert means["Recall@1"] == means["recall_1"] == means["R@1"] == means.get("recall@1") == 0.5
    assert "map" in means and "rr" not in means and means.get("what", 3) == 3
    with pytest.raises(KeyError, match="rr"):
        means["rr"]
    asked = ["ndcg@10", "Recall@1", "Recall@2", "nDCG(gain='exp2')@5", "AP"]
    assert scores.to_arrow().column_names[-5:] == asked
    assert scores.to_pandas()["ndcg@10"].tolist() == scores["nDCG@10"].tolist() == scores["NDCG@10"].tolist()
    assert scores.by("country").column_names[-5:] == asked
    assert scores.worst("recall@1").column_names[-1] == "Recall@1"
    assert "R@1" in repr(scores) and "Recall" not in repr(scores)


@pytest.mark.parametrize("name", ["MRR", "MRR_low"])
def test_a_column_of_slices_with_the_name_of_a_result_is_refused(name):
    scores = fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1]], queries={name: ["de", "fr"]}), "MRR")
    with pytest.raises(fn.ColumnError, match=f'"{name}" has the name of a result of RR; rename it'):
        scores.by(name, 0.9)
    assert fn.evaluate(fn.Rankings.from_lists([[1]], queries={name: ["de"]}), "RR").by(name)[
        0
    ].to_pylist() == ["de"]


def each_alias():
    """Each alias with a cutoff or recall where it can have one, and each measure in capitals."""
    found = []
    for name in (*aliases.ALIASES, *map(str.upper, DEFINITIONS)):
        needs = {"SDCG": "(max_rel=3)", "PFOUND": "(stop=[0, 0.1, 0.2, 0.7])"}.get(name, "")
        cut = fn.parse(name).definition.cut
        found.append(name + needs + {"rank": "@3", "recall": "@0.2"}.get(cut, ""))
    return found


def one_alias_each():
    """An alias of each measure; that all aliases are read is another test."""
    return list({fn.parse(alias): alias for alias in each_alias()}.values())


@pytest.fixture
def graded(tmp_path):
    """Two systems, with intents, a column of slices, and no column of a measure's name."""
    path = tmp_path / "graded.parquet"
    columns = {
        "qid": [1, 1, 1, 2, 2, 3, 3, 4, 4],
        "doc_id": list("abcabcdab"),
        "label": [3, 0, 2, 0, 1, 1, 0, 0, 2],
        "score": [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4, 0.2, 0.1],
        "rerank": [0.9, 0.7, 0.8, 0.6, 0.5, 0.5, 0.4, 0.1, 0.2],
        "both": [[label, 1] for label in (3, 0, 2, 0, 1, 1, 0, 0, 2)],
        "country": ["de"] * 5 + ["fr"] * 4,
    }
    pq.write_table(pa.table(columns), path)
    return path


MORE = ([], ["--confidence", "0.9"], ["--by", "country"], ["--by", "country", "--confidence", "0.9"])


@pytest.mark.parametrize(
    ("kind", "out"), [("table", "parquet"), ("json", "jsonl"), ("csv", "csv"), ("csv", "feather")]
)
def test_score_prints_writes_and_holds_each_alias(graded, tmp_path, kind, out):
    """In every format, with all options."""
    aliases = one_alias_each()
    named = [part for alias in aliases for part in ("-m", alias)]
    gates = [part for alias in aliases for part in ("--fail-under", f"{alias}=-1")]
    stored = tmp_path / f"stored.{out}"
    often = ["--format", kind, *named, *gates]
    for more in MORE:
        run_ok("score", graded, "--intents", "both", *often, *more, "--keep", "country", "--out", stored)
        shown = run_ok("score", stored, *often, *more)
        assert all(str(fn.parse(alias)).split("(")[0] in shown for alias in aliases)


def run_ok(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, (arguments, result.output)
    return result.stdout


def test_compare_explain_and_report_take_each_alias(graded, tmp_path, undrawn):
    shown = [alias for alias in one_alias_each() if fn.parse(alias).definition.method != "intents"]
    named = [part for alias in shown for part in ("-m", alias)]
    systems = [graded, "--score", "score", "--score", "rerank"]
    for kind in ("table", "json", "csv"):
        run_ok("compare", *systems, *named, "--format", kind)
        run_ok("compare", *systems, *named, "--format", kind, "--by", "country")
    run_ok("compare", *systems, *named, "--no-worse-than", "score", "--margin", "9")
    for place, alias in enumerate(alias for alias in shown if fn.parse(alias).name not in UNEXPLAINED):
        kind = ("table", "json", "csv")[place % 3]
        run_ok("explain", graded, "-m", alias, "--worst", "1", "--format", kind)
    page = tmp_path / "page.html"
    some = [part for alias in shown[len(shown) % 3 :: 3] for part in ("-m", alias)]  # each has a dozen charts
    run_ok("report", graded, *some, "--by", "country", "-o", page)
    assert page.stat().st_size


UNEXPLAINED = ("AUC", "IPrec", "SetAP", "IDCG", "NumRel", "RBPresidual")


@pytest.mark.parametrize("alias", one_alias_each())
def test_results_are_found_by_each_alias(graded, alias):
    measure = fn.parse(alias)
    read = {"keep": "country", "intents": "both"}
    rankings = {name: fn.read_parquet(graded, score=name, **read) for name in ("score", "rerank")}
    systems = {name: fn.evaluate(each, alias.replace("@3", "@1,3")) for name, each in rankings.items()}
    scores, compared = systems["score"], fn.compare(systems)
    for name in (alias, str(measure)):
        assert scores[name].tolist() == scores.values[-1].tolist()
        assert scores.mean()[name] == scores.mean()[str(measure)]
        assert len(scores.worst(name)) == len(scores.best(name))
        compared.movers(name)
    charts = [
        lambda: scores.plot.distribution(alias), lambda: compared.plot.differences(alias), lambda: scores.plot.slices(alias, "country"),
        lambda: compared.plot.effects(alias), lambda: measure.definition.cut != "rank" or scores.plot.cutoffs(alias),
    ]  # fmt: skip
    charts[one_alias_each().index(alias) % len(charts)]()  # all look the name up in one way
    assert scores.by("country", 0.9).column_names[-4] == measure.label


@pytest.mark.parametrize(
    ("command", "options", "written"),
    [
        ("score", ["-k", 5], "nDCG@10"), ("score", ["-k5"], "nDCG@10"), ("score", ["--cutoff=5"], "nDCG@10"),
        ("score", ["-m", "nDCG", "--topk", 5], "nDCG@10"), ("score", ["--gain", "exp2"], "nDCG(gain='exp2')@10"),
        ("score", ["-m", "nDCG(k=5)"], "nDCG@5"), ("compare", ["-m", "nDCG(k=5)"], "nDCG@5"), ("compare", ["-k", 5], "nDCG@10"),
        ("explain", ["--gain", "exp2"], "nDCG(gain='exp2')@10"), ("report", ["-m", "nDCG", "--topk", 5], "nDCG@10"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_given_as_options_are_answered_with_what_to_write(
    graded, tmp_path, command, options, written
):
    more = {
        "explain": ["--id", 1],
        "compare": ["--score", "score", "--score", "rerank"],
        "report": ["-o", tmp_path / "p"],
    }
    result = run(command, graded, *more.get(command, []), *options)
    found = re.search(r'write (?:-m )?("[^"]*"|\S+)', result.stderr)
    assert result.exit_code == 2 and found is not None and found[1].strip('"') == written
    if command != "report":  # which takes seconds
        run_ok(command, graded, *more.get(command, []), "-m", written)


def test_words_may_stand_without_quotes(graded):
    assert fn.parse("nDCG(gain=exp2, empty=skip)@10") == fn.nDCG(gain="exp2", empty="skip") @ 10
    assert fn.parse("nDCG(like=lightgbm)@3") == fn.nDCG(like="lightgbm") @ 3
    assert "nDCG(gain='exp2')@10" in run_ok("score", graded, "-m", "nDCG(gain=exp2)@10")
    with pytest.raises(MeasureError, match="gain='exponential' is not known.*Did you mean"):
        fn.parse("nDCG(gain=exponential)")
    with pytest.raises(MeasureError, match="nDCG has no parameter 'k': write nDCG@10"):
        fn.nDCG(k=10)


@pytest.mark.parametrize("second", ["0.5", "0.4"])
def test_measures_of_trec_eval_on_tied_documents_say_what_has_its_order(tmp_path, second):
    qrels, given = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n")
    given.write_text(f"q1 Q0 a 1 0.5 r\nq1 Q0 b 2 {second} r\nq2 Q0 a 1 1 r\n")
    asked = ["-m", "map", "-m", "P_1", "-m", "num_rel_ret", "-m", "MRR"]
    said = run("score", "--qrels", qrels, "--run", given, *asked).stderr.splitlines()[:-1]
    if second == "0.4":
        assert said == []
        return
    of = "is the expected value over the orders of tied documents; trec_eval orders them by descending id"
    assert said == [
        f"Warning: map {of}: -m \"AP(ties='input')\"",
        f"Warning: P_1 {of}: -m \"P(ties='input')@1\"",
    ]
    theirs = run_ok("trec_eval", "-m", "map", "-m", "P.1", qrels, given).split()
    assert theirs[2::3] == ["0.7500", "0.5000"]
