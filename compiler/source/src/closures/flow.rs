//! Computes which functions, classes and objects each expression of a source may give.
//!
//! The whole program is known, so a function value comes from an expression of the source. Each
//! expression and variable is a node, which holds a set of values; constraints between nodes are
//! solved by a worklist. The sets are upper bounds: statements run in any order, and all objects
//! of one literal are one object.

use hashbrown::{HashMap, HashSet};

/// An expression, variable, parameter or member.
pub(crate) type Node = usize;

/// Index of a value in `Flow::values`.
pub(crate) type Site = usize;

/// Data of unknown structure from outside: arguments of the run and answers of atoms. It contains
/// no functions.
pub(crate) const DATA: Site = 0;

/// A value without members that could be functions: `undefined`, `null`, texts, numbers.
pub(crate) const PLAIN: Site = 1;

/// Names of members that a copy leaves out.
pub(crate) type Names = std::rc::Rc<HashSet<String>>;

/// Maximum steps of the worklist.
const MAX_WORK: usize = 2_000_000;

/// Kind of an object that the source creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Object,
    /// A list, set or map, whose items are `Object::any`.
    Items,
    /// A map, whose iteration gives pairs.
    Map,
    /// An instance of a class.
    Instance(usize),
}

/// An object that the source creates.
pub(crate) struct Object {
    pub(crate) made: Made,
    pub(crate) fields: HashMap<String, Node>,
    /// Fields that a literal gives, so that they are never missing.
    pub(crate) given: HashSet<String>,
    /// Members under keys that are not known, and items.
    pub(super) any: Node,
    /// All members.
    pub(crate) all: Node,
    /// Objects that get a copy of all members.
    copies: Vec<(Site, Names)>,
}

pub(crate) enum What {
    Data,
    Plain,
    Function(usize),
    Class(usize),
    Object(Object),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Name(String),
    Any,
}

/// Reaction of a node to a new value.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    To(Node),
    Load(Key, Node),
    Store(Key, Node),
    /// Stores items into lists, sets and maps.
    Item(Node),
    /// The items of a list, set or map.
    Items(Node),
    /// Copies all members but these to an object.
    Copy(Site, Names),
    /// Passes functions only, or all but functions.
    Only(bool, Node),
    /// Mixes the items of a list.
    Mix,
    /// The pairs of a map.
    Pairs(Node),
    /// The items of a list and the values of a map.
    Values(Node),
    /// The builtin result for a receiver that is no instance.
    Builtin(Node, Node),
    /// Calls the value.
    Call(usize),
    /// Calls a method of the value.
    Method(usize),
}

/// A function as calls see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callee {
    pub(crate) params: Vec<Node>,
    /// List of the remaining arguments.
    pub(crate) rest: Option<Node>,
    pub(crate) this: Node,
    pub(crate) result: Node,
    /// True for a method of instances.
    pub(crate) is_method: bool,
}

/// A class as calls and member accesses see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    pub(crate) methods: HashMap<String, usize>,
    pub(crate) getters: HashMap<String, usize>,
    pub(crate) setters: HashMap<String, usize>,
    pub(crate) statics: HashMap<String, usize>,
    /// Static fields.
    pub(crate) fields: HashMap<String, Node>,
}

/// A call by its nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Arguments; true for a spread list.
    pub(crate) args: Vec<(Node, bool)>,
    pub(crate) this: Option<Node>,
    pub(crate) name: String,
    pub(crate) result: Node,
}

pub(crate) struct Flow {
    pub(crate) values: Vec<What>,
    pub(crate) sets: Vec<HashSet<Site>>,
    rules: Vec<Vec<Rule>>,
    todo: Vec<(Node, Site)>,
    pub(crate) callees: Vec<Callee>,
    pub(crate) classes: Vec<Members>,
    pub(crate) calls: Vec<Call>,
    /// Nodes whose values go into data from outside.
    pub(crate) into_data: Vec<Node>,
    functions: HashMap<usize, Site>,
    class_sites: HashMap<usize, Site>,
}

impl Flow {
    pub(crate) fn new() -> Flow {
        Flow {
            values: vec![What::Data, What::Plain],
            sets: Vec::new(),
            rules: Vec::new(),
            todo: Vec::new(),
            callees: Vec::new(),
            classes: Vec::new(),
            calls: Vec::new(),
            into_data: Vec::new(),
            functions: HashMap::new(),
            class_sites: HashMap::new(),
        }
    }

    pub(crate) fn node(&mut self) -> Node {
        self.sets.push(HashSet::new());
        self.rules.push(Vec::new());
        self.sets.len() - 1
    }

    /// A node that holds one value.
    pub(crate) fn holding(&mut self, site: Site) -> Node {
        let node = self.node();
        self.add(node, site);
        node
    }

    pub(crate) fn function_site(&mut self, function: usize) -> Site {
        let next = self.values.len();
        let site = *self.functions.entry(function).or_insert(next);
        if site == next {
            self.values.push(What::Function(function));
        }
        site
    }

