//! What atoms charge and give.

use crate::build::Builder;
use crate::builtins::{E, U};
use crate::graph::{Key, Kind, NodeId, Num, Site, Tokens, What};
use a99_core::builtins::Reads;
use a99_core::costs::{Formula, MICRO};
use a99_core::program::SiteIdx;
use a99_core::sig::BaseCost;

impl Builder<'_> {
    /// Calls an atom.
    pub(crate) fn atom(&mut self, site: SiteIdx, args: &[NodeId]) -> NodeId {
        let site = self.g.program.sites[site.at()];
        let op = &self.g.program.ops[site.op as usize];
        let name = String::from_utf8_lossy(self.g.program.text(op.name)).into_owned();
        let Some(sig) = self.sigs.signature(&name) else {
            return self.unknown("an atom that is not known");
        };
        let dynamic = |cost| matches!(cost, BaseCost::Dynamic(_));
        if dynamic(op.cost) || dynamic(sig.cost) {
            // Searches of stores cost 5 and 1 for each document; 10 if their number is not valid.
            if !SEARCHES.contains(&&*name) {
                return self.unknown("an atom whose price depends on its inputs");
            }
            let k = args.get(2).copied();
            let known = k.map(|k| &self.g.nodes[k as usize].kind);
            let least = match known {
                Some(Kind::Number(k)) if *k >= 0.0 => 5.0,
                _ => 10.0,
            };
            self.pay(least * MICRO as f64, What::One);
            if let Some(k) = k {
                self.pay(MICRO as f64, What::High(k));
            }
        }
        let charged = sig.charged_by_machine();
        if let Some((cost, reads)) = charged {
            self.reads(cost, reads, None, args);
        }
        let arg = |at: usize| args.get(at).copied();
        let undefined = self.node(Kind::Undefined);
        let (one, two) = (arg(0).unwrap_or(undefined), arg(1).unwrap_or(undefined));
        let split_in = |b: &mut Self, node: NodeId| {
            // A text is split into its units first.
            b.pay(5.0 * U + 5.0 * U + E, What::Units(node));
            b.pay(50.0 * E, What::Units(node));
            b.pay(50.0 * E, What::Len(node));
        };
        match &*name {
            "push" => {
                self.store(one, None, two);
                one
            }
            "len" => self.number(Num::Len(one)),
            name if name.starts_with("guard:") => self.node(Kind::Scalar),
            "template" | "template:paths" => self.filled(one, two, false),
            "template:text" => {
                self.pay(1.0, What::ToText(one));
                self.pay(U, What::Conv(one));
                self.text(vec![(1.0, What::Conv(one))])
            }
            "template:fill" | "template:fillPaths" => self.filled(one, two, true),
            "memberSet" => {
                self.pay_texts(&[two]);
                self.pay(U + 75.0, What::Conv(two));
                self.store(one, Some(two), arg(2).unwrap_or(undefined));
                one
            }
            "memberDelete" => {
                self.pay_texts(&[two]);
                self.pay(U + 75.0, What::Conv(two));
                self.node(Kind::Scalar)
            }
            "split" => {
                self.reads(a99_core::costs::SPLIT, Reads::All, Some(one), &args[1..]);
                self.split(one, &args[1..])
            }
            "join" => {
                self.reads(a99_core::costs::JOIN, Reads::All, Some(one), &args[1..]);
                self.pay_texts(&args[1..]);
                self.joined(one, arg(1))
            }
            "merge" => {
                split_in(self, one);
                split_in(self, two);
                let spreads = vec![(one, false), (two, false)];
                self.site(Site {
                    spreads,
                    ..Site::default()
                })
            }
            "omit" => {
                split_in(self, one);
                let key = self.load(two, Key::Any);
                let each = |what| What::Times(Box::new(What::Len(two)), Box::new(what));
                self.pay(50.0 * E, What::Len(two));
                self.pay(1.0, each(What::ToText(key)));
                self.pay(75.0, each(What::Conv(key)));
                self.site(Site {
                    spreads: vec![(one, false)],
                    ..Site::default()
                })
            }
            "jsonStringify" => {
                self.pay(U, What::Units(one));
                self.pay(E, What::Len(one));
                self.pay(1.0, What::Json(one));
                self.json_text(one)
            }
            "jsonParse" => self.parsed(one),
            "consoleLog" | "consoleWarn" | "consoleError" => {
                self.pay(U, What::Units(one));
                self.pay(1.0, What::Json(one));
                undefined
            }
            "regexMatch" => {
                // Of a text and a pattern.
                let Some((positions, _)) = self.positions(one) else {
                    return self.unknown(REGEX);
                };
                self.pay_texts(&[one, two]);
                self.pay(U, What::Conv(one));
                self.pay(U + 200.0 * positions, What::Conv(two));
                self.pay(2_000.0 * positions, What::One);
                self.node(Kind::Scalar)
            }
            "regexFind" | "regexFindAll" => self.found(&name, args),
            "regexReplace" => self.replaced(args),
            name if HOST.contains(&name) => {
                for node in args {
                    self.pay(1.0, What::Crossing(*node));
                }
                let answer = self.answer(self.now.at);
                self.pay(1.0, What::Crossing(answer));
                if let Some((Formula::Linear { written, .. }, _)) = charged {
                    self.pay(U * written as f64, What::Units(answer));
                    self.pay(E * written as f64, What::Len(answer));
                }
                let tokens = MODELS.contains(&name).then(|| self.tokens(args));
                self.asks(tokens);
                answer
            }
            _ => self.unknown("an atom without a model"),
        }
    }

    /// The most positions and the groups of a pattern that the program holds.
    pub(crate) fn positions(&self, pattern: NodeId) -> Option<(f64, f64)> {
        let Kind::Literal(k, units) = self.g.nodes[pattern as usize].kind else {
            return None;
        };
        let text = self.g.program.const_text(k);
        let (mut depth, mut deepest, mut repeats) = (0_u32, 0_u32, 1.0);
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'(' => (depth, deepest) = (depth + 1, deepest.max(depth + 1)),
                b')' => depth = depth.saturating_sub(1),
                b'{' => {
                    let inside = text[at..].split(|b| *b == b'}').next().unwrap_or_default();
                    for number in inside.split(|b| !b.is_ascii_digit()) {
                        let number: f64 = std::str::from_utf8(number).ok()?.parse().unwrap_or(0.0);
                        repeats *= number + 1.0;
                    }
                }
                _ => {}
            }
        }
        // A repetition without a most counts once more than its least.
        let nested = if text.contains(&b'+') {
            2.0_f64.powi(deepest as i32 + 1)
        } else {
            1.0
        };
        let groups = text.iter().filter(|b| **b == b'(').count();
        Some(((f64::from(units) + 1.0) * nested * repeats, groups as f64))
    }

    /// Searches a text for a pattern.
    pub(crate) fn found(&mut self, name: &str, args: &[NodeId]) -> NodeId {
        let [text, pattern, ..] = *args else {
            return self.unknown(REGEX);
        };
        let Some((positions, groups)) = self.positions(pattern) else {
            return self.unknown(REGEX);
        };
        self.pay_texts(args);
        let weight = 4.0 * positions * (groups + 8.0);
        let found = E * (groups * 24.0 + 60.0);
        self.pay(2_000.0 * positions + 3.0 * U * 1_000.0, What::One);
        self.pay(7.0 * U, What::Conv(text));
        let each = U + 65.0 * weight;
        let part = self.text(vec![(1.0, What::Conv(text))]);
        let number = self.number(Num::Unknown);
        let parts = self.list(vec![(groups, What::One)], vec![part], Vec::new());
        let names = vec![(groups, What::One), (groups * 64.0, What::One)];
        let named = self.site(Site {
            len: names,
            elems: vec![part],
            ..Site::default()
        });
        let members = ["match", "index", "groups", "named"].map(|name| name.as_bytes().to_vec());
        let fields = members
            .into_iter()
            .zip([part, number, parts, named])
            .collect();
        let one = self.site(Site {
            fields,
            ..Site::default()
        });
        if name == "regexFind" {
            self.pay(each, What::Conv(text));
            self.pay(each + found, What::One);
            let none = self.node(Kind::Undefined);
            return self.either(&[one, none]);
        }
        // Each match may read the rest of the text.
        let square = What::Times(Box::new(What::Conv(text)), Box::new(What::Conv(text)));
        self.pay(each, square);
        self.pay(2.0 * each + found, What::Conv(text));
        self.pay(each + found, What::One);
        self.list(
            vec![(1.0, What::Conv(text)), (1.0, What::One)],
            vec![one],
            Vec::new(),
        )
    }

    /// Replaces matches by a text of the program without references to groups.
    fn replaced(&mut self, args: &[NodeId]) -> NodeId {
        let [text, _, _, with, ..] = *args else {
            return self.unknown(REGEX);
        };
        let Kind::Literal(k, units) = self.g.nodes[with as usize].kind else {
            return self.unknown("a replacement that is computed");
        };
        if self.g.program.const_text(k).contains(&b'$') {
            return self.unknown("a replacement that names groups");
        }
        // As all matches are found, of which none is made a value.
        self.found("regexFindAll", args);
        let units = f64::from(units);
        self.pay(U * units, What::One);
        self.pay(2.0 * 8.0 * E, What::Conv(text));
        self.pay(2.0 * 8.0 * E, What::One);
        self.written(vec![(1.0 + units, What::Conv(text)), (units, What::One)])
    }

    /// The tokens of a model's answer, by the options of the call.
    pub(crate) fn tokens(&mut self, args: &[NodeId]) -> Tokens {
        for options in args.iter().rev() {
            let Kind::New(site) = self.g.nodes[*options as usize].kind else {
                continue;
            };
            let site = &self.g.sites[site as usize];
            let found = site
                .fields
                .iter()
                .find(|(name, _)| name == b"maxTokens" || name == b"max_tokens");
            if let Some((_, node)) = found {
                return Tokens::Most(*node);
            }
        }
        Tokens::Host
    }

    /// A template of which holes show members of a value, in turn or by name.
    pub(crate) fn filled(&mut self, template: NodeId, values: NodeId, in_turn: bool) -> NodeId {
        self.pay(2.0 * U, What::Units(template));
        let mut spec = vec![(1.0, What::Units(template))];
        let Kind::Literal(k, _) = self.g.nodes[template as usize].kind else {
            // A hole has five units at least.
            let value = self.load(values, Key::Any);
            let each = |what| What::Times(Box::new(What::Units(template)), Box::new(what));
            self.pay(8.0 * E / 5.0, What::Units(template));
            self.pay(0.2, each(What::ToText(value)));
            spec.push((0.2, each(What::Conv(value))));
            return self.written(spec);
        };
        let text = String::from_utf8_lossy(self.g.program.const_text(k)).into_owned();
        for (at, hole) in text.split("{{").skip(1).enumerate() {
            let name = hole.split("}}").next().unwrap_or_default();
            let mut names = name
                .split('.')
                .map(|name| Key::Name(name.as_bytes().to_vec()));
            let mut value = match names.next() {
                Some(name) if !in_turn => self.load(values, name),
                _ => self.load(values, Key::Any),
            };
            if !in_turn {
                for name in names {
                    self.pay(3.0 * E, What::One);
                    value = self.load(value, name);
                }
            }
            self.pay(if at < 32 { 0.0 } else { 4.0 * E }, What::One);
            self.pay(1.0, What::ToText(value));
            spec.push((1.0, What::Conv(value)));
        }
        self.written(spec)
    }
}

