"""torchmetrics: measures of rankings as a `Metric`, over batches, padded batches and processes.

metric = RankingMetric("nDCG@10")
for batch in loader:
    metric.update(model(batch), batch.grades, indexes=batch.queries)
metric.compute()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torchmetrics import Metric

from fastndcg.adapters.boosters import Meter
from fastndcg.errors import InputError
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.measures.by_tool import Convention
    from fastndcg.scores.scores import Scores


class RankingMetric(Metric):
    """Means of measures over the queries of all batches and processes.

    Parameters
    ----------
    measures, like, threads
        As `measures`, `convention` and `threads` of `fastndcg.evaluate`. With like="torchmetrics" the values
        are those of its `RetrievalNormalizedDCG`.
    options
        Keywords of `torchmetrics.Metric`, such as `dist_sync_on_step`.

    Notes
    -----
    Scores keep their precision, and are evaluated on the CPU when `compute` is called. The documents of a
    query may be in several batches and processes; `indexes` joins them.

    Examples
    --------
    >>> metric = RankingMetric("nDCG@2")
    >>> preds, target = torch.tensor([0.9, 0.8, 0.7, 0.2, 0.6]), torch.tensor([3, 0, 2, 1, 0])
    >>> metric.update(preds, target, indexes=torch.tensor([0, 0, 0, 1, 1]))
    >>> metric.compute()
    tensor(0.6674, dtype=torch.float64)
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    preds: list[torch.Tensor]
    target: list[torch.Tensor]
    indexes: list[torch.Tensor]

    def __init__(
        self,
        measures: Any,
        *,
        like: str | Convention | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._meter = Meter(measures, like, threads)
        self._rows = 0  # rows of padded batches so far, from which their queries are numbered
        for name in ("preds", "target", "indexes"):
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def update(
        self,
        preds: torch.Tensor,
        target: torch.Tensor,
        indexes: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> None:
        """Add a batch.

        `preds` and `target` are scores and grades, (n_docs,), or (n_queries, n_docs_per_query), where each
        row is a query unless `indexes` has the query of each document, integers of the same shape. `mask`,
        bool of that shape, is False at the padding of a batch. Raises `InputError` for shapes that differ,
        and for a vector without `indexes`.
        """
        if indexes is None:
            if preds.ndim != 2:
                raise InputError(
                    f"preds has shape {tuple(preds.shape)} and there are no indexes; "
                    "give the query of each document, as indexes="
                )
            indexes = self._number_queries(preds)
        for name, values in (("target", target), ("indexes", indexes), ("mask", mask)):
            if values is not None and values.shape != preds.shape:
                shapes = f"{name} has shape {tuple(values.shape)} and preds {tuple(preds.shape)}"
                raise InputError(f"{shapes}; give both for each document")
        kept = slice(None) if mask is None else mask.bool().flatten()
        self.preds.append(preds.detach().flatten()[kept])
        self.target.append(target.detach().flatten()[kept])
        self.indexes.append(indexes.detach().flatten()[kept].long())

    def compute(self) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return the mean of one measure, or a dict of means by notation; NaN without queries."""
        means = {
            str(measure): torch.tensor(mean, dtype=torch.float64)
            for measure, mean in self.per_query().mean().items()
        }
        return next(iter(means.values())) if len(means) == 1 else means

    def per_query(self) -> Scores:
        """Return the values of each query of this process; after a sync, of all processes."""
        parts = (self._together(name) for name in ("indexes", "target", "preds"))
        return self._meter.evaluate_rankings(Rankings.from_query_ids(*parts))

    def reset(self) -> None:
        super().reset()
        self._rows = 0

    def _number_queries(self, preds: torch.Tensor) -> torch.Tensor:
        """Number the rows as queries, with numbers that no other process uses."""
        known = torch.distributed.is_available() and torch.distributed.is_initialized()
        rank, world = (torch.distributed.get_rank(), torch.distributed.get_world_size()) if known else (0, 1)
        rows = torch.arange(self._rows, self._rows + len(preds), device=preds.device)
        self._rows += len(preds)
        return (rows * world + rank)[:, None].expand(preds.shape)

    def _together(self, name: str) -> Any:
        values = getattr(self, name)
        if isinstance(values, torch.Tensor):  # after a sync
            return values
        return torch.cat(values) if values else np.empty(0, np.int64)
