//! Turns that sleep: their host is killed, and they continue once at their time.

use super::said;
use crate::harness::{Sandbox, a99};
use crate::hosted::Hosted;
use std::time::{Duration, Instant};

#[test]
fn a_sleeping_turn_survives_a_kill_and_ends_once_at_its_time() {
    let folder = Sandbox::new("agent-sleeps");
    let config = "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannel = \"c\"\nfuel = 1000\ntimeout = \"10m\"\n\
                  [[agent]]\nname = \"b\"\nprogram = \"b.ajs\"\nchannel = \"d\"\nfuel = 1000\n";
    let config = folder.file("agents.toml", config);
    folder.file(
        "a.ajs",
        "async function agent({ event }) {
  const began = Date.now()
  await sleep({ ms: 8000 })
  await agentSend({ content: `${event.content} slept ${Date.now() - began}` })
}
",
    );
    folder.file(
        "b.ajs",
        "async function agent({ event }) { await agentSend({ content: event.content }) }\n",
    );
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let began = Instant::now();
    assert_eq!(
        a99(&[&["agent", "send", "c", "one"], &place[..]].concat(), b"").code,
        0
    );
    // Others work meanwhile.
    let other = a99(
        &[&["agent", "send", "d", "x", "--wait"], &place[..]].concat(),
        b"",
    );
    assert_eq!(other.code, 0, "{other:?}");
    std::thread::sleep(Duration::from_secs(1));
    host.kill();

    let host = Hosted::start(&place);
    let args = ["agent", "send", "c", "two", "--wait", "--timeout", "120s"];
    let done = a99(&[&args[..], &place[..]].concat(), b"");
    assert_eq!(done.code, 0, "{done:?}");
    let took = began.elapsed();
    // The second waits for the first; a sleep that began again would add what was slept before.
    assert!(took >= Duration::from_secs(16), "{took:?}");
    let texts = said(&place, "c", "a");
    let slept = texts
        .iter()
        .map(|text| text.split_once(" slept ").expect("a text"));
    let (names, times): (Vec<_>, Vec<_>) = slept.unzip();
    assert_eq!(names, ["one", "two"]);
    let is_exact = |time: &&str| (8_000..8_500).contains(&time.parse::<u32>().expect("a number"));
    assert!(times.iter().all(is_exact), "{times:?}");
    host.end();
}