    pub(crate) fn class_site(&mut self, class: usize) -> Site {
        let next = self.values.len();
        let site = *self.class_sites.entry(class).or_insert(next);
        if site == next {
            self.values.push(What::Class(class));
        }
        site
    }

    pub(crate) fn object(&mut self, made: Made) -> Site {
        let any = self.node();
        let all = self.node();
        self.edge(any, all);
        self.values.push(What::Object(Object {
            made,
            fields: HashMap::new(),
            given: HashSet::new(),
            any,
            all,
            copies: Vec::new(),
        }));
        self.values.len() - 1
    }

    /// A list of these items.
    pub(crate) fn list(&mut self, items: Node) -> Node {
        let site = self.object(Made::Items);
        let any = self.any(site);
        self.edge(items, any);
        self.holding(site)
    }

    pub(super) fn any(&self, site: Site) -> Node {
        match &self.values[site] {
            What::Object(object) => object.any,
            _ => 0,
        }
    }

    /// The node of an object's member.
    pub(crate) fn field(&mut self, site: Site, name: &str) -> Node {
        if let What::Object(object) = &self.values[site]
            && let Some(node) = object.fields.get(name)
        {
            return *node;
        }
        let node = self.node();
        let mut copies = Vec::new();
        let mut all = None;
        if let What::Object(object) = &mut self.values[site] {
            object.fields.insert(name.to_owned(), node);
            copies.clone_from(&object.copies);
            all = Some(object.all);
        }
        if let Some(all) = all {
            self.edge(node, all);
        }
        for (copy, without) in copies {
            if !without.contains(name) {
                let to = self.field(copy, name);
                self.edge(node, to);
            }
        }
        node
    }

    /// Marks a member as given by a literal.
    pub(crate) fn give(&mut self, site: Site, name: &str) {
        if let What::Object(object) = &mut self.values[site] {
            object.given.insert(name.to_owned());
        }
    }

    pub(super) fn add(&mut self, node: Node, site: Site) {
        if self.sets[node].insert(site) {
            self.todo.push((node, site));
        }
    }

    pub(crate) fn put(&mut self, node: Node, site: Site) {
        self.add(node, site);
    }

    pub(super) fn rule(&mut self, node: Node, rule: Rule) {
        let known: Vec<Site> = self.sets[node].iter().copied().collect();
        self.rules[node].push(rule.clone());
        for site in known {
            // Values still on the worklist get the rule from there; again changes nothing.
            self.apply(&rule, site);
        }
    }

    pub(crate) fn edge(&mut self, from: Node, to: Node) {
        if from != to {
            self.rule(from, Rule::To(to));
        }
    }

    pub(crate) fn load(&mut self, object: Node, key: Key) -> Node {
        let out = self.node();
        self.rule(object, Rule::Load(key, out));
        out
    }

    pub(crate) fn store(&mut self, object: Node, key: Key, value: Node) {
        self.rule(object, Rule::Store(key, value));
    }

    pub(crate) fn store_item(&mut self, list: Node, value: Node) {
        self.rule(list, Rule::Item(value));
    }

    /// The items of lists, sets and maps; of maps also the pairs.
    pub(crate) fn items(&mut self, list: Node) -> Node {
        let out = self.node();
        self.rule(list, Rule::Items(out));
        out
    }

    pub(crate) fn copy(&mut self, from: Node, to: Site, without: Names) {
        self.rule(from, Rule::Copy(to, without));
    }

    /// The functions of a node, or its other values.
    pub(crate) fn only(&mut self, node: Node, is_function: bool) -> Node {
        let out = self.node();
        self.rule(node, Rule::Only(is_function, out));
        out
    }

    /// Lets each item of a list be at each position.
    pub(crate) fn mix(&mut self, list: Node) {
        self.rule(list, Rule::Mix);
    }

    /// The items of lists and sets, and the values of maps.
    pub(crate) fn values_of(&mut self, list: Node) -> Node {
        let out = self.node();
        self.rule(list, Rule::Values(out));
        out
    }

    /// The pairs of maps.
    pub(crate) fn map_pairs(&mut self, value: Node) -> Node {
        let out = self.node();
        self.rule(value, Rule::Pairs(out));
        out
    }

    /// A list of two.
    pub(crate) fn pair(&mut self, first: Node, second: Node) -> Node {
        let site = self.object(Made::Items);
        for (name, value) in [("0", first), ("1", second)] {
            let field = self.field(site, name);
            self.edge(value, field);
            self.give(site, name);
        }
        self.holding(site)
    }

    /// Adds what a builtin method gives, unless the receiver is an instance.
    pub(crate) fn builtin(&mut self, receiver: Node, given: Node, result: Node) {
        self.rule(receiver, Rule::Builtin(given, result));
    }

    pub(crate) fn call(&mut self, callee: Node, call: Call) -> usize {
        self.calls.push(call);
        let id = self.calls.len() - 1;
        self.rule(callee, Rule::Call(id));
        id
    }

