//! Prints branches, loops, `try`, and separate scopes.

use super::iterate::Over;
use super::{Printed, Printer, Reason};
use a99_core::builtins::may_give_undefined;
use a99_core::json::NodeId;

const NO_ITEMS: Reason = ("a loop without items", "give `items` and `as`");
const LOOP_NAME: Reason = (
    "a loop's own name that its steps set",
    "set another variable",
);

#[derive(Default)]
struct Names {
    /// Names in the program.
    own: Vec<Vec<u8>>,
    /// Names in the source.
    js: Vec<String>,
    /// True if a step of the loop sets one of the names.
    are_set: bool,
}

const NO_THEN: Reason = ("an `if` without `then`", "give its steps");

impl<'d> Printer<'d> {
    fn steps(&self, step: NodeId, key: &str) -> Vec<NodeId> {
        let list = self.doc.get(step, key);
        list.into_iter()
            .flat_map(|list| self.doc.elements(list))
            .collect()
    }

    /// True if control never continues after the steps.
    fn ends(&self, step: NodeId, key: &str) -> bool {
        let last = self.steps(step, key).last().copied();
        let op = last.and_then(|last| self.op(last));
        matches!(op, Some("return" | "Error" | "break" | "continue"))
    }

    pub(super) fn branch(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        if self.doc.get(step, "then").is_none() {
            return Err((step, NO_THEN));
        }
        let test = self.condition(step)?;
        let before = self.scopes.snapshot();
        let then = self.shared(step, "then")?;
        let after = self.scopes.snapshot();
        self.scopes.restore(&before);
        let other = self.shared(step, "else")?;
        match (self.ends(step, "then"), self.ends(step, "else")) {
            (true, _) => {}
            (false, true) => self.scopes.restore(&after),
            (false, false) => self.scopes.join(&after),
        }
        self.line(out, &format!("if ({test}) {{"));
        out.push_str(&then);
        if !other.is_empty() {
            self.line(out, "} else {");
            out.push_str(&other);
        }
        self.line(out, "}");
        Ok(())
    }

    /// Records that a loop may have bound the names that its steps bind.
    fn loops(&mut self, step: NodeId, key: &str) {
        for name in self.all_bound(&self.steps(step, key)) {
            self.scopes.may_bind(name);
        }
    }

    pub(super) fn repeat(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        self.loops(step, "body");
        let test = self.condition(step)?;
        let before = self.scopes.snapshot();
        let body = self.shared(step, "body")?;
        self.scopes.join(&before);
        self.line(out, &format!("while ({test}) {{"));
        out.push_str(&body);
        self.line(out, "}");
        Ok(())
    }

    /// Prints the list that a loop iterates, in parentheses if it is a receiver and needs them.
    pub(super) fn items(&mut self, step: NodeId, is_receiver: bool) -> Printed<String> {
        let Some(node) = self.doc.get(step, "items") else {
            return Err((step, NO_ITEMS));
        };
        match self.doc.get(node, "$expr").is_some() && is_receiver {
            true => self.operand(node, crate::spell::PRIMARY),
            false => self.value(node),
        }
    }

    /// Declares the names of a loop: the item's, and the index's if the loop has one.
    fn loop_names(&mut self, step: NodeId, counts: bool) -> Printed<Names> {
        let index = self.str(step, "index").filter(|_| counts);
        let Some(item) = self.str(step, "as") else {
            return Err((step, NO_ITEMS));
        };
        let mut names = Names::default();
        let bound = self.all_bound(&self.steps(step, "steps"));
        for name in [Some(item), index].into_iter().flatten() {
            if self.scopes.is_constant(name) {
                return Err((step, LOOP_NAME));
            }
            names.are_set |= bound.contains(name);
            names.js.push(self.scopes.declare(name));
            self.scopes.bind(name);
            names.own.push(name.to_vec());
        }
        Ok(names)
    }

    pub(super) fn each(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        let over = self.over(step)?;
        self.loops(step, "steps");
        let before = self.scopes.snapshot();
        self.scopes.enter(false);
        let names = self.loop_names(step, true)?;
        let body = self.shared(step, "steps")?;
        self.scopes.leave();
        self.scopes.join(&before);
        let leaves = self.leaves(step) || body.contains("await ");
        let is_callback = names.js.len() == 2 || matches!(over, Over::Lists(_));
        if is_callback && !leaves {
            let items = self.items(step, true)?;
            self.line(
                out,
                &format!("{items}.forEach(({}) => {{", names.js.join(", ")),
            );
            out.push_str(&body);
            self.line(out, "})");
            return Ok(());
        }
        let items = match names.js.len() {
            2 => over.text(),
            _ => over.lists(),
        };
        self.line(out, &head(&names, &items));
        out.push_str(&body);
        self.line(out, "}");
        Ok(())
    }

