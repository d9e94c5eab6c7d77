//! The language server, driven as an editor does.

use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// An editor that has started the server.
struct Editor {
    server: Child,
    output: BufReader<ChildStdout>,
    last: u32,
    /// Notifications that came before an answer.
    notes: Vec<Json>,
}

impl Editor {
    fn start() -> Editor {
        let mut server = Command::new(env!("CARGO_BIN_EXE_a99"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let output = BufReader::new(server.stdout.take().expect("it is piped"));
        Editor {
            server,
            output,
            last: 0,
            notes: Vec::new(),
        }
    }

    fn initialized(capabilities: Json) -> (Editor, Json) {
        let mut editor = Editor::start();
        let answer = editor.ask(
            "initialize",
            json!({"processId": null, "capabilities": capabilities}),
        );
        editor.note("initialized", json!({}));
        (editor, answer["capabilities"].clone())
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.server.stdin.as_mut().expect("it is piped");
        // A server that has ended reads no more.
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    fn send(&mut self, message: &Json) {
        let text = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    fn note(&mut self, method: &str, params: Json) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn receive(&mut self) -> Option<Json> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("a header") == 0 {
                return None;
            }
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().expect("a number"),
                None => break,
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a message");
        Some(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// The result of a request, or its error.
    fn ask(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive().expect("an answer");
            if message["id"] == id {
                return message.get("result").unwrap_or(&message["error"]).clone();
            }
            self.notes.push(message);
        }
    }

    /// The findings that are published next: version, and code with place and text of each.
    fn findings(&mut self) -> (Json, Vec<(String, Json)>) {
        let message = match self.notes.is_empty() {
            true => self.receive().expect("findings"),
            false => self.notes.remove(0),
        };
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        let found = message["params"]["diagnostics"].as_array().expect("a list");
        let found = found.iter().map(|one| {
            let code = one["code"].as_str().unwrap_or_default().to_owned();
            (code, one["range"].clone())
        });
        (message["params"]["version"].clone(), found.collect())
    }

    fn open(&mut self, uri: &str, text: &str) {
        self.note(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri, "languageId": "", "version": 1, "text": text}}),
        );
    }

    /// Asks about the place of the mark `|` in a text that is opened without it.
    fn at(&mut self, method: &str, uri: &str, marked: &str) -> Json {
        let at = marked.find('|').expect("a mark");
        let before = &marked[..at];
        self.open(uri, &marked.replacen('|', "", 1));
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default();
        let position = json!({"line": line, "character": column.encode_utf16().count()});
        self.ask(
            method,
            json!({"textDocument": {"uri": uri}, "position": position}),
        )
    }

    fn hover(&mut self, uri: &str, marked: &str) -> String {
        let answer = self.at("textDocument/hover", uri, marked);
        answer["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn labels(&mut self, uri: &str, marked: &str) -> Vec<String> {
        let answer = self.at("textDocument/completion", uri, marked);
        let items = answer["items"].as_array().expect("items");
        let label = |item: &Json| item["label"].as_str().unwrap_or_default().to_owned();
        items.iter().map(label).collect()
    }

    /// Ends the session as the protocol wants.
    fn end(mut self) {
        assert_eq!(self.ask("shutdown", Json::Null), Json::Null);
        self.note("exit", Json::Null);
        let code = self.server.wait().expect("it ends").code();
        assert_eq!(code, Some(0));
    }

    /// The last words of a server that has ended by itself, and its exit code.
    fn ended(mut self) -> (Vec<Json>, Option<i32>) {
        drop(self.server.stdin.take());
        let said = std::iter::from_fn(|| self.receive()).collect();
        let code = self.server.wait().expect("it ends").code();
        let mut errors = String::new();
        let mut stderr = self.server.stderr.take().expect("it is piped");
        stderr.read_to_string(&mut errors).expect("text");
        assert!(!errors.contains("panicked"), "{errors}");
        (said, code)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn range(line: u32, start: u32, end: u32) -> Json {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

const SOURCE: &str = "file:///a/agent.ajs";
const PROGRAM: &str = "file:///a/agent.json";

#[test]
fn findings_follow_the_text() {
    let (mut editor, capabilities) = Editor::initialized(json!({}));
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    let text =
        "function agent({ url }) {\n  const a = '\u{1f600}' + htpFetch({ url })\n  return a\n}\n";
    editor.open(SOURCE, text);
    let (version, found) = editor.findings();
    assert_eq!((version, found.len()), (json!(1), 1));
    // The smile is two units of UTF-16.
    assert_eq!(
        found[0],
        ("source.unknown_name".to_owned(), range(1, 19, 27))
    );
    let change = json!({"range": range(1, 19, 27), "text": "httpFetch"});
    editor.note(
        "textDocument/didChange",
        json!({"textDocument": {"uri": SOURCE, "version": 2}, "contentChanges": [change]}),
    );
    assert_eq!(editor.findings(), (json!(2), Vec::new()));
    editor.note(
        "textDocument/didClose",
        json!({"textDocument": {"uri": SOURCE}}),
    );
    assert_eq!(editor.findings(), (Json::Null, Vec::new()));

    editor.open(
        PROGRAM,
        "{\"op\": \"seq\", \"steps\": [\n  {\"op\": \"nope\"}]}",
    );
    let (_, found) = editor.findings();
    assert_eq!(found[0], ("lint.unknown_atom".to_owned(), range(1, 9, 15)));
    // Other files have no findings.
    editor.open("file:///a/package.json", "{\"name\": 1,}");
    editor.open("file:///a/other.ts", "import x from 'y'\nclass A {}");
    editor.open("file:///a/broken.json", "{\"op\": \"seq\",");
    assert_eq!(editor.findings().1[0].0, "json.syntax");
    editor.end();
}

#[test]
fn columns_count_what_the_editor_prefers() {
    let offered = json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}});
    let (mut editor, capabilities) = Editor::initialized(offered);
    assert_eq!(capabilities["positionEncoding"], "utf-8");
    editor.open(SOURCE, "function agent() { return '\u{1f600}' + nope }");
    assert_eq!(editor.findings().1[0].1, range(0, 35, 39));
    editor.end();
}

#[test]
fn names_are_documented_with_their_prices() {
    let (mut editor, _) = Editor::initialized(json!({}));
    let docs = editor.hover(
        SOURCE,
        "function agent() { return http|Fetch({ url: 'x' }) }",
    );
    assert!(
        docs.contains("Price: 5.") && docs.contains("Capability: `fetch`"),
        "{docs}"
    );
    for (marked, part) in [
        (
            "function agent() { return httpFetch({ u|rl: 'x' }) }",
            "An input of `httpFetch`",
        ),
        (
            "function agent({ n }) { return Math.flo|or(n) }",
            "Math.floor",
        ),
        (
            "function agent({ n }) { return n.tri|m() }",
            "white space at its ends",
        ),
        ("function agent({ n }) { return n| }", "parameter"),
        (
            "const httpFetch = 1\nfunction agent() { return http|Fetch }",
            "`httpFetch`: const",
        ),
        (
            "function agent() { return JSON|.parse('1') }",
            "`stringify`",
        ),
        ("function agent() { return 'http|Fetch' }", ""),
        ("// http|Fetch", ""),
    ] {
        let docs = editor.hover(SOURCE, marked);
        assert!(
            docs.contains(part) && docs.is_empty() == part.is_empty(),
            "{marked}: {docs}"
        );
    }
    for (marked, part) in [
        (
            "{\"op\": \"seq\", \"steps\": [{\"op\": \"le|n\", \"list\": \"a\"}]}",
            "len({ list })",
        ),
        (
            "{\"op\": \"seq\", \"steps\": [{\"op\": \"len\", \"li|st\": \"a\"}]}",
            "An input of `len`",
        ),
        ("{\"op\": \"seq\", \"ste|ps\": []}", "order"),
        (
            "{\"op\": \"seq\", \"steps\": [{\"op\": \"return\", \"value\": {\"=\": \"Math.m|ax(1)\"}}]}",
            "Math.max",
        ),
        (
            "{\"op\": \"seq\", \"steps\": [{\"op\": \"return\", \"value\": {\"$expr\": \"bin|ary\"}}]}",
            "$expr: binary",
        ),
    ] {
        let docs = editor.hover(PROGRAM, marked);
        assert!(docs.contains(part), "{marked}: {docs}");
    }
    editor.end();
}

#[test]
fn completion_proposes_what_fits() {
    let (mut editor, _) = Editor::initialized(json!({}));
    let inside =
        |body: &str| format!("function agent({{ url }}) {{\n  const a = 1\n  {body}\n}}\n");
    let has = |labels: &[String], wanted: &[&str], others: &[&str]| {
        let holds = |name: &&str| labels.iter().any(|label| label == name);
        assert!(wanted.iter().all(&holds), "{wanted:?}: {labels:?}");
        assert!(!others.iter().any(holds), "{others:?}: {labels:?}");
    };
    let labels = editor.labels(SOURCE, &inside("return |"));
    has(
        &labels,
        &["a", "url", "httpFetch", "Math", "context"],
        &["forEach", "trim"],
    );
    let labels = editor.labels(SOURCE, &inside("return httpFetch({ url, | })"));
    has(&labels, &["method", "headers"], &["url", "httpFetch"]);
    let labels = editor.labels(SOURCE, &inside("return httpFetch({ method: '|' })"));
    has(&labels, &["GET", "POST"], &["httpFetch"]);
    has(
        &editor.labels(SOURCE, &inside("return Math.|")),
        &["floor", "PI"],
        &["trim"],
    );
    has(
        &editor.labels(SOURCE, &inside("return url.|")),
        &["trim", "length"],
        &["floor", "blink"],
    );
    assert!(editor.labels(SOURCE, &inside("// |")).is_empty());

    let step = |step: &str| {
        format!(
            "{{\"op\": \"seq\", \"steps\": [{{\"op\": \"varSet\", \"key\": \"total\"}}, {step}]}}"
        )
    };
    has(
        &editor.labels(PROGRAM, &step("{\"op\": \"|\"}")),
        &["httpFetch", "forEach"],
        &["total"],
    );
    let labels = editor.labels(PROGRAM, &step("{\"op\": \"httpFetch\", \"|\"}"));
    has(&labels, &["url", "result"], &["op", "steps"]);
    let labels = editor.labels(PROGRAM, &step("{\"op\": \"httpFetch\", \"url\": \"|\"}"));
    has(&labels, &["total"], &["Math"]);
    let labels = editor.labels(PROGRAM, &step("{\"op\": \"if\", \"condition\": \"to|\"}"));
    has(&labels, &["total", "Math"], &["httpFetch"]);

    let answer = editor.at(
        "textDocument/completion",
        PROGRAM,
        &step("{\"op\": \"len\", |}"),
    );
    let item = &answer["items"][0];
    assert_eq!(item["textEdit"]["newText"], "\"list\"");
    let resolved = editor.ask("completionItem/resolve", item.clone());
    let docs = resolved["documentation"]["value"]
        .as_str()
        .unwrap_or_default();
    assert!(docs.contains("An input of `len`"), "{resolved}");
    editor.end();
}

#[test]
fn findings_are_fixed_and_programs_laid_out() {
    let (mut editor, _) = Editor::initialized(json!({}));
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let mut fixes = |uri: &str, text: &str| {
        editor.open(uri, text);
        let answer = editor.ask(
            "textDocument/codeAction",
            json!({"textDocument": {"uri": uri}, "range": all, "context": {"diagnostics": []}}),
        );
        let actions = answer.as_array().expect("actions").clone();
        let edit = |action: &Json| {
            let edit = &action["edit"]["changes"][uri][0];
            (
                edit["range"].clone(),
                edit["newText"].as_str().unwrap_or_default().to_owned(),
            )
        };
        actions.iter().map(edit).collect::<Vec<_>>()
    };
    let text =
        "function agent({ n }) {\n  return [n.toFixd(2), Math.flor(n), htpFetch({ url: n })]\n}\n";
    assert_eq!(
        fixes(SOURCE, text),
        [
            (range(1, 12, 18), "toFixed".to_owned()),
            (range(1, 23, 32), "Math.floor".to_owned()),
            (range(1, 37, 45), "httpFetch".to_owned()),
        ]
    );
    let text =
        "{\"op\": \"seq\", \"steps\": [{\"op\": \"htpFetch\", \"url\": \"x\", \"result\": \"a\"}]}";
    assert_eq!(
        fixes(PROGRAM, text),
        [(range(0, 32, 40), "httpFetch".to_owned())]
    );
    assert!(fixes(SOURCE, "function agent() { class A {} }").is_empty());

    editor.open(PROGRAM, "{\"op\": \"seq\",\n\"steps\": []}\n");
    let params = json!({"textDocument": {"uri": PROGRAM}, "options": {}});
    let edits = editor.ask("textDocument/formatting", params.clone());
    assert_eq!(
        edits[0]["newText"],
        "{\n  \"op\": \"seq\",\n  \"steps\": []\n}\n"
    );
    editor.open(PROGRAM, "{\"op\": \"seq\",");
    assert_eq!(editor.ask("textDocument/formatting", params), Json::Null);
    editor.end();
}

#[test]
fn hostile_input_is_an_error_and_no_panic() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut editor = Editor::start();
    for text in ["", "{", "nul", "\u{0}", &deep] {
        editor.write(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
        let answer = editor.receive().expect("an error");
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Json::Null, &json!(-32700))
        );
    }
    // The session goes on.
    assert!(
        editor
            .ask("initialize", json!({"capabilities": 5}))
            .is_object()
    );
    // Programs that attack the compiler.
    editor.open(PROGRAM, &format!("{{\"op\": {deep}"));
    editor.open(SOURCE, &"(".repeat(100_000));
    editor.open(SOURCE, &"`${".repeat(50_000));
    editor.open(SOURCE, &"a => ".repeat(20_000));
    let params =
        json!({"textDocument": {"uri": SOURCE}, "position": {"line": 0, "character": 50_000}});
    editor.ask("textDocument/hover", params.clone());
    editor.ask("textDocument/completion", params);
    editor.end();

