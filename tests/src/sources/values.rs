//! Expressions of random sources, by the type of their value.

use super::{Bool, List, Number, Object, Text, Writer};

impl Writer {
    pub(super) fn number(&mut self, depth: usize) -> String {
        let choice = self.below(34);
        match choice {
            27 | 28 => return self.dated(depth),
            29..=31 => match self.set_within(depth) {
                Some(value) => return value,
                None => return self.dated(depth),
            },
            32 => return self.odd_callback(Number, depth),
            _ => {}
        }
        let mut of = |ty| self.expr(ty, depth);
        match choice {
            0..=3 => {
                let (a, b) = (of(Number), of(Number));
                let op = self.pick(&["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>"]);
                format!("({a} {op} {b})")
            }
            4 => format!("({} ** 2)", of(Number)),
            5 | 6 => {
                let value = of(Number);
                let name = self.pick(&["floor", "round", "trunc", "abs", "sign", "ceil", "sqrt"]);
                format!("Math.{name}({value})")
            }
            7 => format!("Math.max({}, {})", of(Number), of(Number)),
            8 => format!("{}.length", of(Text)),
            9 => format!("{}.length", of(List)),
            10 => format!("({}[{}] ?? 0)", of(List), self.below(4)),
            11 => {
                let object = of(Object);
                let member = self.pick(&[".a", "?.b", "['c d']", ".q"]);
                format!("({}{member} ?? 0)", grouped(&object))
            }
            12 => format!("{}.indexOf({})", of(List), of(Number)),
            13 => format!("parseInt({})", of(Text)),
            14 => format!("Number({})", of(Text)),
            15 => format!("Math.max(...{})", of(List)),
            16 => format!("{}.charCodeAt({})", of(Text), self.below(3)),
            17 => format!("(-{})", of(Number)),
            18 | 19 => self.reduced(depth),
            20 => self.found("findIndex", depth),
            21 => format!("({} ?? 0)", self.found("find", depth)),
            22 => format!("Object.keys({}).length", of(Object)),
            23 => format!("(+{})", of(Bool)),
            25 => self
                .pick(&[
                    "context('user.id')",
                    "(context('user.age') ?? 3)",
                    "context('user.scores.1')",
                    "context('user.name').length",
                ])
                .to_owned(),
            24 => format!("({}).at(-1) ?? 1", of(List)).replacen('(', "((", 1) + ")",
            _ => format!("note({})", of(Number)).replace("note", self.noting()),
        }
    }

