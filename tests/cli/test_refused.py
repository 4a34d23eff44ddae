"""What commands refuse: a row for each, with its exit code and what the one line on stderr says. Nothing is written."""

import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import only_line, run

LABELS, SCORES = [3, 0, 2, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4]
IDS = [7, 7, 7, 8, 8, 9, 9]
PLAIN = pa.table({"qid": IDS, "label": LABELS, "score": SCORES})
FEW = [f"q-{row // 6}" for row in range(60)]
TABLES = {
    **dict.fromkeys(("p", "b"), PLAIN.append_column("country", pa.array([f"c{each}" for each in IDS]))),
    "e": pa.table({"qid": FEW, "label": [row % 4 for row in range(60)], "bm25": [row % 5 for row in range(60)]}),
    "short": PLAIN[:5],
    "no_rows": PLAIN[:0],
    "no_label": PLAIN.drop_columns("label"),
    "two": PLAIN.append_column("prediction", pa.array(SCORES)),
    "null_label": PLAIN.set_column(1, "label", pa.array([None, *LABELS[1:]])),
    "null_id": PLAIN.set_column(0, "qid", pa.array([None, *IDS[1:]])),
    "nan": PLAIN.set_column(2, "score", pa.array([float("nan"), *SCORES[1:]])),
    "negative": PLAIN.set_column(1, "label", pa.array([-1, *LABELS[1:]])),
    "texts": PLAIN.set_column(2, "score", pa.array(["a"] * 7)),
    "ranked": PLAIN.append_column("place", pa.array([1, 2, 3, 1, 2, 1, 2])),
}  # fmt: skip
FILES = {
    "c.csv": "qid,label,score\n1,1,0.5\n", "ids": "1\n", "empty": " \n\n", "latin": "é".encode("latin-1"), "file": "no folder",
    "q": "301 0 A 1\n302 0 A 1\n", "r": "301 Q0 C 1 2.5 me\n302 Q0 A 1 0.5 me\n", "short": "301 Q0 C 1 2.5\n", "t": "1 qid:3 1:0.5\n", "words": "0.5\nx\n", "s2.jsonl": '{"qid": 1, "label": 1, "score": 2}\n\n{"qid": 1, "label": "x", "score": 2}\n',
    "nothing.parquet": "", "text.parquet": "qid,label,score\n1,0,2\n", "good.csv": "qid,nDCG@5\n1,0.5\n2,0.25\n",
    "bad.csv": "qid,nDCG@5\n1,0.5\n2,high\n", "bad.jsonl": '{"qid": 1, "nDCG@5": 0.5}\n{"qid": 2,', "bad.feather": "no Feather",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    for name, table in TABLES.items():
        pq.write_table(table, folder / f"{name}.parquet")
    for name, text in FILES.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "cut.parquet").write_bytes((folder / "p.parquet").read_bytes()[:-20])
    (folder / "link").symlink_to("r")
    (folder / "bare").mkdir()
    return folder


