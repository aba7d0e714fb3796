# Wrong shapes are refused before any run; what cannot be decided is checked at bind.
. "$(dirname "$0")/common.inc"

reshape() {
  target=$1
  shift
  model "$(in_graph "$(node split Reshape y x shape)")$(initializer "$(int64s shape "$@")")$(
    input "$(info x Batch 64)"
  )$(output "$(info y "$target")")" | binary
}
reshape a 0 30 2 >wrong.onnx
expect 2 analyze wrong.onnx
for part in wrong.onnx split "(Batch, 64)" "(Batch, 30, 2)" "64*Batch" "60*Batch"; do
  says err "$part"
done
expect 2 analyze --json wrong.onnx
says out '"code":"element_count"'
says out '"node":"split"'
expect 2 run wrong.onnx --dim Batch=2
reshape a 0 32 2 >right.onnx
expect 0 analyze --json right.onnx
says out '["Batch",32,2]'
expect 0 run --json right.onnx --dim Batch=3
says out '"shape":[3,32,2]'

model "$(in_graph "$(node product MatMul y a b)")$(input "$(info a M K1)")$(
  input "$(info b K2 N)"
)$(output "$(info y M N)")" | binary >matmul.onnx
expect 0 analyze --json matmul.onnx
says out "K1 == K2"
expect 0 run matmul.onnx --dim M=2 --dim N=3 --dim K1=4 --dim K2=4
expect 2 run matmul.onnx --dim M=2 --dim N=3 --dim K1=4 --dim K2=5
says err "product"
says err "4"
says err "5"

expect 0 analyze --json matmul.onnx --dim M=32..64%32 --dim K1=8
says out '["M","N"]'
expect 2 analyze matmul.onnx --dim K1=8 --dim K2=9
expect 2 run matmul.onnx --dim M=32..64%32 --dim M=40 --dim N=1 --dim K1=1 --dim K2=1
says err "'M'"

# The annotated file says what analysis found, and is itself a model.
expect 0 analyze right.onnx -o annotated.onnx
[ -s annotated.onnx ] || fail "no annotated file"
expect 0 analyze --json annotated.onnx
says out '["Batch",32,2]'
expect 2 analyze right.onnx -o no/such/folder.onnx
[ ! -e no ] || fail "a folder appeared"
expect 0 analyze right.onnx --explain y:0
says out "Batch"
expect 2 analyze right.onnx --explain y:7
expect 2 analyze right.onnx --explain y
expect 0 analyze right.onnx --dot graph.dot
says graph.dot "digraph"
finish
