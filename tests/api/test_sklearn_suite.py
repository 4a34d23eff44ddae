"""`ndcg_score` and `dcg_score` as scikit-learn's: its own tests run against ours, and random input through both."""

import os
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn

sklearn_metrics = pytest.importorskip(
    "sklearn.metrics", reason="scikit-learn is not installed: pip install 'fastndcg[test]'"
)

HERE = Path(__file__).resolve().parent.parent
PAIRS = [(fn.ndcg_score, sklearn_metrics.ndcg_score), (fn.dcg_score, sklearn_metrics.dcg_score)]
TIMES = [pytest.param(*pair, id=pair[0].__name__) for pair in PAIRS]


# ---- its own tests ----


@pytest.mark.compiled
@pytest.mark.slow
def test_scikit_learn_s_own_tests(tmp_path):
    """Every test of the installed wheel with "dcg" in its name, run in a process of its own with our functions put in."""
    tests = [
        Path(sklearn_metrics.__file__).parent / "tests" / file
        for file in ("test_ranking.py", "test_common.py")
    ]
    if not all(file.is_file() for file in tests):
        pytest.skip(f"this scikit-learn was installed without its tests: no {tests[0].name}")
    paths = os.pathsep.join(
        [str(HERE), str(Path(fn.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", tmp_path / "pytest.ini", "--rootdir", tmp_path, "-p", "sklearn_plugin", "-p", "no:cacheprovider",
         "-p", "no:randomly", "-W", "ignore", "-q", "-k", "dcg", *map(str, tests)],
        capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-8000:] + finished.stderr[-2000:]
    passed = re.search(r"(\d+) passed", finished.stdout)
    calls = re.search(r"'ndcg_score': (\d+), 'dcg_score': (\d+)", finished.stdout)
    assert passed is not None and calls is not None
    assert int(passed[1]) + len(re.findall("skipped", finished.stdout)) * 4 >= 27
    assert min(map(int, calls.groups())) >= 40


# ---- values ----


@st.composite
def matrices(draw):
    rows, width = draw(st.integers(1, 5)), draw(st.integers(2, 9) | st.just(300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    true = rng.integers(0, 4, (rows, width)) if draw(st.booleans()) else rng.random((rows, width)).round(1)
    score = rng.integers(0, 4 + width // 9, (rows, width)).astype(
        draw(st.sampled_from([np.int64, np.float32, np.float64]))
    )
    return true, score, rng.random(rows) + 0.1 if draw(st.booleans()) else None


@given(
    matrices(), st.sampled_from([None, 1, 2, 5, 100, 250, 300]), st.sampled_from([2, 2.0, 10, 3, 1.5, np.e])
)
def test_random_matrices_with_heavy_ties(given_, k, log_base):
    true, score, weight = given_
    words = {"k": k, "log_base": log_base, "sample_weight": weight}
    assert fn.dcg_score(true - 1, score, **words) == pytest.approx(  # which takes negative grades
        sklearn_metrics.dcg_score(true - 1, score, **words), rel=1e-12, abs=1e-15
    )
    for ours, theirs in PAIRS:
        assert ours(true, score, k=k, sample_weight=weight) == pytest.approx(
            theirs(true, score, k=k, sample_weight=weight), rel=1e-12, abs=1e-15
        )


@given(matrices(), st.sampled_from([None, 1, 3]), st.sampled_from([1, 40]))
def test_ignoring_ties_sorts_as_scikit_learn_on_this_machine(given_, k, times):
    """NumPy's sort is not stable, and differs from processor to processor in longer rows."""
    true, score, weight = given_
    true, score = np.tile(true, times), np.tile(score, times)
    words = {"k": k, "sample_weight": weight, "ignore_ties": True}
    for kind in (score.dtype, np.float16, np.uint8, np.bool_):
        for ours, theirs in PAIRS:
            assert ours(true, score.astype(kind), **words) == pytest.approx(
                theirs(true, score.astype(kind), **words), rel=1e-12, abs=1e-15
            )


TRUE, SCORE = np.array([[1, 0, 2], [0, 1, 0], [2, 0, 1]]), np.array([[5, 6, 1], [3, 3, 9], [1, 2, 4]]) / 10
FRAMES = ("Int64", "Float64", "boolean", "int64[pyarrow]")


@pytest.mark.parametrize(("ours", "theirs"), TIMES)
def test_what_scikit_learn_takes_is_taken(ours, theirs):
    pandas = pytest.importorskip("pandas")
    matrices = [(TRUE.astype(kind), SCORE) for kind in (object, np.float16, np.bool_)]
    matrices += [(TRUE, SCORE.astype(kind)) for kind in (object, np.float16)]
    matrices += [
        (pandas.DataFrame(TRUE > 0 if kind == "boolean" else TRUE).astype(kind), SCORE) for kind in FRAMES
    ]
    matrices += [
        (kind(TRUE.tolist()), kind(SCORE.tolist()))
        for kind in (list, np.asfortranarray, pandas.DataFrame, lambda rows: tuple(map(tuple, rows)))
    ]
    matrices += [
        (TRUE, pandas.DataFrame(SCORE).astype("Float64")),
        (TRUE.astype(str).astype(object), SCORE),
        ([[0, 0], [1, 0]], [[1, 2], [2, 1]]),  # a row without a relevant label counts as 0
        ([[1, 0]], [[Fraction(1, 3), Decimal(2)]]),
    ]
    for true, score in matrices:
        found = ours(true, score)
        assert isinstance(found, float) and found == pytest.approx(theirs(true, score), rel=1e-12)
    for k in (True, np.int8(2), 10**30, 10**200):
        assert ours(TRUE, SCORE, k=k) == pytest.approx(theirs(TRUE, SCORE, k=k), rel=1e-12)
    for weight in (
        np.array([1, 2, 3], object),
        np.array([1, 2, 3], np.longdouble),
        pandas.Series([1, 2, 3], dtype="Int64"),
        [True, False, True],
        [-1, 2, 3],
        range(1, 4),
        [10**30, 1, 1],
    ):
        wanted = theirs(TRUE, SCORE, sample_weight=weight)
        assert ours(TRUE, SCORE, sample_weight=weight) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("ours", "theirs"), TIMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_gives_nan(ours, theirs, bad):
    for weight in ([1, bad, 1], [bad] * 3, np.array([1, bad, 2], object), [bad, -bad, 1]):
        assert np.isnan(theirs(TRUE, SCORE, sample_weight=weight))
        assert np.isnan(ours(TRUE, SCORE, sample_weight=weight))


def test_unsigned_scores_are_not_negated():
    """scikit-learn 1.9.1 negates them and gets 0.6697."""
    assert fn.ndcg_score([[0, 1, 2]], np.array([[0, 1, 2]], np.uint8)) == 1.0
    assert fn.ndcg_score([[0, 1]], np.array([[-128, 127]], np.int8)) == 1.0


# ---- errors ----


@pytest.mark.parametrize(
    ("true", "score", "words"),
    [
        ([[1]], [[1]], {}),
        ([[-1, 2]], [[1, 2]], {}),
        ([[1, 2]], [[1, 2], [1, 2]], {}),
        ([[1, 2]], [[1, 2, 3]], {}),
        ([[1, np.nan]], [[1, 2]], {}),
        ([[1, 2]], [[1, np.nan]], {}),
        ([[1, 2]], [[1, np.inf]], {}),
        ([[1, 2]], [[1, 2]], {"k": 0}),
        ([[1, 2]], [[1, 2]], {"k": -1}),
        ([[1, 2]], [[1, 2]], {"k": 1.5}),
        ([[1, 2]], [[1, 2]], {"k": "1"}),
        ([[1, 2]], [[1, 2]], {"sample_weight": [1, 2]}),
        ([[1, 2], [1, 2]], [[1, 2], [1, 2]], {"sample_weight": [0, 0]}),
        ([1, 2], [1, 2], {}),
        ([[1, 0]], [["a", "b"]], {}),
        (np.empty((0, 3)), np.empty((0, 3)), {}),
        ([[1, 2]], np.array([[True, False]]), {}),
        ([[Decimal(1), Decimal(0)]], [[1, 2]], {}),
        ([[1, None]], [[1, 2]], {}),
        (np.array([[1, None]], object), [[1, 2]], {}),
        ("ab", [[1, 2]], {}),
        (None, None, {}),
        *(([[1, 2]], [[1, 2]], {"k": k}) for k in (False, np.True_, 2.0, np.array(2), Fraction(2))),
        *(([[1, 2]], [[1, 2]], {"ignore_ties": each}) for each in (1, 0, None, "yes", [])),
        *(
            ([[1, 2]], [[1, 2]], {"sample_weight": weight})
            for weight in (1.0, np.array(1.0), "a", b"a", ["1"], [None], [[1]], {1}, [[1, 2]])
        ),
    ],
    ids=str,
)
def test_what_scikit_learn_refuses_is_refused(true, score, words):
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)) as theirs:
        sklearn_metrics.ndcg_score(true, score, **words)
    with pytest.raises((fn.FastndcgError, ZeroDivisionError)) as ours:
        fn.ndcg_score(true, score, **words)
    assert str(ours.value)
    assert isinstance(ours.value, ZeroDivisionError) is isinstance(theirs.value, ZeroDivisionError)


def test_the_words_of_scikit_learn_s_errors():
    with pytest.raises(
        ValueError,
        match="Computing NDCG is only meaningful when there is more than 1 document. Got 1 instead.",
    ):
        fn.ndcg_score([[1]], [[1]])
    with pytest.raises(ValueError, match="ndcg_score should not be used on negative y_true values"):
        fn.ndcg_score([[-1, 1]], [[1, 2]])
    for function in (fn.dcg_score, sklearn_metrics.dcg_score):
        with pytest.raises(ValueError, match="formats are supported. Got binary instead"):
            function([[1]], [[1]])


@pytest.mark.parametrize("log_base", [0, -2, "2", np.nan])
def test_a_base_that_has_no_logarithm(log_base):
    with pytest.raises(fn.FastndcgError):
        fn.dcg_score([[1, 0]], [[1, 2]], log_base=log_base)
