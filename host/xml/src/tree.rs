//! Reading: from the events of quick-xml to the parts of a document. Values are built only once
//! the document is known to be well-formed, so that an invalid one costs no more than its
//! reading.

use crate::XmlLimits;
use crate::build::Build;
use crate::characters::{is_blank, is_char, is_name};
use crate::error::{XmlCode, XmlError};
use crate::parts::{Kind, Parts};
use a99_core::value::Value;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::{EscapeError, resolve_xml_entity};
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Events in one turn: a fraction of a millisecond.
const EVENTS_IN_TURN: usize = 500;
/// Bytes in one turn.
const BYTES_IN_TURN: u64 = 64 << 10;

/// The result of a turn.
pub(crate) enum Turn {
    /// There is more to do.
    More,
    /// The root element.
    Done(Value),
}

/// A document that is being read.
pub(crate) struct Tree<'t> {
    text: &'t str,
    limits: &'t XmlLimits,
    reader: Reader<&'t [u8]>,
    parts: Parts,
    /// Open elements, by their indices in the parts.
    open: Vec<usize>,
    nodes: usize,
    begun: bool,
    /// Whether the last part is text since the last tag.
    in_text: bool,
    /// Whether a part of it is a CDATA section or reference, which is never indentation.
    explicit: bool,
    /// Builds the value once all parts are read.
    build: Option<Build>,
}

