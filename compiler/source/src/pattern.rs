//! Lowers parameters and destructuring patterns.

use crate::lower::{Code, Lowerer, What, place, set};
use crate::state::{Iterable, Known};
use crate::tree::{Place, Tree};
use crate::value::{Kind, Value};
use oxc_ast::ast::{
    ArrayPattern, AssignmentPattern, BindingPattern, Expression, ObjectPattern, PropertyKey,
};
use oxc_span::{GetSpan, Span};

/// Maximum bytes of source text that name a value in a message.
const MAX_NAME: usize = 60;

impl<'a> Lowerer<'a> {
    /// Declares the parameters of a helper and adds steps for defaults and patterns.
    pub(crate) fn params(&mut self, code: Code<'a>, out: &mut Vec<Tree>) -> Vec<Tree> {
        if let Code::Function(function) = code
            && function.generator
        {
            self.unsupported(function.span, "a generator", crate::words::GENERATOR);
        }
        let params = code.params();
        let mut names = Vec::new();
        for (index, param) in params.items.iter().enumerate() {
            let at = place(param.span);
            if let (Some(function), BindingPattern::BindingIdentifier(id)) =
                (self.bound_param(index), &param.pattern)
            {
                let what = What::Function(function);
                let binding = self.declare(id.name.as_str(), id.span, what, true);
                self.bindings[binding].is_ready = true;
                continue;
            }
            let (name, pattern) = match &param.pattern {
                BindingPattern::BindingIdentifier(id) => {
                    (self.variable(id.name.as_str(), id.span, false), None)
                }
                pattern => (self.fresh(), Some(pattern)),
            };
            if let Some(default) = &param.initializer {
                self.default(&name, default, &at, out);
            }
            if let Some(pattern) = pattern {
                self.bind_pattern(pattern, Value::ident(&name, &at), false, out);
            }
            if let (BindingPattern::BindingIdentifier(id), None) =
                (&param.pattern, &param.initializer)
            {
                self.note_type(id.name.as_str(), param.type_annotation.as_deref());
                self.note_known_type(id.name.as_str(), param.type_annotation.as_deref());
            }
            names.push(Tree::text(&name, &at));
        }
        if let Some(rest) = &params.rest {
            let at = place(rest.span);
            let name = match &rest.rest.argument {
                BindingPattern::BindingIdentifier(id) => {
                    let js = id.name.as_str();
                    let name = self.variable(js, id.span, false);
                    self.note_sort(js, Iterable::List);
                    name
                }
                pattern => {
                    let name = self.fresh();
                    self.bind_pattern(pattern, Value::ident(&name, &at), false, out);
                    name
                }
            };
            names.push(Tree::text(&name, &at));
        }
        names
    }

    /// Sets a variable that is `undefined` to its default.
    pub(crate) fn default(
        &mut self,
        name: &str,
        default: &'a Expression<'a>,
        at: &Place,
        out: &mut Vec<Tree>,
    ) {
        let mut steps = Vec::new();
        let value = self.expr(default, &mut steps);
        let test = is_undefined(Tree::ident(name, at), at);
        if steps.is_empty() {
            let given = Tree::ident(name, at);
            let value = Tree::conditional(test, value.operand(), given, at);
            return out.push(set(name, value, at));
        }
        steps.push(set(name, value.resolved(), at));
        out.push(crate::lower::branch(test, steps, Vec::new(), at));
    }

