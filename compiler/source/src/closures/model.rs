//! The functions, variables, calls and uses of a source, as the decisions about closures need
//! them.

use super::flow::{Flow, Node};
use crate::lower::Code;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{Argument, CallExpression, Class, Expression, Function as FunctionNode};
use oxc_span::Span;

/// Form of a variable's declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// A function declaration, or a constant that holds a function literal.
    Function(usize),
    Class(usize),
    /// A name in a declaration statement: its value, and the end of type and name.
    Declarator {
        init: Option<Span>,
        end: u32,
        /// Start of the statement if it declares nothing else.
        start: Option<u32>,
    },
    /// A name in a pattern of a declaration statement, with the statement's end.
    Pattern {
        end: u32,
    },
    /// A parameter of a function.
    Param(usize),
    /// A variable in the head of `for (let i = 0; ...)`, with the body.
    Head(Span),
    /// A variable of `for ... of` or `for ... in`, with the body.
    Each(Span),
    /// The error of a `catch`.
    Caught,
    /// The object of all arguments of the agent.
    Arguments,
}

pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: Span,
    pub(crate) declared: Declared,
    /// Function that declares it; 0 for the top and the agent.
    pub(crate) owner: usize,
    /// True if it is declared outside of all functions.
    pub(crate) is_top: bool,
    pub(crate) is_const: bool,
    /// True if it is declared in the outermost block of its function.
    pub(crate) is_outermost: bool,
    /// True for a name that stands for its key, too, as in `{ a }`.
    pub(crate) is_short: bool,
    pub(crate) node: Node,
}

/// A name at which a variable is read or set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ref {
    pub(crate) symbol: usize,
    pub(crate) at: Span,
    pub(crate) fun: usize,
    pub(crate) sets: bool,
    pub(crate) is_short: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// A method, getter, setter or static function of a class.
    Method,
    Constructor,
}

pub(crate) struct Fun<'a> {
    pub(crate) code: Option<Code<'a>>,
    pub(crate) span: Span,
    pub(crate) symbol: Option<usize>,
    pub(crate) parent: usize,
    pub(crate) kind: Kind,
    /// Call of a builtin method that takes the function as its callback.
    pub(crate) slot: Option<usize>,
    /// True for a function whose code becomes part of the enclosing function.
    pub(crate) is_inline: bool,
    /// True if its code, or an arrow function in it, uses `this`.
    pub(crate) uses_this: bool,
    /// Statement that declares it, or the literal.
    pub(crate) whole: Span,
    /// A builtin function by its name, which a function calls.
    pub(crate) builtin: Option<&'a str>,
    /// Key of a method of an object literal.
    pub(crate) key: Option<Span>,
}

/// Position of an expression that may be a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Value,
    Callee,
    /// Initialiser of the constant that names it.
    Definition,
    /// Argument of a call: its number, and the position.
    Argument(usize, usize),
    /// A function in the argument of an atom, which takes it as steps.
    Atom,
}

/// Use of a function literal, or of a name that may be a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) span: Span,
    pub(crate) place: Place,
    pub(crate) fun: usize,
    pub(crate) of: Used,
    pub(crate) is_short: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    Literal(usize),
    Symbol(usize),
}

/// What a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// A name that the source declares.
    Name(usize),
    /// A name that it does not declare: an atom or builtin.
    Global,
    /// A method of a value.
    Method,
    /// A function of a namespace, such as `Math.max`.
    Namespace,
    /// Another expression.
    Other,
    /// `new` of a class of the source.
    New(usize),
}

pub(crate) struct Site<'a> {
    pub(crate) span: Span,
    pub(crate) calls: Calls,
    /// Absent for `new`.
    pub(crate) call: Option<&'a CallExpression<'a>>,
    pub(crate) args: &'a [Argument<'a>],
    /// The callee, or the receiver of a method.
    pub(crate) target: Node,
    /// What the member of the receiver holds.
    pub(crate) member: Option<Node>,
    pub(crate) name: &'a str,
    pub(crate) fun: usize,
    /// Position of the callback among the arguments and how many arguments it gets, if the name is
    /// that of a method with a callback.
    pub(crate) slot: Option<(usize, usize)>,
}

/// A member that is read or set, or tested by `in`.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) span: Span,
    pub(crate) object: Span,
    pub(crate) target: Node,
    pub(crate) name: &'a str,
    pub(crate) is_optional: bool,
}

/// Assignment to a member.
#[derive(Clone, Copy)]
pub(crate) struct Store<'a> {
    /// The whole assignment and its value; absent in patterns and updates.
    pub(crate) whole: Option<(Span, Span)>,
    pub(crate) member: Span,
    pub(crate) object: Span,
    pub(crate) target: Node,
    pub(crate) name: &'a str,
    pub(crate) is_plain: bool,
}

/// Position at which a function would become data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Returned,
    Json,
    Atom,
    Text,
    Operand,
    Thrown,
    Copied,
    Keys,
}

pub(crate) struct ClassInfo<'a> {
    pub(crate) node: &'a Class<'a>,
    pub(crate) name: &'a str,
    pub(crate) whole: Span,
    pub(crate) constructor: Option<usize>,
    /// Function in which the field initialisers run.
    pub(crate) fields: usize,
    pub(crate) functions: Vec<(&'a FunctionNode<'a>, usize)>,
    pub(crate) instance: usize,
    pub(crate) has_private: bool,
    pub(crate) is_nested: bool,
}

