"""From values to decisions.

systems         `compare`: which of several systems is better, and how sure that is
matching        scores of several systems, matched by query
signed          whether results that are compared were made alike
contrasts       the numbers of each measure and pair of systems
comparison      `Comparison`: these numbers, and questions about them
standings       intervals of ranks, and groups of systems that cannot be told apart
verdicts        gates: whether a system is no worse than another, or whether that is undecided
texts           a comparison as text, HTML, Markdown and LaTeX
orders          the same measures for several orders of documents
anchoring       what the order of the returned documents could have made of a measure
explained       a query document by document: gains, contributions, what was missed, exchanges
explanation     `explain`: where the value of a query comes from, rank by rank
ranges          how far ties and unjudged documents could move a measure
judging         `check_judges`: how far judges agree, and whether one drifts
checked_input   what `check_judgments` is given: judgments, runs, ids of a corpus
judgment_checks  `check_judgments`: whether judgments can be used, and fit the runs that they judge
next_judgments  `judge_next`: unjudged documents whose grades could move a difference most
pools           `pool`: documents that several systems return, matched by query and document
powered         `prediction_powered`: few labels of people, and many of a judge that may err
sampling        `sample_queries`: which queries to judge, with weights that undo how they were drawn
positions       `propensities`: how likely each rank is to be looked at, from a log of clicks
drift           how much of a change came from within slices, and how much from their mix
runs_by_date    the runs of a history, and what a series of them says
over_time       `History`: means by date in one file, and since when a change is sure
negatives       `correct_sampled`: measures over all items, from ranks among sampled negatives
counterfactual  estimates from click logs over all queries
online          `online_agreement`: how far what was measured offline says what is measured online
rank_agreement  how far two rankings agree
shown           the items of users' first ranks: coverage, evenness, personalisation
item_facts      items in training, their categories and vectors
exposure        `catalogue`: which items users are shown
"""
