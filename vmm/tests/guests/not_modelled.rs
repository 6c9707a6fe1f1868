//! What a guest touches that is not modelled is told, once, and not at all when asked to be quiet.

use guest_bare::code_asm::{CodeAssembler, al, eax, ecx, qword_ptr, rax, rcx};
use guest_bare::{AsmError, Mode, case, console};

use crate::program::bare;

/// Neither memory nor a device.
const NOWHERE: u64 = 0xb000_0000;
const EXIT_STATUS: i32 = 0x43;

fn guest() -> Vec<u8> {
    let body = |a: &mut CodeAssembler| -> Result<(), AsmError> {
        a.mov(rax, NOWHERE)?;
        for _ in 0..3 {
            a.mov(rcx, qword_ptr(rax))?;
            a.out(0xb2, al)?;
        }
        a.mov(rax, NOWHERE + 8)?;
        a.mov(qword_ptr(rax), rcx)?;
        console::exit(a, 0x21)
    };
    case(Mode::Long64, body).expect("a case that can be encoded")
}

#[test]
fn each_is_told_once_and_not_at_all_when_quiet() {
    let ended = bare("not-modelled", &guest()).run();
    ended.must_say(EXIT_STATUS, &["guest-physical 0xb0000000", "port 0xb2"]);
    assert_eq!(ended.stderr.matches("glassvisor: note: ").count(), 2, "{ended}");
    let ended = bare("not-modelled-quiet", &guest()).args("--quiet").run();
    assert_eq!(ended.status, EXIT_STATUS, "{ended}");
    assert!(!ended.stderr.contains("note: "), "{ended}");
}

#[test]
fn an_msr_that_does_not_exist_is_told_by_its_name() {
    let body = |a: &mut CodeAssembler| -> Result<(), AsmError> {
        a.mov(ecx, 0xc001_1029_u32)?;
        a.mov(eax, 0)?;
        a.rdmsr()
    };
    let image = case(Mode::Long64, body).expect("a case that can be encoded");
    bare("no-msr", &image).run().must_say(8, &["read MSR 0xc0011029 (MSR_AMD64_DE_CFG)", "#GP", "triple fault"]);
}
