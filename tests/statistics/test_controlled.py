"""Means that a control makes more precise, which `compare_clicks` uses: against the oracle, and the PPI++ authors' package."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.statistics.paired import controlled

VALUES = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)), min_size=3, max_size=9)
MORE = st.lists(st.floats(0, 1), min_size=2, max_size=9)


@given(VALUES, MORE)
def test_oracle(pairs, more):
    y, f = (np.array(side) for side in zip(*pairs, strict=True))
    found = controlled(y, f, np.array(more))
    mean, weight, error = oracle.prediction_powered(y.tolist(), f.tolist(), more)
    assert found.weight == pytest.approx(weight, rel=1e-9, abs=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    if found.weight:
        assert found.error == pytest.approx(error, rel=1e-6, abs=1e-9)
    assert 0 <= found.weight <= 1
    low, high = found.interval(0.95)
    assert low <= found.mean <= high


@given(VALUES, MORE, st.sampled_from([0.5, 4.0]), st.integers(-3, 3))
def test_it_moves_and_grows_with_its_values(pairs, more, scale, shift):
    """A judge that is too generous by a constant changes nothing; another unit scales mean and interval."""
    y, f = (np.array(side) for side in zip(*pairs, strict=True))
    first = controlled(y, f, np.array(more))
    moved = controlled(y, f + shift, np.array(more) + shift)
    assert moved.mean == pytest.approx(first.mean, abs=1e-6) and moved.error == pytest.approx(
        first.error, rel=1e-5, abs=1e-6
    )
    larger = controlled(y * scale, f * scale, np.array(more) * scale)
    assert larger.mean == pytest.approx(first.mean * scale, rel=1e-9, abs=1e-12)
    assert larger.error == pytest.approx(first.error * scale, rel=1e-9, abs=1e-12)
    order = np.random.default_rng(0).permutation(len(y))
    assert controlled(y[order], f[order], np.array(more)[::-1]).mean == pytest.approx(first.mean, abs=1e-12)


def test_weight_and_mean_are_those_of_the_authors():
    """Numbers of ppi_py 0.2.3: `ppi_mean_pointestimate` and `ppi_mean_ci` of the same draws."""
    rng = np.random.default_rng(0)
    y = rng.random(60)
    f = np.clip(y + 0.2 * rng.normal(size=60), 0, 1) + 0.2
    g = rng.random(500) + 0.2
    found = controlled(y, f, g)
    assert found.mean == pytest.approx(0.50019321, abs=5e-9)
    low, high = found.interval(0.95)
    assert low < 0.4521928 and high > 0.54819363, "theirs is the narrower, and misses more"
    assert low == pytest.approx(0.4521928, abs=0.002) and high == pytest.approx(0.54819363, abs=0.002)
