//! Rewrites classes that extend others: each class gets a copy of what it inherits.

use super::Declared;
use super::read::{Class, Constructor, Element, Sort};
use crate::edits::Piece;
use oxc_span::Span;

/// Maximum classes in a chain; each copies what the others have.
const MAX_CHAIN: usize = 8;

impl Declared<'_> {
    pub(super) fn classes(&mut self) {
        let count = self.read.classes.len();
        let errors = self.error_classes();
        self.parents = (0..count).map(|class| self.parent(class)).collect();
        let chains: Vec<Vec<usize>> = (0..count).map(|class| self.chain(class)).collect();
        let mut can: Vec<bool> = (0..count)
            .map(|class| errors[class].is_none() && self.can_write(&chains[class]))
            .collect();
        // A class and those that it extends are written together.
        let all = 0..count;
        let bad: Vec<usize> = all.clone().filter(|class| !can[*class]).collect();
        for class in all.clone() {
            can[class] &= !chains[class].iter().any(|one| bad.contains(one));
        }
        self.tests(&chains, &can, &errors);
        for class in 0..count {
            if can[class] {
                self.class(class, &chains[class], &chains);
            }
        }
        for class in 0..count {
            // The class is known where no other shares the code.
            if errors[class].is_none()
                && chains[class].len() == 1
                && !self.is_parent(class)
                && self.read.classes[class].parent.is_none()
            {
                let name = format!("'{}'", self.read.classes[class].name);
                for at in std::mem::take(&mut self.read.classes[class].names) {
                    self.replace(at, vec![name.clone().into()]);
                }
                let name = self.read.classes[class].name.clone();
                if self.scoping.is_only(self.source, &name) {
                    for at in std::mem::take(&mut self.read.classes[class].makers) {
                        self.replace(at, vec![name.clone().into()]);
                    }
                }
            }
        }
        self.errors(&errors);
        self.class_values(&can, &chains, &errors);
    }

    fn parent(&self, class: usize) -> Option<usize> {
        let at = self.read.classes[class].parent?;
        self.class_at(at.start)
    }

    /// The class and those that it extends, from itself to the root.
    fn chain(&self, class: usize) -> Vec<usize> {
        let mut chain = vec![class];
        let mut at = class;
        while let Some(parent) = self.parents[at] {
            if chain.contains(&parent) || chain.len() > MAX_CHAIN {
                break;
            }
            chain.push(parent);
            at = parent;
        }
        chain
    }

    fn can_write(&self, chain: &[usize]) -> bool {
        let classes: Vec<&Class> = chain
            .iter()
            .map(|class| &self.read.classes[*class])
            .collect();
        let Some(root) = classes.last() else {
            return false;
        };
        if classes.len() == 1 {
            let has_fields = root
                .constructor
                .as_ref()
                .is_some_and(|one| !one.fields.is_empty());
            return root.parent.is_none()
                && (root.is_abstract || has_fields || self.is_parent(chain[0]));
        }
        if root.parent.is_some()
            || classes.len() > MAX_CHAIN
            || !classes.iter().all(|class| class.scope == root.scope)
        {
            return false;
        }
        let mut kinds: Vec<(&str, bool)> = Vec::new();
        for (depth, class) in classes.iter().enumerate() {
            if class.is_odd {
                return false;
            }
            let is_root = depth + 1 == classes.len();
            let called = class
                .constructor
                .as_ref()
                .map(|one| usize::from(one.call.is_some()));
            let wanted = usize::from(!is_root);
            if called.is_some_and(|called| called != wanted || class.calls != wanted) {
                return false;
            }
            // A member of `super` is a method or getter of a class above.
            let above = &chain[depth + 1..];
            if class
                .supers
                .iter()
                .any(|one| self.above(above, &one.1).is_none())
            {
                return false;
            }
            for element in class.elements.iter().filter(|element| !element.is_static) {
                kinds.push((&element.name, element.sort == Sort::Field));
                // Each class has its own private members.
                let is_private = element.name.starts_with('#');
                let is_other = |other: &&Class| {
                    other.id != class.id
                        && other.elements.iter().any(|one| one.name == element.name)
                };
                if is_private && classes.iter().any(is_other) {
                    return false;
                }
            }
            let fields = class.constructor.iter().flat_map(|one| &one.fields);
            kinds.extend(fields.map(|field| (field.0.as_str(), true)));
        }
        // A field hides a method whatever class declares it.
        let is_both = |one: &(&str, bool)| one.1 && kinds.contains(&(one.0, false));
        if kinds.iter().any(is_both) {
            return false;
        }
        // Static fields are not inherited here.
        !self.read.members.iter().any(|(at, name)| {
            self.class_at(at.start) == Some(chain[0])
                && self
                    .static_in(chain, name)
                    .is_some_and(|(class, sort)| class != chain[0] && sort != Sort::Method)
        })
    }

    /// The nearest of these classes that has a static member of this name.
    fn static_in(&self, chain: &[usize], name: &str) -> Option<(usize, Sort)> {
        chain.iter().find_map(|class| {
            let mut elements = self.read.classes[*class].elements.iter();
            let found = elements.find(|one| one.is_static && one.name == *name)?;
            Some((*class, found.sort))
        })
    }

    fn is_parent(&self, class: usize) -> bool {
        (0..self.read.classes.len()).any(|other| self.parent(other) == Some(class))
    }

    /// The nearest of these classes that has a method or getter of this name.
    fn above(&self, classes: &[usize], name: &str) -> Option<usize> {
        classes.iter().copied().find(|class| {
            let elements = &self.read.classes[*class].elements;
            elements
                .iter()
                .any(|one| !one.is_static && one.sort != Sort::Field && one.name == *name)
        })
    }

    fn super_name(&self, name: &str, class: usize) -> String {
        self.fresh(&format!("{name}${}", self.read.classes[class].name))
    }

    /// Name of the method that does what the constructor of a class does.
    fn init(&self, class: usize) -> String {
        self.fresh(&format!("constructor${}", self.read.classes[class].name))
    }

    /// Assignments of the fields of a class.
    pub(super) fn fields(&self, class: &Class, this: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (name, _) in class.constructor.iter().flat_map(|one| &one.fields) {
            pieces.push(format!(" {this}.{name} = {name};").into());
        }
        let own = |element: &&Element| element.sort == Sort::Field && !element.is_static;
        for element in class.elements.iter().filter(own) {
            pieces.push(format!(" {this}.{} = ", element.name).into());
            pieces.push(element.value.map_or_else(|| "undefined".into(), Piece::Old));
            pieces.push(";".into());
        }
        pieces
    }

    /// Replaces `super(...)` in the constructor of a class that extends another.
    fn super_call(&mut self, class: usize) {
        let one = &self.read.classes[class];
        let (Some(parent), Some((at, args))) = (
            self.parents[class],
            one.constructor.as_ref().and_then(|one| one.call),
        ) else {
            return;
        };
        let mut pieces: Vec<Piece> = vec![format!("this.{}(", self.init(parent)).into()];
        pieces.extend(args.map(Piece::Old));
        pieces.push(");".into());
        pieces.extend(self.fields(one, "this"));
        self.replace(at, pieces);
    }

    /// The constructor of a class that has none: the names of its parameters, and its body.
    fn default_constructor(&self, class: usize, chain: &[usize]) -> (String, Vec<Piece>) {
        let known = chain
            .iter()
            .find_map(|one| self.read.classes[*one].constructor.as_ref());
        let (count, has_rest) =
            known.map_or((0, false), |one: &Constructor| (one.count, one.has_rest));
        let mut names: Vec<String> = (0..count).map(|n| format!("value{n}")).collect();
        if has_rest {
            names.push("...others".to_owned());
        }
        let names = names.join(", ");
        let mut body = Vec::new();
        if let Some(parent) = self.parents[class] {
            body.push(format!("this.{}({names});", self.init(parent)).into());
        }
        body.extend(self.fields(&self.read.classes[class], "this"));
        (names, body)
    }

    /// Leaves plain parameters of those that declare fields.
    pub(super) fn drop_modifiers(&mut self, class: usize) {
        let constructor = self.read.classes[class].constructor.iter();
        let fields = constructor.flat_map(|one| &one.fields);
        for at in fields.map(|field| field.1).collect::<Vec<Span>>() {
            self.replace(at, Vec::new());
        }
    }

    fn class(&mut self, number: usize, chain: &[usize], chains: &[Vec<usize>]) {
        let class = &self.read.classes[number];
        let (span, head, body) = (class.span, class.head, class.body);
        let is_derived = chain.len() > 1;
        if class.is_abstract {
            let text = self.text(Span::new(span.start, head));
            let at = span.start + text.find("class").unwrap_or_default() as u32;
            self.replace(Span::new(span.start, at), Vec::new());
        }
        let class = &self.read.classes[number];
        let names: Vec<String> = class
            .constructor
            .iter()
            .flat_map(|one| &one.fields)
            .map(|field| field.0.clone())
            .collect();
        self.drop_modifiers(number);
        if self.read.classes[number].is_abstract {
            // It has no instances, and its methods may call what it lacks.
            let class = &self.read.classes[number];
            let own = class.elements.iter().filter(|one| !one.is_static);
            let mut parts: Vec<Span> = own.map(|one| one.span).collect();
            parts.extend(class.constructor.iter().map(|one| one.span));
            for at in parts {
                self.edits.wrap(at, Vec::new());
            }
        } else if !is_derived {
            // The field is the first of the object, and set before the others.
            let class = &self.read.classes[number];
            if let Some(constructor) = &class.constructor
                && !names.is_empty()
            {
                let at = constructor.body.start;
                let sets: Vec<String> = names
                    .iter()
                    .map(|name| format!(" this.{name} = {name};"))
                    .collect();
                let fields: Vec<String> = names.iter().map(|name| format!(" {name};")).collect();
                self.is_changed = true;
                self.edits.insert(at, sets.concat());
                self.edits.insert(body.start + 1, fields.concat());
            }
        }
        if !is_derived {
            return;
        }
        self.replace(Span::new(head, body.start), vec![" ".into()]);
        self.super_call(number);
        for (at, name) in self.read.classes[number].supers.clone() {
            if let Some(above) = self.above(&chain[1..], &name) {
                let text = format!("this.{}", self.super_name(&name, above));
                self.replace(at, vec![text.into()]);
            }
        }
        if self.read.classes[number].is_abstract {
            return;
        }
        for (at, name) in self.read.members.clone() {
            if self.class_at(at.start) == Some(number)
                && let Some((above, _)) = self.static_in(chain, &name)
                && above != number
            {
                let above = self.read.classes[above].name.clone();
                self.replace(at, vec![above.into()]);
            }
        }
        let mut appended: Vec<Piece> = Vec::new();
        let class = &self.read.classes[number];
        let own = |element: &&Element| element.sort == Sort::Field && !element.is_static;
        let moved: Vec<(Span, String)> = class
            .elements
            .iter()
            .filter(own)
            .map(|one| (one.span, one.name.clone()))
            .collect();
        let has_constructor = class.constructor.is_some();
        for (at, name) in moved {
            // A private name is declared, and set in the constructor.
            let left = match name.starts_with('#') {
                true => vec![format!("{name};").into()],
                false => Vec::new(),
            };
            self.replace(at, left);
        }
        if !has_constructor {
            let (names, body) = self.default_constructor(number, chain);
            appended.push(format!(" constructor({names}) {{ ").into());
            appended.extend(body);
            appended.push(" }".into());
        }
        self.inherited(chain, chains, &mut appended);
        let end = body.end.saturating_sub(1);
        self.replace(Span::new(end, end), appended);
    }

    /// Copies what a class inherits.
    fn inherited(&self, chain: &[usize], chains: &[Vec<usize>], out: &mut Vec<Piece>) {
        let class = |number: &usize| &self.read.classes[*number];
        let mut seen: Vec<&str> = Vec::new();
        for (depth, number) in chain.iter().enumerate() {
            let one = class(number);
            let methods = one.elements.iter().filter(|one| !one.is_static);
            if depth > 0 {
                for element in methods.clone() {
                    let is_private = element.name.starts_with('#');
                    if element.sort == Sort::Field && is_private {
                        out.push(format!(" {};", element.name).into());
                    }
                    if element.sort != Sort::Field && !seen.contains(&element.name.as_str()) {
                        out.push("\n".into());
                        out.push(Piece::Inner(element.span));
                    }
                }
                self.copied_constructor(*number, &chains[*number], out);
            }
            seen.extend(methods.map(|element| element.name.as_str()));
        }
        let mut done: Vec<String> = Vec::new();
        for number in chain {
            for (_, name) in &class(number).supers {
                let Some(above) = self.above(&chains[*number][1..], name) else {
                    continue;
                };
                let to = self.super_name(name, above);
                if done.contains(&to) {
                    continue;
                }
                let elements = class(&above).elements.iter();
                for element in elements.filter(|one| !one.is_static && one.name == *name) {
                    out.push("\n".into());
                    out.push(Span::new(element.span.start, element.key.start).into());
                    out.push(to.clone().into());
                    out.push(Span::new(element.key.end, element.span.end).into());
                }
                done.push(to);
            }
        }
    }

    /// Writes the constructor of a class as a method.
    fn copied_constructor(&self, number: usize, chain: &[usize], out: &mut Vec<Piece>) {
        let class = &self.read.classes[number];
        out.push(format!(" {}", self.init(number)).into());
        match &class.constructor {
            Some(constructor) => {
                out.push(constructor.params.into());
                out.push(" {".into());
                if chain.len() == 1 {
                    out.extend(self.fields(class, "this"));
                }
                out.push(constructor.body.into());
            }
            None => {
                let (names, body) = self.default_constructor(number, chain);
                out.push(format!("({names}) {{ ").into());
                out.extend(body);
            }
        }
        out.push(" }".into());
    }

    /// Rewrites `x instanceof C` for a class that others extend.
    fn tests(
        &mut self,
        chains: &[Vec<usize>],
        can: &[bool],
        errors: &[Option<super::errors::Root>],
    ) {
        for (span, left, class) in std::mem::take(&mut self.read.tests) {
            let Some(class) = self.class_at(class.start) else {
                continue;
            };
            if errors[class].is_some() {
                let mark = self.mark(class);
                if let Some(left) = left
                    && self.is_caught(left.start)
                {
                    let pieces = vec!["(".into(), left.into(), format!(".{mark} === true)").into()];
                    self.replace(span, pieces);
                }
                continue;
            }
            let below: Vec<usize> = (0..chains.len())
                .filter(|one| can[*one] && chains[*one].contains(&class))
                .filter(|one| !self.read.classes[*one].is_abstract)
                .collect();
            let Some(left) = left.filter(|_| below.len() > 1 || below != [class]) else {
                continue;
            };
            let mut pieces: Vec<Piece> = Vec::new();
            for one in below {
                let start = if pieces.is_empty() { "(" } else { " || " };
                pieces.push(start.into());
                pieces.push(left.into());
                pieces.push(format!(" instanceof {}", self.read.classes[one].name).into());
            }
            if pieces.is_empty() {
                continue;
            }
            pieces.push(")".into());
            self.replace(span, pieces);
        }
    }

    /// True for a name of what a `catch` or the callback of `.catch(...)` gets.
    fn is_caught(&self, at: u32) -> bool {
        self.scoping.variable(at).is_some_and(|variable| {
            let declared = variable.places.first().copied().unwrap_or_default();
            let before = self.text(Span::new(0, declared)).trim_end();
            let before = before.trim_end_matches('(').trim_end();
            variable.is_caught || before.ends_with(".catch")
        })
    }

    /// Rewrites classes that are values to functions that make an instance.
    fn class_values(
        &mut self,
        can: &[bool],
        chains: &[Vec<usize>],
        errors: &[Option<super::errors::Root>],
    ) {
        let mut made: Vec<usize> = Vec::new();
        for (at, is_short) in std::mem::take(&mut self.read.values) {
            let Some(class) = self.class_at(at.start) else {
                continue;
            };
            let one = &self.read.classes[class];
            let is_plain = one.parent.is_none() || can[class];
            if errors[class].is_some() || !is_plain || one.is_odd || one.is_abstract {
                continue;
            }
            let maker = self.maker(class);
            let name = one.name.clone();
            let text = match is_short {
                true => format!("{name}: {maker}"),
                false => maker,
            };
            self.replace(at, vec![text.into()]);
            if !made.contains(&class) {
                made.push(class);
            }
        }
        if made.is_empty() {
            return;
        }
        for class in made {
            let (names, _) = self.default_constructor(class, &chains[class]);
            let one = &self.read.classes[class];
            let code = format!(
                "function {}({names}) {{ return new {}({names}) }}",
                self.maker(class),
                one.name
            );
            let (id, end) = (one.id, one.whole.end);
            match one.scope {
                1 => self.behind.push((id, vec![code.into()])),
                _ => self.edits.insert(end, format!("\n{code}")),
            }
        }
        for (span, callee) in std::mem::take(&mut self.read.news) {
            let is_variable = self.scoping.variable(callee.start).is_some();
            if is_variable && self.class_at(callee.start).is_none() {
                let is_bare = !self.text(Span::new(callee.end, span.end)).contains('(');
                let mut pieces = vec![callee.into(), Span::new(callee.end, span.end).into()];
                if is_bare {
                    pieces.push("()".into());
                }
                self.replace(span, pieces);
            }
        }
    }

    fn maker(&self, class: usize) -> String {
        self.fresh(&format!("{}$new", self.read.classes[class].name))
    }
}
