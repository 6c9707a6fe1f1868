//! What saves.

use silicon_float::Mxcsr;
use x86_defs::vmx::ExitReason;

use super::{
    COMPACTED, EXTENDED, HEADER, Image, accessed, area, place, requested, usable, usable_by_supervisor,
    vector_registers,
};
use crate::mem::AccessKind;
use crate::model::xstate::{COMPONENTS, Component, LARGEST, compacted, component};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// XSAVE, XSAVE64 (`WIDE`: 64-bit instruction and data pointers).
pub fn xsave<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    usable(core)?;
    let components = requested(core) & core.xcr0;
    standard::<WIDE>(core, op, components, components)
}

/// XSAVEOPT, XSAVEOPT64: what is not in use is not written.
pub fn xsaveopt<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    usable(core)?;
    let components = requested(core) & core.xcr0;
    let saved = components & core.xinuse();
    standard::<WIDE>(core, op, components, saved)
}

/// XSAVEC, XSAVEC64.
pub fn xsavec<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    usable(core)?;
    let components = requested(core) & core.xcr0;
    compact::<WIDE>(core, op, components)
}

/// XSAVES, XSAVES64. `imm`: instruction information of the VM-exit.
pub fn xsaves<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    usable_by_supervisor(core, op, ExitReason::Xsaves)?;
    let components = requested(core) & (core.xcr0 | core.msrs.xss);
    compact::<WIDE>(core, op, components)
}

/// The standard format: `saved` of the requested `components` are written, the header tells of all of them and keeps
/// what it says of others.
fn standard<const WIDE: bool>(core: &mut Core, op: &Op, components: u64, saved: u64) -> Done {
    let mut writes = Writes::new();
    let mxcsr = components & (component::SSE | component::AVX) != 0;
    writes.legacy::<WIDE>(core, saved, mxcsr);
    // XSTATE_BV alone; XCOMP_BV and the rest of the header stay.
    writes.add(HEADER, 8);
    for c in COMPONENTS.iter().filter(|c| saved & c.bit() != 0) {
        writes.extended(core, c, c.offset.into());
    }
    let linear = area(core, op, writes.end(), AccessKind::Write)?;
    writes.check(core, linear, op.seg)?;
    let at = place(core, linear, HEADER);
    let old: u64 = core.load_linear(at, op.seg)?;
    let new = old & !components | core.xinuse() & components;
    writes.image[HEADER..HEADER + 8].copy_from_slice(&new.to_le_bytes());
    writes.store(core, linear, op.seg)
}

/// The compacted format of `components`: those in use are written.
fn compact<const WIDE: bool>(core: &mut Core, op: &Op, components: u64) -> Done {
    let saved = components & core.xinuse_with_mxcsr();
    let mut writes = Writes::new();
    writes.legacy::<WIDE>(core, saved, saved & component::SSE != 0);
    writes.add(HEADER, 16);
    for (c, at) in compacted(components).filter(|(c, _)| saved & c.bit() != 0) {
        writes.extended(core, c, at);
    }
    writes.image[HEADER..HEADER + 8].copy_from_slice(&saved.to_le_bytes());
    writes.image[HEADER + 8..HEADER + 16].copy_from_slice(&(components | COMPACTED).to_le_bytes());
    let linear = area(core, op, writes.end(), AccessKind::Write)?;
    writes.check(core, linear, op.seg)?;
    writes.store(core, linear, op.seg)
}

/// What will be written: ranges of an image of the area. Each starts and ends at a multiple of 8.
struct Writes {
    image: Image,
    ranges: [(usize, usize); 5 + COMPONENTS.len()],
    count: usize,
}

impl Writes {
    fn new() -> Self {
        Self { image: [0; LARGEST], ranges: [(0, 0); 5 + COMPONENTS.len()], count: 0 }
    }

    fn add(&mut self, at: usize, bytes: usize) {
        self.ranges[self.count] = (at, at + bytes);
        self.count += 1;
    }

    /// The legacy region, with MXCSR or without.
    fn legacy<const WIDE: bool>(&mut self, core: &Core, saved: u64, mxcsr: bool) {
        if saved & (component::X87 | component::SSE) != 0 {
            let image = core.fpu_image::<WIDE>();
            self.image[..image.len()].copy_from_slice(&image);
        }
        if saved & component::X87 != 0 {
            self.add(0, 24);
            self.add(32, 128);
        }
        if mxcsr {
            self.image[24..28].copy_from_slice(&core.fpu.mxcsr.to_le_bytes());
            self.image[28..32].copy_from_slice(&Mxcsr::WRITABLE.to_le_bytes());
            self.add(24, 8);
        }
        if saved & component::SSE != 0 {
            self.add(160, 16 * vector_registers(core));
        }
    }

    /// A component of the extended region.
    fn extended(&mut self, core: &Core, c: &Component, at: usize) {
        let bytes = accessed(core, c);
        match c.bit() {
            component::AVX => {
                for (out, high) in self.image[at..at + bytes].chunks_exact_mut(16).zip(&core.fpu.ymm_high) {
                    out.copy_from_slice(&high.to_le_bytes());
                }
            }
            component::PKRU => self.image[at..at + 4].copy_from_slice(&core.pkru.to_le_bytes()),
            _ => {}
        }
        self.add(at, bytes);
    }

    fn ranges(&self) -> &[(usize, usize)] {
        &self.ranges[..self.count]
    }

    /// Bytes from the start of the area to the end of what is written, the header at least.
    fn end(&self) -> usize {
        self.ranges().iter().map(|&(_, end)| end).fold(EXTENDED, usize::max)
    }

    /// Fails if a store would fail: nothing may be written then.
    fn check(&self, core: &mut Core, linear: u64, seg: u8) -> Result<(), Leave> {
        for &(start, end) in self.ranges() {
            for at in [start, end - 1] {
                let linear = place(core, linear, at);
                core.span(linear, AccessKind::Write, seg)?;
            }
        }
        Ok(())
    }

    fn store(&self, core: &mut Core, linear: u64, seg: u8) -> Done {
        for &(start, end) in self.ranges() {
            let mut at = start;
            while at < end {
                let linear = place(core, linear, at);
                match self.image[at..end].first_chunk::<16>() {
                    Some(chunk) if at & 15 == 0 => {
                        core.store_linear(linear, seg, u128::from_le_bytes(*chunk))?;
                        at += 16;
                    }
                    _ => {
                        core.store_linear(linear, seg, word(&self.image, at))?;
                        at += 8;
                    }
                }
            }
        }
        Ok(())
    }
}

fn word(image: &[u8], at: usize) -> u64 {
    image[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
