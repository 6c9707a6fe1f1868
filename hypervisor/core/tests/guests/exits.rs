//! What leaves to the hypervisor, and what the guest sees of it.

use hypervisor::MemoryFlags;
use iced_x86::code_asm::*;
use x86_defs::vmx::ExitReason;

use crate::machine::{Access, DEVICE, Direction, Ending, HEAP, Machine, RESULTS, finished};

fn cpuid_into(c: &mut crate::case::Case, leaf: u32, subleaf: u32, slot: u64) {
    emit!(c; mov(eax, leaf); mov(ecx, subleaf); cpuid());
    for (i, register) in [rax, rbx, rcx, rdx].into_iter().enumerate() {
        c.result(slot + i as u64, register);
    }
}

#[test]
fn cpuid_names_kvm_and_its_features() {
    let m = finished(|c| {
        cpuid_into(c, 0x4000_0000, 0, 0);
        cpuid_into(c, 0x4000_0001, 0, 4);
        cpuid_into(c, 1, 0, 8);
    });
    let signature: Vec<u8> = (1..4).flat_map(|i| (m.result(i) as u32).to_le_bytes()).collect();
    assert_eq!(&signature, b"KVMKVMKVM\0\0\0");
    for bit in [0, 3, 5, 6, 7, 11, 12, 13, 24] {
        assert!(m.result(4) >> bit & 1 == 1, "feature bit {bit}");
    }
    assert_eq!(m.result(10) >> 31 & 1, 1, "the hypervisor bit");
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::Cpuid], 3);
}

#[test]
fn cpuid_gives_each_vcpu_its_place_in_the_topology() {
    let m = {
        let mut m = Machine::new(4, |c| {
            // Each leaves leaf 0xb by its APIC id; the last one out ends the case.
            let all = c.label();
            c.set(all);
            for cpu in 1..4 {
                c.start(cpu);
            }
            emit!(c; mov(eax, 1); cpuid(); shr(ebx, 24); mov(r8, rbx); shl(r8, 6); add(r8, RESULTS as i32));
            for level in 0..2 {
                emit!(c; mov(eax, 0xb); mov(ecx, level); cpuid());
                for (i, register) in [eax, ebx, ecx, edx].into_iter().enumerate() {
                    emit!(c; mov(dword_ptr(r8 + 16 * level + 4 * i as u32), register));
                }
            }
            let (mut last, mut stop) = (c.label(), c.label());
            emit!(c; mov(eax, 1u32); lock().xadd(dword_ptr(HEAP), eax); cmp(eax, 3); je(last));
            emit!(c; set_label(&mut stop); cli(); hlt(); jmp(stop); set_label(&mut last));
        });
        m.finish();
        m
    };
    for id in 0..4_u64 {
        let field = |i: u64| u32::from_le_bytes(m.read(RESULTS + 64 * id + 4 * i));
        assert_eq!([field(0), field(1), field(2), field(3)], [0, 1, 0x100, id as u32], "threads of vCPU {id}");
        assert_eq!([field(4), field(5), field(6), field(7)], [2, 4, 0x201, id as u32], "cores of vCPU {id}");
    }
}

#[test]
fn ports_of_every_size_read_and_write_only_their_bytes_of_rax() {
    let mut m = Machine::new(1, |c| {
        for slot in 0..3_u64 {
            emit!(c; mov(rax, 0x1122_3344_5566_7788_u64); mov(dx, 0x500 + slot as u32));
            match slot {
                0 => emit!(c; in_(al, dx)),
                1 => emit!(c; in_(ax, dx)),
                _ => emit!(c; in_(eax, dx)),
            }
            c.result(slot, rax);
        }
        emit!(c; mov(rax, 0x1122_3344_5566_7788_u64); mov(dx, 0x600u32); out(dx, al); out(dx, ax); out(dx, eax));
        emit!(c; in_(al, 0x70); out(0x71, eax));
    });
    m.finish_with(|a| a.data.fill(0xaa));
    assert_eq!(m.results(), [0x1122_3344_5566_77aa, 0x1122_3344_5566_aaaa, 0xaaaa_aaaa]);
    let outs: Vec<_> =
        m.log.iter().filter(|a| a.direction == Direction::Out).map(|a| (a.address, a.data.len())).collect();
    assert_eq!(outs, [(0x600, 1), (0x600, 2), (0x600, 4), (0x71, 4)]);
    assert_eq!(m.log[5].data, [0x88, 0x77, 0x66, 0x55]);
    // And the case's own end.
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::IoInstruction], 9);
}

