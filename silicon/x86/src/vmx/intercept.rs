//! Which instructions and events of the guest cause VM-exits ("Instructions That Cause VM Exits Conditionally",
//! "Other Causes of VM Exits").

use silicon_memory::{Frame, HostPhysical, PhysicalMemory};
use x86_defs::control::cr0;
use x86_defs::exception::vector;
use x86_defs::vmx::Field;
use x86_defs::vmx::controls::{primary, secondary};

use super::Vmcs;
use crate::Core;

/// RDMSR or WRMSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// The intercept bitmaps in memory, found at VM-entry. A page without memory reads as ones: everything exits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bitmaps {
    msr: Option<Frame>,
    io: [Option<Frame>; 2],
}

impl Bitmaps {
    pub(super) fn find(vmcs: &Vmcs, primary: u32, memory: &PhysicalMemory) -> Self {
        let frame = |control, field| {
            (primary & control != 0)
                .then(|| memory.page(HostPhysical(vmcs.get(field))).map(|(frame, _)| frame))
                .flatten()
        };
        Self {
            msr: frame(primary::USE_MSR_BITMAPS, Field::MsrBitmaps),
            io: [frame(primary::USE_IO_BITMAPS, Field::IoBitmapA), frame(primary::USE_IO_BITMAPS, Field::IoBitmapB)],
        }
    }
}

fn bit(bitmap: Option<Frame>, number: u64) -> bool {
    bitmap.is_none_or(|frame| frame.load::<u8>(number >> 3) >> (number & 7) & 1 != 0)
}

/// Times of PAUSE instructions, in host TSC cycles ("PLE_Gap", "PLE_Window").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PauseLoop {
    first: u64,
    last: u64,
}

impl Core {
    /// Whether RDMSR or WRMSR of `msr` exits ("MSR-Bitmap Address").
    #[inline]
    #[must_use]
    pub fn msr_exits(&self, msr: u32, direction: Direction) -> bool {
        if self.vmx.controls.primary & primary::USE_MSR_BITMAPS == 0 {
            return true;
        }
        let half = match msr {
            0..=0x1fff => 0,
            0xc000_0000..=0xc000_1fff => 0x400,
            _ => return true,
        };
        let quarter = half + if direction == Direction::Write { 0x800 } else { 0 };
        bit(self.vmx.bitmaps.msr, quarter * 8 + u64::from(msr & 0x1fff))
    }

    /// Whether an access of `size` bytes to I/O ports from `port` exits ("I/O-Bitmap Addresses").
    #[inline]
    #[must_use]
    pub fn io_exits(&self, port: u16, size: u8) -> bool {
        let controls = self.vmx.controls.primary;
        if controls & primary::USE_IO_BITMAPS == 0 {
            return controls & primary::UNCONDITIONAL_IO_EXITING != 0;
        }
        // An access that wraps around the 16-bit port space exits.
        (u32::from(port)..u32::from(port) + u32::from(size))
            .any(|p| p > 0xffff || bit(self.vmx.bitmaps.io[(p >> 15) as usize & 1], u64::from(p & 0x7fff)))
    }

    /// Whether an exception exits ("Exception Bitmap"); for a page fault the error code decides too.
    #[inline]
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
    #[inline]
    #[must_use]
    pub fn cr0_visible(&self) -> u64 {
        let c = &self.vmx.controls;
        (self.cr0 & !c.cr0_mask) | (c.cr0_shadow & c.cr0_mask)
    }

    /// What the guest reads from CR4.
    #[inline]
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
        let c = &self.vmx.controls;
        let targets = &c.cr3_targets[..usize::from(c.cr3_target_count).min(4)];
        c.primary & primary::CR3_LOAD_EXITING != 0 && !targets.contains(&value)
    }

    /// Whether PAUSE exits now, by PAUSE exiting or pause-loop exiting; notes the time for the latter.
    pub fn pause_exits(&mut self) -> bool {
        let c = &self.vmx.controls;
        if c.primary & primary::PAUSE_EXITING != 0 {
            return true;
        }
        if c.secondary & secondary::PAUSE_LOOP_EXITING == 0 || self.mode.cpl != 0 {
            return false;
        }
        let now = self.host_tsc();
        self.pause_loop_exits_at(now)
    }

    /// Whether PAUSE at privilege level 0 and `now_tsc` (host TSC) ends a loop that has lasted too long.
    fn pause_loop_exits_at(&mut self, now_tsc: u64) -> bool {
        let c = &self.vmx.controls;
        let (gap, window) = (u64::from(c.ple_gap), u64::from(c.ple_window));
        let pauses = &mut self.vmx.pause_loop;
        let same_loop = pauses.last != 0 && now_tsc.wrapping_sub(pauses.last) <= gap;
        pauses.last = now_tsc;
        if !same_loop {
            pauses.first = now_tsc;
            return false;
        }
        now_tsc.wrapping_sub(pauses.first) > window
    }
}

