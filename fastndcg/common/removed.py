"""Names that fastndcg no longer has, and what replaces each: a recipe in docs/recipes.md, or other steps."""

RECIPES = {
    "catalogue": "Catalogue coverage, popularity and novelty",
    "check_judges": "Agreement of judges",
    "cohen_kappa": "Agreement of judges",
    "correct_sampled": "Sampled negatives are another measure",
    "drift": "Drift between two times",
    "fleiss_kappa": "Agreement of judges",
    "judge_next": "What to judge next",
    "judges": "Agreement of judges",
    "krippendorff_alpha": "Agreement of judges",
    "online_agreement": "Offline and online experiments",
    "prediction_powered": "Few labels of people, many of a model",
    "rank_agreement": "Agreement of rankings",
    "sample_queries": "Which queries to judge",
}
_JOINED = (
    "join the run with its judgments once, store the grades as a column of a Parquet file, "
    "and give that to scan_parquet; read_qrels_run reads both whole"
)
STEPS = {"scan_qrels_run": _JOINED, "RunStream": _JOINED}


def advice(name: str) -> str:
    """Return what replaces a removed function or command, as the end of an error; "" for other names.

    >>> advice("judge-next")
    '. It was removed; use the recipe "What to judge next" in docs/recipes.md.'
    """
    if name in STEPS:
        return f". It was removed. Instead of {name}: {STEPS[name]}"
    recipe = RECIPES.get(name.replace("-", "_"))
    return f'. It was removed; use the recipe "{recipe}" in docs/recipes.md.' if recipe else ""
