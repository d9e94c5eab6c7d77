//! Prints calls: of helpers, of atoms, and concurrent calls.

use super::steps::{MISSING, UNKNOWN};
use super::values::{braces, member};
use super::{Printed, Printer, Reason};
use crate::atom::{AS_IT_IS, form_of};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomInput, Binding, Params};

const HELPER: Reason = ("a helper that is not there", "declare it in `helpers`");
const CALL_ALL: Reason = (
    "a `callAll` without calls of atoms",
    "give `calls`, or `items`, `as` and `call`",
);
const PATHS: Reason = (
    "an older template whose holes look like paths",
    "say `\"a99\": 4`, where they are",
);
const RAW: Reason = ("an atom that takes its step as written", "run it from JSON");

impl Printer<'_> {
    pub(super) fn local(&mut self, step: NodeId) -> Printed<String> {
        let name = self.str(step, "name").unwrap_or_default();
        let Some(js) = self.helpers.get(name).cloned() else {
            return Err((step, HELPER));
        };
        let args = self.doc.get(step, "args");
        let mut list = Vec::new();
        for argument in args.into_iter().flat_map(|args| self.doc.elements(args)) {
            list.push(self.value(argument)?);
        }
        Ok(format!("await {js}({})", list.join(", ")))
    }

    /// True if a helper never returns `undefined`.
    pub(super) fn helper_gives(&self, call: NodeId) -> bool {
        let doc = self.doc;
        let helpers = doc.get(doc.root(), "helpers");
        let name = self
            .str(call, "name")
            .and_then(|name| str::from_utf8(name).ok());
        let helper = helpers.and_then(|helpers| doc.get(helpers, name?));
        let Some(steps) = helper.and_then(|helper| doc.get(helper, "steps")) else {
            return false;
        };
        let last = doc.elements(steps).last().and_then(|last| self.op(last));
        let mut todo: Vec<NodeId> = doc.elements(steps).collect();
        while let Some(step) = todo.pop() {
            let op = self.op(step).unwrap_or_default();
            let value = doc.get(step, "value");
            if op == "return" && value.is_some_and(|value| !self.is_defined(value)) {
                return false;
            }
            let bodies = super::places::bodies(op).iter().copied();
            let bodies = bodies.chain((op == "scope").then_some("steps"));
            for list in bodies.filter_map(|key| doc.get(step, key)) {
                todo.extend(doc.elements(list));
            }
        }
        matches!(last, Some("return" | "Error"))
    }

    /// Prints a call of an atom.
    pub(super) fn call(&mut self, step: NodeId, op: &str) -> Printed<String> {
        let doc = self.doc;
        let atoms = self.atoms;
        let Some(signature) = atoms.signature(op).filter(|_| form_of(op).is_none()) else {
            return Err((step, UNKNOWN));
        };
        if signature.params == Params::Raw {
            return Err((step, RAW));
        }
        if op == "template" && !self.is_current && self.has_paths(step) {
            return Err((step, PATHS));
        }
        let missing = |input: &&AtomInput| input.required && doc.get(step, &input.name).is_none();
        if signature.inputs.iter().any(|input| missing(&input)) {
            return Err((step, MISSING));
        }
        let mut items = Vec::new();
        let as_json = |input: &AtomInput| {
            let node = doc.get(step, &input.name);
            input.binding == Binding::TextOrValue && node.is_some_and(|n| doc.str(n).is_none())
        };
        let takes_raw = signature.inputs.iter().any(|input| input.name == AS_IT_IS);
        let computed = takes_raw && signature.inputs.iter().any(as_json);
        // Calls in a source imply `raw`; a source spells out only the opposite, that a text is
        // JSON.
        let raw = doc.get(step, AS_IT_IS);
        let is_meant = computed && raw.is_some_and(|raw| doc.kind(raw) == Kind::Bool(true));
        for (key, node) in doc.members(step) {
            let is_said = is_meant && key == AS_IT_IS.as_bytes();
            if is_said || matches!(key, b"op" | b"result" | b"resultConst") {
                continue;
            }
            let mut inputs = signature.inputs.iter();
            let input = inputs.find(|input| input.name.as_bytes() == key);
            let value = match (input, op, key) {
                (_, "memoize" | "cache", b"steps") => self.memoized(step)?,
                (Some(input), _, _) => self.input(node, input.binding)?,
                (None, _, _) if signature.params == Params::Open => self.value(node)?,
                // Atoms ignore unknown keys.
                (None, _, _) => continue,
            };
            items.push(member(key, &value));
        }
        if computed && raw.is_none() {
            items.push(member(AS_IT_IS.as_bytes(), "false"));
        }
        let waits =
            !signature.effect.is_local() || items.iter().any(|item| item.contains("await "));
        let wait = if waits { "await " } else { "" };
        Ok(match items.is_empty() {
            true => format!("{wait}{op}()"),
            false => format!("{wait}{op}({})", braces(&items)),
        })
    }

    /// True if a hole of a template is a path, which older programs keep as text (D68).
    fn has_paths(&self, step: NodeId) -> bool {
        let text = String::from_utf8_lossy(self.str(step, "tmpl").unwrap_or_default());
        let holes = text.split("{{").skip(1);
        let mut holes = holes.filter_map(|hole| hole.split_once("}}"));
        holes.any(|(hole, _)| hole.contains('.'))
    }

    /// Prints concurrent calls.
    pub(super) fn together(&mut self, step: NodeId) -> Printed<String> {
        let doc = self.doc;
        let mut items = Vec::new();
        if let Some(calls) = doc.get(step, "calls") {
            let mut list = Vec::new();
            for call in doc.elements(calls) {
                list.push(self.bare_call(call)?);
            }
            if doc.kind(calls) != Kind::Array || doc.get(step, "items").is_some() {
                return Err((step, CALL_ALL));
            }
            items.push(format!("calls: [{}]", list.join(", ")));
        } else {
            let (Some(call), Some(name)) = (doc.get(step, "call"), self.str(step, "as")) else {
                return Err((step, CALL_ALL));
            };
            items.push(member(b"items", &self.value_of(step, "items")?));
            self.scopes.enter(false);
            let js = self.scopes.declare(name);
            self.scopes.bind(name);
            let call = self.bare_call(call);
            self.scopes.leave();
            items.push(format!("call: ({js}) => {}", call?));
        }
        if doc.get(step, "limit").is_some() {
            items.push(member(b"limit", &self.value_of(step, "limit")?));
        }
        Ok(format!("await callAll({})", braces(&items)))
    }

    pub(super) fn bare_call(&mut self, call: NodeId) -> Printed<String> {
        let Some(op) = self
            .op(call)
            .filter(|op| !matches!(*op, "memoize" | "cache"))
        else {
            return Err((call, UNKNOWN));
        };
        let text = self.call(call, op)?;
        Ok(text
            .strip_prefix("await ")
            .map_or(text.clone(), str::to_owned))
    }

    /// Prints the steps of `memoize`; their value is `result` unless they return one.
    fn memoized(&mut self, step: NodeId) -> Printed<String> {
        let was = std::mem::replace(&mut self.in_turn, false);
        let body = self.own(step, "steps", &[b"result"]);
        self.in_turn = was;
        let (mut body, result) = body?;
        if result != "undefined" {
            self.level += 1;
            self.line(&mut body, &format!("return {result}"));
            self.level -= 1;
        }
        let indent = "  ".repeat(self.level.min(40));
        let word = if body.contains("await ") {
            "async () =>"
        } else {
            "() =>"
        };
        Ok(format!("{word} {{\n{body}{indent}}}"))
    }
}
