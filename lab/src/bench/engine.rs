//! What runs the workloads, and by which command.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

/// A machine to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// This machine, on one processor
    Native,
    /// QEMU's translator
    Tcg,
    /// QEMU's translator counting instructions, time derived from the count
    Icount,
    /// The modelled machine, guest time following the host's
    Real,
    /// The modelled machine, guest time derived from modelled cycles
    Virtual,
}

impl Engine {
    /// All, in the order of the table's columns.
    pub const ALL: [Engine; 5] = [Engine::Native, Engine::Tcg, Engine::Icount, Engine::Real, Engine::Virtual];

    /// Head of the column.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Tcg => "tcg",
            Engine::Icount => "icount",
            Engine::Real => "real",
            Engine::Virtual => "virtual",
        }
    }

    /// Title for people.
    pub fn title(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Tcg => "QEMU TCG",
            Engine::Icount => "QEMU TCG -icount",
            Engine::Real => "Glassvisor, real time",
            Engine::Virtual => "Glassvisor, virtual time",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Files that the engines need, all built before.
#[derive(Clone, Debug)]
pub struct Files {
    /// The runner of the workloads.
    pub workload: PathBuf,
    /// bzImage.
    pub kernel: PathBuf,
    /// Initramfs with the same runner.
    pub initrd: PathBuf,
    /// Our VMM.
    pub glassvisor: PathBuf,
    /// QEMU's system emulator: a path, or a name to look up in PATH.
    pub qemu: PathBuf,
}

impl Files {
    /// Where the Makefile leaves them.
    pub fn in_repository(root: &Path) -> Self {
        Files {
            workload: root.join("guest/build/workload"),
            kernel: root.join(".cache/kernels/6.12/vmlinuz"),
            initrd: root.join("guest/build/initramfs-6.12.cpio"),
            glassvisor: root.join("target/release/glassvisor"),
            qemu: PathBuf::from("qemu-system-x86_64"),
        }
    }

    /// What these engines lack: a line for each that says what to do. Empty when nothing is missing.
    pub fn missing(&self, engines: &[Engine]) -> Vec<String> {
        let uses = |wanted: &[Engine]| engines.iter().any(|e| wanted.contains(e));
        let guests = [Engine::Tcg, Engine::Icount, Engine::Real, Engine::Virtual];
        let candidates = [
            (&self.workload, uses(&[Engine::Native]), "run: make -C guest/workloads"),
            (&self.kernel, uses(&guests), "run: guest/fetch-kernel.sh 6.12"),
            (&self.initrd, uses(&guests), "run: guest/build-initramfs.sh 6.12"),
            (
                &self.glassvisor,
                uses(&[Engine::Real, Engine::Virtual]),
                "run: cargo build --release -p vmm --bin glassvisor",
            ),
            (
                &self.qemu,
                uses(&[Engine::Tcg, Engine::Icount]),
                "install it: sudo apt-get install qemu-system-x86, or leave it out: --engines native,real,virtual",
            ),
            (&PathBuf::from("taskset"), uses(&[Engine::Native]), "install it: sudo apt-get install util-linux"),
        ];
        candidates
            .into_iter()
            .filter(|(file, used, _)| *used && !exists(file))
            .map(|(file, _, hint)| format!("{} is missing; {hint}", file.display()))
            .collect()
    }
}

/// A path with a folder in it as it is, a bare name in PATH.
fn exists(file: &Path) -> bool {
    if file.components().count() > 1 {
        return file.is_file();
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(file).is_file()))
}

