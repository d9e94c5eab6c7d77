//! Events of runs: their content and order; subscribers do not change a run.

use agent99::capabilities::ai::{
    Part, StopReason, StreamEvent, StreamHandle, StreamSink, TextRequest,
};
use agent99::capabilities::{
    AgentReply, AiProvider, BoxFuture, Capabilities, FnAgentRunner, ScriptedAi, ai::AiError,
};
use agent99::{
    AbortSignal, Agent, AgentRegistry, AtomTimeout, Call, CallEnd, Engine, ErrorCode, EventLimits,
    EventStream, Next, Outcome, Run, RunEvent, RunEventKind, RunOptions, Value, event_channel,
    json,
};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::new);

fn program(steps: serde_json::Value) -> Agent {
    let text = json!({"a99": 4, "op": "seq", "steps": steps}).to_string();
    ENGINE.compile(text).expect("a program")
}

fn ask(prompt: &str) -> serde_json::Value {
    json!({"op": "llmPredict", "prompt": prompt, "result": "said"})
}

fn chunk(data: serde_json::Value) -> serde_json::Value {
    json!({"op": "streamChunk", "data": data})
}

fn give(name: &str) -> serde_json::Value {
    json!({"op": "return", "value": name})
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(future)
}

fn run(agent: &Agent, options: RunOptions, granted: Capabilities) -> Outcome {
    block_on(ENGINE.run(agent, json!({}), options, granted))
}

/// The lines of the events that are ready.
fn lines(stream: &mut EventStream) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = stream.try_next() {
        lines.push(event.to_json().to_json_string());
    }
    lines
}

/// A model whose answers a test streams.
#[derive(Clone, Default)]
struct LiveAi(Arc<Mutex<BTreeMap<String, StreamSink>>>);

impl AiProvider for LiveAi {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        let Part::Text(prompt) = request.messages[0].content[0].clone() else {
            panic!("a prompt is text");
        };
        let (sink, handle) = StreamHandle::new(prompt.clone());
        self.0.lock().expect("whole").insert(prompt, sink);
        handle
    }
}

