//! The sections of a file and the parts of a program that each holds.

use super::wire::{Malformed, Reader, Taken, Wire};
use crate::json::{Document, Limits, NodeId};
use crate::program::{Block, Charge, Function, Handler, Op, Program, Scope, Step, Wrap};
use crate::value::Value;

/// Kind of a section. Sections are ordered by these numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum SectionKind {
    /// All static text, WTF-8.
    Text = 1,
    /// Constants.
    Constants = 2,
    /// Object keys.
    Keys = 3,
    /// Object shapes.
    Shapes = 4,
    /// Dotted paths.
    Paths = 5,
    /// Literal arrays and objects.
    Literals = 6,
    /// Argument keys.
    Arguments = 7,
    /// Atoms, with their signatures and prices at compile time.
    Imports = 8,
    /// Call sites of atoms.
    Sites = 9,
    /// Memo sites.
    Memos = 10,
    /// Variable tables for code that arrives at run time.
    Names = 11,
    /// Schemas of projected results, as JSON.
    Schemas = 12,
    /// Names bound before the program starts.
    Outer = 13,
    /// JSON Schema of the arguments.
    InputSchema = 14,
    /// The root's `helpers` as JSON.
    Helpers = 15,
    /// Code, blocks with prices, charges, steps, scopes, handlers.
    Functions = 16,
    /// Source nodes of steps and code; strippable.
    SourceMap = 32,
    /// The source text; strippable.
    Source = 33,
    /// For each value and key of the source, the byte range of the origin that it was made from.
    OriginPlaces = 34,
    /// The non-JSON text that the source was generated from; strippable.
    Origin = 35,
}

/// All kinds in file order.
pub(super) const KINDS: &[SectionKind] = &[
    SectionKind::Text,
    SectionKind::Constants,
    SectionKind::Keys,
    SectionKind::Shapes,
    SectionKind::Paths,
    SectionKind::Literals,
    SectionKind::Arguments,
    SectionKind::Imports,
    SectionKind::Sites,
    SectionKind::Memos,
    SectionKind::Names,
    SectionKind::Schemas,
    SectionKind::Outer,
    SectionKind::InputSchema,
    SectionKind::Helpers,
    SectionKind::Functions,
    SectionKind::SourceMap,
    SectionKind::Source,
    SectionKind::OriginPlaces,
    SectionKind::Origin,
];

impl SectionKind {
    /// The kind with a number.
    pub(super) fn of(number: u32) -> Option<SectionKind> {
        KINDS.iter().copied().find(|kind| *kind as u32 == number)
    }

    /// True if a file may omit the section.
    pub(super) fn is_optional(self) -> bool {
        matches!(
            self,
            SectionKind::InputSchema
                | SectionKind::Helpers
                | SectionKind::SourceMap
                | SectionKind::Source
                | SectionKind::OriginPlaces
                | SectionKind::Origin
        )
    }

    /// Display name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::Text => "text",
            SectionKind::Constants => "constants",
            SectionKind::Keys => "keys",
            SectionKind::Shapes => "shapes",
            SectionKind::Paths => "paths",
            SectionKind::Literals => "literals",
            SectionKind::Arguments => "arguments",
            SectionKind::Imports => "imports",
            SectionKind::Sites => "sites",
            SectionKind::Memos => "memos",
            SectionKind::Names => "names",
            SectionKind::Schemas => "schemas",
            SectionKind::Outer => "outer",
            SectionKind::InputSchema => "input-schema",
            SectionKind::Helpers => "helpers",
            SectionKind::Functions => "functions",
            SectionKind::SourceMap => "source-map",
            SectionKind::Source => "source",
            SectionKind::OriginPlaces => "origin-places",
            SectionKind::Origin => "origin",
        }
    }
}

/// Layout of the section's content, as `docs/a99b.md` prints it.
pub(super) fn layout(kind: SectionKind) -> String {
    fn of<T: Wire>(_: impl Fn(&Program) -> &Vec<T>) -> String {
        Vec::<T>::layout()
    }
    match kind {
        SectionKind::Text | SectionKind::Source | SectionKind::Origin => "bytes".to_owned(),
        SectionKind::OriginPlaces => Vec::<(u32, u32)>::layout(),
        SectionKind::InputSchema | SectionKind::Helpers => "JSON text".to_owned(),
        SectionKind::SourceMap => "see below".to_owned(),
        SectionKind::Constants => of(|p| &p.consts),
        SectionKind::Keys => of(|p| &p.keys),
        SectionKind::Shapes => of(|p| &p.shapes),
        SectionKind::Paths => of(|p| &p.paths),
        SectionKind::Literals => of(|p| &p.literals),
        SectionKind::Arguments => of(|p| &p.args),
        SectionKind::Imports => of(|p| &p.ops),
        SectionKind::Sites => of(|p| &p.sites),
        SectionKind::Memos => of(|p| &p.memos),
        SectionKind::Names => of(|p| &p.names),
        SectionKind::Schemas => Vec::<Json>::layout(),
        SectionKind::Outer => of(|p| &p.outer),
        SectionKind::Functions => of(|p| &p.functions),
    }
}

