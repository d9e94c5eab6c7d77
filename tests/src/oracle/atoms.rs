//! Data atoms: state, logic, lists, texts, objects, JSON (language sections
//! 2.2 to 2.7).

use super::coerce::{less, loose_eq, to_str};
use super::condition;
use super::expr::{Env, name_of};
use super::json;
use super::machine::{Machine, ScopeRef};
use super::meter::{size, sizes};
use super::steps::{Node, binding};
use super::value::{Fail, OVal, Obj, Res, fail, from_wtf8, js, lossy, to_text, to_wtf8};
use super::{coerce, regex, statics, strings};
use a99_core::costs::{
    BOTH, CostModel, DIGEST, FEW_HOLES, HOLE, JOIN, MEMBERS, PARSE, READ, SPLIT, STRINGIFY, Sizes,
    WRITTEN,
};
use a99_core::value::Value;

impl Machine<'_> {
    /// Data atoms: they give a value and never end the list.
    pub(super) fn data_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "varSet" | "constSet" | "varGet" | "varsImport" | "varsLet" | "varsExport" => {
                self.state_atom(op, node, scope)
            }
            "eq" | "neq" | "gt" | "lt" | "and" | "or" | "not" => self.logic_atom(op, node, scope),
            "mathCalc" => self.math_calc(node, scope),
            "push" | "len" | "split" | "join" | "regexMatch" => self.list_atom(op, node, scope),
            "regexFind" | "regexFindAll" | "regexReplace" | "regexSplit" => {
                self.regex_atom(op, node, scope)
            }
            "sort" | "groupBy" | "unique" | "sum" => self.by_key_atom(op, node, scope),
            "template" => self.template(node, scope),
            "pick" | "omit" | "merge" | "keys" => self.object_atom(op, node, scope),
            "memberSet" | "memberDelete" => self.member_atom(op, node, scope),
            "jsonParse" | "jsonStringify" | "hash" => self.text_atom(op, node, scope),
            _ => self.io_atom(op, node, scope),
        }
    }

    /// A resolved input.
    pub(super) fn input(&mut self, node: Node<'_>, key: &str, scope: &ScopeRef) -> Res<OVal> {
        self.input_once(|machine| machine.resolve(node.get(key), scope))
    }

    fn state_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "varSet" => {
                let name = binding(node.get("key"));
                scope.check_bind(&name)?;
                let value = self.input(node, "value", scope)?;
                scope.bind(&name, value)?;
            }
            "constSet" => {
                let name = binding(node.get("key"));
                scope.check_bind(&name)?;
                if scope.lookup(&name).is_some() {
                    let name = lossy(&name);
                    return fail(format!("Cannot redeclare variable '{name}' as const"));
                }
                let value = self.input(node, "value", scope)?;
                scope.bind(&name, value)?;
                scope.seal(&name);
            }
            "varGet" => return self.input(node, "key", scope),
            "varsImport" => {
                let keys = pairs(node.get("keys"));
                super::expr::pay_nodes(keys.len())?;
                for (alias, path) in keys {
                    let value = self.flat_arg(&name_of(&path));
                    scope.bind(&name_of(&alias), value)?;
                }
            }
            "varsExport" => {
                let out = Obj::new();
                let keys = pairs(node.get("keys"));
                super::expr::pay_nodes(keys.len())?;
                for (alias, path) in keys {
                    let value = self.resolve(&path, scope)?;
                    out.insert(name_of(&alias), value);
                }
                return Ok(OVal::object(out));
            }
            _ => {
                let Node::Step(map) = node else {
                    return Ok(OVal::Undef);
                };
                let metadata = |key: &&str| map.get(key).is_some();
                let metadata = ["op", "result"].iter().filter(|k| metadata(k)).count();
                super::expr::pay_nodes(map.len() - metadata)?;
                for (key, value) in map.iter_js_order() {
                    if *key != "op" && *key != "result" {
                        let value = self.resolve(value, scope)?;
                        scope.bind(&from_wtf8(key.as_bytes()), value)?;
                    }
                }
            }
        }
        Ok(OVal::Undef)
    }

    fn logic_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        if op == "not" {
            return Ok(OVal::Bool(!self.input(node, "value", scope)?.truthy()));
        }
        let a = self.input(node, "a", scope)?;
        let b = self.input(node, "b", scope)?;
        Ok(OVal::Bool(match op {
            // Loose in every generation with these atoms (language section 2.3).
            "eq" => loose_eq(&a, &b)?,
            "neq" => !loose_eq(&a, &b)?,
            "gt" => less(&b, &a)? == Some(true),
            "lt" => less(&a, &b)? == Some(true),
            "and" => a.truthy() && b.truthy(),
            _ => a.truthy() || b.truthy(),
        }))
    }

    /// `mathCalc`: own state overlaid with `vars`; every failure is wrapped.
    fn math_calc(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let vars = match self.resolve_vars(node.get("vars"), scope)? {
            OVal::Obj(obj) => obj,
            _ => std::rc::Rc::new(Obj::new()),
        };
        let source = lossy(&name_of(node.get("expr")));
        let free = self.meter.model() == CostModel::Flat;
        let env = Env {
            scope,
            vars: Some(&vars),
            free,
            calc: !self.frame.version_4,
        };
        let parsed = match self.frame.version_4 {
            true => condition::parse_expression(&source),
            false => condition::parse_calc(&source),
        };
        let value = match parsed {
            Ok(None) => return Ok(OVal::Undef),
            Ok(Some(expr)) => self.eval(&expr, env),
            Err(why) => Err(Fail::new(why)),
        };
        value.map_err(|e| match e.code.is_catchable() {
            true => {
                let why = lossy(&e.message);
                Fail::coded(e.code, format!("Expression error \"{source}\": {why}"))
            }
            false => e,
        })
    }

    fn list_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "push" => {
                let list = self.input(node, "list", scope)?;
                let item = self.input(node, "item", scope)?;
                if let OVal::Arr(items) = &list {
                    items.borrow_mut().push(item);
                }
                Ok(list)
            }
            "len" => Ok(OVal::Num(match self.input(node, "list", scope)? {
                OVal::Arr(items) => items.borrow().len() as f64,
                OVal::Str(s) => s.len() as f64,
                _ => 0.0,
            })),
            "split" => {
                let text = self.input(node, "str", scope)?;
                if text.is_nullish() {
                    return Err(no_method(&text, "split"));
                }
                let sep = self.input(node, "sep", scope)?;
                let OVal::Str(s) = &text else {
                    return Err(no_method(&text, "split"));
                };
                let parts = match &sep {
                    OVal::Undef => vec![text.clone()],
                    sep => strings::split(s, &to_str(sep)?),
                };
                let out = OVal::array(parts);
                self.meter.charge(SPLIT, sizes([&text, &sep], &out))?;
                Ok(out)
            }
            "join" => {
                let list = self.input(node, "list", scope)?;
                if list.is_nullish() {
                    return Err(no_method(&list, "join"));
                }
                let sep = self.input(node, "sep", scope)?;
                let OVal::Arr(items) = &list else {
                    return Err(no_method(&list, "join"));
                };
                self.meter
                    .charge(JOIN, sizes([&list, &sep], &OVal::Undef))?;
                let sep = if sep.is_undef() {
                    js(",")
                } else {
                    to_str(&sep)?
                };
                let out = OVal::Str(coerce::join(items, &sep)?);
                self.meter.writes(BOTH, &out)?;
                Ok(out)
            }
            _ => {
                let pattern = match node.get("pattern") {
                    Value::Undefined => js(""),
                    other => name_of(other),
                };
                let value = to_str(&self.input(node, "value", scope)?)?;
                super::pattern::pay_match(&pattern, value.len())?;
                let hit = regex::is_match(&pattern, &value);
                hit.map(OVal::Bool).map_err(Fail::new)
            }
        }
    }

    /// `template`: resolves only the variables in the text.
    fn template(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let tmpl = self.input(node, "tmpl", scope)?;
        let OVal::Str(text) = &tmpl else {
            return Err(no_method(&tmpl, "replace"));
        };
        let paths = self.frame.version_4;
        let vars = node.get("vars");
        let literal = !super::expr::is_expr(vars) && vars.get("$kind").is_none();
        // In a literal text each hole resolves its own variable; in any other text each named
        // variable is resolved once.
        let known =
            matches!(node.get("tmpl"), Value::String(own) if from_wtf8(own.as_bytes()) == *text);
        let mut shown = std::collections::VecDeque::new();
        let resolved = match vars {
            Value::Object(map) if literal && known => {
                for hole in holes(text, paths) {
                    let names: Vec<&[u16]> = hole.split(|u| *u == 46).collect();
                    let value = match map.get_bytes(&to_wtf8(names[0])) {
                        Some(value) => {
                            let value = self.resolve(value, scope)?;
                            self.walk_own(value, &names[1..])?
                        }
                        None => OVal::Undef,
                    };
                    shown.push_back(shown_text(&value)?);
                }
                OVal::object(Obj::new())
            }
            Value::Object(map) if literal => {
                let named = holes(text, paths);
                let root = |hole: &[u16]| hole.split(|u| *u == 46).next().map(<[u16]>::to_vec);
                let out = Obj::new();
                for (key, value) in map {
                    let key = from_wtf8(key.as_bytes());
                    if named
                        .iter()
                        .any(|name| root(name).is_some_and(|root| *root == *key))
                    {
                        out.insert(key, self.resolve(value, scope)?);
                    }
                }
                OVal::object(out)
            }
            _ => self.resolve(vars, scope)?,
        };
        self.meter.charge(READ, Sizes::units(text.len()))?;
        let (mut out, mut i, mut holes) = (Vec::new(), 0, 0);
        while i < text.len() {
            let Some(name) = hole_at(&text[i..], paths) else {
                out.push(text[i]);
                i += 1;
                continue;
            };
            let word = name.len();
            let dots = name.iter().filter(|u| **u == 46).count();
            super::meter::pay(READ, Sizes::elements(3 * dots))?;
            holes += 1;
            if holes > FEW_HOLES {
                super::meter::pay(READ, Sizes::elements(HOLE))?;
            }
            if resolved.is_nullish() {
                return fail("undefined is not an object (evaluating 'vars[key]')");
            }
            match shown.pop_front() {
                Some(text) => out.extend_from_slice(&text),
                None => {
                    let names: Vec<&[u16]> = name.split(|u| *u == 46).collect();
                    let value = super::expr::member(&resolved, names[0])?;
                    let value = self.walk_own(value, &names[1..])?;
                    out.extend_from_slice(&shown_text(&value)?);
                }
            }
            i += word + 4;
        }
        let out = OVal::units(out);
        self.meter.writes(BOTH, &out)?;
        Ok(out)
    }

    fn object_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "pick" => {
                let obj = self.input(node, "obj", scope)?;
                let keys = self.input(node, "keys", scope)?;
                let (true, OVal::Arr(list)) = (obj.truthy(), &keys) else {
                    return Ok(OVal::object(Obj::new()));
                };
                self.meter.charge(MEMBERS, sizes([&keys], &OVal::Undef))?;
                let out = Obj::new();
                for key in list.borrow().iter() {
                    let key = to_str(key)?;
                    super::meter::pay_name(&key)?;
                    let value = super::expr::member(&obj, &key)?;
                    out.insert(key, value);
                }
                Ok(OVal::object(out))
            }
            "omit" => {
                let obj = self.input(node, "obj", scope)?;
                let keys = self.input(node, "keys", scope)?;
                pay_split(&obj)?;
                self.meter.charge(MEMBERS, width(&obj))?;
                let mut without = Vec::new();
                if let OVal::Arr(list) = &keys {
                    self.meter.charge(MEMBERS, width(&keys))?;
                    for key in list.borrow().iter() {
                        let key = to_str(key)?;
                        super::meter::pay_name(&key)?;
                        without.push(key);
                    }
                }
                let members = if obj.is_nullish() {
                    Vec::new()
                } else {
                    statics::members(&obj)?
                };
                let kept = members
                    .into_iter()
                    .filter(|(k, _)| !without.contains(k))
                    .collect();
                Ok(OVal::object(kept))
            }
            "merge" => {
                let a = self.input(node, "a", scope)?;
                let b = self.input(node, "b", scope)?;
                pay_split(&a).and_then(|()| pay_split(&b))?;
                self.meter.charge(MEMBERS, width(&a))?;
                self.meter.charge(MEMBERS, width(&b))?;
                let out = Obj::new();
                for side in [a, b] {
                    if !side.is_nullish() {
                        out.extend(statics::members(&side)?);
                    }
                }
                Ok(OVal::object(out))
            }
            _ => {
                let obj = self.input(node, "obj", scope)?;
                self.meter.charge(MEMBERS, width(&obj))?;
                if obj.is_nullish() {
                    return Ok(OVal::array(Vec::new()));
                }
                let members = statics::members(&obj)?.into_iter();
                let keys = members.map(|(key, _)| statics::listed(key));
                Ok(OVal::array(keys.collect::<Res<_>>()?))
            }
        }
    }

    fn text_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "jsonParse" => {
                let text = OVal::Str(to_str(&self.input(node, "str", scope)?)?);
                let OVal::Str(s) = &text else {
                    return Ok(OVal::Undef);
                };
                self.meter.charge(PARSE, Sizes::units(s.len()))?;
                let value = json::parse(s)?;
                self.meter.writes(BOTH, &value)?;
                Ok(value)
            }
            "jsonStringify" => {
                let value = self.input(node, "value", scope)?;
                self.meter
                    .charge(STRINGIFY, sizes([&value], &OVal::Undef))?;
                let text = json::stringify_paid(&value)?;
                let out = text.map_or(OVal::Undef, OVal::units);
                self.meter.writes(BOTH, &out)?;
                Ok(out)
            }
            _ => {
                let value = match node.get("value") {
                    Value::String(_) => None,
                    other => Some(self.resolve(other, scope)?),
                };
                let algorithm = self.input(node, "algorithm", scope)?;
                let raw = self.input(node, "raw", scope)?.truthy();
                let text = match (value, node.get("value")) {
                    (None, Value::String(s)) => from_wtf8(s.as_bytes()),
                    (Some(OVal::Str(text)), _) if raw => text,
                    (value, _) => {
                        let value = value.unwrap_or(OVal::Undef);
                        let text = json::stringify_paid(&value)?.unwrap_or_default();
                        let sizes = Sizes::default().out_units(text.len());
                        self.meter.charge(WRITTEN, sizes)?;
                        text.into()
                    }
                };
                let algorithm = match algorithm {
                    other if other.truthy() => to_str(&other)?,
                    _ => js("SHA-256"),
                };
                self.meter.charge(
                    DIGEST,
                    Sizes::units(size(&OVal::Str(text.clone())).0 as usize),
                )?;
                let bytes = to_text(&text).to_string_lossy().into_owned().into_bytes();
                match super::memo::digest(&lossy(&algorithm), &bytes) {
                    Some(hex) => Ok(OVal::str(&hex)),
                    None => fail("Unrecognized algorithm name"),
                }
            }
        }
    }
}

