//! The child: executes cases natively, with every exception caught.
//!
//! A signal handler loads the registers of the case into the context that the kernel restores, so the case runs as soon
//! as the handler returns; the exception that ends it (INT3 at least) brings it back, and the handler notes the registers.

use std::cell::UnsafeCell;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use x86_defs::segment::{index, rights};

use super::case::{Outcome, Slot};
use super::mode::{LOCAL, Mode};
use super::place::{CODE, DATA, DATA_BYTES, GS_BASE, READ_ONLY, START, read_only_byte};
use super::shared::{CODE_AT, DATA_AT, READ_ONLY_AT, Shared};

const ARCH_SET_GS: libc::c_long = 0x1001;
const ARCH_GET_GS: libc::c_long = 0x1004;
/// Registers of a signal context in the order of their numbers.
const GREGS: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];
/// Bytes of FXSAVE that hold x87 and XMM registers; after them come the reserved and the kernel's.
const FX_USED: usize = 416;

struct Run {
    slot: *mut Slot,
    gregs: [i64; 23],
    fx: [u8; FX_USED],
    ymm_high: [u128; 16],
}

struct Global(UnsafeCell<Run>);
// SAFETY: only the one thread that runs cases touches it.
unsafe impl Sync for Global {}
static RUN: Global =
    Global(UnsafeCell::new(Run { slot: null_mut(), gregs: [0; 23], fx: [0; FX_USED], ymm_high: [0; 16] }));
/// 0: not in a case; 1: about to enter; 2: running.
static PHASE: AtomicU32 = AtomicU32::new(0);

/// Serves the parent until it goes away.
pub fn serve(shared: &Shared) {
    // SAFETY: maps fresh pages at addresses where a position-independent program has nothing, and installs handlers
    // that run on a stack of their own.
    unsafe {
        shared.map_at(CODE, CODE_AT, 0x1000, libc::PROT_READ | libc::PROT_EXEC);
        shared.map_at(DATA, DATA_AT, DATA_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        shared.map_at(READ_ONLY, READ_ONLY_AT, 0x1000, libc::PROT_READ);
        ptr::write_bytes(shared.at(CODE_AT), 0xcc, 0x1000);
        for offset in 0..0x1000 {
            shared.at(READ_ONLY_AT + offset).write(read_only_byte(offset));
        }
        install();
        set_local_descriptors();
        set_gs();
    }
    let mut command = [0_u8; 8];
    // SAFETY: reads into a local array.
    while unsafe { libc::read(0, command.as_mut_ptr().cast(), 8) } == 8 {
        let [first, count] = [0, 4].map(|i| u32::from_le_bytes(command[i..i + 4].try_into().expect("four bytes")));
        // SAFETY: a plain system call.
        unsafe { libc::alarm(20) };
        for i in first..first + count {
            shared.progress().store(i, Ordering::SeqCst);
            // SAFETY: the parent waits, so the slot is ours.
            unsafe { execute(shared, shared.slot(i as usize)) };
        }
        // SAFETY: plain system calls.
        unsafe {
            libc::alarm(0);
            libc::write(1, [1_u8].as_ptr().cast(), 1);
        }
    }
}

unsafe fn install() {
    const STACK: usize = 256 << 10;
    // SAFETY: the stack is leaked, the handler has the signature of SA_SIGINFO.
    unsafe {
        let stack = Vec::leak(vec![0_u8; STACK]);
        let alternate = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK };
        assert_eq!(libc::sigaltstack(&raw const alternate, null_mut()), 0);
        for signal in
            [libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGALRM, libc::SIGSYS]
        {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigfillset(&raw mut action.sa_mask);
            assert_eq!(libc::sigaction(signal, &raw const action, null_mut()), 0);
        }
    }
}

