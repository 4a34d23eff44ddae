"""Tables of results: what stays at which width, and what they give to other libraries."""

import pickle
import re
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest import mock

import commands
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.common.markup import markdown_table
from fastndcg.common.table import Table, fit, shorten, terminal_width
from fastndcg.scores.summary import Summary

SNAPSHOTS = Path(__file__).parent.parent / "golden" / "tables.txt"
MEASURES = ["nDCG@10", "nDCG(gain='exp2', ties='worst')@10", "AP(rel=2)", "RR"]
WIDTHS = (40, 80)
KEYS = 5  # most columns of names, such as two slices, measure, system and baseline


@cache
def tables():
    """Tables of every kind; those that fit themselves to the terminal as they are shown last."""
    rng = np.random.default_rng(7)
    lists = [rng.integers(0, 4, 12).tolist() for _ in range(50)]
    kept = {"country": ["de", "fr"] * 25, "a column of a long name": ["x" * 100, "y"] * 25}
    scores = fn.evaluate(fn.Rankings.from_lists(lists, queries=kept), MEASURES)
    rng = np.random.default_rng(8)
    lists = [rng.integers(0, 4, 12).tolist() for _ in range(50)]
    systems = {
        name: fn.Rankings.from_lists(lists, rng.random((50, 12)).round(1).tolist(), doc_ids=[f"d{place}" for place in range(600)])
        for name in ("base", "reranked")
    }  # fmt: skip
    found = {name: fn.evaluate(each, MEASURES) for name, each in systems.items()}
    summary = scores.summary()
    return {
        "summary": summary,
        "summary with intervals": scores.summary(0.95),
        "summary of runs": Summary(
            [{"run": run, **row} for run in ("bm25", "rerank") for row in summary.rows]
        ),
        "by": scores.by("country", 0.95),
        "by two": scores.by(["country", "a column of a long name"]),
        "worst": scores.worst("RR", 3),
        "measures": fn.measures.table(),
        "scores": scores,
        "scores of a convention": fn.evaluate(systems["base"], MEASURES[:2], convention="lightgbm"),
        "anchors": fn.anchors(systems["base"], MEASURES),
        "comparison": fn.compare(found),
        "comparison with a baseline": fn.compare(found, "base"),
        "explanation": fn.explain(systems["base"], "nDCG@10", 7),
    }


