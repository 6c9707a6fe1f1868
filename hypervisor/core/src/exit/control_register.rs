//! MOV to and from CR0, CR4 and CR8, CLTS, LMSW, and debug registers.

use silicon_x86::mem::Invvpid;
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::segment::{index, rights};

use x86_defs::vmx::Field;

use super::{Next, Shared};
use crate::memory::GuestMemory;
use crate::vcpu::Vcpu;
use crate::vcpu::inject::{dr6, dr7};

const PDPTES: [Field; 4] = [Field::GuestPdpte0, Field::GuestPdpte1, Field::GuestPdpte2, Field::GuestPdpte3];

impl Vcpu {
    pub(super) fn control_register_exit(&mut self, shared: &mut Shared) -> Next {
        let q = self.processor.core.vmx.exit.qualification;
        let register = q & 15;
        let access = q >> 4 & 3;
        let slot = (q >> 8 & 15) as usize;
        let value = self.processor.core.gpr[slot];
        let ok = match (access, register) {
            (0, 0) => self.write_cr0(&shared.memory, value),
            (0, 4) => self.write_cr4(&shared.memory, value),
            (0, 8) => {
                let valid = value >> 4 == 0;
                if valid {
                    shared.irqchip.lapic_mut(self.index).set_cr8(value as u8);
                }
                valid
            }
            (1, 8) => {
                self.processor.core.gpr[slot] = u64::from(shared.irqchip.lapic(self.index).cr8());
                true
            }
            (2, _) => {
                let value = self.cr0() & !cr0::TS;
                self.write_cr0(&shared.memory, value)
            }
            (3, _) => {
                // LMSW changes the low four bits and cannot clear PE.
                let source = q >> 16 & 0xf;
                let old = self.cr0();
                self.write_cr0(&shared.memory, old & !0xe | source & 0xf | old & cr0::PE)
            }
            _ => return self.fail(format!("control-register access that is not intercepted: {q:#x}")),
        };
        if ok {
            self.skip()
        } else {
            self.queue_gp();
            Next::Resume
        }
    }

    /// MOV to CR0 with the manual's checks; `false` is #GP(0).
    fn write_cr0(&mut self, memory: &GuestMemory, value: u64) -> bool {
        let old = self.cr0();
        let defined =
            cr0::PE | cr0::MP | cr0::EM | cr0::TS | cr0::ET | cr0::NE | cr0::WP | cr0::AM | cr0::NW | cr0::CD | cr0::PG;
        if value >> 32 != 0 {
            return false;
        }
        let value = value & defined | cr0::ET;
        let paging = value & cr0::PG != 0;
        if paging && value & cr0::PE == 0 || value & cr0::NW != 0 && value & cr0::CD == 0 {
            return false;
        }
        let e = self.processor.core.efer;
        if paging
            && e & efer::LME == 0
            && self.cr4() & cr4::PAE != 0
            && (old ^ value) & (cr0::PG | cr0::CD | cr0::NW) != 0
            && !self.load_pdptes(memory)
        {
            return false;
        }
        if paging && old & cr0::PG == 0 && e & efer::LME != 0 {
            let cs_long = self.processor.core.seg[index::CS].has(rights::L);
            if self.cr4() & cr4::PAE == 0 || cs_long {
                return false;
            }
            self.set_cr0(value);
            self.set_efer(e | efer::LMA);
        } else if !paging && old & cr0::PG != 0 {
            if self.cr4() & cr4::PCIDE != 0 || self.processor.core.mode.is_64() {
                return false;
            }
            self.set_cr0(value);
            self.set_efer(e & !efer::LMA);
        } else {
            self.set_cr0(value);
        }
        if (old ^ value) & cr0::PG != 0 {
            self.flush();
        }
        true
    }

    fn write_cr4(&mut self, memory: &GuestMemory, value: u64) -> bool {
        let old = self.cr4();
        let supported = silicon_x86::vmx::capability::cr4_fixed1(&self.processor.core.model) & !(cr4::VMXE | cr4::SMXE);
        let long = self.processor.core.efer & efer::LMA != 0;
        if value & !supported != 0
            || long && value & cr4::PAE == 0
            || long && (value ^ old) & cr4::LA57 != 0
            || value & cr4::PCIDE != 0 && old & cr4::PCIDE == 0 && (!long || self.processor.core.cr3 & 0xfff != 0)
        {
            return false;
        }
        let changed = old ^ value;
        let pae_paging = self.cr0() & cr0::PG != 0 && !long && value & cr4::PAE != 0;
        if pae_paging && changed & (cr4::PAE | cr4::PSE | cr4::PGE | cr4::SMEP) != 0 && !self.load_pdptes(memory) {
            return false;
        }
        self.set_cr4(value);
        if changed & (cr4::PGE | cr4::PAE | cr4::PSE | cr4::PCIDE | cr4::SMEP) != 0 {
            self.flush();
        }
        true
    }

    /// Invalidates all translations of the vCPU, as INVVPID of its VPID does.
    fn flush(&mut self) {
        let vpid = self.index as u16 + 1;
        self.processor.core.tlb_invvpid(Invvpid::SingleContext { vpid });
    }

    /// PAE paging keeps the four page-directory-pointer entries in registers. `false` is #GP(0): they cannot be read, or
    /// have a reserved bit set.
    pub(crate) fn load_pdptes(&mut self, memory: &GuestMemory) -> bool {
        let core = &mut self.processor.core;
        let mut table = [0_u8; 32];
        if memory.read(core.vmread(Field::GuestCr3) & 0xffff_ffe0, &mut table).is_err() {
            return false;
        }
        let (entries, _) = table.as_chunks::<8>();
        if entries.iter().any(|&entry| core.pdpte_is_bad(u64::from_le_bytes(entry))) {
            return false;
        }
        for (&entry, field) in entries.iter().zip(PDPTES) {
            core.vmwrite(field, u64::from_le_bytes(entry));
        }
        true
    }

    /// Debug registers are always the guest's. The exit comes before the processor's own checks of privilege, CR4.DE and
    /// DR7.GD ("Instructions That Cause VM Exits Conditionally").
    pub(super) fn debug_register_exit(&mut self) -> Next {
        let q = self.processor.core.vmx.exit.qualification;
        let register = (q & 7) as usize;
        let slot = (q >> 8 & 15) as usize;
        let core = &mut self.processor.core;
        if core.cpl() != 0 {
            self.queue_gp();
            return Next::Resume;
        }
        if matches!(register, 4 | 5) && core.cr4 & cr4::DE != 0 {
            self.queue_ud();
            return Next::Resume;
        }
        if core.dr[7] & dr7::GD != 0 {
            self.queue_db(dr6::BD);
            return Next::Resume;
        }
        // DR4 and DR5 are DR6 and DR7.
        let register = if matches!(register, 4 | 5) { register + 2 } else { register };
        if q & 1 << 4 != 0 {
            core.gpr[slot] = core.dr[register];
            return self.skip();
        }
        let value = core.gpr[slot];
        match register {
            6 | 7 if value >> 32 != 0 => {
                self.queue_gp();
                return Next::Resume;
            }
            6 => core.dr[6] = value & 0xe00f | 0xffff_0ff0,
            7 => core.vmwrite(Field::GuestDr7, value & 0xffff_2bff | 0x400),
            _ => core.dr[register] = value,
        }
        self.skip()
    }
}
