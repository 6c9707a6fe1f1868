//! Cores for unit tests.

use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::segment::{index, rights};

use super::{Core, SegmentRegister};
use crate::model::Model;

/// Memory of a test core: 1 MiB at 0, mapped one to one.
pub const MEMORY: u64 = 1 << 20;
/// Page tables of [`core`]: memory below it is free for the test.
pub const TABLES: u64 = 0xf_0000;

/// A core in 64-bit mode at CPL 0: flat segments, 1 MiB of memory mapped one to one (user-accessible, writable), RSP
/// at 0x8000.
#[must_use]
pub fn core() -> Core {
    let mut core = real_mode();
    for (table, entry) in [(0, TABLES + 0x1000), (0x1000, TABLES + 0x2000), (0x2000, TABLES + 0x3000)] {
        poke(&core, TABLES + table, entry | 7);
    }
    for page in 0..MEMORY >> 12 {
        poke(&core, TABLES + 0x3000 + page * 8, page << 12 | 7);
    }
    core.cr0 = cr0::PE | cr0::PG | cr0::WP | cr0::NE | cr0::ET;
    core.cr4 = cr4::PAE | cr4::OSFXSR | cr4::OSXMMEXCPT;
    core.cr3 = TABLES;
    core.efer = efer::LME | efer::LMA | efer::NXE | efer::SCE;
    let data = rights::P | rights::S | rights::WRITABLE | rights::ACCESSED | rights::DB | rights::G;
    for i in index::ES..=index::GS {
        core.seg[i] = SegmentRegister { selector: 0x10, base: 0, limit: u32::MAX, rights: data };
    }
    core.seg[index::CS] = SegmentRegister {
        selector: 8,
        base: 0,
        limit: u32::MAX,
        rights: rights::P | rights::S | rights::CODE | rights::READABLE | rights::ACCESSED | rights::L | rights::G,
    };
    core.gpr[4] = 0x8000;
    core.update_mode();
    core.tlb_select();
    core
}

/// A core in real mode at 0:0 with 1 MiB of memory, EPT off, VPID 1.
#[must_use]
pub fn real_mode() -> Core {
    let memory = PhysicalMemory::new();
    memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
    let mut core = Core::new(Arc::new(memory), Arc::new(Model::default()));
    core.vmx.controls.vpid = 1;
    core.seg[index::CS].base = 0;
    core.seg[index::CS].selector = 0;
    core.rip = 0;
    core.tlb_select();
    core
}

/// Writes physical memory directly.
pub fn poke(core: &Core, at: u64, value: u64) {
    core.memory.page(HostPhysical(at)).expect("test memory").0.store(at, value);
}

/// Reads physical memory directly, also across the end of a page.
#[must_use]
pub fn peek(core: &Core, at: u64) -> u64 {
    let byte = |at| core.memory.page(HostPhysical(at)).expect("test memory").0.load::<u8>(at);
    u64::from_le_bytes(std::array::from_fn(|i| byte(at + i as u64)))
}
