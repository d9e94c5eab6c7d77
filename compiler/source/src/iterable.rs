//! Lowers the iterables of `for ... of`: the step takes lists, JavaScript also texts and sets.

use crate::lower::Lowerer;
use crate::pattern::of;
pub(crate) use crate::state::Iterable;
use crate::state::{Known, Named};
use crate::tree::{Data, Tree};
use crate::value::Value;
use a99_core::builtins::{Gives, function_gives, gives};
use hashbrown::HashMap;
use oxc_ast::ast::{
    BindingPattern, Expression, ForOfStatement, ForStatementLeft, TSType, TSTypeAnnotation,
    TSTypeName,
};

/// Maximum length of a chain of type aliases.
const MAX_ALIASES: u32 = 8;

/// A list, with the patterns of the index and of the item.
pub(crate) type Counted<'a> = (
    &'a Expression<'a>,
    &'a BindingPattern<'a>,
    &'a BindingPattern<'a>,
);

impl<'a> Lowerer<'a> {
    /// Lowers the items of `for ... of`; those of a text are its characters.
    pub(crate) fn iterated(&mut self, expr: &'a Expression<'a>, out: &mut Vec<Tree>) -> Value {
        let sort = self.sort_of(expr);
        let value = self.expr(expr, out);
        if self.known(expr) == Known::Match {
            let found = self.found_match(value, out);
            return self.match_list(expr, found);
        }
        let at = value.place.clone();
        let list = |value: Value| of("Array", "from", vec![value.operand()], &at);
        match sort {
            Iterable::List => value,
            Iterable::Text | Iterable::Set | Iterable::Map => Value::node(list(value)),
            Iterable::Unknown | Iterable::Object => {
                if sort == Iterable::Object {
                    self.check_iterated(expr);
                }
                self.items_of(value)
            }
        }
    }

