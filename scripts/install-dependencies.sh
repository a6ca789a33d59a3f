#!/bin/sh
# install-dependencies.sh PACKAGE…: installs the missing ones of these Debian packages. Needs root or sudo only if one
# is missing. A package whose command comes from elsewhere (node's own npm) is not missing.
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
# The package lists may be missing (a bare image) or outdated.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
