//! Virtual-machine extensions: VMCS field encodings, controls, exit reasons, errors and capability MSRs.

pub mod capability;
mod control_table;
pub mod controls;
mod exit_reason;
mod field;
mod instruction_error;
mod presence;

pub use control_table::{CONTROLS, Control, Group};
pub use exit_reason::ExitReason;
pub use field::{Field, Kind, Part, Width};
pub use instruction_error::InstructionError;
pub use presence::Needs;
