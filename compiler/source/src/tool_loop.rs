//! Lowers `llmToolLoop`: its tools are objects, and the call of a tool is an arrow function.

use crate::atom::{bound, code_of, properties_of};
use crate::code::only_expression;
use crate::expr::Hint;
use crate::lower::{Code, Lowerer, place};
use crate::tree::{Place, Tree};
use crate::value::Value;
use a99_core::sig::Binding;
use oxc_ast::ast::{
    ArrayExpressionElement, BindingPattern, CallExpression, Expression, ObjectPropertyKind,
};
use oxc_span::GetSpan;

const OP: &str = "llmToolLoop";

/// Advice on the form of tools.
const TOOLS: &str = "write `tools: [{ name, description, inputSchema, call: (input) => \
                     atom({ key: input.key }) }]`, `{ atom: 'storeGet' }` or `{ agent: 'id', \
                     description }`";

impl<'a> Lowerer<'a> {
    pub(crate) fn tool_loop(
        &mut self,
        call: &'a CallExpression<'a>,
        hint: Hint<'_>,
        out: &mut Vec<Tree>,
    ) -> Value {
        let at = place(call.span);
        let properties = properties_of(call);
        let own = |property: &ObjectPropertyKind<'a>| match property {
            ObjectPropertyKind::ObjectProperty(property) => {
                let name = property.key.static_name();
                name.filter(|name| matches!(&**name, "tools" | "stopWhen" | "as"))
            }
            ObjectPropertyKind::SpreadProperty(_) => None,
        };
        let plain: Vec<&'a ObjectPropertyKind<'a>> =
            properties.iter().filter(|p| own(p).is_none()).collect();
        let mut step = Tree::step(OP, [], &at);
        let mut keys = self.put_inputs(OP, &plain, &mut step, out);
        for property in properties {
            let (Some(name), ObjectPropertyKind::ObjectProperty(inner)) = (own(property), property)
            else {
                continue;
            };
            match &*name {
                "tools" => {
                    keys.push("tools");
                    let tools = self.tools(&inner.value, &at);
                    step.put("tools", tools);
                }
                "stopWhen" => self.stop_when(&inner.value, &mut step),
                _ => {
                    let help = "name the round in `stopWhen`: `(round) => round.number > 2`";
                    self.unsupported(property.span(), "`as` of `llmToolLoop`", help);
                }
            }
        }
        self.missing_inputs(OP, &keys, call);
        self.result(step, true, hint, out)
    }

    fn tools(&mut self, list: &'a Expression<'a>, at: &Place) -> Tree {
        let Expression::ArrayExpression(array) = list.get_inner_expression() else {
            self.unsupported(list.span(), "tools that are no list of objects", TOOLS);
            return Tree::list(Vec::new(), at);
        };
        let tools = array.elements.iter().map(|tool| self.tool(tool)).collect();
        Tree::list(tools, at)
    }

    fn tool(&mut self, tool: &'a ArrayExpressionElement<'a>) -> Tree {
        let at = place(tool.span());
        let inner = tool.as_expression().map(Expression::get_inner_expression);
        let Some(Expression::ObjectExpression(object)) = inner else {
            self.unsupported(tool.span(), "a tool that is no object", TOOLS);
            return Tree::null(&at);
        };
        let mut tree = Tree::map([], &at);
        for property in &object.properties {
            let Some((key, expr)) = self.input(OP, property) else {
                continue;
            };
            match (key, code_of(expr)) {
                ("call", Some(code)) => self.tool_call(code, &mut tree),
                ("call" | "as", _) | (_, Some(_)) => {
                    self.unsupported(property.span(), &format!("this `{key}` of a tool"), TOOLS);
                }
                (_, None) => {
                    let mut steps = Vec::new();
                    let value = self.expr(expr, &mut steps);
                    if !value.is_constant() || !steps.is_empty() {
                        let what = format!("a computed `{key}` of a tool");
                        self.unsupported(property.span(), &what, "write a literal there");
                        continue;
                    }
                    let value = bound(value, Binding::Literal);
                    tree.put_owned(key.as_bytes().to_vec().into(), value);
                }
            }
        }
        tree
    }

    /// Lowers the call that an arrow function makes with the input.
    fn tool_call(&mut self, code: Code<'a>, tool: &mut Tree) {
        let at = tool.place.clone();
        let made = only_expression(code).and_then(|expr| self.atom_of(expr));
        let params = &code.params().items[..];
        let param = match params {
            [] => None,
            [param] => match &param.pattern {
                BindingPattern::BindingIdentifier(item) => Some(item),
                _ => return self.unsupported(code.span(), "this input of a tool", TOOLS),
            },
            _ => return self.unsupported(code.span(), "more than one input of a tool", TOOLS),
        };
        let Some((op, call)) = made else {
            return self.unsupported(code.span(), "a tool that is no call of an atom", TOOLS);
        };
        self.push_scope();
        if let Some(param) = param {
            let name = self.variable(param.name.as_str(), param.span, true);
            tool.put("as", Tree::text(&name, &at));
        }
        let mut steps = Vec::new();
        let call = self.atom_step(op, call, &mut steps);
        self.pop_scope();
        if !steps.is_empty() {
            let help = "compute it from constants before, or in an agent of its own";
            self.unsupported(code.span(), "a computed input of a tool's call", help);
        }
        tool.put("call", call.unwrap_or_else(|| Tree::null(&at)));
    }

    fn stop_when(&mut self, expr: &'a Expression<'a>, step: &mut Tree) {
        let at = step.place.clone();
        const HELP: &str = "write `stopWhen: (round) => round.number > 2`";
        let code = code_of(expr).and_then(|code| Some((code, only_expression(code)?)));
        let Some((code, test)) = code else {
            return self.unsupported(expr.span(), "this `stopWhen`", HELP);
        };
        let param = match &code.params().items[..] {
            [] => None,
            [param] => match &param.pattern {
                BindingPattern::BindingIdentifier(item) => Some(item),
                _ => return self.unsupported(expr.span(), "this `stopWhen`", HELP),
            },
            _ => return self.unsupported(expr.span(), "this `stopWhen`", HELP),
        };
        self.push_scope();
        if let Some(param) = param {
            let name = self.variable(param.name.as_str(), param.span, true);
            step.put("as", Tree::text(&name, &at));
        }
        let mut steps = Vec::new();
        let value = self.expr(test, &mut steps);
        self.pop_scope();
        if !steps.is_empty() {
            self.unsupported(expr.span(), "a call in `stopWhen`", HELP);
        }
        step.put("stopWhen", value.condition());
    }
}
