//! Examples whose READMEs are commands to copy: they run as written, but for the ports.

use crate::harness::{Done, Sandbox, a99};
use crate::hosted::lines;
use serde_json::Value as Json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A free port.
fn port() -> String {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address").port().to_string()
}

fn copy(from: &Path, to: &Path, ports: &[(&str, String)]) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("an example") {
        let path = entry.expect("a file").path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &to, ports);
            continue;
        }
        let mut text = std::fs::read_to_string(&path).expect("a text");
        for (written, free) in ports {
            text = text.replace(written, free);
        }
        std::fs::write(to, text).expect("written");
    }
}

/// A shell in a copy of an example, with jobs as at a terminal.
struct Shell {
    shell: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: Sandbox,
}

impl Shell {
    fn new(name: &str, ports: &[(&str, String)]) -> Shell {
        let folder = Sandbox::new(&format!("example-{name}"));
        let root = format!("{}/../examples/agents/{name}", env!("CARGO_MANIFEST_DIR"));
        copy(Path::new(&root), Path::new(&folder.path("")), ports);
        let built = Path::new(env!("CARGO_BIN_EXE_a99"));
        let mut path = built.parent().expect("a folder").as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("bash")
            .args(["--noprofile", "--norc", "-m"])
            .current_dir(folder.path(""))
            .env("PATH", path)
            .env("XDG_CONFIG_HOME", folder.path("config"))
            .env_remove("A99_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("bash");
        let input = shell.stdin.take().expect("a pipe");
        let output = BufReader::new(shell.stdout.take().expect("a pipe"));
        Shell {
            shell,
            input,
            output,
            folder,
        }
    }

    /// The commands of the README, a text for each block.
    fn blocks(&self) -> Vec<String> {
        let readme = std::fs::read_to_string(self.folder.path("README.md")).expect("a README");
        let blocks = readme.split("```sh\n").skip(1);
        let text = |block: &str| block.split("```").next().unwrap_or_default().to_owned();
        blocks.map(text).collect()
    }

    /// Runs commands, and gives what they print.
    fn run(&mut self, commands: &str) -> String {
        writeln!(self.input, "{commands}\necho \"done: $?\"").expect("it runs");
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).expect("a line");
            assert_ne!(count, 0, "the shell ended: {printed}");
            match line.strip_prefix("done: ") {
                Some(status) => {
                    assert_eq!(status.trim(), "0", "{commands}: {printed}");
                    return printed;
                }
                None => printed += &line,
            }
        }
    }

    /// Texts that a handle said, once there are as many.
    fn said(&mut self, address: &str, channel: &str, handle: &str, count: usize) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let logs = self.run(&format!("a99 channels logs {address} {channel} --json"));
            let events = lines(&logs);
            let of =
                |event: &&Json| event["type"] == "message" && event["sender"]["handle"] == handle;
            let texts = events.iter().filter(of).map(|event| &event["content"]);
            let texts: Vec<String> = texts
                .map(|text| text.as_str().unwrap_or_default().to_owned())
                .collect();
            if texts.len() >= count || Instant::now() > until {
                return texts;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The jobs too.
        drop(writeln!(self.input, "kill -9 $(jobs -p); exit"));
        drop(self.shell.wait());
    }
}

#[test]
fn two_hosts_share_a_channel_as_their_readme_says() {
    let port = port();
    let address = format!("ws://127.0.0.1:{port}");
    let mut shell = Shell::new("two-hosts", &[("7420", port)]);
    let blocks = shell.blocks();
    let [start, order, kitchen, desk, server, look] = &blocks[..] else {
        panic!("other blocks than the test knows: {blocks:?}");
    };
    shell.run(start);
    let shown = shell.run(order);
    assert!(shown.contains("restaurant: soup"), "{shown}");
    assert_eq!(shell.said(&address, "orders", "kitchen", 1).len(), 1);
    for (block, killed, count) in [(kitchen, "%3", 2), (desk, "%2", 3), (server, "%1", 4)] {
        assert!(block.contains(&format!("kill -9 {killed}\n")), "{block}");
        shell.run(block);
        assert_eq!(
            shell.said(&address, "orders", "kitchen", count).len(),
            count
        );
    }
    let orders = ["soup", "bread", "cheese", "wine"].iter().enumerate();
    let orders: Vec<String> = orders
        .map(|(at, what)| format!("order {}: {what}", at + 1))
        .collect();
    assert_eq!(shell.said(&address, "orders", "desk", 4), orders);
    let dishes = orders.iter().enumerate();
    let dishes: Vec<String> = dishes
        .map(|(at, order)| format!("dish {}, {order}", at + 1))
        .collect();
    assert_eq!(shell.said(&address, "orders", "kitchen", 4), dishes);
    let until = Instant::now() + Duration::from_secs(60);
    while !shell.run(look).contains("\"served\": 4") {
        assert!(Instant::now() < until, "{}", shell.run(look));
    }
    let shown = shell.run(look);
    assert!(shown.contains("\"taken\": 4"), "{shown}");
}

#[test]
#[ignore = "needs node: `cargo xtask slow` runs it"]
fn a_function_counts_as_its_readme_says() {
    let (server, function) = (port(), port());
    let address = format!("ws://127.0.0.1:{server}");
    let mut shell = Shell::new("function", &[("7420", server), ("8099", function)]);
    let blocks = shell.blocks();
    let [start, say] = &blocks[..] else {
        panic!("other blocks than the test knows: {blocks:?}");
    };
    shell.run(start);
    shell.run(say);
    let said = shell.said(&address, "general", "counter", 3);
    assert_eq!(said, ["#1: hello", "#2: remind", "I remind you"]);
    let wrapper = std::fs::read_to_string(shell.folder.path("function.mjs")).expect("a text");
    assert!(wrapper.lines().count() <= 20, "{wrapper}");
    // No process of the agent runs: another has the store at once.
    let config = shell.folder.path("agents.toml");
    let shown: Done = a99(
        &["agent", "inspect", "counter", "--json", "--config", &config],
        b"",
    );
    assert_eq!(shown.json()["state"]["count"], 2, "{shown:?}");
}
