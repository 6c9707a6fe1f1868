//! LGDT, LIDT, SGDT, SIDT, LLDT, LTR, SLDT, STR.
//!
//! `imm`: the static part of the VM-exit instruction information ([`crate::lower::info`]).

use silicon_memory::Word;
use x86_defs::control::cr4;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use super::descriptor::{gp, is_null, np, require, require_high, system_type, wrap};
use super::load::null_segment;
use super::moves::{load_at, store_at};
use crate::core::mode::Operating;
use crate::core::{SegmentRegister, TableRegister};
use crate::exec::system::exits::{displacement, vmexit_info};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Which of GDTR and IDTR.
pub trait Table {
    fn register(core: &mut Core) -> &mut TableRegister;
}
pub struct Gdt;
pub struct Idt;
impl Table for Gdt {
    fn register(core: &mut Core) -> &mut TableRegister {
        &mut core.gdtr
    }
}
impl Table for Idt {
    fn register(core: &mut Core) -> &mut TableRegister {
        &mut core.idtr
    }
}

/// Operand size of LGDT and LIDT.
pub trait BaseSize {
    const BASE_BYTES: u64;
    const MASK: u64;
}
/// 24-bit base.
pub struct Base24;
/// 32-bit base.
pub struct Base32;
/// 64-bit base.
pub struct Base64;
impl BaseSize for Base24 {
    const BASE_BYTES: u64 = 4;
    const MASK: u64 = 0xff_ffff;
}
impl BaseSize for Base32 {
    const BASE_BYTES: u64 = 4;
    const MASK: u64 = 0xffff_ffff;
}
impl BaseSize for Base64 {
    const BASE_BYTES: u64 = 8;
    const MASK: u64 = u64::MAX;
}

fn table_exit(core: &mut Core, op: &Op, reason: ExitReason) -> Result<(), Leave> {
    if core.vmx.controls.secondary & secondary::DESCRIPTOR_TABLE_EXITING == 0 {
        return Ok(());
    }
    let qualification = displacement(core, op);
    Err(vmexit_info(core, op, reason, qualification, op.imm as u32))
}

fn privileged(core: &mut Core) -> Result<(), Leave> {
    if core.mode.cpl != 0 { Err(core.gp0()) } else { Ok(()) }
}

/// #GP(0) for user code where CR4.UMIP is set.
///
/// # Errors
/// #GP(0).
pub fn user_mode_prevented(core: &mut Core) -> Result<(), Leave> {
    if core.mode.cpl != 0 && core.cr4 & cr4::UMIP != 0 { Err(core.gp0()) } else { Ok(()) }
}

/// #UD in real-address and virtual-8086 mode.
///
/// # Errors
/// #UD.
pub fn protected_only(core: &mut Core) -> Result<(), Leave> {
    if matches!(core.mode.operating, Operating::Real | Operating::Virtual8086) { Err(core.ud()) } else { Ok(()) }
}

/// LGDT, LIDT.
pub fn load_table<R: Table, S: BaseSize>(core: &mut Core, op: &Op) -> Done {
    privileged(core)?;
    table_exit(core, op, ExitReason::GdtrOrIdtrAccess)?;
    let limit: u16 = load_at(core, op, 0)?;
    let base = if S::BASE_BYTES == 8 {
        load_at::<u64>(core, op, 2)?
    } else {
        u64::from(load_at::<u32>(core, op, 2)?) & S::MASK
    };
    if !core.model.is_canonical(base) {
        return Err(core.gp0());
    }
    *R::register(core) = TableRegister { base, limit };
    Err(Leave::End)
}

