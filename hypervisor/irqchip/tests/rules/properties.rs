use irqchip::ioapic::PINS;
use irqchip::lapic::registers::VectorSet;
use irqchip::{Irqchip, IrqchipConfig, Level, Msi, Now, TriggerMode};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

const LAPIC: u64 = 0xfee0_0000;
const IOAPIC: u64 = 0xfec0_0000;
const VCPUS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    LapicWrite(usize, u16, u32),
    LapicRead(usize, u16),
    MsrWrite(usize, u32, u64),
    MsrRead(usize, u32),
    IoapicWrite(u32, u32),
    PortWrite(u16, u8),
    PortRead(u16),
    Line(u32, bool),
    Msi(u64, u32),
    Acknowledge(usize),
    Init(usize),
    Wait(u64),
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0x20u16), Just(0x21), Just(0xa0), Just(0xa1), Just(0x4d0), Just(0x4d1), 0x40u16..0x44, Just(0x61)]
}

fn step() -> impl Strategy<Value = Step> {
    let vcpu = 0..VCPUS;
    let msr = prop_oneof![Just(0x1bu32), Just(0x6e0), 0x800u32..0x840];
    let base = prop_oneof![Just(0xfee0_0800u64), Just(0xfee0_0c00), Just(0xfee0_0000), any::<u64>(), (0u64..0x10_0000)];
    prop_oneof![
        (vcpu.clone(), 0u16..0x40, any::<u32>()).prop_map(|(v, r, x)| Step::LapicWrite(v, r << 4, x)),
        (vcpu.clone(), Just(0xf0u16), Just(0x1ffu32)).prop_map(|(v, r, x)| Step::LapicWrite(v, r, x)),
        (vcpu.clone(), Just(0xb0u16), Just(0u32)).prop_map(|(v, r, x)| Step::LapicWrite(v, r, x)),
        (vcpu.clone(), 0u16..0x1000).prop_map(|(v, r)| Step::LapicRead(v, r)),
        (vcpu.clone(), msr.clone(), base).prop_map(|(v, m, x)| Step::MsrWrite(v, m, x)),
        (vcpu.clone(), msr).prop_map(|(v, m)| Step::MsrRead(v, m)),
        (0u32..0x44, any::<u32>()).prop_map(|(r, x)| Step::IoapicWrite(r, x & !0x1_0000)),
        (port(), any::<u8>()).prop_map(|(p, x)| Step::PortWrite(p, x)),
        port().prop_map(Step::PortRead),
        (0u32..26, any::<bool>()).prop_map(|(g, l)| Step::Line(g, l)),
        (0u64..0x10_0000, any::<u32>()).prop_map(|(a, d)| Step::Msi(LAPIC | a, d)),
        vcpu.clone().prop_map(Step::Acknowledge),
        vcpu.prop_map(Step::Init),
        (0u64..10_000_000).prop_map(Step::Wait),
    ]
}

fn perform(irqchip: &mut Irqchip, step: &Step, now: &mut Now) {
    match *step {
        Step::LapicWrite(vcpu, offset, value) => {
            irqchip.lapic_write(vcpu, offset, &value.to_le_bytes(), *now);
        }
        Step::LapicRead(vcpu, offset) => irqchip.lapic_read(vcpu, offset, &mut [0; 4], *now),
        Step::MsrWrite(vcpu, msr, value) => {
            let _ = irqchip.msr_write(vcpu, msr, value, *now);
        }
        Step::MsrRead(vcpu, msr) => {
            let _ = irqchip.msr_read(vcpu, msr, *now);
        }
        Step::IoapicWrite(register, value) => {
            let _ = irqchip.mmio_write(0, IOAPIC, &register.to_le_bytes(), *now);
            let _ = irqchip.mmio_write(0, IOAPIC + 0x10, &value.to_le_bytes(), *now);
        }
        Step::PortWrite(port, value) => {
            let _ = irqchip.port_write(port, &[value], *now);
        }
        Step::PortRead(port) => {
            let _ = irqchip.port_read(port, &mut [0; 2], *now);
        }
        Step::Line(gsi, high) => {
            let level = if high { Level::High } else { Level::Low };
            let _ = irqchip.set_irq_line(gsi, level);
        }
        Step::Msi(address, data) => {
            let _ = irqchip.send_msi(Msi { address, data });
        }
        Step::Acknowledge(vcpu) => {
            irqchip.acknowledge_interrupt(vcpu);
        }
        Step::Init(vcpu) => irqchip.init_lapic(vcpu),
        Step::Wait(ns) => {
            now.vm_ns += ns;
            now.guest_tsc += 3 * ns;
            irqchip.advance(*now);
            for vcpu in 0..VCPUS {
                irqchip.lapic_timer_expired(vcpu, *now);
            }
        }
    }
}

fn check(irqchip: &Irqchip, now: Now) -> Result<(), TestCaseError> {
    for lapic in irqchip.lapics() {
        let registers = lapic.registers();
        let in_service = registers.highest(VectorSet::InService).unwrap_or(0);
        let tpr = lapic.tpr();
        prop_assert_eq!(lapic.ppr() & 0xf0, (tpr & 0xf0).max(in_service & 0xf0));
        for vector in 0..16 {
            prop_assert!(!registers.test(VectorSet::Request, vector));
            prop_assert!(!registers.test(VectorSet::InService, vector));
        }
        if let Some(vector) = lapic.highest_deliverable() {
            prop_assert_eq!(registers.highest(VectorSet::Request), Some(vector));
            prop_assert!(vector & 0xf0 > in_service & 0xf0);
        }
        prop_assert!(lapic.pv_eoi_candidate().is_none() || !lapic.has_request());
        // A timer never wants more than the longest count from now.
        if let Some(irqchip::TimerDeadline::Nanoseconds(ns)) = lapic.timer() {
            prop_assert!(ns <= now.vm_ns + (u64::from(u32::MAX) << 7));
        }
    }
    for pin in 0..PINS {
        let entry = irqchip.ioapic().entry(pin).expect("a pin that exists");
        prop_assert!(!entry.remote_irr() || entry.trigger() == TriggerMode::Level);
    }
    Ok(())
}

