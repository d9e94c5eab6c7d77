//! Lowers the receivers of regular expression methods, and `replace` with a callback.

use crate::expr::Hint;
use crate::lower::{After, Lowerer, branch, place, set};
use crate::pattern::{is_there, member_of, method};
use crate::provided::METHODS;
use crate::regex::{escaped, groups};
use crate::state::Iterable;
use crate::tree::Tree;
use crate::value::{Kind, Value};
use oxc_ast::ast::{Argument, CallExpression, Expression, RegExpFlags};
use oxc_span::GetSpan;

impl<'a> Lowerer<'a> {
    /// Lowers the receiver of such a method, or checks one that is already evaluated. The atoms
    /// would convert other values to text, so these values fail like the method.
    pub(crate) fn receiver(
        &mut self,
        (object, given): (&'a Expression<'a>, Option<Value>),
        call: &'a CallExpression<'a>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let value = match given {
            Some(value) => value,
            None => self.chained(object, out),
        };
        let is_text = self.sort_of(object) == Iterable::Text;
        if is_text || matches!(value.kind, Kind::Text(_)) {
            return value;
        }
        let at = value.place.clone();
        let value = self.named(value, out);
        let kind = Tree::unary("typeof", value.clone().operand(), &at);
        let text = Value::text("string", &at).operand();
        let is_other = Tree::binary("!==", kind, text, &at);
        out.push(branch(is_other, self.no_method(call), Vec::new(), &at));
        value
    }

    /// Lowers `text?.replace(/a/, "b")`, which is `undefined` without a text.
    pub(crate) fn optional_regex(
        &mut self,
        object: &'a Expression<'a>,
        name: &'a str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let first = call.arguments.first().and_then(Argument::as_expression)?;
        let with = call.arguments.get(1);
        let takes_regex = self.regex_of(first).is_some()
            || name.starts_with("replace") && with.and_then(|with| self.callback(with)).is_some();
        if !METHODS.contains(&name) || !takes_regex {
            return None;
        }
        let at = place(call.span);
        let text = self.chained(object, out);
        let text = self.named(text, out);
        let result = self.target(hint);
        out.push(set(&result, Tree::undefined(&at), &at));
        let mut steps = Vec::new();
        let given = (object, Some(text.clone()));
        let value = self.regex_method(given, name, call, Hint::None, &mut steps)?;
        steps.push(set(&result, value.resolved(), &at));
        out.push(branch(
            is_there(text.operand(), &at),
            steps,
            Vec::new(),
            &at,
        ));
        Some(Value::ident(&result, &at))
    }

    /// Lowers `text.replace(pattern, (match, group) => ...)` to a loop over the matches.
    pub(crate) fn replaced_by_calls(
        &mut self,
        (object, receiver): (&'a Expression<'a>, Option<Value>),
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let [pattern, with] = &call.arguments[..] else {
            return None;
        };
        let pattern = pattern.as_expression()?;
        let callback = self.callback(with)?;
        let at = place(call.span);
        let regex = self.regex_of(pattern);
        let (text_of_pattern, all, names) = match (regex, pattern.get_inner_expression()) {
            (Some(regex), _) => {
                let all = regex.regex.flags.contains(RegExpFlags::G);
                if name == "replaceAll" && !all {
                    let help = "add the flag `g`, which JavaScript asks for, too";
                    self.unsupported(pattern.span(), "`replaceAll` without the flag `g`", help);
                }
                self.bounded(regex, "regexFindAll");
                let text = regex.regex.pattern.text.as_str();
                (text.to_owned(), all, groups(text))
            }
            (None, Expression::StringLiteral(text)) if !text.value.is_empty() => (
                escaped(text.value.as_str()),
                name == "replaceAll",
                Vec::new(),
            ),
            _ => {
                let help = "write a regular expression literal before the function: \
                            `text.replace(/a+/g, (match) => ...)`";
                self.unsupported(call.span, "a function as replacement of this", help);
                return Some(Value::undefined(&at));
            }
        };
        let text = self.receiver((object, receiver), call, out);
        // Copies the text, because the callback may set the variable.
        let copy = self.fresh();
        out.push(set(&copy, text.resolved(), &at));
        let text = Value::ident(&copy, &at);
        let op = if all { "regexFindAll" } else { "regexFind" };
        let pattern_at = place(pattern.span());
        let inputs = [
            ("text", text.clone().resolved()),
            ("pattern", Tree::text(&text_of_pattern, &pattern_at)),
        ];
        let mut step = Tree::step(op, inputs, &at);
        let flags = regex.map_or_else(String::new, |regex| self.flags(regex, false));
        if !flags.is_empty() {
            step.put("flags", Tree::text(&flags, &at));
        }
        let mut items = self.result(step, true, Hint::None, out);
        if !all {
            let test = Tree::binary("===", items.clone().operand(), Tree::null(&at), &at);
            let one = Value::new(Kind::List(vec![items]), &at).operand();
            let none = Tree::list(Vec::new(), &at);
            items = Value::node(Tree::conditional(test, none, one, &at));
        }
        let item = self.fresh();
        let part = |key: &str| member_of(Value::ident(&item, &at), Value::text(key, &at), &at);
        let given = |part: Value| {
            Value::node(Tree::logical(
                "??",
                part.operand(),
                Tree::undefined(&at),
                &at,
            ))
        };
        let mut parts = vec![part("match")];
        for number in 0..names.len() {
            let number = Value::number(number as f64, &at);
            parts.push(given(member_of(part("groups"), number, &at)));
        }
        parts.push(part("index"));
        parts.push(text.clone());
        let named: Vec<(Vec<u8>, Value)> = names
            .iter()
            .flatten()
            .map(|name| {
                let group = member_of(part("named"), Value::text(name, &at), &at);
                (name.as_bytes().to_vec(), given(group))
            })
            .collect();
        if !named.is_empty() {
            parts.push(Value::new(Kind::Map(named), &at));
        }
        let (result, end) = (self.target(hint), self.fresh());
        out.push(set(&result, Value::text("", &at).resolved(), &at));
        out.push(set(&end, Tree::number(0.0, &at), &at));
        let mut turn = self.turn(callback, parts.len(), call.span);
        let params = std::mem::replace(&mut turn.names, vec![item.clone()]);
        let mut steps = Vec::new();
        let until = vec![Tree::ident(&end, &at), part("index").operand()];
        let between = method(text.clone().operand(), "slice", until, &at);
        let longer = Tree::binary("+", Tree::ident(&result, &at), between, &at);
        steps.push(set(&result, longer, &at));
        let length = member_of(part("match"), Value::text("length", &at), &at);
        let behind = Tree::binary("+", part("index").operand(), length.operand(), &at);
        steps.push(set(&end, behind, &at));
        let params = params.iter().zip(parts);
        steps.extend(params.map(|(name, part)| set(name, part.resolved(), &at)));
        steps.append(&mut turn.steps);
        turn.steps = steps;
        self.each_turn(items, turn, After::Append(result.clone()), out);
        let rest = vec![Tree::ident(&end, &at)];
        let rest = method(text.operand(), "slice", rest, &at);
        let whole = Tree::binary("+", Tree::ident(&result, &at), rest, &at);
        out.push(set(&result, whole, &at));
        Some(Value::ident(&result, &at))
    }
}
