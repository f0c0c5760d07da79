//! Paths of files as callers spell them.

use watershed_api::{Code, Problem};

/// The longest path of a new file, in bytes.
const LONGEST_PATH: usize = 1_024;
/// The longest name in a path, in bytes: the bound of file systems.
const LONGEST_NAME: usize = 255;
/// The deepest nesting of a new file.
const DEEPEST: usize = 32;

/// Refuses a path that could stand for another path: empty, `.` or `..` segments, and ambiguous characters.
///
/// # Errors
/// `bad-argument`.
pub(super) fn check(path: &str, raw: &str) -> Result<(), Problem> {
    let refused = |what: &str| {
        Err(Problem::new(
            Code::BadArgument,
            format!("the path of the file {what}"),
        ))
    };
    // Slashes, dots and backslashes stand for themselves, so that one file has one address.
    let raw = raw.to_ascii_lowercase();
    if ["%2f", "%2e", "%5c"].iter().any(|odd| raw.contains(odd)) {
        return refused("has a slash, a dot or a backslash that is encoded");
    }
    if path.chars().any(|letter| letter.is_control() || letter == '\\') {
        return refused("has a letter that no path has");
    }
    match path.split('/').all(|part| !matches!(part, "" | "." | "..")) {
        true => Ok(()),
        false => refused("has a part that is empty or leads up"),
    }
}

/// Refuses the path of a new file that looks like another one, or that other systems can't hold: letters without a look of
/// their own, marks that combine with the letter before, blanks and dots at the ends of names.
///
/// # Errors
/// `bad-argument`.
pub(super) fn check_new(path: &str) -> Result<(), Problem> {
    let refused = |what: &str| {
        Err(
            Problem::new(Code::BadArgument, format!("the path of a new file {what}")).hint(
                "new names have letters, digits, blanks and the signs of ASCII, and composed letters in the place of \
                 combining marks",
            ),
        )
    };
    if path.len() > LONGEST_PATH || path.split('/').count() > DEEPEST {
        return refused("is too long or too deep");
    }
    for name in path.split('/') {
        if name.len() > LONGEST_NAME {
            return refused("has a name that is too long");
        }
        if name.starts_with(' ') || name.ends_with([' ', '.']) {
            return refused("has a name that begins with a blank, or ends in a blank or a dot");
        }
        let is_plain = |sign: char| sign.is_alphanumeric() || sign == ' ' || sign.is_ascii_punctuation();
        let is_odd = |sign: char| !is_plain(sign) || matches!(sign, '<' | '>' | ':' | '"' | '|' | '?' | '*');
        if name.chars().any(is_odd) {
            return refused("has a sign that names of files should not have");
        }
    }
    Ok(())
}
