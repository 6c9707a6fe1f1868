//! Extended state: XCR0, XSS, CPUID leaf 0xd, and the XSAVE family.

use hypervisor::VmConfig;
use iced_x86::code_asm::*;
use x86_defs::vmx::ExitReason;

use crate::case::Case;
use crate::machine::{HEAP, Machine, config};

const OSXSAVE: i32 = 1 << 18;
const CET: i32 = 1 << 23;
const TS: i32 = 1 << 3;
const XSS: u32 = 0xda0;
const COMPACTED: u64 = 1 << 63;
const UD: u64 = 6;
const NM: u64 = 7;
const GP: u64 = 13;
/// Areas: what the host prepares, and what the guest saves.
const FROM: u64 = HEAP;
const TO: u64 = HEAP + 0x1000;

fn machine(cpu: &str, body: impl FnOnce(&mut Case)) -> Machine {
    Machine::with(VmConfig { cpu: cpu.into(), ..config() }, 1, body)
}

fn finished(body: impl FnOnce(&mut Case)) -> Machine {
    let mut m = machine("glassvisor-v3", body);
    m.finish();
    m
}

/// CR4.OSXSAVE on; clobbers RAX.
fn enable(c: &mut Case) {
    emit!(c; mov(rax, cr4); or(rax, OSXSAVE); mov(cr4, rax));
}

/// XSETBV; clobbers RAX, RCX and RDX.
fn set_xcr(c: &mut Case, index: u32, value: u64) {
    emit!(c; mov(ecx, index); mov(eax, value as u32); mov(edx, (value >> 32) as u32); xsetbv());
}

/// RAX = XCR0, or with 1 what of it is in use; clobbers RCX and RDX.
fn get_xcr(c: &mut Case, index: u32) {
    emit!(c; mov(ecx, index); xgetbv(); shl(rdx, 32); or(rax, rdx));
}

/// EDX:EAX for the instructions that save and restore, and RBX.
fn operands(c: &mut Case, components: u32, area: u64) {
    emit!(c; mov(eax, components); xor(edx, edx); mov(rbx, area));
}

fn vectors(m: &Machine) -> Vec<u64> {
    m.faults().iter().map(|fault| fault.vector).collect()
}

/// An area with numbers in all vector registers.
fn area(xstate_bv: u64, xcomp_bv: u64) -> Vec<u8> {
    let mut area = vec![0; 832];
    let mut put = |at: usize, value: u64| area[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, 0x37f);
    put(24, 0x1fa0);
    put(512, xstate_bv);
    put(520, xcomp_bv);
    for i in 0..16 {
        put(160 + 16 * i, 0x100 + i as u64);
        put(576 + 16 * i, 0x200 + i as u64);
    }
    area
}

#[test]
fn xsetbv_takes_what_the_model_has_and_faults_on_the_rest() {
    let m = finished(|c| {
        enable(c);
        get_xcr(c, 0);
        c.result(0, rax);
        set_xcr(c, 0, 7);
        for (index, value) in [(0, 0), (0, 2), (0, 6), (0, 5), (0, 0xf), (0, 7 | 1 << 63), (1, 7)] {
            c.faulting(|c| set_xcr(c, index, value));
        }
        get_xcr(c, 0);
        c.result(1, rax);
        set_xcr(c, 0, 3);
        get_xcr(c, 0);
        c.result(2, rax);
        c.faulting(|c| get_xcr(c, 2));
    });
    assert_eq!(m.results(), [1, 7, 3]);
    assert_eq!(vectors(&m), [GP; 8]);
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::Xsetbv], 9);
}

#[test]
fn cpuid_shows_osxsave_and_sizes_of_what_is_enabled() {
    let mut slot = 0;
    let m = finished(|c| {
        let mut cpuid = |c: &mut Case, leaf: u32, subleaf: u32| {
            emit!(c; mov(eax, leaf); mov(ecx, subleaf); cpuid());
            for register in [rax, rbx, rcx, rdx] {
                c.result(slot, register);
                slot += 1;
            }
        };
        cpuid(c, 1, 0);
        enable(c);
        cpuid(c, 1, 0);
        cpuid(c, 0xd, 0);
        set_xcr(c, 0, 7);
        cpuid(c, 0xd, 0);
        cpuid(c, 0xd, 1);
        cpuid(c, 0xd, 2);
        cpuid(c, 0xd, 3);
    });
    assert_eq!((m.result(2) >> 26 & 3, m.result(6) >> 26 & 3), (0b01, 0b11), "OSXSAVE follows CR4");
    let leaf = |n: u64| std::array::from_fn(|i| m.result(4 * n + i as u64));
    assert_eq!(leaf(2), [7, 576, 832, 0]);
    assert_eq!(leaf(3), [7, 832, 832, 0]);
    assert_eq!(leaf(4), [0b1111, 832, 0, 0]);
    assert_eq!(leaf(5), [256, 576, 0, 0]);
    assert_eq!(leaf(6), [0; 4]);
}

