//! MSR areas ("Loading MSRs", "Saving MSRs"): entries of 16 bytes in memory, an index and a value.

use silicon_memory::HostPhysical;
use x86_defs::msr;
use x86_defs::vmx::Field;

use super::entry::Violation;
use super::exit::VmxAbort;
use crate::Core;
use crate::exec::system::msr_values;

const ENTRY_BYTES: u64 = 16;

impl Core {
    /// VM-entry MSR-load area. The qualification of a failure is the number of the entry, from 1.
    pub(super) fn load_entry_msrs(&mut self) -> Result<(), Violation> {
        let (count, base) = (self.vmcs().get(Field::EntryMsrLoadCount), self.vmcs().get(Field::EntryMsrLoadAddress));
        for i in 0..count {
            let loaded =
                self.msr_entry(base + i * ENTRY_BYTES).is_some_and(|(index, value)| self.load_msr(index, value));
            if !loaded {
                return Err(Violation {
                    rule: "VM-entry MSR-load area: an MSR cannot be loaded",
                    qualification: i + 1,
                });
            }
        }
        Ok(())
    }

    /// VM-exit MSR-store area, then VM-exit MSR-load area.
    #[cold]
    pub(super) fn process_exit_msrs(&mut self) -> Result<(), VmxAbort> {
        let (count, base) = (self.vmcs().get(Field::ExitMsrStoreCount), self.vmcs().get(Field::ExitMsrStoreAddress));
        for i in 0..count {
            let at = base + i * ENTRY_BYTES;
            let saved = self.msr_entry(at).and_then(|(index, _)| self.stored_msr(index)).and_then(|value| {
                let (frame, _) = self.memory.page(HostPhysical(at))?;
                frame.store(at + 8, value);
                self.memory.written(HostPhysical(at + 8), 8);
                Some(())
            });
            saved.ok_or(VmxAbort::SavingGuestMsrs { entry: i + 1 })?;
        }
        let (count, base) = (self.vmcs().get(Field::ExitMsrLoadCount), self.vmcs().get(Field::ExitMsrLoadAddress));
        for i in 0..count {
            let loaded = self.msr_entry(base + i * ENTRY_BYTES).is_some_and(|(index, value)| {
                // Host values of MSRs that are guest-state fields are nominal, as the host-state area is.
                self.is_guest_state_msr(index) || self.load_msr(index, value)
            });
            if !loaded {
                return Err(VmxAbort::LoadingHostMsrs { entry: i + 1 });
            }
        }
        Ok(())
    }

    /// Index and value of the entry at a host-physical address; `None` without memory or with reserved bits set.
    fn msr_entry(&self, at: u64) -> Option<(u32, u64)> {
        let (frame, _) = self.memory.page(HostPhysical(at))?;
        let index = frame.load::<u64>(at);
        Some((u32::try_from(index).ok()?, frame.load::<u64>(at + 8)))
    }

    fn is_guest_state_msr(&self, index: u32) -> bool {
        matches!(
            index,
            msr::IA32_EFER
                | msr::IA32_PAT
                | msr::IA32_DEBUGCTL
                | msr::IA32_SYSENTER_CS
                | msr::IA32_SYSENTER_ESP
                | msr::IA32_SYSENTER_EIP
        )
    }

    /// The value that RDMSR would read, of the time-stamp counter without an offset.
    fn stored_msr(&self, index: u32) -> Option<u64> {
        if index == msr::IA32_TSC { Some(self.host_tsc()) } else { msr_values::read(self, index) }
    }

