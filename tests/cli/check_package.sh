#!/bin/sh
# check_package.sh CPACK BUILD COMPILER SOURCE [NAME]: builds the packages, checks them with lintian, then installs,
# uses and removes them in a private copy-on-write view of this machine; with NAME as for a program of another name,
# beside an unrelated program called sbx. Needs root; 77 is a visible skip.
set -eu

skip() {
  echo "skipped: $1"
  [ -z "${SBX_NO_SKIPS:-}" ] || exit 1
  exit 77
}

if [ "${1:-}" != --inside ]; then
  cpack=$1 build=$2 compiler=$3 source=$4 name=${5:-sbx}
  [ "$(id -u)" = 0 ] || skip "installing packages needs root"
  unshare --mount true 2>/dev/null || skip "no mount namespaces"
  for program in lintian pkg-config; do
    command -v $program >/dev/null 2>&1 || skip "$program is not installed"
  done
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  chmod 755 "$scratch"
  if [ "$name" != sbx ]; then
    # The compiled code differs by one word only, so this build's programs are used.
    other=$scratch/other
    "$(dirname "$cpack")/cmake" -S "$source" -B "$other" -G Ninja -DBUILD_TESTING=OFF -DSBX_PROGRAM_NAME="$name" \
      -DCMAKE_CXX_COMPILER="$compiler" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    cp "$build/sbx" "$other/$name"
    cp -P "$build"/src/lib/libsbx.* "$other/src/lib/"
    build=$other
  fi
  for kind in DEB TGZ; do
    (cd "$scratch" && "$cpack" --config "$build/CPackConfig.cmake" -G $kind -B "$scratch/packages" >"$scratch/log" 2>&1) ||
      { cat "$scratch/log"; exit 1; }
  done
  # No tags except overridden ones, each with its reason.
  # How the optimiser splits texts depends on the build, and so does whether their override is used.
  lintian --allow-root --suppress-tags unused-override --display-info --pedantic --fail-on error,warning,info,pedantic "$scratch"/packages/*.deb ||
    { echo "lintian finds something"; exit 1; }
  tar -C "$scratch" -xzf "$scratch"/packages/*.tar.gz
  grep -q "^profile $name \"/usr/local/bin/$name\" " "$scratch/$name"-*/share/sbx/apparmor/"$name" ||
    { echo "the AppArmor profile of the tarball names a scratch directory"; exit 1; }
  "$scratch/$name"-*/bin/"$name" run --lang sh -c 'echo from the tarball' | grep -q 'from the tarball'
  cp -r "$source/tests/cli/client" "$source/tests/cli/check_package.sh" "$scratch/"
  unshare --mount --propagation private sh "$0" --inside "$scratch" "$compiler" "$name"
  exit
fi

# In its own mount namespace.
scratch=$2 compiler=$3 name=$4
mkdir "$scratch/view" && mount -t tmpfs view "$scratch/view"
mkdir "$scratch/view/upper" "$scratch/view/work" "$scratch/view/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/view/upper,workdir=$scratch/view/work" "$scratch/view/root"
root=$scratch/view/root
for directory in /proc /dev "$scratch"; do
  mkdir -p "$root$directory" && mount --rbind "$directory" "$root$directory"
done
mkdir -p "$root/mnt/old" && cd "$root" && pivot_root . mnt/old && cd /

fail() { echo "$1"; exit 1; }
as_user() { setpriv --reuid nobody --regid nogroup --clear-groups env -i PATH=/usr/bin:/bin HOME=/nonexistent "$@"; }

rm -f /var/lib/man-db/auto-update # else every dpkg indexes all pages of this machine
dpkg --force-all -P "$name" "lib$name-dev" >/dev/null 2>&1 || :
rm -f "/usr/bin/$name"
foreign='a program of somebody else'
if [ "$name" != sbx ]; then
  printf '#!/bin/sh\necho "%s"\n' "$foreign" >/usr/bin/sbx && chmod 755 /usr/bin/sbx
