"""How a function is compiled, kept and chosen.

dispatch     chooses the plain or the compiled driver; all other modules call drivers through it
decorators   mark a function as a driver, a block and so on; no effect in plain Python
jit          the decorators for compiled functions, with Numba's public interface
private_numba
             the same with Numba's private interface, which takes less time, for versions that were tested
kernel_cache
             the folder that keeps compiled drivers
llvm         vector code: values whose operators write instructions
intrinsics   intrinsics of Numba whose code a vector block writes
"""
