//! The `glassvisor` command line.

mod answers;
mod backend;
mod boot;
mod progress;
mod session;
mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use backend::{Backend, CpuModel, Modelled};
pub use boot::BootArgs;
pub use session::Outcome;

use crate::explain;

/// Exit status when nothing could be started.
pub const EXIT_CANNOT_START: u8 = 4;
/// Exit status when `--max-time` ran out.
pub const EXIT_TIME_LIMIT: u8 = 14;
/// Exit status after the escape key's `q`.
pub const EXIT_USER_QUIT: u8 = 16;
/// Exit status after Ctrl-C or a signal to end.
pub const EXIT_SIGNAL: u8 = 130;

#[derive(Debug, Parser)]
#[command(
    name = "glassvisor",
    version,
    about = "KVM in user space: guests on a modelled x86-64 processor, every VM-exit counted",
    after_help = "\
Examples:
  glassvisor boot --builtin --stats table
      Run the small guest that is built in: the quickest look at what is counted.
  glassvisor explain HLT
      What a VM-exit, an MSR or a CPUID leaf is. Names and numbers both work.
  glassvisor boot --help
      How to boot a kernel, with examples and exit codes."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Boot a guest
    Boot(Box<BootArgs>),
    /// Explain a VM-exit reason, an MSR or a CPUID leaf
    #[command(after_help = "\
Examples:
  glassvisor explain EPT_VIOLATION      an exit reason by name
  glassvisor explain exit:48            the same by number
  glassvisor explain 0x6e0              a number: everything that it can be
  glassvisor explain IA32_TSC_DEADLINE  an MSR by name
  glassvisor explain leaf:0x15          a CPUID leaf by number")]
    Explain {
        /// A name, a number, or a number after `exit:`, `msr:` or `leaf:`
        what: String,
    },
    /// List the modelled processors and their features
    Cpus,
}

/// Runs the program with the modelled machine.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    ExitCode::from(match cli.command {
        Command::Boot(args) => boot::run(&args, &Modelled),
        Command::Explain { what } => explain_one(&what),
        Command::Cpus => list_cpus(&Modelled),
    })
}

fn explain_one(what: &str) -> u8 {
    match explain::explain(what) {
        Ok(text) => {
            print(&text);
            0
        }
        Err(unknown) => fail(&unknown),
    }
}

fn list_cpus(backend: &impl Backend) -> u8 {
    let models = backend.cpu_models();
    if models.is_empty() {
        return fail(&"this build has no modelled processors to list");
    }
    let mut out = String::new();
    for CpuModel { name, description, features } in models {
        out.push_str(&format!("{name}\n  {description}\n  features: {}\n\n", features.join(" ")));
    }
    print(&out);
    0
}

/// Prints to standard output; a reader that has gone away (`| head`) is no error.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Tells the user what is wrong; returns the exit status.
fn fail(error: &dyn std::fmt::Display) -> u8 {
    eprintln!("glassvisor: {error}");
    EXIT_CANNOT_START
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn impossible_values_are_refused_with_the_range() {
        for arguments in
            [&["--cpus", "0"][..], &["--cpus", "17"], &["--memory", "12Q"], &["--time", "slow"], &["--stats", "xml"]]
        {
            let line = ["glassvisor", "boot", "--kernel", "k"].into_iter().chain(arguments.iter().copied());
            let error = Cli::try_parse_from(line).unwrap_err().to_string();
            assert!(error.contains(arguments[1]), "{error}");
        }
    }

    #[test]
    fn a_kernel_or_the_builtin_guest_is_needed_and_not_both() {
        assert!(Cli::try_parse_from(["glassvisor", "boot"]).is_err());
        assert!(Cli::try_parse_from(["glassvisor", "boot", "--kernel", "k", "--builtin"]).is_err());
        assert!(Cli::try_parse_from(["glassvisor", "boot", "--builtin"]).is_ok());
    }
}
