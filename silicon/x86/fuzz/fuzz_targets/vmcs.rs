#![no_main]

#[path = "../../tests/fuzz/input.rs"]
mod input;
#[path = "../../tests/fuzz/machine.rs"]
mod machine;
#[allow(dead_code, reason = "each binary runs one target")]
#[path = "../../tests/fuzz/targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::vmcs_contents(data));
