//! Checks on the guest-state area ("Checks on the Guest State Area").

use x86_defs::control::{cr0, cr4, efer};
use x86_defs::exception::vector;
use x86_defs::rflags;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{activity, entry, interruptibility, interruption, secondary};

use silicon_memory::HostPhysical;

use super::Dirty;
use super::capability::{CR0_FIXED0, CR0_FIXED1, CR4_FIXED0, cr4_fixed1};
use super::check_host::{EFER_DEFINED, valid_pat};
use super::entry::{Checked, Violation, rule};
use super::vmcs::REVISION;
use crate::Core;
use crate::core::SegmentRegister;

/// DEBUGCTL bits that exist: LBR, BTF.
const DEBUGCTL_DEFINED: u64 = 3;
const DEBUGCTL_BTF: u64 = 1 << 1;
/// Pending debug exceptions: single step.
const PENDING_BS: u64 = 1 << 14;
/// Pending debug exceptions that exist: B3-B0, enabled breakpoint, BS.
const PENDING_DEFINED: u64 = 0xf | 1 << 12 | PENDING_BS;
/// Exit qualifications of a failed VM-entry.
const QUALIFICATION_PDPTE: u64 = 2;
const QUALIFICATION_NMI_IN_STI_SHADOW: u64 = 3;
const QUALIFICATION_LINK_POINTER: u64 = 4;

impl Core {
    /// Checks the guest state that may be invalid: what was written since the last VM-entry.
    /// `information` is the VM-entry interruption-information field.
    #[inline]
    pub(super) fn check_guest(&mut self, information: u32) -> Checked {
        if self.vmx.dirty.guest() {
            self.check_written()?;
        }
        self.check_rip_and_rflags(information)?;
        self.check_non_register_state(information)
    }

    #[cold]
    fn check_written(&mut self) -> Checked {
        let dirty = self.vmx.dirty;
        if dirty.any(Dirty::REGISTERS) {
            self.check_registers()?;
        }
        if dirty.any(Dirty::SEGMENTS) {
            self.check_segments()?;
            self.check_tables()?;
        }
        if dirty.any(Dirty::LINK_POINTER) {
            self.check_link_pointer()?;
        }
        if dirty.any(Dirty::PDPTES) {
            self.load_and_check_pdptes()?;
        }
        Ok(())
    }

    fn unrestricted(&self) -> bool {
        self.vmx.controls.secondary & secondary::UNRESTRICTED_GUEST != 0
    }

    fn enters_ia32e(&self) -> bool {
        self.vmx.controls.entry & entry::IA32E_MODE_GUEST != 0
    }

    fn enters_v8086(&self) -> bool {
        self.rflags_rest & rflags::VM != 0
    }

    /// "Checks on Guest Control Registers, Debug Registers, and MSRs"
    fn check_registers(&self) -> Checked {
        let controls = self.vmx.controls.entry;
        let (cr0, cr4, efer) = (self.cr0, self.cr4, self.vmread(Field::GuestEfer));
        let ia32e = self.enters_ia32e();
        let must = if self.unrestricted() { CR0_FIXED0 & !(cr0::PE | cr0::PG) } else { CR0_FIXED0 };
        rule(cr0 & must == must && cr0 & !CR0_FIXED1 == 0, "guest CR0: a fixed bit")?;
        rule(cr0 & cr0::PG == 0 || cr0 & cr0::PE != 0, "guest CR0: PG without PE")?;
        rule(cr4 & CR4_FIXED0 == CR4_FIXED0 && cr4 & !cr4_fixed1(&self.model) == 0, "guest CR4: a fixed bit")?;
        if ia32e {
            rule(cr0 & cr0::PG != 0 && cr4 & cr4::PAE != 0, "IA-32e mode guest without CR0.PG and CR4.PAE")?;
        } else {
            rule(cr4 & cr4::PCIDE == 0, "guest CR4: PCIDE outside of IA-32e mode")?;
        }
        rule(self.cr3 & self.model.cr3_reserved() == 0, "guest CR3: beyond the physical address width")?;
        if controls & entry::LOAD_DEBUG_CONTROLS != 0 {
            rule(self.vmread(Field::GuestDebugctl) & !DEBUGCTL_DEFINED == 0, "guest DEBUGCTL: a reserved bit")?;
            rule(self.vmread(Field::GuestDr7) >> 32 == 0, "guest DR7: a bit above 31")?;
        }
        rule(
            self.model.is_canonical(self.msrs.sysenter_esp) && self.model.is_canonical(self.msrs.sysenter_eip),
            "guest SYSENTER address not canonical",
        )?;
        if controls & entry::LOAD_PAT != 0 {
            rule(valid_pat(self.vmread(Field::GuestPat)), "guest PAT: a memory type that does not exist")?;
        }
        if controls & entry::LOAD_PKRS != 0 {
            rule(self.vmread(Field::GuestPkrs) >> 32 == 0, "guest IA32_PKRS: a bit above 31")?;
        }
        if controls & entry::LOAD_EFER != 0 {
            rule(efer & !EFER_DEFINED == 0, "guest EFER: a reserved bit")?;
            let lma = efer & efer::LMA != 0;
            rule(lma == ia32e, "guest EFER: LMA differs from the IA-32e mode guest control")?;
            rule(
                cr0 & cr0::PG == 0 || lma == (efer & efer::LME != 0),
                "guest EFER: LMA differs from LME with paging on",
            )?;
        }
        Ok(())
    }

