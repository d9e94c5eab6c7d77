//! Shell grammar: the part of POSIX's that interactive lines need. Words keep their quotes
//! until they are expanded.

/// Why a text does not parse.
#[derive(Debug, PartialEq, Eq)]
pub enum Bad {
    /// More lines may complete it.
    Incomplete,
    /// A syntax error.
    Syntax(String),
}

/// Redirection of a descriptor.
#[derive(Clone, Debug)]
pub struct Redirect {
    pub fd: u32,
    /// `<`, `>`, `>>` or `>&`.
    pub operator: &'static str,
    pub target: String,
}

#[derive(Clone, Debug)]
pub enum Node {
    /// Assignments, words, redirections.
    Simple(Vec<String>, Vec<Redirect>),
    Group(Vec<Item>, Vec<Redirect>),
    While(Vec<Item>, Vec<Item>),
    Function(String, Vec<Item>),
}

/// When an item runs: always, after success, after failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    And,
    Or,
}

#[derive(Clone, Debug)]
pub struct Item(pub When, pub Node);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Operator(&'static str),
}

const OPERATORS: [&str; 15] = [
    "&&", "||", ">>", ">|", ">&", "<<", ";;", ";", "&", "|", "<", ">", "(", ")", "\n",
];

/// Parses a text.
pub fn parse(text: &str) -> Result<Vec<Item>, Bad> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    let list = parser.list(&[])?;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(Bad::Syntax(format!("{token:?} unexpected"))),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, Bad> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.starts_with('#') {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        }
        if rest.is_empty() {
            return Ok(tokens);
        }
        if let Some(operator) = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator))
        {
            tokens.push(Token::Operator(operator));
            rest = &rest[operator.len()..];
            continue;
        }
        let end = word_end(rest)?;
        tokens.push(Token::Word(rest[..end].to_owned()));
        rest = &rest[end..];
    }
}

/// End of the word at the start of a text.
fn word_end(text: &str) -> Result<usize, Bad> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\'' => at += 2 + find(&bytes[at + 1..], b'\'')?,
            b'"' => at = quoted_end(bytes, at + 1)?,
            b'$' if bytes.get(at + 1) == Some(&b'(') => at = parenthesis_end(bytes, at + 2)?,
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
            _ => at += 1,
        }
    }
    match at <= bytes.len() {
        true => Ok(at),
        false => Err(Bad::Incomplete),
    }
}

fn find(bytes: &[u8], wanted: u8) -> Result<usize, Bad> {
    bytes
        .iter()
        .position(|&byte| byte == wanted)
        .ok_or(Bad::Incomplete)
}

/// End of a double-quoted text, after the quote.
pub fn quoted_end(bytes: &[u8], mut at: usize) -> Result<usize, Bad> {
    loop {
        match bytes.get(at) {
            None => return Err(Bad::Incomplete),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(b'$') if bytes.get(at + 1) == Some(&b'(') => at = parenthesis_end(bytes, at + 2)?,
            Some(_) => at += 1,
        }
    }
}

/// End of a `$(`…`)`, after the parenthesis.
pub fn parenthesis_end(bytes: &[u8], mut at: usize) -> Result<usize, Bad> {
    loop {
        match bytes.get(at) {
            None => return Err(Bad::Incomplete),
            Some(b')') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(b'\'') => at += 2 + find(&bytes[at + 1..], b'\'')?,
            Some(b'"') => at = quoted_end(bytes, at + 1)?,
            Some(b'$') if bytes.get(at + 1) == Some(&b'(') => at = parenthesis_end(bytes, at + 2)?,
            Some(_) => at += 1,
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn operator(&self) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Operator(operator)) => Some(operator),
            _ => None,
        }
    }

    fn skip_ends(&mut self) {
        while matches!(self.operator(), Some(";" | "\n")) {
            self.at += 1;
        }
    }

    /// Parses commands up to the end, or to one of those words.
    fn list(&mut self, ends: &[&str]) -> Result<Vec<Item>, Bad> {
        let mut items = Vec::new();
        let mut when = When::Always;
        loop {
            if when == When::Always {
                self.skip_ends();
            }
            match (self.peek(), self.word()) {
                (None, _) if ends.is_empty() && when == When::Always => return Ok(items),
                (None, _) => return Err(Bad::Incomplete),
                (_, Some(word)) if ends.contains(&word) => return Ok(items),
                (Some(Token::Operator(operator)), _) => {
                    return Err(Bad::Syntax(format!("`{operator}` unexpected")));
                }
                _ => {}
            }
            items.push(Item(when, self.command()?));
            when = match self.operator() {
                Some("&&") => When::And,
                Some("||") => When::Or,
                Some(";" | "\n") | None => When::Always,
                Some(other) => return Err(Bad::Syntax(format!("`{other}` unexpected"))),
            };
            if self.operator().is_some() {
                self.at += 1;
                if when != When::Always {
                    while self.operator() == Some("\n") {
                        self.at += 1;
                    }
                }
            }
        }
    }

    fn expect(&mut self, word: &str) -> Result<(), Bad> {
        match self.word() {
            Some(found) if found == word => {
                self.at += 1;
                Ok(())
            }
            _ => Err(Bad::Incomplete),
        }
    }

    fn command(&mut self) -> Result<Node, Bad> {
        match self.word() {
            Some("{") => {
                self.at += 1;
                let list = self.list(&["}"])?;
                self.expect("}")?;
                let mut redirects = Vec::new();
                while let Some(redirect) = self.redirect()? {
                    redirects.push(redirect);
                }
                Ok(Node::Group(list, redirects))
            }
            Some("while") => {
                self.at += 1;
                let condition = self.list(&["do"])?;
                self.expect("do")?;
                let body = self.list(&["done"])?;
                self.expect("done")?;
                Ok(Node::While(condition, body))
            }
            Some(word) if matches!(word, "}" | "do" | "done" | "if" | "for" | "case") => {
                Err(Bad::Syntax(format!("`{word}` unexpected")))
            }
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> Result<Node, Bad> {
        let (mut words, mut redirects) = (Vec::new(), Vec::new());
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if words.len() == 1 && self.operator() == Some("(") {
                self.at += 1;
                if self.operator() != Some(")") {
                    return Err(Bad::Syntax("`(` unexpected".to_owned()));
                }
                self.at += 1;
                self.expect("{")?;
                let body = self.list(&["}"])?;
                self.expect("}")?;
                return Ok(Node::Function(words.remove(0), body));
            }
            match self.word() {
                Some(word) => {
                    words.push(word.to_owned());
                    self.at += 1;
                }
                None => return Ok(Node::Simple(words, redirects)),
            }
        }
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, Bad> {
        let begin = self.at;
        let mut fd = None;
        if let Some(number) = self.word().and_then(|word| word.parse().ok()) {
            fd = Some(number);
            self.at += 1;
        }
        let (operator, usual) = match self.operator() {
            Some("<") => ("<", 0),
            Some(">" | ">|") => (">", 1),
            Some(">>") => (">>", 1),
            Some(">&") => (">&", 1),
            _ => {
                self.at = begin;
                return Ok(None);
            }
        };
        self.at += 1;
        let Some(target) = self.word().map(str::to_owned) else {
            return Err(Bad::Syntax("no target".to_owned()));
        };
        self.at += 1;
        Ok(Some(Redirect {
            fd: fd.unwrap_or(usual),
            operator,
            target,
        }))
    }
}
