//! A browser that a test drives, over the pipe of Chromium's remote debugging.

use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a page may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The file with what the browser writes to its standard error.
    said: String,
    session: Json,
    id: u64,
}

impl Browser {
    /// Starts Chromium with its files in this folder.
    pub fn start(folder: &str) -> Browser {
        // It reads requests from the descriptor 3, and writes answers to 4.
        let script = "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>\"$said\"";
        std::fs::create_dir_all(folder).expect("a folder");
        let said = format!("{folder}/said");
        let mut child = Command::new("sh")
            .args([
                "-c",
                script,
                "sh",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
            ])
            .args(["--disable-dev-shm-usage", "--disable-breakpad"])
            .args(["--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={folder}/chromium"))
            // Containers often have little shared memory, and a home that cannot be written.
            .env("HOME", format!("{folder}/home"))
            .env("said", &said)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut browser = Browser {
            child,
            input,
            output,
            said,
            session: Json::Null,
            id: 0,
        };
        let page = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let params = json!({"targetId": page["targetId"], "flatten": true});
        browser.session = browser.ask("Target.attachToTarget", params)["sessionId"].take();
        browser
    }

    pub fn ask(&mut self, method: &str, params: Json) -> Json {
        self.id += 1;
        let mut request = json!({"id": self.id, "method": method, "params": params});
        if !self.session.is_null() {
            request["sessionId"] = self.session.clone();
        }
        let sent = self.input.write_all(format!("{request}\0").as_bytes());
        if let Err(error) = sent {
            let said = std::fs::read_to_string(&self.said);
            panic!("the browser ended: {error}: {}", said.unwrap_or_default());
        }
        loop {
            let mut answer = Vec::new();
            let read = self.output.read_until(0, &mut answer).expect("an answer");
            if read == 0 {
                let said = std::fs::read_to_string(&self.said);
                panic!("the browser ended: {}", said.unwrap_or_default());
            }
            answer.pop();
            let mut answer: Json = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Opens a page in a window of this size.
    pub fn open(&mut self, url: &str, (width, height): (u32, u32), is_dark: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", json!({"features": media}));
        // A fragment alone would load nothing.
        self.ask("Page.navigate", json!({"url": "about:blank"}));
        self.ask("Page.navigate", json!({"url": url}));
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Json {
        let params = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true
        });
        let mut done = self.ask("Runtime.evaluate", params);
        assert!(done["exceptionDetails"].is_null(), "{expression}: {done}");
        done["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while self.value(expression) != true {
            if began.elapsed() > PATIENCE {
                let page = self.value("document.body.innerText.slice(0, 3000)");
                panic!("never {expression}: {page}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Writes a text into a field, as an input method does.
    pub fn write(&mut self, field: &str, text: &str) {
        self.value(&format!("document.querySelector('{field}').focus()"));
        self.ask("Input.insertText", json!({"text": text}));
    }

    /// Presses a key that has this text.
    pub fn press(&mut self, key: &str) {
        self.ask(
            "Input.dispatchKeyEvent",
            json!({"type": "keyDown", "key": key, "text": key}),
        );
        self.ask(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key}),
        );
    }

    pub fn click(&mut self, what: &str) {
        self.value(&format!("document.querySelector('{what}').click()"));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
