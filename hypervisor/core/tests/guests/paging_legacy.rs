//! 32-bit and PAE paging: each right, in each mode and page size.

use hypervisor::MemoryFlags;
use iced_x86::code_asm::*;

use crate::machine::{CODE, HEAP, Machine, PML4, RESULTS, config};
use crate::paging_machine::{self as legacy, end, enter_user_mode};

const WRITABLE: u64 = 2;
const USER: u64 = 4;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
const NO_EXECUTE: u64 = 1 << 63;

const CR0_WP: u32 = 1 << 16;
const CR0_PG: u32 = 1 << 31;
const CR4_PSE: u32 = 1 << 4;
const CR4_PAE: u32 = 1 << 5;
const CR4_PGE: u32 = 1 << 7;
const CR4_SMEP: u32 = 1 << 20;
const CR4_SMAP: u32 = 1 << 21;

/// The page of the case. The first 4 MiB are also mapped for user mode, at [`ALIAS`].
const PAGE: u64 = 0x8000_0000;
const ALIAS: u64 = 0x4000_0000;
const ROOT: u64 = PML4;
/// What the large page maps.
const LARGE_AT: u64 = 0x40_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bits32,
    Bits32Large,
    Pae,
    PaeLarge,
}

use Mode::{Bits32, Bits32Large, Pae, PaeLarge};

const MODES: [Mode; 4] = [Bits32, Bits32Large, Pae, PaeLarge];

impl Mode {
    fn pae(self) -> bool {
        matches!(self, Pae | PaeLarge)
    }

    fn large(self) -> bool {
        matches!(self, Bits32Large | PaeLarge)
    }

    fn cr4(self) -> u32 {
        if self.pae() { CR4_PAE } else { CR4_PSE }
    }

    /// Physical address of the page, and of the entry that maps it.
    fn page(self) -> (u64, u64) {
        let entry = match self {
            Bits32 => ROOT + 0x1000,
            Bits32Large => ROOT + 4 * (PAGE >> 22),
            Pae => ROOT + 0x4000,
            PaeLarge => ROOT + 0x3000,
        };
        (if self.large() { LARGE_AT } else { HEAP }, entry)
    }

    /// Tables in which the page has `flags`.
    fn build(self, m: &mut Machine, flags: u64) {
        let (page, entry) = self.page();
        let leaf = page | flags | if self.large() { LARGE } else { 0 };
        m.write(ROOT, &[0; 0x5000]);
        if self.pae() {
            for (i, table) in [0x1000, 0x2000, 0x3000].into_iter().enumerate() {
                m.write_u64(ROOT + 8 * i as u64, (ROOT + table) | 1);
            }
            for i in 0..4 {
                m.write_u64(ROOT + 0x1000 + 8 * i, i << 21 | 0x83);
                m.write_u64(ROOT + 0x2000 + 8 * i, i << 21 | 0x87);
            }
            m.write_u64(ROOT + 0x3000, (ROOT + 0x4000) | 7);
            m.write_u64(entry, leaf);
        } else {
            let word = |m: &mut Machine, at: u64, value: u64| m.write(at, &(value as u32).to_le_bytes());
            word(m, ROOT, 0x83);
            word(m, ROOT + 4, 0x40_0083);
            word(m, ROOT + 4 * (ALIAS >> 22), 0x87);
            word(m, ROOT + 4 * (PAGE >> 22), (ROOT + 0x1000) | 7);
            word(m, entry, leaf);
        }
    }
}

/// Turns paging on.
fn paging_on(a: &mut CodeAssembler, features: u32, nxe: bool, wp: bool) {
    if nxe {
        emit!(a; mov(ecx, 0xc000_0080u32); mov(eax, 0x800u32); xor(edx, edx); wrmsr());
    }
    emit!(a; mov(eax, ROOT as u32); mov(cr3, eax); mov(eax, features); mov(cr4, eax));
    emit!(a; mov(eax, cr0); or(eax, (CR0_PG | if wp { CR0_WP } else { 0 }) as i32); mov(cr0, eax));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Fetch,
}

use Access::{Fetch, Read, Write};

/// The access, and an undefined instruction if it succeeds.
fn make(a: &mut CodeAssembler, access: Access) {
    emit!(a; mov(ebx, PAGE as u32));
    match access {
        Read => emit!(a; mov(eax, dword_ptr(ebx))),
        Write => emit!(a; mov(byte_ptr(ebx + 8), al)),
        Fetch => emit!(a; jmp(ebx)),
    }
    emit!(a; ud2());
}

struct Setting {
    flags: u64,
    /// Of CR4.
    features: u32,
    nxe: bool,
    wp: bool,
}