    /// The helper that records its argument, if visible.
    fn noting(&self) -> &'static str {
        match self.helpers.iter().any(|helper| helper.name == "note") {
            true => "note",
            false => "Math.abs",
        }
    }

    /// A callback's parameters and value, in a nested scope.
    fn turn(&mut self, gives: super::Type, depth: usize) -> String {
        let (item, index) = (self.name("x"), self.name("i"));
        let mark = self.variables.len();
        self.declare(&item, Number, false);
        let list = match self.below(9) {
            0..=2 => {
                self.declare(&index, Number, false);
                format!("({item}, {index})")
            }
            3 => {
                let all = self.name("l");
                self.declare(&all, List, false);
                format!("({item}, {index}, {all})")
            }
            4 => {
                self.declare(&index, Number, false);
                format!("({item}, ...[{index}])")
            }
            _ => format!("({item})"),
        };
        let waits = std::mem::take(&mut self.may_wait);
        let value = self.expr(gives, depth);
        self.may_wait = waits;
        self.variables.truncate(mark);
        let value = super::wrapped(value, gives);
        match self.below(5) {
            0 => format!("{list} => {{ return {value} }}"),
            _ => format!("{list} => {value}"),
        }
    }

    fn reduced(&mut self, depth: usize) -> String {
        let list = self.expr(List, depth);
        let (sum, item) = (self.name("s"), self.name("x"));
        let mark = self.variables.len();
        self.declare(&sum, Number, false);
        self.declare(&item, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        let value = self.expr(Number, depth);
        self.may_wait = waits;
        self.variables.truncate(mark);
        match self.below(4) {
            0 => {
                let (index, all) = (self.name("i"), self.name("l"));
                format!(
                    "{list}.reduce(({sum}, {item}, {index}, {all}) => \
                     {sum} + {value} * {index} + {all}.length, 0)"
                )
            }
            1 => {
                let index = self.name("i");
                format!(
                    "[7, ...{list}].reduce(({sum}, {item}, {index}) => {sum} + {value} - {index})"
                )
            }
            _ => format!("{list}.reduce(({sum}, {item}) => {sum} + {value}, 0)"),
        }
    }

    fn found(&mut self, method: &str, depth: usize) -> String {
        let list = self.expr(List, depth);
        let test = self.turn(Bool, depth);
        format!("{list}.{method}({test})")
    }

    pub(super) fn text(&mut self, depth: usize) -> String {
        let choice = self.below(24);
        if choice == 22 {
            return self.replaced(depth);
        }
        let mut of = |ty| self.expr(ty, depth);
        match choice {
            0..=2 => format!("({} + {})", of(Text), of(Text)),
            3 | 4 => format!("`${{{}}}:${{{}}}`", of(Number), of(Text)),
            5 => format!("({} + {})", of(Text), of(Number)),
            6 => format!("{}.toUpperCase()", of(Text)),
            7 => format!(
                "{}.slice({})",
                of(Text),
                self.pick(&["1", "0, 3", "-2", "1, -1"])
            ),
            8 => format!("String({})", of(Number)),
            9 => format!("{}.join({})", of(List), self.pick(&["'-'", "''", "', '"])),
            10 => format!("{}.replace('l', 'L')", of(Text)),
            11 => format!("{}.padStart({}, '*')", of(Text), self.below(9)),
            12 => format!("(typeof {})", of(Number)),
            13 => format!("({}[{}] ?? '?')", of(Text), self.below(4)),
            14 => format!("JSON.stringify({})", of(Object)),
            15 => format!("({} || {})", of(Text), of(Text)),
            16 => {
                let text = of(Text);
                let call = self.pick(&[
                    "replace(/[a-z]+/g, '<$&>')",
                    "replace(/(l+)(o?)/, '$2$1')",
                    "split(/[-, ]/).join('|')",
                    "replaceAll('x', 'y')",
                    "trim()",
                ]);
                format!("{text}.{call}")
            }
            17 => format!("{}.map(({{ length }}) => length).join('/')", "words"),
            18 => format!("{}.repeat({})", of(Text), self.below(3)),
            19 => self
                .pick(&["context('user.name')", "(context('user.nick.name') ?? 'x')"])
                .to_owned(),
            20 => {
                let (n, o, l) = (of(Number), of(Object), of(List));
                let tmpl = self.pick(&[
                    "{{n}} {{o.a}}/{{l.1}}",
                    "{{o.b}}{{o.q.r}}-{{l.0}}",
                    "{{l.7}}{{o.zz}} {{n}}{{n}}",
                ]);
                format!("template({{ tmpl: '{tmpl}', vars: {{ n: {n}, o: {o}, l: {l} }} }})")
            }
            _ => format!("({}).toFixed({})", of(Number), self.below(3)),
        }
        .replace("words.map", self.words())
    }

    /// The text argument of the agent, if visible.
    fn words(&self) -> &'static str {
        match self.variables.iter().any(|v| v.name == "count") {
            true => "words.map",
            false => "['a', 'bc'].map",
        }
    }

    pub(super) fn bool(&mut self, depth: usize) -> String {
        let choice = self.below(16);
        let mut of = |ty| self.expr(ty, depth);
        match choice {
            0..=3 => {
                let (a, b) = (of(Number), of(Number));
                let op = self.pick(&["<", ">", "<=", ">=", "===", "!==", "=="]);
                format!("({a} {op} {b})")
            }
            4 => format!("({} < {})", of(Text), of(Text)),
            5 => format!("({} === {})", of(Text), of(Text)),
            6 => format!("!{}", of(Bool)),
            7 => format!("({} && {})", of(Bool), of(Bool)),
            8 => format!("({} || {})", of(Bool), of(Bool)),
            9 => format!("{}.includes({})", of(Text), of(Text)),
            10 => format!("{}.includes({})", of(List), of(Number)),
            11 => self.found("some", depth),
            12 => self.found("every", depth),
            13 => format!("('a' in {})", of(Object)),
            14 => format!("/^[A-Z]|[0-9]{{2}}/.test({})", of(Text)),
            _ => format!("Number.isNaN({})", of(Number)),
        }
    }

    pub(super) fn list(&mut self, depth: usize) -> String {
        let choice = self.below(19);
        match choice {
            17 if self.may_wait => self.settled(depth),
            18 => self.odd_callback(List, depth),
            15 => "context('user.scores')".to_owned(),
            0 | 1 => self.mapped("map", Number, depth),
            2 | 3 => self.found("filter", depth),
            4 => self.mapped("flatMap", List, depth),
            _ => self.plain_list(choice, depth),
        }
    }

    fn mapped(&mut self, method: &str, gives: super::Type, depth: usize) -> String {
        let list = self.expr(List, depth);
        let turn = self.turn(gives, depth);
        format!("{list}.{method}({turn})")
    }

    fn plain_list(&mut self, choice: usize, depth: usize) -> String {
        let mut of = |ty| self.expr(ty, depth);
        match choice {
            5 => format!("{}.slice({})", of(List), self.pick(&["1", "-2", "0, 2"])),
            6 => format!("[...{}, {}]", of(List), of(Number)),
            7 => format!("[{}, ...{}, {}]", of(Number), of(List), of(Number)),
            8 => format!("{}.concat({})", of(List), of(List)),
            9 => format!("{}.toSorted((a, b) => a - b)", of(List)),
            10 => format!("{}.toReversed()", of(List)),
            11 => format!("Object.values({})", of(Object)),
            12 => format!(
                "Array.from({{ length: {} }}, (_, i) => i * 2)",
                self.below(4)
            ),
            13 => format!("[...new Set({})]", of(List)),
            14 => format!("[...{}].map((c) => c.length)", of(Text)),
            _ => format!("[{}, {}]", of(Number), of(Number)),
        }
    }

    pub(super) fn object(&mut self, depth: usize) -> String {
        let choice = self.below(11);
        let mut of = |ty| self.expr(ty, depth);
        match choice {
            0 | 1 => format!("{{ a: {}, b: {} }}", of(Number), of(Number)),
            2 | 3 => format!("{{ ...{}, b: {} }}", of(Object), of(Number)),
            4 => format!("{{ [{}]: {}, zz: {} }}", of(Text), of(Number), of(Number)),
            5 => {
                let entries = "map((x, i) => ['k' + i, x])";
                format!("Object.fromEntries({}.{entries})", of(List))
            }
            6 => format!(
                "Object.assign({{}}, {}, {{ z: {} }})",
                of(Object),
                of(Number)
            ),
            7 => format!(
                "{{ [{}]: {}, [{}]: {}, a: {} }}",
                of(Number),
                of(Number),
                of(Text),
                of(Number),
                of(Number)
            ),
            8 => format!(
                "{{ ...{}, [{}]: {}, [{}]: {} }}",
                of(Object),
                of(Bool),
                of(Number),
                of(Text),
                of(Number)
            ),
            9 => "context('limits')".to_owned(),
            _ => format!("{{ n: {}, ...{} }}", of(Number), of(Object)),
        }
    }
}

/// An object literal in parentheses.
fn grouped(object: &str) -> String {
    match object.starts_with('{') {
        true => format!("({object})"),
        false => object.to_owned(),
    }
}
