//! Converts TypeScript types to JSON Schemas.

use crate::lower::{Lowerer, place};
use crate::state::Named;
use crate::tree::{Data, Place, Tree};
use oxc_ast::ast::{
    Expression, PropertyKey, TSIndexSignature, TSLiteral, TSSignature, TSType, TSTypeName,
    TSTypeOperatorOperator,
};
use oxc_span::{GetSpan, Span};
use std::borrow::Cow;

/// Maximum nesting of types, named types included.
const MAX_TYPES: u32 = 64;

/// Types without a declaration that `undefined` is not of.
const NEVER_MISSING: [&str; 11] = [
    "Array",
    "Date",
    "NonNullable",
    "Omit",
    "Partial",
    "Pick",
    "Promise",
    "Readonly",
    "ReadonlyArray",
    "Record",
    "Required",
];

impl<'a> Lowerer<'a> {
    /// Converts a type to its schema.
    pub(crate) fn schema(&mut self, ty: &'a TSType<'a>, depth: u32) -> Tree {
        let at = place(ty.span());
        if depth > MAX_TYPES || !self.enter(ty.span()) {
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
            TSType::TSTypeOperatorType(inner) => match inner.operator {
                TSTypeOperatorOperator::Keyof => empty(at),
                _ => self.schema(&inner.type_annotation, depth + 1),
            },
            TSType::TSArrayType(list) => {
                let items = self.schema(&list.element_type, depth + 1);
                list_of(items, at)
            }
            TSType::TSTypeLiteral(literal) => self.members(&literal.members, depth, at),
            TSType::TSLiteralType(literal) => match literal_of(&literal.literal) {
                Some(value) => Tree::map([("const", value)], at),
                None => empty(at),
            },
            TSType::TSUnionType(union) => self.union(&union.types, depth, at),
            TSType::TSIntersectionType(all) => {
                let all = all.types.iter();
                let parts = all.map(|ty| self.schema(ty, depth + 1)).collect();
                merged(parts, at)
            }
            TSType::TSTupleType(_) => of_type("array", at),
            TSType::TSTemplateLiteralType(_) => of_type("string", at),
            TSType::TSTypeReference(reference) => {
                // A member of an enum, or a type of a namespace.
                let TSTypeName::IdentifierReference(name) = &reference.type_name else {
                    return empty(at);
                };
                let arguments = reference.type_arguments.as_ref();
                let arguments = arguments.map_or(&[][..], |arguments| &arguments.params);
                self.reference(name.name.as_str(), arguments, depth, ty.span())
            }
            // What other types give is not computed, and any value is accepted.
            _ => empty(at),
        }
    }

    fn reference(
        &mut self,
        name: &'a str,
        arguments: &'a [TSType<'a>],
        depth: u32,
        span: Span,
    ) -> Tree {
        let at = place(span);
        if let Some(named) = self.types.get(name).copied() {
            if self.open_types.contains(&name) {
                return empty(&at);
            }
            self.open_types.push(name);
            let schema = self.declared(named, depth, &at);
            self.open_types.pop();
            return schema;
        }
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
            ("Readonly" | "Promise" | "Awaited" | "NonNullable", [inner]) => {
                self.schema(inner, depth + 1)
            }
            ("Partial" | "Required" | "Pick" | "Omit", [inner, rest @ ..]) => {
                let mut schema = self.schema(inner, depth + 1);
                if !is_object(&schema) {
                    return empty(&at);
                }
                match (name, rest) {
                    ("Pick" | "Omit", [keys]) => {
                        return match keys_of(keys) {
                            Some(keys) => picked(schema, &keys, name == "Pick", &at),
                            None => of_type("object", &at),
                        };
                    }
                    ("Required", _) => {
                        let all = match schema.get("properties").map(|all| &all.data) {
                            Some(Data::Map(all)) => {
                                all.iter().map(|one| text(&one.0, &at)).collect()
                            }
                            _ => Vec::new(),
                        };
                        require(&mut schema, all, &at);
                    }
                    _ => require(&mut schema, Vec::new(), &at),
                }
                schema
            }
            _ => empty(&at),
        }
    }

    fn declared(&mut self, named: Named<'a>, depth: u32, at: &Place) -> Tree {
        let interface = match named {
            Named::Alias(ty) => return self.schema(ty, depth + 1),
            Named::Parameter => return empty(at),
            Named::Interface(interface) => interface,
        };
        let own = self.members(&interface.body.body, depth + 1, at);
        let mut parts: Vec<Tree> = Vec::new();
        for base in &interface.extends {
            if let TSTypeName::IdentifierReference(name) = &base.type_name {
                let arguments = base.type_arguments.as_ref();
                let arguments = arguments.map_or(&[][..], |all| &all.params);
                parts.push(self.reference(name.name.as_str(), arguments, depth + 1, base.span));
            } else {
                return empty(at);
            }
        }
        if parts.is_empty() {
            return own;
        }
        parts.push(own);
        merged(parts, at)
    }

    /// True if a member of a type may be missing in JSON.
    fn may_miss(&self, ty: &TSType<'a>, depth: u32) -> bool {
        match ty {
            TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_) => true,
            TSType::TSFunctionType(_) => true,
            TSType::TSUnionType(union) => union.types.iter().any(|ty| self.may_miss(ty, depth)),
            TSType::TSParenthesizedType(inner) => self.may_miss(&inner.type_annotation, depth),
            TSType::TSTypeReference(reference) => match &reference.type_name {
                TSTypeName::IdentifierReference(name) => match self.types.get(name.name.as_str()) {
                    Some(Named::Alias(ty)) if depth < MAX_TYPES => self.may_miss(ty, depth + 1),
                    Some(Named::Parameter) => true,
                    Some(_) => false,
                    None => !NEVER_MISSING.contains(&name.name.as_str()),
                },
                _ => false,
            },
            TSType::TSIndexedAccessType(_) | TSType::TSConditionalType(_) => true,
            _ => false,
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
                        _ => continue,
                    };
                    let mut schema = match &property.type_annotation {
                        Some(ty) => self.schema(&ty.type_annotation, depth + 1),
                        None => empty(at),
                    };
                    if let Some(docs) = self.docs_before(property.span.start) {
                        schema.put("description", Tree::text(&docs, &place(property.span)));
                    }
                    let ty = property.type_annotation.as_ref();
                    let may_miss = ty.is_some_and(|ty| self.may_miss(&ty.type_annotation, 0));
                    if !property.optional && !may_miss {
                        required.push(Tree::text(key, &place(property.span)));
                    }
                    properties.put_owned(Cow::Owned(key.as_bytes().to_vec()), schema);
                }
                TSSignature::TSIndexSignature(index) if is_text(index) => {
                    others = Some(self.schema(&index.type_annotation.type_annotation, depth + 1));
                }
                _ => {}
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

