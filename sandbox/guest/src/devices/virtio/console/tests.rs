//! Tests of the console device.

use super::*;
use crate::channels::CONSOLE_RING_BYTES;
use crate::devices::virtio::driver::Rig;

const IN0: usize = 0;
const OUT0: usize = 1;
const TO_DRIVER: usize = 2;
const FROM_DRIVER: usize = 3;
const IN1: usize = 4;
const OUT1: usize = 5;

fn control(port: u32, event: u16, value: u16) -> Vec<u8> {
    let mut message = port.to_le_bytes().to_vec();
    message.extend_from_slice(&event.to_le_bytes());
    message.extend_from_slice(&value.to_le_bytes());
    message
}

fn send(rig: &mut Rig<Console>, port: u32, event: u16, value: u16) {
    rig.add(FROM_DRIVER, &[&control(port, event, value)], &[]);
    rig.notify(FROM_DRIVER as u32);
    assert!(rig.used(FROM_DRIVER).is_some());
}

fn received(rig: &mut Rig<Console>) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| rig.used(TO_DRIVER))
        .map(|used| used.1)
        .collect()
}

/// A device in Linux's state after it opened the ports.
fn open() -> Rig<Console> {
    let mut rig = Rig::new(Console::new(), F_MULTIPORT);
    for _ in 0..16 {
        rig.add(TO_DRIVER, &[], &[64]);
    }
    send(&mut rig, 0, DEVICE_READY, 1);
    for port in 0..2 {
        send(&mut rig, port, PORT_READY, 1);
        send(&mut rig, port, PORT_OPEN, 1);
    }
    rig
}

#[test]
fn ports_are_announced_as_linux_expects() {
    let mut rig = open();
    let size = [control(0, RESIZE, 0), vec![80, 0, 24, 0]].concat();
    let name = [control(1, PORT_NAME, 1), AGENT_PORT.into()].concat();
    let want = [
        control(0, PORT_ADD, 1),
        control(1, PORT_ADD, 1),
        control(0, CONSOLE_PORT, 1),
        control(0, PORT_OPEN, 1),
        size,
        name,
        control(1, PORT_OPEN, 1),
    ];
    assert_eq!(received(&mut rig), want);
    assert!(rig.device.device.agent_open());
    send(&mut rig, 1, PORT_OPEN, 0);
    assert!(!rig.device.device.agent_open());
    assert_eq!(rig.device.read_config(0x100, 8), 2 << 32 | 24 << 16 | 80);
}

#[test]
fn a_new_size_is_told() {
    let mut rig = open();
    received(&mut rig);
    rig.device.device.resize(132, 50);
    rig.poll();
    rig.poll();
    let want = [control(0, RESIZE, 0), vec![132, 0, 50, 0]].concat();
    assert_eq!(received(&mut rig), [want]);
}

#[test]
fn input_waits_for_an_open_port_and_for_buffers() {
    let mut rig = Rig::new(Console::new(), F_MULTIPORT);
    rig.add(IN1, &[], &[4]);
    rig.channels.agent.input.push(b"abcdefgh");
    rig.poll();
    assert_eq!(rig.used(IN1), None);
    send(&mut rig, 1, PORT_OPEN, 1);
    assert_eq!(rig.used(IN1).map(|used| used.1), Some(b"abcd".to_vec()));
    rig.add(IN1, &[], &[1, 100]);
    rig.notify(IN1 as u32);
    assert_eq!(rig.used(IN1).map(|used| used.1), Some(b"efgh".to_vec()));
    rig.add(IN1, &[], &[8]);
    rig.notify(IN1 as u32);
    assert_eq!(rig.used(IN1), None);
}

#[test]
fn output_is_binary_and_the_agents_asks_for_an_early_exit() {
    let mut rig = open();
    rig.channels.take_early_exit();
    let all: Vec<u8> = (0..=255).collect();
    rig.add(OUT0, &[b"console"], &[]);
    rig.notify(OUT0 as u32);
    assert!(!rig.channels.take_early_exit());
    rig.add(OUT1, &[&all, b"\0\x01"], &[]);
    rig.notify(OUT1 as u32);
    assert!(rig.channels.take_early_exit());
    assert_eq!(rig.channels.console.output.front(), b"console");
    assert_eq!(
        rig.channels.agent.output.front(),
        [&all[..], b"\0\x01"].concat()
    );
    assert!(rig.used(OUT0).is_some() && rig.used(OUT1).is_some());
}

