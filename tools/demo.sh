#!/usr/bin/env bash
# Boot an unmodified Debian kernel on the modelled machine; `make demo` sets everything up and runs this.
# Environment: GLASSVISOR (the program), KERNEL (6.12), CPUS (1), MEMORY (512M), TIME (virtual), CPU (the default model), APPEND (more kernel parameters).
set -euo pipefail
cd "$(dirname "$0")/.."
kernel=${KERNEL:-6.12}
glassvisor=${GLASSVISOR:-target/release/glassvisor}

boot=("$glassvisor" boot --memory "${MEMORY:-512M}" --cpus "${CPUS:-1}" --time "${TIME:-virtual}" --stats table)
# The guest's shell has the terminal to itself.
case " ${APPEND:-} " in *" gv.shell "*) ;; *) boot+=(--progress) ;; esac
[ -z "${CPU:-}" ] || boot+=(--cpu "$CPU")

if guest/fetch-kernel.sh "$kernel"; then
    guest/build-initramfs.sh "$kernel"
    boot+=(--kernel ".cache/kernels/$kernel/vmlinuz" --initrd "guest/build/initramfs-$kernel.cpio"
        --append "console=ttyS0 quiet panic=-1 ${APPEND:-}")
else
    echo "demo: no Debian kernel can be had here (see above): running the bare-metal guest that is built into the program."
    boot=("$glassvisor" boot --builtin --progress --stats table)
fi
printf 'demo: '; printf '%q ' "${boot[@]}"; echo
exec "${boot[@]}"
