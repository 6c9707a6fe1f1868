//! The MSRs that a guest may use without an exit. All others are #GP(0): a hypervisor that lets them through has none
//! to let through to.

use x86_defs::control::{cr0, efer};
use x86_defs::msr;
use x86_defs::segment::index;

use crate::Core;
use crate::model::Feature;

/// The value of an MSR, `None` for #GP(0).
pub(crate) fn read(core: &Core, number: u32) -> Option<u64> {
    let m = &core.msrs;
    Some(match number {
        msr::IA32_TSC => core.guest_tsc(),
        msr::IA32_SPEC_CTRL => m.spec_ctrl,
        msr::IA32_SYSENTER_CS => m.sysenter_cs,
        msr::IA32_SYSENTER_ESP => m.sysenter_esp,
        msr::IA32_SYSENTER_EIP => m.sysenter_eip,
        msr::IA32_DEBUGCTL => m.debugctl,
        msr::IA32_PAT => m.pat,
        msr::IA32_EFER => core.efer,
        msr::IA32_PKRS if core.model.has(Feature::Pks) => m.pkrs.into(),
        msr::IA32_STAR => m.star,
        msr::IA32_LSTAR => m.lstar,
        msr::IA32_CSTAR => m.cstar,
        msr::IA32_FMASK => m.fmask,
        msr::IA32_FS_BASE => core.seg[index::FS].base,
        msr::IA32_GS_BASE => core.seg[index::GS].base,
        msr::IA32_KERNEL_GS_BASE => m.kernel_gs_base,
        msr::IA32_TSC_AUX => m.tsc_aux,
        msr::IA32_XSS if core.model.has(Feature::Xsaves) => m.xss,
        _ => return None,
    })
}

/// Writes an MSR, `None` for #GP(0).
pub(crate) fn write(core: &mut Core, number: u32, value: u64) -> Option<()> {
    let address = core.model.is_canonical(value).then_some(value);
    match number {
        // Bits 0-2 and 7: IBRS, STIBP, SSBD, PSFD.
        msr::IA32_SPEC_CTRL => core.msrs.spec_ctrl = (value & !0x87 == 0).then_some(value)?,
        // Commands without a state.
        msr::IA32_PRED_CMD | msr::IA32_FLUSH_CMD => (value & !1 == 0).then_some(())?,
        msr::IA32_SYSENTER_CS => core.msrs.sysenter_cs = value & 0xffff_ffff,
        msr::IA32_SYSENTER_ESP => core.msrs.sysenter_esp = address?,
        msr::IA32_SYSENTER_EIP => core.msrs.sysenter_eip = address?,
        msr::IA32_PAT => core.msrs.pat = pat_is_valid(value).then_some(value)?,
        msr::IA32_EFER => write_efer(core, value)?,
        msr::IA32_PKRS if core.model.has(Feature::Pks) => core.set_pkrs(u32::try_from(value).ok()?),
        msr::IA32_STAR => core.msrs.star = value,
        msr::IA32_LSTAR => core.msrs.lstar = address?,
        msr::IA32_CSTAR => core.msrs.cstar = address?,
        msr::IA32_FMASK => core.msrs.fmask = (value >> 32 == 0).then_some(value)?,
        msr::IA32_FS_BASE => core.seg[index::FS].base = address?,
        msr::IA32_GS_BASE => core.seg[index::GS].base = address?,
        msr::IA32_KERNEL_GS_BASE => core.msrs.kernel_gs_base = address?,
        msr::IA32_TSC_AUX => core.msrs.tsc_aux = (value >> 32 == 0).then_some(value)?,
        msr::IA32_XSS if core.model.has(Feature::Xsaves) => {
            core.msrs.xss = (value & !core.model.xss_supported() == 0).then_some(value)?;
        }
        _ => return None,
    }
    Some(())
}

/// Memory types of the page attribute table: each of the eight bytes is UC, WC, WT, WP, WB or UC-.
fn pat_is_valid(value: u64) -> bool {
    value.to_le_bytes().iter().all(|t| matches!(t, 0 | 1 | 4..=7))
}

fn write_efer(core: &mut Core, value: u64) -> Option<()> {
    let writable = efer::SCE | efer::LME | efer::NXE;
    // LMA is read-only: writes to it are ignored.
    (value & !(writable | efer::LMA) == 0).then_some(())?;
    let changed = (value ^ core.efer) & writable;
    (changed & efer::LME == 0 || core.cr0 & cr0::PG == 0).then_some(())?;
    core.efer ^= changed;
    core.update_mode();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_memory_types_of_the_pat_are_refused() {
        assert!(pat_is_valid(0x0007_0406_0007_0406));
        assert!(!pat_is_valid(0x0007_0406_0007_0402));
        assert!(!pat_is_valid(0x0307_0406_0007_0406));
    }
}
