//! `docs/vmx.md`, made from the tables of controls, fields, exit reasons, errors and rules.
//!
//! `GLASSVISOR_BLESS=1 cargo test -p silicon-x86 --lib docs_vmx_md` writes it anew.

use std::fmt::Write;
use std::path::Path;

use x86_defs::vmx::{CONTROLS, Control, ExitReason, Field, Group, InstructionError, Kind, Width};

use super::capability::{self, has_control, has_field};
use super::rules::{AREAS, Answer};
use crate::model::Model;

const HEAD: &str = "\
# VMX of the modelled processor

*Made from the tables in `silicon/defs/src/vmx` and `silicon/x86/src/vmx`; do not edit. After a change to them:
`GLASSVISOR_BLESS=1 cargo test -p silicon-x86 --lib docs_vmx_md`.*

The user of VMX is the hypervisor above `silicon`. Guests see no VMX: their VMX instructions exit. What is said to be there
here is what the capability MSRs of the default CPU model offer; a test names, for each control, a test of what it does
(`silicon/x86/tests/vmx/capability.rs`).

How failures reach the user:

| the manual | `silicon_x86` |
|---|---|
| VMfailInvalid | `EntryFailure::FailInvalid` of `vmlaunch` and `vmresume`, `VmFail::Invalid` of all others |
| VMfailValid(*n*) | `EntryFailure::FailValid`, `VmFail::Valid`; the number is in the VM-instruction error field too |
| VM-entry failure | `EntryFailure::Exit`; exit reason with bit 31 and exit qualification are in their fields |
| VMX abort | `VmxAbort` of `complete_exit`; the number is the VMX-abort indicator of the VMCS |

VMXON, VMXOFF and VMPTRST have no counterpart: a processor is always in VMX operation, and a VMCS is a Rust value that
VMPTRLD takes over and VMCLEAR gives back, so nothing can be wrong with its address.
";

/// The group's name in headings.
const fn title(group: Group) -> &'static str {
    match group {
        Group::Pin => "Pin-based VM-execution controls",
        Group::Primary => "Primary processor-based VM-execution controls",
        Group::Secondary => "Secondary processor-based VM-execution controls",
        Group::Tertiary => "Tertiary processor-based VM-execution controls",
        Group::Exit => "Primary VM-exit controls",
        Group::SecondaryExit => "Secondary VM-exit controls",
        Group::Entry => "VM-entry controls",
        Group::VmFunction => "VM-function controls",
    }
}

/// Why a VM-exit of this reason can occur; `None`: it cannot, as the processor lacks what causes it.
fn occurs(model: &Model, reason: ExitReason) -> Option<String> {
    let needs = |group, bit| {
        let control = Control::at(group, bit)?;
        has_control(model, group, bit).then(|| format!("\"{}\"", control.name))
    };
    match reason {
        ExitReason::IoSmi
        | ExitReason::OtherSmi
        | ExitReason::Rsm
        | ExitReason::EntryFailureMachineCheck
        | ExitReason::Getsec
        | ExitReason::Encls => None,
        ExitReason::ExternalInterrupt => needs(Group::Pin, 0),
        ExitReason::PreemptionTimer => needs(Group::Pin, 6),
        ExitReason::InterruptWindow => needs(Group::Primary, 2),
        ExitReason::Hlt => needs(Group::Primary, 7),
        ExitReason::Invlpg | ExitReason::Invpcid => needs(Group::Primary, 9),
        ExitReason::Mwait => needs(Group::Primary, 10),
        ExitReason::Rdpmc => needs(Group::Primary, 11),
        ExitReason::Rdtsc | ExitReason::Rdtscp => needs(Group::Primary, 12),
        ExitReason::TprBelowThreshold => needs(Group::Primary, 21),
        ExitReason::NmiWindow => needs(Group::Primary, 22),
        ExitReason::MovDr => needs(Group::Primary, 23),
        ExitReason::IoInstruction => Some([needs(Group::Primary, 24)?, needs(Group::Primary, 25)?].join(", ")),
        ExitReason::MonitorTrapFlag => needs(Group::Primary, 27),
        ExitReason::Rdmsr | ExitReason::Wrmsr => {
            needs(Group::Primary, 28).map(|c| format!("bit in the bitmap, or no {c}"))
        }
        ExitReason::Monitor => needs(Group::Primary, 29),
        ExitReason::Pause => Some([needs(Group::Primary, 30)?, needs(Group::Secondary, 10)?].join(", ")),
        ExitReason::ApicAccess => needs(Group::Secondary, 0),
        ExitReason::EptViolation | ExitReason::EptMisconfiguration => needs(Group::Secondary, 1),
        ExitReason::GdtrOrIdtrAccess | ExitReason::LdtrOrTrAccess => needs(Group::Secondary, 2),
        ExitReason::WbinvdOrWbnoinvd => needs(Group::Secondary, 6),
        ExitReason::VirtualizedEoi => needs(Group::Secondary, 9),
        ExitReason::ApicWrite => Some([needs(Group::Secondary, 8)?, needs(Group::Secondary, 9)?].join(", ")),
        ExitReason::Rdrand => needs(Group::Secondary, 11),
        ExitReason::Vmfunc => needs(Group::Secondary, 13),
        ExitReason::Rdseed => needs(Group::Secondary, 16),
        ExitReason::PageModificationLogFull => needs(Group::Secondary, 17),
        ExitReason::Xsaves | ExitReason::Xrstors => needs(Group::Secondary, 20),
        ExitReason::Umwait | ExitReason::Tpause => needs(Group::Secondary, 26),
        ExitReason::ExceptionOrNmi => Some("exception bitmap, \"NMI exiting\"".into()),
        ExitReason::ControlRegisterAccess => Some("guest/host masks, CR3 and CR8 exiting".into()),
        ExitReason::EntryFailureGuestState | ExitReason::EntryFailureMsrLoading => Some("VM-entry".into()),
        ExitReason::Sipi => Some("activity state wait-for-SIPI".into()),
        ExitReason::Xsetbv => Some("always, with CR4.OSXSAVE".into()),
        _ => Some("always".into()),
    }
}

