#!/bin/sh
# check_packages.sh CPACK BUILD: the packages of a cross build for 64-bit Arm say so, and lintian finds nothing in them.
set -eu
command -v lintian >/dev/null || { echo "skipped: lintian is not installed"; [ -z "${SBX_NO_SKIPS:-}" ] || exit 1; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for kind in DEB TGZ; do
  "$1" --config "$2/CPackConfig.cmake" -G $kind -B "$scratch" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
done
for package in "$scratch"/*.deb; do
  architecture=$(dpkg-deb -f "$package" Architecture)
  echo "$(basename "$package"): $architecture"
  case $architecture,$package in arm64,*_arm64.deb) ;; *) exit 1 ;; esac
done
# The name of the tarball is another one than that of x86-64.
[ "$(cd "$scratch" && ls -d -- *.tar.gz)" = "$(cd "$scratch" && ls -d sbx-*-Linux-aarch64.tar.gz)" ]
tar -C "$scratch" -xzf "$scratch"/*.tar.gz
readelf -h "$scratch"/sbx-*-Linux-aarch64/bin/sbx | grep AArch64
# Whether each override is used depends on the build: the optimiser splits texts.
said=$(lintian --allow-root --display-info --pedantic --fail-on none "$scratch"/*.deb)
if printf '%s\n' "$said" | grep '^[EWIP]: ' | grep -v ': unused-override '; then
  echo "lintian finds something"
  exit 1
fi
echo "packages: good"
