//! Prints a JSON tree as a source that reads as JavaScript and, once compiled, does the same.
//!
//! Variables of a program belong to bodies, those of a source to blocks: the innermost block that
//! holds all mentions of a name declares it. Programs that a source cannot express, or would
//! change, are refused with their place.

mod calls;
mod iterate;
mod loops;
mod names;
mod places;
mod steps;
mod tool_loop;
mod types;
mod values;

use crate::codes;
use crate::spell::{Dialect, Speller, property_key};
use a99_core::diag::{Diagnostic, Diagnostics};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::sig::Signatures;
use names::Scopes;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Maximum bytes of a program that is printed.
const MAX_PROGRAM: usize = 1 << 20;

/// Maximum nesting of bodies.
const MAX_LEVELS: usize = 100;

/// Reason for a refusal: a stable class, and advice.
pub(crate) type Reason = (&'static str, &'static str);

/// Result of a printing function.
pub(crate) type Printed<T> = Result<T, (NodeId, Reason)>;

/// Prints a JSON program, whose expressions are nodes, as a source.
///
/// # Errors
/// The first place that a source cannot express.
pub fn print(program: &Document, atoms: &dyn Signatures) -> Result<String, Diagnostics> {
    let printed = match program.ends().len() > MAX_PROGRAM {
        true => Err((program.root(), ("size", "split the program"))),
        false => Printer::new(program, atoms).program(),
    };
    printed.map_err(|(node, (class, help))| {
        let message = format!("the source form cannot say this: {class}");
        let found = Diagnostic::error(codes::UNSAYABLE, message, program.pointer(node))
            .with_span(program.span(node))
            .with_help(help);
        let mut found = Diagnostics::from(found);
        if let Some(text) = program.shown() {
            found.locate(text);
        }
        found
    })
}

pub(crate) struct Printer<'d> {
    pub(crate) doc: &'d Document,
    pub(crate) atoms: &'d dyn Signatures,
    pub(crate) speller: Rc<Speller<'d>>,
    pub(crate) scopes: Scopes,
    /// Arguments that the program reads, with the variables of the source.
    pub(crate) arguments: Vec<(Vec<u8>, String)>,
    /// Functions: names in the program and in the source.
    pub(crate) helpers: BTreeMap<Vec<u8>, String>,
    /// True while printing steps of the agent, which can read the arguments.
    pub(crate) in_agent: bool,
    /// True for a program of version 4.
    pub(crate) is_current: bool,
    /// True for a program of version 3.
    pub(crate) is_third: bool,
    /// True in formulas of older programs: a name is a variable or `undefined`.
    pub(crate) only_variables: bool,
    /// Names that `vars` of a step define, with their values.
    pub(crate) overlay: Vec<(Vec<u8>, String)>,
    /// Names of `catch` errors whose `catch` has ended.
    pub(crate) poisoned: BTreeSet<Vec<u8>>,
    /// Names that the current block declares at their first assignment.
    pub(crate) pending: BTreeSet<Vec<u8>>,
    /// Names that inner lists of steps declare.
    pub(crate) declares: BTreeMap<NodeId, BTreeSet<&'d [u8]>>,
    /// Names of `catch` errors that code outside of the `catch` reads.
    pub(crate) escaping: BTreeSet<Vec<u8>>,
    /// Variables that hold one list only.
    pub(crate) lists: BTreeSet<Vec<u8>>,
    /// Variables that steps bind.
    pub(crate) rebound: BTreeSet<Vec<u8>>,
    /// True if no code reads the variable `_`, which takes unused results.
    pub(crate) sink: bool,
    /// True if a `return` would end only a turn of a loop.
    pub(crate) in_turn: bool,
    pub(crate) level: usize,
    pub(crate) literal_level: usize,
}

