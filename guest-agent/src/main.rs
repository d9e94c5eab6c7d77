//! `agent99-agent`: the guest's first process after `/init`, or a child of it.
//!
//! Without arguments it serves the virtio-console port that the host gave for
//! it, with control groups. With `--stdin` it serves the socket that is its
//! standard input, without: so it runs anywhere, for tests.

#[cfg(target_os = "linux")]
fn main() {
    use a99_guest_agent::agent::Agent;

    let result = match std::env::args().nth(1).as_deref() {
        None => Agent::in_guest(),
        Some("--stdin") => Agent::on_stdin(),
        Some(other) => {
            eprintln!("agent99-agent: unknown argument {other}; there is only --stdin");
            std::process::exit(2);
        }
    };
    if let Err(error) = result.and_then(Agent::serve) {
        eprintln!("agent99-agent: {error}");
        std::process::exit(1);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("agent99-agent runs on Linux only");
    std::process::exit(2);
}
