"""Plain kernels until compiled ones pay: which world runs, that both give the same bits, and that nothing is compiled twice."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from time import thread_time
from typing import Any

import numba
import numpy as np
import pytest

import fastndcg as fn
from fastndcg import progress
from fastndcg.compiled import compiling
from fastndcg.errors import InputError
from fastndcg.kernels import caching, marks, worlds
from fastndcg.kernels import rows as plain_rows
from fastndcg.sources import pages

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
        measures = ["nDCG@10", "nDCG(ties='worst')", "AP", "RR@10", "P@5", "ERR@10", "nDCG(ideal='returned')@3"]
        found.update(fn.evaluate(rankings, measures).values.tobytes())
ids = random.integers(0, 5, 90)
shuffled = fn.Rankings.from_query_ids(ids, ids % 3, random.random(90))
found.update(fn.evaluate(shuffled, "nDCG").values.tobytes())
print("numba" in sys.modules, found.hexdigest())
"""


def run(code: str, **environment: str) -> list[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("FASTNDCG_KERNELS", "NUMBA_DISABLE_JIT")
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=kept | {"PYTHONPATH": str(Path(fn.__file__).parent.parent)} | environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


def test_small_calls_import_no_compiler(tmp_path: Path) -> None:
    """On a machine that never compiled anything, and the values of plain kernels."""
    auto = run(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    assert auto[0] == "False"
    assert auto == run(SMALL, FASTNDCG_KERNELS="plain")
    assert not list(tmp_path.rglob("*.nbc"))


@compiles
def test_the_same_bits_in_both_worlds() -> None:
    assert run(SMALL, FASTNDCG_KERNELS="compiled")[1] == run(SMALL, FASTNDCG_KERNELS="plain")[1]


@compiles
def test_a_plain_driver_that_takes_too_long_is_run_compiled() -> None:
    """And from then on the compiled one runs, whatever the size."""
    code = """
        import sys
        import numpy as np
        import fastndcg as fn
        from fastndcg.kernels import worlds
        rankings = fn.Rankings.from_dense(np.tile([0, 1, 2], (400, 4)), np.random.default_rng(1).random((400, 12)).astype(np.float32))
        small = fn.evaluate(rankings[:3], "nDCG@10").values
        assert "numba" not in sys.modules
        worlds._left = lambda name, price=None: 0.0
        whole = fn.evaluate(rankings, "nDCG@10").values
        assert "numba" in sys.modules and worlds._ready
        assert whole[0, :3].tolist() == small[0].tolist()
        spent = dict(worlds._spent)
        assert fn.evaluate(rankings[:3], "nDCG@10").values.tolist() == small.tolist()
        assert worlds._spent["drivers.score_levels_serial"] == spent["drivers.score_levels_serial"]
        print("done")
    """
    assert run(code) == ["done"]


def test_what_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading where a driver is kept, compiling where none is, and what was spent counts."""
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv("FASTNDCG_KERNELS", "auto")
    monkeypatch.setattr(worlds, "_spent", {})
    monkeypatch.setattr(worlds, "_price_of_numba", lambda name: worlds.IMPORTING)
    costs, name = worlds.COSTS["rows.rows_by_code"], "rows.rows_by_code"
    loading = (worlds.IMPORTING + costs.loading) / costs.plain
    compiling = (worlds.IMPORTING + costs.compiling) / costs.plain
    for is_kept, worth in ((True, loading), (False, compiling)):
        monkeypatch.setattr(caching, "holds", lambda function, is_kept=is_kept: is_kept)
        assert not worlds.pays(name, 0.99 * worth)
        assert worlds.pays(name, 1.01 * worth)
        worlds._spent[name] = 0.5 * worth * costs.plain
        assert not worlds.pays(name, 0.49 * worth)
        assert worlds.pays(name, 0.51 * worth)
        worlds._spent.clear()


@pytest.mark.auto
def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    for asked, expected in (("", "auto"), ("auto", "auto"), ("plain", "plain"), ("compiled", "compiled")):
        monkeypatch.setenv("FASTNDCG_KERNELS", asked)
        assert worlds.world() == expected
    monkeypatch.setenv("FASTNDCG_KERNELS", "fast")
    with pytest.raises(InputError, match="FASTNDCG_KERNELS='fast'; wanted one of auto, plain, compiled"):
        worlds.world()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert worlds.world() == "plain"


@pytest.mark.auto
def test_only_the_plain_world_never_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, long files are read by pyarrow, not by Python's loops over their pages."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    for asked, expected in (("plain", False), ("compiled", True), ("auto", True)):
        monkeypatch.setenv("FASTNDCG_KERNELS", asked)
        for rows in (10**9, 10**12):
            assert pages.is_worth_it(rows) is pages.are_texts_worth_it(rows) is expected


@compiles
def test_two_processes_compile_once(tmp_path: Path) -> None:
    code = """
        import logging
        import numpy as np
        from fastndcg import progress
        from fastndcg.kernels import worlds
        told = []
        progress.tell = told.append
        worlds.run("rows.rows_by_code", 9, np.arange(9), 9)
        print(sum(line.startswith("compiling") for line in told))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = os.environ | {
        "PYTHONPATH": str(Path(fn.__file__).parent.parent), "FASTNDCG_KERNELS": "compiled", "NUMBA_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sorted(one.communicate(timeout=300)[0].strip() for one in both) == ["0", "1"]


@pytest.mark.auto
@pytest.mark.parametrize("is_kept", [False, True])
def test_nobody_pays_more_than_twice_the_best_choice(monkeypatch: pytest.MonkeyPatch, is_kept: bool) -> None:
    """Random calls of up to three drivers, of random costs, against the best choice of who knows all calls ahead."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.setenv("FASTNDCG_KERNELS", "auto")
    monkeypatch.setattr(caching, "holds", lambda function: is_kept)
    random, worst, compiler = np.random.default_rng(18), 0.0, "fastndcg.compiled.compiling"
    for _ in range(500):
        names = ["a.a", "b.b", "c.c"][: random.integers(1, 4)]
        costs = {
            name: worlds.Costs(1.0, random.uniform(0.3, 12), random.uniform(0.05, 0.3)) for name in names
        }
        prices = {name: costs[name].loading if is_kept else costs[name].compiling for name in names}
        calls = [(str(random.choice(names)), float(random.lognormal(-2, 2))) for _ in range(60)]
        monkeypatch.setattr(worlds, "COSTS", costs)
        monkeypatch.setattr(worlds, "_spent", {})
        monkeypatch.delitem(sys.modules, compiler, raising=False)
        paid, built = 0.0, set()
        for name, seconds in calls:
            if name in built:
                continue
            if worlds.pays(name, seconds):
                paid += prices[name] + (0.0 if compiler in sys.modules else worlds.IMPORTING)
                monkeypatch.setitem(sys.modules, compiler, worlds)
                built.add(name)
            else:
                paid += seconds
                worlds._spent[name] = worlds._spent.get(name, 0.0) + seconds
        plain = {name: sum(seconds for other, seconds in calls if other == name) for name in names}
        with_numba = worlds.IMPORTING + sum(min(plain[name], prices[name]) for name in names)
        worst = max(worst, paid / min(sum(plain.values()), with_numba))
    assert 1.5 < worst <= 2 + 1e-9


@compiles
@pytest.mark.auto
def test_code_that_is_kept_for_other_types_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain call goes on until compiling would have paid, though the driver is kept for arguments of other types."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.setenv("FASTNDCG_KERNELS", "auto")
    monkeypatch.setitem(worlds.COSTS, "rows.rows_by_code", worlds.Costs(1.0, 1000.0, 0.2))
    for name, value in (("_spent", {}), ("_unkept", set()), ("_ready", {})):
        monkeypatch.setattr(worlds, name, value)
    monkeypatch.setattr(caching, "holds", lambda function: True)
    monkeypatch.setattr(compiling, "is_kept", lambda driver, arguments: arguments[0].dtype == np.int64)

    def ask(codes: Any, n_codes: int) -> float:
        """Seconds of plain work that this call has at its deadline."""
        return float(marks.deadline.last() - thread_time())

    monkeypatch.setattr(plain_rows, "rows_by_code", ask)
    for dtype, most in ((np.int64, 0.2), (np.float64, 1000.0)):
        left = worlds.run("rows.rows_by_code", 0.1, np.zeros(3, dtype), 3)
        assert 0.4 * most < left <= most
    # nor is compiled at a size that is worth loading
    assert worlds.compiled_driver("rows.rows_by_code", 100, (np.zeros(3), 3)) is None


def test_a_killed_compiler_leaves_no_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The lock's file stays, the lock does not; whoever waited goes on, at the latest after the limit."""
    code = "from fastndcg.kernels import caching\nwith caching.alone():\n    print('held', flush=True)\n    {then}"
    environment = os.environ | {
        "PYTHONPATH": str(Path(fn.__file__).parent.parent),
        "NUMBA_CACHE_DIR": str(tmp_path),
    }

    def start(then: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code.format(then=then)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    with start("import time; time.sleep(300)") as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            monkeypatch.setattr(caching, "folder", lambda: next(tmp_path.rglob("compiling.lock")).parent)
            told: list[str] = []
            monkeypatch.setattr(progress, "tell", told.append)
            with caching.alone(patience=0.1, limit=0.3):
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
    assert len(list(tmp_path.rglob("compiling.lock"))) == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_where_nothing_can_be_locked_each_compiles(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """On a full disk, in another user's folder, on a read-only file system; errors of compiling itself are not hidden."""

    def refuse(kept: Path) -> None:
        raise OSError(number, os.strerror(number), str(kept))

    monkeypatch.setattr(caching, "make", refuse)
    with pytest.raises(OSError, match="of compiling"), caching.alone():
        raise OSError("of compiling")


@compiles
@pytest.mark.parametrize("turns", ["compiled, plain", "plain, compiled", "at random"])
def test_drivers_of_one_call_may_be_of_both_worlds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, turns: str
) -> None:
    """What one driver hands to another is the same whichever world it ran in; digests of ids differed, and joins found nothing."""
    random, lines = np.random.default_rng(3), {"qrels": [], "run": []}
    for query in range(40):
        for document in range(int(random.integers(1, 60))):
            name = "d" * int(random.integers(0, 20)) + str(document)
            lines["qrels"].append(f"q{query} 0 {name} {random.integers(0, 4)}\n")
            lines["run"].append(f"q{query} Q0 {name} 1 {random.integers(0, 9)} t\n")
    for name, text in lines.items():
        (tmp_path / name).write_text("".join(random.permutation(text)))

    def answers() -> list[bytes]:
        found = []
        for ties in ("average", "docid_asc"):
            order = {} if ties == "average" else {"ties": ties}
            rankings = fn.read_trec(tmp_path / "qrels", tmp_path / "run", **order)
            found += [
                fn.evaluate(rankings, ["nDCG@10", "AP", "ERR", "nDCG(ideal='returned')@3"]).values.tobytes()
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

    def take_turns(name: str, size: float, arguments: tuple[Any, ...]) -> Any:
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
    assert calls.count("joining.digest_ids") >= 4
