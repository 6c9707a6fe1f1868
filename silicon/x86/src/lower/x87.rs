//! The x87 FPU: one line a form.

use iced_x86::Code;

use crate::exec::x87::arithmetic::{Add, Div, DivReversed, Mul, Sub, SubReversed, memory, st0_sti, sti_st0};
use crate::exec::x87::environment::{Bits16, Bits32, fldenv, fnsave, fnstenv, frstor};
use crate::exec::x87::memory::{Double, Integer16, Integer32, Single};
use crate::exec::x87::status::HAS_MEMORY;
use crate::exec::x87::{compare, control, load, moves, store, transcendental, unary, wait};
use crate::op::{Exec, Lowering, Op};

/// The op of an x87 instruction: ST(i) in `a`, whether it has a memory operand in `b`, FOP in the immediate.
///
/// The decoder gives WAIT and the instruction it belongs to (FSTCW, FINIT and so on) as two instructions, which is what
/// they are.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    let mut op = l.op(exec(l.insn.code())?);
    let operands = l.insn.op_count();
    if let Some(i) = (0..operands).find(|&i| l.is_mem(i)) {
        debug_assert_eq!(i, 0);
        op.b = HAS_MEMORY;
    }
    // Of the two registers of `FADD ST(i), ST(0)` and `FADD ST(0), ST(i)`, one has to be ST(0). FCOMPP and FUCOMPP
    // have ST(1) that way.
    op.a = (0..operands).filter(|&i| l.is_reg(i)).map(|i| l.reg(i)).max().unwrap_or(0);
    if matches!(l.insn.code(), Code::Fcompp | Code::Fucompp) {
        op.a = 1;
    }
    op.imm = opcode(l.bytes);
    Some(op)
}

/// FOP: the low three bits of the first opcode byte (D8 to DF, which no prefix is) and the second.
fn opcode(bytes: &[u8]) -> u64 {
    let mut bytes = bytes.iter().skip_while(|&b| b & 0xf8 != 0xd8);
    let (first, second) = (bytes.next(), bytes.next());
    first.zip(second).map_or(0, |(&first, &second)| u64::from(first & 7) << 8 | u64::from(second))
}

fn exec(code: Code) -> Option<Exec> {
    arithmetic_exec(code).or_else(|| compare_exec(code)).or_else(|| transfer_exec(code)).or_else(|| other_exec(code))
}

