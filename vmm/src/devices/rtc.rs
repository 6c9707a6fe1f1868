//! Real-time clock: an MC146818 as PCs have it, with time of day from the VM's wall clock.
//!
//! Source: Motorola data sheet "MC146818 Real-Time Clock plus RAM", sections "Address Map", "Registers" and
//! "Interrupts". Daylight saving and the square-wave output do not exist.

use std::sync::{Arc, Mutex, PoisonError};

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};
use vm_device::MutDevicePio;
use vm_device::bus::{PioAddress, PioAddressOffset};

use super::RTC_GSI;
use super::lines::IrqLines;

const NS_PER_S: i128 = 1_000_000_000;
/// An update is announced this long before it happens.
const UPDATE_IN_PROGRESS_NS: i128 = 244_000;

const SECONDS: u8 = 0x00;
const SECONDS_ALARM: u8 = 0x01;
const MINUTES: u8 = 0x02;
const MINUTES_ALARM: u8 = 0x03;
const HOURS: u8 = 0x04;
const HOURS_ALARM: u8 = 0x05;
const WEEKDAY: u8 = 0x06;
const DAY: u8 = 0x07;
const MONTH: u8 = 0x08;
const YEAR: u8 = 0x09;
const REG_A: u8 = 0x0a;
const REG_B: u8 = 0x0b;
const REG_C: u8 = 0x0c;
const REG_D: u8 = 0x0d;
const CENTURY: u8 = 0x32;

const A_UPDATE_IN_PROGRESS: u8 = 1 << 7;
const A_RATE: u8 = 0xf;
const B_SET: u8 = 1 << 7;
const B_BINARY: u8 = 1 << 2;
const B_24_HOURS: u8 = 1 << 1;
/// Interrupt enables in register B sit where the flags sit in register C.
const PERIODIC: u8 = 1 << 6;
const ALARM: u8 = 1 << 5;
const UPDATE_ENDED: u8 = 1 << 4;
const C_INTERRUPT: u8 = 1 << 7;
const D_VALID: u8 = 1 << 7;
const HOURS_PM: u8 = 1 << 7;
/// Alarm values from here on match every time.
const ALARM_ANY: u8 = 0xc0;

/// The VM's time as of the last exit, shared with devices.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Mutex<(u64, u64)>>);

impl Clock {
    /// Sets VM time since power-on and the wall clock since 1970.
    pub fn set(&self, now_ns: u64, wall_clock_ns: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (now_ns, wall_clock_ns);
    }

