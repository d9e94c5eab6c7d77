//! Index of a Debian release: what each package needs and provides.

use super::super::apt::sources::deb822;
use super::super::error::{ErrorCode, ImageError};
use super::super::lock::Locked;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A package, or what another one provides, perhaps in certain versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    name: String,
    /// Relation and version, as in `>= 1.2`.
    version: Option<(String, String)>,
}

/// A package of the index.
#[derive(Clone, Debug)]
struct Package {
    locked: Locked,
    /// Needs, each with its alternatives.
    needs: Vec<Vec<Need>>,
    provides: Vec<Need>,
}

/// Packages of a release by name, and the providers of each virtual one.
#[derive(Debug, Default)]
pub(super) struct Index {
    packages: BTreeMap<String, Package>,
    providers: BTreeMap<String, Vec<String>>,
}

impl Index {
    /// Parses an index in Debian's control format.
    pub(super) fn parse(text: &str) -> Self {
        let mut index = Self::default();
        for stanza in text.split("\n\n") {
            let Some(package) = package(stanza) else {
                continue;
            };
            let name = package.locked.name.clone();
            for provided in &package.provides {
                let providers = index.providers.entry(provided.name.clone()).or_default();
                providers.push(name.clone());
            }
            index.packages.insert(name, package);
        }
        index
    }

    /// Resolves packages with all that they need, except what is `present`, sorted by name.
    ///
    /// Of alternatives the first that the index has is taken, unless another one is already
    /// there.
    ///
    /// # Errors
    /// [`ErrorCode::DownloadFailed`] names a package that the index lacks, and who needs it.
    pub(super) fn resolve(
        &self,
        roots: &[String],
        present: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Locked>, ImageError> {
        let mut chosen: BTreeMap<&str, &Package> = BTreeMap::new();
        let mut open = Vec::new();
        for root in roots.iter().filter(|root| !present(root)) {
            let found = self.packages.get_key_value(root);
            open.push(found.ok_or_else(|| self.unknown(root))?);
        }
        while let Some((name, package)) = open.pop() {
            if chosen.insert(name, package).is_some() {
                continue;
            }
            for alternatives in &package.needs {
                let is_met = alternatives.iter().any(|need| {
                    let providers = self.providers.get(&need.name).into_iter().flatten();
                    let is_there =
                        |name: &String| present(name) || chosen.contains_key(name.as_str());
                    present(&need.name)
                        || (is_there(&need.name) && self.fits(&need.name, need))
                        || providers
                            .clone()
                            .any(|name| is_there(name) && self.fits(name, need))
                });
                if is_met {
                    continue;
                }
                let found = alternatives.iter().find_map(|need| self.candidate(need));
                open.push(found.ok_or_else(|| unmet(name, alternatives))?);
            }
        }
        Ok(chosen
            .values()
            .map(|package| package.locked.clone())
            .collect())
    }

    /// The package that fits a need: that of its name, or else the first provider.
    fn candidate(&self, need: &Need) -> Option<(&String, &Package)> {
        let providers = self.providers.get(&need.name).into_iter().flatten();
        let mut names = std::iter::once(&need.name).chain(providers);
        let name = names.find(|name| self.fits(name, need))?;
        self.packages.get_key_value(name)
    }

    /// Whether the index has that package, and it is or provides what is needed.
    fn fits(&self, name: &str, need: &Need) -> bool {
        let Some(package) = self.packages.get(name) else {
            return false;
        };
        if name == need.name {
            return need.accepts(&package.locked.version);
        }
        // A virtual package without a version fits only a need without one (Debian policy,
        // section 7.5).
        let mut provided = package.provides.iter().filter(|p| p.name == need.name);
        provided.any(|provided| match (&provided.version, &need.version) {
            (_, None) => true,
            (Some((_, version)), Some(_)) => need.accepts(version),
            (None, Some(_)) => false,
        })
    }

    fn unknown(&self, name: &str) -> ImageError {
        let reason = format!("{} has no such package", super::super::packages::SUITE);
        ImageError::new(ErrorCode::DownloadFailed, name, reason)
    }
}

impl Need {
    /// Parses `name:arch (>= version) [architectures]`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find([' ', '(', '[', ':']).unwrap_or(text.len());
        let name = text.get(..end).filter(|name| !name.is_empty())?.to_owned();
        let version = text.split_once('(').and_then(|(_, rest)| {
            let inner = rest.split_once(')')?.0.trim();
            let at = inner.find(|c: char| !"<>=".contains(c))?;
            let (relation, version) = inner.split_at(at);
            Some((relation.to_owned(), version.trim().to_owned()))
        });
        Some(Self { name, version })
    }

    fn accepts(&self, version: &str) -> bool {
        let Some((relation, wanted)) = &self.version else {
            return true;
        };
        let order = compare(version, wanted);
        match relation.as_str() {
            "<<" => order == Ordering::Less,
            "<=" | "<" => order != Ordering::Greater,
            "=" => order == Ordering::Equal,
            ">>" => order == Ordering::Greater,
            _ => order != Ordering::Less,
        }
    }
}

