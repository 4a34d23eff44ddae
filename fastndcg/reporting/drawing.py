"""Pictures drawn in a child process, which may die without harm.

vl-convert ends its process at some errors of its own, and its engine for scripts where memory is short.

The child runs this file as a script: it reads a specification a line, and writes an answer a line. It imports
nothing of fastndcg and nothing from the current folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_SECONDS = (120, 10)  # that drawing may take: once, and for each picture


class Drawn(NamedTuple):
    svg: str
    why: str = ""  # the reason why there is no picture


def drawn(specs: Sequence[dict[str, Any]]) -> list[Drawn]:
    """Draw each specification. If the child dies at one, another child draws those after it."""
    answers: list[Drawn] = []
    while len(answers) < len(specs):
        found, why = _ask([json.dumps(spec) for spec in specs[len(answers) :]])
        lost = len(specs) - len(answers) - len(found)
        is_hopeless = (
            not found and len(answers) > 1 and all(each.why for each in answers[-2:])
        )  # a third time
        answers += [*found, *[Drawn("", why)] * (lost if is_hopeless else min(lost, 1))]
    return answers


def _ask(lines: Sequence[str]) -> tuple[list[Drawn], str]:
    """Return the answers of a child, and how it ended."""
    import vl_convert

    from fastndcg.common.subprocesses import (
        run_child,  # here, because the child itself imports nothing of ours
    )

    folder = str(Path(vl_convert.__file__).parent.parent)
    seconds = _SECONDS[0] + _SECONDS[1] * len(lines)
    try:
        done = run_child(
            [__file__, folder], input="\n".join(lines).encode(), capture_output=True, timeout=seconds
        )
        output, why = done.stdout, _end_of(done)
    except subprocess.TimeoutExpired as error:
        output, why = error.stdout or b"", f"drawing took more than {seconds} s"
    except OSError as error:
        output, why = b"", f"no process could be started to draw it: {error.strerror}"
    whole = output[: output.rfind(b"\n") + 1].splitlines()
    answers = [line for line in whole if line.startswith(b'["')]  # others are what a start of Python prints
    return [Drawn(*json.loads(line)) for line in answers], why


def _end_of(done: subprocess.CompletedProcess[bytes]) -> str:
    if done.returncode < 0:
        import signal

        names = {-each: each.name for each in signal.Signals}
        return (
            f"the process that draws was ended by {names.get(done.returncode, f'signal {-done.returncode}')}"
        )
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"the process that draws ended with {done.returncode}" + (f": {said[-1]}" if said else "")


def _serve(folder: str) -> None:
    sys.path.append(folder)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    import vl_convert

    for line in sys.stdin.buffer:
        try:
            answer = [vl_convert.vegalite_to_svg(json.loads(line), allowed_base_urls=[])]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            answer = ["", " ".join(str(error).split())[:200] or type(error).__name__]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.argv[1])
