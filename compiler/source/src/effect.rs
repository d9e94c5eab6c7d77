//! Lowers expressions for their side effects: assignments, calls, deletions.

use crate::codes;
use crate::expr::Hint;
use crate::known::number_of;
use crate::lower::{Lowerer, What, branch, place, set};
use crate::pattern::{is_missing, member_of};
use crate::state::Iterable;
use crate::steps::not;
use crate::tree::{Place, Tree};
use crate::value::Value;
use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, AssignmentTargetMaybeDefault, CallExpression,
    ChainElement, Expression, ObjectProperty, ObjectPropertyKind, PropertyKind,
    SimpleAssignmentTarget, UpdateExpression,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{AssignmentOperator, UnaryOperator, UpdateOperator};

/// Target of an assignment.
#[derive(Clone)]
enum Target {
    Variable(String),
    /// A member: object and key.
    Member(Value, Value),
}

/// Target of `Object.assign` and the properties that it sets.
type Assigned<'a> = (&'a Expression<'a>, Vec<&'a ObjectProperty<'a>>);

impl<'a> Lowerer<'a> {
    /// Lowers an expression whose value is unused.
    pub(crate) fn effect(&mut self, expr: &'a Expression<'a>, out: &mut Vec<Tree>) {
        let span = expr.span();
        if !self.enter(span) {
            return;
        }
        self.effect_within(expr, span, out);
        self.leave();
    }

    fn effect_within(&mut self, expr: &'a Expression<'a>, span: Span, out: &mut Vec<Tree>) {
        let at = place(span);
        match expr.get_inner_expression() {
            Expression::AssignmentExpression(assignment) => {
                self.assignment(assignment, false, out);
            }
            Expression::UpdateExpression(update) => {
                self.update(update, false, out);
            }
            Expression::SequenceExpression(sequence) => {
                for expr in &sequence.expressions {
                    self.effect(expr, out);
                }
            }
            Expression::AwaitExpression(inner) => {
                self.awaits(&inner.argument);
                self.effect(&inner.argument, out);
            }
            Expression::LogicalExpression(logical) => {
                let left = self.expr(&logical.left, out);
                let mut steps = Vec::new();
                self.effect(&logical.right, &mut steps);
                let test = match logical.operator.as_str() {
                    "&&" => left.condition(),
                    "||" => not(left.operand()),
                    _ => is_missing(left.operand(), &at),
                };
                if !steps.is_empty() {
                    out.push(branch(test, steps, Vec::new(), &at));
                }
            }
            Expression::ConditionalExpression(conditional) => {
                let test = self.expr(&conditional.test, out);
                let (mut then, mut other) = (Vec::new(), Vec::new());
                self.effect(&conditional.consequent, &mut then);
                self.effect(&conditional.alternate, &mut other);
                out.push(branch(test.condition(), then, other, &at));
            }
            Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::Delete => {
                self.delete(&unary.argument, span, out);
            }
            Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::Void => {
                self.effect(&unary.argument, out);
            }
            Expression::CallExpression(call) => match self.assigned_members(call) {
                Some((target, properties)) => self.assign_members(target, &properties, out),
                None => {
                    self.check_dropped_call(call);
                    let value = self.call(call, Hint::Drop, out);
                    done(value, &at, out);
                }
            },
            Expression::ChainExpression(chain) => {
                if let ChainElement::CallExpression(call) = &chain.expression {
                    let value = self.optional_call(call, Hint::Drop, out);
                    done(value, &at, out);
                }
            }
            expr => {
                self.check_dropped(expr);
                let value = self.expr(expr, out);
                done(value, &at, out);
            }
        }
    }