PAIR = "compare p.parquet b.parquet"
REFUSED = [
    # names of columns
    (3, "score p.parquet --query nowhere", "nowhere"),
    (3, "score p.parquet --score labl", 'Did you mean "label"?'),
    (3, "score p.parquet --keep nowhere --out never.parquet", "nowhere"),
    (2, "score p.parquet --keep country", "--keep adds columns to the file of --out"),
    (3, "score p.parquet --weight nowhere", "nowhere"),
    (3, "score p.parquet --weight label", "label"),  # not one value for a query
    (3, "score p.parquet --by nowhere", "nowhere"),
    (3, "score p.parquet --by label", "label"),
    (2, "score p.parquet --by mean", '"mean" is also a column of the results'),
    (2, "conventions p.parquet --score score --score label", "conventions takes one system"),
    (3, "score ranked.parquet --rank place --score score", "--score score and --rank place were both passed"),
    # tables
    *(
        (3, f"score {name} --out out.parquet", said)
        for name, said in (
            ("absent.parquet", "absent.parquet"), ("nothing.parquet", "nothing.parquet"), ("text.parquet", "text.parquet"),
            ("cut.parquet", "cut.parquet"), ("bare", "bare"), ("no_rows.parquet", "no_rows.parquet"), ("no_label.parquet", "relevance"),
            ("two.parquet", "--score"), ("null_label.parquet", '"label" has 1 null'), ("null_id.parquet", '"qid" has 1 null'),
            ("nan.parquet", "pass --nan"), ("negative.parquet", "-1"), ("texts.parquet", "score"),
        )
    ),
    # measures and numbers
    (3, "score p.parquet -m 'DCG(discount=[1, 0.5])@3'", "discount"),
    (2, "score p.parquet -m nDGC@10", "Did you mean nDCG"),
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
    (2, "score p.parquet --weights n_docs --convention trec_eval", "--weights cannot be combined with --convention"),
    # options and arguments
    (2, "score", "no input. Give PATH, or --qrels and --run."),
    (2, "score p.parquet --nonsense", "No such option"),
    *((2, f"{command} {option} x", f"No such option: {option} (Possible options: {name}) (see") for command, option, name in [
        ("score p.parquet", "--metric", "--measure"), ("score p.parquet", "--ci", "--confidence"), (PAIR, "--alpha", "--confidence"),
        (PAIR, "--equivalence", "--margin, --no-worse-than"), ("score p.parquet", "--n-jobs", "--threads"), ("report p.parquet", "--slices", "--by"),
        (PAIR, "--reference", "--baseline"),
    ]),
    (2, "explain p.parquet --ci 0.9", "No such option: --ci (see"),
    (2, "score p.parquet --gains exp2", """No such option: --gains; it belongs to the measure: write -m "nDCG(gain='exp2')@10" (see"""),
    (2, "score p.parquet --discount zipf", """No such option: --discount; it belongs to the measure: write -m "nDCG(discount='zipf')@10" (see"""),
    (2, "score p.parquet --format", "Option '--format' requires an argument"),
    (2, "score p.parquet --format maarkdown", "'maarkdown' is not one of 'table', 'json', 'csv'"),
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
    (2, "score --qrels q --run r --is-judged c", "--is-judged cannot be used with --qrels and --run"),
    (2, "score p.parquet --missing skip", "--missing cannot be used without --qrels and --run"),
    (2, "report q --qrels q --run r --out p.html --is-judged x", "--is-judged cannot be used with --qrels"),
    *(
        (code, f"{command} --qrels q --run r {option}", said)
        for command in ("score", "compare", "explain --id 1", "report -o p.html")
        for code, option, said in (
            (2, "--is-judged seen", "--is-judged cannot be used with --qrels and --run"),
            (2, "--propensity chance", "--propensity cannot be used with --qrels and --run"),
            (3, "--rank place", "--rank is of a column, and "),
            (3, "--grades Good=1", "for which --grades has no grade"),
        )
    ),
    # gates
    *(
        (2, f"score p.parquet --fail-under {bound}", said)
        for bound, said in (
            ("nDCG@10", 'expected MEASURE=NUMBER, as in "nDCG@10=0.35"'),
            ("\"nDCG(gain='exp2')@10\"", "expected MEASURE=NUMBER"),
            ("nDCG@10=good", "expected MEASURE=NUMBER"),
            ("nDCG@10=nan", "expected MEASURE=NUMBER"),
            ("=0.3", "expected MEASURE=NUMBER"),
            ("nDGC@10=0.3", "Did you mean nDCG"),
        )
    ),
    # systems
    (2, "compare p.parquet", "compare needs two systems or more"),
    (2, "compare", "no input. Give PATH"),
    (2, "compare p.parquet p.parquet", "p.parquet and p.parquet are one file; name each file once"),
    (2, "compare --qrels q r ./r", "./r and r are one file; name each file once"),
    (2, "score --qrels q r link", "link and r are one file; name each file once"),
    (3, "compare p.parquet short.parquet", '"short" lacks 1 query that others have: 9. Pass --missing drop'),
    (2, "compare --qrels x", "give runs too, as PATH or --run"),
    *(
        (code, f"{PAIR} {options}", said)
        for code, options, said in (
            (2, "--run x", "--qrels and --run go together"),
            (2, "--margin 0.1", "--margin needs --no-worse-than NAME"),
            (3, "--no-worse-than bb", 'Did you mean "b"?'),
            (3, "--baseline bb", 'Did you mean "b"?'),
            (3, "--no-worse-than p --margin -1", "-1.0 is not a loss to accept"),
            (2, "--no-worse-than p --baseline b", "differ; name one system"),
            (2, "--confidence 95", "--confidence 95.0 is not between 0 and 1"),
            (3, "--missing zero", "--missing zero is not known"),
            (3, "--by nowhere", "nowhere"),
            (2, "--by system", '"system" is also a column of the results'),
            (3, "--by label", "label"),
            (3, "--cluster nowhere", "nowhere"),
            (2, "--score a --score b", "--score may be repeated only for one PATH"),
            (2, "--test tukey", "'tukey' is not one of 't', 'randomisation', 'permutation'"),
            (3, "--test randomisation --unpaired", "--test randomisation and --unpaired do not go together"),
            (2, "--fail-under nDCG@5", "expected MEASURE=NUMBER"),
            (2, "--format junit", "--format junit reports gates; add --no-worse-than"),
            (2, "--format junit --ranks --no-worse-than p", "--ranks does not fit into --format junit"),
            (2, "--format csv --by country --ranks", "--ranks does not fit into --format csv"),
        )
    ),
    (2, "compare two.parquet --score score --score score", "compare needs two systems"),
    (3, "compare two.parquet --score score --score predictoin", 'Did you mean "prediction"?'),
    (3, "compare bad.csv good.csv", 'row 3 (the header is row 1): column "nDCG@5" has "high"'),
    (3, "compare bad.jsonl good.csv", "bad.jsonl, line 2: Missing a name for object member"),
    (3, "compare bad.feather good.csv", "Check that it is a complete Feather file"),
    (2, "history show -H kept p.parquet", "`fastndcg history add`"),
    (2, "history add p.parquet b.parquet -H kept --name both", "--name applies to one system"),
    (2, "history add p.parquet -H kept --fail-under RR=1", "--fail-under cannot be used with add"),
    (3, "history show -H kept", "kept does not exist. Add values"),
    (3, "history show -H p.parquet", "is a file, and a history is a folder"),
    # files
    (3, "score --qrels q --run short", "short, line 1: 5 fields"),
    (3, "score --qrels q --run absent", "absent does not exist. Check the path."),
    (3, "score nDCG@5", 'nDCG@5 is a measure, not a file; name the data first, then --measure "nDCG@5"'),
    (2, "score p.parquet --out scores.json", "name a file ending in .parquet, .csv"),
    (2, "score p.parquet --out p.parquet", "is the input p.parquet"),
    (2, "report p.parquet --out p.parquet", "--out: p.parquet is the input p.parquet; name another file"),
    *(
        (3, f"{command} --out {out}", "cannot be written")
        for command in ("score p.parquet", "demo --queries 3")
        for out in ("no/such/folder.parquet", "file/inside.parquet", ".")
    ),
    (2, "score c.csv p.parquet", "one kind is read at a time: CSV (c.csv), Parquet (p.parquet). Name the files of one kind"),
    (2, "score c.csv --intents label", "--intents names a column of lists, which CSV does not have"),
    (3, "score c.csv --score s2", 'c.csv: there is no column "s2"'),
    (3, "score https://x.example/p.parquet", "https is not a file system that pyarrow knows. Download the file"),
    (3, "score s2.jsonl", 's2.jsonl, line 3: column "label" changed from number to string'),
    (3, "score --qrels q --run bare", "bare is a folder without"),
    (3, "score t --scores words", 'words: line 2 has "x"; expected one score on each line'),
    (3, "score p.parquet --types score=flot", '--types "score=flot" is not a type of Arrow'),
    (3, "score p.parquet --weights country", 'column "country" is string; expected numeric weights'),
    (3, "compile --folder file", "file cannot be written: File exists. Name a folder"),
    (3, "compile --scores float16", "--scores float16 is not known"),
    (2, "trec_eval -m nope q r", "`fastndcg trec_eval --measures` lists all names"),
    (3, "trec_eval q p.parquet", "p.parquet is Parquet; expected a TREC file"),
    (3, "pool absent", "absent does not exist"),
    (2, "pool r r", "r and r are one file"),
    (2, "check --qrels q", "give runs too, as PATH or --run"),
    (3, "check --qrels q --run r --corpus absent", "corpus: absent does not exist"),
    *((3, f"score p.parquet --out /dev/{name}", "is not a file and cannot be written") for name in ("null", "stdout", "fd/9", "new.csv")),
    (3, "measures nDGC", "Did you mean nDCG"),
    # explanations and conventions
    (2, "explain e.parquet --score bm25", "no query is named; give --id ID"),
    (3, "explain e.parquet --score bm25 --id q-44", "query 'q-44' is not among 10 queries, such as q-0, q-1, q-2. Did you mean \"q-4"),
    (2, "explain e.parquet --score bm25 --id q-4 -m nDCG@1,3", "names 2 measures; expected one"),
    (3, "explain e.parquet --score bm25 --id q-4 -m NumRel", "NumRel covers several intents or ignores the ranking"),
    (2, "explain e.parquet --score bm25 --movers 2", "--movers compares two systems; got 1 system"),
    (3, "explain e.parquet --id q-4 --score none", "none"),
    (2, "score p.parquet --convention lightgmb", '--convention: no convention is called "lightgmb"'),
    (2, "conventions p.parquet -n lightgmb", '--name: no convention is called "lightgmb"'),
    (2, "conventions p.parquet --explain lightgmb sklearn", '--explain: no convention is called "lightgmb"'),
    (2, "conventions p.parquet -n lightgmb", 'Did you mean "lightgbm"?'),
    (2, "conventions --explain sklearn lightgbm", "--explain needs data"),
    (3, "conventions p.parquet --explain sklearn recpack", "sklearn cannot be turned into recpack"),
    (3, "conventions sklearn", "sklearn does not exist"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "words", "said"), REFUSED, ids=[case[1] for case in REFUSED])
def test_refused(code, words, said, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = run(*shlex.split(words))
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    line = only_line(result.stderr)
    assert said in line and "Traceback" not in line
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