fn package(stanza: &str) -> Option<Package> {
    let fields = deb822(stanza).into_iter().next()?;
    let field = |name: &str| {
        let found = fields.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_str())
    };
    let needs = [field("Pre-Depends"), field("Depends")]
        .into_iter()
        .flatten();
    let needs = needs.flat_map(|list| list.split(','));
    let needs = needs.map(|list| list.split('|').filter_map(Need::parse).collect::<Vec<_>>());
    let provides = field("Provides").unwrap_or_default().split(',');
    Some(Package {
        locked: Locked {
            name: field("Package")?.to_owned(),
            architecture: field("Architecture")?.to_owned(),
            version: field("Version")?.to_owned(),
            size: field("Size")?.parse().ok()?,
            sha256: field("SHA256")?.to_owned(),
        },
        needs: needs
            .filter(|alternatives| !alternatives.is_empty())
            .collect(),
        provides: provides.filter_map(Need::parse).collect(),
    })
}

fn unmet(name: &str, alternatives: &[Need]) -> ImageError {
    let names: Vec<&str> = alternatives.iter().map(|need| need.name.as_str()).collect();
    let reason = format!("needs {}, which is not there", names.join(" or "));
    ImageError::new(ErrorCode::DownloadFailed, name, reason)
}

/// Compares versions (deb-version(7)): epoch, upstream version, revision.
fn compare(a: &str, b: &str) -> Ordering {
    fn parts(version: &str) -> (u64, &str, &str) {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        (epoch.parse().unwrap_or(0), upstream, revision)
    }
    let (a, b) = (parts(a), parts(b));
    let order = a.0.cmp(&b.0).then_with(|| compare_part(a.1, b.1));
    order.then_with(|| compare_part(a.2, b.2))
}

/// Compares text and numbers in turn; letters come before other characters, and a tilde
/// before the end.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    let weight = |c: Option<char>| match c {
        Some('~') => -1,
        None => 0,
        Some(c) if c.is_ascii_alphabetic() => c as i32,
        Some(c) => c as i32 + 256,
    };
    let split = |text: &str, digits: bool| {
        text.find(|c: char| c.is_ascii_digit() != digits)
            .unwrap_or(text.len())
    };
    while !a.is_empty() || !b.is_empty() {
        let ((a_text, a_rest), (b_text, b_rest)) =
            (a.split_at(split(a, false)), b.split_at(split(b, false)));
        let (mut left, mut right) = (a_text.chars(), b_text.chars());
        loop {
            let (x, y) = (left.next(), right.next());
            match weight(x).cmp(&weight(y)) {
                Ordering::Equal if x.is_none() && y.is_none() => break,
                Ordering::Equal => {}
                order => return order,
            }
        }
        let ((a_number, a_rest), (b_number, b_rest)) = (
            a_rest.split_at(split(a_rest, true)),
            b_rest.split_at(split(b_rest, true)),
        );
        let (x, y) = (
            a_number.trim_start_matches('0'),
            b_number.trim_start_matches('0'),
        );
        match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
            Ordering::Equal => {}
            order => return order,
        }
        (a, b) = (a_rest, b_rest);
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_debians_order() {
        let ascending = [
            "1.0~rc1",
            "1.0",
            "1.0-1~bpo1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-2",
            "1.0a",
            "1.0+ds-1",
            "1.2",
            "1.10",
            "1:0.1",
        ];
        for (index, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), index.cmp(&other), "{a} {b}");
            }
        }
        assert_eq!(compare("1.00", "1.0"), Ordering::Equal);
    }

    fn stanza(name: &str, version: &str, fields: &str) -> String {
        format!(
            "Package: {name}\nArchitecture: riscv64\nVersion: {version}\n{fields}Size: 1\nSHA256: x\n\n"
        )
    }

    fn names(index: &Index, root: &str, present: &[&str]) -> Result<Vec<String>, String> {
        let found = index.resolve(&[root.to_owned()], &|name| present.contains(&name));
        let names = |list: Vec<Locked>| list.into_iter().map(|locked| locked.name).collect();
        found.map(names).map_err(|error| error.to_string())
    }

    #[test]
    fn needs_are_followed() {
        let text = [
            stanza(
                "app",
                "1",
                "Depends: lib (>= 2), gone | mail-agent, base\nPre-Depends: pre\n",
            ),
            stanza("lib", "2.1-1", "Depends: app, c:any (<< 3~)\n"),
            stanza("pre", "1", ""),
            stanza("c", "2", ""),
            stanza("postfix", "1", "Provides: mail-agent\n"),
            stanza("exim", "1", "Provides: mail-agent (= 4)\n"),
            stanza("old", "1", "Depends: lib (>= 3)\n"),
            stanza("versioned", "1", "Depends: mail-agent (>= 4)\n"),
            stanza("choice", "1", "Depends: postfix | exim, exim\n"),
        ];
        let index = Index::parse(&text.concat());
        let all = ["app", "c", "lib", "postfix", "pre"].map(str::to_owned);
        assert_eq!(names(&index, "app", &["base"]), Ok(all.to_vec()));
        // What is there is not taken again, nor an alternative to it.
        let few = ["app", "pre"].map(str::to_owned);
        assert_eq!(
            names(&index, "app", &["base", "lib", "exim"]),
            Ok(few.to_vec())
        );
        let own = ["exim", "versioned"].map(str::to_owned);
        assert_eq!(names(&index, "versioned", &[]), Ok(own.to_vec()));
        for (root, named) in [("app", "base"), ("old", "lib"), ("none", "none")] {
            let error = names(&index, root, &[]).unwrap_err();
            assert!(error.contains(named), "{root}: {error}");
        }
    }
}
