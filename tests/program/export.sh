# The example models as ONNX files: what is written is read, analysed and run.
. "$(dirname "$0")/common.inc"

while read -r example sizes; do
  rm -f model.onnx
  expect 0 export "$example" -o model.onnx --scale 0.0625 --json
  says out "\"example\":\"$example\",\"nodes\":"
  expect 0 analyze --json model.onnx
  says out '"unknown":0}'
  [ -n "$sizes" ] || continue
  set --
  for size in $sizes; do set -- "$@" --dim "$size"; done
  expect 0 run --json model.onnx "$@"
  says out '"outputs":[{"name":'
done <<END
stable_diffusion_encoder
segment_anything P=3
conformer
codebert B=2 L=17
yolo_v6
skipnet B=2 H=40 W=33
dgnet B=2
convnet_aig
ranet
blockdrop
mixture_of_experts B=2 L=17
END

expect 0 export skipnet -o same.onnx --scale 0.0625
cp same.onnx first.onnx
expect 0 export skipnet -o same.onnx --scale 0.0625
cmp -s first.onnx same.onnx || fail "two exports differ"
expect 0 export skipnet -o same.onnx --scale 0.0625 --seed 2
if cmp -s first.onnx same.onnx; then fail "the seed does nothing"; fi

expect 2 export lenet -o model.onnx
says err "'lenet'"
expect 2 export skipnet -o model.onnx --scale 0
says err "--scale"
expect 2 export skipnet -o no/such/folder/model.onnx
finish
