//! Random programs in the source form, for the comparison with JavaScript. Their values are
//! typed, so that most operations are meaningful, and their loops end.

mod closures;
mod control;
mod forms;
mod newer;
mod values;

pub use closures::closures;

use crate::numbers::Numbers;
use std::fmt::Write as _;

/// Type of an expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Type {
    Number,
    Text,
    Bool,
    /// A list of numbers.
    List,
    /// An object whose members are numbers.
    Object,
}

use Type::{Bool, List, Number, Object, Text};

const TYPES: [Type; 5] = [Number, Text, Bool, List, Object];

#[derive(Clone, Debug)]
struct Variable {
    name: String,
    ty: Type,
    /// True if it may be set.
    is_open: bool,
}

/// A helper: its name, and the types of its parameters and of its value.
#[derive(Clone, Debug)]
struct Helper {
    name: String,
    params: Vec<Type>,
    gives: Type,
    /// True if the helper is async.
    waits: bool,
    /// True if it takes any numbers after its parameters.
    has_rest: bool,
}

/// The function that a `return` would end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Function {
    /// The agent, with results of any type.
    Agent,
    /// A helper with this result type.
    Helper(Type),
    /// A callback, or no function.
    None,
}

struct Writer {
    numbers: Numbers,
    out: String,
    variables: Vec<Variable>,
    helpers: Vec<Helper>,
    next: usize,
    indent: usize,
    /// True if async calls are allowed here.
    may_wait: bool,
    /// Number of enclosing loops and callbacks.
    around: usize,
    /// True if `break` leaves a loop here.
    in_loop: bool,
    /// Labels of enclosing loops.
    labels: Vec<String>,
    function: Function,
    /// Lists that a loop iterates over.
    busy: Vec<String>,
    /// True if newer forms occur.
    is_newer: bool,
}

/// Seeds below this one have no newer forms, because their results are recorded.
const NEWER: u64 = 400;

