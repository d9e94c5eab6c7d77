//! Prints values of inputs as expressions.

use super::names::State;
use super::{Printed, Printer, Reason};
use crate::spell::{is_name, property_key, quoted};
use a99_core::builtins::{Global, function, global, is_forbidden};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Binding;
use std::rc::Rc;

const MAYBE: Reason = (
    "a text that is a variable on some ways and itself on others",
    "set the variable before, or write a literal node",
);
const HELPER_ARGUMENT: Reason = (
    "an argument of the run in a helper",
    "hand it over as a parameter",
);
const NODE: Reason = (
    "an expression node that no expression of a source is",
    "see docs/source.md for what there is",
);
const ARGUMENT_KEY: Reason = ("an argument that is no name", "import it with `varsImport`");
pub(super) const AFTER: Reason = (
    "the error of a `catch` behind it",
    "keep it in a variable within the `catch`",
);
const FORBIDDEN: Reason = ("a forbidden name", "name the member differently");
const TOO_DEEP: Reason = (
    "a literal that nests too deep",
    "bind parts of it to variables",
);

/// Nesting of literals: a source of this depth can be read again, and printing it needs little
/// stack, on WebAssembly too.
const MAX_LITERAL_LEVELS: usize = 200;

impl<'d> Printer<'d> {
    /// Prints a value position.
    pub(crate) fn value(&mut self, node: NodeId) -> Printed<String> {
        let doc = self.doc;
        match doc.kind(node) {
            Kind::String(text) => self.text(node, text),
            Kind::Object if self.str(node, "$kind") == Some(b"arg") => {
                let path = self.str(node, "path").unwrap_or_default();
                self.argument_path(node, path)
            }
            Kind::Object if self.is_context(node) => self.context(node),
            Kind::Object if doc.get(node, "$expr").is_some() => self.expression(node),
            _ => self.literal(node),
        }
    }

    /// True if a node in a value position reads the request context.
    fn is_context(&self, node: NodeId) -> bool {
        self.is_current && self.str(node, "$kind") == Some(b"context")
    }

    fn context(&self, node: NodeId) -> Printed<String> {
        let path = self.doc.get(node, "path");
        match path.filter(|path| {
            self.doc
                .str(*path)
                .is_some_and(|path| str::from_utf8(path).is_ok())
        }) {
            Some(path) => Ok(format!("context({})", self.data(path))),
            None => Err((node, NODE)),
        }
    }

    /// Prints a value position that may be missing.
    pub(crate) fn value_of(&mut self, step: NodeId, key: &str) -> Printed<String> {
        match self.doc.get(step, key) {
            Some(node) => self.value(node),
            None => Ok("undefined".to_owned()),
        }
    }

    /// Prints a literal: a list or object, in which texts are not names, or a scalar.
    fn literal(&mut self, node: NodeId) -> Printed<String> {
        if self.literal_level == MAX_LITERAL_LEVELS {
            return Err((node, TOO_DEEP));
        }
        self.literal_level += 1;
        let printed = self.literal_within(node);
        self.literal_level -= 1;
        printed
    }

    fn literal_within(&mut self, node: NodeId) -> Printed<String> {
        let doc = self.doc;
        match doc.kind(node) {
            Kind::Array => {
                let items: Printed<Vec<String>> =
                    doc.elements(node).map(|item| self.nested(item)).collect();
                Ok(format!("[{}]", items?.join(", ")))
            }
            Kind::Object => {
                let mut items = Vec::new();
                for (key, value) in doc.members(node) {
                    if is_forbidden(key) {
                        return Err((value, FORBIDDEN));
                    }
                    items.push(member(key, &self.nested(value)?));
                }
                Ok(braces(&items))
            }
            Kind::Number(number) if !number.is_finite() => Ok("Infinity".to_owned()),
            _ => Ok(self.data(node)),
        }
    }

    fn nested(&mut self, node: NodeId) -> Printed<String> {
        match self.doc.kind(node) {
            // Texts in literals are names only in programs of version 3 (D13).
            Kind::String(text) if self.is_third => self.text(node, text),
            Kind::String(_) => Ok(self.data(node)),
            Kind::Object if self.str(node, "$kind") == Some(b"arg") => self.value(node),
            Kind::Object if self.is_context(node) => self.context(node),
            Kind::Object if self.doc.get(node, "$expr").is_some() => self.expression(node),
            _ => self.literal(node),
        }
    }

