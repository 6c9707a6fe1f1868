//! Speed of the fast and slow paths, as a ratio to the host's own operation in the same run. Run with
//! `cargo test --release -p silicon-float --test speed -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use silicon_float::{ControlWord, F32, F64, HalfImm, Mxcsr, sse, x87};

const ROUNDS: u32 = 5_000_000;

fn nanoseconds(mut body: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    for i in 0..u64::from(ROUNDS) {
        body(i);
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
}

#[test]
#[ignore = "a measurement"]
fn operations_cost() {
    let operand = |i: u64| (1.0 + i as f64 * 0.37).to_bits();
    let y = black_box(1.000_003_f64.to_bits());
    let native = nanoseconds(|i| {
        black_box(f64::from_bits(operand(i)) * f64::from_bits(y));
    });
    println!("host multiplication {native:.2} ns, with the loop");
    let report = |what: &str, cost: f64| println!("{what:<42} {cost:7.2} ns, {:6.1} times", cost / native);
    for (what, control) in [("PE set", 0x1fa0), ("PE clear at each", 0x1f80), ("rounding up", 0x5fa0)] {
        let run = |op: fn(u64, u64, &mut Mxcsr) -> u64| {
            nanoseconds(|i| {
                let mut m = Mxcsr(black_box(control));
                black_box(op(operand(i), y, &mut m));
            })
        };
        report(&format!("add, {what}"), run(sse::add::<F64>));
        report(&format!("mul, {what}"), run(sse::mul::<F64>));
        report(&format!("div, {what}"), run(sse::div::<F64>));
        report(&format!("sqrt, {what}"), run(|a, _, m| sse::sqrt::<F64>(a, m)));
        report(&format!("fused, double, {what}"), run(|a, b, m| sse::fma::<F64>(a, b, b, m)));
        report(
            &format!("fused, single, {what}"),
            run(|a, _, m| sse::fma::<F32>((a >> 29) as u32 ^ 0x7800_0000, 0x3f80_0019, 0x3f80_0019, m).into()),
        );
        report(
            &format!("to half, {what}"),
            run(|a, _, m| sse::f32_to_f16((a >> 29) as u32 ^ 0x7800_0000, HalfImm(4), m).into()),
        );
    }
    let control = ControlWord::default();
    let b = x87::from_f64(y).value;
    report(
        "x87 add",
        nanoseconds(|i| {
            black_box(x87::add(x87::from_f64(operand(i)).value, b, control));
        }),
    );
    report(
        "x87 mul",
        nanoseconds(|i| {
            black_box(x87::mul(x87::from_f64(operand(i)).value, b, control));
        }),
    );
    report(
        "x87 div",
        nanoseconds(|i| {
            black_box(x87::div(x87::from_f64(operand(i)).value, b, control));
        }),
    );
    report(
        "x87 sqrt",
        nanoseconds(|i| {
            black_box(x87::sqrt(x87::from_f64(operand(i)).value, control));
        }),
    );
}
