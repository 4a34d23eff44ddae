"""Tables of many readers, in order, while threads decode those that come next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from queue import Empty, SimpleQueue

import pyarrow as pa

from fastndcg.errors import SourceError

Reader = Generator[pa.Table, None, None]

_PATIENCE = 1.0  # seconds after which somebody who waits for a table looks whether anybody decodes it
_KEPT = 32  # readers after which Arrow's allocator is asked for memory that it keeps unused: after each 16th it took 7 % of the time


def decoded_ahead(readers: Iterator[Reader], threads: int) -> Generator[pa.Table, None, None]:
    """Tables of all readers, in order, while `threads` decode the next ones: each reader in one thread, one table ahead.

    The threads stay from the first table to the last. Arrow's allocator keeps memory for the thread that used it: with a
    thread for each reader, which had to fault all of its memory in, decoding took a third longer.

    >>> list(decoded_ahead(iter([(pa.table({"a": [row]}) for row in rows) for rows in ([1, 2], [], [3])]), 2))[2]["a"][0]
    <pyarrow.Int64Scalar: 3>
    """
    with closing(_Decoders()) as decoders:
        for _ in range(threads):
            decoders.start()
        for reader in islice(readers, threads + 1):
            decoders.begin(reader)
        done = 0
        while decoders.readings:
            yield from decoders.first()
            done += 1
            if done % _KEPT == 0:
                pa.default_memory_pool().release_unused()
            for reader in islice(readers, 1):
                decoders.begin(reader)


class _Decoders:
    """Threads that decode, and the readings that they were given and nobody has seen the end of.

    Not a pool: its threads would be waited for at exit, also where somebody holds a stream half-way.
    """

    def __init__(self) -> None:
        self.readings: deque[_Reading] = deque()
        self._given: SimpleQueue[_Reading | None] = SimpleQueue()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        thread = threading.Thread(target=self._decode, name="fastndcg-scan", daemon=True)
        thread.start()
        self._threads.append(thread)

    def begin(self, reader: Reader) -> None:
        reading = _Reading(reader)
        self.readings.append(reading)
        self._given.put(reading)

    def first(self) -> Iterator[pa.Table]:
        """Tables of the reader that was begun first, which is forgotten then."""
        reading = self.readings[0]
        # no name keeps a table while the next is waited for
        yield from iter(lambda: self._next(reading), None)
        self.readings.popleft()

    def close(self) -> None:
        self._stopped.set()
        for reading in self.readings:
            reading.room.release()
        for _ in self._threads:
            self._given.put(None)
        for thread in self._threads:
            thread.join()

    def _next(self, reading: _Reading) -> pa.Table | None:
        while True:
            try:
                item = reading.decoded.get(timeout=_PATIENCE)
            except Empty:
                if not any(thread.is_alive() for thread in self._threads):  # as after a fork
                    raise SourceError(
                        "the thread that decodes is gone, as in a forked process; iterate the stream anew there"
                    ) from None
                continue
            if isinstance(item, BaseException):
                raise item
            reading.room.release()
            return item

    def _decode(self) -> None:
        while (reading := self._given.get()) is not None:
            try:
                with closing(reading.reader) as tables:
                    while not self._stopped.is_set() and (table := next(tables, None)) is not None:
                        reading.room.acquire()
                        reading.decoded.put(table)
                        del table  # or it would stay while the next is decoded
                reading.decoded.put(None)
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
                reading.decoded.put(error)
            del reading


class _Reading:
    """The tables of one reader on their way between threads; one of them may wait."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.decoded: SimpleQueue[pa.Table | BaseException | None] = SimpleQueue()
        self.room = threading.Semaphore(1)
