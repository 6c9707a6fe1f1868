//! IRET.

use silicon_memory::Word;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::pin;
use x86_defs::{control::efer, rflags};

use super::ret::{return_code, set_outer_sp};
use super::target::{cs_8086, kind};
use super::vme::has_virtual_if;
use super::{TaskSwitch, task_switch};
use crate::core::SegmentRegister;
use crate::core::mode::Operating;
use crate::exec::segment::descriptor::rpl;
use crate::exec::segment::load::{drop_inner_segments, outer_ss, vm86_segment};
use crate::exec::segment::stack::Stack;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// IRET, IRETD, IRETQ. `T`: word of the operand size.
pub fn iret<T: Word>(core: &mut Core, op: &Op) -> Done {
    // NMIs are unblocked even when the instruction faults ("Handling Multiple NMIs").
    // With NMI exiting the blocking is that of virtual NMIs, or IRET has nothing to do with it.
    let pins = core.vmx.controls.pin;
    let unblocks = pins & pin::NMI_EXITING == 0 || pins & pin::VIRTUAL_NMIS != 0;
    let was_blocked = unblocks && std::mem::take(&mut core.events.nmi_blocked);
    let left = match core.mode.operating {
        Operating::Real | Operating::Virtual8086 => iret_8086(core, T::BYTES as u8),
        _ => iret_protected(core, op, T::BYTES as u8),
    };
    if was_blocked {
        match left {
            Leave::Fault => core.events.nmi_unblocked = true,
            Leave::Exit => {
                if matches!(core.vmx.exit.reason, Some(ExitReason::EptViolation | ExitReason::PageModificationLogFull))
                {
                    core.vmx.exit.qualification |= 1 << 12;
                }
            }
            // Executed again: the blocking is looked at again.
            Leave::Refetch | Leave::Again => core.events.nmi_blocked = true,
            Leave::Branch | Leave::End => {}
        }
    }
    Err(left)
}

/// Bits of RFLAGS that IRET and POPF change at privilege level `cpl`, with `bytes` on the stack.
fn writable_flags(core: &Core, cpl: u8, bytes: u8) -> u64 {
    let iopl = iopl(core);
    let mut mask = rflags::STATUS | rflags::TF | rflags::DF | rflags::NT;
    if bytes != 2 {
        mask |= rflags::RF | rflags::AC | rflags::ID;
    }
    if cpl <= iopl {
        mask |= rflags::IF;
    }
    if cpl == 0 {
        mask |= rflags::IOPL;
        if bytes != 2 {
            mask |= rflags::VIF | rflags::VIP;
        }
    }
    mask
}

/// I/O privilege level.
#[must_use]
pub fn iopl(core: &Core) -> u8 {
    (core.rflags_rest >> 12) as u8 & 3
}

fn iret_8086(core: &mut Core, bytes: u8) -> Leave {
    match try_8086(core, bytes) {
        Ok(()) => Leave::Branch,
        Err(left) => left,
    }
}

fn try_8086(core: &mut Core, bytes: u8) -> Result<(), Leave> {
    let vm86 = core.mode.operating == Operating::Virtual8086;
    let virtual_if = vm86 && iopl(core) != 3;
    if virtual_if && (bytes != 2 || !has_virtual_if(core)) {
        return Err(core.gp0());
    }
    let mut stack = Stack::current(core);
    let rip = stack.pop(core, bytes)?;
    let selector = stack.pop(core, bytes)? as u16;
    let flags = stack.pop(core, bytes)?;
    let cs = cs_8086(core, selector, rip)?;
    if virtual_if {
        return virtual_8086(core, &stack, cs, rip, flags);
    }
    let mut mask = writable_flags(core, 0, bytes) & !(rflags::VIF | rflags::VIP);
    if vm86 {
        mask &= !rflags::IOPL;
    }
    core.gpr[4] = stack.sp;
    core.seg[index::CS] = cs;
    core.rip = rip;
    core.set_rflags((core.rflags() & !mask) | (flags & mask));
    core.update_mode();
    Ok(())
}

