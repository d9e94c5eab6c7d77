//! The browser atoms (language section 2.8): a document and its storage, by capability. Selectors,
//! keys and values are passed through as written.

use crate::def::{Adjust, Input, Kind, all_need, host, req, unlisted};
use crate::grants::{Answer, failed, inputs, reply, required};
use a99_core::costs::MICRO;
use a99_core::sig::{Capability, Effect};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, HostCall, HostReply};

const NO_DOM: &str = "Capability Error: 'dom' is not available.";
const NO_STORAGE: &str = "Capability Error: 'storage' is not available.";

pub(crate) fn atoms() -> Vec<AtomDef> {
    const SELECTOR: Input = req(
        "selector",
        Kind::Text,
        "CSS selector of the element; the atom fails if no element matches.",
    )
    .literal();
    const KEY: Input = req("key", Kind::Text, "Key in the browser's local storage.").literal();
    const FIELD: Input = req("value", Kind::Any, "New value of the form element.").literal();
    const VALUE: Input = req("value", Kind::Any, "Value to store.").literal();
    let all = vec![
        host(
            "domText",
            "The text of an element.",
            MICRO,
            &[SELECTOR],
            text,
        )
        .effect(Effect::Read),
        host(
            "domValue",
            "The value of a form element.",
            MICRO,
            &[SELECTOR],
            value,
        )
        .effect(Effect::Read),
        host("domClick", "Clicks an element.", MICRO, &[SELECTOR], click),
        host(
            "domInput",
            "Sets the value of a form element.",
            MICRO,
            &[SELECTOR, FIELD],
            input,
        )
        .effect(Effect::Idempotent),
        host(
            "localStorageGet",
            "Reads a key of the local storage.",
            MICRO,
            &[KEY],
            get,
        )
        .needs(Capability::LocalStorage)
        .effect(Effect::Read),
        host(
            "localStorageSet",
            "Sets a key of the local storage.",
            MICRO,
            &[KEY, VALUE],
            set,
        )
        .needs(Capability::LocalStorage)
        .effect(Effect::Idempotent),
    ];
    unlisted(all_need(Capability::Dom, all))
}

fn nothing() -> HostReply {
    HostReply::from(Value::Undefined)
}

fn text(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [selector] = inputs(&mut call);
        let dom = required(&call, |c| &c.dom, NO_DOM)?;
        reply(dom.text(selector).await)
    })
}

fn value(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [selector] = inputs(&mut call);
        let dom = required(&call, |c| &c.dom, NO_DOM)?;
        reply(dom.value(selector).await)
    })
}

fn click(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [selector] = inputs(&mut call);
        let dom = required(&call, |c| &c.dom, NO_DOM)?;
        dom.click(selector).await.map_err(failed)?;
        Ok(nothing())
    })
}

fn input(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [selector, value] = inputs(&mut call);
        let dom = required(&call, |c| &c.dom, NO_DOM)?;
        dom.input(selector, value).await.map_err(failed)?;
        Ok(nothing())
    })
}

fn get(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key] = inputs(&mut call);
        let storage = required(&call, |c| &c.local_storage, NO_STORAGE)?;
        reply(storage.get(key).await)
    })
}

fn set(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key, value] = inputs(&mut call);
        let storage = required(&call, |c| &c.local_storage, NO_STORAGE)?;
        storage.set(key, value).await.map_err(failed)?;
        Ok(nothing())
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, MemoryDom, MemoryLocalStorage};

    #[test]
    fn a_document_by_capability() {
        let set = Capabilities::none()
            .with_dom(MemoryDom::new().with("#n", "Name"))
            .with_local_storage(MemoryLocalStorage::new());
        let bench = Bench::with(set);
        assert_eq!(bench.call("domText", r##"["#n"]"##).unwrap(), r#""Name""#);
        bench.call("domClick", r##"["#n"]"##).unwrap();
        bench.call("domInput", r##"["#n", "Ada"]"##).unwrap();
        assert_eq!(bench.call("domValue", r##"["#n"]"##).unwrap(), r#""Ada""#);
        let missing = bench.call("domText", r##"["#x"]"##).unwrap_err();
        assert_eq!(missing, "DOM: Element not found '#x'");
        bench.call("localStorageSet", r#"["k", 1]"#).unwrap();
        assert_eq!(bench.call("localStorageGet", r#"["k"]"#).unwrap(), "1");
    }

    #[test]
    fn nothing_without_the_capability() {
        let error = Bench::new().call("domClick", r##"["#n"]"##).unwrap_err();
        assert_eq!(error, "Capability Error: 'dom' is not available.");
    }
}
