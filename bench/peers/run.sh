#!/bin/sh
# Whole models against ONNX Runtime: sh bench/peers/run.sh MODELS [options of whole_models.py]
# Makes a virtual environment in build/peers with the peer from PyPI; needs the release build.
set -eu
cd "$(dirname "$0")/../.."

models=${1:?folder of models}
shift
if [ ! -x build/peers/bin/python ]; then
  python3 -m venv build/peers
  build/peers/bin/pip install --quiet onnxruntime==1.20.1 onnx==1.17.0 numpy
fi
exec build/peers/bin/python bench/peers/whole_models.py build/release/bin/sod2 "$models" "$@"
