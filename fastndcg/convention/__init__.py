"""Conventions: how each established tool computes its measures, by name.

    fn.conventions["lightgbm"]                                how LightGBM computes nDCG
    fn.nDCG(like="lightgbm") @ 10                             its measure: nDCG(gain='exp2', ...)@10
    fn.evaluate(rankings, "nDCG@10", convention="trec_eval")  its value, with its ties, rounding and mean
    fn.compare_conventions(rankings, k=10)                    each tool's value, each choice's effect
    fn.explain_conventions(rankings, "sklearn", "lightgbm")   how two values differ, choice by choice
    fn.match_conventions(rankings, "AP@10", 0.4321)           whose number that is

The convention of each tool is data: add new ones to `fastndcg.measures.tools`. Modules here:

    evaluation    rank as a tool does, compute its values, round them, and average them
    differences   compare all tools, explain how two of them differ, find whose numbers somebody reports
"""
