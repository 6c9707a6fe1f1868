//! RDMSR and WRMSR that exit.

use irqchip::MsrError;
use silicon_x86::event::debugctl;
use silicon_x86::model::Feature;
use x86_defs::control::{cr0, efer};
use x86_defs::msr;
use x86_defs::vmx::Field;

use super::{Next, Shared};
use crate::pv::{OnProcessor, number};
use crate::vcpu::Vcpu;

/// The guest's access is a general protection fault.
struct GeneralProtection;

impl Vcpu {
    pub(super) fn rdmsr_exit(&mut self, shared: &mut Shared) -> Next {
        let msr = self.processor.core.gpr[1] as u32;
        *self.statistics.msr_reads.entry(msr).or_default() += 1;
        match self.read_msr(shared, msr) {
            Ok(value) => {
                let gpr = &mut self.processor.core.gpr;
                gpr[0] = value & 0xffff_ffff;
                gpr[2] = value >> 32;
                self.skip()
            }
            Err(GeneralProtection) => {
                self.queue_gp();
                Next::Resume
            }
        }
    }

    pub(super) fn wrmsr_exit(&mut self, shared: &mut Shared) -> Next {
        let gpr = &self.processor.core.gpr;
        let msr = gpr[1] as u32;
        let value = (gpr[0] & 0xffff_ffff) | gpr[2] << 32;
        *self.statistics.msr_writes.entry(msr).or_default() += 1;
        match self.write_msr(shared, msr, value) {
            Ok(()) => self.skip(),
            Err(GeneralProtection) => {
                self.queue_gp();
                Next::Resume
            }
        }
    }

    fn read_msr(&mut self, shared: &mut Shared, number: u32) -> Result<u64, GeneralProtection> {
        let now = self.now(&shared.clock);
        match shared.irqchip.msr_read(self.index, number, now) {
            Ok(value) => return Ok(value),
            Err(MsrError::GeneralProtection(_)) => return Err(GeneralProtection),
            Err(MsrError::Foreign { .. }) => {}
        }
        let core = &self.processor.core;
        Ok(match number {
            msr::IA32_TSC => now.guest_tsc,
            msr::IA32_TSC_ADJUST => self.msrs.tsc_adjust,
            msr::IA32_EFER => core.efer,
            msr::IA32_STAR => core.msrs.star,
            msr::IA32_LSTAR => core.msrs.lstar,
            msr::IA32_CSTAR => core.msrs.cstar,
            msr::IA32_FMASK => core.msrs.fmask,
            msr::IA32_TSC_AUX => core.msrs.tsc_aux,
            msr::IA32_PAT => core.msrs.pat,
            msr::IA32_XSS if core.model.has(Feature::Xsaves) => core.msrs.xss,
            msr::IA32_DEBUGCTL => core.msrs.debugctl,
            msr::IA32_PKRS if core.model.has(Feature::Pks) => core.msrs.pkrs.into(),
            number::WALL_CLOCK | number::WALL_CLOCK_NEW => self.pv.wall_clock,
            number::SYSTEM_TIME | number::SYSTEM_TIME_NEW => self.pv.system_time,
            number::STEAL_TIME => self.pv.steal_time,
            number::PV_EOI_EN => self.pv.pv_eoi,
            number::POLL_CONTROL => self.pv.poll_control,
            _ => return self.msrs.read(number).ok_or(GeneralProtection),
        })
    }

