//! A guest in 64-bit mode under EPT, as a hypervisor sets it up and runs it.
//!
//! Memory is mapped one to one twice. Every vector has a gate whose handler is HLT, which exits: RIP tells the vector.

use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::Core;
use silicon_x86::model::Model;
use silicon_x86::processor::{Outcome, Processor, Refused};
use silicon_x86::vmx::{ExitInfo, Vmcs};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::capability::default1;
use x86_defs::vmx::controls::{entry, exit, pin, primary, secondary};
use x86_defs::vmx::{ExitReason, Field};

pub const CODE: u64 = 0x1000;
pub const IDT: u64 = 0x2000;
const GDT: u64 = 0x3000;
const TSS: u64 = 0x4000;
pub const STACK: u64 = 0x8000;
/// The handler of vector 0; that of the next is 16 bytes on.
pub const HANDLERS: u64 = 0x1_0000;
/// Pages for bitmaps, lists and descriptors.
pub const PAGES: u64 = 0x2_0000;
pub const DATA: u64 = 0x3_0000;
/// The APIC-access page and the virtual-APIC page.
pub const APIC_ACCESS: u64 = 0x5_0000;
pub const VAPIC: u64 = 0x5_1000;
pub const POSTED: u64 = 0x5_2040;
const TABLES: u64 = 0x8_0000;
const EPT: u64 = 0x9_0000;
/// The table of 4 KiB leaves of the EPT.
pub const EPT_LEAVES: u64 = EPT + 0x3000;
pub const EPTP: u64 = EPT | 6 | 3 << 3;
const MEMORY: u64 = 1 << 20;

/// Modelled time that no test needs, in quarter cycles.
const LONG: u64 = 4_000_000;

pub struct Guest {
    pub processor: Processor,
    launched: bool,
}

impl Guest {
    /// A guest at [`CODE`] with HLT exiting and interrupts disabled.
    pub fn new(code: &[u8]) -> Self {
        Self::with_model(code, Model::default())
    }

    pub fn with_model(code: &[u8], model: Model) -> Self {
        let memory = PhysicalMemory::new();
        memory.add(HostPhysical(0), MEMORY).expect("an empty machine takes a bank");
        let mut guest = Self { processor: Processor::new(Arc::new(memory), Arc::new(model)), launched: false };
        guest.fill_memory();
        guest.write_bytes(CODE, code);
        guest.core().vmptrld(Self::vmcs());
        guest
    }

    fn fill_memory(&mut self) {
        for (tables, flags) in [(TABLES, 7), (EPT, 7)] {
            for level in 0..3 {
                self.poke(tables + level * 0x1000, (tables + (level + 1) * 0x1000) | flags);
            }
        }
        for page in 0..512 {
            self.poke(TABLES + 0x3000 + page * 8, page << 12 | 7);
            self.poke(EPT_LEAVES + page * 8, page << 12 | 7 | 6 << 3);
        }
        self.poke(GDT + 8, 0x00af_9b00_0000_ffff);
        self.poke(GDT + 16, 0x00cf_9300_0000_ffff);
        for vector in 0..256 {
            let handler = HANDLERS + vector * 16;
            self.poke(IDT + vector * 16, (handler & 0xffff) | 8 << 16 | 0x8e << 40 | (handler >> 16) << 48);
            self.write_bytes(handler, &[0xf4]);
        }
    }

    fn vmcs() -> Box<Vmcs> {
        let mut vmcs = Vmcs::new();
        vmcs.set_nominal_host_state();
        let primary = (default1::PRIMARY & !(primary::CR3_LOAD_EXITING | primary::CR3_STORE_EXITING))
            | primary::HLT_EXITING
            | primary::ACTIVATE_SECONDARY_CONTROLS;
        let exits = default1::EXIT
            | exit::HOST_ADDRESS_SPACE_SIZE
            | exit::SAVE_EFER
            | exit::LOAD_EFER
            | exit::SAVE_PAT
            | exit::LOAD_PAT;
        let entries = default1::ENTRY | entry::IA32E_MODE_GUEST | entry::LOAD_EFER | entry::LOAD_PAT;
        for (field, value) in [
            (Field::PinBasedControls, u64::from(default1::PIN)),
            (Field::PrimaryControls, primary.into()),
            (Field::SecondaryControls, (secondary::ENABLE_EPT | secondary::UNRESTRICTED_GUEST).into()),
            (Field::EptPointer, EPTP),
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
            (Field::GuestSsSelector, 0x10),
            (Field::GuestSsLimit, 0xffff_ffff),
            (Field::GuestSsRights, 0xc093),
            (Field::GuestDsRights, 0x1_0000),
            (Field::GuestEsRights, 0x1_0000),
            (Field::GuestFsRights, 0x1_0000),
            (Field::GuestGsRights, 0x1_0000),
            (Field::GuestLdtrRights, 0x1_0000),
            (Field::GuestTrSelector, 0x18),
            (Field::GuestTrBase, TSS),
            (Field::GuestTrLimit, 0x67),
            (Field::GuestTrRights, 0x8b),
            (Field::GuestGdtrBase, GDT),
            (Field::GuestGdtrLimit, 0x7f),
            (Field::GuestIdtrBase, IDT),
            (Field::GuestIdtrLimit, 0xfff),
            (Field::GuestRip, CODE),
            (Field::GuestRsp, STACK),
            (Field::GuestRflags, 2),
            (Field::VmcsLinkPointer, u64::MAX),
        ] {
            vmcs.set(field, value);
        }
        vmcs
    }