#[test]
fn outs_with_rep_crosses_pages_and_goes_down_with_df() {
    let at = HEAP + 0x1000 - 6;
    let m = &mut Machine::new(1, |c| {
        emit!(c; mov(rsi, at); mov(dx, 0x600u32); mov(ecx, 3u32); rep().outsd());
        c.result(0, rsi);
        c.result(1, rcx);
        emit!(c; std(); mov(rsi, at + 8); mov(ecx, 3u32); rep().outsw(); cld());
        c.result(2, rsi);
        // No element at all.
        emit!(c; xor(ecx, ecx); rep().outsb());
        c.result(3, rsi);
    });
    m.write(at, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    m.finish();
    assert_eq!(m.results(), [at + 12, 0, at + 2, at + 2]);
    let data: Vec<_> = m.log.iter().map(|a| a.data.clone()).collect();
    assert_eq!(data, [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9, 10, 11, 12], vec![9, 10], vec![7, 8], vec![5, 6]]);
}

#[test]
fn ins_with_rep_fills_memory_across_pages_and_down_with_df() {
    let at = HEAP + 0x1000 - 6;
    let mut next = 0;
    let m = &mut Machine::new(1, |c| {
        emit!(c; mov(rdi, at); mov(dx, 0x600u32); mov(ecx, 3u32); rep().insd());
        c.result(0, rdi);
        c.result(1, rcx);
        emit!(c; std(); mov(rdi, at + 0x101); mov(ecx, 2u32); rep().insb(); cld());
        c.result(2, rdi);
    });
    m.finish_with(|a| {
        a.data.fill_with(|| {
            next += 1;
            next
        })
    });
    assert_eq!(m.results(), [at + 12, 0, at + 0xff]);
    assert_eq!(m.read::<14>(at - 1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0]);
    assert_eq!(m.read::<4>(at + 0xff), [0, 14, 13, 0]);
}

#[test]
fn ins_to_a_page_that_is_not_mapped_faults_before_the_device_is_read() {
    let hole = 0x40_0000_0000_u64;
    let mut m = Machine::new(1, |c| {
        c.faulting(|c| emit!(c; mov(rdi, hole); mov(dx, 0x600u32); mov(ecx, 3u32); rep().insd()));
        c.result(0, rcx);
    });
    m.finish();
    assert_eq!(m.log, []);
    assert_eq!(m.result(0), 3);
    let fault = m.faults()[0];
    assert_eq!((fault.vector, fault.error, fault.cr2), (14, 2, hole));
}

#[test]
fn device_memory_of_every_size() {
    let at = DEVICE as u32;
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(ebx, at); mov(rax, u64::MAX));
        emit!(c; mov(al, byte_ptr(rbx + 1)));
        c.result(0, rax);
        emit!(c; mov(rax, u64::MAX); mov(ax, word_ptr(rbx + 2)));
        c.result(1, rax);
        emit!(c; mov(rax, u64::MAX); mov(eax, dword_ptr(rbx + 4)));
        c.result(2, rax);
        emit!(c; mov(rax, qword_ptr(rbx + 8)));
        c.result(3, rax);
        emit!(c; movzx(rcx, word_ptr(rbx)); movsx(rdx, byte_ptr(rbx)));
        c.result(4, rcx);
        c.result(5, rdx);
        emit!(c; mov(rax, 0x0102_0304_0506_0708_u64));
        emit!(c; mov(byte_ptr(rbx), al); mov(word_ptr(rbx), ax); mov(dword_ptr(rbx), eax); mov(qword_ptr(rbx), rax));
    });
    m.finish_with(|a| a.data.fill(0x90 | a.address as u8));
    assert_eq!(
        m.results(),
        [
            u64::MAX << 8 | 0x91,
            u64::MAX << 16 | 0x9292,
            0x9494_9494,
            0x9898_9898_9898_9898,
            0x9090,
            0x90 | u64::MAX << 8
        ]
    );
    let stores: Vec<_> = m.log[6..].iter().map(|a| (a.direction, a.data.clone())).collect();
    let bytes = [8, 7, 6, 5, 4, 3, 2, 1];
    assert_eq!(stores, [1, 2, 4, 8].map(|n: usize| (Direction::Store, bytes[..n].to_vec())));
}