/// Fills the local descriptor table.
unsafe fn set_local_descriptors() {
    const WRITE: libc::c_int = 0x11;
    for (i, segment) in LOCAL.iter().enumerate() {
        let bit = |at: u32, set: bool| u32::from(set) << at;
        let code = segment.has(rights::CODE);
        let flags =
            bit(0, segment.has(rights::DB)) | bit(2, code) | bit(3, !segment.has(rights::WRITABLE)) | bit(6, true);
        // Entry number, base, limit, flags: `struct user_desc`.
        let descriptor = [i as u32, segment.base as u32, segment.limit, flags];
        // SAFETY: the kernel reads the array. Where it refuses, cases that need the segment fail.
        unsafe { libc::syscall(libc::SYS_modify_ldt, WRITE, &raw const descriptor, 16_usize) };
    }
}

/// Loads the segment registers that the kernel does not load when a signal handler returns. 64-bit mode ignores them.
unsafe fn load_segments(mode: Mode) {
    let [ds, es, gs] = [index::DS, index::ES, index::GS].map(|register| mode.segment(register).selector);
    // SAFETY: nothing in the process uses GS, and the bases of the others are ignored.
    unsafe { std::arch::asm!("mov ds, {0:x}", "mov es, {1:x}", "mov gs, {2:x}", in(reg) ds, in(reg) es, in(reg) gs) };
}

unsafe fn set_gs() {
    // SAFETY: nothing in the process uses GS.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, GS_BASE) };
}

unsafe fn execute(shared: &Shared, slot: *mut Slot) {
    // SAFETY: see `serve`; the trap enters the handler, and the case ends in it as well.
    unsafe {
        let code = shared.at(CODE_AT + (START - CODE) as usize);
        ptr::copy_nonoverlapping((*slot).code.as_ptr(), code, (*slot).code_len as usize);
        let data = shared.at(DATA_AT);
        ptr::copy_nonoverlapping((*slot).data.as_ptr(), data, DATA_BYTES);
        (*RUN.0.get()).slot = slot;
        PHASE.store(1, Ordering::SeqCst);
        if !(*slot).mode.is_64() {
            load_segments((*slot).mode);
        }
        // A case may have left NT, ID or AC behind, which the return from a signal does not change.
        std::arch::asm!("push 0x202", "popfq", "int3");
        ptr::copy_nonoverlapping(data, (*slot).data_after.as_mut_ptr(), DATA_BYTES);
        ptr::write_bytes(code, 0xcc, (*slot).code_len as usize);
        if !(*slot).mode.is_64() {
            std::arch::asm!("mov gs, {0:x}", in(reg) 0);
            set_gs();
        }
        if (*slot).changes_gs != 0 {
            let base = &raw mut (*slot).outcome.gs_base;
            libc::syscall(libc::SYS_arch_prctl, ARCH_GET_GS, base);
            set_gs();
        }
    }
}

extern "C" fn on_signal(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: AC, which POPF may have set, would make the handler's own accesses fault.
    unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], {no_ac}", "popfq", no_ac = const !0x4_0000_i32) };
    // SAFETY: the kernel passes a valid context, whose floating-point state is that of FXSAVE, maybe with XSAVE's more.
    unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        let gregs = &mut context.uc_mcontext.gregs;
        let fx = context.uc_mcontext.fpregs.cast::<u8>();
        let run = &mut *RUN.0.get();
        let slot = run.slot;
        match PHASE.load(Ordering::SeqCst) {
            1 if signal == libc::SIGTRAP => {
                run.gregs.copy_from_slice(&gregs[..23]);
                ptr::copy_nonoverlapping(fx, run.fx.as_mut_ptr(), FX_USED);
                save_ymm(fx, &mut run.ymm_high);
                let before = &(*slot).before;
                for (i, &at) in GREGS.iter().enumerate() {
                    gregs[at as usize] = before.gpr[i] as i64;
                }
                let mode = (*slot).mode;
                gregs[libc::REG_RIP as usize] = mode.start() as i64;
                let selectors = &mut gregs[libc::REG_CSGSFS as usize];
                let [cs, ss] = [index::CS, index::SS].map(|register| i64::from(mode.segment(register).selector));
                *selectors = *selectors & 0xffff_ffff_0000 | cs | ss << 48;
                gregs[libc::REG_EFL as usize] = before.rflags as i64;
                load_fx(before.fx.as_ptr(), fx);
                load_ymm(&before.ymm_high, fx);
                PHASE.store(2, Ordering::SeqCst);
            }
            2 => {
                let after = &mut (*slot).after;
                for (i, &at) in GREGS.iter().enumerate() {
                    after.gpr[i] = gregs[at as usize] as u64;
                }
                after.rflags = gregs[libc::REG_EFL as usize] as u64;
                ptr::copy_nonoverlapping(fx, after.fx.as_mut_ptr(), FX_USED);
                save_ymm(fx, &mut after.ymm_high);
                (*slot).outcome = Outcome {
                    signal: signal as u32,
                    vector: gregs[libc::REG_TRAPNO as usize] as u32,
                    error: gregs[libc::REG_ERR as usize] as u64,
                    address: gregs[libc::REG_CR2 as usize] as u64,
                    rip: gregs[libc::REG_RIP as usize] as u64,
                    gs_base: GS_BASE,
                };
                // What follows stays as the kernel has it.
                gregs[..=libc::REG_CSGSFS as usize].copy_from_slice(&run.gregs[..=libc::REG_CSGSFS as usize]);
                load_fx(run.fx.as_ptr(), fx);
                load_ymm(&run.ymm_high, fx);
                PHASE.store(0, Ordering::SeqCst);
            }
            _ => libc::_exit(if signal == libc::SIGALRM { 98 } else { 99 }),
        }
    }
}