    /// True if steps of a loop leave the loop or a turn.
    fn leaves(&self, step: NodeId) -> bool {
        let mut todo = self.steps(step, "steps");
        while let Some(step) = todo.pop() {
            let op = self.op(step).unwrap_or_default();
            if matches!(op, "break" | "continue" | "return") {
                return true;
            }
            for key in super::places::bodies(op) {
                todo.extend(self.steps(step, key));
            }
        }
        false
    }

    pub(super) fn attempt(&mut self, step: NodeId, out: &mut String) -> Printed<()> {
        if self.doc.get(step, "catch").is_none() {
            // Without a `catch`, errors propagate.
            let inner = self.shared(step, "try")?;
            self.line(out, "{");
            out.push_str(&inner);
            self.line(out, "}");
            return Ok(());
        }
        let before = self.scopes.snapshot();
        let tried = self.shared(step, "try")?;
        let after = self.scopes.snapshot();
        self.scopes.restore(&before);
        self.loops(step, "try");
        let name = self.str(step, "catchParam").unwrap_or(b"error");
        if self.scopes.is_constant(name) {
            return Err((step, LOOP_NAME));
        }
        let mut kept = String::new();
        let escapes = |name: &[u8]| self.escaping.contains(name);
        let (keeps, keeps_op) = (escapes(name), escapes(b"errorOp"));
        let mut js = String::new();
        if keeps {
            js = self.scopes.temporary("e");
            let target = self.scopes.target(name).ok_or((step, LOOP_NAME))?;
            kept.push_str(&format!("{target} = {js}.message\n"));
            self.scopes.bind(name);
        }
        self.scopes.enter(false);
        let is_set = || self.all_bound(&self.steps(step, "catch")).contains(name);
        if !keeps {
            js = self.scopes.declare_error(name);
        } else if !is_set() {
            self.scopes.declare_error_as(name, &js);
        }
        if keeps_op {
            let target = self.scopes.target(b"errorOp").ok_or((step, LOOP_NAME))?;
            kept.push_str(&format!("{target} = {js}.op\n"));
            self.scopes.bind(b"errorOp");
        } else {
            self.scopes.declare_as(b"errorOp", &format!("{js}.op"));
        }
        let caught = self.shared(step, "catch")?;
        self.scopes.leave();
        match (self.ends(step, "catch"), self.ends(step, "try")) {
            (true, _) => self.scopes.restore(&after),
            (false, true) => {}
            (false, false) => self.scopes.join(&after),
        }
        for (name, is_kept) in [(name, keeps), (&b"errorOp"[..], keeps_op)] {
            if !is_kept {
                self.poisoned.insert(name.to_vec());
            }
        }
        self.line(out, "try {");
        out.push_str(&tried);
        self.line(out, &format!("}} catch ({js}) {{"));
        self.level += 1;
        for text in kept.lines() {
            self.line(out, text);
        }
        self.level -= 1;
        out.push_str(&caught);
        self.line(out, "}");
        Ok(())
    }

    /// Prints steps with a separate scope. Also returns how the source writes, at the end of the
    /// steps, the first of these names that they bound.
    pub(super) fn own(
        &mut self,
        step: NodeId,
        key: &str,
        wanted: &[&[u8]],
    ) -> Printed<(String, String)> {
        self.own_but(step, key, wanted, &[])
    }

    /// Prints such steps if these names are variables of the loop.
    fn own_but(
        &mut self,
        step: NodeId,
        key: &str,
        wanted: &[&[u8]],
        others: &[Vec<u8>],
    ) -> Printed<(String, String)> {
        let steps = self.steps(step, key);
        let before = self.scopes.snapshot();
        self.level += 1;
        self.scopes.enter(false);
        let outer = wanted.first().map(|name| self.scopes.written(name));
        let depth = self.scopes.go_within(1);
        let body = self.body_with(&steps, wanted, others);
        self.scopes.come_back(depth);
        let written = wanted.first().and_then(|name| self.scopes.written(name));
        let is_new = written.is_some() && Some(&written) != outer.as_ref();
        self.scopes.leave();
        self.level -= 1;
        self.scopes.restore(&before);
        let written = written.filter(|_| is_new);
        Ok((body?, written.unwrap_or_else(|| "undefined".to_owned())))
    }

