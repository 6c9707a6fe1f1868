//! IN and OUT.
//!
//! A port that does not exit leads nowhere: the modelled processor is alone on its bus.

use silicon_memory::Word;
use x86_defs::vmx::ExitReason;

use super::permission::check;
use crate::op::Done;
use crate::{Core, Op};

/// Bits of the exit qualification ("Exit Qualification for I/O Instructions").
pub mod qualification {
    pub const IN: u64 = 1 << 3;
    pub const STRING: u64 = 1 << 4;
    pub const REP: u64 = 1 << 5;
    pub const IMMEDIATE: u64 = 1 << 6;
}

/// The port operand: `imm` bit 16 says that bits 7:0 are the port, else it is in DX.
fn operand(core: &Core, op: &Op) -> (u16, u64) {
    if op.imm & 1 << 16 != 0 { ((op.imm & 0xff) as u16, qualification::IMMEDIATE) } else { (core.gpr[2] as u16, 0) }
}

/// IN.
pub fn port_in<T: Word>(core: &mut Core, op: &Op) -> Done {
    let (port, encoding) = operand(core, op);
    check(core, port, T::BYTES as u8)?;
    if core.io_exits(port, T::BYTES as u8) {
        let q = (T::BYTES - 1) | qualification::IN | encoding | u64::from(port) << 16;
        return Err(core.vmexit(op, ExitReason::IoInstruction, q));
    }
    core.set(0, T::from_u64(u64::MAX));
    core.trap_on_port(port, T::BYTES as u8)
}

/// OUT.
pub fn port_out<T: Word>(core: &mut Core, op: &Op) -> Done {
    let (port, encoding) = operand(core, op);
    check(core, port, T::BYTES as u8)?;
    if core.io_exits(port, T::BYTES as u8) {
        let q = (T::BYTES - 1) | encoding | u64::from(port) << 16;
        return Err(core.vmexit(op, ExitReason::IoInstruction, q));
    }
    core.trap_on_port(port, T::BYTES as u8)
}
