"""Plain kernels until compiled ones pay: which world runs, that both give the same bits, and that nothing is compiled twice."""

import errno
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import printed, started
from fastndcg.compiled.compile import compiling

import fastndcg as fn
from fastndcg.common import progress
from fastndcg.errors import InputError
from fastndcg.kernels.compile import caching, worlds
from fastndcg.statistics import exact_sums

compiles = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

# small calls of many kinds, and whether they imported Numba
SMALL = """
import hashlib, sys
import numpy as np
import fastndcg as fn
found, random = hashlib.sha256(), np.random.default_rng(5)
assert abs(fn.ndcg([[0, 2, 1, 0]], [[0.5, 0.4, 0.3, 0.1]])[0] - 0.6697) < 1e-4
for dtype in (np.float32, np.float64, np.int64):
    for length in (1, 9, 40, 300):
        grades, scores = random.integers(0, 4, (3, length)), random.integers(0, 60, (3, length)).astype(dtype)
        rankings = fn.Rankings.from_dense(grades, scores)
        measures = ["nDCG@10", "nDCG(ties='worst')", "AP", "RR@10", "P@5", "ERR@10", "nDCG(ideal='returned', ties='input')@3"]
        found.update(fn.evaluate(rankings, measures).values.tobytes())
ids = random.integers(0, 5, 90)
shuffled = fn.Rankings.from_query_ids(ids, ids % 3, random.random(90))
found.update(fn.evaluate(shuffled, "nDCG").values.tobytes())
print("numba" in sys.modules, found.hexdigest())
"""


def run(code, *arguments, **environment):
    return printed(code, *arguments, without=("FASTNDCG_KERNELS", "NUMBA_DISABLE_JIT"), **environment).split()