#[test]
fn read_modify_write_of_device_memory_reads_once_and_writes_once() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(ebx, DEVICE as u32); mov(eax, 0x0fu32));
        emit!(c; or(dword_ptr(rbx), eax); pushfq(); pop(rcx));
        c.result(0, rcx);
        emit!(c; mov(ecx, 5u32); xchg(dword_ptr(rbx), ecx));
        c.result(1, rcx);
        emit!(c; mov(ecx, 7u32); lock().xadd(word_ptr(rbx + 4), cx));
        c.result(2, rcx);
        emit!(c; bts(dword_ptr(rbx), 31); inc(byte_ptr(rbx)));
        // A comparison that fails still writes what it read.
        emit!(c; mov(eax, 1u32); mov(ecx, 2u32); cmpxchg(dword_ptr(rbx), ecx));
        c.result(3, rax);
    });
    m.finish_with(|a| {
        let len = a.data.len();
        a.data.copy_from_slice(&0x8000_00f0_u64.to_le_bytes()[..len]);
    });
    assert_eq!(m.result(0) & 0x8d5, 0x84, "sign and parity of 0x800000ff");
    assert_eq!(m.result(1), 0x8000_00f0);
    assert_eq!(m.result(2), 0xf0);
    assert_eq!(m.result(3), 0x8000_00f0);
    let log: Vec<_> = m.log.iter().map(|a| (a.direction, a.value())).collect();
    use Direction::{Load, Store};
    assert_eq!(
        log,
        [
            (Load, 0x8000_00f0),
            (Store, 0x8000_00ff),
            (Load, 0x8000_00f0),
            (Store, 5),
            (Load, 0x00f0),
            (Store, 0xf7),
            (Load, 0x8000_00f0),
            (Store, 0x8000_00f0),
            (Load, 0xf0),
            (Store, 0xf1),
            (Load, 0x8000_00f0),
            (Store, 0x8000_00f0),
        ]
    );
}

#[test]
fn string_moves_to_and_from_device_memory() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(esi, DEVICE as u32); mov(edi, HEAP as u32); mov(ecx, 3u32); rep().movsd());
        c.result(0, rsi);
        c.result(1, rdi);
        c.result(2, rcx);
        emit!(c; mov(esi, HEAP as u32); mov(edi, DEVICE as u32 + 0x100); mov(ecx, 2u32); rep().movsq());
        emit!(c; mov(esi, DEVICE as u32); mov(edi, DEVICE as u32 + 0x200); movsb());
        emit!(c; mov(al, 0x5a); mov(edi, DEVICE as u32 + 0x300); mov(ecx, 2u32); rep().stosb());
        emit!(c; mov(esi, DEVICE as u32); lodsw());
        emit!(c; mov(edi, DEVICE as u32); mov(eax, 0xeeu32); mov(ecx, 4u32); repne().scasb());
        c.result(3, rcx);
    });
    m.finish_with(|a| {
        let low = a.address as u8;
        a.data.iter_mut().zip(0..).for_each(|(b, i)| *b = 0xec + low + i);
    });
    assert_eq!(m.results(), [DEVICE + 12, HEAP + 12, 0, 1]);
    assert_eq!(m.read::<12>(HEAP), std::array::from_fn(|i| 0xec + i as u8));
    let log: Vec<_> = m.log.iter().map(|a| (a.direction, a.address - DEVICE, a.data.len())).collect();
    use Direction::{Load, Store};
    let expected = [
        (Load, 0, 4),
        (Load, 4, 4),
        (Load, 8, 4),
        (Store, 0x100, 8),
        (Store, 0x108, 8),
        (Load, 0, 1),
        (Store, 0x200, 1),
        (Store, 0x300, 1),
        (Store, 0x301, 1),
        (Load, 0, 2),
        (Load, 0, 1),
        (Load, 1, 1),
        (Load, 2, 1),
    ];
    assert_eq!(log, expected);
}

