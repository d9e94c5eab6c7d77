//! Evaluation of expression nodes (language section 3) and of value positions
//! (language section 1.4, decisions D13 to D16).

use super::coerce::{self, to_num, to_str};
use super::machine::{Machine, ScopeRef};
use super::meter;
use super::value::{
    Fail, JsStr, OVal, Obj, Res, array_index, fail, from_value, from_wtf8, js, lossy,
};
use super::{arrays, dates, maps, statics, strings};
use a99_core::builtins::{self, Constant, Global, METHODS, NAMESPACES, Reads};
use a99_core::costs;
use a99_core::value::{Map, Value};

/// Environment of an expression.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    /// The innermost scope.
    pub scope: &'a ScopeRef,
    /// Names that shadow the scope's: `vars` of conditions (D2).
    pub vars: Option<&'a Obj>,
    /// True if nodes are free (decision D48).
    pub free: bool,
    /// True in `mathCalc`: only `vars` and own state, v1's messages.
    pub calc: bool,
}

impl<'a> Env<'a> {
    /// The environment of an ordinary expression.
    pub(super) fn of(scope: &'a ScopeRef) -> Env<'a> {
        Env {
            scope,
            vars: None,
            free: false,
            calc: false,
        }
    }
}

const UNDEFINED: Value = Value::Undefined;

/// A member of a node, `undefined` if absent.
pub(super) fn field<'v>(node: &'v Map, key: &str) -> &'v Value {
    node.get(key).unwrap_or(&UNDEFINED)
}

/// A name or key of the program as text (ToString of plain data). Reading it is free.
pub(super) fn name_of(value: &Value) -> JsStr {
    match value {
        Value::String(s) => from_wtf8(s.as_bytes()),
        Value::Array(items) => {
            let part = |item: &Value| match item.is_nullish() {
                true => Vec::new(),
                false => name_of(item).to_vec(),
            };
            let parts: Vec<Vec<u16>> = items.iter().map(part).collect();
            parts.join(&44).into()
        }
        Value::Object(_) => js("[object Object]"),
        other => to_str(&from_value(other)).unwrap_or_else(|_| js("")),
    }
}

fn json_truthy(value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) => true,
        other => from_value(other).truthy(),
    }
}

/// True if a value position holds an expression node.
pub(super) fn is_expr(value: &Value) -> bool {
    value.get("$expr").is_some_and(json_truthy)
}

/// The source of an expression text (decision D70).
pub(super) fn expr_text(value: &Value) -> Option<&a99_core::text::Text> {
    let map = value.as_object()?;
    match field(map, "$expr").as_str() {
        Some("text") => field(map, "value").as_text(),
        _ if map.len() == 1 => field(map, "=").as_text(),
        _ => None,
    }
}

fn arg_path(value: &Value) -> Option<JsStr> {
    let node = value.as_object()?;
    (node.get("$kind")?.as_str() == Some("arg")).then(|| name_of(field(node, "path")))
}

pub(super) fn refuse(name: &[u16]) -> Res<()> {
    statics::refuse_forbidden(name)
}

/// A member of a value, without prototypes (decision D16).
pub(super) fn member(value: &OVal, key: &[u16]) -> Res<OVal> {
    let length = |n: usize| (*key == *js("length")).then_some(OVal::Num(n as f64));
    Ok(match value {
        OVal::Str(s) => match length(s.len()) {
            Some(length) => length,
            None => match array_index(key).filter(|i| *i < s.len()) {
                Some(i) => OVal::units(vec![s[i]]),
                None => OVal::Undef,
            },
        },
        OVal::Arr(items) => {
            let items = items.borrow();
            length(items.len())
                .or_else(|| array_index(key).and_then(|i| items.get(i)).cloned())
                .unwrap_or(OVal::Undef)
        }
        OVal::Obj(obj) => obj.member(key),
        OVal::Set(items) if *key == *js("size") => OVal::Num(items.borrow().len() as f64),
        OVal::Map(entries) if *key == *js("size") => OVal::Num(entries.borrow().len() as f64),
        OVal::Date(ms) => dates::member(**ms, &lossy(key))?.unwrap_or(OVal::Undef),
        OVal::Ns(ns) => {
            let (ns, name) = (NAMESPACES[*ns as usize], lossy(key));
            match (builtins::constant(ns, &name), builtins::function(ns, &name)) {
                (Some(n), _) => OVal::Num(n),
                (_, Some(f)) => OVal::Fn(f),
                _ => return fail(builtins::unknown_member(ns, &name)),
            }
        }
        _ => OVal::Undef,
    })
}

