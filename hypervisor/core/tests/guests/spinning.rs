//! Spin loops give way by pause-loop exits where there is somebody to give way to.

use iced_x86::code_asm::*;
use x86_defs::vmx::ExitReason;

use crate::case::Case;
use crate::machine::Machine;

/// Exits of a processor that executes so many PAUSEs, one right after the other.
fn pause_exits(vcpus: usize, turns: i32) -> u64 {
    let mut m = Machine::new(vcpus, |c: &mut Case| {
        emit!(c; mov(ecx, turns));
        let spin = c.here();
        emit!(c; pause(); dec(ecx); jnz(spin));
    });
    m.finish();
    m.vm.statistics().vcpus[0].exits.get(&ExitReason::Pause).copied().unwrap_or(0)
}

#[test]
fn a_long_spin_loop_exits_when_there_are_other_processors() {
    // A turn takes about 42 cycles, and the window is 4096.
    let exits = pause_exits(2, 1000);
    assert!((8..=11).contains(&exits), "{exits} exits");
}

#[test]
fn a_short_one_does_not() {
    assert_eq!(pause_exits(2, 80), 0);
}

#[test]
fn a_single_processor_spins_without_exits() {
    assert_eq!(pause_exits(1, 1000), 0);
}
