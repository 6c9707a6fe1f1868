//! The state in which a boot protocol starts the bootstrap processor.

use kvm_bindings::{kvm_regs, kvm_segment, kvm_sregs};

use super::layout;
use crate::memory::{GuestRam, MemoryError};
use crate::vm::{MachineVm, VmError};

/// Selectors that Linux's boot protocol calls `__BOOT_CS` and `__BOOT_DS`; the other protocols do not mind.
const CODE_SELECTOR: u16 = 0x10;
const DATA_SELECTOR: u16 = 0x18;
const TASK_SELECTOR: u16 = 0x20;

const CR0_PE: u64 = 1;
const CR0_ET: u64 = 1 << 4;
const CR0_PG: u64 = 1 << 31;
const CR4_PAE: u64 = 1 << 5;
const EFER_LME: u64 = 1 << 8;
const EFER_LMA: u64 = 1 << 10;
/// RFLAGS bit 1 always reads as one.
const RFLAGS_FIXED: u64 = 2;

const PTE_PRESENT_WRITABLE: u64 = 3;
const PTE_LARGE: u64 = 1 << 7;

/// The processor mode that a protocol asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMode {
    /// Flat 32-bit protected mode without paging (PVH, multiboot, Linux 32-bit boot protocol).
    Protected32,
    /// 64-bit mode, first 4 GiB mapped one to one (Linux 64-bit boot protocol).
    Long64,
}

/// First state of the bootstrap processor.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub mode: EntryMode,
    pub regs: kvm_regs,
}

impl Entry {
    /// An entry at `rip`, all other registers zero, interrupts off.
    pub fn at(mode: EntryMode, rip: u64) -> Self {
        Self { mode, regs: kvm_regs { rip, rflags: RFLAGS_FIXED, ..Default::default() } }
    }

    /// Writes the descriptor table, and page tables where the mode needs them, to guest memory.
    pub fn write_tables(&self, ram: &GuestRam) -> Result<(), MemoryError> {
        let code = segment(CODE_SELECTOR, SegmentKind::Code(self.mode));
        let data = segment(DATA_SELECTOR, SegmentKind::Data);
        let task = segment(TASK_SELECTOR, SegmentKind::Task);
        for (index, entry) in [0, 0, descriptor(&code), descriptor(&data), descriptor(&task), 0].iter().enumerate() {
            ram.write(layout::GDT + index as u64 * 8, &u64::to_le_bytes(*entry))?;
        }
        if self.mode == EntryMode::Long64 {
            write_identity_map(ram)?;
        }
        Ok(())
    }

    /// Sets the registers of vCPU 0.
    pub fn apply(&self, vm: &mut impl MachineVm) -> Result<(), VmError> {
        let sregs = self.sregs(vm.sregs(0)?);
        vm.set_sregs(0, &sregs)?;
        vm.set_regs(0, &self.regs)
    }

    /// Segment and control registers, on top of those at reset (which hold the local APIC's base).
    pub fn sregs(&self, at_reset: kvm_sregs) -> kvm_sregs {
        let data = segment(DATA_SELECTOR, SegmentKind::Data);
        let mut sregs = kvm_sregs {
            cs: segment(CODE_SELECTOR, SegmentKind::Code(self.mode)),
            ds: data,
            es: data,
            fs: data,
            gs: data,
            ss: data,
            tr: segment(TASK_SELECTOR, SegmentKind::Task),
            ldt: kvm_segment { unusable: 1, ..Default::default() },
            cr0: CR0_PE | CR0_ET,
            cr3: 0,
            cr4: 0,
            efer: 0,
            ..at_reset
        };
        sregs.gdt.base = layout::GDT;
        sregs.gdt.limit = 6 * 8 - 1;
        sregs.idt.base = 0;
        sregs.idt.limit = 0;
        if self.mode == EntryMode::Long64 {
            sregs.cr0 |= CR0_PG;
            sregs.cr3 = layout::PAGE_TABLES;
            sregs.cr4 = CR4_PAE;
            sregs.efer = EFER_LME | EFER_LMA;
        }
        sregs
    }
}

#[derive(Clone, Copy)]
enum SegmentKind {
    Code(EntryMode),
    Data,
    Task,
}

fn segment(selector: u16, kind: SegmentKind) -> kvm_segment {
    let flat = kvm_segment { selector, limit: 0xffff_ffff, present: 1, s: 1, g: 1, ..Default::default() };
    match kind {
        SegmentKind::Code(EntryMode::Protected32) => kvm_segment { type_: 0xb, db: 1, ..flat },
        SegmentKind::Code(EntryMode::Long64) => kvm_segment { type_: 0xb, l: 1, ..flat },
        SegmentKind::Data => kvm_segment { type_: 0x3, db: 1, ..flat },
        // A busy 32-bit TSS also serves as a busy 64-bit one: both have type 11.
        SegmentKind::Task => kvm_segment { type_: 0xb, s: 0, g: 0, limit: 0x67, ..flat },
    }
}

/// A segment descriptor (Intel SDM, "Segment Descriptors").
fn descriptor(segment: &kvm_segment) -> u64 {
    let limit = u64::from(if segment.g != 0 { segment.limit >> 12 } else { segment.limit });
    let access = u64::from(segment.type_)
        | u64::from(segment.s) << 4
        | u64::from(segment.dpl) << 5
        | u64::from(segment.present) << 7;
    let flags =
        u64::from(segment.avl) | u64::from(segment.l) << 1 | u64::from(segment.db) << 2 | u64::from(segment.g) << 3;
    (limit & 0xffff)
        | (segment.base & 0xff_ffff) << 16
        | access << 40
        | (limit >> 16 & 0xf) << 48
        | flags << 52
        | (segment.base >> 24 & 0xff) << 56
}

/// Maps the first 4 GiB one to one with 2 MiB pages.
fn write_identity_map(ram: &GuestRam) -> Result<(), MemoryError> {
    const PAGE: u64 = 4096;
    let pdpt = layout::PAGE_TABLES + PAGE;
    ram.write(layout::PAGE_TABLES, &(pdpt | PTE_PRESENT_WRITABLE).to_le_bytes())?;
    for gib in 0..4 {
        let directory = pdpt + PAGE * (gib + 1);
        ram.write(pdpt + gib * 8, &(directory | PTE_PRESENT_WRITABLE).to_le_bytes())?;
        for entry in 0..512 {
            let page = gib << 30 | entry << 21;
            ram.write(directory + entry * 8, &(page | PTE_PRESENT_WRITABLE | PTE_LARGE).to_le_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MIN_RAM;

    #[test]
    fn flat_descriptors_have_the_well_known_values() {
        let code32 = segment(0x10, SegmentKind::Code(EntryMode::Protected32));
        assert_eq!(descriptor(&code32), 0x00cf_9b00_0000_ffff);
        let code64 = segment(0x10, SegmentKind::Code(EntryMode::Long64));
        assert_eq!(descriptor(&code64), 0x00af_9b00_0000_ffff);
        assert_eq!(descriptor(&segment(0x18, SegmentKind::Data)), 0x00cf_9300_0000_ffff);
    }

    #[test]
    fn the_64_bit_entry_maps_the_last_page_below_4_gib_to_itself() {
        let ram = GuestRam::new(MIN_RAM).unwrap();
        Entry::at(EntryMode::Long64, 0x10_0000).write_tables(&ram).unwrap();
        let mut pte = [0; 8];
        ram.read(layout::PAGE_TABLES + 0x1000 * 5 + 511 * 8, &mut pte).unwrap();
        assert_eq!(u64::from_le_bytes(pte), 0xffe0_0083);
    }
}
