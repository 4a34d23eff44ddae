"""`launch`: how queries are cut, cast and handed to threads. That values do not depend on it is what other tests hold."""

import threading

import numpy as np
import pytest
from commands import printed

import fastndcg as fn
from fastndcg.measures import as_measures
from fastndcg.scoring import launch, methods, plan


def of_lengths(lengths, grades="uint8", scores="float32", **more):
    n_docs = sum(lengths)
    relevance = (np.arange(n_docs) % 3).astype(grades)
    return fn.Rankings.from_groups(lengths, relevance, np.zeros(n_docs, scores), **more)


def coded(rankings):
    return plan.build(as_measures("nDCG@10"), rankings)[1]


@pytest.mark.parametrize(
    ("grades", "scores"), [("int64", "float32"), ("uint8", "int16"), ("float64", "uint64")]
)
def test_what_is_cast_is_cast_in_runs(grades, scores):
    rankings = of_lengths([100] * 9000, grades, scores)
    runs = list(launch._runs(rankings, coded(rankings), 1, launch.Sizes()))
    assert len(runs) > 1
    assert [first for first, _ in runs[1:]] == [last for _, last in runs[:-1]]
    assert runs[0][0] == 0 and runs[-1][1] == 9000
    for first, last in runs:
        documents = launch._documents(rankings, coded(rankings), first, last)
        assert documents.relevance.dtype == np.uint8 and documents.scores.dtype in launch._COMPARED
        assert len(documents.relevance) == len(documents.scores) == 100 * (last - first)
        assert documents.base == 100 * first


def test_a_query_longer_than_a_run_is_a_run():
    rankings = of_lengths([1, 700_000, 2], "int64")
    runs = list(launch._runs(rankings, coded(rankings), 1, launch.Sizes()))
    assert [last - first for first, last in runs] == [1, 1, 1]


def test_python_threads_do_each_share_once():
    done = []
    lock = threading.Lock()

    def serial(chunks):
        with lock:
            done.extend(range(int(chunks[0]), int(chunks[-1])))

    for n_chunks in (1, 2, 17):
        done.clear()
        launch._run_on_python_threads(serial, 3, np.arange(n_chunks + 1))
        assert sorted(done) == list(range(n_chunks))


@pytest.mark.compiled
@pytest.mark.parametrize("share", [1, 100, 1 << 20])
def test_python_threads_are_started_where_each_has_enough_to_do(monkeypatch, share):
    """And values have the same bits."""
    rankings = fn.Rankings.from_groups(np.full(30, 20), np.arange(600) % 3, np.arange(600) % 7 / 3)
    expected, used = fn.evaluate(rankings, ["nDCG", "AP"], threads=1), []
    run = launch._run_on_python_threads
    monkeypatch.setattr(launch, "_numba_threads_are_safe", lambda: False)
    monkeypatch.setattr(launch, "_WORK_OF_PYTHON_THREAD", share)
    monkeypatch.setattr(launch.dispatch, "cores", lambda: 3)
    monkeypatch.setattr(
        launch,
        "_run_on_python_threads",
        lambda serial, threads, *more: used.append(threads) or run(serial, threads, *more),
    )
    found = fn.evaluate(rankings, ["nDCG", "AP"], threads=3)
    assert found.values.tobytes() == expected.values.tobytes()
    assert used == [1 if share > 1200 else 3]


def test_what_fails_in_a_python_thread_is_raised():
    def serial(chunks):
        raise MemoryError(f"chunk {chunks[0]}")

    with pytest.raises(MemoryError, match="chunk"):
        launch._run_on_python_threads(serial, 2, np.arange(9))


@pytest.mark.compiled
def test_queries_are_shared_among_threads_of_numba():
    program = """
import numpy as np, numba, fastndcg as fn
rankings = fn.Rankings.from_offsets(np.arange(0, 200_001, 50), np.arange(200_000) % 5, np.arange(200_000) % 97)
alone, shared = (fn.evaluate(rankings, "nDCG@10", threads=threads)["nDCG@10"] for threads in (1, 2))
from fastndcg.compiled import drivers
print(len(drivers.score_parallel.signatures), numba.threading_layer(), alone.tobytes() == shared.tobytes())
"""
    assert printed(program, NUMBA_THREADING_LAYER="omp", FASTNDCG_KERNELS="compiled").split() == [
        "1",
        "omp",
        "True",
    ]


def test_calls_beside_one_that_has_threads_run_alone():
    called = []
    with launch._one_at_a_time:
        launch._run_parallel(lambda chunks, *_: called.append(chunks), 4, np.arange(5), None, None, None)
    assert [chunks.tolist() for chunks in called] == [[0, 1, 2, 3, 4]]
    assert not launch._one_at_a_time.locked()


@pytest.mark.pure
def test_undefined_values_become_what_each_measure_says():
    measures = as_measures(["nDCG", "nDCG(empty='nan')", "nDCG(empty=1)", "nDCG(empty='skip')"])
    rankings = fn.Rankings.from_lists([[1]] * 4)
    values = np.array([[0.5, np.nan, 0.0, 1.0]] * 4)
    assert methods.replace_undefined(measures, values, rankings).tolist() == [[False, True, False, False]] * 4
    assert values[[0, 2], 1].tolist() == [0.0, 1.0] and np.isnan(values[[1, 3], 1]).all()
    assert values[:, [0, 2, 3]].tolist() == [[0.5, 0.0, 1.0]] * 4
    undefined = methods.replace_undefined(measures, np.ones((4, 3)), rankings)
    assert not undefined.any() and undefined.shape == (4, 3)
    assert methods.replace_undefined(measures, np.ones((4, 0)), rankings).shape == (4, 0)
    for infinite in (np.inf, -np.inf):
        with pytest.raises(fn.InputError, match="nDCG.* too many orders .* of query 2 "):
            methods.replace_undefined(measures, np.array([[0.5, np.nan, infinite, 1.0]] * 4), rankings)
