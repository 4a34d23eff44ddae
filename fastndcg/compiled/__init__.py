"""The compiled kernels: the same files as `fastndcg.kernels`. `fastndcg.kernels.compile.worlds` imports this
package when it pays.

Importing one of its modules imports Numba and compiles nothing.
"""

from fastndcg import kernels

__path__ = kernels.__path__
