#!/bin/sh
# Evaluate on all GPUs of this machine, one process each (on its CPU if it has none).
#
#   scripts/launch/single_node.sh DATA OUT SYSTEM [SYSTEM ...]
#   PROCESSES=4 CONFIGS="zh_*" scripts/launch/single_node.sh data run 'whisper-large-v3 + dense:BAAI/bge-m3'
#
# Stopped at any point, the same command continues.
set -eu
if [ "$#" -lt 3 ]; then
    echo "usage: $0 DATA OUT SYSTEM [SYSTEM ...]" >&2
    exit 2
fi
data=$1
out=$2
shift 2
gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l | tr -d ' ')
if [ "$gpus" -lt 1 ]; then
    gpus=1
fi
# Patterns of configs are the command's to expand, not the shell's.
set -f
exec squtr evaluate "$@" --data "$data" --out "$out" \
    ${CONFIGS:+--configs $CONFIGS} \
    --num-processes "${PROCESSES:-$gpus}" \
    --json-log "$out.log.jsonl"
