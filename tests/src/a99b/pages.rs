//! Parser of the tables in the pages.

use super::fingerprint;
use std::collections::HashMap;

/// A section: number, name, whether it is optional, content.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) optional: bool,
    pub(super) content: String,
}

/// A choice: tag, name, type of its field, if any.
pub(super) type Variant = (u8, String, Option<String>);

/// An instruction: its name, and the names and kinds of its operands.
pub(super) type Instruction = (String, Vec<(String, String)>);

/// The tables of both pages.
#[derive(Clone, Debug)]
pub struct Pages {
    pub(super) sections: Vec<Section>,
    pub(super) records: HashMap<String, Vec<(String, String)>>,
    pub(super) choices: HashMap<String, Vec<Variant>>,
    pub(super) instructions: Vec<Instruction>,
    /// Kinds of operands with one byte.
    pub(super) bytes: Vec<String>,
    /// The fingerprint of the instruction set.
    pub instruction_set: u64,
}

/// The cells of the table with this head, by row.
fn table<'p>(page: &'p str, head: &str) -> Vec<Vec<&'p str>> {
    let rows = page.lines().skip_while(|line| *line != head).skip(2);
    let rows = rows.take_while(|line| line.starts_with("| "));
    rows.map(|row| {
        let row = row.trim_start_matches("| ").trim_end_matches(" |");
        row.split(" | ").collect()
    })
    .collect()
}

impl Pages {
    /// Reads `docs/a99b.md` and `docs/bytecode.md`.
    ///
    /// # Panics
    /// If a page is not of the expected form.
    #[must_use]
    pub fn parse(a99b: &str, bytecode: &str) -> Pages {
        let section = |row: Vec<&str>| Section {
            number: row[0].parse().expect("a number"),
            name: row[1].to_owned(),
            optional: row[2] == "yes",
            content: row[3].to_owned(),
        };
        let mut records: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for row in table(a99b, "| record | field | type |") {
            let fields = records.entry(row[0].to_owned()).or_default();
            fields.push((row[1].to_owned(), row[2].to_owned()));
        }
        let mut choices: HashMap<String, Vec<Variant>> = HashMap::new();
        for row in table(a99b, "| choice | byte | name | field |") {
            let variants = choices.entry(row[0].to_owned()).or_default();
            let field = (row[3] != "-").then(|| row[3].to_owned());
            variants.push((row[1].parse().expect("a byte"), row[2].to_owned(), field));
        }
        let kinds = table(bytecode, "| kind | width | meaning |");
        let bytes = kinds.iter().filter(|row| row[1] == "8 bits");
        let bytes = bytes.map(|row| row[0].to_owned()).collect();
        let instructions = table(bytecode, "| code | name | operands | meaning |");
        let instructions: Vec<Instruction> = instructions
            .iter()
            .map(|row| (row[1].to_owned(), operands(row[2])))
            .collect();
        Pages {
            sections: table(a99b, "| number | section | optional | content |")
                .into_iter()
                .map(section)
                .collect(),
            records,
            choices,
            bytes,
            instruction_set: instruction_set(a99b, &instructions),
            instructions,
        }
    }
}

fn operands(cell: &str) -> Vec<(String, String)> {
    let pairs = cell.split(", ").filter_map(|pair| pair.split_once(": "));
    pairs
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// The fingerprint of the instruction set, from the names in the pages.
fn instruction_set(a99b: &str, instructions: &[Instruction]) -> u64 {
    let mut texts: Vec<&str> = Vec::new();
    for (name, operands) in instructions {
        texts.push(name);
        for (name, kind) in operands {
            texts.extend([name.as_str(), kind]);
        }
    }
    for row in table(a99b, "| in order | names |") {
        for name in row[1].split(' ') {
            if row[0] == "functions" {
                texts.push(name.split_once('.').map_or("", |(ns, _)| ns));
            }
            texts.push(name.rsplit('.').next().unwrap_or(name));
        }
    }
    fingerprint(texts.into_iter().map(str::as_bytes))
}
