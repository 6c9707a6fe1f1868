//! Executes x87 instructions on the modelled processor and on the processor at hand, from the same state, and compares
//! registers, tags, control and status word, RFLAGS, AX and memory bit by bit.
//!
//! Where processors are known to differ, [`state::Agreement`] says what is not compared.
#![cfg(target_arch = "x86_64")]

mod cases;
mod modelled;
mod native;
mod state;

use cases::Random;
use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};
use modelled::Modelled;
use native::Native;
use state::{Agreement, State};

/// Every encoding of every x87 instruction, without displacement: memory operands are at RSI.
fn encodings() -> Vec<Vec<u8>> {
    let mut all = vec![vec![0x9b]];
    for first in 0xd8..=0xdf {
        for second in (0xc0..=0xff).chain((0..8).map(|reg| reg << 3 | 6)) {
            all.push(vec![first, second]);
            if matches!((first, second), (0xd9 | 0xdd, ..0xc0)) {
                all.push(vec![0x66, first, second]);
            }
        }
    }
    all.retain(|bytes| code(bytes) != Code::INVALID);
    all
}

fn code(bytes: &[u8]) -> Code {
    Decoder::new(64, bytes, DecoderOptions::NONE).decode().code()
}

/// How far processors agree.
fn agreement(code: Code) -> Agreement {
    use Mnemonic::{F2xm1, Fcos, Fpatan, Fptan, Fsin, Fsincos, Fyl2x, Fyl2xp1};
    use Mnemonic::{Fcom, Fcomi, Fcomip, Fcomp, Fcompp, Ficom, Ficomp, Ftst, Fucom, Fucomi, Fucomip, Fucomp, Fucompp};
    match code.mnemonic() {
        F2xm1 | Fcos | Fpatan | Fptan | Fsin | Fsincos | Fyl2x | Fyl2xp1 => Agreement::LastPlace,
        Fcom | Fcomp | Fcompp | Ficom | Ficomp | Ftst | Fucom | Fucomp | Fucompp => Agreement::ComparisonCodes,
        Fcomi | Fcomip | Fucomi | Fucomip => Agreement::ComparisonFlags,
        _ => Agreement::Exact,
    }
}

/// Whether what the instruction does with the operands is defined.
fn defined(code: Code, start: &State) -> bool {
    let exponent = start.stack[0].sign_exponent & 0x7fff;
    match code {
        Code::Fyl2xp1 => !(0x3ffd..0x7fff).contains(&exponent),
        Code::F2xm1 => !(0x3fff..0x7fff).contains(&exponent),
        _ => true,
    }
}

/// Runs `code` on both from `start`, and says what differs.
fn differences(
    native: &mut Native,
    modelled: &mut Modelled,
    code: &[u8],
    start: &State,
    agreement: Agreement,
) -> Vec<String> {
    let there = native.run(code, start);
    let here = modelled.run(code, start);
    here.differences(&there, agreement)
}

#[test]
fn the_decoder_gives_wait_as_an_instruction_of_its_own() {
    let mut decoder = Decoder::new(64, &[0x9b, 0xd9, 0x3e], DecoderOptions::NONE);
    assert_eq!(decoder.decode().code(), Code::Wait);
    assert_eq!(decoder.decode().code(), Code::Fnstcw_m2byte);
}

#[test]
fn one_instruction_from_any_state() {
    let (mut native, mut modelled) = (Native::new(), Modelled::new());
    let mut random = Random::new(1);
    let mut report = Vec::new();
    for code in encodings() {
        let agreement = agreement(self::code(&code));
        let mut wrong = 0;
        for _ in 0..400 {
            let start = random.state();
            if !defined(self::code(&code), &start) {
                continue;
            }
            let differences = differences(&mut native, &mut modelled, &code, &start, agreement);
            if !differences.is_empty() {
                if wrong == 0 {
                    report.push(format!(
                        "{code:02x?} {:?}\n  from {start:?}\n  {}",
                        self::code(&code),
                        differences.join("\n  ")
                    ));
                }
                wrong += 1;
            }
        }
        if wrong != 0 {
            report.push(format!("{code:02x?}: {wrong} of 400"));
        }
    }
    assert!(report.is_empty(), "modelled, then native:\n{}", report.join("\n"));
}

#[test]
fn sequences_with_exceptions_masked() {
    let (mut native, mut modelled) = (Native::new(), Modelled::new());
    let mut random = Random::new(2);
    let mut encodings = encodings();
    // What loads a control word may unmask an exception that the next instruction would then raise. Environments in
    // memory have pointers to the code.
    encodings.retain(|bytes| {
        use Mnemonic::{Fldcw, Fldenv, Fnsave, Fnstenv, Frstor};
        let code = code(bytes);
        let environment = matches!(code.mnemonic(), Fldcw | Fldenv | Fnsave | Fnstenv | Frstor);
        !environment && matches!(agreement(code), Agreement::Exact | Agreement::ComparisonCodes)
    });
    for _ in 0..20_000 {
        let code: Vec<u8> = (0..random.below(20) + 1).flat_map(|_| random.pick(&encodings).clone()).collect();
        let start = random.state().with_exceptions_masked();
        let differences = differences(&mut native, &mut modelled, &code, &start, Agreement::Exact);
        assert!(differences.is_empty(), "{code:02x?}\nfrom {start:?}\nmodelled, native:\n{}", differences.join("\n"));
    }
}