impl<'t> Tree<'t> {
    pub(crate) fn new(text: &'t str, limits: &'t XmlLimits) -> Result<Self, XmlError> {
        if text.len() > limits.max_bytes {
            let message = format!(
                "the XML text has {} bytes, at most {} are read",
                text.len(),
                limits.max_bytes
            );
            return Err(XmlError::new(XmlCode::TooLarge, message));
        }
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !is_char(*c)) {
            let message = format!("XML has no character U+{:04X}", u32::from(c));
            return Err(XmlError::new(XmlCode::Character, message).at(text, at));
        }
        let mut reader = Reader::from_str(text);
        reader.config_mut().enable_all_checks(true);
        reader.config_mut().expand_empty_elements = true;
        Ok(Self {
            text,
            limits,
            reader,
            parts: Parts::default(),
            open: Vec::new(),
            nodes: 0,
            begun: false,
            in_text: false,
            explicit: false,
            build: None,
        })
    }

    /// Reads or builds for one turn.
    pub(crate) fn turn(&mut self) -> Result<Turn, XmlError> {
        if let Some(build) = &mut self.build {
            return Ok(build.turn(&self.parts).map_or(Turn::More, Turn::Done));
        }
        let start = self.reader.buffer_position();
        for _ in 0..EVENTS_IN_TURN {
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = self.reader.error_position() as usize;
                    return Err(self.syntax(error.to_string(), at));
                }
            };
            if let Event::Eof = event {
                self.end()?;
                self.build = Some(Build::default());
                return Ok(Turn::More);
            }
            self.event(event)?;
            self.begun = true;
            if self.reader.buffer_position() - start > BYTES_IN_TURN {
                break;
            }
        }
        Ok(Turn::More)
    }

    fn event(&mut self, event: Event<'t>) -> Result<(), XmlError> {
        match event {
            Event::Start(start) => self.start(&start),
            Event::End(_) => self.close(),
            // The reader expands empty elements.
            Event::Empty(_) => Err(self.wrong("an empty element")),
            Event::Text(text) => {
                if text.contains("]]>") {
                    return Err(self.wrong("]]> stands outside of a CDATA section"));
                }
                let text = text.xml10_content();
                self.text(&text, false)
            }
            Event::CData(text) => {
                let text = text.xml10_content();
                self.text(&text, true)
            }
            Event::GeneralRef(reference) => self.reference(&reference),
            Event::Comment(_) => Ok(()),
            Event::PI(instruction) if instruction.target().eq_ignore_ascii_case("xml") => {
                Err(self.wrong("the XML declaration stands at the start alone"))
            }
            Event::PI(instruction) if !is_name(instruction.target()) => {
                Err(self.wrong("a processing instruction begins with a name"))
            }
            Event::PI(_) => Ok(()),
            Event::Decl(declaration) => {
                if self.begun {
                    return Err(self.wrong("the XML declaration stands at the start alone"));
                }
                // The text is already decoded; its declared encoding is ignored.
                match declaration.xml_version() {
                    Ok(_) => Ok(()),
                    Err(error) => Err(self.wrong(&error.to_string())),
                }
            }
            Event::DocType(_) => Err(self.fault(
                XmlCode::Doctype,
                "the XML text has a document type, and those are not read",
            )),
            Event::Eof => Ok(()),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), XmlError> {
        if self.open.is_empty() && !self.parts.is_empty() {
            return Err(self.wrong("there is a second root element"));
        }
        if self.open.len() == self.limits.max_depth {
            let message = format!("XML elements are more than {} deep", self.limits.max_depth);
            return Err(self.fault(XmlCode::TooDeep, &message));
        }
        self.count()?;
        self.end_text();
        let name = start.name();
        self.check_name(name.as_ref())?;
        self.open.push(self.parts.len());
        self.parts.push(Kind::Open, name.as_ref());
        for (number, attribute) in start.attributes().enumerate() {
            let attribute = attribute.map_err(|error| self.wrong(&error.to_string()))?;
            if number == self.limits.max_attributes {
                let most = self.limits.max_attributes;
                let message = format!("an XML element has more than {most} attributes");
                return Err(self.fault(XmlCode::TooManyAttributes, &message));
            }
            self.count()?;
            self.check_name(attribute.key.as_ref())?;
            if attribute.value.contains('<') {
                return Err(self.wrong("an attribute has < in its value"));
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| match error {
                quick_xml::Error::Escape(EscapeError::UnrecognizedEntity(_, name)) => {
                    self.unknown_entity(&name)
                }
                error => self.wrong(&error.to_string()),
            })?;
            if let Some(c) = value.chars().find(|c| !is_char(*c)) {
                return Err(self.no_character(c));
            }
            self.parts.push(Kind::Key, attribute.key.as_ref());
            self.parts.push(Kind::Attribute, &value);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), XmlError> {
        self.end_text();
        if self.open.pop().is_none() {
            return Err(self.wrong("an end tag has no start tag"));
        }
        self.parts.push(Kind::Close, "");
        Ok(())
    }

    /// A tag ends a text; comments and processing instructions do not.
    fn end_text(&mut self) {
        (self.in_text, self.explicit) = (false, false);
    }

    fn text(&mut self, text: &str, explicit: bool) -> Result<(), XmlError> {
        if self.open.is_empty() {
            return match !explicit && is_blank(text) {
                true => Ok(()),
                false => Err(self.wrong("there is text outside of the root element")),
            };
        }
        self.explicit |= explicit;
        let kind = match self.explicit {
            true => Kind::Explicit,
            false => Kind::Text,
        };
        if self.in_text {
            self.parts.extend(kind, text);
        } else if !text.is_empty() {
            self.count()?;
            self.parts.push(kind, text);
            self.in_text = true;
        }
        Ok(())
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), XmlError> {
        let name: &str = reference;
        match reference.resolve_char_ref() {
            Ok(Some(c)) if is_char(c) => self.text(c.encode_utf8(&mut [0; 4]), true),
            Ok(Some(c)) => Err(self.no_character(c)),
            Ok(None) => match resolve_xml_entity(name) {
                Some(text) => self.text(text, true),
                None => Err(self.unknown_entity(name)),
            },
            Err(_) => Err(self.wrong("a reference names no character")),
        }
    }

    fn end(&self) -> Result<(), XmlError> {
        if let Some(at) = self.open.last() {
            let name = shown(self.parts.text(*at));
            let message = format!("the XML element {name} has no end tag");
            return Err(self.syntax(message, self.text.len()));
        }
        match self.parts.is_empty() {
            true => Err(self.wrong("there is no root element")),
            false => Ok(()),
        }
    }

    fn check_name(&self, name: &str) -> Result<(), XmlError> {
        match is_name(name) {
            true => Ok(()),
            false => Err(self.wrong("a name is missing or has characters that names have not")),
        }
    }

    fn count(&mut self) -> Result<(), XmlError> {
        self.nodes += 1;
        if self.nodes <= self.limits.max_nodes {
            return Ok(());
        }
        let most = self.limits.max_nodes;
        let message = format!("the XML text has more than {most} elements, texts and attributes");
        Err(self.fault(XmlCode::TooManyNodes, &message))
    }

    fn unknown_entity(&self, name: &str) -> XmlError {
        let name = shown(name);
        let message = format!("there is no XML entity {name}; entities are not declared");
        self.fault(XmlCode::Entity, &message)
    }

    fn no_character(&self, c: char) -> XmlError {
        let message = format!("XML has no character U+{:04X}", u32::from(c));
        self.fault(XmlCode::Character, &message)
    }

    fn wrong(&self, what: &str) -> XmlError {
        self.syntax(what.to_owned(), self.reader.buffer_position() as usize)
    }

    fn syntax(&self, what: String, at: usize) -> XmlError {
        // The reader's messages repeat whole tags.
        let what = cut(&what, 200);
        let message = format!("the XML text is not well-formed: {what}");
        XmlError::new(XmlCode::Syntax, message).at(self.text, at)
    }

    fn fault(&self, code: XmlCode, message: &str) -> XmlError {
        let at = self.reader.buffer_position() as usize;
        XmlError::new(code, message).at(self.text, at)
    }
}

/// A name for a message, truncated to a line.
fn shown(name: &str) -> String {
    cut(name, 60)
}

/// The first `most` characters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a13_what_is_not_well_formed_is_not_built() {
        let limits = XmlLimits::default();
        for text in [
            format!("<r>{}", "<a/>".repeat(20_000)),
            format!("<r>{}</r>x", "x<a b='&lt;'/><!-- -->".repeat(10_000)),
        ] {
            let mut tree = Tree::new(&text, &limits).expect("small enough");
            while tree.turn().is_ok() {
                assert!(tree.build.is_none());
            }
        }
    }
}
