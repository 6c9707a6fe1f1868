//! What the floating-point instructions of AVX, FMA and F16C raise, how much memory they touch, and what they leave alone
//! when they raise something.

mod machine;
mod native;

use std::sync::Arc;

use machine::{BUFFER, Machine};
use silicon_x86::Leave;
use silicon_x86::model::Model;
use x86_defs::control::cr4;
use x86_defs::exception::vector;

/// Nothing is mapped above the memory of the machine.
const END: u64 = 0x10000;

// Destination XMM0 or YMM0, source 1 XMM1 or YMM1, source 2 XMM2, YMM2 or memory at RBX.
const VADDPS_YMM: &[u8] = &[0xc5, 0xf4, 0x58, 0xc2];
const VADDPS_XMM: &[u8] = &[0xc5, 0xf0, 0x58, 0xc2];
const VADDSS_XMM: &[u8] = &[0xc5, 0xf2, 0x58, 0xc2];
const VADDPS_M256: &[u8] = &[0xc5, 0xf4, 0x58, 0x03];
const VADDPS_M128: &[u8] = &[0xc5, 0xf0, 0x58, 0x03];
const VADDSS_M32: &[u8] = &[0xc5, 0xf2, 0x58, 0x03];
const VADDSD_M64: &[u8] = &[0xc5, 0xf3, 0x58, 0x03];
const VCOMISS_M32: &[u8] = &[0xc5, 0xf8, 0x2f, 0x03];
const VFMADD231SD_M64: &[u8] = &[0xc4, 0xe2, 0xf1, 0xb9, 0x03];
const VFMADD231PD_M256: &[u8] = &[0xc4, 0xe2, 0xf5, 0xb8, 0x03];
const VCVTPS2PD_M64: &[u8] = &[0xc5, 0xf8, 0x5a, 0x03];
const VCVTPS2PD_M128: &[u8] = &[0xc5, 0xfc, 0x5a, 0x03];
const VCVTDQ2PD_M128: &[u8] = &[0xc5, 0xfe, 0xe6, 0x03];
const VCVTPD2PS_M256: &[u8] = &[0xc5, 0xfd, 0x5a, 0x03];
const VCVTPH2PS_M64: &[u8] = &[0xc4, 0xe2, 0x79, 0x13, 0x03];
const VCVTPH2PS_M128: &[u8] = &[0xc4, 0xe2, 0x7d, 0x13, 0x03];
/// To memory, from YMM1, rounded to nearest.
const VCVTPS2PH_M64: &[u8] = &[0xc4, 0xe3, 0x79, 0x1d, 0x0b, 0];
const VCVTPS2PH_M128: &[u8] = &[0xc4, 0xe3, 0x7d, 0x1d, 0x0b, 0];
const VFMADD213PS_YMM: &[u8] = &[0xc4, 0xe2, 0x75, 0xa8, 0xc2];

const SIGNALLING: u128 = 0x7f80_0001;
const ALL_MASKED: u32 = 0x1f80;
const INVALID: u32 = 1;
const DENORMAL: u32 = 2;
const PRECISION: u32 = 0x20;

fn machine() -> Machine {
    let mut machine = Machine::new();
    let core = &mut machine.core;
    core.model = Arc::new(Model::parse("glassvisor-v3").expect("a known model"));
    core.cr4 |= cr4::OSXSAVE;
    core.xcr0 = 7;
    core.update_mode();
    for i in 0..16 {
        // The same small number in all lanes, so that sums and products are exact.
        let number = u128::from((i as f32 + 1.0).to_bits());
        core.fpu.xmm[i] = number * (1 << 96 | 1 << 64 | 1 << 32 | 1);
        core.fpu.ymm_high[i] = core.fpu.xmm[i];
    }
    machine
}

fn fault_at(machine: &mut Machine, bytes: &[u8], address: u64) -> Option<u8> {
    machine.core.gpr[3] = address;
    match machine.step(bytes) {
        Ok(()) => None,
        Err(Leave::Fault) => Some(machine.core.fault.vector),
        Err(leave) => panic!("{leave:?}"),
    }
}

#[test]
fn memory_operands_have_their_size_and_any_alignment() {
    for (bytes, size) in [
        (VADDPS_M256, 32),
        (VADDPS_M128, 16),
        (VADDSS_M32, 4),
        (VADDSD_M64, 8),
        (VCOMISS_M32, 4),
        (VFMADD231SD_M64, 8),
        (VFMADD231PD_M256, 32),
        (VCVTPS2PD_M64, 8),
        (VCVTPS2PD_M128, 16),
        (VCVTDQ2PD_M128, 16),
        (VCVTPD2PS_M256, 32),
        (VCVTPH2PS_M64, 8),
        (VCVTPH2PS_M128, 16),
        (VCVTPS2PH_M64, 8),
        (VCVTPS2PH_M128, 16),
    ] {
        let mut machine = machine();
        assert_eq!(fault_at(&mut machine, bytes, END - size), None, "{bytes:x?}");
        assert_eq!(fault_at(&mut machine, bytes, END - size + 1), Some(vector::PF), "{bytes:x?}");
        assert_eq!(fault_at(&mut machine, bytes, BUFFER + 1), None, "{bytes:x?}");
    }
}

