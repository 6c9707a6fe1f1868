//! Device memory during instruction emulation.
//!
//! The hypervisor emulates an instruction that touched device memory by executing it with this record in place. A
//! device load that the record does not hold yet stops the instruction (nothing changed) and is asked for in
//! [`MmioReplay::wanted`]; the hypervisor gets the value, appends it to [`MmioReplay::reads`] and executes the
//! instruction again. Stores are collected and carried out by the hypervisor after the instruction has completed.
//!
//! Whatever EPT does not map, or not for this access, counts as device memory: only the hypervisor knows whether memory
//! that it has not mapped yet, or write-protects, is behind it.

/// One load from, or store to, device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAccess {
    pub guest_physical: u64,
    pub bytes: u8,
    pub value: u64,
}

/// The record.
#[derive(Clone, Debug, Default)]
pub struct MmioReplay {
    /// Whether device accesses are replayed; otherwise they are EPT violations.
    pub active: bool,
    pub reads: Vec<DeviceAccess>,
    pub cursor: usize,
    pub wanted: Option<DeviceAccess>,
    pub writes: Vec<DeviceAccess>,
}
