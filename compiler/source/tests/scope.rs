//! Tests that scopes separate variables of one name, and that help quotes names of the source.

use a99_source::read;

fn refused(code: &str) -> String {
    let found = read(code, &a99_atoms::core_atoms()).err();
    found.map(|found| found.to_string()).unwrap_or_default()
}

#[test]
fn u4_names_are_told_apart_by_their_scope() {
    let count = "function count(path) {
        const re = /a/g
        let n = 0
        let m
        while ((m = re.exec(path)) !== null) { n += m[0].length }
        return n
    }";
    for other in [
        "function other() { let path = 1; path = 2; const re = 3; return path + re }",
        "function other() { let path = 1; path++; return path }",
        "const other = () => { let [path] = [1]; [path] = [2]; return path }",
    ] {
        let agent = "export default function agent({ x }) { return { n: count(x), o: other() } }";
        assert_eq!(
            refused(&format!("{count}\n{other}\n{agent}")),
            "",
            "{other}"
        );
    }
    for code in [
        "function f() { let last = null; try { g() } catch (e) { last = e } return last?.message }
         function g() { throw new Error('no') }
         function h() { let last = 1; last += 1; return [last].length + String(last) }
         export default function agent({}) { return { m: f(), h: h() } }",
        "function f() { const d = new Date(0); d.setDate(2); return d.getTime() }
         function g(x) { const d = new Date(x); const e = d; return e.getTime() }
         export default function agent({}) { return { f: f(), g: g(0) } }",
    ] {
        assert_eq!(refused(code), "", "{code}");
    }
    // A loop whose function sets the variable is a different case.
    let set = count.replace("n += m[0].length", "path = 'b'");
    let agent = "export default function agent({ x }) { return count(x) }";
    assert_eq!(refused(&format!("{set}\n{agent}")), "");
}

#[test]
fn u1_help_on_sources_is_true_of_them() {
    let help = |value: &str| refused(&format!("function agent({{ x, y }}) {{ return {value} }}"));
    for (value, wanted) in [
        ("Math.rount(x)", "did you mean `Math.round`?"),
        ("Math.Floor(x)", "did you mean `Math.floor`?"),
    ] {
        let text = help(value);
        assert!(text.contains(wanted), "{value}: {text}");
        assert!(!text.contains("AsyncJS"), "{value}: {text}");
        // The code that the help suggests must compile.
        if let Some(code) = wanted.strip_prefix("write `") {
            assert_eq!(help(code.trim_end_matches('`')), "", "{code}");
        }
    }
    let text = help("x.then(r => r.v)");
    assert!(!text.is_empty() && !text.contains(">="), "{text}");
}
