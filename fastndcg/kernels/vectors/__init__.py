"""Vector blocks, one module for each step of scoring. A plain function beside each block defines it."""
