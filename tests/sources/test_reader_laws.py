"""Laws of readers: the same rows make the same rankings, or are refused alike, whatever brings them.

Types of ids, kinds of lists, the order of rows and where chunks end, crossed with each way in, against Python's
own dictionaries. Formats of text and how they are packed are in `test_readers.py`.
"""

import datetime as dt
import itertools
import json
import re
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.sources import parquet as parquet_files
from fastndcg.sources import streams
from fastndcg.sources.inputs import open_tables
from fastndcg.sources.streams import TableStream
from fastndcg.tables.roles import Roles

pytestmark = pytest.mark.pure
MEASURES = ["nDCG@3", "nDCG(ties='input', gain='exp2')", "RR", "Judged@5"]
ROLES = {"doc_id": "docno", "is_judged": "seen", "weight": "w", "keep": "lang"}


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch, tmp_path_factory):
    """And few rows a thread; no temporary file is left, nor a setting of Arrow's changed."""
    monkeypatch.setattr(streams, "_LEAST_MEMORY", 1)
    monkeypatch.setattr(parquet_files, "_FEWEST_ROWS", 3)
    spool, pools = tmp_path_factory.mktemp("spool"), (pa.cpu_count(), pa.io_thread_count())
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    yield
    assert [*spool.iterdir()] == [] and (pa.cpu_count(), pa.io_thread_count()) == pools


# ---- the same rows ----

DAY = dt.date(2026, 1, 1)
IDS = {
    "int64": pa.array,
    "int8": lambda numbers: pa.array([number - 100 for number in numbers], pa.int8()),
    "beyond int64": lambda numbers: pa.array([2**64 - 1 - number for number in numbers], pa.uint64()),
    "far apart": lambda numbers: pa.array([number * 2**50 - 7 for number in numbers]),
    "float64": lambda numbers: pa.array(numbers, pa.float64()),
    "float32": lambda numbers: pa.array(numbers, pa.float32()),
    "float16": lambda numbers: pa.array(np.array(numbers, np.float16)),
    "texts": lambda numbers: pa.array([f"q{number}" for number in numbers]),
    "long texts": lambda numbers: pa.array(["x" * 15 + f"{number:09}é" for number in numbers], pa.large_string()),
    "texts of every length": lambda numbers: pa.array(["x" * (number % 19) + f"{number}" for number in numbers]),
    "text views": lambda numbers: IDS["texts"](numbers).cast(pa.string_view()),
    "binary": lambda numbers: IDS["texts"](numbers).cast(pa.binary()),
    "large binary": lambda numbers: IDS["texts"](numbers).cast(pa.large_binary()),
    "binary views": lambda numbers: IDS["texts"](numbers).cast(pa.binary_view()),
    "fixed binary": lambda numbers: pa.array([b"%04d" % number for number in numbers], pa.binary(4)),
    "codes": lambda numbers: IDS["texts"](numbers).dictionary_encode(),
    "codes of numbers": lambda numbers: pa.array(numbers).dictionary_encode(),
    "codes with unused and repeated values": lambda numbers: pa.DictionaryArray.from_arrays(
        pa.array([number if place % 2 else number + 200 for place, number in enumerate(numbers)], pa.int16()),
        pa.array([f"q{number % 200}" for number in range(400)]),
    ),
    "codes of views": lambda numbers: pa.DictionaryArray.from_arrays(
        pa.array(numbers, pa.int32()), pa.array([f"q{number}" for number in range(200)], pa.string_view())
    ),
    "run ends": lambda numbers: pc.run_end_encode(IDS["texts"](numbers)),
    "dates": lambda numbers: pa.array([DAY + dt.timedelta(number) for number in numbers]),
    "times": lambda numbers: pa.array(numbers, pa.timestamp("us")),
    "decimals": lambda numbers: pa.array(numbers).cast(pa.decimal128(22, 2)),
    "bool": lambda numbers: pa.array([number % 2 > 0 for number in numbers]),
}  # fmt: skip
NOT_IN_PARQUET = ("run ends", "float16", "codes of views")  # as pyarrow writes it, or reads what it wrote
OF_DOCUMENTS = [kind for kind in IDS if kind not in ("dates", "times", "decimals", "bool", "float16")]
LENGTHS = [3, 1, 5, 2, 7, 1, 4, 6, 2, 1, 3]
NUMBERS = [number for number, length in zip([5, 3, 19, 0, 12, 7, 99, 8, 1, 30, 44], LENGTHS, strict=True) for _ in range(length)]  # fmt: skip
ORDERS = {
    "grouped": np.arange(len(NUMBERS)), "any order": np.random.default_rng(5).permutation(len(NUMBERS)), "no rows": np.arange(0)
}  # fmt: skip


