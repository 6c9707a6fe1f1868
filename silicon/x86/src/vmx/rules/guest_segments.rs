//! Checks on guest segment and descriptor-table registers.

use x86_defs::vmx::Field;

use super::{GUEST, protected, real, restricted, rules, set, virtual_8086};

const UNUSABLE: u64 = 1 << 16;
const NOT_CANONICAL: u64 = 1 << 47;

rules! {
    SELECTORS_AND_BASES {
        GUEST, "TR: the TI flag of the selector must be 0"
            => "TR selector", |c| c.vmwrite(Field::GuestTrSelector, 4);
        GUEST, "LDTR: if it is usable, the TI flag of the selector must be 0"
            => "LDTR selector", |c| set(c, &[(Field::GuestLdtrRights, 0x82), (Field::GuestLdtrSelector, 4)]);
        GUEST, "SS: outside of virtual-8086 mode and without \"unrestricted guest\", the RPL must be that of CS"
            => "SS selector", |c| restricted(c, &[(Field::GuestSsSelector, 3)]);
        GUEST, "TR: the base must be canonical"
            => "TR base", |c| c.vmwrite(Field::GuestTrBase, NOT_CANONICAL);
        GUEST, "FS: the base must be canonical"
            => "FS base", |c| c.vmwrite(Field::GuestFsBase, NOT_CANONICAL);
        GUEST, "GS: the base must be canonical"
            => "GS base", |c| c.vmwrite(Field::GuestGsBase, NOT_CANONICAL);
        GUEST, "LDTR: if it is usable, the base must be canonical"
            => "LDTR base", |c| set(c, &[(Field::GuestLdtrRights, 0x82), (Field::GuestLdtrBase, NOT_CANONICAL)]);
        GUEST, "CS: bits 63:32 of the base must be 0"
            => "CS base", |c| c.vmwrite(Field::GuestCsBase, 1 << 32);
        GUEST, "SS: if it is usable, bits 63:32 of the base must be 0"
            => "SS, DS or ES base", |c| c.vmwrite(Field::GuestSsBase, 1 << 32);
        GUEST, "DS: if it is usable, bits 63:32 of the base must be 0"
            => "SS, DS or ES base", |c| set(c, &[(Field::GuestDsRights, 0x93), (Field::GuestDsBase, 1 << 32)]);
        GUEST, "ES: if it is usable, bits 63:32 of the base must be 0"
            => "SS, DS or ES base", |c| set(c, &[(Field::GuestEsRights, 0x93), (Field::GuestEsBase, 1 << 32)]);
    }
}

