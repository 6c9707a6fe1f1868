use irqchip::pic::{EndedPins, Pic};
use irqchip::{IrqSource, Level, PicPin};

/// Initialised as kernels do: vectors 0x30 and 0x38, all open.
fn pic(icw4: u8) -> Pic {
    let mut pic = Pic::default();
    for (base, vector, wiring) in [(0x20, 0x30, 4), (0xa0, 0x38, 2)] {
        pic.port_write(base, 0x11);
        pic.port_write(base + 1, vector);
        pic.port_write(base + 1, wiring);
        pic.port_write(base + 1, icw4);
        pic.port_write(base + 1, 0);
    }
    pic
}

fn set(pic: &mut Pic, pin: u8, level: Level) {
    pic.set_pin(PicPin::new(pin).unwrap(), IrqSource::Vmm, level);
}

fn pulse(pic: &mut Pic, pin: u8) {
    set(pic, pin, Level::High);
    set(pic, pin, Level::Low);
}

fn take(pic: &mut Pic) -> Option<u8> {
    (pic.output() == Level::High).then(|| pic.acknowledge().0)
}

#[test]
fn lower_inputs_go_first_and_nest() {
    let mut pic = pic(1);
    pulse(&mut pic, 5);
    pulse(&mut pic, 3);
    assert_eq!(take(&mut pic), Some(0x33));
    assert_eq!(take(&mut pic), None, "5 waits for the end of 3");
    pulse(&mut pic, 1);
    assert_eq!(take(&mut pic), Some(0x31));
    assert_eq!(pic.port_write(0x20, 0x20), EndedPins(1 << 1));
    assert_eq!(pic.port_write(0x20, 0x20), EndedPins(1 << 3));
    assert_eq!(take(&mut pic), Some(0x35));
}

#[test]
fn the_second_controller_goes_through_the_cascade() {
    let mut pic = pic(1);
    pulse(&mut pic, 12);
    pulse(&mut pic, 3);
    assert_eq!(take(&mut pic), Some(0x3c), "input 2 is above input 3");
    pic.port_write(0x20, 0x20);
    assert_eq!(take(&mut pic), Some(0x33));
    pulse(&mut pic, 9);
    assert_eq!(take(&mut pic), Some(0x39), "above 12 in service");
    assert_eq!(pic.port_write(0xa0, 0x20), EndedPins(1 << 9));
}

#[test]
fn masked_inputs_wait() {
    let mut pic = pic(1);
    pic.port_write(0x21, 0x08);
    pulse(&mut pic, 3);
    assert_eq!(take(&mut pic), None);
    pic.port_write(0x21, 0);
    assert_eq!(take(&mut pic), Some(0x33));
}

#[test]
fn an_edge_is_taken_once_and_a_level_as_long_as_it_lasts() {
    let mut pic = pic(1);
    set(&mut pic, 5, Level::High);
    assert_eq!(take(&mut pic), Some(0x35));
    pic.port_write(0x20, 0x20);
    assert_eq!(take(&mut pic), None);
    set(&mut pic, 5, Level::Low);
    pic.port_write(0x4d0, 0x20);
    set(&mut pic, 5, Level::High);
    for _ in 0..2 {
        assert_eq!(take(&mut pic), Some(0x35));
        pic.port_write(0x20, 0x20);
    }
    set(&mut pic, 5, Level::Low);
    assert_eq!(take(&mut pic), None);
}

#[test]
fn inputs_of_the_board_cannot_be_made_level_triggered() {
    let mut pic = pic(1);
    pic.port_write(0x4d0, 0xff);
    pic.port_write(0x4d1, 0xff);
    assert_eq!((pic.port_read(0x4d0).0, pic.port_read(0x4d1).0), (0xf8, 0xde));
}

#[test]
fn without_a_request_the_vector_is_the_spurious_one() {
    let mut pic = pic(1);
    assert_eq!(pic.acknowledge(), (0x37, EndedPins(0)));
    assert_eq!(pic.controller(0).unwrap().isr(), 0);
}

