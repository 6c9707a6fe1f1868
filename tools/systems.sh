#!/usr/bin/env bash
# Real systems on the modelled machine: Debian's 32-bit kernel, 32-bit programs on the 64-bit kernel, and a full Debian
# user space on a disk (systemd, apt and dpkg, Python's own tests, stress-ng). Each step shows its result as it ends.
#   usage: tools/systems.sh [FILTER...]     names, or parts of names, of tests; nothing means all of pae, compat, debian
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- pae:: compat:: debian::

guest/fetch-kernel.sh 6.12
guest/fetch-kernel.sh 6.1-686-pae
make -s -C guest/workloads all
for name in 6.12 6.12-i386 6.1-686-pae; do guest/build-initramfs.sh "$name"; done
guest/build-debian-disk.sh

tests=(cargo test --release -p vmm --test guests --)
for filter in "$@"; do
    "${tests[@]}" --list "$filter" | grep ': test$' >/dev/null || { echo "systems: error: no test has '$filter' in its name" >&2; exit 1; }
done
echo "systems: booting; everything takes about a quarter of an hour on two free processors"
exec "${tests[@]}" --include-ignored --nocapture "$@"
