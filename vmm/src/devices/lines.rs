//! Interrupt lines, as devices drive them.
//!
//! A device acts while the hypervisor lends out an exit; what it does to its line is kept here and handed on after.

use std::sync::{Arc, Mutex, PoisonError};

use vm_superio::Trigger;

use crate::vm::LineLevel;

/// A change of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEvent {
    pub gsi: u32,
    pub level: LineLevel,
}

/// Changes that were not handed on yet, in order.
#[derive(Clone, Debug, Default)]
pub struct IrqLines(Arc<Mutex<Vec<LineEvent>>>);

impl IrqLines {
    /// A rising and a falling edge: one interrupt on an edge-triggered pin.
    pub fn pulse(&self, gsi: u32) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The guest can make a device pulse at will within one exit; more than one per line changes nothing.
        if !events.iter().any(|event| event.gsi == gsi) {
            events.push(LineEvent { gsi, level: LineLevel::High });
            events.push(LineEvent { gsi, level: LineLevel::Low });
        }
    }

    /// Takes the changes.
    pub fn take(&self) -> Vec<LineEvent> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One line, for vm-superio's devices.
    pub fn line(&self, gsi: u32) -> Line {
        Line { lines: self.clone(), gsi }
    }
}

/// One interrupt line.
#[derive(Clone, Debug)]
pub struct Line {
    lines: IrqLines,
    gsi: u32,
}

impl Trigger for Line {
    type E = std::convert::Infallible;

    fn trigger(&self) -> Result<(), Self::E> {
        self.lines.pulse(self.gsi);
        Ok(())
    }
}
