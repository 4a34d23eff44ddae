"""Exact ranking measures over millions of ragged queries.

    import fastndcg as fn
    scores = fn.evaluate(fn.read_parquet("predictions.parquet"), ["nDCG@10", fn.nDCG(gain="exp2") @ 5])
    print(scores.summary())

Where everything is:

    api             evaluate, ndcg
    drop_ins        ndcg_score, dcg_score: scikit-learn's functions
    rankings        Rankings: what is evaluated, and all checks of input
    intents         grades of documents for each intent of their query
    measures        Measure: nDCG, DCG, ... as values, their declarations and notation
    tables          Table: what shows itself, in terminals of any width
    spellings       measures by the names that people and other tools type
    scores          Scores: values for each query, means, summaries, tables
    scoring         from measures and rankings to values: plan, launch, ideals, intents, propensities
    kernels         every function that is compiled where that pays: rank each query once, fold it into all measures
    compiled        the same functions, compiled, once that pays
    statistics      exact sums and means, confidence intervals, tests
    comparison      compare: which of several systems is better, and how sure that is
    explain         where the value of a query comes from, rank by rank
    anchors         what the order of the returned documents could have made of a measure
    agreement       how far two rankings agree
    streams         rankings of any size, a part at a time
    convention      how each established tool computes nDCG, by name, and what makes two of them differ
    counterfactual  estimates from click logs over all queries
    plot            pictures of all of these, as Altair charts
    report          a page of everything that is known of rankings
    ranges          how far ties and unjudged documents could move a measure
    sources         Parquet, CSV, Arrow, TREC and LETOR files to Rankings
    trec_eval       what trec_eval prints, byte for byte
    progress        how far a long call is, in terminals and notebooks
    files           files that appear whole or not at all
    threads         the one rule for threads=
    arrays          offsets, views and order of arrays
    arrow_types     Arrow arrays of all types brought to the few that are computed with
    grouping        rows grouped by query
    typing          types of parameters and options, for annotations
    errors          every error that is raised
    adapters        Spark, Dask, Ray, boosters: what people already have, outside, looking in
    cli, demo       the command line, outside, looking in

Importing this package imports NumPy and pyarrow; Numba is imported, and kernels are compiled or loaded, once a process has work for them.
"""

from fastndcg import plot
from fastndcg.agreement import rank_agreement
from fastndcg.anchors import Anchor, Anchors, anchors
from fastndcg.api import evaluate, ndcg
from fastndcg.comparison import Comparison, compare
from fastndcg.convention.comparison import compare_conventions, explain_conventions
from fastndcg.convention.declarations import Convention, conventions
from fastndcg.convention.evaluation import ConventionScores
from fastndcg.counterfactual import Estimate, snips
from fastndcg.drop_ins import dcg_score, ndcg_score
from fastndcg.errors import (
    ColumnError,
    ConventionError,
    ExtraError,
    FastndcgError,
    FastndcgWarning,
    InputError,
    InputTypeError,
    MeasureError,
    SourceError,
)
from fastndcg.explain import Explanation, Explanations, explain
from fastndcg.intents import IntentGrades, IntentProbabilities
from fastndcg.measures import (
    AP,
    CG,
    DCG,
    ERR,
    ERR_IA,
    IDCG,
    MAP,
    MRR,
    NDCG,
    RBP,
    RR,
    SDCG,
    Bpref,
    F,
    IPrec,
    Judged,
    Measure,
    MeasureLike,
    NumRel,
    NumRet,
    P,
    R,
    RBPresidual,
    Rprec,
    SetAP,
    SetF,
    SetP,
    SetR,
    StRecall,
    Success,
    alpha_DCG,
    alpha_nDCG,
    infAP,
    nDCG,
    nDCG_IA,
    nERR_IA,
    parse,
    parse_many,
)
from fastndcg.ranges import Bounds, Ranges, judgment_range, tie_range
from fastndcg.rankings import JudgedPool, Rankings
from fastndcg.report import report
from fastndcg.scores import Scores, Summary
from fastndcg.sources.csv import read_csv
from fastndcg.sources.ltr import read_ltr
from fastndcg.sources.parquet import read_parquet
from fastndcg.sources.scan import ParquetStream, scan_parquet
from fastndcg.sources.trec import read_qrels_run, read_trec
from fastndcg.statistics.agreement import cohen_kappa, krippendorff_alpha
from fastndcg.streams import RankingsStream
from fastndcg.tables import Table

__all__ = [
    "AP",
    "CG",
    "DCG",
    "ERR",
    "ERR_IA",
    "IDCG",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "RR",
    "SDCG",
    "Anchor",
    "Anchors",
    "Bounds",
    "Bpref",
    "ColumnError",
    "Comparison",
    "Convention",
    "ConventionError",
    "ConventionScores",
    "Estimate",
    "Explanation",
    "Explanations",
    "ExtraError",
    "F",
    "FastndcgError",
    "FastndcgWarning",
    "IPrec",
    "InputError",
    "InputTypeError",
    "IntentGrades",
    "IntentProbabilities",
    "Judged",
    "JudgedPool",
    "Measure",
    "MeasureError",
    "MeasureLike",
    "NumRel",
    "NumRet",
    "P",
    "ParquetStream",
    "R",
    "RBPresidual",
    "Ranges",
    "Rankings",
    "RankingsStream",
    "Rprec",
    "Scores",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SourceError",
    "StRecall",
    "Success",
    "Summary",
    "Table",
    "alpha_DCG",
    "alpha_nDCG",
    "anchors",
    "cohen_kappa",
    "compare",
    "compare_conventions",
    "conventions",
    "dcg_score",
    "evaluate",
    "explain",
    "explain_conventions",
    "infAP",
    "judgment_range",
    "krippendorff_alpha",
    "nDCG",
    "nDCG_IA",
    "nERR_IA",
    "ndcg",
    "ndcg_score",
    "parse",
    "parse_many",
    "rank_agreement",
    "read_csv",
    "read_ltr",
    "read_parquet",
    "read_qrels_run",
    "read_trec",
    "report",
    "scan_parquet",
    "snips",
    "tie_range",
]

__version__ = "0.1.0"
