//! Converts TypeScript types to JSON Schemas.

use crate::lower::{Lowerer, place};
use crate::state::Named;
use crate::tree::{Data, Place, Tree};
use oxc_ast::ast::{Expression, PropertyKey, TSLiteral, TSSignature, TSType, TSTypeName};
use oxc_span::{GetSpan, Span};
use std::borrow::Cow;

/// Maximum nesting of types, named types included.
const MAX_TYPES: u32 = 64;

impl<'a> Lowerer<'a> {
    /// Converts a type to its schema.
    pub(crate) fn schema(&mut self, ty: &'a TSType<'a>, depth: u32) -> Tree {
        let at = place(ty.span());
        if depth > MAX_TYPES || !self.enter(ty.span()) {
            if depth > MAX_TYPES {
                let help = "write `unknown` where the type begins anew";
                self.unsupported(ty.span(), "a type that contains itself", help);
            }
            return empty(&at);
        }
        let schema = self.schema_within(ty, depth, &at);
        self.leave();
        schema
    }

    fn schema_within(&mut self, ty: &'a TSType<'a>, depth: u32, at: &Place) -> Tree {
        match ty {
            TSType::TSStringKeyword(_) => of_type("string", at),
            TSType::TSNumberKeyword(_) => of_type("number", at),
            TSType::TSBooleanKeyword(_) => of_type("boolean", at),
            TSType::TSNullKeyword(_) => of_type("null", at),
            TSType::TSObjectKeyword(_) => of_type("object", at),
            TSType::TSAnyKeyword(_) | TSType::TSUnknownKeyword(_) => empty(at),
            TSType::TSParenthesizedType(inner) => self.schema(&inner.type_annotation, depth + 1),
            TSType::TSTypeOperatorType(inner) => self.schema(&inner.type_annotation, depth + 1),
            TSType::TSArrayType(list) => {
                let items = self.schema(&list.element_type, depth + 1);
                list_of(items, at)
            }
            TSType::TSTypeLiteral(literal) => self.members(&literal.members, depth, at),
            TSType::TSLiteralType(literal) => match literal_of(&literal.literal) {
                Some(value) => Tree::map([("const", value)], at),
                None => self.no_schema(ty.span()),
            },
            TSType::TSUnionType(union) => self.union(&union.types, depth, at),
            TSType::TSTypeReference(reference) => {
                let TSTypeName::IdentifierReference(name) = &reference.type_name else {
                    return self.no_schema(ty.span());
                };
                let arguments = reference.type_arguments.as_ref();
                let arguments = arguments.map_or(&[][..], |arguments| &arguments.params);
                self.reference(name.name.as_str(), arguments, depth, ty.span())
            }
            _ => self.no_schema(ty.span()),
        }
    }

    fn no_schema(&mut self, span: Span) -> Tree {
        let help = "use string, number, boolean, null, unknown, T[], Record<string, T>, unions, \
                    interfaces and object types";
        self.unsupported(span, "this type of an argument", help);
        empty(&place(span))
    }

