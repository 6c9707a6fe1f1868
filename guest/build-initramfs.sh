#!/usr/bin/env bash
# Build the small initramfs that the demo, the tests and the benchmarks boot: BusyBox, our init, our workloads and the
# kernel modules of the virtio block device. Neither root nor an installed kernel is needed. The same inputs give the
# same bytes. Uncompressed, because inflating would be the guest's work.
#   usage: guest/build-initramfs.sh VERSION [OUTPUT]      VERSION as in fetch-kernel.sh; 'none' leaves the modules out
# For a 32-bit kernel (-686-pae), and for VERSION-i386 (6.12-i386), BusyBox and workloads are 32-bit programs.
# Result: guest/build/initramfs-VERSION.cpio
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/apt-fetch.sh"
umask 022
export LC_ALL=C TZ=UTC

[ $# -ge 1 ] && [ $# -le 2 ] || die "expected the kernel's version." "usage: guest/build-initramfs.sh 6.12|6.1|6.1-686-pae|6.12-i386|none [OUTPUT]"
version=$1
output=${2:-$repo_root/guest/build/initramfs-$version.cpio}
modules=$cache/kernels/${version%-i386}/modules
case $version in
    *-686-pae | *-i386) architecture=i386 elf_machine='Intel 80386' workload=workload-i386 busybox_cache=$cache/busybox-i386 ;;
    *) architecture=amd64 elf_machine=X86-64 workload=workload busybox_cache=$cache/busybox ;;
esac
need cpio cpio
need gcc gcc
need readelf binutils
need make make
if [ "$version" != none ]; then
    [ -d "$modules" ] || die "there is no kernel ${version%-i386} in $cache/kernels." "Run guest/fetch-kernel.sh ${version%-i386} first."
    need xz xz-utils
fi

# An executable for the guest's processor that asks for no interpreter.
is_static() {
    local headers
    [ -x "$1" ] && headers=$(readelf -hl "$1" 2>/dev/null) && [[ $headers == *$elf_machine* && $headers != *INTERP* ]]
}

busybox=
for candidate in "${BUSYBOX:-}" "$(command -v busybox || true)" "$busybox_cache/busybox"; do
    if [ -n "$candidate" ] && is_static "$candidate"; then busybox=$candidate; break; fi
done
if [ -z "$busybox" ]; then
    need apt-get apt
    say "downloading busybox-static for $architecture ..."
    [ "$architecture" = amd64 ] || use_architecture "$architecture"
    deb=$(download_package busybox-static "$busybox_cache/deb" || true)
    if [ -z "$deb" ]; then
        use_private_lists
        deb=$(download_package busybox-static "$busybox_cache/deb") || die "busybox-static cannot be downloaded." \
            "Install it (sudo apt-get install busybox-static), or set BUSYBOX to a static BusyBox."
    fi
    dpkg-deb -x "$deb" "$busybox_cache/root"
    mv "$(find "$busybox_cache/root" -type f -path "*/bin/busybox" -print -quit)" "$busybox_cache/busybox"
    rm -rf "$busybox_cache/root" "$busybox_cache/deb"
    busybox=$busybox_cache/busybox
fi

make -s -C "$repo_root/guest/workloads" "../build/$workload"

mkdir -p "$(dirname "$output")"
work=$(mktemp -d "$(dirname "$output")/.initramfs.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,lib/modules,proc,sys,tmp}
install -m 755 "$repo_root/guest/initramfs/init" "$root/init"
install -m 755 "$busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
install -m 755 "$repo_root/guest/build/$workload" "$root/bin/workload"

# A module and what it depends on, dependencies first; a driver that is built in has no file and needs none.
declare -A taken=()
: >"$root/lib/modules/order"
take_module() {
    local name=$1 file dependency
    [ -z "${taken[$name]:-}" ] || return 0
    taken[$name]=1
    file=$(find "$modules" \( -name "$name.ko" -o -name "$name.ko.xz" \) -print -quit)
    [ -n "$file" ] || return 0
    case $file in
        *.xz) xz -dc "$file" >"$work/$name.ko" ;;
        *) cp "$file" "$work/$name.ko" ;;
    esac
    for dependency in $(grep -azoE '^depends=[^[:cntrl:]]*' "$work/$name.ko" | tr '\0,' '\n\n' | sed 's/^depends=//'); do
        take_module "$dependency"
    done
    install -m 644 "$work/$name.ko" "$root/lib/modules/$name.ko"
    echo "$name.ko" >>"$root/lib/modules/order"
}
if [ "$version" != none ]; then
    for name in virtio_mmio virtio_pci virtio_blk; do take_module "$name"; done
fi

find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . -print0 | sort -z | cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) >"$work/out"
mv "$work/out" "$output"
say "$output: $(stat -c %s "$output") bytes, sha256 $(sha256sum "$output" | cut -c1-16)..."
