//! INS and OUTS.
//!
//! `imm`: VM-exit instruction information; bit 32: REP. `scale_drop`: address size. `seg`: segment of the source of OUTS.

use silicon_memory::Word;
use x86_defs::rflags;
use x86_defs::segment::index;
use x86_defs::vmx::ExitReason;

use super::permission::check;
use super::port::qualification;
use crate::mem::AccessKind;
use crate::op::{Done, FLAT};
use crate::vmx::ExitInfo;
use crate::{Core, Leave, Op};

const RCX: usize = 1;
const RSI: usize = 6;
const RDI: usize = 7;

fn masked(op: &Op, value: u64) -> u64 {
    let drop = op.scale_drop >> 2;
    value << drop >> drop
}

/// Writes a register with the address size: 32 bits zero-extend in 64-bit mode, 16 bits leave the rest.
fn set_masked(core: &mut Core, op: &Op, register: usize, value: u64) {
    let old = core.gpr[register];
    core.gpr[register] = match op.scale_drop >> 2 {
        0 => value,
        32 => value & 0xffff_ffff,
        _ => (old & !0xffff) | (value & 0xffff),
    };
}

fn is_rep(op: &Op) -> bool {
    op.imm >> 32 & 1 != 0
}

/// Linear address for the exit: segment checks are the emulation's.
fn exit(core: &mut Core, op: &Op, base: u64, offset: u64, port: u16, bits: u64) -> Leave {
    let rep = if is_rep(op) { qualification::REP } else { 0 };
    let linear = base.wrapping_add(offset);
    core.vmexit_with(ExitInfo {
        reason: Some(ExitReason::IoInstruction),
        qualification: bits | qualification::STRING | rep | u64::from(port) << 16,
        guest_linear: if core.mode.is_64() { linear } else { linear & 0xffff_ffff },
        instruction_length: u32::from(op.len),
        instruction_info: op.imm as u32,
        ..ExitInfo::default()
    })
}

fn base_of(core: &Core, seg: u8) -> u64 {
    if seg & FLAT != 0 { 0 } else { core.seg[usize::from(seg) & 7].base }
}

fn advance<T: Word>(core: &mut Core, op: &Op, register: usize) -> Done {
    let step = if core.rflags_rest & rflags::DF != 0 { T::BYTES.wrapping_neg() } else { T::BYTES };
    let next = core.gpr[register].wrapping_add(step);
    set_masked(core, op, register, next);
    if !is_rep(op) {
        return Ok(());
    }
    let left = masked(op, core.gpr[RCX]).wrapping_sub(1);
    set_masked(core, op, RCX, left);
    if masked(op, left) == 0 { Ok(()) } else { Err(Leave::Again) }
}

/// Moves on, and lets I/O breakpoints trap after the element.
fn done(core: &mut Core, port: u16, bytes: u8, advance: impl FnOnce(&mut Core) -> Done) -> Done {
    let trap = core.trap_on_port(port, bytes);
    advance(core).and(trap)
}

/// INS.
pub fn ins<T: Word>(core: &mut Core, op: &Op) -> Done {
    let port = core.gpr[2] as u16;
    check(core, port, T::BYTES as u8)?;
    if is_rep(op) && masked(op, core.gpr[RCX]) == 0 {
        return Ok(());
    }
    let segment = index::ES as u8 | if core.mode.is_64() { FLAT } else { 0 };
    let offset = masked(op, core.gpr[RDI]);
    if core.io_exits(port, T::BYTES as u8) {
        let base = base_of(core, segment);
        return Err(exit(core, op, base, offset, port, (T::BYTES - 1) | qualification::IN));
    }
    let linear = core.linear(segment, offset, T::BYTES, AccessKind::Write)?;
    core.store_linear(linear, segment, T::from_u64(u64::MAX))?;
    done(core, port, T::BYTES as u8, |core| advance::<T>(core, op, RDI))
}

/// OUTS.
pub fn outs<T: Word>(core: &mut Core, op: &Op) -> Done {
    let port = core.gpr[2] as u16;
    check(core, port, T::BYTES as u8)?;
    if is_rep(op) && masked(op, core.gpr[RCX]) == 0 {
        return Ok(());
    }
    let offset = masked(op, core.gpr[RSI]);
    if core.io_exits(port, T::BYTES as u8) {
        let base = base_of(core, op.seg);
        return Err(exit(core, op, base, offset, port, T::BYTES - 1));
    }
    let linear = core.linear(op.seg, offset, T::BYTES, AccessKind::Read)?;
    core.load_linear::<T>(linear, op.seg)?;
    done(core, port, T::BYTES as u8, |core| advance::<T>(core, op, RSI))
}
