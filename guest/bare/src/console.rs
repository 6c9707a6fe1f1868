//! What most cases need: text on COM1, numbers, and the debug exit. All clobber RAX, RCX, RDX and flags.

use iced_x86::code_asm::{CodeAssembler, al, dx, eax, ecx, edx, rax, rcx, rdx};

use crate::AsmError;

const COM1_DATA: u32 = 0x3f8;
const COM1_LINE_STATUS: u32 = 0x3fd;
const TRANSMITTER_EMPTY: u32 = 0x20;
const DEBUG_EXIT: u32 = 0xf4;

/// Prints text: in any mode.
pub fn print(a: &mut CodeAssembler, text: &str) -> Result<(), AsmError> {
    for byte in text.bytes() {
        wait_for_transmitter(a)?;
        a.mov(dx, COM1_DATA)?;
        a.mov(al, u32::from(byte))?;
        a.out(dx, al)?;
    }
    Ok(())
}

fn wait_for_transmitter(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let mut wait = a.create_label();
    a.mov(dx, COM1_LINE_STATUS)?;
    a.set_label(&mut wait)?;
    a.in_(al, dx)?;
    a.test(al, TRANSMITTER_EMPTY)?;
    a.jz(wait)
}

/// Prints RAX in decimal: in 64-bit mode.
pub fn print_decimal(a: &mut CodeAssembler) -> Result<(), AsmError> {
    use iced_x86::code_asm::rbx;
    let (mut divide, mut emit) = (a.create_label(), a.create_label());
    a.push(rbx)?;
    a.xor(ecx, ecx)?;
    a.mov(rbx, 10u64)?;
    a.set_label(&mut divide)?;
    a.xor(edx, edx)?;
    a.div(rbx)?;
    a.add(rdx, i32::from(b'0'))?;
    a.push(rdx)?;
    a.inc(ecx)?;
    a.test(rax, rax)?;
    a.jnz(divide)?;
    a.set_label(&mut emit)?;
    wait_for_transmitter(a)?;
    a.pop(rax)?;
    a.mov(dx, COM1_DATA)?;
    a.out(dx, al)?;
    a.dec(ecx)?;
    a.jnz(emit)?;
    a.pop(rbx)
}

/// Prints RAX with sixteen hexadecimal digits: in 64-bit mode.
pub fn print_hex(a: &mut CodeAssembler) -> Result<(), AsmError> {
    use iced_x86::code_asm::rbx;
    let (mut digit, mut decimal) = (a.create_label(), a.create_label());
    a.push(rbx)?;
    a.mov(rbx, rax)?;
    a.mov(rcx, 16u64)?;
    a.set_label(&mut digit)?;
    wait_for_transmitter(a)?;
    a.rol(rbx, 4)?;
    a.mov(eax, iced_x86::code_asm::ebx)?;
    a.and(eax, 15)?;
    a.add(al, i32::from(b'0'))?;
    a.cmp(al, i32::from(b'9'))?;
    a.jbe(decimal)?;
    a.add(al, i32::from(b'a' - b'0' - 10))?;
    a.set_label(&mut decimal)?;
    a.mov(dx, COM1_DATA)?;
    a.out(dx, al)?;
    a.dec(rcx)?;
    a.jnz(digit)?;
    a.pop(rbx)
}

/// Ends the program with exit status `(code << 1) | 1`: in any mode.
pub fn exit(a: &mut CodeAssembler, code: u8) -> Result<(), AsmError> {
    a.mov(al, u32::from(code))?;
    a.out(DEBUG_EXIT as i32, al)
}
