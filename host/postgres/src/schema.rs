//! Schema: the tables, their version, and who makes them when many processes start.

use crate::error::{PostgresCode, PostgresError};
use crate::pool::{Call, Connection};
use tokio_postgres::GenericClient;

/// SQL texts, each of which leads from a version to the next. They are never changed once
/// tables exist, only added to.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

/// The version that this one knows.
const VERSION: i64 = MIGRATIONS.len() as i64;

/// The lock of those who make tables: `A99P`, and a number for the use.
const LOCK: i64 = 0x4139_3950_0000_0001;

/// The least version of the server: as PostgreSQL counts, 13.0.
const MIN_SERVER: i32 = 130_000;

const SERVER: &str = "SELECT current_setting('server_version_num')::integer";

const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";

const HAS_TABLES: &str = "SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'a99_component')";

/// Makes the tables, or those of later versions that are missing.
pub(crate) struct Migrate {
    pub(crate) schema: String,
    pub(crate) quoted: String,
}

impl Call for Migrate {
    type Output = ();

    // Done twice, it does nothing.
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
        if self.version(&connection.client).await? == VERSION {
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
        let from = self.version(&transaction).await?;
        if from == 0 {
            let table = "CREATE TABLE a99_component (
                name text PRIMARY KEY, version bigint NOT NULL)";
            transaction.batch_execute(table).await?;
        }
        for (_, migration) in (0..).zip(MIGRATIONS).filter(|(n, _)| *n >= from) {
            transaction.batch_execute(migration).await?;
        }
        let set = "INSERT INTO a99_component (name, version) VALUES ('entries', $1)
            ON CONFLICT (name) DO UPDATE SET version = excluded.version";
        transaction.execute(set, &[&VERSION]).await?;
        Ok(transaction.commit().await?)
    }
}

impl Migrate {
    /// The version of the tables, 0 if there are none.
    async fn version(&self, client: &impl GenericClient) -> Result<i64, PostgresError> {
        let has_tables = client.query_one(HAS_TABLES, &[&self.schema]).await?;
        if !has_tables.get::<_, bool>(0) {
            return Ok(0);
        }
        // By its whole name: a schema without rights is passed over otherwise.
        let find = format!(
            "SELECT version FROM {}.a99_component WHERE name = 'entries'",
            self.quoted
        );
        let found = client.query_opt(&find, &[]).await?;
        let found = found.map_or(0, |row| row.get(0));
        if found > VERSION {
            let message = format!(
                "the tables have version {found}; this version knows those up to {VERSION}"
            );
            return Err(PostgresError::new(PostgresCode::Newer, message));
        }
        Ok(found)
    }
}
