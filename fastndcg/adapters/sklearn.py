"""scikit-learn: a scorer for cross-validation and searches, which pass it the queries of each fold.

sklearn.set_config(enable_metadata_routing=True)
cross_val_score(
    XGBRanker().set_fit_request(qid=True), X, y, params={"qid": qid, "groups": qid},
    cv=GroupKFold(5), scoring=fnk.scorer("nDCG@10"),
)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sklearn
from sklearn.metrics import make_scorer

from fastndcg.adapters.boosters import Meter
from fastndcg.adapters.scoring import one_measure
from fastndcg.errors import InputError
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.measures.conventions import Convention


def scorer(measures: Any, *, like: str | Convention | None = None, threads: int | None = None) -> Any:
    """Make a scorer for `cross_val_score`, `GridSearchCV` and other functions with `scoring`.

    Parameters
    ----------
    measures, like, threads
        As `measures`, `convention` and `threads` of `fastndcg.evaluate`; a single measure. For several, pass
        a dict of scorers as `scoring`.

    Returns
    -------
    scorer
        It requests `qid`, the query of each row, (n_docs,), as whole numbers or strings in any order, scores
        the result of `predict`, and returns the mean over queries.

    Raises `MeasureError` for a measure that does not exist, and for several. While scoring, `InputError`
    without `qid`, as metadata routing is off, and for all that `fastndcg.evaluate` refuses.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> features, label, qid = [[9], [8], [7], [2], [6]], [3, 0, 2, 1, 0], ["a", "a", "a", "b", "b"]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer("nDCG@2")(LinearRegression().fit(features, label), features, label, qid=qid)
    0.6674239213027962
    """
    made = make_scorer(_Score(one_measure(measures), like, threads))
    with sklearn.config_context(enable_metadata_routing=True):
        return made.set_score_request(qid=True)


class _Score(Meter):
    def __call__(self, y_true: Any, y_pred: Any, qid: Any = None) -> float:
        if qid is None:
            raise InputError(
                f"the scorer of {self.__name__} got no qid. "
                "Call sklearn.set_config(enable_metadata_routing=True), and give the query of each row, "
                'as in cross_val_score(..., params={"qid": qid})'
            )
        return next(iter(self._evaluate(Rankings.from_query_ids(qid, y_true, y_pred)).mean().values()))
