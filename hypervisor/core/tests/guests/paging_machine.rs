//! 32-bit guests: protected mode without paging, which the case turns on.

use hypervisor::{VmConfig, kvm_regs, kvm_segment, kvm_sregs};
use iced_x86::code_asm::*;

use crate::machine::{CODE, END_PORT, FAULTS, GDT, IDT, Machine};

pub const CODE_32: u16 = 0x08;
pub const DATA_32: u16 = 0x10;
const USER_DATA_32: u32 = 0x1b;
const USER_CODE_32: u32 = 0x23;
/// Where code for user mode is.
pub const USER_CODE_AT: u64 = CODE + 0x800;
const HANDLERS: u64 = CODE + 0xc00;
const TSS: u64 = 0x1800;
const STACK: u64 = 0x4_4000;

/// Null, code, data, user data, user code, TSS.
const DESCRIPTORS: [u64; 6] = [
    0,
    0x00cf_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0x00cf_f300_0000_ffff,
    0x00cf_fb00_0000_ffff,
    0x0000_8b00_1800_0067,
];

/// Exceptions that have a gate, and whether they push an error code.
const GATES: [(u64, bool); 5] = [(6, false), (13, true), (14, true), (17, true), (12, true)];

pub fn assemble(at: u64, body: impl FnOnce(&mut CodeAssembler)) -> Vec<u8> {
    let mut a = CodeAssembler::new(32).expect("32-bit code exists");
    body(&mut a);
    a.assemble(at).expect("the case can be assembled")
}

/// Records vector, error code, EIP and CR2, and ends the case.
fn handler(vector: u64, has_code: bool) -> impl FnOnce(&mut CodeAssembler) {
    move |a| {
        if !has_code {
            emit!(a; push(0));
        }
        let record = FAULTS as u32 + 32;
        emit!(a; mov(ax, u32::from(DATA_32)); mov(ds, eax); mov(dword_ptr(record), vector as u32));
        for (slot, field) in [(0_u32, 8), (4, 16)] {
            emit!(a; mov(eax, dword_ptr(esp + slot)); mov(dword_ptr(record + field), eax));
        }
        emit!(a; mov(eax, cr2); mov(dword_ptr(record + 24), eax); inc(dword_ptr(FAULTS as u32)));
        end(a);
    }
}

pub fn end(a: &mut CodeAssembler) {
    emit!(a; out(i32::from(END_PORT), al));
}

/// IRET to the code at [`USER_CODE_AT`], `offset` bytes up.
pub fn enter_user_mode(a: &mut CodeAssembler, offset: u32, eflags: u32) {
    emit!(a; mov(eax, USER_DATA_32); mov(ds, eax); push(USER_DATA_32); push(0x8000); push(eflags as i32); push(USER_CODE_32);
        push((USER_CODE_AT as u32 + offset) as i32); iretd());
}

/// A machine whose kernel code is `body`, and whose user code is `user`.
pub fn machine(
    config: VmConfig,
    body: impl FnOnce(&mut CodeAssembler),
    user: impl FnOnce(&mut CodeAssembler),
) -> Machine {
    let mut m = Machine::with(config, 1, |_| {});
    for (i, descriptor) in DESCRIPTORS.iter().enumerate() {
        m.write_u64(GDT + 8 * i as u64, *descriptor);
    }
    m.write_u64(TSS, STACK << 32);
    m.write_u64(TSS + 8, DATA_32.into());
    for (i, (vector, has_code)) in GATES.into_iter().enumerate() {
        let at = HANDLERS + 0x60 * i as u64;
        let code = assemble(at, handler(vector, has_code));
        assert!(code.len() <= 0x60);
        m.write(at, &code);
        m.write_u64(
            IDT + 8 * vector,
            at & 0xffff | u64::from(CODE_32) << 16 | 0x8e00 << 32 | (at >> 16 & 0xffff) << 48,
        );
    }
    let code = assemble(CODE, body);
    assert!(code.len() <= 0x800);
    m.write(CODE, &code);
    m.write(USER_CODE_AT, &assemble(USER_CODE_AT, user));
    let v = m.vm.vcpu_mut(0);
    let mut s: kvm_sregs = v.sregs();
    let flat = |selector, type_| kvm_segment {
        limit: 0xffff_ffff,
        selector,
        type_,
        present: 1,
        db: 1,
        s: 1,
        g: 1,
        ..kvm_segment::default()
    };
    s.cs = flat(CODE_32, 11);
    for data in [&mut s.ds, &mut s.es, &mut s.fs, &mut s.gs, &mut s.ss] {
        *data = flat(DATA_32, 3);
    }
    s.tr = kvm_segment { base: TSS, limit: 0x67, selector: 0x28, type_: 11, present: 1, ..kvm_segment::default() };
    (s.gdt.limit, s.idt.limit) = (0x2f, 0x7ff);
    (s.cr0, s.cr3, s.cr4, s.efer) = (0x11, 0, 0, 0);
    v.set_sregs(&s);
    v.set_regs(&kvm_regs { rip: CODE, rsp: STACK, rflags: 2, ..kvm_regs::default() });
    m
}
