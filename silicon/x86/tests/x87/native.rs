//! The processor at hand.
#![expect(unsafe_code, reason = "runs machine code on the processor at hand")]

use std::arch::asm;

use memmap2::{Mmap, MmapMut};
use silicon_float::x87::F80;

use crate::state::{OPERAND, State};

/// The area of FXSAVE.
#[repr(C, align(16))]
struct Area([u8; 512]);

/// Runs code of x87 instructions in this process.
pub struct Native {
    code: Option<Mmap>,
    bytes: Vec<u8>,
}

const RET: u8 = 0xc3;

impl Native {
    pub fn new() -> Self {
        Self { code: None, bytes: Vec::new() }
    }

    /// The address of `bytes` followed by RET.
    fn place(&mut self, bytes: &[u8]) -> u64 {
        if self.code.is_none() || self.bytes != bytes {
            let mut map = MmapMut::map_anon(4096).expect("a page");
            map[..bytes.len()].copy_from_slice(bytes);
            map[bytes.len()] = RET;
            self.code = Some(map.make_exec().expect("an executable page"));
            self.bytes = bytes.to_vec();
        }
        self.code.as_ref().map_or(0, |map| map.as_ptr() as u64)
    }

    /// Runs x87 instructions from `start`: their memory operand is at RSI. None but the last may leave an exception
    /// pending.
    pub fn run(&mut self, code: &[u8], start: &State) -> State {
        let code = self.place(code);
        let mut area = Area([0; 512]);
        let mut end = start.clone();
        // SAFETY: the area has 512 bytes and is aligned.
        unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut area, options(nostack)) };
        put(start, &mut area.0);
        let mut rflags = start.rflags;
        // SAFETY: both images are of FXSAVE or in its format, without reserved bits in MXCSR. The code consists of x87
        // instructions and RET: it reads and writes no memory but up to 108 of the 128 bytes at RSI, no registers but
        // RAX, status flags and x87 state. It raises no exception: #MF would need one pending before its last
        // instruction, which the caller promises there is not. FNINIT drops what is pending after it; it and the
        // clobbers leave the x87 state as the ABI wants it.
        unsafe {
            asm!(
                "fxrstor64 [{area}]",
                "push {rflags}",
                "popfq",
                "call {code}",
                "pushfq",
                "pop {rflags}",
                "fxsave64 [{area}]",
                "fninit",
                area = in(reg) &raw mut area,
                rflags = inout(reg) rflags,
                code = in(reg) code,
                in("rsi") end.memory.as_mut_ptr(),
                inout("rax") end.rax,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        let _: [u8; OPERAND] = end.memory;
        end.rflags = rflags;
        get(&area.0, &mut end);
        // Not one that the code has loaded.
        if (0..4096).contains(&end.fip.wrapping_sub(code)) {
            end.fip -= code;
        }
        end
    }
}

fn put(state: &State, area: &mut [u8; 512]) {
    area[0..2].copy_from_slice(&state.fcw.to_le_bytes());
    area[2..4].copy_from_slice(&state.fsw.to_le_bytes());
    area[4] = state.ftw;
    area[6..24].fill(0);
    for (st, slot) in state.stack.iter().zip(area[32..160].chunks_exact_mut(16)) {
        slot[..10].copy_from_slice(&st.to_bytes());
    }
}

fn get(area: &[u8; 512], state: &mut State) {
    let word = |at: usize| u16::from_le_bytes([area[at], area[at + 1]]);
    (state.fcw, state.fsw, state.ftw, state.fop) = (word(0), word(2), area[4], word(6));
    state.fip = (0..4).fold(0, |fip, i| fip | u64::from(word(8 + 2 * i)) << (16 * i));
    for (st, slot) in state.stack.iter_mut().zip(area[32..160].chunks_exact(16)) {
        *st = slot.first_chunk::<10>().map_or(F80::ZERO, |bytes| F80::from_bytes(*bytes));
    }
}
