//! Tree building: from the events of quick-xml to values.

use crate::XmlLimits;
use crate::characters::{is_blank, is_char, is_name};
use crate::error::{XmlCode, XmlError};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::{EscapeError, resolve_xml_entity};
use quick_xml::events::{BytesRef, BytesStart, Event};

/// Events in one turn: a fraction of a millisecond.
const EVENTS_IN_TURN: usize = 500;
/// Bytes in one turn.
const BYTES_IN_TURN: u64 = 64 << 10;

/// What a turn came to.
pub(crate) enum Turn {
    /// There is more.
    More,
    /// The root element.
    Done(Value),
}

/// An element that is not closed yet.
struct Frame {
    name: Text,
    attributes: Map,
    children: Vec<Value>,
    /// Places of children that are white space from between tags.
    blanks: Vec<usize>,
    holds_elements: bool,
    /// Text since the last tag.
    pending: String,
    /// Whether some of it was written as a section or reference, which is never
    /// indentation.
    explicit: bool,
}

/// A document that is being read.
pub(crate) struct Tree<'t> {
    text: &'t str,
    limits: &'t XmlLimits,
    reader: Reader<&'t [u8]>,
    open: Vec<Frame>,
    root: Option<Value>,
    nodes: usize,
    begun: bool,
    keys: [Text; 4],
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
            open: Vec::new(),
            root: None,
            nodes: 0,
            begun: false,
            keys: ["name", "attributes", "children", "text"].map(Text::from),
        })
    }

    /// Reads on for a while.
    pub(crate) fn turn(&mut self) -> Result<Turn, XmlError> {
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
                return self.end().map(Turn::Done);
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
            // Expanded by the reader.
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
                // The text is decoded already; what it says of an encoding does
                // not count.
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
        if self.open.is_empty() && self.root.is_some() {
            return Err(self.wrong("there is a second root element"));
        }
        if self.open.len() == self.limits.max_depth {
            let message = format!("XML elements are more than {} deep", self.limits.max_depth);
            return Err(self.fault(XmlCode::TooDeep, &message));
        }
        self.count()?;
        let name = start.name();
        let name = self.name(name.as_ref())?;
        let mut attributes = Map::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.wrong(&error.to_string()))?;
            if attributes.len() == self.limits.max_attributes {
                let most = self.limits.max_attributes;
                let message = format!("an XML element has more than {most} attributes");
                return Err(self.fault(XmlCode::TooManyAttributes, &message));
            }
            self.count()?;
            let key = self.name(attribute.key.as_ref())?;
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
            attributes.insert(key, &*value);
        }
        if let Some(parent) = self.open.last_mut() {
            parent.holds_elements = true;
            flush(parent, &mut self.nodes);
        }
        self.open.push(Frame {
            name,
            attributes,
            children: Vec::new(),
            blanks: Vec::new(),
            holds_elements: false,
            pending: String::new(),
            explicit: false,
        });
        self.within()
    }

    fn close(&mut self) -> Result<(), XmlError> {
        let Some(mut frame) = self.open.pop() else {
            return Err(self.wrong("an end tag has no start tag"));
        };
        flush(&mut frame, &mut self.nodes);
        self.within()?;
        let mut children = frame.children;
        if frame.holds_elements && !frame.blanks.is_empty() {
            let mut blanks = frame.blanks.into_iter().peekable();
            let mut place = 0;
            children.retain(|_| {
                let blank = blanks.next_if_eq(&place).is_some();
                place += 1;
                !blank
            });
        }
        let texts: Vec<&Text> = children.iter().filter_map(Value::as_text).collect();
        let text = match texts.as_slice() {
            [one] => (*one).clone(),
            texts => Text::from_wtf8(texts.iter().flat_map(|t| t.as_bytes()).copied().collect()),
        };
        let [name_key, attributes_key, children_key, text_key] = self.keys.clone();
        let mut element = Map::with_capacity(4);
        element.insert(name_key, frame.name);
        element.insert(attributes_key, frame.attributes);
        element.insert(children_key, children);
        element.insert(text_key, text);
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element.into()),
            None => self.root = Some(element.into()),
        }
        Ok(())
    }

    fn text(&mut self, text: &str, explicit: bool) -> Result<(), XmlError> {
        match self.open.last_mut() {
            Some(frame) => {
                frame.pending.push_str(text);
                frame.explicit |= explicit;
                Ok(())
            }
            None if !explicit && is_blank(text) => Ok(()),
            None => Err(self.wrong("there is text outside of the root element")),
        }
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

    fn end(&mut self) -> Result<Value, XmlError> {
        if let Some(frame) = self.open.last() {
            let message = format!("the XML element {} has no end tag", shown(&frame.name));
            return Err(self.syntax(message, self.text.len()));
        }
        let root = self.root.take();
        root.ok_or_else(|| self.wrong("there is no root element"))
    }

    fn name(&self, name: &str) -> Result<Text, XmlError> {
        match is_name(name) {
            true => Ok(Text::from(name)),
            false => Err(self.wrong("a name is missing or has characters that names have not")),
        }
    }

    fn count(&mut self) -> Result<(), XmlError> {
        self.nodes += 1;
        self.within()
    }

    fn within(&self) -> Result<(), XmlError> {
        if self.nodes <= self.limits.max_nodes {
            return Ok(());
        }
        let most = self.limits.max_nodes;
        let message = format!("the XML text has more than {most} elements, texts and attributes");
        Err(self.fault(XmlCode::TooManyNodes, &message))
    }

    fn unknown_entity(&self, name: &str) -> XmlError {
        let name = shown(&Text::from(name));
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

/// Makes the text since the last tag a child.
fn flush(frame: &mut Frame, nodes: &mut usize) {
    if frame.pending.is_empty() {
        return;
    }
    *nodes += 1;
    let text = std::mem::take(&mut frame.pending);
    if !std::mem::take(&mut frame.explicit) && is_blank(&text) {
        frame.blanks.push(frame.children.len());
    }
    frame.children.push(text.into());
}

/// A name in a message: not longer than a line.
fn shown(name: &Text) -> String {
    cut(&name.to_string_lossy(), 60)
}

/// The first so many characters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