/// Error code of the page fault that the access raises, if it does.
fn attempt(mode: Mode, s: &Setting, access: Access, user: bool) -> Option<u64> {
    let features = mode.cr4() | s.features;
    let mut m = legacy::machine(
        config(),
        |a| {
            paging_on(a, features, s.nxe, s.wp);
            if user { enter_user_mode(a, ALIAS as u32, 2) } else { make(a, access) }
        },
        |a| make(a, access),
    );
    mode.build(&mut m, s.flags);
    m.write(mode.page().0, &[0x0f, 0x0b]);
    m.finish();
    let fault = m.faults()[0];
    if fault.vector == 14 {
        assert_eq!(fault.cr2, PAGE + if access == Write { 8 } else { 0 });
        return Some(fault.error);
    }
    assert_eq!(fault.vector, 6, "{fault:x?}");
    None
}

#[test]
fn each_right_has_its_effect_in_every_mode_and_page_size() {
    let plain = |flags| Setting { flags, features: 0, nxe: false, wp: true };
    let with = |flags, features| Setting { flags, features, nxe: false, wp: true };
    let cases = [
        (plain(0), Read, false, Some(0)),
        (plain(0), Write, true, Some(6)),
        (plain(1), Read, false, None),
        (plain(1), Read, true, Some(5)),
        (plain(1), Write, false, Some(3)),
        (Setting { wp: false, ..plain(1) }, Write, false, None),
        (plain(1 | WRITABLE), Write, false, None),
        (plain(1 | WRITABLE), Write, true, Some(7)),
        (plain(1 | USER), Read, true, None),
        (plain(1 | USER), Write, true, Some(7)),
        (Setting { wp: false, ..plain(1 | USER) }, Write, true, Some(7)),
        (plain(1 | USER | WRITABLE), Write, true, None),
        (plain(1 | USER), Fetch, true, None),
        (plain(1), Fetch, true, Some(5)),
        (plain(1 | USER), Fetch, false, None),
        (with(1 | USER, CR4_SMEP), Fetch, false, Some(0x11)),
        (with(1, CR4_SMEP), Fetch, false, None),
        (with(1, CR4_SMEP), Fetch, true, Some(0x15)),
        (with(1 | USER | WRITABLE, CR4_SMAP), Read, false, Some(1)),
        (with(1 | USER | WRITABLE, CR4_SMAP), Write, false, Some(3)),
        (with(1 | USER | WRITABLE, CR4_SMAP), Write, true, None),
        (with(1, CR4_SMAP), Read, false, None),
    ];
    for mode in MODES {
        for (setting, access, user, expected) in &cases {
            let found = attempt(mode, setting, *access, *user);
            let Setting { flags, features, wp, .. } = setting;
            assert_eq!(found, *expected, "{mode:?}: {access:?}, user {user}, {flags:#x}, CR4 {features:#x}, WP {wp}");
        }
    }
}

#[test]
fn no_execute_and_the_reserved_bits_of_pae_entries() {
    for mode in [Pae, PaeLarge] {
        let nx = |nxe, flags| Setting { flags, features: 0, nxe, wp: true };
        for (setting, access, user, expected) in [
            (nx(true, 1 | NO_EXECUTE), Fetch, false, Some(0x11)),
            (nx(true, 1 | USER | NO_EXECUTE), Fetch, true, Some(0x15)),
            (nx(true, 1 | NO_EXECUTE), Read, false, None),
            (nx(true, 1), Fetch, true, Some(0x15)),
            (nx(false, 1 | NO_EXECUTE), Read, false, Some(9)),
            (nx(false, 1 | 1 << 46), Read, false, Some(9)),
            (nx(false, 1 | 1 << 51), Write, true, Some(0xf)),
            (nx(false, 1 | 1 << 52), Read, false, Some(9)),
            (nx(true, 1 | 1 << 62), Read, false, Some(9)),
            (nx(false, 1 | 7 << 9), Read, false, None),
        ] {
            let found = attempt(mode, &setting, access, user);
            assert_eq!(found, expected, "{mode:?} {access:?} {:#x} NXE {}", setting.flags, setting.nxe);
        }
    }
    let plain = |flags| Setting { flags, features: 0, nxe: false, wp: true };
    assert_eq!(attempt(PaeLarge, &plain(1 | 1 << 13), Read, false), Some(9), "address bits below 2 MiB");
    assert_eq!(attempt(PaeLarge, &plain(1 | 1 << 12), Read, false), None, "bit 12 is of the memory type");
    assert_eq!(attempt(Bits32Large, &plain(1 | 1 << 21), Read, false), Some(9));
    assert_eq!(attempt(Bits32Large, &plain(1 | 1 << 12), Read, false), None);
}

