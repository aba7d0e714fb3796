#!/bin/sh
# The main job on real input: fetches the PP-OCRv4 text detection and recognition models, shows what
# analysis knows of their shapes, then runs detection at five image sizes and recognition at five
# widths with one compiled program each. Installs what it needs on Debian.
set -eu
cd "$(dirname "$0")/.."

sh tests/packages.sh build fetch

# The models travel in a PyPI package; only its files are used.
models=build/demo/rapidocr_onnxruntime/models
if [ ! -f "$models/ch_PP-OCRv4_rec_infer.onnx" ]; then
  mkdir -p build/demo
  python3 -m pip download --quiet --no-deps --dest build/demo rapidocr-onnxruntime==1.4.4
  python3 -m zipfile -e build/demo/rapidocr_onnxruntime-1.4.4-py3-none-any.whl build/demo
fi
detection=$models/ch_PP-OCRv4_det_infer.onnx
recognition=$models/ch_PP-OCRv4_rec_infer.onnx

cmake --preset release >build/demo/configure.log
cmake --build --preset release --target sod2 example_ocr >build/demo/build.log

echo "shapes of the detection model, for images with sides that are multiples of 32:"
build/release/bin/sod2 analyze "$detection" \
  --dim p2o.DynamicDimension.1=32..1280%32 --dim p2o.DynamicDimension.2=32..1280%32
build/release/bin/example_ocr "$detection" "$recognition"