    pub fn core(&mut self) -> &mut Core {
        &mut self.processor.core
    }

    pub fn read(&self, field: Field) -> u64 {
        self.processor.core.vmread(field)
    }

    pub fn write(&mut self, field: Field, value: u64) -> &mut Self {
        self.processor.core.vmwrite(field, value);
        self
    }

    pub fn set_bits(&mut self, field: Field, bits: u32) -> &mut Self {
        let old = self.read(field);
        self.write(field, old | u64::from(bits))
    }

    pub fn clear_bits(&mut self, field: Field, bits: u32) -> &mut Self {
        let old = self.read(field);
        self.write(field, old & !u64::from(bits))
    }

    pub fn pin(&mut self, bits: u32) -> &mut Self {
        self.set_bits(Field::PinBasedControls, bits)
    }

    pub fn primary(&mut self, bits: u32) -> &mut Self {
        self.set_bits(Field::PrimaryControls, bits)
    }

    pub fn secondary(&mut self, bits: u32) -> &mut Self {
        self.set_bits(Field::SecondaryControls, bits)
    }

    /// NMI exiting with virtual NMIs.
    pub fn virtual_nmis(&mut self) -> &mut Self {
        self.pin(pin::NMI_EXITING | pin::VIRTUAL_NMIS)
    }

    /// Enables interrupts.
    pub fn open(&mut self) -> &mut Self {
        self.set_bits(Field::GuestRflags, 0x200)
    }

    pub fn inject(&mut self, information: u32) -> &mut Self {
        self.write(Field::EntryInterruptionInformation, (information | 1 << 31).into())
    }

    pub fn gpr(&mut self, slot: usize, value: u64) -> &mut Self {
        self.core().gpr[slot] = value;
        self
    }

    pub fn poke(&self, at: u64, value: u64) {
        self.processor.core.memory.page(HostPhysical(at)).expect("memory").0.store(at, value);
    }

    pub fn peek(&self, at: u64) -> u64 {
        self.processor.core.memory.page(HostPhysical(at)).expect("memory").0.load(at)
    }

    pub fn write_bytes(&self, at: u64, bytes: &[u8]) {
        self.processor.core.memory.page(HostPhysical(at)).expect("memory").0.write((at & 0xfff) as usize, bytes);
    }

    /// Enters and runs to the next VM-exit.
    #[track_caller]
    pub fn run(&mut self) -> ExitReason {
        self.run_for(LONG).expect("a VM-exit")
    }

    /// Enters and runs for so many quarter cycles; `None` without a VM-exit.
    #[track_caller]
    pub fn run_for(&mut self, quarter_cycles: u64) -> Option<ExitReason> {
        match self.processor.enter(&mut self.launched) {
            Ok(()) => {
                let until = self.processor.core.now_quarter_cycles() + quarter_cycles;
                if self.processor.run(until) == Outcome::Paused {
                    self.processor.suspend().expect("no VMX abort");
                    return None;
                }
            }
            Err(Refused::Exit) => {}
            Err(Refused::Failure(why)) => panic!("VM-entry failed: {why}"),
        }
        self.processor.left().expect("no VMX abort");
        self.exit().reason
    }

    /// Runs to an exit, which must be this one.
    #[track_caller]
    pub fn expect(&mut self, reason: ExitReason) -> ExitInfo {
        assert_eq!(self.run(), reason, "at RIP {:#x}: {:x?}", self.processor.core.rip, self.exit());
        *self.exit()
    }

    /// Runs to the HLT in the handler of `vector`.
    #[track_caller]
    pub fn expect_vector(&mut self, vector: u8) {
        self.expect(ExitReason::Hlt);
        assert_eq!(self.processor.core.rip, HANDLERS + u64::from(vector) * 16, "not the handler of {vector:#x}");
    }

    /// Runs to a HLT that is not in a handler.
    #[track_caller]
    pub fn expect_end(&mut self) {
        self.expect(ExitReason::Hlt);
        assert!(self.processor.core.rip < HANDLERS, "in the handler at {:#x}", self.processor.core.rip);
    }

    /// Steps over the instruction that exited.
    pub fn skip(&mut self) -> &mut Self {
        let length = u64::from(self.exit().instruction_length);
        assert!(length > 0);
        self.core().rip += length;
        self
    }

    pub fn exit(&self) -> &ExitInfo {
        &self.processor.core.vmx.exit
    }
}
