//! Adjustment of decimal numbers ("Decimal Arithmetic Instructions"); not in 64-bit mode.
//!
//! Flags that the manual leaves undefined: zero, but for PF, SF and ZF, which follow AL.

use x86_defs::{exception::vector, rflags};

use crate::Core;
use crate::op::{Done, Op};

const AH: u8 = 0x40;

fn finish(core: &mut Core, al: u8, cf: bool, af: bool) {
    core.set::<u8>(0, al);
    core.flags.result_with::<u8>(u64::from(al), cf, false);
    if af {
        let bits = core.flags.bits() | rflags::AF;
        core.flags.set_bits(bits);
    }
}

fn adjust(core: &mut Core, step: fn(u8, u8) -> (u8, bool)) {
    let old = core.get::<u8>(0);
    let (old_cf, old_af) = (core.flags.cf(), core.flags.af());
    let (mut al, mut cf) = (old, false);
    let af = old & 15 > 9 || old_af;
    if af {
        let (adjusted, carry) = step(al, 6);
        al = adjusted;
        cf = old_cf || carry;
    }
    if old > 0x99 || old_cf {
        al = step(al, 0x60).0;
        cf = true;
    }
    finish(core, al, cf, af);
}

pub fn daa(core: &mut Core, _: &Op) -> Done {
    adjust(core, u8::overflowing_add);
    Ok(())
}

pub fn das(core: &mut Core, _: &Op) -> Done {
    adjust(core, u8::overflowing_sub);
    Ok(())
}

fn unpacked(core: &mut Core, step: fn(u16, u16) -> u16) {
    let adjusted = core.get::<u8>(0) & 15 > 9 || core.flags.af();
    if adjusted {
        // Six goes to AL and one to AH, with the carry of AL into AH.
        let ax = core.get::<u16>(0);
        core.set(0, step(ax, 0x106));
    }
    let al = core.get::<u8>(0) & 15;
    finish(core, al, adjusted, adjusted);
}

pub fn aaa(core: &mut Core, _: &Op) -> Done {
    unpacked(core, u16::wrapping_add);
    Ok(())
}

pub fn aas(core: &mut Core, _: &Op) -> Done {
    unpacked(core, u16::wrapping_sub);
    Ok(())
}

pub fn aam(core: &mut Core, op: &Op) -> Done {
    let al = core.get::<u8>(0);
    let base = op.imm as u8;
    let (Some(high), Some(low)) = (al.checked_div(base), al.checked_rem(base)) else {
        return Err(core.raise(vector::DE));
    };
    core.set(AH, high);
    finish(core, low, false, false);
    Ok(())
}

pub fn aad(core: &mut Core, op: &Op) -> Done {
    let al = core.get::<u8>(AH).wrapping_mul(op.imm as u8).wrapping_add(core.get::<u8>(0));
    core.set::<u16>(0, 0);
    finish(core, al, false, false);
    Ok(())
}
