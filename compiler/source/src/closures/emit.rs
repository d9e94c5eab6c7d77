//! Writes a source without closures: functions at the top, whose values are objects with a number
//! and the variables that they need.

use super::model::{Declared, Kind, Model, Place, Use, Used};
use super::plan::Plan;
use crate::dispatch::Dispatch;
use crate::edits::{Changed, Edits, Piece};
use crate::lower::Code;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{ArrowFunctionBody, ClassElement};
use oxc_span::{GetSpan, Span};

/// A source without closures, with what its calls of values call.
pub(crate) struct Rewritten {
    pub(crate) changed: Changed,
    pub(crate) dispatches: HashMap<String, Dispatch>,
}

pub(crate) struct Emitter<'m, 'a> {
    pub(crate) model: &'m Model<'a>,
    pub(crate) plan: &'m Plan,
    pub(crate) taken: HashSet<String>,
    pub(crate) edits: Edits,
    pub(crate) appended: Vec<(Span, Vec<Piece>)>,
    /// Final name of each variable.
    pub(crate) names: Vec<String>,
    /// Name at the top of each moved function.
    pub(crate) tops: HashMap<usize, String>,
    /// Statements at the start of each function, and of loop bodies.
    prologues: HashMap<usize, String>,
    pub(crate) dispatches: HashMap<String, Dispatch>,
    /// Start of the names of parameters of callbacks.
    pub(crate) param: String,
    /// Member that holds the number of a function value.
    pub(crate) tag: String,
    /// Member that holds the number of a class.
    pub(crate) class_tag: String,
}

impl<'m, 'a> Emitter<'m, 'a> {
    pub(crate) fn new(model: &'m Model<'a>, plan: &'m Plan, taken: HashSet<String>) -> Self {
        let mut emitter = Emitter {
            model,
            plan,
            taken,
            edits: Edits::default(),
            appended: Vec::new(),
            names: model
                .symbols
                .iter()
                .map(|symbol| symbol.name.to_owned())
                .collect(),
            tops: HashMap::new(),
            prologues: HashMap::new(),
            dispatches: HashMap::new(),
            param: "_a".to_owned(),
            tag: String::new(),
            class_tag: String::new(),
        };
        while emitter
            .taken
            .iter()
            .any(|name| name.starts_with(&emitter.param))
        {
            emitter.param.push('a');
        }
        emitter.tag = emitter.fresh("$fn");
        emitter.class_tag = emitter.fresh("$class");
        emitter
    }