    /// Loads an MSR as WRMSR would; whether it can be. FS.base and GS.base are never loaded this way.
    fn load_msr(&mut self, index: u32, value: u64) -> bool {
        !matches!(index, msr::IA32_FS_BASE | msr::IA32_GS_BASE) && msr_values::write(self, index, value).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Model;
    use crate::vmx::testing::{LIST, guest};
    use crate::vmx::{EntryFailure, ExitInfo};
    use x86_defs::vmx::ExitReason;

    fn write_list(core: &Core, entries: &[(u64, u64)]) {
        let (frame, _) = core.memory.page(HostPhysical(LIST)).unwrap();
        for (i, &(index, value)) in entries.iter().enumerate() {
            frame.store(i as u64 * 16, index);
            frame.store(i as u64 * 16 + 8, value);
        }
    }

    fn load_on_entry(entries: &[(u64, u64)]) -> (Core, Result<(), EntryFailure>) {
        let mut core = guest();
        write_list(&core, entries);
        core.vmwrite(Field::EntryMsrLoadAddress, LIST);
        core.vmwrite(Field::EntryMsrLoadCount, entries.len() as u64);
        let result = core.vmlaunch().map(drop);
        (core, result)
    }

    #[test]
    fn entry_loads_msrs_in_order() {
        let (core, result) = load_on_entry(&[(0xc000_0081, 1), (0xc000_0081, 0x23 << 48), (0xc000_0103, 5)]);
        result.unwrap();
        assert_eq!((core.msrs.star, core.msrs.tsc_aux), (0x23 << 48, 5));
    }

    #[test]
    fn an_msr_that_cannot_be_loaded_fails_the_entry_and_names_the_list_entry() {
        for bad in [
            (u64::from(msr::IA32_FS_BASE), 0),
            (0x1_c000_0081, 0),
            (0xc000_0082, 0x8000_0000_0000),
            (0x277, 0x02),
            (0x801, 0),
            (msr::IA32_XSS.into(), 0),
            (msr::IA32_PKRS.into(), 0),
            (msr::IA32_SPEC_CTRL.into(), 8),
        ] {
            let (core, result) = load_on_entry(&[(0xc000_0103, 5), bad]);
            assert!(
                matches!(result, Err(EntryFailure::Exit { reason: ExitReason::EntryFailureMsrLoading, .. })),
                "{bad:x?}"
            );
            assert_eq!(core.vmread(Field::ExitReason), 0x8000_0022);
            assert_eq!(core.vmread(Field::ExitQualification), 2);
        }
    }

    #[test]
    fn xss_and_pkrs_are_loaded_and_stored_with_the_checks_of_wrmsr() {
        let guest = || {
            let mut core = guest();
            core.model = Arc::new(Model::parse("glassvisor-v3,+pks").unwrap());
            core.vmwrite(Field::EntryMsrLoadAddress, LIST);
            core.vmwrite(Field::ExitMsrStoreAddress, LIST + 32);
            core
        };
        for (index, bad) in [(msr::IA32_XSS, 1), (msr::IA32_PKRS, 1 << 32)] {
            let mut core = guest();
            write_list(&core, &[(index.into(), bad)]);
            core.vmwrite(Field::EntryMsrLoadCount, 1);
            assert!(core.vmlaunch().is_err(), "{index:#x}");
        }
        let mut core = guest();
        let (xss, pkrs) = (u64::from(msr::IA32_XSS), u64::from(msr::IA32_PKRS));
        write_list(&core, &[(xss, 0), (pkrs, 0x8000_0004), (xss, 9), (pkrs, 9)]);
        core.vmwrite(Field::EntryMsrLoadCount, 2);
        core.vmwrite(Field::ExitMsrStoreCount, 2);
        let _ = core.vmlaunch().unwrap();
        assert_eq!(core.msrs.pkrs, 0x8000_0004);
        core.set_pkrs(0xc0);
        core.vmexit_with(ExitInfo { reason: Some(ExitReason::Hlt), ..ExitInfo::default() });
        core.complete_exit().unwrap();
        let (frame, _) = core.memory.page(HostPhysical(LIST)).unwrap();
        assert_eq!((frame.load::<u64>(LIST + 40), frame.load::<u64>(LIST + 56)), (0, 0xc0));
    }

    #[test]
    fn exit_stores_the_guests_value_and_loads_the_hosts() {
        let mut core = guest();
        write_list(&core, &[(0xc000_0102, 0), (0xc000_0102, 0x1111)]);
        core.vmwrite(Field::ExitMsrStoreAddress, LIST);
        core.vmwrite(Field::ExitMsrStoreCount, 1);
        core.vmwrite(Field::ExitMsrLoadAddress, LIST + 16);
        core.vmwrite(Field::ExitMsrLoadCount, 1);
        let _ = core.vmlaunch().unwrap();
        core.msrs.kernel_gs_base = 0x2222;
        core.vmexit_with(ExitInfo { reason: Some(ExitReason::Hlt), ..ExitInfo::default() });
        core.complete_exit().unwrap();
        assert_eq!(core.memory.page(HostPhysical(LIST)).unwrap().0.load::<u64>(8), 0x2222);
        assert_eq!(core.msrs.kernel_gs_base, 0x1111);
    }

    #[test]
    fn an_exit_list_with_an_unknown_msr_is_a_vmx_abort() {
        let mut core = guest();
        write_list(&core, &[(0x1234, 0)]);
        core.vmwrite(Field::ExitMsrStoreAddress, LIST);
        core.vmwrite(Field::ExitMsrStoreCount, 1);
        let _ = core.vmlaunch().unwrap();
        core.vmexit_with(ExitInfo { reason: Some(ExitReason::Hlt), ..ExitInfo::default() });
        assert_eq!(core.complete_exit(), Err(VmxAbort::SavingGuestMsrs { entry: 1 }));
        assert_eq!(core.vmclear().unwrap().abort_indicator(), 1);
    }
}
