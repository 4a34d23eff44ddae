"""Sums of float64, and of products of two float64, without rounding.

A sum is an array of digits of 32 bits, each in an int64, so that carries can wait. A float64 is a whole
number of 53 bits times 2**place times the smallest positive float64. Values are given as their bits.
"""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.decorators import block, driver

DIGITS = 140  # of a sum of products: 2 * 2046 places, and the bits of a product above them
BITS = 32

_LOW = (1 << BITS) - 1
_FRACTION = (1 << 52) - 1
_PART = 27  # bits of the low part of a factor
_LOW_PART = (1 << _PART) - 1
_AT_ONCE = 1 << 18  # values whose digits NumPy adds up in float64 without rounding


@block
def whole_of(bits: int) -> int:
    """The whole number of a float64, without the sign; `bits` are its bits."""
    return (bits & _FRACTION) | (min((bits >> 52) & 2047, 1) << 52)


@block
def place_of(bits: int) -> int:
    exponent = (bits >> 52) & 2047
    return exponent - min(exponent, 1)


@block
def add_scaled(size: int, place: int, sign: int, digits: Array) -> None:
    """Add sign * size * 2**place; `size` has at most 62 bits."""
    digit, shift = place >> 5, place & 31
    low, high = (size & _LOW) << shift, (size >> BITS) << shift
    digits[digit] += sign * (low & _LOW)
    digits[digit + 1] += sign * ((low >> BITS) + (high & _LOW))
    digits[digit + 2] += sign * (high >> BITS)


def _plain_add_scaled(whole: Array, place: Array, digits: Array) -> None:
    """As `add_scaled`, for many numbers of at most 54 bits: those of one place are added up first."""
    lowest = int(place.min())
    for part, up in ((whole >> _PART, _PART), (whole & _LOW_PART, 0)):
        sums = np.bincount(place - lowest, weights=part)
        for at in np.flatnonzero(sums).tolist():
            value = int(sums[at])
            add_scaled(abs(value), lowest + at + up, 1 if value > 0 else -1, digits)


def _split(bits: Array) -> tuple[Array, Array]:
    """As `whole_of` with the sign, and `place_of`, for many numbers."""
    exponent = (bits >> 52) & 2047
    normal = np.minimum(exponent, 1)
    whole = (bits & _FRACTION) | (normal << 52)
    return np.where(bits < 0, -whole, whole), exponent - normal


def plain_add_values(values: Array, digits: Array) -> None:
    for start in range(0, values.shape[0], _AT_ONCE):
        _plain_add_scaled(*_split(values[start : start + _AT_ONCE]), digits)


@driver(plain=plain_add_values)
def add_values(values: Array, digits: Array) -> None:
    """Add values; at most 2**30 of them between carries."""
    for i in range(values.shape[0]):
        bits = values[i]
        add_scaled(whole_of(bits), place_of(bits), 1 | (bits >> 63), digits)


def plain_add_products(left: Array, right: Array, digits: Array) -> None:
    for start in range(0, left.shape[0], _AT_ONCE):
        (a, place), (b, other) = (_split(side[start : start + _AT_ONCE]) for side in (left, right))
        place = place + other
        a_high, a_low, b_high, b_low = a >> _PART, a & _LOW_PART, b >> _PART, b & _LOW_PART
        _plain_add_scaled(a_high * b_high, place + 2 * _PART, digits)
        _plain_add_scaled(a_high * b_low + a_low * b_high, place + _PART, digits)
        _plain_add_scaled(a_low * b_low, place, digits)


@driver(plain=plain_add_products)
def add_products(left: Array, right: Array, digits: Array) -> None:
    """Add products of values; at most 2**29 of them between carries."""
    for i in range(left.shape[0]):
        one, other = left[i], right[i]
        a, b, place = whole_of(one), whole_of(other), place_of(one) + place_of(other)
        sign = 1 | ((one ^ other) >> 63)
        a_high, a_low, b_high, b_low = a >> _PART, a & _LOW_PART, b >> _PART, b & _LOW_PART
        add_scaled(a_high * b_high, place + 2 * _PART, sign, digits)
        add_scaled(a_high * b_low + a_low * b_high, place + _PART, sign, digits)
        add_scaled(a_low * b_low, place, sign, digits)
