use x86_defs::segment::{index, rights};
use x86_defs::{
    control::{cr0, cr4, efer},
    rflags,
};

use crate::op::CodeSize;
use crate::{Core, Leave};

/// Operating mode ("Modes of Operation").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operating {
    Real,
    Virtual8086,
    Protected,
    /// IA-32e mode, CS.L = 0.
    Compatibility,
    /// IA-32e mode, CS.L = 1.
    Long64,
}

/// What the control registers, CS, SS and RFLAGS amount to; derived, never set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub operating: Operating,
    pub code: CodeSize,
    /// Mask of the stack pointer: 16, 32 or 64 bits.
    pub stack_mask: u64,
    /// Mask of RIP.
    pub rip_mask: u64,
    pub cpl: u8,
    /// Row of the TLB's permission bits: 0 user, 1 supervisor, 2 supervisor that may touch user pages (SMAP off, or
    /// AC set).
    pub privilege: u8,
    /// Tells apart decoded blocks of the same bytes.
    pub key: u8,
    /// No SSE instruction raises #UD or #NM: CR0.EM and CR0.TS are clear, CR4.OSFXSR is set.
    pub sse_usable: bool,
    /// No VEX-encoded vector instruction raises #UD or #NM: protected mode, CR4.OSXSAVE and XCR0 bits 1 and 2 are set,
    /// CR0.TS is clear.
    pub avx_usable: bool,
    /// No x87 or MMX instruction raises #UD or #NM: CR0.EM and CR0.TS are clear.
    pub x87_usable: bool,
}

impl Default for Mode {
    fn default() -> Self {
        Self {
            operating: Operating::Real,
            code: CodeSize::Bits16,
            stack_mask: 0xffff,
            rip_mask: 0xffff_ffff,
            cpl: 0,
            privilege: 2,
            key: 0,
            sse_usable: false,
            avx_usable: false,
            x87_usable: true,
        }
    }
}

impl Mode {
    /// Whether the processor is in 64-bit mode.
    #[inline(always)]
    #[must_use]
    pub fn is_64(&self) -> bool {
        matches!(self.operating, Operating::Long64)
    }

    /// Whether the processor is in IA-32e mode.
    #[must_use]
    pub fn is_ia32e(&self) -> bool {
        matches!(self.operating, Operating::Long64 | Operating::Compatibility)
    }
}

impl Core {
    /// Recomputes [`Core::mode`]. Must be called after any change of CR0, CR4, EFER, XCR0, CS, SS, or RFLAGS.VM and AC.
    pub fn update_mode(&mut self) {
        let cs = &self.seg[index::CS];
        let operating = if self.cr0 & cr0::PE == 0 {
            Operating::Real
        } else if self.rflags_rest & rflags::VM != 0 {
            Operating::Virtual8086
        } else if self.efer & efer::LMA == 0 {
            Operating::Protected
        } else if cs.has(rights::L) {
            Operating::Long64
        } else {
            Operating::Compatibility
        };
        let code = if operating == Operating::Long64 {
            CodeSize::Bits64
        } else if cs.has(rights::DB) {
            CodeSize::Bits32
        } else {
            CodeSize::Bits16
        };
        let cpl = match operating {
            Operating::Real => 0,
            Operating::Virtual8086 => 3,
            _ => self.seg[index::SS].dpl(),
        };
        let privilege = if cpl == 3 {
            0
        } else if self.cr4 & cr4::SMAP != 0 && self.rflags_rest & rflags::AC == 0 {
            1
        } else {
            2
        };
        let stack_mask = match code {
            CodeSize::Bits64 => u64::MAX,
            _ if self.seg[index::SS].has(rights::DB) => 0xffff_ffff,
            _ => 0xffff,
        };
        let x87_usable = self.cr0 & (cr0::EM | cr0::TS) == 0;
        self.mode = Mode {
            operating,
            code,
            stack_mask,
            rip_mask: if code == CodeSize::Bits64 { u64::MAX } else { 0xffff_ffff },
            cpl,
            privilege,
            key: code as u8,
            sse_usable: x87_usable && self.cr4 & cr4::OSFXSR != 0,
            avx_usable: self.avx_enabled() && self.cr0 & cr0::TS == 0,
            x87_usable,
        };
        self.mmu.set_privilege(privilege);
        if cpl == 3 && self.cr0 & cr0::AM != 0 && self.rflags_rest & rflags::AC != 0 {
            self.mmu.check_alignment();
        }
        self.update_keys();
        self.mmu.leave_page();
    }
}

impl Core {
    /// Sets XCR0 to a value that [`crate::model::Model::xcr0_is_valid`] allows.
    pub fn set_xcr0(&mut self, value: u64) {
        self.xcr0 = value;
        self.update_mode();
    }

    /// Whether VEX-encoded vector instructions exist now: otherwise they are #UD, whatever CR0.TS is.
    #[must_use]
    pub fn avx_enabled(&self) -> bool {
        const SSE_AND_AVX: u64 = 0b110;
        self.cr0 & cr0::PE != 0
            && self.rflags_rest & rflags::VM == 0
            && self.cr4 & cr4::OSXSAVE != 0
            && self.xcr0 & SSE_AND_AVX == SSE_AND_AVX
    }

    /// Linear address of the instruction at [`Core::rip`].
    #[inline(always)]
    #[must_use]
    pub fn rip_linear(&self) -> u64 {
        if self.mode.is_64() { self.rip } else { self.seg[index::CS].base.wrapping_add(self.rip) & 0xffff_ffff }
    }

    /// First byte of the page after the one that holds `linear`.
    #[must_use]
    pub fn next_page(&self, linear: u64) -> u64 {
        let next = (linear | 0xfff).wrapping_add(1);
        if self.mode.is_64() { next } else { next & 0xffff_ffff }
    }

    /// Fails when RIP is beyond the limit of CS.
    #[inline(always)]
    pub fn check_fetch_limit(&mut self) -> Result<(), Leave> {
        if !self.mode.is_64() && self.rip > u64::from(self.seg[index::CS].limit) {
            return Err(self.gp0());
        }
        Ok(())
    }
}
