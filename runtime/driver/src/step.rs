//! Steps: calls of a turn whose answers are kept, so that they are not made again.

use crate::activation::Kept;
use crate::error::{AgentError, codes};
use crate::kill;
use a99_runtime_engine::{
    AgentStore, Fence, JournalRow, JournalStatus, StepClass, StoreError, Trigger, digest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A step: its name in the turn, of what kind it is, what it asks.
#[derive(Clone, Debug)]
pub struct Step {
    name: String,
    class: StepClass,
    body: u64,
}

impl Step {
    /// A step that may be made again as long as its answer was not kept.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Step {
        Step {
            name: name.into(),
            class: StepClass::Idempotent,
            body: 0,
        }
    }

    /// One that may not be made twice: cut off, it is answered with `step.unknown_outcome`.
    #[must_use]
    pub fn once(mut self) -> Step {
        self.class = StepClass::Unsafe;
        self
    }

    /// What it asks: another question under the same name is refused, so that no answer is
    /// taken for that of something else.
    ///
    /// # Errors
    /// `turn.bad_value` if it is not JSON.
    pub fn asking(mut self, question: &impl Serialize) -> Result<Step, AgentError> {
        let text = serde_json::to_string(question)?;
        self.body = digest(text.as_bytes());
        Ok(self)
    }
}

/// An answer as the journal keeps it, if it can be read from there again.
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

/// The steps of a turn, read when the first one is made.
pub(crate) struct Journal {
    store: Arc<dyn AgentStore>,
    fence: Fence,
    trigger: Trigger,
    /// What it waits for before it keeps anything.
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

    /// Whether a step was looked for or kept.
    pub(crate) fn is_used(&self) -> bool {
        self.rows.try_lock().map_or(true, |rows| rows.is_some())
    }

    /// What the turn answers to.
    pub(crate) fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// What is kept of a step.
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

    /// All that is kept of the turn's steps.
    #[cfg(unix)]
    pub(crate) async fn all(&self) -> Result<Vec<JournalRow>, StoreError> {
        self.find("").await?;
        let rows = self.rows.lock().await;
        Ok(rows.iter().flat_map(HashMap::values).cloned().collect())
    }

    /// Keeps how far a step is.
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

    /// Makes a step, unless its answer is there. Nothing is kept of one that ends when its
    /// turn is over.
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
        let answer = work.await;
        if is_over() {
            let message = format!("the step '{name}' ended after its turn");
            return Err(AgentError::new(codes::OVER, message));
        }
        let status = match &answer {
            Ok(value) => match kept(&name, value) {
                Ok(text) => JournalStatus::Done(text),
                Err(error) => {
                    // It was made all the same: it is not made again.
                    let (code, text) = (error.code().to_owned(), error.to_string());
                    self.keep(&name, class, body, JournalStatus::Failed(code, text))
                        .await?;
                    return Err(error);
                }
            },
            // Another attempt of the turn makes the step again.
            Err(error) if class != StepClass::Unsafe && !error.is_final() => return answer,
            Err(error) => JournalStatus::Failed(error.code().to_owned(), error.to_string()),
        };
        self.keep(&name, class, body, status).await?;
        answer
    }
}
