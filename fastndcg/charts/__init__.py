"""Charts: rows in, an Altair chart out. They know no other part of the package.

theme   colours, texts and limits of size of all charts; alone imports Altair
marks   lines, intervals and bars, each from a list of rows
series  `history` and `over_time`: measures by round of training and by date
"""
