//! Grammar of programs: the keys of a program, of a helper and of a step, and the expression nodes
//! with their fields (language sections 1.1, 1.2 and 1.5).
//!
//! The lint pass, the JSON Schema of programs and the prompt for models read these tables. The
//! inputs of an atom are in its signature.

/// A key of a program's root or of a helper.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ProgramKey {
    /// Name of the key.
    pub name: &'static str,
    /// Description for people and models.
    pub docs: &'static str,
}

const fn key(name: &'static str, docs: &'static str) -> ProgramKey {
    ProgramKey { name, docs }
}

/// The step key that holds an expression as text, by the step's op.
#[must_use]
pub fn expression_key(op: &[u8]) -> Option<&'static str> {
    match op {
        b"if" | b"while" | b"filter" | b"find" => Some("condition"),
        b"mathCalc" => Some("expr"),
        b"llmToolLoop" => Some("stopWhen"),
        _ => None,
    }
}

/// The keys of a program's root.
pub const PROGRAM_KEYS: &[ProgramKey] = &[
    key("$schema", "Where the schema of programs is, for editors."),
    key("op", "Always `seq`."),
    key("steps", "Steps to run in order."),
    key(
        "helpers",
        "Lists of steps by name, called by `callLocal`: `{name: {paramNames, steps}}`.",
    ),
    key(
        "inputSchema",
        "JSON Schema that the arguments of the run must meet.",
    ),
    key(
        "a99",
        "Version of the language: 3 lets texts inside objects and lists be names, 4 turns on what \
         is newer.",
    ),
    key(
        "allow",
        "Codes of warnings (`lint.*`) that this program does not want to hear of.",
    ),
];

/// Accepted values of `a99`, the version of a program.
pub const VERSIONS: &[u8] = &[1, 2, 3, 4];

/// The keys of a helper.
pub const HELPER_KEYS: &[ProgramKey] = &[
    key(
        "paramNames",
        "Names of the variables that hold what `callLocal` gives, in order.",
    ),
    key(
        "steps",
        "Steps of the helper; its value is what `return` gives.",
    ),
];

/// Keys of a helper that are remarks for readers.
pub const HELPER_REMARKS: &[&str] = &["description", "op"];

/// Keys of a step in addition to the inputs of its atom.
pub const STEP_KEYS: &[ProgramKey] = &[
    key("op", "Name of the atom."),
    key("result", "Variable that gets the value of the atom."),
    key("resultConst", "Whether that variable may not be set again."),
];

/// Inputs of control forms that are lists of steps.
pub const BODIES: &[&str] = &["steps", "then", "else", "body", "try", "catch"];

/// Prefixes of keys of a step that are remarks for readers.
pub const REMARK_PREFIXES: &[&str] = &["$", "//", "_", "x-"];

/// Keys of a step that are remarks for readers.
pub const REMARKS: &[&str] = &[
    "comment",
    "comments",
    "description",
    "note",
    "notes",
    "id",
    "label",
    "title",
];

/// True if a step key is a remark for readers.
#[must_use]
pub fn is_remark(key: &[u8]) -> bool {
    let begins = |prefix: &&str| key.starts_with(prefix.as_bytes());
    REMARK_PREFIXES.iter().any(begins) || REMARKS.iter().any(|name| name.as_bytes() == key)
}

/// Prefix of fields of an expression node that are remarks for readers.
pub const NODE_REMARK: &str = "//";

/// Suffixes of `type` in nodes of foreign trees (ESTree), which are data here.
pub const FOREIGN_TYPES: &[&str] = &["Expression", "Literal", "Identifier", "Statement"];

/// Content of a field of an expression node.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FieldHolds {
    /// A node, or a literal, which evaluates to itself.
    Operand,
    /// A list of operands.
    Operands,
    /// A literal of any kind.
    Data,
    /// The text of an expression.
    Text,
    /// A name.
    Name,
    /// The name of a builtin function.
    Function,
    /// The name of a method, or of a namespace function.
    Method,
    /// The name of a member, or a node that computes it.
    Member,
    /// One of these operators.
    Operator(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A list of `{key, value}`. A value is a node or a literal; a key is a name, or in programs of
    /// version 4 also a node that computes it.
    Properties,
}

/// A field of an expression node.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NodeField {
    /// Name of the field.
    pub name: &'static str,
    /// Content of the field.
    pub holds: FieldHolds,
    /// True if a node must have the field.
    pub required: bool,
}