/// SGDT, SIDT.
pub fn store_table<R: Table, S: BaseSize>(core: &mut Core, op: &Op) -> Done {
    user_mode_prevented(core)?;
    table_exit(core, op, ExitReason::GdtrOrIdtrAccess)?;
    let TableRegister { base, limit } = *R::register(core);
    // The base first: when its page can be written so can that of the limit, or nothing has been stored yet.
    let linear = super::moves::linear_at(core, op, 0, 2 + S::BASE_BYTES, crate::mem::AccessKind::Write)?;
    core.check_store(linear, op.seg, 2 + S::BASE_BYTES)?;
    if S::BASE_BYTES == 8 {
        store_at(core, op, 2, base)?;
    } else {
        store_at(core, op, 2, (base & S::MASK) as u32)?;
    }
    store_at(core, op, 0, limit)
}

fn selector_operand(core: &mut Core, op: &Op) -> Result<u16, Leave> {
    if op.a == crate::op::ZERO { core.load::<u16>(op) } else { Ok(core.get::<u16>(op.a)) }
}

/// LLDT. `a`: register, or [`crate::op::ZERO`] for memory.
pub fn lldt(core: &mut Core, op: &Op) -> Done {
    protected_only(core)?;
    privileged(core)?;
    table_exit(core, op, ExitReason::LdtrOrTrAccess)?;
    let selector = selector_operand(core, op)?;
    if is_null(selector) {
        core.seg[index::LDTR] = null_segment(selector);
        return Err(Leave::End);
    }
    core.seg[index::LDTR] = system_segment(core, selector, &[system_type::LDT])?.0;
    Err(Leave::End)
}

/// LTR. `a`: register, or [`crate::op::ZERO`] for memory.
pub fn ltr(core: &mut Core, op: &Op) -> Done {
    protected_only(core)?;
    privileged(core)?;
    table_exit(core, op, ExitReason::LdtrOrTrAccess)?;
    let selector = selector_operand(core, op)?;
    if is_null(selector) {
        return Err(core.gp0());
    }
    let types: &[u8] = if core.mode.is_ia32e() {
        &[system_type::TSS_AVAILABLE]
    } else {
        &[system_type::TSS_AVAILABLE, system_type::TSS16_AVAILABLE]
    };
    let (mut tr, linear) = system_segment(core, selector, types)?;
    tr.rights |= 2;
    let busy = tr.rights as u8;
    core.store_system(wrap(core, linear.wrapping_add(5)), busy)?;
    core.seg[index::TR] = tr;
    Err(Leave::End)
}

/// An LDT or TSS descriptor of the GDT as a segment register, and its linear address.
fn system_segment(core: &mut Core, selector: u16, types: &[u8]) -> Result<(SegmentRegister, u64), Leave> {
    if selector & 4 != 0 {
        return Err(gp(core, selector));
    }
    let located = require(core, selector)?;
    let d = located.descriptor;
    if !d.system_type().is_some_and(|t| types.contains(&t)) {
        return Err(gp(core, selector));
    }
    let high = if core.mode.is_ia32e() { require_high(core, selector)? << 32 } else { 0 };
    if !d.present() {
        return Err(np(core, selector));
    }
    let mut register = d.segment(selector);
    register.base |= high;
    if !core.model.is_canonical(register.base) {
        return Err(gp(core, selector));
    }
    register.rights &= !rights::UNUSABLE;
    Ok((register, located.linear))
}

/// SLDT, STR with a register destination. `a`: register, `b`: [`index::LDTR`] or [`index::TR`].
pub fn store_selector_register<T: Word>(core: &mut Core, op: &Op) -> Done {
    store_selector_checks(core, op)?;
    let selector = core.seg[usize::from(op.b)].selector;
    core.set(op.a, T::from_u64(u64::from(selector)));
    Ok(())
}

/// SLDT, STR with a memory destination. `b`: as above.
pub fn store_selector_memory(core: &mut Core, op: &Op) -> Done {
    store_selector_checks(core, op)?;
    let selector = core.seg[usize::from(op.b)].selector;
    core.store(op, selector)
}

fn store_selector_checks(core: &mut Core, op: &Op) -> Done {
    protected_only(core)?;
    user_mode_prevented(core)?;
    table_exit(core, op, ExitReason::LdtrOrTrAccess)
}
