#!/usr/bin/env bash
# What `make test` and CI run. Stops at the first step that fails and names it.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-auto}

step=start
started=$SECONDS
trap '[ $? -eq 0 ] || echo "test: FAILED at: $step" >&2' EXIT
run() { # run TITLE COMMAND...
    step=$1; shift
    echo "test: ---- $step: $*"
    local before=$SECONDS
    "$@"
    echo "test: $step took $((SECONDS - before)) s"
}

run "format" cargo fmt --all --check
run "tiers and licences" cargo run -q -p tiers
run "lints" cargo clippy -q --workspace --all-targets -- -D warnings
run "guest programs" make -s -C guest/workloads all
run "guest programs, natively" guest/build/workload selfcheck
run "32-bit guest programs, natively" guest/build/workload-i386 selfcheck
run "kernel 6.12" guest/fetch-kernel.sh 6.12
run "kernel 6.1" guest/fetch-kernel.sh 6.1
run "32-bit kernel 6.1" guest/fetch-kernel.sh 6.1-686-pae
run "initramfs for 6.12" guest/build-initramfs.sh 6.12
run "initramfs for 6.1" guest/build-initramfs.sh 6.1
run "SeaBIOS" guest/fetch-firmware.sh seabios
run "memtest86+" guest/fetch-firmware.sh memtest86+
run "32-bit initramfs for 6.12" guest/build-initramfs.sh 6.12-i386
run "32-bit initramfs for 6.1" guest/build-initramfs.sh 6.1-686-pae
run "guest scripts" guest/test-scripts.sh
# The tests of vmm boot guests: those run at release speed, below.
run "unit and property tests" cargo test -q --workspace --exclude vmm
run "unit tests of vmm" cargo test -q -p vmm --lib --bins
if compgen -G 'vmm/tests/*.rs' >/dev/null; then
    run "boot tests" cargo test -q -p vmm --release --test '*'
fi
echo "test: all passed in $((SECONDS - started)) s"
