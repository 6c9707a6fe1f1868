//! The VMCS as KVM sets it up.

use std::sync::Arc;

use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::core::Clock;
use silicon_x86::model::Model;
use silicon_x86::processor::Processor;
use silicon_x86::vmx::Vmcs;
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::msr;
use x86_defs::segment::rights;
use x86_defs::vmx::controls::{entry, exit, pin, primary, secondary};
use x86_defs::vmx::{Field, capability};

use super::{MpState, Vcpu};
use crate::msr::MsrStore;
use crate::pv::Paravirtual;
use crate::statistics::VcpuStatistics;

/// Bits of CR0 that the guest owns (with EPT): task switched.
const CR0_GUEST: u64 = cr0::TS;
/// Bits of CR4 that the guest owns (with EPT).
const CR4_GUEST: u64 =
    cr4::PVI | cr4::DE | cr4::PCE | cr4::OSFXSR | cr4::OSXMMEXCPT | cr4::TSD | cr4::PGE | cr4::FSGSBASE;

/// KVM's module parameters `ple_gap` and `ple_window`, in TSC cycles: PAUSEs that are further apart are not of one loop, and
/// a loop may last so long. KVM lets the window of a vCPU grow with each exit and shrink when it is scheduled in; a vCPU
/// that yields here is scheduled in anew each time, so the window stays as it is.
const PLE_GAP: u64 = 128;
const PLE_WINDOW: u64 = 4096;

/// MSRs that the guest reads and writes without an exit.
const PASS_THROUGH: &[u32] = &[
    msr::IA32_FS_BASE,
    msr::IA32_GS_BASE,
    msr::IA32_KERNEL_GS_BASE,
    msr::IA32_SYSENTER_CS,
    msr::IA32_SYSENTER_ESP,
    msr::IA32_SYSENTER_EIP,
];
/// MSRs that the guest reads without an exit.
const PASS_THROUGH_READ: &[u32] = &[msr::IA32_TSC];

/// Host-physical addresses of the pages that a VMCS points to.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    pub msr_bitmap: HostPhysical,
}

/// An MSR bitmap in which everything exits but what is passed through.
pub fn fill_msr_bitmap(memory: &PhysicalMemory, page: HostPhysical) {
    let Some((frame, _)) = memory.page(page) else { return };
    frame.fill(0, 4096, 0xff);
    let clear = |number: u32, write: bool| {
        let half = if number >= 0xc000_0000 { 1024 } else { 0 };
        let byte = half + if write { 2048 } else { 0 } + u64::from((number & 0x1fff) / 8);
        let old: u8 = frame.load(byte);
        frame.store(byte, old & !(1 << (number % 8)));
    };
    for &number in PASS_THROUGH {
        clear(number, false);
        clear(number, true);
    }
    for &number in PASS_THROUGH_READ {
        clear(number, false);
    }
}

impl Vcpu {
    /// A vCPU in its power-up state.
    pub(crate) fn new(
        index: usize,
        apic_id: u32,
        memory: &Arc<PhysicalMemory>,
        model: &Arc<Model>,
        clock: Clock,
        eptp: u64,
        pages: Pages,
    ) -> Self {
        let mut processor = Processor::new(Arc::clone(memory), Arc::clone(model));
        processor.core.clock = clock;
        let tsc_offset = processor.core.host_tsc().wrapping_neg();
        let mut vcpu = Self {
            index,
            apic_id,
            processor,
            mp_state: if index == 0 { MpState::Runnable } else { MpState::WaitForSipi },
            msrs: MsrStore::new(model),
            pv: Paravirtual::default(),
            statistics: VcpuStatistics::default(),
            tsc_offset,
            exception: None,
            nmi_pending: false,
            unhalted: false,
            wake_tsc: 0,
            user_exit: None,
            device_reads: Vec::new(),
            device_writes: std::collections::VecDeque::new(),
            emulating: false,
            pdptes_in_memory: false,
            launched: false,
            window_requested: false,
        };
        vcpu.processor.core.vmptrld(Vmcs::new());
        vcpu.write_controls(eptp, pages);
        vcpu.write_host_state();
        vcpu.reset();
        vcpu
    }

