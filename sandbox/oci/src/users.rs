//! User of an image: `NAME`, `UID`, and either with `:GROUP`, looked up in the image's own
//! `/etc/passwd` and `/etc/group`.

use crate::error::{OciCode, OciError, quoted};
use crate::read::RunAs;

/// Most supplementary groups of a user.
const MAX_GROUPS: usize = 32;

/// Home of a user that `/etc/passwd` does not have.
const NO_HOME: &str = "/";

/// Looks a user up.
pub(crate) fn run_as(user: &str, passwd: &[u8], group: &[u8]) -> Result<RunAs, OciError> {
    let (user, of_group) = match user.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (user, None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let id = number(user.as_bytes());
    let found = lines::<7>(passwd)
        .find(|line| line[0] == user.as_bytes() || id.is_some() && number(line[2]) == id);
    let name = found.map(|line| line[0]);
    let uid = id.or_else(|| found.and_then(|line| number(line[2])));
    let uid = uid.ok_or_else(|| unknown("user", user))?;
    let gid = match of_group.filter(|name| !name.is_empty()) {
        None => found.and_then(|line| number(line[3])).unwrap_or(0),
        Some(name) => group_id(name, group)?,
    };
    let home = found.map(|line| String::from_utf8_lossy(line[5]).into_owned());
    let home = home.filter(|home| home.starts_with('/'));
    let is_member = |line: &[&[u8]; 4]| {
        name.is_some_and(|name| {
            line[3]
                .split(|byte| *byte == b',')
                .any(|member| member == name)
        })
    };
    let groups = lines::<4>(group).filter(is_member);
    let groups = groups.filter_map(|line| number(line[2])).take(MAX_GROUPS);
    Ok(RunAs {
        uid,
        gid,
        groups: if of_group.is_none() {
            groups.collect()
        } else {
            Vec::new()
        },
        name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
        home: home.unwrap_or_else(|| NO_HOME.to_owned()),
    })
}

fn group_id(name: &str, group: &[u8]) -> Result<u32, OciError> {
    if let Some(id) = number(name.as_bytes()) {
        return Ok(id);
    }
    let found = lines::<4>(group).find(|line| line[0] == name.as_bytes());
    let id = found.and_then(|line| number(line[2]));
    id.ok_or_else(|| unknown("group", name))
}

fn unknown(what: &str, name: &str) -> OciError {
    let text = format!(
        "the image's {what} {} is not in it",
        quoted(name.as_bytes())
    );
    OciError::new(OciCode::NotFound, "configuration", text)
        .help("build the image with a user that its /etc/passwd has, or with a number")
}

/// Parses the number of a user or group. The last one means "unchanged" to the kernel, so
/// a command with it would stay root.
fn number(field: &[u8]) -> Option<u32> {
    let number = std::str::from_utf8(field).ok()?.parse().ok();
    number.filter(|number| *number != u32::MAX)
}

/// Lines with that many fields.
fn lines<const N: usize>(text: &[u8]) -> impl Iterator<Item = [&[u8]; N]> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let mut found = [&b""[..]; N];
        for field in &mut found {
            *field = fields.next()?;
        }
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] =
        b"root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:101:102::/srv:/bin/false\n";
    const GROUP: &[u8] = b"root:x:0:\nweb:x:102:\ndata:x:200:web,other\n";

    #[test]
    fn users_are_names_or_numbers() {
        let of = |user: &str| {
            let found = run_as(user, PASSWD, GROUP).unwrap();
            (found.uid, found.gid, found.groups, found.home)
        };
        assert_eq!(of(""), (0, 0, vec![], "/root".into()));
        assert_eq!(of("web"), (101, 102, vec![200], "/srv".into()));
        assert_eq!(of("101"), (101, 102, vec![200], "/srv".into()));
        assert_eq!(of("web:data"), (101, 200, vec![], "/srv".into()));
        assert_eq!(of("7:9"), (7, 9, vec![], "/".into()));
        assert_eq!(of("65532"), (65532, 0, vec![], "/".into()));
        // The last number is that of no user, here and in the tables.
        let passwd = b"bad:x:4294967295:0::/:\nalso:x:7:4294967295::/:\n";
        let passwd = &[PASSWD, passwd].concat();
        assert_eq!(run_as("also", passwd, GROUP).unwrap().gid, 0);
        for user in [
            "nobody",
            "web:nobody",
            "-1",
            "4294967296",
            "4294967295",
            "0:4294967295",
            "bad",
        ] {
            assert_eq!(
                run_as(user, passwd, GROUP).unwrap_err().code,
                OciCode::NotFound
            );
        }
        assert_eq!(run_as("0", b"", b"").unwrap().home, "/");
    }
}
