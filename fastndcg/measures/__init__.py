"""Measures as values: `nDCG(gain="exp2") @ 10` is immutable, hashable, and `parse(str(m)) == m`.

A measure has a *definition* (the gain of a document, the discount of a rank, the divisor of the sum), values
of its parameters, and a cutoff. These modules compute no values: `plan` turns measures into tables, and
`kernels` apply the tables to documents. The notation is that of ir_measures, `Name(parameter=value)@cutoff`.

parameters   names, defaults and readers of parameters
gains_and_discounts
             gains of grades and discounts of ranks that have a name
definitions  a declaration of each measure
measure      the class `Measure`, and a measure for each definition
named        these under the names by which they are imported
notation     the parser of the notation
aliases      names that people and other tools use for measures
tools        how each established tool computes its measures, as data
conventions  each tool's measures, by name: `conventions`
"""

from __future__ import annotations

from fastndcg.measures.definitions import DEFINITIONS as DEFINITIONS
from fastndcg.measures.measure import Measure as Measure
from fastndcg.measures.measure import MeasureLike as MeasureLike
from fastndcg.measures.measure import Measures as Measures
from fastndcg.measures.measure import table as table
from fastndcg.measures.named import *  # noqa: F403 - a line there is all that a new name needs
from fastndcg.measures.notation import as_measure as as_measure
from fastndcg.measures.notation import as_measures as as_measures
from fastndcg.measures.notation import find_measure as find_measure
from fastndcg.measures.notation import parse as parse
from fastndcg.measures.notation import parse_many as parse_many
