//! Segment descriptors and where they come from ("Segment Descriptors", "System Descriptor Types").

use x86_defs::exception::vector;
use x86_defs::segment::{index, rights};

use crate::core::SegmentRegister;
use crate::{Core, Leave};

/// The eight bytes of a descriptor, or the lower eight of a 16-byte one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor(pub u64);

/// Types of system descriptors.
pub mod system_type {
    pub const TSS16_AVAILABLE: u8 = 1;
    pub const LDT: u8 = 2;
    pub const TSS16_BUSY: u8 = 3;
    pub const CALL_GATE16: u8 = 4;
    pub const TASK_GATE: u8 = 5;
    /// 32-bit TSS; 64-bit TSS in IA-32e mode.
    pub const TSS_AVAILABLE: u8 = 9;
    pub const TSS_BUSY: u8 = 11;
    /// 32-bit call gate; 64-bit call gate in IA-32e mode.
    pub const CALL_GATE: u8 = 12;
}

impl Descriptor {
    #[must_use]
    pub const fn base(self) -> u64 {
        (self.0 >> 16 & 0xff_ffff) | (self.0 >> 32 & 0xff00_0000)
    }

    /// In bytes, granularity applied.
    #[must_use]
    pub const fn limit(self) -> u32 {
        let raw = ((self.0 & 0xffff) | (self.0 >> 32 & 0xf_0000)) as u32;
        if self.rights() & rights::G != 0 { raw << 12 | 0xfff } else { raw }
    }

    /// Access rights as in [`rights`].
    #[must_use]
    pub const fn rights(self) -> u32 {
        (self.0 >> 40) as u32 & 0xf0ff
    }

    #[must_use]
    pub const fn has(self, bits: u32) -> bool {
        self.rights() & bits == bits
    }

    #[must_use]
    pub const fn present(self) -> bool {
        self.has(rights::P)
    }

    #[must_use]
    pub const fn dpl(self) -> u8 {
        (self.rights() >> rights::DPL_SHIFT) as u8 & 3
    }

    #[must_use]
    pub const fn is_code(self) -> bool {
        self.has(rights::S | rights::CODE)
    }

    #[must_use]
    pub const fn is_conforming(self) -> bool {
        self.has(rights::S | rights::CODE | rights::CONFORMING)
    }

    #[must_use]
    pub const fn is_writable_data(self) -> bool {
        self.has(rights::S | rights::WRITABLE) && !self.has(rights::CODE)
    }

    /// Data, or code that may be read.
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.has(rights::S) && (!self.has(rights::CODE) || self.has(rights::READABLE))
    }

    /// The type of a system descriptor, `None` for code and data.
    #[must_use]
    pub const fn system_type(self) -> Option<u8> {
        if self.has(rights::S) { None } else { Some((self.rights() & rights::TYPE) as u8) }
    }

    #[must_use]
    pub const fn gate_selector(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Offset bits 31:0 of a gate.
    #[must_use]
    pub const fn gate_offset(self) -> u64 {
        (self.0 & 0xffff) | (self.0 >> 32 & 0xffff_0000)
    }

    /// Bits 4:0 of byte 4: parameter count of a call gate, interrupt stack table index of an IA-32e gate.
    #[must_use]
    pub const fn gate_low_bits(self) -> u8 {
        (self.0 >> 32) as u8 & 0x1f
    }

    /// The segment register that this descriptor makes, with the accessed bit.
    #[must_use]
    pub const fn segment(self, selector: u16) -> SegmentRegister {
        let accessed = if self.has(rights::S) { rights::ACCESSED } else { 0 };
        SegmentRegister { selector, base: self.base(), limit: self.limit(), rights: self.rights() | accessed }
    }
}

/// A descriptor and its linear address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    pub descriptor: Descriptor,
    pub linear: u64,
}

/// Whether `selector` is one of the four null selectors.
#[must_use]
pub const fn is_null(selector: u16) -> bool {
    selector & !3 == 0
}

/// Error code that names `selector`.
#[must_use]
pub const fn error(selector: u16) -> u32 {
    (selector & !3) as u32
}

/// Requested privilege level.
#[must_use]
pub const fn rpl(selector: u16) -> u8 {
    selector as u8 & 3
}

/// Whether bits 63:47 (63:56 with LA57) of `address` are all equal.
#[must_use]
pub fn canonical(core: &Core, address: u64) -> bool {
    core.is_canonical(address)
}

/// #GP(selector).
pub fn gp(core: &mut Core, selector: u16) -> Leave {
    core.raise_code(vector::GP, error(selector))
}