/// Atoms of the host that charge for copies of inputs and answer only.
const HOST: &[&str] = &[
    "httpFetch",
    "llmPredict",
    "llmPredictBattery",
    "llmVision",
    "llmChat",
    "storeGet",
    "storeSet",
    "storeDelete",
    "storeList",
    "storeCompareAndSet",
    "storeVectorize",
    "storeCreateCollection",
    "storeVectorAdd",
    "storeVectorUpsert",
    "storeVectorDelete",
    "agentState",
    "agentSetState",
    "agentSettings",
    "agentSetSettings",
    "agentIdentity",
    "agentSend",
    "agentUpdate",
    "agentPublish",
    "agentSetTimer",
    "agentCancelTimer",
    "agentFail",
    "agentRoster",
    "agentCallMethod",
    "agentMethodResult",
    "agentInvite",
    "agentRemove",
    "storeSearch",
    "storeVectorSearch",
    "xmlParse",
    "streamChunk",
];

/// Those whose price depends on the number of documents, the third input.
const SEARCHES: &[&str] = &["storeSearch", "storeVectorSearch"];

const REGEX: &str = "a regular expression that is computed";

/// Those that ask a model.
const MODELS: &[&str] = &["llmPredict", "llmPredictBattery", "llmVision", "llmChat"];
