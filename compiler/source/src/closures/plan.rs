//! Decides which functions become values, which move to the top of the source, and which variables
//! become shared objects.

use super::model::{Declared, Kind, Model, Place, Use, Used};
use crate::atom::code_of;
use hashbrown::HashSet;

/// Maximum work of one decision: functions times references.
const MAX_WORK: usize = 20_000_000;

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
    pub(crate) fn plan(&mut self) -> Option<Plan> {
        let mut plan = Plan::default();
        let work = self
            .funs
            .len()
            .saturating_mul(self.refs.len() + self.uses.len() + 1);
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
        let is_bad =
            |one: &Use| one.of == Used::Symbol(param) && !self.is_known_place(plan, one.place);
        if self.uses.iter().any(is_bad) {
            return false;
        }
        let mut calls = (0..self.sites.len()).filter(|site| self.called(*site) == Some(fun));
        calls.all(|site| {
            // A recursive call with a new function would take a copy for each level.
            let is_new = self.is_within(self.sites[site].fun, fun)
                && self.sites[site]
                    .args
                    .get(index)
                    .and_then(|arg| arg.as_expression())
                    .is_some_and(|arg| code_of(arg).is_some());
            if is_new {
                return false;
            }
            let args = self.sites[site].args;
            let passed = args.get(..=index).unwrap_or_default();
            passed.len() == index + 1
                && passed
                    .iter()
                    .all(|argument| argument.as_expression().is_some())
                && passed
                    .last()
                    .and_then(|last| last.as_expression())
                    .is_some_and(|last| self.is_function_name(plan, last))
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
            let is_shared = is_set_within[id] || is_captured[id] && is_set[id];
            if !is_shared {
                continue;
            }
            let symbol = &self.symbols[id];
            match symbol.declared {
                Declared::Head(body) if is_captured[id] => {
                    let in_body = |one: &&super::model::Ref| {
                        one.symbol == id && one.at.start >= body.start && one.at.end <= body.end
                    };
                    let others = self
                        .refs
                        .iter()
                        .filter(|one| one.symbol == id && !in_body(one));
                    let is_bad = self.refs.iter().filter(in_body).any(|one| one.sets)
                        || others
                            .into_iter()
                            .any(|one| self.home(one.fun) != self.home(symbol.owner));
                    match is_bad {
                        true => refused.push(symbol.at),
                        false => {
                            plan.copies.insert(id);
                        }
                    }
                }
                Declared::Function(_) | Declared::Class(_) | Declared::Caught => {}
                _ => {
                    plan.cells.insert(id);
                }
            }
        }
        for at in refused {
            let help = "set a variable that is declared within the loop";
            self.refuse(
                at,
                "a loop's variable that the loop's body sets, and functions read",
                help,
            );
        }
    }

    /// Finds variables that a function value needs before their declaration is complete.
    fn find_late(&self, plan: &mut Plan) {
        for one in &self.uses {
            let Some(fun) = self
                .function_of(one.of)
                .filter(|fun| plan.moved.contains(fun))
            else {
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

    /// True if the source has nothing for which closures are needed.
    pub(crate) fn is_plain(&self, plan: &Plan) -> bool {
        plan.values.is_empty() && plan.cells.is_empty() && self.classes.is_empty()
    }
}
