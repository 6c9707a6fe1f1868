//! What is fuzzed: each target takes any bytes, and must come back, without a panic and without a change of memory that
//! is not the guest's.

use silicon_x86::code::decode_one;
use silicon_x86::model::Model;
use silicon_x86::op::CodeSize;
use x86_defs::control::{cr0, cr4, efer};
use x86_defs::vmx::Field;

use crate::input::Input;
use crate::machine::{GUEST_LEN, Machine, vmcs};

/// All that can be had.
const MODEL: &str = "glassvisor-v3,+pku,+pks,+la57,+lam,+monitor";
const CODE: u64 = 0x1_0000;

/// A target: its name, and the code.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: [Target; 4] =
    [("decoder", decoder), ("interpreter", interpreter), ("vmcs", vmcs_contents), ("page_tables", page_tables)];

thread_local! {
    static PARSED: Model = Model::parse(MODEL).expect("a model that exists");
}

/// Any bytes as instructions of each mode.
pub fn decoder(data: &[u8]) {
    let mut input = Input(data);
    let size = match input.u8() % 3 {
        0 => CodeSize::Bits16,
        1 => CodeSize::Bits32,
        _ => CodeSize::Bits64,
    };
    let bytes = input.take(15);
    if bytes.is_empty() {
        return;
    }
    PARSED.with(|model| {
        for op in decode_one(bytes, size, model) {
            assert!(op.len as usize <= 15 && op.base < 32 && op.index < 32, "{op:?} of {bytes:02x?}");
        }
    });
}

/// Register state, and code at the guest's RIP: the rest of the bytes.
pub fn interpreter(data: &[u8]) {
    let mut input = Input(data);
    let mode = input.u8();
    let mut machine = Machine::new(MODEL, |model| {
        let mut vmcs = vmcs(model);
        let entry = vmcs.get(Field::EntryControls);
        match mode % 4 {
            0 => {}
            1 => {
                // Protected mode without paging, 32-bit code.
                vmcs.set(Field::GuestCr0, cr0::PE | cr0::ET | cr0::NE);
                vmcs.set(Field::GuestCsRights, 0xc09b);
                vmcs.set(Field::GuestEfer, 0);
                vmcs.set(Field::EntryControls, entry & !u64::from(x86_defs::vmx::controls::entry::IA32E_MODE_GUEST));
            }
            2 => {
                // Real mode.
                vmcs.set(Field::GuestCr0, cr0::ET | cr0::NE);
                vmcs.set(Field::GuestEfer, 0);
                vmcs.set(Field::EntryControls, entry & !u64::from(x86_defs::vmx::controls::entry::IA32E_MODE_GUEST));
                for (selector, base, limit, rights) in [
                    (Field::GuestCsSelector, Field::GuestCsBase, Field::GuestCsLimit, Field::GuestCsRights),
                    (Field::GuestSsSelector, Field::GuestSsBase, Field::GuestSsLimit, Field::GuestSsRights),
                    (Field::GuestDsSelector, Field::GuestDsBase, Field::GuestDsLimit, Field::GuestDsRights),
                    (Field::GuestEsSelector, Field::GuestEsBase, Field::GuestEsLimit, Field::GuestEsRights),
                ] {
                    vmcs.set(selector, 0x1000);
                    vmcs.set(base, CODE);
                    vmcs.set(limit, 0xffff);
                    vmcs.set(rights, 0x93);
                }
                vmcs.set(Field::GuestCsRights, 0x9b);
                vmcs.set(Field::GuestRip, 0);
                vmcs.set(Field::GuestRsp, 0xff00);
            }
            _ => {
                // User mode.
                vmcs.set(Field::GuestCsSelector, 0x33);
                vmcs.set(Field::GuestCsRights, 0xa0fb);
                vmcs.set(Field::GuestSsSelector, 0x2b);
                vmcs.set(Field::GuestSsRights, 0xc0f3);
                let ac = if mode & 0x80 != 0 { cr0::AM } else { 0 };
                vmcs.set(Field::GuestCr0, vmcs.get(Field::GuestCr0) | ac);
            }
        }
        vmcs
    });
    machine.map_all();
    let core = &mut machine.processor.core;
    for i in 0..16 {
        // Small numbers and addresses of the guest's memory are more to the point than others.
        let value = input.u64();
        core.gpr[i] = match value >> 62 {
            0 => value,
            1 => value % GUEST_LEN,
            2 => value & 0xff,
            _ => (value & 0xff).wrapping_neg(),
        };
    }
    core.gpr[4] = if mode % 4 == 2 { 0xff00 } else { 0x1_f000 };
    let flags = input.u64();
    core.set_rflags(flags & 0x24_4dd5 | 2);
    for xmm in &mut core.fpu.xmm {
        *xmm = u128::from(input.u64()) << 64 | u128::from(input.u64() >> (flags & 63));
    }
    core.fpu.mxcsr = input.u64() as u32 & 0xffff;
    core.fpu.fcw = input.u64() as u16;
    core.set_xcr0(7);
    core.cr4 |= cr4::OSXSAVE;
    core.update_mode();
    let (gates, code) = input.0.split_at(input.0.len().min(64));
    machine.write(0x7000, gates);
    machine.write(CODE, code);
    let mut bytes = Input(data);
    machine.run(|| bytes.u64());
}

