"""Vector blocks, one module for each step of scoring. A plain function beside each block defines it.

selection  bounds of scores, and the documents that reach them
ranking    ranks of one list by counting greater scores, and of eight lists by sorting them together
sums       gains by rank, ideals, and sums over ranks
"""
