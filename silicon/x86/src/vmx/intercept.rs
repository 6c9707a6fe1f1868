//! Which instructions and events of the guest cause VM-exits ("Instructions That Cause VM Exits Conditionally",
//! "Other Causes of VM Exits").

use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::vmx::controls::primary;

use crate::Core;

/// RDMSR or WRMSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

impl Core {
    /// Whether RDMSR or WRMSR of `msr` exits ("MSR-Bitmap Address").
    #[must_use]
    pub fn msr_exits(&self, msr: u32, direction: Direction) -> bool {
        let _ = (msr, direction);
        self.vmx.controls.primary & primary::USE_MSR_BITMAPS == 0
    }

    /// Whether an access of `size` bytes to I/O ports from `port` exits ("I/O-Bitmap Addresses").
    #[must_use]
    pub fn io_exits(&self, port: u16, size: u8) -> bool {
        let _ = (port, size);
        self.vmx.controls.primary & (primary::UNCONDITIONAL_IO_EXITING | primary::USE_IO_BITMAPS) != 0
    }

    /// Whether an exception exits ("Exception Bitmap"); for a page fault the error code decides too.
    #[must_use]
    pub fn exception_exits(&self, vector: u8, error_code: u32) -> bool {
        let c = &self.vmx.controls;
        let in_bitmap = c.exception_bitmap >> (vector & 31) & 1 != 0;
        if vector == vector::PF {
            in_bitmap == (error_code & c.page_fault_error_mask == c.page_fault_error_match)
        } else {
            in_bitmap
        }
    }

    /// What the guest reads from CR0 ("Guest/Host Masks and Read Shadows for CR0 and CR4").
    #[must_use]
    pub fn cr0_visible(&self) -> u64 {
        let c = &self.vmx.controls;
        (self.cr0 & !c.cr0_mask) | (c.cr0_shadow & c.cr0_mask)
    }

    /// What the guest reads from CR4.
    #[must_use]
    pub fn cr4_visible(&self) -> u64 {
        let c = &self.vmx.controls;
        (self.cr4 & !c.cr4_mask) | (c.cr4_shadow & c.cr4_mask)
    }

    /// Whether MOV to CR0 of `value` exits.
    #[must_use]
    pub fn cr0_write_exits(&self, value: u64) -> bool {
        let c = &self.vmx.controls;
        (value ^ c.cr0_shadow) & c.cr0_mask != 0
    }

    /// What CR0 becomes by a MOV of `value` that does not exit: bits of the host's stay.
    #[must_use]
    pub fn cr0_merged(&self, value: u64) -> u64 {
        let mask = self.vmx.controls.cr0_mask;
        (value & !mask) | (self.cr0 & mask)
    }

    /// Whether MOV to CR4 of `value` exits.
    #[must_use]
    pub fn cr4_write_exits(&self, value: u64) -> bool {
        let c = &self.vmx.controls;
        (value ^ c.cr4_shadow) & c.cr4_mask != 0
    }

    /// What CR4 becomes by a MOV of `value` that does not exit.
    #[must_use]
    pub fn cr4_merged(&self, value: u64) -> u64 {
        let mask = self.vmx.controls.cr4_mask;
        (value & !mask) | (self.cr4 & mask)
    }

    /// Whether CLTS exits: the host owns CR0.TS and shows it set.
    #[must_use]
    pub fn clts_exits(&self) -> bool {
        let c = &self.vmx.controls;
        c.cr0_mask & c.cr0_shadow & cr0::TS != 0
    }

    /// Whether LMSW of `source` exits. LMSW never clears PE.
    #[must_use]
    pub fn lmsw_exits(&self, source: u16) -> bool {
        let c = &self.vmx.controls;
        let source = u64::from(source);
        let sets_pe = c.cr0_mask & cr0::PE != 0 && source & cr0::PE != 0 && c.cr0_shadow & cr0::PE == 0;
        let rest = c.cr0_mask & (cr0::MP | cr0::EM | cr0::TS);
        sets_pe || (source ^ c.cr0_shadow) & rest != 0
    }

    /// Whether MOV to CR3 of `value` exits ("CR3-Target Controls").
    #[must_use]
    pub fn cr3_load_exits(&self, value: u64) -> bool {
        let _ = value;
        self.vmx.controls.primary & primary::CR3_LOAD_EXITING != 0
    }

    /// Whether PAUSE exits at `now_tsc` (host TSC), by PAUSE exiting or pause-loop exiting.
    pub fn pause_exits(&mut self, now_tsc: u64) -> bool {
        let _ = now_tsc;
        self.vmx.controls.primary & primary::PAUSE_EXITING != 0
    }
}
