-- Version 1.

CREATE TABLE vector_namespace (
    id INTEGER PRIMARY KEY,
    name BLOB UNIQUE, -- NULL is the store itself, which no name is
    documents INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO vector_namespace (id, name) VALUES (0, NULL);

CREATE TABLE vector_collection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace INTEGER NOT NULL,
    name BLOB NOT NULL,
    dimension INTEGER, -- NULL until there was a document
    documents INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0, -- documents that ever were
    version INTEGER NOT NULL DEFAULT 0,
    floor INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
) STRICT;

CREATE TABLE vector_document (
    row INTEGER PRIMARY KEY, -- collection << 36 | number
    collection INTEGER NOT NULL,
    id BLOB, -- NULL if it is no text
    embedding BLOB NOT NULL, -- doubles or floats, little-endian
    value ANY NOT NULL -- JSON text, or a blob where JSON would lose something
) STRICT;
CREATE INDEX vector_document_id ON vector_document (collection, id) WHERE id IS NOT NULL;

CREATE TABLE vector_change (
    collection INTEGER NOT NULL,
    version INTEGER NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (collection, version, row)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER vector_collection_added AFTER INSERT ON vector_collection BEGIN
    UPDATE vector_namespace SET bytes = bytes + length(NEW.name) + 1024
    WHERE id = NEW.namespace;
END;
CREATE TRIGGER vector_collection_removed AFTER DELETE ON vector_collection BEGIN
    UPDATE vector_namespace SET bytes = bytes - length(OLD.name) - 1024
    WHERE id = OLD.namespace;
END;
CREATE TRIGGER vector_document_added AFTER INSERT ON vector_document BEGIN
    UPDATE vector_collection SET documents = documents + 1 WHERE id = NEW.collection;
    UPDATE vector_namespace SET documents = documents + 1,
        bytes = bytes + length(NEW.embedding) + octet_length(NEW.value)
            + ifnull(length(NEW.id), 0) + 128
    WHERE id = (SELECT namespace FROM vector_collection WHERE id = NEW.collection);
END;
CREATE TRIGGER vector_document_changed AFTER UPDATE OF embedding, value ON vector_document
BEGIN
    UPDATE vector_namespace SET bytes = bytes
        + length(NEW.embedding) + octet_length(NEW.value)
        - length(OLD.embedding) - octet_length(OLD.value)
    WHERE id = (SELECT namespace FROM vector_collection WHERE id = NEW.collection);
END;
CREATE TRIGGER vector_document_removed AFTER DELETE ON vector_document BEGIN
    UPDATE vector_collection SET documents = documents - 1 WHERE id = OLD.collection;
    UPDATE vector_namespace SET documents = documents - 1,
        bytes = bytes - length(OLD.embedding) - octet_length(OLD.value)
            - ifnull(length(OLD.id), 0) - 128
    WHERE id = (SELECT namespace FROM vector_collection WHERE id = OLD.collection);
END;
