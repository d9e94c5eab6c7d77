//! Decides which functions become values, which move to the top of the source, and which variables
//! become shared objects.

use super::flow::{DATA, Made, PLAIN, What};
use super::model::{Calls, Declared, Kind, Model, Place, Sink, Use, Used};
use crate::atom::code_of;
use hashbrown::HashSet;
use oxc_ast::ast::{BindingPattern, Expression};
use oxc_span::{GetSpan, Span};

/// Maximum work of one decision: functions times references.
const MAX_WORK: usize = 20_000_000;

const AS_DATA: &str = "a function is no data: return what it gives, or keep it out of the value: \
                       `const { run, ...data } = x`";

#[derive(Default)]
pub(crate) struct Plan {
    /// Functions that are values somewhere.
    pub(crate) values: HashSet<usize>,
    /// Functions whose code moves to the top.
    pub(crate) moved: HashSet<usize>,
    /// Variables that each moved function takes as parameters, in order.
    pub(crate) captures: Vec<Vec<usize>>,
    /// Parameters that stand for the function that a call passes, by symbol.
    pub(crate) fixed: HashSet<usize>,
    /// Variables that become a shared object.
    pub(crate) cells: HashSet<usize>,
    /// Variables of loop heads of which each turn has a copy.
    pub(crate) copies: HashSet<usize>,
    /// Cells that functions read which are values before the declaration is complete.
    pub(crate) late: HashSet<usize>,
    /// Classes whose instances carry their class.
    pub(crate) tagged: HashSet<usize>,
}

impl<'a> Model<'a> {
    /// The function that a use names or is.
    pub(crate) fn function_of(&self, used: Used) -> Option<usize> {
        match used {
            Used::Literal(fun) => Some(fun),
            Used::Symbol(symbol) => match self.symbols[symbol].declared {
                Declared::Function(fun) if fun != 0 => Some(fun),
                _ => None,
            },
        }
    }

    /// The function that a call by name calls.
    pub(crate) fn called(&self, site: usize) -> Option<usize> {
        match self.sites[site].calls {
            Calls::Name(symbol) => self.function_of(Used::Symbol(symbol)),
            _ => None,
        }
    }

    /// The variable of a parameter that is a plain name.
    pub(crate) fn param_symbol(&self, fun: usize, index: usize) -> Option<usize> {
        let params = self.funs[fun].code?.params();
        match &params.items.get(index)?.pattern {
            BindingPattern::BindingIdentifier(id) => self.declared.get(&id.span.start).copied(),
            _ => None,
        }
    }

    /// True if a function in this position stays a function for the compiler.
    pub(crate) fn is_known_place(&self, plan: &Plan, place: Place) -> bool {
        match place {
            Place::Callee | Place::Definition | Place::Atom => true,
            Place::Value => false,
            Place::Argument(site, index) => {
                let is_slot = self.sites[site].slot.is_some_and(|slot| slot.0 == index);
                let is_fixed = || {
                    let param = self.called(site).and_then(|fun| self.param_symbol(fun, index));
                    param.is_some_and(|param| plan.fixed.contains(&param))
                };
                (is_slot && !self.is_own(site)) || is_fixed()
            }
        }
    }

    pub(crate) fn plan(&mut self) -> Option<Plan> {
        let mut plan = Plan::default();
        let work = self.funs.len().saturating_mul(self.refs.len() + self.uses.len() + 1);
        let sets_constant = |one: &super::model::Ref| one.sets && self.symbols[one.symbol].is_const;
        if work > MAX_WORK || self.refs.iter().any(sets_constant) {
            return None;
        }
        for (id, symbol) in self.symbols.iter().enumerate() {
            if let Declared::Param(fun) = symbol.declared
                && self.funs[fun].kind == Kind::Plain
                && !self.flow.functions_in(symbol.node).is_empty()
                && self.index_of(fun, id).is_some()
            {
                plan.fixed.insert(id);
            }
        }
        loop {
            plan.values = self.values(&plan);
            plan.moved = self.moved(&plan);
            let fixed: Vec<usize> = plan.fixed.iter().copied().collect();
            let lost: Vec<usize> = fixed
                .into_iter()
                .filter(|param| !self.is_fixed(&plan, *param))
                .collect();
            if lost.is_empty() {
                break;
            }
            for param in lost {
                plan.fixed.remove(&param);
            }
        }
        plan.captures = self.captured(&plan);
        self.find_cells(&mut plan);
        self.find_late(&mut plan);
        self.find_tagged(&mut plan);
        self.check(&plan);
        Some(plan)
    }

