"""Names that fastndcg no longer has, and the recipe in docs/recipes.md that replaces each."""

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


def advice(name: str) -> str:
    """What to use instead of a removed function or command, as an end of an error; "" for other names.

    >>> advice("judge-next")
    '. It was removed; use the recipe "What to judge next" in docs/recipes.md.'
    """
    recipe = RECIPES.get(name.replace("-", "_"))
    return f'. It was removed; use the recipe "{recipe}" in docs/recipes.md.' if recipe else ""
