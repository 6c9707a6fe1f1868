//! The guest that is built into the program: for a first look where no kernel is at hand.

use iced_x86::code_asm::{
    CodeAssembler, al, ax, byte_ptr, cr0, dword_ptr, eax, ecx, edi, ptr, r12, r13, rax, rdi, rdx, word_ptr,
};

use crate::console::{exit, print, print_decimal};
use crate::entry::{DATA, Mode, case};

/// The code with which the guest leaves when all went well.
pub const SUCCESS_CODE: u8 = 0x10;
/// The code when something is not as it should be.
const FAILURE_CODE: u8 = 0x11;

const LOOP_ITERATIONS: u32 = 1_000_000;
const TIMER_VECTOR: u32 = 0x40;
const TIMER_COUNT: i32 = 100_000;

const IDT: u32 = DATA;
const IDT_POINTER: u32 = DATA + 0x800;
const TIMER_FIRED: u32 = DATA + 0x810;

const LOCAL_APIC: u32 = 0xfee0_0000;
const APIC_EOI: u32 = LOCAL_APIC + 0xb0;
const APIC_SPURIOUS: u32 = LOCAL_APIC + 0xf0;
const APIC_LVT_TIMER: u32 = LOCAL_APIC + 0x320;
const APIC_INITIAL_COUNT: u32 = LOCAL_APIC + 0x380;
const APIC_DIVIDE: u32 = LOCAL_APIC + 0x3e0;
const MSR_EFER: u32 = 0xc000_0080;
const EFER_LMA: i32 = 1 << 10;

/// A multiboot image that prints to COM1, checks that it is in 64-bit mode with paging, measures a loop with RDTSC,
/// takes an interrupt from the local APIC's timer, and leaves by the debug exit with [`SUCCESS_CODE`].
pub fn builtin_guest() -> Vec<u8> {
    case(Mode::Long64, body).expect("the built-in guest's own code can be encoded")
}

fn body(a: &mut CodeAssembler) -> Result<(), crate::AsmError> {
    let mut failed = a.create_label();
    print(a, "Glassvisor bare-metal guest\n")?;
    check_long_mode(a, failed)?;
    measure_loop(a)?;
    take_timer_interrupt(a)?;
    print(a, "done\n")?;
    exit(a, SUCCESS_CODE)?;
    a.set_label(&mut failed)?;
    print(a, "FAILED: not in 64-bit mode with paging\n")?;
    exit(a, FAILURE_CODE)
}

fn check_long_mode(
    a: &mut CodeAssembler,
    failed: iced_x86::code_asm::CodeLabel,
) -> Result<(), crate::AsmError> {
    a.mov(rax, cr0)?;
    a.bt(rax, 31u32)?;
    a.jnc(failed)?;
    a.mov(ecx, MSR_EFER)?;
    a.rdmsr()?;
    a.test(eax, EFER_LMA)?;
    a.jz(failed)?;
    print(a, "64-bit mode, paging on\n")
}

fn read_tsc(a: &mut CodeAssembler) -> Result<(), crate::AsmError> {
    a.rdtsc()?;
    a.shl(rdx, 32u32)?;
    a.or(rax, rdx)
}

fn measure_loop(a: &mut CodeAssembler) -> Result<(), crate::AsmError> {
    let mut turn = a.create_label();
    read_tsc(a)?;
    a.mov(r12, rax)?;
    a.mov(ecx, LOOP_ITERATIONS)?;
    a.set_label(&mut turn)?;
    a.dec(ecx)?;
    a.jnz(turn)?;
    read_tsc(a)?;
    a.sub(rax, r12)?;
    a.mov(r12, rax)?;
    print(a, &format!("{LOOP_ITERATIONS} turns of a loop: "))?;
    a.mov(rax, r12)?;
    print_decimal(a)?;
    print(a, " TSC ticks\n")
}

fn take_timer_interrupt(a: &mut CodeAssembler) -> Result<(), crate::AsmError> {
    let (mut handler, mut installed) = (a.create_label(), a.create_label());
    let (mut wait, mut fired) = (a.create_label(), a.create_label());

    // The handler counts, ends the interrupt, and returns.
    a.jmp(installed)?;
    a.set_label(&mut handler)?;
    a.push(rax)?;
    a.push(rdi)?;
    a.inc(byte_ptr(TIMER_FIRED))?;
    a.xor(eax, eax)?;
    a.mov(edi, APIC_EOI)?;
    a.mov(dword_ptr(rdi), eax)?;
    a.pop(rdi)?;
    a.pop(rax)?;
    a.iretq()?;

    // One interrupt gate: offset, selector 0x18, type 14, present.
    a.set_label(&mut installed)?;
    let gate = IDT + TIMER_VECTOR * 16;
    a.lea(rax, ptr(handler))?;
    a.mov(word_ptr(gate), ax)?;
    a.mov(word_ptr(gate + 2), 0x18)?;
    a.mov(word_ptr(gate + 4), 0x8e00)?;
    a.shr(rax, 16u32)?;
    a.mov(word_ptr(gate + 6), ax)?;
    a.mov(word_ptr(IDT_POINTER), 0x7ff)?;
    a.mov(dword_ptr(IDT_POINTER + 2), IDT as i32)?;
    a.mov(dword_ptr(IDT_POINTER + 6), 0)?;
    a.lidt(ptr(IDT_POINTER))?;

    // Both 8259s masked: their power-on vectors are exceptions.
    a.mov(eax, 0xffu32)?;
    a.out(0x21, al)?;
    a.out(0xa1, al)?;

    for (register, value) in [
        (APIC_SPURIOUS, 0x1ff),
        (APIC_DIVIDE, 0xb),
        (APIC_LVT_TIMER, TIMER_VECTOR as i32),
        (APIC_INITIAL_COUNT, TIMER_COUNT),
    ] {
        a.mov(edi, register)?;
        a.mov(dword_ptr(rdi), value)?;
    }
    read_tsc(a)?;
    a.mov(r13, rax)?;

    a.set_label(&mut wait)?;
    a.cli()?;
    a.cmp(byte_ptr(TIMER_FIRED), 0)?;
    a.jne(fired)?;
    // STI takes effect after HLT has started: the interrupt cannot slip in between.
    a.sti()?;
    a.hlt()?;
    a.jmp(wait)?;
    a.set_label(&mut fired)?;
    read_tsc(a)?;
    a.sub(rax, r13)?;
    a.mov(r13, rax)?;
    print(a, &format!("local APIC timer, {TIMER_COUNT} counts: interrupt after "))?;
    a.mov(rax, r13)?;
    print_decimal(a)?;
    print(a, " TSC ticks\n")
}
