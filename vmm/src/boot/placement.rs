//! Where the initrd and the command line go.

use super::{BootError, layout};
use crate::memory::{GuestRam, LOW_RAM_END};

const PAGE: u64 = 4096;

/// An initrd in guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedInitrd {
    pub start: u64,
    pub size: u64,
}

/// An initrd as given: its name for messages, and its content.
#[derive(Clone, Copy, Debug)]
pub struct Initrd<'a> {
    pub path: &'a str,
    pub bytes: &'a [u8],
}

/// Puts the initrd as high as memory and the kernel (`highest`, the last byte that it may use) allow, and never below
/// `kernel_end`.
pub fn place_initrd(
    ram: &GuestRam,
    initrd: Initrd<'_>,
    kernel_end: u64,
    highest: u64,
) -> Result<PlacedInitrd, BootError> {
    let size = initrd.bytes.len() as u64;
    let path = || initrd.path.to_owned();
    if size == 0 {
        return Err(BootError::InitrdEmpty { path: path() });
    }
    let kernel_end = kernel_end.next_multiple_of(PAGE);
    let ceiling = LOW_RAM_END.min(highest.saturating_add(1));
    let limit = ceiling.min(ram.low_end());
    let start = limit.checked_sub(size).map(|start| start & !(PAGE - 1)).filter(|&start| start >= kernel_end);
    let Some(start) = start else {
        let need = kernel_end.saturating_add(size).next_multiple_of(1 << 20);
        return Err(if need > ceiling {
            BootError::InitrdNeverFits { path: path(), size, kernel_end, limit: ceiling }
        } else {
            BootError::InitrdTooLarge { path: path(), size, kernel_end, limit, need }
        });
    };
    ram.write(start, initrd.bytes)?;
    Ok(PlacedInitrd { start, size })
}

/// Checks a command line of at most `max` bytes (without the final NUL), and writes it with the NUL to `gpa`.
pub fn place_command_line(ram: &GuestRam, command_line: &str, gpa: u64, max: usize) -> Result<(), BootError> {
    let max = max.min(layout::COMMAND_LINE_ROOM - 1);
    if let Some(at) = command_line.find('\0') {
        return Err(BootError::CommandLineNul { at });
    }
    if command_line.len() > max {
        return Err(BootError::CommandLineTooLong { len: command_line.len(), max });
    }
    ram.write(gpa, command_line.as_bytes())?;
    ram.write(gpa + command_line.len() as u64, &[0])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_initrd_goes_as_high_as_it_may() {
        let ram = GuestRam::new(64 * MIB).unwrap();
        let bytes = vec![7; 5000];
        let initrd = Initrd { path: "i", bytes: &bytes };
        assert_eq!(place_initrd(&ram, initrd, MIB, u64::MAX).unwrap().start, 64 * MIB - 8192);
        assert_eq!(place_initrd(&ram, initrd, MIB, 32 * MIB - 1).unwrap().start, 32 * MIB - 8192);
    }

    #[test]
    fn an_initrd_that_does_not_fit_says_how_much_memory_would_do() {
        let ram = GuestRam::new(4 * MIB).unwrap();
        let bytes = vec![7; 3 * MIB as usize];
        let initrd = Initrd { path: "i", bytes: &bytes };
        let error = place_initrd(&ram, initrd, 2 * MIB, u64::MAX).unwrap_err();
        assert!(error.to_string().contains("--memory 5M"), "{error}");
        let error = place_initrd(&ram, initrd, 2 * MIB, 4 * MIB - 1).unwrap_err();
        assert!(matches!(error, BootError::InitrdNeverFits { .. }), "{error}");
        let enough = GuestRam::new(5 * MIB).unwrap();
        place_initrd(&enough, initrd, 2 * MIB, u64::MAX).unwrap();
    }

    #[test]
    fn command_lines_with_nul_or_too_long_are_refused() {
        let ram = GuestRam::new(4 * MIB).unwrap();
        assert!(matches!(place_command_line(&ram, "a\0b", 0, 9), Err(BootError::CommandLineNul { at: 1 })));
        assert!(matches!(
            place_command_line(&ram, "abcd", 0, 3),
            Err(BootError::CommandLineTooLong { len: 4, max: 3 })
        ));
        place_command_line(&ram, "abc", 0, 3).unwrap();
    }
}
