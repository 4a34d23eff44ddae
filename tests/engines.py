"""What tests of engines share: ragged data with heavy ties, what it is worth here, and comparison to the last bit."""

import importlib
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn


def steep(grade):
    """A gain of the user's own, which engines must send to their workers."""
    return grade**3 / 7


MEASURES = [
    "nDCG@10",
    "nDCG(ties='worst', empty='nan')@3",
    "nDCG(gain='exp2', ties='best')",
    fn.nDCG(gain=steep, discount="reciprocal") @ 5,
    "ERR@20",
    "AP(rel=2)",
    "RR(empty='skip')",
    "Judged@5",
]
BY_ORDER = "nDCG(ties='input')@4"


class imported_later:
    """A module that is imported when something of it is first used: each worker collects all tests, and runs those of a few hosts."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        # pytest asks all that a module of tests holds for such attributes
        if attribute.startswith(("_", "pytest")):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def need(*modules, extra="engines"):
    """Skip where an engine is not installed; in continuous integration it has to be."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            missing(f"{name} is not installed: pip install -e '.[{extra}]'")


def missing(message):
    """Skip; in continuous integration, fail."""
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message, allow_module_level=True)


def documents(n_queries=200, *, seed=0, text=False, longest=30):
    """Rows of all queries in any order, with few distinct scores, weights of all magnitudes and queries without relevant rows."""
    rng = np.random.default_rng(seed)
    numbers = np.repeat(rng.permutation(n_queries) * 7 - 50, rng.integers(1, longest, n_queries))
    rows = len(numbers)
    positions = np.arange(rows)
    table = pa.table(
        {
            "qid": pa.array([f"query {number}" for number in numbers]) if text else pa.array(numbers),
            "label": np.where(numbers % 5 == 0, 0, rng.integers(0, 5, rows)).astype(np.int8),
            "score": (rng.integers(0, 9, rows) / 3).astype(np.float32),
            "judged": rng.random(rows) < 0.8,
            "position": positions,
            "country": pa.array([("de", "en", None, "fr")[number % 4] for number in numbers]),
            "traffic": 10.0 ** (numbers % 9 - 4) / 3,
        }
    )
    return table.take(pa.array(rng.permutation(rows)))


# what a convention adds to the columns: ids that say how tied documents are ordered, and an order for those
# that ask for rows
ORDERED = {"doc_id": "position", "order": "position"}
BY_CONVENTION = ["nDCG@3", "nDCG"]

COLUMNS = {
    "query": "qid",
    "relevance": "label",
    "score": "score",
    "is_judged": "judged",
    "weight": "traffic",
    "keep": ["country"],
}


def here(table, measures=None, *, convention=None, **columns):
    """Scores in this process."""
    rankings = fn.Rankings.from_arrow(table.sort_by("position"), **{**COLUMNS, **columns})
    return fn.evaluate(rankings, MEASURES if measures is None else measures, convention=convention)


CLICKED = ["DCG(ips=True)@5", "alpha_nDCG@5", "nDCG(unjudged=0.5)"]
OF_CLICKS = COLUMNS | {"propensity": "seen", "intents": "aspects"}


def clicked(table):
    """The same documents with what few data have: propensities, and grades for intents."""
    numbers = np.arange(len(table))
    grades = table["label"].to_pylist()
    aspects = pa.array([[grade, None if grade > 1 else 1] for grade in grades], pa.list_(pa.int64()))
    return table.append_column("seen", pa.array((1 + numbers % 7) / 8)).append_column("aspects", aspects)


def listed(table):
    """A row for each query."""
    grouped = table.sort_by("position").group_by(["qid", "country", "traffic"], use_threads=False)
    lists = grouped.aggregate([("label", "list"), ("score", "list"), ("judged", "list")])
    return lists.rename_columns([name.removesuffix("_list") for name in lists.column_names])


