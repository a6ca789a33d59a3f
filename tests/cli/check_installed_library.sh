#!/bin/sh
# check_installed_library.sh CMAKE BUILD COMPILER CLIENT SBX: installs the library into a scratch prefix and builds a
# client against it, with CMake's package and with pkg-config's.
set -eu
cmake=$1 build=$2 compiler=$3 client=$4 sbx=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" --install "$build" --prefix "$scratch/prefix" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
for installed in bin/sbx include/sbx/run.hpp share/man/man1/sbx-run.1 share/man/man3/sbx.3 share/man/man5/sbx-record.5 \
    share/bash-completion/completions/sbx share/zsh/site-functions/_sbx share/fish/vendor_completions.d/sbx.fish \
    share/sbx/schema/sbx.run.1.json share/sbx/schema/sbx.events.1.json share/sbx/python/sbx.py share/doc/sbx/examples/data-analysis/analyse.py; do
  [ -s "$scratch/prefix/$installed" ] || { echo "not installed: $installed"; exit 1; }
done

grep -q "\"$scratch/prefix/bin/sbx\"" "$scratch/prefix/share/sbx/apparmor/sbx" || { echo "the AppArmor profile names another prefix"; exit 1; }

# The man page's example.
sed -n '/^#include/,/^}/s/[\]en/\\n/;/^#include/,/^}/p' "$scratch/prefix/share/man/man3/sbx.3" >"$scratch/example.cpp"
"$compiler" -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Werror -fsyntax-only -I "$scratch/prefix/include" "$scratch/example.cpp" ||
  { echo "the example of sbx(3) does not compile"; exit 1; }

"$cmake" -S "$client" -B "$scratch/client" -DCMAKE_PREFIX_PATH="$scratch/prefix" -DCMAKE_CXX_COMPILER="$compiler" >"$scratch/log" 2>&1 &&
  "$cmake" --build "$scratch/client" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
"$scratch/client/client" "$sbx"

# When a client is killed, its run ends too: nobody has the FIFO open any more. More data than a pipe holds is written
# only after the run has begun.
mkfifo "$scratch/input"
"$scratch/client/client" "$sbx" wait <"$scratch/input" &
exec 4>"$scratch/input"
head -c 1000000 /dev/zero >&4
kill -KILL $!
status=0
timeout 30 cat /dev/zero >&4 2>/dev/null || status=$?
[ $status != 124 ] || { echo "a run outlives the client that was killed"; exit 1; }
