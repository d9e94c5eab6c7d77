//! Functions in JavaScript that stand behind the source: `JSON.parse` with a reviver and
//! `JSON.stringify` with a replacer function walk values by them.
//!
//! A source that may need one is read again with it at its end. The function is copied for each
//! callback, as any function that takes functions.

use a99_core::diag::Diagnostic;
use oxc_ast::ast::{Argument, CallExpression, Expression, Program};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

/// The name of the function behind `JSON.parse` with a reviver.
pub(crate) const REVIVE: &str = "jsonRevive_";

/// The name of the function behind `JSON.stringify` with a replacer.
pub(crate) const REPLACE: &str = "jsonReplace_";

const REVIVE_CODE: &str = "
function jsonRevive_(reviver, key, value) {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = jsonRevive_(reviver, String(i), value[i])
  } else if (value !== null && typeof value === 'object') {
    for (const name of Object.keys(value)) {
      const item = jsonRevive_(reviver, name, value[name])
      if (item === undefined) delete value[name]
      else value[name] = item
    }
  }
  return reviver(key, value)
}";

/// A date has a `timestamp` without being an object that lists it; its JSON is a text or `null`.
const REPLACE_CODE: &str = "
function jsonReplace_(replacer, key, given) {
  let value = given
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    if (Object.keys(value).length === 0 && value.timestamp !== undefined) {
      value = JSON.parse(JSON.stringify(value))
    }
  }
  value = replacer(key, value)
  if (Array.isArray(value)) {
    const list = []
    for (let i = 0; i < value.length; i++) list.push(jsonReplace_(replacer, String(i), value[i]))
    return list
  }
  if (value !== null && typeof value === 'object') {
    const names = Object.keys(value)
    if (names.length > 0) {
      const made = {}
      for (const name of names) {
        const item = jsonReplace_(replacer, name, value[name])
        if (item !== undefined) made[name] = item
      }
      return made
    }
  }
  return value
}";

/// Returns the functions that a source may need, and the first call that needs one.
pub(crate) fn needed(program: &Program<'_>) -> Option<(String, Span)> {
    let mut calls = Calls::default();
    calls.visit_program(program);
    let first = calls.first?;
    let mut code = String::new();
    if calls.revives {
        code.push_str(REVIVE_CODE);
    }
    if calls.replaces {
        code.push_str(REPLACE_CODE);
    }
    Some((code, first))
}

/// Gives the nodes of library code the place of the first call.
pub(crate) fn placed(places: &mut [(u32, u32)], end: u32, call: Span) {
    let behind = places.iter_mut().filter(|place| place.0 >= end);
    behind.for_each(|place| *place = (call.start, call.end));
}

/// Moves what lies in the functions behind a source of this length to the call that needs them.
pub(crate) fn moved(found: &mut [Diagnostic], end: u32, call: Span) {
    for one in found {
        if one.span.as_ref().is_some_and(|span| span.start >= end) {
            one.span = Some(call.start..call.end);
        }
    }
}

#[derive(Default)]
struct Calls {
    revives: bool,
    replaces: bool,
    first: Option<Span>,
}

impl<'a> Visit<'a> for Calls {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        walk::walk_call_expression(self, call);
        let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
            return;
        };
        let is_json = matches!(&member.object, Expression::Identifier(id) if id.name == "JSON");
        let may_be_function = matches!(
            call.arguments.get(1),
            Some(
                Argument::ArrowFunctionExpression(_)
                    | Argument::FunctionExpression(_)
                    | Argument::Identifier(_)
            )
        );
        if !is_json || !may_be_function {
            return;
        }
        match member.property.name.as_str() {
            "parse" => self.revives = true,
            "stringify" => self.replaces = true,
            _ => return,
        }
        self.first.get_or_insert(call.span());
    }
}
