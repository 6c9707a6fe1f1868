//! Firmware and what starts where firmware ends: SeaBIOS up to its boot menu and into a boot sector.

use guest_bare::AsmError;
use guest_bare::code_asm::{CodeAssembler, ah, al, ax, bx, cx, dh, ds, dx, es, si, sp, ss, word_ptr};

use crate::program::{Glassvisor, file, glassvisor, needed, new_file, root};

/// A file of Debian's package.
pub fn image(package: &str, name: &str) -> String {
    needed(root().join(format!(".cache/firmware/{package}/{name}")), &format!("guest/fetch-firmware.sh {package}"))
}

/// SeaBIOS, with its own messages in a file.
fn seabios(name: &str) -> (Glassvisor, String) {
    let messages = new_file(name);
    let program = glassvisor("boot --memory 32M --max-time 300")
        .arg("--firmware", &image("seabios", "bios-256k.bin"))
        .arg("--debug-console", &messages);
    (program, messages)
}

fn read(path: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))).into_owned()
}

const SECTOR: usize = 512;
const BOOT_SECTOR_AT: u64 = 0x7c00;
/// Where the boot sector puts what it reads.
const TEXT_AT: u16 = 0x8000;
/// Where the boot sector makes the packet of INT 13h, function 42h.
const PACKET_AT: u16 = 0x7000;
const EXIT_CODE: u8 = 0x2a;
const EXIT_STATUS: i32 = 0x55;

/// Prints the text at [`TEXT_AT`] by INT 10h, up to its NUL.
fn print(a: &mut CodeAssembler) -> Result<(), AsmError> {
    let (mut next, mut end) = (a.create_label(), a.create_label());
    a.mov(si, u32::from(TEXT_AT))?;
    a.set_label(&mut next)?;
    a.lodsb()?;
    a.test(al, al)?;
    a.jz(end)?;
    a.mov(ah, 0x0e)?;
    a.mov(bx, 7)?;
    a.int(0x10)?;
    a.jmp(next)?;
    a.set_label(&mut end)?;
    a.zero_bytes()
}

/// Reads the second sector by cylinder, head and sector, and the last one of `sectors` by its number; prints both;
/// waits for the console to catch up; ends the program.
fn boot_sector(sectors: u16) -> Result<Vec<u8>, AsmError> {
    let mut a = CodeAssembler::new(16)?;
    let mut failed = a.create_label();
    a.xor(ax, ax)?;
    a.mov(ds, ax)?;
    a.mov(es, ax)?;
    a.mov(ss, ax)?;
    a.mov(sp, BOOT_SECTOR_AT as u32)?;
    a.cld()?;
    // The firmware leaves the drive's number in DL.
    a.push(dx)?;
    a.mov(ax, 0x0201)?;
    a.mov(cx, 2)?;
    a.mov(dh, 0)?;
    a.mov(bx, u32::from(TEXT_AT))?;
    a.int(0x13)?;
    a.jc(failed)?;
    print(&mut a)?;

    let words = [0x10, 1, TEXT_AT, 0, sectors - 1, 0, 0, 0];
    for (at, word) in (PACKET_AT..).step_by(2).zip(words) {
        a.mov(word_ptr(u32::from(at)), u32::from(word))?;
    }
    a.pop(dx)?;
    a.mov(ah, 0x42)?;
    a.mov(si, u32::from(PACKET_AT))?;
    a.int(0x13)?;
    a.jc(failed)?;
    print(&mut a)?;

    // The serial console prints what is left over at the timer's interrupts.
    a.mov(cx, 4)?;
    let mut tick = a.create_label();
    a.set_label(&mut tick)?;
    a.sti()?;
    a.hlt()?;
    a.loop_(tick)?;
    a.mov(al, u32::from(EXIT_CODE))?;
    a.out(0xf4, al)?;
    a.set_label(&mut failed)?;
    a.mov(al, 1)?;
    a.out(0xf4, al)?;
    let mut bytes = a.assemble(BOOT_SECTOR_AT)?;
    assert!(bytes.len() <= SECTOR - 2, "{} bytes of code", bytes.len());
    bytes.resize(SECTOR - 2, 0);
    bytes.extend([0x55, 0xaa]);
    Ok(bytes)
}

/// A disk of 4 MiB: large enough for a cylinder.
fn boot_disk(name: &str) -> String {
    const SECTORS: u16 = 8192;
    let mut disk = boot_sector(SECTORS).expect("a boot sector that can be encoded");
    disk.resize(SECTOR * usize::from(SECTORS), 0);
    let (second, last) = (b"second sector by CHS\r\n", b"last sector by LBA\r\n");
    disk[SECTOR..SECTOR + second.len()].copy_from_slice(second);
    let last_at = disk.len() - SECTOR;
    disk[last_at..last_at + last.len()].copy_from_slice(last);
    file(name, &disk)
}

#[test]
fn seabios_shows_its_menu_and_boots_the_disk_that_is_chosen() {
    let run = |name: &str| {
        let (program, messages) = seabios(&format!("{name}.log"));
        let (ended, statistics) = program
            .arg("--disk", &boot_disk(&format!("{name}.img")))
            .arg("--answer", "Press ESC for boot menu.=\\e")
            .arg("--answer", "1. Virtio disk=1")
            .statistics(&format!("{name}.json"));
        assert_eq!(ended.status, EXIT_STATUS, "{ended}\n{}", read(&messages));
        let screen = &ended.stdout;
        let places = [
            "SeaBIOS (version 1.",
            "Press ESC for boot menu.",
            "Select boot device:",
            "1. Virtio disk mmio:0xd0000000",
            "Booting from Hard Disk...",
            "second sector by CHS",
            "last sector by LBA",
        ]
        .map(|text| screen.find(text).unwrap_or_else(|| panic!("'{text}' is missing: {ended}")));
        assert!(places.is_sorted(), "{ended}");
        statistics["state_hash"].as_str().expect("a hash").to_owned()
    };
    assert_eq!(run("seabios-menu"), run("seabios-menu-again"), "virtual time: equal runs");
}

#[test]
fn seabios_finds_the_platform_that_is_modelled() {
    let (program, messages) = seabios("seabios-platform.log");
    let ended = program.args("--cpus 3").arg("--disk", &boot_disk("seabios-platform.img")).run();
    assert_eq!(ended.status, EXIT_STATUS, "{ended}");
    let messages = read(&messages);
    for expected in [
        "Running on QEMU (i440fx)",
        "Running on KVM",
        "Found QEMU fw_cfg",
        "len 0x0000000002000000 [RAM]",
        "PCI: init bdf=00:00.0 id=8086:1237",
        "PCI: init bdf=00:01.0 id=8086:7000",
        "Found 3 cpu(s) max supported 3 cpu(s)",
        "(via xsdt)",
        "ACPI: virtio-mmio device V000 at 0xd0000000, irq 16",
        "virtio-blk-mmio 0xd0000000 blksize=512 sectors=8192",
        "PS2 keyboard initialized",
        "Found 1 serial ports",
    ] {
        assert!(messages.contains(expected), "'{expected}' is missing in:\n{messages}");
    }
}

#[test]
fn a_file_that_is_no_firmware_is_refused() {
    let path = file("no-firmware.bin", &[0xff; 64 << 10]);
    glassvisor("boot").arg("--firmware", &path).run().must_say(4, &["no-firmware.bin", "nothing to execute"]);
    glassvisor("boot --builtin").arg("--firmware", &path).run().must_say(2, &["--firmware"]);
}
