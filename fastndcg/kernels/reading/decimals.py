"""Numbers in text, correctly rounded.

`whole * 10 ** exponent` becomes a float64 by a product with the 128 leading bits of the power of five. The
leading bits of the product are exact (Lemire, "Number parsing at a gigabyte per second", 2021; Mushtak and
Lemire, 2023).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, in_place_of, intrinsic, ir, types
from .words import (
    BLANK,
    MINUS,
    PLUS,
    POINT,
    ZERO,
    element,
    leading_zeros,
    lowest_bit,
    skip_field,
    word_at,
)

_EXACT_WHOLE = 1 << 53  # whole numbers up to this one, and powers of ten up to 10 ** 22, are exact as float64
_EXACT_POWER = 22
_TENS = 10.0 ** np.arange(_EXACT_POWER + 1)
_MOST_DIGITS = 18  # so many digits never overflow
# below and above these powers every number of 19 digits is 0 or infinite
_LEAST_TEN, _GREATEST_TEN = -342, 308


def _leading_bits_of_five(power: int) -> int:
    """The 128 leading bits of 5 ** power; the other bits are cut off.

    For powers from -27 to -1 the bits are rounded up, so that the product shows whether 5 ** -power divides
    the number.
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


@intrinsic
def full_product(typing: Any, one: Any, other: Any) -> Any:
    """The lower and the upper 64 bits of the product of two uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in arguments))
        halves = [product, builder.lshr(product, ir.Constant(wide, 64))]
        return context.make_tuple(
            builder, signature.return_type, [builder.trunc(half, ir.IntType(64)) for half in halves]
        )

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@intrinsic
def float_of_bits(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


def plain_round_decimal(whole: Any, exponent: Any) -> tuple[float, bool]:
    return float(f"{int(whole)}e{int(exponent)}"), True


@in_place_of(plain_round_decimal)
def round_decimal(whole: Any, exponent: Any) -> tuple[float, bool]:
    """`whole * 10 ** exponent` as float64 for a whole number (uint64), and whether the result is certain.

    It is not certain for numbers outside the normal range of float64, nor for those too near the middle
    between two float64.
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
    # 55 bits of the product are needed; the other bits of the power can change them only where all bits below
    # them are 1
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
    # halfway between two float64: possible only where the power of five is exact, or divides the number
    if low <= one and -4 <= exponent <= 23 and mantissa & np.uint64(3) == one and mantissa << kept == high:
        mantissa &= ~one
    mantissa = (mantissa + (mantissa & one)) >> one
    # a mantissa of 2 ** 53 carries into the exponent by itself
    return float_of_bits((np.uint64(binary - 1) << np.uint64(52)) + mantissa), True


@block
def read_number(data: Array, start: int) -> tuple[int, float, bool]:
    """Read the field at `start`: returns where it ends, its number correctly rounded, and whether the number
    is valid.

    A field that is not a number, or that needs a slower reader, is skipped as not valid. The end is `start`
    where the field is empty.
    """
    at = start
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
        at += 1
    whole: Any = np.int64(0)
    digits, exponent, after_point = 0, 0, 0
    is_number, is_cut = False, False
    while True:
        digit: Any = np.int64(data[at]) - ZERO
        if 0 <= digit <= 9:
            is_number = True
            if digits < _MOST_DIGITS:
                whole = whole * 10 + digit
                exponent -= after_point
                digits += 1 if whole > 0 else 0
            else:
                is_cut = is_cut or digit > 0
                exponent += 1 - after_point
        elif digit == POINT - ZERO and after_point == 0:
            after_point = 1
        else:
            break
        at += 1
    if is_number and (data[at] == 101 or data[at] == 69):  # e or E
        here = at + 1
        falling = data[here] == MINUS
        if falling or data[here] == PLUS:
            here += 1
        power: Any = np.int64(0)
        power_digits = 0
        while 0 <= np.int64(data[here]) - ZERO <= 9 and power_digits < 4:
            power = power * 10 + np.int64(data[here]) - ZERO
            power_digits += 1
            here += 1
        if power_digits > 0:
            exponent = exponent - power if falling else exponent + power
            at = here
    if not is_number or data[at] > BLANK:
        return skip_field(data, at), 0.0, False
    if whole <= _EXACT_WHOLE and abs(exponent) <= _EXACT_POWER and not is_cut:
        value = whole / _TENS[-exponent] if exponent < 0 else whole * _TENS[exponent]
    else:
        value, is_number = round_decimal(np.uint64(whole), exponent)
        if is_cut:
            # the number with all its digits lies between these two
            greater, is_certain = round_decimal(np.uint64(whole + 1), exponent)
            is_number = is_number and is_certain and value == greater
    return at, -value if negative else value, is_number