#[test]
fn device_accesses_that_cross_a_page_touch_each_byte_once() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(ebx, DEVICE as u32 + 0xffe));
        emit!(c; mov(eax, dword_ptr(rbx)));
        c.result(0, rax);
        emit!(c; mov(dword_ptr(rbx), 0x0403_0201));
        // From memory into a device: the last two bytes of memory, the first two of the device after it.
        emit!(c; mov(ebx, 0x80_0000 - 2u32); mov(dword_ptr(rbx), 0x0807_0605));
        emit!(c; mov(eax, dword_ptr(rbx)));
        c.result(1, rax);
    });
    m.finish_with(|a| {
        let low = a.address as u8;
        a.data.iter_mut().zip(0..).for_each(|(b, i)| *b = low.wrapping_add(i));
    });
    assert_eq!(m.result(0), 0x0100_fffe);
    assert_eq!(m.result(1), 0x0100_0605);
    let mut bytes: Vec<_> = Vec::new();
    for a in m.log.iter().filter(|a| a.direction == Direction::Store) {
        bytes.extend(a.data.iter().zip(0..).map(|(b, i)| (a.address + i, *b)));
    }
    bytes.sort_unstable();
    let end = 0x80_0000;
    let crossing = [(DEVICE + 0xffe, 1), (DEVICE + 0xfff, 2), (DEVICE + 0x1000, 3), (DEVICE + 0x1001, 4)];
    assert_eq!(bytes, [[(end, 7), (end + 1, 8)].as_slice(), crossing.as_slice()].concat());
    let loads: usize = m.log.iter().filter(|a| a.direction == Direction::Load).map(|a| a.data.len()).sum();
    assert_eq!(loads, 6);
}

#[test]
fn device_accesses_of_sixteen_bytes_are_two_of_eight() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(ebx, DEVICE as u32); movups(xmm0, xmmword_ptr(rbx)); movups(xmmword_ptr(RESULTS), xmm0));
        emit!(c; movaps(xmmword_ptr(rbx + 0x20), xmm0));
        // Twelve bytes on one page, four on the next.
        emit!(c; movups(xmmword_ptr(rbx + 0xff4), xmm0));
    });
    m.finish_with(|a| {
        let low = a.address as u8;
        a.data.iter_mut().zip(0..).for_each(|(b, i)| *b = low + i);
    });
    assert_eq!(m.read::<16>(RESULTS), std::array::from_fn(|i| i as u8));
    let log: Vec<_> = m.log.iter().map(|a| (a.address - DEVICE, a.data[0], a.data.len())).collect();
    let expected = [(0, 0, 8), (8, 8, 8), (0x20, 0, 8), (0x28, 8, 8), (0xff4, 0, 8), (0xffc, 8, 4), (0x1000, 12, 4)];
    assert_eq!(log, expected);
}

