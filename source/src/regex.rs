//! Regular expression literals, where methods take them.

use crate::expr::Hint;
use crate::lower::{Lowerer, place};
use crate::tree::Tree;
use crate::value::Value;
use oxc_ast::ast::{Argument, CallExpression, Expression, RegExpFlags, RegExpLiteral};

impl<'a> Lowerer<'a> {
    /// A method of a regular expression, or of a text that is given one.
    pub(crate) fn regex_method(
        &mut self,
        object: &'a Expression<'a>,
        name: &str,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(call.span);
        if let Expression::RegExpLiteral(regex) = object.get_inner_expression() {
            let [text] = &self.arguments(&call.arguments)[..] else {
                self.unsupported(call.span, "this call", "write `/a+/.test(text)`");
                return Some(Value::undefined(&at));
            };
            let text = self.expr(text, out);
            return Some(match name {
                "test" => self.test(regex, text, hint, out),
                _ => {
                    let help = "write `/a+/.test(text)`, or `text.match(/a+/)`";
                    self.unsupported(call.span, "this method of a regular expression", help);
                    Value::undefined(&at)
                }
            });
        }
        let Some(Argument::RegExpLiteral(regex)) = call.arguments.first() else {
            return None;
        };
        let help = "regexMatch tells whether it is found; `/a+/.test(text)`";
        self.unsupported(
            regex.span,
            &format!("a regular expression in `.{name}()`"),
            help,
        );
        let _ = (hint, out);
        Some(Value::undefined(&at))
    }

    fn test(
        &mut self,
        regex: &'a RegExpLiteral<'a>,
        text: Value,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(regex.span);
        if !(regex.regex.flags - RegExpFlags::U).is_empty() {
            let help = "write classes for both cases: `[aA]`";
            self.unsupported(regex.span, "a flag of a regular expression here", help);
        }
        let inputs = [
            (
                "pattern",
                Tree::text(regex.regex.pattern.text.as_str(), &at),
            ),
            ("value", text.resolved()),
        ];
        self.result(Tree::step("regexMatch", inputs, &at), true, hint, out)
    }
}