    /// Destructures a value into newly declared variables.
    pub(crate) fn bind_pattern(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        value: Value,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        if !self.enter(pattern.span()) {
            return;
        }
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                let name = self.variable(id.name.as_str(), id.span, is_const);
                out.push(set(&name, value.resolved(), &place(id.span)));
            }
            BindingPattern::AssignmentPattern(with) => {
                self.bind_default(with, value, is_const, out);
            }
            BindingPattern::ObjectPattern(object) => {
                let from = self.named(value, out);
                self.bind_object(object, &from, is_const, out);
            }
            BindingPattern::ArrayPattern(list) => {
                let items = self.items_of(value);
                self.bind_items(list, items, is_const, out);
            }
        }
        self.leave();
    }

    fn bind_default(
        &mut self,
        with: &'a AssignmentPattern<'a>,
        value: Value,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        let at = place(with.span);
        if let BindingPattern::BindingIdentifier(id) = &with.left {
            let mut steps = Vec::new();
            let default = self.expr(&with.right, &mut steps);
            let name = self.variable(id.name.as_str(), id.span, is_const);
            out.push(set(&name, value.resolved(), &at));
            let test = is_undefined(Tree::ident(&name, &at), &at);
            steps.push(set(&name, default.resolved(), &at));
            return out.push(crate::lower::branch(test, steps, Vec::new(), &at));
        }
        let name = self.fresh();
        out.push(set(&name, value.resolved(), &at));
        self.default(&name, &with.right, &at, out);
        self.bind_pattern(&with.left, Value::ident(&name, &at), is_const, out);
    }

    fn bind_object(
        &mut self,
        object: &'a ObjectPattern<'a>,
        from: &Value,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        let mut taken = Vec::new();
        for property in &object.properties {
            let at = place(property.span);
            let Some(mut key) = self.key(&property.key, property.computed, out) else {
                continue;
            };
            if object.rest.is_some() && !matches!(key.kind, Kind::Text(_)) {
                // A variable holds the key, because the rest element reads it too.
                let text = Tree::binary("+", Tree::text("", &at), key.operand(), &at);
                let name = self.fresh();
                out.push(set(&name, text, &at));
                key = Value::ident(&name, &at);
            }
            taken.push(key.clone());
            let value = member_of(from.clone(), key, &at);
            self.bind_pattern(&property.value, value, is_const, out);
        }
        let Some(rest) = &object.rest else {
            return;
        };
        let at = place(rest.span);
        let BindingPattern::BindingIdentifier(id) = &rest.argument else {
            return self.unsupported(rest.span, "a pattern behind `...`", "name the rest");
        };
        let keys = match taken.iter().all(Value::is_scalar) {
            true => Tree::list(taken.into_iter().map(Value::operand).collect(), &at),
            false => Value::new(Kind::List(taken), &at).resolved(),
        };
        let inputs = [("obj", from.clone().resolved()), ("keys", keys)];
        let mut step = Tree::step("omit", inputs, &at);
        let name = self.variable(id.name.as_str(), id.span, is_const);
        step.put("result", Tree::text(&name, &at));
        out.push(step);
    }

    /// Lowers a value that JavaScript iterates to its items: a list to itself, and a value
    /// without items to an error that names it.
    pub(crate) fn items_of(&mut self, value: Value) -> Value {
        let at = value.place.clone();
        let text = self.text_of(Span::new(at.start, at.end));
        // A pattern is not a useful name for the value that it destructures.
        let is_name =
            text.len() <= MAX_NAME && !text.contains('\n') && !text.starts_with(['[', '{']);
        let name = if is_name { text } else { "the value" };
        let arguments = vec![value.operand(), Value::text(name, &at).operand()];
        Value::node(of("Array", "items", arguments, &at))
    }

    /// Checks a destructured match: if the pattern did not match, the match has no items, and the
    /// error names it.
    pub(crate) fn found_match(&mut self, value: Value, out: &mut Vec<Tree>) -> Value {
        let at = value.place.clone();
        let value = self.named(value, out);
        let is_none = is_missing(value.clone().operand(), &at);
        let none = self.items_of(value.clone()).operand();
        Value::node(Tree::conditional(is_none, none, value.operand(), &at))
    }

    /// Destructures a value of a known type: an array pattern takes a pair, pairs or a match as a
    /// list.
    pub(crate) fn bind_known(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        (value, known): (Value, Known),
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        match (pattern, known) {
            (BindingPattern::ArrayPattern(list), Known::Pair | Known::Pairs) => {
                self.bind_items(list, value, is_const, out);
            }
            (BindingPattern::ArrayPattern(list), Known::Match) => {
                let found = self.found_match(value, out);
                self.bind_items(list, found, is_const, out);
            }
            _ => self.bind_pattern(pattern, value, is_const, out),
        }
    }

    /// Destructures the items of a list into newly declared variables.
    pub(crate) fn bind_items(
        &mut self,
        list: &'a ArrayPattern<'a>,
        items: Value,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        let from = self.named(items, out);
        self.bind_list(list, &from, is_const, out);
    }

    fn bind_list(
        &mut self,
        list: &'a ArrayPattern<'a>,
        from: &Value,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        for (index, element) in list.elements.iter().enumerate() {
            let Some(element) = element else {
                continue;
            };
            let at = place(element.span());
            let value = member_of(from.clone(), Value::number(index as f64, &at), &at);
            self.bind_pattern(element, value, is_const, out);
        }
        let Some(rest) = &list.rest else {
            return;
        };
        let at = place(rest.span);
        // Texts, sets and matches have items, too.
        let from = from.clone().operand();
        let is_list = from
            .ident_name()
            .is_some_and(|name| self.new_lists.contains(name));
        let start_at = list.elements.len();
        let from = match is_list && start_at > 0 {
            true => from,
            false => of("Array", "from", vec![from], &at),
        };
        let rest_of = match start_at {
            0 => from,
            _ => method(from, "slice", vec![Tree::number(start_at as f64, &at)], &at),
        };
        self.bind_pattern(&rest.argument, Value::node(rest_of), is_const, out);
        if let BindingPattern::BindingIdentifier(id) = &rest.argument {
            self.note_sort(id.name.as_str(), Iterable::List);
        }
    }

    /// Lowers the key of a property of an object literal or a pattern.
    pub(crate) fn key(
        &mut self,
        key: &'a PropertyKey<'a>,
        computed: bool,
        out: &mut Vec<Tree>,
    ) -> Option<Value> {
        let at = place(key.span());
        match key {
            PropertyKey::StaticIdentifier(id) => Some(Value::text(id.name.as_str(), &at)),
            PropertyKey::PrivateIdentifier(id) => {
                self.unsupported(id.span, "a private name", "use plain members");
                None
            }
            PropertyKey::NumericLiteral(number) if !computed => {
                let mut text = Vec::new();
                a99_core::json::write_js_number(number.value, &mut text);
                Some(Value::new(Kind::Text(text), &at))
            }
            key => {
                let key = key.as_expression()?;
                Some(self.expr(key, out))
            }
        }
    }

    /// Copies a value into a variable unless it is one.
    pub(crate) fn named(&mut self, value: Value, out: &mut Vec<Tree>) -> Value {
        if let Kind::Node(tree) = &value.kind
            && let Some(name) = tree.ident_name()
            && self.variables.contains(name)
        {
            return value;
        }
        let at = value.place.clone();
        let name = self.fresh();
        out.push(set(&name, value.resolved(), &at));
        Value::ident(&name, &at)
    }

    /// Binds `const { a, b } = input` if `input` is the object of arguments.
    pub(crate) fn arguments_pattern(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        init: &'a Expression<'a>,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) -> bool {
        let (BindingPattern::ObjectPattern(object), Expression::Identifier(id)) = (pattern, init)
        else {
            return false;
        };
        let known = self.lookup(id.name.as_str());
        if !known.is_some_and(|id| matches!(self.bindings[id].what, What::Arguments)) {
            return false;
        }
        // The members of a rest are those that the arguments have.
        self.wants_all_arguments |= object.rest.is_some();
        self.import_pattern(object, is_const, out);
        true
    }

    /// Declares variables for members of the arguments.
    pub(crate) fn import_pattern(
        &mut self,
        object: &'a ObjectPattern<'a>,
        is_const: bool,
        out: &mut Vec<Tree>,
    ) {
        for property in &object.properties {
            let at = place(property.span);
            let mut steps = Vec::new();
            let key = self.key(&property.key, property.computed, &mut steps);
            let key = match key.map(|key| key.kind) {
                Some(Kind::Text(key)) => String::from_utf8(key).ok(),
                _ => None,
            };
            let Some(key) = key else {
                let help = "name the argument";
                self.unsupported(property.span, "a computed name of an argument", help);
                continue;
            };
            match &property.value {
                BindingPattern::BindingIdentifier(id) => {
                    let js = id.name.as_str();
                    let name = self.variable(js, id.span, is_const);
                    if let Some(sort) = self.argument_sorts.get(&key).copied() {
                        self.note_sort(js, sort);
                    }
                    self.named_arguments.push((key.clone(), id.span.start));
                    self.arguments.push((name, key));
                }
                BindingPattern::AssignmentPattern(with)
                    if matches!(with.left, BindingPattern::BindingIdentifier(_)) =>
                {
                    let BindingPattern::BindingIdentifier(id) = &with.left else {
                        continue;
                    };
                    let name = self.variable(id.name.as_str(), id.span, is_const);
                    self.arguments.push((name.clone(), key));
                    self.default(&name, &with.right, &at, out);
                }
                pattern => {
                    let name = self.fresh();
                    self.arguments.push((name.clone(), key));
                    self.bind_pattern(pattern, Value::ident(&name, &at), is_const, out);
                }
            }
        }
        let Some(rest) = &object.rest else {
            return;
        };
        let at = place(rest.span);
        let BindingPattern::BindingIdentifier(id) = &rest.argument else {
            return self.unsupported(rest.span, "a pattern behind `...`", "name the rest");
        };
        let names = object.properties.iter();
        let names = names.filter_map(|property| property.key.static_name());
        let names = names.map(|name| Tree::text(&name, &at)).collect();
        let inputs = [
            ("obj", all_arguments(&at)),
            ("keys", Tree::list(names, &at)),
        ];
        let mut step = Tree::step("omit", inputs, &at);
        let name = self.variable(id.name.as_str(), id.span, is_const);
        step.put("result", Tree::text(&name, &at));
        out.push(step);
    }

    /// Reads a member of the agent's arguments.
    pub(crate) fn argument(&mut self, key: &str, at: Span) -> Value {
        let known = self.arguments.iter().find(|(_, argument)| argument == key);
        let name = match known {
            Some((name, _)) if name.starts_with('_') => name.clone(),
            _ => {
                let name = self.fresh();
                self.arguments.push((name.clone(), key.to_owned()));
                name
            }
        };
        // Other functions read the variable that holds all of them.
        self.wants_all_arguments |= self.current != 0;
        Value::ident(&name, &place(at))
    }
}