#[test]
fn an_exception_of_the_highest_lane_stops_all_lanes() {
    for bytes in [VADDPS_YMM, VFMADD213PS_YMM] {
        for (osxmmexcpt, expected) in [(cr4::OSXMMEXCPT, vector::XM), (0, vector::UD)] {
            let mut machine = machine();
            machine.core.cr4 = machine.core.cr4 & !cr4::OSXMMEXCPT | osxmmexcpt;
            machine.core.update_mode();
            machine.core.fpu.mxcsr = ALL_MASKED & !(INVALID << 7);
            machine.core.fpu.ymm_high[2] = SIGNALLING << 96;
            let before = machine.core.fpu.clone();
            assert_eq!(fault_at(&mut machine, bytes, BUFFER), Some(expected), "{bytes:x?}");
            let fpu = &machine.core.fpu;
            assert_eq!((fpu.xmm, fpu.ymm_high), (before.xmm, before.ymm_high), "{bytes:x?}");
            assert_eq!(fpu.mxcsr & 0x3f, INVALID, "{bytes:x?}");
        }
    }
}

#[test]
fn lanes_that_are_not_of_the_operation_raise_nothing() {
    let mut machine = machine();
    machine.core.fpu.mxcsr = ALL_MASKED & !(INVALID << 7);
    machine.core.fpu.ymm_high[2] = SIGNALLING;
    assert_eq!(fault_at(&mut machine, VADDPS_XMM, BUFFER), None);
    assert_eq!(machine.core.fpu.ymm_high[0], 0);
    machine.core.fpu.xmm[2] = SIGNALLING << 32;
    assert_eq!(fault_at(&mut machine, VADDSS_XMM, BUFFER), None);
    assert_eq!(fault_at(&mut machine, VADDPS_XMM, BUFFER), Some(vector::XM));
}

#[test]
fn a_scalar_result_keeps_the_rest_of_source_1() {
    let mut machine = machine();
    machine.core.fpu.xmm[1] = 0x1111_2222_3333_4444_5555_6666_0000_0000 | u128::from(2f32.to_bits());
    machine.core.fpu.xmm[2] = u128::from(3f32.to_bits());
    assert_eq!(fault_at(&mut machine, VADDSS_XMM, BUFFER), None);
    let five = u128::from(5f32.to_bits());
    assert_eq!(machine.core.fpu.xmm[0], 0x1111_2222_3333_4444_5555_6666_0000_0000 | five);
    assert_eq!(machine.core.fpu.ymm_high[0], 0);
}

#[test]
fn a_masked_exception_of_one_lane_and_an_unmasked_one_of_another_are_both_flagged() {
    let mut machine = machine();
    machine.core.fpu.mxcsr = ALL_MASKED & !(INVALID << 7);
    machine.core.fpu.xmm[1] = 1;
    machine.core.fpu.xmm[2] = 0;
    machine.core.fpu.ymm_high[2] = SIGNALLING;
    assert_eq!(fault_at(&mut machine, VADDPS_YMM, BUFFER), Some(vector::XM));
    assert_eq!(machine.core.fpu.mxcsr & 0x3f, INVALID | DENORMAL);
}

#[test]
fn a_store_of_halves_that_faults_leaves_the_flags() {
    let mut machine = machine();
    machine.core.fpu.mxcsr = ALL_MASKED;
    machine.core.fpu.xmm[1] = u128::from(0.1f32.to_bits());
    assert_eq!(fault_at(&mut machine, VCVTPS2PH_M64, END - 4), Some(vector::PF));
    assert_eq!(machine.core.fpu.mxcsr, ALL_MASKED);
    assert_eq!(fault_at(&mut machine, VCVTPS2PH_M64, BUFFER), None);
    assert_eq!(machine.core.fpu.mxcsr, ALL_MASKED | PRECISION);
    assert_eq!(machine.read::<2>(BUFFER), 0x2e66_u16.to_le_bytes());
    // Memory faults come before arithmetic ones.
    machine.core.fpu.mxcsr = ALL_MASKED & !(PRECISION << 7);
    assert_eq!(fault_at(&mut machine, VCVTPS2PH_M64, END - 4), Some(vector::PF));
    assert_eq!(fault_at(&mut machine, VCVTPS2PH_M64, BUFFER), Some(vector::XM));
    assert_eq!(machine.core.fpu.mxcsr & 0x3f, PRECISION);
}
