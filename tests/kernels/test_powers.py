"""gain="exp2": one definition of 2^grade, whose bits are the same in Python, in kernels and on every processor."""

import hashlib
import math
from decimal import Decimal, localcontext
from functools import partial

import numba
import numpy as np
import pytest

import fastndcg as fn
from fastndcg.compiled import powers as compiled_powers
from fastndcg.kernels import powers

pytestmark = pytest.mark.pure


def grades():
    """Of every size that has a power; tiny ones; and those beside the steps of the table."""
    random = np.random.default_rng(20)
    steps = np.arange(0, 53, 1 / 256)
    return np.concatenate(
        [
            np.round(random.random(3000) * 5, 2),
            random.random(3000) * 53,
            -random.random(1000) * 54,
            random.random(500) * 10.0 ** -random.integers(0, 320, 500),
            steps[::17],
            np.nextafter(steps[::17], 60),
            np.nextafter(steps[::17], -60),
        ]
    )


def test_a_power_is_within_its_bound():
    with localcontext() as context:
        context.prec = 50
        for grade in grades().tolist():
            true = Decimal(2) ** Decimal(grade)
            error = abs(Decimal(float(powers.exp2(grade))) - true) / Decimal(math.ulp(float(true)))
            assert error < Decimal("0.50002"), (grade, error)


def test_powers_of_whole_grades_are_exact():
    assert [powers.exp2(float(grade)) for grade in range(-54, 54)] == [2.0**grade for grade in range(-54, 54)]
    assert [powers.exp2(grade) - 1.0 for grade in (-1e300, -1e6, -60.5, -54.1)] == [-1.0] * 4


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compiled_powers_have_the_bits_of_plain_ones():
    exp2, gain_by = compiled_powers.exp2, compiled_powers.gain_by

    @numba.njit(error_model="numpy")
    def compiled(grades, out):
        for i in range(grades.shape[0]):
            out[0, i] = exp2(grades[i])
            for kind in range(3):
                out[1 + kind, i] = gain_by(kind, grades[i])

    given = np.concatenate([grades(), [-1e300, -54.5, 53.0]])
    out = np.empty((4, len(given)))
    compiled(given, out)
    plain = [powers.exp2, *(partial(powers.gain_by, kind) for kind in range(3))]
    assert out.tolist() == [[float(of(grade)) for grade in given.tolist()] for of in plain]


def fractional():
    random = np.random.default_rng(0)
    grades = np.floor(random.random(4000) * 401) / 100
    return fn.Rankings.from_dense(grades.reshape(-1, 20), random.random((200, 20)), propensity=np.ones(4000))


def test_the_bits_of_fractional_grades():
    """The digest is of plain Python and of compiled code, on processors with FMA and without."""
    measures = [
        "nDCG(gain='exp2', discount='reciprocal')@10",
        "DCG(gain='exp2', discount='reciprocal')",
        "ERR@5",
    ]
    values = fn.evaluate(fractional(), measures).values
    assert hashlib.sha256(values.tobytes()).hexdigest()[:16] == "bfc7a8430fc5d4c4"


@pytest.mark.parametrize("gain", ["linear", "exp2", "binary", math.sqrt])
@pytest.mark.parametrize("discount", ["log2", "jarvelin", "reciprocal", "ln", 1.5])
def test_propensities_of_1_change_no_bit(gain, discount):
    plain = fn.DCG(gain=gain, discount=discount)
    measures = [plain @ 10, plain, fn.CG(gain=gain) @ 5]
    got = fn.evaluate(fractional(), measures).values
    assert (
        got.tolist() == fn.evaluate(fractional(), [measure(ips=True) for measure in measures]).values.tolist()
    )


def test_gains_that_python_computes_have_the_same_bits():
    """Of an ideal that is built, and of unjudged documents."""
    rankings = fractional()
    of_kernel = fn.evaluate(rankings, "IDCG(gain='exp2')").values
    assert (
        of_kernel.tolist() == fn.evaluate(rankings, "IDCG(gain='exp2', ideal='judged_uncut')").values.tolist()
    )
    unjudged = fn.Rankings.from_lists([[0.37, 2.71]], [[1, 2]], is_judged=[False, True])
    judged = fn.Rankings.from_lists([[0.37, 2.71]], [[1, 2]])
    assert (
        fn.evaluate(unjudged, "DCG(gain='exp2', unjudged=0.37)").values
        == fn.evaluate(judged, "DCG(gain='exp2')").values
    )
