"""What users are shown, by an engine: the numbers of `fastndcg.catalogue`, from counts and sums of parts.

rows -> the first ranks of each user, kept by the workers
     -> how often lists of a part have an item -> by item -> a tally of a block of items -> coverage, gini
     -> sums over the users of a part -> popularity, novelty
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.adapters import parcels, totals
from fastndcg.adapters.parts import lists_of
from fastndcg.common.arrow_types import array_of
from fastndcg.decide.exposure import Tally, check_tail, groups_by, table_of, tally_of
from fastndcg.decide.item_facts import Facts, Known, Lists, numbered, whole
from fastndcg.sources.groups import parts_of
from fastndcg.statistics import Moments

if TYPE_CHECKING:
    from fastndcg.adapters.parts import Task
    from fastndcg.common.table import Table

# the values of groups by column, and what is known of each group
Groups = tuple[list[pa.Array], list[Any]]


class Asked(NamedTuple):
    """What all workers are told."""

    known: Known
    by: tuple[str, ...]
    kinds: tuple[pa.DataType, ...]  # of `by`
    tail: float
    unseen: int | None
    nobody: Lists

    @classmethod
    def of(cls, known: Known, task: Task, schema: pa.Schema, tail: float, unseen: int | None) -> Asked:
        by = task.columns.keep
        kinds = [schema.field(name).type for name in by]
        plain = tuple(kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds)
        nobody = lists_of(task, schema.empty_table().select(task.names))
        least = None if unseen is None else whole("unseen", unseen)
        return cls(known, by, plain, check_tail(tail), least, nobody)


class Block(NamedTuple):
    """Of a block of items."""

    groups: Groups  # tallies
    shown: int  # different items that are shown
    strange: int  # those that are not among the given, shown or not


# ---- in a worker ----


def counted(by: Sequence[str], blocks: int, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield parcels of how often lists of each group and length have an item; of length 0, other items."""
    for lists in _lists(tables):
        columns, group, _ = totals.numbered_groups([lists.queries[name] for name in by], len(lists.lengths))
        longest = int(lists.lengths.max(initial=0)) + 1
        (codes, *_), ids = numbered([lists.ids, *([] if lists.others is None else [lists.others])])
        of_entries = np.repeat(group * longest + lists.lengths, lists.lengths)
        found, times = np.unique(of_entries * len(ids) + codes, return_counts=True)
        kind, item = np.divmod(found, max(len(ids), 1))
        rows = {"item": ids.take(pa.array(item)), "length": kind % longest, "times": times}
        rows |= {
            f"by {name}": column.take(pa.array(kind // longest))
            for name, column in zip(by, columns, strict=True)
        }
        table = pa.table(rows)
        if lists.others is not None:
            zeros = np.zeros(len(ids), np.int64)
            others = pa.table({"item": ids, "length": zeros, "times": zeros})
            table = pa.concat_tables([table, others], promote_options="default")
        of_rows = parts_of(table["item"].combine_chunks(), blocks)
        yield parcels.packed(parcels.divided(table, of_rows, 0, parcels.RESULTS))


def tallied(asked: Asked, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tallies of blocks, from all their parcels."""
    for opened in parcels.opened_blocks(tables):
        found = opened[parcels.RESULTS]
        (codes, *given), _ = numbered([found["item"], *asked.known.ids])
        strange = np.setdiff1d(codes, np.concatenate([codes[:0], *given]))
        lengths, times = (array_of(found[name]) for name in ("length", "times"))
        of_lists = np.flatnonzero(lengths)
        columns = [found[f"by {name}"].take(pa.array(of_lists)) for name in asked.by]
        by, parts = groups_by(columns, len(of_lists))
        rows = [of_lists[part] for part in parts]
        tallies = [tally_of(lengths[each], codes[each], times[each]) for each in rows]
        shown = len(np.unique(codes[of_lists]))
        yield totals.pickle_row(Block((by, tallies), shown, len(strange)))


def summed(asked: Asked, tables: Iterable[pa.Table]) -> list[Groups]:
    """Sums over the users of each group of a part; there is a part without users."""
    found = []
    for lists in (asked.nobody, *_lists(tables)):
        by, parts = groups_by([lists.queries[name] for name in asked.by], len(lists.lengths))
        values = Facts.of(lists, asked.known).of_users(lists, asked.tail, asked.unseen)
        sums = [
            {name: Moments.of(each[users][~np.isnan(each[users])]) for name, each in values.items()}
            for users in parts
        ]
        found.append((by, sums))
    return [_merged(asked, found)]


def _lists(tables: Iterable[pa.Table]) -> Iterator[Lists]:
    for table in tables:
        yield from totals.unpickle(table.to_pylist())[0]


def _merged(asked: Asked, parts: Sequence[Groups]) -> Groups:
    """The groups of all parts, in order."""
    columns = [
        pa.chunked_array([by[place].cast(kind) for by, _ in parts], kind)
        for place, kind in enumerate(asked.kinds)
    ]
    found = [each for _, groups in parts for each in groups]
    by, rows = groups_by(columns, len(found))
    return by, [reduce(totals.merged, (found[row] for row in each.tolist())) for each in rows]


# ---- in the driver ----


def with_all_items(asked: Asked, blocks: Sequence[Block]) -> tuple[Asked, int]:
    """What is asked where workers know the number of all items, of which each has some; and that number."""
    known = asked.known
    known.check_number(sum(block.shown for block in blocks))
    given = len(numbered(known.ids)[1]) if known.ids else 0
    every = given + sum(block.strange for block in blocks)
    if known.items:
        n_items = len(numbered([known.items["doc_id"]])[1])
        return asked, n_items
    # those that are not in training are of the tail; without a number, all are of the catalogue
    n_items = every if known.number is None else known.number
    return asked._replace(known=known._replace(number=max(every, n_items))), n_items


def table(asked: Asked, n_items: int, blocks: Sequence[Block], sums: Sequence[Groups]) -> Table:
    nothing: Groups = ([pa.array([], kind) for kind in asked.kinds], [] if asked.by else [Tally.of({})])
    by, tallies = _merged(asked, [nothing, *(block.groups for block in blocks)])
    of_users = _merged(asked, sums)[1] if asked.known.ids else [{}] * len(tallies)
    rows = [
        (place, name, value)
        for place, (tally, moments) in enumerate(zip(tallies, of_users, strict=True))
        for name, value in (
            tally.values(n_items) | {name: each.mean() for name, each in moments.items()}
        ).items()
    ]
    return table_of(asked.by, by, rows)