impl LiveAi {
    /// Sends a piece of the answer to this prompt, when the model was asked.
    async fn say(&self, prompt: &str, piece: &str) {
        loop {
            if let Some(sink) = self.0.lock().expect("whole").get(prompt) {
                sink.send(StreamEvent::Text(piece.to_owned()));
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn finish(&self, prompt: &str) {
        let sink = self.0.lock().expect("whole").remove(prompt);
        sink.expect("it was asked").finish(StopReason::EndTurn);
    }

    fn is_asked(&self, prompt: &str) -> bool {
        let all = self.0.lock().expect("whole");
        all.get(prompt).is_some_and(|sink| !sink.is_closed())
    }
}

#[test]
fn calls_text_and_chunks_are_told_in_order() {
    let agent = program(json!([ask("Say hi"), chunk(json!("said")), give("said")]));
    let (sink, mut stream) = event_channel(64);
    let models = Capabilities::none().with_ai(ScriptedAi::replies(["hi"]));
    let outcome = run(&agent, RunOptions::new().events(sink), models);
    assert_eq!(outcome.result, "hi".into());
    assert_eq!(
        lines(&mut stream),
        [
            r#"{"event":"call","call":"0.0","op":"llmPredict"}"#,
            r#"{"event":"text","call":"0.0","text":"hi"}"#,
            r#"{"event":"call_end","call":"0.0","end":"answered"}"#,
            r#"{"event":"call","call":"1.0","op":"streamChunk"}"#,
            r#"{"event":"chunk","call":"1.0","value":"hi"}"#,
            r#"{"event":"call_end","call":"1.0","end":"answered"}"#,
        ]
    );
    // The run dropped its sink.
    assert!(block_on(stream.next()).is_none());
}

#[test]
fn text_comes_while_the_model_speaks() {
    let agent = program(json!([ask("p"), give("said")]));
    let (sink, mut stream) = event_channel(64);
    let model = LiveAi::default();
    let granted = Capabilities::none().with_ai(model.clone());
    let outcome = block_on(async {
        let options = RunOptions::new().events(sink);
        let run = ENGINE.run(&agent, json!({}), options, granted);
        let read = async {
            let started = stream.next().await.expect("it began");
            assert_eq!(started.kind.name(), "call");
            for piece in ["one ", "two ", "three"] {
                model.say("p", piece).await;
                let event = stream.next().await.expect("a piece");
                let RunEventKind::Text { text, .. } = event.kind else {
                    panic!("{event:?}");
                };
                assert_eq!(text, piece);
            }
            model.finish("p");
        };
        tokio::join!(run, read).0
    });
    assert_eq!(outcome.result, "one two three".into());
}

#[test]
fn two_models_at_once_are_told_as_they_speak() {
    let agent = program(json!([
        {"op": "callAll", "result": "all", "calls": [
            {"op": "llmPredict", "prompt": "a"}, {"op": "llmPredict", "prompt": "b"}
        ]},
        give("all")
    ]));
    let (sink, mut stream) = event_channel(64);
    let model = LiveAi::default();
    let granted = Capabilities::none().with_ai(model.clone());
    let outcome = block_on(async {
        let options = RunOptions::new().events(sink);
        let run = ENGINE.run(&agent, json!({}), options, granted);
        let speak = async {
            for (prompt, piece) in [("a", "a1"), ("b", "b1"), ("b", "b2"), ("a", "a2")] {
                model.say(prompt, piece).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            model.finish("b");
            tokio::time::sleep(Duration::from_millis(5)).await;
            model.finish("a");
        };
        tokio::join!(run, speak).0
    });
    let both = json!([{"value": "a1a2"}, {"value": "b1b2"}]);
    assert_eq!(outcome.result, both.into());
    let mut told = Vec::new();
    while let Some(event) = stream.try_next() {
        let call = event.kind.call().expect("of a call").to_string();
        told.push(match event.kind {
            RunEventKind::Text { text, .. } => format!("{call} {text}"),
            kind => format!("{call} {}", kind.name()),
        });
    }
    assert_eq!(
        told,
        [
            "0.0 call",
            "0.1 call",
            "0.0 a1",
            "0.1 b1",
            "0.1 b2",
            "0.0 a2",
            "0.1 call_end",
            "0.0 call_end"
        ]
    );
}

#[test]
fn a_reader_that_never_reads_holds_the_call_and_not_the_run() {
    let endless = json!([
        {"op": "while", "condition": "1 == 1", "body": [
            chunk(json!("x")), {"op": "varSet", "key": "n", "value": 1}
        ]}
    ]);
    let agent = program(endless);
    let options = || RunOptions::new().fuel(1e9).expect("an amount");
    // The run's time.
    let (sink, mut stream) = event_channel(1);
    let began = Instant::now();
    let options_timed = options().timeout_ms(60).events(sink);
    let outcome = run(&agent, options_timed, Capabilities::none());
    let error = outcome.error.expect("it was held");
    assert_eq!(error.code, ErrorCode::RunTimeout);
    assert!(began.elapsed() < Duration::from_secs(5));
    // Missing turns are not charged.
    assert!(outcome.fuel_used.to_f64() < 10.0, "{}", outcome.fuel_used);
    assert!(stream.waiting_bytes() < 1_000);
    assert_eq!(
        lines(&mut stream),
        [
            r#"{"event":"call","call":"0.0","op":"streamChunk"}"#,
            r#"{"event":"call_end","call":"0.0","end":"stopped"}"#,
        ]
    );
    // A stop from outside, at once.
    let (sink, stream) = event_channel(1);
    let signal = AbortSignal::new();
    let stopped = options().events(sink).signal(signal.clone());
    let (outcome, took) = block_on(async {
        let run = ENGINE.run(&agent, json!({}), stopped, Capabilities::none());
        let abort = async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            signal.abort();
            Instant::now()
        };
        let (outcome, aborted) = tokio::join!(run, abort);
        (outcome, aborted.elapsed())
    });
    assert_eq!(outcome.error.map(|e| e.code), Some(ErrorCode::Aborted));
    assert!(took < Duration::from_millis(500), "{took:?}");
    drop(stream);
}

#[test]
fn a_model_waits_for_its_reader_within_its_own_time() {
    let agent = program(json!([
        {"op": "try", "try": [ask("p")], "catch": [{"op": "varSet", "key": "said", "value": "error"}]},
        give("said")
    ]));
    let (sink, mut stream) = event_channel(1);
    let mut options = RunOptions::new().events(sink).timeout_ms(60_000);
    let own = AtomTimeout::Ms(40);
    options = options.atom_timeout("llmPredict", own);
    let models = Capabilities::none().with_ai(ScriptedAi::replies(["hi"]));
    let outcome = run(&agent, options, models);
    assert_eq!(outcome.result, "Atom 'llmPredict' timed out".into());
    assert_eq!(lines(&mut stream).len(), 2);
}

#[test]
fn nobody_waits_for_a_reader_that_is_gone() {
    let steps: Vec<_> = (0..50).map(|n| chunk(json!(n))).collect();
    let agent = program(json!(steps));
    let (sink, stream) = event_channel(1);
    drop(stream);
    let outcome = run(&agent, RunOptions::new().events(sink), Capabilities::none());
    assert_eq!(outcome.error, None);
    // A reader that leaves while a call waits for it.
    let (sink, mut stream) = event_channel(1);
    let outcome = block_on(async {
        let options = RunOptions::new().events(sink);
        let run = ENGINE.run(&agent, json!({}), options, Capabilities::none());
        let leave = async {
            stream.next().await;
            stream.next().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(stream);
        };
        tokio::join!(run, leave).0
    });
    assert_eq!(outcome.error, None);
}

#[test]
fn ten_megabytes_of_tokens_go_through_a_small_channel() {
    const PIECES: usize = 20_000;
    let piece = "0123456789abcdef".repeat(32);
    let agent = program(json!([ask("p")]));
    let limits = EventLimits {
        events: 8,
        bytes: 100_000,
    };
    let (sink, mut stream) = event_channel(limits);
    let model = LiveAi::default();
    let granted = Capabilities::none().with_ai(model.clone());
    let mut options = RunOptions::new().events(sink).timeout_ms(60_000);
    options = options.fuel(1e5).expect("an amount");
    options.limits.boundary.max_bytes = 16 << 20;
    let (outcome, most, told) = block_on(async {
        let run = ENGINE.run(&agent, json!({}), options, granted);
        let speak = async {
            for at in 0..PIECES {
                model.say("p", &piece).await;
                if at % 100 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            model.finish("p");
        };
        let read = async {
            let (mut most, mut told) = (0, 0);
            while let Some(event) = stream.next().await {
                most = most.max(stream.waiting_bytes());
                if let RunEventKind::Text { text, .. } = event.kind {
                    told += text.len();
                }
            }
            (most, told)
        };
        let (outcome, (), (most, told)) = tokio::join!(run, speak, read);
        (outcome, most, told)
    });
    assert_eq!(outcome.error, None);
    assert_eq!(told, PIECES * piece.len());
    assert!(told > 10_000_000 && most <= 100_000, "{most} bytes waited");
}

#[test]
fn functions_are_called_with_each_event() {
    let agent = program(json!([ask("p"), chunk(json!([1, 2])), give("said")]));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let options = RunOptions::new().on_event(move |event| {
        let mut seen = told.lock().expect("whole");
        seen.push(event.kind.name());
        assert!(seen.len() < 5, "the fifth is too much for it");
    });
    let models = Capabilities::none().with_ai(ScriptedAi::replies(["hi"]));
    let outcome = run(&agent, options, models);
    assert_eq!(outcome.result, "hi".into());
    let seen = seen.lock().unwrap_or_else(|e| e.into_inner());
    assert_eq!(*seen, ["call", "text", "call_end", "call", "chunk"]);
}

#[test]
fn steps_go_to_the_same_sink_if_it_takes_the_trace() {
    let agent = program(json!([{"op": "varSet", "key": "a", "value": 1}, chunk(json!("a"))]));
    let (sink, mut stream) = event_channel(64);
    let options = RunOptions::new().trace_to(sink.clone()).events(sink);
    let outcome = run(&agent, options, Capabilities::none());
    assert_eq!((outcome.error, outcome.trace), (None, None));
    let mut names = Vec::new();
    while let Some(event) = stream.try_next() {
        names.push(match event.kind {
            RunEventKind::Step(step) => step.op.to_string(),
            kind => kind.name().to_owned(),
        });
    }
    let wanted = ["varSet", "call", "chunk", "call_end", "streamChunk", "seq"];
    assert_eq!(names, wanted);
    // Steps do not wait for room.
    let (sink, mut stream) = event_channel(1);
    let options = RunOptions::new().trace_to(sink);
    assert_eq!(run(&agent, options, Capabilities::none()).error, None);
    let kinds = [stream.try_next(), stream.try_next()];
    let kinds = kinds.map(|event| event.map(|event| event.kind));
    let [Some(RunEventKind::Step(first)), Some(missed)] = kinds else {
        panic!("{kinds:?}");
    };
    assert_eq!(first.op, "varSet");
    assert_eq!(missed, RunEventKind::Missed { events: 2 });
}

#[test]
fn runs_that_may_not_wait_miss_what_has_no_room() {
    let steps: Vec<_> = (0..5).map(|n| chunk(json!(n))).collect();
    let agent = program(json!(steps));
    let (sink, mut stream) = event_channel(2);
    let options = RunOptions::new().events(sink);
    let outcome = ENGINE.run_sync(&agent, json!({}), options);
    assert_eq!(outcome.error, None);
    let names: Vec<&str> = std::iter::from_fn(|| stream.try_next())
        .map(|event| event.kind.name())
        .collect();
    // The end event of a started call exceeds the limit.
    assert_eq!(names, ["call", "chunk", "call_end", "missed"]);
}

#[test]
fn events_of_sub_agents_carry_their_names() {
    let reader = program(json!([ask("deep"), give("said")]));
    let researcher = program(json!([
        chunk(json!("'reading'")),
        {"op": "agentRun", "agentId": "reader", "input": {}, "result": "r"},
        give("r")
    ]));
    let registry = AgentRegistry::builder(&ENGINE)
        .agent("reader", reader)
        .agent("researcher", researcher)
        .granted(Capabilities::none().with_ai(ScriptedAi::replies(["found"])))
        .build()
        .expect("a registry");
    let main = program(json!([
        {"op": "agentRun", "agentId": "researcher", "input": {}, "result": "r"},
        give("r")
    ]));
    let (sink, mut stream) = event_channel(64);
    let options = RunOptions::new().events(sink);
    let outcome = run(&main, options, registry.capabilities());
    assert_eq!(outcome.result, "found".into());
    let told: Vec<String> = std::iter::from_fn(|| stream.try_next())
        .map(|RunEvent { agents, kind, .. }| {
            let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
            let call = kind.call().expect("of a call");
            format!("{} {call} {}", agents.join("/"), kind.name())
        })
        .collect();
    assert_eq!(
        told,
        [
            " 0.0 call",
            "researcher 0.0/0.0 call",
            "researcher 0.0/0.0 chunk",
            "researcher 0.0/0.0 call_end",
            "researcher 0.0/1.0 call",
            "researcher/reader 0.0/1.0/0.0 call",
            "researcher/reader 0.0/1.0/0.0 text",
            "researcher/reader 0.0/1.0/0.0 call_end",
            "researcher 0.0/1.0 call_end",
            " 0.0 call_end",
        ]
    );
}

#[test]
fn a_runner_of_the_host_gets_the_sink() {
    let runner = FnAgentRunner::new(|id, _, call| {
        let events = call.events.as_ref().expect("somebody listens");
        let name = id.as_str().expect("a name");
        events.in_agent(name).try_send(RunEventKind::Chunk {
            call: call.id.clone(),
            value: 1.0.into(),
        });
        Ok(AgentReply::from(Value::Null))
    });
    let main = program(json!([{"op": "agentRun", "agentId": "own", "input": {}}]));
    let (sink, mut stream) = event_channel(8);
    let options = RunOptions::new().events(sink);
    let granted = Capabilities::none().with_agent(runner);
    assert_eq!(run(&main, options, granted).error, None);
    assert_eq!(
        lines(&mut stream)[1],
        r#"{"event":"chunk","agents":["own"],"call":"0.0","value":1}"#
    );
}

/// The next call of a run.
fn call(run: &mut Run) -> Box<Call> {
    loop {
        match run.next(Duration::ZERO) {
            Next::Call(call) => return call,
            Next::Pause => {}
            other => panic!("a call was expected: {other:?}"),
        }
    }
}

#[test]
fn a_restored_run_tells_a_call_again_and_an_answered_one_never() {
    let agent = program(json!([chunk(json!("'first'")), ask("p"), give("said")]));
    let (sink, mut stream) = event_channel(64);
    let model = LiveAi::default();
    let granted = || Capabilities::none().with_ai(model.clone());
    let mut run = ENGINE.start(&agent, json!({}), RunOptions::new().events(sink), granted());
    let first = call(&mut run);
    let id = first.id.clone();
    let answer = block_on(first.start(None));
    run.answer(&id, answer).expect("it waits");
    let asking = call(&mut run);
    let id = asking.id.clone();
    let snapshot = block_on(async {
        let mut answer = std::pin::pin!(asking.start(None));
        // Half of the answer comes, then the run is suspended.
        tokio::select! {
            biased;
            _ = &mut answer => panic!("the model did not end"),
            () = async {
                model.say("p", "half").await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            } => {}
        }
        run.snapshot().expect("it waits")
    });
    drop(run);
    assert!(!model.is_asked("p"), "the model is told to stop");
    let told = lines(&mut stream);
    assert_eq!(told.len(), 6, "{told:?}");
    assert_eq!(told[4], r#"{"event":"text","call":"1.0","text":"half"}"#);
    assert_eq!(
        told[5],
        r#"{"event":"call_end","call":"1.0","end":"stopped"}"#
    );

    // In another process: the call is made again with the same id.
    let restore = |options: RunOptions| {
        let run = ENGINE.restore(&agent, &snapshot, options, granted());
        run.expect("a snapshot")
    };
    let (sink, mut stream) = event_channel(64);
    let mut run = restore(RunOptions::new().events(sink));
    let again = call(&mut run);
    assert_eq!(again.id, id);
    let answer = block_on(async {
        let answer = again.start(None);
        let speak = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            model.say("p", "whole").await;
            model.finish("p");
        };
        tokio::join!(answer, speak).0
    });
    run.answer(&id, answer).expect("it waits");
    let Next::Done(outcome) = run.next(Duration::ZERO) else {
        panic!("it is over");
    };
    assert_eq!(outcome.result, "whole".into());
    assert_eq!(
        lines(&mut stream),
        [
            r#"{"event":"call","call":"1.0","op":"llmPredict"}"#,
            r#"{"event":"text","call":"1.0","text":"whole"}"#,
            r#"{"event":"call_end","call":"1.0","end":"answered"}"#,
        ]
    );

    // From a journal: answered calls emit no events.
    let (sink, mut stream) = event_channel(64);
    let mut run = restore(RunOptions::new().events(sink));
    let replayed = call(&mut run).id;
    let answer = Value::from("from the journal").into();
    run.answer(&replayed, Ok(answer)).expect("it waits");
    assert!(matches!(run.next(Duration::ZERO), Next::Done(_)));
    assert_eq!(lines(&mut stream), [] as [&str; 0]);
}

#[test]
fn calls_that_fail_or_are_late_end() {
    let agent = program(json!([
        {"op": "callAll", "result": "all", "calls": [
            {"op": "llmPredict", "prompt": "late"},
            {"op": "httpFetch", "url": "https://a.example"},
        ]},
    ]));
    let (sink, mut stream) = event_channel(64);
    let options = RunOptions::new()
        .events(sink)
        .atom_timeout("llmPredict", AtomTimeout::Ms(20));
    let granted = Capabilities::none().with_ai(LiveAi::default());
    run(&agent, options, granted);
    let ends: Vec<CallEnd> = std::iter::from_fn(|| stream.try_next())
        .filter_map(|event| match event.kind {
            RunEventKind::CallEnded { end, .. } => Some(end),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [CallEnd::Failed, CallEnd::Stopped]);
}

#[test]
fn inputs_and_errors_of_calls_are_in_no_event() {
    const SECRET: &str = "s3cr3t-t0ken";
    let model = ScriptedAi::new(agent99::capabilities::ai::ModelScript {
        turns: vec![agent99::capabilities::ai::ModelTurn {
            status: Some(401),
            message: Some(format!("bad key {SECRET}")),
            ..Default::default()
        }],
    });
    let agent = program(json!([
        {"op": "try", "try": [ask(SECRET)], "catch": []},
        {"op": "storeSet", "key": SECRET, "value": SECRET},
        {"op": "storeGet", "key": SECRET, "result": "kept"},
        chunk(json!({"=": "kept == ''"})),
    ]));
    let (sink, mut stream) = event_channel(64);
    let options = RunOptions::new()
        .context(json!({"key": SECRET}))
        .events(sink);
    let granted = Capabilities::none().with_ai(model);
    assert_eq!(run(&agent, options, granted).error, None);
    let mut told = 0;
    while let Some(event) = stream.try_next() {
        told += 1;
        let shown = format!("{} {event:?}", event.to_json().to_json_string());
        assert!(!shown.contains(SECRET), "{shown}");
    }
    assert_eq!(told, 9);
}
