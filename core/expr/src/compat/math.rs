//! `mathCalc` texts: the first generation's grammar, with its errors (language section 3.10).
//!
//! Constructs that parse but have no evaluation (`===`, calls, `?:`, several expressions)
//! become [`ExprKind::Unsupported`], because they fail only when they are reached. `&&`, `||`
//! and their words short-circuit (decision D5), and `gt` and `lt` work (D4).
//!
//! The reference is a recursive parser. Here its functions are states of a machine with its
//! frames on a vector, so nesting costs heap and is bounded by [`MAX_NESTING`].

use super::error::MathError;
use super::math_scan::{BinaryOp, Scanner, is_ident_start};
use crate::{BinOp, Expr, ExprId, ExprKind, Infix, Lit, LogOp, MAX_NESTING, MAX_TEXT_BYTES, UnOp};

/// Usual nesting of constructs.
const FEW_FRAMES: usize = 8;

/// Usual bytes of text per node, and the maximum of bytes to reserve for at once.
const BYTES_PER_NODE: usize = 4;
const MANY_BYTES: usize = 1 << 12;

/// Parses a `mathCalc` text. Blank text gives an [`Expr`] without root.
///
/// # Errors
/// The reference's parser errors, and two additional ones for texts over the limits on length
/// and nesting. The caller adds the prefix `Expression error "<source>": `.
pub fn parse_math(text: &str) -> Result<Expr, MathError> {
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("Expression is longer than {MAX_TEXT_BYTES} bytes");
        return Err(MathError { message, offset: 0 });
    }
    let mut machine = Machine::new(text);
    if text.bytes().all(|byte| matches!(byte, 9 | 10 | 13 | 32)) {
        return Ok(machine.expr);
    }
    let mut step = Step::Expressions;
    loop {
        step = match step {
            Step::Expressions => machine.expressions()?,
            Step::Arguments => machine.arguments()?,
            Step::Hole => machine.hole(),
            Step::Expression => {
                machine.frames.push(Frame::Binary {
                    operands: Vec::new(),
                    ops: Vec::new(),
                });
                Step::Token
            }
            Step::Token => machine.token()?,
            Step::Properties(node) => machine.properties(node)?,
            Step::TokenDone(node) => machine.token_done(node)?,
            Step::ExpressionDone(node) => machine.expression_done(node)?,
            Step::Return(node) => machine.give(node)?,
            Step::Finished => return Ok(machine.expr),
        };
    }
}

/// The next state.
enum Step {
    /// Continue the list of expressions in the top frame.
    Expressions,
    /// Continue the arguments or elements in the top frame.
    Arguments,
    /// Skip a hole in the array literal in the top frame.
    Hole,
    /// Parse an expression.
    Expression,
    /// Parse an operand.
    Token,
    /// Parse the suffixes of an operand: members, indices, calls.
    Properties(ExprId),
    /// An operand was parsed, or is missing.
    TokenDone(Option<ExprId>),
    /// An expression was parsed up to a possible `?`.
    ExpressionDone(Option<ExprId>),
    /// An expression was parsed; pass it to the top frame.
    Return(Option<ExprId>),
    /// The text is parsed.
    Finished,
}

/// A construct that waits for an inner one.
enum Frame {
    /// The text, or a group in parentheses that began at byte `start`.
    Expressions {
        group: bool,
        start: u32,
        nodes: Vec<ExprId>,
        first: Option<u16>,
    },
    /// Arguments of `callee`, or elements of an array literal without one.
    Arguments {
        callee: Option<ExprId>,
        start: u32,
        args: Vec<ExprId>,
        commas: usize,
    },
    /// `object[`, waiting for the index.
    Index { object: ExprId },
    /// `test ?`
    Consequent { test: ExprId },
    /// `test ? consequent :`
    Alternate { test: ExprId },
    /// A prefix operator at byte `start`.
    Prefix { op: u8, start: u32 },
    /// Operands and operators that are not yet combined.
    Binary {
        operands: Vec<ExprId>,
        ops: Vec<BinaryOp>,
    },
}

/// The machine's state.
struct Machine {
    scan: Scanner,
    expr: Expr,
    frames: Vec<Frame>,
    /// Frames other than `Binary`, which accompanies each of the others.
    depth: usize,
}

impl Machine {
    fn new(text: &str) -> Self {
        let whole = Frame::Expressions {
            group: false,
            start: 0,
            nodes: Vec::new(),
            first: None,
        };
        let mut frames = Vec::with_capacity(FEW_FRAMES);
        frames.push(whole);
        let nodes = Vec::with_capacity(text.len().min(MANY_BYTES) / BYTES_PER_NODE + 1);
        Self {
            scan: Scanner::new(text),
            expr: Expr { nodes, root: None },
            frames,
            depth: 0,
        }
    }

