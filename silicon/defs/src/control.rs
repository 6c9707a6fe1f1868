//! Control registers and EFER ("Control Registers", "Extended Feature Enable Register").

pub mod cr0 {
    pub const PE: u64 = 1 << 0;
    pub const MP: u64 = 1 << 1;
    pub const EM: u64 = 1 << 2;
    pub const TS: u64 = 1 << 3;
    pub const ET: u64 = 1 << 4;
    pub const NE: u64 = 1 << 5;
    pub const WP: u64 = 1 << 16;
    pub const AM: u64 = 1 << 18;
    pub const NW: u64 = 1 << 29;
    pub const CD: u64 = 1 << 30;
    pub const PG: u64 = 1 << 31;
}

pub mod cr3 {
    /// User pointers carry metadata in bits 62:57 ("Linear-Address Masking").
    pub const LAM_U57: u64 = 1 << 61;
    /// User pointers carry metadata in bits 62:48, where [`LAM_U57`] is clear.
    pub const LAM_U48: u64 = 1 << 62;
    /// Of the source operand of MOV to CR3: keep the translations of the PCID.
    pub const KEEP_TRANSLATIONS: u64 = 1 << 63;
}

pub mod cr4 {
    pub const VME: u64 = 1 << 0;
    pub const PVI: u64 = 1 << 1;
    pub const TSD: u64 = 1 << 2;
    pub const DE: u64 = 1 << 3;
    pub const PSE: u64 = 1 << 4;
    pub const PAE: u64 = 1 << 5;
    pub const MCE: u64 = 1 << 6;
    pub const PGE: u64 = 1 << 7;
    pub const PCE: u64 = 1 << 8;
    pub const OSFXSR: u64 = 1 << 9;
    pub const OSXMMEXCPT: u64 = 1 << 10;
    pub const UMIP: u64 = 1 << 11;
    pub const LA57: u64 = 1 << 12;
    pub const VMXE: u64 = 1 << 13;
    pub const SMXE: u64 = 1 << 14;
    pub const FSGSBASE: u64 = 1 << 16;
    pub const PCIDE: u64 = 1 << 17;
    pub const OSXSAVE: u64 = 1 << 18;
    pub const SMEP: u64 = 1 << 20;
    pub const SMAP: u64 = 1 << 21;
    pub const PKE: u64 = 1 << 22;
    pub const PKS: u64 = 1 << 24;
    pub const LAM_SUP: u64 = 1 << 28;
}

pub mod efer {
    pub const SCE: u64 = 1 << 0;
    pub const LME: u64 = 1 << 8;
    pub const LMA: u64 = 1 << 10;
    pub const NXE: u64 = 1 << 11;
}
