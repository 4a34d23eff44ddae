"""What comes out.

scores  `Scores`: values for each query, means, summaries, slices, tables and files
"""
