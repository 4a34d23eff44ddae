"""Test millions of random queries and measures against the oracle, and all ways to compute them.

    python -m scripts.storm --minutes 5                 random gusts until the time is over; prints the seed
    python -m scripts.storm --only infAP ERR_IA         only these measures
    python -m scripts.storm --seed 7 --gust 1234        repeat one gust
    python -m scripts.storm --replay storm-failures/7-1234.json

A gust is a table of random queries and a list of measures with random parameters. The lengths of queries are
around those at which kernels change their method; dtypes, ties, unjudged documents, pools and weights vary.
All measures are evaluated together. The values must agree to 1e-12 with `tests/bulk.py`, or with
`tests/oracle.py` for measures that it lacks. They must have the same bits as with each measure alone, two
threads, a stream, shuffled rows, and kernels that are not compiled. A failure is reduced to few documents and
measures and written to a file that `--replay` reads.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("FASTNDCG_KERNELS", "compiled")  # the child process runs plain kernels

import bulk  # noqa: E402, from tests/
import oracle  # noqa: E402
from strategies import OF_INTENTS, Asked, Ragged  # noqa: E402

import fastndcg as fn  # noqa: E402
from fastndcg.sources.streams import RankingsStream  # noqa: E402
from scripts.storm_gusts import (  # noqa: E402
    NAMES,
    Gust,
    draw,
    join_queries,
    queries_of,
    read_json,
    shrink_items,
    take_rows,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

Array = npt.NDArray[Any]
Random = np.random.Generator

RELATIVE = 1e-12
REFUSALS = (fn.InputError, fn.MeasureError)
CHECKS = ("oracle", "alone", "threads", "stream", "shuffled", "plain")


# ---- checks ----


class Parts(RankingsStream):
    """A stream of rankings, a few queries at a time."""

    grouped = True

    def __init__(self, rankings: fn.Rankings, step: int) -> None:
        self._rankings, self._step = rankings, step

    def __iter__(self) -> Iterator[fn.Rankings]:
        return self._in_order()

    def _in_order(self) -> Generator[fn.Rankings, None, None]:
        for first in range(0, self._rankings.n_queries, self._step):
            yield self._rankings[first : first + self._step]

    def _regroup(self) -> Generator[Any, None, None]:
        raise NotImplementedError

    def _nothing(self) -> fn.Rankings:
        return self._rankings[:0]


def shuffle(table: Ragged, rng: Random) -> Ragged:
    """Shuffle the documents within each query, and the pools too unless they have intents."""

    def mixed(lengths: list[int]) -> Array:
        query = np.repeat(np.arange(len(lengths)), lengths)
        return np.lexsort((rng.random(len(query)), query))

    pooled, numbers = mixed(table.pool_lengths or []), np.arange(len(table.lengths))
    if table.pool_intents is not None:
        pooled = np.arange(len(pooled))
    return take_rows(table, table.lengths, mixed(table.lengths), table.pool_lengths, pooled, numbers)


class Plain:
    """A child process whose kernels are not compiled."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__, "--plain"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        )

    def values(self, gust: Gust) -> Array:
        to, back = self._child.stdin, self._child.stdout
        if to is None or back is None:
            raise RuntimeError("the child has no pipes")
        pickle.dump(gust, to)
        to.flush()
        answer = pickle.load(back)  # noqa: S301, written by this script
        if isinstance(answer, Exception):
            raise answer
        return answer

    @staticmethod
    def serve() -> None:
        while True:
            try:
                gust = pickle.load(sys.stdin.buffer)  # noqa: S301, as above
            except EOFError:
                return
            try:
                answer = evaluate(gust)
            except Exception as error:  # noqa: BLE001, the parent judges it
                answer = error
            pickle.dump(answer, sys.stdout.buffer)
            sys.stdout.buffer.flush()


_plain: list[Plain] = []


def evaluate(gust: Gust, **options: Any) -> Array:
    return fn.evaluate(
        gust.table.rankings(), [one.measure for one in gust.asked], **{"threads": 1} | options
    ).values


