//! Runs of `glassvisor`, with a limit on their time and their output at hand.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest run of anything here; only a hang takes so long, even on a busy machine.
pub const HANG: Duration = Duration::from_secs(900);
/// How long a program that was asked to end may take: at once for a person, but the machine may be busy.
pub const PROMPT: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(5);

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository is where it was built")
}

pub fn needed(path: PathBuf, command: &str) -> String {
    assert!(path.is_file(), "{} is missing; run in the repository: {command}", path.display());
    path.to_str().expect("a path of plain characters").to_owned()
}

/// Path of a file that one of the repository's commands makes.
pub fn made(path: &str, command: &str) -> String {
    needed(root().join(path), command)
}

/// Path of a Debian kernel.
pub fn kernel(version: &str) -> String {
    needed(root().join(format!(".cache/kernels/{version}/vmlinuz")), &format!("guest/fetch-kernel.sh {version}"))
}

/// Path of its initial RAM disk.
pub fn initrd(version: &str) -> String {
    needed(
        root().join(format!("guest/build/initramfs-{version}.cpio")),
        &format!("make -C guest/workloads && guest/build-initramfs.sh {version}"),
    )
}

/// Path of the RAM disk in which a kernel tests its cryptography.
pub fn crypto_initrd(version: &str) -> String {
    needed(
        root().join(format!("guest/build/crypto-{version}.cpio")),
        &format!("guest/build-crypto-initramfs.sh {version}"),
    )
}

/// A file of this test's own with this content.
pub fn file(name: &str, content: &[u8]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path.to_str().expect("a path of plain characters").to_owned()
}

/// Path of a file that a run is going to write.
pub fn new_file(name: &str) -> String {
    let path = file(name, b"");
    std::fs::remove_file(&path).expect("just written");
    path
}

/// A command line.
pub struct Glassvisor {
    arguments: Vec<String>,
    limit: Duration,
}

/// `glassvisor` with arguments split at spaces.
pub fn glassvisor(arguments: &str) -> Glassvisor {
    Glassvisor { arguments: arguments.split_whitespace().map(str::to_owned).collect(), limit: HANG }
}

/// `glassvisor boot` with a Debian kernel and its initial RAM disk, and these kernel parameters on top.
pub fn debian(version: &str, parameters: &str) -> Glassvisor {
    debian_with(version, version, parameters)
}

/// The same with the initial RAM disk of another name.
pub fn debian_with(version: &str, ram_disk: &str, parameters: &str) -> Glassvisor {
    glassvisor("boot --quiet")
        .arg("--kernel", &kernel(version))
        .arg("--initrd", &initrd(ram_disk))
        .arg("--append", &format!("console=ttyS0 quiet panic=-1 {parameters}"))
}

/// `glassvisor boot` with a bare-metal guest.
pub fn bare(name: &str, image: &[u8]) -> Glassvisor {
    glassvisor("boot").arg("--kernel", &file(name, image))
}

impl Glassvisor {
    pub fn arg(mut self, option: &str, value: &str) -> Self {
        self.arguments.extend([option.to_owned(), value.to_owned()]);
        self
    }

    pub fn args(mut self, arguments: &str) -> Self {
        self.arguments.extend(arguments.split_whitespace().map(str::to_owned));
        self
    }

    /// Another limit on its time than [`HANG`].
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_glassvisor"));
        command.args(&self.arguments);
        command
    }

    /// Starts it, without input.
    pub fn start(self) -> Running {
        let mut child = self
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let stdout = Collected::start(child.stdout.take().expect("piped"));
        let stderr = Collected::start(child.stderr.take().expect("piped"));
        let (line, limit) = (self.arguments.join(" "), self.limit);
        Running { child, stdout, stderr, line, limit, started: Instant::now() }
    }

    /// Runs it to its end.
    pub fn run(self) -> Ended {
        self.start().end()
    }

    /// Runs it to its end; the statistics come as JSON.
    pub fn statistics(self, name: &str) -> (Ended, serde_json::Value) {
        let path = new_file(name);
        let ended = self.args("--stats json").arg("--stats-file", &path).run();
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}; {ended}"));
        let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
        (ended, json)
    }
}

/// Output that is read as it comes.
pub struct Collected {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    pub fn start(mut source: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let sink = text.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = source.read(&mut buffer) {
                sink.lock().expect("no reader panics").extend_from_slice(&buffer[..len]);
            }
        });
        Self { text, reader }
    }

    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("no reader panics")).into_owned()
    }

    fn all(self) -> String {
        self.reader.join().expect("no reader panics");
        String::from_utf8_lossy(&self.text.lock().expect("no reader panics")).into_owned()
    }

    /// Waits until the output holds a text.
    pub fn wait_for(&self, text: &str) {
        let started = Instant::now();
        while !self.so_far().contains(text) {
            assert!(started.elapsed() < HANG, "waited in vain for '{text}' in:\n{}", self.so_far());
            std::thread::sleep(POLL);
        }
    }
}

/// A program that runs.
pub struct Running {
    child: Child,
    pub stdout: Collected,
    stderr: Collected,
    line: String,
    limit: Duration,
    started: Instant,
}

/// Waits for the end; kills what hangs.
pub fn wait(child: &mut Child) -> Option<i32> {
    wait_at_most(child, HANG)
}

fn wait_at_most(child: &mut Child, limit: Duration) -> Option<i32> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status.code();
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(POLL);
    }
}

pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("the program still runs");
}

impl Running {
    pub fn interrupt(&self) {
        signal(&self.child, rustix::process::Signal::INT);
    }

    /// Whether it has ended, or runs for too long; [`Running::end`] then does not wait.
    pub fn is_over(&mut self) -> bool {
        self.started.elapsed() > self.limit || self.child.try_wait().expect("a child can be waited for").is_some()
    }

    pub fn end(mut self) -> Ended {
        let status = wait_at_most(&mut self.child, self.limit.saturating_sub(self.started.elapsed()));
        let ended = Ended {
            line: self.line,
            status: status.unwrap_or(-1),
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
            took: self.started.elapsed(),
        };
        assert!(status.is_some(), "killed by a signal, or by this test as it ran too long: {ended}");
        assert!(!ended.stderr.contains("panicked"), "{ended}");
        ended
    }
}

/// A program that has ended.
pub struct Ended {
    line: String,
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, status, stdout, stderr, took } = self;
        write!(f, "glassvisor {line}\nstatus {status} after {took:.1?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

impl Ended {
    /// The status, and every text somewhere in the messages.
    #[track_caller]
    pub fn must_say(&self, status: i32, texts: &[&str]) {
        assert_eq!(self.status, status, "{self}");
        for text in texts {
            assert!(self.stderr.contains(text), "'{text}' is missing: {self}");
        }
    }

    /// A line of the guest's output.
    #[track_caller]
    pub fn must_print(&self, line: &str) {
        assert!(self.stdout.lines().any(|printed| printed.trim_end() == line), "no line '{line}': {self}");
    }
}