    /// Position of a parameter that is a plain name.
    fn index_of(&self, fun: usize, symbol: usize) -> Option<usize> {
        let params = self.funs[fun].code?.params();
        (0..params.items.len()).find(|index| self.param_symbol(fun, *index) == Some(symbol))
    }

    fn values(&self, plan: &Plan) -> HashSet<usize> {
        let value = |one: &Use| {
            let fun = self.function_of(one.of)?;
            (!self.is_known_place(plan, one.place)).then_some(fun)
        };
        self.uses.iter().filter_map(value).collect()
    }

    /// True if a function is declared at the top under a name.
    pub(crate) fn is_top(&self, fun: usize) -> bool {
        let symbol = self.funs[fun].symbol;
        symbol.is_some_and(|symbol| self.symbols[symbol].is_top)
    }

    fn moved(&self, plan: &Plan) -> HashSet<usize> {
        let mut moved: HashSet<usize> = plan.values.iter().copied().collect();
        moved.retain(|fun| !self.is_top(*fun));
        moved.extend((0..self.funs.len()).filter(|fun| self.funs[*fun].kind != Kind::Plain));
        loop {
            let mut more = Vec::new();
            for one in &self.refs {
                let Declared::Function(fun) = self.symbols[one.symbol].declared else {
                    continue;
                };
                if fun == 0 || self.is_top(fun) || moved.contains(&fun) {
                    continue;
                }
                if self.leaves(&moved, one.fun, self.funs[fun].parent) {
                    more.push(fun);
                }
            }
            if more.is_empty() {
                return moved;
            }
            moved.extend(more);
        }
    }

    /// True if code in a function moves out of the function `owner`.
    pub(crate) fn leaves(&self, moved: &HashSet<usize>, mut fun: usize, owner: usize) -> bool {
        while fun != 0 {
            if moved.contains(&fun) && !self.is_within(owner, fun) {
                return true;
            }
            fun = self.funs[fun].parent;
        }
        false
    }

    fn is_fixed(&self, plan: &Plan, param: usize) -> bool {
        let Declared::Param(fun) = self.symbols[param].declared else {
            return false;
        };
        let Some(index) = self.index_of(fun, param) else {
            return false;
        };
        if plan.values.contains(&fun) || self.funs[fun].symbol.is_none() {
            return false;
        }
        let own = |one: &&super::model::Ref| one.symbol == param;
        let is_bad = |one: &super::model::Ref| {
            one.sets || self.leaves(&plan.moved, one.fun, fun) || one.is_short
        };
        if self.refs.iter().filter(own).any(is_bad) {
            return false;
        }
        let is_bad = |one: &Use| {
            one.of == Used::Symbol(param) && !self.is_known_place(plan, one.place)
        };
        if self.uses.iter().any(is_bad) {
            return false;
        }
        let mut calls = (0..self.sites.len()).filter(|site| self.called(*site) == Some(fun));
        calls.all(|site| {
            let args = self.sites[site].args;
            let passed = args.get(..=index).unwrap_or_default();
            passed.len() == index + 1
                && passed.iter().all(|argument| argument.as_expression().is_some())
                && passed.last().and_then(|last| last.as_expression()).is_some_and(|last| {
                    self.is_function_name(plan, last)
                })
        })
    }

    /// True for a function literal, or a name that stands for one function.
    pub(crate) fn is_function_name(&self, plan: &Plan, expr: &'a Expression<'a>) -> bool {
        if code_of(expr).is_some() {
            return true;
        }
        let Expression::Identifier(id) = expr.get_inner_expression() else {
            return false;
        };
        let one = self.refs.iter().find(|one| one.at == id.span);
        one.is_some_and(|one| {
            let is_function = self.function_of(Used::Symbol(one.symbol)).is_some();
            is_function || plan.fixed.contains(&one.symbol)
        })
    }

