//! Multiboot ELF32 images.
//!
//! Sources: "Executable and Linking Format (ELF) Specification version 1.2", "Multiboot Specification version 0.6.96".

/// A piece of guest memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Guest-physical address.
    pub address: u32,
    pub bytes: Vec<u8>,
    /// Size in memory; what exceeds the bytes is zero.
    pub memory_size: u32,
}

impl Segment {
    /// A segment of just these bytes.
    pub fn new(address: u32, bytes: Vec<u8>) -> Self {
        let memory_size = bytes.len() as u32;
        Self { address, bytes, memory_size }
    }
}

/// An image to be: segments and the 32-bit entry. The multiboot header is put in front of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub segments: Vec<Segment>,
    pub entry: u32,
}

const ELF_HEADER: u32 = 52;
const PROGRAM_HEADER: u32 = 32;
const MULTIBOOT_MAGIC: u32 = 0x1bad_b002;
const MULTIBOOT_FLAGS: u32 = 0;

impl Image {
    /// The ELF file.
    pub fn elf(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut words = |words: &[u32]| words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        let count = self.segments.len() as u32;
        words(&[u32::from_le_bytes(*b"\x7fELF"), 0x0001_0101, 0, 0]);
        // Executable for 80386, version 1.
        words(&[0x0003_0002, 1, self.entry, ELF_HEADER, 0, 0]);
        words(&[PROGRAM_HEADER << 16 | ELF_HEADER, count, 0]);
        let header_at = ELF_HEADER + count * PROGRAM_HEADER;
        let mut offset = header_at + 12;
        for segment in &self.segments {
            let size = segment.bytes.len() as u32;
            // PT_LOAD, readable, writable and executable.
            words(&[1, offset, segment.address, segment.address, size, segment.memory_size.max(size), 7, 1]);
            offset += size;
        }
        let checksum = 0u32.wrapping_sub(MULTIBOOT_MAGIC).wrapping_sub(MULTIBOOT_FLAGS);
        words(&[MULTIBOOT_MAGIC, MULTIBOOT_FLAGS, checksum]);
        for segment in &self.segments {
            file.extend_from_slice(&segment.bytes);
        }
        file
    }
}
