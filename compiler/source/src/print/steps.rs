//! Prints steps as statements.

use super::names::State;
use super::values::{AFTER, braces};
use super::{MAX_LEVELS, Printed, Printer, Reason};
use crate::atom::form_of;
use crate::spell::is_name;
use a99_core::json::{Kind, NodeId};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const DEEP: Reason = ("bodies that nest too deep", "put inner steps into helpers");
const HIDES: Reason = (
    "a variable that hides another which was read before",
    "give it another name",
);
const TURN_RETURN: Reason = (
    "a `return` that ends a turn of a loop",
    "set `result` in an `if` instead",
);
pub(super) const UNKNOWN: Reason = (
    "a step that is no known atom",
    "see docs/atoms.md for what there is",
);
pub(super) const MISSING: Reason = (
    "an input that is missing",
    "give all inputs that the atom needs",
);
const SCHEMA: Reason = (
    "a `return` whose schema drops members of members",
    "return a value of these members",
);
const OLDER: Reason = (
    "an older program that returns no object",
    "say `\"a99\": 4`, with which any value will do",
);
const OBJECT: Reason = (
    "a member of an object that has no name",
    "give it to a variable first",
);
const LENGTH: Reason = (
    "setting `length`, which empties a list in JavaScript",
    "use `splice`",
);
const RESULT_NAME: Reason = ("a `result` that is no name", "name a variable");
const SET_AGAIN: Reason = (
    "a constant that is set again",
    "give one of them another name",
);
const CONSTANT: Reason = ("a constant that is set where others are", "set it first");
const TEXT: Reason = (
    "an expression text that cannot be read",
    "see docs/language.md",
);
const FORMULA: Reason = (
    "a formula that does not see the variables around its scope",
    "hand them over in `vars`",
);
const LOOP_NAME: Reason = (
    "a loop's own name that its steps set",
    "set another variable",
);

impl<'d> Printer<'d> {
    pub(super) fn line(&self, out: &mut String, text: &str) {
        // Without the semicolon, JavaScript would join the lines.
        let end = if text.starts_with(['(', '[', '`']) {
            ";"
        } else {
            ""
        };
        let _ = writeln!(out, "{}{end}{text}", "  ".repeat(self.level.min(40)));
    }

    /// Prints the steps of a function or of a separate scope.
    pub(super) fn body(&mut self, steps: &[NodeId]) -> Printed<String> {
        self.body_with(steps, &[], &[])
    }

    /// Prints such steps if code after them reads the first names and the enclosing block
    /// declares the others.
    pub(super) fn body_with(
        &mut self,
        steps: &[NodeId],
        read: &[&[u8]],
        others: &[Vec<u8>],
    ) -> Printed<String> {
        let mut names = self.all_bound(steps);
        names.retain(|name| !(self.scopes.is_own(name) || *name == b"_" && self.sink));
        names.retain(|name| !others.iter().any(|other| other == name));
        self.block(steps, &names, read)
    }

    /// Prints steps in braces, with declarations of these names.
    fn block(
        &mut self,
        steps: &[NodeId],
        names: &BTreeSet<&'d [u8]>,
        read: &[&[u8]],
    ) -> Printed<String> {
        if self.level > MAX_LEVELS {
            return Err((steps.first().copied().unwrap_or(NodeId(0)), DEEP));
        }
        let passed = names.iter().copied().filter(|name| !read.contains(name));
        let inner = self.inner(steps, &passed.collect());
        let is_inner = |name: &[u8]| inner.values().any(|names| names.contains(name));
        let here: BTreeSet<&[u8]> = names
            .iter()
            .copied()
            .filter(|name| !is_inner(name))
            .collect();
        let in_place = self.declared_in_place(steps, &here);
        let mut out = String::new();
        let mut hoisted = Vec::new();
        for name in here.difference(&in_place) {
            if self.scopes.state(name) != State::Free {
                return Err((steps[0], HIDES));
            }
            hoisted.push(self.scopes.declare(name));
        }
        if !hoisted.is_empty() {
            self.line(&mut out, &format!("let {}", hoisted.join(", ")));
        }
        self.declares.extend(inner);
        let pending = in_place.iter().map(|name| name.to_vec()).collect();
        let pending = std::mem::replace(&mut self.pending, pending);
        let mut at = 0;
        while at < steps.len() {
            // Lowering clears the variable of a result that may be missing before the call; the
            // printer skips that step.
            let clears = at + 1 < steps.len() && self.clears(steps[at], steps[at + 1]);
            at += usize::from(clears);
            let text = self.step(steps[at])?;
            out.push_str(&text);
            if let Some(name) = self.str(steps[at], "result").filter(|_| clears) {
                self.scopes.bind(name);
            }
            at += 1;
        }
        self.pending = pending;
        Ok(out)
    }

