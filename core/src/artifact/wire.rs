//! Wire format of fields: little-endian, no padding, lists preceded by their length.
//!
//! Each type defines encoding and decoding in one place. Decoding checks a claimed length against
//! the remaining bytes before it allocates.

use crate::json::NodeId;
use crate::program::{
    ArgFallback, ArgKey, Block, Charge, ChargeKind, Const, Handler, LitOp, Location, MemoSite, Op,
    OpRef, Scope, Site, SourceLocation, TextRange, Wrap,
};
use crate::sig::BaseCost;

/// The unread bytes of one section.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A decoding error with its byte offset in the section.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

pub(super) type Taken<T> = Result<T, Malformed>;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn wrong<T>(&self, what: &'static str) -> Taken<T> {
        Err(Malformed { at: self.at, what })
    }

    pub(super) fn slice(&mut self, n: usize) -> Taken<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..n)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => self.wrong("the section ends inside a field"),
        }
    }

    fn array<const N: usize>(&mut self) -> Taken<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.slice(N)?);
        Ok(bytes)
    }

    /// Reads the length of a list whose entries have at least `least` bytes each.
    fn count(&mut self, least: usize) -> Taken<usize> {
        let n = u32::take(self)? as usize;
        if n.checked_mul(least).is_none_or(|bytes| bytes > self.left()) {
            return self.wrong("a list is longer than its section");
        }
        Ok(n)
    }

    /// Fails if bytes remain.
    pub(super) fn end(&self) -> Taken<()> {
        match self.left() {
            0 => Ok(()),
            _ => self.wrong("the section goes on after its last field"),
        }
    }
}

/// A type with a wire format.
pub(super) trait Wire: Sized {
    /// The fewest bytes that a value takes; at least 1, which bounds the length of lists.
    const LEAST: usize;
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads a value.
    fn take(r: &mut Reader<'_>) -> Taken<Self>;
    /// Name of the type in `docs/a99b.md`.
    fn layout() -> String;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Wire for $type {
            const LEAST: usize = size_of::<$type>();
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(r: &mut Reader<'_>) -> Taken<Self> {
                r.array().map(<$type>::from_le_bytes)
            }
            fn layout() -> String {
                stringify!($type).to_owned()
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64, i64);

/// A source node is encoded as its number.
impl Wire for NodeId {
    const LEAST: usize = u32::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        u32::take(r).map(NodeId)
    }
    fn layout() -> String {
        u32::layout()
    }
}

impl Wire for bool {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        match u8::take(r)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => r.wrong("a flag is neither 0 nor 1"),
        }
    }
    fn layout() -> String {
        "bool".to_owned()
    }
}

impl Wire for Op {
    const LEAST: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode());
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        match Op::decode(r.array()?) {
            Some(op) => Ok(op),
            None => r.wrong("no such instruction"),
        }
    }
    fn layout() -> String {
        "op".to_owned()
    }
}

impl<T: Wire> Wire for Vec<T> {
    const LEAST: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        let n = r.count(T::LEAST)?;
        let mut list = Vec::with_capacity(n);
        for _ in 0..n {
            list.push(T::take(r)?);
        }
        Ok(list)
    }
    fn layout() -> String {
        format!("list of {}", T::layout())
    }
}

impl<T: Wire> Wire for Box<[T]> {
    const LEAST: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        Vec::take(r).map(Vec::into_boxed_slice)
    }
    fn layout() -> String {
        Vec::<T>::layout()
    }
}

/// The length fits: tables of a verified program have fewer than 4 Gi entries.
fn put_list<T: Wire>(list: &[T], out: &mut Vec<u8>) {
    (list.len() as u32).put(out);
    list.iter().for_each(|item| item.put(out));
}

impl<T: Wire> Wire for Option<T> {
    const LEAST: usize = 1;
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        bool::take(r)?.then(|| T::take(r)).transpose()
    }
    fn layout() -> String {
        format!("optional {}", T::layout())
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    const LEAST: usize = A::LEAST + B::LEAST;
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        Ok((A::take(r)?, B::take(r)?))
    }
    fn layout() -> String {
        format!("pair of {} and {}", A::layout(), B::layout())
    }
}

