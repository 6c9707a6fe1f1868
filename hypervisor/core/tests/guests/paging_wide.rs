//! What 64-bit guests have beyond four levels: a fifth one, masked pointers, protection keys, alignment checks, and
//! page tables in memory that cannot be written.

use hypervisor::{MemoryFlags, VmConfig};
use iced_x86::code_asm::*;

use crate::case::Case;
use crate::machine::{DEVICE, END_PORT, Fault, HEAP, Machine, PML4, TABLES, USER_CODE, USER_DATA, config};

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// A linear address that nothing else uses.
const LINEAR: u64 = 0x40_0000_0000;
const A: u64 = HEAP + 0x1000;

const CR4_LA57: u32 = 1 << 12;
const CR4_PKE: u32 = 1 << 22;
const CR4_PKS: u32 = 1 << 24;
const CR4_LAM_SUP: u32 = 1 << 28;
const IA32_PKRS: u32 = 0x6e1;

fn with(features: &str) -> VmConfig {
    VmConfig { cpu: format!("{},{features}", hypervisor::cpu_models::DEFAULT), ..config() }
}

fn vectors(m: &Machine) -> Vec<(u64, u64)> {
    m.faults().iter().map(|f: &Fault| (f.vector, f.error)).collect()
}

/// Loads through RBX + `offset` into a slot.
fn look(c: &mut Case, pointer: u64, slot: u64) {
    emit!(c; mov(rbx, pointer); mov(rax, qword_ptr(rbx)));
    c.result(slot, rax);
}

fn set_cr4(c: &mut Case, bits: u32) {
    emit!(c; mov(rax, cr4); or(rax, bits as i32); mov(cr4, rax));
}

#[test]
fn five_levels_translate_addresses_of_57_bits() {
    const FAR: u64 = 0x00fe_0000_0000_0000;
    let mut m = Machine::with(with("+la57"), 1, |c| {
        look(c, FAR | A, 0);
        look(c, A, 1);
        c.faulting(|c| look(c, 0x0100_0000_0000_0000, 2));
        c.faulting(|c| look(c, 0x0002_0000_0000_0000, 2));
        // The number of levels stays while paging is on.
        c.faulting(|c| emit!(c; mov(rax, cr4); and(rax, !(CR4_LA57 as i32)); mov(cr4, rax)));
        // A base of 57 bits is valid, a wider one is not.
        c.write_msr(0xc000_0102, FAR);
        c.faulting(|c| c.write_msr(0xc000_0102, 1 << 57));
        c.write_msr(0xc000_0082, FAR);
        // A branch.
        c.faulting(|c| emit!(c; mov(rax, 1_u64 << 58); jmp(rax)));
    });
    let root = HEAP + 0x10_0000;
    m.write_u64(root, PML4 | 7);
    m.write_u64(root + 8 * (FAR >> 48), PML4 | 7);
    m.write_u64(A, 0x1234);
    let v = m.vm.vcpu_mut(0);
    let mut s = v.sregs();
    (s.cr3, s.cr4) = (root, s.cr4 | u64::from(CR4_LA57));
    v.set_sregs(&s);
    m.finish();
    assert_eq!(m.results(), [0x1234, 0x1234]);
    assert_eq!(vectors(&m), [(13, 0), (14, 0), (13, 0), (13, 0), (13, 0)]);
}

#[test]
fn metadata_of_pointers_is_masked_as_control_registers_say() {
    let mut m = Machine::with(with("+lam"), 1, |c| {
        let tagged = |bits: u64| A | bits << 48;
        c.faulting(|c| look(c, tagged(0x7fff), 0));
        emit!(c; mov(rax, PML4 | 1 << 62); mov(cr3, rax));
        look(c, tagged(0x7fff), 0);
        c.faulting(|c| look(c, tagged(0x8000), 1));
        emit!(c; mov(rax, PML4 | 1 << 61); mov(cr3, rax));
        look(c, 0x3f << 57 | A, 1);
        c.faulting(|c| look(c, tagged(1), 2));
        emit!(c; mov(rax, cr3));
        c.result(2, rax);
        // Supervisor pointers have their own switch.
        c.faulting(|c| look(c, 0x8fff_8000_0000_0000 | A, 3));
        set_cr4(c, CR4_LAM_SUP);
        look(c, 0x8fff_8000_0000_0000 | A, 3);
        // Branch targets are not masked, and a page fault reports the masked address.
        c.faulting(|c| emit!(c; mov(rax, 1_u64 << 60); jmp(rax)));
        c.faulting(|c| look(c, 0x15 << 57 | LINEAR, 4));
    });
    // The upper half leads to the same memory as the lower.
    let low = m.read_u64(PML4);
    m.write_u64(PML4 + 8 * 256, low);
    m.write_u64(A, 0x1234);
    m.finish();
    assert_eq!(m.results(), [0x1234, 0x1234, PML4 | 1 << 61, 0x1234]);
    assert_eq!(vectors(&m), [(13, 0), (13, 0), (13, 0), (13, 0), (13, 0), (14, 0)]);
    assert_eq!(m.faults()[5].cr2, LINEAR);
}