impl super::Vmx {
    /// The pause loop that was watched ends with the VM-exit.
    pub(super) fn forget_pause_loop(&mut self) {
        self.pause_loop = PauseLoop::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmx::testing::{BITMAPS, guest};

    fn running(setup: impl FnOnce(&mut Core)) -> Core {
        let mut core = guest();
        setup(&mut core);
        let _ = core.vmlaunch().unwrap();
        core
    }

    fn with_primary(core: &mut Core, bits: u32) {
        let old = core.vmread(Field::PrimaryControls);
        core.vmwrite(Field::PrimaryControls, old | u64::from(bits));
    }

    #[test]
    fn without_a_bitmap_every_msr_exits() {
        let core = running(|_| {});
        assert!(core.msr_exits(0x10, Direction::Read) && core.msr_exits(0xc000_0080, Direction::Write));
    }

    #[test]
    fn each_quarter_of_the_msr_bitmap_answers_for_its_range_and_direction() {
        let core = running(|core| {
            with_primary(core, primary::USE_MSR_BITMAPS);
            core.vmwrite(Field::MsrBitmaps, BITMAPS);
            let (frame, _) = core.memory.page(HostPhysical(BITMAPS)).unwrap();
            frame.store(0x10 / 8, 1_u8 << (0x10 % 8));
            frame.store(0x400 + 0x80 / 8, 1_u8);
            frame.store(0x800 + 0x174 / 8, 1_u8 << (0x174 % 8));
            frame.store(0xc00 + 0x1fff / 8, 0x80_u8);
        });
        use Direction::{Read, Write};
        for (msr, direction, exits) in [
            (0x10, Read, true),
            (0x10, Write, false),
            (0x11, Read, false),
            (0xc000_0080, Read, true),
            (0xc000_0080, Write, false),
            (0x174, Write, true),
            (0x174, Read, false),
            (0xc000_1fff, Write, true),
            (0x2000, Read, true),
            (0xc000_2000, Read, true),
        ] {
            assert_eq!(core.msr_exits(msr, direction), exits, "{msr:#x} {direction:?}");
        }
    }

    #[test]
    fn io_bitmaps_a_and_b_cover_half_of_the_ports_each_and_a_wrap_exits() {
        let core = running(|core| {
            with_primary(core, primary::USE_IO_BITMAPS | primary::UNCONDITIONAL_IO_EXITING);
            core.vmwrite(Field::IoBitmapA, BITMAPS);
            core.vmwrite(Field::IoBitmapB, BITMAPS + 0x1000);
            core.memory.page(HostPhysical(BITMAPS)).unwrap().0.store(0x3f8 / 8, 1_u8);
            core.memory.page(HostPhysical(BITMAPS + 0x1000)).unwrap().0.store(0, 2_u8);
        });
        assert!(core.io_exits(0x3f8, 1));
        assert!(core.io_exits(0x3f6, 4), "a wide access exits if any of its ports does");
        assert!(!core.io_exits(0x3f9, 1));
        assert!(core.io_exits(0x8001, 1) && !core.io_exits(0x8000, 1));
        assert!(core.io_exits(0xffff, 2) && !core.io_exits(0xffff, 1));
    }

    #[test]
    fn a_bitmap_without_memory_reads_as_ones() {
        let core = running(|core| {
            with_primary(core, primary::USE_IO_BITMAPS | primary::USE_MSR_BITMAPS);
            core.vmwrite(Field::IoBitmapA, 0xff_0000_0000);
            core.vmwrite(Field::MsrBitmaps, 0xff_0000_0000);
        });
        assert!(core.io_exits(0x60, 1) && core.msr_exits(0x10, Direction::Read));
    }

    #[test]
    fn page_faults_exit_by_mask_and_match_of_the_error_code() {
        let mut core = running(|core| core.vmwrite(Field::ExceptionBitmap, 1 << vector::PF | 1 << vector::UD));
        core.vmx.controls.page_fault_error_mask = 0x1f;
        core.vmx.controls.page_fault_error_match = 0x5;
        assert!(core.exception_exits(vector::PF, 5) && !core.exception_exits(vector::PF, 7));
        core.vmx.controls.exception_bitmap = 0;
        assert!(!core.exception_exits(vector::PF, 5) && core.exception_exits(vector::PF, 7));
        assert!(!core.exception_exits(vector::UD, 0));
    }

    #[test]
    fn the_guest_sees_the_shadow_of_the_bits_that_the_host_owns() {
        let core = running(|core| {
            core.vmwrite(Field::Cr0Mask, cr0::TS | cr0::NE);
            core.vmwrite(Field::Cr0Shadow, cr0::TS);
        });
        assert_eq!(core.cr0_visible() & (cr0::TS | cr0::NE | cr0::PE), cr0::TS | cr0::PE);
        assert!(core.clts_exits());
        assert!(core.cr0_write_exits(cr0::PE) && !core.cr0_write_exits(cr0::PE | cr0::TS));
        assert_eq!(core.cr0_merged(0) & cr0::NE, cr0::NE, "the host's bit stays");
        assert!(core.lmsw_exits(0) && !core.lmsw_exits(cr0::TS as u16));
    }

    #[test]
    fn a_cr3_target_value_does_not_exit() {
        let core = running(|core| {
            with_primary(core, primary::CR3_LOAD_EXITING);
            core.vmwrite(Field::Cr3Target0, 0x5000);
            core.vmwrite(Field::Cr3Target1, 0x6000);
            core.vmwrite(Field::Cr3TargetCount, 1);
        });
        assert!(!core.cr3_load_exits(0x5000) && core.cr3_load_exits(0x6000));
    }

    #[test]
    fn a_tight_pause_loop_exits_after_its_window_and_a_slow_one_never() {
        let mut core = running(|core| {
            with_primary(core, primary::ACTIVATE_SECONDARY_CONTROLS);
            let old = core.vmread(Field::SecondaryControls);
            core.vmwrite(Field::SecondaryControls, old | u64::from(secondary::PAUSE_LOOP_EXITING));
            core.vmwrite(Field::PleGap, 128);
            core.vmwrite(Field::PleWindow, 1000);
        });
        let exits = (1..100).map(|i| i * 100).find(|&t| core.pause_loop_exits_at(10_000 + t));
        assert_eq!(exits, Some(1200), "first pause at 100, more than 1000 cycles later");
        assert!((1..100).all(|i| !core.pause_loop_exits_at(1_000_000 + i * 129)));
    }
}
