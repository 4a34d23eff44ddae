"""What search engines compute, as tables: see `tools`."""

from __future__ import annotations

from fastndcg.measures.rules import Rounding, Rule

SEARCH: tuple[Rule, ...] = (
    Rule(
        "elasticsearch", gain="exp2", ideal="judged_returned", ties="input", missing="value",
        unjudged="value",
        tool="Elasticsearch, read", source="index/rankeval/DiscountedCumulativeGain.java",
        caveats=(
            ("the ideal ranking has as many documents as were returned, so a short list is compared with "
            "a short ideal"),
            "unknown_doc_rating is not reproduced: it adds gain that the ideal ranking does not have",
        ),
    ),
    Rule(
        "opensearch", gain="exp2", ties="input", rounding=Rounding(2, "stored"), tolerance=1e-9,
        tool="OpenSearch search-relevance, read", source="metrics/calculator/Evaluation.java",
        caveats=("values are stored with 2 decimals", "queries without results store nothing"),
    ),
    Rule(
        "quepid", gain="exp2", ideal="judged_uncut", ties="input", missing="value",
        tool="Quepid nDCG@10, read", source="db/scorers/ndcg@10.js",
        caveats=(("the ideal ranking has no cutoff, so a perfect list stays below 1 if more than k documents "
            "are rated"),),
    ),
    Rule(
        "quepid_cut", gain="exp2", ties="input", missing="value", tool="Quepid NDCG_CUT@10, read",
        source="db/scorers/ndcg_cut@10.js"
    ),
)  # fmt: skip
