//! Random page tables in every paging mode, with and without EPT: the model's walks and its caches against a
//! straight-line walker.
//!
//! `GLASSVISOR_CASES` sets how many machines there are, `GLASSVISOR_SEED` which.

mod reference;

use std::sync::Arc;

use reference::{Kind, MEMORY, Memory, Outcome, Paging, Registers, TABLES};
use silicon_memory::{HostPhysical, PhysicalMemory};
use silicon_x86::mem::{Access, AccessKind};
use silicon_x86::model::Model;
use silicon_x86::vmx::Vmcs;
use silicon_x86::{Core, Leave};
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::rflags;
use x86_defs::segment::{index, rights};
use x86_defs::vmx::controls::secondary;
use x86_defs::vmx::{ExitReason, Field};

/// Pages for the guest's tables: as many for each level.
const PAGES_A_LEVEL: u64 = 3;
const EPT_TABLES: u64 = 0x2_0000;
const LOG: u64 = 0x3_f000;
/// Indices into tables that addresses use.
const INDICES: [u64; 6] = [0, 1, 2, 3, 256, 511];

/// Random numbers, the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The page of the guest's table `n` of a level.
fn table_page(level: u64, n: u64) -> u64 {
    0x1000 + (level * PAGES_A_LEVEL + n) * 0x1000
}

fn guest_entry(rng: &mut Random, paging: Paging, pse: bool, level: u64) -> u64 {
    let mut entry = 0;
    for (bit, one_in) in [(1, 4), (2, 4), (5, 2), (6, 2), (8, 4)] {
        // Rights are mostly given, flags are set half of the time.
        if rng.one_in(one_in) == (bit > 4) {
            entry |= 1 << bit;
        }
    }
    if !rng.one_in(10) {
        entry |= 1;
    }
    let marked = level > 0 && rng.one_in(4);
    if marked {
        entry |= 0x80;
    }
    let large = marked && pse;
    let address = if level == 0 {
        (TABLES + rng.below(MEMORY - TABLES)) & !0xfff
    } else if large {
        match (level, paging) {
            (1, Paging::ThirtyTwo) => 0x40_0000 * rng.below(2),
            (1, _) => 0x20_0000 * rng.below(4),
            _ => 0,
        }
    } else {
        table_page(level - 1, rng.below(PAGES_A_LEVEL))
    };
    entry |= address;
    if paging != Paging::ThirtyTwo {
        if rng.one_in(6) {
            entry |= 1 << 63;
        }
        if rng.one_in(16) {
            entry |= 1 << (46 + rng.below(6));
        }
        if paging == Paging::Pae && rng.one_in(24) {
            entry |= 1 << (52 + rng.below(11));
        }
        if matches!(paging, Paging::Four | Paging::Five) {
            entry |= rng.below(4) << 59 | rng.below(4) << 53;
        }
    }
    if large && rng.one_in(8) {
        entry |= 1 << (12 + rng.below(10));
    }
    if paging == Paging::ThirtyTwo { entry & 0xffff_ffff } else { entry }
}

/// EPT that maps everything to itself, in pages of 4 KiB for the tables and of 2 MiB above, with random rights; and a
/// second region of 1 GiB.
fn fill_ept(rng: &mut Random, memory: &mut Memory, mode_based: bool) -> u64 {
    let (root, directories, directory, pages) =
        (EPT_TABLES, EPT_TABLES + 0x1000, EPT_TABLES + 0x2000, EPT_TABLES + 0x3000);
    let upper = 7 | 1 << 10;
    memory.store(root, directories | upper);
    memory.store(directories, directory | upper);
    memory.store(directories + 8, upper | 0x80 | 6 << 3);
    let mut leaf = |memory: &mut Memory, at: u64, address: u64, size: u64, risky: u64| {
        let mut entry = address | 7 | 6 << 3 | size;
        if rng.one_in(risky) {
            entry = entry & !7 | rng.pick(&[0, 1, 3, 4, 5, 6, 2]);
        }
        if mode_based && !rng.one_in(3) || rng.one_in(8) {
            entry |= 1 << 10;
        }
        if rng.one_in(2) {
            entry |= rng.below(4) << 8;
        }
        if rng.one_in(40) {
            entry |= 1 << (46 + rng.below(6));
        }
        if rng.one_in(60) {
            entry = entry & !0x38 | rng.below(8) << 3;
        }
        memory.store(at, entry);
    };
    leaf(memory, directory + 8, 0x20_0000, 0x80, 4);
    leaf(memory, directory + 16, 0x40_0000, 0x80, 4);
    leaf(memory, directory + 24, 0x60_0000, 0x80, 4);
    memory.store(directory, pages | upper);
    for page in 0..512 {
        let risky = if page < 0x20 { 30 } else { 4 };
        leaf(memory, pages + page * 8, page << 12, 0, risky);
    }
    root | 6 | 3 << 3 | if rng.one_in(2) { 0x40 } else { 0 }
}