    fn reference(
        &mut self,
        name: &str,
        arguments: &'a [TSType<'a>],
        depth: u32,
        span: Span,
    ) -> Tree {
        let at = place(span);
        match (name, arguments) {
            ("Array" | "ReadonlyArray", [item]) => {
                let items = self.schema(item, depth + 1);
                list_of(items, &at)
            }
            ("Record", [_, value]) => {
                let value = self.schema(value, depth + 1);
                let mut schema = of_type("object", &at);
                schema.put("additionalProperties", value);
                schema
            }
            ("Readonly" | "Promise", [inner]) => self.schema(inner, depth + 1),
            _ => match self.types.get(name).copied() {
                Some(Named::Alias(ty)) => self.schema(ty, depth + 1),
                Some(Named::Interface(interface)) => {
                    if let Some(base) = interface.extends.first() {
                        let help = "write all members";
                        self.unsupported(base.span, "`extends` of an interface", help);
                    }
                    self.members(&interface.body.body, depth + 1, &at)
                }
                None => {
                    let help = "declare it in the same source";
                    self.unsupported(span, &format!("the type `{name}`"), help);
                    empty(&at)
                }
            },
        }
    }

    fn members(&mut self, members: &'a [TSSignature<'a>], depth: u32, at: &Place) -> Tree {
        let mut properties = Tree::map([], at);
        let mut required = Vec::new();
        let mut others = None;
        for member in members {
            match member {
                TSSignature::TSPropertySignature(property) => {
                    let key = match &property.key {
                        PropertyKey::StaticIdentifier(id) => id.name.as_str(),
                        PropertyKey::StringLiteral(text) => text.value.as_str(),
                        key => {
                            self.no_schema(key.span());
                            continue;
                        }
                    };
                    let mut schema = match &property.type_annotation {
                        Some(ty) => self.schema(&ty.type_annotation, depth + 1),
                        None => empty(at),
                    };
                    if let Some(docs) = self.docs_before(property.span.start) {
                        schema.put("description", Tree::text(&docs, &place(property.span)));
                    }
                    if !property.optional {
                        required.push(Tree::text(key, &place(property.span)));
                    }
                    properties.put_owned(Cow::Owned(key.as_bytes().to_vec()), schema);
                }
                TSSignature::TSIndexSignature(index) => {
                    others = Some(self.schema(&index.type_annotation.type_annotation, depth + 1));
                }
                other => {
                    self.no_schema(other.span());
                }
            }
        }
        let mut schema = of_type("object", at);
        schema.put("properties", properties);
        if !required.is_empty() {
            schema.put("required", Tree::list(required, at));
        }
        if let Some(others) = others {
            schema.put("additionalProperties", others);
        }
        schema
    }

    fn union(&mut self, types: &'a [TSType<'a>], depth: u32, at: &Place) -> Tree {
        let is_missing = |ty: &TSType<'a>| matches!(ty, TSType::TSUndefinedKeyword(_));
        let types: Vec<&'a TSType<'a>> = types.iter().filter(|ty| !is_missing(ty)).collect();
        let literals: Option<Vec<Tree>> = types
            .iter()
            .map(|ty| match ty {
                TSType::TSLiteralType(literal) => literal_of(&literal.literal),
                TSType::TSNullKeyword(_) => Some(Tree::null(at)),
                _ => None,
            })
            .collect();
        if let Some(values) = literals {
            return Tree::map([("enum", Tree::list(values, at))], at);
        }
        let schemas: Vec<Tree> = types.iter().map(|ty| self.schema(ty, depth + 1)).collect();
        if let [only] = &schemas[..] {
            return only.clone();
        }
        Tree::map([("anyOf", Tree::list(schemas, at))], at)
    }
}

fn empty(at: &Place) -> Tree {
    Tree::map([], at)
}

fn of_type(name: &'static str, at: &Place) -> Tree {
    Tree::map([("type", Tree::text(name, at))], at)
}

fn list_of(items: Tree, at: &Place) -> Tree {
    let mut schema = of_type("array", at);
    schema.put("items", items);
    schema
}

fn literal_of(literal: &TSLiteral<'_>) -> Option<Tree> {
    let at = place(literal.span());
    match literal {
        TSLiteral::BooleanLiteral(value) => Some(Tree::bool(value.value, &at)),
        TSLiteral::NumericLiteral(value) => Some(Tree::number(value.value, &at)),
        TSLiteral::StringLiteral(text) => {
            let text = crate::expr::text_of(text);
            Some(Tree::new(Data::Text(Cow::Owned(text)), &at))
        }
        TSLiteral::UnaryExpression(unary) => match &unary.argument {
            Expression::NumericLiteral(value) => Some(Tree::number(-value.value, &at)),
            _ => None,
        },
        _ => None,
    }
}
