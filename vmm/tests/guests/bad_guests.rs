//! Guests that go wrong: the program says what and where, and ends; guests that never end can be stopped.

use std::time::Instant;

use guest_bare::code_asm::{CodeAssembler, qword_ptr, rax, rcx, rdi, rsi, rsp};
use guest_bare::{AsmError, Mode, case, console};

use crate::program::{Ended, PROMPT, bare};

const TRIPLE_FAULT: i32 = 8;
const DEADLOCK: i32 = 10;
const UNKNOWN: i32 = 12;
const TIME_LIMIT: i32 = 14;
const INTERRUPTED: i32 = 130;

fn guest(mode: Mode, body: impl FnOnce(&mut CodeAssembler) -> Result<(), AsmError>) -> Vec<u8> {
    case(mode, body).expect("a case that can be encoded")
}

fn run(name: &str, body: impl FnOnce(&mut CodeAssembler) -> Result<(), AsmError>) -> Ended {
    bare(name, &guest(Mode::Long64, body)).run()
}

#[test]
fn a_triple_fault_is_told_with_rip_and_code() {
    // A stack that wraps round to where nothing is mapped: neither #PF nor #DF can be delivered.
    run("triple", |a| {
        a.mov(rsp, 0x7fff_ffff_0000_u64)?;
        a.push(rax)
    })
    .must_say(TRIPLE_FAULT, &["triple fault", "vCPU 0", "RIP 0x20000a", "code bytes 50", "--trace"]);
}

#[test]
fn an_unknown_instruction_is_told_with_rip_and_bytes() {
    run("unknown", |a| a.db(&[0x0f, 0x04, 0x05])).must_say(TRIPLE_FAULT, &["RIP 0x200000", "0f 04 05"]);
    run("undefined", |a| a.ud2()).must_say(TRIPLE_FAULT, &["RIP 0x200000", "0f 0b"]);
    bare("unknown-real", &guest(Mode::Protected32, |a| a.db(&[0x0f, 0x0b])))
        .run()
        .must_say(TRIPLE_FAULT, &["RIP 0x200000", "0f 0b"]);
}

#[test]
fn a_jump_into_memory_that_no_page_table_maps_is_told_with_the_address() {
    let ended = run("unmapped", |a| {
        a.mov(rax, 0x12_3456_7000_u64)?;
        a.jmp(rax)
    });
    ended.must_say(TRIPLE_FAULT, &["RIP 0x1234567000", "CR2 0x1234567000", "no code can be fetched"]);
}

#[test]
fn a_jump_into_physical_memory_that_is_not_there_ends_with_the_address() {
    run("no-ram", |a| {
        a.mov(rax, 0xb000_0000_u64)?;
        a.jmp(rax)
    })
    .must_say(UNKNOWN, &["0xb0000000", "no memory", "vCPU 0"]);
    // The same after a load has shown that there is no memory.
    run("no-ram-loaded", |a| {
        a.mov(rax, 0xb000_0000_u64)?;
        a.mov(rcx, qword_ptr(rax))?;
        a.jmp(rax)
    })
    .must_say(UNKNOWN, &["0xb0000000", "vCPU 0"]);
}

#[test]
fn halting_with_interrupts_off_is_told_as_a_deadlock() {
    let body = |a: &mut CodeAssembler| {
        a.cli()?;
        a.hlt()
    };
    run("deadlock", body).must_say(DEADLOCK, &["halted with interrupts off", "RIP 0x20000"]);
    bare("deadlock-real", &guest(Mode::Long64, body)).args("--time real").run().must_say(DEADLOCK, &["halted"]);
    bare("deadlock-4", &guest(Mode::Long64, body)).args("--cpus 4").run().must_say(DEADLOCK, &["halted"]);
}

#[test]
fn a_guest_leaves_through_the_debug_exit_port_with_its_code() {
    run("exit", |a| console::exit(a, 0x21)).must_say(0x43, &["code 0x21", "exit status 67"]);
}

/// A guest that says that it runs, and then does `forever`.
fn endless(forever: impl FnOnce(&mut CodeAssembler) -> Result<(), AsmError>) -> Vec<u8> {
    guest(Mode::Long64, |a| {
        a.cli()?;
        console::print(a, "running\n")?;
        forever(a)
    })
}

fn spin(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let mut here = a.create_label();
    a.set_label(&mut here)?;
    a.jmp(here)
}

