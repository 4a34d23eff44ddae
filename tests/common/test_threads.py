"""Parts of a task in threads, and in the caller's where the host lets no other start."""

import threading

import pytest

from fastndcg.common.threads import in_threads


@pytest.mark.parametrize("allowed", [0, 1, 9])
def test_all_parts_run_in_order_however_many_threads_start(allowed, monkeypatch):
    start, started = threading.Thread.start, []

    def limited(thread):
        if len(started) == allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    assert list(in_threads(lambda part: part * part, range(20), 4)) == [part * part for part in range(20)]
    assert not any(thread.is_alive() for thread in started)


def test_an_error_of_a_part_is_not_taken_for_a_lack_of_threads():
    called = []

    def task(part):
        called.append(part)
        raise RuntimeError("of the task")

    with pytest.raises(RuntimeError, match="of the task"):
        list(in_threads(task, range(2), 2))
    assert len(called) == len(set(called))  # none runs twice
