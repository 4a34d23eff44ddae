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

import operator
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, typed_passes, untyped_passes
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

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

    def add_ir_module(self, module: Any) -> None:
        for function in module.functions:
            if not function.is_declaration and not function.linkage:
                function.linkage = "linkonce_odr"
        self._text = cgutils.normalize_ir_text(str(module))

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        module = binding.parse_assembly(self._text)
        for library in _linked(self._linking_libraries):
            module.link_in(*_part_of(library))
        return module


def _linked(libraries: Any, found: Any = None) -> Any:
    """All libraries that these need, and they themselves."""
    found = {} if found is None else found
    for library in libraries:
        if library not in found:
            found[library] = None
            if isinstance(library, _LinkedLibrary):
                _linked(library._linking_libraries, found)
    return found


def _part_of(library: Any) -> tuple[Any, bool]:
    """The module of a library without those that it needs, and whether others use it too."""
    if isinstance(library, _LinkedLibrary):
        return binding.parse_assembly(library._text), False
    return library._get_module_for_linking(), True


class _Context(CPUContext):
    """Lowers blocks. Numba's own code for an element of an array has five times as many instructions: it
    copies the array's fields to memory and back, and lets indices below 0 count from the end.
    """

    def get_function(self, fn: Any, sig: Any, *more: Any, **options: Any) -> Any:
        key = getattr(fn, "typing_key", None)
        emits: dict[Any, Any] = {operator.getitem: self._element, operator.setitem: self._set_element}
        emit = emits.get(key)
        if emit and isinstance(array := sig.args[0], types.Array) and not self.enable_boundscheck:
            places = sig.args[1].types if isinstance(sig.args[1], types.BaseTuple) else (sig.args[1],)
            is_element = len(places) == array.ndim and not isinstance(sig.args[-1], types.Array)
            if not is_element and key is operator.getitem and array.layout == "C":
                is_element, emit = True, self._part
            if is_element and all(isinstance(place, types.Integer) for place in places):
                return partial(emit, sig, places)
        return super().get_function(fn, sig, *more, **options)

    def declare_function(self, module: Any, fndesc: Any) -> Any:
        """Say that nobody writes to a tuple that is passed by its address: its fields can be read once."""
        function = super().declare_function(module, fndesc)
        named = {argument.name: argument for argument in function.args}
        for name, kind in zip(fndesc.args, fndesc.argtypes, strict=True):
            if isinstance(kind, Reference) and f"arg.{name}" in named:  # not so in declarations
                named[f"arg.{name}"].add_attribute("noalias")
        return function

    def _at(self, builder: Any, kind: Any, array: Any, places: Any, index: Any) -> Any:
        """The address of an element, or of the first of a part."""
        is_tuple = isinstance(index.type, ir.ArrayType | ir.LiteralStructType)
        indices = cgutils.unpack_tuple(builder, index) if is_tuple else [index]
        indices = [self.cast(builder, *each, types.intp) for each in zip(indices, places, strict=True)]
        data = builder.extract_value(array, 4)
        if kind.layout != "C":
            offset = None
            for axis, each in enumerate(indices):
                more = builder.mul(each, builder.extract_value(array, [6, axis]))
                offset = more if offset is None else builder.add(offset, more)
            return cgutils.pointer_add(builder, data, offset)
        offset = indices[0]
        for axis in range(1, kind.ndim):
            offset = builder.mul(offset, builder.extract_value(array, [5, axis]))
            if axis < len(indices):
                offset = builder.add(offset, indices[axis])
        return builder.gep(data, [offset], inbounds=True)

    def _element(self, sig: Any, places: Any, builder: Any, arguments: Any, *_: Any) -> Any:
        kind, (array, index) = sig.args[0], arguments
        return self.unpack_value(builder, kind.dtype, self._at(builder, kind, array, places, index))

    def _set_element(self, sig: Any, places: Any, builder: Any, arguments: Any, *_: Any) -> Any:
        kind, (array, index, value) = sig.args[0], arguments
        value = self.cast(builder, value, sig.args[2], kind.dtype)
        self.pack_value(builder, kind.dtype, value, self._at(builder, kind, array, places, index))

    def _part(self, sig: Any, places: Any, builder: Any, arguments: Any, *_: Any) -> Any:
        """An array of fewer axes."""
        kind, array = sig.args[0], arguments[0]
        address = self._at(builder, kind, array, places, arguments[1])
        part = ir.Constant(self.get_value_type(sig.return_type), ir.Undefined)
        left = range(len(places), kind.ndim)
        lengths = [builder.extract_value(array, [5, axis]) for axis in left]
        total = lengths[0]
        for each in lengths[1:]:
            total = builder.mul(total, each)
        owner, parent, itemsize = (builder.extract_value(array, field) for field in (0, 1, 3))
        fields = [owner, parent, total, itemsize, address]
        for place, each in enumerate(fields):
            part = builder.insert_value(part, each, place)
        for to, axis in enumerate(left):
            part = builder.insert_value(part, lengths[to], [5, to])
            part = builder.insert_value(part, builder.extract_value(array, [6, axis]), [6, to])
        return part


