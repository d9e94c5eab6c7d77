//! Refuses closures that would become data, and calls of what may be no function.

use super::flow::{DATA, Made, What};
use super::model::{Calls, Declared, Kind, Model, Sink, Used};
use super::plan::Plan;
use hashbrown::HashSet;
use oxc_span::{GetSpan, Span};

const AS_DATA: &str = "a function is no data: return what it gives, or keep it out of the value: \
                       `const { run, ...data } = x`";

/// Methods that JavaScript calls to convert an object.
const CONVERTS: [&str; 2] = ["toString", "valueOf"];

impl Model<'_> {
    pub(super) fn check(&mut self, plan: &Plan) {
        self.check_sinks(plan);
        self.check_calls(plan);
        for fun in 0..self.funs.len() {
            for symbol in plan.captures[fun].clone() {
                let symbol = &self.symbols[symbol];
                let at = symbol.at;
                match symbol.declared {
                    Declared::Caught => {
                        let help = "keep the text in a constant, and read that: `const message = \
                                    e.message`";
                        self.refuse(at, "an error that a function reads later", help);
                    }
                    _ if self.funs[fun].kind != Kind::Plain => {
                        let help = "hand it to the constructor, and keep it in a field";
                        let name = format!("`{}` in a class", symbol.name);
                        self.refuse(at, name, help);
                    }
                    _ => {}
                }
            }
        }
        let shared: Vec<Span> = self
            .classes
            .iter()
            .filter(|class| class.is_nested && class.node.body.body.iter().any(|element| {
                matches!(element, oxc_ast::ast::ClassElement::PropertyDefinition(property) if property.r#static)
            }))
            .map(|class| class.whole)
            .collect();
        for at in shared {
            self.refuse(
                at,
                "static fields of a class in a function",
                "declare the class at the top",
            );
        }
    }

    pub(super) fn check_sinks(&mut self, plan: &Plan) {
        let mut sinks = self.sinks.clone();
        for id in self.unknown_args.clone() {
            if self.is_own(id) {
                continue;
            }
            let site = &self.sites[id];
            for argument in site.args {
                let at = argument.span();
                if let Some(node) = self.nodes.get(&(at.start, at.end)) {
                    sinks.push((*node, at, Sink::Operand));
                }
            }
        }
        let stored: HashSet<usize> = self.flow.into_data.iter().copied().collect();
        for (span, node) in &self.nodes {
            if stored.contains(node) {
                sinks.push((*node, Span::new(span.0, span.1), Sink::Atom));
            }
        }
        sinks.sort_by_key(|sink| (sink.1.start, sink.1.end));
        let hidden: HashSet<usize> = (0..self.classes.len())
            .filter(|class| {
                let is_other = self.flow.classes[*class].methods.contains_key("toJSON");
                is_other || self.classes[*class].has_private || plan.tagged.contains(class)
            })
            .collect();
        let is_hidden = |class: usize| hidden.contains(&class);
        for (node, at, sink) in sinks {
            let found = match sink {
                Sink::Returned | Sink::Json | Sink::Atom | Sink::Thrown | Sink::Copied => {
                    self.flow.reaches(node, &is_hidden)
                }
                Sink::Text | Sink::Operand | Sink::Keys => {
                    let mut sites = self.flow.sets[node].iter().copied();
                    sites.find(|site| match &self.flow.values[*site] {
                        What::Function(_) | What::Class(_) => true,
                        What::Object(object) => match object.made {
                            Made::Instance(class) if sink == Sink::Keys => is_hidden(class),
                            Made::Instance(class) => CONVERTS
                                .iter()
                                .any(|name| self.flow.classes[class].methods.contains_key(*name)),
                            _ => CONVERTS.iter().any(|name| {
                                let member = object.fields.get(*name);
                                member.is_some_and(|node| !self.flow.functions_in(*node).is_empty())
                            }),
                        },
                        _ => false,
                    })
                }
            };
            let Some(found) = found else {
                continue;
            };
            let is_function = matches!(self.flow.values[found], What::Function(_) | What::Class(_));
            if let (What::Class(_), Sink::Keys) = (&self.flow.values[found], sink) {
                continue;
            }
            let message = match (is_function, sink) {
                (false, Sink::Text | Sink::Operand) => {
                    "an object that a method converts".to_owned()
                }
                (false, _) => "an instance with parts that are no data".to_owned(),
                (true, Sink::Returned) => "a function in the agent's result".to_owned(),
                (true, Sink::Json) => "a function in `JSON.stringify`, which drops it".to_owned(),
                (true, Sink::Atom) => "a function in data for an atom, or from outside".to_owned(),
                (true, Sink::Copied) => {
                    "a function in `structuredClone`, which refuses it".to_owned()
                }
                (true, Sink::Thrown) => "a function in what is thrown".to_owned(),
                (true, Sink::Text) => "a function as a text".to_owned(),
                (true, Sink::Operand) => "a function as an operand".to_owned(),
                (true, Sink::Keys) => "a function as an object".to_owned(),
            };
            let help = match is_function {
                true => AS_DATA,
                false if matches!(sink, Sink::Text | Sink::Operand) => {
                    "call the method: `x.toString()`"
                }
                false => "return its members: `{ total: cart.total }`",
            };
            self.refuse(at, message, help);
        }
    }

    pub(super) fn check_calls(&mut self, plan: &Plan) {
        let mut refused = Vec::new();
        for id in 0..self.sites.len() {
            let site = &self.sites[id];
            let candidates = self.candidates(plan, id);
            let mut at = site.span;
            let mut node = self.callee_node(id);
            let classes = self.classes_of(id);
            if !classes.is_empty() {
                node = site.target;
            } else if candidates.is_empty() {
                match self.slot_value(plan, id) {
                    Some((expr, slot)) => {
                        (at, node) = (expr.span(), slot);
                        let uses_this = |fun: &usize| self.takes_this(*fun);
                        if self.flow.functions_in(slot).iter().any(uses_this) {
                            refused.push((
                                at,
                                "a method as a callback",
                                "write `(x) => object.method(x)`",
                            ));
                        }
                    }
                    None => continue,
                }
            } else {
                let uses_this =
                    candidates.iter().any(|fun| self.takes_this(*fun)) && !self.is_member_call(id);
                if uses_this && !self.has_simple_receiver(id) {
                    refused.push((
                        at,
                        "a function with `this` that is called without its object",
                        "call it as a method of a name: `object.method(x)`",
                    ));
                }
            }
            let is_mixed = self.flow.has(node, DATA)
                || (classes.is_empty() && !self.flow.instances_in(node).is_empty())
                || self.flow.sets[node].iter().any(|site| matches!(&self.flow.values[*site], What::Object(object) if object.made == Made::Object));
            if is_mixed {
                let help = "keep functions apart from data: in an object that holds functions only";
                refused.push((at, "a call of what may be data", help));
            }
            let lacks = |class: &usize| !self.flow.classes[*class].methods.contains_key(site.name);
            if classes.iter().any(lacks) || (!classes.is_empty() && self.flow.has_objects(node)) {
                refused.push((
                    at,
                    "a method that not all of these objects have",
                    "test the object first, and keep both apart",
                ));
            }
        }
        for test in &self.type_tests {
            let functions = self.flow.functions_in(test.node);
            let is_mixed = self.flow.has(test.node, DATA) || self.flow.has_objects(test.node);
            let is_only = self.flow.sets[test.node].len() == functions.len();
            if !functions.is_empty() && (is_mixed || !is_only && !Self::is_simple(test.argument)) {
                let help = "keep functions apart from data, and test a name: `typeof f`";
                refused.push((
                    test.span,
                    "the type of what may be data or a function",
                    help,
                ));
            }
        }
        for (left, right, at) in &self.equals {
            let right = self.flow.functions_in(*right);
            let both = self.flow.functions_in(*left);
            let both = both.iter().filter(|fun| right.contains(fun));
            let is_new = |fun: &usize| match self.funs[*fun].symbol {
                Some(symbol) => self.symbols[symbol].is_top || !self.is_constant(*fun),
                None => false,
            };
            if both.into_iter().any(is_new) {
                let help = "compare names or numbers of the functions";
                refused.push((
                    *at,
                    "a comparison of functions that are declared by name",
                    help,
                ));
            }
        }
        for access in &self.accesses {
            let classes = self.flow.instances_in(access.target);
            let has = |class: &usize| self.flow.classes[*class].methods.contains_key(access.name);
            if classes.iter().any(has) {
                let help = "write a function that calls it: `(x) => object.method(x)`";
                refused.push((access.object, "a method as a value", help));
            }
            let getter =
                |class: &usize| self.flow.classes[*class].getters.contains_key(access.name);
            let is_mixed = self.flow.has_objects(access.target)
                || self.flow.has(access.target, DATA)
                || access.span.is_empty()
                || !classes.iter().all(getter);
            if classes.iter().any(getter) && is_mixed {
                let help = "read it of a variable that holds instances of the class only";
                refused.push((
                    access.object,
                    "a getter of what may be another object",
                    help,
                ));
            }
        }
        for access in &self.accesses {
            if !self.flow.functions_in(access.target).is_empty() {
                let help = "call it, and keep what belongs to it in an object";
                refused.push((access.object, "a member of a function", help));
            }
        }
        for store in &self.stores {
            if !self.flow.functions_in(store.target).is_empty() {
                let help = "keep what belongs to it in a variable or an object";
                refused.push((store.member, "a member of a function", help));
            }
        }
        for site in &self.sites {
            if site.calls == Calls::Method && !self.flow.functions_in(site.target).is_empty() {
                let help = "call the function by its name: `f(x)`, `f(...list)`";
                refused.push((site.span, "a method of a function", help));
            }
        }
        for store in &self.stores {
            let classes = self.flow.instances_in(store.target);
            let setter = |class: &usize| {
                let members = &self.flow.classes[*class];
                members.setters.contains_key(store.name) || members.getters.contains_key(store.name)
            };
            let can = classes.len() == 1
                && store.is_plain
                && !self.flow.has_objects(store.target)
                && self.flow.classes[classes[0]]
                    .setters
                    .contains_key(store.name);
            if classes.iter().any(setter) && !can {
                let help = "write a method that sets it, and call that";
                refused.push((store.member, "this assignment to a getter or setter", help));
            }
        }
        for one in &self.uses {
            if let Used::Symbol(symbol) = one.of
                && let Declared::Class(_) = self.symbols[symbol].declared
                && !self.owners.contains(&one.span.start)
            {
                let help = "make an instance with `new` where the class is known";
                refused.push((one.span, "a class as a value", help));
            }
        }
        let constructors: Vec<usize> = self
            .classes
            .iter()
            .filter_map(|class| class.constructor)
            .collect();
        for (at, fun, has_value) in &self.returns {
            if *has_value && constructors.contains(fun) {
                refused.push((
                    *at,
                    "a constructor that returns a value",
                    "leave the value out",
                ));
            }
        }
        for (at, message, help) in refused {
            self.refuse(at, message, help);
        }
    }
}
