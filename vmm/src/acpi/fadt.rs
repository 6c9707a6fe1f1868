//! Fixed ACPI Description Table: power management ports and how to reset the machine.

use acpi_tables::fadt::{FADT, FADTBuilder, Flags, PmProfile};
use acpi_tables::gas::{AccessSize, AddressSpace, GAS};

use super::{Keyboard, OEM_ID, OEM_REVISION, OEM_TABLE_ID};

/// Status and enable registers, two bytes each.
pub const PM1A_EVENT: u16 = 0x600;
/// Control register: a write of the sleep type with the enable bit ends the machine.
pub const PM1A_CONTROL: u16 = 0x604;
/// 24-bit (here 32-bit) counter at 3.579545 MHz; answered by the hypervisor.
pub const PM_TIMER: u16 = 0x608;
/// Interrupt of fixed events; none is ever raised.
pub const SCI_GSI: u8 = 9;
/// Writing [`RESET_VALUE`] here resets the machine.
pub const RESET_PORT: u16 = 0xcf9;
/// Full reset, as the chipset register of that port has it.
pub const RESET_VALUE: u8 = 0x06;
/// SLP_TYP of soft-off.
pub const SLEEP_TYPE_S5: u8 = 5;

/// CMOS index of the century, which the RTC here does not have elsewhere.
pub const CENTURY_REGISTER: u8 = 0x32;

/// There is a COM port (legacy devices), no VGA.
const BOOT_ARCHITECTURE: u16 = LEGACY_DEVICES | VGA_NOT_PRESENT;
const LEGACY_DEVICES: u16 = 1;
const KEYBOARD_CONTROLLER: u16 = 1 << 1;
const VGA_NOT_PRESENT: u16 = 1 << 2;

fn port(port: u16, bits: u8, size: AccessSize) -> GAS {
    GAS::new(AddressSpace::SystemIo, bits, 0, size, u64::from(port))
}

/// Builds the table. SMI_CMD is zero: the machine is in ACPI mode from the start.
pub fn fadt(dsdt: u32, facs: u32, keyboard: Keyboard) -> FADT {
    let mut fadt = FADTBuilder::new(OEM_ID, OEM_TABLE_ID, OEM_REVISION)
        .dsdt_32(dsdt)
        .firmware_ctrl_32(facs)
        .preferred_pm_profile(PmProfile::EnterpriseServer)
        .flag(Flags::Wbinvd)
        .flag(Flags::ProcC1)
        .flag(Flags::SlpButton)
        .flag(Flags::PwrButton)
        .flag(Flags::TmrValExt)
        .flag(Flags::ResetRegSup)
        .flag(Flags::Headless);
    fadt.sci_int = u16::from(SCI_GSI).into();
    fadt.pm1a_evt_blk = u32::from(PM1A_EVENT).into();
    fadt.pm1a_cnt_blk = u32::from(PM1A_CONTROL).into();
    fadt.pm_tmr_blk = u32::from(PM_TIMER).into();
    fadt.pm1_evt_len = 4;
    fadt.pm1_cnt_len = 2;
    fadt.pm_tmr_len = 4;
    // C2 and C3 latencies above these limits say that the states do not exist.
    fadt.p_lvl2_lat = 101.into();
    fadt.p_lvl3_lat = 1001.into();
    fadt.century = CENTURY_REGISTER;
    let controller = match keyboard {
        Keyboard::Present => KEYBOARD_CONTROLLER,
        Keyboard::Absent => 0,
    };
    fadt.iapc_boot_arch = (BOOT_ARCHITECTURE | controller).into();
    fadt.reset_reg = port(RESET_PORT, 8, AccessSize::ByteAccess);
    fadt.reset_value = RESET_VALUE;
    fadt.x_pm1a_evt_blk = port(PM1A_EVENT, 32, AccessSize::WordAccess);
    fadt.x_pm1a_cnt_blk = port(PM1A_CONTROL, 16, AccessSize::WordAccess);
    fadt.x_pm_tmr_blk = port(PM_TIMER, 32, AccessSize::DwordAccess);
    fadt.finalize()
}
