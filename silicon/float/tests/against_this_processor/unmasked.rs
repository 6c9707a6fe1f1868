//! SSE with exceptions that are not masked: which fault, and with which flags in MXCSR.

use std::arch::asm;
use std::sync::atomic::{AtomicU32, Ordering};

use silicon_float::{F32, F64, HalfImm, Mxcsr, RoundImm, SimdException, sse};

use crate::half::{near_half, to_halves};
use crate::operands::Random;
use crate::sse::{fused, run};

const CASES: u32 = 10_000;

/// MXCSR at the last fault; zero if there was none. Only the one test below faults.
static AT_FAULT: AtomicU32 = AtomicU32::new(0);

/// Notes MXCSR and masks everything, so that the instruction completes when it is run again.
extern "C" fn note(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a context whose floating-point state is present on x86-64.
    let mxcsr = unsafe { &mut (*(*context.cast::<libc::ucontext_t>()).uc_mcontext.fpregs).mxcsr };
    AT_FAULT.store(*mxcsr, Ordering::Relaxed);
    *mxcsr = Mxcsr::RESET;
}

fn catch_faults() {
    // SAFETY: the action is fully set up, and the handler touches an atomic and its own context only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGFPE, &action, std::ptr::null_mut()), 0);
    }
}

fn mxcsr(random: &mut Random) -> u32 {
    let r = random.next() as u32;
    // Flags that are set already must not fault.
    let flags = if random.below(2) == 0 { 0 } else { random.below(64) as u32 };
    (r & 0xff80) | if random.below(4) == 0 { Mxcsr::DAZ } else { 0 } | flags
}

#[test]
fn unmasked_exceptions_agree() {
    catch_faults();
    let mut random = Random(41);
    for _ in 0..CASES {
        let control = mxcsr(&mut random);
        let (a, c) = (random.f32(), random.f32());
        let b = random.f32_near(a);
        let (x, z) = (random.f64(), random.f64());
        let y = if random.below(4) == 0 { f64::from(f32::from_bits(a)).to_bits() } else { random.f64_near(x) };
        macro_rules! same {
            ($what:literal, $operands:expr, $model:expr, $here:expr) => {{
                let mut m = Mxcsr(control);
                let model = m.instruction($model);
                AT_FAULT.store(0, Ordering::Relaxed);
                let (value, after) = $here;
                let at_fault = AT_FAULT.load(Ordering::Relaxed);
                let here = if at_fault == 0 { (Ok(value), after) } else { (Err(SimdException), at_fault) };
                assert_eq!(
                    (model, m.0),
                    here,
                    "{} {:x?} {control:#x}, model MXCSR {:#x}, here {:#x}",
                    $what,
                    $operands,
                    m.0,
                    here.1
                );
            }};
        }
        same!("addss", (a, b), |m| sse::add::<F32>(a, b, m), run!("addss {a}, {b}", f32, a, b, control));
        same!("addsd", (x, y), |m| sse::add::<F64>(x, y, m), run!("addsd {a}, {b}", f64, x, y, control));
        same!("subsd", (x, y), |m| sse::sub::<F64>(x, y, m), run!("subsd {a}, {b}", f64, x, y, control));
        same!("mulss", (a, b), |m| sse::mul::<F32>(a, b, m), run!("mulss {a}, {b}", f32, a, b, control));
        same!("mulsd", (x, y), |m| sse::mul::<F64>(x, y, m), run!("mulsd {a}, {b}", f64, x, y, control));
        same!("divss", (a, b), |m| sse::div::<F32>(a, b, m), run!("divss {a}, {b}", f32, a, b, control));
        same!("divsd", (x, y), |m| sse::div::<F64>(x, y, m), run!("divsd {a}, {b}", f64, x, y, control));
        same!("sqrtsd", y, |m| sse::sqrt::<F64>(y, m), run!("sqrtsd {a}, {b}", f64, 0, y, control));
        same!("minsd", (x, y), |m| sse::min::<F64>(x, y, m), run!("minsd {a}, {b}", f64, x, y, control));
        same!("maxss", (a, b), |m| sse::max::<F32>(a, b, m), run!("maxss {a}, {b}", f32, a, b, control));
        same!("cvtsd2ss", y, |m| u64::from(sse::f64_to_f32(y, m)), run!("cvtsd2ss {a}, {b}", f64, 0, y, control));
        same!("cvtss2sd", a, |m| sse::f32_to_f64(a, m), run!("cvtss2sd {a}, {b}", f64, 0, u64::from(a), control));
        if std::is_x86_feature_detected!("sse4.1") {
            same!(
                "roundss",
                a,
                |m| sse::round_to_int::<F32>(a, RoundImm(4), m),
                run!("roundss {a}, {b}, 4", f32, 0, a, control)
            );
        }
        if std::is_x86_feature_detected!("f16c") {
            let half = near_half(&mut random);
            let immediate = random.next() as u8;
            same!("vcvtps2ph", (half, immediate), |m| sse::f32_to_f16(half, HalfImm(immediate), m), {
                let (result, after) = to_halves([half, 0, 0, 0], immediate, control);
                (result[0], after)
            });
        }
        if std::is_x86_feature_detected!("fma") {
            same!(
                "fmadd",
                (x, y, z),
                |m| sse::fma::<F64>(x, y, z, m),
                fused!("vfmadd213sd {a}, {b}, {c}", f64, y, x, z, control)
            );
            same!(
                "fmadd",
                (a, b, c),
                |m| sse::fma::<F32>(a, b, c, m),
                fused!("vfmadd213ss {a}, {b}, {c}", f32, b, a, c, control)
            );
        }
    }
}
