//! `glassvisor boot`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args, ValueEnum};

use super::answers::{Answer, Answers};
use super::backend::{Backend, DEFAULT_CPU, TimeMode, VmConfig};
use super::fail;
use super::progress::{GuestOutput, Progress, Screen};
use super::session::{EscapeKey, Outcome, Session, StateHash, StopFlags};
use super::values::Size;
use crate::boot::{BootError, BootSource, Initrd};
use crate::console::{InputThread, RawTerminal};
use crate::devices::virtio::Block;
use crate::machine::{DEFAULT_MENU_WAIT_MS, Ending, FirmwareSource, Machine};
use crate::report::Report;
use crate::trace::TraceWriter;
use crate::vm::MachineVm;

/// Images larger than this are not kernels; it also keeps `--kernel /dev/zero` from filling memory.
const IMAGE_MAX: u64 = 2 << 30;
/// Midnight of 2020-01-01 UTC: virtual time starts at the same moment in every run.
const VIRTUAL_EPOCH_NS: u64 = 1_577_836_800_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Time {
    /// Clocks follow modelled cycles; equal inputs give equal runs
    Virtual,
    /// Clocks follow the host
    Real,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stats {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("guest").args(["kernel", "firmware", "builtin"]).required(true))]
#[command(after_help = "\
Examples:
  glassvisor boot --builtin --stats table
      The built-in guest, and what it did.
  glassvisor boot --kernel /boot/vmlinuz-6.12-cloud-amd64 --initrd initrd.img \\
      --append 'console=ttyS0 panic=-1' --memory 512M --cpus 2
      A Debian kernel with its serial console on this terminal (Ctrl-] q quits).
  glassvisor boot --kernel vmlinuz --append 'console=ttyS0 root=/dev/vda' --disk root.img
      A root file system on a virtio disk (the kernel needs virtio_mmio and virtio_blk).
  glassvisor boot --firmware /usr/share/seabios/bios-256k.bin --disk disk.img \\
      --answer 'boot menu.=\\e' --answer 'Select boot device=1'
      SeaBIOS with its boot menu, from which the disk is booted.
  glassvisor boot --kernel vmlinuz --trace exits.tsv --stats json --stats-file stats.json
      Every VM-exit in a file, and the counts for a program.

Exit codes:
  0    the guest powered off (or the built-in guest succeeded)
  odd  the guest wrote CODE to port 0xf4: (CODE << 1) | 1
  2    wrong command line
  4    could not start: bad image, too little memory, unreadable disk, unknown CPU feature
  6    the guest asked for a reset
  8    triple fault
  10   all processors halted for ever
  12   the modelled machine met something unknown
  14   --max-time ran out
  16   quit by the escape key
  130  Ctrl-C or another signal to end")]
pub struct BootArgs {
    /// Kernel: bzImage, ELF64 vmlinux, or multiboot ELF32
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Firmware image to start with at the reset vector, instead of a kernel: SeaBIOS
    #[arg(long, value_name = "FILE")]
    firmware: Option<PathBuf>,
    /// How long the firmware offers its boot menu, in milliseconds of guest time
    #[arg(long, value_name = "MS", requires = "firmware", default_value_t = DEFAULT_MENU_WAIT_MS)]
    boot_menu_wait: u32,
    /// Write the firmware's debug messages (port 0x402) to a file
    #[arg(long, value_name = "FILE", requires = "firmware")]
    debug_console: Option<PathBuf>,
    /// Type KEYS when the guest has printed PROMPT (\e escape key, \r Enter); several are given one after the other
    #[arg(long, value_name = "PROMPT=KEYS")]
    answer: Vec<Answer>,
    /// Initial RAM disk, or the multiboot module
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// Kernel command line
    #[arg(long, value_name = "TEXT", default_value = "console=ttyS0", allow_hyphen_values = true)]
    append: String,
    /// Guest memory: a number with K, M or G
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: Size,
    /// Number of vCPUs, 1 to 16
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    cpus: u8,
    /// CPU model with features to add or remove; `glassvisor cpus` lists them
    #[arg(long, value_name = "MODEL[,+F,-F]", default_value = DEFAULT_CPU)]
    cpu: String,
    /// Raw disk image as a virtio block device; may be given several times
    #[arg(long, value_name = "FILE")]
    disk: Vec<PathBuf>,
    /// What clocks follow
    #[arg(long, value_enum, default_value_t = Time::Virtual)]
    time: Time,
    /// Seed of the machine's random numbers (virtual time)
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print what was counted when the guest ends
    #[arg(long, value_enum, value_name = "FORM")]
    stats: Option<Stats>,
    /// Write the statistics here instead of to standard error
    #[arg(long, value_name = "FILE", requires = "stats")]
    stats_file: Option<PathBuf>,
    /// Write every VM-exit to a file: guest time, vCPU, reason, qualification, RIP
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Run the small bare-metal guest that is built in
    #[arg(long)]
    builtin: bool,
    /// Show progress on standard error; on by itself when output goes to a file
    #[arg(long, conflicts_with = "quiet")]
    progress: bool,
    /// Say nothing but errors and what the guest prints
    #[arg(long)]
    quiet: bool,
    /// End after so many seconds of wall time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    max_time: Option<u64>,
}

