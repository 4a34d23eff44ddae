"""Yield the tables of many readers in order, while threads decode ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

import pyarrow as pa

from fastndcg.errors import SourceError

Reader = Generator[pa.Table, None, None]

_PATIENCE = 1.0  # seconds to wait for a table before checking that the threads are alive
# readers after which Arrow releases unused memory; doing so after every 16 took 7 % of the time
_READERS_PER_RELEASE = 32


def decoded_ahead(readers: Iterator[Reader], threads: int) -> Generator[pa.Table, None, None]:
    """Yield the tables of all readers in order, while threads decode one table ahead of each reader. With 0
    threads, the calling thread decodes tables as they are needed.

    The calling thread is one of several: it decodes when it would otherwise wait. With one more thread than
    cores, threads waited for each other and for the GIL, and reading and scoring took a fifth longer.

    The threads live from the first table to the last: Arrow's allocator keeps memory per thread, and with a
    new thread for each reader, which faults in its memory anew, decoding took a third longer. They are not a
    pool, because Python waits for pools at exit, even if a stream was not read to its end.

    >>> readers = [(pa.table({"a": [row]}) for row in rows) for rows in ([1, 2], [], [3])]
    >>> list(decoded_ahead(iter(readers), 2))[2]["a"][0]
    <pyarrow.Int64Scalar: 3>
    """
    if not threads:
        for reader in readers:
            yield from reader
        return
    # open readers, each with a queue for its next table, its error, or None at its end
    readings: deque[tuple[Reader, SimpleQueue[Any]]] = deque()
    # readers whose next table no thread decodes yet, and a token for each; a fork could leave a lock held
    wanted: deque[tuple[Reader, SimpleQueue[Any]]] = deque()
    tokens: SimpleQueue[bool] = SimpleQueue()
    decoders: list[threading.Thread] = []
    is_over = False

    def begin(count: int) -> None:
        for reader in islice(readers, count):
            readings.append((reader, SimpleQueue()))
            wanted.append(readings[-1])
            tokens.put(True)

    def decode_one() -> None:
        reader, decoded = wanted.popleft()
        try:
            decoded.put(next(reader, None))
        except BaseException as error:  # noqa: BLE001 - raised again by `next_table`
            decoded.put(error)

    def decode() -> None:
        while tokens.get() and not is_over:
            decode_one()

    def next_table() -> pa.Table | None:
        _, decoded = readings[0]
        while decoded.empty():
            if not any(decoder.is_alive() for decoder in decoders):  # as after a fork
                raise SourceError(
                    "the threads that decode are gone, as in a forked process; iterate the stream anew there"
                )
            with suppress(Empty):
                if threads > 1 and tokens.get_nowait():
                    decode_one()
                    continue
            with suppress(Empty):
                decoded.put(decoded.get(timeout=_PATIENCE))
        item = decoded.get()
        if isinstance(item, BaseException):
            raise item
        if item is not None:
            wanted.appendleft(readings[0])  # first, since its table is needed next
            tokens.put(True)
        return item

    try:
        for _ in range(max(threads - 1, 1)):
            decoder = threading.Thread(target=decode, name="fastndcg-scan", daemon=True)
            decoder.start()
            decoders.append(decoder)
        begin(threads + 1)
        done = 0
        while readings:
            # a for loop would keep a table alive while the next one is decoded
            yield from iter(next_table, None)
            readings.popleft()
            done += 1
            if done % _READERS_PER_RELEASE == 0:
                pa.default_memory_pool().release_unused()
            begin(1)
    finally:
        is_over = True
        for _ in decoders:
            tokens.put(True)
        for decoder in decoders:
            decoder.join()
        for reader, _ in readings:
            # in a forked process, a reader may seem to run in a thread that does not exist there
            with suppress(ValueError):
                reader.close()
