//! Dates, assignments within expressions, replacements by functions and other forms of
//! random sources.

use super::{Bool, List, Number, Object, Text, Type, Writer};

/// Texts of dates that engines agree on.
const TEXTS: [&str; 7] = [
    "'2026-01-31'",
    "'2026-02-30'",
    "'2025-12-31T23:59:59.999-02:00'",
    "'Jan 5, 2024'",
    "'2024-1-5 10:30'",
    "'soon'",
    "''",
];

impl Writer {
    /// Times of dates and their differences.
    pub(super) fn dated(&mut self, depth: usize) -> String {
        let waits = std::mem::take(&mut self.may_wait);
        let text = self.time(depth);
        self.may_wait = waits;
        text
    }

    fn time(&mut self, depth: usize) -> String {
        let date = self.date(depth);
        match self.below(9) {
            0 => format!("({date} - {})", self.date(depth)),
            1 if self.has_apart() => format!("apart({date}, {})", self.date(depth)),
            2 => format!("{date}.getTime()"),
            3 => format!("(+{date})"),
            4 => {
                let part = self.pick(&["FullYear", "Month", "Date", "Day", "Hours", "Minutes"]);
                format!("{date}.getUTC{part}()")
            }
            5 => {
                let parts: Vec<String> = (0..1 + self.below(6))
                    .map(|_| self.expr(Number, depth))
                    .collect();
                format!("Date.UTC({})", parts.join(", "))
            }
            6 => format!("Math.max({date}, {})", self.expr(Number, depth)),
            7 => {
                let (a, b) = (self.expr(Number, depth), self.expr(Number, depth));
                let list = format!("[{a}, {b}].map((t) => ({{ at: new Date(t) }}))");
                match self.below(3) {
                    0 => format!("{list}.reduce((s, x) => s + (x.at - {date}), 0)"),
                    1 => format!("{list}.sort((p, q) => p.at - q.at)[0].at.getTime()"),
                    _ => format!("{list}.filter((x) => x.at > {date}).length"),
                }
            }
            _ => format!("Date.parse({})", self.pick(&TEXTS)),
        }
    }

    fn date(&mut self, depth: usize) -> String {
        match self.below(6) {
            0 => "new Date('2026-01-31T10:20:30Z')".to_owned(),
            1 => format!("new Date({})", self.pick(&TEXTS)),
            2 | 3 => format!("new Date({})", self.expr(Number, depth)),
            4 => {
                let (month, day) = (self.expr(Number, depth), self.expr(Number, depth));
                format!("new Date(2024, {month}, {day})")
            }
            _ => format!("new Date({})", self.expr(Bool, depth)),
        }
    }

    /// An assignment as a value.
    pub(super) fn set_within(&mut self, depth: usize) -> Option<String> {
        let name = self.variable(Number, true)?;
        let value = self.expr(Number, depth);
        Some(match self.below(6) {
            0 => format!("({name}++)"),
            1 => format!("(--{name})"),
            2 => format!("({name} = {value})"),
            3 => format!("({name} ??= {value})"),
            4 => format!("({name} &&= {value})"),
            _ => format!(
                "({name} {} {value})",
                self.pick(&["+=", "-=", "*=", "|=", "^=", ">>="])
            ),
        })
    }

