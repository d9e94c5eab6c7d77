//! Lowers the syntax tree of a source to the JSON tree of a program.
//!
//! A call that gives a value is a step of its own, so an expression with calls in it
//! becomes steps before the step that needs its value, in the order in which JavaScript
//! evaluates. Callbacks become loops in the same scope, functions become helpers, and the
//! variables of outer functions that a function reads become parameters of it.

use crate::codes;
use crate::higher::Copied;
use crate::iterable::Iterable;
use crate::known::Known;
use crate::leave::{Crossing, Left};
use crate::scoping::Scoping;
pub(crate) use crate::steps::{branch, for_each, named, set};
use crate::stmt::Update;
use crate::tree::{Place, Tree};
use a99_core::diag::{Diagnostic, Severity};
use a99_core::sig::Signatures;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{ArrowFunctionExpression, Expression, Function as FunctionNode, RegExpLiteral};
use oxc_span::Span;
use std::cell::Cell;

/// Findings that are kept.
pub(crate) const MAX_FINDINGS: usize = 50;

/// Expressions and statements in each other; fits the stack that lowering runs on.
pub(crate) const MAX_NESTING: u32 = 900;

/// Expressions and statements that are lowered, those that are lowered twice both times.
const MAX_WORK: usize = 400_000;

/// Functions of a source.
const MAX_FUNCTIONS: usize = 1000;

/// A number for a declared name.
pub(crate) type BindingId = usize;

/// What a declared name stands for.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A variable of the program.
    Variable,
    /// A constant whose value stands wherever it is used.
    Literal(Tree),
    /// A function, which is a helper.
    Function(usize),
    /// The function that is run.
    Agent,
    /// All arguments of the agent, whose members are variables.
    Arguments,
    /// The error of a `catch`, of which programs have the message.
    Caught,
    /// A regular expression literal, which stands wherever it is used.
    Regex,
}

/// A declared name.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    /// The variable's name in the program.
    pub(crate) name: String,
    pub(crate) what: What,
    /// Whether it may be set again.
    pub(crate) is_const: bool,
    /// The function that it belongs to.
    pub(crate) owner: usize,
    /// Where it is declared.
    pub(crate) at: u32,
    /// Whether its declaration was passed.
    pub(crate) is_ready: bool,
    /// What it surely is.
    pub(crate) known: Known,
    /// What a loop over it goes over.
    pub(crate) sort: Iterable,
    /// Whether it is a date that setters change, which has no other name.
    pub(crate) changes: bool,
}

/// The code of a function.
#[derive(Copy, Clone)]
pub(crate) enum Code<'a> {
    Function(&'a FunctionNode<'a>),
    Arrow(&'a ArrowFunctionExpression<'a>),
}

/// A function that becomes a helper.
pub(crate) struct Function<'a> {
    /// The helper's name.
    pub(crate) name: String,
    pub(crate) code: Option<Code<'a>>,
    /// The same, which stays.
    pub(crate) whole: Option<Code<'a>>,
    /// How many values it takes one by one.
    pub(crate) arity: usize,
    /// Whether it takes those behind them as a list.
    pub(crate) has_rest: bool,
    /// Whether whatever it returns is not `undefined`.
    pub(crate) gives_value: bool,
    pub(crate) params: Vec<Tree>,
    pub(crate) steps: Vec<Tree>,
    pub(crate) place: Place,
    /// Variables of outer functions that it reads itself.
    pub(crate) reads: Vec<BindingId>,
    /// Functions that it calls.
    pub(crate) calls: Vec<usize>,
    /// The function that it was found in.
    pub(crate) parent: usize,
    /// What it is a copy of.
    pub(crate) copied: Option<Copied>,
    /// Whether a call that hands functions over made it.
    pub(crate) is_made: bool,
    /// Whether there are copies of it.
    pub(crate) has_copies: bool,
    /// Whether it is no helper, as only its copies are called.
    pub(crate) is_dropped: bool,
}

