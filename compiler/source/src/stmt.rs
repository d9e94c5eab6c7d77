//! Lowers statements.

use crate::codes;
use crate::expr::Hint;
use crate::lower::{After, Around, Code, Lowerer, What, branch, for_each, place, set};
use crate::state::{Iterable, Known, Update};
use crate::steps::not;
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use oxc_ast::ast::{
    BindingPattern, Class, Declaration, Expression, ForOfStatement, ForStatement, ForStatementInit,
    ForStatementLeft, Statement, VariableDeclaration, VariableDeclarationKind, VariableDeclarator,
};
use oxc_span::{GetSpan, Span};

/// Target of a `return`.
enum ReturnTo {
    /// Leaves the function, or steps that return a value.
    Function,
    /// Ends the turn of a callback that became a loop: its index in `around`, and whether an
    /// inner loop encloses the `return`.
    Callback(After, usize, bool),
    /// Waits for a `finally`, with the value in this variable.
    Finally(String),
}

impl<'a> Lowerer<'a> {
    /// Lowers the statements of a block whose scope is open. Its functions follow at the end,
    /// when every name that they can capture is declared.
    pub(crate) fn block(&mut self, statements: &'a [Statement<'a>], out: &mut Vec<Tree>) {
        let first = self.functions.len();
        for statement in statements {
            if let Statement::FunctionDeclaration(function) = statement {
                self.declare_function(function);
            }
        }
        self.check_bare_return(statements);
        self.check_no_value(statements);
        self.check_hidden(statements);
        for statement in statements {
            self.statement(statement, out);
        }
        self.finish_functions(first);
    }

    /// Lowers the pending functions from this index on.
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

    pub(crate) fn named_function(&mut self, js: &'a str, code: Code<'a>, at: Span) {
        let gives_value = self.gives_value(code);
        let id = self.add_function(js, code, at, gives_value);
        let binding = self.declare(js, at, What::Function(id), true);
        self.bindings[binding].is_ready = true;
    }

    /// Lowers a statement that is a body: a block, or one statement.
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
            Statement::IfStatement(statement) if self.instance(&statement.test).is_some() => {
                let steps = match self.instance(&statement.test) {
                    Some(true) => self.body(&statement.consequent),
                    _ => statement
                        .alternate
                        .as_ref()
                        .map_or_else(Vec::new, |other| self.body(other)),
                };
                out.extend(steps);
            }
            Statement::IfStatement(statement) => {
                self.check_test(&statement.test, false);
                self.check_place(&statement.test);
                let test = self.expr(&statement.test, out);
                let then = self.body(&statement.consequent);
                let other = statement.alternate.as_ref();
                let other = other.map_or_else(Vec::new, |other| self.body(other));
                out.push(branch(test.condition(), then, other, &place(at)));
            }
            Statement::WhileStatement(statement) => {
                self.check_test(&statement.test, true);
                let label = self.label.take();
                self.exec_before(&statement.test, out);
                let mut tests = Vec::new();
                let test = self.expr(&statement.test, &mut tests);
                self.around.push(Around::a_loop(label, None));
                let mut body = self.body(&statement.body);
                let around = self.end_loop(at, &mut body);
                out.push(repeat(tests, test, body, &place(at)));
                self.leave_further(around, at, out);
            }
            Statement::DoWhileStatement(statement) => {
                self.check_test(&statement.test, true);
                let label = self.label.take();
                let update = Some(Update::Test(&statement.test));
                self.around.push(Around::a_loop(label, update));
                let mut body = self.body(&statement.body);
                let around = self.end_loop(at, &mut body);
                self.update_of(Update::Test(&statement.test), &mut body);
                let test = Value::bool(true, &place(at));
                out.push(repeat(Vec::new(), test, body, &place(at)));
                self.leave_further(around, at, out);
            }
            Statement::ForStatement(statement) => self.classic_for(statement, out),
            Statement::ForOfStatement(statement) => self.for_of(statement, out),
            Statement::ForInStatement(statement) => self.for_in(statement, out),
            Statement::SwitchStatement(statement) => self.switch(statement, out),
            Statement::ReturnStatement(statement) => {
                self.check_returned_logs(statement.argument.as_ref());
                self.return_value(statement.argument.as_ref(), at, false, out);
            }
            Statement::ThrowStatement(statement) => self.throw(&statement.argument, at, out),
            Statement::TryStatement(statement) => self.try_statement(statement, out),
            Statement::LabeledStatement(statement) => self.labeled(statement, out),
            Statement::BreakStatement(s) => match &s.label {
                Some(label) => self.jump_to("break", label.name.as_str(), at, out),
                None => self.jump("break", at, out),
            },
            Statement::ContinueStatement(s) => match &s.label {
                Some(label) => self.jump_to("continue", label.name.as_str(), at, out),
                None => self.jump("continue", at, out),
            },
            Statement::EmptyStatement(_)
            | Statement::FunctionDeclaration(_)
            | Statement::TSTypeAliasDeclaration(_)
            | Statement::TSInterfaceDeclaration(_) => {}
            _ => self.other_statement(statement, at),
        }
    }

    fn other_statement(&mut self, statement: &'a Statement<'a>, at: Span) {
        let (what, help) = match statement {
            Statement::ClassDeclaration(class) => return self.refused_class(class),
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

    /// Lowers `break` and `continue` without a label.
    pub(crate) fn jump(&mut self, word: &'static str, at: Span, out: &mut Vec<Tree>) {
        let passes = |around: &Around<'a>| match around {
            Around::Switch => true,
            Around::Loop { is_switch, .. } => *is_switch && word == "continue",
            _ => false,
        };
        let target = self.around.iter().rposition(|around| !passes(around));
        match target.map(|index| (index, &self.around[index])) {
            Some((index, Around::Loop { .. })) => self.leave_to(index, word, None, at, out),
            Some((_, Around::Finally(_))) => self.exit(word, at, out),
            _ => {
                let message = format!("`{word}` stands in no loop");
                let help = "in a callback, `return` ends the turn; a `for ... of` loop has `break`";
                self.deny(codes::UNSUPPORTED, at, message, help);
            }
        }
    }

    fn classic_for(&mut self, statement: &'a ForStatement<'a>, out: &mut Vec<Tree>) {
        let label = self.label.take();
        let at = place(statement.span);
        self.check_countdown(statement);
        self.check_counter(statement);
        self.check_direction(statement);
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
        let update = statement.update.as_ref().map(Update::Effect);
        self.around.push(Around::a_loop(label, update));
        let mut body = self.body(&statement.body);
        let around = self.end_loop(statement.span, &mut body);
        if let Some(update) = &statement.update {
            self.effect(update, &mut body);
        }
        out.push(repeat(tests, test, body, &at));
        self.leave_further(around, statement.span, out);
        self.pop_scope();
    }

    /// Lowers the code that a loop runs after each turn.
    pub(crate) fn update_of(&mut self, update: Update<'a>, out: &mut Vec<Tree>) {
        match update {
            Update::Effect(update) => self.effect(update, out),
            Update::Test(test) => {
                let at = place(test.span());
                let value = self.expr(test, out);
                let end = vec![Tree::step("break", [], &at)];
                out.push(branch(not(value.condition()), end, Vec::new(), &at));
            }
        }
    }

    fn for_of(&mut self, statement: &'a ForOfStatement<'a>, out: &mut Vec<Tree>) {
        let label = self.label.take();
        let at = place(statement.span);
        if statement.r#await {
            let help = "write `for (const item of items)`";
            self.unsupported(statement.span, "`for await`", help);
        }
        let counted = self.counted(statement);
        let items = match counted {
            Some((list, _, _)) => self.expr(list, out),
            None => self.iterated(&statement.right, out),
        };
        let known = match counted {
            Some((list, _, _)) => self.known(list).item(),
            None => self.known(&statement.right).item(),
        };
        self.push_scope();
        let mut body = Vec::new();
        let mut index = None;
        let name = match &statement.left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                let is_const = declaration.kind == VariableDeclarationKind::Const;
                let mut pattern = declaration.declarations.first().map(|d| &d.id);
                if let Some((_, number, item)) = counted {
                    index = Some(self.item(number, Known::Number, is_const, &mut body));
                    pattern = Some(item);
                }
                match pattern {
                    Some(pattern) => {
                        let name = self.item(pattern, known, is_const, &mut body);
                        if let BindingPattern::BindingIdentifier(id) = pattern {
                            self.note_known(id.name.as_str(), known);
                        }
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
        self.around.push(Around::a_loop(label, None));
        let mut steps = self.body(&statement.body);
        let around = self.end_loop(statement.span, &mut steps);
        body.extend(steps);
        let index = index.as_deref();
        out.push(for_each(items.resolved(), &name, index, body, &at));
        self.leave_further(around, statement.span, out);
        self.pop_scope();
    }

    /// Declares the variable of an item; the steps destructure it.
    fn item(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        known: Known,
        is_const: bool,
        body: &mut Vec<Tree>,
    ) -> String {
        if let BindingPattern::BindingIdentifier(id) = pattern {
            return self.variable(id.name.as_str(), id.span, is_const);
        }
        let name = self.fresh();
        let item = Value::ident(&name, &place(pattern.span()));
        self.bind_known(pattern, (item, known), is_const, body);
        name
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
            self.check_parts(one);
            if self.arguments_pattern(&one.id, init, is_const, out) {
                return;
            }
            self.error_object(init, "");
            let value = self.expr(init, out);
            let known = match self.sort_of(init) {
                Iterable::List => Known::Pair,
                // An item may be `undefined`, as in `pairs.find(...)`.
                _ => match self.known(init) {
                    Known::Pair => Known::Nothing,
                    known => known,
                },
            };
            return self.bind_known(&one.id, (value, known), is_const, out);
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
            Some(Expression::RegExpLiteral(regex))
                if is_const || !self.scoping.is_set(id.span.start) =>
            {
                let binding = self.declare(js, id.span, What::Regex, true);
                self.bindings[binding].is_ready = true;
                self.regexes.insert(binding, regex);
            }
            Some(init)
                if (is_const || !self.scoping.is_set(id.span.start))
                    && self.error_constant(js, init, id.span, out) => {}
            Some(init) => {
                let binding = self.declare(js, id.span, What::Variable, is_const);
                let name = self.bindings[binding].name.clone();
                self.check_text_total(js, one);
                self.check_logged(init);
                self.bindings[binding].changes = self.is_changed_date(id.span, init);
                if is_const || !self.is_set(binding) {
                    let known = self.lasting(self.known(init), id.span.start);
                    self.bindings[binding].known = known;
                    self.bindings[binding].sort = self.sort_of(one.init.as_ref().unwrap_or(init));
                    self.check_length_kept(js, one);
                    if self.is_place(init) {
                        self.places.insert(binding);
                    }
                }
                if self.bindings[binding].sort == Iterable::Unknown {
                    self.note_type(js, one.type_annotation.as_deref());
                }
                if self.bindings[binding].known == Known::Nothing {
                    self.note_known_type(js, one.type_annotation.as_deref());
                }
                match self.kept_error(js, init, out) {
                    Some(error) => out.push(set(&name, error.resolved(), &at)),
                    None => self.assign(init, &name, Hint::Fresh(&name), &at, out),
                }
                self.bindings[binding].is_ready = true;
            }
            None => {
                let name = self.variable(js, id.span, is_const);
                out.push(set(&name, Tree::undefined(&at), &at));
            }
        }
    }

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
            Kind::Node(tree) => tree.ident_name() == Some(name),
            _ => false,
        };
        if !is_set {
            out.push(set(name, value.resolved(), at));
        }
    }

    fn returns_to(&self) -> ReturnTo {
        let mut is_in_loop = false;
        for (index, around) in self.around.iter().enumerate().rev() {
            match around {
                Around::Loop { .. } => is_in_loop = true,
                Around::Switch => {}
                Around::Callback(after, _) => {
                    return ReturnTo::Callback(after.clone(), index, is_in_loop);
                }
                Around::Finally(exits) => return ReturnTo::Finally(exits.value.clone()),
                Around::Body => break,
            }
        }
        ReturnTo::Function
    }

    /// Lowers a `return` of a function, or of a callback that became a loop.
    pub(crate) fn return_value(
        &mut self,
        value: Option<&'a Expression<'a>>,
        at: Span,
        is_last: bool,
        out: &mut Vec<Tree>,
    ) {
        if let Some(value) = value {
            self.awaits(value);
            self.check_result(value);
        }
        let after = match self.returns_to() {
            ReturnTo::Callback(after, _, false) => after,
            ReturnTo::Callback(After::Nothing, index, true) => {
                if let Some(value) = value {
                    self.effect(value, out);
                }
                return self.leave_to(index, "return", None, at, out);
            }
            _ => {
                let value = match value {
                    Some(value) => {
                        self.warn_of_match(value);
                        // `return` is the last use of the value, so it may be a date that setters
                        // change.
                        self.permit(&[value]);
                        match self.returned_error(value, out) {
                            Some(error) => error,
                            None => self.expr(value, out),
                        }
                    }
                    None => Value::undefined(&place(at)),
                };
                return self.give_back(value, at, out);
            }
        };
        self.callback_value(&after, value, at, out);
        if !is_last {
            out.push(Tree::step("continue", [], &place(at)));
        }
    }

    /// Lowers the `return` of a value that is already evaluated.
    pub(crate) fn give_back(&mut self, value: Value, span: Span, out: &mut Vec<Tree>) {
        let at = place(span);
        match self.returns_to() {
            ReturnTo::Function => {
                let value = [("value", value.resolved())];
                out.push(Tree::step("return", value, &at));
            }
            ReturnTo::Finally(name) => {
                out.push(set(&name, value.resolved(), &at));
                self.exit("return", span, out);
            }
            ReturnTo::Callback(_, index, _) => {
                self.leave_to(index, "return", Some(value), span, out);
            }
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

    /// Lowers a declaration at the top of a module or of a body.
    pub(crate) fn declaration(&mut self, declaration: &'a Declaration<'a>, out: &mut Vec<Tree>) {
        match declaration {
            Declaration::VariableDeclaration(declaration) => self.variables(declaration, out),
            Declaration::FunctionDeclaration(_)
            | Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_) => {}
            Declaration::ClassDeclaration(class) => self.refused_class(class),
            Declaration::TSEnumDeclaration(other) => {
                self.causes.push(other.span.start);
                let help =
                    "give the members constants, or write an object: `const Level = { low: 0 }`";
                self.unsupported(other.span, "an enum with computed values", help);
            }
            other => {
                let help = "use constants, functions, types and interfaces";
                self.unsupported(other.span(), "this declaration", help);
            }
        }
    }

    /// Refuses a class that could not be rewritten.
    fn refused_class(&mut self, class: &'a Class<'a>) {
        let (at, what, help) = match &class.heritage {
            Some(parent) if self.is_error(&parent.expression) => (
                parent.expression.span(),
                "`extends` of this class",
                crate::words::ERROR_CLASS,
            ),
            Some(parent) => (
                parent.expression.span(),
                "`extends` of this class",
                crate::words::EXTENDS,
            ),
            None => (
                class.span,
                "this `class`",
                "write fields, a constructor, methods, getters and setters; the rest are functions",
            ),
        };
        self.causes.push(at.start);
        self.unsupported(at, what, help);
    }
}

/// Builds a loop whose condition may need steps.
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