class _Linked(CompilerBase):
    """The compiler of blocks."""

    def define_pipelines(self) -> Any:
        self.state.targetctx.__class__ = _Context
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        passes = PassManager("block")
        for each in _PASSES:
            passes.add_pass(each, "")
        passes.finalize()
        return [passes]


# without those that do nothing in a block, and those that count references: half of Numba's passes
_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


class _WholeLibrary(JITCodeLibrary):
    """The code of a serial driver, together with that of its blocks."""

    def _optimize_functions(self, module: Any) -> None:
        """Do nothing: the driver and its blocks are optimised together."""

    def finalize(self) -> None:
        for library in _linked(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(*_part_of(library))
        self._linking_libraries.clear()
        super().finalize()


class _Whole(Compiler):
    """The compiler of serial drivers, and of blocks within them."""

    def define_pipelines(self) -> Any:
        if not self.state.flags.auto_parallel.enabled:
            codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
            self.state.library = _WholeLibrary(codegen, name)
            self.state.library.enable_object_caching()
        return super().define_pipelines()

    def _compile_core(self) -> Any:
        typing, contexts = self.state.typingctx, (self.state.typingctx, cpu_target.target_context)
        resolve, resolved = typing._resolve_user_function_type, {}

        def resolve_once(function: Any, arguments: Any, named: Any, literals: Any = None) -> Any:
            kind = function if isinstance(function, types.Type) else typing._lookup_global(function)
            if isinstance(kind, types.Dispatcher):  # for a literal 0 it would be compiled a second time
                return resolve(kind, tuple(map(types.unliteral, arguments)), named, literals)
            if not isinstance(kind, types.Function):
                return resolve(function, arguments, named, literals)
            key = kind, arguments, tuple(named.items())
            if key not in resolved:
                resolved[key] = resolve(kind, arguments, named, literals)
            return resolved[key]

        for context in contexts:
            context.load_additional_registries = partial(_install_again, context)
        typing._resolve_user_function_type = resolve_once
        try:
            return super()._compile_core()
        finally:
            del typing._resolve_user_function_type
            for context in contexts:
                del context.load_additional_registries


def _install_again(context: Any) -> None:
    """What was registered since; Numba would import the modules again in which its own functions register."""
    for registry in list(context._registries):
        context.install_registry(registry)


DRIVER: dict[str, Any] = {"no_cfunc_wrapper": True, "pipeline_class": _Whole}
# Without the wrapper by which Python calls a function: for tables and scratch memory it took a fifth of a
# cold compilation. And without reference counting, because blocks do not allocate: an atomic addition for
# each array took 2 microseconds a query.
BLOCK: dict[str, Any] = {**DRIVER, "no_cpython_wrapper": True, "pipeline_class": _Linked, "_nrt": False}
ALLOCATING: dict[str, Any] = {**BLOCK, "_nrt": True}
UNCOUNTED: dict[str, Any] = {"_nrt": False}  # of a driver that frees its memory itself


# ---- tuples by their address, and memory without reference counting ----


class Reference(types.Type):
    """The address of a NamedTuple. Passed by value, five of them are 550 arguments of a block."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"reference({kind})")


@register_model(Reference)
class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.kind).get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        kind = dict(zip(reference.kind.fields, reference.kind.types, strict=True)).get(name)
        return Reference(kind) if isinstance(kind, types.BaseNamedTuple) else kind


@lower_getattr_generic(Reference)
def _field(context: Any, builder: Any, reference: Reference, address: Any, name: str) -> Any:
    place = reference.kind.fields.index(name)
    at = cgutils.gep_inbounds(builder, address, 0, place)
    return at if isinstance(reference.kind.types[place], types.BaseNamedTuple) else builder.load(at)


@intrinsic
def reference(typing: Any, value: Any) -> Any:
    """The address of a tuple, which is kept until the function returns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(value)(value), generate


@intrinsic
def empty(typing: Any, shape: Any, dtype: Any) -> Any:
    """An array that `release` frees. Its data is at address 0 where memory is lacking."""
    axes = len(shape) if isinstance(shape, types.BaseTuple) else 1
    made = types.Array(dtype.dtype, axes, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sizes, kinds = [arguments[0]], [shape]
        if isinstance(shape, types.BaseTuple):
            sizes, kinds = cgutils.unpack_tuple(builder, arguments[0]), shape.types
        lengths = [context.cast(builder, *each, types.intp) for each in zip(sizes, kinds, strict=True)]
        itemsize = context.get_abi_sizeof(context.get_data_type(made.dtype))
        strides = [context.get_constant(types.intp, itemsize)]
        for length in reversed(lengths):
            strides.insert(0, builder.mul(strides[0], length))
        owner = builder.call(
            _runtime(builder, "MemInfo_alloc_aligned", cgutils.voidptr_t, cgutils.intp_t, ir.IntType(32)),
            [strides[0], ir.IntType(32)(context.get_preferred_array_alignment(made.dtype))],
        )
        data = cgutils.alloca_once_value(builder, owner)
        with builder.if_then(cgutils.is_not_null(builder, owner)):
            found = builder.call(
                _runtime(builder, "MemInfo_data", cgutils.voidptr_t, cgutils.voidptr_t), [owner]
            )
            builder.store(found, data)
        array = context.make_array(made)(context, builder)
        array.meminfo, array.parent = owner, cgutils.get_null_value(array.parent.type)
        array.itemsize = strides[-1]
        array.nitems = builder.sdiv(strides[0], strides[-1])
        array.data = builder.bitcast(builder.load(data), array.data.type)
        array.shape = cgutils.pack_array(builder, lengths)
        array.strides = cgutils.pack_array(builder, strides[1:])
        return array._getvalue()

    return made(shape, dtype), generate


@intrinsic
def keep_arrays(typing: Any, memory: Any) -> Any:
    """The address of a tuple of arrays that `empty` made, which `release` frees with them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = context.get_abi_sizeof(arguments[0].type)
        allocate = _runtime(builder, "Allocate", cgutils.voidptr_t, cgutils.intp_t)
        address = builder.call(allocate, [cgutils.intp_t(size)])
        kept = builder.bitcast(address, arguments[0].type.as_pointer())
        with builder.if_then(cgutils.is_not_null(builder, address)):
            builder.store(arguments[0], kept)
        return kept

    return Reference(memory)(memory), generate


@intrinsic
def is_allocated(typing: Any, memory: Any) -> Any:
    """Whether there was memory for a tuple that was kept, and for all of its arrays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lacks = cgutils.alloca_once_value(builder, cgutils.true_bit)
        with builder.if_then(cgutils.is_not_null(builder, arguments[0])):
            builder.store(cgutils.false_bit, lacks)
            for owner in _owners(builder, memory.kind, arguments[0]):
                is_null = cgutils.is_null(builder, owner)
                builder.store(builder.or_(builder.load(lacks), is_null), lacks)
        return builder.not_(builder.load(lacks))

    return types.boolean(memory), generate


@intrinsic
def release(typing: Any, memory: Any) -> Any:
    """Free a tuple that was kept, and its arrays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        free_array = _runtime(builder, "MemInfo_call_dtor", ir.VoidType(), cgutils.voidptr_t)
        free = _runtime(builder, "Free", ir.VoidType(), cgutils.voidptr_t)
        with builder.if_then(cgutils.is_not_null(builder, arguments[0])):
            for owner in _owners(builder, memory.kind, arguments[0]):
                with builder.if_then(cgutils.is_not_null(builder, owner)):
                    builder.call(free_array, [owner])
            builder.call(free, [builder.bitcast(arguments[0], cgutils.voidptr_t)])
        return context.get_dummy_value()

    return types.void(memory), generate


def _runtime(builder: Any, name: str, returned: Any, *arguments: Any) -> Any:
    """A function of Numba's runtime."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(returned, arguments), f"NRT_{name}")


def _owners(builder: Any, kind: Any, address: Any) -> Iterator[Any]:
    """The memory of each array of a tuple."""
    if isinstance(kind, types.Array):
        yield builder.load(cgutils.gep_inbounds(builder, address, 0, 0))
    elif isinstance(kind, types.BaseTuple):
        for place, each in enumerate(kind.types):
            yield from _owners(builder, each, cgutils.gep_inbounds(builder, address, 0, place))


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
