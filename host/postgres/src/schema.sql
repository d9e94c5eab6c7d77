-- Version 1. Names of functions end with the version that made them, so that a process of
-- an earlier version is refused rather than misunderstood.

CREATE TABLE a99_namespace (
    digest bytea PRIMARY KEY GENERATED ALWAYS AS (coalesce(sha256(name), ''::bytea)) STORED,
    id bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY,
    name bytea, -- NULL is the store itself, which no name is
    keys bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- A key has two parts, because an index takes no more than some 2,700 bytes: the first
-- thousand, and the rest, of which the index has a digest. Heads, then tails, stand in the
-- order of the bytes of keys.
CREATE TABLE a99_entry (
    namespace bigint NOT NULL REFERENCES a99_namespace (id),
    kind smallint NOT NULL, -- undefined, null, boolean, number, 4: text, JSON of data
    head bytea NOT NULL,
    tail bytea NOT NULL,
    digest bytea NOT NULL GENERATED ALWAYS AS
        (CASE WHEN tail = ''::bytea THEN ''::bytea ELSE sha256(tail) END) STORED,
    expires double precision, -- milliseconds since 1970
    value bytea NOT NULL, -- JSON text, or a form that begins with a byte 1
    PRIMARY KEY (namespace, kind, head, digest)
);
CREATE INDEX a99_expires ON a99_entry (expires) WHERE expires IS NOT NULL;

-- Whatever changes entries holds the lock of their namespace's row, and has it from the
-- beginning: nothing waits for a second one.
CREATE FUNCTION a99_lock_1(p_name bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
    v_digest bytea := coalesce(sha256(p_name), ''::bytea);
BEGIN
    LOOP
        SELECT id INTO v_id FROM a99_namespace WHERE digest = v_digest FOR NO KEY UPDATE;
        IF FOUND THEN
            RETURN v_id;
        END IF;
        INSERT INTO a99_namespace (name) VALUES (p_name) ON CONFLICT DO NOTHING;
    END LOOP;
END
$$;

-- Removes some of what has expired, of one namespace or of any; those that others write to
-- are left out rather than waited for. Gives how many it removed.
CREATE FUNCTION a99_sweep_1(p_only bigint, p_now double precision, p_most integer)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
    v_first double precision;
BEGIN
    SELECT expires INTO v_first FROM a99_entry
    WHERE expires IS NOT NULL ORDER BY expires LIMIT 1;
    IF NOT FOUND OR v_first > p_now THEN
        RETURN 0;
    END IF;
    WITH late AS MATERIALIZED (
        SELECT namespace, kind, head, digest FROM a99_entry
        WHERE expires <= p_now AND (p_only IS NULL OR namespace = p_only)
        ORDER BY expires LIMIT p_most
    ), held AS MATERIALIZED (
        SELECT id FROM a99_namespace WHERE id IN (SELECT namespace FROM late)
        FOR NO KEY UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM a99_entry e USING late l
        WHERE l.namespace IN (SELECT id FROM held)
            AND e.namespace = l.namespace AND e.kind = l.kind
            AND e.head = l.head AND e.digest = l.digest AND e.expires <= p_now
        RETURNING e.namespace, octet_length(e.head)::bigint + octet_length(e.tail)
            + octet_length(e.value) + 64 AS size
    ), sums AS (
        SELECT namespace, count(*) AS keys, sum(size)::bigint AS bytes FROM gone GROUP BY 1
    ), counted AS (
        UPDATE a99_namespace n SET keys = n.keys - s.keys, bytes = n.bytes - s.bytes
        FROM sums s WHERE n.id = s.namespace
        RETURNING s.keys
    )
    SELECT coalesce(sum(counted.keys), 0) INTO v_count FROM counted;
    RETURN v_count;
END
$$;

-- Sets a key, where it is asked for only if the value is still the expected one, of which
-- NULL stands for none. The outcome is 0 if it did, 1 with the value that was there, or 2
-- or 3 if the bytes or keys would be too many.
CREATE FUNCTION a99_put_1(
    p_name bytea, p_kind smallint, p_head bytea, p_tail bytea,
    p_value bytea, p_expires double precision, p_now double precision,
    p_max_keys bigint, p_max_bytes bigint, p_compare boolean, p_expected bytea,
    OUT outcome smallint, OUT present bytea
) LANGUAGE plpgsql AS $$
DECLARE
    v_digest bytea := CASE WHEN p_tail = ''::bytea THEN ''::bytea ELSE sha256(p_tail) END;
    v_key bigint := octet_length(p_head)::bigint + octet_length(p_tail) + 64;
    v_new bigint := v_key + octet_length(p_value);
    v_old bigint;
    v_there boolean;
    v_id bigint;
    v_held record;
    v_keys bigint;
    v_bytes bigint;
    v_full boolean;
BEGIN
    IF p_compare THEN
        -- Without the lock first: most of those who come too late need none.
        SELECT value INTO present FROM a99_entry
        WHERE namespace = (
                SELECT id FROM a99_namespace WHERE digest = coalesce(sha256(p_name), ''::bytea)
            )
            AND kind = p_kind AND head = p_head AND digest = v_digest AND tail = p_tail
            AND (expires IS NULL OR expires > p_now);
        IF present IS DISTINCT FROM p_expected THEN
            outcome := 1;
            RETURN;
        END IF;
    END IF;
    v_id := a99_lock_1(p_name);
    PERFORM a99_sweep_1(NULL, p_now, 32);
    IF p_compare THEN
        SELECT value INTO present FROM a99_entry
        WHERE namespace = v_id AND kind = p_kind AND head = p_head AND digest = v_digest
            AND tail = p_tail AND (expires IS NULL OR expires > p_now);
        IF present IS DISTINCT FROM p_expected THEN
            outcome := 1;
            RETURN;
        END IF;
        present := NULL;
    END IF;
    LOOP
        SELECT keys, bytes INTO v_held FROM a99_namespace WHERE id = v_id;
        SELECT v_key + octet_length(value) INTO v_old FROM a99_entry
        WHERE namespace = v_id AND kind = p_kind AND head = p_head AND digest = v_digest;
        v_there := FOUND;
        v_keys := v_held.keys + CASE WHEN v_there THEN 0 ELSE 1 END;
        v_bytes := v_held.bytes - coalesce(v_old, 0) + v_new;
        -- Limits may be lower than when it was filled: who takes less may go on.
        v_full := v_bytes > p_max_bytes AND v_bytes > v_held.bytes;
        EXIT WHEN NOT v_full AND NOT (v_keys > p_max_keys AND v_keys > v_held.keys);
        IF a99_sweep_1(v_id, p_now, 1000) = 0 THEN
            outcome := CASE WHEN v_full THEN 2 ELSE 3 END;
            RETURN;
        END IF;
    END LOOP;
    IF v_there THEN
        UPDATE a99_entry SET value = p_value, expires = p_expires
        WHERE namespace = v_id AND kind = p_kind AND head = p_head AND digest = v_digest;
    ELSE
        INSERT INTO a99_entry (namespace, kind, head, tail, expires, value)
        VALUES (v_id, p_kind, p_head, p_tail, p_expires, p_value);
    END IF;
    IF (v_keys, v_bytes) <> (v_held.keys, v_held.bytes) THEN
        UPDATE a99_namespace SET keys = v_keys, bytes = v_bytes WHERE id = v_id;
    END IF;
    outcome := 0;
END
$$;

-- Deletes a key; gives whether it was there and had not expired.
CREATE FUNCTION a99_delete_1(
    p_name bytea, p_kind smallint, p_head bytea, p_tail bytea, p_now double precision
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_digest bytea := CASE WHEN p_tail = ''::bytea THEN ''::bytea ELSE sha256(p_tail) END;
    v_id bigint;
    v_size bigint;
    v_live boolean;
BEGIN
    SELECT namespace INTO v_id FROM a99_entry
    WHERE namespace = (
            SELECT id FROM a99_namespace WHERE digest = coalesce(sha256(p_name), ''::bytea)
        )
        AND kind = p_kind AND head = p_head AND digest = v_digest;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    v_id := a99_lock_1(p_name);
    PERFORM a99_sweep_1(NULL, p_now, 32);
    DELETE FROM a99_entry
    WHERE namespace = v_id AND kind = p_kind AND head = p_head AND digest = v_digest
    RETURNING octet_length(head)::bigint + octet_length(tail) + octet_length(value) + 64,
        expires IS NULL OR expires > p_now
    INTO v_size, v_live;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE a99_namespace SET keys = keys - 1, bytes = bytes - v_size WHERE id = v_id;
    RETURN v_live;
END
$$;

-- Deletes all that a namespace holds.
CREATE FUNCTION a99_clear_1(p_name bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint := a99_lock_1(p_name);
BEGIN
    DELETE FROM a99_entry WHERE namespace = v_id;
    UPDATE a99_namespace SET keys = 0, bytes = 0 WHERE id = v_id;
END
$$;

-- Bytes for people: halves of surrogate pairs and zeros are in no text of PostgreSQL.
CREATE FUNCTION a99_shown(p_bytes bytea) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN convert_from(p_bytes, 'UTF8');
EXCEPTION WHEN OTHERS THEN
    RETURN encode(p_bytes, 'escape');
END
$$;

CREATE VIEW entries AS SELECT
    a99_shown(n.name) AS namespace,
    CASE WHEN e.kind IN (4, 5) THEN a99_shown(e.head || e.tail)
        ELSE encode(e.head, 'hex') END AS key,
    CASE WHEN get_byte(e.value, 0) = 1 THEN encode(e.value, 'hex')
        ELSE a99_shown(e.value) END AS value,
    e.expires
FROM a99_entry e JOIN a99_namespace n ON n.id = e.namespace;