/// Puts x87 and XMM registers into the state that the kernel restores.
unsafe fn load_fx(from: *const u8, to: *mut u8) {
    const MXCSR_MASK: usize = 28;
    // SAFETY: both hold an FXSAVE image; with the magic number there is an XSAVE header behind it.
    unsafe {
        ptr::copy_nonoverlapping(from, to, MXCSR_MASK);
        ptr::copy_nonoverlapping(from.add(32), to.add(32), FX_USED - 32);
        if is_xsave(to) {
            let present = to.add(HEADER).cast::<u64>();
            present.write(present.read() | 3);
        }
    }
}

/// XSAVE header behind the FXSAVE image.
const HEADER: usize = 512;
/// Bit of the AVX state in the header, and in the components that the kernel names.
const AVX: u64 = 4;

/// Whether the kernel's state has an XSAVE header.
unsafe fn is_xsave(fx: *const u8) -> bool {
    const MAGIC_AT: usize = 464;
    const MAGIC: u32 = 0x4650_5853;
    // SAFETY: it holds an FXSAVE image at least.
    unsafe { fx.add(MAGIC_AT).cast::<u32>().read() == MAGIC }
}

/// Where the upper halves of the YMM registers are in the kernel's state, if they are: standard format, whatever the
/// kernel itself uses.
unsafe fn ymm_at(fx: *mut u8) -> Option<*mut u128> {
    const COMPONENTS_AT: usize = 472;
    // SAFETY: it holds an FXSAVE image, and the components that its software bytes name.
    unsafe {
        let has_avx = is_xsave(fx) && fx.add(COMPONENTS_AT).cast::<u64>().read() & AVX != 0;
        has_avx.then(|| fx.add(std::arch::x86_64::__cpuid_count(0xd, 2).ebx as usize).cast())
    }
}

unsafe fn load_ymm(from: &[u128; 16], fx: *mut u8) {
    // SAFETY: see `ymm_at`.
    unsafe {
        if let Some(at) = ymm_at(fx) {
            ptr::copy_nonoverlapping(from.as_ptr().cast::<u8>(), at.cast(), 256);
            let present = fx.add(HEADER).cast::<u64>();
            present.write(present.read() | AVX);
        }
    }
}

/// Without the bit in the header, all are zero.
unsafe fn save_ymm(fx: *mut u8, to: &mut [u128; 16]) {
    *to = [0; 16];
    // SAFETY: see `ymm_at`.
    unsafe {
        if let Some(at) = ymm_at(fx)
            && fx.add(HEADER).cast::<u64>().read() & AVX != 0
        {
            ptr::copy_nonoverlapping(at.cast::<u8>(), to.as_mut_ptr().cast(), 256);
        }
    }
}