    fn enter(&mut self, frame: Frame) -> Result<(), MathError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("Expression nests deeper than {MAX_NESTING} levels");
            return Err(self.scan.error(message));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn leave(&mut self) -> Option<Frame> {
        self.depth = self.depth.saturating_sub(1);
        self.frames.pop()
    }

    fn push(&mut self, kind: ExprKind, start: u32) -> ExprId {
        let end = self.scan.offset();
        self.expr.push(kind, start..end.max(start))
    }

    /// A node that fails with `message` after evaluating `operands`.
    fn unsupported(&mut self, message: String, operands: Vec<ExprId>, start: u32) -> ExprId {
        self.push(ExprKind::Unsupported { message, operands }, start)
    }

    fn start_of(&self, id: ExprId) -> u32 {
        self.expr.node(id).span.start
    }

    /// Skips separators and starts the next expression of the top frame's list.
    fn expressions(&mut self) -> Result<Step, MathError> {
        while self.scan.at(';') || self.scan.at(',') {
            self.scan.index += 1;
        }
        if self.scan.at_end() {
            return self.expressions_end();
        }
        let code = self.scan.code();
        if let Some(Frame::Expressions { first, .. }) = self.frames.last_mut() {
            *first = code;
        }
        Ok(Step::Expression)
    }

    /// Ends the list of expressions in the top frame.
    fn expressions_end(&mut self) -> Result<Step, MathError> {
        let closed = self.scan.at(')');
        let Some(Frame::Expressions {
            group,
            start,
            nodes,
            ..
        }) = self.leave()
        else {
            return Ok(Step::Finished);
        };
        if !group {
            let root = match *nodes {
                [only] => only,
                _ => self.unsupported("Unknown node type: Compound".into(), Vec::new(), start),
            };
            self.expr.root = Some(root);
            return Ok(Step::Finished);
        }
        if !closed {
            return Err(self.scan.error("Unclosed ("));
        }
        self.scan.index += 1;
        Ok(match *nodes {
            [] => Step::TokenDone(None),
            [only] => Step::Properties(only),
            _ => {
                let message = "Unknown node type: SequenceExpression".into();
                Step::Properties(self.unsupported(message, Vec::new(), start))
            }
        })
    }

    /// Continues the arguments or elements of the top frame.
    fn arguments(&mut self) -> Result<Step, MathError> {
        let Some(Frame::Arguments {
            callee,
            args,
            commas,
            ..
        }) = self.frames.last_mut()
        else {
            return Ok(Step::Finished);
        };
        let closer = if callee.is_some() { ')' } else { ']' };
        loop {
            if self.scan.at_end() {
                return Err(self.scan.error(format!("Expected {closer}")));
            }
            self.scan.skip_spaces();
            if self.scan.at(closer) {
                self.scan.index += 1;
                if closer == ')' && *commas > 0 && *commas >= args.len() {
                    return Err(self.scan.error("Unexpected token )"));
                }
                return Ok(self.arguments_end());
            }
            if !self.scan.at(',') {
                if args.len() != *commas && *commas != 0 {
                    return Err(self.scan.error("Expected comma"));
                }
                return Ok(Step::Expression);
            }
            self.scan.index += 1;
            *commas += 1;
            if *commas != args.len() {
                if closer == ')' {
                    return Err(self.scan.error("Unexpected token ,"));
                }
                // A hole of an array literal, which fails when it is reached.
                return Ok(Step::Hole);
            }
        }
    }

    /// Adds a hole to the array literal of the top frame.
    fn hole(&mut self) -> Step {
        let message = "null is not an object (evaluating 'node.type')".into();
        let start = self.scan.offset();
        let hole = self.unsupported(message, Vec::new(), start);
        if let Some(Frame::Arguments { args, .. }) = self.frames.last_mut() {
            args.push(hole);
        }
        Step::Arguments
    }

    fn arguments_end(&mut self) -> Step {
        let Some(Frame::Arguments {
            callee,
            start,
            args,
            ..
        }) = self.leave()
        else {
            return Step::Finished;
        };
        let node = match callee {
            None => self.push(ExprKind::Array(args), start),
            Some(callee) => {
                let message = "Function calls not supported in expressions".into();
                let start = self.start_of(callee);
                self.unsupported(message, Vec::new(), start)
            }
        };
        Step::Properties(node)
    }

