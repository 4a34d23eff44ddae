"""Turn the names that people and other tools use for measures into notation, in any case.

`ndcg@10`, `Recall@10` and `map_cut.100` become `nDCG@10`, `R@10` and `AP@100`, which `measures` parses.
"""

from __future__ import annotations

import re

from fastndcg.measures.definitions import DEFINITIONS

# other tools' names for a notation, compared without case and separators; names of measures need no entry
_NAMES = {
    "nDCG": "NormalizedDCG NormalisedDCG ndcg_cut ndcg_score",
    "nDCG(gain='exp2')": "ndcg_burges",
    "DCG": "dcg_score",
    "DCG(gain='exp2')": "dcg_burges",
    "AP": "MAP map_cut AveragePrecision MeanAveragePrecision",
    "RR": "MRR recip_rank ReciprocalRank MeanReciprocalRank",
    "P": "Precision Prec",
    "R": "Recall",
    "F": "F1 F1_score F_measure",
    "F(beta=2)": "F2",
    "Rprec": "R-Precision",
    "Success": "HitRate HR Hit HitRatio",
    "ERR": "ExpectedReciprocalRank",
    "RBP": "RankBiasedPrecision",
    "Bpref": "BinaryPreference",
    "AUC": "ROC_AUC AUROC roc_auc_score",
    "IPrec": "iprec_at_recall",
    "NumRet(rel=1)": "num_rel_ret",
    "P(denominator='n_relevant')": "rel_P relative_P",
    "R(denominator='cutoff')": "R_cap CalibratedRecall",
    "SetP(relative=True)": "set_rel_P set_relative_P",
    "SetR": "set_recall",
    "SetAP": "set_map",
    "alpha_DCG": "α_DCG",
    "alpha_nDCG": "α_nDCG",
    "StRecall": "strec SubtopicRecall",
}
ALIASES = {name: notation for notation, names in _NAMES.items() for name in names.split()}
# advice for names that are not measures here, or that mean several
_ANSWERS = {
    "accuracy top_k_accuracy topk_accuracy accuracy_score": (
        "accuracy@k of dense retrieval is Success@k, a hit among the first k ranks; ir_measures Accuracy is "
        "AUC, the share of pairs of documents in the right order. Ask for one of them by its name."
    ),
    "GAUC UAUC WUAUC group_AUC": (
        "GAUC is the mean of AUC weighted by the documents or relevant documents of a query: evaluate AUC, "
        'then scores.mean(weights="n_docs") or "n_relevant"; on the command line --weights.'
    ),
    "coverage catalog_coverage catalogue_coverage item_coverage gini gini_index novelty diversity ILD "
    "intra_list_diversity serendipity popularity average_popularity ARP APLT personalization surprisal": (
        "It does not measure the relevance of a ranking; the recipe "
        '"Catalogue coverage, popularity and novelty" in docs/recipes.md computes it.'
    ),
    "spearman spearmanr kendall kendall_tau kendalltau ktau RBO pearson": (
        'It compares two rankings; the recipe "Agreement of rankings" in docs/recipes.md computes it.'
    ),
    "rmse mse mae log_loss logloss brier": (
        "It is a loss of single scores, not a measure of a ranking; scikit-learn computes it."
    ),
}
# separators before a cutoff other than @, as in map_cut.100, ndcg_at_10 and P_5
_TAILS = re.compile(r"(.*?)(?:_at)?[_.]([0-9][0-9.]*)", re.DOTALL)
_WORDS = re.compile(r"\s*([^\W\d]\w*(?:[- ][^\W\d]\w*)*)\s*(.*)", re.DOTALL)
_NO_RANKS = ("RBP",)  # in other tools a number after the name is p, as in rbp.95


def key(name: str) -> str:
    """Return a name without case and separators."""
    return re.sub(r"[\s_-]", "", name).casefold()


_BY_KEY = {key(alias): notation for alias, notation in ALIASES.items()}
_BY_KEY |= {key(name): name for name in DEFINITIONS}


_ANSWER_BY_KEY = {key(name): answer for names, answer in _ANSWERS.items() for name in names.split()}


def answer(name: str) -> str:
    """Return advice for an unknown measure name: what exists instead, or the three nearest names.

    >>> answer("hitrat")
    'Did you mean HitRate (Success here)? docs/measures.md and `fastndcg measures` list all names.'
    """
    tail = _TAILS.fullmatch(name)
    known = _ANSWER_BY_KEY.get(key(name)) or (_ANSWER_BY_KEY.get(key(tail[1])) if tail else None)
    return known or f"{nearest(name)} docs/measures.md and `fastndcg measures` list all names.".lstrip()