struct Case {
    core: Core,
    memory: Memory,
    registers: Registers,
}

fn machine() -> Core {
    let physical = PhysicalMemory::new();
    physical.add(HostPhysical(0), MEMORY).unwrap();
    let model = Model::parse("glassvisor-v2,+la57,+pku,+pks").unwrap();
    for page in (0..MEMORY).step_by(4096).filter(|&p| p >= TABLES) {
        physical.page(HostPhysical(page)).unwrap().0.store(0, page);
    }
    Core::new(Arc::new(physical), Arc::new(model))
}

impl Case {
    /// A machine with random tables, on the memory of `core`.
    fn new(mut core: Core, rng: &mut Random) -> Self {
        let paging = rng.pick(&[Paging::Off, Paging::ThirtyTwo, Paging::Pae, Paging::Four, Paging::Five, Paging::Four]);
        let mut memory = Memory { bytes: vec![0; TABLES as usize], log_index: rng.below(6), log: LOG };
        let pse = rng.one_in(2) || paging != Paging::ThirtyTwo;
        let levels = match paging {
            Paging::Off => 0,
            Paging::ThirtyTwo => 2,
            Paging::Pae => 2,
            Paging::Four => 4,
            Paging::Five => 5,
        };
        for level in 0..levels {
            for n in 0..PAGES_A_LEVEL {
                for i in INDICES {
                    let entry = guest_entry(rng, paging, pse, level);
                    let at = table_page(level, n) + i * 8;
                    if paging == Paging::ThirtyTwo {
                        let other = guest_entry(rng, paging, pse, level);
                        memory.store(at, entry | other << 32);
                    } else {
                        memory.store(at, entry);
                    }
                }
            }
        }
        let mode_based = rng.one_in(2);
        let eptp = rng.one_in(2).then(|| fill_ept(rng, &mut memory, mode_based));
        let long = matches!(paging, Paging::Four | Paging::Five);
        let rights = |rng: &mut Random| rng.one_in(2).then(|| rng.next() as u32);
        let registers = Registers {
            paging,
            pse,
            cr3: if levels == 0 { 0 } else { table_page(levels - 1, 0) },
            pdptes: std::array::from_fn(|_| table_page(1, rng.below(PAGES_A_LEVEL)) | u64::from(!rng.one_in(5))),
            nxe: rng.one_in(2),
            wp: rng.one_in(2),
            smep: rng.one_in(2),
            smap: rng.one_in(2),
            ac: false,
            pkru: rights(rng).filter(|_| long),
            pkrs: rights(rng).filter(|_| long),
            eptp,
            mode_based: mode_based && eptp.is_some(),
            logging: eptp.is_some() && rng.one_in(2),
        };
        for page in (0..TABLES).step_by(4096) {
            let bytes = &memory.bytes[page as usize..page as usize + 4096];
            core.memory.page(HostPhysical(page)).unwrap().0.write(0, bytes);
        }
        // A processor of its own, on the same memory.
        core = Core::new(Arc::clone(&core.memory), Arc::clone(&core.model));
        let mut case = Self { core, memory, registers };
        case.set_registers();
        case
    }

