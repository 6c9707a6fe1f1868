#!/usr/bin/env bash
# What takes too long for each change: cargo-deny (which has to be built first), many more property-test cases, tests
# marked #[ignore], real systems, the guest's self-check under QEMU, and a short benchmark.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export PATH="$root/.cache/tools/bin:$PATH"

if ! command -v cargo-deny >/dev/null; then
    echo "nightly: building cargo-deny into .cache/tools (several minutes) ..."
    cargo install --locked --root .cache/tools cargo-deny
fi
cargo deny check bans licenses sources

guest/build-crypto-initramfs.sh 6.12
echo "nightly: property tests, 20000 cases each, and ignored tests"
PROPTEST_CASES=${PROPTEST_CASES:-20000} cargo test -q --profile fast --workspace -- --include-ignored --skip pae:: --skip debian::

echo "nightly: real systems"
tools/systems.sh

echo "nightly: random instructions against this processor, two million cases of a seed that changes daily"
GLASSVISOR_CASES=${GLASSVISOR_CASES:-2000000} GLASSVISOR_SEED=$(date +%Y%m%d) \
    cargo test -q --profile fast -p silicon-x86 --test random -- --nocapture

echo "nightly: fuzz targets of the processor, half a million inputs each"
GLASSVISOR_CASES=${GLASSVISOR_FUZZ_CASES:-500000} GLASSVISOR_SEED=$(date +%Y%m%d) \
    cargo test -q --profile fast -p silicon-x86 --test fuzz

echo "nightly: the guest's self-check under QEMU TCG (4 processors)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
timeout 600 qemu-system-x86_64 -accel tcg -m 512 -smp 4 -display none -serial stdio -monitor none -no-reboot \
    -kernel .cache/kernels/6.12/vmlinuz -initrd guest/build/initramfs-6.12.cpio \
    -append "console=ttyS0 quiet panic=-1 gv.run=selfcheck" </dev/null | tee "$log"
# TCG does not raise #XM, so that one check fails there; any other failure is ours.
if grep '^SELFCHECK failed check=' "$log" | grep -v 'check=float_traps:'; then exit 1; fi
grep -q '^GLASSVISOR-DONE' "$log" || { echo "nightly: the guest did not reach its end" >&2; exit 1; }

cargo run -q --release -p lab -- bench --smoke --out out/nightly
