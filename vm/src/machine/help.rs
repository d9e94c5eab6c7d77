//! Help for uncaught errors: a description of the failed instruction's operands.
//!
//! Messages are part of the language, so the description is separate from them (D24). Only
//! prefixes of values are read, and only once per run.

use super::Machine;
use crate::heap::Val;
use a99_core::diag::{excerpt, suggest};
use a99_core::error::ErrorCode;
use a99_core::json::{Document, NodeId};
use a99_core::program::{ConstIdx, Op, Program, Reg};
use a99_core::sig::{AtomInput, Binding, JsonKinds, Params};
use a99_core::text::wtf8_to_string_lossy;

/// Maximum bytes of a text to show.
const SHOWN_BYTES: usize = 60;

/// Maximum number of names to compare for a suggestion.
const MAX_NAMES: usize = 64;

/// Maximum number of inputs to describe.
const MAX_INPUTS: usize = 3;

/// Kinds of JSON values, for messages.
const KINDS: [(JsonKinds, &str); 5] = [
    (JsonKinds::STRING, "a text"),
    (JsonKinds::NUMBER, "a number"),
    (JsonKinds::BOOLEAN, "true or false"),
    (JsonKinds::ARRAY, "a list"),
    (JsonKinds::OBJECT, "an object"),
];

impl Machine {
    /// Whether no handler of the run would catch an error raised now.
    pub(super) fn is_uncaught(&self) -> bool {
        !self.frames.iter().any(|frame| {
            let (_, _, f) = self.program_of(*frame);
            let mut handlers = f.handlers.iter();
            handlers.any(|h| h.start <= frame.pc && frame.pc < h.end)
        })
    }

    pub(super) fn register(&self, r: Reg) -> Val {
        let at = self.frame().base as usize + r.at();
        self.stack.get(at).copied().unwrap_or(Val::Undefined)
    }

    /// A short description of a value.
    pub(super) fn described(&self, val: Val) -> String {
        match val {
            Val::Undefined | Val::Unbound => "undefined".to_owned(),
            Val::Null => "null".to_owned(),
            Val::Bool(b) => b.to_string(),
            Val::Num(n) => format!("the number {}", a99_ecma::number_text::number_to_string(n)),
            Val::Str(s) => {
                let bytes = self.heap.bytes(s);
                let text = wtf8_to_string_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
                format!("the text \"{}\"", excerpt(&text))
            }
            Val::Arr(r) => format!("a list of {}", self.heap.len(r)),
            Val::Obj(_) => "an object".to_owned(),
            Val::Set(_) => "a set".to_owned(),
            Val::Date(_) => "a date".to_owned(),
            Val::Map(_) => "a map".to_owned(),
            Val::Builtin(_) => "a function".to_owned(),
        }
    }

