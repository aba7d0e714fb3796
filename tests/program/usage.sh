# Usage: help and versions, what is wrong on the command line, what is not built yet.
. "$(dirname "$0")/common.inc"

commands="analyze plan run trace test order pack tune emit export report ops"
expect 0 --help
for c in $commands; do says out "$c"; done
expect 0 --version
for c in $commands; do
  expect 0 "$c" --help
  expect 0 "$c" --version
done

expect 2
expect 2 bogus
says err "bogus"
expect 2 --bogus
expect 2 analyze
expect 2 analyze model.onnx --bogus
expect 2 analyze missing.onnx
says err "missing.onnx"
expect 2 analyze --json missing.onnx
says out '{"error":{"code":"io"'
expect 2 bogus --json
says out '"error"'
[ "$(wc -l <out)" -eq 1 ] || fail "JSON is not one line"
expect 2 test
expect 2 test missing_folder

for c in trace tune emit report; do
  expect 2 $c model.onnx --option value
  says err "not built yet"
done

model "$(in_graph "$(node n Relu y x)")$(input "$(info x N 4)")$(output "$(info y N 4)")" |
  binary >model.onnx
expect 0 run model.onnx --dim N=3
for wrong in "--dim N" "--dim N=" "--dim N=x" "--dim N=3..2" "--dim N=-1" "--dim N=1..8%0" \
  "--dim M=3" "--dim N=3 --dim N=4" "--input x" "--input q=f.npy" "--input x=f.npy" \
  "--disable speed" "--policy fast" "--threads 0" "--repeat 0" "--seed x" "--dump q=f" \
  "--shape-input q"; do
  # shellcheck disable=SC2086
  expect 2 run model.onnx $wrong
done
expect 2 run model.onnx
says err "'N'"
for later in "--policy no_opt" "--bucket N=32,64" "--tuned file"; do
  # shellcheck disable=SC2086
  expect 2 run model.onnx --dim N=3 $later
  says err "not built yet"
done
finish
