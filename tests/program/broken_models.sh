# Files that are no models, or not quite: status 2 and one line.
. "$(dirname "$0")/common.inc"

graph="$(in_graph "$(node n Relu y x)")$(input "$(info x N 4)")$(output "$(info y N 4)")"
model "$graph" | binary >good.onnx
expect 0 analyze good.onnx

: >empty.onnx
expect 2 analyze empty.onnx
says err "empty.onnx"
echo "this is no model" >text.onnx
expect 2 analyze text.onnx
head -c 1000 /dev/zero >zeros.onnx
expect 2 analyze zeros.onnx
head -c 1000 "$sod2" >program.onnx
expect 2 analyze program.onnx
expect 2 analyze .
expect 2 analyze /dev/null

size=$(wc -c <good.onnx)
for n in 1 2 5 $((size / 4)) $((size / 2)) $((size - 12)) $((size - 3)) $((size - 1)); do
  head -c "$n" good.onnx >cut.onnx
  expect 2 analyze cut.onnx
  expect 2 run cut.onnx --dim N=1 --json
  says out '"error"'
done

model "$graph" 29 | binary >new.onnx
expect 2 analyze new.onnx
says err "opset 29"
expect 2 run new.onnx --dim N=1
mkdir -p folder && cp good.onnx folder/model.onnx
expect 0 analyze folder

# Nodes in any order are fine; a cycle or an undefined name is not.
two() {
  model "$(in_graph "$(node a Relu y "$1")")$(in_graph "$(node b Abs h "$2")")$(
    input "$(info x N 4)"
  )$(output "$(info y N 4)")" | binary
}
two h x >unsorted.onnx
expect 0 analyze unsorted.onnx
two h y >cycle.onnx
expect 2 analyze cycle.onnx
says err "cycle"
two h z >undefined.onnx
expect 2 analyze undefined.onnx
says err "'b'"
says err "'z'"
model "$(in_graph "$(node strange Unheard y x)")$(input "$(info x N)")$(output "$(info y N)")" |
  binary >unknown.onnx
expect 2 analyze unknown.onnx
says err "Unheard"
says err "strange"
finish
