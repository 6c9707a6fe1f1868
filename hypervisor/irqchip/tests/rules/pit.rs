use irqchip::pit::{Pit, ns_of_tick, tick_at};

const SECOND: u64 = 1_000_000_000;

fn load(pit: &mut Pit, counter: u16, control: u8, count: u16, now_ns: u64) {
    pit.port_write(0x43, (counter as u8) << 6 | 0x30 | control, now_ns);
    for byte in count.to_le_bytes() {
        pit.port_write(0x40 + counter, byte, now_ns);
    }
}

fn read(pit: &mut Pit, counter: u16, now_ns: u64) -> u16 {
    let low = pit.port_read(0x40 + counter, now_ns);
    u16::from_le_bytes([low, pit.port_read(0x40 + counter, now_ns)])
}

/// The output of counter 2, by port 0x61.
fn output(pit: &mut Pit, now_ns: u64) -> bool {
    pit.port_read(0x61, now_ns) & 0x20 != 0
}

/// Counter 2 with its gate open, loaded so that its first tick is tick 1.
fn counter_2(control: u8, count: u16) -> Pit {
    let mut pit = Pit::default();
    pit.port_write(0x61, 1, 0);
    load(&mut pit, 2, control, count, 0);
    pit
}

/// Output of counter 2 for ticks after the load, `#` for high.
fn waveform(control: u8, count: u16, ticks: u64) -> String {
    let mut pit = counter_2(control, count);
    (0..ticks).map(|tick| if output(&mut pit, ns_of_tick(1 + tick)) { '#' } else { '_' }).collect()
}

#[test]
fn the_clock_is_a_twelfth_of_the_crystal() {
    assert_eq!(tick_at(3 * SECOND), 3_579_545);
    for tick in [0, 1, 2, 65536, 1_193_182, 1 << 50] {
        assert_eq!(tick_at(ns_of_tick(tick)), tick);
        assert!(tick == 0 || tick_at(ns_of_tick(tick) - 1) == tick - 1);
    }
}

#[test]
fn outputs_have_the_shapes_of_the_data_sheet() {
    assert_eq!(waveform(0x0, 4, 8), "____####");
    assert_eq!(waveform(0x4, 4, 9), "###_###_#");
    assert_eq!(waveform(0x6, 4, 8), "##__##__");
    assert_eq!(waveform(0x6, 5, 10), "###__###__");
    assert_eq!(waveform(0x8, 4, 8), "####_###");
}

#[test]
fn triggered_modes_wait_for_the_gate() {
    for (control, expected) in [(0x2, "___#####"), (0xa, "###_####")] {
        let mut pit = Pit::default();
        load(&mut pit, 2, control, 3, 0);
        assert!(output(&mut pit, ns_of_tick(100)));
        pit.port_write(0x61, 1, ns_of_tick(100));
        let shape: String = (101..109).map(|tick| if output(&mut pit, ns_of_tick(tick)) { '#' } else { '_' }).collect();
        assert_eq!(shape, expected, "{control:#x}");
    }
}

#[test]
fn counts_go_down_and_wrap_or_reload() {
    let mut pit = counter_2(0x0, 1000);
    assert_eq!(read(&mut pit, 2, ns_of_tick(1)), 1000);
    assert_eq!(read(&mut pit, 2, ns_of_tick(11)), 990);
    assert_eq!(read(&mut pit, 2, ns_of_tick(1002)), 0xffff);
    let mut pit = counter_2(0x4, 1000);
    assert_eq!(read(&mut pit, 2, ns_of_tick(1000)), 1);
    assert_eq!(read(&mut pit, 2, ns_of_tick(1001)), 1000);
    let mut pit = counter_2(0x6, 1000);
    assert_eq!(read(&mut pit, 2, ns_of_tick(11)), 980);
    assert_eq!(read(&mut pit, 2, ns_of_tick(511)), 980);
}

#[test]
fn decimal_counts_are_decimal() {
    let mut pit = counter_2(0x1, 0x1000);
    assert_eq!(read(&mut pit, 2, ns_of_tick(2)), 0x0999);
    let mut pit = counter_2(0x1, 0);
    assert_eq!(read(&mut pit, 2, ns_of_tick(2)), 0x9999);
}

#[test]
fn the_gate_holds_the_count() {
    let mut pit = counter_2(0x0, 1000);
    pit.port_write(0x61, 0, ns_of_tick(101));
    assert_eq!(read(&mut pit, 2, ns_of_tick(5000)), 900);
    assert!(!output(&mut pit, ns_of_tick(5000)));
    pit.port_write(0x61, 1, ns_of_tick(5000));
    assert_eq!(read(&mut pit, 2, ns_of_tick(5001)), 900);
    assert!(output(&mut pit, ns_of_tick(5901)));
}

