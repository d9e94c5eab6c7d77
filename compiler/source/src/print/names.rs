//! Names of a program and the variables that stand for them in a source.

use crate::spell::is_name;
use a99_core::builtins::{Global, global};
use std::collections::{BTreeMap, BTreeSet};

/// Words of JavaScript that name nothing.
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

/// Whether a name has a value where it is read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing bound it.
    Free,
    /// It has one.
    Bound,
    /// What it was given, unless that was missing, which bound nothing.
    Given,
    /// On some ways.
    Maybe,
}

#[derive(Clone, Debug)]
struct Variable {
    js: String,
    state: State,
    /// The error of a `catch`: its text is the member `message` there.
    is_error: bool,
    is_const: bool,
}

#[derive(Clone, Debug, Default)]
struct Scope {
    names: BTreeMap<Vec<u8>, Variable>,
    /// Whether nothing around is seen: the scope of a function.
    is_function: bool,
}

/// The scopes at a place.
pub(crate) struct Scopes {
    stack: Vec<Scope>,
    /// Names of functions and atoms, and all that were given.
    taken: BTreeSet<String>,
    /// Scopes of their own around.
    within: usize,
}

/// The states of all names, to be joined after a branch.
pub(crate) type Snapshot = Vec<BTreeMap<Vec<u8>, State>>;

impl Scopes {
    /// No scope; the names of these atoms are taken.
    pub(crate) fn new(atoms: BTreeSet<String>) -> Scopes {
        Scopes {
            stack: Vec::new(),
            taken: atoms,
            within: 0,
        }
    }

    /// A name for the whole source.
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

    /// The same of an error whose variable has a name.
    pub(crate) fn declare_error_as(&mut self, name: &[u8], js: &str) {
        self.declare_as(name, js);
        if let Some(variable) = self.find_mut(name) {
            variable.is_error = true;
        }
    }

    /// Makes a name stand for this text.
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

    /// Whether the innermost scope has a name.
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        self.stack
            .last()
            .is_some_and(|scope| scope.names.contains_key(name))
    }

    /// Notes that a scope of its own is entered, and gives how many were.
    pub(crate) fn go_within(&mut self, by: usize) -> usize {
        let before = self.within;
        self.within += by;
        before
    }

    pub(crate) fn come_back(&mut self, depth: usize) {
        self.within = depth;
    }

    /// Whether a scope of its own is around, within the function at hand.
    pub(crate) fn is_within(&self) -> bool {
        self.within > 0
    }

    /// Another variable that no name of the program stands for.
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

    /// Notes that a name is a constant.
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

    /// Notes that a name has a value from now on.
    pub(crate) fn bind(&mut self, name: &[u8]) {
        if let Some(variable) = self.find_mut(name) {
            variable.state = State::Bound;
        }
    }

    /// Gives a name a state.
    pub(crate) fn set_state(&mut self, name: &[u8], state: State) {
        if let Some(variable) = self.find_mut(name) {
            variable.state = state;
        }
    }

    /// Notes that a name may have a value from now on.
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

    /// How a variable is written where its value is meant.
    pub(crate) fn written(&self, name: &[u8]) -> Option<String> {
        let variable = self.find(name)?;
        Some(match variable.is_error {
            true => format!("{}.message", variable.js),
            false => variable.js.clone(),
        })
    }

    /// The variable to assign to.
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

    /// After two ways that meet: what only one of them bound may be bound.
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
