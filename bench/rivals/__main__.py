"""`python -m bench.rivals NAME [SCALE]`: one tool in a process of its own; rows as JSON on stdout."""

from __future__ import annotations

import json
import sys

from bench import rivals

if __name__ == "__main__":
    rivals.keep_to_one_thread()
    scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    for way in rivals.ways(sys.argv[1]):
        print(json.dumps(rivals.measure(way, scale=scale, seconds=2.0 * min(1.0, scale))), flush=True)
