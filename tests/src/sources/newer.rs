//! Maps, sets, errors as objects, cases that fall through and chains of `then` in random
//! sources.

use super::{Bool, List, Number, Text, Writer};

impl Writer {
    /// A form that only programs behind the recorded ones have.
    pub(super) fn newer(&mut self) {
        match self.below(5) {
            0 => self.a_map(),
            1 => self.distinct_items(),
            2 => self.thrown_object(),
            3 => self.falling(),
            _ if self.may_wait => self.waited_chain(),
            _ => self.a_map(),
        }
    }

    fn some_number(&mut self) -> String {
        let waits = std::mem::take(&mut self.may_wait);
        let text = self.expr(Number, 2);
        self.may_wait = waits;
        text
    }

    fn some_test(&mut self) -> String {
        let waits = std::mem::take(&mut self.may_wait);
        let text = self.expr(Bool, 2);
        self.may_wait = waits;
        text
    }

    fn a_map(&mut self) {
        let (map, list) = (self.name("map"), self.expr(List, 2));
        let key = self.pick(&["x % 3", "x", "String(x)", "i % 2 === 0", "x > 1 ? x : null"]);
        self.line(&format!(
            "const {map} = new Map({list}.map((x, i) => [{key}, i]));"
        ));
        for _ in 0..1 + self.below(3) {
            let (a, b) = (self.some_number(), self.some_number());
            match self.below(5) {
                0 => self.line(&format!("{map}.set({a}, {b}).set('k', {a});")),
                1 => self.line(&format!("{map}.delete({a});")),
                2 => self.line(&format!("{map}.set({a}, ({map}.get({a}) ?? 0) + {b});")),
                3 => self.line(&format!("if (!{map}.has({a})) {map}.set({a}, {b});")),
                _ => {
                    let test = self.some_test();
                    self.line(&format!("if ({test}) {map}.clear();"));
                }
            }
        }
        let (sum, keys) = (self.name("sum"), self.name("keys"));
        self.line(&format!("let {sum} = {map}.size;"));
        self.declare(&sum, Number, true);
        match self.below(3) {
            0 => self.line(&format!(
                "{map}.forEach((v, k) => {{ {sum} += v + (typeof k === 'number' ? k : 1) }});"
            )),
            1 => self.line(&format!(
                "for (const [k, v] of {map}) {sum} += v + String(k).length;"
            )),
            _ => self.line(&format!("for (const v of {map}.values()) {sum} -= v;")),
        }
        let taken = match self.below(3) {
            0 => format!("[...{map}.keys()].map((k) => String(k).length)"),
            1 => format!("[...{map}].map(([, v]) => v)"),
            _ => format!("Array.from({map}, ([k, v]) => v + String(k).length)"),
        };
        self.line(&format!("const {keys} = {taken};"));
        self.declare(&keys, List, false);
    }

    fn distinct_items(&mut self) {
        let (set, list) = (self.name("set"), self.expr(List, 2));
        self.line(&format!("const {set} = new Set({list});"));
        let (had, kept) = (self.name("had"), self.name("kept"));
        let (a, b) = (self.some_number(), self.some_number());
        self.line(&format!("{set}.add({a}).add({b});"));
        self.line(&format!("const {had} = {set}.delete({b}) ? 1 : 0;"));
        self.declare(&had, Number, false);
        let items = self.pick(&["", ".values()", ".keys()"]);
        self.line(&format!("const {kept} = [...{set}{items}];"));
        self.declare(&kept, List, false);
    }

    fn thrown_object(&mut self) {
        let (error, code, text) = (self.name("e"), self.name("code"), self.name("text"));
        let (a, test) = (self.some_number(), self.some_test());
        let message = self.expr(Text, 1);
        self.line(&format!("const {text} = {message};"));
        self.line(&format!("let {code} = 0;"));
        self.declare(&code, Number, true);
        let other = match self.below(4) {
            0 => format!("throw Object.assign(new Error({text}), {{ code: {a} }})"),
            1 => format!("const made = new TypeError({text}); made.code = {a}; throw made"),
            2 => format!("throw new RangeError({text}, {{ cause: new Error('cause') }})"),
            _ => format!("throw new Error({text})"),
        };
        let again = if self.one_in(2) { "try { " } else { "" };
        let ended = match again {
            "" => String::new(),
            _ => format!(" }} finally {{ {code} += 1 }}"),
        };
        self.line(&format!(
            "try {{ {again}if ({test}) {{ {other} }} throw new TypeError('none');{ended} }} \
             catch ({error}) {{"
        ));
        let used = match self.below(4) {
            0 => format!("{error}.code ?? {error}.name.length"),
            1 => format!("{error} instanceof TypeError ? 1 : 2"),
            2 => format!("`${{{error}}}`.length"),
            _ => format!("({error}.cause?.message ?? {error}.message).length"),
        };
        self.line(&format!("  {code} += {used};"));
        self.line("}");
    }

    fn falling(&mut self) {
        let (on, seen) = (self.some_number(), self.name("seen"));
        self.line(&format!("let {seen} = 0;"));
        self.declare(&seen, Number, true);
        self.line(&format!("switch (Math.abs({on}) % 4) {{"));
        let default = self.below(4);
        for case in 0..4 {
            let label = match case == default {
                true => "default".to_owned(),
                false => format!("case {case}"),
            };
            let test = self.some_test();
            let end = match self.below(4) {
                0 => " break;".to_owned(),
                1 => format!(" if ({test}) break; {seen} *= 2;"),
                _ => String::new(),
            };
            let step = 1 + self.below(9);
            match self.one_in(5) {
                true => self.line(&format!("  {label}:")),
                false => self.line(&format!("  {label}: {seen} += {step};{end}")),
            }
        }
        self.line("}");
    }

    fn waited_chain(&mut self) {
        let (call, value) = (self.name("call"), self.name("got"));
        let a = self.some_number();
        // A function cannot set variables of the agent, as other expressions may.
        let test = self.pick(&["x > 2", "x !== x", "x % 2 === 0", "false"]);
        self.line(&format!(
            "const {call} = async (x) => {{ if ({test}) throw Object.assign(new Error('w'), \
             {{ code: x }}); return x }};"
        ));
        let mut chain = format!("{call}({a})");
        for _ in 0..1 + self.below(3) {
            let next = match self.below(4) {
                0 => ".then((x) => x + 1)".to_owned(),
                1 => ".then((x) => { if (x > 3) throw new Error('big'); return x * 2 })".to_owned(),
                2 => ".catch((e) => e.code ?? e.message.length)".to_owned(),
                _ => format!(".then((x) => {call}(x - 1))"),
            };
            chain.push_str(&next);
        }
        self.line(&format!(
            "const {value} = await {chain}.catch((e) => e.message.length);"
        ));
        self.declare(&value, Number, false);
    }
}
