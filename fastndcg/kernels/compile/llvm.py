"""Vector code: values whose operators write LLVM instructions.

A vector block gets `code`, which writes loops and branches, and its arguments: numbers as `Value`, arrays as
`Data`. It may use

    total = code.variable(0.0)                    a value that changes: `total.value += gain`
    with code.steps(0, n, LANES) as offset:       a loop; `code.when` and `code.either` are branches
    scores.load(offset, LANES), kept.store(...)   a vector of LANES elements, in an array from an offset on
    vector > bound                                a mask; numbers meet vectors in each lane
    where(mask, one, other), mask.count()         lane by lane; how many lanes are set
    vector.compressed(mask)                       the lanes where the mask is set, moved to the front
    transpose(rows)                               a square of vectors

Vectors are plain LLVM IR, so one source serves every processor: LLVM splits them where registers are
narrower. The last, partial vector of a list is read as the last LANES documents of the list; lanes that were
read before are masked (`code.last_of`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

# with NUMBA_DISABLE_JIT both copies of the kernels are plain
_IS_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
IS_COMPILED = __name__.startswith("fastndcg.compiled.") and not _IS_DISABLED

numba: Any = None
types: Any = None
ir: Any = None
binding: Any = None

if IS_COMPILED and not TYPE_CHECKING:
    import numba
    from llvmlite import binding, ir
    from numba import types  # noqa: F401

LANES = 16
SIDE_BY_SIDE = 8  # queries whose rows are summed together
BINS = 2 * LANES  # groups of documents, whose greatest scores give a bound for the first ranks


def _operator(whole: str, real: str = "", *sign: str) -> Callable[[Value, Value | float], Value]:
    """The method of `Value` that writes the instruction `whole`, or `real` where the numbers are floats."""

    def operate(self: Value, other: Value | float) -> Value:
        one, two = self._met(other)
        instruction = getattr(self.code.builder, real if one.is_real else whole)
        return Value(self.code, instruction(*sign, one.raw, two.raw))

    return operate


class Value:
    """A number, or a vector of numbers, that code computes. A vector of truth values is a mask."""

    def __init__(self, code: Code, raw: Any) -> None:
        self.code, self.raw = code, raw

    @property
    def lanes(self) -> int | None:
        return getattr(self.raw.type, "count", None)

    @property
    def element(self) -> Any:
        """The LLVM type of a lane, or of the number."""
        return getattr(self.raw.type, "element", self.raw.type)

    @property
    def is_real(self) -> bool:
        return not isinstance(self.element, ir.IntType)

    def of(self, number: float) -> Value:
        """A constant of the same type, in every lane."""
        lanes = self.lanes
        return Value(self.code, ir.Constant(self.raw.type, number if lanes is None else [number] * lanes))

    def splat(self, lanes: int) -> Value:
        kind = ir.VectorType(self.raw.type, lanes)
        nothing, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        one = self.code.builder.insert_element(nothing, self.raw, first)
        return Value(self.code, one).pick([0] * lanes)

    def _met(self, other: Value | float) -> tuple[Value, Value]:
        """Both as values of one type."""
        if not isinstance(other, Value):
            return self, self.of(other)
        if self.lanes and not other.lanes:
            return self, other.splat(self.lanes)
        return (self.splat(other.lanes) if other.lanes and not self.lanes else self), other

    __add__ = _operator("add", "fadd")
    __sub__ = _operator("sub", "fsub")
    __mul__ = _operator("mul", "fmul")
    __truediv__ = _operator("", "fdiv")
    __floordiv__ = _operator("sdiv")
    __mod__ = _operator("srem")
    __and__ = _operator("and_")
    __or__ = _operator("or_")
    __xor__ = _operator("xor")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("lshr")  # zeros come in from above
    shift_signed = _operator("ashr")
    __lt__ = _operator("icmp_signed", "fcmp_ordered", "<")
    __le__ = _operator("icmp_signed", "fcmp_ordered", "<=")
    __gt__ = _operator("icmp_signed", "fcmp_ordered", ">")
    __ge__ = _operator("icmp_signed", "fcmp_ordered", ">=")
    equals = _operator("icmp_signed", "fcmp_ordered", "==")
    reaches = _operator("icmp_unsigned", "", ">=")  # of numbers without a sign

    def __rsub__(self, other: float) -> Value:
        return self.of(other) - self

    def __rlshift__(self, other: float) -> Value:
        return self.of(other) << self

    def __invert__(self) -> Value:
        return Value(self.code, self.code.builder.not_(self.raw))

    def whole(self, bits: int) -> Any:
        """The LLVM type of a whole number of some width in each lane."""
        return ir.IntType(bits) if self.lanes is None else ir.VectorType(ir.IntType(bits), self.lanes)

    def to(self, bits: int) -> Value:
        """A whole number, or truth value, of another width. Other numbers stay."""
        if self.is_real or self.element.width == bits:
            return self
        builder = self.code.builder
        change = builder.zext if self.element.width < bits else builder.trunc
        return Value(self.code, change(self.raw, self.whole(bits)))

    def read_as(self, kind: Any) -> Value:
        """The same bits as another LLVM type."""
        return Value(self.code, self.code.builder.bitcast(self.raw, kind))

    def bits(self) -> Value:
        """The lanes of a mask as bits of one number."""
        return self.read_as(ir.IntType(self.lanes))

    def count(self) -> Value:
        """How many lanes of a mask, or bits of a number, are set: int64 for a mask."""
        if self.lanes is None:
            return Value(self.code, self.code.builder.ctpop(self.raw))
        return self.bits().count().to(64)

    def lane(self, place: Value | int) -> Value:
        at = self.code.number(place, 32)
        return Value(self.code, self.code.builder.extract_element(self.raw, at.raw))

    def pick(self, lanes: Sequence[int], other: Value | None = None) -> Value:
        """The vector of these lanes of this vector and, after its last lane, of the other."""
        order = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
        return Value(self.code, self.code.builder.shuffle_vector(self.raw, (other or self).raw, order))

    def compressed(self, mask: Value) -> Value:
        """The lanes where the mask is set, moved to the front; other lanes hold any value."""
        kind, bits, width = self.raw.type, width_of(self.element), register_bits()
        whole = bits * kind.count
        is_arm = binding.get_process_triple().startswith("aarch64")
        if whole == width and (is_arm or width == 256):
            return self._looked_up(mask, bits, 8 if is_arm else 32)
        if bits < 64 and whole < width < 512:  # codes of documents with wider scores
            return self.to(64).compressed(mask).to(bits)
        name = f"llvm.experimental.vector.compress.v{kind.count}{'f' if self.is_real else 'i'}"
        nothing = ir.Constant(kind, ir.Undefined)
        return self.code.call(f"{name}{bits}", kind, self.raw, mask.raw, nothing)

    def _looked_up(self, mask: Value, bits: int, unit: int) -> Value:
        """As `compressed`, by a table of the orders of a register's units, one for each mask."""
        lanes, module = self.raw.type.count, self.code.builder.module
        units = bits // unit * lanes
        name, order = f"orders.{lanes}.{units}", ir.VectorType(ir.IntType(8), units)
        table = module.globals.get(name)
        if table is None:
            orders = [
                [u for u in range(units) if number >> u * unit // bits & 1] for number in range(1 << lanes)
            ]
            kind = ir.ArrayType(order, len(orders))
            table = ir.GlobalVariable(module, kind, name)
            table.linkage, table.global_constant = "internal", True
            table.initializer = ir.Constant(
                kind, [ir.Constant(order, each + [0] * (units - len(each))) for each in orders]
            )
        places = Data(self.code, table, order)[mask.bits().to(64)]
        whole = ir.VectorType(ir.IntType(unit), units)
        name = "llvm.x86.avx2.permd" if unit == 32 else "llvm.aarch64.neon.tbl1.v16i8"
        found = self.code.call(name, whole, self.read_as(whole).raw, places.to(unit).raw)
        return found.read_as(self.raw.type)

    def meet(self, name: str, other: Value) -> Value:
        """The `maxnum` or `minnum` of each lane of two vectors of float64 without NaN."""
        name = f"llvm.{name}.v{self.lanes}f64"
        return self.code.call(name, self.raw.type, self.raw, other.raw, fastmath=("nnan", "nsz"))

    def least(self) -> Value:
        return self.code.call(f"llvm.vector.reduce.smin.v{self.lanes}i64", self.element, self.raw)

    def greatest(self) -> Value:
        return self.code.call(f"llvm.vector.reduce.smax.v{self.lanes}i64", self.element, self.raw)


class Data:
    """The elements of an array, or a variable. LLVM's own pointers have no type of the elements."""

    def __init__(self, code: Code, address: Any, element: Any, shape: Sequence[Value] = ()) -> None:
        self.code, self.address, self.element, self.shape = code, address, element, list(shape)

    @property
    def bits(self) -> int:
        return width_of(self.element)

    @property
    def lowest(self) -> float:
        return -(1 << (self.bits - 1)) if isinstance(self.element, ir.IntType) else float("-inf")

    def at(self, offset: Value | int) -> Any:
        """The address of an element."""
        places = [self.code.number(offset).raw]
        return self.code.builder.gep(self.address, places, source_etype=self.element)

    def part(self, start: Value | int) -> Data:
        return Data(self.code, self.at(start), self.element)

    def __getitem__(self, offset: Value | int) -> Value:
        return Value(self.code, self.code.builder.load(self.at(offset), typ=self.element))

    def __setitem__(self, offset: Value | int, value: Value | float) -> None:
        raw = value.raw if isinstance(value, Value) else ir.Constant(self.element, value)
        self.code.builder.store(raw, self.at(offset))

    @property
    def value(self) -> Value:
        """That of a variable."""
        return self[0]

    @value.setter
    def value(self, value: Value | float) -> None:
        self[0] = value

    def load(self, offset: Value | int, lanes: int) -> Value:
        kind = ir.VectorType(self.element, lanes)
        return Value(self.code, self.code.builder.load(self.at(offset), typ=kind, align=self.bits // 8))

    def store(self, value: Value, offset: Value | int) -> None:
        self.code.builder.store(value.raw, self.at(offset), align=self.bits // 8)

    def row(self, place: Value | int) -> Value:
        """A row of an array whose last axis is SIDE_BY_SIDE long."""
        return self.load(self.code.number(place) * SIDE_BY_SIDE, SIDE_BY_SIDE)

    def set_row(self, place: Value | int, value: Value) -> None:
        self.store(value, self.code.number(place) * SIDE_BY_SIDE)


class Code:
    """The instructions of a block, as they are written one after the other."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def number(self, value: Value | float, bits: int = 64) -> Value:
        if isinstance(value, Value):
            return value
        kind = ir.DoubleType() if isinstance(value, float) else ir.IntType(bits)
        return Value(self, ir.Constant(kind, value))

    def full(self, value: float, lanes: int, bits: int = 64) -> Value:
        """A vector of float64, or of whole numbers of some width, that are all the same."""
        kind = ir.VectorType(self.number(value, bits).raw.type, lanes)
        return Value(self, ir.Constant(kind, [value] * lanes))

    def places(self, lanes: int, bits: int = 32, first: int = 0) -> Value:
        """The number of each lane."""
        numbers = list(range(first, first + lanes))
        return Value(self, ir.Constant(ir.VectorType(ir.IntType(bits), lanes), numbers))

    def last_of(self, n: Value, lanes: int, bits: int = 32) -> tuple[Value, Value]:
        """Where the last vector of n >= lanes places begins, and its lanes that no vector before it has."""
        end = n - lanes
        return end, self.places(lanes, bits) >= (n // lanes * lanes - end).to(bits)

    def allocate(self, kind: Any, n: int = 1) -> Data:
        """Memory for values of an LLVM type, until the function returns."""
        with self.builder.goto_entry_block():
            return Data(self, self.builder.alloca(kind, self.number(n).raw if n > 1 else None), kind)

    def variable(self, value: Value | float) -> Data:
        first = self.number(value)
        variable = self.allocate(first.raw.type)
        variable.value = first
        return variable

    def call(self, name: str, returned: Any, *arguments: Any, fastmath: tuple[str, ...] = ()) -> Value:
        """Call an LLVM intrinsic."""
        function = self.builder.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(returned, [each.type for each in arguments])
            function = ir.Function(self.builder.module, kind, name)
        return Value(self, self.builder.call(function, arguments, fastmath=fastmath))

    def when(self, condition: Value, likely: bool | None = None) -> AbstractContextManager[Any]:
        return self.builder.if_then(condition.raw, likely)

    def either(self, condition: Value) -> AbstractContextManager[Any]:
        """Two blocks: one where the condition holds, and one where not."""
        return self.builder.if_else(condition.raw)

    @contextmanager
    def repeat(self, condition: Callable[[], Value]) -> Iterator[None]:
        """A loop while the condition holds."""
        check, body, done = (self.builder.append_basic_block(name) for name in ("check", "body", "done"))
        self.builder.branch(check)
        self.builder.position_at_end(check)
        self.builder.cbranch(condition().raw, body, done)
        self.builder.position_at_end(body)
        yield
        self.builder.branch(check)
        self.builder.position_at_end(done)

    @contextmanager
    def steps(
        self, start: Value | int, stop: Value, step: Value | int = 1, flags: tuple[str, ...] = ()
    ) -> Iterator[Value]:
        """A loop over the numbers from `start` to before `stop`; `flags` are LLVM's for the addition."""
        builder, first = self.builder, self.number(start).raw
        check, body, done = (builder.append_basic_block(name) for name in ("for.cond", "for.body", "for.end"))
        before = builder.basic_block
        builder.branch(check)
        builder.position_at_end(check)
        index = builder.phi(first.type, "index")
        index.add_incoming(first, before)
        builder.cbranch((Value(self, index) < stop).raw, body, done)
        builder.position_at_end(body)
        yield Value(self, index)
        index.add_incoming(builder.add(index, self.number(step).raw, flags=flags), builder.basic_block)
        builder.branch(check)
        builder.position_at_end(done)

    def range(self, count: Value) -> AbstractContextManager[Value]:
        """A loop over the numbers from 0 to before `count`."""
        return self.steps(0, count, flags=("nsw",))


def register_bits() -> int:
    """The width of the processor's vector registers: 512 bits with AVX-512, 256 with AVX2, else 128."""
    features = numba.config.CPU_FEATURES
    if features is None:
        features = ""
        with suppress(RuntimeError):  # LLVM does not know this processor
            features = binding.get_host_cpu_features().flatten() if numba.config.ENABLE_AVX else ""
    return 512 if "+avx512f" in features else 256 if "+avx2" in features else 128


def width_of(kind: Any) -> int:
    """The width of an LLVM number type, in bits."""
    return {ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind)) or int(kind.width)


def where(condition: Value, one: Value | float, other: Value | float) -> Value:
    """In each lane `one` where the condition holds, elsewhere `other`; at least one of them is a `Value`."""
    if isinstance(one, Value):
        one, other = one._met(other)
    else:
        other, one = other._met(one)  # type: ignore[union-attr]
    return Value(condition.code, condition.code.builder.select(condition.raw, one.raw, other.raw))


def lesser(one: Value, other: Value) -> Value:
    return where(one < other, one, other)


def greater(one: Value, other: Value) -> Value:
    return where(one > other, one, other)


def transpose(rows: Iterable[Value]) -> list[Value]:
    """The columns of a square of vectors, as vectors; the number of rows is a power of two."""
    rows = list(rows)
    n = len(rows)
    span = n // 2
    while span:
        for row in range(n):
            if not row & span:
                one, other = rows[row], rows[row + span]
                upper = [lane if not lane & span else lane - span + n for lane in range(n)]
                lower = [lane + span if not lane & span else lane + n for lane in range(n)]
                rows[row], rows[row + span] = one.pick(upper, other), one.pick(lower, other)
        span //= 2
    return rows


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
