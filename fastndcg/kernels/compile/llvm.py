"""Building blocks of vector code: loops, loads, stores and masks in LLVM IR.

Vectors of LANES documents are plain LLVM IR, so one source serves every processor: LLVM splits them where
registers are narrower. The last, partial vector of a list is read as the last LANES documents of the list;
lanes that were read before are masked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple

from .numba_parts import binding, ir, numba, types

LANES = 16
SIDE_BY_SIDE = 8  # queries whose rows are summed together
BINS = 2 * LANES  # groups of documents, whose greatest scores give a bound for the first ranks


def const(value: int, bits: int = 64) -> ir.Constant:
    return ir.Constant(ir.IntType(bits), value)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, const(0, 32))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    )


def lane_numbers(lanes: int, bits: int = 32) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(bits), lanes), list(range(lanes)))


class Pointer(NamedTuple):
    """A pointer and the LLVM type of the values at it. LLVM's own pointers have no type of their values."""

    address: Any
    kind: Any

    def at(self, builder: Any, offset: Any) -> Pointer:
        return Pointer(builder.gep(self.address, [offset], source_etype=self.kind), self.kind)

    def read(self, builder: Any, offset: Any = None) -> Any:
        return builder.load((self if offset is None else self.at(builder, offset)).address, typ=self.kind)

    def write(self, builder: Any, value: Any, offset: Any = None) -> None:
        builder.store(value, (self if offset is None else self.at(builder, offset)).address)


def room(builder: Any, kind: Any, n: int | None = None) -> Pointer:
    """Memory for one value, or for `n`, until the function returns."""
    with builder.goto_entry_block():
        return Pointer(builder.alloca(kind, None if n is None else const(n)), kind)


def variable(builder: Any, value: Any) -> Pointer:
    """Memory as by `room`, with a value in it."""
    memory = room(builder, value.type)
    memory.write(builder, value)
    return memory


def pointer_of(context: Any, builder: Any, kind: Any, array: Any) -> Pointer:
    """A pointer to the elements of an array."""
    data = context.make_array(kind)(context, builder, array).data
    return Pointer(_untyped(builder, data), element_kind(kind.dtype))


def _untyped(builder: Any, pointer: Any) -> Any:
    """A pointer without a type: Numba's pointers have one, which a copy through memory removes."""
    return Pointer(variable(builder, pointer).address, ir.PointerType()).read(builder)


def unpack(builder: Any, value: Any, n: int) -> list[Any]:
    """The n parts of an LLVM structure or array."""
    return [builder.extract_value(value, place) for place in range(n)]


def element_kind(dtype: Any) -> Any:
    """The LLVM type of an element of an array."""
    if isinstance(dtype, types.Float):
        return ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType()
    return ir.IntType(8 if isinstance(dtype, types.Boolean) else dtype.bitwidth)


def load(builder: Any, pointer: Pointer, offset: Any, kind: Any, align: int) -> Any:
    """Load a value of type `kind`, for example a vector, from an array, at an offset in elements."""
    return builder.load(pointer.at(builder, offset).address, typ=kind, align=align)


def store(builder: Any, value: Any, pointer: Pointer, offset: Any, align: int) -> None:
    builder.store(value, pointer.at(builder, offset).address, align=align)


def declare(builder: Any, name: str, kind: Any) -> Any:
    """An LLVM intrinsic, or a function of this module, by name."""
    found = builder.module.globals.get(name)
    return ir.Function(builder.module, kind, name) if found is None else found


@contextmanager
def for_steps(builder: Any, start: Any, stop: Any, step: Any, flags: tuple[str, ...] = ()) -> Iterator[Any]:
    """A loop over the numbers from `start` to before `stop`; `flags` are LLVM's for the addition."""
    check, body, done = (builder.append_basic_block(name) for name in ("for.cond", "for.body", "for.end"))
    before = builder.basic_block
    builder.branch(check)
    builder.position_at_end(check)
    index = builder.phi(start.type, "index")
    index.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, done)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, step, flags=flags), builder.basic_block)
    builder.branch(check)
    builder.position_at_end(done)


def for_range(builder: Any, count: Any) -> AbstractContextManager[Any]:
    """A loop over the numbers from 0 to before `count`."""
    return for_steps(builder, const(0), count, const(1), flags=("nsw",))


