//! Lowers a whole source: chooses the agent and builds the root of the program.

use crate::codes;
use crate::iterable::sorts_of;
use crate::lower::{BindingId, Code, Function, Lowerer, What, place, set};
use crate::pattern::all_arguments;
use crate::state::Named;
use crate::tree::{Data, Place, Tree};
use hashbrown::HashMap;
use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression, FormalParameters,
    Program, Statement, TSType, TSTypeParameterDeclaration, VariableDeclaration,
    VariableDeclarationKind,
};
use oxc_span::{GetSpan, Span};
use std::borrow::Cow;

/// Maximum bytes of a literal that replaces the uses of its constant.
const MAX_INLINE: u32 = 64;

/// A function at the top of a source.
struct Top<'a> {
    name: Option<&'a str>,
    code: Code<'a>,
    is_exported: bool,
    is_default: bool,
    /// Source offset of its declaration.
    start: u32,
    span: Span,
}

impl<'a> Lowerer<'a> {
    /// Lowers a source to the root of its program.
    pub(crate) fn module(&mut self, program: &'a Program<'a>) -> Option<Tree> {
        self.note_comments(program);
        let tops = self.tops(program);
        let agent = self.choose(&tops, program.span)?;
        self.by_value.agent_at = Some(tops[agent].code.span().start);
        let at = place(tops[agent].span);
        self.functions.push(Function {
            name: String::new(),
            code: None,
            whole: None,
            arity: 0,
            has_rest: false,
            gives_value: false,
            params: Vec::new(),
            steps: Vec::new(),
            place: at.clone(),
            reads: Vec::new(),
            calls: Vec::new(),
            parent: 0,
            copied: None,
            is_made: false,
            has_copies: false,
            is_dropped: false,
        });
        for (index, top) in tops.iter().enumerate() {
            let Some(name) = top.name else {
                continue;
            };
            if index == agent {
                self.declare(name, top.span, What::Agent, true);
            } else {
                let first = self.functions.len();
                self.named_function(name, top.code, top.span);
                if top.start >= self.end {
                    self.functions[first..]
                        .iter_mut()
                        .for_each(|f| f.is_made = true);
                }
            }
        }
        let mut steps = Vec::new();
        self.declare_box(&at, &mut steps);
        for statement in &program.body {
            self.top_statement(statement, &mut steps);
        }
        let code = tops[agent].code;
        self.push_scope();
        let schema = self.agent_params(code, tops[agent].start, &mut steps);
        match code {
            Code::Function(function) => {
                if function.generator {
                    self.unsupported(function.span, "a generator", crate::words::GENERATOR);
                }
                if let Some(body) = &function.body {
                    self.block(&body.statements, &mut steps);
                }
            }
            Code::Arrow(arrow) => self.arrow_body(arrow, &mut steps),
        }
        self.pop_scope();
        self.finish_functions(1);
        self.drop_copied();
        Some(self.root(schema, steps, &at))
    }

    fn root(&mut self, schema: Option<Tree>, mut steps: Vec<Tree>, at: &Place) -> Tree {
        if !self.arguments.is_empty() {
            let is_same = self.arguments.iter().all(|(name, key)| name == key);
            let keys = match is_same {
                true => {
                    let names = self.arguments.iter();
                    Tree::list(names.map(|(name, _)| Tree::text(name, at)).collect(), at)
                }
                false => {
                    let mut keys = Tree::map([], at);
                    for (name, key) in &self.arguments {
                        let name = Cow::Owned(name.as_bytes().to_vec());
                        keys.put_owned(name, Tree::text(key, at));
                    }
                    keys
                }
            };
            steps.insert(0, Tree::step("varsImport", [("keys", keys)], at));
        }
        let mut root = Tree::step("seq", [("a99", Tree::number(4.0, at))], at);
        if let Some(schema) = schema {
            root.put("inputSchema", schema);
        }
        if self.functions.iter().skip(1).any(|f| !f.is_dropped) {
            let mut helpers = Tree::map([], at);
            for (id, function) in self.functions.iter_mut().enumerate().skip(1) {
                if function.is_dropped {
                    continue;
                }
                let mut params = vec![Tree::new(Data::Captures(id), &function.place)];
                params.append(&mut function.params);
                let place = function.place.clone();
                let steps = std::mem::take(&mut function.steps);
                let helper = Tree::map(
                    [
                        ("paramNames", Tree::list(params, &place)),
                        ("steps", Tree::list(steps, &place)),
                    ],
                    &place,
                );
                helpers.put_owned(Cow::Owned(function.name.as_bytes().to_vec()), helper);
            }
            root.put("helpers", helpers);
        }
        root.put("steps", Tree::list(steps, at));
        root
    }

