"""Read the tables of many readers in order, while threads decode the next ones."""

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

_PATIENCE = 1.0  # seconds to wait for a table before checking that the threads still live
_READERS_PER_RELEASE = (
    32  # readers after which Arrow releases unused memory: after every 16 it took 7 % of the time
)


def decoded_ahead(readers: Iterator[Reader], threads: int) -> Generator[pa.Table, None, None]:
    """Yield the tables of all readers in order, while threads decode one table ahead for each reader.

    If there are several threads, the caller's is one of them: it decodes when it would otherwise wait. With
    one more thread than cores, threads waited for each other and for Python's lock, and reading and scoring
    took a fifth longer.

    The threads live from the first table to the last. Arrow's allocator keeps memory for the thread that used
    it: with a new thread for each reader, which had to fault in all of its memory, decoding took a third
    longer.

    >>> readers = [(pa.table({"a": [row]}) for row in rows) for rows in ([1, 2], [], [3])]
    >>> list(decoded_ahead(iter(readers), 2))[2]["a"][0]
    <pyarrow.Int64Scalar: 3>
    """
    with closing(_Decoders(caller_decodes=threads > 1)) as decoders:
        for _ in range(max(threads - 1, 1)):
            decoders.start()
        for reader in islice(readers, threads + 1):
            decoders.begin(reader)
        done = 0
        while decoders.readings:
            yield from decoders.first()
            done += 1
            if done % _READERS_PER_RELEASE == 0:
                pa.default_memory_pool().release_unused()
            for reader in islice(readers, 1):
                decoders.begin(reader)


class _Decoders:
    """Threads that decode, and the readings that are not finished.

    This is not a thread pool: Python waits for the threads of a pool at exit, even if a stream was not read
    to its end.
    """

    def __init__(self, *, caller_decodes: bool) -> None:
        self.readings: deque[_Reading] = deque()
        self._caller_decodes = caller_decodes
        # the readings whose next table no thread decodes yet, and a token for each: a fork could leave a lock
        # held
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
        """Yield the tables of the oldest reading, and remove it."""
        reading = self.readings[0]
        # not a for loop, whose variable would keep a table alive while the next one is decoded
        yield from iter(lambda: self._next(reading), None)
        self.readings.popleft()

    def close(self) -> None:
        self._stopped = True
        for _ in self._threads:
            self._tokens.put(True)
        for thread in self._threads:
            thread.join()
        for reading in self.readings:
            # in a forked process a reader may seem to run for ever, in a thread that does not exist there
            with suppress(ValueError):
                reading.reader.close()

    def _next(self, reading: _Reading) -> pa.Table | None:
        item = self._await(reading)
        if isinstance(item, BaseException):
            raise item
        if item is not None:
            self._wanted.appendleft(reading)  # before all others, since its table is needed first
            self._tokens.put(True)
        return item

    def _await(self, reading: _Reading) -> pa.Table | BaseException | None:
        while True:
            if reading.decoded.empty():
                if not any(thread.is_alive() for thread in self._threads):  # as after a fork
                    raise SourceError(
                        "the threads that decode are gone, as in a forked process; "
                        "iterate the stream anew there"
                    )
                if self._caller_decodes and self._decode_one():
                    continue
            with suppress(Empty):
                return reading.decoded.get(timeout=_PATIENCE)

    def _decode_one(self) -> bool:
        """Decode the next table that no thread decodes yet. Return False if there is none."""
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
    """A reader, and a queue for its next table."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.decoded: SimpleQueue[pa.Table | BaseException | None] = SimpleQueue()

    def decode_next(self) -> None:
        try:
            self.decoded.put(next(self.reader, None))
        except BaseException as error:  # noqa: BLE001 - raised again when its table is asked for
            self.decoded.put(error)