fn arithmetic_exec(code: Code) -> Option<Exec> {
    Some(match code {
        Code::Fadd_m32fp => memory::<Add, Single>,
        Code::Fmul_m32fp => memory::<Mul, Single>,
        Code::Fsub_m32fp => memory::<Sub, Single>,
        Code::Fsubr_m32fp => memory::<SubReversed, Single>,
        Code::Fdiv_m32fp => memory::<Div, Single>,
        Code::Fdivr_m32fp => memory::<DivReversed, Single>,
        Code::Fadd_m64fp => memory::<Add, Double>,
        Code::Fmul_m64fp => memory::<Mul, Double>,
        Code::Fsub_m64fp => memory::<Sub, Double>,
        Code::Fsubr_m64fp => memory::<SubReversed, Double>,
        Code::Fdiv_m64fp => memory::<Div, Double>,
        Code::Fdivr_m64fp => memory::<DivReversed, Double>,
        Code::Fiadd_m16int => memory::<Add, Integer16>,
        Code::Fimul_m16int => memory::<Mul, Integer16>,
        Code::Fisub_m16int => memory::<Sub, Integer16>,
        Code::Fisubr_m16int => memory::<SubReversed, Integer16>,
        Code::Fidiv_m16int => memory::<Div, Integer16>,
        Code::Fidivr_m16int => memory::<DivReversed, Integer16>,
        Code::Fiadd_m32int => memory::<Add, Integer32>,
        Code::Fimul_m32int => memory::<Mul, Integer32>,
        Code::Fisub_m32int => memory::<Sub, Integer32>,
        Code::Fisubr_m32int => memory::<SubReversed, Integer32>,
        Code::Fidiv_m32int => memory::<Div, Integer32>,
        Code::Fidivr_m32int => memory::<DivReversed, Integer32>,
        Code::Fadd_st0_sti => st0_sti::<Add>,
        Code::Fmul_st0_sti => st0_sti::<Mul>,
        Code::Fsub_st0_sti => st0_sti::<Sub>,
        Code::Fsubr_st0_sti => st0_sti::<SubReversed>,
        Code::Fdiv_st0_sti => st0_sti::<Div>,
        Code::Fdivr_st0_sti => st0_sti::<DivReversed>,
        Code::Fadd_sti_st0 => sti_st0::<Add, 0>,
        Code::Fmul_sti_st0 => sti_st0::<Mul, 0>,
        Code::Fsub_sti_st0 => sti_st0::<Sub, 0>,
        Code::Fsubr_sti_st0 => sti_st0::<SubReversed, 0>,
        Code::Fdiv_sti_st0 => sti_st0::<Div, 0>,
        Code::Fdivr_sti_st0 => sti_st0::<DivReversed, 0>,
        Code::Faddp_sti_st0 => sti_st0::<Add, 1>,
        Code::Fmulp_sti_st0 => sti_st0::<Mul, 1>,
        Code::Fsubp_sti_st0 => sti_st0::<Sub, 1>,
        Code::Fsubrp_sti_st0 => sti_st0::<SubReversed, 1>,
        Code::Fdivp_sti_st0 => sti_st0::<Div, 1>,
        Code::Fdivrp_sti_st0 => sti_st0::<DivReversed, 1>,
        Code::Fchs => unary::fchs,
        Code::Fabs => unary::fabs,
        Code::Fsqrt => unary::fsqrt,
        Code::Frndint => unary::frndint,
        Code::Fscale => unary::fscale,
        Code::Fxtract => unary::fxtract,
        Code::Fprem => unary::fprem,
        Code::Fprem1 => unary::fprem1,
        Code::F2xm1 => transcendental::f2xm1,
        Code::Fyl2x => transcendental::fyl2x,
        Code::Fyl2xp1 => transcendental::fyl2xp1,
        Code::Fpatan => transcendental::fpatan,
        Code::Fptan => transcendental::fptan,
        Code::Fsin => transcendental::fsin,
        Code::Fcos => transcendental::fcos,
        Code::Fsincos => transcendental::fsincos,
        _ => return None,
    })
}

fn compare_exec(code: Code) -> Option<Exec> {
    Some(match code {
        Code::Fcom_m32fp => compare::fcom_memory::<Single, 0>,
        Code::Fcomp_m32fp => compare::fcom_memory::<Single, 1>,
        Code::Fcom_m64fp => compare::fcom_memory::<Double, 0>,
        Code::Fcomp_m64fp => compare::fcom_memory::<Double, 1>,
        Code::Ficom_m16int => compare::fcom_memory::<Integer16, 0>,
        Code::Ficomp_m16int => compare::fcom_memory::<Integer16, 1>,
        Code::Ficom_m32int => compare::fcom_memory::<Integer32, 0>,
        Code::Ficomp_m32int => compare::fcom_memory::<Integer32, 1>,
        Code::Fcom_st0_sti | Code::Fcom_st0_sti_DCD0 => compare::fcom_sti::<0>,
        Code::Fcomp_st0_sti | Code::Fcomp_st0_sti_DCD8 | Code::Fcomp_st0_sti_DED0 => compare::fcom_sti::<1>,
        Code::Fcompp => compare::fcom_sti::<2>,
        Code::Fucom_st0_sti => compare::fucom_sti::<0>,
        Code::Fucomp_st0_sti => compare::fucom_sti::<1>,
        Code::Fucompp => compare::fucom_sti::<2>,
        Code::Fcomi_st0_sti => compare::fcomi::<0>,
        Code::Fcomip_st0_sti => compare::fcomi::<1>,
        Code::Fucomi_st0_sti => compare::fucomi::<0>,
        Code::Fucomip_st0_sti => compare::fucomi::<1>,
        Code::Ftst => compare::ftst,
        Code::Fxam => compare::fxam,
        _ => return None,
    })
}

