//! Loading of every kind of image, what is said about bad ones, and that no image at all can bring the loader down.

mod samples;

use vmm::boot::{BootError, BootSource, EntryMode, Initrd, Protocol, load};
use vmm::memory::GuestRam;

const MIB: u64 = 1 << 20;

fn source(kernel: &[u8]) -> BootSource<'_> {
    BootSource { kernel_path: "kernel", kernel, initrd: None, command_line: "console=ttyS0", rsdp: 0xe_0000 }
}

fn load_into(mib: u64, kernel: &[u8]) -> (GuestRam, Result<vmm::boot::Loaded, BootError>) {
    let ram = GuestRam::new(mib * MIB).unwrap();
    let loaded = load(&ram, &source(kernel));
    (ram, loaded)
}

fn u32_at(ram: &GuestRam, at: u64) -> u32 {
    let mut bytes = [0; 4];
    ram.read(at, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

fn message(kernel: &[u8]) -> String {
    load_into(8, kernel).1.unwrap_err().to_string()
}

#[test]
fn a_bzimage_starts_in_64_bit_mode_with_boot_params_in_rsi() {
    let ram = GuestRam::new(8 * MIB).unwrap();
    let kernel = samples::bzimage();
    let initrd = Some(Initrd { path: "initrd", bytes: b"initrd content" });
    let loaded = load(&ram, &BootSource { initrd, ..source(&kernel) }).unwrap();
    assert_eq!((loaded.protocol, loaded.entry.mode), (Protocol::BzImage, EntryMode::Long64));
    assert_eq!(loaded.entry.regs.rip, samples::LOAD + 0x200);
    assert_eq!(u32_at(&ram, loaded.entry.regs.rip), 0xf4f4_f4f4);
    let params = loaded.entry.regs.rsi;
    assert_eq!(u32_at(&ram, params + 0x202), u32::from_le_bytes(*b"HdrS"));
    let initrd = loaded.initrd.unwrap();
    assert_eq!(u32_at(&ram, params + 0x218), initrd.start as u32);
    assert_eq!(u32_at(&ram, params + 0x21c), 14);
    assert_eq!(u32_at(&ram, params + 0x70), 0xe_0000);
    let mut content = [0; 14];
    ram.read(initrd.start, &mut content).unwrap();
    assert_eq!(&content, b"initrd content");
    let mut command_line = [0; 14];
    ram.read(u64::from(u32_at(&ram, params + 0x228)), &mut command_line).unwrap();
    assert_eq!(&command_line, b"console=ttyS0\0");
    // e820: three ranges, the last one up to the end of memory.
    assert_eq!(u32_at(&ram, params + 0x1e8) & 0xff, 3);
    let last = params + 0x2d0 + 2 * 20;
    assert_eq!((u32_at(&ram, last), u32_at(&ram, last + 8)), (MIB as u32, 7 * MIB as u32));
}

#[test]
fn an_elf_with_a_pvh_note_starts_in_protected_mode_with_start_info_in_rbx() {
    let (ram, loaded) = load_into(8, &samples::pvh());
    let loaded = loaded.unwrap();
    assert_eq!((loaded.protocol, loaded.entry.mode), (Protocol::Pvh, EntryMode::Protected32));
    assert_eq!(loaded.entry.regs.rip, samples::LOAD + 16);
    let info = loaded.entry.regs.rbx;
    assert_eq!(u32_at(&ram, info), 0x336e_c578);
    assert_eq!(u32_at(&ram, info + 32), 0xe_0000);
    let (map, entries) = (u32_at(&ram, info + 40), u32_at(&ram, info + 48));
    assert_eq!(entries, 3);
    assert_eq!(u32_at(&ram, u64::from(map) + 2 * 24 + 8), 7 * MIB as u32);
}

#[test]
fn a_linux_elf_without_the_note_starts_at_its_64_bit_entry() {
    let (ram, loaded) = load_into(8, &samples::linux_elf());
    let loaded = loaded.unwrap();
    assert_eq!((loaded.protocol, loaded.entry.mode), (Protocol::LinuxElf, EntryMode::Long64));
    assert_eq!(loaded.entry.regs.rip, samples::LOAD);
    assert_eq!(u32_at(&ram, loaded.entry.regs.rsi + 0x202), u32::from_le_bytes(*b"HdrS"));
}

#[test]
fn multiboot_images_get_the_magic_in_eax_and_the_information_in_ebx() {
    for kernel in [samples::multiboot_flat(), guest_bare::builtin_guest()] {
        let ram = GuestRam::new(8 * MIB).unwrap();
        let initrd = Some(Initrd { path: "module", bytes: b"module" });
        let loaded = load(&ram, &BootSource { initrd, ..source(&kernel) }).unwrap();
        assert_eq!((loaded.protocol, loaded.entry.mode), (Protocol::Multiboot, EntryMode::Protected32));
        assert_eq!((loaded.entry.regs.rax, loaded.entry.regs.rip), (0x2bad_b002, samples::LOAD));
        let info = loaded.entry.regs.rbx;
        assert_eq!(u32_at(&ram, info) & 0x4d, 0x4d, "memory, command line, modules, memory map");
        assert_eq!(u32_at(&ram, info + 8), 7 * 1024);
        let module = u64::from(u32_at(&ram, info + 24));
        assert_eq!(u32_at(&ram, module), loaded.initrd.unwrap().start as u32);
        assert_eq!(u32_at(&ram, module + 4) - u32_at(&ram, module), 6);
    }
}

#[test]
fn a_kernel_that_is_cut_short_is_called_so() {
    // A flat image does not say how long it is.
    for (name, kernel) in samples::all().into_iter().filter(|(name, _)| *name != "multiboot flat") {
        let text = message(&kernel[..kernel.len() - 32]);
        assert!(text.contains("cut short"), "{name}: {text}");
    }
    assert!(message(&samples::bzimage()[..0x210]).contains("cut short"));
    assert!(message(&samples::pvh()[..60]).contains("cut short"));
}

#[test]
fn foreign_images_are_named() {
    let mut aarch64 = vec![0; 128];
    aarch64[0x38..0x3c].copy_from_slice(b"ARM\x64");
    assert!(message(&aarch64).contains("AArch64"));
    assert!(message(b"\x1f\x8b\x08\0\0\0\0\0").contains("gzip"));
    assert!(message(&[]).contains("empty"));
    let mut arm_elf = samples::pvh();
    arm_elf[18] = 183;
    assert!(message(&arm_elf).contains("AArch64"));
    let mut plain = samples::linux_elf();
    let at = plain.windows(5).position(|window| window == b"Linux").unwrap();
    plain[at] = b'X';
    assert!(message(&plain).contains("PVH note"));
}

#[test]
fn old_kernels_are_refused_with_the_reason() {
    let mut kernel = samples::bzimage();
    kernel[0x206] = 4;
    assert!(message(&kernel).contains("2.04"));
}

#[test]
fn a_bzimage_without_a_64_bit_entry_starts_in_protected_mode_with_boot_params_in_esi() {
    let mut kernel = samples::bzimage();
    kernel[0x236] = 0;
    let (ram, loaded) = load_into(8, &kernel);
    let loaded = loaded.unwrap();
    assert_eq!((loaded.protocol, loaded.entry.mode), (Protocol::BzImage, EntryMode::Protected32));
    let regs = loaded.entry.regs;
    assert_eq!(regs.rip, samples::LOAD);
    assert_eq!((regs.rbx, regs.rbp, regs.rdi), (0, 0, 0));
    assert_eq!(u32_at(&ram, regs.rsi + 0x202), u32::from_le_bytes(*b"HdrS"));
}

#[test]
fn too_little_memory_says_how_much_would_do() {
    let mut kernel = samples::bzimage();
    kernel[0x260..0x264].copy_from_slice(&(40u32 << 20).to_le_bytes());
    let (_, result) = load_into(16, &kernel);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("16 MiB") && error.contains("--memory 41M"), "{error}");
    load_into(41, &kernel).1.unwrap();
}

#[test]
fn a_segment_in_the_legacy_megabyte_is_refused() {
    let mut kernel = samples::pvh();
    kernel[64 + 24..64 + 32].copy_from_slice(&0x9_0000u64.to_le_bytes());
    assert!(message(&kernel).contains("overlaps"));
}

#[test]
fn damaged_images_give_errors_and_never_a_panic() {
    let ram = GuestRam::new(4 * MIB).unwrap();
    let (mut loaded, mut refused) = (0, 0);
    for (seed, (_, image)) in samples::all().into_iter().enumerate() {
        let mut random = samples::Random(seed as u64);
        for _ in 0..2000 {
            let mut damaged = image.clone();
            random.damage(&mut damaged);
            match load(&ram, &source(&damaged)) {
                Ok(_) => loaded += 1,
                Err(error) => {
                    assert!(error.to_string().len() > 20);
                    refused += 1;
                }
            }
        }
    }
    // Both happen, else the damage would test nothing.
    assert!(loaded > 500 && refused > 500, "{loaded} loaded, {refused} refused");
}

#[test]
fn distribution_kernels_are_loaded_and_say_what_they_lack() {
    for version in ["6.12", "6.1"] {
        let path = format!("{}/../.cache/kernels/{version}/vmlinuz", env!("CARGO_MANIFEST_DIR"));
        let kernel = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{path}: {error}; run in the repository: guest/fetch-kernel.sh {version}"));
        assert_eq!(load_into(512, &kernel).1.unwrap().protocol, Protocol::BzImage);
        let little = load_into(16, &kernel).1.unwrap_err().to_string();
        assert!(little.contains("16 MiB") && little.contains("--memory "), "{little}");
        let cut = load_into(512, &kernel[..1 << 20]).1.unwrap_err().to_string();
        assert!(cut.contains("cut short"), "{cut}");
    }
}
