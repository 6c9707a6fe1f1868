#!/usr/bin/env bash
# Build a full Debian user space on a raw ext4 image: systemd, apt and dpkg, Python with its own test suite, stress-ng, and
# guest/debian/suite, which runs them. By mmdebstrap, from the mirrors that this system's apt uses, as root or not.
#   usage: guest/build-debian-disk.sh [OUTPUT]
# Result: .cache/debian/disk.img (a run of a guest changes it: give guests a copy), complete or absent
# Environment: GLASSVISOR_CACHE (instead of .cache), DEBIAN_RELEASE (instead of bookworm), GLASSVISOR_REFRESH=1 (again
#   although there is one).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/apt-fetch.sh"
umask 022

[ $# -le 1 ] || die "expected at most one argument." "usage: guest/build-debian-disk.sh [OUTPUT]"
output=${1:-$cache/debian/disk.img}
release=${DEBIAN_RELEASE:-bookworm}
packages=systemd-sysv,udev,dbus,kmod,procps,python3,libpython3.11-testsuite,stress-ng
# Free space for what a guest writes.
ROOM_MIB=400
export SOURCE_DATE_EPOCH=1577836800

# What goes into the image besides packages, to see whether it has changed.
recipe=$(cat "$0" "$repo_root"/guest/debian/* | sha256sum | cut -c1-16)
if [ -s "$output" ] && [ "$(cat "$output.recipe" 2>/dev/null)" = "$recipe $release" ] && [ "${GLASSVISOR_REFRESH:-0}" != 1 ]; then
    say "have $output"
    exit 0
fi
need mmdebstrap mmdebstrap
need mke2fs e2fsprogs
owner=()
if [ "$(id -u)" -ne 0 ]; then need fakeroot fakeroot; owner=(fakeroot); fi

# Debian's own sources of the wanted release, as apt knows them.
sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null \
    | grep -E " $release(-updates|-security)? main\$" | sort -u || true)
grep -q " $release main\$" <<<"$sources" || sources="deb http://deb.debian.org/debian $release main"

mkdir -p "$(dirname "$output")"
work=$(mktemp -d "$(dirname "$output")/.disk.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "building Debian $release (downloads about 100 MB; some minutes) ..."
# `hello` stays outside of the package database: the guest installs it from the file.
mmdebstrap --variant=minbase --include="$packages" --format=tar \
    --customize-hook='cd "$1/srv" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q download hello && mv hello_*.deb hello.deb' \
    --customize-hook="copy-in '$repo_root/guest/debian/suite' /srv" \
    --customize-hook="copy-in '$repo_root/guest/debian/glassvisor.target' '$repo_root/guest/debian/glassvisor-suite.service' /etc/systemd/system" \
    --customize-hook='chmod 755 "$1/srv/suite" && echo glassvisor >"$1/etc/hostname" && : >"$1/etc/fstab"' \
    "$release" "$work/root.tar" - <<<"$sources" >"$work/log" 2>&1 \
    || { tail -n 20 "$work/log" >&2; die "mmdebstrap failed." "Check the network and the sources of apt, then run this again."; }

say "writing the file system ..."
PATH=$PATH:/usr/sbin:/sbin "${owner[@]}" sh -eu -c '
    mkdir "$1/root"
    tar -C "$1/root" --numeric-owner --exclude="./dev/*" -xf "$1/root.tar"
    size=$(du -sm "$1/root" | cut -f1)
    E2FSPROGS_FAKE_TIME=$SOURCE_DATE_EPOCH mke2fs -q -t ext4 -L debian -U 6c617373-7669-736f-7200-000000000001 \
        -E hash_seed=6c617373-7669-736f-7200-000000000002 -d "$1/root" "$1/disk.img" "$((size * 5 / 4 + $2))M"
    rm -rf "$1/root"
' sh "$work" "$ROOM_MIB"
mv "$work/disk.img" "$output"
echo "$recipe $release" >"$output.recipe"
say "$output: $(du -m --apparent-size "$output" | cut -f1) MiB, of which $(du -m "$output" | cut -f1) are used"
