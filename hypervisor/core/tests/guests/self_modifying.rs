//! Code that changes while it is executed: by itself, by the VMM, by another vCPU.

use iced_x86::code_asm::*;

use crate::machine::{Ending, HEAP, Machine, RESULTS, finished};

/// `mov eax, imm32; ret`
fn returns(value: u32) -> Vec<u8> {
    let mut code = vec![0xb8];
    code.extend(value.to_le_bytes());
    code.push(0xc3);
    code
}

#[test]
fn a_store_to_the_next_instruction_takes_effect_at_once() {
    let m = finished(|c| {
        let mut patched = c.label();
        emit!(c; lea(rbx, ptr(patched)));
        // The first pass patches what is just about to be executed, in the same block.
        emit!(c; mov(dword_ptr(rbx + 1), 0x1234); set_label(&mut patched); mov(eax, 0x1111_1111u32));
        c.result(0, rax);
    });
    assert_eq!(m.result(0), 0x1234);
}

#[test]
fn a_loop_that_patches_itself_sees_each_patch() {
    let m = finished(|c| {
        let (mut next, mut patched) = (c.label(), c.label());
        emit!(c; lea(rbx, ptr(patched)); xor(ecx, ecx); xor(esi, esi));
        emit!(c; set_label(&mut next); mov(dword_ptr(rbx + 1), ecx); nop(); nop());
        emit!(c; set_label(&mut patched); mov(eax, 0x7777_7777u32); add(esi, eax); inc(ecx); cmp(ecx, 200); jb(next));
        c.result(0, rsi);
    });
    assert_eq!(m.result(0), (0..200).sum::<u64>());
}

#[test]
fn code_behind_in_the_same_block_can_be_rewritten() {
    // Straight-line code rewrites a byte far ahead in its own page, then one far behind, and runs that.
    let m = finished(|c| {
        let (mut start, mut ahead, mut out) = (c.label(), c.label(), c.label());
        emit!(c; xor(edx, edx); lea(rbx, ptr(ahead)); lea(rdi, ptr(start)); nop());
        emit!(c; set_label(&mut start); mov(eax, 1u32); add(edx, eax); cmp(edx, 10); jae(out));
        emit!(c; mov(byte_ptr(rbx + 1), 5); mov(byte_ptr(rdi + 1), 10));
        emit!(c; set_label(&mut ahead); mov(ecx, 0x40u32); add(edx, ecx); jmp(start));
        emit!(c; set_label(&mut out); nop());
        c.result(0, rdx);
    });
    assert_eq!(m.result(0), 1 + 5 + 10);
}

#[test]
fn an_instruction_across_two_pages_follows_changes_on_either() {
    let at = HEAP + 0x1000 - 2;
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, at));
        for slot in 0..4 {
            emit!(c; call(rbx));
            c.result(slot, rax);
            match slot {
                0 => emit!(c; mov(byte_ptr(rbx + 3), 0x55)),
                1 => emit!(c; mov(byte_ptr(rbx + 1), 0x66)),
                _ => emit!(c; mov(word_ptr(rbx + 1), 0x0101)),
            }
        }
    });
    m.write(at, &returns(0x0403_0201));
    m.finish();
    assert_eq!(m.results(), [0x0403_0201, 0x0455_0201, 0x0455_0266, 0x0455_0101]);
}

#[test]
fn the_last_bytes_of_a_page_are_executed_and_go_on_to_the_next_page() {
    let at = HEAP + 0x1000 - 5;
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, at); call(rbx));
        c.result(0, rax);
        // Now the second page's RET alone changes: into `inc eax; ret`.
        emit!(c; mov(dword_ptr(rbx + 5), 0x00c3_c0ff_u32 as i32); call(rbx));
        c.result(1, rax);
    });
    m.write(at, &returns(7));
    m.finish();
    assert_eq!(m.results(), [7, 8]);
}

#[test]
fn code_from_the_last_page_of_memory_does_not_need_the_page_behind() {
    let at = 0x80_0000 - 6;
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, at); call(rbx));
        c.result(0, rax);
    });
    m.write(at, &returns(7));
    m.finish();
    assert_eq!(m.result(0), 7);
}

#[test]
fn code_that_runs_into_a_page_without_mapping_faults_at_its_first_byte_there() {
    let linear = 0x40_0000_0000;
    let mut m = Machine::new(1, |c| {
        c.faulting(|c| emit!(c; mov(rbx, linear + 0xffe_u64); jmp(rbx)));
    });
    m.map(linear, HEAP, 3);
    m.write(HEAP + 0xffe, &[0x90, 0xb8]);
    m.finish();
    let fault = m.faults()[0];
    assert_eq!((fault.vector, fault.error, fault.rip, fault.cr2), (14, 0x10, linear + 0xfff, linear + 0x1000));
}

