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

# Changed bytes: any status of the contract, one line where it isn't 0. The numbers come from a
# linear generator, so that every run tries the same changes.
hex=$(od -An -v -tx1 good.onnx | tr -d ' \n')
seed=1
next() {
  seed=$(((seed * 1103515245 + 12345) % 2147483648))
  random=$((seed / 65536))
}
trial=0
while [ $trial -lt 80 ]; do
  next
  at=$((random % size * 2))
  next
  byte=$(printf '%02x' $((random % 256)))
  before=$(printf '%s' "$hex" | cut -c1-$((at + 1)))
  before=${before%?}
  after=$(printf '%s' "$hex" | cut -c$((at + 3))-)
  next
  case $((random % 3)) in
    0) changed=$before$byte$after ;;
    1) changed=$before$after ;;
    *) changed=$before$byte$byte$after ;;
  esac
  printf '%s' "$changed" | binary >changed.onnx
  for command in "analyze" "run --dim N=2"; do
    # shellcheck disable=SC2086
    "$sod2" $command changed.onnx >out 2>err
    got=$?
    [ $got -le 2 ] || fail "trial $trial: status $got: $(head -c 400 err)"
    [ $got -eq 0 ] || [ "$(wc -l <err)" -eq 1 ] || fail "trial $trial: $(head -c 400 err)"
  done
  trial=$((trial + 1))
done
finish
