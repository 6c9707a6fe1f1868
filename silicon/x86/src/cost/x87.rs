//! Static cost of x87 instructions in quarter cycles.
//!
//! Reciprocal throughputs: of what is one or two micro-operations from LLVM's scheduling model of Sapphire Rapids
//! (`X86SchedSapphireRapids.td`); of division and of microcode, which that model leaves out, from Agner Fog, "Instruction
//! tables", "Intel Skylake-X", about the middle of the range that stands there, on the assumption that x87 has become
//! neither faster nor slower since.

use iced_x86::Mnemonic;

/// Cost of an x87 instruction, with registers; `None` if it is another one.
#[must_use]
pub fn of(mnemonic: Mnemonic) -> Option<u16> {
    use Mnemonic as M;
    let cycles = match mnemonic {
        // A load, a store or a change of TOP.
        M::Fld | M::Fst | M::Fstp | M::Fnop | M::Fincstp | M::Fdecstp | M::Ffree | M::Ffreep | M::Fldz => 1,
        M::Fabs | M::Fchs | M::Fld1 | M::Fldl2e | M::Fldl2t | M::Fldlg2 | M::Fldln2 | M::Fldpi => 1,
        M::Fild | M::Fist | M::Fistp | M::Fisttp => 1,
        M::Fadd | M::Faddp | M::Fsub | M::Fsubp | M::Fsubr | M::Fsubrp | M::Fmul | M::Fmulp => 1,
        M::Fcom | M::Fcomp | M::Fucom | M::Fucomp | M::Fcomi | M::Fcomip | M::Fucomi | M::Fucomip => 1,
        M::Ftst | M::Fxam | M::Fucompp | M::Fcompp => 1,
        M::Fcmovb | M::Fcmovbe | M::Fcmove | M::Fcmovnb | M::Fcmovnbe | M::Fcmovne | M::Fcmovnu | M::Fcmovu => 1,
        M::Fldcw | M::Fnstcw | M::Fnstsw => 1,
        M::Wait => 1,
        // The integer is converted first.
        M::Fiadd | M::Fisub | M::Fisubr | M::Fimul | M::Ficom | M::Ficomp => 2,
        M::Fxch => 4,
        M::Fdiv | M::Fdivp | M::Fdivr | M::Fdivrp | M::Fidiv | M::Fidivr => 5,
        M::Fsqrt => 7,
        // Microcode.
        M::Fxtract | M::Frndint => 11,
        M::Fnclex => 22,
        M::Fbld => 22,
        M::Fprem | M::Fprem1 => 26,
        M::Fnstenv | M::Fldenv => 30,
        M::Fyl2xp1 | M::F2xm1 => 75,
        M::Fninit => 78,
        M::Fyl2x => 100,
        M::Fsin | M::Fcos => 90,
        M::Fsincos => 105,
        M::Fscale | M::Fpatan => 130,
        M::Fptan => 150,
        M::Fnsave | M::Frstor => 175,
        M::Fbstp => 265,
        _ => return None,
    };
    Some(4 * cycles)
}
