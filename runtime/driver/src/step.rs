//! Steps: calls of a turn whose answers are journaled, so that a retry does not repeat them.

use crate::activation::Kept;
use crate::error::{AgentError, codes};
use crate::kill;
use crate::trace::fail;
use a99_runtime_engine::{
    AgentStore, Fence, JournalRow, JournalStatus, StepClass, StoreError, Trigger, digest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tracing::field::Empty;
use tracing::{Instrument as _, info_span};

/// A step: its name in the turn, its class and a digest of its request.
#[derive(Clone, Debug)]
pub struct Step {
    name: String,
    class: StepClass,
    body: u64,
}

impl Step {
    /// An idempotent step: it may run again until its answer is journaled.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Step {
        Step {
            name: name.into(),
            class: StepClass::Idempotent,
            body: 0,
        }
    }

    /// Marks the step as unsafe to repeat: after an interruption it answers
    /// `step.unknown_outcome`.
    #[must_use]
    pub fn once(mut self) -> Step {
        self.class = StepClass::Unsafe;
        self
    }

    /// Sets the request. A different request under the same name is refused, so that an answer
    /// is never taken for another request's.
    ///
    /// # Errors
    /// `turn.bad_value` if it is not JSON.
    pub fn asking(mut self, question: &impl Serialize) -> Result<Step, AgentError> {
        let text = serde_json::to_string(question)?;
        self.body = digest(text.as_bytes());
        Ok(self)
    }
}

/// An answer as journal text, provided that it deserializes again.
fn kept<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> Result<String, AgentError> {
    let text = serde_json::to_string(value).and_then(|text| {
        serde_json::from_str::<T>(&text)?;
        Ok(text)
    });
    text.map_err(|error| {
        let message =
            format!("the journal could not read the answer of the step '{name}': {error}");
        AgentError::new(codes::BAD_VALUE, message).fatal()
    })
}

/// The steps of a turn, read from the store at the first step.
pub(crate) struct Journal {
    store: Arc<dyn AgentStore>,
    fence: Fence,
    trigger: Trigger,
    /// The group commit that must be durable before the journal is written.
    kept: Option<Kept>,
    rows: Mutex<Option<HashMap<String, JournalRow>>>,
}

impl Journal {
    pub(crate) fn of(
        store: Arc<dyn AgentStore>,
        fence: Fence,
        trigger: Trigger,
        kept: Option<Kept>,
    ) -> Journal {
        Journal {
            kept,
            store,
            fence,
            trigger,
            rows: Mutex::const_new(None),
        }
    }

    /// Whether any step was looked up or journaled.
    pub(crate) fn is_used(&self) -> bool {
        self.rows.try_lock().map_or(true, |rows| rows.is_some())
    }

    pub(crate) fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// The journaled row of a step.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<JournalRow>, StoreError> {
        if let Some(before) = &self.kept {
            before.wait().await?;
        }
        let mut rows = self.rows.lock().await;
        if rows.is_none() {
            let kept = self.store.journal(&self.fence.key, &self.trigger).await?;
            *rows = Some(
                kept.into_iter()
                    .map(|row| (row.name.clone(), row))
                    .collect(),
            );
        }
        Ok(rows.as_ref().and_then(|rows| rows.get(name).cloned()))
    }

    /// All journaled rows of the turn.
    #[cfg(unix)]
    pub(crate) async fn all(&self) -> Result<Vec<JournalRow>, StoreError> {
        self.find("").await?;
        let rows = self.rows.lock().await;
        Ok(rows.iter().flat_map(HashMap::values).cloned().collect())
    }

    /// Journals the status of a step.
    pub(crate) async fn keep(
        &self,
        name: &str,
        class: StepClass,
        body: u64,
        status: JournalStatus,
    ) -> Result<(), StoreError> {
        let row = JournalRow {
            trigger: self.trigger.clone(),
            name: name.to_owned(),
            class,
            body,
            status,
        };
        kill::point("step.before");
        self.store
            .record_step(self.fence.clone(), row.clone())
            .await?;
        kill::point("step.after");
        if let Some(rows) = self.rows.lock().await.as_mut() {
            rows.insert(row.name.clone(), row);
        }
        Ok(())
    }

    /// Runs a step unless its answer is journaled. A step that ends after its turn is not
    /// journaled.
    pub(crate) async fn step<T, F>(
        &self,
        step: Step,
        work: F,
        is_over: impl Fn() -> bool,
    ) -> Result<T, AgentError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, AgentError>>,
    {
        let Step { name, class, body } = step;
        if let Some(row) = self.find(&name).await? {
            if row.body != body {
                let message =
                    format!("the step '{name}' asked something else when the turn ran before");
                return Err(AgentError::new(codes::CHANGED_BODY, message).fatal());
            }
            match row.status {
                JournalStatus::Done(json) => return Ok(serde_json::from_str(&json)?),
                JournalStatus::Failed(code, error) => {
                    return Err(AgentError::new(code, error).fatal());
                }
                JournalStatus::Started if row.class == StepClass::Unsafe => {
                    let message = format!("the step '{name}' was cut off: it may have been made");
                    return Err(AgentError::new(codes::UNKNOWN_OUTCOME, message).fatal());
                }
                JournalStatus::Started => {}
            }
        } else if class == StepClass::Unsafe {
            self.keep(&name, class, body, JournalStatus::Started)
                .await?;
        }
        let span = info_span!(
            "step",
            otel.status_code = Empty,
            "error.type" = Empty,
            a99.step = name,
        );
        let answer = work.instrument(span.clone()).await;
        if let Err(error) = &answer {
            fail(&span, error.code());
        }
        drop(span);
        if is_over() {
            let message = format!("the step '{name}' ended after its turn");
            return Err(AgentError::new(codes::OVER, message));
        }
        let status = match &answer {
            Ok(value) => match kept(&name, value) {
                Ok(text) => JournalStatus::Done(text),
                Err(error) => {
                    // The step ran all the same: journal the failure, so that it is not
                    // repeated.
                    let (code, text) = (error.code().to_owned(), error.to_string());
                    self.keep(&name, class, body, JournalStatus::Failed(code, text))
                        .await?;
                    return Err(error);
                }
            },
            // The next attempt of the turn repeats the step.
            Err(error) if class != StepClass::Unsafe && !error.is_final() => return answer,
            Err(error) => JournalStatus::Failed(error.code().to_owned(), error.to_string()),
        };
        self.keep(&name, class, body, status).await?;
        answer
    }
}
