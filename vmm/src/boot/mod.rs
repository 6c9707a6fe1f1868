//! Boot loaders: each puts a kernel into guest memory and says in which state its protocol starts the processor.
//!
//! Sources: Linux kernel documentation "The Linux/x86 Boot Protocol"; Xen documentation "x86/HVM direct boot ABI";
//! "Multiboot Specification version 0.6.96".

mod bzimage;
mod elf;
mod entry;
mod error;
pub mod firmware;
mod foreign;
mod layout;
mod linux;
mod multiboot;
mod placement;
mod pvh;

pub use entry::{Entry, EntryMode};
pub use error::BootError;
pub use foreign::{Sighting, identify};
pub use placement::{Initrd, PlacedInitrd};

use crate::memory::GuestRam;

/// The protocol by which a kernel is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Linux bzImage, 64-bit entry, or 32-bit entry for a 32-bit kernel.
    BzImage,
    /// ELF64 with a PVH entry note.
    Pvh,
    /// ELF64 Linux without the note, 64-bit entry.
    LinuxElf,
    /// Multiboot version 1.
    Multiboot,
}

/// What to boot.
#[derive(Clone, Copy, Debug)]
pub struct BootSource<'a> {
    /// Name of the kernel for messages.
    pub kernel_path: &'a str,
    pub kernel: &'a [u8],
    pub initrd: Option<Initrd<'a>>,
    pub command_line: &'a str,
    /// Guest-physical address of the ACPI root pointer.
    pub rsdp: u64,
}

impl BootSource<'_> {
    fn path(&self) -> String {
        self.kernel_path.to_owned()
    }

    fn damaged(&self, what: impl Into<String>) -> BootError {
        BootError::Damaged { path: self.path(), what: what.into() }
    }

    fn unsupported(&self, what: impl Into<String>) -> BootError {
        BootError::Unsupported { path: self.path(), what: what.into() }
    }
}

/// A loaded guest.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    pub protocol: Protocol,
    pub entry: Entry,
    /// First address after the kernel, with the memory that it needs to unpack itself.
    pub kernel_end: u64,
    pub initrd: Option<PlacedInitrd>,
}

/// Recognises the kernel's format and loads it.
pub fn load(ram: &GuestRam, source: &BootSource<'_>) -> Result<Loaded, BootError> {
    let loaded = match source.kernel {
        [0x7f, b'E', b'L', b'F', class, ..] => match class {
            2 => elf::load(ram, source)?,
            _ => multiboot::load(ram, source)?,
        },
        kernel if bzimage::is_one(kernel) => bzimage::load(ram, source)?,
        kernel if multiboot::find_header(kernel).is_some() => multiboot::load(ram, source)?,
        kernel => {
            let Sighting { looks_like, advice } = identify(kernel);
            return Err(BootError::Foreign { path: source.path(), looks_like, advice });
        }
    };
    loaded.entry.write_tables(ram)?;
    Ok(loaded)
}
