//! The lake project, as `make demo-lake` plays it.

use std::path::Path;
use std::process::Command;

use watershed_tests::server::{fetched, skip, target};

use crate::connected::has_extension;

/// The part of what was said under a heading.
fn part<'a>(said: &'a str, heading: &str) -> &'a str {
    let (_, rest) = said
        .split_once(heading)
        .unwrap_or_else(|| panic!("{heading}: {said}"));
    rest.split("\n# ").next().unwrap_or_default()
}

#[test]
fn the_lake_is_joined_corrected_and_written_back() {
    if !(has_extension("httpfs") && has_extension("postgres_scanner")) {
        return;
    }
    let servers = [
        fetched().join("s3/moto"),
        Path::new("/usr/lib/postgresql").to_owned(),
    ];
    if let Some(missing) = servers.iter().find(|server| !server.exists()) {
        skip(&format!("{} is missing", missing.display()));
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/demo-lake");
    let output = Command::new(script)
        .env("WATERSHED", env!("CARGO_BIN_EXE_watershed-under-test"))
        .env("CARGO_TARGET_DIR", target())
        .env("NO_COLOR", "1")
        .env_remove("WATERSHED_PROJECT")
        .output()
        .expect("the script can be started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    let first = part(&said, "# Trips from the bucket");
    assert!(first.contains("8 resources, 6 built, 2 checked"), "{first}");
    let second = part(&said, "# The trips of one day are corrected");
    for built in [
        "built      model   trips",
        "built      model   revenue",
        "built      model   by_borough",
    ] {
        assert!(second.contains(built), "{second}");
    }
    assert!(second.contains("3 built, 2 checked, 3 unchanged"), "{second}");
    let others = part(&said, "# As others see it");
    assert!(others.contains("Docks   |   117 | 554.60"), "{others}");
    assert!(others.contains("Docks,50,244.0\nHill,25,152.5"), "{others}");
    let last = part(&said, "# Once more");
    assert!(last.contains("nothing to do"), "{last}");
    for secret in ["secret-of-the-demo", "password-of-the-demo"] {
        assert!(
            !said.contains(secret) && !errors.contains(secret),
            "{said}{errors}"
        );
    }
}
