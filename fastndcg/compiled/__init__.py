"""The compiled kernels: the same files as `fastndcg.kernels`. `kernels.compile.dispatch` imports this package
when it pays.

Importing one of its modules imports Numba and compiles nothing.
"""

from fastndcg import kernels

__path__ = kernels.__path__