    /// Collects the functions and types at the top.
    fn tops(&mut self, program: &'a Program<'a>) -> Vec<Top<'a>> {
        let mut tops = Vec::new();
        for statement in &program.body {
            let start = statement.span().start;
            match statement {
                Statement::ExportDeclaration(export) => {
                    self.top_declaration(&export.declaration, true, start, &mut tops);
                }
                Statement::ExportDefaultDeclaration(export) => {
                    let code = match &export.declaration {
                        ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                            let name = function.id.as_ref().map(|id| id.name.as_str());
                            Some((name, Code::Function(function)))
                        }
                        declaration => declaration
                            .as_expression()
                            .and_then(|expr| crate::atom::code_of(expr).map(|code| (None, code))),
                    };
                    if let Some((name, code)) = code {
                        tops.push(Top {
                            name,
                            code,
                            is_exported: true,
                            is_default: true,
                            start,
                            span: code.span(),
                        });
                    }
                }
                statement => {
                    if let Some(declaration) = statement.as_declaration() {
                        self.top_declaration(declaration, false, start, &mut tops);
                    }
                }
            }
        }
        tops
    }

    fn top_declaration(
        &mut self,
        declaration: &'a Declaration<'a>,
        is_exported: bool,
        start: u32,
        tops: &mut Vec<Top<'a>>,
    ) {
        let mut add = |name: &'a str, code: Code<'a>, span: Span| {
            tops.push(Top {
                name: Some(name),
                code,
                is_exported,
                is_default: false,
                start,
                span,
            });
        };
        match declaration {
            Declaration::FunctionDeclaration(function) => {
                if let Some(id) = &function.id {
                    add(id.name.as_str(), Code::Function(function), id.span);
                }
            }
            Declaration::VariableDeclaration(variables) => {
                for one in &variables.declarations {
                    let BindingPattern::BindingIdentifier(id) = &one.id else {
                        continue;
                    };
                    let code = one
                        .init
                        .as_ref()
                        .and_then(|init| crate::atom::code_of(init));
                    if let Some(code) = code {
                        add(id.name.as_str(), code, id.span);
                    }
                }
            }
            Declaration::TSTypeAliasDeclaration(alias) => {
                self.type_parameters(alias.type_parameters.as_deref());
                let named = Named::Alias(&alias.type_annotation);
                self.types.entry(alias.id.name.as_str()).or_insert(named);
            }
            Declaration::TSInterfaceDeclaration(interface) => {
                self.type_parameters(interface.type_parameters.as_deref());
                let named = Named::Interface(interface);
                self.types
                    .entry(interface.id.name.as_str())
                    .or_insert(named);
            }
            _ => {}
        }
    }

    fn type_parameters(&mut self, all: Option<&'a TSTypeParameterDeclaration<'a>>) {
        for one in all.iter().flat_map(|all| &all.params) {
            self.types.insert(one.name.name.as_str(), Named::Parameter);
        }
    }

    /// Chooses the agent: the default export, else the function called `agent`, else the only
    /// exported function, else the only function.
    fn choose(&mut self, tops: &[Top<'a>], span: Span) -> Option<usize> {
        let only = |is: &dyn Fn(&Top<'a>) -> bool| {
            let own = (0..tops.len()).filter(|index| tops[*index].start < self.end);
            let mut found = own.filter(|index| is(&tops[*index]));
            let first = found.next()?;
            found.next().is_none().then_some(first)
        };
        let chosen = only(&|top| Some(top.code.span().start) == self.by_value.agent_at)
            .or_else(|| only(&|top| top.is_default))
            .or_else(|| only(&|top| top.name == Some("agent")))
            .or_else(|| only(&|top| top.is_exported))
            .or_else(|| only(&|_| true));
        if chosen.is_none() {
            let message = match tops.is_empty() {
                true => "the source has no function that could be the agent",
                false => "several functions could be the agent",
            };
            let help = match self.source.trim_start().starts_with("```") {
                true => {
                    "remove the fence: the lines that begin with ```` ``` ````, and what stands around them"
                }
                false => "write `export default function agent({ a, b }) { ... }`",
            };
            let at = Span::new(span.start, span.start);
            self.deny(codes::NO_AGENT, at, message, help);
        }
        chosen
    }

    /// Lowers a statement at the top: constants are set before the agent's own steps.
    fn top_statement(&mut self, statement: &'a Statement<'a>, out: &mut Vec<Tree>) {
        match statement {
            Statement::ExportDeclaration(export) => self.top_variables(&export.declaration, out),
            Statement::ExportDefaultDeclaration(export) => {
                let is_code = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(_) => true,
                    declaration => declaration
                        .as_expression()
                        .is_some_and(|expr| crate::atom::code_of(expr).is_some()),
                };
                if !is_code {
                    let help = "write `export default function agent({ a }) { ... }`";
                    self.unsupported(export.span, "a default export that is no function", help);
                }
            }
            Statement::ImportDeclaration(import) if import.import_kind.is_type() => {}
            Statement::ImportDeclaration(import) => {
                let help = "remove it: atoms are functions that are there, as in `await httpFetch({ \
                            url })`, and so are the builtins";
                self.unsupported(import.span, "an import", help);
            }
            Statement::EmptyStatement(_) => {}
            statement => match statement.as_declaration() {
                Some(declaration) => self.top_variables(declaration, out),
                None => {
                    let help = "put it into the agent: only declarations stand outside";
                    self.unsupported(statement.span(), "a statement at the top", help);
                }
            },
        }
    }

    fn top_variables(&mut self, declaration: &'a Declaration<'a>, out: &mut Vec<Tree>) {
        let Declaration::VariableDeclaration(variables) = declaration else {
            return self.declaration(declaration, out);
        };
        if variables.kind == VariableDeclarationKind::Const && self.inline(variables) {
            return;
        }
        self.variables(variables, out);
    }

    /// Inlines a constant that holds a short literal. True also for a constant that holds a
    /// function, which is already declared.
    fn inline(&mut self, variables: &'a VariableDeclaration<'a>) -> bool {
        let [one] = &variables.declarations[..] else {
            return false;
        };
        let (BindingPattern::BindingIdentifier(id), Some(init)) = (&one.id, &one.init) else {
            return false;
        };
        if crate::atom::code_of(init).is_some() {
            return true;
        }
        let is_short = init.span().size() <= MAX_INLINE;
        let is_literal = match init.get_inner_expression() {
            Expression::UnaryExpression(unary) => {
                matches!(unary.argument, Expression::NumericLiteral(_))
            }
            Expression::StringLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_) => true,
            _ => false,
        };
        if !is_short || !is_literal {
            return false;
        }
        let mut steps = Vec::new();
        let Some(value) = self.expr(init, &mut steps).literal() else {
            return false;
        };
        let binding = self.declare(id.name.as_str(), id.span, What::Literal(value), true);
        self.bindings[binding].is_ready = true;
        true
    }

    /// Declares the agent's parameter and returns the input schema that its type and comments
    /// define.
    fn agent_params(&mut self, code: Code<'a>, start: u32, out: &mut Vec<Tree>) -> Option<Tree> {
        let params: &'a FormalParameters<'a> = code.params();
        let docs = self.docs_before(start);
        let at = place(params.span);
        if let Some(rest) = &params.rest {
            let help = "write `function agent({ a, b })`";
            self.unsupported(rest.span, "a rest parameter of the agent", help);
        }
        if let Some(second) = params.items.get(1) {
            let help = "write `function agent({ a, b })`";
            self.unsupported(second.span, "a second parameter of the agent", help);
        }
        let mut schema = None;
        if let Some(param) = params.items.first() {
            let is_empty_object = |expr: &Expression<'a>| matches!(expr, Expression::ObjectExpression(object) if object.properties.is_empty());
            if let Some(default) = &param.initializer
                && !is_empty_object(default)
            {
                let help = "give defaults to the names: `function agent({ a = 1 })`";
                self.unsupported(param.span, "a default for all arguments", help);
            }
            if let Some(ty) = &param.type_annotation {
                schema = self.agent_schema(&ty.type_annotation);
                self.argument_sorts = schema.as_ref().map(sorts_of).unwrap_or_default();
            }
            match &param.pattern {
                BindingPattern::ObjectPattern(object) => self.import_pattern(object, false, out),
                BindingPattern::BindingIdentifier(id) if self.wants_all_arguments => {
                    let (js, at) = (id.name.as_str(), place(id.span));
                    let name = self.variable(js, id.span, false);
                    out.push(set(&name, all_arguments(&at), &at));
                    self.note_type(js, param.type_annotation.as_deref());
                    self.note_known_type(js, param.type_annotation.as_deref());
                }
                BindingPattern::BindingIdentifier(id) => {
                    let id = self.declare(id.name.as_str(), id.span, What::Arguments, true);
                    self.bindings[id].is_ready = true;
                }
                other => {
                    let help = "write `function agent({ a, b })`";
                    self.unsupported(other.span(), "this parameter of the agent", help);
                }
            }
            if param.type_annotation.is_some() {
                // The type already states which arguments are required.
                self.named_arguments.clear();
            }
            self.optional_defaults(&param.pattern, schema.as_mut());
        }
        let Some(docs) = docs else {
            return schema;
        };
        let mut schema =
            schema.unwrap_or_else(|| Tree::map([("type", Tree::text("object", &at))], &at));
        schema.put("description", Tree::text(&docs, &at));
        Some(schema)
    }

    fn agent_schema(&mut self, ty: &'a TSType<'a>) -> Option<Tree> {
        let schema = self.schema(ty, 0);
        match &schema.data {
            Data::Map(members) if members.is_empty() => None,
            _ => Some(schema),
        }
    }

    /// Makes arguments with a default optional in the schema.
    fn optional_defaults(&mut self, pattern: &'a BindingPattern<'a>, schema: Option<&mut Tree>) {
        let (BindingPattern::ObjectPattern(object), Some(schema)) = (pattern, schema) else {
            return;
        };
        let mut optional = Vec::new();
        for property in &object.properties {
            if let BindingPattern::AssignmentPattern(_) = &property.value
                && let Some(name) = property.key.static_name()
            {
                optional.push(name.to_string());
            }
        }
        let Data::Map(members) = &mut schema.data else {
            return;
        };
        for (key, value) in members {
            if **key == *b"required"
                && let Data::List(names) = &mut value.data
            {
                names.retain(|name| {
                    !name
                        .as_str()
                        .is_some_and(|name| optional.iter().any(|o| o == name))
                });
            }
        }
    }

    fn note_comments(&mut self, program: &'a Program<'a>) {
        let jsdoc = program.comments.iter().filter(|comment| comment.is_jsdoc());
        self.comments = jsdoc
            .map(|comment| {
                let span = comment.content_span();
                let text = self.source.get(span.start as usize..span.end as usize);
                (comment.attached_to, plain(text.unwrap_or_default()))
            })
            .collect::<HashMap<u32, String>>();
    }

    /// Returns the JSDoc comment before this offset.
    pub(crate) fn docs_before(&self, start: u32) -> Option<String> {
        self.comments
            .get(&start)
            .filter(|text| !text.is_empty())
            .cloned()
    }

    /// Computes the captures of each function: the outer variables that it reads, and those that
    /// its callees need and it does not own.
    pub(crate) fn captures(&self) -> Vec<Vec<BindingId>> {
        let mut all: Vec<Vec<BindingId>> = self.functions.iter().map(|f| f.reads.clone()).collect();
        loop {
            let mut changed = false;
            for (id, function) in self.functions.iter().enumerate() {
                for &called in &function.calls {
                    for binding in all[called].clone() {
                        if self.bindings[binding].owner != id && !all[id].contains(&binding) {
                            all[id].push(binding);
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

    /// Refuses calls before the initialisation of variables that the callee captures.
    pub(crate) fn check_calls(&mut self, captures: &[Vec<usize>]) {
        for (caller, called, span) in std::mem::take(&mut self.calls) {
            for id in &captures[called] {
                let binding = &self.bindings[*id];
                if binding.owner == caller && binding.at > span.start {
                    let name = binding.name.clone();
                    let message = format!("the function reads `{name}`, which is declared later");
                    self.deny(
                        codes::BAD_BINDING,
                        span,
                        message,
                        "declare it before the call",
                    );
                }
            }
        }
    }
}

/// Strips the stars of a JSDoc comment; the text keeps at most 4000 bytes.
fn plain(comment: &str) -> String {
    let lines = comment
        .lines()
        .map(|line| line.trim().trim_start_matches('*').trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let text = lines.join("\n");
    let end = text.floor_char_boundary(4000);
    text[..end].to_owned()
}