/// Writes of any value to any field of a VMCS that was good, then VM-entry.
pub fn vmcs_contents(data: &[u8]) {
    let mut input = Input(data);
    let mut machine = Machine::new(MODEL, |model| {
        let mut vmcs = vmcs(model);
        while !input.is_empty() {
            let field = Field::ALL[usize::from(input.u8()) % Field::ALL.len()];
            let how = input.u8();
            let old = vmcs.get(field);
            let value = match how % 4 {
                0 => input.u64(),
                1 => old ^ 1 << (how >> 2),
                2 => u64::from(input.u8()),
                _ => old.wrapping_add(u64::from(how >> 2)),
            };
            vmcs.set(field, value);
        }
        vmcs
    });
    machine.map_all();
    // A few loads, a port, an MSR, HLT.
    machine.write(CODE, &[0x8b, 0x03, 0x89, 0x01, 0xe4, 0x60, 0x0f, 0x32, 0x0f, 0xa2, 0x0f, 0x31, 0xcc, 0xf4]);
    machine.run(|| 0);
}

/// Any contents of paging structures, in each paging mode, under loads, stores and fetches at any address.
pub fn page_tables(data: &[u8]) {
    let mut input = Input(data);
    let how = input.u8();
    let la57 = how % 3 == 0 && how & 0x80 != 0;
    let mut machine = Machine::new(MODEL, |model| {
        let mut vmcs = vmcs(model);
        let entry = vmcs.get(Field::EntryControls) & !u64::from(x86_defs::vmx::controls::entry::IA32E_MODE_GUEST);
        let cr4 = vmcs.get(Field::GuestCr4)
            | if how & 0x10 != 0 { cr4::SMEP | cr4::SMAP } else { 0 }
            | if how & 0x20 != 0 { cr4::PGE } else { 0 }
            | if how & 0x40 != 0 { cr4::PSE } else { 0 }
            | if how & 8 != 0 { cr4::PKE | cr4::PKS } else { 0 }
            | if how & 4 != 0 { cr4::LAM_SUP } else { 0 }
            | if la57 { cr4::LA57 } else { 0 };
        vmcs.set(Field::GuestCr4, cr4);
        if how % 3 != 0 {
            vmcs.set(Field::EntryControls, entry);
            vmcs.set(Field::GuestCsRights, 0xc09b);
            vmcs.set(Field::GuestEfer, if how & 0x80 != 0 { efer::NXE } else { 0 });
            vmcs.set(Field::GuestCr4, if how % 3 == 1 { cr4 } else { cr4 & !cr4::PAE });
        }
        // Every exception exits: the guest has no handlers.
        vmcs.set(Field::ExceptionBitmap, 0xffff_ffff);
        vmcs
    });
    if la57 {
        machine.map_all_five_levels();
    } else {
        machine.map_all();
    }
    let accesses: [u64; 6] = std::array::from_fn(|_| input.u64());
    while !input.is_empty() {
        let at = input.u64();
        let entry = input.u64();
        // Tables lead to the guest's memory more often than not.
        let entry = if at & 1 << 63 != 0 { entry } else { entry & 0x8000_0000_0001_ffff };
        machine.write(0x1000 + ((at % 0x4000) & !7), &entry.to_le_bytes());
    }
    let core = &mut machine.processor.core;
    core.gpr[..6].copy_from_slice(&accesses);
    core.set_pkru((accesses[0] >> 32) as u32);
    core.gpr[4] = 0x1_f000;
    // mov [rax], ecx; mov ecx, [rdx]; add [rbx], ecx; xchg [rbp], edi; call rax
    machine.write(CODE, &[0x89, 0x08, 0x8b, 0x0a, 0x01, 0x0b, 0x87, 0x7d, 0x00, 0xff, 0xd0, 0xf4]);
    machine.run(|| 0);
}