/// A record is encoded as its fields, in the order of this list.
macro_rules! records {
    ($( $type:ident { $($field:ident : $of:ty),* } )*) => { $(
        impl Wire for $type {
            const LEAST: usize = 0 $( + <$of as Wire>::LEAST )*;
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }
            fn take(r: &mut Reader<'_>) -> Taken<Self> {
                Ok($type { $( $field: <$of as Wire>::take(r)? ),* })
            }
            fn layout() -> String {
                stringify!($type).to_owned()
            }
        }
    )*
        /// Layout of each record: name, then field and type of each field.
        pub(super) fn record_layouts() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
            vec![ $( (stringify!($type), vec![ $( (stringify!($field), <$of as Wire>::layout()) ),* ]) ),* ]
        }
    };
}

records! {
    TextRange { start: u32, end: u32 }
    ArgKey { flat: TextRange, path: Option<Box<[TextRange]>>, fallback: ArgFallback }
    OpRef { name: TextRange, cost: BaseCost, needs_body: bool, signature: u64 }
    Site { op: u32, step: u32, inputs: u8 }
    MemoSite { body: TextRange, free: Box<[u32]>, with_program: bool }
    Charge { pc: u32, step: u32, kind: ChargeKind }
    Block { start: u32, end: u32, charges: u32, price: i64 }
    Scope { vars: Vec<(u32, Location)> }
    Handler { start: u32, end: u32, target: u32 }
    Wrap { start: u32, end: u32, prefix: u32 }
    SourceLocation { pc: u32, node: NodeId, inner: Option<(u32, u32)> }
}

/// A choice is encoded as a tag byte and at most one field.
macro_rules! choices {
    ($( $type:ident { $( $tag:literal => $variant:ident $( ($of:ty) )? ),* } )*) => { $(
        impl Wire for $type {
            const LEAST: usize = 1;
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $( choices!(@pattern $type $variant value $($of)?) => {
                        $tag.put(out);
                        choices!(@put value out $($of)?);
                    } )*
                }
            }
            fn take(r: &mut Reader<'_>) -> Taken<Self> {
                match u8::take(r)? {
                    $( $tag => Ok(choices!(@take $type $variant r $($of)?)), )*
                    _ => r.wrong(concat!("no such ", stringify!($type))),
                }
            }
            fn layout() -> String {
                stringify!($type).to_owned()
            }
        }
    )*
        /// Layout of each choice: name, then tag, name and field of each variant.
        pub(super) fn choice_layouts() -> Vec<(&'static str, Vec<(u8, &'static str, String)>)> {
            vec![ $( (stringify!($type), vec![ $( ($tag, stringify!($variant), choices!(@layout $($of)?)) ),* ]) ),* ]
        }
    };
    (@layout) => { String::new() };
    (@layout $of:ty) => { <$of as Wire>::layout() };
    (@pattern $type:ident $variant:ident $value:ident) => { $type::$variant };
    (@pattern $type:ident $variant:ident $value:ident $of:ty) => { $type::$variant($value) };
    (@put $value:ident $out:ident) => {};
    (@put $value:ident $out:ident $of:ty) => { $value.put($out) };
    (@take $type:ident $variant:ident $r:ident) => { $type::$variant };
    (@take $type:ident $variant:ident $r:ident $of:ty) => {
        $type::$variant(<$of as Wire>::take($r)?)
    };
}

choices! {
    Const {
        0u8 => Undefined, 1u8 => Null, 2u8 => Bool(bool), 3u8 => Number(f64), 4u8 => Text(TextRange)
    }
    LitOp { 0u8 => Const(u32), 1u8 => Array(u32), 2u8 => Object(u32) }
    ArgFallback { 0u8 => Undefined, 1u8 => Unbound, 2u8 => Builtin(u16), 3u8 => Const(u32) }
    BaseCost { 0u8 => Fixed(i64), 1u8 => Dynamic(i64), 2u8 => Work(i64) }
    Location { 0u8 => Reg(u8), 1u8 => Slot(u32) }
    ChargeKind {
        0u8 => Step, 1u8 => Nodes(u16), 2u8 => TextNodes(u16), 3u8 => Turn, 4u8 => TextTest,
        5u8 => TextTurn, 6u8 => CacheStore
    }
}

impl Wire for f64 {
    const LEAST: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.to_bits().put(out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        u64::take(r).map(f64::from_bits)
    }
    fn layout() -> String {
        "f64".to_owned()
    }
}