def rows_of(ids):
    """The rows of each id, which are in order of their first appearance."""
    found = {}
    for row, value in enumerate(ids):
        found.setdefault(value, []).append(row)
    return found


def table_of(kind, order):
    numbers = [NUMBERS[row] for row in ORDERS[order]]
    rng, n = np.random.default_rng(1), len(numbers)
    qid = IDS[kind](numbers)
    names = [list(rows_of(qid.to_pylist())).index(each) for each in qid.to_pylist()]
    docs = IDS[kind if kind in OF_DOCUMENTS else "texts"](rng.permutation(n).tolist())
    return pa.table({
        "qid": qid, "docno": docs, "label": rng.integers(0, 4, n), "score": rng.integers(0, 5, n) / 4,
        "seen": rng.random(n) < 0.8, "w": [(name % 3 + 1) / 2 for name in names], "other": rng.random(n),
        "lang": pa.array([("de", "en", None)[name % 3] for name in names], pa.string()),
    })  # fmt: skip


def plain(values):
    """As rankings have them: whole floats are whole numbers."""
    return [int(value) if isinstance(value, float) else value for value in values]


def expected(table):
    """Of each query in turn its id, kept value and weight, and of each of its documents id, grade, score and flag."""
    columns = {name: plain(values) if name in ("qid", "docno") else values for name, values in table.to_pydict().items()}  # fmt: skip
    return [
        (query, columns["lang"][rows[0]], columns["w"][rows[0]],
         [tuple(columns[name][row] for name in ("docno", "label", "score", "seen")) for row in rows])
        for query, rows in rows_of(columns["qid"]).items()
    ]  # fmt: skip


def found_in(*parts):
    found = []
    for part in parts:
        documents = [*zip(part.doc_ids.to_pylist(), part.relevance.tolist(), part.scores.tolist(), part.is_judged.tolist(), strict=True)]  # fmt: skip
        ends = part.offsets.tolist()
        queries = zip(part.query_ids.to_pylist(), part.queries["lang"].to_pylist(), part.weight.tolist(), strict=True)  # fmt: skip
        found += [(*query, documents[ends[at] : ends[at + 1]]) for at, query in enumerate(queries)]
    return found


def in_pieces(table, sizes=(4, 0, 9)):
    starts = np.cumsum([0, *sizes * 9]).tolist()
    return pa.concat_tables([table[start:stop] for start, stop in zip(starts[:-1], starts[1:], strict=True)])


def arrays(table, _):
    firsts = pa.array([rows[0] for rows in rows_of(table["qid"].to_pylist()).values()], pa.int64())
    columns = {name: table[name] for name in ("qid", "label", "score")}
    return fn.Rankings.from_query_ids(
        *columns.values(), doc_ids=table["docno"], is_judged=table["seen"].to_numpy(),
        weight=table["w"].take(firsts), queries={"lang": table["lang"].take(firsts)},
    )  # fmt: skip


def lists(table, _=None, kind=pa.list_):
    """A row a query, with a list of each column of documents."""
    groups = [pa.array(rows) for rows in rows_of(table["qid"].to_pylist()).values()]
    firsts = pa.array([rows[0].as_py() for rows in groups], pa.int64())
    columns = {name: _taken(table[name], firsts) for name in ("qid", "lang", "w")}
    if pa.types.is_run_end_encoded(table["qid"].type):
        columns["qid"] = pc.run_end_encode(columns["qid"])
    offsets = np.cumsum([0, *map(len, groups)])
    order = pa.array([row for rows in groups for row in rows.to_pylist()], pa.int64())
    for name in ("docno", "label", "score", "seen"):
        values = _taken(table[name], order).combine_chunks()
        columns[name] = pa.array(
            [values[start:stop].to_pylist() for start, stop in zip(offsets[:-1], offsets[1:], strict=True)],
            kind(values.type.value_type if pa.types.is_dictionary(values.type) else values.type),
        )  # fmt: skip
    return pa.table(columns)


def _taken(column, rows):
    """Also of types that Arrow's `take` does not know."""
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:
        return pa.chunked_array([pa.array([column[row].as_py() for row in rows.to_pylist()], column.type)])


