"""Intrinsics of Numba whose code a vector block writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .llvm import Code, Data, Value, ir, types


def typing_of(plain: Callable[..., Any], emit: Callable[..., Any], *attributes: str) -> Callable[..., Any]:
    """The typing function of an intrinsic with the parameters and the result of a plain function, whose code
    `emit(code, ...)` writes as an LLVM function with these attributes.

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

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = signature.return_type in (types.void, types.none)
        passed: list[Any] = []  # numbers, and the addresses and lengths of arrays
        for kind, value in zip(signature.args, arguments, strict=True):
            if not isinstance(kind, types.Array):
                passed.append(value)
                continue
            if kind.layout != "C":
                raise TypeError(f"{kind} is not contiguous; pass the array that it is a part of")
            array = context.make_array(kind)(context, builder, value)
            passed += [array.data, *(builder.extract_value(array.shape, axis) for axis in range(kind.ndim))]
        mangled = ".".join([emit.__name__, *(str(kind) for kind in signature.args)])
        function = builder.module.globals.get(mangled)
        if function is None:
            returned = ir.VoidType() if nothing else context.get_value_type(signature.return_type)
            # pointers without a type, which those of Numba have
            pointers = [ir.PointerType() if value.type.is_pointer else value.type for value in passed]
            function = ir.Function(builder.module, ir.FunctionType(returned, pointers), mangled)
            function.linkage = "internal"
            for attribute in ("nounwind", *attributes):
                function.attributes.add(attribute)
            inside = ir.IRBuilder(function.append_basic_block("entry"))
            code, left = Code(inside), iter(function.args)

            def put_together(kind: Any) -> Value | Data:
                if not isinstance(kind, types.Array):
                    return Value(code, next(left))
                address = next(left)
                lengths = [Value(code, next(left)) for _ in range(kind.ndim)]
                return Data(code, address, _element(kind.dtype), lengths)

            found = emit(code, *map(put_together, signature.args))
            inside.ret_void() if nothing else inside.ret(found.raw)
        called = builder.call(function, passed)
        return context.get_dummy_value() if nothing else called

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = inspect.Signature([first, *parameters.values()])  # type: ignore[attr-defined]
    typed.__name__ = plain.__name__
    return typed


def _element(dtype: Any) -> Any:
    """The LLVM type of an element of an array."""
    if isinstance(dtype, types.Float):
        return ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType()
    return ir.IntType(8 if isinstance(dtype, types.Boolean) else dtype.bitwidth)
