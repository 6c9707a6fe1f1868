use super::*;
use crate::scripted::{Act, Screen, Scripted};
use crate::vm::LineLevel;

fn machine(acts: impl IntoIterator<Item = Act>, cpus: u8) -> Machine<Scripted> {
    Machine::new(Scripted::new(acts), 16 << 20, cpus, vec![], Box::new(std::io::sink())).unwrap()
}

fn run(machine: &mut Machine<Scripted>) -> Ending {
    loop {
        if let Step::Ended(ending) = machine.step().unwrap() {
            return ending;
        }
    }
}

#[test]
fn debug_exit_ends_with_code_times_two_plus_one() {
    let ending = run(&mut machine([Act::Out(0xf4, vec![0x10])], 1));
    assert_eq!(ending, Ending::DebugExit(0x10));
    assert_eq!(ending.exit_code(), 0x21);
    let four_bytes = run(&mut machine([Act::Out(0xf4, vec![1, 0, 0, 0])], 1));
    assert_eq!(four_bytes.exit_code(), 3);
}

#[test]
fn soft_off_and_both_resets_end_the_machine() {
    let off = 5u16 << 10 | 1 << 13;
    assert_eq!(run(&mut machine([Act::Out(0x604, off.to_le_bytes().to_vec())], 1)), Ending::PowerOff);
    assert_eq!(run(&mut machine([Act::Out(0x64, vec![0xfe])], 1)), Ending::Reset);
    assert_eq!(run(&mut machine([Act::Out(0xcf9, vec![0x06])], 1)), Ending::Reset);
}

#[test]
fn a_triple_fault_says_where() {
    let mut machine = machine([Act::TripleFault], 1);
    machine.vm_mut().vcpus[0].0.rip = 0x1234;
    machine.vm_mut().vcpus[0].1.cr2 = 0x5678;
    let ending = run(&mut machine);
    assert_eq!(ending.exit_code(), 8);
    let message = ending.to_string();
    assert!(message.contains("0x1234") && message.contains("0x5678"), "{message}");
}

#[test]
fn what_the_machine_does_not_know_is_told_in_its_words() {
    let ending = run(&mut machine([Act::Internal("unknown instruction 0f 04 at 0x1000")], 1));
    assert!(ending.to_string().contains("0f 04"));
    assert_eq!(ending.exit_code(), 12);
    assert_eq!(run(&mut machine([Act::Deadlock], 1)).exit_code(), 10);
}

#[test]
fn a_config_port_access_of_four_bytes_does_not_hit_the_reset_register() {
    let acts = [Act::Out(0xcf8, vec![0xff; 4]), Act::In(0xcfc, 4)];
    let mut machine = machine(acts, 1);
    assert!(matches!(run(&mut machine), Ending::Deadlock { .. }));
    assert_eq!(machine.vm().answers, [[0xff; 4]]);
    assert!(machine.bus().unclaimed_ports().is_empty(), "probing for PCI is answered, with none");
}

#[test]
fn typed_bytes_reach_the_guest_with_an_interrupt() {
    let mut machine = machine([Act::Out(0x3f9, vec![1]), Act::In(0x3f8, 1), Act::In(0x3f8, 1)], 1);
    machine.step().unwrap();
    machine.vm_mut().lines.clear();
    machine.type_in(b"hi").unwrap();
    assert_eq!(machine.vm().lines, [(4, LineLevel::High), (4, LineLevel::Low)]);
    run(&mut machine);
    assert_eq!(machine.vm().answers, [b"h", b"i"]);
}

#[test]
fn serial_output_is_seen() {
    let screen = Screen::default();
    let vm = Scripted::new(b"ok\n".map(|byte| Act::Out(0x3f8, vec![byte])));
    let mut machine = Machine::new(vm, 16 << 20, 1, vec![], Box::new(screen.clone())).unwrap();
    run(&mut machine);
    assert_eq!(*screen.0.lock().unwrap(), b"ok\n");
}

#[test]
fn the_rtc_wakes_the_machine_at_its_next_interrupt() {
    // Update-ended interrupts on, then 2.5 seconds of sleep; flags are read between.
    let acts = [
        Act::Out(0x70, vec![0x0b]),
        Act::Out(0x71, vec![0x12]),
        Act::Sleep(2_500_000_000),
        Act::Out(0x70, vec![0x0c]),
        Act::In(0x71, 1),
    ];
    let mut machine = machine(acts, 1);
    run(&mut machine);
    let rises = machine.vm().lines.iter().filter(|&&line| line == (8, LineLevel::High)).count();
    assert_eq!(rises, 1, "the line stays up until the flags are read");
    assert_eq!(machine.vm().answers[0][0] & 0x90, 0x90);
}

