//! Regions: the input of the compiler, and their soundness check.

use std::fmt;

/// Maximum blocks of a region.
const MAX_BLOCKS: usize = 512;

/// Maximum instructions of a region, over all of its blocks.
const MAX_OPS: usize = 1024;

/// Maximum cells of a region.
pub const MAX_CELLS: usize = 64;

/// A cell of the region: index in [`Region::cells`].
pub type Cell = u16;

/// A block of the region: index in [`Region::blocks`].
pub type BlockId = u16;

/// An exit of the region: a number below [`Region::exits`].
pub type ExitId = u32;

/// The type of a cell. In the caller's cells a flag is 1 or 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// True or false.
    Flag,
}

/// ECMAScript arithmetic.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Arith {
    /// `l + r`
    Add,
    /// `l - r`
    Sub,
    /// `l * r`
    Mul,
    /// `l / r`
    Div,
    /// `l % r`, with the sign of the dividend.
    Rem,
}

/// A comparison of numbers. All except `Ne` are false if an operand is NaN.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `l == r`
    Eq,
    /// `l != r`
    Ne,
    /// `l < r`
    Lt,
    /// `l <= r`
    Le,
    /// `l > r`
    Gt,
    /// `l >= r`
    Ge,
}

/// An instruction.
#[derive(Copy, Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each form shows what its fields are")]
pub enum Op {
    /// `dst = value`
    Number { dst: Cell, value: f64 },
    /// `dst = value`
    Flag { dst: Cell, value: bool },
    /// `dst = src`, of the same kind.
    Copy { dst: Cell, src: Cell },
    /// `dst = l op r`, of numbers.
    Arith {
        op: Arith,
        dst: Cell,
        l: Cell,
        r: Cell,
    },
    /// `dst = l % divisor`, of numbers.
    RemBy { dst: Cell, l: Cell, divisor: f64 },
    /// `dst = -src`, of numbers.
    Neg { dst: Cell, src: Cell },
    /// `dst` = whether a condition holds; `dst` is a flag.
    Test { dst: Cell, condition: Condition },
    /// `dst` = whether a condition does not hold.
    Not { dst: Cell, condition: Condition },
}

/// The condition of a branch or a flag.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "a comparison's operands")]
pub enum Condition {
    /// A comparison of numbers.
    Numbers { test: Test, l: Cell, r: Cell },
    /// A flag.
    Flag(Cell),
    /// Whether a number is neither zero nor NaN.
    Truthy(Cell),
}

/// The terminator of a block.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "a condition, and where it leads")]
pub enum End {
    /// Continues in that block.
    Jump(BlockId),
    /// Continues in one of two blocks.
    If {
        condition: Condition,
        then: BlockId,
        otherwise: BlockId,
    },
    /// Exits the region.
    Exit(ExitId),
}

/// The price of entering a block. If it cannot be paid, the region exits before the block
/// runs or is paid.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// Fuel, not negative.
    pub fuel: i64,
    /// Work, positive.
    pub work: i64,
    /// The exit if it cannot be paid.
    pub exit: ExitId,
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its price; `None` for a continuation of the previous block. Jumps to a continuation go
    /// forward, so that each iteration of a loop pays.
    pub price: Option<Price>,
    /// Instructions, executed in order.
    pub ops: Vec<Op>,
    /// The terminator.
    pub end: End,
}

/// The unit of compilation: blocks over cells, entered at the first block.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Types of the cells.
    pub cells: Vec<Kind>,
    /// The blocks; the first is the entry.
    pub blocks: Vec<Block>,
    /// Number of exits.
    pub exits: u32,
}

/// Why a region was not compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The region exceeds the size limits.
    Size,
    /// The region refers to a missing cell, block or exit, or to a cell of another kind, has
    /// an invalid price, or could loop without paying.
    Unsound,
    /// The machine is unsupported.
    Machine,
    /// The compiler failed, or memory for the code is missing.
    Compiler,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Size => "the region is too large",
            Refused::Unsound => "the region is not sound",
            Refused::Machine => "there is no code for this machine",
            Refused::Compiler => "the compiler failed",
        })
    }
}

