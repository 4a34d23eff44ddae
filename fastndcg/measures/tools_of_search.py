"""What search engines compute, as tables: see `tools`."""

from __future__ import annotations

from fastndcg.measures.declarations import Rounding, Rule, has, have

SEARCH: tuple[Rule, ...] = (
    Rule(
        "elasticsearch", gain="exp2", ideal="judged_returned", ties="input", missing="value",
        unjudged="value",
        tool="Elasticsearch, read", source="index/rankeval/DiscountedCumulativeGain.java",
        others=(
            has("P", "precision", denominator="returned"), *have("R recall, RR mean_reciprocal_rank"),
            has("ERR", "expected_reciprocal_rank",
                caveats=("max_rel is its maximum_relevance, which it has no default for",)),
        ),
        caveats=(
            ("the ideal ranking has as many documents as were returned, so a short list is compared with "
            "a short ideal"),
            "unknown_doc_rating is not reproduced: it adds gain that the ideal ranking does not have",
        ),
    ),
    Rule(
        "opensearch", gain="exp2", ties="input", rounding=Rounding(2, "stored"), tolerance=1e-9,
        tool="OpenSearch search-relevance, read", source="metrics/calculator/Evaluation.java",
        others=(has("P", "Precision@k", denominator="returned"), has("AP", "MAP@k")),
        caveats=("values are stored with 2 decimals", "queries without results store nothing"),
    ),
    Rule(
        "quepid", gain="exp2", ideal="judged_uncut", ties="input", missing="value",
        tool="Quepid nDCG@10, read", source="db/scorers/ndcg@10.js",
        others=(
            has("P", "P@10", denominator="returned"), has("AP", "AP@10", empty="nan"), has("RR", "RR@10"),
            has("ERR", "ERR@10", caveats=("max_rel is the highest grade of its scale",)),
        ),
        caveats=(("the ideal ranking has no cutoff, so a perfect list stays below 1 if more than k documents "
            "are rated"),),
    ),
    Rule(
        "quepid_cut", gain="exp2", ties="input", missing="value", tool="Quepid NDCG_CUT@10, read",
        source="db/scorers/ndcg_cut@10.js"
    ),
    Rule(
        "rre", of=None, ties="input", missing="value",
        tool="Rated Ranking Evaluator, read",
        source="rre-core/src/main/java/io/sease/rre/core/domain/metrics",
        others=(
            has("P", "P@k", denominator="returned", rounding=Rounding(2, "stored")), *have("R Recall, AP AP"),
        ),
        caveats=("a query without relevant documents and without hits has the precision 1, here 0",
            ("its RR@k is of the hit with the greatest gain among the first k, "
            "RR(of='best') of the greatest of the whole list")),
    ),
)  # fmt: skip