#[test]
fn string_instructions_rewrite_code() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, HEAP));
        for slot in 0..3 {
            emit!(c; call(rbx));
            c.result(slot, rax);
            if slot == 0 {
                emit!(c; mov(rsi, HEAP + 0x2000); mov(rdi, HEAP); mov(ecx, 6u32); rep().movsb());
            } else {
                emit!(c; mov(al, 0x22); mov(rdi, HEAP + 1); mov(ecx, 4u32); rep().stosb());
            }
        }
    });
    m.write(HEAP, &returns(1));
    m.write(HEAP + 0x2000, &returns(2));
    m.finish();
    assert_eq!(m.results(), [1, 2, 0x2222_2222]);
}

#[test]
fn input_from_a_port_rewrites_code() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, HEAP); call(rbx));
        c.result(0, rax);
        emit!(c; mov(rdi, HEAP + 1); mov(dx, 0x600u32); insd(); call(rbx));
        c.result(1, rax);
    });
    m.write(HEAP, &returns(1));
    m.finish_with(|a| a.data.fill(9));
    assert_eq!(m.results(), [1, 0x0909_0909]);
}

#[test]
fn code_written_through_another_mapping_is_seen() {
    let linear = 0x40_0000_0000;
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, HEAP); call(rbx));
        c.result(0, rax);
        emit!(c; mov(rdi, linear); mov(dword_ptr(rdi + 1), 77); call(rbx));
        c.result(1, rax);
    });
    m.map(linear, HEAP, 3);
    m.write(HEAP, &returns(1));
    m.finish();
    assert_eq!(m.results(), [1, 77]);
}

#[test]
fn code_written_by_the_vmm_is_seen() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, HEAP));
        for slot in 0..2 {
            emit!(c; call(rbx));
            c.result(slot, rax);
            if slot == 0 {
                emit!(c; sti(); hlt());
            }
        }
    });
    m.write(HEAP, &returns(1));
    m.vm.set_wakeup(Some(1_000_000));
    assert_eq!(m.run(), Ending::Interrupted);
    m.write(HEAP, &returns(2));
    // Wakes the guest: an NMI, whose handler goes on at R15.
    let after = m.vm.vcpu(0).regs().rip;
    let mut regs = m.vm.vcpu(0).regs();
    regs.r15 = after;
    m.vm.vcpu_mut(0).set_regs(&regs);
    m.vm.signal_msi(hypervisor::Msi { address: 0xfee0_0000, data: 0x400 });
    m.finish();
    assert_eq!(m.results(), [1, 2]);
}

#[test]
fn code_written_by_another_processor_is_seen() {
    let mut m = Machine::new(2, |c| {
        // vCPU 0 runs the code until it returns 2, which vCPU 1 writes after it has seen 100 runs.
        emit!(c; mov(rbx, HEAP); xor(esi, esi));
        let mut again = c.label();
        emit!(c; set_label(&mut again); call(rbx); inc(dword_ptr(RESULTS)); cmp(eax, 2); jne(again));
        c.result(1, rax);
        c.end();
        c.start(1);
        let mut wait = c.label();
        emit!(c; mov(rbx, HEAP); set_label(&mut wait); pause(); cmp(dword_ptr(RESULTS), 100); jb(wait));
        emit!(c; mov(byte_ptr(rbx + 1), 2));
        let forever = c.here();
        emit!(c; pause(); jmp(forever));
    });
    m.write(HEAP, &returns(1));
    m.finish();
    assert_eq!(m.result(1), 2);
}

#[test]
fn data_beside_code_can_be_written_without_harm() {
    let mut m = Machine::new(1, |c| {
        emit!(c; mov(rbx, HEAP); mov(ecx, 1000u32); xor(edx, edx));
        let mut again = c.label();
        emit!(c; set_label(&mut again); call(rbx); add(edx, eax); add(dword_ptr(rbx + 0x800), eax); dec(ecx); jnz(again));
        c.result(0, rdx);
    });
    m.write(HEAP, &returns(3));
    m.finish();
    assert_eq!(m.result(0), 3000);
    assert_eq!(u32::from_le_bytes(m.read(HEAP + 0x800)), 3000);
}
