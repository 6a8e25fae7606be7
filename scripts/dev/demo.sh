#!/usr/bin/env bash
# Bakes a box with the given wbox and flags, then says what it cost: guest
# boots, CPU-seconds (of wbox and all it started) and minutes.
set -euo pipefail

wbox=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Standard error goes to the terminal and to the log, standard output to the
# terminal; what is left for the variable is what "time" says.
exec 3>&1 4>&2
TIMEFORMAT='%R %U %S'
cost=$({ time "$wbox" build "$@" 2> >(tee "$log" >&4) >&3; } 2>&1) || exit $?

scripts=$(sed -nE 's/^(guest scripts: [a-z ]+)$/; \1/p' "$log" | tail -n 1)
boots=$(sed -nE 's/^guests were booted ([0-9]+) times in this run.*/\1/p' "$log" | tail -n 1)
awk -v boots="${boots:-0}" -v scripts="$scripts" '{ printf "demo: %d guest boots, %.0f CPU-seconds, %.1f minutes%s\n", boots, $2 + $3, $1 / 60, scripts }' <<<"$cost" >&2