/// Test of a value by its type.
#[derive(Clone, Copy)]
pub(crate) struct TypeTest<'a> {
    pub(crate) span: Span,
    pub(crate) argument: &'a Expression<'a>,
    pub(crate) node: Node,
}

/// `x instanceof C` for a class of the source.
#[derive(Clone, Copy)]
pub(crate) struct InstanceTest {
    pub(crate) span: Span,
    pub(crate) left: Span,
    pub(crate) node: Node,
    pub(crate) class: usize,
}

pub(crate) struct Model<'a> {
    pub(crate) source: &'a str,
    pub(crate) flow: Flow,
    pub(crate) symbols: Vec<Symbol<'a>>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) funs: Vec<Fun<'a>>,
    pub(crate) uses: Vec<Use>,
    pub(crate) sites: Vec<Site<'a>>,
    pub(crate) accesses: Vec<Access<'a>>,
    pub(crate) stores: Vec<Store<'a>>,
    pub(crate) sinks: Vec<(Node, Span, Sink)>,
    /// Comparisons of identity: both sides.
    pub(crate) equals: Vec<(Node, Node, Span)>,
    pub(crate) type_tests: Vec<TypeTest<'a>>,
    pub(crate) instance_tests: Vec<InstanceTest>,
    /// The variable for `this` of each function.
    pub(crate) this_symbols: HashMap<usize, usize>,
    /// Offsets of expressions of which a member is taken.
    pub(crate) owners: HashSet<u32>,
    pub(crate) returns: Vec<(Span, usize, bool)>,
    pub(crate) classes: Vec<ClassInfo<'a>>,
    /// Function of each code.
    pub(crate) fun_spans: HashMap<(u32, u32), usize>,
    /// Node of each expression.
    pub(crate) nodes: HashMap<(u32, u32), Node>,
    /// Names of atoms are calls of global names that are no builtin functions.
    pub(crate) scopes: Vec<HashMap<&'a str, usize>>,
    /// Symbols by the offset of their declaration.
    pub(crate) declared: HashMap<u32, usize>,
    pub(crate) current: usize,
    /// Function whose `this` is visible.
    pub(crate) this_of: Option<usize>,
    pub(crate) plain: Node,
    pub(crate) data: Node,
    pub(crate) agent_at: Option<u32>,
    pub(crate) agent_code: Option<Code<'a>>,
    /// Offsets at which statements of an expression start.
    pub(crate) starts: HashSet<u32>,
    /// The first form that closures do not know.
    pub(crate) foreign: Option<Span>,
    /// Calls of methods of which nothing is known; their arguments become data unless the method
    /// is of the source.
    pub(crate) unknown_args: Vec<usize>,
    /// Variables that are known to be functions, or not, in the code that is read.
    /// Number of scopes around the statements of the function that is read.
    pub(crate) depth: usize,
    pub(crate) narrowings: Vec<(usize, bool)>,
    pub(crate) scoping: crate::scoping::Scoping,
    pub(crate) problems: Vec<(Span, String, String)>,
}

impl Model<'_> {
    pub(crate) fn text_of(&self, at: Span) -> &str {
        let text = self.source.get(at.start as usize..at.end as usize);
        text.unwrap_or_default()
    }

    /// Notes a form that closures do not know.
    pub(crate) fn foreign(&mut self, at: Span) {
        self.foreign.get_or_insert(at);
    }

    pub(crate) fn refuse(&mut self, at: Span, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push((at, message.into(), help.into()));
    }

    /// True if a call calls a function of the source under the name of a builtin method.
    pub(crate) fn is_own(&self, site: usize) -> bool {
        let site = &self.sites[site];
        let classes = self.flow.instances_in(site.target);
        let has_method = |class: &usize| {
            let members = &self.flow.classes[*class];
            members.methods.contains_key(site.name)
        };
        let is_static = site.calls == Calls::Method
            && self.flow.sets[site.target].iter().any(|value| {
                matches!(&self.flow.values[*value], super::flow::What::Class(class)
                    if self.flow.classes[*class].statics.contains_key(site.name))
            });
        let member = site.member;
        let in_member = member.is_some_and(|node| !self.flow.functions_in(node).is_empty());
        site.calls == Calls::Method && (classes.iter().any(has_method) || in_member || is_static)
    }

    /// True if a value is an instance of a class of the source.
    pub(crate) fn is_instance(&self, node: Node) -> bool {
        let is_other = |site: &usize| {
            !matches!(&self.flow.values[*site], super::flow::What::Object(object)
                if matches!(object.made, super::flow::Made::Instance(_)))
        };
        !self.flow.sets[node].is_empty() && !self.flow.sets[node].iter().any(is_other)
    }

    /// True if the code of a function becomes part of the enclosing function.
    pub(crate) fn is_inline(&self, fun: usize) -> bool {
        let fun = &self.funs[fun];
        fun.is_inline || fun.slot.is_some_and(|site| !self.is_own(site))
    }

    /// The function whose variables code has: the enclosing one that is not inline.
    pub(crate) fn home(&self, mut fun: usize) -> usize {
        while fun != 0 && self.is_inline(fun) {
            fun = self.funs[fun].parent;
        }
        fun
    }

    /// True if a function is within another, or is it.
    pub(crate) fn is_within(&self, mut fun: usize, outer: usize) -> bool {
        loop {
            if fun == outer {
                return true;
            }
            if fun == 0 {
                return false;
            }
            fun = self.funs[fun].parent;
        }
    }
}
