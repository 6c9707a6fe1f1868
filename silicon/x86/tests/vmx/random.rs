//! VMCSs of random content: VM-entry refuses them or enters, and nothing panics or hangs.

use silicon_x86::processor::{Outcome, Refused};
use silicon_x86::vmx::Signal;
use x86_defs::vmx::Field;

use crate::guest::Guest;

struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A value as fields have them: few bits, an address, or anything.
    fn value(&mut self) -> u64 {
        let wild = self.next();
        match self.next() % 5 {
            0 => 1 << (wild & 63),
            1 => wild & 0xf_f000,
            2 => wild & 0xff,
            3 => u64::MAX << (wild & 63),
            _ => wild,
        }
    }
}

/// Gives how many VMCSs have entered.
fn run(seed: u64, cases: u32, flips: u64) -> u32 {
    let mut random = Xorshift(seed);
    let mut entered = 0;
    for _ in 0..cases {
        // CPUID; MOV CR8, rcx; MOV ecx, [rbx]; VMFUNC; PAUSE; HLT.
        let code = [0x44, 0x0f, 0x22, 0xc1, 0x8b, 0x0b, 0x0f, 0x01, 0xd4, 0xf3, 0x90, 0x0f, 0xa2, 0xf4];
        let mut guest = Guest::new(&code);
        guest.gpr(3, random.next() & 0xf_ffff).gpr(1, random.next() & 0xf);
        for _ in 0..=random.next() % flips {
            let field = Field::ALL[random.next() as usize % Field::ALL.len()];
            let value = random.value();
            if random.next() & 1 == 0 {
                let old = guest.read(field);
                guest.write(field, old ^ 1 << (value & 63));
            } else {
                guest.write(field, value);
            }
        }
        if random.next() & 3 == 0 {
            guest.core().signal(Signal::External(random.next() as u8));
        }
        let mut launched = false;
        for _ in 0..4 {
            match guest.processor.enter(&mut launched) {
                Ok(()) => {
                    entered += 1;
                    let until = guest.core().now_quarter_cycles() + 20_000;
                    if guest.processor.run(until) == Outcome::Paused && guest.processor.suspend().is_err() {
                        break;
                    }
                }
                Err(Refused::Exit) => {}
                Err(Refused::Failure(_)) => break,
            }
            if guest.processor.left().is_err() {
                break;
            }
        }
    }
    entered
}

#[test]
fn a_vmcs_with_a_few_random_fields_enters_or_is_refused() {
    let entered = run(0x9e37_79b9_7f4a_7c15, 1500, 4);
    assert!(entered > 100, "{entered}");
}

#[test]
fn a_vmcs_with_many_random_fields_is_refused_or_enters() {
    run(0x0123_4567_89ab_cdef, 500, 60);
}
