"""Conventions: how each established tool computes its nDCG, by name.

    fn.conventions["lightgbm"]                                    what LightGBM does
    fn.nDCG(like="lightgbm") @ 10                                 its parameters: nDCG(gain='exp2', ties='input', ...)@10
    fn.evaluate(rankings, "nDCG@10", convention="trec_eval")      its value: order of tied documents, rounding, mean
    fn.compare_conventions(rankings, k=10)                        the value of each tool, and the effect of each choice
    fn.explain_conventions(rankings, "sklearn", "lightgbm", k=10) from one value to the other, one choice at a time

Where it is:

    declarations  a convention for each tool, as data; a new one is added there
    preparation   scores and rows as a tool sees them; queries that it leaves out
    evaluation    a tool's values, their rounding and their mean
    comparison    all tools side by side, and the steps from one to another
"""
