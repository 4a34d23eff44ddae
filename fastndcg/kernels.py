"""Every compiled function of the package: rank each query once, fold the ranking into all measures.

The kernels know no measures, grades or callables; they know tables (`Plan`): the gain of each level, the discount of each
rank, and rows that say which list is summed with which discount to which cutoff and what the sum is divided by.

    code grades to levels -> ideal lists -> rank by score -> lists of what each rank adds -> one sum for each row

A list holds the gain of each rank (`gather`), or what a rank adds to a measure that is not linear in the gains: the precision
at a relevant document, the probability to stop there (`fold_list`). With averaged ties both are expectations, so that every
measure is a sum over ranks and all its cutoffs come from one pass.

`score_queries_of_levels` is that flow, for a batch of queries side by side: each step is done for all of them before the next
one, and where lists are short, or most of their documents need a rank, a vector holds one document of each query: bounds are
sorted so, whole lists are ranked, and rows are summed. Serial drivers are the truth; the parallel one runs the same code over
chunks.

All compiled functions live in this one file because Numba keys a cached function on its own file: were a helper elsewhere,
an upgraded package would go on running the old one. Importing this module imports Numba and compiles nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import lgamma
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, imputils
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python
from numba.extending import intrinsic, overload

Array = npt.NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])

# columns of Plan.rows
LIST, DISCOUNT, IDEAL, CUTOFF, UNDEFINED, OUT, OVER, TOTAL = range(8)
UNCUT = np.iinfo(np.int64).max
AT_RELEVANT = -1  # cutoff at the number of relevant documents
# when a row has no value
NEVER, NO_DOCUMENTS, NO_IDEAL, NO_RELEVANT = range(4)
SKIPPABLE = (NO_IDEAL, NO_RELEVANT)
# what a row's sum is divided by
(
    AS_IS,
    BY_IDEAL,
    BY_CUTOFF,
    BY_RELEVANT,
    BY_FEWER,
    WEIGHTED,
    BY_FEWER_RETURNED,
    BY_BOTH,
    SCALED,
    RESIDUAL,
    LEFT,
    SHARE_LEFT,
    POOL_TOTAL,
) = range(13)
# columns of Plan.lists
TABLE, TIES, CONDENSED, FOLD, RELEVANT, NONRELEVANT = range(6)
# folds: what a list holds for each rank; those after COUNT are compiled where they are asked for
GAIN, COUNT, REACHED, FIRST, HITS, STOP, PREFERENCE, INFERRED, INTERPOLATED = range(9)
AVERAGE, INPUT, WORST, BEST = range(4)
# lists of a query that are made, side by side with those of others: those that average ties, or all that are linear
NONE_MADE, AVERAGED_MADE, ALL_MADE = range(3)
# columns of Plan.ideals, after TABLE; POOL is the "judged" ideal that a "full" one takes its best gain from
SOURCE, OF_LIST, IDEAL_CUTOFF, POOL, LEAVES_OUT = 1, 2, 3, 4, 5
JUDGED, SCORED, RETURNED, FULL = range(4)
# kinds of gain where grades are not coded to levels
LINEAR, EXP2, ONE, LOOKUP = range(4)

_INSERTION = 24  # values up to which insertion sort beats quicksort
_COUNTING = 16  # compared vectors for each kept document, up to which counting beats sorting
_NEARLY_ONE = 1.0 + 1e-12
_DEEPEST = 24  # ranks up to which bins bound their scores well
_MANY = 512  # documents of a list from which most vectors hold none of the first ranks
_HELD = 8192  # documents, or ranks of all lists, of a query up to which queries are scored side by side
_COMPARED = 8  # cost of a document compared with a vector of others, where n rows sorted side by side cost n * log2(n)**2
_FETCHED = 2048  # documents of the next queries that are asked for while some are scored
_TOGETHER = 1024  # documents of a list up to which whole lists are ranked side by side
_SAMPLE = 8192  # documents that stand for a list too long for the first-level cache
_MOST_DRAWS = 100_000  # ways to draw tied documents that are enumerated
_MOST_STEPS = 1_000_000_000  # steps through orders of tied documents for one expected maximum
_POOL_SHARE = 0.00001  # infAP's epsilon, trec_eval's


class Plan(NamedTuple):
    """Measures as tables. T gain tables, L levels and one more for "unjudged", D discounts."""

    gains: Array  # float64 (T, L + 2): gain of each level, of an unjudged document, and 0 for a rank left out
    falling: Array  # int64 (T, L + 2): levels by falling gain
    earning: Array  # int64 (T,): how many of these levels; those after them gain 0, and nothing is less
    exact: Array  # bool (T,): gains are whole, so that sums of them are exact in any order
    assumed: Array  # bool (T,): unjudged documents count as judged ones of an assumed grade
    top: Array  # float64 (T,): gain of the scale's best grade; NaN where the query's own best counts
    kinds: Array  # int64 (T,): kind of gain, where grades are not coded
    thresholds: Array  # float64 (T,): grades below it gain nothing, where grades are not coded
    grades: Array  # float64 (L,): grade of each column of `gains`, for kind LOOKUP
    lists: Array  # int64 (n_lists, 6): TABLE, TIES, CONDENSED, FOLD, and the totals RELEVANT and NONRELEVANT
    folds: Any  # float64 (n_lists,): parameter of each fold; None where there are no folds after COUNT, to compile none
    ideals: Array  # int64 (n_ideals, 6): TABLE, SOURCE, OF_LIST, IDEAL_CUTOFF, POOL, LEAVES_OUT
    totals: Array  # int64 (n_totals,): tables whose gains are added up over the judged documents
    discounts: Array  # float64 (D, ranks + 1)
    rows: Array  # int64 (n_rows, 8): LIST, DISCOUNT (-1: the list holds sums), IDEAL, CUTOFF, UNDEFINED, OUT, OVER, TOTAL
    weights: Array  # float64 (n_rows,): beta^2, or 1 - p
    depth: int  # ranks that the lists need
    ideal_depth: int  # ranks that the ideal lists need
    condensing: bool  # some list drops unjudged documents
    first_wanted: int  # documents of lower codes gain nothing anywhere, and their rank need not be known
    promising: Array  # bool (2, L + 1): levels and "unjudged" that gain something in an ideal of the scored, and of the judged
    skippable: bool  # a query whose ideals gain nothing has no value by any row


class Documents(NamedTuple):
    """Ragged columns of a run of queries, whose first documents are the rows `base` and `pool_base` of all."""

    offsets: Array  # int64 (n_queries + 1,), of all queries
    relevance: Array  # uint8 levels, or float64 grades
    scores: Array  # float32, float64 or int64
    is_judged: Array  # bool; of length 0 where every document is judged, or the levels say which are
    pool_offsets: (
        Array  # int64 (n_queries + 1,), of all queries; of length 0 where the scored documents are the pool
    )
    pool_relevance: Array
    base: int
    pool_base: int
    levels: int  # codes that occur are below it
    lowest: Any  # least value of the scores' dtype


class Work(NamedTuple):
    """The ranking of one query."""

    codes: Array  # uint32: code of the document of each rank
    sizes: Array  # uint32: size of each tied group, at its first rank
    firsts: Array  # uint32: first rank of the tied group of each rank, of a short ranking; of a longer one, of each in `wanted`
    seen: Array  # uint32: documents of the group placed so far, at its first rank
    wanted: Array  # uint32: kept documents that need a rank, of a longer ranking
    ties: Array  # uint32: how many documents are tied with each of these
    group: Array  # float64: gains of one tied group
    means: Array  # float64 (LANES,): mean gain of the tied group of each rank


class Scratch(NamedTuple):
    """Working memory of one chunk of queries, sized by its longest list."""

    codes: Array  # uint32: codes of the query's documents, where grades are not coded
    greatest: Array  # (SIDE_BY_SIDE, BINS): greatest score of each bin of documents
    bounds: Array  # (SIDE_BY_SIDE,): scores that the documents reach which must be kept
    scores: Array  # (lanes, longest + 2 * LANES): scores of the documents kept for ranking
    kept: Array  # uint32: their codes
    wanted: Array  # scores of those that need a rank
    gains: Array  # float64 (T, longest + 2): gain of each document, where grades are not coded
    values: Array  # float64: gains of a pool, where grades are not coded
    chances: Array  # float64 (4, longest + 2) where there are folds: probabilities within one tied group


class Lanes(NamedTuple):
    """The queries of a batch, each in a lane of its own."""

    queries: Array  # int64 (lanes,): number of each query
    starts: Array  # int64 (lanes,): first row of its documents
    stops: Array  # int64 (lanes,): the row after them
    seen: Array  # int64 (lanes,): the row after those that are looked at, next; `starts` where none are
    has_documents: Array  # bool (lanes,): scored ones, or judged ones
    all_kept: Array  # bool (lanes,): whether all its documents are kept for ranking
    kept: Array  # int64 (lanes,): how many are
    steps: Array  # int64 (lanes,): what it takes to rank these by themselves


class Ranked(NamedTuple):
    """Short lists ranked side by side."""

    codes: Array  # uint32 (rows, SIDE_BY_SIDE): code of the document of each rank
    same: Array  # uint8 (rows,): lanes whose documents of this rank and the one before are tied, as bits
    keys: Array  # int64 (rows, SIDE_BY_SIDE): what is sorted
    gains: Array  # float64 (rows, SIDE_BY_SIDE): gains by rank, before ties are averaged
    sizes: Array  # float64 (rows, SIDE_BY_SIDE): sizes of tied groups


class Sums(NamedTuple):
    """What a row is summed to, so far."""

    cutoffs: Array  # int64 (lanes,)
    sums: Array  # float64 (2, lanes): of the list and of the ideal
    summed: Array  # int64 (2, lanes): how many ranks are in these sums
    stops: Array  # int64 (2, lanes): how many should be
    values: Array  # float64 (lanes,): of the row


class Batch(NamedTuple):
    """Queries side by side: what their rows are summed from, and the sums."""

    lanes: Lanes
    counts: Array  # int64 (2, L + 2 + _COUNTED, lanes): scored and judged documents of each level, where grades are coded
    totals: Array  # float64 (n_totals, lanes): sums of gains over the judged documents
    ranked: Ranked
    lists: Array  # float64 (n_lists, depth, lanes): gains by rank
    lengths: Array  # int64 (n_lists, lanes)
    ideals: Array  # float64 (n_ideals, ideal_depth, lanes): gains of the ideal rankings
    ideal_lengths: Array  # int64 (n_ideals, lanes)
    sums: Sums


# versions of Numba whose private parts, used below, were looked at; with a later one compiling and loading take longer
_KNOWN = numba.version_info.short < (0, 69)


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


class _Linked(Compiler):
    """Numba's compiler, for blocks."""

    def define_pipelines(self) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# what lets Python call a function: for tables and scratch memory it took a fifth of a cold compilation
_UNWRAPPED: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}
if _KNOWN:
    _UNWRAPPED["pipeline_class"] = _Linked


def block(function: F) -> F:
    """Compile a piece of drivers, which Python cannot call; it is cached as a part of them only.

    Blocks do not allocate, so they are compiled without reference counting: with it, an atomic addition for each array that
    a query's blocks touch took 2 microseconds a query.
    """
    return numba.njit(_nrt=False, **_UNWRAPPED)(function)


def inlined(function: F) -> F:
    """A block that becomes part of its only caller, because it takes all tables and all scratch memory.

    To pass some forty arrays costs 0.1 microseconds a call. Inlined by Numba and not by LLVM, which would optimise the block
    once for itself and again in each caller: cold compilation took 34 s so, and takes a third of it.
    """
    return numba.njit(_nrt=False, inline="always", **_UNWRAPPED)(function)


def apart(function: F) -> F:
    """A block that stays a function of its own, and gets no more of its contiguous arrays than data and lengths.

    For blocks with loops: within their caller they would slow each other down (see `_apart`). To call a plain block takes
    seven words for each array, and two more for each dimension after the first. It must not allocate: nobody would learn that
    there was no memory.
    """
    if numba.config.DISABLE_JIT:
        return function
    compiled = numba.njit(_nrt=False, forceinline=True, **_UNWRAPPED)(function)

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
            return _apart(function.__name__, emit)(context, builder, signature, arguments)

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
    strides = [_const(itemsize)]
    for length in reversed(given.shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, given.data, given.shape, strides, itemsize, None)
    return array._getvalue()


def allocating(function: F) -> F:
    """A block that allocates memory."""
    return numba.njit(_nrt=True, **_UNWRAPPED)(function)


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


empty = compiled_empty if _KNOWN and not numba.config.DISABLE_JIT else np.empty


class _LoadedAlone(FunctionCache):
    """Numba's cache of a driver, which loads it without what only compiling needs.

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
    """Compile what Python calls, cached on disk where a folder for it can be written, and without a cache elsewhere."""

    def decorate(function: F) -> F:
        dispatcher = numba.njit(**_OPTIONS, **options)(function)
        if hasattr(dispatcher, "enable_caching"):  # not where NUMBA_DISABLE_JIT leaves a plain function
            with suppress(RuntimeError):  # neither the package folder nor a home folder can be written
                if _KNOWN:  # code that lacks a part ends the process
                    dispatcher._cache = _LoadedAlone(function)
                else:
                    dispatcher.enable_caching()
        return dispatcher

    return decorate


def is_compiled(driver: Any) -> bool:
    """Whether a driver was compiled before, by this process or into the cache on disk, as far as that can be told."""
    if numba.config.DISABLE_JIT or driver.overloads:
        return True
    cached = getattr(driver._cache, "_cache_file", None) if _KNOWN else None
    return cached is not None and bool(cached._load_index())


# ---- vector blocks: what LLVM's vectoriser does not find by itself, each beside the plain function that defines it ----
#
# Vectors of LANES documents are plain LLVM IR, so one source serves every processor: LLVM splits them where registers are
# narrower. A list's last, partial vector is read as the LANES documents that end the list, and lanes read before are masked.

LANES = 16
SIDE_BY_SIDE = 8  # queries whose rows are summed together
BINS = 2 * LANES  # groups of documents whose greatest scores bound those of the first ranks
_WIDE = 64  # bytes compared at once
_LINE = 64  # bytes that memory gives at once
_LOOKED_AT = 128  # vectors looked at before what they hold is kept
_COUNTED = 4  # codes counted in one pass
_POPULATION = ir.IntType(64)


def _const(value: int, bits: int = 64) -> ir.Constant:
    return ir.Constant(ir.IntType(bits), value)


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, _const(0, 32))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    )


def _lane_numbers(lanes: int, bits: int = 32) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(bits), lanes), list(range(lanes)))


def _pointer(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _load(builder: Any, pointer: Any, offset: Any, kind: Any, align: int) -> Any:
    return builder.load(builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer()), align=align)


def _store(builder: Any, value: Any, pointer: Any, offset: Any, align: int) -> None:
    builder.store(
        value, builder.bitcast(builder.gep(pointer, [offset]), value.type.as_pointer()), align=align
    )


def _compress(builder: Any, value: Any, mask: Any) -> Any:
    """The lanes under the mask, moved together to the front."""
    kind = value.type
    element = "f" if isinstance(kind.element, ir.FloatType | ir.DoubleType) else "i"
    bits = {ir.FloatType: 32, ir.DoubleType: 64}.get(type(kind.element)) or kind.element.width
    name = f"llvm.experimental.vector.compress.v{kind.count}{element}{bits}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind, mask.type, kind]), name
    )
    return builder.call(function, [value, mask, ir.Constant(kind, ir.Undefined)])


def _compresses() -> bool:
    """Whether the processor has an instruction for `_compress`, which goes through memory, lane by lane, where it has none."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return "+avx512f" in features


@contextmanager
def _for_bits(builder: Any, word: Any) -> Iterator[Any]:
    """For each bit of a word that is set, from the lowest: its place."""
    left = cgutils.alloca_once_value(builder, word)
    check, body, done = (builder.append_basic_block(name) for name in ("check", "body", "done"))
    builder.branch(check)
    builder.position_at_end(check)
    bits = builder.load(left)
    builder.cbranch(builder.icmp_unsigned("!=", bits, _const(0)), body, done)
    builder.position_at_end(body)
    yield builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
    builder.store(builder.and_(bits, builder.sub(bits, _const(1))), left)
    builder.branch(check)
    builder.position_at_end(done)


@contextmanager
def _for_reached(builder: Any, n: Any, lanes: int, reached: Callable[[Any], Any]) -> Iterator[Any]:
    """For each of n >= `lanes` places at which a lane of `reached(offset)`, a mask, is set, in order: the place.

    What `_compress` is where it is an instruction: 64 places at a time, since where a word ends is hard to predict.
    """

    def bits_of(mask: Any) -> Any:
        return builder.zext(builder.bitcast(mask, ir.IntType(lanes)), ir.IntType(64))

    word = cgutils.alloca_once(builder, ir.IntType(64))
    with cgutils.for_range_slice(builder, _const(0), n, _const(64)) as (start, _):
        builder.store(_const(0), word)

        def add(bits: Any) -> None:
            builder.store(builder.or_(builder.load(word), bits), word)

        stop = builder.add(start, _const(64))
        with builder.if_else(builder.icmp_signed("<=", stop, n)) as (whole, part):
            with whole:
                for first in range(0, 64, lanes):
                    add(builder.shl(bits_of(reached(builder.add(start, _const(first)))), _const(first)))
            with part:
                left = builder.sub(n, start)
                done = builder.sub(n, builder.srem(left, _const(lanes)))
                with cgutils.for_range_slice(builder, start, done, _const(lanes)) as (offset, _):
                    add(builder.shl(bits_of(reached(offset)), builder.sub(offset, start)))
                with builder.if_then(builder.icmp_signed("<", done, n)):
                    end = builder.sub(n, _const(lanes))
                    seen = _splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), lanes)
                    fresh = builder.icmp_signed(">=", _lane_numbers(lanes), seen)
                    last = bits_of(builder.and_(reached(end), fresh))
                    # lanes that were read before lie below the word, or below what is in it
                    below = builder.sub(start, end)
                    is_below = builder.icmp_signed(">", below, _const(0))
                    up = builder.select(is_below, _const(0), builder.neg(below))
                    down = builder.select(is_below, below, _const(0))
                    add(builder.lshr(builder.shl(last, up), down))
        with _for_bits(builder, builder.load(word)) as place:
            yield builder.add(start, place)


def _reduced(builder: Any, how: str, vector: Any) -> Any:
    """Least ("smin") or greatest ("smax") lane of a vector of int64."""
    name = f"llvm.vector.reduce.{how}.v{vector.type.count}i64"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(64), [vector.type]), name
    )
    return builder.call(function, [vector])


def _population(builder: Any, mask: Any) -> Any:
    bits = builder.ctpop(builder.bitcast(mask, ir.IntType(mask.type.count)))
    return bits if mask.type.count == 64 else builder.zext(bits, _POPULATION)


class _Data(NamedTuple):
    """An array as an LLVM function gets it."""

    data: Any
    shape: list[Any]