#[test]
fn vectors_and_saving_need_osxsave_xcr0_and_a_clear_ts() {
    let m = finished(|c| {
        let each = |c: &mut Case| {
            c.faulting(|c| emit!(c; vaesenc(xmm1, xmm2, xmm3)));
            c.faulting(|c| {
                operands(c, 7, TO);
                emit!(c; xsave64(ptr(rbx)));
            });
        };
        c.faulting(|c| get_xcr(c, 0));
        c.faulting(|c| set_xcr(c, 0, 7));
        each(c);
        enable(c);
        set_xcr(c, 0, 3);
        each(c);
        set_xcr(c, 0, 7);
        emit!(c; mov(rax, cr0); or(rax, TS); mov(cr0, rax));
        each(c);
        emit!(c; clts());
        each(c);
        emit!(c; mov(rax, cr4); and(rax, !OSXSAVE); mov(cr4, rax));
        each(c);
    });
    assert_eq!(vectors(&m), [UD, UD, UD, UD, UD, NM, NM, UD, UD]);
}

#[test]
fn state_goes_through_all_formats() {
    let mut m = machine("glassvisor-v3", |c| {
        enable(c);
        set_xcr(c, 0, 7);
        operands(c, 7, FROM);
        emit!(c; xrstor64(ptr(rbx)));
        get_xcr(c, 1);
        c.result(0, rax);
        for (i, components) in [(0, 7), (1, 6), (2, 5), (3, 7)] {
            operands(c, components, TO + 0x400 * i);
            match i {
                0 => emit!(c; xsave64(ptr(rbx))),
                1 => emit!(c; xsaveopt64(ptr(rbx))),
                2 => emit!(c; xsavec64(ptr(rbx))),
                _ => emit!(c; xsaves64(ptr(rbx))),
            }
        }
        // SSE goes back to its initial state; AVX stays.
        operands(c, 2, FROM + 0x400);
        emit!(c; xrstors64(ptr(rbx)));
        get_xcr(c, 1);
        c.result(1, rax);
        operands(c, 7, TO + 0x1000);
        emit!(c; xsavec64(ptr(rbx)));
    });
    m.write(FROM, &area(0b110, 0));
    m.write(FROM + 0x400, &area(0b101, COMPACTED | 7));
    m.finish();
    assert_eq!(m.results(), [0b110, 0b100]);
    let headers = [0, 1, 2, 3, 4].map(|i| (m.read_u64(TO + 0x400 * i + 512), m.read_u64(TO + 0x400 * i + 520)));
    assert_eq!(
        headers,
        [(0b110, 0), (0b110, 0), (0b100, COMPACTED | 5), (0b110, COMPACTED | 7), (0b100, COMPACTED | 7)]
    );
    for (i, sse) in [(0, 0x103), (1, 0x103), (2, 0), (3, 0x103)] {
        assert_eq!(m.read_u64(TO + 0x400 * i + 160 + 48), sse, "area {i}");
        assert_eq!(m.read_u64(TO + 0x400 * i + 576 + 48), 0x203, "area {i}");
    }
    assert_eq!(m.read_u64(TO + 24) as u32, 0x1fa0);
    let core = &m.vm.vcpu(0).processor.core;
    assert_eq!((core.fpu.mxcsr, core.fpu.xmm[3], core.fpu.ymm_high[3]), (0x1f80, 0, 0x203));
}

#[test]
fn bad_areas_are_general_protection_faults() {
    let mut m = machine("glassvisor-v3", |c| {
        enable(c);
        set_xcr(c, 0, 3);
        for i in 0..5 {
            c.faulting(|c| {
                operands(c, 7, FROM + 0x400 * i);
                emit!(c; xrstor64(ptr(rbx)));
            });
        }
        c.faulting(|c| {
            operands(c, 7, FROM + 0x1400);
            emit!(c; xrstors64(ptr(rbx)));
        });
        for _ in 0..2 {
            c.faulting(|c| {
                operands(c, 7, TO + 16);
                emit!(c; xsave64(ptr(rbx)));
            });
        }
        // The one that is good, at the end.
        operands(c, 7, FROM + 0x1400);
        emit!(c; xrstor64(ptr(rbx)));
    });
    for (i, (xstate_bv, xcomp_bv)) in
        [(0b100, 0), (0, 2), (0, COMPACTED | 4), (1, COMPACTED | 2), (COMPACTED, COMPACTED | 3), (0b11, 0)]
            .into_iter()
            .enumerate()
    {
        m.write(FROM + 0x400 * i as u64, &area(xstate_bv, xcomp_bv));
    }
    m.finish();
    assert_eq!(vectors(&m), [GP; 8]);
    assert_eq!(m.vm.vcpu(0).processor.core.fpu.xmm[3], 0x103);
}

