"""Vector blocks, one module for each step of scoring. A plain function beside each block defines it.

keeping   bounds of scores, and the documents that reach them
ordering  ranks of one list by counting greater scores, and of eight lists by sorting them together
summing   gains by rank, ideals, and sums over ranks
"""