    /// VM time since power-on.
    pub fn now_ns(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Nanoseconds since 1970.
    pub fn wall_clock_ns(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// The clock chip, at ports 0x70 and 0x71.
pub struct Rtc {
    clock: Clock,
    lines: IrqLines,
    index: u8,
    ram: [u8; 128],
    /// What the guest set the time to, as difference to the wall clock.
    offset_ns: i128,
    /// Time while updates are stopped by the guest.
    stopped: Option<OffsetDateTime>,
    flags: u8,
    /// Up to here the chip's time has been looked at for interrupts.
    seen_ns: i128,
}

impl Rtc {
    pub fn new(clock: Clock, lines: IrqLines) -> Self {
        let mut ram = [0; 128];
        // 32768 Hz crystal, periodic rate 1024 Hz, as firmware leaves it.
        ram[usize::from(REG_A)] = 0x26;
        ram[usize::from(REG_B)] = B_24_HOURS;
        let seen_ns = i128::from(clock.wall_clock_ns());
        Self { clock, lines, index: 0, ram, offset_ns: 0, stopped: None, flags: 0, seen_ns }
    }

    /// Fills cells of the chip's RAM, as they were kept by its battery: index and value. Clock registers stay.
    pub fn preset(&mut self, cells: &[(u8, u8)]) {
        for &(index, value) in cells {
            if index > REG_D && index != CENTURY {
                self.ram[usize::from(index & 0x7f)] = value;
            }
        }
    }

    fn chip_ns(&self) -> i128 {
        i128::from(self.clock.wall_clock_ns()) + self.offset_ns
    }

    fn time(&self) -> OffsetDateTime {
        self.stopped.unwrap_or_else(|| {
            OffsetDateTime::from_unix_timestamp_nanos(self.chip_ns()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
        })
    }

    fn register(&self, index: u8) -> u8 {
        self.ram[usize::from(index & 0x7f)]
    }

    fn encode(&self, value: u8) -> u8 {
        if self.register(REG_B) & B_BINARY != 0 { value } else { ((value / 10) << 4) | (value % 10) }
    }

    fn decode(&self, value: u8) -> u8 {
        if self.register(REG_B) & B_BINARY != 0 {
            value
        } else {
            (value >> 4).saturating_mul(10).saturating_add(value & 0xf)
        }
    }

    fn encode_hour(&self, hour: u8) -> u8 {
        if self.register(REG_B) & B_24_HOURS != 0 {
            return self.encode(hour);
        }
        let on_dial = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
        self.encode(on_dial) | if hour >= 12 { HOURS_PM } else { 0 }
    }

    fn decode_hour(&self, value: u8) -> u8 {
        if self.register(REG_B) & B_24_HOURS != 0 {
            return self.decode(value);
        }
        self.decode(value & !HOURS_PM) % 12 + if value & HOURS_PM != 0 { 12 } else { 0 }
    }

    fn read(&mut self) -> u8 {
        let time = self.time();
        match self.index {
            SECONDS => self.encode(time.second()),
            MINUTES => self.encode(time.minute()),
            HOURS => self.encode_hour(time.hour()),
            WEEKDAY => self.encode(time.weekday().number_from_sunday()),
            DAY => self.encode(time.day()),
            MONTH => self.encode(time.month().into()),
            YEAR => self.encode(time.year().rem_euclid(100) as u8),
            CENTURY => self.encode((time.year().div_euclid(100)).clamp(0, 99) as u8),
            REG_A => {
                let to_update = NS_PER_S - self.chip_ns().rem_euclid(NS_PER_S);
                let announced = self.stopped.is_none() && to_update <= UPDATE_IN_PROGRESS_NS;
                self.register(REG_A) | if announced { A_UPDATE_IN_PROGRESS } else { 0 }
            }
            REG_C => {
                self.look_for_events();
                std::mem::take(&mut self.flags)
            }
            REG_D => D_VALID,
            other => self.register(other),
        }
    }

    fn write(&mut self, value: u8) {
        let slot = usize::from(self.index);
        match self.index {
            SECONDS | MINUTES | HOURS | DAY | MONTH | YEAR | CENTURY => self.set_time(value),
            // The weekday follows from the date.
            WEEKDAY | REG_C | REG_D => {}
            REG_A => {
                self.look_for_events();
                self.ram[slot] = value & !A_UPDATE_IN_PROGRESS;
            }
            REG_B => {
                self.look_for_events();
                let stop = value & B_SET != 0;
                match (stop, self.stopped) {
                    (true, None) => self.stopped = Some(self.time()),
                    (false, Some(time)) => {
                        self.stopped = None;
                        self.run_from(time);
                    }
                    _ => {}
                }
                self.ram[slot] = value;
                self.raise();
            }
            _ => self.ram[slot] = value,
        }
    }

    fn run_from(&mut self, time: OffsetDateTime) {
        self.offset_ns = time.unix_timestamp_nanos() - i128::from(self.clock.wall_clock_ns());
        self.seen_ns = self.chip_ns();
    }

    /// Changes one field of date or time; a date that does not exist is left as it was.
    fn set_time(&mut self, value: u8) {
        let now = self.time();
        let number = self.decode(value);
        let (mut year, mut month, mut day) = (now.year(), u8::from(now.month()), now.day());
        let (mut hour, mut minute, mut second) = (now.hour(), now.minute(), now.second());
        match self.index {
            SECONDS => second = number,
            MINUTES => minute = number,
            HOURS => hour = self.decode_hour(value),
            DAY => day = number,
            MONTH => month = number,
            YEAR => year = year.div_euclid(100) * 100 + i32::from(number),
            _ => year = i32::from(number) * 100 + year.rem_euclid(100),
        }
        let composed = Month::try_from(month)
            .and_then(|month| {
                // Fields are written one by one: 31 is cut to what the month has until the day follows.
                let day = if self.index == DAY { day } else { day.min(month.length(year)) };
                Date::from_calendar_date(year, month, day)
            })
            .and_then(|date| Ok((date, Time::from_hms(hour, minute, second)?)));
        let Ok((date, time_of_day)) = composed else { return };
        let time = PrimitiveDateTime::new(date, time_of_day).assume_utc();
        if self.stopped.is_some() {
            self.stopped = Some(time);
        } else {
            self.run_from(time);
        }
    }

    fn period_ns(&self) -> Option<i128> {
        let ticks = match self.register(REG_A) & A_RATE {
            0 => return None,
            // The two fastest rates are those of 8 and 9.
            rate @ (1 | 2) => 1i128 << (rate + 6),
            rate => 1i128 << (rate - 1),
        };
        Some(ticks * NS_PER_S / 32_768)
    }

    fn alarm_matches(&self, second_of_day: i128) -> bool {
        let parts = [
            (SECONDS_ALARM, second_of_day % 60),
            (MINUTES_ALARM, second_of_day / 60 % 60),
            (HOURS_ALARM, second_of_day / 3600),
        ];
        parts.iter().all(|&(index, now)| {
            let set = self.register(index);
            let value = if index == HOURS_ALARM { self.decode_hour(set) } else { self.decode(set) };
            set >= ALARM_ANY || i128::from(value) == now
        })
    }

    /// Sets the flags of everything that happened since the last look.
    fn look_for_events(&mut self) {
        let now = self.chip_ns();
        let seen = std::mem::replace(&mut self.seen_ns, now);
        if self.stopped.is_some() || now <= seen {
            return;
        }
        let (from, to) = (seen.div_euclid(NS_PER_S), now.div_euclid(NS_PER_S));
        if to > from {
            self.flags |= UPDATE_ENDED;
            // A day holds every time of day.
            if (from + 1..=to).take(86_400).any(|second| self.alarm_matches(second.rem_euclid(86_400))) {
                self.flags |= ALARM;
            }
        }
        if self.period_ns().is_some_and(|period| now.div_euclid(period) > seen.div_euclid(period)) {
            self.flags |= PERIODIC;
        }
    }

    fn raise(&mut self) {
        let enabled = self.register(REG_B) & (PERIODIC | ALARM | UPDATE_ENDED);
        if self.flags & enabled != 0 && self.flags & C_INTERRUPT == 0 {
            self.flags |= C_INTERRUPT;
            self.lines.pulse(RTC_GSI);
        }
    }

    /// Raises the interrupt if something enabled happened; to be called at the times of [`Rtc::next_event_ns`].
    pub fn poll(&mut self) {
        self.look_for_events();
        self.raise();
    }

    /// VM time of the next event that the guest wants an interrupt for.
    pub fn next_event_ns(&self) -> Option<u64> {
        let enabled = self.register(REG_B);
        // While the interrupt line is up, nothing can raise it again.
        if self.stopped.is_some() || self.flags & C_INTERRUPT != 0 {
            return None;
        }
        let now = self.chip_ns();
        let until = |period: i128| period - now.rem_euclid(period);
        let second = (enabled & (ALARM | UPDATE_ENDED) != 0).then(|| until(NS_PER_S));
        let period = if enabled & PERIODIC != 0 { self.period_ns().map(until) } else { None };
        let delta = second.into_iter().chain(period).min()?;
        Some(self.clock.now_ns().saturating_add(delta as u64))
    }
}

impl MutDevicePio for Rtc {
    fn pio_read(&mut self, _: PioAddress, offset: PioAddressOffset, data: &mut [u8]) {
        for (byte, port) in data.iter_mut().zip(offset..) {
            *byte = if port == 1 { self.read() } else { 0xff };
        }
    }

    fn pio_write(&mut self, _: PioAddress, offset: PioAddressOffset, data: &[u8]) {
        for (&byte, port) in data.iter().zip(offset..) {
            match port {
                // The top bit masks NMIs, which this machine has no source of.
                0 => self.index = byte & 0x7f,
                _ => self.write(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::LineEvent;
    use crate::vm::LineLevel;

    /// 2024-02-29 23:59:58 UTC.
    const LEAP_DAY_NS: u64 = 1_709_251_198 * 1_000_000_000;

    fn rtc_at(wall_clock_ns: u64) -> (Rtc, Clock, IrqLines) {
        let (clock, lines) = (Clock::default(), IrqLines::default());
        clock.set(0, wall_clock_ns);
        (Rtc::new(clock.clone(), lines.clone()), clock, lines)
    }

    fn get(rtc: &mut Rtc, index: u8) -> u8 {
        rtc.pio_write(PioAddress(0x70), 0, &[index]);
        let mut data = [0];
        rtc.pio_read(PioAddress(0x70), 1, &mut data);
        data[0]
    }

    fn put(rtc: &mut Rtc, index: u8, value: u8) {
        rtc.pio_write(PioAddress(0x70), 0, &[index]);
        rtc.pio_write(PioAddress(0x70), 1, &[value]);
    }

    fn date(rtc: &mut Rtc) -> [u8; 7] {
        [CENTURY, YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS].map(|index| get(rtc, index))
    }

    #[test]
    fn time_of_day_is_bcd_and_rolls_over_with_the_wall_clock() {
        let (mut rtc, clock, _) = rtc_at(LEAP_DAY_NS);
        assert_eq!(date(&mut rtc), [0x20, 0x24, 0x02, 0x29, 0x23, 0x59, 0x58]);
        clock.set(2_000_000_000, LEAP_DAY_NS + 2_000_000_000);
        assert_eq!(date(&mut rtc), [0x20, 0x24, 0x03, 0x01, 0x00, 0x00, 0x00]);
        assert_eq!(get(&mut rtc, WEEKDAY), 6);
        assert_eq!(get(&mut rtc, REG_D), 0x80);
    }

    #[test]
    fn an_update_is_announced_just_before_the_second() {
        let (mut rtc, clock, _) = rtc_at(LEAP_DAY_NS);
        assert_eq!(get(&mut rtc, REG_A), 0x26);
        clock.set(0, LEAP_DAY_NS + 999_800_000);
        assert_eq!(get(&mut rtc, REG_A), 0xa6);
    }

    #[test]
    fn binary_and_12_hour_modes() {
        let (mut rtc, ..) = rtc_at(LEAP_DAY_NS);
        put(&mut rtc, REG_B, B_BINARY);
        assert_eq!(get(&mut rtc, HOURS), 11 | HOURS_PM);
        assert_eq!(get(&mut rtc, MINUTES), 59);
    }

    #[test]
    fn a_guest_can_set_the_clock() {
        let (mut rtc, clock, _) = rtc_at(LEAP_DAY_NS);
        put(&mut rtc, REG_B, B_SET | B_24_HOURS);
        for (index, value) in
            [(CENTURY, 0x20), (YEAR, 0x31), (MONTH, 0x12), (DAY, 0x31), (HOURS, 0x08), (MINUTES, 0x15), (SECONDS, 0)]
        {
            put(&mut rtc, index, value);
        }
        clock.set(0, LEAP_DAY_NS + 5_000_000_000);
        put(&mut rtc, REG_B, B_24_HOURS);
        clock.set(0, LEAP_DAY_NS + 6_000_000_000);
        assert_eq!(date(&mut rtc), [0x20, 0x31, 0x12, 0x31, 0x08, 0x15, 0x01]);
    }

    #[test]
    fn the_alarm_fires_once_at_its_second() {
        let (mut rtc, clock, lines) = rtc_at(LEAP_DAY_NS);
        for (index, value) in [(HOURS_ALARM, 0xff), (MINUTES_ALARM, 0x00), (SECONDS_ALARM, 0x01)] {
            put(&mut rtc, index, value);
        }
        put(&mut rtc, REG_B, B_24_HOURS | ALARM);
        assert_eq!(rtc.next_event_ns(), Some(1_000_000_000));
        let mut fired_at = vec![];
        for second in 1..=5 {
            clock.set(second * 1_000_000_000, LEAP_DAY_NS + second * 1_000_000_000);
            rtc.poll();
            if lines.take().contains(&LineEvent { gsi: 8, level: LineLevel::High }) {
                fired_at.push(second);
                assert_eq!(get(&mut rtc, REG_C), C_INTERRUPT | ALARM | UPDATE_ENDED | PERIODIC);
            }
        }
        assert_eq!(fired_at, [3]);
    }

    #[test]
    fn the_periodic_rate_is_kept() {
        let (mut rtc, clock, lines) = rtc_at(LEAP_DAY_NS);
        put(&mut rtc, REG_A, 0x2f);
        put(&mut rtc, REG_B, B_24_HOURS | PERIODIC);
        let at = rtc.next_event_ns().unwrap();
        assert_eq!(at, 500_000_000);
        clock.set(at, LEAP_DAY_NS + at);
        rtc.poll();
        assert_eq!(lines.take().len(), 2);
        assert_eq!(rtc.next_event_ns(), None, "not before the flags are read");
        get(&mut rtc, REG_C);
        assert_eq!(rtc.next_event_ns(), Some(1_000_000_000));
    }

    #[test]
    fn nonsense_from_the_guest_does_no_harm() {
        let (mut rtc, clock, _) = rtc_at(LEAP_DAY_NS);
        clock.set(u64::MAX, u64::MAX);
        for index in 0..=255 {
            for value in [0, 0x7f, 0x80, 0xff] {
                put(&mut rtc, index, value);
                get(&mut rtc, index);
                rtc.poll();
                rtc.next_event_ns();
            }
        }
    }
}
