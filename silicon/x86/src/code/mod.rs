//! The cache of decoded blocks, indexed by host-physical address and mode.
//!
//! A block is a straight run of instructions inside of one page (or one instruction that crosses into the next). It
//! belongs to a generation of its page ([`silicon_memory::PageState`]): once the page's code is overwritten, look-ups no longer
//! find it. Blocks survive address-space switches, since they are found by physical address.

pub mod decode;

pub use decode::decode_one;

use silicon_memory::PageState;

use crate::op::Op;

/// The most instructions of a block.
pub const MOST_INSTRUCTIONS: usize = 32;

/// The second page of an instruction that crosses a page boundary.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    pub host: u64,
    pub state: &'static PageState,
    pub generation: u32,
}

/// A run of decoded instructions.
#[derive(Debug)]
pub struct Block {
    pub ops: Box<[Op]>,
    /// Host-physical address of the first byte.
    pub host: u64,
    /// [`crate::core::Mode::key`] it was decoded for.
    pub key: u8,
    /// Generation of the page's code.
    pub generation: u32,
    /// Bytes of all instructions.
    pub len: u16,
    /// Static cost of all instructions, in quarter cycles.
    pub cost: u32,
    pub crossing: Option<Crossing>,
    /// Blocks of the same page that were executed after this one: offset in the page, index.
    pub links: [Link; 2],
    /// The link to replace next.
    pub next_link: u8,
}

/// A successor in the same page.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub offset: u16,
    pub block: u32,
}

impl Link {
    const NONE: Self = Self { offset: u16::MAX, block: 0 };
}

impl Block {
    #[must_use]
    pub fn new(ops: Vec<Op>, host: u64, key: u8, generation: u32, crossing: Option<Crossing>) -> Self {
        let len = ops.last().map_or(0, |op| op.off + u16::from(op.len));
        let cost = ops.iter().map(|op| u32::from(op.cost)).sum();
        let links = [Link::NONE; 2];
        Self { ops: ops.into_boxed_slice(), host, key, generation, len, cost, crossing, links, next_link: 0 }
    }

    /// The block at `offset` of the page, if it has been executed after this one lately.
    #[inline(always)]
    #[must_use]
    pub fn successor(&self, offset: u16) -> Option<u32> {
        let [a, b] = &self.links;
        if a.offset == offset {
            Some(a.block)
        } else if b.offset == offset {
            Some(b.block)
        } else {
            None
        }
    }
}

const SLOTS: usize = 1 << 16;
/// Blocks kept before the cache starts anew.
const MOST_BLOCKS: usize = 1 << 20;

/// All decoded blocks of a processor.
#[derive(Debug)]
pub struct CodeCache {
    pub blocks: Vec<Block>,
    /// Direct-mapped: tag (host address and mode) and block index.
    slots: Vec<(u64, u32)>,
    /// Blocks that a newer block pushed out of their slot.
    overflow: std::collections::HashMap<u64, u32>,
}

impl Default for CodeCache {
    fn default() -> Self {
        Self { blocks: Vec::new(), slots: vec![(u64::MAX, 0); SLOTS], overflow: std::collections::HashMap::new() }
    }
}

impl CodeCache {
    fn tag(host: u64, key: u8) -> u64 {
        host << 4 | u64::from(key)
    }

    fn slot(tag: u64) -> usize {
        (tag ^ tag >> 17 ^ tag >> 3) as usize >> 1 & (SLOTS - 1)
    }

    /// The block at `host`, decoded for `key`, of the page's current `generation`.
    #[inline]
    #[must_use]
    pub fn find(&mut self, host: u64, key: u8, generation: u32) -> Option<u32> {
        let tag = Self::tag(host, key);
        let (found, index) = self.slots[Self::slot(tag)];
        if found == tag {
            return (self.blocks[index as usize].generation == generation).then_some(index);
        }
        self.find_overflow(tag, generation)
    }

    /// The same, for a block that is found at the first place: one that lies in a page alone.
    #[inline(always)]
    #[must_use]
    pub fn find_first(&self, host: u64, key: u8, generation: u32) -> Option<u32> {
        let tag = Self::tag(host, key);
        let (found, index) = self.slots[Self::slot(tag)];
        if found != tag {
            return None;
        }
        let block = &self.blocks[index as usize];
        (block.generation == generation && block.crossing.is_none()).then_some(index)
    }

    #[cold]
    fn find_overflow(&mut self, tag: u64, generation: u32) -> Option<u32> {
        let index = *self.overflow.get(&tag)?;
        if self.blocks[index as usize].generation != generation {
            return None;
        }
        let slot = &mut self.slots[Self::slot(tag)];
        let (old, old_index) = std::mem::replace(slot, (tag, index));
        self.overflow.remove(&tag);
        if old != u64::MAX {
            self.overflow.insert(old, old_index);
        }
        Some(index)
    }

    /// Adds a block, in place of one at the same address. Gives its index.
    pub fn insert(&mut self, block: Block) -> u32 {
        if self.blocks.len() == MOST_BLOCKS {
            self.clear();
        }
        let tag = Self::tag(block.host, block.key);
        let slot = Self::slot(tag);
        let (old, old_index) = self.slots[slot];
        if old == tag {
            // The index may be linked from blocks of the old generation, which are unreachable as well.
            self.blocks[old_index as usize] = block;
            return old_index;
        }
        if let Some(&index) = self.overflow.get(&tag) {
            self.blocks[index as usize] = block;
            return index;
        }
        let index = self.blocks.len() as u32;
        self.blocks.push(block);
        self.slots[slot] = (tag, index);
        if old != u64::MAX {
            self.overflow.insert(old, old_index);
        }
        index
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.slots.fill((u64::MAX, 0));
        self.overflow.clear();
    }
}
