//! How fast the modelled processor goes in and out of a guest: VM-exits in a second of this host.
//!
//! `cargo run --profile fast -p silicon-x86 --example exits`

use std::sync::Arc;
use std::time::Instant;

use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::model::Model;
use silicon_x86::processor::{Outcome, Processor};
use silicon_x86::vmx::Vmcs;
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::Field;
use x86_defs::vmx::capability::default1;
use x86_defs::vmx::controls::{entry, exit, pin, primary, secondary};

const CODE: u64 = 0x1000;
const TABLES: u64 = 0x8_0000;
const EPT: u64 = 0x9_0000;
const MEMORY: u64 = 1 << 20;

/// CPUID; JMP to it.
const LOOP: [u8; 4] = [0x0f, 0xa2, 0xeb, 0xfc];

/// The controls that a hypervisor as ours has.
fn vmcs() -> Box<Vmcs> {
    let mut vmcs = Vmcs::new();
    vmcs.set_nominal_host_state();
    let pins = default1::PIN | pin::EXTERNAL_INTERRUPT_EXITING | pin::NMI_EXITING | pin::VIRTUAL_NMIS;
    let primary = (default1::PRIMARY & !(primary::CR3_LOAD_EXITING | primary::CR3_STORE_EXITING))
        | primary::HLT_EXITING
        | primary::USE_TSC_OFFSETTING
        | primary::ACTIVATE_SECONDARY_CONTROLS;
    let secondary = secondary::ENABLE_EPT | secondary::ENABLE_VPID | secondary::UNRESTRICTED_GUEST;
    let exits = default1::EXIT
        | exit::HOST_ADDRESS_SPACE_SIZE
        | exit::SAVE_EFER
        | exit::LOAD_EFER
        | exit::SAVE_PAT
        | exit::LOAD_PAT
        | exit::ACKNOWLEDGE_INTERRUPT;
    let entries = default1::ENTRY | entry::IA32E_MODE_GUEST | entry::LOAD_EFER | entry::LOAD_PAT;
    for (field, value) in [
        (Field::PinBasedControls, u64::from(pins | pin::PREEMPTION_TIMER)),
        (Field::PreemptionTimerValue, u32::MAX.into()),
        (Field::PrimaryControls, primary.into()),
        (Field::SecondaryControls, secondary.into()),
        (Field::VirtualProcessorIdentifier, 1),
        (Field::EptPointer, EPT | 6 | 3 << 3),
        (Field::ExitControls, exits.into()),
        (Field::EntryControls, entries.into()),
        (Field::GuestCr0, cr0::PE | cr0::ET | cr0::NE | cr0::PG),
        (Field::GuestCr3, TABLES),
        (Field::GuestCr4, cr4::PAE | cr4::VMXE),
        (Field::GuestEfer, efer::LME | efer::LMA | efer::NXE),
        (Field::GuestPat, 0x0007_0406_0007_0406),
        (Field::GuestDr7, 0x400),
        (Field::GuestCsSelector, 8),
        (Field::GuestCsLimit, 0xffff_ffff),
        (Field::GuestCsRights, 0xa09b),
        (Field::GuestSsRights, 0x1_0000),
        (Field::GuestDsRights, 0x1_0000),
        (Field::GuestEsRights, 0x1_0000),
        (Field::GuestFsRights, 0x1_0000),
        (Field::GuestGsRights, 0x1_0000),
        (Field::GuestLdtrRights, 0x1_0000),
        (Field::GuestTrSelector, 0x18),
        (Field::GuestTrLimit, 0x67),
        (Field::GuestTrRights, 0x8b),
        (Field::GuestRip, CODE),
        (Field::GuestRflags, 2),
        (Field::VmcsLinkPointer, u64::MAX),
    ] {
        vmcs.set(field, value);
    }
    vmcs
}

fn main() {
    const EXITS: u32 = 1_000_000;
    const RUNS: u32 = 5;
    let memory = PhysicalMemory::new();
    memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
    let memory = Arc::new(memory);
    let page = |at: u64| memory.page(HostPhysical(at)).expect("memory").0;
    for tables in [TABLES, EPT] {
        for level in 0..3 {
            page(tables + level * 0x1000).store(0, (tables + (level + 1) * 0x1000) | 7);
        }
        for i in 0..MEMORY >> 12 {
            page(tables + 0x3000).store(i * 8, i << 12 | 7 | if tables == EPT { 6 << 3 } else { 0 });
        }
    }
    page(CODE).write(0, &LOOP);
    let mut processor = Processor::new(Arc::clone(&memory), Arc::new(Model::default()));
    processor.core.vmptrld(vmcs());
    let mut launched = false;
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..EXITS {
            processor.enter(&mut launched).expect("a valid VMCS");
            let until = processor.core.now_quarter_cycles() + 100_000;
            assert_eq!(processor.run(until), Outcome::Exit, "CPUID exits");
            processor.left().expect("no VMX abort");
            processor.core.rip += 2;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(EXITS));
    }
    println!("CPUID exit and entry  {best:6.0} ns");
}