/// Sleeps for an interrupt that no device will send.
fn sleep(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    a.sti()?;
    a.hlt()?;
    a.jmp(again)
}

/// Exits all the time.
fn exits(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    a.cpuid()?;
    a.jmp(again)
}

/// Without an IDT every interrupt, single step and fault is a triple fault; `int3` in a handler that does the same
/// keeps the processor busy with events alone.
fn faults(a: &mut CodeAssembler) -> Result<(), AsmError> {
    use guest_bare::DATA;
    use guest_bare::code_asm::{ax, dword_ptr, ptr, word_ptr};
    let (mut handler, mut install) = (a.create_label(), a.create_label());
    a.jmp(install)?;
    a.set_label(&mut handler)?;
    a.mov(rsp, u64::from(guest_bare::STACK_TOP))?;
    a.int3()?;
    a.set_label(&mut install)?;
    let gate = DATA + 3 * 16;
    a.lea(rax, ptr(handler))?;
    a.mov(word_ptr(gate), ax)?;
    a.mov(word_ptr(gate + 2), 0x18)?;
    a.mov(word_ptr(gate + 4), 0x8e00)?;
    a.shr(rax, 16u32)?;
    a.mov(word_ptr(gate + 6), ax)?;
    a.mov(word_ptr(DATA + 0x800), 0x7ff)?;
    a.mov(dword_ptr(DATA + 0x802), DATA as i32)?;
    a.lidt(ptr(DATA + 0x800))?;
    a.int3()
}

/// Repeats one string instruction over most of the address space.
fn strings(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    a.mov(rcx, 2_u64 << 30)?;
    a.mov(rsi, u64::from(guest_bare::HEAP))?;
    a.mov(rdi, u64::from(guest_bare::HEAP))?;
    a.rep().cmpsb()?;
    a.jmp(again)
}

fn stops_on_ctrl_c(name: &str, image: &[u8], options: &str) {
    let running = bare(name, image).args(options).start();
    running.stdout.wait_for("running\n");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let asked = Instant::now();
    running.interrupt();
    let ended = running.end();
    let took = asked.elapsed();
    ended.must_say(INTERRUPTED, &["signal", "VM-exits (counted)"]);
    assert!(took < PROMPT, "{took:?} from Ctrl-C to the end: {ended}");
}

fn stops_at_the_time_limit(name: &str, image: &[u8], options: &str) {
    let running = bare(name, image).args(options).args("--max-time 1").start();
    running.stdout.wait_for("running\n");
    let ran = Instant::now();
    let ended = running.end();
    let took = ran.elapsed();
    ended.must_say(TIME_LIMIT, &["--max-time", "after 1 s"]);
    assert!(took < PROMPT + std::time::Duration::from_secs(1), "{took:?}: {ended}");
}

#[test]
fn a_loop_with_interrupts_off_stops_on_ctrl_c() {
    stops_on_ctrl_c("loop-virtual", &endless(spin), "--time virtual");
    stops_on_ctrl_c("loop-real", &endless(spin), "--time real");
    stops_on_ctrl_c("loop-4", &endless(spin), "--cpus 4");
}

#[test]
fn a_loop_with_interrupts_off_stops_at_the_time_limit() {
    stops_at_the_time_limit("limit-virtual", &endless(spin), "--time virtual");
    stops_at_the_time_limit("limit-real", &endless(spin), "--time real");
}

#[test]
fn a_guest_that_sleeps_for_ever_stops_on_ctrl_c_and_at_the_time_limit() {
    stops_on_ctrl_c("sleep-virtual", &endless(sleep), "--time virtual");
    stops_on_ctrl_c("sleep-real", &endless(sleep), "--time real");
    stops_at_the_time_limit("sleep-limit-virtual", &endless(sleep), "--time virtual");
    stops_at_the_time_limit("sleep-limit-real", &endless(sleep), "--time real");
}

#[test]
fn a_guest_that_does_nothing_but_exit_or_fault_stops_on_ctrl_c() {
    stops_on_ctrl_c("exits-virtual", &endless(exits), "--time virtual");
    stops_on_ctrl_c("exits-real", &endless(exits), "--time real");
    stops_on_ctrl_c("strings-virtual", &endless(strings), "--memory 3G --time virtual");
    stops_on_ctrl_c("faults-virtual", &endless(faults), "--time virtual");
    stops_on_ctrl_c("faults-real", &endless(faults), "--time real");
}
