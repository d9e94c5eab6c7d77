//! Statements.

use crate::codes;
use crate::expr::Hint;
use crate::lower::{After, Around, Code, Lowerer, What, branch, for_each, place, set};
use crate::tree::{Place, Tree};
use crate::value::Value;
use oxc_ast::ast::{
    BindingPattern, Declaration, Expression, ForOfStatement, ForStatement, ForStatementInit,
    ForStatementLeft, Statement, VariableDeclaration, VariableDeclarationKind, VariableDeclarator,
};
use oxc_span::{GetSpan, Span};

impl<'a> Lowerer<'a> {
    /// The statements of a block whose scope is open; its functions are lowered at its
    /// end, when all that they may see is declared.
    pub(crate) fn block(&mut self, statements: &'a [Statement<'a>], out: &mut Vec<Tree>) {
        let first = self.functions.len();
        for statement in statements {
            if let Statement::FunctionDeclaration(function) = statement {
                self.declare_function(function);
            }
        }
        for statement in statements {
            self.statement(statement, out);
        }
        self.finish_functions(first);
    }

    /// Lowers the functions from this one on that still wait for it.
    pub(crate) fn finish_functions(&mut self, first: usize) {
        let mut id = first;
        while id < self.functions.len() {
            self.function(id);
            id += 1;
        }
    }

    fn declare_function(&mut self, function: &'a oxc_ast::ast::Function<'a>) {
        if let Some(name) = &function.id {
            self.named_function(name.name.as_str(), Code::Function(function), name.span);
        }
    }

    /// Declares a function of this name.
    pub(crate) fn named_function(&mut self, js: &'a str, code: Code<'a>, at: Span) {
        let gives_value = self.gives_value(code);
        let id = self.add_function(js, code, at, gives_value);
        let binding = self.declare(js, at, What::Function(id), true);
        self.bindings[binding].is_ready = true;
    }

    /// A statement that is a body: a block, or one statement.
    pub(crate) fn body(&mut self, statement: &'a Statement<'a>) -> Vec<Tree> {
        let mut out = Vec::new();
        self.push_scope();
        match statement {
            Statement::BlockStatement(block) => self.block(&block.body, &mut out),
            statement => self.block(std::slice::from_ref(statement), &mut out),
        }
        self.pop_scope();
        out
    }

    pub(crate) fn statement(&mut self, statement: &'a Statement<'a>, out: &mut Vec<Tree>) {
        let at = statement.span();
        if !self.enter(at) {
            return;
        }
        self.statement_within(statement, at, out);
        self.leave();
    }

    fn statement_within(&mut self, statement: &'a Statement<'a>, at: Span, out: &mut Vec<Tree>) {
        match statement {
            Statement::BlockStatement(_) => {
                let steps = self.body(statement);
                out.extend(steps);
            }
            Statement::ExpressionStatement(statement) => self.effect(&statement.expression, out),
            Statement::VariableDeclaration(declaration) => self.variables(declaration, out),
            Statement::IfStatement(statement) => {
                let test = self.expr(&statement.test, out);
                let then = self.body(&statement.consequent);
                let other = statement.alternate.as_ref();
                let other = other.map_or_else(Vec::new, |other| self.body(other));
                out.push(branch(test.condition(), then, other, &place(at)));
            }
            Statement::WhileStatement(statement) => {
                let mut tests = Vec::new();
                let test = self.expr(&statement.test, &mut tests);
                self.around.push(Around::Loop(None));
                let body = self.body(&statement.body);
                self.around.pop();
                out.push(repeat(tests, test, body, &place(at)));
            }
            Statement::DoWhileStatement(_) => {
                let help = "write `while (true) { ...; if (!condition) break }`";
                self.unsupported(at, "`do`", help);
            }
            Statement::ForStatement(statement) => self.classic_for(statement, out),
            Statement::ForOfStatement(statement) => self.for_of(statement, out),
            Statement::ForInStatement(_) => {
                let help = "write `for (const key of Object.keys(object))`";
                self.unsupported(at, "`for ... in`", help);
            }
            Statement::SwitchStatement(statement) => self.switch(statement, out),
            Statement::ReturnStatement(statement) => {
                self.return_value(statement.argument.as_ref(), at, false, out);
            }
            Statement::ThrowStatement(statement) => self.throw(&statement.argument, at, out),
            Statement::TryStatement(statement) => self.try_statement(statement, out),
            Statement::BreakStatement(s) => self.jump("break", s.label.is_some(), at, out),
            Statement::ContinueStatement(s) => self.jump("continue", s.label.is_some(), at, out),
            Statement::EmptyStatement(_)
            | Statement::FunctionDeclaration(_)
            | Statement::TSTypeAliasDeclaration(_)
            | Statement::TSInterfaceDeclaration(_) => {}
            _ => self.other_statement(statement, at),
        }
    }

    fn other_statement(&mut self, statement: &'a Statement<'a>, at: Span) {
        let (what, help) = match statement {
            Statement::ClassDeclaration(_) => ("`class`", "use plain objects and functions"),
            Statement::LabeledStatement(_) => {
                ("a label", "put the inner loop into a function that returns")
            }
            Statement::WithStatement(_) => ("`with`", "name the object"),
            Statement::DebuggerStatement(_) => ("`debugger`", "use `a99 run --trace`"),
            Statement::ImportDeclaration(_) => {
                ("`import`", "atoms and builtins are there without it")
            }
            _ => (
                "this statement",
                "use let, const, if, while, for ... of, try, throw, return and calls",
            ),
        };
        self.unsupported(at, what, help);
    }

    /// `break` and `continue`.
    fn jump(&mut self, word: &'static str, has_label: bool, at: Span, out: &mut Vec<Tree>) {
        if has_label {
            let help = "put the inner loop into a function that returns";
            return self.unsupported(at, "a label", help);
        }
        let passes = |around: &&Around<'a>| word == "continue" && matches!(around, Around::Switch);
        match self.around.iter().rev().find(|around| !passes(around)) {
            Some(Around::Loop(update)) => {
                if let (Some(update), "continue") = (*update, word) {
                    self.effect(update, out);
                }
                out.push(Tree::step(word, [], &place(at)));
            }
            Some(Around::Switch) => {
                let help = "end each `case` with its only `break`, or use `if`";
                self.unsupported(at, "a `break` within a `case`", help);
            }
            _ => {
                let message = format!("`{word}` stands in no loop");
                let help = "in a callback, `return` ends the turn; a `for ... of` loop has `break`";
                self.deny(codes::UNSUPPORTED, at, message, help);
            }
        }
    }

    fn classic_for(&mut self, statement: &'a ForStatement<'a>, out: &mut Vec<Tree>) {
        let at = place(statement.span);
        self.push_scope();
        match &statement.init {
            Some(ForStatementInit::VariableDeclaration(declaration)) => {
                self.variables(declaration, out);
            }
            Some(init) => {
                if let Some(init) = init.as_expression() {
                    self.effect(init, out);
                }
            }
            None => {}
        }
        let mut tests = Vec::new();
        let test = match &statement.test {
            Some(test) => self.expr(test, &mut tests),
            None => Value::bool(true, &at),
        };
        self.around.push(Around::Loop(statement.update.as_ref()));
        let mut body = self.body(&statement.body);
        self.around.pop();
        if let Some(update) = &statement.update {
            self.effect(update, &mut body);
        }
        out.push(repeat(tests, test, body, &at));
        self.pop_scope();
    }

    fn for_of(&mut self, statement: &'a ForOfStatement<'a>, out: &mut Vec<Tree>) {
        let at = place(statement.span);
        if statement.r#await {
            let help = "write `for (const item of items)`";
            self.unsupported(statement.span, "`for await`", help);
        }
        let items = self.expr(&statement.right, out);
        self.push_scope();
        let mut body = Vec::new();
        let name = match &statement.left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                let is_const = declaration.kind == VariableDeclarationKind::Const;
                match declaration.declarations.first().map(|d| &d.id) {
                    Some(BindingPattern::BindingIdentifier(id)) => {
                        self.variable(id.name.as_str(), id.span, is_const)
                    }
                    Some(pattern) => {
                        let name = self.fresh();
                        let item = Value::ident(&name, &place(pattern.span()));
                        self.bind_pattern(pattern, item, is_const, &mut body);
                        name
                    }
                    None => self.fresh(),
                }
            }
            left => {
                let help = "declare the name: `for (const item of items)`";
                self.unsupported(left.span(), "a loop that sets a variable", help);
                self.fresh()
            }
        };
        self.around.push(Around::Loop(None));
        let steps = self.body(&statement.body);
        self.around.pop();
        body.extend(steps);
        out.push(for_each(items.resolved(), &name, None, body, &at));
        self.pop_scope();
    }

    pub(crate) fn variables(
        &mut self,
        declaration: &'a VariableDeclaration<'a>,
        out: &mut Vec<Tree>,
    ) {
        match declaration.kind {
            VariableDeclarationKind::Let | VariableDeclarationKind::Const => {}
            VariableDeclarationKind::Var => {
                let help = "write `let` or `const`";
                self.unsupported(declaration.span, "`var`", help);
            }
            _ => {
                let help = "write `const`";
                self.unsupported(declaration.span, "`using`", help);
            }
        }
        let is_const = declaration.kind == VariableDeclarationKind::Const;
        for one in &declaration.declarations {
            self.declarator(one, is_const, out);
        }
    }

    fn declarator(&mut self, one: &'a VariableDeclarator<'a>, is_const: bool, out: &mut Vec<Tree>) {
        let at = place(one.span);
        let BindingPattern::BindingIdentifier(id) = &one.id else {
            let Some(init) = &one.init else {
                return;
            };
            if self.arguments_pattern(&one.id, init, is_const, out) {
                return;
            }
            let value = self.expr(init, out);
            return self.bind_pattern(&one.id, value, is_const, out);
        };
        let js = id.name.as_str();
        let init = one.init.as_ref().map(Expression::get_inner_expression);
        match init {
            Some(Expression::ArrowFunctionExpression(arrow)) if is_const => {
                self.named_function(js, Code::Arrow(arrow), id.span);
            }
            Some(Expression::FunctionExpression(function)) if is_const => {
                self.named_function(js, Code::Function(function), id.span);
            }
            Some(init) => {
                let binding = self.declare(js, id.span, What::Variable, is_const);
                let name = self.bindings[binding].name.clone();
                self.bindings[binding].is_date = is_const && self.is_date(init);
                self.assign(init, &name, Hint::Fresh(&name), &at, out);
                self.bindings[binding].is_ready = true;
            }
            None => {
                let name = self.variable(js, id.span, is_const);
                out.push(set(&name, Tree::undefined(&at), &at));
            }
        }
    }

    /// Sets a variable to the value of an expression.
    pub(crate) fn assign(
        &mut self,
        value: &'a Expression<'a>,
        name: &str,
        hint: Hint<'_>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) {
        let value = self.expr_to(value, hint, out);
        let is_set = match &value.kind {
            crate::value::Kind::Node(tree) => tree.ident_name() == Some(name),
            _ => false,
        };
        if !is_set {
            out.push(set(name, value.resolved(), at));
        }
    }

    /// `return`, of a function, or of a callback that was made a loop.
    pub(crate) fn return_value(
        &mut self,
        value: Option<&'a Expression<'a>>,
        at: Span,
        is_last: bool,
        out: &mut Vec<Tree>,
    ) {
        let mut is_in_loop = false;
        let mut after = None;
        for around in self.around.iter().rev() {
            match around {
                Around::Loop(_) => is_in_loop = true,
                Around::Switch => {}
                Around::Callback(then) => {
                    after = Some(then.clone());
                    break;
                }
                Around::Body => break,
            }
        }
        let Some(after) = after else {
            let value = match value {
                Some(value) => self.expr(value, out),
                None => Value::undefined(&place(at)),
            };
            let value = [("value", value.resolved())];
            return out.push(Tree::step("return", value, &place(at)));
        };
        if is_in_loop {
            let help = "make the callback a function, or the method a `for ... of` loop";
            self.unsupported(at, "a `return` from a loop in a callback", help);
        }
        self.callback_value(&after, value, at, out);
        if !is_last {
            out.push(Tree::step("continue", [], &place(at)));
        }
    }

    fn callback_value(
        &mut self,
        after: &After,
        value: Option<&'a Expression<'a>>,
        at: Span,
        out: &mut Vec<Tree>,
    ) {
        match (after, value) {
            (After::Nothing, Some(value)) => self.effect(value, out),
            (After::Nothing, None) => {}
            (_, Some(value)) => {
                let value = self.expr(value, out);
                self.after(after, value, out);
            }
            (_, None) => self.after(after, Value::undefined(&place(at)), out),
        }
    }

    /// A declaration at the top of a module or of a body.
    pub(crate) fn declaration(&mut self, declaration: &'a Declaration<'a>, out: &mut Vec<Tree>) {
        match declaration {
            Declaration::VariableDeclaration(declaration) => self.variables(declaration, out),
            Declaration::FunctionDeclaration(_)
            | Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_) => {}
            other => {
                let help = "use constants, functions, types and interfaces";
                self.unsupported(other.span(), "this declaration", help);
            }
        }
    }
}

/// A loop on a condition that may need steps.
fn repeat(mut tests: Vec<Tree>, test: Value, body: Vec<Tree>, at: &Place) -> Tree {
    let condition = match tests.is_empty() {
        true => test.condition(),
        false => {
            let end = Tree::step("break", [], &test.place);
            let not = not(test.condition());
            tests.push(branch(not, vec![end], Vec::new(), at));
            Tree::bool(true, at)
        }
    };
    tests.extend(body);
    let inputs = [("condition", condition), ("body", Tree::list(tests, at))];
    Tree::step("while", inputs, at)
}

/// The opposite of a condition.
pub(crate) fn not(test: Tree) -> Tree {
    let at = test.place.clone();
    let fields = [("op", Tree::text("!", &at)), ("argument", test)];
    Tree::node("unary", fields, &at)
}
