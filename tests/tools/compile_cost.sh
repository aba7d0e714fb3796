#!/bin/sh
# compile_cost.sh LIMIT_MS HEADER COMPILER [FLAGS..]
# Including HEADER may cost at most LIMIT_MS of user time more than an empty file (best of three).
set -eu
limit=$1 header=$2
shift 2

user_ms() { # of one compilation of standard input; `times` prints the children on its second line
  "$@" -x c++ -fsyntax-only - && times | awk 'NR == 2 { split($1, t, /[ms]/); print (t[1] * 60 + t[2]) * 1000 }'
}
best() {
  text=$1
  shift
  for i in 1 2 3; do (echo "$text" | (user_ms "$@")) || exit; done | sort -n | head -n 1
}

empty=$(best '' "$@")
full=$(best "#include <$header>" "$@")
echo "$header: $full ms, an empty file: $empty ms, limit: $limit ms more"
[ "$((${full%.*} - ${empty%.*}))" -le "$limit" ]
