//! XSAVE, XSAVEOPT, XSAVEC, XSAVES, XRSTOR and XRSTORS ("Managing State Using the XSAVE Feature Set").
//!
//! Where the manual leaves the processor a choice:
//! * Init optimisation: XINUSE is computed from the values of the registers, so a component in its initial configuration
//!   is never in use. In 64-bit mode all sixteen vector registers count, elsewhere the first eight.
//! * Modified optimisation: there is none. XSAVEOPT and XSAVES save every requested component that is in use.
//! * Misaligned areas are #GP(0), also where #AC(0) would be allowed.
//! * Only what is accessed is checked against paging: the header always, each region when a component in it is.

mod image;
mod restore;
mod save;

pub use image::InvalidImage;
pub use restore::{xrstor, xrstors};
pub use save::{xsave, xsavec, xsaveopt, xsaves};

use silicon_float::x87::F80;
use x86_defs::control::{cr0, cr4};
use x86_defs::exception::vector;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use crate::exec::system::exits::{displacement, privileged, vmexit_info};
use crate::mem::AccessKind;
use crate::model::xstate::{Component, LARGEST, component};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Offset of the header: XSTATE_BV, XCOMP_BV, and 48 bytes that are zero.
const HEADER: usize = 512;
const EXTENDED: usize = 576;
/// XCOMP_BV: the area has the compacted format.
const COMPACTED: u64 = 1 << 63;
/// MXCSR after RESET.
const MXCSR_INITIAL: u32 = 0x1f80;

/// Bytes of an area as they are in memory.
pub type Image = [u8; LARGEST];

/// The components that EDX:EAX asks for.
fn requested(core: &Core) -> u64 {
    core.gpr[0] & 0xffff_ffff | core.gpr[2] << 32
}

/// #UD without CR4.OSXSAVE, #NM with CR0.TS. CR0.EM does not matter.
fn usable(core: &mut Core) -> Done {
    if core.cr4 & cr4::OSXSAVE == 0 {
        return Err(core.ud());
    }
    if core.cr0 & cr0::TS != 0 { Err(core.raise(vector::NM)) } else { Ok(()) }
}

/// [`usable`] for XSAVES and XRSTORS, which are the supervisor's, exist in VMX non-root operation by a control only and
/// exit for components of the XSS-exiting bitmap ("Instructions That Cause VM Exits Conditionally").
fn usable_by_supervisor(core: &mut Core, op: &Op, reason: ExitReason) -> Done {
    let undefined = core.vmx.controls.secondary & secondary::ENABLE_XSAVES == 0;
    if undefined || core.cr4 & cr4::OSXSAVE == 0 {
        return Err(core.ud());
    }
    privileged(core)?;
    if requested(core) & core.msrs.xss & core.vmx.controls.xss_exiting != 0 {
        let qualification = displacement(core, op);
        return Err(vmexit_info(core, op, reason, qualification, op.imm as u32));
    }
    usable(core)
}

/// Linear address of an area of `bytes`.
fn area(core: &mut Core, op: &Op, bytes: usize, kind: AccessKind) -> Result<u64, Leave> {
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, bytes as u64, kind)?;
    if linear & 63 != 0 { Err(core.gp0()) } else { Ok(linear) }
}

/// Linear address of byte `at`: outside of 64-bit mode it wraps at 4 GiB.
fn place(core: &Core, linear: u64, at: usize) -> u64 {
    let sum = linear.wrapping_add(at as u64);
    if core.mode.is_64() { sum } else { sum & 0xffff_ffff }
}

/// How many vector registers this mode has: only those are saved and restored.
fn vector_registers(core: &Core) -> usize {
    if core.mode.is_64() { 16 } else { 8 }
}

/// Bytes of a component of the extended region that this mode accesses.
fn accessed(core: &Core, c: &Component) -> usize {
    match c.bit() {
        component::AVX => 16 * vector_registers(core),
        _ => c.size.into(),
    }
}

impl Core {
    /// Which components are not in their initial configuration (XINUSE).
    #[must_use]
    pub fn xinuse(&self) -> u64 {
        self.xinuse_of(vector_registers(self))
    }

    /// [`Core::xinuse`] when the first `n` vector registers count.
    fn xinuse_of(&self, n: usize) -> u64 {
        let fpu = &self.fpu;
        let x87 = (fpu.fcw, fpu.fsw, fpu.ftw, fpu.fop, fpu.fip, fpu.fdp) != (0x37f, 0, 0, 0, 0, 0)
            || fpu.st.iter().any(|st| *st != F80::ZERO);
        let in_use = |bit: u64, used: bool| if used { bit } else { 0 };
        in_use(component::X87, x87)
            | in_use(component::SSE, fpu.xmm[..n].iter().any(|v| *v != 0))
            | in_use(component::AVX, fpu.ymm_high[..n].iter().any(|v| *v != 0))
            | in_use(component::PKRU, self.pkru != 0)
    }

    /// [`Core::xinuse`] as XGETBV, XSAVEC and XSAVES have it: for them MXCSR is a part of SSE state.
    #[must_use]
    pub fn xinuse_with_mxcsr(&self) -> u64 {
        let sse = if self.fpu.mxcsr != MXCSR_INITIAL { component::SSE } else { 0 };
        self.xinuse() | sse
    }
}

#[cfg(test)]
mod tests;
