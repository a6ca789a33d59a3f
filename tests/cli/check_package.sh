#!/bin/sh
# check_package.sh CPACK BUILD COMPILER SOURCE: makes the packages, has lintian look at them, then installs, uses and removes them
# in a copy-on-write view of this machine that nothing outside sees. Needs root; 77 is a visible skip.
set -eu

if [ "${1:-}" != --inside ]; then
  cpack=$1 build=$2 compiler=$3 source=$4
  [ "$(id -u)" = 0 ] || { echo "skipped: installing packages needs root"; exit 77; }
  unshare --mount true 2>/dev/null || { echo "skipped: no mount namespaces"; exit 77; }
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  chmod 755 "$scratch"
  for kind in DEB TGZ; do
    (cd "$scratch" && "$cpack" --config "$build/CPackConfig.cmake" -G $kind -B "$scratch/packages" >"$scratch/log" 2>&1) ||
      { cat "$scratch/log"; exit 1; }
  done
  if command -v lintian >/dev/null 2>&1; then
    # No tag but those that are overridden, each with its reason; a test build is neither static nor stripped of everything.
    lintian --allow-root --fail-on error,warning "$scratch"/packages/*.deb || { echo "lintian finds something"; exit 1; }
  else
    echo "lintian is not installed: packages not linted"
  fi
  tar -C "$scratch" -xzf "$scratch"/packages/*.tar.gz
  "$scratch"/sbx-*/bin/sbx run --lang sh -c 'echo from the tarball' | grep -q 'from the tarball'
  cp -r "$source/tests/cli/client" "$source/tests/cli/check_package.sh" "$scratch/"
  unshare --mount --propagation private sh "$0" --inside "$scratch" "$compiler"
  exit
fi

# In a mount namespace of its own.
scratch=$2 compiler=$3
mkdir "$scratch/view" && mount -t tmpfs view "$scratch/view"
mkdir "$scratch/view/upper" "$scratch/view/work" "$scratch/view/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/view/upper,workdir=$scratch/view/work" "$scratch/view/root"
root=$scratch/view/root
for folder in /proc /dev "$scratch"; do
  mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder"
done
mkdir -p "$root/mnt/old" && cd "$root" && pivot_root . mnt/old && cd /

fail() { echo "$1"; exit 1; }
as_user() { setpriv --reuid nobody --regid nogroup --clear-groups env -i PATH=/usr/bin:/bin HOME=/nonexistent "$@"; }

[ ! -e /usr/bin/sbx ] || dpkg --force-all -P sbx libsbx-dev >/dev/null 2>&1 || rm -f /usr/bin/sbx
dpkg -i "$scratch"/packages/*.deb >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "dpkg can't install the packages"; }
as_user sbx run --lang sh -c 'echo installed and used' | grep -q 'installed and used' || fail "the installed sbx does not run"
as_user sbx policy init | head -1 | grep -q '^#:schema /usr/share/sbx/schema/' || fail "the installed schema is not found"
grep -q '^profile sbx /usr/bin/sbx ' /usr/share/sbx/apparmor/sbx || fail "the AppArmor profile names another path"
[ -s /usr/share/man/man5/sbx-policy.5.gz ] || fail "a page is missing"
if command -v pkg-config >/dev/null 2>&1; then
  # shellcheck disable=SC2046 # words
  "$compiler" -std=c++17 -o "$scratch/client.bin" "$scratch/client/main.cpp" $(pkg-config --cflags --libs sbx) || fail "the client does not build"
  as_user "$scratch/client.bin" /usr/bin/sbx | grep -q good || fail "the client does not work"
else
  echo "pkg-config is not installed: sbx.pc not used"
fi
dpkg -P libsbx-dev sbx >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "dpkg can't remove the packages"; }
left=$(find /usr /etc -xdev \( -path '*/sbx/*' -o -name 'sbx*' -o -name 'libsbx*' \) -not -path '/usr/local/*' -newer "$scratch/client" 2>/dev/null || :)
[ -z "$left" ] || fail "left after removal: $left"
echo "packages: good"
