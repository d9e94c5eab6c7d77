//! Prints `llmToolLoop`.

use super::values::{braces, member};
use super::{Printed, Printer, Reason};
use a99_core::json::{Kind, NodeId};

const TOOL: Reason = (
    "a tool of `llmToolLoop` that is none",
    "give it a `call` of an atom, an `atom` or an `agent`",
);

impl Printer<'_> {
    pub(super) fn tool_loop(&mut self, step: NodeId) -> Printed<String> {
        let doc = self.doc;
        let atoms = self.atoms;
        let Some(signature) = atoms.signature("llmToolLoop") else {
            return Err((step, super::steps::UNKNOWN));
        };
        let mut items = Vec::new();
        for (key, node) in doc.members(step) {
            let input = signature.inputs.iter();
            let input = input.clone().find(|input| input.name.as_bytes() == key);
            match (key, input) {
                (b"tools", _) => {
                    let tools = self.tools(node)?;
                    items.push(format!("tools: {tools}"));
                }
                (b"stopWhen", _) if doc.kind(node) == Kind::Null => {}
                (b"stopWhen", _) => {
                    let name = self.named(step, b"round").to_vec();
                    self.scopes.enter(false);
                    let js = self.scopes.declare(&name);
                    self.scopes.bind(&name);
                    let test = self.test(node);
                    self.scopes.leave();
                    let test = test?;
                    let test = match test.starts_with('{') {
                        true => format!("({test})"),
                        false => test,
                    };
                    items.push(format!("stopWhen: ({js}) => {test}"));
                }
                (b"op" | b"result" | b"resultConst" | b"as", _) | (_, None) => {}
                (_, Some(input)) => items.push(member(key, &self.input(node, input.binding)?)),
            }
        }
        Ok(format!("await llmToolLoop({})", braces(&items)))
    }

    /// Returns the name in `as`, or its default.
    fn named(&self, of: NodeId, default: &'static [u8]) -> &[u8] {
        self.str(of, "as").unwrap_or(default)
    }

    fn tools(&mut self, list: NodeId) -> Printed<String> {
        let doc = self.doc;
        if doc.kind(list) != Kind::Array {
            return Err((list, TOOL));
        }
        let mut tools = Vec::new();
        for tool in doc.elements(list) {
            tools.push(self.tool(tool)?);
        }
        Ok(format!("[{}]", tools.join(", ")))
    }

    fn tool(&mut self, tool: NodeId) -> Printed<String> {
        let doc = self.doc;
        if doc.kind(tool) != Kind::Object {
            return Err((tool, TOOL));
        }
        let mut items = Vec::new();
        for (key, node) in doc.members(tool) {
            match key {
                b"as" => {}
                b"call" if doc.kind(node) != Kind::Null => {
                    let name = self.named(tool, b"input").to_vec();
                    self.scopes.enter(false);
                    let js = self.scopes.declare(&name);
                    self.scopes.bind(&name);
                    let call = self.bare_call(node);
                    self.scopes.leave();
                    items.push(format!("call: ({js}) => {}", call?));
                }
                _ => items.push(member(key, &self.data(node))),
            }
        }
        Ok(braces(&items))
    }
}