rules! {
    RIGHTS {
        GUEST, "CS: the type must be 9, 11, 13 or 15 (accessed code segment)"
            => "CS type", |c| c.vmwrite(Field::GuestCsRights, 0xa09a);
        GUEST, "CS: the type may be 3 (accessed expand-up data segment) only with \"unrestricted guest\""
            => "CS type", |c| restricted(c, &[(Field::GuestCsRights, 0xa093)]);
        GUEST, "SS: if it is usable, the type must be 3 or 7 (accessed data segment)"
            => "SS type", |c| c.vmwrite(Field::GuestSsRights, 0xc091);
        GUEST, "DS, ES, FS, GS: if usable, bit 0 of the type must be 1 (accessed)"
            => "not accessed", |c| c.vmwrite(Field::GuestDsRights, 0x92);
        GUEST, "DS, ES, FS, GS: if usable and bit 3 of the type is 1 (code), bit 1 must be 1 (readable)"
            => "cannot be read", |c| c.vmwrite(Field::GuestDsRights, 0x99);
        GUEST, "CS: S must be 1"
            => "CS: S or P", |c| c.vmwrite(Field::GuestCsRights, 0xa08b);
        GUEST, "SS: if it is usable, S must be 1"
            => "SS: S or P", |c| c.vmwrite(Field::GuestSsRights, 0xc083);
        GUEST, "DS, ES, FS, GS: if usable, S must be 1"
            => "data segment: S or P", |c| c.vmwrite(Field::GuestGsRights, 0x83);
        GUEST, "CS: with type 3, DPL must be 0"
            => "CS DPL", |c| c.vmwrite(Field::GuestCsRights, 0xa0f3);
        GUEST, "CS: with type 9 or 11, DPL must be that of SS"
            => "CS DPL", |c| c.vmwrite(Field::GuestCsRights, 0xa0fb);
        GUEST, "CS: with type 13 or 15, DPL must not be greater than that of SS"
            => "CS DPL", |c| c.vmwrite(Field::GuestCsRights, 0xa0ff);
        GUEST, "SS: without \"unrestricted guest\", DPL must be the RPL of the selector"
            => "SS DPL", |c| restricted(c, &[(Field::GuestSsRights, 0xc0f3), (Field::GuestCsRights, 0xa0fb)]);
        GUEST, "SS: DPL must be 0 if CR0.PE is 0"
            => "SS DPL: not 0", |c| {
                real(c);
                c.vmwrite(Field::GuestSsRights, 0xf3);
            };
        GUEST, "SS: DPL must be 0 if the type of CS is 3"
            => "SS DPL: not 0", |c| {
                protected(c);
                set(c, &[(Field::GuestCsRights, 0xc093), (Field::GuestSsRights, 0xc0f3)]);
            };
        GUEST, "DS, ES, FS, GS: if usable, of type 0-11, and without \"unrestricted guest\", DPL must not be less than the RPL"
            => "DPL below RPL", |c| restricted(c, &[(Field::GuestFsRights, 0x93), (Field::GuestFsSelector, 3)]);
        GUEST, "CS: P must be 1"
            => "CS: S or P", |c| c.vmwrite(Field::GuestCsRights, 0xa01b);
        GUEST, "SS: if it is usable, P must be 1"
            => "SS: S or P", |c| c.vmwrite(Field::GuestSsRights, 0xc013);
        GUEST, "DS, ES, FS, GS: if usable, P must be 1"
            => "data segment: S or P", |c| c.vmwrite(Field::GuestEsRights, 0x13);
        GUEST, "CS: reserved bits of the access rights must be 0"
            => "reserved bit", |c| c.vmwrite(Field::GuestCsRights, 0xa19b);
        GUEST, "SS: if it is usable, reserved bits of the access rights must be 0"
            => "reserved bit", |c| c.vmwrite(Field::GuestSsRights, 0xc093 | 1 << 17);
        GUEST, "DS, ES, FS, GS: if usable, reserved bits of the access rights must be 0"
            => "reserved bit", |c| c.vmwrite(Field::GuestDsRights, 0x893);
        GUEST, "CS: D/B must be 0 if the guest is in IA-32e mode and L is 1"
            => "L and D", |c| c.vmwrite(Field::GuestCsRights, 0xe09b);
        GUEST, "CS: if a bit of limit bits 11:0 is 0, G must be 0"
            => "G set", |c| c.vmwrite(Field::GuestCsLimit, 0xffff_f000);
        GUEST, "CS: if a bit of limit bits 31:20 is 1, G must be 1"
            => "G clear", |c| c.vmwrite(Field::GuestCsRights, 0x209b);
        GUEST, "SS: if it is usable and a bit of limit bits 11:0 is 0, G must be 0"
            => "G set", |c| c.vmwrite(Field::GuestSsLimit, 0xffff_f000);
        GUEST, "SS: if it is usable and a bit of limit bits 31:20 is 1, G must be 1"
            => "G clear", |c| c.vmwrite(Field::GuestSsRights, 0x4093);
        GUEST, "DS, ES, FS, GS: if usable and a bit of limit bits 11:0 is 0, G must be 0"
            => "G set", |c| set(c, &[(Field::GuestDsRights, 0x8093), (Field::GuestDsLimit, 0)]);
        GUEST, "DS, ES, FS, GS: if usable and a bit of limit bits 31:20 is 1, G must be 1"
            => "G clear", |c| set(c, &[(Field::GuestFsRights, 0x93), (Field::GuestFsLimit, 1 << 20)]);
        GUEST, "TR: the type must be 11 if the guest is in IA-32e mode"
            => "TR type", |c| c.vmwrite(Field::GuestTrRights, 0x83);
        GUEST, "TR: the type must be 3 or 11 (busy TSS)"
            => "TR type", |c| c.vmwrite(Field::GuestTrRights, 0x89);
        GUEST, "TR: S must be 0"
            => "TR: S set", |c| c.vmwrite(Field::GuestTrRights, 0x9b);
        GUEST, "TR: P must be 1"
            => "TR: S set", |c| c.vmwrite(Field::GuestTrRights, 0x0b);
        GUEST, "TR: it must be usable"
            => "TR: S set", |c| c.vmwrite(Field::GuestTrRights, 0x8b | UNUSABLE);
        GUEST, "TR: reserved bits of the access rights must be 0"
            => "reserved bit", |c| c.vmwrite(Field::GuestTrRights, 0x18b);
        GUEST, "TR: if a bit of limit bits 11:0 is 0, G must be 0"
            => "G set", |c| c.vmwrite(Field::GuestTrRights, 0x808b);
        GUEST, "TR: if a bit of limit bits 31:20 is 1, G must be 1"
            => "G clear", |c| c.vmwrite(Field::GuestTrLimit, 1 << 20);
        GUEST, "LDTR: if it is usable, the type must be 2 (LDT)"
            => "LDTR type", |c| c.vmwrite(Field::GuestLdtrRights, 0x83);
        GUEST, "LDTR: if it is usable, S must be 0"
            => "LDTR: S set", |c| c.vmwrite(Field::GuestLdtrRights, 0x92);
        GUEST, "LDTR: if it is usable, P must be 1"
            => "LDTR: S set", |c| c.vmwrite(Field::GuestLdtrRights, 0x02);
        GUEST, "LDTR: if it is usable, reserved bits of the access rights must be 0"
            => "reserved bit", |c| c.vmwrite(Field::GuestLdtrRights, 0x182);
        GUEST, "LDTR: if it is usable and a bit of limit bits 11:0 is 0, G must be 0"
            => "G set", |c| c.vmwrite(Field::GuestLdtrRights, 0x8082);
        GUEST, "LDTR: if it is usable and a bit of limit bits 31:20 is 1, G must be 1"
            => "G clear", |c| set(c, &[(Field::GuestLdtrRights, 0x82), (Field::GuestLdtrLimit, 1 << 20)]);
    }
}

