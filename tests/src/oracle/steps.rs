//! Steps: the wrapper around every atom, and the control forms (language
//! sections 2.1 and 4.1).

use super::condition;
use super::expr::{Env, field, name_of};
use super::machine::{Flow, Machine, Scope, ScopeRef, is_bindable, undefined_name};
use super::options::{CostOverride, TraceEvent};
use super::prices;
use super::value::{Fail, JsStr, OVal, Obj, Res, fail, js, lossy, to_text};
use a99_core::costs::{self, CostModel};
use a99_core::error::ErrorCode;
use a99_core::fuel;
use a99_core::value::{Map, Value};

/// Deepest nesting of helpers.
const MAX_HELPER_DEPTH: u32 = 256;

/// A step, or the list of an implicit `seq`.
#[derive(Clone, Copy)]
pub(super) enum Node<'v> {
    /// A step as written.
    Step(&'v Map),
    /// The steps of a branch or body.
    List(&'v Value),
}

impl<'v> Node<'v> {
    /// A member of the step.
    pub(super) fn get(self, key: &str) -> &'v Value {
        const UNDEFINED: Value = Value::Undefined;
        match self {
            Node::Step(map) => field(map, key),
            Node::List(steps) if key == "steps" => steps,
            Node::List(_) => &UNDEFINED,
        }
    }

    /// The step without `op` and `result`.
    pub(super) fn input(self) -> Value {
        match self {
            Node::Step(map) => Value::Object(
                map.iter()
                    .filter(|(k, _)| !["op", "result"].iter().any(|m| **k == **m))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect(),
            ),
            Node::List(steps) => super::machine::record([("steps", steps.clone())]),
        }
    }
}

/// Result of an atom: its value, and how the list continues.
pub(super) type Done = Res<(OVal, Flow)>;

/// True if the event of an unpaid step has an error: a quota or an input of the price does, the
/// price alone does not.
pub(super) fn is_told(unpaid: &Fail) -> bool {
    unpaid.code == ErrorCode::QuotaExceeded || unpaid.op.is_some()
}

