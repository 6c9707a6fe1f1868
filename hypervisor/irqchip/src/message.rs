//! Interrupt messages between controllers, and what they mean to a vCPU.
//!
//! Source: Intel SDM, "Advanced Programmable Interrupt Controller (APIC)", sections "Interrupt Command Register (ICR)",
//! "Message Data Register Format"; 82093AA I/O APIC data sheet, "I/O Redirection Table Registers".

/// Delivery mode of a message or of a local vector table entry (bits 10:8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryMode {
    /// To all destinations, with the vector given.
    Fixed,
    /// To one of the destinations.
    LowestPriority,
    /// System management interrupt.
    Smi,
    /// Reserved encoding 3 (remote read on ancient parts): accepted nowhere.
    Reserved,
    /// Non-maskable interrupt; the vector is ignored.
    Nmi,
    /// INIT request.
    Init,
    /// Start-up request; the vector is the page number of the start address. In an I/O APIC entry it is reserved.
    StartUp,
    /// The vector comes from an 8259.
    ExtInt,
}

impl DeliveryMode {
    /// From the three bits of the encoding (higher bits are ignored).
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        match bits & 7 {
            0 => Self::Fixed,
            1 => Self::LowestPriority,
            2 => Self::Smi,
            3 => Self::Reserved,
            4 => Self::Nmi,
            5 => Self::Init,
            6 => Self::StartUp,
            _ => Self::ExtInt,
        }
    }
}

/// How the destination field selects local APICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DestinationMode {
    /// By APIC ID.
    Physical,
    /// By the logical destination register.
    Logical,
}

/// Trigger mode of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriggerMode {
    /// One interrupt for each rising edge.
    Edge,
    /// Interrupts for as long as the line is asserted; the I/O APIC is told of the end of interrupt.
    Level,
}

/// Destination shorthand of the interrupt command register (bits 19:18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shorthand {
    /// The destination field decides.
    None,
    /// The sender.
    SelfOnly,
    /// All, the sender included.
    AllIncludingSelf,
    /// All but the sender.
    AllExcludingSelf,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A local APIC's interrupt command register; its index in the slice of local APICs.
    Vcpu(usize),
    /// The I/O APIC or a message signalled interrupt.
    Device,
}

/// An interrupt message on its way to local APICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Vector; for [`DeliveryMode::StartUp`] the start page.
    pub vector: u8,
    /// What is delivered.
    pub delivery: DeliveryMode,
    /// Destination: 8 bits, or 32 from an x2APIC.
    pub destination: u32,
    /// How `destination` is read.
    pub destination_mode: DestinationMode,
    /// Trigger mode.
    pub trigger: TriggerMode,
    /// INIT level de-assert (obsolete) is the one message that does nothing.
    pub deassert: bool,
    /// Shorthand; [`Shorthand::None`] unless from a local APIC.
    pub shorthand: Shorthand,
    /// One of the destinations is enough, whatever the delivery mode (redirection hint of an MSI address).
    pub redirection_hint: bool,
    /// The sender.
    pub origin: Origin,
}

/// The message that a write to an interrupt command register sends.
pub type IpiRequest = Message;

/// What a vCPU must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A vector was set in the interrupt request register: wake the vCPU and look at
    /// [`LocalApic::highest_deliverable`](crate::LocalApic::highest_deliverable).
    Fixed,
    /// A non-maskable interrupt is to be made pending.
    Nmi,
    /// INIT: the core resets the vCPU (and its local APIC, see [`LocalApic::init`](crate::LocalApic::init)) and waits
    /// for a start-up request, unless it is the bootstrap processor.
    Init,
    /// Start-up request with the start page (the vCPU starts at `page << 12`); ignored unless waiting for one.
    Sipi(u8),
    /// The 8259 pair has an interrupt for this vCPU.
    ExtInt,
    /// System management interrupt. There is no system management mode yet: log and ignore.
    Smi,
}

/// A signal and the vCPU (index of its local APIC) that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VcpuSignal {
    /// Index of the vCPU's local APIC.
    pub vcpu: usize,
    /// What happened.
    pub signal: Signal,
}
