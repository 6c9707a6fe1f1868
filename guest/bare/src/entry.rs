//! From the multiboot entry (flat 32-bit protected mode) to the mode that a case wants.

use iced_x86::code_asm::{CodeAssembler, ax, cr0, cr3, cr4, dword_ptr, eax, ecx, edi, esp, ptr, sp};

use crate::AsmError;
use crate::image::{Image, Segment};

/// The mode in which a case's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Real mode at 0000:8000, segments zero, SP below the code.
    Real16,
    /// Flat protected mode without paging.
    Protected32,
    /// 64-bit mode, first 4 GiB mapped one to one with 2 MiB pages.
    Long64,
}

const ENTRY: u32 = 0x10_0000;
const GDT: u32 = 0x10_1000;
const GDT_POINTER: u32 = 0x10_1080;
const IDT_POINTER_REAL: u32 = 0x10_1090;
/// Scratch memory for cases: zero at the start, one page (an IDT of 64-bit gates fits).
pub const DATA: u32 = 0x10_2000;
const PAGE_TABLES: u32 = 0x11_0000;
/// First address after the stack (32-bit and 64-bit modes).
pub const STACK_TOP: u32 = 0x18_0000;
const CODE: u32 = 0x20_0000;
const REAL_CODE: u32 = 0x8000;
const REAL_WAY_OUT: u32 = 0x7e00;
const REAL_STACK: u16 = 0x7000;
/// Free memory from here on.
pub const HEAP: u32 = 0x40_0000;

const CODE_32: u32 = 0x08;
const DATA_32: u32 = 0x10;
const CODE_64: u32 = 0x18;
const CODE_16: u32 = 0x20;
const DATA_16: u32 = 0x28;

const DESCRIPTORS: [u64; 6] = [
    0,
    0x00cf_9b00_0000_ffff,
    0x00cf_9300_0000_ffff,
    0x00af_9b00_0000_ffff,
    0x0000_9b00_0000_ffff,
    0x0000_9300_0000_ffff,
];

const MSR_EFER: u32 = 0xc000_0080;
const EFER_LME: i32 = 1 << 8;
const CR0_PE: i32 = 1;
const CR0_PG: u32 = 1 << 31;
const CR4_PAE: i32 = 1 << 5;

/// Assembles a case: `body` is emitted where its mode starts it. The case ends itself, most often by
/// [`crate::console::exit`]; behind it the processor halts.
pub fn case(mode: Mode, body: impl FnOnce(&mut CodeAssembler) -> Result<(), AsmError>) -> Result<Vec<u8>, AsmError> {
    let (bits, address) = match mode {
        Mode::Real16 => (16, REAL_CODE),
        Mode::Protected32 => (32, CODE),
        Mode::Long64 => (64, CODE),
    };
    let mut code = CodeAssembler::new(bits)?;
    body(&mut code)?;
    halt(&mut code)?;
    let code = code.assemble(address.into())?;

    let mut segments = Vec::new();
    let mut target = address;
    if mode == Mode::Real16 {
        let mut way_out = CodeAssembler::new(16)?;
        leave_protected_mode(&mut way_out)?;
        segments.push(Segment::new(REAL_WAY_OUT, way_out.assemble(REAL_WAY_OUT.into())?));
        target = REAL_WAY_OUT;
    }
    let mut stub = CodeAssembler::new(32)?;
    enter(&mut stub, mode, target)?;
    let stub = stub.assemble(ENTRY.into())?;

    let mut tables: Vec<u8> = DESCRIPTORS.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    tables.resize((GDT_POINTER - GDT) as usize, 0);
    tables.extend((DESCRIPTORS.len() as u16 * 8 - 1).to_le_bytes());
    tables.extend(GDT.to_le_bytes());
    tables.resize((IDT_POINTER_REAL - GDT) as usize, 0);
    tables.extend(0x3ffu16.to_le_bytes());
    tables.extend(0u32.to_le_bytes());

    segments.extend([
        Segment::new(ENTRY, stub),
        Segment { address: GDT, bytes: tables, memory_size: STACK_TOP - GDT },
        Segment::new(address, code),
    ]);
    Ok(Image { entry: ENTRY, segments }.elf())
}

