//! External calls of agent programs whose process is killed.

use crate::harness::{Sandbox, a99};
use crate::hosted::Hosted;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// A server that never answers its first request of `/second`, and reports its arrival.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    hangs: Receiver<()>,
}

fn path_of(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    lines.find(String::is_empty)?;
    first.split(' ').nth(1).map(str::to_owned)
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (hang, hangs) = channel();
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                let Some(path) = path_of(&stream) else {
                    continue;
                };
                let is_first = {
                    let mut log = log.lock().expect("not poisoned");
                    log.push(path.clone());
                    log.iter().filter(|other| **other == path).count() == 1
                };
                if path == "/second" && is_first {
                    held.push(stream);
                    let _ = hang.send(());
                    continue;
                }
                let body = format!("\"answer to {path}\"");
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                drop((&stream).write_all(format!("{head}{body}").as_bytes()));
            }
        });
        Server { port, seen, hangs }
    }

    fn seen(&self, path: &str) -> usize {
        let seen = self.seen.lock().expect("not poisoned");
        seen.iter().filter(|other| *other == path).count()
    }
}

#[test]
fn calls_of_sub_agents_that_were_answered_are_not_made_again_after_a_kill() {
    let server = Server::start();
    let folder = Sandbox::new("agent-subs");
    let url = format!("http://127.0.0.1:{}", server.port);
    let config = format!(
        "[[agent]]\nname = \"lead\"\nprogram = \"lead.ajs\"\nchannel = \"c\"\n\
         fuel = 1000\nallow = [\"net:127.0.0.1:{}\"]\nagent = [\"sub=sub.ajs\"]\n",
        server.port
    );
    let config = folder.file("agents.toml", &config);
    folder.file(
        "lead.ajs",
        &format!(
            "async function agent({{ event }}) {{
  const before = await httpFetch({{ url: '{url}/before', responseType: 'json' }})
  const found = await agentRun({{ agentId: 'sub', input: {{ url: '{url}' }} }})
  await agentSend({{ content: `${{before}}; ${{found}}` }})
}}
"
        ),
    );
    folder.file(
        "sub.ajs",
        "async function agent({ url }) {
  const first = await httpFetch({ url: `${url}/first`, responseType: 'json' })
  const second = await httpFetch({ url: `${url}/second`, responseType: 'json' })
  return `${first}; ${second}`
}
",
    );
    let place = ["--config", config.as_str()];
    let host = Hosted::start(&place);
    let sent = a99(&[&["agent", "send", "c", "go"], &place[..]].concat(), b"");
    assert_eq!(sent.code, 0, "{sent:?}");
    let hangs = server.hangs.recv_timeout(PATIENCE);
    hangs.expect("the sub-agent asks for the second");
    host.kill();
    assert_eq!((server.seen("/before"), server.seen("/first")), (1, 1));

    let host = Hosted::start(&place);
    let more = a99(
        &[
            &["agent", "send", "c", "more", "--wait", "--timeout", "60s"],
            &place[..],
        ]
        .concat(),
        b"",
    );
    assert_eq!(more.code, 0, "{more:?}");
    host.end();
    let all = "answer to /before; answer to /first; answer to /second";
    assert_eq!(crate::said(&place, "c", "lead"), [all, all]);
    // The second message repeats all requests; the first only the unanswered one.
    assert_eq!(server.seen("/before"), 2);
    assert_eq!(server.seen("/first"), 2);
    assert_eq!(server.seen("/second"), 3);
}

