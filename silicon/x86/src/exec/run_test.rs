//! Executing bytes in unit tests, as the engine does but for one instruction.

use iced_x86::{Decoder, DecoderOptions};

use crate::lower::lower;
use crate::op::{BLOCK_RIP, Lowering};
use crate::{Core, Leave};

/// Executes the instruction `bytes` at [`Core::rip`]. On completion RIP is the next one.
///
/// # Errors
/// Why it did not complete; RIP has not moved.
pub fn run(core: &mut Core, bytes: &[u8]) -> Result<(), Leave> {
    let mut decoder = Decoder::with_ip(core.mode.code.bits(), bytes, 0, DecoderOptions::NONE);
    let insn = decoder.decode();
    let (size, model) = (core.mode.code, core.model.clone());
    let lowering = Lowering { insn: &insn, bytes: &bytes[..insn.len()], size, off: 0, model: &model };
    let op = lower(&lowering).unwrap_or_else(|| panic!("{insn} is lowered"));
    core.gpr[BLOCK_RIP as usize] = core.rip;
    let next = core.next_rip(&op);
    match (op.exec)(core, &op) {
        Ok(()) | Err(Leave::End) => core.rip = next,
        Err(Leave::Branch) => {}
        Err(leave) => return Err(leave),
    }
    Ok(())
}
