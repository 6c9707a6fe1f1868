//! Modes, events and devices that are not there: what no code can tell.

use super::Row;

/// Of the processor and the hypervisor.
pub const MODES: &[Row] = &[
    Row {
        what: "system management mode",
        found: "no SMI ever; a write to port 0xb2 is told and does nothing; IA32_SMBASE and the dual-monitor treatment do not exist",
    },
    Row {
        what: "nested virtualisation",
        found: "CPUID reports no VMX to guests, and IA32_FEATURE_CONTROL is locked without it",
    },
    Row { what: "machine checks", found: "#MC never happens" },
    Row {
        what: "performance counters",
        found: "CPUID leaf 0xa is empty, RDPMC is #GP, and IA32_MISC_ENABLE says that there is no monitoring",
    },
    Row {
        what: "memory types (MTRR, PAT) and caches",
        found: "settings are kept and have no effect: all memory is coherent, WBINVD and CLFLUSH do nothing",
    },
    Row {
        what: "the A20 gate",
        found: "the bit at port 0x92 is kept; address line 20 is always on, as on every processor with VMX",
    },
    Row {
        what: "frequency, power and thermal states",
        found: "one frequency; MSRs of HWP and temperature do not exist, those of RAPL read as zero",
    },
    Row { what: "microcode updates", found: "a write to IA32_BIOS_UPDT_TRIG is taken and ignored" },
];

/// Of the machine around it.
pub const DEVICES: &[Row] = &[
    Row {
        what: "display",
        found: "the text screen's memory at 0xb8000 is plain RAM (`--screen FILE` shows it); VGA ports read as ones, and there is no VGA BIOS",
    },
    Row {
        what: "PCI",
        found: "with `--kernel` no host bridge; with `--firmware` a 440FX host bridge and a PIIX3 ISA bridge, and no other function",
    },
    Row {
        what: "write protection of shadow memory",
        found: "the PAM registers of the host bridge are kept; 0xc0000 to 0xfffff is always writable RAM",
    },
    Row { what: "USB, SATA, IDE, floppy", found: "none; disks are virtio-mmio block devices" },
    Row { what: "network", found: "none" },
    Row {
        what: "keyboard and mouse",
        found: "with `--kernel` the reset line only; with `--firmware` a controller and a keyboard on which nobody types, and no mouse; type at the serial port",
    },
    Row { what: "serial ports but the first, parallel ports", found: "none" },
    Row {
        what: "DMA transfers",
        found: "with `--firmware` the registers of the 8237s are kept; no device transfers by them",
    },
    Row { what: "HPET", found: "none; there are PIT, RTC, PM timer and local APIC timers" },
    Row { what: "TPM, watchdog, SMBus, SPD", found: "none" },
    Row { what: "IOMMU and message-signalled interrupts of devices", found: "none; devices have lines of the IOAPIC" },
    Row { what: "CPU and memory hot-plug", found: "none" },
];
