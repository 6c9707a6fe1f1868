//! A straight-line page walker, written from the manual and from nothing of the model's: no caches, one function a
//! step, numbers instead of names.

/// Bytes of physical memory that tables are in; beyond it, a page's first word is its own address.
pub const TABLES: u64 = 0x4_0000;
/// Bytes of physical memory.
pub const MEMORY: u64 = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    Off,
    ThirtyTwo,
    Pae,
    Four,
    Five,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Fetch,
}

#[derive(Clone, Copy, Debug)]
pub struct Registers {
    pub paging: Paging,
    pub pse: bool,
    pub cr3: u64,
    pub pdptes: [u64; 4],
    pub nxe: bool,
    pub wp: bool,
    pub smep: bool,
    pub smap: bool,
    pub ac: bool,
    pub pkru: Option<u32>,
    pub pkrs: Option<u32>,
    pub eptp: Option<u64>,
    pub mode_based: bool,
    pub logging: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Host(u64),
    PageFault(u32),
    NotCanonical,
    Violation { qualification: u64, guest: u64 },
    Misconfiguration { guest: u64 },
    LogFull,
    NoMemory,
}

#[derive(Clone)]
pub struct Memory {
    pub bytes: Vec<u8>,
    pub log_index: u64,
    /// Where the log is.
    pub log: u64,
}

type Walk<T> = Result<T, Outcome>;

impl Memory {
    pub fn load(&self, at: u64) -> Walk<u64> {
        let i = at as usize;
        if at >= MEMORY {
            Err(Outcome::NoMemory)
        } else if at >= TABLES {
            Ok(if at & 0xfff == 0 { at } else { 0 })
        } else {
            Ok(u64::from_le_bytes(self.bytes[i..i + 8].try_into().unwrap()))
        }
    }

