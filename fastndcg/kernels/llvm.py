"""What blocks of vectors are written with: pieces of LLVM's language, on plain vectors that every processor has.

Vectors of LANES documents are plain LLVM IR, so one source serves every processor: LLVM splits them where registers are
narrower. A list's last, partial vector is read as the LANES documents that end the list, and lanes read before are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target

LANES = 16
SIDE_BY_SIDE = 8  # queries whose rows are summed together
BINS = 2 * LANES  # groups of documents whose greatest scores bound those of the first ranks
_POPULATION = ir.IntType(64)


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


def pointer_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def load(builder: Any, pointer: Any, offset: Any, kind: Any, align: int) -> Any:
    return builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()), align=align)


def store(builder: Any, value: Any, pointer: Any, offset: Any, align: int) -> None:
    builder.store(
        value, builder.bitcast(builder.gep(pointer, [offset]), value.type.as_pointer()), align=align
    )


def compress(builder: Any, value: Any, mask: Any) -> Any:
    """The lanes under the mask, moved together to the front."""
    kind = value.type
    element = "f" if isinstance(kind.element, ir.FloatType | ir.DoubleType) else "i"
    bits = {ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind.element)) or kind.element.width
    name = f"llvm.experimental.vector.compress.v{kind.count}{element}{bits}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind, mask.type, kind]), name
    )
    return builder.call(function, [value, mask, ir.Constant(kind, ir.Undefined)])


def compresses() -> bool:
    """Whether the processor has an instruction for `compress`, which goes through memory, lane by lane, where it has none."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return "+avx512f" in features


@contextmanager
def for_bits(builder: Any, word: Any) -> Iterator[Any]:
    """For each bit of a word that is set, from the lowest: its place."""
    left = cgutils.alloca_once_value(builder, word)
    check, body, done = (builder.append_basic_block(name) for name in ("check", "body", "done"))
    builder.branch(check)
    builder.position_at_end(check)
    bits = builder.load(left)
    builder.cbranch(builder.icmp_unsigned("!=", bits, const(0)), body, done)
    builder.position_at_end(body)
    yield builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
    builder.store(builder.and_(bits, builder.sub(bits, const(1))), left)
    builder.branch(check)
    builder.position_at_end(done)


@contextmanager
def for_reached(builder: Any, n: Any, lanes: int, reached: Callable[[Any], Any]) -> Iterator[Any]:
    """For each of n >= `lanes` places at which a lane of `reached(offset)`, a mask, is set, in order: the place.

    What `compress` is where it is an instruction: 64 places at a time, since where a word ends is hard to predict.
    """

    def bits_of(mask: Any) -> Any:
        return builder.zext(builder.bitcast(mask, ir.IntType(lanes)), ir.IntType(64))

    word = cgutils.alloca_once(builder, ir.IntType(64))
    with cgutils.for_range_slice(builder, const(0), n, const(64)) as (start, _):
        builder.store(const(0), word)

        def add(bits: Any) -> None:
            builder.store(builder.or_(builder.load(word), bits), word)

        stop = builder.add(start, const(64))
        with builder.if_else(builder.icmp_signed("<=", stop, n)) as (whole, part):
            with whole:
                for first in range(0, 64, lanes):
                    add(builder.shl(bits_of(reached(builder.add(start, const(first)))), const(first)))
            with part:
                left = builder.sub(n, start)
                done = builder.sub(n, builder.srem(left, const(lanes)))
                with cgutils.for_range_slice(builder, start, done, const(lanes)) as (offset, _):
                    add(builder.shl(bits_of(reached(offset)), builder.sub(offset, start)))
                with builder.if_then(builder.icmp_signed("<", done, n)):
                    end = builder.sub(n, const(lanes))
                    seen = splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), lanes)
                    fresh = builder.icmp_signed(">=", lane_numbers(lanes), seen)
                    last = bits_of(builder.and_(reached(end), fresh))
                    # lanes that were read before lie below the word, or below what is in it
                    below = builder.sub(start, end)
                    is_below = builder.icmp_signed(">", below, const(0))
                    up = builder.select(is_below, const(0), builder.neg(below))
                    down = builder.select(is_below, below, const(0))
                    add(builder.lshr(builder.shl(last, up), down))
        with for_bits(builder, builder.load(word)) as place:
            yield builder.add(start, place)


def reduced(builder: Any, how: str, vector: Any) -> Any:
    """Least ("smin") or greatest ("smax") lane of a vector of int64."""
    name = f"llvm.vector.reduce.{how}.v{vector.type.count}i64"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(64), [vector.type]), name
    )
    return builder.call(function, [vector])


def population(builder: Any, mask: Any) -> Any:
    bits = builder.ctpop(builder.bitcast(mask, ir.IntType(mask.type.count)))
    return bits if mask.type.count == 64 else builder.zext(bits, _POPULATION)


class Data(NamedTuple):
    """An array as an LLVM function gets it."""

    data: Any
    shape: list[Any]


def own_function(name: str, emit: Callable[..., Any], *, unrolled: bool = True) -> Callable[..., Any]:
    """The code of an intrinsic as an LLVM function of its own: `emit(builder, ...)` gets its arrays as `Data`.

    Within its caller the loops of a block would compete for registers with some forty arrays, and what does not vary in
    them would be computed there for each query, whether they run or not. To have a loop over few vectors `unrolled` takes
    longer before it than it spares.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        passed: list[Any] = []
        for kind, value in zip(signature.args, arguments, strict=True):
            passed += _taken_apart(context, builder, kind, value)
        nothing = signature.return_type in (types.void, types.none)
        mangled = ".".join([name, *(str(kind) for kind in signature.args)])
        function = builder.module.globals.get(mangled)
        if function is None:
            returned = ir.VoidType() if nothing else context.get_value_type(signature.return_type)
            kind = ir.FunctionType(returned, [value.type for value in passed])
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


def _taken_apart(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    if isinstance(kind, types.Array):
        if kind.layout != "C":
            raise TypeError(f"{kind} is not contiguous; pass the array that it is a part of")
        array = context.make_array(kind)(context, builder, value)
        return [array.data, *cgutils.unpack_tuple(builder, array.shape, kind.ndim)]
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value), strict=True)
        return [each for part, held in parts for each in _taken_apart(context, builder, part, held)]
    return [value]


def _put_together(kind: Any, values: Iterator[Any]) -> Any:
    if isinstance(kind, types.Array):
        return Data(next(values), [next(values) for _ in range(kind.ndim)])
    if isinstance(kind, types.BaseTuple):
        return [_put_together(part, values) for part in kind.types]
    return next(values)


class Element(NamedTuple):
    """How scores of one dtype are compared in vectors."""

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


def element_of(array: Any) -> Element:
    if array.dtype == types.float32:
        return Element(ir.FloatType(), 4, False)
    if array.dtype == types.float64:
        return Element(ir.DoubleType(), 8, False)
    return Element(ir.IntType(64), 8, True)


def sorting_steps(first: int, n: int) -> Iterator[tuple[int, int]]:
    """The pairs of places that Batcher's odd-even merge sort of n rows compares; n is a power of two."""
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


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Vectors of the columns of as many rows, a power of two."""
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