    /// "Checks on Guest Segment Registers"
    fn check_segments(&self) -> Checked {
        let (cs, ss) = (&self.seg[index::CS], &self.seg[index::SS]);
        let (ldtr, tr) = (&self.seg[index::LDTR], &self.seg[index::TR]);
        rule(tr.selector & 4 == 0, "guest TR selector: TI set")?;
        rule(ldtr.unusable() || ldtr.selector & 4 == 0, "guest LDTR selector: TI set")?;
        rule(
            self.enters_v8086() || self.unrestricted() || (ss.selector ^ cs.selector) & 3 == 0,
            "guest SS selector: RPL differs from that of CS",
        )?;

        for (s, name) in [
            (tr, "guest TR base not canonical"),
            (&self.seg[index::FS], "guest FS base not canonical"),
            (&self.seg[index::GS], "guest GS base not canonical"),
        ] {
            rule(self.model.is_canonical(s.base), name)?;
        }
        rule(ldtr.unusable() || self.model.is_canonical(ldtr.base), "guest LDTR base not canonical")?;
        rule(cs.base >> 32 == 0, "guest CS base above 4 GiB")?;
        for i in [index::SS, index::DS, index::ES] {
            let s = &self.seg[i];
            rule(s.unusable() || s.base >> 32 == 0, "guest SS, DS or ES base above 4 GiB")?;
        }

        if self.enters_v8086() {
            for s in &self.seg[..=index::GS] {
                rule(s.base == u64::from(s.selector) << 4, "virtual-8086 segment: base is not selector * 16")?;
                rule(s.limit == 0xffff, "virtual-8086 segment: limit is not 0xffff")?;
                rule(s.rights == 0xf3, "virtual-8086 segment: access rights are not 0xf3")?;
            }
        } else {
            self.check_cs_and_ss()?;
            for i in [index::DS, index::ES, index::FS, index::GS] {
                self.check_data(&self.seg[i])?;
            }
        }
        self.check_system_segments()
    }

    fn check_cs_and_ss(&self) -> Checked {
        let (cs, ss) = (&self.seg[index::CS], &self.seg[index::SS]);
        let kind = cs.rights & rights::TYPE;
        rule(matches!(kind, 9 | 11 | 13 | 15) || kind == 3 && self.unrestricted(), "guest CS type: not accessed code")?;
        rule(
            match kind {
                3 => cs.dpl() == 0,
                9 | 11 => cs.dpl() == ss.dpl(),
                _ => cs.dpl() <= ss.dpl(),
            },
            "guest CS DPL: does not fit type and SS",
        )?;
        rule(cs.has(rights::S | rights::P), "guest CS: S or P clear")?;
        check_form(cs)?;
        rule(
            !(self.enters_ia32e() && cs.has(rights::L) && cs.has(rights::DB)),
            "guest CS: L and D both set in IA-32e mode",
        )?;

        if !ss.unusable() {
            rule(matches!(ss.rights & rights::TYPE, 3 | 7), "guest SS type: not accessed writable data")?;
            rule(ss.has(rights::S | rights::P), "guest SS: S or P clear")?;
            check_form(ss)?;
        }
        rule(self.unrestricted() || u16::from(ss.dpl()) == ss.selector & 3, "guest SS DPL: differs from its RPL")?;
        rule(
            !(kind == 3 || self.cr0 & cr0::PE == 0) || ss.dpl() == 0,
            "guest SS DPL: not 0 in real mode or with a data segment in CS",
        )
    }

