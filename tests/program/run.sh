# Runs, their inputs and outputs in files, and the tests in folders.
. "$(dirname "$0")/common.inc"

# y = Relu(x) + x
model "$(in_graph "$(node first Relu h x)")$(in_graph "$(node second Add y h x)")$(
  input "$(info x N 2)"
)$(output "$(info y N 2)")" | binary >model.onnx

# x = [[1, -2], [3, 0.5]] as TensorProto and as .npy
raw=0000803f000000c0000040400000003f
printf '%s' "$(number 1 2)$(number 1 2)$(number 2 1)$(name 8 x)$(bytes 9 $raw)" | binary >x.pb
{
  printf '\223NUMPY\001\000\166\000'
  printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
  printf '%s' $raw | binary
} >x.npy
expected=00000040000000c0000 # of the first elements: 2, -2
for file in x.pb x.npy; do
  rm -rf results
  expect 0 run --json model.onnx --input x=$file --output-dir results --repeat 3
  says out '"name":"y","dtype":"float32","shape":[2,2],"sha256":"'
  got=$(tail -c 16 results/y.npy | od -An -v -tx1 | tr -d ' \n')
  [ "$got" = 00000040000000c00000c0400000803f ] || fail "$file gave $got, not $expected"
  for part in compile_ms first_ms median_ms min_ms bind_us arena_bytes weights_bytes \
    peak_rss_bytes nodes_run groups_run policy threads; do
    says out "\"$part\":"
  done
done
cp out first
expect 0 run --json model.onnx --input x=results/y.npy
expect 0 run --json model.onnx --input x=x.pb --threads 2 --disable fusion,order,memory,versions
sha() { sed 's/.*"sha256":"\([0-9a-f]*\)".*/\1/' "$1"; }
[ "$(sha out)" = "$(sha first)" ] || fail "the plan changed the result"
[ "$(sha out)" = "$(tail -c 16 results/y.npy | sha256sum | cut -d ' ' -f 1)" ] || fail "wrong SHA-256"
expect 0 run --json model.onnx --input x=x.pb --dump h=h.npy
[ "$(tail -c 16 h.npy | od -An -v -tx1 | tr -d ' \n')" = 0000803f00000000000040400000003f ] ||
  fail "wrong dump"
expect 0 run --json model.onnx --dim N=2 --frozen
expect 0 run --json model.onnx --dim N=5 --seed 1
cp out one
expect 0 run --json model.onnx --dim N=5 --seed 2
[ "$(sha out)" != "$(sha one)" ] || fail "the seed does nothing"

expect 2 run model.onnx --input x=x.pb --dim N=3
says err "'N'"
expect 2 run model.onnx --input x=model.onnx
head -c 100 x.npy >cut.npy
expect 2 run model.onnx --input x=cut.npy
printf '%s' "$(number 1 4)$(number 2 1)$(bytes 9 $raw)" | binary >flat.pb
expect 2 run model.onnx --input x=flat.pb --dim N=2
says err "'x'"
printf '%s' "$(number 1 2)$(number 1 2)$(number 2 6)$(bytes 9 $raw)" | binary >ints.pb
expect 2 run model.onnx --input x=ints.pb
expect 1 run model.onnx --dim N=1000 --memory-budget 8 --disable fusion
expect 2 run model.onnx --input x=x.pb --output-dir model.onnx

expect 0 plan --json model.onnx
for part in nodes_imported nodes groups regions order_exact plan_versions arena_bytes \
  lower_bound_bytes layout required_bytes plan_ms; do
  says out "\"$part\":"
done
expect 0 plan --json model.onnx --dim N=4 -o plan.json
says plan.json '"order"'
expect 0 ops --json
says out '"name":"Relu"'
expect 0 ops --used model.onnx
says out "sod2::ops::relu"
expect 0 ops --markdown

# Two folders, one with a wrong output.
for kind in good bad; do
  mkdir -p cases/$kind/test_data_set_0
  cp model.onnx cases/$kind/
  cp x.pb cases/$kind/test_data_set_0/input_0.pb
done
y=00000040000000c00000c0400000803f
printf '%s' "$(number 1 2)$(number 1 2)$(number 2 1)$(bytes 9 $y)" | binary \
  >cases/good/test_data_set_0/output_0.pb
printf '%s' "$(number 1 2)$(number 1 2)$(number 2 1)$(bytes 9 $raw)" | binary \
  >cases/bad/test_data_set_0/output_0.pb
expect 0 test cases/good
[ "$(tail -n 1 out)" = "1 passed, 0 failed, 0 skipped" ] || fail "$(cat out)"
expect 0 test cases cases/good --only 'goo*'
[ "$(tail -n 1 out)" = "1 passed, 0 failed, 0 skipped" ] || fail "$(cat out)"
"$sod2" test cases --list >out 2>err
[ $? -eq 1 ] || fail "a failed test is status 1"
says out "cases/bad"
says out "element 0"
[ "$(tail -n 1 out)" = "1 passed, 1 failed, 0 skipped" ] || fail "$(cat out)"
finish
