//! What SSE and MMX instructions raise, and the areas of FXSAVE.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(unsafe_code, reason = "runs FXSAVE natively, see the module `native`")]

mod machine;
mod native;

use machine::{BUFFER, Machine, Random};
use native::{Native, State};
use silicon_x86::Leave;
use x86_defs::control::{cr0, cr4};
use x86_defs::exception::vector;

const PADDB: &[u8] = &[0x66, 0x0f, 0xfc, 0xc1];
const PADDB_MMX: &[u8] = &[0x0f, 0xfc, 0xc1];
const MOVAPS_LOAD: &[u8] = &[0x0f, 0x28, 0x03];
const MOVAPS_STORE: &[u8] = &[0x0f, 0x29, 0x03];
const MOVUPS_LOAD: &[u8] = &[0x0f, 0x10, 0x03];
const PADDB_MEMORY: &[u8] = &[0x66, 0x0f, 0xfc, 0x03];
const PCMPISTRI_MEMORY: &[u8] = &[0x66, 0x0f, 0x3a, 0x63, 0x03, 0];
const DIVPS: &[u8] = &[0x0f, 0x5e, 0xc1];
const LDMXCSR: &[u8] = &[0x0f, 0xae, 0x13];
const FXSAVE: &[u8] = &[0x0f, 0xae, 0x03];
const FXSAVE64: &[u8] = &[0x48, 0x0f, 0xae, 0x03];
const FXRSTOR64: &[u8] = &[0x48, 0x0f, 0xae, 0x0b];
const MASKMOVDQU: &[u8] = &[0x66, 0x0f, 0xf7, 0xc1];

/// The fault that an instruction raises, with its error code, RBX and RDI at `address`.
fn fault_at(machine: &mut Machine, bytes: &[u8], address: u64) -> Option<(u8, Option<u32>)> {
    machine.core.gpr[3] = address;
    machine.core.gpr[7] = address;
    match machine.step(bytes) {
        Ok(()) => None,
        Err(Leave::Fault) => Some((machine.core.fault.vector, machine.core.fault.error_code)),
        Err(leave) => panic!("{leave:?}"),
    }
}

fn fault(machine: &mut Machine, bytes: &[u8]) -> Option<u8> {
    fault_at(machine, bytes, BUFFER).map(|f| f.0)
}

#[test]
fn control_registers_make_sse_undefined_or_unavailable() {
    let usable = |bytes: &[u8], cr0_bits: u64, osfxsr: u64| {
        let mut machine = Machine::new();
        machine.core.cr0 |= cr0_bits;
        machine.core.cr4 = machine.core.cr4 & !cr4::OSFXSR | osfxsr;
        machine.core.update_mode();
        fault(&mut machine, bytes)
    };
    assert_eq!(usable(PADDB, 0, cr4::OSFXSR), None);
    assert_eq!(usable(PADDB, cr0::TS, cr4::OSFXSR), Some(vector::NM));
    assert_eq!(usable(PADDB, cr0::EM, cr4::OSFXSR), Some(vector::UD));
    assert_eq!(usable(PADDB, cr0::EM | cr0::TS, cr4::OSFXSR), Some(vector::UD));
    assert_eq!(usable(PADDB, cr0::TS, 0), Some(vector::UD));
    assert_eq!(usable(PADDB_MMX, 0, 0), None);
    assert_eq!(usable(PADDB_MMX, cr0::TS, 0), Some(vector::NM));
    assert_eq!(usable(PADDB_MMX, cr0::EM | cr0::TS, 0), Some(vector::UD));
    assert_eq!(usable(FXSAVE, 0, 0), None);
    assert_eq!(usable(FXSAVE, cr0::TS, 0), Some(vector::NM));
}

