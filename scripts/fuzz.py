"""Fuzz every reader with damaged files: it must agree with a reference or raise our error.

    python -m scripts.fuzz                                   1,000 mutants for each target
    python -m scripts.fuzz --target parquet --mutants 100000 --seed 7
    python -m scripts.fuzz --replay fuzz-failures/parquet-7-1234.parquet

    python -m scripts.fuzz --kernels compiled                  kernels as users run them, and not as plain Python

Each target says how often it reached each decoder that it is for, and fails where that is never: a fuzzer of pages read
no page for months. A mutant is defined by target, seed and number. A child process with limited memory and time reads it, so that
crashes are found. Mutants that fail are written to a folder, and `--replay` reads one of them again.

To add a target, add a `Target` to `TARGETS` of a module in `MODULES`. `mutate` damages bytes of any format.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import wraps
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MODULES = ("scripts.fuzz_parquet", "scripts.fuzz_text", "scripts.fuzz_files")
ROOT = Path(__file__).resolve().parent.parent

_MEMORY = 2 << 30  # bytes that a child may allocate in addition to what it has after its imports
_SECONDS = 30  # processor time for one mutant; the limit of wall time is ten times as long
_FIRST_SECONDS = 300  # for the first mutant of a child, which may have to compile
_EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 129, 254, 255)


class Target(NamedTuple):
    """A reader, or several of one format."""

    name: str  # no hyphen
    mutant: Callable[[Random], bytes]
    judge: Callable[[Path], str | None]  # returns what is wrong with how a file is read, or None
    ending: str  # of file names
    reaches: tuple[
        str, ...
    ] = ()  # decoders, as "module:name"; those of `fastndcg.kernels` in plain Python alone


class Failure(NamedTuple):
    target: str
    number: int
    complaint: str
    path: Path


class Found(NamedTuple):
    """What a run of a target found."""

    read: int
    failures: list[Failure]
    reached: Counter[str]  # how often each decoder returned

    @property
    def missed(self) -> list[str]:
        """Decoders that were never reached."""
        return [name for name, times in self.reached.items() if not times]


# ---- damage ----


def mutate(data: bytes, rng: Random, first: int = 0, last: int | None = None) -> bytes:
    """Return the bytes with one to four changes, each beginning between `first` and `last`."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        end = len(out) if last is None else min(last, len(out))
        if end <= first:
            break
        at = rng.randrange(first, end)
        rng.choice((_flip, _flip, _flip, _set, _set, _cut, _insert, _copy, _splice))(out, at, rng)
    return bytes(out)


def _flip(out: bytearray, at: int, rng: Random) -> None:
    out[at] ^= 1 << rng.randrange(8)


def _set(out: bytearray, at: int, rng: Random) -> None:
    for place in range(at, min(at + rng.choice((1, 1, 1, 2, 4)), len(out))):
        out[place] = rng.choice((rng.randrange(256), rng.choice(_EDGES)))


def _cut(out: bytearray, at: int, rng: Random) -> None:
    if rng.random() < 0.3:
        del out[at:]
    else:
        del out[at : at + rng.choice((1, 1, 2, 4, 8, 64))]


def _insert(out: bytearray, at: int, rng: Random) -> None:
    out[at:at] = bytes(rng.choice(_EDGES) for _ in range(rng.choice((1, 1, 2, 4, 8))))


def _copy(out: bytearray, at: int, rng: Random) -> None:
    """Overwrite bytes with a copy of others."""
    n, source = rng.choice((1, 2, 4, 8, 32)), rng.randrange(len(out))
    part = out[source : source + n]
    out[at : at + len(part)] = part


def _splice(out: bytearray, at: int, rng: Random) -> None:
    """Insert a copy of other bytes."""
    source = rng.randrange(len(out))
    out[at:at] = out[source : source + rng.choice((1, 4, 16, 64, 256))]


# ---- children ----


def targets() -> dict[str, Target]:
    return {target.name: target for name in MODULES for target in import_module(name).TARGETS}


def mutant_of(target: Target, seed: int, number: int) -> bytes:
    return target.mutant(Random(f"{target.name}/{seed}/{number}"))


