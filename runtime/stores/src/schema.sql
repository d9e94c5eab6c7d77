-- What is kept of agents and channels. Whole numbers that Rust has without a sign are kept
-- as SQLite's with one; times are milliseconds since the Unix epoch.

CREATE TABLE agent_meta (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whether the last owner closed the store: 1 for a new file, which nobody left open.
INSERT INTO agent_meta VALUES ('is_closed', 1);

CREATE TABLE shard (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    expires INTEGER
) STRICT;

INSERT INTO shard (id, owner, epoch)
WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < 1023)
SELECT id, '', 0 FROM n;

-- What is read with every commit stands before what may be long.
CREATE TABLE agent_state (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    shard INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL,
    done TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    settings TEXT,
    state TEXT NOT NULL
) STRICT;

CREATE TABLE agent_state_backup (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE INDEX agent_state_backup_key ON agent_state_backup (key, version);

CREATE TABLE agent_inflight (
    key TEXT NOT NULL,
    trigger TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    PRIMARY KEY (key, trigger)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_journal (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    trigger TEXT NOT NULL,
    name TEXT NOT NULL,
    class TEXT NOT NULL,
    body INTEGER NOT NULL,
    status TEXT NOT NULL,
    result TEXT,
    error TEXT,
    UNIQUE (key, trigger, name)
) STRICT;

CREATE TABLE agent_timers (
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    due INTEGER NOT NULL,
    cron TEXT,
    zone TEXT,
    payload TEXT NOT NULL,
    PRIMARY KEY (key, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_timers_due ON agent_timers (due);

CREATE TABLE agent_dead (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    trigger TEXT NOT NULL,
    code TEXT NOT NULL,
    error TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX agent_dead_key ON agent_dead (key);

-- Events whose channels lie in another file.
CREATE TABLE agent_outbox (
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    key TEXT NOT NULL,
    channel TEXT NOT NULL,
    event TEXT NOT NULL
) STRICT;

CREATE TABLE program (
    hash BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

-- The hash of a channel is that of its last event; each event's is of the one before it and
-- of all that is kept of it.
CREATE TABLE channel (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    hash BLOB NOT NULL,
    config TEXT NOT NULL
) STRICT;

-- A body is in the row, or a blob.
CREATE TABLE channel_log (
    channel INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    ts INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    type TEXT NOT NULL,
    attachments INTEGER NOT NULL,
    hash BLOB NOT NULL,
    sender TEXT NOT NULL,
    body TEXT,
    blob BLOB,
    PRIMARY KEY (channel, seq),
    UNIQUE (channel, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE channel_attachment (
    channel INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    name TEXT,
    blob BLOB NOT NULL,
    PRIMARY KEY (channel, seq, n)
) STRICT, WITHOUT ROWID;

-- By SHA-256 of the data.
CREATE TABLE blob (
    digest BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

-- The highest epoch that an agent sent under.
CREATE TABLE channel_epoch (
    channel INTEGER NOT NULL,
    key TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (channel, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE channel_agent (
    key TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    config TEXT NOT NULL,
    registered_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
