//! Section of a configuration file about language models.

/// Name of the section of a configuration file.
pub(crate) const SECTION: &str = "models";

#[cfg(feature = "models")]
mod section {
    use a99_core::diag::suggest;
    use a99_models::{ModelConfig, ModelProvider};
    use serde::Deserialize as _;
    use std::ops::Range;
    use toml::Spanned;
    use toml::de::{DeValue, ValueDeserializer};

    /// Services, roles, prices and timeouts of a configuration file.
    #[derive(Clone, Debug)]
    pub(crate) struct Section(pub(crate) ModelConfig);

    /// A mistake of a section: its bytes, message and help.
    type SectionError = (Option<Range<usize>>, String, String);

    impl Section {
        /// Parses a section.
        ///
        /// # Errors
        /// The first mistake.
        pub(crate) fn read(value: &Spanned<DeValue<'_>>) -> Result<Section, SectionError> {
            let read = ModelConfig::deserialize(ValueDeserializer::from(value.clone()));
            let config = read.map_err(|error| {
                // Use TOML's terms instead of Rust's.
                let text = error.message().replace("expected f64", "expected a number");
                let text = text.replace("expected struct ModelConfig", "expected a section");
                let text = text.replace("expected struct ", "expected a table of ");
                let text = text.replace("expected a map", "expected a table");
                let text = text
                    .replace("a string", "a text")
                    .replace(": string ", ": text ");
                let help = advice(&text);
                (error.span(), text, help)
            })?;
            // Built once for its errors; keys come later.
            match ModelProvider::new(config.clone()) {
                Ok(_) => Ok(Section(config)),
                Err(error) => {
                    let text = error.to_string();
                    Err((place(value, &text), text, advice("")))
                }
            }
        }

        /// Whether it takes keys from the environment.
        pub(crate) fn asks_for_keys(&self) -> bool {
            let mut services = self.0.services.values();
            services.any(|service| service.key_env.is_some())
        }

        /// Whether one of its services has this origin.
        pub(crate) fn serves(&self, origin: &str) -> bool {
            let mut services = self.0.services.values();
            services.any(|service| crate::address::origin_of(&service.url) == origin)
        }

        /// The granted services, for people.
        pub(crate) fn shown(&self) -> String {
            let services = self.0.services.iter();
            let services: Vec<String> = services
                .map(|(name, service)| {
                    format!("{name} {}", crate::address::shown_address(&service.url))
                })
                .collect();
            services.join(", ")
        }
    }

    /// The span of the key that a message such as `services.local.url: ...` begins with.
    fn place(section: &Spanned<DeValue<'_>>, text: &str) -> Option<Range<usize>> {
        let path = text.split_once(": ")?.0;
        let mut found = None;
        let mut value = section;
        let mut rest = path;
        while !rest.is_empty() {
            let DeValue::Table(table) = value.get_ref() else {
                break;
            };
            // A name may contain dots, and be quoted.
            let after = |name: &str| {
                let quoted = format!("{name:?}");
                let after = rest
                    .strip_prefix(name)
                    .or_else(|| rest.strip_prefix(&quoted))?;
                (after.is_empty() || after.starts_with('.')).then_some(after.len())
            };
            let mut entries = table.iter();
            let next =
                entries.find_map(|(name, value)| Some((name, value, after(name.get_ref())?)));
            let Some((name, inner, left)) = next else {
                break;
            };
            found = Some(name.span());
            value = inner;
            rest = rest[rest.len() - left..].trim_start_matches('.');
        }
        found
    }

    /// Help for a mistake of a section.
    fn advice(text: &str) -> String {
        // "unknown field `uri`, expected one of `wire`, `url`"
        let mut names = text.split('`').skip(1).step_by(2);
        let found = names.next().filter(|_| text.starts_with("unknown field"));
        let near = found.and_then(|found| suggest(&found.replace('_', "-"), names));
        match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`a99 run --help` and docs/grants.md show what `[models]` has".to_owned(),
        }
    }
}

#[cfg(not(feature = "models"))]
mod section {
    use std::convert::Infallible;
    use std::ops::Range;
    use toml::Spanned;
    use toml::de::DeValue;

    /// A section, which this binary cannot read.
    #[derive(Clone, Debug)]
    pub(crate) struct Section(pub(crate) Infallible);

    /// A mistake of a section: its bytes, message and help.
    type SectionError = (Option<Range<usize>>, String, String);

    impl Section {
        pub(crate) fn read(_: &Spanned<DeValue<'_>>) -> Result<Section, SectionError> {
            let text = "this binary was built without the feature `models`".to_owned();
            let help = "install it from a checkout: `cargo install --path cli --features models`";
            Err((None, text, help.to_owned()))
        }

        pub(crate) fn asks_for_keys(&self) -> bool {
            match self.0 {}
        }

        pub(crate) fn serves(&self, _: &str) -> bool {
            match self.0 {}
        }

        pub(crate) fn shown(&self) -> String {
            match self.0 {}
        }
    }
}

pub(crate) use section::Section;