fn transfer_exec(code: Code) -> Option<Exec> {
    Some(match code {
        Code::Fld_m32fp => load::fld_m32,
        Code::Fld_m64fp => load::fld_m64,
        Code::Fld_m80fp => load::fld_m80,
        Code::Fld_sti => load::fld_sti,
        Code::Fild_m16int => load::fild_m16,
        Code::Fild_m32int => load::fild_m32,
        Code::Fild_m64int => load::fild_m64,
        Code::Fbld_m80bcd => load::fbld,
        Code::Fld1 => load::fld1,
        Code::Fldl2t => load::fldl2t,
        Code::Fldl2e => load::fldl2e,
        Code::Fldpi => load::fldpi,
        Code::Fldlg2 => load::fldlg2,
        Code::Fldln2 => load::fldln2,
        Code::Fldz => load::fldz,
        Code::Fst_m32fp => store::fst_m32::<0>,
        Code::Fstp_m32fp => store::fst_m32::<1>,
        Code::Fst_m64fp => store::fst_m64::<0>,
        Code::Fstp_m64fp => store::fst_m64::<1>,
        Code::Fstp_m80fp => store::fstp_m80,
        Code::Fst_sti => store::fst_sti::<0>,
        Code::Fstp_sti | Code::Fstp_sti_DFD0 | Code::Fstp_sti_DFD8 => store::fst_sti::<1>,
        Code::Fstpnce_sti => store::fstpnce_sti,
        Code::Fist_m16int => store::fist_m16::<0>,
        Code::Fistp_m16int => store::fist_m16::<1>,
        Code::Fist_m32int => store::fist_m32::<0>,
        Code::Fistp_m32int => store::fist_m32::<1>,
        Code::Fistp_m64int => store::fistp_m64,
        Code::Fisttp_m16int => store::fisttp_m16,
        Code::Fisttp_m32int => store::fisttp_m32,
        Code::Fisttp_m64int => store::fisttp_m64,
        Code::Fbstp_m80bcd => store::fbstp,
        Code::Fxch_st0_sti | Code::Fxch_st0_sti_DDC8 | Code::Fxch_st0_sti_DFC8 => moves::fxch,
        Code::Fcmovb_st0_sti => moves::fcmov::<2>,
        Code::Fcmovnb_st0_sti => moves::fcmov::<3>,
        Code::Fcmove_st0_sti => moves::fcmov::<4>,
        Code::Fcmovne_st0_sti => moves::fcmov::<5>,
        Code::Fcmovbe_st0_sti => moves::fcmov::<6>,
        Code::Fcmovnbe_st0_sti => moves::fcmov::<7>,
        Code::Fcmovu_st0_sti => moves::fcmov::<10>,
        Code::Fcmovnu_st0_sti => moves::fcmov::<11>,
        _ => return None,
    })
}

fn other_exec(code: Code) -> Option<Exec> {
    Some(match code {
        Code::Ffree_sti => moves::ffree::<0>,
        Code::Ffreep_sti => moves::ffree::<1>,
        Code::Fincstp => moves::fincstp,
        Code::Fdecstp => moves::fdecstp,
        Code::Fnop => moves::fnop,
        Code::Fninit => control::fninit,
        Code::Fnclex => control::fnclex,
        Code::Fldcw_m2byte => control::fldcw,
        Code::Fnstcw_m2byte => control::fnstcw,
        Code::Fnstsw_m2byte => control::fnstsw,
        Code::Fnstsw_AX => control::fnstsw_ax,
        Code::Fneni | Code::Fndisi | Code::Fnsetpm => control::nothing,
        Code::Fnstenv_m14byte => fnstenv::<Bits16>,
        Code::Fnstenv_m28byte => fnstenv::<Bits32>,
        Code::Fldenv_m14byte => fldenv::<Bits16>,
        Code::Fldenv_m28byte => fldenv::<Bits32>,
        Code::Fnsave_m94byte => fnsave::<Bits16>,
        Code::Fnsave_m108byte => fnsave::<Bits32>,
        Code::Frstor_m94byte => frstor::<Bits16>,
        Code::Frstor_m108byte => frstor::<Bits32>,
        Code::Wait => wait,
        _ => return None,
    })
}
