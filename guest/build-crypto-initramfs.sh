#!/usr/bin/env bash
# Build an initramfs in which Debian's kernel tests its vector and cryptographic code: the small initramfs, and behind it
# the kernel's crypto modules and an init that loads them. Each module, as it registers its algorithms, runs the kernel's
# own known-answer tests (crypto/testmgr.c) on them.
#   usage: guest/build-crypto-initramfs.sh VERSION [OUTPUT]
# Result: guest/build/crypto-VERSION.cpio; boot it with rdinit=/crypto
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/apt-fetch.sh"
umask 022
export LC_ALL=C TZ=UTC

[ $# -ge 1 ] && [ $# -le 2 ] || die "expected the kernel's version." "usage: guest/build-crypto-initramfs.sh VERSION [OUTPUT]"
version=$1
output=${2:-$repo_root/guest/build/crypto-$version.cpio}
modules=$cache/kernels/$version/modules
base=$repo_root/guest/build/initramfs-$version.cpio
[ -d "$modules" ] || die "there is no kernel $version in $cache/kernels." "Run guest/fetch-kernel.sh $version first."
[ -f "$base" ] || die "there is no $base." "Run guest/build-initramfs.sh $version first."
need cpio cpio
need xz xz-utils

# Portable forms first: what is tested falls back to them, and some are compared with them.
wanted=(
    ghash-generic xts gcm cts crypto_null chacha_generic poly1305_generic nhpoly1305 serpent_generic twofish_generic
    camellia_generic cast5_generic
    aesni-intel ghash-clmulni-intel crc32c-intel crc32-pclmul crct10dif-pclmul sha1-ssse3 sha256-ssse3 sha512-ssse3
    aegis128-aesni chacha-x86_64 poly1305-x86_64 nhpoly1305-avx2 curve25519-x86_64 serpent-avx2 twofish-avx-x86_64
    camellia-aesni-avx2 cast5-avx-x86_64
)

work=$(mktemp -d "$(dirname "$output")/.crypto.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/lib/crypto"
install -m 755 "$repo_root/guest/initramfs/crypto" "$root/crypto"

# A module and what it depends on, dependencies first; what is built in has no file and needs none.
declare -A taken=()
take_module() {
    local name=${1//-/_} file dependency
    [ -z "${taken[$name]:-}" ] || return 0
    taken[$name]=1
    file=$(find "$modules/" -name "${name//_/[-_]}.ko*" -print -quit)
    [ -n "$file" ] || return 0
    case $file in
        *.xz) xz -dc "$file" >"$root/lib/crypto/$name.ko" ;;
        *) cp "$file" "$root/lib/crypto/$name.ko" ;;
    esac
    for dependency in $(grep -azoE '^depends=[^[:cntrl:]]*' "$root/lib/crypto/$name.ko" | tr '\0,' '\n\n' | sed 's/^depends=//'); do
        take_module "$dependency"
    done
    echo "$name" >>"$root/lib/crypto/order"
}
for name in "${wanted[@]}"; do take_module "$name"; done

find "$root" -exec touch -h -d @0 {} +
(cd "$root" && find . -mindepth 1 -print0 | sort -z | cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) >"$work/more"
# Archives may follow one another; newc pads each to 512 bytes.
cat "$base" "$work/more" >"$work/out"
mv "$work/out" "$output"
say "$output: $(stat -c %s "$output") bytes, $(wc -l <"$root/lib/crypto/order") modules"