def complaint(gust: Gust, check: str) -> str | None:
    """Run one of CHECKS on a gust. Return what is wrong, or None, also if the package refuses the gust."""
    rng = np.random.default_rng(len(gust.table.relevance))
    try:
        values = evaluate(gust)
    except REFUSALS:
        return None
    except Exception as error:  # noqa: BLE001, any other error is a failure
        return f"{type(error).__name__}: {error}"
    if check == "oracle":
        return next(
            (
                wrong
                for one, got in zip(gust.asked, values, strict=True)
                if (wrong := differs(gust.table, one, got))
            ),
            None,
        )
    if check == "alone":
        others = np.concatenate([evaluate(Gust(gust.table, [one])) for one in gust.asked])
    elif check == "threads":
        others = evaluate(gust, threads=2)
    elif check == "stream":
        step = int(rng.integers(1, len(gust.table.lengths) + 1))
        stream = Parts(gust.table.rankings(), max(step, len(gust.table.lengths) // 20))
        others = fn.evaluate(stream, [one.measure for one in gust.asked], threads=1).values
    elif check == "shuffled":
        kept = [i for i, one in enumerate(gust.asked) if dict(one.parameters).get("ties") != "input"]
        values, others = values[kept], evaluate(Gust(shuffle(gust.table, rng), gust.asked))[kept]
        gust = gust._replace(asked=[gust.asked[i] for i in kept])
    else:
        _plain or _plain.append(Plain())
        others = _plain[0].values(gust)
    rows, queries = np.nonzero(values.view(np.int64) != others.view(np.int64))
    if not len(rows):
        return None
    row, query = int(rows[0]), int(queries[0])
    return f"{check}: {gust.asked[row].measure}, query {query}: {values[row, query]!r} and {others[row, query]!r}"


def differs(table: Ragged, asked: Asked, got: Array) -> str | None:
    wanted = expected(table, asked)
    if wanted is None:
        return None
    bound = np.maximum(np.abs(wanted), 0.0 if asked.name in OF_INTENTS else bound_of_cancelling(table, asked))
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(
            ~((np.abs(got - wanted) <= RELATIVE * bound) | (np.isnan(got) & np.isnan(wanted)))
        )
    if not len(wrong):
        checked[asked.name] += len(got)
        return None
    return f"oracle: {asked.measure}, query {wrong[0]}: got {got[wrong[0]]!r}, wanted {wanted[wrong[0]]!r}"


def bound_of_cancelling(table: Ragged, asked: Asked) -> float:
    """The scale of the tolerance for sums with negative gains, whose terms may cancel; otherwise 0."""
    judged = table.relevance if table.is_judged is None else table.relevance[table.is_judged]
    gains = [asked.gain(grade) for grade in np.unique(judged).tolist()]
    return 10 * max(map(abs, gains)) * table.longest if min(gains, default=0) < 0 else 0.0


checked: Counter[str] = Counter()  # for each measure, the number of values that agree with the oracle


batches: list[tuple[Ragged, bulk.Batch, bulk.IntentBatch | None]] = []  # cache for the last table


def expected(table: Ragged, asked: Asked) -> Array | None:
    """The values of an oracle, or None if there are too many orders of tied documents to enumerate."""
    words, of_intents = dict(asked.parameters), asked.name in OF_INTENTS
    if not words.get("ips"):
        if not batches or batches[0][0] is not table:
            batches[:] = [(table, *batches_of(table))]
        words.pop("ips", None)
        words.pop("clip", None)
        with suppress(ValueError):
            if of_intents:
                return bulk.of_intents(asked.name, batches[0][2], asked.cutoff, **words)
            return bulk.score(asked.name, batches[0][1], asked.cutoff, **words)
    if len(table.relevance) >= (300 if of_intents else 2000):
        return None
    many = words.get("ties", "average") == "average" and any(
        oracle.number_of_orders(query.scores) > 1000 for query in table.queries()
    )
    return None if many else np.array(asked.expected(table))


def batches_of(table: Ragged) -> tuple[bulk.Batch, bulk.IntentBatch | None]:
    rows = np.array(table.offsets), table.relevance, table.scores, table.is_judged, table.pool
    if table.intents is None:
        return bulk.batch_of(*rows), None
    pool = None if table.pool is None else (table.pool[0], table.pool_intents)
    return bulk.batch_of(*rows), bulk.intent_batch(
        rows[0], table.intents, *rows[2:4], pool, table.probabilities, table.doc_ids
    )


# ---- reduction of failures ----


def shrink(gust: Gust, check: str) -> Gust:
    """Reduce a gust to fewer measures, queries and documents that fail in the same check."""
    table = gust.table
    asked = shrink_items(
        gust.asked, lambda some: bool(some) and complaint(Gust(table, some), check) is not None
    )

    def fails(queries: list[Any]) -> bool:
        try:
            return complaint(Gust(join_queries(queries, table), asked), check) is not None
        except ValueError:
            return False

    queries = shrink_items(queries_of(table), fails)
    for place in range(min(len(queries), 20)):
        for part in (0, 1):  # documents, then the pool
            queries = _without(queries, place, part, fails)
    return Gust(join_queries(queries, table), asked)


def _without(queries: list[Any], place: int, part: int, fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Reduce one part of one query, its documents or its pool."""

    def put(items: list[Any]) -> list[Any]:
        changed = list(queries[place])
        changed[part] = items
        return [*queries[:place], tuple(changed), *queries[place + 1 :]]

    return put(shrink_items(queries[place][part], lambda items: fails(put(items))))


# ---- the storm ----


def drop_refused(gust: Gust) -> Gust:
    """Return the gust without the measures that refuse its queries."""
    try:
        evaluate(gust)
    except REFUSALS:
        kept = []
        for one in gust.asked:
            try:
                evaluate(Gust(gust.table, [one]))
            except REFUSALS:
                refused[one.name] += 1
            else:
                kept.append(one)
        return gust._replace(asked=kept)
    except Exception:  # noqa: BLE001, the next check reports it
        return gust
    return gust


refused: Counter[str] = Counter()


def blow(seed: int, number: int, only: Sequence[str] = (), *, every: bool) -> list[tuple[Gust, str, str]]:
    """Test one gust. Return reduced failures. Slow checks run for few gusts, unless `every`."""
    rng = np.random.default_rng([seed, number])
    gust, found = draw(rng, only=only), []
    gust = drop_refused(gust)
    chance = {"oracle": 1.0, "alone": 0.2, "threads": 0.2, "stream": 0.1, "shuffled": 0.2, "plain": 0.03}
    for check in CHECKS if gust.asked else ():
        if not every and rng.random() > chance[check]:
            continue
        one = gust
        if check == "plain":
            documents = 3000 if gust.table.intents is None else 1000 // gust.table.intents.shape[1]
            some = queries_of(gust.table)[: documents // (max(gust.table.lengths) + 1) + 1]
            one = gust._replace(table=join_queries(some, gust.table))
            one = drop_refused(one)
        for _ in range(3):  # after a failure, test again without the measures that failed
            wrong = complaint(one, check) if one.asked else None
            if wrong is None:
                break
            found.append((shrink(one, check), check, wrong))
            guilty = {str(each.measure) for each in found[-1][0].asked}
            one = one._replace(asked=[each for each in one.asked if str(each.measure) not in guilty])
        values_made[check] += len(one.asked) * len(one.table.lengths)
    return found


values_made: Counter[str] = Counter()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--gust", type=int, default=None, help="only this one, with all checks")
    parser.add_argument(
        "--only", nargs="+", default=(), choices=(*NAMES, "infAP", *OF_INTENTS), metavar="MEASURE"
    )
    parser.add_argument("--replay", type=Path, default=None)
    parser.add_argument("--failures", type=Path, default=Path("storm-failures"), help="folder for what fails")
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plain:
        Plain.serve()
        return 0
    if given.replay is not None:
        gust, check = read_json(given.replay)
        wrong = complaint(gust, check)
        print(wrong or f"{given.replay} passes: {check}")
        return int(wrong is not None)
    seed = int.from_bytes(os.urandom(4), "little") if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    end, number, failures = time.monotonic() + 60 * given.minutes, given.gust or 0, 0
    while given.gust in (None, number) and time.monotonic() < end:
        for gust, check, wrong in blow(seed, number, given.only, every=given.gust is not None):
            given.failures.mkdir(parents=True, exist_ok=True)
            path = given.failures / f"{seed}-{number}-{failures}.json"
            path.write_text(write_json(gust, check, complaint(gust, check) or wrong))
            failures += 1
            print(f"{path}: {wrong}", flush=True)
        number += 1
    print(f"{number} gusts, {failures} failures; compared with an oracle: {dict(checked.most_common())}")
    print(f"values in each check: {dict(values_made)}; measures refused: {dict(refused)}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
