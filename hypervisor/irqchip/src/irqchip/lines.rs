//! Interrupt lines and messages from devices.

use super::Irqchip;
use crate::ioapic::PinOutcome;
use crate::lapic::{Delivered, deliver};
use crate::msi::{Msi, MsiError};
use crate::pic::Latched;
use crate::routing::{IrqSource, Level, Route};

/// What a change of a line led to (the status of `KVM_IRQ_LINE_STATUS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IrqStatus {
    /// Masked or without effect: no vCPU will see it (KVM's negative status).
    Ignored,
    /// Coalesced with one that waits (0).
    Coalesced,
    /// Delivered to so many vCPUs (positive).
    Delivered(u32),
}

impl IrqStatus {
    /// The better of two targets' outcomes; deliveries add up.
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Delivered(a), Self::Delivered(b)) => Self::Delivered(a + b),
            (Self::Delivered(n), _) | (_, Self::Delivered(n)) => Self::Delivered(n),
            (Self::Coalesced, _) | (_, Self::Coalesced) => Self::Coalesced,
            (Self::Ignored, Self::Ignored) => Self::Ignored,
        }
    }
}

impl From<Delivered> for IrqStatus {
    fn from(delivered: Delivered) -> Self {
        match (delivered.accepted, delivered.coalesced) {
            (0, 0) => Self::Ignored,
            (0, _) => Self::Coalesced,
            (n, _) => Self::Delivered(n),
        }
    }
}

/// Why a line cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SetIrqError {
    /// The GSI has no route.
    #[error("GSI {gsi} has no route")]
    NoRoute {
        /// The GSI.
        gsi: u32,
    },
    /// A route to a message that cannot be sent.
    #[error(transparent)]
    Msi(#[from] MsiError),
}

impl Irqchip {
    /// The VMM sets the level of a global system interrupt (`KVM_IRQ_LINE`).
    ///
    /// # Errors
    ///
    /// [`SetIrqError`]; nothing has changed then, unless the GSI has other routes as well.
    pub fn set_irq_line(&mut self, gsi: u32, level: Level) -> Result<IrqStatus, SetIrqError> {
        self.drive(gsi, IrqSource::Vmm, level)
    }

    /// The same for any source: a line is asserted while any source asserts it.
    ///
    /// # Errors
    ///
    /// As [`set_irq_line`](Self::set_irq_line).
    pub fn drive(&mut self, gsi: u32, source: IrqSource, level: Level) -> Result<IrqStatus, SetIrqError> {
        let count = self.routing.get(gsi).len();
        if count == 0 {
            return Err(SetIrqError::NoRoute { gsi });
        }
        let mut status = IrqStatus::Ignored;
        for index in 0..count {
            let outcome = match self.routing.get(gsi)[index] {
                Route::Pic(pin) => {
                    let latched = self.pic.set_pin(pin, source, level);
                    self.follow_pic_output();
                    match latched {
                        Latched::New => IrqStatus::Delivered(1),
                        Latched::Coalesced => IrqStatus::Coalesced,
                        Latched::Masked => IrqStatus::Ignored,
                        Latched::Lowered => IrqStatus::Delivered(1),
                    }
                }
                Route::Ioapic(pin) => self.drive_ioapic(pin, source, level),
                Route::Msi(msi) if level == Level::High => self.send_msi(msi)?.into(),
                Route::Msi(_) => IrqStatus::Ignored,
            };
            status = status.merge(outcome);
        }
        Ok(status)
    }

    fn drive_ioapic(&mut self, pin: u8, source: IrqSource, level: Level) -> IrqStatus {
        let Self { ioapic, lapics, outbox, .. } = self;
        let outcome = ioapic.set_pin(pin, source, level, &mut |message| deliver(message, lapics, outbox));
        match outcome {
            PinOutcome::Sent(delivered) => delivered.into(),
            PinOutcome::NoEdge => IrqStatus::Coalesced,
            PinOutcome::Lowered => IrqStatus::Delivered(1),
            PinOutcome::Held | PinOutcome::NoSuchPin => IrqStatus::Ignored,
        }
    }

    /// A device sends a message signalled interrupt (`KVM_SIGNAL_MSI`).
    ///
    /// # Errors
    ///
    /// [`MsiError`].
    pub fn send_msi(&mut self, msi: Msi) -> Result<Delivered, MsiError> {
        let message = msi.message(self.msi_destination)?;
        Ok(self.send(&message))
    }
}
