//! Runs instructions on the processor at hand, as the reference for the modelled one.
//!
//! [`Native::run`] loads a [`State`] (general, x87, MMX and XMM registers, MXCSR, flags), executes the given bytes from
//! an executable page, and takes the state back. The caller sees to it that the bytes
//! * are whole instructions that fall through to the byte after them,
//! * raise no exception: memory operands point at memory of the test, and exceptions of x87 and SSE are masked,
//! * leave RSP, DF, TF and AC alone, and write no memory below RSP.
#![allow(unsafe_code, reason = "no safe interface executes instruction bytes")]
#![allow(dead_code, reason = "each test uses its part")]

use std::arch::asm;
use std::mem::offset_of;

use memmap2::{Mmap, MmapMut};

/// What an instruction reads and changes.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct State {
    /// x87, MMX and SSE state in the layout of FXSAVE64.
    pub fx: [u8; 512],
    /// General registers by number. RSP (4) is neither loaded nor stored.
    pub gpr: [u64; 16],
    /// Only CF, PF, AF, ZF, SF and OF are loaded and stored.
    pub rflags: u64,
    host: Fx,
    /// Bits 255:128 of YMM0-15. [`Native::run`] neither loads nor stores them.
    pub ymm_high: [u128; 16],
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Fx([u8; 512]);

/// CF, PF, AF, ZF, SF and OF.
pub const STATUS_FLAGS: u64 = 0x8d5;

impl Default for State {
    /// All zero, with every exception of x87 and SSE masked.
    fn default() -> Self {
        let mut state = Self { fx: [0; 512], gpr: [0; 16], rflags: 2, host: Fx([0; 512]), ymm_high: [0; 16] };
        state.set_fcw(0x37f);
        state.set_mxcsr(0x1f80);
        state
    }
}

impl State {
    fn word16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.fx[at], self.fx[at + 1]])
    }

    /// x87 control word.
    pub fn fcw(&self) -> u16 {
        self.word16(0)
    }

    pub fn set_fcw(&mut self, value: u16) {
        self.fx[0..2].copy_from_slice(&value.to_le_bytes());
    }

    /// x87 status word.
    pub fn fsw(&self) -> u16 {
        self.word16(2)
    }

    pub fn set_fsw(&mut self, value: u16) {
        self.fx[2..4].copy_from_slice(&value.to_le_bytes());
    }

    /// Abridged tag word.
    pub fn ftw(&self) -> u8 {
        self.fx[4]
    }

    pub fn set_ftw(&mut self, value: u8) {
        self.fx[4] = value;
    }

    pub fn mxcsr(&self) -> u32 {
        u32::from_le_bytes([self.fx[24], self.fx[25], self.fx[26], self.fx[27]])
    }

    pub fn set_mxcsr(&mut self, value: u32) {
        self.fx[24..28].copy_from_slice(&value.to_le_bytes());
    }

    /// ST(i), or MMX register i while TOP is 0: significand, then sign and exponent.
    pub fn st(&self, i: usize) -> (u64, u16) {
        let at = 32 + 16 * i;
        (u64::from_le_bytes(self.fx[at..at + 8].try_into().expect("eight bytes")), self.word16(at + 8))
    }

    pub fn set_st(&mut self, i: usize, significand: u64, sign_exponent: u16) {
        let at = 32 + 16 * i;
        self.fx[at..at + 8].copy_from_slice(&significand.to_le_bytes());
        self.fx[at + 8..at + 10].copy_from_slice(&sign_exponent.to_le_bytes());
    }

    pub fn xmm(&self, i: usize) -> u128 {
        let at = 160 + 16 * i;
        u128::from_le_bytes(self.fx[at..at + 16].try_into().expect("sixteen bytes"))
    }

    pub fn set_xmm(&mut self, i: usize, value: u128) {
        let at = 160 + 16 * i;
        self.fx[at..at + 16].copy_from_slice(&value.to_le_bytes());
    }
}

/// A page of code.
pub struct Native {
    page: Option<Mmap>,
    bytes: Vec<u8>,
}

