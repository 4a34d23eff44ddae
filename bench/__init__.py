"""Benchmarks against the roofline and other tools. README.md in this folder describes the method."""

import os

# measure compiled kernels, unless a row says otherwise: with `auto` a short benchmark would run plain kernels
# until compiling pays
os.environ.setdefault("FASTNDCG_KERNELS", "compiled")
