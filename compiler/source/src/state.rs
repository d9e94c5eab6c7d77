//! State of lowering: names, functions, facts about values, and the constructs around a statement.

use crate::tree::{Place, Tree};
use oxc_ast::ast::{
    ArrowFunctionExpression, Expression, Function as FunctionNode, TSInterfaceDeclaration, TSType,
};

/// Index of a binding in `Lowerer::bindings`.
pub(crate) type BindingId = usize;

/// Kind of entity that a declared name refers to.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A variable of the program.
    Variable,
    /// A constant whose literal replaces each use.
    Literal(Tree),
    /// A helper function, by its index.
    Function(usize),
    /// The function that the run calls.
    Agent,
    /// The object of all arguments of the agent; its members are variables.
    Arguments,
    /// The error of a `catch`; programs see only its message.
    Caught,
    /// An error that is an object: what a `catch` binds, or `new Error(...)` in a constant.
    Error,
    /// A regular expression literal that replaces each use of its constant.
    Regex,
}

/// A declared name and the facts that lowering knows about it.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    /// The variable's name in the JSON program.
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) is_const: bool,
    /// Function that declares it.
    pub(crate) owner: usize,
    /// Source offset of the declaration.
    pub(crate) at: u32,
    /// False in the temporal dead zone: lowering has not reached the declaration yet.
    pub(crate) is_ready: bool,
    /// Type that every value of the binding has, as far as lowering can prove it.
    pub(crate) known: Known,
    /// Kind of iterable that a loop over the binding sees.
    pub(crate) sort: Iterable,
    /// True for a date that setters change; such a date has no alias.
    pub(crate) changes: bool,
}

/// Syntax node of a function.
#[derive(Copy, Clone)]
pub(crate) enum Code<'a> {
    Function(&'a FunctionNode<'a>),
    Arrow(&'a ArrowFunctionExpression<'a>),
}

/// A function that becomes a helper.
pub(crate) struct Function<'a> {
    pub(crate) name: String,
    pub(crate) code: Option<Code<'a>>,
    /// Same as `code`, kept after lowering takes `code`.
    pub(crate) whole: Option<Code<'a>>,
    /// Number of positional parameters.
    pub(crate) arity: usize,
    /// True if a rest parameter collects the remaining arguments as a list.
    pub(crate) has_rest: bool,
    /// True if no return value is `undefined`.
    pub(crate) gives_value: bool,
    pub(crate) params: Vec<Tree>,
    pub(crate) steps: Vec<Tree>,
    pub(crate) place: Place,
    /// Variables of outer functions that its body reads directly.
    pub(crate) reads: Vec<BindingId>,
    /// Functions that it calls, by index.
    pub(crate) calls: Vec<usize>,
    /// Enclosing function.
    pub(crate) parent: usize,
    /// Origin of a copy that `higher.rs` specialises for function arguments.
    pub(crate) copied: Option<Copied>,
    /// True for a function that a call with function arguments created.
    pub(crate) is_made: bool,
    pub(crate) has_copies: bool,
    /// True if it becomes no helper because programs call only its copies.
    pub(crate) is_dropped: bool,
}

/// Use that lowering makes of the value that a callback returns.
#[derive(Clone, Debug)]
pub(crate) enum After {
    /// Discards the value.
    Nothing,
    /// Appends the value to this list.
    Push(String),
    /// Sets this variable to the value.
    Set(String),
    /// If the value is truthy (or falsy), sets the variable to the tree and ends the loop.
    Found(bool, String, Box<Tree>),
    /// If the value is truthy, appends the tree to the list.
    Keep(String, Box<Tree>),
    /// Appends the value's text to this variable.
    Append(String),
    /// Appends the item to the list that the object holds under the value as key.
    Group(String, Box<Tree>),
    /// Appends the value to this list in the form of `Promise.allSettled`.
    Settled(String),
}