def bits_of(kind: Any) -> int:
    """The width of an LLVM number type, in bits."""
    return {ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or int(kind.width)


def compress(builder: Any, value: Any, mask: Any) -> Any:
    """The lanes where the mask is set, moved to the front."""
    kind = value.type
    element = "f" if isinstance(kind.element, ir.FloatType | ir.DoubleType) else "i"
    name = f"llvm.experimental.vector.compress.v{kind.count}{element}{bits_of(kind.element)}"
    function = declare(builder, name, ir.FunctionType(kind, [kind, mask.type, kind]))
    return builder.call(function, [value, mask, ir.Constant(kind, ir.Undefined)])


def compresses() -> bool:
    """Whether the processor has an instruction for `compress`. If not, it writes through memory by lane."""
    features = numba.config.CPU_FEATURES
    if features is None:
        with suppress(RuntimeError):  # LLVM does not know this processor
            return bool(numba.config.ENABLE_AVX and binding.get_host_cpu_features().get("avx512f"))
    return "+avx512f" in (features or "")


@contextmanager
def for_bits(builder: Any, word: Any) -> Iterator[Any]:
    """A loop over the places of the bits of a word that are set, from the lowest."""
    left = variable(builder, word)
    check, body, done = (builder.append_basic_block(name) for name in ("check", "body", "done"))
    builder.branch(check)
    builder.position_at_end(check)
    bits = left.read(builder)
    builder.cbranch(builder.icmp_unsigned("!=", bits, const(0)), body, done)
    builder.position_at_end(body)
    yield builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
    left.write(builder, builder.and_(bits, builder.sub(bits, const(1))))
    builder.branch(check)
    builder.position_at_end(done)


@contextmanager
def for_reached(builder: Any, n: Any, lanes: int, reached: Callable[[Any], Any]) -> Iterator[Any]:
    """A loop over the places, in order, at which the mask `reached(offset)` is set; there are n >= `lanes`
    places.

    It replaces `compress` where the processor has no instruction for it. It collects 64 places at a time in a
    word, because the branch at the end of a word is hard to predict.
    """

    def bits_of(mask: Any) -> Any:
        return builder.zext(builder.bitcast(mask, ir.IntType(lanes)), ir.IntType(64))

    word = room(builder, ir.IntType(64))
    with for_steps(builder, const(0), n, const(64)) as start:
        word.write(builder, const(0))

        def add(bits: Any) -> None:
            word.write(builder, builder.or_(word.read(builder), bits))

        stop = builder.add(start, const(64))
        with builder.if_else(builder.icmp_signed("<=", stop, n)) as (whole, part):
            with whole:
                for first in range(0, 64, lanes):
                    add(builder.shl(bits_of(reached(builder.add(start, const(first)))), const(first)))
            with part:
                left = builder.sub(n, start)
                done = builder.sub(n, builder.srem(left, const(lanes)))
                with for_steps(builder, start, done, const(lanes)) as offset:
                    add(builder.shl(bits_of(reached(offset)), builder.sub(offset, start)))
                with builder.if_then(builder.icmp_signed("<", done, n)):
                    end = builder.sub(n, const(lanes))
                    seen = splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), lanes)
                    fresh = builder.icmp_signed(">=", lane_numbers(lanes), seen)
                    last = bits_of(builder.and_(reached(end), fresh))
                    # lanes that were read before are shifted out, or are 0 already
                    below = builder.sub(start, end)
                    is_below = builder.icmp_signed(">", below, const(0))
                    up = builder.select(is_below, const(0), builder.neg(below))
                    down = builder.select(is_below, below, const(0))
                    add(builder.lshr(builder.shl(last, up), down))
        with for_bits(builder, word.read(builder)) as place:
            yield builder.add(start, place)


def reduce_lanes(builder: Any, how: str, vector: Any) -> Any:
    """Least ("smin") or greatest ("smax") lane of a vector of int64."""
    name = f"llvm.vector.reduce.{how}.v{vector.type.count}i64"
    function = declare(builder, name, ir.FunctionType(ir.IntType(64), [vector.type]))
    return builder.call(function, [vector])


def population(builder: Any, mask: Any) -> Any:
    bits = builder.ctpop(builder.bitcast(mask, ir.IntType(mask.type.count)))
    return bits if mask.type.count == 64 else builder.zext(bits, ir.IntType(64))


class Data(NamedTuple):
    """An array as an argument of an LLVM function."""

    data: Pointer
    shape: list[Any]