#[test]
fn methods_of_a_program_are_called() {
    let folder = Sandbox::new("agent-methods");
    let agent = "[[agent]]\nname = \"till\"\nprogram = \"till.ajs\"\nchannel = \"c\"\n";
    let pay = "[agent.methods.pay]\ndescription = \"Adds to an account.\"\ntimeout = \"1m\"\n\
        parameters = { type = \"object\", properties = { amount = { type = \"number\" } }, \
        required = [\"amount\"] }\n";
    let config = folder.file("agents.toml", &format!("{agent}{pay}"));
    folder.file(
        "till.ajs",
        "async function agent({ event, state }) {
  if (event.type === 'method-call') {
    const cash = (state.cash ?? 0) + event.args.amount
    await agentSetState({ state: { cash } })
    if (event.args.amount < 0) {
      throw new Error('no refunds')
    }
    return { cash, by: event.sender.handle }
  }
  return null
}
",
    );
    let place = ["--config", config.as_str()];
    let call = |method: &str, args: &str| {
        let words = ["agent", "call", "till", method, args, "--json"];
        a99(&[&words, &place[..]].concat(), b"")
    };
    let early = call("pay", "{\"amount\": 5}");
    assert_eq!(early.json()["error"]["code"], "cli.no_host", "{early:?}");
    let host = Hosted::start(&place);
    let paid = call("pay", "{\"amount\": 5}");
    assert_eq!(paid.code, 0, "{paid:?}");
    let answer = serde_json::json!({"cash": 5, "by": "user"});
    assert_eq!(paid.json()["answer"], answer);
    for (method, args, code) in [
        ("pay", "{\"amount\": -1}", "program.error"),
        ("pay", "{\"amount\": \"x\"}", "validation-error"),
        ("fly", "{}", "method-not-found"),
    ] {
        let failed = call(method, args);
        let error = &failed.json()["error"];
        assert_eq!(failed.code, 1, "{failed:?}");
        assert_eq!(error["code"], code, "{failed:?}");
    }
    let words = ["agent", "call", "till", "pay", "{\"amount\": 2}"];
    let paid = a99(&[&words, &place[..]].concat(), b"");
    assert_eq!(paid.code, 0, "{paid:?}");
    let answer = serde_json::json!({"cash": 7, "by": "user"});
    assert_eq!(paid.json(), answer);
    host.end();

    for (text, told) in [
        (
            "[agent.methods.pay]\ntimeout = \"1m\"\n",
            "`description` is missing",
        ),
        (
            "[agent.methods.pay]\ndescription = \"a\"\nparameter = {}\n",
            "did you mean `parameters`?",
        ),
        (
            "[agent.methods.pay]\ndescription = \"a\"\nparameters = \"x\"\n",
            "`parameters`: expected a table, a JSON Schema",
        ),
        (
            "methods = { pay = 1 }\n",
            "the method `pay`: expected a table",
        ),
        ("methods = [\"pay\"]\n", "`methods`: expected a table"),
    ] {
        folder.file("agents.toml", &format!("{agent}{text}"));
        let wrong = a99(&[&["agent", "host"], &place[..]].concat(), b"");
        assert_eq!(wrong.code, 2, "{wrong:?}");
        assert!(wrong.err.contains(told), "{text}: {}", wrong.err);
    }
}

/// A file of two agents: one that answers, and one whose request gets no answer yet.
fn beside_a_slow_one(greeting: &str, port: u16) -> String {
    format!(
        "[[agent]]\nname = \"slow\"\nprogram = \"slow.ajs\"\nchannel = \"d\"\n\
         allow = [\"net:127.0.0.1:{port}\"]\n\
         [[agent]]\nname = \"echo\"\nprogram = \"echo.ajs\"\nchannel = \"c\"\n\
         config = {{ greeting = \"{greeting}\" }}\n"
    )
}