#[test]
fn automatic_end_leaves_nothing_in_service() {
    let mut pic = pic(3);
    pulse(&mut pic, 3);
    assert_eq!(pic.acknowledge(), (0x33, EndedPins(1 << 3)));
    pulse(&mut pic, 5);
    assert_eq!(take(&mut pic), Some(0x35));
}

#[test]
fn rotation_makes_the_ended_input_the_last() {
    let mut pic = pic(1);
    pulse(&mut pic, 3);
    take(&mut pic);
    pic.port_write(0x20, 0xa0);
    pulse(&mut pic, 3);
    pulse(&mut pic, 4);
    assert_eq!(take(&mut pic), Some(0x34));
}

#[test]
fn automatic_rotation_follows_automatic_end() {
    let mut pic = pic(3);
    pic.port_write(0x20, 0x80);
    pulse(&mut pic, 3);
    take(&mut pic);
    pulse(&mut pic, 3);
    pulse(&mut pic, 4);
    assert_eq!(take(&mut pic), Some(0x34));
}

#[test]
fn a_specific_end_ends_the_one_named() {
    let mut pic = pic(1);
    pulse(&mut pic, 3);
    take(&mut pic);
    pulse(&mut pic, 1);
    take(&mut pic);
    assert_eq!(pic.port_write(0x20, 0x63), EndedPins(1 << 3));
    assert_eq!(pic.controller(0).unwrap().isr(), 1 << 1);
}

#[test]
fn set_priority_chooses_the_lowest_input() {
    let mut pic = pic(1);
    pic.port_write(0x20, 0xc4);
    pulse(&mut pic, 3);
    pulse(&mut pic, 6);
    assert_eq!(take(&mut pic), Some(0x36));
}

#[test]
fn special_mask_mode_lets_lower_inputs_past_a_masked_one_in_service() {
    let mut pic = pic(1);
    pulse(&mut pic, 3);
    take(&mut pic);
    pulse(&mut pic, 5);
    pic.port_write(0x21, 0x08);
    assert_eq!(take(&mut pic), None);
    pic.port_write(0x20, 0x68);
    assert_eq!(take(&mut pic), Some(0x35));
}

#[test]
fn special_fully_nested_mode_lets_the_second_controller_interrupt_itself() {
    for (icw4, expected) in [(0x01, None), (0x11, Some(0x39))] {
        let mut pic = pic(icw4);
        pulse(&mut pic, 12);
        take(&mut pic);
        pulse(&mut pic, 9);
        assert_eq!(take(&mut pic), expected);
    }
}

#[test]
fn a_poll_acknowledges_and_tells_the_input() {
    let mut pic = pic(1);
    pulse(&mut pic, 3);
    pic.port_write(0x20, 0x0c);
    assert_eq!(pic.port_read(0x20).0, 0x83);
    assert_eq!(pic.controller(0).unwrap().isr(), 8);
    pic.port_write(0x20, 0x0c);
    assert_eq!(pic.port_read(0x20).0, 0);
}

#[test]
fn the_first_port_reads_request_or_service() {
    let mut pic = pic(1);
    pulse(&mut pic, 3);
    take(&mut pic);
    pulse(&mut pic, 5);
    pic.port_write(0x20, 0x0b);
    assert_eq!(pic.port_read(0x20).0, 1 << 3);
    pic.port_write(0x20, 0x0a);
    assert_eq!(pic.port_read(0x20).0, 1 << 5);
}

#[test]
fn initialisation_clears_the_mask_and_what_waits() {
    let mut pic = pic(1);
    pulse(&mut pic, 3);
    pic.port_write(0x21, 0xff);
    assert_eq!(pic.port_write(0x20, 0x11), EndedPins(1 << 3));
    assert_eq!(pic.controller(0).unwrap().imr(), 0);
    assert_eq!(take(&mut pic), None);
}