/// Construct that encloses the current statement and that `break`, `continue` or `return` may
/// leave.
pub(crate) enum Around<'a> {
    Loop {
        /// Step after each turn: the update of a `for`, or the test of a `do`.
        update: Option<Update<'a>>,
        /// True if a jump to an enclosing `finally` ends this loop first.
        is_left: bool,
        label: Option<&'a str>,
        /// True for a `switch`, which `break` ends.
        is_switch: bool,
        /// Variables that inner loops set to leave this loop.
        left: Left,
        /// Jumps to enclosing loops or callbacks that end this loop first.
        crossed: Vec<Crossing>,
    },
    /// A `switch` without a `break` inside a case.
    Switch,
    /// A callback that lowering turns into a loop.
    Callback(After, Left),
    /// Steps whose value `return` gives, such as those of `memoize`.
    Body,
    /// A `try` with a `finally`: every jump out of it is recorded and waits for the `finally`.
    Finally(Exits),
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

    /// A `switch` with a `break` inside a case: a loop of one turn.
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

/// Code that a loop runs after each turn.
#[derive(Copy, Clone)]
pub(crate) enum Update<'a> {
    /// Update expression of a classic `for`.
    Effect(&'a Expression<'a>),
    /// Test of a `do ... while`, which ends the loop if it is falsy.
    Test(&'a Expression<'a>),
}

/// Variables that inner loops set to leave this loop or callback.
#[derive(Default)]
pub(crate) struct Left {
    /// Variable with the word of the jump, or `""`; `None` if no inner loop leaves.
    pub(crate) flag: Option<String>,
    /// Variable of the value of a `return`.
    pub(crate) value: Option<String>,
}

/// A jump to an enclosing loop or callback that ends this loop first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// Index of the target in `around`.
    pub(crate) target: usize,
    pub(crate) word: &'static str,
}

/// Exits from a `try` that a `finally` follows.
pub(crate) struct Exits {
    /// Variable with the word of the pending exit, which is one of `used`, or empty.
    pub(crate) kind: String,
    /// Variable of the value of a `return`.
    pub(crate) value: String,
    pub(crate) used: Vec<&'static str>,
}

/// Key of a copy: the original function, and the functions that its parameters are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) of: usize,
    pub(crate) bound: Vec<(usize, usize)>,
}

/// A callback argument.
#[derive(Copy, Clone)]
pub(crate) enum Callback<'a> {
    /// An inline function.
    Code(Code<'a>),
    /// A function of the source, by its index.
    Helper(usize),
    /// A builtin: its namespace, which may be empty, and its name.
    Builtin(&'a str, &'a str),
}

/// Inferred type of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Nothing,
    /// A number, or another value that is not a date.
    Number,
    Date,
    /// The result of `match` and `exec`: an object in programs, or `null`.
    Match,
    /// A list of dates.
    Dates,
    /// A list of matches.
    Matches,
    /// An outcome of a call in the form of `Promise.allSettled`.
    Settled,
    /// A list of outcomes.
    AllSettled,
    /// A list of a name and a value.
    Pair,
    /// A list of pairs, as `Object.entries` returns it.
    Pairs,
    /// The result of `Object.freeze`.
    Frozen,
    /// A formatter of `Intl`.
    NumberFormat,
    DateFormat,
}

impl Known {
    /// Returns the type of the items of a list.
    pub(crate) fn item(self) -> Known {
        match self {
            Known::Dates => Known::Date,
            Known::Matches => Known::Match,
            Known::AllSettled => Known::Settled,
            Known::Pairs => Known::Pair,
            _ => Known::Nothing,
        }
    }

    /// Returns the type of a list of these items.
    pub(crate) fn list(self) -> Known {
        match self {
            Known::Date => Known::Dates,
            Known::Match => Known::Matches,
            Known::Settled => Known::AllSettled,
            Known::Pair => Known::Pairs,
            _ => Known::Nothing,
        }
    }
}

/// Kind of iterable, as far as lowering knows it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Iterable {
    List,
    Text,
    Set,
    Map,
    /// An object, which is not iterable.
    Object,
    Unknown,
}

/// A named type: an alias or an interface.
#[derive(Copy, Clone)]
pub(crate) enum Named<'a> {
    Alias(&'a TSType<'a>),
    Interface(&'a TSInterfaceDeclaration<'a>),
    /// A parameter of another type, which stands for any type.
    Parameter,
}

/// True if a source makes dates or declares a value as one. Functions of `Date` alone return
/// numbers.
pub(crate) fn has_dates(source: &str) -> bool {
    let mut rest = source;
    while let Some((_, behind)) = rest.split_once("Date") {
        let goes_on = behind.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$'));
        if !goes_on && !behind.trim_start().starts_with('.') {
            return true;
        }
        rest = behind;
    }
    false
}
