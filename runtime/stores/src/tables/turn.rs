//! Turn of an agent's tables, as its handler uses it.

use super::file::{TableFile, TurnState};
use crate::fault::of_file;
use crate::runtime::Reply;
use a99_runtime_engine::{Row, RunResult, Statement, StoreError, TableTurn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The tables of an agent in one turn. Dropping it rolls back changes that were not committed.
pub(super) struct FileTurn {
    pub(super) file: Arc<TableFile>,
    pub(super) turn: Arc<TurnState>,
}

/// Signals that the caller is gone.
struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for FileTurn {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl FileTurn {
    fn work<'a, T: Send + 'static>(
        &'a self,
        statement: Statement,
        f: impl FnOnce(&super::statements::Sql<'_>, Statement) -> Result<T, StoreError> + Send + 'static,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            let left = Left(Arc::default());
            let turn = Arc::clone(&self.turn);
            let work = self.file.work(turn, statement, Arc::clone(&left.0), f);
            work.await.map_err(|error| of_file(&error))?
        })
    }
}

impl TableTurn for FileTurn {
    fn id(&self) -> u64 {
        self.turn.id
    }

    fn exec(&self, statements: Statement) -> Reply<'_, ()> {
        self.work(statements, |sql, statements| sql.exec(&statements))
    }

    fn run(&self, statement: Statement) -> Reply<'_, RunResult> {
        self.work(statement, |sql, statement| sql.run(statement))
    }

    fn query(&self, statement: Statement, first: bool) -> Reply<'_, Vec<Row>> {
        self.work(statement, move |sql, statement| sql.query(statement, first))
    }

    fn end(&self) {
        self.turn.over.store(true, Ordering::Release);
    }

    fn abandon(&self) {
        self.end();
        self.file.abandon(self.turn.id);
    }

    fn check(&self) -> Result<(), StoreError> {
        self.turn.broken().map_or(Ok(()), Err)
    }
}
