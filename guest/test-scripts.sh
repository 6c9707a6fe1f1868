#!/usr/bin/env bash
# The guest scripts: the same bytes on each build, an initramfs that holds what init needs, and clear refusals.
# Uses the 6.12 kernel that fetch-kernel.sh left, and no network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "test-scripts: FAILED: $*" >&2; exit 1; }
refuses() { # refuses TEXT COMMAND...: exits with 1 and names TEXT
    local text=$1 status=0; shift
    "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "$* exited with $status, not 1"
    grep -q -- "$text" "$work/out" || { cat "$work/out" >&2; fail "$* does not say '$text'"; }
}

"$here/build-initramfs.sh" 6.12 "$work/one.cpio" 2>/dev/null
sleep 1 # another second on the clock
(umask 077 && TZ=Asia/Tokyo "$here/build-initramfs.sh" 6.12 "$work/two.cpio" 2>/dev/null)
cmp "$work/one.cpio" "$work/two.cpio" || fail "two builds of the initramfs differ"
for file in init bin/busybox bin/sh bin/workload lib/modules/virtio_blk.ko lib/modules/order; do
    cpio --quiet -t <"$work/one.cpio" | grep -qx "$file" || fail "the initramfs has no $file"
done

refuses "is not a kernel version" "$here/fetch-kernel.sh" newest
refuses "expected one argument" "$here/fetch-kernel.sh"
refuses "cannot be read" env GLASSVISOR_CACHE="$work/cache" KERNEL_DEB="$work/none.deb" "$here/fetch-kernel.sh" 6.12
head -c 5000 /dev/urandom >"$work/garbage.deb"
refuses "not a readable Debian package" env GLASSVISOR_CACHE="$work/cache" KERNEL_DEB="$work/garbage.deb" "$here/fetch-kernel.sh" 6.12
[ ! -e "$work/cache/kernels/6.12" ] || fail "a failed fetch left a kernel behind"
[ -z "$(ls -A "$work/cache/kernels")" ] || fail "a failed fetch left files behind"
refuses "is not a package" "$here/fetch-firmware.sh" grub
refuses "not a readable Debian package" env GLASSVISOR_CACHE="$work/cache" FIRMWARE_DEB="$work/garbage.deb" "$here/fetch-firmware.sh" seabios
[ -z "$(ls -A "$work/cache/firmware")" ] || fail "a failed fetch left files behind"
refuses "fetch-kernel.sh 9.9" "$here/build-initramfs.sh" 9.9
refuses "none of the names" bash -c "'$here/build/workload' nonsense || exit 1"
echo "test-scripts: ok"
