#!/bin/sh
# Installs the Debian packages that are missing, as root or through sudo: packages.sh SET..
#   build    what the release and debug builds and all tests need
#   clang    the second compiler
#   aarch64  the cross compiler and the emulator
#   fetch    to download the demo's models
set -eu

wanted=
for set in "$@"; do
  case $set in
    build) wanted="$wanted g++ cmake ninja-build ccache libboost-dev libeigen3-dev libhwy-dev
      libprotozero-dev libcli11-dev nlohmann-json3-dev doctest-dev libbenchmark-dev
      libonnx-testdata python3-venv" ;;
    clang) wanted="$wanted clang-16" ;;
    aarch64) wanted="$wanted g++-aarch64-linux-gnu qemu-user" ;;
    fetch) wanted="$wanted ca-certificates python3-pip" ;;
    *) echo "packages.sh: unknown set '$set'" >&2; exit 2 ;;
  esac
done

if ! command -v apt-get >/dev/null; then
  echo "packages.sh: no apt-get here; these must be present:" $wanted >&2
  exit 0
fi

missing=
for package in $wanted; do
  case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
    *' installed') ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
echo "installing$missing"
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $missing
