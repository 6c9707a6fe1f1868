//! A processor whose guest sees a few pages by way of EPT, with memory around them that it must never change.

use std::cell::RefCell;
use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::model::Model;
use silicon_x86::processor::{Emulated, Outcome, Processor, Refused};
use silicon_x86::vmx::{Vmcs, capability};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::capability as msr;
use x86_defs::vmx::controls::{entry, exit, pin, primary, secondary};
use x86_defs::vmx::{ExitReason, Field};

/// EPT and intercept bitmaps.
const EPT: u64 = 0x1000;
const BITMAPS: u64 = 0x8000;
/// Where the guest's memory is, and how much the guest has, from guest-physical address 0.
const GUEST: u64 = 0x1_4000;
pub const GUEST_LEN: u64 = 0x2_0000;
/// All memory: what is behind the guest's must stay as it is.
const MEMORY: u64 = GUEST + GUEST_LEN + 0x4000;
const UNTOUCHED: u8 = 0x5a;

/// What bounds a run: exits, and quarter cycles between two.
const MOST_EXITS: u32 = 24;
const SLICE: u64 = 10_000;

pub struct Machine {
    pub processor: Processor,
    launched: bool,
}

fn memory() -> Arc<PhysicalMemory> {
    // Memory is never given back, so each thread has one and cleans it.
    thread_local! {
        static MEMORY_OF_THREAD: RefCell<Option<Arc<PhysicalMemory>>> = const { RefCell::new(None) };
    }
    MEMORY_OF_THREAD.with_borrow_mut(|memory| {
        let memory = memory.get_or_insert_with(|| {
            let memory = PhysicalMemory::new();
            memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
            Arc::new(memory)
        });
        for at in (0..MEMORY).step_by(4096) {
            let inside = (GUEST..GUEST + GUEST_LEN).contains(&at) || at < 0x1_0000;
            let (frame, _) = memory.page(HostPhysical(at)).expect("memory");
            frame.fill(0, 4096, if inside { 0 } else { UNTOUCHED });
        }
        memory.written(HostPhysical(0), MEMORY);
        Arc::clone(memory)
    })
}

/// A VMCS that VM-entry accepts: a guest in 64-bit mode with EPT, whose exits are the ones that KVM asks for.
pub fn vmcs(model: &Model) -> Box<Vmcs> {
    let mut vmcs = Vmcs::new();
    vmcs.set_nominal_host_state();
    let must = |number: u32| capability::read(model, number).unwrap_or(0) & 0xffff_ffff;
    let can = capability::read(model, msr::IA32_VMX_PROCBASED_CTLS2).unwrap_or(0) >> 32;
    let pins = pin::EXTERNAL_INTERRUPT_EXITING | pin::NMI_EXITING | pin::PREEMPTION_TIMER;
    let first = primary::HLT_EXITING
        | primary::UNCONDITIONAL_IO_EXITING
        | primary::USE_MSR_BITMAPS
        | primary::ACTIVATE_SECONDARY_CONTROLS;
    let second = secondary::ENABLE_EPT
        | secondary::ENABLE_VPID
        | secondary::UNRESTRICTED_GUEST
        | secondary::ENABLE_RDTSCP
        | secondary::ENABLE_INVPCID;
    let exits = exit::HOST_ADDRESS_SPACE_SIZE | exit::SAVE_EFER | exit::LOAD_EFER;
    let entries = entry::IA32E_MODE_GUEST | entry::LOAD_EFER;
    for (field, value) in [
        (Field::PinBasedControls, u64::from(pins) | must(msr::IA32_VMX_TRUE_PINBASED_CTLS)),
        (Field::PrimaryControls, u64::from(first) | must(msr::IA32_VMX_TRUE_PROCBASED_CTLS)),
        (Field::SecondaryControls, u64::from(second) & can),
        (Field::ExitControls, u64::from(exits) | must(msr::IA32_VMX_TRUE_EXIT_CTLS)),
        (Field::EntryControls, u64::from(entries) | must(msr::IA32_VMX_TRUE_ENTRY_CTLS)),
        (Field::EptPointer, EPT | 6 | 3 << 3),
        (Field::VirtualProcessorIdentifier, 1),
        (Field::MsrBitmaps, BITMAPS),
        (Field::PreemptionTimerValue, 0xffff),
        (Field::GuestCr0, cr0::PE | cr0::ET | cr0::NE | cr0::PG | cr0::WP),
        (Field::GuestCr3, 0x1000),
        (Field::GuestCr4, cr4::PAE | cr4::VMXE | cr4::OSFXSR | cr4::OSXMMEXCPT),
        (Field::GuestEfer, efer::LME | efer::LMA | efer::NXE | efer::SCE),
        (Field::GuestPat, 0x0007_0406_0007_0406),
        (Field::GuestDr7, 0x400),
        (Field::GuestCsSelector, 0x08),
        (Field::GuestCsLimit, 0xffff_ffff),
        (Field::GuestCsRights, 0xa09b),
        (Field::GuestSsSelector, 0x10),
        (Field::GuestSsLimit, 0xffff_ffff),
        (Field::GuestSsRights, 0xc093),
        (Field::GuestDsRights, 0x1_0000),
        (Field::GuestEsRights, 0x1_0000),
        (Field::GuestFsRights, 0x1_0000),
        (Field::GuestGsRights, 0x1_0000),
        (Field::GuestLdtrRights, 0x1_0000),
        (Field::GuestTrSelector, 0x18),
        (Field::GuestTrBase, 0x6000),
        (Field::GuestTrLimit, 0x67),
        (Field::GuestTrRights, 0x8b),
        (Field::GuestGdtrBase, 0x5800),
        (Field::GuestGdtrLimit, 0x7f),
        (Field::GuestIdtrBase, 0x7000),
        (Field::GuestIdtrLimit, 0xfff),
        (Field::GuestRip, 0x1_0000),
        (Field::GuestRsp, 0x1_f000),
        (Field::GuestRflags, 2),
        (Field::VmcsLinkPointer, u64::MAX),
    ] {
        vmcs.set(field, value);
    }
    vmcs
}

