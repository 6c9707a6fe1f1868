//! virtio devices on the memory-mapped transport.
//!
//! Source: OASIS "Virtual I/O Device (VIRTIO) Version 1.2", sections "Virtio Over MMIO" and "Block Device".

mod block;
mod request;
mod transport;

pub use block::{Block, DiskError};
pub use transport::{DirtyRanges, MmioTransport};

#[cfg(test)]
mod tests;
