//! How fast the interpreter executes a few loops: millions of modelled instructions in a second of this host.
//!
//! `cargo run --profile fast -p silicon-x86 --example mips`

use std::sync::Arc;
use std::time::Instant;

use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::core::SegmentRegister;
use silicon_x86::model::Model;
use silicon_x86::processor::{Outcome, Processor};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::segment::{index, rights};

const CODE: u64 = 0x1000;
const DATA: u64 = 0x10_000;
const STACK: u64 = 0x20_000;
const TABLES: u64 = 0x80_000;
const MEMORY: u64 = 1 << 20;

/// A loop that never ends: its name, its code, and a second piece of code in the next page.
struct Loop {
    name: &'static str,
    code: &'static [u8],
    next_page: &'static [u8],
}

const LOOPS: [Loop; 6] = [
    Loop {
        name: "registers",
        // 1: add rax,rcx; xor rdx,rax; shl rdx,3; lea rsi,[rax+rdx*2+5]; sub rdi,rsi; and esi,0xff; inc rcx; test; jne 1b
        code: &[
            0x48, 0x01, 0xc8, 0x48, 0x31, 0xc2, 0x48, 0xc1, 0xe2, 0x03, 0x48, 0x8d, 0x74, 0x50, 0x05, 0x48, 0x29, 0xf7,
            0x81, 0xe6, 0xff, 0x00, 0x00, 0x00, 0x48, 0xff, 0xc1, 0x48, 0x85, 0xc9, 0x75, 0xe0, 0xeb, 0xde,
        ],
        next_page: &[],
    },
    Loop {
        name: "memory",
        // 1: mov rax,[rbx+rcx*8]; add rax,rdx; mov [rbx+rcx*8+0x800],rax; movzx edx,byte [rbx+rcx]; inc ecx; and ecx,0xff; jmp 1b
        code: &[
            0x48, 0x8b, 0x04, 0xcb, 0x48, 0x01, 0xd0, 0x48, 0x89, 0x84, 0xcb, 0x00, 0x08, 0x00, 0x00, 0x0f, 0xb6, 0x14,
            0x0b, 0xff, 0xc1, 0x81, 0xe1, 0xff, 0x00, 0x00, 0x00, 0xeb, 0xe3,
        ],
        next_page: &[],
    },
    Loop {
        name: "short blocks",
        // 1: inc ecx; test cl,1; je 2f; add rax,rcx; 2: cmp ecx,100; jne 1b; xor ecx,ecx; jmp 1b
        code: &[
            0xff, 0xc1, 0xf6, 0xc1, 0x01, 0x74, 0x03, 0x48, 0x01, 0xc8, 0x83, 0xf9, 0x64, 0x75, 0xf1, 0x31, 0xc9, 0xeb,
            0xed,
        ],
        next_page: &[],
    },
    Loop {
        name: "calls",
        // 1: call 2f; inc rcx; jmp 1b; 2: push rbx; mov rbx,rcx; pop rbx; ret
        code: &[0xe8, 0x05, 0x00, 0x00, 0x00, 0x48, 0xff, 0xc1, 0xeb, 0xf6, 0x53, 0x48, 0x89, 0xcb, 0x5b, 0xc3],
        next_page: &[],
    },
    Loop {
        name: "calls across pages",
        // 1: call page; inc rcx; jmp 1b; page: push rbx; mov rbx,rcx; pop rbx; ret
        code: &[0xe8, 0xfb, 0x0f, 0x00, 0x00, 0x48, 0xff, 0xc1, 0xeb, 0xf6],
        next_page: &[0x53, 0x48, 0x89, 0xcb, 0x5b, 0xc3],
    },
    Loop {
        name: "vectors",
        // 1: movups xmm0,[rbx]; paddd xmm0,xmm1; pxor xmm1,xmm0; movups [rbx+16],xmm0; jmp 1b
        code: &[0x0f, 0x10, 0x03, 0x66, 0x0f, 0xfe, 0xc1, 0x66, 0x0f, 0xef, 0xc8, 0x0f, 0x11, 0x43, 0x10, 0xeb, 0xef],
        next_page: &[],
    },
];

/// A processor in 64-bit mode whose memory is mapped one to one.
fn processor(program: &Loop) -> Processor {
    let memory = PhysicalMemory::new();
    memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
    let memory = Arc::new(memory);
    let page = |at: u64| memory.page(HostPhysical(at)).expect("memory").0;
    for level in 0..3 {
        page(TABLES + level * 0x1000).store(0, (TABLES + (level + 1) * 0x1000) | 7);
    }
    for i in 0..MEMORY >> 12 {
        page(TABLES + 0x3000).store(i * 8, i << 12 | 7);
    }
    page(CODE).write(0, program.code);
    page(CODE + 0x1000).write(0, program.next_page);
    let mut processor = Processor::new(Arc::clone(&memory), Arc::new(Model::default()));
    let core = &mut processor.core;
    core.vmx.controls.vpid = 1;
    core.cr0 = cr0::PE | cr0::PG | cr0::WP | cr0::NE | cr0::ET;
    core.cr4 = cr4::PAE | cr4::OSFXSR | cr4::OSXMMEXCPT;
    core.cr3 = TABLES;
    core.efer = efer::LME | efer::LMA | efer::NXE;
    let data = rights::P | rights::S | rights::WRITABLE | rights::ACCESSED | rights::DB | rights::G;
    for i in index::ES..=index::GS {
        core.seg[i] = SegmentRegister { selector: 0x10, base: 0, limit: u32::MAX, rights: data };
    }
    core.seg[index::CS].rights = rights::P | rights::S | rights::CODE | rights::READABLE | rights::ACCESSED | rights::L;
    core.rip = CODE;
    core.gpr[3] = DATA;
    core.gpr[4] = STACK;
    core.update_mode();
    core.tlb_select();
    processor
}

fn main() {
    const SLICE_QUARTER_CYCLES: u64 = 60_000_000;
    const RUNS: u32 = 5;
    for program in &LOOPS {
        let mut processor = processor(program);
        let mut best = 0_f64;
        for _ in 0..RUNS {
            let until = processor.core.now_quarter_cycles() + SLICE_QUARTER_CYCLES;
            let before = processor.core.count.instructions;
            let start = Instant::now();
            assert_eq!(processor.run(until), Outcome::Paused, "a loop does not exit");
            let done = (processor.core.count.instructions - before) as f64;
            best = best.max(done / start.elapsed().as_secs_f64() / 1e6);
        }
        println!("{:<20}{best:6.0} MIPS", program.name);
    }
}
