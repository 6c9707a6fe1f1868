//! What kernels use interrupt vectors for.

/// What Linux uses a vector for (Linux, `arch/x86/include/asm/irq_vectors.h`); other kernels choose their own.
pub fn vector_use(vector: u8) -> &'static str {
    match vector {
        0x00..=0x1f => "exception range",
        0x30..=0x3f => "Linux: ISA interrupt",
        0x80 => "Linux: system call (int 0x80)",
        0xec => "Linux: local APIC timer",
        0xef => "Linux: managed interrupt shutdown",
        0xf0..=0xf2 => "Linux: posted interrupts",
        0xf3 => "Linux: hypervisor callback",
        0xf4 => "Linux: deferred machine check",
        0xf6 => "Linux: irq_work",
        0xf7 => "Linux: platform IPI",
        0xf8 => "Linux: reboot IPI",
        0xf9 => "Linux: machine-check threshold",
        0xfa => "Linux: thermal event",
        0xfb => "Linux: call function (single) IPI",
        0xfc => "Linux: call function IPI",
        0xfd => "Linux: reschedule IPI",
        0xfe => "Linux: local APIC error",
        0xff => "Linux: spurious",
        _ => "device",
    }
}