def shown_of(width, shows):
    """What is shown in a terminal of so many columns."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("fastndcg.") and "terminal_width" in vars(module):
                stack.enter_context(mock.patch.object(module, "terminal_width", return_value=width))
        return shows()


def shown_at(width, line):
    result = shown_of(width, lambda: commands.run(line))
    assert result.exit_code == 0, result.output
    return result.stdout


def text():
    """Two tables at two widths; laws below hold for all tables and widths."""
    parts = [
        f"---- {name}, {width} columns\n{shown_of(width, tables()[name].__repr__)}"
        for name in ("summary with intervals", "comparison with a baseline")
        for width in (80, 120)
    ]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()) + "\n"


def test_tables_are_those_of_the_snapshots():
    """After a change that is meant, run this file; look at the difference."""
    assert text() == SNAPSHOTS.read_text(encoding="utf-8")


def check_that_tables_fit(text, width):
    """No line is wider, but sentences, and tables of names and one column: names are never cut."""
    for table in text.split("\n\n"):
        for line in table.splitlines():
            if re.search(r"Left out|caution:|;|[.%]$", line):
                continue
            assert len(line) <= width or len(re.split("  +", line.strip())) <= 1 + KEYS, line


@pytest.mark.parametrize("width", [1, 20, *WIDTHS, 1000])
def test_no_name_and_no_mean_is_ever_cut(width):
    scores = tables()["scores"]
    for name in ("summary", "summary with intervals"):
        lines = tables()[name].text(width)
        assert all(measure in lines and f"{mean:.6f}" in lines for measure, mean in scores.mean().items())
    whole = tables()["by"].text(width)
    for measure, values in zip(MEASURES, scores.values, strict=True):
        assert measure in whole and f"{np.mean(values[::2]):.6f}" in whole


@pytest.mark.parametrize("width", [*WIDTHS, 120])
def test_what_is_printed_fits_and_says_where_the_rest_is(width):
    """The expression that a last line names is evaluated, and has the columns."""
    for name, value in tables().items():
        shown = value.text(width) if isinstance(value, Table) else shown_of(width, value.__repr__)
        check_that_tables_fit(shown.partition("\n")[2], width)
        for names, see in re.findall(r"Left out: ([^;.]+); (.+?) or a wider", shown.replace("\n  ", " ")):
            has = eval(f"value.{see}", {"value": value})
            has = has if isinstance(has, str) else " ".join(has.column_names)
            assert all(each in has for each in names.split(", ")), name
    for line in (
        "measures",
        "measures AP",
        "conventions",
        "conventions -n sklearn -n catboost_exp_position -n recsys",
    ):
        whole, narrow = shown_at(0, line), shown_at(width, line)
        assert max(map(len, narrow.splitlines())) <= width
        words = re.sub("[;,]", " ", narrow).split() + narrow.split()
        assert set(whole.split()) <= {*words, "name", "measure", "tool"}


# what is typed, and the columns that no width leaves out; the others may be, and are named then
LONG = """-m nDCG@10 -m "nDCG(gain={0:0,1:1,2:3,3:7,4:15,5:31},ties='worst',empty='skip')@10" """
TYPED = {
    "score W --score base": "mean empty",
    f"score W --score base {LONG} --confidence 0.9": "mean low high empty",
    "score W --score base --by country --confidence 0.9": "mean low high",
    f"score W --score base {LONG} --by country --by device": "mean",
    "score --qrels Q A B": "mean empty",
    "compare W --score base --score better": "difference low high p",
    f"compare W {LONG} --score base --score better --score {'worse' * 6}": "difference low high p",
    "compare W --score base --score better --by country": "difference low high p",
    f"compare W --score base --score {'worse' * 6} --by country --by device": "difference low high p",
    "compare --qrels Q A B": "difference low high p",
    "explain W --score base --id q-3": "rank doc_id grade contribution",
    "explain W --score base --score better --id q-3": "rank doc_id grade contribution",
    "explain W --score base --id q-7 -m AP": "rank doc_id grade contribution",
    "conventions": "measure ties missing",
    "conventions W --score base -n sklearn -n lightgbm -n trec_eval": "value difference effects",
    "conventions W --score base --explain sklearn lightgbm": "choice value effect",
}
NAMES = ("measure", "system", "baseline", "run", "country", "device", "name", "convention", "query_id")


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Files by the letters that commands above have for them: long names, long ids, small slices."""
    folder, rng = tmp_path_factory.mktemp("typed"), np.random.default_rng(4)
    query, grades = np.repeat(np.arange(80), 12), rng.integers(0, 4, 960)
    systems = {name: grades + rng.normal(0, 2, 960) for name in ("base", "better", "worse" * 6)}
    columns = {
        "query_id": [f"q-{one}" for one in query],
        "doc_id": [f"d{row}" + "-long" * 9 * (row % 5 == 0) for row in range(960)],
        "relevance": grades,
        "country": np.array(["de", "a country of a rather long name", "fr"])[(query > 40) + 1 * (query > 70)],
        "device": np.array(["phone", "desk"])[query % 2],
    }
    pq.write_table(pa.table(columns | systems), folder / "wide.parquet")
    judged = zip(columns["query_id"], columns["doc_id"], grades, strict=True)
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {grade}\n" for q, d, grade in judged))
    paths = {"W": folder / "wide.parquet", "Q": folder / "qrels.txt"}
    for letter, system in (("A", "base"), ("B", "better")):
        paths[letter] = folder / f"{system}_of_a_run_with_a_name.txt"
        rows = zip(columns["query_id"], columns["doc_id"], systems[system], strict=True)
        paths[letter].write_text("".join(f"{q} Q0 {d} 1 {score} x\n" for q, d, score in rows))
    return {letter: str(path) for letter, path in paths.items()}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("line", TYPED)
