//! Lowers methods that take regular expression literals.

use crate::expr::Hint;
use crate::lower::{After, Lowerer, branch, for_each, place, set};
use crate::pattern::{member_of, method};
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, CallExpression, Expression, RegExpFlags, RegExpLiteral};
use oxc_span::{GetSpan, Span};

impl<'a> Lowerer<'a> {
    /// Lowers a method of a regular expression, or of a text with a regular expression as
    /// argument.
    pub(crate) fn regex_method(
        &mut self,
        (object, given): (&'a Expression<'a>, Option<Value>),
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        if let Some(regex) = self.regex_of(object) {
            let arguments = self.arguments(&call.arguments);
            let ([text], "test" | "exec") = (&arguments[..], name) else {
                let help = "write `/a+/.test(text)`, or `text.match(/a+/)`";
                self.unsupported(call.span, "this method of a regular expression", help);
                return Some(Value::undefined(&place(call.span)));
            };
            if let Some(next) = self.next_match(call, out) {
                return Some(next);
            }
            let text = self.expr(text, out);
            if name == "exec" && regex.regex.flags.contains(RegExpFlags::G) {
                let help = "write `for (const found of text.matchAll(/a+/g))`";
                self.unsupported(call.span, "`exec` with the flag `g`", help);
            }
            return Some(match name {
                "test" => self.test(regex, text, hint, out),
                _ => self.first(regex, text, call.span, out),
            });
        }
        let first = call.arguments.first().and_then(Argument::as_expression)?;
        if matches!(name, "replace" | "replaceAll")
            && let Some(value) =
                self.replaced_by_calls((object, given.clone()), name, call, hint, out)
        {
            return Some(value);
        }
        let regex = self.regex_of(first)?;
        let is_global = regex.regex.flags.contains(RegExpFlags::G);
        let mut text = [self.receiver((object, given), call, out)];
        let mut steps = Vec::new();
        let rest = self.arguments(&call.arguments[1..]);
        let rest = match name {
            "replace" | "replaceAll" => self.replacement(&rest, call.span, &mut steps),
            _ => self.exprs(&rest, &mut steps),
        };
        self.keep(&mut text, &steps, out);
        out.append(&mut steps);
        let [text] = text;
        Some(match name {
            "match" if is_global => self.all(regex, text, call.span, hint, out),
            "match" => self.first(regex, text, call.span, out),
            "matchAll" => self.each_match(regex, text, call.span, hint, out),
            "search" => self.search(regex, text, call.span, out),
            "replace" | "replaceAll" => {
                if name == "replaceAll" && !is_global {
                    let help = "add the flag `g`, which JavaScript asks for, too";
                    self.unsupported(first.span(), "`replaceAll` without the flag `g`", help);
                }
                let mut step = self.step("regexReplace", regex, text, call.span);
                for value in rest.into_iter().take(1) {
                    step.put("replacement", value.resolved());
                }
                self.result(step, true, hint, out)
            }
            "split" => self.split(regex, text, rest, call.span, hint, out),
            _ => {
                let help = "there are test, match, matchAll, replace, split and search";
                self.unsupported(first.span(), "a regular expression here", help);
                Value::undefined(&place(call.span))
            }
        })
    }

    /// Returns the literal of an expression: written inline, or in the constant of this name.
    pub(crate) fn regex_of(&self, expr: &'a Expression<'a>) -> Option<&'a RegExpLiteral<'a>> {
        match expr.get_inner_expression() {
            Expression::RegExpLiteral(regex) => Some(regex),
            Expression::Identifier(id) => {
                let id = self.lookup(id.name.as_str())?;
                self.regexes.get(&id).copied()
            }
            _ => None,
        }
    }

