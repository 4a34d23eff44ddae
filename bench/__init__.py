"""How fast, against the roofline and against every rival that installs; README.md beside this file says how it is measured."""

import os

# compiled code is measured, unless a row says otherwise: with `auto` a short benchmark would run plain kernels until compiling pays
os.environ.setdefault("FASTNDCG_KERNELS", "compiled")
