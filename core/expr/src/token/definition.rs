// The raw tokens of condition texts, for logos. Not compiled as it stands: what logos
// makes of it is `generated.rs`, written anew by `cargo xtask bless` and held by
// `tests/lexer.rs`.

/// The raw tokens.
#[derive(Logos, Copy, Clone, Debug, PartialEq, Eq)]
// ECMA-262 §12.2 and §12.3: WhiteSpace and LineTerminator.
#[logos(skip r"[ \t\n\r\x0B\x0C\u{A0}\u{FEFF}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}]+")]
pub(crate) enum Raw {
    #[regex(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")]
    #[regex(r"\.[0-9]+([eE][+-]?[0-9]+)?")]
    Number,
    #[regex(r#""([^"\\]|\\.|\\\n)*""#)]
    #[regex(r"'([^'\\]|\\.|\\\n)*'")]
    String,
    // A quote that no second quote answers.
    #[regex(r#""([^"\\]|\\.|\\\n)*\\?"#, priority = 1)]
    #[regex(r"'([^'\\]|\\.|\\\n)*\\?", priority = 1)]
    UnclosedString,
    // Any character beyond ASCII that is not white space is part of a name, as in JSEP.
    #[regex(r"[A-Za-z_$[\u{80}-\u{10FFFF}--[\u{A0}\u{FEFF}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}]]][0-9A-Za-z_$[\u{80}-\u{10FFFF}--[\u{A0}\u{FEFF}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}]]]*")]
    Ident,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token(".")]
    Dot,
    #[token("?.")]
    OptionalDot,
    #[token(",")]
    Comma,
    #[token("?")]
    Question,
    #[token(":")]
    Colon,
    #[token("!")]
    Not,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("**")]
    StarStar,
    #[token("==")]
    EqEq,
    #[token("!=")]
    NotEq,
    #[token("===")]
    EqEqEq,
    #[token("!==")]
    NotEqEq,
    #[token("<")]
    Lt,
    #[token(">")]
    Gt,
    #[token("<=")]
    Le,
    #[token(">=")]
    Ge,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
    #[token("??")]
    Nullish,
    // Known from JavaScript and refused by name.
    #[token("=")]
    #[token("+=")]
    #[token("-=")]
    #[token("*=")]
    #[token("/=")]
    #[token("%=")]
    #[token("**=")]
    #[token("&&=")]
    #[token("||=")]
    #[token("??=")]
    Assign,
    #[token("=>")]
    Arrow,
    #[token("&")]
    #[token("|")]
    #[token("^")]
    #[token("<<")]
    #[token(">>")]
    #[token(">>>")]
    Bitwise,
    #[token("~")]
    Tilde,
    #[token("`")]
    Backtick,
    #[token("{")]
    #[token("}")]
    Brace,
    #[token(";")]
    Semicolon,
    #[token("...")]
    Spread,
}
