"""Turn errors of Arrow and of the operating system into messages of one line that name the file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from fastndcg.errors import FastndcgError, SourceError
from fastndcg.sources.values import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.typing import Path as PathLike

# what libraries raise for damaged bytes: faulty texts, codes beyond the end of a dictionary, absurd sizes,
# deep nesting
DAMAGE = (pa.ArrowException, ValueError, IndexError, OverflowError, MemoryError, RecursionError)


@contextmanager
def reading(path: str, kind: str = "Parquet") -> Iterator[None]:
    """Raise errors of Arrow and of the operating system as `SourceError`, in one line with the path."""
    try:
        yield
    except FastndcgError:
        raise
    except OSError as error:
        if error.errno is None:
            raise unreadable(path, error, kind) from None
        raise SourceError(
            f"{path} cannot be read: {os.strerror(error.errno)}. Check the path and its permissions."
        ) from None
    except DAMAGE as error:
        raise unreadable(path, error, kind) from None


def unreadable(path: str, error: BaseException, kind: str = "Parquet") -> SourceError:
    if isinstance(error, MemoryError):
        return SourceError(
            f"{path} cannot be read: there is not enough memory for it ({first_line(error)}). "
            "Read it in parts, or on a machine with more; where it is small, check that it was written "
            "to its end."
        )
    return SourceError(
        f"{path} cannot be read: {first_line(error)}. Check that it is a {kind} file and was written to its "
        "end."
    )


def names_of(paths: Sequence[PathLike]) -> str:
    """The first of several paths, and how many more there are, as messages have them."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{os.fspath(paths[0])}{more}"


@contextmanager
def naming(paths: Sequence[PathLike]) -> Iterator[None]:
    """Put the path before messages about its content; a table in memory has none."""
    if not paths:
        yield
        return
    try:
        yield
    except SourceError:
        raise
    except (FastndcgError, *DAMAGE) as error:
        name = names_of(paths)
        if not isinstance(error, FastndcgError):
            raise unreadable(name, error) from None
        raise error.within(f"{name}: ") from None
