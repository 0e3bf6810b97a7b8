"""The tables of the history, version by version; a file of a later version is refused, never guessed at."""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x62706C6E
"""Says in the file's head that it is a history of this program: "bpln"."""

_VERSION_1 = (
    """
    CREATE TABLE runs (
        number        INTEGER PRIMARY KEY AUTOINCREMENT,
        key           TEXT NOT NULL UNIQUE,
        started       TEXT NOT NULL,
        ended         TEXT,
        status        TEXT NOT NULL,
        reason        TEXT,
        pid           INTEGER,
        instance      TEXT,
        instance_hash TEXT,
        plan_start    TEXT,
        currency      TEXT,
        plan_status   TEXT,
        engine        TEXT,
        seed          INTEGER,
        cost          REAL,
        dual_bound    REAL,
        gap           REAL,
        jobs          INTEGER,
        late          INTEGER,
        rejected      INTEGER,
        burst         INTEGER,
        last          TEXT,
        changed       INTEGER,
        added         INTEGER,
        removed       INTEGER,
        wall_s        REAL,
        folder        TEXT,
        is_gone       INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE TABLE jobs (
        run           INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
        job           TEXT NOT NULL,
        state         TEXT NOT NULL,
        mode          TEXT,
        pool          TEXT,
        nodes         TEXT,
        start         TEXT,
        completion    TEXT,
        tardiness_h   REAL,
        changes       TEXT NOT NULL,  -- JSON: list of text
        reasons       TEXT NOT NULL,  -- JSON: list of text
        PRIMARY KEY (run, job)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX jobs_by_name ON jobs (job, run)",
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1,)
"""The statements that lead from each version to the next; those of a released version never change."""
VERSION = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of an open file; 0 where it has no tables yet."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether an open file is a history, or empty, so that it can become one."""
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return found == APPLICATION_ID or (found == 0 and tables == 0)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to the present version, in one transaction: after a crash it has the old one or the new one."""
    connection.execute("BEGIN IMMEDIATE")
    for statements in MIGRATIONS[version_of(connection) :]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
