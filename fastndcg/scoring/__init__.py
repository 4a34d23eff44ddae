"""From measures and rankings to values.

ways          the door: `values`, `score`; the declaration of a measure names the way in which it is computed
plan          measures and grades as tables
worths        gains of grades
discounts     weights of ranks
launch        kernels run serially or in parallel, in chunks, safe inside any host
laid_out      ideal rankings whose length is not the cutoff
by_intent     measures of several intents
weighed       measures that are plain sums over other grades: of clicks, above a score, AP of tied blocks
tied_groups   documents by falling score, in groups of equal scores
"""
