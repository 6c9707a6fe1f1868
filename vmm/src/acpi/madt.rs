//! Multiple APIC Description Table: processors, the IOAPIC, and how ISA interrupts are wired.

use acpi_tables::Aml;
use acpi_tables::madt::{EnabledStatus, IoApic, ProcessorLocalApic};
use acpi_tables::sdt::Sdt;

use super::{OEM_ID, OEM_REVISION, OEM_TABLE_ID, SCI_GSI};

const LOCAL_APIC: u32 = 0xfee0_0000;
const IOAPIC: u32 = 0xfec0_0000;
const IOAPIC_ID: u8 = 0;
/// There are also two 8259s, which the system must disable.
const PCAT_COMPAT: u32 = 1;

const TYPE_SOURCE_OVERRIDE: u8 = 2;
const TYPE_LOCAL_APIC_NMI: u8 = 4;
const BUS_ISA: u8 = 0;
const CONFORMS_TO_BUS: u16 = 0;
const LEVEL_ACTIVE_HIGH: u16 = 0xd;
const ALL_PROCESSORS: u8 = 0xff;

fn source_override(irq: u8, gsi: u32, flags: u16) -> [u8; 10] {
    let [g0, g1, g2, g3] = gsi.to_le_bytes();
    let [f0, f1] = flags.to_le_bytes();
    [TYPE_SOURCE_OVERRIDE, 10, BUS_ISA, irq, g0, g1, g2, g3, f0, f1]
}

/// Builds the table.
pub fn madt(cpus: u8) -> Vec<u8> {
    let mut body = Vec::new();
    for cpu in 0..cpus {
        ProcessorLocalApic::new(cpu, cpu, EnabledStatus::Enabled).to_aml_bytes(&mut body);
    }
    IoApic::new(IOAPIC_ID, IOAPIC, 0).to_aml_bytes(&mut body);
    // The PIT's output goes to pin 2, as on every PC.
    body.extend(source_override(0, 2, CONFORMS_TO_BUS));
    body.extend(source_override(SCI_GSI, u32::from(SCI_GSI), LEVEL_ACTIVE_HIGH));
    body.extend([TYPE_LOCAL_APIC_NMI, 6, ALL_PROCESSORS, 0, 0, 1]);
    let mut madt = Sdt::new(*b"APIC", 44, 3, OEM_ID, OEM_TABLE_ID, OEM_REVISION);
    madt.write_u32(36, LOCAL_APIC);
    madt.write_u32(40, PCAT_COMPAT);
    madt.append_slice(&body);
    madt.as_slice().to_vec()
}
