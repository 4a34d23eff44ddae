"""Vector blocks, one module for each step of scoring. A plain function beside each block defines it.

bounds        least scores of the first ranks
keeping       the documents that reach a bound
ordering      ranks of one list, by counting greater scores
side_by_side  ranks of eight lists, by sorting them together
summing       gains by rank, ideals, and sums over ranks
"""
