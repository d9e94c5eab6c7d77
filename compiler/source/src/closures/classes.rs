//! Reads classes into a model: an instance is an object, a method a function of it.

use super::flow::{Made, Members};
use super::model::{ClassInfo, Declared, Kind, Model, Place, Symbol};
use crate::lower::Code;
use oxc_ast::ast::{Class, ClassElement, Expression, MethodDefinitionKind, PropertyKey};
use oxc_span::{GetSpan, Span};

impl<'a> Model<'a> {
    /// The variable that stands for `this` of a function.
    pub(crate) fn this_symbol(&mut self, fun: usize) -> usize {
        if let Some(symbol) = self.this_symbols.get(&fun) {
            return *symbol;
        }
        let start = self.funs[fun].span.start;
        self.symbols.push(Symbol {
            name: "self",
            at: Span::new(start, start),
            declared: Declared::Param(fun),
            owner: fun,
            is_top: false,
            is_const: true,
            is_outermost: false,
            is_short: false,
            node: self.flow.callees[fun].this,
        });
        let symbol = self.symbols.len() - 1;
        self.this_symbols.insert(fun, symbol);
        symbol
    }

    /// The name of a class member; `None` if it is computed.
    fn member_name(&self, key: &PropertyKey<'a>) -> Option<String> {
        match key {
            PropertyKey::PrivateIdentifier(id) => Some(self.private_name(id.span).to_owned()),
            key => key.static_name().map(|name| name.to_string()),
        }
    }