/// True for a unit of a template variable's name.
fn is_word(u: u16) -> bool {
    u8::try_from(u).is_ok_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Text of a value in a hole.
fn shown_text(value: &OVal) -> Res<super::value::JsStr> {
    match value.is_nullish() {
        true => Ok(js("")),
        false => to_str(value),
    }
}

/// The hole at the start of a text; in version 4 it may be a path.
fn hole_at(text: &[u16], paths: bool) -> Option<&[u16]> {
    let inner = text.strip_prefix(&[123, 123])?;
    let is_part = |u: &&u16| is_word(**u) || paths && **u == 46;
    let name = &inner[..inner.iter().take_while(is_part).count()];
    let whole = name.split(|u| *u == 46).all(|name| !name.is_empty());
    (whole && inner[name.len()..].starts_with(&[125, 125])).then_some(name)
}

/// The holes of a template, including repeated ones.
fn holes(text: &[u16], paths: bool) -> Vec<Vec<u16>> {
    let holes = (0..text.len()).filter_map(|at| hole_at(&text[at..], paths));
    holes.map(<[u16]>::to_vec).collect()
}

/// Pays for the members of a text in place of an object: it is split first, and its units count
/// as elements.
fn pay_split(obj: &OVal) -> Res<()> {
    if let OVal::Str(s) = obj
        && !s.is_empty()
    {
        super::meter::pay(SPLIT, Sizes::units(s.len()).out_elements(s.len()))?;
        strings::owe_units(s);
    }
    Ok(())
}

/// Sizes that an atom with members reads of a value.
fn width(obj: &OVal) -> Sizes {
    match obj {
        OVal::Str(s) => Sizes::elements(s.len()),
        OVal::Arr(_) | OVal::Obj(_) => sizes([obj], &OVal::Undef),
        _ => Sizes::default(),
    }
}

/// The failure of calling a missing method.
fn no_method(value: &OVal, name: &str) -> Fail {
    match value {
        OVal::Undef => Fail::new(format!("Cannot call method '{name}' on undefined")),
        OVal::Null => Fail::new(format!("Cannot call method '{name}' on null")),
        _ => Fail::new(format!("'{name}' is not a function")),
    }
}

/// The names and paths of `varsImport` and `varsExport`.
fn pairs(keys: &Value) -> Vec<(Value, Value)> {
    match keys {
        Value::Array(names) => names.iter().map(|n| (n.clone(), n.clone())).collect(),
        Value::Object(map) => map
            .iter_js_order()
            .map(|(k, v)| (Value::String(k.clone()), v.clone()))
            .collect(),
        _ => Vec::new(),
    }
}