#[test]
fn a_device_is_read_once_even_when_the_other_operand_is_memory_not_mapped_yet() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(esi, DEVICE as u32); mov(edi, HEAP as u32); movsq());
        emit!(c; mov(esi, 0x40_0000_u32); mov(edi, DEVICE as u32); movsq());
        emit!(c; mov(rax, qword_ptr(HEAP)); mov(dx, 0x600_u32); mov(edi, 0x60_0000_u32); insd());
        c.result(0, rax);
    });
    m.write(0x40_0000, &[1, 2, 3, 4, 5, 6, 7, 8]);
    m.finish_with(|a| a.data.fill(9));
    assert_eq!(m.result(0), 0x0909_0909_0909_0909);
    assert_eq!(m.read::<5>(0x60_0000), [9, 9, 9, 9, 0]);
    let log: Vec<_> = m.log.iter().map(|a| (a.direction, a.value())).collect();
    let load = 0x0909_0909_0909_0909;
    assert_eq!(log, [(Direction::Load, load), (Direction::Store, 0x0807_0605_0403_0201), (Direction::In, 0x0909_0909)]);
}

#[test]
fn a_store_to_read_only_memory_goes_to_the_vmm_and_changes_nothing() {
    let rom = 0x100_0000_u64;
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(ebx, rom as u32); mov(rax, qword_ptr(rbx)));
        c.result(0, rax);
        emit!(c; mov(dword_ptr(rbx + 4), 0x1234); add(byte_ptr(rbx), 1); mov(rax, qword_ptr(rbx)));
        c.result(1, rax);
    });
    m.add_memory(rom, 0x20_0000, MemoryFlags::ReadOnly);
    m.write_extra(0, 0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    m.finish();
    assert_eq!(m.results(), [0x0807_0605_0403_0201; 2]);
    let store = |address, data: &[u8]| Access { direction: Direction::Store, address, data: data.to_vec() };
    assert_eq!(m.log, [store(rom + 4, &[0x34, 0x12, 0, 0]), store(rom, &[2])]);
}

#[test]
fn unknown_msrs_are_general_protection_faults_of_the_guest() {
    let m = finished(|c| {
        c.faulting(|c| emit!(c; mov(ecx, 0x1234_5678u32); rdmsr()));
        c.faulting(|c| emit!(c; mov(ecx, 0x1234_5678u32); wrmsr()));
        // Reserved bits of one that exists.
        c.faulting(|c| c.write_msr(0xc000_0080, 1 << 20));
        c.faulting(|c| c.write_msr(0x277, 0x0203));
        c.faulting(|c| c.write_msr(0xc000_0082, 0x8000_0000_0000));
    });
    let faults: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error)).collect();
    assert_eq!(faults, [(13, 0); 5]);
    let s = &m.vm.statistics().vcpus[0];
    assert_eq!((s.msr_reads[&0x1234_5678], s.msr_writes[&0x1234_5678]), (1, 1));
    assert_eq!(s.exceptions_injected, 5);
}

#[test]
fn every_kvm_msr_reads_back_what_was_written() {
    const MSRS: [(u32, u64); 7] = [
        (0x4b56_4d00, HEAP),
        (0x4b56_4d01, (HEAP + 0x100) | 1),
        (0x4b56_4d03, (HEAP + 0x200) | 1),
        (0x4b56_4d04, (HEAP + 0x300) | 1),
        (0x4b56_4d05, 0),
        (0x11, HEAP + 0x400),
        (0x12, (HEAP + 0x500) | 1),
    ];
    let m = finished(|c| {
        c.read_msr(0x4b56_4d05);
        c.result(10, rax);
        for (slot, (msr, value)) in (0..).zip(MSRS) {
            c.write_msr(msr, value);
            c.read_msr(msr);
            c.result(slot, rax);
        }
        c.faulting(|c| c.write_msr(0x4b56_4d03, HEAP | 0x21));
        c.faulting(|c| c.write_msr(0x4b56_4d05, 2));
    });
    assert_eq!(m.results::<7>(), MSRS.map(|m| m.1));
    assert_eq!(m.result(10), 1, "the host may poll until the guest says otherwise");
    assert_eq!(m.faults().len(), 2);
}

