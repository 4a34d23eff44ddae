"""Intrinsics of Numba whose code a vector block writes: as a function of its own or a part of the caller."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .llvm import Code, Data, Value, ir, types


def own_function(name: str, emit: Callable[..., Any], *, unrolled: bool = True) -> Callable[..., Any]:
    """The code of an intrinsic as a separate LLVM function: `emit(code, ...)` writes it.

    Inside the caller the loops of a block would compete for registers with some forty arrays, and the caller
    would compute their loop invariants for each query, whether the loops run or not. `unrolled` costs more
    time before a loop over few vectors than it saves.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        passed = _take_apart(context, builder, signature, arguments)
        nothing = signature.return_type in (types.void, types.none)
        mangled = ".".join([name, *(str(kind) for kind in signature.args)])
        function = builder.module.globals.get(mangled)
        if function is None:
            returned = ir.VoidType() if nothing else context.get_value_type(signature.return_type)
            pointers = [ir.PointerType() if value.type.is_pointer else value.type for value in passed]
            kind = ir.FunctionType(returned, pointers)
            function = ir.Function(builder.module, kind, mangled)
            function.linkage = "internal"
            function.attributes.add("noinline")
            function.attributes.add("nounwind")
            if not unrolled:
                function.attributes.add("optsize")
            inside = ir.IRBuilder(function.append_basic_block("entry"))
            result = _written(emit, inside, signature, function.args)
            if nothing:
                inside.ret_void()
            else:
                inside.ret(result)
        called = builder.call(function, passed)
        return context.get_dummy_value() if nothing else called

    return generate


def within_caller(emit: Callable[..., Any]) -> Callable[..., Any]:
    """The code of an intrinsic as a part of its caller; `emit` is as for `own_function`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        passed = _take_apart(context, builder, signature, arguments)
        values = [_untyped(builder, value) if value.type.is_pointer else value for value in passed]
        found = _written(emit, builder, signature, values)
        return context.get_dummy_value() if found is None else found

    return generate


def like(plain: Callable[..., Any], generate: Callable[..., Any]) -> Callable[..., Any]:
    """The typing function of an intrinsic that has the parameters and the result of a plain function.

    Integers are int64 unless annotated as uint64; floats have the dtype of the first array. The result has
    the annotated type; for Any, that dtype.
    """
    declared = {"int": types.int64, "np.uint64": types.uint64, "bool": types.boolean, "None": types.void}
    parameters, annotated = inspect.signature(plain).parameters, plain.__annotations__

    def typed(typing: Any, *arguments: Any) -> Any:
        dtype: Any = next((kind.dtype for kind in arguments if isinstance(kind, types.Array)), None)

        def kind_of(name: str, kind: Any) -> Any:
            if isinstance(kind, types.Integer):
                return declared.get(annotated[name], types.int64)
            return dtype if isinstance(kind, types.Float) else kind

        kinds = map(kind_of, parameters, arguments)
        return declared.get(annotated["return"], dtype)(*kinds), generate

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = inspect.Signature([first, *parameters.values()])  # type: ignore[attr-defined]
    typed.__name__ = plain.__name__
    return typed


def _written(emit: Callable[..., Any], builder: Any, signature: Any, values: Any) -> Any:
    code, left = Code(builder), iter(values)

    def put_together(kind: Any) -> Value | Data:
        if not isinstance(kind, types.Array):
            return Value(code, next(left))
        address = next(left)
        lengths = [Value(code, next(left)) for _ in range(kind.ndim)]
        return Data(code, address, _element(kind.dtype), lengths)

    found = emit(code, *map(put_together, signature.args))
    return found.raw if isinstance(found, Value) else found


def _untyped(builder: Any, pointer: Any) -> Any:
    """A pointer without a type: Numba's pointers have one, which a copy through memory removes."""
    memory = Code(builder).room(pointer.type)
    builder.store(pointer, memory.address)
    return builder.load(memory.address, typ=ir.PointerType())


def _take_apart(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """The arguments of a block: numbers, and the addresses and lengths of arrays."""
    parts = []
    for kind, value in zip(signature.args, arguments, strict=True):
        if not isinstance(kind, types.Array):
            parts.append(value)
            continue
        if kind.layout != "C":
            raise TypeError(f"{kind} is not contiguous; pass the array that it is a part of")
        array = context.make_array(kind)(context, builder, value)
        lengths = [builder.extract_value(array.shape, axis) for axis in range(kind.ndim)]
        parts += [array.data, *lengths]
    return parts


def _element(dtype: Any) -> Any:
    """The LLVM type of an element of an array."""
    if isinstance(dtype, types.Float):
        return ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType()
    return ir.IntType(8 if isinstance(dtype, types.Boolean) else dtype.bitwidth)
