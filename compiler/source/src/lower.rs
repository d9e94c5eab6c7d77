//! Lowers the syntax tree of a source to the JSON tree of a program.
//!
//! Each call of an atom or a function becomes a step. An expression with calls becomes steps
//! before the step that needs its value, in JavaScript's evaluation order. Callbacks become loops
//! in the same scope, functions become helpers, and captured variables become parameters of the
//! helper.

use crate::codes;
use crate::scoping::Scoping;
pub(crate) use crate::state::{After, Around, Binding, BindingId, Code, Function, What};
use crate::state::{Iterable, Known, Named, has_dates};
pub(crate) use crate::steps::{branch, for_each, named, set};
use crate::tree::Place;
use a99_core::diag::{Diagnostic, Severity};
use a99_core::sig::Signatures;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{Expression, RegExpLiteral};
use oxc_span::Span;
use std::cell::Cell;

/// Maximum number of findings that a source reports.
pub(crate) const MAX_FINDINGS: usize = 50;

/// Maximum nesting of expressions and statements; fits the stack that lowering runs on.
pub(crate) const MAX_NESTING: u32 = 900;

/// Maximum number of lowered expressions and statements; repeated lowering counts again.
const MAX_WORK: usize = 400_000;

/// Maximum number of functions in a source.
const MAX_FUNCTIONS: usize = 1000;

pub(crate) struct Lowerer<'a> {
    pub(crate) source: &'a str,
    pub(crate) ops: &'a (dyn Signatures + Sync),
    pub(crate) found: Vec<Diagnostic>,
    /// Starts of declarations that are refused; other findings may follow from them.
    pub(crate) causes: Vec<u32>,
    /// Function in which each finding of `found` was made.
    pub(crate) found_in: Vec<usize>,
    /// Names in the source and names that lowering has generated.
    pub(crate) taken: HashSet<String>,
    /// Declaration that each name in the source resolves to.
    pub(crate) scoping: Scoping,
    /// True if the source may contain dates.
    pub(crate) has_dates: bool,
    /// True if the source makes maps, so that values of unknown kind may be maps.
    pub(crate) has_maps: bool,
    /// Offsets at which a date that setters change may be read, because nothing there keeps it.
    pub(crate) permitted: HashSet<u32>,
    /// Names of the variables in the program.
    pub(crate) variables: HashSet<String>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) scopes: Vec<HashMap<&'a str, BindingId>>,
    pub(crate) functions: Vec<Function<'a>>,
    /// Function that is being lowered; 0 is the agent.
    pub(crate) current: usize,
    pub(crate) around: Vec<Around<'a>>,
    /// Scopes up to this depth hold variables that the current steps must not set.
    pub(crate) barrier: usize,
    /// Label of the next loop.
    pub(crate) label: Option<&'a str>,
    /// Names of helpers, each with the number that makes the next duplicate unique.
    pub(crate) helpers: HashMap<String, usize>,
    /// Depth of nested copies of functions in progress.
    pub(crate) copies: usize,
    /// Calls of functions: caller, callee, place.
    pub(crate) calls: Vec<(usize, usize, Span)>,
    /// Number of visible bindings with each name in the program.
    sight: HashMap<String, usize>,
    /// Variables whose list has no alias.
    pub(crate) new_lists: HashSet<String>,
    /// Variables that hold an index, as `indexOf` returns it.
    pub(crate) places: HashSet<BindingId>,
    /// Literals of the constants that hold a regular expression.
    pub(crate) regexes: HashMap<BindingId, &'a RegExpLiteral<'a>>,
    /// Whether each variable, by the offset of its declaration, may hold an error.
    pub(crate) kept_errors: HashMap<u32, bool>,
    pub(crate) errors: crate::errors::Errors,
    /// True if the source uses the arguments as one value.
    pub(crate) wants_all_arguments: bool,
    /// Ends of chains of `then` and `catch` that the source waits for.
    pub(crate) awaited: HashSet<u32>,
    /// `exec` calls in loop conditions, by offset: all matches, and the variable that holds the
    /// index of the next match.
    pub(crate) stepped: HashMap<u32, (crate::value::Value, String)>,
    /// What a rewritten source calls by values.
    pub(crate) by_value: crate::dispatch::ByValue,
    /// Kind of iterable that the argument types declare for each argument.
    pub(crate) argument_sorts: HashMap<String, Iterable>,
    /// Arguments of the run that became variables: argument name and variable.
    pub(crate) arguments: Vec<(String, String)>,
    /// Arguments without a default of an agent without parameter types, with their offsets.
    pub(crate) named_arguments: Vec<(String, u32)>,
    /// End of the source, behind which functions of `library` stand.
    pub(crate) end: u32,
    /// The first call of a function of `library`.
    pub(crate) behind: Option<Span>,
    /// Method whose callback is lowered next, and the known type of its items.
    pub(crate) given: (&'a str, Known),
    pub(crate) types: HashMap<&'a str, Named<'a>>,
    /// Names of types around the one that is converted.
    pub(crate) open_types: Vec<&'a str>,
    /// JSDoc comments by the offset of the declaration that follows.
    pub(crate) comments: HashMap<u32, String>,
    pub(crate) next_temp: usize,
    /// Current recursion depth of the inspection of expressions.
    pub(crate) looks: Cell<u32>,
    nesting: u32,
    /// Maximum nesting that the current stack allows.
    most: u32,
    /// True if nesting exceeded `most` and a larger stack exists; the findings so far do not
    /// count.
    pub(crate) is_too_deep: bool,
    work: usize,
}

