"""AP whose tied documents stand together: against the definition in plain Python, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn

pytestmark = pytest.mark.pure


def by_definition(rows, relevant):
    """1/R * sum over relevant documents of the precision of all documents whose score is at least theirs."""
    total = 0.0
    for score, is_relevant in rows:
        found = [other for at, other in rows if at >= score]
        total += is_relevant * sum(found) / len(found)
    return total / relevant if relevant else 0.0


@given(st.integers(0, 2**32), st.sampled_from([{}, {"judged_only": True}, {"unjudged": 2.0}, {"rel": 2.0}]))
def test_the_definition(seed, words):
    random, rel = np.random.default_rng(seed), words.get("rel", 1)
    lengths = random.integers(0, 12, 8)
    grades = [random.integers(0, 4, n) for n in lengths]
    scores = [random.integers(0, 5, n).astype(np.uint8) for n in lengths]
    flags = [random.random(n) < 0.7 for n in lengths]
    pools = [np.append(own[flag], random.integers(0, 3, 2)) for own, flag in zip(grades, flags, strict=True)]
    rankings = fn.Rankings.from_lists(
        grades, scores, is_judged=np.concatenate(flags),
        judged=(np.cumsum([0, *map(len, pools)]), np.concatenate(pools)),
    )  # fmt: skip
    found = fn.evaluate(rankings, fn.AP(ties="block", **words)).values[0]
    for query, value in enumerate(found.tolist()):
        assumed = float(words.get("unjudged", 0) >= rel)
        rows = [
            (float(score), float(grade >= rel) if judged else assumed)
            for score, grade, judged in zip(scores[query], grades[query], flags[query], strict=True)
            if judged or not words.get("judged_only")
        ]
        relevant = int((pools[query] >= rel).sum()) + int(assumed * (~flags[query]).sum())
        assert value == pytest.approx(by_definition(rows, relevant), abs=1e-12)


def test_without_ties_it_is_ap_and_the_order_of_rows_changes_no_bit():
    random = np.random.default_rng(2)
    grades, scores = random.integers(0, 2, 40), random.permutation(40)
    rankings = fn.Rankings.from_lists([grades], [scores])
    assert fn.evaluate(rankings, "AP(ties='block')").values == pytest.approx(
        fn.evaluate(rankings, "AP").values
    )
    tied, order = scores // 4, random.permutation(40)
    both = [fn.Rankings.from_lists([grades[rows]], [tied[rows]]) for rows in (slice(None), order)]
    first, other = (fn.evaluate(each, "AP(ties='block')").values for each in both)
    assert first == other
    perfect = fn.Rankings.from_lists([[1, 1, 1, 0]], [[2, 2, 1, 0]])
    assert fn.evaluate(perfect, "AP(ties='block')").values == 1.0
    assert fn.evaluate(
        fn.Rankings.from_lists([[], [0, 0]]), "AP(ties='block', empty=0.5)"
    ).values.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(
    "notation",
    ["AP(ties='block')@3", "AP(ties='block', denominator='hits')", "AP(ties='block', score_above=0)"],
)
def test_what_has_no_whole_groups_is_refused(notation):
    rankings = fn.Rankings.from_lists([[1, 0]], [[1, 1]])
    with pytest.raises(fn.MeasureError, match="counts a tied group as a whole.*Remove them"):
        fn.evaluate(rankings, notation)
    with pytest.raises(fn.MeasureError, match="ties is one of 'average', 'input'"):
        fn.P(ties="block")
    with pytest.raises(
        fn.MeasureError, match="sklearn has no AP with a cutoff; it has: .* Tools that have AP: trec_eval"
    ):
        fn.evaluate(rankings, "AP@3", convention="sklearn")
