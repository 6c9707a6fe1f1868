//! Experiments. May use every tier; nothing uses it.
//!
//! [`bench`] runs the same static program natively, under QEMU and on the modelled machine, and compares wall time.
#![forbid(unsafe_code)]

pub mod bench;
