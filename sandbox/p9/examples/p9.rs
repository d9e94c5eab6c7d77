//! Benchmark of the 9P server alone: reads, writes and lists on a temporary folder,
//! `cargo run --profile sandbox -p a99-sandbox-p9 --example p9`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use a99_sandbox_p9::{Mount, MountMode, Options, Server};
use std::time::Instant;

/// Bytes moved in each direction.
const TOTAL: usize = 1 << 30;
/// Data bytes of one message: the request size of Linux's client.
const CHUNK: usize = (500 << 10) - 24;
/// Size of the file, which is read and written repeatedly.
const FILE: usize = 64 << 20;
/// Files in the listed folder.
const FILES: usize = 1000;

fn message(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    let size = (body.len() as u32 + 7).to_le_bytes();
    [&size[..], &[kind, 0, 0], &body].concat()
}

fn number(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    for name in 0..FILES {
        std::fs::write(folder.path().join(name.to_string()), "")?;
    }
    let mount = Mount::new("/mnt", folder.path(), MountMode::ReadWrite);
    let mut server = Server::new(vec![mount], Options::default())?;
    let mut reply = Vec::new();
    let mut ask = |request: &[u8]| {
        server.answer(request, &mut reply);
        assert_ne!(reply[4], 7, "{reply:?}");
        reply.len()
    };
    let none = u32::MAX.to_le_bytes();
    ask(&message(100, &[&none, &8u16.to_le_bytes(), b"9P2000.L"]));
    ask(&message(104, &[&number(0), &none, &[0; 8]]));
    for fid in [1, 2] {
        ask(&message(
            110,
            &[&number(0), &number(fid), b"\x01\0\x01\x000"],
        ));
    }
    let create = [
        &number(1)[..],
        b"\x04\0file",
        &number(2),
        &number(0o644),
        &number(0),
    ];
    ask(&message(14, &create));
    ask(&message(12, &[&number(2), &number(0)]));

    let data = vec![7; CHUNK];
    let offset = |done: usize| ((done % FILE) as u64).to_le_bytes();
    let count = number(CHUNK as u32);
    for (name, kind) in [("write", 118), ("read", 116)] {
        let start = Instant::now();
        let mut done = 0;
        let mut request = message(kind, &[&number(1), &[0; 8], &count]);
        if kind == 118 {
            request = message(kind, &[&number(1), &[0; 8], &count, &data]);
        }
        while done < TOTAL {
            request[11..19].copy_from_slice(&offset(done));
            ask(&request);
            done += CHUNK;
        }
        let rate = done as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{name}: {rate:.0} MB/s");
    }
    let start = Instant::now();
    let mut bytes = 0;
    for name in 0..FILES {
        let name = name.to_string();
        let len = (name.len() as u16).to_le_bytes();
        ask(&message(
            110,
            &[&number(2), &number(9), &[1, 0], &len, name.as_bytes()],
        ));
        bytes += ask(&message(24, &[&number(9), &0x7ffu64.to_le_bytes()]));
        ask(&message(120, &[&number(9)]));
    }
    bytes += ask(&message(40, &[&number(2), &[0; 8], &count]));
    let took = start.elapsed().as_secs_f64() * 1e3;
    println!("list {FILES} files with their attributes: {took:.1} ms, {bytes} bytes");
    Ok(())
}
