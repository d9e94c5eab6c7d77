//! Rules for the shell: commands, paths and file modes.
//!
//! Codes: `lint.wrong_value`.

use super::Rules;
use super::inputs::is_path;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

impl Rules<'_, '_> {
    /// Reports shell syntax in a command list, which is a program with its arguments and runs
    /// without a shell.
    pub(super) fn lint_command(&mut self, step: NodeId) {
        let doc = self.doc;
        if let Some((node, cwd)) = self
            .plain(step, "cwd")
            .filter(|(_, cwd)| cwd.starts_with('~'))
        {
            let message = "no shell looks at `cwd`: `~` is the name of a folder here";
            let help = "write the whole path, as in `\"/data\"`";
            self.found(codes::WRONG_VALUE, node, message, &cwd, help);
        }
        let Some(command) = doc.get(step, "command") else {
            return;
        };
        if doc.kind(command) != Kind::Array {
            return;
        }
        let signs = ["|", "||", "&&", ";", ">", ">>", "<", "2>&1", "&"];
        let words: Vec<(NodeId, String)> = doc
            .elements(command)
            .filter_map(|n| Some((n, super::text_of(doc, n)?)))
            .collect();
        let is_run = words.iter().any(|(_, word)| word == "-c");
        let sign = words
            .iter()
            .find(|(_, word)| signs.contains(&word.as_str()));
        let for_shell = || words.iter().find(|(_, word)| is_for_shell(word) && !is_run);
        if let Some((node, word)) = sign.or_else(for_shell) {
            let all: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
            let message = match sign {
                Some(_) => {
                    format!("no shell looks at a list: `{word}` is an argument of the program")
                }
                None => "no shell looks at a list: this stays as it is written".to_owned(),
            };
            let help = format!(
                "for the shell write one text: `\"command\": \"{}\"`",
                excerpt(&all.join(" "))
            );
            self.found(codes::WRONG_VALUE, *node, message, word, help);
        } else if let [(node, one)] = &words[..]
            && one.trim().contains(' ')
        {
            let message = "a list is a program and its arguments: no program has this name";
            let parts: Vec<String> = one.split_whitespace().map(|w| format!("\"{w}\"")).collect();
            let help = format!(
                "write `[{}]`, or one text for the shell",
                excerpt(&parts.join(", "))
            );
            self.found(codes::WRONG_VALUE, *node, message, one, help);
        }
    }

    pub(super) fn lint_file(&mut self, step: NodeId, op: &str) {
        if let Some((node, path)) = self.plain(step, "path")
            && !path.starts_with('/')
            && !path.contains(['{', '$'])
        {
            let message = format!("`path` of `{op}` is absolute: it begins with `/`");
            let rest = path.trim_start_matches(['~', '.', '/', '\\']);
            let help = match is_path(&path) && !path.contains('.') {
                true => format!(
                    "write `\"/data/{0}\"`, or bind `{0}` before if it is a name",
                    excerpt(&path)
                ),
                false => format!("write the whole path, as in `\"/data/{}\"`", excerpt(rest)),
            };
            self.found(codes::WRONG_VALUE, node, message, &path, help);
        }
        let Some((node, mode)) = self.plain(step, "mode") else {
            return;
        };
        let is_octal = !mode.is_empty()
            && mode.len() <= 4
            && mode.bytes().all(|b| (b'0'..=b'7').contains(&b))
            && u32::from_str_radix(&mode, 8).is_ok_and(|mode| mode <= 0o777);
        if is_octal {
            return;
        }
        let message = "a mode is octal digits, up to `777`";
        let help = match octal_of(&mode) {
            Some(octal) => format!("write `\"mode\": \"{octal:o}\"`"),
            None => "write `\"644\"`, or `\"755\"` for a program".to_owned(),
        };
        self.found(codes::WRONG_VALUE, node, message, &mode, help);
    }
}

/// Whether only a shell expands a word: `$HOME`, `$(date)`, `~/notes`.
fn is_for_shell(word: &str) -> bool {
    let name = word
        .strip_prefix('$')
        .map(|rest| rest.trim_matches(['{', '}']));
    let is_name = |name: &str| {
        name.len() > 1
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
    };
    let begins = |rest: &str| is_name(rest.split('/').next().unwrap_or(rest).trim_end_matches('}'));
    word.starts_with("~/") || word.starts_with("$(") || name.is_some_and(begins)
}

/// The mode that `rwxr-xr-x` or `0o755` means.
fn octal_of(mode: &str) -> Option<u32> {
    let digits = mode.trim_start_matches("0o");
    if let Ok(octal) = u32::from_str_radix(digits, 8)
        && octal <= 0o777
    {
        return Some(octal);
    }
    let signs = mode
        .strip_prefix('-')
        .filter(|m| m.len() == 9)
        .unwrap_or(mode);
    if signs.len() != 9 {
        return None;
    }
    let wanted = "rwxrwxrwx";
    let mut octal = 0;
    for (sign, wanted) in signs.chars().zip(wanted.chars()) {
        let set = match sign {
            '-' => 0,
            sign if sign == wanted => 1,
            _ => return None,
        };
        octal = octal << 1 | set;
    }
    Some(octal)
}

#[cfg(test)]
mod tests {
    use super::octal_of;

    #[test]
    fn modes_in_letters() {
        assert_eq!(octal_of("rwxr-xr-x"), Some(0o755));
        assert_eq!(octal_of("-rw-r--r--"), Some(0o644));
        assert_eq!(octal_of("0o644"), Some(0o644));
        assert_eq!(octal_of("executable"), None);
        assert_eq!(octal_of("999"), None);
    }
}
