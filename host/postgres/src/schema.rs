//! Schema: tables of components, their versions, and their creation by concurrent processes.

use crate::error::{PostgresCode, PostgresError};
use crate::pool::{Call, Connection};
use tokio_postgres::GenericClient;

/// A named group of tables in a store's schema, and the migrations that create and change them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Unique name of the component.
    pub name: &'static str,
    /// SQL texts; each migrates from one version to the next, from 0 without tables. Once
    /// tables exist, migrations are only appended, never changed.
    pub migrations: &'static [&'static str],
}

/// Tables of keys and values.
pub(crate) static ENTRIES: Component = Component {
    name: "entries",
    migrations: &[include_str!("schema.sql")],
};

impl Component {
    fn known(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }
}

/// Advisory lock of migrations: `A99P`, and a number for its use.
const LOCK: i64 = 0x4139_3950_0000_0001;

/// Oldest supported server, in PostgreSQL's numbering: 13.0.
const MIN_SERVER: i32 = 130_000;

const SERVER: &str = "SELECT current_setting('server_version_num')::integer";

const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";

const HAS_TABLES: &str = "SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'a99_component')";

/// Creates the tables, or applies the missing migrations.
pub(crate) struct Migrate {
    pub(crate) component: Component,
    pub(crate) schema: String,
    pub(crate) quoted: String,
}

impl Call for Migrate {
    type Output = ();

    // The work is idempotent.
    const WRITES: bool = false;

    async fn run(&self, connection: &mut Connection) -> Result<(), PostgresError> {
        let server: i32 = connection.client.query_one(SERVER, &[]).await?.get(0);
        if server < MIN_SERVER {
            let message = format!(
                "the server is PostgreSQL {}; the store needs {} or later",
                server / 10_000,
                MIN_SERVER / 10_000
            );
            return Err(PostgresError::new(PostgresCode::OldServer, message));
        }
        let known = self.component.known();
        if self.version(&connection.client).await? == known {
            return Ok(());
        }
        let transaction = connection.client.transaction().await?;
        transaction
            .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
            .await?;
        let has_schema = transaction.query_one(HAS_SCHEMA, &[&self.schema]).await?;
        if !has_schema.get::<_, bool>(0) {
            let create = format!("CREATE SCHEMA {}", self.quoted);
            transaction.batch_execute(&create).await?;
        }
        // Another process may have been first.
        if !self.has_tables(&transaction).await? {
            let table = "CREATE TABLE a99_component (
                name text PRIMARY KEY, version bigint NOT NULL)";
            transaction.batch_execute(table).await?;
        }
        let from = self.version(&transaction).await?;
        let migrations = (0..).zip(self.component.migrations);
        for (_, migration) in migrations.filter(|(n, _)| *n >= from) {
            transaction.batch_execute(migration).await?;
        }
        let set = "INSERT INTO a99_component (name, version) VALUES ($1, $2)
            ON CONFLICT (name) DO UPDATE SET version = excluded.version";
        transaction
            .execute(set, &[&self.component.name, &known])
            .await?;
        Ok(transaction.commit().await?)
    }
}

impl Migrate {
    async fn has_tables(&self, client: &impl GenericClient) -> Result<bool, PostgresError> {
        Ok(client.query_one(HAS_TABLES, &[&self.schema]).await?.get(0))
    }

    /// Version of the tables, 0 if they are missing.
    async fn version(&self, client: &impl GenericClient) -> Result<i64, PostgresError> {
        if !self.has_tables(client).await? {
            return Ok(0);
        }
        // A qualified name: PostgreSQL's search path skips a schema without permissions.
        let find = format!(
            "SELECT version FROM {}.a99_component WHERE name = $1",
            self.quoted
        );
        let found = client.query_opt(&find, &[&self.component.name]).await?;
        let (found, known) = (found.map_or(0, |row| row.get(0)), self.component.known());
        if found > known {
            let name = self.component.name;
            let message = format!(
                "the tables of its {name} have version {found}; this version knows those up to \
                 {known}"
            );
            return Err(PostgresError::new(PostgresCode::Newer, message));
        }
        Ok(found)
    }
}