_EIGHT_ZEROS, _EIGHT_POINTS = np.uint64(0x3030303030303030), np.uint64(0x2E2E2E2E2E2E2E2E)
_EIGHT_ONES, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TO_HIGH_BIT = np.uint64(0x7676767676767676)  # added to a byte of more than 9, sets its high bit
_PAIR_MASK = np.uint64(0x000000FF000000FF)
_PAIR_1, _PAIR_2 = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
_TO_8, _TO_16 = np.uint64(10**8), np.uint64(10**16)
_LONGEST_NUMBER = 24  # characters after the sign
_LOW, _MIDDLE, _TOP, _LENGTH, _NEGATIVE, _WHOLE, _DECIMALS = range(7)  # rows of `words`
N_WORDS = 7


@block
def zeros_before(word: Any, length: Any) -> Any:
    """The last `length` characters of the word; the characters before them become zeros."""
    unused = np.uint64(min(max(8 - length, 0), 8))
    kept = ~np.uint64(0) << (np.uint64(4) * unused) << (np.uint64(4) * unused)
    return (word & kept) | (_EIGHT_ZEROS & ~kept)


@block
def first_point(word: Any) -> Any:
    """A word with only the high bit of the first decimal point set; 0 where the word has no point."""
    unlike = word ^ _EIGHT_POINTS
    points = (unlike - _EIGHT_ONES) & ~unlike & _HIGH_BITS
    return points & (np.uint64(0) - points)


@block
def without_point(word: Any, point: Any, first: Any) -> Any:
    """Insert `first` before the word and drop the character at `point`; those before it move by one place."""
    before = (point >> np.uint64(7)) - np.uint64(1)
    after = ~((before << np.uint64(8)) | np.uint64(0xFF))
    return (word & after) | ((word & before) << np.uint64(8)) | first


@block
def eight_digits(word: Any) -> Any:
    """The number of eight digits; `word` has the values of the digits, not their characters."""
    pairs = word * np.uint64(10) + (word >> np.uint64(8))
    return ((pairs & _PAIR_MASK) * _PAIR_1 + ((pairs >> np.uint64(16)) & _PAIR_MASK) * _PAIR_2) >> np.uint64(
        32
    )


@block
def gather_numbers(data: Array, table: Array, lines: int, each: int, before: int, words: Array) -> None:
    """Write the last 24 characters of each number to `words`, its length without sign, and its sign."""
    low, middle, top = words[_LOW], words[_MIDDLE], words[_TOP]
    lengths, negatives = words[_LENGTH], words[_NEGATIVE]
    for line in range(lines):
        start = element(table, line * each + before) + 1
        stop = element(table, line * each + before + 1)
        sign = element(data, start)
        length = stop - start - ((sign == MINUS) | (sign == PLUS))
        if stop < _LONGEST_NUMBER or length > _LONGEST_NUMBER:
            length = 0
        else:
            low[line], middle[line], top[line] = (
                word_at(data, stop - 8),
                word_at(data, stop - 16),
                word_at(data, stop - 24),
            )
        lengths[line], negatives[line] = np.uint64(length), np.uint64(sign == MINUS)


@block
def read_digits(lines: int, words: Array) -> None:
    """Write to `words` each number without its point, and the number of digits after the point.

    Where a field is not such a number, the number of digits is `_LONGEST_NUMBER`. The loop has no branches,
    so the compiler makes it a loop over vectors.
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


@block
def read_numbers(
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
    """Write the numbers after the blank `before` of each line, if they have at most nineteen digits and a
    point.

    Others are noted in `odd`, for `read_number`: row, start and stop. Returns how many `odd` has so far, from
    `n_odd`.
    """
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