impl Machine {
    /// With this VMCS current, and nothing in the guest's memory.
    pub fn new(model: &str, vmcs: impl FnOnce(&Model) -> Box<Vmcs>) -> Self {
        let memory = memory();
        let model = Model::parse(model).expect("a model that exists");
        let store = |at: u64, value: u64| memory.page(HostPhysical(at)).expect("memory").0.store(at & 0xfff, value);
        for level in 0..3 {
            store(EPT + level * 0x1000, (EPT + (level + 1) * 0x1000) | 7);
        }
        for page in 0..GUEST_LEN >> 12 {
            store(EPT + 0x3000 + page * 8, (GUEST + (page << 12)) | 6 << 3 | 7);
        }
        let vmcs = vmcs(&model);
        let mut processor = Processor::new(memory, Arc::new(model));
        let none = processor.core.vmptrld(vmcs);
        assert!(none.is_none(), "a new processor has no VMCS");
        Self { processor, launched: false }
    }

    /// Writes to the guest's memory, as far as it reaches.
    pub fn write(&self, mut at: u64, bytes: &[u8]) {
        for &byte in bytes {
            if at < GUEST_LEN {
                self.page(GUEST + at).store(at & 0xfff, byte);
            }
            at += 1;
        }
    }

    fn page(&self, at: u64) -> silicon_memory::Frame {
        self.processor.core.memory.page(HostPhysical(at)).expect("memory").0
    }

    /// Identity map of the guest's memory for 64-bit mode: tables at 0x1000 to 0x4fff.
    pub fn map_all(&self) {
        for level in 0..3_u64 {
            self.write(0x1000 + level * 0x1000, &((0x2000 + level * 0x1000) | 7).to_le_bytes());
        }
        for page in 0..GUEST_LEN >> 12 {
            self.write(0x4000 + page * 8, &(page << 12 | 7).to_le_bytes());
        }
    }

    /// The same with 5-level paging: the uppermost table is the one at 0x1000, too.
    pub fn map_all_five_levels(&self) {
        for level in 0..4_u64 {
            self.write(0x1000 + level * 0x1000, &((0x2000 + level * 0x1000) | 7).to_le_bytes());
        }
        for page in 0..GUEST_LEN >> 12 {
            self.write(0x5000 + page * 8, &(page << 12 | 7).to_le_bytes());
        }
    }

    /// Runs the guest through a bounded number of exits; goes on after those that a hypervisor would handle by
    /// emulation or by skipping the instruction.
    pub fn run(&mut self, mut device: impl FnMut() -> u64) {
        for _ in 0..MOST_EXITS {
            match self.processor.enter(&mut self.launched) {
                Ok(()) => {
                    let until = self.processor.core.now_quarter_cycles() + SLICE;
                    if self.processor.run(until) == Outcome::Paused {
                        break;
                    }
                }
                Err(Refused::Exit) => {}
                Err(Refused::Failure(_)) => break,
            }
            if self.processor.left().is_err() {
                break;
            }
            let info = self.processor.core.vmx.exit;
            match info.reason {
                Some(ExitReason::EptViolation) => self.emulate(&mut device),
                Some(ExitReason::TripleFault | ExitReason::EptMisconfiguration) | None => break,
                Some(_) => {
                    let next = self.processor.core.rip.wrapping_add(u64::from(info.instruction_length));
                    self.processor.core.rip = next & self.processor.core.mode.rip_mask;
                }
            }
        }
        self.check();
    }

    fn emulate(&mut self, device: &mut impl FnMut() -> u64) {
        let mut reads = Vec::new();
        for _ in 0..16 {
            match self.processor.emulate(&mut reads) {
                Emulated::Wants(access) => {
                    reads.push(silicon_x86::mem::DeviceAccess { value: device(), ..access });
                }
                _ => return,
            }
        }
    }

    /// The guest must not have changed what is not its own.
    fn check(&self) {
        let mut page = [0; 4096];
        for at in (0x1_0000..GUEST).chain(GUEST + GUEST_LEN..MEMORY).step_by(4096) {
            self.page(at).read(0, &mut page);
            assert!(page == [UNTOUCHED; 4096], "the guest has changed the page at {at:#x}, which is not its own");
        }
    }
}
