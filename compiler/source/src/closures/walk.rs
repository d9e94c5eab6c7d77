//! Reads the statements of a source into a model: names by the scoping rules of JavaScript, and
//! the constraints on what each variable may hold.

use super::flow::{Callee, Flow, Node, PLAIN};
use super::model::{Declared, Fun, Kind, Model, Place, Ref, Sink, Symbol};
use crate::atom::code_of;
use crate::code::statements;
use crate::control::ends;
use crate::lower::Code;
use hashbrown::{HashMap, HashSet};
use oxc_ast::ast::{
    ArrowFunctionBody, BindingPattern, Declaration, ExportDefaultDeclarationKind, ForStatementInit,
    FormalParameters, Program, Statement, VariableDeclaration, VariableDeclarationKind,
};
use oxc_span::{GetSpan, Span};
use std::ops::Range;

impl<'a> Model<'a> {
    /// Reads a source without its library, whose functions have nothing to rewrite.
    pub(crate) fn read(
        source: &'a str,
        program: &'a Program<'a>,
        (agent, library): (u32, Range<u32>),
    ) -> Model<'a> {
        let mut flow = Flow::new();
        let plain = flow.holding(PLAIN);
        let data = flow.holding(super::flow::DATA);
        let mut model = Model {
            source,
            flow,
            symbols: Vec::new(),
            refs: Vec::new(),
            funs: Vec::new(),
            uses: Vec::new(),
            sites: Vec::new(),
            accesses: Vec::new(),
            stores: Vec::new(),
            sinks: Vec::new(),
            equals: Vec::new(),
            type_tests: Vec::new(),
            instance_tests: Vec::new(),
            this_symbols: HashMap::new(),
            owners: HashSet::new(),
            returns: Vec::new(),
            classes: Vec::new(),
            nodes: HashMap::new(),
            fun_spans: HashMap::new(),
            scopes: vec![HashMap::new()],
            declared: HashMap::new(),
            current: 0,
            this_of: None,
            plain,
            data,
            agent_at: Some(agent),
            agent_code: None,
            foreign: None,
            unknown_args: Vec::new(),
            narrowings: Vec::new(),
            depth: 0,
            starts: HashSet::new(),
            scoping: crate::scoping::Scoping::read(program),
            problems: Vec::new(),
        };
        model.new_fun(None, program.span, 0);
        let body = program.body.iter();
        let body: Vec<&'a Statement<'a>> = body
            .filter(|one| !library.contains(&one.span().start))
            .collect();
        model.block(&body);
        model
    }

    pub(crate) fn new_fun(&mut self, code: Option<Code<'a>>, span: Span, parent: usize) -> usize {
        let (this, result) = (self.flow.node(), self.flow.node());
        self.flow.callees.push(Callee {
            this,
            result,
            ..Callee::default()
        });
        if let Some(code) = code {
            let span = code.span();
            self.fun_spans
                .insert((span.start, span.end), self.funs.len());
        }
        self.funs.push(Fun {
            code,
            span,
            symbol: None,
            parent,
            kind: Kind::Plain,
            slot: None,
            is_inline: false,
            uses_this: false,
            whole: span,
            builtin: None,
            key: None,
        });
        self.funs.len() - 1
    }

    /// The function of this code.
    pub(crate) fn fun_at(&self, code: Code<'a>) -> Option<usize> {
        let span = code.span();
        self.fun_spans.get(&(span.start, span.end)).copied()
    }

    pub(crate) fn declare(&mut self, name: &'a str, at: Span, declared: Declared) -> usize {
        let node = self.flow.node();
        self.symbols.push(Symbol {
            name,
            at,
            declared,
            owner: self.current,
            is_top: self.scopes.len() == 1,
            is_const: false,
            is_outermost: self.scopes.len() == self.depth,
            is_short: false,
            node,
        });
        let id = self.symbols.len() - 1;
        self.declared.insert(at.start, id);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, id);
        }
        id
    }

    pub(crate) fn lookup(&self, name: &str) -> Option<usize> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.get(name).copied())
    }

    pub(crate) fn refer(
        &mut self,
        name: &str,
        at: Span,
        sets: bool,
        is_short: bool,
    ) -> Option<usize> {
        let symbol = self.lookup(name)?;
        self.refs.push(Ref {
            symbol,
            at,
            fun: self.current,
            sets,
            is_short,
        });
        Some(symbol)
    }

    pub(super) fn scoped(&mut self, body: &[&'a Statement<'a>]) {
        self.scopes.push(HashMap::new());
        self.block(body);
        self.scopes.pop();
    }

    pub(crate) fn list(&mut self, body: &'a [Statement<'a>]) {
        let body: Vec<_> = body.iter().collect();
        self.scoped(&body);
    }

    /// Reads the statements of a block whose scope is open: first the names, which functions see
    /// from the start.
    fn block(&mut self, body: &[&'a Statement<'a>]) {
        for statement in body {
            match statement {
                Statement::ExportDeclaration(export) => {
                    self.names(&export.declaration, statement.span());
                }
                Statement::ExportDefaultDeclaration(export) => {
                    if let ExportDefaultDeclarationKind::FunctionDeclaration(function) =
                        &export.declaration
                        && let Some(id) = &function.id
                    {
                        self.named_function(
                            id.name.as_str(),
                            id.span,
                            Code::Function(function),
                            statement.span(),
                        );
                    }
                }
                statement => {
                    if let Some(declaration) = statement.as_declaration() {
                        self.names(declaration, statement.span());
                    }
                }
            }
        }
        let outer = self.narrowings.len();
        for statement in body {
            self.statement(statement);
        }
        self.narrowings.truncate(outer);
    }

    fn is_agent(&self, code: Code<'a>) -> bool {
        self.agent_at == Some(code.span().start)
    }

    fn named_function(&mut self, name: &'a str, at: Span, code: Code<'a>, whole: Span) {
        let is_agent = self.is_agent(code);
        let fun = match is_agent {
            true => 0,
            false => self.new_fun(Some(code), code.span(), self.current),
        };
        let symbol = self.declare(name, at, Declared::Function(fun));
        self.symbols[symbol].is_const = true;
        if is_agent {
            return;
        }
        self.funs[fun].symbol = Some(symbol);
        self.funs[fun].whole = whole;
        let site = self.flow.function_site(fun);
        let node = self.symbols[symbol].node;
        self.flow.put(node, site);
    }

    /// Declares the names of a declaration.
    fn names(&mut self, declaration: &'a Declaration<'a>, whole: Span) {
        match declaration {
            Declaration::FunctionDeclaration(function) => {
                if let Some(id) = &function.id {
                    self.named_function(id.name.as_str(), id.span, Code::Function(function), whole);
                }
            }
            Declaration::VariableDeclaration(variables) => {
                if variables.kind == VariableDeclarationKind::Var {
                    self.foreign(variables.span);
                }
                let is_const = variables.kind == VariableDeclarationKind::Const;
                for one in &variables.declarations {
                    let code = one.init.as_ref().and_then(|init| code_of(init));
                    if let (BindingPattern::BindingIdentifier(id), true) = (&one.id, is_const)
                        && let Some(code) = code
                    {
                        let whole = match variables.declarations.len() {
                            1 => whole,
                            _ => one.span,
                        };
                        self.named_function(id.name.as_str(), id.span, code, whole);
                        continue;
                    }
                    let declared = match &one.id {
                        BindingPattern::BindingIdentifier(id) => Declared::Declarator {
                            init: one.init.as_ref().map(GetSpan::span),
                            end: one
                                .type_annotation
                                .as_ref()
                                .map_or(id.span.end, |ty| ty.span.end),
                            start: (variables.declarations.len() == 1).then_some(whole.start),
                        },
                        _ => Declared::Pattern { end: whole.end },
                    };
                    self.pattern_names(&one.id, declared, is_const);
                }
            }
            Declaration::ClassDeclaration(class) => self.class_name(class, whole),
            _ => {}
        }
    }

    /// Declares the names of a pattern.
    pub(crate) fn pattern_names(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        declared: Declared,
        is_const: bool,
    ) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                let symbol = self.declare(id.name.as_str(), id.span, declared);
                self.symbols[symbol].is_const = is_const;
            }
            BindingPattern::ObjectPattern(object) => {
                let declared = within(declared);
                for property in &object.properties {
                    self.pattern_names(&property.value, declared, is_const);
                    if property.shorthand {
                        let at = self.declared.get(&property.key.span().start);
                        if let Some(symbol) = at.copied() {
                            self.symbols[symbol].is_short = true;
                        }
                    }
                }
                if let Some(rest) = &object.rest {
                    self.pattern_names(&rest.argument, declared, is_const);
                }
            }
            BindingPattern::ArrayPattern(array) => {
                let declared = within(declared);
                for element in array.elements.iter().flatten() {
                    self.pattern_names(element, declared, is_const);
                }
                if let Some(rest) = &array.rest {
                    self.pattern_names(&rest.argument, declared, is_const);
                }
            }
            BindingPattern::AssignmentPattern(inner) => {
                self.pattern_names(&inner.left, within(declared), is_const);
            }
        }
    }

    pub(super) fn variables(&mut self, variables: &'a VariableDeclaration<'a>) {
        for one in &variables.declarations {
            let Some(init) = &one.init else {
                let node = self.plain;
                self.bind(&one.id, node);
                continue;
            };
            let is_definition = code_of(init).is_some()
                && variables.kind == VariableDeclarationKind::Const
                && matches!(&one.id, BindingPattern::BindingIdentifier(_));
            let place = match is_definition {
                true => Place::Definition,
                false => Place::Value,
            };
            let value = self.expr(init, place);
            if !is_definition {
                self.bind(&one.id, value);
            }
        }
    }

    fn statement(&mut self, statement: &'a Statement<'a>) {
        match statement {
            Statement::BlockStatement(block) => self.list(&block.body),
            Statement::ExpressionStatement(statement) => {
                self.starts.insert(statement.span.start);
                self.expr(&statement.expression, Place::Value);
            }
            Statement::IfStatement(branch) => {
                self.test(&branch.test);
                let narrowed = self.narrowed(&branch.test);
                let outer = self.narrow(narrowed, true);
                self.scoped(&[&branch.consequent]);
                self.narrowings.truncate(outer);
                self.narrow(narrowed, false);
                if let Some(other) = &branch.alternate {
                    self.scoped(&[other]);
                    self.narrowings.truncate(outer);
                } else if !ends(&branch.consequent) {
                    self.narrowings.truncate(outer);
                }
                // Otherwise the rest of the block runs only if the test fails.
            }
            Statement::WhileStatement(inner) => {
                self.test(&inner.test);
                self.scoped(&[&inner.body]);
            }
            Statement::DoWhileStatement(inner) => {
                self.scoped(&[&inner.body]);
                self.test(&inner.test);
            }
            Statement::ForStatement(inner) => {
                self.scopes.push(HashMap::new());
                match &inner.init {
                    Some(ForStatementInit::VariableDeclaration(variables)) => {
                        let declared = Declared::Head(inner.body.span());
                        self.head(variables, declared);
                        self.variables(variables);
                    }
                    Some(init) => {
                        if let Some(expr) = init.as_expression() {
                            self.expr(expr, Place::Value);
                        }
                    }
                    None => {}
                }
                for expr in [&inner.test, &inner.update].into_iter().flatten() {
                    self.expr(expr, Place::Value);
                }
                self.scoped(&[&inner.body]);
                self.scopes.pop();
            }
            Statement::ForOfStatement(inner) => {
                let list = self.expr(&inner.right, Place::Value);
                let item = self.flow.items(list);
                self.each(&inner.left, item, &inner.body);
            }
            Statement::ForInStatement(inner) => {
                let object = self.expr(&inner.right, Place::Value);
                self.sinks.push((object, inner.right.span(), Sink::Keys));
                let node = self.plain;
                self.each(&inner.left, node, &inner.body);
            }
            Statement::LabeledStatement(inner) => self.statement(&inner.body),
            Statement::ReturnStatement(inner) => {
                let value = match &inner.argument {
                    Some(value) => self.expr(value, Place::Value),
                    None => self.plain,
                };
                self.returned(
                    value,
                    inner.argument.as_ref().map(GetSpan::span),
                    inner.span,
                );
            }
            Statement::SwitchStatement(inner) => {
                let value = self.expr(&inner.discriminant, Place::Value);
                self.sinks
                    .push((value, inner.discriminant.span(), Sink::Operand));
                self.scopes.push(HashMap::new());
                let body: Vec<_> = inner
                    .cases
                    .iter()
                    .flat_map(|case| &case.consequent)
                    .collect();
                for case in &inner.cases {
                    if let Some(test) = &case.test {
                        self.expr(test, Place::Value);
                    }
                }
                self.block(&body);
                self.scopes.pop();
            }
            Statement::ThrowStatement(inner) => {
                let value = self.expr(&inner.argument, Place::Value);
                self.sinks
                    .push((value, inner.argument.span(), Sink::Thrown));
            }
            Statement::TryStatement(inner) => {
                self.list(&inner.block.body);
                if let Some(handler) = &inner.handler {
                    self.scopes.push(HashMap::new());
                    if let Some(param) = &handler.param {
                        self.pattern_names(&param.pattern, Declared::Caught, true);
                        let node = self.data;
                        self.bind(&param.pattern, node);
                    }
                    self.list(&handler.body.body);
                    self.scopes.pop();
                }
                if let Some(last) = &inner.finalizer {
                    self.list(&last.body);
                }
            }
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration),
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    self.function_body(Code::Function(function));
                }
                declaration => {
                    if let Some(expr) = declaration.as_expression() {
                        match code_of(expr).filter(|code| self.is_agent(*code)) {
                            Some(code) => self.function_body(code),
                            None => self.foreign(expr.span()),
                        }
                    }
                }
            },
            Statement::BreakStatement(_)
            | Statement::ContinueStatement(_)
            | Statement::EmptyStatement(_)
            | Statement::ImportDeclaration(_) => {}
            statement => match statement.as_declaration() {
                Some(declaration) => self.declaration(declaration),
                None => self.foreign(statement.span()),
            },
        }
    }

    fn declaration(&mut self, declaration: &'a Declaration<'a>) {
        match declaration {
            Declaration::FunctionDeclaration(function) => {
                self.function_body(Code::Function(function));
            }
            Declaration::VariableDeclaration(variables) => self.variables(variables),
            Declaration::ClassDeclaration(class) => self.class_body(class),
            Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => {}
            _ => self.foreign(declaration.span()),
        }
    }

    /// Records a value that the current function returns.
    fn returned(&mut self, value: Node, argument: Option<Span>, whole: Span) {
        let result = self.flow.callees[self.current].result;
        self.flow.edge(value, result);
        self.returns.push((whole, self.current, argument.is_some()));
        if let (0, Some(at)) = (self.current, argument) {
            self.sinks.push((value, at, Sink::Returned));
        }
    }

    /// Reads the body of a declared function.
    pub(crate) fn function_body(&mut self, code: Code<'a>) {
        let known = self.fun_at(code);
        match known {
            Some(fun) => self.body(fun, code),
            None if self.is_agent(code) => self.body(0, code),
            None => self.foreign(code.span()),
        }
    }

    /// Reads parameters and body of a function.
    pub(crate) fn body(&mut self, fun: usize, code: Code<'a>) {
        if let Code::Function(function) = code
            && function.generator
        {
            self.foreign(function.span);
        }
        if fun == 0 {
            self.agent_code = Some(code);
        }
        let outer = std::mem::replace(&mut self.current, fun);
        let this = self.this_of;
        if matches!(code, Code::Function(_)) {
            self.this_of = Some(fun);
        }
        self.scopes.push(HashMap::new());
        let depth = std::mem::replace(&mut self.depth, self.scopes.len() + 1);
        self.params(fun, code.params());
        match code {
            Code::Arrow(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => self.list(&body.statements),
                body => {
                    if let Some(value) = body.as_expression() {
                        let node = self.expr(value, Place::Value);
                        let result = self.flow.callees[fun].result;
                        self.flow.edge(node, result);
                        if fun == 0 {
                            self.sinks.push((node, value.span(), Sink::Returned));
                        }
                    }
                }
            },
            Code::Function(function) => {
                if let Some(body) = &function.body {
                    self.list(&body.statements);
                }
            }
        }
        let is_block = !matches!(code, Code::Arrow(arrow) if !matches!(arrow.body, ArrowFunctionBody::FunctionBody(_)));
        if is_block && !statements(code).last().is_some_and(ends) {
            let result = self.flow.callees[fun].result;
            self.flow.put(result, PLAIN);
        }
        self.scopes.pop();
        self.depth = depth;
        self.current = outer;
        self.this_of = this;
    }

    fn params(&mut self, fun: usize, params: &'a FormalParameters<'a>) {
        for param in &params.items {
            let declared = match (&param.pattern, fun) {
                (BindingPattern::BindingIdentifier(_), 0) => Declared::Arguments,
                _ => Declared::Param(fun),
            };
            self.pattern_names(&param.pattern, declared, false);
        }
        if let Some(rest) = &params.rest {
            self.pattern_names(&rest.rest.argument, Declared::Param(fun), false);
        }
        for param in &params.items {
            let node = match fun {
                0 => self.data,
                _ => self.flow.node(),
            };
            if fun != 0 {
                self.flow.callees[fun].params.push(node);
            }
            let mut value = node;
            if let Some(default) = &param.initializer {
                let default = self.expr(default, Place::Value);
                value = self.flow.node();
                self.flow.edge(node, value);
                self.flow.edge(default, value);
            }
            self.bind(&param.pattern, value);
        }
        if let Some(rest) = &params.rest {
            let item = self.flow.node();
            self.flow.callees[fun].rest = Some(item);
            let list = self.flow.list(item);
            self.bind(&rest.rest.argument, list);
        }
    }
}

/// Form of the names within a pattern.
fn within(declared: Declared) -> Declared {
    match declared {
        Declared::Declarator { end, .. } => Declared::Pattern { end },
        other => other,
    }
}