    /// True if a step only clears the result variable of the next step.
    fn clears(&self, step: NodeId, next: NodeId) -> bool {
        let name = self.str(step, "key");
        let value = self.doc.get(step, "value");
        let is_undefined = value.and_then(|value| self.str(value, "name")) == Some(b"undefined");
        let is_call = self.op(next).is_some_and(|op| {
            op == "callLocal" || form_of(op).is_none() && self.atoms.signature(op).is_some()
        });
        let is_fresh = name.is_some_and(|name| self.pending.contains(name));
        let inputs = self.doc.members(next).filter(|(key, _)| *key != b"result");
        let mut inputs = inputs.map(|(_, value)| value);
        self.op(step) == Some("varSet")
            && is_undefined
            && is_call
            && is_fresh
            && name == self.str(next, "result")
            && !inputs.any(|value| name.is_some_and(|name| self.mentions(value).contains(name)))
    }

    /// Prints a list of steps in braces that shares the enclosing variables.
    pub(super) fn shared(&mut self, step: NodeId, key: &str) -> Printed<String> {
        let list = self.doc.get(step, key);
        let names = list.and_then(|list| self.declares.remove(&list));
        let steps: Vec<NodeId> = list
            .into_iter()
            .flat_map(|list| self.doc.elements(list))
            .collect();
        self.level += 1;
        self.scopes.enter(false);
        let text = self.block(&steps, &names.unwrap_or_default(), &[]);
        self.scopes.leave();
        self.level -= 1;
        text
    }

