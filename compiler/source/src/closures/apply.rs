//! What loads, methods and calls do with a value.

use super::flow::{DATA, Flow, Key, Made, Node, PLAIN, Rule, Site, What};

impl Flow {
    pub(super) fn apply_load(&mut self, key: &Key, out: Node, site: Site) {
        match &self.values[site] {
            What::Data => self.add(out, DATA),
            What::Plain | What::Function(_) => self.add(out, PLAIN),
            What::Class(class) => {
                if let Key::Name(name) = key {
                    let members = &self.classes[*class];
                    let field = members.fields.get(name).copied();
                    let function = members.statics.get(name).copied();
                    match (field, function) {
                        (Some(field), _) => self.edge_once(field, out),
                        (None, Some(function)) => {
                            let site = self.function_site(function);
                            self.add(out, site);
                        }
                        (None, None) => self.add(out, PLAIN),
                    }
                }
            }
            What::Object(object) => match key {
                Key::Any => {
                    let all = object.all;
                    self.edge_once(all, out);
                    self.add(out, PLAIN);
                }
                Key::Name(name) => {
                    let any = object.any;
                    // Items may be removed.
                    let is_given = object.given.contains(name)
                        && !matches!(object.made, Made::Items | Made::Map);
                    let is_item = name.starts_with(|c: char| c.is_ascii_digit());
                    if !is_item && matches!(object.made, Made::Items | Made::Map) {
                        return self.add(out, PLAIN);
                    }
                    let getter = match object.made {
                        Made::Instance(class) => self.classes[class].getters.get(name).copied(),
                        _ => None,
                    };
                    if let Some(getter) = getter {
                        let result = self.callees[getter].result;
                        return self.edge_once(result, out);
                    }
                    let field = self.field(site, name);
                    self.edge_once(field, out);
                    self.edge_once(any, out);
                    if !is_given {
                        self.add(out, PLAIN);
                    }
                }
            },
        }
    }

    pub(super) fn apply_method(&mut self, id: usize, site: Site) {
        let name = self.calls[id].name.clone();
        match &self.values[site] {
            // Data has the methods of lists only, which give what the callback gives.
            What::Data if super::calls::gives_results(&name) => {}
            What::Data => {
                let result = self.calls[id].result;
                self.add(result, DATA);
            }
            What::Plain | What::Function(_) => {
                let result = self.calls[id].result;
                self.add(result, PLAIN);
            }
            What::Class(class) => {
                let members = &self.classes[*class];
                if let Some(function) = members.statics.get(&name).copied() {
                    self.bind(id, function);
                } else if let Some(field) = members.fields.get(&name).copied() {
                    self.rule(field, Rule::Call(id));
                }
            }
            What::Object(object) => {
                let any = object.any;
                if let Made::Instance(class) = object.made
                    && let Some(function) = self.classes[class].methods.get(&name).copied()
                {
                    return self.bind(id, function);
                }
                if matches!(object.made, Made::Items | Made::Map) {
                    return;
                }
                let field = self.field(site, &name);
                self.rule(field, Rule::Call(id));
                self.rule(any, Rule::Call(id));
            }
        }
    }

    /// Passes the arguments of a call to a function.
    pub(super) fn bind(&mut self, call: usize, function: usize) {
        let call = self.calls[call].clone();
        let callee = self.callees[function].clone();
        let mut index = 0;
        let mut is_spread = false;
        for (node, spread) in call.args {
            let given = match spread {
                true => self.items(node),
                false => node,
            };
            is_spread |= spread;
            let to = match is_spread {
                // A spread list fills any of the parameters from here on.
                true => callee.params.get(index..).unwrap_or_default(),
                false => callee.params.get(index..=index).unwrap_or_default(),
            };
            for param in to {
                self.edge_once(given, *param);
            }
            if let Some(rest) = callee.rest
                && (is_spread || index >= callee.params.len())
            {
                self.edge_once(given, rest);
            }
            if !spread {
                index += 1;
            }
        }
        for param in callee.params.iter().skip(index) {
            self.add(*param, PLAIN);
        }
        // A method is found by the class of the object, which is known.
        if let Some(this) = call.this.filter(|_| !callee.is_method) {
            self.edge_once(this, callee.this);
        }
        self.edge_once(callee.result, call.result);
    }
}
