//! Home of a store: path, device and inode of the file that an owner opened last. A store in a
//! different file was copied, moved or restored, and the original may be in use.

use a99_sqlite::rusqlite::{OptionalExtension as _, params};
use a99_sqlite::{SqliteError, Tx};
use std::path::Path;

pub(crate) const HOME: &str = "CREATE TABLE store_home (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    path BLOB NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL
) STRICT";

/// The identity of a store's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    path: Vec<u8>,
    device: i64,
    inode: i64,
}

impl Home {
    /// The identity of the file at a path, on systems where files have one.
    pub(crate) fn of(store: &Path) -> Option<Home> {
        let (device, inode) = crate::place::inode(store)?;
        Some(Home {
            path: store.as_os_str().as_encoded_bytes().to_vec(),
            device: device.cast_signed(),
            inode: inode.cast_signed(),
        })
    }

    /// Why this is not the file that an owner opened last. Renaming a file on its disk is
    /// allowed, and so is a disk with a new device number after a reboot.
    pub(crate) fn moved(&self, tx: &Tx<'_>) -> Result<Option<String>, SqliteError> {
        let sql = "SELECT path, device, inode FROM store_home";
        let last = tx.query_row(sql, [], |row| {
            Ok(Home {
                path: row.get(0)?,
                device: row.get(1)?,
                inode: row.get(2)?,
            })
        });
        let last = last.optional()?;
        Ok(last.and_then(|last| self.differs(&last)))
    }

    pub(crate) fn inode(&self) -> u64 {
        self.inode.cast_unsigned()
    }

    /// The path for messages.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    fn differs(&self, last: &Home) -> Option<String> {
        let here = self.shown();
        let is_here = self.path == last.path;
        if self.inode == last.inode && (is_here || self.device == last.device) {
            return None;
        }
        Some(match is_here {
            true => format!(
                "{here}: another file was opened here last: this one was restored, or copied"
            ),
            false => format!(
                "{here}: it is a copy of {}, or was moved from there; where both are at work, \
                 agents do everything twice",
                last.shown()
            ),
        })
    }

    /// Stores the identity at an opening.
    pub(crate) fn keep(&self, tx: &Tx<'_>) -> Result<(), SqliteError> {
        let sql = "INSERT INTO store_home (id, path, device, inode) VALUES (1, ?1, ?2, ?3)
                   ON CONFLICT DO UPDATE SET path = excluded.path, device = excluded.device,
                       inode = excluded.inode";
        tx.execute(sql, params![self.path, self.device, self.inode])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Home;

    #[test]
    fn a_renamed_file_is_the_same_and_a_copy_is_not() {
        let home = |path: &str, device, inode| Home {
            path: path.into(),
            device,
            inode,
        };
        let last = home("/a", 1, 7);
        for same in [home("/a", 1, 7), home("/b", 1, 7), home("/a", 2, 7)] {
            assert_eq!(same.differs(&last), None, "{same:?}");
        }
        for (other, told) in [
            (home("/a", 1, 8), "restored"),
            (home("/b", 1, 8), "a copy of /a"),
            (home("/b", 2, 7), "a copy of /a"),
        ] {
            let why = other.differs(&last).expect("another");
            assert!(why.contains(told), "{why}");
        }
    }
}