    fn write_controls(&mut self, eptp: u64, pages: Pages) {
        let vpid = self.index as u64 + 1;
        let c = &mut self.processor.core;
        let pins = pin::EXTERNAL_INTERRUPT_EXITING | pin::NMI_EXITING | pin::VIRTUAL_NMIS | pin::PREEMPTION_TIMER;
        let first = primary::HLT_EXITING
            | primary::USE_TSC_OFFSETTING
            | primary::MOV_DR_EXITING
            | primary::CR8_LOAD_EXITING
            | primary::CR8_STORE_EXITING
            | primary::UNCONDITIONAL_IO_EXITING
            | primary::USE_MSR_BITMAPS
            | primary::MWAIT_EXITING
            | primary::MONITOR_EXITING
            | primary::RDPMC_EXITING
            | primary::ACTIVATE_SECONDARY_CONTROLS;
        let second = secondary::ENABLE_EPT
            | secondary::ENABLE_VPID
            | secondary::UNRESTRICTED_GUEST
            | secondary::ENABLE_RDTSCP
            | secondary::ENABLE_INVPCID
            | secondary::ENABLE_XSAVES
            | secondary::WBINVD_EXITING;
        let entries = entry::LOAD_DEBUG_CONTROLS | entry::LOAD_PAT | entry::LOAD_EFER;
        let exits = exit::SAVE_DEBUG_CONTROLS
            | exit::HOST_ADDRESS_SPACE_SIZE
            | exit::ACKNOWLEDGE_INTERRUPT
            | exit::SAVE_PAT
            | exit::LOAD_PAT
            | exit::SAVE_EFER
            | exit::LOAD_EFER;
        for (field, value, number) in [
            (Field::PinBasedControls, pins, capability::IA32_VMX_TRUE_PINBASED_CTLS),
            (Field::PrimaryControls, first, capability::IA32_VMX_TRUE_PROCBASED_CTLS),
            (Field::EntryControls, entries, capability::IA32_VMX_TRUE_ENTRY_CTLS),
            (Field::ExitControls, exits, capability::IA32_VMX_TRUE_EXIT_CTLS),
        ] {
            // Bits that must be one are taken from the capability MSRs, as every hypervisor does.
            let must = silicon_x86::vmx::capability::read(&c.model, number).unwrap_or(0) as u32;
            c.vmwrite(field, u64::from(value | must));
        }
        // Older models lack some of these, and a guest on them the instructions that they are for.
        let possible =
            silicon_x86::vmx::capability::read(&c.model, capability::IA32_VMX_PROCBASED_CTLS2).map_or(0, |c| c >> 32);
        c.vmwrite(Field::SecondaryControls, u64::from(second) & possible);
        c.vmwrite(Field::EptPointer, eptp);
        c.vmwrite(Field::VirtualProcessorIdentifier, vpid);
        c.vmwrite(Field::MsrBitmaps, pages.msr_bitmap.0);
        c.vmwrite(Field::ExceptionBitmap, 0);
        // No component of IA32_XSS exits: those that the guest may enable are the guest's.
        c.vmwrite(Field::XssExitingBitmap, 0);
        c.vmwrite(Field::Cr0Mask, !CR0_GUEST);
        c.vmwrite(Field::Cr4Mask, !CR4_GUEST);
        c.vmwrite(Field::VmcsLinkPointer, u64::MAX);
        c.vmwrite(Field::TscOffset, self.tsc_offset);
        c.vmwrite(Field::PreemptionTimerValue, u64::from(u32::MAX));
    }

    /// Makes spin loops exit, so that others run while the guest waits for them. Not worth it for a single vCPU.
    pub(crate) fn exit_on_pause_loops(&mut self) {
        let c = &mut self.processor.core;
        c.vmwrite(Field::PleGap, PLE_GAP);
        c.vmwrite(Field::PleWindow, PLE_WINDOW);
        let controls = c.vmread(Field::SecondaryControls);
        c.vmwrite(Field::SecondaryControls, controls | u64::from(secondary::PAUSE_LOOP_EXITING));
    }

    /// The state of a host kernel, which VM-entry checks.
    fn write_host_state(&mut self) {
        let c = &mut self.processor.core;
        for (field, value) in [
            (Field::HostCr0, cr0::PE | cr0::PG | cr0::NE | cr0::ET | cr0::MP | cr0::WP | cr0::AM),
            (Field::HostCr3, 0x1000),
            (Field::HostCr4, cr4::PAE | cr4::VMXE | cr4::OSFXSR | cr4::OSXMMEXCPT | cr4::PGE),
            (Field::HostCsSelector, 0x10),
            (Field::HostSsSelector, 0x18),
            (Field::HostTrSelector, 0x40),
            (Field::HostEfer, efer::LME | efer::LMA | efer::NXE | efer::SCE),
            (Field::HostPat, 0x0007_0406_0007_0406),
            (Field::HostRip, 0xffff_ffff_8100_0000),
            (Field::HostRsp, 0xffff_c900_0000_4000),
            (Field::HostGdtrBase, 0xffff_fe00_0000_1000),
            (Field::HostIdtrBase, 0xffff_fe00_0000_0000),
            (Field::HostTrBase, 0xffff_fe00_0000_3000),
        ] {
            c.vmwrite(field, value);
        }
    }