    fn set_registers(&mut self) {
        let (core, r) = (&mut self.core, &self.registers);
        core.vmptrld(Vmcs::new());
        core.vmwrite(Field::PmlAddress, LOG);
        core.vmwrite(Field::PmlIndex, self.memory.log_index);
        core.vmx.controls.vpid = 1;
        core.vmx.controls.eptp = r.eptp.unwrap_or(0);
        for (on, bit) in [(r.mode_based, secondary::MODE_BASED_EXECUTE), (r.logging, secondary::ENABLE_PML)] {
            core.vmx.controls.secondary |= if on { bit } else { 0 };
        }
        core.vmx.pdptes = r.pdptes;
        core.cr3 = r.cr3;
        core.cr0 = cr0::PE | if r.paging == Paging::Off { 0 } else { cr0::PG } | if r.wp { cr0::WP } else { 0 };
        core.cr4 = cr4::PGE;
        for (on, bit) in [
            (r.pse, cr4::PSE),
            (!matches!(r.paging, Paging::Off | Paging::ThirtyTwo), cr4::PAE),
            (r.paging == Paging::Five, cr4::LA57),
            (r.smep, cr4::SMEP),
            (r.smap, cr4::SMAP),
            (r.pkru.is_some(), cr4::PKE),
            (r.pkrs.is_some(), cr4::PKS),
        ] {
            core.cr4 |= if on { bit } else { 0 };
        }
        let long = matches!(r.paging, Paging::Four | Paging::Five);
        core.efer = if long { efer::LME | efer::LMA } else { 0 } | if r.nxe { efer::NXE } else { 0 };
        core.seg[index::CS].rights = rights::P | rights::S | rights::CODE | if long { rights::L } else { rights::DB };
        core.seg[index::SS].rights = rights::P | rights::S | rights::WRITABLE | rights::DB;
        core.update_mode();
        core.set_pkru(r.pkru.unwrap_or(0));
        core.set_pkrs(r.pkrs.unwrap_or(0));
        core.tlb_select();
    }

    /// What may change without an invalidation.
    fn change(&mut self, rng: &mut Random) {
        let (core, r) = (&mut self.core, &mut self.registers);
        if r.pkru.is_some() {
            r.pkru = Some(rng.next() as u32 & rng.next() as u32);
            core.set_pkru(r.pkru.unwrap());
        }
        if r.pkrs.is_some() {
            r.pkrs = Some(rng.next() as u32 & rng.next() as u32);
            core.set_pkrs(r.pkrs.unwrap());
        }
        r.ac = rng.one_in(2);
        core.set_rflags(rflags::FIXED | if r.ac { rflags::AC } else { 0 });
        if rng.one_in(3) {
            r.wp = !r.wp;
            core.cr0 ^= cr0::WP;
            core.update_mode();
            core.tlb_controls_written(cr0::WP, 0);
        }
    }

    /// Mode, privilege level and all that follows from it.
    fn become_user(&mut self, user: bool) {
        let ss = &mut self.core.seg[index::SS];
        ss.rights = ss.rights & !rights::DPL | if user { rights::DPL } else { 0 };
        self.core.update_mode();
    }

    fn model(&mut self, linear: u64, kind: Kind) -> Outcome {
        let core = &mut self.core;
        let done = match kind {
            Kind::Fetch => core.fetch_translate(linear).map(|page| page.host),
            Kind::Read => core.load_linear::<u64>(linear, index::DS as u8),
            Kind::Write => {
                let access = Access { kind: AccessKind::Write, ..core.access(AccessKind::Write, index::DS as u8) };
                core.load_slow::<u64>(linear, access)
            }
        };
        let exit = core.vmx.exit;
        match done {
            Ok(host) => Outcome::Host(host),
            Err(Leave::Fault) if core.fault.vector == 14 => {
                assert_eq!(core.fault.address, linear);
                Outcome::PageFault(core.fault.error_code.unwrap())
            }
            Err(Leave::Fault) => {
                assert_eq!((core.fault.vector, core.fault.error_code), (13, Some(0)));
                Outcome::NotCanonical
            }
            Err(Leave::Exit) => match exit.reason {
                Some(ExitReason::EptViolation) => {
                    assert_eq!(exit.guest_linear, linear);
                    Outcome::Violation { qualification: exit.qualification, guest: exit.guest_physical }
                }
                Some(ExitReason::PageModificationLogFull) => Outcome::LogFull,
                Some(ExitReason::EptMisconfiguration) => Outcome::Misconfiguration { guest: exit.guest_physical },
                other => panic!("{other:?}"),
            },
            Err(other) => panic!("{other:?}"),
        }
    }