/// A step without its source node, which is in the source map.
struct BareStep(Step);

impl Wire for BareStep {
    const LEAST: usize = 5 * 4 + 2;
    fn put(&self, out: &mut Vec<u8>) {
        let step = &self.0;
        for field in [step.parent, step.start, step.end, step.op, step.scope] {
            field.put(out);
        }
        step.implicit.put(out);
        step.value.put(out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        Ok(BareStep(Step {
            parent: u32::take(r)?,
            start: u32::take(r)?,
            end: u32::take(r)?,
            op: u32::take(r)?,
            scope: u32::take(r)?,
            implicit: bool::take(r)?,
            value: u8::take(r)?,
            node: NodeId(0),
        }))
    }
    fn layout() -> String {
        "Step".to_owned()
    }
}

impl Wire for Function {
    const LEAST: usize = 4 + 1 + 1 + 4 + 7 * 4;
    fn put(&self, out: &mut Vec<u8>) {
        self.name.put(out);
        self.params.put(out);
        self.registers.put(out);
        self.slots.put(out);
        self.code.put(out);
        self.blocks.put(out);
        self.charges.put(out);
        (self.steps.len() as u32).put(out);
        self.steps.iter().for_each(|step| BareStep(*step).put(out));
        self.scopes.put(out);
        self.handlers.put(out);
        self.wraps.put(out);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        Ok(Function {
            name: u32::take(r)?,
            params: u8::take(r)?,
            registers: u8::take(r)?,
            slots: u32::take(r)?,
            code: Vec::<Op>::take(r)?,
            blocks: Vec::<Block>::take(r)?,
            charges: Vec::<Charge>::take(r)?,
            steps: Vec::<BareStep>::take(r)?
                .into_iter()
                .map(|step| step.0)
                .collect(),
            scopes: Vec::<Scope>::take(r)?,
            handlers: Vec::<Handler>::take(r)?,
            wraps: Vec::<Wrap>::take(r)?,
            places: Vec::new(),
        })
    }
    fn layout() -> String {
        "Function".to_owned()
    }
}

/// Layouts of the records that this file encodes by hand;
/// [`record_layouts`](super::wire::record_layouts) has the others.
pub(super) fn own_layouts() -> [(&'static str, Vec<(&'static str, String)>); 2] {
    let u32s = |names: &[&'static str]| -> Vec<(&'static str, String)> {
        names.iter().map(|name| (*name, u32::layout())).collect()
    };
    let mut step = u32s(&["parent", "start", "end", "op", "scope"]);
    step.extend([("implicit", bool::layout()), ("value", u8::layout())]);
    let function = vec![
        ("name", u32::layout()),
        ("params", u8::layout()),
        ("registers", u8::layout()),
        ("slots", u32::layout()),
        ("code", Vec::<Op>::layout()),
        ("blocks", Vec::<Block>::layout()),
        ("charges", Vec::<Charge>::layout()),
        ("steps", Vec::<BareStep>::layout()),
        ("scopes", Vec::<Scope>::layout()),
        ("handlers", Vec::<Handler>::layout()),
        ("wraps", Vec::<Wrap>::layout()),
    ];
    [("Step", step), ("Function", function)]
}

/// A schema or another value that came from JSON, encoded as JSON text.
struct Json(Value);

impl Wire for Json {
    const LEAST: usize = 4;
    fn put(&self, out: &mut Vec<u8>) {
        let text = json_text(&self.0);
        (text.len() as u32).put(out);
        out.extend_from_slice(&text);
    }
    fn take(r: &mut Reader<'_>) -> Taken<Self> {
        let n = u32::take(r)? as usize;
        let text = r.slice(n)?;
        json_value(text)
            .map(Json)
            .map_or_else(|| r.wrong("no JSON"), Ok)
    }
    fn layout() -> String {
        "json".to_owned()
    }
}