/// Builds the value of all arguments (D118).
pub(crate) fn all_arguments(at: &Place) -> Tree {
    let tags = [
        ("$kind", Tree::text("arg", at)),
        ("path", Tree::text("", at)),
    ];
    Tree::map(tags, at)
}

/// Builds a test for `undefined`.
pub(crate) fn is_undefined(value: Tree, at: &Place) -> Tree {
    Tree::binary("===", value, Tree::undefined(at), at)
}

/// Builds a test for `null` or `undefined`.
pub(crate) fn is_missing(value: Tree, at: &Place) -> Tree {
    Tree::binary("==", value, Tree::null(at), at)
}

/// Builds a test for a value that is neither `null` nor `undefined`.
pub(crate) fn is_there(value: Tree, at: &Place) -> Tree {
    Tree::binary("!=", value, Tree::null(at), at)
}

/// Builds `object.key` or `object[key]`.
pub(crate) fn member_of(object: Value, key: Value, at: &Place) -> Value {
    let is_name = match &key.kind {
        Kind::Text(text) => !text.first().is_some_and(u8::is_ascii_digit),
        _ => false,
    };
    let mut node = Tree::node(
        "member",
        [("object", object.operand()), ("property", key.operand())],
        at,
    );
    if !is_name {
        node.put("computed", Tree::bool(true, at));
    }
    Value::node(node)
}

/// Builds a call of a method.
pub(crate) fn method(object: Tree, name: &str, arguments: Vec<Tree>, at: &Place) -> Tree {
    let fields = [
        ("object", object),
        ("method", Tree::text(name, at)),
        ("arguments", Tree::list(arguments, at)),
    ];
    Tree::node("methodCall", fields, at)
}

/// Builds a call of a function in a namespace.
pub(crate) fn of(namespace: &str, name: &str, arguments: Vec<Tree>, at: &Place) -> Tree {
    method(Tree::ident(namespace, at), name, arguments, at)
}
