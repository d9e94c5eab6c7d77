//! Atoms that call the host, and atoms that run other programs (language sections 2.6 to 2.8,
//! decisions D22, D40, D41).

use super::coerce::{to_num, to_str};
use super::host::Answer;
use super::json;
use super::machine::{Flow, Machine, Scope, ScopeRef, record};
use super::meter::{pay_crossing, pay_deep, sizes, take_used};
use super::prices;
use super::steps::Node;
use super::value::{Fail, JsStr, OVal, Obj, Res, fail, from_value, js, lossy, to_text};
use super::{options::TraceEvent, statics};
use a99_core::costs::{BOTH, STORE_BYTE, Sizes, XML};
use a99_core::fuel::Fuel;
use a99_core::json::Document;
use a99_core::value::{Map, Value};

/// Deepest nesting of sub-agents and `runCode` (decision D41).
pub(super) const MAX_AGENT_DEPTH: u32 = 10;

impl Machine<'_> {
    /// Waits for an answer; a timeout may come first.
    pub(super) fn wait(&mut self, op: &str, answer: Answer) -> Res<Value> {
        let before = self.begin_wait();
        let done = self.wait_alone(op, answer);
        self.end_wait(before);
        done
    }

    fn wait_alone(&mut self, op: &str, answer: Answer) -> Res<Value> {
        let custom = self
            .opts
            .custom
            .iter()
            .find(|a| a.op == op)
            .map(|a| a.timeout_ms);
        let limit = self.opts.timeout_overrides.get(op).copied().or(custom);
        let limit = limit.unwrap_or_else(|| prices::of(op).map_or(0.0, |p| p.1));
        let now = self.elapsed_ms();
        let limit = if limit > 0.0 {
            now + limit
        } else {
            f64::INFINITY
        };
        let abort = self.opts.abort_after_ms.unwrap_or(f64::INFINITY);
        let deadline = self.deadline_ms();
        let end = now + answer.delay_ms;
        let first = end.min(limit).min(abort).min(deadline);
        self.waited_ms += first - now;
        if answer.delay_ms <= 0.0 || first == end {
            return answer.result.map_err(|message| Fail {
                code: a99_core::error::ErrorCode::Program,
                // An error without a text shows the name of its kind.
                message: match message.is_empty() {
                    true => js("Error"),
                    false => super::value::from_wtf8(message.as_bytes()),
                },
                op: None,
            });
        }
        Err(if first == abort {
            self.aborted()
        } else if first == deadline {
            self.timed_out()
        } else {
            Fail::coded(
                a99_core::error::ErrorCode::AtomTimeout,
                format!("Atom '{op}' timed out"),
            )
        })
    }

    pub(super) fn call_host(&mut self, op: &str, method: &str, args: &[OVal]) -> Res<OVal> {
        let args = args
            .iter()
            .map(|v| self.export(v))
            .collect::<Res<Vec<_>>>()?;
        let args = self.hold(args)?;
        let share = self.gathering.as_ref().map(|g| g.share);
        self.host
            .offered(share.unwrap_or(self.fuel().max(Fuel::ZERO)));
        let answer = self.host.call(method, args);
        let looked = i64::try_from(self.host.looked()).unwrap_or(i64::MAX);
        let used = self.host.used();
        let answer = self.wait(op, answer);
        if used > Fuel::ZERO {
            take_used(used.micro())?;
        }
        if looked > 0 {
            take_used(looked.saturating_mul(STORE_BYTE))?;
        }
        answer.map(|v| from_value(&v))
    }

    /// Runs a host atom, which gets its step as written.
    pub(super) fn custom_atom(&mut self, op: &str, node: Node<'_>) -> Res<OVal> {
        let input = node.input();
        pay_crossing(&from_value(&input))?;
        let held = self.hold(vec![input])?;
        let input = held.into_iter().next().unwrap_or(Value::Undefined);
        let answer = self.host.atom(op, input);
        let value = self.wait(op, answer).map(|v| from_value(&v))?;
        pay_crossing(&value)?;
        Ok(value)
    }

    /// Atoms that are not pure data.
    pub(super) fn io_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        const OWN: [&str; 7] = [
            "agentRun",
            "runCode",
            "random",
            "uuid",
            "consoleLog",
            "consoleWarn",
            "consoleError",
        ];
        let value = self.io_value(op, node, scope)?;
        if !OWN.contains(&op) {
            pay_crossing(&value)?;
        }
        Ok(value)
    }

    fn io_value(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "httpFetch" => self.http_fetch(node, scope),
            "storeGet" | "storeSet" | "storeDelete" | "storeList" | "storeCompareAndSet"
            | "storeQuery" | "storeVectorSearch" | "storeQueryWhere" => {
                self.store_atom(op, node, scope)
            }
            "llmPredict" => self.required(op, "llm.predict", &["prompt", "options"], node, scope),
            "xmlParse" => self.required(op, "xml.parse", &["str"], node, scope),
            "agentRun" => self.agent_run(node, scope),
            "runCode" | "transpileCode" => self.run_code(op, node, scope),
            "random" => self.random(node, scope),
            "uuid" => Ok(OVal::str(&uuid())),
            "consoleLog" | "consoleWarn" | "consoleError" => self.console(op, node, scope),
            "streamChunk" => {
                let data = self.inputs(&["data"], node, scope)?;
                let data = data.iter().map(|v| self.export(v)).collect::<Res<_>>()?;
                let data = self.hold(data)?;
                if self.host.provides("events.chunk") {
                    // A chunk has no answer.
                    self.host.call("events.chunk", data);
                }
                let answer = Answer {
                    result: Ok(Value::Null),
                    delay_ms: 0.0,
                };
                self.wait(op, answer).map(|v| from_value(&v))
            }
            "sleep" => {
                let ms = self.inputs(&["ms"], node, scope)?;
                let ms = match ms.first() {
                    Some(OVal::Num(ms)) if (0.0..=86_400_000.0).contains(ms) => Ok(*ms),
                    _ => Err("sleep: `ms` must be a number from 0 to 86400000, which is 24 hours"),
                };
                let answer = Answer {
                    delay_ms: ms.unwrap_or_default(),
                    result: ms.map(|_| Value::Null).map_err(Into::into),
                };
                self.wait(op, answer).map(|v| from_value(&v))
            }
            "storeProcedure" => Err(self.not_judged(op)),
            // No judged run has stored a procedure.
            "releaseProcedure" => {
                self.inputs(&["token"], node, scope)?;
                Ok(OVal::Bool(false))
            }
            "clearExpiredProcedures" => Ok(OVal::Num(0.0)),
            "storeVectorUpsert" => self.vector_change(op, "vectorUpsert", "doc", node, scope),
            "storeVectorDelete" => self.vector_change(op, "vectorDelete", "id", node, scope),
            op if super::granted::is_of_host(op) => self.host_atom(op, node, scope),
            _ => self.granted(op, node, scope),
        }
    }

    /// Resolved inputs for the host.
    pub(super) fn inputs(
        &mut self,
        keys: &[&str],
        node: Node<'_>,
        scope: &ScopeRef,
    ) -> Res<Vec<OVal>> {
        let inputs = self.resolved(keys, node, scope)?;
        inputs.iter().try_for_each(pay_crossing)?;
        Ok(inputs)
    }

    /// Resolved inputs that stay in the run.
    fn resolved(&mut self, keys: &[&str], node: Node<'_>, scope: &ScopeRef) -> Res<Vec<OVal>> {
        keys.iter()
            .map(|key| self.input(node, key, scope))
            .collect()
    }

    fn required(
        &mut self,
        op: &str,
        method: &str,
        keys: &[&str],
        node: Node<'_>,
        scope: &ScopeRef,
    ) -> Res<OVal> {
        if !self.host.provides(method) {
            return Err(self.missing(&format!("Capability '{method}' missing")));
        }
        let args = self.resolved(keys, node, scope)?;
        if op == "xmlParse" {
            self.meter.charge(XML, sizes(&args, &OVal::Undef))?;
        }
        args.iter().try_for_each(pay_crossing)?;
        self.call_host(op, method, &args)
    }

    fn http_fetch(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let args = self.inputs(
            &["url", "method", "headers", "body", "responseType"],
            node,
            scope,
        )?;
        if !self.host.provides("fetch") {
            return Err(self.missing("Capability 'fetch' missing and no global fetch available"));
        }
        let mut init = Map::new();
        for (key, value) in ["method", "headers", "body", "responseType"]
            .iter()
            .zip(&args[1..])
        {
            if !value.is_undef() {
                init.insert(*key, self.export(value)?);
            }
        }
        let url = self.export(&args[0])?;
        let args = self.hold(vec![url, Value::Object(init)])?;
        let answer = self.host.call("fetch", args);
        self.wait("httpFetch", answer).map(|v| from_value(&v))
    }

    fn run_code(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let code = self.input(node, "code", scope)?;
        pay_crossing(&code)?;
        if !self.host.provides("code.transpile") {
            return Err(self.missing(
                "Capability 'code.transpile' missing. The host must grant a transpiler.",
            ));
        }
        let args = if op == "runCode" {
            self.input(node, "args", scope)?
        } else {
            OVal::Undef
        };
        if op == "runCode" && self.agent_depth >= MAX_AGENT_DEPTH {
            return fail(format!(
                "runCode recursion limit exceeded (max {MAX_AGENT_DEPTH})."
            ));
        }
        let ast = self
            .call_host(op, "code.transpile", &[code])
            .map_err(|e| match &e.op {
                None => Fail::new(format!("Code transpilation failed: {}", lossy(&e.message))),
                Some(_) => e,
            })?;
        if op == "transpileCode" {
            return Ok(ast);
        }
        pay_crossing(&ast)?;
        let root = self.export(&ast)?;
        if root.get("op").and_then(Value::as_str) != Some("seq") {
            return fail("Transpiled code must be a seq node");
        }
        pay_deep(BOTH, &ast, 0)?;
        self.pay_compiling(&root, Some(scope))?;
        let root = read_program(&root)?;
        let args = if args.is_nullish() {
            OVal::object(Obj::new())
        } else {
            args
        };
        let outer = self.enter_inline(&root, args);
        self.agent_depth += 1;
        let flow = self.step(&root, &Scope::new(Some(scope)));
        self.agent_depth -= 1;
        self.frame = outer;
        // The step repeats its code's error, so that its event reports it again.
        self.traced &= !matches!(&flow, Err(e) if e.code.is_catchable());
        match flow? {
            Flow::Return(value) => Ok(value),
            _ => Ok(OVal::Undef),
        }
    }

    fn random(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let inputs = self.resolved(&["min", "max", "format", "length"], node, scope)?;
        let or = |v: &OVal, default: f64| {
            if v.is_nullish() {
                Ok(default)
            } else {
                to_num(v)
            }
        };
        let (min, max) = (or(&inputs[0], 0.0)?, or(&inputs[1], 1.0)?);
        let format = lossy(&to_str(&inputs[2])?);
        if format == "base36" {
            let length = or(&inputs[3], 10.0)?.max(0.0) as usize;
            let sizes = Sizes::default().out_units(length);
            self.meter.charge(a99_core::costs::WRITTEN, sizes)?;
            let digit =
                |_| b"0123456789abcdefghijklmnopqrstuvwxyz"[(statics::random() * 36.0) as usize];
            let text: Vec<u16> = (0..length).map(digit).map(u16::from).collect();
            return Ok(OVal::units(text));
        }
        let value = min + statics::random() * (max - min);
        Ok(OVal::Num(if format == "integer" {
            value.floor()
        } else {
            value
        }))
    }

    fn console(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let message = self.input(node, "message", scope)?;
        let text = match &message {
            OVal::Str(s) => Some(s.to_vec()),
            other => json::stringify_paid(other)?,
        };
        // Reading a unit costs as much as writing one.
        let units = Sizes::default().out_units(text.as_ref().map_or(0, Vec::len));
        self.meter.charge(a99_core::costs::WRITTEN, units)?;
        let text: JsStr = text.map_or_else(|| js("undefined"), Into::into);
        if op == "consoleError" {
            return Err(Fail {
                op: Some("console.error".into()),
                message: text,
                ..Fail::new("")
            });
        }
        let name = if op == "consoleLog" {
            "console.log"
        } else {
            "console.warn"
        };
        if op == "consoleWarn" {
            self.warnings.push(to_text(&text));
        }
        if self.opts.trace {
            let event = TraceEvent {
                op: name.to_owned(),
                input: record([("message", Value::String(to_text(&text)))]),
                state_diff: Value::Object(Map::new()),
                result: Value::String(to_text(&text)),
                error: None,
                fuel_before: self.fuel(),
                fuel_after: self.fuel(),
            };
            self.trace.push(event);
        }
        Ok(OVal::Undef)
    }

    /// Battery and browser atoms: thin calls of a capability.
    fn granted(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let (method, keys, missing): (&str, &[&str], &str) = match op {
            "storeVectorize" => (
                "vector.embed",
                &["text"],
                "Capability 'vector' missing. Ensure vector battery is loaded.",
            ),
            "storeSearch" => (
                "store.vectorSearch",
                &["collection", "queryVector", "k", "filter"],
                "Capability 'store' missing or does not support vectorSearch.",
            ),
            "storeCreateCollection" => (
                "store.createCollection",
                &["collection", "schema", "dimension"],
                "Capability 'store' missing or does not support createCollection.",
            ),
            "storeVectorAdd" => (
                "store.vectorAdd",
                &["collection", "doc"],
                "Capability 'store' missing or does not support vectorAdd.",
            ),
            "llmPredictBattery" => (
                "llmBattery.predict",
                &["system", "user", "tools", "responseFormat"],
                "Capability 'llmBattery' missing or invalid.",
            ),
            "llmVision" => (
                "llmBattery.predict",
                &["system", "prompt", "images", "responseFormat"],
                "Capability 'llmBattery' missing or invalid.",
            ),
            // These take their inputs as written.
            "localStorageGet" | "localStorageSet" => {
                pay_written(node, &["key", "value"])?;
                return Err(self.missing("Capability Error: 'storage' is not available."));
            }
            "domText" | "domValue" | "domClick" | "domInput" => {
                pay_written(node, &["selector", "value"])?;
                return Err(self.missing("Capability Error: 'dom' is not available."));
            }
            // An atom with a price but no case here.
            _ => return fail(format!("Unknown Atom: {op}")),
        };
        let search = op == "storeSearch";
        if !self.host.provides(method) {
            if search {
                self.pay_search(op, None)?;
            }
            return Err(self.missing(missing));
        }
        let mut args = self.inputs(keys, node, scope)?;
        if search {
            self.pay_search(op, args.get(2))?;
        }
        if op == "storeSearch" && args[2].is_nullish() {
            args[2] = OVal::Num(5.0);
        }
        if matches!(op, "llmPredictBattery" | "llmVision") && args[0].is_nullish() {
            args[0] = OVal::str("You are a helpful agent.");
        }
        if op == "llmVision" {
            let user = Obj::from([
                (js("text"), args[1].clone()),
                (js("images"), args[2].clone()),
            ]);
            args[1] = OVal::object(user);
            args[2] = OVal::Undef;
        }
        self.call_host(op, method, &args)
    }
}

/// Pays for inputs that go to the host as written.
fn pay_written(node: Node<'_>, keys: &[&str]) -> Res<()> {
    keys.iter()
        .try_for_each(|key| pay_crossing(&from_value(node.get(key))))
}

/// A random UUID of version 4 (RFC 9562).
fn uuid() -> String {
    let mut bytes = [0u8; 16];
    bytes
        .iter_mut()
        .for_each(|b| *b = (statics::random() * 256.0) as u8);
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

/// Checks and reads a value as a program; `undefined` members count as absent. Root keys
/// without meaning in an inline program, which has the helpers of its caller (language section
/// 1.1), are dropped: its events do not show them.
pub(super) fn read_program(value: &Value) -> Res<Value> {
    let document = Document::from_value(value);
    let mut root = document.to_value(document.root());
    super::check::program(&root).map_err(|r| Fail::new(r.message))?;
    if let Value::Object(map) = &mut root {
        map.remove("helpers");
        map.remove("inputSchema");
    }
    Ok(root)
}
