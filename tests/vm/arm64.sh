#!/bin/sh
# arm64.sh build TARGET, or run TARGET PROGRAM ARGUMENT…: builds a target of the preset arm64; and runs a program of that build in
# qemu's emulator of single programs. Exits with 77 where the cross tools are missing.
set -eu
cd "$(dirname "$0")/../.."
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (scripts/packages.sh: arm64)"; exit 77; }
done
action=$1 target=$2
shift 2
scripts/build-arm64 "$target"
[ "$action" = build ] || exec qemu-aarch64-static -L build/arm64-root "build/arm64/$1" "$@"
