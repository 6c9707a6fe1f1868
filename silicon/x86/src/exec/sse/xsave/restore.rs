//! What restores.

use silicon_float::Mxcsr;
use silicon_float::x87::F80;
use x86_defs::vmx::ExitReason;

use super::{
    COMPACTED, EXTENDED, HEADER, Image, MXCSR_INITIAL, accessed, area, place, requested, usable, usable_by_supervisor,
    vector_registers,
};
use crate::mem::AccessKind;
use crate::model::Feature;
use crate::model::xstate::{COMPONENTS, LARGEST, compacted, component};
use crate::op::Done;
use crate::{Core, Leave, Op};

/// XRSTOR, XRSTOR64 (`WIDE`: 64-bit instruction and data pointers).
pub fn xrstor<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    usable(core)?;
    let linear = area(core, op, EXTENDED, AccessKind::Read)?;
    let header = Header::load(core, linear, op.seg)?;
    let enabled = core.xcr0;
    let valid = if header.xcomp_bv & COMPACTED == 0 {
        header.is_standard(enabled)
    } else {
        core.model.has(Feature::Xsavec) && header.is_compacted(enabled)
    };
    if !valid {
        return Err(core.gp0());
    }
    let components = requested(core) & enabled;
    restore::<WIDE>(core, op, components, &header)
}

/// XRSTORS, XRSTORS64. `imm`: instruction information of the VM-exit.
pub fn xrstors<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    usable_by_supervisor(core, op, ExitReason::Xrstors)?;
    let linear = area(core, op, EXTENDED, AccessKind::Read)?;
    let header = Header::load(core, linear, op.seg)?;
    let enabled = core.xcr0 | core.msrs.xss;
    if !header.is_compacted(enabled) {
        return Err(core.gp0());
    }
    let components = requested(core) & enabled;
    restore::<WIDE>(core, op, components, &header)
}

/// The header of an area ("XSAVE Header").
struct Header {
    xstate_bv: u64,
    xcomp_bv: u64,
    /// Bytes 23:16, which are zero in every format, and the rest, which is zero in the compacted one.
    third: u64,
    rest: u128,
}

impl Header {
    fn load(core: &mut Core, linear: u64, seg: u8) -> Result<Self, Leave> {
        let mut words = [0_u128; 4];
        for (i, word) in words.iter_mut().enumerate() {
            let at = place(core, linear, HEADER + 16 * i);
            *word = core.load_linear(at, seg)?;
        }
        let [bitmaps, more, a, b] = words;
        Ok(Self {
            xstate_bv: bitmaps as u64,
            xcomp_bv: (bitmaps >> 64) as u64,
            third: more as u64,
            rest: more >> 64 | a | b,
        })
    }

    /// Whether XRSTOR takes it in the standard format ("Standard Form of XRSTOR").
    fn is_standard(&self, enabled: u64) -> bool {
        self.xcomp_bv == 0 && self.third == 0 && self.xstate_bv & !enabled == 0
    }

    /// Whether XRSTOR and XRSTORS take it in the compacted format ("Compacted Form of XRSTOR").
    fn is_compacted(&self, enabled: u64) -> bool {
        let there = self.xcomp_bv & !COMPACTED;
        self.xcomp_bv & COMPACTED != 0
            && there & !enabled == 0
            && self.xstate_bv & !there == 0
            && self.third == 0
            && self.rest == 0
    }
}