    pub fn store(&mut self, at: u64, value: u64) {
        let i = at as usize;
        self.bytes[i..i + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn or_byte(&mut self, at: u64, bits: u8) {
        self.bytes[at as usize] |= bits;
    }
}

/// What the access to a guest-physical address is for: an entry of a table, or the page itself, whose rights the
/// guest's tables give as user, writable, executable.
#[derive(Clone, Copy)]
enum Purpose {
    Table,
    Page { user: bool, writable: bool, executable: bool },
}

/// Translates a guest-physical address; `need` is 1 read, 2 write, 4 execute, or a sum.
fn ept(m: &mut Memory, r: &Registers, guest: u64, need: u64, purpose: Purpose) -> Walk<u64> {
    let Some(eptp) = r.eptp else { return Ok(guest) };
    let flags = eptp & 0x40 != 0;
    let user = matches!(purpose, Purpose::Page { user: true, .. });
    let mut table = eptp & 0x3fff_ffff_f000;
    let (mut rights, mut user_rights) = (7, true);
    let mut used = vec![];
    for shift in [39, 30, 21, 12] {
        let at = table + (guest >> shift & 511) * 8;
        let Ok(entry) = m.load(at) else { return Err(Outcome::NoMemory) };
        let present = entry & 7 != 0 || r.mode_based && entry & 0x400 != 0;
        if !present {
            return Err(violation(r, guest, need, 0, false, purpose));
        }
        let leaf = shift == 12 || shift < 39 && entry & 0x80 != 0;
        let bad = entry & 3 == 2
            || entry & 0x000f_c000_0000_0000 != 0
            || match (shift, leaf) {
                (39, _) => entry & 0xf8 != 0,
                (30 | 21, false) => entry & 0x78 != 0,
                (30, true) => entry & 0x3fff_f000 != 0,
                (21, true) => entry & 0x1f_f000 != 0,
                _ => false,
            }
            || leaf && [2, 3, 7].contains(&(entry >> 3 & 7));
        if bad {
            return Err(Outcome::Misconfiguration { guest });
        }
        rights &= entry & 7;
        user_rights &= entry & if r.mode_based { 0x400 } else { 4 } != 0;
        used.push((at, entry));
        if leaf {
            let execute = if user { user_rights } else { rights & 4 != 0 };
            if need & 3 & !rights != 0 || need & 4 != 0 && !execute {
                return Err(violation(r, guest, need, rights, user_rights, purpose));
            }
            if flags {
                let (last, entry) = *used.last().unwrap();
                if need & 2 != 0 && entry & 0x200 == 0 {
                    if r.logging {
                        if m.log_index > 511 {
                            return Err(Outcome::LogFull);
                        }
                        m.store(m.log + m.log_index * 8, guest & !0xfff);
                        m.log_index = m.log_index.wrapping_sub(1) & 0xffff;
                    }
                    m.or_byte(last + 1, 2);
                }
                for (at, _) in used {
                    m.or_byte(at + 1, 1);
                }
            }
            let within = (1 << shift) - 1;
            return Ok(entry & 0x3fff_ffff_f000 & !within | guest & within);
        }
        table = entry & 0x3fff_ffff_f000;
    }
    unreachable!()
}

fn violation(r: &Registers, guest: u64, need: u64, rights: u64, user_execute: bool, purpose: Purpose) -> Outcome {
    let mut q = need | rights << 3 | 0x80;
    if r.mode_based && user_execute {
        q |= 0x40;
    }
    if let Purpose::Page { user, writable, executable } = purpose {
        q |= 0x100 | u64::from(user) << 9 | u64::from(writable) << 10 | u64::from(!executable) << 11;
    }
    Outcome::Violation { qualification: q, guest }
}

/// The access to an entry of the guest's tables.
fn reach(m: &mut Memory, r: &Registers, guest: u64) -> Walk<u64> {
    let as_write = r.eptp.is_some_and(|p| p & 0x40 != 0);
    ept(m, r, guest, if as_write { 3 } else { 1 }, Purpose::Table)
}

/// Sets flags of an entry of the guest's tables.
fn mark(m: &mut Memory, r: &Registers, guest: u64, entry: u64, bits: u8) -> Walk<()> {
    if entry & u64::from(bits) == u64::from(bits) {
        return Ok(());
    }
    let host = ept(m, r, guest, 3, Purpose::Table)?;
    m.or_byte(host, bits);
    Ok(())
}

/// What an access to one address comes to.
pub fn access(m: &mut Memory, r: &Registers, linear: u64, kind: Kind, user: bool) -> Outcome {
    match walk(m, r, linear, kind, user) {
        Ok(host) if host >= MEMORY => Outcome::NoMemory,
        Ok(host) => Outcome::Host(host),
        Err(outcome) => outcome,
    }
}

fn walk(m: &mut Memory, r: &Registers, linear: u64, kind: Kind, user: bool) -> Walk<u64> {
    let need = match kind {
        Kind::Read => 1,
        Kind::Write => 2,
        Kind::Fetch => 4,
    };
    let fault = |code: u32| {
        let reported = r.nxe && r.paging != Paging::ThirtyTwo || r.smep;
        let fetch = kind == Kind::Fetch && reported;
        Err(Outcome::PageFault(
            code | u32::from(kind == Kind::Write) << 1 | u32::from(user) << 2 | u32::from(fetch) << 4,
        ))
    };
    let shifts: &[u32] = match r.paging {
        Paging::Off => {
            let purpose = Purpose::Page { user: true, writable: true, executable: true };
            return ept(m, r, linear & 0xffff_ffff, need, purpose);
        }
        Paging::ThirtyTwo => &[22, 12],
        Paging::Pae => &[21, 12],
        Paging::Four => &[39, 30, 21, 12],
        Paging::Five => &[48, 39, 30, 21, 12],
    };
    match r.paging {
        Paging::Four if !matches!(linear >> 47, 0 | 0x1_ffff) => return Err(Outcome::NotCanonical),
        Paging::Five if !matches!(linear >> 56, 0 | 0xff) => return Err(Outcome::NotCanonical),
        _ => {}
    }
    let narrow = r.paging == Paging::ThirtyTwo;
    let mut table = match r.paging {
        Paging::ThirtyTwo => r.cr3 & 0xffff_f000,
        Paging::Pae => {
            let pdpte = r.pdptes[(linear >> 30 & 3) as usize];
            if pdpte & 1 == 0 {
                return fault(0);
            }
            pdpte & 0x3fff_ffff_f000
        }
        _ => r.cr3 & 0x3fff_ffff_f000,
    };
    let (mut writable, mut user_page, mut executable) = (true, true, true);
    let mut above: Option<(u64, u64)> = None;
    for &shift in shifts {
        let index = linear >> shift & if narrow { 0x3ff } else { 0x1ff };
        let at = table + index * if narrow { 4 } else { 8 };
        let host = reach(m, r, at)?;
        // The table must be there before anything is set.
        let word = m.load(host & !7)?;
        if let Some((guest, entry)) = above {
            mark(m, r, guest, entry, 0x20)?;
        }
        // Marking may have changed this very entry: tables can share pages.
        let word = if host < TABLES { m.load(host & !7)? } else { word };
        let entry = if narrow { (word >> ((host & 4) * 8)) & 0xffff_ffff } else { word };
        if entry & 1 == 0 {
            return fault(0);
        }
        let large = entry & 0x80 != 0
            && match shift {
                30 => true,
                22 => r.pse,
                21 => true,
                _ => false,
            };
        let leaf = shift == 12 || large;
        let mut reserved = 0;
        if narrow {
            if large {
                reserved |= 1 << 21;
            }
        } else {
            reserved |= 0x000f_c000_0000_0000;
            if r.paging == Paging::Pae {
                reserved |= 0x7ff0_0000_0000_0000;
            }
            if !r.nxe {
                reserved |= 1 << 63;
            }
            if shift >= 39 {
                reserved |= 0x80;
            }
            if leaf && shift == 30 {
                reserved |= 0x3fff_e000;
            }
            if leaf && shift == 21 {
                reserved |= 0x1f_e000;
            }
        }
        if entry & reserved != 0 {
            return fault(9);
        }
        writable &= entry & 2 != 0;
        user_page &= entry & 4 != 0;
        executable &= narrow || entry >> 63 == 0;
        if !leaf {
            above = Some((at, entry));
            table = entry & if narrow { 0xffff_f000 } else { 0x3fff_ffff_f000 };
            continue;
        }
        let long = matches!(r.paging, Paging::Four | Paging::Five);
        let rights = if user_page { r.pkru } else { r.pkrs };
        let denied = rights.filter(|_| long).map_or(0, |rights| rights >> ((entry >> 59 & 15) * 2) & 3);
        let by_key =
            kind != Kind::Fetch && (denied & 1 != 0 || kind == Kind::Write && denied & 2 != 0 && (user || r.wp));
        let allowed = match (user, kind) {
            (true, Kind::Read) => user_page,
            (true, Kind::Write) => user_page && writable,
            (true, Kind::Fetch) => user_page && executable,
            (false, Kind::Fetch) => executable && !(user_page && r.smep),
            (false, _) if user_page && r.smap && !r.ac => false,
            (false, Kind::Read) => true,
            (false, Kind::Write) => writable || !r.wp,
        };
        if by_key || !allowed {
            return fault(1 | u32::from(by_key) << 5);
        }
        mark(m, r, at, entry, if kind == Kind::Write { 0x60 } else { 0x20 })?;
        let within = (1_u64 << shift) - 1;
        let base = if narrow && large {
            entry & 0xffc0_0000 | (entry >> 13 & 0xff) << 32
        } else if narrow {
            entry & 0xffff_f000
        } else {
            entry & 0x3fff_ffff_f000 & !within
        };
        let purpose = Purpose::Page { user: user_page, writable, executable };
        return ept(m, r, base | linear & within, need, purpose);
    }
    unreachable!()
}