    /// The first difference of the tables.
    fn difference(&self) -> Option<(u64, u64, u64)> {
        let ept = EPT_TABLES..EPT_TABLES + 0x4000;
        let mut pages = (0..0x1_1000_u64).step_by(4096).chain(ept.step_by(4096)).chain([LOG]);
        pages.find_map(|page| {
            let mut bytes = [0; 4096];
            self.core.memory.page(HostPhysical(page)).unwrap().0.read(0, &mut bytes);
            let expected = &self.memory.bytes[page as usize..page as usize + 4096];
            (bytes != expected).then(|| {
                let word = |from: &[u8], i: usize| u64::from_le_bytes(from[i..i + 8].try_into().unwrap());
                let i = (0..4096).step_by(8).find(|&i| word(&bytes, i) != word(expected, i)).unwrap();
                (page + i as u64, word(&bytes, i), word(expected, i))
            })
        })
    }
}

fn address(rng: &mut Random, paging: Paging) -> u64 {
    let index = |rng: &mut Random| rng.pick(&INDICES);
    let page = match paging {
        Paging::Off => rng.below(MEMORY >> 12) << 12,
        Paging::ThirtyTwo => (index(rng) * 2 + rng.below(2)) << 22 | (index(rng) * 2 + rng.below(2)) << 12,
        Paging::Pae => rng.below(4) << 30 | index(rng) << 21 | index(rng) << 12,
        Paging::Four => index(rng) << 39 | index(rng) << 30 | index(rng) << 21 | index(rng) << 12,
        Paging::Five => index(rng) << 48 | index(rng) << 39 | index(rng) << 30 | index(rng) << 21 | index(rng) << 12,
    };
    if rng.one_in(30) {
        return page
            ^ 1 << rng.pick(&[47, 48, 56, 63])
                & if matches!(paging, Paging::Four | Paging::Five) { u64::MAX } else { 0 };
    }
    match paging {
        Paging::Four => ((page << 16) as i64 >> 16) as u64,
        Paging::Five => ((page << 7) as i64 >> 7) as u64,
        _ => page,
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn walks_and_caches_agree_with_a_straight_line_walker_in_every_paging_mode() {
    let cases = number("GLASSVISOR_CASES", 3000);
    let seed = number("GLASSVISOR_SEED", 1);
    let mut core = machine();
    let mut seen = std::collections::BTreeMap::<&str, u64>::new();
    for case in 0..cases {
        let mut rng = Random(seed.wrapping_mul(0x1_0000_0001) ^ case << 20);
        let mut c = Case::new(core, &mut rng);
        let addresses: Vec<_> = (0..12).map(|_| address(&mut rng, c.registers.paging)).collect();
        for step in 0..48 {
            if step % 8 == 7 {
                c.change(&mut rng);
            }
            let linear = rng.pick(&addresses);
            let kind = rng.pick(&[Kind::Read, Kind::Write, Kind::Fetch, Kind::Read]);
            let user = rng.one_in(2);
            c.become_user(user);
            let what = format!("case {case} step {step}: {kind:?} of {linear:#x}, user {user}, {:x?}", c.registers);
            let expected = reference::access(&mut c.memory, &c.registers, linear, kind, user);
            let found = c.model(linear, kind);
            let expected = match expected {
                // A load gives the word that is there.
                Outcome::Host(host) if kind != Kind::Fetch => c.memory.load(host).map_or_else(|e| e, Outcome::Host),
                other => other,
            };
            // Memory that does not exist: the model reports it as a misconfiguration.
            let same = match (&found, &expected) {
                (Outcome::Misconfiguration { .. }, Outcome::NoMemory) => true,
                _ => found == expected,
            };
            assert!(same, "model {found:x?}, reference {expected:x?}: {what}");
            if let Some((at, model, reference)) = c.difference() {
                panic!("tables differ at {at:#x}: model {model:#x}, reference {reference:#x}, {expected:x?}: {what}");
            }
            assert_eq!(c.core.vmread(Field::PmlIndex), c.memory.log_index, "{what}");
            *seen
                .entry(match expected {
                    Outcome::Host(_) => "translated",
                    Outcome::PageFault(_) => "page fault",
                    Outcome::NotCanonical => "not canonical",
                    Outcome::Violation { .. } => "violation",
                    Outcome::Misconfiguration { .. } => "misconfiguration",
                    Outcome::LogFull => "log full",
                    Outcome::NoMemory => "no memory",
                })
                .or_default() += 1;
        }
        core = c.core;
    }
    println!("{seen:?}");
    assert!(cases < 1000 || seen.len() == 7, "every outcome occurs: {seen:?}");
}