fn fixed_seed(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0x8259_8254),
        ..Config::default()
    }
}

fn new() -> Irqchip {
    let mut irqchip = Irqchip::new(IrqchipConfig::default());
    for id in 0..VCPUS as u32 {
        irqchip.add_vcpu(id);
    }
    irqchip
}

proptest! {
    #![proptest_config(fixed_seed(300))]

    #[test]
    fn random_traffic_keeps_the_invariants_and_is_deterministic(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut runs = [new(), new()];
        let mut clocks = [Now::default(); 2];
        for step in &steps {
            for (run, now) in runs.iter_mut().zip(&mut clocks) {
                perform(run, step, now);
            }
            check(&runs[0], clocks[0])?;
        }
        prop_assert_eq!(&runs[0], &runs[1]);
    }
}

/// Devices that hold a level-triggered line until a driver has served them, as PCI devices do.
#[derive(Clone, Debug)]
enum LevelStep {
    Raise(usize),
    Serve(usize),
    Mask(usize),
    Unmask(usize),
    Priority(usize, u8),
}

const DEVICES: usize = 4;

fn level_step() -> impl Strategy<Value = LevelStep> {
    let device = 0..DEVICES;
    prop_oneof![
        device.clone().prop_map(LevelStep::Raise),
        (0..VCPUS).prop_map(LevelStep::Serve),
        device.clone().prop_map(LevelStep::Mask),
        device.prop_map(LevelStep::Unmask),
        (0..VCPUS, 0u8..16).prop_map(|(v, p)| LevelStep::Priority(v, p)),
    ]
}

/// Device n is on pin 16 + n, with its own vector (two share one), and goes to vCPU n mod 3.
fn entry(device: usize) -> (u32, u32) {
    let vector = [0x51, 0x62, 0x62, 0x73][device];
    (0x10 + 2 * (16 + device as u32), vector | 1 << 15)
}

struct LevelBench {
    irqchip: Irqchip,
    waiting: [bool; DEVICES],
}

impl LevelBench {
    fn new() -> Self {
        let mut irqchip = new();
        for vcpu in 0..VCPUS {
            irqchip.lapic_write(vcpu, 0xf0, &0x1ffu32.to_le_bytes(), Now::default());
        }
        let mut bench = Self { irqchip, waiting: [false; DEVICES] };
        for device in 0..DEVICES {
            let (register, low) = entry(device);
            bench.write_ioapic(register + 1, ((device % VCPUS) as u32) << 24);
            bench.write_ioapic(register, low);
        }
        bench
    }

    fn write_ioapic(&mut self, register: u32, value: u32) {
        for (address, value) in [(IOAPIC, register), (IOAPIC + 0x10, value)] {
            let _ = self.irqchip.mmio_write(0, address, &value.to_le_bytes(), Now::default());
        }
    }

    fn line(&mut self, device: usize, level: Level) {
        self.waiting[device] = level == Level::High;
        self.irqchip.set_irq_line(16 + device as u32, level).expect("a default route");
    }

    /// Take one interrupt, if any: its handler serves the devices of that vector on that vCPU and ends it.
    fn serve(&mut self, vcpu: usize) -> bool {
        let Some(vector) = self.irqchip.acknowledge_interrupt(vcpu) else {
            return false;
        };
        for device in 0..DEVICES {
            if entry(device).1 as u8 == vector && device % VCPUS == vcpu && self.waiting[device] {
                self.line(device, Level::Low);
            }
        }
        self.irqchip.lapic_write(vcpu, 0xb0, &[0; 4], Now::default());
        true
    }

    fn perform(&mut self, step: &LevelStep) {
        match *step {
            LevelStep::Raise(device) => self.line(device, Level::High),
            LevelStep::Serve(vcpu) => {
                self.serve(vcpu);
            }
            LevelStep::Mask(device) => {
                let (register, low) = entry(device);
                self.write_ioapic(register, low | 1 << 16);
            }
            LevelStep::Unmask(device) => {
                let (register, low) = entry(device);
                self.write_ioapic(register, low);
            }
            LevelStep::Priority(vcpu, class) => self.irqchip.lapic_mut(vcpu).set_cr8(class),
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(300))]

    #[test]
    fn no_level_interrupt_is_lost(steps in prop::collection::vec(level_step(), 1..150)) {
        let mut bench = LevelBench::new();
        for step in &steps {
            bench.perform(step);
        }
        for vcpu in 0..VCPUS {
            bench.irqchip.lapic_mut(vcpu).set_cr8(0);
        }
        for device in 0..DEVICES {
            bench.perform(&LevelStep::Unmask(device));
        }
        let mut served = 0;
        while (0..VCPUS).any(|vcpu| bench.serve(vcpu)) {
            served += 1;
            prop_assert!(served < 100, "a storm");
        }
        prop_assert_eq!(bench.waiting, [false; DEVICES]);
        for device in 0..DEVICES {
            let entry = bench.irqchip.ioapic().entry(16 + device as u8);
            prop_assert!(entry.is_some_and(|entry| !entry.remote_irr()));
        }
    }
}
