//! Guests that start from one snapshot share no random values.

use super::support::in_guest;
use crate::common::start;
use std::collections::HashSet;

/// Number of guests to compare.
const INSTANCES: usize = 100;

/// All values that must be unique to a guest: the kernel's generator by its file and by
/// name, and both of Python's.
const SCRIPT: &str = "
cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid
head -c 16 /dev/urandom | xxd -p
head -c 16 /dev/random | xxd -p
python3 -c '
import os, random, secrets, ssl, uuid
print(secrets.token_hex(16))
print(ssl.RAND_bytes(16).hex())
print(os.urandom(16).hex())
print(os.getrandom(16).hex())
print(uuid.uuid4().hex)
print(random.getrandbits(128))
'
";

/// Lines of the script that must be unique. All guests begin with the snapshot's state of
/// the kernel's generator, so they differ only if each kernel was notified that it is a
/// copy and took fresh entropy. Commands do not see its message about that.
const UNIQUE: usize = 10;

#[test]
#[ignore = "needs the image"]
fn nothing_random_is_the_same_in_two_of_a_hundred_guests() {
    let mut seen = HashSet::new();
    for instance in 0..INSTANCES {
        let output = in_guest(&start(), &["sh", "-c", SCRIPT], b"");
        let text = String::from_utf8(output).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), UNIQUE, "{text}");
        for line in &lines {
            assert!(line.len() >= 32, "{line} is too short to be random");
            assert!(
                seen.insert((*line).to_owned()),
                "instance {instance}: {line} again"
            );
        }
    }
    assert_eq!(seen.len(), INSTANCES * UNIQUE);
}