/// #NP(selector).
pub fn np(core: &mut Core, selector: u16) -> Leave {
    core.raise_code(vector::NP, error(selector))
}

/// #SS(selector).
pub fn ss(core: &mut Core, selector: u16) -> Leave {
    core.raise_code(vector::SS, error(selector))
}

/// #TS(selector).
pub fn ts(core: &mut Core, selector: u16) -> Leave {
    core.raise_code(vector::TS, error(selector))
}

fn table(core: &Core, selector: u16) -> Option<(u64, u64)> {
    if selector & 4 == 0 {
        return Some((core.gdtr.base, u64::from(core.gdtr.limit)));
    }
    let ldtr = &core.seg[index::LDTR];
    (!ldtr.unusable()).then_some((ldtr.base, u64::from(ldtr.limit)))
}

/// The descriptor that `selector` names in the GDT or LDT; `None` where it is beyond the table.
///
/// # Errors
/// The table cannot be read.
pub fn find(core: &mut Core, selector: u16) -> Result<Option<Located>, Leave> {
    let Some((base, limit)) = table(core, selector) else { return Ok(None) };
    if u64::from(selector | 7) > limit {
        return Ok(None);
    }
    let linear = wrap(core, base.wrapping_add(u64::from(selector & !7)));
    Ok(Some(Located { descriptor: Descriptor(core.load_system(linear)?), linear }))
}

/// Like [`find`], with #GP(selector) where it is beyond the table.
///
/// # Errors
/// The table cannot be read, or #GP.
pub fn require(core: &mut Core, selector: u16) -> Result<Located, Leave> {
    match find(core, selector)? {
        Some(located) => Ok(located),
        None => Err(gp(core, selector)),
    }
}

/// The upper eight bytes of the 16-byte system descriptor that `selector` names (IA-32e mode).
///
/// # Errors
/// The table cannot be read; #GP(selector) where they are beyond the table, or are not those of a system descriptor.
pub fn require_high(core: &mut Core, selector: u16) -> Result<u64, Leave> {
    let Some((base, limit)) = table(core, selector) else { return Err(gp(core, selector)) };
    let offset = u64::from(selector & !7) + 8;
    if offset + 7 > limit {
        return Err(gp(core, selector));
    }
    let high: u64 = core.load_system(base.wrapping_add(offset))?;
    // Type field of what would be the next descriptor: must be zero.
    if high >> 40 & 0x1f != 0 { Err(gp(core, selector)) } else { Ok(high) }
}

/// Sets the accessed bit in memory where it is clear.
///
/// # Errors
/// The table cannot be written.
pub fn mark_accessed(core: &mut Core, located: Located) -> Result<(), Leave> {
    if located.descriptor.has(rights::S) && !located.descriptor.has(rights::ACCESSED) {
        core.store_system(wrap(core, located.linear.wrapping_add(5)), (located.descriptor.0 >> 40) as u8 | 1)?;
    }
    Ok(())
}

/// Linear addresses of system structures have 32 bits outside of IA-32e mode.
#[must_use]
pub fn wrap(core: &Core, linear: u64) -> u64 {
    if core.mode.is_ia32e() { linear } else { linear & 0xffff_ffff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_code_descriptor_has_base_zero_and_a_limit_of_4_gib() {
        let d = Descriptor(0x00cf_9b00_0000_ffff);
        assert_eq!((d.base(), d.limit(), d.rights()), (0, 0xffff_ffff, 0xc09b));
        assert!(d.is_code() && d.is_readable() && d.present() && !d.is_conforming() && !d.is_writable_data());
        assert_eq!(d.dpl(), 0);
    }

    #[test]
    fn scattered_base_and_limit_are_put_together() {
        let d = Descriptor(0x1245_f234_5678_9abc);
        assert_eq!(d.base(), 0x1234_5678);
        assert_eq!(d.limit(), 0x5_9abc);
        assert_eq!(d.dpl(), 3);
        let page_granular = Descriptor(d.0 | 1 << 55);
        assert_eq!(page_granular.limit(), 0x59ab_cfff);
    }

    #[test]
    fn a_data_descriptor_becomes_an_accessed_segment() {
        let s = Descriptor(0x00cf_9200_0000_ffff).segment(0x10);
        assert_eq!(s.rights, 0xc093);
        assert_eq!(s.selector, 0x10);
    }

    #[test]
    fn gate_fields_are_read_from_their_places() {
        let d = Descriptor(0x8123_ee05_0010_4567);
        assert_eq!(d.system_type(), Some(14));
        assert_eq!((d.gate_selector(), d.gate_offset(), d.gate_low_bits(), d.dpl()), (0x10, 0x8123_4567, 5, 3));
    }
}