/// Restores or initialises `components`. Everything is read before anything changes.
fn restore<const WIDE: bool>(core: &mut Core, op: &Op, components: u64, header: &Header) -> Done {
    let loaded = components & header.xstate_bv;
    let is_compacted = header.xcomp_bv & COMPACTED != 0;
    let mut image: Image = [0; LARGEST];
    let mut extended = [None; COMPONENTS.len()];
    let mut end = EXTENDED;
    if is_compacted {
        for (i, place) in compacted(header.xcomp_bv & !COMPACTED).enumerate() {
            extended[i] = Some(place);
        }
    } else {
        for (slot, c) in extended.iter_mut().zip(COMPONENTS) {
            *slot = Some((c, c.offset.into()));
        }
    }
    let extended = || extended.iter().flatten().filter(|(c, _)| loaded & c.bit() != 0);
    for &(c, at) in extended() {
        end = end.max(at + accessed(core, c));
    }
    let linear = area(core, op, end, AccessKind::Read)?;

    // The standard form takes MXCSR from memory for SSE and for AVX, whatever XSTATE_BV says; the compacted one treats
    // it as a part of SSE state.
    let mxcsr = if is_compacted { loaded & component::SSE } else { components & (component::SSE | component::AVX) };
    if loaded & component::X87 != 0 {
        fetch(core, linear, op.seg, &mut image, 0, 160)?;
    } else if mxcsr != 0 {
        fetch(core, linear, op.seg, &mut image, 16, 32)?;
    }
    if loaded & component::SSE != 0 {
        fetch(core, linear, op.seg, &mut image, 160, 160 + 16 * vector_registers(core))?;
    }
    for &(c, at) in extended() {
        let bytes = accessed(core, c);
        fetch(core, linear, op.seg, &mut image, at, at + bytes)?;
    }
    let new_mxcsr = if mxcsr != 0 {
        let value = vector(&image, 16) >> 64;
        Some(value as u32)
    } else if is_compacted && components & component::SSE != 0 {
        Some(MXCSR_INITIAL)
    } else {
        None
    };
    if new_mxcsr.is_some_and(|value| value & !Mxcsr::WRITABLE != 0) {
        return Err(core.gp0());
    }

    let registers = vector_registers(core);
    if components & component::X87 != 0 {
        if loaded & component::X87 == 0 {
            core.initialise_x87();
        } else {
            core.restore_x87_image::<WIDE>(&image);
        }
    }
    if let Some(value) = new_mxcsr {
        core.fpu.mxcsr = value;
    }
    if components & component::SSE != 0 {
        // Of a component that is not loaded the image has zeros: its initial configuration.
        for (i, xmm) in core.fpu.xmm[..registers].iter_mut().enumerate() {
            *xmm = vector(&image, 160 + 16 * i);
        }
    }
    if components & component::AVX != 0 {
        let at = extended().find(|(c, _)| c.bit() == component::AVX).map(|(_, at)| *at);
        for (i, high) in core.fpu.ymm_high[..registers].iter_mut().enumerate() {
            *high = at.map_or(0, |at| vector(&image, at + 16 * i));
        }
    }
    if components & component::PKRU != 0 {
        let at = extended().find(|(c, _)| c.bit() == component::PKRU).map(|(_, at)| *at);
        core.set_pkru(at.map_or(0, |at| word(&image, at) as u32));
    }
    Ok(())
}

/// Reads bytes `at..end` of the area, a multiple of 8.
fn fetch(core: &mut Core, linear: u64, seg: u8, image: &mut Image, at: usize, end: usize) -> Result<(), Leave> {
    let (pieces, rest) = image[at..end].as_chunks_mut::<16>();
    for (i, piece) in pieces.iter_mut().enumerate() {
        let linear = place(core, linear, at + 16 * i);
        let value: u128 = core.load_linear(linear, seg)?;
        *piece = value.to_le_bytes();
    }
    let tail = at + 16 * pieces.len();
    for (i, piece) in rest.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let linear = place(core, linear, tail + 8 * i);
        let value: u64 = core.load_linear(linear, seg)?;
        *piece = value.to_le_bytes();
    }
    Ok(())
}

fn word(image: &[u8], at: usize) -> u64 {
    image[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

fn vector(image: &[u8], at: usize) -> u128 {
    image[at..].first_chunk().map_or(0, |b| u128::from_le_bytes(*b))
}

impl Core {
    /// x87 state as after FNINIT, with the registers and pointers cleared.
    pub(super) fn initialise_x87(&mut self) {
        let fpu = &mut self.fpu;
        fpu.st = [F80::ZERO; 8];
        (fpu.fcw, fpu.fsw, fpu.ftw, fpu.fop, fpu.fip, fpu.fdp) = (0x37f, 0, 0, 0, 0, 0);
    }
}