def _apart(name: str, emit: Callable[..., Any], *, unrolled: bool = True) -> Callable[..., Any]:
    """The code of an intrinsic as an LLVM function of its own: `emit(builder, ...)` gets its arrays as `_Data`.

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
        return _Data(next(values), [next(values) for _ in range(kind.ndim)])
    if isinstance(kind, types.BaseTuple):
        return [_put_together(part, values) for part in kind.types]
    return next(values)


class _Element(NamedTuple):
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


def _element(array: Any) -> _Element:
    if array.dtype == types.float32:
        return _Element(ir.FloatType(), 4, False)
    if array.dtype == types.float64:
        return _Element(ir.DoubleType(), 8, False)
    return _Element(ir.IntType(64), 8, True)


def plain_bound_of_top(scores: Array, depth: int) -> Any:
    """A lower bound of the `depth`-th greatest score, for depth <= LANES <= len(scores).

    LANES lanes take turns at the documents and each keeps its greatest score; at least `depth` documents reach the
    `depth`-th greatest of these.
    """
    n = scores.shape[0]
    lanes = scores[:LANES].copy()
    last = n - n % LANES
    for i in range(LANES, last):
        lanes[i % LANES] = max(lanes[i % LANES], scores[i])
    for i in range(last, n):
        lane = i - (n - LANES)
        lanes[lane] = max(lanes[lane], scores[i])
    lanes.sort()
    return lanes[LANES - depth]


@intrinsic
def vector_bound_of_top(typing: Any, scores: Any, depth: Any) -> Any:
    element = _element(scores)

    def emit(builder: Any, scores: _Data, depth: Any) -> Any:
        pointer, n = scores.data, scores.shape[0]
        kind = element.vector(LANES)

        def keep_greatest(vector: Any) -> None:
            held = builder.load(greatest, align=element.size)
            builder.store(
                builder.select(element.greater(builder, vector, held), vector, held),
                greatest,
                align=element.size,
            )

        greatest = cgutils.alloca_once_value(builder, _load(builder, pointer, _const(0), kind, element.size))
        full = builder.sdiv(n, _const(LANES))
        with cgutils.for_range_slice(builder, _const(1), full, _const(1)) as (block, _):
            keep_greatest(_load(builder, pointer, builder.mul(block, _const(LANES)), kind, element.size))
        end = builder.sub(n, _const(LANES))
        fresh = builder.icmp_signed(
            ">=",
            _lane_numbers(LANES),
            _splat(
                builder,
                builder.trunc(builder.sub(builder.mul(full, _const(LANES)), end), ir.IntType(32)),
                LANES,
            ),
        )
        tail = _load(builder, pointer, end, kind, element.size)
        keep_greatest(builder.select(fresh, tail, element.constant(element.extreme(-1), LANES)))

        # sort the lanes: in each step every lane meets another and the one of the lower number keeps the greater score
        lanes = builder.load(greatest, align=element.size)
        for size in (2, 4, 8, 16):
            for span in (size - 1, *(size >> turn for turn in range(2, size.bit_length()))):
                partners = [lane ^ span for lane in range(LANES)]
                order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), partners)
                lower = [lane < partner for lane, partner in enumerate(partners)]
                met = builder.shuffle_vector(lanes, lanes, order)
                above = element.greater(builder, lanes, met)
                lanes = builder.select(
                    ir.Constant(ir.VectorType(ir.IntType(1), LANES), lower),
                    builder.select(above, lanes, met),
                    builder.select(above, met, lanes),
                )
        return builder.extract_element(lanes, builder.trunc(builder.sub(depth, _const(1)), ir.IntType(32)))

    return scores.dtype(scores, types.int64), _apart("bound_of_top", emit)


def _sorting_steps(first: int, n: int) -> Iterator[tuple[int, int]]:
    """The pairs of places that Batcher's odd-even merge sort of n rows compares; n is a power of two."""
    if n > 1:
        yield from _sorting_steps(first, n // 2)
        yield from _sorting_steps(first + n // 2, n // 2)
        yield from _merging_steps(first, n, 1)


def _merging_steps(first: int, n: int, step: int) -> Iterator[tuple[int, int]]:
    if 2 * step == n:
        yield first, first + step
        return
    yield from _merging_steps(first, n, 2 * step)
    yield from _merging_steps(first + step, n, 2 * step)
    for place in range(first + step, first + n - step, 2 * step):
        yield place, place + step


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
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


def plain_greatest_by_bin(scores: Array, starts: Array, stops: Array, greatest: Array) -> None:
    """greatest[lane, bin] = the greatest score of a bin; BINS bins take turns at the scores of a lane, if it has so many."""
    for lane in range(starts.shape[0]):
        own = scores[starts[lane] : stops[lane]]
        n = own.shape[0]
        if n < BINS:
            continue
        greatest[lane] = own[:BINS]
        last = n - n % BINS
        for i in range(BINS, n):
            turn = i % BINS if i < last else i - (n - BINS)
            greatest[lane, turn] = max(greatest[lane, turn], own[i])


@intrinsic
def vector_greatest_by_bin(typing: Any, scores: Any, starts: Any, stops: Any, greatest: Any) -> Any:
    element = _element(scores)

    def emit(builder: Any, scores: _Data, starts: _Data, stops: _Data, greatest: _Data) -> None:
        kind = element.vector(BINS)
        with _for_lanes(builder, starts, stops, _const(BINS)) as (lane, start, n):
            pointer = builder.gep(scores.data, [start])
            held = cgutils.alloca_once_value(builder, _load(builder, pointer, _const(0), kind, element.size))

            def keep_greatest(vector: Any) -> None:
                before = builder.load(held)
                builder.store(builder.select(element.greater(builder, vector, before), vector, before), held)

            full = builder.sdiv(n, _const(BINS))
            with cgutils.for_range_slice(builder, _const(1), full, _const(1)) as (block, _):
                keep_greatest(_load(builder, pointer, builder.mul(block, _const(BINS)), kind, element.size))
            end = builder.sub(n, _const(BINS))
            seen = builder.trunc(builder.sub(builder.mul(full, _const(BINS)), end), ir.IntType(32))
            fresh = builder.icmp_signed(">=", _lane_numbers(BINS), _splat(builder, seen, BINS))
            tail = _load(builder, pointer, end, kind, element.size)
            keep_greatest(builder.select(fresh, tail, element.constant(element.extreme(-1), BINS)))
            place = builder.mul(lane, _const(BINS))
            _store(builder, builder.load(held), greatest.data, place, element.size)

    return types.void(scores, starts, stops, greatest), _apart("greatest_by_bin", emit, unrolled=False)


@contextmanager
def _for_lanes(builder: Any, starts: _Data, stops: _Data, least: Any) -> Iterator[tuple[Any, Any, Any]]:
    """For each lane with at least so many documents: its number, its first document, and how many it has."""
    with cgutils.for_range(builder, starts.shape[0]) as loop:
        start = builder.load(builder.gep(starts.data, [loop.index]))
        n = builder.sub(builder.load(builder.gep(stops.data, [loop.index])), start)
        with builder.if_then(builder.icmp_signed(">=", n, least)):
            yield loop.index, start, n


def plain_bounds_of_top(greatest: Array, depth: int, bounds: Array) -> None:
    """A lower bound of the `depth`-th greatest score of each lane: at least `depth` documents reach that of its bins."""
    bounds[:] = np.sort(greatest, axis=1)[:, BINS - depth]


@intrinsic
def vector_bounds_of_top(typing: Any, greatest: Any, depth: Any, bounds: Any) -> Any:
    element = _element(greatest)

    def emit(builder: Any, greatest: _Data, depth: Any, bounds: _Data) -> None:
        kind = element.vector(SIDE_BY_SIDE)
        first_rows = cgutils.alloca_once(builder, kind, BINS)

        def sort_bins(wanted: int) -> None:
            rows: list[Any] = []
            for first in range(0, BINS, SIDE_BY_SIDE):
                places = [_const(lane * BINS + first) for lane in range(SIDE_BY_SIDE)]
                loaded = [_load(builder, greatest.data, place, kind, element.size) for place in places]
                rows += _transposed(builder, loaded)
            for one, other in _sorting_steps(0, BINS):
                above = element.greater(builder, rows[one], rows[other])
                rows[one], rows[other] = (
                    builder.select(above, rows[one], rows[other]),
                    builder.select(above, rows[other], rows[one]),
                )
            for place in range(wanted):
                builder.store(rows[place], builder.gep(first_rows, [_const(place)]))

        # LLVM leaves out the steps that the rows which are wanted do not depend on
        with builder.if_else(builder.icmp_signed("<=", depth, _const(LANES))) as (half, whole):
            with half:
                sort_bins(LANES)
            with whole:
                sort_bins(BINS)
        found = builder.load(builder.gep(first_rows, [builder.sub(depth, _const(1))]))
        _store(builder, found, bounds.data, _const(0), element.size)

    return types.void(greatest, types.int64, bounds), _apart("bounds_of_top", emit)


def plain_keep_from(scores: Array, codes: Array, bound: Any, kept: Array, kept_codes: Array) -> int:
    """Copy the scores that reach the bound, and their codes, in order; returns how many. Both take LANES more places."""
    found = np.flatnonzero(scores >= bound)
    kept[: found.shape[0]], kept_codes[: found.shape[0]] = scores[found], codes[found]
    return int(found.shape[0])


def plain_keep_from_lanes(
    scores: Array,
    codes: Array,
    starts: Array,
    stops: Array,
    bounds: Array,
    kept: Array,
    kept_codes: Array,
    counts: Array,
) -> None:
    """As `keep_from`, for each lane of at least LANES documents; `counts` says how many are kept."""
    for lane in range(starts.shape[0]):
        own = slice(starts[lane], stops[lane])
        if stops[lane] - starts[lane] >= LANES:
            counts[lane] = plain_keep_from(
                scores[own], codes[own], bounds[lane], kept[lane], kept_codes[lane]
            )


def plain_keep_values_from(values: Array, bound: float, kept: Array) -> int:
    """Copy the values that reach the bound, in order; returns how many. `kept` takes LANES more places."""
    found = values[values >= bound]
    kept[: found.shape[0]] = found
    return int(found.shape[0])


def _keeping(few: bool, scores: Any) -> Callable[..., Any]:
    """The code of `keep_from`, without codes where they are None; where `few` are kept, only of the vectors that hold some."""
    element = _element(scores)
    lanes = 64 // element.size  # compressing wider vectors than a register goes through memory
    half = ir.Constant(ir.VectorType(ir.IntType(32), lanes // 2), list(range(lanes // 2)))

    def emit(
        builder: Any, scores: _Data, codes: _Data | None, bound: Any, kept: _Data, kept_codes: _Data | None
    ) -> Any:
        pointer, n = scores.data, scores.shape[0]
        least = _splat(builder, bound, lanes)
        found = cgutils.alloca_once_value(builder, _const(0))

        def compared(offset: Any) -> tuple[Any, Any]:
            vector = _load(builder, pointer, offset, element.vector(lanes), element.size)
            return vector, builder.not_(element.greater(builder, least, vector))

        if not _compresses():
            with _for_reached(builder, n, lanes, lambda offset: compared(offset)[1]) as offset:
                at = builder.load(found)
                score = builder.load(builder.gep(pointer, [offset]))
                builder.store(score, builder.gep(kept.data, [at]))
                if codes is not None and kept_codes is not None:
                    number = builder.load(builder.gep(codes.data, [offset]))
                    if number.type.width < 32:
                        number = builder.zext(number, ir.IntType(32))
                    builder.store(number, builder.gep(kept_codes.data, [at]))
                builder.store(builder.add(at, _const(1)), found)
            return builder.load(found)

        def keep(offset: Any, fresh: Any = None) -> None:
            vector, reached = compared(offset)
            if fresh is not None:
                reached = builder.and_(reached, fresh)
            at = builder.load(found)
            moved = [(_compress(builder, vector, reached), kept.data, element.size)]
            if codes is not None and kept_codes is not None:
                code = codes.data.type.pointee
                numbers = _load(builder, codes.data, offset, ir.VectorType(code, lanes), code.width // 8)
                if code.width < 32:
                    numbers = builder.zext(numbers, ir.VectorType(ir.IntType(32), lanes))
                moved.append((_compress(builder, numbers, reached), kept_codes.data, 4))
            # half a vector takes nearly all that is kept of a whole one, and its store seldom crosses a cache line
            for kept_lanes, to, size in moved:
                _store(builder, builder.shuffle_vector(kept_lanes, kept_lanes, half), to, at, size)
            count = _population(builder, reached)
            with builder.if_then(builder.icmp_signed(">", count, _const(lanes // 2)), likely=False):
                for kept_lanes, to, size in moved:
                    _store(builder, kept_lanes, to, at, size)
            builder.store(builder.add(at, count), found)

        def keep_where_some_are(start: Any, stop: Any, places: Any) -> None:
            count = cgutils.alloca_once_value(builder, _const(0))
            with cgutils.for_range_slice(builder, start, stop, _const(lanes)) as (offset, _):
                reached = builder.bitcast(compared(offset)[1], ir.IntType(lanes))
                at = builder.load(count)
                builder.store(offset, builder.gep(places, [at]))
                some = builder.icmp_unsigned("!=", reached, _const(0, lanes))
                builder.store(builder.add(at, builder.zext(some, at.type)), count)
            with cgutils.for_range(builder, builder.load(count)) as loop:
                keep(builder.load(builder.gep(places, [loop.index])))

        done = builder.mul(builder.sdiv(n, _const(lanes)), _const(lanes))
        if few:  # a branch for each vector would go wrong at most of those where some are
            step = _LOOKED_AT * lanes
            places = cgutils.alloca_once(builder, ir.IntType(64), _LOOKED_AT)
            with cgutils.for_range_slice(builder, _const(0), done, _const(step)) as (start, _):
                stop = builder.add(start, _const(step))
                stop = builder.select(builder.icmp_signed("<", stop, done), stop, done)
                keep_where_some_are(start, stop, places)
        else:
            with cgutils.for_range_slice(builder, _const(0), done, _const(lanes)) as (offset, _):
                keep(offset)
        with builder.if_then(builder.icmp_signed("<", done, n)):
            end = builder.sub(n, _const(lanes))
            first = _splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), lanes)
            keep(end, builder.icmp_signed(">=", _lane_numbers(lanes), first))
        return builder.load(found)

    return emit


def _keeping_of_one(few: bool, scores: Any, codes: Any, kept: Any, kept_codes: Any) -> Any:
    name = "keep_few_from" if few else "keep_from"
    return types.int64(scores, codes, scores.dtype, kept, kept_codes), _apart(name, _keeping(few, scores))


@intrinsic
def vector_keep_from(typing: Any, scores: Any, codes: Any, bound: Any, kept: Any, kept_codes: Any) -> Any:
    return _keeping_of_one(False, scores, codes, kept, kept_codes)


@intrinsic
def vector_keep_few_from(typing: Any, scores: Any, codes: Any, bound: Any, kept: Any, kept_codes: Any) -> Any:
    return _keeping_of_one(True, scores, codes, kept, kept_codes)


@intrinsic
def vector_keep_from_lanes(
    typing: Any,
    scores: Any,
    codes: Any,
    starts: Any,
    stops: Any,
    bounds: Any,
    kept: Any,
    kept_codes: Any,
    counts: Any,
) -> Any:
    keep = _keeping(False, scores)

    def emit(
        builder: Any,
        scores: _Data,
        codes: _Data,
        starts: _Data,
        stops: _Data,
        bounds: _Data,
        kept: _Data,
        kept_codes: _Data,
        counts: _Data,
    ) -> None:
        with _for_lanes(builder, starts, stops, _const(LANES)) as (lane, start, n):
            found = keep(
                builder,
                _Data(builder.gep(scores.data, [start]), [n]),
                _Data(builder.gep(codes.data, [start]), [n]),
                builder.load(builder.gep(bounds.data, [lane])),
                _Data(builder.gep(kept.data, [builder.mul(lane, kept.shape[1])]), []),
                _Data(builder.gep(kept_codes.data, [builder.mul(lane, kept_codes.shape[1])]), []),
            )
            builder.store(found, builder.gep(counts.data, [lane]))

    taken = types.void(scores, codes, starts, stops, bounds, kept, kept_codes, counts)
    return taken, _apart("keep_from_lanes", emit, unrolled=False)


@intrinsic
def vector_keep_values_from(typing: Any, values: Any, bound: Any, kept: Any) -> Any:
    keep = _keeping(False, values)

    def emit(builder: Any, values: _Data, bound: Any, kept: _Data) -> Any:
        return keep(builder, values, None, bound, kept, None)

    return types.int64(values, values.dtype, kept), _apart("keep_values_from", emit)


def plain_count_ahead(scores: Array, blocks: int, score: Any) -> int:
    """How many of the first `blocks` * LANES scores are greater, times 2**32, plus how many are equal."""
    compared = scores[: blocks * LANES]
    return (int(np.count_nonzero(compared > score)) << 32) + int(np.count_nonzero(compared == score))


@intrinsic
def vector_count_ahead(typing: Any, scores: Any, blocks: Any, score: Any) -> Any:
    element = _element(scores)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0])
        own = _splat(builder, arguments[2], LANES)
        count = cgutils.alloca_once_value(builder, _const(0))
        with cgutils.for_range(builder, arguments[1]) as loop:
            vector = _load(
                builder, pointer, builder.mul(loop.index, _const(LANES)), element.vector(LANES), element.size
            )
            ahead = builder.shl(_population(builder, element.greater(builder, vector, own)), _const(32))
            both = builder.add(ahead, _population(builder, element.equal(builder, vector, own)))
            builder.store(builder.add(builder.load(count), both), count)
        return builder.load(count)

    return types.int64(scores, types.int64, scores.dtype), generate


def _at_each_place(
    builder: Any,
    scores: Any,
    element: _Element,
    n: Any,
    lowest: Any,
    emit: Callable[[Any, Any, list[Any]], None],
    finish: Callable[[Any, list[Any]], None] | None = None,
) -> None:
    """Emit `emit(place, its score, all scores)` for each of n <= 2 * LANES places, the last first.

    All places of one vector; of two, as many eighths as n needs, so that the number of steps seldom varies. Places beyond
    the last document come first, so that whatever they write is written over. `finish(places, all scores)` comes after.
    """
    long, low = ir.IntType(64), _splat(builder, lowest, LANES)

    def rank_all(vectors: int) -> None:
        own = []
        for v in range(vectors):
            places = ir.Constant(ir.VectorType(long, LANES), [v * LANES + lane for lane in range(LANES)])
            vector = _load(builder, scores, _const(v * LANES), element.vector(LANES), element.size)
            own.append(
                builder.select(builder.icmp_signed("<", places, _splat(builder, n, LANES)), vector, low)
            )
        for v in range(vectors):
            _store(builder, own[v], scores, _const(v * LANES), element.size)

        def rank(place: Any) -> None:
            score = builder.load(builder.gep(scores, [place]), align=element.size)
            emit(place, _splat(builder, score, LANES), own)

        if vectors == 1:
            for place in reversed(range(LANES)):
                rank(_const(place))
            count = _const(LANES)
        else:
            steps = LANES // 2
            rounds = builder.sdiv(builder.add(n, _const(steps - 1)), _const(steps))
            with cgutils.for_range(builder, rounds) as loop:
                last = builder.mul(builder.sub(rounds, loop.index), _const(steps))
                for step in range(1, steps + 1):
                    rank(builder.sub(last, _const(step)))
            count = builder.mul(rounds, _const(steps))
        if finish is not None:
            finish(count, own)

    with builder.if_else(builder.icmp_signed("<=", n, _const(LANES))) as (one, two):
        with one:
            rank_all(1)
        with two:
            rank_all(2)


def _lanes_where(
    builder: Any, compare: Callable[[Any, Any, Any], Any], vectors: list[Any], score: Any
) -> Any:
    """Which lanes of one vector or of two compare so with a score, as the bits of an int32."""
    masks = [compare(builder, vector, score) for vector in vectors]
    if len(masks) == 1:
        return builder.zext(builder.bitcast(masks[0], ir.IntType(LANES)), ir.IntType(32))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), list(range(2 * LANES)))
    return builder.bitcast(builder.shuffle_vector(*masks, lanes), ir.IntType(32))


def plain_rank_distinct(scores: Array, codes: Array, n: int, lowest: Any, ranked: Array) -> bool:
    """ranked[r] = code of the document that r of the first n <= 2 * LANES scores are greater than, where no two are equal.

    Returns whether that is so. The arrays have places for 2 * LANES. What follows the first n scores may become `lowest`;
    what follows the first n of `ranked` may be anything.
    """
    scores[n : 2 * LANES] = lowest
    ranks = [int(np.count_nonzero(scores[:n] > score)) for score in scores[:n]]
    ranked[ranks] = codes[:n]
    return len(set(ranks)) == n


@intrinsic
def vector_rank_distinct(typing: Any, scores: Any, codes: Any, n: Any, lowest: Any, ranked: Any) -> Any:
    element = _element(scores)
    long = ir.IntType(64)

    def emit(builder: Any, scores: _Data, codes: _Data, n: Any, lowest: Any, ranked: _Data) -> Any:
        low = _splat(builder, lowest, LANES)
        total = cgutils.alloca_once_value(builder, _const(0))

        def ahead_of(score: Any, own: list[Any]) -> Any:
            return builder.zext(builder.ctpop(_lanes_where(builder, element.greater, own, score)), long)

        def place_one(place: Any, score: Any, own: list[Any]) -> None:
            rank = ahead_of(score, own)
            builder.store(builder.load(builder.gep(codes.data, [place])), builder.gep(ranked.data, [rank]))
            builder.store(builder.add(builder.load(total), rank), total)

        def leave_out_the_rest(places: Any, own: list[Any]) -> None:
            rest = builder.mul(builder.sub(places, n), ahead_of(low, own))
            builder.store(builder.sub(builder.load(total), rest), total)

        _at_each_place(builder, scores.data, element, n, lowest, place_one, leave_out_the_rest)
        pairs = builder.mul(n, builder.sub(n, _const(1)))
        return builder.icmp_signed("==", builder.shl(builder.load(total), _const(1)), pairs)

    return types.boolean(scores, codes, types.int64, scores.dtype, ranked), _apart("rank_distinct", emit)


def plain_rank_tied(
    scores: Array, codes: Array, n: int, lowest: Any, ranked: Array, firsts: Array, sizes: Array
) -> None:
    """Codes by falling score, equals in their order; and first rank and size of the group of equals, at each of its ranks.

    Of the first n <= 2 * LANES scores; arrays and what follows the first n are as in `rank_distinct`.
    """
    for i in range(n):
        greater, equal = scores[:n] > scores[i], scores[:n] == scores[i]
        first = np.count_nonzero(greater)
        at = first + np.count_nonzero(equal[:i])
        ranked[at], firsts[at], sizes[at] = codes[i], first, np.count_nonzero(equal)


@intrinsic
def vector_rank_tied(
    typing: Any, scores: Any, codes: Any, n: Any, lowest: Any, ranked: Any, firsts: Any, sizes: Any
) -> Any:
    element = _element(scores)
    word = ir.IntType(32)

    def emit(
        builder: Any, scores: _Data, codes: _Data, n: Any, lowest: Any, ranked: _Data, firsts: _Data, sizes: _Data
    ) -> None:  # fmt: skip
        documents = builder.trunc(builder.sub(builder.shl(_const(1), n), _const(1)), word)

        def place_one(place: Any, score: Any, own: list[Any]) -> None:
            code = builder.load(builder.gep(codes.data, [place]))
            first = builder.ctpop(_lanes_where(builder, element.greater, own, score))
            equal = builder.and_(_lanes_where(builder, element.equal, own, score), documents)
            above = builder.sub(builder.shl(_const(1), place), _const(1))
            earlier = builder.ctpop(builder.and_(equal, builder.trunc(above, word)))
            at = builder.add(first, earlier)
            for value, array in ((code, ranked), (first, firsts), (builder.ctpop(equal), sizes)):
                builder.store(value, builder.gep(array.data, [builder.zext(at, ir.IntType(64))]))

        _at_each_place(builder, scores.data, element, n, lowest, place_one)

    return types.void(scores, codes, types.int64, scores.dtype, ranked, firsts, sizes), _apart(
        "rank_tied", emit
    )


def _monotone(builder: Any, element: _Element, scores: Any) -> Any:
    """Signed integers in the order of the scores, equal where these are."""
    if element.whole:
        return scores
    lanes = scores.type.count
    kind = ir.VectorType(ir.IntType(8 * element.size), lanes)
    bits = builder.bitcast(builder.fadd(scores, element.constant(0.0, lanes)), kind)  # -0 becomes 0
    sign = builder.ashr(bits, ir.Constant(kind, [8 * element.size - 1] * lanes))
    return builder.xor(bits, builder.lshr(sign, ir.Constant(kind, [1] * lanes)))


def plain_rank_side_by_side(
    scores: Array, codes: Array, kept: Array, placed: int, rows: int, nothing: int, keys: Array, ranked: Array, same: Array
) -> int:  # fmt: skip
    """ranked[r, lane] = code of the document of rank r, for the first `placed` lanes, of those with at most `rows` documents.

    Bit `lane` of same[r] says whether the documents of ranks r - 1 and r are tied. Tied documents keep their order where scores
    are float32, and stand in any order otherwise. Ranks after the last document hold `nothing`, and may stand before documents
    of the dtype's lowest score. `rows` is a multiple of LANES, and `keys` has places for as many. Returns the lanes with ties,
    as bits.
    """
    tied = 0
    same[:rows] = 0
    for lane in range(SIDE_BY_SIDE):
        n = kept[lane] if lane < placed and kept[lane] <= rows else 0
        order = n - 1 - np.argsort(scores[lane, :n][::-1], kind="stable")[::-1]
        ranked[:n, lane], ranked[n:rows, lane] = codes[lane, order], nothing
        for rank in range(1, n):
            if scores[lane, order[rank]] == scores[lane, order[rank - 1]]:
                same[rank] |= 1 << lane
                tied |= 1 << lane
    return tied


class _Rows(NamedTuple):
    """Rows of documents by rank, a lane for each query: one number of score, place and code, or a score and beside it a code."""

    element: _Element
    keys: Any
    codes: Any

    @property
    def packed(self) -> bool:
        return self.element.size == 4

    def load(self, builder: Any, row: Any) -> list[Any]:
        at, word = builder.mul(row, _const(SIDE_BY_SIDE)), ir.IntType(32)
        parts = [_load(builder, self.keys, at, ir.VectorType(ir.IntType(64), SIDE_BY_SIDE), 8)]
        if not self.packed:
            parts.append(_load(builder, self.codes, at, ir.VectorType(word, SIDE_BY_SIDE), 4))
        return parts

    def store(self, builder: Any, parts: list[Any], row: Any) -> None:
        at = builder.mul(row, _const(SIDE_BY_SIDE))
        for part, array, size in zip(parts, (self.keys, self.codes), (8, 4), strict=False):
            _store(builder, part, array, at, size)


def _exchange(builder: Any, one: list[Any], other: list[Any]) -> tuple[list[Any], list[Any]]:
    """Of two rows, in each lane the document that comes first, and the other one."""
    above = builder.icmp_signed(">", one[0], other[0])
    pairs = list(zip(one, other, strict=True))
    return (
        [builder.select(above, left, right) for left, right in pairs],
        [builder.select(above, right, left) for left, right in pairs],
    )


def _sorted_block(
    builder: Any, element: _Element, scores: _Data, codes: _Data, held: Any, none: Any, first: Any
) -> list[list[Any]]:
    """LANES rows of documents, those from `first` on of each lane, in the order of their scores."""
    word, lanes = ir.IntType(32), SIDE_BY_SIDE
    numbers = ir.VectorType(ir.IntType(64), LANES)
    place = builder.add(_lane_numbers(LANES), _splat(builder, builder.trunc(first, word), LANES))
    turned = builder.shl(
        builder.sub(ir.Constant(place.type, [0xFFFF] * LANES), place), ir.Constant(place.type, [16] * LANES)
    )
    keys: list[list[Any]] = []  # of each lane
    for lane in range(lanes):
        n = builder.trunc(builder.extract_element(held, _const(lane, 32)), word)
        is_document = builder.icmp_signed("<", place, _splat(builder, n, LANES))
        row = builder.add(builder.mul(_const(lane), scores.shape[1]), first)
        score = _load(builder, scores.data, row, element.vector(LANES), element.size)
        score = _monotone(builder, element, score)
        lowest = ir.Constant(score.type, [-(1 << (8 * element.size - 1))] * LANES)
        score = builder.select(is_document, score, lowest)
        row = builder.add(builder.mul(_const(lane), codes.shape[1]), first)
        code = _load(builder, codes.data, row, ir.VectorType(word, LANES), 4)
        code = builder.select(is_document, code, none)
        if element.size == 4:
            score = builder.shl(builder.zext(score, numbers), ir.Constant(numbers, [32] * LANES))
            keys.append([builder.or_(score, builder.zext(builder.or_(code, turned), numbers))])
        else:
            keys.append([score, code])
    rows: list[list[Any]] = [[] for _ in range(LANES)]
    for part in range(len(keys[0])):
        for half in range(0, LANES, lanes):
            some = ir.Constant(ir.VectorType(word, lanes), list(range(half, half + lanes)))
            columns = _transposed(
                builder, [builder.shuffle_vector(key[part], key[part], some) for key in keys]
            )
            for at, column in enumerate(columns):
                rows[half + at].append(column)
    for one, other in _sorting_steps(0, LANES):
        rows[one], rows[other] = _exchange(builder, rows[one], rows[other])
    return rows


@contextmanager
def _while(builder: Any, condition: Callable[[], Any]) -> Iterator[None]:
    check, body, done = (builder.append_basic_block(name) for name in ("check", "body", "done"))
    builder.branch(check)
    builder.position_at_end(check)
    builder.cbranch(condition(), body, done)
    builder.position_at_end(body)
    yield
    builder.branch(check)
    builder.position_at_end(done)


def _merge_rows(builder: Any, table: _Rows, rows: Any) -> None:
    """Merge sorted blocks of LANES rows, two and two, by exchanges that leave what is lowest at the end.

    So rows after the last, which would hold no document, need not be there.
    """
    zero, one = _const(0), _const(1)

    def exchange(first: Any, second: Any) -> None:
        ahead, behind = _exchange(builder, table.load(builder, first), table.load(builder, second))
        table.store(builder, ahead, first)
        table.store(builder, behind, second)

    def meet_turned(half: Any) -> None:
        """Exchange rows of two blocks of `half` rows, the first with the last."""
        both = builder.shl(half, one)
        with cgutils.for_range_slice(builder, zero, builder.sub(rows, half), both) as (start, _):
            end = builder.add(start, both)
            missing = builder.sub(end, rows)
            missing = builder.select(builder.icmp_signed(">", missing, zero), missing, zero)
            with cgutils.for_range_slice(builder, missing, half, one) as (i, _):
                exchange(builder.add(start, i), builder.sub(builder.sub(end, one), i))

    def meet(span: Any) -> None:
        """Exchange each row with the one `span` rows after it."""
        last = builder.sub(rows, span)
        with cgutils.for_range_slice(builder, zero, last, builder.shl(span, one)) as (start, _):
            stop = builder.add(start, span)
            stop = builder.select(builder.icmp_signed("<", stop, last), stop, last)
            with cgutils.for_range_slice(builder, start, stop, one) as (row, _):
                exchange(row, builder.add(row, span))

    def meet_within(first: Any) -> None:
        """As `meet` of a block of LANES rows, with half of them, a quarter and so on."""
        held = [table.load(builder, builder.add(first, _const(place))) for place in range(LANES)]
        for span in (LANES // 2, LANES // 4, LANES // 8, LANES // 16):
            for place in range(LANES):
                if not place & span:
                    pair = _exchange(builder, held[place], held[place + span])
                    held[place], held[place + span] = pair
        for place in range(LANES):
            table.store(builder, held[place], builder.add(first, _const(place)))

    size = cgutils.alloca_once_value(builder, _const(LANES))
    span = cgutils.alloca_once_value(builder, zero)
    with _while(builder, lambda: builder.icmp_signed("<", builder.load(size), rows)):
        half = builder.load(size)
        meet_turned(half)
        builder.store(builder.lshr(half, one), span)
        with _while(builder, lambda: builder.icmp_signed(">=", builder.load(span), _const(LANES))):
            meet(builder.load(span))
            builder.store(builder.lshr(builder.load(span), one), span)
        with cgutils.for_range_slice(builder, zero, rows, _const(LANES)) as (first, _):
            meet_within(first)
        builder.store(builder.shl(half, one), size)


@intrinsic
def vector_rank_side_by_side(
    typing: Any, scores: Any, codes: Any, kept: Any, placed: Any, rows: Any, nothing: Any, keys: Any, ranked: Any, same: Any
) -> Any:  # fmt: skip
    element = _element(scores)
    word, long, lanes = ir.IntType(32), ir.IntType(64), SIDE_BY_SIDE
    bits = ir.VectorType(ir.IntType(1), lanes)

    def emit(
        builder: Any, scores: _Data, codes: _Data, kept: _Data, placed: Any, rows: Any, nothing: Any, keys: _Data,
        ranked: _Data, same: _Data,
    ) -> Any:  # fmt: skip
        table = _Rows(element, keys.data, ranked.data)
        none = _splat(builder, builder.trunc(nothing, word), LANES)
        held = _load(builder, kept.data, _const(0), ir.VectorType(long, lanes), 8)
        ours = builder.and_(
            builder.icmp_signed("<", _lane_numbers(lanes, 64), _splat(builder, placed, lanes)),
            builder.icmp_signed("<=", held, _splat(builder, rows, lanes)),
        )
        held = builder.select(ours, held, ir.Constant(held.type, [0] * lanes))
        tied = cgutils.alloca_once_value(builder, ir.Constant(bits, [0] * lanes))

        def finish(parts: list[Any], row: Any, before: list[Any] | None) -> None:
            code = parts[-1]
            if table.packed:
                code = builder.trunc(code, ir.VectorType(word, lanes))
                code = builder.and_(code, ir.Constant(code.type, [0xFFFF] * lanes))
            _store(builder, code, ranked.data, builder.mul(row, _const(lanes)), 4)
            if before is None:
                return
            differing = builder.xor(parts[0], before[0])
            limit = ir.Constant(differing.type, [1 << 32 if table.packed else 1] * lanes)
            equal = builder.icmp_unsigned("<", differing, limit)
            builder.store(builder.bitcast(equal, ir.IntType(8)), builder.gep(same.data, [row]))
            counts = builder.icmp_signed(">=", held, _splat(builder, row, lanes))
            builder.store(builder.or_(builder.load(tied), builder.and_(equal, counts)), tied)

        with builder.if_else(builder.icmp_signed("<=", rows, _const(LANES))) as (few, many):
            with few:
                block = _sorted_block(builder, element, scores, codes, held, none, _const(0))
                for place, parts in enumerate(block):
                    finish(parts, _const(place), block[place - 1] if place else None)
            with many:
                with cgutils.for_range_slice(builder, _const(0), rows, _const(LANES)) as (first, _):
                    block = _sorted_block(builder, element, scores, codes, held, none, first)
                    for place, parts in enumerate(block):
                        table.store(builder, parts, builder.add(first, _const(place)))
                _merge_rows(builder, table, rows)
                start = table.load(builder, _const(0))
                finish(start, _const(0), None)
                with cgutils.for_range_slice(builder, _const(1), rows, _const(1)) as (row, _):
                    finish(table.load(builder, row), row, table.load(builder, builder.sub(row, _const(1))))
        return builder.zext(builder.bitcast(builder.load(tied), ir.IntType(8)), long)

    numbers = types.int64
    return numbers(scores, codes, kept, numbers, numbers, numbers, keys, ranked, same), _apart(
        "rank_side_by_side", emit
    )


def plain_gains_of_codes(codes: Array, gains: Array, rows: int, out: Array) -> None:
    """out[rank, lane] = gains[codes[rank, lane]] for so many rows, of at most SIDE_BY_SIDE gains."""
    for rank in range(rows):
        for lane in range(SIDE_BY_SIDE):
            out[rank, lane] = gains[codes[rank, lane]]


@intrinsic
def vector_gains_of_codes(typing: Any, codes: Any, gains: Any, rows: Any, out: Any) -> Any:
    word = ir.IntType(64)
    numbers, doubles = ir.VectorType(word, SIDE_BY_SIDE), ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)

    def emit(builder: Any, codes: _Data, gains: _Data, rows: Any, out: _Data) -> None:
        last = builder.sub(gains.shape[0], _const(1))
        table = ir.Constant(doubles, ir.Undefined)
        for place in range(SIDE_BY_SIDE):
            there = builder.select(builder.icmp_signed("<", _const(place), last), _const(place), last)
            gain = builder.load(builder.gep(gains.data, [there]))
            table = builder.insert_element(table, gain, _const(place, 32))
        kind = ir.VectorType(ir.IntType(32), SIDE_BY_SIDE)
        with cgutils.for_range(builder, rows) as loop:
            row = builder.mul(loop.index, _const(SIDE_BY_SIDE))
            wide = builder.zext(_load(builder, codes.data, row, kind, 4), numbers)
            place = builder.and_(wide, ir.Constant(numbers, [SIDE_BY_SIDE - 1] * SIDE_BY_SIDE))
            found = ir.Constant(doubles, ir.Undefined)
            for lane in range(SIDE_BY_SIDE):  # one instruction where the processor has it
                gain = builder.extract_element(table, builder.extract_element(place, _const(lane, 32)))
                found = builder.insert_element(found, gain, _const(lane, 32))
            _store(builder, found, out.data, row, 8)

    return types.void(codes, gains, types.int64, out), _apart("gains_of_codes", emit)


def plain_average_side_by_side(
    gains: Array, same: Array, kept: Array, rows: int, sizes: Array, out: Array
) -> None:
    """out[r, lane] = mean gain of the tied group of rank r; `same` is as in `rank_side_by_side`. Sums of gains are exact.

    `gains` and `sizes` hold anything afterwards.
    """
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        start = 0
        while start < rows:
            stop = start + 1
            while stop < rows and same[stop] >> lane & 1:
                stop += 1
            size = min(kept[lane], stop) - start
            if size > 0:
                out[start : min(stop, depth), lane] = gains[start:stop, lane].sum() / size
            start = stop


@intrinsic
def vector_average_side_by_side(
    typing: Any, gains: Any, same: Any, kept: Any, rows: Any, sizes: Any, out: Any
) -> Any:
    lanes = SIDE_BY_SIDE
    doubles, numbers = ir.VectorType(ir.DoubleType(), lanes), ir.VectorType(ir.IntType(64), lanes)

    def emit(
        builder: Any, gains: _Data, same: _Data, kept: _Data, rows: Any, sizes: _Data, out: _Data
    ) -> None:
        zero, one = ir.Constant(doubles, [0.0] * lanes), ir.Constant(doubles, [1.0] * lanes)
        held = _load(builder, kept.data, _const(0), numbers, 8)
        total, size = (cgutils.alloca_once_value(builder, zero) for _ in range(2))

        def joined(row: Any) -> Any:
            bits = builder.load(builder.gep(same.data, [row]))
            return builder.bitcast(bits, ir.VectorType(ir.IntType(1), lanes))

        builder.store(_const(0, 8), same.data)
        with cgutils.for_range(builder, rows) as loop:
            row, at = loop.index, builder.mul(loop.index, _const(lanes))
            goes_on = joined(row)
            is_document = builder.icmp_signed(">", held, _splat(builder, row, lanes))
            for sums, array, own in (
                (total, gains, _load(builder, gains.data, at, doubles, 8)),
                (size, sizes, builder.select(is_document, one, zero)),
            ):
                before = builder.select(goes_on, builder.load(sums), zero)
                builder.store(builder.fadd(own, before), sums)
                _store(builder, builder.load(sums), array.data, at, 8)
        ended = cgutils.alloca_once_value(
            builder, ir.Constant(ir.VectorType(ir.IntType(1), lanes), [1] * lanes)
        )
        with cgutils.for_range(builder, rows) as loop:  # from the last rank of a group back to its first
            row = builder.sub(builder.sub(rows, _const(1)), loop.index)
            at = builder.mul(row, _const(lanes))
            for sums, array in ((total, gains), (size, sizes)):
                own = _load(builder, array.data, at, doubles, 8)
                builder.store(builder.select(builder.load(ended), own, builder.load(sums)), sums)
            builder.store(builder.not_(joined(row)), ended)
            with builder.if_then(builder.icmp_signed("<", row, out.shape[0])):
                _store(builder, builder.fdiv(builder.load(total), builder.load(size)), out.data, at, 8)

    return types.void(gains, same, kept, types.int64, sizes, out), _apart("average_side_by_side", emit)


def plain_count_among(scores: Array, own: Array, firsts: Array, sizes: Array) -> None:
    """How many of the scores are greater than each of the first 2 * LANES of `own`, and how many are equal to it."""
    for i in range(2 * LANES):
        firsts[i] = np.count_nonzero(scores > own[i])
        sizes[i] = np.count_nonzero(scores == own[i])


@intrinsic
def vector_count_among(typing: Any, scores: Any, own: Any, firsts: Any, sizes: Any) -> Any:
    element = _element(scores)
    counts = ir.VectorType(ir.IntType(32), LANES)

    def emit(builder: Any, scores: _Data, own: _Data, firsts: _Data, sizes: _Data) -> None:
        vectors = [
            _load(builder, own.data, _const(v * LANES), element.vector(LANES), element.size) for v in range(2)
        ]
        none = ir.Constant(counts, [0] * LANES)
        ahead, equal = ([cgutils.alloca_once_value(builder, none) for _ in vectors] for _ in range(2))
        with cgutils.for_range(builder, scores.shape[0]) as loop:
            score = builder.load(builder.gep(scores.data, [loop.index]), align=element.size)
            each = _splat(builder, score, LANES)
            for v, vector in enumerate(vectors):
                for sums, mask in (
                    (ahead[v], element.greater(builder, each, vector)),
                    (equal[v], element.equal(builder, each, vector)),
                ):
                    builder.store(builder.sub(builder.load(sums), builder.sext(mask, counts)), sums)
        for v in range(2):
            _store(builder, builder.load(ahead[v]), firsts.data, _const(v * LANES), 4)
            _store(builder, builder.load(equal[v]), sizes.data, _const(v * LANES), 4)

    return types.void(scores, own, firsts, sizes), _apart("count_among", emit)


def plain_count_codes(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    """counts[code, lane] = how many of the codes from `start` to before `stop` are `code`, for each of the levels.

    There are at least LANES codes; `counts` takes _COUNTED more.
    """
    for code in range(levels):
        counts[code, lane] = np.count_nonzero(codes[start:stop] == code)


@intrinsic
def vector_count_codes(
    typing: Any, codes: Any, start: Any, stop: Any, levels: Any, counts: Any, lane: Any
) -> Any:
    byte = ir.IntType(8)

    def emit(
        builder: Any, codes: _Data, start: Any, stop: Any, levels: Any, counts: _Data, lane: Any
    ) -> None:
        pointer, n = builder.gep(codes.data, [start]), builder.sub(stop, start)
        # those of level 0 are the others: counts that were just stored could not yet be loaded as a vector
        others = cgutils.alloca_once_value(builder, n)

        def count_few(first: Any, lanes: int) -> None:
            wanted = [builder.add(builder.trunc(first, byte), _const(i, 8)) for i in range(_COUNTED)]
            sought = [_splat(builder, code, lanes) for code in wanted]
            found = [cgutils.alloca_once_value(builder, _const(0)) for _ in wanted]

            def count(offset: Any, fresh: Any) -> None:
                vector = _load(builder, pointer, offset, ir.VectorType(byte, lanes), 1)
                for code, sum_ in zip(sought, found, strict=True):
                    mask = builder.icmp_unsigned("==", vector, code)
                    mask = mask if fresh is None else builder.and_(mask, fresh)
                    builder.store(builder.add(builder.load(sum_), _population(builder, mask)), sum_)

            full = builder.sdiv(n, _const(lanes))
            with cgutils.for_range(builder, full) as loop:
                count(builder.mul(loop.index, _const(lanes)), None)
            done, end = builder.mul(full, _const(lanes)), builder.sub(n, _const(lanes))
            seen = _splat(builder, builder.trunc(builder.sub(done, end), byte), lanes)
            count(end, builder.icmp_unsigned(">=", _lane_numbers(lanes, 8), seen))
            for i, sum_ in enumerate(found):
                count_of_code = builder.load(sum_)
                place = builder.add(builder.mul(builder.add(first, _const(i)), counts.shape[1]), lane)
                builder.store(count_of_code, builder.gep(counts.data, [place]))
                builder.store(builder.sub(builder.load(others), count_of_code), others)

        is_wide = builder.icmp_signed(">=", n, _const(_WIDE))
        with (
            cgutils.for_range_slice(builder, _const(1), levels, _const(_COUNTED)) as (first, _),
            builder.if_else(is_wide) as (wide, narrow),
        ):
            with wide:
                count_few(first, _WIDE)
            with narrow:
                count_few(first, LANES)
        builder.store(builder.load(others), builder.gep(counts.data, [lane]))

    taken = types.void(codes, types.int64, types.int64, types.int64, counts, types.int64)
    return taken, _apart("count_codes", emit, unrolled=False)


def plain_fill_ideals(
    counts: Array,
    falling: Array,
    gains: Array,
    levels: int,
    left_out: int,
    depth: int,
    ideals: Array,
    lengths: Array,
) -> None:
    """Gains of each lane's documents, counted by level: the first `levels` of `falling` in their order, at most `depth` ranks.

    Documents of the level `left_out` do not count. `lengths` are how many ranks are filled; what follows may be anything.
    """
    for lane in range(lengths.shape[0]):
        at = 0
        for i in range(levels):
            if falling[i] != left_out:
                stop = min(at + counts[falling[i], lane], depth)
                for rank in range(at, stop):
                    ideals[rank, lane] = gains[falling[i]]
                at = stop
        lengths[lane] = at


@intrinsic
def vector_fill_ideals(
    typing: Any,
    counts: Any,
    falling: Any,
    gains: Any,
    levels: Any,
    left_out: Any,
    depth: Any,
    ideals: Any,
    lengths: Any,
) -> Any:
    word = ir.IntType(64)
    numbers, doubles = ir.VectorType(word, SIDE_BY_SIDE), ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)

    def emit(
        builder: Any, counts: _Data, falling: _Data, gains: _Data, levels: Any, left_out: Any, depth: Any,
        ideals: _Data, lengths: _Data,
    ) -> None:  # fmt: skip
        none = ir.Constant(numbers, [0] * SIDE_BY_SIDE)
        at = cgutils.alloca_once_value(builder, none)
        with cgutils.for_range(builder, levels) as loop:
            level = builder.load(builder.gep(falling.data, [loop.index]))
            gain = _splat(builder, builder.load(builder.gep(gains.data, [level])), SIDE_BY_SIDE)
            first = builder.load(at)
            counted = _load(builder, counts.data, builder.mul(level, _const(SIDE_BY_SIDE)), numbers, 8)
            skipped = _splat(builder, builder.icmp_signed("==", level, left_out), SIDE_BY_SIDE)
            stop = builder.add(first, builder.select(skipped, none, counted))
            builder.store(stop, at)
            # lanes whose documents of the level end earlier are written over by the levels that follow
            start, end = _reduced(builder, "smin", first), _reduced(builder, "smax", stop)
            end = builder.select(builder.icmp_signed("<", end, depth), end, depth)
            with cgutils.for_range_slice(builder, start, end, _const(1)) as (rank, _):
                place = builder.mul(rank, _const(SIDE_BY_SIDE))
                own = builder.icmp_signed(">=", _splat(builder, rank, SIDE_BY_SIDE), first)
                held = _load(builder, ideals.data, place, doubles, 8)
                _store(builder, builder.select(own, gain, held), ideals.data, place, 8)
        filled, most = builder.load(at), _splat(builder, depth, SIDE_BY_SIDE)
        filled = builder.select(builder.icmp_signed("<", filled, most), filled, most)
        _store(builder, filled, lengths.data, _const(0), 8)

    signature = types.void(counts, falling, gains, types.int64, types.int64, types.int64, ideals, lengths)
    return signature, _apart("fill_ideals", emit)


def plain_add_discounted(gains: Array, discounts: Array, stops: Array, summed: Array, sums: Array) -> None:
    """sums[lane] += gains[rank, lane] * discounts[rank], for the ranks from summed[lane] to stops[lane] in their order."""
    for lane in range(sums.shape[0]):
        total = sums[lane]
        for rank in range(np.uint64(summed[lane]), np.uint64(max(stops[lane], summed[lane]))):
            total += gains[rank, lane] * discounts[rank]
        sums[lane] = total
        summed[lane] = max(summed[lane], stops[lane])


class _Side(NamedTuple):
    """Gains of SIDE_BY_SIDE queries by rank, from which rank to before which they are added, and the sums so far."""

    gains: _Data
    first: Any
    stop: Any
    sums: Any  # where they are held

    def store(self, builder: Any, summed: _Data, sums: _Data, place: Any) -> None:
        _store(builder, builder.load(self.sums), sums.data, place, 8)
        reached = builder.select(builder.icmp_signed(">", self.stop, self.first), self.stop, self.first)
        _store(builder, reached, summed.data, place, 8)


def _add_ranks(builder: Any, sides: list[_Side], discounts: _Data, start: Any, end: Any) -> None:
    """Add discounted gains of the ranks from `start` to before `end`, of each query those that are wanted."""
    doubles = ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)
    with cgutils.for_range_slice(builder, start, end, _const(1)) as (rank, _):
        discount = _splat(builder, builder.load(builder.gep(discounts.data, [rank])), SIDE_BY_SIDE)
        here = _splat(builder, rank, SIDE_BY_SIDE)
        for side in sides:
            gain = _load(builder, side.gains.data, builder.mul(rank, _const(SIDE_BY_SIDE)), doubles, 8)
            wanted = builder.and_(
                builder.icmp_signed(">=", here, side.first), builder.icmp_signed("<", here, side.stop)
            )
            total = builder.load(side.sums)
            more = builder.fadd(total, builder.fmul(gain, discount))
            builder.store(builder.select(wanted, more, total), side.sums)


@intrinsic
def vector_add_discounted(typing: Any, gains: Any, discounts: Any, stops: Any, summed: Any, sums: Any) -> Any:
    numbers = ir.VectorType(ir.IntType(64), SIDE_BY_SIDE)
    doubles = ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)

    def emit(builder: Any, gains: _Data, discounts: _Data, stops: _Data, summed: _Data, sums: _Data) -> None:
        first = _load(builder, summed.data, _const(0), numbers, 8)
        stop = _load(builder, stops.data, _const(0), numbers, 8)
        total = cgutils.alloca_once_value(builder, _load(builder, sums.data, _const(0), doubles, 8))
        side = _Side(gains, first, stop, total)
        start, end = _reduced(builder, "smin", first), _reduced(builder, "smax", stop)
        _add_ranks(builder, [side], discounts, start, end)
        side.store(builder, summed, sums, _const(0))

    return types.void(gains, discounts, stops, summed, sums), _apart("add_discounted", emit)


