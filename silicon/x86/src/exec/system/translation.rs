//! INVLPG, INVPCID, INVD, WBINVD, WBNOINVD.

use x86_defs::control::cr4;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{primary, secondary};

use super::exits::{displacement, privileged, vmexit_info};
use crate::core::mode::Operating;
use crate::exec::segment::moves::load_at;
use crate::mem::Invpcid;
use crate::op::{Done, FLAT};
use crate::{Core, Leave, Op};

/// INVLPG.
pub fn invlpg(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    let offset = core.address(op);
    // No access: neither limit nor type of the segment is checked.
    let segment = usize::from(op.seg & !FLAT) & 7;
    let based = op.seg & FLAT == 0;
    let base = if based { core.seg[segment].base } else { 0 };
    let linear = base.wrapping_add(offset);
    let linear = if core.mode.is_64() { linear } else { linear & 0xffff_ffff };
    if core.vmx.controls.primary & primary::INVLPG_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Invlpg, linear));
    }
    if core.model.is_canonical(linear) {
        core.tlb_invlpg(linear);
        core.mmu.leave_page();
    }
    Err(Leave::End)
}

/// INVPCID. `a`: register with the type, `imm`: VM-exit instruction information.
pub fn invpcid(core: &mut Core, op: &Op) -> Done {
    let unavailable = core.vmx.controls.secondary & secondary::ENABLE_INVPCID == 0;
    if unavailable {
        return Err(core.ud());
    }
    if core.mode.operating == Operating::Virtual8086 {
        return Err(core.gp0());
    }
    privileged(core)?;
    if core.vmx.controls.primary & primary::INVLPG_EXITING != 0 {
        let qualification = displacement(core, op);
        return Err(vmexit_info(core, op, ExitReason::Invpcid, qualification, op.imm as u32));
    }
    let kind = core.gpr[usize::from(op.a)];
    let kind = if core.mode.is_64() { kind } else { kind & 0xffff_ffff };
    let low: u64 = load_at(core, op, 0)?;
    let linear: u64 = load_at(core, op, 8)?;
    let pcid = (low & 0xfff) as u16;
    let pcid_allowed = pcid == 0 || core.cr4 & cr4::PCIDE != 0;
    if low >> 12 != 0 || (kind < 2 && !pcid_allowed) || (kind == 0 && !core.model.is_canonical(linear)) {
        return Err(core.gp0());
    }
    let what = match kind {
        0 => Invpcid::Individual { pcid, linear },
        1 => Invpcid::SingleContext { pcid },
        2 => Invpcid::AllIncludingGlobal,
        3 => Invpcid::AllRetainingGlobal,
        _ => return Err(core.gp0()),
    };
    core.tlb_invpcid(what);
    core.mmu.leave_page();
    Err(Leave::End)
}

/// INVD.
pub fn invd(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    Err(core.vmexit(op, ExitReason::Invd, 0))
}

/// WBINVD, WBNOINVD: there are no caches to write back.
pub fn wbinvd(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    if core.vmx.controls.secondary & secondary::WBINVD_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::WbinvdOrWbnoinvd, 0));
    }
    Ok(())
}
