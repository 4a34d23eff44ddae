"""How functions are compiled and cached.

driver       what Python calls: cached on disk
block        a piece of drivers, which Python cannot call
inlined      a block that becomes part of its only caller
apart        a block that stays a function of its own
allocating   a block that allocates memory
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import binding
from numba import types
from numba.core import cgutils, imputils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.runtime import _nrt_python
from numba.extending import intrinsic

from fastndcg.errors import warn
from fastndcg.kernels import caching
from fastndcg.kernels.llvm import const, own_function

F = TypeVar("F", bound=Callable[..., Any])


# versions of Numba whose private parts, used below, were looked at; with a later one compiling and loading take longer
KNOWN = numba.version_info.short < (0, 69)


class _Flags(Flags):
    """Numba's flags, compared by those that are set.

    They are part of what Numba looks up for each function that an operation may be. By all there are that took a tenth of a
    cold compilation.
    """

    def __eq__(self, other: object) -> bool:
        return bool(self._values == other._values if isinstance(other, _Flags) else super().__eq__(other))

    def __hash__(self) -> int:
        return _HASH_OF_FLAGS


_HASH_OF_FLAGS = hash(Flags())  # theirs is of the names of options, so that all are the same


class _Quick(Compiler):
    """Numba's compiler, without what it does again and again."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, local: Any
    ) -> None:
        super().__init__(typing, target, library, args, returned, _Flags(flags), local)
        # of a copy that is this compiler's own. To ask LLVM for the size of each variable took a tenth of the time
        self.state.targetctx.get_abi_sizeof = partial(_size_of, self.state.targetctx.target_data)


def _size_of(target: Any, kind: Any) -> int:
    """Bytes of a value of one of LLVM's types."""
    name = str(kind)
    if name not in _sizes:
        _sizes[name] = kind.get_abi_size(target)
    return _sizes[name]


_sizes: dict[str, int] = {}