    pub(crate) fn delete(&mut self, target: &'a Expression<'a>, span: Span, out: &mut Vec<Tree>) {
        let at = place(span);
        if let Some(member) = target.get_inner_expression().as_member_expression() {
            self.check_frozen(member.object(), span);
        }
        let (object, key) = match target.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                let object = self.expr(&member.object, out);
                let key = Value::text(member.property.name.as_str(), &place(member.property.span));
                (object, key)
            }
            Expression::ComputedMemberExpression(member) => {
                let mut values = self.exprs(&[&member.object, &member.expression], out);
                match (values.pop(), values.pop()) {
                    (Some(key), Some(object)) => (object, key),
                    _ => return,
                }
            }
            _ => {
                let help = "delete a member: `delete object.key`";
                return self.unsupported(span, "this `delete`", help);
            }
        };
        self.needs_member_atoms("memberDelete", span);
        let inputs = [("object", object.resolved()), ("key", key.resolved())];
        out.push(Tree::step("memberDelete", inputs, &at));
    }

    /// Returns the target and the properties of `Object.assign(target, { ... })` if the target is
    /// a variable or a named member and no key is computed.
    fn assigned_members(&self, call: &'a CallExpression<'a>) -> Option<Assigned<'a>> {
        let [target, sources @ ..] = &call.arguments[..] else {
            return None;
        };
        let target = target.as_expression()?;
        let has_name = matches!(
            target.get_inner_expression(),
            Expression::Identifier(_) | Expression::StaticMemberExpression(_)
        );
        if !has_name || !self.is_object_assign(call) {
            return None;
        }
        let mut properties = Vec::new();
        for source in sources {
            let Argument::ObjectExpression(object) = source else {
                return None;
            };
            for property in &object.properties {
                match property {
                    ObjectPropertyKind::ObjectProperty(property)
                        if !property.computed
                            && !property.method
                            && property.kind == PropertyKind::Init =>
                    {
                        properties.push(&**property);
                    }
                    _ => return None,
                }
            }
        }
        Some((target, properties))
    }

    /// Lowers `Object.assign(target, { key: value })` as a statement: it evaluates all values
    /// first.
    fn assign_members(
        &mut self,
        target: &'a Expression<'a>,
        properties: &[&'a ObjectProperty<'a>],
        out: &mut Vec<Tree>,
    ) {
        let object = self.expr(target, out);
        let object = self.named(object, out);
        let exprs: Vec<&Expression<'a>> = properties.iter().map(|one| &one.value).collect();
        let mut object = [object];
        let mut steps = Vec::new();
        let values = self.exprs(&exprs, &mut steps);
        self.keep(&mut object, &steps, out);
        out.append(&mut steps);
        let [object] = object;
        let is_one = values.len() == 1;
        let values: Vec<Value> = values
            .into_iter()
            .map(|value| match is_one || value.is_constant() {
                true => value,
                false => {
                    // Copies even a variable, because an earlier assignment may change it.
                    let at = value.place.clone();
                    let name = self.fresh();
                    out.push(set(&name, value.resolved(), &at));
                    Value::ident(&name, &at)
                }
            })
            .collect();
        for (property, value) in properties.iter().zip(values) {
            let Some(key) = self.key(&property.key, false, out) else {
                continue;
            };
            self.needs_member_atoms("memberSet", property.span);
            let target = Target::Member(object.clone(), key);
            out.push(store(target, value, &place(property.span)));
        }
    }

    /// True if a call is `Object.assign`.
    fn is_object_assign(&self, call: &'a CallExpression<'a>) -> bool {
        match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                member.property.name == "assign" && self.free_name(&member.object) == Some("Object")
            }
            _ => false,
        }
    }

    /// Refuses `Object.assign` whose target may have an alias: the lowered call makes a new
    /// object.
    pub(crate) fn check_assign(&mut self, call: &'a CallExpression<'a>) {
        let target = call.arguments.first().and_then(Argument::as_expression);
        let Some(target) = target else {
            return;
        };
        let is_new = match target.get_inner_expression() {
            Expression::ObjectExpression(_) => true,
            Expression::CallExpression(inner) => match &inner.callee {
                Expression::StaticMemberExpression(member) => {
                    self.free_name(&member.object) == Some("Object")
                }
                _ => false,
            },
            _ => false,
        };
        if !is_new {
            let help = "set its members, `target.y = 2`, or make a new object: \
                        `target = { ...target, y: 2 }`";
            self.unsupported(call.span, "`Object.assign` to this", help);
        }
    }

    /// Resolves a name to the variable to assign; refuses names that cannot be assigned.
    pub(crate) fn settable(&mut self, js: &'a str, span: Span) -> Option<String> {
        let Some(id) = self.lookup(js) else {
            self.unknown_target(js, span);
            return None;
        };
        let binding = self.bindings[id].clone();
        let is_outside = self.is_outside(js, id);
        let (message, help) = match binding.what {
            What::Variable if binding.is_const => {
                (format!("`{js}` is a constant"), "declare it with `let`")
            }
            What::Variable if !binding.is_ready => (
                format!("`{js}` is set before its declaration"),
                "declare it first",
            ),
            What::Variable if binding.owner != self.current => (
                format!("`{js}` belongs to another function, which this one cannot set"),
                "keep it in an object: `const state = { n: 0 }`, whose members functions may set, \
                 `state.n++`; or return the new value",
            ),
            What::Variable if is_outside => (
                format!("`{js}` is outside of steps whose variables are their own"),
                "return the value",
            ),
            What::Variable => return Some(binding.name),
            _ => (
                format!("`{js}` is no variable"),
                "give a variable another name",
            ),
        };
        self.deny(codes::BAD_BINDING, span, message, help);
        None
    }

    /// Refuses member assignments if the host has no atoms for them.
    pub(crate) fn needs_member_atoms(&mut self, op: &str, span: Span) {
        if self.ops.signature(op).is_none() {
            let help = "make a new object, `o = { ...o, [key]: value }`, or use methods of lists";
            self.unsupported(
                span,
                &format!("a member that is set, without the atom `{op}`,"),
                help,
            );
        }
    }

    fn target_place(
        &mut self,
        target: &'a SimpleAssignmentTarget<'a>,
        is_read: bool,
        out: &mut Vec<Tree>,
    ) -> Option<Target> {
        let span = target.span();
        let member = |this: &mut Self, values: Vec<Value>, out: &mut Vec<Tree>| {
            this.needs_member_atoms("memberSet", span);
            let mut values = values.into_iter();
            let (object, key) = (values.next()?, values.next()?);
            if !is_read {
                return Some(Target::Member(object, key));
            }
            let object = this.named(object, out);
            let key = match key.is_scalar() {
                true => key,
                false => this.named(key, out),
            };
            Some(Target::Member(object, key))
        };
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(id) => {
                let name = self.settable(id.name.as_str(), id.span)?;
                Some(Target::Variable(name))
            }
            SimpleAssignmentTarget::StaticMemberExpression(target) => {
                let name = target.property.name.as_str();
                self.check_frozen(&target.object, target.span);
                if name == "length" {
                    let help = "use `splice`: `items.splice(n)`";
                    self.unsupported(target.span, "setting `length`", help);
                }
                self.error_object(&target.object, name);
                let object = self.expr(&target.object, out);
                let key = Value::text(name, &place(target.property.span));
                member(self, vec![object, key], out)
            }
            SimpleAssignmentTarget::ComputedMemberExpression(target) => {
                self.check_frozen(&target.object, target.span);
                let values = self.exprs(&[&target.object, &target.expression], out);
                member(self, values, out)
            }
            other => {
                self.unsupported(other.span(), "this target", "set a variable or a member");
                None
            }
        }
    }

    /// Makes a target that these steps do not change.
    fn keep_target(&mut self, target: Target, steps: &[Tree], out: &mut Vec<Tree>) -> Target {
        match target {
            Target::Member(object, key) => {
                let mut parts = [object, key];
                self.keep(&mut parts, steps, out);
                let [object, key] = parts;
                Target::Member(object, key)
            }
            variable => variable,
        }
    }

    /// Lowers an assignment and returns its value if that is used.
    pub(crate) fn assignment(
        &mut self,
        assignment: &'a AssignmentExpression<'a>,
        is_wanted: bool,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(assignment.span);
        self.check_kept(assignment);
        self.check_sign(assignment);
        self.check_itself(assignment);
        if !is_wanted && self.emptied(assignment, out) {
            return None;
        }
        let Some(target) = assignment.left.as_simple_assignment_target() else {
            if is_wanted {
                let help = "make it a statement of its own";
                self.unsupported(assignment.span, "the value of this assignment", help);
            }
            self.pattern_assignment(assignment, out);
            return None;
        };
        let operator = assignment.operator;
        let is_plain = operator == AssignmentOperator::Assign;
        let adds = matches!(
            operator,
            AssignmentOperator::Addition | AssignmentOperator::Subtraction
        );
        if adds && matches!(assignment.right, Expression::NumericLiteral(_)) {
            self.check_tally(assignment.left.span(), assignment.span);
        }
        let target = self.target_place(target, !is_plain || is_wanted, out)?;
        let right = &assignment.right;
        if is_plain {
            return match target {
                Target::Variable(name) => {
                    if let AssignmentTarget::AssignmentTargetIdentifier(id) = &assignment.left {
                        self.check_date(id.name.as_str(), right);
                        if let Some(error) = self.kept_error(id.name.as_str(), right, out) {
                            out.push(set(&name, error.resolved(), &at));
                            return Some(Value::ident(&name, &at));
                        }
                    }
                    self.assign(right, &name, Hint::Set(&name), &at, out);
                    Some(Value::ident(&name, &at))
                }
                Target::Member(object, key) => {
                    let mut before = [object, key];
                    let mut steps = Vec::new();
                    let value = self.expr(right, &mut steps);
                    self.keep(&mut before, &steps, out);
                    out.append(&mut steps);
                    let [object, key] = before;
                    let target = Target::Member(object, key);
                    out.push(store(target.clone(), value, &at));
                    Some(read(&target, &at))
                }
            };
        }
        let old = read(&target, &at);
        if let Some(logical) = operator.to_logical_operator() {
            let test = match logical.as_str() {
                "&&" => old.operand(),
                "||" => not(old.operand()),
                _ => is_missing(old.operand(), &at),
            };
            let mut steps = Vec::new();
            let error = match &assignment.left {
                AssignmentTarget::AssignmentTargetIdentifier(id) => {
                    self.kept_error(id.name.as_str(), right, &mut steps)
                }
                _ => None,
            };
            let value = match error {
                Some(error) => error,
                None => self.expr(right, &mut steps),
            };
            let target = self.keep_target(target, &steps, out);
            steps.push(store(target.clone(), value, &at));
            out.push(branch(test, steps, Vec::new(), &at));
            return Some(read(&target, &at));
        }
        let binary = operator.to_binary_operator()?;
        let op = binary.as_str();
        let mut old = [old];
        let mut steps = Vec::new();
        let value = self.expr(right, &mut steps);
        self.keep(&mut old, &steps, out);
        let target = self.keep_target(target, &steps, out);
        out.append(&mut steps);
        let [mut old] = old;
        let mut value = value;
        if op != "+" {
            value = self.time(right, value, out);
            if self.has_dates {
                old = crate::dates::either(old);
            }
        }
        out.push(store(target.clone(), combine(op, old, value, &at), &at));
        Some(read(&target, &at))
    }

    /// Lowers `[a, b] = [b, a]`: it evaluates all values first.
    fn pattern_assignment(
        &mut self,
        assignment: &'a AssignmentExpression<'a>,
        out: &mut Vec<Tree>,
    ) {
        let at = place(assignment.span);
        if let AssignmentTarget::ObjectAssignmentTarget(object) = &assignment.left {
            let value = self.expr(&assignment.right, out);
            return self.object_assignment(object, value, out);
        }
        let AssignmentTarget::ArrayAssignmentTarget(list) = &assignment.left else {
            let help = "set the variables one by one";
            return self.unsupported(assignment.span, "this assignment to a pattern", help);
        };
        if let Some(rest) = &list.rest {
            self.unsupported(rest.span, "`...` in an assignment", "use `slice`");
        }
        let mut value = self.expr(&assignment.right, out);
        if self.sort_of(&assignment.right) != Iterable::List {
            value = self.items_of(value);
        }
        let name = self.fresh();
        out.push(set(&name, value.resolved(), &at));
        for (index, element) in list.elements.iter().enumerate() {
            let Some(element) = element else {
                continue;
            };
            let list = Value::ident(&name, &at);
            let value = member_of(list, Value::number(index as f64, &at), &at);
            self.assign_part(element, value, &at, out);
        }
    }

    /// Assigns a value to a part of a pattern.
    pub(crate) fn assign_part(
        &mut self,
        part: &'a AssignmentTargetMaybeDefault<'a>,
        value: Value,
        at: &Place,
        out: &mut Vec<Tree>,
    ) {
        let simple = match part {
            AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(_) => None,
            part => part.as_assignment_target(),
        };
        let simple = simple.and_then(AssignmentTarget::as_simple_assignment_target);
        let Some(simple) = simple else {
            let help = "set the variables one by one";
            return self.unsupported(part.span(), "this part of an assignment", help);
        };
        if let Some(target) = self.target_place(simple, false, out) {
            out.push(store(target, value, at));
        }
    }

    /// Lowers `x++` and `x--` and returns the value if that is used.
    pub(crate) fn update(
        &mut self,
        update: &'a UpdateExpression<'a>,
        is_wanted: bool,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(update.span);
        self.check_tally(update.argument.span(), update.span);
        let target = self.target_place(&update.argument, true, out)?;
        let mut old = read(&target, &at);
        if is_wanted && !update.prefix {
            let name = self.fresh();
            out.push(set(&name, number_of(old).resolved(), &at));
            old = Value::ident(&name, &at);
        }
        // `-` converts both operands to numbers; `+` would join texts.
        let by = match update.operator {
            UpdateOperator::Increment => -1.0,
            UpdateOperator::Decrement => 1.0,
        };
        let value = combine("-", old.clone(), Value::number(by, &at), &at);
        out.push(store(target.clone(), value, &at));
        Some(match update.prefix {
            true => read(&target, &at),
            false => old,
        })
    }
}

fn read(target: &Target, at: &Place) -> Value {
    match target {
        Target::Variable(name) => Value::ident(name, at),
        Target::Member(object, key) => member_of(object.clone(), key.clone(), at),
    }
}

fn store(target: Target, value: Value, at: &Place) -> Tree {
    match target {
        Target::Variable(name) => set(&name, value.resolved(), at),
        Target::Member(object, key) => {
            let inputs = [
                ("object", object.resolved()),
                ("key", key.resolved()),
                ("value", value.resolved()),
            ];
            Tree::step("memberSet", inputs, at)
        }
    }
}

fn combine(op: &'static str, left: Value, right: Value, at: &Place) -> Value {
    if let Some(operator) = crate::bits::by_name(op) {
        return Value::node(crate::bits::bits(operator, left, right, at));
    }
    Value::node(Tree::binary(op, left.operand(), right.operand(), at))
}

/// Adds a step for an unused value if its evaluation has side effects.
pub(crate) fn done(value: Value, at: &Place, out: &mut Vec<Tree>) {
    let mut acts = false;
    let tree = value.resolved();
    tree.walk(&mut |tree| acts |= matches!(tree.tag(), Some("call" | "methodCall")));
    if acts {
        out.push(set("_", tree, at));
    }
}