def own_function(name: str, emit: Callable[..., Any], *, unrolled: bool = True) -> Callable[..., Any]:
    """The code of an intrinsic as a separate LLVM function: `emit(builder, ...)` writes it and gets arrays as
    `Data`.

    Inside the caller the loops of a block would compete for registers with some forty arrays, and the caller
    would compute their loop invariants for each query, whether the loops run or not. `unrolled` costs more
    time before a loop over few vectors than it saves.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        passed = _take_all_apart(context, builder, signature, arguments)
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
            inside, values = ir.IRBuilder(function.append_basic_block("entry")), iter(function.args)
            result = emit(inside, *(_put_together(kind, values) for kind in signature.args))
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
        passed = _take_all_apart(context, builder, signature, arguments)
        values = iter([_untyped(builder, value) if value.type.is_pointer else value for value in passed])
        found = emit(builder, *(_put_together(kind, values) for kind in signature.args))
        return context.get_dummy_value() if found is None else found

    return generate


def like(plain: Callable[..., Any], generate: Callable[..., Any]) -> Callable[..., Any]:
    """The typing function of an intrinsic that has the parameters and the result of a plain function.

    Integers are int64 unless annotated as uint64; floats have the dtype of the first array. The result has
    the annotated type; for Any, that dtype.
    """
    annotated = {"int": types.int64, "np.uint64": types.uint64, "bool": types.boolean, "None": types.void}
    *of_parameters, of_result = plain.__annotations__.values()

    def kind_of(kind: Any, annotation: str, dtype: Any) -> Any:
        if isinstance(kind, types.Integer):
            return annotated.get(annotation, types.int64)
        return dtype if isinstance(kind, types.Float) else kind

    def typed(typing: Any, *arguments: Any) -> Any:
        dtype: Any = next((kind.dtype for kind in arguments if isinstance(kind, types.Array)), None)
        kinds = [kind_of(*given, dtype) for given in zip(arguments, of_parameters, strict=True)]
        return annotated.get(of_result, dtype)(*kinds), generate

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(plain).parameters.values()
    typed.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    typed.__name__ = plain.__name__
    return typed


def _take_all_apart(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    pairs = zip(signature.args, arguments, strict=True)
    return [part for kind, value in pairs for part in _take_apart(context, builder, kind, value)]


def _take_apart(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    if isinstance(kind, types.Array):
        if kind.layout != "C":
            raise TypeError(f"{kind} is not contiguous; pass the array that it is a part of")
        array = context.make_array(kind)(context, builder, value)
        return [array.data, *unpack(builder, array.shape, kind.ndim)]
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, unpack(builder, value, len(kind.types)), strict=True)
        return [each for part, inner in parts for each in _take_apart(context, builder, part, inner)]
    return [value]


def _put_together(kind: Any, values: Iterator[Any]) -> Any:
    if isinstance(kind, types.Array):
        return Data(Pointer(next(values), element_kind(kind.dtype)), [next(values) for _ in range(kind.ndim)])
    if isinstance(kind, types.BaseTuple):
        return [_put_together(part, values) for part in kind.types]
    return next(values)


class Element(NamedTuple):
    """The LLVM type of scores of one dtype, and comparisons of vectors of them."""

    kind: Any
    size: int
    whole: bool

    def greater(self, builder: Any, left: Any, right: Any) -> Any:
        return builder.icmp_signed(">", left, right) if self.whole else builder.fcmp_ordered(">", left, right)

    def equal(self, builder: Any, left: Any, right: Any) -> Any:
        return (
            builder.icmp_signed("==", left, right) if self.whole else builder.fcmp_ordered("==", left, right)
        )

    def vector(self, lanes: int) -> Any:
        return ir.VectorType(self.kind, lanes)

    def constant(self, value: float, lanes: int) -> Any:
        return ir.Constant(self.vector(lanes), [value] * lanes)

    def extreme(self, sign: int) -> float:
        if not self.whole:
            return sign * float("inf")
        return (1 << 63) - 1 if sign > 0 else -(1 << 63)


def element_of(array: Data) -> Element:
    """The `Element` of an array of scores."""
    kind = array.data.kind
    whole = isinstance(kind, ir.IntType)
    return Element(kind, 4 if isinstance(kind, ir.FloatType) else 8, whole)


def sorting_steps(first: int, n: int) -> Iterator[tuple[int, int]]:
    """The pairs of places that Batcher's odd-even merge sort compares, for n rows; n is a power of two."""
    if n > 1:
        yield from sorting_steps(first, n // 2)
        yield from sorting_steps(first + n // 2, n // 2)
        yield from _merging_steps(first, n, 1)


def _merging_steps(first: int, n: int, step: int) -> Iterator[tuple[int, int]]:
    if 2 * step == n:
        yield first, first + step
        return
    yield from _merging_steps(first, n, 2 * step)
    yield from _merging_steps(first + step, n, 2 * step)
    for place in range(first + step, first + n - step, 2 * step):
        yield place, place + step


def transpose(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of a square of vectors, as vectors; the number of rows is a power of two."""
    n = len(rows)
    span = n // 2
    while span:
        for row in range(n):
            if not row & span:
                one, other = rows[row], rows[row + span]
                words = ir.VectorType(ir.IntType(32), n)
                upper = [lane if not lane & span else lane - span + n for lane in range(n)]
                lower = [lane + span if not lane & span else lane + n for lane in range(n)]
                rows[row] = builder.shuffle_vector(one, other, ir.Constant(words, upper))
                rows[row + span] = builder.shuffle_vector(one, other, ir.Constant(words, lower))
        span //= 2
    return rows
