//! Small valid boot images of every kind, and a generator of damage.

/// Where samples are linked to.
pub const LOAD: u64 = 0x10_0000;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A bzImage by boot protocol 2.15 with 2 KiB of code.
pub fn bzimage() -> Vec<u8> {
    let mut image = vec![0; 512 * 5 + 2048];
    image[0x1f1] = 4;
    put(&mut image, 0x1f4, &(2048u32 / 16).to_le_bytes());
    put(&mut image, 0x1fe, &0xaa55u16.to_le_bytes());
    put(&mut image, 0x202, b"HdrS");
    put(&mut image, 0x206, &0x020fu16.to_le_bytes());
    image[0x211] = 1;
    put(&mut image, 0x214, &0x10_0000u32.to_le_bytes());
    put(&mut image, 0x22c, &0x7fff_ffffu32.to_le_bytes());
    put(&mut image, 0x230, &0x20_0000u32.to_le_bytes());
    image[0x234] = 1;
    put(&mut image, 0x236, &1u16.to_le_bytes());
    put(&mut image, 0x238, &2047u32.to_le_bytes());
    put(&mut image, 0x258, &LOAD.to_le_bytes());
    put(&mut image, 0x260, &0x4000u32.to_le_bytes());
    put(&mut image, 512 * 5 + 0x200, &[0xf4; 16]);
    image
}

fn elf64(segments: &[(u32, u64, Vec<u8>)], entry: u64) -> Vec<u8> {
    let mut image = Vec::new();
    image.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    image.extend(2u16.to_le_bytes());
    image.extend(62u16.to_le_bytes());
    image.extend(1u32.to_le_bytes());
    image.extend(entry.to_le_bytes());
    image.extend(64u64.to_le_bytes());
    image.extend([0; 12]);
    for half in [64u16, 56, segments.len() as u16, 0, 0, 0] {
        image.extend(half.to_le_bytes());
    }
    let mut offset = 64 + 56 * segments.len() as u64;
    for (kind, address, bytes) in segments {
        image.extend(kind.to_le_bytes());
        image.extend(7u32.to_le_bytes());
        for value in [offset, *address, *address, bytes.len() as u64, bytes.len() as u64, 4] {
            image.extend(value.to_le_bytes());
        }
        offset += bytes.len() as u64;
    }
    for (_, _, bytes) in segments {
        image.extend(bytes);
    }
    image
}

/// An ELF64 with the PVH note; its entry is 16 bytes into the code.
pub fn pvh() -> Vec<u8> {
    let mut note = Vec::new();
    for word in [4u32, 4, 18] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"Xen\0");
    note.extend((LOAD as u32 + 16).to_le_bytes());
    elf64(&[(1, LOAD, vec![0xf4; 64]), (4, 0, note)], LOAD)
}

/// An ELF64 that says that it is Linux, without the note.
pub fn linux_elf() -> Vec<u8> {
    let mut code = vec![0xf4; 64];
    code.extend(b"Linux version 6.12.0");
    elf64(&[(1, LOAD, code)], LOAD)
}

/// A flat multiboot image that gives its addresses in the header.
pub fn multiboot_flat() -> Vec<u8> {
    let flags = 1u32 << 16 | 3;
    let magic = 0x1bad_b002u32;
    let mut image = vec![0x90; 16];
    let header = LOAD as u32 + 16;
    for word in [
        magic,
        flags,
        0u32.wrapping_sub(magic).wrapping_sub(flags),
        header,
        LOAD as u32,
        0,
        LOAD as u32 + 0x1000,
        LOAD as u32,
    ] {
        image.extend(word.to_le_bytes());
    }
    image.extend([0xf4; 64]);
    image
}

/// All kinds, with their names.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("bzImage", bzimage()),
        ("PVH", pvh()),
        ("Linux ELF64", linux_elf()),
        ("multiboot flat", multiboot_flat()),
        ("multiboot ELF32", guest_bare::builtin_guest()),
    ]
}

/// Splitmix64: equal damage in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Changes a few bytes, words or the length; mostly in headers.
    pub fn damage(&mut self, image: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            if image.is_empty() {
                return;
            }
            let reach = if self.below(4) == 0 { image.len() } else { image.len().min(700) };
            let at = self.below(reach);
            match self.below(6) {
                0 => image[at] ^= 1 << self.below(8),
                1 => image[at] = self.next() as u8,
                2 => image.truncate(at),
                kind => {
                    let interesting = [0, 1, u64::MAX, u64::MAX >> 1, 1 << 63, 0xffff_ffff, 0x8000_0000, self.next()];
                    let value = interesting[self.below(interesting.len())].to_le_bytes();
                    let width = [2, 4, 8][kind - 3].min(image.len() - at);
                    image[at..at + width].copy_from_slice(&value[..width]);
                }
            }
        }
    }
}