/// Runs the command; returns the exit status.
pub fn run(args: &BootArgs, backend: &impl Backend) -> u8 {
    match prepare(args, backend) {
        Ok(prepared) => prepared.run(args),
        Err(error) => fail(&error),
    }
}

type Error = Box<dyn std::error::Error>;
type SharedTrace = Arc<Mutex<TraceWriter<BufWriter<File>>>>;

struct Prepared {
    machine: Machine<Box<dyn MachineVm>>,
    trace: Option<SharedTrace>,
    screen: Screen,
    answers: Answers,
}

fn read_image(path: &Path, what: &'static str) -> Result<Vec<u8>, BootError> {
    let name = || path.display().to_string();
    let read_error = |source| BootError::Read { what, path: name(), source };
    // Looked at first: opening a named pipe would wait for its other end.
    let metadata = std::fs::metadata(path).map_err(read_error)?;
    if !metadata.is_file() || metadata.len() > IMAGE_MAX {
        let reason = if metadata.is_dir() {
            "it is a directory"
        } else if metadata.is_file() {
            "it is larger than 2 GiB"
        } else {
            "it is not a plain file"
        };
        return Err(read_error(io::Error::new(io::ErrorKind::InvalidInput, reason)));
    }
    std::fs::read(path).map_err(read_error)
}

fn prepare(args: &BootArgs, backend: &impl Backend) -> Result<Prepared, Error> {
    let firmware = match &args.firmware {
        Some(path) => Some((path.display().to_string(), read_image(path, "firmware")?)),
        None => None,
    };
    let (kernel_path, kernel) = match &args.kernel {
        Some(path) => (path.display().to_string(), read_image(path, "kernel")?),
        None if args.builtin => ("the built-in guest".into(), guest_bare::builtin_guest()),
        None => Default::default(),
    };
    let initrd = match &args.initrd {
        Some(path) => Some((path.display().to_string(), read_image(path, "initrd")?)),
        None => None,
    };
    let disks = args.disk.iter().map(|path| Block::open(path)).collect::<Result<Vec<_>, _>>()?;
    let mut vm = backend.open(VmConfig {
        time: match args.time {
            Time::Virtual => TimeMode::Virtual,
            Time::Real => TimeMode::Real,
        },
        seed: args.seed,
        wall_clock_ns: VIRTUAL_EPOCH_NS,
        cpu: args.cpu.clone(),
    })?;
    let mut trace = None;
    if let Some(path) = &args.trace {
        let open = || TraceWriter::new(BufWriter::new(File::create(path)?));
        let writer: io::Result<_> = open();
        let writer = writer.map_err(|error| format!("{}: cannot write the trace: {error}", path.display()))?;
        let shared = Arc::new(Mutex::new(writer));
        let sink = shared.clone();
        vm.set_trace(Box::new(move |record| sink.lock().unwrap_or_else(PoisonError::into_inner).record(record)));
        trace = Some(shared);
    }
    let (screen, answers) = (Screen::default(), Answers::new(args.answer.clone()));
    let serial_out = Box::new(answers.watch(GuestOutput::new(screen.clone(), io::stdout())));
    let (memory, cpus) = (args.memory.0, args.cpus);
    let machine = if let Some((path, image)) = &firmware {
        let source = FirmwareSource {
            path,
            image,
            menu_wait_ms: args.boot_menu_wait,
            debug_console: args.debug_console.as_deref().map(open_debug_console).transpose()?,
        };
        Machine::with_firmware(vm, memory, cpus, disks, serial_out, source)?
    } else {
        let mut machine = Machine::new(vm, memory, cpus, disks, serial_out)?;
        machine.boot(&BootSource {
            kernel_path: &kernel_path,
            kernel: &kernel,
            initrd: initrd.as_ref().map(|(path, bytes)| Initrd { path, bytes }),
            command_line: &args.append,
            rsdp: 0,
        })?;
        machine
    };
    Ok(Prepared { machine, trace, screen, answers })
}

