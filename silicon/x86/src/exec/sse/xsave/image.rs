//! The whole x87, SSE, AVX and PKRU state as an area in the standard format: how hypervisors hand it to their users.

use silicon_float::Mxcsr;

use super::{HEADER, Image, MXCSR_INITIAL};
use crate::Core;
use crate::model::Feature;
use crate::model::xstate::{COMPONENTS, Component, LARGEST, component};

/// An area that XRSTOR would refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidImage {
    #[error("XSTATE_BV is {xstate_bv:#x}: it has components that the processor lacks")]
    Components { xstate_bv: u64 },
    #[error("the XSAVE header is not that of the standard format")]
    Header,
    #[error("MXCSR is {mxcsr:#x}: a reserved bit is set")]
    Mxcsr { mxcsr: u32 },
}

fn word(image: &[u8], at: usize) -> u64 {
    image[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

fn offset(bit: u64) -> Option<usize> {
    COMPONENTS.iter().find(|c| c.bit() == bit).map(|c: &Component| c.offset.into())
}

impl Core {
    /// All components, whatever the mode, XCR0 and the init optimisation leave out. XSTATE_BV has those that are not in
    /// their initial configuration.
    #[must_use]
    pub fn xsave_image(&self) -> Image {
        let mut image: Image = [0; LARGEST];
        let legacy = self.fpu_image::<true>();
        image[..legacy.len()].copy_from_slice(&legacy);
        image[HEADER..HEADER + 8].copy_from_slice(&self.xinuse_of(16).to_le_bytes());
        if let Some(at) = offset(component::AVX) {
            for (out, high) in image[at..].chunks_exact_mut(16).zip(&self.fpu.ymm_high) {
                out.copy_from_slice(&high.to_le_bytes());
            }
        }
        if let Some(at) = offset(component::PKRU) {
            image[at..at + 4].copy_from_slice(&self.pkru.to_le_bytes());
        }
        image
    }

    /// Takes all components from an area, those without a bit in XSTATE_BV in their initial configuration.
    ///
    /// # Errors
    /// What XRSTOR with all of the model's components enabled would refuse; nothing has changed then.
    pub fn set_xsave_image(&mut self, image: &Image) -> Result<(), InvalidImage> {
        let xstate_bv = word(image, HEADER);
        // A processor without XSAVE still has x87 and SSE state, and its protection keys.
        let keys = if self.model.has(Feature::Pku) { component::PKRU } else { 0 };
        let supported = self.model.xcr0_supported() | component::X87 | component::SSE | keys;
        if xstate_bv & !supported != 0 {
            return Err(InvalidImage::Components { xstate_bv });
        }
        if image[HEADER + 8..HEADER + 64].iter().any(|&byte| byte != 0) {
            return Err(InvalidImage::Header);
        }
        let has = |bit: u64| xstate_bv & bit != 0;
        let mxcsr = if has(component::SSE) || has(component::AVX) { word(image, 24) as u32 } else { MXCSR_INITIAL };
        if mxcsr & !Mxcsr::WRITABLE != 0 {
            return Err(InvalidImage::Mxcsr { mxcsr });
        }
        if has(component::X87) {
            self.restore_x87_image::<true>(image);
        } else {
            self.initialise_x87();
        }
        self.fpu.mxcsr = mxcsr;
        let vector = |at: usize| u128::from(word(image, at)) | u128::from(word(image, at + 8)) << 64;
        let high = if has(component::AVX) { offset(component::AVX) } else { None };
        for i in 0..16 {
            self.fpu.xmm[i] = if has(component::SSE) { vector(160 + 16 * i) } else { 0 };
            self.fpu.ymm_high[i] = high.map_or(0, |at| vector(at + 16 * i));
        }
        let keys = if has(component::PKRU) { offset(component::PKRU) } else { None };
        self.set_pkru(keys.map_or(0, |at| word(image, at) as u32));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::test;
    use crate::model::Model;

    fn core() -> Core {
        let mut core = test::core();
        core.model = Arc::new(Model::parse("glassvisor-v3").unwrap());
        for i in 0..16 {
            core.fpu.xmm[i] = 0x100 + i as u128;
            core.fpu.ymm_high[i] = 0x200 + i as u128;
        }
        core.fpu.mxcsr = 0x1fa1;
        core.fpu.st[3].significand = 5;
        core.fpu.fsw = 0x3800;
        core
    }

    #[test]
    fn state_survives_the_way_out_and_in() {
        let from = core();
        let mut to = test::core();
        to.model = Arc::clone(&from.model);
        assert_eq!(to.set_xsave_image(&from.xsave_image()), Ok(()));
        assert_eq!(to.fpu, from.fpu);
    }

    #[test]
    fn pkru_is_a_part_of_a_processor_with_user_keys_and_of_no_other() {
        let mut core = core();
        core.set_pkru(0x5555_5554);
        let image = core.xsave_image();
        assert_eq!((word(&image, HEADER), word(&image, 0xa80)), (0x207, 0x5555_5554));
        assert_eq!(core.set_xsave_image(&image), Err(InvalidImage::Components { xstate_bv: 0x207 }));
        for model in ["glassvisor-v3,+pku", "glassvisor-v2,+pku"] {
            core.model = Arc::new(Model::parse(model).unwrap());
            if model.starts_with("glassvisor-v2") {
                core.fpu.ymm_high = [0; 16];
            }
            let mut image = core.xsave_image();
            core.set_pkru(1);
            assert_eq!(core.set_xsave_image(&image), Ok(()), "{model}");
            assert_eq!(core.pkru, 0x5555_5554);
            image[HEADER + 1] = 0;
            assert_eq!(core.set_xsave_image(&image), Ok(()), "{model}");
            assert_eq!(core.pkru, 0);
            core.set_pkru(0x5555_5554);
        }
    }

    #[test]
    fn what_the_header_leaves_out_is_initial() {
        let mut core = core();
        let mut image = core.xsave_image();
        image[HEADER] = 0;
        assert_eq!(core.set_xsave_image(&image), Ok(()));
        assert_eq!((core.fpu.fcw, core.fpu.mxcsr), (0x37f, 0x1f80));
        assert_eq!((core.fpu.xmm, core.fpu.ymm_high), ([0; 16], [0; 16]));
    }

    #[test]
    fn bad_areas_are_refused_and_change_nothing() {
        let mut core = core();
        let before = core.fpu.clone();
        for (at, value, error) in [
            (HEADER, 8, InvalidImage::Components { xstate_bv: 8 }),
            (HEADER + 15, 0x80, InvalidImage::Header),
            (HEADER + 40, 1, InvalidImage::Header),
            (27, 1, InvalidImage::Mxcsr { mxcsr: 0x0100_1fa1 }),
        ] {
            let mut image = core.xsave_image();
            image[at] = value;
            assert_eq!(core.set_xsave_image(&image), Err(error));
            assert_eq!(core.fpu, before);
        }
    }
}
