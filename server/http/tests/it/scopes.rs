//! Scopes: what they allow, and that they allow nothing of another tenant.

use a99_server::{Action, Scopes, ServerCode};
use proptest::prelude::*;

const ACTIONS: [Action; 7] = [
    Action::Read,
    Action::Write,
    Action::Call,
    Action::Invite,
    Action::Inspect,
    Action::Host,
    Action::Admin,
];

fn scopes(texts: &[&str]) -> Scopes {
    Scopes::parse(texts).unwrap()
}

#[test]
fn scopes_allow_what_they_name() {
    let some = scopes(&["read:general", "write:team-*", "call:*"]);
    for (action, channel, expected) in [
        (Action::Read, "general", true),
        (Action::Read, "General", false),
        (Action::Read, "general2", false),
        (Action::Read, "genera", false),
        (Action::Write, "general", false),
        (Action::Write, "team-", true),
        (Action::Write, "team-a", true),
        (Action::Write, "team", false),
        (Action::Write, "TEAM-a", false),
        (Action::Call, "any:one *", true),
        // No channel has these names.
        (Action::Call, "", false),
        (Action::Call, "a/b", false),
        (Action::Call, "a\nb", false),
        (Action::Admin, "general", false),
    ] {
        assert_eq!(some.allows(action, channel), expected, "{action}:{channel}");
    }
    assert!(!some.allows(Action::Call, &"x".repeat(129)));
    assert!(some.allows(Action::Call, &"x".repeat(128)));
    let channels = scopes(&["admin:team-*"]);
    let all = scopes(&["admin"]);
    for action in ACTIONS {
        assert!(channels.allows(action, "team-a") && !channels.allows(action, "other"));
        assert!(all.allows(action, "other") && !all.allows(action, ""));
    }
    assert!(all.allow_everything() && !channels.allow_everything());
    assert!(!scopes(&["admin:*"]).allow_everything());
}

#[test]
fn bad_scopes_are_refused() {
    for text in [
        "",
        "read",
        "read:",
        ":general",
        "reads:general",
        "READ:general",
        " read:general",
        "admin:",
        "read:a*b",
        "read:**",
        "read:*a",
        "read:a/b",
        "read:a\n",
        "*",
        "*:*",
        "write",
    ] {
        let error = Scopes::parse(&[text]).unwrap_err();
        assert_eq!(error.code(), ServerCode::BadScope, "{text}");
    }
    assert!(Scopes::parse::<&str>(&[]).is_err());
    assert!(Scopes::parse(&["read:a"; 65]).is_err());
    assert!(Scopes::parse(&[format!("read:{}", "x".repeat(129))]).is_err());
}

/// Names that are alike: prefixes of each other, in both cases, with characters that look alike
/// or are written in two ways.
fn tenant() -> impl Strategy<Value = String> {
    prop_oneof![
        "[aAbB]{1,3}",
        "(team|Team|TEAM|tea|team-|team:|team\\*)[a0]{0,2}",
        "(é|e\u{301}|ﬁ|fi|ß|ss|ａ|a|\u{430}|ı|i|İ){1,3}",
        "[^./*\\p{Cc}]{1,8}",
    ]
}

proptest! {
    #[test]
    fn no_scope_allows_channels_of_another_tenant(
        a in tenant(),
        b in tenant(),
        rest in "[a.*:-]{0,6}",
        which in 0..6_usize,
        by_prefix: bool,
    ) {
        prop_assume!(a != b);
        let action = ACTIONS[which];
        // A tenant's channels are its name, and those below it after a dot.
        let text = match by_prefix {
            true => format!("{action}:{a}.*"),
            false => format!("{action}:{a}"),
        };
        // A `*` in a name is refused: it would be a prefix.
        let Ok(grant) = Scopes::parse(&[&text]) else {
            prop_assert!(a.contains('*'));
            return Ok(());
        };
        prop_assert_eq!(grant.iter().next().unwrap().to_string(), text);
        let own = if by_prefix { format!("{a}.{rest}") } else { a.clone() };
        if !a.ends_with('*') {
            prop_assert!(grant.allows(action, &own));
            for theirs in [b.clone(), format!("{b}.{rest}"), format!("{b}.")] {
                for any in ACTIONS {
                    prop_assert!(!grant.allows(any, &theirs), "{} {}:{}", a, any, theirs);
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,12}", channel in "\\PC{0,12}") {
        if let Ok(scopes) = Scopes::parse(&[&text]) {
            let again = Scopes::parse(&[scopes.iter().next().unwrap().to_string()]);
            prop_assert_eq!(again.as_ref(), Ok(&scopes));
            let _ = scopes.allows(Action::Read, &channel);
        }
    }
}