/// An expression node: an object whose `$expr` is the tag.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NodeForm {
    /// The text of `$expr`.
    pub tag: &'static str,
    /// Meaning of the node.
    pub docs: &'static str,
    /// Its fields, required ones first.
    pub fields: &'static [NodeField],
}

const fn need(name: &'static str, holds: FieldHolds) -> NodeField {
    NodeField {
        name,
        holds,
        required: true,
    }
}

const fn may(name: &'static str, holds: FieldHolds) -> NodeField {
    NodeField {
        name,
        holds,
        required: false,
    }
}

/// Operators of `binary`.
pub const BINARY_OPS: &[&str] = &[
    "+", "-", "*", "/", "%", "**", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "&&", "||", "??",
];

/// Operators of `logical`, which `binary` also takes (D47).
pub const LOGICAL_OPS: &[&str] = &["&&", "||", "??"];

/// Operators of `unary`.
pub const UNARY_OPS: &[&str] = &["!", "-", "+", "typeof"];

use FieldHolds::{
    Data, Flag, Function, Member, Method, Name, Operand, Operands, Operator, Properties, Text,
};

/// Every expression node.
pub const NODES: &[NodeForm] = &[
    NodeForm {
        tag: "literal",
        docs: "A literal of any kind, as written.",
        fields: &[need("value", Data)],
    },
    NodeForm {
        tag: "text",
        docs: "An expression as text, `a.b * 2`, in programs of version 4; `{\"=\": text}` for short.",
        fields: &[need("value", Text)],
    },
    NodeForm {
        tag: "ident",
        docs: "A variable, else an argument, else a builtin of this name.",
        fields: &[need("name", Name)],
    },
    NodeForm {
        tag: "member",
        docs: "A member of an object, an element of a list, or the `length` of a list or text.",
        fields: &[
            need("object", Operand),
            need("property", Member),
            may("computed", Flag),
            may("optional", Flag),
        ],
    },
    NodeForm {
        tag: "binary",
        docs: "An operator between two operands.",
        fields: &[
            need("op", Operator(BINARY_OPS)),
            need("left", Operand),
            need("right", Operand),
        ],
    },
    NodeForm {
        tag: "unary",
        docs: "An operator before its operand.",
        fields: &[
            need("op", Operator(UNARY_OPS)),
            need("argument", Operand),
            may("prefix", Flag),
        ],
    },
    NodeForm {
        tag: "logical",
        docs: "A logical operator, whose right side is evaluated if it is needed.",
        fields: &[
            need("op", Operator(LOGICAL_OPS)),
            need("left", Operand),
            need("right", Operand),
        ],
    },
    NodeForm {
        tag: "conditional",
        docs: "One of two operands.",
        fields: &[
            need("test", Operand),
            need("consequent", Operand),
            need("alternate", Operand),
        ],
    },
    NodeForm {
        tag: "array",
        docs: "A list of operands.",
        fields: &[need("elements", Operands)],
    },
    NodeForm {
        tag: "object",
        docs: "An object whose members are operands.",
        fields: &[need("properties", Properties)],
    },
    NodeForm {
        tag: "context",
        docs: "A part of the request context, in programs of version 4, where the host allows it.",
        fields: &[need("path", Text)],
    },
    NodeForm {
        tag: "call",
        docs: "A call of a builtin function by its name, as in `parseInt`.",
        fields: &[need("callee", Function), may("arguments", Operands)],
    },
    NodeForm {
        tag: "methodCall",
        docs: "A call of a method, or of a function of a namespace: `object` is `{\"$expr\": \
               \"ident\", \"name\": \"Math\"}` then.",
        fields: &[
            need("object", Operand),
            need("method", Method),
            may("arguments", Operands),
            may("optional", Flag),
        ],
    },
];

impl NodeForm {
    /// The node with a tag.
    #[must_use]
    pub fn of(tag: &str) -> Option<&'static NodeForm> {
        NODES.iter().find(|node| node.tag == tag)
    }

    /// Names of all fields.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.fields.iter().map(|field| field.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_needed_come_first() {
        for node in NODES {
            assert!(
                node.fields.is_sorted_by_key(|field| !field.required),
                "{node:?}"
            );
            assert_eq!(NodeForm::of(node.tag), Some(node));
        }
        assert!(LOGICAL_OPS.iter().all(|op| BINARY_OPS.contains(op)));
    }

    #[test]
    fn remarks() {
        for (key, expected) in [("//", true), ("$id", true), ("note", true), ("op", false)] {
            assert_eq!(is_remark(key.as_bytes()), expected, "{key}");
        }
    }
}
