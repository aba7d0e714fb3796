#!/bin/sh
# Speed of analysis as a table: sh bench/rdp_speed.sh [FOLDER WITH bench_rdp AND sod2]
#   1. built graphs of 1,000 and 100,000 operators, warm medians; growth is the ratio of the two
#   2. one bind: all sizes of a decoder with a cache
#   3. each model of $SOD2_SHARED/models, or ../shared/models: the first analysis in a process
#      (median of REPEAT processes, default 5), the warm median and, where Python has onnx, the warm median of ONNX's
#      own shape inference with data propagation on the same file without its weights
# Bounds: 2 us a node and no slower than ONNX (warm), 500 ms for 100,000 operators, growth 1.5, 10 ms a model, 20 us a bind.
# Cold times and ONNX's are what a clock shows; the others count time of the processor.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${1:-$here/build/release/bin}
shared=${SOD2_SHARED:-$here/../shared}
repeat=${REPEAT:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
missed=0

[ -x "$bin/bench_rdp" ] || {
  echo "no bench_rdp in $bin: build it first" >&2
  exit 2
}
"$bin/bench_rdp" --benchmark_filter='analyze<.*/(1000|100000)$|bind_decoder' \
  --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
  --benchmark_format=json >"$scratch/built.json" 2>/dev/null

# The JSON has one field a line.
awk '
  /"name":/ { name = $2; gsub(/[",]/, "", name) }
  name !~ /_median$/ { next }
  /"cpu_time":/ && name ~ /^bind_decoder/ { bind = $2 + 0 }
  name !~ /^analyze</ { next }
  {
    split(name, part, /[<>]/)
    kind = part[2]
    size = name
    sub(/^[^\/]*\//, "", size)
    sub(/_median$/, "", size)
  }
  /"cpu_time":/ {
    if (!(kind in seen)) { order[++kinds] = kind; seen[kind] = 1 }
    ms[kind, size] = $2 + 0
  }
  /"us_per_node":/ { us[kind, size] = $2 + 0 }
  END {
    printf "%-16s %12s %14s %14s %8s\n", "built graph", "us/node 1000", "us/node 100000", "ms 100000", "growth"
    bad = 0
    for (k = 1; k <= kinds; ++k) {
      n = order[k]
      growth = us[n, 100000] / us[n, 1000]
      fits = us[n, 1000] <= 2 && us[n, 100000] <= 2 && ms[n, 100000] <= 500 && growth <= 1.5
      bad += !fits
      printf "%-16s %12.3f %14.3f %14.1f %8.2f%s\n", n, us[n, 1000], us[n, 100000],
        ms[n, 100000], growth, fits ? "" : "  MISSED"
    }
    printf "\nbind: %.2f us%s\n", bind, bind <= 20 ? "" : "  MISSED"
    exit (bad > 0 || bind > 20)
  }' "$scratch/built.json" || missed=1

[ -d "$shared/models" ] && [ -x "$bin/sod2" ] || exit $missed

# ONNX's inference: prints milliseconds. Weights become inputs that nobody gives. Its Python binding
# hands the model over as bytes both ways, which is part of the time.
cat >"$scratch/peer.py" <<'END'
import statistics, sys, time
import onnx
from onnx import shape_inference

model = onnx.load(sys.argv[1], load_external_data=False)
small = 64
kept = []
for weight in model.graph.initializer:
    count = 1
    for d in weight.dims:
        count *= d
    if count <= small:
        kept.append(weight)
    elif not any(i.name == weight.name for i in model.graph.input):
        model.graph.input.append(
            onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims)))
del model.graph.initializer[:]
model.graph.initializer.extend(kept)
times = []
for _ in range(9):
    start = time.perf_counter()
    shape_inference.infer_shapes(model, data_prop=True)
    times.append(time.perf_counter() - start)
print(f"{statistics.median(times) * 1e3:.3f}")
END
peer=
if python3 -c 'import onnx' 2>/dev/null; then peer=yes; fi

: >"$scratch/warm"
[ ! -x "$bin/bench_rdp_models" ] ||
  SOD2_SHARED=$shared "$bin/bench_rdp_models" --benchmark_min_time=0.05 --benchmark_repetitions=5 \
    --benchmark_report_aggregates_only=true --benchmark_format=json 2>/dev/null |
  awk '
    /"name":/ { name = $2; gsub(/[",]/, "", name) }
    name !~ /_median$/ { next }
    /"cpu_time":/ { ms = $2 + 0 }
    /"nodes":/ { sub(/_median$/, "", name); print name, $2 + 0, ms; name = "" }' >"$scratch/warm"

printf '\n%-26s %6s %10s %10s %10s %10s\n' model nodes 'cold ms' 'warm ms' 'us/node' 'onnx ms'
for model in "$shared"/models/*/; do
  [ -f "$model/model.onnx" ] || continue
  i=0
  : >"$scratch/times"
  while [ $i -lt "$repeat" ]; do
    "$bin/sod2" analyze --json "$model" >"$scratch/report" 2>/dev/null || break
    sed -n 's/.*"analyze_ms":\([0-9.]*\).*/\1/p' "$scratch/report" >>"$scratch/times"
    i=$((i + 1))
  done
  name=$(basename "$model")
  if [ $i -lt "$repeat" ]; then
    printf '%-26s not analysed\n' "$name"
    missed=1
    continue
  fi
  cold=$(sort -n "$scratch/times" | sed -n "$(((repeat + 1) / 2))p")
  nodes=$(sed -n 's/.*"nodes_imported":\([0-9]*\).*/\1/p' "$scratch/report")
  other=-
  if [ -n "$peer" ]; then
    other=$(python3 "$scratch/peer.py" "$model/model.onnx" 2>/dev/null) || other=failed
  fi
  # Nodes are those of the graph as it is analysed; without the benchmark, those of the file.
  warm=$(awk -v name="$name" '$1 == name { print $2, $3 }' "$scratch/warm")
  awk -v name="$name" -v cold="$cold" -v other="$other" -v nodes="$nodes" -v warm="$warm" 'BEGIN {
    if (split(warm, part, " ") == 2) { nodes = part[1]; ms = part[2]; us = ms * 1000 / nodes }
    bad = cold > 10 || us > 2 || (other + 0 > 0 && ms > other + 0)
    printf "%-26s %6d %10.3f %10s %10s %10s%s\n", name, nodes, cold,
      ms == "" ? "-" : sprintf("%.3f", ms), us == "" ? "-" : sprintf("%.3f", us), other,
      bad ? "  MISSED" : ""
    exit bad
  }' || missed=1
done
exit $missed