#[test]
fn a_pending_x87_exception_stops_mmx() {
    let mut machine = Machine::new();
    machine.core.fpu.fsw = 0x8081;
    let before = machine.core.fpu.clone();
    assert_eq!(fault(&mut machine, PADDB_MMX), Some(vector::MF));
    assert_eq!(machine.core.fpu, before);
    assert_eq!(fault(&mut machine, PADDB), None);
}

#[test]
fn unaligned_operands_are_protection_faults_where_the_instruction_wants_alignment() {
    let mut machine = Machine::new();
    for bytes in [MOVAPS_LOAD, MOVAPS_STORE, PADDB_MEMORY, FXSAVE, FXRSTOR64] {
        assert_eq!(fault_at(&mut machine, bytes, BUFFER + 8), Some((vector::GP, Some(0))), "{bytes:x?}");
        assert_eq!(fault_at(&mut machine, bytes, BUFFER), None, "{bytes:x?}");
    }
    for bytes in [MOVUPS_LOAD, PCMPISTRI_MEMORY] {
        assert_eq!(fault_at(&mut machine, bytes, BUFFER + 1), None, "{bytes:x?}");
    }
}

#[test]
fn an_operand_that_crosses_pages_is_read_and_written_whole() {
    let mut machine = Machine::new();
    let mut random = Random(1);
    let (low, high): ([u8; 16], [u8; 16]) = (random.vectors(), random.vectors());
    machine.write(BUFFER + 0xff0, &low);
    machine.write(BUFFER + 0x1000, &high);
    assert_eq!(fault_at(&mut machine, MOVUPS_LOAD, BUFFER + 0xff5), None);
    let expected = [&low[5..], &high[..5]].concat();
    assert_eq!(machine.core.fpu.xmm[0].to_le_bytes()[..], expected);
    let store = &[0x0f, 0x11, 0x0b];
    machine.core.fpu.xmm[1] = u128::MAX / 3;
    assert_eq!(fault_at(&mut machine, store, BUFFER + 0xffa), None);
    assert_eq!(machine.read::<6>(BUFFER + 0xffa), [0x55; 6]);
    assert_eq!(machine.read::<10>(BUFFER + 0x1000), [0x55; 10]);
}

#[test]
fn an_unmasked_exception_sets_flags_and_leaves_the_register() {
    let mut machine = Machine::new();
    let one = u128::from(1.0_f32.to_bits());
    machine.core.fpu.xmm[0] = one << 96 | one << 64 | one << 32 | one;
    machine.core.fpu.xmm[1] = one << 96 | one << 64 | one << 32;
    machine.core.fpu.mxcsr = 0x1f80 & !(1 << 9);
    let before = machine.core.fpu.xmm;
    assert_eq!(fault(&mut machine, DIVPS), Some(vector::XM));
    assert_eq!((machine.core.fpu.xmm, machine.core.fpu.mxcsr), (before, 0x1f80 & !(1 << 9) | 4));
    machine.core.cr4 &= !cr4::OSXMMEXCPT;
    assert_eq!(fault(&mut machine, DIVPS), Some(vector::UD));
    machine.core.fpu.mxcsr = 0x1f80;
    assert_eq!(fault(&mut machine, DIVPS), None);
    assert_eq!(machine.core.fpu.xmm[0], one << 96 | one << 64 | one << 32 | 0x7f80_0000);
}

#[test]
fn reserved_bits_of_mxcsr_are_protection_faults() {
    let mut machine = Machine::new();
    machine.write(BUFFER, &0x1_1f80_u32.to_le_bytes());
    assert_eq!(fault_at(&mut machine, LDMXCSR, BUFFER), Some((vector::GP, Some(0))));
    machine.write(BUFFER, &0xffff_u32.to_le_bytes());
    assert_eq!(fault_at(&mut machine, LDMXCSR, BUFFER), None);
    assert_eq!(machine.core.fpu.mxcsr, 0xffff);
    machine.write(BUFFER + 24, &0x1_0000_u32.to_le_bytes());
    let before = machine.core.fpu.clone();
    assert_eq!(fault_at(&mut machine, FXRSTOR64, BUFFER), Some((vector::GP, Some(0))));
    assert_eq!(machine.core.fpu, before);
}

