//! The SSE and x87 units of the processor that runs the tests, as the reference: results and flags, bit by bit.
//!
//! The crate itself has no unsafe code. Here inline assembly is needed to run one instruction under a chosen control
//! word and to read the flags that it leaves, which no safe interface offers.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

#[path = "against_this_processor/fused.rs"]
mod fused;
#[path = "against_this_processor/half.rs"]
mod half;
#[path = "against_this_processor/operands.rs"]
mod operands;
#[path = "against_this_processor/sse.rs"]
mod sse;
#[path = "against_this_processor/transcendental.rs"]
mod transcendental;
#[path = "against_this_processor/unmasked.rs"]
mod unmasked;
#[path = "against_this_processor/x87.rs"]
mod x87;
#[path = "against_this_processor/x87_unit.rs"]
mod x87_unit;