/// True if a signature describes members of any name.
fn is_text(index: &TSIndexSignature<'_>) -> bool {
    matches!(
        index.parameter.type_annotation.type_annotation,
        TSType::TSStringKeyword(_)
    )
}

fn is_object(schema: &Tree) -> bool {
    schema.get("type").and_then(Tree::as_str) == Some("object")
}

/// Merges the schemas of objects; a value of all these types is checked as an object otherwise.
fn merged(parts: Vec<Tree>, at: &Place) -> Tree {
    let (mut properties, mut required, mut others) = (Vec::new(), Vec::new(), None);
    for part in parts {
        if !is_object(&part) {
            return empty(at);
        }
        let Data::Map(members) = part.data else {
            continue;
        };
        for (key, value) in members {
            match (&*key, value.data) {
                (b"properties", Data::Map(all)) => {
                    for (name, schema) in all {
                        properties.retain(|known: &(Cow<'static, [u8]>, Tree)| known.0 != name);
                        properties.push((name, schema));
                    }
                }
                (b"required", Data::List(names)) => {
                    let is_new = |name: &Tree, known: &[Tree]| {
                        !known.iter().any(|known| known.as_str() == name.as_str())
                    };
                    for name in names {
                        if is_new(&name, &required) {
                            required.push(name);
                        }
                    }
                }
                (b"additionalProperties", data) => others = Some(Tree::new(data, at)),
                _ => {}
            }
        }
    }
    let mut schema = of_type("object", at);
    schema.put("properties", Tree::new(Data::Map(properties), at));
    if !required.is_empty() {
        schema.put("required", Tree::list(required, at));
    }
    if let Some(others) = others {
        schema.put("additionalProperties", others);
    }
    schema
}

fn text(text: &[u8], at: &Place) -> Tree {
    Tree::new(Data::Text(Cow::Owned(text.to_vec())), at)
}

/// Sets which members an object must have.
fn require(schema: &mut Tree, names: Vec<Tree>, at: &Place) {
    if let Data::Map(members) = &mut schema.data {
        members.retain(|member| *member.0 != *b"required");
        if !names.is_empty() {
            schema.put("required", Tree::list(names, at));
        }
    }
}

/// The texts of `'a' | 'b'`.
fn keys_of<'a>(ty: &'a TSType<'a>) -> Option<Vec<&'a str>> {
    match ty {
        TSType::TSLiteralType(literal) => match &literal.literal {
            TSLiteral::StringLiteral(text) => Some(vec![text.value.as_str()]),
            _ => None,
        },
        TSType::TSUnionType(union) => {
            let all: Option<Vec<_>> = union.types.iter().map(keys_of).collect();
            Some(all?.concat())
        }
        _ => None,
    }
}

/// Keeps these members of an object, or the others.
fn picked(mut schema: Tree, keys: &[&str], keeps: bool, at: &Place) -> Tree {
    let is_kept = |name: &[u8]| keys.iter().any(|key| key.as_bytes() == name) == keeps;
    let mut required = Vec::new();
    if let Some(Data::List(names)) = schema.get("required").map(|names| &names.data) {
        let names = names.iter();
        required = names
            .filter(|name| is_kept(name.as_str().unwrap_or_default().as_bytes()))
            .cloned()
            .collect();
    }
    if let Data::Map(members) = &mut schema.data {
        for (key, value) in members {
            if let (b"properties", Data::Map(all)) = (&**key, &mut value.data) {
                all.retain(|member| is_kept(&member.0));
            }
        }
    }
    require(&mut schema, required, at);
    schema
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