    fn check_data(&self, s: &SegmentRegister) -> Checked {
        if s.unusable() {
            return Ok(());
        }
        rule(s.has(rights::ACCESSED), "guest data segment: not accessed")?;
        rule(!s.has(rights::CODE) || s.has(rights::READABLE), "guest data segment: code that cannot be read")?;
        rule(s.has(rights::S | rights::P), "guest data segment: S or P clear")?;
        let conforming = s.rights & rights::TYPE > 11;
        rule(
            self.unrestricted() || conforming || u16::from(s.dpl()) >= s.selector & 3,
            "guest data segment: DPL below RPL",
        )?;
        check_form(s)
    }

    fn check_system_segments(&self) -> Checked {
        let (ldtr, tr) = (&self.seg[index::LDTR], &self.seg[index::TR]);
        let kind = tr.rights & rights::TYPE;
        rule(kind == 11 || kind == 3 && !self.enters_ia32e(), "guest TR type: not a busy TSS")?;
        rule(!tr.has(rights::S) && tr.has(rights::P) && !tr.unusable(), "guest TR: S set, P clear or unusable")?;
        check_form(tr)?;
        if !ldtr.unusable() {
            rule(ldtr.rights & rights::TYPE == 2, "guest LDTR type: not an LDT")?;
            rule(!ldtr.has(rights::S) && ldtr.has(rights::P), "guest LDTR: S set or P clear")?;
            check_form(ldtr)?;
        }
        Ok(())
    }

    /// "Checks on Guest Descriptor-Table Registers"
    fn check_tables(&self) -> Checked {
        rule(
            self.model.is_canonical(self.gdtr.base) && self.model.is_canonical(self.idtr.base),
            "guest GDTR or IDTR base not canonical",
        )?;
        rule(
            self.vmread(Field::GuestGdtrLimit) <= 0xffff && self.vmread(Field::GuestIdtrLimit) <= 0xffff,
            "guest GDTR or IDTR limit above 0xffff",
        )
    }

    /// "Checks on Guest RIP, RFLAGS, and SSP"
    #[inline]
    fn check_rip_and_rflags(&self, information: u32) -> Checked {
        let ia32e = self.enters_ia32e();
        if ia32e && self.seg[index::CS].has(rights::L) {
            rule(self.model.is_canonical(self.rip), "guest RIP not canonical")?;
        } else {
            rule(self.rip >> 32 == 0, "guest RIP above 4 GiB outside of 64-bit mode")?;
        }
        if self.vmx.dirty.any(Dirty::RFLAGS) {
            let flags = self.vmread(Field::GuestRflags);
            rule(flags & !rflags::DEFINED == 0 && flags & rflags::FIXED != 0, "guest RFLAGS: a reserved bit")?;
        }
        rule(!self.enters_v8086() || !ia32e && self.cr0 & cr0::PE != 0, "guest RFLAGS: VM set in IA-32e or real mode")?;
        let external = injects(information, interruption::TYPE_EXTERNAL);
        rule(!external || self.rflags_rest & rflags::IF != 0, "injection of an external interrupt with RFLAGS.IF clear")
    }

    /// "Checks on Guest Non-Register State"
    #[inline]
    fn check_non_register_state(&self, information: u32) -> Checked {
        let quiet = information & interruption::VALID == 0
            && self.vmx.activity == activity::ACTIVE
            && !self.events.sti_shadow
            && !self.events.mov_ss_shadow
            && !self.vmx.dirty.any(Dirty::INTERRUPTIBILITY)
            && self.vmx.pending_debug == 0
            && self.rflags_rest & rflags::TF == 0;
        if quiet { Ok(()) } else { self.check_activity_and_blocking(information) }
    }