def plain_sum_row(
    placed: int,
    gains: Array,
    lengths: Array,
    ideals: Array,
    ideal_lengths: Array,
    discounts: Array,
    cutoffs: Array,
    anew: bool,
    stops: Array,
    summed: Array,
    sums: Array,
    values: Array,
) -> None:
    """Sum the lists of a row and their ideals to each lane's cutoff, and divide the one by the other.

    Goes on from `summed` ranks and their `sums` where it does not begin `anew`. Lanes after those that are placed have no ranks.
    """
    if anew:
        summed[:], sums[:] = 0, 0.0
    for lane in range(values.shape[0]):
        stops[0, lane] = min(cutoffs[lane], lengths[lane]) if lane < placed else 0
        stops[1, lane] = min(cutoffs[lane], ideal_lengths[lane]) if lane < placed else 0
    plain_add_discounted(gains, discounts, stops[0], summed[0], sums[0])
    plain_add_discounted(ideals, discounts, stops[1], summed[1], sums[1])
    for lane in range(values.shape[0]):
        values[lane] = plain_normalised(sums[0, lane], sums[1, lane])


@intrinsic
def vector_sum_row(
    typing: Any,
    placed: Any,
    gains: Any,
    lengths: Any,
    ideals: Any,
    ideal_lengths: Any,
    discounts: Any,
    cutoffs: Any,
    anew: Any,
    stops: Any,
    summed: Any,
    sums: Any,
    values: Any,
) -> Any:
    numbers = ir.VectorType(ir.IntType(64), SIDE_BY_SIDE)
    doubles = ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)

    def emit(
        builder: Any,
        placed: Any,
        gains: _Data,
        lengths: _Data,
        ideals: _Data,
        ideal_lengths: _Data,
        discounts: _Data,
        cutoffs: _Data,
        anew: Any,
        stops: _Data,
        summed: _Data,
        sums: _Data,
        values: _Data,
    ) -> None:
        places = [_const(0), _const(SIDE_BY_SIDE)]  # where those of the list and of the ideal begin
        taken = builder.icmp_signed(
            "<", _lane_numbers(SIDE_BY_SIDE, 64), _splat(builder, placed, SIDE_BY_SIDE)
        )
        cutoff = _load(builder, cutoffs.data, _const(0), numbers, 8)
        anew = builder.trunc(anew, ir.IntType(1)) if anew.type.width > 1 else anew
        sides = []
        for place, rows, shown in zip(places, (gains, ideals), (lengths, ideal_lengths), strict=True):
            length = _load(builder, shown.data, _const(0), numbers, 8)
            least = builder.select(builder.icmp_signed("<", length, cutoff), length, cutoff)
            stop = builder.select(taken, least, ir.Constant(numbers, [0] * SIDE_BY_SIDE))
            _store(builder, stop, stops.data, place, 8)
            first, total = (
                builder.select(
                    anew, ir.Constant(kind, [0] * SIDE_BY_SIDE), _load(builder, held.data, place, kind, 8)
                )
                for kind, held in ((numbers, summed), (doubles, sums))
            )
            sides.append(_Side(rows, first, stop, cgutils.alloca_once_value(builder, total)))

        def lesser(one: Any, other: Any) -> Any:
            return builder.select(builder.icmp_signed("<", one, other), one, other)

        start = lesser(*(_reduced(builder, "smin", side.first) for side in sides))
        ends = [_reduced(builder, "smax", side.stop) for side in sides]
        together = lesser(*ends)
        # two sums in the time of one, which waits for each addition
        _add_ranks(builder, sides, discounts, start, together)
        rest = builder.select(builder.icmp_signed("<", start, together), together, start)
        for side, end in zip(sides, ends, strict=True):
            _add_ranks(builder, [side], discounts, rest, end)
        for side, place in zip(sides, places, strict=True):
            side.store(builder, summed, sums, place)
        total, ideal = (builder.load(side.sums) for side in sides)
        zero, one, nearly, nothing = (
            ir.Constant(doubles, [value] * SIDE_BY_SIDE) for value in (0.0, 1.0, _NEARLY_ONE, float("nan"))
        )
        value = builder.fdiv(total, ideal)
        is_one = builder.and_(builder.fcmp_ordered(">", value, one), builder.fcmp_ordered("<", value, nearly))
        value = builder.select(is_one, one, value)
        value = builder.select(builder.fcmp_ordered("==", ideal, zero), nothing, value)
        _store(builder, value, values.data, _const(0), 8)

    taken = types.void(
        types.int64,
        gains,
        lengths,
        ideals,
        ideal_lengths,
        discounts,
        cutoffs,
        anew,
        stops,
        summed,
        sums,
        values,
    )
    return taken, _apart("sum_row", emit)


def plain_normalised(total: float, ideal: float) -> float:
    """A sum by that of the ideal; NaN where that is nothing."""
    if ideal == 0.0:
        return np.nan
    value = total / ideal
    # two orders of one sum round differently: what is 1 by the mathematics must not come out above it
    return 1.0 if 1.0 < value < _NEARLY_ONE else value


def plain_find_from(codes: Array, least: int, rows: Array) -> int:
    """Fill `rows` with the places of the codes that are at least `least`, in order; returns how many. It takes LANES more."""
    found = np.flatnonzero(codes >= least)
    rows[: found.shape[0]] = found
    return int(found.shape[0])


@intrinsic
def vector_find_from(typing: Any, codes: Any, least: Any, rows: Any) -> Any:
    def emit(builder: Any, codes: _Data, least: Any, rows: _Data) -> Any:
        n, code = codes.shape[0], codes.data.type.pointee
        wanted = _splat(builder, builder.trunc(least, code), LANES)
        found = cgutils.alloca_once_value(builder, _const(0))

        def compared(offset: Any) -> Any:
            vector = _load(builder, codes.data, offset, ir.VectorType(code, LANES), 1)
            return builder.icmp_unsigned(">=", vector, wanted)

        if not _compresses():
            with _for_reached(builder, n, LANES, compared) as offset:
                at = builder.load(found)
                builder.store(builder.trunc(offset, ir.IntType(32)), builder.gep(rows.data, [at]))
                builder.store(builder.add(at, _const(1)), found)
            return builder.load(found)

        def find(offset: Any, fresh: Any) -> None:
            reached = compared(offset)
            reached = reached if fresh is None else builder.and_(reached, fresh)
            numbers = builder.add(
                _lane_numbers(LANES), _splat(builder, builder.trunc(offset, ir.IntType(32)), LANES)
            )
            at = builder.load(found)
            _store(builder, _compress(builder, numbers, reached), rows.data, at, 4)
            builder.store(builder.add(at, _population(builder, reached)), found)

        full = builder.sdiv(n, _const(LANES))
        with cgutils.for_range(builder, full) as loop:
            find(builder.mul(loop.index, _const(LANES)), None)
        done = builder.mul(full, _const(LANES))
        with builder.if_then(builder.icmp_signed("<", done, n)):
            end = builder.sub(n, _const(LANES))
            seen = _splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), LANES)
            find(end, builder.icmp_signed(">=", _lane_numbers(LANES), seen))
        return builder.load(found)

    return types.int64(codes, types.int64, rows), _apart("find_from", emit)


def plain_fetch(array: Array, first: int, last: int) -> None:
    """Ask for array[first:last] to be brought from memory, for whoever reads it later; it may reach beyond the end."""


