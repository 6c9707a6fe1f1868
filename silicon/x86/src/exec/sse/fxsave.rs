//! FXSAVE and FXRSTOR ("FXSAVE—Save x87 FPU, MMX Technology, and SSE State", layout tables).

use silicon_float::Mxcsr;
use x86_defs::control::{cr0, cr4};
use x86_defs::exception::vector;

use crate::mem::AccessKind;
use crate::op::Done;
use crate::{Core, Leave, Op};

/// Bytes of the area that are laid out by the processor and not reserved: up to XMM7, or XMM15 in 64-bit mode.
const END_OF_XMM7: usize = 160 + 8 * 16;
const END_OF_XMM15: usize = 160 + 16 * 16;
/// Bytes of the area.
const AREA: u64 = 512;

/// Where the area is, after all checks that need no translation.
fn area(core: &mut Core, op: &Op, kind: AccessKind) -> Result<u64, Leave> {
    if core.cr0 & cr0::EM != 0 {
        return Err(core.ud());
    }
    if core.cr0 & cr0::TS != 0 {
        return Err(core.raise(vector::NM));
    }
    let offset = core.address(op);
    let linear = core.linear(op.seg, offset, AREA, kind)?;
    if linear & 15 != 0 {
        return Err(core.gp0());
    }
    Ok(linear)
}

/// Linear address of byte `at`: outside of 64-bit mode it wraps at 4 GiB.
fn piece(core: &Core, linear: u64, at: usize) -> u64 {
    let sum = linear.wrapping_add(at as u64);
    if core.mode.is_64() { sum } else { sum & 0xffff_ffff }
}

/// The part of the area that this mode reads and writes.
fn used(core: &Core) -> usize {
    match (core.cr4 & cr4::OSFXSR != 0, core.mode.is_64()) {
        (false, _) => 160,
        (true, false) => END_OF_XMM7,
        (true, true) => END_OF_XMM15,
    }
}

/// FXSAVE, FXSAVE64 (`WIDE`: 64-bit instruction and data pointers). Without CR4.OSFXSR the XMM registers and MXCSR
/// stay out of it.
pub fn fxsave<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    let linear = area(core, op, AccessKind::Write)?;
    let used = used(core);
    // Both pages must be writable before a byte changes.
    for at in [0, used - 1] {
        let linear = piece(core, linear, at);
        core.span(linear, AccessKind::Write, op.seg)?;
    }
    let image = core.fpu_image::<WIDE>();
    for at in (0..used).step_by(16) {
        let Some(chunk) = image[at..].first_chunk::<16>() else { break };
        let linear = piece(core, linear, at);
        if at == 16 && core.cr4 & cr4::OSFXSR == 0 {
            let Some(low) = chunk.first_chunk::<8>() else { break };
            core.store_linear(linear, op.seg, u64::from_le_bytes(*low))?;
        } else {
            core.store_linear(linear, op.seg, u128::from_le_bytes(*chunk))?;
        }
    }
    Ok(())
}

/// FXRSTOR, FXRSTOR64: #GP(0) for reserved bits in MXCSR.
pub fn fxrstor<const WIDE: bool>(core: &mut Core, op: &Op) -> Done {
    let linear = area(core, op, AccessKind::Read)?;
    let mut image = [0; END_OF_XMM15];
    let used = used(core);
    for at in (0..used).step_by(16) {
        let linear = piece(core, linear, at);
        let chunk = core.load_linear::<u128>(linear, op.seg)?;
        image[at..at + 16].copy_from_slice(&chunk.to_le_bytes());
    }
    if used > 160 {
        let mxcsr = word(&image, 24) as u32;
        if mxcsr & !Mxcsr::WRITABLE != 0 {
            return Err(core.gp0());
        }
        core.fpu.mxcsr = mxcsr;
        for (i, register) in image[160..used].chunks_exact(16).enumerate() {
            core.fpu.xmm[i] = u128::from(word(register, 8)) << 64 | u128::from(word(register, 0));
        }
    }
    core.restore_x87_image::<WIDE>(&image);
    Ok(())
}

/// The eight bytes at `at`.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

impl Core {
    /// The area as FXSAVE fills it. The selectors of the 32-bit form are zero: CS and DS of x87 pointers are not
    /// kept (CPUID says so with "Deprecates FPU CS and FPU DS values").
    pub(super) fn fpu_image<const WIDE: bool>(&self) -> [u8; END_OF_XMM15] {
        let fpu = &self.fpu;
        let mut image = [0; END_OF_XMM15];
        image[0..2].copy_from_slice(&fpu.fcw.to_le_bytes());
        image[2..4].copy_from_slice(&fpu.fsw.to_le_bytes());
        image[4] = fpu.ftw;
        image[6..8].copy_from_slice(&fpu.fop.to_le_bytes());
        let pointers = if WIDE { u64::MAX } else { 0xffff_ffff };
        image[8..16].copy_from_slice(&(fpu.fip & pointers).to_le_bytes());
        image[16..24].copy_from_slice(&(fpu.fdp & pointers).to_le_bytes());
        image[24..28].copy_from_slice(&fpu.mxcsr.to_le_bytes());
        image[28..32].copy_from_slice(&Mxcsr::WRITABLE.to_le_bytes());
        for i in 0..8 {
            let at = 32 + 16 * i;
            let st = &fpu.st[(i + usize::from(fpu.fsw >> 11)) & 7];
            image[at..at + 8].copy_from_slice(&st.significand.to_le_bytes());
            image[at + 8..at + 10].copy_from_slice(&st.sign_exponent.to_le_bytes());
        }
        for (i, xmm) in fpu.xmm.iter().enumerate() {
            let at = 160 + 16 * i;
            image[at..at + 16].copy_from_slice(&xmm.to_le_bytes());
        }
        image
    }

    /// The x87 part of FXRSTOR.
    pub(super) fn restore_x87_image<const WIDE: bool>(&mut self, image: &[u8]) {
        let fpu = &mut self.fpu;
        // Bit 6 reads as one, bits 7 and 15:13 as zero.
        fpu.fcw = word(image, 0) as u16 & 0x1f3f | 0x40;
        // ES and B say whether an unmasked exception is pending, whatever the image says.
        let fsw = (word(image, 0) >> 16) as u16 & 0x7f7f;
        let pending = fsw & !fpu.fcw & 0x3f != 0;
        fpu.fsw = fsw | if pending { 0x8080 } else { 0 };
        fpu.ftw = image[4];
        fpu.fop = (word(image, 0) >> 48) as u16 & 0x7ff;
        let pointers = if WIDE { u64::MAX } else { 0xffff_ffff };
        fpu.fip = word(image, 8) & pointers;
        fpu.fdp = word(image, 16) & pointers;
        for i in 0..8 {
            let st = &mut fpu.st[(i + usize::from(fsw >> 11)) & 7];
            st.significand = word(image, 32 + 16 * i);
            st.sign_exponent = word(image, 40 + 16 * i) as u16;
        }
    }
}