    #[cold]
    fn check_activity_and_blocking(&self, information: u32) -> Checked {
        let blocking = self.vmread(Field::GuestInterruptibility) as u32;
        let sti = blocking & interruptibility::BLOCKING_BY_STI != 0;
        let mov_ss = blocking & interruptibility::BLOCKING_BY_MOV_SS != 0;
        let state = self.vmx.activity;

        rule(state <= activity::WAIT_FOR_SIPI, "guest activity state that does not exist")?;
        rule(state != activity::HLT || self.seg[index::SS].dpl() == 0, "guest activity state HLT with SS.DPL not 0")?;
        rule(state == activity::ACTIVE || !(sti || mov_ss), "guest inactive in an STI or MOV SS shadow")?;
        if information & interruption::VALID != 0 {
            check_activity_allows(state, information)?;
        }

        rule(blocking & !0xf == 0, "guest interruptibility: a reserved bit")?;
        rule(!(sti && mov_ss), "guest interruptibility: both STI and MOV SS")?;
        rule(!sti || self.rflags_rest & rflags::IF != 0, "guest interruptibility: STI with RFLAGS.IF clear")?;
        rule(blocking & interruptibility::BLOCKING_BY_SMI == 0, "guest interruptibility: SMI outside of SMM")?;
        if injects(information, interruption::TYPE_EXTERNAL) {
            rule(!sti && !mov_ss, "injection of an external interrupt in an STI or MOV SS shadow")?;
        }
        if injects(information, interruption::TYPE_NMI) {
            rule(!mov_ss, "injection of an NMI in a MOV SS shadow")?;
            rule(!sti, "injection of an NMI in an STI shadow")
                .map_err(|v| Violation { qualification: QUALIFICATION_NMI_IN_STI_SHADOW, ..v })?;
            let virtual_nmis = self.vmx.controls.pin & x86_defs::vmx::controls::pin::VIRTUAL_NMIS != 0;
            rule(
                !virtual_nmis || blocking & interruptibility::BLOCKING_BY_NMI == 0,
                "injection of an NMI while virtual NMIs are blocked",
            )?;
        }

        let pending = self.vmx.pending_debug;
        rule(pending & !PENDING_DEFINED == 0, "guest pending debug exceptions: a reserved bit")?;
        if sti || mov_ss || state == activity::HLT {
            let steps = self.rflags_rest & rflags::TF != 0 && self.vmread(Field::GuestDebugctl) & DEBUGCTL_BTF == 0;
            rule(
                (pending & PENDING_BS != 0) == steps,
                "guest pending debug exceptions: BS does not fit RFLAGS.TF and DEBUGCTL.BTF",
            )?;
        }
        Ok(())
    }

    fn check_link_pointer(&self) -> Checked {
        let pointer = self.vmread(Field::VmcsLinkPointer);
        let fits = || {
            let revision = || self.memory.page(HostPhysical(pointer)).map(|(frame, _)| frame.load::<u32>(0));
            pointer & 0xfff == 0 && self.model.is_physical(pointer) && revision() == Some(REVISION)
        };
        rule(pointer == u64::MAX || fits(), "VMCS link pointer: neither all ones nor a VMCS")
            .map_err(|v| Violation { qualification: QUALIFICATION_LINK_POINTER, ..v })
    }

    /// "Checks on Guest Page-Directory-Pointer-Table Entries": with EPT they are in the VMCS, else in memory at CR3.
    fn load_and_check_pdptes(&mut self) -> Checked {
        let pae = self.cr0 & cr0::PG != 0 && self.cr4 & cr4::PAE != 0 && !self.enters_ia32e();
        if !pae {
            return Ok(());
        }
        let mut pdptes = self.vmx.pdptes;
        if self.vmx.controls.secondary & secondary::ENABLE_EPT == 0 {
            let table = self.cr3 & 0xffff_ffe0;
            if let Some((frame, _)) = self.memory.page(HostPhysical(table)) {
                for (i, pdpte) in pdptes.iter_mut().enumerate() {
                    *pdpte = frame.load(table + i as u64 * 8);
                }
            }
        }
        for pdpte in pdptes {
            rule(!self.pdpte_is_bad(pdpte), "guest PDPTE: a reserved bit")
                .map_err(|v| Violation { qualification: QUALIFICATION_PDPTE, ..v })?;
        }
        self.vmx.pdptes = pdptes;
        Ok(())
    }
}

fn injects(information: u32, kind: u32) -> bool {
    information & interruption::VALID != 0 && information & interruption::TYPE == kind
}

/// Reserved bits, and granularity against limit.
fn check_form(s: &SegmentRegister) -> Checked {
    rule(s.rights & 0xfffe_0f00 == 0, "guest segment access rights: a reserved bit")?;
    let granular = s.has(rights::G);
    rule(!granular || s.limit & 0xfff == 0xfff, "guest segment: G set with limit bits 11:0 not all ones")?;
    rule(granular || s.limit >> 20 == 0, "guest segment: G clear with a limit above 1 MiB")
}

/// Which events may be injected into an inactive guest.
fn check_activity_allows(state: u32, information: u32) -> Checked {
    let kind = information & interruption::TYPE;
    let vector = (information & interruption::VECTOR) as u8;
    let exception = |v| kind == interruption::TYPE_HARDWARE_EXCEPTION && vector == v;
    rule(
        match state {
            activity::HLT => {
                matches!(kind, interruption::TYPE_EXTERNAL | interruption::TYPE_NMI | interruption::TYPE_OTHER)
                    || exception(vector::DB)
                    || exception(vector::MC)
            }
            activity::SHUTDOWN => kind == interruption::TYPE_NMI || exception(vector::MC),
            activity::WAIT_FOR_SIPI => false,
            _ => true,
        },
        "injection of an event that the guest activity state does not take",
    )
}