/// What `return` in a callback does with the value.
#[derive(Clone, Debug)]
pub(crate) enum After {
    /// The value is not wanted.
    Nothing,
    /// Appends it to this list.
    Push(String),
    /// Sets this variable.
    Set(String),
    /// Where it is truthy (or falsy), sets the variable to this and ends the loop.
    Found(bool, String, Box<Tree>),
    /// Where it is truthy, appends this to the list.
    Keep(String, Box<Tree>),
    /// Appends its text to this variable.
    Append(String),
    /// Appends this item to the list that this object has for the value.
    Group(String, Box<Tree>),
    /// Appends it to this list as `Promise.allSettled` gives it.
    Settled(String),
}

/// What `break`, `continue` and `return` are in.
pub(crate) enum Around<'a> {
    /// A loop.
    Loop {
        /// What it does after each turn.
        update: Option<Update<'a>>,
        /// Whether what a `finally` follows is left, and ends it first.
        is_left: bool,
        label: Option<&'a str>,
        /// Whether it is a `switch`, which `break` ends.
        is_switch: bool,
        /// How loops within leave it.
        left: Left,
        /// What it ends for.
        crossed: Vec<Crossing>,
    },
    /// A `switch`.
    Switch,
    /// A callback that was made a loop.
    Callback(After, Left),
    /// Steps whose value `return` gives (`memoize`).
    Body,
    /// Statements that a `finally` follows, however they are left.
    Finally(crate::finally::Exits),
}

impl<'a> Around<'a> {
    pub(crate) fn a_loop(label: Option<&'a str>, update: Option<Update<'a>>) -> Self {
        Around::Loop {
            update,
            is_left: false,
            label,
            is_switch: false,
            left: Left::default(),
            crossed: Vec::new(),
        }
    }

    /// A `switch` that is left within a case: a loop of one turn.
    pub(crate) fn a_switch() -> Self {
        Around::Loop {
            update: None,
            is_left: false,
            label: None,
            is_switch: true,
            left: Left::default(),
            crossed: Vec::new(),
        }
    }
}

