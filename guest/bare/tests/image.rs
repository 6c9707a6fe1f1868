//! Images have the form that multiboot loaders take.

use guest_bare::{Image, Mode, Segment, builtin_guest, case, console};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Start in the file, size in the file, address, size in memory.
fn segments(elf: &[u8]) -> Vec<(usize, usize, u32, u32)> {
    let count = usize::from(elf[44]);
    (0..count)
        .map(|index| {
            let at = 52 + index * 32;
            (word(elf, at + 4) as usize, word(elf, at + 16) as usize, word(elf, at + 8), word(elf, at + 20))
        })
        .collect()
}

#[test]
fn an_image_is_an_elf32_for_80386_with_a_multiboot_header_in_its_first_8_kib() {
    let elf = builtin_guest();
    assert_eq!(&elf[..7], b"\x7fELF\x01\x01\x01");
    assert_eq!(elf[16..20], [2, 0, 3, 0]);
    let header = elf[..8192.min(elf.len())]
        .chunks_exact(4)
        .position(|chunk| chunk == 0x1bad_b002u32.to_le_bytes())
        .expect("no multiboot header")
        * 4;
    assert_eq!((0..3).fold(0u32, |sum, n| sum.wrapping_add(word(&elf, header + n * 4))), 0);
}

#[test]
fn segments_lie_in_the_file_and_the_entry_in_a_segment() {
    let image = Image {
        entry: 0x10_0000,
        segments: vec![
            Segment::new(0x10_0000, vec![0x90; 5]),
            Segment { address: 0x20_0000, bytes: vec![1, 2, 3], memory_size: 100 },
        ],
    };
    let elf = image.elf();
    let segments = segments(&elf);
    assert_eq!(segments.len(), 2);
    let (start, size, address, memory) = segments[1];
    assert_eq!((&elf[start..start + size], address, memory), (&[1, 2, 3][..], 0x20_0000, 100));
    assert_eq!(word(&elf, 24), 0x10_0000);
}

#[test]
fn every_mode_can_be_built_and_starts_its_code_where_it_says() {
    for (mode, address, first) in
        [(Mode::Real16, 0x8000, 0xba), (Mode::Protected32, 0x20_0000, 0x66), (Mode::Long64, 0x20_0000, 0x66)]
    {
        let elf = case(mode, |a| {
            console::print(a, "x")?;
            console::exit(a, 1)
        })
        .unwrap();
        let (start, ..) = *segments(&elf).iter().find(|segment| segment.2 == address).unwrap();
        assert_eq!(elf[start], first, "mov dx, imm16 has a prefix except in 16-bit code");
    }
}
