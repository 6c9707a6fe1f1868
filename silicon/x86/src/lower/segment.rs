//! Segment registers and descriptor tables.

use iced_x86::{Code, Instruction, Mnemonic, Register};
use x86_defs::segment::index;

use super::info;
use crate::exec::segment::{base, moves, query, tables};
use crate::op::{Exec, Lowering, Op};

/// Whether the instruction ends its block.
#[must_use]
pub fn ends_block(insn: &Instruction) -> bool {
    use Mnemonic::{Lgdt, Lidt, Lldt, Lss, Ltr, Mov, Pop};
    match insn.mnemonic() {
        Lgdt | Lidt | Lldt | Ltr | Lss => true,
        Mov | Pop => insn.op_register(0) == Register::SS,
        _ => false,
    }
}

/// The op of an instruction of this family.
#[must_use]
pub fn lower(l: &Lowering<'_>) -> Option<Op> {
    moves(l).or_else(|| far_pointers(l)).or_else(|| tables(l)).or_else(|| queries(l)).or_else(|| bases(l))
}

fn segment(register: Register) -> Option<u8> {
    (register.is_segment_register() && register.number() < 6).then_some(register.number() as u8)
}

fn moves(l: &Lowering<'_>) -> Option<Op> {
    match l.insn.mnemonic() {
        Mnemonic::Mov => mov(l),
        Mnemonic::Push => {
            let a = segment(l.insn.op_register(0))?;
            let exec: Exec = match l.insn.stack_pointer_increment() {
                -2 => moves::push::<u16>,
                -4 => moves::push::<u32>,
                _ => moves::push::<u64>,
            };
            Some(Op { a, ..l.op(exec) })
        }
        Mnemonic::Pop => {
            let a = segment(l.insn.op_register(0)).filter(|s| usize::from(*s) != index::CS)?;
            let exec: Exec = match l.insn.stack_pointer_increment() {
                2 => moves::pop::<u16>,
                4 => moves::pop::<u32>,
                _ => moves::pop::<u64>,
            };
            Some(Op { a, ..l.op(exec) })
        }
        _ => None,
    }
}

fn mov(l: &Lowering<'_>) -> Option<Op> {
    match l.insn.code() {
        Code::Mov_Sreg_rm16 | Code::Mov_Sreg_r32m16 | Code::Mov_Sreg_r64m16 => {
            let a = segment(l.insn.op_register(0)).filter(|s| usize::from(*s) != index::CS)?;
            Some(if l.is_mem(1) {
                Op { a, ..l.op(moves::mov_from_memory) }
            } else {
                Op { a, b: l.reg(1), ..l.op(moves::mov_from_register) }
            })
        }
        Code::Mov_rm16_Sreg | Code::Mov_r32m16_Sreg | Code::Mov_r64m16_Sreg => {
            let b = segment(l.insn.op_register(1))?;
            if l.is_mem(0) {
                return Some(Op { b, ..l.op(moves::mov_to_memory) });
            }
            let exec: Exec = match l.bits(0) {
                16 => moves::mov_to_register::<u16>,
                32 => moves::mov_to_register::<u32>,
                _ => moves::mov_to_register::<u64>,
            };
            Some(Op { a: l.reg(0), b, ..l.op(exec) })
        }
        _ => None,
    }
}

fn far_pointers(l: &Lowering<'_>) -> Option<Op> {
    let b = match l.insn.mnemonic() {
        Mnemonic::Lds => index::DS,
        Mnemonic::Les => index::ES,
        Mnemonic::Lfs => index::FS,
        Mnemonic::Lgs => index::GS,
        Mnemonic::Lss => index::SS,
        _ => return None,
    };
    let exec: Exec = match l.bits(0) {
        16 => moves::load_far_pointer::<u16>,
        32 => moves::load_far_pointer::<u32>,
        _ => moves::load_far_pointer::<u64>,
    };
    Some(Op { a: l.reg(0), b: b as u8, ..l.op(exec) })
}

