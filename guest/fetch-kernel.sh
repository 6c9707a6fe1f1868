#!/usr/bin/env bash
# Obtain an unmodified Debian kernel: download the newest signed package, unpack it, install nothing.
#   usage: guest/fetch-kernel.sh 6.12|6.1|6.1-686-pae
# The first two are cloud kernels for amd64, the last one is the 32-bit kernel of i386 with PAE.
# Result, complete or absent:
#   .cache/kernels/VERSION/vmlinuz     the bzImage
#   .cache/kernels/VERSION/modules/    the package's lib/modules/RELEASE (kernel/..., no modules.dep)
#   .cache/kernels/VERSION/config      the kernel's configuration
#   .cache/kernels/VERSION/version     kernel release, and the package's version
# Environment: GLASSVISOR_CACHE (instead of .cache), KERNEL_DEB (use this package file, no network),
#   GLASSVISOR_REFRESH=1 (fetch again although there is one).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/apt-fetch.sh"

usage="usage: guest/fetch-kernel.sh 6.12|6.1|6.1-686-pae"
[ $# -eq 1 ] || die "expected one argument: the version." "$usage"
case $1 in
    [0-9]*.[0-9]*-686-pae) prefix=${1%-686-pae} flavour=686-pae architecture=i386 ;;
    *-*) die "'$1' is not a kernel version." "$usage" ;;
    [0-9]*.[0-9]*) prefix=$1 flavour=cloud-amd64 architecture=amd64 ;;
    *) die "'$1' is not a kernel version." "$usage" ;;
esac
target=$cache/kernels/$1

if [ -s "$target/version" ] && [ -s "$target/vmlinuz" ] && [ "${GLASSVISOR_REFRESH:-0}" != 1 ]; then
    say "have $(head -n 1 "$target/version") in $target"
    exit 0
fi
need dpkg-deb dpkg
mkdir -p "$cache/kernels"
work=$(mktemp -d "$cache/kernels/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ -n "${KERNEL_DEB:-}" ]; then
    [ -r "$KERNEL_DEB" ] || die "KERNEL_DEB=$KERNEL_DEB cannot be read." "Give the path of a linux-image-*-$flavour package."
    deb=$KERNEL_DEB
else
    need apt-get apt
    [ "$architecture" = amd64 ] || use_architecture "$architecture"
    # The signed images: 6.12.117+deb12-cloud-amd64, 6.1.0-56-cloud-amd64; neither -dbg nor -unsigned nor -rt nor the meta package.
    pattern="^linux-image-${prefix//./\\.}\\.[0-9.]+([+-][a-qs-z0-9.+][a-z0-9.+]*)*-$flavour\$"
    name=$(newest_package "$pattern")
    if [ -n "$name" ]; then
        say "downloading $name (35 to 55 MB) ..."
        deb=$(download_package "$name" "$work/deb") || { say "the system's package lists look out of date"; name=; }
    fi
    if [ -z "$name" ]; then
        use_private_lists
        name=$(newest_package "$pattern")
        [ -n "$name" ] || die "no Debian kernel $1 in this system's package sources." \
            "Kernels 6.12 are in Debian 13 and in Debian 12 with security updates, 6.1 in Debian 12." \
            "Add such a source to /etc/apt/sources.list.d/, or download a linux-image-$prefix*-$flavour package from" \
            "https://packages.debian.org/ and run: KERNEL_DEB=FILE guest/fetch-kernel.sh $1"
        say "downloading $name (35 to 55 MB) ..."
        deb=$(download_package "$name" "$work/deb") || die "download of $name failed." "Check the network, then run this again."
    fi
fi

say "unpacking $(basename "$deb") ..."
dpkg-deb -x "$deb" "$work/root" || die "$deb is not a readable Debian package." "Delete it and fetch it again."
vmlinuz=$(find "$work/root/boot" -maxdepth 1 -name 'vmlinuz-*' -print -quit 2>/dev/null || true)
[ -n "$vmlinuz" ] || die "$(basename "$deb") holds no boot/vmlinuz-*." "Is it a signed linux-image package (not -dbg, not a meta package)?"
release=${vmlinuz##*/vmlinuz-}
modules=$work/root/lib/modules/$release
[ -d "$modules" ] || modules=$work/root/usr/lib/modules/$release
[ -d "$modules/kernel" ] || die "$(basename "$deb") holds no modules for $release." "Is it a linux-image package?"

mkdir "$work/out"
mv "$vmlinuz" "$work/out/vmlinuz"
mv "$modules" "$work/out/modules"
if [ -f "$work/root/boot/config-$release" ]; then mv "$work/root/boot/config-$release" "$work/out/config"; fi
printf '%s\n%s\n' "$release" "$(dpkg-deb -f "$deb" Version)" >"$work/out/version"
chmod 755 "$work/out"
rm -rf "$target"
mv -T "$work/out" "$target"
say "kernel $release is in $target"
