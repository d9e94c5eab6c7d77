//! Prices and their version. A program that was compiled before belongs to one
//! version of the prices, so whoever changes a price raises `PRICE_VERSION`:
//! `goldens/prices` holds the prices of the version that its file is named by.
//! What is charged where is held by the fuel of the vectors.

use a99_core::builtins::{FUNCTIONS, METHODS};
use a99_core::costs::{self, CostModel, Formula, PRICE_VERSION, Sizes};
use a99_core::sig::BaseCost;
use agent99::all_atoms;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The file that holds the version and most of the prices.
const COSTS: &str = "core/src/costs.rs";

/// Sizes at which a price that grows is noted.
const SIZES: [usize; 5] = [0, 1, 2, 300, 100_000];

/// A line for each constant: its name and value.
macro_rules! constants {
    ($($name:ident)*) => {
        vec![$((stringify!($name), costs::$name.to_string())),*]
    };
}

/// A line for each formula that has a name.
macro_rules! formulas {
    ($($name:ident)*) => {
        vec![$((stringify!($name), costs::$name.code())),*]
    };
}

/// A line for each function of one size: its values at [`SIZES`].
macro_rules! functions {
    ($($name:ident)*) => {
        vec![$((stringify!($name), at_sizes(|n| costs::$name(n) as i64))),*]
    };
}

fn at_sizes(price: impl Fn(usize) -> i64) -> String {
    SIZES.map(|n| price(n).to_string()).join(" ")
}

/// A price in both models.
fn both(price: impl Fn(CostModel) -> i64) -> String {
    format!("{} {}", price(CostModel::Metered), price(CostModel::Flat))
}

/// Names and values of what `costs.rs` says.
fn shared() -> Vec<(&'static str, String)> {
    let mut lines = constants![
        MICRO NODE NODE_METERED LOOP_TURN WORK_SHARE CACHE_STORE UNIT ELEMENT COMPACTION
        SCHEMA_NODE SCHEMA_READ SCHEMA_ALLOWED SCHEMA_REQUIRED REGEX_POSITION REGEX_STEP
        REGEX_WAYS REGEX_BACK REGEX_PROPERTY REGEX_WAY REGEX_PART
        COMMAND_SECOND COMMAND_BYTE STORE_BYTE COMPILE_ELEMENT COMPILE_UNIT SHORT_TEXT COMPARED_PIECE
        CROSSING_VALUE CROSSING_ELEMENT CROSSING_MEMBER CROSSING_RESULT JSON_LISTED
        JSON_REPLACED PARSED_CONTAINER SORT_STEP FEW_DIGITS FEW_RADIX_DIGITS MANY_DIGITS FEW_HOLES
        HOLE DATE_TEXT
    ];
    lines.extend(formulas![
        READ WRITTEN BOTH SPLIT JOIN MEMBERS LIST_TEXT LINE PARSE STRINGIFY DIGEST XML NUMERAL FREE
    ]);
    lines.extend(functions![
        compared_units taken_apart name_units crossing_text crossing_list
        crossing_object formatted_units comparator_steps copied json_list json_object
        object_nodes
    ]);
    let data = |is_object| at_sizes(|n| costs::data_nodes(is_object, n) as i64);
    let formula = |formula: Formula| {
        at_sizes(|n| {
            let sizes = Sizes::units(n).out_units(2 * n).out_elements(3 * n);
            let read = Sizes {
                in_elements: n as u64,
                ..sizes
            };
            formula.price(read)
        })
    };
    lines.extend([
        (
            "regex_weight",
            at_sizes(|n| costs::regex_weight(7, n as u64, true, n > 2) as i64),
        ),
        ("regex_ways", at_sizes(|n| costs::regex_ways(n as u64))),
        ("regex_found", at_sizes(|n| costs::regex_found(n, 2) as i64)),
        ("regex_price", at_sizes(|n| costs::regex_price(7, n as u64))),
        (
            "sorted_units",
            at_sizes(|n| costs::sorted_units(n, 5_000) as i64),
        ),
        ("data_nodes", format!("{}; {}", data(false), data(true))),
        (
            "collated_units",
            at_sizes(|n| costs::collated_units(n, n > 2) as i64),
        ),
        (
            "searched_units",
            at_sizes(|n| costs::searched_units(n, n > 2) as i64),
        ),
        (
            "normalized_units",
            at_sizes(|n| costs::normalized_units(n, 3 * n) as i64),
        ),
        ("node", both(costs::node)),
        ("loop_turn", both(costs::loop_turn)),
        ("work", both(|model| costs::work(100_001, model))),
        ("read", formula(costs::read(3))),
        ("both", formula(costs::both(3))),
        ("Formula::Keys", formula(Formula::Keys(3))),
        ("Formula::Sort", formula(Formula::Sort)),
    ]);
    lines
}

