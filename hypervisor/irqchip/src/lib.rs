//! KVM's in-kernel interrupt controllers as pure state machines.
//!
//! Local APICs, an I/O APIC, a pair of 8259 interrupt controllers, an 8254 timer and the routing between them. There is
//! no thread and no clock: every call that depends on time takes a [`Now`], and every effect on a virtual processor
//! comes back as a [`VcpuSignal`]. The same calls in the same order give the same state, which is plain data and can be
//! hashed.
//!
//! [`Irqchip`] owns the whole and is what a hypervisor core uses; each controller can be used (and is tested) alone.
#![forbid(unsafe_code)]

pub mod ioapic;
mod irqchip;
pub mod lapic;
mod message;
mod msi;
mod now;
pub mod pic;
pub mod pit;
mod routing;

pub use irqchip::{
    Claim, IrqStatus, Irqchip, IrqchipConfig, PendingInterrupt, PitReinjection, PvIpiError, SetIrqError,
};
pub use lapic::{
    ApicMode, EoiBroadcast, Features, GeneralProtection, LocalApic, Lvt, MsrError, PvEoiFlag, TimerDeadline, deliver,
};
pub use message::{
    DeliveryMode, DestinationMode, IpiRequest, Message, Origin, Shorthand, Signal, TriggerMode, VcpuSignal,
};
pub use msi::{Msi, MsiDestination, MsiError};
pub use now::Now;
pub use routing::{IrqSource, Level, PicPin, Route, Routing};