    /// A text whose matches a function replaces.
    pub(super) fn replaced(&mut self, depth: usize) -> String {
        let text = self.expr(Text, depth);
        let (found, at) = (self.name("m"), self.name("i"));
        let mark = self.variables.len();
        self.declare(&found, Text, true);
        self.declare(&at, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        let ty = if self.one_in(2) { Text } else { Number };
        let value = self.expr(ty, depth);
        self.may_wait = waits;
        self.variables.truncate(mark);
        let pattern = self.pick(&["/[a-z]+/gi", "/l/", "'l'", "/$/", "/(?:)/g"]);
        match self.below(5) {
            0 => {
                format!("{text}.replace(/([a-z])(-)?/g, ({found}, g, h, {at}) => g + h + {value})")
            }
            1 => format!("{text}.replaceAll('a', ({found}, {at}) => {{ return {value} }})"),
            2 => format!(
                "{text}.replace(/(?<c>o)/, ({found}, c, {at}, all, named) => named.c + all + {value})"
            ),
            _ => format!("{text}.replace({pattern}, ({found}, {at}) => {value})"),
        }
    }

    /// Promises that sometimes fail.
    pub(super) fn settled(&mut self, depth: usize) -> String {
        let list = self.expr(List, depth);
        let item = self.name("x");
        let mark = self.variables.len();
        self.declare(&item, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        let (test, value) = (self.expr(Bool, depth), self.expr(Number, depth));
        self.may_wait = waits;
        self.variables.truncate(mark);
        let body = format!("{{ if ({test}) throw new Error('no'); return {value} }}");
        let taken = "map((r) => r.status === 'fulfilled' ? r.value : r.reason.message.length)";
        format!("(await Promise.allSettled({list}.map(async ({item}) => {body}))).{taken}")
    }

    /// A date that setters change.
    pub(super) fn set_date(&mut self) {
        let (date, time) = (self.name("d"), self.name("t"));
        let from = self.date(1);
        self.line(&format!("const {date} = {from};"));
        for _ in 0..1 + self.below(3) {
            let (a, b) = (self.expr(Number, 1), self.expr(Number, 1));
            let utc = self.pick(&["UTC", ""]);
            let call = match self.below(8) {
                0 => format!("Date({a})"),
                1 => format!("Date({date}.getDate() + {a})"),
                2 => format!("Month({a})"),
                3 => format!("Month({a}, {b})"),
                4 => format!("FullYear(2020 + {a})"),
                5 => format!("Hours({a}, {b})"),
                6 => format!("Minutes({a})"),
                _ => format!("FullYear(2020, {a}, {b})"),
            };
            self.line(&format!("{date}.set{utc}{call};"));
        }
        self.line(&format!("const {time} = apart({date}, 0);"));
        self.declare(&time, Number, false);
    }

    /// `do ... while`, with its end condition.
    pub(super) fn repeat_once(&mut self, depth: usize) {
        let name = self.name("w");
        let test = self.expr(Bool, 2);
        let end = 1 + self.below(4);
        self.line(&format!("let {name} = 0;"));
        self.line("do {");
        let in_loop = std::mem::replace(&mut self.in_loop, true);
        self.around += 1;
        self.line(&format!("  {name}++;"));
        self.leave_early();
        self.body(depth);
        self.around -= 1;
        self.in_loop = in_loop;
        self.line(&format!("}} while ({name} < {end} && ({test}));"));
        self.declare(&name, Number, false);
    }

    pub(super) fn each_key(&mut self, depth: usize) {
        let name = self.name("k");
        let ty = if self.one_in(3) { List } else { Object };
        let from = self.expr(ty, 2);
        self.line(&format!("for (const {name} in {from}) {{"));
        let in_loop = std::mem::replace(&mut self.in_loop, true);
        self.around += 1;
        let mark = self.variables.len();
        self.declare(&name, Text, false);
        self.leave_early();
        self.body(depth);
        self.variables.truncate(mark);
        self.around -= 1;
        self.in_loop = in_loop;
        self.line("}");
    }

    /// Lists in an object by their keys.
    pub(super) fn grouped_by(&mut self) {
        let (groups, list, item) = (self.name("g"), self.name("v"), self.name("x"));
        let from = self.expr(List, 2);
        self.line(&format!("const {groups} = {{}};"));
        let mark = self.variables.len();
        self.declare(&item, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        let key = self.expr(Text, 2);
        let value = self.expr(Number, 2);
        self.may_wait = waits;
        self.variables.truncate(mark);
        let op = self.pick(&["??=", "||="]);
        self.line(&format!(
            "for (const {item} of [...{from}]) ({groups}[{key}] {op} []).push({value});"
        ));
        self.line(&format!("const {list} = Object.values({groups}).flat();"));
        self.declare(&list, List, false);
    }

    /// The rest after a computed name in destructuring.
    pub(super) fn taken_apart(&mut self) {
        let (one, rest) = (self.name("a"), self.name("r"));
        let (from, key) = (self.expr(Object, 2), self.expr(Text, 2));
        let default = self.expr(Number, 1);
        self.line(&format!(
            "const {{ [{key}]: {one} = {default}, ...{rest} }} = {from};"
        ));
        self.declare(&one, Number, false);
        self.declare(&rest, Object, false);
    }

    /// A callback function that sets no outer variable.
    pub(super) fn handed(&mut self) {
        let list = self.expr(List, 2);
        let (made, item, index) = (self.name("m"), self.name("x"), self.name("i"));
        let around = self.variables.clone();
        self.variables.iter_mut().for_each(|v| v.is_open = false);
        self.declare(&item, Number, false);
        self.declare(&index, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        let value = self.expr(Number, 3);
        self.may_wait = waits;
        self.variables = around;
        self.line(&format!(
            "const {made} = each({list}, ({item}, {index}) => {value});"
        ));
        self.declare(&made, List, false);
    }

    /// Callbacks with defaults, and those that start at the end.
    pub(super) fn odd_callback(&mut self, gives: Type, depth: usize) -> String {
        let list = self.expr(List, depth);
        let item = self.name("x");
        let mark = self.variables.len();
        self.declare(&item, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        let value = self.expr(Number, depth);
        let test = self.expr(Bool, depth);
        self.may_wait = waits;
        self.variables.truncate(mark);
        match gives {
            List => format!("[undefined, ...{list}].map(({item} = 4) => {value})"),
            _ => match self.below(2) {
                0 => format!("({list}.findLast(({item}) => {test}) ?? 0)"),
                _ => format!("{list}.reduceRight((s, {item}) => s * 2 + {value}, 1)"),
            },
        }
    }
}
