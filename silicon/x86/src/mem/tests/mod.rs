//! Behaviour of translation that needs a processor but no hypervisor.

mod alignment;
mod extended;
mod keys;
mod masking;
mod pae;
mod voiding;
mod wide;

use std::sync::Arc;

use x86_defs::segment::{index, rights};

use crate::core::test;
use crate::model::Model;
use crate::{Core, Leave};

/// DS, for accesses by linear address.
const DS: u8 = index::DS as u8;

/// The 64-bit core of unit tests, with further features.
fn core_with(features: &str) -> Core {
    let mut core = test::core();
    core.model = Arc::new(Model::parse(&format!("glassvisor-v2,{features}")).unwrap());
    core
}

fn set_cpl(core: &mut Core, cpl: u32) {
    for i in [index::CS, index::SS] {
        let s = &mut core.seg[i];
        s.rights = (s.rights & !rights::DPL) | cpl << rights::DPL_SHIFT;
    }
    core.update_mode();
}

/// Guest-physical address of the last entry for a page of the first MiB.
fn entry(linear: u64) -> u64 {
    test::TABLES + 0x3000 + (linear >> 12) * 8
}

/// Vector and error code of the fault.
fn fault<T: std::fmt::Debug>(core: &Core, done: Result<T, Leave>) -> (u8, u32) {
    assert!(matches!(done, Err(Leave::Fault)), "{done:?}");
    (core.fault.vector, core.fault.error_code.unwrap_or(0))
}
