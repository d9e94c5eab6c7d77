//! Rules for calls: arguments that methods cannot use, unknown functions of a namespace, and
//! items that a list never contains.
//!
//! Codes: `lint.constant_condition`, `lint.unknown_function`, `lint.wrong_arguments`,
//! `lint.wrong_kind`.

use super::Rules;
use super::kinds::{Holds, Items, Members};
use a99_compiler::ir::{Ir, IrKind, Lit};
use a99_core::builtins::{self, Gives, Takes};
use a99_core::diag::{codes, excerpt};
use a99_core::json::Kind;

/// Depth to which operands are analysed.
const DEPTH: u32 = 4;

/// Items of a literal list that are checked.
const MOST: usize = 64;

/// Date parts that `add` accepts.
const PARTS: &[&str] = &[
    "years", "months", "days", "hours", "minutes", "seconds", "ms",
];

/// The value of a number literal.
fn number(ir: &Ir<'_>) -> Option<f64> {
    match ir.kind {
        IrKind::Lit(Lit::Number(n)) => Some(n),
        IrKind::Unary(a99_compiler::expr::UnOp::Neg, arg) => number(arg).map(|n| -n),
        _ => None,
    }
}

/// Whether values of two kinds are never equal, as `includes` compares them.
fn differ(item: Holds, sought: Holds) -> bool {
    let is_known = |holds| {
        matches!(
            holds,
            Holds::Bool | Holds::Number | Holds::List(_) | Holds::Object(_)
        ) || Holds::is_text(holds)
    };
    let (Some(a), Some(b)) = (item.kind(), sought.kind()) else {
        return false;
    };
    is_known(item) && is_known(sought) && a != b
}

