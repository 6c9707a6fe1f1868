//! One block request, from a chain of descriptors that the guest may have made of anything.

use std::ops::Deref;

use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID,
    VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT,
};
use virtio_queue::DescriptorChain;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemoryMmap};

use super::block::{Block, DiskAccess, SECTOR};
use super::transport::{DirtyRanges, QUEUE_SIZE};

const HEADER: u32 = 16;
/// Data moves in pieces of this size, so that a guest cannot make the host allocate more.
const PIECE: u64 = 64 << 10;

/// Why a request has no answer, or an error for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    InputOutput,
    Unsupported,
}

/// Does what the chain asks for and writes the status; returns the number of bytes written to the guest.
///
/// A chain without a writable byte for the status cannot be answered; it is completed with length zero.
pub fn execute<M>(block: &Block, chain: DescriptorChain<M>, dirty: &DirtyRanges) -> u32
where
    M: Clone + Deref<Target = GuestMemoryMmap>,
{
    let memory = chain.memory().clone();
    // The chain's own limit is the queue size too; a loop of descriptors ends there.
    let descriptors: Vec<Descriptor> = chain.take(usize::from(QUEUE_SIZE)).collect();
    let Some((last, rest)) = descriptors.split_last() else { return 0 };
    if !last.is_write_only() || last.len() == 0 {
        return 0;
    }
    let Some(status_at) = last.addr().checked_add(u64::from(last.len()) - 1) else { return 0 };
    let (status, written) = match transfer(block, &memory, rest, last, dirty) {
        Ok(written) => (VIRTIO_BLK_S_OK, written),
        Err(Failure::InputOutput) => (VIRTIO_BLK_S_IOERR, 0),
        Err(Failure::Unsupported) => (VIRTIO_BLK_S_UNSUPP, 0),
    };
    if memory.write_slice(&[status as u8], status_at).is_err() {
        return 0;
    }
    dirty.add(status_at.0, 1);
    written.saturating_add(1)
}

fn transfer(
    block: &Block,
    memory: &GuestMemoryMmap,
    rest: &[Descriptor],
    last: &Descriptor,
    dirty: &DirtyRanges,
) -> Result<u32, Failure> {
    let Some((header, data)) = rest.split_first() else { return Err(Failure::InputOutput) };
    if header.is_write_only() || header.len() < HEADER {
        return Err(Failure::InputOutput);
    }
    let mut fields = [0; HEADER as usize];
    memory.read_slice(&mut fields, header.addr()).map_err(|_| Failure::InputOutput)?;
    let kind = u32::from_le_bytes([fields[0], fields[1], fields[2], fields[3]]);
    let mut sector_bytes = [0; 8];
    sector_bytes.copy_from_slice(&fields[8..]);
    let sector = u64::from_le_bytes(sector_bytes);

    // Data may share a descriptor with the header (after it) and with the status (before it).
    let mut outgoing: Vec<(GuestAddress, u64)> = Vec::new();
    let mut incoming: Vec<(GuestAddress, u64)> = Vec::new();
    let after_header = header.addr().checked_add(u64::from(HEADER)).ok_or(Failure::InputOutput)?;
    outgoing.push((after_header, u64::from(header.len() - HEADER)));
    for descriptor in data {
        let list = if descriptor.is_write_only() { &mut incoming } else { &mut outgoing };
        list.push((descriptor.addr(), u64::from(descriptor.len())));
    }
    incoming.push((last.addr(), u64::from(last.len()) - 1));

    match kind {
        VIRTIO_BLK_T_IN => read(block, memory, sector, &incoming, dirty),
        VIRTIO_BLK_T_OUT => write(block, memory, sector, &outgoing).map(|()| 0),
        VIRTIO_BLK_T_FLUSH => block.flush().map(|()| 0).map_err(|_| Failure::InputOutput),
        VIRTIO_BLK_T_GET_ID => {
            let mut written = 0;
            let mut id = &block.id()[..];
            for (at, len) in incoming {
                let (now, later) = id.split_at(id.len().min(usize::try_from(len).unwrap_or(usize::MAX)));
                memory.write_slice(now, at).map_err(|_| Failure::InputOutput)?;
                dirty.add(at.0, now.len() as u64);
                written += now.len() as u32;
                id = later;
            }
            Ok(written)
        }
        _ => Err(Failure::Unsupported),
    }
}

/// Checks that the pieces are whole sectors on the disk; returns the byte offset of the first.
fn start_of(block: &Block, sector: u64, pieces: &[(GuestAddress, u64)]) -> Result<u64, Failure> {
    let len = pieces.iter().map(|(_, len)| len).sum::<u64>();
    if !len.is_multiple_of(SECTOR) {
        return Err(Failure::InputOutput);
    }
    block.offset(sector, len).ok_or(Failure::InputOutput)
}

/// Calls `each` with guest address, disk offset and length of every piece of at most [`PIECE`] bytes.
fn for_pieces(
    start: u64,
    pieces: &[(GuestAddress, u64)],
    mut each: impl FnMut(GuestAddress, u64, usize) -> Option<()>,
) -> Result<(), Failure> {
    let mut offset = start;
    for &(at, len) in pieces {
        let mut done = 0;
        while done < len {
            let step = PIECE.min(len - done);
            let address = at.checked_add(done).ok_or(Failure::InputOutput)?;
            each(address, offset, step as usize).ok_or(Failure::InputOutput)?;
            done += step;
            offset += step;
        }
    }
    Ok(())
}

fn read(
    block: &Block,
    memory: &GuestMemoryMmap,
    sector: u64,
    pieces: &[(GuestAddress, u64)],
    dirty: &DirtyRanges,
) -> Result<u32, Failure> {
    let start = start_of(block, sector, pieces)?;
    let mut buffer = vec![0; PIECE as usize];
    let mut written = 0u32;
    for_pieces(start, pieces, |at, offset, len| {
        block.read_at(&mut buffer[..len], offset).ok()?;
        // Told before the write: a write that fails half-way has changed the first half.
        dirty.add(at.0, len as u64);
        memory.write_slice(&buffer[..len], at).ok()?;
        written = written.saturating_add(len as u32);
        Some(())
    })?;
    Ok(written)
}

fn write(
    block: &Block,
    memory: &GuestMemoryMmap,
    sector: u64,
    pieces: &[(GuestAddress, u64)],
) -> Result<(), Failure> {
    if block.access() == DiskAccess::ReadOnly {
        return Err(Failure::InputOutput);
    }
    let start = start_of(block, sector, pieces)?;
    let mut buffer = vec![0; PIECE as usize];
    for_pieces(start, pieces, |at, offset, len| {
        memory.read_slice(&mut buffer[..len], at).ok()?;
        block.write_at(&buffer[..len], offset).ok()
    })
}