/// The program of a seed.
#[must_use]
pub fn source(seed: u64) -> String {
    let mut writer = Writer {
        numbers: Numbers::new(seed),
        out: String::new(),
        variables: Vec::new(),
        helpers: Vec::new(),
        next: 0,
        indent: 0,
        may_wait: false,
        around: 0,
        in_loop: false,
        labels: Vec::new(),
        function: Function::None,
        busy: Vec::new(),
        is_newer: seed >= NEWER,
    };
    for _ in 0..writer.below(3) {
        writer.top_helper();
    }
    writer.agent();
    writer.out
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.numbers.below(n)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn ty(&mut self) -> Type {
        TYPES[self.below(TYPES.len())]
    }

    fn name(&mut self, stem: &str) -> String {
        self.next += 1;
        // Some names are special in JSON programs.
        match self.next {
            4 => "result".to_owned(),
            7 => "error".to_owned(),
            _ => format!("{stem}{}", self.next),
        }
    }

    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(self.indent);
        let _ = writeln!(self.out, "{indent}{text}");
    }

    fn declare(&mut self, name: &str, ty: Type, is_open: bool) {
        self.variables.push(Variable {
            name: name.to_owned(),
            ty,
            is_open,
        });
    }

    fn variable(&mut self, ty: Type, must_be_open: bool) -> Option<String> {
        let fits = |v: &&Variable| v.ty == ty && (v.is_open || !must_be_open);
        let found: Vec<String> = self
            .variables
            .iter()
            .filter(fits)
            .map(|v| v.name.clone())
            .collect();
        match found.len() {
            0 => None,
            count => Some(found[self.below(count)].clone()),
        }
    }

    /// A function beside the agent.
    fn top_helper(&mut self) {
        let name = self.name("help");
        let params: Vec<Type> = (0..self.below(3)).map(|_| self.ty()).collect();
        let gives = self.ty();
        self.helper(&name, params, gives, false);
        self.variables.clear();
    }

    fn helper(&mut self, name: &str, params: Vec<Type>, gives: Type, is_arrow: bool) {
        let helpers = self.helpers.len();
        let names: Vec<String> = params.iter().map(|_| self.name("p")).collect();
        // The enclosing variables belong to another function.
        let around = self.variables.clone();
        self.variables.iter_mut().for_each(|v| v.is_open = false);
        for (name, ty) in names.iter().zip(&params) {
            self.declare(name, *ty, true);
        }
        let has_rest = self.one_in(4);
        let mut list = names.join(", ");
        if has_rest {
            let rest = self.name("rest");
            let comma = if list.is_empty() { "" } else { ", " };
            list = format!("{list}{comma}...{rest}");
            self.declare(&rest, List, false);
        }
        let in_loop = std::mem::take(&mut self.in_loop);
        let labels = std::mem::take(&mut self.labels);
        let function = std::mem::replace(&mut self.function, Function::Helper(gives));
        // It may be called while a loop iterates over any list.
        let busy = std::mem::replace(&mut self.busy, vec![String::new()]);
        let loops = std::mem::take(&mut self.around);
        let waits = std::mem::take(&mut self.may_wait);
        if is_arrow && self.one_in(2) {
            let value = self.expr(gives, 3);
            let value = wrapped(value, gives);
            self.line(&format!("const {name} = ({list}) => {value};"));
        } else {
            match is_arrow {
                true => self.line(&format!("const {name} = ({list}) => {{")),
                false => self.line(&format!("function {name}({list}) {{")),
            }
            self.indent += 1;
            for _ in 0..self.below(3) {
                self.statement(1);
            }
            let value = self.expr(gives, 3);
            self.line(&format!("return {value};"));
            self.indent -= 1;
            self.line(if is_arrow { "};" } else { "}" });
        }
        self.variables = around;
        self.helpers.truncate(helpers);
        (self.busy, self.around, self.may_wait) = (busy, loops, waits);
        (self.in_loop, self.function) = (in_loop, function);
        self.labels = labels;
        self.helpers.push(Helper {
            name: name.to_owned(),
            params,
            gives,
            waits: false,
            has_rest,
        });
    }

    fn agent(&mut self) {
        self.line("export default async function agent({ n, words }) {");
        self.indent += 1;
        self.declare("n", Number, true);
        self.may_wait = true;
        self.line("const log = [];");
        self.line("const note = (x) => { log.push(x); return x };");
        // Nothing determines the types of its parameters.
        self.line("const apart = (a, b) => a - b;");
        for (name, params) in [("note", vec![Number]), ("apart", vec![Number, Number])] {
            self.helpers.push(Helper {
                name: name.to_owned(),
                params,
                gives: Number,
                waits: false,
                has_rest: false,
            });
        }
        self.line("const each = (items, f) => {");
        self.line("  const made = [];");
        self.line("  for (const item of items) made.push(f(item, made.length));");
        self.line("  return made;");
        self.line("};");
        self.line("const sizes = each(words, (word) => word.length);");
        self.declare("sizes", List, false);
        self.function = Function::Agent;
        self.line("let count = words.length;");
        self.declare("count", Number, true);
        for _ in 0..3 + self.below(7) {
            self.statement(2);
        }
        let mut names: Vec<String> = self.variables.iter().map(|v| v.name.clone()).collect();
        names.sort();
        names.dedup();
        self.line(&format!("return {{ log, {} }}", names.join(", ")));
        self.indent -= 1;
        self.line("}");
    }

    /// Statements in open braces.
    fn body(&mut self, depth: usize) {
        self.indent += 1;
        let mark = self.variables.len();
        let helpers = self.helpers.len();
        for _ in 0..1 + self.below(3) {
            self.statement(depth);
        }
        self.variables.truncate(mark);
        self.helpers.truncate(helpers);
        self.indent -= 1;
    }

    /// True if the function `apart` is visible, as in the agent.
    fn has_apart(&self) -> bool {
        self.helpers.iter().any(|helper| helper.name == "apart")
    }

    fn statement(&mut self, depth: usize) {
        if self.is_newer && self.one_in(6) {
            return self.newer();
        }
        match self.below(if depth == 0 { 12 } else { 27 }) {
            25 | 26 if self.has_apart() => self.handed(),
            20 => self.repeat_once(depth - 1),
            21 => self.each_key(depth - 1),
            22 if self.has_apart() => self.set_date(),
            23 => self.grouped_by(),
            9 if depth == 0 => self.taken_apart(),
            10 if depth == 0 && self.has_apart() => self.set_date(),
            11 if depth == 0 => self.grouped_by(),
            9..=11 if depth == 0 => self.declaration(),
            0..=2 => self.declaration(),
            3 | 4 => self.assignment(),
            5 => self.step(),
            6 => self.destructuring(),
            7 => self.change(),
            8 => self.logical_assignment(),
            9 | 10 => self.branch(depth - 1),
            11 => self.counted(depth - 1),
            12 | 13 => self.each(depth - 1),
            14 => self.attempt(depth - 1),
            15 => self.switch(depth - 1),
            16 => self.repeat(depth - 1),
            17 if self.around == 0 => {
                let name = self.name("f");
                let params: Vec<Type> = (0..1 + self.below(2)).map(|_| self.ty()).collect();
                let gives = self.ty();
                self.helper(&name, params, gives, true);
            }
            18 => self.callback(depth - 1),
            _ => {
                self.line("{");
                self.body(depth - 1);
                self.line("}");
            }
        }
    }

    fn declaration(&mut self) {
        let ty = self.ty();
        let value = self.expr(ty, 3);
        let word = self.pick(&["let", "const"]);
        // Sometimes the name of an outer block.
        let name = self.name("v");
        self.line(&format!("{word} {name} = {value};"));
        self.declare(&name, ty, word == "let");
    }

    fn assignment(&mut self) {
        let ty = self.ty();
        let Some(name) = self.variable(ty, true) else {
            return self.declaration();
        };
        if self.busy.contains(&name) {
            return self.declaration();
        }
        let op = match ty {
            Number => self.pick(&["=", "+=", "-=", "*=", "%="]),
            Text => self.pick(&["=", "+="]),
            _ => "=",
        };
        let value = self.expr(ty, 3);
        self.line(&format!("{name} {op} {value};"));
    }

    fn step(&mut self) {
        let Some(name) = self.variable(Number, true) else {
            return self.declaration();
        };
        let op = self.pick(&["++", "--"]);
        self.line(&format!("{name}{op};"));
    }

    fn logical_assignment(&mut self) {
        let ty = self.ty();
        let Some(name) = self
            .variable(ty, true)
            .filter(|name| !self.busy.contains(name))
        else {
            return self.declaration();
        };
        let op = self.pick(&["||=", "&&=", "??="]);
        let value = self.expr(ty, 2);
        self.line(&format!("{name} {op} {value};"));
    }

    fn destructuring(&mut self) {
        if self.one_in(2) {
            let from = self.expr(Object, 2);
            let (a, b, rest) = (self.name("a"), self.name("b"), self.name("r"));
            let default = self.expr(Number, 1);
            self.line(&format!(
                "const {{ a: {a} = 1, b: {b} = {default}, ...{rest} }} = {from};"
            ));
            self.declare(&a, Number, false);
            self.declare(&b, Number, false);
            self.declare(&rest, Object, false);
        } else {
            let from = self.expr(List, 2);
            let (a, b, rest) = (self.name("a"), self.name("b"), self.name("r"));
            self.line(&format!(
                "const [{a} = 0, {b} = {a} + 1, ...{rest}] = {from};"
            ));
            self.declare(&a, Number, false);
            self.declare(&b, Number, false);
            self.declare(&rest, List, false);
        }
    }

    /// A method that changes a list.
    fn change(&mut self) {
        let Some(list) = self
            .variable(List, false)
            .filter(|name| !self.busy.contains(name))
        else {
            return self.declaration();
        };
        if !self.busy.is_empty() {
            // It could be the same list under another name.
            return self.assignment();
        }
        let value = self.expr(Number, 2);
        let text = match self.below(8) {
            0..=2 => format!("{list}.push({value})"),
            3 => format!("{list}.unshift({value})"),
            4 => format!("{list}.splice({}, 1, {value})", self.below(3)),
            5 => format!("{list}.sort((x, y) => x - y)"),
            6 => format!("{list}.reverse()"),
            _ => format!("{list}.pop()"),
        };
        self.line(&format!("{text};"));
    }

    fn expr(&mut self, ty: Type, depth: usize) -> String {
        if depth == 0 || self.one_in(4) {
            return match self.variable(ty, false) {
                Some(name) if !self.one_in(4) => name,
                _ => self.literal(ty),
            };
        }
        if self.one_in(6)
            && let Some(call) = self.call(ty, depth - 1)
        {
            return call;
        }
        if self.one_in(10) {
            let test = self.expr(Bool, depth - 1);
            let (yes, no) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
            return format!("({test} ? {yes} : {no})");
        }
        match ty {
            Number => self.number(depth - 1),
            Text => self.text(depth - 1),
            Bool => self.bool(depth - 1),
            List => self.list(depth - 1),
            Object => self.object(depth - 1),
        }
    }

    fn literal(&mut self, ty: Type) -> String {
        match ty {
            Number => match self.below(6) {
                0 => format!("{}.5", self.below(9)),
                1 => format!("(-{})", self.below(20)),
                2 => self.pick(&["0", "1", "1e3", "0.1", "255"]).to_owned(),
                _ => self.below(12).to_string(),
            },
            Text => self
                .pick(&[
                    "''",
                    "'a'",
                    "'Hello, World'",
                    "'12'",
                    "'x-y-z'",
                    "'é😀'",
                    "\"it's\"",
                    "'n'",
                ])
                .to_owned(),
            Bool => self.pick(&["true", "false"]).to_owned(),
            List => self
                .pick(&["[]", "[1, 2, 3]", "[3, 1, 2]", "[0]", "[5, 5]"])
                .to_owned(),
            Object => self
                .pick(&[
                    "{}",
                    "{ a: 1 }",
                    "{ b: 2, a: 1 }",
                    "{ a: 1, 7: 2, 'c d': 3 }",
                ])
                .to_owned(),
        }
    }

    /// A call of a helper or an atom.
    fn call(&mut self, ty: Type, depth: usize) -> Option<String> {
        if self.may_wait && ty == Number && self.one_in(3) {
            let key = self.pick(&["'a'", "'b'"]);
            let value = self.expr(Number, depth.min(1));
            return Some(match self.below(3) {
                0 => format!("(await storeSet({{ key: {key}, value: {value} }}) ?? {value})"),
                1 => format!("((await storeGet({{ key: {key} }})) ?? {value})"),
                _ => {
                    let url = self.pick(&["https://a.example/", "https://b.example/"]);
                    format!("(await httpFetch({{ url: '{url}' }})).n")
                }
            });
        }
        let fits = |h: &&Helper| h.gives == ty && (!h.waits || self.may_wait);
        let found: Vec<Helper> = self.helpers.iter().filter(fits).cloned().collect();
        if found.is_empty() {
            return None;
        }
        let helper = found[self.below(found.len())].clone();
        let arguments: Vec<String> = helper
            .params
            .iter()
            .map(|ty| self.expr(*ty, depth))
            .collect();
        let mut arguments = arguments;
        if helper.has_rest {
            for _ in 0..self.below(3) {
                let more = match self.below(3) {
                    0 => format!("...{}", self.expr(List, depth)),
                    _ => self.expr(Number, depth),
                };
                arguments.push(more);
            }
        }
        Some(format!("{}({})", helper.name, arguments.join(", ")))
    }
}

/// An object as the value of an arrow.
fn wrapped(value: String, ty: Type) -> String {
    match ty {
        Object => format!("({value})"),
        _ => value,
    }
}