#[test]
fn control_registers_refuse_what_the_manual_refuses() {
    let m = finished(|c| {
        let cases: [(u32, u64); 9] = [
            // CR0: paging without protection, NW without CD, paging off in 64-bit mode, high half.
            (0, 0x8001_0032),
            (0, 0xa001_0033),
            (0, 0x0001_0033),
            (0, 0x1_8001_0033),
            // CR4: PAE off in long mode, a bit that does not exist, VMXE, PCIDE with a PCID in CR3 later.
            (4, 0x600),
            (4, 1 << 40 | 0x620),
            (4, 0x2620),
            // CR8: more than 15.
            (8, 16),
            // CR3: reserved bits beyond the physical address width.
            (3, 1 << 50 | 0x1_0000),
        ];
        for (register, value) in cases {
            c.faulting(|c| {
                emit!(c; mov(rax, value));
                match register {
                    0 => emit!(c; mov(cr0, rax)),
                    3 => emit!(c; mov(cr3, rax)),
                    4 => emit!(c; mov(cr4, rax)),
                    _ => emit!(c; mov(cr8, rax)),
                }
            });
        }
        emit!(c; mov(eax, 11u32); mov(cr8, rax); xor(eax, eax); mov(rax, cr8));
        c.result(0, rax);
        // Task switched: set by MOV, cleared by CLTS; LMSW cannot clear PE.
        emit!(c; mov(rax, cr0); or(rax, 8); mov(cr0, rax); mov(rbx, cr0); clts(); mov(rcx, cr0));
        c.result(1, rbx);
        c.result(2, rcx);
        emit!(c; mov(eax, 2u32); lmsw(ax); smsw(rax));
        c.result(3, rax);
    });
    let vectors: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error)).collect();
    assert_eq!(vectors, [(13, 0); 9]);
    assert_eq!(m.results(), [11, 0x8001_003b, 0x8001_0033, 0x8001_0033]);
}

#[test]
fn efer_keeps_lma_and_refuses_to_leave_long_mode_under_paging() {
    let m = finished(|c| {
        c.faulting(|c| c.write_msr(0xc000_0080, 0xc01));
        // LMA cannot be written: it stays.
        c.write_msr(0xc000_0080, 0x901);
        c.read_msr(0xc000_0080);
        c.result(0, rax);
    });
    assert_eq!(m.faults().len(), 1);
    assert_eq!(m.result(0), 0xd01);
}

#[test]
fn debug_registers_keep_their_fixed_bits_and_break_before_instructions() {
    let m = finished(|c| {
        emit!(c; mov(rax, dr6));
        c.result(0, rax);
        emit!(c; mov(rax, dr7));
        c.result(1, rax);
        c.faulting(|c| emit!(c; mov(rax, 1_u64 << 32); mov(dr7, rax)));
        // DR4 is DR6 while CR4.DE is clear, and does not exist when it is set.
        emit!(c; xor(eax, eax); mov(dr6, rax); mov(rax, dr4));
        c.result(2, rax);
        emit!(c; mov(rax, cr4); or(rax, 8); mov(cr4, rax));
        c.faulting(|c| emit!(c; mov(rax, dr4)));
        // Break before an instruction.
        let (mut there, mut after) = (c.label(), c.label());
        emit!(c; lea(rax, ptr(there)); mov(dr0, rax); mov(rax, 0x402_u64); mov(dr7, rax); lea(r15, ptr(after)));
        emit!(c; nop(); set_label(&mut there); mov(dword_ptr(HEAP), 1));
        emit!(c; set_label(&mut after); mov(rax, dr6));
        c.result(3, rax);
        emit!(c; mov(eax, dword_ptr(HEAP)));
        c.result(4, rax);
        emit!(c; mov(rax, 0x400_u64); mov(dr7, rax); mov(dword_ptr(HEAP), 2));
    });
    assert_eq!(m.results(), [0xffff_0ff0, 0x400, 0xffff_0ff0, 0xffff_0ff1, 0]);
    let vectors: Vec<_> = m.faults().iter().map(|f| f.vector).collect();
    assert_eq!(vectors, [13, 6, 1]);
}

