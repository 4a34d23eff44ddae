"""Vector blocks, one module for each step of scoring; each block stands beside the plain function that defines it."""
