"""What commands refuse: a row for each, with its exit code and what the one line on stderr says. Nothing is written."""

import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import only_line, run

FILES = {
    "c.csv": "qid,label,score\n1,1,0.5\n", "ids": "1\n", "empty": " \n\n", "latin": "é".encode("latin-1"), "file": "no folder",
    "q": "301 0 A 1\n302 0 A 1\n", "r": "301 Q0 C 1 2.5 me\n302 Q0 A 1 0.5 me\n", "short": "301 Q0 C 1 2.5\n", "t": "1 qid:3 1:0.5\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    ids, n = [7, 7, 7, 8, 8, 9, 9], 60
    table = {"qid": ids, "label": [3, 0, 2, 0, 1, 0, 0], "score": [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4]}
    for name in ("p", "b"):
        pq.write_table(
            pa.table(table | {"country": [f"c{each}" for each in ids]}), folder / f"{name}.parquet"
        )
    table = {"qid": [f"q-{row // 6}" for row in range(n)], "label": [row % 4 for row in range(n)]}
    pq.write_table(pa.table(table | {"bm25": [row % 5 for row in range(n)]}), folder / "e.parquet")
    for name, text in FILES.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


REFUSED = [
    # names of columns
    (3, "score p.parquet --query nowhere", "nowhere"),
    (3, "score p.parquet --score labl", 'Did you mean "label"?'),
    (3, "score p.parquet --keep nowhere --out never.parquet", "nowhere"),
    (3, "score p.parquet --weight nowhere", "nowhere"),
    (3, "score p.parquet --weight label", "label"),  # not one value for a query
    (3, "score p.parquet --by nowhere", "nowhere"),
    (3, "score p.parquet --by label", "label"),
    (2, "score p.parquet --by mean", "results have a column mean of their own"),
    (2, "score p.parquet --score score --score label", "; `fastndcg compare` takes several"),
    (2, "report p.parquet --score score --score score --out p.html", "--score: score is given 2 times; give each column once"),
    # measures and numbers
    (3, "score p.parquet -m 'DCG(discount=[1, 0.5])@3'", "discount"),
    (2, "score p.parquet -m nDGC@10", 'Did you mean "nDCG"?'),
    (2, "score p.parquet -m nDCG@0", "cutoff 0"),
    (2, """score p.parquet -m "nDCG(gain='exp')@3" """, "gain='exp' is not known"),
    (2, "score p.parquet -m nDCG@", "is not a measure"),
    (2, "score p.parquet --confidence 95", "Did you mean 0.95?"),
    (2, "score p.parquet --confidence 0", "is not between 0 and 1"),
    (2, "score p.parquet --confidence x", "for '--confidence'"),
    (2, "score p.parquet --threads 0", "for '--threads'"),
    (2, "score p.parquet --threads two", "for '--threads'"),
    (2, "trec_eval --release 12 q r", "for '--release'"),
    (2, "trec_eval -l -1 q r", "for '--level_for_rel'"),
    (2, "score p.parquet --anchors --convention trec_eval", "--anchors and --convention do not go together"),
    (3, """score p.parquet --anchors -m "nDCG(ideal='returned', ties='input')@1" """, "has no known worst order"),
    # options and arguments
    (2, "score", "nothing to score. Give PATH, or --qrels and --run."),
    (2, "score p.parquet --nonsense", "No such option"),
    (2, "score p.parquet --format", "Option '--format' requires an argument"),
    (2, "score p.parquet --format maarkdown", "'maarkdown' is not one of 'table', 'json', 'csv', 'markdown'"),
    (2, "trec_eval q", "Missing argument 'RUN...'. (see `fastndcg trec_eval -h`)"),
    (2, "history", "Missing argument 'add|show|page'"),
    (2, "history add p.parquet", "Missing option '--history'"),
    (2, "compile a", "unexpected extra argument"),
    (2, "check r", "Missing option '--qrels'"),
    (2, "score p.parquet -k 5", 'it belongs to the measure: write -m "nDCG@10"'),
    (2, "score p.parquet --gain exp2", """it belongs to the measure: write -m "nDCG(gain='exp2')@10" """.strip()),
    (2, "scoer p.parquet", "Did you mean 'score'?"),
    (2, "score p.parquet --no-worse-then p", "No such option: --no-worse-then"),
    (2, "score --qrels q", "--qrels and --run go together"),
    (2, "score --run r", "--qrels and --run go together"),
    (2, "score --qrels q --run r --is-judged c", "--is-judged has no meaning with --qrels and --run"),
    (2, "score p.parquet --missing skip", "--missing has no meaning without --qrels and --run"),
    (2, "report q --qrels q --run r --out p.html --is-judged x", "--is-judged has no meaning with --qrels"),
    *(
        (code, f"{command} --qrels q --run r {option}", said)
        for command in ("score", "compare", "explain --id 1", "report -o p.html")
        for code, option, said in (
            (2, "--is-judged seen", "--is-judged has no meaning with --qrels and --run"),
            (2, "--propensity chance", "--propensity has no meaning with --qrels and --run"),
            (3, "--rank place", "--rank is of a column, and "),
            (3, "--grades Good=1", "--grades is of a column, and "),
        )
    ),
    # gates
    *(
        (2, f"score p.parquet --fail-under {bound}", said)
        for bound, said in (
            ("nDCG@10", 'wanted MEASURE=NUMBER, as in "nDCG@10=0.35"'),
            ("\"nDCG(gain='exp2')@10\"", "wanted MEASURE=NUMBER"),
            ("nDCG@10=good", "wanted MEASURE=NUMBER"),
            ("nDCG@10=nan", "wanted MEASURE=NUMBER"),
            ("=0.3", "wanted MEASURE=NUMBER"),
            ("nDGC@10=0.3", 'Did you mean "nDCG"?'),
        )
    ),
    (2, "compare p.parquet b.parquet --no-worse-than p --queries ids --unpaired", "independent samples share no query"),
    (3, "compare p.parquet b.parquet --no-worse-than p --queries empty", "--queries: empty holds no ids; give one a line"),
    (3, "compare p.parquet b.parquet --no-worse-than p --queries latin", "--queries: latin is not UTF-8 text"),
    (3, "compare p.parquet b.parquet --no-worse-than p --queries nowhere", "--queries: nowhere cannot be read"),
    # files
    (3, "score --qrels q --run short", "short, line 1: 5 fields"),
    (3, "score --qrels q --run absent", "absent does not exist. Check the path."),
    (2, "score p.parquet --out scores.json", "name a file ending in .parquet, .csv"),
    (2, "score p.parquet --out p.parquet", "is the input itself"),
    (2, "report p.parquet --out p.parquet", "--out: p.parquet is the input itself; name another file"),
    *(
        (3, f"{command} --out {out}", "cannot be written")
        for command in ("score p.parquet", "demo --queries 3")
        for out in ("no/such/folder.parquet", "file/inside.parquet", ".")
    ),
    (2, "score c.csv p.parquet", "one kind is read at a time: 1 of CSV (c.csv), 1 of Parquet (p.parquet). Name the files of one kind"),
    (2, "score c.csv --intents label", "--intents names a column of lists, which CSV has not"),
    (3, "score c.csv --score s2", 'c.csv: there is no column "s2"'),
    # explanations and conventions
    (2, "explain e.parquet --score bm25", "no query is named; give --id ID"),
    (3, "explain e.parquet --score bm25 --id q-44", "query 'q-44' is not among 10 queries. The nearest are: q-4"),
    (2, "explain e.parquet --score bm25 --id q-4 -m nDCG@1,3", "names 2 measures; wanted one"),
    (3, "explain e.parquet --score bm25 --id q-4 -m NumRel", "looks at no ranking"),
    (2, "explain e.parquet --score bm25 --movers 2", "--movers is of two systems; 1 is given"),
    (3, "explain e.parquet --id q-4 --score none", "none"),
    (2, "score p.parquet --convention lightgmb", '--convention: no convention is called "lightgmb"'),
    (2, "conventions p.parquet -n lightgmb", '--name: no convention is called "lightgmb"'),
    (2, "conventions p.parquet --explain lightgmb sklearn", '--explain: no convention is called "lightgmb"'),
    (2, "conventions p.parquet -n lightgmb", 'Did you mean "lightgbm"?'),
    (2, "conventions --explain sklearn lightgbm", "need data"),
    (3, "conventions p.parquet --explain sklearn recpack", "there is no way from sklearn to recpack"),
    (2, "conventions sklearn", "sklearn is a convention and no file; name it as in -n sklearn"),
    (2, "conventions sklaern", 'no file "sklaern", and no convention of this name. Did you mean "sklearn"?'),
]  # fmt: skip


@pytest.mark.parametrize(("code", "words", "said"), REFUSED, ids=[case[1] for case in REFUSED])
def test_refused(code, words, said, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*shlex.split(words))
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert said in only_line(result.stderr)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
