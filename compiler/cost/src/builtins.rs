//! What builtin functions, methods and atoms charge and give.
//!
//! A name without a case here has no bound.

use crate::build::Builder;
use crate::graph::{Deep, Key, Kind, NodeId, Num, Site, Spec, What};
use a99_core::builtins::{METHODS, NAMESPACES, Reads, STATIC_METHODS, function, method_name};
use a99_core::costs::{ELEMENT, Formula, MANY_DIGITS, UNIT};

/// Micro-units of a unit and an element, as coefficients.
pub(crate) const U: f64 = UNIT as f64;
pub(crate) const E: f64 = ELEMENT as f64;

/// Most units of a number or date as text, and of a number with many digits.
pub(crate) const SCALAR: f64 = 26.0;
const LONG_NUMBER: f64 = 1_200.0;

/// Bit that marks a namespace among builtin values.
const NAMESPACE: u16 = 0x8000;

impl Builder<'_> {
    /// Pays what a row of a table charges for reading operands.
    pub(crate) fn reads(
        &mut self,
        cost: Formula,
        reads: Reads,
        recv: Option<NodeId>,
        args: &[NodeId],
    ) {
        let (unit, element) = match cost {
            Formula::Linear { read, .. } => (U * read as f64, E * read as f64),
            Formula::Keys(times) => (E * times as f64, E * times as f64),
            Formula::Sort | Formula::Free => return,
        };
        if unit == 0.0 {
            return;
        }
        let some = match reads {
            Reads::First => &args[..args.len().min(1)],
            Reads::All => args,
            Reads::Count => return self.pay(element * args.len() as f64, What::One),
            Reads::Deep => {
                for node in args {
                    for (times, deep) in [
                        (unit, Deep::Units),
                        (element, Deep::Elements),
                        (element, Deep::Members),
                    ] {
                        self.pay(times, What::Deep(deep, *node));
                    }
                }
                return;
            }
        };
        let recv = recv.filter(|_| !matches!(reads, Reads::First));
        for node in recv.iter().chain(some) {
            self.pay(unit, What::Units(*node));
            self.pay(element, What::Len(*node));
        }
    }

    /// Pays for a text and makes it.
    pub(crate) fn written(&mut self, spec: Spec) -> NodeId {
        let node = self.text(spec);
        self.pay(U, What::Units(node));
        node
    }

    /// Pays for a list of all that a value holds and makes it.
    pub(crate) fn copied(&mut self, of: NodeId, other_kind: bool) -> NodeId {
        self.pay(E, What::Len(of));
        self.list(Vec::new(), Vec::new(), vec![(of, other_kind)])
    }

    pub(crate) fn list(
        &mut self,
        len: Spec,
        elems: Vec<NodeId>,
        spreads: Vec<(NodeId, bool)>,
    ) -> NodeId {
        self.site(Site {
            list: true,
            len,
            elems,
            spreads,
            ..Site::default()
        })
    }

    pub(crate) fn number(&mut self, num: Num) -> NodeId {
        self.node(Kind::Num(num))
    }

    /// One of several values.
    pub(crate) fn either(&mut self, nodes: &[NodeId]) -> NodeId {
        self.node(Kind::Phi(nodes.to_vec(), Vec::new()))
    }

    pub(crate) fn pay_numbers(&mut self, args: &[NodeId]) {
        args.iter()
            .for_each(|node| self.pay(1.0, What::ToNumber(*node)));
    }

    pub(crate) fn pay_texts(&mut self, args: &[NodeId]) {
        args.iter()
            .for_each(|node| self.pay(1.0, What::ToText(*node)));
    }

    /// Calls a method, of a value or of a namespace.
    pub(crate) fn method(&mut self, id: u16, recv: NodeId, args: &[NodeId]) -> NodeId {
        let name = method_name(id);
        let namespaces: Vec<u16> = self.builtins(recv);
        let mut results = Vec::new();
        for n in namespaces {
            let ns = NAMESPACES.get(usize::from(n & !NAMESPACE));
            if n & NAMESPACE == 0 {
                continue;
            }
            if let Some(f) = ns.and_then(|ns| function(ns, name)) {
                results.push(self.function(f, args));
            }
        }
        // A namespace alone holds no values.
        let only = matches!(self.g.nodes[recv as usize].kind, Kind::Builtin(_));
        if id < STATIC_METHODS && !only {
            let shadowed = !results.is_empty();
            let before = self.now.charge.fuel.len();
            let result = self.method_of(id, recv, args);
            // An argument of a namespace's name: hosts that pass one pay for what it is.
            if !(shadowed
                && self.now.charge.fuel[before..]
                    .iter()
                    .any(|t| matches!(t.1, What::Fails(_))))
            {
                results.push(result);
            } else {
                self.now.charge.fuel.truncate(before);
            }
        }
        match results[..] {
            [] => self.node(Kind::Undefined),
            [one] => one,
            _ => self.either(&results),
        }
    }

    /// Whether a value may be a builtin function, which methods call.
    pub(crate) fn calls_back(&self, args: &[NodeId]) -> bool {
        args.iter().any(|node| !self.builtins(*node).is_empty())
    }

    pub(crate) fn method_of(&mut self, id: u16, recv: NodeId, args: &[NodeId]) -> NodeId {
        let Some(row) = METHODS.get(usize::from(id)) else {
            return self.unknown("a method without a model");
        };
        if row.calls && self.calls_back(args) {
            return self.unknown("a function as an argument");
        }
        self.reads(row.cost, row.reads, Some(recv), args);
        let arg = |at: usize| args.get(at).copied();
        let any = |b: &mut Self| b.load(recv, Key::Any);
        let own = vec![(1.0, What::Units(recv))];
        match row.name {
            "at" | "charAt" => {
                self.pay_numbers(args);
                any(self)
            }
            "charCodeAt" | "codePointAt" => {
                self.pay_numbers(args);
                self.number(Num::Unknown)
            }
            "concat" => {
                self.pay_texts(args);
                let mut spec = own;
                spec.extend(args.iter().map(|node| (1.0, What::Conv(*node))));
                let text = self.written(spec);
                let len = vec![(args.len() as f64, What::One)];
                let spreads = [recv]
                    .iter()
                    .chain(args)
                    .map(|node| (*node, false))
                    .collect();
                let list = self.list(len, args.to_vec(), spreads);
                self.pay(E, What::Len(list));
                self.either(&[text, list])
            }
            "includes" | "indexOf" | "lastIndexOf" | "startsWith" | "endsWith" | "search" => {
                self.pay_texts(&args[..args.len().min(1)]);
                self.pay_numbers(args.get(1..).unwrap_or_default());
                // A text beyond ASCII is read again, more often if it may be searched for a half of
                // a surrogate pair.
                let ascii = args
                    .first()
                    .is_some_and(|n| matches!(self.g.nodes[*n as usize].kind, Kind::Literal(..)));
                self.pay(if ascii { U } else { 5.0 * U }, What::Units(recv));
                if let Some(needle) = arg(0) {
                    let each =
                        What::Times(Box::new(What::Len(recv)), Box::new(What::Units(needle)));
                    self.pay(U, each);
                }
                match row.name {
                    "indexOf" | "lastIndexOf" | "search" => self.number(Num::Index(recv)),
                    _ => self.node(Kind::Scalar),
                }
            }
            "localeCompare" => {
                self.pay_texts(args);
                self.pay(45.0 * U, What::Units(recv));
                if let Some(other) = arg(0) {
                    self.pay(45.0 * U, What::Conv(other));
                }
                self.number(Num::Unknown)
            }
            "padStart" | "padEnd" => {
                self.pay_numbers(&args[..args.len().min(1)]);
                self.pay_texts(args.get(1..).unwrap_or_default());
                let mut spec = own;
                if let Some(length) = arg(0) {
                    spec.push((1.0, What::High(length)));
                }
                self.written(spec)
            }
            "repeat" => {
                self.pay_numbers(args);
                let times = arg(0).map_or(What::One, What::High);
                self.written(vec![(
                    1.0,
                    What::Times(Box::new(What::Units(recv)), Box::new(times)),
                )])
            }
            "slice" | "substring" | "substr" => {
                self.pay_numbers(args);
                let mut spec = own;
                // A short part of a long text.
                if let [from, to] = args
                    && let (Kind::Number(from), Kind::Number(to)) = (
                        &self.g.nodes[*from as usize].kind,
                        &self.g.nodes[*to as usize].kind,
                    )
                    && 0.0 <= *from
                    && from <= to
                {
                    let most = if row.name == "substr" { *to } else { to - from };
                    spec = vec![(most, What::One)];
                }
                let text = self.written(spec);
                if row.name != "slice" {
                    return text;
                }
                let list = self.copied(recv, false);
                self.either(&[text, list])
            }
            "split" => self.split(recv, args),
            "replace" | "replaceAll" => {
                if self.calls_back(args) {
                    return self.unknown("a function as an argument");
                }
                self.pay_texts(args);
                self.pay(6.0 * U, What::Units(recv));
                let literal = |b: &Self, at: usize| match args
                    .get(at)
                    .map(|n| &b.g.nodes[*n as usize].kind)
                {
                    Some(Kind::Literal(k, units)) => {
                        Some((b.g.program.const_text(*k).contains(&b'$'), *units))
                    }
                    _ => None,
                };
                let with = args.get(1).copied();
                let mut spec = own;
                match (row.name, with, literal(self, 0), literal(self, 1)) {
                    // Each match becomes the same text.
                    (_, _, Some((_, old)), Some((false, new))) if old > 0 => {
                        spec.push((f64::from(new) / f64::from(old), What::Units(recv)));
                    }
                    ("replace", Some(_), _, Some((false, new))) => {
                        spec.push((f64::from(new), What::One))
                    }
                    _ => return self.unknown("a replacement that is computed"),
                }
                self.written(spec)
            }
            "toLowerCase" | "toUpperCase" | "toLocaleLowerCase" | "toLocaleUpperCase" => {
                self.written(vec![(3.0, What::Units(recv))])
            }
            "trim" | "trimStart" | "trimEnd" | "trimLeft" | "trimRight" => self.text(own),
            "valueOf" => recv,
            "isWellFormed" => self.node(Kind::Scalar),
            "toWellFormed" => self.written(own),
            "toString" => {
                self.pay_numbers(args);
                self.pay(1.0, What::ToText(recv));
                if !args.is_empty() {
                    self.pay(MANY_DIGITS as f64, What::One);
                    return self.written(vec![(1.0, What::Conv(recv)), (LONG_NUMBER, What::One)]);
                }
                self.written(vec![(1.0, What::Conv(recv))])
            }
            "toFixed" | "toPrecision" | "toExponential" => {
                self.pay_numbers(args);
                let digits = match arg(0).map(|node| &self.g.nodes[node as usize].kind) {
                    None => 0.0,
                    Some(Kind::Number(n)) => *n,
                    Some(_) => 100.0,
                };
                if digits > 17.0 {
                    self.pay(MANY_DIGITS as f64, What::One);
                }
                // A number below 1e21; larger ones are written as usual.
                self.written(vec![(26.0 + digits.clamp(0.0, 100.0), What::One)])
            }
            "entries" => {
                self.pay(E, What::Len(recv));
                let value = any(self);
                let name = self.text(vec![
                    (1.0, What::Deep(Deep::Units, recv)),
                    (SCALAR, What::One),
                ]);
                let number = self.number(Num::Len(recv));
                let pair = self.list(
                    vec![(2.0, What::One)],
                    vec![value, name, number],
                    Vec::new(),
                );
                self.list(vec![(1.0, What::Len(recv))], vec![pair], Vec::new())
            }
            "flat" => {
                self.pay_numbers(args);
                for _ in 0..2 {
                    self.pay(E, What::Deep(Deep::Elements, recv));
                }
                let one = any(self);
                let inner = self.load(one, Key::Any);
                let deep = match arg(0) {
                    None => self.either(&[one, inner]),
                    Some(_) => return self.unknown("`flat` with a depth"),
                };
                self.list(
                    vec![(1.0, What::Deep(Deep::Elements, recv))],
                    vec![deep],
                    Vec::new(),
                )
            }
            "join" => {
                self.pay_texts(args);
                let separator = args.first().copied();
                self.joined(recv, separator)
            }
            "keys" => {
                self.pay(E, What::Len(recv));
                let (number, member) = (self.number(Num::Len(recv)), any(self));
                self.list(
                    vec![(1.0, What::Len(recv))],
                    vec![number, member],
                    Vec::new(),
                )
            }
            "values" | "toArray" | "toReversed" => self.copied(recv, false),
            "pop" | "shift" => any(self),
            "reverse" | "copyWithin" => {
                self.pay_numbers(args);
                recv
            }
            "push" | "unshift" => {
                args.iter().for_each(|node| self.store(recv, None, *node));
                self.number(Num::Len(recv))
            }
            "fill" => {
                self.pay_numbers(args.get(1..).unwrap_or_default());
                args.iter()
                    .take(1)
                    .for_each(|node| self.store(recv, None, *node));
                recv
            }
            "splice" | "toSpliced" => {
                self.pay_numbers(&args[..args.len().min(2)]);
                let inserted = args.get(2..).unwrap_or_default();
                if row.name == "splice" {
                    inserted
                        .iter()
                        .for_each(|node| self.store(recv, None, *node));
                    return self.copied(recv, false);
                }
                let len = vec![(inserted.len() as f64, What::One)];
                let list = self.list(len, inserted.to_vec(), vec![(recv, false)]);
                self.pay(E, What::Len(list));
                list
            }
            "with" => {
                self.pay_numbers(&args[..args.len().min(1)]);
                self.pay(E, What::Len(recv));
                self.list(
                    Vec::new(),
                    args.get(1..).unwrap_or_default().to_vec(),
                    vec![(recv, false)],
                )
            }
            "sort" | "toSorted" => {
                self.pay(8.0 * E, What::SortSteps(recv));
                self.pay(4.0 * 8.0 * E, What::SortSteps(recv));
                self.sorted(recv);
                match row.name {
                    "sort" => recv,
                    _ => self.list(Vec::new(), Vec::new(), vec![(recv, false)]),
                }
            }
            "add" => {
                for node in args {
                    self.pay(
                        U,
                        What::Times(Box::new(What::Len(recv)), Box::new(What::Units(*node))),
                    );
                    for part in [
                        "years", "months", "days", "hours", "minutes", "seconds", "weeks",
                    ] {
                        let part = self.load(*node, Key::Name(part.as_bytes().to_vec()));
                        self.pay(1.0, What::ToNumber(part));
                    }
                    self.store(recv, None, *node);
                }
                let date = self.node(Kind::Date);
                self.either(&[recv, date])
            }
            "has" | "delete" | "remove" => {
                for node in args {
                    self.pay(2.0 * U, What::Units(*node));
                    self.pay(
                        U,
                        What::Times(Box::new(What::Len(recv)), Box::new(What::Units(*node))),
                    );
                    self.pay(2.0 * E, What::Len(recv));
                }
                self.either(&[recv, 0])
            }
            "clear" => self.node(Kind::Undefined),
            "isBefore" | "isAfter" => {
                self.pay_date(args);
                self.node(Kind::Scalar)
            }
            "hasOwnProperty" | "propertyIsEnumerable" => {
                self.pay_texts(args);
                for node in args {
                    self.pay(75.0, What::Conv(*node));
                }
                self.node(Kind::Scalar)
            }
            "isPrototypeOf" => self.node(Kind::Scalar),
            "toISOString" | "toUTCString" | "toDateString" => self.written(vec![(32.0, What::One)]),
            name if name.starts_with("get") && name != "get" => self.number(Num::Unknown),
            _ => self.unknown("a method without a model"),
        }
    }

    pub(crate) fn split(&mut self, text: NodeId, args: &[NodeId]) -> NodeId {
        self.pay_texts(&args[..args.len().min(1)]);
        self.pay_numbers(args.get(1..).unwrap_or_default());
        // A text beyond ASCII.
        self.pay(5.0 * U, What::Units(text));
        self.pay(E, What::Units(text));
        self.pay(E, What::One);
        let piece = self.text(vec![(1.0, What::Units(text))]);
        self.site(Site {
            list: true,
            len: vec![(1.0, What::Units(text)), (1.0, What::One)],
            elems: vec![piece],
            units: vec![(1.0, What::Units(text))],
            ..Site::default()
        })
    }

    pub(crate) fn joined(&mut self, list: NodeId, separator: Option<NodeId>) -> NodeId {
        // A nested list is read as it is entered, and texts of scalars are written three times.
        self.pay(8.0 * E, What::Deep(Deep::Elements, list));
        self.pay(2.0 * U, What::Deep(Deep::Digits, list));
        self.pay(2.0 * U * SCALAR, What::Deep(Deep::Objects, list));
        let separators = What::Times(
            Box::new(What::Len(list)),
            Box::new(separator.map_or(What::One, What::Conv)),
        );
        self.written(vec![
            (1.0, What::Deep(Deep::Units, list)),
            (1.0, What::Deep(Deep::Digits, list)),
            (SCALAR, What::Deep(Deep::Objects, list)),
            (1.0, What::Deep(Deep::Elements, list)),
            (1.0, separators),
        ])
    }

    /// Pays for the texts of a list that is sorted.
    pub(crate) fn sorted(&mut self, list: NodeId) {
        self.pay(U, What::Deep(Deep::Units, list));
        self.pay(8.0 * E, What::Deep(Deep::Elements, list));
        self.pay(3.0 * U, What::Deep(Deep::Digits, list));
        self.pay(
            U / 4.0,
            What::Times(
                Box::new(What::SortSteps(list)),
                Box::new(What::Deep(Deep::Units, list)),
            ),
        );
    }

    pub(crate) fn pay_date(&mut self, args: &[NodeId]) {
        self.pay_texts(args);
        args.iter()
            .for_each(|node| self.pay(3.0 * U, What::Conv(*node)));
    }
}