@pytest.mark.compiled
def test_small_calls_import_no_compiler(tmp_path):
    """On a machine that never compiled anything, and the values of plain kernels."""
    auto = run(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    assert auto[0] == "False"
    assert auto == run(SMALL, FASTNDCG_KERNELS="plain")
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.compiled
@compiles
def test_the_same_bits_in_both_worlds():
    assert run(SMALL, FASTNDCG_KERNELS="compiled")[1] == run(SMALL, FASTNDCG_KERNELS="plain")[1]


@pytest.fixture
def remembered(monkeypatch):
    """What this machine has measured: nothing yet. In a process that did nothing yet, with default settings."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.setenv("FASTNDCG_KERNELS", "auto")
    for name in ("_here", "_told"):
        monkeypatch.setattr(worlds, name, defaultdict(float))
    monkeypatch.setattr(worlds, "_ready", {})
    monkeypatch.setattr(worlds, "_is_imported", lambda: False)
    known = worlds._Measured()
    monkeypatch.setattr(worlds, "_measured", lambda: known)

    def remember(word, key, *numbers):
        known.learn(" ".join([word, key, *map(str, [*numbers, 0.0, 0.0, 0.0][:3])]))
        return True

    monkeypatch.setattr(caching, "remember", remember)
    return known


def test_what_pays(remembered):
    """Loading where a driver is kept, compiling where none is; what was measured replaces the guesses."""
    key = worlds._key("reading.rows.rows_by_code", (1,))
    guess, price = worlds._guess("reading.rows.rows_by_code")
    loading = worlds._IMPORTING + worlds._LOADING
    for is_kept, worth in ((False, max(price, loading)), (True, loading)):
        if is_kept:
            caching.remember("loaded", key, worlds._LOADING)
        assert not worlds._pays(key, 0.99 * worth / guess)
        assert worlds._pays(key, 1.01 * worth / guess)
        worlds._here[key] = 0.5 * worth  # of this process
        assert not worlds._pays(key, 0.49 * worth / guess)
        assert worlds._pays(key, 0.51 * worth / guess)
        worlds._here.clear()
    # another kind of arguments is not kept, and takes to compile what this one took
    other = worlds._key("reading.rows.rows_by_code", (2,))
    caching.remember("compiled", key, 5.0)
    caching.remember("plain", other, 1.0, 1.0, 4e8)
    assert not worlds._pays(other, 15.9e8)
    assert worlds._pays(other, 16.1e8)  # a quarter of a second each, and one was spent
    # all drivers that are not kept are due when together they have taken as long as compiling them, once
    remembered.due.clear()
    remembered.spent[other] = 1.0
    remembered.compiling["reading.joining.digest_ids"] = 2.0
    caching.remember("plain", third := worlds._key("reading.joining.digest_ids", (1,)), 5.0)
    assert not worlds._pays(other, 3.9e8)
    assert worlds._pays(other, 4.1e8)
    assert remembered.due == {other, third}
    assert not remembered.spent
    assert worlds._pays(other, 4e8 * loading)
    assert not worlds._pays(other, 3.9e8 * worlds._LOADING)
    # reading counts Numba as paid for, if as many rows are worth loading the scores' driver
    rows, many = "reading.rows.codes_of_texts/1", loading / worlds._guess("drivers.")[0]
    caching.remember("loaded", rows, 0.02)
    assert not worlds._pays(rows, many)
    caching.remember("loaded", worlds._SCORING, worlds._LOADING)
    assert not worlds._pays(rows, 0.99 * many)
    assert worlds._pays(rows, 1.01 * many)


def test_guesses_are_of_modules_that_exist():
    modules = {path.stem for path in Path(fn.__file__).parent.glob("kernels/*/*.py")}
    assert worlds.GUESSES.keys() <= modules
    assert worlds._guess(worlds._SCORING) == worlds.GUESSES["drivers"]
    before = {name for name in modules if worlds._precedes_scoring(f"reading.{name}.a")}
    assert before == {"rows", "joining"}


def test_what_is_counted(remembered, monkeypatch):
    """Time of any way, of this process once it would have paid for loading, and never twice."""
    clock = iter(np.arange(100) * 0.25)
    monkeypatch.setattr(worlds, "thread_time", lambda: float(next(clock)))
    for _ in range(2):
        with (
            worlds.counted("reading.rows.rows_by_code", 10),
            worlds.counted("reading.rows.place_by_code", 10),
        ):
            pass
        assert not remembered.spent
    with pytest.raises(ZeroDivisionError), worlds.counted("reading.rows.rows_by_code", 10):
        1 / 0  # noqa: B018
    assert remembered.spent == {"reading.rows.rows_by_code": 0.75}
    with worlds.counted("reading.rows.rows_by_code", 10):
        pass
    assert remembered.spent == {"reading.rows.rows_by_code": 1.0}
    assert remembered.rates == {"reading.rows.rows_by_code": (0.25, 10.0)}
    monkeypatch.setenv("FASTNDCG_KERNELS", "plain")
    with worlds.counted("reading.rows.rows_by_code", 10):
        pass
    assert worlds._here == {"reading.rows.rows_by_code": 1.0}


def test_numpys_ways_are_counted(remembered, monkeypatch, tmp_path):
    for name in ("_LOADING", "_IMPORTING", "_LEAST"):
        monkeypatch.setattr(worlds, name, 0.0)
    monkeypatch.setattr(worlds, "_pays", lambda *_: False)
    random = np.random.default_rng(2)
    numbers, labels = random.integers(0, 1 << 40, 3000).repeat(2), random.integers(0, 3, 6000)
    for ids in (numbers, pa.array(numbers).cast(pa.string())):
        order = pa.array(random.permutation(6000))
        table = pa.table(
            {"query_id": pa.array(ids).take(order), "label": labels, "score": random.random(6000)}
        )
        pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
        fn.evaluate(fn.read_parquet(tmp_path / "a.parquet"), "nDCG")
    values = np.full(1 << 16, 0.1)
    exact_sums.exact_sum(values)
    exact_sums.exact_sum_of_products(values, values)
    assert {key.partition("/")[0] for key in remembered.spent} == {
        "reading.rows.codes_of_numbers", "reading.rows.codes_by_first_appearance",
        "reading.rows.place_by_code", "flow.drivers.score_levels_serial", "flow.exact.add_values", "flow.exact.add_products",
    }  # fmt: skip


@pytest.mark.compiled
@compiles
def test_processes_of_a_user_share_what_they_spent(tmp_path):
    """Each would pay for loading, none alone for compiling. The second or third finds the driver."""
    code = """
        import sys
        import numpy as np
        from fastndcg.kernels.compile import worlds
        worlds.GUESSES["rows"] = 1e-9, 1.6 * float(sys.argv[1])
        worlds._IMPORTING = worlds._LOADING = 0.02
        codes = np.random.default_rng(0).integers(0, 9, 3_000_000)
        for _ in range(4):
            worlds.run("reading.rows.rows_by_code", len(codes), codes, 9)
        print(bool(worlds._ready), worlds._here.popitem()[1] if worlds._here else 0)
    """
    _, seconds = run(code, "1e6", NUMBA_CACHE_DIR=str(tmp_path / "first"))
    found = [run(code, seconds, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(4)]
    ready = [is_ready for is_ready, _ in found]
    assert ready == [
        "False",
        ready[1],
        "True",
        "True",
    ]  # 1.6 times the first may last the first two, on a busy machine
    assert float(found[3][1]) < float(found[0][1])  # it did not wait for all calls before loading
    (file,) = (path for path in tmp_path.rglob("measured") if not path.is_relative_to(tmp_path / "first"))
    assert {"compiled", "loaded", "plain"} <= {
        line.split()[0] for line in file.read_text().split("\n") if line
    }


def test_a_file_of_measurements_that_is_damaged(monkeypatch, tmp_path):
    """What can be read is used; a line after one that was cut short is whole; a deleted file is forgotten."""
    kept = tmp_path / "fastndcg" / "0.1.0" / "kernels"
    monkeypatch.setattr(caching, "folder", lambda: kept)
    worlds._memories.pop(kept, None)
    assert not worlds._measured().spent
    assert caching.remember("plain", "a.a", 1.5, 1.0, 4.0)
    file = kept / "measured"
    with file.open("ab") as out:
        for line in (
            b"plain a.a nan 0 0",
            b"plain a.a 1 2",
            b"\xff\x00 a.a 1 1 1",
            b"plain a.a -1 0 0",
            b"plain a.a inf 0 0",
        ):
            out.write(line + b"\n")
        out.write(b"plain a.a 1")
    assert worlds._measured().spent == {"a.a": 1.5}
    assert caching.remember("plain", "a.a", 2.0)
    assert worlds._measured().spent == {"a.a": 3.5}
    assert worlds._measured().seconds("a.a", 2.0) == 0.5
    file.unlink()
    assert not worlds._measured().spent
    file.mkdir()
    assert not caching.remember("plain", "a.a", 2.0)
    assert not worlds._measured().spent
    file.rmdir()
    file.write_bytes(b"x" * (1 << 22))
    assert not caching.remember("plain", "a.a", 2.0)
    assert not worlds._measured().spent


def test_many_processes_remember_at_once(tmp_path):
    code = "from fastndcg.kernels.compile import caching\nfor _ in range(300): assert caching.remember('plain', 'a.a', 1.0)"
    all_at_once = [started(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(6)]
    for one in all_at_once:
        one.communicate(timeout=300)
    assert [one.returncode for one in all_at_once] == [0] * 6
    known, (file,) = worlds._Measured(), tmp_path.rglob("measured")
    for line in filter(None, file.read_text().split("\n")):
        known.learn(line)
    assert known.spent == {"a.a": 1800.0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_count_its_parents_time():
    code = """
        import os
        from fastndcg.kernels.compile import worlds
        worlds._here["a.a"] = 5.0
        if not (child := os.fork()):
            os._exit(worlds._told["a.a"] != 5.0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), worlds._told["a.a"])
    """
    assert run(code) == ["0", "0.0"]


def test_the_setting(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    for asked, expected in (("", "auto"), ("auto", "auto"), ("plain", "plain"), ("compiled", "compiled")):
        monkeypatch.setenv("FASTNDCG_KERNELS", asked)
        assert worlds.world() == expected
    monkeypatch.setenv("FASTNDCG_KERNELS", "fast")
    with pytest.raises(InputError, match="FASTNDCG_KERNELS='fast'; wanted one of auto, plain, compiled"):
        worlds.world()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert worlds.world() == "plain"


def compiled_by(folder, *kinds):
    """How many kernels each of some processes at once compiles; each needs those for codes of some kinds."""
    code = """
        import sys
        import numpy as np
        from fastndcg.common import progress
        from fastndcg.kernels.compile import worlds
        told = []
        progress.tell = told.append
        for kind in sys.argv[1:]:
            worlds.run("reading.rows.rows_by_code", 9, np.arange(9).astype(kind), 9)
        print(sum(line.startswith("compiling") for line in told))
    """
    environment = {"FASTNDCG_KERNELS": "compiled", "NUMBA_CACHE_DIR": str(folder)}
    running = [started(code, *of_one, **environment) for of_one in kinds]
    return sorted(int(each.communicate(timeout=300)[0]) for each in running)


@pytest.mark.compiled
@compiles
def test_two_processes_compile_once(tmp_path):
    assert compiled_by(tmp_path, ["int64"], ["int64"]) == [0, 1]


@pytest.mark.compiled
@compiles
def test_processes_at_once_compile_each_kernel_once_and_keep_all(tmp_path):
    """Kernels of one index, in different orders; each process locks what it compiles, and no more."""
    kinds = ["int8", "int16", "int32", "int64", "uint8", "uint16"]
    orders = [np.roll(kinds, turn).tolist() for turn in (0, 2, 4)]
    assert sum(compiled_by(tmp_path, *orders)) == 6
    assert compiled_by(tmp_path, kinds) == [0]
    assert len(list(tmp_path.rglob("*rows_by_code*.nbc"))) == 6


@pytest.mark.parametrize("is_kept", [False, True])
def test_nobody_pays_more_than_twice_the_best_choice(remembered, monkeypatch, is_kept):
    """Random calls of processes, at random costs, against the best choice of who knows all calls ahead."""
    random, worst, name = np.random.default_rng(18), 0.0, "a.a"
    for _ in range(300):
        compiling, loading = random.uniform(0.3, 12), random.uniform(0.1, 0.3)
        importing = float(random.uniform(0.1, 0.6))
        remembered.__init__()
        remembered.rates[name], remembered.compiling[name] = (1.0, 1.0), compiling
        remembered.loading |= {name: loading, "numba": importing}
        monkeypatch.setattr(worlds, "GUESSES", {"a": (1.0, compiling)})
        if is_kept:
            remembered.kept |= {name}
        processes = [random.lognormal(-2, 2, random.integers(1, 12)).tolist() for _ in range(20)]
        paid = 0.0
        for calls in processes:
            worlds._here.clear()
            worlds._told.clear()
            for seconds in calls:
                if worlds._pays(name, seconds):
                    paid += importing + (loading if name in remembered.kept else compiling)
                    if name not in remembered.kept:
                        remembered.learn(f"compiled {name} {compiling} 0 0")
                    break
                paid += seconds
                worlds._count(name, seconds, seconds)
        plain = [sum(calls) for calls in processes]
        kept = sum(min(seconds, importing + loading) for seconds in plain)
        worst = max(worst, paid / (kept if is_kept else min(sum(plain), importing + compiling + kept)))
    assert 1.5 < worst <= 2 + 1e-9


@compiles
def test_code_that_is_kept_for_other_types_is_not_waited_for(remembered, monkeypatch):
    """A plain call goes on until compiling pays, though the driver is kept for other types, or was deleted."""
    name, kinds = "reading.rows.rows_by_code", worlds.kind_of((np.zeros(3, np.int64), 3))[1:]
    remembered.compiling[name], remembered.rates[name] = 1000.0, (1.0, 1e8)
    caching.remember("loaded", key := worlds._key(name, kinds), 0.1)
    asked = []
    monkeypatch.setattr(compiling, "is_kept", lambda driver, arguments: asked.append(arguments))
    assert worlds.compiled_driver(name, 1e10, (np.zeros(3), 3)) is None
    assert not asked
    assert key in remembered.kept
    assert worlds.compiled_driver(name, 1e10, (np.zeros(3, np.int64), 3)) is None
    assert len(asked) == 1
    assert key not in remembered.kept
    assert worlds.compiled_driver(name, 1e10, (np.zeros(3, np.int64), 3)) is None
    assert len(asked) == 1


@pytest.mark.compiled
def test_a_killed_compiler_leaves_no_lock(monkeypatch, tmp_path):
    """The lock's file stays, the lock does not; whoever waited goes on, at the latest after the limit."""
    code = "from fastndcg.kernels.compile import caching\nwith caching.alone('a/b'):\n    print('held', flush=True)\n    {then}"

    def start(then):
        return started(code.format(then=then), NUMBA_CACHE_DIR=str(tmp_path))

    with start("import time; time.sleep(300)") as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            monkeypatch.setattr(caching, "folder", lambda: next(tmp_path.rglob("a-b.lock")).parent)
            told = []
            monkeypatch.setattr(progress, "tell", told.append)
            with caching.alone("a/b", patience=0.1, limit=0.3):
                assert told == [
                    "waiting for another process, which compiles kernels",
                    "another process has compiled kernels for 0 s; compiling here too",
                ]
            with start("pass") as waiting:
                with pytest.raises(subprocess.TimeoutExpired):
                    waiting.wait(timeout=1)
                holder.kill()
                assert waiting.communicate(timeout=60)[0] == "held\n"
        finally:
            holder.kill()
    assert len(list(tmp_path.rglob("*.lock"))) == 1


