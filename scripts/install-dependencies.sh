#!/bin/sh
# install-dependencies.sh PACKAGE…: installs those Debian packages that are missing. Asks nothing of a machine that has
# them all; else needs root or sudo. What has its command from elsewhere (node's own npm) is not missing.
set -eu

missing=
for package in "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
  [ "$state" = installed ] || command -v "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
else
  echo "these packages are missing, and installing them needs root or sudo:$missing" >&2
  exit 1
fi

echo "installing:$missing"
# The lists may be absent (a bare image) or too old to name what is there.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
