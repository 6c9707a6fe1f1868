use irqchip::ioapic::{Ioapic, PinOutcome};
use irqchip::lapic::{Delivered, Eoi};
use irqchip::{DestinationMode, IrqSource, Level, Message, TriggerMode};

const LEVEL: u32 = 1 << 15;
const MASKED: u32 = 1 << 16;
const VECTOR: u32 = 0x51;

/// An I/O APIC and the messages that it sent.
struct Bench {
    ioapic: Ioapic,
    sent: Vec<Message>,
    accepting: u32,
}

impl Bench {
    fn new(entry: u32) -> Self {
        let mut bench = Self { ioapic: Ioapic::default(), sent: Vec::new(), accepting: 1 };
        bench.write(0x10 + 2 * 5, entry);
        bench
    }

    fn run<T>(&mut self, f: impl FnOnce(&mut Ioapic, &mut irqchip::ioapic::Bus<'_>) -> T) -> T {
        let (sent, accepted) = (&mut self.sent, self.accepting);
        f(&mut self.ioapic, &mut |message| {
            sent.push(*message);
            Delivered { accepted, coalesced: 0 }
        })
    }

    fn write(&mut self, register: u32, value: u32) {
        self.run(|ioapic, bus| {
            ioapic.mmio_write(0, &register.to_le_bytes(), bus);
            ioapic.mmio_write(0x10, &value.to_le_bytes(), bus);
        });
    }

    fn read(&mut self, register: u32) -> u32 {
        self.run(|ioapic, bus| ioapic.mmio_write(0, &register.to_le_bytes(), bus));
        let mut data = [0; 4];
        self.ioapic.mmio_read(0x10, &mut data);
        u32::from_le_bytes(data)
    }

    fn set(&mut self, level: Level) -> PinOutcome {
        self.set_by(IrqSource::Vmm, level)
    }

    fn set_by(&mut self, source: IrqSource, level: Level) -> PinOutcome {
        self.run(|ioapic, bus| ioapic.set_pin(5, source, level, bus))
    }

    fn eoi(&mut self) {
        let eoi = Eoi { vector: VECTOR as u8, trigger: TriggerMode::Level };
        self.run(|ioapic, bus| ioapic.end_of_interrupt(eoi, bus));
    }
}

#[test]
fn identification_registers_are_kvms() {
    let mut bench = Bench::new(MASKED);
    assert_eq!(bench.read(1), 0x0017_0011);
    bench.write(0, 0x0300_0000);
    assert_eq!((bench.read(0), bench.read(2)), (0x0300_0000, 0x0300_0000));
    assert_eq!(bench.read(0x10), MASKED, "reset value of an entry");
}

#[test]
fn an_entry_says_what_is_sent() {
    let mut bench = Bench::new(VECTOR | 1 << 11);
    bench.write(0x10 + 2 * 5 + 1, 0x0c00_0000);
    bench.set(Level::High);
    let message = bench.sent[0];
    assert_eq!((message.vector, message.destination), (0x51, 0x0c));
    assert_eq!(message.destination_mode, DestinationMode::Logical);
    assert_eq!(message.trigger, TriggerMode::Edge);
}

#[test]
fn an_edge_sends_once() {
    let mut bench = Bench::new(VECTOR);
    bench.set(Level::High);
    assert_eq!(bench.set(Level::High), PinOutcome::NoEdge);
    bench.set(Level::Low);
    bench.set(Level::High);
    assert_eq!(bench.sent.len(), 2);
}

#[test]
fn an_edge_that_comes_masked_is_lost() {
    let mut bench = Bench::new(VECTOR | MASKED);
    assert_eq!(bench.set(Level::High), PinOutcome::Held);
    bench.write(0x1a, VECTOR);
    assert!(bench.sent.is_empty());
}

#[test]
fn a_level_sends_again_after_its_end_while_asserted() {
    let mut bench = Bench::new(VECTOR | LEVEL);
    bench.set(Level::High);
    assert_eq!(bench.set(Level::High), PinOutcome::Held, "remote IRR");
    assert_eq!(bench.read(0x1a), VECTOR | LEVEL | 1 << 14);
    bench.eoi();
    assert_eq!(bench.sent.len(), 2);
    bench.set(Level::Low);
    bench.eoi();
    assert_eq!(bench.sent.len(), 2);
    assert_eq!(bench.read(0x1a), VECTOR | LEVEL);
}

#[test]
fn a_level_that_comes_masked_is_sent_when_unmasked() {
    let mut bench = Bench::new(VECTOR | LEVEL | MASKED);
    bench.set(Level::High);
    bench.write(0x1a, VECTOR | LEVEL);
    assert_eq!(bench.sent.len(), 1);
}

#[test]
fn a_level_that_nobody_takes_is_not_waited_for() {
    let mut bench = Bench::new(VECTOR | LEVEL);
    bench.accepting = 0;
    bench.set(Level::High);
    bench.accepting = 1;
    bench.write(0x1a, VECTOR | LEVEL);
    assert_eq!(bench.sent.len(), 2);
    assert!(bench.ioapic.entry(5).unwrap().remote_irr());
}

#[test]
fn remote_irr_is_read_only_and_forgotten_when_made_edge_triggered() {
    let mut bench = Bench::new(VECTOR | LEVEL | MASKED | 1 << 14 | 1 << 12);
    assert_eq!(bench.read(0x1a), VECTOR | LEVEL | MASKED);
    bench.write(0x1a, VECTOR | LEVEL);
    bench.set(Level::High);
    bench.write(0x1a, VECTOR | LEVEL | MASKED);
    assert!(bench.ioapic.entry(5).unwrap().remote_irr());
    bench.write(0x1a, VECTOR | MASKED);
    assert!(!bench.ioapic.entry(5).unwrap().remote_irr());
}

#[test]
fn sources_share_a_line() {
    let mut bench = Bench::new(VECTOR | LEVEL);
    bench.set_by(IrqSource::Vmm, Level::High);
    bench.set_by(IrqSource::ResampleIrqfd, Level::High);
    bench.set_by(IrqSource::Vmm, Level::Low);
    assert!(bench.ioapic.is_asserted(5));
    bench.set_by(IrqSource::ResampleIrqfd, Level::Low);
    assert!(!bench.ioapic.is_asserted(5));
}

#[test]
fn a_pin_that_does_not_exist_is_reported() {
    let mut bench = Bench::new(MASKED);
    let outcome = bench.run(|ioapic, bus| ioapic.set_pin(24, IrqSource::Vmm, Level::High, bus));
    assert_eq!(outcome, PinOutcome::NoSuchPin);
}