fn open_debug_console(path: &Path) -> Result<Box<dyn io::Write + Send>, String> {
    match File::create(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(format!("{}: cannot write the firmware's messages: {error}", path.display())),
    }
}

impl Prepared {
    fn run(self, args: &BootArgs) -> u8 {
        let Self { machine, trace, screen, answers } = self;
        let (mut session, terminal) = match open_session(args, machine, screen, answers) {
            Ok(opened) => opened,
            Err(error) => return fail(&format!("cannot set up the console: {error}")),
        };
        let outcome = session.run();
        if let Some(progress) = &mut session.progress {
            progress.clear();
        }
        drop(terminal);
        let traced = trace.map_or(Ok(()), |trace| trace.lock().unwrap_or_else(PoisonError::into_inner).finish());
        let status = exit_code(args, &outcome);
        let ending = if builtin_succeeded(args, &outcome) {
            "the built-in guest ran to its end, and all was as it should be".to_owned()
        } else {
            outcome.to_string()
        };
        let whole = args.stats.is_some() && matches!(outcome, Outcome::Guest(_));
        let hash = if whole { StateHash::Taken } else { StateHash::Omitted };
        let report = session.report(&ending, status, hash);
        finish(args, &outcome, &report, traced)
    }
}

type VmSession = Session<Box<dyn MachineVm>>;

fn open_session(
    args: &BootArgs,
    machine: Machine<Box<dyn MachineVm>>,
    screen: Screen,
    answers: Answers,
) -> io::Result<(VmSession, Option<RawTerminal>)> {
    let kicker = machine.vm().kicker();
    let stop = StopFlags::default();
    stop.watch_signals(kicker.clone())?;
    let max_time = args.max_time.map(Duration::from_secs);
    if let Some(limit) = max_time {
        stop.watch_time(limit, kicker.clone())?;
    }
    let quiet_output = !io::stdout().is_terminal() && io::stderr().is_terminal();
    let progress = args.progress || quiet_output && !args.quiet;
    let progress = if progress { Some(Progress::start(kicker.clone(), screen)?) } else { None };
    let terminal = RawTerminal::enter()?;
    if terminal.is_some() && !args.quiet {
        eprintln!("glassvisor: the guest has this terminal; Ctrl-] then q quits, Ctrl-] then ? tells more");
    }
    let escape = if terminal.is_some() { EscapeKey::Active } else { EscapeKey::Absent };
    let input = Some(InputThread::start(io::stdin(), kicker)?);
    let started = Instant::now();
    Ok((Session { machine, input, escape, answers, stop, max_time, progress, started }, terminal))
}

/// The built-in guest's own success is the program's.
fn exit_code(args: &BootArgs, outcome: &Outcome) -> u8 {
    if builtin_succeeded(args, outcome) { 0 } else { outcome.exit_code() }
}

fn builtin_succeeded(args: &BootArgs, outcome: &Outcome) -> bool {
    let success = Ending::DebugExit(guest_bare::SUCCESS_CODE.into());
    args.builtin && matches!(outcome, Outcome::Guest(ending) if *ending == success)
}

/// Tells how it ended, with statistics where asked for or where a user cut the run short.
fn finish(args: &BootArgs, outcome: &Outcome, report: &Report, traced: io::Result<()>) -> u8 {
    let mut status = report.exit_code;
    if status != 0 || !args.quiet {
        eprintln!("glassvisor: {}", report.ending);
    }
    let cut_short = matches!(outcome, Outcome::Signal | Outcome::UserQuit | Outcome::TimeLimit(_));
    let text = match args.stats {
        Some(Stats::Json) => report.json() + "\n",
        Some(Stats::Table) => report.tables(),
        None if cut_short && !args.quiet => report.tables(),
        None => String::new(),
    };
    match &args.stats_file {
        None => eprint!("{text}"),
        Some(path) => {
            if let Err(error) = std::fs::write(path, text) {
                status = fail(&format!("{}: cannot write the statistics: {error}", path.display()));
            }
        }
    }
    if let Err(error) = traced {
        status = fail(&format!("the trace is incomplete: {error}"));
    }
    status
}