#[test]
fn a_latched_count_stays_until_read() {
    let mut pit = counter_2(0x0, 1000);
    pit.port_write(0x43, 0x80, ns_of_tick(11));
    pit.port_write(0x43, 0x80, ns_of_tick(21));
    assert_eq!(read(&mut pit, 2, ns_of_tick(31)), 990);
    assert_eq!(read(&mut pit, 2, ns_of_tick(31)), 970);
}

#[test]
fn read_back_gives_status_then_count() {
    let mut pit = counter_2(0x0, 1000);
    pit.port_write(0x43, 0xc8, ns_of_tick(11));
    assert_eq!(pit.port_read(0x42, ns_of_tick(21)), 0x30, "low, word, mode 0");
    assert_eq!(read(&mut pit, 2, ns_of_tick(21)), 990);
    pit.port_write(0x43, 0xe8, ns_of_tick(1001));
    assert_eq!(pit.port_read(0x42, ns_of_tick(1001)), 0xb0, "high now");
    pit.port_write(0x43, 0xb0, ns_of_tick(1001));
    pit.port_write(0x43, 0xe8, ns_of_tick(1001));
    assert_eq!(pit.port_read(0x42, ns_of_tick(1001)), 0x70, "no count loaded");
}

#[test]
fn single_byte_accesses_load_that_byte() {
    let mut pit = Pit::default();
    pit.port_write(0x61, 1, 0);
    pit.port_write(0x43, 0xa0, 0); // high byte
    pit.port_write(0x42, 0x12, 0);
    assert_eq!(pit.port_read(0x42, ns_of_tick(1)), 0x12);
    pit.port_write(0x43, 0x80, ns_of_tick(2));
    assert_eq!(pit.port_read(0x42, ns_of_tick(2)), 0x11);
}

#[test]
fn periodic_ticks_do_not_drift() {
    let mut pit = Pit::default();
    load(&mut pit, 0, 0x4, 11932, 0);
    let mut edges = 0;
    let mut now = 0;
    while now < 10 * SECOND {
        now = pit.next_event().unwrap();
        assert_eq!(pit.advance(now - 1), 0);
        assert_eq!(pit.advance(now), 1);
        edges += 1;
        assert_eq!(now, ns_of_tick(1 + edges * 11932));
    }
    assert_eq!(edges, 1000);
}

#[test]
fn edges_that_are_fetched_late_are_all_counted() {
    let mut pit = Pit::default();
    load(&mut pit, 0, 0x6, 1000, 0);
    let _ = read(&mut pit, 0, ns_of_tick(2500));
    assert!(pit.next_event().unwrap() <= ns_of_tick(2500));
    assert_eq!(pit.advance(ns_of_tick(3001)), 3);
    assert_eq!(pit.next_event(), Some(ns_of_tick(4001)));
}

#[test]
fn one_shot_modes_tick_once() {
    for (control, tick) in [(0x0, 1001), (0x8, 1002)] {
        let mut pit = Pit::default();
        load(&mut pit, 0, control, 1000, 0);
        assert_eq!(pit.next_event(), Some(ns_of_tick(tick)));
        assert_eq!(pit.advance(SECOND), 1);
        assert_eq!(pit.next_event(), None);
    }
}

#[test]
fn a_new_periodic_count_takes_over_at_the_end_of_the_cycle() {
    let mut pit = Pit::default();
    load(&mut pit, 0, 0x4, 1000, 0);
    for byte in 300u16.to_le_bytes() {
        pit.port_write(0x40, byte, ns_of_tick(1501));
    }
    pit.advance(ns_of_tick(1501));
    assert_eq!(pit.next_event(), Some(ns_of_tick(2001)));
    assert_eq!(pit.advance(ns_of_tick(2601)), 3);
    assert_eq!(pit.next_event(), Some(ns_of_tick(2901)));
}

#[test]
fn the_first_byte_of_a_mode_0_count_stops_it() {
    let mut pit = Pit::default();
    load(&mut pit, 0, 0x0, 1000, 0);
    pit.port_write(0x40, 0xff, ns_of_tick(500));
    assert_eq!(pit.next_event(), None);
}

#[test]
fn port_61_shows_gate_speaker_and_a_refresh_toggle() {
    let mut pit = Pit::default();
    pit.port_write(0x61, 0xff, 0);
    assert_eq!(pit.port_read(0x61, 0) & 0xcf, 3);
    let toggles = (0..100).filter(|n| pit.port_read(0x61, n * 1000) & 0x10 != 0).count();
    assert!((40..60).contains(&toggles), "{toggles}");
}

#[test]
fn a_triggered_mode_can_be_triggered_again_with_the_same_count() {
    let mut pit = Pit::default();
    load(&mut pit, 2, 0x2, 100, 0);
    for start in [1000, 1050, 5000] {
        pit.port_write(0x61, 0, ns_of_tick(start - 1));
        pit.port_write(0x61, 1, ns_of_tick(start));
        assert_eq!(read(&mut pit, 2, ns_of_tick(start + 1)), 100);
    }
    assert!(!output(&mut pit, ns_of_tick(5100)));
    assert!(output(&mut pit, ns_of_tick(5101)));
}
