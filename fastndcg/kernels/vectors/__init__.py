"""Blocks of vectors, by the steps that they serve; each stands beside the plain function that defines it."""
