"""Snappy's compression."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block
from .codes import little_number
from .page_headers import variable_number
from .words import copy_8, copy_32


@block
def unpack_snappy(data: Array, at: Any, stop: Any, out: Array, size: Any) -> bool:
    """Unpack Snappy's compression; returns False where that does not give `size` bytes. Writes up to SPARE
    bytes more.

    With a library, threads wait for Python's lock at each page: two threads read no faster than one.
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
            if wide > 0:  # their number is in the next one to four bytes
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
        else:  # a copy of earlier bytes
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