#[test]
fn without_masking_the_bits_of_cr3_and_cr4_are_reserved() {
    let m = crate::machine::finished(|c| {
        c.faulting(|c| emit!(c; mov(rax, PML4 | 1 << 62); mov(cr3, rax)));
        c.faulting(|c| set_cr4(c, CR4_LAM_SUP));
        c.faulting(|c| set_cr4(c, CR4_PKS));
    });
    assert_eq!(vectors(&m), [(13, 0); 3]);
}

#[test]
fn a_protection_key_takes_rights_from_a_user_page() {
    let mut m = Machine::with(with("+pku"), 1, |c| {
        c.faulting(|c| emit!(c; xor(ecx, ecx); rdpkru()));
        let ospke = |c: &mut Case, slot| {
            emit!(c; mov(eax, 7u32); xor(ecx, ecx); cpuid(); mov(eax, ecx); and(eax, 0x18));
            c.result(slot, rax);
        };
        ospke(c, 3);
        set_cr4(c, CR4_PKE);
        ospke(c, 4);
        let pkru = |c: &mut Case, value: u32| emit!(c; xor(ecx, ecx); xor(edx, edx); mov(eax, value); wrpkru());
        look(c, LINEAR, 0);
        pkru(c, 1 << 6);
        c.faulting(|c| look(c, LINEAR, 1));
        pkru(c, 2 << 6);
        look(c, LINEAR, 1);
        c.faulting(|c| emit!(c; mov(byte_ptr(rbx), 1)));
        emit!(c; mov(rax, cr0); mov(rcx, rax); btr(rcx, 16); mov(cr0, rcx); mov(byte_ptr(rbx), 0x11); mov(cr0, rax));
        c.faulting(|c| emit!(c; mov(byte_ptr(rbx), 2)));
        pkru(c, 0);
        emit!(c; mov(byte_ptr(rbx), 0x22); xor(ecx, ecx); rdpkru());
        look(c, LINEAR, 2);
    });
    m.map(LINEAR, A, PRESENT | WRITABLE | USER | 3 << 59);
    m.write_u64(A, 0x1234);
    m.finish();
    assert_eq!(m.results(), [0x1234, 0x1234, 0x1222, 8, 0x18]);
    assert_eq!(vectors(&m), [(6, 0), (14, 0x21), (14, 0x23), (14, 0x23)]);
    assert_eq!(m.faults()[1].cr2, LINEAR);
}

#[test]
fn a_write_of_pkru_costs_no_walk() {
    let run = |writes: u64| {
        let mut m = Machine::with(with("+pku"), 1, |c| {
            set_cr4(c, CR4_PKE);
            emit!(c; xor(ecx, ecx); xor(edx, edx); mov(rbx, LINEAR); mov(rsi, writes));
            let mut again = c.label();
            emit!(c; set_label(&mut again); mov(al, byte_ptr(rbx)); mov(eax, 0xc0u32); wrpkru(); xor(eax, eax); wrpkru());
            emit!(c; dec(rsi); jnz(again));
        });
        m.map(LINEAR, A, PRESENT | USER | 3 << 59);
        m.finish();
        m.vm.statistics().vcpus[0].tlb
    };
    let (few, many) = (run(1), run(100));
    assert_eq!(few, many, "nothing is invalidated");
}

#[test]
fn a_supervisor_key_takes_rights_from_a_supervisor_page() {
    let mut m = Machine::with(with("+pks"), 1, |c| {
        c.write_msr(IA32_PKRS, 1 << 6);
        look(c, LINEAR, 0);
        set_cr4(c, CR4_PKS);
        c.faulting(|c| look(c, LINEAR, 1));
        c.write_msr(IA32_PKRS, 2 << 6);
        look(c, LINEAR, 1);
        c.faulting(|c| emit!(c; mov(byte_ptr(rbx), 1)));
        c.read_msr(IA32_PKRS);
        c.result(2, rax);
        c.faulting(|c| c.write_msr(IA32_PKRS, 1 << 32));
    });
    // A user page in the tables above, a supervisor page here.
    m.map(LINEAR, A, PRESENT | WRITABLE | 3 << 59);
    m.write_u64(A, 0x1234);
    m.finish();
    assert_eq!(m.results(), [0x1234, 0x1234, 2 << 6]);
    assert_eq!(vectors(&m), [(14, 0x21), (14, 0x23), (13, 0)]);
}