/// All prices, one a line.
fn prices() -> String {
    let mut out = String::new();
    for (name, value) in shared() {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "{name} {value}");
    }
    for atom in all_atoms().iter() {
        let (cost, code) = (atom.sig.cost, atom.sig.metered.code());
        let computed = match cost {
            BaseCost::Dynamic(_) => " computed",
            BaseCost::Fixed(_) | BaseCost::Work(_) => "",
        };
        let fixed = both(|model| cost.fixed_in(model));
        let _ = writeln!(out, "atom {} {fixed}{computed} {code}", atom.sig.name);
    }
    for row in FUNCTIONS {
        let reads = format!("{:?}", row.reads);
        let _ = writeln!(
            out,
            "function {} {} {reads}",
            row.full_name(),
            row.cost.code()
        );
    }
    for row in METHODS {
        let (reads, on) = (format!("{:?}", row.reads), format!("{:?}", row.on));
        let _ = writeln!(out, "method {} {on} {} {reads}", row.name, row.cost.code());
    }
    out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn costs_text() -> String {
    std::fs::read_to_string(root().join(COSTS)).expect("the prices")
}

/// The line that says the version.
fn version_line() -> usize {
    let text = costs_text();
    let at = text
        .lines()
        .position(|line| line.contains("PRICE_VERSION: u32"));
    at.expect("the version of the prices") + 1
}

/// Where the prices of a version are kept.
fn golden(version: u32) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/prices");
    folder.join(format!("{version}.txt"))
}

/// With `BLESS`, a new version gets its file, and the one before loses its own;
/// what is new is added to that of a version, and nothing else is changed.
#[test]
fn another_price_is_another_version() {
    let (now, file) = (prices(), golden(PRICE_VERSION));
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    let lacks = |others: &str, lines: &str, sign: char| {
        let gone = lines
            .lines()
            .filter(|line| !others.lines().any(|other| other == *line));
        gone.map(|line| format!("\n{sign} {line}"))
            .collect::<String>()
    };
    let changed = lacks(&now, &recorded, '-');
    assert!(
        changed.is_empty(),
        "\n{COSTS}:{}: raise `PRICE_VERSION`, then run `cargo xtask bless`: other prices \
         are{changed}{}\n",
        version_line(),
        lacks(&recorded, &now, '+')
    );
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &now).expect("to write");
        let _ = std::fs::remove_file(golden(PRICE_VERSION - 1));
        return;
    }
    let added = lacks(&recorded, &now, '+');
    assert!(
        recorded == now,
        "\n{}: run `cargo xtask bless`{added}\n",
        file.display()
    );
}

/// What `costs.rs` says and the golden lacks could change unseen.
#[test]
fn every_price_is_in_the_golden() {
    let text = costs_text();
    let known = shared();
    let mut missing = Vec::new();
    // Methods are indented; they are those of formulas and sizes.
    for (at, line) in text.lines().enumerate() {
        let public = line.strip_prefix("pub ").unwrap_or_default();
        let name = match public.split_once("fn ") {
            Some((_, rest)) => rest.split_once('(').map(|(name, _)| name),
            None => public
                .strip_prefix("const ")
                .and_then(|rest| rest.split_once(": "))
                // The version, and what is measured.
                .filter(|(_, rest)| !rest.starts_with("u32"))
                .map(|(name, _)| name),
        };
        let Some(name) = name else {
            continue;
        };
        if !known.iter().any(|(other, _)| *other == name) {
            let place = format!("{COSTS}:{}", at + 1);
            missing.push(format!("{place}: {name}: not in tests/tests/it/prices.rs"));
        }
    }
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}
