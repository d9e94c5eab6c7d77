//! The pages that the command writes, as a browser shows them.

#[path = "browser/driven.rs"]
#[cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "the tests of the inspector use the rest")
)]
mod driven;
mod harness;
#[cfg(feature = "server")]
#[allow(dead_code, reason = "the tests of hosts use the rest")]
#[path = "agent/hosted.rs"]
mod hosted;
#[cfg(feature = "server")]
#[path = "browser/inspector.rs"]
mod inspector;

use driven::Browser;
use harness::{Sandbox, a99};

/// Two functions, a hot line, calls, and a line longer than a narrow window.
const PROGRAM: &str = "function step(x) { return (x * 31 + 7) % 1000003 }
export default async function agent({ n }) {
  let x = 1
  for (let i = 0; i < n; i++) x = step(x)
  await storeSet({ key: 'last', value: { x, text: 'a text that is longer than a narrow window' } })
  const found = await storeGet({ key: 'last' })
  return { x, found }
}
";

/// Measures a page.
const MEASURE: &str = "(() => {
const light = (color) => {
  const dot = document.createElement('canvas').getContext('2d')
  dot.fillStyle = color
  dot.fillRect(0, 0, 1, 1)
  const [r, g, b] = dot.getImageData(0, 0, 1, 1).data
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255
}
const probe = document.createElement('p')
probe.style.cssText = 'color:CanvasText;background:Canvas'
document.body.append(probe)
const seen = (what) => [...document.querySelectorAll(what)].filter((e) => {
  const box = e.getBoundingClientRect()
  return box.width > 1 && box.height > 1
}).length
return {
  overflow: document.documentElement.scrollWidth - innerWidth,
  text: light(getComputedStyle(document.querySelector('td.t')).color),
  back: light(getComputedStyle(probe).backgroundColor),
  rows: seen('tr'), hot: seen('tr.hot'), frames: seen('rect'), calls: seen('.lane span'),
  code: seen('td.c'),
  loaded: performance.getEntriesByType('resource').length,
}
})()";

#[test]
#[ignore = "needs chromium"]
fn pages_are_shown_by_a_browser() {
    let folder = Sandbox::new("browser");
    // The pages name the file, and a path has no place to break a line.
    let deep = folder.path(&"a-deep-folder/".repeat(8));
    std::fs::create_dir_all(&deep).expect("a folder");
    let program = format!("{deep}agent.js");
    std::fs::write(&program, PROGRAM).expect("written");
    let script = folder.file("script.json", r#"{"store": {}}"#);
    let profile = folder.path("profile.html");
    let args = [
        "run",
        &program,
        "--args",
        r#"{"n": 20000}"#,
        "--script",
        &script,
        "--fuel",
        "100000",
        "--profile",
        &profile,
    ];
    let done = a99(&args, b"");
    assert_eq!(done.code, 0, "{done:?}");
    let bytecode = folder.path("bytecode.html");
    let done = a99(&["inspect", &program, "--html", &bytecode], b"");
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");

    let mut browser = Browser::start(&folder.path("browser"));
    for (path, is_profile) in [(&profile, true), (&bytecode, false)] {
        let page = std::fs::read_to_string(path).expect("written");
        assert!(!page.contains("<script"), "{path}");
        for (width, is_dark) in [(1100, false), (1100, true), (420, false)] {
            browser.open(&format!("file://{path}"), (width, 900), is_dark);
            let found = browser.value(MEASURE);
            let number = |what: &str| found[what].as_f64().expect("a number");
            assert!(number("overflow") <= 0.0, "{path} {width}: {found}");
            assert_eq!(number("loaded"), 0.0, "{found}");
            assert_eq!(number("back") < 0.5, is_dark, "{found}");
            let contrast = (number("text") - number("back")).abs();
            assert!(contrast > 0.5, "{found}");
            // One row more has the names of columns.
            let lines = PROGRAM.lines().count() as f64;
            assert!(number("rows") > lines, "{found}");
            if is_profile {
                assert!(number("hot") >= 2.0, "{found}");
                assert!(number("frames") >= 4.0, "{found}");
                assert_eq!(number("calls"), 2.0, "{found}");
            } else {
                assert!(number("code") > lines, "{found}");
            }
        }
    }
}