impl Machine<'_> {
    /// True if an atom of this name exists.
    pub(super) fn knows_atom(&self, op: &str) -> bool {
        prices::of(op).is_some() || self.opts.custom.iter().any(|a| a.op == op)
    }

    /// Runs a step whose atom exists.
    pub(super) fn step(&mut self, step: &Value, scope: &ScopeRef) -> Res<Flow> {
        if matches!(step, Value::Null | Value::Undefined) {
            return fail("null is not an object (evaluating 'step.op')");
        }
        let Some(map) = step.as_object() else {
            return fail("Unknown Atom: undefined");
        };
        let op = match field(map, "op") {
            Value::Undefined => "undefined".to_owned(),
            other => lossy(&name_of(other)),
        };
        if !self.knows_atom(&op) {
            return fail(format!("Unknown Atom: {op}"));
        }
        self.atom(&op, Node::Step(map), scope)
    }

    /// Runs a branch or body as an implicit `seq`.
    pub(super) fn list(&mut self, steps: &Value, scope: &ScopeRef) -> Res<Flow> {
        self.atom("seq", Node::List(steps), scope)
    }

    fn atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<Flow> {
        self.stepped(op, node, scope, |machine, result| {
            let (value, flow) = machine.body(op, node, scope)?;
            *result = value.clone();
            machine.bind_result(node, value, scope)?;
            Ok(flow)
        })
    }

    /// Pays for a step, runs it, and adds its trace event.
    pub(super) fn stepped(
        &mut self,
        op: &str,
        node: Node<'_>,
        scope: &ScopeRef,
        run: impl FnOnce(&mut Self, &mut OVal) -> Res<Flow>,
    ) -> Res<Flow> {
        let before = self.fuel();
        let state = self.opts.trace.then(|| scope.snapshot());
        // The event has the atom's result even if binding failed.
        let (mut result, mut thrown) = (OVal::Undef, None);
        let paid = self.pay(op, node, scope).map_err(|e| {
            self.traced = true;
            if is_told(&e) {
                thrown = Some(to_text(&e.message));
            }
            e.at(op)
        });
        let outcome = match paid {
            Err(e) => Err(e),
            Ok(()) => {
                let done = run(self, &mut result);
                done.map_err(|e| {
                    if e.op.is_none() || !self.traced {
                        thrown = Some(to_text(&e.message));
                        self.traced = true;
                    }
                    e.at(op)
                })
            }
        };
        let unfinished = matches!(&outcome, Err(e) if matches!(e.code, ErrorCode::RunTimeout | ErrorCode::Aborted));
        if let (Some(state), false) = (state, unfinished) {
            let mut diff = Map::new();
            for (name, value) in scope.snapshot() {
                if state.get(&name).is_none_or(|old| !old.is_same(&value)) {
                    diff.insert(
                        to_text(&name),
                        self.export(&value).unwrap_or(Value::Undefined),
                    );
                }
            }
            self.trace.push(TraceEvent {
                op: op.to_owned(),
                input: node.input(),
                state_diff: Value::Object(diff),
                result: self.export(&result).unwrap_or(Value::Undefined),
                error: thrown,
                fuel_before: before,
                fuel_after: self.fuel(),
            });
        }
        outcome
    }

    /// Quota, then price (decisions D17 and D42).
    pub(super) fn pay(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<()> {
        if let Some(&allowed) = self.opts.quotas.get(op) {
            let used = self.calls.entry(op.to_owned()).or_default();
            if *used >= allowed {
                let text = format!("Quota exceeded for '{op}': {allowed} call(s) allowed");
                return Err(Fail::coded(ErrorCode::QuotaExceeded, text));
            }
            *used += 1;
        }
        let custom = self.opts.custom.iter().find(|a| a.op == op);
        let mut price = match custom {
            Some(atom) => fuel::cost_from_f64(atom.cost).unwrap_or(0),
            None => prices::price(op, self.meter.model()),
        };
        let chosen = match self.opts.cost_overrides.get(op) {
            Some(CostOverride::Number(n)) => Some(*n),
            Some(CostOverride::Function(f)) => Some(f(&node.input())),
            None => None,
        };
        if let Some(chosen) = chosen {
            price = fuel::cost_from_f64(chosen).unwrap_or(price);
        } else if custom.is_none() && matches!(op, "storeVectorSearch" | "storeSearch") {
            // The price depends on the number of answers, so it is taken at the search.
            let k = self.resolve(node.get("k"), scope);
            self.search_k = Some(k.map_err(|e| e.at(op))?);
            return Ok(());
        }
        self.meter.take(price)
    }

    /// Takes the price of a search; `k` is the value resolved for the call.
    pub(super) fn pay_search(&mut self, op: &str, k: Option<&OVal>) -> Res<()> {
        let resolved = self.search_k.take();
        if self.opts.cost_overrides.contains_key(op) {
            return Ok(());
        }
        let base = prices::price(op, self.meter.model());
        let number = k.or(resolved.as_ref()).map_or(0, answers);
        self.meter.take(base.saturating_add(number))?;
        // `k` still crosses to the host, which has nothing to search.
        match (k, resolved) {
            (None, Some(k)) => super::meter::pay_crossing(&k),
            _ => Ok(()),
        }
    }

    /// Binds an atom's result; `undefined` binds nothing (D12), so that it neither breaks nor
    /// makes a constant. The name must be valid.
    fn bind_result(&mut self, node: Node<'_>, value: OVal, scope: &ScopeRef) -> Res<()> {
        let name = node.get("result");
        if !is_bindable(name) {
            return Ok(());
        }
        let name = name_of(name);
        super::statics::refuse_forbidden(&name)?;
        if value.is_undef() {
            return Ok(());
        }
        scope.bind(&name, value)?;
        if is_bindable(node.get("resultConst")) {
            scope.seal(&name);
        }
        Ok(())
    }

    pub(super) fn body(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Done {
        if self.opts.custom.iter().any(|a| a.op == op) {
            return self.custom_atom(op, node).map(|v| (v, Flow::Next));
        }
        let flow = |flow: Flow| (OVal::Undef, flow);
        match op {
            "seq" => self.seq(node.get("steps"), scope).map(flow),
            "if" => self.if_(node, scope).map(flow),
            "while" => self.while_(node, scope).map(flow),
            "forEach" => self.for_each(node, scope).map(flow),
            "break" => Ok(flow(Flow::Break)),
            "continue" => Ok(flow(Flow::Continue)),
            "try" => self.try_(node, scope).map(flow),
            "scope" => self
                .list(node.get("steps"), &Scope::new(Some(scope)))
                .map(flow),
            "return" => self.return_(node, scope),
            _ => {
                let value = match op {
                    "map" => self.map(node, scope),
                    "filter" | "find" => self.filter(op, node, scope),
                    "reduce" => self.reduce(node, scope),
                    "callLocal" => self.call_local(node, scope),
                    "callAll" => self.call_all(node, scope),
                    "llmToolLoop" => Err(self.not_judged(op)),
                    "memoize" => self.memoize(node, scope),
                    "cache" => self.cache(node, scope),
                    "Error" => self.error_atom(node),
                    _ => self.data_atom(op, node, scope),
                };
                value.map(|v| (v, Flow::Next))
            }
        }
    }

    fn seq(&mut self, steps: &Value, scope: &ScopeRef) -> Res<Flow> {
        let steps = match steps {
            Value::Array(steps) => steps.as_slice(),
            // The characters of a text are steps without `op`.
            Value::String(text) if text.is_empty() => &[],
            Value::String(_) => return fail("Unknown Atom: undefined"),
            _ => return fail("undefined is not an object (evaluating 'steps')"),
        };
        for step in steps {
            match self.step(step, scope)? {
                Flow::Next => {}
                left => return Ok(left),
            }
        }
        Ok(Flow::Next)
    }

    /// A condition: an expression node, a literal, or text of the old grammar.
    pub(super) fn condition(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let condition = node.get("condition");
        let Some(text) = condition.as_text() else {
            return self.eval(condition, Env::of(scope));
        };
        let lossy_text = text.to_string_lossy();
        let parsed = match self.frame.version_4 {
            true => condition::parse_expression(&lossy_text),
            false => condition::parse_condition(&lossy_text),
        };
        let parsed = parsed.map_err(Fail::new)?;
        let vars = match self.resolve_vars(node.get("vars"), scope)? {
            OVal::Obj(obj) => obj,
            _ => std::rc::Rc::new(Obj::new()),
        };
        let free = self.meter.model() == CostModel::Flat;
        let env = Env {
            scope,
            vars: Some(&vars),
            free,
            calc: false,
        };
        let value = parsed.map_or(Ok(OVal::Undef), |expr| self.eval(&expr, env));
        // Errors of texts are worded as in the first generation (D1).
        value.map_err(|e| match e.code.is_catchable() {
            true => {
                let (text, why) = (text.to_string_lossy(), lossy(&e.message));
                let message = js(&format!("Expression error \"{text}\": {why}"));
                Fail { message, ..e }
            }
            false => e,
        })
    }

    fn if_(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<Flow> {
        if self.condition(node, scope)?.truthy() {
            self.list(node.get("then"), scope)
        } else if is_bindable(node.get("else")) {
            self.list(node.get("else"), scope)
        } else {
            Ok(Flow::Next)
        }
    }

    fn while_(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<Flow> {
        // Text conditions pay before each test, as in v1 (decision D48).
        let early =
            node.get("condition").as_text().is_some() && self.meter.model() == CostModel::Flat;
        loop {
            if early {
                self.meter.take(costs::loop_turn(self.meter.model()))?;
            }
            if !self.condition(node, scope)?.truthy() {
                return Ok(Flow::Next);
            }
            self.check_time()?;
            if !early {
                self.meter.take(costs::loop_turn(self.meter.model()))?;
            }
            match self.list(node.get("body"), scope)? {
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Break => return Ok(Flow::Next),
                Flow::Next | Flow::Continue => {}
            }
        }
    }

    fn for_each(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<Flow> {
        for (number, item) in self.items("forEach", node, scope)?.enumerate() {
            self.check_time()?;
            let mut names = vec![(binding(node.get("as")), item)];
            names.extend(index_of(node, number));
            let turn = Scope::of_turn(scope, names)?;
            match self.list(node.get("steps"), &turn)? {
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Break => break,
                Flow::Next | Flow::Continue => {}
            }
        }
        Ok(Flow::Next)
    }

    fn try_(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<Flow> {
        match self.list(node.get("try"), scope) {
            Err(e) if e.code.is_catchable() && is_bindable(node.get("catch")) => {
                self.traced = false;
                let name = match node.get("catchParam") {
                    name if is_bindable(name) => name_of(name),
                    _ => js("error"),
                };
                scope.bind(&name, OVal::Str(e.message))?;
                scope.bind(
                    &js("errorOp"),
                    OVal::str(e.op.as_deref().unwrap_or_default()),
                )?;
                self.frame.caught.push(name);
                let flow = self.list(node.get("catch"), scope);
                self.frame.caught.pop();
                flow
            }
            other => other,
        }
    }

    fn return_(&mut self, node: Node<'_>, scope: &ScopeRef) -> Done {
        let by_value = matches!(node, Node::Step(map) if map.contains("value"));
        if by_value {
            let value = self.resolve(node.get("value"), scope)?;
            let kind = match &value {
                OVal::Arr(_) => Some("array"),
                OVal::Obj(_)
                | OVal::Set(_)
                | OVal::Map(_)
                | OVal::Date(_)
                | OVal::Undef
                | OVal::Null => None,
                other => Some(other.type_of()),
            };
            let is_checked = self.frame.helper_depth == 0 && !self.frame.version_4;
            if let (Some(kind), true) = (kind, is_checked) {
                return fail(format!("Agent must return an object, got {kind}"));
            }
            return Ok((value.clone(), Flow::Return(value)));
        }
        let out = Obj::new();
        if let Some(properties) = node
            .get("schema")
            .get("properties")
            .and_then(Value::as_object)
        {
            for (key, _) in properties.iter_js_order() {
                let key = super::value::from_wtf8(key.as_bytes());
                let value = scope.lookup(&key).unwrap_or(OVal::Undef);
                out.insert(key, value);
            }
        }
        let mut value = OVal::object(out);
        if node.get("filter").as_bool() != Some(false) && projects(node.get("schema")) {
            super::meter::pay_deep(costs::READ, &value, 0)?;
            let schema = super::schemas::of_json(node.get("schema"));
            value = super::schemas::filter(&value, &schema).unwrap_or(value);
            super::meter::settle()?;
        }
        Ok((value.clone(), Flow::Return(value)))
    }

    pub(super) fn items(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<Items> {
        items_of(op, self.resolve(node.get("items"), scope)?)
    }

    /// The scope of an item, or of a call of `callAll` without an index.
    pub(super) fn item_scope(
        &self,
        node: Node<'_>,
        item: OVal,
        number: Option<usize>,
        scope: &ScopeRef,
    ) -> Res<ScopeRef> {
        self.check_time()?;
        let child = Scope::new(Some(scope));
        child.bind(&binding(node.get("as")), item)?;
        if let Some(number) = number.filter(|_| self.frame.version_4)
            && let Some((name, number)) = index_of(node, number)
        {
            child.bind(&name, number)?;
        }
        Ok(child)
    }

    fn map(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let mut out = Vec::new();
        for (number, item) in self.items("map", node, scope)?.enumerate() {
            let child = self.item_scope(node, item, Some(number), scope)?;
            self.list(node.get("steps"), &child)?;
            let result = child.lookup(&js("result")).unwrap_or(OVal::Null);
            out.push(if result.is_nullish() {
                OVal::Null
            } else {
                result
            });
        }
        Ok(OVal::array(out))
    }

    fn filter(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let mut out = Vec::new();
        for (number, item) in self.items(op, node, scope)?.enumerate() {
            let child = self.item_scope(node, item.clone(), Some(number), scope)?;
            if self.condition(node, &child)?.truthy() {
                if op == "find" {
                    return Ok(item);
                }
                out.push(item);
            }
        }
        Ok(if op == "find" {
            OVal::Null
        } else {
            OVal::array(out)
        })
    }

    fn reduce(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let items = self.resolve(node.get("items"), scope)?;
        let mut acc = self.resolve(node.get("initial"), scope)?;
        for (number, item) in items_of("reduce", items)?.enumerate() {
            let child = self.item_scope(node, item, Some(number), scope)?;
            child.bind(&binding(node.get("accumulator")), acc.clone())?;
            self.list(node.get("steps"), &child)?;
            match child.lookup(&js("result")) {
                Some(result) if !result.is_nullish() => acc = result,
                _ => {}
            }
        }
        Ok(acc)
    }

    fn call_local(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let name = lossy(&name_of(node.get("name")));
        let helpers = self.frame.helpers.clone();
        let Some(helper) = helpers.get(&name).filter(|h| h.as_object().is_some()) else {
            return fail(format!("Unknown helper: {name}"));
        };
        if self.frame.helper_depth >= MAX_HELPER_DEPTH {
            return fail(format!(
                "Maximum helper call depth (256) exceeded \u{2014} likely infinite recursion in '{name}'"
            ));
        }
        let mut values = Vec::new();
        let args = node.get("args").as_array().unwrap_or_default();
        super::expr::pay_nodes(args.len())?;
        for arg in args {
            values.push(self.resolve(arg, scope)?);
        }
        let fresh = Scope::new(None);
        let names = helper
            .get("paramNames")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let mut values = values.into_iter();
        for param in names {
            fresh.bind(&name_of(param), values.next().unwrap_or(OVal::Undef))?;
        }
        self.check_time()?;
        self.frame.helper_depth += 1;
        let caught = std::mem::take(&mut self.frame.caught);
        let flow = self.list(helper.get("steps").unwrap_or(&Value::Undefined), &fresh);
        self.frame.caught = caught;
        self.frame.helper_depth -= 1;
        match flow? {
            Flow::Return(value) => Ok(value),
            _ => Ok(OVal::Undef),
        }
    }

    fn error_atom(&mut self, node: Node<'_>) -> Res<OVal> {
        let message: JsStr = match node.get("args").as_array().and_then(|a| a.first()) {
            None | Some(Value::Undefined | Value::Null) => js("Error"),
            Some(value) => super::coerce::to_str(&super::value::from_value(value))?,
        };
        Err(Fail {
            code: ErrorCode::Program,
            message,
            op: None,
        })
    }
}

/// The price of the answers that a search requests.
fn answers(k: &OVal) -> i64 {
    let asked = match k {
        OVal::Num(k) => fuel::cost_from_f64(*k),
        _ => None,
    };
    asked.unwrap_or(5 * costs::MICRO)
}

/// True if a schema has more than names, so that projecting may change the object; only then is
/// it read.
fn projects(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else {
        return false;
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    map.keys().any(|k| *k != "type" && *k != "properties")
        || properties.is_some_and(|p| {
            p.values()
                .any(|s| !s.as_object().is_some_and(Map::is_empty))
        })
}

/// The items of a loop; items that its body appends are visited too.
pub(super) struct Items(super::arrays::Items, usize);

impl Iterator for Items {
    type Item = OVal;

    fn next(&mut self) -> Option<OVal> {
        self.1 += 1;
        self.0.borrow().get(self.1 - 1).cloned()
    }
}

fn items_of(op: &str, items: OVal) -> Res<Items> {
    match items {
        OVal::Arr(items) => Ok(Items(items, 0)),
        _ => fail(format!("{op}: items is not an array")),
    }
}

/// The variable of an item's index, if requested (D65).
fn index_of(node: Node<'_>, number: usize) -> Option<(JsStr, OVal)> {
    let name = node.get("index");
    is_bindable(name).then(|| (name_of(name), OVal::Num(number as f64)))
}

/// A name that a step binds.
pub(super) fn binding(name: &Value) -> JsStr {
    match name {
        Value::Undefined => undefined_name(),
        other => name_of(other),
    }
}
