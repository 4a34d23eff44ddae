"""Every measure with its parameters, and heavily tied queries with and without pools, for all tests that cross them."""

import numpy as np
from strategies import Asked, Ragged, share

import fastndcg as fn

TIES = ("average", "input", "worst", "best")
BINARY = ("AP", "RR", "P", "R", "F", "Rprec", "Success", "RBP", "SetP", "SetR", "SetF", "SetAP")
UNCUT = ("Rprec", "SetP", "SetR", "SetF", "SetAP", "Bpref", "infAP", "NumRel", "IPrec")
VARIANTS = [
    *((name, {}) for name in (*BINARY, "ERR", "Bpref", "infAP", "NumRel", "NumRet")),
    *((name, {"rel": 2}) for name in (*BINARY, "Bpref", "infAP", "NumRel", "NumRet")),
    *((name, {"judged_only": True}) for name in (*BINARY, "ERR", "SDCG", "NumRet")),
    *((name, {"unjudged": 1}) for name in (*BINARY, "ERR", "nDCG", "DCG", "IDCG", "CG", "NumRel")),
    *((name, {"empty": "nan"}) for name in (*BINARY, "ERR", "Bpref", "infAP", "Judged", "RBPresidual")),
    *(("AP", {"denominator": over}) for over in ("cutoff", "returned", "hits", "k", "none")),
    *(("P", {"denominator": over}) for over in ("returned", "n_relevant")),
    ("R", {"denominator": "cutoff"}),
    *(
        ("nDCG", {"floor": "worst", **more})
        for more in ({}, {"gain": {0: -1, 0.5: 0, 1: 1, 2: -2, 2.5: 3, 4: 5}})
    ),
    *((name, {"empty": empty}) for name in ("NumRel", "NumRet") for empty in (0.5, "skip")),
    ("RR", {"of": "best"}),
    ("RR", {"of": "best", "rel": -1}),
    *((name, {"score_above": 0}) for name in ("AP", "P", "R", "RR")),
    ("AP", {"score_above": 0, "denominator": "hits", "judged_only": True}),
    ("RR", {"score_above": 1, "of": "best", "unjudged": 1}),
    ("PFound", {"stop": {0: 0, 0.5: 0.1, 1: 0.2, 2: 0.7, 2.5: 0.8, 4: 1}}),
    ("PFound", {"stop": share, "decay": 1.0}),
    ("PFound", {"stop": share, "decay": 0.0, "judged_only": True}),
    ("ERR", {"stop": {0: 0.1, 0.5: 0, 1: 0.2, 2: 0.7, 2.5: 0.3, 4: 1}}),
    ("ERR", {"stop": share, "unjudged": 1}),
    *(("AUC", words) for words in ({}, {"rel": 2}, {"judged_only": True}, {"unjudged": 1}, {"empty": "nan"})),
    *(("AUC", {"max_fp": max_fp}) for max_fp in (1, 2, 0.3, 0.5)),
    ("F", {"beta": 0.5}),
    ("SetF", {"beta": 2.0}),
    ("SetP", {"relative": True}),
    ("RBP", {"p": 0.5}),
    ("RBPresidual", {}),
    ("RBPresidual", {"p": 0.95}),
    ("Judged", {}),
    ("ERR", {"max_rel": 5}),
    ("SDCG", {"max_rel": 4}),
    ("SDCG", {"max_rel": 3, "min_rel": 1}),
    ("SDCG", {"max_rel": 4, "discount": "reciprocal"}),
    ("nDCG", {"unjudged": 3, "gain": "exp2"}),
    ("nDCG", {"unjudged": 2, "ideal": "scored"}),
    *(("IPrec", {"recall": recall}) for recall in (0.0, 0.3, 0.5, 1.0)),
    *(("IPrec", {"recall": recall, "rounding": "nearest"}) for recall in (0.0, 0.3, 0.5)),
    ("IPrec", {"recall": 0.5, "rel": 2}),
]


def measure_of(name, words, cutoff):
    measure = fn.parse(name)(**words | ({"max_rel": 4} if name == "SDCG" and "max_rel" not in words else {}))
    return measure if cutoff is None else measure @ cutoff


def all_asked(ties):
    asked = []
    for name, given in VARIANTS:
        words = given | ({"max_rel": 4} if name == "SDCG" and "max_rel" not in given else {})
        words |= {} if name == "NumRel" else {"ties": ties}
        asked += [
            Asked(name, cutoff, tuple(words.items()))
            for cutoff in ([None] if name in UNCUT else [None, 1, 2, 4])
            if cutoff is not None or given.get("denominator") != "none"
        ]
    return asked


def tables(seed, queries, *, grades=(0, 0, 1, 2, 4), dtype="uint8", longest=6):
    """The same heavily tied queries in three layouts: no pool, flags only, flags and pool."""
    rng = np.random.default_rng(seed)
    lengths = [0, 1, *rng.integers(1, longest + 1, queries).tolist()]
    size = sum(lengths)
    relevance = rng.choice(np.array(grades), size).astype(dtype)
    scores = rng.integers(0, 3, size).astype(np.float32)
    flags = rng.random(size) < 0.7
    bare, flagged = Ragged(lengths, relevance, scores), Ragged(lengths, relevance, scores, flags)
    judged = [
        query.judged_grades() + rng.choice(np.array(grades), rng.integers(0, 4)).tolist()
        for query in flagged.queries()
    ]
    pool = np.array([grade for one in judged for grade in one], dtype)
    return {
        "bare": bare,
        "flagged": flagged,
        "pooled": Ragged(lengths, relevance, scores, flags, [len(one) for one in judged], pool),
    }
