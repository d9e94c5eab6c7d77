//! Sub-agents (language section 2.8): inline programs, and agents of the host.

use super::call_all::INLINE_AGENT;
use super::coerce::to_str;
use super::io::{MAX_AGENT_DEPTH, read_program};
use super::machine::{Flow, Frame, Machine, Scope, ScopeRef, frame};
use super::meter::{pay_crossing, pay_deep};
use super::steps::Node;
use super::value::{Fail, OVal, Res, fail, from_value, js, lossy};
use a99_core::costs::BOTH;
use a99_core::value::Value;

impl Machine<'_> {
    pub(super) fn agent_run(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let id = self.input(node, "agentId", scope)?;
        let inline = match &id {
            OVal::Str(token) => token.starts_with(&js("proc_")),
            OVal::Obj(obj) => obj.contains_key(&js("op")),
            _ => false,
        };
        if !inline && !self.host.provides("agent.run") {
            pay_crossing(&id)?;
            return Err(self.missing("Capability 'agent.run' missing"));
        }
        let input = self.input_once(|machine| machine.resolve_vars(node.get("input"), scope))?;
        self.check_depth()?;
        match &id {
            OVal::Str(token) if token.starts_with(&js("proc_")) => {
                pay_crossing(&id).and_then(|()| pay_crossing(&input))?;
                // No judged run has stored a procedure.
                return fail(format!("Procedure not found: {}", lossy(token)));
            }
            OVal::Obj(obj) if obj.contains_key(&js("op")) => {
                if self.gathering.is_some() {
                    return fail(INLINE_AGENT);
                }
                let root = self.export(&id)?;
                return self.run_inline(&root, input);
            }
            _ => {}
        }
        pay_crossing(&id).and_then(|()| pay_crossing(&input))?;
        let answer = self.call_host("agentRun", "agent.run", &[id, input])?;
        let value = self.agent_result(answer)?;
        pay_crossing(&value)?;
        Ok(value)
    }

    /// Result of an agent: the outcome of a run, or any value.
    fn agent_result(&mut self, answer: OVal) -> Res<OVal> {
        let OVal::Obj(obj) = &answer else {
            return Ok(answer);
        };
        let part = |name: &str| obj.member(&js(name));
        if !matches!(part("fuelUsed"), OVal::Num(_)) {
            return Ok(answer);
        }
        let error = part("error");
        if !error.truthy() {
            return Ok(part("result"));
        }
        let message = match &error {
            OVal::Obj(e) => e.member(&js("message")),
            _ => OVal::Undef,
        };
        match message.truthy() {
            true => fail(lossy(&to_str(&message)?)),
            false => fail("Sub-agent failed"),
        }
    }

    fn check_depth(&self) -> Res<()> {
        match self.agent_depth >= MAX_AGENT_DEPTH {
            true => fail(format!(
                "Agent depth limit exceeded (max {MAX_AGENT_DEPTH})."
            )),
            false => Ok(()),
        }
    }

    /// Runs an inline program: same fuel, trace and host; fresh state.
    fn run_inline(&mut self, root: &Value, args: OVal) -> Res<OVal> {
        pay_deep(BOTH, &from_value(root), 0)?;
        self.pay_compiling(root, None)?;
        let root = read_program(root)?;
        let outer = self.enter_inline(&root, args);
        self.agent_depth += 1;
        let flow = self.step(&root, &Scope::new(None));
        self.agent_depth -= 1;
        self.frame = outer;
        match flow {
            Ok(Flow::Return(value)) => Ok(value),
            Ok(_) => Ok(OVal::Undef),
            // The error belongs to the atom, with its message.
            Err(e) if e.code.is_catchable() => Err(Fail { op: None, ..e }),
            Err(e) => Err(e),
        }
    }

    /// Enters an inline program, which has the helpers of its caller (language section 1.1);
    /// returns the caller's frame.
    pub(super) fn enter_inline(&mut self, root: &Value, args: OVal) -> Frame {
        let helpers = self.frame.helpers.clone();
        let inner = Frame {
            helpers,
            ..frame(root, args)
        };
        std::mem::replace(&mut self.frame, inner)
    }
}
