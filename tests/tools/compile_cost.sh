#!/bin/sh
# compile_cost.sh LIMIT_MS HEADER COMPILER [FLAGS..]
# Including HEADER may cost at most LIMIT_MS of user time more than an empty file (best of three).
set -eu
limit=$1 header=$2
shift 2
clock=$(mktemp)
trap 'rm -f "$clock"' EXIT

best() { # TEXT COMMAND..: user milliseconds of compiling TEXT
  text=$1
  shift
  for i in 1 2 3; do
    # A shell of its own, so that the second line of `times` is this one child.
    (echo "$text" | "$@" -x c++ -fsyntax-only - && times >"$clock") || exit
    awk 'NR == 2 { split($1, t, /[ms]/); printf "%d\n", (t[1] * 60 + t[2]) * 1000 }' "$clock"
  done | sort -n | head -n 1
}

empty=$(best '' "$@")
full=$(best "#include <$header>" "$@")
echo "$header: $full ms, an empty file: $empty ms, limit: $limit ms more"
[ -n "$full" ] && [ "$((full - empty))" -le "$limit" ]