impl<'a> Rules<'_, 'a> {
    fn found_call(&mut self, code: &'static str, ir: &Ir<'a>, message: String, help: String) {
        self.found(code, ir.at, message, "", help);
    }

    /// Checks a method call against its row: the arguments that it takes.
    pub(super) fn lint_method_call(
        &mut self,
        ir: &Ir<'a>,
        object: &Ir<'a>,
        name: &[u8],
        args: &[Ir<'a>],
    ) {
        if let IrKind::Ident(space) = object.kind
            && !self.vars.knows(space)
            && let Some(space) = builtins::NAMESPACES.iter().find(|n| n.as_bytes() == space)
        {
            let shown = Self::shown(name);
            self.lint_namespace_arguments(ir, space, &shown, args);
            return self.lint_namespace_call(ir, space, &shown, args);
        }
        self.lint_bare_method(name, args);
        match name {
            b"add" => return self.lint_added(object, args),
            b"toString" if args.is_empty() => return self.lint_object_string(ir, object),
            b"join" if args.is_empty() => return self.lint_commas(ir, object),
            _ => {}
        }
        let row = str::from_utf8(name).ok().and_then(builtins::method_row);
        let Some((row, takes)) = row.and_then(|row| Some((row, row.takes?))) else {
            return;
        };
        let (
            method,
            Takes {
                least,
                most,
                numbers,
            },
        ) = (row.name, takes);
        if most == 0 {
            return;
        }
        if args.len() < least {
            let message = match (least, args.len()) {
                (1, _) => format!("`{method}` needs an argument"),
                (_, 1) => format!("`{method}` needs a second argument, what is put there"),
                _ => format!("`{method}` needs {least} arguments"),
            };
            let help = match least {
                _ if method == "split" => {
                    "write `.split(x)` with what stands between, as in `.split(' ')`".to_owned()
                }
                1 => format!("write `.{method}(x)`"),
                _ => format!("write `.{method}(a, b)`; to take it away, `.{method}(a, '')`"),
            };
            return self.found_call(codes::WRONG_ARGUMENTS, ir, message, help);
        }
        if let Some(extra) = args.get(most) {
            let message = format!(
                "`{method}` takes {} at most, so this is ignored",
                super::arguments::counted(most)
            );
            let help = match method {
                "replace" | "replaceAll" => {
                    "remove it; what is replaced is a text here: patterns are for `regexReplace {text, \
                     pattern, replacement, flags, result}`"
                }
                "includes" | "has" => "ask for each of them: `x.includes(a) || x.includes(b)`",
                _ => "remove it",
            };
            return self.found_call(codes::WRONG_ARGUMENTS, extra, message, help.to_owned());
        }
        if matches!(method, "padStart" | "padEnd")
            && let [first, second] = args
            && matches!(first.kind, IrKind::Lit(Lit::Text(_)))
            && number(second).is_some()
        {
            let message = format!("`{method}` takes the length first, and then what fills it");
            let help = format!("turn the two around: `.{method}(5, '0')`");
            return self.found_call(codes::WRONG_ARGUMENTS, ir, message, help);
        }
        for arg in args.iter().take(numbers) {
            let holds = self.holds_of(arg, DEPTH);
            if matches!(
                holds,
                Holds::Text | Holds::OneOf(_) | Holds::List(_) | Holds::Object(_)
            ) {
                let called = excerpt(&self.called(arg));
                let message = format!(
                    "`{method}` takes a number, and `{called}` is {}",
                    holds.words()
                );
                let help = match method {
                    "padStart" | "padEnd" => {
                        format!("the length comes first: `.{method}(5, '0')`")
                    }
                    "at" | "charAt" => "items and letters are numbered from 0: `.at(0)`".to_owned(),
                    _ => format!("give it a number, as in `.{method}(2)`"),
                };
                return self.found_call(codes::WRONG_ARGUMENTS, arg, message, help);
            }
        }
        if let Some(first) = args.first() {
            if matches!(method, "at" | "charAt") && number(first).is_none() {
                self.lint_index(ir, object, first);
            }
            self.lint_method_range(method, first);
            if builtins::searches_lists(method) {
                self.lint_never_held(object, first, method);
            }
        }
    }

    /// Reports a number that a method rejects or interprets otherwise.
    fn lint_method_range(&mut self, method: &str, first: &Ir<'a>) {
        let Some(n) = number(first) else { return };
        let (message, help) = match method {
            "repeat" if n < 0.0 => (
                "a text cannot be repeated so often",
                "write a number from 0 on",
            ),
            "toFixed" if !(0.0..=100.0).contains(&n) => (
                "`toFixed` takes 0 to 100 decimals, so the call fails",
                "write `.toFixed(2)`",
            ),
            "toPrecision" if !(1.0..=100.0).contains(&n) => (
                "`toPrecision` takes 1 to 100 digits, so the call fails",
                "write `.toPrecision(3)`",
            ),
            "charAt" | "charCodeAt" if n < 0.0 => (
                "there is nothing before the first letter",
                "from the end write `.at(-1)`",
            ),
            _ => return,
        };
        self.found_call(
            codes::WRONG_ARGUMENTS,
            first,
            message.to_owned(),
            help.to_owned(),
        );
    }

    /// Reports a search for a value that a list never contains: `xs.includes('a')` of numbers.
    fn lint_never_held(&mut self, object: &Ir<'a>, sought: &Ir<'a>, method: &str) {
        let doc = self.doc;
        // A list of words that is searched for one of the texts of a schema.
        if let IrKind::Data(list) = object.kind
            && doc.kind(list) == Kind::Array
            && let Holds::OneOf(_) = self.holds_of(sought, DEPTH)
        {
            let holds = self.holds_of(sought, DEPTH);
            let items: Vec<_> = doc.elements(list).take(MOST).collect();
            for item in items {
                let text = doc.str(item).unwrap_or_default();
                if !text.is_empty() && self.found_no_choice(holds, sought, text, object) {
                    return;
                }
            }
            return;
        }
        let item = match self.holds_of(object, DEPTH) {
            Holds::List(Items::Schema(schema)) => super::inference::of_schema(doc, schema),
            Holds::List(Items::Texts) => Holds::Made,
            _ => return,
        };
        if let (Holds::OneOf(_), IrKind::Lit(Lit::Text(text))) = (item, sought.kind)
            && self.found_no_choice(item, object, text, sought)
        {
            return;
        }
        let holds = self.holds_of(sought, DEPTH);
        if !differ(item, holds) {
            return;
        }
        let called = excerpt(&self.called(object));
        let message = format!(
            "the items of `{called}` are {}s, and this is {}: `{method}` never finds it",
            item.words()
                .trim_start_matches("a ")
                .trim_start_matches("an "),
            holds.words()
        );
        let help = match (item.is_text(), holds) {
            (true, Holds::Number) => "write the number in quotes, or make numbers of the items",
            (false, _) if item == Holds::Number && holds.is_text() => {
                "write the number without quotes, or make one of the text by `Number(...)`"
            }
            _ => "look for a value like the items",
        };
        self.found_call(codes::CONSTANT_CONDITION, sought, message, help.to_owned());
    }

    /// Reports a call of an unknown function of a namespace, or with unsuitable arguments.
    fn lint_namespace_call(&mut self, ir: &Ir<'a>, space: &str, name: &str, args: &[Ir<'a>]) {
        if space == "Schema" || space == "console" {
            return;
        }
        if builtins::function(space, name).is_none() {
            let all = builtins::FUNCTIONS.iter().filter(|f| f.ns == space);
            let near = self.nearest(name, all.clone().map(|f| f.name));
            let help = match near {
                Some(near) => format!("did you mean `{space}.{near}`?"),
                None => {
                    let global = builtins::FUNCTIONS.iter();
                    let global = global.filter(|f| f.name == name).find(|f| f.ns != space);
                    match global {
                        _ if space == "Number" && name == "parse" => {
                            "write `Number(text)`".to_owned()
                        }
                        Some(f) if f.ns.is_empty() => format!("write `{name}(x)`"),
                        Some(f) => format!("write `{}.{name}(x)`", f.ns),
                        None if space == "String" && name == "format" => {
                            "use `template {tmpl, vars, result}`".to_owned()
                        }
                        None => {
                            let names: Vec<&str> = all.take(12).map(|f| f.name).collect();
                            format!("`{space}` has `{}`", names.join("`, `"))
                        }
                    }
                }
            };
            // Lowering reports names that no value and no namespace has.
            if builtins::method_id(name).is_some()
                || builtins::FUNCTIONS.iter().any(|f| f.name == name)
            {
                let message = format!("`{space}` has no function `{}`", excerpt(name));
                self.found(codes::UNKNOWN_FUNCTION, ir.at, message, name, help);
            }
            return;
        }
        if let ("stringify", Some(second)) = (name, args.get(1))
            && space == "JSON"
            && args.len() == 2
            && number(second).is_some()
        {
            let message =
                "the second argument chooses members: indentation is the third".to_owned();
            let help = "write `JSON.stringify(x, null, 2)`".to_owned();
            return self.found_call(codes::WRONG_ARGUMENTS, second, message, help);
        }
        if let ("hasOwn", [list, sought]) = (name, args)
            && space == "Object"
            && matches!(self.holds_of(list, DEPTH), Holds::List(_))
            && !matches!(sought.kind, IrKind::Lit(Lit::Number(_)))
        {
            let message = "this asks for the number of an item, not for the item".to_owned();
            let help = "write `xs.includes(x)`".to_owned();
            return self.found_call(codes::WRONG_KIND, ir, message, help);
        }
        let Some(first) = args.first() else {
            if space == "Math" && matches!(name, "max" | "min") {
                let message = format!("`Math.{name}` of nothing is `Infinity` or `-Infinity`");
                let help = format!("give it numbers: `Math.{name}(a, b)`");
                self.found_call(codes::WRONG_ARGUMENTS, ir, message, help);
            }
            return;
        };
        let holds = self.holds_of(first, DEPTH);
        let wants = match (space, name) {
            ("JSON", "parse") => "a text of JSON",
            ("Object", "keys" | "values" | "entries") => "an object",
            ("Object", "fromEntries") => "a list of pairs",
            _ => return,
        };
        let wrong = match wants {
            "a text of JSON" | "an object" => {
                matches!(holds, Holds::Number | Holds::Bool | Holds::Date)
            }
            _ => matches!(holds, Holds::Object(_) | Holds::Number | Holds::Bool),
        };
        if wrong {
            let called = excerpt(&self.called(first));
            let message = format!(
                "`{space}.{name}` takes {wants}, and `{called}` is {}",
                holds.words()
            );
            let help = match wants {
                "a text of JSON" => format!("use `{called}` as it is"),
                "an object" => "give it an object".to_owned(),
                _ => "give it `[[key, value], ...]`, as `Object.entries` does".to_owned(),
            };
            self.found_call(codes::WRONG_ARGUMENTS, first, message, help);
        }
    }

    /// Reports `user.toString()` of an object.
    fn lint_object_string(&mut self, ir: &Ir<'a>, object: &Ir<'a>) {
        if !matches!(self.holds_of(object, DEPTH), Holds::Object(_)) {
            return;
        }
        let called = excerpt(&self.called(object));
        let message = format!("`{called}` is an object, whose text is `[object Object]`");
        let help = format!("take one of its members, or write `JSON.stringify({called})`");
        self.found_call(codes::WRONG_KIND, ir, message, help);
    }

    /// Reports `s.split('').reverse().join()`, which puts commas between the letters.
    fn lint_commas(&mut self, ir: &Ir<'a>, object: &Ir<'a>) {
        let mut at = object;
        for _ in 0..DEPTH {
            let IrKind::Method {
                object, name, args, ..
            } = at.kind
            else {
                return;
            };
            let letters =
                matches!(args, [first] if matches!(first.kind, IrKind::Lit(Lit::Text(b""))));
            if name == b"split" && letters {
                let message =
                    "`join` without an argument puts commas between the letters".to_owned();
                let help = "write `.join('')`".to_owned();
                return self.found_call(codes::WRONG_ARGUMENTS, ir, message, help);
            }
            let given = str::from_utf8(name).map_or(Gives::Unknown, builtins::gives);
            if !matches!(given, Gives::Items | Gives::Part) {
                return;
            }
            at = object;
        }
    }

    /// Reports an `add` that adds nothing to a date: `date.add({ day: 1 })`, `date.add('1d')`.
    fn lint_added(&mut self, object: &Ir<'a>, args: &[Ir<'a>]) {
        let Some(first) = args.first() else { return };
        if self.holds_of(object, DEPTH) != Holds::Date {
            return;
        }
        let holds = self.holds_of(first, DEPTH);
        if holds.is_text() {
            let message = "a text does not say what to add: this adds nothing".to_owned();
            let help = "write `.add({ days: 1 })`".to_owned();
            return self.found_call(codes::WRONG_ARGUMENTS, first, message, help);
        }
        let names: Vec<String> = match (first.kind, holds) {
            (IrKind::Object(entries), _) => entries
                .iter()
                .filter_map(|(key, _)| match key {
                    a99_compiler::ir::ObjKey::Name(name) => Some(Self::shown(name)),
                    _ => None,
                })
                .collect(),
            (_, Holds::Object(members @ Members::Written(_))) => {
                self.members_of(Holds::Object(members))
            }
            _ => return,
        };
        let Some(wrong) = names.iter().find(|name| !PARTS.contains(&name.as_str())) else {
            return;
        };
        let near = self.nearest(wrong, PARTS.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if wrong.starts_with("week") => "write `days`, seven for a week".to_owned(),
            None => format!("parts are {}", PARTS.join(", ")),
        };
        let message = format!("`add` knows no `{}`, so this adds nothing", excerpt(wrong));
        self.found(codes::WRONG_ARGUMENTS, first.at, message, wrong, help);
    }
}