def test_what_matters_is_shown_at_any_width_and_a_line_names_the_rest(typed, line, width):
    typed_line = " ".join(typed.get(word, word) for word in line.split())
    whole, narrow = shown_at(0, typed_line), shown_at(width, typed_line)
    note = r"Left out: ([^;.]+); ([^.]+) or a wider terminal shows (?:it|them)\."
    tables, notes = (
        re.sub(note, "", narrow.replace("\n  ", " ")),
        re.findall(note, narrow.replace("\n  ", " ")),
    )
    named = {name for names, _ in notes for name in names.split(", ")}
    assert "Left out" not in whole + tables and "..." not in whole
    lines = [each.split() for each in whole.splitlines()]
    headers = [each for each in lines if len(each) > 1 and all(map(str.isidentifier, each))]
    assert headers
    columns = {name for header in headers for name in header} - {"base", "better"}
    assert set(TYPED[line].split()) <= columns
    # what matters, and the mark of small slices, stand in tables; all else too, or in the line
    assert set(TYPED[line].split()) <= set(tables.split()) and not named & set(TYPED[line].split())
    assert tables.split().count("small") == whole.split().count("small")
    assert columns - set(tables.split()) - set(NAMES) <= named <= columns
    for names, see in notes:
        has = commands.run(f"{typed_line} {see}")
        assert has.exit_code == 0 and all(name.strip() in has.stdout for name in names.split(",")), see
    check_that_tables_fit(narrow, width)
    assert set(re.findall(r"nDCG\(.*?\)@10|a country of a rather long name|(?:worse){6}", whole)) == set(
        re.findall(r"nDCG\(.*?\)@10|a country of a rather long name|(?:worse){6}", tables)
    )


def test_a_table_is_arrow_to_others():
    scores = tables()["scores"]
    table = scores.by("country")
    assert table.to_arrow().equals(pa.table(table)) and table == table.to_arrow() and table != pa.table({})
    assert table["country"].to_pylist() == ["de", "fr"] and len(table) == table.num_rows == 2
    assert table.to_pandas()["RR"].tolist() == table.to_polars()["RR"].to_list() == table["RR"].to_pylist()
    assert pickle.loads(pickle.dumps(table)) == table
    assert '<td style="text-align:left">de</td>' in table._repr_html_()
    again = pickle.loads(pickle.dumps(scores.summary()))
    assert isinstance(again, Summary) and again.rows == scores.summary().rows
    assert again["mean"].to_pylist() == list(scores.mean().values())
    with pytest.raises(AttributeError, match="nothing"):
        table.nothing  # noqa: B018


def test_long_tables_and_texts_are_shortened():
    table = Table(pa.table({"id": ["q" * 500] * 1000, "RR": [0.5] * 1000}))
    lines = table.text(80).splitlines()
    assert lines[-1] == "... and 960 more rows; to_arrow() has all" and max(map(len, lines)) <= 80
    html = table._repr_html_()
    assert html.endswith("<p>... and 960 more rows</p>") and html.count("<tr>") == 41
    assert shorten("a\nb") == r"a\nb" and len(shorten("x" * 1000)) == 60


def test_markdown_escapes():
    assert markdown_table([["a", "b"], ["x|y", "1"]]).splitlines()[-1] == r"| x\|y | 1 |"
    hostile = "<img src=x>[a](javascript:b)`*\\|\n&lt;"
    shown = r"\<img src=x\>\[a\](javascript:b)\`\*\\\|\\n\&lt;"
    assert markdown_table([["a"], [hostile]]).splitlines()[-1] == f"| {shown} |"
    scores = fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1]]), "RR")
    assert f"| a | {shown} | **0.7500** |" in fn.compare({hostile: scores, "b": scores}).to_markdown()


