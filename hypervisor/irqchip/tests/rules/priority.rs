use super::{enabled, read, write};
use irqchip::lapic::{Acceptance, Effect, Eoi};
use irqchip::{PvEoiFlag, TriggerMode};

#[test]
fn the_highest_vector_goes_first_and_nests_by_class() {
    let mut apic = enabled(0);
    for vector in [0x31, 0x45, 0x42] {
        apic.accept_fixed(vector, TriggerMode::Edge);
    }
    assert_eq!(apic.highest_deliverable(), Some(0x45));
    apic.acknowledge(0x45);
    assert_eq!(apic.ppr(), 0x40);
    assert_eq!(apic.highest_deliverable(), None, "0x42 is of the class in service");
    apic.accept_fixed(0x51, TriggerMode::Edge);
    assert_eq!(apic.highest_deliverable(), Some(0x51));
    apic.acknowledge(0x51);
    write(&mut apic, 0xb0, 0);
    assert!(!apic.in_service(0x51) && apic.in_service(0x45));
    write(&mut apic, 0xb0, 0);
    assert_eq!(apic.highest_deliverable(), Some(0x42));
}

#[test]
fn the_task_priority_holds_back_its_class_and_below() {
    let mut apic = enabled(0);
    apic.accept_fixed(0x45, TriggerMode::Edge);
    apic.set_cr8(4);
    assert_eq!(apic.highest_deliverable(), None);
    assert_eq!(apic.tpr_threshold(), 4);
    apic.set_cr8(3);
    assert_eq!(apic.highest_deliverable(), Some(0x45));
    assert_eq!(apic.tpr_threshold(), 0);
    assert_eq!((apic.tpr(), apic.cr8()), (0x30, 3));
}

#[test]
fn processor_priority_keeps_the_subclass_of_the_task_priority_only() {
    let mut apic = enabled(0);
    apic.set_tpr(0x47);
    assert_eq!(apic.ppr(), 0x47);
    apic.set_tpr(0);
    apic.accept_fixed(0x59, TriggerMode::Edge);
    apic.acknowledge(0x59);
    apic.set_tpr(0x53);
    assert_eq!(apic.ppr(), 0x53, "the same class: the task priority");
    apic.set_tpr(0x47);
    assert_eq!(apic.ppr(), 0x50);
}

#[test]
fn arbitration_priority_follows_the_manuals_formula() {
    let mut apic = enabled(0);
    apic.set_tpr(0x35);
    assert_eq!(read(&mut apic, 0x90), 0x35);
    apic.accept_fixed(0x62, TriggerMode::Edge);
    assert_eq!(read(&mut apic, 0x90), 0x60);
}

#[test]
fn an_interrupt_that_is_requested_already_coalesces_and_is_counted_once() {
    let mut apic = enabled(0);
    assert_eq!(apic.accept_fixed(0x60, TriggerMode::Edge), Acceptance::Accepted);
    assert_eq!(apic.accept_fixed(0x60, TriggerMode::Edge), Acceptance::Coalesced);
    assert_eq!(apic.accepted_by_vector()[0x60], 1);
    apic.acknowledge(0x60);
    assert_eq!(apic.accept_fixed(0x60, TriggerMode::Edge), Acceptance::Accepted);
    assert_eq!(apic.accepted_by_vector()[0x60], 2);
}

#[test]
fn what_was_accepted_stays_deliverable_after_software_disable() {
    let mut apic = enabled(0);
    apic.accept_fixed(0x60, TriggerMode::Edge);
    write(&mut apic, 0xf0, 0xff);
    assert_eq!(apic.highest_deliverable(), Some(0x60));
    assert_eq!(apic.accept_fixed(0x61, TriggerMode::Edge), Acceptance::Refused);
}

#[test]
fn the_end_of_an_interrupt_tells_its_trigger_mode() {
    let mut apic = enabled(0);
    for (vector, trigger) in [(0x60, TriggerMode::Level), (0x60, TriggerMode::Edge)] {
        apic.accept_fixed(vector, trigger);
        apic.acknowledge(vector);
        assert_eq!(write(&mut apic, 0xb0, 0), Effect::Eoi(Eoi { vector, trigger }));
    }
    assert_eq!(write(&mut apic, 0xb0, 0), Effect::None, "nothing in service");
}

#[test]
fn the_paravirtual_end_is_offered_only_when_it_hides_nothing() {
    let mut apic = enabled(0);
    apic.accept_fixed(0x60, TriggerMode::Edge);
    assert_eq!(apic.pv_eoi_candidate(), None, "requested");
    apic.acknowledge(0x60);
    assert!(apic.pv_eoi_can_set(0x60));
    apic.accept_fixed(0x70, TriggerMode::Edge);
    assert_eq!(apic.pv_eoi_candidate(), None, "another one waits");
    apic.acknowledge(0x70);
    assert_eq!(apic.pv_eoi_candidate(), None, "nested");
    let mut apic = enabled(0);
    apic.accept_fixed(0x60, TriggerMode::Level);
    apic.acknowledge(0x60);
    assert_eq!(apic.pv_eoi_candidate(), None, "level");
}

#[test]
fn the_paravirtual_end_ends_the_interrupt_if_the_guest_cleared_the_flag() {
    let mut apic = enabled(0);
    apic.accept_fixed(0x60, TriggerMode::Edge);
    apic.acknowledge(0x60);
    apic.pv_eoi_set();
    assert_eq!(apic.pv_eoi_clear(PvEoiFlag::StillSet), None);
    assert!(apic.in_service(0x60) && !apic.pv_eoi_pending());
    assert_eq!(apic.pv_eoi_clear(PvEoiFlag::Cleared), None, "was not pending");
    apic.pv_eoi_set();
    let eoi = apic.pv_eoi_clear(PvEoiFlag::Cleared);
    assert_eq!(eoi.map(|eoi| eoi.vector), Some(0x60));
    assert!(!apic.in_service(0x60));
}