    /// Prints `map`, `filter`, `find` and `reduce`.
    pub(super) fn turns(&mut self, step: NodeId, op: &str, out: &mut String) -> Printed<()> {
        let counts = self.is_current;
        if matches!(op, "filter" | "find") {
            let items = self.items(step, true)?;
            self.scopes.enter(false);
            let names = self.loop_names(step, counts)?;
            let test = self.condition(step)?;
            self.scopes.leave();
            let test = if test.starts_with('{') {
                format!("({test})")
            } else {
                test
            };
            let call = format!("{items}.{op}(({}) => {test})", names.js.join(", "));
            let call = if op == "find" {
                format!("{call} ?? null")
            } else {
                call
            };
            return self.give(step, &call, false, out);
        }
        let steps = self.steps(step, "steps");
        if let [only] = steps[..]
            && op == "map"
            && self.op(only) == Some("varSet")
            && self.str(only, "key") == Some(b"result")
            && ![self.str(step, "as"), self.str(step, "index")].contains(&Some(b"result"))
            && let Some(value) = self.doc.get(only, "value")
        {
            let items = self.items(step, true)?;
            self.scopes.enter(false);
            let names = self.loop_names(step, counts)?;
            let text = self.value(value)?;
            self.scopes.leave();
            let text = match self.is_defined(value) {
                true if text.starts_with('{') => format!("({text})"),
                true => text,
                false => format!("({text}) ?? null"),
            };
            let call = format!("{items}.map(({}) => {text})", names.js.join(", "));
            return self.give(step, &call, false, out);
        }
        self.long_turns(step, op, out)
    }

    /// True if a value cannot be `undefined`.
    pub(super) fn is_defined(&self, node: NodeId) -> bool {
        let field = |key: &str| {
            self.doc
                .get(node, key)
                .is_some_and(|node| self.is_defined(node))
        };
        let Some(tag) = self.str(node, "$expr") else {
            let is_argument = self.doc.get(node, "$kind").is_some();
            return !is_argument && self.doc.str(node).is_none();
        };
        match tag {
            b"binary" | b"unary" | b"array" | b"object" | b"literal" | b"call" => true,
            b"conditional" => field("consequent") && field("alternate"),
            b"logical" if self.str(node, "op") == Some(b"&&") => field("left") && field("right"),
            b"logical" => field("right"),
            b"methodCall" => {
                let method = self.str(node, "method").unwrap_or_default();
                let object = self.doc.get(node, "object");
                let is_json = object.and_then(|object| self.str(object, "name")) == Some(b"JSON");
                let is_sure = !may_give_undefined(str::from_utf8(method).unwrap_or_default());
                self.doc.get(node, "optional").is_none() && is_sure && !is_json
            }
            _ => false,
        }
    }

    /// Prints `map` and `reduce` with several steps as a loop.
    fn long_turns(&mut self, step: NodeId, op: &str, out: &mut String) -> Printed<()> {
        let items = match self.str(step, "index").filter(|_| self.is_current) {
            Some(_) => self.items(step, false)?,
            None => self.over(step)?.lists(),
        };
        let kept = match op {
            "map" => "[]".to_owned(),
            _ => self.value_of(step, "initial")?,
        };
        let total = self
            .scopes
            .temporary(if op == "map" { "list" } else { "total" });
        let word = if op == "map" { "const" } else { "let" };
        self.line(out, &format!("{word} {total} = {kept}"));
        self.scopes.enter(false);
        if op == "reduce" {
            let name = self.str(step, "accumulator").unwrap_or_default();
            let others = [self.str(step, "as"), self.str(step, "index")];
            let bound = self.all_bound(&self.steps(step, "steps"));
            if bound.contains(name) || others.contains(&Some(name)) {
                return Err((step, LOOP_NAME));
            }
            self.scopes.declare_as(name, &total);
        }
        let counts = self.is_current;
        let names = self.loop_names(step, counts)?;
        if names.own.iter().any(|name| name == b"result") {
            return Err((step, LOOP_NAME));
        }
        let bound = self.all_bound(&self.steps(step, "steps"));
        let inherited = match bound.contains(&b"result"[..]) {
            true => None,
            false => self.scopes.written(b"result"),
        };
        let was = std::mem::replace(&mut self.in_turn, true);
        let body = self.own_but(step, "steps", &[b"result"], &names.own);
        self.in_turn = was;
        self.scopes.leave();
        let (mut body, result) = body?;
        // A name that no step of the turn binds belongs to an enclosing scope (D32).
        let result = inherited.unwrap_or(result);
        self.level += 1;
        let last = match op {
            "map" => format!("{total}.push({result} ?? null)"),
            _ => format!("{total} = {result} ?? {total}"),
        };
        self.line(&mut body, &last);
        self.level -= 1;
        self.line(out, &head(&names, &items));
        out.push_str(&body);
        self.line(out, "}");
        self.give(step, &total, false, out)?;
        Ok(())
    }
}

/// Prints the head of a loop over items, with the index if it has a name.
fn head(names: &Names, items: &str) -> String {
    let word = if names.are_set { "let" } else { "const" };
    match &names.js[..] {
        [item, index] => format!("for ({word} [{index}, {item}] of ({items}).entries()) {{"),
        js => format!("for ({word} {} of {items}) {{", js.join("")),
    }
}