/// The program and its arguments that make `engine` run these workloads, one after the other.
/// `processor` is the host processor that the native run is bound to: guests have one, too.
pub fn command(engine: Engine, files: &Files, workloads: &[&str], scale: u32, processor: u32) -> Vec<String> {
    let path = |p: &Path| p.display().to_string();
    let list = workloads.join(",");
    let scale = scale.to_string();
    let append = format!("console=ttyS0 quiet panic=-1 gv.scale={scale} gv.run={list}");
    // No network card, no graphics: their firmware would be time that we do not spend.
    let qemu = || {
        [
            path(&files.qemu).as_str(),
            "-accel",
            "tcg",
            "-m",
            "512",
            "-smp",
            "1",
            "-nic",
            "none",
            "-vga",
            "none",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-monitor",
            "none",
            "-no-reboot",
            "-kernel",
            path(&files.kernel).as_str(),
            "-initrd",
            path(&files.initrd).as_str(),
            "-append",
            append.as_str(),
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let ours = |time: &str| {
        [
            path(&files.glassvisor).as_str(),
            "boot",
            "--kernel",
            path(&files.kernel).as_str(),
            "--initrd",
            path(&files.initrd).as_str(),
            "--append",
            append.as_str(),
            "--memory",
            "512M",
            "--cpus",
            "1",
            "--time",
            time,
            "--quiet",
        ]
        .map(str::to_owned)
        .to_vec()
    };
    match engine {
        Engine::Native => ["taskset", "-c", &processor.to_string(), &path(&files.workload), "-s", &scale, &list]
            .map(str::to_owned)
            .to_vec(),
        Engine::Tcg => qemu(),
        Engine::Icount => {
            let mut words = qemu();
            // The form of icount that is deterministic: the clock and the random seed must not come from the host.
            words.extend(
                ["-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01T00:00:00,clock=vm", "-seed", "1"]
                    .map(str::to_owned),
            );
            words
        }
        Engine::Real => ours("real"),
        Engine::Virtual => ours("virtual"),
    }
}

/// The first host processor that this process may run on.
pub fn first_allowed_processor() -> u32 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| first_of_list(status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?))
        .unwrap_or(0)
}

fn first_of_list(list: &str) -> Option<u32> {
    list.trim().split([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        Files::in_repository(Path::new("/nowhere"))
    }

    #[test]
    fn icount_command_is_the_deterministic_form() {
        let words = command(Engine::Icount, &files(), &["fib"], 100, 0).join(" ");
        for part in ["-icount shift=0,sleep=off", "-rtc base=2020-01-01T00:00:00,clock=vm", "-seed 1"] {
            assert!(words.contains(part), "{words}");
        }
        assert!(!command(Engine::Tcg, &files(), &["fib"], 100, 0).contains(&"-icount".to_owned()));
    }

    #[test]
    fn all_guests_get_the_same_kernel_parameters_memory_and_processors() {
        let append = "console=ttyS0 quiet panic=-1 gv.scale=7 gv.run=intmix,fib".to_owned();
        for engine in [Engine::Tcg, Engine::Icount, Engine::Real, Engine::Virtual] {
            let words = command(engine, &files(), &["intmix", "fib"], 7, 0);
            assert!(words.contains(&append), "{words:?}");
            assert!(words.iter().any(|w| w.starts_with("512")) && words.contains(&"1".to_owned()));
        }
    }

    #[test]
    fn missing_files_are_named_with_what_to_do_and_only_for_the_engines_asked_for() {
        assert_eq!(files().missing(&[Engine::Native]).len(), 1);
        let lines = files().missing(&[Engine::Real]).join("\n");
        for part in ["fetch-kernel.sh", "build-initramfs.sh", "cargo build"] {
            assert!(lines.contains(part), "{lines}");
        }
        let no_qemu = Files { qemu: "/nowhere/qemu".into(), ..files() };
        assert!(no_qemu.missing(&[Engine::Tcg]).iter().any(|l| l.contains("apt-get install qemu-system-x86")));
    }

    #[test]
    fn first_processor_of_a_list() {
        assert_eq!(first_of_list("\t3-7,9"), Some(3));
        assert_eq!(first_of_list(" 0"), Some(0));
        assert_eq!(first_of_list(""), None);
    }
}