pub(crate) fn place(span: Span) -> Place {
    span.start..span.end
}

impl<'a> Lowerer<'a> {
    pub(crate) fn new(
        source: &'a str,
        ops: &'a (dyn Signatures + Sync),
        (names, scoping): (crate::guard::Words<'a>, Scoping),
        most: u32,
    ) -> Lowerer<'a> {
        Lowerer {
            source,
            ops,
            found: Vec::new(),
            causes: Vec::new(),
            found_in: Vec::new(),
            taken: names.all.into_iter().map(str::to_owned).collect(),
            scoping,
            has_dates: has_dates(source),
            has_maps: crate::maps::has_maps(source),
            permitted: HashSet::new(),
            variables: HashSet::new(),
            bindings: Vec::new(),
            scopes: vec![HashMap::new()],
            functions: Vec::new(),
            current: 0,
            around: Vec::new(),
            barrier: 0,
            label: None,
            copies: 0,
            helpers: HashMap::new(),
            calls: Vec::new(),
            sight: HashMap::new(),
            new_lists: HashSet::new(),
            places: HashSet::new(),
            regexes: HashMap::new(),
            kept_errors: HashMap::new(),
            errors: crate::errors::Errors::default(),
            wants_all_arguments: false,
            awaited: HashSet::new(),
            stepped: HashMap::new(),
            by_value: crate::dispatch::ByValue::default(),
            argument_sorts: HashMap::new(),
            arguments: Vec::new(),
            named_arguments: Vec::new(),
            end: source.len() as u32,
            behind: None,
            given: ("", Known::Nothing),
            types: HashMap::new(),
            open_types: Vec::new(),
            comments: HashMap::new(),
            next_temp: 0,
            looks: Cell::new(0),
            nesting: 0,
            most,
            is_too_deep: false,
            work: 0,
        }
    }

    /// Reports an error that rejects the source.
    pub(crate) fn deny(
        &mut self,
        code: &'static str,
        at: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.find(Diagnostic::error(code, message, ""), at, help);
    }

    /// Reports an error about a form outside of the subset.
    pub(crate) fn unsupported(&mut self, at: Span, what: &str, help: impl Into<String>) {
        let message = format!("{what} is outside of the subset");
        self.deny(codes::UNSUPPORTED, at, message, help);
    }