    /// Builds a step of an atom for regular expressions.
    fn step(
        &mut self,
        op: &'static str,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        span: Span,
    ) -> Tree {
        let at = place(span);
        self.bounded(regex, op);
        let pattern = Tree::text(regex.regex.pattern.text.as_str(), &place(regex.span));
        let mut step = Tree::step(op, [("text", text.resolved()), ("pattern", pattern)], &at);
        let flags = self.flags(regex, op == "regexReplace");
        if !flags.is_empty() {
            step.put("flags", Tree::text(&flags, &at));
        }
        step
    }

    /// Counts the work of a pattern, which is repeated for each use of its constant, and refuses
    /// group names that are forbidden as members.
    pub(crate) fn bounded(&mut self, regex: &'a RegExpLiteral<'a>, op: &str) {
        let pattern = regex.regex.pattern.text.as_str();
        let groups = groups(pattern);
        self.repeat_work(pattern.len() / 16 + 4 * groups.len());
        let is_forbidden = |name: &&str| a99_core::builtins::is_forbidden(name.as_bytes());
        if op != "regexReplace" && groups.iter().flatten().any(is_forbidden) {
            let help = "give the group another name";
            self.unsupported(regex.span, "the name of a group of this", help);
        }
    }

    /// Adds such a step and returns its result in a new variable.
    fn found(
        &mut self,
        op: &'static str,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Value {
        let step = self.step(op, regex, text, span);
        self.result(step, true, Hint::None, out)
    }

    /// Returns the flags that the atoms accept.
    pub(crate) fn flags(&mut self, regex: &'a RegExpLiteral<'a>, with_all: bool) -> String {
        let flags = regex.regex.flags;
        let taken = [
            (RegExpFlags::I, 'i'),
            (RegExpFlags::M, 'm'),
            (RegExpFlags::S, 's'),
            (RegExpFlags::U, 'u'),
            (RegExpFlags::Y, 'y'),
            (RegExpFlags::G, 'g'),
        ];
        if taken.iter().fold(flags, |left, (flag, _)| left - *flag) != RegExpFlags::empty() {
            let help = "there are g, i, m, s, u and y";
            self.unsupported(regex.span, "a flag of this regular expression", help);
        }
        let taken = taken
            .into_iter()
            .filter(|(flag, c)| flags.contains(*flag) && (*c != 'g' || with_all));
        taken.map(|(_, c)| c).collect()
    }

    fn test(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(regex.span);
        if regex.regex.flags.contains(RegExpFlags::G) {
            let help = "leave `g` out";
            self.unsupported(regex.span, "`test` with the flag `g`", help);
        }
        let pattern = regex.regex.pattern.text.as_str();
        if regex.regex.flags.is_empty() && !looks_elsewhere(pattern) {
            // `regexReplace` returns no groups, so group names do not matter.
            self.bounded(regex, "regexReplace");
            let inputs = [
                ("pattern", Tree::text(pattern, &at)),
                ("value", text.resolved()),
            ];
            return self.result(Tree::step("regexMatch", inputs, &at), true, hint, out);
        }
        let found = self.found("regexFind", regex, text, regex.span, out);
        Value::node(Tree::binary("!==", found.operand(), Tree::null(&at), &at))
    }

    /// Lowers to the first match, with the members of JavaScript's match.
    fn first(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let found = self.found("regexFind", regex, text, span, out);
        let is_none = Tree::binary("===", found.clone().operand(), Tree::null(&at), &at);
        Value::node(Tree::conditional(
            is_none,
            Tree::null(&at),
            as_match(&found, regex, &at),
            &at,
        ))
    }

    /// Lowers to the texts of all matches, or `null` without a match.
    fn all(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let found = self.found("regexFindAll", regex, text, span, out);
        let item = self.fresh();
        let value = member_of(Value::ident(&item, &at), Value::text("match", &at), &at);
        let inputs = [
            ("items", found.resolved()),
            ("as", Tree::text(&item, &at)),
            (
                "steps",
                Tree::list(vec![set("result", value.resolved(), &at)], &at),
            ),
        ];
        let texts = self.result(Tree::step("map", inputs, &at), true, hint, out);
        let length = member_of(texts.clone(), Value::text("length", &at), &at);
        Value::node(Tree::conditional(
            length.operand(),
            texts.operand(),
            Tree::null(&at),
            &at,
        ))
    }