    /// Describes the operands of the instruction that failed with this code. For a program in
    /// the source form, only names that occur in the source are used.
    pub(super) fn found(&self, code: ErrorCode) -> Option<String> {
        // Without the capability, inputs are not evaluated.
        if code == ErrorCode::Capability {
            return None;
        }
        let frame = self.frame();
        let (exe, program, f) = self.program_of(frame);
        match *f.code.get(frame.pc as usize)? {
            Op::CallAtom { base, site, .. } => {
                let site = program.sites.get(site.at())?;
                let atom = exe.atoms.get(site.op as usize)?.as_ref()?;
                let Params::Named(params) = &atom.sig.params else {
                    return None;
                };
                let name = &atom.sig.name;
                // Internal ops of forms have no inputs.
                if name.contains(':') {
                    return None;
                }
                let node = f.steps.get(site.step as usize).map(|step| step.node);
                let is_call = self.is_call(program, node, name);
                let mut wrong = Vec::new();
                let given = usize::from(site.inputs).min(params.len());
                for (i, param) in params[..given].iter().enumerate() {
                    let Some(input) = atom.sig.input(param.name) else {
                        continue;
                    };
                    let val = self.given(input, self.register(base + i as u8));
                    if fits(input, val) && self.is_one_of(input, val) {
                        continue;
                    }
                    let found = self.described(val);
                    let text = self.unbound(program, node, param.name, val);
                    let Some(input_name) = self.input_name(program, node, is_call, param.name)
                    else {
                        continue;
                    };
                    wrong.push(format!(
                        "`{input_name}` is {found}{}, and wants {}",
                        text.unwrap_or_default(),
                        wanted(input)
                    ));
                }
                wrong.truncate(MAX_INPUTS);
                if wrong.is_empty() {
                    let native = !atom.body.waits();
                    let first = params.first().filter(|_| given > 0 && native)?;
                    let val = match atom.sig.input(first.name) {
                        Some(input) => self.given(input, self.register(base)),
                        None => self.register(base),
                    };
                    let first = self.input_name(program, node, is_call, first.name)?;
                    let found = self.described(val);
                    wrong.push(format!("`{first}` is {found}"));
                }
                let wrong = wrong.join("; ");
                Some(match is_call {
                    true => format!("{name}: {wrong}"),
                    false => wrong,
                })
            }
            Op::IterInit { src, .. } => {
                let val = self.register(src);
                let step = Program::step_at(f, frame.pc)?;
                let node = f.steps.get(step as usize).map(|step| step.node);
                let text = self.unbound(program, node, "items", val);
                let found = self.described(val);
                let name = self.input_name(program, node, false, "items")?;
                Some(format!("`{name}` is {found}{}", text.unwrap_or_default()))
            }
            Op::CheckMethod { obj, method } => {
                self.of_method(self.register(obj), method.0 as u16, &[])
            }
            Op::CallMethod {
                base, n, method, ..
            } => {
                let first = self.frame().base as usize + base.at();
                let arguments = self.stack.get(first + 1..first + n.at());
                let arguments = arguments.unwrap_or_default();
                self.of_method(self.register(base), method.0 as u16, arguments)
            }
            Op::WideMethod { obj, method, .. } => {
                self.of_method(self.register(obj), method.0 as u16, &[])
            }
            Op::Member { obj, .. }
            | Op::Index { obj, .. }
            | Op::OwnMember { obj, .. }
            | Op::OwnIndex { obj, .. } => {
                let found = self.described(self.register(obj));
                Some(format!("the member is asked of {found}"))
            }
            Op::CheckReturn { src } => {
                let found = self.described(self.register(src));
                let example = match self.of_source(program) {
                    Some(_) => "return { name: value }",
                    None => "\"value\": {\"name\": ...}",
                };
                Some(format!("this returns {found}: give it a name, `{example}`"))
            }
            _ => None,
        }
    }

