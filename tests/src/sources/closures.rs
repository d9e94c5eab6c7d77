//! Random programs with closures: functions as values, functions that set outer variables, and
//! classes. Their values are numbers, and calls end: a function calls only what is older.

use crate::numbers::Numbers;
use std::fmt::Write as _;

/// What a name in sight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number; true if it may be set.
    Number(bool),
    /// A function of a number.
    Function,
    /// A variable with such a function, which may be set.
    Open,
    /// An object with functions under `a` and `b`.
    Table,
    /// A list of functions.
    List,
    /// An object with `inc` and `get`.
    Counter,
    /// An instance with `add`, `each` and the getter `twice`.
    Instance,
}

struct Writer {
    numbers: Numbers,
    out: String,
    names: Vec<(String, Kind)>,
    next: usize,
    indent: usize,
    /// Number of functions around.
    within: usize,
}

/// The program of a seed.
#[must_use]
pub fn closures(seed: u64) -> String {
    let mut writer = Writer {
        numbers: Numbers::new(seed),
        out: String::new(),
        names: Vec::new(),
        next: 0,
        indent: 1,
        within: 0,
    };
    writer.out.push_str(
        "class Box {\n  #seen = 0\n  constructor(v) { this.v = v }\n  add(x) { this.v += x; \
         this.#seen++; return this }\n  each(f) { this.v = f(this.v); return this.v }\n  get \
         twice() { return this.v * 2 + this.#seen }\n  static of(x) { return new Box(x + 1) }\n}\n\
         const compose = (f, g) => (x) => f(g(x))\nconst adder = (k) => (x) => x + k\n\
         const counter = (n) => ({ inc: (by) => { n += by }, get: () => n })\n\
         function each(list, f) { for (const x of list) f(x) }\n\
         export default function agent({ n, words }) {\n  const out = []\n",
    );
    writer.names.push(("n".to_owned(), Kind::Number(true)));
    for _ in 0..6 + writer.below(8) {
        writer.statement(2);
        let value = writer.number(2);
        writer.line(&format!("out.push({value})"));
    }
    writer.out.push_str("  return out\n}\n");
    writer.out
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.numbers.below(n)
    }

    fn name(&mut self, stem: &str) -> String {
        self.next += 1;
        format!("{stem}{}", self.next)
    }

    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(self.indent);
        let _ = writeln!(self.out, "{indent}{text}");
    }

    fn find(&mut self, fits: impl Fn(Kind) -> bool) -> Option<String> {
        let found: Vec<String> = self
            .names
            .iter()
            .filter(|(_, kind)| fits(*kind))
            .map(|(name, _)| name.clone())
            .collect();
        match found.len() {
            0 => None,
            count => Some(found[self.below(count)].clone()),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        let choice = self.below(if depth == 0 { 3 } else { 11 });
        let inner = |writer: &mut Self| writer.number(depth.saturating_sub(1));
        match choice {
            0 => self.below(9).to_string(),
            1 | 2 => match self.find(|kind| matches!(kind, Kind::Number(_))) {
                Some(name) => name,
                None => "1".to_owned(),
            },
            3 => {
                let op = ["+", "-", "*"][self.below(3)];
                format!("({} {op} {})", inner(self), inner(self))
            }
            4 | 5 => match self.find(|kind| matches!(kind, Kind::Function | Kind::Open)) {
                Some(name) => format!("{name}({})", inner(self)),
                None => inner(self),
            },
            6 => match self.find(|kind| kind == Kind::Table) {
                Some(name) => match self.below(3) {
                    0 => format!("{name}.a({})", inner(self)),
                    1 => format!("{name}[{} > 3 ? 'a' : 'b']({})", inner(self), inner(self)),
                    _ => format!("({name}.zz?.({}) ?? {})", inner(self), inner(self)),
                },
                None => inner(self),
            },
            7 => match self.find(|kind| kind == Kind::List) {
                Some(name) => match self.below(3) {
                    0 => format!("{name}.reduce((x, f) => f(x), {})", inner(self)),
                    1 => format!("{name}.map((f) => f(2)).length"),
                    _ => format!("{name}[0]({})", inner(self)),
                },
                None => inner(self),
            },
            8 => match self.find(|kind| kind == Kind::Counter) {
                Some(name) => format!("{name}.get()"),
                None => inner(self),
            },
            9 => match self.find(|kind| kind == Kind::Instance) {
                Some(name) => match self.below(3) {
                    0 => format!("{name}.twice"),
                    1 => format!("{name}.add({}).v", inner(self)),
                    _ => {
                        let function = self.function(0);
                        format!("{name}.each({function})")
                    }
                },
                None => inner(self),
            },
            _ => {
                let function = self.function(1);
                format!("({function})({})", inner(self))
            }
        }
    }

    /// A function of a number.
    fn function(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 2 } else { 7 }) {
            0 => {
                let param = self.name("x");
                let mark = self.names.len();
                self.names.push((param.clone(), Kind::Number(false)));
                let value = self.number(1);
                self.names.truncate(mark);
                format!("({param}) => {value}")
            }
            1 => match self.find(|kind| kind == Kind::Function) {
                Some(name) => name,
                None => "Math.abs".to_owned(),
            },
            2 => format!("adder({})", self.number(1)),
            3 => format!(
                "compose({}, {})",
                self.function(depth - 1),
                self.function(depth - 1)
            ),
            4 => {
                let test = self.number(1);
                format!(
                    "({test} > 2 ? {} : {})",
                    self.function(depth - 1),
                    self.function(depth - 1)
                )
            }
            5 => match self.find(|kind| kind == Kind::Number(true)) {
                Some(name) => format!("((x) => {{ {name} = x + 1; return {name} }})"),
                None => "Math.floor".to_owned(),
            },
            _ => match self.find(|kind| kind == Kind::Number(true)) {
                Some(name) => format!("((x) => {name}++ + x)"),
                None => "((x) => x)".to_owned(),
            },
        }
    }

    fn statement(&mut self, depth: usize) {
        let choice = self.below(if depth == 0 { 8 } else { 13 });
        match choice {
            0 => {
                let (name, value) = (self.name("v"), self.number(2));
                self.line(&format!("let {name} = {value}"));
                self.names.push((name, Kind::Number(true)));
            }
            1 => {
                let (name, value) = (self.name("f"), self.function(2));
                self.line(&format!("const {name} = {value}"));
                self.names.push((name, Kind::Function));
            }
            2 => {
                let (name, value) = (self.name("g"), self.function(1));
                self.line(&format!("let {name} = {value}"));
                self.names.push((name, Kind::Open));
            }
            3 => {
                let (name, a, b) = (self.name("t"), self.function(2), self.function(1));
                self.line(&format!("const {name} = {{ a: {a}, b: {b} }}"));
                self.names.push((name, Kind::Table));
            }
            4 => {
                let (name, a, b) = (self.name("fs"), self.function(2), self.function(1));
                self.line(&format!("const {name} = [{a}, {b}]"));
                self.names.push((name, Kind::List));
            }
            5 => {
                let (name, value) = (self.name("c"), self.number(1));
                self.line(&format!("const {name} = counter({value})"));
                self.names.push((name, Kind::Counter));
            }
            6 => {
                let (name, value) = (self.name("b"), self.number(1));
                let made = ["new Box", "Box.of"][self.below(2)];
                self.line(&format!("const {name} = {made}({value})"));
                self.names.push((name, Kind::Instance));
            }
            7 => self.set(),
            8 => {
                let (list, item) = (self.name("fs"), self.name("i"));
                self.line(&format!("const {list} = []"));
                let mark = self.names.len();
                self.names.push((item.clone(), Kind::Number(false)));
                let value = self.number(1);
                self.line(&format!(
                    "for (let {item} = 0; {item} < 3; {item}++) {list}.push((x) => x + {item} + {value})"
                ));
                self.names.truncate(mark);
                self.names.push((list, Kind::List));
            }
            9 => {
                let test = self.number(1);
                self.line(&format!("if ({test} > 4) {{"));
                self.block(depth);
                self.line("} else {");
                self.block(depth);
                self.line("}");
            }
            10 if self.within < 2 => {
                let (name, param) = (self.name("h"), self.name("p"));
                self.line(&format!("const {name} = ({param}) => {{"));
                let mark = self.names.len();
                self.names.push((param, Kind::Number(true)));
                self.within += 1;
                self.block(depth);
                let value = self.number(2);
                self.within -= 1;
                self.names.truncate(mark);
                self.line(&format!("  return {value}"));
                self.line("}");
                self.names.push((name, Kind::Function));
            }
            11 => {
                let item = self.name("x");
                let mark = self.names.len();
                self.line(&format!("each([1, 2], ({item}) => {{"));
                self.names.push((item, Kind::Number(true)));
                self.block(depth);
                self.line("})");
                self.names.truncate(mark);
            }
            _ => {
                self.line("try {");
                self.block(depth);
                let value = self.number(1);
                self.line(&format!("  if ({value} < 0) throw new Error('less')"));
                self.line("} catch (e) { out.push(e.message.length) }");
            }
        }
    }

    /// A statement that sets a variable, or changes what functions share.
    fn set(&mut self) {
        let value = self.number(1);
        let line = match self.below(4) {
            0 => {
                // A new function calls none that may call the variable.
                let name = self.find(|kind| kind == Kind::Open);
                name.map(|name| format!("{name} = (x) => x - {}", value.len()))
            }
            1 => {
                let name = self.find(|kind| kind == Kind::Counter);
                name.map(|name| format!("{name}.inc({value})"))
            }
            2 => {
                let name = self.find(|kind| kind == Kind::Instance);
                name.map(|name| format!("{name}.add({value}).add(1)"))
            }
            _ => None,
        };
        let number = self.find(|kind| kind == Kind::Number(true));
        let line = line.or_else(|| number.map(|name| format!("{name} += {value}")));
        if let Some(line) = line {
            self.line(&line);
        }
    }

    fn block(&mut self, depth: usize) {
        let mark = self.names.len();
        self.indent += 1;
        for _ in 0..1 + self.below(2) {
            self.statement(depth - 1);
        }
        self.set();
        self.indent -= 1;
        self.names.truncate(mark);
    }
}
