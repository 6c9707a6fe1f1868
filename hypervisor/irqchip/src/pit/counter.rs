//! One counter: what software reads and writes.
//!
//! Source: 8254 data sheet, "Programming the 8254", "Read Operations".

use crate::routing::Level;

/// Mode of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CountingMode {
    /// Mode 0.
    InterruptOnTerminalCount,
    /// Mode 1.
    OneShot,
    /// Mode 2.
    RateGenerator,
    /// Mode 3.
    SquareWave,
    /// Mode 4.
    SoftwareStrobe,
    /// Mode 5.
    HardwareStrobe,
}

impl CountingMode {
    const fn from_control(control: u8) -> Self {
        match (control >> 1) & 7 {
            0 => Self::InterruptOnTerminalCount,
            1 => Self::OneShot,
            2 | 6 => Self::RateGenerator,
            3 | 7 => Self::SquareWave,
            4 => Self::SoftwareStrobe,
            _ => Self::HardwareStrobe,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::InterruptOnTerminalCount => 0,
            Self::OneShot => 1,
            Self::RateGenerator => 2,
            Self::SquareWave => 3,
            Self::SoftwareStrobe => 4,
            Self::HardwareStrobe => 5,
        }
    }

    /// The count starts again by itself.
    pub(super) const fn is_periodic(self) -> bool {
        matches!(self, Self::RateGenerator | Self::SquareWave)
    }

    /// A rising gate starts the count.
    pub(super) const fn is_triggered(self) -> bool {
        matches!(self, Self::OneShot | Self::HardwareStrobe)
    }
}

/// Which bytes of the count an access transfers (read/write bits of the control word).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Access {
    Low,
    High,
    LowThenHigh,
}

/// Next byte of a two-byte access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Half {
    First,
    Second,
}

/// Progress of the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Progress {
    /// No count loaded since the control word, or (triggered modes) no trigger yet.
    Idle,
    /// Counting since the tick.
    Running { since: u64 },
    /// Stopped by the gate, after so many ticks.
    Paused { elapsed: u64 },
}

/// One of the three counters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    pub(super) mode: CountingMode,
    bcd: bool,
    access: Access,
    /// Count that the running cycle was loaded with: 1 to 65536.
    pub(super) reload: u32,
    /// Count written while a periodic mode runs: it takes over at the end of the cycle.
    pub(super) next_reload: Option<u32>,
    pub(super) progress: Progress,
    pub(super) gate: Level,
    written_low: u8,
    write_half: Half,
    read_half: Half,
    latched_count: Option<u16>,
    latched_status: Option<u8>,
}

impl Counter {
    pub(super) const fn new(gate: Level) -> Self {
        Self {
            mode: CountingMode::SquareWave,
            bcd: false,
            access: Access::LowThenHigh,
            reload: 0x1_0000,
            next_reload: None,
            progress: Progress::Idle,
            gate,
            written_low: 0,
            write_half: Half::First,
            read_half: Half::First,
            latched_count: None,
            latched_status: None,
        }
    }

    /// Current mode.
    #[must_use]
    pub fn mode(&self) -> CountingMode {
        self.mode
    }

    pub(super) fn is_bcd(&self) -> bool {
        self.bcd
    }

    /// A control word that is not a latch command.
    pub(super) fn write_control(&mut self, control: u8) {
        *self = Self {
            mode: CountingMode::from_control(control),
            bcd: control & 1 != 0,
            access: match (control >> 4) & 3 {
                1 => Access::Low,
                2 => Access::High,
                _ => Access::LowThenHigh,
            },
            reload: self.reload,
            ..Self::new(self.gate)
        };
    }

    pub(super) fn write(&mut self, value: u8, tick: u64) {
        let value = u16::from(value);
        match (self.access, self.write_half) {
            (Access::Low, _) => self.load(value, tick),
            (Access::High, _) => self.load(value << 8, tick),
            (Access::LowThenHigh, Half::First) => {
                self.written_low = value as u8;
                self.write_half = Half::Second;
                // The first byte stops a mode 0 count.
                if self.mode == CountingMode::InterruptOnTerminalCount {
                    self.progress = Progress::Idle;
                }
            }
            (Access::LowThenHigh, Half::Second) => {
                self.write_half = Half::First;
                self.load(value << 8 | u16::from(self.written_low), tick);
            }
        }
    }