    /// Prints data literally.
    pub(crate) fn data(&self, node: NodeId) -> String {
        let mut out = Vec::new();
        self.speller.constant(node, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Prints an object whose members are value positions.
    pub(crate) fn vars(&mut self, node: NodeId) -> Printed<String> {
        let doc = self.doc;
        let is_plain = doc.kind(node) == Kind::Object
            && doc.get(node, "$expr").is_none()
            && doc.get(node, "$kind").is_none();
        if !is_plain {
            return self.value(node);
        }
        let mut items = Vec::new();
        for (key, value) in doc.members(node) {
            if is_forbidden(key) {
                return Err((value, FORBIDDEN));
            }
            items.push(member(key, &self.value(value)?));
        }
        Ok(braces(&items))
    }

    /// Prints an input by the way in which it is resolved.
    pub(crate) fn input(&mut self, node: NodeId, binding: Binding) -> Printed<String> {
        match binding {
            Binding::Literal => Ok(self.data(node)),
            Binding::TextOrValue if self.doc.str(node).is_some() => Ok(self.data(node)),
            Binding::Vars | Binding::TemplateVars { .. } => self.vars(node),
            _ => self.value(node),
        }
    }

    /// Prints a text in a value position: a variable, a path, an argument, or the text itself.
    fn text(&mut self, node: NodeId, text: &[u8]) -> Printed<String> {
        if let Some(path) = text.strip_prefix(b"args.")
            && self.scopes.state(b"args") == State::Free
        {
            return self.argument_path(node, path);
        }
        let mut segments = text.split(|byte| *byte == b'.');
        let root = segments.next().unwrap_or_default();
        let is_path = root.len() < text.len();
        match self.scopes.state(root) {
            State::Bound | State::Given => {}
            State::Maybe => return Err((node, MAYBE)),
            State::Free if self.poisoned.contains(root) => return Err((node, AFTER)),
            State::Free => return Ok(self.data(node)),
        }
        let mut out = self.scopes.written(root).unwrap_or_default();
        if out.ends_with(".message") && is_path {
            // The printed `.message` already covers this segment: an error's text has no other
            // members.
            segments.next();
        }
        for segment in segments {
            self.may_name(node, segment)?;
            out.push_str(&link(segment));
        }
        if self.scopes.state(root) == State::Given {
            // A name that no step bound stands for its text.
            let js = self.scopes.written(root).unwrap_or_default();
            return Ok(format!(
                "({js} === undefined ? {} : {out})",
                self.data(node)
            ));
        }
        Ok(out)
    }

    /// Refuses names that older programs refuse (D68).
    fn may_name(&self, node: NodeId, segment: &[u8]) -> Printed<()> {
        match is_forbidden(segment) && !self.is_current {
            true => Err((node, FORBIDDEN)),
            false => Ok(()),
        }
    }

    /// Prints an argument of the run by its path.
    fn argument_path(&mut self, node: NodeId, path: &[u8]) -> Printed<String> {
        let mut segments = path.split(|byte| *byte == b'.');
        let key = segments.next().unwrap_or_default();
        let mut out = self.argument(node, key)?;
        for segment in segments {
            self.may_name(node, segment)?;
            out.push_str(&link(segment));
        }
        Ok(out)
    }

    pub(super) fn argument(&mut self, node: NodeId, key: &[u8]) -> Printed<String> {
        if !self.in_agent {
            return Err((node, HELPER_ARGUMENT));
        }
        if key.is_empty() || is_forbidden(key) {
            return Err((node, ARGUMENT_KEY));
        }
        if let Some(known) = self.argument_name(key) {
            return Ok(known);
        }
        let js = self.scopes.reserve(key);
        self.arguments.push((key.to_vec(), js.clone()));
        Ok(js)
    }

    /// Prints an expression node.
    pub(crate) fn expression(&mut self, node: NodeId) -> Printed<String> {
        self.operand(node, 0)
    }

    /// Prints an expression node, in parentheses if its precedence is below `least`.
    pub(crate) fn operand(&mut self, node: NodeId, least: u8) -> Printed<String> {
        let speller = Rc::clone(&self.speller);
        let mut wrong = None;
        let mut out = Vec::new();
        match speller.can(node) {
            true => {
                let mut names = |name: &[u8], out: &mut Vec<u8>| match self.ident(node, name) {
                    Ok(text) => out.extend(text.as_bytes()),
                    Err(reason) => wrong = Some(reason),
                };
                speller.write(node, least, &mut names, &mut out);
            }
            false => wrong = Some((node, NODE)),
        }
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(String::from_utf8_lossy(&out).into_owned()),
        }
    }

    /// Prints an identifier: a variable, an argument, or a builtin.
    fn ident(&mut self, node: NodeId, name: &[u8]) -> Printed<String> {
        if let Some((_, text)) = self.overlay.iter().rev().find(|(key, _)| key == name) {
            return Ok(text.clone());
        }
        let is_known = match self.scopes.state(name) {
            State::Bound | State::Given => true,
            State::Maybe => self.argument_name(name).is_none(),
            State::Free => false,
        };
        if is_known {
            return Ok(self.scopes.written(name).unwrap_or_default());
        }
        let text = String::from_utf8_lossy(name);
        match global(&text) {
            Some(Global::Constant(_) | Global::Namespace(_)) => return Ok(text.into_owned()),
            Some(_) => return Err((node, NODE)),
            None if function("", &text).is_some() => return Err((node, NODE)),
            None => {}
        }
        if self.poisoned.contains(name) {
            return Err((node, AFTER));
        }
        match self.only_variables {
            // Formulas of older programs cannot read arguments.
            true => Ok("undefined".to_owned()),
            false => self.argument(node, name),
        }
    }
}

/// Prints a member of an object literal.
pub(crate) fn member(key: &[u8], value: &str) -> String {
    if is_name(key) && value.as_bytes() == key {
        return value.to_owned();
    }
    let mut text = Vec::new();
    property_key(key, &mut text);
    format!("{}: {value}", String::from_utf8_lossy(&text))
}

pub(crate) fn braces(items: &[String]) -> String {
    match items.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", items.join(", ")),
    }
}

/// Prints a segment of a path as a member access.
fn link(segment: &[u8]) -> String {
    if is_name(segment) {
        return format!(".{}", String::from_utf8_lossy(segment));
    }
    if !segment.is_empty() && segment.iter().all(u8::is_ascii_digit) && segment.len() < 9 {
        return format!("[{}]", String::from_utf8_lossy(segment));
    }
    let mut text = Vec::new();
    quoted(segment, &mut text);
    format!("[{}]", String::from_utf8_lossy(&text))
}
