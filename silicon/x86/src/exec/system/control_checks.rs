//! Which values CR0, CR3 and CR4 can take, and what follows from a change ("Control Registers").

use x86_defs::control::{cr0, cr3, cr4, efer};
use x86_defs::segment::{index, rights};
use x86_defs::vmx::controls::secondary;

use crate::exec::segment::descriptor::system_type;
use crate::mem::Keep;
use crate::vmx::capability::{CR4_FIXED0, cr4_fixed1};
use crate::{Core, Leave};

const CR0_DEFINED: u64 =
    cr0::PE | cr0::MP | cr0::EM | cr0::TS | cr0::ET | cr0::NE | cr0::WP | cr0::AM | cr0::NW | cr0::CD | cr0::PG;

/// The value that CR0 takes when `new` is written to it.
pub(super) fn check_cr0(core: &mut Core, new: u64) -> Result<u64, Leave> {
    if new >> 32 != 0 {
        return Err(core.gp0());
    }
    let new = (new & CR0_DEFINED) | cr0::ET;
    let changed = new ^ core.cr0;
    let unrestricted = core.vmx.controls.secondary & secondary::UNRESTRICTED_GUEST != 0;
    // In VMX operation NE is fixed to 1, and so are PE and PG where the guest is not unrestricted.
    let fixed = cr0::NE | if unrestricted { 0 } else { cr0::PE | cr0::PG };
    let inconsistent = (new & cr0::PG != 0 && new & cr0::PE == 0)
        || (new & cr0::NW != 0 && new & cr0::CD == 0)
        || (core.cr0 & !new & fixed != 0);
    if inconsistent {
        return Err(core.gp0());
    }
    if changed & cr0::PG != 0 {
        let allowed = if new & cr0::PG == 0 { may_disable_paging(core) } else { may_enable_paging(core) };
        if !allowed {
            return Err(core.gp0());
        }
    }
    Ok(new)
}

fn may_disable_paging(core: &Core) -> bool {
    !core.mode.is_64() && core.cr4 & cr4::PCIDE == 0
}

fn may_enable_paging(core: &Core) -> bool {
    if core.efer & efer::LME == 0 {
        return true;
    }
    let tss16 = matches!(
        (core.seg[index::TR].rights & rights::TYPE) as u8,
        system_type::TSS16_AVAILABLE | system_type::TSS16_BUSY
    );
    core.cr4 & cr4::PAE != 0 && !core.seg[index::CS].has(rights::L) && !tss16
}

/// Sets CR0, switches IA-32e mode on or off with paging.
pub(super) fn commit_cr0(core: &mut Core, new: u64) {
    let changed = new ^ core.cr0;
    core.cr0 = new;
    if changed & cr0::PG != 0 {
        if new & cr0::PG != 0 && core.efer & efer::LME != 0 {
            core.efer |= efer::LMA;
        } else {
            core.efer &= !efer::LMA;
        }
    }
    core.update_mode();
    if changed & (cr0::PG | cr0::WP | cr0::PE | cr0::CD | cr0::NW) != 0 {
        core.tlb_controls_written(changed, 0);
    }
}

/// Checks a value for CR3; what it asks to keep of the translations of its PCID.
pub(super) fn check_cr3(core: &mut Core, value: u64) -> Result<Keep, Leave> {
    let pcide = core.cr4 & cr4::PCIDE != 0;
    let keep = pcide && value & cr3::KEEP_TRANSLATIONS != 0;
    let address = if pcide { value & !cr3::KEEP_TRANSLATIONS } else { value };
    // Outside of IA-32e mode the upper half does not exist.
    if core.mode.is_ia32e() && address & core.model.cr3_reserved() != 0 {
        return Err(core.gp0());
    }
    Ok(if keep { Keep::Everything } else { Keep::Nothing })
}

/// Loads the PDPTE registers where the new values of CR0 and CR4 lead to PAE paging and a bit that matters changes
/// ("PDPTE Registers").
pub(super) fn reload_pdptes(core: &mut Core, cr0: u64, cr4: u64) -> Result<(), Leave> {
    let changed = (cr0 ^ core.cr0) & (cr0::CD | cr0::NW | cr0::PG)
        | (cr4 ^ core.cr4) & (cr4::PAE | cr4::PGE | cr4::PSE | cr4::SMEP);
    if changed != 0 && core.pae_paging(cr0, cr4) { core.load_pdptes(core.cr3) } else { Ok(()) }
}

/// Checks a value for CR4.
pub(super) fn check_cr4(core: &mut Core, new: u64) -> Result<(), Leave> {
    let changed = new ^ core.cr4;
    let ia32e = core.efer & efer::LMA != 0;
    let supported = cr4_fixed1(&core.model);
    let bad = changed & new & !supported != 0
        // Fixed to 1 in VMX operation.
        || core.cr4 & !new & CR4_FIXED0 != 0
        || (ia32e && changed & (cr4::PAE | cr4::LA57) != 0)
        || (changed & new & cr4::PCIDE != 0 && (!ia32e || core.cr3 & 0xfff != 0));
    if bad { Err(core.gp0()) } else { Ok(()) }
}

/// Sets CR4.
pub(super) fn commit_cr4(core: &mut Core, new: u64) {
    let changed = new ^ core.cr4;
    core.cr4 = new;
    core.update_mode();
    core.tlb_controls_written(0, changed);
}
