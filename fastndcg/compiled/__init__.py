"""The kernels once more, compiled: the same files as `fastndcg.kernels`, whose `worlds` imports this when it pays.

Importing one of its modules imports Numba and compiles nothing.
"""

from fastndcg import kernels

__path__ = kernels.__path__