    pub(crate) fn each_match(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        if !regex.regex.flags.contains(RegExpFlags::G) {
            let help = "add the flag `g`, which JavaScript asks for, too";
            self.unsupported(regex.span, "`matchAll` without the flag `g`", help);
        }
        let found = self.found("regexFindAll", regex, text, span, out);
        let list = self.new_list(hint, &at, out);
        let item = self.fresh();
        let mut body = Vec::new();
        let value = Value::node(as_match(&Value::ident(&item, &at), regex, &at));
        self.after(&After::Push(list.clone()), value, &mut body);
        out.push(for_each(found.resolved(), &item, None, body, &at));
        Value::ident(&list, &at)
    }

    fn search(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let found = self.found("regexFind", regex, text, span, out);
        let index = member_of(found, Value::text("index", &at), &at);
        Value::node(Tree::logical(
            "??",
            index.operand(),
            Tree::number(-1.0, &at),
            &at,
        ))
    }

    fn split(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        rest: Vec<Value>,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let groups = groups(regex.regex.pattern.text.as_str()).len();
        if groups > 0 {
            if !rest.is_empty() {
                let help = "write groups as `(?:...)`, or take the first parts by `slice`";
                self.unsupported(
                    regex.span,
                    "a group in the pattern of `split` to a limit",
                    help,
                );
            }
            return self.split_with_groups(regex, groups, text, span, hint, out);
        }
        let mut step = self.step("regexSplit", regex, text, span);
        for limit in rest.into_iter().take(1) {
            step.put("limit", limit.resolved());
        }
        self.result(step, true, hint, out)
    }

    /// Lowers `text.split(/(a)|b/)` to the texts between the matches and the groups of each
    /// match.
    fn split_with_groups(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        groups: usize,
        text: Value,
        span: Span,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(span);
        let text = self.named(text, out);
        let found = self.found("regexFindAll", regex, text.clone(), span, out);
        let found = self.named(found, out);
        let (list, end, item) = (self.new_list(hint, &at, out), self.fresh(), self.fresh());
        out.push(set(&end, Tree::number(0.0, &at), &at));
        let part = |key: &str| member_of(Value::ident(&item, &at), Value::text(key, &at), &at);
        let length = |of: Value| member_of(of, Value::text("length", &at), &at).operand();
        let binary = |op: &'static str, left: Tree, right: Tree| Tree::binary(op, left, right, &at);
        let (start, matched) = (part("index"), part("match"));
        let between = vec![Tree::ident(&end, &at), start.clone().operand()];
        let between = Value::node(method(text.clone().operand(), "slice", between, &at));
        let behind = binary("+", start.clone().operand(), length(matched.clone()));
        let mut steps = Vec::new();
        self.after(&After::Push(list.clone()), between, &mut steps);
        for number in 0..groups {
            let group = member_of(part("groups"), Value::number(number as f64, &at), &at);
            let group = Tree::logical("??", group.operand(), Tree::undefined(&at), &at);
            self.after(&After::Push(list.clone()), Value::node(group), &mut steps);
        }
        steps.push(set(&end, behind.clone(), &at));
        // An empty match splits neither at the end of the text nor at the end of the previous
        // match.
        let inside = binary("<", start.operand(), length(text.clone()));
        let goes_on = binary(">", behind, Tree::ident(&end, &at));
        let test = Tree::logical("&&", inside, goes_on, &at);
        let body = vec![branch(test, steps, Vec::new(), &at)];
        out.push(for_each(found.clone().resolved(), &item, None, body, &at));
        // An empty text that matches has no parts.
        let last = vec![Tree::ident(&end, &at)];
        let last = Value::node(method(text.clone().operand(), "slice", last, &at));
        let mut steps = Vec::new();
        self.after(&After::Push(list.clone()), last, &mut steps);
        let no_match = binary("===", length(found), Tree::number(0.0, &at));
        let test = Tree::logical("||", length(text), no_match, &at);
        out.push(branch(test, steps, Vec::new(), &at));
        Value::ident(&list, &at)
    }