def limit_memory(more: int) -> None:
    """Limit the memory that this process may allocate in addition to what it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def count(target: Target) -> Counter[str]:
    """Count from now on how often each decoder of a target returns."""
    is_plain, reached = os.environ.get("FASTNDCG_KERNELS") == "plain", Counter[str]()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            found = function(*arguments, **options)
            reached[name] += 1
            return found

        return call

    for name in target.reaches:
        if is_plain or not name.startswith("fastndcg.kernels."):
            reached[name] = 0
            module, _, path = name.partition(":")
            *outer, last = path.split(".")
            holder: Any = import_module(module)
            for each in outer:
                holder = getattr(holder, each)
            is_static = isinstance(inspect.getattr_static(holder, last, None), staticmethod)
            original = getattr(holder, last)
            function = counted(name, original)
            setattr(holder, last, staticmethod(function) if is_static else function)
            # modules that have imported it by name call it by theirs
            for other in [sys.modules[each] for each in sys.modules if each.startswith("fastndcg.")]:
                for alias in [alias for alias, value in vars(other).items() if value is original]:
                    setattr(other, alias, function)
    return reached


def judge_all(target: Target, numbers: range, seed: int) -> None:
    """Read mutants in a child, and print a line before and after each. A slow mutant ends the process."""
    reached = count(target)
    with tempfile.TemporaryDirectory(prefix="fastndcg-fuzz-") as folder:
        path = Path(folder) / f"mutant{target.ending}"
        for number in numbers:
            data = mutant_of(target, seed, number)
            path.write_bytes(data)
            print(json.dumps([number]), flush=True)
            seconds = _SECONDS if number > numbers.start else _FIRST_SECONDS
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.alarm(10 * seconds)
            complaint = target.judge(path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            print(json.dumps([number, complaint, reached]), flush=True)
            for name in reached:
                reached[name] = 0


def _ending(code: int) -> str:
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        return f"took more than {_SECONDS} s"
    return f"the process ended with {signal.Signals(-code).name if code < 0 else code}"


def _in_children(
    target: Target, numbers: range, seed: int, is_over: Callable[[], bool], kernels: str
) -> Iterator[tuple[int, str | None, dict[str, int]]]:
    """Yield the number of each mutant, what is wrong with it, and how often it reached which decoder.

    After a child that dies, start another.
    """
    first = numbers.start
    while first < numbers.stop and not is_over():
        arguments = ["--child", target.name, str(first), str(numbers.stop), str(seed)]
        with subprocess.Popen(
            [sys.executable, "-m", "scripts.fuzz", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            # plain kernels find each index that is out of bounds
            env={
                **os.environ,
                "FASTNDCG_KERNELS": kernels,
                "NUMBA_DISABLE_JIT": str(int(kernels == "plain")),
            },
        ) as child:
            begun = None
            for line in child.stdout or ():
                number, *judged = json.loads(line)
                begun = number
                if judged:
                    begun, first = None, number + 1
                    yield number, *judged
                    if is_over():
                        child.kill()
                        return
            said = child.stderr.read().strip() if child.stderr else ""
        if child.returncode and begun is None:
            raise SystemExit(f"{target.name}: a child ended with {child.returncode}:\n{said}")
        if begun is not None:
            yield begun, f"{_ending(child.returncode)}: {' '.join(said.splitlines()[-1:])}", {}
            first = begun + 1


# ---- command ----


def fuzz(
    target: Target, numbers: range, seed: int, folder: Path, seconds: float = 1e9, kernels: str = "plain"
) -> Found:
    """Read mutants until the time is over and each decoder was reached, or there are no more."""
    read, failures, reached, until = 0, [], Counter[str](), time.monotonic() + seconds

    def is_over() -> bool:
        return time.monotonic() >= until and bool(read) and all(reached.values())

    for number, complaint, times in _in_children(target, numbers, seed, is_over, kernels):
        read += 1
        reached.update(times)
        if complaint is not None:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{target.name}-{seed}-{number}{target.ending}"
            path.write_bytes(mutant_of(target, seed, number))
            failures.append(Failure(target.name, number, complaint, path))
    return Found(read, failures, reached)


def _replay(path: Path) -> int:
    target = targets()[path.name.partition("-")[0]]
    complaint = target.judge(path)
    print(complaint or "read correctly")
    return int(complaint is not None)


def main(arguments: Sequence[str] | None = None) -> int:
    known = targets()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", action="append", choices=sorted(known), help="default: all")
    parser.add_argument("--mutants", type=int, default=1000, help="for each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="for each target, or more until each decoder was reached"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-failures"), help="folder for mutants that fail"
    )
    parser.add_argument(
        "--replay", type=Path, help="judge a file that failed; its name begins with its target"
    )
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--kernels", choices=("plain", "compiled", "auto"), default="plain")
    given = parser.parse_args(arguments)
    if given.replay is not None:
        return _replay(given.replay)
    if given.child is not None:
        name, first, last, seed = given.child
        limit_memory(_MEMORY)
        judge_all(known[name], range(int(first), int(last)), int(seed))
        return 0
    failed = 0
    for name in given.target or known:
        numbers = range(given.first, given.first + given.mutants)
        found = fuzz(known[name], numbers, given.seed, given.keep, given.seconds, given.kernels)
        print(
            f"{name}: {found.read:,} mutants of seed {given.seed}, {len(found.failures)} failures", flush=True
        )
        for failure in found.failures:
            print(f"  {failure.path}: {failure.complaint}")
        for decoder, times in found.reached.items():
            print(f"  {decoder}: " + (f"reached {times:,} times" if times else "NEVER REACHED"), flush=True)
        failed += len(found.failures) + len(found.missed)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