def _ids():
    """Ids of the same queries, in order, in every type that ids may have."""
    numbers = pa.array([0, 1, 3, 4, 7, 90])
    texts = pa.array([f"query {number:02}" for number in numbers.to_pylist()])
    beside_a_gap = np.datetime64("2024-03-31T01:30:00", "us")  # an hour that some zones lack
    times = pa.array(beside_a_gap + numbers.to_numpy().astype("m8[m]"))
    octets = pa.array([bytes([number, 255]) for number in numbers.to_pylist()])  # not of UTF-8
    kinds = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
    return {
        **{kind: numbers.cast(kind) for kind in kinds},
        "large uint64": pa.array([2**63 + number for number in numbers.to_pylist()], pa.uint64()),
        "bool": pa.array([False, False, True, True, True, True]),
        "text": texts,
        "large text": texts.cast(pa.large_string()),
        "text view": texts.cast(pa.string_view()),
        "dictionary": texts.dictionary_encode(),
        "binary": octets,
        "large binary": octets.cast(pa.large_binary()),
        "fixed binary": octets.cast(pa.binary(2)),
        **{f"timestamp {unit}": times.cast(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
        "timestamp in UTC": times.cast(pa.timestamp("us", "UTC")),
        "timestamp in a zone": times.cast(pa.timestamp("us", "Europe/Berlin")),
        "date": numbers.cast(pa.int32()).cast(pa.date32()),
        "date in ms": numbers.cast(pa.int32()).cast(pa.date32()).cast(pa.date64()),
        "decimal": numbers.cast(pa.decimal128(20, 0)).cast(pa.decimal128(22, 2)),
    }


IDS = _ids()


def documents_of(kind, *, grouped):
    """Rows of queries whose ids have a type of `IDS`; they are kept twice more, and stand together if asked."""
    rng = np.random.default_rng(0)
    queries = np.repeat(np.arange(6), [4, 1, 6, 9, 5, 2])
    rows = len(queries)
    # the type of views knows no take
    ids = IDS[kind].cast(pa.string()) if kind == "text view" else IDS[kind]
    taken = ids.take(pa.array(queries))
    table = pa.table(
        {
            "qid": taken,
            "label": rng.integers(0, 4, rows),
            "score": rng.integers(0, 5, rows) / 3,
            "also": taken,
            "position": np.arange(rows),
        }
    )
    table = table if grouped else table.take(pa.array(rng.permutation(rows)))
    for name in ("qid", "also"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(IDS[kind].type))
    return table


def check_ids(found, table):
    """Results of nDCG, the column "also" kept, beside what is computed here; types are those that the engine has for them."""
    for name in ("qid", "also"):
        if pa.types.is_string_view(table[name].type):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    expected = here(table, "nDCG", keep=["also"], is_judged=None, weight=None).to_arrow()
    columns = [found[name].cast(expected[name].type) for name in ("qid", "also")]
    assert rows_of(pa.table([*columns, found["nDCG"]], names=expected.column_names)) == rows_of(expected)


def _partitions():
    """Partitions in which the rows of a query stand together, cut where it hurts."""
    table = clicked(documents(40)).sort_by([("qid", "ascending"), ("position", "ascending")])
    scores = table["score"].to_numpy().copy()
    scores[::7] = np.nan
    table = table.set_column(2, "score", pa.array(scores))
    ids = table["qid"].to_numpy()
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    longest = int(np.argmax(np.diff(starts)))
    first, last = starts[longest], starts[longest + 1]

    def cut(*at):
        return [table.slice(start, stop - start) for start, stop in itertools.pairwise([0, *at, len(table)])]

    before, inside, after = table.slice(0, first), table.slice(first, last - first), table.slice(last)
    alone = [
        inside.slice(start, stop - start) for start, stop in itertools.pairwise([0, 2, 3, 9, len(inside)])
    ]
    return {
        "a row each": [table.slice(row, 1) for row in range(first - 4, last + 4)],
        "empty ones": [part for each in cut(5, 40, 300) for part in (table.slice(0, 0), each)] + [table.slice(0, 0)],
        "one query": alone,
        "one query over most of them": cut(first - 1, first + 2, first + 3, first + 8, last - 1, last),
        "whole queries each": cut(*starts[1::9].tolist()),
        "a query at edges that are apart": [
            pa.concat_tables([before, alone[0]]), pa.concat_tables([alone[1], after.slice(0, 200)]),
            pa.concat_tables([after.slice(200), alone[2]]), alone[3],
        ],
        "nothing": [table.slice(0, 0)] * 2,
    }  # fmt: skip


PARTITIONS = _partitions()


OF_PARTITIONS = OF_CLICKS | {"nan": "last"}


# ---- files ----


def write_files(folder, table, n=8, *, group=60):
    """Write n files of rows as they are."""
    size = -(-len(table) // n)
    for part, start in enumerate(range(0, len(table), size)):
        rows = table.slice(start, size)
        pq.write_table(rows, folder / f"{part}.parquet", row_group_size=group)


def _sorted(table, order="ascending"):
    return table.sort_by([("qid", order), ("position", "ascending")])


def _one_query(table):
    """Rows of one query in all files but the first and the last."""
    rows = _sorted(table)
    start = len(rows) // 8 - 5
    # each row's own, but in the middle those of the first there
    places = np.clip(np.arange(len(rows)), None, start)
    places[len(rows) - start :] = np.arange(len(rows) - start, len(rows))
    for name in ("qid", "country", "traffic"):
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].take(pa.array(places)))
    return rows


# what writes files in a way
FILES = {
    "any": write_files,
    "ascending": lambda folder, table: write_files(folder, _sorted(table)),
    "descending": lambda folder, table: write_files(folder, _sorted(table, "descending"), group=30),
    "cut": lambda folder, table: write_files(folder, _sorted(table), 23, group=7),
    "one query": lambda folder, table: write_files(folder, _one_query(table)),
    "in row groups": lambda folder, table: write_files(
        folder, pa.concat_tables([part.take(np.random.default_rng(0).permutation(len(part))) for part in _parts(_sorted(table))])
    ),
    "one file": lambda folder, table: write_files(folder, table, 1, group=10**6),
    "lists": lambda folder, table: write_files(folder, listed(table)),
    "hive": lambda folder, table: pq.write_to_dataset(_sorted(table), folder, partition_cols=["country"], max_rows_per_group=100),
}  # fmt: skip


def _parts(table, size=60):
    return [table.slice(start, size) for start in range(0, len(table), size)]


def bits_of(row):
    """A row in which values that differ in a bit differ."""
    return {name: value.hex() if isinstance(value, float) else value for name, value in row.items()}


def rows_of(table):
    """Rows in order of their query, in which values that differ in a bit differ."""
    plain = table.to_pylist() if isinstance(table, pa.Table) else table
    return sorted((tuple(bits_of(row).values()) for row in plain), key=lambda row: row[0])


class Deadly:
    """A gain whose first call, in whichever process, ends it; later ones answer."""

    def __init__(self, marker, *, kills):
        self.marker, self.kills = marker, kills

    def __call__(self, grade):
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return steep(grade)
        if self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError("no luck this time")


def importable_by_workers():
    """Let processes that are started from now on import the package and these tests, whose functions they unpickle."""
    tests = Path(__file__).resolve().parent
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([str(tests.parent), str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    )


# ---- Spark ----


def need_java():
    """Skip where Java, which Spark runs on, is missing; in continuous integration it has to be there."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") or (home and Path(home, "bin", "java").exists()):
        return
    missing(
        "Spark needs Java 17, and neither is java on the path nor JAVA_HOME set: "
        "install openjdk-17-jre-headless"
    )


# small jobs: to compile them well, to collect in parallel, and to verify Spark's own classes, took as long as
# all else that Java did
_JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def spark_session(master, settings, *, connect=False):
    from pyspark.sql import SparkSession

    importable_by_workers()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    start = SparkSession.builder.remote if connect else SparkSession.builder.master
    builder = start(master).appName("fastndcg")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        **settings,
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not connect:
        session.sparkContext.setLogLevel("OFF")
    return session


# ---- recipes ----

ROOT = Path(__file__).resolve().parent.parent


def page_example(heading, page="engines", blocks=slice(1)):
    """The first block of Python below a heading of a page of docs/, or others, one after the other."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n##")[0]
    return "\n".join(block.partition("```")[0] for block in section.split("```python\n")[1:][blocks])


def check_script(done, table, queries, means):
    """What a script wrote and showed of nDCG@10 and AP by country, weighted, beside what is computed here."""
    assert done.returncode == 0, done.stderr[-3000:]
    local = here(table, ["nDCG@10", "AP"], is_judged=None)
    found = pq.read_table(queries).select(local.to_arrow().column_names)
    assert rows_of(found) == rows_of(local.to_arrow())
    by_country = local.by("country").sort_by("country").to_pylist()
    assert list(map(bits_of, pq.read_table(means).to_pylist())) == list(map(bits_of, by_country))
    shown = [line.split()[0] for line in done.stdout.splitlines()]
    assert shown[:-1] == ["country", "de", "en", "fr"] and shown[-1] in ("None", "NaN")


def check_example(table, shown):
    """What an example of docs/engines.md showed of nDCG@10 and RR, beside what is computed here."""
    local = here(table, ["nDCG@10", "RR"], is_judged=None, weight=None)
    assert str(local.by("country").sort_by("country")).partition("----")[2] in shown
    assert f"{local.mean()['nDCG@10']:.6f}" in shown


def run_script(name, *arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *arguments],
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONWARNINGS": "ignore",
            "PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{_JAVA_OPTIONS}' pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
