//! Who may use a port ("I/O Permission Bit Map").

use x86_defs::segment::index;

use crate::core::mode::Operating;
use crate::exec::far::iret::iopl;
use crate::exec::segment::descriptor::wrap;
use crate::{Core, Leave};

/// #GP(0) where neither IOPL nor the bit map in the TSS allows `bytes` at `port`.
pub(super) fn check(core: &mut Core, port: u16, bytes: u8) -> Result<(), Leave> {
    let by_iopl = match core.mode.operating {
        Operating::Real => true,
        Operating::Virtual8086 => false,
        _ => core.mode.cpl <= iopl(core),
    };
    if by_iopl { Ok(()) } else { bit_map(core, port, bytes) }
}

fn bit_map(core: &mut Core, port: u16, bytes: u8) -> Result<(), Leave> {
    /// Offset of the I/O map base in 32-bit and 64-bit TSSs.
    const MAP_BASE: u64 = 102;
    let tr = core.seg[index::TR];
    // Types 9 and 11; a 16-bit TSS has no map.
    let has_map = !tr.unusable() && tr.rights & 0xd == 9;
    let limit = u64::from(tr.limit);
    if !has_map || limit < MAP_BASE + 1 {
        return Err(core.gp0());
    }
    let map: u16 = core.load_system(wrap(core, tr.base.wrapping_add(MAP_BASE)))?;
    let at = u64::from(map) + u64::from(port >> 3);
    // Two bytes are read, whatever the port.
    if at + 1 > limit {
        return Err(core.gp0());
    }
    let bits: u16 = core.load_system(wrap(core, tr.base.wrapping_add(at)))?;
    let mask = ((1_u32 << bytes) - 1) << (port & 7);
    if u32::from(bits) & mask != 0 { Err(core.gp0()) } else { Ok(()) }
}
