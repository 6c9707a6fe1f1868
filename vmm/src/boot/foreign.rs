//! Says what a file looks like that is not a kernel for this machine.

/// What a file appears to be, and what its owner can do about it.
pub struct Sighting {
    pub looks_like: String,
    pub advice: &'static str,
}

const USE_X86: &str = "give an x86-64 kernel: a bzImage, an ELF64 vmlinux or a multiboot ELF32";
const UNPACK: &str = "unpack it first";
const NOT_A_KERNEL: &str = "give the kernel itself with --kernel (on Debian: /boot/vmlinuz-*)";

/// (offset, magic, what it is, advice)
const MAGICS: &[(usize, &[u8], &str, &str)] = &[
    (0x38, b"ARM\x64", "an AArch64 Linux Image", USE_X86),
    (0x38, b"RSC\x05", "a RISC-V Linux Image", USE_X86),
    (0x24, &[0x18, 0x28, 0x6f, 0x01], "a 32-bit ARM zImage", USE_X86),
    (0, &[0x1f, 0x8b], "a gzip file", UNPACK),
    (0, &[0xfd, b'7', b'z', b'X', b'Z', 0], "an xz file", UNPACK),
    (0, &[0x28, 0xb5, 0x2f, 0xfd], "a zstd file", UNPACK),
    (0, &[0x04, 0x22, 0x4d, 0x18], "an lz4 file", UNPACK),
    (0, &[0x02, 0x21, 0x4c, 0x18], "an lz4 file", UNPACK),
    (0, b"BZh", "a bzip2 file", UNPACK),
    (0, b"070701", "a cpio archive", "an initramfs goes with --initrd"),
    (0, b"070702", "a cpio archive", "an initramfs goes with --initrd"),
    (0, b"!<arch>\ndebian", "a Debian package", "unpack it with dpkg-deb -x and give its boot/vmlinuz-*"),
    (0, b"!<arch>\n", "a static library", NOT_A_KERNEL),
    (0x101, b"ustar", "a tar archive", UNPACK),
    (0, b"ANDROID!", "an Android boot image", USE_X86),
    (0, &[0x27, 0x05, 0x19, 0x56], "a U-Boot image", USE_X86),
    (0, &[0xd0, 0x0d, 0xfe, 0xed], "a flattened device tree", USE_X86),
    (0, b"QFI\xfb", "a qcow2 disk image", "a raw disk image goes with --disk"),
    (0x8001, b"CD001", "an ISO 9660 image", "give the kernel that is inside"),
    (0, b"hsqs", "a SquashFS image", "a disk image goes with --disk"),
    (0x438, &[0x53, 0xef], "an ext file system", "a disk image goes with --disk"),
    (0, b"#!", "a script", NOT_A_KERNEL),
    (0, b"<!", "a web page", "download the kernel again"),
    (0, b"<html", "a web page", "download the kernel again"),
];

fn at(bytes: &[u8], offset: usize, magic: &[u8]) -> bool {
    bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(offset..offset.checked_add(2)?)?.try_into().ok()?))
}

fn elf(bytes: &[u8]) -> String {
    let machine = match bytes.get(5) {
        Some(2) => bytes.get(18..20).map(|m| u16::from_be_bytes([m[0], m[1]])),
        _ => u16_at(bytes, 18),
    };
    let machine = match machine {
        Some(3) => "32-bit x86",
        Some(8) => "MIPS",
        Some(20 | 21) => "PowerPC",
        Some(22) => "S/390",
        Some(40) => "32-bit ARM",
        Some(62) => "x86-64",
        Some(183) => "AArch64",
        Some(243) => "RISC-V",
        Some(258) => "LoongArch",
        _ => "another processor",
    };
    let kind = match u16_at(bytes, 16) {
        Some(1) => "an ELF object file",
        Some(4) => "an ELF core dump",
        _ => "an ELF file",
    };
    format!("{kind} for {machine}")
}

fn pe(bytes: &[u8]) -> String {
    let machine = bytes
        .get(0x3c..0x40)
        .map(|o| u32::from_le_bytes([o[0], o[1], o[2], o[3]]) as usize)
        .filter(|&offset| at(bytes, offset, b"PE\0\0"))
        .and_then(|offset| u16_at(bytes, offset.checked_add(4)?));
    match machine {
        Some(0x8664) => "a PE program (EFI or Windows) for x86-64".into(),
        Some(0xaa64) => "a PE program (EFI) for AArch64".into(),
        Some(0x014c) => "a PE program (EFI or Windows) for 32-bit x86".into(),
        Some(_) => "a PE program for another processor".into(),
        None => "a DOS program".into(),
    }
}

/// Looks at the first bytes of a file.
pub fn identify(bytes: &[u8]) -> Sighting {
    if bytes.is_empty() {
        return Sighting { looks_like: "an empty file".into(), advice: "copy or download it again" };
    }
    for &(offset, magic, name, advice) in MAGICS {
        if at(bytes, offset, magic) {
            return Sighting { looks_like: name.into(), advice };
        }
    }
    if at(bytes, 0, b"\x7fELF") {
        return Sighting { looks_like: elf(bytes), advice: USE_X86 };
    }
    if at(bytes, 0, b"MZ") {
        return Sighting { looks_like: pe(bytes), advice: USE_X86 };
    }
    let head = &bytes[..bytes.len().min(512)];
    if head.iter().all(|&b| b == 0) {
        return Sighting { looks_like: "a file of zeroes".into(), advice: "copy or download it again" };
    }
    if head.iter().all(|&b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..0x7f)) {
        return Sighting { looks_like: "a text file".into(), advice: NOT_A_KERNEL };
    }
    Sighting { looks_like: "data of no known kind".into(), advice: USE_X86 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_are_named() {
        let mut arm = [0; 64];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        for (bytes, expected) in [
            (&arm[..], "AArch64 Linux Image"),
            (b"\x1f\x8b\x08\0", "gzip"),
            (b"MZ\0\0", "DOS"),
            (b"hello world\n", "text"),
            (b"", "empty"),
            (b"070701000", "cpio"),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7\0", "AArch64"),
        ] {
            let sighting = identify(bytes);
            assert!(sighting.looks_like.contains(expected), "{} for {expected}", sighting.looks_like);
        }
    }
}
