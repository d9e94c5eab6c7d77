//! Reads calls of functions of namespaces, such as `Object.entries`.

use super::flow::{Made, Node, PLAIN};
use super::model::{Model, Sink};

impl Model<'_> {
    pub(super) fn namespace_call(&mut self, id: usize, namespace: &str, name: &str, result: Node) {
        let slot = match (namespace, name) {
            ("Array", "from") => Some((1, 2)),
            ("Object" | "Map", "groupBy") => Some((1, 2)),
            ("JSON", "parse" | "stringify") => Some((1, 2)),
            _ => None,
        };
        self.sites[id].slot = slot;
        let args = self.args(id);
        let first = args
            .first()
            .map_or(self.plain, |(node, is_spread)| match is_spread {
                true => self.flow.items(*node),
                false => *node,
            });
        let second = args.get(1).map(|(node, _)| *node);
        let plain = self.plain;
        match (namespace, name) {
            ("Object", "keys") => {
                self.sink_args(id, &args, Sink::Keys);
                let list = self.flow.list(plain);
                self.flow.edge(list, result);
            }
            ("Object", "values" | "entries") => {
                self.sink_args(id, &args, Sink::Keys);
                let mut item = self.flow.load(first, super::flow::Key::Any);
                if name == "entries" {
                    item = self.flow.pair(plain, item);
                }
                let list = self.flow.list(item);
                self.flow.edge(list, result);
            }
            ("Object", "assign") => {
                self.flow.edge(first, result);
                for (node, _) in args.iter().skip(1) {
                    let all = self.flow.load(*node, super::flow::Key::Any);
                    self.flow.store(first, super::flow::Key::Any, all);
                }
                self.sink_args(id, &args, Sink::Keys);
            }
            ("Object", "fromEntries") => {
                let pair = self.flow.items(first);
                let value = self.flow.load(pair, super::flow::Key::Name("1".to_owned()));
                let site = self.flow.object(Made::Object);
                let object = self.flow.holding(site);
                self.flow.store(object, super::flow::Key::Any, value);
                self.flow.edge(object, result);
            }
            ("Object", "freeze" | "seal") | ("Promise", "resolve") => {
                self.flow.edge(first, result);
            }
            ("Object", "hasOwn") => {
                self.flow.put(result, PLAIN);
                self.sink_args(id, &args, Sink::Keys);
            }
            ("Object" | "Map", "groupBy") => {
                let item = self.flow.items(first);
                if let Some(callback) = second {
                    self.callback(callback, &[item, plain]);
                }
                let list = self.flow.list(item);
                let made = match namespace {
                    "Map" => Made::Map,
                    _ => Made::Object,
                };
                let site = self.flow.object(made);
                let object = self.flow.holding(site);
                self.flow.store(object, super::flow::Key::Any, list);
                self.flow.edge(object, result);
            }
            ("Array", "from") => {
                let mut item = self.flow.items(first);
                let is_sized = self.flow.node();
                self.flow.put(is_sized, PLAIN);
                self.flow.edge(is_sized, item);
                if let Some(callback) = second {
                    item = self.callback(callback, &[item, plain]);
                }
                let list = self.flow.list(item);
                self.flow.edge(list, result);
            }
            ("Array", "of") => {
                let list = self.flow.list(first);
                for (node, _) in args.iter().skip(1) {
                    self.flow.store_item(list, *node);
                }
                self.flow.edge(list, result);
            }
            ("Array", "isArray") => self.flow.put(result, PLAIN),
            ("Promise", "all" | "allSettled" | "race" | "any") => {
                let item = self.flow.items(first);
                let item = match name {
                    "allSettled" => {
                        let site = self.flow.object(Made::Object);
                        let object = self.flow.holding(site);
                        self.flow.store(object, super::flow::Key::Any, item);
                        object
                    }
                    _ => item,
                };
                match name {
                    "race" | "any" => self.flow.edge(item, result),
                    _ => {
                        let list = self.flow.list(item);
                        self.flow.edge(list, result);
                    }
                }
            }
            ("JSON", "parse") => {
                let data = self.data;
                self.flow.edge(data, result);
                if let Some(callback) = second {
                    let given = self.callback(callback, &[plain, data]);
                    self.flow.edge(given, result);
                }
                self.sinks.push((first, self.sites[id].span, Sink::Operand));
            }
            ("JSON", _) => {
                self.flow.put(result, PLAIN);
                if let Some(callback) = second {
                    let data = self.data;
                    self.callback(callback, &[plain, data]);
                }
                self.sinks.push((first, self.sites[id].span, Sink::Json));
            }
            ("console", _) => {
                self.flow.put(result, PLAIN);
                self.sink_args(id, &args, Sink::Text);
            }
            _ => {
                self.flow.put(result, PLAIN);
                self.sink_args(id, &args, Sink::Operand);
            }
        }
    }
}
