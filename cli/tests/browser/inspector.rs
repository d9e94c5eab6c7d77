//! The inspector of a host of agents, used as a person does.

use crate::driven::Browser;
use crate::harness::{Sandbox, a99};
use crate::hosted::Hosted;
use serde_json::{Value as Json, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const AGENTS: &str = "[store]
keep-turns = 50
[[agent]]
name = 'echo'
program = 'echo.ajs'
channel = 'general'
store = 'echo.db'
retry = { attempts = 1 }
";

/// Keeps the last text in its state and its length in a store, answers it, and fails if asked.
const ECHO: &str = "async function agent({ event }) {
  if (event.type === 'message' && event.sender.type !== 'agent') {
    if (event.content === 'fail') throw new Error('<img src=x onerror=\"window.ran=3\">')
    await storeSet({ key: 'last', value: event.content.length })
    await agentSetState({ state: { last: event.content } })
    await agentSend({ content: `heard ${event.content.length}` })
  }
}
";

/// Markup, the end of a script, and marks that turn the direction of what follows.
const HOSTILE: &str = "<img src=x onerror=\"window.ran=1\"></script><script>window.ran=2</script>\
                       \u{202e}\u{2066}\u{202e}turned";

/// What a page shows, in figures.
const MEASURE: &str = "(() => {
  const light = (color) => {
    const dot = document.createElement('canvas').getContext('2d')
    dot.fillStyle = color
    dot.fillRect(0, 0, 1, 1)
    const [r, g, b] = dot.getImageData(0, 0, 1, 1).data
    return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255
  }
  const style = getComputedStyle(document.body)
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    text: light(style.color), back: light(style.backgroundColor),
    rows: [...document.querySelectorAll('#log li')].filter((row) => {
      const box = row.getBoundingClientRect()
      return box.width > 100 && box.height > 10 && box.right <= innerWidth
    }).length,
    all: document.querySelectorAll('#log li').length,
    foreign: document.querySelectorAll('img, script:not([src]), b').length,
    ran: window.ran ?? null,
    other: performance.getEntriesByType('resource').filter((e) => !e.name.startsWith(location.origin)).length,
    kept: [localStorage.length, document.cookie.length],
  }
})()";

