//! Builds JSON trees whose nodes know their byte ranges in the source.

use a99_core::json::{write_json_number, write_json_string};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::ops::Range;

/// Byte range in the source.
pub(crate) type Place = Range<u32>;

/// A JSON value, or a placeholder that is resolved when the tree is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number(f64),
    /// Text as WTF-8.
    Text(Cow<'static, [u8]>),
    List(Vec<Tree>),
    /// Keys as WTF-8.
    Map(Vec<(Cow<'static, [u8]>, Tree)>),
    /// A text in a value position that must not be read as a name. The set of names is complete
    /// only at the end of lowering.
    Quoted(Vec<u8>),
    /// A list item that expands to the captured variables of a function, which are complete only
    /// at the end of lowering.
    Captures(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    pub(crate) data: Data,
    pub(crate) place: Place,
}

impl Tree {
    pub(crate) fn new(data: Data, place: &Place) -> Tree {
        Tree {
            data,
            place: place.clone(),
        }
    }

    pub(crate) fn null(place: &Place) -> Tree {
        Tree::new(Data::Null, place)
    }

    pub(crate) fn bool(value: bool, place: &Place) -> Tree {
        Tree::new(Data::Bool(value), place)
    }

    pub(crate) fn number(value: f64, place: &Place) -> Tree {
        Tree::new(Data::Number(value), place)
    }

    pub(crate) fn text(value: &str, place: &Place) -> Tree {
        Tree::new(Data::Text(Cow::Owned(value.as_bytes().to_vec())), place)
    }

    /// A text that the language defines.
    fn word(value: impl Into<Cow<'static, str>>, place: &Place) -> Tree {
        let text = match value.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Tree::new(Data::Text(text), place)
    }

    pub(crate) fn list(items: Vec<Tree>, place: &Place) -> Tree {
        Tree::new(Data::List(items), place)
    }

    /// An object whose keys the language defines.
    pub(crate) fn map<const N: usize>(members: [(&'static str, Tree); N], place: &Place) -> Tree {
        let members = members.into_iter();
        let members = members.map(|(key, value)| (Cow::Borrowed(key.as_bytes()), value));
        Tree::new(Data::Map(members.collect()), place)
    }

    /// A step of this op with these inputs.
    pub(crate) fn step<const N: usize>(
        op: impl Into<Cow<'static, str>>,
        inputs: [(&'static str, Tree); N],
        place: &Place,
    ) -> Tree {
        // Leaves room for the `result` that most steps get later.
        Tree::tagged("op", Tree::word(op, place), inputs, 1, place)
    }

    /// An expression node with this tag.
    pub(crate) fn node<const N: usize>(
        tag: &'static str,
        fields: [(&'static str, Tree); N],
        place: &Place,
    ) -> Tree {
        Tree::tagged("$expr", Tree::word(tag, place), fields, 0, place)
    }

    /// An object that starts with this member and has capacity for `more` further members.
    fn tagged<const N: usize>(
        key: &'static str,
        tag: Tree,
        fields: [(&'static str, Tree); N],
        more: usize,
        place: &Place,
    ) -> Tree {
        let mut members = Vec::with_capacity(1 + N + more);
        members.push((Cow::Borrowed(key.as_bytes()), tag));
        for (key, value) in fields {
            members.push((Cow::Borrowed(key.as_bytes()), value));
        }
        Tree::new(Data::Map(members), place)
    }

    /// A node of a unary operator.
    pub(crate) fn unary(op: &'static str, argument: Tree, place: &Place) -> Tree {
        let fields = [("op", Tree::word(op, place)), ("argument", argument)];
        Tree::node("unary", fields, place)
    }

    /// A node of a binary operator.
    pub(crate) fn binary(op: &'static str, left: Tree, right: Tree, place: &Place) -> Tree {
        Tree::operator("binary", op, left, right, place)
    }

    /// A node for `&&`, `||` or `??`.
    pub(crate) fn logical(op: &'static str, left: Tree, right: Tree, place: &Place) -> Tree {
        Tree::operator("logical", op, left, right, place)
    }

    fn operator(
        tag: &'static str,
        op: &'static str,
        left: Tree,
        right: Tree,
        place: &Place,
    ) -> Tree {
        let fields = [
            ("op", Tree::word(op, place)),
            ("left", left),
            ("right", right),
        ];
        Tree::node(tag, fields, place)
    }

    /// A node for `test ? yes : no`.
    pub(crate) fn conditional(test: Tree, yes: Tree, no: Tree, place: &Place) -> Tree {
        let fields = [("test", test), ("consequent", yes), ("alternate", no)];
        Tree::node("conditional", fields, place)
    }

    /// A reference to the variable, argument or builtin of this name.
    pub(crate) fn ident(name: &str, place: &Place) -> Tree {
        Tree::node("ident", [("name", Tree::text(name, place))], place)
    }

    /// A reference to `undefined`.
    pub(crate) fn undefined(place: &Place) -> Tree {
        Tree::ident("undefined", place)
    }

    pub(crate) fn put(&mut self, key: &'static str, value: Tree) {
        self.put_owned(Cow::Borrowed(key.as_bytes()), value);
    }

    /// Adds a member with a key of the source to an object.
    pub(crate) fn put_owned(&mut self, key: Cow<'static, [u8]>, value: Tree) {
        if let Data::Map(members) = &mut self.data {
            members.push((key, value));
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Tree> {
        match &self.data {
            Data::Map(members) => members
                .iter()
                .find(|(name, _)| **name == *key.as_bytes())
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text if the value is valid UTF-8 text.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => str::from_utf8(text).ok(),
            _ => None,
        }
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The tag if the tree is an expression node.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.get("$expr")?.as_str()
    }

    /// The name if the tree is an `ident` node.
    pub(crate) fn ident_name(&self) -> Option<&str> {
        match self.get("$expr")?.as_bytes()? {
            b"ident" => self.get("name")?.as_str(),
            _ => None,
        }
    }

    /// Calls `f` for this value and all values inside it, parents first.
    pub(crate) fn walk(&self, f: &mut dyn FnMut(&Tree)) {
        f(self);
        match &self.data {
            Data::List(items) => items.iter().for_each(|item| item.walk(f)),
            Data::Map(members) => members.iter().for_each(|(_, value)| value.walk(f)),
            _ => {}
        }
    }

    /// Replaces `ident` nodes of these names by trees.
    pub(crate) fn substitute(&mut self, names: &HashMap<String, Tree>) {
        if let Some(other) = self.ident_name().and_then(|name| names.get(name)) {
            let place = self.place.clone();
            *self = other.clone();
            self.place = place;
            return;
        }
        match &mut self.data {
            Data::List(items) => items.iter_mut().for_each(|item| item.substitute(names)),
            Data::Map(members) => {
                for (_, value) in members {
                    value.substitute(names);
                }
            }
            _ => {}
        }
    }
}

/// Facts about a program that are complete only at the end of lowering.
pub(crate) struct Names<'n> {
    /// Returns true for a text that names a variable or a path from one.
    pub(crate) is_name: &'n dyn Fn(&[u8]) -> bool,
    /// Captured variables of each function.
    pub(crate) captures: &'n [Vec<String>],
    /// Maximum bytes of output; writing ends beyond.
    pub(crate) max: usize,
}

/// Writes a tree as JSON text, with the places of its values and keys in the order in which a
/// reader numbers them.
pub(crate) fn write(tree: &Tree, names: &Names<'_>) -> (Vec<u8>, Vec<(u32, u32)>) {
    let mut writer = Writer {
        out: Vec::new(),
        places: Vec::new(),
        names,
    };
    writer.value(tree);
    (writer.out, writer.places)
}

struct Writer<'n> {
    out: Vec<u8>,
    places: Vec<(u32, u32)>,
    names: &'n Names<'n>,
}

impl Writer<'_> {
    fn at(&mut self, place: &Place) {
        self.places.push((place.start, place.end));
    }

    fn value(&mut self, tree: &Tree) {
        if self.out.len() > self.names.max {
            return;
        }
        self.at(&tree.place);
        match &tree.data {
            Data::Null => self.out.extend(b"null"),
            Data::Bool(true) => self.out.extend(b"true"),
            Data::Bool(false) => self.out.extend(b"false"),
            Data::Number(number) if *number == 0.0 && number.is_sign_negative() => {
                self.out.extend(b"-0");
            }
            Data::Number(number) => write_json_number(*number, &mut self.out),
            Data::Text(text) => write_json_string(text, &mut self.out),
            Data::List(items) => self.list(items),
            Data::Map(members) => {
                let tag = tree.get("$expr").and_then(Tree::as_bytes);
                self.members(members, tag.unwrap_or_default());
            }
            Data::Quoted(text) if (self.names.is_name)(text) => {
                self.places.pop();
                let text = Data::Text(Cow::Owned(text.clone()));
                let text = Tree::new(text, &tree.place);
                self.value(&Tree::node("literal", [("value", text)], &tree.place));
            }
            Data::Quoted(text) => write_json_string(text, &mut self.out),
            Data::Captures(_) => self.out.extend(b"null"),
        }
    }

    /// Writes the members of an object: of a node with this tag, or of a plain object.
    fn members(&mut self, members: &[(Cow<'static, [u8]>, Tree)], tag: &[u8]) {
        self.out.push(b'{');
        for (index, member) in members.iter().enumerate() {
            self.key(index, member);
            let (key, value) = member;
            match (tag, &**key) {
                (b"", _) => self.value(value),
                (b"literal", b"value") => self.data(value),
                (b"member", b"property") if is_name(value) => self.value(value),
                (_, b"elements" | b"arguments") => self.each(value, Self::operand),
                (_, b"properties") => self.each(value, |this, item| this.property(item)),
                (_, key) if is_operand(key) => self.operand(value),
                _ => self.value(value),
            }
        }
        self.out.push(b'}');
    }

    fn key(&mut self, index: usize, (key, value): &(Cow<'static, [u8]>, Tree)) {
        self.comma(index);
        self.at(&value.place);
        match key {
            // Keys of the language need no escapes.
            Cow::Borrowed(key) => {
                self.out.reserve(key.len() + 3);
                self.out.push(b'"');
                self.out.extend_from_slice(key);
                self.out.extend_from_slice(b"\":");
            }
            Cow::Owned(key) => {
                write_json_string(key, &mut self.out);
                self.out.push(b':');
            }
        }
    }

    /// Writes an operand; a literal becomes a node.
    fn operand(&mut self, tree: &Tree) {
        let is_plain = match &tree.data {
            Data::Number(number) => !number.is_sign_negative(),
            Data::Null | Data::Bool(_) | Data::Text(_) | Data::Quoted(_) => true,
            _ => false,
        };
        if !is_plain || self.out.len() > self.names.max {
            return self.value(&operand(tree));
        }
        // Four values have the place: the node, its two keys and its tag. The wrapped value adds
        // its own place.
        for _ in 0..4 {
            self.at(&tree.place);
        }
        self.out.extend(br#"{"$expr":"literal","value":"#);
        self.data(tree);
        self.out.push(b'}');
    }

    /// Writes a list inside a node.
    fn each(&mut self, list: &Tree, mut item: impl FnMut(&mut Self, &Tree)) {
        let Data::List(items) = &list.data else {
            return self.value(list);
        };
        self.at(&list.place);
        self.out.push(b'[');
        for (index, one) in items.iter().enumerate() {
            self.comma(index);
            item(self, one);
        }
        self.out.push(b']');
    }

    /// Writes a property of an `object` node.
    fn property(&mut self, property: &Tree) {
        let Data::Map(members) = &property.data else {
            return self.value(property);
        };
        self.at(&property.place);
        self.out.push(b'{');
        for (index, member) in members.iter().enumerate() {
            self.key(index, member);
            let (key, value) = member;
            match &**key {
                b"value" => self.operand(value),
                _ => self.value(value),
            }
        }
        self.out.push(b'}');
    }

    /// Writes a value that contains no nodes.
    fn data(&mut self, tree: &Tree) {
        match &tree.data {
            Data::Map(members) => {
                self.at(&tree.place);
                self.out.push(b'{');
                for (index, member) in members.iter().enumerate() {
                    self.key(index, member);
                    let (_, value) = member;
                    self.data(value);
                }
                self.out.push(b'}');
            }
            Data::List(_) => self.each(tree, |this, item| this.data(item)),
            // Inside a literal no text is a name.
            Data::Quoted(text) => {
                self.at(&tree.place);
                write_json_string(text, &mut self.out);
            }
            _ => self.value(tree),
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(b',');
        }
    }

    fn list(&mut self, items: &[Tree]) {
        self.out.push(b'[');
        let mut index = 0;
        for item in items {
            let Data::Captures(function) = item.data else {
                self.comma(index);
                self.value(item);
                index += 1;
                continue;
            };
            let names = self.names;
            for name in names.captures.get(function).into_iter().flatten() {
                self.comma(index);
                self.value(&capture(name, item));
                index += 1;
            }
        }
        self.out.push(b']');
    }
}

/// True if a node holds an operand under this key.
fn is_operand(key: &[u8]) -> bool {
    matches!(
        key,
        b"object"
            | b"property"
            | b"left"
            | b"right"
            | b"argument"
            | b"test"
            | b"consequent"
            | b"alternate"
    )
}

/// Maximum values of a literal that becomes nodes; a larger literal stays data.
const MAX_SPELLED: usize = 64;

/// True if a property is a member name that expression texts can write after a dot.
fn is_name(property: &Tree) -> bool {
    matches!(&property.data, Data::Text(name) if crate::spell::is_name(name))
}

/// Converts each literal in an operand to a node, so that it costs the same as its expression
/// text.
fn operand(tree: &Tree) -> Cow<'_, Tree> {
    let at = &tree.place;
    let literal = |data: Data| Tree::node("literal", [("value", Tree::new(data, at))], at);
    match &tree.data {
        Data::Map(members) if tree.get("$expr").is_none() && is_small(tree) => {
            let member = |(key, value): &(Cow<'static, [u8]>, Tree)| {
                let key = Tree::new(Data::Text(key.clone()), &value.place);
                Tree::map([("key", key), ("value", value.clone())], &value.place)
            };
            let members = members.iter().map(member).collect();
            let members = Tree::list(members, at);
            Cow::Owned(Tree::node("object", [("properties", members)], at))
        }
        Data::List(items) if is_small(tree) => {
            let items = Tree::list(items.clone(), at);
            Cow::Owned(Tree::node("array", [("elements", items)], at))
        }
        Data::List(_) | Data::Map(_) | Data::Captures(_) => Cow::Borrowed(tree),
        Data::Number(number) if number.is_sign_negative() => {
            let argument = literal(Data::Number(-number));
            Cow::Owned(Tree::unary("-", argument, at))
        }
        Data::Quoted(text) => Cow::Owned(literal(Data::Text(Cow::Owned(text.clone())))),
        data => Cow::Owned(literal(data.clone())),
    }
}

fn is_small(tree: &Tree) -> bool {
    let mut count = 0;
    tree.walk(&mut |_| count += 1);
    count <= MAX_SPELLED
}

/// Writes a captured variable as an argument or as a parameter name.
fn capture(name: &str, item: &Tree) -> Tree {
    Tree::text(name, &item.place)
}