/// IRET with virtual-8086 mode extensions, of a program that may not change IF: it changes VIF.
fn virtual_8086(core: &mut Core, stack: &Stack, cs: SegmentRegister, rip: u64, flags: u64) -> Result<(), Leave> {
    let enables = flags & rflags::IF != 0;
    if flags & rflags::TF != 0 || (enables && core.rflags_rest & rflags::VIP != 0) {
        return Err(core.gp0());
    }
    core.gpr[4] = stack.sp;
    core.seg[index::CS] = cs;
    core.rip = rip;
    let mask = rflags::STATUS | rflags::TF | rflags::DF | rflags::NT;
    let vif = if enables { rflags::VIF } else { 0 };
    core.set_rflags((core.rflags() & !(mask | rflags::VIF | rflags::RF)) | (flags & mask) | vif);
    core.update_mode();
    Ok(())
}

fn iret_protected(core: &mut Core, op: &Op, bytes: u8) -> Leave {
    match try_protected(core, op, bytes) {
        Ok(()) => Leave::Branch,
        Err(left) => left,
    }
}

fn try_protected(core: &mut Core, op: &Op, bytes: u8) -> Result<(), Leave> {
    let cpl = core.mode.cpl;
    if core.rflags_rest & rflags::NT != 0 {
        if core.efer & efer::LMA != 0 {
            return Err(core.gp0());
        }
        // The link field of the TSS names the task to return to.
        let tr = core.seg[index::TR];
        let link: u16 = core.load_system(tr.base & 0xffff_ffff)?;
        return Err(task_switch(core, TaskSwitch::Iret, link, op.len));
    }
    let mut stack = Stack::current(core);
    let rip = stack.pop(core, bytes)?;
    let selector = stack.pop(core, bytes)? as u16;
    let flags = stack.pop(core, bytes)?;
    if flags & rflags::VM != 0 && cpl == 0 && bytes == 4 && !core.mode.is_ia32e() {
        return to_vm86(core, stack, rip, selector, flags);
    }
    let d = return_code(core, selector, rip)?;
    let level = rpl(selector);
    let mask = writable_flags(core, cpl, bytes);
    let flags = (core.rflags() & !mask) | (flags & mask);
    let outer = level > cpl;
    if outer || core.mode.is_64() {
        let sp = stack.pop(core, bytes)?;
        let ss_selector = stack.pop(core, bytes)? as u16;
        let ss = outer_ss(core, ss_selector, level, kind(core, d))?;
        core.seg[index::SS] = ss;
        core.seg[index::CS] = d.segment(selector);
        core.update_mode();
        set_outer_sp(core, sp, bytes);
        if outer {
            drop_inner_segments(core);
        }
    } else {
        core.gpr[4] = stack.sp;
        core.seg[index::CS] = d.segment(selector);
    }
    core.rip = rip;
    core.set_rflags(flags);
    core.update_mode();
    Ok(())
}

fn to_vm86(core: &mut Core, mut stack: Stack, rip: u64, selector: u16, flags: u64) -> Result<(), Leave> {
    let sp = stack.pop(core, 4)?;
    let mut selectors = [0; 5];
    for s in &mut selectors {
        *s = stack.pop(core, 4)? as u16;
    }
    if rip > 0xffff {
        return Err(core.gp0());
    }
    core.seg[index::CS] = vm86_segment(selector);
    for (segment, selector) in [index::SS, index::ES, index::DS, index::FS, index::GS].into_iter().zip(selectors) {
        core.seg[segment] = vm86_segment(selector);
    }
    debug_assert!(!core.seg[index::SS].has(rights::UNUSABLE), "segments of virtual-8086 mode are usable");
    core.gpr[4] = sp;
    core.rip = rip;
    core.set_rflags(flags);
    core.update_mode();
    Ok(())
}