fn controls(out: &mut String, model: &Model) {
    for &group in Group::ALL {
        let required = match group {
            Group::Pin => capability::PIN.zero,
            Group::Primary => capability::PRIMARY.zero,
            Group::Exit => capability::EXIT.zero,
            Group::Entry => capability::ENTRY.zero,
            _ => 0,
        };
        let _ = writeln!(out, "\n### {}\n", title(group));
        if required != 0 {
            let _ = writeln!(out, "Bits that must be one: {required:#x}.\n");
        }
        out.push_str("| bit | control | |\n|---:|---|---|\n");
        for control in CONTROLS.iter().filter(|c| c.group == group) {
            let there = if has_control(model, group, control.bit) { "yes" } else { "no" };
            let _ = writeln!(out, "| {} | {} | {there} |", control.bit, control.name);
        }
    }
}

fn fields(out: &mut String, model: &Model) {
    out.push_str("\n## VMCS fields\n\nA field that is not there answers VMREAD and VMWRITE with VMfailValid(12).\n\n");
    out.push_str("| encoding | field | bits | kind | |\n|---|---|---|---|---|\n");
    let mut all: Vec<Field> = Field::ALL.to_vec();
    all.sort_by_key(|f| f.encoding());
    for field in all {
        let width = match field.width() {
            Width::Bits16 => "16",
            Width::Bits32 => "32",
            Width::Bits64 => "64",
            Width::Natural => "natural",
        };
        let kind = match field.kind() {
            Kind::Control => "control",
            Kind::ReadOnlyData => "exit information",
            Kind::GuestState => "guest state",
            Kind::HostState => "host state",
        };
        let there = if has_field(model, field) {
            "yes".to_owned()
        } else {
            let needs: Vec<_> = field
                .needs()
                .iter()
                .filter_map(|&(g, bit)| Control::at(g, bit))
                .map(|c| format!("\"{}\"", c.name))
                .collect();
            if needs.is_empty() { "no".into() } else { format!("no: needs {}", needs.join(" or ")) }
        };
        let _ = writeln!(out, "| {:#06x} | {} | {width} | {kind} | {there} |", field.encoding(), field.name());
    }
}

fn text(model: &Model) -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Controls\n");
    controls(&mut out, model);
    fields(&mut out, model);
    out.push_str("\n## Exit reasons\n\n| number | reason | cause |\n|---:|---|---|\n");
    for &reason in ExitReason::ALL {
        let cause = occurs(model, reason).unwrap_or_else(|| "does not occur".into());
        let _ = writeln!(out, "| {} | {} | {cause} |", reason as u16, reason.name());
    }
    out.push_str("\n## VM-instruction errors\n\n| number | error | |\n|---:|---|---|\n");
    for &error in InstructionError::ALL {
        use InstructionError as E;
        let source = match error {
            E::VmlaunchNonClear => "`vmlaunch`",
            E::VmresumeNonLaunched => "`vmresume`",
            E::EntryInvalidControls | E::EntryInvalidHostState => "`vmlaunch`, `vmresume`",
            E::VmptrldIncorrectRevision => "`vmptrld_checked`",
            E::UnsupportedComponent => "`vmread_encoding`, `vmwrite_encoding`",
            E::InvalidOperandToInveptInvvpid => "`invept`, `invvpid`",
            _ => "does not occur",
        };
        let _ = writeln!(out, "| {} | {} | {source} |", error.number(), error.text());
    }
    out.push_str("\n## Rules of VM-entry\n\nEach is broken once by a test, which expects the answer given here.\n");
    for (area, rules) in AREAS {
        let _ = writeln!(out, "\n### {area}\n\n| rule | answer |\n|---|---|");
        for rule in *rules {
            let answer = match rule.answer {
                Answer::Fail(error) => format!("VMfailValid({})", error.number()),
                Answer::Exit(0) => "exit 33".to_owned(),
                Answer::Exit(qualification) => format!("exit 33, qualification {qualification}"),
            };
            let _ = writeln!(out, "| {} | {answer} |", rule.words);
        }
    }
    out.push_str("\n### MSR loading\n\nExit 34; the qualification is the number of the entry. An entry fails that names FS.base, \
        GS.base, an x2APIC register or an MSR that the processor does not load this way, that has reserved bits set, or \
        whose value WRMSR would refuse.\n");
    out
}

#[test]
fn docs_vmx_md_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vmx.md");
    let text = text(&Model::default());
    if std::env::var_os("GLASSVISOR_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stale = std::fs::read_to_string(&path).unwrap_or_default() != text;
    assert!(!stale, "docs/vmx.md is stale: GLASSVISOR_BLESS=1 cargo test -p silicon-x86 --lib docs_vmx_md");
}

#[test]
fn a_reason_that_does_not_occur_has_no_control_and_one_that_does_has() {
    let model = Model::default();
    assert_eq!(occurs(&model, ExitReason::Umwait), None);
    assert_eq!(occurs(&model, ExitReason::VirtualizedEoi).as_deref(), Some("\"virtual-interrupt delivery\""));
}
