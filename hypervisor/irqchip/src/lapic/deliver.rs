//! Delivery of a message to the local APICs that it selects.
//!
//! Source: Intel SDM, "Issuing Interprocessor Interrupts", "Local and Remote Interrupt Delivery"; KVM's choice among
//! several with lowest-priority delivery is by vector hashing (module parameter `vector_hashing`).

use super::LocalApic;
use super::accept::Acceptance;
use crate::message::{DeliveryMode, Message, Origin, Shorthand, Signal, TriggerMode, VcpuSignal};

/// What became of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Delivered {
    /// Local APICs that accepted it anew.
    pub accepted: u32,
    /// Local APICs that had the same vector waiting.
    pub coalesced: u32,
}

impl Delivered {
    /// Whether any local APIC took it.
    #[must_use]
    pub const fn reached_any(self) -> bool {
        self.accepted + self.coalesced > 0
    }

    pub(crate) fn count(&mut self, acceptance: Acceptance) {
        match acceptance {
            Acceptance::Accepted => self.accepted += 1,
            Acceptance::Coalesced => self.coalesced += 1,
            Acceptance::Refused => {}
        }
    }
}

/// Deliver a message: vectors enter the request registers, and everything that a vCPU must notice is appended to
/// `signals`, in the order of the slice.
pub fn deliver(message: &Message, apics: &mut [LocalApic], signals: &mut Vec<VcpuSignal>) -> Delivered {
    let mut delivered = Delivered::default();
    let lowest = message.delivery == DeliveryMode::LowestPriority || message.redirection_hint;
    if lowest && message.shorthand != Shorthand::SelfOnly {
        if let Some(vcpu) = arbitrate(message, apics) {
            deliver_to(message, vcpu, &mut apics[vcpu], signals, &mut delivered);
        }
    } else {
        for (vcpu, apic) in apics.iter_mut().enumerate() {
            if selects(message, vcpu, apic) {
                deliver_to(message, vcpu, apic, signals, &mut delivered);
            }
        }
    }
    delivered
}

fn selects(message: &Message, vcpu: usize, apic: &LocalApic) -> bool {
    if !apic.hardware_enabled() {
        return false;
    }
    let is_sender = message.origin == Origin::Vcpu(vcpu);
    match message.shorthand {
        Shorthand::None => apic.is_destination(message),
        Shorthand::SelfOnly => is_sender,
        Shorthand::AllIncludingSelf => true,
        Shorthand::AllExcludingSelf => !is_sender,
    }
}

/// One of the destinations, by the vector: neighbouring vectors go to neighbouring processors, and the same vector
/// always to the same one while the set of destinations stays.
fn arbitrate(message: &Message, apics: &[LocalApic]) -> Option<usize> {
    let candidates = || {
        apics
            .iter()
            .enumerate()
            .filter(|(vcpu, apic)| selects(message, *vcpu, apic) && apic.software_enabled())
            .map(|(vcpu, _)| vcpu)
    };
    let count = candidates().count();
    if count == 0 {
        return None;
    }
    candidates().nth(usize::from(message.vector) % count)
}

/// Deliver to one local APIC, which the message selects.
pub(crate) fn deliver_to(
    message: &Message,
    vcpu: usize,
    apic: &mut LocalApic,
    signals: &mut Vec<VcpuSignal>,
    delivered: &mut Delivered,
) {
    let signal = match message.delivery {
        DeliveryMode::Fixed | DeliveryMode::LowestPriority => {
            let acceptance = apic.accept_fixed(message.vector, message.trigger);
            delivered.count(acceptance);
            // A refused vector may have requested the error interrupt.
            let requested = acceptance != Acceptance::Refused || apic.highest_deliverable().is_some();
            requested.then_some(Signal::Fixed)
        }
        DeliveryMode::Nmi => Some(Signal::Nmi),
        DeliveryMode::Smi => Some(Signal::Smi),
        // INIT level de-assert synchronised arbitration IDs on ancient parts; it resets nothing.
        DeliveryMode::Init => (message.trigger == TriggerMode::Edge || !message.deassert).then_some(Signal::Init),
        DeliveryMode::StartUp => Some(Signal::Sipi(message.vector)),
        DeliveryMode::ExtInt => Some(Signal::ExtInt),
        DeliveryMode::Reserved => None,
    };
    if let Some(signal) = signal {
        if signal != Signal::Fixed {
            delivered.accepted += 1;
        }
        signals.push(VcpuSignal { vcpu, signal });
    }
}
