"""Tables of many readers, in order, while threads decode those that come next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from itertools import islice
from queue import Empty, SimpleQueue

import pyarrow as pa

from fastndcg.errors import SourceError

Reader = Generator[pa.Table, None, None]

_PATIENCE = 1.0  # seconds after which somebody who waits for a table looks whether anybody decodes it
_KEPT = 32  # readers after which Arrow's allocator is asked for memory that it keeps unused: after each 16th it took 7 % of the time


def decoded_ahead(readers: Iterator[Reader], threads: int) -> Generator[pa.Table, None, None]:
    """Tables of all readers, in order, while `threads` decode the next ones: of each reader, one table ahead.

    Of several threads one is the caller's, which decodes where it would wait otherwise: with as many beside it, on as many
    cores, threads waited for one another and for Python's lock, and reading and scoring took a fifth longer.

    The threads stay from the first table to the last. Arrow's allocator keeps memory for the thread that used it: with a
    thread for each reader, which had to fault all of its memory in, decoding took a third longer.

    >>> list(decoded_ahead(iter([(pa.table({"a": [row]}) for row in rows) for rows in ([1, 2], [], [3])]), 2))[2]["a"][0]
    <pyarrow.Int64Scalar: 3>
    """
    with closing(_Decoders(helped=threads > 1)) as decoders:
        for _ in range(max(threads - 1, 1)):
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

    def __init__(self, *, helped: bool) -> None:
        self.readings: deque[_Reading] = deque()
        self._helped = helped  # by the thread that waits
        # those of which nobody decodes the next table, and a token for each: no lock that a fork could leave held
        self._wanted: deque[_Reading] = deque()
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        self._stopped = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        thread = threading.Thread(target=self._decode, name="fastndcg-scan", daemon=True)
        thread.start()
        self._threads.append(thread)

    def begin(self, reader: Reader) -> None:
        reading = _Reading(reader)
        self.readings.append(reading)
        self._wanted.append(reading)
        self._tokens.put(True)

    def first(self) -> Iterator[pa.Table]:
        """Tables of the reader that was begun first, which is forgotten then."""
        reading = self.readings[0]
        # no name keeps a table while the next is waited for
        yield from iter(lambda: self._next(reading), None)
        self.readings.popleft()

    def close(self) -> None:
        self._stopped = True
        for _ in self._threads:
            self._tokens.put(True)
        for thread in self._threads:
            thread.join()
        for reading in self.readings:
            # in a forked process it may be run for ever, by a thread that is not there
            with suppress(ValueError):
                reading.reader.close()

    def _next(self, reading: _Reading) -> pa.Table | None:
        item = self._await(reading)
        if isinstance(item, BaseException):
            raise item
        if item is not None:
            self._wanted.appendleft(reading)  # before all others, since it will be waited for first
            self._tokens.put(True)
        return item

    def _await(self, reading: _Reading) -> pa.Table | BaseException | None:
        while True:
            if reading.decoded.empty():
                if not any(thread.is_alive() for thread in self._threads):  # as after a fork
                    raise SourceError(
                        "the thread that decodes is gone, as in a forked process; iterate the stream anew there"
                    )
                if self._helped and self._decode_one():
                    continue
            with suppress(Empty):
                return reading.decoded.get(timeout=_PATIENCE)

    def _decode_one(self) -> bool:
        """Decode the next table that is waited for, if any."""
        try:
            self._tokens.get_nowait()
        except Empty:
            return False
        self._wanted.popleft().decode_next()
        return True

    def _decode(self) -> None:
        while self._tokens.get() and not self._stopped:
            self._wanted.popleft().decode_next()


class _Reading:
    """The next table of one reader, on its way between threads."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.decoded: SimpleQueue[pa.Table | BaseException | None] = SimpleQueue()

    def decode_next(self) -> None:
        try:
            self.decoded.put(next(self.reader, None))
        except BaseException as error:  # noqa: BLE001 - raised again where its table would be
            self.decoded.put(error)
