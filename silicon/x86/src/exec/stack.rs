//! The stack ("Procedure Stack", "Stack-Manipulation Instructions").
//!
//! An instruction that fails after it moved the stack pointer puts it back.

use silicon_memory::Word;
use x86_defs::control::cr4;
use x86_defs::rflags;

use super::operand::Source;
use crate::core::mode::Operating;
use crate::mem::AccessKind;
use crate::op::{Done, Op};
use crate::{Core, Leave};

const RSP: usize = 4;
const RBP: u8 = 5;

/// PUSH register, immediate or memory.
pub fn push<S: Source, T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = S::read::<T>(core, op)?;
    core.push(value)
}

/// PUSH segment register (slot `a`).
pub fn push_selector<T: Word>(core: &mut Core, op: &Op) -> Done {
    let selector = core.seg[(op.a & 7) as usize].selector;
    if T::BYTES != 4 {
        return core.push(T::from_u64(u64::from(selector)));
    }
    // A 32-bit push of a selector moves 16 bits; the upper half of the stack's word stays as it is.
    let mask = core.mode.stack_mask;
    let sp = core.gpr[RSP];
    let new = sp.wrapping_sub(T::BYTES) & mask;
    let seg = core.stack_segment();
    let linear = core.linear(seg, new, T::BYTES, AccessKind::Write)?;
    core.store_linear(linear, seg, selector)?;
    core.gpr[RSP] = (sp & !mask) | new;
    Ok(())
}

/// POP register. POP of the stack pointer itself keeps the popped value.
pub fn pop_reg<T: Word>(core: &mut Core, op: &Op) -> Done {
    let value = core.pop::<T>()?;
    core.set(op.a, value);
    Ok(())
}

/// POP memory, whose address sees the stack pointer after the pop.
pub fn pop_mem<T: Word>(core: &mut Core, op: &Op) -> Done {
    restoring(core, |core| {
        let value = core.pop::<T>()?;
        core.store(op, value)
    })
}

/// Runs `f` and puts the stack pointer back where it fails.
fn restoring<R>(core: &mut Core, f: impl FnOnce(&mut Core) -> Result<R, Leave>) -> Result<R, Leave> {
    let sp = core.gpr[RSP];
    let done = f(core);
    if done.is_err() {
        core.gpr[RSP] = sp;
    }
    done
}

/// PUSHA.
pub fn push_all<T: Word>(core: &mut Core, _: &Op) -> Done {
    let sp = core.get::<T>(RSP as u8);
    restoring(core, |core| {
        for slot in 0..8 {
            let value = if slot == RSP as u8 { sp } else { core.get::<T>(slot) };
            core.push(value)?;
        }
        Ok(())
    })
}

/// POPA: the stack pointer's own word is skipped.
pub fn pop_all<T: Word>(core: &mut Core, _: &Op) -> Done {
    let popped = restoring(core, |core| {
        let mut popped = [T::from_u64(0); 8];
        for value in popped.iter_mut().rev() {
            *value = core.pop::<T>()?;
        }
        Ok(popped)
    })?;
    for (slot, value) in (0_u8..).zip(popped) {
        if slot != RSP as u8 {
            core.set(slot, value);
        }
    }
    Ok(())
}

/// ENTER: [`Op::imm`] bytes of locals, nesting level [`Op::b`].
pub fn enter<T: Word>(core: &mut Core, op: &Op) -> Done {
    let mask = core.mode.stack_mask;
    let seg = core.stack_segment();
    let rbp = core.gpr[RBP as usize];
    let frame = restoring(core, |core| {
        core.push(core.get::<T>(RBP))?;
        let frame = core.gpr[RSP];
        if op.b > 0 {
            for level in 1..u64::from(op.b) {
                let outer = rbp.wrapping_sub(level * T::BYTES) & mask;
                let linear = core.linear(seg, outer, T::BYTES, AccessKind::Read)?;
                let display = core.load_linear::<T>(linear, seg)?;
                core.push(display)?;
            }
            core.push(T::from_u64(frame))?;
        }
        let sp = core.gpr[RSP];
        core.gpr[RSP] = (sp & !mask) | (sp.wrapping_sub(op.imm) & mask);
        // The place where the stack will go on must be writable.
        let linear = core.linear(seg, core.gpr[RSP] & mask, T::BYTES, AccessKind::Write)?;
        core.span(linear, AccessKind::Write, seg)?;
        Ok(frame)
    })?;
    core.set(RBP, T::from_u64(frame));
    Ok(())
}

/// LEAVE.
pub fn leave<T: Word>(core: &mut Core, _: &Op) -> Done {
    let mask = core.mode.stack_mask;
    let value = restoring(core, |core| {
        core.gpr[RSP] = (core.gpr[RSP] & !mask) | (core.gpr[RBP as usize] & mask);
        core.pop::<T>()
    })?;
    core.set(RBP, value);
    Ok(())
}

fn iopl(core: &Core) -> u64 {
    (core.rflags_rest & rflags::IOPL) >> 12
}

/// Virtual-8086 mode with IOPL below 3: the flags are not the program's own.
fn is_trapped_v86(core: &Core) -> bool {
    core.mode.operating == Operating::Virtual8086 && iopl(core) < 3
}

/// Whether virtual-8086 mode extensions give the program a virtual interrupt flag for an operand size.
fn has_virtual_interrupt_flag<T: Word>(core: &Core) -> bool {
    T::BYTES == 2 && core.cr4 & cr4::VME != 0
}

/// PUSHF.
pub fn pushf<T: Word>(core: &mut Core, _: &Op) -> Done {
    let mut value = core.rflags() & !(rflags::RF | rflags::VM);
    if is_trapped_v86(core) {
        if !has_virtual_interrupt_flag::<T>(core) {
            return Err(core.gp0());
        }
        let virtual_if = if value & rflags::VIF != 0 { rflags::IF } else { 0 };
        value = value & !rflags::IF | virtual_if | rflags::IOPL;
    }
    core.push(T::from_u64(value))
}

/// POPF. It may change TF, IF and AC, so it ends the block.
pub fn popf<T: Word>(core: &mut Core, _: &Op) -> Done {
    if is_trapped_v86(core) {
        return popf_virtual::<T>(core);
    }
    let popped = core.pop::<T>()?.to_u64();
    let mut keep = rflags::VM | rflags::VIF | rflags::VIP;
    if core.mode.cpl > 0 {
        keep |= rflags::IOPL;
    }
    if u64::from(core.mode.cpl) > iopl(core) {
        keep |= rflags::IF;
    }
    if T::BYTES == 2 {
        keep |= !0xffff;
    }
    let old = core.rflags();
    // RF is cleared in either case.
    core.set_rflags((old & keep | popped & !keep) & !rflags::RF);
    Err(Leave::End)
}

fn popf_virtual<T: Word>(core: &mut Core) -> Done {
    if !has_virtual_interrupt_flag::<T>(core) {
        return Err(core.gp0());
    }
    let popped = restoring(core, |core| {
        let popped = core.pop::<T>()?.to_u64();
        let wants_interrupts = popped & rflags::IF != 0 && core.rflags_rest & rflags::VIP != 0;
        if popped & rflags::TF != 0 || wants_interrupts { Err(core.gp0()) } else { Ok(popped) }
    })?;
    let keep = !0xffff | rflags::IF | rflags::IOPL;
    let virtual_if = if popped & rflags::IF != 0 { rflags::VIF } else { 0 };
    let old = core.rflags() & !(rflags::VIF | rflags::RF);
    core.set_rflags(old & keep | popped & !keep | virtual_if);
    Err(Leave::End)
}