@intrinsic
def vector_fetch(typing: Any, array: Any, first: Any, last: Any) -> Any:
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    size = array.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, first, last = arguments
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        data = _pointer(context, builder, signature.args[0], array)
        with cgutils.for_range_slice(builder, first, last, _const(_LINE // size)) as (offset, _):
            at = builder.bitcast(builder.gep(data, [offset]), byte)
            # to be read, and into the first-level cache: asked into the second, nothing was faster
            builder.call(function, [at, _const(0, 32), _const(3, 32), _const(1, 32)])
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64), generate


if numba.config.DISABLE_JIT:
    bound_of_top, find_from, fetch = plain_bound_of_top, plain_find_from, plain_fetch
    greatest_by_bin, bounds_of_top = plain_greatest_by_bin, plain_bounds_of_top
    keep_from = keep_few_from = plain_keep_from
    keep_from_lanes = plain_keep_from_lanes
    keep_values_from = plain_keep_values_from
    count_ahead, count_codes = plain_count_ahead, plain_count_codes
    rank_distinct, rank_tied = plain_rank_distinct, plain_rank_tied
    count_among = plain_count_among
    rank_side_by_side, average_side_by_side = plain_rank_side_by_side, plain_average_side_by_side
    gains_of_codes = plain_gains_of_codes
    fill_ideals, add_discounted, sum_row = plain_fill_ideals, plain_add_discounted, plain_sum_row
else:
    bound_of_top, find_from, fetch = vector_bound_of_top, vector_find_from, vector_fetch
    greatest_by_bin, bounds_of_top = vector_greatest_by_bin, vector_bounds_of_top
    keep_from, keep_few_from = vector_keep_from, vector_keep_few_from
    keep_from_lanes = vector_keep_from_lanes
    keep_values_from = vector_keep_values_from
    count_ahead, count_codes = vector_count_ahead, vector_count_codes
    rank_distinct, rank_tied = vector_rank_distinct, vector_rank_tied
    count_among = vector_count_among
    rank_side_by_side, average_side_by_side = vector_rank_side_by_side, vector_average_side_by_side
    gains_of_codes = vector_gains_of_codes
    fill_ideals, add_discounted, sum_row = vector_fill_ideals, vector_add_discounted, vector_sum_row

fill_ideals_of_one, add_discounted_of_one = block(plain_fill_ideals), block(plain_add_discounted)
normalised = block(plain_normalised)


# ---- levels and gains ----


@inlined
def count_levels(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    """Documents of each of the levels; `counts` takes _COUNTED more."""
    # one pass for each few levels, 64 documents at a time, beats one addition for each document
    if stop - start >= LANES and levels <= 16:
        count_codes(codes, start, stop, levels, counts, lane)
    else:
        count_one_by_one(codes, start, stop, levels, counts, lane)


@apart
def count_one_by_one(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    for level in range(levels):
        counts[level, lane] = 0
    for i in range(start, stop):
        counts[codes[i], lane] += 1


@block
def place_of(grade: float, grades: Array) -> int:
    """np.searchsorted, with which to load a cached kernel would import SciPy where it is installed."""
    first, last = 0, grades.shape[0]
    while first < last:
        middle = (first + last) // 2
        if grades[middle] < grade:
            first = middle + 1
        else:
            last = middle
    return first


@block
def gain_of(grade: float, table: int, plan: Plan) -> float:
    """Gain of a grade that has no level."""
    if grade < plan.thresholds[table]:
        return 0.0
    kind = plan.kinds[table]
    if kind == LINEAR:
        return grade
    if kind == EXP2:
        return np.exp2(grade) - 1.0
    if kind == ONE:
        return 1.0
    return plan.gains[table, place_of(grade, plan.grades)]


@inlined
def fill_gains(relevance: Array, table: int, plan: Plan, gains: Array) -> None:
    if plan.kinds[table] == LINEAR and plan.thresholds[table] == -np.inf:
        for i in range(relevance.shape[0]):
            gains[i] = relevance[i]
        return
    for i in range(relevance.shape[0]):
        gains[i] = gain_of(np.float64(relevance[i]), table, plan)


# ---- sorting ----


@block
def sort_falling(values: Array, n: int) -> None:
    """Sort the first `n` values, greatest first: by insertion where they are few, as a heap where they are many."""
    if n <= _INSERTION:
        for i in range(1, n):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] < value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    for top in range(n // 2 - 1, -1, -1):
        sink(values, top, n)
    root: Any = np.int64(0)  # for a literal `sink` would be compiled again
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        sink(values, root, end)


@block
def sink(values: Array, top: int, n: int) -> None:
    """Restore the heap, least value first, below `top`."""
    value = values[top]
    child = 2 * top + 1
    while child < n:
        if child + 1 < n and values[child + 1] < values[child]:
            child += 1
        if value <= values[child]:
            break
        values[top] = values[child]
        top, child = child, 2 * child + 1
    values[top] = value


@block
def sort_by_key_stably(keys: Array, at: Array, spare_keys: Array, spare: Array) -> None:
    """Sort `at` by rising `keys`, and those along with it."""
    n = at.shape[0]
    for start in range(0, n, _INSERTION):
        for i in range(start + 1, min(start + _INSERTION, n)):
            key, moved = keys[i], at[i]
            j = i
            while j > start and key < keys[j - 1]:
                keys[j], at[j] = keys[j - 1], at[j - 1]
                j -= 1
            keys[j], at[j] = key, moved
    width = _INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right, to = start, middle, start
            while left < middle and right < stop:
                # places move by a comparison: no branch to mispredict
                from_right = keys[right] < keys[left]
                source = right if from_right else left
                spare_keys[to], spare[to] = keys[source], at[source]
                right += from_right
                left += not from_right
                to += 1
            for i in range(left, middle):
                spare_keys[to], spare[to] = keys[i], at[i]
                to += 1
            for i in range(right, stop):
                spare_keys[to], spare[to] = keys[i], at[i]
                to += 1
        for i in range(n):
            keys[i], at[i] = spare_keys[i], spare[i]
        width *= 2


def _falling_keys(scores: Array, n: int, keys: Array) -> None:
    """Unsigned keys that ascend as the scores fall; equal scores, 0.0 and -0.0 among them, have equal keys."""
    bits = scores.dtype.itemsize * 8
    signed = scores.view(f"i{scores.dtype.itemsize}")
    for i in range(n):
        key = int(signed[i]) if scores[i] != 0 else 0
        if scores.dtype.kind == "i":
            keys[i] = (1 << 63) - 1 - key
        else:
            keys[i] = (1 << bits - 1) - 1 - key if key >= 0 else key & (1 << bits) - 1


@overload(_falling_keys, jit_options={"_nrt": False, **_UNWRAPPED})
def _falling_keys_typed(scores: Any, n: Any, keys: Any) -> Any:
    narrow = scores.dtype == types.float32
    signed = np.int32 if narrow else np.int64
    largest = np.int64(0x7FFFFFFF if narrow else 0x7FFFFFFFFFFFFFFF)
    mask = np.uint64(0xFFFFFFFF if narrow else 0xFFFFFFFFFFFFFFFF)

    def of_integers(scores: Any, n: Any, keys: Any) -> Any:
        for i in range(n):
            keys[i] = np.uint64(largest) - np.uint64(scores[i])

    def of_floats(scores: Any, n: Any, keys: Any) -> Any:
        bits = scores.view(signed)
        for i in range(n):
            # a float is a sign and a magnitude: the bits of negative ones grow as they fall
            key = np.int64(bits[i]) if scores[i] != 0 else np.int64(0)
            keys[i] = np.uint64(largest - key) if key >= 0 else np.uint64(key) & mask

    return of_integers if scores.dtype == types.int64 else of_floats


@block
def falling_keys(scores: Array, n: int, keys: Array) -> None:
    _falling_keys(scores, n, keys)


@allocating
def sort_by_key(n: int, keys: Array, order: Array) -> int:
    """Sort the first `n` keys and `order`, the rows they came from: by radix, stable, one pass for each byte that varies.

    Both arrays are of length 2 * n; the sorted halves begin at the returned place.
    """
    varying = np.uint64(0)
    for i in range(n):
        order[i] = i
        varying |= keys[i] ^ keys[0]
    starts = empty(256, np.int64)
    source, target = 0, n
    for byte in range(8):
        shift = np.uint64(8 * byte)
        if (varying >> shift) & np.uint64(255) == np.uint64(0):
            continue
        starts[:] = 0
        for i in range(source, source + n):
            starts[np.int64((keys[i] >> shift) & np.uint64(255))] += 1
        total = target
        for digit in range(256):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(source, source + n):
            byte_value = np.int64((keys[i] >> shift) & np.uint64(255))
            to = starts[byte_value]
            keys[to], order[to] = keys[i], order[i]
            starts[byte_value] = to + 1
        source, target = target, source
    return source


# ---- ranking ----


@inlined
def is_bounded(n: int, depth: int) -> bool:
    """Whether a bound tells the documents of the first `depth` ranks from most of the others."""
    return depth <= LANES and n >= 2 * LANES


@block
def bounded_by(n: int) -> int:
    """How many of a list's documents its bound is taken of: a bound of some bounds all, and a long list is read from memory once."""
    return _SAMPLE if n > 4 * _SAMPLE else n


@inlined
def keep_top(codes: Array, scores: Array, depth: int, kept_scores: Array, kept: Array) -> int:
    """Keep a superset of the documents of the first `depth` ranks, with all tied with the last of them; returns how many."""
    n = scores.shape[0]
    if not is_bounded(n, depth):
        return keep_all(codes, scores, kept_scores, kept)
    bound = bound_of_top(scores[: bounded_by(n)], depth)
    if n <= _MANY:
        return keep_from(scores, codes, bound, kept_scores, kept)
    return keep_few_from(scores, codes, bound, kept_scores, kept)


@apart
def keep_all(codes: Array, scores: Array, kept_scores: Array, kept: Array) -> int:
    n = scores.shape[0]
    for i in range(n):
        kept_scores[i] = scores[i]
        kept[i] = codes[i]
    return n


@inlined
def rank(
    kept: int,
    tied: bool,
    nothing: int,
    lowest: Any,
    first_wanted: int,
    scores: Array,
    codes: Array,
    own: Array,
    work: Work,
) -> bool:
    """Rank the documents that were kept: fill `work.codes` and `work.sizes`. Returns whether some of those ranked may be tied.

    Documents whose gain is 0 by every table, those of codes below `first_wanted`, may be left out: their ranks hold the code
    `nothing`, in a group of one where no other document of the group is worth something. Where at most 2 * LANES are ranked
    and some may be tied, `work.firsts` is filled too. `tied` says that ties are likely.
    """
    if kept > 2 * LANES:
        wanted = find_from(codes[:kept], first_wanted, work.wanted)
        if wanted * vectors_of(kept) > _COUNTING * kept:
            rank_by_sorting(kept, scores, codes, work)
            return True
        return rank_many(kept, wanted, nothing, lowest, scores, codes, own, work)
    if tied or not rank_distinct(scores, codes, kept, lowest, work.codes):
        rank_tied(scores, codes, kept, lowest, work.codes, work.firsts, work.sizes)
        return True
    for i in range(2 * LANES):
        work.sizes[i] = 1
    return False


@block
def vectors_of(n: int) -> int:
    return (n + LANES - 1) // LANES


@apart
def rank_many(
    kept: int,
    found: int,
    nothing: int,
    lowest: Any,
    scores: Array,
    codes: Array,
    own: Array,
    work: Work,
) -> bool:
    """As `rank`, of more than two vectors: the `found` documents of `work.wanted` are compared with all."""
    blocks = vectors_of(kept)
    for i in range(kept):
        work.codes[i] = nothing
    for i in range(kept):
        work.sizes[i] = 1
    padding = blocks * LANES - kept
    for i in range(kept, kept + padding):
        scores[i] = lowest
    firsts, sizes = work.firsts, work.ties
    for j in range(found):
        own[j] = scores[work.wanted[j]]
    counted = 0
    while found - counted > LANES:  # to compare two vectors of them with each document takes fewer steps
        count_among(scores[:kept], own[counted:], firsts[counted:], sizes[counted:])
        counted += 2 * LANES
    for j in range(counted, found):
        count = count_ahead(scores, blocks, own[j])
        firsts[j], sizes[j] = count >> 32, count & 0xFFFFFFFF
        if own[j] == lowest:
            sizes[j] -= padding
    tied = 0
    for j in range(found):
        tied += sizes[j] > 1
    if tied == 0:
        for j in range(found):
            work.codes[firsts[j]] = codes[work.wanted[j]]
        return False
    for i in range(kept):
        work.seen[i] = 0
    for j in range(found):
        first = firsts[j]
        seen = work.seen[first]
        work.codes[first + seen] = codes[work.wanted[j]]
        work.seen[first] = seen + 1
        work.sizes[first] = sizes[j]
    return True


@allocating
def rank_by_sorting(kept: int, scores: Array, codes: Array, work: Work) -> None:
    keys, order = empty(2 * kept, np.uint64), empty(2 * kept, np.uint32)
    falling_keys(scores, kept, keys)
    half = sort_by_key(kept, keys, order)
    start = 0
    for i in range(kept):
        work.codes[i] = codes[order[half + i]]
        if keys[half + i] != keys[half + start]:
            work.sizes[start] = i - start
            start = i
    work.sizes[start] = kept - start


# ---- lists of ranked gains ----


@block
def average(gains: Array, n: int, exact: bool) -> float:
    """Mean of the first `n` gains, the same for any order of them; of equal gains it is that gain."""
    lowest = highest = total = gains[0]
    for i in range(1, n):
        total += gains[i]
        lowest, highest = min(lowest, gains[i]), max(highest, gains[i])
    if lowest == highest:
        return lowest
    if not exact:
        sort_falling(gains, n)
        total = 0.0
        for i in range(n):
            total += gains[i]
    return total / n


@inlined
def average_few(ranked: int, depth: int, gain_of_code: Array, work: Work, out: Array) -> int:
    """As `gather`, of averaged ties where sums of gains are exact: without a branch that depends on the ties."""
    sums, sizes = work.group, work.seen
    if ranked > 2 * LANES:
        start = 0
        while start < ranked:
            stop = start + work.sizes[start]
            for i in range(start, stop):
                work.firsts[i] = start
                sizes[i] = stop - start
            start = stop
    else:
        sizes = work.sizes
    total = 0.0
    for i in range(ranked):
        sums[i] = total
        total += gain_of_code[work.codes[i]]
    sums[ranked] = total
    filled = min(ranked, depth)
    for i in range(filled):
        first = work.firsts[i]
        work.means[i] = sums[first + sizes[i]] - sums[first]
    for i in range(filled):  # by themselves, so that they are divided side by side
        work.means[i] /= sizes[i]
    for i in range(filled):
        out[i] = work.means[i]
    return filled


@block
def collect(
    start: int, stop: int, condensed: bool, unjudged: int, gains: Array, codes: Array, group: Array
) -> int:
    """Copy the gains of one tied group, in input order; returns how many documents count."""
    size = 0
    for i in range(start, stop):
        if not (condensed and codes[i] == unjudged):
            group[size] = gains[codes[i]]
            size += 1
    return size


@apart
def gather(
    ranked: int,
    distinct: bool,
    ties: int,
    condensed: bool,
    unjudged: int,
    gain_of_code: Array,
    exact: bool,
    work: Work,
    lists: Array,
    lane: int,
) -> int:
    """Gains by rank of one list of a lane, ties resolved; returns how many ranks were filled: all, or fewer where documents end."""
    codes, sizes, group = work.codes, work.sizes, work.group
    depth, out = lists.shape[0], lists[:, lane]
    if distinct and not condensed:
        filled = min(ranked, depth)
        for i in range(filled):
            out[i] = gain_of_code[codes[i]]
        return filled
    if exact and ties == AVERAGE and depth <= LANES and not condensed:
        return average_few(ranked, depth, gain_of_code, work, out)
    at = start = 0
    while start < ranked and at < depth:
        if sizes[start] == 1 and not condensed:
            out[at] = gain_of_code[codes[start]]
            at += 1
            start += 1
            continue
        size = collect(start, start + sizes[start], condensed, unjudged, gain_of_code, codes, group)
        start += sizes[start]
        if size == 0:
            continue
        filled = min(size, depth - at)
        if ties == AVERAGE:
            mean = average(group, size, exact)
            for i in range(filled):
                out[at + i] = mean
        elif ties == INPUT:
            for i in range(filled):
                out[at + i] = group[i]
        else:
            sort_falling(group, size)
            for i in range(filled):
                out[at + i] = group[i] if ties == BEST else group[size - 1 - i]
        at += filled
    return at


@apart
def gather_sums(
    ranked: int,
    ties: int,
    condensed: bool,
    unjudged: int,
    gains: Array,
    codes: Array,
    sizes: Array,
    group: Array,
    lists: Array,
    lane: int,
) -> int:
    """As `gather`, but each rank holds the sum of the gains so far, which are whole: at the end of a tied group it is exact."""
    depth, out = lists.shape[0], lists[:, lane]
    at = start = 0
    before = 0.0
    while start < ranked and at < depth:
        if sizes[start] == 1 and not condensed:
            before += gains[codes[start]]
            out[at] = before
            at += 1
            start += 1
            continue
        size = collect(start, start + sizes[start], condensed, unjudged, gains, codes, group)
        start += sizes[start]
        filled = min(size, depth - at)
        if ties == AVERAGE and size > 1:
            total = 0.0
            for i in range(size):
                total += group[i]
            for i in range(filled):
                out[at + i] = before + (i + 1) * total / size
            before += total
        else:
            if ties in (WORST, BEST):
                sort_falling(group, size)
            for i in range(filled):
                before += group[size - 1 - i] if ties == WORST else group[i]
                out[at + i] = before
        at += filled
    return at


# ---- folds: what a rank adds to measures that are not linear in the gains ----


@block
def draw_another(chances: Array, drawn: int, special: int, size: int) -> None:
    """Probabilities of the number of special documents among the first `drawn` of `size`, made those for one more."""
    left = size - drawn
    for h in range(min(drawn + 1, special), -1, -1):
        chance = chances[h] * (left - (special - h)) / left
        if h > 0:
            chance += chances[h - 1] * (special - h + 1) / left
        chances[h] = chance


@block
def stop_chances(stops: Array, able: int, size: int, depth: int, chances: Array) -> None:
    """Probability to stop at each of the first `depth` places of a tied group, in chances[3], all orders equally likely.

    Of the `size` documents the first `able` have a stopping probability above 0. Let q = 1 - p. The mean over h of them of
    the product of q, and the mean over one more of p times that product, are elementary symmetric polynomials; they grow
    document by document and hold no difference, so that nothing cancels. How many of `able` come before a place is
    hypergeometric.
    """
    most = min(able, depth)
    passed, stopped, drawn, out = chances[0], chances[1], chances[2], chances[3]
    passed[: most + 1], stopped[: most + 1], drawn[: most + 1] = 0.0, 0.0, 0.0
    passed[0] = drawn[0] = 1.0
    for n in range(1, able + 1):
        stop = stops[n - 1]
        for h in range(min(n, most), -1, -1):
            if h < n:
                value = stopped[h] * (n - 1 - h) + stop * passed[h]
                if h > 0:
                    value += (1.0 - stop) * stopped[h - 1] * h
                stopped[h] = value / n
            value = passed[h] * (n - h)
            if h > 0:
                value += (1.0 - stop) * passed[h - 1] * h
            passed[h] = value / n
    for place in range(depth):
        chance = 0.0
        for h in range(min(place, able - 1) + 1):
            chance += drawn[h] * stopped[h]
        out[place] = chance * able / size
        if place < size - 1:
            draw_another(drawn, place, able - 1, size - 1)


@block
def preference(above: float, tied: float, relevant: float, nonrelevant: float) -> float:
    """bpref's value of a relevant document: `above` others are above it, and `tied` may be, any number equally likely."""
    bound = max(min(relevant, nonrelevant), 1.0)
    below = max(
        0.0, min(tied + 1.0, relevant - above)
    )  # terms min(above + u, relevant), u = 0 .. tied, that are not `relevant`
    terms = below * above + below * (below - 1.0) / 2.0 + (tied + 1.0 - below) * relevant
    return 1.0 - terms / ((tied + 1.0) * bound)


@block
def inferred(rank: int, relevant: float, judged: float, pooled: float) -> float:
    """infAP's value of a relevant document: what is above it, of these the judged ones and those in the pool."""
    share = (relevant + _POOL_SHARE) / (judged + 2.0 * _POOL_SHARE)
    return (1.0 + pooled * share) / rank


@block
def expected_inferred(
    before: int,
    size: int,
    relevant: int,
    nonrelevant: int,
    pooled: int,
    hits: float,
    judged: float,
    in_pool: float,
    chances: Array,
) -> float:
    """Expected sum of `inferred` over the relevant documents of a tied group: the number of judged ones above is
    hypergeometric, and given it the relevant ones and the pooled ones above have their means.
    """
    others, unjudged = relevant - 1 + nonrelevant, size - relevant - nonrelevant
    drawn = chances[0]
    drawn[: others + 1] = 0.0
    drawn[0] = 1.0
    total = 0.0
    for place in range(size):
        if unjudged == 0:  # then all that is above is judged
            value = inferred(
                before + place + 1,
                hits + place * (relevant - 1) / max(others, 1),
                judged + place,
                in_pool + place,
            )
            total += value * relevant / size
            continue
        value = 0.0
        for h in range(min(place, others) + 1):
            more_relevant = h * (relevant - 1) / others if others > 0 else 0.0
            more_pooled = (place - h) * pooled / unjudged if unjudged > 0 else 0.0
            value += drawn[h] * inferred(
                before + place + 1, hits + more_relevant, judged + h, in_pool + h + more_pooled
            )
        total += value * relevant / size
        if place < size - 1:
            draw_another(drawn, place, others, size - 1)
    return total


@block
def stays_below(
    bound: float, wanted: float, before: float, hits: float, size: int, relevant: int, paths: Array
) -> float:
    """Probability that precision stays below the bound within a tied group, at ranks of at least `wanted` hits."""
    paths[: relevant + 1] = 0.0
    paths[0] = 1.0
    most = 0  # hits that a path may have here, and their precision stays below the bound; it only grows
    for place in range(1, size + 1):
        left = size - place + 1
        while most < min(place, relevant):
            found = hits + most + 1
            if found >= wanted and found >= 1.0 and found / (before + place) >= bound:
                break
            most += 1
        # with fewer hits a path cannot have all of them at the end
        for h in range(most, max(relevant - left, -1), -1):
            chance = paths[h] * (left - (relevant - h)) / left
            if h > 0:
                chance += paths[h - 1] * (relevant - h + 1) / left
            paths[h] = chance
    return paths[relevant]


@allocating
def expected_maximum(groups: Array, n_groups: int, wanted: float, floor: float) -> float:
    """Expected largest precision, where `floor` is reached in any order and the tied groups may bring more.

    Columns of `groups`: documents before, relevant ones before, size, relevant ones. The largest precision is one of the
    values that a hit in a group can have, and groups are independent, so its distribution is a product over the groups. Each
    factor is a walk over places and hits that never meets the bound. Infinite where that takes more than `_MOST_STEPS`.
    """
    found = longest = 0
    steps = 0.0
    for counting in (True, False):
        if not counting:
            if steps > _MOST_STEPS:
                return np.inf
            values, below, of_group = np.empty(found), np.empty(found), np.empty(found, np.int64)
            paths = np.empty(longest + 1)
            found = 0
        for g in range(n_groups):
            before, hits, size, relevant = groups[0, g], groups[1, g], int(groups[2, g]), int(groups[3, g])
            longest = max(longest, relevant)
            for h in range(1, relevant + 1):
                for place in range(h, size - relevant + h + 1 if hits + h >= wanted else 0):
                    value = (hits + h) / (before + place)
                    if value <= floor:
                        break
                    if counting:
                        steps += float(size) * relevant
                    else:
                        values[found], of_group[found] = value, g
                        below[found] = stays_below(value, wanted, before, hits, size, relevant, paths)
                    found += 1
    order = np.argsort(values)
    stays = np.ones(n_groups)
    total = 0.0
    for i in range(found - 1, -1, -1):
        value = values[order[i]]
        stays[of_group[order[i]]] = below[order[i]]
        least = values[order[i - 1]] if i > 0 else floor
        if least < value:
            chance = 1.0
            for g in range(n_groups):
                chance *= stays[g]
            total += (value - least) * (1.0 - chance)
    return floor + total


@block
def fold_list(
    fold: int,
    parameter: float,
    ties: int,
    condensed: bool,
    unjudged: int,
    relevant: float,
    nonrelevant: float,
    ranked: int,
    gains: Array,
    codes: Array,
    sizes: Array,
    group: Array,
    chances: Array,
    lists: Array,
    lane: int,
) -> int:
    """What each rank adds, by one fold; returns how many ranks were filled. Folds of the whole list fill one rank with it."""
    depth, out = lists.shape[0], lists[:, lane]
    at = start = mixed = 0
    hits = missed = pooled = value = reached = 0.0
    going = 1.0  # probability that the user reads on, or that nothing relevant was found
    wanted = np.floor(parameter * relevant + 0.9)
    while start < ranked and at < depth:
        if sizes[start] == 1 and not condensed:
            gain = gains[codes[start]]
            size, start = 1, start + 1
            if gain == 0.0:  # most documents
                missed += 1.0
                out[at] = 0.0
                at += 1
                continue
            group[0] = gain
        else:
            size = collect(start, start + sizes[start], condensed, unjudged, gains, codes, group)
            start += sizes[start]
        filled = min(size, depth - at)
        found = 0
        if size > 1:
            for i in range(size):
                found += group[i] > 0.0
            if ties in (WORST, BEST) or (fold == STOP and ties == AVERAGE):
                sort_falling(group, size)
        if ties != AVERAGE or size == 1 or found == 0 or (found == size and fold != STOP):
            for i in range(filled):
                gain = group[size - 1 - i] if ties == WORST else group[i]
                rank = at + i + 1
                added = 0.0
                if fold == STOP:
                    added = going * gain / rank
                    going *= 1.0 - gain
                elif gain > 0.0:
                    hits += 1.0
                    if fold == HITS:
                        added = hits / rank
                    elif fold == FIRST:
                        out[at + i] = 1.0 / rank
                        return rank
                    elif fold == REACHED:
                        out[at + i] = 1.0
                        return rank
                    elif fold == PREFERENCE:
                        value += preference(missed, 0.0, relevant, nonrelevant)
                    elif fold == INFERRED:
                        value += inferred(rank, hits - 1.0, hits - 1.0 + missed, hits - 1.0 + missed + pooled)
                    elif hits >= wanted:
                        value = max(value, hits / rank)
                elif gain == 0.0:
                    missed += 1.0
                elif gain == -1.0:
                    pooled += 1.0
                out[at + i] = added
        elif fold == HITS:
            for i in range(filled):
                out[at + i] = found / size * (hits + 1.0 + i * ((found - 1) / (size - 1))) / (at + i + 1)
            hits += found
        elif fold in (FIRST, REACHED):
            for i in range(filled):
                chance = going * found / (size - i)
                going *= (size - i - found) / (size - i)
                reached = reached + chance if going > 0.0 else 1.0
                out[at + i] = chance / (at + i + 1) if fold == FIRST else min(reached, 1.0)
                if going == 0.0:
                    return at + i + 1
        elif fold == STOP:
            stop_chances(group, found, size, filled, chances)
            for i in range(filled):
                out[at + i] = going * chances[3, i] / (at + i + 1)
            for i in range(found):
                going *= 1.0 - group[i]
        else:
            others = in_pool = 0
            for i in range(size):
                others += group[i] == 0.0
                in_pool += group[i] == -1.0
            if fold == PREFERENCE:
                value += found * preference(missed, others, relevant, nonrelevant)
            elif fold == INFERRED:
                value += expected_inferred(
                    at, size, found, others, in_pool, hits, hits + missed, hits + missed + pooled, chances
                )
            else:
                chances[0, mixed], chances[1, mixed], chances[2, mixed], chances[3, mixed] = (
                    at,
                    hits,
                    size,
                    found,
                )
                mixed += 1
                if hits + found >= wanted:
                    value = max(value, (hits + found) / (at + size))
            hits += found
            missed += others
            pooled += in_pool
        at += filled
    if fold in (PREFERENCE, INFERRED, INTERPOLATED):
        if at == 0:
            return 0
        out[0] = expected_maximum(chances, mixed, wanted, value) if mixed > 0 else value
        return 1
    return at


@apart
def precisions(ranked: int, gains: Array, codes: Array, added: Array, lists: Array, lane: int) -> int:
    """As `fold_list` by HITS where none are tied, without a branch that depends on the grades."""
    filled = min(ranked, lists.shape[0])
    hits = 0.0
    for i in range(filled):
        hit = 1.0 if gains[codes[i]] > 0.0 else 0.0
        hits += hit
        added[i] = hits * hit
    for i in range(filled):  # by themselves, so that they are divided side by side
        added[i] /= i + 1.0
    for i in range(filled):
        lists[i, lane] = added[i]
    return filled


@apart
def stops(ranked: int, gains: Array, codes: Array, added: Array, lists: Array, lane: int) -> int:
    """As `fold_list` by STOP where none are tied, without a branch that depends on the grades."""
    filled = min(ranked, lists.shape[0])
    going = 1.0
    for i in range(filled):
        stop = gains[codes[i]]
        added[i] = going * stop
        going *= 1.0 - stop
    for i in range(filled):
        added[i] /= i + 1.0
    for i in range(filled):
        lists[i, lane] = added[i]
    return filled


def fold_lists(
    ranked: int,
    distinct: bool,
    unjudged: int,
    gains: Array,
    plan: Plan,
    chances: Array,
    work: Work,
    batch: Batch,
    lane: int,
) -> None:
    """Fill the lists of all folds after COUNT."""
    totals, group = batch.totals, work.group
    for v in range(plan.lists.shape[0]):
        fold, table, ties = plan.lists[v, FOLD], plan.lists[v, TABLE], plan.lists[v, TIES]
        condensed = plan.lists[v, CONDENSED] == 1
        of_relevant, of_nonrelevant = plan.lists[v, RELEVANT], plan.lists[v, NONRELEVANT]
        if fold == HITS and distinct and not condensed:
            batch.lengths[v, lane] = precisions(ranked, gains[table], work.codes, group, batch.lists[v], lane)
        elif fold == STOP and distinct and not condensed:
            batch.lengths[v, lane] = stops(ranked, gains[table], work.codes, group, batch.lists[v], lane)
        elif fold > COUNT:
            relevant = totals[of_relevant, lane] if of_relevant >= 0 else 0.0
            nonrelevant = totals[of_nonrelevant, lane] if of_nonrelevant >= 0 else 0.0
            batch.lengths[v, lane] = fold_list(
                fold, plan.folds[v], ties, condensed, unjudged, relevant, nonrelevant, ranked,
                gains[table], work.codes, work.sizes, group, chances, batch.lists[v], lane,
            )  # fmt: skip


fold_lists_compiled = block(fold_lists)


@overload(fold_lists, jit_options={"_nrt": False, **_UNWRAPPED})
def _fold_lists(
    ranked: Any,
    distinct: Any,
    unjudged: Any,
    gains: Any,
    plan: Any,
    chances: Any,
    work: Any,
    batch: Any,
    lane: Any,
) -> Any:
    # chosen while compiling: a call without such a measure does not wait for their compilation
    def nothing(
        ranked: Any,
        distinct: Any,
        unjudged: Any,
        gains: Any,
        plan: Any,
        chances: Any,
        work: Any,
        batch: Any,
        lane: Any,
    ) -> None:
        return None

    def all_lists(
        ranked: Any,
        distinct: Any,
        unjudged: Any,
        gains: Any,
        plan: Any,
        chances: Any,
        work: Any,
        batch: Any,
        lane: Any,
    ) -> None:
        fold_lists_compiled(ranked, distinct, unjudged, gains, plan, chances, work, batch, lane)

    return nothing if isinstance(plan.types[plan.fields.index("folds")], types.NoneType) else all_lists


# ---- ideal rankings ----


@apart
def ideals_of_levels(
    scored: Array,
    judged: Array,
    ideals: Array,
    falling: Array,
    earning: Array,
    gains: Array,
    out: Array,
    lengths: Array,
) -> None:
    """The ideals of scored and of judged documents, of each lane of a batch whose documents are counted by level."""
    for i in range(ideals.shape[0]):
        table, source = ideals[i, TABLE], ideals[i, SOURCE]
        if source not in (SCORED, JUDGED):
            continue
        left_out = gains.shape[1] - 2 if ideals[i, LEAVES_OUT] == 1 else -1
        counts, depth = scored if source == SCORED else judged, out.shape[1]
        if lengths.shape[1] == SIDE_BY_SIDE:
            fill_ideals(
                counts, falling[table], gains[table], earning[table], left_out, depth, out[i], lengths[i]
            )
        else:
            fill_ideals_of_one(
                counts, falling[table], gains[table], earning[table], left_out, depth, out[i], lengths[i]
            )


@inlined
def ideal_of_gains(
    values: Array, depth: int, gains: Array, spare: Array, work: Work, ideals: Array, lane: int
) -> int:
    """The greatest of some gains in falling order, at most `depth` of them; returns how many. `gains` may be the same array."""
    n = values.shape[0]
    if is_bounded(n, depth):
        n = keep_values_from(values, bound_of_top(values, depth), gains)
    else:
        for i in range(n):
            gains[i] = values[i]
    filled = min(n, depth)
    if n > 2 * LANES:
        sort_falling(gains, n)
        for i in range(filled):
            ideals[i, lane] = gains[i]
        return filled
    for i in range(2 * LANES):
        spare[i] = i
    if not rank_distinct(gains, spare, n, -np.inf, work.codes):
        rank_tied(gains, spare, n, -np.inf, work.codes, work.firsts, work.sizes)
    for i in range(filled):
        ideals[i, lane] = gains[work.codes[i]]
    return filled


@block
def gains_of_judged(
    query: int,
    table: int,
    codes: Array,
    unjudged: int,
    gains: Array,
    documents: Documents,
    plan: Plan,
    out: Array,
) -> int:
    """Gains of all judged documents, and of the scored ones whose grade is assumed, of grades that are not coded."""
    size, pool_offsets = 0, documents.pool_offsets
    if pool_offsets.shape[0] > 0:
        pool = documents.pool_relevance[
            pool_offsets[query] - documents.pool_base : pool_offsets[query + 1] - documents.pool_base
        ]
        fill_gains(pool, table, plan, out)
        size = pool.shape[0]
    for i in range(codes.shape[0]):
        if codes[i] == unjudged:
            counts = plan.assumed[table]
        else:
            counts = pool_offsets.shape[0] == 0
        if counts:
            out[size] = gains[codes[i]]
            size += 1
    return size


@inlined
def total_of_levels(
    counts: Array, lane: int, levels: int, n_unjudged: int, gains: Array, assumed: bool
) -> float:
    total = 0.0
    for level in range(levels):
        total += counts[level, lane] * gains[level]
    if assumed and n_unjudged > 0:
        total += n_unjudged * gains[gains.shape[0] - 2]
    return total


# ---- sums over ranks ----


@block
def discounted(gains: Array, length: int, discounts: Array) -> float:
    total = 0.0
    for i in range(length):
        total += gains[i] * discounts[i]
    return total


@block
def divided(
    over: int,
    total: float,
    ideal: float,
    cutoff: int,
    shown: int,
    relevant: float,
    weight: float,
    tail: float,
) -> float:
    """A row's value: its sum, by what its measure divides it by. `tail` is the discount of the first rank not shown."""
    if over == BY_IDEAL:
        return normalised(total, ideal)
    if over == AS_IS:
        return total
    if over in (SCALED, RESIDUAL):
        return weight * total + tail
    if over in (LEFT, SHARE_LEFT):
        total = shown - total
    if over in (LEFT, POOL_TOTAL):
        return relevant if over == POOL_TOTAL else total
    places = 1.0 * (shown if cutoff == UNCUT or over >= BY_FEWER_RETURNED else cutoff)
    if over == BY_RELEVANT:
        places = relevant
    elif over in (BY_FEWER, BY_FEWER_RETURNED):
        places = min(places, relevant)
    elif over == BY_BOTH:
        total, places = total * total, relevant * max(places, 1.0)
    elif over == WEIGHTED:
        total, places = (1.0 + weight) * total, weight * relevant + places
    return normalised(total, places)


@apart
def fold_rows(
    placed: int,
    lanes: Lanes,
    totals: Array,
    lists: Array,
    lengths: Array,
    ideals: Array,
    ideal_lengths: Array,
    running: Sums,
    rows: Array,
    weights: Array,
    discounts: Array,
    out: Array,
) -> None:
    """Sum lists and ideals of the queries of a batch, `placed` of them, with each row's discount to its cutoff.

    Rows of one list, discount and ideal go on from one another's sums.
    """
    cutoffs, sums, summed, stops, values = running
    for r in range(rows.shape[0]):
        source, discount, ideal, over = rows[r, LIST], rows[r, DISCOUNT], rows[r, IDEAL], rows[r, OVER]
        anew = (
            r == 0
            or source != rows[r - 1, LIST]
            or ideal != rows[r - 1, IDEAL]
            or discount != rows[r - 1, DISCOUNT]
        )
        if rows[r, CUTOFF] == AT_RELEVANT:
            for lane in range(placed):
                cutoffs[lane] = np.int64(totals[rows[r, TOTAL], lane])
        elif r == 0 or rows[r, CUTOFF] != rows[r - 1, CUTOFF]:
            for lane in range(placed):
                cutoffs[lane] = rows[r, CUTOFF]
        is_ratio = source >= 0 and ideal >= 0 and discount >= 0 and values.shape[0] == SIDE_BY_SIDE
        if is_ratio:
            sum_row(
                placed, lists[source], lengths[source], ideals[ideal], ideal_lengths[ideal], discounts[discount],
                cutoffs, anew, stops, summed, sums, values,
            )  # fmt: skip
        else:
            sum_sides(
                placed, source, discount, ideal, anew, lists, lengths, ideals, ideal_lengths, discounts,
                cutoffs, stops, summed, sums,
            )  # fmt: skip
        if not (is_ratio and over == BY_IDEAL):
            of_row = 0 if source >= 0 else 1
            for lane in range(placed):
                relevant = totals[rows[r, TOTAL], lane] if rows[r, TOTAL] >= 0 else 0.0
                tail = discounts[discount, stops[0, lane]] if over == RESIDUAL else 0.0
                values[lane] = divided(
                    over, sums[of_row, lane], sums[1, lane], cutoffs[lane], stops[0, lane], relevant, weights[r], tail
                )  # fmt: skip
        if rows[r, UNDEFINED] != NEVER:
            for lane in range(placed):
                if not lanes.has_documents[lane]:
                    values[lane] = np.nan
        if rows[r, UNDEFINED] == NO_RELEVANT:
            for lane in range(placed):
                if rows[r, TOTAL] < 0 or totals[rows[r, TOTAL], lane] == 0.0:
                    values[lane] = np.nan
        found = out[rows[r, OUT]]
        for lane in range(placed):
            found[lanes.queries[lane]] = values[lane]


@apart
def sum_sides(
    placed: int,
    source: int,
    discount: int,
    ideal: int,
    anew: bool,
    lists: Array,
    lengths: Array,
    ideals: Array,
    ideal_lengths: Array,
    discounts: Array,
    cutoffs: Array,
    stops: Array,
    summed: Array,
    sums: Array,
) -> None:
    """As `sum_row`, where there is a list or an ideal alone, a list of sums, or a single lane; divides nothing."""
    stops[:, :] = 0
    if anew:
        sums[:, :] = 0.0
        summed[:, :] = 0
    if source >= 0:
        for lane in range(placed):
            stops[0, lane] = min(cutoffs[lane], lengths[source, lane])
    if discount < 0:  # the list holds sums
        for lane in range(placed):
            stop = stops[0, lane]
            sums[0, lane] = lists[source, stop - 1, lane] if stop > 0 else 0.0
    elif source >= 0:
        add_to_sums(lists[source], discounts[discount], stops[0], summed[0], sums[0])
    if ideal >= 0 and discount >= 0:
        for lane in range(placed):
            stops[1, lane] = min(cutoffs[lane], ideal_lengths[ideal, lane])
        add_to_sums(ideals[ideal], discounts[discount], stops[1], summed[1], sums[1])


@inlined
def add_to_sums(gains: Array, discounts: Array, stops: Array, summed: Array, sums: Array) -> None:
    if sums.shape[0] == SIDE_BY_SIDE:
        add_discounted(gains, discounts, stops, summed, sums)
    else:
        add_discounted_of_one(gains, discounts, stops, summed, sums)


# ---- one query ----


@inlined
def gather_lists(
    ranked: int,
    distinct: bool,
    unjudged: int,
    made: int,
    gains: Array,
    lists: Array,
    exact: Array,
    work: Work,
    out: Array,
    lengths: Array,
    lane: int,
) -> None:
    """Fill the lists of gains and counts, but for those that are made, of all queries side by side."""
    for v in range(lists.shape[0]):
        table, ties, condensed = lists[v, TABLE], lists[v, TIES], lists[v, CONDENSED] == 1
        if (made == ALL_MADE and is_linear(v, lists)) or (
            made == AVERAGED_MADE and averages_exactly(v, lists, exact)
        ):
            continue
        if lists[v, FOLD] == GAIN:
            lengths[v, lane] = gather(
                ranked, distinct, ties, condensed, unjudged, gains[table], exact[table], work, out[v], lane
            )
        elif lists[v, FOLD] == COUNT:
            lengths[v, lane] = gather_sums(
                ranked, ties, condensed, unjudged, gains[table], work.codes, work.sizes, work.group, out[v], lane
            )  # fmt: skip


@apart
def gains_by_rank(
    gains: Array, rows: int, tied: bool, kept: Array, ranked: Ranked, out: Array, lengths: Array
) -> None:
    """A list of gains of queries ranked side by side, with averaged ties."""
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        lengths[lane] = min(kept[lane], depth)
    filled, n = (ranked.gains, rows) if tied else (out, depth)
    if gains.shape[0] <= SIDE_BY_SIDE:
        gains_of_codes(ranked.codes, gains, n, filled)
    else:
        for rank in range(n):
            for lane in range(SIDE_BY_SIDE):
                filled[rank, lane] = gains[ranked.codes[rank, lane]]
    if tied:
        average_side_by_side(ranked.gains, ranked.same, kept, rows, ranked.sizes, out)


@apart
def counts_by_rank(gains: Array, rows: int, kept: Array, codes: Array, out: Array, lengths: Array) -> None:
    """As `gather_sums`, of queries ranked side by side where none are tied."""
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        lengths[lane] = min(kept[lane], depth)
    for rank in range(depth):
        for lane in range(SIDE_BY_SIDE):
            before = out[rank - 1, lane] if rank > 0 else 0.0
            out[rank, lane] = before + gains[codes[rank, lane]]


@apart
def take_column(ranked: Ranked, lane: int, kept: int, work: Work) -> bool:
    """As `rank`, of a query that was ranked beside others."""
    tied, start = False, 0
    for rank in range(kept):
        work.codes[rank] = ranked.codes[rank, lane]
    for rank in range(max(kept, 2 * LANES)):
        work.sizes[rank] = 1
    for rank in range(1, kept):
        if ranked.same[rank] >> lane & 1:
            work.sizes[start] += 1
            tied = True
        else:
            start = rank
    if tied and kept <= 2 * LANES:
        start = 0
        while start < kept:
            size = work.sizes[start]
            for rank in range(start, start + size):
                work.firsts[rank], work.sizes[rank] = start, size
            start += size
    return tied


@inlined
def is_linear(v: int, lists: Array) -> bool:
    """Whether a list is one of gains or counts, of all documents: such ones are made side by side."""
    return lists[v, FOLD] in (GAIN, COUNT) and lists[v, CONDENSED] == 0


@inlined
def averages_exactly(v: int, lists: Array, exact: Array) -> bool:
    """Whether a list that is made side by side is right where documents are tied, too."""
    return (
        is_linear(v, lists)
        and lists[v, FOLD] == GAIN
        and lists[v, TIES] == AVERAGE
        and exact[lists[v, TABLE]]
    )


@inlined
def rows_to_rank(placed: int, first_wanted: int, lanes: Lanes, scored: Array) -> tuple[int, bool]:
    """Up to how many documents the lists of a batch are ranked side by side, and whether none has more.

    Longer ones are ranked one by one.
    """
    longest = longer = 0
    for lane in range(placed):
        longest = max(longest, lanes.kept[lane])
        longer += lanes.kept[lane] > LANES
    if longest > 2 * LANES:
        rows = rows_worth_sorting(placed, first_wanted, lanes.kept, lanes.steps, scored)
    else:
        rows = LANES if 2 * longer <= SIDE_BY_SIDE else 2 * LANES
    return rows, longest <= rows


@apart
def rows_worth_sorting(placed: int, first_wanted: int, kept: Array, steps: Array, scored: Array) -> int:
    """Length of a list of the batch up to which it takes least to sort all together, and longer ones by themselves."""
    worth, least = 0, 0
    for lane in range(placed):
        wanted = 0
        for level in range(first_wanted, scored.shape[0] - _COUNTED):
            wanted += scored[level, lane]
        compared = min(wanted, kept[lane]) * vectors_of(kept[lane])
        steps[lane] = _COMPARED * min(compared, _COUNTING * kept[lane])
        least += steps[lane]
    for candidate in range(placed):
        rows = LANES * vectors_of(kept[candidate])
        if LANES <= rows <= _TOGETHER:
            doublings = 0
            while 1 << doublings < rows:
                doublings += 1
            taken = rows * doublings * doublings
            for lane in range(placed):
                if kept[lane] > rows:
                    taken += steps[lane]
            if taken < least:
                worth, least = rows, taken
    return worth


@apart
def ideals_of_lists(
    placed: int,
    ideals: Array,
    top: Array,
    lists: Array,
    list_lengths: Array,
    out: Array,
    lengths: Array,
    gains: Array,
) -> None:
    """The ideals that depend on what was returned, after the lists and the other ideals are made."""
    for i in range(ideals.shape[0]):
        source, cutoff, of_list = ideals[i, SOURCE], ideals[i, IDEAL_CUTOFF], ideals[i, OF_LIST]
        if source not in (RETURNED, FULL):
            continue
        for lane in range(placed):
            length = list_lengths[of_list, lane]
            if source == RETURNED:
                length = min(cutoff, length)
                for rank in range(length):
                    gains[rank] = lists[of_list, rank, lane]
                sort_falling(gains, length)
                for rank in range(length):
                    out[i, rank, lane] = gains[rank]
            else:
                length = length if cutoff == UNCUT else cutoff
                best, pool = top[ideals[i, TABLE]], ideals[i, POOL]
                if np.isnan(best) and lengths[pool, lane] > 0:
                    best = out[pool, 0, lane]
                if np.isnan(best):
                    length = 0
                for rank in range(length):
                    out[i, rank, lane] = best
            lengths[i, lane] = length


@inlined
def no_level_gains(
    levels: int, scored: Array, judged: Array, lane: int, promising: Array, totals: Array
) -> bool:
    """Whether a query has no value by any row, by how many documents there are of each level."""
    for level in range(levels - 1, -1, -1):
        if (promising[1, level] and judged[level, lane] > 0) or (
            promising[0, level] and scored[level, lane] > 0
        ):
            return False
    return nothing_relevant(totals)


@inlined
def no_value_gains(plan: Plan, batch: Batch, lane: int) -> bool:
    """Whether a query has no value by any row, by its ideals."""
    if not plan.skippable:
        return False
    for i in range(plan.ideals.shape[0]):
        if batch.ideal_lengths[i, lane] > 0 and batch.ideals[i, 0, lane] > 0.0:
            return False
    return nothing_relevant(batch.totals[:, lane])


@inlined
def nothing_relevant(totals: Array) -> bool:
    counted = 0.0
    for i in range(totals.shape[0]):
        counted += totals[i]
    return counted == 0.0


@inlined
def rows_of(query: int, documents: Documents) -> tuple[int, int]:
    return documents.offsets[query] - documents.base, documents.offsets[query + 1] - documents.base


@apart
def total_lane(
    lane: int,
    judged: Array,
    levels: int,
    n_unjudged: int,
    gains: Array,
    summed: Array,
    assumed: Array,
    totals: Array,
) -> None:
    for i in range(summed.shape[0]):
        table = summed[i]
        totals[i, lane] = total_of_levels(judged, lane, levels, n_unjudged, gains[table], assumed[table])


@apart
def take_queries(
    first: int,
    last: int,
    documents: Documents,
    gains: Array,
    summed: Array,
    assumed: Array,
    promising: Array,
    skippable: bool,
    condensing: bool,
    scored: Array,
    judged: Array,
    totals: Array,
    lanes: Lanes,
    out: Array,
) -> tuple[int, int]:
    """Place the next queries in the lanes, and count their documents by level; those that have no value are left out.

    Returns how many lanes are taken, and the query to go on from.
    """
    unjudged, levels, pool_offsets = gains.shape[1] - 2, documents.levels, documents.pool_offsets
    has_pool = pool_offsets.shape[0] > 0
    lane = 0
    while first < last and lane < lanes.queries.shape[0]:
        number = first
        first += 1
        start, stop = rows_of(number, documents)
        has_documents = stop > start
        count_levels(documents.relevance, start, stop, levels, scored, lane)
        n_unjudged = scored[unjudged, lane] if levels > unjudged else 0
        if has_pool:
            pool_start = pool_offsets[number] - documents.pool_base
            pool_stop = pool_offsets[first] - documents.pool_base
            has_documents = has_documents or pool_stop > pool_start
            count_levels(documents.pool_relevance, pool_start, pool_stop, levels, judged, lane)
            judged[unjudged, lane] = n_unjudged
        if summed.shape[0] > 0:
            total_lane(lane, judged, min(levels, unjudged), n_unjudged, gains, summed, assumed, totals)
        if skippable and no_level_gains(levels, scored, judged, lane, promising, totals[:, lane]):
            out[:, number] = np.nan
            continue
        lanes.queries[lane], lanes.starts[lane], lanes.stops[lane] = number, start, stop
        lanes.has_documents[lane], lanes.all_kept[lane] = has_documents, n_unjudged > 0 and condensing
        lane += 1
    return lane, first


@block
def quarter_of_next(first: int, last: int, documents: Documents) -> tuple[int, int]:
    """First document of the next queries to be scored side by side, and a quarter of how many they have, or of _FETCHED."""
    if first >= last:
        return 0, 0
    start, _ = rows_of(first, documents)
    _, stop = rows_of(min(first + SIDE_BY_SIDE, last) - 1, documents)
    return start, min(stop - start, _FETCHED) // 4


@apart
def keep_of_lanes(
    placed: int,
    depth: int,
    scores: Array,
    codes: Array,
    lanes: Lanes,
    greatest: Array,
    bounds: Array,
    kept_scores: Array,
    kept_codes: Array,
) -> None:
    """Keep a superset of the documents of the first `depth` ranks, with all tied with the last of them, of each query.

    Step by step for all of them, so that the processor need not wait for what a step before has found.
    """
    least, bounded, others = max(BINS, 3 * depth), False, False
    for lane in range(placed):
        start, stop = lanes.starts[lane], lanes.stops[lane]
        if depth > _DEEPEST or stop - start < least or lanes.all_kept[lane]:
            lanes.all_kept[lane] = others = True
            lanes.seen[lane] = start
        else:
            bounded = True
            others = others or stop - start > _MANY
            lanes.seen[lane] = start + bounded_by(stop - start)
    for lane in range(placed, lanes.kept.shape[0]):
        lanes.kept[lane], lanes.seen[lane] = 0, lanes.starts[lane]
    if bounded:
        greatest_by_bin(scores, lanes.starts, lanes.seen, greatest)
        bounds_of_top(greatest, max(depth, 1), bounds)
    if others:
        for lane in range(placed):
            start, stop = lanes.starts[lane], lanes.stops[lane]
            if lanes.all_kept[lane]:
                lanes.kept[lane] = keep_all(
                    codes[start:stop], scores[start:stop], kept_scores[lane], kept_codes[lane]
                )
            elif stop - start > _MANY:
                lanes.seen[lane] = start
                lanes.kept[lane] = keep_few_from(
                    scores[start:stop], codes[start:stop], bounds[lane], kept_scores[lane], kept_codes[lane]
                )
    if bounded:
        keep_from_lanes(scores, codes, lanes.starts, lanes.seen, bounds, kept_scores, kept_codes, lanes.kept)


@block
def score_queries_of_levels(
    first: int,
    last: int,
    documents: Documents,
    plan: Plan,
    scratch: Scratch,
    work: Work,
    batch: Batch,
    out: Array,
) -> None:
    # taken out once: to name a field takes all some hundred words of its tuple, for LLVM to find out that they are not used
    lists, gains, lanes, ranked = plan.lists, plan.gains, batch.lanes, batch.ranked
    out_lists, lengths, ideals, ideal_lengths = batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths
    unjudged, judged = gains.shape[1] - 2, batch.counts[1]
    scored = batch.counts[0] if documents.pool_offsets.shape[0] > 0 else judged
    lanes_are_many = lanes.queries.shape[0] == SIDE_BY_SIDE
    linear = averaged = True
    keeps_order = documents.scores.itemsize == 4  # of tied documents that are ranked side by side
    for v in range(lists.shape[0]):
        linear = linear and is_linear(v, lists)
        averaged = averaged and averages_exactly(v, lists, plan.exact)
    while first < last:
        placed, first = take_queries(
            first, last, documents, gains, plan.totals, plan.assumed, plan.promising, plan.skippable,
            plan.condensing, scored, judged, batch.totals, lanes, out,
        )  # fmt: skip
        # a part at a time: a processor that waits for some twenty lines of memory takes no more requests, and stalls
        ahead, quarter = quarter_of_next(first, last, documents)
        fetch(documents.scores, ahead, ahead + quarter)
        keep_of_lanes(
            placed, plan.depth, documents.scores, documents.relevance, lanes,
            scratch.greatest, scratch.bounds, scratch.scores, scratch.kept,
        )  # fmt: skip
        fetch(documents.scores, ahead + quarter, ahead + 2 * quarter)
        rows, all_ranked = 0, False
        if lanes_are_many:
            rows, all_ranked = rows_to_rank(placed, plan.first_wanted, lanes, scored)
        tied_lanes = 0
        if rows > 0:
            tied_lanes = rank_side_by_side(
                scratch.scores, scratch.kept, lanes.kept, placed, rows, unjudged + 1,
                ranked.keys, ranked.codes, ranked.same,
            )  # fmt: skip
            for v in range(lists.shape[0]):
                if not is_linear(v, lists):
                    continue
                own = gains[lists[v, TABLE]]
                if lists[v, FOLD] == GAIN:
                    gains_by_rank(own, rows, tied_lanes != 0, lanes.kept, ranked, out_lists[v], lengths[v])
                else:
                    counts_by_rank(own, rows, lanes.kept, ranked.codes, out_lists[v], lengths[v])
        fetch(documents.scores, ahead + 2 * quarter, ahead + 3 * quarter)
        tied = tied_lanes != 0
        all_made = all_ranked and (averaged or (linear and not tied))
        for lane in range(0 if all_made else placed):
            kept, is_tied = lanes.kept[lane], tied_lanes >> lane & 1 == 1
            is_ranked, made = rows > 0 and kept <= rows, NONE_MADE
            if is_ranked:
                made = AVERAGED_MADE if is_tied else ALL_MADE
            if (made == ALL_MADE and linear) or (made == AVERAGED_MADE and averaged):
                continue
            if is_ranked and (keeps_order or not is_tied):
                is_tied = take_column(ranked, lane, kept, work)
            else:
                is_tied = tied = rank(
                    kept, tied, unjudged + 1, documents.lowest, plan.first_wanted,
                    scratch.scores[lane], scratch.kept[lane], scratch.wanted, work,
                )  # fmt: skip
            gather_lists(
                kept, not is_tied, unjudged, made, gains, lists, plan.exact, work, out_lists, lengths, lane
            )
            fold_lists(kept, not is_tied, unjudged, gains, plan, scratch.chances, work, batch, lane)
        fetch(documents.scores, ahead + 3 * quarter, ahead + 4 * quarter)
        ideals_of_levels(
            scored, judged, plan.ideals, plan.falling, plan.earning, gains, ideals, ideal_lengths
        )  # fmt: skip
        fetch(documents.relevance, ahead, ahead + 4 * quarter)
        finish_batch(placed, plan, work, batch, out)


@inlined
def finish_batch(placed: int, plan: Plan, work: Work, batch: Batch, out: Array) -> None:
    ideals_of_lists(
        placed, plan.ideals, plan.top, batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths, work.group
    )  # fmt: skip
    fold_rows(
        placed, batch.lanes, batch.totals, batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths, batch.sums,
        plan.rows, plan.weights, plan.discounts, out,
    )  # fmt: skip


@block
def score_queries_of_values(
    first: int,
    last: int,
    documents: Documents,
    plan: Plan,
    scratch: Scratch,
    work: Work,
    batch: Batch,
    out: Array,
) -> None:
    """As `score_queries_of_levels`, for grades that have no small set of levels: a document's code is its row in the query."""
    pool_offsets, values, gains = documents.pool_offsets, scratch.values, scratch.gains
    while first < last:
        lane, tied = 0, False
        while first < last and lane < batch.lanes.queries.shape[0]:
            number, totals = first, batch.totals[:, lane]
            first += 1
            start, stop = rows_of(number, documents)
            relevance = documents.relevance[start:stop]
            n = unjudged = stop - start
            has_documents = n > 0
            ahead = stop + min(n, _FETCHED // SIDE_BY_SIDE)  # as if the next list were as long
            fetch(documents.relevance, stop, ahead)
            codes = scratch.codes[:n]
            for i in range(n):
                codes[i] = i
            for table in range(gains.shape[0]):
                fill_gains(relevance, table, plan, gains[table])
                gains[table, n] = plan.gains[table, plan.gains.shape[1] - 2]
                gains[table, n + 1] = 0.0
            any_unjudged = False
            if documents.is_judged.shape[0] > 0:
                is_judged = documents.is_judged[start:stop]
                for i in range(n):
                    if not is_judged[i]:
                        any_unjudged = True
                        codes[i] = unjudged
            all_judged = not any_unjudged and pool_offsets.shape[0] == 0
            for i in range(plan.ideals.shape[0]):
                table, source = plan.ideals[i, TABLE], plan.ideals[i, SOURCE]
                if all_judged and source in (JUDGED, SCORED):
                    found = gains[table, :n]
                else:
                    size = 0
                    if source == JUDGED:
                        size = gains_of_judged(
                            number, table, codes, unjudged, gains[table], documents, plan, values
                        )
                    elif source == SCORED:
                        condensed = plan.ideals[i, LEAVES_OUT] == 1
                        size = collect(0, n, condensed, unjudged, gains[table], codes, values)
                    found = values[:size]
                batch.ideal_lengths[i, lane] = ideal_of_gains(
                    found, plan.ideal_depth, values, scratch.kept[lane], work, batch.ideals[i], lane
                )
            for i in range(plan.totals.shape[0]):
                size = gains_of_judged(
                    number, plan.totals[i], codes, unjudged, gains[plan.totals[i]], documents, plan, values
                )
                totals[i] = 0.0
                for j in range(size):
                    totals[i] += values[j]
            if pool_offsets.shape[0] > 0:
                has_documents = has_documents or pool_offsets[first] > pool_offsets[number]
            if no_value_gains(plan, batch, lane):
                out[:, number] = np.nan
                continue
            fetch(documents.scores, stop, ahead)
            depth = n if any_unjudged and plan.condensing else min(plan.depth, n)
            batch.lanes.kept[lane] = keep_top(
                codes, documents.scores[start:stop], depth, scratch.scores[lane], scratch.kept[lane]
            )
            kept = batch.lanes.kept[lane]
            tied = rank(
                kept, tied, unjudged + 1, documents.lowest, plan.first_wanted,
                scratch.scores[lane], scratch.kept[lane], scratch.wanted, work,
            )  # fmt: skip
            gather_lists(
                kept, not tied, unjudged, NONE_MADE, gains, plan.lists, plan.exact, work, batch.lists, batch.lengths, lane
            )  # fmt: skip
            fold_lists(kept, not tied, unjudged, gains, plan, scratch.chances, work, batch, lane)
            batch.lanes.queries[lane], batch.lanes.has_documents[lane] = number, has_documents
            lane += 1
        finish_batch(lane, plan, work, batch, out)


# ---- drivers: chunks of queries, cut so that each has about as many documents ----


@block
def longest_list(offsets: Array, first: int, last: int) -> int:
    longest = 0
    for query in range(first, min(last, offsets.shape[0] - 1)):
        longest = max(longest, offsets[query + 1] - offsets[query])
    return longest


@allocating
def work_for(longest: int) -> Work:
    size = longest + 2 * LANES
    return Work(
        empty(size, np.uint32),
        empty(size, np.uint32),
        empty(size, np.uint32),
        empty(size, np.uint32),
        empty(size, np.uint32),
        empty(size, np.uint32),
        empty(size, np.float64),
        empty(LANES, np.float64),
    )


@block
def lanes_for(longest: int, plan: Plan) -> int:
    """How many queries are scored side by side: several, where what is held of each is little."""
    n_lists, n_ideals = max(plan.lists.shape[0], 1), plan.ideals.shape[0]
    ranks = n_lists * min(plan.depth, longest) + n_ideals * plan.ideal_depth
    return SIDE_BY_SIDE if max(ranks, longest) <= _HELD else 1


@allocating
def scratch_for(longest: int, coded: bool, pool: int, documents: Documents, plan: Plan) -> Scratch:
    """Working memory for grades that are `coded` to levels, or for others and pools of at most `pool` documents."""
    size, lanes = longest + 2 * LANES, lanes_for(longest, plan)
    return Scratch(
        empty(0 if coded else longest, np.uint32),
        empty((SIDE_BY_SIDE, BINS), documents.scores.dtype),
        empty(SIDE_BY_SIDE, documents.scores.dtype),
        empty((lanes, size), documents.scores.dtype),
        empty((lanes, size + pool), np.uint32),
        empty(size, documents.scores.dtype),
        empty((0 if coded else plan.gains.shape[0], longest + 2), np.float64),
        empty(0 if coded else size + pool, np.float64),
        empty((4, 0 if plan.folds is None else longest + 2), np.float64),
    )


@allocating
def batch_for(longest: int, plan: Plan) -> Batch:
    n_lists, n_ideals, n_totals = max(plan.lists.shape[0], 1), plan.ideals.shape[0], plan.totals.shape[0]
    depth, ideal_depth, lanes = min(plan.depth, longest), plan.ideal_depth, lanes_for(longest, plan)
    rows = LANES * max(vectors_of(min(longest, _TOGETHER)), 1)
    counts = empty((2, plan.gains.shape[1] + _COUNTED, lanes), np.int64)
    counts[:] = 0  # ideals of lanes without a query are filled as well
    return Batch(
        Lanes(
            empty(lanes, np.int64),
            empty(lanes, np.int64),
            empty(lanes, np.int64),
            empty(lanes, np.int64),
            empty(lanes, np.bool_),
            empty(lanes, np.bool_),
            empty(lanes, np.int64),
            empty(lanes, np.int64),
        ),
        counts,
        empty((n_totals, lanes), np.float64),
        Ranked(
            empty((rows, SIDE_BY_SIDE), np.uint32),
            empty(rows, np.uint8),
            empty((rows, SIDE_BY_SIDE), np.int64),
            empty((rows, SIDE_BY_SIDE), np.float64),
            empty((rows, SIDE_BY_SIDE), np.float64),
        ),
        empty((n_lists, depth, lanes), np.float64),
        empty((n_lists, lanes), np.int64),
        empty((n_ideals, ideal_depth, lanes), np.float64),
        empty((n_ideals, lanes), np.int64),
        Sums(
            empty(lanes, np.int64),
            empty((2, lanes), np.float64),
            empty((2, lanes), np.int64),
            empty((2, lanes), np.int64),
            empty(lanes, np.float64),
        ),
    )


@driver()
def score_levels_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in range(chunks.shape[0] - 1):
        first, last = chunks[c], chunks[c + 1]
        longest = longest_list(documents.offsets, first, last)
        scratch = scratch_for(longest, True, 0, documents, plan)
        score_queries_of_levels(
            first, last, documents, plan, scratch, work_for(longest), batch_for(longest, plan), out
        )


@driver()
def score_values_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in range(chunks.shape[0] - 1):
        first, last = chunks[c], chunks[c + 1]
        longest, pool = (
            longest_list(documents.offsets, first, last),
            longest_list(documents.pool_offsets, first, last),
        )
        scratch = scratch_for(longest, False, pool, documents, plan)
        score_queries_of_values(
            first, last, documents, plan, scratch, work_for(longest), batch_for(longest, plan), out
        )


def address_of(serial: Any, *arguments: Any) -> Any:
    """Where the compiled code of a serial driver for such arguments is; it is compiled now where it was not before."""
    if numba.config.DISABLE_JIT:
        return serial
    kind = serial, _kind_of(arguments)
    if kind not in _addresses:
        kinds = tuple(serial.typeof_pyval(argument) for argument in arguments)
        serial.compile(kinds)
        compiled = serial.overloads[kinds]
        _addresses[kind] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return _addresses[kind]


_addresses: dict[Any, Any] = {}


def _kind_of(argument: Any) -> Any:
    """What Numba's type of an argument depends on; to ask Numba for it took 0.2 ms a call."""
    if isinstance(argument, tuple):
        return type(argument), *map(_kind_of, argument)
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    return type(argument)


def plain_call_at(serial: Any, chunks: Array, documents: Documents, plan: Plan, out: Array) -> int:
    """Call the code of a serial driver; returns 1 where it failed, for want of memory, and 0 otherwise.

    A second copy of that code, as a part of the parallel driver, took 8 s to compile.
    """
    serial(chunks, documents, plan, out)
    return 0


@intrinsic
def compiled_call_at(typing: Any, address: Any, chunks: Any, documents: Any, plan: Any, out: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, kinds = context.call_conv, signature.args[1:]
        function = builder.inttoptr(
            arguments[0], convention.get_function_type(types.none, kinds).as_pointer()
        )
        status, _ = convention.call_function(builder, function, types.none, kinds, arguments[1:])
        return builder.zext(status.is_error, ir.IntType(64))

    return types.int64(address, chunks, documents, plan, out), generate


call_at = plain_call_at if numba.config.DISABLE_JIT else compiled_call_at


def plain_take_next(taken: Array) -> int:
    """How many were taken before: a number that no other thread gets."""
    taken[0] += 1
    return int(taken[0]) - 1


@intrinsic
def vector_take_next(typing: Any, taken: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0])
        return builder.atomic_rmw("add", pointer, _const(1), "monotonic")

    return types.int64(taken), generate


take_next = plain_take_next if numba.config.DISABLE_JIT else vector_take_next


@driver(parallel=True)
def score_parallel(
    address: Any, threads: int, taken: Array, chunks: Array, documents: Documents, plan: Plan, out: Array
) -> int:
    """Run the serial driver at the address over chunks of queries; returns how many of these failed.

    Each thread takes the next chunk when it is done with one, so that one whose core is busy takes fewer: beside a process
    that kept one of two cores busy, shares cut beforehand took half as long again. `taken` counts them: int64 (1,), from 0.
    """
    failed = 0
    for _ in numba.prange(threads):
        c = take_next(taken)
        while c < chunks.shape[0] - 1:
            failed += call_at(address, chunks[c : c + 2], documents, plan, out)
            c = take_next(taken)
    return failed


# ---- the expectation that is no sum: nDCG over an ideal of the returned documents ----


@block
def choose(n: int, k: int) -> float:
    """Number of ways to choose k of n."""
    if n > 1000:  # beyond it the product overflows
        return np.exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0))
    ways = 1.0
    for i in range(1, k + 1):
        ways = ways * (n - k + i) / i
    return ways


@block
def next_draw(drawn: Array, available: Array, kinds: int) -> bool:
    """Advance to the next way to draw equally many documents, kinds of greater gain first; False after the last."""
    room = after = 0
    kind = kinds - 1
    while kind >= 0 and (drawn[kind] == 0 or room == 0):
        after += drawn[kind]
        room += available[kind] - drawn[kind]
        kind -= 1
    if kind < 0:
        return False
    drawn[kind] -= 1
    after += 1
    for later in range(kind + 1, kinds):
        drawn[later] = min(available[later], after)
        after -= drawn[later]
    return True


@allocating
def expected_over_returned(
    gains: Array, sizes: Array, cutoff: int, discounts: Array, empty: float, ratio: bool
) -> float:
    """Expectation of DCG / IDCG, or of IDCG where not `ratio`, over all orders of ties, where the ideal is made of the documents on the first ranks.

    `gains` are in rank order, `sizes` those of the tied groups. Which documents are returned varies only where a group
    straddles the cutoff. Then every way to draw the remaining places from the group's distinct gains is weighed by its
    (multivariate hypergeometric) probability. Infinite where there are more than `_MOST_DRAWS` ways.
    """
    length = min(gains.shape[0], cutoff)
    before, last = 0, 0  # ranks of the groups that are returned whole; the group after them
    total = 0.0
    while last < sizes.shape[0] and before + sizes[last] <= length:
        mean = average(gains[before : before + sizes[last]].copy(), sizes[last], False)
        for i in range(before, before + sizes[last]):
            total += mean * discounts[i]
        before += sizes[last]
        last += 1
    places = length - before
    group = gains[before : before + sizes[last]].copy() if places > 0 else np.empty(0)
    size = group.shape[0]
    sort_falling(group, size)
    values, available, drawn = np.empty(size), np.zeros(size, np.int64), np.zeros(size, np.int64)
    kinds = 0
    for i in range(size):
        if i == 0 or group[i] != group[i - 1]:
            values[kinds] = group[i]
            kinds += 1
        available[kinds - 1] += 1
    left, defined = places, False
    for kind in range(kinds):
        drawn[kind] = min(available[kind], left)
        left -= drawn[kind]
    ideal = np.empty(length)
    value = weight = 0.0
    for _ in range(_MOST_DRAWS):
        ways = 1.0
        mean = 0.0
        ideal[:before] = gains[:before]
        at = before
        for kind in range(kinds):
            if kinds > 1:
                ways *= choose(available[kind], drawn[kind])
            mean += values[kind] * drawn[kind]
            ideal[at : at + drawn[kind]] = values[kind]
            at += drawn[kind]
        if places > 0:
            mean = values[0] if kinds == 1 else mean / places
        got = total
        for i in range(before, length):
            got += mean * discounts[i]
        sort_falling(ideal, length)
        best = discounted(ideal, length, discounts)
        if not ratio:
            value += ways * best
            weight += ways
            defined = True
        elif best != 0.0:
            value += ways * normalised(got, best)
            weight += ways
            defined = True
        elif not np.isnan(empty):
            value += ways * empty
            weight += ways
        if not next_draw(drawn, available, kinds):
            return (normalised(value, weight) if ratio else value / weight) if defined else np.nan
    return np.inf


@driver()
def expect_over_returned(
    offsets: Array,
    gains: Array,
    scores: Array,
    counts: Array,
    cutoff: int,
    discounts: Array,
    empty: float,
    ratio: bool,
    out: Array,
) -> None:
    """nDCG, or IDCG where not `ratio`, of each query by `expected_over_returned`, of the documents for which `counts` is true."""
    for query in range(offsets.shape[0] - 1):
        rows = offsets[query] + np.flatnonzero(counts[offsets[query] : offsets[query + 1]])
        keys = np.empty(rows.shape[0], np.uint64)
        falling_keys(scores[rows], rows.shape[0], keys)
        ranked = np.argsort(keys, kind="mergesort")
        sizes = np.zeros(rows.shape[0], np.int64)
        groups = 0
        for i in range(rows.shape[0]):
            if i > 0 and keys[ranked[i]] != keys[ranked[i - 1]]:
                groups += 1
            sizes[groups] += 1
        filled = groups + 1 if rows.shape[0] > 0 else 0
        out[query] = expected_over_returned(
            gains[rows[ranked]], sizes[:filled], cutoff, discounts, empty, ratio
        )


# ==== measures of several intents: a query's documents are ranked once, and each intent is folded over its own ====

# columns of IntentRows.rows; a fold is GAIN, or STOP where each document that an intent has seen takes from later ones
(
    INTENT_TABLE,
    INTENT_FOLD,
    INTENT_TIES,
    INTENT_DISCOUNT,
    INTENT_CUTOFF,
    INTENT_OVER,
    INTENT_OUT,
    WEIGHED,
    DEPTH,
) = range(9)
# what the intents' sums become
TOTAL_OF_INTENTS, MEAN_OF_INTENTS, OF_PERFECT, OF_GREEDY, OF_EACH_IDEAL = range(5)


class IntentDocuments(NamedTuple):
    """Documents of queries with their entries: a worth for some of the query's intents, which ascend."""

    offsets: Array  # int64 (n_queries + 1,)
    entries: Array  # int64 (n_docs + 1,): entries of each document
    numbers: Array  # int64 (n_entries,): intent of each entry
    worth: Array  # float64 (n_tables, n_entries)


class IntentRows(NamedTuple):
    """Measures as tables."""

    rows: Array  # int64 (n_rows, 9): see the names of columns
    perfect: Array  # float64 (n_rows,): worth of a document that is perfect for an intent
    scale: Array  # float64 (n_rows,): what a total is multiplied by
    discounts: Array  # float64 (n_discounts, ranks)


class Buckets(NamedTuple):
    """Entries of a ranking by intent: intent `t` owns `starts[t]:starts[t + 1]`, by rising rank."""

    starts: Array  # int64 (n_intents + 1,)
    ranks: Array  # int64
    entries: Array  # int64


@block
def bucket_entries(order: Array, n: int, first: int, documents: IntentDocuments, buckets: Buckets) -> None:
    """Fill the buckets with the entries of the first `n` documents of `order`, whose numbers count from `first`."""
    starts = buckets.starts
    n_intents = starts.shape[0] - 1
    starts[:] = 0
    for rank in range(n):
        document = first + order[rank]
        for e in range(documents.entries[document], documents.entries[document + 1]):
            starts[documents.numbers[e] + 1] += 1
    for t in range(n_intents):
        starts[t + 1] += starts[t]
    for rank in range(n):
        document = first + order[rank]
        for e in range(documents.entries[document], documents.entries[document + 1]):
            t = documents.numbers[e]
            buckets.ranks[starts[t]], buckets.entries[starts[t]] = rank, e
            starts[t] += 1
    for t in range(n_intents, 0, -1):
        starts[t] = starts[t - 1]
    starts[0] = 0


@block
def sum_of_intent(
    intent: int,
    fold: int,
    averaged: bool,
    cutoff: int,
    worth: Array,
    discounts: Array,
    sizes: Array,
    firsts: Array,
    buckets: Buckets,
    group: Array,
    chances: Array,
) -> float:
    """Discounted sum of what the ranks are worth to one intent, or the expectation of it over the orders of ties."""
    at, stop = buckets.starts[intent], buckets.starts[intent + 1]
    total, going = 0.0, 1.0
    while at < stop:
        rank = buckets.ranks[at]
        first, size = (firsts[rank], sizes[rank]) if averaged else (rank, 1)
        if first >= cutoff:
            break
        able = 0
        while at < stop and buckets.ranks[at] < first + size:
            gain = worth[buckets.entries[at]]
            if gain > 0.0:
                group[able] = gain
                able += 1
            at += 1
        if able == 0:
            continue
        filled = min(size, cutoff - first)
        if size > 1:
            sort_falling(group, able)
        if able == size and group[0] == group[size - 1]:  # then no order differs from another
            for i in range(filled):
                total += going * group[i] * discounts[first + i]
                if fold == STOP:
                    going *= 1.0 - group[i]
        elif fold == GAIN:
            mean = 0.0
            for i in range(able):
                mean += group[i]
            mean /= size
            for i in range(filled):
                total += mean * discounts[first + i]
        else:
            stop_chances(group, able, size, filled, chances)
            for i in range(filled):
                total += going * chances[3, i] * discounts[first + i]
            for i in range(able):
                going *= 1.0 - group[i]
    return total


@block
def ideal_of_intent(
    intent: int, cutoff: int, worth: Array, discounts: Array, buckets: Buckets, group: Array
) -> float:
    """Discounted sum of an intent's gains, greatest first."""
    n = 0
    for at in range(buckets.starts[intent], buckets.starts[intent + 1]):
        group[n] = worth[buckets.entries[at]]
        n += 1
    sort_falling(group, n)
    return discounted(group, min(n, cutoff), discounts)


@block
def next_worthy(entry: int, stop: int, worth: Array) -> int:
    while entry < stop and worth[entry] == 0.0:
        entry += 1
    return entry


@block
def compare_entries(one: int, other: int, documents: IntentDocuments, worth: Array) -> int:
    """0 where two documents are worth the same to every intent, else -1 or 1 in an order of their entries."""
    at, stop = documents.entries[one], documents.entries[one + 1]
    of_other, other_stop = documents.entries[other], documents.entries[other + 1]
    while True:
        at, of_other = next_worthy(at, stop, worth), next_worthy(of_other, other_stop, worth)
        if at == stop or of_other == other_stop:
            return int(at == stop) - int(of_other == other_stop)
        if documents.numbers[at] != documents.numbers[of_other]:
            return -1 if documents.numbers[at] < documents.numbers[of_other] else 1
        if worth[at] != worth[of_other]:
            return -1 if worth[at] > worth[of_other] else 1
        at += 1
        of_other += 1


@block
def greedy_order(
    first: int,
    n: int,
    depth: int,
    decaying: bool,
    ordered: bool,
    weights: Array,
    documents: IntentDocuments,
    worth: Array,
    going: Array,
    terms: Array,
    kinds: Array,
    following: Array,
    order: Array,
) -> int:
    """The greedy ideal: on each rank the document that gains most there, given those above; returns how many gain at all.

    Documents of one kind, worth the same to every intent, are interchangeable, so that kinds compete and not documents. Of
    equal gains the document that comes first wins where the documents are `ordered`, and else the kind that comes first in
    an order of their entries. Rows of `kinds`: first document of the kind that is left, and the last one; -1 for none.
    """
    n_kinds = 0
    for document in range(n):
        entry = documents.entries[first + document]
        if (
            next_worthy(entry, documents.entries[first + document + 1], worth)
            == documents.entries[first + document + 1]
        ):
            continue
        following[document] = -1
        kind = 0
        while (
            kind < n_kinds
            and compare_entries(first + kinds[1, kind], first + document, documents, worth) != 0
        ):
            kind += 1
        if kind == n_kinds:
            kinds[0, kind] = document
            n_kinds += 1
        else:
            following[kinds[1, kind]] = document
        kinds[1, kind] = document
    going[:] = 1.0
    placed = 0
    while placed < depth:
        best, most = -1, 0.0
        for kind in range(n_kinds):
            document = kinds[0, kind]
            if document < 0:
                continue
            gain, n_terms = 0.0, 0
            for e in range(documents.entries[first + document], documents.entries[first + document + 1]):
                t = documents.numbers[e]
                terms[n_terms] = weights[t] * going[t] * worth[e]
                n_terms += 1
            sort_falling(terms, n_terms)  # gains of equal terms are equal to the last bit
            for i in range(n_terms):
                gain += terms[i]
            better = best < 0 or gain > most
            if not better and gain == most:
                other = kinds[0, best]
                better = (
                    document < other
                    if ordered
                    else compare_entries(first + document, first + other, documents, worth) < 0
                )
            if better:
                best, most = kind, gain
        if best < 0:
            break
        document = kinds[0, best]
        order[placed] = document
        placed += 1
        kinds[0, best] = following[document]
        if decaying:
            for e in range(documents.entries[first + document], documents.entries[first + document + 1]):
                going[documents.numbers[e]] *= 1.0 - worth[e]
    return placed


@block
def order_within_ties(
    n: int, best: bool, values: Array, sizes: Array, order: Array, spare_values: Array, spare: Array
) -> None:
    """Order the documents of each tied group by their values, greatest first where `best`, least first otherwise."""
    if best:
        for i in range(n):
            values[i] *= -1.0
    start = 0
    while start < n:
        stop = start + sizes[start]
        if stop - start > 1:
            sort_by_key_stably(values[start:stop], order[start:stop], spare_values, spare)
        start = stop


@block
def perfect_sum(worth: float, fold: int, length: int, discounts: Array) -> float:
    """The sum of an intent over a ranking of documents that are all perfect for it."""
    total, going = 0.0, 1.0
    for i in range(length):
        total += going * worth * discounts[i]
        if fold == STOP:
            going *= 1.0 - worth
    return total


@allocating
def buckets_for(n_intents: int, n_entries: int) -> Buckets:
    return Buckets(
        np.zeros(n_intents + 1, np.int64), np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
    )


@allocating
def score_intents_of_query(
    query: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chance_offsets: Array,
    chances_of_intents: Array,
    plan: IntentRows,
    out: Array,
) -> None:
    """Values of one query by every row; NaN where no document of the pool is worth anything to any intent."""
    first, n = scored.offsets[query], scored.offsets[query + 1] - scored.offsets[query]
    pool_first, pool_n = pool.offsets[query], pool.offsets[query + 1] - pool.offsets[query]
    n_intents = 0
    for side, start, stop in ((scored, first, first + n), (pool, pool_first, pool_first + pool_n)):
        for e in range(side.entries[start], side.entries[stop]):
            n_intents = max(n_intents, side.numbers[e] + 1)
    order, spare, falling, spare_keys = (
        np.arange(n),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    falling[:] = keys[first : first + n]
    sort_by_key_stably(falling, order, spare_keys, spare)
    sizes, firsts = np.empty(n, np.int64), np.empty(n, np.int64)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and falling[stop] == falling[start]:
            stop += 1
        sizes[start:stop], firsts[start:stop] = stop - start, start
        start = stop
    ranked = buckets_for(n_intents, scored.entries[first + n] - scored.entries[first])
    bucket_entries(order, n, first, scored, ranked)
    judged = buckets_for(n_intents, pool.entries[pool_first + pool_n] - pool.entries[pool_first])
    bucket_entries(np.arange(pool_n), pool_n, pool_first, pool, judged)
    arranged = buckets_for(n_intents, ranked.ranks.shape[0])
    greedy = buckets_for(n_intents, judged.ranks.shape[0])
    most = max(n, pool_n)
    group, chances = np.empty(most + 1), np.empty((4, most + 2))
    weights, active, best = np.ones(n_intents), np.zeros(n_intents, np.bool_), np.zeros(n_intents)
    values, spare_values, rearranged = np.empty(n), np.empty(n), np.empty(n, np.int64)
    kinds, following, ideal_order = (
        np.empty((2, pool_n), np.int64),
        np.empty(pool_n, np.int64),
        np.empty(pool_n, np.int64),
    )
    going, terms = np.empty(n_intents), np.empty(n_intents)
    last = -1  # row that the greedy ideal was made for
    for r in range(plan.rows.shape[0]):
        table, fold, ties, cutoff = (
            plan.rows[r, INTENT_TABLE],
            plan.rows[r, INTENT_FOLD],
            plan.rows[r, INTENT_TIES],
            plan.rows[r, INTENT_CUTOFF],
        )
        over, discounts = plan.rows[r, INTENT_OVER], plan.discounts[plan.rows[r, INTENT_DISCOUNT]]
        worth, pool_worth = scored.worth[table], pool.worth[table]
        whole = 0.0
        for t in range(n_intents):
            active[t] = False
            for at in range(judged.starts[t], judged.starts[t + 1]):
                if pool_worth[judged.entries[at]] > 0.0:
                    active[t] = True
                    break
            weights[t] = 1.0
            if plan.rows[r, WEIGHED] == 1 and chances_of_intents.shape[0] > 0:
                weights[t] = chances_of_intents[chance_offsets[query] + t]
            if active[t]:
                whole += weights[t]
        if whole == 0.0:
            out[plan.rows[r, INTENT_OUT], query] = np.nan
            continue
        if over == OF_EACH_IDEAL:
            for t in range(n_intents):
                best[t] = (
                    ideal_of_intent(t, cutoff, pool_worth, discounts, judged, group) if active[t] else 0.0
                )
        buckets = ranked
        if ties in (WORST, BEST):
            for rank in range(n):
                document = first + order[rank]
                values[rank], rearranged[rank] = 0.0, order[rank]
                for e in range(scored.entries[document], scored.entries[document + 1]):
                    t = scored.numbers[e]
                    if active[t] and best[t] > 0.0:
                        values[rank] += weights[t] * worth[e] / best[t]
            order_within_ties(n, ties == BEST, values, sizes, rearranged, spare_values, spare)
            bucket_entries(rearranged, n, first, scored, arranged)
            buckets = arranged
        total = 0.0
        for t in range(n_intents):
            if not active[t]:
                continue
            gained = sum_of_intent(
                t,
                fold,
                ties == AVERAGE,
                min(cutoff, n),
                worth,
                discounts,
                sizes,
                firsts,
                buckets,
                group,
                chances,
            )
            if over == OF_EACH_IDEAL:
                gained = normalised(gained, best[t]) if best[t] > 0.0 else 0.0
            total += weights[t] * gained
        value = total * plan.scale[r]
        if over in (MEAN_OF_INTENTS, OF_EACH_IDEAL):
            value = total / whole
        elif over == OF_PERFECT:
            length = n if cutoff == UNCUT else cutoff
            value = (
                0.0
                if length == 0
                else normalised(total, whole * perfect_sum(plan.perfect[r], fold, length, discounts))
            )
        elif over == OF_GREEDY:
            same = (
                last >= 0 and table == plan.rows[last, INTENT_TABLE] and fold == plan.rows[last, INTENT_FOLD]
            )
            if not (same and plan.rows[last, WEIGHED] == plan.rows[r, WEIGHED]):
                placed = greedy_order(
                    pool_first, pool_n, plan.rows[r, DEPTH], fold == STOP, ordered, weights, pool, pool_worth,
                    going, terms, kinds, following, ideal_order,
                )  # fmt: skip
                bucket_entries(ideal_order, placed, pool_first, pool, greedy)
                last = r
            perfect = 0.0
            for t in range(n_intents):
                if active[t]:
                    perfect += weights[t] * sum_of_intent(
                        t, fold, False, cutoff, pool_worth, discounts, sizes, firsts, greedy, group, chances
                    )
            value = normalised(total, perfect)
        out[plan.rows[r, INTENT_OUT], query] = value


@driver()
def score_intents(
    start: int,
    stop: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chance_offsets: Array,
    chances_of_intents: Array,
    plan: IntentRows,
    out: Array,
) -> None:
    """Values of the queries from `start` to `stop`; documents by rising key."""
    for query in range(start, stop):
        score_intents_of_query(
            query, keys, scored, pool, ordered, chance_offsets, chances_of_intents, plan, out
        )


# ---- grouping rows by query ----


@driver()
def find_changes(values: Array, rows: Array) -> int:
    """List the rows whose value differs from that of the row before, as far as `rows` has room; returns how many there are."""
    before, after = values[:-1], values[1:]
    found = 0
    for row in range(after.shape[0]):
        if after[row] != before[row]:
            if found < rows.shape[0]:
                rows[found] = row + 1
            found += 1
    return found


@driver()
def codes_by_first_appearance(indices: Array, n_values: int) -> tuple[Array, Array]:
    """Number the values that occur in order of first appearance; returns each row's number and each number's first row."""
    numbers = np.full(n_values, -1, np.int64)
    codes = np.empty(indices.shape[0], np.int64)
    first_rows = np.empty(n_values, np.int64)
    found = 0
    for row in range(indices.shape[0]):
        value = indices[row]
        if numbers[value] < 0:
            numbers[value] = found
            first_rows[found] = row
            found += 1
        codes[row] = numbers[value]
    return codes, first_rows[:found]


@driver()
def rows_by_code(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Offsets of each code and the rows in its order, rows of one code in their own order (a counting sort)."""
    offsets = np.zeros(n_codes + 1, np.int64)
    for row in range(codes.shape[0]):
        offsets[codes[row] + 1] += 1
    for code in range(n_codes):
        offsets[code + 1] += offsets[code]
    ends = offsets.copy()
    rows = np.empty(codes.shape[0], np.int64)
    for row in range(codes.shape[0]):
        code = codes[row]
        rows[ends[code]] = row
        ends[code] += 1
    return offsets, rows


# ---- pages of Parquet ----
#
# A chunk of a column is a row of pages: a header in Thrift's compact protocol, then values. Values that stand in a dictionary are
# codes of a fixed width, in runs of one code and in groups of eight that are packed. What a kernel does not know, or what would
# lead out of the bytes that are there, it refuses: pyarrow then reads that column, or says what is wrong with it.

# columns of a table of pages: fields 1 to 4 of a header, those of the structure in it, and what they come to
PAGE_KIND, PAGE_BYTES, PAGE_STORED, PAGE_CHECKSUM = range(4)
(
    PAGE_VALUES,
    PAGE_NULLS,
    PAGE_ENCODING,
    PAGE_LEVELS,  # of definition: their encoding in DATA_PAGE, their length in DATA_PAGE_2
    PAGE_REPETITION,
    PAGE_COMPRESSED,
    PAGE_START,  # of what is stored, after the levels of DATA_PAGE_2
    PAGE_NULLABLE,  # whether values begin with levels
    PAGE_FIELDS,
) = range(4, 13)
DATA_PAGE, DATA_PAGE_2, DICTIONARY_PAGE = 0, 3, 2
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
UNCOMPRESSED, SNAPPY = range(2)
ABSENT = -(1 << 40)  # no field of 32 bits
SPARE = 64  # bytes after a page that may be written, too
PADDED = 256  # entries that a dictionary has room for at least, so that no code of eight bits leads out of it
_NESTED = 8  # structures within structures


@block
def variable_number(data: Array, at: Any) -> tuple[Any, Any]:
    """A number in groups of seven bits, the lowest first, and where it ends; that is past all data where it does not."""
    value, shift = np.int64(0), np.int64(0)
    while at < data.shape[0] and shift < 63:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return np.int64(0), data.shape[0] + 1


@block
def signed(value: Any) -> Any:
    return (value >> 1) ^ -(value & 1)


# where a field of a header goes, by the field that holds its structure, 0 for the header itself, and by its own number
_NOWHERE = -1
_PAGE_PLACES = np.full((9, 8), _NOWHERE)
_PAGE_PLACES[0, 1:5] = PAGE_KIND, PAGE_BYTES, PAGE_STORED, PAGE_CHECKSUM
_PAGE_PLACES[[5, 7], 1:4] = PAGE_VALUES, PAGE_ENCODING, PAGE_LEVELS  # DATA_PAGE and DICTIONARY_PAGE
_PAGE_PLACES[8, 1:] = (  # DATA_PAGE_2
    PAGE_VALUES, PAGE_NULLS, _NOWHERE, PAGE_ENCODING, PAGE_LEVELS, PAGE_REPETITION, PAGE_COMPRESSED,
)  # fmt: skip


@block
def set_page_field(page: Array, parent: int, field: int, value: Any) -> None:
    if 0 <= parent < _PAGE_PLACES.shape[0] and 0 <= field < _PAGE_PLACES.shape[1]:
        place = _PAGE_PLACES[parent, field]
        if place != _NOWHERE:
            page[place] = value


@block
def read_page_header(data: Array, at: int, page: Array, fields: Array) -> int:
    """Set a page's fields; returns where the header ends: past all data where it does not, and -1 where it is none.

    `fields` is scratch: the last field of each structure that is open.
    """
    page[:] = ABSENT
    depth = 0
    fields[0] = 0
    while at < data.shape[0]:
        byte = np.int64(data[at])
        at += 1
        if byte == 0:
            if depth == 0:
                return at
            depth -= 1
            continue
        kind = byte & 15
        if byte >> 4:
            fields[depth] += byte >> 4
        else:
            number, at = variable_number(data, at)
            fields[depth] = signed(number)
        value = np.int64(kind == 1)  # kinds 1 and 2 are true and false
        if 4 <= kind <= 6:  # integers
            number, at = variable_number(data, at)
            value = signed(number)
        elif kind == 3:  # a byte
            at += 1
        elif kind == 7:  # a float64
            at += 8
        elif kind == 8:  # bytes
            number, at = variable_number(data, at)
            if number > data.shape[0]:
                return data.shape[0] + 1
            at += number
        elif kind == 12:  # a structure
            depth += 1
            if depth == _NESTED:
                return -1
            fields[depth] = 0
            continue
        elif kind > 2:  # lists and maps, which no header of a page has
            return -1
        parent = fields[0] if depth else 0
        # whether DATA_PAGE_2 is compressed; all others are integers
        is_flag = parent == 8 and fields[depth] == 7
        if depth < 2 and (kind < 3 if is_flag else 4 <= kind <= 6):
            set_page_field(page, parent, fields[depth], value)
    return data.shape[0] + 1


@block
def accepts_page(
    data: Array, page: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> bool:
    """Whether a page is one that can be read, as far as its header tells; sets what its fields come to."""
    kind, encoding, levels = page[PAGE_KIND], page[PAGE_ENCODING], page[PAGE_LEVELS]
    if not (0 < page[PAGE_VALUES] <= most_values and 0 <= page[PAGE_BYTES] <= most_bytes):
        return False
    is_coded = encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY)
    is_packed = codec != UNCOMPRESSED
    page[PAGE_NULLABLE] = kind == DATA_PAGE and optional
    if kind == DICTIONARY_PAGE:
        if encoding not in (PLAIN, PLAIN_DICTIONARY):
            return False
        page[PAGE_ENCODING] = PLAIN
    elif not is_coded and encoding != PLAIN:
        return False
    if kind == DATA_PAGE_2:
        if page[PAGE_NULLS] != 0 or page[PAGE_REPETITION] != 0 or not 0 <= levels <= page[PAGE_STORED]:
            return False
        page[PAGE_START] += levels
        page[PAGE_STORED] -= levels
        page[PAGE_BYTES] -= levels
        is_packed = is_packed and page[PAGE_COMPRESSED] != 0
    elif kind != DICTIONARY_PAGE and (kind != DATA_PAGE or (optional and levels != RLE)):
        return False
    else:
        page[PAGE_LEVELS] = 0
    page[PAGE_COMPRESSED] = is_packed
    if is_packed and codec == SNAPPY:
        # a block says how many bytes it holds; what it does not fill would be left as it was
        size, _ = variable_number(data, page[PAGE_START])
        return size == page[PAGE_BYTES]
    return is_packed or page[PAGE_STORED] == page[PAGE_BYTES]


@driver()
def find_pages(
    data: Array, pages: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> tuple[int, int]:
    """List pages that lie in `data` whole; returns how many, and where the next one begins, or -1 where that cannot be read.

    No page has more values than its chunk, nor more bytes.
    """
    fields = np.empty(_NESTED, np.int64)
    found, at = 0, 0
    while found < pages.shape[0]:
        page = pages[found]
        start = read_page_header(data, at, page, fields)
        if start > data.shape[0]:
            break
        stored = page[PAGE_STORED]
        if start < 0 or stored < 0:
            return found, -1
        if stored > data.shape[0] - start:
            break
        page[PAGE_START] = start
        if not accepts_page(data, page, codec, optional, most_values, most_bytes):
            return found, -1
        at = start + stored
        found += 1
    return found, at


@block
def end_of_levels(page: Array, at: Any, last: Any, n: int) -> Any:
    """Where definition levels of n values end, all of which must be there; -1 where one is null."""
    if last - at < 4:
        return np.int64(-1)
    stop, known = at + 4 + little_number(page, at, 4), 0
    at += 4
    if stop > last:
        return np.int64(-1)
    while known < n:
        header, at = variable_number(page, at)
        if at >= stop:
            return np.int64(-1)
        if header & 1:
            for _ in range(header >> 1):
                wanted = (1 << min(n - known, 8)) - 1
                if at >= stop or known >= n or page[at] & wanted != wanted:
                    return np.int64(-1)
                known += 8
                at += 1
        else:
            if page[at] != 1 or header == 0:
                return np.int64(-1)
            known += header >> 1
            at += 1
    return stop


@block
def packed_code(page: Array, start: Any, width: Any, i: int) -> Any:
    """The i-th code of a packed group; at most 32 bits wide."""
    at = start + (i * width >> 3)
    word = first_word(page, at, min(at + 8, page.shape[0])) >> np.uint64(i * width & 7)
    return np.int64(word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@block
def run_of_codes(page: Array, at: Any, last: Any, width: Any, left: int) -> tuple[Any, Any, Any, Any]:
    """The next codes of a page that has `left` of them and ends before `last`: how many, the code that all are or -1 for packed
    ones, where they begin, and where the next ones do. No codes where these are not good.
    """
    header, at = variable_number(page, at)
    n = header >> 1
    if header & 1:
        if n > last:
            return 0, 0, 0, 0
        stop = at + n * width
        n = min(8 * n, left)
        if at + ((n * width + 7) >> 3) > last:  # the last group may end with its last value
            return 0, 0, 0, 0
        return n, -1, at, stop
    stop = at + ((width + 7) >> 3)
    if stop > last:
        return 0, 0, 0, 0
    return min(n, left), little_number(page, at, stop - at), at, stop


@driver()
def values_of_pages(
    data: Array, pages: Array, scratch: Array, stored: int, entries: Array, n_entries: int, out: Array
) -> int:
    """Fill `out` with the values of pages, as bits: entries of their dictionary, or numbers of `stored` bytes, cut to its width.

    `entries` has room for PADDED, `scratch` for the longest page that is compressed and SPARE bytes. Returns how many values
    there were, or -1 where pages are not good or `out` is too short.
    """
    done = 0
    for i in range(pages.shape[0]):
        page = pages[i]
        n = page[PAGE_VALUES]
        if n > out.shape[0] - done:
            return -1
        start, stop = place_of_page(data, page, scratch)
        held = scratch if page[PAGE_COMPRESSED] else data
        if start < 0:
            return -1
        values = out[done : done + n]
        if page[PAGE_ENCODING] == PLAIN:
            if n * stored > stop - start:
                return -1
            plain_values(held, start, stored, values)
        elif not values_of_codes(held, start, stop, entries, n_entries, values):
            return -1
        done += n
    return done


@driver()
def runs_of_pages(
    data: Array,
    pages: Array,
    scratch: Array,
    stored: int,
    entries: Array,
    n_entries: int,
    values: Array,
    ends: Array,
) -> int:
    """As `values_of_pages`, for int64: the value of each run of equal ones, and where it ends; returns how many runs there are."""
    found, done = 0, 0
    for i in range(pages.shape[0]):
        page = pages[i]
        n = page[PAGE_VALUES]
        start, stop = place_of_page(data, page, scratch)
        held = scratch if page[PAGE_COMPRESSED] else data
        if start < 0:
            return -1
        if page[PAGE_ENCODING] == PLAIN:
            if n * stored > stop - start:
                return -1
            found = runs_of_plain(held, start, n, stored, done, found, values, ends)
        else:
            found = runs_of_codes(held, start, stop, n, entries, n_entries, done, found, values, ends)
        if found < 0:
            return -1
        done += n
    return found


@block
def place_of_page(data: Array, page: Array, scratch: Array) -> tuple[Any, Any]:
    """Where the values of a page begin and end: in `scratch` if it is compressed; -1 where they are not good, or one is null."""
    start, stop, size = page[PAGE_START], page[PAGE_START] + page[PAGE_STORED], page[PAGE_BYTES]
    if page[PAGE_COMPRESSED]:
        if size > scratch.shape[0] - SPARE or not unpack_snappy(data, start, stop, scratch, size):
            return np.int64(-1), np.int64(-1)
        start, stop = np.int64(0), size
        if page[PAGE_NULLABLE]:
            start = end_of_levels(scratch, start, stop, page[PAGE_VALUES])
    elif page[PAGE_NULLABLE]:
        start = end_of_levels(data, start, stop, page[PAGE_VALUES])
    return start, stop


@block
def unpack_snappy(data: Array, at: Any, stop: Any, out: Array, size: Any) -> bool:
    """Undo Snappy's compression; False where that does not give `size` bytes. Writes up to SPARE bytes more.

    By a library, page by page, threads wait for Python's lock at each page: two read no faster than one.
    Format: https://github.com/google/snappy/blob/main/format_description.txt
    """
    _, at = variable_number(data, at)
    done = np.int64(0)
    while at < stop:
        tag = np.int64(data[at])
        at += 1
        kind = tag & 3
        n: Any = (tag >> 2) + 1
        if kind == 0:  # bytes as they are
            wide = n - 60
            if wide > 0:  # how many is in the next one to four bytes
                if wide > stop - at:
                    return False
                n = little_number(data, at, wide) + 1
                at += wide
            if n > stop - at or n > size - done:
                return False
            copied = 0
            while copied < n and at + copied + 32 <= data.shape[0]:
                copy_32(data, at + copied, out, done + copied)
                copied += 32
            for i in range(copied, n):
                out[done + i] = data[at + i]
            at += n
        else:  # bytes from before
            wide = kind if kind < 3 else 4
            if wide > stop - at:
                return False
            back = little_number(data, at, wide)
            at += wide
            if kind == 1:
                n = (tag >> 2 & 7) + 4
                back |= tag >> 5 << 8
            if back == 0 or back > done or n > size - done:
                return False
            if back >= 32:
                for copied in range(0, n, 32):
                    copy_32(out, done + copied - back, out, done + copied)
            elif back >= 8:
                for copied in range(0, n, 8):
                    copy_8(out, done + copied - back, out, done + copied)
            else:
                for i in range(n):
                    out[done + i] = out[done + i - back]
        done += n
    return done == size


@block
def little_number(data: Array, at: Any, n: Any) -> Any:
    number = np.int64(0)
    for i in range(n):
        number |= np.int64(data[at + i]) << (8 * i)
    return number


@block
def plain_values(data: Array, start: Any, stored: int, values: Array) -> None:
    """Numbers of four or eight bytes, cut to the width of `values`."""
    n = values.shape[0]
    safe = (
        max(n - 1, 0) if start + n * stored + 4 > data.shape[0] else n
    )  # a word of the last one may lead out
    if stored == 4:
        for i in range(safe):
            values[i] = word_at(data, start + 4 * i)
    else:
        for i in range(safe):
            values[i] = word_at(data, start + 8 * i)
    for i in range(safe, n):
        values[i] = first_word(data, start + stored * i, start + stored * (i + 1))


@block
def runs_of_plain(
    data: Array, start: Any, n: int, stored: int, done: int, found: int, values: Array, ends: Array
) -> int:
    """List runs of numbers of four or eight bytes, going on from those that were found up to row `done`."""
    for i in range(n):
        word = np.int64(first_word(data, start + stored * i, start + stored * (i + 1)))
        value = word if stored == 8 else word << 32 >> 32
        if found == 0 or value != values[found - 1]:
            if found == ends.shape[0]:
                return -1
            values[found] = value
            found += 1
        ends[found - 1] = done + i + 1
    return found


@block
def values_of_codes(page: Array, at: Any, stop: Any, dictionary: Array, n_entries: int, out: Array) -> bool:
    """Fill `out` with entries of the dictionary, by the codes that stand from `at` to before `stop`; False where these are not good."""
    if at >= stop or page[at] > 32:
        return False
    width, done = np.int64(page[at]), 0
    at += 1
    while done < out.shape[0]:
        n, code, start, at = run_of_codes(page, at, stop, width, out.shape[0] - done)
        if n == 0 or code >= n_entries:
            return False
        values = out[done : done + n]
        done += n
        if code >= 0:
            values[:] = dictionary[code]
        elif width <= 8:
            if not unpack_narrow(page, start, width, dictionary, n_entries, values):
                return False
        else:
            for i in range(n):
                code = packed_code(page, start, width, i)
                if code >= n_entries:
                    return False
                values[i] = dictionary[code]
    return True


@block
def unpack_narrow(
    page: Array, start: Any, width: Any, dictionary: Array, n_entries: int, values: Array
) -> Any:
    """Entries of packed codes of at most eight bits: one word has eight of them."""
    bits, mask = np.uint64(width), (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    highest = np.uint64(0)
    whole = values.shape[0] >> 3
    if start + whole * width + 8 > page.shape[0]:
        whole = max(0, whole - 8)  # the last words would lead out of the page
    for group in range(whole):
        word = word_at(page, start + group * width)
        for i in range(8):
            code = word & mask
            highest = max(highest, code)
            values[8 * group + i] = dictionary[code]
            word >>= bits
    for i in range(8 * whole, values.shape[0]):
        code = np.uint64(packed_code(page, start, width, i))
        highest = max(highest, code)
        values[i] = dictionary[code]
    return highest < np.uint64(n_entries)


@block
def runs_of_codes(
    page: Array,
    at: Any,
    stop: Any,
    n: int,
    dictionary: Array,
    n_entries: int,
    done: int,
    found: int,
    values: Array,
    ends: Array,
) -> int:
    """As `runs_of_plain`, of the entries that n codes stand for; -1 where codes are not good, or for more runs than there is room."""
    if at >= stop or page[at] > 32:
        return -1
    width, last, end = np.int64(page[at]), -1, done + n
    at += 1
    while done < end:
        count, same, start, at = run_of_codes(page, at, stop, width, end - done)
        if count == 0:
            return -1
        for i in range(count if same < 0 else 1):
            code = packed_code(page, start, width, i) if same < 0 else same
            if code != last:
                if code >= n_entries:
                    return -1
                last = code
                if found == 0 or dictionary[code] != values[found - 1]:
                    if found == ends.shape[0]:
                        return -1
                    if found:
                        ends[found - 1] = done + i
                    values[found] = dictionary[code]
                    found += 1
        done += count
    if found:
        ends[found - 1] = end
    return found


# ---- orders of other tools ----


@driver()
def argsort_falling(offsets: Array, scores: Array) -> Array:
    """Rows of each query in the order that Numba's np.argsort(-scores) gives: ranx's, with its unstable order of ties."""
    rows = np.empty(scores.shape[0], np.int64)
    for query in range(offsets.shape[0] - 1):
        start, stop = offsets[query], offsets[query + 1]
        rows[start:stop] = start + np.argsort(-scores[start:stop])
    return rows


# ==== reading text: TREC files and LETOR files, block by block of whole lines ====
#
# A block ends with a newline, so that no loop needs to look for the end of the data. Everything is appended to columns
# that the caller has made large enough; `filled` says how far each is filled, and lives on from block to block.

ROWS, DOC_BYTES, QUERIES, QUERY_BYTES, SKIPPED, ODD = range(6)  # entries of `filled`

_NEWLINE, _BLANK, _HASH, _PLUS, _MINUS, _POINT, _ZERO, _COLON = 10, 32, 35, 43, 45, 46, 48, 58
_EXACT_WHOLE = 1 << 53  # whole numbers up to it are exact as float64, and so are powers of ten up to 10 ** 22
_EXACT_POWER = 22
_TENS = 10.0 ** np.arange(_EXACT_POWER + 1)
_MOST_DIGITS = 18  # that never overflow
_CHUNK = 1 << 14  # bytes of text looked at together: what is found in them stays in the first-level cache
_SHORTEST = 8  # bytes of a line of four fields


class TextColumns(NamedTuple):
    """What is kept of the lines of a file."""

    doc_bytes: Array  # uint8: document ids, one after the other
    doc_offsets: Array  # int64: where the id of each row begins in it, and after the last row where it ends
    query_bytes: Array  # uint8: query ids; one for each run of rows of the same query
    query_ends: Array  # int64: where each of them ends in it
    query_rows: Array  # int64: first row of each run
    values: Array  # float64 for each row: the score or the grade
    skipped: Array  # int64: row before which a comment or an empty line stood, once for each
    odd: Array  # int64 (:, 3): row, start and end of each number that this scanner leaves to another


@block
def skip_blanks(data: Array, at: int) -> int:
    while data[at] <= _BLANK and data[at] != _NEWLINE:
        at += 1
    return at


@block
def skip_field(data: Array, at: int) -> int:
    while data[at] > _BLANK:
        at += 1
    return at


@block
def skip_line(data: Array, at: int) -> int:
    while data[at] != _NEWLINE:
        at += 1
    return at + 1


# What `whole * 10 ** exponent` is as float64, correctly rounded: by a 128-bit approximation of the power of five, of which
# the product's leading bits are certain (Lemire, "Number parsing at a gigabyte per second", 2021; Mushtak and Lemire, 2023).

_LEAST_TEN, _GREATEST_TEN = (
    -342,
    308,
)  # below and above these powers every number of 19 digits is 0 or infinite


def _leading_bits_of_five(power: int) -> int:
    """The 128 leading bits of 5 ** power, the rest cut off.

    From -27 to -1 the next number above, so that the product shows what 5 ** -power divides.
    """
    five = 5 ** abs(power)
    if power >= 0:
        return five << 128 >> five.bit_length()
    return (1 << five.bit_length() + 127) // five + (power >= -27)


_FIVES = np.array(
    [
        [bits >> 64, bits & (1 << 64) - 1]
        for bits in map(_leading_bits_of_five, range(_LEAST_TEN, _GREATEST_TEN + 1))
    ],
    np.uint64,
)


def plain_element(array: Array, at: Any) -> Any:
    return array[at]


@intrinsic
def vector_element(typing: Any, array: Any, at: Any) -> Any:
    """`array[at]`, without the question whether `at` is negative and counts from the end."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        pointer = _pointer(context, builder, kind, arguments[0])
        return context.unpack_value(builder, kind.dtype, builder.gep(pointer, [arguments[1]]))

    return array.dtype(array, types.int64), generate


element = plain_element if numba.config.DISABLE_JIT else vector_element


@intrinsic
def full_product(typing: Any, one: Any, other: Any) -> Any:
    """The lower and the upper 64 bits of a product."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in arguments))
        halves = [product, builder.lshr(product, ir.Constant(wide, 64))]
        return context.make_tuple(
            builder, signature.return_type, [builder.trunc(half, ir.IntType(64)) for half in halves]
        )

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


def plain_leading_zeros(bits: Any) -> Any:
    return 64 - int(bits).bit_length()


@intrinsic
def vector_leading_zeros(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


leading_zeros = plain_leading_zeros if numba.config.DISABLE_JIT else vector_leading_zeros


@intrinsic
def float_of_bits(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


def plain_round_decimal(whole: Any, exponent: Any) -> tuple[float, bool]:
    return float(f"{int(whole)}e{int(exponent)}"), True


@block
def vector_round_decimal(whole: Any, exponent: Any) -> tuple[float, bool]:
    """`whole * 10 ** exponent` for a whole number (uint64), and whether it is certain.

    Numbers too small or too great for a normal float64 are left to another, and so is what lies too near the middle of two.
    """
    none, one = np.uint64(0), np.uint64(1)
    if whole == none:
        return 0.0, True
    if exponent < _LEAST_TEN or exponent > _GREATEST_TEN:
        return 0.0, False
    shift = leading_zeros(whole)
    digits = whole << shift
    five = exponent - _LEAST_TEN
    low, high = full_product(digits, element(_FIVES, 2 * five))
    # 55 bits of the product are wanted; only where all below them are 1 the rest of the power can change them
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        _, more = full_product(digits, element(_FIVES, 2 * five + 1))
        low += more
        if low < more:
            high += one
        if low == ~none:
            return 0.0, False
    top = high >> np.uint64(63)
    kept = top + np.uint64(9)
    mantissa = high >> kept
    # floor(log2(10 ** exponent)), exactly in this range
    binary = ((217706 * exponent) >> 16) + 63 + np.int64(top) - np.int64(shift) + 1023
    if binary <= 0 or binary >= 2046:
        return 0.0, False
    # halfway between two: only where the power is exact, or divides
    if low <= one and -4 <= exponent <= 23 and mantissa & np.uint64(3) == one and mantissa << kept == high:
        mantissa &= ~one
    mantissa = (mantissa + (mantissa & one)) >> one
    # a mantissa of 2 ** 53 carries into the exponent by itself
    return float_of_bits((np.uint64(binary - 1) << np.uint64(52)) + mantissa), True


round_decimal = plain_round_decimal if numba.config.DISABLE_JIT else vector_round_decimal


@block
def read_number(data: Array, start: int) -> tuple[int, float, bool]:
    """Where a decimal number ends, the number correctly rounded, and whether it is that.

    A field that is no number, or one for more care than is taken here, is skipped. The end is `start` where there is no field
    at all.
    """
    at = start
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    whole: Any = np.int64(0)
    digits, exponent, after_point = 0, 0, 0
    is_number, is_cut = False, False
    while True:
        digit: Any = np.int64(data[at]) - _ZERO
        if 0 <= digit <= 9:
            is_number = True
            if digits < _MOST_DIGITS:
                whole = whole * 10 + digit
                exponent -= after_point
                digits += 1 if whole > 0 else 0
            else:
                is_cut = is_cut or digit > 0
                exponent += 1 - after_point
        elif digit == _POINT - _ZERO and after_point == 0:
            after_point = 1
        else:
            break
        at += 1
    if is_number and (data[at] == 101 or data[at] == 69):  # e or E
        here = at + 1
        falling = data[here] == _MINUS
        if falling or data[here] == _PLUS:
            here += 1
        power: Any = np.int64(0)
        power_digits = 0
        while 0 <= np.int64(data[here]) - _ZERO <= 9 and power_digits < 4:
            power = power * 10 + np.int64(data[here]) - _ZERO
            power_digits += 1
            here += 1
        if power_digits > 0:
            exponent = exponent - power if falling else exponent + power
            at = here
    if not is_number or data[at] > _BLANK:
        return skip_field(data, at), 0.0, False
    if whole <= _EXACT_WHOLE and abs(exponent) <= _EXACT_POWER and not is_cut:
        value = whole / _TENS[-exponent] if exponent < 0 else whole * _TENS[exponent]
    else:
        value, is_number = round_decimal(np.uint64(whole), exponent)
        if is_cut:
            # what was cut off lies between these two
            greater, is_certain = round_decimal(np.uint64(whole + 1), exponent)
            is_number = is_number and is_certain and value == greater
    return at, -value if negative else value, is_number


@block
def same_bytes(text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int) -> bool:
    same = stop - start == other_stop - other_start
    i = 0
    while same and i < stop - start:
        same = text[start + i] == other[other_start + i]
        i += 1
    return same


# A file is read in chunks of whole lines, and a chunk in columns: first where the fields of all its lines are, then all
# document ids, all query ids, all numbers. Line by line took twice as long.


def plain_find_blanks(data: Array, start: int, stop: int, out: Array) -> tuple[int, int]:
    """Write where the blanks and ends of lines are, in order; returns how many, and how many end a line."""
    found, lines = 0, 0
    for at in range(start, stop):
        if data[at] <= _BLANK:
            out[found] = at
            found += 1
            lines += data[at] == _NEWLINE
    return found, lines


@intrinsic
def bits_of_64(typing: Any, data: Any, at: Any, most: Any, exactly: Any) -> Any:
    """A bit for each of 64 bytes, set for those up to `most`, and one for those that are `exactly` this."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), 64)
        array, at, most, exactly = arguments
        lanes = _load(builder, _pointer(context, builder, signature.args[0], array), at, kind, 1)
        below = builder.icmp_unsigned("<=", lanes, _splat(builder, builder.trunc(most, ir.IntType(8)), 64))
        same = builder.icmp_unsigned("==", lanes, _splat(builder, builder.trunc(exactly, ir.IntType(8)), 64))
        masks = [builder.bitcast(mask, ir.IntType(64)) for mask in (below, same)]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 2)(data, types.int64, types.int64, types.int64), generate


@intrinsic
def lowest_bit(typing: Any, bits: Any) -> Any:
    """Place of the lowest bit that is set; 64 where none is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def count_bits(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


_USUAL_BLANKS = 12  # of 64 bytes; so many are written without asking whether there are, which is not foreseen


@block
def vector_find_blanks(data: Array, start: int, stop: int, out: Array) -> tuple[int, int]:
    """As the plain one; `out` has room for 64 more."""
    found, lines, at = 0, 0, start
    one, none = np.uint64(1), np.uint64(0)
    while at + 64 <= stop:
        bits, newlines = bits_of_64(data, at, _BLANK, _NEWLINE)
        lines += count_bits(newlines)
        here = out[found : found + 64]
        found += count_bits(bits)
        for i in range(_USUAL_BLANKS):
            here[i] = at + lowest_bit(bits)
            bits &= bits - one
        i = _USUAL_BLANKS
        while bits != none:
            here[i] = at + lowest_bit(bits)
            bits &= bits - one
            i += 1
        at += 64
    while at < stop:
        if data[at] <= _BLANK:
            out[found] = at
            found += 1
            lines += data[at] == _NEWLINE
        at += 1
    return found, lines


find_blanks = plain_find_blanks if numba.config.DISABLE_JIT else vector_find_blanks


@block
def blanks_of_a_line(
    data: Array, start: int, blanks: Array, found: int, lines: int, fields: int, is_open: bool
) -> int:
    """How many blanks each line has, its end among them, where all are of one form, and otherwise 0.

    The form: no blank before the first field, one after each; after the last of `fields` nothing but blanks, or anything
    where it `is_open`. No line is a comment.
    """
    each = found // max(lines, 1)
    if each < fields or each * lines != found:
        return 0
    alike, at = True, start
    for line in range(lines):
        end = element(blanks, line * each + each - 1)
        alike &= (element(data, end) == _NEWLINE) & (element(data, at) != _HASH)
        at = end + 1
    close, close_after = 0, 0
    before, after = blanks[: found - 1], blanks[1:found]
    for i in range(found - 1):
        close += after[i] - before[i] <= 1
    for line in range(lines):
        for i in range(line * each + fields, line * each + each):
            close_after += element(blanks, i) - element(blanks, i - 1) <= 1
    alike &= (blanks[0] > start) & (close == close_after)
    alike &= is_open | (close_after == lines * (each - fields))
    return each if alike else 0


@block
def find_fields(
    data: Array, start: int, stop: int, row: int, has_rank: bool, table: Array, skipped: Array, n_skipped: int
) -> tuple[int, int, int, int]:
    """Where the fields of any lines are, written as the six blanks of lines `query iteration doc rank score tag` would be.

    Of a line without a rank what is before the grade counts as what is before the score, and so the blanks after the document
    and before the number are two. Returns how many lines have a row, where the first of these begins, the comments and empty
    lines so far, and -1 or where the first line begins that is malformed.
    """
    at, lines, first = start, 0, start
    while at < stop:
        query_at = skip_blanks(data, at)
        if data[query_at] == _NEWLINE or data[query_at] == _HASH:
            skipped[n_skipped] = row + lines
            n_skipped += 1
            at = skip_line(data, query_at)
            continue
        query_stop = skip_field(data, query_at)
        doc_at = skip_blanks(data, skip_field(data, skip_blanks(data, query_stop)))
        doc_stop = skip_field(data, doc_at)
        number_at = skip_blanks(data, doc_stop)
        if has_rank:
            number_at = skip_blanks(data, skip_field(data, number_at))
        number_stop = skip_field(data, number_at)
        rest = skip_blanks(data, number_stop)
        # of a tag of several words the others are passed over
        if doc_stop == doc_at or number_stop == number_at or (data[rest] == _NEWLINE) == has_rank:
            return lines, first, n_skipped, at
        if lines == 0:
            first = query_at
        else:
            table[6 * lines - 1] = query_at - 1
        line = table[6 * lines : 6 * lines + 6]
        line[0], line[1], line[2] = query_stop, doc_at - 1, doc_stop
        line[3], line[4], line[5] = number_at - 1, number_stop, number_stop
        lines += 1
        at = skip_line(data, rest)
    return lines, first, n_skipped, -1


# Eight bytes of text at a time, as one number whose lowest byte is the first character. Loops over characters took three
# quarters of the time of a line.


def plain_word_at(data: Array, at: int) -> Any:
    """The eight bytes from `at` on."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@intrinsic
def vector_word_at(typing: Any, data: Any, at: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0])
        return _load(builder, pointer, arguments[1], ir.IntType(64), 1)

    return types.uint64(data, types.int64), generate


word_at = plain_word_at if numba.config.DISABLE_JIT else vector_word_at


def _copying(size: int, data: Any, out: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), size)
        source = _pointer(context, builder, signature.args[0], arguments[0])
        target = _pointer(context, builder, signature.args[2], arguments[2])
        _store(builder, _load(builder, source, arguments[1], kind, 1), target, arguments[3], 1)
        return context.get_dummy_value()

    return types.none(data, types.int64, out, types.int64), generate


@intrinsic
def vector_copy_32(typing: Any, data: Any, at: Any, out: Any, to: Any) -> Any:
    """Copy 32 bytes: to copy as many as there are takes a call and a branch that is not foreseen."""
    return _copying(32, data, out)


@intrinsic
def vector_copy_8(typing: Any, data: Any, at: Any, out: Any, to: Any) -> Any:
    return _copying(8, data, out)


def plain_copy_32(data: Array, at: Any, out: Array, to: Any) -> None:
    out[to : to + 32] = data[at : at + 32].copy()


def plain_copy_8(data: Array, at: Any, out: Array, to: Any) -> None:
    out[to : to + 8] = data[at : at + 8].copy()


copy_32 = plain_copy_32 if numba.config.DISABLE_JIT else vector_copy_32
copy_8 = plain_copy_8 if numba.config.DISABLE_JIT else vector_copy_8


@block
def copy_text(data: Array, start: int, stop: int, out: Array, to: int) -> None:
    for i in range(stop - start):
        out[to + i] = data[start + i]


_EIGHT_ZEROS, _EIGHT_POINTS = np.uint64(0x3030303030303030), np.uint64(0x2E2E2E2E2E2E2E2E)
_EIGHT_ONES, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TO_HIGH_BIT = np.uint64(0x7676767676767676)  # brings more than nine to the high bit of a byte
_PAIR_MASK = np.uint64(0x000000FF000000FF)
_PAIR_1, _PAIR_2 = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
_TO_8, _TO_16 = np.uint64(10**8), np.uint64(10**16)
_LONGEST_NUMBER = 24  # characters after the sign
_LOW, _MIDDLE, _TOP, _LENGTH, _NEGATIVE, _WHOLE, _DECIMALS = range(7)  # rows of `words`
N_WORDS = 7


@block
def below_byte(count: int) -> Any:
    """The lowest bytes of a word, so many below eight."""
    return (np.uint64(1) << np.uint64(8 * count)) - np.uint64(1)


@block
def zeros_before(word: Any, length: Any) -> Any:
    """The last characters of the word, so many as `length` says, after zeros."""
    unused = np.uint64(min(max(8 - length, 0), 8))
    kept = ~np.uint64(0) << (np.uint64(4) * unused) << (np.uint64(4) * unused)
    return (word & kept) | (_EIGHT_ZEROS & ~kept)


@block
def first_point(word: Any) -> Any:
    """The high bit of the first character that is a point."""
    unlike = word ^ _EIGHT_POINTS
    points = (unlike - _EIGHT_ONES) & ~unlike & _HIGH_BITS
    return points & (np.uint64(0) - points)


@block
def without_point(word: Any, point: Any, first: Any) -> Any:
    """The word without this character: those before it move up, after `first`."""
    before = (point >> np.uint64(7)) - np.uint64(1)
    after = ~((before << np.uint64(8)) | np.uint64(0xFF))
    return (word & after) | ((word & before) << np.uint64(8)) | first


@block
def eight_digits(word: Any) -> Any:
    """The number that eight digits are; `word` has their values, not their characters."""
    pairs = word * np.uint64(10) + (word >> np.uint64(8))
    return ((pairs & _PAIR_MASK) * _PAIR_1 + ((pairs >> np.uint64(16)) & _PAIR_MASK) * _PAIR_2) >> np.uint64(
        32
    )


@block
def gather_numbers(data: Array, table: Array, lines: int, each: int, before: int, words: Array) -> None:
    """The last 24 characters of each number, how many are of it after its sign, and whether that is a minus."""
    low, middle, top = words[_LOW], words[_MIDDLE], words[_TOP]
    lengths, negatives = words[_LENGTH], words[_NEGATIVE]
    for line in range(lines):
        start = element(table, line * each + before) + 1
        stop = element(table, line * each + before + 1)
        sign = element(data, start)
        length = stop - start - ((sign == _MINUS) | (sign == _PLUS))
        if stop < _LONGEST_NUMBER or length > _LONGEST_NUMBER:
            length = 0
        else:
            low[line], middle[line], top[line] = (
                word_at(data, stop - 8),
                word_at(data, stop - 16),
                word_at(data, stop - 24),
            )
        lengths[line], negatives[line] = np.uint64(length), np.uint64(sign == _MINUS)


@block
def read_digits(lines: int, words: Array) -> None:
    """The numbers without their points, and how many digits are after it; more than there can be where it is no such number.

    No branches: the compiler makes it a loop over vectors of numbers.
    """
    lows, middles, tops, lengths = (
        words[_LOW, :lines],
        words[_MIDDLE, :lines],
        words[_TOP, :lines],
        words[_LENGTH, :lines],
    )
    wholes, decimals = words[_WHOLE, :lines], words[_DECIMALS, :lines]
    zero, none = np.uint64(48), np.uint64(0)
    for i in range(lines):
        length = np.int64(lengths[i])
        low = zeros_before(lows[i], length)
        middle = zeros_before(middles[i], length - 8)
        top = zeros_before(tops[i], length - 16)
        low_point, middle_point, top_point = first_point(low), first_point(middle), first_point(top)
        in_low = low_point != none
        in_middle = (middle_point != none) & ~in_low
        in_top = (top_point != none) & ~in_low & ~in_middle
        has_point = in_low | in_middle | in_top
        place = lowest_bit(low_point if in_low else (middle_point if in_middle else top_point)) >> 3
        after = (7 if in_low else (15 if in_middle else 23)) - place
        low_before, middle_before = middle >> np.uint64(56), top >> np.uint64(56)
        top = (
            ((top << np.uint64(8)) | zero)
            if in_low | in_middle
            else (without_point(top, top_point, zero) if in_top else top)
        )
        middle = (
            ((middle << np.uint64(8)) | middle_before)
            if in_low
            else (without_point(middle, middle_point, middle_before) if in_middle else middle)
        )
        low = without_point(low, low_point, low_before) if in_low else low
        low ^= _EIGHT_ZEROS
        middle ^= _EIGHT_ZEROS
        top ^= _EIGHT_ZEROS
        unlike = (low + _TO_HIGH_BIT) | low | (middle + _TO_HIGH_BIT) | middle | (top + _TO_HIGH_BIT) | top
        leading = eight_digits(top)
        wholes[i] = leading * _TO_16 + eight_digits(middle) * _TO_8 + eight_digits(low)
        is_read = ((unlike & _HIGH_BITS) == none) & (leading < np.uint64(1000)) & (length > has_point)
        decimals[i] = np.uint64((after if has_point else 0) if is_read else _LONGEST_NUMBER)


def plain_read_numbers(
    data: Array,
    table: Array,
    lines: int,
    each: int,
    before: int,
    words: Array,
    row: int,
    values: Array,
    odd: Array,
    n_odd: int,
) -> int:
    """Write the numbers after the blank `before` of each line; returns how many are left to `read_number` so far."""
    for line in range(lines):
        odd[n_odd] = row + line, table[line * each + before] + 1, table[line * each + before + 1]
        n_odd += 1
    return n_odd


@block
def vector_read_numbers(
    data: Array,
    table: Array,
    lines: int,
    each: int,
    before: int,
    words: Array,
    row: int,
    values: Array,
    odd: Array,
    n_odd: int,
) -> int:
    """As the plain one, which leaves all of them: numbers of at most nineteen digits and a point are read here."""
    gather_numbers(data, table, lines, each, before, words)
    read_digits(lines, words)
    here = values[row : row + lines]
    wholes, decimals, negatives = words[_WHOLE], words[_DECIMALS], words[_NEGATIVE]
    for line in range(lines):
        whole, after = wholes[line], np.int64(decimals[line])
        if whole <= np.uint64(_EXACT_WHOLE) and after <= _EXACT_POWER:
            value, is_read = np.float64(np.int64(whole)) / element(_TENS, after), True
        elif after < _LONGEST_NUMBER:
            value, is_read = round_decimal(whole, -after)
        else:
            value, is_read = 0.0, False
        here[line] = -value if negatives[line] != np.uint64(0) else value
        if not is_read:
            odd[n_odd, 0] = row + line
            odd[n_odd, 1] = table[line * each + before] + 1
            odd[n_odd, 2] = table[line * each + before + 1]
            n_odd += 1
    return n_odd


@block
def vector_same_text(
    text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int
) -> bool:
    length = stop - start
    if length != other_stop - other_start:
        return False
    if length == 0 or length > 8 or start + 8 > text.shape[0] or other_start + 8 > other.shape[0]:
        return same_bytes(text, start, stop, other, other_start, other_stop)
    unlike = word_at(text, start) ^ word_at(other, other_start)
    return unlike << np.uint64(64 - 8 * length) == np.uint64(0)


same_text = same_bytes if numba.config.DISABLE_JIT else vector_same_text
read_numbers = plain_read_numbers if numba.config.DISABLE_JIT else vector_read_numbers


def plain_keep_documents(
    data: Array, table: Array, lines: int, each: int, row: int, out: Array, offsets: Array, end: int
) -> int:
    """Append the third field of each line; returns where the last one ends."""
    for line in range(lines):
        start, stop = table[line * each + 1] + 1, table[line * each + 2]
        copy_text(data, start, stop, out, end)
        end += stop - start
        offsets[row + 1 + line] = end
    return end


@block
def vector_keep_documents(
    data: Array, table: Array, lines: int, each: int, row: int, out: Array, offsets: Array, end: int
) -> int:
    """As the plain one; what stands after an id is copied too, and written over by the next one."""
    last, last_end = data.shape[0] - 64, out.shape[0] - 64
    here = offsets[row + 1 : row + 1 + lines]
    for line in range(lines):
        start = element(table, line * each + 1) + 1
        length = element(table, line * each + 2) - start
        if length <= 64 and start <= last and end <= last_end:
            copy_32(data, start, out, end)
            if length > 32:
                copy_32(data, start + 32, out, end + 32)
        else:
            copy_text(data, start, start + length, out, end)
        end += length
        here[line] = end
    return end


keep_documents = plain_keep_documents if numba.config.DISABLE_JIT else vector_keep_documents


@block
def keep_queries(
    data: Array,
    first: int,
    table: Array,
    lines: int,
    each: int,
    row: int,
    query_bytes: Array,
    query_ends: Array,
    query_rows: Array,
    runs: int,
    query_end: int,
) -> tuple[int, int]:
    """Append the first field of each line that has another than the line before; returns how many there are so far."""
    start, stop = first, 0
    for line in range(lines):
        before, before_stop = start, stop
        if line > 0:
            start = element(table, line * each - 1) + 1
        stop = element(table, line * each)
        if line > 0:
            is_new = not same_text(data, start, stop, data, before, before_stop)
        else:
            last = query_ends[runs - 2] if runs > 1 else 0
            is_new = runs == 0 or not same_text(data, start, stop, query_bytes, last, query_end)
        if is_new:
            for i in range(start, stop):
                query_bytes[query_end] = data[i]
                query_end += 1
            query_ends[runs], query_rows[runs] = query_end, row + line
            runs += 1
    return runs, query_end


@driver()
def scan_trec(data: Array, has_rank: bool, columns: TextColumns, filled: Array) -> int:
    """Read the lines `query iteration doc grade`, or with `has_rank` `query iteration doc rank score tag ...`.

    Returns -1, or where in `data` the first line begins that is not of this form.
    """
    table = np.empty(_CHUNK + 64, np.int32)
    words = np.empty((N_WORDS, _CHUNK // _SHORTEST), np.uint64)
    return scan_trec_lines(data, has_rank, columns, filled, table, words)


@block
def scan_trec_lines(
    data: Array, has_rank: bool, columns: TextColumns, filled: Array, table: Array, words: Array
) -> int:
    """As `scan_trec`. Lines of a chunk that are all of one form are told from their blanks; others are looked through."""
    doc_bytes, doc_offsets, query_bytes, query_ends, query_rows, values, skipped, odd = columns
    row, doc_end, runs, query_end = filled[ROWS], filled[DOC_BYTES], filled[QUERIES], filled[QUERY_BYTES]
    n_skipped, n_odd = filled[SKIPPED], filled[ODD]
    doc_offsets[row] = doc_end
    at, malformed = 0, -1
    while at < data.shape[0] and malformed < 0:
        stop = min(at + _CHUNK, data.shape[0])
        while stop > at and data[stop - 1] != _NEWLINE:
            stop -= 1
        each = 0
        if stop == at:
            stop = skip_line(data, at + _CHUNK)
        else:
            found, lines = find_blanks(data, at, stop, table)
            each = blanks_of_a_line(data, at, table, found, lines, 6 if has_rank else 4, has_rank)
        first, before = at, 3 if has_rank else 2
        if each == 0:
            each, before = 6, 3
            lines, first, n_skipped, malformed = find_fields(
                data, at, stop, row, has_rank, table, skipped, n_skipped
            )
        doc_end = keep_documents(data, table, lines, each, row, doc_bytes, doc_offsets, doc_end)
        runs, query_end = keep_queries(
            data, first, table, lines, each, row, query_bytes, query_ends, query_rows, runs, query_end
        )
        n_odd = read_numbers(data, table, lines, each, before, words, row, values, odd, n_odd)
        row += lines
        at = stop
    n_left = filled[ODD]
    for i in range(n_left, n_odd):
        _, value, is_read = read_number(data, odd[i, 1])
        values[odd[i, 0]] = value
        odd[n_left, 0], odd[n_left, 1], odd[n_left, 2] = odd[i, 0], odd[i, 1], odd[i, 2]
        if not is_read:
            n_left += 1
    filled[ROWS], filled[DOC_BYTES], filled[QUERIES], filled[QUERY_BYTES] = row, doc_end, runs, query_end
    filled[SKIPPED], filled[ODD] = n_skipped, n_left
    return malformed


@driver()
def scan_ltr(data: Array, columns: TextColumns, filled: Array) -> int:
    """Read the label and the query of the lines `label [qid:query] feature:value ...`; features are not looked at.

    A line without qid: belongs to a run of rows of the empty query id. Returns -1, or where in `data` the first line begins
    that has no label or an empty qid.
    """
    _, _, query_bytes, query_ends, query_rows, values, skipped, odd = columns
    row, runs, query_end = filled[ROWS], filled[QUERIES], filled[QUERY_BYTES]
    query_start = 0 if runs < 2 else query_ends[runs - 2]
    n_skipped, n_odd = filled[SKIPPED], filled[ODD]
    malformed = -1
    at = 0
    while at < data.shape[0]:
        line = at
        at = skip_blanks(data, at)
        if data[at] == _NEWLINE or data[at] == _HASH:
            at = skip_line(data, at)
            skipped[n_skipped] = row
            n_skipped += 1
            continue
        malformed = line
        start = at
        at, value, is_read = read_number(data, start)
        if at == start:
            break
        values[row] = value
        if not is_read:
            odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = row, start, at
            n_odd += 1
        at = skip_blanks(data, at)
        start = at
        # q, i, d: each differs from the line's end, so that none of the four is looked for beyond it
        if data[at] == 113 and data[at + 1] == 105 and data[at + 2] == 100 and data[at + 3] == _COLON:
            start = at + 4
            at = skip_field(data, start)
            if at == start:
                break
        if runs == 0 or not same_bytes(data, start, at, query_bytes, query_start, query_end):
            query_start = query_end
            for i in range(start, at):
                query_bytes[query_end] = data[i]
                query_end += 1
            query_ends[runs], query_rows[runs] = query_end, row
            runs += 1
        at = skip_line(data, at)
        malformed = -1
        row += 1
    filled[ROWS], filled[QUERIES], filled[QUERY_BYTES] = row, runs, query_end
    filled[SKIPPED], filled[ODD] = n_skipped, n_odd
    return malformed


@driver()
def cut_out(data: Array, spans: Array, out: Array, ends: Array) -> None:
    """Copy the bytes between the last two columns of `spans` one after the other."""
    end = 0
    for i in range(spans.shape[0]):
        for at in range(spans[i, 1], spans[i, 2]):
            out[end] = data[at]
            end += 1
        ends[i] = end


# ==== joining judgments to a run, and ordering tied documents by id ====


class Ids(NamedTuple):
    """Document ids as the join compares them. Of whole numbers `offsets` and `data` are empty, and `leading` says it all."""

    hashes: Array  # int64: 32 bits of a hash
    leading: Array  # int64: ids in this order are in their own order, unless equal: the first seven bytes, or the number
    offsets: Array  # int64 (n + 1,): where the bytes of each id are in `data`
    data: Array  # uint8


def plain_digest(text: Array, start: int, stop: int) -> tuple[int, int]:
    """32 bits of a hash, and the first seven bytes as a number. Nothing here overflows."""
    value, first = 2166136261, 0
    for i in range(start, stop):
        value = ((value ^ int(text[i])) * 16777619) & 0xFFFFFFFF
    for i in range(start, start + 7):
        first = first * 256 + (int(text[i]) if i < stop else 0)
    return value ^ (value >> 15), first


@intrinsic
def reversed_bytes(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate


_MIXER = np.uint64(0x9E3779B97F4A7C15)


@block
def mixed(value: Any, word: Any) -> Any:
    product = (value ^ word) * _MIXER
    return product ^ (product >> np.uint64(32))


@block
def first_word(text: Array, start: int, stop: int) -> Any:
    """The first eight bytes, or as many as there are and zeros."""
    if start + 8 <= text.shape[0]:
        word = word_at(text, start)
        return word if stop - start >= 8 else word & below_byte(stop - start)
    word = np.uint64(0)
    for i in range(min(stop - start, 8)):
        word |= np.uint64(text[start + i]) << np.uint64(8 * i)
    return word


@block
def vector_digest(text: Array, start: int, stop: int) -> tuple[Any, Any]:
    word = first_word(text, start, stop)
    value = mixed(np.uint64(stop - start), word)
    at = start + 8
    while at + 8 <= stop:
        value = mixed(value, word_at(text, at))
        at += 8
    if at < stop:
        value = mixed(value, word_at(text, stop - 8))  # some of its bytes again
    hashed = (value ^ (value >> np.uint64(29))) & np.uint64(0xFFFFFFFF)
    return np.int64(hashed), np.int64(reversed_bytes(word) >> np.uint64(8))


def plain_compare_text(
    text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int
) -> int:
    for i in range(min(stop - start, other_stop - other_start)):
        if text[start + i] != other[other_start + i]:
            return -1 if text[start + i] < other[other_start + i] else 1
    return (stop - start) - (other_stop - other_start)


@block
def vector_compare_text(
    text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int
) -> int:
    shorter = min(stop - start, other_stop - other_start)
    at = 0
    while at + 8 <= shorter:
        one, two = word_at(text, start + at), word_at(other, other_start + at)
        if one != two:
            return -1 if reversed_bytes(one) < reversed_bytes(two) else 1
        at += 8
    for i in range(at, shorter):
        if text[start + i] != other[other_start + i]:
            return -1 if text[start + i] < other[other_start + i] else 1
    return (stop - start) - (other_stop - other_start)


digest = plain_digest if numba.config.DISABLE_JIT else vector_digest
compare_text = plain_compare_text if numba.config.DISABLE_JIT else vector_compare_text


@driver()
def digest_ids(offsets: Array, data: Array, hashes: Array, leading: Array) -> None:
    """Hash and first seven bytes of each id."""
    for row in range(hashes.shape[0]):
        hashes[row], leading[row] = digest(data, offsets[row], offsets[row + 1])


@driver()
def starts_of_runs(offsets: Array, data: Array) -> Array:
    """Rows whose text is not that of the row before."""
    starts = np.empty(offsets.shape[0], np.int64)
    found = 0
    for row in range(offsets.shape[0] - 1):
        before, start, stop = offsets[max(row - 1, 0)], offsets[row], offsets[row + 1]
        if row == 0 or not same_text(data, start, stop, data, before, start):
            starts[found] = row
            found += 1
    return starts[:found]


@driver()
def offsets_of_taken(offsets: Array, rows: Array) -> Array:
    """Offsets of the texts of these rows, one after the other."""
    taken = np.empty(rows.shape[0] + 1, np.int64)
    end = 0
    for i in range(rows.shape[0]):
        taken[i] = end
        end += offsets[rows[i] + 1] - offsets[rows[i]]
    taken[rows.shape[0]] = end
    return taken


def plain_take_text(offsets: Array, data: Array, rows: Array, taken: Array, out: Array) -> None:
    for i in range(rows.shape[0]):
        copy_text(data, offsets[rows[i]], offsets[rows[i] + 1], out, taken[i])


@block
def vector_take_text(offsets: Array, data: Array, rows: Array, taken: Array, out: Array) -> None:
    # another thread writes what stands after the last of these rows
    last, last_end = data.shape[0] - 64, taken[rows.shape[0]] - 64
    for i in range(rows.shape[0]):
        start, end = offsets[rows[i]], taken[i]
        length = taken[i + 1] - end
        if length <= 64 and start <= last and end <= last_end:
            copy_32(data, start, out, end)
            if length > 32:
                copy_32(data, start + 32, out, end + 32)
        else:
            copy_text(data, start, start + length, out, end)


take_text_of_rows = plain_take_text if numba.config.DISABLE_JIT else vector_take_text


@driver()
def take_text(offsets: Array, data: Array, rows: Array, taken: Array, out: Array) -> None:
    """Copy the texts of these rows to where `taken` says."""
    take_text_of_rows(offsets, data, rows, taken, out)


@block
def compare_ids(ids: Ids, row: int, others: Ids, other: int) -> int:
    """Below, at or above 0 where an id is before, at or after the other, by bytes or as numbers."""
    if ids.leading[row] != others.leading[other]:
        return -1 if ids.leading[row] < others.leading[other] else 1
    if ids.offsets.shape[0] == 0:
        return 0
    return compare_text(
        ids.data,
        ids.offsets[row],
        ids.offsets[row + 1],
        others.data,
        others.offsets[other],
        others.offsets[other + 1],
    )


@driver()
def join_documents(
    judged_offsets: Array,
    judged_rows: Array,
    judged: Ids,
    run_offsets: Array,
    run_rows: Array,
    run: Ids,
    found: Array,
) -> tuple[int, int, int]:
    """Judged row of each document of the run, -1 where it has none, through one small hash table for each query.

    Both sides are grouped by query: query `q` owns `rows[offsets[q]:offsets[q + 1]]`. Returns (0, -1, -1), or 1 for the judgments or 2 for the run, with the first two rows that are the same
    document of the same query.
    """
    n_queries = judged_offsets.shape[0] - 1
    largest = 0
    for query in range(n_queries):
        largest = max(
            largest,
            judged_offsets[query + 1] - judged_offsets[query] + run_offsets[query + 1] - run_offsets[query],
        )
    size = 2
    while size < 2 * largest:
        size *= 2
    slots, owners = np.zeros(size, np.int64), np.empty(size, np.int64)
    return join_by_hash(judged_offsets, judged_rows, judged, run_offsets, run_rows, run, slots, owners, found)


@block
def join_by_hash(
    judged_offsets: Array,
    judged_rows: Array,
    judged: Ids,
    run_offsets: Array,
    run_rows: Array,
    run: Ids,
    slots: Array,
    owners: Array,
    found: Array,
) -> tuple[int, int, int]:
    """As `join_documents`, without counting references to the arrays of ids, which took most of the time.

    A slot is 0 where it is free; otherwise it has 31 bits of the hash, and which document of the query it is, from 1, those of
    the run after the judged ones. A judged document once found has a row of the run as its owner.
    """
    low = (1 << 32) - 1
    for query in range(judged_offsets.shape[0] - 1):
        first, run_first = judged_offsets[query], run_offsets[query]
        n_judged = judged_offsets[query + 1] - first
        size = 2
        while size < 2 * (n_judged + run_offsets[query + 1] - run_first):
            size *= 2
        slots[:size] = 0
        for i in range(n_judged):
            row = judged_rows[first + i]
            tag = judged.hashes[row] >> 1
            slot = judged.hashes[row] & (size - 1)
            while slots[slot] != 0:
                if slots[slot] >> 32 == tag:
                    other = judged_rows[first + (slots[slot] & low) - 1]
                    if compare_ids(judged, row, judged, other) == 0:
                        return 1, other, row
                slot = (slot + 1) & (size - 1)
            slots[slot], owners[slot] = (tag << 32) | (i + 1), -1
        for i in range(run_first, run_offsets[query + 1]):
            row = run_rows[i]
            tag = run.hashes[row] >> 1
            slot = run.hashes[row] & (size - 1)
            found[row] = -1
            while slots[slot] != 0:
                if slots[slot] >> 32 == tag:
                    entry = (slots[slot] & low) - 1
                    if entry < n_judged:
                        other = judged_rows[first + entry]
                        if compare_ids(run, row, judged, other) == 0:
                            if owners[slot] >= 0:
                                return 2, owners[slot], row
                            owners[slot] = row
                            found[row] = other
                            break
                    else:
                        other = run_rows[run_first + entry - n_judged]
                        if compare_ids(run, row, run, other) == 0:
                            return 2, other, row
                slot = (slot + 1) & (size - 1)
            if slots[slot] == 0:
                slots[slot] = (tag << 32) | (n_judged + i - run_first + 1)
    return 0, -1, -1


_FEW_KEYS = 48  # up to so many are sorted faster by insertion than by radix
_LEADING_BYTES = 4  # after these few keys are out of order
_MOST_MOVES = 4  # for each key, where they are put in order one by one


@driver()
def order_documents(
    offsets: Array, rows: Array, keys: Array, ids: Ids, ascending: bool, ordered: Array
) -> None:
    """Write the rows of each query by rising key (uint64) and then by id; of the same key and id in no certain order."""
    longest = 0
    for query in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[query + 1] - offsets[query])
    held, places = np.empty(2 * longest, np.uint64), np.empty(2 * longest, np.int64)
    counts, spare = np.empty((_LEADING_BYTES, 256), np.int64), np.empty(longest, np.int64)
    order_rows(offsets, rows, keys, ids, ascending, ordered, held, places, counts, spare)


@block
def order_rows(
    offsets: Array,
    rows: Array,
    keys: Array,
    ids: Ids,
    ascending: bool,
    ordered: Array,
    held: Array,
    places: Array,
    counts: Array,
    spare: Array,
) -> None:
    for query in range(offsets.shape[0] - 1):
        first, n = offsets[query], offsets[query + 1] - offsets[query]
        own, here = rows[first : first + n], ordered[first : first + n]
        rising = True
        for i in range(n):
            places[i], held[i] = i, keys[own[i]]
            rising = rising and (i == 0 or held[i] >= held[i - 1])
        start = 0
        if not rising and n <= _FEW_KEYS:
            insert_by_key(held[:n], places[:n])
        elif not rising:
            start = sort_by_leading_bytes(n, held, places, counts)
            if start < 0:
                for i in range(n):
                    held[i] = keys[own[i]]
                start = sort_by_key(n, held, places)
        for i in range(n):
            here[i] = own[places[start + i]]
        at = 0
        while at < n:
            stop = at + 1
            while stop < n and held[start + stop] == held[start + at]:
                stop += 1
            if stop - at > 1:
                sort_by_id(here[at:stop], ids, ascending, spare)
            at = stop


@block
def sort_by_leading_bytes(n: int, keys: Array, order: Array, counts: Array) -> int:
    """As `sort_by_key`, in half the time: by the first bytes that vary, and then the few by hand that are not in order yet.

    Returns -1 where they are many.
    """
    varying = np.uint64(0)
    for i in range(n):
        order[i] = i
        varying |= keys[i] ^ keys[0]
    bits: Any = 64 - np.int64(leading_zeros(varying))
    low: Any = np.uint64(max(bits - 8 * _LEADING_BYTES, 0))
    counts[:, :] = 0
    for i in range(n):
        key = keys[i] >> low
        for byte in range(_LEADING_BYTES):
            counts[byte, np.int64((key >> np.uint64(8 * byte)) & np.uint64(255))] += 1
    source, target = 0, n
    for byte in range((min(bits, 8 * _LEADING_BYTES) + 7) // 8):
        starts, shift = counts[byte], low + np.uint64(8 * byte)
        total = target
        for digit in range(256):
            size = starts[digit]
            starts[digit] = total
            total += size
        for i in range(source, source + n):
            value: Any = np.int64((keys[i] >> shift) & np.uint64(255))
            to = starts[value]
            keys[to], order[to] = keys[i], order[i]
            starts[value] = to + 1
        source, target = target, source
    moves = 0
    for i in range(source + 1, source + n):
        key, moved = keys[i], order[i]
        j = i
        while j > source and key < keys[j - 1]:
            keys[j], order[j] = keys[j - 1], order[j - 1]
            j -= 1
        keys[j], order[j] = key, moved
        moves += i - j
        if moves > _MOST_MOVES * n:
            return -1
    return source


@block
def insert_by_key(keys: Array, at: Array) -> None:
    """Sort `at` by rising `keys`, and those along with it."""
    for i in range(1, at.shape[0]):
        key, moved = keys[i], at[i]
        j = i
        while j > 0 and key < keys[j - 1]:
            keys[j], at[j] = keys[j - 1], at[j - 1]
            j -= 1
        keys[j], at[j] = key, moved


@block
def sort_by_id(at: Array, ids: Ids, ascending: bool, spare: Array) -> None:
    """Sort rows by their ids."""
    n = at.shape[0]
    turn = 1 if ascending else -1
    for start in range(0, n, _INSERTION):
        for i in range(start + 1, min(start + _INSERTION, n)):
            moved = at[i]
            j = i
            while j > start and turn * compare_ids(ids, moved, ids, at[j - 1]) < 0:
                at[j] = at[j - 1]
                j -= 1
            at[j] = moved
    width = _INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for to in range(start, stop):
                if right >= stop or (left < middle and turn * compare_ids(ids, at[left], ids, at[right]) < 0):
                    spare[to] = at[left]
                    left += 1
                else:
                    spare[to] = at[right]
                    right += 1
        for i in range(n):
            at[i] = spare[i]
        width *= 2
