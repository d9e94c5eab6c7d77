-- The tables of schema.sql and its migrations, on a server. Texts are compared by bytes.

-- Writers of the owner. A write transaction locks one, which has the owner's epoch, and leaves
-- its number there: a later owner waits for it, and a lost connection leaves no doubt. Each owner
-- that shares the store adds rows of its own, from 64 on.
CREATE TABLE agent_writer (
    id bigint PRIMARY KEY,
    epoch bigint NOT NULL,
    last bigint NOT NULL
);
INSERT INTO agent_writer SELECT id, 0, 0 FROM generate_series(0, 63) AS id;

CREATE TABLE shard (
    id bigint PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    expires bigint
);
INSERT INTO shard (id, owner, epoch) SELECT id, '', 0 FROM generate_series(0, 1023) AS id;

CREATE TABLE agent_state (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL UNIQUE,
    shard bigint NOT NULL,
    epoch bigint NOT NULL,
    revision bigint NOT NULL,
    version bigint NOT NULL,
    checkpoint bigint NOT NULL,
    replays bigint NOT NULL DEFAULT 0,
    done text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    settings text,
    state text NOT NULL
);

CREATE TABLE agent_state_backup (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    at bigint NOT NULL,
    state text NOT NULL
);
CREATE INDEX agent_state_backup_key ON agent_state_backup (key, id);

CREATE TABLE agent_inflight (
    key text COLLATE "C" NOT NULL,
    trigger text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    started_at bigint NOT NULL,
    PRIMARY KEY (key, trigger)
);

CREATE TABLE agent_journal (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL,
    trigger text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    class text NOT NULL,
    body bigint NOT NULL,
    status text NOT NULL,
    result text,
    error text,
    UNIQUE (key, trigger, name)
);

CREATE TABLE agent_timers (
    key text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    due bigint NOT NULL,
    cron text,
    zone text,
    payload text NOT NULL,
    hops bigint NOT NULL,
    set_at bigint,
    PRIMARY KEY (key, name)
);
CREATE INDEX agent_timers_due ON agent_timers (due, key, name);

CREATE TABLE agent_dead (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL,
    trigger text COLLATE "C" NOT NULL,
    code text NOT NULL,
    error text NOT NULL,
    attempts bigint NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX agent_dead_key ON agent_dead (key, id);

CREATE TABLE agent_outbox (
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    key text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    event text NOT NULL
);

CREATE TABLE agent_turn (
    id bigint PRIMARY KEY,
    until bigint NOT NULL,
    size bigint NOT NULL,
    base bigint NOT NULL,
    revision bigint NOT NULL,
    trigger text COLLATE "C" NOT NULL,
    state text NOT NULL,
    record text NOT NULL
);

CREATE TABLE program (
    hash bytea PRIMARY KEY,
    bytes bytea NOT NULL
);

CREATE TABLE channel (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    head bigint NOT NULL,
    hash bytea NOT NULL,
    config text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE channel_log (
    channel bigint NOT NULL,
    seq bigint NOT NULL,
    id bytea NOT NULL,
    ts bigint NOT NULL,
    hops bigint NOT NULL,
    type text NOT NULL,
    attachments bigint NOT NULL,
    hash bytea NOT NULL,
    sender text NOT NULL,
    body text,
    blob bytea,
    PRIMARY KEY (channel, seq),
    UNIQUE (channel, id)
);

CREATE TABLE channel_attachment (
    channel bigint NOT NULL,
    seq bigint NOT NULL,
    n bigint NOT NULL,
    id text NOT NULL,
    mime_type text NOT NULL,
    name text,
    blob bytea NOT NULL,
    PRIMARY KEY (channel, seq, n)
);

CREATE TABLE blob (
    digest bytea PRIMARY KEY,
    size bigint NOT NULL,
    data bytea NOT NULL
);

CREATE TABLE channel_epoch (
    channel bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    PRIMARY KEY (channel, key)
);

CREATE TABLE channel_agent (
    key text COLLATE "C" PRIMARY KEY,
    channel text COLLATE "C" NOT NULL,
    config text NOT NULL,
    registered_at bigint NOT NULL,
    metadata text
);