@pytest.mark.compiled
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_where_nothing_can_be_locked_each_compiles(monkeypatch, number):
    """On a full disk, in another user's folder, on a read-only file system; errors of compiling itself are not hidden."""

    def refuse(kept):
        raise OSError(number, os.strerror(number), str(kept))

    monkeypatch.setattr(caching, "make", refuse)
    with pytest.raises(OSError, match="of compiling"), caching.alone("a"):
        raise OSError("of compiling")


@pytest.mark.compiled
@compiles
@pytest.mark.parametrize("turns", ["compiled, plain", "plain, compiled", "at random"])
def test_drivers_of_one_call_may_be_of_both_worlds(monkeypatch, tmp_path, turns):
    """What one driver hands to another is the same whichever world it ran in; digests of ids differed, and joins found nothing."""
    random, lines = np.random.default_rng(3), {"qrels": [], "run": []}
    for query in range(40):
        for document in range(int(random.integers(1, 60))):
            name = "d" * int(random.integers(0, 20)) + str(document)
            lines["qrels"].append(f"q{query} 0 {name} {random.integers(0, 4)}\n")
            lines["run"].append(f"q{query} Q0 {name} 1 {random.integers(0, 9)} t\n")
    for name, text in lines.items():
        (tmp_path / name).write_text("".join(random.permutation(text)))

    def answers():
        found = []
        for ties in ("average", "docid_asc"):
            order = {} if ties == "average" else {"ties": ties}
            rankings = fn.read_trec(tmp_path / "qrels", tmp_path / "run", **order)
            found += [
                fn.evaluate(
                    rankings, ["nDCG@10", "AP", "ERR", "nDCG(ideal='returned', ties='input')@3"]
                ).values.tobytes()
            ]
            names = [f"{number}-{'x' * (number % 19)}" for number in range(50)] * 3
            shuffled = fn.Rankings.from_query_ids(names, [1, 0, 2] * 50, random_scores)
            found += [fn.evaluate(shuffled, "nDCG").values.tobytes()]
        return found

    random_scores = random.integers(0, 3, 150).astype(float)
    monkeypatch.setenv("FASTNDCG_KERNELS", "plain")
    wanted = answers()
    monkeypatch.setenv("FASTNDCG_KERNELS", "compiled")
    calls, find = [], worlds.compiled_driver

    def take_turns(name, size, arguments):
        """The first call of a driver in one world, the next in the other."""
        turn = calls.count(name) % 2
        calls.append(name)
        if turns == "at random":
            turn = random.integers(0, 2)
        is_plain = turn == (0 if turns == "plain, compiled" else 1)
        return None if is_plain else find(name, size, arguments)

    monkeypatch.setattr(worlds, "compiled_driver", take_turns)
    for _ in range(5 if turns == "at random" else 1):
        assert answers() == wanted
    assert calls.count("reading.joining.digest_ids") >= 4
