//! `lab bench`: compare with native and QEMU.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Experiments on the modelled machine")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Wall time of a boot and of guest workloads: native, QEMU TCG with and without icount, and ours
    Bench(lab::bench::Options),
}

fn main() -> ExitCode {
    let Command::Bench(options) = Arguments::parse().command;
    match lab::bench::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::FAILURE
        }
    }
}