    fn write_msr(&mut self, shared: &mut Shared, number: u32, value: u64) -> Result<(), GeneralProtection> {
        let now = self.now(&shared.clock);
        match shared.irqchip.msr_write(self.index, number, value, now) {
            Ok(()) => return Ok(()),
            Err(MsrError::GeneralProtection(_)) => return Err(GeneralProtection),
            Err(MsrError::Foreign { .. }) => {}
        }
        let model = &self.processor.core.model;
        let canonical = model.is_canonical(value);
        let valid_xss = model.has(Feature::Xsaves) && value & !model.xss_supported() == 0;
        match number {
            msr::IA32_TSC => {
                // A write changes the offset, and TSC_ADJUST by as much.
                let delta = value.wrapping_sub(now.guest_tsc);
                self.msrs.tsc_adjust = self.msrs.tsc_adjust.wrapping_add(delta);
                self.set_tsc_offset(self.tsc_offset.wrapping_add(delta));
            }
            msr::IA32_TSC_ADJUST => {
                let delta = value.wrapping_sub(self.msrs.tsc_adjust);
                self.msrs.tsc_adjust = value;
                self.set_tsc_offset(self.tsc_offset.wrapping_add(delta));
            }
            msr::IA32_EFER => return self.write_efer(value),
            msr::IA32_STAR => self.processor.core.msrs.star = value,
            msr::IA32_LSTAR if canonical => self.processor.core.msrs.lstar = value,
            msr::IA32_CSTAR if canonical => self.processor.core.msrs.cstar = value,
            msr::IA32_FMASK if value >> 32 == 0 => self.processor.core.msrs.fmask = value,
            msr::IA32_TSC_AUX if value >> 32 == 0 => self.processor.core.msrs.tsc_aux = value,
            msr::IA32_XSS if valid_xss => self.processor.core.msrs.xss = value,
            msr::IA32_PKRS if value >> 32 == 0 && self.processor.core.model.has(Feature::Pks) => {
                self.processor.core.set_pkrs(value as u32);
            }
            msr::IA32_PAT if valid_pat(value) => self.processor.core.vmwrite(Field::GuestPat, value),
            // Branch-step is the processor's. There are no last-branch records: the switch is accepted and stays off.
            msr::IA32_DEBUGCTL if value & !(debugctl::BTF | debugctl::LBR) == 0 => {
                self.processor.core.vmwrite(Field::GuestDebugctl, value & debugctl::BTF);
            }
            number::WALL_CLOCK | number::WALL_CLOCK_NEW => {
                self.pv.wall_clock = value;
                Self::write_wall_clock(&shared.memory, value, &shared.clock);
            }
            number::SYSTEM_TIME | number::SYSTEM_TIME_NEW => {
                self.pv.system_time = value;
                self.write_kvmclock(&shared.memory, &shared.clock);
            }
            number::STEAL_TIME if value & 0x3e == 0 => {
                self.pv.steal_time = value;
                self.write_steal_time(&shared.memory, OnProcessor::Running);
            }
            number::PV_EOI_EN if value & 2 == 0 => self.pv.pv_eoi = value,
            number::POLL_CONTROL if value & !1 == 0 => self.pv.poll_control = value,
            _ => {
                let model = &self.processor.core.model;
                return if self.msrs.write(model, number, value) { Ok(()) } else { Err(GeneralProtection) };
            }
        }
        Ok(())
    }

    /// Changes guest TSC = host TSC + offset.
    pub(crate) fn set_tsc_offset(&mut self, offset: u64) {
        self.tsc_offset = offset;
        self.processor.core.vmwrite(Field::TscOffset, offset);
    }

    fn write_efer(&mut self, value: u64) -> Result<(), GeneralProtection> {
        let old = self.processor.core.efer;
        let allowed = efer::SCE | efer::LME | efer::LMA | efer::NXE;
        // LME cannot change while paging is on; LMA follows paging.
        let changes_lme = (old ^ value) & efer::LME != 0 && self.cr0() & cr0::PG != 0;
        if value & !allowed != 0 || changes_lme {
            return Err(GeneralProtection);
        }
        self.set_efer(value & !efer::LMA | old & efer::LMA);
        Ok(())
    }
}

/// Each byte of IA32_PAT is a memory type: 0, 1, 4, 5, 6 or 7.
fn valid_pat(value: u64) -> bool {
    value.to_le_bytes().iter().all(|&t| matches!(t, 0 | 1 | 4..=7))
}