/// 32-bit code at the multiboot entry.
fn enter(a: &mut CodeAssembler, mode: Mode, target: u32) -> Result<(), AsmError> {
    a.cli()?;
    a.lgdt(ptr(GDT_POINTER))?;
    let (code, data) = match mode {
        Mode::Real16 => (CODE_16, DATA_16),
        Mode::Protected32 => (CODE_32, DATA_32),
        Mode::Long64 => (CODE_64, DATA_32),
    };
    load_data_segments(a, data)?;
    a.mov(esp, STACK_TOP)?;
    match mode {
        Mode::Real16 => a.lidt(ptr(IDT_POINTER_REAL))?,
        Mode::Protected32 => {}
        Mode::Long64 => turn_paging_on(a)?,
    }
    // A far return loads CS; an indirect far jump would need memory for its operand.
    a.push(code as i32)?;
    a.push(target as i32)?;
    a.retf()
}

fn load_data_segments(a: &mut CodeAssembler, selector: u32) -> Result<(), AsmError> {
    use iced_x86::code_asm::{ds, es, fs, gs, ss};
    a.mov(eax, selector)?;
    a.mov(ds, ax)?;
    a.mov(es, ax)?;
    a.mov(fs, ax)?;
    a.mov(gs, ax)?;
    a.mov(ss, ax)
}

/// Builds the one-to-one map and enters compatibility mode.
fn turn_paging_on(a: &mut CodeAssembler) -> Result<(), AsmError> {
    const PAGE: u32 = 4096;
    let pdpt = PAGE_TABLES + PAGE;
    let directories = pdpt + PAGE;
    a.mov(dword_ptr(PAGE_TABLES), (pdpt | 3) as i32)?;
    for gib in 0..4 {
        a.mov(dword_ptr(pdpt + gib * 8), ((directories + gib * PAGE) | 3) as i32)?;
    }
    // 2048 entries of 2 MiB: low halves count up, high halves stay zero.
    let mut next = a.create_label();
    a.mov(edi, directories)?;
    a.mov(eax, 0x83u32)?;
    a.mov(ecx, 2048u32)?;
    a.set_label(&mut next)?;
    a.mov(dword_ptr(edi), eax)?;
    a.add(eax, 0x20_0000)?;
    a.add(edi, 8)?;
    a.dec(ecx)?;
    a.jnz(next)?;

    a.mov(eax, cr4)?;
    a.or(eax, CR4_PAE)?;
    a.mov(cr4, eax)?;
    a.mov(eax, PAGE_TABLES)?;
    a.mov(cr3, eax)?;
    a.mov(ecx, MSR_EFER)?;
    a.rdmsr()?;
    a.or(eax, EFER_LME)?;
    a.wrmsr()?;
    a.mov(eax, cr0)?;
    a.or(eax, CR0_PG as i32)?;
    a.mov(cr0, eax)
}

/// 16-bit protected-mode code that goes on in real mode, at [`REAL_CODE`].
fn leave_protected_mode(a: &mut CodeAssembler) -> Result<(), AsmError> {
    use iced_x86::code_asm::{ds, es, fs, gs, ss};
    a.mov(eax, cr0)?;
    a.and(eax, !CR0_PE)?;
    a.mov(cr0, eax)?;
    a.xor(ax, ax)?;
    a.mov(ds, ax)?;
    a.mov(es, ax)?;
    a.mov(fs, ax)?;
    a.mov(gs, ax)?;
    a.mov(ss, ax)?;
    a.mov(sp, u32::from(REAL_STACK))?;
    // CS still caches the 16-bit descriptor: a far return reloads it in real mode.
    a.push(ax)?;
    a.mov(ax, REAL_CODE)?;
    a.push(ax)?;
    a.retf()
}

fn halt(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let mut forever = a.create_label();
    a.set_label(&mut forever)?;
    a.cli()?;
    a.hlt()?;
    a.jmp(forever)
}
