//! Names of packs on the command line.

use a99_core::diag::suggest;
use a99_sandbox::cache::Cache;
use a99_sandbox::image::packs::{Pack, names};

/// Parses the name of a pack that can be built by name.
pub(crate) fn named(text: &str) -> Result<String, String> {
    check(text, &[])
}

/// Parses the name of a pack that guests can start with: one of the table, or of this user.
pub(crate) fn built(text: &str) -> Result<String, String> {
    check(text, &[]).or_else(|_| {
        let own = Cache::of_user().map(|cache| cache.packs());
        check(text, &own.unwrap_or_default())
    })
}

fn check(text: &str, own: &[String]) -> Result<String, String> {
    let mut known: Vec<&str> = names().collect();
    let others = own.iter().map(String::as_str);
    known.extend(others.filter(|name| Pack::named(name).is_none()));
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(match suggest(text, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the packs are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_pack_is_answered_by_the_nearest() {
        assert_eq!(named("py"), Ok("py".to_owned()));
        assert_eq!(named("tool"), Err("did you mean `tools`?".to_owned()));
        let error = named("something").unwrap_err();
        assert!(error.contains("build, node, py, tools"), "{error}");
        let own = ["mine".to_owned(), "py".to_owned()];
        assert_eq!(check("mine", &own), Ok("mine".to_owned()));
        let error = check("something", &own).unwrap_err();
        assert!(error.contains("py, tools, mine"), "{error}");
    }
}