#[test]
fn every_processor_is_added_and_too_many_are_refused() {
    assert_eq!(machine([], 16).vm().vcpus.len(), 16);
    for cpus in [0, 17] {
        let vm = Scripted::new([]);
        let error = Machine::new(vm, 16 << 20, cpus, vec![], Box::new(std::io::sink())).err().unwrap();
        assert!(error.to_string().contains("1 to 16"), "{error}");
    }
}

#[test]
fn memory_without_a_device_reads_as_ones_and_is_counted() {
    let mut machine = machine([Act::Load(0xd000_0000, 4), Act::Store(0xfed0_0000, vec![1, 2])], 1);
    run(&mut machine);
    assert_eq!(machine.vm().answers, [[0xff; 4]]);
    assert_eq!(machine.bus().unclaimed_memory().values().sum::<u64>(), 2);
}

#[test]
fn a_disk_is_found_in_its_window() {
    let path = std::env::temp_dir().join(format!("glassvisor-machine-{}.img", std::process::id()));
    std::fs::write(&path, [0; 1024]).unwrap();
    let disk = Block::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let vm = Scripted::new([Act::Load(0xd000_0000, 4), Act::Load(0xd000_0100, 8)]);
    let mut machine = Machine::new(vm, 16 << 20, 1, vec![disk], Box::new(std::io::sink())).unwrap();
    run(&mut machine);
    assert_eq!(machine.vm().answers, [b"virt".to_vec(), 2u64.to_le_bytes().to_vec()]);
}

#[test]
fn booting_sets_the_first_processor_and_leaves_the_tables_to_be_found() {
    let mut machine = machine([], 2);
    let kernel = guest_bare::builtin_guest();
    let source = BootSource { kernel_path: "built-in", kernel: &kernel, initrd: None, command_line: "", rsdp: 0 };
    let loaded = machine.boot(&source).unwrap();
    let (regs, sregs) = machine.vm().vcpus[0];
    assert_eq!((regs.rip, regs.rax), (loaded.entry.regs.rip, 0x2bad_b002));
    assert_eq!((sregs.cr0 & 1, sregs.cs.db, sregs.cs.limit), (1, 1, 0xffff_ffff));
    assert_eq!(machine.vm().vcpus[1].0.rip, 0);
    let mut signature = [0; 8];
    machine.ram().read(0xe_0000, &mut signature).unwrap();
    assert_eq!(&signature, b"RSD PTR ");
}

#[test]
fn a_machine_with_firmware_has_the_image_and_the_chipset_and_starts_at_reset() {
    let mut image = vec![0x90; 64 << 10];
    image[0xfff0] = 0xea;
    let acts = [
        Act::Out(0x510, vec![0, 0]),
        Act::In(0x511, 1),
        Act::Out(0xcf8, 0x8000_0000_u32.to_le_bytes().to_vec()),
        Act::In(0xcfc, 4),
        Act::Out(0x70, vec![0x34]),
        Act::In(0x71, 1),
        Act::Out(0xb2, vec![1]),
    ];
    let source = FirmwareSource { path: "f", image: &image, menu_wait_ms: 0, debug_console: None };
    let vm = Scripted::new(acts);
    let mut machine = Machine::with_firmware(vm, 18 << 20, 2, vec![], Box::new(std::io::sink()), source).unwrap();
    assert_eq!(machine.vm().rom.as_ref().map(|rom| (rom.start(), rom.size())), Some((0xffff_0000, 64 << 10)));
    assert_eq!(machine.vm().vcpus[0].0, Default::default(), "registers stay as they are at reset");
    let mut vector = [0];
    machine.ram().read(0xf_fff0, &mut vector).unwrap();
    assert_eq!(vector, [0xea]);
    assert!(matches!(run(&mut machine), Ending::Deadlock { .. }));
    // The signature's first byte, the host bridge, and 2 MiB above 16 MiB in units of 64 KiB.
    assert_eq!(machine.vm().answers, [b"Q".to_vec(), 0x1237_8086_u32.to_le_bytes().to_vec(), vec![32]]);
    let notes = machine.take_notes();
    assert!(matches!(&notes[..], [note] if note.contains("0xb2")), "{notes:?}");
}
