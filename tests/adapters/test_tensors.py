"""Tensors of PyTorch and JAX wherever arrays are taken."""

import engines
import numpy as np
import pytest
from test_recipes import GRADES, INDEXES, SCORED, SIZES

import fastndcg as fn
from fastndcg.errors import InputError

engines.need("torch", extra="rivals")
pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]  # what the hosts say of themselves

# ten seconds to import, which no other worker needs to wait for
torch = engines.imported_later("torch")

WANTED = fn.evaluate(fn.Rankings.from_query_ids(INDEXES, GRADES, SCORED), ["nDCG@10", "RR"]).mean()


# ---- tensors ----


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_tensors_of_pytorch(dtype):
    """Those that want a gradient too; scores here are exact in every dtype."""
    scores = torch.tensor(SCORED).to(getattr(torch, dtype)).requires_grad_()
    found = fn.ndcg(torch.tensor(GRADES), scores, query_ids=torch.tensor(INDEXES), k=10)
    assert found.mean() == pytest.approx(WANTED["nDCG@10"], rel=1e-14)
    rankings = fn.Rankings.from_groups(torch.tensor(SIZES), torch.tensor(GRADES), scores)
    assert rankings.scores.tolist() == SCORED.tolist()
    assert rankings.with_scores(-scores).scores.tolist() == (-SCORED).tolist()


def test_a_tensor_is_not_copied():
    scores = torch.tensor(SCORED)
    assert np.shares_memory(fn.Rankings.from_groups(SIZES, GRADES, scores).scores, scores.numpy())


def test_arrays_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    for dtype in (jax.numpy.float32, jax.numpy.bfloat16):
        scores = jax.numpy.asarray(SCORED).astype(dtype)
        assert (
            fn.Rankings.from_groups(SIZES, jax.numpy.asarray(GRADES), scores).scores.tolist()
            == SCORED.tolist()
        )


class OnDevice:
    """What CuPy's arrays show."""

    __cuda_array_interface__ = __dlpack__ = None

    def get(self):
        return SCORED


class OnlyDLPack:
    def __dlpack__(self, **options):
        return np.array(SCORED).__dlpack__(**options)

    def __dlpack_device__(self):
        return np.array(SCORED).__dlpack_device__()


@pytest.mark.parametrize("values", [OnDevice(), OnlyDLPack()])
def test_protocols(values):
    assert fn.Rankings.from_groups(SIZES, GRADES, values).scores.tolist() == SCORED.tolist()


def padded():
    """What stands in the padding is nothing that could be evaluated."""
    mask = np.arange(SIZES.max()) < SIZES[:, None]
    true, score = np.full(mask.shape, -9), np.full(mask.shape, np.nan, np.float32)
    true[mask], score[mask] = GRADES, SCORED
    return true, score, mask


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_padded_batches(kind):
    to = torch.tensor if kind == "torch" else np.asarray
    true, score, mask = padded()
    found = fn.Rankings.from_dense(to(true), to(score), mask=to(mask))
    assert found.lengths.tolist() == SIZES.tolist()
    assert found.scores.tolist() == SCORED.tolist()
    with pytest.raises(
        InputError, match=r"mask has shape \(60,\) and dtype bool; expected True and False in the shape"
    ):
        fn.Rankings.from_dense(true, score, mask=mask[:, 0])
    with pytest.raises(InputError, match="dtype int64; expected True and False"):
        fn.Rankings.from_dense(true, score, mask=mask.astype(np.int64))