fn post(address: &str, token: &str, path: &str, body: &Json) -> (u16, Json) {
    let body = body.to_string();
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("connected");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(body.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    let body = body.and_then(|body| serde_json::from_str(body).ok());
    (status.expect("a status"), body.unwrap_or_default())
}

struct Inspected {
    // Ended before its folder is removed.
    browser: Browser,
    _host: Hosted,
    address: String,
    link: String,
    tokens: String,
    _folder: Sandbox,
}

impl Inspected {
    fn start(name: &str, more: &[&str]) -> Inspected {
        let folder = Sandbox::new(name);
        folder.file("echo.ajs", ECHO);
        let config = folder.file("agents.toml", AGENTS);
        let tokens = folder.path("tokens.json");
        let place = [
            "--config",
            &config,
            "--listen",
            "127.0.0.1:0",
            "--tokens",
            &tokens,
        ];
        let mut host = Hosted::begin(&[&place, more].concat());
        let address = host.wait_for("listening")["address"].clone();
        let link = host.wait_for("inspector")["link"].clone();
        let text = |json: &Json| json.as_str().expect("a text").to_owned();
        Inspected {
            browser: Browser::start(&folder.path("browser")),
            _host: host,
            address: text(&address),
            link: text(&link),
            tokens,
            _folder: folder,
        }
    }

    fn token(&self, scopes: &[&str]) -> String {
        let scopes: Vec<&str> = scopes.iter().flat_map(|one| ["--scope", one]).collect();
        let args = [
            "token",
            "new",
            "--name",
            HOSTILE_NAME,
            "--tokens",
            &self.tokens,
        ];
        let done = a99(&[&args[..], &scopes].concat(), b"");
        assert_eq!(done.code, 0, "{done:?}");
        let token = done.out.trim().to_owned();
        // The server reads the file again a moment later.
        let none = json!({});
        for _ in 0..100 {
            if post(&self.address, &token, "/v1/send", &none).0 != 401 {
                return token;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not know the token");
    }

    fn send(&self, token: &str, content: &str) {
        let body = json!({"channel": "general", "content": content});
        let (status, answer) = post(&self.address, token, "/v1/send", &body);
        assert_eq!(status, 200, "{answer}");
    }

    fn sign_in(&mut self, token: &str) {
        self.browser.wait("!document.querySelector('#door').hidden");
        self.browser.write("#token", token);
        self.browser.click("#door button");
    }

    fn wait_for_text(&mut self, place: &str, text: &str) {
        let text = Json::from(text);
        let expression = format!("document.querySelector('{place}').textContent.includes({text})");
        self.browser.wait(&expression);
    }
}

/// The name of a token is that of a sender.
const HOSTILE_NAME: &str = "<b onclick=alert(1)>ann</b>\u{202e}";

#[test]
#[ignore = "needs chromium"]
fn hostile_texts_are_inert_and_the_inspector_stays_usable() {
    let mut page = Inspected::start("inspector", &[]);
    let token = page.token(&["read:*", "inspect:*", "write:*"]);
    page.send(&token, HOSTILE);
    page.send(&token, "fail");
    page.send(&token, &format!("<b>{}", "x".repeat(1 << 20)));
    let url = format!("{}/inspect", page.address);
    let mut is_first = true;
    for (size, is_dark) in [
        ((1200, 800), false),
        ((1200, 800), true),
        ((420, 900), false),
    ] {
        // The state of the agent has it then.
        page.send(&token, HOSTILE);
        page.browser.open(&url, size, is_dark);
        if std::mem::take(&mut is_first) {
            page.sign_in("a99t_000000000000_wrong");
            page.wait_for_text("#error", "needs a valid token");
            page.sign_in(&token);
        }
        // The tab keeps the token for the next opening.
        page.wait_for_text("#log", "1048579 characters");
        page.wait_for_text("#log", "heard 1048579");
        page.browser
            .wait("document.querySelectorAll('#agents button').length === 1");
        page.browser.click("#agents button");
        page.wait_for_text("#state", "onerror");
        page.wait_for_text("#letters", "window.ran=3");
        let found = page.browser.value(MEASURE);
        let number = |what: &str| found[what].as_f64().expect("a number");
        assert!(number("overflow") <= 0.0, "{size:?}: {found}");
        assert!(
            number("all") >= 7.0 && found["rows"] == found["all"],
            "{size:?}: {found}"
        );
        assert_eq!(number("back") < 0.5, is_dark, "{found}");
        assert!((number("text") - number("back")).abs() > 0.5, "{found}");
        assert_eq!(found["foreign"], 0, "{found}");
        assert_eq!(
            (&found["ran"], &found["other"]),
            (&Json::Null, &json!(0)),
            "{found}"
        );
        assert_eq!(found["kept"], json!([0, 0]), "{found}");

        // A name does not turn what stands beside it.
        let names = "document.querySelector('.who').textContent + document.querySelector('#status').textContent";
        assert!(!page.browser.value(names).to_string().contains('\u{202e}'));
        let said = format!("typed at {size:?} {is_dark}");
        page.browser.press("m");
        page.browser.ask("Input.insertText", json!({"text": said}));
        page.browser.click("#box button");
        let last = format!(
            "[...document.querySelectorAll('#log .said')].some((one) => one.textContent === {})",
            Json::from(said.as_str())
        );
        page.browser.wait(&last);
        page.wait_for_text("#state", &said);
        page.browser
            .wait("document.querySelector('#text').value === ''");
        // All of the long text, which the page survives.
        page.browser
            .value("[...document.querySelectorAll('#log button')].at(-1).click()");
        page.browser.wait("[...document.querySelectorAll('#log .said')].some((one) => one.textContent.length > 1048576)");
        assert!(page.browser.value(MEASURE)["overflow"].as_f64() <= Some(0.0));
    }

    // An event that comes while the page is open.
    page.send(&token, "later");
    page.wait_for_text("#log", "later");
    page.browser.value("document.activeElement.blur()");
    page.browser.press("?");
    page.browser.wait("document.querySelector('#keys').open");
    page.browser.click("#keys button");

    // The kept turns as time lines: the newest first.
    page.browser
        .wait("document.querySelector('#turns').options.length > 4");
    page.browser.value(
        "(() => { const all = document.querySelector('#turns'); \
         all.selectedIndex = 1; all.dispatchEvent(new Event('change')) })()",
    );
    page.wait_for_text("#turn", "storeSet");
    page.browser
        .wait("document.querySelectorAll('#turn .lane span').length === 1");

    // The browser would refuse HTML made of texts, although the page makes none.
    let made = "(() => { try { document.createElement('p').innerHTML = '<b>x</b>'; return 'made' } \
                catch { return 'refused' } })()";
    assert_eq!(page.browser.value(made), "refused");

    // Only `admin` changes dead letters.
    assert_eq!(
        page.browser
            .value("document.querySelector('#drop').disabled"),
        true
    );
    let asked = json!({"agent": "echo/general/echo", "action": "drop"});
    let (status, answer) = post(&page.address, &token, "/v1/dead-letters", &asked);
    assert_eq!(status, 403, "{answer}");
    let admin = page.token(&["admin"]);
    page.browser.click("#leave");
    page.sign_in(&admin);
    page.browser
        .wait("document.querySelectorAll('#agents button').length === 1");
    page.browser.click("#agents button");
    page.browser
        .wait("!document.querySelector('#drop').disabled");
    page.browser.value("window.confirm = () => true");
    page.wait_for_text("#letters", "window.ran=3");
    page.browser.click("#drop");
    page.browser.wait("document.querySelector('#dead').hidden");
    assert_eq!(page.browser.value("window.ran ?? null"), Json::Null);
}

#[test]
#[ignore = "needs chromium"]
fn the_link_opens_the_inspector_once() {
    let mut page = Inspected::start("inspector-link", &["--inspect-write"]);
    let link = page.link.clone();
    let token = page.token(&["write:*"]);
    page.send(&token, "hello");
    page.browser.open(&link, (1200, 800), false);
    page.wait_for_text("#log", "hello");
    // The code is out of the address and the history.
    let place = page.browser.value("location.href");
    assert_eq!(place, format!("{}/inspect", page.address));
    page.browser.write("#text", "from the page");
    page.browser.click("#box button");
    page.wait_for_text("#log", "heard 13");
    // The session is no cookie: another window of the same browser has none.
    assert_eq!(page.browser.value("document.cookie"), "");
    page.browser.value("sessionStorage.clear()");
    page.browser.open(&link, (1200, 800), false);
    page.wait_for_text("#error", "was used");
}