#[test]
fn t11_checkpoint_and_reload_keep_other_agents_running() {
    let server = Server::start();
    let folder = Sandbox::new("agent-beside");
    let port = server.port;
    folder.file(
        "slow.ajs",
        &format!(
            "async function agent({{ event }}) {{
  const found = await httpFetch({{ url: 'http://127.0.0.1:{port}/second' }})
  await agentSend({{ content: `${{event.content}}: ${{found}}` }})
}}
"
        ),
    );
    folder.file(
        "echo.ajs",
        include_str!("../../src/templates/live/agent.ajs"),
    );
    let config = folder.file("agents.toml", &beside_a_slow_one("Hi", port));
    let place = ["--config", config.as_str()];
    let agent = |words: &[&str]| a99(&[&["agent"], words, &place].concat(), b"");
    let mut host = Hosted::begin(&[&place[..], &["--drain", "100s"]].concat());
    host.wait_for("started");
    let sent = agent(&["send", "d", "go"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    let hangs = server.hangs.recv_timeout(PATIENCE);
    hangs.expect("the slow one asks");
    let words = ["send", "c", "one", "--wait", "--timeout", "60s"];
    let sent = agent(&words);
    assert!(
        sent.code == 0 && sent.out.contains("Hi #1: one"),
        "{sent:?}"
    );

    let began = std::time::Instant::now();
    let set = agent(&["checkpoint", "echo", "--set", "0"]);
    assert_eq!(set.code, 0, "{set:?}");
    folder.file("agents.toml", &beside_a_slow_one("Ahoy", port));
    let done = agent(&["reload", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["changed"], serde_json::json!(["echo/c/echo"]));
    let words = ["send", "c", "two", "--wait", "--timeout", "60s"];
    let sent = agent(&words);
    assert!(sent.code == 0 && sent.out.contains("Ahoy #"), "{sent:?}");
    assert!(began.elapsed() < Duration::from_secs(90), "it waited");
    // The slow agent was not disturbed: its only request is still unanswered.
    assert_eq!(server.seen("/second"), 1);
    let shown = agent(&["inspect", "slow", "--json"]).json();
    assert_eq!(
        (&shown["status"], &shown["failed"]),
        (&"awake".into(), &0.into())
    );
    host.kill();
}

#[test]
fn t3_a_program_hears_of_turns_that_were_lost() {
    let server = Server::start();
    let folder = Sandbox::new("agent-lost");
    let port = server.port;
    folder.file(
        "a.ajs",
        &format!(
            "async function agent({{ event, state }}) {{
  if (event.type === 'lost') {{
    await agentSetState({{ state: {{ lost: event.lost }} }})
    await agentSend({{ content: `lost ${{event.lost[0].seq}}` }})
    return
  }}
  await httpFetch({{ url: 'http://127.0.0.1:{port}/second' }})
}}
"
        ),
    );
    let file = |more: &str| {
        format!(
            "[[agent]]\nname = \"a\"\nprogram = \"a.ajs\"\nchannel = \"c\"\n\
             allow = [\"net:127.0.0.1:{port}\"]\non-lost = true\n{more}"
        )
    };
    // In the other modes no turn is lost.
    let config = folder.file("agents.toml", &file(""));
    let place = ["--config", config.as_str()];
    let wrong = a99(&[&["agent", "host"], &place[..]].concat(), b"");
    assert!(
        wrong.code == 2 && wrong.err.contains("add `delivery = \"at-most-once\"`"),
        "{wrong:?}"
    );
    folder.file("agents.toml", &file("delivery = \"at-most-once\"\n"));
    let host = Hosted::start(&place);
    let sent = a99(&[&["agent", "send", "c", "go"], &place[..]].concat(), b"");
    assert_eq!(sent.code, 0, "{sent:?}");
    let hangs = server.hangs.recv_timeout(PATIENCE);
    hangs.expect("it asks");
    host.kill();
    let mut host = Hosted::start(&place);
    while host.wait_for("channel")["said"]["content"] != "lost 2" {}
    host.end();
    let shown = a99(
        &[&["agent", "inspect", "a", "--json"], &place[..]].concat(),
        b"",
    )
    .json();
    let lost = serde_json::json!([{"type": "event", "seq": 2}]);
    assert_eq!(shown["state"]["lost"], lost, "{shown}");
    assert_eq!(shown["deadLetters"][0]["code"], "turn.lost", "{shown}");
    assert_eq!(server.seen("/second"), 1);
}