fi
# AppArmor, configured so that only profiled programs may create user namespaces: the package has a profile for that.
mkdir -p /etc/apparmor.d/abi && : >/etc/apparmor.d/abi/4.0
printf '#!/bin/sh\necho "$*" >>"%s/apparmor"\n' "$scratch" >/usr/sbin/apparmor_parser && chmod 755 /usr/sbin/apparmor_parser
profile=/etc/apparmor.d/$name
loads() { grep -qx -- "$1 $profile" "$scratch/apparmor" && : >"$scratch/apparmor"; }
dpkg -i "$scratch"/packages/*.deb >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "dpkg can't install the packages"; }
as_user "$name" run --lang sh -c 'echo installed and used' | grep -q 'installed and used' || fail "the installed $name does not run"
as_user "$name" policy init | head -1 | grep -q '^#:schema /usr/share/sbx/schema/' || fail "the installed schema is not found"
loads -r || fail "the AppArmor profile is not loaded"
grep -q "^profile $name \"/usr/bin/$name\" " "$profile" || fail "the AppArmor profile is not at its place, or names another path"
for page in man1/$name.1 man1/$name-run.1 man5/$name-policy.5 man5/$name-record.5 man7/$name-security.7; do
  gzip -dc "/usr/share/man/$page.gz" >"$scratch/page" || fail "a page is missing: $page"
  if [ "$name" != sbx ] && grep -E '(Nm|Xr) sbx' "$scratch/page"; then fail "$page is about sbx"; fi
  grep -q "^[.]Nm $name" "$scratch/page" || fail "$page names no $name"
done
[ -s /usr/share/man/man3/sbx.3.gz ] || fail "the page of the library is missing"
offered() { bash --norc -c ". /usr/share/bash-completion/completions/$name; COMP_WORDS=($name do); COMP_CWORD=1
  \$(complete -p $name | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo \"\${COMPREPLY[*]}\""; }
[ "$(offered)" = doctor ] || fail "bash completes nothing for $name: $(offered)"
grep -q "^#compdef $name\$" "/usr/share/zsh/site-functions/_$name" || fail "the completions of zsh are for another program"
grep -q "^complete -c $name " "/usr/share/fish/vendor_completions.d/$name.fish" || fail "the completions of fish are for another program"
# shellcheck disable=SC2046 # words
"$compiler" -std=c++20 -o "$scratch/client.bin" "$scratch/client/main.cpp" $(pkg-config --cflags --libs sbx) || fail "the client does not build"
# A session needs a directory of its user's.
mkdir "$scratch/runtime" && chmod 700 "$scratch/runtime" && chown nobody:nogroup "$scratch/runtime"
as_user XDG_RUNTIME_DIR="$scratch/runtime" "$scratch/client.bin" "/usr/bin/$name" | grep -q good || fail "the client does not work"
if [ "$name" != sbx ]; then
  [ "$(as_user sbx)" = "$foreign" ] || fail "the foreign sbx is another one now"
  rm /usr/bin/sbx
fi
[ -s "/usr/share/doc/$name/examples/data-analysis/analyse.py" ] && [ -x "/usr/share/doc/$name/examples/shebang/hello" ] ||
  fail "the examples are not in the package, or can't be run"
# Removing the program removes its profile; a modified one stays until purge. None stays loaded.
as_root() { dpkg "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "dpkg $1 fails"; }; }
# Simulates an older version's profile: the shipped one has the same text.
sed -i 's/^# For systems/# For old systems/' "/usr/share/sbx/apparmor/$name" "$profile"
as_root -i "$scratch"/packages/*.deb
grep -q '^# For systems' "$profile" || fail "an upgrade leaves the old AppArmor profile"
loads -r || fail "an upgrade does not load the new AppArmor profile"
as_root -r "lib$name-dev" "$name"
loads -R || fail "the AppArmor profile stays loaded after the removal"
[ ! -e "$profile" ] || fail "the AppArmor profile stays after the removal"
as_root -i "$scratch"/packages/*.deb
echo "# changed" >>"$profile"
as_root -r "lib$name-dev" "$name"
[ -e "$profile" ] || fail "a changed AppArmor profile is gone before purge"
: >"$scratch/apparmor"
dpkg -P "lib$name-dev" "$name" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "dpkg can't remove the packages"; }
loads -R || fail "a changed AppArmor profile stays loaded after purge"
left=$(find /usr /etc -xdev \( -path '*/sbx/*' -o -name 'sbx*' -o -name 'libsbx*' -o -name "*$name*" \) -not -path '/usr/local/*' \
  -newer "$scratch/client" 2>/dev/null || :)
[ -z "$left" ] || fail "left after removal: $left"
echo "packages: good"