    /// Variables that each moved function needs from outside.
    fn captured(&self, plan: &Plan) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new(); self.funs.len()];
        let mut moved: Vec<usize> = plan.moved.iter().copied().collect();
        moved.sort_unstable();
        loop {
            let mut changed = false;
            for fun in &moved {
                for one in self.refs.iter().filter(|one| self.is_within(one.fun, *fun)) {
                    let symbol = &self.symbols[one.symbol];
                    let needed = match symbol.declared {
                        Declared::Function(other) if plan.moved.contains(&other) => {
                            all[other].clone()
                        }
                        Declared::Function(_) | Declared::Class(_) => Vec::new(),
                        _ if symbol.is_top || self.this_symbols.get(fun) == Some(&one.symbol) => {
                            Vec::new()
                        }
                        _ => vec![one.symbol],
                    };
                    for symbol in needed {
                        let owner = self.symbols[symbol].owner;
                        if !self.is_within(owner, *fun) && !all[*fun].contains(&symbol) {
                            all[*fun].push(symbol);
                            changed = true;
                        }
                    }
                }
            }
            if !changed {
                return all;
            }
        }
    }

    fn find_cells(&mut self, plan: &mut Plan) {
        let count = self.symbols.len();
        let mut is_set = vec![false; count];
        let mut is_set_within = vec![false; count];
        for one in self.refs.iter().filter(|one| one.sets) {
            let symbol = &self.symbols[one.symbol];
            is_set[one.symbol] = true;
            is_set_within[one.symbol] |= self.home(one.fun) != self.home(symbol.owner);
        }
        let mut is_captured = vec![false; count];
        for symbol in plan.captures.iter().flatten() {
            is_captured[*symbol] = true;
        }
        let mut refused = Vec::new();
        for id in 0..count {
            if !is_set_within[id] && !(is_captured[id] && is_set[id]) {
                continue;
            }
            let symbol = &self.symbols[id];
            match symbol.declared {
                Declared::Head(body) if is_captured[id] => {
                    let in_body = |one: &&super::model::Ref| {
                        one.symbol == id && one.at.start >= body.start && one.at.end <= body.end
                    };
                    let others = self.refs.iter().filter(|one| one.symbol == id && !in_body(one));
                    let is_bad = self.refs.iter().filter(in_body).any(|one| one.sets)
                        || others.into_iter().any(|one| self.home(one.fun) != self.home(symbol.owner));
                    match is_bad {
                        true => refused.push(symbol.at),
                        false => {
                            plan.copies.insert(id);
                        }
                    }
                }
                Declared::Function(_) | Declared::Class(_) | Declared::Caught | Declared::Arguments => {}
                _ => {
                    plan.cells.insert(id);
                }
            }
        }
        for at in refused {
            let help = "set a variable that is declared within the loop";
            self.refuse(at, "a loop's variable that the loop's body sets, and functions read", help);
        }
    }

    /// Finds variables that a function value needs before their declaration is complete.
    fn find_late(&self, plan: &mut Plan) {
        for one in &self.uses {
            let Some(fun) = self.function_of(one.of).filter(|fun| plan.moved.contains(fun)) else {
                continue;
            };
            let is_value = plan.values.contains(&fun) && one.place == Place::Definition;
            if !is_value && self.is_known_place(plan, one.place) {
                continue;
            }
            for id in &plan.captures[fun] {
                let symbol = &self.symbols[*id];
                let Declared::Declarator { init, end, start } = symbol.declared else {
                    continue;
                };
                let done = init.map_or(end, |init| init.end);
                let in_init = one.span.start >= symbol.at.start;
                let is_here = self.home(one.fun) == self.home(symbol.owner);
                let can = start.is_some() && (symbol.is_outermost || in_init);
                if one.span.start < done && is_here && can {
                    plan.late.insert(*id);
                    plan.cells.insert(*id);
                }
            }
        }
    }

    /// Finds classes whose instances meet those of others at a call.
    fn find_tagged(&self, plan: &mut Plan) {
        for site in 0..self.sites.len() {
            let classes = self.classes_of(site);
            if classes.len() > 1 {
                plan.tagged.extend(classes);
            }
        }
        for access in &self.accesses {
            let classes = self.flow.instances_in(access.target);
            let has = |class: &usize| self.flow.classes[*class].getters.contains_key(access.name);
            if classes.len() > 1 && classes.iter().any(has) {
                plan.tagged.extend(classes);
            }
        }
        for test in &self.instance_tests {
            let classes = self.flow.instances_in(test.node);
            if classes.len() > 1 && classes.contains(&test.class) {
                plan.tagged.extend(classes);
            }
        }
    }

    /// Classes whose method a call calls.
    pub(crate) fn classes_of(&self, site: usize) -> Vec<usize> {
        let site = &self.sites[site];
        if site.calls != Calls::Method {
            return Vec::new();
        }
        let mut classes = self.flow.instances_in(site.target);
        let has = |class: &usize| self.flow.classes[*class].methods.contains_key(site.name);
        match classes.iter().any(has) {
            true => classes,
            false => {
                classes.clear();
                classes
            }
        }
    }

    /// Functions that a call may call by a value, if it is such a call.
    pub(crate) fn candidates(&self, plan: &Plan, id: usize) -> Vec<usize> {
        let site = &self.sites[id];
        match site.calls {
            Calls::Name(symbol) => {
                let is_known = self.function_of(Used::Symbol(symbol)).is_some();
                match is_known || plan.fixed.contains(&symbol) {
                    true => Vec::new(),
                    false => self.flow.functions_in(site.target),
                }
            }
            Calls::Method => match (site.member, self.classes_of(id).is_empty()) {
                (Some(member), true) if self.statics_of(id).is_none() => {
                    self.flow.functions_in(member)
                }
                _ => Vec::new(),
            },
            Calls::Other => {
                let callee = site.call.map(|call| &call.callee);
                match callee.is_some_and(|callee| code_of(callee).is_some()) {
                    true => Vec::new(),
                    false => self.flow.functions_in(site.target),
                }
            }
            _ => Vec::new(),
        }
    }

    /// True if a call calls a variable or member that never holds a function.
    pub(crate) fn calls_nothing(&self, plan: &Plan, id: usize) -> bool {
        let site = &self.sites[id];
        let only = |node: usize| {
            let mut sites = self.flow.sets[node].iter();
            sites.all(|site| *site == PLAIN)
        };
        match site.calls {
            Calls::Name(symbol) => {
                let is_variable = !matches!(
                    self.symbols[symbol].declared,
                    Declared::Function(_) | Declared::Class(_)
                );
                is_variable && !plan.fixed.contains(&symbol) && only(site.target)
            }
            Calls::Method => {
                let mut sites = self.flow.sets[site.target].iter();
                let is_object = !self.flow.sets[site.target].is_empty()
                    && sites.all(|site| matches!(&self.flow.values[*site],
                        What::Object(object) if object.made == Made::Object));
                is_object && site.member.is_some_and(only)
            }
            _ => false,
        }
    }

    /// The static function that a call calls.
    pub(crate) fn statics_of(&self, id: usize) -> Option<usize> {
        let site = &self.sites[id];
        let values = &self.flow.sets[site.target];
        let mut found = values.iter().filter_map(|value| match self.flow.values[*value] {
            What::Class(class) => self.flow.classes[class].statics.get(site.name).copied(),
            _ => None,
        });
        (site.calls == Calls::Method).then(|| found.next()).flatten()
    }

    /// The node of the value that a call by value calls.
    pub(crate) fn callee_node(&self, id: usize) -> usize {
        let site = &self.sites[id];
        site.member.unwrap_or(site.target)
    }

    /// True if the source has nothing for which closures are needed.
    pub(crate) fn is_plain(&self, plan: &Plan) -> bool {
        plan.values.is_empty() && plan.cells.is_empty() && self.classes.is_empty()
    }

    fn check(&mut self, plan: &Plan) {
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
                    Declared::Arguments => {
                        let help = "write `function agent({ a, b })`";
                        self.refuse(at, "the arguments as one value in a function", help);
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
            self.refuse(at, "static fields of a class in a function", "declare the class at the top");
        }
    }

    fn check_sinks(&mut self, plan: &Plan) {
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
            .filter(|class| self.classes[*class].has_private || plan.tagged.contains(class))
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
                            Made::Instance(class) => sink == Sink::Keys && is_hidden(class),
                            _ => false,
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
                (false, _) => "an instance with parts that are no data".to_owned(),
                (true, Sink::Returned) => "a function in the agent's result".to_owned(),
                (true, Sink::Json) => "a function in `JSON.stringify`, which drops it".to_owned(),
                (true, Sink::Atom) => "a function in data for an atom, or from outside".to_owned(),
                (true, Sink::Copied) => "a function in `structuredClone`, which refuses it".to_owned(),
                (true, Sink::Thrown) => "a function in what is thrown".to_owned(),
                (true, Sink::Text) => "a function as a text".to_owned(),
                (true, Sink::Operand) => "a function as an operand".to_owned(),
                (true, Sink::Keys) => "a function as an object".to_owned(),
            };
            let help = match is_function {
                true => AS_DATA,
                false => "return its members: `{ total: cart.total }`",
            };
            self.refuse(at, message, help);
        }
    }

    fn check_calls(&mut self, plan: &Plan) {
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
                            refused.push((at, "a method as a callback", "write `(x) => object.method(x)`"));
                        }
                    }
                    None => continue,
                }
            } else {
                let uses_this = candidates.iter().any(|fun| self.takes_this(*fun));
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
                refused.push((at, "a method that not all of these objects have", "test the object first, and keep both apart"));
            }
        }
        for test in &self.type_tests {
            let functions = self.flow.functions_in(test.node);
            let is_mixed = self.flow.has(test.node, DATA) || self.flow.has_objects(test.node);
            let is_only = self.flow.sets[test.node].len() == functions.len();
            if !functions.is_empty() && (is_mixed || !is_only && !Self::is_simple(test.argument)) {
                let help = "keep functions apart from data, and test a name: `typeof f`";
                refused.push((test.span, "the type of what may be data or a function", help));
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
                refused.push((*at, "a comparison of functions that are declared by name", help));
            }
        }
        for access in &self.accesses {
            let classes = self.flow.instances_in(access.target);
            let has = |class: &usize| self.flow.classes[*class].methods.contains_key(access.name);
            if classes.iter().any(has) {
                let help = "write a function that calls it: `(x) => object.method(x)`";
                refused.push((access.object, "a method as a value", help));
            }
            let getter = |class: &usize| self.flow.classes[*class].getters.contains_key(access.name);
            let is_mixed = self.flow.has_objects(access.target)
                || self.flow.has(access.target, DATA)
                || access.span.is_empty()
                || !classes.iter().all(getter);
            if classes.iter().any(getter) && is_mixed {
                let help = "read it of a variable that holds instances of the class only";
                refused.push((access.object, "a getter of what may be another object", help));
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
                && self.flow.classes[classes[0]].setters.contains_key(store.name);
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
        let constructors: Vec<usize> = self.classes.iter().filter_map(|class| class.constructor).collect();
        for (at, fun, has_value) in &self.returns {
            if *has_value && constructors.contains(fun) {
                refused.push((*at, "a constructor that returns a value", "leave the value out"));
            }
        }
        for (at, message, help) in refused {
            self.refuse(at, message, help);
        }
    }

    /// True if a function is a constant of a function, in which its value stands.
    pub(crate) fn is_constant(&self, fun: usize) -> bool {
        let fun = &self.funs[fun];
        let is_declaration = match fun.code {
            Some(crate::lower::Code::Function(function)) => function.is_declaration(),
            _ => false,
        };
        fun.symbol.is_some() && !is_declaration
    }

    /// True if a plain function uses `this`.
    pub(crate) fn takes_this(&self, fun: usize) -> bool {
        let fun = &self.funs[fun];
        fun.kind == Kind::Plain && fun.uses_this
    }

    /// The callback of a builtin method if it is a value: the expression and its node.
    pub(crate) fn slot_value(&self, plan: &Plan, id: usize) -> Option<(&'a Expression<'a>, usize)> {
        let site = &self.sites[id];
        let (index, _) = site.slot.filter(|_| !self.is_own(id))?;
        let expr = site.args.get(index)?.as_expression()?;
        let at = expr.span();
        let node = self.nodes.get(&(at.start, at.end)).copied()?;
        let is_value = !self.is_function_name(plan, expr);
        (is_value && !self.flow.functions_in(node).is_empty()).then_some((expr, node))
    }

    /// True if a call has an object that can be written twice.
    pub(crate) fn has_simple_receiver(&self, id: usize) -> bool {
        let callee = self.sites[id].call.map(|call| call.callee.get_inner_expression());
        match callee {
            Some(Expression::StaticMemberExpression(member)) => Self::is_simple(&member.object),
            Some(Expression::ComputedMemberExpression(member)) => Self::is_simple(&member.object),
            _ => false,
        }
    }

    /// True if a value may be something other than a function or an instance.
    pub(crate) fn may_lack(&self, node: usize) -> bool {
        self.flow.has(node, PLAIN) || self.flow.has(node, DATA) || self.flow.has_objects(node)
    }
}