#[test]
fn a_slow_reader_loses_nothing() {
    let mut rig = open();
    let mut written = Vec::new();
    let mut read = Vec::new();
    let mut next = 0u8;
    while read.len() < 4 * CONSOLE_RING_BYTES {
        while rig.drivers[OUT0].free() > 0 && written.len() < 5 * CONSOLE_RING_BYTES {
            let bytes: Vec<u8> = (0..3001)
                .map(|i| next.wrapping_add((i % 251) as u8))
                .collect();
            next = next.wrapping_add(1);
            rig.add(OUT0, &[&bytes], &[]);
            written.extend(bytes);
        }
        rig.notify(OUT0 as u32);
        assert!(
            rig.channels.take_early_exit(),
            "a full ring asks for its reader"
        );
        let mut buf = vec![0; 10_007];
        let count = rig.channels.console.output.pop(&mut buf);
        read.extend_from_slice(&buf[..count]);
        rig.poll();
        while rig.used(OUT0).is_some() {}
    }
    assert_eq!(read, written[..read.len()]);
    assert!(rig.device.live());
}

#[test]
fn one_port_without_the_feature() {
    let mut rig = Rig::new(Console::new(), 0);
    rig.add(IN0, &[], &[8]);
    rig.channels.console.input.push(b"in");
    rig.poll();
    assert_eq!(rig.used(IN0).map(|used| used.1), Some(b"in".to_vec()));
    rig.add(OUT0, &[b"out"], &[]);
    rig.notify(OUT0 as u32);
    assert_eq!(rig.channels.console.output.front(), b"out");
}

#[test]
fn endless_questions_without_buffers_are_bounded() {
    let mut rig = Rig::new(Console::new(), F_MULTIPORT);
    for _ in 0..1000 {
        if rig.drivers[FROM_DRIVER].free() == 0 {
            break;
        }
        rig.add(FROM_DRIVER, &[&control(0, DEVICE_READY, 1)], &[]);
        rig.notify(FROM_DRIVER as u32);
        while rig.used(FROM_DRIVER).is_some() {}
    }
    assert_eq!(rig.drivers[FROM_DRIVER].free(), 0, "no longer listened to");
    assert!(rig.device.device.outbox.len() <= MAX_OUTBOX);
    // It continues once buffers are available.
    for _ in 0..16 {
        rig.add(TO_DRIVER, &[], &[64]);
    }
    rig.poll();
    assert_eq!(received(&mut rig).len(), 16);
    rig.poll();
    assert!(rig.used(FROM_DRIVER).is_some());
    assert!(rig.device.live());
}

#[test]
fn a_reset_forgets_pending_output() {
    let mut rig = open();
    let big = vec![1; CONSOLE_RING_BYTES + 1];
    rig.add(OUT0, &[&big], &[]);
    rig.notify(OUT0 as u32);
    assert!(rig.device.device.held_back());
    assert!(rig.channels.take_early_exit());
    rig.poll();
    assert!(
        !rig.channels.take_early_exit(),
        "the reader was asked already"
    );
    rig.start(F_MULTIPORT);
    assert!(!rig.device.device.held_back());
    rig.channels.console.output.consume(CONSOLE_RING_BYTES);
    rig.poll();
    assert!(rig.channels.console.output.is_empty());
}

#[test]
fn a_queue_may_stop_while_output_is_pending() {
    let mut rig = open();
    let big = vec![1; CONSOLE_RING_BYTES + 1];
    rig.add(OUT0, &[&big], &[]);
    rig.notify(OUT0 as u32);
    for (register, value) in [(0x30, OUT0 as u32), (0x44, 0), (0x38, 0)] {
        rig.write(register, value);
    }
    rig.channels.console.output.consume(CONSOLE_RING_BYTES);
    rig.poll();
    assert!(!rig.device.device.held_back() && rig.device.live());
}