    /// Lowers the replacement of matches, which is a text.
    fn replacement(
        &mut self,
        rest: &[&'a Expression<'a>],
        span: Span,
        out: &mut Vec<Tree>,
    ) -> Vec<Value> {
        let [with] = rest else {
            let help = "write `text.replace(/a+/g, \"b\")`";
            self.unsupported(span, "this `replace`", help);
            return Vec::new();
        };
        let value = self.expr(with, out);
        if let Kind::Text(text) = &value.kind
            && text.windows(2).any(|two| matches!(two, b"$`" | b"$'"))
        {
            let help = "there are `$1`, `$<name>`, `$&` and `$$`";
            self.unsupported(span, "this `$` in a replacement", help);
        }
        vec![value]
    }
}

/// Returns a pattern that matches exactly this text.
pub(crate) fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if "\\^$.*+?()[]{}|/".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Whether a pattern has look-around or refers back to a group: `regexMatch` takes neither.
fn looks_elsewhere(pattern: &str) -> bool {
    let mut class = false;
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let of_group = rest.starts_with(|c: char| matches!(c, '1'..='9' | 'k'));
                if !class && of_group {
                    return true;
                }
                let escaped = rest.chars().next();
                rest = &rest[escaped.map_or(0, char::len_utf8)..];
            }
            '[' => class = true,
            ']' => class = false,
            '(' if !class => {
                let signs = ["?=", "?!", "?<=", "?<!"];
                if signs.iter().any(|sign| rest.starts_with(sign)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns the names of a pattern's capturing groups in order.
pub(crate) fn groups(pattern: &str) -> Vec<Option<&str>> {
    let (mut escaped, mut class) = (false, false);
    let mut found = Vec::new();
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'[' => class = true,
            b']' => class = false,
            b'(' if !class => {
                let rest = &pattern[at + 1..];
                let named = rest.strip_prefix("?<");
                match named.filter(|rest| !rest.starts_with(['=', '!'])) {
                    Some(rest) => found.push(rest.split('>').next()),
                    None if !rest.starts_with('?') => found.push(None),
                    None => {}
                }
            }
            _ => {}
        }
    }
    found
}

/// Builds a match with the members of JavaScript's match: the text and the groups by number,
/// `index`, `groups`, `length`. Unmatched groups are `undefined`.
fn as_match(found: &Value, regex: &RegExpLiteral<'_>, at: &Place) -> Tree {
    let part = |key: &str| member_of(found.clone(), Value::text(key, at), at);
    let given = |part: Value| {
        let part = Tree::logical("??", part.operand(), Tree::undefined(at), at);
        Value::node(part)
    };
    let groups = groups(regex.regex.pattern.text.as_str());
    let mut members = vec![("0".to_owned(), part("match"))];
    for number in 0..groups.len() {
        let group = member_of(part("groups"), Value::number(number as f64, at), at);
        members.push(((number + 1).to_string(), given(group)));
    }
    let named = groups.iter().flatten().map(|name| {
        let group = member_of(part("named"), Value::text(name, at), at);
        (name.as_bytes().to_vec(), given(group))
    });
    let named: Vec<(Vec<u8>, Value)> = named.collect();
    let named = match named.is_empty() {
        true => Value::undefined(at),
        false => Value::new(Kind::Map(named), at),
    };
    members.push(("index".to_owned(), part("index")));
    members.push(("groups".to_owned(), named));
    let length = groups.len() + 1;
    members.push(("length".to_owned(), Value::number(length as f64, at)));
    let members = members.into_iter();
    let members = members.map(|(key, value)| (key.into_bytes(), value));
    Value::new(Kind::Map(members.collect()), at).operand()
}
