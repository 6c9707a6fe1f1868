//! One x87 instruction on the processor at hand.

use silicon_float::F80;

/// What is left after an instruction: ST0, ST1, the status word, and the memory it may have written.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    pub st0: F80,
    pub st1: F80,
    pub status: u16,
    pub memory: [u8; 16],
}

impl Left {
    pub fn flags(&self) -> u8 {
        (self.status & 0x3f) as u8
    }

    pub fn c(&self, n: u32) -> bool {
        self.status >> [8, 9, 10, 14][n as usize] & 1 != 0
    }
}

/// Memory as an instruction finds it.
pub const UNTOUCHED: [u8; 16] = [0xa5; 16];

/// Runs `$op` with `$a` in ST0, `$b` in ST1 and memory at `[{m}]` under a control word.
macro_rules! execute {
    ($op:expr, $a:expr, $b:expr, $control:expr) => {
        execute!($op, $a, $b, $control, UNTOUCHED)
    };
    ($op:expr, $a:expr, $b:expr, $control:expr, $memory:expr) => {{
        let operands: [[u8; 10]; 2] = [$a.to_bytes(), $b.to_bytes()];
        let mut memory: [u8; 16] = $memory;
        let mut results = [[0u8; 10]; 2];
        let control: u16 = $control;
        let default: u16 = 0x037f;
        let status: u16;
        // SAFETY: the x87 stack starts empty and ends empty with the control word of the ABI; memory operands are
        // locals of the sizes that the instructions access. Exceptions that are not masked stay pending until FNCLEX.
        unsafe {
            std::arch::asm!(
                "fninit", "fldcw word ptr [{control}]",
                "fld tbyte ptr [{operands} + 10]", "fld tbyte ptr [{operands}]", "fnclex",
                $op,
                "fnstsw ax", "fnclex", "fldcw word ptr [{default}]",
                "fstp tbyte ptr [{results}]", "fstp tbyte ptr [{results} + 10]", "fninit",
                "/* {m} */",
                control = in(reg) &control, default = in(reg) &default, operands = in(reg) &operands,
                results = in(reg) &mut results, m = in(reg) &mut memory,
                out("ax") status,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        Left { st0: F80::from_bytes(results[0]), st1: F80::from_bytes(results[1]), status, memory }
    }};
}
pub(crate) use execute;
