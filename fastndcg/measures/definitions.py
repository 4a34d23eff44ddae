"""Definitions of measures: the gain of a document, the discount of a rank, the divisor of the sum.

To add a measure, add a `Definition` to `DEFINITIONS`, a line to `named`, and a function to `tests/oracle.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from fastndcg.measures import parameters as p


class Definition(NamedTuple):
    """A measure as data. Its value is the sum of terms up to a cutoff, over a divisor.

    `fastndcg.scoring` reads the fields from `gain` to `undefined` and from `ranking` to `method`; the others
    are documentation. `Parameter.changes` says which fields depend on a parameter.
    """

    name: str
    gain: str  # gain of a document by its grade, see `gain_function_of` of `fastndcg.scoring.gain_values`
    divisor: str  # the divisor of the sum, see `DIVISOR` of `fastndcg.scoring.plan`
    # when a query has no value: "no ideal" gain, "no relevant" document, "no pair", "no documents", "never"
    undefined: str
    parameters: tuple[p.Parameter, ...]
    summary: str
    formula: str
    source: str
    range: str = "0 to 1"
    # "system": documents by descending score; "ideal": the ideal ranking; "none": the pool alone
    ranking: str = "system"
    term: str = "gain"  # the term that a rank adds to the sum, see `TERM` of `fastndcg.scoring.plan`
    # weight of the ranks: "none" 1, "parameter" its discount, "power" p^(i - 1), "harmonic" 1/i + ... + 1/k
    discount: str = "none"
    # what @ takes: "rank" a cutoff, "recall" a recall level, "none" nothing, "relevant" nothing (n_relevant)
    cut: str = "rank"
    # how values are computed, see `fastndcg.scoring`
    method: str = "kernels"


_JARVELIN = "Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002"
_RIJSBERGEN = "van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979"
_MOFFAT = (
    "Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 27(1), 2008"
)
_JOACHIMS = "Joachims, Swaminathan and Schnabel, Unbiased learning-to-rank with biased feedback, WSDM 2017"
_CLARKE = (
    "Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, "
    "Novelty and diversity in information retrieval evaluation, SIGIR 2008"
)
_CHAPELLE = "Chapelle, Metlzer, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009"
_GAINS_OF_ALL = (p.TIES, p.EMPTY, p.JUDGED_ONLY, p.REL, p.UNJUDGED)
_BINARY = (p.RELEVANT, p.TIES, p.EMPTY, p.JUDGED_ONLY, p.UNJUDGED)

DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for definition in (
        Definition(
            "nDCG", "parameter", "ideal", "no ideal",
            (p.GAIN, p.DISCOUNT, p.TIES, p.IDEAL, p.EMPTY, p.JUDGED_ONLY, p.REL, p.UNJUDGED, p.FLOOR),
            discount="parameter",
            summary="normalised discounted cumulative gain",
            formula="DCG@k / IDCG@k; with floor='worst' (DCG@k - worst DCG@k) / (IDCG@k - worst DCG@k)",
            range="0 to 1 for gains >= 0 and discounts that never rise",
            source=f"{_JARVELIN}; floor: Gienapp, Fröbe, Hagen and Potthast, The impact of negative "
                "relevance judgments on NDCG, CIKM 2020",
        ),
        Definition(
            "DCG", "parameter", "nothing", "no documents",
            (p.GAIN, p.DISCOUNT, *_GAINS_OF_ALL, p.IPS, p.CLIP),
            discount="parameter",
            summary="discounted cumulative gain",
            formula="sum over ranks i <= k of gain(grade_i) * discount(i); with ips of gain(grade_i) / "
                "max(propensity_i, clip) * discount(i)",
            range="0 and above for gains >= 0",
            source=f"{_JARVELIN}; ips: {_JOACHIMS}",
        ),
        Definition(
            "IDCG", "parameter", "nothing", "no documents",
            (p.GAIN, p.DISCOUNT, p.TIES, p.IDEAL, p.EMPTY, p.JUDGED_ONLY, p.REL, p.UNJUDGED),
            ranking="ideal", discount="parameter",
            summary="DCG of the ideal ranking",
            formula="sum over ranks i <= k of gain(grade_i) * discount(i), documents by descending gain",
            range="0 and above for gains >= 0",
            source=_JARVELIN,
        ),
        Definition(
            "CG", "parameter", "nothing", "no documents", (p.GAIN, *_GAINS_OF_ALL, p.IPS, p.CLIP),
            summary="cumulative gain",
            formula="sum over ranks i <= k of gain(grade_i); with ips of gain(grade_i) / max(propensity_i, "
                "clip)",
            range="0 and above for gains >= 0",
            source=f"{_JARVELIN}; ips: {_JOACHIMS}",
        ),
        Definition(
            "SDCG", "scaled", "ideal", "no documents",
            (p.SCALE_TOP, p.SCALE_BOTTOM, p.DISCOUNT, p.TIES, p.EMPTY, p.JUDGED_ONLY, p.UNJUDGED),
            discount="parameter",
            summary="scaled discounted cumulative gain: the ideal ranking is k documents of the highest "
                "grade of the scale",
            formula="sum over i <= k of g_i * discount(i) / sum over i <= k of discount(i), g = (grade - "
                "min_rel) / (max_rel - min_rel)",
            source="Moffat, Bailey, Scholer and Thomas, Incorporating user expectations and behavior into "
                "the measurement of search effectiveness, TOIS 35(3), 2017",
        ),
        Definition(
            "AP", "relevant", "relevant", "no relevant",
            (p.RELEVANT, p.TIES_OF_AP, p.EMPTY, p.JUDGED_ONLY, p.UNJUDGED, p.PRECISIONS, p.SCORE_ABOVE),
            term="hits",
            summary="average precision",
            formula="sum over ranks i <= k of relevant documents of P@i, / n_relevant, or / another "
                "denominator",
            source="Harman, Evaluation issues in information retrieval, IP&M 28(4), 1992; trec_eval, map "
                "and map_cut",
        ),
        Definition(
            "RR", "relevant", "nothing", "no relevant", (*_BINARY, p.OF, p.SCORE_ABOVE), term="first",
            summary="reciprocal rank",
            formula="1 / rank of the first relevant document; 0 if that rank is beyond k",
            source="Kantor and Voorhees, The TREC-5 confusion track, Information Retrieval 2, 2000; "
                "trec_eval, recip_rank",
        ),
        Definition(
            "P", "relevant", "cutoff", "no documents", (*_BINARY, p.DOCUMENTS, p.SCORE_ABOVE), term="count",
            summary="precision",
            formula="relevant documents on the ranks i <= k / k, or / another denominator; without a cutoff "
                "/ documents returned",
            source=_RIJSBERGEN,
        ),
        Definition(
            "R", "relevant", "relevant", "no relevant", (*_BINARY, p.FOUND, p.SCORE_ABOVE), term="count",
            summary="recall",
            formula="relevant documents on the ranks i <= k / n_relevant, or / min(n_relevant, k)",
            source=_RIJSBERGEN,
        ),
        Definition(
            "F", "relevant", "weighted", "no relevant", (*_BINARY, p.BETA), term="count",
            summary="weighted harmonic mean of precision and recall",
            formula="(1 + beta^2) P@k R@k / (beta^2 P@k + R@k) = (1 + beta^2) hits / (beta^2 n_relevant + k)",
            source=_RIJSBERGEN,
        ),
        Definition(
            "Rprec", "relevant", "relevant", "no relevant", _BINARY, term="count", cut="relevant",
            summary="precision at rank n_relevant",
            formula="relevant documents on the ranks i <= n_relevant / n_relevant",
            source="Buckley and Voorhees, Retrieval System Evaluation, in TREC: Experiment and Evaluation in "
                "IR, MIT Press, 2005",
        ),
        Definition(
            "Success", "relevant", "nothing", "no relevant", _BINARY, term="reached",
            summary="1 if any relevant document was returned, else 0; its expected value is a probability",
            formula="1 if a rank i <= k holds a relevant document, else 0",
            source="trec_eval, success",
        ),
        Definition(
            "ERR", "stop", "nothing", "no documents",
            (p.MAX_REL, p.TIES, p.EMPTY, p.JUDGED_ONLY, p.UNJUDGED, p.STOP_OF_SCALE), term="stop",
            summary="expected reciprocal rank of the document where a user stops",
            formula="sum over ranks i <= k of 1/i * s_i * product over j < i of (1 - s_j), s = (2^grade - "
                "1) / 2^max_rel, or stop of the grade",
            source=f"{_CHAPELLE}; gdeval",
        ),
        Definition(
            "PFound", "stop", "nothing", "no documents",
            (p.DECAY, p.STOP, p.TIES, p.EMPTY, p.JUDGED_ONLY, p.UNJUDGED), term="stop", discount="power",
            summary="probability that a user who may stop or give up at each document finds what they want",
            formula="sum over ranks i <= k of decay^(i - 1) * s_i * product over j < i of (1 - s_j), s = "
                "stop of the grade",
            source="Gulin, Karpovich, Raskovalov and Segalovich, Yandex at ROMIP'2009: optimisation of "
                "ranking algorithms by machine learning methods, ROMIP 2009; CatBoost, PFound",
        ),
        Definition(
            "RBP", "relevant", "power", "no documents", (p.PERSISTENCE, *_BINARY), discount="power",
            summary="rank-biased precision",
            formula="(1 - p) * sum over ranks i <= k of relevant documents of p^(i - 1)",
            source=_MOFFAT,
        ),
        Definition(
            "RBPresidual", "unjudged", "residual", "no documents", (p.PERSISTENCE, p.TIES, p.EMPTY),
            discount="power",
            summary="residual of rank-biased precision: how much unjudged documents and ranks beyond the "
                "list could add to it",
            formula="(1 - p) * sum over unjudged ranks i <= k of p^(i - 1) + p^min(k, documents)",
            source=_MOFFAT,
        ),
        Definition(
            "Bpref", "judgment", "relevant", "no relevant", (p.RELEVANT, p.TIES, p.EMPTY), term="preference",
            cut="none",
            summary="binary preference: how few judged non-relevant documents are ranked above relevant ones",
            formula="1/R * sum over relevant documents of 1 - min(n above, R) / min(N, R), n judged and not "
                "relevant, N of them in all",
            source="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004; "
                "trec_eval, bpref",
        ),
        Definition(
            "infAP", "judgment", "relevant", "no relevant", (p.RELEVANT, p.TIES, p.EMPTY), term="inferred",
            cut="none", method="pooled",
            summary="inferred average precision; a negative grade marks an unjudged document of the pool",
            formula="1/R * sum over relevant ranks i of (1 + pool_above * (rel_above + e) / (judged_above + "
                "2e)) / i, e = 0.00001",
            source="Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments, "
                "CIKM 2006; trec_eval, infAP",
        ),
        Definition(
            "IPrec", "relevant", "nothing", "no relevant", (p.RECALL, *_BINARY, p.ROUNDING),
            term="interpolated", cut="recall",
            summary="interpolated precision at a recall level",
            formula="largest P@i over the ranks i whose hits are at least recall * n_relevant, rounded as "
                "rounding says",
            source="trec_eval, iprec_at_recall",
        ),
        Definition(
            "AUC", "relevant", "nothing", "no pair", (*_BINARY, p.PAIRS, p.MAX_FP), term="pairs",
            summary="area under the ROC curve of a query: share of pairs of a relevant document and one "
                "that is not in which the relevant one is first",
            formula="pairs in the right order on the ranks i <= k / pairs; tied pairs count a half. max_fp "
                "a number: sum over relevant documents of max(max_fp - others above, 0) / (max_fp * "
                "n_relevant); max_fp a share: (1 + (a - max_fp / 2) / (1 - max_fp / 2)) / 2, a = area up to "
                "that share of the others / max_fp, with straight lines through tied groups",
            source="Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology 143(1), "
                "1982; McClish, Analyzing a portion of the ROC curve, Medical Decision Making 9(3), 1989",
        ),
        Definition(
            "Judged", "unjudged", "judged", "no documents", (p.TIES, p.EMPTY), term="count",
            summary="share of the first k documents that were judged",
            formula="judged documents on the ranks i <= k / min(k, documents)",
            source="ir_measures, Judged",
        ),
        Definition(
            "NumRel", "relevant", "pool", "never", (p.RELEVANT, p.UNJUDGED, p.EMPTY_OF_RELEVANT),
            ranking="none", cut="none",
            summary="relevant documents, returned or not",
            formula="n_relevant",
            range="0 and above",
            source="trec_eval, num_rel",
        ),
        Definition(
            "NumRet", "found", "nothing", "never",
            (p.TIES, p.JUDGED_ONLY, p.REL, p.UNJUDGED, p.EMPTY_OF_RETURNED), term="count",
            summary="documents returned; with a cutoff at most k; with rel only documents of at least that "
                "grade",
            formula="min(k, documents)",
            range="0 to k",
            source="trec_eval, num_ret",
        ),
        Definition(
            "SetP", "relevant", "cutoff", "no documents", (p.RELATIVE, *_BINARY), term="count", cut="none",
            summary="precision of all returned documents",
            formula="relevant documents returned / documents returned; relative=True: / min(documents "
                "returned, n_relevant)",
            source="trec_eval, set_P and set_relative_P",
        ),
        Definition(
            "SetR", "relevant", "relevant", "no relevant", _BINARY, term="count", cut="none",
            summary="recall of all returned documents",
            formula="relevant documents returned / n_relevant",
            source="trec_eval, set_recall",
        ),
        Definition(
            "SetF", "relevant", "weighted", "no relevant", (*_BINARY, p.BETA), term="count", cut="none",
            summary="weighted harmonic mean of SetP and SetR",
            formula="(1 + beta^2) hits / (beta^2 n_relevant + documents returned)",
            source="trec_eval, set_F",
        ),
        Definition(
            "SetAP", "relevant", "set", "no relevant", _BINARY, term="count", cut="none",
            summary="precision times recall of all returned documents",
            formula="SetP * SetR",
            source="trec_eval, set_map",
        ),
        Definition(
            "alpha_DCG", "novel", "perfect", "no relevant",
            (p.ALPHA, p.RELEVANT, p.DISCOUNT, p.TIES_OF_INTENTS, p.EMPTY, p.JUDGED_ONLY, p.PERFECT),
            method="intents", term="stop", discount="parameter",
            summary="DCG over several intents; each further relevant document for an intent gains less",
            formula="sum over i <= k of discount(i) * sum over intents with a relevant document at i of (1 "
                "- alpha)^(relevant above i), / its largest value",
            range="0 to 1; with denominator='none' 0 and above",
            source=f"{_CLARKE}; ndeval, alpha-DCG, which does not divide at a cutoff of 1",
        ),
        Definition(
            "alpha_nDCG", "novel", "greedy", "no relevant",
            (p.ALPHA, p.RELEVANT, p.DISCOUNT, p.TIES_OF_INTENTS, p.EMPTY, p.JUDGED_ONLY),
            method="intents", term="stop", discount="parameter",
            summary="alpha_DCG divided by that of the greedy ideal ranking, which takes the document with "
                "the highest gain at each rank",
            formula="alpha_DCG@k / alpha_DCG@k of the greedy ideal of the judged documents",
            range="0 to 1; more where a ranking beats the greedy ideal, which is not always the best",
            source=f"{_CLARKE}; ndeval, alpha-nDCG",
        ),
        Definition(
            "ERR_IA", "intent stop", "perfect", "no relevant",
            (p.RELEVANT, p.GRADED, p.TIES_OF_INTENTS, p.EMPTY, p.JUDGED_ONLY, p.PERFECT),
            method="intents", term="stop", discount="reciprocal",
            summary="expected ERR over the intents of a query",
            formula="sum over intents of P(intent) * ERR@k of its grades, / ERR@k of perfect documents",
            source=f"{_CHAPELLE}; ndeval, ERR-IA, which does not divide at a cutoff of 1",
        ),
        Definition(
            "nERR_IA", "intent stop", "greedy", "no relevant",
            (p.RELEVANT, p.GRADED, p.TIES_OF_INTENTS, p.EMPTY, p.JUDGED_ONLY),
            method="intents", term="stop", discount="reciprocal",
            summary="ERR_IA divided by that of the greedy ideal ranking",
            formula="ERR_IA@k / ERR_IA@k of the greedy ideal of the judged documents",
            range="0 to 1; more where a ranking beats the greedy ideal, which is not always the best",
            source="ndeval, nERR-IA",
        ),
        Definition(
            "nDCG_IA", "parameter", "each ideal", "no relevant",
            (p.GAIN, p.DISCOUNT, p.TIES, p.EMPTY, p.JUDGED_ONLY, p.REL),
            method="intents", discount="parameter",
            summary="expected nDCG over the intents of a query",
            formula="sum over intents of P(intent) * nDCG@k of its grades",
            range="0 to 1 for gains >= 0 and discounts that never rise; 1 only if one ranking is ideal for "
                "every intent",
            source="Agrawal, Gollapudi, Halverson and Ieong, Diversifying search results, WSDM 2009",
        ),
        Definition(
            "StRecall", "first of intent", "intents", "no relevant", (p.RELEVANT, p.TIES_OF_INTENTS, p.EMPTY),
            method="intents", term="stop",
            summary="subtopic recall: share of intents with a relevant document on the first k ranks",
            formula="intents with a relevant document on a rank i <= k / intents with a relevant document",
            source="Zhai, Cohen and Lafferty, Beyond independent relevance, SIGIR 2003; ndeval, strec",
        ),
    )
}  # fmt: skip