impl std::error::Error for Refused {}

impl Region {
    /// Checks that the region may be compiled.
    ///
    /// # Errors
    /// [`Refused::Size`] or [`Refused::Unsound`].
    pub fn check(&self) -> Result<(), Refused> {
        let ops: usize = self.blocks.iter().map(|block| block.ops.len()).sum();
        if self.blocks.len() > MAX_BLOCKS || self.cells.len() > MAX_CELLS || ops > MAX_OPS {
            return Err(Refused::Size);
        }
        let is_sound = !self.blocks.is_empty()
            && (0..).zip(&self.blocks).all(|(at, block)| {
                let is_paid = block.price.is_none_or(|price| self.is_price(price));
                is_paid && block.ops.iter().all(|op| self.is_op(*op)) && self.is_end(at, block.end)
            });
        is_sound.then_some(()).ok_or(Refused::Unsound)
    }

    fn is_price(&self, price: Price) -> bool {
        price.fuel >= 0 && price.work > 0 && price.exit < self.exits
    }

    fn kind(&self, cell: Cell) -> Option<Kind> {
        self.cells.get(usize::from(cell)).copied()
    }

    fn are_numbers(&self, cells: &[Cell]) -> bool {
        let mut kinds = cells.iter().map(|cell| self.kind(*cell));
        kinds.all(|kind| kind == Some(Kind::Number))
    }

    fn is_flag(&self, cell: Cell) -> bool {
        self.kind(cell) == Some(Kind::Flag)
    }

    fn is_op(&self, op: Op) -> bool {
        match op {
            Op::Number { dst, .. } => self.are_numbers(&[dst]),
            Op::Flag { dst, .. } => self.is_flag(dst),
            Op::Copy { dst, src } => self.kind(dst).is_some() && self.kind(dst) == self.kind(src),
            Op::Arith { dst, l, r, .. } => self.are_numbers(&[dst, l, r]),
            Op::RemBy { dst, l, .. } => self.are_numbers(&[dst, l]),
            Op::Neg { dst, src } => self.are_numbers(&[dst, src]),
            Op::Test { dst, condition } | Op::Not { dst, condition } => {
                self.is_flag(dst) && self.is_condition(condition)
            }
        }
    }

    fn is_condition(&self, condition: Condition) -> bool {
        match condition {
            Condition::Numbers { l, r, .. } => self.are_numbers(&[l, r]),
            Condition::Flag(cell) => self.is_flag(cell),
            Condition::Truthy(cell) => self.are_numbers(&[cell]),
        }
    }

    fn is_end(&self, from: BlockId, end: End) -> bool {
        // Each block without a price is entered only from an earlier one: every cycle passes
        // a block with a price.
        let is_target = |to: BlockId| {
            let block = self.blocks.get(usize::from(to));
            block.is_some_and(|block| block.price.is_some() || to > from)
        };
        match end {
            End::Jump(to) => is_target(to),
            End::If {
                condition,
                then,
                otherwise,
            } => self.is_condition(condition) && is_target(then) && is_target(otherwise),
            End::Exit(exit) => exit < self.exits,
        }
    }

    /// Whether each cell is written by a block.
    #[must_use]
    pub fn written(&self) -> Vec<bool> {
        let mut written = vec![false; self.cells.len()];
        for op in self.blocks.iter().flat_map(|block| &block.ops) {
            let (Op::Number { dst, .. }
            | Op::Flag { dst, .. }
            | Op::Copy { dst, .. }
            | Op::Arith { dst, .. }
            | Op::RemBy { dst, .. }
            | Op::Neg { dst, .. }
            | Op::Test { dst, .. }
            | Op::Not { dst, .. }) = *op;
            if let Some(cell) = written.get_mut(usize::from(dst)) {
                *cell = true;
            }
        }
        written
    }
}
