//! `xmlParse` and `transpileCode`: parsers of the host.

use crate::def::{Adjust, Kind, host, req};
use crate::grants::{Answer, failed_as, inputs, reply, required};
use a99_core::costs::{MICRO, XML};
use a99_core::sig::{Capability, Effect, Gives, JsonKinds, ShortPrompts};
use a99_vm::atom::{AtomDef, HostCall, HostReply};

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        host(
            "xmlParse",
            "Parses XML.",
            MICRO,
            &[req("str", Kind::Text, "XML text.").subject()],
            xml,
        )
        .listed(ShortPrompts::Neither)
        .needs(Capability::Xml)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY))
        .paid_before(XML),
        host(
            "transpileCode",
            "Turns source code into a program.",
            MICRO,
            &[req(
                "code",
                Kind::Text,
                "Source text in the language of the host's transpiler.",
            )],
            transpile,
        )
        .listed(ShortPrompts::Neither)
        .needs(Capability::Transpiler)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY)),
    ]
}

fn xml(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [text] = inputs(&mut call);
        let xml = required(&call, |c| &c.xml, "Capability 'xml.parse' missing")?;
        reply(xml.parse(text).await)
    })
}

fn transpile(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [code] = inputs(&mut call);
        const MISSING: &str =
            "Capability 'code.transpile' missing. The host must grant a transpiler.";
        let transpiler = required(&call, |c| &c.transpiler, MISSING)?;
        transpiler
            .transpile(code)
            .await
            .map(HostReply::from)
            .map_err(|error| failed_as("Code transpilation failed", error))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, ScriptedTranspiler, ScriptedXml};

    #[test]
    fn parsers_by_capability() {
        let set = Capabilities::none()
            .with_xml(
                ScriptedXml::new()
                    .on("<a/>", "a")
                    .fails("<a>", "unclosed tag a"),
            )
            .with_transpiler(ScriptedTranspiler::new().fails("}", "unexpected }"));
        let bench = Bench::with(set);
        assert_eq!(bench.call("xmlParse", r#"["<a/>"]"#).unwrap(), r#""a""#);
        assert_eq!(
            bench.call("xmlParse", r#"["<a>"]"#).unwrap_err(),
            "unclosed tag a"
        );
        let error = bench.call("transpileCode", r#"["}"]"#).unwrap_err();
        assert_eq!(error, "Code transpilation failed: unexpected }");
    }

    #[test]
    fn nothing_without_them() {
        let error = Bench::new().call("xmlParse", r#"["<a/>"]"#).unwrap_err();
        assert_eq!(error, "Capability 'xml.parse' missing");
        let error = Bench::new().call("transpileCode", r#"["x"]"#).unwrap_err();
        assert!(error.starts_with("Capability 'code.transpile' missing."));
    }
}
