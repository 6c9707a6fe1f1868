//! Extended page tables ("The Extended Page Table Mechanism (EPT)").

use silicon_memory::{Frame, HostPhysical};
use x86_defs::vmx::controls::secondary;

use super::AccessKind;
use super::nested::Nested;
use crate::core::Core;
use crate::cost;
use crate::vmx::PageLog;

/// Rights that EPT gives.
pub mod right {
    pub const READ: u8 = 1 << 0;
    pub const WRITE: u8 = 1 << 1;
    /// Fetches from supervisor-mode linear addresses.
    pub const EXECUTE: u8 = 1 << 2;
    /// Fetches from user-mode linear addresses; as [`EXECUTE`] without mode-based execute control.
    pub const USER_EXECUTE: u8 = 1 << 3;
}

/// Why an access to a guest-physical address did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EptFailure {
    /// Not present, or the access is not allowed; the rights that the tables give.
    Violation { allowed: u8 },
    /// An entry has a reserved or contradictory setting.
    Misconfiguration,
    /// The page would have to be logged as modified, and the log is full.
    LogFull,
}

const READ: u64 = 1;
const WRITE: u64 = 2;
const ALL: u64 = 7;
const LARGE: u64 = 1 << 7;
const ACCESSED: u64 = 1 << 8;
const DIRTY: u64 = 1 << 9;
const USER_EXECUTE: u64 = 1 << 10;
/// Of the EPT pointer: the processor sets accessed and dirty flags.
const FLAGS_ENABLED: u64 = 1 << 6;
const LEVELS: usize = 4;

impl AccessKind {
    /// The rights that an access to a page needs: one of user-mode or of supervisor-mode addresses.
    pub(super) fn ept_need(self, user_page: bool) -> u8 {
        match self {
            Self::Read => right::READ,
            Self::Write => right::WRITE,
            Self::Fetch if user_page => right::USER_EXECUTE,
            Self::Fetch => right::EXECUTE,
        }
    }
}

/// Rights of one entry.
fn rights(entry: u64, mode_based: bool) -> u8 {
    let low = (entry & ALL) as u8;
    let user = if mode_based { entry & USER_EXECUTE != 0 } else { low & right::EXECUTE != 0 };
    low | if user { right::USER_EXECUTE } else { 0 }
}

/// Whether a present entry has a setting that does not exist ("EPT Misconfigurations").
fn misconfigured(entry: u64, level: u32, leaf: bool, physical: u64) -> bool {
    let shift = 12 + 9 * level;
    let above = !physical & ((1 << 52) - 1) & !0xfff;
    let reserved = match (leaf, level) {
        (true, _) => ((1_u64 << shift) - 1) & !0xfff,
        (false, 3) => 0xf8,
        (false, _) => 0x78,
    };
    entry & (READ | WRITE) == WRITE || entry & (above | reserved) != 0 || (leaf && matches!(entry >> 3 & 7, 2 | 3 | 7))
}

impl Core {
    /// Translates a guest-physical address for an access that needs the rights `need`.
    pub(super) fn ept_translate(&mut self, guest: u64, need: u8) -> Result<Nested, EptFailure> {
        let eptp = self.vmx.controls.eptp;
        if eptp == 0 {
            return Ok(Nested { host: guest & !0xfff, allowed: 0xf, dirty: true, large: true });
        }
        let context = self.mmu.ept.0;
        if let Some(hit) = self.mmu.nested.lookup(guest, context)
            && hit.serves(need)
        {
            self.mmu.count.nested_hits += 1;
            return Ok(hit);
        }
        let walked = self.ept_walk(guest, eptp, need);
        match walked {
            Ok(nested) => self.mmu.nested.insert(guest, context, nested),
            // An EPT violation voids what is cached for the address.
            Err(_) => self.mmu.nested.remove(guest, context),
        }
        walked
    }

    /// The rights that the walk needs of the guest's tables: with accessed and dirty flags for EPT, every use of them
    /// counts as a write ("Accessed and Dirty Flags for EPT").
    pub(super) fn ept_need_of_tables(&self) -> u8 {
        if self.vmx.controls.eptp & FLAGS_ENABLED != 0 { right::READ | right::WRITE } else { right::READ }
    }

    /// Whether EPT tells user-mode from supervisor-mode fetches.
    pub(super) fn mode_based_execute(&self) -> bool {
        self.vmx.controls.secondary & secondary::MODE_BASED_EXECUTE != 0
    }

    fn ept_walk(&mut self, guest: u64, eptp: u64, need: u8) -> Result<Nested, EptFailure> {
        let physical = self.model.physical_mask();
        if guest & !physical != 0 {
            return Err(EptFailure::Violation { allowed: 0 });
        }
        let mode_based = self.mode_based_execute();
        let present = if mode_based { ALL | USER_EXECUTE } else { ALL };
        let mut table = eptp & physical & !0xfff;
        let mut allowed = 0xf;
        let mut steps: [Option<(Frame, u64, u64)>; LEVELS] = [None; LEVELS];
        for level in (0..LEVELS as u32).rev() {
            let shift = 12 + 9 * level;
            let offset = (guest >> shift & 0x1ff) * 8;
            let Some((frame, _)) = self.memory.page(HostPhysical(table)) else {
                return Err(EptFailure::Misconfiguration);
            };
            let entry: u64 = frame.load(offset);
            self.mmu.count.ept_references += 1;
            self.stall += cost::WALK_REFERENCE;
            if entry & present == 0 {
                return Err(EptFailure::Violation { allowed: 0 });
            }
            let leaf = level == 0 || (level < 3 && entry & LARGE != 0);
            if misconfigured(entry, level, leaf, physical) {
                return Err(EptFailure::Misconfiguration);
            }
            allowed &= rights(entry, mode_based);
            steps[level as usize] = Some((frame, offset, entry));
            if leaf {
                if need & !allowed != 0 {
                    return Err(EptFailure::Violation { allowed });
                }
                let dirty = self.ept_flags(guest, eptp, need, level, &steps)?;
                let within = guest & ((1_u64 << shift) - 1) & !0xfff;
                let base = entry & physical & !((1_u64 << shift) - 1);
                return Ok(Nested { host: base | within, allowed, dirty, large: level > 0 });
            }
            table = entry & physical & !0xfff;
        }
        unreachable!("level 0 is a leaf")
    }

    /// Sets accessed and dirty flags of the entries used; whether the leaf needs none set for a store.
    fn ept_flags(
        &mut self,
        guest: u64,
        eptp: u64,
        need: u8,
        leaf: u32,
        steps: &[Option<(Frame, u64, u64)>],
    ) -> Result<bool, EptFailure> {
        if eptp & FLAGS_ENABLED == 0 {
            return Ok(true);
        }
        let mut dirty = false;
        for (level, step) in steps.iter().enumerate() {
            let &Some((frame, offset, entry)) = step else { continue };
            let mut want = ACCESSED;
            if level == leaf as usize {
                dirty = entry & DIRTY != 0;
                if need & right::WRITE != 0 && !dirty {
                    // The log is written before the flag is set ("Page-Modification Logging").
                    if self.log_modified_page(guest) == PageLog::Full {
                        return Err(EptFailure::LogFull);
                    }
                    dirty = true;
                    want |= DIRTY;
                }
            }
            if entry & want != want {
                frame.store(offset, entry | want);
            }
        }
        Ok(dirty)
    }
}