/// Walks a dotted path, null-safely.
fn walk(mut value: OVal, segments: &[&[u16]]) -> Res<OVal> {
    for segment in segments {
        if value.is_nullish() {
            return Ok(OVal::Undef);
        }
        value = member(&value, segment)?;
    }
    Ok(value)
}

/// True if a value has this method.
fn has_method(value: &OVal, name: &str) -> bool {
    let list = match value {
        OVal::Str(_) => strings::METHODS,
        OVal::Arr(_) => arrays::METHODS,
        OVal::Num(_) => statics::NUMBER_METHODS,
        OVal::Bool(_) => statics::OBJECT_METHODS,
        OVal::Set(_) => arrays::SET_METHODS,
        OVal::Date(_) => dates::METHODS,
        OVal::Map(_) => maps::METHODS,
        OVal::Obj(obj) => match obj.get(&js(name)) {
            Some(own) => return matches!(own, OVal::Fn(_)),
            None => statics::OBJECT_METHODS,
        },
        _ => "",
    };
    list.split(' ').any(|m| m == name && !name.is_empty())
}

impl Machine<'_> {
    /// True if a value is evaluated as an expression.
    pub(super) fn evaluates(&self, value: &Value) -> bool {
        is_expr(value) || self.frame.version_4 && expr_text(value).is_some()
    }

    /// A value position (language section 1.4).
    pub(super) fn resolve(&mut self, value: &Value, scope: &ScopeRef) -> Res<OVal> {
        if let Some(path) = arg_path(value) {
            return self.arg(&path);
        }
        if let Some(path) = self.context_path(value) {
            return self.context(&path);
        }
        if self.evaluates(value) {
            return self.eval(value, Env::of(scope));
        }
        match value {
            Value::String(text) => self.resolve_text(&from_wtf8(text.as_bytes()), scope),
            Value::Array(_) | Value::Object(_) => self.literal(value, scope),
            other => Ok(from_value(other)),
        }
    }

    /// The parts of a literal: nested nodes are resolved, texts are not (D13).
    fn literal(&mut self, value: &Value, scope: &ScopeRef) -> Res<OVal> {
        match value {
            Value::Array(items) => {
                pay_nodes(costs::data_nodes(false, items.len()))?;
                let items: Res<Vec<OVal>> = items.iter().map(|v| self.nested(v, scope)).collect();
                Ok(OVal::array(items?))
            }
            Value::Object(map) => {
                pay_nodes(costs::data_nodes(true, map.len()))?;
                let out = Obj::new();
                for (k, v) in map {
                    out.insert(from_wtf8(k.as_bytes()), self.nested(v, scope)?);
                }
                Ok(OVal::object(out))
            }
            other => Ok(from_value(other)),
        }
    }

    fn nested(&mut self, value: &Value, scope: &ScopeRef) -> Res<OVal> {
        if let Some(path) = arg_path(value) {
            self.meter.take(costs::node(self.meter.model()))?;
            return self.arg(&path);
        }
        if let Some(path) = self.context_path(value) {
            self.meter.take(costs::node(self.meter.model()))?;
            return self.context(&path);
        }
        if self.evaluates(value) {
            return self.eval(value, Env::of(scope));
        }
        match value {
            Value::String(text) if self.frame.names_nested => {
                self.resolve_text(&from_wtf8(text.as_bytes()), scope)
            }
            other => self.literal(other, scope),
        }
    }

    /// An object literal whose members are value positions (D14); other values resolve as
    /// usual.
    pub(super) fn resolve_vars(&mut self, value: &Value, scope: &ScopeRef) -> Res<OVal> {
        match value {
            Value::Object(map)
                if !self.evaluates(value)
                    && arg_path(value).is_none()
                    && self.context_path(value).is_none() =>
            {
                pay_nodes(map.len())?;
                let out = Obj::new();
                for (k, v) in map {
                    out.insert(from_wtf8(k.as_bytes()), self.resolve(v, scope)?);
                }
                Ok(OVal::object(out))
            }
            other => self.resolve(other, scope),
        }
    }

    /// An argument by its key.
    pub(super) fn flat_arg(&self, key: &[u16]) -> OVal {
        match &self.frame.args {
            OVal::Obj(obj) => obj.member(key),
            _ => OVal::Undef,
        }
    }

    /// An argument by flat key, then by dotted path (decision D15).
    pub(super) fn arg(&self, path: &[u16]) -> Res<OVal> {
        let args = &self.frame.args;
        if path.is_empty() && self.frame.version_4 {
            return Ok(self.frame.all_args.clone());
        }
        if matches!(args, OVal::Obj(obj) if obj.contains_key(path)) {
            return Ok(self.flat_arg(path));
        }
        let segments: Vec<&[u16]> = path.split(|u| *u == 46).collect();
        if segments.len() < 2 {
            return Ok(OVal::Undef);
        }
        // Arguments are data, under any name (D16).
        walk(args.clone(), &segments)
    }

    fn resolve_text(&mut self, text: &JsStr, scope: &ScopeRef) -> Res<OVal> {
        if text.starts_with(&js("args.")) && scope.lookup(&js("args")).is_none() {
            return self.arg(&text[5..]);
        }
        if text.contains(&46) {
            let segments: Vec<&[u16]> = text.split(|u| *u == 46).collect();
            let root = scope.lookup(segments[0]).filter(|v| !v.is_undef());
            let own = self.frame.version_4 && segments.iter().any(|s| refuse(s).is_err());
            if let Some(root) = root.clone().filter(|_| own) {
                return self.walk_own(root, &segments[1..]);
            }
            segments.iter().try_for_each(|s| refuse(s))?;
            if let Some(root) = root {
                // In a `catch`, `message` of the caught error is its text.
                let caught = self.frame.caught.iter().any(|n| **n == *segments[0]);
                if caught && segments[1..] == [&*js("message")] && matches!(root, OVal::Str(_)) {
                    return Ok(root);
                }
                return walk(root, &segments[1..]);
            }
        }
        Ok(scope
            .lookup(text)
            .unwrap_or_else(|| OVal::Str(text.clone())))
    }

    /// Evaluates an expression node; any other value is a literal.
    pub(super) fn eval(&mut self, node: &Value, env: Env<'_>) -> Res<OVal> {
        if let Some(text) = expr_text(node).filter(|_| self.frame.version_4) {
            let parsed = super::condition::parse_expression(&text.to_string_lossy());
            return match parsed.map_err(Fail::new)? {
                Some(tree) => self.eval(&tree, env),
                None => Ok(OVal::Undef),
            };
        }
        let Some(map) = node.as_object().filter(|m| m.contains("$expr")) else {
            if !node.is_undefined() {
                pay_nodes(1)?;
            }
            return data(node);
        };
        if !env.free {
            self.meter.take(costs::node(self.meter.model()))?;
        }
        let tag = lossy(&name_of(field(map, "$expr")));
        match tag.as_str() {
            "literal" => data(field(map, "value")),
            "ident" => self.ident(&name_of(field(map, "name")), env),
            "member" => self.eval_member(map, env),
            "binary" => {
                let op = lossy(&name_of(field(map, "op")));
                if matches!(op.as_str(), "&&" | "||" | "??") && !(env.calc && op == "??") {
                    return self.logical(map, env);
                }
                let a = self.eval(field(map, "left"), env)?;
                let b = self.eval(field(map, "right"), env)?;
                self.binary(&op, &a, &b, env)
            }
            "logical" => self.logical(map, env),
            "unary" => self.unary(map, env),
            "conditional" => {
                let branch = match self.eval(field(map, "test"), env)?.truthy() {
                    true => "consequent",
                    false => "alternate",
                };
                self.eval(field(map, branch), env)
            }
            "array" => {
                let items = field(map, "elements").as_array().ok_or_else(not_iterable)?;
                let items: Res<Vec<OVal>> = items.iter().map(|v| self.eval(v, env)).collect();
                Ok(OVal::array(items?))
            }
            "object" => self.object(map, env),
            "context" if self.frame.version_4 => self.context(&name_of(field(map, "path"))),
            "call" => self.call(map, env),
            "methodCall" => self.method_call(map, env),
            // Forms that mathCalc parses but refuses to evaluate (language section 3.10).
            "refused" if env.calc => fail(lossy(&name_of(field(map, "why")))),
            other => fail(format!("Unknown expression type: {other}")),
        }
    }

    fn ident(&mut self, name: &JsStr, env: Env<'_>) -> Res<OVal> {
        if let Some(value) = env.vars.and_then(|v| v.get(name)) {
            return Ok(value.clone());
        }
        if env.calc {
            return Ok(env.scope.own(name).unwrap_or(OVal::Undef));
        }
        if let Some(value) = env.scope.lookup(name) {
            return Ok(value);
        }
        if let OVal::Obj(args) = &self.frame.args
            && let Some(value) = args.get(name)
        {
            return Ok(value);
        }
        match builtins::global(&lossy(name)) {
            None | Some(Global::Constant(Constant::Undefined)) => Ok(OVal::Undef),
            Some(Global::Constant(Constant::Null)) => Ok(OVal::Null),
            Some(Global::Constant(Constant::Number(n))) => Ok(OVal::Num(n)),
            Some(Global::Namespace(n)) => Ok(OVal::Ns(n)),
            Some(Global::Function(f)) => Ok(OVal::Fn(f)),
            Some(Global::Refused(text)) => fail(text),
        }
    }

    fn binary(&mut self, op: &str, a: &OVal, b: &OVal, env: Env<'_>) -> Res<OVal> {
        let exact = self.opts.exact_equality;
        let meter = &mut self.meter;
        let calc_knows = ["+", "-", "*", "/", "%", ">", "<", ">=", "<=", "==", "!="];
        if env.calc && !calc_knows.contains(&op) {
            return fail(format!("Unknown binary operator: {op}"));
        }
        let mut price =
            |units: usize| meter.charge(costs::WRITTEN, costs::Sizes::default().out_units(units));
        match coerce::binary(op, a, b, exact, &mut price)? {
            Some(value) => Ok(value),
            None => fail(format!("Unknown binary operator: {op}")),
        }
    }

    fn logical(&mut self, map: &Map, env: Env<'_>) -> Res<OVal> {
        let left = self.eval(field(map, "left"), env)?;
        let stop = match field(map, "op").as_str() {
            Some("&&") => !left.truthy(),
            Some("??") => !left.is_nullish(),
            _ => left.truthy(),
        };
        if stop {
            Ok(left)
        } else {
            self.eval(field(map, "right"), env)
        }
    }

    fn unary(&mut self, map: &Map, env: Env<'_>) -> Res<OVal> {
        let value = self.eval(field(map, "argument"), env)?;
        let op = lossy(&name_of(field(map, "op")));
        match op.as_str() {
            "!" => Ok(OVal::Bool(!value.truthy())),
            "-" => Ok(OVal::Num(-to_num(&value)?)),
            "+" if !env.calc => Ok(OVal::Num(to_num(&value)?)),
            "typeof" if !env.calc => Ok(OVal::str(value.type_of())),
            _ => fail(format!("Unknown unary operator: {op}")),
        }
    }

    fn eval_member(&mut self, map: &Map, env: Env<'_>) -> Res<OVal> {
        let object = self.eval(field(map, "object"), env)?;
        // In `mathCalc` every access is null-safe and `?.` skips no check.
        if !env.calc && json_truthy(field(map, "optional")) && object.is_nullish() {
            return Ok(OVal::Undef);
        }
        let property = field(map, "property");
        let computed = self.evaluates(property);
        let key = match computed {
            true => match self.eval(property, env)? {
                OVal::Arr(items) => {
                    // An array that spells a forbidden name gets that name's error.
                    if let [OVal::Str(name)] = items.borrow().as_slice() {
                        refuse(name)?;
                    }
                    return fail("Property key must be a string or number");
                }
                OVal::Obj(_)
                | OVal::Set(_)
                | OVal::Map(_)
                | OVal::Date(_)
                | OVal::Fn(_)
                | OVal::Ns(_) => {
                    return fail("Property key must be a string or number");
                }
                key => to_str(&key)?,
            },
            false => to_str(&from_value(property))?,
        };
        // Computed values are data (D105).
        let is_data =
            computed && self.frame.version_4 && !matches!(object, OVal::Fn(_) | OVal::Ns(_));
        if !is_data {
            self.refuse_member(&object, &key)?;
        }
        if computed && matches!(object, OVal::Obj(_)) {
            meter::pay_name(&key)?;
        }
        member(&object, &key)
    }

    /// Refuses a forbidden name; in version 4 only if it is no own member (D68).
    fn refuse_member(&self, object: &OVal, key: &[u16]) -> Res<()> {
        match object {
            OVal::Obj(obj) if self.frame.version_4 && obj.contains_key(key) => Ok(()),
            _ => refuse(key),
        }
    }

    /// Walks a path of a program of version 4.
    pub(super) fn walk_own(&self, mut value: OVal, segments: &[&[u16]]) -> Res<OVal> {
        for segment in segments {
            self.refuse_member(&value, segment)?;
            value = member(&value, segment)?;
        }
        Ok(value)
    }

    fn arguments(&mut self, map: &Map, env: Env<'_>) -> Res<Vec<OVal>> {
        match field(map, "arguments") {
            Value::Array(items) => items.iter().map(|v| self.eval(v, env)).collect(),
            _ => Err(not_iterable()),
        }
    }

    fn call(&mut self, map: &Map, env: Env<'_>) -> Res<OVal> {
        if env.calc {
            return fail("Function calls not supported in expressions");
        }
        let name = lossy(&name_of(field(map, "callee")));
        let global = builtins::function("", &name);
        if let Some(row) = global {
            let args = self.arguments(map, env)?;
            return statics::call(&mut self.meter, row, &args);
        }
        if self.knows_atom(&name) {
            return fail(format!(
                "Atom calls in expressions not yet supported: {name}"
            ));
        }
        match builtins::refused(&name) {
            Some(text) => fail(text),
            None => fail(format!("Unknown function: {name}")),
        }
    }

    fn method_call(&mut self, map: &Map, env: Env<'_>) -> Res<OVal> {
        if env.calc {
            return fail("Function calls not supported in expressions");
        }
        let this = self.eval(field(map, "object"), env)?;
        if json_truthy(field(map, "optional")) && this.is_nullish() {
            return Ok(OVal::Undef);
        }
        let units = name_of(field(map, "method"));
        refuse(&units)?;
        let name = lossy(&units);
        if this.is_nullish() {
            let word = if this.is_undef() { "undefined" } else { "null" };
            return fail(format!("Cannot call method '{name}' on {word}"));
        }
        if let OVal::Ns(_) = this {
            return match member(&this, &units)? {
                OVal::Fn(row) => {
                    let args = self.arguments(map, env)?;
                    statics::call(&mut self.meter, row, &args)
                }
                _ => fail(format!("'{name}' is not a function")),
            };
        }
        if !has_method(&this, &name) {
            return fail(format!("'{name}' is not a function"));
        }
        let args = self.arguments(map, env)?;
        self.invoke(&this, &name, &args)
    }

    fn invoke(&mut self, this: &OVal, name: &str, args: &[OVal]) -> Res<OVal> {
        let m = &mut self.meter;
        if let OVal::Obj(obj) = this
            && let Some(OVal::Fn(row)) = obj.get(&js(name))
        {
            return statics::call(m, row, args);
        }
        let row = METHODS.iter().find(|r| r.name == name);
        let cost = row.map_or(costs::FREE, |r| r.cost);
        let what = row.map_or(Reads::All, |r| r.reads);
        m.reads(cost, what, Some(this), args)?;
        let mut call = |m: &mut meter::Meter, f: &OVal, a: &[OVal]| statics::call_value(m, f, a);
        let self_charged = matches!(name, "repeat" | "padStart" | "padEnd");
        let result = match this {
            OVal::Str(s) => {
                let replacer = args.get(1).cloned().unwrap_or(OVal::Undef);
                let mut replace = |m: &mut meter::Meter, parts: &[OVal]| {
                    to_str(&statics::call_value(m, &replacer, parts)?)
                };
                strings::method(m, s, name, args, &mut replace)?
            }
            OVal::Arr(items) => arrays::method(m, items, name, args, &mut call)?,
            OVal::Set(items) => arrays::set_method(m, items, name, args, &mut call)?,
            OVal::Date(ms) => dates::method(**ms, name, args)?,
            OVal::Map(entries) => maps::method(m, entries, name, args, &mut call)?,
            OVal::Obj(obj) => statics::object_method(obj, name, args)?,
            other => statics::number_method(other, name, args)?,
        };
        let result = result.ok_or_else(|| Fail::new(format!("'{name}' is not a function")))?;
        if !self_charged {
            m.writes(cost, &result)?;
        }
        Ok(result)
    }
}

/// Pays for parts of a step that are not expression nodes.
pub(super) fn pay_nodes(n: usize) -> Res<()> {
    (0..n).try_for_each(|_| meter::pay_metered(costs::NODE_METERED))
}

/// A literal without nodes.
fn data(value: &Value) -> Res<OVal> {
    let mut todo = vec![value];
    let mut nodes = 0;
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(items) => {
                nodes += costs::data_nodes(false, items.len());
                todo.extend(items);
            }
            Value::Object(map) => {
                nodes += costs::data_nodes(true, map.len());
                todo.extend(map.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    pay_nodes(nodes)?;
    Ok(from_value(value))
}

pub(super) fn not_iterable() -> Fail {
    Fail::new("undefined is not an object")
}
