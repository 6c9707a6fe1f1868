#!/usr/bin/env bash
# Obtain firmware, or what starts where firmware ends: download Debian's package, unpack it, install nothing.
#   usage: guest/fetch-firmware.sh seabios|memtest86+
# Result, complete or absent:
#   .cache/firmware/PACKAGE/         seabios: the images of its usr/share/seabios (bios-256k.bin, ...)
#                                    memtest86+: the images of its boot (memtest86+x64.bin, memtest86+ia32.bin)
#   .cache/firmware/PACKAGE/version  the package's version
# Environment: GLASSVISOR_CACHE (instead of .cache), FIRMWARE_DEB (use this package file, no network),
#   GLASSVISOR_REFRESH=1 (fetch again although there is one).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/apt-fetch.sh"

usage="usage: guest/fetch-firmware.sh seabios|memtest86+"
[ $# -eq 1 ] || die "expected one argument: the package." "$usage"
package=$1
case $package in
    seabios) folder=usr/share/seabios pattern='*.bin' wanted=bios-256k.bin ;;
    memtest86+) folder=boot pattern='*.bin' wanted='memtest86+x64.bin' ;;
    *) die "'$package' is not a package that is used here." "$usage" ;;
esac
target=$cache/firmware/$package

if [ -s "$target/version" ] && [ -s "$target/$wanted" ] && [ "${GLASSVISOR_REFRESH:-0}" != 1 ]; then
    say "have $package $(cat "$target/version") in $target"
    exit 0
fi
need dpkg-deb dpkg
mkdir -p "$cache/firmware"
work=$(mktemp -d "$cache/firmware/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

if [ -n "${FIRMWARE_DEB:-}" ]; then
    [ -r "$FIRMWARE_DEB" ] || die "FIRMWARE_DEB=$FIRMWARE_DEB cannot be read." "Give the path of a $package package."
    deb=$FIRMWARE_DEB
else
    need apt-get apt
    say "downloading $package (under 1 MB) ..."
    if ! deb=$(download_package "$package" "$work/deb"); then
        use_private_lists
        deb=$(download_package "$package" "$work/deb") || die "download of $package failed." \
            "It is in Debian 12 and 13. Check the network and /etc/apt/sources.list.d/, or download the package from" \
            "https://packages.debian.org/ and run: FIRMWARE_DEB=FILE guest/fetch-firmware.sh $package"
    fi
fi

dpkg-deb -x "$deb" "$work/root" || die "$deb is not a readable Debian package." "Delete it and fetch it again."
mkdir "$work/out"
find "$work/root/$folder" -maxdepth 1 -name "$pattern" -exec mv -t "$work/out" {} + 2>/dev/null || true
[ -s "$work/out/$wanted" ] || die "$(basename "$deb") holds no $folder/$wanted." "Is it Debian's package $package?"
dpkg-deb -f "$deb" Version >"$work/out/version"
chmod 755 "$work/out"
rm -rf "$target"
mv -T "$work/out" "$target"
say "$package $(cat "$target/version") is in $target"
