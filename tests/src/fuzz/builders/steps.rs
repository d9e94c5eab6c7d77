//! One step by any chain method.

use super::{Grower, MAX_DEPTH};
use a99_builder::{
    Builder, FetchOptions, LlmOptions, Operand, PageOptions, ProcedureOptions, QueryOptions,
    RandomOptions, SearchOptions, VectorSearchOptions, VisionOptions,
};

impl Grower<'_> {
    pub(super) fn step(&self, chain: Builder, depth: u32) -> Builder {
        match self.below(8) {
            0 => self.state(chain, depth),
            1 => self.logic(chain, depth),
            2 => self.data(chain, depth),
            3 => self.io(chain, depth),
            4 => self.battery(chain, depth),
            5 => self.other(chain, depth),
            _ if depth >= MAX_DEPTH => chain.uuid(),
            6 => self.flow(chain, depth),
            _ => self.lists(chain, depth),
        }
    }

    fn flow(&self, chain: Builder, depth: u32) -> Builder {
        let body = |b| self.chain(b, depth + 1);
        let vars = || self.operand(depth);
        match self.below(13) {
            0 => chain.if_(self.condition(depth), vars(), body),
            1 => chain.if_else(self.condition(depth), vars(), body, body),
            2 => chain.while_(self.condition(depth), vars(), body),
            3 => chain.try_(body),
            4 => chain.try_catch(body, body),
            5 => chain.try_catch_as(self.name(), body, body),
            6 => chain.scope(body),
            7 => chain.seq(body),
            8 => chain.return_(self.schema()),
            9 => chain.return_unfiltered(self.schema()),
            10 => chain.return_value(vars()),
            11 => chain.call_local(self.name(), vars()),
            _ => chain.error(vars()),
        }
    }

    fn lists(&self, chain: Builder, depth: u32) -> Builder {
        let body = |b| self.chain(b, depth + 1);
        let any = || self.operand(depth);
        match self.below(6) {
            0 => chain.map(any(), self.name(), body),
            1 => chain.filter(any(), self.name(), self.condition(depth), any()),
            2 => chain.find(any(), self.name(), self.condition(depth), any()),
            3 => chain.reduce(any(), self.name(), "acc", any(), body),
            4 => chain.memoize(any(), body),
            _ => chain.cache(any(), any(), body),
        }
    }

    fn state(&self, chain: Builder, depth: u32) -> Builder {
        let any = || self.operand(depth);
        match self.below(7) {
            0 => chain.var_set(self.name(), any()),
            1 => chain.const_set(self.name(), any()),
            2 => chain.var_get(any()),
            3 => chain.vars_import(["a", self.name()]),
            4 => chain.vars_export([("k", self.name())]),
            5 => {
                let name = match self.name() {
                    "result" if self.below(8) < 7 => "other",
                    name => name,
                };
                self.fault(usize::from(name == "result"));
                chain.vars_let([(name, any()), ("v", any())])
            }
            _ => chain.math_calc(["a + 1", "", "a +", "n * 2"][self.below(4)], any()),
        }
    }

    fn logic(&self, chain: Builder, depth: u32) -> Builder {
        let any = || self.operand(depth);
        match self.below(7) {
            0 => chain.eq(any(), any()),
            1 => chain.neq(any(), any()),
            2 => chain.gt(any(), any()),
            3 => chain.lt(any(), any()),
            4 => chain.and(any(), any()),
            5 => chain.or(any(), any()),
            _ => chain.not(any()),
        }
    }

    fn data(&self, chain: Builder, depth: u32) -> Builder {
        let any = || self.operand(depth);
        match self.below(16) {
            0 => chain.push(any(), any()),
            1 => chain.len(any()),
            2 => chain.split(any(), any()),
            3 => chain.join(any(), any()),
            4 => chain.template(any(), any()),
            5 => chain.regex_match(self.name(), any()),
            6 => chain.pick(any(), any()),
            7 => chain.omit(any(), any()),
            8 => chain.merge(any(), any()),
            9 => chain.keys(any()),
            10 => chain.json_parse(any()),
            11 => chain.json_stringify(any()),
            12 => chain.random(RandomOptions {
                min: any(),
                max: any(),
                format: any(),
                length: any(),
            }),
            13 => chain.uuid(),
            14 => chain.hash_raw(any(), any()),
            _ => chain.hash(any(), any()),
        }
    }

    fn io(&self, chain: Builder, depth: u32) -> Builder {
        let any = || self.operand(depth);
        match self.below(21) {
            0 => chain.http_fetch(
                any(),
                FetchOptions {
                    method: any(),
                    headers: any(),
                    body: any(),
                    response_type: any(),
                },
            ),
            1 => chain.store_get(any()),
            2 => chain.store_set(any(), any()),
            3 => chain.store_query(any()),
            4 => {
                let (collection, k) = (any(), any());
                chain.store_vector_search(any(), VectorSearchOptions { collection, k })
            }
            5 => {
                let (collection, limit) = (any(), any());
                chain.store_query_where(any(), QueryOptions { collection, limit })
            }
            6 => chain.llm_predict(any(), any()),
            7 => chain.agent_run(any(), any()),
            8 => chain.xml_parse(any()),
            9 => chain.transpile_code(any()),
            10 => chain.run_code(any(), any()),
            11 => chain.console_log(any()),
            12 => chain.console_warn(any()),
            13 => chain.console_error(any()),
            14 => {
                let (ttl, max_size) = (any(), any());
                chain.store_procedure(any(), ProcedureOptions { ttl, max_size })
            }
            15 => chain.release_procedure(any()),
            16 => chain.store_set_for(any(), any(), any()),
            17 => chain.store_delete(any()),
            18 => {
                let (cursor, limit) = (any(), any());
                chain.store_list(any(), PageOptions { cursor, limit })
            }
            19 => chain.store_compare_and_set(any(), any(), any(), any()),
            _ => chain.clear_expired_procedures(),
        }
    }

    fn battery(&self, chain: Builder, depth: u32) -> Builder {
        let any = || self.operand(depth);
        match self.below(14) {
            0 => chain.store_vectorize(any(), any()),
            1 => {
                let (k, filter) = (any(), any());
                chain.store_search(any(), any(), SearchOptions { k, filter })
            }
            2 => chain.store_create_collection(any(), any()),
            3 => chain.store_vector_add(any(), any()),
            4 => chain.llm_predict_battery(
                any(),
                LlmOptions {
                    system: any(),
                    tools: any(),
                    response_format: any(),
                },
            ),
            5 => {
                let (system, response_format) = (any(), any());
                let options = VisionOptions {
                    system,
                    response_format,
                };
                chain.llm_vision(any(), any(), options)
            }
            6 => chain.dom_text(self.name()),
            7 => chain.dom_value(self.name()),
            8 => chain.dom_click(self.name()),
            9 => chain.dom_input(self.name(), any()),
            10 => chain.local_storage_get(self.name()),
            11 => chain.store_vector_upsert(any(), any()),
            12 => chain.store_vector_delete(any(), any()),
            _ => chain.local_storage_set(self.name(), any()),
        }
    }

    /// Unknown atoms, forbidden inputs, and ready steps.
    fn other(&self, chain: Builder, depth: u32) -> Builder {
        let any = || self.operand(depth);
        match self.below(16) {
            0..=5 => chain.atom(self.name(), vec![("x", any()), ("x", any())]),
            6 => {
                self.fault(2);
                chain.atom(
                    "uuid",
                    vec![("op", Operand::absent()), ("resultConst", any())],
                )
            }
            7..=10 => chain.step(self.schema()),
            _ => chain.step(any().into_value()),
        }
    }
}
