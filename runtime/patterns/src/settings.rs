//! Settings manager: settings that an agent keeps in its state.

use crate::codes;
use a99_runtime::{AgentError, deep_merge};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::marker::PhantomData;

/// Settings in three layers: the defaults of `S`, then the configuration of the first start,
/// then the changes of users. An agent keeps the manager in its state, so that changes commit
/// with the turn and outlast a restart.
///
/// A turn's [`settings`](a99_runtime::Turn::settings) have the same layers and can be changed
/// from outside. This manager is for settings that the agent's methods change: it can also
/// reset them, and it starts with defaults where the other refuses to wake.
///
/// ```
/// use a99_runtime_patterns::SettingsManager;
/// use serde::{Deserialize, Serialize};
/// use serde_json::json;
///
/// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
/// struct Prefs {
///     model: String,
///     level: u8,
/// }
///
/// let mut settings = SettingsManager::<Prefs>::default();
/// assert_eq!(settings.load(&json!({"model": "fast"})), None);
/// settings.update(&json!({"level": 2}))?;
/// assert_eq!(settings.get(), Prefs { model: "fast".into(), level: 2 });
/// assert_eq!(settings.reset().level, 0);
/// # Ok::<(), a99_runtime::AgentError>(())
/// ```
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "", default)]
pub struct SettingsManager<S> {
    /// The configuration of the first start.
    configuration: Option<Value>,
    /// The changes of users.
    changes: Value,
    #[serde(skip)]
    of: PhantomData<fn() -> S>,
}

impl<S> Default for SettingsManager<S> {
    fn default() -> SettingsManager<S> {
        SettingsManager {
            configuration: None,
            changes: Value::Object(Map::new()),
            of: PhantomData,
        }
    }
}

impl<S> Clone for SettingsManager<S> {
    fn clone(&self) -> SettingsManager<S> {
        SettingsManager {
            configuration: self.configuration.clone(),
            changes: self.changes.clone(),
            of: PhantomData,
        }
    }
}

impl<S: Serialize + DeserializeOwned + Default> SettingsManager<S> {
    /// Reads the settings when the agent wakes. The first call keeps the configuration; later
    /// ones do not replace it ([`SettingsManager::reconfigure`] does).
    ///
    /// Gives `agent.bad_settings` if a layer does not fit `S`. [`SettingsManager::get`] then
    /// omits it, and the stored value stays for a version that can read it.
    #[must_use = "the error of settings that cannot be read"]
    pub fn load(&mut self, configuration: &Value) -> Option<AgentError> {
        if self.configuration.is_none() {
            self.configuration = Some(configuration.clone());
        }
        let failed = |error: serde_json::Error, what: &str| {
            AgentError::new(codes::BAD_SETTINGS, format!("{what} does not fit: {error}"))
        };
        match self.configured() {
            Err(error) => Some(failed(error, "the configuration")),
            Ok(_) => self.layered(&self.changes).err().map(|error| {
                let what = "what users changed";
                failed(error, what)
            }),
        }
    }

    /// Replaces the configuration.
    pub fn reconfigure(&mut self, configuration: &Value) {
        self.configuration = Some(configuration.clone());
    }

    /// The defaults with the configuration over them.
    fn base(&self) -> Result<Value, serde_json::Error> {
        let defaults = serde_json::to_value(S::default())?;
        Ok(match &self.configuration {
            Some(over) if over.is_object() => deep_merge(&defaults, over),
            _ => defaults,
        })
    }

    fn configured(&self) -> Result<S, serde_json::Error> {
        serde_json::from_value(self.base()?)
    }

    fn layered(&self, changes: &Value) -> Result<S, serde_json::Error> {
        let base = match self.configured() {
            Ok(_) => self.base()?,
            Err(_) => serde_json::to_value(S::default())?,
        };
        serde_json::from_value(deep_merge(&base, changes))
    }

    /// The effective settings, without layers that do not fit.
    #[must_use]
    pub fn get(&self) -> S {
        let read = self.layered(&self.changes).or_else(|_| self.configured());
        read.unwrap_or_default()
    }

    /// Merges members into the changes of users, at every depth.
    ///
    /// # Errors
    /// `turn.bad_value` if `partial` is no object or the result does not fit `S`; nothing
    /// changes then.
    pub fn update(&mut self, partial: &Value) -> Result<S, AgentError> {
        if !partial.is_object() {
            let message = "changes of settings are an object";
            return Err(AgentError::new(a99_runtime::codes::BAD_VALUE, message));
        }
        let changes = deep_merge(&self.changes, partial);
        let settings = self.layered(&changes)?;
        self.changes = changes;
        Ok(settings)
    }

    /// Discards the changes of users: the configuration applies again.
    pub fn reset(&mut self) -> S {
        self.changes = Value::Object(Map::new());
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::SettingsManager;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Prefs {
        name: String,
        level: u8,
        more: Value,
    }

    type Settings = SettingsManager<Prefs>;

    /// The manager as a restart reads it.
    fn restarted(settings: &Settings) -> Settings {
        let text = serde_json::to_string(settings).expect("JSON");
        serde_json::from_str(&text).expect("settings")
    }

    #[test]
    fn users_override_the_configuration_and_reset_returns_to_it() {
        let mut settings = Settings::default();
        assert_eq!(settings.get(), Prefs::default());
        assert_eq!(settings.load(&json!({"name": "a", "level": 1})), None);
        let changed = settings.update(&json!({"level": 2, "more": {"x": 1}}));
        assert_eq!(changed.map(|prefs| prefs.level), Ok(2));
        // At a restart the configuration must not override the user.
        let mut settings = restarted(&settings);
        assert_eq!(settings.load(&json!({"name": "b", "level": 9})), None);
        let merged = settings.update(&json!({"more": {"y": 2}}));
        let expected = Prefs {
            name: "a".to_owned(),
            level: 2,
            more: json!({"x": 1, "y": 2}),
        };
        assert_eq!(merged.as_ref(), Ok(&expected));
        let reset = settings.reset();
        assert_eq!((reset.name.as_str(), reset.level), ("a", 1));
        assert_eq!(restarted(&settings).get(), reset);
        settings.reconfigure(&json!({"level": 3}));
        assert_eq!(settings.get().level, 3);
    }

    #[test]
    fn layers_that_do_not_fit_are_reported_and_omitted() {
        let mut settings = Settings::default();
        settings.update(&json!({"name": "u"})).expect("changed");
        let error = settings.load(&json!({"level": "high"})).expect("an error");
        assert_eq!(error.code(), "agent.bad_settings");
        assert!(error.to_string().contains("configuration"), "{error}");
        assert_eq!(
            (settings.get().name.as_str(), settings.get().level),
            ("u", 0)
        );

        let stored = r#"{"configuration": {"level": 4}, "changes": {"level": -1}}"#;
        let mut settings: Settings = serde_json::from_str(stored).expect("settings");
        let error = settings.load(&json!({})).expect("an error");
        assert!(error.to_string().contains("users changed"), "{error}");
        assert_eq!(settings.get().level, 4);

        for partial in [json!([1]), json!({"level": 300})] {
            let refused = settings.update(&partial).expect_err("refused");
            assert_eq!(refused.code(), "turn.bad_value");
        }
        assert_eq!(settings.get().level, 4);
    }
}
