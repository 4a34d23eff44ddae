"""How each established tool computes each of its measures, as data: `DECLARED`.

The declarations stand in four tables: `tools_of_evaluation`, `tools_of_training`, `tools_of_search`,
`tools_of_recommendation`. To add a measure that a tool has:

1. Add a row to `others` of the tool's `Rule`, as in `has("AP", "map@k", denominator="cutoff", empty=1.0)`:
   our name, the tool's, and parameters that are not at our defaults.
2. Where the measure is evaluated otherwise than the tool's nDCG, name the fields of `Rule` too, such as ties,
   missing or weights. A tool without nDCG has `of=None`.
3. What cannot be said so is a parameter, or a value of a field, that is missing: add it.
4. Add how to call the tool to `LIVE` of tests/measured.py: the test compares it on random data.
5. `python -m scripts.pages` writes docs/conventions.md.
"""

from __future__ import annotations

from fastndcg.errors import ConventionError, InputTypeError, suggest
from fastndcg.measures.declarations import Rule
from fastndcg.measures.tools_of_evaluation import EVALUATION, PAPERS
from fastndcg.measures.tools_of_recommendation import RECOMMENDATION, SPARK
from fastndcg.measures.tools_of_search import SEARCH
from fastndcg.measures.tools_of_training import TRAINING

DECLARED: tuple[Rule, ...] = (*EVALUATION, *TRAINING, SPARK, *SEARCH, *RECOMMENDATION, *PAPERS)

REFUSED = {
    "sklearn_ignore_ties": (
        "ignore_ties=True uses NumPy's default sort, which is unstable: "
        'the order of ties depends on the processor. Use "sklearn", which averages over ties, '
        'or ties="input".'
    ),
    "tf_ranking_draw": (
        "TF-Ranking shuffles ties without a seed, so each run differs. "
        '"tf_ranking" is the exact expected value.'
    ),
    "torch_sort": (
        "torch.sort and torch.topk do not define the order of ties in lists of more than 16. "
        '"allrank" refuses data where that matters; ties="average" is the expected value.'
    ),
    "spark_graded": (
        "the 3-tuple form of Spark's ndcgAt uses the labels in their given order as the ideal ranking, "
        "so its value depends on that order and can exceed 1. "
        'Use "burges2005" for exponential gain, or "spark" for the binary form.'
    ),
    "trec_eval_close_gains": (
        "trec_eval casts differences of gains to int, so gains that differ by less than 1 end up in any "
        'order. Use "trec_eval".'
    ),
    "cwl_eval": (
        "the NDCG-k of cwl_eval is a scaled DCG that is not divided by an ideal; evaluate DCG instead."
    ),
    "elasticsearch_unknown_doc_rating": (
        'unjudged documents get a rating that the ideal ranking does not have. Use "elasticsearch".'
    ),
}

_RULES = {rule.name: rule for rule in DECLARED}


def rule_named(name: str) -> Rule:
    """Raise `ConventionError`, with the reason, for a tool that is unknown or cannot be reproduced."""
    if name in _RULES:
        return _RULES[name]
    if name in REFUSED:
        raise ConventionError(f'"{name}" cannot be reproduced: {REFUSED[name]}')
    raise ConventionError(
        f'no convention is called "{name}"; there are: '
        f"{', '.join(_RULES)}.{suggest(str(name), [*_RULES, *REFUSED])}"
    )


def rule_on(rule: Rule, measure: str, keyword: str = "convention", *, cut: bool | None = None) -> Rule:
    """Return the rule for one measure of a tool. Raise `ConventionError` if the tool lacks it."""
    found = rule.find(measure, cut=cut)
    if found is not None:
        return found
    having = [each.name for each in DECLARED if each.find(measure, cut=cut)]
    if not having:
        raise ConventionError(
            f"{measure} has no convention: no tool that is known here has it. "
            f"Give {measure} without {keyword}=."
        )
    at = "" if measure not in rule.names_of_measures else " with a cutoff" if cut else " without a cutoff"
    raise ConventionError(
        f"{rule.name} has no {measure}{at}; it has: {', '.join(rule.names_of_measures)}. "
        f"Tools that have {measure}: {', '.join(having)}."
    )


def rule_of(convention: object) -> Rule:
    """Return the rule with this name, or the rule itself."""
    if isinstance(convention, Rule):
        return convention
    if isinstance(convention, str):
        return rule_named(convention)
    raise InputTypeError(
        f"convention is a {type(convention).__name__}; wanted a name, as in convention='trec_eval', "
        "or a Convention"
    )
