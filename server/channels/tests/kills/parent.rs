//! Starts the processes, kills them in turn, and checks log and states.

use crate::check::{self, Reader};
use crate::roles::{self, CHANNEL, FOLDER, ROLE, agent, connect};
use a99_server::{Authority, NewToken, Scopes};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLES: [&str; 4] = ["server", "a", "b", "writer"];

/// How long all may take to finish after the last kill: agents on a server lag behind the writer.
const SETTLING: Duration = Duration::from_secs(600);

fn start(folder: &Path, role: &str) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "process", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("started")
}

/// A linear congruential generator: any spread of kills will do.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    (*state >> 33) % below
}

/// Processes that end with the test.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

pub(crate) fn run(seconds: u64, seed: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // A free port, which the server takes in each of its lives.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let authority = Authority::open(folder.join("tokens.json")).expect("tokens");
    let new = NewToken {
        name: "all".to_owned(),
        scopes: Scopes::parse(&["admin"]).expect("scopes"),
        lifetime: None,
    };
    let (token, _) = authority.issue(&new).expect("a token");
    std::fs::write(folder.join("token"), token).expect("written");
    std::fs::write(folder.join("address"), address).expect("written");
    let mut processes = Processes(ROLES.iter().map(|role| start(folder, role)).collect());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let readers: Vec<Reader> = (0..2).map(|_| Reader::start(&runtime, folder)).collect();

    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut state, mut kills) = (seed, [0_u32; ROLES.len()]);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50 + random(&mut state, 400)));
        let one = usize::try_from(random(&mut state, ROLES.len() as u64)).expect("small");
        let child = &mut processes.0[one];
        assert!(
            child.try_wait().expect("a status").is_none(),
            "{} ended",
            ROLES[one]
        );
        child.kill().expect("killed");
        child.wait().expect("ended");
        kills[one] += 1;
        *child = start(folder, ROLES[one]);
    }
    std::fs::write(folder.join("stop"), "").expect("written");
    let found = runtime.block_on(async {
        let client = connect(folder).await;
        check::settle(&client, folder, &["a", "b"], SETTLING).await
    });
    let lines = roles::read(folder, "acknowledged").unwrap_or_default();
    let acknowledged: Vec<u64> = lines
        .lines()
        .map(|seq| seq.parse().expect("a number"))
        .collect();
    found.check(&acknowledged, &["a", "b"].map(agent));
    for reader in readers {
        reader.check(&runtime, &found);
    }
    drop(processes);
    for role in ["a", "b"] {
        check::state(folder, role, &found);
    }
    let told = writeln!(
        std::io::stderr(),
        "{CHANNEL}: {} messages acknowledged, {} events, kills {kills:?} of {ROLES:?}",
        acknowledged.len(),
        found.len()
    );
    told.expect("a place for figures");
    assert!(kills.iter().sum::<u32>() as u64 > seconds, "{kills:?}");
}
