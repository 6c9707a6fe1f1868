//! Every rule of VM-entry in the manual's words ("VM-Entry Checks", "Loading Guest State"), each broken once in an
//! otherwise valid VMCS. The generated page `docs/vmx.md` lists them.

mod controls;
mod entries;
mod guest_registers;
mod guest_segments;
mod guest_state;
mod host;

use x86_defs::control::{cr0, cr4};
use x86_defs::vmx::controls::{entry, secondary};
use x86_defs::vmx::{ExitReason, Field, InstructionError};

use super::EntryFailure;
use super::testing::guest;
use crate::Core;

/// What VM-entry answers when the rule is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// VMfailValid with this error.
    Fail(InstructionError),
    /// A VM-exit with reason 33 and this qualification.
    Exit(u64),
}

/// VMfailValid(7).
pub const CONTROLS: Answer = Answer::Fail(InstructionError::EntryInvalidControls);
/// VMfailValid(8).
pub const HOST: Answer = Answer::Fail(InstructionError::EntryInvalidHostState);
/// Reason 33, qualification 0.
pub const GUEST: Answer = Answer::Exit(0);

/// One rule.
pub struct Rule {
    /// What must hold.
    pub words: &'static str,
    pub answer: Answer,
    /// Part of what the model says is broken.
    pub says: &'static str,
    /// Breaks it.
    pub violate: fn(&mut Core),
}

macro_rules! rules {
    ($(#[$doc:meta])* $name:ident { $($answer:expr, $words:literal => $says:literal, $violate:expr;)* }) => {
        $(#[$doc])*
        pub const $name: &[super::Rule] = &[$(super::Rule {
            words: $words, answer: $answer, says: $says, violate: $violate,
        },)*];
    };
}
pub(crate) use rules;

/// The areas of the manual, and their rules.
pub const AREAS: &[(&str, &[Rule])] = &[
    ("VM-execution control fields", controls::EXECUTION),
    ("VM-execution control fields: APIC virtualization and posted interrupts", controls::APIC),
    ("VM-execution control fields: EPT, VPID and VM functions", controls::TRANSLATION),
    ("VM-exit control fields", controls::EXIT),
    ("VM-entry control fields", controls::ENTRY),
    ("Host control registers, MSRs, segment and descriptor-table registers", host::RULES),
    ("Guest control registers, debug registers and MSRs", guest_registers::RULES),
    ("Guest segment registers", guest_segments::SELECTORS_AND_BASES),
    ("Guest segment registers: limits and access rights", guest_segments::RIGHTS),
    ("Guest segment registers: virtual-8086 mode", guest_segments::VIRTUAL_8086),
    ("Guest descriptor-table registers", guest_segments::TABLES),
    ("Guest RIP and RFLAGS", guest_state::RIP_AND_RFLAGS),
    ("Guest non-register state", guest_state::NON_REGISTER),
    ("Guest page-directory-pointer-table entries", guest_state::PDPTES),
];

pub fn set(core: &mut Core, changes: &[(Field, u64)]) {
    for &(field, value) in changes {
        core.vmwrite(field, value);
    }
}

pub fn toggle(core: &mut Core, field: Field, bits: impl Into<u64>) {
    let old = core.vmread(field);
    core.vmwrite(field, old ^ bits.into());
}

/// A guest that is not unrestricted.
pub fn restricted(core: &mut Core, changes: &[(Field, u64)]) {
    toggle(core, Field::SecondaryControls, secondary::UNRESTRICTED_GUEST);
    set(core, changes);
}

/// A protected-mode guest without IA-32e mode and paging.
pub fn protected(core: &mut Core) {
    toggle(core, Field::EntryControls, entry::IA32E_MODE_GUEST);
    set(
        core,
        &[
            (Field::GuestCr0, cr0::PE | cr0::NE),
            (Field::GuestCr4, cr4::VMXE),
            (Field::GuestEfer, 0),
            (Field::GuestCsRights, 0xc09b),
        ],
    );
}

/// Real mode, as a processor is after RESET under unrestricted guest.
pub fn real(core: &mut Core) {
    protected(core);
    core.vmwrite(Field::GuestCr0, cr0::NE);
    for (limit, rights) in [
        (Field::GuestEsLimit, Field::GuestEsRights),
        (Field::GuestSsLimit, Field::GuestSsRights),
        (Field::GuestDsLimit, Field::GuestDsRights),
    ] {
        set(core, &[(limit, 0xffff), (rights, 0x93)]);
    }
    set(core, &[(Field::GuestCsLimit, 0xffff), (Field::GuestCsRights, 0x93), (Field::GuestRip, 0xfff0)]);
    core.vmwrite(Field::GuestCsBase, 0xffff_0000);
}

pub fn virtual_8086(core: &mut Core) {
    protected(core);
    set(core, &[(Field::GuestRflags, 0x2_0002), (Field::GuestRip, 0x100)]);
    for i in 0..6_u32 {
        for (base, value) in [(0x800, 0x100), (0x4800, 0xffff), (0x4814, 0xf3), (0x6806, 0x1000)] {
            core.vmwrite(Field::from_encoding(base + i * 2).unwrap().0, value);
        }
    }
}

/// 32-bit paging with PAE.
pub fn pae(core: &mut Core) {
    protected(core);
    set(core, &[(Field::GuestCr0, cr0::PE | cr0::NE | cr0::PG), (Field::GuestCr4, cr4::VMXE | cr4::PAE)]);
}

/// What is wrong with how VM-entry answers a broken rule.
fn verdict(rule: &Rule) -> Result<(), String> {
    let mut core = guest();
    (rule.violate)(&mut core);
    let (got, said) = match core.vmlaunch() {
        Ok(entered) => return Err(format!("it enters: {entered:?}")),
        Err(EntryFailure::FailValid { error, rule }) => {
            if core.vmread(Field::VmInstructionError) != u64::from(error.number()) {
                return Err("the VM-instruction error field differs".into());
            }
            (Answer::Fail(error), rule)
        }
        Err(EntryFailure::Exit { reason: ExitReason::EntryFailureGuestState, rule }) => {
            if core.vmread(Field::ExitReason) != 0x8000_0021 {
                return Err("the exit reason differs".into());
            }
            (Answer::Exit(core.vmread(Field::ExitQualification)), rule)
        }
        Err(other) => return Err(format!("{other:?}")),
    };
    if got != rule.answer || !said.contains(rule.says) {
        return Err(format!("{got:?} for '{said}' instead of {:?} for '{}'", rule.answer, rule.says));
    }
    Ok(())
}

#[test]
fn each_rule_that_is_broken_fails_vm_entry_in_its_way() {
    let mut wrong = Vec::new();
    for (area, rules) in AREAS {
        for rule in *rules {
            if let Err(why) = verdict(rule) {
                wrong.push(format!("{area}: {}: {why}", rule.words));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_rule_is_listed_twice() {
    let mut seen = std::collections::HashSet::new();
    for rule in AREAS.iter().flat_map(|(_, rules)| *rules) {
        assert!(seen.insert(rule.words), "{}", rule.words);
    }
}