    /// Declares a class with its functions.
    pub(crate) fn class_name(&mut self, class: &'a Class<'a>, whole: Span) {
        let Some(id) = &class.id else {
            self.foreign(class.span);
            return;
        };
        let name = id.name.as_str();
        let number = self.classes.len();
        let is_nested = self.scopes.len() != 1;
        let symbol = self.declare(name, id.span, Declared::Class(number));
        self.symbols[symbol].is_const = true;
        let site = self.flow.class_site(number);
        let node = self.symbols[symbol].node;
        self.flow.put(node, site);
        let instance = self.flow.object(Made::Instance(number));
        let fields = self.new_fun(None, class.body.span, self.current);
        self.funs[fields].kind = Kind::Constructor;
        self.this_symbol(fields);
        let this = self.flow.callees[fields].this;
        self.flow.put(this, instance);
        let mut members = Members::default();
        let mut functions = Vec::new();
        let mut constructor = None;
        let mut has_private = false;
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method) => {
                    let Some(name) = self.member_name(&method.key).filter(|_| !method.computed)
                    else {
                        let help = "give the method a name";
                        self.refuse(method.span, "a method with a computed name", help);
                        continue;
                    };
                    let code = Code::Function(&method.value);
                    let fun = self.new_fun(Some(code), method.value.span, self.current);
                    self.funs[fun].kind = Kind::Method;
                    functions.push((&*method.value, fun));
                    let this = self.flow.callees[fun].this;
                    if !method.r#static {
                        self.flow.callees[fun].is_method = true;
                        self.flow.put(this, instance);
                    }
                    let known = match method.kind {
                        MethodDefinitionKind::Constructor => {
                            self.funs[fun].kind = Kind::Constructor;
                            let shared = self.this_symbol(fields);
                            self.this_symbols.insert(fun, shared);
                            constructor = Some(fun);
                            continue;
                        }
                        _ if method.r#static && method.kind == MethodDefinitionKind::Method => {
                            &mut members.statics
                        }
                        MethodDefinitionKind::Method => &mut members.methods,
                        MethodDefinitionKind::Get if !method.r#static => &mut members.getters,
                        MethodDefinitionKind::Set if !method.r#static => &mut members.setters,
                        _ => {
                            let help = "write a static method";
                            self.refuse(method.span, "a static getter or setter", help);
                            continue;
                        }
                    };
                    known.insert(name, fun);
                }
                ClassElement::PropertyDefinition(property) => {
                    let name = self
                        .member_name(&property.key)
                        .filter(|_| !property.computed);
                    let Some(name) = name else {
                        let help = "give the field a name";
                        self.refuse(property.span, "a field with a computed name", help);
                        continue;
                    };
                    has_private |= name.starts_with('#') && !property.r#static;
                    match property.r#static {
                        true => {
                            let node = self.flow.node();
                            members.fields.insert(name, node);
                        }
                        false => self.flow.give(instance, &name),
                    }
                }
                other => {
                    let help = "write fields, methods, getters and a constructor";
                    self.refuse(other.span(), "this part of a class", help);
                }
            }
        }
        if let Some(parent) = &class.heritage {
            let is_error = self.text_of(parent.expression.span()).ends_with("Error");
            let help = match is_error {
                true => crate::words::ERROR_CLASS,
                false => crate::words::EXTENDS,
            };
            self.refuse(parent.expression.span(), "`extends` of this class", help);
        }
        self.flow.classes.push(members);
        self.classes.push(ClassInfo {
            node: class,
            name,
            whole,
            constructor,
            fields,
            functions,
            instance,
            has_private,
            is_nested,
        });
    }

    /// Reads the code in a class.
    pub(crate) fn class_body(&mut self, class: &'a Class<'a>) {
        let known = self.classes.iter();
        let Some(number) = known
            .into_iter()
            .position(|known| known.node.span == class.span)
        else {
            self.foreign(class.span);
            return;
        };
        let declares = |method: &oxc_ast::ast::MethodDefinition<'a>| {
            let mut params = method.value.params.items.iter();
            params.any(|param| param.accessibility.is_some() || param.readonly)
        };
        for element in &class.body.body {
            if let ClassElement::MethodDefinition(method) = element
                && declares(method)
            {
                let help = "declare the field, and set it: `this.x = x`";
                self.refuse(
                    method.value.params.span,
                    "a parameter that declares a field",
                    help,
                );
            }
        }
        if !class.decorators.is_empty() || class.r#abstract {
            self.foreign(class.span);
        }
        let fields = self.classes[number].fields;
        let instance = self.classes[number].instance;
        for element in &class.body.body {
            match element {
                ClassElement::PropertyDefinition(property) => {
                    let name = self.member_name(&property.key).unwrap_or_default();
                    let outer = (self.current, self.this_of);
                    if !property.r#static {
                        (self.current, self.this_of) = (fields, Some(fields));
                    } else {
                        self.this_of = None;
                    }
                    let value = match &property.value {
                        Some(value) => self.expr(value, Place::Value),
                        None => self.plain,
                    };
                    (self.current, self.this_of) = outer;
                    let field = match property.r#static {
                        true => self.flow.classes[number].fields.get(&name).copied(),
                        false => Some(self.flow.field(instance, &name)),
                    };
                    if let Some(field) = field {
                        self.flow.edge(value, field);
                    }
                }
                ClassElement::MethodDefinition(method) => {
                    let functions = &self.classes[number].functions;
                    let known = functions
                        .iter()
                        .find(|known| known.0.span == method.value.span);
                    let Some((_, fun)) = known.copied() else {
                        continue;
                    };
                    self.body(fun, Code::Function(&method.value));
                    if method.r#static && self.funs[fun].uses_this {
                        let help = "write the name of the class";
                        self.refuse(method.span, "`this` in a static method", help);
                    }
                }
                _ => {}
            }
        }
    }

    /// True if an expression is simple enough to be evaluated twice: a name, `this`, or a member
    /// of one.
    pub(crate) fn is_simple(expr: &Expression<'a>) -> bool {
        match expr.get_inner_expression() {
            Expression::Identifier(_) | Expression::ThisExpression(_) => true,
            Expression::StaticMemberExpression(member) => Self::is_simple(&member.object),
            Expression::ComputedMemberExpression(member) => {
                let is_plain = matches!(
                    member.expression.get_inner_expression(),
                    Expression::Identifier(_)
                        | Expression::StringLiteral(_)
                        | Expression::NumericLiteral(_)
                );
                is_plain && Self::is_simple(&member.object)
            }
            _ => false,
        }
    }
}