#[test]
fn accessed_and_dirty_flags_are_set_at_each_level() {
    for mode in MODES {
        for (access, expected) in [(Read, ACCESSED), (Write, ACCESSED | DIRTY)] {
            let mut m = legacy::machine(
                config(),
                |a| {
                    paging_on(a, mode.cr4(), false, true);
                    make(a, access);
                },
                |_| {},
            );
            mode.build(&mut m, 1 | WRITABLE);
            m.finish();
            let (_, entry) = mode.page();
            assert_eq!(m.read_u64(entry) & (ACCESSED | DIRTY), expected, "{mode:?} {access:?}");
            let directory = if mode.pae() { ROOT + 0x3000 } else { ROOT + 4 * (PAGE >> 22) };
            if !mode.large() {
                assert_eq!(m.read_u64(directory) & (ACCESSED | DIRTY), ACCESSED, "{mode:?} {access:?}");
            }
        }
    }
}

#[test]
fn global_pages_survive_a_load_of_cr3() {
    for mode in MODES {
        for global in [0, GLOBAL] {
            let (page, entry) = mode.page();
            let mut m = legacy::machine(
                config(),
                |a| {
                    paging_on(a, mode.cr4() | CR4_PGE, false, true);
                    let look = |a: &mut CodeAssembler, slot: u32| {
                        emit!(a; mov(eax, dword_ptr(PAGE as u32)); mov(dword_ptr(RESULTS as u32 + 8 * slot), eax));
                    };
                    look(a, 0);
                    // The entry goes away.
                    emit!(a; mov(dword_ptr(entry as u32), 0));
                    if global != 0 {
                        emit!(a; mov(eax, cr3); mov(cr3, eax));
                        look(a, 1);
                    }
                    emit!(a; invlpg(byte_ptr(PAGE as u32)));
                    look(a, 2);
                },
                |_| {},
            );
            mode.build(&mut m, 1 | WRITABLE | global);
            m.write_u64(page, 0xabcd);
            m.finish();
            assert_eq!(m.results(), [0xabcd, if global != 0 { 0xabcd } else { 0 }, 0], "{mode:?}");
            assert_eq!((m.faults()[0].vector, m.faults()[0].error), (14, 0));
        }
    }
}

#[test]
fn a_large_page_of_32_bit_paging_has_an_address_of_40_bits() {
    let mut m = legacy::machine(
        config(),
        |a| {
            paging_on(a, CR4_PSE, false, true);
            emit!(a; mov(eax, dword_ptr(PAGE as u32 + 0x1230)); mov(dword_ptr(RESULTS as u32), eax));
            end(a);
        },
        |_| {},
    );
    m.add_memory(1 << 32, 4 << 20, MemoryFlags::ReadWrite);
    m.write_extra(0, 0x1230, &0x4321_u32.to_le_bytes());
    Bits32Large.build(&mut m, 1);
    m.write(ROOT + 4 * (PAGE >> 22), &(0x81_u32 | 1 << 13).to_le_bytes());
    m.finish();
    assert_eq!(m.result(0), 0x4321);
}

#[test]
fn without_pse_the_size_bit_is_ignored() {
    let mut m = legacy::machine(
        config(),
        |a| {
            paging_on(a, 0, false, true);
            emit!(a; mov(eax, dword_ptr(PAGE as u32)); mov(dword_ptr(RESULTS as u32), eax));
            end(a);
        },
        |_| {},
    );
    Bits32.build(&mut m, 1);
    // The first 4 MiB in small pages.
    for page in 0..1024_u32 {
        m.write(ROOT + 0x2000 + 4 * u64::from(page), &(page << 12 | 3).to_le_bytes());
    }
    m.write(ROOT, &((ROOT as u32 + 0x2000) | 3).to_le_bytes());
    m.write(ROOT + 4 * (PAGE >> 22), &((ROOT as u32 + 0x1000) | 0x83).to_le_bytes());
    m.write_u64(HEAP, 0x77);
    m.finish();
    assert_eq!(m.result(0), 0x77);
}