pub(crate) struct Lowerer<'a> {
    pub(crate) source: &'a str,
    pub(crate) ops: &'a (dyn Signatures + Sync),
    pub(crate) found: Vec<Diagnostic>,
    /// The functions that they were found in.
    pub(crate) found_in: Vec<usize>,
    /// Names in the source, and those that were given.
    pub(crate) taken: HashSet<String>,
    /// Which declaration each name stands for.
    pub(crate) scoping: Scoping,
    /// Whether anything may be a date.
    pub(crate) has_dates: bool,
    /// Where dates that setters change may be read, as nothing there keeps them.
    pub(crate) permitted: HashSet<u32>,
    /// Names of variables.
    pub(crate) variables: HashSet<String>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) scopes: Vec<HashMap<&'a str, BindingId>>,
    pub(crate) functions: Vec<Function<'a>>,
    /// The function whose code is lowered; 0 is the agent.
    pub(crate) current: usize,
    pub(crate) around: Vec<Around<'a>>,
    /// Scopes up to this one hold variables that the steps at hand may not set.
    pub(crate) barrier: usize,
    /// The label before the next loop.
    pub(crate) label: Option<&'a str>,
    /// Names of helpers, and the number that tells the next of this name apart.
    pub(crate) helpers: HashMap<String, usize>,
    /// How many copies of functions are being made.
    pub(crate) copies: usize,
    /// Calls of functions: from which, of which, where.
    pub(crate) calls: Vec<(usize, usize, Span)>,
    /// How many bindings in sight have each name.
    sight: HashMap<String, usize>,
    /// Variables of lists that nobody else has.
    pub(crate) new_lists: HashSet<String>,
    /// Variables that are places of something, as `indexOf` gives them.
    pub(crate) places: HashSet<BindingId>,
    /// The literals of constants that are regular expressions.
    pub(crate) regexes: HashMap<BindingId, &'a RegExpLiteral<'a>>,
    /// Whether the variables that are declared at these places keep errors.
    pub(crate) kept_errors: HashMap<u32, bool>,
    /// Calls of `exec` that tests of loops are: all matches, and the variable with the number
    /// of the next.
    pub(crate) stepped: HashMap<u32, (crate::value::Value, String)>,
    /// What the types of arguments of the run say that loops over them go over.
    pub(crate) argument_sorts: HashMap<String, Iterable>,
    /// Arguments of the run that became variables: name, variable.
    pub(crate) arguments: Vec<(String, String)>,
    /// Arguments of an agent without types that have no default, and where they are named.
    pub(crate) named_arguments: Vec<(String, u32)>,
    /// The method whose callback is lowered next, and what its items surely are.
    pub(crate) given: (&'a str, Known),
    /// Types by their names.
    pub(crate) types: HashMap<&'a str, crate::types::Named<'a>>,
    /// JSDoc comments by the place of what follows.
    pub(crate) comments: HashMap<u32, String>,
    next_temp: usize,
    /// How deep expressions are looked into at the moment.
    pub(crate) looks: Cell<u32>,
    nesting: u32,
    /// Nesting that there is a stack for.
    most: u32,
    /// Whether more was met, if there is a larger stack: nothing that was found counts.
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
            found_in: Vec::new(),
            taken: names.all.into_iter().map(str::to_owned).collect(),
            scoping,
            has_dates: crate::dates::has_dates(source),
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
            stepped: HashMap::new(),
            argument_sorts: HashMap::new(),
            arguments: Vec::new(),
            named_arguments: Vec::new(),
            given: ("", Known::Nothing),
            types: HashMap::new(),
            comments: HashMap::new(),
            next_temp: 0,
            looks: Cell::new(0),
            nesting: 0,
            most,
            is_too_deep: false,
            work: 0,
        }
    }

    /// Adds a finding that rejects the source.
    pub(crate) fn deny(
        &mut self,
        code: &'static str,
        at: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.find(Diagnostic::error(code, message, ""), at, help);
    }

    /// Adds a finding about a form outside of the subset.
    pub(crate) fn unsupported(&mut self, at: Span, what: &str, help: impl Into<String>) {
        let message = format!("{what} is outside of the subset");
        self.deny(codes::UNSUPPORTED, at, message, help);
    }

    /// Adds a finding about what is accepted and means something else than in JavaScript.
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
        // Limits hold for the whole, whatever of it stays.
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
            // Nothing is taken away from a full list, so that its place does not matter.
            *warning = found;
        }
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there are as many errors as anybody wants to read.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_FINDINGS
            && self
                .found
                .iter()
                .all(|found| found.severity == Severity::Error)
    }

    /// Goes one level deeper, unless that or the work is too much.
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

    /// Counts code that is lowered in many places and written in one.
    pub(crate) fn repeat_work(&mut self, amount: usize) {
        if self.work < MAX_WORK {
            self.work = self.work.saturating_add(amount).min(MAX_WORK);
        }
    }

    pub(crate) fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// A name that is nowhere in the source.
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

    /// Gives a binding another name.
    pub(crate) fn rename(&mut self, id: BindingId, name: &str) {
        self.out_of_sight(id);
        self.bindings[id].name = name.to_owned();
        *self.sight.entry(name.to_owned()).or_default() += 1;
    }

    /// The name of a variable for a declared name: itself, unless one that is in sight
    /// has it.
    fn name_for(&mut self, js: &str) -> String {
        // Names that hosts refuse, and what every `catch` sets.
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

    /// Declares a name in the innermost scope.
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
        if matches!(what, What::Variable | What::Caught) {
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

    /// A declared variable that can be read from now on.
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

    /// The name that an expression is, where nothing in the source declares it: that of a
    /// builtin, if any.
    pub(crate) fn free_name(&self, expr: &Expression<'a>) -> Option<&'a str> {
        match expr {
            Expression::Identifier(id) => {
                let name = id.name.as_str();
                self.lookup(name).is_none().then_some(name)
            }
            _ => None,
        }
    }

    /// Whether a variable may be set elsewhere than in its declaration.
    pub(crate) fn is_set(&self, id: BindingId) -> bool {
        self.scoping.is_set(self.bindings[id].at)
    }

    /// Notes that the function at hand reads a variable.
    pub(crate) fn note_read(&mut self, id: BindingId) {
        let current = self.current;
        if self.bindings[id].owner != current
            && let Some(function) = self.functions.get_mut(current)
            && !function.reads.contains(&id)
        {
            function.reads.push(id);
        }
    }

    /// A new helper.
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
}