def test_text_that_nobody_reads_in_a_terminal_is_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert terminal_width() == 0
    assert "q25" in repr(tables()["summary"])
    assert fit([["a", "mean"], ["b", "1"]], 1, [("mean",)], 0) == "a  mean\nb     1"


def test_messages_shorten_long_ids():
    ids = ["q" * 5_000, "b"]
    with pytest.raises(fn.InputError, match="NaN") as error:
        fn.Rankings.from_lists([[1, 0], [1]], [[0.5, float("nan")], [0.5]], query_ids=ids)
    assert len(str(error.value)) < 300 and 'query "qqq' in str(error.value)
    with pytest.raises(fn.InputError, match="qqq") as error:
        fn.Rankings.from_qrels_run({ids[0]: {"a": 1}}, {ids[0]: {"d" * 5_000: float("nan")}})
    assert len(str(error.value)) < 500


def test_null_differs_from_every_text():
    values = [None, "None", "null", "", '"null"', '""', "NaN"]
    scores = fn.evaluate(fn.Rankings.from_lists([[1, 0]] * 7, queries={"slice": values}), "RR")
    for table in (scores.by("slice"), scores.worst("RR"), scores.by(["slice", "query_id"])):
        place = table.column_names.index("slice")
        assert {row[place] for row in table._texts()[1:]} == {
            "null", "None", '"null"', '""', '""null""', '""""', "NaN",
        }  # fmt: skip
    numbers = fn.evaluate(fn.Rankings.from_lists([[1]] * 2, queries={"day": [None, 1]}), "RR").by("day")
    assert [row[0] for row in numbers._texts()[1:]] == ["1", "null"]


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>", "\x1b[31mred\x1b]0;title\x07", "a\nb\r\nc", "\x00\x7f\x85", "\u2028\u2029",
        "\u202eright to left\u2066", "\ufffe\uffff\ufeff",
    ],
)  # fmt: skip
def test_no_text_of_users_rules_a_terminal_or_a_notebook(hostile):
    """Text of users is escaped, whatever it is of; numbers of summaries have their intervals."""
    columns = {"query_ids": [hostile, "b"], "queries": {"country": [hostile, "fr"]}, "doc_ids": list("abcd")}
    rankings = fn.Rankings.from_lists([[1, 0], [0, 1]], **columns)
    scores = fn.evaluate(rankings, ["RR", "nDCG@1"])
    shown = {
        "Scores": scores,
        "Summary": scores.summary(0.95),
        "Comparison": fn.compare({hostile: scores, "b": scores}, baseline="b"),
        "Explanation": fn.explain(rankings, "RR", hostile),
        "Ranges": fn.tie_range(rankings, "RR"),
        "Anchors": fn.anchors(rankings, "RR"),
        "Table": scores.by("country", 0.95),
        "Conventions": fn.conventions,
        "ConventionTable": fn.compare_conventions(rankings, "nDCG@1"),
        "ConventionScores": fn.evaluate(rankings, "nDCG@1", convention="sklearn"),
    }
    unseen = re.compile(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
    )
    for name, each in shown.items():
        html = each._repr_html_()
        printed = f"{each!r}\n{each.to_markdown() if name == 'Comparison' else ''}"
        assert not unseen.search(html) and not unseen.search(printed) and hostile not in html, name
        assert "\n" not in hostile or hostile not in printed, name
        assert "<script" not in html and html.count("<table>") == html.count("</table>") >= 1, name
    for name in ("Scores", "Summary", "Comparison", "ConventionScores"):
        assert "<th>low</th>" in shown[name]._repr_html_(), name


if __name__ == "__main__":
    SNAPSHOTS.write_text(text(), encoding="utf-8")
