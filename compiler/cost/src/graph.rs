//! The values of a program as a graph: each node is what an instruction of a call makes.
//!
//! Helpers are expanded at each call, so that a node belongs to one chain of calls.

use crate::flow::Flow;
use a99_core::program::{ConstIdx, Program};
use std::rc::Rc;

pub(crate) type NodeId = u32;
pub(crate) type SiteId = u32;
pub(crate) type LoopId = u32;

/// Why something has no bound.
pub(crate) type Why = &'static str;

/// An instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) function: u32,
    pub(crate) pc: u32,
}

/// The name of a member that is read or written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Name(Vec<u8>),
    Any,
}

/// A number that is computed.
#[derive(Clone, Debug)]
pub(crate) enum Num {
    Unknown,
    /// The width of a text or list.
    Len(NodeId),
    /// An index of it, or -1.
    Index(NodeId),
    Sub(NodeId, NodeId),
    Mul(NodeId, NodeId),
    Div(NodeId, NodeId),
    /// Not above the node, and not below 0 if it is not.
    Floor(NodeId),
    /// The node as a number.
    Plus(NodeId),
    /// Below the node and 1.
    Ceil(NodeId),
    Min(Vec<NodeId>),
    Max(Vec<NodeId>),
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Number(f64),
    /// A text of the program, of this many units.
    Literal(ConstIdx, u32),
    /// A short text of at most this many units.
    Units(u32),
    Undefined,
    /// null, a boolean
    Scalar,
    Unbound,
    Builtin(u16),
    /// A place of the inputs or of an answer.
    Path(u32),
    Num(Num),
    /// A boolean: left below right, or equal too.
    Less(NodeId, NodeId, bool),
    /// The values at the entry, and those of the turns before if a loop begins here.
    Phi(Vec<NodeId>, Vec<NodeId>),
    /// The first unless it is unbound (with true: or undefined), then the second.
    Or(NodeId, NodeId, bool),
    /// The member of the first unless that is undefined, then the last.
    PathOr(NodeId, NodeId, NodeId),
    Add(NodeId, NodeId),
    /// A text of at most this size.
    Text(Spec),
    Date,
    Load(NodeId, Key),
    New(SiteId),
    /// A value of which nothing is known.
    Opaque(Why),
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// The innermost loop around the instruction.
    pub(crate) inside: Option<LoopId>,
}

/// A list, set or object that an instruction makes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    pub(crate) list: bool,
    /// Elements that are not those of `spreads`.
    pub(crate) len: Spec,
    /// What each of these may be.
    pub(crate) elems: Vec<NodeId>,
    /// Their units together, if that is known.
    pub(crate) units: Spec,
    pub(crate) fields: Vec<(Vec<u8>, NodeId)>,
    /// Values whose members it has, and whether they are of another kind than it.
    pub(crate) spreads: Vec<(NodeId, bool)>,
    pub(crate) inside: Option<LoopId>,
    pub(crate) node: NodeId,
}

/// A change of a list or object.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) target: NodeId,
    /// The name of a member.
    pub(crate) name: Option<NodeId>,
    pub(crate) value: NodeId,
    pub(crate) inside: Option<LoopId>,
    /// In the header of that loop, which runs once more.
    pub(crate) in_header: bool,
}

/// Totals of a value with all that is in it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Deep {
    Units,
    Digits,
    Texts,
    Objects,
    Elements,
    Members,
}

/// A size of a node, or a part of a price.
#[derive(Clone, Debug)]
pub(crate) enum What {
    One,
    /// Units, if it is a text.
    Units(NodeId),
    /// Elements or members, if it has some.
    Len(NodeId),
    /// Units of its text.
    Conv(NodeId),
    Deep(Deep, NodeId),
    /// As a number.
    High(NodeId),
    /// The `length` of an object that is no list.
    LengthOf(NodeId),
    /// n * ceil(log2 n) of its elements.
    SortSteps(NodeId),
    /// The price of its conversion to a number.
    ToNumber(NodeId),
    /// The price of its conversion to text, beyond that of the text.
    ToText(NodeId),
    /// The price of an addition.
    Added(NodeId),
    /// The price of copying it to or from the host.
    Crossing(NodeId),
    /// The price of writing it as JSON.
    Json(NodeId),
    Times(Box<What>, Box<What>),
    Call(u32),
    Fails(Why),
}

/// A sum.
pub(crate) type Spec = Vec<(f64, What)>;

/// A price at an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(crate) at: At,
    pub(crate) fuel: Spec,
    /// Calls of the host, and their tokens.
    pub(crate) calls: f64,
    pub(crate) tokens: Option<Tokens>,
}

/// The tokens of a call.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Tokens {
    /// At most the value of a node.
    Most(NodeId),
    /// What the host allows.
    Host,
}

/// A function as it is called at one place.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) flow: Rc<Flow>,
    /// Number of its first loop.
    pub(crate) loops: LoopId,
    pub(crate) charges: Vec<Vec<Charge>>,
}

/// How often a loop turns.
#[derive(Clone, Debug)]
pub(crate) enum Turns {
    /// Once for each element.
    Each(NodeId),
    /// While the first is below the second, or equal too; each turn changes `counter` by at least
    /// `step`, up or down.
    Count {
        low: NodeId,
        high: NodeId,
        or_equal: bool,
    },
}

#[derive(Debug)]
pub(crate) struct LoopInfo {
    pub(crate) at: At,
    pub(crate) parent: Option<LoopId>,
    /// Whether the outer loop's header holds it; loops do not begin there.
    pub(crate) tests: Vec<(Turns, bool)>,
}

/// A place of the inputs: the argument, or a call whose answer it is, then names; `None` is any
/// element or member, a second one below the last any depth.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) root: Root,
    pub(crate) names: Vec<Option<Vec<u8>>>,
    /// Any value inside, too.
    pub(crate) below: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Root {
    /// All arguments.
    Args,
    /// The answer of the op at an instruction.
    Answer(At),
    /// The text of an error that is caught at an instruction.
    Error(At),
}

/// Names of a place beyond which it is any value inside.
const MAX_NAMES: usize = 8;

#[derive(Debug)]
pub(crate) struct Graph<'p> {
    pub(crate) program: &'p Program,
    pub(crate) nodes: Vec<Node>,
    pub(crate) sites: Vec<Site>,
    pub(crate) stores: Vec<Store>,
    pub(crate) places: Vec<Place>,
    /// The texts that values were read from, by the instruction.
    pub(crate) parsed: Vec<(At, NodeId)>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) loops: Vec<LoopInfo>,
    /// What the main program returns.
    pub(crate) results: Vec<(At, NodeId)>,
}

impl Graph<'_> {
    pub(crate) fn place(&mut self, place: Place) -> u32 {
        let at = self.places.iter().position(|known| *known == place);
        at.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        }) as u32
    }

    /// The place of a member.
    pub(crate) fn member(&mut self, of: u32, key: &Key) -> u32 {
        let mut place = self.places[of as usize].clone();
        if place.below || place.names.len() >= MAX_NAMES {
            place.below = true;
        } else {
            place.names.push(match key {
                Key::Name(name) => Some(name.clone()),
                Key::Any => None,
            });
        }
        self.place(place)
    }
}