    fn step(&mut self, step: NodeId) -> Printed<String> {
        let Some(op) = self.op(step) else {
            return Err((step, UNKNOWN));
        };
        let mut out = String::new();
        match op {
            "varSet" | "constSet" => {
                if self.throws(step) {
                    return self.thrown(step);
                }
                let name = self.str(step, "key").unwrap_or_default();
                let value = self.value_of(step, "value")?;
                if name == b"_" && self.sink {
                    let acts = value.ends_with(')') && !value.starts_with('{');
                    let unused = (!acts).then(|| self.scopes.temporary("unused"));
                    let text = unused.map_or(value.clone(), |js| format!("const {js} = {value}"));
                    self.line(&mut out, &text);
                    return Ok(out);
                }
                self.set(step, name, &value, op == "constSet", &mut out)?;
            }
            "varsLet" => {
                for (name, node) in self.doc.members(step) {
                    if name == b"resultConst" {
                        return Err((node, RESULT_NAME));
                    }
                    if !matches!(name, b"op" | b"result") {
                        let value = self.value(node)?;
                        self.set(step, name, &value, false, &mut out)?;
                    }
                }
            }
            "varsImport" => self.imports(step, &mut out)?,
            "varGet" => {
                let value = self.value_of(step, "key")?;
                self.give(step, &value, true, &mut out)?;
            }
            "varsExport" => {
                let value = self.exported(step)?;
                self.give(step, &value, false, &mut out)?;
            }
            "mathCalc" => self.formula(step, &mut out)?,
            "return" => self.returned(step, &mut out)?,
            "Error" => {
                let args = self.doc.get(step, "args");
                let first = args.and_then(|args| self.doc.element(args, 0));
                let text = first.map_or("undefined".to_owned(), |first| self.data(first));
                let is_text = first.is_some_and(|first| self.doc.str(first).is_some());
                let text = if is_text { text } else { format!("'{text}'") };
                self.line(&mut out, &format!("throw new Error({text})"));
            }
            "break" | "continue" => self.line(&mut out, op),
            "if" => self.branch(step, &mut out)?,
            "while" => self.repeat(step, &mut out)?,
            "forEach" => self.each(step, &mut out)?,
            "try" => self.attempt(step, &mut out)?,
            "seq" => {
                let inner = self.shared(step, "steps")?;
                self.line(&mut out, "{");
                out.push_str(&inner);
                self.line(&mut out, "}");
            }
            "scope" => {
                let inner = self.own(step, "steps", &[])?.0;
                self.line(&mut out, "{");
                out.push_str(&inner);
                self.line(&mut out, "}");
            }
            "map" | "filter" | "find" | "reduce" => self.turns(step, op, &mut out)?,
            "memberSet" | "memberDelete" => self.member(step, op, &mut out)?,
            "callLocal" => {
                let call = self.local(step)?;
                let may_miss = !self.helper_gives(step);
                self.give(step, &call, may_miss, &mut out)?;
            }
            "callAll" => {
                let call = self.together(step)?;
                self.give(step, &call, false, &mut out)?;
            }
            "llmToolLoop" => {
                let call = self.tool_loop(step)?;
                self.give(step, &call, false, &mut out)?;
            }
            _ => {
                let call = self.call(step, op)?;
                let defined = self
                    .atoms
                    .signature(op)
                    .is_some_and(|sig| sig.gives.defined);
                self.give(step, &call, !defined, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Prints the assignment or deletion of a member.
    fn member(&mut self, step: NodeId, op: &str, out: &mut String) -> Printed<()> {
        let (doc, atoms) = (self.doc, self.atoms);
        let signature = atoms.signature(op).ok_or((step, UNKNOWN))?;
        let mut parts = Vec::new();
        for input in signature.inputs.iter() {
            let node = doc.get(step, &input.name).ok_or((step, MISSING))?;
            parts.push(self.input(node, input.binding)?);
        }
        let [object, key, value @ ..] = &parts[..] else {
            return Err((step, MISSING));
        };
        if !object.split('.').all(|name| is_name(name.as_bytes())) {
            return Err((step, OBJECT));
        }
        let named = key
            .strip_prefix('\'')
            .and_then(|key| key.strip_suffix('\''));
        let place = match named.filter(|name| is_name(name.as_bytes())) {
            Some(name) => format!("{object}.{name}"),
            None => format!("{object}[{key}]"),
        };
        let gives = self.doc.get(step, "result");
        let is_plain = |text: &str| !text.contains('(') && !text.contains('[');
        if let Some(node) = gives.filter(|_| object.contains('.') || !is_plain(key)) {
            return Err((node, OBJECT));
        }
        let (object, key) = (object.clone(), key.clone());
        match value {
            [_] if self.str(step, "key") == Some(b"length") => Err((step, LENGTH)),
            [value] => {
                self.line(out, &format!("{place} = {value}"));
                match gives {
                    Some(_) => self.give(step, &object, false, out),
                    None => Ok(()),
                }
            }
            _ => {
                let was = gives.map(|_| self.scopes.temporary("was"));
                if let Some(was) = &was {
                    self.line(
                        out,
                        &format!("const {was} = Object.hasOwn({object}, {key})"),
                    );
                }
                self.line(out, &format!("delete {place}"));
                match was {
                    Some(was) => self.give(step, &was, false, out),
                    None => Ok(()),
                }
            }
        }
    }

    /// Prints the assignment of a variable, as a declaration if it is the first.
    fn set(
        &mut self,
        step: NodeId,
        name: &[u8],
        value: &str,
        is_const: bool,
        out: &mut String,
    ) -> Printed<()> {
        if self.pending.remove(name) {
            if self.scopes.is_own(name) {
                return Err((step, HIDES));
            }
            let js = self.scopes.declare(name);
            let word = if is_const { "const" } else { "let" };
            self.line(out, &format!("{word} {js} = {value}"));
            if is_const {
                self.scopes.keep(name);
            }
        } else {
            if self.scopes.is_constant(name) && !is_const {
                return self.set_again(step, name, value, out);
            }
            if is_const {
                let why = match self.scopes.is_constant(name) {
                    true => SET_AGAIN,
                    false => CONSTANT,
                };
                return Err((step, why));
            }
            let Some(js) = self.scopes.target(name) else {
                return Err((step, LOOP_NAME));
            };
            self.line(out, &format!("{js} = {value}"));
        }
        self.scopes.bind(name);
        Ok(())
    }

    /// Prints the assignment of a constant that has a value, which fails when it runs.
    fn set_again(
        &mut self,
        step: NodeId,
        name: &[u8],
        value: &str,
        out: &mut String,
    ) -> Printed<()> {
        let Ok(name) = str::from_utf8(name) else {
            return Err((step, SET_AGAIN));
        };
        let mut text = Vec::new();
        let message = format!("Cannot reassign const variable '{name}'");
        crate::spell::quoted(message.as_bytes(), &mut text);
        let unused = self.scopes.temporary("unused");
        self.line(out, &format!("const {unused} = {value}"));
        let text = String::from_utf8_lossy(&text).into_owned();
        self.line(out, &format!("throw new Error({text})"));
        Ok(())
    }

    /// Prints the result of a step into its variable. A missing result leaves the variable
    /// unchanged.
    pub(super) fn give(
        &mut self,
        step: NodeId,
        value: &str,
        may_miss: bool,
        out: &mut String,
    ) -> Printed<()> {
        let flag = self
            .doc
            .get(step, "resultConst")
            .map(|flag| self.doc.kind(flag));
        let is_const = flag == Some(Kind::Bool(true));
        let Some(result) = self.doc.get(step, "result") else {
            self.line(out, value);
            return Ok(());
        };
        let Some(name) = self.doc.str(result).filter(|name| !name.is_empty()) else {
            return Err((result, RESULT_NAME));
        };
        let had = self.scopes.state(name) != State::Free && !self.pending.contains(name);
        if !(may_miss && had) {
            self.set(step, name, value, is_const, out)?;
            if may_miss {
                self.scopes.set_state(name, State::Given);
            }
            return Ok(());
        }
        let before = self.scopes.state(name);
        let given = self.scopes.temporary("given");
        self.line(out, &format!("const {given} = {value}"));
        self.line(out, &format!("if ({given} !== undefined) {{"));
        self.level += 1;
        self.set(step, name, &given, is_const, out)?;
        self.scopes.set_state(name, before);
        self.level -= 1;
        self.line(out, "}");
        Ok(())
    }

    /// True if a step is the lowered form of `throw new Error(value)`.
    fn throws(&self, step: NodeId) -> bool {
        let value = self.doc.get(step, "value");
        value.and_then(|value| self.str(value, "callee")) == Some(b"Error")
    }

    fn thrown(&mut self, step: NodeId) -> Printed<String> {
        let value = self.doc.get(step, "value").unwrap_or(step);
        let list = self.doc.get(value, "arguments");
        let mut texts = Vec::new();
        for argument in list.into_iter().flat_map(|list| self.doc.elements(list)) {
            texts.push(self.expression(argument)?);
        }
        let mut out = String::new();
        self.line(&mut out, &format!("throw new Error({})", texts.join(", ")));
        Ok(out)
    }

    fn imports(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        let doc = self.doc;
        let keys = doc.get(step, "keys");
        let list = keys.into_iter().flat_map(|keys| doc.elements(keys));
        let list = list.filter_map(|key| Some((doc.str(key)?, key)));
        let map = keys.into_iter().flat_map(|keys| doc.members(keys));
        let pairs: Vec<(&[u8], NodeId)> = list.chain(map).collect();
        for (name, key) in pairs {
            let argument = doc.str(key).unwrap_or_default();
            let value = self.argument(key, argument)?;
            self.set(step, name, &value, false, out)?;
        }
        Ok(())
    }

    fn exported(&mut self, step: NodeId) -> Printed<String> {
        let doc = self.doc;
        let keys = doc.get(step, "keys");
        let list = keys.into_iter().flat_map(|keys| doc.elements(keys));
        let list = list.filter_map(|key| Some((doc.str(key)?, key)));
        let map = keys.into_iter().flat_map(|keys| doc.members(keys));
        let pairs: Vec<(&[u8], NodeId)> = list.chain(map).collect();
        let mut items = Vec::new();
        for (name, key) in pairs {
            items.push(super::values::member(name, &self.value(key)?));
        }
        Ok(braces(&items))
    }

    fn formula(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        let Some(node) = self.doc.get(step, "expr") else {
            return Err((step, MISSING));
        };
        if !self.is_current && self.scopes.is_within() {
            return Err((node, FORMULA));
        }
        let value = self.overlaid(step, |this| {
            let was = std::mem::replace(&mut this.only_variables, !this.is_current);
            let value = this.test(node);
            this.only_variables = was;
            value
        })?;
        self.give(step, &value, true, out)
    }

    /// Prints an expression that reads the names in `vars` of a step.
    fn overlaid(
        &mut self,
        step: NodeId,
        of: impl FnOnce(&mut Self) -> Printed<String>,
    ) -> Printed<String> {
        let mark = self.overlay.len();
        let vars = self.doc.get(step, "vars");
        let vars: Vec<(&[u8], NodeId)> = vars
            .into_iter()
            .flat_map(|vars| self.doc.members(vars))
            .collect();
        let mut given = Vec::new();
        for (name, node) in vars {
            let value = self.value(node)?;
            let is_plain = value
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_$.".contains(&b));
            let value = if is_plain {
                value
            } else {
                format!("({value})")
            };
            given.push((name.to_vec(), value));
        }
        self.overlay.extend(given);
        let value = of(self);
        self.overlay.truncate(mark);
        value
    }

    /// Prints a condition or formula, which is a node.
    pub(super) fn test(&mut self, node: NodeId) -> Printed<String> {
        match self.doc.kind(node) {
            Kind::String(_) => Err((node, TEXT)),
            _ => self.expression(node),
        }
    }

    pub(super) fn condition(&mut self, step: NodeId) -> Printed<String> {
        match self.doc.get(step, "condition") {
            Some(node) => self.overlaid(step, |this| this.test(node)),
            None => Ok("undefined".to_owned()),
        }
    }

    fn returned(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        let doc = self.doc;
        if self.in_turn {
            return Err((step, TURN_RETURN));
        }
        let schema = doc.get(step, "schema");
        let value = match (doc.get(step, "value"), schema) {
            (Some(value), _) => self.value(value)?,
            (None, Some(schema)) => {
                let filter = doc.get(step, "filter").map(|filter| doc.kind(filter));
                self.selected(schema, filter != Some(Kind::Bool(false)))?
            }
            (None, None) => "{}".to_owned(),
        };
        if !self.is_current && self.in_agent && self.is_no_object(step) {
            return Err((step, OLDER));
        }
        self.line(out, &format!("return {value}"));
        Ok(())
    }

    /// True if a `return` always gives a value that no older program can return.
    fn is_no_object(&self, step: NodeId) -> bool {
        let value = self.doc.get(step, "value");
        match value.map(|value| self.doc.kind(value)) {
            Some(Kind::Array | Kind::Bool(_) | Kind::Number(_)) => true,
            Some(Kind::String(text)) => self.scopes.state(text) == State::Free,
            _ => false,
        }
    }

    /// Prints the variables that a schema selects.
    fn selected(&mut self, schema: NodeId, drops: bool) -> Printed<String> {
        let doc = self.doc;
        let properties = doc.get(schema, "properties");
        let mut items = Vec::new();
        for (name, property) in properties.into_iter().flat_map(|list| doc.members(list)) {
            let deep = ["properties", "items", "anyOf", "additionalProperties"];
            if drops && deep.iter().any(|key| doc.get(property, key).is_some()) {
                return Err((property, SCHEMA));
            }
            let value = match self.scopes.state(name) {
                State::Free if self.poisoned.contains(name) => return Err((property, AFTER)),
                State::Free => "undefined".to_owned(),
                _ => self.scopes.written(name).unwrap_or_default(),
            };
            items.push(super::values::member(name, &value));
        }
        Ok(braces(&items))
    }
}