    /// Warns about a form that means something else in JavaScript.
    pub(crate) fn differs(&mut self, at: Span, message: &str, help: &str) {
        self.find(Diagnostic::warning(codes::DIFFERS, message, ""), at, help);
    }

    pub(crate) fn find(&mut self, found: Diagnostic, at: Span, help: impl Into<String>) {
        let offending = self.source.get(at.start as usize..at.end as usize);
        let offending = offending.unwrap_or_default();
        let line = offending.lines().next().unwrap_or_default();
        let found = found
            .with_span(place(at))
            .with_offending(a99_core::diag::excerpt(line))
            .with_help(help);
        // Limits apply to the whole source, even if the current function is dropped later.
        let of_all = matches!(found.code, codes::TOO_LARGE | codes::TOO_DEEP);
        let current = if of_all { 0 } else { self.current };
        let same = |(other, place): (&Diagnostic, &usize)| {
            other.span == found.span && other.message == found.message && *place == current
        };
        if self.found.iter().zip(&self.found_in).any(same) {
            return;
        }
        if self.found.len() < MAX_FINDINGS {
            self.found.push(found);
            self.found_in.push(current);
        } else if found.severity == Severity::Error
            && let Some(warning) = self
                .found
                .iter_mut()
                .find(|d| d.severity == Severity::Warning)
        {
            // A full list drops no finding, so the warning's position in `found_in` does not
            // matter.
            *warning = found;
        }
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// True if the list of findings is full of errors; lowering reports no more.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_FINDINGS
            && self
                .found
                .iter()
                .all(|found| found.severity == Severity::Error)
    }

    /// Enters one level of nesting unless that exceeds the limit of nesting or work.
    pub(crate) fn enter(&mut self, at: Span) -> bool {
        self.work += 1;
        if self.is_full() {
            return false;
        }
        if self.work > MAX_WORK {
            if self.work == MAX_WORK + 1 {
                let help = "split the work over several agents";
                self.deny(codes::TOO_LARGE, at, "the source has too much code", help);
            }
            return false;
        }
        if self.nesting >= self.most && self.most < MAX_NESTING {
            self.is_too_deep = true;
        }
        if self.is_too_deep {
            return false;
        }
        if self.nesting >= MAX_NESTING {
            let help = "compute parts of it into constants first";
            self.deny(codes::TOO_DEEP, at, "the expression nests too deep", help);
            return false;
        }
        self.nesting += 1;
        true
    }

    /// Counts the work of code that stands once in the source and is lowered for each use.
    pub(crate) fn repeat_work(&mut self, amount: usize) {
        if self.work < MAX_WORK {
            self.work = self.work.saturating_add(amount).min(MAX_WORK);
        }
    }