    /// Parses the beginning of an operand.
    fn token(&mut self) -> Result<Step, MathError> {
        self.scan.skip_spaces();
        let start = self.scan.offset();
        let Some(code) = self.scan.code() else {
            return Ok(Step::TokenDone(None));
        };
        // ASCII characters decide; others begin a name.
        match u8::try_from(code).unwrap_or(b'_') {
            b'0'..=b'9' | b'.' => {
                let number = self.scan.number()?;
                // A number has no members.
                Ok(Step::TokenDone(Some(self.push(number, start))))
            }
            b'"' | b'\'' => {
                let string = self.scan.string()?;
                Ok(Step::Properties(self.push(string, start)))
            }
            b'[' => {
                self.scan.index += 1;
                let args = Vec::new();
                self.enter(Frame::Arguments {
                    callee: None,
                    start,
                    args,
                    commas: 0,
                })?;
                Ok(Step::Arguments)
            }
            op @ (b'-' | b'!' | b'~' | b'+') => {
                self.scan.index += 1;
                self.enter(Frame::Prefix { op, start })?;
                Ok(Step::Token)
            }
            b'(' => {
                self.scan.index += 1;
                let nodes = Vec::new();
                self.enter(Frame::Expressions {
                    group: true,
                    start,
                    nodes,
                    first: None,
                })?;
                Ok(Step::Expressions)
            }
            _ if is_ident_start(code) => {
                let name = self.scan.identifier()?;
                Ok(Step::Properties(self.named(name, start)))
            }
            _ => Ok(Step::TokenDone(None)),
        }
    }

    /// A name in operand position.
    fn named(&mut self, name: String, start: u32) -> ExprId {
        match name.as_str() {
            "true" => self.push(ExprKind::Literal(Lit::Bool(true)), start),
            "false" => self.push(ExprKind::Literal(Lit::Bool(false)), start),
            "null" => self.push(ExprKind::Literal(Lit::Null), start),
            "this" => self.unsupported(
                "Unknown node type: ThisExpression".into(),
                Vec::new(),
                start,
            ),
            _ => self.push(ExprKind::Ident(name.into()), start),
        }
    }

    /// Parses one member, index or call after an operand.
    fn properties(&mut self, node: ExprId) -> Result<Step, MathError> {
        self.scan.skip_spaces();
        let optional = self.scan.at('?') && self.scan.next_is('.');
        if optional {
            self.scan.index += 2;
            self.scan.skip_spaces();
        }
        if self.scan.at('[') {
            self.scan.index += 1;
            self.enter(Frame::Index { object: node })?;
            return Ok(Step::Expression);
        }
        if self.scan.at('(') {
            self.scan.index += 1;
            let start = self.start_of(node);
            let args = Vec::new();
            self.enter(Frame::Arguments {
                callee: Some(node),
                start,
                args,
                commas: 0,
            })?;
            return Ok(Step::Arguments);
        }
        if !optional {
            if !self.scan.at('.') {
                return Ok(Step::TokenDone(Some(node)));
            }
            self.scan.index += 1;
            self.scan.skip_spaces();
        }
        let property = self.scan.identifier()?.into();
        let start = self.start_of(node);
        // Every access is null-safe; `?.` skips no check of the name.
        let member = ExprKind::Member {
            object: node,
            property,
            optional: false,
        };
        Ok(Step::Properties(self.push(member, start)))
    }

    /// Passes an operand to a waiting prefix operator or to the list of operands.
    fn token_done(&mut self, node: Option<ExprId>) -> Result<Step, MathError> {
        if let Some(&Frame::Prefix { op, start }) = self.frames.last() {
            let Some(arg) = node else {
                return Err(self.scan.error("missing unaryOp argument"));
            };
            self.leave();
            let unary = match op {
                b'-' => self.push(ExprKind::Unary { op: UnOp::Neg, arg }, start),
                b'!' => self.push(ExprKind::Unary { op: UnOp::Not, arg }, start),
                _ => {
                    let message = format!("Unknown unary operator: {}", char::from(op));
                    self.unsupported(message, vec![arg], start)
                }
            };
            return Ok(Step::TokenDone(Some(unary)));
        }
        let Some(Frame::Binary {
            mut operands,
            mut ops,
        }) = self.frames.pop()
        else {
            return Ok(Step::Finished);
        };
        let Some(operand) = node else {
            return match ops.last() {
                None => Ok(Step::ExpressionDone(None)),
                Some(op) => Err(self
                    .scan
                    .error(format!("Expected expression after {}", op.text))),
            };
        };
        operands.push(operand);
        let Some(next) = self.scan.binary_op() else {
            while let Some(op) = ops.pop() {
                self.combine(&mut operands, op);
            }
            return Ok(Step::ExpressionDone(operands.pop()));
        };
        while let Some(top) = ops.pop_if(|top| binds_first(*top, next)) {
            self.combine(&mut operands, top);
        }
        ops.push(next);
        self.frames.push(Frame::Binary { operands, ops });
        Ok(Step::Token)
    }

