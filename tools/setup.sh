#!/usr/bin/env bash
# Install what is missing on a Debian machine, and say so; do nothing where nothing is missing.
#   usage: tools/setup.sh [build] [guest] [guest32] [bench] [systems]        nothing means all
#     build   compiler, linker and Rust
#     guest   what builds the guest's initramfs
#     guest32 a compiler for 32-bit programs
#     systems what builds a disk with a full Debian
#     bench   QEMU, to compare with
# GLASSVISOR_NO_INSTALL=1: only name what is missing, and fail.
set -euo pipefail

RUST_NEEDED=1.95
declare -A program_of=( # package -> a program or file that shows it is there
    [gcc]=gcc [make]=make [libc6-dev]=/usr/include/stdlib.h [binutils]=readelf [cpio]=cpio [xz-utils]=xz
    [gcc-multilib]=/usr/lib32/libc.a [mmdebstrap]=mmdebstrap [fakeroot]=fakeroot [e2fsprogs]=mke2fs
    [busybox-static]=busybox [qemu-system-x86]=qemu-system-x86_64 [curl]=curl
)

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }
present() { case $1 in /*) [ -e "$1" ] ;; *) command -v "$1" >/dev/null 2>&1 ;; esac }

packages=()
rust=
[ $# -gt 0 ] || set -- build guest guest32 bench systems
for part in "$@"; do
    case $part in
        build) packages+=(gcc libc6-dev make); rust=1 ;;
        guest) packages+=(gcc libc6-dev make binutils cpio xz-utils busybox-static) ;;
        guest32) packages+=(gcc-multilib) ;;
        systems) packages+=(mmdebstrap fakeroot e2fsprogs) ;;
        bench) packages+=(qemu-system-x86) ;;
        *) die "'$part' is none of: build guest guest32 bench systems" ;;
    esac
done

export PATH="$HOME/.cargo/bin:$PATH:/usr/sbin:/sbin"
rust_version() { rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p'; }
rust_is_new_enough() {
    local have
    have=$(rust_version)
    [ -n "$have" ] && command -v cargo >/dev/null && [ "$(printf '%s\n%s\n' "$RUST_NEEDED" "$have" | sort -V | head -n 1)" = "$RUST_NEEDED" ]
}
if [ -n "$rust" ] && ! rust_is_new_enough && ! command -v rustup >/dev/null; then packages+=(curl); fi

missing=()
for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
    present "${program_of[$package]}" || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
    [ "${GLASSVISOR_NO_INSTALL:-0}" != 1 ] || die "missing packages: ${missing[*]}"
    command -v apt-get >/dev/null || die "missing: ${missing[*]} (names of Debian packages); install them with this system's package manager"
    root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "missing packages, and neither root nor sudo: ask for: apt-get install ${missing[*]}"
        root=(sudo)
    fi
    say "installing: ${missing[*]}"
    install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "${missing[@]}")
    "${install[@]}" || { say "fetching package lists, then once more"; "${root[@]}" apt-get -q update; "${install[@]}"; } \
        || die "could not install ${missing[*]}; check the network and the sources of apt"
fi

if [ -n "$rust" ] && ! rust_is_new_enough; then
    have=$(rust_version)
    [ "${GLASSVISOR_NO_INSTALL:-0}" != 1 ] || die "missing: Rust $RUST_NEEDED or newer (found: ${have:-none})"
    if command -v rustup >/dev/null; then
        say "updating Rust ${have:-} to the stable release"
        rustup toolchain install stable --profile minimal -c rustfmt -c clippy
        rustup default stable
    else
        say "installing Rust (stable) with rustup into ~/.cargo and ~/.rustup"
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y -q --profile minimal -c rustfmt -c clippy
    fi
    rust_is_new_enough || die "Rust is still $(rust_version), $RUST_NEEDED is needed; see https://rustup.rs"
fi
if [ -n "$rust" ]; then
    for component in rustfmt clippy; do
        present "cargo-${component/rustfmt/fmt}" || rustup component add "$component" || die "cargo's $component is missing"
    done
fi
say "all present ($*)"
