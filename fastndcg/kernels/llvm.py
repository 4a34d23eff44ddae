"""What blocks of vectors are written with: pieces of LLVM's language, on plain vectors that every processor has.

Vectors of LANES documents are plain LLVM IR, so one source serves every processor: LLVM splits them where registers are
narrower. A list's last, partial vector is read as the LANES documents that end the list, and lanes read before are masked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple

from .numba_parts import binding, ir, numba, types

LANES = 16
SIDE_BY_SIDE = 8  # queries whose rows are summed together
BINS = 2 * LANES  # groups of documents whose greatest scores bound those of the first ranks


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
    """Where values of one of LLVM's types are. LLVM itself knows no more of a pointer than that it is one."""

    address: Any
    kind: Any

    def at(self, builder: Any, offset: Any) -> Pointer:
        return Pointer(builder.gep(self.address, [offset], source_etype=self.kind), self.kind)

    def read(self, builder: Any, offset: Any = None) -> Any:
        return builder.load((self if offset is None else self.at(builder, offset)).address, typ=self.kind)

    def write(self, builder: Any, value: Any, offset: Any = None) -> None:
        builder.store(value, (self if offset is None else self.at(builder, offset)).address)


def room(builder: Any, kind: Any, n: int | None = None) -> Pointer:
    """Memory for a value, or for so many, until the function returns."""
    with builder.goto_entry_block():
        return Pointer(builder.alloca(kind, None if n is None else const(n)), kind)


def variable(builder: Any, value: Any) -> Pointer:
    """Such memory with a value in it."""
    held = room(builder, value.type)
    held.write(builder, value)
    return held


def pointer_of(context: Any, builder: Any, kind: Any, array: Any) -> Pointer:
    """Where the elements of an array are."""
    data = context.make_array(kind)(context, builder, array).data
    return Pointer(_untyped(builder, data), element_kind(kind.dtype))


def _untyped(builder: Any, pointer: Any) -> Any:
    """Numba's pointers say what they point to; one that was held in memory does not."""
    return Pointer(variable(builder, pointer).address, ir.PointerType()).read(builder)


def unpack(builder: Any, value: Any, n: int) -> list[Any]:
    """The n parts of a tuple or an array of LLVM's."""
    return [builder.extract_value(value, place) for place in range(n)]


def element_kind(dtype: Any) -> Any:
    """LLVM's type of an element of an array."""
    if isinstance(dtype, types.Float):
        return ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType()
    return ir.IntType(8 if isinstance(dtype, types.Boolean) else dtype.bitwidth)


def load(builder: Any, pointer: Pointer, offset: Any, kind: Any, align: int) -> Any:
    """A value of another type than the elements of an array, a vector of them say, from an offset in elements on."""
    return builder.load(pointer.at(builder, offset).address, typ=kind, align=align)


def store(builder: Any, value: Any, pointer: Pointer, offset: Any, align: int) -> None:
    builder.store(value, pointer.at(builder, offset).address, align=align)


def declare(builder: Any, name: str, kind: Any) -> Any:
    """A function of LLVM's own, or of this module."""
    found = builder.module.globals.get(name)
    return ir.Function(builder.module, kind, name) if found is None else found


@contextmanager
def for_steps(builder: Any, start: Any, stop: Any, step: Any, flags: tuple[str, ...] = ()) -> Iterator[Any]:
    """A loop over the numbers from `start` to before `stop`; flags are those of the addition of a step."""
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
    """How wide a number is."""
    return {ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or int(kind.width)


def compress(builder: Any, value: Any, mask: Any) -> Any:
    """The lanes under the mask, moved together to the front."""
    kind = value.type
    element = "f" if isinstance(kind.element, ir.FloatType | ir.DoubleType) else "i"
    name = f"llvm.experimental.vector.compress.v{kind.count}{element}{bits_of(kind.element)}"
    function = declare(builder, name, ir.FunctionType(kind, [kind, mask.type, kind]))
    return builder.call(function, [value, mask, ir.Constant(kind, ir.Undefined)])


def compresses() -> bool:
    """Whether the processor has an instruction for `compress`, which goes through memory, lane by lane, where it has none."""
    features = numba.config.CPU_FEATURES
    if features is None:
        with suppress(RuntimeError):  # LLVM knows nothing of this processor
            return bool(numba.config.ENABLE_AVX and binding.get_host_cpu_features().get("avx512f"))
    return "+avx512f" in (features or "")


@contextmanager
def for_bits(builder: Any, word: Any) -> Iterator[Any]:
    """For each bit of a word that is set, from the lowest: its place."""
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
    """For each of n >= `lanes` places at which a lane of `reached(offset)`, a mask, is set, in order: the place.

    What `compress` is where it is an instruction: 64 places at a time, since where a word ends is hard to predict.
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
                    # lanes that were read before lie below the word, or below what is in it
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
    """An array as an LLVM function gets it."""

    data: Pointer
    shape: list[Any]


def own_function(name: str, emit: Callable[..., Any], *, unrolled: bool = True) -> Callable[..., Any]:
    """The code of an intrinsic as an LLVM function of its own: `emit(builder, ...)` gets its arrays as `Data`.

    Within its caller the loops of a block would compete for registers with some forty arrays, and what does not vary in
    them would be computed there for each query, whether they run or not. To have a loop over few vectors `unrolled` takes
    longer before it than it spares.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        passed = _all_taken_apart(context, builder, signature, arguments)
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
        passed = _all_taken_apart(context, builder, signature, arguments)
        values = iter([_untyped(builder, value) if value.type.is_pointer else value for value in passed])
        found = emit(builder, *(_put_together(kind, values) for kind in signature.args))
        return context.get_dummy_value() if found is None else found

    return generate


def like(plain: Callable[..., Any], generate: Callable[..., Any]) -> Callable[..., Any]:
    """What types an intrinsic, whose parameters and result are those of a plain function.

    Whole numbers are int64 unless they are annotated as uint64, others of the dtype of the first array. The result is as
    annotated, and of that dtype for Any.
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


def _all_taken_apart(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    pairs = zip(signature.args, arguments, strict=True)
    return [part for kind, value in pairs for part in _taken_apart(context, builder, kind, value)]


def _taken_apart(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    if isinstance(kind, types.Array):
        if kind.layout != "C":
            raise TypeError(f"{kind} is not contiguous; pass the array that it is a part of")
        array = context.make_array(kind)(context, builder, value)
        return [array.data, *unpack(builder, array.shape, kind.ndim)]
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, unpack(builder, value, len(kind.types)), strict=True)
        return [each for part, held in parts for each in _taken_apart(context, builder, part, held)]
    return [value]


def _put_together(kind: Any, values: Iterator[Any]) -> Any:
    if isinstance(kind, types.Array):
        return Data(Pointer(next(values), element_kind(kind.dtype)), [next(values) for _ in range(kind.ndim)])
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


def element_of(array: Data) -> Element:
    """How the elements of an array of scores are compared."""
    kind = array.data.kind
    whole = isinstance(kind, ir.IntType)
    return Element(kind, 4 if isinstance(kind, ir.FloatType) else 8, whole)


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


def transpose(builder: Any, rows: list[Any]) -> list[Any]:
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