impl Native {
    pub fn new() -> Self {
        Self { page: None, bytes: Vec::new() }
    }

    /// Executes `bytes` on `state`.
    ///
    /// # Safety
    /// See the module: the bytes must fall through, raise nothing, and touch no memory but the test's.
    pub unsafe fn run(&mut self, bytes: &[u8], state: &mut State) {
        let code = self.code(bytes);
        state.rflags = state.rflags & STATUS_FLAGS | 2;
        // SAFETY: the code page holds the caller's bytes and a `ret`. All registers are saved or declared clobbered;
        // x87 and SSE control are put back from `host`; `state` is exclusively borrowed and has the layout above.
        unsafe {
            asm!(
                "push rbx",
                "push rbp",
                "push rsi",
                "push rdi",
                "fxsave64 [rdi + {host}]",
                "fxrstor64 [rdi]",
                "push qword ptr [rdi + {rflags}]",
                "popfq",
                "mov rax, [rdi + {gpr}]",
                "mov rcx, [rdi + {gpr} + 8]",
                "mov rdx, [rdi + {gpr} + 16]",
                "mov rbx, [rdi + {gpr} + 24]",
                "mov rbp, [rdi + {gpr} + 40]",
                "mov rsi, [rdi + {gpr} + 48]",
                "mov r8, [rdi + {gpr} + 64]",
                "mov r9, [rdi + {gpr} + 72]",
                "mov r10, [rdi + {gpr} + 80]",
                "mov r11, [rdi + {gpr} + 88]",
                "mov r12, [rdi + {gpr} + 96]",
                "mov r13, [rdi + {gpr} + 104]",
                "mov r14, [rdi + {gpr} + 112]",
                "mov r15, [rdi + {gpr} + 120]",
                "mov rdi, [rdi + {gpr} + 56]",
                "call qword ptr [rsp + 8]",
                "xchg [rsp], rdi",
                "mov [rdi + {gpr}], rax",
                "mov [rdi + {gpr} + 8], rcx",
                "mov [rdi + {gpr} + 16], rdx",
                "mov [rdi + {gpr} + 24], rbx",
                "mov [rdi + {gpr} + 40], rbp",
                "mov [rdi + {gpr} + 48], rsi",
                "mov [rdi + {gpr} + 64], r8",
                "mov [rdi + {gpr} + 72], r9",
                "mov [rdi + {gpr} + 80], r10",
                "mov [rdi + {gpr} + 88], r11",
                "mov [rdi + {gpr} + 96], r12",
                "mov [rdi + {gpr} + 104], r13",
                "mov [rdi + {gpr} + 112], r14",
                "mov [rdi + {gpr} + 120], r15",
                "pushfq",
                "pop qword ptr [rdi + {rflags}]",
                "cld",
                "pop qword ptr [rdi + {gpr} + 56]",
                "fxsave64 [rdi]",
                "fxrstor64 [rdi + {host}]",
                "pop rsi",
                "pop rbp",
                "pop rbx",
                gpr = const offset_of!(State, gpr),
                rflags = const offset_of!(State, rflags),
                host = const offset_of!(State, host),
                inout("rdi") &raw mut *state => _,
                inout("rsi") code => _,
                out("r12") _, out("r13") _, out("r14") _, out("r15") _,
                clobber_abi("sysv64"),
            );
        }
        state.rflags &= STATUS_FLAGS;
    }

    /// Address of `bytes` followed by a `ret`, in an executable page.
    fn code(&mut self, bytes: &[u8]) -> *const u8 {
        if self.page.is_none() || self.bytes != bytes {
            let mut page = match self.page.take() {
                Some(page) => page.make_mut().expect("a page can be made writable"),
                None => MmapMut::map_anon(4096).expect("a page of memory"),
            };
            page[..bytes.len()].copy_from_slice(bytes);
            page[bytes.len()] = 0xc3;
            self.page = Some(page.make_exec().expect("a page can be made executable"));
            self.bytes = bytes.to_vec();
        }
        self.page.as_ref().expect("just made").as_ptr()
    }
}
