//! Answers about the calls and functions of a model.

use super::flow::{DATA, Made, PLAIN, What};
use super::model::{Calls, Declared, Kind, Model, Place, Used};
use super::plan::Plan;
use crate::atom::code_of;
use hashbrown::HashSet;
use oxc_ast::ast::{BindingPattern, Expression};
use oxc_span::GetSpan;

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
                    let param = self
                        .called(site)
                        .and_then(|fun| self.param_symbol(fun, index));
                    param.is_some_and(|param| plan.fixed.contains(&param))
                };
                (is_slot && !self.is_own(site)) || is_fixed()
            }
        }
    }

    /// True if a function is declared at the top under a name.
    pub(crate) fn is_top(&self, fun: usize) -> bool {
        let symbol = self.funs[fun].symbol;
        symbol.is_some_and(|symbol| self.symbols[symbol].is_top)
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
                    && sites.all(|site| {
                        matches!(&self.flow.values[*site],
                        What::Object(object) if object.made == Made::Object)
                    });
                is_object && site.member.is_some_and(only)
            }
            _ => false,
        }
    }

    /// The static function that a call calls.
    pub(crate) fn statics_of(&self, id: usize) -> Option<usize> {
        let site = &self.sites[id];
        let values = &self.flow.sets[site.target];
        let mut found = values
            .iter()
            .filter_map(|value| match self.flow.values[*value] {
                What::Class(class) => self.flow.classes[class].statics.get(site.name).copied(),
                _ => None,
            });
        (site.calls == Calls::Method)
            .then(|| found.next())
            .flatten()
    }

    /// The node of the value that a call by value calls.
    pub(crate) fn callee_node(&self, id: usize) -> usize {
        let site = &self.sites[id];
        site.member.unwrap_or(site.target)
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
        let is_builtin = self.uses.iter().any(|one| {
            matches!(one.of, Used::Literal(fun) if self.funs[fun].builtin.is_some() && one.span == at)
        });
        let is_value = !is_builtin && !self.is_function_name(plan, expr);
        (is_value && !self.flow.functions_in(node).is_empty()).then_some((expr, node))
    }

    /// True for a call of a member by its name.
    pub(crate) fn is_member_call(&self, id: usize) -> bool {
        let callee = self.sites[id]
            .call
            .map(|call| call.callee.get_inner_expression());
        matches!(callee, Some(Expression::StaticMemberExpression(member)) if !member.optional)
    }

    /// True if a call has an object that can be written twice.
    pub(crate) fn has_simple_receiver(&self, id: usize) -> bool {
        let callee = self.sites[id]
            .call
            .map(|call| call.callee.get_inner_expression());
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
