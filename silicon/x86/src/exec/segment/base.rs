//! SWAPGS and RDFSBASE, RDGSBASE, WRFSBASE, WRGSBASE.

use silicon_memory::Word;
use x86_defs::control::cr4;
use x86_defs::segment::index;

use crate::op::Done;
use crate::{Core, Leave, Op};

/// SWAPGS.
pub fn swapgs(core: &mut Core, op: &Op) -> Done {
    let _ = op;
    if !core.mode.is_64() {
        return Err(core.ud());
    }
    if core.mode.cpl != 0 {
        return Err(core.gp0());
    }
    std::mem::swap(&mut core.seg[index::GS].base, &mut core.msrs.kernel_gs_base);
    Ok(())
}

fn available(core: &mut Core) -> Result<(), Leave> {
    if !core.mode.is_64() || core.cr4 & cr4::FSGSBASE == 0 { Err(core.ud()) } else { Ok(()) }
}

/// RDFSBASE, RDGSBASE. `a`: register, `b`: segment.
pub fn read_base<T: Word>(core: &mut Core, op: &Op) -> Done {
    available(core)?;
    let base = core.seg[usize::from(op.b)].base;
    core.set(op.a, T::from_u64(base));
    Ok(())
}

/// WRFSBASE, WRGSBASE. `a`: register, `b`: segment.
pub fn write_base<T: Word>(core: &mut Core, op: &Op) -> Done {
    available(core)?;
    let base = core.get::<T>(op.a).to_u64();
    if !core.model.is_canonical(base) {
        return Err(core.gp0());
    }
    core.seg[usize::from(op.b)].base = base;
    Ok(())
}
