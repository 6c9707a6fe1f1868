//! Bare-metal guests, made as multiboot images in memory: the demonstration guest, and a builder for small cases.
//!
//! ```
//! use guest_bare::{Mode, case, console};
//!
//! let image = case(Mode::Long64, |a| {
//!     console::print(a, "hello\n")?;
//!     console::exit(a, 0x10)
//! })?;
//! assert_eq!(&image[..4], b"\x7fELF");
//! # Ok::<(), guest_bare::AsmError>(())
//! ```
#![forbid(unsafe_code)]

mod builtin;
pub mod console;
mod entry;
mod image;

/// What the assembler cannot encode: always a defect of the case.
pub use iced_x86::IcedError as AsmError;
/// The assembler that cases are written with.
pub use iced_x86::code_asm;

pub use builtin::{SUCCESS_CODE, builtin_guest};
pub use entry::{DATA, HEAP, Mode, STACK_TOP, case};
pub use image::{Image, Segment};
