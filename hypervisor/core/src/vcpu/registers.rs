//! KVM's register structures: `kvm_regs` and `kvm_sregs`.

use kvm_bindings::{kvm_dtable, kvm_regs, kvm_segment, kvm_sregs};
use silicon_x86::core::SegmentRegister;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::Field;

use super::{MpState, Vcpu};

/// Segment fields of the VMCS in the order of [`index`].
const SEGMENTS: [(Field, Field, Field, Field); 8] = [
    (Field::GuestEsSelector, Field::GuestEsBase, Field::GuestEsLimit, Field::GuestEsRights),
    (Field::GuestCsSelector, Field::GuestCsBase, Field::GuestCsLimit, Field::GuestCsRights),
    (Field::GuestSsSelector, Field::GuestSsBase, Field::GuestSsLimit, Field::GuestSsRights),
    (Field::GuestDsSelector, Field::GuestDsBase, Field::GuestDsLimit, Field::GuestDsRights),
    (Field::GuestFsSelector, Field::GuestFsBase, Field::GuestFsLimit, Field::GuestFsRights),
    (Field::GuestGsSelector, Field::GuestGsBase, Field::GuestGsLimit, Field::GuestGsRights),
    (Field::GuestLdtrSelector, Field::GuestLdtrBase, Field::GuestLdtrLimit, Field::GuestLdtrRights),
    (Field::GuestTrSelector, Field::GuestTrBase, Field::GuestTrLimit, Field::GuestTrRights),
];

fn to_kvm(s: &SegmentRegister) -> kvm_segment {
    let bit = |b: u32| u8::from(s.rights & b != 0);
    kvm_segment {
        base: s.base,
        limit: s.limit,
        selector: s.selector,
        type_: (s.rights & rights::TYPE) as u8,
        present: bit(rights::P),
        dpl: s.dpl(),
        db: bit(rights::DB),
        s: bit(rights::S),
        l: bit(rights::L),
        g: bit(rights::G),
        avl: bit(rights::AVL),
        unusable: bit(rights::UNUSABLE),
        padding: 0,
    }
}

fn access_rights(s: &kvm_segment) -> u32 {
    let bit = |v: u8, b: u32| if v != 0 { b } else { 0 };
    u32::from(s.type_) & rights::TYPE
        | bit(s.s, rights::S)
        | (u32::from(s.dpl) & 3) << rights::DPL_SHIFT
        | bit(s.present, rights::P)
        | bit(s.avl, rights::AVL)
        | bit(s.l, rights::L)
        | bit(s.db, rights::DB)
        | bit(s.g, rights::G)
        | if s.unusable != 0 || s.present == 0 { rights::UNUSABLE } else { 0 }
}

impl Vcpu {
    /// `KVM_GET_REGS`.
    #[must_use]
    pub fn regs(&self) -> kvm_regs {
        let core = &self.processor.core;
        let g = &core.gpr;
        kvm_regs {
            rax: g[0],
            rcx: g[1],
            rdx: g[2],
            rbx: g[3],
            rsp: g[4],
            rbp: g[5],
            rsi: g[6],
            rdi: g[7],
            r8: g[8],
            r9: g[9],
            r10: g[10],
            r11: g[11],
            r12: g[12],
            r13: g[13],
            r14: g[14],
            r15: g[15],
            rip: core.rip,
            rflags: core.rflags(),
        }
    }

    /// `KVM_SET_REGS`.
    pub fn set_regs(&mut self, r: &kvm_regs) {
        let core = &mut self.processor.core;
        let values = [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ];
        core.gpr[..16].copy_from_slice(&values);
        core.vmwrite(Field::GuestRip, r.rip);
        core.vmwrite(Field::GuestRflags, r.rflags | x86_defs::rflags::FIXED);
        self.exception = None;
    }

    /// `KVM_GET_SREGS`.
    #[must_use]
    pub fn sregs(&self) -> kvm_sregs {
        let core = &self.processor.core;
        let segment = |i: usize| to_kvm(&core.seg[i]);
        let table = |base, limit| kvm_dtable { base, limit, padding: [0; 3] };
        kvm_sregs {
            cs: segment(index::CS),
            ds: segment(index::DS),
            es: segment(index::ES),
            fs: segment(index::FS),
            gs: segment(index::GS),
            ss: segment(index::SS),
            tr: segment(index::TR),
            ldt: segment(index::LDTR),
            gdt: table(core.gdtr.base, core.gdtr.limit),
            idt: table(core.idtr.base, core.idtr.limit),
            cr0: self.cr0(),
            cr2: core.cr2,
            cr3: core.cr3,
            cr4: self.cr4(),
            cr8: 0,
            efer: core.efer,
            apic_base: 0,
            interrupt_bitmap: [0; 4],
        }
    }

    /// `KVM_SET_SREGS`: segments, tables, control registers and EFER. CR8 and the APIC base belong to the local APIC.
    pub fn set_sregs(&mut self, s: &kvm_sregs) {
        let segments = [&s.es, &s.cs, &s.ss, &s.ds, &s.fs, &s.gs, &s.ldt, &s.tr];
        let core = &mut self.processor.core;
        for (segment, (selector, base, limit, access)) in segments.into_iter().zip(SEGMENTS) {
            core.vmwrite(selector, u64::from(segment.selector));
            core.vmwrite(base, segment.base);
            core.vmwrite(limit, u64::from(segment.limit));
            core.vmwrite(access, u64::from(access_rights(segment)));
        }
        core.vmwrite(Field::GuestGdtrBase, s.gdt.base);
        core.vmwrite(Field::GuestGdtrLimit, u64::from(s.gdt.limit));
        core.vmwrite(Field::GuestIdtrBase, s.idt.base);
        core.vmwrite(Field::GuestIdtrLimit, u64::from(s.idt.limit));
        core.cr2 = s.cr2;
        core.vmwrite(Field::GuestCr3, s.cr3);
        self.set_cr0(s.cr0);
        self.set_cr4(s.cr4);
        self.set_efer(s.efer);
        self.pdptes_in_memory = self.processor.core.pae_paging(s.cr0, s.cr4);
    }

    /// INIT: state after reset, waiting for a start-up request (the bootstrap processor starts at once).
    pub(crate) fn init(&mut self) {
        self.reset();
        self.exception = None;
        self.nmi_pending = false;
        self.mp_state = if self.index == 0 { MpState::Runnable } else { MpState::WaitForSipi };
    }

    /// Start-up request: real-address mode at `page << 12`.
    pub(crate) fn start_up(&mut self, page: u8) {
        let core = &mut self.processor.core;
        core.vmwrite(Field::GuestCsSelector, u64::from(page) << 8);
        core.vmwrite(Field::GuestCsBase, u64::from(page) << 12);
        core.vmwrite(Field::GuestRip, 0);
        self.mp_state = MpState::Runnable;
    }
}