#[test]
fn a_masked_store_needs_only_the_pages_it_writes() {
    let mut machine = Machine::new();
    // Nothing is mapped above the memory of the machine.
    let end = 0x10000;
    machine.core.fpu.xmm[0] = u128::MAX / 0xff * 0xab;
    machine.core.fpu.xmm[1] = 0x80;
    assert_eq!(fault_at(&mut machine, MASKMOVDQU, end - 1), None);
    assert_eq!(machine.read::<2>(end - 2), [0, 0xab]);
    machine.core.fpu.xmm[1] = 0x8080;
    machine.write(end - 1, &[0]);
    assert_eq!(fault_at(&mut machine, MASKMOVDQU, end - 1).map(|f| f.0), Some(vector::PF));
    assert_eq!(machine.read::<1>(end - 1), [0], "nothing is written when a part of it faults");
}

/// A 512-byte area.
#[repr(align(64))]
struct Area([u8; 512]);

#[test]
fn fxsave64_and_fxrstor64_are_those_of_this_processor() {
    let (mut native, mut machine, mut random) = (Native::new(), Machine::new(), Random(7));
    for i in 0..400 {
        for bytes in [FXSAVE64, FXRSTOR64] {
            let mut area = Area(random.vectors());
            // The state as any combination of bits, but with x87 exceptions that stay masked.
            area.0[24..28].copy_from_slice(&(random.next() as u32 & 0xffff).to_le_bytes());
            area.0[2] &= if i & 1 == 0 { 0xff } else { 0x80 };
            let mut state = State::default();
            random.fill(&mut state);
            state.gpr[3] = BUFFER;
            machine.load(&state);
            machine.write(BUFFER, &area.0);
            state.gpr[3] = area.0.as_mut_ptr() as u64;
            // SAFETY: both instructions access the aligned area only; neither checks for x87 exceptions, and the state
            // is taken back with FXSAVE, which does not either.
            unsafe { native.run(bytes, &mut state) };
            state.gpr[3] = BUFFER;
            assert_eq!(machine.step(bytes), Ok(()));
            assert_eq!(machine.differences(&state), Vec::<String>::new(), "{bytes:x?} {:x?}", &area.0[..32]);
            let mut written = machine.read::<512>(BUFFER);
            // Opcode and pointers are saved with a pending exception only, by some makers.
            written[6..24].copy_from_slice(&area.0[6..24]);
            // MXCSR_MASK: the modelled processor has all bits but misaligned-exception masking.
            if bytes == FXSAVE64 {
                assert_eq!(written[28..32], 0xffff_u32.to_le_bytes());
                written[28..32].copy_from_slice(&area.0[28..32]);
            }
            assert_eq!(written[..], area.0[..], "{bytes:x?}");
        }
    }
}

#[test]
fn fxsave_keeps_the_part_of_the_area_that_belongs_to_software() {
    let mut machine = Machine::new();
    machine.write(BUFFER, &[0xa5; 512]);
    assert_eq!(fault_at(&mut machine, FXSAVE, BUFFER), None);
    assert_eq!(machine.read::<512>(BUFFER)[416..], [0xa5; 96]);
    assert_eq!(machine.read::<416>(BUFFER)[160..], [0; 256]);
    machine.core.cr4 &= !cr4::OSFXSR;
    machine.core.update_mode();
    machine.write(BUFFER, &[0xa5; 512]);
    assert_eq!(fault_at(&mut machine, FXSAVE, BUFFER), None);
    assert_eq!(machine.read::<512>(BUFFER)[160..], [0xa5; 352]);
    assert_eq!(machine.read::<8>(BUFFER + 24), [0xa5; 8]);
}