#[test]
fn general_detect_faults_on_debug_register_accesses() {
    let m = finished(|c| {
        emit!(c; mov(rax, 0x2400_u64); mov(dr7, rax));
        c.faulting(|c| emit!(c; mov(rax, dr0)));
        emit!(c; mov(rax, dr6));
        c.result(0, rax);
    });
    assert_eq!(m.faults()[0].vector, 1);
    assert_eq!(m.result(0) & 0x2000, 0x2000, "BD");
}

#[test]
fn hypercalls_answer_with_error_numbers() {
    let m = finished(|c| {
        for (slot, number) in [(0, 0xdead_u64), (1, 1), (2, 9), (3, 11)] {
            emit!(c; mov(rax, number); vmcall());
            c.result(slot, rax);
        }
        // Send IPI: to nobody, and to itself with interrupts off.
        emit!(c; mov(rax, 10_u64); xor(ebx, ebx); xor(ecx, ecx); xor(edx, edx); mov(esi, 0x40u32); vmcall());
        c.result(4, rax);
    });
    assert_eq!(m.results(), [-1000_i64 as u64, 0, -95_i64 as u64, 0, 0]);
    assert_eq!(m.vm.statistics().vcpus[0].hypercalls[&0xdead], 1);
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::Vmcall], 5);
}

#[test]
fn a_triple_fault_shuts_the_machine_down_for_good() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(word_ptr(HEAP), 0); lidt(ptr(HEAP)); ud2());
    });
    assert_eq!(m.run(), Ending::Shutdown);
    assert_eq!(m.run(), Ending::Shutdown);
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::TripleFault], 1);
}

#[test]
fn a_machine_that_nothing_can_wake_is_reported_as_deadlocked() {
    let mut m = Machine::new(2, |c| {
        emit!(c; cli(); hlt());
        c.start(1);
        emit!(c; cli(); hlt());
    });
    assert_eq!(m.run(), Ending::Deadlock);
}

#[test]
fn the_kicker_and_the_wake_up_time_end_a_run() {
    let mut m = Machine::new(1, |c| {
        let forever = c.here();
        emit!(c; inc(rbx); jmp(forever));
    });
    m.vm.kicker().kick();
    assert_eq!(m.run(), Ending::Interrupted);
    assert_eq!(m.vm.vcpu(0).regs().rbx, 0, "a kick before the run comes first");
    m.vm.set_wakeup(Some(100_000));
    assert_eq!(m.run(), Ending::Interrupted);
    let late = m.vm.now_ns() - 100_000;
    assert!(late < 100, "{late} ns late");
    assert!(m.vm.vcpu(0).regs().rbx > 10_000);
}

#[test]
fn memory_is_mapped_on_demand_in_large_pages() {
    let m = finished(|c| {
        // Code and data of the machine itself are in the first 2 MiB; three more are touched.
        for at in [HEAP, HEAP + 8, HEAP + 0x1f_fff8, 0x40_0000, 0x60_0000] {
            emit!(c; mov(dword_ptr(at), 1));
        }
    });
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::EptViolation], 4);
}

#[test]
fn a_slot_that_is_not_made_of_large_pages_is_mapped_in_small_ones() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(ebx, 0x100_1000u32));
        for page in 0..3 {
            emit!(c; mov(byte_ptr(rbx + page * 0x1000), 7); mov(al, byte_ptr(rbx + page * 0x1000 + 8)));
        }
    });
    m.add_memory(0x100_1000, 0x3000, MemoryFlags::ReadWrite);
    m.finish();
    assert_eq!(m.log, []);
    assert_eq!(m.vm.statistics().vcpus[0].exits[&ExitReason::EptViolation], 1 + 3);
}

#[test]
fn instructions_that_are_not_offered_are_undefined() {
    let m = finished(|c| {
        c.faulting(|c| emit!(c; vmxoff()));
        c.faulting(|c| emit!(c; vmlaunch()));
        c.faulting(|c| emit!(c; mov(ecx, 0u32); xgetbv()));
    });
    let vectors: Vec<_> = m.faults().iter().map(|f| f.vector).collect();
    assert_eq!(vectors, [6, 6, 6]);
}
