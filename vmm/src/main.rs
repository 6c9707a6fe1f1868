#![forbid(unsafe_code)]
//! The `glassvisor` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    vmm::cli::main()
}
