//! The XSAVE family and XGETBV, compared with the processor that the test runs on, where it has them.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code, reason = "runs XSAVE natively, see the module `native`")]

mod machine;
mod native;

use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::sync::Arc;

use machine::{BUFFER, Machine, Random};
use native::{Native, State};
use silicon_x86::model::Model;
use x86_defs::control::cr4;

/// An area, or two.
#[derive(Clone, PartialEq, Eq)]
#[repr(C, align(64))]
struct Area([u8; 1024]);

const MODEL: &str = "glassvisor-v3";
const XRSTOR64: &[u8] = &[0x48, 0x0f, 0xae, 0x2b];
/// What saves to [RSI], with its name.
const SAVES: [(&str, &[u8]); 6] = [
    ("xsave64", &[0x48, 0x0f, 0xae, 0x26]),
    ("xsave", &[0x0f, 0xae, 0x26]),
    ("xsaveopt64", &[0x48, 0x0f, 0xae, 0x36]),
    ("xsaveopt", &[0x0f, 0xae, 0x36]),
    ("xsavec64", &[0x48, 0x0f, 0xc7, 0x26]),
    ("xsavec", &[0x0f, 0xc7, 0x26]),
];

/// Whether this processor has AVX state and all user instructions of the family.
fn is_comparable() -> bool {
    if !std::is_x86_feature_detected!("avx") || !std::is_x86_feature_detected!("xsavec") {
        return false;
    }
    // SAFETY: XSAVE is there, and the system has enabled it, or AVX would not have been detected.
    unsafe { __cpuid_count(0xd, 1).eax & 7 == 7 && _xgetbv(0) & 7 == 7 }
}

fn machine() -> Machine {
    let mut machine = Machine::new();
    machine.core.model = Arc::new(Model::parse(MODEL).expect("the model exists"));
    machine.core.cr4 |= cr4::OSXSAVE;
    machine.core.set_xcr0(7);
    machine
}

