//! CALL far, through call gates to inner levels too.

use silicon_memory::Word;
use x86_defs::segment::index;

use super::target::{By, CallGate, Destination, immediate_pointer, resolve};
use crate::core::SegmentRegister;
use crate::exec::segment::descriptor::{Located, mark_accessed};
use crate::exec::segment::load::commit;
use crate::exec::segment::moves::far_pointer;
use crate::exec::segment::stack::{Stack, from_legacy_tss, from_tss64, inner_ss, null_ss};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// CALL ptr16:16, ptr16:32. `T`: word of the operand size.
pub fn immediate<T: Word>(core: &mut Core, op: &Op) -> Done {
    let (selector, offset) = immediate_pointer(op);
    call(core, op, selector, offset, T::BYTES as u8)
}

/// CALL m16:16, m16:32, m16:64.
pub fn memory<T: Word>(core: &mut Core, op: &Op) -> Done {
    let (selector, offset) = far_pointer::<T>(core, op)?;
    call(core, op, selector, offset, T::BYTES as u8)
}

fn call(core: &mut Core, op: &Op, selector: u16, offset: u64, bytes: u8) -> Done {
    match resolve(core, op, By::Call, selector, offset)? {
        Destination::Same { cs, rip } => same_level(core, op, cs, rip, bytes),
        Destination::Gate { cs, gate } => same_level(core, op, cs, gate.offset, gate.bytes),
        Destination::Inner { code, gate } => inner_level(core, op, code, gate),
    }
}

fn same_level(core: &mut Core, op: &Op, cs: SegmentRegister, rip: u64, bytes: u8) -> Done {
    // With a gate to 64-bit code the pushes are of 64-bit mode.
    let mut stack = if bytes == 8 && !core.mode.is_64() {
        Stack::new_64(core.seg[index::SS], core.gpr[4], core.mode.cpl)
    } else {
        Stack::current(core)
    };
    stack.check_push(core, 2 * u64::from(bytes))?;
    stack.push(core, bytes, u64::from(core.seg[index::CS].selector))?;
    let return_rip = core.next_rip(op);
    stack.push(core, bytes, return_rip)?;
    core.gpr[4] = stack.sp;
    commit(core, index::CS, cs);
    core.rip = rip;
    Err(Leave::Branch)
}

fn inner_level(core: &mut Core, op: &Op, code: Located, gate: CallGate) -> Done {
    let d = code.descriptor;
    let cpl = d.dpl();
    let old_ss = core.seg[index::SS].selector;
    let old_sp = core.gpr[4];
    let mut stack = if gate.bytes == 8 {
        let sp = from_tss64(core, 4 + u64::from(cpl) * 8)?;
        Stack::new_64(null_ss(cpl), sp, cpl)
    } else {
        let (selector, sp) = from_legacy_tss(core, cpl)?;
        Stack::new_legacy(inner_ss(core, selector, cpl)?, sp, cpl)
    };
    let mut parameters = [0; 32];
    let count = usize::from(gate.parameters & 31);
    let mut old_stack = Stack::current(core);
    for parameter in &mut parameters[..count] {
        *parameter = old_stack.pop(core, gate.bytes)?;
    }
    stack.check_push(core, (4 + count as u64) * u64::from(gate.bytes))?;
    mark_accessed(core, code)?;
    stack.push(core, gate.bytes, u64::from(old_ss))?;
    stack.push(core, gate.bytes, old_sp)?;
    for parameter in parameters[..count].iter().rev() {
        stack.push(core, gate.bytes, *parameter)?;
    }
    stack.push(core, gate.bytes, u64::from(core.seg[index::CS].selector))?;
    let return_rip = core.next_rip(op);
    stack.push(core, gate.bytes, return_rip)?;
    core.seg[index::SS] = stack.ss;
    core.gpr[4] =
        if gate.bytes == 8 { stack.sp } else { (old_sp & !stack.mask & 0xffff_ffff) | (stack.sp & stack.mask) };
    commit(core, index::CS, d.segment((gate.selector & !3) | u16::from(cpl)));
    core.rip = gate.offset;
    Err(Leave::Branch)
}
