//! Virtual-machine extensions: VMCS field encodings, controls and exit reasons.

pub mod controls;
mod exit_reason;

pub use exit_reason::ExitReason;
