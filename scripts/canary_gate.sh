#!/usr/bin/env bash
# A canary gate to copy, as a step of continuous integration: it fails where a candidate may have lost to what is released.
#
#     scripts/canary_gate.sh released.parquet candidate.parquet comparison.json --queries canaries.txt --by country
#
# Arguments after the third are those of fastndcg compare. The exit code is 1 where a gate does not hold, and 3 where a file cannot be
# evaluated; comparison.json, which a later step may keep, is there in the first case too.
set -eu

released=$1 candidate=$2 comparison=$3
shift 3
name=$(basename "$released")
fastndcg compare "$released" "$candidate" --measure "${MEASURE:-nDCG@10}" --no-worse-than "${name%%.*}" --margin "${MARGIN:-0.005}" \
    --format json "$@" > "$comparison"
