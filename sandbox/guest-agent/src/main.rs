//! `agent99-agent`: the guest's first process after `/init`, or a child of it.
//!
//! Without arguments it serves the virtio-console port that the host provides, with control
//! groups. With `--stdin` it serves the socket that is its standard input, without control
//! groups, so that tests can run it anywhere. `--send PATH` writes the files at the path to
//! standard output, and `--receive PATH` creates files from standard input there: the
//! guest's side of copying.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the guest's console"
)]

/// Capacity of a pipe in bytes.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 64 << 10;

#[cfg(target_os = "linux")]
fn main() {
    use a99_sandbox_guest_agent::agent::Agent;

    let mut arguments = std::env::args_os().skip(1);
    let (word, path) = (arguments.next(), arguments.next());
    let result = match (word.as_ref().map(|word| word.to_str()), path) {
        (None, _) => Agent::in_guest().and_then(Agent::serve),
        (Some(Some("--stdin")), None) => Agent::on_stdin().and_then(Agent::serve),
        (Some(Some("--send")), Some(path)) => send(path.as_ref()),
        (Some(Some("--receive")), Some(path)) => receive(path.as_ref()),
        _ => {
            eprintln!("agent99-agent: there are --stdin, --send PATH and --receive PATH");
            std::process::exit(2);
        }
    };
    if let Err(error) = result {
        eprintln!("agent99-agent: {error}");
        std::process::exit(1);
    }
}

#[cfg(target_os = "linux")]
fn send(path: &std::path::Path) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::with_capacity(PIPE_BYTES, std::io::stdout().lock());
    a99_sandbox_protocol::tree::send(path, &mut out).map(drop)
}

#[cfg(target_os = "linux")]
fn receive(path: &std::path::Path) -> std::io::Result<()> {
    use a99_sandbox_protocol::tree::{ReceiveOptions, receive};

    let mut input = std::io::BufReader::with_capacity(PIPE_BYTES, std::io::stdin().lock());
    // A link of the host's tree leads only to the guest's own files.
    let options = ReceiveOptions {
        any_link: true,
        ..ReceiveOptions::default()
    };
    receive(&mut input, path, &options).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("agent99-agent runs on Linux only");
    std::process::exit(2);
}
