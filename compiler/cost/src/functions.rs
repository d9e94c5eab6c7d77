//! What builtin functions charge and give.

use crate::build::Builder;
use crate::builtins::{E, SCALAR, U};
use crate::graph::{Deep, Key, Kind, NodeId, Num, Place, Root, Site, What};
use a99_core::builtins::FUNCTIONS;
use a99_core::costs::{DATE_TEXT, PARSED_CONTAINER};

impl Builder<'_> {
    /// Calls a builtin function.
    pub(crate) fn function(&mut self, id: u16, args: &[NodeId]) -> NodeId {
        let Some(row) = FUNCTIONS.get(usize::from(id)) else {
            return self.unknown("a function without a model");
        };
        self.reads(row.cost, row.reads, None, args);
        let first = args.first().copied();
        let first = match first {
            Some(node) => node,
            None => self.node(Kind::Undefined),
        };
        let calls_back = self.calls_back(args);
        match (row.ns, row.name) {
            ("Math", name) => {
                self.pay_numbers(args);
                self.number(match (name, args) {
                    ("floor" | "trunc" | "abs", [n]) => Num::Floor(*n),
                    ("ceil" | "round", [n]) => Num::Ceil(*n),
                    ("min", args) if !args.is_empty() => Num::Min(args.to_vec()),
                    ("max", args) if !args.is_empty() => Num::Max(args.to_vec()),
                    _ => Num::Unknown,
                })
            }
            ("JSON", "stringify") if args.len() == 1 => {
                self.pay(1.0, What::Json(first));
                self.json_text(first)
            }
            ("JSON", "parse") if args.len() == 1 => self.parsed(first),
            ("Array", "isArray")
            | ("Number", "isNaN" | "isFinite" | "isInteger" | "isSafeInteger") => {
                self.node(Kind::Scalar)
            }
            ("Array", "of") => {
                let len = vec![(args.len() as f64, What::One)];
                self.list(len, args.to_vec(), Vec::new())
            }
            ("Array", "from") if args.len() == 1 => {
                self.pay(E, What::LengthOf(first));
                self.items(first)
            }
            ("Array", "items") => {
                self.pay(24.0 * E, What::Units(first));
                self.pay(24.0 * E, What::Len(first));
                let made = self.items(first);
                self.either(&[first, made])
            }
            ("Object", "keys") => {
                self.pay(E, What::Units(first));
                self.pay(E, What::Len(first));
                self.pay(75.0, What::Deep(Deep::Units, first));
                self.names(first)
            }
            ("Object", "values") => {
                self.pay(E, What::Units(first));
                self.pay(5.0 * U, What::Units(first));
                let unit = self.text(vec![(1.0, What::One)]);
                let copy = self.copied(first, true);
                let units = self.list(vec![(1.0, What::Units(first))], vec![unit], Vec::new());
                self.either(&[copy, units])
            }
            ("Object", "entries") => {
                self.pay(E, What::Units(first));
                self.pay(E, What::Len(first));
                self.pay(75.0, What::Deep(Deep::Units, first));
                let name = self.name_of(first);
                let value = self.load(first, Key::Any);
                let pair = self.list(vec![(2.0, What::One)], vec![name, value], Vec::new());
                self.list(
                    vec![(1.0, What::Len(first)), (1.0, What::Units(first))],
                    vec![pair],
                    Vec::new(),
                )
            }
            ("Object", "assign") => {
                for node in args {
                    self.pay(E, What::Len(*node));
                    self.pay(E + 5.0 * U, What::Units(*node));
                }
                let spreads = args.iter().map(|node| (*node, false)).collect();
                self.site(Site {
                    spreads,
                    ..Site::default()
                })
            }
            ("Object", "fromEntries") => {
                let pair = self.load(first, Key::Any);
                let value = self.load(pair, Key::Any);
                self.pay(E, What::Len(first));
                self.pay(75.0, What::Deep(Deep::Units, first));
                self.pay(8.0 * E, What::Deep(Deep::Elements, first));
                self.site(Site {
                    len: vec![(1.0, What::Len(first)), (1.0, What::Units(first))],
                    elems: vec![value],
                    ..Site::default()
                })
            }
            ("Object", "hasOwn") => {
                self.pay_texts(args.get(1..).unwrap_or_default());
                if let Some(name) = args.get(1) {
                    self.pay(75.0, What::Conv(*name));
                }
                self.node(Kind::Scalar)
            }
            ("String", "fromCharCode" | "fromCodePoint") => {
                self.pay_numbers(args);
                self.text(vec![(2.0 * args.len() as f64, What::One)])
            }
            ("", "parseInt" | "parseFloat") | ("Number", "parseInt" | "parseFloat") => {
                self.pay_texts(&args[..args.len().min(1)]);
                self.pay_numbers(args.get(1..).unwrap_or_default());
                self.pay(2.0 * U, What::Conv(first));
                self.number(Num::Unknown)
            }
            ("", "isNaN" | "isFinite") => {
                self.pay_numbers(args);
                self.node(Kind::Scalar)
            }
            ("", "Number") => {
                self.pay_numbers(args);
                self.number(Num::Unknown)
            }
            ("", "Boolean") => self.node(Kind::Scalar),
            ("", "String") => {
                self.pay(1.0, What::ToText(first));
                self.written(vec![(1.0, What::Conv(first))])
            }
            ("", "Set") if !calls_back => {
                self.pay(E, What::Len(first));
                self.pay(E, What::Units(first));
                self.pay(U, What::Deep(Deep::Units, first));
                self.items_unpaid(first)
            }
            ("", "structuredClone") => {
                self.copy(first);
                first
            }
            ("", "Error") => {
                self.pay(1.0, What::ToText(first));
                self.node(Kind::Undefined)
            }
            ("", "Date") | ("Date", "parse" | "tryParse") => {
                self.pay_date(&args[..args.len().min(1)]);
                self.node(Kind::Date)
            }
            ("Date", "now") => self.number(Num::Unknown),
            ("Date", "toLocale") => {
                self.pay_date(args);
                self.pay(DATE_TEXT as f64, What::One);
                self.written(vec![(256.0, What::One)])
            }
            _ => self.unknown("a function without a model"),
        }
    }

    /// The names of a value's members.
    pub(crate) fn name_of(&mut self, of: NodeId) -> NodeId {
        self.text(vec![(1.0, What::Deep(Deep::Units, of)), (20.0, What::One)])
    }

    pub(crate) fn names(&mut self, of: NodeId) -> NodeId {
        let name = self.name_of(of);
        self.list(
            vec![(1.0, What::Len(of)), (1.0, What::Units(of))],
            vec![name],
            Vec::new(),
        )
    }

    /// Pays for the list of what a value iterates over and makes it.
    pub(crate) fn items(&mut self, of: NodeId) -> NodeId {
        self.pay(E, What::Len(of));
        self.pay(E, What::Units(of));
        self.items_unpaid(of)
    }

    pub(crate) fn items_unpaid(&mut self, of: NodeId) -> NodeId {
        let unit = self.text(vec![(2.0, What::One)]);
        let list = self.list(Vec::new(), Vec::new(), vec![(of, false)]);
        let units = self.list(vec![(1.0, What::Units(of))], vec![unit], Vec::new());
        self.either(&[list, units])
    }

    pub(crate) fn json_text(&mut self, of: NodeId) -> NodeId {
        let units = [
            // An escape has six units.
            (6.0, Deep::Units),
            (1.0, Deep::Digits),
            (2.0, Deep::Texts),
            (SCALAR + 2.0, Deep::Objects),
            (1.0, Deep::Elements),
            (4.0, Deep::Members),
        ];
        let spec = units
            .map(|(times, deep)| (times, What::Deep(deep, of)))
            .to_vec();
        let text = self.text(spec);
        // `undefined` has no text.
        let none = self.node(Kind::Undefined);
        self.either(&[text, none])
    }

    /// Pays for reading JSON text; a value of which only the size of the text is known.
    pub(crate) fn parsed(&mut self, text: NodeId) -> NodeId {
        self.pay(1.0, What::ToText(text));
        self.pay(4.0 * U, What::Conv(text));
        // Its width, and the lists and objects in it, which invalid text may only open.
        self.pay(E / 2.0 + PARSED_CONTAINER as f64 * E, What::Conv(text));
        self.pay(E, What::One);
        self.g.parsed.push((self.now.at, text));
        self.answer(self.now.at)
    }

    /// The place of a value that comes from outside at an instruction.
    pub(crate) fn answer(&mut self, at: crate::graph::At) -> NodeId {
        let place = self.g.place(Place {
            root: Root::Answer(at),
            names: Vec::new(),
            below: false,
        });
        self.node(Kind::Path(place))
    }
}
