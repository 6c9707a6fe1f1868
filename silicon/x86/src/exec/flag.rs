//! Instructions that move or change single flags ("Flag Control (EFLAG) Instructions").

use x86_defs::rflags;

use crate::Core;
use crate::op::{Done, Op};

pub fn clc(core: &mut Core, _: &Op) -> Done {
    core.flags.set_cf(false);
    Ok(())
}

pub fn stc(core: &mut Core, _: &Op) -> Done {
    core.flags.set_cf(true);
    Ok(())
}

pub fn cmc(core: &mut Core, _: &Op) -> Done {
    let cf = core.flags.cf();
    core.flags.set_cf(!cf);
    Ok(())
}

pub fn cld(core: &mut Core, _: &Op) -> Done {
    core.rflags_rest &= !rflags::DF;
    Ok(())
}

pub fn std(core: &mut Core, _: &Op) -> Done {
    core.rflags_rest |= rflags::DF;
    Ok(())
}

const LOW: u64 = rflags::SF | rflags::ZF | rflags::AF | rflags::PF | rflags::CF;
const AH: u8 = 0x40;

pub fn lahf(core: &mut Core, _: &Op) -> Done {
    let value = core.flags.bits() & LOW | rflags::FIXED;
    core.set(AH, value as u8);
    Ok(())
}

pub fn sahf(core: &mut Core, _: &Op) -> Done {
    let ah = u64::from(core.get::<u8>(AH));
    let of = core.flags.bits() & rflags::OF;
    core.flags.set_bits(ah & LOW | of);
    Ok(())
}

/// SALC: AL is all ones if CF, else zero.
pub fn salc(core: &mut Core, _: &Op) -> Done {
    let value = if core.flags.cf() { 0xff } else { 0 };
    core.set::<u8>(0, value);
    Ok(())
}
