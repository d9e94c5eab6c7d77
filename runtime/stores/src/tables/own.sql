-- What the runtime keeps in the file of an agent's tables: how many turns were committed in it,
-- and the last one's commit as JSON, so that it can be done in the shared file again.
CREATE TABLE a99_turn (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    key TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    n INTEGER NOT NULL,
    version INTEGER NOT NULL,
    record TEXT
) STRICT;
