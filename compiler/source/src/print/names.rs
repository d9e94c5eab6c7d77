//! Maps names of a program to the variables of a source.

use crate::spell::is_name;
use a99_core::builtins::{Global, global};
use std::collections::{BTreeMap, BTreeSet};

/// Reserved words of JavaScript.
const WORDS: [&str; 50] = [
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "arguments",
    "eval",
    "agent",
    "async",
];

/// State of a name at the place that reads it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No step bound it.
    Free,
    /// It has a value.
    Bound,
    /// A step gave it a result; a missing result bound no value.
    Given,
    /// Some paths bound it.
    Maybe,
}

#[derive(Clone, Debug)]
struct Variable {
    js: String,
    state: State,
    /// True for the error of a `catch`, whose text is the member `message` in the source.
    is_error: bool,
    is_const: bool,
}

#[derive(Clone, Debug, Default)]
struct Scope {
    names: BTreeMap<Vec<u8>, Variable>,
    /// True for the scope of a function, from which outer names are not visible.
    is_function: bool,
}

/// Stack of scopes at a place.
pub(crate) struct Scopes {
    stack: Vec<Scope>,
    /// Names of functions and atoms, and all generated names.
    taken: BTreeSet<String>,
    /// Number of enclosing separate scopes.
    within: usize,
}

/// States of all names, which are joined after a branch.
pub(crate) type Snapshot = Vec<BTreeMap<Vec<u8>, State>>;

impl Scopes {
    /// Creates an empty stack; the names of these atoms are taken.
    pub(crate) fn new(atoms: BTreeSet<String>) -> Scopes {
        Scopes {
            stack: Vec::new(),
            taken: atoms,
            within: 0,
        }
    }

    /// Reserves a name that is unique in the whole source.
    pub(crate) fn reserve(&mut self, name: &[u8]) -> String {
        let js = self.free_name(name);
        self.taken.insert(js.clone());
        js
    }

