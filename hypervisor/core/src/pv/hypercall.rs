//! KVM's hypercalls: number in RAX, arguments in RBX, RCX, RDX, RSI; the result in RAX.

use irqchip::Irqchip;

use crate::vcpu::Vcpu;

pub const VAPIC_POLL_IRQ: u64 = 1;
pub const KICK_CPU: u64 = 5;
pub const CLOCK_PAIRING: u64 = 9;
pub const SEND_IPI: u64 = 10;
pub const SCHED_YIELD: u64 = 11;

const ENOSYS: i64 = -1000;
const EPERM: i64 = -1;
const EINVAL: i64 = -22;
const EOPNOTSUPP: i64 = -95;

/// What a hypercall asks of other vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    /// Wake the vCPU with this APIC id from HLT.
    Kick {
        apic_id: u32,
    },
    /// The vCPU gives up the rest of its slice.
    Yield,
}

impl Vcpu {
    /// Carries out the hypercall in the registers and sets RAX.
    pub(crate) fn hypercall(&mut self, irqchip: &mut Irqchip) -> Effect {
        let core = &self.processor.core;
        let long = core.mode.is_64();
        let argument = |slot: usize| if long { core.gpr[slot] } else { core.gpr[slot] & 0xffff_ffff };
        let (number, a0, a1, a2, a3) = (argument(0), argument(3), argument(1), argument(2), argument(6));
        let privileged = core.cpl() == 0;
        *self.statistics.hypercalls.entry(number).or_default() += 1;
        let mut effect = Effect::None;
        let result: i64 = if !privileged {
            EPERM
        } else {
            match number {
                VAPIC_POLL_IRQ => 0,
                KICK_CPU => {
                    effect = Effect::Kick { apic_id: a1 as u32 };
                    0
                }
                SEND_IPI => {
                    let bitmap = if long {
                        u128::from(a0) | u128::from(a1) << 64
                    } else {
                        u128::from(a0) | u128::from(a1) << 32
                    };
                    match irqchip.send_pv_ipi(self.index, bitmap, a2 as u32, a3) {
                        Ok(count) => i64::from(count),
                        Err(_) => EINVAL,
                    }
                }
                SCHED_YIELD => {
                    effect = Effect::Yield;
                    0
                }
                CLOCK_PAIRING => EOPNOTSUPP,
                _ => ENOSYS,
            }
        };
        self.processor.core.gpr[0] = if long { result as u64 } else { result as u64 & 0xffff_ffff };
        effect
    }
}
