"""What trec_eval prints, byte for byte.

printed  its measures, in its order, with its sums, means and rounding
"""