    /// Replaces the last two operands by `op` applied to them.
    fn combine(&mut self, operands: &mut Vec<ExprId>, op: BinaryOp) {
        let (Some(right), Some(left)) = (operands.pop(), operands.pop()) else {
            return;
        };
        let node = match infix(op.text) {
            Some(infix) => self.expr.push_infix(infix, left, right),
            None => {
                let message = format!("Unknown binary operator: {}", op.text);
                let span = self.start_of(left)..self.expr.node(right).span.end;
                self.expr.push(
                    ExprKind::Unsupported {
                        message,
                        operands: vec![left, right],
                    },
                    span,
                )
            }
        };
        operands.push(node);
    }

    /// Looks for `?` after an expression.
    fn expression_done(&mut self, node: Option<ExprId>) -> Result<Step, MathError> {
        self.scan.skip_spaces();
        match node {
            Some(test) if self.scan.at('?') => {
                self.scan.index += 1;
                self.enter(Frame::Consequent { test })?;
                Ok(Step::Expression)
            }
            _ => Ok(Step::Return(node)),
        }
    }

    /// Passes a finished expression to the waiting construct.
    fn give(&mut self, node: Option<ExprId>) -> Result<Step, MathError> {
        match self.frames.last_mut() {
            Some(Frame::Expressions {
                nodes,
                group,
                first,
                ..
            }) => {
                if let Some(node) = node {
                    nodes.push(node);
                } else if !self.scan.at_end() {
                    if *group && *first == Some(u16::from(b')')) {
                        return self.expressions_end();
                    }
                    let message = format!("Unexpected \"{}\"", self.scan.char_text());
                    return Err(self.scan.error(message));
                }
                Ok(Step::Expressions)
            }
            Some(Frame::Arguments { args, .. }) => {
                let Some(node) = node else {
                    return Err(self.scan.error("Expected comma"));
                };
                args.push(node);
                Ok(Step::Arguments)
            }
            Some(&mut Frame::Index { object }) => self.index_end(object, node),
            Some(&mut Frame::Consequent { test }) => {
                if node.is_none() {
                    return Err(self.scan.error("Expected expression"));
                }
                self.scan.skip_spaces();
                if !self.scan.at(':') {
                    return Err(self.scan.error("Expected :"));
                }
                self.scan.index += 1;
                self.leave();
                self.enter(Frame::Alternate { test })?;
                Ok(Step::Expression)
            }
            Some(&mut Frame::Alternate { test }) => {
                if node.is_none() {
                    return Err(self.scan.error("Expected expression"));
                }
                self.leave();
                let message = "Unknown node type: ConditionalExpression".into();
                let start = self.start_of(test);
                Ok(Step::Return(Some(self.unsupported(
                    message,
                    Vec::new(),
                    start,
                ))))
            }
            // These two wait for operands, not for expressions.
            Some(Frame::Prefix { .. } | Frame::Binary { .. }) | None => Ok(Step::Finished),
        }
    }

    /// Ends `object[index]`.
    fn index_end(&mut self, object: ExprId, node: Option<ExprId>) -> Result<Step, MathError> {
        let Some(index) = node else {
            let message = format!("Unexpected \"{}\"", self.scan.char_text());
            return Err(self.scan.error(message));
        };
        if !self.scan.at(']') {
            return Err(self.scan.error("Unclosed ["));
        }
        self.scan.index += 1;
        self.leave();
        let start = self.start_of(object);
        let member = ExprKind::Index {
            object,
            index,
            optional: false,
        };
        Ok(Step::Properties(self.push(member, start)))
    }
}

/// Whether `top`, parsed before `next`, takes the operand between them. Only `**` is
/// right-associative.
fn binds_first(top: BinaryOp, next: BinaryOp) -> bool {
    if top.text == "**" && next.text == "**" {
        return false;
    }
    next.precedence <= top.precedence
}

/// The operators that `mathCalc` evaluates.
fn infix(text: &str) -> Option<Infix> {
    Some(match text {
        "+" => Infix::Binary(BinOp::Add),
        "-" => Infix::Binary(BinOp::Sub),
        "*" => Infix::Binary(BinOp::Mul),
        "/" => Infix::Binary(BinOp::Div),
        "%" => Infix::Binary(BinOp::Rem),
        ">" | "gt" => Infix::Binary(BinOp::Gt),
        "<" | "lt" => Infix::Binary(BinOp::Lt),
        ">=" | "ge" => Infix::Binary(BinOp::Ge),
        "<=" | "le" => Infix::Binary(BinOp::Le),
        "==" | "eq" => Infix::Binary(BinOp::Eq),
        "!=" | "neq" => Infix::Binary(BinOp::Ne),
        "&&" | "and" => Infix::Logical(LogOp::And),
        "||" | "or" => Infix::Logical(LogOp::Or),
        _ => return None,
    })
}