    /// A name that the source does not contain.
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }

    pub(crate) fn write(mut self) -> Rewritten {
        self.name_all();
        self.symbols();
        self.refs();
        self.uses();
        self.calls();
        self.tests();
        self.members();
        let mut moved: Vec<usize> = self.plan.moved.iter().copied().collect();
        moved.sort_unstable();
        for fun in moved {
            if self.model.funs[fun].kind != Kind::Constructor {
                self.move_function(fun);
            }
        }
        for class in 0..self.model.classes.len() {
            self.class(class);
        }
        self.write_prologues();
        Rewritten {
            changed: self.edits.write(self.model.source, &self.appended),
            dispatches: self.dispatches,
        }
    }

    fn name_all(&mut self) {
        let model = self.model;
        let captured: HashSet<usize> = self.plan.captures.iter().flatten().copied().collect();
        let this: HashSet<usize> = model.this_symbols.values().copied().collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for symbol in &model.symbols {
            *counts.entry(symbol.name).or_default() += 1;
        }
        for (id, symbol) in model.symbols.iter().enumerate() {
            let is_twice = || counts.get(symbol.name).is_some_and(|count| *count > 1);
            let is_bound = |plan: &Plan| {
                let is_cell = plan.cells.contains(&id)
                    && !matches!(symbol.declared, Declared::Declarator { .. });
                is_cell || plan.copies.contains(&id)
            };
            let renames =
                this.contains(&id) || is_bound(self.plan) || (captured.contains(&id) && is_twice());
            if renames {
                self.names[id] = self.fresh(symbol.name);
            }
        }
        let mut moved: Vec<usize> = self.plan.moved.iter().copied().collect();
        moved.sort_unstable();
        for fun in moved {
            let base = match model.funs[fun].symbol {
                Some(symbol) => model.symbols[symbol].name.to_owned(),
                None => self.base_of(fun),
            };
            let name = self.fresh(&base);
            self.tops.insert(fun, name);
        }
    }

    /// A name for a function without one.
    fn base_of(&self, fun: usize) -> String {
        let classes = self.model.classes.iter();
        for class in classes {
            if class.constructor == Some(fun) || class.fields == fun {
                return format!("{}_new", class.name);
            }
            let element = class
                .node
                .body
                .body
                .iter()
                .find_map(|element| match element {
                    ClassElement::MethodDefinition(method)
                        if method.value.span == self.model.funs[fun].span =>
                    {
                        Some(method)
                    }
                    _ => None,
                });
            if let Some(method) = element {
                let key = self.model.text_of(method.key.span());
                let key: String = key
                    .chars()
                    .filter(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                return format!("{}_{key}", class.name);
            }
        }
        if let Some(builtin) = self.model.funs[fun].builtin {
            return builtin.replace('.', "_");
        }
        match self.model.funs[fun].key {
            Some(key)
                if self
                    .model
                    .text_of(key)
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '_') =>
            {
                self.model.text_of(key).to_owned()
            }
            _ => "closure".to_owned(),
        }
    }

    /// Text that reads a variable.
    pub(crate) fn read(&self, symbol: usize) -> String {
        match self.plan.cells.contains(&symbol) {
            true => format!("{}.v", self.names[symbol]),
            false => self.names[symbol].clone(),
        }
    }

    fn symbols(&mut self) {
        for (id, symbol) in self.model.symbols.iter().enumerate() {
            let is_cell = self.plan.cells.contains(&id);
            let is_copy = self.plan.copies.contains(&id);
            let name = self.names[id].clone();
            if let (Declared::Declarator { init, end, start }, true) = (symbol.declared, is_cell) {
                let at = Span::new(symbol.at.start, end);
                if self.plan.late.contains(&id) {
                    // The object is there before the functions that read it.
                    let made = format!("{name} = {{ v: undefined }};");
                    let (at, text) = match (symbol.is_outermost, start) {
                        (true, Some(start)) => {
                            let prologue = self.prologues.entry(symbol.owner).or_default();
                            prologue.push_str(&format!(" const {made}"));
                            (Span::new(start, end), format!("{name}.v"))
                        }
                        _ => (at, format!("{made} {name}.v")),
                    };
                    let text = match init {
                        Some(_) => text,
                        None => format!("{text} = undefined"),
                    };
                    self.edits.replace(at, vec![text.into()]);
                    continue;
                }
                match init {
                    Some(init) => {
                        self.edits.replace(at, vec![name.into()]);
                        self.edits.insert(init.start, "{ v: (");
                        let end = match self.ends_line(init.end) {
                            true => ") };",
                            false => ") }",
                        };
                        self.edits.insert(init.end, end);
                    }
                    None => {
                        let mut text = format!("{name} = {{ v: undefined }}");
                        if self.ends_line(end) {
                            text.push(';');
                        }
                        self.edits.replace(at, vec![text.into()]);
                    }
                }
                continue;
            }
            if symbol.at.is_empty() {
                continue;
            }
            let (bound, statement) = match (is_cell, is_copy) {
                (true, _) => (
                    symbol.name.to_owned(),
                    format!(" const {name} = {{ v: {} }};", symbol.name),
                ),
                (_, true) => (
                    symbol.name.to_owned(),
                    format!(" const {name} = {};", symbol.name),
                ),
                _ => (name.clone(), String::new()),
            };
            if bound != symbol.name {
                let text = match symbol.is_short {
                    true => format!("{}: {bound}", symbol.name),
                    false => bound,
                };
                self.edits.replace(symbol.at, vec![text.into()]);
            }
            if statement.is_empty() {
                continue;
            }
            match symbol.declared {
                Declared::Pattern { end } => self.edits.insert(end, format!(";{statement}")),
                Declared::Param(fun) => {
                    self.prologues.entry(fun).or_default().push_str(&statement);
                }
                Declared::Arguments => {
                    self.prologues.entry(0).or_default().push_str(&statement);
                }
                Declared::Head(body) | Declared::Each(body) => self.start_of(body, &statement),
                _ => {}
            }
        }
    }

    /// Puts a statement at the start of a loop's body.
    fn start_of(&mut self, body: Span, statement: &str) {
        match self.model.text_of(body).starts_with('{') {
            true => self.edits.insert(body.start + 1, statement),
            false => {
                let pieces = vec![
                    format!("{{{statement} ").into(),
                    Piece::Inner(body),
                    " }".into(),
                ];
                self.edits.wrap(body, pieces);
            }
        }
    }

    fn refs(&mut self) {
        for one in &self.model.refs {
            let symbol = &self.model.symbols[one.symbol];
            if let Declared::Head(body) = symbol.declared
                && self.plan.copies.contains(&one.symbol)
                && (one.at.start < body.start || one.at.end > body.end)
            {
                continue;
            }
            if matches!(symbol.declared, Declared::Function(_) | Declared::Class(_)) {
                continue;
            }
            let text = self.read(one.symbol);
            if text != symbol.name || symbol.at.is_empty() {
                let text = match one.is_short {
                    true => format!("{}: {text}", symbol.name),
                    false => text,
                };
                self.edits.replace(one.at, vec![text.into()]);
            }
        }
    }

    /// Text of a function's value in the code of `fun`.
    fn value(&self, fun: usize) -> String {
        let mut text = format!("({{ {}: {fun}", self.tag);
        for symbol in &self.plan.captures[fun] {
            let name = &self.names[*symbol];
            text.push_str(&format!(", {name}: {name}"));
        }
        text.push_str(" })");
        text
    }

    /// Names of the variables that a moved function takes first.
    pub(crate) fn captured(&self, fun: usize) -> Vec<String> {
        let captures = self.plan.captures[fun].iter();
        captures.map(|symbol| self.names[*symbol].clone()).collect()
    }

    /// True if the constant that names a function holds its value there.
    fn sees_value(&self, one: &Use, fun: usize) -> bool {
        let owner = self.model.funs[fun].parent;
        self.plan.moved.contains(&fun)
            && self.model.is_constant(fun)
            && !self.model.leaves(&self.plan.moved, one.fun, owner)
            && !self.model.is_within(one.fun, fun)
    }

    fn uses(&mut self) {
        let mut kept = HashSet::new();
        for one in &self.model.uses {
            let Some(fun) = self.model.function_of(one.of) else {
                continue;
            };
            let is_known = self.model.is_known_place(self.plan, one.place);
            let is_literal = matches!(one.of, Used::Literal(_));
            if is_known {
                // A moved function is passed under its name at the top.
                if !is_literal && self.plan.moved.contains(&fun) && one.place != Place::Callee {
                    let pieces = self.passed(fun);
                    self.edits.replace(one.span, vec![pieces.into()]);
                }
                continue;
            }
            if !is_literal && self.sees_value(one, fun) {
                kept.insert(fun);
                continue;
            }
            let value = self.value(fun);
            let key = match (one.is_short, one.of) {
                (true, Used::Symbol(symbol)) => Some(self.model.symbols[symbol].name),
                (true, Used::Literal(_)) => {
                    self.model.funs[fun].key.map(|key| self.model.text_of(key))
                }
                _ => None,
            };
            let mut text = match key {
                Some(key) => format!("{key}: {value}"),
                None => value,
            };
            if is_literal && self.is_block(fun) && self.ends_line(one.span.end) {
                text.push(';');
            }
            self.edits.replace(one.span, vec![text.into()]);
        }
        let mut moved: Vec<usize> = self.plan.moved.iter().copied().collect();
        moved.sort_unstable();
        for fun in moved {
            let info = &self.model.funs[fun];
            if info.symbol.is_none() || info.kind != Kind::Plain {
                continue;
            }
            match kept.contains(&fun) {
                true => {
                    let mut text = self.value(fun);
                    if self.is_block(fun) && self.ends_line(info.span.end) {
                        text.push(';');
                    }
                    self.edits.replace(info.span, vec![text.into()]);
                }
                false => match self.model.text_of(info.whole).starts_with("export") {
                    true => self.edits.replace(info.span, vec!["null".into()]),
                    false => self.remove(info.whole, info.span),
                },
            }
        }
    }

    /// Removes a declaration; one of several in a statement keeps its name.
    fn remove(&mut self, whole: Span, literal: Span) {
        let text = self.model.text_of(whole);
        match text.starts_with("const") || text.starts_with("function") || text.starts_with("async")
        {
            true => self.edits.replace(whole, vec![";".into()]),
            false => self.edits.replace(literal, vec!["null".into()]),
        }
    }

    /// True if a statement without a semicolon ends here before a token that could continue what
    /// replaces it.
    fn ends_line(&self, at: u32) -> bool {
        let rest = self.model.source.get(at as usize..).unwrap_or_default();
        let blank = &rest[..rest.len() - rest.trim_start().len()];
        let next = rest.trim_start().chars().next();
        blank.contains('\n') && next.is_some_and(|next| "([`+-/*".contains(next))
    }

    /// True for an arrow function with a block, which no operator can follow, unless a cell holds
    /// it.
    fn is_block(&self, fun: usize) -> bool {
        let end = self.model.funs[fun].span.end;
        let is_cell = self.plan.cells.iter().any(|cell| {
            matches!(self.model.symbols[*cell].declared,
                Declared::Declarator { init: Some(init), .. } if init.end == end)
                && !self.plan.late.contains(cell)
        });
        !is_cell
            && matches!(self.model.funs[fun].code, Some(Code::Arrow(arrow))
                if matches!(arrow.body, ArrowFunctionBody::FunctionBody(_)))
    }

    /// Text of a moved function as a callback.
    fn passed(&self, fun: usize) -> String {
        let name = &self.tops[&fun];
        let captured = self.captured(fun);
        if captured.is_empty() {
            return name.clone();
        }
        let params = self.model.funs[fun].code.map(Code::params);
        let count = params.map_or(0, |params| params.items.len());
        let has_rest = params.is_some_and(|params| params.rest.is_some());
        let mut own: Vec<String> = (1..=count)
            .map(|number| format!("{}{number}", self.param))
            .collect();
        if has_rest {
            own.push(format!("...{}", self.param));
        }
        let given = [captured, own.clone()].concat();
        format!("({}) => {name}({})", own.join(", "), given.join(", "))
    }

    /// Writes the code of a function that moves to the top.
    fn move_function(&mut self, fun: usize) {
        let info = &self.model.funs[fun];
        if let Some(builtin) = info.builtin {
            let name = self.tops.get(&fun).cloned().unwrap_or_default();
            let params = match builtin {
                "Math.max" | "Math.min" => "...xs",
                "parseInt" | "Math.pow" | "Math.atan2" => "x, y",
                _ => "x",
            };
            let text = format!("function {name}({params}) {{ return {builtin}({params}) }}");
            return self.appended.push((info.span, vec![text.into()]));
        }
        let Some(code) = info.code else {
            return;
        };
        let mut first = self.captured(fun);
        let takes_this = info.uses_this || (info.kind == Kind::Method && !self.is_static(fun));
        if takes_this {
            let symbol = self.model.this_symbols.get(&fun);
            first.push(symbol.map_or("self".to_owned(), |symbol| self.names[*symbol].clone()));
        }
        let name = self.tops.get(&fun).cloned().unwrap_or_default();
        let pieces = self.function_pieces(fun, code, &name, &first);
        self.appended.push((info.span, pieces));
    }

    fn is_static(&self, fun: usize) -> bool {
        let classes = &self.model.flow.classes;
        classes
            .iter()
            .any(|class| class.statics.values().any(|known| *known == fun))
    }

    fn function_pieces(
        &mut self,
        fun: usize,
        code: Code<'a>,
        name: &str,
        first: &[String],
    ) -> Vec<Piece> {
        let (is_async, types) = match code {
            Code::Function(function) => (function.r#async, function.type_parameters.as_ref()),
            Code::Arrow(arrow) => (arrow.r#async, arrow.type_parameters.as_ref()),
        };
        let word = match is_async {
            true => "async function ",
            false => "function ",
        };
        let mut pieces: Vec<Piece> = vec![format!("{word}{name}").into()];
        if let Some(types) = types {
            pieces.push(types.span.into());
        }
        pieces.push(format!("({}", first.join(", ")).into());
        let params = code.params().span;
        let params = match self.model.text_of(params).starts_with('(') {
            true => Span::new(params.start + 1, params.end - 1),
            false => params,
        };
        if !self.model.text_of(params).trim().is_empty() {
            if !first.is_empty() {
                pieces.push(", ".into());
            }
            pieces.push(params.into());
        }
        let prologue = self.prologues.remove(&fun).unwrap_or_default();
        pieces.push(format!(") {{{prologue}").into());
        match code {
            Code::Arrow(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => pieces.push(inside(body.span).into()),
                body => {
                    pieces.push(" return ".into());
                    pieces.push(body.span().into());
                }
            },
            Code::Function(function) => {
                if let Some(body) = &function.body {
                    pieces.push(inside(body.span).into());
                }
            }
        }
        pieces.push(" }".into());
        pieces
    }

    /// Puts statements at the start of functions that stay where they are.
    fn write_prologues(&mut self) {
        let prologues = std::mem::take(&mut self.prologues);
        for (fun, text) in prologues {
            let model = self.model;
            let Some(code) = self.code_of(fun) else {
                continue;
            };
            let body = match code {
                Code::Function(function) => function.body.as_ref().map(|body| body.span),
                Code::Arrow(arrow) => match &arrow.body {
                    ArrowFunctionBody::FunctionBody(body) => Some(body.span),
                    body => {
                        let params = arrow
                            .return_type
                            .as_ref()
                            .map_or(arrow.params.span, |ty| ty.span);
                        let between = model.text_of(Span::new(params.end, body.span().start));
                        let arrow_at = between.find("=>").map_or(0, |at| at as u32 + 2);
                        let whole = Span::new(params.end + arrow_at, arrow.span.end);
                        let pieces = vec![
                            format!(" {{{text} return ").into(),
                            body.span().into(),
                            " }".into(),
                        ];
                        self.edits.replace(whole, pieces);
                        None
                    }
                },
            };
            if let Some(body) = body {
                self.edits.insert(body.start + 1, text);
            }
        }
    }

    pub(crate) fn take_prologue(&mut self, fun: usize) -> String {
        self.prologues.remove(&fun).unwrap_or_default()
    }

    /// The code of a function; of 0 that of the agent.
    fn code_of(&self, fun: usize) -> Option<Code<'a>> {
        match fun {
            0 => self.model.agent_code,
            fun => self.model.funs[fun].code,
        }
    }
}

/// The range within the braces of a block.
pub(crate) fn inside(block: Span) -> Span {
    Span::new(block.start + 1, block.end - 1)
}