fn tables(l: &Lowering<'_>) -> Option<Op> {
    use tables::{Base24, Base32, Base64, Gdt, Idt, load_table, store_table};
    /// Identity of the instruction in bits 29:28, operand size in bit 11.
    const WIDE: u32 = 1 << 11;
    let (exec, identity): (Exec, u32) = match l.insn.code() {
        Code::Sgdt_m1632_16 => (store_table::<Gdt, Base24>, 0),
        Code::Sgdt_m1632 => (store_table::<Gdt, Base32>, WIDE),
        Code::Sgdt_m1664 => (store_table::<Gdt, Base64>, WIDE),
        Code::Sidt_m1632_16 => (store_table::<Idt, Base24>, 1 << 28),
        Code::Sidt_m1632 => (store_table::<Idt, Base32>, 1 << 28 | WIDE),
        Code::Sidt_m1664 => (store_table::<Idt, Base64>, 1 << 28 | WIDE),
        Code::Lgdt_m1632_16 => (load_table::<Gdt, Base24>, 2 << 28),
        Code::Lgdt_m1632 => (load_table::<Gdt, Base32>, 2 << 28 | WIDE),
        Code::Lgdt_m1664 => (load_table::<Gdt, Base64>, 2 << 28 | WIDE),
        Code::Lidt_m1632_16 => (load_table::<Idt, Base24>, 3 << 28),
        Code::Lidt_m1632 => (load_table::<Idt, Base32>, 3 << 28 | WIDE),
        Code::Lidt_m1664 => (load_table::<Idt, Base64>, 3 << 28 | WIDE),
        _ => return selectors(l),
    };
    let mut op = l.op(exec);
    op.imm = u64::from(info::operand(l, &op) | identity);
    Some(op)
}

fn selectors(l: &Lowering<'_>) -> Option<Op> {
    let (mut op, identity) = match l.insn.mnemonic() {
        Mnemonic::Lldt => (l.op(tables::lldt), 2),
        Mnemonic::Ltr => (l.op(tables::ltr), 3),
        Mnemonic::Sldt => (Op { b: index::LDTR as u8, ..l.op(store_selector(l)) }, 0),
        Mnemonic::Str => (Op { b: index::TR as u8, ..l.op(store_selector(l)) }, 1),
        _ => return None,
    };
    let register = if l.is_reg(0) {
        op.a = l.reg(0);
        info::reg1(op.a)
    } else {
        0
    };
    op.imm = u64::from(info::operand(l, &op) | register | identity << 28);
    Some(op)
}

fn store_selector(l: &Lowering<'_>) -> Exec {
    if l.is_mem(0) {
        return tables::store_selector_memory;
    }
    match l.bits(0) {
        16 => tables::store_selector_register::<u16>,
        32 => tables::store_selector_register::<u32>,
        _ => tables::store_selector_register::<u64>,
    }
}

fn queries(l: &Lowering<'_>) -> Option<Op> {
    let selector = |n: u32, exec: Exec| {
        let mut op = l.op(exec);
        if l.is_reg(n) {
            op.b = l.reg(n);
        }
        op
    };
    let sized = |word: Exec, double: Exec, quad: Exec| match l.bits(0) {
        16 => word,
        32 => double,
        _ => quad,
    };
    Some(match l.insn.mnemonic() {
        Mnemonic::Lar => {
            let exec = sized(query::lar::<u16>, query::lar::<u32>, query::lar::<u64>);
            Op { a: l.reg(0), ..selector(1, exec) }
        }
        Mnemonic::Lsl => {
            let exec = sized(query::lsl::<u16>, query::lsl::<u32>, query::lsl::<u64>);
            Op { a: l.reg(0), ..selector(1, exec) }
        }
        Mnemonic::Verr => selector(0, query::verr),
        Mnemonic::Verw => selector(0, query::verw),
        Mnemonic::Arpl if l.is_mem(0) => Op { b: l.reg(1), ..l.op(query::arpl_memory) },
        Mnemonic::Arpl => Op { a: l.reg(0), b: l.reg(1), ..l.op(query::arpl_register) },
        _ => return None,
    })
}

fn bases(l: &Lowering<'_>) -> Option<Op> {
    let wide = l.bits(0) == 64;
    let (exec, b): (Exec, usize) = match l.insn.mnemonic() {
        Mnemonic::Swapgs => return Some(l.op(base::swapgs)),
        Mnemonic::Rdfsbase => (if wide { base::read_base::<u64> } else { base::read_base::<u32> }, index::FS),
        Mnemonic::Rdgsbase => (if wide { base::read_base::<u64> } else { base::read_base::<u32> }, index::GS),
        Mnemonic::Wrfsbase => (if wide { base::write_base::<u64> } else { base::write_base::<u32> }, index::FS),
        Mnemonic::Wrgsbase => (if wide { base::write_base::<u64> } else { base::write_base::<u32> }, index::GS),
        _ => return None,
    };
    Some(Op { a: l.reg(0), b: b as u8, ..l.op(exec) })
}
