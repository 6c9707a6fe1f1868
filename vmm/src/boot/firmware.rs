//! A firmware image: mapped so that it ends at 4 GiB, with its end once more below 1 MiB.
//!
//! Source: Intel SDM, "First Instruction Executed"; Intel *440FX PCIset*, "BIOS Area".

use super::BootError;
use crate::memory::{GuestRam, GuestRom, MemoryError};

/// Smallest image: one 64 KiB segment.
pub const FIRMWARE_MIN: u64 = 64 << 10;
/// Largest image: what is free between the local APICs' page and 4 GiB.
pub const FIRMWARE_MAX: u64 = 16 << 20;
/// Firmware ends here.
const TOP: u64 = 1 << 32;
/// What of it also appears below 1 MiB at most: two segments.
const SHADOW_MAX: u64 = 128 << 10;
/// End of the shadow.
const SHADOW_END: u64 = 1 << 20;
/// The processor starts this far before the end.
const RESET_VECTOR: u64 = 16;

/// Checks an image and maps it; the RAM below 1 MiB starts with a copy of its end.
pub fn place(ram: &GuestRam, path: &str, image: &[u8]) -> Result<GuestRom, BootError> {
    let refused = |what: String| BootError::Firmware { path: path.to_owned(), what };
    let size = image.len() as u64;
    if !(FIRMWARE_MIN..=FIRMWARE_MAX).contains(&size) {
        return Err(refused(format!("has {size} bytes, and firmware has {FIRMWARE_MIN} to {FIRMWARE_MAX}")));
    }
    if !size.is_multiple_of(FIRMWARE_MIN) {
        return Err(refused(format!("has {size} bytes, which is not a multiple of 64 KiB")));
    }
    let vector = &image[image.len() - RESET_VECTOR as usize..];
    if vector.iter().all(|&byte| byte == vector[0]) {
        return Err(refused(format!("has nothing to execute 16 bytes before its end ({:#04x} only)", vector[0])));
    }
    let shadow = size.min(SHADOW_MAX);
    ram.write(SHADOW_END - shadow, &image[(size - shadow) as usize..])?;
    GuestRom::new(TOP - size, image).map_err(|error: MemoryError| error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MIN_RAM;

    fn image(len: usize) -> Vec<u8> {
        let mut image = vec![0x90; len];
        image[len - 16] = 0xea;
        image
    }

    #[test]
    fn the_end_of_the_image_is_below_1_mib_and_below_4_gib() {
        let ram = GuestRam::new(MIN_RAM).unwrap();
        let mut bytes = image(256 << 10);
        bytes[128 << 10] = 1;
        let rom = place(&ram, "f", &bytes).unwrap();
        assert_eq!((rom.start(), rom.size()), (0xfffc_0000, 256 << 10));
        let mut byte = [0];
        for (at, expected) in [(0xd_ffff, 0), (0xe_0000, 1), (0xf_fff0, 0xea)] {
            ram.read(at, &mut byte).unwrap();
            assert_eq!(byte[0], expected, "{at:#x}");
        }
        place(&ram, "f", &image(64 << 10)).unwrap();
    }

    #[test]
    fn what_cannot_be_firmware_is_refused_with_the_reason() {
        let ram = GuestRam::new(MIN_RAM).unwrap();
        for (bytes, reason) in [
            (image(4096), "has 4096 bytes"),
            (image((64 << 10) + 4096), "multiple of 64 KiB"),
            (vec![0xff; 64 << 10], "nothing to execute"),
            (vec![0; (16 << 20) + (64 << 10)], "16777216"),
        ] {
            let error = place(&ram, "f", &bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
