//! Whole guests, booted by the program that users run, and what it says when something is wrong.
//!
//! One test program, so that two guests at a time keep two processors busy. It does not link the monitor: everything
//! goes through the command line. Kernels come from `guest/fetch-kernel.sh`, initial RAM disks from
//! `guest/build-initramfs.sh`, firmware from `guest/fetch-firmware.sh`; `make test` runs them before.

mod bad_guests;
mod bad_input;
mod boot;
mod builtin;
mod compat;
mod console;
mod cpu_models;
mod debian;
mod determinism;
mod disk;
mod explain;
mod firmware;
mod help;
mod pae;
mod program;
mod pty;
mod selfcheck;