impl<'d> Printer<'d> {
    fn new(doc: &'d Document, atoms: &'d dyn Signatures) -> Printer<'d> {
        Printer {
            doc,
            atoms,
            speller: Rc::new(Speller::new(doc, Dialect::JavaScript)),
            scopes: Scopes::new(taken(doc)),
            arguments: Vec::new(),
            helpers: BTreeMap::new(),
            in_agent: false,
            is_current: false,
            is_third: false,
            only_variables: false,
            overlay: Vec::new(),
            poisoned: BTreeSet::new(),
            pending: BTreeSet::new(),
            declares: BTreeMap::new(),
            escaping: BTreeSet::new(),
            lists: BTreeSet::new(),
            rebound: BTreeSet::new(),
            sink: false,
            in_turn: false,
            level: 0,
            literal_level: 0,
        }
    }

    fn program(&mut self) -> Printed<String> {
        let (doc, root) = (self.doc, self.doc.root());
        let version = doc.get(root, "a99").map(|version| doc.kind(version));
        self.is_third = version == Some(Kind::Number(3.0));
        self.is_current = version == Some(Kind::Number(4.0));
        self.sink = self.is_sink();
        self.note_lists();
        self.note_escaping();
        let helpers = doc.get(root, "helpers");
        let helpers = helpers.into_iter().flat_map(|node| doc.members(node));
        let helpers: Vec<(&[u8], NodeId)> = helpers.collect();
        for (name, _) in &helpers {
            let js = self.scopes.reserve(name);
            self.helpers.insert(name.to_vec(), js);
        }
        let mut functions = String::new();
        for (name, helper) in helpers {
            functions.push('\n');
            functions.push_str(&self.helper(name, helper)?);
        }
        let steps = doc.get(root, "steps").unwrap_or(root);
        if doc.kind(steps) != Kind::Array {
            return Err((root, ("steps that are no list", "write a list of steps")));
        }
        let mut steps: Vec<NodeId> = doc.elements(steps).collect();
        self.in_agent = true;
        self.scopes.enter(true);
        if let Some(first) = steps.first().copied()
            && self.op(first) == Some("varsImport")
            && doc.get(first, "result").is_none()
        {
            self.import(first)?;
            steps.remove(0);
        }
        self.level = 1;
        let body = self.body(&steps)?;
        self.scopes.leave();
        let mut out = self.documentation();
        out.push_str("export default async function agent(");
        out.push_str(&self.parameters()?);
        out.push_str(") {\n");
        out.push_str(&body);
        out.push_str("}\n");
        out.push_str(&functions);
        Ok(out)
    }

    /// Prints the parameter of the agent: the arguments that the program reads.
    fn parameters(&self) -> Printed<String> {
        let ty = self.input_type()?;
        let ty = ty.map_or(String::new(), |ty| format!(": {ty}"));
        if self.arguments.is_empty() {
            return Ok(if ty.is_empty() {
                ty
            } else {
                format!("{{}}{ty}")
            });
        }
        let each = self.arguments.iter().map(|(key, name)| {
            if key == name.as_bytes() {
                return name.clone();
            }
            let mut text = Vec::new();
            property_key(key, &mut text);
            format!("{}: {name}", String::from_utf8_lossy(&text))
        });
        Ok(format!("{{ {} }}{ty}", each.collect::<Vec<_>>().join(", ")))
    }

    /// Prints the description of the arguments as a comment.
    fn documentation(&self) -> String {
        let doc = self.doc;
        let schema = doc.get(doc.root(), "inputSchema");
        let text = schema.and_then(|schema| doc.get(schema, "description"));
        let text = text
            .and_then(|text| doc.str(text))
            .and_then(|text| str::from_utf8(text).ok());
        match text {
            Some(text) if !text.contains("*/") && !text.trim().is_empty() => {
                format!("/** {} */\n", text.trim().replace('\n', "\n * "))
            }
            _ => String::new(),
        }
    }

    fn helper(&mut self, name: &[u8], helper: NodeId) -> Printed<String> {
        let doc = self.doc;
        let params = doc.get(helper, "paramNames");
        let params = params.into_iter().flat_map(|list| doc.elements(list));
        self.scopes.enter(true);
        let mut list = Vec::new();
        for param in params {
            let Some(param) = doc.str(param) else {
                return Err((param, ("a parameter that is no name", "name it")));
            };
            list.push(self.scopes.declare(param));
            self.scopes.bind(param);
        }
        let steps = doc.get(helper, "steps").unwrap_or(helper);
        let steps: Vec<NodeId> = doc.elements(steps).collect();
        self.level = 1;
        let body = self.body(&steps)?;
        self.scopes.leave();
        let js = self.helpers.get(name).cloned().unwrap_or_default();
        let word = if body.contains("await ") {
            "async function"
        } else {
            "function"
        };
        Ok(format!("{word} {js}({}) {{\n{body}}}\n", list.join(", ")))
    }

    /// Reads `varsImport` at the beginning: its names go into the parameter.
    fn import(&mut self, step: NodeId) -> Printed<()> {
        let doc = self.doc;
        let Some(keys) = doc.get(step, "keys") else {
            return Ok(());
        };
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
        for key in doc.elements(keys) {
            pairs.extend(doc.str(key).map(|name| (name, name)));
        }
        for (name, key) in doc.members(keys) {
            pairs.extend(doc.str(key).map(|key| (name, key)));
        }
        for (name, key) in pairs {
            if self.argument_name(key).is_some() || self.scopes.is_declared(name) {
                return Err((keys, ("an argument that has two names", "import it once")));
            }
            let js = self.scopes.declare(name);
            self.scopes.bind(name);
            self.arguments.push((key.to_vec(), js));
        }
        Ok(())
    }

    /// True if `_` is only ever set.
    fn is_sink(&self) -> bool {
        let doc = self.doc;
        (0..doc.ends().len() as u32).map(NodeId).all(|node| {
            let is_read = doc
                .str(node)
                .is_some_and(|text| text == b"_" || text.starts_with(b"_."));
            let step = doc.parent(node).filter(|_| is_read);
            !is_read
                || step.is_some_and(|step| {
                    self.op(step) == Some("varSet") && doc.get(step, "key") == Some(node)
                })
        })
    }

    /// Returns the variable of an argument.
    pub(crate) fn argument_name(&self, key: &[u8]) -> Option<String> {
        let mut known = self.arguments.iter();
        known
            .find(|(name, _)| name == key)
            .map(|(_, js)| js.clone())
    }

    pub(crate) fn str(&self, node: NodeId, key: &str) -> Option<&'d [u8]> {
        self.doc.str(self.doc.get(node, key)?)
    }

    pub(crate) fn op(&self, step: NodeId) -> Option<&'d str> {
        str::from_utf8(self.str(step, "op")?).ok()
    }
}

/// Collects the names that no function may have: the ops of the program's steps, and `context` if
/// the program reads the request context.
fn taken(doc: &Document) -> BTreeSet<String> {
    let nodes = (0..doc.ends().len() as u32).map(NodeId);
    let names = nodes.filter_map(|node| {
        let tag = doc.get(node, "$expr").or_else(|| doc.get(node, "$kind"));
        let tag = tag
            .and_then(|tag| doc.str(tag))
            .filter(|tag| *tag == b"context");
        tag.or_else(|| doc.str(doc.get(node, "op")?))
    });
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}