    pub(crate) fn call_method(&mut self, receiver: Node, call: Call) -> usize {
        self.calls.push(call);
        let id = self.calls.len() - 1;
        self.rule(receiver, Rule::Method(id));
        id
    }

    /// Solves all constraints; false if that takes too much work.
    pub(crate) fn solve(&mut self) -> bool {
        let mut work = 0;
        while let Some((node, site)) = self.todo.pop() {
            let mut index = 0;
            while let Some(rule) = self.rules[node].get(index).cloned() {
                self.apply(&rule, site);
                index += 1;
                work += 1;
            }
            if work > MAX_WORK {
                return false;
            }
        }
        true
    }

    pub(super) fn apply(&mut self, rule: &Rule, site: Site) {
        match rule {
            Rule::To(to) => self.add(*to, site),
            Rule::Load(key, out) => self.apply_load(key, *out, site),
            Rule::Store(key, value) => match &self.values[site] {
                What::Object(object) => {
                    let setter = match (object.made, key) {
                        (Made::Instance(class), Key::Name(name)) => {
                            self.classes[class].setters.get(name).copied()
                        }
                        _ => None,
                    };
                    let to = match (setter, key) {
                        (Some(setter), _) => self.callees[setter].params.first().copied(),
                        (None, Key::Name(name)) => Some(self.field(site, name)),
                        (None, Key::Any) => Some(object.any),
                    };
                    if let Some(to) = to {
                        self.edge_once(*value, to);
                    }
                }
                What::Class(class) => {
                    if let Key::Name(name) = key
                        && let Some(field) = self.classes[*class].fields.get(name).copied()
                    {
                        self.edge_once(*value, field);
                    }
                }
                _ => self.into_data.push(*value),
            },
            Rule::Item(value) => match &self.values[site] {
                What::Object(object) if matches!(object.made, Made::Items | Made::Map) => {
                    let to = object.any;
                    self.edge_once(*value, to);
                }
                What::Data => self.into_data.push(*value),
                _ => {}
            },
            Rule::Items(out) => match &self.values[site] {
                What::Object(object) if object.made == Made::Items => {
                    let from = object.all;
                    self.edge_once(from, *out);
                }
                What::Object(object) if object.made == Made::Map => {
                    let from = object.any;
                    let plain = self.holding(PLAIN);
                    let pair = self.pair(plain, from);
                    self.edge_once(pair, *out);
                }
                What::Data | What::Plain => self.add(*out, site),
                _ => {}
            },
            Rule::Only(is_function, to) => {
                if matches!(self.values[site], What::Function(_)) == *is_function {
                    self.add(*to, site);
                }
            }
            Rule::Pairs(out) => {
                if let What::Object(object) = &self.values[site]
                    && object.made == Made::Map
                {
                    let from = object.any;
                    let plain = self.holding(PLAIN);
                    let pair = self.pair(plain, from);
                    self.edge_once(pair, *out);
                }
            }
            Rule::Values(out) => match &self.values[site] {
                What::Object(object) if matches!(object.made, Made::Items | Made::Map) => {
                    let all = object.all;
                    self.edge_once(all, *out);
                }
                What::Data => self.add(*out, DATA),
                _ => {}
            },
            Rule::Mix => {
                if let What::Object(object) = &self.values[site] {
                    let (all, any) = (object.all, object.any);
                    self.edge_once(all, any);
                }
            }
            Rule::Copy(to, without) => match &mut self.values[site] {
                What::Object(object) => {
                    let copy = (*to, without.clone());
                    if site == *to || object.copies.contains(&copy) {
                        return;
                    }
                    object.copies.push(copy);
                    let any = object.any;
                    let fields: Vec<(String, Node)> = object
                        .fields
                        .iter()
                        .map(|(name, node)| (name.clone(), *node))
                        .collect();
                    let to_any = self.any(*to);
                    self.edge_once(any, to_any);
                    for (name, node) in fields {
                        if !without.contains(&name) {
                            let field = self.field(*to, &name);
                            self.edge_once(node, field);
                        }
                    }
                }
                What::Data => {
                    let any = self.any(*to);
                    self.add(any, DATA);
                }
                _ => {}
            },
            Rule::Builtin(given, result) => {
                let has_builtins = match &self.values[site] {
                    What::Object(object) => matches!(object.made, Made::Items | Made::Map),
                    What::Data | What::Plain => true,
                    What::Function(_) | What::Class(_) => false,
                };
                if has_builtins {
                    self.edge_once(*given, *result);
                }
            }
            Rule::Call(call) => {
                if let What::Function(function) = self.values[site] {
                    self.bind(*call, function);
                } else if site == DATA {
                    let result = self.calls[*call].result;
                    self.add(result, DATA);
                }
            }
            Rule::Method(call) => self.apply_method(*call, site),
        }
    }

    /// Adds an edge once.
    pub(super) fn edge_once(&mut self, from: Node, to: Node) {
        let is_there = |rule: &Rule| matches!(rule, Rule::To(other) if *other == to);
        if from != to && !self.rules[from].iter().any(is_there) {
            self.rule(from, Rule::To(to));
        }
    }
}