fn json_text(value: &Value) -> Vec<u8> {
    let document = Document::from_value(value);
    let mut text = Vec::new();
    document.write_json(document.root(), &mut text);
    text
}

fn json_value(text: &[u8]) -> Option<Value> {
    let document = Document::parse(text, &Limits::default()).ok()?;
    Some(document.to_value(document.root()))
}

fn list<T: Wire>(items: &Vec<T>) -> Vec<u8> {
    let mut out = Vec::new();
    items.put(&mut out);
    out
}

/// The bytes of a section; `None` if the program has no content for it.
pub(super) fn write(p: &Program, kind: SectionKind) -> Option<Vec<u8>> {
    Some(match kind {
        SectionKind::Text => p.text.clone(),
        SectionKind::Constants => list(&p.consts),
        SectionKind::Keys => list(&p.keys),
        SectionKind::Shapes => list(&p.shapes),
        SectionKind::Paths => list(&p.paths),
        SectionKind::Literals => list(&p.literals),
        SectionKind::Arguments => list(&p.args),
        SectionKind::Imports => list(&p.ops),
        SectionKind::Sites => list(&p.sites),
        SectionKind::Memos => list(&p.memos),
        SectionKind::Names => list(&p.names),
        SectionKind::Schemas => list(&p.schemas.iter().cloned().map(Json).collect()),
        SectionKind::Outer => list(&p.outer),
        SectionKind::InputSchema => json_text(p.input_schema.as_ref()?),
        SectionKind::Helpers => match &p.helpers {
            Some(helpers) => json_text(helpers),
            None => json_text(&p.source.root_member("helpers")?),
        },
        SectionKind::Functions => list(&p.functions),
        SectionKind::SourceMap => source_map(p)?,
        SectionKind::Source => p.source.text()?.into_owned(),
        SectionKind::OriginPlaces => list(&p.source.origin()?.1.to_vec()),
        SectionKind::Origin => p.source.origin()?.0.to_vec(),
    })
}

/// The source map: for each function the nodes of its steps, then its places.
fn source_map(p: &Program) -> Option<Vec<u8>> {
    let known = p.functions.iter().any(|f| !f.places.is_empty());
    let mut out = Vec::new();
    for f in &p.functions {
        f.steps.iter().for_each(|step| step.node.put(&mut out));
        f.places.put(&mut out);
    }
    known.then_some(out)
}

/// Decodes a section into a program. The functions come before the source map.
pub(super) fn read(p: &mut Program, kind: SectionKind, bytes: &[u8]) -> Result<(), Malformed> {
    let mut r = Reader::new(bytes);
    let r = &mut r;
    match kind {
        SectionKind::Text => p.text = r.slice(bytes.len())?.to_vec(),
        SectionKind::Constants => p.consts = Wire::take(r)?,
        SectionKind::Keys => p.keys = Wire::take(r)?,
        SectionKind::Shapes => p.shapes = Wire::take(r)?,
        SectionKind::Paths => p.paths = Wire::take(r)?,
        SectionKind::Literals => p.literals = Wire::take(r)?,
        SectionKind::Arguments => p.args = Wire::take(r)?,
        SectionKind::Imports => p.ops = Wire::take(r)?,
        SectionKind::Sites => p.sites = Wire::take(r)?,
        SectionKind::Memos => p.memos = Wire::take(r)?,
        SectionKind::Names => p.names = Wire::take(r)?,
        SectionKind::Schemas => {
            let schemas: Vec<Json> = Wire::take(r)?;
            p.schemas = schemas.into_iter().map(|schema| schema.0).collect();
        }
        SectionKind::Outer => p.outer = Wire::take(r)?,
        SectionKind::InputSchema => p.input_schema = Some(whole_json(r)?),
        SectionKind::Helpers => p.helpers = Some(whole_json(r)?),
        SectionKind::Functions => p.functions = Wire::take(r)?,
        SectionKind::SourceMap => {
            for f in &mut p.functions {
                for step in &mut f.steps {
                    step.node = Wire::take(r)?;
                }
                f.places = Wire::take(r)?;
            }
        }
        SectionKind::Source => p.source = crate::program::Source::from_text(r.slice(bytes.len())?),
        SectionKind::OriginPlaces => p.source.set_places(Wire::take(r)?),
        SectionKind::Origin => p.source.set_origin(r.slice(bytes.len())?),
    }
    r.end()
}

fn whole_json(r: &mut Reader<'_>) -> Taken<Value> {
    match json_value(r.slice(r.left())?) {
        Some(value) => Ok(value),
        None => r.wrong("no JSON"),
    }
}