    pub(crate) fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Generates a variable whose name neither the source nor the program contains.
    pub(crate) fn push_scope(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(crate) fn pop_scope(&mut self) {
        for id in self.scopes.pop().unwrap_or_default().into_values() {
            self.out_of_sight(id);
        }
    }

    fn out_of_sight(&mut self, id: BindingId) {
        if let Some(count) = self.sight.get_mut(&self.bindings[id].name) {
            *count -= 1;
        }
    }

    /// Renames the variable of a binding.
    pub(crate) fn rename(&mut self, id: BindingId, name: &str) {
        self.out_of_sight(id);
        self.bindings[id].name = name.to_owned();
        *self.sight.entry(name.to_owned()).or_default() += 1;
    }

    /// Picks the variable's name for a declared name: the name itself unless it is reserved or a
    /// visible binding has it.
    fn name_for(&mut self, js: &str) -> String {
        // Hosts refuse forbidden names, and every `catch` sets `errorOp`.
        let reserved = a99_core::builtins::is_forbidden(js.as_bytes()) || js == "errorOp";
        if !reserved && !self.is_in_sight(js) {
            return js.to_owned();
        }
        let mut number = 2;
        loop {
            let name = format!("{js}_{number}");
            if !self.taken.contains(&name) && !self.is_in_sight(&name) {
                return name;
            }
            number += 1;
        }
    }

    fn is_in_sight(&self, name: &str) -> bool {
        self.sight.get(name).is_some_and(|count| *count > 0)
    }

    pub(crate) fn declare(
        &mut self,
        js: &'a str,
        at: Span,
        what: What,
        is_const: bool,
    ) -> BindingId {
        let top = self.scopes.len() - 1;
        if self.scopes[top].contains_key(js) {
            let message = format!("`{js}` is declared twice");
            self.deny(
                codes::BAD_BINDING,
                at,
                message,
                "give one of them another name",
            );
        }
        let name = self.name_for(js);
        if matches!(what, What::Variable | What::Caught | What::Error) {
            self.variables.insert(name.clone());
        }
        self.bindings.push(Binding {
            name,
            what,
            is_const,
            owner: self.current,
            at: at.start,
            is_ready: false,
            known: Known::Nothing,
            sort: Iterable::Unknown,
            changes: false,
        });
        let id = self.bindings.len() - 1;
        *self
            .sight
            .entry(self.bindings[id].name.clone())
            .or_default() += 1;
        if let Some(before) = self.scopes[top].insert(js, id) {
            self.out_of_sight(before);
        }
        id
    }

    /// Declares a variable outside of its temporal dead zone and returns its name.
    pub(crate) fn variable(&mut self, js: &'a str, at: Span, is_const: bool) -> String {
        let id = self.declare(js, at, What::Variable, is_const);
        self.bindings[id].is_ready = true;
        self.bindings[id].name.clone()
    }

    pub(crate) fn lookup(&self, js: &str) -> Option<BindingId> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(js).copied())
    }

    /// The name in an expression if the source does not declare it, such as the name of a
    /// builtin.
    pub(crate) fn free_name(&self, expr: &Expression<'a>) -> Option<&'a str> {
        match expr {
            Expression::Identifier(id) => {
                let name = id.name.as_str();
                self.lookup(name).is_none().then_some(name)
            }
            _ => None,
        }
    }

    /// True if an assignment other than the declaration may set the variable.
    pub(crate) fn is_set(&self, id: BindingId) -> bool {
        self.scoping.is_set(self.bindings[id].at)
    }

    /// Records that the current function captures a variable if an outer function owns it.
    pub(crate) fn note_read(&mut self, id: BindingId) {
        let current = self.current;
        if self.bindings[id].owner != current
            && let Some(function) = self.functions.get_mut(current)
            && !function.reads.contains(&id)
        {
            function.reads.push(id);
        }
    }

    pub(crate) fn add_function(
        &mut self,
        js: &str,
        code: Code<'a>,
        at: Span,
        gives_value: bool,
    ) -> usize {
        if self.functions.len() >= MAX_FUNCTIONS {
            let help = "split the work over several agents";
            self.deny(codes::TOO_LARGE, at, "too many functions", help);
            return self.functions.len() - 1;
        }
        let mut name = js.to_owned();
        while self.helpers.contains_key(&name) || a99_core::builtins::is_forbidden(name.as_bytes())
        {
            let number = self.helpers.entry(js.to_owned()).or_insert(2);
            name = format!("{js}_{number}");
            *number += 1;
        }
        self.helpers.insert(name.clone(), 2);
        self.functions.push(Function {
            name,
            code: Some(code),
            whole: Some(code),
            arity: code.params().items.len(),
            has_rest: code.params().rest.is_some(),
            gives_value,
            params: Vec::new(),
            steps: Vec::new(),
            place: place(at),
            reads: Vec::new(),
            calls: Vec::new(),
            parent: self.current,
            copied: None,
            is_made: false,
            has_copies: false,
            is_dropped: false,
        });
        self.functions.len() - 1
    }

    /// Makes a name that the source does not have.
    pub(crate) fn fresh(&mut self) -> String {
        loop {
            self.next_temp += 1;
            let name = format!("_{}", self.next_temp);
            if self.taken.insert(name.clone()) {
                self.variables.insert(name.clone());
                return name;
            }
        }
    }
}
