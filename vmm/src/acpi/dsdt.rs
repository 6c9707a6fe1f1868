//! Differentiated System Description Table: processors, serial port, clock, virtio devices, and soft-off.

use acpi_tables::Aml;
use acpi_tables::aml::{Device, EISAName, IO, Interrupt, Memory32Fixed, Name, Package, ResourceTemplate, Scope};
use acpi_tables::sdt::Sdt;

use super::{Keyboard, OEM_ID, OEM_REVISION, OEM_TABLE_ID, Platform, SLEEP_TYPE_S5, VirtioWindow};
use crate::devices::pc::KEYBOARD_GSI;
use crate::devices::{COM1, COM1_GSI, I8042, RTC_GSI, RTC_PORT};

/// An edge-triggered, active-high interrupt that nobody shares.
fn edge_interrupt(gsi: u32) -> Interrupt {
    Interrupt::new(true, true, false, false, gsi)
}

fn processor(index: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    Device::new(
        format!("C{index:03X}").as_str().into(),
        vec![&Name::new("_HID".into(), &"ACPI0007"), &Name::new("_UID".into(), &index)],
    )
    .to_aml_bytes(&mut bytes);
    bytes
}

fn virtio(index: usize, window: &VirtioWindow) -> Vec<u8> {
    let mut bytes = Vec::new();
    Device::new(
        format!("V{index:03X}").as_str().into(),
        vec![
            &Name::new("_HID".into(), &"LNRO0005"),
            &Name::new("_UID".into(), &(index as u32)),
            &Name::new("_CCA".into(), &1u8),
            &Name::new(
                "_CRS".into(),
                &ResourceTemplate::new(vec![
                    &Memory32Fixed::new(true, window.base, window.size),
                    &edge_interrupt(window.gsi),
                ]),
            ),
        ],
    )
    .to_aml_bytes(&mut bytes);
    bytes
}

/// AML that is already encoded.
struct Encoded(Vec<u8>);

impl Aml for Encoded {
    fn to_aml_bytes(&self, sink: &mut dyn acpi_tables::AmlSink) {
        sink.vec(&self.0);
    }
}

/// Builds the table.
pub fn dsdt(platform: &Platform) -> Vec<u8> {
    let com1 = Device::new(
        "COM1".into(),
        vec![
            &Name::new("_HID".into(), &EISAName::new("PNP0501")),
            &Name::new("_UID".into(), &1u8),
            &Name::new(
                "_CRS".into(),
                &ResourceTemplate::new(vec![&IO::new(COM1, COM1, 1, 8), &edge_interrupt(COM1_GSI)]),
            ),
        ],
    )
    .encoded();
    let rtc = Device::new(
        "RTC_".into(),
        vec![
            &Name::new("_HID".into(), &EISAName::new("PNP0B00")),
            &Name::new(
                "_CRS".into(),
                &ResourceTemplate::new(vec![&IO::new(RTC_PORT, RTC_PORT, 1, 2), &edge_interrupt(RTC_GSI)]),
            ),
        ],
    )
    .encoded();
    let keyboard = Device::new(
        "KBD_".into(),
        vec![
            &Name::new("_HID".into(), &EISAName::new("PNP0303")),
            &Name::new(
                "_CRS".into(),
                &ResourceTemplate::new(vec![
                    &IO::new(I8042, I8042, 1, 1),
                    &IO::new(I8042 + 4, I8042 + 4, 1, 1),
                    &edge_interrupt(KEYBOARD_GSI),
                ]),
            ),
        ],
    )
    .encoded();
    let mut devices: Vec<Encoded> = (0..platform.cpus).map(|cpu| Encoded(processor(cpu))).collect();
    devices.extend([com1, rtc]);
    if platform.keyboard == Keyboard::Present {
        devices.push(keyboard);
    }
    devices.extend(platform.virtio.iter().enumerate().map(|(index, window)| Encoded(virtio(index, window))));

    let mut body = Vec::new();
    let sleep_type = SLEEP_TYPE_S5;
    Name::new("_S5_".into(), &Package::new(vec![&sleep_type, &sleep_type, &0u8, &0u8])).to_aml_bytes(&mut body);
    Scope::new("_SB_".into(), devices.iter().map(|device| device as &dyn Aml).collect()).to_aml_bytes(&mut body);
    let mut dsdt = Sdt::new(*b"DSDT", 36, 2, OEM_ID, OEM_TABLE_ID, OEM_REVISION);
    dsdt.append_slice(&body);
    dsdt.as_slice().to_vec()
}

trait Encode {
    fn encoded(&self) -> Encoded;
}

impl<T: Aml> Encode for T {
    fn encoded(&self) -> Encoded {
        let mut bytes = Vec::new();
        self.to_aml_bytes(&mut bytes);
        Encoded(bytes)
    }
}