#[test]
fn misaligned_accesses_of_user_code_fault_where_it_asks_for_it() {
    const AM: i32 = 1 << 18;
    for (am, ac, expected) in [(true, 1 << 18, (17, 0)), (true, 0, (6, 0)), (false, 1 << 18, (6, 0))] {
        // The user code is at a page of its own, and may use ports: mov eax,[rdi+2]; ud2; out END_PORT,al
        let mut m = Machine::new(1, |c| {
            if am {
                emit!(c; mov(rax, cr0); or(rax, AM); mov(cr0, rax));
            }
            // The kernel's accesses are never checked.
            emit!(c; pushfq(); or(dword_ptr(rsp), AM); popfq(); mov(rdi, A); mov(eax, dword_ptr(rdi + 1)));
            // Whatever is raised, the case ends.
            emit!(c; mov(r15, LINEAR + 5); mov(rdi, LINEAR + 0x1000));
            emit!(c; mov(rax, LINEAR); push(i32::from(USER_DATA)); push(0); push(ac | 3 << 12 | 2));
            emit!(c; push(i32::from(USER_CODE)); push(rax); iretq());
        });
        m.map(LINEAR, A, PRESENT | USER);
        m.map(LINEAR + 0x1000, A, PRESENT | USER);
        m.write(A, &[0x8b, 0x47, 0x02, 0x0f, 0x0b, 0xe6, END_PORT as u8]);
        m.finish();
        assert_eq!(vectors(&m)[0], expected, "AM {am}, AC {ac:#x}");
    }
}

#[test]
fn page_tables_in_read_only_memory_work_without_their_flags() {
    const ROM: u64 = 0x1000_0000;
    let mut m = Machine::new(1, |c| {
        look(c, LINEAR, 0);
        emit!(c; mov(qword_ptr(rbx + 8), 0x77));
        look(c, LINEAR + 8, 1);
    });
    m.add_memory(ROM, 0x1000, MemoryFlags::ReadOnly);
    m.write_extra(0, 0, &(A | PRESENT | WRITABLE).to_le_bytes());
    // The last table is in read-only memory.
    let directory = m.entry(LINEAR, 1);
    m.write_u64(directory, ROM | 7);
    m.write_u64(A, 0x1234);
    m.finish();
    assert_eq!(m.results(), [0x1234, 0x77]);
    assert_eq!(m.read_u64(A + 8), 0x77);
    assert!(m.vm.statistics().vcpus[0].emulated >= 3, "each access is emulated");
}

#[test]
fn page_tables_in_read_only_memory_that_have_their_flags_need_no_emulation() {
    const ROM: u64 = 0x1000_0000;
    let mut m = Machine::new(1, |c| {
        look(c, LINEAR, 0);
        emit!(c; mov(qword_ptr(rbx + 8), 0x77));
    });
    m.add_memory(ROM, 0x1000, MemoryFlags::ReadOnly);
    m.write_extra(0, 0, &(A | PRESENT | WRITABLE | ACCESSED | DIRTY).to_le_bytes());
    let directory = m.entry(LINEAR, 1);
    m.write_u64(directory, ROM | 7);
    m.write_u64(A, 0x1234);
    m.finish();
    assert_eq!((m.result(0), m.read_u64(A + 8)), (0x1234, 0x77));
    assert_eq!(m.vm.statistics().vcpus[0].emulated, 0);
}

#[test]
fn page_tables_in_device_memory_are_not_present() {
    let mut m = Machine::new(1, |c| {
        c.faulting(|c| look(c, LINEAR, 0));
        c.faulting(|c| emit!(c; mov(rbx, LINEAR); mov(byte_ptr(rbx), 1)));
        c.faulting(|c| emit!(c; mov(rbx, LINEAR); jmp(rbx)));
    });
    let directory = m.entry(LINEAR, 1);
    m.write_u64(directory, DEVICE | 7);
    m.finish();
    let faults: Vec<_> = m.faults().iter().map(|f| (f.vector, f.error, f.cr2)).collect();
    assert_eq!(faults[..2], [(14, 0, LINEAR), (14, 2, LINEAR)]);
    assert_eq!((faults[2].0, faults[2].2), (14, LINEAR));
    let _ = TABLES;
}