    /// The document of a program in the source form.
    pub(super) fn of_source<'p>(&self, program: &'p Program) -> Option<&'p Document> {
        program.source.document().filter(|doc| doc.has_origin())
    }

    /// Whether a step is a call of its atom; in the source form, one that the source
    /// contains.
    fn is_call(&self, program: &Program, node: Option<NodeId>, name: &str) -> bool {
        match self.of_source(program) {
            Some(doc) => node.is_some_and(|node| doc.is_call(node, name)),
            None => true,
        }
    }

    /// Whether the source calls a method by this name at this place.
    fn is_method_call(&self, program: &Program, node: Option<NodeId>, name: &str) -> bool {
        match self.of_source(program) {
            Some(doc) => node.is_some_and(|node| doc.is_method_call(node, name)),
            None => true,
        }
    }

    /// The name of an input. A call in the source form has it as a key. A form lowered to a
    /// step has no such names, so the text of the value is used, if it is short and differs
    /// from the text of the whole form.
    fn input_name<'p>(
        &self,
        program: &'p Program,
        node: Option<NodeId>,
        is_call: bool,
        input: &'p str,
    ) -> Option<&'p str> {
        let Some(doc) = self.of_source(program) else {
            return Some(input);
        };
        let value = doc.get(node?, input)?;
        if is_call {
            return Some(input);
        }
        let text = doc.origin_text(value)?;
        (doc.origin_part(node?).map(str::trim) != Some(text)).then_some(text)
    }

    /// The actual value of an input: for text-or-value inputs, values are wrapped in a list.
    fn given(&self, input: &AtomInput, val: Val) -> Val {
        match val {
            Val::Arr(list) if input.binding == Binding::TextOrValue => {
                let first = self.heap.items(list).first().copied();
                first.unwrap_or(Val::Undefined)
            }
            val => val,
        }
    }

    /// Whether a text is one of the allowed values, if they are enumerated.
    fn is_one_of(&self, input: &AtomInput, val: Val) -> bool {
        let Val::Str(text) = val else { return true };
        let text = self.heap.bytes(text);
        let is_it = |known: &str| match input.any_case {
            true => text.eq_ignore_ascii_case(known.as_bytes()),
            false => text == known.as_bytes(),
        };
        input.values.is_empty() || input.values.iter().any(|known| is_it(known))
    }

    fn of_method(&self, receiver: Val, method: u16, arguments: &[Val]) -> Option<String> {
        use a99_core::builtins::{METHODS, Receiver, method_name};
        let name = method_name(method);
        let frame = self.frame();
        let (_, program, f) = self.program_of(frame);
        let node = Program::place_at(f, frame.pc).map(|place| place.node);
        if matches!(receiver, Val::Builtin(_)) {
            let first = self.described(*arguments.first()?);
            let first = format!("the first argument is {first}");
            return self.is_method_call(program, node, name).then_some(first);
        }
        let found = self.described(receiver);
        if !self.is_method_call(program, node, name) {
            return Some(format!("the value is {found}"));
        }
        let kind = match receiver {
            Val::Str(_) => Some(Receiver::Text),
            Val::Arr(_) => Some(Receiver::Array),
            Val::Num(_) => Some(Receiver::Number),
            Val::Set(_) => Some(Receiver::Set),
            Val::Date(_) => Some(Receiver::Date),
            Val::Map(_) => Some(Receiver::Map),
            _ => None,
        };
        let own = METHODS
            .iter()
            .filter(|row| kind.is_some_and(|kind| row.on.contains(&kind)));
        let has = own.clone().any(|row| row.name == name);
        let near = suggest(name, own.map(|row| row.name)).filter(|_| !has);
        let date = self.date_of(program, node, receiver, name).filter(|_| !has);
        Some(match date.or(near) {
            Some(near) => format!("`{name}` is called on {found}: did you mean `{near}`?"),
            None => format!("`{name}` is called on {found}"),
        })
    }

    /// For a date method called on a time in the source form: the equivalent call on a
    /// `Date`.
    fn date_of(
        &self,
        program: &Program,
        node: Option<NodeId>,
        receiver: Val,
        name: &str,
    ) -> Option<String> {
        use a99_core::builtins::{METHODS, Receiver};
        let mut rows = METHODS.iter().filter(|row| row.name == name);
        let is_of_dates = rows.any(|row| row.on.contains(&Receiver::Date));
        if !is_of_dates || !matches!(receiver, Val::Num(_) | Val::Str(_)) {
            return None;
        }
        let doc = self.of_source(program)?;
        let time = doc.origin_text(doc.get(node?, "object")?)?;
        Some(format!("new Date({time}).{name}()"))
    }

    /// For a literal text at an input: a note that no variable has this name.
    fn unbound(
        &self,
        program: &Program,
        node: Option<NodeId>,
        input: &str,
        val: Val,
    ) -> Option<String> {
        let Val::Str(s) = val else { return None };
        // In the source form, texts are never names.
        let doc = program.source.document().filter(|doc| !doc.has_origin())?;
        let written = doc.get(node?, input).and_then(|node| doc.str(node))?;
        if self.heap.bytes(s) != written || written.len() > SHOWN_BYTES {
            return None;
        }
        let (_, _, f) = self.program_of(self.frame());
        let vars = f.scopes.iter().flat_map(|scope| &scope.vars);
        let names: Vec<String> = vars
            .take(MAX_NAMES)
            .map(|(name, _)| wtf8_to_string_lossy(program.const_text(ConstIdx(*name))).into_owned())
            .collect();
        let shown = wtf8_to_string_lossy(written);
        // A variable of another scope has the name.
        if names.iter().any(|name| *name == shown) {
            return None;
        }
        let near = suggest(&shown, names.iter().map(String::as_str));
        Some(match near {
            Some(near) => format!(", no variable has this name (did you mean `{near}`?)"),
            None => ", no variable has this name".to_owned(),
        })
    }
}

/// Whether the kind of a value matches an input.
fn fits(input: &AtomInput, val: Val) -> bool {
    let kind = match val {
        Val::Undefined | Val::Unbound | Val::Null => return !input.required,
        Val::Bool(_) => JsonKinds::BOOLEAN,
        Val::Num(_) => JsonKinds::NUMBER,
        Val::Str(_) | Val::Date(_) => JsonKinds::STRING,
        Val::Arr(_) | Val::Set(_) => JsonKinds::ARRAY,
        Val::Obj(_) => JsonKinds::OBJECT,
        Val::Builtin(_) | Val::Map(_) => return false,
    };
    input.kinds == JsonKinds::NONE || input.kinds.contains(kind)
}

fn wanted(input: &AtomInput) -> String {
    if !input.values.is_empty() {
        return format!("one of {}", input.values.join(", "));
    }
    let kinds: Vec<&str> = KINDS
        .iter()
        .filter(|(kind, _)| input.kinds.contains(*kind))
        .map(|(_, name)| *name)
        .collect();
    match kinds.len() {
        0 | 5 => "a value".to_owned(),
        _ => kinds.join(" or "),
    }
}
