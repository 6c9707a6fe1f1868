//! What a TSS holds ("32-Bit Task-State Segment (TSS)", "16-Bit Task-State Segment (TSS)").

use x86_defs::segment::index;

use crate::exec::segment::descriptor::wrap;
use crate::mem::{Access, AccessKind};
use crate::{Core, Leave};

/// Format of a TSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Bits16,
    Bits32,
}

/// Offset of CR3 in a 32-bit TSS.
const CR3: u64 = 28;
/// Offset of the T flag in a 32-bit TSS.
const TRAP: u64 = 100;

impl Layout {
    /// The smallest limit that a TSS of this format may have.
    pub(super) const fn least_limit(self) -> u32 {
        match self {
            Self::Bits16 => 0x2b,
            Self::Bits32 => 0x67,
        }
    }

    /// Bytes of a register's slot.
    const fn slot(self) -> u64 {
        match self {
            Self::Bits16 => 2,
            Self::Bits32 => 4,
        }
    }

    /// Offset of EIP, after which EFLAGS, the eight general registers and the segment selectors follow, in this order
    /// and all of one slot.
    const fn eip(self) -> u64 {
        match self {
            Self::Bits16 => 14,
            Self::Bits32 => 32,
        }
    }

    /// ES, CS, SS, DS, and in the 32-bit format FS and GS.
    pub(super) const fn segments(self) -> usize {
        match self {
            Self::Bits16 => 4,
            Self::Bits32 => 6,
        }
    }

    const fn ldt(self) -> u64 {
        self.eip() + self.slot() * (10 + self.segments() as u64)
    }
}

/// The state that a task switch loads from a TSS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    /// `None` in the 16-bit format, which does not change it.
    pub cr3: Option<u32>,
    pub eip: u32,
    pub eflags: u32,
    pub gpr: [u32; 8],
    /// Selectors in the order of [`index`]. FS and GS are null after a switch by a 16-bit TSS.
    pub selectors: [u16; 6],
    pub ldt: u16,
    /// The T flag: a debug trap after the switch.
    pub trap: bool,
}

fn load(core: &mut Core, layout: Layout, at: u64) -> Result<u32, Leave> {
    let at = wrap(core, at);
    match layout {
        Layout::Bits16 => core.load_system::<u16>(at).map(u32::from),
        Layout::Bits32 => core.load_system::<u32>(at),
    }
}

fn store(core: &mut Core, layout: Layout, at: u64, value: u32) -> Result<(), Leave> {
    let at = wrap(core, at);
    match layout {
        Layout::Bits16 => core.store_system(at, value as u16),
        Layout::Bits32 => core.store_system(at, value),
    }
}

impl Image {
    /// Reads the TSS at `base`.
    pub(super) fn read(core: &mut Core, layout: Layout, base: u64) -> Result<Self, Leave> {
        let slot = layout.slot();
        let mut at = base + layout.eip();
        let mut next = |core: &mut Core| {
            let value = load(core, layout, at);
            at += slot;
            value
        };
        let mut image = Self { eip: next(core)?, eflags: next(core)?, ..Self::default() };
        for register in &mut image.gpr {
            *register = next(core)?;
        }
        for selector in &mut image.selectors[..layout.segments()] {
            *selector = next(core)? as u16;
        }
        image.ldt = next(core)? as u16;
        if layout == Layout::Bits32 {
            image.cr3 = Some(load(core, layout, base + CR3)?);
            image.trap = core.load_system::<u16>(wrap(core, base + TRAP))? & 1 != 0;
        }
        Ok(image)
    }

    /// What the running task leaves in its TSS, EIP and EFLAGS as given.
    pub(super) fn of(core: &Core, eip: u64, eflags: u64) -> Self {
        Self {
            eip: eip as u32,
            eflags: eflags as u32,
            gpr: std::array::from_fn(|i| core.gpr[i] as u32),
            selectors: std::array::from_fn(|i| core.seg[i].selector),
            ..Self::default()
        }
    }

    /// Writes what changes: not CR3, the LDT selector and the T flag.
    pub(super) fn write(&self, core: &mut Core, layout: Layout, base: u64) -> Result<(), Leave> {
        let mut at = base + layout.eip();
        let values = [self.eip, self.eflags].into_iter().chain(self.gpr);
        for value in values.chain(self.selectors.into_iter().map(u32::from).take(layout.segments())) {
            store(core, layout, at, value)?;
            at += layout.slot();
        }
        Ok(())
    }

    /// Fails as [`Image::write`] would, and stores nothing.
    pub(super) fn check_write(core: &mut Core, layout: Layout, base: u64) -> Result<(), Leave> {
        let first = base + layout.eip();
        let access = Access { kind: AccessKind::Write, user: false, implicit: true, segment: index::DS as u8 };
        let first = wrap(core, first);
        core.check_slow(first, base + layout.ldt() - first, access)
    }
}