rules! {
    VIRTUAL_8086 {
        GUEST, "In virtual-8086 mode, the base of CS, SS, DS, ES, FS and GS must be the selector shifted left 4 bits"
            => "selector * 16", |c| {
                virtual_8086(c);
                c.vmwrite(Field::GuestDsBase, 0x1010);
            };
        GUEST, "In virtual-8086 mode, the limit of CS, SS, DS, ES, FS and GS must be 0000FFFFH"
            => "limit is not", |c| {
                virtual_8086(c);
                c.vmwrite(Field::GuestEsLimit, 0xf_ffff);
            };
        GUEST, "In virtual-8086 mode, the access rights of CS, SS, DS, ES, FS and GS must be 000000F3H"
            => "access rights are not", |c| {
                virtual_8086(c);
                c.vmwrite(Field::GuestGsRights, 0x93);
            };
    }
}

rules! {
    TABLES {
        GUEST, "The base of GDTR must be canonical"
            => "IDTR base", |c| c.vmwrite(Field::GuestGdtrBase, NOT_CANONICAL);
        GUEST, "The base of IDTR must be canonical"
            => "IDTR base", |c| c.vmwrite(Field::GuestIdtrBase, NOT_CANONICAL);
        GUEST, "Bits 31:16 of the GDTR limit must be 0"
            => "limit above", |c| c.vmwrite(Field::GuestGdtrLimit, 0x1_0000);
        GUEST, "Bits 31:16 of the IDTR limit must be 0"
            => "limit above", |c| c.vmwrite(Field::GuestIdtrLimit, 0x1_0000);
    }
}

#[test]
fn an_unusable_segment_is_not_checked() {
    let mut core = crate::vmx::testing::guest();
    for (rights, limit) in [
        (Field::GuestDsRights, Field::GuestDsLimit),
        (Field::GuestEsRights, Field::GuestEsLimit),
        (Field::GuestLdtrRights, Field::GuestLdtrLimit),
    ] {
        set(&mut core, &[(rights, UNUSABLE | 0x8000), (limit, 0x8000_0000)]);
    }
    set(&mut core, &[(Field::GuestLdtrBase, NOT_CANONICAL), (Field::GuestEsBase, 1 << 40)]);
    assert!(core.vmlaunch().is_ok());
}