def canonical(element: str) -> str:
    """Return one element of a notation with the measure's own name, or unchanged if the name is unknown.

    >>> canonical("ndcg_cut_10"), canonical("Recall(rel=2)@5"), canonical("num_rel_ret@5")
    ('nDCG@10', 'R(rel=2)@5', 'NumRet(rel=1)@5')
    """
    match = _WORDS.fullmatch(element)
    if match is None or (match[1] in DEFINITIONS and not match[2].startswith(".")):
        return element
    notation = _BY_KEY.get(key(match[1]))
    if notation is not None:
        # join the alias's own parameters and the written ones
        if notation.endswith(")") and match[2].startswith("("):
            return f"{notation[:-1]}, {match[2][1:].lstrip()}" if match[2][1:].strip() != ")" else notation
        if not match[2].startswith("."):
            return notation + match[2]
    tail = _TAILS.fullmatch(element.strip())
    if tail is None:
        return element
    notation = _BY_KEY.get(key(tail[1]))
    return element if notation in (None, *_NO_RANKS) else f"{notation}@{tail[2]}"


def with_cutoff(element: str, cutoff: object) -> str:
    """Return a spelling with another cutoff.

    >>> with_cutoff("Recall@5", 10), with_cutoff("ndcg_cut.5", 10), with_cutoff("", 10)
    ('Recall@10', 'ndcg_cut.10', '')
    """
    head = re.match(r"(.*@)", element, re.DOTALL) or re.match(r"(.*[._])", element, re.DOTALL)
    return f"{head[1]}{cutoff}" if head else ""


# measures as trec_eval prints them, and with cutoffs as its -m takes them
_TREC_EVAL = re.compile(
    r"map|ndcg|recip_rank|set_(?:P|relative_P|recall|map|F)|num_rel_ret"
    r"|(?:map_cut|ndcg_cut|P|relative_P|recall|success|iprec_at_recall)[._][0-9][0-9.]*"
)


def is_of_trec_eval(spelling: str) -> bool:
    """Return whether a measure is spelled as in trec_eval.

    >>> [is_of_trec_eval(each) for each in ("map", "P_5", "ndcg_cut.10", "MAP", "P@5", "ndcg@10")]
    [True, True, True, False, False, False]
    """
    return _TREC_EVAL.fullmatch(spelling) is not None


def elements(text: str) -> list[str]:
    """Split a notation at the commas outside brackets and quotes.

    >>> elements("nDCG(gain=[0, 1])@5, 10")
    ['nDCG(gain=[0, 1])@5', ' 10']
    """
    ends, depth = [-1], 0
    for part in re.finditer(r"""'[^']*'?|"[^"]*"?|[][(){},]""", text):
        depth += (part[0] in "([{") - (part[0] in ")]}")
        if part[0] == "," and not depth:
            ends.append(part.start())
    return [text[start + 1 : end] for start, end in zip(ends, [*ends[1:], len(text)], strict=True)]


def nearest(name: str) -> str:
    """Return a question that suggests the three nearest spellings with their names; empty if none is near.

    >>> nearest("hitrat"), nearest("ndcg10"), nearest("xyz")
    ('Did you mean HitRate (Success here)?', 'Did you mean nDCG@10?', '')
    """
    import difflib

    tail = _TAILS.fullmatch(name) or re.fullmatch(r"(.*?)([0-9]+)", name)
    if tail is not None and key(tail[1]) in _BY_KEY:
        return f"Did you mean {_BY_KEY[key(tail[1])]}@{tail[2]}?"
    spellings = {key(known): known for known in (*reversed(ALIASES), *DEFINITIONS)}
    matches = difflib.get_close_matches(key(name), spellings, n=12, cutoff=0.6)
    spelling_of: dict[str, str] = {}  # the nearest spelling of each measure
    for each in matches:
        spelling_of.setdefault(_BY_KEY[each], spellings[each])
    shown = [each if each == own else f"{each} ({own} here)" for own, each in spelling_of.items()][:3]
    if not shown:
        return ""
    return f"Did you mean {', '.join(shown[:-1])}{' or ' if shown[:-1] else ''}{shown[-1]}?"