    fn free_name(&self, name: &[u8]) -> String {
        let stem: String = String::from_utf8_lossy(name)
            .chars()
            .map(|c| {
                if c.is_alphanumeric() || matches!(c, '_' | '$') {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let stem = match is_name(stem.as_bytes()) && !stem.is_empty() {
            true => stem,
            false => format!("_{stem}"),
        };
        let is_free = |name: &str| {
            !self.taken.contains(name)
                && !WORDS.contains(&name)
                && matches!(global(name), None | Some(Global::Refused(_)))
                && !self
                    .stack
                    .iter()
                    .any(|scope| scope.names.values().any(|v| v.js == name))
        };
        let mut js = stem.clone();
        let mut number = 2;
        while !is_free(&js) {
            js = format!("{stem}_{number}");
            number += 1;
        }
        js
    }

    pub(crate) fn enter(&mut self, is_function: bool) {
        self.stack.push(Scope {
            is_function,
            ..Scope::default()
        });
    }

    pub(crate) fn leave(&mut self) {
        self.stack.pop();
    }

    /// Declares a name in the innermost scope.
    pub(crate) fn declare(&mut self, name: &[u8]) -> String {
        let js = self.free_name(name);
        let variable = Variable {
            js: js.clone(),
            state: State::Free,
            is_error: false,
            is_const: false,
        };
        if let Some(scope) = self.stack.last_mut() {
            scope.names.insert(name.to_vec(), variable);
        }
        js
    }

    pub(crate) fn declare_error(&mut self, name: &[u8]) -> String {
        let js = self.declare(name);
        if let Some(variable) = self.find_mut(name) {
            variable.is_error = true;
            variable.state = State::Bound;
        }
        js
    }

    /// Declares the error of a `catch` whose variable already has a name.
    pub(crate) fn declare_error_as(&mut self, name: &[u8], js: &str) {
        self.declare_as(name, js);
        if let Some(variable) = self.find_mut(name) {
            variable.is_error = true;
        }
    }

    /// Declares a name that the source writes as this text.
    pub(crate) fn declare_as(&mut self, name: &[u8], text: &str) {
        let variable = Variable {
            js: text.to_owned(),
            state: State::Bound,
            is_error: false,
            is_const: false,
        };
        if let Some(scope) = self.stack.last_mut() {
            scope.names.insert(name.to_vec(), variable);
        }
    }

    /// True if the innermost scope has a name.
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        self.stack
            .last()
            .is_some_and(|scope| scope.names.contains_key(name))
    }

    /// Enters separate scopes and returns the number of those around.
    pub(crate) fn go_within(&mut self, by: usize) -> usize {
        let before = self.within;
        self.within += by;
        before
    }

    pub(crate) fn come_back(&mut self, depth: usize) {
        self.within = depth;
    }

    /// True if a separate scope encloses the place inside the current function.
    pub(crate) fn is_within(&self) -> bool {
        self.within > 0
    }

    /// Reserves a variable that has no counterpart in the program.
    pub(crate) fn temporary(&mut self, stem: &str) -> String {
        self.reserve(stem.as_bytes())
    }

    fn visible(&self) -> impl Iterator<Item = &Scope> {
        let mut ended = false;
        self.stack.iter().rev().take_while(move |scope| {
            let is_seen = !ended;
            ended |= scope.is_function;
            is_seen
        })
    }

    fn find(&self, name: &[u8]) -> Option<&Variable> {
        self.visible().find_map(|scope| scope.names.get(name))
    }

    fn find_mut(&mut self, name: &[u8]) -> Option<&mut Variable> {
        for scope in self.stack.iter_mut().rev() {
            let is_function = scope.is_function;
            if scope.names.contains_key(name) {
                return scope.names.get_mut(name);
            }
            if is_function {
                return None;
            }
        }
        None
    }

    /// Marks a name as a constant.
    pub(crate) fn keep(&mut self, name: &[u8]) {
        if let Some(variable) = self.find_mut(name) {
            variable.is_const = true;
        }
    }

    pub(crate) fn is_constant(&self, name: &[u8]) -> bool {
        self.find(name).is_some_and(|variable| variable.is_const)
    }

    pub(crate) fn is_declared(&self, name: &[u8]) -> bool {
        self.find(name).is_some()
    }

    /// Records that a name has a value from now on.
    pub(crate) fn bind(&mut self, name: &[u8]) {
        if let Some(variable) = self.find_mut(name) {
            variable.state = State::Bound;
        }
    }

    pub(crate) fn set_state(&mut self, name: &[u8], state: State) {
        if let Some(variable) = self.find_mut(name) {
            variable.state = state;
        }
    }

    /// Records that a name may have a value from now on.
    pub(crate) fn may_bind(&mut self, name: &[u8]) {
        if let Some(variable) = self.find_mut(name)
            && variable.state == State::Free
        {
            variable.state = State::Maybe;
        }
    }

    pub(crate) fn state(&self, name: &[u8]) -> State {
        self.find(name)
            .map_or(State::Free, |variable| variable.state)
    }

    /// Returns the text that reads a name's value.
    pub(crate) fn written(&self, name: &[u8]) -> Option<String> {
        let variable = self.find(name)?;
        Some(match variable.is_error {
            true => format!("{}.message", variable.js),
            false => variable.js.clone(),
        })
    }

    /// Returns the variable to assign to.
    pub(crate) fn target(&self, name: &[u8]) -> Option<String> {
        let variable = self.find(name).filter(|variable| !variable.is_error)?;
        Some(variable.js.clone())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let states = |scope: &Scope| {
            let names = scope.names.iter();
            names.map(|(name, v)| (name.clone(), v.state)).collect()
        };
        self.stack.iter().map(states).collect()
    }

    pub(crate) fn restore(&mut self, snapshot: &Snapshot) {
        self.each(snapshot, |_, before| before);
    }

    /// Joins two paths: a name that only one path bound is `Maybe` bound.
    pub(crate) fn join(&mut self, other: &Snapshot) {
        self.each(other, |one, other| match one == other {
            true => one,
            false => State::Maybe,
        });
    }

    fn each(&mut self, snapshot: &Snapshot, of: impl Fn(State, State) -> State) {
        for (scope, states) in self.stack.iter_mut().zip(snapshot) {
            for (name, variable) in &mut scope.names {
                let other = states.get(name).copied().unwrap_or(State::Free);
                variable.state = of(variable.state, other);
            }
        }
    }
}
