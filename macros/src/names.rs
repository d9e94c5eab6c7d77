//! Names: the forms of a Rust name, and the valid names of atoms and keys.

/// Maximum length of names in tool APIs (OpenAI functions).
const MAX_NAME: usize = 64;

/// The step's own keys (language section 1.4).
pub(crate) const STEP_KEYS: [&str; 3] = ["op", "result", "resultConst"];

/// `my_op` as `myOp`.
pub(crate) fn camel(name: &str) -> String {
    let words = words(name);
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// `my_op` as `MyOp`; a leading digit gets an underscore.
pub(crate) fn pascal(name: &str) -> String {
    let words = words(name);
    match words.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{words}"),
        false => words,
    }
}

/// The words of a name, each capitalized.
fn words(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut chars = word.chars();
            let first = chars.next().into_iter().flat_map(char::to_uppercase);
            first.chain(chars).collect::<Vec<char>>()
        })
        .collect()
}

/// `my_op` as `MY_OP`.
pub(crate) fn constant(name: &str) -> String {
    name.to_uppercase()
}

/// The error of an invalid atom name.
pub(crate) fn fault(name: &str) -> Option<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        return Some("the name of an atom must not be empty".to_owned());
    }
    if let Some(bad) = name.chars().find(|&c| !known(c)) {
        return Some(format!(
            "the name of an atom may not contain {bad:?}: tool APIs take letters A to Z, digits, \
             `_` and `-` only"
        ));
    }
    if name.len() > MAX_NAME {
        return Some(format!(
            "the name of an atom has at most {MAX_NAME} characters, this one has {}",
            name.len()
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (name, camel_name, pascal_name) in [
            ("my_op", "myOp", "MyOp"),
            ("op2_x", "op2X", "Op2X"),
            ("_hidden", "hidden", "Hidden"),
            ("already", "already", "Already"),
            ("httpGet", "httpGet", "HttpGet"),
        ] {
            assert_eq!(
                (camel(name), pascal(name)),
                (camel_name.into(), pascal_name.into())
            );
        }
        assert_eq!(constant("my_op"), "MY_OP");
        assert_eq!((&*camel("_2x"), &*pascal("_2x")), ("2x", "_2x"));
    }

    #[test]
    fn faults() {
        assert_eq!(fault("my-op_2"), None);
        assert!(fault("").is_some() && fault("a b").is_some() && fault("größe").is_some());
        assert!(fault(&"x".repeat(64)).is_none() && fault(&"x".repeat(65)).is_some());
    }
}
