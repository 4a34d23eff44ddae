"""Tables decoded ahead: in order, no more of them than wanted, nothing left running."""

import os
import threading
import time
from itertools import islice

import pyarrow as pa
import pytest
from commands import program

from fastndcg.sources.prefetch import decoded_ahead


def table(row):
    return pa.table({"row": [row]})


def rows_of(tables):
    return [table["row"][0].as_py() for table in tables]


def decoders():
    return [thread for thread in threading.enumerate() if thread.name == "fastndcg-scan"]


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("lengths", [[], [0], [1] * 20, [0, 3, 0, 0, 1, 7, 2, 0]])
def test_order(threads, lengths):
    def reader(first, length):
        for row in range(first, first + length):
            time.sleep(0.003 * (row % 3 == 0))
            yield table(row)

    readers = (reader(sum(lengths[:place]), length) for place, length in enumerate(lengths))
    assert rows_of(decoded_ahead(readers, threads)) == list(range(sum(lengths)))
    assert not decoders()


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_is_decoded_than_there_is_memory_for(threads):
    begun, decoded = [0], [0]

    def reader():
        begun[0] += 1
        for row in range(4):
            decoded[0] += 1
            yield table(row)

    tables = decoded_ahead((reader() for _ in range(20)), threads)
    next(tables)
    # of each reader one table waits, and one was taken
    until(lambda: (begun[0], decoded[0]) == (threads + 1, threads + 2))
    time.sleep(0.05)
    assert (begun[0], decoded[0]) == (threads + 1, threads + 2)
    tables.close()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_where_it_stands(threads, kind):
    def reader(row):
        if row == 3:
            raise kind("bad row group")
        time.sleep(0.01 * (row < 3))  # the error is there before what comes before it
        yield table(row)

    tables = decoded_ahead((reader(row) for row in range(10)), threads)
    assert rows_of(islice(tables, 3)) == [0, 1, 2]
    with pytest.raises(kind, match="bad row group"):
        next(tables)
    assert not decoders()


def test_what_is_left_half_way_is_closed():
    begun = []
    closed = []

    def reader(number):
        begun.append(number)
        try:
            for row in range(100):
                yield table(row)
        finally:
            closed.append(number)

    tables = decoded_ahead((reader(number) for number in range(10)), 2)
    assert rows_of(islice(tables, 3)) == [0, 1, 2]
    tables.close()
    assert not decoders()
    assert 0 in begun
    assert sorted(closed) == sorted(begun)


def test_no_thread_can_be_started(monkeypatch):
    start, started = threading.Thread.start, []

    def refuse(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        next(decoded_ahead(iter([(table(row) for row in range(2))]), 3))
    assert not started[0].is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_that_nobody_decodes():
    code = """
        import os, sys
        import pyarrow as pa
        from fastndcg.errors import SourceError
        from fastndcg.sources.prefetch import decoded_ahead
        readers = ((pa.table({"row": [row]}) for row in range(9)) for _ in range(9))
        tables = decoded_ahead(readers, 2)
        next(tables)
        if not (child := os.fork()):
            try:
                for _ in tables:
                    pass
            except SourceError as error:
                print(error, flush=True)
                tables.close()
                os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sum(1 for _ in tables))
    """
    finished = program(code, timeout=60)
    assert finished.stdout.splitlines()[1:] == ["7 80"], finished.stderr
    assert "the threads that decode are gone, as in a forked process" in finished.stdout
