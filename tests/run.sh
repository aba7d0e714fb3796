#!/bin/sh
# Builds and tests everything: sh tests/run.sh [--all]
#   the release build with all tests, then the tests under ASan and UBSan
#   --all    clang and the build without exceptions as well
# On Debian it installs the packages that are missing. The last lines are ctest's summary.
set -eu
cd "$(dirname "$0")/.."

packages=build
presets='release debug'
case ${1-} in
  '') ;;
  --all) packages='build clang' presets='release clang no-exceptions debug' ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

sh tests/packages.sh $packages
jobs=$(nproc)
for preset in $presets; do
  echo "== $preset"
  cmake --preset "$preset"
  cmake --build --preset "$preset" --parallel "$jobs"
  ctest --preset "$preset" --parallel "$jobs"
done