#[test]
fn xss_has_no_component_and_xsaves_does_not_exit() {
    let m = finished(|c| {
        enable(c);
        set_xcr(c, 0, 7);
        c.write_msr(XSS, 0);
        for value in [1, 1 << 8, 1 << 11, 1 << 63] {
            c.faulting(|c| c.write_msr(XSS, value));
        }
        c.read_msr(XSS);
        c.result(0, rax);
        operands(c, u32::MAX, TO);
        emit!(c; xsaves64(ptr(rbx)));
    });
    assert_eq!(m.result(0), 0);
    assert_eq!(vectors(&m), [GP; 4]);
    assert_eq!(m.read_u64(TO + 520), COMPACTED | 7);
    let exits = &m.vm.statistics().vcpus[0].exits;
    assert!(!exits.contains_key(&ExitReason::Xsaves) && !exits.contains_key(&ExitReason::Xrstors));
}

#[test]
fn a_processor_without_xsave_refuses_all_of_it_and_cet_is_on_none() {
    let set_cr4 = |c: &mut Case, bit: i32| c.faulting(|c| emit!(c; mov(rax, cr4); or(rax, bit); mov(cr4, rax)));
    let mut m = machine("glassvisor-v2", |c| {
        set_cr4(c, OSXSAVE);
        c.faulting(|c| c.read_msr(XSS));
        c.faulting(|c| c.write_msr(XSS, 0));
        c.faulting(|c| set_xcr(c, 0, 1));
        c.faulting(|c| emit!(c; xsave64(ptr(rbx))));
    });
    m.finish();
    assert_eq!(vectors(&m), [GP, GP, GP, UD, UD]);
    let m = finished(|c| set_cr4(c, CET));
    assert_eq!(vectors(&m), [GP]);
}

#[test]
fn monitor_and_mwait_do_nothing_where_the_model_has_them() {
    let both = |c: &mut Case| {
        c.faulting(|c| emit!(c; mov(rax, HEAP); xor(ecx, ecx); xor(edx, edx); monitor()));
        c.faulting(|c| emit!(c; xor(eax, eax); xor(ecx, ecx); mwait()));
        emit!(c; mov(eax, 5); xor(ecx, ecx); cpuid());
        c.result(0, rbx);
    };
    let mut m = machine("glassvisor-v3,+monitor", both);
    m.finish();
    assert_eq!((vectors(&m), m.result(0)), (vec![], 64));
    let exits = &m.vm.statistics().vcpus[0].exits;
    assert_eq!((exits[&ExitReason::Monitor], exits[&ExitReason::Mwait]), (1, 1));
    let mut m = machine("glassvisor-v3", both);
    m.finish();
    assert_eq!((vectors(&m), m.result(0)), (vec![UD, UD], 0));
}

#[test]
fn the_state_hash_covers_xcr0_xss_and_the_high_halves_of_vectors() {
    let mut m = finished(|_| {});
    let mut hashes = vec![m.vm.state_hash()];
    m.vm.vcpu_mut(0).set_xcr0(7).expect("the model has AVX");
    hashes.push(m.vm.state_hash());
    m.vm.vcpu_mut(0).processor.core.msrs.xss = 1;
    hashes.push(m.vm.state_hash());
    m.vm.vcpu_mut(0).processor.core.fpu.ymm_high[9] = 1;
    hashes.push(m.vm.state_hash());
    hashes.dedup();
    assert_eq!(hashes.len(), 4);
}

#[test]
fn extended_control_registers_are_read_and_written_as_a_structure() {
    let mut m = finished(|_| {});
    let vcpu = m.vm.vcpu_mut(0);
    let mut xcrs = vcpu.xcrs();
    assert_eq!((xcrs.nr_xcrs, xcrs.xcrs[0].xcr, xcrs.xcrs[0].value), (1, 0, 1));
    xcrs.xcrs[0].value = 7;
    assert_eq!(vcpu.set_xcrs(&xcrs), Ok(()));
    assert_eq!(vcpu.xcr0(), 7);
    xcrs.xcrs[0].value = 4;
    assert!(vcpu.set_xcrs(&xcrs).is_err());
    assert_eq!(vcpu.xcr0(), 7);
}

#[test]
fn vector_state_leaves_and_enters_a_vcpu_as_an_area_in_the_standard_format() {
    let mut m = finished(|_| {});
    let vcpu = m.vm.vcpu_mut(0);
    let mut xsave = vcpu.xsave();
    assert_eq!((xsave.region[6], xsave.region[128]), (0x1f80, 1), "after RESET the x87 control word is not initial");
    // XMM1 and the high half of YMM1.
    (xsave.region[44], xsave.region[148], xsave.region[128]) = (0x11, 0x22, 0b111);
    assert_eq!(vcpu.set_xsave(&xsave), Ok(()));
    let fpu = &vcpu.processor.core.fpu;
    assert_eq!((fpu.xmm[1], fpu.ymm_high[1]), (0x11, 0x22));
    assert_eq!(vcpu.xsave().region[..], xsave.region[..]);
    xsave.region[129] = 1;
    assert!(vcpu.set_xsave(&xsave).is_err());
}
