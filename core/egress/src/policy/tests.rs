use super::*;
use proptest::prelude::*;

fn policy(text: &str) -> Policy {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn the_default_is_off() {
    let off = Policy::default();
    assert_eq!(off, policy("off"));
    assert_eq!(
        off.check(ip("8.8.8.8"), 53, ["dns.google"]),
        Err(Refusal::Off)
    );
    assert!(!off.allows_name("example.com"));
}

#[test]
fn names_open_their_public_addresses_only() {
    let policy = policy("allow:Example.com:443,*.example.org");
    for (name, allowed) in [
        ("example.com", true),
        ("EXAMPLE.com.", true),
        ("www.example.com", false),
        ("a.b.example.org", true),
        ("example.org", false),
        (".example.org", false),
        ("badexample.org", false),
        ("example.com.evil.net", false),
        ("", false),
        ("exa mple.com", false),
    ] {
        assert_eq!(policy.allows_name(name), allowed, "{name}");
    }
    let public = ip("93.184.216.34");
    assert_eq!(policy.check(public, 443, ["example.com"]), Ok(()));
    assert_eq!(
        policy.check(public, 80, ["example.com"]),
        Err(Refusal::NotNamed)
    );
    assert_eq!(policy.check(public, 443, []), Err(Refusal::NotNamed));
    assert_eq!(
        policy.check(public, 22, ["x.net", "A.example.org."]),
        Ok(())
    );
    // A name that resolves to the host or its networks opens nothing.
    for inner in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::ffff:127.0.0.1",
    ] {
        let refusal = policy.check(ip(inner), 443, ["example.com"]);
        assert_eq!(refusal, Err(Refusal::Special(classify(ip(inner)))));
    }
    assert_eq!(policy.check_host(public, ["example.com"]), Ok(()));
    assert_eq!(policy.check_host(public, []), Err(Refusal::NotNamed));
}

#[test]
fn special_addresses_must_be_named_by_address() {
    let everything = policy("full:0.0.0.0/0,[::/0],*");
    let specials = [
        "127.0.0.1",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "fe80::1",
        "fd00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
    ];
    for text in specials {
        let class = classify(ip(text));
        assert_eq!(
            everything.check(ip(text), 80, []),
            Err(Refusal::Special(class)),
            "{text}"
        );
    }
    assert_eq!(everything.check(ip("1.1.1.1"), 80, []), Ok(()));
    let named = policy("allow:10.0.0.0/8,[fd00::/8]:443,169.254.0.0/16,192.168.1.1");
    for (text, port, allowed) in [
        ("10.9.9.9", 1, true),
        ("::ffff:10.9.9.9", 1, true),
        ("64:ff9b::a09:909", 1, true),
        ("fd00::1", 443, true),
        ("fd00::1", 80, false),
        ("169.254.3.3", 80, true),
        // A rule for the range does not name it.
        ("169.254.169.254", 80, false),
        ("192.168.1.1", 80, true),
        ("192.168.1.2", 80, false),
    ] {
        assert_eq!(named.check(ip(text), port, []).is_ok(), allowed, "{text}");
        assert_eq!(named.names_address(ip(text), port), allowed, "{text}");
    }
    assert!(
        policy("allow:169.254.169.254:80")
            .check(ip("169.254.169.254"), 80, [])
            .is_ok()
    );
}

#[test]
fn loopback_is_opened_by_port() {
    for text in [
        "full:localhost:8080",
        "allow:host.agent99.internal:8080",
        "allow:127.0.0.1:8080",
    ] {
        let policy = policy(text);
        assert_eq!(policy.check(ip("127.0.0.1"), 8080, []), Ok(()), "{text}");
        assert!(policy.check(ip("127.0.0.1"), 8081, []).is_err(), "{text}");
        assert!(policy.check(ip("127.0.0.2"), 8080, []).is_err(), "{text}");
        assert!(policy.check(ip("0.0.0.0"), 8080, []).is_err(), "{text}");
    }
    assert!(
        policy("allow:localhost:1-9")
            .check(ip("::1"), 9, [])
            .is_ok()
    );
}

#[test]
fn full_means_public() {
    let full = Policy::full();
    assert!(full.check(ip("8.8.8.8"), 1, []).is_ok());
    assert!(full.check(ip("2606:4700::1"), 1, []).is_ok());
    assert!(full.check_host(ip("10.0.0.1"), []).is_err());
    assert!(full.allows_name("anything.test") && !full.allows_name("not a name"));
    assert!(!full.names_address(ip("8.8.8.8"), 1));
    assert!(policy("allow:*:443").check(ip("8.8.8.8"), 443, []).is_ok());
    assert!(policy("allow:*:443").check(ip("8.8.8.8"), 80, []).is_err());
}

