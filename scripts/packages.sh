# What the project needs from Debian 12, by purpose; read by ../demo, ../check and tests/bench.
build_libraries="libcli11-dev libtomlplusplus-dev libseccomp-dev libmd-dev libedit-dev libncurses-dev libbsd-dev libfmt-dev nlohmann-json3-dev libnl-3-dev libnl-route-3-dev libidn2-dev libunistring-dev libc-ares-dev libdbus-1-dev"
build="g++ cmake ninja-build lld $build_libraries"
example="python3 python3-pandas python3-matplotlib"
# What the smoke tier asks, ./check without options.
smoke="python3-jsonschema strace util-linux clang-format-19 mandoc git perl ccache iproute2 curl openssl dnsmasq-base"
# The tests that link the code: clang, its sanitizers and libFuzzer.
code="clang-19 clang-tidy-19 libclang-rt-19-dev libgtest-dev libgmock-dev librapidcheck-dev"
# The tests that drive the program, beside those below. runc makes the containers of sandbox.containers, own_uid and outside_work.
driven="valgrind nodejs runc"
# Interpreters and their modules that tests/cells runs cells in; a test that lacks one of them is skipped and says so.
cells="python3-ipython python3-matplotlib python3-nbformat python3-pandas python3-pil python3-seaborn python3-sympy python3-venv nodejs r-base-core"
# What the documents and packages are tested with: real shells, Debian's linter, mypy, and npm for the linter of TOML (90 MB with what
# they need; a test that lacks one of them is skipped and says so).
documents="bash zsh fish lintian mypy pkg-config npm"
# Real programs and test suites of tests/programs (110 MB); its slow tests need 270 MB more.
programs="php-cli ruby lua5.4 jq r-base-core imagemagick cmake curl python3-scipy python3-pytest python3-hypothesis libpython3.11-testsuite"
programs_slow="ffmpeg golang-go default-jdk-headless rustc"
# The small internet of tests/network: its servers and clients.
network="iproute2 curl wget openssl dnsmasq-base nginx-light redis-server redis-tools postgresql postgresql-client python3-requests"
# The guests of tests/vm: an emulator, tools to unpack Debian kernels, and tools to make their disk.
vm="qemu-system-x86 busybox-static e2fsprogs zstd lz4"
# Their slow tests (./check -C slow -L slow): one with systemd, one in a container.
vm_slow="debootstrap crun"
# The peers of the bench targets, and the library of the inner ones.
peers="bubblewrap crun runc firejail passt slirp4netns python3-ipykernel"
bench="libbenchmark-dev"
# A cross build for 64-bit Arm, its guests, and an emulator for single programs. No ipxe-qemu is named: apt would remove
# qemu-system-x86 with its change.
arm64="g++-aarch64-linux-gnu qemu-system-arm qemu-user-static"
# What scripts/arm64-root unpacks for it, besides the libraries above.
arm64_libraries="libstdc++-12-dev libgtest-dev libgmock-dev librapidcheck-dev"
