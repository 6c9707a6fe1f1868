#!/usr/bin/env bash
# Coverage-guided fuzzing of the processor: tools/fuzz.sh [SECONDS [TARGET...]]; an hour for each target unless told.
# What is found is written to out/fuzz/TARGET, and the message says how to run it again.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export PATH="$root/.cache/tools/bin:$PATH"
seconds=${1:-3600}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(decoder interpreter vmcs page_tables)

case $seconds in *[!0-9]* | "")
    echo "fuzz: '$seconds' is no number of seconds. Usage: tools/fuzz.sh [SECONDS [decoder|interpreter|vmcs|page_tables]...]" >&2
    exit 2
    ;;
esac
for target in "${targets[@]}"; do
    [ -f "silicon/x86/fuzz/fuzz_targets/$target.rs" ] || {
        echo "fuzz: there is no target '$target'; there are: decoder interpreter vmcs page_tables" >&2
        exit 2
    }
done
if ! rustup toolchain list | grep -q '^nightly'; then
    echo "fuzz: installing a nightly compiler ..."
    rustup toolchain install nightly --profile minimal
fi
if ! command -v cargo-fuzz >/dev/null; then
    echo "fuzz: building cargo-fuzz into .cache/tools ..."
    cargo install --locked --root .cache/tools cargo-fuzz
fi
cd silicon/x86
for target in "${targets[@]}"; do
    # New inputs go to a folder of their own: the committed corpus stays small.
    found="$root/out/fuzz/$target"
    mkdir -p "$found/corpus" "$found/artifacts"
    echo "fuzz: $target for $seconds s"
    cargo +nightly fuzz run --sanitizer none "$target" "$found/corpus" "tests/fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=4096 -artifact_prefix="$found/artifacts/" \
        -print_final_stats=1
done