    /// A count written takes effect with the next tick.
    fn load(&mut self, written: u16, tick: u64) {
        let count = self.decode(written);
        if self.mode.is_periodic() && self.progress != Progress::Idle {
            self.next_reload = Some(count);
            return;
        }
        if self.mode.is_triggered() {
            self.next_reload = Some(count);
            return;
        }
        self.reload = count;
        self.progress = match self.gate {
            Level::High => Progress::Running { since: tick + 1 },
            Level::Low => Progress::Paused { elapsed: 0 },
        };
    }

    /// Digits above 9 are not counts; the chip's behaviour is then undefined, and here they count as themselves.
    fn decode(&self, written: u16) -> u32 {
        if !self.bcd {
            return if written == 0 { 0x1_0000 } else { u32::from(written) };
        }
        let digit = |shift: u16| u32::from(written >> shift & 0xf);
        let value = digit(12) * 1000 + digit(8) * 100 + digit(4) * 10 + digit(0);
        if value == 0 { 10_000 } else { value }
    }

    fn encode(&self, count: u32) -> u16 {
        if !self.bcd {
            return count as u16;
        }
        let count = count % 10_000;
        let digits = [count / 1000, count / 100 % 10, count / 10 % 10, count % 10];
        digits.into_iter().fold(0, |value, digit| value << 4 | digit as u16)
    }

    pub(super) fn set_gate(&mut self, gate: Level, tick: u64) {
        let rises = self.gate == Level::Low && gate == Level::High;
        let falls = self.gate == Level::High && gate == Level::Low;
        self.gate = gate;
        if self.mode.is_triggered() {
            if rises && (self.next_reload.is_some() || self.progress != Progress::Idle) {
                self.reload = self.next_reload.take().unwrap_or(self.reload);
                self.progress = Progress::Running { since: tick + 1 };
            }
            return;
        }
        match self.progress {
            Progress::Running { since } if falls => {
                self.progress = Progress::Paused { elapsed: tick.saturating_sub(since) };
            }
            Progress::Paused { elapsed } if rises => {
                // A periodic mode starts its cycle anew, the others go on.
                let elapsed = if self.mode.is_periodic() {
                    self.reload = self.next_reload.take().unwrap_or(self.reload);
                    0
                } else {
                    elapsed
                };
                self.progress = Progress::Running { since: (tick + 1).saturating_sub(elapsed) };
            }
            _ => {}
        }
    }

    /// Latch the count, unless one is latched and unread.
    pub(super) fn latch_count(&mut self, tick: u64) {
        if self.latched_count.is_none() {
            self.latched_count = Some(self.encode(self.count(tick)));
            self.read_half = Half::First;
        }
    }

    /// Latch the status, unless one is latched and unread.
    pub(super) fn latch_status(&mut self, tick: u64) {
        let output = u8::from(self.output(tick) == Level::High) << 7;
        let null_count = match self.progress {
            Progress::Running { since } => since > tick || self.next_reload.is_some(),
            Progress::Paused { .. } => self.next_reload.is_some(),
            Progress::Idle => true,
        };
        let access = match self.access {
            Access::Low => 1,
            Access::High => 2,
            Access::LowThenHigh => 3,
        };
        let status = output | u8::from(null_count) << 6 | access << 4 | self.mode.bits() << 1 | u8::from(self.bcd);
        self.latched_status.get_or_insert(status);
    }

    pub(super) fn read(&mut self, tick: u64) -> u8 {
        if let Some(status) = self.latched_status.take() {
            return status;
        }
        let count = self.latched_count.unwrap_or_else(|| self.encode(self.count(tick)));
        let [low, high] = count.to_le_bytes();
        let (value, done) = match (self.access, self.read_half) {
            (Access::Low, _) => (low, true),
            (Access::High, _) => (high, true),
            (Access::LowThenHigh, Half::First) => {
                self.read_half = Half::Second;
                (low, false)
            }
            (Access::LowThenHigh, Half::Second) => {
                self.read_half = Half::First;
                (high, true)
            }
        };
        if done {
            self.latched_count = None;
        }
        value
    }
}