#[test]
fn the_page_directory_pointers_of_pae_are_loaded_and_checked() {
    // A bad entry is refused when paging is turned on, and by MOV to CR3 and by a change of CR4 afterwards.
    for bit in [1, 2, 5, 6, 7, 8, 46, 63] {
        let bad = 1 | 1_u64 << bit;
        let mut m = legacy::machine(config(), |a| paging_on(a, CR4_PAE, false, true), |_| {});
        Pae.build(&mut m, 1);
        m.write_u64(ROOT + 24, bad);
        m.finish();
        assert_eq!((m.faults()[0].vector, m.faults()[0].error), (13, 0), "paging on, bit {bit}");
        assert_eq!(m.vm.vcpu(0).sregs().cr0 as u32 & CR0_PG, 0);

        for by_cr4 in [false, true] {
            let mut m = legacy::machine(
                config(),
                |a| {
                    paging_on(a, CR4_PAE, false, true);
                    emit!(a; mov(dword_ptr(ROOT as u32 + 24), bad as u32); mov(dword_ptr(ROOT as u32 + 28), (bad >> 32) as u32));
                    // The registers do not know yet.
                    emit!(a; mov(eax, dword_ptr(PAGE as u32)); mov(dword_ptr(RESULTS as u32), eax));
                    if by_cr4 {
                        emit!(a; mov(eax, CR4_PAE | CR4_PGE); mov(cr4, eax));
                    } else {
                        emit!(a; mov(eax, ROOT as u32); mov(cr3, eax));
                    }
                    emit!(a; ud2());
                },
                |_| {},
            );
            Pae.build(&mut m, 1);
            m.write_u64(HEAP, 0x99);
            m.finish();
            assert_eq!((m.result(0), m.faults()[0].vector), (0x99, 13), "bit {bit}, CR4 {by_cr4}");
        }
    }
}

#[test]
fn a_vmm_may_start_a_guest_in_pae_paging() {
    let mut m = legacy::machine(
        config(),
        |a| {
            emit!(a; mov(eax, dword_ptr(PAGE as u32)); mov(dword_ptr(RESULTS as u32), eax));
            end(a);
        },
        |_| {},
    );
    Pae.build(&mut m, 1);
    m.write_u64(HEAP, 0x66);
    let v = m.vm.vcpu_mut(0);
    let mut s = v.sregs();
    (s.cr0, s.cr3, s.cr4) = (s.cr0 | u64::from(CR0_PG), ROOT, CR4_PAE.into());
    v.set_sregs(&s);
    m.finish();
    assert_eq!(m.result(0), 0x66);
}

#[test]
fn control_registers_refuse_what_cannot_be() {
    let to_cr0 = |value: u32| move |a: &mut CodeAssembler| emit!(a; mov(eax, value); mov(cr0, eax));
    let to_cr4 = |value: u32| move |a: &mut CodeAssembler| emit!(a; mov(eax, value); mov(cr4, eax));
    let efer = |value: u32| move |a: &mut CodeAssembler| emit!(a; mov(ecx, 0xc000_0080u32); mov(eax, value); xor(edx, edx); wrmsr());
    type Body = Box<dyn FnOnce(&mut CodeAssembler)>;
    let cases: Vec<(&str, Body, bool)> = vec![
        ("PG without PE", Box::new(to_cr0(0x8000_0010)), true),
        ("NW without CD", Box::new(to_cr0(0x2000_0011)), true),
        ("CD and NW", Box::new(to_cr0(0x6000_0011)), false),
        ("bits of CR0 that do not exist are ignored", Box::new(to_cr0(0x0000_0f51)), false),
        ("PCIDE outside of IA-32e mode", Box::new(to_cr4(1 << 17)), true),
        ("VMXE, which is not offered", Box::new(to_cr4(1 << 13)), true),
        ("a bit of CR4 that does not exist", Box::new(to_cr4(1 << 15)), true),
        ("LA57 where the model lacks it", Box::new(to_cr4(1 << 12)), true),
        ("PKE where the model lacks it", Box::new(to_cr4(1 << 22)), true),
        ("a bit of EFER that does not exist", Box::new(efer(1 << 9)), true),
        ("LME", Box::new(efer(1 << 8)), false),
        (
            "LME and paging without PAE",
            Box::new(move |a| {
                efer(1 << 8)(a);
                to_cr0(0x8000_0011)(a);
            }),
            true,
        ),
        (
            "a change of LME with paging on",
            Box::new(move |a| {
                paging_on(a, CR4_PAE, false, true);
                efer(1 << 8)(a);
            }),
            true,
        ),
    ];
    for (what, body, faults) in cases {
        let mut m = legacy::machine(
            config(),
            |a| {
                body(a);
                emit!(a; ud2());
            },
            |_| {},
        );
        Pae.build(&mut m, 1);
        m.finish();
        let fault = m.faults()[0];
        assert_eq!((fault.vector, fault.error), if faults { (13, 0) } else { (6, 0) }, "{what}");
    }
}

#[test]
fn without_paging_every_address_is_physical() {
    let mut m = legacy::machine(
        config(),
        |a| {
            emit!(a; mov(eax, dword_ptr(HEAP as u32)); mov(dword_ptr(RESULTS as u32), eax));
            end(a);
        },
        |_| {},
    );
    m.write_u64(HEAP, 0x55);
    m.finish();
    assert_eq!(m.result(0), 0x55);
    let _ = CODE;
}
