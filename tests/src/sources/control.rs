//! Branches, loops and `try` of random sources.

use super::{Bool, Function, List, Number, Text, Writer};

impl Writer {
    pub(super) fn branch(&mut self, depth: usize) {
        let test = self.expr(Bool, 3);
        self.line(&format!("if ({test}) {{"));
        self.body(depth);
        if self.one_in(2) {
            self.line("} else {");
            self.body(depth);
        }
        self.line("}");
    }

    pub(super) fn counted(&mut self, depth: usize) {
        let name = self.name("i");
        let end = 1 + self.below(4);
        let label = self.label();
        self.line(&format!(
            "{label}for (let {name} = 0; {name} < {end}; {name}++) {{"
        ));
        let in_loop = std::mem::replace(&mut self.in_loop, true);
        self.around += 1;
        let mark = self.variables.len();
        self.declare(&name, Number, false);
        self.leave_early();
        self.body(depth);
        self.variables.truncate(mark);
        self.around -= 1;
        self.in_loop = in_loop;
        self.line("}");
        self.end_label(&label);
    }

    /// Sometimes a label for the next loop.
    fn label(&mut self) -> String {
        if !self.one_in(3) {
            return String::new();
        }
        let name = self.name("l");
        self.labels.push(name.clone());
        format!("{name}: ")
    }

    fn end_label(&mut self, label: &str) {
        if !label.is_empty() {
            self.labels.pop();
        }
    }

    /// Sometimes a `break` or `continue` at the start of a loop.
    pub(super) fn leave_early(&mut self) {
        if self.one_in(3) {
            let word = self.pick(&["break", "continue"]);
            let test = self.expr(Bool, 2);
            let label = match self.labels.len() {
                count if count > 0 && self.one_in(2) => self.below(count),
                _ => return self.line(&format!("  if ({test}) {word};")),
            };
            let label = self.labels[label].clone();
            self.line(&format!("  if ({test}) {word} {label};"));
        }
    }

    pub(super) fn each(&mut self, depth: usize) {
        let name = self.name("x");
        let ty = if self.one_in(3) { Text } else { List };
        let list = match self.variable(ty, false) {
            Some(list) if !self.one_in(3) => list,
            _ => self.expr(ty, 2),
        };
        let index = (ty == List && self.one_in(4)).then(|| self.name("i"));
        let label = self.label();
        match &index {
            Some(index) => self.line(&format!(
                "{label}for (const [{index}, {name}] of {list}.entries()) {{"
            )),
            None => self.line(&format!("{label}for (const {name} of {list}) {{")),
        }
        let in_loop = std::mem::replace(&mut self.in_loop, true);
        self.around += 1;
        self.busy.push(list);
        let mark = self.variables.len();
        self.declare(&name, if ty == Text { Text } else { Number }, false);
        if let Some(index) = &index {
            self.declare(index, Number, false);
        }
        self.leave_early();
        self.body(depth);
        self.variables.truncate(mark);
        self.busy.pop();
        self.around -= 1;
        self.in_loop = in_loop;
        self.line("}");
        self.end_label(&label);
    }

    pub(super) fn repeat(&mut self, depth: usize) {
        let name = self.name("w");
        let test = self.expr(Bool, 2);
        let end = 1 + self.below(4);
        self.line(&format!("let {name} = 0;"));
        self.line(&format!("while ({name} < {end} && ({test})) {{"));
        let in_loop = std::mem::replace(&mut self.in_loop, true);
        self.around += 1;
        self.line(&format!("  {name} += 1;"));
        self.leave_early();
        self.body(depth);
        self.around -= 1;
        self.in_loop = in_loop;
        self.line("}");
        self.declare(&name, Number, false);
    }

    pub(super) fn attempt(&mut self, depth: usize) {
        let caught = self.name("e");
        let is_last = self.one_in(2);
        let catches = !is_last || self.one_in(2);
        // No label leaves a statement before a `finally`.
        let labels = match is_last {
            true => std::mem::take(&mut self.labels),
            false => self.labels.clone(),
        };
        self.line("try {");
        self.body(depth);
        if is_last {
            self.exit();
        }
        if self.one_in(2) {
            let (test, text) = (self.expr(Bool, 2), self.expr(Text, 2));
            self.line(&format!("  if ({test}) throw new Error({text});"));
        }
        if catches {
            self.line(&format!("}} catch ({caught}) {{"));
            if let Some(name) = self.variable(Text, true) {
                self.line(&format!("  {name} += {caught}.message;"));
            }
            self.body(depth);
            if is_last {
                self.exit();
            }
        }
        if is_last {
            self.line("} finally {");
            self.body(depth);
            if self.one_in(5) {
                self.exit();
            }
        }
        self.labels = labels;
        self.line("}");
    }

    /// Sometimes a jump out of the enclosing statements.
    pub(super) fn exit(&mut self) {
        let test = self.expr(Bool, 2);
        let exit = match self.below(3) {
            0 if self.in_loop => self.pick(&["break", "continue"]).to_owned(),
            1 => match self.function {
                Function::Agent => format!("return {{ log, early: {} }}", self.expr(Number, 2)),
                Function::Helper(ty) => format!("return {}", self.expr(ty, 2)),
                Function::None => return,
            },
            _ => return,
        };
        self.line(&format!("  if ({test}) {exit};"));
    }

    pub(super) fn switch(&mut self, depth: usize) {
        let on = self.expr(Number, 2);
        let in_loop = std::mem::take(&mut self.in_loop);
        self.line(&format!("switch ({on}) {{"));
        for value in 0..1 + self.below(2) {
            self.line(&format!("  case {value}: {{"));
            self.leave_case(in_loop);
            self.body(depth);
            self.line("  break }");
        }
        self.line("  default: {");
        self.leave_case(in_loop);
        self.body(depth);
        self.line("}}");
        self.in_loop = in_loop;
    }

    /// Sometimes a jump out of a case, or out of the enclosing loop.
    fn leave_case(&mut self, in_loop: bool) {
        if self.one_in(3) {
            let word = match in_loop && self.one_in(2) {
                true => "continue",
                false => "break",
            };
            let test = self.expr(Bool, 2);
            self.line(&format!("    if ({test}) {word};"));
        }
    }

    /// `forEach` with statements.
    pub(super) fn callback(&mut self, depth: usize) {
        let list = self.expr(List, 2);
        let (item, index) = (self.name("x"), self.name("i"));
        let all = self.one_in(3).then(|| self.name("l"));
        let third = all.as_ref().map_or(String::new(), |all| format!(", {all}"));
        self.line(&format!("{list}.forEach(({item}, {index}{third}) => {{"));
        let in_loop = std::mem::take(&mut self.in_loop);
        let labels = std::mem::take(&mut self.labels);
        let function = std::mem::replace(&mut self.function, Function::None);
        self.around += 1;
        self.busy.push(list);
        let mark = self.variables.len();
        if let Some(all) = &all {
            self.declare(all, List, false);
        }
        self.declare(&item, Number, true);
        self.declare(&index, Number, false);
        let waits = std::mem::take(&mut self.may_wait);
        self.body(depth);
        self.may_wait = waits;
        self.variables.truncate(mark);
        self.busy.pop();
        self.around -= 1;
        (self.in_loop, self.function) = (in_loop, function);
        self.labels = labels;
        self.line("});");
    }
}
