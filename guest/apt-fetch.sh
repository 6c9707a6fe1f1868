# Sourced by the scripts next to it: obtain Debian packages without installing them and without being root.
# The package lists of the system are used when they know the package; otherwise lists of our own are fetched into
# the cache folder from the same sources. apt checks signatures and checksums in both cases.

repo_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${GLASSVISOR_CACHE:-$repo_root/.cache}
private_lists=()
# What tells apt that packages are for another architecture than the system's (use_architecture).
foreign=()

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { say "error: $1"; shift; for hint in "$@"; do printf '  %s\n' "$hint" >&2; done; exit 1; }

need() { # need PROGRAM DEBIAN-PACKAGE
    command -v "$1" >/dev/null 2>&1 || die "'$1' is missing." "Install it: sudo apt-get install $2   (or run 'make setup')"
}

# From here on, packages for Debian architecture $1, which need not be one of the system's: its dpkg is left as it is, and
# lists of our own are used.
use_architecture() {
    foreign=(-o "APT::Architecture=$1" -o "APT::Architectures=$1" -o Dir::State::status=/dev/null)
    private_lists=(-o "Dir::State::lists=$cache/apt-$1/lists" -o "Dir::Cache=$cache/apt-$1" "${foreign[@]}")
}

use_private_lists() {
    local state=$cache/apt
    [ ${#foreign[@]} -eq 0 ] || state=$cache/apt-${foreign[1]#*=}
    mkdir -p "$state/lists/partial" "$state/archives/partial"
    private_lists=(-o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state" -o "APT::Sandbox::User=$(id -un)" "${foreign[@]}")
    say "fetching package lists into $state (the system's are empty or too old, or for another architecture) ..."
    # A source that fails need not be the one that is wanted: whether the package is there decides.
    apt-get "${private_lists[@]}" -q -o Acquire::Languages=none update >&2 || say "apt-get update reported errors; going on with what it got"
}

# Newest package whose whole name matches the extended regular expression $1; nothing when there is none.
newest_package() {
    apt-cache "${private_lists[@]}" search --names-only "$1" 2>/dev/null | cut -d' ' -f1 | sort -V | tail -n 1
}

# Download package $1 into folder $2 and print the path of the .deb. The name may carry =VERSION.
download_package() {
    local package=$1 into=$2
    mkdir -p "$into"
    (cd "$into" && rm -f ./*.deb && apt-get "${private_lists[@]}" -q -o "APT::Sandbox::User=$(id -un)" download "$package" >&2) || return 1
    find "$into" -maxdepth 1 -name '*.deb' -print -quit
}
