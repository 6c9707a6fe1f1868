//! Task, processor and arbitration priority.
//!
//! Source: Intel SDM, "Task and Processor Priorities", "Determination of Arbitration Priority".

use super::LocalApic;
use super::registers::{Register, VectorSet};

impl LocalApic {
    /// Task priority register.
    #[must_use]
    pub fn tpr(&self) -> u8 {
        self.registers.get(Register::TPR) as u8
    }

    /// Write the task priority register.
    pub fn set_tpr(&mut self, value: u8) {
        self.registers.set(Register::TPR, u32::from(value));
    }

    /// CR8: the priority class of the task priority.
    #[must_use]
    pub fn cr8(&self) -> u8 {
        self.tpr() >> 4
    }

    /// Write CR8 (its low four bits); the sub-class becomes 0.
    pub fn set_cr8(&mut self, value: u8) {
        self.set_tpr((value & 0xf) << 4);
    }

    /// Processor priority: the task priority, or the class of what is in service if that is higher.
    #[must_use]
    pub fn ppr(&self) -> u8 {
        let tpr = self.tpr();
        let in_service = self.registers.highest(VectorSet::InService).unwrap_or(0);
        if tpr & 0xf0 >= in_service & 0xf0 { tpr } else { in_service & 0xf0 }
    }

    /// Arbitration priority. (KVM reads 0.)
    pub(crate) fn apr(&self) -> u8 {
        let tpr = self.tpr();
        let in_service = self.registers.highest(VectorSet::InService).unwrap_or(0);
        let request = self.registers.highest(VectorSet::Request).unwrap_or(0);
        if tpr & 0xf0 >= request & 0xf0 && tpr & 0xf0 > in_service & 0xf0 {
            tpr
        } else {
            (tpr & 0xf0).max(in_service & 0xf0).max(request & 0xf0)
        }
    }

    /// The lowest task priority class (CR8 value) at which the highest request would be held back: what KVM writes to the
    /// VMCS as TPR threshold, so that lowering CR8 below it exits. 0 when nothing waits, or when what waits is held back
    /// by an interrupt in service and not by the task priority.
    #[must_use]
    pub fn tpr_threshold(&self) -> u8 {
        let Some(vector) = self.registers.highest(VectorSet::Request) else {
            return 0;
        };
        // KVM's rule: the threshold is in force only while the task priority is what holds the request back.
        if self.tpr() >> 4 < vector >> 4 { 0 } else { vector >> 4 }
    }
}
