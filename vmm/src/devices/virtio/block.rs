//! A virtio block device on a file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use virtio_bindings::virtio_blk::{VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX};

pub const SECTOR: u64 = 512;
/// Most data segments in one request: the queue less header and status.
pub const SEGMENTS_MAX: u32 = super::transport::QUEUE_SIZE as u32 - 2;
/// Longest identifier by the specification.
const ID_LEN: usize = 20;

/// Why a disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{path}: cannot open the disk: {source}; check the path and its permissions")]
    Open { path: String, source: std::io::Error },
    #[error("{path}: is {what}, not a disk image; give a raw image file or a block device")]
    NotADisk { path: String, what: &'static str },
    #[error("{path}: the disk has {size} bytes, less than one sector of {SECTOR}; make it larger (truncate -s 1M {path})")]
    TooSmall { path: String, size: u64 },
}

/// Whether a guest may change the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAccess {
    ReadWrite,
    ReadOnly,
}

/// The disk behind a block device.
#[derive(Debug)]
pub struct Block {
    file: File,
    access: DiskAccess,
    sectors: u64,
    id: [u8; ID_LEN],
}

impl Block {
    /// Opens a raw image: for writing if its permissions allow, else for reading.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let name = path.display().to_string();
        let open_error = |source| DiskError::Open { path: name.clone(), source };
        // Looked at first: opening a named pipe would wait for its other end.
        let kind = std::fs::metadata(path).map_err(open_error)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "a directory" } else { "a special file" };
            return Err(DiskError::NotADisk { path: name, what });
        }
        let (file, access) = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => (file, DiskAccess::ReadWrite),
            Err(_) => (File::open(path).map_err(open_error)?, DiskAccess::ReadOnly),
        };
        let writable_by_mode = !file.metadata().map_err(open_error)?.permissions().readonly();
        let access = if writable_by_mode { access } else { DiskAccess::ReadOnly };
        let size = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0)).map_err(open_error)?;
        if size < SECTOR {
            return Err(DiskError::TooSmall { path: name, size });
        }
        let mut id = [0; ID_LEN];
        let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for (to, from) in id.iter_mut().zip(file_name.bytes()) {
            *to = from;
        }
        Ok(Self { file, access, sectors: size / SECTOR, id })
    }

    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    pub fn access(&self) -> DiskAccess {
        self.access
    }

    /// Device feature bits, without those of the transport.
    pub fn features(&self) -> u64 {
        let read_only = match self.access {
            DiskAccess::ReadOnly => 1 << VIRTIO_BLK_F_RO,
            DiskAccess::ReadWrite => 0,
        };
        1 << VIRTIO_BLK_F_FLUSH | 1 << VIRTIO_BLK_F_SEG_MAX | read_only
    }

    /// The device's configuration space: capacity, then the longest segment and the number of segments.
    pub fn config(&self) -> [u8; 16] {
        let mut config = [0; 16];
        config[..8].copy_from_slice(&self.sectors.to_le_bytes());
        config[12..].copy_from_slice(&SEGMENTS_MAX.to_le_bytes());
        config
    }

    pub fn id(&self) -> &[u8; ID_LEN] {
        &self.id
    }

    /// Byte offset of `len` bytes at `sector`, if they are all on the disk.
    pub fn offset(&self, sector: u64, len: u64) -> Option<u64> {
        let start = sector.checked_mul(SECTOR)?;
        (start.checked_add(len)? <= self.sectors * SECTOR).then_some(start)
    }

    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub fn flush(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }
}