    for input in [
        "\r\n\r\n",
        "hello\r\n\r\n",
        "Content-Length: 99999999999999\r\n\r\n{}",
        "Content-Length: 18446744073709551615\r\n\r\n{}",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 10\r\n\r\n{}",
        "Content-Length: 10",
    ] {
        let mut editor = Editor::start();
        editor.write(input.as_bytes());
        let (said, code) = editor.ended();
        assert_eq!(code, Some(1), "{input:?}");
        assert_eq!(said.len(), 1, "{input:?}");
        assert_eq!(said[0]["error"]["code"], -32700, "{input:?}");
    }
    let (said, code) = Editor::start().ended();
    assert_eq!((said.len(), code), (0, Some(1)));
}

/// A source and a program of this many lines.
fn long(lines: usize) -> (String, String) {
    let mut source = "function agent({ n }) {\n  let total = 0\n".to_owned();
    let mut steps = Vec::new();
    for at in 0..lines - 4 {
        source.push_str(&format!(
            "  total += n > {at} ? Math.floor(n / {}) : {at}\n",
            at + 1
        ));
        steps.push(format!(
            "  {{ \"op\": \"varSet\", \"key\": \"v{}\", \"value\": {{ \"=\": \"n + {at}\" }} }}",
            at % 50
        ));
    }
    source.push_str("  return total\n}\n");
    let program = format!(
        "{{ \"op\": \"seq\", \"a99\": 4, \"steps\": [\n{}\n] }}\n",
        steps.join(",\n")
    );
    (source, program)
}

/// A text of 5,000 lines is checked within 100 ms in a release build, and anything else is
/// answered sooner. A build without optimisation may take a hundred times that.
#[test]
fn long_texts_are_answered_soon() {
    let most = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 100 });
    let (source, program) = long(5_000);
    let (mut editor, _) = Editor::initialized(json!({}));
    for (uri, text) in [(SOURCE, source), (PROGRAM, program)] {
        editor.open(uri, &text);
        editor.findings();
        let edit = json!({"range": range(2_500, 0, 0), "text": " "});
        let begun = Instant::now();
        editor.note(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]}),
        );
        let (version, _) = editor.findings();
        let checked = begun.elapsed();
        assert_eq!(version, 2);
        let params =
            json!({"textDocument": {"uri": uri}, "position": {"line": 2_500, "character": 20}});
        let begun = Instant::now();
        editor.ask("textDocument/hover", params.clone());
        let hovered = begun.elapsed();
        let begun = Instant::now();
        editor.ask("textDocument/completion", params);
        let completed = begun.elapsed();
        println!("{uri}: checked in {checked:?}, hover {hovered:?}, completion {completed:?}");
        assert!(checked < most && hovered < most && completed < most);
    }
    editor.end();
}
