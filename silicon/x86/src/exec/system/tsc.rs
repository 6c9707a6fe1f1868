//! RDTSC, RDTSCP, RDPMC.

use x86_defs::control::cr4;
use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::{primary, secondary};

use crate::op::Done;
use crate::{Core, Leave, Op};

/// Fraction bits of the TSC multiplier ("TSC Multiplier").
const FRACTION: u32 = 48;

/// The guest's TSC: `host * multiplier / 2^48 + offset`, modulo 2^64.
#[must_use]
pub const fn scale(host: u64, multiplier: u64, offset: u64) -> u64 {
    (((host as u128 * multiplier as u128) >> FRACTION) as u64).wrapping_add(offset)
}

impl Core {
    /// The TSC as the guest reads it now, in ticks ("Time-Stamp Counter Offsetting", "TSC Scaling").
    #[must_use]
    pub fn guest_tsc(&self) -> u64 {
        let controls = &self.vmx.controls;
        let host = self.host_tsc();
        if controls.primary & primary::USE_TSC_OFFSETTING == 0 {
            return host;
        }
        let scaled = controls.secondary & secondary::USE_TSC_SCALING != 0;
        let multiplier = if scaled { controls.tsc_multiplier } else { 1 << FRACTION };
        scale(host, multiplier, controls.tsc_offset)
    }
}

fn may_read(core: &mut Core) -> Result<(), Leave> {
    if core.cr4 & cr4::TSD != 0 && core.mode.cpl != 0 { Err(core.gp0()) } else { Ok(()) }
}

fn read(core: &mut Core) {
    let tsc = core.guest_tsc();
    core.gpr[0] = tsc & 0xffff_ffff;
    core.gpr[2] = tsc >> 32;
}

/// RDTSC.
pub fn rdtsc(core: &mut Core, op: &Op) -> Done {
    may_read(core)?;
    if core.vmx.controls.primary & primary::RDTSC_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Rdtsc, 0));
    }
    read(core);
    Err(Leave::End)
}

/// RDTSCP.
pub fn rdtscp(core: &mut Core, op: &Op) -> Done {
    if core.vmx.controls.secondary & secondary::ENABLE_RDTSCP == 0 {
        return Err(core.ud());
    }
    may_read(core)?;
    if core.vmx.controls.primary & primary::RDTSC_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Rdtscp, 0));
    }
    read(core);
    core.gpr[1] = core.msrs.tsc_aux & 0xffff_ffff;
    Err(Leave::End)
}

/// RDPMC: without RDPMC exiting there is no counter to read.
pub fn rdpmc(core: &mut Core, op: &Op) -> Done {
    if core.cr4 & cr4::PCE == 0 && core.mode.cpl != 0 {
        return Err(core.gp0());
    }
    if core.vmx.controls.primary & primary::RDPMC_EXITING != 0 {
        return Err(core.vmexit(op, ExitReason::Rdpmc, 0));
    }
    Err(core.gp0())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_tsc_is_scaled_in_128_bits_and_then_offset() {
        assert_eq!(scale(1000, 1 << 48, 5), 1005);
        assert_eq!(scale(1000, 1 << 47, 0_u64.wrapping_sub(500)), 0);
        assert_eq!(scale(u64::MAX, 3 << 47, 1), (u64::MAX as u128 * 3 / 2) as u64 + 1);
    }
}
