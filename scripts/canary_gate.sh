#!/usr/bin/env bash
# A canary gate to copy, as a step of continuous integration: it fails if a candidate may be worse than the released system.
#
#     scripts/canary_gate.sh released.parquet candidate.parquet comparison.json --by country
#
# Arguments after the third are passed to fastndcg compare. The exit code is 1 if a gate fails, and 3 if a file cannot be
# evaluated. comparison.json is written in the first case too, so that a later step can keep it.
set -eu

released=$1 candidate=$2 comparison=$3
shift 3
name=$(basename "$released")
fastndcg compare "$released" "$candidate" --measure "${MEASURE:-nDCG@10}" --no-worse-than "${name%%.*}" --margin "${MARGIN:-0.005}" \
    --format json "$@" > "$comparison"
