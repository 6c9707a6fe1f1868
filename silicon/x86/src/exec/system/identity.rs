//! CPUID, RDPID, XGETBV, XSETBV, GETSEC.

use x86_defs::vmx::ExitReason;
use x86_defs::vmx::controls::secondary;

use super::control::osxsave;
use super::exits::privileged;
use crate::model::Feature;
use crate::op::Done;
use crate::{Core, Op};

/// CPUID.
pub fn cpuid(core: &mut Core, op: &Op) -> Done {
    Err(core.vmexit(op, ExitReason::Cpuid, 0))
}

/// RDPID. `a`: register.
pub fn rdpid(core: &mut Core, op: &Op) -> Done {
    if core.vmx.controls.secondary & secondary::ENABLE_RDTSCP == 0 {
        return Err(core.ud());
    }
    core.gpr[usize::from(op.a)] = core.msrs.tsc_aux;
    Ok(())
}

/// XGETBV: XCR0, or with ECX = 1 what of it is in use.
pub fn xgetbv(core: &mut Core, _: &Op) -> Done {
    if !osxsave(core) {
        return Err(core.ud());
    }
    let value = match core.gpr[1] as u32 {
        0 => core.xcr0,
        1 if core.model.has(Feature::Xgetbv1) => core.xcr0 & core.xinuse_with_mxcsr(),
        _ => return Err(core.gp0()),
    };
    core.gpr[0] = value & 0xffff_ffff;
    core.gpr[2] = value >> 32;
    Ok(())
}

/// XSETBV exits unconditionally; the hypervisor sets XCR0 with [`Core::set_xcr0`].
pub fn xsetbv(core: &mut Core, op: &Op) -> Done {
    if !osxsave(core) {
        return Err(core.ud());
    }
    privileged(core)?;
    Err(core.vmexit(op, ExitReason::Xsetbv, 0))
}

/// GETSEC: #UD without CR4.SMXE, else it exits.
pub fn getsec(core: &mut Core, op: &Op) -> Done {
    if core.cr4 & x86_defs::control::cr4::SMXE == 0 {
        return Err(core.ud());
    }
    Err(core.vmexit(op, ExitReason::Getsec, 0))
}

#[cfg(test)]
mod tests {
    use x86_defs::control::cr4;
    use x86_defs::exception::vector;
    use x86_defs::segment::{index, rights};

    use super::*;
    use crate::Leave;
    use crate::core::test;
    use crate::exec::run_test::run;
    use crate::model::Model;

    const RDPID_R9: &[u8] = &[0xf3, 0x41, 0x0f, 0xc7, 0xf9];
    const XSETBV: &[u8] = &[0x0f, 0x01, 0xd1];

    #[test]
    fn rdpid_reads_tsc_aux_at_any_privilege_where_the_control_lets_it() {
        let mut core = test::core();
        core.msrs.tsc_aux = 0x8000_1005;
        core.gpr[9] = u64::MAX;
        assert_eq!(run(&mut core, RDPID_R9), Err(Leave::Fault));
        assert_eq!(core.fault.vector, vector::UD);
        core.vmx.controls.secondary = secondary::ENABLE_RDTSCP;
        core.seg[index::SS].rights |= rights::DPL;
        core.cr4 |= cr4::TSD;
        core.update_mode();
        assert_eq!(run(&mut core, RDPID_R9), Ok(()));
        assert_eq!(core.gpr[9], 0x8000_1005);
    }

    #[test]
    fn xsetbv_exits_after_the_checks_of_cr4_and_privilege_only() {
        let mut core = test::core();
        core.model = std::sync::Arc::new(Model::parse("glassvisor-v3").unwrap());
        assert_eq!(run(&mut core, XSETBV), Err(Leave::Fault));
        assert_eq!(core.fault.vector, vector::UD);
        core.cr4 |= cr4::OSXSAVE;
        core.gpr[1] = 17;
        assert_eq!(run(&mut core, XSETBV), Err(Leave::Exit));
        assert_eq!(core.vmx.exit.reason, Some(ExitReason::Xsetbv));
        core.seg[index::SS].rights |= rights::DPL;
        core.update_mode();
        assert_eq!(run(&mut core, XSETBV), Err(Leave::Fault));
        assert_eq!(core.fault.vector, vector::GP);
    }
}
