"""The only module that uses private parts of Numba. `jit` imports it for versions that were tested, and
works without it.

DRIVER, BLOCK    options for njit that leave out repeated work of Numba's compiler
keep             sets the folder of a driver, and how it is loaded
address_of       the address of a driver's code
call_at          a call of the code at an address

A process that forks waits until no compilation runs. Otherwise the child would inherit a locked lock, which
no thread of it can release.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import _nrt_python
from numba.extending import intrinsic

from fastndcg.kernels.compile import kernel_cache

# ---- compiling ----


class _LinkedLibrary(JITCodeLibrary):
    """The code of a block, which is optimised and made machine code only as a part of drivers. Numba would do
    that for each block, and again in each of its callers: a third of a cold compilation.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: a block has no code that runs in an environment."""

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002, as Numba calls it
        """The address that Python calls for a block: it raises an error, because blocks cannot be called."""
        return binding.address_of_symbol("PyObject_Call") or 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Linked(Compiler):
    """The compiler of blocks."""

    def define_pipelines(self) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


DRIVER: dict[str, Any] = {"no_cfunc_wrapper": True}
# Without the wrapper by which Python calls a function: for tables and scratch memory it took a fifth of a
# cold compilation. And without reference counting, because blocks do not allocate: an atomic addition for
# each array took 2 microseconds a query.
BLOCK: dict[str, Any] = {**DRIVER, "no_cpython_wrapper": True, "pipeline_class": _Linked, "_nrt": False}
ALLOCATING: dict[str, Any] = {**BLOCK, "_nrt": True}


# ---- keeping what was compiled ----


class _Folder(InTreeCacheLocator):
    """The folder of compiled drivers, which may be read-only."""

    def __init__(self, function: Any, file: str, path: Path) -> None:
        super().__init__(function, file)
        self._cache_path = str(path)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Folder | None:
        path = kernel_cache.folder()
        return None if path is None else cls(function, file, path)

    def ensure_cache_path(self) -> None:
        kernel_cache.make(Path(self._cache_path))

    def get_source_stamp(self) -> str:
        return ""  # the folder's name has a digest of the source


class _Located(CompileResultCacheImpl):
    _locator_classes = (_Folder,)

    def reduce(self, compiled: Any) -> tuple[Any, ...]:
        """Without the environments of blocks, which only code that calls Python needs. With them, loading
        imported the modules of Numba's own blocks: a third of the time of a first score.
        """
        *parts, _ = super().reduce(compiled)
        return (*parts, ())


class _Kept(FunctionCache):
    """Numba's cache of a driver, in our folder. Where a file cannot be read or written, the next process
    compiles again.

    A driver is loaded without the preparations for compiling, 0.3 s of the 0.8 s of a first score: Numba
    would register all functions that it can compile, and import SciPy where it is installed.
    """

    _impl_class = _Located

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # compiled code needs only the addresses of the functions that allocate memory
        for name, address in _nrt_python.c_helpers.items():
            binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError):
            return super()._load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with kernel_cache.alone("index"):  # a file that each process reads, adds to and writes
                super().save_overload(sig, data)
        except OSError as error:
            kernel_cache.tell_unkept(f"{self._cache_path}: {error.strerror or error}")


class _Nowhere(NullCache):
    """Replaces the cache where there is no folder for it."""

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ARG002, as Numba calls it
        kernel_cache.tell_unkept("a folder of the user, who has none")


def keep(dispatcher: Any, function: Any) -> None:
    try:
        # code without the addresses of `load_overload` would end the process
        dispatcher._cache = _Kept(function)
    except RuntimeError:  # the user has no home, or Numba finds no folder that can be written
        dispatcher._cache = _Nowhere()


def is_kept(dispatcher: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether the folder has code for arguments of these types."""
    kept = dispatcher._cache
    if isinstance(kept, NullCache):
        return False
    with suppress(OSError):
        return kept._index_key(kinds, dispatcher.targetctx.codegen()) in kept._cache_file._load_index()
    return False


def address_of(dispatcher: Any, arguments: tuple[Any, ...]) -> int:
    """The address of the code of a driver that is compiled for such arguments."""
    compiled = dispatcher.overloads[tuple(dispatcher.typeof_pyval(argument) for argument in arguments)]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


@intrinsic
def call_at(typing: Any, address: Any, chunks: Any, documents: Any, plan: Any, out: Any) -> Any:
    """Call a serial driver by its address; returns 1 where it failed, and 0 otherwise."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, kinds = context.call_conv, signature.args[1:]
        # Numba needs a pointer with the type of the function
        pointer = ir.PointerType(convention.get_function_type(types.none, kinds))
        function = builder.inttoptr(arguments[0], pointer)
        status, _ = convention.call_function(builder, function, types.none, kinds, arguments[1:])
        return builder.zext(status.is_error, ir.IntType(64))

    return types.int64(address, chunks, documents, plan, out), generate


# ---- forks ----

if hasattr(os, "register_at_fork"):
    _lock = global_compiler_lock._lock
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
