//! The capability MSRs say exactly what is there: each control that they offer has a test of what it does, and VM-entry
//! refuses each that they do not.

use silicon_x86::model::Model;
use silicon_x86::vmx::EntryFailure;
use silicon_x86::vmx::capability;
use x86_defs::vmx::{CONTROLS, Control, Field, Group, InstructionError};

use crate::guest::Guest;

/// The tests of what a control does.
const TESTED_BY: &[(Group, &str, &str)] = &[
    (
        Group::Pin,
        "external-interrupt exiting",
        "an_external_interrupt_exits_and_is_acknowledged_if_the_control_says_so",
    ),
    (Group::Pin, "NMI exiting", "an_nmi_exits_or_is_the_guests_and_blocks"),
    (Group::Pin, "virtual NMIs", "with_virtual_nmis_the_guests_blocking_does_not_hold_off_the_hosts_nmi"),
    (Group::Pin, "activate VMX-preemption timer", "the_preemption_timer_exits_when_it_has_run_down"),
    (Group::Pin, "process posted interrupts", "the_notification_vector_delivers_what_is_posted_without_an_exit"),
    (Group::Primary, "interrupt-window exiting", "the_interrupt_window_opens_after_the_shadow_of_sti"),
    (Group::Primary, "use TSC offsetting", "the_guests_tsc_is_offset_and_scaled"),
    (Group::Primary, "HLT exiting", "hlt_exits_or_makes_the_guest_inactive"),
    (Group::Primary, "INVLPG exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (
        Group::Primary,
        "MWAIT exiting",
        "monitor_and_mwait_are_undefined_without_the_feature_whatever_their_controls_say",
    ),
    (Group::Primary, "RDPMC exiting", "rdpmc_exits_or_is_a_fault_as_there_is_no_counter"),
    (Group::Primary, "RDTSC exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (Group::Primary, "CR3-load exiting", "cr3_targets_do_not_exit"),
    (Group::Primary, "CR3-store exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (Group::Primary, "CR8-load exiting", "cr8_has_four_bits_and_exits_where_asked"),
    (Group::Primary, "CR8-store exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (Group::Primary, "use TPR shadow", "cr8_is_the_upper_half_of_the_virtual_tpr"),
    (Group::Primary, "NMI-window exiting", "the_nmi_window_opens_with_iret"),
    (Group::Primary, "MOV-DR exiting", "mov_dr_exits_before_the_checks_of_privilege_and_debug_extensions"),
    (Group::Primary, "unconditional I/O exiting", "ports_exit_unconditionally_or_by_bitmap"),
    (Group::Primary, "use I/O bitmaps", "ports_exit_unconditionally_or_by_bitmap"),
    (Group::Primary, "monitor trap flag", "the_monitor_trap_follows_one_instruction"),
    (Group::Primary, "use MSR bitmaps", "msrs_exit_without_a_bitmap_and_by_bit_with_one"),
    (
        Group::Primary,
        "MONITOR exiting",
        "monitor_and_mwait_are_undefined_without_the_feature_whatever_their_controls_say",
    ),
    (Group::Primary, "PAUSE exiting", "pause_loops_of_user_code_do_not_exit_unless_every_pause_does"),
    (Group::Primary, "activate secondary controls", "secondary_controls_count_only_when_activated"),
    (Group::Secondary, "virtualize APIC accesses", "without_a_tpr_shadow_every_access_to_the_apic_access_page_exits"),
    (Group::Secondary, "enable EPT", "an_ept_violation_says_what_was_tried_and_where"),
    (Group::Secondary, "descriptor-table exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (Group::Secondary, "enable RDTSCP", "rdtscp_and_invpcid_are_undefined_without_their_controls"),
    (Group::Secondary, "virtualize x2APIC mode", "virtual_x2apic_mode_writes_tpr_eoi_and_self_ipi"),
    (Group::Secondary, "enable VPID", "translations_of_each_vpid_are_its_own"),
    (Group::Secondary, "WBINVD exiting", "secondary_controls_count_only_when_activated"),
    (Group::Secondary, "unrestricted guest", "an_unrestricted_guest_runs_in_real_mode"),
    (
        Group::Secondary,
        "APIC-register virtualization",
        "apic_register_virtualization_reads_and_writes_the_virtual_apic_page",
    ),
    (Group::Secondary, "virtual-interrupt delivery", "a_requested_interrupt_is_delivered_when_interrupts_open"),
    (Group::Secondary, "PAUSE-loop exiting", "a_tight_pause_loop_at_privilege_level_0_exits_after_the_window"),
    (Group::Secondary, "RDRAND exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (Group::Secondary, "enable INVPCID", "rdtscp_and_invpcid_are_undefined_without_their_controls"),
    (Group::Secondary, "enable VM functions", "what_vm_functions_do_not_offer_exits_or_is_undefined"),
    (Group::Secondary, "RDSEED exiting", "an_instruction_exits_with_its_control_and_completes_without_it"),
    (Group::Secondary, "use TSC scaling", "the_guests_tsc_is_offset_and_scaled"),
    (
        Group::Exit,
        "save debug controls",
        "the_preemption_timer_debug_controls_pat_and_efer_are_saved_and_loaded_as_asked",
    ),
    (Group::Exit, "host address-space size", "a_vm_exit_stores_whether_the_guest_was_in_ia32e_mode"),
    (
        Group::Exit,
        "acknowledge interrupt on exit",
        "an_external_interrupt_exits_and_is_acknowledged_if_the_control_says_so",
    ),
    (Group::Exit, "save IA32_PAT", "the_preemption_timer_debug_controls_pat_and_efer_are_saved_and_loaded_as_asked"),
    (Group::Exit, "load IA32_PAT", "host_state_that_is_loaded_is_checked"),
    (Group::Exit, "save IA32_EFER", "the_preemption_timer_debug_controls_pat_and_efer_are_saved_and_loaded_as_asked"),
    (Group::Exit, "load IA32_EFER", "host_state_that_is_loaded_is_checked"),
    (Group::Exit, "save VMX-preemption timer value", "the_value_of_the_preemption_timer_is_saved"),
    (Group::Entry, "load debug controls", "debug_controls_pat_and_efer_that_are_not_loaded_stay_what_the_exit_left"),
    (Group::Entry, "IA-32e mode guest", "a_vm_exit_stores_whether_the_guest_was_in_ia32e_mode"),
    (Group::Entry, "load IA32_PAT", "the_preemption_timer_debug_controls_pat_and_efer_are_saved_and_loaded_as_asked"),
    (Group::Entry, "load IA32_EFER", "debug_controls_pat_and_efer_that_are_not_loaded_stay_what_the_exit_left"),
    (Group::VmFunction, "EPTP switching", "eptp_switching_takes_an_entry_of_the_list_without_an_exit"),
    (Group::Exit, "load PKRS", "pkrs_is_saved_and_loaded_as_asked"),
    (Group::Entry, "load PKRS", "pkrs_is_saved_and_loaded_as_asked"),
    (Group::Secondary, "enable PML", "modified_pages_are_logged_once_and_a_full_log_exits_before_the_access"),
    (Group::Secondary, "enable XSAVES/XRSTORS", "the_supervisors_forms_need_the_control_and_cpl_0"),
    (
        Group::Secondary,
        "mode-based execute control for EPT",
        "mode_based_execute_control_tells_user_from_supervisor_pages",
    ),
    (Group::Secondary, "EPT-violation #VE", "an_ept_violation_becomes_an_exception_of_the_guest"),
];

const SOURCES: &[&str] = &[
    include_str!("apic.rs"),
    include_str!("capability.rs"),
    include_str!("events.rs"),
    include_str!("instructions.rs"),
    include_str!("posted.rs"),
    include_str!("registers.rs"),
    include_str!("timing.rs"),
    include_str!("virtualization_exceptions.rs"),
    include_str!("vm_functions.rs"),
    include_str!("../../src/exec/sse/xsave/tests.rs"),
    include_str!("../../src/mem/tests/extended.rs"),
];

/// A model with every feature that a control depends on.
fn full_model() -> Model {
    Model::parse("glassvisor-v3,+pks").expect("the features are known")
}

fn test_of(control: &Control) -> Option<&'static str> {
    TESTED_BY.iter().find(|t| t.0 == control.group && t.1 == control.name).map(|t| t.2)
}

#[test]
fn each_control_that_is_offered_names_a_test_that_exists() {
    let model = full_model();
    for control in CONTROLS.iter().filter(|c| capability::has_control(&model, c.group, c.bit)) {
        let Some(test) = test_of(control) else { panic!("{:?} {} has no test", control.group, control.name) };
        let there = SOURCES.iter().any(|s| s.contains(&format!("fn {test}(")));
        assert!(there, "{}: no test is called {test}", control.name);
    }
    for (group, name, _) in TESTED_BY {
        assert!(CONTROLS.iter().any(|c| c.group == *group && c.name == *name), "{name} is no control");
    }
}

#[test]
fn each_bit_that_is_offered_is_a_control_or_reserved_to_one() {
    let model = full_model();
    for (group, required) in [
        (Group::Pin, capability::PIN.zero),
        (Group::Primary, capability::PRIMARY.zero),
        (Group::Secondary, 0),
        (Group::Exit, capability::EXIT.zero),
        (Group::Entry, capability::ENTRY.zero),
    ] {
        for bit in 0..32 {
            let offered = capability::has_control(&model, group, bit);
            let known = Control::at(group, bit).is_some() || required >> bit & 1 != 0;
            assert!(!offered || known, "{group:?} bit {bit}");
        }
    }
}

#[test]
fn vm_entry_refuses_each_control_bit_that_is_not_offered() {
    let model = Model::default();
    for group in [Group::Pin, Group::Primary, Group::Secondary, Group::Exit, Group::Entry] {
        for bit in (0..32).filter(|&bit| !capability::has_control(&model, group, bit)) {
            let mut guest = Guest::new(&[0xf4]);
            guest.set_bits(group.field(), 1 << bit);
            match guest.core().vmlaunch() {
                Err(EntryFailure::FailValid { error: InstructionError::EntryInvalidControls, rule }) => {
                    assert!(rule.contains("controls: a reserved bit"), "{group:?} bit {bit}: {rule}");
                }
                other => panic!("{group:?} bit {bit}: {other:?}"),
            }
        }
    }
}

#[test]
fn vm_entry_refuses_each_required_bit_that_is_clear() {
    for (group, required) in [
        (Group::Pin, capability::PIN.zero),
        (Group::Primary, capability::PRIMARY.zero),
        (Group::Exit, capability::EXIT.zero),
        (Group::Entry, capability::ENTRY.zero),
    ] {
        for bit in (0..32).filter(|bit| required >> bit & 1 != 0) {
            let mut guest = Guest::new(&[0xf4]);
            guest.clear_bits(group.field(), 1 << bit);
            assert!(guest.core().vmlaunch().is_err(), "{group:?} bit {bit}");
        }
    }
}

#[test]
fn host_state_that_is_loaded_is_checked() {
    use x86_defs::vmx::controls::exit;
    for (control, field) in [(exit::LOAD_PAT, Field::HostPat), (exit::LOAD_EFER, Field::HostEfer)] {
        let mut guest = Guest::new(&[0xf4]);
        guest.write(field, 2);
        assert!(guest.core().vmlaunch().is_err(), "{field:?}");
        guest.clear_bits(Field::ExitControls, control);
        assert!(guest.core().vmlaunch().is_ok(), "{field:?}");
    }
}
