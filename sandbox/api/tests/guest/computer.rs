//! A guest as people expect a computer: a locale, line editing, and `pip` without needless
//! work.

use crate::common::{sh, start};
use a99_sandbox::{Output, Sandbox, block_on};

fn python(sandbox: &Sandbox, program: &str) -> Output {
    block_on(sandbox.command(["python3", "-c", program]).output()).expect("it runs")
}

#[test]
#[ignore = "needs the image"]
fn the_locale_is_utf_8() {
    let sandbox = start();
    let locale = sh(&sandbox, "locale");
    assert!(locale.contains("LANG=C.UTF-8\n"), "{locale}");
    assert!(sh(&sandbox, "locale charmap").contains("UTF-8"));
    let program =
        "import locale, sys; print(sys.stdout.encoding, locale.setlocale(locale.LC_ALL, ''))";
    assert_eq!(python(&sandbox, program).stdout_text(), "utf-8 C.UTF-8\n");
    assert_eq!(sh(&sandbox, "bash -c 'x=日本; echo ${#x}'"), "2\n");
    assert_eq!(
        sh(&sandbox, "mkdir /tmp/x; cd /tmp/x; touch 日本語 é; ls"),
        "é\n日本語\n"
    );
}

#[test]
#[ignore = "needs the image"]
fn python_has_readline() {
    let sandbox = start();
    let program = "import readline; readline.parse_and_bind('tab: complete'); print(readline.get_line_buffer() == '')";
    let output = python(&sandbox, program);
    assert_eq!(output.stdout_text(), "True\n", "{}", output.stderr_text());
}

/// A wheel with one module.
const WHEEL: &str = "\
import zipfile
with zipfile.ZipFile('/tmp/demo-1.0-py3-none-any.whl', 'w') as wheel:
    info = 'demo-1.0.dist-info/'
    wheel.writestr('demo.py', 'answer = 42')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
";

#[test]
#[ignore = "needs the image"]
fn pip_leaves_compiling_to_the_first_import() {
    let sandbox = start();
    let made = python(&sandbox, WHEEL);
    assert_eq!(made.exit_code(), 0, "{}", made.stderr_text());
    sh(
        &sandbox,
        "pip install -q --no-index /tmp/demo-1.0-py3-none-any.whl",
    );
    let compiled = "find / -xdev -name 'demo.cpython-*.pyc' | wc -l";
    assert_eq!(sh(&sandbox, compiled), "0\n");
    assert_eq!(
        sh(
            &sandbox,
            "cd /tmp; python3 -c 'import demo; print(demo.answer)'"
        ),
        "42\n"
    );
    assert_eq!(sh(&sandbox, compiled), "1\n");
}