    /// Matches `for (const [index, item] of list.entries())`.
    pub(crate) fn counted(&self, statement: &'a ForOfStatement<'a>) -> Option<Counted<'a>> {
        let Expression::CallExpression(call) = &statement.right else {
            return None;
        };
        let Expression::StaticMemberExpression(member) = &call.callee else {
            return None;
        };
        let ForStatementLeft::VariableDeclaration(declaration) = &statement.left else {
            return None;
        };
        let is_entries = member.property.name == "entries" && call.arguments.is_empty();
        let is_plain = is_entries && !member.optional && !call.optional;
        let object = &member.object;
        let is_function = self.free_name(object).is_some();
        let BindingPattern::ArrayPattern(pair) = &declaration.declarations.first()?.id else {
            return None;
        };
        let (None, [Some(index), Some(item)]) = (&pair.rest, &pair.elements[..]) else {
            return None;
        };
        let counts = match self.sort_of(object) {
            Iterable::Set | Iterable::Map => false,
            Iterable::Unknown => !self.has_maps,
            _ => true,
        };
        let fits = is_plain && !is_function && counts;
        fits.then_some((object, index, item))
    }

    /// Infers the kind of iterable from the form of an expression.
    pub(crate) fn sort_of(&self, expr: &Expression<'a>) -> Iterable {
        self.look(Iterable::Unknown, || self.sort_within(expr))
    }

    fn sort_within(&self, expr: &Expression<'a>) -> Iterable {
        use Iterable::{List, Map, Object, Set, Text, Unknown};
        match expr {
            Expression::TSAsExpression(cast) => match self.sort_of_type(&cast.type_annotation, 0) {
                Unknown => self.sort_of(&cast.expression),
                sort => sort,
            },
            Expression::TSSatisfiesExpression(inner) => self.sort_of(&inner.expression),
            Expression::TSNonNullExpression(inner) => self.sort_of(&inner.expression),
            Expression::AwaitExpression(inner) => self.sort_of(&inner.argument),
            Expression::ArrayExpression(_) => List,
            Expression::ObjectExpression(_) => Object,
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Text,
            Expression::Identifier(id) => match self.lookup(id.name.as_str()) {
                Some(id) => self.bindings[id].sort,
                None => Unknown,
            },
            Expression::NewExpression(new) => match self.free_name(&new.callee) {
                Some("Set") => Set,
                Some("Map") => Map,
                Some("Array") => List,
                _ => Unknown,
            },
            Expression::ConditionalExpression(conditional) => {
                let yes = self.sort_of(&conditional.consequent);
                match yes == self.sort_of(&conditional.alternate) {
                    true => yes,
                    false => Unknown,
                }
            }
            Expression::CallExpression(call) => match &call.callee {
                Expression::StaticMemberExpression(member) if !member.optional => {
                    let name = member.property.name.as_str();
                    let namespace = self.free_name(&member.object).unwrap_or_default();
                    let given = match function_gives(namespace, name) {
                        Gives::Unknown => gives(name),
                        given => given,
                    };
                    match (namespace, name) {
                        ("Promise", "all" | "allSettled") => List,
                        ("Map", "groupBy") => Map,
                        ("", "set") if self.sort_of(&member.object) == Map => Map,
                        ("", "add") if self.sort_of(&member.object) == Set => Set,
                        _ => match given {
                            Gives::Part | Gives::Joined => self.sort_of(&member.object),
                            Gives::List | Gives::Texts | Gives::Items => List,
                            Gives::Text => Text,
                            _ => Unknown,
                        },
                    }
                }
                callee if self.free_name(callee).is_some_and(gives_text) => Text,
                callee if self.free_name(callee) == Some("callAll") => List,
                _ => Unknown,
            },
            _ => Unknown,
        }
    }

    fn sort_of_type(&self, ty: &TSType<'a>, depth: u32) -> Iterable {
        match ty {
            TSType::TSArrayType(_) | TSType::TSTupleType(_) => Iterable::List,
            TSType::TSStringKeyword(_) => Iterable::Text,
            TSType::TSTypeLiteral(_) => Iterable::Object,
            TSType::TSParenthesizedType(inner) => self.sort_of_type(&inner.type_annotation, depth),
            TSType::TSTypeOperatorType(inner) => self.sort_of_type(&inner.type_annotation, depth),
            TSType::TSTypeReference(reference) => {
                let TSTypeName::IdentifierReference(name) = &reference.type_name else {
                    return Iterable::Unknown;
                };
                match (name.name.as_str(), self.types.get(name.name.as_str())) {
                    (_, Some(Named::Alias(ty))) if depth < MAX_ALIASES => {
                        self.sort_of_type(ty, depth + 1)
                    }
                    ("Array" | "ReadonlyArray", None) => Iterable::List,
                    ("Map" | "ReadonlyMap", None) => Iterable::Map,
                    ("Set" | "ReadonlySet", None) => Iterable::Set,
                    _ => Iterable::Unknown,
                }
            }
            _ => Iterable::Unknown,
        }
    }

    /// Records the declared type of the latest variable of this name.
    pub(crate) fn note_type(&mut self, js: &str, ty: Option<&TSTypeAnnotation<'a>>) {
        if let Some(ty) = ty {
            let sort = self.sort_of_type(&ty.type_annotation, 0);
            self.note_sort(js, sort);
        }
    }

    /// Records the kind of iterable of a variable that only its declaration sets.
    pub(crate) fn note_sort(&mut self, js: &str, sort: Iterable) {
        if let Some(id) = self.lookup(js)
            && !self.is_set(id)
        {
            self.bindings[id].sort = sort;
        }
    }
}

/// Reads the kind of iterable of each argument from the input schema.
pub(crate) fn sorts_of(schema: &Tree) -> HashMap<String, Iterable> {
    let mut sorts = HashMap::new();
    let properties = schema.get("properties").map(|tree| &tree.data);
    if let Some(Data::Map(members)) = properties {
        for (key, ty) in members {
            let sort = match ty.get("type").and_then(Tree::as_str) {
                Some("array") => Iterable::List,
                Some("string") => Iterable::Text,
                Some("object") => Iterable::Object,
                _ => continue,
            };
            sorts.insert(String::from_utf8_lossy(key).into_owned(), sort);
        }
    }
    sorts
}

fn gives_text(function: &str) -> bool {
    function_gives("", function) == Gives::Text
}