fn put(area: &mut Area, at: usize, value: u64) {
    area.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// An area that XRSTOR takes, in either format, with a random set of components.
fn restorable(random: &mut Random) -> Area {
    let mut area = Area(random.vectors());
    area.0[512..576].fill(0);
    let mxcsr = if random.next() & 1 == 0 { 0x1f80 } else { random.next() & 0xffff };
    put(&mut area, 24, mxcsr);
    // ES and B follow from the rest, whatever the area says; bits of the control word may be fixed.
    area.0[2] &= 0x7f;
    let components = random.next() & 7;
    if random.next() & 1 == 0 {
        put(&mut area, 512, components);
    } else {
        let there = components | random.next() & 7;
        put(&mut area, 512, components);
        put(&mut area, 520, there | 1 << 63);
    }
    // Some vectors are zero.
    if random.next() & 3 == 0 {
        area.0[160..416].fill(0);
    }
    if random.next() & 3 == 0 {
        area.0[576..832].fill(0);
    }
    area
}

#[test]
fn state_goes_in_by_xrstor_and_comes_out_the_same_by_every_xsave() {
    if !is_comparable() {
        eprintln!("this processor has no XSAVEC or no AVX: not compared");
        return;
    }
    let (mut native, mut machine, mut random) = (Native::new(), machine(), Random(11));
    for round in 0..6000 {
        let (name, save) = SAVES[round % SAVES.len()];
        let from = restorable(&mut random);
        let mut to = Area(random.vectors());
        // XSAVE takes any header; what comes before is kept where it is not asked for.
        put(&mut to, 512, random.next());
        let mut state = State::default();
        random.fill(&mut state);
        state.gpr[0] = random.next() & 7;
        state.gpr[2] = 0;
        let enabled = if random.next() & 1 == 0 { 7 } else { state.gpr[0] };
        let restore_mask = enabled;

        // Native: everything initial first, so that both start alike; then the two instructions, with their own masks.
        let initial = Area([0; 1024]);
        let mut code = Vec::new();
        let mask = |code: &mut Vec<u8>, value: u64| code.extend([0xb8, value as u8, 0, 0, 0]);
        // push rbx; mov rbx, r8; mov eax, 7; xrstor64 [rbx]; pop rbx
        code.extend([0x53, 0x4c, 0x89, 0xc3]);
        mask(&mut code, 7);
        code.extend(XRSTOR64);
        code.push(0x5b);
        mask(&mut code, restore_mask);
        code.extend(XRSTOR64);
        mask(&mut code, state.gpr[0]);
        code.extend(save);
        let mut saved = to.clone();
        state.gpr[3] = &raw const from as u64;
        state.gpr[6] = &raw mut saved as u64;
        state.gpr[8] = &raw const initial as u64;
        let requested = state.gpr[0];
        let before = state.clone();
        // SAFETY: the areas are aligned, larger than any of the formats with these components, and outlive the run; x87
        // exceptions that become pending are not looked at before FXRSTOR replaces them.
        unsafe { native.run(&code, &mut state) };

        machine.load(&before);
        let core = &mut machine.core;
        core.gpr[2] = 0;
        core.gpr[3] = BUFFER;
        core.gpr[6] = BUFFER + 0x1000;
        machine.write(BUFFER, &initial.0);
        machine.core.gpr[0] = 7;
        assert_eq!(machine.step(XRSTOR64), Ok(()));
        machine.write(BUFFER, &from.0);
        machine.core.gpr[0] = restore_mask;
        assert_eq!(machine.step(XRSTOR64), Ok(()));
        machine.write(BUFFER + 0x1000, &to.0);
        machine.core.gpr[0] = requested;
        assert_eq!(machine.step(save), Ok(()));
        let mut modelled: Area = Area(machine.read(BUFFER + 0x1000));

        // MXCSR_MASK is the processor's own.
        for area in [&mut saved, &mut modelled] {
            area.0[28..32].fill(0);
        }
        // A processor may find a component in use that is in its initial configuration, but not the other way round.
        let bv = |area: &Area| u64::from_le_bytes(area.0[512..520].try_into().expect("eight bytes"));
        assert_eq!(bv(&modelled) & !bv(&saved), 0, "{name}");
        let more = bv(&saved) & !bv(&modelled) & requested;
        assert_eq!(bv(&saved) & !more, bv(&modelled), "{name}");
        let mut skipped = Vec::new();
        if more != 0 {
            // Then it writes the initial configuration where the model writes nothing.
            skipped.push(512..520);
            if more & 1 != 0 {
                skipped.extend([0..24, 32..160]);
            }
            if more & 2 != 0 {
                skipped.extend([24..32, 160..416]);
            }
            if more & 4 != 0 {
                skipped.push(576..832);
            }
        }
        // Opcode and pointers are saved with a pending exception only, by some makers.
        skipped.push(6..24);
        for at in (0..1024).filter(|at| !skipped.iter().any(|range| range.contains(at))) {
            assert_eq!(
                modelled.0[at],
                saved.0[at],
                "{name} byte {at}: requested {requested:#x}, restored {restore_mask:#x}, header {:x?}, saved {:#x}",
                &from.0[512..528],
                bv(&saved),
            );
        }
    }
}

#[test]
fn leaf_0xd_describes_the_components_as_this_processor_does() {
    if !is_comparable() {
        eprintln!("this processor has no XSAVEC or no AVX: not compared");
        return;
    }
    let ours = Model::parse(MODEL).expect("the model exists").cpuid(0xd, 2);
    // SAFETY: leaf 0xd is there with XSAVE.
    #[allow(unused_unsafe, reason = "newer compilers take CPUID for safe")]
    let native = unsafe { __cpuid_count(0xd, 2) };
    assert_eq!((ours.eax, ours.ebx, ours.ecx, ours.edx), (native.eax, native.ebx, native.ecx, native.edx));
}