#[test]
fn errors_name_place_text_and_remedy() {
    let table = [
        ("", PolicyCode::Mode, 0, ""),
        ("on", PolicyCode::Mode, 0, "on"),
        ("off:x", PolicyCode::Mode, 0, "off:x"),
        ("allow:", PolicyCode::Empty, 6, ""),
        ("allow:a.com,,b.com", PolicyCode::Empty, 12, ""),
        ("allow::80", PolicyCode::Empty, 6, ":80"),
        ("allow:a..com", PolicyCode::Name, 6, "a..com"),
        ("allow:x.com,-a.com", PolicyCode::Name, 12, "-a.com"),
        ("allow:a b", PolicyCode::Name, 6, "a b"),
        (
            "allow:b\u{fc}cher.de",
            PolicyCode::Name,
            6,
            "b\u{fc}cher.de",
        ),
        ("allow:a.*.com", PolicyCode::Name, 6, "a.*.com"),
        ("allow:a.com:", PolicyCode::Port, 12, ""),
        ("allow:a.com:0", PolicyCode::Port, 12, "0"),
        ("allow:a.com:+1", PolicyCode::Port, 12, "+1"),
        ("allow:a.com:65536", PolicyCode::Port, 12, "65536"),
        ("allow:a.com:9-8", PolicyCode::Port, 12, "9-8"),
        ("allow:10.0.0.1/8", PolicyCode::Address, 6, "10.0.0.1/8"),
        ("allow:10.0.0.0/33", PolicyCode::Address, 6, "10.0.0.0/33"),
        ("allow:10.0.0.0/+8", PolicyCode::Address, 6, "10.0.0.0/+8"),
        ("allow:127.1:80", PolicyCode::Address, 6, "127.1"),
        ("allow:2130706433:80", PolicyCode::Address, 6, "2130706433"),
        ("allow:0x7f.1", PolicyCode::Address, 6, "0x7f.1"),
        ("allow:0177.0.0.1", PolicyCode::Address, 6, "0177.0.0.1"),
        ("allow:[::1", PolicyCode::Address, 6, "[::1"),
        ("allow:[fd00::/8]80", PolicyCode::Port, 16, "80"),
        (
            "allow:[::ffff:10.0.0.0/104]",
            PolicyCode::Address,
            6,
            "[::ffff:10.0.0.0/104]",
        ),
        ("allow:localhost", PolicyCode::PortNeeded, 6, "localhost"),
        ("full:127.0.0.0/8", PolicyCode::PortNeeded, 5, "127.0.0.0/8"),
        ("allow:0.0.0.0", PolicyCode::PortNeeded, 6, "0.0.0.0"),
        ("allow:[::1]", PolicyCode::PortNeeded, 6, "[::1]"),
    ];
    for (text, code, start, found) in table {
        let error = text.parse::<Policy>().expect_err(text);
        assert_eq!(
            (error.code, error.at.start, error.found.as_str()),
            (code, start, found),
            "{text}"
        );
        assert_eq!(text.get(error.at.clone()), Some(found), "{text}");
        assert!(!error.help.is_empty() && error.to_string().contains(&error.help));
    }
    let many = format!("allow:{}", vec!["a.com"; MAX_RULES + 1].join(","));
    assert_eq!(
        many.parse::<Policy>().expect_err("too many").code,
        PolicyCode::TooMany
    );
}

#[test]
fn serde_uses_the_text() {
    let text =
        "\"allow:*.example.com:443,10.0.0.0/8,[fd00::/8]:80-90,host.agent99.internal:5000,*:53\"";
    let policy: Policy = serde_json::from_str(text).expect("a policy");
    assert_eq!(serde_json::to_string(&policy).expect("a text"), text);
    let error = serde_json::from_str::<Policy>("\"allow:localhost\"").expect_err("no port");
    assert!(error.to_string().contains("name the port"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_an_error_in_place(text in "(off|full|allow)?:?[-a-z0-9.*:,/\\[\\]]{0,40}|\\PC{0,40}") {
        match text.parse::<Policy>() {
            Ok(policy) => prop_assert_eq!(policy.to_string().parse::<Policy>(), Ok(policy)),
            Err(error) => prop_assert_eq!(text.get(error.at), Some(error.found.as_str())),
        }
    }

    /// Names and any-rules never open special addresses.
    #[test]
    fn names_never_open_special_addresses(bits in any::<u32>(), port in any::<u16>()) {
        let address = IpAddr::V4(bits.into());
        let policy = policy("full:*,example.com,*.com,0.0.0.0/0,0.0.0.0/1,128.0.0.0/1");
        let allowed = policy.check(address, port, ["example.com"]).is_ok();
        prop_assert_eq!(allowed, classify(address) == Class::Public);
    }
}