def parquet(table, folder, read=fn.read_parquet, **options):
    return read(write(table, folder / "a.parquet"), **ROLES, **options)


def files(table, folder):
    """Queries that are cut by the ends of files, of which one has no rows."""
    for number, start in enumerate((0, 10, 10, 23)):
        stop = (10, 10, 23, len(table))[number]
        pq.write_table(table[start:stop], folder / f"{number}.parquet")
    return fn.read_parquet(folder, **ROLES)


def feather(table, folder):
    pf.write_feather(in_pieces(table), folder / "a.feather", compression="uncompressed")
    return opened(folder / "a.feather", memory=300)


def opened(path, memory):
    """A stream of any format."""
    return TableStream(open_tables([path], None).choose(Roles(**ROLES)), memory=memory, threads=1)


def joined(table, folder, read=fn.Rankings.from_qrels_run, form="parquet"):
    """Of judgments, which are those of documents that were seen, and a run."""
    judged, names = pa.array(np.flatnonzero(table["seen"].to_numpy())), ["qid", "docno", "label", "w", "lang"]
    qrels = pa.table({name: _taken(table[name], judged) for name in names})
    sides = [qrels, table.select(["qid", "docno", "score"])]
    if read is fn.read_qrels_run:
        sides = [write(side, folder / f"{name}.{form}") for side, name in zip(sides, "qr", strict=True)]
    nan = ROLES.get("nan", "refuse")
    return read(*sides, ties="input", weight="w", keep="lang", nan=nan)


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(in_pieces(table), path, row_group_size=5)
    elif path.suffix == ".csv":
        rows = [
            table.column_names,
            *(["" if each is None else f"{each}" for each in row.values()] for row in table.to_pylist()),
        ]
        path.write_text("".join(",".join(row) + "\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


def expected_of_join(table):
    wanted = {query[0]: query for query in expected(table)}
    order = rows_of(query for query, seen in zip(plain(table["qid"].to_pylist()), table["seen"].to_pylist(), strict=True) if seen)  # fmt: skip
    return [
        (
            *wanted[query][:3],
            [(doc, grade * seen, score, seen) for doc, grade, score, seen in wanted[query][3]],
        )
        for query in order
    ]


WAYS = {
    "arrays": arrays,
    "table": lambda table, _: fn.Rankings.from_arrow(table, **ROLES),
    "in pieces": lambda table, _: fn.Rankings.from_arrow(in_pieces(table), **ROLES),
    "batches": lambda table, _: fn.scan_arrow(iter(in_pieces(table).to_batches()), **ROLES),
    "reader": lambda table, _: fn.scan_arrow(lambda: table.to_reader(6), memory=300, **ROLES),
    "lists": lambda table, _: fn.Rankings.from_arrow(lists(table), **ROLES),
    "parquet": parquet,
    "parquet in threads": lambda table, folder: parquet(table, folder, threads=3),
    "files": files,
    "stream": lambda table, folder: parquet(table, folder, fn.scan_parquet, memory=300),
    "large stream": lambda table, folder: parquet(table, folder, fn.scan_parquet, threads=2),
    "feather": feather,
    "join": joined,
    "join of files": lambda table, folder: joined(table, folder, fn.read_qrels_run),
}
JOINS = "join", "join of files"
OF_FILES = "parquet", "parquet in threads", "files", "stream", "large stream", "feather", "join of files"


def is_possible(kind, order, way):
    """Not what pyarrow does not write, ids that judgments cannot have, and tables without rows where they are refused."""
    if order == "no rows":
        return kind in ("int64", "texts", "codes") and way not in ("batches", "reader", "feather", *JOINS)
    return (kind not in NOT_IN_PARQUET or way not in OF_FILES) and (kind in OF_DOCUMENTS or way not in JOINS)


CASES = [case for case in itertools.product(IDS, ORDERS, WAYS) if is_possible(*case)]


@pytest.mark.parametrize(("kind", "order", "way"), CASES)
def test_the_same_rows_are_the_same_rankings(kind, order, way, tmp_path):
    table = table_of(kind, order)
    made = WAYS[way](table, tmp_path)
    wanted = expected_of_join(table) if way in JOINS else expected(table)
    parts = [made] if isinstance(made, fn.Rankings) else list(made)
    found = found_in(*parts)
    if len(parts) > 1 and (order != "grouped" or kind == "bool"):  # results are in order, parts are not
        found.sort(key=lambda query: [each[0] for each in wanted].index(query[0]))
    assert found == wanted
    ends = np.cumsum([0, *(len(documents) for *_, documents in wanted)])
    documents = [document for *_, documents in wanted for document in documents]
    dtypes = {1: int, 2: float, 3: bool}
    grades, scores, flags = (np.array([each[at] for each in documents], dtypes[at]) for at in dtypes)
    columns = {"is_judged": flags}
    if way in JOINS:  # where the judgments are the pool
        columns["judged"] = np.append(0, np.cumsum(np.add.reduceat(flags, ends[:-1]))), grades[flags]
    whole = fn.evaluate(fn.Rankings.from_offsets(ends, grades, scores, **columns), MEASURES)
    results = fn.evaluate(WAYS[way](table, tmp_path), MEASURES)
    assert results.values.tobytes() == whole.values.tobytes()
    assert [*zip(*results.queries.to_pydict().values(), strict=True)] == [(query, lang, w) for query, lang, w, _ in wanted]  # fmt: skip


KINDS_OF_LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]


@pytest.mark.parametrize("kind", KINDS_OF_LISTS)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_lists_of_every_kind(kind, size, tmp_path):
    """One after the other in tables that end anywhere, with ids and without; empty ones are queries; read from Parquet too."""
    table = table_of("texts", "any order")
    empty = {"qid": "none", "lang": None, "w": 0.5} | {
        name: [] for name in ("docno", "label", "score", "seen")
    }
    whole = lists(table, kind=kind)
    whole = pa.concat_tables([whole, pa.Table.from_pylist([empty], whole.schema)])
    wanted = [*expected(table), ("none", None, 0.5, [])]
    data = pa.concat_tables([whole[start : start + size] for start in range(0, len(whole), size)])
    assert found_in(fn.Rankings.from_arrow(data, **ROLES)) == wanted
    numbered = fn.Rankings.from_arrow(data.drop_columns("qid"), **ROLES)
    assert numbered.query_ids.to_pylist() == list(range(len(whole)))
    twice = pa.concat_tables([data, data[:1]])
    reads = [fn.Rankings.from_arrow, lambda data, **words: fn.evaluate(fn.scan_arrow(iter(data.to_batches()), **words), "RR")]  # fmt: skip
    if kind in KINDS_OF_LISTS[:2]:  # pyarrow writes no views
        pq.write_table(data, tmp_path / "a.parquet", row_group_size=2)
        pq.write_table(twice, tmp_path / "twice.parquet", row_group_size=2)
        assert found_in(fn.read_parquet(tmp_path / "a.parquet", **ROLES)) == wanted
        for memory in (300, None):
            assert found_in(*fn.scan_parquet(tmp_path / "a.parquet", memory=memory, **ROLES)) == wanted
            with pytest.raises(fn.InputError, match="has several rows of lists"):
                list(fn.scan_parquet(tmp_path / "twice.parquet", memory=memory))
    for read in reads:
        with pytest.raises(fn.InputError, match=f'query "{wanted[0][0]}" has several rows of lists'):
            read(twice)


# ---- the same faults ----

BAD = 13, 21  # rows
NAN, INF = float("nan"), float("inf")
JOINED = ", row {row}: {what} of document {doc} of query {query}; 2 in all"
AS_ONE = r'(column "{column}"|{array}) has [12] {count}s?; the first is at row {row}{beside}'
FAULTS = {  # the column and its value, what is said of a table, and where judgments and a run are joined
    "NaN score": ("score", NAN, "NaN value", JOINED.replace("{what}", "score nan")),
    "no score": ("score", None, "null", JOINED.replace("{what}", "score nan")),
    "NaN grade": ("label", NAN, "NaN value", JOINED.replace("{what}", "grade nan")),
    "infinite grade": ("label", INF, "infinite or NaN value", JOINED.replace("{what}", "grade inf")),
    "no grade": ("label", None, "null", AS_ONE),
    "no query": ("qid", None, "null", AS_ONE),
    "no document": ("docno", None, "null", AS_ONE),
}
NAMES_OF_ARRAYS = {"score": "scores", "label": "relevance", "qid": "query_ids", "docno": "-"}


def of_text(form):
    return lambda table, folder: next(iter(opened(write(table, folder / f"a.{form}"), 1 << 20)))


ALL_WAYS = WAYS | {
    "CSV": of_text("csv"), "JSON Lines": of_text("jsonl"),
    "join of CSV": lambda table, folder: joined(table, folder, fn.read_qrels_run, "csv"),
}  # fmt: skip


@pytest.mark.parametrize("order", ["grouped", "any order"])
@pytest.mark.parametrize("way", [way for way in ALL_WAYS if way != "lists"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_faulty_row_is_named_as_it_stands_in_the_data(fault, way, order, tmp_path, monkeypatch):
    """However many rows are faulty, in whatever order and parts they are read; with the file that has them."""
    column, value, count, of_join = FAULTS[fault]
    if (column, way) == ("docno", "arrays"):
        pytest.skip("documents of arrays need no ids")
    table = table_of("texts", order)
    values = [float(each) if column == "label" else each for each in table[column].to_pylist()]
    table = table.set_column(table.column_names.index("seen"), "seen", pa.array([True] * len(table)))
    query, doc = (f'"{table[name][BAD[0]]}"' for name in ("qid", "docno"))
    for row in BAD:
        values[row] = value
    table = table.set_column(table.column_names.index(column), column, pa.array(values, from_pandas=False))
    message = of_join if "join" in way else AS_ONE
    if (
        way == "arrays" and count == "null" and column != "qid"
    ):  # Arrow's nulls are counted before rows have queries
        message = message.partition(";")[0]
    words = {"column": column, "array": NAMES_OF_ARRAYS[column], "count": count, "query": query, "doc": doc}
    words |= {"row": BAD[0] + 2 * way.endswith("CSV"), "beside": f", query {query}" * (column != "qid")}
    with pytest.raises(fn.InputError, match=message.format(**words)) as caught:
        fn.evaluate(ALL_WAYS[way](table, tmp_path), "nDCG")
    if way in (*OF_FILES, "CSV", "JSON Lines", "join of CSV") and way != "files":
        assert re.search(r"(a|q|r)\.(parquet|csv|jsonl|feather)(:|, row)", str(caught.value))
    if column == "score" and way in (*OF_FILES, *JOINS):
        monkeypatch.setitem(ROLES, "nan", "last")
        made = ALL_WAYS[way](table, tmp_path)
        parts = [made] if isinstance(made, fn.Rankings) else made
        documents = [document for *_, of_query in found_in(*parts) for document in of_query]
        last = {doc for doc, _, score, _ in documents if score == -INF}
        assert last == {table["docno"][row].as_py() for row in BAD}
    advice = {"NaN score": 'nan="last"', "no score": 'nan="last"', "no grade": 'unjudged="null"'}
    assert advice.get(fault, "") in str(caught.value) or way == "arrays"


@pytest.mark.parametrize("way", [way for way in ALL_WAYS if "join" not in way])
@pytest.mark.parametrize("order", ["grouped", "any order"])
def test_other_faults_are_found_by_every_reader(way, order, tmp_path):
    """What concerns a query as a whole: two values that are kept, weights below 0, a document twice; and grades below 0."""
    table = table_of("texts", order)
    ids = table["qid"].to_pylist()
    row = next(row for row in range(20, len(ids)) if ids[row] in ids[:row])
    query, place = ids[row], ids.index(ids[row])
    once = [place] if way in ("arrays", "lists") else [at for at, each in enumerate(ids) if each == query]
    cases = [
        ("w", -1.0, once, f'weight is -1.0 for query "{query}"; expected finite numbers from 0'),
        ("docno", table["docno"][place].as_py(), [row], f'document "{table["docno"][place]}" of query "{query}" appears twice'),
        ("label", -1, [row], f'grade -1, which occurs (at row {row + 2 * way.endswith("CSV")}, |in )query "{query}"'),
    ]  # fmt: skip
    if way not in ("arrays", "lists"):
        cases.append(("lang", "xx", [row], f'column "lang" differs within query "{query}"'))
    for column, value, places, message in cases:
        values = table[column].to_pylist()
        for at in places:
            values[at] = value
        if column == "label":
            values = [1 if at not in places else value for at in range(len(ids))]
        changed = table.set_column(
            table.column_names.index(column), column, pa.array(values, table[column].type)
        )
        changed = changed.set_column(table.column_names.index("seen"), "seen", pa.array([True] * len(ids)))
        with pytest.raises(fn.InputError, match=message):
            fn.evaluate(ALL_WAYS[way](changed, tmp_path), "nDCG")
