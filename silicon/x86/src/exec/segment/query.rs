//! LAR, LSL, VERR, VERW, ARPL.

use silicon_memory::Word;

use super::descriptor::{Descriptor, find, is_null, rpl};
use super::tables::protected_only;
use crate::op::{Done, ZERO};
use crate::{Core, Leave, Op};

fn operand(core: &mut Core, op: &Op) -> Result<u16, Leave> {
    protected_only(core)?;
    if op.b == ZERO { core.load::<u16>(op) } else { Ok(core.get::<u16>(op.b)) }
}

/// The descriptor where the program may see it: `types` are the system types that the instruction accepts.
fn visible(core: &mut Core, selector: u16, types: [&[u8]; 2]) -> Result<Option<Descriptor>, Leave> {
    if is_null(selector) {
        return Ok(None);
    }
    let Some(located) = find(core, selector)? else { return Ok(None) };
    let d = located.descriptor;
    let accepted = match d.system_type() {
        None => true,
        Some(t) => types[usize::from(core.mode.is_ia32e())].contains(&t),
    };
    let privileged = d.is_conforming() || (core.mode.cpl <= d.dpl() && rpl(selector) <= d.dpl());
    Ok((accepted && privileged).then_some(d))
}

/// LAR. `a`: destination, `b`: selector register, or [`ZERO`] for memory.
pub fn lar<T: Word>(core: &mut Core, op: &Op) -> Done {
    let selector = operand(core, op)?;
    let found = visible(core, selector, [&[1, 2, 3, 4, 5, 9, 11, 12], &[2, 9, 11, 12]])?;
    core.flags.set_zf(found.is_some());
    if let Some(d) = found {
        let mask = if T::BYTES == 2 { 0xff00 } else { 0x00f0_ff00 };
        core.set(op.a, T::from_u64(d.0 >> 32 & mask));
    }
    Ok(())
}

/// LSL. Operands as for [`lar`].
pub fn lsl<T: Word>(core: &mut Core, op: &Op) -> Done {
    let selector = operand(core, op)?;
    let found = visible(core, selector, [&[1, 2, 3, 9, 11], &[2, 9, 11]])?;
    core.flags.set_zf(found.is_some());
    if let Some(d) = found {
        core.set(op.a, T::from_u64(u64::from(d.limit())));
    }
    Ok(())
}

/// VERR. `b`: selector register, or [`ZERO`] for memory.
pub fn verr(core: &mut Core, op: &Op) -> Done {
    let selector = operand(core, op)?;
    let found = visible(core, selector, [&[], &[]])?;
    core.flags.set_zf(found.is_some_and(Descriptor::is_readable));
    Ok(())
}

/// VERW. `b`: as for [`verr`].
pub fn verw(core: &mut Core, op: &Op) -> Done {
    let selector = operand(core, op)?;
    let found = visible(core, selector, [&[], &[]])?;
    core.flags.set_zf(found.is_some_and(Descriptor::is_writable_data));
    Ok(())
}

fn adjusted(core: &mut Core, destination: u16, source: u16) -> u16 {
    let raise = rpl(destination) < rpl(source);
    core.flags.set_zf(raise);
    if raise { (destination & !3) | u16::from(rpl(source)) } else { destination }
}

/// ARPL r16, r16. `a`: destination, `b`: source.
pub fn arpl_register(core: &mut Core, op: &Op) -> Done {
    protected_only(core)?;
    let (destination, source) = (core.get::<u16>(op.a), core.get::<u16>(op.b));
    let value = adjusted(core, destination, source);
    core.set(op.a, value);
    Ok(())
}

/// ARPL m16, r16. `b`: source.
pub fn arpl_memory(core: &mut Core, op: &Op) -> Done {
    protected_only(core)?;
    let source = core.get::<u16>(op.b);
    core.modify::<u16>(op, |core, destination| adjusted(core, destination, source))
}
