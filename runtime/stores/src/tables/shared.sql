-- Agents that have tables in a file of their own, and how many turns of that file are done here.
CREATE TABLE agent_tables (
    key TEXT PRIMARY KEY,
    applied INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