class _LinkedLibrary(JITCodeLibrary):
    """The code of a block, which only drivers optimise and make machine code of, as a part of themselves.

    Numba would do so for each block by itself, and again in each of its callers: that took a third of a cold compilation.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """There is no code here to run in an environment."""

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002, as Numba calls it
        """What Python calls instead, to be told that the block cannot be called."""
        return binding.address_of_symbol("PyObject_Call") or 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Linked(_Quick):
    """The compiler of blocks."""

    def define_pipelines(self) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# what lets Python call a function: for tables and scratch memory it took a fifth of a cold compilation
UNWRAPPED: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}
if KNOWN:
    _OPTIONS["pipeline_class"] = _Quick
    UNWRAPPED["pipeline_class"] = _Linked


def block(function: F) -> F:
    """Compile a piece of drivers, which Python cannot call; it is cached as a part of them only.

    Blocks do not allocate, so they are compiled without reference counting: with it, an atomic addition for each array that
    a query's blocks touch took 2 microseconds a query.
    """
    return numba.njit(_nrt=False, **UNWRAPPED)(function)


def inlined(function: F) -> F:
    """A block that becomes part of its only caller, because it takes all tables and all scratch memory.

    To pass some forty arrays costs 0.1 microseconds a call. Inlined by Numba and not by LLVM, which would optimise the block
    once for itself and again in each caller: cold compilation took 34 s so, and takes a third of it.
    """
    return numba.njit(_nrt=False, inline="always", **UNWRAPPED)(function)


def apart(function: F) -> F:
    """A block that stays a function of its own, and gets no more of its contiguous arrays than data and lengths.

    For blocks with loops: within their caller they would slow each other down (see `own_function`). To call a plain block takes
    seven words for each array, and two more for each dimension after the first. It must not allocate: nobody would learn that
    there was no memory.
    """
    if numba.config.DISABLE_JIT:
        return function
    compiled = numba.njit(_nrt=False, forceinline=True, **UNWRAPPED)(function)

    def typed(typing: Any, *arguments: Any) -> Any:
        signature = typing.resolve_value_type(compiled).get_call_type(typing, arguments, {})
        result = compiled.get_compile_result(signature)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def emit(inside: Any, *given: Any) -> Any:
                values = [
                    _as_passed(context, inside, kind, value)
                    for kind, value in zip(signature.args, given, strict=True)
                ]
                return context.call_internal_no_propagate(inside, result.fndesc, signature, values)[1]

            context.add_linking_libs([result.library])
            return own_function(function.__name__, emit)(context, builder, signature, arguments)

        return signature, generate

    parameters = list(inspect.signature(function).parameters.values())
    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    typed.__name__ = function.__name__
    return intrinsic(typed)


def _as_passed(context: Any, builder: Any, kind: Any, given: Any) -> Any:
    """What compiled code takes for a contiguous array, a tuple or a number that was taken apart."""
    if isinstance(kind, types.BaseTuple):
        parts = [_as_passed(context, builder, *each) for each in zip(kind.types, given, strict=True)]
        return context.make_tuple(builder, kind, parts)
    if not isinstance(kind, types.Array):
        return given
    from numba.np.arrayobj import populate_array  # here, because only compiling needs it: 20 ms

    array = context.make_array(kind)(context, builder)
    itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [const(itemsize)]
    for length in reversed(given.shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, given.data.address, given.shape, strides, itemsize, None)
    return array._getvalue()


def allocating(function: F) -> F:
    """A block that allocates memory."""
    return numba.njit(_nrt=True, **UNWRAPPED)(function)


@intrinsic
def compiled_empty(typing: Any, shape: Any, kind: Any) -> Any:
    """As `np.empty`, which Numba compiles as a function of its own for each dtype and number of dimensions, 0.05 s each."""
    returned = types.Array(kind.dtype, len(shape) if isinstance(shape, types.BaseTuple) else 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import _empty_nd_impl  # here, because only compiling needs it: 20 ms

        lengths = [arguments[0]]
        if isinstance(signature.args[0], types.BaseTuple):
            lengths = cgutils.unpack_tuple(builder, arguments[0])
        made = _empty_nd_impl(context, builder, returned, lengths)
        return imputils.impl_ret_new_ref(context, builder, returned, made._getvalue())

    return returned(shape, kind), generate


empty = compiled_empty if KNOWN and not numba.config.DISABLE_JIT else np.empty


class _Folder(InTreeCacheLocator):
    """The folder where drivers are kept, which may be one that can only be read."""

    def __init__(self, function: Any, file: str, kept: Path) -> None:
        super().__init__(function, file)
        self._cache_path = str(kept)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Folder | None:
        kept = caching.folder()
        return None if kept is None else cls(function, file, kept)

    def ensure_cache_path(self) -> None:
        caching.make(Path(self._cache_path))

    def get_source_stamp(self) -> str:
        return ""  # the folder's name has a digest of the source


class _Located(CompileResultCacheImpl):
    _locator_classes = (_Folder,)


class _Kept(FunctionCache):
    """Numba's cache of a driver, in our folder; what cannot be read or written is compiled again by the next process."""

    _impl_class = _Located

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError):
            return super()._load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell_unkept(f"{self._cache_path}: {error.strerror or error}")


class _Nowhere(NullCache):
    """In place of a cache where there is no folder for one."""

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ARG002, as Numba calls it
        _tell_unkept("a folder of the user, who has none")


@cache
def _tell_unkept(where: str) -> None:
    warn(
        f"compiled kernels cannot be kept in {where}. Every process compiles them again, which takes it many seconds; "
        "set NUMBA_CACHE_DIR to a folder that can be written."
    )


class _LoadedAlone(_Kept):
    """Such a cache, which loads a driver without what only compiling needs.

    Numba would first register all functions that it can compile, and import SciPy where it is installed: that took 0.3 s of the
    0.8 s of a first score. A driver that has to be compiled after all waits for it then.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # the one part that code needs to run: where the functions are that give it memory
        for name, address in _nrt_python.c_helpers.items():
            binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def driver(**options: Any) -> Callable[[F], F]:
    """Compile what Python calls; it is kept on disk (see `caching`) where a folder can be written, and found where it can be read."""

    def decorate(function: F) -> F:
        dispatcher = numba.njit(**_OPTIONS, **options)(function)
        if hasattr(dispatcher, "enable_caching"):  # not where NUMBA_DISABLE_JIT leaves a plain function
            try:
                # code that lacks a part ends the process
                dispatcher._cache = _LoadedAlone(function) if KNOWN else _Kept(function)
            except (
                RuntimeError
            ):  # without a home, or where none of the places that Numba was told to take can be written
                dispatcher._cache = _Nowhere()
        return dispatcher

    return decorate


def is_compiled(driver: Any) -> bool:
    """Whether a driver was compiled before, by this process or into a cache on disk, as far as that can be told."""
    return numba.config.DISABLE_JIT or bool(driver.overloads) or caching.holds(driver.__name__)