    /// State after RESET or INIT ("Processor State After Reset").
    pub(crate) fn reset(&mut self) {
        let c = &mut self.processor.core;
        c.gpr = [0; 32];
        c.gpr[2] = u64::from(c.model.signature());
        c.cr2 = 0;
        c.dr = [0, 0, 0, 0, 0, 0, 0xffff_0ff0, 0x400];
        let data = rights::P | rights::S | rights::WRITABLE | rights::ACCESSED;
        let segments = [
            (Field::GuestEsSelector, Field::GuestEsBase, Field::GuestEsLimit, Field::GuestEsRights, 0, 0, data),
            (
                Field::GuestCsSelector,
                Field::GuestCsBase,
                Field::GuestCsLimit,
                Field::GuestCsRights,
                0xf000,
                0xffff_0000,
                data | rights::CODE,
            ),
            (Field::GuestSsSelector, Field::GuestSsBase, Field::GuestSsLimit, Field::GuestSsRights, 0, 0, data),
            (Field::GuestDsSelector, Field::GuestDsBase, Field::GuestDsLimit, Field::GuestDsRights, 0, 0, data),
            (Field::GuestFsSelector, Field::GuestFsBase, Field::GuestFsLimit, Field::GuestFsRights, 0, 0, data),
            (Field::GuestGsSelector, Field::GuestGsBase, Field::GuestGsLimit, Field::GuestGsRights, 0, 0, data),
            (
                Field::GuestLdtrSelector,
                Field::GuestLdtrBase,
                Field::GuestLdtrLimit,
                Field::GuestLdtrRights,
                0,
                0,
                rights::P | 2,
            ),
            (
                Field::GuestTrSelector,
                Field::GuestTrBase,
                Field::GuestTrLimit,
                Field::GuestTrRights,
                0,
                0,
                rights::P | 11,
            ),
        ];
        for (selector, base, limit, access, s, b, r) in segments {
            c.vmwrite(selector, s);
            c.vmwrite(base, b);
            c.vmwrite(limit, 0xffff);
            c.vmwrite(access, u64::from(r));
        }
        for (field, value) in [
            (Field::GuestRip, 0xfff0),
            (Field::GuestRflags, 2),
            (Field::GuestGdtrBase, 0),
            (Field::GuestGdtrLimit, 0xffff),
            (Field::GuestIdtrBase, 0),
            (Field::GuestIdtrLimit, 0xffff),
            (Field::GuestCr3, 0),
            (Field::GuestDr7, 0x400),
            (Field::GuestPat, 0x0007_0406_0007_0406),
            (Field::GuestSysenterCs, 0),
            (Field::GuestSysenterEsp, 0),
            (Field::GuestSysenterEip, 0),
            (Field::GuestInterruptibility, 0),
            (Field::GuestActivity, 0),
            (Field::GuestPendingDebugExceptions, 0),
            (Field::GuestDebugctl, 0),
            (Field::EntryInterruptionInformation, 0),
        ] {
            c.vmwrite(field, value);
        }
        self.set_efer(0);
        self.set_cr0(cr0::CD | cr0::NW | cr0::ET);
        self.set_cr4(0);
    }

    /// Sets CR0: the guest sees `value`, hardware also has what VMX demands.
    pub(crate) fn set_cr0(&mut self, value: u64) {
        let c = &mut self.processor.core;
        c.vmwrite(Field::GuestCr0, value | cr0::NE);
        c.vmwrite(Field::Cr0Shadow, value);
    }

    /// CR0 as the guest sees it.
    pub(crate) fn cr0(&self) -> u64 {
        let c = &self.processor.core;
        (c.vmread(Field::GuestCr0) & CR0_GUEST) | (c.vmread(Field::Cr0Shadow) & !CR0_GUEST)
    }

    /// Sets CR4 likewise.
    pub(crate) fn set_cr4(&mut self, value: u64) {
        let c = &mut self.processor.core;
        c.vmwrite(Field::GuestCr4, value | cr4::VMXE);
        c.vmwrite(Field::Cr4Shadow, value);
    }

    /// CR4 as the guest sees it.
    pub(crate) fn cr4(&self) -> u64 {
        let c = &self.processor.core;
        (c.vmread(Field::GuestCr4) & CR4_GUEST) | (c.vmread(Field::Cr4Shadow) & !CR4_GUEST)
    }

    /// Sets EFER, and the VM-entry control that must agree with LMA.
    pub(crate) fn set_efer(&mut self, value: u64) {
        let c = &mut self.processor.core;
        c.vmwrite(Field::GuestEfer, value);
        let controls = c.vmread(Field::EntryControls) as u32;
        let wanted = if value & efer::LMA != 0 {
            controls | entry::IA32E_MODE_GUEST
        } else {
            controls & !entry::IA32E_MODE_GUEST
        };
        if wanted != controls {
            c.vmwrite(Field::EntryControls, u64::from(wanted));
        }
    }
}
