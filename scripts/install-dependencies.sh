#!/bin/sh
# install-dependencies.sh PACKAGE…: installs the missing ones of these Debian packages. Needs root or sudo only if one
# is missing. A package whose command comes from elsewhere (node's own npm) is not missing.
set -eu

missing=
count=0
for package in "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
  [ "$state" = installed ] || command -v "$package" >/dev/null 2>&1 || { missing="$missing $package" && count=$((count + 1)); }
done
if [ -z "$missing" ]; then
  echo "  all $# are there"
  exit
fi

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
else
  echo "packages are missing, and there is no sudo; as root:" >&2
  echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
  exit 1
fi

# The package lists may be missing (a bare image) or outdated.
echo "  reading Debian's lists"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
echo "  installing $count of $#, and what they need:$missing"
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
