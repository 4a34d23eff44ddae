"""Measures as values: `nDCG(gain="exp2") @ 10` is immutable, hashable, and `parse(str(m)) == m`.

A measure has a *definition* (the worth of a document, the discount of a rank, the divisor of the sum), values
of its parameters, and a cutoff. These modules compute no values: `plan` turns measures into tables, and
`kernels` apply the tables to documents. The notation is that of ir_measures, `Name(parameter=value)@cutoff`.

parameters   names, defaults and readers of parameters
definitions  a declaration of each measure; add measures here and to `tests/oracle.py`
measure      the class `Measure`, and a measure for each definition
notation     the parser of the notation
spellings    names that people and other tools use for measures
tools        how each established tool computes nDCG, as data
by_tool      each tool's measure, by name: `conventions`
"""

from __future__ import annotations

from fastndcg.measures.definitions import DEFINITIONS as DEFINITIONS
from fastndcg.measures.measure import Measure as Measure
from fastndcg.measures.measure import MeasureLike as MeasureLike
from fastndcg.measures.measure import Measures as Measures
from fastndcg.measures.measure import measure_named
from fastndcg.measures.measure import table as table
from fastndcg.measures.notation import as_measure as as_measure
from fastndcg.measures.notation import as_measures as as_measures
from fastndcg.measures.notation import find_measure as find_measure
from fastndcg.measures.notation import parse as parse
from fastndcg.measures.notation import parse_many as parse_many

nDCG = NDCG = measure_named("nDCG")
DCG = measure_named("DCG")
IDCG = measure_named("IDCG")
CG = measure_named("CG")
SDCG = measure_named("SDCG")
AP = MAP = measure_named("AP")
RR = MRR = measure_named("RR")
P = measure_named("P")
R = measure_named("R")
F = measure_named("F")
Rprec = measure_named("Rprec")
Success = measure_named("Success")
ERR = measure_named("ERR")
RBP = measure_named("RBP")
RBPresidual = measure_named("RBPresidual")
Bpref = measure_named("Bpref")
infAP = measure_named("infAP")
IPrec = measure_named("IPrec")
Judged = measure_named("Judged")
NumRel = measure_named("NumRel")
NumRet = measure_named("NumRet")
SetP = measure_named("SetP")
SetR = measure_named("SetR")
SetF = measure_named("SetF")
SetAP = measure_named("SetAP")
alpha_DCG = measure_named("alpha_DCG")
alpha_nDCG = measure_named("alpha_nDCG")
ERR_IA = measure_named("ERR_IA")
nERR_IA = measure_named("nERR_IA")
nDCG_IA = measure_named("nDCG_IA")
StRecall = measure_named("StRecall")
